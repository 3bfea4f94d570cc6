// SPDX-License-Identifier: GPL-2.0-only
/* demangle.c: see demangle.h. */
#include <setjmp.h>

#include <libiberty/demangle.h>
/* libiberty has its own macro with the same meaning. */
#undef ARRAY_SIZE

#include "lib/base/fmt.h"
#include "lib/demangle/demangle.h"

#define MAX_DEPTH 64 /* nesting of brackets; libiberty allows more */

/* ---- demangling with libiberty ---- */

struct whole {
	jmp_buf too_long;
	size_t len;
	char text[TTMON_DEMANGLE_WHOLE];
};

static bool is_ascii(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] >= 0x80)
			return false;
	return true;
}

/*
 * A symbol of 60 bytes can stand for a name of gigabytes, as each part may refer to earlier ones
 * twice, and libiberty has no other way to be stopped. It has no memory to free while it prints,
 * but for an identifier that is not ASCII (rust-demangle.c, print_ident()).
 */
static void take(const char *s, size_t n, void *ctx)
{
	struct whole *w = ctx;

	if (w->len >= sizeof(w->text) || n >= sizeof(w->text) - w->len) {
		w->len = sizeof(w->text);
		if (is_ascii(s, n))
			longjmp(w->too_long, 1);
		return;
	}
	if (n)
		memcpy(w->text + w->len, s, n);
	w->len += n;
}

/*
 * Without DMGL_PARAMS the last function's parameters, return type and suffixes are not there.
 * Recursion stays limited.
 */
static bool read_symbol(const char *symbol, struct whole *w)
{
	w->len = 0;
	if (setjmp(w->too_long))
		return false;
	if (!rust_demangle_callback(symbol, DMGL_NO_OPTS, take, w)) {
		w->len = 0;
		if (strncmp(symbol, "_Z", 2) != 0 || !cplus_demangle_v3_callback(symbol, DMGL_NO_OPTS, take, w))
			return false;
	}
	if (!w->len || w->len >= sizeof(w->text))
		return false;
	w->text[w->len] = '\0';
	return true;
}

/* ---- shortening ---- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
	       (unsigned char)c >= 0x80;
}

static bool begins(const char *p, const char *with)
{
	return !strncmp(p, with, strlen(with));
}

/*
 * Returns the length of "operator" with its sign at p, whose brackets do not count; 0: there is none
 * at p. first: start of the whole text.
 */
static size_t operator_at(const char *first, const char *p)
{
	static const char *const signs[] = { "()", "[]", "<=>", "<<=", ">>=", "->*", "<<",
					     ">>", "<=", ">=",	"->",  "<",   ">" };
	const size_t n = strlen("operator");

	if (*p != 'o' || (p > first && is_word(p[-1])) || !begins(p, "operator") || is_word(p[n]))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
		if (begins(p + n, signs[i]))
			return n + strlen(signs[i]);
	return n;
}

/* Returns the bracket that closes the one at p, searched in first; NULL: none. */
static const char *closing(const char *first, const char *p)
{
	char open[MAX_DEPTH];
	size_t depth = 0, n;

	for (; *p; p++) {
		n = operator_at(first, p);
		if (n) {
			p += n - 1;
		} else if (strchr("(<[{", *p)) {
			if (depth == MAX_DEPTH)
				return NULL;
			open[depth++] = *p;
		} else if (*p == '>' ? p[-1] != '-' && open[depth - 1] == '<' : strchr(")]}", *p) != NULL) {
			/* A '<' that is still open inside is an operator: "(a<b)". */
			while (depth && *p != '>' && open[depth - 1] == '<')
				depth--;
			if (!depth || open[depth - 1] != (*p == '>' ? '<' : *p == ')' ? '(' : *p == ']' ? '[' : '{'))
				return NULL;
			if (!--depth)
				return p;
		}
	}
	return NULL;
}

/* Skips the qualifiers behind the parameters of an enclosing function: "foo(int) const::x". */
static const char *skip_qualifiers(const char *p)
{
	static const char *const words[] = { " const", " volatile", " &&", " &" };
	const char *q = p;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!begins(q, words[i]))
			continue;
		q += strlen(words[i]);
		i = SIZE_MAX;
	}
	return *q && !begins(q, "::") ? p : q;
}

/* Returns whether a '<' begins a part of a Rust path: "<T as Trait>::f", "a::<impl T>::f". */
static bool is_self(const char *out, size_t len, const char *p)
{
	return !len || (len > 1 && !memcmp(out + len - 2, "::", 2) && begins(p, "<impl "));
}

/*
 * Shortens w->text in place; the result is never longer than the input. Returns false if brackets do
 * not match, which does not occur in libiberty's output.
 */
static bool shorten(struct whole *w)
{
	static const char anonymous[] = "(anonymous namespace)::";
	char *first = w->text, out[sizeof(w->text)];
	const char *p = first, *end;
	size_t len = 0, n;

	while (*p) {
		n = operator_at(first, p);
		if (n) {
			memcpy(out + len, p, n);
			len += n;
			p += n;
		} else if (begins(p, anonymous)) {
			p += sizeof(anonymous) - 1;
		} else if (*p == '(' || begins(p, "[abi:") || begins(p, " [clone")) {
			end = closing(first, p + (*p == ' '));
			if (!end)
				return false;
			p = *p == '(' ? skip_qualifiers(end + 1) : end + 1;
		} else if (*p == '<' && is_self(out, len, p)) {
			out[len++] = *p++;
		} else if (*p == '<') {
			end = closing(first, p);
			if (!end)
				return false;
			/* Rust writes "f::<T>". */
			if (len > 1 && !memcmp(out + len - 2, "::", 2))
				len -= 2;
			n = (size_t)(end + 1 - p);
			memcpy(out + len, n >= 5 ? "<...>" : p, MIN(n, 5));
			len += MIN(n, 5);
			p = end + 1;
		} else {
			out[len++] = *p++;
		}
	}
	if (!len)
		return false;
	memcpy(w->text, out, len);
	w->text[len] = '\0';
	w->len = len;
	return true;
}

char *ttmon_demangle(char *buf, size_t n, const char *symbol)
{
	struct whole w;

	if ((!begins(symbol, "_Z") && !begins(symbol, "_R")) ||
	    strnlen(symbol, TTMON_DEMANGLE_SYMBOL + 1) > TTMON_DEMANGLE_SYMBOL || !read_symbol(symbol, &w) ||
	    !shorten(&w))
		return ttmon_fmt_text(buf, n, symbol);
	return ttmon_fmt_text(buf, n, w.text);
}
