// SPDX-License-Identifier: GPL-2.0-only
/*
 * client.c: identifies clients, and limits the requests of each.
 *
 * A client is a user: on the Unix socket and on this host's own addresses the user that opened the
 * connection, as the kernel reports it (SO_PEERCRED, sock_diag(7)). From other hosts it is an address,
 * of IPv6 the first 64 bits. Over TCP a client other than root has TTMON_HTTP_BURST requests, and
 * TTMON_HTTP_PER_S more each second: an earlier request waits, and is refused (429) if it would wait
 * for more than TTMON_HTTP_WAIT_S. A waiting request costs nothing. So a client's flood costs the
 * others no time.
 */
#include "daemon/io/http/http_int.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

#include "lib/base/hash.h"

#define INTERVAL_NS (NSEC_PER_SEC / TTMON_HTTP_PER_S)
#define ALL_STATES  0xffffffffu

/* The two ends of a connection as the client sees it: its own address first. */
struct ends {
	int family;
	__be32 src[4], dst[4];
	__be16 sport, dport;
};

static bool put_end(const struct sockaddr_storage *ss, int family, __be32 addr[4], __be16 *port)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)ss;

	if (ss->ss_family != family)
		return false;
	if (family == AF_INET) {
		addr[0] = v4->sin_addr.s_addr;
		*port = v4->sin_port;
	} else {
		memcpy(addr, &v6->sin6_addr, sizeof(v6->sin6_addr));
		*port = v6->sin6_port;
	}
	return true;
}

/* The user of the socket at the other end, if that is on this host. */
static bool user_of(int diag, const struct ends *e, uid_t *ret)
{
	struct {
		struct nlmsghdr n;
		struct inet_diag_req_v2 r;
	} ask = {
		.n = { .nlmsg_len = sizeof(ask), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		.r = { .sdiag_family = (__u8)e->family,
		       .sdiag_protocol = IPPROTO_TCP,
		       .idiag_states = ALL_STATES,
		       .id = { .idiag_sport = e->sport,
			       .idiag_dport = e->dport,
			       .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
	};
	struct {
		struct nlmsghdr n;
		struct inet_diag_msg m;
		char more[4096];
	} got;
	ssize_t n;

	memcpy(ask.r.id.idiag_src, e->src, sizeof(e->src));
	memcpy(ask.r.id.idiag_dst, e->dst, sizeof(e->dst));
	if (diag < 0 || send(diag, &ask, sizeof(ask), 0) != sizeof(ask))
		return false;
	/* The kernel answers within send(2). */
	n = recv(diag, &got, sizeof(got), MSG_DONTWAIT);
	if (n < (ssize_t)(sizeof(got.n) + sizeof(got.m)) || got.n.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	*ret = got.m.idiag_uid;
	return true;
}

/* For an IPv4 client on an IPv6 socket (::ffff:a.b.c.d) the socket at the other end is an IPv4 one. */
static void unmap(struct ends *e)
{
	static const __be32 zero;

	if (e->family != AF_INET6 || e->src[0] != zero || e->src[1] != zero || e->src[2] != htonl(0xffff))
		return;
	e->family = AF_INET;
	e->src[0] = e->src[3];
	e->dst[0] = e->dst[3];
	memset(&e->src[1], 0, 3 * sizeof(e->src[0]));
	memset(&e->dst[1], 0, 3 * sizeof(e->dst[0]));
}

static void key_of(const struct ttmon_http *h, const struct ttmon_http_conn *conn, struct ttmon_http_key *key)
{
	struct sockaddr_storage own, peer;
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer), len = sizeof(struct ucred);
	struct ends e = { 0 };
	struct ucred cred;

	*key = (struct ttmon_http_key){ 0 };
	if (conn->listener->local) {
		key->is_user = !getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
		key->id[0] = key->is_user ? cred.uid : 0;
		return;
	}
	if (getsockname(conn->fd, (struct sockaddr *)&own, &own_len) ||
	    getpeername(conn->fd, (struct sockaddr *)&peer, &peer_len))
		return;
	e.family = own.ss_family;
	if (!put_end(&peer, e.family, e.src, &e.sport) || !put_end(&own, e.family, e.dst, &e.dport))
		return;
	unmap(&e);
	if (user_of(h->diag_fd, &e, &cred.uid)) {
		key->is_user = true;
		key->id[0] = cred.uid;
		return;
	}
	key->family = e.family;
	key->id[0] = e.src[0];
	key->id[1] = e.family == AF_INET6 ? e.src[1] : 0;
}

static bool same_key(const struct ttmon_http_key *a, const struct ttmon_http_key *b)
{
	return a->is_user == b->is_user && a->family == b->family && a->id[0] == b->id[0] && a->id[1] == b->id[1];
}

/* If all lines are used by open connections, the last line is shared. */
static struct ttmon_http_client *line_of(struct ttmon_http *h, const struct ttmon_http_key *key)
{
	struct ttmon_http_client *free_line = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(h->clients); i++) {
		struct ttmon_http_client *c = &h->clients[i];

		if (c->used && same_key(&c->key, key))
			return c;
		if (!c->open &&
		    (!free_line || !c->used || (free_line->used && ttmon_before(c->next_ns, free_line->next_ns))))
			free_line = c;
		if (!c->used)
			break;
	}
	if (!free_line)
		return &h->clients[ARRAY_SIZE(h->clients) - 1];
	*free_line = (struct ttmon_http_client){ .key = *key, .used = true };
	return free_line;
}

void ttmon_http_client_came(struct ttmon_http_conn *conn)
{
	struct ttmon_http *h = conn->listener->h;
	struct ttmon_http_key key;

	key_of(h, conn, &key);
	conn->client = line_of(h, &key);
	conn->client->open++;
}

void ttmon_http_client_went(struct ttmon_http_conn *conn)
{
	if (conn->client)
		conn->client->open--;
	conn->client = NULL;
}

bool ttmon_http_client_is_free(const struct ttmon_http_conn *conn)
{
	const struct ttmon_http_client *c = conn->client;

	return conn->listener->local || (c->key.is_user && !c->key.id[0]);
}

uint64_t ttmon_http_client_wait_ns(struct ttmon_http_conn *conn)
{
	struct ttmon_http_client *c = conn->client;
	uint64_t now = conn->listener->h->now(), least = now - MIN(now, TTMON_HTTP_BURST * INTERVAL_NS);

	if (ttmon_http_client_is_free(conn))
		return 0;
	if (ttmon_before(c->next_ns, least))
		c->next_ns = least;
	if (ttmon_before(now + TTMON_HTTP_WAIT_S * NSEC_PER_SEC, c->next_ns))
		return UINT64_MAX;
	c->next_ns += INTERVAL_NS;
	return ttmon_before(now, c->next_ns) ? c->next_ns - now : 0;
}
