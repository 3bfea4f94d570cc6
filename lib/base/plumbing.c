// SPDX-License-Identifier: GPL-2.0-only
/* plumbing.c: see plumbing.h. */
#include "lib/base/plumbing.h"

#include "lib/base/grow.h"

enum kind { OBJECT, FUNCTION, NAMESPACE, PYTHON, KINDS };

struct pattern {
	enum kind kind;
	bool own;
	const char *text;
};

struct ttmon_plumbing {
	char *text; /* what the patterns point into */
	struct pattern *v;
	size_t n, cap;
};

/*
 * Names of files of Debian, Fedora, conda, NVIDIA and PyTorch. Files of glibc have the version in
 * their names before 2.34.
 */
static const struct pattern builtin[] = {
	{ OBJECT, false, "libc.so.*" },
	{ OBJECT, false, "libc-2.*.so" },
	{ OBJECT, false, "libpthread.so.*" },
	{ OBJECT, false, "libpthread-2.*.so" },
	{ OBJECT, false, "ld-linux*.so*" },
	{ OBJECT, false, "ld-2.*.so" },
	{ OBJECT, false, "ld-musl-*.so*" },
	{ OBJECT, false, "libc.musl-*.so*" },
	{ OBJECT, false, "libm.so.*" },
	{ OBJECT, false, "libdl.so.*" },
	{ OBJECT, false, "libgcc_s.so*" },
	{ OBJECT, false, "libstdc++.so*" },
	{ OBJECT, false, "libc++.so*" },
	{ OBJECT, false, "libc++abi.so*" },
	{ OBJECT, false, "libcudart*.so*" },
	{ OBJECT, false, "libcuda.so*" },
	{ OBJECT, false, "libttmon*.so*" },
	{ OBJECT, false, "libtorch*.so*" },
	{ OBJECT, false, "libc10*.so*" },
	{ OBJECT, false, "_ctypes.*so" },
	{ OBJECT, false, "libffi*.so*" },
	{ OBJECT, false, "[vdso]" },
	{ NAMESPACE, false, "std" },
	{ NAMESPACE, false, "__gnu_cxx" },
	{ NAMESPACE, false, "__cxxabiv1" },
	{ NAMESPACE, false, "at" },
	{ NAMESPACE, false, "c10" },
	{ NAMESPACE, false, "torch" },
	{ NAMESPACE, false, "cudart" }, /* the runtime in a program that is linked statically */
	{ FUNCTION, false, "_Znw*" },	/* operator new */
	{ FUNCTION, false, "_Zna*" },
	{ FUNCTION, false, "_start" },
	{ FUNCTION, false, "__libc_start_*" },
	{ FUNCTION, false, "start_thread" },
	{ FUNCTION, false, "__clone*" },
	{ FUNCTION, false, "clone3" },
	{ PYTHON, false, "*/site-packages/torch/*" },
	{ PYTHON, false, "*/dist-packages/torch/*" },
	{ PYTHON, false, "<frozen *" },
	{ PYTHON, true, "*/site-packages/*" },
	{ PYTHON, true, "*/dist-packages/*" },
	{ PYTHON, false, "*/lib/python3*/*" }, /* its standard library */
};

static const struct pattern interpreters[] = {
	{ OBJECT, false, "python" },
	{ OBJECT, false, "python3" },
	{ OBJECT, false, "python3.*" },
	{ OBJECT, false, "libpython3*.so*" },
};

/* ---- matching ---- */

/* Takes at most strlen(pattern) * strlen(text) steps: only the last '*' is tried again. */
static bool glob(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	pattern += strspn(pattern, "*");
	return !*pattern;
}

/*
 * The outermost name of a mangled symbol: _ZN2at6native..., _ZNK3c10..., _ZSt4move..., and of what is
 * local to a function, _ZZN2at.... std is abbreviated, alone or with its best known classes (Itanium
 * C++ ABI, 5.1.10).
 */
static bool is_in_namespace(const char *symbol, const char *name)
{
	size_t len = strlen(name), digits;

	if (strncmp(symbol, "_Z", 2) != 0)
		return false;
	symbol += 1 + strspn(symbol + 1, "Z");
	if (*symbol == 'N') {
		symbol++;
		symbol += strspn(symbol, "rVKRO");
	}
	if (*symbol == 'S' && !strcmp(name, "std"))
		return symbol[1] && strchr("tabsiod", symbol[1]);
	digits = strspn(symbol, "0123456789");
	return digits && digits < 5 && strtoul(symbol, NULL, 10) == len && !strncmp(symbol + digits, name, len);
}

