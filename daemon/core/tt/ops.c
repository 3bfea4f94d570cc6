// SPDX-License-Identifier: GPL-2.0-only
/*
 * ops.c: applies the events of a Buffer, once its layout and the library's mode are settled. Part of
 * core/tt (hot thread, pure).
 *
 * With the primary pair an allocation is reported after it succeeded and a free before it takes place.
 * All other functions that free are probed as well: deallocate_impl of a buffer whose device is gone,
 * mark_as_deallocated, the allocator's deallocate_buffer and the destructor end a live buffer each,
 * whichever comes first; a later one in the same thread for the same buffer is the same free.
 *
 * In degraded mode (without the primary pair) an allocation counts when it is entered, or when the
 * allocator's function inside it is (a NO_DISPATCH capture never gets there). It may still throw: it
 * is tentative until its thread does something else or 50 ms of stream time have passed, and it is
 * undone even later if its end shows that it never was allocated. The first allocation that is no
 * capture shows that the allocator's function is called at all: allocations entered before that never
 * got there are undone then.
 */
#include "daemon/core/tt/tt_int.h"
#include "lib/base/names.h"

static const char why_vtable[] = "no vtable matched";
static const char why_numbers[] = "numbers that make no sense";
static const char why_layout[] = "no layout fits";
static const char why_create[] = "sizes differ from what Buffer::create was given";

#define HOOKS_TRUSTED 8

bool ttmon_tt_is_inner(uint16_t fn)
{
	const char *name = ttmon_tt_fn_name(fn);

	return name && strcmp(name, "allocate_buffer") == 0;
}

/* True if the words of this event fit this layout. */
static bool has_fields(const struct ttmon_tt_cal *cal, const struct ttmon_ev_tt_buffer *ev)
{
	switch (cal->layout) {
	case TTMON_TT_LAYOUT_E0:
	case TTMON_TT_LAYOUT_E1:
		return ev->base == TTMON_TT_BASE_0 || ev->base == TTMON_TT_BASE_NONE;
	case TTMON_TT_LAYOUT_E2:
		return ev->base == TTMON_TT_BASE_16 || ev->base == TTMON_TT_BASE_NONE;
	case TTMON_TT_LAYOUT_E4:
		return ev->base == TTMON_TT_BASE_IMPL;
	default:
		return false;
	}
}

uint64_t ttmon_tt_op_device(const struct ttmon_tt_proc *p, const struct ttmon_tt_cal *cal,
			    const struct ttmon_ev_tt_buffer *ev)
{
	uint64_t device = cal->layout == TTMON_TT_LAYOUT_E2 ? ev->w[2] : ev->w[0];

	if (ev->base != TTMON_TT_BASE_NONE)
		return ev->device;
	/* E0's Device has no vtable: only Devices whose construction was seen are known. */
	return cal->layout != TTMON_TT_LAYOUT_E4 && ttmon_tt_dev_find(p, device) != TTMON_TT_NIL ? device : 0;
}

/* A capture without dispatch: tt-metal runs through the allocation, but takes no memory. */
static bool is_hooked(const struct ttmon_tt_cal *cal, const struct ttmon_tt_fields *f)
{
	if (f->address == 0)
		return true;
	return f->have & TTMON_TT_FIELD_HOOKED && !cal->no_hook && cal->hooks >= HOOKS_TRUSTED && f->hooked == 1;
}

static void learn_hook(struct ttmon_tt_cal *cal, const struct ttmon_tt_fields *f)
{
	if (!(f->have & TTMON_TT_FIELD_HOOKED))
		return;
	if (f->hooked > 1)
		cal->no_hook = true;
	else if (cal->hooks < HOOKS_TRUSTED)
		cal->hooks++;
}

/* The status of a Buffer that is certainly allocated shows how the status is numbered. */
static void learn_status(struct ttmon_tt_cal *cal, const struct ttmon_tt_fields *f)
{
	if (!(f->have & TTMON_TT_FIELD_STATUS))
		return;
	if (f->status == 2)
		cal->numbering = TTMON_TT_NUMBERS_FOUR;
	else if (f->status == 1)
		cal->numbering = TTMON_TT_NUMBERS_THREE;
}

/*
 * The arguments of Buffer::create in this thread must be in the Buffer. False: they are not, and not
 * for the first time.
 */
static bool check_create(struct ttmon_tt_cal *cal, struct ttmon_tt_thread *th, uint64_t device,
			 const struct ttmon_tt_fields *f)
{
	if (!th || !th->create.valid || th->create.device != device)
		return true;
	th->create.valid = false;
	if (th->create.size == f->size && th->create.type == f->type)
		cal->match++;
	else
		cal->mismatch++;
	return cal->mismatch < 4 || cal->mismatch <= cal->match;
}

