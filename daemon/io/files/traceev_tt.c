// SPDX-License-Identifier: GPL-2.0-only
/*
 * traceev_tt.c: events with a length: calls on their threads, programs on their chips; and dispatches.
 *
 * Slices of a track must nest. Calls of a thread do by nature (a copy inside the program's own
 * allocator); one that does not, because a call in between never returned, is drawn beside the track
 * (b, e). Runs of a chip follow one another or overlap (two queues, two processes, the error of a
 * clock): they are drawn on up to MAX_LANES tracks, and runs without a free track are drawn beside
 * them. A gap of 2 ns is kept between slices: viewers compute with doubles of microseconds and may
 * round two ends apart by one each.
 */
#include "daemon/core/stream/decode.h"
#include "lib/base/grow.h"
#include "lib/base/names.h"
#include "daemon/io/files/traceev_int.h"

#define MAX_LANES 16
#define MAX_NEST  8
#define GAP_NS	  2
/* A run that ends later, or begins earlier, than the trace by more than this has no valid time. */
#define SLACK_NS (10 * NSEC_PER_SEC)

static const char *const arch_names[TTMON_TT_ARCH_MAX] = { "chip", "grayskull", "wormhole", "blackhole" };

void ttmon_traceev_chip(struct ttmon_traceev *t, const struct ttmon_ev_tt_chip *chip)
{
	if (TTMON_GROW(t->chips, t->cap_chips, t->nr_chips + 1, 32)) {
		t->err = t->err ? t->err : -ENOMEM;
		return;
	}
	t->chips[t->nr_chips++] = chip;
}

/* "1: n300 R, 0123456789ABCDEF", "2: galaxy-wormhole T1:N5" */
static void chip_name(const struct ttmon_traceev *t, const struct ttmon_tt_run *r, char *buf, size_t n)
{
	const struct ttmon_ev_tt_chip *c = NULL;
	char id[32] = "", place[24] = "";

	for (size_t i = 0; i < t->nr_chips; i++)
		if (t->chips[i]->index == r->chip)
			c = t->chips[i];
	if (!c) {
		snprintf(buf, n, "device %u of %u", r->logical, r->tgid);
		return;
	}
	if (c->flags & TTMON_TT_CHIP_GALAXY)
		snprintf(place, sizeof(place), " T%u:N%u", c->tray, c->chip);
	else if (c->flags & TTMON_TT_CHIP_REMOTE)
		snprintf(place, sizeof(place), " R");
	if (c->asic_id || c->unique_id)
		snprintf(id, sizeof(id), ", %llx", (unsigned long long)(c->asic_id ? c->asic_id : c->unique_id));
	snprintf(buf, n, "chip %u: %.16s%s%s", c->index,
		 c->card[0]		       ? c->card
		 : c->arch < TTMON_TT_ARCH_MAX ? arch_names[c->arch]
					       : "chip",
		 place, id);
}

static int program_cmp(const struct ttmon_tt_program *a, const struct ttmon_tt_program *b)
{
	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (a->logical != b->logical)
		return a->logical < b->logical ? -1 : 1;
	return (a->program > b->program) - (a->program < b->program);
}

static int by_program(const void *pa, const void *pb)
{
	const struct ttmon_tt_program *a = *(const struct ttmon_tt_program *const *)pa,
				      *b = *(const struct ttmon_tt_program *const *)pb;
	int cmp = program_cmp(a, b);

	return cmp ? cmp : (a->first_ns > b->first_ns) - (a->first_ns < b->first_ns);
}

void ttmon_traceev_programs(struct ttmon_traceev *t, const struct ttmon_tt_program *programs, size_t n)
{
	t->programs = calloc(n + 1, sizeof(const struct ttmon_tt_program *));
	if (!t->programs) {
		t->err = t->err ? t->err : -ENOMEM;
		return;
	}
	t->nr_programs = n;
	for (size_t i = 0; i < n; i++)
		t->programs[i] = &programs[i];
	if (n)
		qsort(t->programs, n, sizeof(t->programs[0]), by_program);
}

