// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_helpers.c: calls that answer, that die and that never end; only their own callers wait for
 * these.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/os/clock.h"
#include "lib/os/helpers.h"

#define WAIT_MS 20000

enum { ECHO, DIE, HANG, FILE_OF, BURN };

static int echo(const void *ctx, const void *in, size_t n, int fd, struct ttmon_helper_out *out)
{
	(void)fd;
	ttmon_helper_put(out, ctx, 1);
	for (int i = 0; i < 64; i++)
		ttmon_helper_put(out, in, n);
	return n ? 0 : -ENODATA;
}

static int die(const void *ctx _unused_, const void *in _unused_, size_t n _unused_, int fd _unused_,
	       struct ttmon_helper_out *out _unused_)
{
	raise(SIGKILL);
	return 0;
}

static int hang(const void *ctx _unused_, const void *in _unused_, size_t n _unused_, int fd _unused_,
		struct ttmon_helper_out *out _unused_)
{
	while (pause())
		;
	return 0;
}

/* The file that came, and the one that goes, are the same. */
static int file_of(const void *ctx _unused_, const void *in _unused_, size_t n _unused_, int fd,
		   struct ttmon_helper_out *out)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	ttmon_helper_put(out, &st.st_ino, sizeof(st.st_ino));
	out->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return 0;
}

/* So many ms of CPU time. */
static int burn(const void *ctx _unused_, const void *in, size_t n _unused_, int fd _unused_,
		struct ttmon_helper_out *out _unused_)
{
	uint64_t end_ns = ttmon_clock_ns(CLOCK_PROCESS_CPUTIME_ID) + *(const uint32_t *)in * NSEC_PER_MS;

	while (ttmon_clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end_ns)
		;
	return 0;
}

static const ttmon_helper_fn fns[] = { [ECHO] = echo, [DIE] = die, [HANG] = hang, [FILE_OF] = file_of, [BURN] = burn };

static struct ttmon_helpers *start(unsigned int late_ms, unsigned int give_up_ms, unsigned int cpu_ms)
{
	struct ttmon_helpers_cfg cfg = { .fns = fns,
					 .nr_fns = ARRAY_SIZE(fns),
					 .ctx = "c",
					 .late_ms = late_ms,
					 .give_up_ms = give_up_ms,
					 .cpu_ms = cpu_ms };
	struct ttmon_helpers *h = NULL;

	assert_int_equal(ttmon_helpers_start(&cfg, &h), 0);
	return h;
}

struct answer {
	bool over;
	int err, fd;
	size_t n;
	char first[8];
};

static void done(void *ctx, struct ttmon_helper_reply *reply)
{
	struct answer *a = ctx;

	assert_false(a->over);
	a->over = true;
	a->err = reply->err;
	a->n = reply->n;
	memcpy(a->first, reply->buf ? reply->buf : "", MIN(reply->n, sizeof(a->first)));
	a->fd = TAKE_FD(reply->fd);
}

static bool is_over(void *ctx)
{
	return ((struct answer *)ctx)->over;
}

static void call(struct ttmon_helpers *h, unsigned int fn, uint64_t who, const void *in, size_t n, int fd,
		 struct answer *a)
{
	struct ttmon_helper_call c = {
		.fn = fn, .who = who, .where = 7, .in = in, .n = n, .fd = fd, .done = done, .ctx = a
	};

	*a = (struct answer){ .fd = -1 };
	assert_int_equal(ttmon_helpers_call(h, &c), 0);
}

static void test_answers(void **state)
{
	struct ttmon_helpers *h = start(0, 0, 0);
	_cleanup_free_ char *big = calloc(1, TTMON_HELPER_IN_MAX + 1);
	struct answer a, many[100];
	struct stat st;
	int fd;

	(void)state;
	call(h, ECHO, 1, "xy", 2, -1, &a);
	assert_true(ttmon_helpers_wait(h, is_over, &a, WAIT_MS));
	assert_int_equal(a.err, 0);
	assert_int_equal(a.n, 129);
	assert_memory_equal(a.first, "cxyx", 4);
	call(h, ECHO, 1, "", 0, -1, &a);
	assert_true(ttmon_helpers_wait(h, is_over, &a, WAIT_MS));
	assert_int_equal(a.err, -ENODATA);
	/* More than a socket holds, both ways. */
	call(h, ECHO, 1, big, TTMON_HELPER_IN_MAX, -1, &a);
	assert_true(ttmon_helpers_wait(h, is_over, &a, WAIT_MS));
	assert_int_equal(a.n, 64 * TTMON_HELPER_IN_MAX + 1);
	assert_int_equal(ttmon_helpers_call(h, &(struct ttmon_helper_call){ .in = big, .n = TTMON_HELPER_IN_MAX + 1 }),
			 -E2BIG);
	fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	call(h, FILE_OF, 1, "", 0, fd, &a);
	close(fd);
	assert_true(ttmon_helpers_wait(h, is_over, &a, WAIT_MS));
	assert_memory_equal(a.first, &st.st_ino, sizeof(st.st_ino));
	assert_int_equal(fstat(a.fd, &st), 0);
	assert_memory_equal(a.first, &st.st_ino, sizeof(st.st_ino));
	close(a.fd);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		call(h, ECHO, i % 10, "z", 1, -1, &many[i]);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		assert_true(ttmon_helpers_wait(h, is_over, &many[i], WAIT_MS));
	assert_false(ttmon_helpers_busy(h, WAIT_MS));
	ttmon_helpers_free(h);
}

/*
 * The descriptor of an answer goes to the named socket, not to the caller; without a descriptor the
 * socket ends.
 */
