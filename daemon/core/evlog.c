// SPDX-License-Identifier: GPL-2.0-only
/* evlog.c: see evlog.h. Written and read by the history only: the bytes never come from outside. */
#include "core/evlog.h"

#define EVENT_MAX  (1 + 10 + 3 + 10 + 10)
#define BUF_FIRST  (2 * EVENT_MAX) /* most allocations have few events */
#define SAME_BYTES (1 << 6)
#define SAME_BITS  (1 << 7)

_Static_assert(TTMON_AEV_MAX <= 16, "the kind has four bits");
_Static_assert(TTMON_MEM_MAX <= 4, "the memory has two bits");

static uint64_t zigzag(uint64_t diff)
{
	return diff << 1 ^ (uint64_t)((int64_t)diff >> 63);
}

static uint64_t unzigzag(uint64_t z)
{
	return z >> 1 ^ -(z & 1);
}

static unsigned int put_varint(uint8_t *p, uint64_t v)
{
	unsigned int n = 0;

	for (; v >= 0x80; v >>= 7)
		p[n++] = (uint8_t)(v | 0x80);
	p[n++] = (uint8_t)v;
	return n;
}

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

static unsigned int encode(uint8_t *p, const struct ttmon_aev *prev, const struct ttmon_aev *ev)
{
	unsigned int n = 1;

	p[0] = (uint8_t)(ev->kind | ev->mem << 4);
	n += put_varint(p + n, zigzag(ev->ts_ns - prev->ts_ns));
	if (ev->bits == prev->bits)
		p[0] |= SAME_BITS;
	else
		n += put_varint(p + n, ev->bits);
	if (ev->bytes == prev->bytes)
		p[0] |= SAME_BYTES;
	else
		n += put_varint(p + n, ev->bytes);
	return n + put_varint(p + n, zigzag(ev->offset - (prev->offset + prev->bytes)));
}

int ttmon_evlog_add(struct ttmon_evlog *log, const struct ttmon_aev *ev)
{
	if (log->cap - log->len < EVENT_MAX) {
		uint32_t cap = log->cap ? log->cap + log->cap / 2 : BUF_FIRST;
		uint8_t *buf = cap > log->cap ? realloc(log->buf, cap) : NULL;

		if (!buf)
			return -ENOMEM;
		log->buf = buf;
		log->cap = cap;
	}
	log->len += encode(log->buf + log->len, &log->last, ev);
	log->last = *ev;
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
	ev->ts_ns += unzigzag(get_varint(log, pos));
	if (!(head & SAME_BITS))
		ev->bits = (uint16_t)get_varint(log, pos);
	if (!(head & SAME_BYTES))
		ev->bytes = get_varint(log, pos);
	ev->offset += unzigzag(get_varint(log, pos));
	return true;
}

uint32_t ttmon_evlog_drop(struct ttmon_evlog *log, uint32_t n)
{
	struct ttmon_aev ev = { 0 }, first = { 0 };
	uint8_t head[EVENT_MAX];
	uint32_t pos = 0, rest, len, dropped = 0;

	while (dropped < n && ttmon_evlog_next(log, &pos, &ev))
		dropped++;
	rest = pos;
	if (!ttmon_evlog_next(log, &rest, &ev)) {
		ttmon_evlog_fini(log);
		return dropped;
	}
	/* The first one left has no event before it any more: it is coded anew, into the room of those that went. */
	len = encode(head, &first, &ev);
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
