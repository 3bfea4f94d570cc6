// SPDX-License-Identifier: GPL-2.0-only
/*
 * fallback.c: calibration of a library in a process: the layout of its Buffers, and whether its
 * primary pair of functions is called at all (it may have been inlined). Part of core/tt (hot thread,
 * pure).
 *
 * Until both are known, events are held back, in order, and applied once they are. Usually that takes
 * one event: the first track_allocate settles the mode, and only a device pointer in the first word
 * leaves a choice of two layouts. What is not settled after 50 ms of stream time or 64 events is
 * decided by the evidence so far. Where no layout fits, events are refused; when most events of a
 * process are refused, it is not calibrated and nothing of it is published.
 */
#include "daemon/core/tt/tt_int.h"
#include "lib/base/grow.h"
#include "lib/base/names.h"

#define VOTES	     2 /* votes by which one layout must lead */
#define PASSED	     3 /* after so many entered allocations without the primary, it is taken to be never called */
#define REFUSED_MANY 4

static void set_mode(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal, enum ttmon_tt_mode mode)
{
	struct ttmon_tt_slotinfo *s = &t->slots[cal->slot];
	bool any = false;

	if (cal->mode == mode)
		return;
	if (mode == TTMON_TT_MODE_DEGRADED)
		s->degraded++;
	else if (cal->mode == TTMON_TT_MODE_DEGRADED && s->degraded)
		s->degraded--;
	cal->mode = (uint8_t)mode;
	for (uint32_t i = 0; i < p->nr_cals; i++)
		any |= p->cals[i].mode == TTMON_TT_MODE_DEGRADED;
	p->pub.flags = any ? p->pub.flags | TTMON_TT_F_DEGRADED : p->pub.flags & ~(uint32_t)TTMON_TT_F_DEGRADED;
	t->generation++;
}

struct ttmon_tt_cal *ttmon_tt_get_cal(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint16_t slot)
{
	struct ttmon_tt_cal *cal;

	for (uint32_t i = 0; i < p->nr_cals; i++)
		if (p->cals[i].slot == slot)
			return &p->cals[i];
	if (!p->cals)
		p->cals = calloc(TTMON_TT_CALS, sizeof(*p->cals));
	if (!p->cals || p->nr_cals == TTMON_TT_CALS)
		return NULL;
	cal = &p->cals[p->nr_cals++];
	*cal = (struct ttmon_tt_cal){ .slot = slot };
	if (t->slots[slot].told && !(t->slots[slot].has & TTMON_TT_HAS_PRIMARY))
		set_mode(t, p, cal, TTMON_TT_MODE_DEGRADED);
	return cal;
}

void ttmon_tt_uncalibrate(struct ttmon_tt *t, struct ttmon_tt_proc *p, const char *why)
{
	if (p->pub.flags & TTMON_TT_F_UNCALIBRATED)
		return;
	p->pub.flags |= TTMON_TT_F_UNCALIBRATED;
	p->pub.layout = why;
	ttmon_tt_buf_end_all(t, p, t->now_ns, TTMON_TT_END_UNDO);
	t->generation++;
}

void ttmon_tt_refuse(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal, const char *why)
{
	p->pub.refused++;
	cal->bad++;
	t->generation++;
	if (cal->bad >= REFUSED_MANY && cal->bad > cal->good)
		ttmon_tt_uncalibrate(t, p, why);
}

static void set_layout(struct ttmon_tt_cal *cal, enum ttmon_tt_layout layout)
{
	cal->layout = (uint8_t)layout;
	if (!cal->numbering)
		cal->numbering = layout == TTMON_TT_LAYOUT_E1 ? TTMON_TT_NUMBERS_FOUR : TTMON_TT_NUMBERS_THREE;
}

/* True if the device pointer is at the Buffer's beginning, so that the layout is E0 or E1. */
static bool is_base_0(const struct ttmon_tt_proc *p, const struct ttmon_ev_tt_buffer *ev)
{
	return ev->base == TTMON_TT_BASE_0 ||
	       (ev->base == TTMON_TT_BASE_NONE && ttmon_tt_dev_find(p, ev->w[0]) != TTMON_TT_NIL);
}

