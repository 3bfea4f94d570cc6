// SPDX-License-Identifier: GPL-2.0-only
/*
 * http.c: libmicrohttpd between our sockets and the handlers of a route table.
 *
 * One libmicrohttpd daemon per listener, each with an epoll fd of its own; those are gathered in one epoll fd, which
 * is what the caller's loop sees. The cold thread runs all of it. This module knows paths, peers and limits, nothing
 * of what is served. A client that goes away is no signal: libmicrohttpd 0.9.75 sends with MSG_NOSIGNAL
 * (tests/unit/test_http.c holds it to that).
 */
#include "io/http.h"

#include <jansson.h>
#include <limits.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "io/usock.h"
#include "util/log.h"

#define LISTENERS_MAX 4

struct listener {
	struct MHD_Daemon *daemon;
	struct ttmon_usock usock; /* fd is the daemon's */
};

struct ttmon_http {
	int epoll_fd;
	const struct ttmon_http_route *routes;
	size_t nr_routes;
	void *ctx;
	struct listener listeners[LISTENERS_MAX];
	size_t nr_listeners;
};

const char *ttmon_http_arg(const struct ttmon_http_reply *reply, const char *name)
{
	const char *value = NULL;
	size_t len = 0;

	if (MHD_lookup_connection_value_n(reply->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value, &len) !=
	    MHD_YES)
		return NULL;
	return value ? value : "";
}

void ttmon_http_error(struct ttmon_http_reply *reply, unsigned int status, const char *fmt, ...)
{
	_cleanup_free_ char *quoted = NULL;
	char text[512];
	json_t *string;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* No string for text that is not UTF-8, as a file name may be, or was cut in the middle of a character. */
	string = json_string(text);
	if (string)
		quoted = json_dumps(string, JSON_ENCODE_ANY);
	json_decref(string);
	rewind(reply->body);
	fprintf(reply->body, "{\"error\": %s}\n", quoted ? quoted : "\"error\"");
	reply->status = status;
	reply->content_type = TTMON_HTTP_JSON;
}

static void write_index(const struct ttmon_http *h, struct ttmon_http_reply *reply)
{
	reply->content_type = TTMON_HTTP_TEXT;
	for (size_t i = 0; i < h->nr_routes; i++)
		fprintf(reply->body, "%-24s %s\n", h->routes[i].path, h->routes[i].help);
}

static void route(const struct ttmon_http *h, const char *method, struct ttmon_http_reply *reply)
{
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD)) {
		ttmon_http_error(reply, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
		return;
	}
	for (size_t i = 0; i < h->nr_routes; i++) {
		if (!strcmp(h->routes[i].path, reply->path)) {
			h->routes[i].fn(h->ctx, reply);
			return;
		}
	}
	if (!strcmp(reply->path, "/"))
		write_index(h, reply);
	else
		ttmon_http_error(reply, MHD_HTTP_NOT_FOUND, "no such path, / lists them");
}

/* On TCP SO_PEERCRED succeeds with pid 0 and uid -1: the domain has to be asked first. */
static void fill_peer(struct MHD_Connection *c, struct ttmon_http_reply *reply)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct ucred cred;
	socklen_t cred_len = sizeof(cred), domain_len = sizeof(int);
	int domain = -1;

	reply->uid = (uid_t)-1;
	reply->gid = (gid_t)-1;
	if (!info || getsockopt(info->connect_fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) || domain != AF_UNIX ||
	    getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len))
		return;
	reply->local = true;
	reply->uid = cred.uid;
	reply->gid = cred.gid;
	reply->pid = cred.pid;
}

