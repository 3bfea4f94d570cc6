// SPDX-License-Identifier: GPL-2.0-only
/*
 * serve.c: see serve.h. Cold thread: the server has no thread of its own and runs when the loop does.
 */
#include "daemon/run/serve.h"

#include <sys/socket.h>

#include "daemon/io/host/sdnotify.h"
#include "lib/os/clock.h"

struct serve {
	struct ttmon_http *http;
	struct ttmon_http_route *routes;
	uint64_t spent_ns;
};

static bool has_unix(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		socklen_t len = sizeof(int);
		int domain;

		if (!getsockopt(fds[i], SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_UNIX)
			return true;
	}
	return false;
}

bool ttmon_serve_wanted(const struct ttmon_daemon *c)
{
	const struct ttmon_opts *o = ttmon_daemon_opts(c);

	return o->socket || o->nr_listen || (o->service && ttmon_sd_has_fds());
}

static void free_part(void *state)
{
	struct serve *v = state;

	ttmon_http_free(v->http);
	free(v->routes);
	free(v);
}

static int gather(struct ttmon_daemon *c, struct ttmon_http_route **ret, size_t *n)
{
	size_t nr_parts;
	const struct ttmon_part *const *parts = ttmon_daemon_parts(c, &nr_parts);
	struct ttmon_http_route *routes;

	*n = 0;
	for (size_t i = 0; i < nr_parts; i++)
		*n += parts[i]->nr_routes;
	routes = calloc(*n + 1, sizeof(*routes));
	if (!routes)
		return -ENOMEM;
	*n = 0;
	for (size_t i = 0; i < nr_parts; i++)
		for (size_t k = 0; k < parts[i]->nr_routes; k++)
			routes[(*n)++] = parts[i]->routes[k];
	*ret = routes;
	return 0;
}

static void take_up(struct ttmon_daemon *c, struct ttmon_http *http)
{
	char why[TTMON_HTTP_WHY];

	if (ttmon_http_take_up(http, why, sizeof(why)))
		ttmon_daemon_restore(c, TTMON_LACK_TCP);
	else
		ttmon_daemon_degrade(c, TTMON_LACK_TCP, why);
}

static int start(struct ttmon_daemon *c, void **state)
{
	const struct ttmon_opts *o = ttmon_daemon_opts(c);
	int fds[TTMON_HTTP_LISTEN_MAX];
	struct ttmon_http_cfg http = {
		.socket = o->socket,
		.group = "ttmon",
		.listen = o->listen,
		.nr_listen = o->nr_listen,
		.fds = fds,
		.nr_fds = o->service ? ttmon_sd_listen_fds(fds, ARRAY_SIZE(fds)) : 0,
		.or_later = o->service,
		.ctx = c,
	};
	struct serve *v;
	int err;

	if (!http.socket && !http.nr_listen && !http.nr_fds)
		return 0;
	/* systemd already listens there. */
	if (!o->socket_given && has_unix(fds, http.nr_fds))
		http.socket = NULL;
	v = calloc(1, sizeof(*v));
	err = v ? gather(c, &v->routes, &http.nr_routes) : -ENOMEM;
	if (err) {
		free(v);
		return log_error_r(err, "out of memory");
	}
	http.routes = v->routes;
	err = ttmon_http_new(&http, &v->http);
	if (!err)
		err = ttmon_daemon_watch(c, ttmon_http_fd(v->http));
	if (err) {
		free_part(v);
		return err;
	}
	*state = v;
	take_up(c, v->http);
	return 0;
}

void ttmon_serve_take_up(struct ttmon_daemon *c)
{
	if (ttmon_serve_http(c))
		take_up(c, ttmon_serve_http(c));
}

struct ttmon_http *ttmon_serve_http(const struct ttmon_daemon *c)
{
	const struct serve *v = ttmon_daemon_part(c, &ttmon_part_serve);

	return v ? v->http : NULL;
}

static int timeout_ms(void *state)
{
	return ttmon_http_timeout_ms(((struct serve *)state)->http);
}

uint64_t ttmon_serve_spent_ns(const struct ttmon_daemon *c)
{
	const struct serve *v = ttmon_daemon_part(c, &ttmon_part_serve);

	return v ? v->spent_ns : 0;
}

static void turn(void *state)
{
	uint64_t began_ns = ttmon_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct serve *v = state;

	ttmon_http_run(v->http);
	v->spent_ns += ttmon_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
}

const struct ttmon_part ttmon_part_serve = {
	.name = "http",
	.in = TTMON_IN_BOTH,
	.start = start,
	.timeout_ms = timeout_ms,
	.turn = turn,
	.free = free_part,
};
