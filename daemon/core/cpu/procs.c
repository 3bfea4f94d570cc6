// SPDX-License-Identifier: GPL-2.0-only
/*
 * procs.c: the processes of the host, by (tgid, start). Part of core/cpu (hot thread, pure).
 *
 * A table of entries; those of one tgid form a list, the newest first, since a tgid is used again.
 * Only the newest can be alive: the others have ended, whether an EXIT said so or not. A process of
 * which only the tgid is known (its first event was a transfer) has start 0 until its start is known.
 * Entries go 2 s of stream time after the end; their sums go into `gone`. A process whose EXIT was
 * lost goes when its tgid comes again or, when the table is nearly full, after a minute of silence.
 *
 * Bounded: max entries, OF_TGID of one tgid. A process without room is counted in PROC_OTHER.
 */
#include "daemon/core/cpu/cpu_int.h"

#define STAY_NS	   (2 * NSEC_PER_SEC)
#define SILENCE_NS (60 * NSEC_PER_SEC)
#define AHEAD_NS   (60 * NSEC_PER_SEC)
#define OF_TGID	   8u
#define SWEEP	   8u /* entries examined each slot */
#define PROCS_MIN  64u

int ttmon_cpu_procs_init(struct cpu_procs *ps, uint32_t max)
{
	static const uint8_t cls[PROC_FIXED] = {
		[PROC_IDLE] = TTMON_ROW_IDLE,
		[PROC_OTHER] = TTMON_ROW_OTHER,
		[PROC_UNASSIGNED] = TTMON_ROW_UNASSIGNED,
	};

	ps->v = calloc(PROCS_MIN, sizeof(*ps->v));
	if (!ps->v)
		return -ENOMEM;
	ps->cap = PROCS_MIN;
	ps->max = max + PROC_FIXED;
	ps->nr = ps->hand = PROC_FIXED;
	ps->free = ps->ended_first = ps->ended_last = NO_PROC;
	ps->gone.cls = TTMON_ROW_OTHER;
	for (uint32_t i = 0; i < PROC_FIXED; i++) {
		ps->v[i].pub.cls = cls[i];
		ps->v[i].pub.idx = i;
	}
	for (uint32_t i = 0; i < TTMON_RMID_LIMIT; i++)
		ps->rmid_owner[i] = NO_PROC;
	return 0;
}

void ttmon_cpu_procs_fini(struct cpu_procs *ps)
{
	free(ps->v);
	ttmon_hmap_fini(&ps->by_tgid);
}

static uint32_t newest(const struct cpu_procs *ps, uint32_t tgid)
{
	uint64_t i = ttmon_hmap_get(&ps->by_tgid, tgid);

	return i == TTMON_HMAP_NONE ? NO_PROC : (uint32_t)i;
}

void ttmon_cpu_procs_sum(struct ttmon_cpu_proc *to, const struct ttmon_cpu_proc *from)
{
	to->flags |= from->flags & ~TTMON_ROW_LLC_VALID;
	to->cpu_ns += from->cpu_ns;
	to->switches += from->switches;
	to->copies += from->copies;
	to->copy_bytes = ttmon_add_sat(to->copy_bytes, from->copy_bytes);
	to->mbm_total = ttmon_add_sat(to->mbm_total, from->mbm_total);
	to->mbm_local = ttmon_add_sat(to->mbm_local, from->mbm_local);
	to->rdt_ns = ttmon_add_sat(to->rdt_ns, from->rdt_ns);
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		to->ctr[i] += from->ctr[i];
}

static void end(struct ttmon_cpu *c, uint32_t idx, uint64_t end_ns)
{
	struct cpu_procs *ps = &c->procs;
	struct cpu_proc *p = &ps->v[idx];

	if (p->ended)
		return;
	p->ended = true;
	p->pub.end_ns = end_ns ? end_ns : 1;
	p->pub.pinned_bytes = 0;
	p->leave_ns = c->now_ns + STAY_NS;
	p->prev = ps->ended_last;
	p->next = NO_PROC;
	if (p->prev == NO_PROC)
		ps->ended_first = idx;
	else
		ps->v[p->prev].next = idx;
	ps->ended_last = idx;
}

