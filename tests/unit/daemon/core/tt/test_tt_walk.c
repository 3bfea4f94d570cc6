// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_tt_walk.c: core/tt against a naive model on seeded random walks: eight processes with 32
 * devices each, meshes of 32 and 16, every layout, frees of every kind, closed devices, kills, execs
 * and captures. The model computes all sums again after each step, so totals, counts and peaks of
 * every process, device and chip must be equal.
 */
#include "tests/unit/feed/tt_feed.h"

#define PROCS	   8
#define DEVS	   32
#define BUFS	   40 /* places for Buffers in a process */
#define CBS	   6
#define STEPS	   6000
#define TYPES	   5 /* DRAM, L1, L1_SMALL, TRACE, CB */
#define FIRST_TGID 50

struct model_buf {
	bool live;
	int mesh; /* -1: on dev */
	unsigned int dev, type;
	uint64_t size, allocator;
};

struct model {
	struct model_buf bufs[PROCS][BUFS];
	struct model_buf cbs[PROCS][DEVS][CBS];
	bool known[PROCS][3]; /* the devices of a mesh were reported */
	bool closed[PROCS][DEVS];
	bool seen[PROCS][DEVS];
	uint64_t bytes[PROCS][DEVS][TYPES], peak[PROCS][DEVS][TYPES];
	uint64_t chip_peak[DEVS][TYPES];
	uint64_t allocs[PROCS][DEVS], frees[PROCS][DEVS];
	uint64_t hooked[PROCS];
	uint64_t start[PROCS];
	uint64_t ts;
};

static uint64_t rng;

static uint32_t rnd(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)((rng >> 16) % n);
}

static const unsigned int mesh_first[] = { 0, 0, 16 }, mesh_last[] = { 31, 15, 31 };

static bool on_dev(const struct model *m, unsigned int p, const struct model_buf *b, unsigned int d)
{
	(void)m;
	(void)p;
	return b->mesh < 0 ? b->dev == d : d >= mesh_first[b->mesh] && d <= mesh_last[b->mesh];
}

static void count(struct model *m, unsigned int p, const struct model_buf *b, bool alloc)
{
	for (unsigned int d = 0; d < DEVS; d++) {
		if (!on_dev(m, p, b, d) || (b->mesh >= 0 && m->closed[p][d]))
			continue;
		if (alloc)
			m->allocs[p][d]++;
		else
			m->frees[p][d]++;
		m->seen[p][d] = true;
	}
}

/* Computes all sums from the beginning. */
static void add_up(struct model *m)
{
	uint64_t chip[DEVS][TYPES] = { { 0 } };

	memset(m->bytes, 0, sizeof(m->bytes));
	for (unsigned int p = 0; p < PROCS; p++)
		for (unsigned int d = 0; d < DEVS; d++) {
			for (unsigned int i = 0; i < BUFS; i++) {
				const struct model_buf *b = &m->bufs[p][i];

				if (b->live && on_dev(m, p, b, d) && !(b->mesh >= 0 && m->closed[p][d]))
					m->bytes[p][d][b->type] += b->size;
			}
			for (unsigned int i = 0; i < CBS; i++)
				if (m->cbs[p][d][i].live)
					m->bytes[p][d][4] += m->cbs[p][d][i].size;
			for (unsigned int y = 0; y < TYPES; y++) {
				m->peak[p][d][y] = MAX(m->peak[p][d][y], m->bytes[p][d][y]);
				chip[d][y] += m->bytes[p][d][y];
			}
		}
	for (unsigned int d = 0; d < DEVS; d++)
		for (unsigned int y = 0; y < TYPES; y++)
			m->chip_peak[d][y] = MAX(m->chip_peak[d][y], chip[d][y]);
}

