// SPDX-License-Identifier: GPL-2.0-only
/* test_http_idle.c: streams that have no data for a while. Times are virtual. */
#include "tests/unit/feed/http_bench.h"

static struct {
	struct ttmon_http_source *source;
	const char *text; /* sent once; NULL: nothing yet */
	bool over, endless;
	unsigned int asked, done, put_off;
} feed;

static ssize_t next_text(void *ctx, char *buf, size_t max)
{
	ssize_t n;

	(void)ctx;
	feed.asked++;
	if (feed.endless) {
		memset(buf, 'x', max);
		return (ssize_t)max;
	}
	if (!feed.text)
		return feed.over ? 0 : -EAGAIN;
	n = (ssize_t)strlen(feed.text);
	memcpy(buf, feed.text, (size_t)n);
	feed.text = NULL;
	return n;
}

static void is_done(void *ctx)
{
	(void)ctx;
	feed.done++;
}

static void follow(void *ctx, struct ttmon_http_reply *reply)
{
	feed.source = ttmon_http_stream(reply, next_text, is_done, ctx);
	assert_non_null(feed.source);
}

static void hello(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	fputs("{}", reply->body);
}

static void later(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	feed.put_off += ttmon_http_defer(reply) != NULL;
}

static const struct ttmon_http_route routes[] = {
	{ .path = "/follow", .fn = follow },
	{ .path = "/hello", .fn = hello },
	{ .path = "/later", .fn = later },
};

static struct ttmon_http *start(void)
{
	memset(&feed, 0, sizeof(feed));
	return start_on(routes, ARRAY_SIZE(routes), NULL, NULL);
}