/* Ids are reused: of several programs with that id, the last one that had begun to run by then. */
static const char *kernels_of(const struct ttmon_traceev *t, const struct ttmon_tt_run *r)
{
	const struct ttmon_tt_program key = { .tgid = r->tgid, .logical = r->logical, .program = r->program };
	size_t lo = 0, hi = t->nr_programs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int cmp = program_cmp(t->programs[mid], &key);

		if (cmp < 0 || (!cmp && t->programs[mid]->first_ns <= r->start_ns))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && !program_cmp(t->programs[lo - 1], &key) ? t->programs[lo - 1]->kernels : NULL;
}

/* A track is a chip or, if the chip is unknown, a device of a process. */
static uint64_t track_of(const struct ttmon_tt_run *r)
{
	return r->chip ? r->chip : (uint64_t)1 << 63 | (uint64_t)r->tgid << 31 | (r->logical & 0x7fffffff);
}

static bool placed(const struct ttmon_traceev *t, const struct ttmon_tt_run *r)
{
	return r->clock != TTMON_CLOCK_NONE && r->end_ns >= r->start_ns && r->start_ns + SLACK_NS >= t->head.start_ns &&
	       r->end_ns <= t->head.end_ns + SLACK_NS;
}

static int by_track(const void *pa, const void *pb)
{
	const struct ttmon_tt_run *a = *(const struct ttmon_tt_run *const *)pa,
				  *b = *(const struct ttmon_tt_run *const *)pb;
	uint64_t ta = track_of(a), tb = track_of(b);

	if (ta != tb)
		return ta < tb ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->seen_ns != b->seen_ns)
		return a->seen_ns < b->seen_ns ? -1 : 1;
	return (a->program > b->program) - (a->program < b->program);
}

/*
 * "reader_unary + 2" for "a/reader_unary.cpp, b/x.cpp, c/y.cpp"; "program 7" if the kernels are
 * unknown.
 */
static void run_name(const char *kernels, uint32_t program, char *buf, size_t n)
{
	const char *end = kernels ? strchr(kernels, ',') : NULL, *base = kernels, *dot;
	unsigned int more = 0;

	if (!kernels || !*kernels) {
		snprintf(buf, n, "program %u", program);
		return;
	}
	for (const char *p = end; p; p = strchr(p + 1, ','))
		more++;
	if (!end)
		end = kernels + strlen(kernels);
	for (const char *p = kernels; p < end; p++)
		if (*p == '/')
			base = p + 1;
	dot = memrchr(base, '.', (size_t)(end - base));
	if (dot && dot != base)
		end = dot;
	if (more)
		snprintf(buf, n, "%.*s + %u", (int)MIN(end - base, 80), base, more);
	else
		snprintf(buf, n, "%.*s", (int)MIN(end - base, 80), base);
}

static void run_args(struct ttmon_traceev *t, const struct ttmon_tt_run *r, const char *kernels)
{
	ttmon_traceev_args(t);
	ttmon_traceev_num(t, "program", r->program);
	if (kernels)
		ttmon_traceev_str(t, "kernels", kernels);
	ttmon_traceev_num(t, "pid", r->tgid);
	ttmon_traceev_num(t, "device", r->logical);
	ttmon_traceev_str(t, "clock", ttmon_clock_name(r->clock));
	/* An envelope: the run was at some time between its enqueue and its report. */
	if (r->error_ns != UINT64_MAX)
		ttmon_traceev_num(t, "error_ns", r->error_ns);
	ttmon_traceev_time(t, "start_cycles", r->start_cycles);
	ttmon_traceev_time(t, "end_cycles", r->end_cycles);
	ttmon_traceev_num(t, "mhz", r->ghz > 0 && r->ghz < 1e6 ? (uint64_t)(r->ghz * 1e3 + 0.5) : 0);
	ttmon_traceev_time(t, "reported_ns", r->seen_ns);
	if (r->enqueued_ns)
		ttmon_traceev_time(t, "enqueued_ns", r->enqueued_ns);
	ttmon_traceev_close(t);
}

