// SPDX-License-Identifier: GPL-2.0-only
/*
 * list.c: kernelslist.g of Accel-Sim's tracer: one line for each thing the program did, of which those
 * that begin with "kernel" name a trace beside the list. All files are looked for before the first is
 * read, so that a list that is not whole says so at once.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "memtrace/read/src.h"
#include "lib/base/grow.h"
#include "lib/base/util.h"

struct ttmon_mt_list {
	char **paths;
	size_t nr, cap, next;
	uint64_t bytes;
};

static bool begins(const uint8_t *p, size_t n, const char *with)
{
	size_t k = strlen(with);

	return n >= k && !memcmp(p, with, k);
}

int ttmon_mt_list_detect(const uint8_t *p, size_t n)
{
	static const char *const lines[] = { "MemcpyHtoD,", "MemcpyDtoH,", "cudaMalloc,",
					     "cudaFree,",   "MemcpyDtoD,", "Memset," };
	size_t line = 0;
	const uint8_t *dash;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (begins(p, n, lines[i]))
			return 80;
	while (line < n && p[line] != '\n' && line < 512)
		line++;
	/* "kernel-1.traceg", "kernel-12-ctx_0x7f00.trace.xz" */
	dash = begins(p, line, "kernel-") ? p + 7 : NULL;
	if (!dash || line < 9 || *dash < '0' || *dash > '9' || !memmem(p, line, ".trace", 6))
		return 0;
	return 80;
}

/* Is it a file that can be read? Its bytes. */
static int look(const char *path, uint64_t *bytes)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*bytes = (uint64_t)st.st_size;
	return 0;
}

/* The file of a line: with the name as it is, or as it is packed. */
static int add(struct ttmon_mt_list *l, const char *dir, size_t n_dir, const char *name, size_t n)
{
	static const char *const packed[] = { "", ".xz", ".gz", ".zst" };
	uint64_t bytes = 0;
	int err = 0, first = 0;

	if (TTMON_GROW(l->paths, l->cap, l->nr + 1, 64))
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(packed); i++) {
		_cleanup_free_ char *path = NULL;

		if (asprintf(&path, "%.*s%.*s%s", name[0] == '/' ? 0 : (int)n_dir, dir, (int)n, name, packed[i]) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		err = look(path, &bytes);
		if (!err) {
			l->bytes += bytes;
			l->paths[l->nr++] = TAKE_PTR(path);
			return 0;
		}
		first = first ?: err;
	}
	return first;
}

int ttmon_mt_list_new(const char *path, const uint8_t *text, size_t n, struct ttmon_mt_stats *stats,
		      struct ttmon_mt_list **ret, char *why, size_t n_why)
{
	struct ttmon_mt_list *l = calloc(1, sizeof(*l));
	const char *slash = strrchr(path, '/'), *p = (const char *)text, *end = p + n;
	unsigned int line = 0, kind;
	uint64_t addr, size;
	int err = l ? 0 : -ENOMEM;

	if (err)
		snprintf(why, n_why, "%s: out of memory", path);
	for (; !err && p < end; p++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p)) ?: end;
		size_t k = (size_t)(nl - p);

		line++;
		while (k && (p[k - 1] == ' ' || p[k - 1] == '\r' || p[k - 1] == '\t'))
			k--;
		if (begins((const uint8_t *)p, k, "kernel")) {
			err = k < PATH_MAX && !memchr(p, '\0', k)
				      ? add(l, path, slash ? (size_t)(slash - path) + 1 : 0, p, k)
				      : -ENAMETOOLONG;
			if (err)
				snprintf(why, n_why, "%s: line %u: %.*s: %s", path, line, (int)MIN(k, 200u), p,
					 err == -EINVAL ? "not a regular file" : strerror(-err));
		} else if (k) {
			stats->foreign += !ttmon_mt_list_memory(p, k, &kind, &addr, &size);
		}
		p = nl;
	}
	if (!err && !l->nr) {
		snprintf(why, n_why, "%s: a list that names no kernel's trace", path);
		err = -EBADMSG;
	}
	if (err) {
		ttmon_mt_list_free(l);
		return err;
	}
	*ret = l;
	return 0;
}

int ttmon_mt_list_next(struct ttmon_mt_list *l, const char **name, char *why, size_t n_why)
{
	int fd;

	why[0] = '\0';
	if (l->next == l->nr)
		return -ENOENT;
	*name = l->paths[l->next++];
	fd = open(*name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		return fd;
	fd = -errno;
	snprintf(why, n_why, "%s: %s", *name, strerror(-fd));
	return fd;
}

uint64_t ttmon_mt_list_bytes(const struct ttmon_mt_list *l)
{
	return l->bytes;
}

void ttmon_mt_list_free(struct ttmon_mt_list *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->nr; i++)
		free(l->paths[i]);
	free(l->paths);
	free(l);
}
