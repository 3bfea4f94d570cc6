/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * client.h: one request to the daemon's Unix socket, and what came back.
 *
 * Just enough HTTP/1.1 for libmicrohttpd at the other end: Connection: close, Content-Length or
 * chunked, a bounded reply. What the other end sends is not trusted to be HTTP.
 */
#ifndef TTMON_CLIENT_H
#define TTMON_CLIENT_H

#include <jansson.h>

#include "lib/base/util.h"

#define TTMON_SOCKET_DEFAULT   "/run/ttmond/ttmond.sock"
#define TTMON_CLIENT_REPLY_MAX (256u << 20)
#define TTMON_CLIENT_TIMEOUT_S 10 /* without a byte */

struct ttmon_client_reply {
	int status; /* 100..999 */
	char *body; /* NUL-terminated behind len */
	size_t len;
};
void ttmon_client_reply_fini(struct ttmon_client_reply *reply);

/* All bytes of a connection into status and body. -EBADMSG: not HTTP, or cut off. */
int ttmon_client_parse(const char *raw, size_t n, struct ttmon_client_reply *ret) _must_check;
/*
 * method: "GET", "PUT", "DELETE"; path: encoded, with the arguments. -ETIMEDOUT: no byte for
 * TTMON_CLIENT_TIMEOUT_S; -EHOSTDOWN: the process that listens is stopped; -EFBIG: a body longer than
 * TTMON_CLIENT_REPLY_MAX; -EBADMSG; the errors of connect(2).
 */
int ttmon_client_request(const char *socket, const char *method, const char *path,
			 struct ttmon_client_reply *ret) _must_check;
int ttmon_client_get(const char *socket, const char *path, struct ttmon_client_reply *ret) _must_check;

/*
 * For a command: an error is one line on stderr, which begins with the program's name.
 *
 * What a request made of it: err is its result; anything but a 200 is an error too, -EREMOTEIO.
 */
int ttmon_client_check(const char *socket, const char *path, int err,
		       const struct ttmon_client_reply *reply) _must_check;
/* ttmon_client_get() and ttmon_client_check(). */
int ttmon_client_fetch(const char *socket, const char *path, struct ttmon_client_reply *ret) _must_check;
/*
 * The body of a GET, written to fd as it comes, in bounded memory. max_bytes: -EFBIG if it is longer,
 * 0: any length. timeout_s: without a byte, more than 0. -EBADMSG: it ended before its end; what was
 * written by then stays. Errors of write(2) too.
 */
int ttmon_client_download(const char *socket, const char *path, int fd, uint64_t max_bytes,
			  unsigned int timeout_s) _must_check;
/*
 * The body of a GET, given on as it comes; for a library: nothing is printed. cancel: a file that ends
 * it when it becomes readable (-ECANCELED).
 * timeout_s: without a byte, more than 0: -ETIMEDOUT. data() != 0 ends it, and is returned. *status:
 * the answer's, 0: none came; the body is that of a 200 alone. 0: it came to its end.
 */
struct ttmon_client_stream {
	int cancel;
	unsigned int timeout_s;
	int (*data)(void *ctx, const char *at, size_t n);
	void *ctx;
};
int ttmon_client_open_stream(const char *socket, const char *path, const struct ttmon_client_stream *to,
			     int *status) _must_check;
/* The body as a JSON object. */
int ttmon_client_json(const struct ttmon_client_reply *reply, json_t **ret) _must_check;

#endif
