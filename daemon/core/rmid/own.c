// SPDX-License-Identifier: GPL-2.0-only
/*
 * own.c: the history of owners of each RMID. Hot thread, pure.
 *
 * An RMID's owners are intervals [since, until) in order of time, by the source's own stamps, which
 * never go back for an RMID. The source is believed as long as it does not contradict itself:
 *
 *	          free, reported so     free, never reported  owned by the same   owned by another
 *	ALLOC     owner from now on     owner from now on     ignored (repeated)  the other ends: LOST_FREE
 *	EXISTING  owner since the free: owner since start     ignored             the other ends: LOST_FREE
 *	          LOST_ALLOC
 *	FREE      DOUBLE_FREE           was owned until now   ends now            ignored: SHARED
 *
 * The last case occurs with the predecessor's module: when a child that inherited its parent's RMID
 * exits, the RMID is freed while the parent still runs under it. A FREE that names no process means
 * the process that has the RMID.
 *
 * A record may come after newer ones of its RMID, when the ring that it lay in was not waited for. It
 * is inserted at its place among the events, and all events are applied again. It changes the past
 * before the newer events, never the present owner.
 *
 *	in order     ALLOC P . . . . . . . . . . ALLOC Q     P until ALLOC Q, Q from then on
 *	then late    ALLOC P . . . FREE . . . . .ALLOC Q     P until FREE, then none, Q from ALLOC Q on
 *
 * Names are those at the allocation; a process that execs has its new name in core/cpu.
 */
#include "daemon/core/rmid/rmid_int.h"

/* What an event changed in a book. */
struct effect {
	bool gave, freed; /* a process has it now; a process lost it, or it is known to be free */
	bool repeated;	  /* the process that has it had it before */
	bool odd;
	enum ttmon_rmid_odd what;
	uint32_t other;		/* of an odd event: the other process */
	uint64_t ns;		/* and its time */
	struct rmid_own forgot; /* owner dropped for want of room; until_ns 0: none */
};

static struct rmid_own *open_own(struct rmid_book *b)
{
	return b->nr && b->own[b->nr - 1].open ? &b->own[b->nr - 1] : NULL;
}

static bool is_open(const struct rmid_book *b)
{
	return b->nr && b->own[b->nr - 1].open;
}

static bool same_process(const struct rmid_own *o, const struct rmid_life *e)
{
	return o->tgid == e->tgid && (!o->start_ns || !e->start_ns || o->start_ns == e->start_ns);
}

static void be_odd(struct effect *f, enum ttmon_rmid_odd what, uint32_t other, uint64_t ns)
{
	f->odd = true;
	f->what = what;
	f->other = other;
	f->ns = ns;
}

static struct rmid_own *push_own(struct rmid_book *b, const struct rmid_life *e, uint64_t since_ns, struct effect *f)
{
	struct rmid_own *o;

	if (b->nr == RMID_OWNERS) {
		f->forgot = b->own[0];
		b->nr--;
		memmove(b->own, b->own + 1, b->nr * sizeof(b->own[0]));
	}
	o = &b->own[b->nr++];
	*o = (struct rmid_own){ .since_ns = since_ns, .start_ns = e->start_ns, .tgid = e->tgid, .open = true };
	memcpy(o->comm, e->comm, sizeof(o->comm));
	return o;
}

static void end_own(struct rmid_own *o, uint64_t ns)
{
	o->open = false;
	o->until_ns = ns;
}

static void fold_given(struct rmid_book *b, const struct rmid_life *e, struct effect *f)
{
	bool existing = e->op == TTMON_RMID_EXISTING;
	struct rmid_own *o = open_own(b);
	uint64_t since = e->ns;

	if (o && same_process(o, e)) {
		if (!o->start_ns)
			o->start_ns = e->start_ns;
		f->repeated = true;
		return;
	}
	if (o) {
		be_odd(f, TTMON_RMID_ODD_LOST_FREE, o->tgid, 0);
		end_own(o, e->ns);
	} else if (b->known && existing) {
		be_odd(f, TTMON_RMID_ODD_LOST_ALLOC, 0, 0);
		since = b->freed_ns;
	} else if (b->known && e->ns - b->freed_ns < RMID_LIMBO_NS) {
		be_odd(f, TTMON_RMID_ODD_REUSED_EARLY, 0, e->ns - b->freed_ns);
	}
	f->gave = true;
	o = push_own(b, e, since, f);
	o->begin = existing && !b->known;
	o->fresh = !o->begin;
}