static void unlink_ended(struct cpu_procs *ps, const struct cpu_proc *p)
{
	if (p->prev == NO_PROC)
		ps->ended_first = p->next;
	else
		ps->v[p->prev].next = p->next;
	if (p->next == NO_PROC)
		ps->ended_last = p->prev;
	else
		ps->v[p->next].prev = p->prev;
}

/* Removes the entry. The caller makes sure that it has no row in the slot that is being filled. */
static void retire(struct ttmon_cpu *c, uint32_t idx)
{
	struct cpu_procs *ps = &c->procs;
	struct cpu_proc *p = &ps->v[idx];
	uint32_t head = newest(ps, p->pub.tgid), at;

	if (c->leaving)
		c->leaving(c->ctx, &p->pub);
	if (head == idx && p->older == NO_PROC) {
		ttmon_hmap_del(&ps->by_tgid, p->pub.tgid);
	} else if (head == idx) {
		/* Changed in place: a put could have to grow the table, and that can fail. */
		ps->by_tgid.v[ttmon_hmap_slot(&ps->by_tgid, p->pub.tgid)].val = p->older;
	} else {
		for (at = head; ps->v[at].older != idx; at = ps->v[at].older)
			;
		ps->v[at].older = p->older;
	}
	if (p->ended)
		unlink_ended(ps, p);
	ttmon_cpu_procs_sum(&ps->gone, &p->pub);
	memset(p, 0, sizeof(*p));
	p->next = ps->free;
	ps->free = idx;
	ps->live--;
}

static bool has_row(const struct ttmon_cpu *c, uint32_t idx)
{
	return c->procs.v[idx].row_gen == c->rows.gen;
}

static uint32_t take_entry(struct ttmon_cpu *c)
{
	struct cpu_procs *ps = &c->procs;
	uint32_t idx = ps->free;

	if (ps->live + PROC_FIXED >= ps->max) {
		if (ps->ended_first == NO_PROC || has_row(c, ps->ended_first))
			return NO_PROC;
		retire(c, ps->ended_first);
		idx = ps->free;
	}
	if (idx != NO_PROC) {
		ps->free = ps->v[idx].next;
		return idx;
	}
	if (ps->nr == ps->cap) {
		uint32_t cap = MIN(ps->cap * 2, ps->max);
		struct cpu_proc *v = realloc(ps->v, cap * sizeof(*v));

		if (!v)
			return NO_PROC;
		ps->v = v;
		ps->cap = cap;
	}
	return ps->nr++;
}

static void give_entry(struct cpu_procs *ps, uint32_t idx)
{
	memset(&ps->v[idx], 0, sizeof(ps->v[idx]));
	ps->v[idx].next = ps->free;
	ps->free = idx;
}

/* Makes room for one more entry of this tgid: the oldest is removed if there are too many. */
static bool make_room(struct ttmon_cpu *c, uint32_t tgid)
{
	struct cpu_procs *ps = &c->procs;
	uint32_t n = 0, last = NO_PROC;

	for (uint32_t i = newest(ps, tgid); i != NO_PROC; i = ps->v[i].older) {
		last = i;
		n++;
	}
	if (n < OF_TGID)
		return true;
	if (has_row(c, last))
		return false;
	retire(c, last);
	return true;
}

/*
 * Inserts by start, the newest first. The older entry after it must have ended; so must this one if a
 * newer one is before it.
 */
static int link_entry(struct ttmon_cpu *c, uint32_t idx)
{
	struct cpu_procs *ps = &c->procs;
	uint64_t start_ns = ps->v[idx].pub.start_ns;
	uint32_t tgid = ps->v[idx].pub.tgid;
	uint32_t before = NO_PROC, at = newest(ps, tgid);

	for (; at != NO_PROC && ttmon_before(start_ns, ps->v[at].pub.start_ns); at = ps->v[at].older)
		before = at;
	if (before == NO_PROC) {
		if (ttmon_hmap_put(&ps->by_tgid, tgid, idx) < 0)
			return -ENOMEM;
	} else {
		ps->v[before].older = idx;
		end(c, idx, ps->v[before].pub.start_ns);
	}
	ps->v[idx].older = at;
	if (at != NO_PROC)
		end(c, at, start_ns);
	return 0;
}