static void compare(const struct model *m, const struct ttmon_tt *t)
{
	uint64_t chip[DEVS][TYPES] = { { 0 } };
	struct ttmon_tt_view v;

	assert_int_equal(ttmon_tt_snapshot(t, &v), 0);
	for (size_t i = 0; i < v.nr_uses; i++) {
		const struct ttmon_tt_use *u = &v.uses[i];
		const struct ttmon_tt_process *pr = &v.procs[u->proc];
		unsigned int p = pr->tgid - FIRST_TGID, d = u->logical;
		uint64_t live = 0;

		if (pr->end_ns)
			continue;
		assert_true(d < DEVS && p < PROCS);
		for (unsigned int y = 0; y < TYPES; y++) {
			assert_int_equal(u->bytes[y], m->bytes[p][d][y]);
			assert_int_equal(u->peak[y], m->peak[p][d][y]);
			chip[d][y] += u->bytes[y];
		}
		for (unsigned int k = 0; k < BUFS; k++)
			live += m->bufs[p][k].live && on_dev(m, p, &m->bufs[p][k], d) &&
				!(m->bufs[p][k].mesh >= 0 && m->closed[p][d]);
		for (unsigned int k = 0; k < CBS; k++)
			live += m->cbs[p][d][k].live;
		assert_int_equal(u->buffers, live);
		assert_int_equal(u->allocs, m->allocs[p][d]);
		assert_int_equal(u->frees, m->frees[p][d]);
		assert_int_equal(u->allocs - u->frees, live);
		assert_int_equal(pr->hooked, m->hooked[p]);
		assert_int_equal(pr->flags, 0);
		assert_int_equal(pr->refused, 0);
		assert_int_equal(pr->unknown_frees, 0);
	}
	for (size_t i = 0; i < v.nr_chips; i++)
		for (unsigned int y = 0; y < TYPES; y++) {
			assert_int_equal(v.chips[i].bytes[y], chip[v.chips[i].fact.index - 1][y]);
			assert_int_equal(v.chips[i].peak[y], m->chip_peak[v.chips[i].fact.index - 1][y]);
		}
	/* And the daemon has all of them. */
	for (unsigned int p = 0; p < PROCS; p++)
		for (unsigned int d = 0; d < DEVS; d++)
			if (m->seen[p][d]) {
				size_t i;

				for (i = 0; i < v.nr_uses; i++)
					if (v.procs[v.uses[i].proc].tgid == FIRST_TGID + p && v.uses[i].logical == d &&
					    !v.procs[v.uses[i].proc].end_ns)
						break;
				assert_true(i < v.nr_uses);
			}
	ttmon_tt_view_fini(&v);
}

static struct feed_buf feed_of(unsigned int p, unsigned int at, const struct model_buf *b)
{
	static const uint32_t raw[] = { 0, 1, 3, 4 };
	struct feed_buf f = b->mesh < 0 ? feed_buf(0x1000 * (at + 1), b->dev, b->size)
					: feed_mesh_buf(0x1000 * (at + 1), (unsigned int)b->mesh, b->size);

	f.type = raw[b->type];
	f.allocator = b->allocator;
	f.layout = p % 3 == 0 ? TTMON_TT_LAYOUT_E1 : p % 3 == 1 ? TTMON_TT_LAYOUT_E2 : TTMON_TT_LAYOUT_E4;
	f.status = f.layout == TTMON_TT_LAYOUT_E1 ? 2 : 1;
	f.addr = 0x100000 + 64 * at;
	return f;
}

static void start(struct model *m, struct ttmon_tt *t, unsigned int p, uint32_t reason)
{
	uint32_t tgid = FIRST_TGID + p;

	memset(m->bufs[p], 0, sizeof(m->bufs[p]));
	memset(m->cbs[p], 0, sizeof(m->cbs[p]));
	memset(m->known[p], 0, sizeof(m->known[p]));
	memset(m->closed[p], 0, sizeof(m->closed[p]));
	if (reason == TTMON_PROC_FORK) {
		memset(m->seen[p], 0, sizeof(m->seen[p]));
		memset(m->peak[p], 0, sizeof(m->peak[p]));
		memset(m->allocs[p], 0, sizeof(m->allocs[p]));
		memset(m->frees[p], 0, sizeof(m->frees[p]));
		m->hooked[p] = 0;
	}
	if (reason == TTMON_PROC_FORK)
		m->start[p] = m->ts;
	feed_proc(t, tgid, m->ts, m->start[p], reason);
	for (unsigned int d = 0; d < DEVS; d++) {
		feed_dev_new(t, tgid, m->ts, d, d);
		if (reason == TTMON_PROC_FORK)
			feed_place(t, tgid, m->ts, d, d + 1, 0);
	}
}

