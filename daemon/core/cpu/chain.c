// SPDX-License-Identifier: GPL-2.0-only
/*
 * chain.c: the records of one CPU, taken slot by slot. Part of core/cpu (hot thread, pure).
 *
 * Records wait in a queue of their CPU and are taken when a slot closes that they reach into. A
 * record's rows go into their slot at once; its cross (the task that ran in [last, to)) is split over
 * the slots as they close. The cost of a close does not depend on how many slots the cross spans:
 *
 *	           |   no - 1    |     no      |   no + 1    |
 *	record   begin..last|...........................to|  cross.given: counted up to the last slot
 *	                           ^ known_ns                 time before known_ns is not taken again
 *
 * When a slot closes and the queue holds nothing for it, CPU_OPEN is taken instead: its rows, and the
 * task on the CPU up to the slot's end. The record that ends this comes later and begins where
 * CPU_OPEN did: its rows are compared and not taken again.
 */
#include "daemon/core/cpu/cpu_int.h"

#define QUEUE_MIN  4096u
#define QUEUE_MAX  (4u << 20)  /* bytes; the usual records of at least ten seconds */
#define QUEUE_IDLE (64u << 10) /* bytes; a larger empty queue is freed */
/*
 * Where CPU_OPEN was the first to mention a CPU: records up to this much older may still come out of
 * its ring.
 */
#define BEFORE_NS NSEC_PER_SEC

static size_t table_size(const struct ttmon_cpu_table *t)
{
	return sizeof(*t) + (size_t)t->nr_rows * t->row_size;
}

/* Repeats what decode.c has checked, so that the code after it needs no assertion. */
static bool table_ok(const struct ttmon_cpu_table *t, size_t size)
{
	if (size < sizeof(*t) || t->nr_rows > TTMON_CPU_ROWS)
		return false;
	if (t->row_size != TTMON_CPU_ROW_SHORT && t->row_size != TTMON_CPU_ROW_FULL)
		return false;
	return table_size(t) <= size && t->last_ns - t->begin_ns <= CPU_SLOT_NS;
}

static const struct ttmon_cpu_row *row_at(const struct ttmon_cpu_table *t, unsigned int i)
{
	return (const void *)((const uint8_t *)(t + 1) + (size_t)i * t->row_size);
}

static int push(struct cpu_chain *ch, const struct ttmon_cpu_table *t)
{
	size_t size = table_size(t);

	if (ch->head == ch->tail)
		ch->head = ch->tail = 0;
	/* Moved only when the used part is half the buffer, so that moving costs each byte once. */
	if (ch->tail + size > ch->cap && ch->head > ch->cap / 2) {
		memmove(ch->queue, ch->queue + ch->head, ch->tail - ch->head);
		ch->tail -= ch->head;
		ch->head = 0;
	}
	if (ch->tail + size > ch->cap) {
		size_t cap = ch->cap ? ch->cap * 2 : QUEUE_MIN;
		uint8_t *q = cap > QUEUE_MAX ? NULL : realloc(ch->queue, cap);

		if (!q)
			return -ENOMEM;
		ch->queue = q;
		ch->cap = cap;
	}
	memcpy(ch->queue + ch->tail, t, size);
	ch->tail += size;
	return 0;
}

static const struct ttmon_cpu_table *front(const struct cpu_chain *ch)
{
	return ch->head == ch->tail ? NULL : (const void *)(ch->queue + ch->head);
}

static void pop(struct cpu_chain *ch, const struct ttmon_cpu_table *t)
{
	ch->head += table_size(t);
	if (ch->head == ch->tail && ch->cap > QUEUE_IDLE) {
		free(ch->queue);
		ch->queue = NULL;
		ch->head = ch->tail = ch->cap = 0;
	}
}

void ttmon_cpu_on_cpu_slot(struct ttmon_cpu *c, const struct ttmon_ev_cpu_slot *ev, size_t size)
{
	struct cpu_chain *ch;

	if (ev->h.cpu >= c->nr_cpus || size < sizeof(*ev) || !table_ok(&ev->t, size - sizeof(ev->h)) ||
	    ttmon_before(ev->t.to_ns, ev->t.last_ns)) {
		c->totals.records_dropped++;
		return;
	}
	ch = &c->chains[ev->h.cpu];
	c->totals.records++;
	c->totals.has_ctr |= ev->t.row_size == TTMON_CPU_ROW_FULL;
	if (push(ch, &ev->t) < 0) {
		/* What CPU_OPEN said is no longer true, and the record that says when it ended is lost. */
		ch->in_hand = false;
		c->totals.records_dropped++;
	}
}

