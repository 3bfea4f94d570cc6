// SPDX-License-Identifier: GPL-2.0-only
/*
 * conn.c: time limits of connections, and which one is closed when there are too many.
 *
 * libmicrohttpd reports when a connection begins and ends and when a request is complete; the rest is
 * derived from the bytes that it has requested and those still in the socket. Once a second all
 * connections are checked. A connection is ended by shutdown(2) of its socket: libmicrohttpd finds it
 * at its end and cleans up, in whatever state it was.
 */
#include "daemon/io/http/http_int.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <linux/sockios.h>

#define SWEEP_NS NSEC_PER_SEC

unsigned int ttmon_http_limit(size_t nr_listeners)
{
	struct rlimit rl;
	rlim_t each;

	if (!nr_listeners || getrlimit(RLIMIT_NOFILE, &rl) || rl.rlim_cur == RLIM_INFINITY)
		return TTMON_HTTP_CONNECTIONS;
	/* Half of the descriptors are for the rest of the daemon. */
	each = rl.rlim_cur / 2 / nr_listeners;
	each = each > TTMON_HTTP_SPARE ? each - TTMON_HTTP_SPARE : 1;
	return (unsigned int)MIN(each, (rlim_t)TTMON_HTTP_CONNECTIONS);
}

struct ttmon_http_conn *ttmon_http_conn_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

void ttmon_http_conn_enter(struct ttmon_http_conn *conn, enum ttmon_http_state state)
{
	/* A connection that was shut down stays so. */
	if (conn->state == TTMON_HTTP_CUT)
		return;
	conn->state = state;
	conn->since_ns = conn->window_ns = conn->listener->h->now();
	conn->given = conn->taken = conn->window_taken = 0;
}

static void cut(struct ttmon_http_conn *conn, uint64_t *counter)
{
	shutdown(conn->fd, SHUT_RDWR);
	conn->state = TTMON_HTTP_CUT;
	conn->listener->open--;
	++*counter;
	/* libmicrohttpd does not check a suspended connection. */
	if (conn->idle)
		ttmon_http_wake(conn->idle);
}

static bool can_go(const struct ttmon_http_conn *conn)
{
	return conn->state != TTMON_HTTP_HELD && conn->state != TTMON_HTTP_LATER && conn->state != TTMON_HTTP_CUT;
}

/*
 * Which of two to close: of the client with more connections, the one that has waited longest for a
 * request, then the one that has taken nothing for longest.
 */
static bool is_worse(const struct ttmon_http_conn *a, const struct ttmon_http_conn *b)
{
	if (a->client != b->client && a->client->open != b->client->open)
		return a->client->open > b->client->open;
	return a->state < b->state || (a->state == b->state && ttmon_before(a->since_ns, b->since_ns));
}

/*
 * Makes room for one more connection, of this client or (NULL) of the client with the most: closes the
 * one that has waited longest for a request; if all are being answered, the one that has taken nothing
 * for longest; then the one that has followed a stream in silence for longest. False: none can be
 * closed.
 */
static bool make_room(struct ttmon_http_listener *l, const struct ttmon_http_client *client)
{
	struct ttmon_http_conn *worst = NULL;

	for (struct ttmon_http_conn *conn = l->h->first; conn; conn = conn->next) {
		if (conn->listener != l || !can_go(conn) || (client && conn->client != client))
			continue;
		if (!worst || is_worse(conn, worst))
			worst = conn;
	}
	if (worst)
		cut(worst, &l->h->stats.crowded);
	return worst;
}

void ttmon_http_conn_hold(struct ttmon_http_conn *conn, uint64_t ns)
{
	struct ttmon_http *h = conn->listener->h;

	ttmon_http_conn_enter(conn, TTMON_HTTP_HELD);
	conn->turn_ns = h->now() + ns;
	h->nr_held++;
	h->stats.held++;
	MHD_suspend_connection(conn->mhd);
}

void ttmon_http_release(struct ttmon_http *h, bool all)
{
	uint64_t now = h->nr_held ? h->now() : 0;

	for (struct ttmon_http_conn *conn = h->nr_held ? h->first : NULL; conn; conn = conn->next) {
		if (conn->state != TTMON_HTTP_HELD || (!all && ttmon_before(now, conn->turn_ns)))
			continue;
		h->nr_held--;
		conn->has_turn = true;
		ttmon_http_conn_enter(conn, TTMON_HTTP_WAITING);
		h->resumed = true;
		MHD_resume_connection(conn->mhd);
	}
}

int ttmon_http_held_ms(const struct ttmon_http *h)
{
	uint64_t now, next = UINT64_MAX;

	if (!h->nr_held)
		return -1;
	now = h->now();
	for (const struct ttmon_http_conn *conn = h->first; conn; conn = conn->next)
		if (conn->state == TTMON_HTTP_HELD)
			next = MIN(next, conn->turn_ns);
	return next <= now ? 0 : (int)((MIN(next - now, NSEC_PER_SEC) + NSEC_PER_MS - 1) / NSEC_PER_MS);
}

