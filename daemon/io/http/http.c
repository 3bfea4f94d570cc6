// SPDX-License-Identifier: GPL-2.0-only
/*
 * http.c: the interface of the server: listeners, the fd to wait for, and the timeout.
 *
 * One libmicrohttpd daemon per listener, each with an epoll fd of its own; those are gathered in one
 * epoll fd, which is what the caller's loop sees. The cold thread runs all of it. This module knows
 * paths, peers and limits, but not the content of replies. A client that goes away is no signal:
 * libmicrohttpd 0.9.75 sends with MSG_NOSIGNAL (tests/unit/daemon/io/http/test_http.c holds it to
 * that). Its own timeout is not used: it counts from the last byte, so that an occasional byte would
 * keep a connection open for ever (conn.c).
 */
#include "daemon/io/http/http_int.h"
#include "daemon/io/http/holder.h"

#include <limits.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <linux/netlink.h>

#include "lib/os/clock.h"
#include "lib/os/log.h"

static void log_mhd(void *cls, const char *fmt, va_list ap) _printf_(2, 0);
static void log_mhd(void *cls, const char *fmt, va_list ap)
{
	char text[512];

	(void)cls;
	vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = '\0';
	log_debug("http: %s", text);
}

/* Serve the socket of a listener. */
static int start(struct ttmon_http_listener *l)
{
	struct epoll_event ev = { .events = EPOLLIN };
	const union MHD_DaemonInfo *info;

	l->limit = l->h->limit;
	errno = 0;
	l->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, ttmon_http_on_request, l,
		MHD_OPTION_EXTERNAL_LOGGER, log_mhd, NULL, MHD_OPTION_LISTEN_SOCKET, l->usock.fd,
		MHD_OPTION_CONNECTION_LIMIT, l->limit + TTMON_HTTP_SPARE, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)TTMON_HTTP_MEMORY, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK,
		ttmon_http_unescape, NULL, MHD_OPTION_NOTIFY_CONNECTION, ttmon_http_on_conn, l,
		MHD_OPTION_NOTIFY_COMPLETED, ttmon_http_on_completed, NULL, MHD_OPTION_END);
	/* If starting failed, the socket is still ours (libmicrohttpd 0.9.75); a running daemon closes it. */
	if (!l->daemon)
		return errno ? -errno : -EIO;
	l->usock.fd = -1;
	info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -EIO;
	return epoll_ctl(l->h->epoll_fd, EPOLL_CTL_ADD, info->epoll_fd, &ev) ? -errno : 0;
}

static struct ttmon_http_listener *next_listener(struct ttmon_http *h)
{
	struct ttmon_http_listener *l = &h->listeners[h->nr_listeners++];

	l->h = h;
	l->usock.fd = -1;
	return l;
}

/* Removes the newest listener, which serves no client yet. */
static void drop_listener(struct ttmon_http *h)
{
	struct ttmon_http_listener *l = &h->listeners[--h->nr_listeners];

	if (l->daemon)
		MHD_stop_daemon(l->daemon);
	if (l->usock.fd >= 0)
		close(l->usock.fd);
	*l = (struct ttmon_http_listener){ 0 };
}

static int listen_tcp(struct ttmon_http *h, const char *address, bool or_later)
{
	struct ttmon_http_listener *l = next_listener(h);
	char why[TTMON_HTTP_WHY];
	int err = ttmon_http_listen(address, l, why, sizeof(why));

	if (!err)
		return 0;
	drop_listener(h);
	if (!or_later || err == -EINVAL)
		return log_error_r(err, "%s", why);
	h->missing[h->nr_missing++] = address;
	return 0;
}

/* Opens all sockets before the first client is accepted. */
static int listen_all(struct ttmon_http *h, const struct ttmon_http_cfg *cfg)
{
	int err = 0;

	if (cfg->socket) {
		struct ttmon_http_listener *l = next_listener(h);

		err = ttmon_usock_open(cfg->socket, cfg->group, cfg->mode ? cfg->mode : 0660, &l->usock);
		l->local = true;
		snprintf(l->name, sizeof(l->name), "%s", cfg->socket);
	}
	for (size_t i = 0; !err && i < cfg->nr_listen; i++)
		err = listen_tcp(h, cfg->listen[i], cfg->or_later);
	for (size_t i = 0; i < cfg->nr_fds; i++) {
		int r = ttmon_http_listen_fd(cfg->fds[i], next_listener(h));

		err = err ? err : r;
	}
	return err;
}

static int start_all(struct ttmon_http *h, const char *group)
{
	h->limit = ttmon_http_limit(h->nr_listeners + h->nr_missing);
	if (h->limit < TTMON_HTTP_CONNECTIONS)
		log_info("at most %u clients at once on each socket: the limit of open files is low", h->limit);
	for (size_t i = 0; i < h->nr_listeners; i++) {
		struct ttmon_http_listener *l = &h->listeners[i];
		int err;

		if (l->local && !h->socket)
			h->socket = l->name;
		err = start(l);
		if (err)
			return log_error_r(err, "cannot serve %s: %s", l->name, strerror(-err));
		if (l->usock.no_group)
			log_info("no group %s on this host: only root can use the socket", group);
		if (!l->local)
			log_info("serving http://%s/", l->name);
	}
	return 0;
}

