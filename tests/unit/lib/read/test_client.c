// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_client.c: the client's HTTP, against a server that runs in a thread of its own and against
 * something that is none.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "daemon/io/http/http.h"
#include "lib/os/log.h"

#include "lib/read/client.h"

#include <ctype.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "tests/unit/feed/torture.h"

#include "lib/read/client.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

/* ---- parsing ---- */

#define HEAD "HTTP/1.1 200 OK\r\n"

static void test_parse_good(void **state)
{
	static const struct {
		const char *raw, *body;
		int status;
	} cases[] = {
		{ HEAD "Content-Length: 5\r\n\r\nhello", "hello", 200 },
		{ HEAD "content-LENGTH:5 \r\nX: y\r\n\r\nhello, and more", "hello", 200 },
		{ HEAD "\r\nuntil the end", "until the end", 200 },
		{ HEAD "Content-Length: 0\r\n\r\n", "", 200 },
		{ "HTTP/1.0 404 Not Found\r\n\r\n{}", "{}", 404 },
		{ "HTTP/1.1 503\r\n\r\n", "", 503 },
		{ HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n \r\nA\r\n0123456789\r\n0\r\n\r\n",
		  "hello 0123456789", 200 },
		{ HEAD "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", "", 200 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ttmon_client_reply reply = { 0 };

		assert_int_equal(ttmon_client_parse(cases[i].raw, strlen(cases[i].raw), &reply), 0);
		assert_int_equal(reply.status, cases[i].status);
		assert_string_equal(reply.body, cases[i].body);
		assert_int_equal(reply.len, strlen(cases[i].body));
		ttmon_client_reply_fini(&reply);
	}
}

static void test_parse_bad(void **state)
{
	static const char *const cases[] = {
		"",
		"\r\n",
		"hello\r\n\r\n",
		"HTTP/1.1 200 OK",
		"HTTP/1.1 200 OK\n\n",
		"HTTP/1.1 20x OK\r\n\r\n",
		"HTTP/1.1 099 OK\r\n\r\n",
		"HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/2.0 200 OK\r\n\r\n",
		HEAD "Content-Length: 5\r\n",
		HEAD "Content-Length: 5\r\n\r\nhell",
		HEAD "Content-Length: -1\r\n\r\n",
		HEAD "Content-Length: \r\n\r\n",
		HEAD "Content-Length: 0x1\r\n\r\na",
		HEAD "Content-Length: 99999999999999999999999\r\n\r\n",
		HEAD "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
		HEAD "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		HEAD "Transfer-Encoding: gzip\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhell",
		HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nhello\r\n0\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\nhello\r\n0\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n-1\r\nhello\r\n0\r\n\r\n",
		HEAD "Content-Length: 18446744073709551615\r\n\r\na",
		/* An empty line that is not one, and no end of headers. */
		"\nHTTP/1.1 200 OK\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* Not NUL-terminated, so that ASan sees a read past the end. */
		size_t n = strlen(cases[i]);
		char *raw = malloc(n ? n : 1);
		struct ttmon_client_reply reply = { .status = 7 };

		memcpy(raw, cases[i], n);
		assert_int_equal(ttmon_client_parse(raw, n, &reply), -EBADMSG);
		assert_int_equal(reply.status, 7);
		assert_null(reply.body);
		free(raw);
	}
}

/* Neither a header nor a number of them without end is read to its end. */
static void test_parse_endless(void **state)
{
	size_t n = 100000;
	char *raw = malloc(n);
	struct ttmon_client_reply reply = { 0 };

	(void)state;
	memset(raw, 'x', n);
	memcpy(raw, HEAD, strlen(HEAD));
	assert_int_equal(ttmon_client_parse(raw, n, &reply), -EBADMSG);
	for (size_t i = strlen(HEAD); i + 6 <= n; i += 6)
		memcpy(raw + i, "a: b\r\n", 6);
	memcpy(raw + n - 4, "\r\n\r\n", 4);
	assert_int_equal(ttmon_client_parse(raw, n, &reply), -EBADMSG);
	free(raw);
}

static void test_parse_torture(void **state)
{
	size_t n = 300000, left;
	char *raw = malloc(n);
	struct ttmon_client_reply reply = { 0 };
	int err = -ENOMEM;

	(void)state;
	memset(raw, 'x', n);
	memcpy(raw, HEAD "\r\n", strlen(HEAD "\r\n"));
	left = n - strlen(HEAD "\r\n");
	for (long at = 0; err; at++) {
		fail_at = at;
		asked = 0;
		err = ttmon_client_parse(raw, n, &reply);
		if (err) {
			assert_int_equal(err, -ENOMEM);
			assert_null(reply.body);
		} else {
			assert_true(at >= 2);
		}
	}
	fail_at = -1;
	assert_int_equal(reply.len, left);
	ttmon_client_reply_fini(&reply);
	free(raw);
}

/* ---- requests ---- */

static void serve_control(void *ctx, struct ttmon_http_reply *reply)
{
	const char *name = ttmon_http_arg(reply, "name");

	(void)ctx;
	if (name && !strcmp(name, "bad"))
		ttmon_http_error(reply, 400, "bad name");
	else
		fprintf(reply->body, "{\"method\": %u}", reply->method);
}

#define BIG (10u << 20)

static ssize_t next_big(void *ctx, char *buf, size_t max)
{
	size_t *left = ctx, n = MIN(max, *left);

	memset(buf, 'x', n);
	*left -= n;
	return (ssize_t)n;
}

static void serve_stream(void *ctx, struct ttmon_http_reply *reply)
{
	size_t *left = malloc(sizeof(*left));

	(void)ctx;
	*left = BIG;
	ttmon_http_stream(reply, next_big, free, left);
}

static void serve_big(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	for (size_t i = 0; i < BIG; i++)
		putc_unlocked('x', reply->body);
}

static const struct ttmon_http_route routes[] = {
	{ .path = "/v1/stream", .fn = serve_stream },
	{ .path = "/v1/big", .fn = serve_big },
	{ .path = "/v1/control", .fn = serve_control, .methods = TTMON_HTTP_GET | TTMON_HTTP_PUT | TTMON_HTTP_DELETE },
};

#include "tests/unit/feed/client_server.h"

static void test_request(void **state)
{
	static const struct {
		const char *method, *body;
	} cases[] = { { "GET", "{\"method\": 1}" }, { "PUT", "{\"method\": 2}" }, { "DELETE", "{\"method\": 4}" } };
	struct ttmon_client_reply reply = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(ttmon_client_request(path, cases[i].method, "/v1/control?name=a", &reply), 0);
		assert_int_equal(reply.status, 200);
		assert_string_equal(reply.body, cases[i].body);
		ttmon_client_reply_fini(&reply);
	}
	assert_int_equal(ttmon_client_request(path, "PUT", "/v1/control?name=bad", &reply), 0);
	assert_int_equal(reply.status, 400);
	ttmon_client_reply_fini(&reply);
	assert_int_equal(ttmon_client_get(path, "/v1/control HTTP/1.1\r\nX: ", &reply), -EINVAL);
	assert_null(reply.body);
	assert_int_equal(ttmon_client_get(path, "/v1/stream", &reply), 0);
	assert_int_equal(reply.len, BIG);
	ttmon_client_reply_fini(&reply);
}