void ttmon_tt_count(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_thread *th, uint32_t idx)
{
	const struct ttmon_tt_buf *b = &t->bufs[idx];

	ttmon_tt_buf_count(t, idx);
	if (p->devs[b->dev].kind != TTMON_TT_DEV_MESH)
		return;
	ttmon_tt_mesh_used(t, p, b->dev, b->ts_ns);
	if (th)
		ttmon_tt_group_open(t, p, th, b);
}

/*
 * True if the allocation was entered in a library whose allocator's function is called, and did not
 * get there: a hook captured it.
 */
static bool is_captured(const struct ttmon_tt_proc *p, const struct ttmon_tt_buf *b)
{
	if (!(b->bits & TTMON_TT_B_ENTERED) || b->bits & TTMON_TT_B_INNER)
		return false;
	for (uint32_t i = 0; i < p->nr_cals; i++)
		if (p->cals[i].slot == p->devs[b->dev].slot)
			return p->cals[i].inner;
	return false;
}

static void undo_captured(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t idx, uint64_t ts_ns, uint16_t fn)
{
	p->pub.hooked++;
	t->generation++;
	ttmon_tt_buf_end(t, idx, ts_ns, fn, TTMON_TT_END_UNDO);
}

void ttmon_tt_entered_over(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_thread *th, uint32_t idx)
{
	if (is_captured(p, &t->bufs[idx]))
		undo_captured(t, p, idx, t->bufs[idx].ts_ns, t->bufs[idx].fn);
	else
		ttmon_tt_count(t, p, th, idx);
}

void ttmon_tt_inner_fires(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal,
			  const struct ttmon_ev_tt_buffer *ev)
{
	uint32_t next;

	cal->inner = true;
	for (uint32_t i = 0; i < p->nr_devs; i++) {
		for (uint32_t idx = p->devs[i].bufs.head; idx != TTMON_TT_NIL; idx = next) {
			next = t->bufs[idx].next;
			/* The buffer of this event itself did get there. */
			if (t->bufs[idx].key != ev->buffer && is_captured(p, &t->bufs[idx]))
				undo_captured(t, p, idx, ev->h.ts_ns, ev->fn);
		}
	}
}

void ttmon_tt_confirm(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_thread *th, uint64_t buffer)
{
	uint32_t idx;

	if (!th->entered || th->entered == buffer)
		return;
	idx = ttmon_tt_buf_find(p, th->entered);
	th->entered = 0;
	if (idx != TTMON_TT_NIL && t->bufs[idx].bits & TTMON_TT_B_TENTATIVE)
		ttmon_tt_entered_over(t, p, th, idx);
}

/*
 * Checks the fields of a Buffer that is being allocated. False: it does not count, or was refused.
 * allocated: the event comes after success.
 */
static bool check(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal, struct ttmon_tt_thread *th,
		  const struct ttmon_ev_tt_buffer *ev, bool allocated, struct ttmon_tt_fields *f,
		  struct ttmon_tt_buf *b)
{
	uint64_t device = ttmon_tt_op_device(p, cal, ev);

	if (!device || !has_fields(cal, ev) || ev->buffer & TTMON_TT_CB_KEY) {
		ttmon_tt_refuse(t, p, cal, !device ? why_vtable : why_layout);
		return false;
	}
	ttmon_tt_layout_read(cal->layout, ev->w, f);
	if (!ttmon_tt_layout_sane(f) || (allocated && f->owns && !ttmon_tt_layout_allocated(f))) {
		ttmon_tt_refuse(t, p, cal, why_numbers);
		return false;
	}
	if (!f->owns)
		return false;
	if (!check_create(cal, th, device, f)) {
		p->pub.refused++;
		ttmon_tt_uncalibrate(t, p, why_create);
		return false;
	}
	cal->good++;
	*b = (struct ttmon_tt_buf){
		.key = ev->buffer, .size = f->size, .addr = f->address, .ts_ns = ev->h.ts_ns, .fn = ev->fn
	};
	if (!ttmon_tt_layout_type(f->type, &b->type) || f->size == 0)
		return false;
	b->dev = ttmon_tt_dev_get(t, p, device, ev->base == TTMON_TT_BASE_NONE ? TTMON_TT_DEV_UNKNOWN : ev->dev_kind,
				  ev->slot);
	if (b->dev == TTMON_TT_NIL)
		return false;
	if (ev->base != TTMON_TT_BASE_NONE)
		ttmon_tt_dev_words(t, p, b->dev, ev->dev);
	return true;
}

/*
 * Where two functions report an allocation (notify_buffer_allocated and then track_allocate), it is
 * counted once.
 */
