/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * holder.h: which socket of this host has a TCP address that cannot be bound, and which process has
 * that socket. Any thread; ttmon_http_holder_job() is for helpers.
 *
 * The kernel lists the socket's user and inode (sock_diag(7)), only in the network namespace of the
 * caller, which is where the address is taken. Before Linux 6.8 it does not list sockets that are
 * bound and do not listen.
 */
#ifndef TTMON_HTTP_HOLDER_H
#define TTMON_HTTP_HOLDER_H

#include <sys/socket.h>

#include "lib/os/helpers.h"

struct ttmon_http_holder {
	uid_t uid;	/* the user that made the socket */
	uint32_t inode; /* of the socket, never 0 */
};

/* Finds a socket that overlaps with an IPv4 or IPv6 address. Returns false if none is found. */
bool ttmon_http_find_holder(const struct sockaddr_storage *addr, struct ttmon_http_holder *ret);
/*
 * A helper's function, since it may read the descriptors of every process of the host. in: a struct
 * ttmon_http_holder; answer: the pid (uint32_t) of a process that has the socket, one of the socket's
 * user if there is one. -ESRCH: none was found.
 */
int ttmon_http_holder_job(const void *ctx, const void *in, size_t n, int fd, struct ttmon_helper_out *out);

#endif
