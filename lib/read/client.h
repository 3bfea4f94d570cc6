/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * client.h: sends one request to the daemon's Unix socket and reads the answer.
 *
 * It implements the part of HTTP/1.1 that libmicrohttpd needs: Connection: close, Content-Length or
 * chunked, a reply of limited size. The answer is not trusted to be valid HTTP.
 */
#ifndef TTMON_CLIENT_H
#define TTMON_CLIENT_H

#include <jansson.h>

#include "lib/base/util.h"

#define TTMON_SOCKET_DEFAULT   "/run/ttmond/ttmond.sock"
#define TTMON_CLIENT_REPLY_MAX (256u << 20)
#define TTMON_CLIENT_TIMEOUT_S 10 /* longest time without a byte */

struct ttmon_client_reply {
	int status; /* 100..999 */
	char *body; /* followed by a NUL at body[len] */
	size_t len;
};
void ttmon_client_reply_fini(struct ttmon_client_reply *reply);

/* Parses all bytes of a connection into status and body. -EBADMSG: not HTTP, or cut off. */
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
 * For commands: reports an error as one line on stderr that begins with the program's name. err:
 * result of the request; a status other than 200 is an error too, -EREMOTEIO.
 */
int ttmon_client_check(const char *socket, const char *path, int err,
		       const struct ttmon_client_reply *reply) _must_check;
/* Calls ttmon_client_get() and ttmon_client_check(). */
int ttmon_client_fetch(const char *socket, const char *path, struct ttmon_client_reply *ret) _must_check;
/*
 * Writes the body of a GET to fd as it arrives, in bounded memory. max_bytes: -EFBIG if it is longer,
 * 0: no limit. timeout_s: longest time without a byte, more than 0. -EBADMSG: the body was cut off;
 * what was written stays. Errors of write(2) are returned too.
 */
int ttmon_client_download(const char *socket, const char *path, int fd, uint64_t max_bytes,
			  unsigned int timeout_s) _must_check;
/*
 * Passes the body of a GET on as it arrives; for a library: nothing is printed. cancel: a descriptor
 * that ends it when it becomes readable (-ECANCELED). timeout_s: longest time without a byte, more
 * than 0: -ETIMEDOUT. If data() returns a value other than 0, the stream ends and returns it. *status:
 * of the answer, 0: none arrived; only the body of a 200 is passed on. Returns 0 at the end of the
 * body.
 */
struct ttmon_client_stream {
	int cancel;
	unsigned int timeout_s;
	int (*data)(void *ctx, const char *at, size_t n);
	void *ctx;
};
int ttmon_client_open_stream(const char *socket, const char *path, const struct ttmon_client_stream *to,
			     int *status) _must_check;
/* Parses the body, which must be a JSON object. */
int ttmon_client_json(const struct ttmon_client_reply *reply, json_t **ret) _must_check;

#endif