bool ttmon_http_take_up(struct ttmon_http *h, char *why, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < h->nr_missing; i++) {
		struct ttmon_http_listener *l = next_listener(h);
		char reason[TTMON_HTTP_WHY];
		int err = ttmon_http_listen(h->missing[i], l, reason, sizeof(reason));

		if (!err) {
			err = start(l);
			if (err)
				snprintf(reason, sizeof(reason), "cannot serve %s: %s", l->name, strerror(-err));
		}
		if (!err) {
			log_info("serving http://%s/", l->name);
			continue;
		}
		drop_listener(h);
		if (!left)
			snprintf(why, n, "%s", reason);
		h->missing[left++] = h->missing[i];
	}
	h->nr_missing = left;
	return !left;
}

bool ttmon_http_get_holder(const struct ttmon_http *h, struct ttmon_http_holder *ret)
{
	struct sockaddr_storage addr;
	char why[TTMON_HTTP_WHY];
	socklen_t len;

	return h->nr_missing && !ttmon_http_parse(h->missing[0], &addr, &len, why, sizeof(why)) &&
	       ttmon_http_find_holder(&addr, ret);
}

TTMON_FREEP(http_freep, struct ttmon_http, ttmon_http_free);

int ttmon_http_new(const struct ttmon_http_cfg *cfg, struct ttmon_http **ret)
{
	_cleanup_(http_freep) struct ttmon_http *h = calloc(1, sizeof(*h));
	int err = h ? 0 : -ENOMEM;

	if (!err && (cfg->nr_listen > TTMON_HTTP_LISTEN_MAX || cfg->nr_fds > TTMON_HTTP_LISTEN_MAX))
		err = -E2BIG;
	if (h) {
		h->diag_fd = cfg->nr_listen || cfg->nr_fds
				     ? socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG)
				     : -1;
		h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
		if (!err && h->epoll_fd < 0)
			err = -errno;
	}
	if (err) {
		for (size_t i = 0; i < cfg->nr_fds; i++)
			close(cfg->fds[i]);
		return log_error_r(err, "cannot serve HTTP: %s", strerror(-err));
	}
	h->routes = cfg->routes;
	h->nr_routes = cfg->nr_routes;
	h->ctx = cfg->ctx;
	h->now = ttmon_mono_ns;
	err = listen_all(h, cfg);
	if (!err)
		err = start_all(h, cfg->group);
	if (err)
		return err;
	*ret = TAKE_PTR(h);
	return 0;
}

void ttmon_http_free(struct ttmon_http *h)
{
	if (!h)
		return;
	/* libmicrohttpd aborts the process when it is stopped with a suspended connection. */
	h->ending = true;
	ttmon_http_release(h, true);
	for (struct ttmon_http_conn *conn = h->first; conn; conn = conn->next)
		if (conn->later)
			ttmon_http_later_cancel(conn->later);
		else if (conn->idle)
			ttmon_http_wake(conn->idle);
	for (size_t i = 0; i < h->nr_listeners; i++) {
		struct ttmon_http_listener *l = &h->listeners[i];

		/* The socket file first: later clients then find no server. */
		ttmon_usock_fini(&l->usock);
		if (!l->daemon)
			continue;
		MHD_run(l->daemon);
		MHD_stop_daemon(l->daemon);
	}
	if (h->epoll_fd >= 0)
		close(h->epoll_fd);
	if (h->diag_fd >= 0)
		close(h->diag_fd);
	free(h);
}

const char *ttmon_http_socket(const struct ttmon_http *h)
{
	return h->socket;
}

int ttmon_http_fd(const struct ttmon_http *h)
{
	return h->epoll_fd;
}

int ttmon_http_timeout_ms(const struct ttmon_http *h)
{
	int least = h->resumed ? 0 : ttmon_http_sweep_ms(h), held = ttmon_http_held_ms(h);

	if (held >= 0 && (least < 0 || held < least))
		least = held;
	for (size_t i = 0; i < h->nr_listeners; i++) {
		MHD_UNSIGNED_LONG_LONG ms;

		if (MHD_get_timeout(h->listeners[i].daemon, &ms) != MHD_YES)
			continue;
		ms = MIN(ms, (MHD_UNSIGNED_LONG_LONG)INT_MAX);
		if (least < 0 || (int)ms < least)
			least = (int)ms;
	}
	return least;
}

void ttmon_http_run(struct ttmon_http *h)
{
	h->resumed = false;
	ttmon_http_sweep(h);
	ttmon_http_release(h, false);
	for (size_t i = 0; i < h->nr_listeners; i++)
		MHD_run(h->listeners[i].daemon);
}

void ttmon_http_get_stats(const struct ttmon_http *h, struct ttmon_http_stats *ret)
{
	*ret = h->stats;
}
