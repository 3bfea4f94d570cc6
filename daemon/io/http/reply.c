// SPDX-License-Identifier: GPL-2.0-only
/*
 * reply.c: replies: a body in memory, a stream, a file that comes later.
 *
 * All three are sources from which libmicrohttpd requests a block at a time: so it is known how much
 * of any reply a client has taken (conn.c uses that). Bodies in memory are compressed at the fastest
 * level, which is most of what there is to gain.
 */
#include "daemon/io/http/http_int.h"

#include <ctype.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#include "lib/os/log.h"

#define BLOCK	   65536u /* of streams and files; libmicrohttpd takes it in parts */
#define SEND_BLOCK 32768u
#define GZIP_MIN   1024u /* bytes from which compressing pays */
#define GZIP_LEVEL 1

struct ttmon_http_source {
	struct ttmon_http_conn *conn;
	ttmon_http_next_fn next; /* NULL: everything is in buf */
	void (*done)(void *ctx);
	void *ctx;
	char *buf;
	size_t at, len;
};

struct ttmon_http_later {
	struct ttmon_http_conn *conn;
	bool ready;
	int fd; /* -1: send an error */
	const char *content_type;
	unsigned int status;
	char *text;
};

/* ---- sources ---- */

/* The source has no data now. */
static ssize_t wait_for_more(struct ttmon_http_source *s)
{
	if (s->conn->state == TTMON_HTTP_CUT)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (s->conn->listener->h->ending)
		return MHD_CONTENT_READER_END_OF_STREAM;
	ttmon_http_conn_enter(s->conn, TTMON_HTTP_IDLE);
	s->conn->idle = s;
	MHD_suspend_connection(s->conn->mhd);
	return 0;
}

void ttmon_http_wake(struct ttmon_http_source *s)
{
	struct ttmon_http_conn *conn = s->conn;

	if (conn->idle != s)
		return;
	conn->idle = NULL;
	ttmon_http_conn_enter(conn, TTMON_HTTP_REPLYING);
	conn->listener->h->resumed = true;
	MHD_resume_connection(conn->mhd);
}

static ssize_t give(void *cls, uint64_t pos, char *out, size_t max)
{
	struct ttmon_http_source *s = cls;
	size_t n;

	(void)pos;
	if (s->at == s->len && s->next) {
		ssize_t got = s->next(s->ctx, s->buf, BLOCK);

		if (got == -EAGAIN)
			return wait_for_more(s);
		if (got < 0 || got > BLOCK)
			return MHD_CONTENT_READER_END_WITH_ERROR;
		s->at = 0;
		s->len = (size_t)got;
	}
	n = MIN(max, s->len - s->at);
	if (!n)
		return MHD_CONTENT_READER_END_OF_STREAM;
	memcpy(out, s->buf + s->at, n);
	s->at += n;
	s->conn->given += n;
	s->conn->listener->h->stats.bytes += n;
	return (ssize_t)n;
}

void ttmon_http_source_free(struct ttmon_http_source *s)
{
	if (!s)
		return;
	if (s->done)
		s->done(s->ctx);
	free(s->buf);
	free(s);
}

static void source_free_cb(void *cls)
{
	ttmon_http_source_free(cls);
}

/* Takes buf; done is called, also on failure. */
static struct ttmon_http_source *source_new(struct ttmon_http_conn *conn, char *buf, size_t len,
					    ttmon_http_next_fn next, void (*done)(void *ctx), void *ctx)
{
	struct ttmon_http_source *s = buf ? malloc(sizeof(*s)) : NULL;

	if (!s) {
		if (done)
			done(ctx);
		free(buf);
		return NULL;
	}
	*s = (struct ttmon_http_source){ .conn = conn, .next = next, .done = done, .ctx = ctx, .buf = buf, .len = len };
	return s;
}

