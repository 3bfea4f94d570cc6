// SPDX-License-Identifier: GPL-2.0-only
/*
 * procs.c: the processes of the history, by (tgid, start time), with their launches and failed calls.
 * Part of the history (hot thread, pure).
 *
 * An entry is made by the first record of a process and completed when the process is announced: facts
 * come at once, events some slots later. After the end of the process it is kept for 2 s of stream
 * time with everything that call sites need, then as a line in the table. A service reuses the line
 * once 4096 younger ones have ended and no allocation refers to it (at once if it has nothing to
 * show); a --dump-db run keeps all. Until it is reused a line stays readable, so indexes never dangle.
 */
#include "daemon/core/history/history_int.h"
#include "lib/base/search.h"
#include "lib/base/grow.h"

#define FACT_DELAY_NS 2000000000ULL

static void free_strings(struct ttmon_hproc *p)
{
	free(p->pub.exe);
	free(p->pub.cmdline);
	free(p->pub.cgroup);
	p->pub.exe = p->pub.cmdline = p->pub.cgroup = NULL;
}

/* Releases what only a running process needs. */
static void release(struct ttmon_history *h, struct ttmon_hproc *p)
{
	ttmon_condensed_release(h, p);
	ttmon_rec_forget(p);
	for (unsigned int l = 0; l < TTMON_LAYER_MAX; l++)
		ttmon_ranges_fini(&p->layer[l]);
	ttmon_maps_fini(&p->maps);
	ttmon_stacks_fini(&p->stacks);
	ttmon_hmap_fini(&p->ordinals);
	ttmon_hmap_fini(&p->gens);
	ttmon_hmap_fini(&p->tt_pins);
	ttmon_maplist_forget(p);
	free(p->vmas);
	free(p->changes);
	free(p->ghosts);
	free(p->ended);
	free(p->launches);
	p->vmas = NULL;
	p->changes = NULL;
	p->ghosts = NULL;
	p->ended = NULL;
	p->nr_ended = 0;
	p->launches = NULL;
	p->cap_vmas = p->nr_changes = p->nr_ghosts = p->nr_launches = 0;
}

static void drop_errors(struct ttmon_history *h, uint32_t proc)
{
	struct ttmon_hproc *p = h->procs[proc];
	uint32_t n = 0;

	h->users[p->user].errors -= p->nr_errors;
	p->nr_errors = 0;
	for (uint32_t i = 0; i < h->nr_errors; i++)
		if (h->errors[i].proc != proc)
			h->errors[n++] = h->errors[i];
	h->nr_errors = n;
}

static struct ttmon_hproc *reuse(struct ttmon_history *h)
{
	const uint32_t *front = ttmon_fifo_front(&h->reusable);
	struct ttmon_fifo *from = &h->reusable;
	struct ttmon_hproc *p;
	uint32_t idx;

	if (!front && h->nr_dead > TTMON_EXITED_KEPT) {
		from = &h->users[ttmon_users_most_dead(h)].dead;
		front = ttmon_fifo_front(from);
	}
	if (!front || h->procs[*front]->records)
		return NULL;
	idx = *front;
	ttmon_fifo_pop(from);
	h->nr_dead -= from != &h->reusable;
	p = h->procs[idx];
	if (h->cfg.leaving)
		h->cfg.leaving(h->cfg.ctx, &p->pub);
	if (ttmon_hmap_get(&h->by_tgid, p->pub.tgid) == idx)
		ttmon_hmap_del(&h->by_tgid, p->pub.tgid);
	if (h->recent[p->pub.tgid % TTMON_RECENT] == p)
		h->recent[p->pub.tgid % TTMON_RECENT] = NULL;
	drop_errors(h, idx);
	ttmon_advice_drop_proc(h, idx);
	ttmon_checkpoints_drop_proc(h, idx);
	ttmon_waits_drop_proc(h, idx);
	free_strings(p);
	release(h, p);
	*p = (struct ttmon_hproc){ .pub.idx = idx, .gen = p->gen };
	return p;
}

