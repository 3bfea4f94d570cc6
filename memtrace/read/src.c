// SPDX-License-Identifier: GPL-2.0-only
/*
 * src.c: the bytes of one source, decompressed. gzip and zstd by their libraries, members and frames
 * one behind the other; xz by a child "xz -dc" that is fed and read in turns, so that pipes work as
 * files do. Compressed data that is cut gives what it holds; damaged data is an error behind the last
 * good byte.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <zlib.h>
#include <zstd.h>

#include "memtrace/read/src.h"
#include "lib/base/util.h"

#define RAW (256u << 10)

enum kind { UNKNOWN, PLAIN, GZIP, ZSTD, XZ };

struct ttmon_mt_src {
	int fd;
	enum kind kind;
	uint8_t *raw;
	size_t at, len;
	bool eof; /* of fd */
	uint64_t taken;
	bool cut, done;
	bool inside; /* a gzip member or a zstd frame */
	bool first;  /* nothing of it is whole yet */
	z_stream z;
	ZSTD_DStream *zstd;
	pid_t child;
	int to, from; /* its standard input and output; -1: closed */
	char name[];
};

extern char **environ;

static _printf_(4, 5) int fail(char *why, size_t n, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, n, fmt, ap);
	va_end(ap);
	return err;
}

int ttmon_mt_src_new(int fd, const char *name, struct ttmon_mt_src **ret)
{
	struct ttmon_mt_src *s = calloc(1, sizeof(*s) + strlen(name) + 1);

	if (!s)
		return -ENOMEM;
	s->raw = malloc(RAW);
	if (!s->raw) {
		free(s);
		return -ENOMEM;
	}
	strcpy(s->name, name);
	s->fd = fd;
	s->to = s->from = -1;
	s->first = true;
	*ret = s;
	return 0;
}

/* Up to n bytes of fd. */
static ssize_t from_fd(struct ttmon_mt_src *s, uint8_t *p, size_t n, int wait_ms, char *why, size_t n_why)
{
	struct pollfd pfd = { .fd = s->fd, .events = POLLIN };
	ssize_t got;

	if (s->eof)
		return 0;
	for (;;) {
		if (wait_ms >= 0 && poll(&pfd, 1, wait_ms) <= 0)
			return -EAGAIN;
		got = read(s->fd, p, n);
		if (got > 0)
			s->taken += (uint64_t)got;
		s->eof = !got;
		if (got >= 0)
			return got;
		if (errno == EAGAIN && wait_ms < 0)
			poll(&pfd, 1, -1);
		else if (errno == EAGAIN || (errno == EINTR && wait_ms >= 0))
			return -EAGAIN;
		else if (errno != EINTR)
			return fail(why, n_why, -errno, "%s: %s", s->name, strerror(errno));
	}
}

/* More raw bytes behind those that are there: how many, and as from_fd(). */
static ssize_t more(struct ttmon_mt_src *s, int wait_ms, char *why, size_t n_why)
{
	ssize_t got;

	if (s->at == s->len)
		s->at = s->len = 0;
	got = from_fd(s, s->raw + s->len, RAW - s->len, wait_ms, why, n_why);
	if (got > 0)
		s->len += (size_t)got;
	return got;
}