static void fold_freed(struct rmid_book *b, const struct rmid_life *e, struct effect *f)
{
	struct rmid_own *o = open_own(b);

	if (o && o->tgid && e->tgid && !same_process(o, e)) {
		be_odd(f, TTMON_RMID_ODD_SHARED, o->tgid, 0);
		return;
	}
	if (!o && b->known) {
		be_odd(f, TTMON_RMID_ODD_DOUBLE_FREE, 0, 0);
		return;
	}
	if (!o && e->tgid) {
		o = push_own(b, e, e->ns, f);
		o->begin = true;
	}
	if (o)
		end_own(o, e->ns);
	b->freed_ns = e->ns;
	f->freed = true;
}

/* Applies the next event to the book. */
static struct effect fold(struct rmid_book *b, const struct rmid_life *e)
{
	struct effect f = { 0 };

	if (e->op == TTMON_RMID_FREE)
		fold_freed(b, e, &f);
	else
		fold_given(b, e, &f);
	b->known = true;
	return f;
}

/* Where there are too many events, the oldest is merged into the book of old events. */
static void retire(struct rmid_one *one)
{
	if (one->nr_events <= RMID_EVENTS)
		return;
	(void)fold(&one->old, &one->events[0]);
	one->old_ns = one->events[0].ns;
	one->nr_events--;
	memmove(one->events, one->events + 1, one->nr_events * sizeof(one->events[0]));
}

/* Inserts the event at its place in time; returns the index. */
static uint32_t insert(struct rmid_one *one, const struct rmid_life *e)
{
	uint32_t i;

	for (i = one->nr_events++; i && ttmon_before(e->ns, one->events[i - 1].ns); i--)
		one->events[i] = one->events[i - 1];
	one->events[i] = *e;
	return i;
}

static struct effect apply_in_order(struct rmid_one *one, const struct rmid_life *e)
{
	struct rmid_life *last = one->nr_events ? &one->events[one->nr_events - 1] : NULL;
	struct effect f = fold(&one->now, e);

	/* Of consecutive EXISTING events of a dump only the last is kept. */
	if (f.repeated && last && last->op == TTMON_RMID_EXISTING && e->op == TTMON_RMID_EXISTING)
		last->ns = e->ns;
	else
		insert(one, e);
	retire(one);
	return f;
}

/* Inserts the late event and applies all events again from the first. */
static struct effect apply_late(struct ttmon_rmid *r, struct rmid_one *one, const struct rmid_life *e)
{
	struct effect f = { 0 };
	uint32_t at;

	r->t.late++;
	if (one->old.known && ttmon_before(e->ns, one->old_ns)) {
		/* The time before is not kept, and the present does not depend on it. */
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_DROPPED, 0, e->tgid, 0, 0);
		return f;
	}
	at = insert(one, e);
	one->now = one->old;
	for (uint32_t i = 0; i < one->nr_events; i++) {
		struct effect g = fold(&one->now, &one->events[i]);

		if (i == at)
			f = g;
	}
	retire(one);
	return f;
}

static void count(struct ttmon_rmid *r, const struct ttmon_ev_rmid *e, const struct effect *f)
{
	if (f->odd)
		ttmon_rmid_note_odd(r, f->what, e->rmid, e->h.tgid, f->other, f->ns);
	/* Owners of closed slots are kept for late readings only, so dropping one is no error. */
	if (f->forgot.until_ns && r->has_closed && ttmon_before(r->closed_ns, f->forgot.until_ns))
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_DROPPED, e->rmid, f->forgot.tgid, 0, 0);
	r->t.allocs += f->gave && e->op == TTMON_RMID_ALLOC;
	r->t.frees += f->freed;
}

static void apply_at(struct ttmon_rmid *r, const struct ttmon_ev_rmid *e, uint64_t ns)
{
	struct rmid_life life = { .ns = ns, .start_ns = e->start_ns, .tgid = e->h.tgid, .op = e->op };
	struct rmid_one *one;
	struct effect f;
	bool was, late;

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
	memcpy(life.comm, e->comm, sizeof(life.comm) - 1);
	was = is_open(&one->now);
	late = one->nr_events && ttmon_before(ns, one->events[one->nr_events - 1].ns);
	f = late ? apply_late(r, one, &life) : apply_in_order(one, &life);
	count(r, e, &f);
	if (f.gave)
		one->intruder = 0;
	r->t.in_use += (uint32_t)is_open(&one->now) - (uint32_t)was;
	r->t.peak = MAX(r->t.peak, r->t.in_use);
}

