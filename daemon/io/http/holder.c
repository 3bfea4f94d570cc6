// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/io/http/holder.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

/* include/net/tcp_states.h of Linux 6.8 (91051f003948): bound, neither listening nor connected. */
#define BOUND_INACTIVE 13

/* ---- the socket ---- */

/* An address as sock_diag gives it; IPv4 in the first word. */
struct place {
	int family;
	__be32 addr[4];
	__be16 port;
};

static struct place place_of(const struct sockaddr_storage *ss)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)ss;
	struct place p = { .family = ss->ss_family, .port = v4->sin_port };

	if (p.family == AF_INET) {
		p.addr[0] = v4->sin_addr.s_addr;
	} else {
		p.port = v6->sin6_port;
		memcpy(p.addr, &v6->sin6_addr, sizeof(p.addr));
	}
	return p;
}

static bool is_any(const struct place *p)
{
	return !(p->addr[0] | p->addr[1] | p->addr[2] | p->addr[3]);
}

/* ::ffff:a.b.c.d is the IPv4 address. */
static struct place plain(struct place p)
{
	if (p.family != AF_INET6 || p.addr[0] || p.addr[1] || p.addr[2] != htonl(0xffff))
		return p;
	return (struct place){ .family = AF_INET, .addr = { p.addr[3] }, .port = p.port };
}

/* An IPv6 socket without an address has the IPv4 addresses too, unless it is for IPv6 only. */
static bool overlaps(struct place a, struct place b)
{
	a = plain(a);
	b = plain(b);
	if (a.family != b.family)
		return is_any(a.family == AF_INET6 ? &a : &b);
	return is_any(&a) || is_any(&b) || !memcmp(a.addr, b.addr, sizeof(a.addr));
}

static int ask(int family, unsigned int state, __be16 port)
{
	struct {
		struct nlmsghdr n;
		struct inet_diag_req_v2 r;
	} req = {
		.n = { .nlmsg_len = sizeof(req),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.r = { .sdiag_family = (__u8)family,
		       .sdiag_protocol = IPPROTO_TCP,
		       .idiag_states = 1U << state,
		       .id.idiag_sport = port },
	};
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);

	return fd >= 0 && send(fd, &req, sizeof(req), 0) == sizeof(req) ? TAKE_FD(fd) : -1;
}

static bool take(const struct nlmsghdr *msg, const struct place *wanted, struct ttmon_http_holder *ret)
{
	const struct inet_diag_msg *m = NLMSG_DATA(msg);
	struct place p = { 0 };

	if (msg->nlmsg_type != SOCK_DIAG_BY_FAMILY || msg->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return false;
	p.family = m->idiag_family;
	p.port = m->id.idiag_sport;
	memcpy(p.addr, m->id.idiag_src, p.family == AF_INET ? sizeof(p.addr[0]) : sizeof(p.addr));
	/* A socket whose process has closed it has no inode. */
	if (p.port != wanted->port || !m->idiag_inode || !overlaps(p, *wanted))
		return false;
	*ret = (struct ttmon_http_holder){ .uid = m->idiag_uid, .inode = m->idiag_inode };
	return true;
}

/* The kernel answers within send(2) and recv(2). */
static bool find(int family, unsigned int state, const struct place *wanted, struct ttmon_http_holder *ret)
{
	_cleanup_close_ int fd = ask(family, state, wanted->port);
	_Alignas(struct nlmsghdr) char buf[32768];
	ssize_t n;

	while (fd >= 0 && (n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		size_t left = (size_t)n;

		for (const struct nlmsghdr *msg = (void *)buf; NLMSG_OK(msg, left); msg = NLMSG_NEXT(msg, left)) {
			if (msg->nlmsg_type == NLMSG_DONE || msg->nlmsg_type == NLMSG_ERROR)
				return false;
			if (take(msg, wanted, ret))
				return true;
		}
	}
	return false;
}

bool ttmon_http_find_holder(const struct sockaddr_storage *addr, struct ttmon_http_holder *ret)
{
	const struct place wanted = place_of(addr);

	return find(AF_INET, TCP_LISTEN, &wanted, ret) || find(AF_INET6, TCP_LISTEN, &wanted, ret) ||
	       find(AF_INET, BOUND_INACTIVE, &wanted, ret) || find(AF_INET6, BOUND_INACTIVE, &wanted, ret);
}

/* ---- the process ---- */

static bool has_socket(int proc, const char *pid, const char *name)
{
	char path[300], link[64];
	bool found = false;
	struct dirent *e;
	DIR *d;
	int fd;

	snprintf(path, sizeof(path), "%s/fd", pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && (e = readdir(d))) {
		ssize_t n = readlinkat(fd, e->d_name, link, sizeof(link) - 1);

		link[MAX(n, 0)] = '\0';
		found = !strcmp(link, name);
	}
	closedir(d);
	return found;
}

/* Among the processes of that user, or among all others. */
static uint32_t process_with(const char *name, uid_t uid, bool others)
{
	DIR *proc = opendir("/proc");
	uint32_t pid = 0;
	struct dirent *e;
	struct stat st;

	if (!proc)
		return 0;
	while (!pid && (e = readdir(proc)))
		if (isdigit((unsigned char)e->d_name[0]) && !fstatat(dirfd(proc), e->d_name, &st, 0) &&
		    (st.st_uid != uid) == others && has_socket(dirfd(proc), e->d_name, name))
			pid = (uint32_t)strtoul(e->d_name, NULL, 10);
	closedir(proc);
	return pid;
}

int ttmon_http_holder_job(const void *ctx _unused_, const void *in, size_t n, int fd _unused_,
			  struct ttmon_helper_out *out)
{
	const struct ttmon_http_holder *h = in;
	char name[32];
	uint32_t pid;

	if (n != sizeof(*h))
		return -EINVAL;
	snprintf(name, sizeof(name), "socket:[%u]", h->inode);
	pid = process_with(name, h->uid, false);
	pid = pid ? pid : process_with(name, h->uid, true);
	if (!pid)
		return -ESRCH;
	ttmon_helper_put(out, &pid, sizeof(pid));
	return 0;
}
