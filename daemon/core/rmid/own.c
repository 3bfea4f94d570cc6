// SPDX-License-Identifier: GPL-2.0-only
/*
 * own.c: which process had which RMID when. Hot thread, pure.
 *
 * An RMID's owners are intervals [since, until) in order of time, by the source's own stamps, which never go back for an RMID (one
 * that does is taken as of the time of the event before). What the source tells is believed, as long as it does not contradict itself:
 *
 *	            free, as told            free, never told of       owned by the same      owned by another
 *	ALLOC       owner from now on        owner from now on         ignored (repeated)     the other ends now: LOST_FREE
 *	EXISTING    owner since the free:    owner since ever          ignored                the other ends now: LOST_FREE
 *	            LOST_ALLOC
 *	FREE        DOUBLE_FREE              it was owned until now    ends now               ignored: SHARED
 *
 * The last is what the predecessor's module does when a child that inherited its parent's RMID exits: the parent runs on under it.
 * A FREE that names no process means whoever has it.
 * Names are those at the allocation; a process that execs has its new name in core/cpu.
 */
#include "daemon/core/rmid/rmid_int.h"

static struct rmid_own *open_own(struct rmid_one *one)
{
	return one->nr && one->own[one->nr - 1].open ? &one->own[one->nr - 1] : NULL;
}

static bool same_process(const struct rmid_own *o, const struct ttmon_ev_rmid *e)
{
	return o->tgid == e->h.tgid && (!o->start_ns || !e->start_ns || o->start_ns == e->start_ns);
}

static struct rmid_own *push_own(struct ttmon_rmid *r, struct rmid_one *one, const struct ttmon_ev_rmid *e,
				 uint64_t since_ns)
{
	struct rmid_own *o;

	if (one->nr == RMID_OWNERS) {
		/* Those of slots that are closed are kept for late readings alone. */
		if (r->has_closed && ttmon_before(r->closed_ns, one->own[0].until_ns))
			ttmon_rmid_note_odd(r, TTMON_RMID_ODD_DROPPED, e->rmid, one->own[0].tgid, 0, 0);
		one->nr--;
		memmove(one->own, one->own + 1, one->nr * sizeof(one->own[0]));
	}
	o = &one->own[one->nr++];
	*o = (struct rmid_own){ .since_ns = since_ns, .start_ns = e->start_ns, .tgid = e->h.tgid, .open = true };
	memcpy(o->comm, e->comm, sizeof(o->comm));
	o->comm[sizeof(o->comm) - 1] = '\0';
	one->intruder = 0;
	r->t.in_use++;
	r->t.peak = MAX(r->t.peak, r->t.in_use);
	return o;
}

static void end_own(struct ttmon_rmid *r, struct rmid_own *o, uint64_t ns)
{
	o->open = false;
	o->until_ns = ns;
	r->t.in_use--;
}

static void on_given(struct ttmon_rmid *r, struct rmid_one *one, const struct ttmon_ev_rmid *e, uint64_t ns)
{
	struct rmid_own *o = open_own(one);
	bool existing = e->op == TTMON_RMID_EXISTING;
	uint64_t since = ns;

	if (o && same_process(o, e)) {
		if (!o->start_ns)
			o->start_ns = e->start_ns;
		return;
	}
	if (o) {
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_LOST_FREE, e->rmid, e->h.tgid, o->tgid, 0);
		end_own(r, o, ns);
	} else if (one->known && existing) {
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_LOST_ALLOC, e->rmid, e->h.tgid, 0, 0);
		since = one->freed_ns;
	} else if (one->known && ns - one->freed_ns < RMID_LIMBO_NS) {
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_REUSED_EARLY, e->rmid, e->h.tgid, 0, ns - one->freed_ns);
	}
	r->t.allocs += !existing;
	o = push_own(r, one, e, since);
	o->begin = existing && !one->known;
	o->fresh = !o->begin;
}

