// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_pipeline.c: the cost of an event from the ring to the history, against sorting the same
 * events.
 *
 * The load is that of a drain: 64 CPUs, each with its own stream in order, one CPU after the other, 20
 * ms at a time, then the watermark. There are 2.5 million events per second: copies, and one in 64 is
 * an allocation or its free (40,000 per second). The floor is qsort() of the 50,000 events of a drain
 * by (ts, cpu), as prepared 16-byte keys: neither building the keys nor copying the events is part of
 * it. Rounds of all are interleaved; the result is the median of each, in CPU time of this process.
 */
#include <time.h>

#include "daemon/core/stream/pipeline.h"

#define NR_CPUS	   64
#define DRAIN_NS   (20 * TTMON_SLOT_NS)
#define PER_CPU	   781 /* events of a CPU in a drain */
#define PER_DRAIN  (NR_CPUS * PER_CPU)
#define DRAINS	   4 /* in a round */
#define ROUNDS	   11
#define ALLOC_EACH 64
#define BLOCK	   65536

struct key {
	uint64_t ts_ns;
	uint32_t cpu, idx;
};

struct round {
	double slots, pipeline, sort; /* ns an event */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static uint32_t rnd(void)
{
	static uint64_t x = 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 32);
}

#define FRAMES 8

union record {
	struct ttmon_event h;
	struct ttmon_ev_copy copy;
	struct ttmon_ev_free free;
	struct ttmon_ev_alloc alloc;
	uint64_t words[(sizeof(struct ttmon_ev_alloc) + FRAMES * sizeof(uint64_t)) / sizeof(uint64_t)];
};

static union record records[PER_DRAIN];
static size_t sizes[PER_DRAIN];
static struct key keys[PER_DRAIN];

/*
 * The process of a CPU has one block at any time. It copies from the block, and from time to time
 * frees it and allocates a new one.
 */
static size_t make_record(union record *r, uint64_t ts_ns, unsigned int cpu, uint64_t nr)
{
	uint64_t block = 0x100000000ULL * (cpu + 1) + nr / (2 * ALLOC_EACH) % 64 * 2 * BLOCK;

	memset(r, 0, sizeof(*r));
	r->h = (struct ttmon_event){ .ts_ns = ts_ns, .cpu = (uint16_t)cpu, .tgid = 1000 + cpu, .tid = 1000 + cpu };
	if (nr % (2 * ALLOC_EACH) == 0) {
		r->h.kind = TTMON_EV_ALLOC;
		r->alloc.entry_ns = ts_ns - 50;
		r->alloc.addr = block;
		r->alloc.size = BLOCK;
		r->alloc.fn = 1;
		r->alloc.method = TTMON_METHOD_HOST_ALLOC;
		r->alloc.nframes = FRAMES;
		for (size_t i = 0; i < FRAMES; i++)
			r->words[sizeof(r->alloc) / sizeof(uint64_t) + i] = 0x400000 + 64 * i;
		return sizeof(r->words);
	}
	if (nr % (2 * ALLOC_EACH) == 2 * ALLOC_EACH - 1) {
		r->h.kind = TTMON_EV_FREE;
		r->free.entry_ns = ts_ns - 50;
		r->free.addr = block;
		r->free.fn = 3;
		r->free.method = TTMON_METHOD_HOST_ALLOC;
		return sizeof(r->free);
	}
	r->h.kind = TTMON_EV_COPY;
	r->copy.entry_ns = ts_ns;
	r->copy.dst = 0x7f0000000000;
	r->copy.src = block + rnd() % 8 * 4096;
	r->copy.bytes = 4096;
	r->copy.fn = 17;
	r->copy.bits = TTMON_B_ASYNC | TTMON_B_UNOBSERVED;
	r->copy.dir = TTMON_DIR_H2D;
	return sizeof(r->copy);
}

static void make_drain(uint64_t from_ns, uint64_t nr)
{
	size_t n = 0;

	for (unsigned int cpu = 0; cpu < NR_CPUS; cpu++) {
		uint64_t ts_ns = from_ns;

		for (uint64_t i = 0; i < PER_CPU; i++, n++) {
			ts_ns += 1 + rnd() % (2 * (DRAIN_NS / PER_CPU) - 800);
			sizes[n] = make_record(&records[n], ts_ns, cpu, nr + i);
			keys[n] = (struct key){ .ts_ns = ts_ns, .cpu = cpu, .idx = (uint32_t)n };
		}
	}
}

/*
 * What the daemon reports about a process when it first sees it: an empty list of mappings, known to
 * be complete.
 */
static void feed_process(struct ttmon_pipeline *p, unsigned int cpu, uint64_t ts_ns)
{
	struct ttmon_ev_proc proc = {
		.h = { .ts_ns = ts_ns,
		       .kind = TTMON_EV_PROC,
		       .cpu = (uint16_t)cpu,
		       .tgid = 1000 + cpu,
		       .tid = 1000 + cpu },
		.start_ns = 1 + cpu,
		.comm = "bench",
	};
	struct ttmon_ev_maps_done done = {
		.h = { .ts_ns = ts_ns, .kind = TTMON_EV_MAPS_DONE, .cpu = TTMON_CPU_DAEMON, .tgid = 1000 + cpu },
		.from_ns = ts_ns,
	};

	ttmon_pipeline_feed(p, &proc, sizeof(proc));
	ttmon_pipeline_feed(p, &done, sizeof(done));
}

