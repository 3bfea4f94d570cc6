// SPDX-License-Identifier: GPL-2.0-only
/*
 * client.c: a minimal HTTP/1.1 client over AF_UNIX.
 *
 * Reads to the end of the connection, which we ask the server to close, and then takes the bytes apart: parsing is a
 * function of the bytes alone. Of the headers only the two that say where the body ends are looked at.
 * Single-threaded; errors go to stderr in ttmon_client_fetch() and ttmon_client_json() and nowhere else.
 */
#include "tools/client.h"

#include <ctype.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

void ttmon_client_reply_fini(struct ttmon_client_reply *reply)
{
	free(reply->body);
	*reply = (struct ttmon_client_reply){ 0 };
}

/* ---- parsing ---- */

struct view {
	const char *at, *end;
};

/* The next line without its CR LF; false when there is none. */
static bool take_line(struct view *in, struct view *line)
{
	/* An answer of no bytes has no address either. */
	const char *nl = in->at == in->end ? NULL : memchr(in->at, '\n', (size_t)(in->end - in->at));

	if (!nl || nl == in->at || nl[-1] != '\r')
		return false;
	*line = (struct view){ in->at, nl - 1 };
	in->at = nl + 1;
	return true;
}

/* All digits, or nothing at all. */
static bool parse_size(const char *at, const char *end, unsigned int base, size_t *ret)
{
	size_t value = 0;

	if (at == end)
		return false;
	for (; at < end; at++) {
		int c = tolower((unsigned char)*at);
		unsigned int digit = isdigit(c)		    ? (unsigned int)(c - '0')
				     : c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a' + 10)
							    : 16;

		if (digit >= base || value > (SIZE_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	*ret = value;
	return true;
}

/* "Name: value" of this name: the value without the blanks around it. */
static bool header_value(const struct view *line, const char *name, struct view *value)
{
	size_t n = strlen(name);

	if ((size_t)(line->end - line->at) <= n || strncasecmp(line->at, name, n) || line->at[n] != ':')
		return false;
	*value = (struct view){ line->at + n + 1, line->end };
	while (value->at < value->end && (*value->at == ' ' || *value->at == '\t'))
		value->at++;
	while (value->end > value->at && (value->end[-1] == ' ' || value->end[-1] == '\t'))
		value->end--;
	return true;
}

static bool view_is(const struct view *v, const char *text)
{
	return (size_t)(v->end - v->at) == strlen(text) && !strncasecmp(v->at, text, strlen(text));
}

static bool parse_status(const struct view *line, int *status)
{
	size_t value;

	/* "HTTP/1.1 200 OK" */
	if (line->end - line->at < 12 || strncmp(line->at, "HTTP/1.", 7) || !isdigit((unsigned char)line->at[7]) ||
	    line->at[8] != ' ' || !parse_size(line->at + 9, line->at + 12, 10, &value) || value < 100 ||
	    (line->end - line->at > 12 && line->at[12] != ' '))
		return false;
	*status = (int)value;
	return true;
}

/* Sizes in hex, each with its bytes and a line end, a size of 0 at the end; out has room for all that is left. */
static bool join_chunks(struct view *in, char *out, size_t *len)
{
	struct view line;
	size_t n;

	*len = 0;
	while (take_line(in, &line)) {
		const char *ext = memchr(line.at, ';', (size_t)(line.end - line.at));

		if (!parse_size(line.at, ext ? ext : line.end, 16, &n))
			return false;
		if (!n)
			return true;
		if (n > (size_t)(in->end - in->at))
			return false;
		memcpy(out + *len, in->at, n);
		*len += n;
		in->at += n;
		if (!take_line(in, &line) || line.at != line.end)
			return false;
	}
	return false;
}

int ttmon_client_parse(const char *raw, size_t n, struct ttmon_client_reply *ret)
{
	struct view in = { raw, raw + n }, line, value;
	bool have_length = false, chunked = false;
	_cleanup_free_ char *body = NULL;
	size_t length = 0;
	int status;

	if (!take_line(&in, &line) || !parse_status(&line, &status))
		return -EBADMSG;
	for (;;) {
		if (!take_line(&in, &line))
			return -EBADMSG;
		if (line.at == line.end)
			break;
		if (header_value(&line, "Content-Length", &value)) {
			if (have_length || !parse_size(value.at, value.end, 10, &length))
				return -EBADMSG;
			have_length = true;
		} else if (header_value(&line, "Transfer-Encoding", &value)) {
			if (chunked || !view_is(&value, "chunked"))
				return -EBADMSG;
			chunked = true;
		}
	}
	/* Two ways to say where it ends: whoever sends both wants to be read in two ways. */
	if (have_length && chunked)
		return -EBADMSG;
	body = malloc((size_t)(in.end - in.at) + 1);
	if (!body)
		return -ENOMEM;
	if (chunked) {
		if (!join_chunks(&in, body, &length))
			return -EBADMSG;
	} else {
		if (!have_length)
			length = (size_t)(in.end - in.at);
		if (length > (size_t)(in.end - in.at))
			return -EBADMSG;
		memcpy(body, in.at, length);
	}
	body[length] = '\0';
	*ret = (struct ttmon_client_reply){ .status = status, .body = TAKE_PTR(body), .len = length };
	return 0;
}

/* ---- the connection ---- */

static int dial(const char *socket_path)
{
	const struct timeval limit = { .tv_sec = TTMON_CLIENT_TIMEOUT_S };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;

	if (strlen(socket_path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, socket_path, strlen(socket_path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* The send timeout is also that of connect() while the backlog is full. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		return -errno;
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return TAKE_FD(fd);
}

static int send_all(int fd, const char *data, size_t n)
{
	while (n) {
		ssize_t done = send(fd, data, n, MSG_NOSIGNAL);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		data += done;
		n -= (size_t)done;
	}
	return 0;
}

static int recv_all(int fd, char **ret, size_t *ret_n)
{
	_cleanup_free_ char *buf = NULL;
	size_t n = 0, room = 0;

	for (;;) {
		ssize_t done;

		if (n == room) {
			size_t more = room ? room * 2 : 65536;
			char *grown;

			if (more > TTMON_CLIENT_REPLY_MAX)
				return -EFBIG;
			grown = realloc(buf, more);
			if (!grown)
				return -ENOMEM;
			buf = grown;
			room = more;
		}
		done = recv(fd, buf + n, room - n, 0);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (done == 0)
			break;
		n += (size_t)done;
	}
	*ret = TAKE_PTR(buf);
	*ret_n = n;
	return 0;
}

int ttmon_client_get(const char *socket_path, const char *path, struct ttmon_client_reply *ret)
{
	_cleanup_free_ char *request = NULL, *raw = NULL;
	_cleanup_close_ int fd = -1;
	size_t n = 0;
	int err;

	if (asprintf(&request, "GET %s HTTP/1.1\r\nHost: ttmond\r\nConnection: close\r\n\r\n", path) < 0) {
		request = NULL;
		return -ENOMEM;
	}
	fd = dial(socket_path);
	if (fd < 0)
		return fd;
	err = send_all(fd, request, strlen(request));
	if (!err)
		err = recv_all(fd, &raw, &n);
	if (err)
		return err;
	return ttmon_client_parse(raw, n, ret);
}

/* ---- for the commands ---- */

static int complain(const char *socket_path, int err)
{
	switch (-err) {
	case ENOENT:
	case ECONNREFUSED:
		fprintf(stderr, "ttmon: no ttmond on %s: %s\n", socket_path, strerror(-err));
		break;
	case EACCES:
		fprintf(stderr, "ttmon: may not ask ttmond on %s: %s (root and the socket's group may)\n", socket_path,
			strerror(-err));
		break;
	case ETIMEDOUT:
		fprintf(stderr, "ttmon: ttmond on %s does not answer: no byte in %d s\n", socket_path,
			TTMON_CLIENT_TIMEOUT_S);
		break;
	case EBADMSG:
		fprintf(stderr, "ttmon: what answers on %s is not ttmond, or it was cut off\n", socket_path);
		break;
	default:
		fprintf(stderr, "ttmon: cannot ask ttmond on %s: %s\n", socket_path, strerror(-err));
	}
	return err;
}

int ttmon_client_fetch(const char *socket_path, const char *path, struct ttmon_client_reply *ret)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	int err;

	err = ttmon_client_get(socket_path, path, &reply);
	if (err)
		return complain(socket_path, err);
	if (reply.status != 200) {
		json_t *root = json_loadb(reply.body, reply.len, 0, NULL);
		const char *text = json_string_value(json_object_get(root, "error"));

		fprintf(stderr, "ttmon: ttmond on %s answers %s with %d%s%s\n", socket_path, path, reply.status,
			text ? ": " : "", text ? text : "");
		json_decref(root);
		return -EREMOTEIO;
	}
	*ret = reply;
	reply = (struct ttmon_client_reply){ 0 };
	return 0;
}

int ttmon_client_json(const struct ttmon_client_reply *reply, json_t **ret)
{
	json_error_t error;
	json_t *root = json_loadb(reply->body, reply->len, 0, &error);

	if (!json_is_object(root)) {
		fprintf(stderr, "ttmon: the answer is not a JSON object: %s\n", root ? "something else" : error.text);
		json_decref(root);
		return -EBADMSG;
	}
	*ret = root;
	return 0;
}