static void alloc(struct model *m, struct ttmon_tt *t, unsigned int p)
{
	unsigned int at = rnd(BUFS);
	struct model_buf *b = &m->bufs[p][at], n = { .live = true, .mesh = rnd(3) ? (int)rnd(3) : -1 };
	struct feed_buf f;
	uint32_t tgid = FIRST_TGID + p;

	n.dev = rnd(DEVS);
	n.type = rnd(4);
	n.size = 1 + rnd(1 << 20);
	n.allocator = ALLOCATOR(rnd(4));
	if (n.mesh < 0 && m->closed[p][n.dev])
		return;
	/* A mesh with closed devices is closing: nothing is allocated on it. */
	for (unsigned int d = 0; n.mesh >= 0 && d < DEVS; d++)
		if (m->closed[p][d])
			return;
	f = feed_of(p, at, &n);
	if (f.layout == TTMON_TT_LAYOUT_E1 || rnd(2)) /* E1 is settled at once by the arguments of Buffer::create */
		feed_create(t, tgid, m->ts, &f);
	if (rnd(20) == 0) { /* captured: takes nothing */
		if (b->live)
			count(m, p, b, false);
		b->live = false;
		f.addr = 0;
		f.hooked = 1;
		feed_buffer(t, tgid, m->ts, FN_ALLOCATED, &f);
		m->hooked[p]++;
		return;
	}
	if (b->live) /* its free was missed */
		count(m, p, b, false);
	if (rnd(2)) {
		struct feed_buf e = f;

		e.status = 0;
		e.addr = 0;
		feed_buffer(t, tgid, m->ts, FN_ENTER, &e);
		feed_buffer(t, tgid, m->ts, FN_INNER, &e);
	}
	feed_buffer(t, tgid, m->ts, FN_ALLOCATED, &f);
	*b = n;
	count(m, p, b, true);
	if (n.mesh < 0 || (m->known[p][n.mesh] && rnd(4)))
		return;
	if (rnd(2)) {
		feed_mesh(t, tgid, m->ts, (unsigned int)n.mesh, mesh_first[n.mesh],
			  mesh_last[n.mesh] - mesh_first[n.mesh] + 1);
	} else {
		feed_shadows(t, tgid, m->ts, &f, mesh_first[n.mesh], mesh_last[n.mesh]);
		m->ts += 21 * MS;
		ttmon_tt_tick(t, m->ts);
	}
	m->known[p][n.mesh] = true;
}

static void release(struct model *m, struct ttmon_tt *t, unsigned int p)
{
	static const uint16_t ways[][6] = {
		{ FN_FREEING },
		{ FN_DEALLOC, FN_LEAVE, FN_FREEING, FN_TAKE_BACK, FN_DTOR },
		{ FN_DTOR, FN_DEALLOC, FN_LEAVE, FN_FREEING, FN_TAKE_BACK },
		{ FN_MARK, FN_DTOR },
		{ FN_MARK },
		{ FN_LEAVE },
		{ FN_TAKE_BACK },
	};
	unsigned int at = rnd(BUFS);
	const uint16_t *way = ways[rnd(ARRAY_SIZE(ways))];
	struct model_buf *b = &m->bufs[p][at];
	struct feed_buf f = feed_of(p, at, b);

	if (!b->live)
		return;
	for (unsigned int i = 0; way[i]; i++)
		feed_buffer(t, FIRST_TGID + p, m->ts, way[i], &f);
	count(m, p, b, false);
	b->live = false;
}

