// SPDX-License-Identifier: GPL-2.0-only
/*
 * traceev.c: the document of a trace file, its processes, allocations, counters and transfers;
 * traceev_tt.c writes calls and runs.
 *
 * Names: a process is named right before its first event, so that those without one are not in the
 * file. Two processes that had one pid one after the other are two in the file: the later one gets an
 * invented pid, and its name says so.
 *
 * Counters: allocations come in the order in which they were made, so those that end before the next
 * one begins are taken from a heap of the live ones. A late allocation counts from the present
 * position of the counters, which never go back in time.
 */
#include "daemon/io/files/traceev.h"

#include "lib/base/search.h"
#include "lib/base/grow.h"
#include "lib/base/names.h"

#include <assert.h>

#include "daemon/core/stream/decode.h"
#include "daemon/io/files/traceev_int.h"

static const char *const held_names[] = {
#define X(NAME, name) [TTMON_TRACE_HELD_##NAME] = name,
	TTMON_TRACE_HELD_TABLE(X)
#undef X
};

bool ttmon_traceev_open(struct ttmon_traceev *t, char ph, const char *cat, const char *name, uint32_t pid, uint32_t tid,
			uint64_t ts_ns)
{
	const char text[2] = { ph, '\0' };

	if (t->head.max_events && t->events >= t->head.max_events) {
		t->over++;
		return false;
	}
	t->events++;
	ttmon_jsonw_row(&t->w, '{');
	ttmon_jsonw_key_name(&t->w, "ph", text);
	ttmon_jsonw_key_name(&t->w, "cat", cat);
	ttmon_traceev_num(t, "pid", pid);
	ttmon_traceev_num(t, "tid", tid);
	ttmon_jsonw_key(&t->w, "ts");
	ttmon_jsonw_us(&t->w, ts_ns);
	if (ph == 'i') {
		ttmon_jsonw_key_name(&t->w, "s", "t");
	}
	ttmon_jsonw_key(&t->w, "name");
	if (name)
		ttmon_jsonw_name(&t->w, name);
	return true;
}

void ttmon_traceev_args(struct ttmon_traceev *t)
{
	ttmon_jsonw_key_open(&t->w, "args", '{');
}

void ttmon_traceev_close(struct ttmon_traceev *t)
{
	ttmon_jsonw_close(&t->w, '}');
	ttmon_jsonw_close(&t->w, '}');
}

void ttmon_traceev_id(struct ttmon_traceev *t, uint64_t id)
{
	ttmon_jsonw_key_open(&t->w, "id2", '{');
	ttmon_traceev_addr(t, "local", id);
	ttmon_jsonw_close(&t->w, '}');
}

void ttmon_traceev_dur(struct ttmon_traceev *t, uint64_t ns)
{
	ttmon_jsonw_key(&t->w, "dur");
	ttmon_jsonw_us(&t->w, ns);
}

static void metadata(struct ttmon_traceev *t, const char *what, uint32_t pid, uint32_t tid)
{
	ttmon_jsonw_row(&t->w, '{');
	ttmon_jsonw_key_name(&t->w, "ph", "M");
	ttmon_traceev_num(t, "pid", pid);
	ttmon_traceev_num(t, "tid", tid);
	ttmon_jsonw_key_name(&t->w, "name", what);
	ttmon_traceev_args(t);
}

void ttmon_traceev_name(struct ttmon_traceev *t, const char *what, uint32_t pid, uint32_t tid, const char *name)
{
	metadata(t, what, pid, tid);
	ttmon_traceev_str(t, strcmp(what, "process_labels") ? "name" : "labels", name);
	ttmon_traceev_close(t);
}

static int by_tgid(const void *pa, const void *pb)
{
	const struct ttmon_traceev_by_tgid *a = pa, *b = pb;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	return (a->idx > b->idx) - (a->idx < b->idx);
}