static bool is_told_again(struct ttmon_tt_thread *th, const struct ttmon_ev_tt_buffer *ev)
{
	bool again = th && th->made == ev->buffer && th->made_by != ev->fn;

	if (th) {
		th->made = again ? 0 : ev->buffer;
		th->made_by = ev->fn;
	}
	return again;
}

static void on_allocated(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal,
			 struct ttmon_tt_thread *th, const struct ttmon_ev_tt_buffer *ev)
{
	struct ttmon_tt_fields f = { 0 };
	struct ttmon_tt_buf b;
	uint64_t good = cal->good;
	bool ok = check(t, p, cal, th, ev, true, &f, &b);
	uint32_t idx = ttmon_tt_buf_find(p, ev->buffer);

	t->slots[ev->slot].good += cal->good != good;
	if (cal->good != good) {
		learn_hook(cal, &f);
		learn_status(cal, &f);
	}
	if (!ok)
		return;
	if (th)
		th->entered = 0;
	if (is_told_again(th, ev))
		return;
	if (is_hooked(cal, &f)) {
		p->pub.hooked++;
		t->generation++;
		if (idx != TTMON_TT_NIL)
			ttmon_tt_buf_end(t, idx, ev->h.ts_ns, ev->fn,
					 t->bufs[idx].bits & TTMON_TT_B_ENTERED ? TTMON_TT_END_UNDO
										: TTMON_TT_END_FREE);
		if (th)
			th->ended = ev->buffer;
		return;
	}
	if (th && th->ended == ev->buffer)
		th->ended = 0;
	if (idx != TTMON_TT_NIL) {
		struct ttmon_tt_buf *old = &t->bufs[idx];

		/* Counted by the fallback already. */
		if (old->bits & TTMON_TT_B_ENTERED && old->size == b.size && old->type == b.type && old->dev == b.dev) {
			old->bits &= (uint8_t)~TTMON_TT_B_ENTERED;
			old->addr = b.addr;
			if (old->bits & TTMON_TT_B_TENTATIVE)
				ttmon_tt_count(t, p, th, idx);
			return;
		}
		ttmon_tt_buf_end(t, idx, ev->h.ts_ns, ev->fn,
				 old->bits & TTMON_TT_B_TENTATIVE ? TTMON_TT_END_UNDO : TTMON_TT_END_FREE);
	}
	idx = ttmon_tt_buf_new(t, p, &b, f.allocator);
	if (idx != TTMON_TT_NIL)
		ttmon_tt_count(t, p, th, idx);
}

static void on_enter(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal, struct ttmon_tt_thread *th,
		     const struct ttmon_ev_tt_buffer *ev)
{
	bool inner = ttmon_tt_is_inner(ev->fn);
	uint32_t idx = ttmon_tt_buf_find(p, ev->buffer);
	struct ttmon_tt_fields f;
	struct ttmon_tt_buf b;

	if (cal->mode != TTMON_TT_MODE_DEGRADED)
		return;
	/* allocate_impl's own call of the allocator: counted once. */
	if (inner && th && th->entered == ev->buffer && idx != TTMON_TT_NIL &&
	    !(t->bufs[idx].bits & TTMON_TT_B_INNER)) {
		t->bufs[idx].bits |= TTMON_TT_B_INNER;
		return;
	}
	if (!inner && cal->inner)
		return;
	if (!check(t, p, cal, th, ev, false, &f, &b))
		return;
	if (idx != TTMON_TT_NIL)
		ttmon_tt_buf_end(t, idx, ev->h.ts_ns, ev->fn,
				 t->bufs[idx].bits & TTMON_TT_B_TENTATIVE ? TTMON_TT_END_UNDO : TTMON_TT_END_FREE);
	b.bits = TTMON_TT_B_ENTERED | (inner ? TTMON_TT_B_INNER : 0);
	b.addr = 0; /* the field still holds the previous value */
	idx = ttmon_tt_buf_new(t, p, &b, f.allocator);
	if (idx == TTMON_TT_NIL)
		return;
	if (!th) {
		ttmon_tt_count(t, p, NULL, idx);
		return;
	}
	th->entered = ev->buffer;
	if (th->ended == ev->buffer)
		th->ended = 0;
}

/*
 * True if this frees something that never was counted: a buffer older than the trace, or one whose
 * allocation was lost.
 */
static bool is_unknown_free(const struct ttmon_tt_cal *cal, enum ttmon_tt_op op, enum ttmon_tt_status status,
			    const struct ttmon_tt_fields *f)
{
	uint8_t type;

	if (!f->owns || f->size == 0 || !ttmon_tt_layout_type(f->type, &type) || is_hooked(cal, f))
		return false;
	if (op == TTMON_TT_OP_FREEING || op == TTMON_TT_OP_TAKE_BACK)
		return true;
	return status == TTMON_TT_STATUS_ALLOCATED;
}

