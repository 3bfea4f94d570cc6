/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * http.h: the HTTP server: a table of paths on a Unix socket and on TCP, served by libmicrohttpd
 * without a thread of its own.
 *
 * Everything here runs in the thread that calls ttmon_http_run(), which is the cold thread: add
 * ttmon_http_fd() to the epoll set (EPOLLIN), wait no longer than ttmon_http_timeout_ms(), call
 * ttmon_http_run() whenever the wait ends. Handlers and the sources of streams are called from within
 * it.
 *
 * Limits: TTMON_HTTP_CONNECTIONS at once for each listener (fewer where the limit of open files is
 * low), when they are used up the one that has been idle longest is closed for a new one;
 * TTMON_HTTP_REQUEST_S from the connection, or from the end of the reply before, for a whole request,
 * however steadily it trickles in; TTMON_HTTP_TIMEOUT_S in which nothing of a reply was taken, and
 * TTMON_HTTP_REPLY_S in which less than TTMON_HTTP_RATE bytes a second were; TTMON_HTTP_MEMORY bytes
 * for address line and headers. Over TCP a client (client.c) has TTMON_HTTP_OPEN connections and a
 * rate of requests; where there are too many connections, those go of the client who has most. A
 * request with a body is refused (413), on loopback one under a name other than localhost too (403).
 * "/" is a page that links the routes (HTML where the client says it takes that, else plain text).
 * Replies made in memory are compressed where the client asks for gzip.
 */
#ifndef TTMON_HTTP_H
#define TTMON_HTTP_H

#include <sys/types.h>

#include "lib/base/util.h"

#define TTMON_HTTP_CONNECTIONS 512u
#define TTMON_HTTP_REQUEST_S   10u
#define TTMON_HTTP_TIMEOUT_S   10u
#define TTMON_HTTP_REPLY_S     60u
#define TTMON_HTTP_RATE	       4096u
#define TTMON_HTTP_MEMORY      16384u
#define TTMON_HTTP_OPEN	       64u /* connections of one client over TCP */
#define TTMON_HTTP_PER_S       20u /* requests of one client over TCP, after the first TTMON_HTTP_BURST */
#define TTMON_HTTP_BURST       60u
#define TTMON_HTTP_WAIT_S      1u /* for its turn */
#define TTMON_HTTP_LISTEN_MAX  8  /* TCP addresses, and sockets handed over by systemd */

#define TTMON_HTTP_JSON	 "application/json"
#define TTMON_HTTP_JSONL "application/jsonl" /* a document a line */
#define TTMON_HTTP_TEXT	 "text/plain; charset=utf-8"

/* Methods of a route, as bits. HEAD goes where GET does. */
#define TTMON_HTTP_GET	  (1 << 0)
#define TTMON_HTTP_PUT	  (1 << 1)
#define TTMON_HTTP_DELETE (1 << 2)

struct ttmon_http;

/* One request, and the reply to it that the handler makes. */
struct ttmon_http_reply {
	/* the request */
	const char *path;
	const char *rest; /* what follows a route's path that ends in '/': one segment, decoded, not empty; else "" */
	unsigned int method; /* TTMON_HTTP_GET, _PUT, _DELETE */
	const char *accept;  /* the Accept header, "" without one */
	bool local;	     /* came by the Unix socket: uid, gid and pid are those of the client when it connected */
	uid_t uid;	     /* (uid_t)-1 when not local */
	gid_t gid;
	pid_t pid; /* 0 when not local */
	/* the reply */
	unsigned int status;	  /* 200 */
	const char *content_type; /* TTMON_HTTP_JSON; must outlive the call */
	FILE *body;		  /* in memory: fprintf(), json_dumpf() */

	void *connection; /* of this module */
	void *priv;
};

/*
 * The value of ?name=value, decoded, valid during the handler; NULL when it is not there, "" for ?name
 * and ?name=.
 */
const char *ttmon_http_arg(const struct ttmon_http_reply *reply, const char *name);
/* Make the reply an error: {"error": text}. What was written to the body before is gone. */
void ttmon_http_error(struct ttmon_http_reply *reply, unsigned int status, const char *fmt, ...) _printf_(3, 4);

/*
 * A reply that is made while it is sent, a block at a time, so that it takes no more memory however
 * long it is. next fills up to max (>= 32 KiB) bytes and returns how many, 0 at the end, -EAGAIN when
 * there is nothing yet, another -errno to cut the connection off (the client sees an incomplete
 * reply). done is called once, also when the client goes away early; NULL: nothing to be done. Not for
 * replies that a body was written to. (A client of HTTP/1.0 cannot tell a reply that was cut off from
 * a whole one.)
 */