static void list_processes(struct ttmon_traceev *t)
{
	for (uint32_t i = 0; i < t->head.nr_procs; i++) {
		struct ttmon_traceev_proc p = { 0 };

		t->head.proc(t->head.ctx, i, &p);
		t->by_tgid[i] = (struct ttmon_traceev_by_tgid){ .tgid = p.tgid, .idx = i, .from_ns = p.from_ns };
	}
	if (t->head.nr_procs)
		qsort(t->by_tgid, t->head.nr_procs, sizeof(*t->by_tgid), by_tgid);
	for (uint32_t i = 0; i < t->head.nr_procs; i++) {
		const struct ttmon_traceev_by_tgid *b = &t->by_tgid[i];

		t->pids[b->idx].pid = i && b[-1].tgid == b->tgid ? TTMON_TRACE_PID_AGAIN + b->idx : b->tgid;
	}
}

uint32_t ttmon_traceev_get_pid(struct ttmon_traceev *t, uint32_t idx)
{
	struct ttmon_traceev_pid *p = &t->pids[idx];
	struct ttmon_traceev_proc proc = { 0 };
	char name[64];

	assert(idx < t->head.nr_procs);
	if (p->named)
		return p->pid;
	p->named = true;
	t->head.proc(t->head.ctx, idx, &proc);
	if (p->pid == proc.tgid)
		snprintf(name, sizeof(name), "%.20s", proc.comm);
	else
		snprintf(name, sizeof(name), "%.20s (pid %u again)", proc.comm, proc.tgid);
	ttmon_traceev_name(t, "process_name", p->pid, 0, name);
	if (proc.cmdline)
		ttmon_traceev_name(t, "process_labels", p->pid, 0, proc.cmdline);
	return p->pid;
}

bool ttmon_traceev_pid_of(struct ttmon_traceev *t, uint32_t tgid, uint64_t ns, uint32_t *ret)
{
	const struct ttmon_traceev_by_tgid *b = t->by_tgid;
	size_t lo = TTMON_SEARCH((size_t)0, t->head.nr_procs, i,
				 b[i].tgid < tgid || (b[i].tgid == tgid && b[i].from_ns <= ns));

	/* The last one that began before ns; else the first with that pid. */
	if (lo && t->by_tgid[lo - 1].tgid == tgid)
		lo--;
	else if (lo >= t->head.nr_procs || t->by_tgid[lo].tgid != tgid) {
		t->strays++;
		*ret = tgid;
		return false;
	}
	*ret = ttmon_traceev_get_pid(t, t->by_tgid[lo].idx);
	return true;
}

int ttmon_traceev_new(int fd, bool gzip, const struct ttmon_traceev_head *head, struct ttmon_traceev **ret)
{
	_cleanup_(ttmon_traceev_freep) struct ttmon_traceev *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->head = *head;
	t->counter_ns = head->start_ns;
	t->pids = calloc((size_t)head->nr_procs + 1, sizeof(*t->pids));
	t->by_tgid = calloc((size_t)head->nr_procs + 1, sizeof(*t->by_tgid));
	if (!t->pids || !t->by_tgid)
		return -ENOMEM;
	err = ttmon_jsonw_init(&t->w, fd, gzip);
	if (err)
		return err;
	list_processes(t);
	ttmon_jsonw_open(&t->w, '{');
	ttmon_jsonw_key_open(&t->w, "traceEvents", '[');
	ttmon_traceev_name(t, "process_name", TTMON_TRACE_PID_TTMON, 0, "ttmon");
	*ret = TAKE_PTR(t);
	return 0;
}

void ttmon_traceev_free(struct ttmon_traceev *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; t->pids && i < t->head.nr_procs; i++)
		free(t->pids[i].held);
	ttmon_jsonw_fini(&t->w);
	free(t->pids);
	free(t->by_tgid);
	free(t->heap);
	free(t->chips);
	free(t->programs);
	free(t);
}

/* ---- counters ---- */

static int held_of(unsigned int method)
{
	if (ttmon_method_pins(method))
		return TTMON_TRACE_HELD_PINNED;
	switch (method) {
	case TTMON_METHOD_MANAGED:
		return TTMON_TRACE_HELD_MANAGED;
	case TTMON_METHOD_DEVICE:
		return TTMON_TRACE_HELD_DEVICE;
	case TTMON_METHOD_CUSTOM:
		return TTMON_TRACE_HELD_CUSTOM;
	default:
		return method >= TTMON_METHOD_TT_DRAM && method <= TTMON_METHOD_TT_CB
			       ? TTMON_TRACE_HELD_TT_DRAM + (int)(method - TTMON_METHOD_TT_DRAM)
			       : -1;
	}
}