static struct ttmon_hproc *append(struct ttmon_history *h)
{
	struct ttmon_hproc *p;

	if (h->nr_procs >= TTMON_PROCS_MAX) {
		h->totals.incomplete = true;
		return NULL;
	}
	if (TTMON_GROW(h->procs, h->cap_procs, h->nr_procs + 1, 64))
		goto no_memory;
	p = calloc(1, sizeof(*p));
	if (!p)
		goto no_memory;
	p->pub.idx = h->nr_procs;
	h->procs[h->nr_procs++] = p;
	return p;

no_memory:
	ttmon_history_no_memory(h);
	return NULL;
}

static struct ttmon_hproc *proc_new(struct ttmon_history *h, uint32_t tgid, uint64_t ts_ns)
{
	struct ttmon_hproc *p = reuse(h);
	bool reused = p != NULL;

	if (!p)
		p = append(h);
	if (!p)
		return NULL;
	p->pub.tgid = tgid;
	p->pub.uid = UINT32_MAX;
	p->pub.first_ns = p->pub.last_ns = ts_ns;
	p->layer[TTMON_LAYER_REG].overlap = true;
	if (ttmon_hmap_put(&h->by_tgid, tgid, p->pub.idx) == 0) {
		h->recent[tgid % TTMON_RECENT] = p;
		return p;
	}
	ttmon_history_no_memory(h);
	if (reused) {
		p->pub.exit_ns = 1;
		if (ttmon_fifo_push(&h->reusable, &p->pub.idx) < 0)
			ttmon_history_no_memory(h);
	} else {
		h->nr_procs--;
		free(p);
	}
	return NULL;
}

struct ttmon_hproc *ttmon_procs_find(const struct ttmon_history *h, uint32_t tgid)
{
	struct ttmon_hproc *p = h->recent[tgid % TTMON_RECENT];
	uint64_t idx;

	if (p && p->pub.tgid == tgid)
		return p;
	idx = ttmon_hmap_get(&h->by_tgid, tgid);
	return idx == TTMON_HMAP_NONE ? NULL : h->procs[idx];
}

uint32_t ttmon_history_uid(const struct ttmon_history *h, uint32_t tgid, uint64_t at_ns)
{
	const struct ttmon_hproc *p = ttmon_procs_find(h, tgid);

	return p && !ttmon_before(at_ns, p->pub.start_ns) ? p->pub.uid : UINT32_MAX;
}

bool ttmon_history_maps_known(const struct ttmon_history *h, uint32_t tgid)
{
	const struct ttmon_hproc *p = ttmon_procs_find(h, tgid);

	return p && !p->pub.exit_ns && p->pub.maps_known;
}

struct ttmon_hproc *ttmon_procs_get(struct ttmon_history *h, uint32_t tgid, uint64_t ts_ns)
{
	struct ttmon_hproc *p = ttmon_procs_find(h, tgid);

	/* A record after its end: the id belongs to another process, whose announcement was lost. */
	if (!p || (p->pub.exit_ns && ts_ns > p->pub.exit_ns)) {
		p = proc_new(h, tgid, ts_ns);
		if (p)
			p->pub.changes++;
		return p;
	}
	h->recent[tgid % TTMON_RECENT] = p;
	p->pub.changes++;
	p->pub.first_ns = MIN(p->pub.first_ns, ts_ns);
	p->pub.last_ns = MAX(p->pub.last_ns, ts_ns);
	return p;
}

static void work_add(struct ttmon_work *to, const struct ttmon_work *more)
{
	to->runs += more->runs;
	to->busy_ns += more->busy_ns;
	to->error_ns += more->error_ns;
	to->unbounded += more->unbounded;
	to->missed += more->missed;
}

void ttmon_history_work(struct ttmon_history *h, uint32_t tgid, uint64_t at_ns, const struct ttmon_work *more)
{
	struct ttmon_hproc *p = ttmon_procs_find(h, tgid);

	if (p && ttmon_before(at_ns, p->pub.start_ns))
		return;
	p = ttmon_procs_get(h, tgid, at_ns);
	if (!p)
		return;
	work_add(&p->pub.work, more);
	work_add(&h->totals.work, more);
}

