// SPDX-License-Identifier: GPL-2.0-only
/*
 * clock.c: see clock.h. Hot thread. Pairs and cycles come from the traced program and are not trusted.
 *
 * The host's side of a pair is not exact: the program reads its clock, writes to the device over PCIe,
 * and the device takes its own clock when it sees that. PAIR_NS is assumed for that; where the
 * residuals are larger, they count (clocksync.h).
 *
 * A counter that was reset without new pairs shows in the runs: they are far before the ones seen so
 * far. Until BACK_RUNS of them agree, such runs are placed by the envelope; then the pairs are
 * dropped.
 */
#include "daemon/core/dispatch/clock.h"

#define PAIR_NS	     2000
#define PAIR_AGE_NS  (10 * NSEC_PER_SEC) /* a pair is reported when the whole synchronization is done */
#define PAIR_LATE_NS NSEC_PER_MS
#define RUN_AGE_NS   (60 * NSEC_PER_SEC) /* from the end of a run to its callback */
#define RAW_PAIRS    128
#define ONE_PAIR_PPM 200 /* crystal and PLL, and the program's own fit */
#define BACK_NS	     0.5e9
#define BACK_RUNS    3

struct raw_pair {
	uint64_t ts_ns, ticks, cycles;
};

struct ttmon_disp_pairs {
	struct ttmon_clocksync sync;
	struct raw_pair raw[RAW_PAIRS]; /* waiting for the TSC, oldest first */
	uint32_t nr_raw;
};

void ttmon_disp_clock_fini(struct ttmon_disp_clock *c)
{
	free(c->pairs);
	c->pairs = NULL;
}

static bool is_near(uint64_t host_ns, uint64_t ts_ns, uint64_t error_ns)
{
	int64_t before = (int64_t)(ts_ns - host_ns);

	return before >= -(int64_t)(PAIR_LATE_NS + error_ns) && before <= (int64_t)(PAIR_AGE_NS + error_ns);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return ttmon_before(a, b) ? b - a : a - b;
}

/*
 * 1: ticks were understood and the pair taken; 0: they may be TSC ticks, whose rate is not known yet;
 * -EINVAL: neither.
 */
static int take_pair(struct ttmon_clocksync *sync, const struct ttmon_tsc *tsc, const struct raw_pair *raw)
{
	struct ttmon_sync_pair p = { .host_ns = raw->ticks, .cycles = raw->cycles, .error_ns = PAIR_NS };
	bool mono = is_near(raw->ticks, raw->ts_ns, 0);
	uint64_t host_ns, error_ns;
	bool known = ttmon_tsc_map(tsc, raw->ticks, &host_ns, &error_ns);

	if (known && error_ns < NSEC_PER_SEC && is_near(host_ns, raw->ts_ns, error_ns) &&
	    (!mono || distance(host_ns, raw->ts_ns) < distance(raw->ticks, raw->ts_ns))) {
		p.host_ns = host_ns;
		p.error_ns += (uint32_t)error_ns;
	} else if (!mono) {
		return known ? -EINVAL : 0;
	}
	return ttmon_clocksync_add(sync, &p) ? 1 : -EINVAL;
}

int ttmon_disp_clock_pair(struct ttmon_disp_clock *c, const struct ttmon_tsc *tsc, uint64_t ts_ns, uint64_t ticks,
			  uint64_t cycles)
{
	struct raw_pair raw = { ts_ns, ticks, cycles };
	struct ttmon_disp_pairs *pairs = c->pairs;
	int err;

	if (!pairs) {
		pairs = c->pairs = calloc(1, sizeof(*pairs));
		if (!pairs)
			return -ENOMEM;
		ttmon_clocksync_init(&pairs->sync);
	}
	err = take_pair(&pairs->sync, tsc, &raw);
	if (err < 0)
		return err;
	if (err == 0) {
		if (pairs->nr_raw == RAW_PAIRS)
			memmove(pairs->raw, pairs->raw + 1, --pairs->nr_raw * sizeof(raw));
		pairs->raw[pairs->nr_raw++] = raw;
		return 0;
	}
	return pairs->sync.n > 0;
}

bool ttmon_disp_clock_waits(const struct ttmon_disp_clock *c)
{
	return c->pairs && c->pairs->nr_raw;
}

bool ttmon_disp_clock_tsc(struct ttmon_disp_clock *c, const struct ttmon_tsc *tsc)
{
	struct ttmon_disp_pairs *pairs = c->pairs;

	if (!pairs)
		return false;
	for (uint32_t i = 0; i < pairs->nr_raw; i++)
		(void)take_pair(&pairs->sync, tsc, &pairs->raw[i]);
	pairs->nr_raw = 0;
	return pairs->sync.n > 0;
}

