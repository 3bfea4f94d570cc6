// SPDX-License-Identifier: GPL-2.0-only
/*
 * record.c: see record.h. Hot thread. The words are memory of a traced program and may hold any value.
 *
 * Each layout has a score. A value that fits only one layout counts for it (a vector of 32-byte
 * strings, a pointer with a small count, a chip that is not 0, a clock that leads to the callback's
 * time), an impossible value counts against it. The judge settles when one is well ahead, or after
 * SETTLE_RECORDS or SETTLE_NS with the best score so far. It keeps scoring, so that a process whose
 * first records fit all layouts alike (chip 0, no kernels) is understood when a record comes that fits
 * only one of them.
 *
 * A clock_sync is believed record by record: the time that it gives must lie within NEAR_NS before the
 * callback.
 */
#include "daemon/core/dispatch/record.h"

#define GHZ_LO	       0.2
#define GHZ_HI	       2.0
#define MAX_RUN_NS     3.6e12 /* an hour */
#define MIN_RECORDS    4
#define SETTLE_RECORDS 16
#define SETTLE_NS      NSEC_PER_SEC
#define AHEAD	       4
#define SCORE_MAX      64
#define NEAR_NS	       60e9 /* the receiver thread may not have run for so long */
#define AFTER_NS       10e6 /* clocks agree no better than this */
#define MAX_KERNELS    4096
#define STRING_BYTES   32

static uint32_t low(uint64_t w)
{
	return (uint32_t)w;
}

static uint32_t high(uint64_t w)
{
	return (uint32_t)(w >> 32);
}

static double as_double(uint64_t w)
{
	double d;

	memcpy(&d, &w, sizeof(d));
	return d;
}

/* A user-space pointer to objects that hold pointers. */
static bool is_pointer(uint64_t w)
{
	return w >= 0x1000 && w < 1ULL << 56 && w % 8 == 0;
}

enum ttmon_rec_err ttmon_rec_check(const __u64 w[8])
{
	double ghz = as_double(w[3]);

	if (!low(w[0]))
		return TTMON_REC_SKIP;
	/* Written so that a NaN is refused. */
	if (!(ghz >= GHZ_LO && ghz <= GHZ_HI))
		return TTMON_REC_BAD;
	/*
	 * tt-metal's own handlers skip these: they come while the device's clock starts, and from a schema
	 * without an end.
	 */
	if (w[2] < w[1])
		return TTMON_REC_UNTIMED;
	if ((double)(w[2] - w[1]) / ghz > MAX_RUN_NS)
		return TTMON_REC_BAD;
	return TTMON_REC_OK;
}

/* {pointer, count}: 1 plausible, 0 empty, -1 impossible */
static int span(uint64_t ptr, uint64_t count)
{
	if (count == 0)
		return 0;
	return count <= MAX_KERNELS && is_pointer(ptr) ? 1 : -1;
}

/* {begin, end, end of storage} of strings, likewise */
static int vector(uint64_t begin, uint64_t end, uint64_t storage)
{
	if (!begin)
		return end || storage ? -1 : 0;
	if (!is_pointer(begin) || end < begin || storage < end || (end - begin) % STRING_BYTES ||
	    (storage - begin) / STRING_BYTES > MAX_KERNELS)
		return -1;
	return 1;
}

static bool sync_near(uint64_t cycles, uint64_t offset, double ghz, uint64_t seen_ns)
{
	double host = (double)(int64_t)(cycles - offset) / ghz, before = (double)seen_ns - host;

	return before <= NEAR_NS && before >= -AFTER_NS;
}

static void add_score(struct ttmon_rec_judge *j, unsigned int layout, int d)
{
	int sum = j->score[layout] + d;

	j->score[layout] = (int16_t)(sum > SCORE_MAX ? SCORE_MAX : sum < -SCORE_MAX ? -SCORE_MAX : sum);
}

/* Sizes of records that have no clock_sync: a fixed end, or queue and stream behind the kernels. */
static bool is_plain_stride(uint8_t stride)
{
	return stride == 48 || stride == 56 || stride == 72 || stride == 80;
}

/* How well a record fits a layout; -1 and below: not at all. */
static int judge_chip32(const __u64 w[8], bool batch)
{
	int v = vector(w[5], w[6], w[7]);

	if (low(w[4]) >= TTMON_REC_CHIPS || v < 0 || batch)
		return -4;
	return (low(w[4]) ? 3 : 0) + (v ? 4 : 0);
}

static int judge_kernels32(const __u64 w[8], uint8_t stride)
{
	int s = MAX(span(w[4], w[5]), vector(w[4], w[5], w[6]));

	if (high(w[0]) >= TTMON_REC_CHIPS || s < 0)
		return -4;
	return (high(w[0]) ? 1 : 0) + (s ? 4 : 0) + (is_plain_stride(stride) ? 4 : 0);
}

