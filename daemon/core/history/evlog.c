// SPDX-License-Identifier: GPL-2.0-only
/* evlog.c: see evlog.h. Written and read by the history only: the bytes never come from outside. */
#include "daemon/core/history/evlog.h"
#include "lib/base/varint.h"

#define EVENT_MAX  (1 + 10 + 3 + 10 + 10)
#define BUF_FIRST  (2u * EVENT_MAX)
#define BUF_SECOND (8u * EVENT_MAX)
#define SAME_BYTES (1 << 6)
#define SAME_BITS  (1 << 7)

_Static_assert(TTMON_AEV_MAX <= 16, "the kind has four bits");
_Static_assert(TTMON_MEM_MAX <= 4, "the memory has two bits");

/*
 * Writes up to 10 bytes; the first 4 are written for every number. The length is unpredictable, so a
 * loop would stall the processor at its end: short numbers, which are most, need no loop.
 */
static unsigned int put_varint(uint8_t *p, uint64_t v)
{
	if (v < 1 << 28) {
		uint32_t x = (uint32_t)v;
		unsigned int n = (38 - (unsigned int)__builtin_clz(x | 1)) / 7;

		x = (x & 0x7f) | (x & 0x3f80) << 1 | (x & 0x1fc000) << 2 | (x & 0xfe00000) << 3;
		x |= 0x80808080u & ((1u << (8 * n - 8)) - 1);
		p[0] = (uint8_t)x;
		p[1] = (uint8_t)(x >> 8);
		p[2] = (uint8_t)(x >> 16);
		p[3] = (uint8_t)(x >> 24);
		return n;
	}
	return (unsigned int)(ttmon_varint_put(p, v) - p);
}

/* ttmon_varint_get() without its checks, for bytes that we wrote: a tenth faster. */
static uint64_t get_varint(const struct ttmon_evlog *log, uint32_t *pos)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; *pos < log->len && shift < 64; shift += 7) {
		uint8_t byte = log->buf[(*pos)++];

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return v;
}

static unsigned int encode(uint8_t *p, const struct ttmon_evlog_last *prev, const struct ttmon_aev *ev)
{
	unsigned int n = 1;

	p[0] = (uint8_t)(ev->kind | ev->mem << 4);
	n += put_varint(p + n, ttmon_zigzag(ev->ts_ns - prev->ts_ns));
	if (ev->bits == prev->bits)
		p[0] |= SAME_BITS;
	else
		n += put_varint(p + n, ev->bits);
	if (ev->bytes == prev->bytes)
		p[0] |= SAME_BYTES;
	else
		n += put_varint(p + n, ev->bytes);
	return n + put_varint(p + n, ttmon_zigzag(ev->offset - prev->end));
}

/*
 * Most allocations have few events; a log with more soon has many, and growing it costs more than
 * adding an event.
 */
static int grow(struct ttmon_evlog *log)
{
	uint32_t cap = log->cap ? MAX(log->cap + log->cap / 2, BUF_SECOND) : BUF_FIRST;
	uint8_t *buf = cap > log->cap ? realloc(log->buf, cap) : NULL;

	if (!buf)
		return -ENOMEM;
	log->buf = buf;
	log->cap = cap;
	return 0;
}

int ttmon_evlog_add(struct ttmon_evlog *log, const struct ttmon_aev *ev)
{
	if (log->cap - log->len < EVENT_MAX && grow(log) < 0)
		return -ENOMEM;
	log->len += encode(log->buf + log->len, &log->last, ev);
	log->last = (struct ttmon_evlog_last){ ev->ts_ns, ev->bytes, ev->offset + ev->bytes, ev->bits };
	return 0;
}

bool ttmon_evlog_next(const struct ttmon_evlog *log, uint32_t *pos, struct ttmon_aev *ev)
{
	uint8_t head;

	if (*pos >= log->len)
		return false;
	if (*pos == 0)
		*ev = (struct ttmon_aev){ 0 };
	head = log->buf[(*pos)++];
	ev->kind = head & 0xf;
	ev->mem = head >> 4 & 3;
	ev->offset += ev->bytes;
	ev->ts_ns += ttmon_unzigzag(get_varint(log, pos));
	if (!(head & SAME_BITS))
		ev->bits = (uint16_t)get_varint(log, pos);
	if (!(head & SAME_BYTES))
		ev->bytes = get_varint(log, pos);
	ev->offset += ttmon_unzigzag(get_varint(log, pos));
	return true;
}

uint32_t ttmon_evlog_drop(struct ttmon_evlog *log, uint32_t n)
{
	const struct ttmon_evlog_last none = { 0 };
	struct ttmon_aev ev = { 0 };
	uint8_t head[EVENT_MAX];
	uint32_t pos = 0, rest, len, dropped = 0;

	while (dropped < n && ttmon_evlog_next(log, &pos, &ev))
		dropped++;
	rest = pos;
	if (!ttmon_evlog_next(log, &rest, &ev)) {
		ttmon_evlog_fini(log);
		return dropped;
	}
	/*
	 * The first event left has no predecessor any more: it is encoded again, into the space of those
	 * dropped.
	 */
	len = encode(head, &none, &ev);
	if (len > rest)
		return 0;
	memcpy(log->buf, head, len);
	memmove(log->buf + len, log->buf + rest, log->len - rest);
	log->len = len + log->len - rest;
	return dropped;
}

void ttmon_evlog_fini(struct ttmon_evlog *log)
{
	free(log->buf);
	*log = (struct ttmon_evlog){ 0 };
}