static int by_time(const void *pa, const void *pb)
{
	const struct key *a = pa, *b = pb;

	if (a->ts_ns != b->ts_ns)
		return a->ts_ns < b->ts_ns ? -1 : 1;
	return a->cpu < b->cpu ? -1 : a->cpu > b->cpu;
}

static uint64_t delivered, last_ts, disorder;

static void on_event(void *ctx, const struct ttmon_event *ev, size_t size, bool late)
{
	(void)ctx;
	(void)size;
	(void)late;
	delivered++;
	disorder += ttmon_before(ev->ts_ns, last_ts);
	last_ts = ev->ts_ns;
}

static void on_close(void *ctx, const struct ttmon_slot_view *slot)
{
	(void)ctx;
	(void)slot;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

static void run_round(struct ttmon_slots *slots, struct ttmon_pipeline *p, uint64_t *at_ns, uint64_t *nr,
		      struct round *ret)
{
	uint64_t spent[3] = { 0 };

	for (int d = 0; d < DRAINS; d++) {
		uint64_t t0, t1, t2, t3;

		make_drain(*at_ns, *nr);
		*at_ns += DRAIN_NS + TTMON_SLOT_NS;
		*nr += PER_CPU;

		t0 = now_ns();
		for (size_t i = 0; i < PER_DRAIN; i++)
			ttmon_slots_add(slots, &records[i].h, sizes[i]);
		ttmon_slots_advance(slots, *at_ns);
		t1 = now_ns();
		for (size_t i = 0; i < PER_DRAIN; i++)
			ttmon_pipeline_feed(p, &records[i], sizes[i]);
		ttmon_pipeline_advance(p, *at_ns);
		t2 = now_ns();
		qsort(keys, PER_DRAIN, sizeof(keys[0]), by_time);
		t3 = now_ns();
		spent[0] += t1 - t0;
		spent[1] += t2 - t1;
		spent[2] += t3 - t2;
	}
	ret->slots = (double)spent[0] / (DRAINS * PER_DRAIN);
	ret->pipeline = (double)spent[1] / (DRAINS * PER_DRAIN);
	ret->sort = (double)spent[2] / (DRAINS * PER_DRAIN);
}

int main(void)
{
	static const struct ttmon_slots_ops ops = { .event = on_event, .close = on_close };
	const struct ttmon_pipeline_cfg cfg = { .nr_cpus = NR_CPUS };
	const struct ttmon_slots_cfg slots_cfg = { 0 };
	double slots_ns[ROUNDS], pipeline_ns[ROUNDS], sort_ns[ROUNDS], s, p, q;
	uint64_t at_ns = 1000 * TTMON_SLOT_NS, nr = 0;
	struct ttmon_pipeline *pipeline = NULL;
	struct ttmon_slots *slots = NULL;
	char why[200];
	struct round r;
	int err = 1;

	if (ttmon_slots_new(&slots_cfg, &ops, NULL, &slots) || ttmon_pipeline_new(&cfg, NULL, NULL, &pipeline)) {
		fprintf(stderr, "bench_pipeline: out of memory\n");
		goto out;
	}
	ttmon_slots_advance(slots, at_ns);
	ttmon_pipeline_advance(pipeline, at_ns);
	for (unsigned int cpu = 0; cpu < NR_CPUS; cpu++)
		feed_process(pipeline, cpu, at_ns);
	run_round(slots, pipeline, &at_ns, &nr, &r); /* memory is touched for the first time */
	for (int i = 0; i < ROUNDS; i++) {
		run_round(slots, pipeline, &at_ns, &nr, &r);
		slots_ns[i] = r.slots;
		pipeline_ns[i] = r.pipeline;
		sort_ns[i] = r.sort;
	}
	if (delivered != (uint64_t)(ROUNDS + 1) * DRAINS * PER_DRAIN || disorder) {
		fprintf(stderr, "bench_pipeline: events are missing or out of order\n");
		goto out;
	}
	if (!ttmon_pipeline_check(pipeline, why, sizeof(why))) {
		fprintf(stderr, "bench_pipeline: %s\n", why);
		goto out;
	}
	s = median(slots_ns, ROUNDS);
	p = median(pipeline_ns, ROUNDS);
	q = median(sort_ns, ROUNDS);
	printf("slots: %.1f ns/event, qsort %.1f ns/event, ratio %.2f\n", s, q, s / q);
	printf("pipeline: %.1f ns/event, qsort %.1f ns/event, ratio %.2f (goal: 100 ns, 1.00; decode and history %.1f "
	       "ns)\n",
	       p, q, p / q, p - s);
	err = 0;
out:
	ttmon_slots_free(slots);
	ttmon_pipeline_free(pipeline);
	return err;
}