void ttmon_cpu_on_cpu_open(struct ttmon_cpu *c, const struct ttmon_ev_cpu_open *ev, size_t size)
{
	struct cpu_chain *ch;
	bool known = ev->state == TTMON_CPU_OPEN_KNOWN;

	if (ev->of_cpu >= c->nr_cpus || size < sizeof(*ev) ||
	    (known && !table_ok(&ev->t, size - offsetof(struct ttmon_ev_cpu_open, t)))) {
		c->totals.records_dropped++;
		return;
	}
	ch = &c->chains[ev->of_cpu];
	if (ev->state == TTMON_CPU_OPEN_UNKNOWN) {
		ch->in_hand = false;
	} else if (ev->state == TTMON_CPU_OPEN_OFFLINE) {
		if (ch->begun && !ch->offline)
			ch->off_ns = ev->h.ts_ns;
		ch->offline = ch->begun;
	} else if (ev->state == TTMON_CPU_OPEN_BEHIND) {
		c->behind_ns = ev->h.ts_ns;
	} else if (known) {
		c->totals.has_ctr |= ev->t.row_size == TTMON_CPU_ROW_FULL;
		ch->in_hand = true;
		if (ch->open_taken && ev->t.begin_ns == ch->open.t.begin_ns)
			return;
		memcpy(ch->open.bytes, &ev->t, table_size(&ev->t));
		ch->open_taken = false;
	}
}

/* Splits CPU time between the slot that is being closed and the slots that have closed already. */
static void split_time(const struct ttmon_cpu *c, uint64_t from, uint64_t to, struct cpu_piece *piece)
{
	from = later_of(from, c->first_ns);
	if (!ttmon_before(from, to))
		return;
	if (ttmon_before(from, c->at.start_ns))
		piece->late_ns = earlier_of(to, c->at.start_ns) - from;
	piece->ns = to - from - piece->late_ns;
}

/*
 * Rows carry no times: all rows of a table lie in one slot. The part of them that was accounted before
 * is cut off in their order.
 */
static void put_rows(struct ttmon_cpu *c, struct cpu_chain *ch, const struct ttmon_cpu_table *t)
{
	uint64_t from = later_of(t->begin_ns, ch->known_ns), stop = t->last_ns, room;
	bool late = ttmon_before(t->begin_ns, c->at.start_ns);

	ch->known_ns = later_of(ch->known_ns, t->last_ns);
	if (ttmon_before(t->begin_ns, c->first_ns))
		return;
	if (!late)
		stop = earlier_of(stop, c->at.end_ns);
	room = ttmon_before(from, stop) ? stop - from : 0;
	for (unsigned int i = 0; i < t->nr_rows; i++) {
		const struct ttmon_cpu_row *row = row_at(t, i);
		uint64_t ns = MIN(row->ns, room);
		const __u64 *ctr = t->row_size == TTMON_CPU_ROW_FULL ? row->ctr : NULL;
		struct cpu_piece piece = {
			.ns = late ? 0 : ns,
			.late_ns = late ? ns : 0,
			.ctr = ctr,
			.late_ctr = late ? ctr : NULL,
			.switches = row->switches,
		};

		room -= ns;
		c->totals.mismatch_ns += row->ns - ns;
		ttmon_cpu_rows_put(c, &row->who, &piece);
	}
	c->totals.mismatch_ns += room;
}

/*
 * How much of the cross counter i had counted at that time, in proportion to time; at the end, all of
 * it.
 */
static uint64_t counted(const struct cpu_cross *x, unsigned int i, uint64_t at_ns)
{
	uint64_t span = x->to_ns - x->last_ns, done = at_ns - x->last_ns, product;

	if (!ttmon_before(at_ns, x->to_ns))
		return x->ctr[i];
	if (!ttmon_before(x->last_ns, at_ns))
		return 0;
	if (!__builtin_mul_overflow(x->ctr[i], done, &product))
		return product / span;
	return (uint64_t)((unsigned __int128)x->ctr[i] * done / span);
}

static void begin_cross(struct ttmon_cpu *c, struct cpu_chain *ch, const struct ttmon_cpu_table *t)
{
	struct cpu_cross *x = &ch->cross;

	x->who = t->who;
	x->last_ns = t->last_ns;
	x->to_ns = t->to_ns;
	x->active = true;
	x->switched = t->switched;
	x->has_ctr = t->row_size == TTMON_CPU_ROW_FULL;
	x->given_ns = x->last_ns;
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++) {
		x->ctr[i] = t->ctr[i];
		x->given[i] = 0;
	}
	if (!x->has_ctr || !ttmon_before(x->last_ns, c->first_ns))
		return;
	/* Time before the first slot is not accounted to any process. */
	x->given_ns = earlier_of(c->first_ns, x->to_ns);
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		x->given[i] = counted(x, i, x->given_ns);
}

