// SPDX-License-Identifier: GPL-2.0-only
/* python.c: see python.h. */
#include "lib/unwind/python.h"

#define LINES_MAX INT32_MAX

/* ---- strings ---- */

static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

static uint32_t char_at(const uint8_t *text, size_t i, unsigned int kind)
{
	uint16_t two;
	uint32_t four;

	if (kind == 1)
		return text[i];
	if (kind == 2) {
		memcpy(&two, text + 2 * i, sizeof(two));
		return two;
	}
	memcpy(&four, text + 4 * i, sizeof(four));
	return four;
}

/* What no text has: control characters, halves of pairs (of bytes that are no UTF-8), and too much. */
static bool is_odd(uint32_t c)
{
	return c < 32 || c == 127 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff;
}

bool ttmon_py_text(const struct ttmon_py_str *s, const uint8_t *text, size_t room, char *buf, size_t n)
{
	unsigned int kind = s->state >> 2 & 7;
	size_t at = 0;

	if (!s->len || (kind != 1 && kind != 2 && kind != 4) || s->len > room / kind)
		return false;
	for (size_t i = 0; i < s->len; i++) {
		uint32_t c = char_at(text, i, kind);

		if (at + 5 > n)
			return false;
		at += put_utf8(buf + at, is_odd(c) ? '?' : c);
	}
	buf[at] = '\0';
	return true;
}

/* ---- lines ---- */

/* A number of six bits a byte, the least first; bit 6: more follow. False: it does not end. */
static bool varint(const uint8_t *table, size_t n, size_t *at, uint32_t *ret)
{
	uint32_t v = 0;

	for (unsigned int shift = 0; shift < 30 && *at < n; shift += 6) {
		uint8_t b = table[(*at)++];

		v |= (uint32_t)(b & 63) << shift;
		if (!(b & 64)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

static int32_t signed_of(uint32_t v)
{
	return v & 1 ? -(int32_t)(v >> 1) : (int32_t)(v >> 1);
}

/*
 * Objects/locations.md: an entry covers one to eight code units of two bytes. Its kind says how the
 * line differs from the one before, and which numbers about columns follow.
 */
uint32_t ttmon_py_line(const uint8_t *table, size_t n, uint32_t firstlineno, uint32_t off)
{
	int64_t line = firstlineno;
	uint64_t end = 0;

	/* Before its first instruction: what sys._getframe() says then. */
	if (off > INT32_MAX)
		return firstlineno <= LINES_MAX ? firstlineno : 0;
	for (size_t at = 0; at < n;) {
		uint8_t head = table[at++];
		unsigned int kind = head >> 3 & 15;
		uint32_t delta = 0, column;

		if (!(head & 128))
			return 0;
		if (kind == 13 || kind == 14) {
			if (!varint(table, n, &at, &delta))
				return 0;
			line += signed_of(delta);
			for (unsigned int i = 0; kind == 14 && i < 3; i++)
				if (!varint(table, n, &at, &column))
					return 0;
		} else if (kind >= 10 && kind < 13) {
			line += kind - 10;
			at += 2;
		} else if (kind < 10) {
			at++;
		}
		if (at > n)
			return 0;
		end += ((head & 7) + 1u) * 2;
		if (off < end)
			return kind == 15 || line <= 0 || line > LINES_MAX ? 0 : (uint32_t)line;
	}
	return 0;
}

/* ---- among native frames ---- */

struct merge {
	uint64_t *out;
	unsigned int n, max;
	bool full;
};

static void put(struct merge *m, uint64_t frame)
{
	if (!frame)
		return;
	if (m->n < m->max)
		m->out[m->n++] = frame;
	else
		m->full = true;
}

/* How many Python frames from j on one C frame runs; *ended: that it is all of them is known. */
static unsigned int run_at(const struct ttmon_stack_copy *c, unsigned int npy, unsigned int j, bool *ended)
{
	unsigned int k = j;

	while (k < npy && !c->py[k].entry)
		k++;
	*ended = k < npy;
	return k - j + *ended;
}

unsigned int ttmon_py_merge(const struct ttmon_stack_copy *c, const struct ttmon_uw_result *r, const uint64_t *lines,
			    unsigned int max, uint64_t *out, enum ttmon_stack_end *end)
{
	unsigned int npy = MIN(c->npy, (unsigned int)TTMON_PY_FRAMES), j = 0;
	struct merge m = { .out = out, .max = max };

	for (unsigned int i = 0; i < r->n; i++) {
		bool own = r->pc[i] - 1 >= c->py_start && r->pc[i] - 1 < c->py_end;

		while (j < npy) {
			bool ended;
			unsigned int run = run_at(c, npy, j, &ended);
			uint64_t lies = ended ? c->sp + c->py[j + run - 1].entry : 0;

			/* Below the caller's stack pointer is this frame's. */
			if (ended && i + 1 < r->n ? lies >= r->sp[i + 1] : !own)
				break;
			for (; run; run--)
				put(&m, lines[j++]);
			if (!ended)
				m.full = true;
		}
		/* What is further out is behind frames that are not known. */
		if (m.full)
			break;
		if (!own)
			put(&m, r->pc[i]);
	}
	while (j < npy && !m.full)
		put(&m, lines[j++]);
	*end = m.full || c->py_state == TTMON_PY_CUT ? TTMON_STACK_DEPTH : r->end;
	return m.n;
}