/*
 * ttmon_client_download() into a file of its own: its result; the file's size and what was said in out
 * and err_out.
 */
static off_t file_size;

static int download(const char *socket_path, const char *what, uint64_t max_bytes)
{
	int saved = dup(STDERR_FILENO), err;
	FILE *e = tmpfile(), *f = tmpfile();

	assert_true(e && f && saved >= 0);
	dup2(fileno(e), STDERR_FILENO);
	err = ttmon_client_download(socket_path, what, fileno(f), max_bytes, 5);
	dup2(saved, STDERR_FILENO);
	close(saved);
	file_size = lseek(fileno(f), 0, SEEK_END);
	read_back(f, out, sizeof(out));
	read_back(e, err_out, sizeof(err_out));
	return err;
}

static void test_download(void **state)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), saved, err;
	char want[256];
	FILE *e;

	(void)state;
	assert_int_equal(download(path, "/v1/stream", 0), 0);
	assert_int_equal(file_size, BIG);
	assert_int_equal(out[100], 'x');
	assert_int_equal(download(path, "/v1/big", BIG), 0);
	assert_int_equal(file_size, BIG);
	assert_string_equal(err_out, "");

	assert_int_equal(download(path, "/v1/stream", BIG - 1), -EFBIG);
	assert_true(file_size < BIG);
	snprintf(want, sizeof(want), "ttmon: ttmond on %s sends more than may be kept\n", path);
	assert_string_equal(err_out, want);
	/* The body of an error is not the requested document. */
	assert_int_equal(download(path, "/v1/control?name=bad", 0), -EREMOTEIO);
	assert_int_equal(file_size, 0);
	snprintf(want, sizeof(want), "ttmon: ttmond on %s answers /v1/control?name=bad with 400: bad name\n", path);
	assert_string_equal(err_out, want);
	assert_int_equal(download("/nowhere/t.sock", "/v1/big", 0), -ENOENT);
	assert_string_equal(err_out, "ttmon: no ttmond on /nowhere/t.sock: No such file or directory\n");

	e = tmpfile();
	saved = dup(STDERR_FILENO);
	assert_true(full >= 0 && e && saved >= 0);
	dup2(fileno(e), STDERR_FILENO);
	err = ttmon_client_download(path, "/v1/big", full, 0, 5);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(full);
	read_back(e, err_out, sizeof(err_out));
	assert_int_equal(err, -ENOSPC);
	assert_string_equal(err_out, "ttmon: cannot write what ttmond sends: No space left on device\n");
}

