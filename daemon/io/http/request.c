// SPDX-License-Identifier: GPL-2.0-only
/*
 * request.c: finds the route of a request, checks whether the client may use it, and makes the page
 * that lists the routes.
 *
 * On TCP the client is unknown: only routes for every client are served there. A web page can make a
 * browser on this host send requests under a name that it resolves to 127.0.0.1 (DNS rebinding); hence
 * on loopback a Host that is neither a number nor localhost is refused.
 */
#include "daemon/io/http/http_int.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <jansson.h>

static const char *header(const struct ttmon_http_reply *reply, const char *name)
{
	return MHD_lookup_connection_value(reply->connection, MHD_HEADER_KIND, name);
}

const char *ttmon_http_arg(const struct ttmon_http_reply *reply, const char *name)
{
	const char *value = NULL;
	size_t len = 0;

	if (MHD_lookup_connection_value_n(reply->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value, &len) !=
	    MHD_YES)
		return NULL;
	return value ? value : "";
}

/* A decoded NUL would end the string early: such a path or argument is invalid. */
size_t ttmon_http_unescape(void *cls, struct MHD_Connection *c, char *s)
{
	(void)cls;
	(void)c;
	return strstr(s, "%00") ? strlen(s) : MHD_http_unescape(s);
}

char *ttmon_http_error_text(const char *text)
{
	_cleanup_free_ char *quoted = NULL;
	/*
	 * json_string() fails for text that is not UTF-8, as a file name may be, or that was cut within a
	 * character.
	 */
	json_t *string = json_string(text);
	char *line = NULL;

	if (string)
		quoted = json_dumps(string, JSON_ENCODE_ANY);
	json_decref(string);
	return asprintf(&line, "{\"error\": %s}\n", quoted ? quoted : "\"error\"") < 0 ? NULL : line;
}

void ttmon_http_error(struct ttmon_http_reply *reply, unsigned int status, const char *fmt, ...)
{
	struct ttmon_http_answer *answer = reply->priv;
	_cleanup_free_ char *line = NULL;
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ttmon_http_source_free(answer->stream);
	answer->stream = NULL;
	line = ttmon_http_error_text(text);
	rewind(reply->body);
	fputs(line ? line : "{\"error\": \"error\"}\n", reply->body);
	reply->status = status;
	reply->content_type = TTMON_HTTP_JSON;
}

/* ---- the index ---- */

static void write_text(const struct ttmon_http *h, struct ttmon_http_reply *reply)
{
	reply->content_type = TTMON_HTTP_TEXT;
	for (size_t i = 0; i < h->nr_routes; i++)
		if (reply->local || h->routes[i].everybody)
			fprintf(reply->body, "%-24s %s\n", h->routes[i].path, h->routes[i].help);
	if (!reply->local && h->socket)
		fprintf(reply->body, "%-24s %s\n", "more", h->socket);
}

static void write_escaped(FILE *f, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			fputc(*s, f);
		}
	}
}

static void write_row(FILE *f, const struct ttmon_http_route *r)
{
	/* The segment after the last '/' is not known, so there is nothing to link. */
	bool link = r->path[strlen(r->path) - 1] != '/';

	fputs("<tr><td>", f);
	if (link) {
		fputs("<a href=\"", f);
		write_escaped(f, r->path);
		fputs("\">", f);
	}
	write_escaped(f, r->path);
	fputs(link ? "</a></td><td>" : "ID</td><td>", f);
	write_escaped(f, r->help);
	fputs("</td></tr>\n", f);
}

static void write_html(const struct ttmon_http *h, struct ttmon_http_reply *reply)
{
	FILE *f = reply->body;

	reply->content_type = "text/html; charset=utf-8";
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ttmond</title></head>\n"
	      "<body><h1>ttmond</h1>\n<table>\n",
	      f);
	for (size_t i = 0; i < h->nr_routes; i++)
		if (reply->local || h->routes[i].everybody)
			write_row(f, &h->routes[i]);
	fputs("</table>\n", f);
	if (!reply->local && h->socket) {
		fputs("<p>More is on the Unix socket ", f);
		write_escaped(f, h->socket);
		fputs(".</p>\n", f);
	}
	fputs("</body></html>\n", f);
}

