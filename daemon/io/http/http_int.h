/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * http_int.h: shared by the files of the HTTP server.
 *
 *   http.c          listeners, one libmicrohttpd daemon each, and the loop's side
 *   listen.c   listening TCP sockets, and those that systemd hands over
 *   holder.c   the socket and the process that have a TCP address already
 *   conn.c     connections: time limits, and which one is closed when there are too many
 *   client.c   identity and limits of clients
 *   request.c  from a request to the handler of its route
 *   reply.c    sends replies: memory, stream, file later
 */
#ifndef TTMON_HTTP_INT_H
#define TTMON_HTTP_INT_H

#include <microhttpd.h>
#include <sys/socket.h>

#include "daemon/io/http/http.h"
#include "daemon/io/http/usock.h"

#define TTMON_HTTP_LISTENERS (1 + 2 * TTMON_HTTP_LISTEN_MAX)

/*
 * WAITING: for a whole request, since the connection or the end of the reply before; REPLYING: the
 * handler is done, bytes are being sent; HELD: a whole request waits for its client's turn; LATER: the
 * reply is delayed, libmicrohttpd has suspended the connection; IDLE: the same, while a stream has no
 * data; CUT: shut down by us, libmicrohttpd will notice.
 */
enum ttmon_http_state {
	TTMON_HTTP_WAITING,
	TTMON_HTTP_REPLYING,
	TTMON_HTTP_HELD,
	TTMON_HTTP_LATER,
	TTMON_HTTP_IDLE,
	TTMON_HTTP_CUT
};

/* A user, or an address of another host. */
struct ttmon_http_key {
	bool is_user;
	int family;
	uint32_t id[2];
};

struct ttmon_http_client {
	struct ttmon_http_key key;
	bool used;
	uint32_t open;	  /* open connections */
	uint64_t next_ns; /* when its next request may start, after its burst was used */
};
#define TTMON_HTTP_CLIENTS 1024u

struct ttmon_http_conn {
	struct ttmon_http_conn *prev, *next;
	struct ttmon_http_listener *listener;
	struct MHD_Connection *mhd;
	int fd; /* owned by libmicrohttpd */
	enum ttmon_http_state state;
	uint64_t since_ns;     /* begin of the state; REPLYING: when a byte was last taken */
	uint64_t given;	       /* bytes of this reply that libmicrohttpd has requested */
	uint64_t taken;	       /* highest number of them that has left the socket's buffer */
	uint64_t window_ns;    /* when the rate was last checked */
	uint64_t window_taken; /* bytes taken by then */
	struct ttmon_http_client *client;
	uint64_t turn_ns; /* HELD: until then */
	bool has_turn;	  /* this request had its turn */
	struct ttmon_http_later *later;
	struct ttmon_http_source *idle; /* IDLE: the stream without data */
};

struct ttmon_http_listener {
	struct ttmon_http *h;
	struct MHD_Daemon *daemon;
	struct ttmon_usock usock; /* the fd belongs to the daemon once there is one; path NULL: not our file */
	char name[128];		  /* for messages */
	bool local;		  /* a Unix socket */
	bool loopback;		  /* TCP that only this host can reach */
	unsigned int open;	  /* connections that are not CUT */
	unsigned int limit;	  /* of these */
};

struct ttmon_http {
	int epoll_fd;
	const struct ttmon_http_route *routes;
	size_t nr_routes;
	void *ctx;
	const char *socket; /* where the routes are served that TCP does not serve; NULL: nowhere */
	struct ttmon_http_listener listeners[TTMON_HTTP_LISTENERS];
	size_t nr_listeners;
	const char *missing[TTMON_HTTP_LISTEN_MAX]; /* TCP addresses that could not be bound; borrowed */
	size_t nr_missing;
	unsigned int limit;		      /* connections of each listener */
	struct ttmon_http_conn *first, *last; /* by age, oldest first */
	struct ttmon_http_client clients[TTMON_HTTP_CLIENTS];
	unsigned int nr_held;
	int diag_fd; /* NETLINK_SOCK_DIAG; -1: clients on this host's own addresses are identified by address only */
	uint64_t (*now)(void); /* ttmon_mono_ns; tests replace it */
	/*
	 * A connection was resumed: libmicrohttpd handles it when it is run, but does not request to be run.
	 */
	bool resumed;
	bool ending;	   /* streams without data end now */
	uint64_t sweep_ns; /* when the connections were last checked */
	struct ttmon_http_stats stats;
};

