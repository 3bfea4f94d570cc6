// SPDX-License-Identifier: GPL-2.0-only
/*
 * periods.c: transfers by period. Each allocation adds cells, (group, period) with sums, in order of
 * time. When there is no more room, cells are sorted and those of one group and period are merged, so
 * that memory grows with the number of distinct cells and not with the events.
 */
#include "daemon/core/history/periods.h"
#include "lib/base/search.h"

#include "daemon/core/history/history.h"

/* 9 of 10 periods. */
#define STEADY_NUM 9
#define STEADY_DEN 10

struct cell {
	uint32_t group, period;
	uint32_t copies[2]; /* to the host, to the device */
	uint64_t bytes[2];
	uint64_t in_use; /* bytes of the allocations that were used */
};

struct ttmon_periods {
	struct cell *v;
	size_t n, cap;
	uint32_t group; /* group of the current allocation */
	uint64_t size;
	bool fresh; /* the current allocation has no cell yet */
};

/* ---- where periods end ---- */

static int by_label(const void *pa, const void *pb)
{
	const struct ttmon_period_mark *a = pa, *b = pb;
	int order = a->proc < b->proc ? -1 : a->proc > b->proc;

	if (!order)
		order = strcmp(a->label, b->label);
	return order ? order : a->ts_ns < b->ts_ns ? -1 : a->ts_ns > b->ts_ns;
}

/*
 * marks are sorted, so that those of one process and label form a run. Picks the run [*from, *to) of
 * the process that starts at i; returns where the next process begins.
 */
static size_t pick_run(const struct ttmon_period_mark *marks, size_t n, size_t i, const char *label, size_t *from,
		       size_t *to)
{
	uint32_t proc = marks[i].proc;

	*from = *to = i;
	while (i < n && marks[i].proc == proc) {
		size_t end = i + 1, best = *to - *from;

		while (end < n && marks[end].proc == proc && !strcmp(marks[end].label, marks[i].label))
			end++;
		if (label ? !strcmp(marks[i].label, label)
			  : end - i > best || (end - i == best && marks[i].ts_ns < marks[*from].ts_ns)) {
			*from = i;
			*to = end;
		}
		i = end;
	}
	return i;
}

int ttmon_period_ends_init(struct ttmon_period_ends *e, const struct ttmon_period_mark *marks, size_t n,
			   const char *label, uint32_t nr_procs)
{
	_cleanup_free_ struct ttmon_period_mark *sorted = malloc((n + 1) * sizeof(*sorted));
	struct ttmon_period_ends ends = { .nr_procs = nr_procs };
	uint32_t proc = 0, nr = 0;
	size_t used = 0;

	ends.ts = malloc((n + 1) * sizeof(*ends.ts));
	ends.from = malloc(((size_t)nr_procs + 1) * sizeof(*ends.from));
	ends.label = calloc((size_t)nr_procs + 1, sizeof(*ends.label));
	if (!sorted || !ends.ts || !ends.from || !ends.label) {
		ttmon_period_ends_fini(&ends);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		if (marks[i].proc < nr_procs)
			sorted[used++] = marks[i];
	qsort(sorted, used, sizeof(*sorted), by_label);
	for (size_t i = 0, from, to; i < used;) {
		uint32_t of = sorted[i].proc;

		i = pick_run(sorted, used, i, label, &from, &to);
		while (proc <= of)
			ends.from[proc++] = nr;
		if (to > from)
			ends.label[of] = sorted[from].label;
		for (; from < to; from++)
			ends.ts[nr++] = sorted[from].ts_ns;
	}
	while (proc <= nr_procs)
		ends.from[proc++] = nr;
	*e = ends;
	return 0;
}

void ttmon_period_ends_fini(struct ttmon_period_ends *e)
{
	free(e->ts);
	free(e->from);
	free(e->label);
	*e = (struct ttmon_period_ends){ 0 };
}

uint32_t ttmon_period_at(const struct ttmon_period_ends *e, uint32_t proc, uint64_t ts_ns)
{
	uint32_t lo = e->from[proc], hi = e->from[proc + 1];

	lo = TTMON_SEARCH(lo, hi, mid, e->ts[mid] <= ts_ns);
	return lo - e->from[proc];
}

/* ---- sums ---- */

int ttmon_periods_new(struct ttmon_periods **ret)
{
	struct ttmon_periods *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	*ret = p;
	return 0;
}

void ttmon_periods_free(struct ttmon_periods *p)
{
	if (!p)
		return;
	free(p->v);
	free(p);
}

static int by_cell(const void *pa, const void *pb)
{
	const struct cell *a = pa, *b = pb;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->period < b->period ? -1 : a->period > b->period;
}

static void merge(struct ttmon_periods *p)
{
	size_t n = 0;

	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), by_cell);
	for (size_t i = 0; i < p->n; i++) {
		struct cell *to = n ? &p->v[n - 1] : NULL;

		if (!to || by_cell(to, &p->v[i])) {
			p->v[n++] = p->v[i];
			continue;
		}
		for (unsigned int d = 0; d < 2; d++) {
			to->copies[d] += p->v[i].copies[d];
			to->bytes[d] += p->v[i].bytes[d];
		}
		to->in_use += p->v[i].in_use;
	}
	p->n = n;
}