static bool is_hit(const struct pattern *p, const char *path, const char *function, bool python)
{
	const char *slash = strrchr(path, '/');

	switch (p->kind) {
	case OBJECT:
		return !python && glob(p->text, slash ? slash + 1 : path);
	case FUNCTION:
		return !python && function && glob(p->text, function);
	case NAMESPACE:
		return !python && function && is_in_namespace(function, p->text);
	case PYTHON:
		return python && glob(p->text, path);
	case KINDS:
		break;
	}
	return false;
}

static bool is_plumbing(const struct ttmon_plumbing *u, const char *path, const char *function, bool python)
{
	for (size_t i = 0; u && i < u->n; i++)
		if (is_hit(&u->v[i], path, function, python))
			return !u->v[i].own;
	for (size_t i = 0; i < ARRAY_SIZE(builtin); i++)
		if (is_hit(&builtin[i], path, function, python))
			return !builtin[i].own;
	return !python && ttmon_plumbing_is_interpreter(path);
}

bool ttmon_plumbing_native(const struct ttmon_plumbing *p, const char *path, const char *function)
{
	return is_plumbing(p, path, function, false);
}

bool ttmon_plumbing_python(const struct ttmon_plumbing *p, const char *path)
{
	return is_plumbing(p, path, NULL, true);
}

bool ttmon_plumbing_is_interpreter(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++)
		if (is_hit(&interpreters[i], path, NULL, false))
			return true;
	return false;
}

/* ---- a user's ---- */

static const char *const kinds[KINDS] = { "object", "function", "namespace", "python" };

static char *next_word(char **at)
{
	char *word = *at + strspn(*at, " \t");
	size_t n = strcspn(word, " \t");

	if (!n)
		return NULL;
	*at = word + n + (word[n] != '\0');
	word[n] = '\0';
	return word;
}

/* False: it is no pattern. A path may contain blanks, so the pattern is the rest of the line. */
static bool read_line(char *line, struct pattern *ret)
{
	char *word = next_word(&line), *end;

	*ret = (struct pattern){ .kind = KINDS };
	if (word && !strcmp(word, "own")) {
		ret->own = true;
		word = next_word(&line);
	}
	for (unsigned int k = 0; word && k < KINDS; k++)
		if (!strcmp(word, kinds[k]))
			ret->kind = (enum kind)k;
	line += strspn(line, " \t");
	for (end = line + strlen(line); end > line && strchr(" \t\r", end[-1]); end--)
		;
	*end = '\0';
	ret->text = line;
	return word && ret->kind != KINDS && *line;
}

static int read_lines(struct ttmon_plumbing *p, char *why, size_t why_size)
{
	unsigned int nr = 1;

	for (char *line = p->text, *next; line; line = next, nr++) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		line += strspn(line, " \t\r");
		if (!*line || *line == '#')
			continue;
		if (p->n == TTMON_PLUMBING_MAX) {
			snprintf(why, why_size, "more than %d patterns", TTMON_PLUMBING_MAX);
			return -E2BIG;
		}
		if (TTMON_GROW(p->v, p->cap, p->n + 1, 16))
			return -ENOMEM;
		if (!read_line(line, &p->v[p->n])) {
			snprintf(why, why_size, "line %u is no pattern: [own] object|function|namespace|python PATTERN",
				 nr);
			return -EINVAL;
		}
		p->n++;
	}
	return 0;
}

int ttmon_plumbing_parse(const char *text, size_t n, struct ttmon_plumbing **ret, char *why, size_t why_size)
{
	_cleanup_(ttmon_plumbing_freep) struct ttmon_plumbing *p = calloc(1, sizeof(*p));
	int err;

	snprintf(why, why_size, "out of memory");
	if (!p)
		return -ENOMEM;
	if (memchr(text, '\0', n)) {
		snprintf(why, why_size, "it is no text");
		return -EINVAL;
	}
	p->text = strndup(text, n);
	if (!p->text)
		return -ENOMEM;
	err = read_lines(p, why, why_size);
	if (!err)
		*ret = TAKE_PTR(p);
	return err;
}

void ttmon_plumbing_free(struct ttmon_plumbing *p)
{
	if (!p)
		return;
	free(p->text);
	free(p->v);
	free(p);
}