static int judge_sync32(const __u64 w[8], uint8_t stride, uint64_t seen_ns)
{
	int s = span(w[6], w[7]), score;

	if (high(w[0]) >= TTMON_REC_CHIPS || s < 0 || is_plain_stride(stride))
		return -4;
	score = (high(w[0]) ? 1 : 0) + (s ? 2 : 0);
	if (sync_near(w[2], w[4], as_double(w[3]), seen_ns) && (int64_t)w[5] >= 0)
		return score + 8;
	/* A record that is not synchronized yet has zeros here; any other number contradicts the layout. */
	return w[4] || w[5] ? -2 : score;
}

static void settle(struct ttmon_rec_judge *j, bool force)
{
	unsigned int best = 0, second = 1;

	for (unsigned int i = 1; i < TTMON_REC_LAYOUTS; i++) {
		if (j->score[i] > j->score[best]) {
			second = best;
			best = i;
		} else if (i != second && j->score[i] > j->score[second]) {
			second = i;
		}
	}
	/* The records contradict all layouts, so theirs is not known. */
	if (j->score[best] < 0) {
		j->settled = false;
		return;
	}
	if (!force && (j->seen < MIN_RECORDS || j->score[best] - j->score[second] < AHEAD))
		return;
	if (j->settled && j->score[best] - j->score[j->layout] < AHEAD)
		return;
	j->settled = true;
	j->layout = (uint8_t)best;
}

void ttmon_rec_judge_add(struct ttmon_rec_judge *j, const struct ttmon_ev_tt_program *ev, bool batch)
{
	if (!j->seen)
		j->from_ns = ev->h.ts_ns;
	j->seen += j->seen < UINT32_MAX;
	add_score(j, TTMON_REC_CHIP32, judge_chip32(ev->w, batch));
	add_score(j, TTMON_REC_KERNELS32, judge_kernels32(ev->w, ev->stride));
	add_score(j, TTMON_REC_SYNC32, judge_sync32(ev->w, ev->stride, ev->h.ts_ns));
	settle(j, j->seen >= SETTLE_RECORDS);
}

void ttmon_rec_judge_tick(struct ttmon_rec_judge *j, uint64_t now_ns)
{
	if (j->seen && !j->settled && (int64_t)(now_ns - j->from_ns) >= (int64_t)SETTLE_NS)
		settle(j, true);
}

static bool is_contender(const struct ttmon_rec_judge *j, unsigned int layout)
{
	return layout != j->layout && j->score[layout] >= 0 && j->score[j->layout] - j->score[layout] < AHEAD;
}

bool ttmon_rec_is_certain(const struct ttmon_rec_judge *j)
{
	for (unsigned int i = 0; i < TTMON_REC_LAYOUTS; i++)
		if (is_contender(j, i))
			return false;
	return j->settled;
}

const char *ttmon_rec_layout_name(const struct ttmon_rec_judge *j)
{
	static const char *const names[TTMON_REC_LAYOUTS] = {
#define X(id, NAME, name) [id] = name,
		TTMON_REC_LAYOUT_TABLE(X)
#undef X
	};

	return j->settled ? names[j->layout] : NULL;
}

static uint32_t chip_of(unsigned int layout, const __u64 w[8])
{
	return layout == TTMON_REC_CHIP32 ? low(w[4]) : high(w[0]);
}

enum ttmon_rec_err ttmon_rec_parse(const struct ttmon_rec_judge *j, const __u64 w[8], uint64_t seen_ns,
				   struct ttmon_rec *ret)
{
	struct ttmon_rec r = { .program = low(w[0]), .start = w[1], .end = w[2], .ghz = as_double(w[3]) };

	if (!j->settled)
		return TTMON_REC_UNKNOWN;
	r.chip = chip_of(j->layout, w);
	if (r.chip >= TTMON_REC_CHIPS)
		return TTMON_REC_BAD;
	for (unsigned int i = 0; i < TTMON_REC_LAYOUTS; i++)
		if (is_contender(j, i) && chip_of(i, w) != r.chip)
			return TTMON_REC_DOUBTFUL;
	if (j->layout == TTMON_REC_SYNC32 && (w[4] || w[5]) && (int64_t)w[5] >= 0 &&
	    sync_near(r.end, w[4], r.ghz, seen_ns)) {
		r.has_sync = true;
		r.offset = (int64_t)w[4];
		r.error_ns = w[5];
	}
	*ret = r;
	return TTMON_REC_OK;
}

bool ttmon_rec_host_ns(const struct ttmon_rec *r, uint64_t cycles, uint64_t *host_ns)
{
	double ns = (double)(int64_t)(cycles - (uint64_t)r->offset) / r->ghz;

	if (!r->has_sync || !(ns >= 0 && ns < 9e18))
		return false;
	*host_ns = (uint64_t)(ns + 0.5);
	return true;
}
