// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_http_listen.c: what the server listens on: addresses, sockets that are handed over, and what is
 * said when it cannot.
 */
#include "daemon/io/http/holder.h"
#include "tests/unit/feed/http_bench.h"

static void hello(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	fprintf(reply->body, "%d", reply->local);
}

static const struct ttmon_http_route routes[] = {
	{ "/hello", "", hello, 0, true },
};

#define ASK "GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"

/* The server's result; what it said is in said. */
static int try(const char *const *listen, size_t nr_listen, const int *fds, size_t nr_fds, struct ttmon_http **ret)
{
	const struct ttmon_http_cfg cfg = { .listen = listen,
					    .nr_listen = nr_listen,
					    .fds = fds,
					    .nr_fds = nr_fds,
					    .routes = routes,
					    .nr_routes = ARRAY_SIZE(routes) };
	int err;

	quiet();
	err = ttmon_http_new(&cfg, ret);
	loud();
	return err;
}

static void assert_one_line(void)
{
	char *nl = strchr(said, '\n');

	assert_non_null(nl);
	assert_int_equal(nl[1], 0);
}

static void test_addresses(void **state)
{
	static const char *const bad[] = {
		"",
		"9843",
		"127.0.0.1",
		"127.0.0.1:",
		"127.0.0.1:x",
		"127.0.0.1:65536",
		"host.name:1",
		"127.0.0.1:-1",
		"::1:9843",
		"[::1]9843",
		"[::1:9843",
		"[127.0.0.1]:1",
		"[::1]]:1",
		"127.0.0.1:1:1",
		"localhost6:9843",
		"127.0.0.1:000001",
		"[]:1",
		"127.0.0.256:1",
	};
	static const char *const good[] = { "127.0.0.1:0", "localhost:0", "127.1.2.3:0" };
	struct ttmon_http *h = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (try(&bad[i], 1, NULL, 0, &h) != -EINVAL)
			fail_msg("%s", bad[i]);
		assert_one_line();
		assert_has(said, bad[i]);
	}
	assert_null(h);
	assert_int_equal(try(good, ARRAY_SIZE(good), NULL, 0, &h), 0);
	assert_string_equal(said, "");
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(h->listeners[i].loopback && !h->listeners[i].local);
	assert_string_equal(body_of(talk_on(h, dial_tcp(h->listeners[0].name), ASK)), "0");
	assert_string_equal(body_of(talk_on(h, dial_tcp(h->listeners[1].name), ASK)), "0");
	ttmon_http_free(h);
}