struct ttmon_http_source *ttmon_http_stream(struct ttmon_http_reply *reply, ttmon_http_next_fn next,
					    void (*done)(void *ctx), void *ctx)
{
	struct ttmon_http_answer *answer = reply->priv;

	answer->stream = source_new(answer->conn, malloc(BLOCK), 0, next, done, ctx);
	if (!answer->stream)
		ttmon_http_error(reply, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
	return answer->stream;
}

/* ---- gzip ---- */

/* "token ; q=0.5": true if the weight is 0. */
static bool is_refused(const char *params, const char *end)
{
	const char *q = memchr(params, ';', (size_t)(end - params));

	if (!q)
		return false;
	for (q++; q < end && isspace((unsigned char)*q); q++)
		;
	if (end - q < 2 || tolower((unsigned char)q[0]) != 'q' || q[1] != '=')
		return false;
	/* "0", "0.", "0.000" */
	for (q += 2; q < end && (*q == '0' || *q == '.' || isspace((unsigned char)*q)); q++)
		;
	return q == end;
}

bool ttmon_http_wants_gzip(const char *accept)
{
	bool any = false;

	while (accept && *accept) {
		const char *end = accept + strcspn(accept, ",");
		size_t n;

		accept += strspn(accept, " \t");
		n = strcspn(accept, " \t;,");
		if ((n == 4 && !strncasecmp(accept, "gzip", n)) || (n == 6 && !strncasecmp(accept, "x-gzip", n)))
			return !is_refused(accept, end);
		if (n == 1 && *accept == '*')
			any = !is_refused(accept, end);
		accept = end + (*end == ',');
	}
	return any;
}

/* Compresses body in its place; leaves it if that gains nothing or memory is short. */
static bool compress_body(char **body, size_t *len)
{
	z_stream z = { 0 };
	char *out;
	int r;

	if (*len > UINT32_MAX || deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	out = malloc(*len);
	z.next_in = (unsigned char *)*body;
	z.avail_in = (unsigned int)*len;
	z.next_out = (unsigned char *)out;
	z.avail_out = out ? (unsigned int)*len : 0;
	r = out ? deflate(&z, Z_FINISH) : Z_MEM_ERROR;
	if (r == Z_STREAM_END) {
		free(*body);
		*body = TAKE_PTR(out);
		*len = z.total_out;
	}
	deflateEnd(&z);
	free(out);
	return r == Z_STREAM_END;
}

/* ---- sending ---- */

static enum MHD_Result add_allow(struct MHD_Response *r, unsigned int methods)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%s%s", methods & TTMON_HTTP_GET ? "GET, HEAD, " : "",
		 methods & TTMON_HTTP_PUT ? "PUT, " : "", methods & TTMON_HTTP_DELETE ? "DELETE, " : "");
	text[strlen(text) - 2] = '\0';
	return MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, text);
}

struct reply_head {
	unsigned int status;
	const char *content_type;
	unsigned int allow; /* 0: no such header */
	bool vary, gzip;
	bool only_head;
	bool close;
};

/* Takes s; size MHD_SIZE_UNKNOWN for a stream. */
static enum MHD_Result send_source(struct ttmon_http_source *s, uint64_t size, const struct reply_head *head)
{
	struct ttmon_http_conn *conn = s->conn;
	struct ttmon_http *h = conn->listener->h;
	struct MHD_Response *r = MHD_create_response_from_callback(size, SEND_BLOCK, give, s, source_free_cb);
	enum MHD_Result ok;

	if (!r) {
		ttmon_http_source_free(s);
		return MHD_NO;
	}
	/*
	 * libmicrohttpd 0.9.75 ends the chunks of a HEAD that it never began: with HTTP/1.0 rules there are
	 * none, and the connection ends.
	 */
	if (head->only_head && size == MHD_SIZE_UNKNOWN)
		MHD_set_response_options(r, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
	ok = MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, head->content_type);
	ok = ok && MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	ok = ok && MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	if (head->allow)
		ok = ok && add_allow(r, head->allow);
	if (head->vary)
		ok = ok && MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
	if (head->close)
		ok = ok && MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	if (head->gzip)
		ok = ok && MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	/* Before it is queued: libmicrohttpd may have finished with it when that call returns. */
	ttmon_http_conn_enter(conn, TTMON_HTTP_REPLYING);
	ok = ok && MHD_queue_response(conn->mhd, head->status, r);
	MHD_destroy_response(r);
	h->stats.requests += ok;
	h->stats.errors += ok && head->status >= 400;
	return ok ? MHD_YES : MHD_NO;
}

