// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_http_conn.c: limits: on the size of a request, on the time for it and its reply, on
 * connections. Times are virtual.
 */
#include "tests/unit/feed/http_bench.h"

#include <sys/resource.h>

static void hello(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	fputs("{}", reply->body);
}

static void big(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	for (unsigned int i = 0; i < 1u << 20; i++)
		fprintf(reply->body, "%07x\n", i);
}

static ssize_t next_block(void *ctx, char *buf, size_t max)
{
	(void)ctx;
	memset(buf, 'x', max);
	return (ssize_t)max;
}

static void endless(void *ctx, struct ttmon_http_reply *reply)
{
	ttmon_http_stream(reply, next_block, NULL, ctx);
}

static struct ttmon_http_later *waiting;

static void later(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	waiting = ttmon_http_defer(reply);
}

static const struct ttmon_http_route routes[] = {
	{ "/hello", "", hello, 0, true },
	{ "/later", "", later, 0, true },
	{ "/big", "", big, 0, true },
	{ "/endless", "", endless, 0, true },
};

#define ASK(what) "GET " what " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

static struct ttmon_http *start(void)
{
	return start_on(routes, ARRAY_SIZE(routes), NULL, "127.0.0.1:0");
}

static void pass(struct ttmon_http *h, uint64_t ms)
{
	clock_ns += ms * NSEC_PER_MS;
	turns(h, 5);
}

static struct ttmon_http_stats stats_of(struct ttmon_http *h)
{
	struct ttmon_http_stats st;

	ttmon_http_get_stats(h, &st);
	return st;
}

/* An address line, then headers, that do not fit. */
static void test_size(void **state)
{
	static char request[4 * TTMON_HTTP_MEMORY];
	struct ttmon_http *h = start();

	(void)state;
	memset(request, 'a', sizeof(request) - 1);
	memcpy(request, "GET /", 5);
	strcpy(request + sizeof(request) - 40, " HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_status(talk(h, request), 414);
	memset(request, 'a', sizeof(request) - 1);
	memcpy(request, "GET / HTTP/1.1\r\nX: ", 19);
	strcpy(request + sizeof(request) - 40, "\r\nHost: x\r\n\r\n");
	assert_status(talk(h, request), 431);
	ttmon_http_free(h);
}

/* ---- time ---- */

/* However steadily the bytes of a request come. */
static void test_slow_request(void **state)
{
	static const char text[] = ASK("/hello");
	struct ttmon_http *h = start();
	int silent = dial(), slow = dial(), good;
	char buf[1000];

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		assert_int_equal(send(slow, text + i, 1, MSG_NOSIGNAL), 1);
		pass(h, 1000);
	}
	pass(h, 999);
	assert_true(is_open(slow) && is_open(silent));
	/* Later clients have their own time limit. */
	good = dial();
	turns(h, 5);
	pass(h, 1001);
	assert_false(is_open(slow));
	assert_false(is_open(silent));
	assert_true(is_open(good));
	assert_int_equal(recv(slow, buf, sizeof(buf), 0), 0);
	assert_int_equal(stats_of(h).slow, 2);
	assert_int_equal(stats_of(h).open, 1);
	say(good, text);
	turns(h, 5);
	assert_true(recv(good, buf, sizeof(buf), 0) > 0);
	close(silent);
	close(slow);
	close(good);
	ttmon_http_free(h);
}

/* After a reply there is as much time for the next request as after the connection. */
static void test_keep_alive(void **state)
{
	struct ttmon_http *h = start();
	int fd = dial();
	char buf[1000];

	(void)state;
	for (int i = 0; i < 5; i++) {
		say(fd, ASK("/hello"));
		turns(h, 5);
		pass(h, 9999);
		assert_true(recv(fd, buf, sizeof(buf), 0) > 0);
	}
	pass(h, 1000);
	assert_false(is_open(fd));
	assert_int_equal(stats_of(h).requests, 5);
	assert_int_equal(stats_of(h).slow, 1);
	close(fd);
	ttmon_http_free(h);
}

/* Bytes that could be taken, at most n. */
static size_t take(int fd, size_t n)
{
	static char buf[1 << 20];
	size_t got = 0;
	ssize_t done;

	while (got < n && (done = recv(fd, buf, MIN(n - got, sizeof(buf)), 0)) > 0)
		got += (size_t)done;
	return got;
}

