/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * http_int.h: what the files of the HTTP server share.
 *
 *   http.c          listeners, one libmicrohttpd daemon each, and the loop's side
 *   listen.c   listening TCP sockets, and those that systemd hands over
 *   conn.c     connections: how long each may take, who goes when there are too many
 *   client.c   who a client is, how much one may ask for
 *   request.c  from a request to the handler of its route
 *   reply.c    from what the handler said to a reply: memory, stream, file later
 */
#ifndef TTMON_HTTP_INT_H
#define TTMON_HTTP_INT_H

#include <microhttpd.h>

#include "daemon/io/http/http.h"
#include "daemon/io/http/usock.h"

#define TTMON_HTTP_LISTENERS (1 + 2 * TTMON_HTTP_LISTEN_MAX)

/*
 * WAITING: for a whole request, since the connection or the end of the reply before; REPLYING: the
 * handler is through, bytes are on their way; HELD: a whole request that waits for its client's turn,
 * not looked at; LATER: it has yet to answer, libmicrohttpd does not look at the connection; IDLE: the
 * same, for more of a stream; CUT: shut down by us, libmicrohttpd is about to see it.
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
	uint32_t open;	  /* connections */
	uint64_t next_ns; /* the turn of its next request, if it has had its burst */
};
#define TTMON_HTTP_CLIENTS 1024u

struct ttmon_http_conn {
	struct ttmon_http_conn *prev, *next;
	struct ttmon_http_listener *listener;
	struct MHD_Connection *mhd;
	int fd; /* libmicrohttpd's */
	enum ttmon_http_state state;
	uint64_t since_ns;     /* of the state; REPLYING: when a byte was last taken */
	uint64_t given;	       /* bytes of this reply that libmicrohttpd has asked for */
	uint64_t taken;	       /* the most of them that were seen to have left the socket's buffer */
	uint64_t window_ns;    /* when the rate was last judged */
	uint64_t window_taken; /* what was taken by then */
	struct ttmon_http_client *client;
	uint64_t turn_ns; /* HELD: until then */
	bool has_turn;	  /* of this request */
	struct ttmon_http_later *later;
	struct ttmon_http_source *idle; /* IDLE: what has nothing yet */
};

struct ttmon_http_listener {
	struct ttmon_http *h;
	struct MHD_Daemon *daemon;
	struct ttmon_usock usock; /* fd is the daemon's once there is one; path NULL: not our file */
	char name[128];		  /* for people */
	bool local;		  /* a Unix socket */
	bool loopback;		  /* TCP that only this host reaches */
	unsigned int open;	  /* connections that are not CUT */
	unsigned int limit;	  /* of these */
};

struct ttmon_http {
	int epoll_fd;
	const struct ttmon_http_route *routes;
	size_t nr_routes;
	void *ctx;
	const char *socket; /* where the routes are that TCP does not serve; NULL: nowhere */
	struct ttmon_http_listener listeners[TTMON_HTTP_LISTENERS];
	size_t nr_listeners;
	const char *missing[TTMON_HTTP_LISTEN_MAX]; /* TCP addresses that could not be had; borrowed */
	size_t nr_missing;
	unsigned int limit;		      /* connections of each listener */
	struct ttmon_http_conn *first, *last; /* by age, oldest first */
	struct ttmon_http_client clients[TTMON_HTTP_CLIENTS];
	unsigned int nr_held;
	int diag_fd; /* NETLINK_SOCK_DIAG; -1: clients on this host's own addresses are known by these alone */
	uint64_t (*now)(void); /* ttmon_mono_ns; tests have a clock of their own */
	/* A connection was: libmicrohttpd sees to it when it is run, and does not say that it wants to be. */
	bool resumed;
	bool ending;	   /* streams that have nothing to say are over */
	uint64_t sweep_ns; /* when the connections were last looked over */
	struct ttmon_http_stats stats;
};

/* ---- listen.c: *l is filled but for h ---- */

/* -EINVAL: no address; else what the kernel says. why: one line. */
int ttmon_http_listen(const char *address, struct ttmon_http_listener *l, char *why, size_t n) _must_check;
/* Takes fd, also on failure. What is wrong is logged, in one line. */
int ttmon_http_listen_fd(int fd, struct ttmon_http_listener *l) _must_check;

/* ---- conn.c ---- */

/* How many connections each of so many listeners may have, by the limit of open files. */
unsigned int ttmon_http_limit(size_t nr_listeners);
/* More than the limit that libmicrohttpd lets in: those that were cut but are not gone yet. */
#define TTMON_HTTP_SPARE 32u

/* libmicrohttpd's: a connection comes and goes; a request is through. */
void ttmon_http_on_conn(void *cls, struct MHD_Connection *c, void **ctx, enum MHD_ConnectionNotificationCode what);
void ttmon_http_on_completed(void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why);
struct ttmon_http_conn *ttmon_http_conn_of(struct MHD_Connection *c);
void ttmon_http_conn_enter(struct ttmon_http_conn *conn, enum ttmon_http_state state);
/* Cut off who takes too long, once a second; ms until that is due, -1 when nobody is there. */
void ttmon_http_sweep(struct ttmon_http *h);
int ttmon_http_sweep_ms(const struct ttmon_http *h);

/* It has its turn later, in so many ns. */
void ttmon_http_conn_hold(struct ttmon_http_conn *conn, uint64_t ns);
/* Those whose turn it is go on; with all, all of them. ms until the next one's, -1: none is held. */
void ttmon_http_release(struct ttmon_http *h, bool all);
int ttmon_http_held_ms(const struct ttmon_http *h);

/* ---- client.c ---- */

/* A connection comes, goes. */
void ttmon_http_client_came(struct ttmon_http_conn *conn);
void ttmon_http_client_went(struct ttmon_http_conn *conn);
/* It may ask for as much as it likes. */
bool ttmon_http_client_is_free(const struct ttmon_http_conn *conn);
/*
 * It asks for something: how long that has to wait, which is counted; UINT64_MAX: too long, it is
 * refused.
 */
uint64_t ttmon_http_client_wait_ns(struct ttmon_http_conn *conn);

/* ---- request.c ---- */

enum MHD_Result ttmon_http_on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
				      const char *version, const char *upload, size_t *upload_size, void **state);
/* libmicrohttpd's: %XX in paths and arguments. */
size_t ttmon_http_unescape(void *cls, struct MHD_Connection *c, char *s);

/* ---- reply.c ---- */

/* reply->priv: what the handler said, beside the body in memory. */
struct ttmon_http_answer {
	struct ttmon_http_conn *conn;
	struct ttmon_http_source *stream;
	unsigned int allow; /* methods, with a 405 */
	bool close;	    /* the connection ends with the reply */
	bool late;	    /* its client has asked for too much */
	bool only_head;	    /* the request is a HEAD */
	bool later;
};

/* {"error": text} with a newline, to be freed; NULL: out of memory. */
char *ttmon_http_error_text(const char *text);
/* Send what the handler made of it; body is taken. */
enum MHD_Result ttmon_http_send(const struct ttmon_http_reply *reply, char *body, size_t len);
/* The connection runs again and what it waited for is there. */
enum MHD_Result ttmon_http_send_later(struct ttmon_http_conn *conn);
/* Nobody will answer any more: an error for those who still wait. */
void ttmon_http_later_cancel(struct ttmon_http_later *l);
void ttmon_http_later_free(struct ttmon_http_later *l);
void ttmon_http_source_free(struct ttmon_http_source *s);
/* Does this Accept-Encoding allow gzip? */
bool ttmon_http_wants_gzip(const char *accept_encoding);

#endif