enum MHD_Result ttmon_http_send(const struct ttmon_http_reply *reply, char *body, size_t len)
{
	struct ttmon_http_answer *answer = reply->priv;
	struct reply_head head = { .status = reply->status,
				   .content_type = reply->content_type,
				   .allow = answer->allow,
				   .close = answer->close,
				   .only_head = answer->only_head };
	struct ttmon_http_source *s = answer->stream;
	uint64_t size = MHD_SIZE_UNKNOWN;

	if (answer->later || s) {
		free(body);
		if (answer->later)
			return MHD_YES;
	} else {
		head.vary = len > GZIP_MIN;
		head.gzip = head.vary &&
			    ttmon_http_wants_gzip(MHD_lookup_connection_value(reply->connection, MHD_HEADER_KIND,
									      MHD_HTTP_HEADER_ACCEPT_ENCODING)) &&
			    compress_body(&body, &len);
		size = len;
		s = source_new(answer->conn, body, len, NULL, NULL, NULL);
	}
	return s ? send_source(s, size, &head) : MHD_NO;
}

/* ---- later ---- */

struct ttmon_http_later *ttmon_http_defer(struct ttmon_http_reply *reply)
{
	struct ttmon_http_answer *answer = reply->priv;
	struct ttmon_http_later *l = malloc(sizeof(*l));

	if (!l) {
		ttmon_http_error(reply, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
		return NULL;
	}
	*l = (struct ttmon_http_later){ .conn = answer->conn, .fd = -1 };
	answer->later = true;
	answer->conn->later = l;
	ttmon_http_conn_enter(answer->conn, TTMON_HTTP_LATER);
	MHD_suspend_connection(answer->conn->mhd);
	return l;
}

static void resume(struct ttmon_http_later *l)
{
	l->ready = true;
	l->conn->listener->h->resumed = true;
	MHD_resume_connection(l->conn->mhd);
}

void ttmon_http_later_file(struct ttmon_http_later *l, int fd, const char *content_type)
{
	l->fd = fd;
	l->status = MHD_HTTP_OK;
	l->content_type = content_type;
	resume(l);
}

void ttmon_http_later_error(struct ttmon_http_later *l, unsigned int status, const char *text)
{
	l->status = status;
	l->content_type = TTMON_HTTP_JSON;
	l->text = ttmon_http_error_text(text);
	resume(l);
}

void ttmon_http_later_cancel(struct ttmon_http_later *l)
{
	if (!l->ready)
		ttmon_http_later_error(l, MHD_HTTP_SERVICE_UNAVAILABLE, "ttmond is ending");
}

void ttmon_http_later_free(struct ttmon_http_later *l)
{
	if (!l)
		return;
	if (l->fd >= 0)
		close(l->fd);
	free(l->text);
	free(l);
}

struct file {
	int fd;
	off_t at;
};

static ssize_t file_next(void *ctx, char *buf, size_t max)
{
	struct file *f = ctx;
	ssize_t n = pread(f->fd, buf, max, f->at);

	/* The end before its size: the file was truncated. */
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	f->at += n;
	return n;
}

static void file_done(void *ctx)
{
	struct file *f = ctx;

	close(f->fd);
	free(f);
}

enum MHD_Result ttmon_http_send_later(struct ttmon_http_conn *conn)
{
	struct ttmon_http_later *l = conn->later;
	const struct reply_head head = { .status = l->status, .content_type = l->content_type };
	struct ttmon_http_source *s;
	struct file *f;
	struct stat st;
	uint64_t size;

	if (!l->ready)
		return MHD_NO;
	if (l->fd < 0) {
		size = l->text ? strlen(l->text) : 0;
		s = source_new(conn, TAKE_PTR(l->text), size, NULL, NULL, NULL);
	} else {
		f = malloc(sizeof(*f));
		if (!f || fstat(l->fd, &st)) {
			free(f);
			return MHD_NO;
		}
		*f = (struct file){ TAKE_FD(l->fd), 0 };
		size = (uint64_t)st.st_size;
		s = source_new(conn, malloc(BLOCK), 0, file_next, file_done, f);
	}
	return s ? send_source(s, size, &head) : MHD_NO;
}