static void check_no_taker(int fd, struct ttmon_http *h)
{
	uint64_t slow = stats_of(h).slow;

	say(fd, ASK("/endless"));
	turns(h, 20);
	/* The first second passes until the full buffer of the socket is noticed. */
	pass(h, 1000);
	pass(h, 9999);
	assert_int_equal(stats_of(h).slow, slow);
	pass(h, 1001);
	assert_int_equal(stats_of(h).slow, slow + 1);
	assert_true(take(fd, 100 << 20) > 0);
	assert_false(is_open(fd));
	close(fd);
}

static void test_no_taker(void **state)
{
	struct ttmon_http *h = start();

	(void)state;
	check_no_taker(dial(), h);
	check_no_taker(dial_tcp(h->listeners[1].name), h);
	ttmon_http_free(h);
}

/* Takes some bytes every 9 s, for s seconds. Returns true if the connection is still there. */
static bool survives(struct ttmon_http *h, int fd, const char *ask, size_t bytes, unsigned int s)
{
	bool open;

	say(fd, ask);
	turns(h, 20);
	for (unsigned int i = 0; i < s; i++) {
		if (i % 9 == 8)
			take(fd, bytes);
		pass(h, 1000);
	}
	open = stats_of(h).slow == 0;
	h->stats.slow = 0;
	close(fd);
	turns(h, 5);
	return open;
}

static void test_rate(void **state)
{
	struct ttmon_http *h = start();

	(void)state;
	/* 3640 bytes/s and 10 KiB/s: below and above the required 4096, once the buffers are used up. */
	assert_true(survives(h, dial(), ASK("/endless"), 32768, 59));
	assert_false(survives(h, dial(), ASK("/endless"), 32768, 200));
	assert_true(survives(h, dial(), ASK("/endless"), 92160, 300));
	assert_false(survives(h, dial(), ASK("/big"), 32768, 200));
	assert_true(survives(h, dial(), ASK("/big"), 92160, 300));
	ttmon_http_free(h);
}

/* ---- numbers ---- */

static void test_crowd(void **state)
{
	struct ttmon_http *h = start();
	int fds[12], busy, other, late;
	char buf[1000];

	(void)state;
	h->listeners[0].limit = 4;
	busy = dial();
	say(busy, ASK("/endless"));
	turns(h, 5);
	clock_ns += NSEC_PER_MS;
	/*
	 * Each new connection closes the one that has been silent for longest, never one that is being
	 * answered.
	 */
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = dial();
		turns(h, 3);
		clock_ns += NSEC_PER_MS;
		for (size_t k = 0; k <= i; k++)
			assert_int_equal(is_open(fds[k]), k + 3 > i);
	}
	assert_int_equal(stats_of(h).crowded, ARRAY_SIZE(fds) - 3);
	assert_int_equal(stats_of(h).open, 4);
	assert_int_equal(recv(busy, buf, 10, 0), 10);
	/* Connections of the other listener do not count. */
	other = dial_tcp(h->listeners[1].name);
	turns(h, 3);
	assert_int_equal(stats_of(h).open, 5);
	/* The last connection is served like any other. */
	assert_status(talk(h, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 200);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	close(other);
	close(busy);
	turns(h, 5);
	assert_int_equal(stats_of(h).open, 0);
	/* All are being answered: the one that has taken nothing for longest is closed. */
	for (size_t i = 0; i < 4; i++) {
		fds[i] = dial();
		say(fds[i], ASK("/endless"));
		turns(h, 5);
	}
	clock_ns += 2 * NSEC_PER_SEC;
	for (size_t i = 0; i < 4; i++)
		if (i != 2)
			take(fds[i], 500000);
	turns(h, 5);
	late = dial();
	turns(h, 5);
	take(fds[2], 10 << 20);
	assert_false(is_open(fds[2]));
	assert_true(is_open(late));
	for (size_t i = 0; i < 4; i++)
		close(fds[i]);
	close(late);
	ttmon_http_free(h);
}

/*
 * As many connections as there may be: every new client is served, and the listener never stops
 * listening.
 */
