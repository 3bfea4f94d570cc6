// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_history.c: the cost of the history in memory and time with 1,000,000 live allocations. One
 * line per figure.
 *
 * Memory is what malloc has handed out, per live allocation and per kept event, against the goals of
 * docs/ARCHITECTURE.md (128 and 16 bytes). Time is per event, against a floor in the same run: the
 * same addresses in the same order through a plain hash table (one insertion, look-up or deletion per
 * event). Rounds of both alternate; the result is the median.
 */
#include <malloc.h>
#include <time.h>

#include "daemon/core/history/history.h"
#include "lib/base/hmap.h"
#include "tests/unit/feed/apply.h"

#define LIVE	1000000u
#define ROUNDS	5
#define BATCH	100000u
#define ADDR(i) (0x7f0000000000ULL + (uint64_t)(i)*8192)

struct figure {
	double ours[ROUNDS], floor[ROUNDS];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static size_t in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_value);
	return v[ROUNDS / 2];
}

static void report(const char *name, struct figure *f)
{
	double ours = median(f->ours), floor = median(f->floor);

	printf("history_%s: %.0f ns, floor %.0f ns (hash table), RATIO %.2f\n", name, ours, floor, ours / floor);
}

static void alloc_at(struct ttmon_history *h, uint64_t ts, uint64_t addr)
{
	const struct ttmon_ev_alloc head = { .h = { .ts_ns = ts, .kind = TTMON_EV_ALLOC, .tgid = 1, .tid = 1 },
					     .entry_ns = ts,
					     .addr = addr,
					     .size = 8192,
					     .fn = 1,
					     .method = TTMON_METHOD_HOST_ALLOC,
					     .nframes = 4 };
	const uint64_t frames[4] = { 0x1000, 0x2000, 0x3000, 0x4000 + addr % 16 };
	uint64_t rec[sizeof(head) / 8 + 4];

	memcpy(rec, &head, sizeof(head));
	memcpy(rec + sizeof(head) / 8, frames, sizeof(frames));
	ttmon_history_apply(h, (const struct ttmon_event *)rec, sizeof(rec), false);
}

/* The pipeline reads a few events ahead; a batch does the same here. */
#define AHEAD 4

static void free_at(struct ttmon_history *h, uint64_t ts, uint64_t addr)
{
	struct ttmon_ev_free ev = { .h = { .ts_ns = ts, .kind = TTMON_EV_FREE, .tgid = 1, .tid = 1 },
				    .entry_ns = ts,
				    .addr = addr,
				    .fn = 3,
				    .method = TTMON_METHOD_HOST_ALLOC };

	ttmon_history_apply(h, &ev.h, sizeof(ev), false);
}

static void free_ahead(struct ttmon_history *h, uint64_t addr)
{
	struct ttmon_ev_free ev = { .h = { .kind = TTMON_EV_FREE, .tgid = 1 }, .addr = addr };

	ttmon_history_ahead(h, &ev.h);
}

static void copy_ahead(struct ttmon_history *h, uint64_t src)
{
	struct ttmon_ev_copy ev = { .h = { .kind = TTMON_EV_COPY, .tgid = 1 }, .src = src, .dir = TTMON_DIR_H2D };

	ttmon_history_ahead(h, &ev.h);
}

static void copy_at(struct ttmon_history *h, uint64_t ts, uint64_t src)
{
	struct ttmon_ev_copy ev = { .h = { .ts_ns = ts, .kind = TTMON_EV_COPY, .tgid = 1, .tid = 1 },
				    .entry_ns = ts,
				    .dst = 0x200000000,
				    .src = src,
				    .bytes = 4096,
				    .fn = 16,
				    .dir = TTMON_DIR_H2D };

	ttmon_history_apply(h, &ev.h, sizeof(ev), false);
}

/* Allocations in a random order of addresses, or in ascending order. */
static struct ttmon_history *fill(bool random, uint32_t n, double *bytes)
{
	struct ttmon_history_cfg cfg = { .max_allocations = 2 * LIVE, .fold_ns = 1 };
	struct ttmon_history *h = NULL;
	size_t before = in_use();

	if (ttmon_history_new(&cfg, &h) < 0)
		exit(1);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t slot = random ? (i * 7919ULL) % LIVE : i;

		alloc_at(h, 1000 + i * 100ULL, ADDR(slot));
		if (i % 10000 == 0)
			ttmon_history_tick(h, 1000 + i * 100ULL + 3 * NSEC_PER_SEC);
	}
	ttmon_history_finish(h, NSEC_PER_SEC);
	*bytes = (double)(in_use() - before) / n;
	return h;
}