static int make_room(struct ttmon_periods *p)
{
	size_t cap = p->cap ? p->cap * 2 : 1024;
	struct cell *v;

	if (p->n < p->cap)
		return 0;
	merge(p);
	/* At least half of it must be free, or the next merge would come soon. */
	if (p->n < p->cap / 2)
		return 0;
	if (p->cap >= TTMON_PERIODS_CELLS)
		return p->n < p->cap ? 0 : -E2BIG;
	v = realloc(p->v, cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	p->v = v;
	p->cap = cap;
	return 0;
}

void ttmon_periods_alloc(struct ttmon_periods *p, uint32_t group, uint64_t size)
{
	p->group = group;
	p->size = size;
	p->fresh = true;
}

int ttmon_periods_add(struct ttmon_periods *p, uint32_t period, bool to_device, uint64_t bytes)
{
	struct cell *c = p->fresh ? NULL : &p->v[p->n - 1];
	int err;

	if (!c || c->period != period) {
		err = make_room(p);
		if (err)
			return err;
		c = &p->v[p->n++];
		*c = (struct cell){ .group = p->group, .period = period, .in_use = p->size };
		p->fresh = false;
	}
	c->copies[to_device]++;
	c->bytes[to_device] += bytes;
	return 0;
}

/* ---- rows ---- */

const char *ttmon_period_when_name(unsigned int when)
{
	static const char *const names[TTMON_WHEN_MAX] = {
		[TTMON_WHEN_STEADY] = "steady", [TTMON_WHEN_SOMETIMES] = "sometimes", [TTMON_WHEN_START] = "start",
		[TTMON_WHEN_AFTER] = "after",	[TTMON_WHEN_NEVER] = "never",
	};

	return when < TTMON_WHEN_MAX ? names[when] : NULL;
}

static int by_bytes(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

static enum ttmon_period_when when(const struct ttmon_period_row *r, bool any)
{
	uint32_t later = r->steps - (r->steps && !r->first);

	if (!r->steps)
		return any ? TTMON_WHEN_AFTER : TTMON_WHEN_NEVER;
	if (!later)
		return TTMON_WHEN_START;
	return (uint64_t)later * STEADY_DEN >= (uint64_t)(r->of - 1) * STEADY_NUM ? TTMON_WHEN_STEADY
										  : TTMON_WHEN_SOMETIMES;
}

/* cells: n cells of one group; scratch has room for n figures. */
static void fill_row(struct ttmon_period_row *r, const struct cell *cells, size_t n, uint64_t *scratch)
{
	for (size_t i = 0; i < n; i++) {
		const struct cell *c = &cells[i];

		if (c->period == r->shown) {
			for (unsigned int d = 0; d < 2; d++) {
				r->shown_copies[d] = c->copies[d];
				r->shown_bytes[d] = c->bytes[d];
			}
			r->shown_in_use = c->in_use;
		}
		if (c->period >= r->of)
			continue;
		r->first = MIN(r->first, c->period);
		r->last = c->period;
		scratch[r->steps++] = c->bytes[0] + c->bytes[1];
		r->in_use = MAX(r->in_use, c->in_use);
		for (unsigned int d = 0; d < 2; d++) {
			r->copies[d] += c->copies[d];
			r->bytes[d] += c->bytes[d];
		}
	}
	if (r->steps) {
		qsort(scratch, r->steps, sizeof(*scratch), by_bytes);
		r->min = scratch[0];
		r->median = scratch[r->steps / 2];
		r->max = scratch[r->steps - 1];
	}
	r->when = (uint8_t)when(r, n != 0);
}

int ttmon_periods_rows(struct ttmon_periods *p, const struct ttmon_period_ask *ask, uint32_t n,
		       struct ttmon_period_row *rows)
{
	_cleanup_free_ uint64_t *scratch = NULL;
	size_t at = 0, end;

	merge(p);
	p->fresh = true;
	scratch = malloc((p->n + 1) * sizeof(*scratch));
	if (!scratch)
		return -ENOMEM;
	for (uint32_t g = 0; g < n; g++) {
		rows[g] = (struct ttmon_period_row){
			.group = g, .of = ask[g].of, .first = UINT32_MAX, .last = UINT32_MAX, .shown = ask[g].shown
		};
		for (end = at; end < p->n && p->v[end].group == g; end++)
			;
		fill_row(&rows[g], p->v + at, end - at, scratch);
		at = end;
	}
	return 0;
}

static uint64_t time_of(uint64_t bytes, uint64_t bps)
{
	unsigned __int128 ns = (unsigned __int128)bytes * NSEC_PER_SEC / bps;

	return ns > UINT64_MAX / 4 ? UINT64_MAX / 4 : (uint64_t)ns;
}

void ttmon_period_get_gain(const struct ttmon_period_row *row, uint64_t pageable_bps, uint64_t pinned_bps,
			   uint64_t pinning_bps, struct ttmon_period_gain *ret)
{
	uint64_t moved = row->bytes[0] + row->bytes[1];
	uint64_t slow = time_of(moved, pageable_bps), fast = time_of(moved, pinned_bps);
	struct ttmon_period_gain g = { .cost_ns = time_of(row->in_use, pinning_bps), .pays_after = UINT64_MAX };

	if (row->of && slow > fast) {
		uint64_t saved = slow - fast;
		unsigned __int128 after = ((unsigned __int128)g.cost_ns * row->of + saved - 1) / saved;

		g.saved_ns = saved / row->of;
		g.pays_after = after > UINT64_MAX - 1 ? UINT64_MAX - 1 : (uint64_t)after;
	}
	*ret = g;
}

unsigned int ttmon_period_advice(const struct ttmon_period_row *row, const struct ttmon_period_gain *gain,
				 unsigned int method, bool in_place)
{
	bool pageable = method == TTMON_METHOD_CUSTOM || method == TTMON_METHOD_MMAP;

	if (pageable && gain->pays_after <= row->of)
		return TTMON_ADVICE_PIN;
	/* If there is only one period, all of it is the start. */
	if (ttmon_method_pinned(method) && !in_place && row->of > 1 &&
	    (row->when == TTMON_WHEN_START || row->when == TTMON_WHEN_NEVER))
		return TTMON_ADVICE_UNPIN;
	return TTMON_ADVICE_KEEP;
}