static void counter(struct ttmon_traceev *t, uint32_t proc, unsigned int held, uint64_t ns)
{
	if (!ttmon_traceev_open(t, 'C', "memory", held_names[held], ttmon_traceev_get_pid(t, proc), 0, ns))
		return;
	ttmon_traceev_args(t);
	ttmon_traceev_num(t, "bytes", t->pids[proc].held[held]);
	ttmon_traceev_close(t);
}

static void sift_down(struct ttmon_traceev *t)
{
	struct ttmon_traceev_end *h = t->heap, e = h[0];
	size_t i = 0;

	for (;;) {
		size_t c = 2 * i + 1;

		if (c >= t->nr_heap)
			break;
		if (c + 1 < t->nr_heap && h[c + 1].ns < h[c].ns)
			c++;
		if (e.ns <= h[c].ns)
			break;
		h[i] = h[c];
		i = c;
	}
	h[i] = e;
}

static int push_end(struct ttmon_traceev *t, const struct ttmon_traceev_end *e)
{
	size_t i = t->nr_heap;

	if (TTMON_GROW(t->heap, t->cap_heap, i + 1, 256))
		return -ENOMEM;
	t->nr_heap++;
	for (; i && e->ns < t->heap[(i - 1) / 2].ns; i = (i - 1) / 2)
		t->heap[i] = t->heap[(i - 1) / 2];
	t->heap[i] = *e;
	return 0;
}

/* Counts the allocations that end up to then. */
static void count_to(struct ttmon_traceev *t, uint64_t ns)
{
	while (t->nr_heap && t->heap[0].ns <= ns) {
		struct ttmon_traceev_end e = t->heap[0];

		t->heap[0] = t->heap[--t->nr_heap];
		if (t->nr_heap)
			sift_down(t);
		t->counter_ns = MAX(t->counter_ns, e.ns);
		t->pids[e.proc].held[e.held] -= e.bytes;
		counter(t, e.proc, e.held, t->counter_ns);
	}
}

static int count_alloc(struct ttmon_traceev *t, const struct ttmon_traceev_alloc *a, uint64_t from, uint64_t to)
{
	struct ttmon_traceev_pid *p = &t->pids[a->proc];
	int held = held_of(a->method);
	struct ttmon_traceev_end e = { .ns = to, .bytes = a->size, .proc = a->proc, .held = (uint32_t)held };

	if (held < 0)
		return 0;
	if (!p->held)
		p->held = calloc(TTMON_TRACE_HELD_MAX, sizeof(*p->held));
	if (!p->held)
		return -ENOMEM;
	count_to(t, from);
	t->counter_ns = MAX(t->counter_ns, from);
	p->held[held] += a->size;
	counter(t, a->proc, e.held, t->counter_ns);
	return a->live ? 0 : push_end(t, &e);
}

/* A last sample, so that the lines reach the end of the drawing. */
static void count_end(struct ttmon_traceev *t)
{
	count_to(t, UINT64_MAX);
	for (uint32_t i = 0; i < t->head.nr_procs; i++)
		for (unsigned int held = 0; t->pids[i].held && held < TTMON_TRACE_HELD_MAX; held++)
			if (t->pids[i].held[held])
				counter(t, i, held, MAX(t->counter_ns, t->head.end_ns));
}

/* ---- allocations and transfers ---- */

