// SPDX-License-Identifier: GPL-2.0-only
/*
 * serve.c: see serve.h. Cold thread: the server has no thread of its own and runs when the loop does.
 */
#include "daemon/run/serve.h"

#include <sys/socket.h>

#include "daemon/io/host/sdnotify.h"
#include "daemon/io/http/holder.h"
#include "lib/os/clock.h"
#include "lib/os/proc.h"

/* A missing address is tried again with each tick; its holder is looked up every two seconds. */
#define LOOK_TICKS 20

struct serve {
	struct ttmon_daemon *c;
	struct ttmon_http *http;
	bool lacks;			 /* an address is missing */
	struct ttmon_http_holder holder; /* whose process was requested; inode 0: none */
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

static void process_found(void *ctx, struct ttmon_helper_reply *reply)
{
	struct serve *v = ctx;
	char comm[16], who[64];
	uint32_t pid;

	if (!v->lacks || reply->err || reply->n != sizeof(pid))
		return;
	memcpy(&pid, reply->buf, sizeof(pid));
	snprintf(who, sizeof(who), "process %u (%.16s)", pid, ttmon_proc_comm(pid, comm));
	ttmon_daemon_blame(v->c, TTMON_LACK_TCP, who);
}

/* Whether the same process still has it is not known, unless it is the same socket. */
static void find_process(struct serve *v, const struct ttmon_http_holder *h)
{
	if (h->inode == v->holder.inode)
		return;
	v->holder = *h;
	ttmon_daemon_blame(v->c, TTMON_LACK_TCP, "");
	if (h->inode &&
	    ttmon_daemon_help_user(v->c, TTMON_HELP_HOLDER, h->uid, h->inode, h, sizeof(*h), process_found, v))
		v->holder.inode = 0;
}

static void lack(struct serve *v, const char *why)
{
	struct ttmon_http_holder h = { .inode = 0 };
	char text[TTMON_HTTP_WHY + 64];

	snprintf(text, sizeof(text), "%s", why);
	if (ttmon_http_get_holder(v->http, &h))
		snprintf(text, sizeof(text), "%s; user %u has it", why, h.uid);
	ttmon_daemon_degrade(v->c, TTMON_LACK_TCP, text);
	find_process(v, &h);
}

static void take_up(struct serve *v, bool first)
{
	char why[TTMON_HTTP_WHY];

	if (ttmon_http_take_up(v->http, why, sizeof(why))) {
		v->lacks = false;
		ttmon_daemon_restore(v->c, TTMON_LACK_TCP);
	} else if (first || !(ttmon_daemon_ticks(v->c) % LOOK_TICKS)) {
		v->lacks = true;
		lack(v, why);
	}
}

static void tick(void *state)
{
	struct serve *v = state;

	if (v->lacks)
		take_up(v, false);
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
	v->c = c;
	http.routes = v->routes;
	err = ttmon_http_new(&http, &v->http);
	if (!err)
		err = ttmon_daemon_watch(c, ttmon_http_fd(v->http));
	if (err) {
		free_part(v);
		return err;
	}
	*state = v;
	take_up(v, true);
	return 0;
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
	.tick = tick,
	.timeout_ms = timeout_ms,
	.turn = turn,
	.free = free_part,
};
