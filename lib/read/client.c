// SPDX-License-Identifier: GPL-2.0-only
/*
 * client.c: a minimal HTTP/1.1 client over AF_UNIX.
 *
 * One reader serves all uses: it takes bytes from memory or from a connection, which the server is
 * asked to close, and passes the body to memory, a file or a function. Only the two headers that
 * determine the end of the body are used. Single-threaded. Only the functions for commands print to
 * stderr.
 */
#include "lib/read/client.h"

#include <ctype.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "lib/os/proc.h"

#define HEADERS_MAX 100

void ttmon_client_reply_fini(struct ttmon_client_reply *reply)
{
	free(reply->body);
	*reply = (struct ttmon_client_reply){ 0 };
}

/* ---- sources and sinks ---- */

struct view {
	const char *at, *end;
};

struct source {
	struct view in;
	int fd; /* -1: all data is in `in` */
	/*
	 * a descriptor that ends the reading when it becomes readable; -1: none, and fd itself has the time
	 * limit
	 */
	int cancel;
	unsigned int timeout_s;
	char buf[65536];
};

/* Waits until there is something to read. */
static int wait_for(const struct source *s)
{
	struct pollfd p[] = { { .fd = s->cancel, .events = POLLIN }, { .fd = s->fd, .events = POLLIN } };
	int n;

	do
		n = poll(p, ARRAY_SIZE(p), (int)s->timeout_s * 1000);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == 0 ? -ETIMEDOUT : p[0].revents ? -ECANCELED : 0;
}

/*
 * Reads more bytes behind those in the buffer. Returns 0 at the end, and if the buffer is full: no
 * valid line is that long.
 */
static ssize_t refill(struct source *s)
{
	size_t left = (size_t)(s->in.end - s->in.at);
	ssize_t n;

	if (s->fd < 0)
		return 0;
	memmove(s->buf, s->in.at, left);
	do {
		int err = s->cancel >= 0 ? wait_for(s) : 0;

		if (err)
			return err;
		n = recv(s->fd, s->buf + left, sizeof(s->buf) - left, 0);
	} while (n < 0 && (errno == EINTR || (errno == EAGAIN && s->cancel >= 0)));
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	s->in = (struct view){ s->buf, s->buf + left + n };
	return n;
}

struct sink {
	int fd;	     /* -1: into memory, or to a function */
	bool failed; /* the file was written to without an error */
	uint64_t len, max;
	char *data;
	size_t room;
	const struct ttmon_client_stream *to;
};

static int grow(struct sink *out, size_t n)
{
	size_t want = out->room ? out->room : 65536;
	char *data;

	/* One byte for the NUL. */
	while (want < out->len + n + 1)
		want *= 2;
	if (want == out->room)
		return 0;
	data = realloc(out->data, want);
	if (!data)
		return -ENOMEM;
	out->data = data;
	out->room = want;
	return 0;
}