static void bulk(struct model *m, struct ttmon_tt *t, unsigned int p)
{
	uint64_t allocator = ALLOCATOR(rnd(4));

	CALL(t, FIRST_TGID + p, m->ts, FN_BULK, 0, allocator);
	for (unsigned int i = 0; i < BUFS; i++)
		if (m->bufs[p][i].live && m->bufs[p][i].allocator == allocator) {
			count(m, p, &m->bufs[p][i], false);
			m->bufs[p][i].live = false;
		}
}

static void close_device(struct model *m, struct ttmon_tt *t, unsigned int p, unsigned int d)
{
	if (m->closed[p][d])
		return;
	CALL(t, FIRST_TGID + p, m->ts, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(d));
	for (unsigned int i = 0; i < BUFS; i++) {
		struct model_buf *b = &m->bufs[p][i];

		if (!b->live || !on_dev(m, p, b, d))
			continue;
		m->frees[p][d]++;
		if (b->mesh < 0)
			b->live = false;
	}
	for (unsigned int i = 0; i < CBS; i++) {
		m->frees[p][d] += m->cbs[p][d][i].live;
		m->cbs[p][d][i].live = false;
	}
	m->closed[p][d] = true;
}

/* Closes all devices and opens them again, as a program does that resets its mesh. */
static void reopen(struct model *m, struct ttmon_tt *t, unsigned int p)
{
	for (unsigned int d = 0; d < DEVS; d++)
		close_device(m, t, p, d);
	memset(m->bufs[p], 0, sizeof(m->bufs[p]));
	memset(m->known[p], 0, sizeof(m->known[p]));
	memset(m->closed[p], 0, sizeof(m->closed[p]));
	for (unsigned int d = 0; d < DEVS; d++)
		feed_dev_new(t, FIRST_TGID + p, m->ts, d, d);
}

static void circular(struct model *m, struct ttmon_tt *t, unsigned int p)
{
	unsigned int d = rnd(DEVS), i = rnd(CBS);
	uint64_t cores = 1 + i, size = 32 * (1 + rnd(3));
	struct model_buf *b = &m->cbs[p][d][i];
	bool global = rnd(4) == 0;

	if (m->closed[p][d])
		return;
	if (rnd(5) == 0) {
		CALL(t, FIRST_TGID + p, m->ts, FN_CB_FREE, TTMON_TT_DEV_DEVICE, DEV(d));
		for (i = 0; i < CBS; i++) {
			m->frees[p][d] += m->cbs[p][d][i].live;
			m->cbs[p][d][i].live = false;
		}
		return;
	}
	feed_cb(t, FIRST_TGID + p, m->ts, TTMON_TT_DEV_DEVICE, DEV(d), cores, 0x400 * i, size, global);
	if (global || (b->live && b->size == cores * size))
		return;
	m->frees[p][d] += b->live;
	m->allocs[p][d]++;
	m->seen[p][d] = true;
	*b = (struct model_buf){ .live = true, .mesh = -1, .dev = d, .type = 4, .size = cores * size };
}

static void end(struct model *m, struct ttmon_tt *t, unsigned int p, bool exec)
{
	if (!exec) {
		feed_exit(t, FIRST_TGID + p, m->ts);
		m->ts += SEC;
		start(m, t, p, TTMON_PROC_FORK);
		return;
	}
	for (unsigned int i = 0; i < BUFS; i++)
		if (m->bufs[p][i].live)
			count(m, p, &m->bufs[p][i], false);
	for (unsigned int d = 0; d < DEVS; d++)
		for (unsigned int i = 0; i < CBS; i++)
			m->frees[p][d] += m->cbs[p][d][i].live;
	start(m, t, p, TTMON_PROC_EXEC);
}