static enum MHD_Result send_reply(struct MHD_Connection *c, const struct ttmon_http_reply *reply, char *body,
				  size_t len)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(len, body, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result sent;

	if (!response) {
		free(body);
		return MHD_NO;
	}
	sent = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
	if (sent == MHD_YES && reply->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		sent = MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (sent == MHD_YES)
		sent = MHD_queue_response(c, reply->status, response);
	MHD_destroy_response(response);
	return sent;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
				  const char *version, const char *upload, size_t *upload_size, void **state)
{
	struct ttmon_http_reply reply = {
		.path = url, .status = MHD_HTTP_OK, .content_type = TTMON_HTTP_JSON, .connection = c
	};
	static int seen;
	char *body = NULL;
	size_t len = 0;

	(void)version;
	(void)upload;
	/*
	 * Called first with the headers, then with what there is of a body, then without one. A method we do not serve is
	 * answered at once, or its body would be read to the end.
	 */
	if (!*state && (!strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD))) {
		*state = &seen;
		return MHD_YES;
	}
	if (*upload_size)
		return MHD_NO;
	reply.body = open_memstream(&body, &len);
	if (!reply.body)
		return MHD_NO;
	fill_peer(c, &reply);
	route(cls, method, &reply);
	/* Out of memory on the way: close the connection rather than send half a document. */
	if (fclose(reply.body)) {
		free(body);
		return MHD_NO;
	}
	return send_reply(c, &reply, body, len);
}

static void log_mhd(void *cls, const char *fmt, va_list ap) _printf_(2, 0);
static void log_mhd(void *cls, const char *fmt, va_list ap)
{
	char text[512];

	(void)cls;
	vsnprintf(text, sizeof(text), fmt, ap);
	text[strcspn(text, "\n")] = '\0';
	log_debug("http: %s", text);
}

/* Serve a listening socket; it is the listener's from here on, also on failure. */
static int add_listener(struct ttmon_http *h, struct ttmon_usock usock)
{
	struct listener *l = &h->listeners[h->nr_listeners];
	struct epoll_event ev = { .events = EPOLLIN };
	const union MHD_DaemonInfo *info;

	l->usock = usock;
	h->nr_listeners++;
	errno = 0;
	l->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, h,
				     MHD_OPTION_EXTERNAL_LOGGER, log_mhd, NULL, MHD_OPTION_LISTEN_SOCKET, l->usock.fd,
				     MHD_OPTION_CONNECTION_LIMIT, TTMON_HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
				     TTMON_HTTP_TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				     (size_t)TTMON_HTTP_MEMORY, MHD_OPTION_END);
	/* Without a daemon the socket is still ours (libmicrohttpd 0.9.75), with one it closes it. */
	if (!l->daemon)
		return errno ? -errno : -EIO;
	l->usock.fd = -1;
	info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -EIO;
	return epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, info->epoll_fd, &ev) ? -errno : 0;
}

static void http_freep(struct ttmon_http **h)
{
	ttmon_http_free(*h);
}

int ttmon_http_new(const struct ttmon_http_cfg *cfg, struct ttmon_http **ret)
{
	_cleanup_(http_freep) struct ttmon_http *h = calloc(1, sizeof(*h));
	struct ttmon_usock usock;
	int err;

	if (!h)
		return log_error_r(-ENOMEM, "cannot serve %s: out of memory", cfg->socket);
	h->routes = cfg->routes;
	h->nr_routes = cfg->nr_routes;
	h->ctx = cfg->ctx;
	h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (h->epoll_fd < 0)
		return log_error_r(-errno, "cannot serve %s: %m", cfg->socket);
	err = ttmon_usock_open(cfg->socket, cfg->group, cfg->mode ? cfg->mode : 0660, &usock);
	if (err)
		return err;
	err = add_listener(h, usock);
	if (err)
		return log_error_r(err, "cannot serve %s: %s", cfg->socket, strerror(-err));
	*ret = TAKE_PTR(h);
	return 0;
}

void ttmon_http_free(struct ttmon_http *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->nr_listeners; i++) {
		struct listener *l = &h->listeners[i];

		/* The file first: who connects from now on is told that nobody is there. */
		ttmon_usock_fini(&l->usock);
		if (l->daemon)
			MHD_stop_daemon(l->daemon);
	}
	if (h->epoll_fd >= 0)
		close(h->epoll_fd);
	free(h);
}

int ttmon_http_fd(const struct ttmon_http *h)
{
	return h->epoll_fd;
}

int ttmon_http_timeout_ms(const struct ttmon_http *h)
{
	int least = -1;

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
	for (size_t i = 0; i < h->nr_listeners; i++)
		MHD_run(h->listeners[i].daemon);
}