static void write_run(struct ttmon_traceev *t, const struct ttmon_tt_run *r, uint32_t tid, bool beside)
{
	const char *kernels = kernels_of(t, r);
	bool ok = placed(t, r);
	char name[112];

	if (!ttmon_traceev_open(t,
				!ok	 ? 'i'
				: beside ? 'b'
					 : 'X',
				"program", NULL, TTMON_TRACE_PID_TT, tid, ok ? r->start_ns : r->seen_ns))
		return;
	t->runs++;
	t->unplaced += !ok;
	run_name(kernels, r->program, name, sizeof(name));
	ttmon_jsonw_str(&t->w, name);
	if (ok && beside)
		ttmon_traceev_id(t, ++t->next_id);
	else if (ok)
		ttmon_traceev_dur(t, r->end_ns - r->start_ns);
	run_args(t, r, kernels);
	if (ok && beside) {
		/* The limit counts the pair as one: the end must follow. */
		uint64_t max = t->head.max_events;

		t->head.max_events = 0;
		(void)!ttmon_traceev_open(t, 'e', "program", NULL, TTMON_TRACE_PID_TT, tid, r->end_ns);
		t->head.max_events = max;
		ttmon_jsonw_str(&t->w, name);
		ttmon_traceev_id(t, t->next_id);
		ttmon_jsonw_close(&t->w, '}');
	}
}

struct lanes {
	uint64_t end[MAX_LANES];
	unsigned int n;
	uint32_t tid; /* of the first lane */
};

static void name_lane(struct ttmon_traceev *t, const struct ttmon_tt_run *r, const struct lanes *l)
{
	char name[96], full[112];

	if (!t->tt_named) {
		t->tt_named = true;
		ttmon_traceev_name(t, "process_name", TTMON_TRACE_PID_TT, 0, "Tenstorrent");
	}
	chip_name(t, r, name, sizeof(name));
	if (l->n)
		snprintf(full, sizeof(full), "%s (%u)", name, l->n + 1);
	ttmon_traceev_name(t, "thread_name", TTMON_TRACE_PID_TT, l->tid + l->n, l->n ? full : name);
}

/* The first lane that is free at that time; MAX_LANES: none. */
static unsigned int lane_for(struct ttmon_traceev *t, struct lanes *l, const struct ttmon_tt_run *r)
{
	unsigned int i;

	for (i = 0; i < l->n; i++)
		if (r->start_ns >= l->end[i])
			break;
	if (i == MAX_LANES)
		return i;
	if (i == l->n) {
		name_lane(t, r, l);
		l->n++;
	}
	l->end[i] = r->end_ns + GAP_NS;
	return i;
}

void ttmon_traceev_runs(struct ttmon_traceev *t, const struct ttmon_tt_run **runs, size_t n)
{
	struct lanes l = { .tid = 1 };

	if (n)
		qsort(runs, n, sizeof(*runs), by_track);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_tt_run *r = runs[i];
		unsigned int lane;

		if (i && track_of(r) != track_of(runs[i - 1]))
			l = (struct lanes){ .tid = l.tid + MAX_LANES };
		if (!placed(t, r)) {
			if (!l.n) {
				name_lane(t, r, &l);
				l.n++;
			}
			write_run(t, r, l.tid, false);
			continue;
		}
		lane = lane_for(t, &l, r);
		write_run(t, r, l.tid + lane % MAX_LANES, lane == MAX_LANES);
	}
}