static void walk(uint64_t seed)
{
	struct model *m = calloc(1, sizeof(*m));
	struct ttmon_tt *t = feed_new();

	assert_non_null(m);
	rng = seed * 0x9e3779b97f4a7c15ULL + 1;
	m->ts = SEC;
	for (unsigned int d = 0; d < DEVS; d++)
		feed_chip(t, d + 1);
	for (unsigned int p = 0; p < PROCS; p++)
		start(m, t, p, TTMON_PROC_FORK);
	for (unsigned int step = 0; step < STEPS; step++) {
		unsigned int p = rnd(PROCS), what = rnd(1000);

		m->ts += 1 + rnd(1000);
		if (what < 560)
			alloc(m, t, p);
		else if (what < 900)
			release(m, t, p);
		else if (what < 920)
			bulk(m, t, p);
		else if (what < 980)
			circular(m, t, p);
		else if (what < 990)
			close_device(m, t, p, rnd(DEVS));
		else if (what < 996)
			reopen(m, t, p);
		else
			end(m, t, p, what < 998);
		add_up(m);
		if (rnd(8) == 0)
			ttmon_tt_tick(t, m->ts);
		if (step % 32 == 0)
			compare(m, t);
	}
	for (unsigned int p = 0; p < PROCS; p++)
		feed_exit(t, FIRST_TGID + p, m->ts + 1);
	memset(m->bufs, 0, sizeof(m->bufs));
	memset(m->cbs, 0, sizeof(m->cbs));
	memset(m->seen, 0, sizeof(m->seen));
	add_up(m);
	compare(m, t);
	ttmon_tt_free(t);
	free(m);
}

static void everything_is_what_the_model_says(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++)
		walk(seed);
}

/* ---- any input ---- */

static uint64_t any_word(void)
{
	static const uint64_t words[] = {
		0, 1, 2, 4, 5, 0x01000000, 0x0001000000000001, TTMON_TT_SIZE_MAX, UINT64_MAX, 1ULL << 63
	};

	switch (rnd(8)) {
	case 0:
		return words[rnd(ARRAY_SIZE(words))];
	case 1:
		return MESH(rnd(3));
	case 2:
		return ALLOCATOR(rnd(3));
	case 3:
		return 0x1000 * (1 + rnd(20));
	case 4:
		return rnd(1 << 20);
	default:
		return DEV(rnd(6));
	}
}

static void any_buffer(struct ttmon_tt *t, uint32_t tgid, uint64_t ts)
{
	struct ttmon_ev_tt_buffer ev = { .h = feed_head(TTMON_EV_TT_BUFFER, tgid, tgid + rnd(3), ts),
					 .buffer = 0x1000 * (1 + rnd(20)),
					 .device = any_word(),
					 .fn = (uint16_t)(FN_ALLOCATED + rnd(17)),
					 .base = (uint8_t)rnd(TTMON_TT_BASE_MAX),
					 .dev_kind = (uint8_t)rnd(TTMON_TT_DEV_MAX),
					 .slot = (uint16_t)rnd(2) };

	for (unsigned int i = 0; i < TTMON_TT_BUFFER_WORDS; i++)
		ev.w[i] = any_word();
	for (unsigned int i = 0; i < TTMON_TT_DEVICE_WORDS; i++)
		ev.dev[i] = any_word();
	FEED(t, ev);
}

/* A valid event, so that there is state to confuse. */
static void any_good(struct ttmon_tt *t, uint32_t tgid, uint64_t ts)
{
	static const uint16_t fns[] = { FN_ALLOCATED, FN_ALLOCATED, FN_FREEING, FN_ENTER, FN_INNER, FN_LEAVE, FN_DTOR };
	struct feed_buf b = rnd(2) ? feed_buf(0x1000 * (1 + rnd(20)), rnd(6), rnd(1 << 20))
				   : feed_mesh_buf(0x1000 * (1 + rnd(20)), rnd(3), rnd(1 << 20));

	b.layout = TTMON_TT_LAYOUT_E0 + tgid % 4;
	b.status = (uint8_t)rnd(4);
	b.id = rnd(8);
	b.impl = rnd(3);
	b.slot = (uint16_t)rnd(2);
	b.no_vtable = rnd(10) == 0;
	feed_buffer_by(t, tgid, tgid + rnd(3), ts, fns[rnd(ARRAY_SIZE(fns))], &b);
}

