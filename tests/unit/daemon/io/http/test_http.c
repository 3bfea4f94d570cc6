// SPDX-License-Identifier: GPL-2.0-only
/* test_http.c: requests: which handler gets which one, and which ones are refused. */
#include "tests/unit/feed/http_bench.h"

static int ctx_value = 42;

/* ---- routes ---- */

static void hello(void *ctx, struct ttmon_http_reply *reply)
{
	const char *name = ttmon_http_arg(reply, "name");

	fprintf(reply->body, "{\"hello\": \"%s\", \"ctx\": %d}", name ? name : "nobody", *(int *)ctx);
}

static void peer(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	fprintf(reply->body, "%d %d %d %d", reply->local, (int)reply->uid, (int)reply->gid, (int)reply->pid);
	reply->content_type = TTMON_HTTP_TEXT;
}

static void broken(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	fprintf(reply->body, "%1000d", 1);
	ttmon_http_error(reply, 503, "not \"%s\"", "ready");
}

static void text(void *ctx, struct ttmon_http_reply *reply)
{
	const char *n = ttmon_http_arg(reply, "n");

	(void)ctx;
	for (int i = n ? atoi(n) : 0; i > 0; i--)
		fputc('x', reply->body);
}

static void control(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	fprintf(reply->body, "%u", reply->method);
}

static void item(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	fprintf(reply->body, "<%s>", reply->rest);
}

static const struct ttmon_http_route routes[] = {
	{ "/v1/hello", "says hello", hello, 0, true },
	{ "/v1/peer", "who asks", peer, 0, true },
	{ "/v1/broken", "never works", broken, 0, false },
	{ "/v1/local", "not for everybody", text, 0, false },
	{ "/v1/text", "so many <x> & \"y\"", text, 0, false },
	{ "/v1/control", "can be set", control, TTMON_HTTP_GET | TTMON_HTTP_PUT | TTMON_HTTP_DELETE, false },
	{ "/v1/only-put", "can only be set", control, TTMON_HTTP_PUT, false },
	{ "/v1/items/", "one of them", item, 0, false },
};

static struct ttmon_http *start_tcp(const char *tcp)
{
	return start_on(routes, ARRAY_SIZE(routes), &ctx_value, tcp);
}

static struct ttmon_http *start(void)
{
	return start_tcp(NULL);
}

/* ---- which handler ---- */

static void test_routes(void **state)
{
	struct ttmon_http *h = start();
	const char *answer;

	(void)state;
	answer = get(h, "/v1/hello");
	assert_status(answer, 200);
	assert_has(answer, "Content-Type: application/json\r\n");
	assert_has(answer, "Cache-Control: no-store\r\n");
	assert_has(answer, "X-Content-Type-Options: nosniff\r\n");
	assert_string_equal(body_of(answer), "{\"hello\": \"nobody\", \"ctx\": 42}");
	assert_string_equal(body_of(get(h, "/v1/hello?x=1&name=a%62c")), "{\"hello\": \"abc\", \"ctx\": 42}");
	assert_string_equal(body_of(get(h, "/v1/hello?name")), "{\"hello\": \"\", \"ctx\": 42}");
	assert_string_equal(body_of(get(h, "/v1/hello?name=1%002")), "{\"hello\": \"1%002\", \"ctx\": 42}");

	answer = get(h, "/v1/broken");
	assert_status(answer, 503);
	assert_string_equal(body_of(answer), "{\"error\": \"not \\\"ready\\\"\"}\n");

	answer = get(h, "/v1/nothing");
	assert_status(answer, 404);
	assert_string_equal(body_of(answer), "{\"error\": \"no such path, / lists them\"}\n");
	assert_status(get(h, "/v1/hello/"), 404);
	assert_status(get(h, "/v1/hello%00"), 404);
	assert_status(get(h, "http://x/v1/hello"), 404);
	ttmon_http_free(h);
}

static void test_rest(void **state)
{
	struct ttmon_http *h = start();

	(void)state;
	assert_string_equal(body_of(get(h, "/v1/items/a7")), "<a7>");
	assert_string_equal(body_of(get(h, "/v1/items/a%20%3c?x=1")), "<a <>");
	assert_status(get(h, "/v1/items/"), 404);
	assert_status(get(h, "/v1/items"), 404);
	assert_status(get(h, "/v1/items/a/b"), 404);
	assert_status(get(h, "/v1/items/a%2Fb"), 404);
	assert_status(get(h, "/v1/items/a%00b"), 200);
	assert_string_equal(body_of(get(h, "/v1/items/a%00b")), "<a%00b>");
	ttmon_http_free(h);
}

