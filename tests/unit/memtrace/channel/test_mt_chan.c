// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_chan.c: a channel with simulated producers, threads as warps: what was committed arrives
 * once, in the order of its ring, and what was dropped is counted to the last one. And memory that
 * lies: nothing of it may harm the reader.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memtrace/channel/chan_int.h"
#include "tests/memtrace/producer.h"

#define KERNEL "vecadd(float const*, float*)"

struct got {
	struct ttmon_mt_dictw dict;
	struct ttmon_mt_stats stats;
	struct ttmon_mt_sink sink;
	struct ttmon_mt_rec last;
	uint64_t list[TTMON_MT_LANES];
	uint64_t n, addr_sum, times; /* times: of a light sink, sum of what launches' are known */
	uint64_t order[8][64];	     /* [thread][ring]: next of it, by cta[0] */
	int fail;
	char note[512];
	unsigned int notes;
};

static uint64_t rng = 88172645463325252;

static uint64_t below(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

/*
 * Threads of the load below put their number in cta[1], their ring in cta[2], and a count in cta[0];
 * base is a hash of these.
 */
static uint64_t hash_of(uint64_t thread, uint64_t ring, uint64_t no)
{
	return ((thread << 40 | ring << 32 | no) + 1) * 0x9e3779b97f4a7c15u;
}

static int recs(void *ctx, const struct ttmon_mt_rec *r, size_t n, uint32_t pid)
{
	struct got *g = ctx;

	assert_int_not_equal(pid, 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(r[i].site < g->dict.dict.nr_sites && r[i].launch < g->dict.dict.nr_launches);
		assert_true(r[i].mask && r[i].width >= 1 && r[i].width <= 64 && r[i].space < TTMON_MT_SPACE_MAX);
		assert_int_equal(r[i].seq, g->n++);
		g->times += g->sink.light ? g->sink.launch_ns[i] : 0;
		for (unsigned int lane = 0; r[i].addr && lane < TTMON_MT_LANES; lane++)
			if (r[i].mask >> lane & 1)
				g->addr_sum += r[i].addr[lane];
	}
	g->last = r[n - 1];
	if (g->last.addr)
		memcpy(g->list, g->last.addr, sizeof(g->list));
	return g->fail;
}

static void note(void *ctx, uint32_t pid, const char *text)
{
	struct got *g = ctx;

	(void)pid;
	snprintf(g->note, sizeof(g->note), "%s", text);
	g->notes++;
}

static void begin(struct got *g)
{
	memset(g, 0, sizeof(*g));
	g->sink = (struct ttmon_mt_sink){ .dict = &g->dict, .stats = &g->stats, .recs = recs, .note = note, .ctx = g };
}

static struct ttmon_mt_chan *open_chan(const struct mtp *p)
{
	struct ttmon_mt_chan *c;
	char why[200] = "";

	if (ttmon_mt_chan_open(dup(p->fd), &c, why, sizeof(why)))
		fail_msg("%s", why);
	return c;
}

static int read_all(struct ttmon_mt_chan *c, struct got *g)
{
	char why[200] = "";
	int err;

	do
		err = ttmon_mt_chan_read(c, &g->sink, 10000, why, sizeof(why));
	while (err > 0);
	assert_true(!err || *why);
	return err;
}

static void setup(struct mtp *p, uint32_t rings, uint32_t units)
{
	assert_int_equal(mtp_new(p, rings, units, TTMON_MTC_MIN_DICT), 0);
	assert_true(mtp_site(p, 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4, KERNEL, "ld.global.f32"));
	assert_true(mtp_site(p, 7, TTMON_MT_GENERIC, TTMON_MT_STORE, 8, KERNEL, "st.f64"));
	assert_true(mtp_launch(p, 0, KERNEL));
}

/* ---- what a record becomes ---- */

static void records_become_ours(void **state)
{
	struct ttmon_mtc_rec rec = { .base = 0x7f0000001000,
				     .mask = 0xfffffff0,
				     .stride = -4,
				     .launch_warp = 0 << 6 | 31,
				     .cta_x = 70000,
				     .cta_y = 8,
				     .cta_z = 9 };
	uint64_t list[TTMON_MT_LANES];
	struct ttmon_mt_chan *c;
	struct mtp p;
	struct got g;

	(void)state;
	begin(&g);
	setup(&p, 2, 16);
	c = open_chan(&p);
	assert_int_equal(p.head->consumer, 1);
	assert_true(mtp_put(&p, 1, rec, 0, 0, NULL));
	assert_int_equal(read_all(c, &g), 0);
	assert_int_equal(g.n, 1);
	assert_true(g.last.base == rec.base && g.last.stride == -4 && g.last.mask == rec.mask && !g.last.addr);
	assert_true(g.last.warp == 31 && g.last.cta[0] == 70000 && g.last.cta[1] == 8 && g.last.cta[2] == 9);
	assert_true(g.last.space == TTMON_MT_GLOBAL && g.last.width == 4 && g.last.sm == TTMON_MT_NO_SM &&
		    !g.last.flags);
	assert_string_equal(g.dict.dict.sites[g.last.site].opcode, "ld.global.f32");
	assert_string_equal(g.dict.dict.launches[g.last.launch].kernel, KERNEL);
	assert_int_equal(g.dict.dict.launches[g.last.launch].pid, getpid());

	/* A list of every length, over the end of the ring, at a generic site that turned out to be shared. */
	for (unsigned int lanes = 1; lanes <= TTMON_MT_LANES; lanes++) {
		uint64_t sum = g.addr_sum;

		rec.mask = lanes == TTMON_MT_LANES ? UINT32_MAX
						   : ((1u << lanes) - 1) << (below(TTMON_MT_LANES - lanes + 1));
		for (unsigned int i = 0; i < lanes; i++) {
			list[i] = below(1ull << 48);
			sum += list[i];
		}
		assert_true(mtp_put(&p, 0, rec, TTMON_MT_SHARED, 7, list));
		assert_int_equal(read_all(c, &g), 0);
		assert_true(g.last.addr && g.last.base == list[0] && g.list[__builtin_ctz(rec.mask)] == list[0] &&
			    !g.last.stride);
		assert_true(g.last.space == TTMON_MT_SHARED && g.last.width == 8 && g.last.mask == rec.mask);
		assert_int_equal(g.addr_sum, sum);
	}
	/* One lane has no stride. */
	rec.mask = 1 << 5;
	assert_true(mtp_put(&p, 0, rec, 0, 0, NULL));
	assert_int_equal(read_all(c, &g), 0);
	assert_int_equal(g.last.stride, 0);
	assert_true(g.stats.produced == 34 && g.stats.records == 34 && !g.stats.dropped && !g.stats.malformed);
	for (size_t i = 0; i < 2ul * 16 * 4; i++)
		assert_int_equal(mtp_unit(&p, 0, 0)[i], 0);
	assert_false(ttmon_mt_chan_done(c));
	mtp_done(&p);
	assert_true(ttmon_mt_chan_done(c));
	ttmon_mt_chan_free(c);
	assert_int_equal(p.head->consumer, 0);
	ttmon_mt_dict_fini(&g.dict);
	mtp_free(&p);
}

/* ---- threads ---- */

#define RINGS	    4
#define THREADS	    3
#define OF_A_THREAD 20000

struct load {
	struct mtp p;
	uint64_t dropped[THREADS];
	uint32_t finished;
};

struct thread {
	struct load *l;
	unsigned int no;
};

static void *warp(void *arg)
{
	struct thread *t = arg;
	uint64_t seed = t->no + 1, next[RINGS] = { 0 }, list[TTMON_MT_LANES];

	for (unsigned int i = 0; i < OF_A_THREAD; i++) {
		uint32_t ring = (uint32_t)((seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33) % RINGS;
		uint64_t base = hash_of(t->no, ring, next[ring]);
		struct ttmon_mtc_rec rec = { .base = base,
					     .mask = (uint32_t)(seed >> 20) | 1,
					     .cta_x = (uint32_t)next[ring]++,
					     .cta_y = (uint16_t)t->no,
					     .cta_z = (uint16_t)ring };
		bool as_list = seed >> 62 == 0;

		for (unsigned int k = 0; as_list && k < TTMON_MT_LANES; k++)
			list[k] = base + k;
		if (!mtp_put(&t->l->p, ring, rec, 0, 0, as_list ? list : NULL))
			t->l->dropped[t->no]++;
	}
	__atomic_fetch_add(&t->l->finished, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int check_order(void *ctx, const struct ttmon_mt_rec *r, size_t n, uint32_t pid)
{
	struct got *g = ctx;

	(void)pid;
	for (size_t i = 0; i < n; i++) {
		uint64_t *next = &g->order[r[i].cta[1]][r[i].cta[2]];
		unsigned int k = 0;

		/* Dropped ones are missing; none comes twice or early. */
		assert_true(r[i].cta[1] < THREADS && r[i].cta[2] < RINGS && r[i].cta[0] >= *next);
		*next = r[i].cta[0] + 1;
		assert_int_equal(r[i].base, hash_of(r[i].cta[1], r[i].cta[2], r[i].cta[0]));
		for (unsigned int lane = 0; r[i].addr && lane < TTMON_MT_LANES; lane++)
			if (r[i].mask >> lane & 1)
				assert_int_equal(r[i].addr[lane], r[i].base + k++);
	}
	g->n += n;
	return 0;
}

/* units, spin: of the producers. slow: the reader takes few at a time. */
static void run_load(uint32_t units, uint32_t spin, bool slow, bool want_drops)
{
	struct load l = { .finished = 0 };
	struct thread threads[THREADS];
	pthread_t ids[THREADS];
	struct ttmon_mt_chan *c;
	uint64_t dropped = 0;
	uint8_t *own;
	char why[200];
	struct got g;
	int err;

	begin(&g);
	g.sink.recs = check_order;
	setup(&l.p, RINGS, units);
	l.p.spin = spin;
	c = open_chan(&l.p);
	/* TSan goes by addresses. */
	own = c->mem;
	c->mem = l.p.mem;
	for (unsigned int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ &l, i };
		assert_int_equal(pthread_create(&ids[i], NULL, warp, &threads[i]), 0);
	}
	while (__atomic_load_n(&l.finished, __ATOMIC_ACQUIRE) < THREADS) {
		err = ttmon_mt_chan_read(c, &g.sink, slow ? 1 : 10000, why, sizeof(why));
		assert_true(err == 0 || err == 1);
		sched_yield();
		if (slow)
			usleep(200);
	}
	mtp_done(&l.p);
	assert_true(ttmon_mt_chan_done(c));
	assert_int_equal(read_all(c, &g), 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(ids[i], NULL);
		dropped += l.dropped[i];
	}
	assert_int_equal(g.stats.dropped, dropped);
	assert_int_equal(g.stats.produced, THREADS * OF_A_THREAD);
	assert_int_equal(g.stats.records, THREADS * OF_A_THREAD - dropped);
	assert_int_equal(g.n, g.stats.records);
	assert_int_equal(g.stats.malformed + g.stats.no_launch, 0);
	assert_true(want_drops ? dropped > 0 : !dropped);
	c->mem = own;
	ttmon_mt_chan_free(c);
	ttmon_mt_dict_fini(&g.dict);
	mtp_free(&l.p);
}

static void nothing_is_lost_while_they_wait(void **state)
{
	(void)state;
	run_load(16, UINT32_MAX, false, false);
	run_load(1024, UINT32_MAX, false, false);
}

static void drops_are_counted_exactly(void **state)
{
	(void)state;
	run_load(16, 3, true, true);
	run_load(64, 0, true, true);
}

/* A reader that has gone costs one wait a ring, not one a record. */
static void a_dead_reader_is_not_waited_for(void **state)
{
	struct ttmon_mtc_rec rec = { .base = 4096, .mask = 1 };
	struct mtp p;

	(void)state;
	setup(&p, 1, 16);
	for (unsigned int i = 0; i < 16; i++)
		assert_true(mtp_put(&p, 0, rec, 0, 0, NULL));
	p.spin = 3;
	assert_false(mtp_put(&p, 0, rec, 0, 0, NULL));
	p.spin = UINT32_MAX;
	for (unsigned int i = 0; i < 1000; i++)
		assert_false(mtp_put(&p, 0, rec, 0, 0, NULL));
	assert_int_equal(p.rings[0].lost, 1001);
	mtp_free(&p);
}

/* ---- the dictionary ---- */

static void the_last_sums_hold(void **state)
{
	struct ttmon_mtc_agg_entry agg = { .e.kind = TTMON_MTC_ENTRY_AGG,
					   .site = 7,
					   .agg = { .lanes = { [31] = 1 }, .least = ~64ull, .greatest = 128 } };
	struct ttmon_mtc_touch touch = { .e.kind = TTMON_MTC_ENTRY_TOUCH, .addr = 8192, .size = 4096, .reads = 1 };
	struct ttmon_mtc_lost lost = { .e.kind = TTMON_MTC_ENTRY_LOST, .records = 5, .pages = 2 };
	struct ttmon_mtc_note say = { .e.kind = TTMON_MTC_ENTRY_NOTE };
	struct ttmon_mt_chan *c;
	struct mtp p;
	struct got g;

	(void)state;
	begin(&g);
	setup(&p, 1, 16);
	c = open_chan(&p);
	assert_true(mtp_kernel(&p, "a", 1, 0, 3, ""));
	assert_true(mtp_kernel(&p, "b", 9, 0, 0, "no PTX"));
	assert_true(mtp_kernel(&p, "a", 2, 1, 3, "longer than before"));
	assert_true(mtp_kernel(&p, "a", 3, 3, 3, ""));
	assert_true(mtp_entry(&p, &agg, sizeof(agg), NULL));
	agg.agg.lanes[31] = 2;
	assert_true(mtp_entry(&p, &agg, sizeof(agg), NULL));
	agg.site = 6; /* not announced */
	assert_true(mtp_entry(&p, &agg, sizeof(agg), NULL));
	assert_true(mtp_entry(&p, &touch, sizeof(touch), NULL));
	touch.e.kind = TTMON_MTC_ENTRY_OWN; /* is reported, but is not part of the trace */
	touch.addr = 16384;
	assert_true(mtp_entry(&p, &touch, sizeof(touch), NULL));
	assert_true(mtp_entry(&p, &lost, sizeof(lost), NULL));
	assert_true(mtp_entry(&p, &say, sizeof(say), "cubin \033[2J only", NULL));
	assert_int_equal(read_all(c, &g), 0);
	assert_string_equal(g.note, "cubin ?[2J only");
	assert_int_equal(g.dict.dict.nr_aggs + g.dict.dict.nr_kernels, 0);
	assert_int_equal(ttmon_mt_chan_end(c, &g.sink), 0);
	assert_int_equal(g.dict.dict.nr_aggs, 1);
	assert_true(g.dict.dict.aggs[0].requests == 2 && g.dict.dict.aggs[0].bytes == 512 &&
		    g.dict.dict.aggs[0].min_addr == 64 && g.dict.dict.aggs[0].max_addr == 135);
	assert_true(g.dict.dict.aggs[0].site == 1 && g.dict.dict.aggs[0].launch == TTMON_MT_NO_LAUNCH);
	assert_int_equal(g.dict.dict.nr_kernels, 2);
	assert_true(g.dict.dict.kernels[0].launches == 3 && g.dict.dict.kernels[0].recorded == 3 &&
		    !*g.dict.dict.kernels[0].why);
	assert_string_equal(g.dict.dict.kernels[1].why, "no PTX");
	assert_string_equal(g.dict.dict.kernels[1].module, "module.cubin");
	assert_true(g.dict.dict.nr_touches == 1 && g.dict.dict.touches[0].addr == 8192 &&
		    g.dict.dict.touches[0].reads == 1);
	assert_true(g.stats.dropped == 5 && g.stats.produced == 5 && g.stats.malformed == 1);
	assert_non_null(strstr(g.note, "2 touched pages"));
	ttmon_mt_chan_free(c);
	ttmon_mt_dict_fini(&g.dict);
	mtp_free(&p);
}

/*
 * What the GPU counts is what its records would add up to: a width of 8, three requests of 32, 32 and
 * 2 lanes.
 */
static void counters_become_sums(void **state)
{
	struct ttmon_mtc_agg g = { .misaligned = 1,
				   .saved = 7,
				   .twice = 31,
				   .pages_4k = 3,
				   .pages_2m = 1,
				   .same = 33,
				   .most_same = 31,
				   .phases = 5,
				   .ideal_waves = 6,
				   .more_cost = 9,
				   .more_lines = 4,
				   .strides = { 64, (uint64_t)-16 },
				   .stride_requests = { 1, 1 },
				   .least = ~100ull,
				   .greatest = 200 };
	struct ttmon_mt_chan_site s = { .index = 6, .space = TTMON_MT_GLOBAL, .kind = TTMON_MT_RED, .width = 8 };
	struct ttmon_mt_agg a;

	(void)state;
	g.lanes[31] = 2;
	g.lanes[1] = 1;
	g.cost[1] = 1;
	g.cost[32] = 2;
	g.lines[0] = 2;
	g.lines[32] = 1;
	g.bins_4k[1] = 1;
	g.bins_2m[0] = 1;
	g.classes[8] = 3;
	ttmon_mt_chan_agg(&g, &s, &a);
	assert_true(a.site == 5 && a.launch == TTMON_MT_NO_LAUNCH && a.shapes);
	assert_true(a.requests == 3 && a.full == 2 && a.lanes == 66 && a.bytes == 66 * 8 && a.unique == 35 * 8);
	assert_true(a.ideal_lanes == 8 + 8 + 1 && a.ideal == 10 && a.misaligned == 1);
	assert_true(a.sectors == 2 + 2 * 33 + 9 && a.lines == 2 + 33 + 4 && !a.waves && !a.phases && !a.ideal_waves);
	assert_true(a.pages_4k == 6 && a.pages_64k == 3 && a.pages_2m == 4);
	assert_true(a.pages_4k_bins[0] == 2 && a.pages_4k_bins[2] == 1 && a.pages_2m_bins[1] == 1);
	assert_true(a.same == 36 && a.max_same == 32);
	assert_true(a.classes[8] == 3 && a.lanes_hist[2] == 1 && a.lanes_hist[32] == 2);
	assert_true(a.cost_hist[2] == 1 && a.cost_hist[33] == 2 && a.lines_hist[1] == 2 && a.lines_hist[33] == 1);
	assert_true(a.stride[1] == -16 && a.stride_requests[1] == 1);
	assert_true(a.min_addr == 100 && a.max_addr == 207);
	s.space = TTMON_MT_SHARED;
	s.kind = TTMON_MT_LOAD;
	g.cost[32] = 0;
	g.more_cost = 0;
	ttmon_mt_chan_agg(&g, &s, &a);
	assert_true(a.waves == 2 && a.phases == 5 && a.ideal_waves == 6 && a.max_waves == 2);
	assert_true(!a.sectors && !a.lines && !a.ideal_lanes && !a.same && !a.max_same && !a.pages_4k);
}

/*
 * Many entries, over the end of the ring again and again; and what does not fit is counted by the
 * program.
 */
static void a_dictionary_goes_round(void **state)
{
	struct ttmon_mt_chan *c;
	uint64_t refused = 0;
	char name[600];
	struct mtp p;
	struct got g;

	(void)state;
	begin(&g);
	setup(&p, 1, 16);
	c = open_chan(&p);
	for (uint32_t i = 1; i < 1000; i++) {
		memset(name, 'a' + i % 26, sizeof(name));
		name[i % sizeof(name)] = '\0';
		if (!mtp_launch(&p, i, name)) {
			refused++;
			assert_int_equal(read_all(c, &g), 0);
			assert_true(mtp_launch(&p, i, name));
		}
	}
	assert_int_equal(read_all(c, &g), 0);
	assert_true(refused > 2 && p.head->dict_lost == refused);
	assert_int_equal(g.dict.dict.nr_launches, 1000);
	for (uint32_t i = 1; i < 1000; i++) {
		assert_int_equal(g.dict.dict.launches[i].id, i);
		assert_int_equal(strlen(g.dict.dict.launches[i].kernel), i % sizeof(name));
		assert_true(!(i % sizeof(name)) || g.dict.dict.launches[i].kernel[0] == (char)('a' + i % 26));
	}
	assert_int_equal(ttmon_mt_chan_end(c, &g.sink), 0);
	assert_non_null(strstr(g.note, "launches were not recorded"));
	ttmon_mt_chan_free(c);
	ttmon_mt_dict_fini(&g.dict);
	mtp_free(&p);
}

/* What two channels announce is one site, under whatever number; launches stay apart. */
static void equal_sites_are_one(void **state)
{
	struct ttmon_mtc_rec rec = { .base = 4096, .mask = 1 };
	struct ttmon_mt_names *names;
	struct ttmon_mt_chan *a, *b;
	struct mtp p, q;
	struct got g;

	(void)state;
	begin(&g);
	setup(&p, 1, 16);
	assert_int_equal(mtp_new(&q, 1, 16, TTMON_MTC_MIN_DICT), 0);
	assert_true(mtp_site(&q, 1, TTMON_MT_GENERIC, TTMON_MT_STORE, 8, KERNEL, "st.f64"));
	assert_true(mtp_site(&q, 2, TTMON_MT_GENERIC, TTMON_MT_STORE, 4, KERNEL, "st.f64"));
	assert_true(mtp_launch(&q, 0, KERNEL));
	assert_int_equal(ttmon_mt_names_new(&names), 0);
	a = open_chan(&p);
	b = open_chan(&q);
	ttmon_mt_chan_set_names(a, names);
	ttmon_mt_chan_set_names(b, names);
	assert_int_equal(read_all(a, &g), 0);
	assert_true(mtp_put(&q, 0, rec, 0, 1, NULL));
	assert_int_equal(read_all(b, &g), 0);
	assert_int_equal(g.dict.dict.nr_sites, 3);
	assert_int_equal(g.dict.dict.nr_launches, 2);
	assert_int_equal(g.last.site, 1);
	assert_int_equal(g.last.launch, 1);
	ttmon_mt_chan_free(a);
	ttmon_mt_chan_free(b);
	ttmon_mt_names_free(names);
	ttmon_mt_dict_fini(&g.dict);
	mtp_free(&p);
	mtp_free(&q);
}

static void touch(void *ctx, const struct ttmon_mt_touch *t)
{
	struct got *g = ctx;

	assert_int_equal(t->pid, getpid());
	g->addr_sum += t->addr;
}

/*
 * A reader that runs for ever keeps no more than the kinds of sites, and no lie about a number stays.
 */
static void a_light_sink_does_not_grow(void **state)
{
	struct ttmon_mtc_agg_entry agg = { .e.kind = TTMON_MTC_ENTRY_AGG, .site = 7, .agg = { .lanes = { 1 } } };
	struct ttmon_mtc_touch touched = { .e.kind = TTMON_MTC_ENTRY_TOUCH, .addr = 8192, .size = 4096, .reads = 1 };
	struct ttmon_mtc_lost lost = { .e.kind = TTMON_MTC_ENTRY_LOST, .records = UINT64_MAX - 5 };
	struct ttmon_mtc_rec rec = { .base = 4096, .mask = 1 };
	struct ttmon_mt_chan *c;
	struct mtp p;
	struct got g;

	(void)state;
	begin(&g);
	g.sink.touch = touch;
	g.sink.light = true;
	setup(&p, 1, 16);
	c = open_chan(&p);
	for (uint32_t i = 1; i < 5; i++) {
		struct ttmon_mtc_launch launch = { .e.kind = TTMON_MTC_ENTRY_LAUNCH,
						   .id = i,
						   .grid = { 1, 1, 1 },
						   .block = { 32, 1, 1 },
						   .time_ns = i * 1000,
						   .flags = i == 3 ? TTMON_MT_LAUNCH_GRAPH : 0 };

		/* The last is never announced. */
		if (i < 4)
			assert_true(mtp_entry(&p, &launch, sizeof(launch), KERNEL, NULL));
		rec.launch_warp = i << 6;
		assert_true(mtp_put(&p, 0, rec, 0, 0, NULL));
	}
	for (uint32_t i = 100; i < 400; i++)
		assert_true(mtp_site(&p, i, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4, "another", "ld"));
	assert_true(mtp_kernel(&p, "a", 1, 0, 3, ""));
	assert_true(mtp_entry(&p, &agg, sizeof(agg), NULL));
	assert_true(mtp_entry(&p, &touched, sizeof(touched), NULL));
	touched.e.kind = TTMON_MTC_ENTRY_OWN;
	assert_true(mtp_entry(&p, &touched, sizeof(touched), NULL));
	assert_true(mtp_entry(&p, &lost, sizeof(lost), NULL));
	assert_int_equal(read_all(c, &g), 0);
	assert_int_equal(ttmon_mt_chan_end(c, &g.sink), 0);
	assert_true(g.stats.dropped && g.stats.dropped < 1ull << 41);
	assert_true(g.n == 4 && g.addr_sum == 2 * 8192 && !g.stats.no_launch && !g.stats.malformed);
	assert_true(g.dict.dict.nr_sites == 2 && g.dict.dict.nr_launches == 1 && g.last.launch == 0);
	assert_int_equal(g.times, 1000 + 2000);
	assert_int_equal(g.dict.dict.nr_aggs + g.dict.dict.nr_kernels + g.dict.dict.nr_touches, 0);
	ttmon_mt_chan_free(c);
	ttmon_mt_dict_fini(&g.dict);
	mtp_free(&p);
}

/* Of strangers one has a quarter of what the others have left, and is named. */
static void nobody_takes_all_the_room(void **state)
{
	char text[8000];
	struct ttmon_mt_names *names;
	struct ttmon_mt_chan *a, *b;
	uint64_t malformed;
	struct mtp p, q;
	struct got g;

	(void)state;
	begin(&g);
	g.sink.shared = true;
	assert_int_equal(ttmon_mt_names_new(&names), 0);
	setup(&p, 1, 16);
	setup(&q, 1, 16);
	a = open_chan(&p);
	b = open_chan(&q);
	ttmon_mt_chan_set_names(a, names);
	ttmon_mt_chan_set_names(b, names);
	/* As if the others had taken all but 64 KiB. */
	names->texts = TTMON_MT_ALL_TEXTS - 65536;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (uint32_t i = 0; i < 6; i++) {
		text[0] = (char)('a' + i);
		assert_true(mtp_site(&p, 100 + i, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4, text, "ld"));
	}
	assert_int_equal(read_all(a, &g), 0);
	assert_true(g.notes == 1 && strstr(g.note, "share"));
	malformed = g.stats.malformed;
	assert_true(malformed >= 3 && malformed <= 5);
	assert_int_equal(read_all(b, &g), 0);
	assert_true(mtp_site(&q, 100, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4, "mine", "ld"));
	assert_int_equal(read_all(b, &g), 0);
	assert_true(g.notes == 1 && g.stats.malformed == malformed);
	ttmon_mt_chan_free(a);
	ttmon_mt_chan_free(b);
	ttmon_mt_names_free(names);
	ttmon_mt_dict_fini(&g.dict);
	mtp_free(&p);
	mtp_free(&q);
}

/* ---- what lies ---- */

static void unknown_names_are_counted(void **state)
{
	struct ttmon_mtc_rec rec = { .base = 4096, .mask = 3, .stride = 4, .launch_warp = 9 << 6 };
	struct ttmon_mtc_site bad = { .e.kind = TTMON_MTC_ENTRY_SITE, .id = 3, .width = 65 };
	struct ttmon_mt_chan *c;
	struct mtp p;
	struct got g;

	(void)state;
	begin(&g);
	setup(&p, 1, 64);
	c = open_chan(&p);
	assert_true(mtp_put(&p, 0, rec, 0, 0, NULL)); /* launches that were not announced are one */
	rec.launch_warp = 10 << 6;
	assert_true(mtp_put(&p, 0, rec, 0, 0, NULL));
	assert_int_equal(read_all(c, &g), 0);
	assert_int_equal(g.stats.no_launch, 2);
	assert_int_equal(g.dict.dict.nr_launches, 2);
	assert_int_equal(g.dict.dict.launches[g.last.launch].flags, TTMON_MT_LAUNCH_MADE_UP);
	assert_true(mtp_launch(&p, 10, "late"));
	assert_true(mtp_put(&p, 0, rec, 0, 0, NULL));
	assert_int_equal(read_all(c, &g), 0);
	assert_string_equal(g.dict.dict.launches[g.last.launch].kernel, "late");

	assert_true(mtp_entry(&p, &bad, sizeof(bad), "k", "o", NULL));
	bad.width = 4;
	bad.kind = TTMON_MT_KIND_MAX;
	assert_true(mtp_entry(&p, &bad, sizeof(bad), "k", "o", NULL));
	bad.kind = 0;
	bad.id = TTMON_MTC_MAX_SITES;
	assert_true(mtp_entry(&p, &bad, sizeof(bad), "k", "o", NULL));
	assert_true(mtp_put(&p, 0, rec, 0, 3, NULL));
	assert_true(mtp_put(&p, 0, rec, 0, TTMON_MTC_MAX_SITES - 1, NULL));
	assert_true(mtp_put(&p, 0, rec, 0, 0x3fffff, NULL));
	rec.mask = 0;
	assert_true(mtp_put(&p, 0, rec, 0, 0, NULL));
	assert_int_equal(read_all(c, &g), 0);
	assert_int_equal(g.stats.malformed, 3 + 4);
	assert_int_equal(g.stats.produced, g.stats.records + g.stats.malformed - 3);
	assert_int_equal(g.n, 3);
	ttmon_mt_chan_free(c);
	ttmon_mt_dict_fini(&g.dict);
	mtp_free(&p);
}

/* A site of the longest texts, or of none, or without the last NUL. */
static void texts_may_be_missing(void **state)
{
	struct ttmon_mtc_site e = { .e.kind = TTMON_MTC_ENTRY_SITE, .id = 1, .width = 4 };
	static char huge[TTMON_MTC_MAX_ENTRY - sizeof(e) - 8];
	struct ttmon_mt_chan *c;
	struct mtp p;
	struct got g;

	(void)state;
	begin(&g);
	assert_int_equal(mtp_new(&p, 1, 16, TTMON_MTC_MIN_DICT), 0);
	c = open_chan(&p);
	assert_true(mtp_entry(&p, &e, sizeof(e), NULL));
	memset(huge, 'x', sizeof(huge) - 1);
	e.id = 2;
	assert_true(mtp_entry(&p, &e, sizeof(e), huge, NULL));
	e.id = 3;
	assert_true(mtp_entry(&p, &e, sizeof(e), "1234567", NULL));
	*(char *)(p.mem + p.head->dict_off + p.dict_head - 1) = '8';
	assert_int_equal(read_all(c, &g), 0);
	assert_int_equal(g.dict.dict.nr_sites, 3);
	assert_string_equal(g.dict.dict.sites[0].kernel, "");
	assert_int_equal(strlen(g.dict.dict.sites[1].kernel), TTMON_MT_MAX_TEXT);
	assert_string_equal(g.dict.dict.sites[2].kernel, "12345678");
	assert_string_equal(g.dict.dict.sites[2].module, "");
	ttmon_mt_chan_free(c);
	ttmon_mt_dict_fini(&g.dict);
	mtp_free(&p);
}

/* What breaks the protocol: one line, and for ever. What came before it is kept. */
static void a_broken_channel_stays_broken(void **state)
{
	static const uint32_t tags[] = { 1, TTMON_MTC_COMMITTED, TTMON_MTC_COMMITTED | 1u << 29 | 1u << 22, 3u << 29 };
	struct ttmon_mtc_rec rec = { .base = 4096, .mask = 3, .stride = 4 };
	struct ttmon_mtc_entry e = { .kind = TTMON_MTC_ENTRY_NOTE };

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(tags) + 4; i++) {
		struct ttmon_mt_chan *c;
		struct mtp p;
		struct got g;

		begin(&g);
		setup(&p, 2, 16);
		c = open_chan(&p);
		assert_int_equal(read_all(c, &g), 0);
		assert_true(mtp_put(&p, 0, rec, 0, 0, NULL));
		if (i < ARRAY_SIZE(tags)) {
			((uint32_t *)(void *)mtp_unit(&p, 0, 1))[7] = tags[i];
		} else if (i == ARRAY_SIZE(tags)) {
			p.head->dict_head += TTMON_MTC_MIN_DICT + 8;
		} else if (i == ARRAY_SIZE(tags) + 1) {
			p.head->dict_head -= 4;
		} else {
			uint64_t at = p.dict_head;

			assert_true(mtp_entry(&p, &e, sizeof(e), "text", NULL));
			*(uint32_t *)(void *)(p.mem + p.head->dict_off + at) = i & 1 ? 12 : 24;
		}
		assert_int_equal(read_all(c, &g), -EBADMSG);
		assert_int_equal(g.n, 1);
		assert_int_equal(read_all(c, &g), -EBADMSG);
		ttmon_mt_chan_free(c);
		ttmon_mt_dict_fini(&g.dict);
		mtp_free(&p);
	}
}

static void refused(int fd, const char *word)
{
	struct ttmon_mt_chan *c = NULL;
	char why[200] = "";

	assert_true(ttmon_mt_chan_open(fd, &c, why, sizeof(why)) < 0);
	if (!strstr(why, word))
		fail_msg("%s: not about %s", why, word);
	assert_null(c);
	/* It was taken over. */
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void memory_that_may_fault_is_refused(void **state)
{
	struct mtp p;
	int fd;

	(void)state;
	setup(&p, 1, 16);
	refused(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING), "sealed");
	refused(open("/tmp", O_TMPFILE | O_RDWR, 0600), "sealed");
	refused(open("/dev/null", O_RDWR), "sealed");
	fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	refused(fd, "absurd size");
	fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	refused(fd, "no channel");
	fd = memfd_create("x", MFD_CLOEXEC | MFD_HUGETLB | MFD_ALLOW_SEALING);
	if (fd >= 0) {
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
		refused(fd, "plain pages");
	}
	mtp_free(&p);
}

static void headers_that_lie_are_refused(void **state)
{
	struct mtp p;

	(void)state;
	setup(&p, 4, 16);
#define LIE(field, value, word)                                \
	do {                                                   \
		__typeof__(p.head->field) was = p.head->field; \
		p.head->field = (value);                       \
		refused(dup(p.fd), word);                      \
		p.head->field = was;                           \
	} while (0)
	LIE(magic, 5, "no channel");
	LIE(version, was - 1, "version");
	LIE(version, was + 1, "version");
	LIE(head_bytes, 128, "version");
	LIE(bytes, was + 4096, "size");
	LIE(nr_rings, 0, "rings");
	LIE(nr_rings, 1025, "rings");
	LIE(nr_rings, 1024, "outside");
	LIE(units, 8, "rings");
	LIE(units, 24, "rings");
	LIE(units, 1u << 23, "rings");
	LIE(units, 1u << 22, "outside");
	LIE(dict_bytes, 4096, "dictionary");
	LIE(dict_bytes, 65536 + 8, "dictionary");
	LIE(dict_bytes, 1u << 28, "outside");
	LIE(dict_off, 0, "outside");
	LIE(dict_off, 4100, "outside");
	LIE(tails_off, UINT64_MAX & ~4095ull, "outside");
	LIE(rings_off, was + 4096, "outside");
	ttmon_mt_chan_free(open_chan(&p));
	mtp_free(&p);
}

static void what_the_sink_says_ends_it(void **state)
{
	struct ttmon_mtc_rec rec = { .base = 4096, .mask = 3, .stride = 4 };
	struct ttmon_mt_chan *c;
	struct mtp p;
	struct got g;

	(void)state;
	begin(&g);
	setup(&p, 1, 16);
	c = open_chan(&p);
	assert_true(mtp_put(&p, 0, rec, 0, 0, NULL));
	g.fail = -ENOSPC;
	assert_int_equal(read_all(c, &g), -ENOSPC);
	g.fail = 0;
	assert_true(mtp_put(&p, 0, rec, 0, 0, NULL));
	assert_int_equal(read_all(c, &g), 0);
	ttmon_mt_chan_free(c);
	ttmon_mt_dict_fini(&g.dict);
	mtp_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_become_ours),
		cmocka_unit_test(nothing_is_lost_while_they_wait),
		cmocka_unit_test(drops_are_counted_exactly),
		cmocka_unit_test(a_dead_reader_is_not_waited_for),
		cmocka_unit_test(the_last_sums_hold),
		cmocka_unit_test(counters_become_sums),
		cmocka_unit_test(a_dictionary_goes_round),
		cmocka_unit_test(equal_sites_are_one),
		cmocka_unit_test(a_light_sink_does_not_grow),
		cmocka_unit_test(nobody_takes_all_the_room),
		cmocka_unit_test(unknown_names_are_counted),
		cmocka_unit_test(texts_may_be_missing),
		cmocka_unit_test(a_broken_channel_stays_broken),
		cmocka_unit_test(memory_that_may_fault_is_refused),
		cmocka_unit_test(headers_that_lie_are_refused),
		cmocka_unit_test(what_the_sink_says_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
