/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * client.h: one GET to the daemon's Unix socket, and what came back.
 *
 * Just enough HTTP/1.1 for libmicrohttpd at the other end: Connection: close, Content-Length or chunked, a bounded
 * reply. What the other end sends is not trusted to be HTTP.
 */
#ifndef TTMON_CLIENT_H
#define TTMON_CLIENT_H

#include <jansson.h>

#include "util/util.h"

#define TTMON_SOCKET_DEFAULT   "/run/ttmond/ttmond.sock"
#define TTMON_CLIENT_REPLY_MAX (256u << 20)
#define TTMON_CLIENT_TIMEOUT_S 10

struct ttmon_client_reply {
	int status; /* 100..999 */
	char *body; /* NUL-terminated behind len */
	size_t len;
};
void ttmon_client_reply_fini(struct ttmon_client_reply *reply);

/* All bytes of a connection into status and body. -EBADMSG: not HTTP, or cut off. */
int ttmon_client_parse(const char *raw, size_t n, struct ttmon_client_reply *ret) _must_check;
/* -ETIMEDOUT: no answer; -EFBIG: longer than TTMON_CLIENT_REPLY_MAX; -EBADMSG; the errors of connect(2). */
int ttmon_client_get(const char *socket, const char *path, struct ttmon_client_reply *ret) _must_check;

/* ttmon_client_get() for a command: anything but a 200 is an error (-EREMOTEIO), every error is one line on stderr. */
int ttmon_client_fetch(const char *socket, const char *path, struct ttmon_client_reply *ret) _must_check;
/* The body as a JSON object; an error is one line on stderr. */
int ttmon_client_json(const struct ttmon_client_reply *reply, json_t **ret) _must_check;

#endif