void ttmon_traceev_put_alloc(struct ttmon_traceev *t, const struct ttmon_traceev_alloc *a)
{
	uint64_t from = MAX(a->alloc_ns, t->head.start_ns), to = MAX(a->live ? t->head.end_ns : a->free_ns, from);
	const char *method = ttmon_method_name(a->method);
	uint32_t pid;

	if (a->proc >= t->head.nr_procs || !method) {
		t->strays++;
		return;
	}
	if (a->method == TTMON_METHOD_MMAP && !a->copies) {
		t->no_transfer++;
		return;
	}
	pid = ttmon_traceev_get_pid(t, a->proc);
	/* Both or neither: a begin without an end is drawn without end. */
	if (t->head.max_events && t->head.max_events - t->events < 2) {
		t->over++;
		return;
	}
	if (!ttmon_traceev_open(t, 'b', "alloc", method, pid, pid, from))
		return;
	t->allocations++;
	ttmon_traceev_id(t, ++t->next_id);
	ttmon_traceev_args(t);
	ttmon_traceev_num(t, "size", a->size);
	ttmon_traceev_addr(t, "addr", a->addr);
	if (a->fn)
		ttmon_traceev_str(t, "fn", a->fn);
	if (a->site) {
		ttmon_jsonw_key(&t->w, "site");
		if (a->site_delta == UINT64_MAX)
			ttmon_jsonw_str(&t->w, a->site);
		else
			ttmon_jsonw_symbol(&t->w, a->site, a->site_delta);
	}
	if (a->name)
		ttmon_traceev_str(t, "name", a->name);
	if (a->device >= 0)
		ttmon_traceev_num(t, "device", (uint64_t)a->device);
	if (a->alloc_ns != from)
		ttmon_traceev_time(t, "alloc_ns", a->alloc_ns);
	if (a->pin_ns)
		ttmon_traceev_num(t, "call_ns", a->pin_ns);
	if (a->copies) {
		ttmon_traceev_num(t, "copies", a->copies);
		ttmon_traceev_num(t, "copied", a->bytes);
	}
	ttmon_traceev_str(t, "end", a->live ? "live" : a->end);
	ttmon_traceev_close(t);
	(void)!ttmon_traceev_open(t, 'e', "alloc", method, pid, pid, to);
	ttmon_traceev_id(t, t->next_id);
	ttmon_jsonw_close(&t->w, '}');
	if (!t->err)
		t->err = count_alloc(t, a, from, to);
}

/*
 * A transfer is an event of the memory on both of its sides. It is drawn once: by its host side;
 * without one, by its destination, and where that is an array, by its source. (Between managed and
 * other host memory it is drawn for both.)
 */
static int direction(const struct ttmon_traceev_transfer *x)
{
	bool to_array = x->ev.bits & TTMON_B_DST_ARRAY;

	switch (x->ev.kind) {
	case TTMON_AEV_H2D:
		return x->method == TTMON_METHOD_DEVICE ? -1 : TTMON_RDIR_H2D;
	case TTMON_AEV_D2H:
		return x->method == TTMON_METHOD_DEVICE ? -1 : TTMON_RDIR_D2H;
	case TTMON_AEV_TO_PINNED:
	case TTMON_AEV_TO_HOST:
		return TTMON_RDIR_H2H;
	case TTMON_AEV_D2D_DST:
		return TTMON_RDIR_D2D;
	case TTMON_AEV_D2D_SRC:
		return to_array ? TTMON_RDIR_D2D : -1;
	case TTMON_AEV_UNKNOWN_DST:
		return TTMON_RDIR_UNKNOWN;
	case TTMON_AEV_UNKNOWN_SRC:
		return to_array ? TTMON_RDIR_UNKNOWN : -1;
	default:
		return -1;
	}
}

void ttmon_traceev_put_transfer(struct ttmon_traceev *t, const struct ttmon_traceev_transfer *x)
{
	int dir = direction(x);
	uint32_t pid, tid;
	char name[48];

	if (dir < 0)
		return;
	if (x->proc >= t->head.nr_procs || x->ev.mem >= TTMON_MEM_MAX) {
		t->strays++;
		return;
	}
	pid = ttmon_traceev_get_pid(t, x->proc);
	tid = TTMON_TRACE_TID_DIR + x->proc * 8 + (uint32_t)dir;
	if (!(t->pids[x->proc].tracks & (1 << dir))) {
		t->pids[x->proc].tracks |= (uint8_t)(1 << dir);
		snprintf(name, sizeof(name), "transfers %s", ttmon_rdir_name((unsigned int)dir));
		ttmon_traceev_name(t, "thread_name", pid, tid, name);
	}
	snprintf(name, sizeof(name), "%s%s%s", ttmon_rdir_name((unsigned int)dir), dir == TTMON_RDIR_D2D ? "" : " ",
		 dir == TTMON_RDIR_D2D ? "" : ttmon_mem_name(x->ev.mem));
	if (!ttmon_traceev_open(t, 'i', "transfer", name, pid, tid, MAX(x->ev.ts_ns, t->head.start_ns)))
		return;
	t->transfers++;
	ttmon_traceev_args(t);
	ttmon_traceev_num(t, "bytes", x->ev.bytes);
	ttmon_traceev_addr(t, "memory", x->addr);
	ttmon_traceev_num(t, "offset", x->ev.offset);
	if (x->ev.bits & TTMON_B_UNOBSERVED)
		ttmon_traceev_str(t, "seen", "enqueued");
	if (x->ev.bits & TTMON_AB_STAGED)
		ttmon_traceev_str(t, "how", "staged");
	ttmon_traceev_close(t);
}