typedef ssize_t (*ttmon_http_next_fn)(void *ctx, char *buf, size_t max);
struct ttmon_http_source;
/* Good until done; NULL: out of memory, the reply is an error and done was called. */
struct ttmon_http_source *ttmon_http_stream(struct ttmon_http_reply *reply, ttmon_http_next_fn next,
					    void (*done)(void *ctx), void *ctx);
/*
 * After -EAGAIN: ask next again. Nothing where it is not waited for. Meanwhile the connection is not
 * judged, and that its client has gone shows with the next bytes only: send some now and then. The
 * limits are for a client that does not take what there is.
 */
void ttmon_http_wake(struct ttmon_http_source *s);

/*
 * Answer later: the connection waits. One of the two calls below must follow, from the same thread, or
 * ttmon_http_free(). The client may be gone by then: that is noticed there, and no error.
 */
struct ttmon_http_later;
struct ttmon_http_later *ttmon_http_defer(
	struct ttmon_http_reply *reply); /* NULL: out of memory, and the reply is an error */
/* Send this file from its start; the fd is taken. content_type must outlive the reply. */
void ttmon_http_later_file(struct ttmon_http_later *l, int fd, const char *content_type);
void ttmon_http_later_error(struct ttmon_http_later *l, unsigned int status, const char *text);

typedef void (*ttmon_http_fn)(void *ctx, struct ttmon_http_reply *reply);

struct ttmon_http_route {
	const char *
		path; /* "/v1/status": matched exactly; "/v1/allocations/": that and one more segment, which becomes reply->rest */
	const char *help; /* for the index, one line */
	ttmon_http_fn fn;
	unsigned int methods; /* 0: TTMON_HTTP_GET */
	/* on TCP too; other routes say 403 there: they are for the Unix socket, where it is known who asks */
	bool everybody;
};

struct ttmon_http_cfg {
	const char *socket;	   /* path; NULL: none */
	const char *group;	   /* see ttmon_usock_open() */
	mode_t mode;		   /* 0: 0660 */
	const char *const *listen; /* "HOST:PORT", "[::1]:PORT", ":PORT"; numbers and localhost, nothing is looked up */
	size_t nr_listen;
	const int *fds; /* listening sockets that systemd handed over, Unix and TCP ones; taken, also on failure */
	size_t nr_fds;
	/*
	 * go on without a TCP address that cannot be had: ttmon_http_take_up() tries again. `listen` must
	 * outlive the server then
	 */
	bool or_later;
	const struct ttmon_http_route *routes; /* must outlive the server */
	size_t nr_routes;
	void *ctx; /* for the handlers */
};

/*
 * Failures are logged here, in one line. See ttmon_usock_open() for the errors; -EADDRINUSE for a TCP
 * port too.
 */
int ttmon_http_new(const struct ttmon_http_cfg *cfg, struct ttmon_http **ret) _must_check;
/*
 * Are all TCP addresses served now? Tries those that are not; why (TTMON_HTTP_WHY): one line about the
 * first that cannot be had.
 */
bool ttmon_http_take_up(struct ttmon_http *h, char *why, size_t n);
#define TTMON_HTTP_WHY 256
/* Closes all connections and removes the socket file (not one that systemd made). */
void ttmon_http_free(struct ttmon_http *h);

/* Path of the Unix socket; NULL: none is served. */
const char *ttmon_http_socket(const struct ttmon_http *h);
int ttmon_http_fd(const struct ttmon_http *h);
/* For epoll_wait(): -1 if there is nothing to wait for but the fd. */
int ttmon_http_timeout_ms(const struct ttmon_http *h);
void ttmon_http_run(struct ttmon_http *h);

struct ttmon_http_stats {
	uint64_t requests; /* answered */
	uint64_t errors;   /* of these, with a status of 400 and more */
	uint64_t slow;	   /* connections closed because they took too long */
	uint64_t crowded;  /* connections closed to make room */
	uint64_t held;	   /* requests that waited for their client's turn */
	uint64_t limited;  /* that were refused because it was too long until then */
	uint64_t bytes;	   /* of replies */
	uint32_t open;	   /* connections now */
};
void ttmon_http_get_stats(const struct ttmon_http *h, struct ttmon_http_stats *ret);

#endif