static uint32_t make(struct ttmon_cpu *c, uint32_t tgid, uint64_t start_ns, uint8_t cls)
{
	struct cpu_procs *ps = &c->procs;
	uint32_t idx;

	if (!make_room(c, tgid) || (idx = take_entry(c)) == NO_PROC) {
		c->totals.procs_dropped++;
		return PROC_OTHER;
	}
	ps->v[idx] = (struct cpu_proc){
		.pub = { .tgid = tgid, .start_ns = start_ns, .cls = cls, .idx = idx },
		.heard_ns = c->now_ns,
		.used = true,
	};
	if (link_entry(c, idx) < 0) {
		give_entry(ps, idx);
		c->totals.procs_dropped++;
		return PROC_OTHER;
	}
	ps->live++;
	return idx;
}

uint32_t ttmon_cpu_procs_get(struct ttmon_cpu *c, uint32_t tgid, uint64_t start_ns, uint8_t cls)
{
	struct cpu_procs *ps = &c->procs;
	uint32_t *recent = &ps->recent[tgid % CPU_RECENT], head;
	const struct cpu_proc *p = *recent < ps->nr ? &ps->v[*recent] : NULL;

	if (p && p->used && start_ns && p->pub.tgid == tgid && p->pub.start_ns == start_ns)
		return *recent;
	head = newest(ps, tgid);
	for (uint32_t i = head; i != NO_PROC; i = ps->v[i].older)
		if (ps->v[i].pub.start_ns == start_ns)
			return *recent = i;
	if (head == NO_PROC)
		return make(c, tgid, start_ns, cls);
	if (start_ns == 0)
		return head;
	if (ps->v[head].pub.start_ns == 0) {
		ps->v[head].pub.start_ns = start_ns;
		ps->v[head].pub.cls = cls;
		return head;
	}
	return make(c, tgid, start_ns, cls);
}

/* A freed RMID counts for the process in the slot of the free, not after it. */
uint16_t ttmon_cpu_procs_rmid(const struct ttmon_cpu *c, const struct cpu_proc *p)
{
	return p->rmid_freed && p->rmid_gen != c->rows.gen ? 0 : p->pub.rmid;
}

/* The free counts in the slot that is being filled, unless the record is of an earlier one. */
static void free_rmid(struct ttmon_cpu *c, uint32_t idx, uint64_t ns)
{
	struct cpu_proc *p = &c->procs.v[idx];

	if (!p->rmid_freed) {
		p->rmid_freed = true;
		p->rmid_gen = c->started && ttmon_before(ns, c->now_ns) ? 0 : c->rows.gen;
	}
}

void ttmon_cpu_procs_ran_under(struct ttmon_cpu *c, uint32_t idx, uint16_t rmid)
{
	struct cpu_proc *p = &c->procs.v[idx];

	if (p->rmid_freed && p->rmid_gen == c->rows.gen)
		return;
	p->rmid_freed = false;
	p->pub.rmid = rmid;
	if (rmid < TTMON_RMID_LIMIT)
		c->procs.rmid_owner[rmid] = idx;
}

static void set_comm(struct cpu_proc *p, const char *comm)
{
	memcpy(p->pub.comm, comm, TTMON_COMM_LEN);
	p->pub.comm[TTMON_COMM_LEN - 1] = '\0';
}

/* Before the first slot has closed, stream time is the time of the events. */
static void now(struct ttmon_cpu *c, uint64_t ts_ns)
{
	if (!c->started)
		c->now_ns = ts_ns;
}

static void apply_task(struct ttmon_cpu *c, const struct ttmon_ev_task *ev)
{
	uint8_t cls = ev->cls == TTMON_CPU_KERNEL ? TTMON_ROW_KERNEL : TTMON_ROW_USER;
	struct cpu_proc *p;
	uint32_t idx;

	if (ev->h.tgid == 0 || ev->cls >= TTMON_CPU_IDLE)
		return;
	idx = ttmon_cpu_procs_get(c, ev->h.tgid, ev->start_ns, cls);
	if (idx < PROC_FIXED)
		return;
	p = &c->procs.v[idx];
	p->pub.cls = cls;
	p->heard_ns = c->now_ns;
	if (ev->comm[0])
		set_comm(p, ev->comm);
	if (ev->ppid)
		p->pub.ppid = ev->ppid;
	if (ev->cgroup_id)
		p->pub.cgroup_id = ev->cgroup_id;
	if (ev->reason == TTMON_TASK_EXIT)
		end(c, idx, ev->h.ts_ns);
}

