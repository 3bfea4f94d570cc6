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
 * low), when they are used up, the one that has been idle longest is closed for a new one;
 * TTMON_HTTP_REQUEST_S for a whole request, from the connection or the end of the reply before,
 * however steadily it trickles in; TTMON_HTTP_TIMEOUT_S without any byte of a reply taken, and
 * TTMON_HTTP_REPLY_S with less than TTMON_HTTP_RATE bytes a second taken; TTMON_HTTP_MEMORY bytes for
 * address line and headers. Over TCP a client (client.c) has TTMON_HTTP_OPEN connections and a rate of
 * requests; if there are too many connections, those of the client with the most are closed. A request
 * with a body is refused (413), and so is one on loopback under a name other than localhost (403). "/"
 * is a page that links the routes (HTML if the client accepts it, else plain text). Replies made in
 * memory are compressed if the client accepts gzip.
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
#define TTMON_HTTP_WAIT_S      1u /* longest wait for its turn */
#define TTMON_HTTP_LISTEN_MAX  8  /* TCP addresses, and sockets handed over by systemd */

#define TTMON_HTTP_JSON	 "application/json"
#define TTMON_HTTP_JSONL "application/jsonl" /* one document per line */
#define TTMON_HTTP_TEXT	 "text/plain; charset=utf-8"

/* Methods of a route, as bits. HEAD is handled like GET. */
#define TTMON_HTTP_GET	  (1 << 0)
#define TTMON_HTTP_PUT	  (1 << 1)
#define TTMON_HTTP_DELETE (1 << 2)

struct ttmon_http;

/* One request, and the reply that the handler makes. */
struct ttmon_http_reply {
	/* The request. */
	const char *path;
	const char *rest;    /* for a route whose path ends in '/': the segment after it, decoded, not empty; else "" */
	unsigned int method; /* TTMON_HTTP_GET, _PUT, _DELETE */
	const char *accept;  /* the Accept header, "" without one */
	/* it came through the Unix socket: uid, gid and pid are those of the client when it connected */
	bool local;
	uid_t uid; /* (uid_t)-1 when not local */
	gid_t gid;
	pid_t pid; /* 0 when not local */
	/* The reply. */
	unsigned int status;	  /* 200 */
	const char *content_type; /* TTMON_HTTP_JSON; must outlive the call */
	FILE *body;		  /* a buffer in memory: write with fprintf() or json_dumpf() */

	void *connection; /* used by this module */
	void *priv;
};

/*
 * The value of ?name=value, decoded, valid during the handler; NULL if it is missing, "" for ?name and
 * ?name=.
 */
const char *ttmon_http_arg(const struct ttmon_http_reply *reply, const char *name);
/* Makes the reply an error: {"error": text}. Anything written to the body before is dropped. */
void ttmon_http_error(struct ttmon_http_reply *reply, unsigned int status, const char *fmt, ...) _printf_(3, 4);

/*
 * A reply that is generated while it is sent, one block at a time, so that its length does not cost
 * memory. next fills in up to max (>= 32 KiB) bytes and returns their number, 0 at the end, -EAGAIN if
 * there is nothing yet, another -errno to cut the connection off (the client sees an incomplete
 * reply). done is called once, also if the client goes away early; NULL: no call. Not for replies with
 * a written body. (A client of HTTP/1.0 cannot tell a reply that was cut off from a complete one.)
 */
typedef ssize_t (*ttmon_http_next_fn)(void *ctx, char *buf, size_t max);
struct ttmon_http_source;
/* Valid until done; NULL: out of memory, the reply is an error and done was called. */
struct ttmon_http_source *ttmon_http_stream(struct ttmon_http_reply *reply, ttmon_http_next_fn next,
					    void (*done)(void *ctx), void *ctx);
/*
 * After -EAGAIN: makes the server call next again. No effect if it does not wait. A waiting connection
 * is not timed, and a client that has gone is noticed only with the next bytes: send some now and
 * then. The limits apply to clients that do not take available data.
 */
