// SPDX-License-Identifier: GPL-2.0-only
/*
 * page.c: writes a page as one file: the frame from tools/view/page/, which is embedded in the program
 * (the compiler runs in the top folder; the Makefile names the files as prerequisites), and the data
 * as base64. Marks of the form @NAME@ in the frame are replaced.
 *
 * The page may only run its one script and use its one style sheet: a Content-Security-Policy names
 * both by a random number.
 */
#include <sys/random.h>

#include <zlib.h>

#include "tools/view/view.h"

TTMON_INCBIN(ttmon_page_html, "tools/view/page/page.html");
TTMON_INCBIN(ttmon_page_css, "tools/view/page/page.css");
TTMON_INCBIN(ttmon_page_js, "tools/view/page/page.js");

#define LINE 57 /* bytes in a line of base64, a multiple of 3 */

struct page {
	int fd, err;
	size_t len;
	char buf[65536];
	unsigned char rest[LINE]; /* bytes not yet encoded */
	size_t nr_rest;
	char nonce[33];
};

static void flush(struct page *p)
{
	for (size_t at = 0; !p->err && at < p->len;) {
		ssize_t n = write(p->fd, p->buf + at, p->len - at);

		if (n < 0 && errno != EINTR)
			p->err = -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	p->len = 0;
}

static void put(struct page *p, const char *text, size_t n)
{
	while (n) {
		size_t part = MIN(n, sizeof(p->buf) - p->len);

		memcpy(p->buf + p->len, text, part);
		p->len += part;
		text += part;
		n -= part;
		if (p->len == sizeof(p->buf))
			flush(p);
	}
}

static void put_text(struct page *p, const char *text)
{
	put(p, text, strlen(text));
}

/* ---- base64 ---- */

static void encode_rest(struct page *p)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char line[LINE / 3 * 4 + 1];
	size_t n = 0;

	for (size_t i = 0; i < p->nr_rest; i += 3) {
		size_t left = p->nr_rest - i;
		unsigned int three = (unsigned int)p->rest[i] << 16 |
				     (left > 1 ? (unsigned int)p->rest[i + 1] << 8 : 0) |
				     (left > 2 ? (unsigned int)p->rest[i + 2] : 0);

		line[n++] = digits[three >> 18];
		line[n++] = digits[three >> 12 & 63];
		line[n++] = left > 1 ? digits[three >> 6 & 63] : '=';
		line[n++] = left > 2 ? digits[three & 63] : '=';
	}
	line[n++] = '\n';
	put(p, line, n);
	p->nr_rest = 0;
}

static void encode(struct page *p, const unsigned char *bytes, size_t n)
{
	for (size_t part; n; bytes += part, n -= part) {
		part = MIN(n, sizeof(p->rest) - p->nr_rest);
		memcpy(p->rest + p->nr_rest, bytes, part);
		p->nr_rest += part;
		if (p->nr_rest == sizeof(p->rest))
			encode_rest(p);
	}
}

/* ---- parts ---- */

static int deflate_all(struct page *p, z_stream *z, int flush_mode)
{
	unsigned char out[16384];
	int r;

	do {
		z->next_out = out;
		z->avail_out = sizeof(out);
		r = deflate(z, flush_mode);
		if (r == Z_STREAM_ERROR)
			return -EIO;
		encode(p, out, sizeof(out) - z->avail_out);
	} while (z->avail_out == 0);
	return 0;
}

static int put_bytes(struct page *p, int fd, z_stream *z)
{
	unsigned char in[16384];
	ssize_t n = 0;

	for (off_t at = 0; !p->err; at += n) {
		n = pread(fd, in, sizeof(in), at);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n < 0)
			return -errno;
		else if (n == 0)
			break;
		if (!z) {
			encode(p, in, (size_t)n);
			continue;
		}
		z->next_in = in;
		z->avail_in = (unsigned int)n;
		if (deflate_all(p, z, Z_NO_FLUSH))
			return -EIO;
	}
	if (z) {
		z->avail_in = 0;
		if (deflate_all(p, z, Z_FINISH))
			return -EIO;
	}
	if (p->nr_rest)
		encode_rest(p);
	return p->err;
}

static int put_part(struct page *p, const struct ttmon_page_part *part, bool plain)
{
	z_stream z = { 0 };
	int err;

	put_text(p, "<script type=\"application/octet-stream\" id=\"");
	put_text(p, part->id);
	put_text(p, plain ? "\">\n" : "\" data-packed=\"gzip\">\n");
	if (plain) {
		err = put_bytes(p, part->fd, NULL);
	} else {
		/* 15 + 16: the gzip format, which browsers can decompress. */
		if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
			return -ENOMEM;
		err = put_bytes(p, part->fd, &z);
		deflateEnd(&z);
	}
	put_text(p, "</script>\n");
	return err;
}

static int put_mark(struct page *p, const char *mark, size_t n, const struct ttmon_page *page)
{
	int err = 0;

	if (n == 5 && memcmp(mark, "NONCE", n) == 0)
		put_text(p, p->nonce);
	else if (n == 3 && memcmp(mark, "CSS", n) == 0)
		put(p, ttmon_page_css_start, (size_t)(ttmon_page_css_end - ttmon_page_css_start));
	else if (n == 4 && memcmp(mark, "BODY", n) == 0)
		put(p, page->body, page->body_len);
	else if (n == 6 && memcmp(mark, "SHARED", n) == 0)
		put(p, ttmon_page_js_start, (size_t)(ttmon_page_js_end - ttmon_page_js_start));
	else if (n == 6 && memcmp(mark, "SCRIPT", n) == 0)
		put(p, page->script, page->script_len);
	else if (n == 4 && memcmp(mark, "DATA", n) == 0)
		for (size_t i = 0; i < page->nr_parts && !err; i++)
			err = put_part(p, &page->parts[i], page->plain);
	return err;
}

int ttmon_page_write(int fd, const struct ttmon_page *page)
{
	_cleanup_free_ struct page *p = calloc(1, sizeof(*p));
	const char *at = ttmon_page_html_start, *end = ttmon_page_html_end, *mark, *behind;
	unsigned char lot[16];
	int err = 0;

	if (!p)
		return -ENOMEM;
	p->fd = fd;
	if (getrandom(lot, sizeof(lot), 0) != sizeof(lot))
		return -EIO;
	for (size_t i = 0; i < sizeof(lot); i++)
		snprintf(p->nonce + 2 * i, 3, "%02x", lot[i]);
	while (!err && (mark = memchr(at, '@', (size_t)(end - at))) != NULL &&
	       (behind = memchr(mark + 1, '@', (size_t)(end - mark - 1))) != NULL) {
		put(p, at, (size_t)(mark - at));
		err = put_mark(p, mark + 1, (size_t)(behind - mark - 1), page);
		at = behind + 1;
	}
	put(p, at, (size_t)(end - at));
	flush(p);
	return err ? err : p->err;
}