static void apply_free(struct ttmon_cpu *c, const struct ttmon_ev_rmid *ev, uint64_t ns)
{
	struct cpu_procs *ps = &c->procs;
	uint32_t idx = ps->rmid_owner[ev->rmid];

	ps->rmid_owner[ev->rmid] = NO_PROC;
	if (idx == NO_PROC || !ps->v[idx].used || ps->v[idx].pub.rmid != ev->rmid)
		return;
	/*
	 * A bug of the public module: when a forked child exits, the RMID of its parent is freed. It is
	 * ignored.
	 */
	if (ev->h.tgid && ev->h.tgid != ps->v[idx].pub.tgid) {
		ps->rmid_owner[ev->rmid] = idx;
		return;
	}
	free_rmid(c, idx, ns);
}

/* A newer record of it is known, so this record no longer holds. */
static bool is_over(uint64_t known_ns, uint64_t ns)
{
	return known_ns && ttmon_before(ns, known_ns);
}

static void apply_given(struct ttmon_cpu *c, const struct ttmon_ev_rmid *ev, uint64_t ns)
{
	struct cpu_procs *ps = &c->procs;
	struct cpu_proc *p;
	uint32_t idx, old;

	if (ev->h.tgid == 0)
		return;
	idx = ttmon_cpu_procs_get(c, ev->h.tgid, ev->start_ns, TTMON_ROW_USER);
	if (idx < PROC_FIXED || is_over(ps->v[idx].rmid_ns, ns))
		return;
	old = ps->rmid_owner[ev->rmid];
	if (ev->rmid && old != NO_PROC && old != idx && ps->v[old].used && ps->v[old].pub.rmid == ev->rmid)
		free_rmid(c, old, ns);
	p = &ps->v[idx];
	p->pub.rmid = ev->op == TTMON_RMID_NONE ? 0 : (uint16_t)ev->rmid;
	p->rmid_freed = false;
	p->rmid_ns = ns;
	if (p->pub.rmid)
		ps->rmid_owner[ev->rmid] = idx;
	if (!p->pub.comm[0])
		set_comm(p, ev->comm);
}

static void apply_rmid(struct ttmon_cpu *c, const struct ttmon_ev_rmid *ev)
{
	uint64_t ns = ttmon_rmid_when(ev), *newest;

	/* As in core/rmid: a time this far ahead is invalid, and would make all that follow look old. */
	if (ev->rmid >= TTMON_RMID_LIMIT || (c->started && ttmon_before(c->now_ns + AHEAD_NS, ns)))
		return;
	newest = &c->procs.rmid_ns[ev->rmid];
	if (ev->rmid && is_over(*newest, ns))
		return;
	*newest = ns;
	if (ev->op == TTMON_RMID_FREE)
		apply_free(c, ev, ns);
	else
		apply_given(c, ev, ns);
}

void ttmon_cpu_on_task(struct ttmon_cpu *c, const struct ttmon_ev_task *ev, size_t size _unused_)
{
	now(c, ev->h.ts_ns);
	apply_task(c, ev);
}

void ttmon_cpu_on_rmid(struct ttmon_cpu *c, const struct ttmon_ev_rmid *ev, size_t size _unused_)
{
	now(c, ev->h.ts_ns);
	apply_rmid(c, ev);
}

void ttmon_cpu_on_rmid_set(struct ttmon_cpu *c, const struct ttmon_ev_rmid *ev, size_t size _unused_)
{
	now(c, ev->h.ts_ns);
	apply_rmid(c, ev);
}

void ttmon_cpu_procs_tick(struct ttmon_cpu *c)
{
	struct cpu_procs *ps = &c->procs;

	while (ps->ended_first != NO_PROC && !ttmon_before(c->now_ns, ps->v[ps->ended_first].leave_ns))
		retire(c, ps->ended_first);
	if ((uint64_t)ps->live * 4 < (uint64_t)(ps->max - PROC_FIXED) * 3)
		return;
	for (uint32_t n = 0; n < SWEEP; n++) {
		const struct cpu_proc *p;

		ps->hand = ps->hand + 1 < ps->nr ? ps->hand + 1 : PROC_FIXED;
		p = &ps->v[ps->hand];
		if (p->used && !p->ended && !p->pub.pinned_bytes && c->now_ns - p->heard_ns > SILENCE_NS)
			retire(c, ps->hand);
	}
}
