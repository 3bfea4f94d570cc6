// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_http_reply.c: replies: memory, compressed or not, streams, files that come later; to clients
 * that stay and to others.
 */
#include "tests/unit/feed/http_bench.h"

#include <zlib.h>

#define BIG (8u << 20)

static int ctx_value = 42;
static unsigned int done_calls;
static long stream_blocks; /* how many the stream gives; -1: without end */
static bool stream_fails;
static struct ttmon_http_later *waiting;

static void hello(void *ctx, struct ttmon_http_reply *reply)
{
	const char *name = ttmon_http_arg(reply, "name");

	fprintf(reply->body, "{\"hello\": \"%s\", \"ctx\": %d}", name ? name : "nobody", *(int *)ctx);
}

static void big(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	for (unsigned int i = 0; i < BIG / 8; i++)
		fprintf(reply->body, "%07x\n", i);
}

static void text(void *ctx, struct ttmon_http_reply *reply)
{
	const char *n = ttmon_http_arg(reply, "n");

	(void)ctx;
	for (int i = n ? atoi(n) : 0; i > 0; i--)
		fputc('x', reply->body);
}

static ssize_t next_block(void *ctx, char *buf, size_t max)
{
	assert_int_equal(*(int *)ctx, 42);
	assert_true(max >= 32768);
	if (!stream_blocks)
		return stream_fails ? -EIO : 0;
	stream_blocks -= stream_blocks > 0;
	memset(buf, 'a' + (int)(stream_blocks % 26), 32768);
	return 32768;
}

static void count_done(void *ctx)
{
	assert_int_equal(*(int *)ctx, 42);
	done_calls++;
}

static void stream(void *ctx, struct ttmon_http_reply *reply)
{
	reply->content_type = TTMON_HTTP_JSONL;
	ttmon_http_stream(reply, next_block, count_done, ctx);
	if (ttmon_http_arg(reply, "change"))
		ttmon_http_error(reply, 404, "after all not");
}

static void later(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	waiting = ttmon_http_defer(reply);
}

static const struct ttmon_http_route routes[] = {
	{ .path = "/v1/hello", .fn = hello }, { .path = "/v1/big", .fn = big },
	{ .path = "/v1/text", .fn = text },   { .path = "/v1/stream", .fn = stream },
	{ .path = "/v1/later", .fn = later },
};

static struct ttmon_http *start(void)
{
	done_calls = 0;
	stream_blocks = 0;
	stream_fails = false;
	waiting = NULL;
	return start_on(routes, ARRAY_SIZE(routes), &ctx_value, NULL);
}

/* A long reply whole; then one whose reader goes away: SIGPIPE would end this test. */
static void test_big_and_gone(void **state)
{
	static const char request[] = "GET /v1/big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	struct ttmon_http *h = start();
	char *buf = malloc(BIG + 4096);
	struct ttmon_http_stats st;
	ssize_t n;
	int fd;

	(void)state;
	assert_non_null(buf);
	fd = dial();
	say(fd, request);
	n = read_all(h, fd, buf, BIG + 4096);
	assert_true(n > (ssize_t)BIG);
	assert_int_equal(strlen(body_of(buf)), BIG);
	assert_string_equal(buf + n - 8, "00fffff\n");
	close(fd);
	ttmon_http_get_stats(h, &st);
	assert_int_equal(st.bytes, BIG);

	fd = dial();
	say(fd, request);
	turns(h, 10);
	assert_true(recv(fd, buf, 100, 0) > 0);
	close(fd);
	turns(h, 10);
	assert_status(get(h, "/v1/hello"), 200);
	ttmon_http_get_stats(h, &st);
	assert_int_equal(st.open, 0);
	free(buf);
	ttmon_http_free(h);
}