/* ---- listen.c: *l is filled in except for h ---- */

/* -EINVAL: not an address; else the kernel's error. why: one line. */
int ttmon_http_listen(const char *address, struct ttmon_http_listener *l, char *why, size_t n) _must_check;
/* -EINVAL: not an address, and why says so. */
int ttmon_http_parse(const char *address, struct sockaddr_storage *ret, socklen_t *len, char *why,
		     size_t n) _must_check;
/* Takes fd, also on failure. An error is logged in one line. */
int ttmon_http_listen_fd(int fd, struct ttmon_http_listener *l) _must_check;

/* ---- conn.c ---- */

/* Connections that each of so many listeners may have, by the limit of open files. */
unsigned int ttmon_http_limit(size_t nr_listeners);
/* How many more connections libmicrohttpd accepts: those that were cut but are not closed yet. */
#define TTMON_HTTP_SPARE 32u

/* Callbacks of libmicrohttpd: a connection begins or ends; a request is complete. */
void ttmon_http_on_conn(void *cls, struct MHD_Connection *c, void **ctx, enum MHD_ConnectionNotificationCode what);
void ttmon_http_on_completed(void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why);
struct ttmon_http_conn *ttmon_http_conn_of(struct MHD_Connection *c);
void ttmon_http_conn_enter(struct ttmon_http_conn *conn, enum ttmon_http_state state);
/*
 * Cuts off connections that take too long, once a second; returns ms until that is due, -1 without
 * connections.
 */
void ttmon_http_sweep(struct ttmon_http *h);
int ttmon_http_sweep_ms(const struct ttmon_http *h);

/* Its turn comes in so many ns. */
void ttmon_http_conn_hold(struct ttmon_http_conn *conn, uint64_t ns);
/*
 * Resumes held requests whose turn has come; with all, all of them. ms until the next one's turn, -1:
 * none is held.
 */
void ttmon_http_release(struct ttmon_http *h, bool all);
int ttmon_http_held_ms(const struct ttmon_http *h);

/* ---- client.c ---- */

/* A connection begins, ends. */
void ttmon_http_client_came(struct ttmon_http_conn *conn);
void ttmon_http_client_went(struct ttmon_http_conn *conn);
/* True if its requests are not limited. */
bool ttmon_http_client_is_free(const struct ttmon_http_conn *conn);
/*
 * It makes a request: returns how long that has to wait, and counts it; UINT64_MAX: too long, the
 * request is refused.
 */
uint64_t ttmon_http_client_wait_ns(struct ttmon_http_conn *conn);

/* ---- request.c ---- */

enum MHD_Result ttmon_http_on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
				      const char *version, const char *upload, size_t *upload_size, void **state);
/* Callback of libmicrohttpd: decodes %XX in paths and arguments. */
size_t ttmon_http_unescape(void *cls, struct MHD_Connection *c, char *s);

/* ---- reply.c ---- */

/* reply->priv: what the handler set besides the body. */
struct ttmon_http_answer {
	struct ttmon_http_conn *conn;
	struct ttmon_http_source *stream;
	unsigned int allow; /* methods, for a 405 */
	bool close;	    /* the connection ends with the reply */
	bool late;	    /* its client has made too many requests */
	bool only_head;	    /* the request is a HEAD */
	bool later;
};

/* {"error": text} with a newline, to be freed; NULL: out of memory. */
char *ttmon_http_error_text(const char *text);
/* Sends the reply that the handler made; takes body. */
enum MHD_Result ttmon_http_send(const struct ttmon_http_reply *reply, char *body, size_t len);
/* The connection runs again, and the delayed reply is ready. */
enum MHD_Result ttmon_http_send_later(struct ttmon_http_conn *conn);
/* No answer will come: sends an error to clients that still wait. */
void ttmon_http_later_cancel(struct ttmon_http_later *l);
void ttmon_http_later_free(struct ttmon_http_later *l);
void ttmon_http_source_free(struct ttmon_http_source *s);
/* True if this Accept-Encoding allows gzip. */
bool ttmon_http_wants_gzip(const char *accept_encoding);

#endif
