// SPDX-License-Identifier: GPL-2.0-only
/* stream_dict.c: the dictionary blocks of memtrace/stream/stream.h, read. */
#include "memtrace/read/stream_rd.h"
#include "lib/base/grow.h"

#define MISSING UINT32_MAX

const char *ttmon_mts_text(struct ttmon_mts_cursor *c, char *buf)
{
	uint64_t n = ttmon_mts_number(c);

	buf[0] = '\0';
	if (c->bad || c->p > c->end || n > TTMON_MT_MAX_TEXT || n > (uint64_t)(c->end - c->p)) {
		c->bad = true;
		return buf;
	}
	memcpy(buf, c->p, n);
	buf[n] = '\0';
	c->p += n;
	return buf;
}

static uint8_t limited(uint64_t v, unsigned int max, unsigned int otherwise)
{
	return (uint8_t)(v < max ? v : otherwise);
}

static uint8_t good_width(uint64_t v)
{
	return (uint8_t)(v >= 1 && v <= 64 ? v : 4);
}

/* Where index of the file is in the dictionary; MISSING. */
static uint32_t found(const struct ttmon_mts_index *x, unsigned int kind, uint64_t index)
{
	return index < x->map[kind].nr ? x->map[kind].at[index] : MISSING;
}

static int map_to(struct ttmon_mts_index *x, unsigned int kind, uint64_t index, uint32_t at)
{
	__typeof__(x->map[0]) *m = &x->map[kind];

	if (TTMON_GROW(m->at, m->cap, index + 1, 256))
		return -ENOMEM;
	while (m->nr <= index)
		m->at[m->nr++] = MISSING;
	m->at[index] = at;
	return 0;
}

/* The last of an array of the dictionary takes the place of an older one. */
#define REPLACE(d, field, old) ((d)->dict.field[old] = (d)->dict.field[--(d)->dict.nr_##field])

static int64_t add_entry(struct ttmon_mt_dictw *d, unsigned int kind, const void *entry)
{
	switch (kind) {
	case TTMON_MTS_SITES:
		return ttmon_mt_dict_site(d, entry);
	case TTMON_MTS_LAUNCHES:
		return ttmon_mt_dict_launch(d, entry);
	case TTMON_MTS_AGGS:
		return ttmon_mt_dict_agg(d, entry);
	case TTMON_MTS_TOUCHES:
		return ttmon_mt_dict_touch(d, entry);
	default:
		return ttmon_mt_dict_kernel(d, entry);
	}
}

/* The entry of that index of the file, whether it is new or comes again. Returns where it is. */
static int64_t put_entry(struct ttmon_mts_index *x, unsigned int kind, uint64_t index, const void *entry)
{
	uint64_t max =
		kind == TTMON_MTS_SITES || kind == TTMON_MTS_KERNELS ? TTMON_MT_MAX_SITES : TTMON_MT_MAX_LAUNCHES;
	struct ttmon_mt_dictw *d = x->dict;
	uint32_t old = found(x, kind, index);
	int64_t at = index < max ? add_entry(d, kind, entry) : -EBADMSG;
	int err;

	if (at < 0)
		return at;
	if (old == MISSING) {
		err = map_to(x, kind, index, (uint32_t)at);
		return err ? err : at;
	}
	switch (kind) {
	case TTMON_MTS_SITES:
		REPLACE(d, sites, old);
		break;
	case TTMON_MTS_LAUNCHES:
		REPLACE(d, launches, old);
		break;
	case TTMON_MTS_AGGS:
		REPLACE(d, aggs, old);
		break;
	case TTMON_MTS_TOUCHES:
		REPLACE(d, touches, old);
		break;
	default:
		REPLACE(d, kernels, old);
	}
	return old;
}

/* A site or a launch that is named and not there: the block that had it is lost. */
int64_t ttmon_mts_index_site(struct ttmon_mts_index *x, uint64_t index, unsigned int space, unsigned int width)
{
	struct ttmon_mt_site s = { .opcode = "(lost)", .flags = TTMON_MT_SITE_GUESSED };
	uint32_t at = found(x, TTMON_MTS_SITES, index);

	if (at != MISSING)
		return at;
	s.space = limited(space, TTMON_MT_SPACE_MAX, TTMON_MT_GENERIC);
	s.width = good_width(width);
	return put_entry(x, TTMON_MTS_SITES, index, &s);
}

int64_t ttmon_mts_index_launch(struct ttmon_mts_index *x, uint64_t index)
{
	struct ttmon_mt_launch l = { .id = index, .flags = TTMON_MT_LAUNCH_MADE_UP };
	uint32_t at = found(x, TTMON_MTS_LAUNCHES, index);

	return at != MISSING ? at : put_entry(x, TTMON_MTS_LAUNCHES, index, &l);
}

static void numbers(struct ttmon_mts_cursor *c, uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i] = ttmon_mts_number(c);
}

/* shapes: COUNTS. */
static void read_agg(struct ttmon_mts_cursor *c, bool shapes, struct ttmon_mt_agg *a)
{
	numbers(c, &a->requests, TTMON_MTS_AGG_SUMS);
	if (!shapes)
		return;
	a->shapes = ttmon_mts_number(c) != 0;
	a->max_same = (uint32_t)ttmon_mts_number(c);
	a->max_waves = (uint32_t)ttmon_mts_number(c);
	numbers(c, &a->unique, TTMON_MTS_AGG_SHAPES);
}