static void test_index(void **state)
{
	struct ttmon_http *h = start_tcp("127.0.0.1:0");
	const char *answer;

	(void)state;
	answer = get(h, "/");
	assert_status(answer, 200);
	assert_has(answer, "Content-Type: text/plain; charset=utf-8\r\n");
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		assert_has(body_of(answer), routes[i].path);
		assert_has(body_of(answer), routes[i].help);
	}
	answer = talk(h, "GET / HTTP/1.1\r\nHost: x\r\nAccept: image/png,Text/HTML;q=0.9\r\nConnection: close\r\n\r\n");
	assert_has(answer, "Content-Type: text/html; charset=utf-8\r\n");
	assert_has(answer, "<a href=\"/v1/hello\">/v1/hello</a></td><td>says hello</td>");
	assert_has(answer, "so many &lt;x&gt; &amp; &quot;y&quot;");
	assert_has(answer, "<td>/v1/items/ID</td>");
	/* On TCP only the pages for TCP are served, and the answer says where the others are. */
	answer = talk_on(h, dial_tcp(h->listeners[1].name),
			 "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/html\r\nConnection: close\r\n\r\n");
	assert_has(answer, "/v1/hello");
	assert_null(strstr(answer, "/v1/local"));
	assert_has(answer, path);
	answer = talk_on(h, dial_tcp(h->listeners[1].name), "GET / HTTP/1.0\r\n\r\n");
	assert_has(answer, "/v1/hello");
	assert_null(strstr(answer, "/v1/local"));
	assert_has(answer, path);
	ttmon_http_free(h);
}