static bool is_owning(enum ttmon_tt_op op)
{
	return op == TTMON_TT_OP_ALLOCATED || op == TTMON_TT_OP_ENTER || op == TTMON_TT_OP_FREEING ||
	       op == TTMON_TT_OP_TAKE_BACK;
}

static void vote(struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal, const struct ttmon_tt_thread *th,
		 const struct ttmon_ev_tt_buffer *ev)
{
	unsigned int fits = ttmon_tt_layout_fits(ev->w, true);
	struct ttmon_tt_fields f;

	for (uint32_t i = 0; i < 2; i++) {
		enum ttmon_tt_layout layout = i ? TTMON_TT_LAYOUT_E1 : TTMON_TT_LAYOUT_E0;

		if (!(fits & 1U << layout))
			continue;
		ttmon_tt_layout_read(layout, ev->w, &f);
		cal->votes[i]++;
		/*
		 * Buffer::create reported the same size and type just before: while nothing is held, that call made
		 * this buffer.
		 */
		if (th && th->create.valid && !p->held.n && th->create.size == f.size && th->create.type == f.type)
			cal->votes[i]++;
	}
	if (cal->votes[0] >= cal->votes[1] + VOTES)
		set_layout(cal, TTMON_TT_LAYOUT_E0);
	else if (cal->votes[1] >= cal->votes[0] + VOTES)
		set_layout(cal, TTMON_TT_LAYOUT_E1);
}

/* Whether the allocation that this event ends succeeded. */
enum outcome { OUTCOME_UNKNOWN, OUTCOME_WORKED, OUTCOME_FAILED };

static enum outcome outcome_of(const struct ttmon_tt_cal *cal, const struct ttmon_ev_tt_buffer *ev, enum ttmon_tt_op op)
{
	struct ttmon_tt_fields f;

	if (op == TTMON_TT_OP_TAKE_BACK || op == TTMON_TT_OP_FREEING)
		return OUTCOME_WORKED;
	if (cal->layout == TTMON_TT_LAYOUT_NONE)
		return OUTCOME_UNKNOWN;
	ttmon_tt_layout_read(cal->layout, ev->w, &f);
	if (!ttmon_tt_layout_sane(&f))
		return OUTCOME_UNKNOWN;
	/* E0 has no status, and sets the size to 0 when an allocation throws. */
	if (!(f.have & TTMON_TT_FIELD_STATUS))
		return f.size ? OUTCOME_WORKED : OUTCOME_FAILED;
	switch (ttmon_tt_layout_status(cal->numbering, f.status)) {
	case TTMON_TT_STATUS_ALLOCATED:
		return OUTCOME_WORKED;
	case TTMON_TT_STATUS_REQUESTED:
	case TTMON_TT_STATUS_FAILED:
		return OUTCOME_FAILED;
	default:
		return OUTCOME_UNKNOWN;
	}
}

/*
 * The thread's allocation has ended, and the primary was not called. An allocation that threw says
 * nothing about the primary.
 */
static void is_over(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal, struct ttmon_tt_thread *th,
		    enum outcome outcome)
{
	if (th->undecided_slot == cal->slot && cal->open)
		cal->open--;
	th->undecided = 0;
	if (outcome == OUTCOME_UNKNOWN)
		cal->unclear = true;
	if (outcome == OUTCOME_WORKED && ++cal->passed >= PASSED)
		set_mode(t, p, cal, TTMON_TT_MODE_DEGRADED);
}