/* ---- something else than ttmond ---- */

static const char *canned; /* what it answers */
static int fake_fd;

static void *fake_main(void *arg)
{
	char buf[1000];
	int fd = accept4(fake_fd, NULL, NULL, SOCK_CLOEXEC);

	(void)arg;
	if (recv(fd, buf, sizeof(buf), 0) > 0)
		send(fd, canned, strlen(canned), MSG_NOSIGNAL);
	close(fd);
	return NULL;
}

static int download_fake(const char *answer)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char fake[96];
	pthread_t t;
	int err;

	snprintf(fake, sizeof(fake), "%s/fake.sock", dir);
	memcpy(addr.sun_path, fake, strlen(fake) + 1);
	fake_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	canned = answer;
	assert_int_equal(bind(fake_fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fake_fd, 1), 0);
	assert_int_equal(pthread_create(&t, NULL, fake_main, NULL), 0);
	err = download(fake, "/x", 0);
	pthread_join(t, NULL);
	close(fake_fd);
	unlink(fake);
	return err;
}

static void test_download_broken(void **state)
{
	static const char *const broken[] = {
		"",
		"SSH-2.0-OpenSSH_9.2\r\n",
		HEAD "Content-Length: 6\r\n\r\nhello",
		HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		/* Could be all, could be not. */
		HEAD "\r\nhello",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		assert_int_equal(download_fake(broken[i]), -EBADMSG);
		assert_non_null(strstr(err_out, "is not ttmond, or it was cut off\n"));
	}
	assert_int_equal(download_fake(HEAD "Content-Length: 5\r\n\r\nhello"), 0);
	assert_string_equal(out, "hello");
	assert_int_equal(download_fake(HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), 0);
	assert_string_equal(out, "hello");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_endless),
		cmocka_unit_test(test_parse_torture),
		cmocka_unit_test(test_parse_good),
		cmocka_unit_test(test_parse_bad),
		cmocka_unit_test_setup_teardown(test_request, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_download, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_download_broken, set_up, tear_down),
	};

	program_invocation_short_name = (char[]){ "ttmon" };
	ttmon_log_set_level(TTMON_LOG_ERROR);
	return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