/* The i-th waiting fact, in order of time. */
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
		/*
		 * No room: the oldest fact is applied early instead of being lost; intervals use its own time in any
		 * case.
		 */
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
	apply_at(r, ev, ttmon_rmid_when(ev));
}

unsigned int ttmon_rmid_own_at(const struct rmid_book *b, uint64_t ns)
{
	for (unsigned int i = b->nr; i--;) {
		const struct rmid_own *o = &b->own[i];

		if ((o->begin || !ttmon_before(ns, o->since_ns)) && (o->open || ttmon_before(ns, o->until_ns)))
			return i;
	}
	return RMID_NOBODY;
}

bool ttmon_rmid_own_alloc(const struct rmid_book *b, uint64_t a_ns, uint64_t b_ns, uint64_t *ret)
{
	for (unsigned int i = 0; i < b->nr; i++) {
		const struct rmid_own *o = &b->own[i];

		if (!o->fresh || !ttmon_before(a_ns, o->since_ns))
			continue;
		if (!ttmon_before(o->since_ns, b_ns))
			return false;
		*ret = o->since_ns;
		return true;
	}
	return false;
}

bool ttmon_rmid_own_alone(const struct rmid_book *b, uint64_t a_ns, uint64_t b_ns)
{
	for (unsigned int i = 0; i < b->nr; i++) {
		const struct rmid_own *o = &b->own[i];
		bool from = o->begin || !ttmon_before(a_ns, o->since_ns);
		bool to = o->open || !ttmon_before(o->until_ns, b_ns);

		if (from && to)
			return true;
		if ((o->begin || ttmon_before(o->since_ns, b_ns)) && (o->open || ttmon_before(a_ns, o->until_ns)))
			return false;
	}
	return true;
}

void ttmon_rmid_seen(struct ttmon_rmid *r, uint32_t rmid, uint32_t tgid, uint64_t slot_ns)
{
	bool owned = false, former = false;
	struct rmid_one *one;
	uint32_t other = 0;

	/*
	 * With our own allocator, ids are looked up when a row is made, and a span carries them back into
	 * slots before the ALLOC. With resctrl, children are in their parent's group before they are reported
	 * themselves, and without debug files its ids are not the hardware's.
	 */
	if (!rmid || rmid >= TTMON_RMID_LIMIT || !tgid || r->t.backend == TTMON_RMID_EMULATED ||
	    r->t.backend == TTMON_RMID_RESCTRL)
		return;
	if ((!r->ids[rmid] || !r->ids[rmid]->now.known) && !ttmon_rmid_settled(r, slot_ns))
		return;
	one = ttmon_rmid_one(r, rmid);
	if (!one || one->intruder == tgid)
		return;
	for (unsigned int i = 0; i < one->now.nr; i++) {
		const struct rmid_own *o = &one->now.own[i];
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
	/* A process that exits runs for a while after its RMID was freed. */
	if (!owned && former)
		return;
	ttmon_rmid_note_odd(r, owned ? TTMON_RMID_ODD_SHARED : TTMON_RMID_ODD_LOST_ALLOC, rmid, tgid, other, 0);
	one->intruder = tgid;
}

void ttmon_rmid_get_owner(const struct ttmon_rmid *r, uint32_t rmid, uint64_t at_ns, struct ttmon_rmid_owner *ret)
{
	const struct rmid_one *one = rmid < TTMON_RMID_LIMIT ? r->ids[rmid] : NULL;
	unsigned int i = one ? ttmon_rmid_own_at(&one->now, at_ns) : RMID_NOBODY;
	const struct rmid_own *o;

	*ret = (struct ttmon_rmid_owner){ 0 };
	if (i == RMID_NOBODY)
		return;
	o = &one->now.own[i];
	*ret = (struct ttmon_rmid_owner){
		.tgid = o->tgid, .start_ns = o->start_ns, .since_ns = o->since_ns, .until_ns = o->open ? 0 : o->until_ns
	};
	memcpy(ret->comm, o->comm, sizeof(ret->comm));
}
