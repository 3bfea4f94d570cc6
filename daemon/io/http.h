/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * http.h: the HTTP server: a table of paths on a Unix socket, served by libmicrohttpd without a thread of its own.
 *
 * Everything here runs in the thread that calls ttmon_http_run(), which is the cold thread: add ttmon_http_fd() to
 * the epoll set (EPOLLIN), wait no longer than ttmon_http_timeout_ms(), call ttmon_http_run() whenever the wait ends.
 * Handlers are called from within it.
 *
 * Limits: TTMON_HTTP_CONNECTIONS at once (more wait in the backlog), TTMON_HTTP_TIMEOUT_S without a byte moved and a
 * connection is closed, TTMON_HTTP_MEMORY bytes for address line and headers. GET and HEAD only; a request with a
 * body is cut off. "/" is a plain text list of the routes.
 */
#ifndef TTMON_HTTP_H
#define TTMON_HTTP_H

#include <sys/types.h>

#include "util/util.h"

#define TTMON_HTTP_CONNECTIONS 64u
#define TTMON_HTTP_TIMEOUT_S   10u
#define TTMON_HTTP_MEMORY      16384u

#define TTMON_HTTP_JSON "application/json"
#define TTMON_HTTP_TEXT "text/plain; charset=utf-8"

struct ttmon_http;

/* One request, and the reply to it that the handler makes. */
struct ttmon_http_reply {
	/* the request */
	const char *path;
	bool local; /* came by the Unix socket: uid, gid and pid are those of the client when it connected */
	uid_t uid;  /* (uid_t)-1 when not local */
	gid_t gid;
	pid_t pid; /* 0 when not local */
	/* the reply */
	unsigned int status;	  /* 200 */
	const char *content_type; /* TTMON_HTTP_JSON; must outlive the call */
	FILE *body;		  /* in memory: fprintf(), json_dumpf() */

	void *connection; /* of this module */
};

/* The value of ?name=value, decoded, valid during the handler; NULL when it is not there, "" for ?name and ?name=. */
const char *ttmon_http_arg(const struct ttmon_http_reply *reply, const char *name);
/* Make the reply an error: {"error": text}. What was written to the body before is gone. */
void ttmon_http_error(struct ttmon_http_reply *reply, unsigned int status, const char *fmt, ...) _printf_(3, 4);

typedef void (*ttmon_http_fn)(void *ctx, struct ttmon_http_reply *reply);

struct ttmon_http_route {
	const char *path; /* "/v1/status": matched exactly */
	const char *help; /* for the index, one line */
	ttmon_http_fn fn;
};

struct ttmon_http_cfg {
	const char *socket;		       /* path */
	const char *group;		       /* see ttmon_usock_open() */
	mode_t mode;			       /* 0: 0660 */
	const struct ttmon_http_route *routes; /* must outlive the server */
	size_t nr_routes;
	void *ctx; /* for the handlers */
};

/* Failures are logged here, in one line. See ttmon_usock_open() for the errors. */
int ttmon_http_new(const struct ttmon_http_cfg *cfg, struct ttmon_http **ret) _must_check;
/* Closes all connections and removes the socket file. */
void ttmon_http_free(struct ttmon_http *h);

int ttmon_http_fd(const struct ttmon_http *h);
/* For epoll_wait(): -1 if there is nothing to wait for but the fd. */
int ttmon_http_timeout_ms(const struct ttmon_http *h);
void ttmon_http_run(struct ttmon_http *h);

#endif