struct ttmon_hproc *ttmon_procs_fact(struct ttmon_history *h, uint32_t tgid, uint64_t ts_ns)
{
	struct ttmon_hproc *p = ttmon_procs_find(h, tgid);

	/* A fact read while the process ended is about that process; ids are not reused within this time. */
	if (p && p->pub.exit_ns && ts_ns > p->pub.exit_ns && ts_ns - p->pub.exit_ns < FACT_DELAY_NS) {
		p->pub.changes++;
		return p;
	}
	return ttmon_procs_get(h, tgid, ts_ns);
}

/* Ends all records of a layer, in order of address, so that replays agree. */
static void end_layer(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_layer layer, uint64_t ts_ns,
		      enum ttmon_end end)
{
	struct ttmon_ranges_pos pos;

	while (ttmon_ranges_seek(&p->layer[layer], 0, &pos))
		ttmon_recs_end(h, ttmon_rec_at(h, pos.val), ts_ns, end, 0);
	ttmon_condensed_end_all(h, p, layer, ts_ns, end);
}

static void proc_end(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t ts_ns, uint32_t code)
{
	struct ttmon_exited e = { .ts_ns = ts_ns, .proc = p->pub.idx };

	if (p->pub.exit_ns)
		return;
	for (unsigned int l = 0; l < TTMON_LAYER_MAX; l++)
		end_layer(h, p, l, ts_ns, TTMON_END_EXIT);
	p->pub.exit_ns = MAX(ts_ns, 1ULL);
	p->pub.exit_code = code;
	if (p->want == TTMON_WANT_YES)
		h->nr_wanted--;
	p->want = TTMON_WANT_NO;
	if (ttmon_fifo_push(&h->exited, &e) < 0)
		ttmon_history_no_memory(h);
}

static void proc_exec(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t ts_ns)
{
	for (unsigned int l = 0; l < TTMON_LAYER_MAX; l++) {
		/* A list read after the exec came in before it: its mappings are the new program's. */
		if ((l != TTMON_LAYER_MAP && l != TTMON_LAYER_EXTENT) || p->maps_from_ns < ts_ns)
			end_layer(h, p, l, ts_ns, TTMON_END_EXEC);
	}
	if (p->maps_from_ns < ts_ns) {
		p->pub.maps_known = false;
		p->maps_from_ns = 0;
	}
	p->maps_evicted = false;
	p->brk_first = 0;
	p->nr_ghosts = p->nr_unmapped = 0;
	/* The new program's launches are counted from 0. */
	p->numbers = (struct ttmon_numbers){ .gap = p->numbers.told || p->numbers.gap, .exec_ns = ts_ns };
	ttmon_hmap_fini(&p->tt_pins);
	ttmon_maps_end(&p->maps, ts_ns);
	if (p->nr_execs == TTMON_EXECS)
		memmove(p->execs, p->execs + 1, --p->nr_execs * sizeof(p->execs[0]));
	p->execs[p->nr_execs++] = ts_ns;
	p->pub.execs++;
}

static void proc_fork(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t ppid, uint64_t ts_ns)
{
	struct ttmon_hproc *parent = ttmon_procs_find(h, ppid);

	if (!parent || parent == p || parent->pub.exit_ns)
		return;
	ttmon_users_inherit(h, p, parent);
	/*
	 * CUDA's memory is a shared mapping of /dev/zero or a device (docs/real-gpu.md): a child writes to the
	 * same pages.
	 */
	if (parent->layer[TTMON_LAYER_REG].n)
		ttmon_count_finding(h, parent, TTMON_FINDING_FORK_PINNED);
	if (ttmon_maps_inherit(&p->maps, &parent->maps, ts_ns) < 0)
		ttmon_history_no_memory(h);
	if (parent->pub.maps_known && !p->maps_from_ns)
		ttmon_hostmem_inherit(h, p, parent, ts_ns);
}