static void give_ctr(const struct ttmon_cpu *c, struct cpu_cross *x, uint64_t upto, __u64 *ctr, __u64 *late)
{
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++) {
		uint64_t now = counted(x, i, upto);

		ctr[i] = now - x->given[i];
		if (late)
			late[i] = counted(x, i, earlier_of(upto, c->at.start_ns)) - x->given[i];
		x->given[i] = now;
	}
}

static void give_cross(struct ttmon_cpu *c, struct cpu_chain *ch)
{
	struct cpu_cross *x = &ch->cross;
	uint64_t upto = earlier_of(x->to_ns, c->at.end_ns);
	bool done = upto == x->to_ns;
	struct cpu_piece piece = { .switches = done && x->switched && !ttmon_before(x->to_ns, c->first_ns) };
	__u64 ctr[TTMON_CTR_MAX], late[TTMON_CTR_MAX];

	split_time(c, later_of(ch->known_ns, x->last_ns), upto, &piece);
	if (x->has_ctr) {
		/* The cross began in a slot that has closed, and that slot did not get all of its share. */
		bool is_late = ttmon_before(x->given_ns, c->at.start_ns);

		give_ctr(c, x, upto, ctr, is_late ? late : NULL);
		x->given_ns = upto;
		piece.ctr = ctr;
		piece.late_ctr = is_late ? late : NULL;
	}
	ttmon_cpu_rows_put(c, &x->who, &piece);
	ch->known_ns = later_of(ch->known_ns, upto);
	x->active = !done;
}

/* The record of which CPU_OPEN was the beginning must say the same as CPU_OPEN did. */
static void compare(struct ttmon_cpu *c, const struct cpu_chain *ch, const struct ttmon_cpu_table *t)
{
	const struct ttmon_cpu_table *o = &ch->told.t;

	if (t->last_ns != o->last_ns || t->nr_rows != o->nr_rows || t->row_size != o->row_size ||
	    memcmp(row_at(t, 0), row_at(o, 0), (size_t)t->nr_rows * t->row_size) != 0)
		c->totals.mismatch_ns += MAX(1u, o->last_ns - o->begin_ns);
	if (t->who.tgid != o->who.tgid || t->who.start_ns != o->who.start_ns || t->who.cls != o->who.cls)
		c->totals.mismatch_ns += MAX(1u, ch->known_ns - o->last_ns);
	if (ttmon_before(t->to_ns, ch->known_ns))
		c->totals.mismatch_ns += ch->known_ns - t->to_ns;
}

/* From here on the CPU's time is accounted. */
static void start_chain(struct ttmon_cpu *c, struct cpu_chain *ch, uint64_t at_ns)
{
	if (ch->begun) {
		uint64_t from = later_of(ch->begin_ns, c->at.start_ns), to = earlier_of(ch->known_ns, c->at.end_ns);

		c->at.expected_ns += ttmon_before(from, to) ? to - from : 0;
	}
	/* Time that was accounted stays accounted, even where the CPU was said to be offline. */
	ch->known_ns = ch->begun ? later_of(ch->known_ns, at_ns) : at_ns;
	ch->begin_ns = ch->known_ns;
	ch->begun = true;
	ch->offline = ch->applied = ch->open_taken = false;
	ch->next_ns = ch->hole_ns = ch->hole_end_ns = at_ns;
}

static bool has_hole(const struct cpu_chain *ch)
{
	return ttmon_before(ch->hole_ns, ch->hole_end_ns);
}

static void open_hole(struct cpu_chain *ch, uint64_t from, uint64_t to, uint64_t known_ns)
{
	ch->hole_ns = from;
	ch->hole_end_ns = to;
	ch->hole_known_ns = known_ns;
	ch->hole_applied = ch->applied;
	ch->applied = false;
}

/*
 * A record of the time that was skipped because a CPU_OPEN began past the chain's end. The record was
 * in the ring all along, behind one that was not yet submitted. What is new in it is accounted now,
 * most of it as late.
 *
 *	records   |--- A ---|--- B ---|--- C ---|               (in the ring)
 *	taken     |A rows...A|                  |D rows...D|    (by CPU_OPEN, with the slots closed)
 *	          hole_ns    hole_known_ns      hole_end_ns
 */
static bool fill_hole(struct ttmon_cpu *c, struct cpu_chain *ch, const struct ttmon_cpu_table *t)
{
	uint64_t known_ns = ch->known_ns;

	if (!has_hole(ch) || ttmon_before(t->begin_ns, ch->hole_ns) || ttmon_before(ch->hole_end_ns, t->to_ns))
		return false;
	ch->known_ns = ch->hole_known_ns;
	if (!ch->hole_applied || t->begin_ns != ch->hole_ns)
		put_rows(c, ch, t);
	begin_cross(c, ch, t);
	give_cross(c, ch);
	ch->hole_known_ns = ch->known_ns;
	ch->known_ns = known_ns;
	ch->hole_applied = false;
	ch->hole_ns = t->to_ns;
	return true;
}

