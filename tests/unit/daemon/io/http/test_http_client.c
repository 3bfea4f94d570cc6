// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_http_client.c: how clients are identified, and that a client with too many requests costs the
 * others nothing.
 */
#include "tests/unit/feed/http_bench.h"

#define GET_HELLO "GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

static void hello(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	fputs("hello", reply->body);
}

static const struct ttmon_http_route routes[] = {
	{ .path = "/hello", .help = "", .fn = hello, .everybody = true },
};

static struct ttmon_http *start(void)
{
	return start_on(routes, ARRAY_SIZE(routes), NULL, "127.0.0.1:0");
}

/*
 * The kernel is not queried for the owner of a connection: then addresses of this host identify
 * clients, and root has no privilege.
 */
static struct ttmon_http *start_by_address(void)
{
	struct ttmon_http *h = start();

	close(h->diag_fd);
	h->diag_fd = -1;
	return h;
}

/* Connects from 127.0.0.N. */
static int dial_from(const struct ttmon_http *h, unsigned int n)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000 + n) };
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_port = htons((uint16_t)atoi(strrchr(h->listeners[1].name, ':') + 1));
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

/* How many answers have come; *limited: of these with status 429. */
static unsigned int answers(struct ttmon_http *h, int fd, unsigned int *limited)
{
	unsigned int n = 0;
	char buf[65536];
	ssize_t got;

	turns(h, 20);
	while ((got = recv(fd, buf, sizeof(buf) - 1, 0)) > 0) {
		buf[got] = '\0';
		for (const char *p = buf; (p = strstr(p, "HTTP/1.1 ")); p++, n++)
			*limited += !strncmp(p, "HTTP/1.1 429", 12);
	}
	return n;
}

static unsigned int ask(struct ttmon_http *h, int fd, unsigned int *limited)
{
	say(fd, GET_HELLO);
	return answers(h, fd, limited);
}

static void a_burst_then_a_rate(void **state)
{
	struct ttmon_http *h = start_by_address();
	int fd = dial_from(h, 1), other = dial_from(h, 2);
	unsigned int limited = 0, n = 0;
	struct ttmon_http_stats st;

	(void)state;
	for (unsigned int i = 0; i < TTMON_HTTP_BURST; i++)
		n += ask(h, fd, &limited);
	assert_int_equal(n, TTMON_HTTP_BURST);
	/*
	 * The next request waits for its turn; one of another client does not, nor does one on the Unix
	 * socket.
	 */
	assert_int_equal(ask(h, fd, &limited), 0);
	assert_int_equal(ask(h, other, &limited), 1);
	assert_status(get(h, "/hello"), 200);
	assert_true(ttmon_http_timeout_ms(h) <= (int)(1000 / TTMON_HTTP_PER_S));
	clock_ns += NSEC_PER_SEC / TTMON_HTTP_PER_S - 1;
	assert_int_equal(answers(h, fd, &limited), 0);
	clock_ns++;
	assert_int_equal(answers(h, fd, &limited), 1);
	/* Later it has its burst again. */
	clock_ns += 60 * NSEC_PER_SEC;
	close(fd);
	fd = dial_from(h, 1);
	for (n = 0; n < TTMON_HTTP_BURST; n++)
		assert_int_equal(ask(h, fd, &limited), 1);
	assert_int_equal(limited, 0);
	ttmon_http_get_stats(h, &st);
	assert_int_equal(st.held, 1);
	assert_int_equal(st.limited, 0);
	close(fd);
	close(other);
	ttmon_http_free(h);
}

/*
 * As many requests as fit into a second wait for their turn; a request that would wait longer is
 * refused.
 */