static void write_index(void *ctx, struct ttmon_http_reply *reply)
{
	if (strcasestr(reply->accept, "text/html"))
		write_html(ctx, reply);
	else
		write_text(ctx, reply);
}

/* ---- routes ---- */

static const struct ttmon_http_route index_route = { "/", "", write_index, TTMON_HTTP_GET, true };

static const struct ttmon_http_route *find_route(const struct ttmon_http *h, struct ttmon_http_reply *reply)
{
	reply->rest = "";
	for (size_t i = 0; i < h->nr_routes; i++) {
		const struct ttmon_http_route *r = &h->routes[i];
		size_t n = strlen(r->path);

		if (r->path[n - 1] != '/') {
			if (!strcmp(r->path, reply->path))
				return r;
		} else if (!strncmp(r->path, reply->path, n) && reply->path[n] && !strchr(reply->path + n, '/')) {
			reply->rest = reply->path + n;
			return r;
		}
	}
	return strcmp(reply->path, "/") ? NULL : &index_route;
}

static unsigned int method_bit(const char *method)
{
	if (!strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD))
		return TTMON_HTTP_GET;
	if (!strcmp(method, MHD_HTTP_METHOD_PUT))
		return TTMON_HTTP_PUT;
	return strcmp(method, MHD_HTTP_METHOD_DELETE) ? 0 : TTMON_HTTP_DELETE;
}

/*
 * What the headers say about the request's end and its host; libmicrohttpd returns only the first of
 * several.
 */
struct framing {
	unsigned int lengths, codings, hosts;
	bool body;
};

static enum MHD_Result add_framing(void *cls, enum MHD_ValueKind kind, const char *key, const char *value)
{
	struct framing *f = cls;

	(void)kind;
	if (!strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH)) {
		f->lengths++;
		f->body |= !value || !*value || value[strspn(value, "0")];
	} else if (!strcasecmp(key, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
		f->codings++;
		f->body = true;
	} else if (!strcasecmp(key, MHD_HTTP_HEADER_HOST)) {
		f->hosts++;
	}
	return MHD_YES;
}

static struct framing framing_of(struct MHD_Connection *c)
{
	struct framing f = { 0 };

	MHD_get_connection_values(c, MHD_HEADER_KIND, add_framing, &f);
	return f;
}

/*
 * A proxy may see another end of the request, or another host, than is seen here (RFC 9112, 6.3 and
 * 3.2).
 */
static bool is_ambiguous(const struct framing *f)
{
	return f->lengths > 1 || f->codings > 1 || (f->lengths && f->codings) || f->hosts > 1;
}

/* "HOST", "HOST:PORT", "[v6]:PORT", as a browser sends it. */
static bool is_number_or_localhost(const char *host)
{
	char name[INET6_ADDRSTRLEN + 1];
	struct in6_addr addr;
	bool v6 = *host == '[';
	size_t n = v6 ? strcspn(++host, "]") : strcspn(host, ":");
	const char *rest = host + n;

	if (n >= sizeof(name) || (v6 && *rest++ != ']'))
		return false;
	/* Nothing, or a port. */
	if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")]))
		return false;
	memcpy(name, host, n);
	name[n] = '\0';
	return inet_pton(v6 ? AF_INET6 : AF_INET, name, &addr) == 1 || (!v6 && !strcasecmp(name, "localhost"));
}

/* Makes a reply if the handler must not be called. */
static bool refused(const struct ttmon_http_listener *l, const struct ttmon_http_route *r,
		    struct ttmon_http_reply *reply)
{
	struct ttmon_http_answer *answer = reply->priv;
	const char *host = header(reply, MHD_HTTP_HEADER_HOST);
	struct framing f = framing_of(reply->connection);