void ttmon_http_wake(struct ttmon_http_source *s);

/*
 * Answers later: the connection waits. One of the two calls below must follow, from the same thread,
 * or ttmon_http_free(). The client may be gone by then, which is no error.
 */
struct ttmon_http_later;
struct ttmon_http_later *ttmon_http_defer(
	struct ttmon_http_reply *reply); /* NULL: out of memory, and the reply is an error */
/* Sends this file from its start; takes the fd. content_type must outlive the reply. */
void ttmon_http_later_file(struct ttmon_http_later *l, int fd, const char *content_type);
void ttmon_http_later_error(struct ttmon_http_later *l, unsigned int status, const char *text);

typedef void (*ttmon_http_fn)(void *ctx, struct ttmon_http_reply *reply);

struct ttmon_http_route {
	/*
		 * "/v1/status": matched exactly; "/v1/allocations/": that plus one segment, which becomes reply->rest
		 */
	const char *path;
	const char *help; /* for the index, one line */
	ttmon_http_fn fn;
	unsigned int methods; /* 0: TTMON_HTTP_GET */
	/* also on TCP; other routes answer 403 there: they need the Unix socket, where the client is known */
	bool everybody;
};

struct ttmon_http_cfg {
	const char *socket; /* path; NULL: none */
	const char *group;  /* see ttmon_usock_open() */
	mode_t mode;	    /* 0: 0660 */
	/* "HOST:PORT", "[::1]:PORT", ":PORT"; numbers and localhost only, no name is resolved */
	const char *const *listen;
	size_t nr_listen;
	const int *fds; /* listening sockets from systemd, Unix and TCP; taken, also on failure */
	size_t nr_fds;
	/*
	 * Continue without a TCP address that cannot be bound: ttmon_http_take_up() tries again. `listen` must
	 * then outlive the server.
	 */
	bool or_later;
	const struct ttmon_http_route *routes; /* must outlive the server */
	size_t nr_routes;
	void *ctx; /* passed to the handlers */
};

/*
 * Failures are logged here, in one line. See ttmon_usock_open() for the errors; -EADDRINUSE also for a
 * TCP port.
 */
int ttmon_http_new(const struct ttmon_http_cfg *cfg, struct ttmon_http **ret) _must_check;
/*
 * Tries all TCP addresses that are not served yet. True: all are served now. why (TTMON_HTTP_WHY): one
 * line about the first of those that are not.
 */
bool ttmon_http_take_up(struct ttmon_http *h, char *why, size_t n);
struct ttmon_http_holder;
/* Finds the socket that has the first of them (holder.h). Returns false if there is none. */
bool ttmon_http_get_holder(const struct ttmon_http *h, struct ttmon_http_holder *ret);
#define TTMON_HTTP_WHY 256
/* Closes all connections and removes the socket file (not one that systemd made). */
void ttmon_http_free(struct ttmon_http *h);

/* Path of the Unix socket; NULL: none is served. */
const char *ttmon_http_socket(const struct ttmon_http *h);
int ttmon_http_fd(const struct ttmon_http *h);
/* For epoll_wait(): -1: only the fd is waited for. */
int ttmon_http_timeout_ms(const struct ttmon_http *h);
void ttmon_http_run(struct ttmon_http *h);

struct ttmon_http_stats {
	uint64_t requests; /* answered */
	uint64_t errors;   /* of these, with a status of 400 and more */
	uint64_t slow;	   /* connections closed because they took too long */
	uint64_t crowded;  /* connections closed to make room */
	uint64_t held;	   /* requests that waited for their client's turn */
	uint64_t limited;  /* of these, refused because the wait was too long */
	uint64_t bytes;	   /* of replies */
	uint32_t open;	   /* connections now */
};
void ttmon_http_get_stats(const struct ttmon_http *h, struct ttmon_http_stats *ret);

#endif