/* One round: BATCH frees, allocations at the same addresses, copies; h has LIVE of them throughout. */
static void round_of(struct ttmon_history *h, struct ttmon_hmap *m, uint64_t *ts, unsigned int r, struct figure f[3])
{
	static uint64_t addr[BATCH];
	uint64_t t, sum = 0;

	for (uint32_t i = 0; i < BATCH; i++)
		addr[i] = ADDR(ttmon_mix64(r * BATCH + i) % LIVE / BATCH * BATCH + i);
	/* The first transfer creates the heat of an allocation; only later ones are measured. */
	for (uint32_t i = 0; i < BATCH; i++)
		copy_at(h, *ts += 100, addr[i]);
	t = now_ns();
	for (uint32_t i = 0; i < BATCH; i++) {
		copy_ahead(h, addr[(i + AHEAD) % BATCH] + 64);
		copy_at(h, *ts += 100, addr[i] + 64);
	}
	f[0].ours[r] = (double)(now_ns() - t) / BATCH;
	t = now_ns();
	for (uint32_t i = 0; i < BATCH; i++)
		sum += ttmon_hmap_get(m, addr[i]);
	f[0].floor[r] = (double)(now_ns() - t) / BATCH;

	t = now_ns();
	for (uint32_t i = 0; i < BATCH; i++) {
		free_ahead(h, addr[(i + AHEAD) % BATCH]);
		free_at(h, *ts += 100, addr[i]);
	}
	f[1].ours[r] = (double)(now_ns() - t) / BATCH;
	t = now_ns();
	for (uint32_t i = 0; i < BATCH; i++)
		sum += ttmon_hmap_del(m, addr[i]);
	f[1].floor[r] = (double)(now_ns() - t) / BATCH;

	/* Freed allocations are folded in between, as a service does. */
	ttmon_history_tick(h, *ts += 10 * NSEC_PER_SEC);
	t = now_ns();
	for (uint32_t i = 0; i < BATCH; i++)
		alloc_at(h, *ts += 100, addr[i]);
	f[2].ours[r] = (double)(now_ns() - t) / BATCH;
	t = now_ns();
	for (uint32_t i = 0; i < BATCH; i++)
		if (ttmon_hmap_put(m, addr[i], i) < 0)
			exit(1);
	f[2].floor[r] = (double)(now_ns() - t) / BATCH;
	if (sum == 1)
		puts("");
}

static void event_bytes(void)
{
	struct ttmon_history_cfg cfg = { .keep_all = true };
	struct ttmon_history_totals totals;
	struct ttmon_history *h = NULL;
	size_t before;

	if (ttmon_history_new(&cfg, &h) < 0)
		exit(1);
	for (uint32_t i = 0; i < 1000; i++) {
		alloc_at(h, i, ADDR(i));
		copy_at(h, i, ADDR(i)); /* heat and counters are there */
	}
	before = in_use();
	for (uint32_t i = 0; i < 1000000; i++) {
		uint64_t x = ttmon_mix64(i);
		struct ttmon_ev_copy ev = {
			.h = { .ts_ns = 1000000 + i * 20000ULL + x % 10000, .kind = TTMON_EV_COPY, .tgid = 1 },
			.src = ADDR(x % 1000) + (x >> 20) % 4096,
			.bytes = 1 + (x >> 40) % 4096,
			.fn = 17,
			.bits = TTMON_B_ASYNC | TTMON_B_UNOBSERVED,
			.dir = TTMON_DIR_H2D
		};

		ttmon_history_apply(h, &ev.h, sizeof(ev), false);
	}
	ttmon_history_get_totals(h, &totals);
	printf("history_kept_event: %.1f bytes, goal 16, RATIO %.2f\n",
	       (double)(in_use() - before) / (double)totals.events_kept,
	       (double)(in_use() - before) / (double)totals.events_kept / 16);
	ttmon_history_free(h);
}

/* A service: memory after a million freed allocations, against memory after the first 200,000. */
static void flat(void)
{
	struct ttmon_history_cfg cfg = { .fold_ns = NSEC_PER_SEC };
	struct ttmon_history *h = NULL;
	size_t before = in_use(), early = 0;

	if (ttmon_history_new(&cfg, &h) < 0)
		exit(1);
	for (uint32_t i = 0; i < 1000000; i++) {
		uint64_t ts = NSEC_PER_SEC + i * 100000ULL;

		alloc_at(h, ts, ADDR(i % 300000));
		copy_at(h, ts + 10, ADDR(i % 300000));
		if (i >= 1000)
			free_at(h, ts + 20, ADDR((i - 1000) % 300000));
		if (i % 1000 == 0)
			ttmon_history_tick(h, ts);
		if (i == 200000)
			early = in_use() - before;
	}
	printf("history_flat: %.1f MiB after 1,000,000 allocations, %.1f after 200,000, RATIO %.2f\n",
	       (double)(in_use() - before) / (1 << 20), (double)early / (1 << 20),
	       (double)(in_use() - before) / (double)early);
	ttmon_history_free(h);
}

int main(void)
{
	struct figure f[3];
	struct ttmon_hmap m = { 0 };
	struct ttmon_history *h;
	uint64_t ts = 100 * NSEC_PER_SEC;
	double ascending, random;

	h = fill(false, LIVE, &ascending);
	ttmon_history_free(h);
	malloc_trim(0);
	h = fill(true, LIVE, &random);
	printf("history_live_allocation: %.1f bytes in ascending, %.1f in random order, goal 128, RATIO %.2f %.2f\n",
	       ascending, random, ascending / 128, random / 128);
	for (uint32_t i = 0; i < LIVE; i++)
		if (ttmon_hmap_put(&m, ADDR(i), i) < 0)
			return 1;
	for (unsigned int r = 0; r < ROUNDS; r++)
		round_of(h, &m, &ts, r, f);
	report("copy", &f[0]);
	report("free", &f[1]);
	report("alloc", &f[2]);
	ttmon_history_free(h);
	ttmon_hmap_fini(&m);
	event_bytes();
	flat();
	return 0;
}
