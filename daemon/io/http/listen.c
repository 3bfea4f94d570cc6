// SPDX-License-Identifier: GPL-2.0-only
/*
 * listen.c: listening sockets on TCP, and those that systemd made.
 *
 * Addresses are numbers or localhost: no name is resolved, so that a name server cannot make the
 * daemon listen elsewhere.
 */
#include "daemon/io/http/http_int.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/os/log.h"

/*
 * Bytes that a client may leave unread in the kernel; without this the buffer of each grows to
 * megabytes.
 */
#define SEND_BUFFER (256 << 10)

#define HINT "127.0.0.1:9843, [::1]:9843, localhost:9843 and :9843 are good ones"

/* Splits "HOST:PORT"; host NULL: all of this host's addresses. */
static bool split(char *address, const char **host, const char **port)
{
	char *colon = strrchr(address, ':');
	char *end;

	if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5 ||
	    atoi(colon + 1) > UINT16_MAX)
		return false;
	*colon = '\0';
	*port = colon + 1;
	*host = !*address ? NULL : strcmp(address, "localhost") ? address : "127.0.0.1";
	if (*address != '[')
		return !strchr(address, ':');
	end = strchr(address, ']');
	*host = address + 1;
	if (!end || end[1] || !strchr(address, ':'))
		return false;
	*end = '\0';
	return true;
}

int ttmon_http_parse(const char *address, struct sockaddr_storage *ret, socklen_t *len, char *why, size_t n)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
					.ai_socktype = SOCK_STREAM };
	_cleanup_free_ char *copy = strdup(address);
	struct addrinfo *found = NULL;
	const char *host, *port;

	if (!copy) {
		snprintf(why, n, "cannot listen on %s: out of memory", address);
		return -ENOMEM;
	}
	if (!split(copy, &host, &port) || getaddrinfo(host ? host : "::", port, &hints, &found)) {
		snprintf(why, n, "cannot listen on %s: not HOST:PORT in numbers (" HINT ")", address);
		return -EINVAL;
	}
	memcpy(ret, found->ai_addr, found->ai_addrlen);
	*len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

static int no_ipv6(struct sockaddr_storage *addr, socklen_t *len)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = ((struct sockaddr_in6 *)addr)->sin6_port };

	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &any, sizeof(any));
	*len = sizeof(any);
	return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static bool is_loopback(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;

	return addr->ss_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
					  : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* Sets name, loopback and the limits of a bound TCP socket. */
static void describe_tcp(struct ttmon_http_listener *l)
{
	const int buffer = SEND_BUFFER;
	struct sockaddr_storage addr;
	char host[INET6_ADDRSTRLEN + 32], port[8];
	socklen_t len = sizeof(addr);

	setsockopt(l->usock.fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	if (getsockname(l->usock.fd, (struct sockaddr *)&addr, &len) ||
	    getnameinfo((struct sockaddr *)&addr, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV)) {
		snprintf(l->name, sizeof(l->name), "TCP");
		return;
	}
	snprintf(l->name, sizeof(l->name), strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	l->loopback = is_loopback(&addr);
	if (!l->loopback)
		log_warn("%s is more than this host: everybody who can reach it may read the metrics", l->name);
}

static int tcp_error(const char *address, int err, char *why, size_t n)
{
	switch (-err) {
	case EADDRINUSE:
		snprintf(why, n,
			 "cannot listen on %s: the port is in use (--listen-address takes another one, or none)",
			 address);
		break;
	case EADDRNOTAVAIL:
		snprintf(why, n, "cannot listen on %s: this host does not have the address", address);
		break;
	case EACCES:
		snprintf(why, n, "cannot listen on %s: ports below 1024 take CAP_NET_BIND_SERVICE", address);
		break;
	default:
		snprintf(why, n, "cannot listen on %s: %s", address, strerror(-err));
	}
	return err;
}

int ttmon_http_listen(const char *address, struct ttmon_http_listener *l, char *why, size_t n)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_storage addr;
	const int yes = 1, no = 0;
	socklen_t len;
	int err = ttmon_http_parse(address, &addr, &len, why, n);

	if (err)
		return err;
	fd = socket(addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 && errno == EAFNOSUPPORT && *address == ':')
		fd = no_ipv6(&addr, &len);
	if (fd < 0)
		return tcp_error(address, -errno, why, n);
	/* Allows a port whose old connections are still closing; a port with a listener is refused. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	/* ":9843" means all addresses, IPv4 and IPv6. */
	if (addr.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, (struct sockaddr *)&addr, len) || listen(fd, SOMAXCONN))
		return tcp_error(address, -errno, why, n);
	l->usock.fd = TAKE_FD(fd);
	describe_tcp(l);
	return 0;
}

static int option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) ? -1 : value;
}

static void describe_unix(struct ttmon_http_listener *l)
{
	struct sockaddr_un addr = { 0 };
	socklen_t len = sizeof(addr) - 1;

	if (getsockname(l->usock.fd, (struct sockaddr *)&addr, &len))
		len = 0;
	snprintf(l->name, sizeof(l->name), "%s", len && addr.sun_path[0] ? addr.sun_path : "a Unix socket");
	l->local = true;
}

int ttmon_http_listen_fd(int fd, struct ttmon_http_listener *l)
{
	int domain = option(fd, SO_DOMAIN);

	l->usock.fd = fd;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC))
		return log_error_r(-errno, "cannot serve descriptor %d that was handed over: %m", fd);
	if ((domain != AF_UNIX && domain != AF_INET && domain != AF_INET6) || option(fd, SO_TYPE) != SOCK_STREAM ||
	    option(fd, SO_ACCEPTCONN) != 1)
		return log_error_r(
			-EINVAL,
			"cannot serve descriptor %d that was handed over: no listening stream socket (ListenStream=)",
			fd);
	if (domain == AF_UNIX)
		describe_unix(l);
	else
		describe_tcp(l);
	return 0;
}