void ttmon_traceev_checkpoint(struct ttmon_traceev *t, const struct ttmon_period_end *c)
{
	if (c->proc >= t->head.nr_procs) {
		t->strays++;
		return;
	}
	if (!ttmon_traceev_open(t, 'i', "checkpoint", NULL, ttmon_traceev_get_pid(t, c->proc), c->tid,
				MAX(c->ts_ns, t->head.start_ns)))
		return;
	t->checkpoints++;
	ttmon_jsonw_str(&t->w, *c->label ? c->label : "checkpoint");
	ttmon_jsonw_close(&t->w, '}');
}

/* ---- what was not seen ---- */

static void put_gap(struct ttmon_traceev *t, const struct ttmon_gap *g, const char *family, uint32_t tid)
{
	uint64_t from = MAX(g->from_ns, t->head.start_ns), to = MAX(MIN(g->to_ns, t->head.end_ns), from);
	char name[48];

	if (t->head.max_events && t->head.max_events - t->events < 2) {
		t->over++;
		return;
	}
	snprintf(name, sizeof(name), "%s: %s", family, ttmon_gap_state_name(g->state));
	if (!ttmon_traceev_open(t, 'b', "not seen", name, TTMON_TRACE_PID_TTMON, tid, from))
		return;
	ttmon_traceev_id(t, ++t->next_id);
	ttmon_traceev_args(t);
	ttmon_traceev_str(t, "family", family);
	ttmon_traceev_str(t, "state", ttmon_gap_state_name(g->state));
	ttmon_traceev_str(t, "why", ttmon_gap_why_name(g->why));
	if (g->tgid)
		ttmon_traceev_num(t, "pid", g->tgid);
	ttmon_traceev_close(t);
	(void)!ttmon_traceev_open(t, 'e', "not seen", name, TTMON_TRACE_PID_TTMON, tid, to);
	ttmon_traceev_id(t, t->next_id);
	ttmon_jsonw_close(&t->w, '}');
}

void ttmon_traceev_gap(struct ttmon_traceev *t, const struct ttmon_gap *g)
{
	if (g->to_ns <= t->head.start_ns || g->from_ns >= t->head.end_ns)
		return;
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		if (g->families >> i & 1)
			put_gap(t, g, ttmon_family_name(i), i + 1);
}

/* ---- the end ---- */

static uint64_t sum_missing(const struct ttmon_traceev_missing *m)
{
	return m->lost + m->malformed + m->arena_full + m->events_dropped + m->evicted + m->folded +
	       m->timeline_dropped + m->calls_dropped + m->gaps;
}

static void write_missing(struct ttmon_traceev *t, const struct ttmon_traceev_missing *m, const char *key)
{
	const struct {
		const char *name;
		uint64_t n;
	} list[] = {
		{ "lost", m->lost },
		{ "malformed", m->malformed },
		{ "arena_full", m->arena_full },
		{ "transfers", m->events_dropped },
		{ "allocations", m->evicted },
		{ "folded", m->folded },
		{ "runs_and_dispatches", m->timeline_dropped },
		{ "calls", m->calls_dropped },
		{ "not_seen", m->gaps },
		{ "too_many", t->over },
		{ "unknown_process", t->strays },
	};

	ttmon_jsonw_key_open(&t->w, key, '{');
	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		if (list[i].n)
			ttmon_traceev_num(t, list[i].name, list[i].n);
	if (m->cut)
		ttmon_traceev_num(t, "cut", 1);
	ttmon_jsonw_close(&t->w, '}');
}