void ttmon_history_on_proc(struct ttmon_history *h, const struct ttmon_ev_proc *ev)
{
	struct ttmon_hproc *p = ttmon_procs_find(h, ev->h.tgid);
	uint64_t ts_ns = ev->h.ts_ns;

	if (p && p->pub.start_ns && p->pub.start_ns != ev->start_ns) {
		proc_end(h, p, ts_ns, p->pub.exit_code);
		p = NULL;
	} else if (p && p->pub.start_ns == 0 && p->pub.exit_ns) {
		p = NULL;
	}
	if (!p)
		p = proc_new(h, ev->h.tgid, ts_ns);
	if (!p)
		return;
	p->pub.first_ns = MIN(p->pub.first_ns, ts_ns);
	p->pub.last_ns = MAX(p->pub.last_ns, ts_ns);
	p->pub.start_ns = ev->start_ns;
	p->pub.cgroup_id = ev->cgroup_id;
	p->pub.ppid = ev->ppid;
	memcpy(p->pub.comm, ev->comm, TTMON_COMM_LEN);
	if (ev->reason == TTMON_PROC_FORK)
		proc_fork(h, p, ev->ppid, ts_ns);
	else if (ev->reason == TTMON_PROC_EXEC)
		proc_exec(h, p, ts_ns);
}

void ttmon_history_on_gone(struct ttmon_history *h, const struct ttmon_ev_gone *ev)
{
	struct ttmon_hproc *p = ttmon_procs_find(h, ev->h.tgid);

	if (p)
		proc_end(h, p, ev->h.ts_ns, 0);
}

void ttmon_history_on_exit(struct ttmon_history *h, const struct ttmon_ev_exit *ev)
{
	struct ttmon_hproc *p = ttmon_procs_find(h, ev->h.tgid);

	if (!p || (ev->start_ns && p->pub.start_ns && ev->start_ns != p->pub.start_ns))
		return;
	p->pub.last_ns = MAX(p->pub.last_ns, ev->h.ts_ns);
	proc_end(h, p, ev->h.ts_ns, ev->code);
}

static void set_uid(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_text *ev)
{
	uint64_t uid = 0;

	for (uint32_t i = 0; i < ev->len; i++) {
		if (ev->text[i] < '0' || ev->text[i] > '9' || uid > UINT32_MAX)
			return;
		uid = uid * 10 + (uint64_t)(ev->text[i] - '0');
	}
	if (ev->len && uid < UINT32_MAX)
		ttmon_users_set(h, p, (uint32_t)uid);
}

void ttmon_history_on_proc_name(struct ttmon_history *h, const struct ttmon_ev_text *ev)
{
	struct ttmon_hproc *p = ttmon_procs_fact(h, ev->h.tgid, ev->h.ts_ns);
	char **slot, *text;
	uint32_t len = ev->len;

	if (!p)
		return;
	if (ev->what == TTMON_TEXT_UID) {
		set_uid(h, p, ev);
		return;
	}
	slot = ev->what == TTMON_TEXT_EXE	? &p->pub.exe
	       : ev->what == TTMON_TEXT_CMDLINE ? &p->pub.cmdline
						: &p->pub.cgroup;
	while (len && ev->text[len - 1] == '\0')
		len--;
	text = malloc(len + 1);
	if (!text) {
		ttmon_history_no_memory(h);
		return;
	}
	for (uint32_t i = 0; i < len; i++)
		text[i] = (char)(ev->text[i] ? ev->text[i] : ' ');
	text[len] = '\0';
	free(*slot);
	*slot = text;
}

static struct ttmon_launch *launch_of(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t cpu)
{
	struct ttmon_launch *v;

	for (uint32_t i = 0; i < p->nr_launches; i++)
		if (p->launches[i].cpu == cpu)
			return &p->launches[i];
	v = realloc(p->launches, (p->nr_launches + 1) * sizeof(*v));
	if (!v) {
		ttmon_history_no_memory(h);
		return NULL;
	}
	p->launches = v;
	v[p->nr_launches] = (struct ttmon_launch){ .cpu = cpu };
	return &v[p->nr_launches++];
}