static void test_accept_encoding(void **state)
{
	static const struct {
		const char *header;
		bool gzip;
	} cases[] = {
		{ NULL, false },
		{ "", false },
		{ "gzip", true },
		{ "GZIP", true },
		{ "x-gzip", true },
		{ "deflate, gzip", true },
		{ "deflate , gzip ;q=1.0, *;q=0.5", true },
		{ "gzip;q=0.001", true },
		{ "gzip; q=0", false },
		{ "gzip;Q=0.000", false },
		{ "gzip;q=0, *", false },
		{ "*", true },
		{ "*;q=0", false },
		{ "*, gzip;q=0", false },
		{ "identity", false },
		{ "gzipped", false },
		{ "gzi", false },
		{ "br;q=1,,;", false },
		{ "identity;q=0.5, gzip;q=1.0, *;q=0", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (ttmon_http_wants_gzip(cases[i].header) != cases[i].gzip)
			fail_msg("%s", cases[i].header);
}

static size_t gunzip(const char *in, size_t n, char *out, size_t room)
{
	z_stream z = { .next_in = (unsigned char *)in, .avail_in = (unsigned int)n };

	z.next_out = (unsigned char *)out;
	z.avail_out = (unsigned int)room;
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	inflateEnd(&z);
	return z.total_out;
}

static void test_gzip(void **state)
{
	static const char head[] = "HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n";
	struct ttmon_http *h = start();
	static char out[20000];
	char request[256];
	const char *answer;

	(void)state;
	snprintf(request, sizeof(request), "GET /v1/text?n=10000 %s", head);
	answer = talk(h, request);
	assert_has(answer, "Content-Encoding: gzip\r\n");
	assert_has(answer, "Vary: Accept-Encoding\r\n");
	answer = body_of(answer);
	assert_int_equal(gunzip(answer, 200, out, sizeof(out)), 10000);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(out[i], 'x');
	/* Small ones are not worth it. */
	snprintf(request, sizeof(request), "GET /v1/text?n=1024 %s", head);
	answer = talk(h, request);
	assert_null(strstr(answer, "Content-Encoding"));
	assert_int_equal(strlen(body_of(answer)), 1024);
	answer = get(h, "/v1/text?n=1025");
	assert_null(strstr(answer, "Content-Encoding"));
	assert_has(answer, "Vary: Accept-Encoding\r\n");
	assert_status(get(h, "/v1/text"), 200);
	stream_blocks = 1;
	snprintf(request, sizeof(request), "GET /v1/stream %s", head);
	assert_null(strstr(talk(h, request), "Content-Encoding"));
	ttmon_http_free(h);
}

/* ---- streams ---- */

static void test_stream(void **state)
{
	struct ttmon_http *h = start();
	const char *answer;

	(void)state;
	stream_blocks = 10;
	answer = talk(h, "GET /v1/stream HTTP/1.0\r\n\r\n");
	assert_has(answer, "Content-Type: application/jsonl\r\n");
	assert_int_equal(strlen(body_of(answer)), 10 * 32768);
	assert_int_equal(done_calls, 1);

	stream_blocks = 10;
	answer = get(h, "/v1/stream");
	assert_has(answer, "Transfer-Encoding: chunked\r\n");
	assert_true(strlen(body_of(answer)) > 10 * 32768);
	assert_string_equal(answer + strlen(answer) - 7, "\r\n0\r\n\r\n");
	assert_int_equal(done_calls, 2);

	/* One that breaks off is seen to be incomplete. */
	stream_blocks = 3;
	stream_fails = true;
	answer = get(h, "/v1/stream");
	assert_status(answer, 200);
	assert_true(strlen(answer) > 3 * 32768);
	assert_string_not_equal(answer + strlen(answer) - 5, "0\r\n\r\n");
	assert_int_equal(done_calls, 3);

	answer = talk(h, "HEAD /v1/stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	assert_status(answer, 200);
	assert_string_equal(body_of(answer), "");
	assert_int_equal(done_calls, 4);

	answer = get(h, "/v1/stream?change");
	assert_status(answer, 404);
	assert_string_equal(body_of(answer), "{\"error\": \"after all not\"}\n");
	assert_int_equal(done_calls, 5);
	ttmon_http_free(h);
}

static void test_stream_gone(void **state)
{
	struct ttmon_http *h = start();
	int fd = dial();
	char buf[100];

	(void)state;
	stream_blocks = -1;
	say(fd, "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n");
	turns(h, 10);
	assert_true(recv(fd, buf, sizeof(buf), 0) > 0);
	assert_int_equal(done_calls, 0);
	close(fd);
	turns(h, 10);
	assert_int_equal(done_calls, 1);
	/* Another is still there when the server ends. */
	fd = dial();
	say(fd, "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n");
	turns(h, 10);
	ttmon_http_free(h);
	assert_int_equal(done_calls, 2);
	close(fd);
}

/* ---- later ---- */

static int make_file(size_t n)
{
	char name[] = "/tmp/ttmon-test-http.XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(ftruncate(fd, (off_t)n), 0);
	assert_int_equal(pwrite(fd, "begin", 5, 0), 5);
	assert_int_equal(pwrite(fd, "end", 3, (off_t)n - 3), 3);
	/* It is sent from its start, wherever the offset is. */
	assert_int_equal(lseek(fd, 7, SEEK_SET), 7);
	return fd;
}

static int ask_later(struct ttmon_http *h)
{
	int fd = dial();

	waiting = NULL;
	say(fd, "GET /v1/later HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	turns(h, 5);
	assert_non_null(waiting);
	assert_true(is_open(fd));
	return fd;
}

static void test_later(void **state)
{
	struct ttmon_http *h = start();
	static char buf[1 << 20];
	int before = count_fds(), fd, cut;
	ssize_t n;

	(void)state;
	fd = ask_later(h);
	/* The others are served meanwhile, and the time of waiting is not the client's. */
	clock_ns += 1000 * NSEC_PER_SEC;
	assert_status(get(h, "/v1/hello"), 200);
	assert_true(is_open(fd));
	ttmon_http_later_file(waiting, make_file(300000), TTMON_HTTP_TEXT);
	n = read_all(h, fd, buf, sizeof(buf));
	assert_status(buf, 200);
	assert_has(buf, "Content-Length: 300000\r\n");
	assert_has(buf, "Content-Type: text/plain");
	assert_memory_equal(body_of(buf), "begin", 5);
	assert_memory_equal(buf + n - 3, "end", 3);
	assert_int_equal(n, body_of(buf) - buf + 300000);
	close(fd);

	fd = ask_later(h);
	ttmon_http_later_error(waiting, 503, "it \"failed\"");
	/* Not when the next thing happens: now. */
	assert_int_equal(ttmon_http_timeout_ms(h), 0);
	assert_true(read_all(h, fd, buf, sizeof(buf)) > 0);
	assert_status(buf, 503);
	assert_string_equal(body_of(buf), "{\"error\": \"it \\\"failed\\\"\"}\n");
	close(fd);

	/* A file that gets shorter on the way. */
	fd = ask_later(h);
	cut = make_file(1 << 20);
	ttmon_http_later_file(waiting, dup(cut), TTMON_HTTP_TEXT);
	turns(h, 3);
	assert_int_equal(ftruncate(cut, 0), 0);
	close(cut);
	n = read_all(h, fd, buf, sizeof(buf));
	assert_true(n > 0 && n < 1 << 20);
	close(fd);
	assert_int_equal(count_fds(), before);
	ttmon_http_free(h);
}

static void test_later_gone(void **state)
{
	struct ttmon_http *h = start();
	int before = count_fds(), fd;

	(void)state;
	fd = ask_later(h);
	close(fd);
	turns(h, 5);
	ttmon_http_later_file(waiting, make_file(300000), TTMON_HTTP_TEXT);
	turns(h, 5);
	fd = ask_later(h);
	close(fd);
	ttmon_http_later_error(waiting, 503, "x");
	turns(h, 5);
	assert_int_equal(h->stats.open, 0);
	assert_int_equal(count_fds(), before);
	/* Some are not answered when the server ends, one is but did not run again. */
	fd = ask_later(h);
	ttmon_http_later_file(waiting, make_file(10), TTMON_HTTP_TEXT);
	close(fd);
	fd = ask_later(h);
	close(fd);
	fd = ask_later(h);
	ttmon_http_free(h);
	close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(test_big_and_gone), T(test_accept_encoding), T(test_gzip),	   T(test_stream),
		T(test_stream_gone),  T(test_later),	       T(test_later_gone),
	};

	return cmocka_run_group_tests_name("http_reply", tests, NULL, NULL);
}