static int spawn_xz(struct ttmon_mt_src *s, char *why, size_t n)
{
	char *const argv[] = { "xz", "-dcq", NULL };
	_cleanup_close_ int in = -1, out = -1, to = -1, from = -1;
	posix_spawn_file_actions_t fa;
	int sv[2], pv[2], err;

	/* A socket, so that a child that has gone is an error and not a signal. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		return fail(why, n, -errno, "%s: %s", s->name, strerror(errno));
	to = sv[0], in = sv[1];
	if (pipe2(pv, O_CLOEXEC))
		return fail(why, n, -errno, "%s: %s", s->name, strerror(errno));
	from = pv[0], out = pv[1];
	err = posix_spawn_file_actions_init(&fa);
	if (err)
		return fail(why, n, -err, "%s: %s", s->name, strerror(err));
	err = posix_spawn_file_actions_adddup2(&fa, in, 0);
	err = err ?: posix_spawn_file_actions_adddup2(&fa, out, 1);
	err = err ?: posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
	err = err ?: posix_spawnp(&s->child, "xz", &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	if (err) {
		s->child = 0;
		return fail(why, n, -err, "%s is compressed with xz, and the program xz cannot be run: %s", s->name,
			    strerror(err));
	}
	s->to = TAKE_FD(to);
	s->from = TAKE_FD(from);
	return 0;
}

/* -EAGAIN: more bytes have to come before it is clear. */
static int sniff(struct ttmon_mt_src *s, int wait_ms, char *why, size_t n_why)
{
	static const struct {
		enum kind kind;
		size_t n;
		uint8_t magic[6];
	} magics[] = { { GZIP, 3, { 0x1f, 0x8b, 8 } },
		       { ZSTD, 4, { 0x28, 0xb5, 0x2f, 0xfd } },
		       { XZ, 6, { 0xfd, '7', 'z', 'X', 'Z', 0 } } };

	while (s->kind == UNKNOWN) {
		bool maybe = !s->len;
		ssize_t got;

		for (size_t i = 0; i < ARRAY_SIZE(magics) && s->len; i++) {
			if (memcmp(s->raw, magics[i].magic, MIN(s->len, magics[i].n)))
				continue;
			maybe = true;
			if (s->len >= magics[i].n)
				s->kind = magics[i].kind;
		}
		if (s->kind != UNKNOWN)
			break;
		if (!maybe || s->eof) {
			s->kind = PLAIN;
			break;
		}
		got = more(s, wait_ms, why, n_why);
		if (got < 0)
			return (int)got;
	}
	if (s->kind == GZIP && inflateInit2(&s->z, 15 + 16) != Z_OK)
		return fail(why, n_why, -ENOMEM, "%s: out of memory", s->name);
	if (s->kind == ZSTD) {
		s->zstd = ZSTD_createDStream();
		if (!s->zstd)
			return fail(why, n_why, -ENOMEM, "%s: out of memory", s->name);
	}
	return s->kind == XZ ? spawn_xz(s, why, n_why) : 0;
}

/* Fills zeros behind the last member are no member. */
static bool padding(const struct ttmon_mt_src *s)
{
	for (size_t i = s->at; i < s->len; i++)
		if (s->raw[i])
			return false;
	return true;
}

static ssize_t gzip(struct ttmon_mt_src *s, uint8_t *p, size_t n, int wait_ms, char *why, size_t n_why)
{
	for (;;) {
		int r;

		if (s->at == s->len) {
			ssize_t got = more(s, wait_ms, why, n_why);

			if (!got)
				s->cut = s->inside;
			if (got <= 0)
				return got;
		}
		if (!s->inside) {
			if (!s->first && padding(s)) {
				s->at = s->len;
				continue;
			}
			if (inflateReset(&s->z) != Z_OK)
				return fail(why, n_why, -EBADMSG, "%s: damaged gzip data", s->name);
			s->inside = true;
		}
		s->z.next_in = s->raw + s->at;
		s->z.avail_in = (uInt)(s->len - s->at);
		s->z.next_out = p;
		s->z.avail_out = (uInt)MIN(n, 1u << 30);
		r = inflate(&s->z, Z_NO_FLUSH);
		s->at = s->len - s->z.avail_in;
		if (r == Z_STREAM_END) {
			s->inside = s->first = false;
		} else if (r == Z_MEM_ERROR) {
			return fail(why, n_why, -ENOMEM, "%s: out of memory", s->name);
		} else if (r != Z_OK && r != Z_BUF_ERROR && s->z.next_out == p) {
			return fail(why, n_why, -EBADMSG, "%s: damaged gzip data: %s", s->name,
				    s->z.msg ?: "no valid data");
		}
		if (s->z.next_out != p)
			return s->z.next_out - p;
	}
}

static ssize_t zstd(struct ttmon_mt_src *s, uint8_t *p, size_t n, int wait_ms, char *why, size_t n_why)
{
	for (;;) {
		ZSTD_inBuffer in;
		ZSTD_outBuffer out = { p, n, 0 };
		size_t r;

		/* Also without input: what did not fit into the last buffer is in the decompressor still. */
		if (s->at == s->len && !s->inside) {
			ssize_t got = more(s, wait_ms, why, n_why);

			if (got <= 0)
				return got;
		}
		in = (ZSTD_inBuffer){ s->raw + s->at, s->len - s->at, 0 };
		r = ZSTD_decompressStream(s->zstd, &out, &in);
		if (ZSTD_isError(r))
			return fail(why, n_why, -EBADMSG, "%s: damaged zstd data: %s", s->name, ZSTD_getErrorName(r));
		s->at += in.pos;
		s->inside = r != 0;
		if (out.pos)
			return (ssize_t)out.pos;
		if (s->inside && s->at == s->len) {
			ssize_t got = more(s, wait_ms, why, n_why);

			if (!got)
				s->cut = true;
			if (got <= 0)
				return got;
		}
	}
}

static void shut(int *fd)
{
	ttmon_closep(fd);
	*fd = -1;
}

/* xz has closed its output. */
static ssize_t xz_end(struct ttmon_mt_src *s, char *why, size_t n_why)
{
	bool fed = s->eof && s->at == s->len;
	int status = 0;

	shut(&s->to);
	shut(&s->from);
	while (waitpid(s->child, &status, 0) < 0 && errno == EINTR)
		;
	s->child = 0;
	if (!status)
		return 0;
	/* The decoder used all data and needs more, or it stopped earlier. */
	if (!fed)
		return fail(why, n_why, -EBADMSG, "%s: damaged xz data", s->name);
	s->cut = true;
	return 0;
}

static ssize_t xz(struct ttmon_mt_src *s, uint8_t *p, size_t n, int wait_ms, char *why, size_t n_why)
{
	while (s->from >= 0) {
		bool send_now = s->at < s->len, feed = s->to >= 0;
		struct pollfd pfd[2] = { { .fd = s->from, .events = POLLIN },
					 { .fd = feed ? (send_now ? s->to : s->fd) : -1,
					   .events = send_now ? POLLOUT : POLLIN } };
		ssize_t got;
		int r = poll(pfd, 2, wait_ms);

		if (r < 0 && errno == EINTR && wait_ms < 0)
			continue;
		if (r <= 0)
			return -EAGAIN;
		if (pfd[0].revents) {
			got = read(s->from, p, n);
			if (got > 0)
				return got;
			if (!got)
				return xz_end(s, why, n_why);
			if (errno != EINTR)
				return fail(why, n_why, -errno, "%s: %s", s->name, strerror(errno));
		}
		if (!pfd[1].revents)
			continue;
		if (send_now) {
			got = send(s->to, s->raw + s->at, s->len - s->at, MSG_NOSIGNAL | MSG_DONTWAIT);
			if (got > 0)
				s->at += (size_t)got;
			else if (errno != EAGAIN && errno != EINTR)
				shut(&s->to);
			continue;
		}
		got = more(s, 0, why, n_why);
		if (!got)
			shut(&s->to);
		else if (got < 0 && got != -EAGAIN)
			return got;
	}
	return 0;
}

ssize_t ttmon_mt_src_read(struct ttmon_mt_src *s, uint8_t *p, size_t n, int wait_ms, char *why, size_t n_why)
{
	ssize_t got = 0;

	if (s->done)
		return 0;
	if (s->kind == UNKNOWN) {
		int err = sniff(s, wait_ms, why, n_why);

		if (err)
			return err;
	}
	switch (s->kind) {
	case GZIP:
		got = gzip(s, p, n, wait_ms, why, n_why);
		break;
	case ZSTD:
		got = zstd(s, p, n, wait_ms, why, n_why);
		break;
	case XZ:
		got = xz(s, p, n, wait_ms, why, n_why);
		break;
	case UNKNOWN:
	case PLAIN:
		if (s->at == s->len) {
			got = from_fd(s, p, n, wait_ms, why, n_why);
			break;
		}
		got = (ssize_t)MIN(n, s->len - s->at);
		memcpy(p, s->raw + s->at, (size_t)got);
		s->at += (size_t)got;
		break;
	}
	s->done = !got;
	return got;
}

uint64_t ttmon_mt_src_taken(const struct ttmon_mt_src *s)
{
	return s->taken;
}

bool ttmon_mt_src_cut(const struct ttmon_mt_src *s)
{
	return s->cut;
}

void ttmon_mt_src_free(struct ttmon_mt_src *s)
{
	if (!s)
		return;
	shut(&s->to);
	shut(&s->from);
	if (s->child) {
		kill(s->child, SIGKILL);
		while (waitpid(s->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (s->kind == GZIP)
		inflateEnd(&s->z);
	ZSTD_freeDStream(s->zstd);
	free(s->raw);
	free(s);
}