static void on_freed(struct ttmon_rmid *r, struct rmid_one *one, const struct ttmon_ev_rmid *e, uint64_t ns)
{
	struct rmid_own *o = open_own(one);

	if (o && o->tgid && e->h.tgid && !same_process(o, e)) {
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_SHARED, e->rmid, e->h.tgid, o->tgid, 0);
		return;
	}
	if (!o && one->known) {
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_DOUBLE_FREE, e->rmid, e->h.tgid, 0, 0);
		return;
	}
	if (!o && e->h.tgid) {
		o = push_own(r, one, e, ns);
		o->begin = true;
	}
	if (o)
		end_own(r, o, ns);
	one->freed_ns = ns;
	r->t.frees++;
}

static void apply_at(struct ttmon_rmid *r, const struct ttmon_ev_rmid *e, uint64_t ns)
{
	struct rmid_one *one;

	r->any = true;
	if (e->op == TTMON_RMID_NONE) {
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_EXHAUSTED, 0, e->h.tgid, 0, 0);
		return;
	}
	one = e->rmid ? ttmon_rmid_one(r, e->rmid) : NULL;
	if (!one) {
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_DROPPED, e->rmid, e->h.tgid, 0, 0);
		return;
	}
	/* An allocation that is told after its free, as late events are, is over. */
	if (e->op == TTMON_RMID_ALLOC && one->known && ttmon_before(ns, one->last_ns) && !open_own(one)) {
		r->t.allocs++;
		return;
	}
	if (one->known && ttmon_before(ns, one->last_ns))
		ns = one->last_ns;
	if (e->op == TTMON_RMID_FREE)
		on_freed(r, one, e, ns);
	else
		on_given(r, one, e, ns);
	one->last_ns = ns;
	one->known = true;
}

/* The i-th fact that waits, in order of time. */
static struct ttmon_ev_rmid *fact_at(struct ttmon_rmid *r, size_t i)
{
	return &r->facts[(r->facts_first + i) & (r->facts_cap - 1)];
}

static void pop_fact(struct ttmon_rmid *r)
{
	const struct ttmon_ev_rmid *e = fact_at(r, 0);

	apply_at(r, e, e->when_ns);
	r->facts_first++;
	r->facts_nr--;
}

static bool grow_facts(struct ttmon_rmid *r)
{
	size_t cap = r->facts_cap ? 2 * r->facts_cap : 64;
	struct ttmon_ev_rmid *v = cap <= RMID_FACTS ? calloc(cap, sizeof(*v)) : NULL;

	if (!v)
		return false;
	for (size_t i = 0; i < r->facts_nr; i++)
		v[i] = *fact_at(r, i);
	free(r->facts);
	r->facts = v;
	r->facts_first = 0;
	r->facts_cap = cap;
	return true;
}

static void keep_fact(struct ttmon_rmid *r, const struct ttmon_ev_rmid *e)
{
	size_t i;

	if (r->facts_nr == r->facts_cap && !grow_facts(r)) {
		/* No room: the oldest is applied too early rather than not at all; intervals are by its own time anyway. */
		if (!r->facts_nr || ttmon_before(e->when_ns, fact_at(r, 0)->when_ns)) {
			apply_at(r, e, e->when_ns);
			return;
		}
		pop_fact(r);
	}
	for (i = r->facts_nr++; i && ttmon_before(e->when_ns, fact_at(r, i - 1)->when_ns); i--)
		*fact_at(r, i) = *fact_at(r, i - 1);
	*fact_at(r, i) = *e;
}

void ttmon_rmid_own_facts(struct ttmon_rmid *r, uint64_t end_ns)
{
	while (r->facts_nr && ttmon_before(fact_at(r, 0)->when_ns, end_ns))
		pop_fact(r);
}

void ttmon_rmid_on_rmid_set(struct ttmon_rmid *r, const struct ttmon_ev_rmid *ev)
{
	if (ttmon_rmid_not_yet(r, ev->when_ns))
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_DROPPED, ev->rmid, ev->h.tgid, 0, 0);
	else
		keep_fact(r, ev);
}