static void test_methods(void **state)
{
	struct ttmon_http *h = start();
	const char *answer;

	(void)state;
	answer = talk(h, "HEAD /v1/hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	assert_status(answer, 200);
	assert_has(answer, "Content-Length: 30\r\n");
	assert_string_equal(body_of(answer), "");
	answer = talk(h, "POST /v1/hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	assert_status(answer, 405);
	assert_has(answer, "Allow: GET, HEAD\r\n");
	assert_status(talk(h, "DELETE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 405);
	assert_status(talk(h, "get /v1/hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 405);
	answer = talk(h, "POST /v1/control HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	assert_has(answer, "Allow: GET, HEAD, PUT, DELETE\r\n");
	assert_has(talk(h, "GET /v1/only-put HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), "Allow: PUT\r\n");
	assert_string_equal(body_of(get(h, "/v1/control")), "1");
	answer = talk(h, "PUT /v1/control?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	assert_string_equal(body_of(answer), "2");
	answer = talk(h, "DELETE /v1/control HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	assert_string_equal(body_of(answer), "4");
	ttmon_http_free(h);
}

/*
 * Bodies are refused at once and end the connection: bytes behind them are not taken for a request.
 */
static void test_bodies(void **state)
{
	static const char *const cases[] = {
		"GET /v1/hello HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nxxx",
		"PUT /v1/control HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nxxx",
		"PUT /v1/control HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
		"GET /v1/hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	};
	struct ttmon_http *h = start();
	struct ttmon_http_stats st;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *answer = talk(h, cases[i]);

		assert_status(answer, 413);
		assert_string_equal(body_of(answer), "{\"error\": \"requests have no body here\"}\n");
	}
	assert_status(talk(h, "POST /v1/hello HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nxxx"), 405);
	assert_status(talk(h, "PUT /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nxxx"), 404);
	ttmon_http_get_stats(h, &st);
	assert_int_equal(st.requests, ARRAY_SIZE(cases) + 2);
	assert_int_equal(st.errors, st.requests);
	ttmon_http_free(h);
}

/*
 * A request that gives its length in two ways is refused and ends the connection: bytes behind it are
 * not taken for a request. From 1.0 on libmicrohttpd, when it is strict, refuses it before it calls
 * the server (RFC 9112, section 6.1).
 */
static void test_two_lengths(void **state)
{
	struct ttmon_http *h = start();
	const char *answer =
		talk(h, "GET /v1/hello HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
			"0\r\n\r\nGET /v1/peer HTTP/1.1\r\nHost: x\r\n\r\n");
	struct ttmon_http_stats st;

	(void)state;
	assert_null(strstr(answer + 1, "HTTP/1.1 "));
	ttmon_http_get_stats(h, &st);
	if (MHD_VERSION >= 0x01000000) {
		assert_status(answer, 400);
		assert_int_equal(st.requests, 0);
	} else {
		assert_status(answer, 400);
		assert_string_equal(body_of(answer), "{\"error\": \"several lengths, or several hosts\"}\n");
		assert_int_equal(st.requests, 1);
	}
	assert_int_equal(st.errors, st.requests);
	/* Two lengths that differ, and two hosts. */
	answer = talk(h, "GET /v1/hello HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 36\r\n\r\n"
			 "GET /v1/peer HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_status(answer, 400);
	assert_null(strstr(answer + 1, "HTTP/1.1 "));
	answer = talk(h, "GET /v1/hello HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n");
	assert_status(answer, 400);
	assert_has(answer, "Connection: close");
	ttmon_http_free(h);
}

/*
 * Whatever is sent, there is an HTTP answer or the connection ends, and the server continues to serve.
 */
static void test_garbage(void **state)
{
	static const char *const cases[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"GET /\r\n\r\n",
		"\r\n\r\n\r\n",
		"GET / HTTP/3.0\r\nHost: x\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello TLS\r\n\r\n",
		"GET  / HTTP/1.1\r\nHost\r\n\r\n",
		"GET / HTTP/1.1\nHost: x\nConnection: close\n\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
		"GET /?%zz&&=&a=%&%00 HTTP/1.0\r\n: \r\n\r\n",
	};
	struct ttmon_http *h = start();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static char buf[65536];
		int fd = dial();

		say(fd, cases[i]);
		shutdown(fd, SHUT_WR);
		/*
		 * libmicrohttpd does not notice an end that comes with an empty line, but the time limit applies.
		 */
		turns(h, 20);
		clock_ns += TTMON_HTTP_REQUEST_S * NSEC_PER_SEC;
		if (read_all(h, fd, buf, sizeof(buf)) < 0)
			fail_msg("%s", cases[i]);
		close(fd);
		if (buf[0])
			assert_memory_equal(buf, "HTTP/1.", 7);
		assert_status(get(h, "/v1/hello"), 200);
	}
	ttmon_http_free(h);
}

static void test_peer(void **state)
{
	struct ttmon_http *h = start_tcp("127.0.0.1:0");
	const char *answer;
	char want[64];

	(void)state;
	snprintf(want, sizeof(want), "1 %d %d %d", (int)geteuid(), (int)getegid(), (int)getpid());
	assert_string_equal(body_of(get(h, "/v1/peer")), want);
	answer = talk_on(h, dial_tcp(h->listeners[1].name), "GET /v1/peer HTTP/1.0\r\n\r\n");
	assert_string_equal(body_of(answer), "0 -1 -1 0");
	ttmon_http_free(h);
}

static void test_everybody(void **state)
{
	static const struct {
		const char *host;
		int status;
	} hosts[] = {
		{ "127.0.0.1", 200 },	     { "127.0.0.1:9843", 200 },
		{ "localhost", 200 },	     { "LocalHost:1", 200 },
		{ "[::1]:9843", 200 },	     { "[::1]", 200 },
		{ "10.1.2.3", 200 },	     { "", 200 },
		{ "evil.example", 403 },     { "evil.example:9843", 403 },
		{ "127.0.0.1.x", 403 },	     { "[localhost]", 403 },
		{ "localhost.evil", 403 },   { "::1", 403 },
		{ "[::1]evil", 403 },	     { "[::1", 403 },
		{ "[::1]:9843x", 403 },	     { "127.0.0.1:evil", 403 },
		{ "localhost:1.evil", 403 },
	};
	struct ttmon_http *h = start_tcp("127.0.0.1:0");
	const char *answer, *name = h->listeners[1].name;
	char request[256];

	(void)state;
	answer = talk_on(h, dial_tcp(name), "GET /v1/broken HTTP/1.0\r\n\r\n");
	assert_status(answer, 403);
	assert_has(answer, path);
	assert_status(talk_on(h, dial_tcp(name), "PUT /v1/control HTTP/1.0\r\n\r\n"), 403);
	assert_status(talk_on(h, dial_tcp(name), "GET /v1/nothing HTTP/1.0\r\n\r\n"), 404);
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		snprintf(request, sizeof(request), "GET /v1/hello HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
			 hosts[i].host);
		assert_status(talk_on(h, dial_tcp(name), request), hosts[i].status);
	}
	ttmon_http_free(h);
}

/* Two requests on one connection, and one that comes in pieces. */
static void test_keep_alive(void **state)
{
	static const char first[] = "GET /v1/hello?name=a HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/hel";
	static const char rest[] = "lo?name=b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	struct ttmon_http *h = start();
	static char buf[65536];
	int fd = dial();

	(void)state;
	say(fd, first);
	turns(h, 20);
	say(fd, rest);
	assert_true(read_all(h, fd, buf, sizeof(buf)) > 0);
	assert_has(buf, "\"hello\": \"a\"");
	assert_has(buf, "\"hello\": \"b\"");
	close(fd);
	ttmon_http_free(h);
}

/* Nothing is left: no descriptor, no file. */
static void test_nothing_left(void **state)
{
	int before = count_fds();
	struct ttmon_http *h = start_tcp("127.0.0.1:0");
	int fd = dial();

	(void)state;
	turn(h, 0);
	ttmon_http_free(h);
	close(fd);
	assert_int_equal(count_fds(), before);
	assert_int_equal(access(path, F_OK), -1);
	ttmon_http_free(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(test_routes),	   T(test_rest),	T(test_index),	      T(test_methods),
		T(test_bodies),	   T(test_two_lengths), T(test_garbage),      T(test_peer),
		T(test_everybody), T(test_keep_alive),	T(test_nothing_left),
	};

	return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
