// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_http_torture.c: no memory, at each allocation in turn: a request gets its reply, an error or
 * the end of its connection, nothing is lost, and the next one is served.
 */
#include "tests/unit/feed/http_bench.h"

#include <ctype.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include <linux/sockios.h>

#include "tests/unit/feed/torture.h"

#include "daemon/io/http/conn.c"
#include "daemon/io/http/reply.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

static unsigned int begun, ended;
static struct ttmon_http_later *waiting;

static void text(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	for (int i = 0; i < 5000; i++)
		fputc('x', reply->body);
}

static ssize_t next_block(void *ctx, char *buf, size_t max)
{
	int *left = ctx;

	memset(buf, 'x', max);
	return *left ? (--*left, (ssize_t)max) : 0;
}

static void count_end(void *ctx)
{
	(void)ctx;
	ended++;
}

static void stream(void *ctx, struct ttmon_http_reply *reply)
{
	static int left;

	(void)ctx;
	left = 3;
	begun++;
	ttmon_http_stream(reply, next_block, count_end, &left);
}

static void later(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	waiting = ttmon_http_defer(reply);
}

static const struct ttmon_http_route routes[] = {
	{ .path = "/text", .fn = text },
	{ .path = "/stream", .fn = stream },
	{ .path = "/later", .fn = later },
};

/* One request while an allocation fails; its status, 0: the connection ended. */
static int ask(struct ttmon_http *h, const char *what, bool file)
{
	static char buf[1 << 20];
	int fd = dial(), status = 0;
	char request[200];

	snprintf(request, sizeof(request),
		 "GET %s HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n", what);
	(void)!send(fd, request, strlen(request), MSG_NOSIGNAL);
	turns(h, 10);
	if (waiting && file)
		ttmon_http_later_file(TAKE_PTR(waiting), open("/proc/self/exe", O_RDONLY | O_CLOEXEC), TTMON_HTTP_TEXT);
	else if (waiting)
		ttmon_http_later_error(TAKE_PTR(waiting), 503, "no");
	if (read_all(h, fd, buf, sizeof(buf)) > 0)
		assert_int_equal(sscanf(buf, "HTTP/1.1 %d ", &status), 1);
	close(fd);
	return status;
}

static void torture(struct ttmon_http *h, const char *what, bool file, int wanted)
{
	int fds = count_fds(), status;
	long at = 0;

	do {
		fail_at = at;
		fail_on = false;
		asked = 0;
		status = ask(h, what, file);
		fail_at = -1;
		if (status && status != 500)
			assert_int_equal(status, wanted);
		turns(h, 5);
		assert_int_equal(h->stats.open, 0);
		assert_int_equal(count_fds(), fds);
	} while (at++ < asked);
	assert_true(at > 2);
	assert_int_equal(status, wanted);
	assert_int_equal(begun, ended);
}

static void test_torture(void **state)
{
	struct ttmon_http *h = start_on(routes, ARRAY_SIZE(routes), NULL, NULL);
	int fd;

	(void)state;
	/* Without memory to watch it a connection must not stay, though it says nothing. */
	fail_at = asked = 0;
	fd = dial();
	turns(h, 5);
	fail_at = -1;
	assert_false(is_open(fd));
	close(fd);
	torture(h, "/text", false, 200);
	torture(h, "/stream", false, 200);
	assert_true(begun >= 3);
	torture(h, "/later", false, 503);
	torture(h, "/later", true, 200);
	torture(h, "/nothing", false, 404);
	ttmon_http_free(h);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_torture, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("http_torture", tests, NULL, NULL);
}