static void take(struct ttmon_cpu *c, struct cpu_chain *ch, const struct ttmon_cpu_table *t)
{
	bool same = ch->applied && t->begin_ns == ch->next_ns;

	if (ch->offline && ttmon_before(ch->off_ns, t->to_ns)) {
		/* All that is known of this time is that the CPU is back online. */
		start_chain(c, ch, t->to_ns);
		return;
	}
	if (!ch->begun) {
		start_chain(c, ch, t->begin_ns);
	} else if (ttmon_before(ch->next_ns, t->begin_ns)) {
		c->totals.gaps++;
	} else if (ttmon_before(t->begin_ns, ch->next_ns)) {
		if (fill_hole(c, ch, t))
			return;
		c->totals.overlaps++;
		if (!ttmon_before(ch->next_ns, t->to_ns)) {
			c->totals.mismatch_ns += t->to_ns - t->begin_ns;
			return;
		}
	}
	if (!same)
		put_rows(c, ch, t);
	else
		compare(c, ch, t);
	ch->applied = ch->open_taken = false;
	/* Records of a ring come in order, so no further record falls into the hole. */
	ch->hole_ns = ch->hole_end_ns;
	begin_cross(c, ch, t);
	ch->next_ns = t->to_ns;
}

/* Uses CPU_OPEN where records are missing: true if it says something about this slot. */
static bool take_open(struct ttmon_cpu *c, struct cpu_chain *ch)
{
	const struct ttmon_cpu_table *t = &ch->open.t;

	if (ch->open_taken)
		return true;
	if (ch->begun && ttmon_before(t->begin_ns, ch->next_ns)) {
		/* The record of which it was the beginning has come. */
		ch->in_hand = false;
		return false;
	}
	if (!ttmon_before(t->begin_ns, c->at.end_ns))
		return false;
	if (ch->offline && !ttmon_before(t->begin_ns, ch->off_ns)) {
		start_chain(c, ch, t->begin_ns);
	} else if (!ch->begun) {
		start_chain(c, ch, t->begin_ns);
		open_hole(ch, t->begin_ns - BEFORE_NS, t->begin_ns, t->begin_ns - BEFORE_NS);
	} else if (t->begin_ns != ch->next_ns) {
		/* Only one hole is remembered. With a second one, the missing time waits for the records. */
		if (has_hole(ch))
			return false;
		c->totals.gaps++;
		open_hole(ch, ch->next_ns, t->begin_ns, earlier_of(ch->known_ns, t->begin_ns));
	}
	ch->next_ns = t->begin_ns;
	if (!ch->applied)
		put_rows(c, ch, t);
	ch->applied = ch->open_taken = true;
	memcpy(ch->told.bytes, t, table_size(t));
	return true;
}

static void extend(struct ttmon_cpu *c, struct cpu_chain *ch)
{
	const struct ttmon_cpu_table *t = &ch->open.t;
	struct cpu_piece piece = { 0 };
	uint64_t from, upto;

	if (!take_open(c, ch))
		return;
	from = later_of(ch->known_ns, t->last_ns);
	upto = ch->offline ? earlier_of(c->at.end_ns, ch->off_ns) : c->at.end_ns;
	if (!ttmon_before(from, upto))
		return;
	split_time(c, from, upto, &piece);
	if (t->row_size == TTMON_CPU_ROW_FULL && t->who.cls != TTMON_CPU_IDLE)
		piece.flags = TTMON_ROW_CTR_UNKNOWN;
	ttmon_cpu_rows_put(c, &t->who, &piece);
	ch->known_ns = upto;
	c->totals.extended++;
}

void ttmon_cpu_chain_close(struct ttmon_cpu *c, struct cpu_chain *ch, bool forced)
{
	const struct ttmon_cpu_table *t = NULL;
	uint64_t from, to;

	for (;;) {
		if (ch->cross.active)
			give_cross(c, ch);
		if (ch->cross.active)
			break;
		t = front(ch);
		if (!t || !ttmon_before(t->begin_ns, c->at.end_ns))
			break;
		take(c, ch, t);
		pop(ch, t);
	}
	if (!forced && ch->in_hand && !ch->cross.active && !t)
		extend(c, ch);
	if (!ch->begun)
		return;
	/* A CPU that went offline owes the time that it accounted, and no more. */
	from = later_of(ch->begin_ns, c->at.start_ns);
	to = ch->offline ? earlier_of(ch->known_ns, c->at.end_ns) : c->at.end_ns;
	c->at.expected_ns += ttmon_before(from, to) ? to - from : 0;
}