void ttmon_rmid_on_rmid(struct ttmon_rmid *r, const struct ttmon_ev_rmid *ev)
{
	/* The source's stamp is a little before the record's own; anything else is not a time. */
	bool sane = ev->h.ts_ns - ev->when_ns < NSEC_PER_SEC;

	apply_at(r, ev, sane ? ev->when_ns : ev->h.ts_ns);
}

unsigned int ttmon_rmid_own_at(const struct rmid_one *one, uint64_t ns)
{
	for (unsigned int i = one->nr; i--;) {
		const struct rmid_own *o = &one->own[i];

		if ((o->begin || !ttmon_before(ns, o->since_ns)) && (o->open || ttmon_before(ns, o->until_ns)))
			return i;
	}
	return RMID_NOBODY;
}

bool ttmon_rmid_own_alloc(const struct rmid_one *one, uint64_t a_ns, uint64_t b_ns, uint64_t *ret)
{
	for (unsigned int i = 0; i < one->nr; i++) {
		const struct rmid_own *o = &one->own[i];

		if (!o->fresh || !ttmon_before(a_ns, o->since_ns))
			continue;
		if (!ttmon_before(o->since_ns, b_ns))
			return false;
		*ret = o->since_ns;
		return true;
	}
	return false;
}

void ttmon_rmid_seen(struct ttmon_rmid *r, uint32_t rmid, uint32_t tgid, uint64_t slot_ns)
{
	bool owned = false, former = false;
	struct rmid_one *one;
	uint32_t other = 0;

	/*
	 * Our own allocator's ids are looked up when a row is made, and a span carries them back into slots before the ALLOC. In resctrl children
	 * are in their parent's group until they are told themselves, and without debug files its ids are not the hardware's.
	 */
	if (!rmid || rmid >= TTMON_RMID_LIMIT || !tgid || r->t.backend == TTMON_RMID_EMULATED ||
	    r->t.backend == TTMON_RMID_RESCTRL)
		return;
	if ((!r->ids[rmid] || !r->ids[rmid]->known) && !ttmon_rmid_settled(r, slot_ns))
		return;
	one = ttmon_rmid_one(r, rmid);
	if (!one || one->intruder == tgid)
		return;
	for (unsigned int i = 0; i < one->nr; i++) {
		const struct rmid_own *o = &one->own[i];
		bool then = (o->begin || ttmon_before(o->since_ns, slot_ns + NSEC_PER_MS)) &&
			    (o->open || ttmon_before(slot_ns, o->until_ns));

		if (then && (o->tgid == tgid || !o->tgid))
			return;
		former |= o->tgid == tgid;
		if (then) {
			owned = true;
			other = o->tgid;
		}
	}
	/* A process that exits runs on for a while after its RMID was freed. */
	if (!owned && former)
		return;
	ttmon_rmid_note_odd(r, owned ? TTMON_RMID_ODD_SHARED : TTMON_RMID_ODD_LOST_ALLOC, rmid, tgid, other, 0);
	one->intruder = tgid;
}

void ttmon_rmid_get_owner(const struct ttmon_rmid *r, uint32_t rmid, uint64_t at_ns, struct ttmon_rmid_owner *ret)
{
	const struct rmid_one *one = rmid < TTMON_RMID_LIMIT ? r->ids[rmid] : NULL;
	unsigned int i = one ? ttmon_rmid_own_at(one, at_ns) : RMID_NOBODY;
	const struct rmid_own *o;

	*ret = (struct ttmon_rmid_owner){ 0 };
	if (i == RMID_NOBODY)
		return;
	o = &one->own[i];
	*ret = (struct ttmon_rmid_owner){
		.tgid = o->tgid, .start_ns = o->start_ns, .since_ns = o->since_ns, .until_ns = o->open ? 0 : o->until_ns
	};
	memcpy(ret->comm, o->comm, sizeof(ret->comm));
}