static int one_entry(struct ttmon_mts_index *x, unsigned int kind, bool shapes, uint64_t index,
		     struct ttmon_mts_cursor *c)
{
	char t[4][TTMON_MT_MAX_TEXT + 1];
	union {
		struct ttmon_mt_site s;
		struct ttmon_mt_launch l;
		struct ttmon_mt_agg a;
		struct ttmon_mt_touch t;
		struct ttmon_mt_kernel k;
	} e;
	uint64_t site = 0, launch = TTMON_MT_NO_LAUNCH;
	int64_t at;

	memset(&e, 0, sizeof(e));
	switch (kind) {
	case TTMON_MTS_SITES:
		e.s.kernel = ttmon_mts_text(c, t[0]);
		e.s.opcode = ttmon_mts_text(c, t[1]);
		e.s.file = ttmon_mts_text(c, t[2]);
		e.s.module = ttmon_mts_text(c, t[3]);
		e.s.pc = ttmon_mts_number(c);
		e.s.line = (uint32_t)ttmon_mts_number(c);
		e.s.text_line = (uint32_t)ttmon_mts_number(c);
		e.s.space = limited(ttmon_mts_number(c), TTMON_MT_SPACE_MAX, TTMON_MT_GENERIC);
		e.s.kind = limited(ttmon_mts_number(c), TTMON_MT_KIND_MAX, TTMON_MT_LOAD);
		e.s.width = good_width(ttmon_mts_number(c));
		e.s.flags = (uint8_t)ttmon_mts_number(c);
		break;
	case TTMON_MTS_LAUNCHES:
		e.l.kernel = ttmon_mts_text(c, t[0]);
		e.l.id = ttmon_mts_number(c);
		e.l.ctx = ttmon_mts_number(c);
		for (int i = 0; i < 3; i++)
			e.l.grid[i] = (uint32_t)ttmon_mts_number(c);
		for (int i = 0; i < 3; i++)
			e.l.block[i] = (uint32_t)ttmon_mts_number(c);
		e.l.regs = (uint32_t)ttmon_mts_number(c);
		e.l.shmem = (uint32_t)ttmon_mts_number(c);
		e.l.stream = ttmon_mts_number(c);
		e.l.time_ns = ttmon_mts_number(c);
		e.l.shared_base = ttmon_mts_number(c);
		e.l.local_base = ttmon_mts_number(c);
		e.l.pid = (uint32_t)ttmon_mts_number(c);
		e.l.flags = (uint8_t)ttmon_mts_number(c);
		break;
	case TTMON_MTS_AGGS:
		site = ttmon_mts_number(c);
		launch = ttmon_mts_number(c);
		read_agg(c, shapes, &e.a);
		break;
	case TTMON_MTS_TOUCHES:
		e.t.addr = ttmon_mts_number(c);
		e.t.size = ttmon_mts_number(c);
		e.t.reads = ttmon_mts_number(c);
		e.t.writes = ttmon_mts_number(c);
		launch = ttmon_mts_number(c);
		e.t.pid = (uint32_t)ttmon_mts_number(c);
		break;
	default:
		e.k.name = ttmon_mts_text(c, t[0]);
		e.k.module = ttmon_mts_text(c, t[1]);
		e.k.why = ttmon_mts_text(c, t[2]);
		e.k.launches = ttmon_mts_number(c);
		e.k.recorded = ttmon_mts_number(c);
		e.k.sites = (uint32_t)ttmon_mts_number(c);
		e.k.left_out = (uint32_t)ttmon_mts_number(c);
	}
	if (c->bad || c->p > c->end)
		return -EBADMSG;
	if (kind == TTMON_MTS_AGGS) {
		at = ttmon_mts_index_site(x, site, TTMON_MT_GLOBAL, 4);
		if (at < 0)
			return (int)at;
		e.a.site = (uint32_t)at;
	}
	if (launch != TTMON_MT_NO_LAUNCH) {
		launch = (uint64_t)(at = ttmon_mts_index_launch(x, launch));
		if (at < 0)
			return (int)at;
	}
	if (kind == TTMON_MTS_AGGS)
		e.a.launch = (uint32_t)launch;
	if (kind == TTMON_MTS_TOUCHES)
		e.t.launch = (uint32_t)launch;
	at = put_entry(x, kind, index, &e);
	return at < 0 ? (int)at : 0;
}

int ttmon_mts_index_read(struct ttmon_mts_index *x, unsigned int kind, uint32_t items, const uint8_t *p, size_t n)
{
	struct ttmon_mts_cursor c = { p, p + n, false };
	uint64_t first = ttmon_mts_number(&c);
	bool shapes = kind == TTMON_MTS_COUNTS;
	int err = 0;

	for (uint32_t i = 0; i < items && !err; i++)
		err = c.p >= c.end ? -EBADMSG : one_entry(x, shapes ? TTMON_MTS_AGGS : kind, shapes, first + i, &c);
	return err;
}

void ttmon_mts_index_fini(struct ttmon_mts_index *x)
{
	for (int i = 0; i < TTMON_MTS_DICT_MAX; i++)
		free(x->map[i].at);
}