/* Counts of a CPU only grow: a smaller count is an older one. */
static uint64_t grown(uint64_t *known, uint64_t now)
{
	uint64_t diff = now > *known ? now - *known : 0;

	*known += diff;
	return diff;
}

static void add_launches(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t cpu, uint64_t kernels,
			 uint64_t graphs, uint64_t graph_copies)
{
	struct ttmon_launch *l = p ? launch_of(h, p, cpu) : NULL;

	if (!l)
		return;
	kernels = grown(&l->kernels, kernels);
	graphs = grown(&l->graphs, graphs);
	graph_copies = grown(&l->graph_copies, graph_copies);
	p->pub.kernels += kernels;
	p->pub.graphs += graphs;
	p->pub.graph_copies += graph_copies;
	h->totals.kernels += kernels;
	h->totals.graphs += graphs;
	h->totals.graph_copies += graph_copies;
}

void ttmon_history_on_launches(struct ttmon_history *h, const struct ttmon_ev_launches *ev)
{
	add_launches(h, ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns), ev->h.cpu, ev->kernels, ev->graphs,
		     ev->graph_copies);
}

/*
 * True if a library got its probes late, before the process launched anything; later ones are handled
 * by apply_blind().
 */
static bool was_blind(const struct ttmon_history *h, uint32_t tgid)
{
	for (uint32_t i = 0; i < h->nr_blinds; i++)
		if (h->blinds[i].tgid == tgid && !h->blinds[i].held)
			return true;
	return false;
}

void ttmon_history_on_launched(struct ttmon_history *h, const struct ttmon_ev_launched *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	struct ttmon_numbers *k = p ? &p->numbers : NULL;
	uint64_t last;

	if (!k)
		return;
	if (!k->told) {
		k->to = UINT64_MAX;
		k->gap |= was_blind(h, ev->h.tgid);
	}
	last = k->told ? k->n[(k->told - 1) % TTMON_NUMBERS] : 0;
	k->ts_ns[k->told % TTMON_NUMBERS] = ev->h.ts_ns;
	k->n[k->told % TTMON_NUMBERS] = MAX(last, ev->kernels);
	k->told++;
	k->since = (uint8_t)ev->since;
	if (ev->graphs)
		k->to = MIN(k->to, ev->kernels);
}

uint32_t ttmon_procs_nth(const struct ttmon_hproc *p, uint64_t ts_ns)
{
	const struct ttmon_numbers *k = &p->numbers;
	uint64_t kept = MIN(k->told, (uint64_t)TTMON_NUMBERS), n = 0;

	for (uint64_t i = k->told; i > k->told - kept; i--) {
		n = k->n[(i - 1) % TTMON_NUMBERS];
		if (k->ts_ns[(i - 1) % TTMON_NUMBERS] <= ts_ns)
			return (uint32_t)MIN(n, (uint64_t)UINT32_MAX);
	}
	/* The time is before all kept reports. */
	return kept < TTMON_NUMBERS ? 0 : (uint32_t)MIN(n, (uint64_t)UINT32_MAX);
}

uint64_t ttmon_history_numbered(const struct ttmon_history *h, const struct ttmon_proc *pub)
{
	const struct ttmon_hproc *p = h->procs[pub->idx];
	const struct ttmon_numbers *k = &p->numbers;
	bool from_start = k->since == TTMON_LAUNCHED_START;
	uint64_t began = from_start ? MAX(pub->start_ns, k->exec_ns) : pub->start_ns;

	if (!k->told || k->gap || k->since == TTMON_LAUNCHED_GAP || began < h->launches_on_ns)
		return 0;
	/* The record of the first graph launch, where numbering ends, was lost. */
	if (pub->graphs && k->to == UINT64_MAX)
		return 0;
	if (!from_start && (!h->has_clock || began < h->clock.mono_ns))
		return 0;
	return MIN(k->to, MAX(pub->kernels, k->n[(k->told - 1) % TTMON_NUMBERS]));
}