/* What an event shows about its library, whether it is held or not. */
static void learn(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal,
		  const struct ttmon_ev_tt_buffer *ev, enum ttmon_tt_op op)
{
	struct ttmon_tt_thread *th;

	/* Set before held events are applied, so that a capture among them never counts. */
	if (op == TTMON_TT_OP_ENTER && !cal->inner && ttmon_tt_is_inner(ev->fn))
		ttmon_tt_inner_fires(t, p, cal, ev);
	if (cal->layout != TTMON_TT_LAYOUT_NONE && cal->mode == TTMON_TT_MODE_PRIMARY)
		return;
	th = ttmon_tt_get_thread(t, p, ev->h.tid);
	if (cal->layout == TTMON_TT_LAYOUT_NONE) {
		if (ev->base == TTMON_TT_BASE_16 ||
		    (ev->base == TTMON_TT_BASE_NONE && ttmon_tt_dev_find(p, ev->w[2]) != TTMON_TT_NIL))
			set_layout(cal, TTMON_TT_LAYOUT_E2);
		else if (ev->base == TTMON_TT_BASE_IMPL)
			set_layout(cal, TTMON_TT_LAYOUT_E4);
		else if (is_owning(op) && is_base_0(p, ev))
			vote(p, cal, th, ev);
	}
	if (op == TTMON_TT_OP_ALLOCATED) {
		if (ev->base != TTMON_TT_BASE_NONE || is_base_0(p, ev) ||
		    ttmon_tt_dev_find(p, ev->w[2]) != TTMON_TT_NIL)
			set_mode(t, p, cal, TTMON_TT_MODE_PRIMARY);
		return;
	}
	if (cal->mode != TTMON_TT_MODE_UNDECIDED || !th)
		return;
	if (th->undecided && th->undecided != ev->buffer)
		is_over(t, p, cal, th,
			OUTCOME_WORKED); /* the thread does something else, so the allocation did not throw */
	else if (th->undecided && op != TTMON_TT_OP_ENTER)
		is_over(t, p, cal, th, outcome_of(cal, ev, op));
	if (op == TTMON_TT_OP_ENTER && !th->undecided) {
		th->undecided = ev->buffer;
		th->undecided_slot = cal->slot;
		cal->open++;
	}
}

/* ---- held events ---- */

static bool must_wait(const struct ttmon_tt_proc *p, const struct ttmon_tt_cal *cal,
		      const struct ttmon_ev_tt_buffer *ev, enum ttmon_tt_op op)
{
	if (op == TTMON_TT_OP_ENTER && cal->mode == TTMON_TT_MODE_UNDECIDED)
		return true;
	return cal->layout == TTMON_TT_LAYOUT_NONE && is_base_0(p, ev);
}

/*
 * True if there is an allocation that the primary may have failed to report. If all of them threw,
 * nothing is known yet.
 */
static bool is_in_doubt(const struct ttmon_tt_cal *cal)
{
	return cal->entering && cal->mode == TTMON_TT_MODE_UNDECIDED && (cal->open || cal->unclear || cal->passed);
}

static bool is_settled(const struct ttmon_tt_proc *p)
{
	for (uint32_t i = 0; i < p->nr_cals; i++) {
		const struct ttmon_tt_cal *cal = &p->cals[i];

		if ((cal->held && cal->layout == TTMON_TT_LAYOUT_NONE) || is_in_doubt(cal))
			return false;
	}
	return true;
}

static void drain(struct ttmon_tt *t, struct ttmon_tt_proc *p)
{
	struct ttmon_fifo held = p->held;

	for (uint32_t i = 0; i < p->nr_cals; i++)
		p->cals[i].held = p->cals[i].entering = 0;
	p->held = (struct ttmon_fifo){ .elem = held.elem };
	t->nr_held -= held.n;
	for (size_t i = 0; i < held.n; i++) {
		const union ttmon_tt_rec *r = ttmon_fifo_at(&held, i);

		if (r->h.kind == TTMON_EV_TT_CALL)
			ttmon_tt_call(t, p, &r->call, sizeof(*r));
		else if (!(p->pub.flags & TTMON_TT_F_UNCALIBRATED))
			ttmon_tt_do_op(t, p, ttmon_tt_get_cal(t, p, r->buffer.slot), &r->buffer);
	}
	ttmon_fifo_fini(&held);
}