static void write_clocks(struct ttmon_traceev *t, const struct ttmon_tt_clock *clocks, size_t n)
{
	ttmon_jsonw_key_open(&t->w, "clocks", '[');
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_tt_clock *c = &clocks[i];

		ttmon_jsonw_open(&t->w, '{');
		ttmon_traceev_num(t, "pid", c->tgid);
		if (c->logical != TTMON_TT_NO_LOGICAL)
			ttmon_traceev_num(t, "device", c->logical);
		ttmon_traceev_num(t, "chip", c->chip);
		ttmon_traceev_str(t, "clock", ttmon_clock_name(c->clock));
		ttmon_traceev_num(t, "hz", c->ghz > 0 && c->ghz < 1e6 ? (uint64_t)(c->ghz * 1e9 + 0.5) : 0);
		ttmon_traceev_num(t, "residual_ns",
				  c->residual_ns > 0 && c->residual_ns < 1e18 ? (uint64_t)c->residual_ns : 0);
		ttmon_jsonw_close(&t->w, '}');
	}
	ttmon_jsonw_close(&t->w, ']');
}

static void write_other(struct ttmon_traceev *t, const struct ttmon_traceev_missing *m, bool complete)
{
	const struct ttmon_traceev_head *h = &t->head;

	ttmon_traceev_str(t, "schema", TTMON_TRACE_SCHEMA);
	ttmon_traceev_num(t, "version", TTMON_TRACE_VERSION);
	ttmon_traceev_str(t, "ttmon", h->version);
	ttmon_traceev_str(t, "source", h->source);
	ttmon_traceev_str(t, "hostname", h->hostname);
	ttmon_traceev_str(t, "release", h->release);
	ttmon_traceev_str(t, "mode", h->mode);
	ttmon_traceev_str(t, "clock", "CLOCK_MONOTONIC");
	ttmon_traceev_time(t, "mono_ns", h->mono_ns);
	ttmon_traceev_time(t, "real_ns", h->real_ns);
	ttmon_traceev_time(t, "boot_ns", h->boot_ns);
	ttmon_traceev_time(t, "start_ns", h->start_ns);
	ttmon_traceev_time(t, "end_ns", h->end_ns);
	ttmon_traceev_num(t, "allocations", t->allocations);
	ttmon_traceev_num(t, "transfers", t->transfers);
	if (!m->no_calls)
		ttmon_traceev_num(t, "calls", t->calls);
	ttmon_traceev_num(t, "dispatches", t->dispatches);
	ttmon_traceev_num(t, "checkpoints", t->checkpoints);
	ttmon_traceev_num(t, "runs", t->runs);
	ttmon_traceev_num(t, "runs_without_time", t->unplaced);
	ttmon_traceev_num(t, "mappings_left_out", t->no_transfer);
	ttmon_jsonw_key_bool(&t->w, "complete", complete);
}

int ttmon_traceev_finish(struct ttmon_traceev *t, const struct ttmon_traceev_missing *missing,
			 const struct ttmon_tt_clock *clocks, size_t nr_clocks)
{
	bool complete;

	count_end(t);
	complete = !sum_missing(missing) && !missing->cut && !t->over && !t->strays;
	if (!complete) {
		/* Written regardless of the limit of events. */
		t->head.max_events = 0;
		(void)!ttmon_traceev_open(t, 'i', "ttmon", "incomplete", TTMON_TRACE_PID_TTMON, 0, t->head.end_ns);
		write_missing(t, missing, "args");
		ttmon_jsonw_close(&t->w, '}');
	}
	ttmon_jsonw_close(&t->w, ']');
	ttmon_jsonw_line(&t->w);
	ttmon_jsonw_key_name(&t->w, "displayTimeUnit", "ns");
	ttmon_jsonw_line(&t->w);
	ttmon_jsonw_key_open(&t->w, "otherData", '{');
	write_other(t, missing, complete);
	write_missing(t, missing, "missing");
	write_clocks(t, clocks, nr_clocks);
	ttmon_jsonw_close(&t->w, '}');
	ttmon_jsonw_close(&t->w, '}');
	ttmon_jsonw_end(&t->w);
	if (!t->err)
		t->err = ttmon_jsonw_finish(&t->w);
	return t->err;
}