/* Sums read by the daemon: at the end of the process, or of the capture. */
void ttmon_history_on_launch_sums(struct ttmon_history *h, const struct ttmon_ev_launch_sums *ev)
{
	add_launches(h, ttmon_procs_fact(h, ev->h.tgid, ev->h.ts_ns), ev->of_cpu, ev->kernels, ev->graphs,
		     ev->graph_copies);
}

static int compare_error(const struct ttmon_error_count *e, uint32_t proc, uint16_t fn, int32_t err)
{
	if (e->proc != proc)
		return e->proc < proc ? -1 : 1;
	if (e->fn != fn)
		return e->fn < fn ? -1 : 1;
	return e->err == err ? 0 : e->err < err ? -1 : 1;
}

void ttmon_procs_error(struct ttmon_history *h, struct ttmon_hproc *p, uint16_t fn, int32_t err)
{
	uint32_t lo = 0;

	ttmon_count_failed(h, p, fn, err);
	lo = TTMON_SEARCH(lo, h->nr_errors, i, compare_error(&h->errors[i], p->pub.idx, fn, err) < 0);
	if (lo < h->nr_errors && !compare_error(&h->errors[lo], p->pub.idx, fn, err)) {
		h->errors[lo].count++;
		return;
	}
	if (h->nr_errors >= TTMON_ERRORS_MAX) {
		h->totals.incomplete = true;
		return;
	}
	if (!ttmon_users_may_add(h, p, h->users[p->user].errors, TTMON_ERRORS_MAX))
		return;
	if (TTMON_GROW(h->errors, h->cap_errors, h->nr_errors + 1, 16)) {
		ttmon_history_no_memory(h);
		return;
	}
	memmove(h->errors + lo + 1, h->errors + lo, (h->nr_errors - lo) * sizeof(*h->errors));
	h->errors[lo] = (struct ttmon_error_count){ p->pub.idx, fn, err, 1 };
	h->nr_errors++;
	p->nr_errors++;
	h->users[p->user].errors++;
}

/* True if nothing but its name would be shown. */
static bool idle(const struct ttmon_hproc *p)
{
	uint64_t seen = p->pub.allocs | p->pub.frees | p->pub.failed | p->pub.captured | p->pub.kernels |
			p->pub.graphs | p->pub.unknown_frees | p->pub.unmatched | p->pub.checkpoints;

	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
		for (unsigned int m = 0; m < TTMON_MEM_MAX; m++)
			seen |= p->pub.xfer[d][m].copies;
	return !seen && !p->records && !p->pub.waits;
}

/* Marks its line for reuse later. */
static void lay_aside(struct ttmon_history *h, const struct ttmon_hproc *p)
{
	bool is_idle = idle(p);

	if (ttmon_fifo_push(is_idle ? &h->reusable : &h->users[p->user].dead, &p->pub.idx) < 0)
		ttmon_history_no_memory(h);
	else
		h->nr_dead += !is_idle;
}

uint64_t ttmon_procs_tick(struct ttmon_history *h)
{
	const struct ttmon_exited *e;

	while ((e = ttmon_fifo_front(&h->exited))) {
		struct ttmon_hproc *p = h->procs[e->proc];

		if (h->now_ns <= e->ts_ns || h->now_ns - e->ts_ns < TTMON_EXIT_GRACE_NS)
			return ttmon_end_of(e->ts_ns, TTMON_EXIT_GRACE_NS);
		if (p->queued)
			return h->now_ns;
		ttmon_fifo_pop(&h->exited);
		release(h, p);
		if (!h->cfg.keep_all)
			lay_aside(h, p);
	}
	return UINT64_MAX;
}

void ttmon_procs_fini(struct ttmon_history *h)
{
	for (uint32_t i = 0; i < h->nr_procs; i++) {
		free_strings(h->procs[i]);
		release(h, h->procs[i]);
		free(h->procs[i]->pub.waits);
		free(h->procs[i]);
	}
	free(h->procs);
	free(h->errors);
	ttmon_hmap_fini(&h->by_tgid);
	ttmon_fifo_fini(&h->exited);
	ttmon_fifo_fini(&h->reusable);
}