	if (answer->late) {
		answer->close = true;
		ttmon_http_error(reply, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests, at most %u a second",
				 TTMON_HTTP_PER_S);
	} else if (is_ambiguous(&f)) {
		answer->close = true;
		ttmon_http_error(reply, MHD_HTTP_BAD_REQUEST, "several lengths, or several hosts");
	} else if (l->loopback && host && *host && !is_number_or_localhost(host)) {
		ttmon_http_error(reply, MHD_HTTP_FORBIDDEN, "ask by number or as localhost, not under a name");
	} else if (!r) {
		ttmon_http_error(reply, MHD_HTTP_NOT_FOUND, "no such path, / lists them");
	} else if (!r->everybody && !l->local) {
		ttmon_http_error(reply, MHD_HTTP_FORBIDDEN, "only on the Unix socket%s%s", l->h->socket ? ", " : "",
				 l->h->socket ? l->h->socket : "");
	} else if (!(reply->method & (r->methods ? r->methods : TTMON_HTTP_GET))) {
		answer->allow = r->methods ? r->methods : TTMON_HTTP_GET;
		ttmon_http_error(reply, MHD_HTTP_METHOD_NOT_ALLOWED, "not with this method");
	} else if (f.body) {
		ttmon_http_error(reply, MHD_HTTP_CONTENT_TOO_LARGE, "requests have no body here");
	} else {
		return false;
	}
	return true;
}

static void fill_peer(const struct ttmon_http_conn *conn, struct ttmon_http_reply *reply)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	reply->uid = (uid_t)-1;
	reply->gid = (gid_t)-1;
	/* On TCP SO_PEERCRED succeeds too, with pid 0 and uid -1. */
	if (!conn->listener->local || getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return;
	reply->local = true;
	reply->uid = cred.uid;
	reply->gid = cred.gid;
	reply->pid = cred.pid;
}

/* late: its client has made too many requests. */
static enum MHD_Result answer_request(struct ttmon_http_conn *conn, const char *url, const char *method, bool late)
{
	struct ttmon_http_answer answer = { .conn = conn,
					    .only_head = !strcmp(method, MHD_HTTP_METHOD_HEAD),
					    .late = late };
	struct ttmon_http_reply reply = {
		.path = url,
		.method = method_bit(method),
		.status = MHD_HTTP_OK,
		.content_type = TTMON_HTTP_JSON,
		.connection = conn->mhd,
		.priv = &answer,
	};
	const struct ttmon_http_listener *l = conn->listener;
	const struct ttmon_http_route *r;
	char *body = NULL;
	size_t len = 0;

	reply.body = open_memstream(&body, &len);
	if (!reply.body)
		return MHD_NO;
	reply.accept = header(&reply, MHD_HTTP_HEADER_ACCEPT);
	if (!reply.accept)
		reply.accept = "";
	fill_peer(conn, &reply);
	r = find_route(l->h, &reply);
	if (!refused(l, r, &reply))
		r->fn(r == &index_route ? l->h : l->h->ctx, &reply);
	/* Out of memory on the way: the connection is closed instead of sending half a document. */
	if (fclose(reply.body)) {
		ttmon_http_source_free(answer.stream);
		free(body);
		return MHD_NO;
	}
	return ttmon_http_send(&reply, body, len);
}

/*
 * Called first with the headers, then, unless the request was answered at once, without a body; and
 * again when a suspended connection runs again. A request with a body is answered at once, since
 * otherwise the body would be read to its end.
 */
enum MHD_Result ttmon_http_on_request(void *cls, struct MHD_Connection *c, const char *url, const char *method,
				      const char *version, const char *upload, size_t *upload_size, void **state)
{
	struct ttmon_http_conn *conn = ttmon_http_conn_of(c);
	struct framing f = framing_of(c);
	uint64_t wait_ns = 0;
	static int seen;
	bool whole;

	(void)cls;
	(void)version;
	(void)upload;
	if (!conn || *upload_size)
		return MHD_NO;
	/* A request with a body is refused before the body is read. */
	whole = !f.body && !is_ambiguous(&f);
	if (!*state && whole) {
		*state = &seen;
		return MHD_YES;
	}
	if (conn->later)
		return ttmon_http_send_later(conn);
	/* Pipelined after a stream that ends with the server: no request may be delayed any more. */
	if (conn->listener->h->ending)
		return MHD_NO;
	if (!conn->has_turn)
		wait_ns = ttmon_http_client_wait_ns(conn);
	if (wait_ns && wait_ns != UINT64_MAX && whole) {
		ttmon_http_conn_hold(conn, wait_ns);
		return MHD_YES;
	}
	conn->listener->h->stats.limited += wait_ns == UINT64_MAX;
	return answer_request(conn, url, method, wait_ns == UINT64_MAX);
}