static void come(struct ttmon_http_listener *l, struct MHD_Connection *c, void **ctx)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct ttmon_http_conn *conn = calloc(1, sizeof(*conn));
	struct ttmon_http *h = l->h;

	if (!conn) {
		/* A connection without an entry would have no time limit. */
		shutdown(info->connect_fd, SHUT_RDWR);
		return;
	}
	conn->listener = l;
	conn->mhd = c;
	conn->fd = info->connect_fd;
	ttmon_http_client_came(conn);
	if (l->open >= l->limit)
		make_room(l, NULL);
	/*
	 * For a client with too many connections the oldest is closed; if all of them wait for their turn,
	 * this one is.
	 */
	if (!ttmon_http_client_is_free(conn) && conn->client->open > TTMON_HTTP_OPEN && !make_room(l, conn->client))
		shutdown(conn->fd, SHUT_RDWR);
	conn->prev = h->last;
	*(h->last ? &h->last->next : &h->first) = conn;
	h->last = conn;
	l->open++;
	h->stats.open++;
	ttmon_http_conn_enter(conn, TTMON_HTTP_WAITING);
	*ctx = conn;
}

static void go(struct ttmon_http_conn *conn)
{
	struct ttmon_http *h = conn->listener->h;

	*(conn->prev ? &conn->prev->next : &h->first) = conn->next;
	*(conn->next ? &conn->next->prev : &h->last) = conn->prev;
	conn->listener->open -= conn->state != TTMON_HTTP_CUT;
	h->stats.open--;
	h->nr_held -= conn->state == TTMON_HTTP_HELD;
	ttmon_http_client_went(conn);
	ttmon_http_later_free(conn->later);
	free(conn);
}

void ttmon_http_on_conn(void *cls, struct MHD_Connection *c, void **ctx, enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		come(cls, c, ctx);
	else if (*ctx)
		go(TAKE_PTR(*ctx));
}

void ttmon_http_on_completed(void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
	struct ttmon_http_conn *conn = ttmon_http_conn_of(c);

	(void)cls;
	(void)why;
	*state = NULL;
	if (!conn)
		return;
	ttmon_http_later_free(conn->later);
	conn->later = NULL;
	conn->has_turn = false;
	ttmon_http_conn_enter(conn, TTMON_HTTP_WAITING);
}

/*
 * Bytes that libmicrohttpd has requested, minus those still in the socket, have left. A socket that
 * sends big blocks, as Unix sockets do, becomes writable only when most of its buffer is free again:
 * by sent bytes alone a steady slow reader would look dead. A Unix socket also counts its own
 * overhead, so the highest value seen is kept.
 */
static void look(struct ttmon_http_conn *conn, uint64_t now)
{
	int held = 0;
	uint64_t taken;

	if (ioctl(conn->fd, SIOCOUTQ, &held) || held < 0)
		held = 0;
	taken = conn->given > (uint64_t)held ? conn->given - (uint64_t)held : 0;
	if (taken <= conn->taken)
		return;
	conn->taken = taken;
	conn->since_ns = now;
}

static bool is_slow(struct ttmon_http_conn *conn, uint64_t now)
{
	if (conn->state == TTMON_HTTP_WAITING)
		return now - conn->since_ns >= TTMON_HTTP_REQUEST_S * NSEC_PER_SEC;
	if (conn->state != TTMON_HTTP_REPLYING)
		return false;
	look(conn, now);
	if (now - conn->since_ns >= TTMON_HTTP_TIMEOUT_S * NSEC_PER_SEC)
		return true;
	if (now - conn->window_ns < TTMON_HTTP_REPLY_S * NSEC_PER_SEC)
		return false;
	if (conn->taken - conn->window_taken < TTMON_HTTP_REPLY_S * TTMON_HTTP_RATE)
		return true;
	conn->window_ns = now;
	conn->window_taken = conn->taken;
	return false;
}

void ttmon_http_sweep(struct ttmon_http *h)
{
	uint64_t now = h->now();

	if (now - h->sweep_ns < SWEEP_NS)
		return;
	h->sweep_ns = now;
	for (struct ttmon_http_conn *conn = h->first; conn; conn = conn->next)
		if (is_slow(conn, now))
			cut(conn, &h->stats.slow);
}

int ttmon_http_sweep_ms(const struct ttmon_http *h)
{
	uint64_t passed = h->now() - h->sweep_ns;

	if (!h->first)
		return -1;
	return passed >= SWEEP_NS ? 0 : (int)((SWEEP_NS - passed + NSEC_PER_MS - 1) / NSEC_PER_MS);
}