static void end_live(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_tt_cal *cal, uint32_t idx,
		     const struct ttmon_ev_tt_buffer *ev, enum ttmon_tt_status status, const struct ttmon_tt_fields *f)
{
	const struct ttmon_tt_buf *b = &t->bufs[idx];

	if (b->bits & TTMON_TT_B_ENTERED) {
		if (status == TTMON_TT_STATUS_REQUESTED || status == TTMON_TT_STATUS_FAILED) {
			p->pub.failed++;
			t->generation++;
			ttmon_tt_buf_end(t, idx, ev->h.ts_ns, ev->fn, TTMON_TT_END_UNDO);
			return;
		}
		if (f && status != TTMON_TT_STATUS_DEALLOCATED && !(b->bits & TTMON_TT_B_INNER) && is_hooked(cal, f)) {
			p->pub.hooked++;
			t->generation++;
			ttmon_tt_buf_end(t, idx, ev->h.ts_ns, ev->fn, TTMON_TT_END_UNDO);
			return;
		}
	}
	if (b->bits & TTMON_TT_B_TENTATIVE)
		ttmon_tt_count(t, p, NULL, idx);
	ttmon_tt_buf_end(t, idx, ev->h.ts_ns, ev->fn, TTMON_TT_END_FREE);
}

static void on_end(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal, struct ttmon_tt_thread *th,
		   const struct ttmon_ev_tt_buffer *ev, enum ttmon_tt_op op)
{
	uint32_t idx = ttmon_tt_buf_find(p, ev->buffer);
	enum ttmon_tt_status status = TTMON_TT_STATUS_UNKNOWN;
	struct ttmon_tt_fields f;
	bool have = has_fields(cal, ev), again, was = idx != TTMON_TT_NIL;

	if (have) {
		ttmon_tt_layout_read(cal->layout, ev->w, &f);
		have = ttmon_tt_layout_sane(&f);
	}
	if (have) {
		if (op == TTMON_TT_OP_FREEING || op == TTMON_TT_OP_TAKE_BACK)
			learn_status(cal, &f);
		else if (f.have & TTMON_TT_FIELD_STATUS && f.status == 3)
			cal->numbering = TTMON_TT_NUMBERS_FOUR;
		if (f.have & TTMON_TT_FIELD_STATUS)
			status = ttmon_tt_layout_status(cal->numbering, f.status);
	}
	again = th && th->ended == ev->buffer;
	if (op == TTMON_TT_OP_FREEING && (idx != TTMON_TT_NIL || again))
		t->slots[ev->slot].freed++;
	if (idx != TTMON_TT_NIL) {
		end_live(t, p, cal, idx, ev, status, have ? &f : NULL);
	} else if (!again && p->swept.n && ttmon_hmap_del(&p->swept, ev->buffer) != TTMON_HMAP_NONE) {
		was = true; /* it ended with its device or allocator */
	} else if (!again && have && is_unknown_free(cal, op, status, &f)) {
		p->pub.unknown_frees++;
		/* Its allocation was not seen, so it is unknown how many more such buffers there are. */
		if (!(p->pub.flags & (TTMON_TT_F_LIMIT | TTMON_TT_F_LOST)))
			p->pub.flags |= TTMON_TT_F_PARTIAL;
		was = true;
		t->generation++;
	}
	if (!th)
		return;
	if (th->group_open && th->group->key == ev->buffer)
		th->group->cut = true;
	if (th->entered == ev->buffer)
		th->entered = 0;
	if (th->made == ev->buffer)
		th->made = 0;
	/* A destructor frees, and then so do the functions that it calls for that. */
	if (was)
		th->ended = ev->buffer;
}

void ttmon_tt_do_op(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal,
		    const struct ttmon_ev_tt_buffer *ev)
{
	enum ttmon_tt_op op = ttmon_tt_fn(ev->fn)->aux;
	struct ttmon_tt_thread *th = ttmon_tt_get_thread(t, p, ev->h.tid);

	if (th)
		ttmon_tt_confirm(t, p, th, ev->buffer);
	switch (op) {
	case TTMON_TT_OP_ALLOCATED:
	case TTMON_TT_OP_ENTER:
		if (th && th->group_open && th->group->key != ev->buffer)
			ttmon_tt_group_close(t, th);
		if (op == TTMON_TT_OP_ALLOCATED)
			on_allocated(t, p, cal, th, ev);
		else
			on_enter(t, p, cal, th, ev);
		break;
	case TTMON_TT_OP_FREEING:
	case TTMON_TT_OP_LEAVE:
	case TTMON_TT_OP_MARK:
	case TTMON_TT_OP_DTOR:
	case TTMON_TT_OP_TAKE_BACK:
		on_end(t, p, cal, th, ev, op);
		break;
	default:
		break;
	}
}