/* True if the run ended before the callback, and not long before. */
static bool can_be(const struct ttmon_tt_run *run)
{
	int64_t before = (int64_t)(run->seen_ns - run->end_ns);

	return before >= -(int64_t)MIN(run->error_ns, NSEC_PER_SEC) && before <= (int64_t)RUN_AGE_NS &&
	       !ttmon_before(run->end_ns, run->start_ns);
}

static bool by_pairs(const struct ttmon_clocksync *sync, struct ttmon_tt_run *run)
{
	uint64_t start_err, end_err;

	if (!ttmon_clocksync_map(sync, run->start_cycles, &run->start_ns, &start_err) ||
	    !ttmon_clocksync_map(sync, run->end_cycles, &run->end_ns, &end_err))
		return false;
	run->error_ns = MAX(start_err, end_err);
	run->ghz = ttmon_clocksync_ghz(sync);
	return can_be(run);
}

/* The newest pair gives the offset, the record the frequency. */
static bool by_one_pair(const struct ttmon_clocksync *sync, struct ttmon_tt_run *run)
{
	const struct ttmon_sync_pair *p = &sync->pairs[(sync->head + sync->n - 1) % TTMON_SYNC_PAIRS];
	double start = (double)(int64_t)(run->start_cycles - p->cycles) / run->ghz;
	double end = (double)(int64_t)(run->end_cycles - p->cycles) / run->ghz;
	double far = MAX(start < 0 ? -start : start, end < 0 ? -end : end);

	if (far > 1e15)
		return false;
	run->start_ns = p->host_ns + (uint64_t)(int64_t)start;
	run->end_ns = p->host_ns + (uint64_t)(int64_t)end;
	run->error_ns = p->error_ns + 2 + (uint64_t)(far * (ONE_PAIR_PPM * 1e-6));
	return can_be(run);
}

static bool by_record(const struct ttmon_rec *rec, struct ttmon_tt_run *run)
{
	if (!ttmon_rec_host_ns(rec, rec->start, &run->start_ns) || !ttmon_rec_host_ns(rec, rec->end, &run->end_ns) ||
	    rec->error_ns > NSEC_PER_SEC)
		return false;
	run->error_ns = rec->error_ns + 1;
	return can_be(run);
}

/* True if the pairs are of the counter that this run was timed with. */
static bool same_counter(struct ttmon_disp_clock *c, const struct ttmon_rec *rec, bool account)
{
	struct ttmon_clocksync *sync = &c->pairs->sync;
	bool back = c->hi && c->hi_resets == sync->resets &&
		    (double)(int64_t)(rec->end - c->hi_cycles) < -BACK_NS * rec->ghz;

	if (!account)
		return !back;
	if (!back) {
		if (!c->hi || c->hi_resets != sync->resets || (int64_t)(rec->end - c->hi_cycles) > 0)
			c->hi_cycles = rec->end;
		c->hi_resets = sync->resets;
		c->hi = true;
		c->back = 0;
		return true;
	}
	if (++c->back < BACK_RUNS)
		return false;
	ttmon_clocksync_drop(sync);
	c->resets++;
	c->hi_cycles = rec->end;
	c->back = 0;
	return false;
}

void ttmon_disp_clock_place(struct ttmon_disp_clock *c, const struct ttmon_rec *rec, struct ttmon_tt_run *run,
			    bool account)
{
	uint64_t ns;

	run->start_cycles = rec->start;
	run->end_cycles = rec->end;
	run->ghz = rec->ghz;
	if (c->pairs && same_counter(c, rec, account) && c->pairs->sync.n) {
		struct ttmon_clocksync *sync = &c->pairs->sync;

		run->clock = TTMON_CLOCK_PAIRS;
		if (sync->valid ? by_pairs(sync, run) : sync->n == 1 && by_one_pair(sync, run))
			return;
		run->ghz = rec->ghz;
	}
	run->clock = TTMON_CLOCK_RECORD;
	if (rec->has_sync && by_record(rec, run))
		return;
	run->clock = TTMON_CLOCK_ENVELOPE;
	ns = (uint64_t)((double)(rec->end - rec->start) / rec->ghz + 0.5);
	run->end_ns = run->seen_ns;
	run->start_ns = run->seen_ns - MIN(ns, run->seen_ns);
	run->error_ns = UINT64_MAX;
}

void ttmon_disp_clock_view(const struct ttmon_disp_clock *c, struct ttmon_tt_clock *view)
{
	const struct ttmon_clocksync *sync = c->pairs ? &c->pairs->sync : NULL;

	view->resets = c->resets;
	if (!sync)
		return;
	view->pairs = sync->total;
	view->outliers = ttmon_clocksync_outliers(sync);
	view->resets += sync->resets;
	if (!sync->valid)
		return;
	if (view->clock == TTMON_CLOCK_NONE)
		view->clock = TTMON_CLOCK_PAIRS;
	view->ghz = ttmon_clocksync_ghz(sync);
	view->residual_ns = sync->residual_ns;
	view->span_from_ns = sync->from_ns;
	view->span_to_ns = sync->to_ns;
}