static int write_all(int fd, const char *at, size_t n)
{
	while (n) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

static int put(struct sink *out, const char *at, size_t n)
{
	int err = 0;

	if (n > out->max - out->len)
		return -EFBIG;
	if (out->to) {
		err = out->to->data(out->to->ctx, at, n);
	} else if (out->fd >= 0) {
		err = write_all(out->fd, at, n);
		out->failed = err != 0;
	} else {
		err = grow(out, n);
		if (!err)
			memcpy(out->data + out->len, at, n);
	}
	if (!err)
		out->len += n;
	return err;
}

/* ---- parsing ---- */

/*
 * Takes the next line, without its CR LF; valid until the next one is taken. -EBADMSG if there is
 * none.
 */
static int take_line(struct source *s, struct view *line)
{
	const char *nl;
	ssize_t n;

	for (;;) {
		size_t left = (size_t)(s->in.end - s->in.at);

		/* An empty answer may have no buffer. */
		nl = left ? memchr(s->in.at, '\n', left) : NULL;
		if (nl)
			break;
		n = refill(s);
		if (n <= 0)
			return n < 0 ? (int)n : -EBADMSG;
	}
	if (nl == s->in.at || nl[-1] != '\r')
		return -EBADMSG;
	*line = (struct view){ s->in.at, nl - 1 };
	s->in.at = nl + 1;
	return 0;
}

/* Parses a size that is all digits. */
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

/* Returns whether a line is the header of this name; value: without the spaces around it. */
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

/* Takes n bytes, or everything to the end if n is SIZE_MAX. */
static int take_bytes(struct source *s, size_t n, struct sink *out)
{
	bool to_end = n == SIZE_MAX;

	while (n) {
		size_t some = MIN(n, (size_t)(s->in.end - s->in.at));
		ssize_t more;
		int err;

		if (some) {
			err = put(out, s->in.at, some);
			if (err)
				return err;
			s->in.at += some;
			n -= to_end ? 0 : some;
			continue;
		}
		more = refill(s);
		if (more <= 0)
			return more < 0 ? (int)more : to_end ? 0 : -EBADMSG;
	}
	return 0;
}

/* Takes chunks: each is its size in hexadecimal, its bytes and a line end; size 0 ends the body. */
static int take_chunks(struct source *s, struct sink *out)
{
	struct view line;
	size_t n;
	int err;

	while (!(err = take_line(s, &line))) {
		const char *ext = memchr(line.at, ';', (size_t)(line.end - line.at));

		if (!parse_size(line.at, ext ? ext : line.end, 16, &n) || n == SIZE_MAX)
			return -EBADMSG;
		if (!n)
			return 0;
		err = take_bytes(s, n, out);
		if (!err)
			err = take_line(s, &line);
		if (!err && line.at != line.end)
			err = -EBADMSG;
		if (err)
			return err;
	}
	return err;
}

struct head {
	int status;
	bool have_length, chunked;
	size_t length;
};

static int take_head(struct source *s, struct head *h)
{
	struct view line, value;
	int err = take_line(s, &line);

	if (err)
		return err;
	if (!parse_status(&line, &h->status))
		return -EBADMSG;
	for (unsigned int i = 0; i < HEADERS_MAX; i++) {
		err = take_line(s, &line);
		if (err)
			return err;
		/* A reply with both headers is refused: it could be read in two ways. */
		if (line.at == line.end)
			return h->have_length && h->chunked ? -EBADMSG : 0;
		if (header_value(&line, "Content-Length", &value)) {
			if (h->have_length || !parse_size(value.at, value.end, 10, &h->length) || h->length == SIZE_MAX)
				return -EBADMSG;
			h->have_length = true;
		} else if (header_value(&line, "Transfer-Encoding", &value)) {
			if (h->chunked || !view_is(&value, "chunked"))
				return -EBADMSG;
			h->chunked = true;
		}
	}
	return -EBADMSG;
}

static int take_body(struct source *s, const struct head *h, struct sink *out)
{
	if (h->chunked)
		return take_chunks(s, out);
	return take_bytes(s, h->have_length ? h->length : SIZE_MAX, out);
}

/* Reads the body into memory; h: the parsed head. */
static int take_reply(struct source *s, const struct head *h, struct ttmon_client_reply *ret)
{
	struct sink out = { .fd = -1, .max = TTMON_CLIENT_REPLY_MAX };
	int err = take_body(s, h, &out);

	if (!err)
		err = grow(&out, 0);
	if (err) {
		free(out.data);
		return err;
	}
	out.data[out.len] = '\0';
	*ret = (struct ttmon_client_reply){ .status = h->status, .body = out.data, .len = out.len };
	return 0;
}

int ttmon_client_parse(const char *raw, size_t n, struct ttmon_client_reply *ret)
{
	_cleanup_free_ struct source *s = malloc(sizeof(*s));
	struct head h = { 0 };
	int err;

	if (!s)
		return -ENOMEM;
	s->fd = s->cancel = -1;
	s->in = (struct view){ raw, raw + n };
	err = take_head(s, &h);
	return err ? err : take_reply(s, &h, ret);
}

/* ---- the connection ---- */

/* flags: SOCK_NONBLOCK; without it the socket has the time limit. */
static int dial(const char *socket_path, unsigned int timeout_s, int flags)
{
	const struct timeval limit = { .tv_sec = timeout_s };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;

	if (strlen(socket_path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, socket_path, strlen(socket_path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	if (fd < 0)
		return -errno;
	/* The send timeout also limits connect() while the backlog is full. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		return -errno;
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return TAKE_FD(fd);
}

/* The process that listens, where it is stopped (SIGSTOP) and will not answer; 0: it is not. */
static uint32_t stopped_peer(int fd)
{
	struct ttmon_proc_stat stat;
	struct ucred peer;
	socklen_t n = sizeof(peer);

	/* 0: it is in another namespace of processes. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) || peer.pid <= 0)
		return 0;
	if (ttmon_proc_read_stat(NULL, (uint32_t)peer.pid, &stat))
		return 0;
	return stat.state == 'T' || stat.state == 't' ? (uint32_t)peer.pid : 0;
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

/* Sends a request without reading the answer. Closes the socket only on failure. */
static int ask(const char *socket_path, const char *method, const char *path, struct source *s)
{
	_cleanup_free_ char *request = NULL;
	_cleanup_close_ int fd = -1;
	int err;

	/* These characters would end the request line and begin another. */
	if (strpbrk(path, " \r\n"))
		return -EINVAL;
	if (asprintf(&request, "%s %s HTTP/1.1\r\nHost: ttmond\r\nConnection: close\r\n%s\r\n", method, path,
		     strcmp(method, "PUT") ? "" : "Content-Length: 0\r\n") < 0) {
		request = NULL;
		return -ENOMEM;
	}
	fd = dial(socket_path, s->timeout_s, s->cancel >= 0 ? SOCK_NONBLOCK : 0);
	if (fd < 0)
		return fd;
	if (s->cancel < 0 && stopped_peer(fd))
		return -EHOSTDOWN;
	err = send_all(fd, request, strlen(request));
	if (err)
		return err;
	s->fd = TAKE_FD(fd);
	s->in = (struct view){ s->buf, s->buf };
	return 0;
}

static void source_freep(struct source **s)
{
	if (*s && (*s)->fd >= 0)
		close((*s)->fd);
	free(*s);
}

static struct source *source_new(unsigned int timeout_s)
{
	struct source *s = malloc(sizeof(*s));

	if (s) {
		s->fd = s->cancel = -1;
		s->timeout_s = timeout_s;
	}
	return s;
}

int ttmon_client_request(const char *socket_path, const char *method, const char *path, struct ttmon_client_reply *ret)
{
	_cleanup_(source_freep) struct source *s = source_new(TTMON_CLIENT_TIMEOUT_S);
	struct head h = { 0 };
	int err;

	if (!s)
		return -ENOMEM;
	err = ask(socket_path, method, path, s);
	if (!err)
		err = take_head(s, &h);
	return err ? err : take_reply(s, &h, ret);
}

int ttmon_client_open_stream(const char *socket_path, const char *path, const struct ttmon_client_stream *to,
			     int *status)
{
	_cleanup_(source_freep) struct source *s = source_new(to->timeout_s);
	struct sink out = { .fd = -1, .max = UINT64_MAX, .to = to };
	struct head h = { 0 };
	int err;

	*status = 0;
	if (!s)
		return -ENOMEM;
	s->cancel = to->cancel;
	err = ask(socket_path, "GET", path, s);
	if (!err)
		err = take_head(s, &h);
	if (err)
		return err;
	*status = h.status;
	return h.status == 200 ? take_body(s, &h, &out) : 0;
}

int ttmon_client_get(const char *socket_path, const char *path, struct ttmon_client_reply *ret)
{
	return ttmon_client_request(socket_path, "GET", path, ret);
}

/* ---- functions for commands ---- */

#define ME program_invocation_short_name

static unsigned int peer_of(const char *socket_path)
{
	_cleanup_close_ int fd = dial(socket_path, 1, SOCK_NONBLOCK);

	return fd < 0 ? 0 : stopped_peer(fd);
}

static int complain(const char *socket_path, int err, unsigned int timeout_s)
{
	switch (-err) {
	case ENOENT:
	case ECONNREFUSED:
		fprintf(stderr, "%s: no ttmond on %s: %s\n", ME, socket_path, strerror(-err));
		break;
	case EACCES:
		fprintf(stderr, "%s: may not ask ttmond on %s: %s (root and the socket's group may)\n", ME, socket_path,
			strerror(-err));
		break;
	case EHOSTDOWN:
		fprintf(stderr, "%s: ttmond on %s is stopped: kill -CONT %u lets it go on\n", ME, socket_path,
			peer_of(socket_path));
		break;
	case ETIMEDOUT:
		fprintf(stderr, "%s: ttmond on %s does not answer: no byte in %u s\n", ME, socket_path, timeout_s);
		break;
	case EFBIG:
		fprintf(stderr, "%s: ttmond on %s sends more than may be kept\n", ME, socket_path);
		break;
	case EBADMSG:
		fprintf(stderr, "%s: what answers on %s is not ttmond, or it was cut off\n", ME, socket_path);
		break;
	default:
		fprintf(stderr, "%s: cannot ask ttmond on %s: %s\n", ME, socket_path, strerror(-err));
	}
	return err;
}

static int check_status(const char *socket_path, const char *path, const struct ttmon_client_reply *reply)
{
	const char *text;
	json_t *root;

	if (reply->status == 200)
		return 0;
	root = json_loadb(reply->body, reply->len, 0, NULL);
	text = json_string_value(json_object_get(root, "error"));
	fprintf(stderr, "%s: ttmond on %s answers %s with %d%s%s\n", ME, socket_path, path, reply->status,
		text ? ": " : "", text ? text : "");
	json_decref(root);
	return -EREMOTEIO;
}

int ttmon_client_check(const char *socket_path, const char *path, int err, const struct ttmon_client_reply *reply)
{
	return err ? complain(socket_path, err, TTMON_CLIENT_TIMEOUT_S) : check_status(socket_path, path, reply);
}

int ttmon_client_fetch(const char *socket_path, const char *path, struct ttmon_client_reply *ret)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	int err = ttmon_client_get(socket_path, path, &reply);

	err = ttmon_client_check(socket_path, path, err, &reply);
	if (err)
		return err;
	*ret = reply;
	reply = (struct ttmon_client_reply){ 0 };
	return 0;
}

int ttmon_client_download(const char *socket_path, const char *path, int fd, uint64_t max_bytes, unsigned int timeout_s)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	struct sink out = { .fd = fd, .max = max_bytes ? max_bytes : UINT64_MAX };
	_cleanup_(source_freep) struct source *s = source_new(timeout_s);
	struct head h = { 0 };
	int err = s ? ask(socket_path, "GET", path, s) : -ENOMEM;

	if (!err)
		err = take_head(s, &h);
	if (!err && h.status == 200) {
		/* Without length or chunks, a complete body looks like one that was cut off. */
		err = h.have_length || h.chunked ? take_body(s, &h, &out) : -EBADMSG;
		if (!out.failed)
			return err ? complain(socket_path, err, timeout_s) : 0;
		fprintf(stderr, "%s: cannot write what ttmond sends: %s\n", ME, strerror(-err));
		return err;
	}
	if (!err)
		err = take_reply(s, &h, &reply);
	return err ? complain(socket_path, err, timeout_s) : check_status(socket_path, path, &reply);
}

int ttmon_client_json(const struct ttmon_client_reply *reply, json_t **ret)
{
	json_error_t error;
	json_t *root = json_loadb(reply->body, reply->len, 0, &error);

	if (!json_is_object(root)) {
		fprintf(stderr, "%s: the answer is not a JSON object: %s\n", ME, root ? "something else" : error.text);
		json_decref(root);
		return -EBADMSG;
	}
	*ret = root;
	return 0;
}
