// SPDX-License-Identifier: GPL-2.0-only
/*
 * maps.c: reads the mappings of a process from /proc/PID/maps (proc_pid_maps(5)).
 *
 *   start-end perms offset major:minor inode   name
 *
 * Runs in the cold thread; the parser is pure. The traced program chooses the file names: a newline
 * appears as \012 (the only character that the kernel escapes; it does not escape the backslash), all
 * others as they are. A line of another form is counted and skipped. Memory: one buffer, whatever the
 * number of mappings.
 */
#include "lib/os/maps.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>

#define BUF_SIZE (64u << 10) /* longer than any line: a path of PATH_MAX newlines is 16 KiB */

struct cursor {
	const char *p, *end;
};

/*
 * Parses a number of 1 to 16 hexadecimal digits, or 1 to 19 decimal digits, and the character after it
 * (0: a space or the end of the line).
 */
static bool number(struct cursor *c, unsigned int base, char after, uint64_t *ret)
{
	const char *start = c->p;
	uint64_t v = 0;

	for (; c->p < c->end; c->p++) {
		unsigned int digit;

		if (*c->p >= '0' && *c->p <= '9')
			digit = (unsigned int)(*c->p - '0');
		else if (base == 16 && *c->p >= 'a' && *c->p <= 'f')
			digit = (unsigned int)(*c->p - 'a') + 10;
		else
			break;
		if (c->p - start >= (base == 16 ? 16 : 19))
			return false;
		v = v * base + digit;
	}
	if (c->p == start)
		return false;
	*ret = v;
	if (c->p == c->end)
		return !after;
	return *c->p++ == (after ? after : ' ');
}

static bool flag(struct cursor *c, char set, char unset, bool *ret)
{
	if (c->p == c->end || (*c->p != set && *c->p != unset))
		return false;
	*ret = *c->p++ == set;
	return true;
}

/* Copies the rest of the line to name, with \012 converted back and " (deleted)" removed. */
static bool parse_name(struct cursor *c, char *name, size_t size, bool *deleted)
{
	static const char suffix[] = " (deleted)";
	size_t n = 0, tail = sizeof(suffix) - 1;

	while (c->p < c->end && *c->p == ' ')
		c->p++;
	while (c->p < c->end) {
		char ch = *c->p++;

		if (ch == '\\' && c->end - c->p >= 3 && !memcmp(c->p, "012", 3)) {
			ch = '\n';
			c->p += 3;
		}
		if (!ch || n + 1 == size)
			return false;
		name[n++] = ch;
	}
	*deleted = n > tail && name[0] == '/' && !memcmp(name + n - tail, suffix, tail);
	if (*deleted)
		n -= tail;
	name[n] = '\0';
	return true;
}

static bool parse_line(const char *line, size_t len, struct ttmon_mapping *m, char *name, size_t size)
{
	struct cursor c = { line, line + len };
	uint64_t major, minor;
	bool r, w, x;

	if (!number(&c, 16, '-', &m->start) || !number(&c, 16, ' ', &m->end) || m->start >= m->end)
		return false;
	if (!flag(&c, 'r', '-', &r) || !flag(&c, 'w', '-', &w) || !flag(&c, 'x', '-', &x) ||
	    !flag(&c, 's', 'p', &m->shared))
		return false;
	if (c.p == c.end || *c.p++ != ' ')
		return false;
	m->prot = (r ? PROT_READ : 0) | (w ? PROT_WRITE : 0) | (x ? PROT_EXEC : 0);
	if (!number(&c, 16, ' ', &m->pgoff) || !number(&c, 16, ':', &major) || !number(&c, 16, ' ', &minor))
		return false;
	if (major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	m->dev_major = (uint32_t)major;
	m->dev_minor = (uint32_t)minor;
	m->name = name;
	return number(&c, 10, 0, &m->ino) && parse_name(&c, name, size, &m->deleted);
}

int ttmon_maps_parse(const char *text, size_t n, int (*cb)(void *ctx, const struct ttmon_mapping *m), void *ctx,
		     uint64_t *bad)
{
	const char *p = text, *end = text + n;
	char name[PATH_MAX + 32];

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *stop = nl ? nl : end;
		struct ttmon_mapping m;
		int err;

		if (!parse_line(p, (size_t)(stop - p), &m, name, sizeof(name))) {
			(*bad)++;
		} else {
			err = cb(ctx, &m);
			if (err)
				return err;
		}
		p = nl ? nl + 1 : end;
	}
	return 0;
}

/* Parses the complete lines in buf and moves the rest to the front. */
static int parse_lines(char *buf, size_t *have, bool *skip, int (*cb)(void *ctx, const struct ttmon_mapping *m),
		       void *ctx)
{
	char *last = memrchr(buf, '\n', *have);
	size_t done, from = 0;
	uint64_t bad = 0;
	int err;

	if (!last) {
		if (*have == BUF_SIZE) { /* the line is longer than any valid one */
			*have = 0;
			*skip = true;
		}
		return 0;
	}
	done = (size_t)(last - buf) + 1;
	if (*skip) { /* this is the rest of a line that was too long */
		from = (size_t)((char *)memchr(buf, '\n', done) - buf) + 1;
		*skip = false;
	}
	err = ttmon_maps_parse(buf + from, done - from, cb, ctx, &bad);
	if (err)
		return err;
	*have -= done;
	memmove(buf, buf + done, *have);
	return 0;
}

int ttmon_maps_read(const char *proc_root, uint32_t pid, int (*cb)(void *ctx, const struct ttmon_mapping *m), void *ctx)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *buf = NULL;
	char path[PATH_MAX];
	bool skip = false;
	size_t have = 0;
	uint64_t bad = 0;
	int err;

	if (snprintf(path, sizeof(path), "%s/%u/maps", proc_root, pid) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	buf = malloc(BUF_SIZE);
	if (!buf)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, buf + have, BUF_SIZE - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return skip ? 0 : ttmon_maps_parse(buf, have, cb, ctx, &bad);
		have += (size_t)n;
		err = parse_lines(buf, &have, &skip, cb, ctx);
		if (err)
			return err;
	}
}