void ttmon_tt_settle(struct ttmon_tt *t, struct ttmon_tt_proc *p)
{
	for (uint32_t i = 0; i < p->nr_cals; i++) {
		struct ttmon_tt_cal *cal = &p->cals[i];

		if (!cal->held)
			continue;
		if (cal->layout == TTMON_TT_LAYOUT_NONE && cal->votes[0] != cal->votes[1])
			set_layout(cal, cal->votes[0] > cal->votes[1] ? TTMON_TT_LAYOUT_E0 : TTMON_TT_LAYOUT_E1);
		if (is_in_doubt(cal))
			set_mode(t, p, cal, TTMON_TT_MODE_DEGRADED);
	}
	if (p->held.n)
		drain(t, p);
}

/* False: out of memory. */
static bool hold(struct ttmon_tt *t, struct ttmon_tt_proc *p, const void *ev, size_t size)
{
	union ttmon_tt_rec r = { 0 };

	memcpy(&r, ev, size);
	if (!p->held.n) {
		if (TTMON_GROW(t->holding, t->cap_holding, t->nr_holding + 1, 8))
			return false;
		p->held.elem = sizeof(r);
		p->held_ns = r.h.ts_ns;
	}
	if (ttmon_fifo_push(&p->held, &r) < 0)
		return false;
	if (p->held.n == 1)
		t->holding[t->nr_holding++] =
			(struct ttmon_tt_waiting){ .serial = p->serial, .proc = p->idx, .dev = TTMON_TT_NIL };
	t->nr_held++;
	return true;
}

static void after_hold(struct ttmon_tt *t, struct ttmon_tt_proc *p)
{
	if (is_settled(p) || p->held.n >= TTMON_TT_HELD || t->nr_held >= TTMON_TT_HELD_ALL)
		ttmon_tt_settle(t, p);
}

bool ttmon_tt_hold_call(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev, size_t size)
{
	if (!p->held.n)
		return false;
	if (!hold(t, p, ev, MIN(size, sizeof(union ttmon_tt_rec)))) {
		ttmon_tt_settle(t, p);
		return false;
	}
	after_hold(t, p);
	return true;
}

void ttmon_tt_buffer(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_buffer *ev)
{
	struct ttmon_tt_cal *cal = ttmon_tt_get_cal(t, p, ev->slot);
	enum ttmon_tt_op op = ttmon_tt_fn(ev->fn)->aux;

	if (!cal || p->pub.flags & TTMON_TT_F_UNCALIBRATED) {
		p->pub.refused++;
		t->generation++;
		return;
	}
	learn(t, p, cal, ev, op);
	if (p->held.n || must_wait(p, cal, ev, op)) {
		if (hold(t, p, ev, sizeof(*ev))) {
			cal->held++;
			cal->entering += op == TTMON_TT_OP_ENTER;
			after_hold(t, p);
			return;
		}
		ttmon_tt_settle(t, p);
	}
	ttmon_tt_do_op(t, p, cal, ev);
}

/* ---- time ---- */

void ttmon_tt_confirm_all(struct ttmon_tt *t, struct ttmon_tt_proc *p)
{
	uint32_t next;

	for (uint32_t i = t->tentative.head; i != TTMON_TT_NIL; i = next) {
		next = t->bufs[i].next;
		if (t->bufs[i].proc == p->idx)
			ttmon_tt_entered_over(t, p, NULL, i);
	}
}

void ttmon_tt_fallback_tick(struct ttmon_tt *t)
{
	for (uint32_t i = 0; i < t->nr_holding;) {
		struct ttmon_tt_proc *p = ttmon_tt_proc_at(t, t->holding[i].proc, t->holding[i].serial);

		if (p && p->held.n && ttmon_before(t->now_ns, p->held_ns + TTMON_TT_SETTLE_NS)) {
			i++;
			continue;
		}
		t->holding[i] = t->holding[--t->nr_holding];
		if (p)
			ttmon_tt_settle(t, p);
	}
	while (t->tentative.head != TTMON_TT_NIL) {
		uint32_t idx = t->tentative.head;

		if (ttmon_before(t->now_ns, t->bufs[idx].ts_ns + TTMON_TT_SETTLE_NS))
			break;
		ttmon_tt_entered_over(t, t->procs[t->bufs[idx].proc], NULL, idx);
	}
}