static void test_many(void **state)
{
	struct ttmon_http *h = start();
	int fds[TTMON_HTTP_CONNECTIONS + 100];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = dial();
		assert_true(fds[i] >= 0);
		if (i % 2)
			say(fds[i], "GET /he");
		turn(h, 0);
		clock_ns += NSEC_PER_MS;
	}
	turns(h, 5);
	assert_int_equal(stats_of(h).open, TTMON_HTTP_CONNECTIONS);
	assert_int_equal(stats_of(h).crowded, 100);
	assert_status(talk(h, "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 200);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	turns(h, 100);
	assert_int_equal(stats_of(h).open, 0);
	ttmon_http_free(h);
}

static void test_open_files(void **state)
{
	struct rlimit before, few;
	struct ttmon_http *h;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 400;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(ttmon_http_limit(1), 200 - TTMON_HTTP_SPARE);
	assert_int_equal(ttmon_http_limit(2), 100 - TTMON_HTTP_SPARE);
	assert_int_equal(ttmon_http_limit(17), 1);
	h = start();
	assert_int_equal(h->listeners[1].limit, 100 - TTMON_HTTP_SPARE);
	ttmon_http_free(h);
	few.rlim_cur = MIN(before.rlim_max, (rlim_t)100000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(ttmon_http_limit(2), TTMON_HTTP_CONNECTIONS);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* The loop has nothing to wait for without a client, and at most a second with one. */
static void test_timeout(void **state)
{
	struct ttmon_http *h = start();
	int fd;

	(void)state;
	turns(h, 3);
	assert_int_equal(ttmon_http_timeout_ms(h), -1);
	fd = dial();
	turns(h, 5);
	assert_int_equal(ttmon_http_timeout_ms(h), 1000);
	clock_ns += 999 * NSEC_PER_MS + 1;
	assert_int_equal(ttmon_http_timeout_ms(h), 1);
	clock_ns += 2 * NSEC_PER_SEC;
	assert_int_equal(ttmon_http_timeout_ms(h), 0);
	turns(h, 1);
	assert_int_equal(ttmon_http_timeout_ms(h), 1000);
	close(fd);
	ttmon_http_free(h);
}

/* Whatever a client leaves unfinished, the loop sleeps. */
static void test_no_spin(void **state)
{
	static const struct {
		const char *say;
		bool half, gone;
	} cases[] = {
		{ "", false, false },
		{ "GET /hel", false, false },
		{ "GET /hel", true, false },
		{ "\r\n\r\n", true, false },
		{ ASK("/hello") "GET /", true, false },
		{ ASK("/endless"), false, false },
		{ ASK("/endless"), true, false },
		{ ASK("/later"), false, false },
		{ ASK("/later"), true, false },
		{ ASK("/later"), true, true },
		{ "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx", false, false },
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		struct ttmon_http *h = start();
		struct pollfd p = { .fd = ttmon_http_fd(h), .events = POLLIN };
		int fd = i & 1 ? dial() : dial_tcp(h->listeners[1].name);

		say(fd, cases[i / 2].say);
		turns(h, 10);
		if (cases[i / 2].half)
			shutdown(fd, SHUT_WR);
		if (cases[i / 2].gone)
			close(fd);
		/* So many turns that the buffers of the endless replies are full. */
		turns(h, 1000);
		if (poll(&p, 1, 0) || !ttmon_http_timeout_ms(h))
			fail_msg("%zu: %d ms", i, ttmon_http_timeout_ms(h));
		if (!cases[i / 2].gone)
			close(fd);
		ttmon_http_free(h);
	}
}

int main(void)
{
	struct rlimit rl;
	static const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(test_size),  T(test_slow_request), T(test_keep_alive), T(test_no_taker), T(test_rate),
		T(test_crowd), T(test_many),	     T(test_open_files), T(test_timeout),  T(test_no_spin),
	};

	/* Both ends of all connections are in this process. */
	if (!getrlimit(RLIMIT_NOFILE, &rl)) {
		rl.rlim_cur = MIN(rl.rlim_max, (rlim_t)8192);
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	return cmocka_run_group_tests_name("http_conn", tests, NULL, NULL);
}