static int ask(struct ttmon_http *h)
{
	int fd = dial();

	say(fd, "GET /follow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	turns(h, 10);
	return fd;
}

static const char *heard(int fd)
{
	static char buf[65536];
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

static void tell(struct ttmon_http *h, const char *text)
{
	feed.text = text;
	ttmon_http_wake(feed.source);
	turns(h, 5);
}

static void seconds(struct ttmon_http *h, unsigned int n)
{
	while (n-- > 0) {
		clock_ns += NSEC_PER_SEC;
		turns(h, 3);
	}
}

static struct ttmon_http_stats stats_of(struct ttmon_http *h)
{
	struct ttmon_http_stats st;

	ttmon_http_get_stats(h, &st);
	return st;
}

static void test_wakes(void **state)
{
	struct ttmon_http *h = start();
	unsigned int asked;
	int fd;

	(void)state;
	feed.text = "first\n";
	fd = ask(h);
	assert_has(heard(fd), "first\n");
	asked = feed.asked;
	/*
	 * Silence for an hour: the source is not called again, the loop needs no turn for it, and the client
	 * does not count as slow.
	 */
	turns(h, 100);
	assert_int_equal(feed.asked, asked);
	assert_true(ttmon_http_timeout_ms(h) > 0);
	seconds(h, 3600);
	assert_int_equal(stats_of(h).slow, 0);
	assert_true(is_open(fd));
	tell(h, "second\n");
	assert_has(heard(fd), "second\n");
	/* Woken without data, and twice. */
	ttmon_http_wake(feed.source);
	ttmon_http_wake(feed.source);
	turns(h, 5);
	assert_true(is_open(fd));
	/* Other clients are served meanwhile. */
	assert_status(get(h, "/hello"), 200);
	feed.over = true;
	tell(h, "last\n");
	assert_has(heard(fd), "last\n");
	assert_false(is_open(fd));
	assert_int_equal(feed.done, 1);
	close(fd);
	ttmon_http_free(h);
	assert_int_equal(feed.done, 1);
}

/* Small pieces for a long time: few bytes a second are not slow if there are no more. */
static void test_trickles(void **state)
{
	struct ttmon_http *h = start();
	int fd = ask(h);

	(void)state;
	heard(fd);
	for (unsigned int i = 0; i < 200; i++) {
		seconds(h, 3);
		tell(h, "alive\n");
		assert_has(heard(fd), "alive\n");
	}
	assert_int_equal(stats_of(h).slow, 0);
	close(fd);
	ttmon_http_free(h);
	assert_int_equal(feed.done, 1);
}

/* A client that does not take the available data is cut off as usual. */
static void test_no_taker(void **state)
{
	struct ttmon_http *h = start();
	int fd = ask(h);

	(void)state;
	seconds(h, 30);
	feed.endless = true;
	tell(h, NULL);
	seconds(h, 9);
	assert_int_equal(stats_of(h).slow, 0);
	seconds(h, 3);
	assert_int_equal(stats_of(h).slow, 1);
	assert_int_equal(feed.done, 1);
	close(fd);
	ttmon_http_free(h);
}

static void test_client_goes(void **state)
{
	struct ttmon_http *h = start();
	int fd = ask(h);

	(void)state;
	close(fd);
	turns(h, 5);
	/* This is not noticed until something is sent. */
	assert_int_equal(stats_of(h).open, 1);
	for (unsigned int i = 0; i < 3 && !feed.done; i++)
		tell(h, "alive\n");
	assert_int_equal(feed.done, 1);
	assert_int_equal(stats_of(h).open, 0);
	ttmon_http_free(h);
}

/* The server ends while they wait: a whole reply. */
static void test_server_ends(void **state)
{
	struct ttmon_http *h = start();
	int fd;

	(void)state;
	feed.text = "text\n";
	fd = ask(h);
	ttmon_http_free(h);
	assert_int_equal(feed.done, 1);
	assert_has(heard(fd), "text\n\r\n0\r\n\r\n");
	close(fd);
	/* Woken, but not called yet. */
	h = start();
	fd = ask(h);
	feed.text = "text\n";
	ttmon_http_wake(feed.source);
	ttmon_http_free(h);
	assert_int_equal(feed.done, 1);
	close(fd);
}

/*
 * A request that was sent behind a stream that ends with the server is not begun: its reply could not
 * be completed.
 */
static void test_pipelined_at_the_end(void **state)
{
	struct ttmon_http *h = start();
	int fd = dial();

	(void)state;
	say(fd, "GET /follow HTTP/1.1\r\nHost: x\r\n\r\nGET /later HTTP/1.1\r\nHost: x\r\n\r\n");
	turns(h, 10);
	ttmon_http_free(h);
	assert_int_equal(feed.done, 1);
	assert_int_equal(feed.put_off, 0);
	close(fd);
}

/* Clients that only listen are closed last when there is no room. */
static void test_crowd(void **state)
{
	struct ttmon_http *h = start();
	int fds[4], other;

	(void)state;
	h->listeners[0].limit = 4;
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = ask(h);
		heard(fds[i]);
		clock_ns += NSEC_PER_MS;
	}
	other = dial();
	turns(h, 5);
	assert_int_equal(stats_of(h).crowded, 1);
	assert_int_equal(feed.done, 1);
	assert_false(is_open(fds[0]));
	assert_true(is_open(fds[1]) && is_open(other));
	/* And then the one that was admitted. */
	assert_status(get(h, "/hello"), 200);
	assert_int_equal(stats_of(h).crowded, 2);
	assert_false(is_open(other));
	assert_true(is_open(fds[1]) && is_open(fds[2]) && is_open(fds[3]));
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	close(other);
	ttmon_http_free(h);
	assert_int_equal(feed.done, 4);
}

static void test_head(void **state)
{
	struct ttmon_http *h = start();

	(void)state;
	assert_status(talk(h, "HEAD /follow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 200);
	assert_int_equal(feed.asked, 0);
	assert_int_equal(feed.done, 1);
	ttmon_http_free(h);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = { T(test_wakes),
					    T(test_trickles),
					    T(test_no_taker),
					    T(test_client_goes),
					    T(test_server_ends),
					    T(test_crowd),
					    T(test_pipelined_at_the_end),
					    T(test_head) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