static void any_record(struct ttmon_tt *t, uint64_t ts)
{
	static const uint16_t calls[] = { FN_BULK, FN_SHADOW,  FN_CREATE,  FN_PROVIDER,
					  FN_CB,   FN_CB_FREE, FN_DEV_NEW, FN_DEV_END };
	uint32_t tgid = FIRST_TGID + rnd(PROCS), what = rnd(100);
	uint64_t arg[6];

	for (unsigned int i = 0; i < 6; i++)
		arg[i] = any_word();
	if (what < 50)
		any_good(t, tgid, ts);
	else if (what < 60)
		any_buffer(t, tgid, ts);
	else if (what < 85)
		feed_call(t, tgid, tgid + rnd(3), ts, calls[rnd(ARRAY_SIZE(calls))], (uint8_t)rnd(TTMON_TT_DEV_MAX),
			  arg);
	else if (what < 90)
		feed_mesh(t, tgid, ts, rnd(3), rnd(4), rnd(8));
	else if (what < 94)
		feed_place(t, tgid, ts, rnd(8), rnd(5), rnd(2));
	else if (what < 96)
		feed_proc(t, tgid, ts, rnd(3) ? 5 : ts, rnd(3));
	else if (what < 97)
		feed_exit(t, tgid, ts);
	else if (what < 98)
		feed_object(t, rnd(2), 1 + rnd(2), rnd(2));
	else if (what < 99)
		feed_chip(t, 1 + rnd(4));
	else
		ttmon_tt_tick(t, ts);
}

/* Checks that hold for any input. */
static void check_sums(const struct ttmon_tt *t)
{
	uint64_t chip[6][TTMON_TT_TYPES] = { { 0 } };
	struct ttmon_tt_view v;

	assert_int_equal(ttmon_tt_snapshot(t, &v), 0);
	for (size_t i = 0; i < v.nr_uses; i++) {
		const struct ttmon_tt_use *u = &v.uses[i];
		uint64_t sum = 0;

		assert_true(u->proc < v.nr_procs && u->chip < 6);
		assert_true(i == 0 || v.uses[i - 1].proc <= u->proc);
		assert_true(u->frees <= u->allocs && u->buffers == u->allocs - u->frees);
		for (unsigned int y = 0; y < TTMON_TT_TYPES; y++) {
			assert_true(u->bytes[y] <= u->peak[y] && u->peak[y] <= 2 * TTMON_TT_SIZE_MAX);
			chip[u->chip][y] += u->bytes[y];
			sum += u->bytes[y];
		}
		assert_true(sum == 0 || u->buffers);
		assert_true(u->buffers == 0 || !v.procs[u->proc].end_ns);
	}
	for (size_t i = 0; i < v.nr_chips; i++)
		for (unsigned int y = 0; y < TTMON_TT_TYPES; y++) {
			assert_int_equal(v.chips[i].bytes[y], chip[v.chips[i].fact.index][y]);
			assert_true(v.chips[i].bytes[y] <= v.chips[i].peak[y]);
		}
	ttmon_tt_view_fini(&v);
}

static void whatever_comes_the_sums_agree(void **state)
{
	struct ttmon_tt_want wants[4];

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct ttmon_tt *t = feed_new();
		uint64_t ts = SEC;

		rng = seed * 0x9e3779b97f4a7c15ULL + 7;
		for (unsigned int i = 0; i < 20000; i++) {
			ts += rnd(100) ? rnd(20000) : rnd(100) * MS;
			any_record(t, rnd(50) ? ts : ts - rnd(1 << 20));
			if (i % 50 == 0) {
				ttmon_tt_wants(t, wants, 4);
				check_sums(t);
			}
		}
		ttmon_tt_finish(t, ts);
		check_sums(t);
		for (uint32_t p = 0; p < PROCS; p++)
			feed_exit(t, FIRST_TGID + p, ts + SEC);
		check_sums(t);
		ttmon_tt_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_what_the_model_says),
		cmocka_unit_test(whatever_comes_the_sums_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