static void test_v6(void **state)
{
	static const char *const address[] = { "[::1]:0" };
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct ttmon_http *h = NULL;
	int err = try(address, 1, NULL, 0, &h), fd;

	(void)state;
	if (err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL) {
		assert_one_line();
		skip();
	}
	assert_int_equal(err, 0);
	assert_memory_equal(h->listeners[0].name, "[::1]:", 6);
	assert_true(h->listeners[0].loopback);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	addr.sin6_port = htons((uint16_t)atoi(strrchr(h->listeners[0].name, ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_string_equal(body_of(talk_on(h, fd, ASK)), "0");
	ttmon_http_free(h);
}

/*
 * Everybody can read what is on more than the loopback: that is said, and a Host is no matter there.
 */
static void test_all_addresses(void **state)
{
	static const char *const all[] = { ":0" };
	struct ttmon_http *h = NULL;

	(void)state;
	ttmon_log_set_level(TTMON_LOG_WARN);
	assert_int_equal(try(all, 1, NULL, 0, &h), 0);
	assert_one_line();
	assert_has(said, "everybody");
	assert_status(talk_on(h, dial_tcp(h->listeners[0].name),
			      "GET /hello HTTP/1.1\r\nHost: node7.example\r\nConnection: close\r\n\r\n"),
		      200);
	ttmon_http_free(h);
}

/*
 * A server that is to be there in any case does without an address that another has, and takes it up
 * when that one is gone.
 */
static void test_had_later(void **state)
{
	const char *address[] = { "127.0.0.1:0", NULL, "127.0.0.1:0" };
	struct ttmon_http_cfg cfg = {
		.listen = address, .nr_listen = 1, .or_later = true, .routes = routes, .nr_routes = ARRAY_SIZE(routes)
	};
	struct ttmon_http *other = NULL, *h = NULL;
	char why[TTMON_HTTP_WHY] = "", name[128];

	(void)state;
	assert_int_equal(ttmon_http_new(&cfg, &other), 0);
	assert_true(ttmon_http_take_up(other, why, sizeof(why)));
	snprintf(name, sizeof(name), "%s", other->listeners[0].name);
	address[1] = name;
	cfg.nr_listen = 3;
	assert_int_equal(ttmon_http_new(&cfg, &h), 0);
	assert_int_equal(h->nr_listeners, 2);
	for (int i = 0; i < 3; i++) {
		assert_false(ttmon_http_take_up(h, why, sizeof(why)));
		assert_has(why, name);
		assert_has(why, "in use");
	}
	assert_string_equal(body_of(talk_on(h, dial_tcp(h->listeners[1].name), ASK)), "0");
	ttmon_http_free(other);
	assert_true(ttmon_http_take_up(h, why, sizeof(why)));
	assert_int_equal(h->nr_listeners, 3);
	assert_string_equal(body_of(talk_on(h, dial_tcp(name), ASK)), "0");
	ttmon_http_free(h);
	/* What is no address is no address later either. */
	address[0] = "127.0.0.1:x";
	quiet();
	assert_int_equal(ttmon_http_new(&cfg, &h), -EINVAL);
	loud();
}

/*
 * Each is taken up when it is free, whatever the others are; the socket that has it is found, and its
 * process.
 */
static void test_had_later_apart(void **state)
{
	const char *address[] = { "127.0.0.1:0", "127.0.0.1:0" };
	struct ttmon_http_cfg cfg = {
		.listen = address, .nr_listen = 1, .or_later = true, .routes = routes, .nr_routes = ARRAY_SIZE(routes)
	};
	struct ttmon_http *first = NULL, *second = NULL, *h = NULL;
	struct ttmon_helper_out out = { .fd = -1 };
	char why[TTMON_HTTP_WHY] = "", a[128], b[128];
	struct ttmon_http_holder holder = { 0 };
	uint32_t pid;

	(void)state;
	assert_int_equal(ttmon_http_new(&cfg, &first), 0);
	assert_int_equal(ttmon_http_new(&cfg, &second), 0);
	assert_false(ttmon_http_get_holder(first, &holder));
	snprintf(a, sizeof(a), "%s", first->listeners[0].name);
	snprintf(b, sizeof(b), "%s", second->listeners[0].name);
	address[0] = a;
	address[1] = b;
	cfg.nr_listen = 2;
	assert_int_equal(ttmon_http_new(&cfg, &h), 0);
	assert_int_equal(h->nr_listeners, 0);
	ttmon_http_free(second);
	assert_false(ttmon_http_take_up(h, why, sizeof(why)));
	assert_has(why, a);
	assert_string_equal(body_of(talk_on(h, dial_tcp(b), ASK)), "0");

	assert_true(ttmon_http_get_holder(h, &holder));
	assert_int_equal(holder.uid, geteuid());
	assert_int_equal(ttmon_http_holder_job(NULL, &holder, sizeof(holder), -1, &out), 0);
	assert_int_equal(out.n, sizeof(pid));
	memcpy(&pid, out.buf, sizeof(pid));
	assert_int_equal(pid, getpid());
	free(out.buf);
	ttmon_http_free(first);
	assert_false(ttmon_http_get_holder(h, &holder));
	assert_int_equal(ttmon_http_holder_job(NULL, &holder, sizeof(holder), -1, &out), -ESRCH);
	assert_int_equal(ttmon_http_holder_job(NULL, &holder, 3, -1, &out), -EINVAL);
	assert_true(ttmon_http_take_up(h, why, sizeof(why)));
	ttmon_http_free(h);
}

/* The address of one family may be that of the other too. */
static void test_holder_of_all_addresses(void **state)
{
	static const struct {
		const char *had, *wanted;
		bool overlap;
	} cases[] = {
		{ "127.0.0.1", "127.0.0.1", true }, { "0.0.0.0", "127.0.0.1", true },
		{ "127.0.0.1", "::", true },	    { "::", "127.0.0.1", true },
		{ "0.0.0.0", "::", true },	    { "127.0.0.2", "127.0.0.1", false },
		{ "::1", "127.0.0.1", false },	    { "127.0.0.1", "::ffff:127.0.0.1", true },
		{ "127.0.0.1", "::1", false },	    { "::1", "::1", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sockaddr_storage had = { 0 }, wanted = { 0 };
		struct ttmon_http_holder holder;
		socklen_t len = sizeof(had);
		char why[TTMON_HTTP_WHY], text[128];
		_cleanup_close_ int fd = -1;

		snprintf(text, sizeof(text), strchr(cases[i].had, ':') ? "[%s]:0" : "%s:0", cases[i].had);
		assert_int_equal(ttmon_http_parse(text, &had, &len, why, sizeof(why)), 0);
		fd = socket(had.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0 || bind(fd, (struct sockaddr *)&had, len) || listen(fd, 1))
			continue; /* a host without IPv6 */
		assert_int_equal(getsockname(fd, (struct sockaddr *)&had, &len), 0);
		snprintf(text, sizeof(text), strchr(cases[i].wanted, ':') ? "[%s]:%u" : "%s:%u", cases[i].wanted,
			 ntohs(((struct sockaddr_in *)&had)->sin_port));
		assert_int_equal(ttmon_http_parse(text, &wanted, &len, why, sizeof(why)), 0);
		assert_int_equal(ttmon_http_find_holder(&wanted, &holder), cases[i].overlap);
	}
}

static void test_in_use(void **state)
{
	const char *address[] = { "127.0.0.1:0", NULL };
	struct ttmon_http *h = NULL, *other = NULL;
	int before = count_fds();

	(void)state;
	assert_int_equal(try(address, 1, NULL, 0, &h), 0);
	address[1] = h->listeners[0].name;
	assert_int_equal(try(address, 2, NULL, 0, &other), -EADDRINUSE);
	assert_one_line();
	assert_has(said, address[1]);
	assert_has(said, "in use");
	assert_has(said, "--listen-address");
	/* The port can be had again at once, though connections of it are dying away. */
	talk_on(h, dial_tcp(address[1]), ASK);
	address[0] = strdup(address[1]);
	ttmon_http_free(h);
	assert_int_equal(try(address, 1, NULL, 0, &h), 0);
	ttmon_http_free(h);
	free((char *)address[0]);
	address[0] = "192.0.2.1:0";
	assert_int_equal(try(address, 1, NULL, 0, &h), -EADDRNOTAVAIL);
	assert_one_line();
	assert_has(said, "192.0.2.1:0");
	assert_int_equal(count_fds(), before);
}

static void test_too_many(void **state)
{
	const char *address[TTMON_HTTP_LISTEN_MAX + 1];
	struct ttmon_http *h = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(address); i++)
		address[i] = "127.0.0.1:0";
	assert_int_equal(try(address, ARRAY_SIZE(address), NULL, 0, &h), -E2BIG);
	assert_one_line();
	assert_int_equal(try(address, ARRAY_SIZE(address) - 1, NULL, 0, &h), 0);
	ttmon_http_free(h);
}

/* ---- handed over ---- */

static int listening(int domain)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	/* As systemd makes them: blocking. */
	int fd = socket(domain, SOCK_STREAM, 0);

	snprintf(path, sizeof(path), "%s/handed.sock", dir);
	memcpy(un.sun_path, path, strlen(path) + 1);
	assert_true(fd >= 0);
	assert_int_equal(domain == AF_UNIX ? bind(fd, (struct sockaddr *)&un, sizeof(un))
					   : bind(fd, (struct sockaddr *)&in, sizeof(in)),
			 0);
	assert_int_equal(listen(fd, 10), 0);
	return fd;
}

static void test_handed_over(void **state)
{
	struct ttmon_http *h = NULL;
	int before = count_fds(), fds[2];

	(void)state;
	fds[0] = listening(AF_INET);
	fds[1] = listening(AF_UNIX);
	assert_int_equal(try(NULL, 0, fds, 2, &h), 0);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
	assert_string_equal(body_of(talk_on(h, dial_tcp(h->listeners[0].name), ASK)), "0");
	assert_true(h->listeners[0].loopback);
	assert_string_equal(body_of(talk_on(h, dial(), ASK)), "1");
	assert_string_equal(h->socket, path);
	ttmon_http_free(h);
	/* It is systemd's: it stays. */
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(count_fds(), before);
}

static void test_handed_over_bad(void **state)
{
	int before = count_fds(), fds[3], pipes[2];
	struct ttmon_http *h = NULL;

	(void)state;
	fds[0] = listening(AF_UNIX);
	fds[1] = socket(AF_INET, SOCK_STREAM, 0);
	fds[2] = listening(AF_INET);
	assert_int_equal(try(NULL, 0, fds, 3, &h), -EINVAL);
	assert_one_line();
	assert_has(said, "no listening stream socket");
	assert_int_equal(count_fds(), before);

	fds[0] = socket(AF_UNIX, SOCK_DGRAM, 0);
	assert_int_equal(try(NULL, 0, fds, 1, &h), -EINVAL);
	assert_int_equal(pipe(pipes), 0);
	fds[0] = pipes[0];
	assert_int_equal(try(NULL, 0, fds, 1, &h), -EINVAL);
	close(pipes[1]);
	fds[0] = 999;
	assert_int_equal(try(NULL, 0, fds, 1, &h), -EBADF);
	assert_one_line();
	assert_int_equal(count_fds(), before);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(test_addresses),	 T(test_v6),
		T(test_all_addresses),	 T(test_in_use),
		T(test_addresses),	 T(test_v6),
		T(test_all_addresses),	 T(test_had_later),
		T(test_had_later_apart), T(test_holder_of_all_addresses),
		T(test_too_many),	 T(test_handed_over),
		T(test_handed_over_bad),
	};

	return cmocka_run_group_tests_name("http_listen", tests, NULL, NULL);
}