static void a_flood_waits_or_is_refused(void **state)
{
	struct ttmon_http *h = start_by_address();
	unsigned int limited = 0, done = 0, asked = 0;
	struct ttmon_http_stats st;
	int fds[TTMON_HTTP_OPEN];

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = dial_from(h, 1);
	for (unsigned int round = 0; round < 2; round++)
		for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++, asked++)
			if (send(fds[i], GET_HELLO, strlen(GET_HELLO), MSG_NOSIGNAL) > 0)
				done += answers(h, fds[i], &limited);
	ttmon_http_get_stats(h, &st);
	assert_int_equal(st.held, TTMON_HTTP_PER_S * TTMON_HTTP_WAIT_S + 1);
	assert_int_equal(st.limited, limited);
	assert_true(limited > 20);
	assert_int_equal(done - limited, TTMON_HTTP_BURST);
	clock_ns += 2 * NSEC_PER_SEC;
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		done += answers(h, fds[i], &limited);
		close(fds[i]);
	}
	assert_true(done - limited >= TTMON_HTTP_BURST + TTMON_HTTP_PER_S);
	ttmon_http_free(h);
}

/*
 * The kernel knows the user of a connection from this host. Root may send any number of requests.
 */
static void clients_of_this_host_are_users(void **state)
{
	struct ttmon_http *h = start();
	int fd = dial_from(h, 3);
	unsigned int limited = 0;

	(void)state;
	turns(h, 5);
	if (h->diag_fd < 0 || !h->first->client->key.is_user)
		skip();
	assert_int_equal(h->first->client->key.id[0], getuid());
	for (unsigned int i = 0; i < 2 * TTMON_HTTP_BURST && !getuid(); i++)
		assert_int_equal(ask(h, fd, &limited), 1);
	close(fd);
	ttmon_http_free(h);
}

static void too_many_connections_cost_their_own(void **state)
{
	struct ttmon_http *h = start_by_address();
	int mine[TTMON_HTTP_OPEN + 20], other = dial_from(h, 2);
	unsigned int limited = 0;

	(void)state;
	turns(h, 3);
	for (unsigned int i = 0; i < ARRAY_SIZE(mine); i++) {
		clock_ns += NSEC_PER_MS;
		mine[i] = dial_from(h, 1);
		turns(h, 3);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(mine); i++)
		assert_int_equal(is_open(mine[i]), i >= 20);
	assert_int_equal(ask(h, other, &limited), 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(mine); i++)
		close(mine[i]);
	close(other);
	ttmon_http_free(h);
}

/*
 * When the listener is full, connections of the client with most connections are closed, even if
 * another client has been silent for longer.
 */
static void a_crowd_pushes_out_its_own(void **state)
{
	struct ttmon_http *h = start_by_address();
	unsigned int limited = 0;
	int mine[12], other;

	(void)state;
	h->listeners[1].limit = 6;
	other = dial_from(h, 2);
	turns(h, 3);
	for (unsigned int i = 0; i < ARRAY_SIZE(mine); i++) {
		clock_ns += NSEC_PER_MS;
		mine[i] = dial_from(h, 1);
		turns(h, 3);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(mine); i++)
		assert_int_equal(is_open(mine[i]), i >= ARRAY_SIZE(mine) - 5);
	assert_int_equal(ask(h, other, &limited), 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(mine); i++)
		close(mine[i]);
	close(other);
	ttmon_http_free(h);
}

/* The server ends while requests wait for their turn, including some whose clients are gone. */
static void the_end_with_some_held(void **state)
{
	struct ttmon_http *h = start_by_address();
	int fd = dial_from(h, 1), gone = dial_from(h, 1);
	unsigned int limited = 0;

	(void)state;
	for (unsigned int i = 0; i < TTMON_HTTP_BURST; i++)
		ask(h, fd, &limited);
	say(fd, GET_HELLO);
	say(gone, GET_HELLO);
	turns(h, 5);
	assert_int_equal(h->nr_held, 2);
	close(gone);
	turns(h, 5);
	ttmon_http_free(h);
	close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(a_burst_then_a_rate),
		T(a_flood_waits_or_is_refused),
		T(clients_of_this_host_are_users),
		T(too_many_connections_cost_their_own),
		T(a_crowd_pushes_out_its_own),
		T(the_end_with_some_held),
	};

	return cmocka_run_group_tests_name("http client", tests, NULL, NULL);
}
