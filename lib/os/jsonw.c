// SPDX-License-Identifier: GPL-2.0-only
/*
 * jsonw.c: see jsonw.h. It has one buffer, formats numbers itself (printf for each number would take
 * most of the time of a dump), and uses zlib for .gz. One thread at a time may use a writer, also in a
 * forked child: it only needs memory and write(2).
 */
#include "lib/os/jsonw.h"

#include <zlib.h>

#include "lib/base/fmt.h"
#include "lib/base/utf8.h"

#define BUF_SIZE (128u << 10)
/*
 * The longest piece that is added at once: a number or an escape sequence. Text and names are added in
 * pieces of this size.
 */
#define PIECE 256u

struct ttmon_jsonw_gz {
	z_stream z;
	unsigned char out[64u << 10];
};

static const char digits2[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
			      "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
			      "8081828384858687888990919293949596979899";

size_t ttmon_jsonw_decimal(char *buf, uint64_t value)
{
	char tmp[20];
	size_t i = sizeof(tmp);

	while (value >= 100) {
		i -= 2;
		memcpy(tmp + i, digits2 + value % 100 * 2, 2);
		value /= 100;
	}
	if (value >= 10) {
		i -= 2;
		memcpy(tmp + i, digits2 + value * 2, 2);
	} else {
		tmp[--i] = (char)('0' + value);
	}
	memcpy(buf, tmp + i, sizeof(tmp) - i);
	return sizeof(tmp) - i;
}

size_t ttmon_jsonw_hex(char *buf, uint64_t value, size_t min_digits)
{
	size_t n = 1;

	while (n < 16 && (n < min_digits || value >> (4 * n)))
		n++;
	for (size_t i = n; i > 0; value >>= 4)
		buf[--i] = "0123456789abcdef"[value & 15];
	return n;
}

static int write_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Compresses the buffer and writes the result to the file. */
static int deflate_out(struct ttmon_jsonw *w, int flush)
{
	struct ttmon_jsonw_gz *gz = w->gz;
	int r, err;

	gz->z.next_in = (unsigned char *)w->buf;
	gz->z.avail_in = (unsigned int)w->len;
	do {
		gz->z.next_out = gz->out;
		gz->z.avail_out = sizeof(gz->out);
		r = deflate(&gz->z, flush);
		if (r == Z_STREAM_ERROR)
			return -EIO;
		err = write_all(w->fd, gz->out, sizeof(gz->out) - gz->z.avail_out);
		if (err)
			return err;
	} while (gz->z.avail_out == 0);
	return 0;
}

static void drain(struct ttmon_jsonw *w, int flush)
{
	if (!w->err)
		w->err = w->gz ? deflate_out(w, flush) : write_all(w->fd, w->buf, w->len);
	w->len = 0;
}

int ttmon_jsonw_init(struct ttmon_jsonw *w, int fd, bool gzip)
{
	_cleanup_free_ char *buf = malloc(BUF_SIZE);
	_cleanup_free_ struct ttmon_jsonw_gz *gz = NULL;

	if (!buf)
		return -ENOMEM;
	if (gzip) {
		gz = calloc(1, sizeof(*gz));
		/* 15 + 16: the largest window, in the gzip format. */
		if (!gz || deflateInit2(&gz->z, 1, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
			return -ENOMEM;
	}
	*w = (struct ttmon_jsonw){ .fd = fd, .buf = TAKE_PTR(buf), .gz = TAKE_PTR(gz) };
	return 0;
}

int ttmon_jsonw_finish(struct ttmon_jsonw *w)
{
	drain(w, Z_FINISH);
	return w->err;
}

void ttmon_jsonw_fini(struct ttmon_jsonw *w)
{
	if (w->gz)
		deflateEnd(&w->gz->z);
	free(w->gz);
	free(w->buf);
	*w = (struct ttmon_jsonw){ .fd = -1 };
}

/* Returns room for one piece. */
static inline char *room(struct ttmon_jsonw *w)
{
	if (w->len > BUF_SIZE - PIECE)
		drain(w, Z_NO_FLUSH);
	return w->buf + w->len;
}

/* Returns room for one piece, after writing the comma before a value. */
static inline char *value_room(struct ttmon_jsonw *w)
{
	char *p = room(w);

	if (w->comma) {
		*p++ = ',';
		w->len++;
	}
	w->comma = true;
	return p;
}

static void put(struct ttmon_jsonw *w, const char *s, size_t n)
{
	while (n) {
		size_t part = MIN(n, PIECE);

		memcpy(room(w), s, part);
		w->len += part;
		s += part;
		n -= part;
	}
}

void ttmon_jsonw_open(struct ttmon_jsonw *w, char bracket)
{
	*value_room(w) = bracket;
	w->len++;
	w->comma = false;
}

void ttmon_jsonw_close(struct ttmon_jsonw *w, char bracket)
{
	*room(w) = bracket;
	w->len++;
	w->comma = true;
}

void ttmon_jsonw_key(struct ttmon_jsonw *w, const char *name)
{
	ttmon_jsonw_name(w, name);
	put(w, ":", 1);
	w->comma = false;
}

void ttmon_jsonw_num(struct ttmon_jsonw *w, uint64_t value)
{
	char *p = value_room(w);

	w->len += ttmon_jsonw_decimal(p, MIN(value, (uint64_t)INT64_MAX));
}

void ttmon_jsonw_int(struct ttmon_jsonw *w, int64_t value)
{
	char *p = value_room(w);

	if (value < 0) {
		*p++ = '-';
		w->len++;
	}
	w->len += ttmon_jsonw_decimal(p, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void ttmon_jsonw_ratio(struct ttmon_jsonw *w, double value)
{
	char *p = value_room(w);
	unsigned int milli = 0;

	/* This form of the comparison turns a NaN into 0. */
	if (value > 0)
		milli = value < 1 ? (unsigned int)(value * 1000 + 0.5) : 1000;
	p[0] = (char)('0' + milli / 1000);
	p[1] = '.';
	p[2] = (char)('0' + milli / 100 % 10);
	p[3] = (char)('0' + milli / 10 % 10);
	p[4] = (char)('0' + milli % 10);
	w->len += 5;
}

void ttmon_jsonw_bool(struct ttmon_jsonw *w, bool value)
{
	value_room(w);
	if (value)
		put(w, "true", 4);
	else
		put(w, "false", 5);
}

void ttmon_jsonw_null(struct ttmon_jsonw *w)
{
	value_room(w);
	put(w, "null", 4);
}

void ttmon_jsonw_time(struct ttmon_jsonw *w, uint64_t ns)
{
	char *p = value_room(w);
	size_t n;

	*p = '"';
	n = 1 + ttmon_jsonw_decimal(p + 1, ns);
	p[n++] = '"';
	w->len += n;
}

void ttmon_jsonw_us(struct ttmon_jsonw *w, uint64_t ns)
{
	char *p = value_room(w);
	unsigned int rest = (unsigned int)(ns % 1000);
	size_t n = ttmon_jsonw_decimal(p, ns / 1000);

	p[n++] = '.';
	p[n++] = (char)('0' + rest / 100);
	p[n++] = (char)('0' + rest / 10 % 10);
	p[n++] = (char)('0' + rest % 10);
	w->len += n;
}

void ttmon_jsonw_addr(struct ttmon_jsonw *w, uint64_t addr)
{
	char *p = value_room(w);
	size_t n;

	memcpy(p, "\"0x", 3);
	n = 3 + ttmon_jsonw_hex(p + 3, addr, 1);
	p[n++] = '"';
	w->len += n;
}

void ttmon_jsonw_name(struct ttmon_jsonw *w, const char *name)
{
	size_t n;
	char *p;

	if (!name) {
		ttmon_jsonw_null(w);
		return;
	}
	n = strlen(name);
	p = value_room(w);
	if (n > PIECE - 4) {
		put(w, "\"", 1);
		put(w, name, n);
		put(w, "\"", 1);
		return;
	}
	*p = '"';
	memcpy(p + 1, name, n);
	p[n + 1] = '"';
	w->len += n + 2;
}

static void put_escaped(struct ttmon_jsonw *w, unsigned int c)
{
	char esc[6] = "\\u";

	switch (c) {
	case '"':
		put(w, "\\\"", 2);
		break;
	case '\\':
		put(w, "\\\\", 2);
		break;
	case '\n':
		put(w, "\\n", 2);
		break;
	case '\t':
		put(w, "\\t", 2);
		break;
	default:
		ttmon_jsonw_hex(esc + 2, c, 4);
		put(w, esc, sizeof(esc));
	}
}

/* The text of a string: parts without special characters are copied at once. */
/* Control characters are escaped so that a terminal that shows the document is safe. */
static bool is_control(const unsigned char *p, size_t len)
{
	char text[5] = "";

	memcpy(text, p, len);
	return !*text || ttmon_fmt_control(text);
}

/* Decodes at most three bytes: no escaped character has more. */
static unsigned int code_of(const unsigned char *p, size_t len)
{
	if (len == 3)
		return (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
	return len == 2 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu) : p[0];
}

static void put_text(struct ttmon_jsonw *w, const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t i = 0, start = 0;

	while (i < n) {
		size_t len = ttmon_utf8_len(p + i, n - i);
		bool controls = len && is_control(p + i, len);

		if (len && !controls && p[i] != '"' && p[i] != '\\') {
			i += len;
			continue;
		}
		put(w, text + start, i - start);
		if (len)
			put_escaped(w, code_of(p + i, len));
		else
			put(w, "\\ufffd", 6);
		i += len ? len : 1;
		start = i;
	}
	put(w, text + start, i - start);
}

void ttmon_jsonw_text(struct ttmon_jsonw *w, const char *text, size_t n)
{
	if (!text) {
		ttmon_jsonw_null(w);
		return;
	}
	value_room(w);
	put(w, "\"", 1);
	put_text(w, text, strnlen(text, n));
	put(w, "\"", 1);
}

void ttmon_jsonw_symbol(struct ttmon_jsonw *w, const char *name, uint64_t delta)
{
	char tail[3 + 16 + 1] = "+0x";
	size_t n = 3 + ttmon_jsonw_hex(tail + 3, delta, 1);

	if (!name) {
		ttmon_jsonw_null(w);
		return;
	}
	tail[n++] = '"';
	value_room(w);
	put(w, "\"", 1);
	put_text(w, name, strlen(name));
	put(w, tail, n);
}

void ttmon_jsonw_str(struct ttmon_jsonw *w, const char *text)
{
	ttmon_jsonw_text(w, text, text ? strlen(text) : 0);
}

void ttmon_jsonw_line(struct ttmon_jsonw *w)
{
	char *p = room(w);

	if (w->comma) {
		*p++ = ',';
		w->len++;
		w->comma = false;
	}
	*p = '\n';
	w->len++;
}

void ttmon_jsonw_end(struct ttmon_jsonw *w)
{
	w->comma = false;
	ttmon_jsonw_line(w);
}

void ttmon_jsonw_key_open(struct ttmon_jsonw *w, const char *name, char bracket)
{
	ttmon_jsonw_key(w, name);
	ttmon_jsonw_open(w, bracket);
}

void ttmon_jsonw_row(struct ttmon_jsonw *w, char bracket)
{
	ttmon_jsonw_line(w);
	ttmon_jsonw_open(w, bracket);
}

void ttmon_jsonw_key_null(struct ttmon_jsonw *w, const char *key)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_null(w);
}

void ttmon_jsonw_key_num(struct ttmon_jsonw *w, const char *key, uint64_t value)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_num(w, value);
}

void ttmon_jsonw_key_known(struct ttmon_jsonw *w, const char *key, bool known, uint64_t value)
{
	if (known)
		ttmon_jsonw_key_num(w, key, value);
	else
		ttmon_jsonw_key_null(w, key);
}

void ttmon_jsonw_key_int(struct ttmon_jsonw *w, const char *key, int64_t value)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_int(w, value);
}

void ttmon_jsonw_key_time(struct ttmon_jsonw *w, const char *key, uint64_t ns)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_time(w, ns);
}

void ttmon_jsonw_key_addr(struct ttmon_jsonw *w, const char *key, uint64_t addr)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_addr(w, addr);
}

void ttmon_jsonw_key_str(struct ttmon_jsonw *w, const char *key, const char *text)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_str(w, text);
}

void ttmon_jsonw_key_text(struct ttmon_jsonw *w, const char *key, const char *text, size_t n)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_text(w, text, n);
}

void ttmon_jsonw_key_name(struct ttmon_jsonw *w, const char *key, const char *name)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_name(w, name);
}

void ttmon_jsonw_key_bool(struct ttmon_jsonw *w, const char *key, bool value)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_bool(w, value);
}