static void test_answer_for_another(void **state)
{
	static const unsigned int nothing[] = { ECHO, DIE };
	struct ttmon_helpers *h = start(0, 0, 0);
	struct stat st, got;
	struct answer a;

	(void)state;
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	for (size_t i = 0; i < 1 + ARRAY_SIZE(nothing); i++) {
		_cleanup_close_ int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
		struct ttmon_helper_call c = {
			.fn = i ? nothing[i - 1] : FILE_OF, .in = "", .fd = i ? -1 : fd, .done = done, .ctx = &a
		};
		char room[CMSG_SPACE(sizeof(int))], byte;
		struct iovec iov = { &byte, 1 };
		struct msghdr msg = {
			.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)
		};
		int pair[2], file;

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		c.to = &pair[1];
		a = (struct answer){ .fd = -1 };
		assert_int_equal(ttmon_helpers_call(h, &c), 0);
		close(pair[1]);
		assert_true(ttmon_helpers_wait(h, is_over, &a, WAIT_MS));
		assert_int_equal(a.fd, -1);
		if (!i) {
			assert_int_equal(recvmsg(pair[0], &msg, MSG_CMSG_CLOEXEC), 1);
			assert_non_null(CMSG_FIRSTHDR(&msg));
			memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(file));
			assert_int_equal(fstat(file, &got), 0);
			assert_int_equal(got.st_ino, st.st_ino);
			close(file);
		}
		assert_int_equal(recv(pair[0], &byte, 1, 0), 0);
		close(pair[0]);
	}
	ttmon_helpers_free(h);
}

static void test_one_that_dies(void **state)
{
	struct ttmon_helpers *h = start(0, 0, 0);
	struct answer a, b;

	(void)state;
	call(h, DIE, 1, "", 0, -1, &a);
	call(h, ECHO, 1, "x", 1, -1, &b);
	assert_true(ttmon_helpers_wait(h, is_over, &a, WAIT_MS));
	assert_int_equal(a.err, -EIO);
	assert_true(ttmon_helpers_wait(h, is_over, &b, WAIT_MS));
	assert_int_equal(b.err, 0);
	ttmon_helpers_free(h);
}

/* One user's calls hang: others are answered at once, and the user's own when those are given up. */
static void test_hung_user(void **state)
{
	struct ttmon_helpers *h = start(20, 3000, 0);
	struct ttmon_helpers_counts n;
	struct answer hung[2], own, other;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hung); i++)
		call(h, HANG, 1000, "", 0, -1, &hung[i]);
	do {
		call(h, ECHO, 1001, "x", 1, -1, &other);
		assert_true(ttmon_helpers_wait(h, is_over, &other, WAIT_MS));
		assert_int_equal(other.err, 0);
		ttmon_helpers_get_counts(h, &n);
	} while (n.late < 2 && !hung[0].over);
	assert_int_equal(n.late, 2);
	/* The third at this place waits for one of them. */
	call(h, ECHO, 1000, "x", 1, -1, &own);
	for (int i = 0; i < 20; i++) {
		call(h, ECHO, 1001, "x", 1, -1, &other);
		assert_true(ttmon_helpers_wait(h, is_over, &other, WAIT_MS));
		assert_int_equal(other.err, 0);
	}
	assert_true(!own.over || hung[0].over || hung[1].over);
	for (size_t i = 0; i < ARRAY_SIZE(hung); i++) {
		assert_true(ttmon_helpers_wait(h, is_over, &hung[i], WAIT_MS));
		assert_int_equal(hung[i].err, -ETIMEDOUT);
	}
	assert_true(ttmon_helpers_wait(h, is_over, &own, WAIT_MS));
	ttmon_helpers_get_counts(h, &n);
	assert_true(n.given_up >= 2 && n.processes <= 6);
	ttmon_helpers_free(h);
}

/* A user's call has cost more CPU time than a user has: the next one waits, those of others do not. */
static void test_cpu_of_a_user(void **state)
{
	struct ttmon_helpers *h = start(0, 0, 20);
	uint32_t ms = 100, none = 0;
	struct ttmon_helpers_counts n;
	struct answer a, b, other;
	uint64_t begun_ns;

	(void)state;
	call(h, BURN, 1000, &ms, sizeof(ms), -1, &a);
	assert_true(ttmon_helpers_wait(h, is_over, &a, WAIT_MS));
	begun_ns = ttmon_mono_ns();
	call(h, BURN, 1000, &none, sizeof(none), -1, &b);
	call(h, ECHO, 1001, "x", 1, -1, &other);
	assert_true(ttmon_helpers_wait(h, is_over, &other, WAIT_MS));
	assert_true(ttmon_helpers_wait(h, is_over, &b, WAIT_MS));
	/* 80 ms of debt at 5 %, less what came while it ran. */
	assert_true(ttmon_mono_ns() - begun_ns > 200 * NSEC_PER_MS);
	ttmon_helpers_get_counts(h, &n);
	assert_true(n.cpu_ns >= 100 * NSEC_PER_MS);
	ttmon_helpers_free(h);
}

/* The end comes while calls are out. */
static void test_end_with_calls(void **state)
{
	struct ttmon_helpers *h = start(20, 0, 0);
	struct answer a, b, c;

	(void)state;
	call(h, HANG, 1, "", 0, -1, &a);
	call(h, HANG, 2, "", 0, -1, &b);
	call(h, ECHO, 3, "x", 1, -1, &c);
	assert_true(ttmon_helpers_wait(h, is_over, &c, WAIT_MS));
	ttmon_helpers_free(h);
	assert_false(a.over || b.over);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),	      cmocka_unit_test(test_answer_for_another),
		cmocka_unit_test(test_one_that_dies), cmocka_unit_test(test_hung_user),
		cmocka_unit_test(test_cpu_of_a_user), cmocka_unit_test(test_end_with_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