void ttmon_traceev_dispatched(struct ttmon_traceev *t, const struct ttmon_tt_dispatched *d)
{
	static const char *const names[] = {
#define X(id, NAME, name) [id] = name,
		TTMON_TT_DISPATCH_TABLE(X)
#undef X
	};
	const char *fn = ttmon_tt_fn_name(d->fn);
	uint32_t pid;

	(void)ttmon_traceev_pid_of(t, d->tgid, d->ts_ns, &pid);
	if (!ttmon_traceev_open(t, 'i', "dispatch", d->kind < ARRAY_SIZE(names) ? names[d->kind] : "dispatch", pid,
				d->tid, MAX(d->ts_ns, t->head.start_ns)))
		return;
	t->dispatches++;
	ttmon_traceev_args(t);
	if (fn)
		ttmon_traceev_str(t, "fn", fn);
	ttmon_traceev_addr(t, "device", d->device);
	if (d->what)
		ttmon_traceev_addr(t, "what", d->what);
	ttmon_jsonw_key_bool(&t->w, "blocking", d->blocking);
	/* More than one: the ones before were reported in sums only. */
	ttmon_traceev_num(t, "count", d->count);
	ttmon_traceev_close(t);
}

/* ---- calls ---- */

static int by_thread(const void *pa, const void *pb)
{
	const struct ttmon_timeline_call *a = *(const struct ttmon_timeline_call *const *)pa,
					 *b = *(const struct ttmon_timeline_call *const *)pb;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->entry_ns != b->entry_ns)
		return a->entry_ns < b->entry_ns ? -1 : 1;
	/* The outer call first. */
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return (a->fn > b->fn) - (a->fn < b->fn);
}

/* 'X' if it nests in the open slices, 'i' if it has no length, 'b' if it overlaps another one. */
static char form_of(const struct ttmon_timeline_call *c, uint64_t open[MAX_NEST], unsigned int *depth)
{
	if (c->end_ns <= c->entry_ns)
		return 'i';
	while (*depth && open[*depth - 1] + GAP_NS <= c->entry_ns)
		(*depth)--;
	if (*depth == MAX_NEST || (*depth && c->end_ns > open[*depth - 1]))
		return 'b';
	open[(*depth)++] = c->end_ns;
	return 'X';
}

static void write_call(struct ttmon_traceev *t, const struct ttmon_timeline_call *c, char form)
{
	const char *fn = ttmon_fn_name(c->fn);
	uint64_t from = MAX(c->entry_ns, t->head.start_ns), to = MAX(c->end_ns, from);
	uint32_t pid;

	(void)ttmon_traceev_pid_of(t, c->tgid, c->end_ns, &pid);
	if (!ttmon_traceev_open(t, form, "call", fn ? fn : "call", pid, c->tid, form == 'i' ? to : from))
		return;
	t->calls++;
	if (form == 'X')
		ttmon_traceev_dur(t, to - from);
	else if (form == 'b')
		ttmon_traceev_id(t, ++t->next_id);
	ttmon_traceev_args(t);
	if (c->kind != TTMON_EV_FREE)
		ttmon_traceev_num(t, "bytes", c->bytes);
	if (c->kind == TTMON_EV_COPY)
		ttmon_traceev_str(t, "direction", ttmon_dir_name(c->dir));
	if (c->err) {
		ttmon_jsonw_key_int(&t->w, "error", c->err);
	}
	if (c->bits & TTMON_B_CAPTURED)
		ttmon_traceev_str(t, "captured", "a graph node, not a transfer");
	ttmon_traceev_close(t);
	if (form == 'b') {
		uint64_t max = t->head.max_events;

		t->head.max_events = 0;
		(void)!ttmon_traceev_open(t, 'e', "call", fn ? fn : "call", pid, c->tid, to);
		t->head.max_events = max;
		ttmon_traceev_id(t, t->next_id);
		ttmon_jsonw_close(&t->w, '}');
	}
}

void ttmon_traceev_calls(struct ttmon_traceev *t, const struct ttmon_timeline_call **calls, size_t n)
{
	uint64_t open[MAX_NEST];
	unsigned int depth = 0;

	if (n)
		qsort(calls, n, sizeof(*calls), by_thread);
	for (size_t i = 0; i < n; i++) {
		if (i && (calls[i]->tid != calls[i - 1]->tid || calls[i]->tgid != calls[i - 1]->tgid))
			depth = 0;
		write_call(t, calls[i], form_of(calls[i], open, &depth));
	}
}
