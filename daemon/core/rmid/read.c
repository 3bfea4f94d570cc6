// SPDX-License-Identifier: GPL-2.0-only
/*
 * read.c: RDT readings: the difference of two readings, and the share of it that a closing slot gets.
 * Hot thread, pure.
 *
 * Of a difference of D bytes over [a, b), floor(D * (x - a) / (b - a)) lie before a time x in it.
 * Slots, owners and allocations cut [a, b) into pieces; each gets the value at its end minus the value
 * at its begin. So the pieces add up to D exactly, whatever the cuts, and no share depends on when
 * slots were closed.
 *
 *	readings     a-----------------------------b
 *	owners       P P P P P|- - - - -|Q Q Q Q Q Q           P until its RMID was freed, then given to Q
 *	goes to      P        |no owner |dropped               totals.assigned, .unassigned, .dropped
 *
 * The part after an allocation inside an interval is dropped: the counter may have been reset there,
 * and the reading at b is the new baseline. A difference larger than any memory can transfer (the
 * counter was reset) is dropped before it is counted and is in none of the sums. A reading at the
 * exact time of an allocation or a free counts as after it; one at the exact end of a slot belongs to
 * the next slot.
 *
 * A skipped slot takes nothing, since the owners of the readings are not certain yet. The readings
 * wait for the next slot that closes with all records of before its end present, and go to the right
 * owners then.
 */
#include "daemon/core/rmid/rmid_int.h"

typedef unsigned __int128 u128;
typedef void (*piece_fn)(void *ctx, const struct ttmon_rdt_piece *piece);

/* The share of an RMID's readings that a closing slot gets, by owner. */
struct part {
	uint64_t ns, bytes[2], occ;
	bool has_occ, unknown;
};

static struct rmid_key *new_key(struct ttmon_rmid *r, struct rmid_one *one, struct rmid_key **at, uint16_t domain)
{
	struct rmid_key *k;

	if (one->nr_keys >= RMID_DOMAINS || r->nr_keys >= RMID_KEYS)
		return NULL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->domain = domain;
	k->next = *at;
	*at = k;
	one->nr_keys++;
	r->nr_keys++;
	return k;
}

static struct rmid_key *key_of(struct ttmon_rmid *r, uint32_t rmid, uint16_t domain, bool *first)
{
	struct rmid_one *one = ttmon_rmid_one(r, rmid);
	struct rmid_key **at;

	*first = false;
	if (!one)
		return NULL;
	for (at = &one->keys; *at && (*at)->domain < domain; at = &(*at)->next)
		;
	if (*at && (*at)->domain == domain)
		return *at;
	*first = true;
	return new_key(r, one, at, domain);
}

static uint64_t to_bytes(struct ttmon_rmid *r, u128 counts)
{
	u128 bytes = counts * r->scale;

	if (bytes <= UINT64_MAX)
		return bytes;
	r->t.saturated++;
	return UINT64_MAX;
}

static void push_ival(struct ttmon_rmid *r, struct rmid_counter *c, const struct rmid_ival *iv, unsigned int v)
{
	unsigned int at = (c->head + c->n - 1U) % RMID_IVALS;
	struct rmid_ival *last = &c->q[at];

	r->t.bytes[v] += iv->bytes;
	if (c->n < RMID_IVALS) {
		at = (c->head + c->n++) % RMID_IVALS;
		c->q[at] = *iv;
		c->merged &= (uint16_t) ~(1U << at);
		return;
	}
	/*
	 * Slots are not being closed in time. The bytes are kept, but not where in the two intervals they
	 * were.
	 */
	if (last->b_ns == iv->a_ns && last->bytes + iv->bytes >= iv->bytes) {
		last->b_ns = iv->b_ns;
		last->bytes += iv->bytes;
		c->merged |= (uint16_t)(1U << at);
		r->t.merged++;
	} else {
		r->t.dropped[v] += iv->bytes;
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_DROPPED, 0, 0, 0, 0);
	}
}

/* Takes a valid reading of a bandwidth counter. Returns false where the counter was reset. */
static bool count_up(struct ttmon_rmid *r, struct rmid_counter *c, uint64_t ns, uint64_t value, unsigned int v)
{
	unsigned int shift = 64 - r->width;
	uint64_t len = ns - c->base_ns, counts = (value - c->base) << shift >> shift;
	bool has_base = c->gen == r->gen, ok;

	ok = !has_base || (u128)counts * r->scale <= (u128)len * RMID_BYTES_PER_NS + RMID_BYTES_SLACK;
	if (has_base && ok) {
		struct rmid_ival iv = { .a_ns = c->base_ns, .b_ns = ns, .bytes = to_bytes(r, counts) };

		push_ival(r, c, &iv, v);
	}
	r->t.resets += !ok;
	c->base = value;
	c->base_ns = ns;
	c->gen = r->gen;
	return ok;
}

static void push_sample(struct rmid_key *k, const struct rmid_sample *s)
{
	struct rmid_sample *last = &k->q[(k->head + k->n - 1U) % RMID_IVALS];

	if (k->n < RMID_IVALS) {
		k->q[(k->head + k->n++) % RMID_IVALS] = *s;
		return;
	}
	last->ns = s->ns;
	last->good |= s->good;
	last->bad |= s->bad;
	if (s->has_occ) {
		last->occ = s->occ;
		last->has_occ = true;
	}
}

void ttmon_rmid_read(struct ttmon_rmid *r, const struct ttmon_ev_rdt *e)
{
	struct rmid_sample s = { .ns = e->when_ns };
	struct rmid_key *k;
	bool first;

	k = e->rmid < TTMON_RMID_LIMIT && !ttmon_rmid_not_yet(r, e->when_ns) ? key_of(r, e->rmid, e->domain, &first)
									     : NULL;
	if (!k) {
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_DROPPED, e->rmid, 0, 0, 0);
		return;
	}
	if (!first && !ttmon_before(k->last_ns, e->when_ns)) {
		r->t.stale++;
		return;
	}
	k->last_ns = e->when_ns;
	r->t.readings++;
	for (unsigned int i = 0; i < TTMON_RDT_VALUES; i++) {
		bool ok = e->state[i] == TTMON_RDT_OK;

		s.good |= ok;
		s.bad |= !ok && e->state[i] != TTMON_RDT_UNSUPPORTED;
		if (i == TTMON_RDT_OCCUPANCY) {
			s.has_occ = ok;
			s.occ = ok ? to_bytes(r, e->value[i]) : 0;
		} else if (e->state[i] == TTMON_RDT_UNASSIGNED) {
			k->ctr[i - TTMON_RDT_TOTAL].gen = 0;
		}
	}
	if (s.bad)
		ttmon_rmid_note_odd(r, TTMON_RMID_ODD_BAD_READING, e->rmid, 0, 0, 0);
	for (unsigned int v = 0; v < 2; v++) {
		unsigned int i = TTMON_RDT_TOTAL + v;

		if (e->state[i] == TTMON_RDT_OK && !count_up(r, &k->ctr[v], e->when_ns, e->value[i], v))
			s.bad = true;
	}
	if (!s.good && !s.bad)
		return;
	push_sample(k, &s);
	if (!(r->active[e->rmid / 64] >> e->rmid % 64 & 1)) {
		r->active[e->rmid / 64] |= 1ULL << e->rmid % 64;
		r->nr_active++;
	}
}

/* Bytes of the interval that lie before x. */
static uint64_t told_at(const struct rmid_ival *iv, uint64_t x)
{
	uint64_t product;

	if (x == iv->b_ns)
		return iv->bytes;
	/* A 128-bit division is many times slower than a 64-bit one, and hardly ever needed. */
	if (!__builtin_mul_overflow(iv->bytes, x - iv->a_ns, &product))
		return product / (iv->b_ns - iv->a_ns);
	return (u128)iv->bytes * (x - iv->a_ns) / (iv->b_ns - iv->a_ns);
}

/* Splits [from, to) of the interval over its owners. */
static void share_out(const struct rmid_book *book, const struct rmid_ival *iv, uint64_t from, uint64_t to,
		      unsigned int v, struct part *parts, uint64_t *ns)
{
	uint64_t told = told_at(iv, from);

	for (unsigned int i = 0; i <= book->nr && ttmon_before(from, to); i++) {
		const struct rmid_own *o = &book->own[i];
		uint64_t cut[2] = { to, to }; /* end of the time without owner, and of the owner's */

		if (i < book->nr) {
			if (!o->open && !ttmon_before(from, o->until_ns))
				continue;
			if (o->begin || !ttmon_before(from, o->since_ns))
				cut[0] = from;
			else if (ttmon_before(o->since_ns, to))
				cut[0] = o->since_ns;
			if (!o->open && ttmon_before(o->until_ns, to))
				cut[1] = o->until_ns;
		}
		for (unsigned int j = 0; j < 2; j++) {
			unsigned int who = j ? i : RMID_NOBODY;
			uint64_t x = told_at(iv, cut[j]);

			/* Time without owner, or an owner without process, which ends at the same time. */
			if (cut[j] == from)
				continue;
			parts[who].bytes[v] += x - told;
			ns[who] += cut[j] - from;
			told = x;
			from = cut[j];
		}
	}
}

/* Takes the part of a counter's intervals before end; true: nothing is left of them. */
static bool close_counter(struct ttmon_rmid *r, const struct rmid_book *book, struct rmid_counter *c, unsigned int v,
			  uint64_t end, struct part *parts)
{
	uint64_t ns[RMID_NOBODY + 1] = { 0 };

	while (c->n) {
		const struct rmid_ival *iv = &c->q[c->head];
		uint64_t from = c->partly ? c->from_ns : iv->a_ns;
		uint64_t to = ttmon_before(iv->b_ns, end) ? iv->b_ns : end, cut;

		if (!ttmon_before(from, end))
			break;
		if (c->merged >> c->head & 1 && !ttmon_rmid_own_alone(book, iv->a_ns, iv->b_ns)) {
			/* It is unknown which of its owners caused the bytes. */
			r->t.dropped[v] += iv->bytes - told_at(iv, from);
		} else if (ttmon_rmid_own_alloc(book, iv->a_ns, iv->b_ns, &cut) && !ttmon_before(to, cut)) {
			/* For an allocation reported late, part of the time after it is already given out. */
			to = ttmon_before(cut, from) ? from : cut;
			r->t.dropped[v] += iv->bytes - told_at(iv, to);
			share_out(book, iv, from, to, v, parts, ns);
		} else {
			share_out(book, iv, from, to, v, parts, ns);
			c->from_ns = to;
			c->partly = to != iv->b_ns;
			if (c->partly)
				break;
		}
		c->partly = false;
		c->head = (c->head + 1) % RMID_IVALS;
		c->n--;
	}
	/* Domains are read in parallel: their times overlap and are not added. */
	for (unsigned int i = 0; i <= RMID_NOBODY; i++)
		parts[i].ns = MAX(parts[i].ns, ns[i]);
	return !c->n;
}

static bool close_samples(struct ttmon_rmid *r, const struct rmid_book *book, uint32_t rmid, struct rmid_key *k,
			  uint64_t end, struct part *parts)
{
	for (; k->n; k->n--, k->head = (k->head + 1) % RMID_IVALS) {
		const struct rmid_sample *s = &k->q[k->head];
		unsigned int who;

		if (!ttmon_before(s->ns, end))
			break;
		who = ttmon_rmid_own_at(book, s->ns);
		if (s->good && who == RMID_NOBODY && rmid && (book->known || ttmon_rmid_settled(r, s->ns)))
			ttmon_rmid_note_odd(r, TTMON_RMID_ODD_SAMPLE_ON_FREE, rmid, 0, 0, 0);
		if (s->bad)
			parts[who].unknown = true;
		if (s->has_occ) {
			k->occ = s->occ;
			k->occ_ns = s->ns;
			k->has_occ = true;
		}
	}
	return !k->n;
}

/*
 * Occupancy of a process that had the RMID in the slot. A domain last read during another owner's time
 * says nothing about this one. For a past owner only a complete sum is reported; for the present one
 * the sum so far, marked unknown while a domain that still gives readings is missing.
 */
static bool sum_occupancy(const struct ttmon_rmid *r, const struct rmid_one *one, unsigned int i, struct part *p)
{
	const struct rmid_own *o = &one->now.own[i];
	bool missing = false;

	for (const struct rmid_key *k = one->keys; k; k = k->next) {
		if (!k->has_occ)
			continue;
		if (ttmon_rmid_own_at(&one->now, k->occ_ns) == i) {
			p->occ = p->occ + k->occ < k->occ ? UINT64_MAX : p->occ + k->occ;
			p->has_occ = true;
		} else {
			missing |= ttmon_before(r->closed_ns, k->last_ns + RMID_QUIET_NS);
		}
	}
	if (missing && !o->open)
		p->has_occ = false;
	return missing && p->has_occ;
}

static void add_piece(struct ttmon_rdt_piece *to, const struct part *p)
{
	to->ns += p->ns;
	to->total += p->bytes[0];
	to->local += p->bytes[1];
	to->unknown |= p->unknown;
	to->has_occupancy |= p->has_occ;
	to->occupancy = p->has_occ ? p->occ : to->occupancy;
}

/* Reports one piece for each process that had the RMID in the slot. */
static void tell(struct ttmon_rmid *r, struct rmid_one *one, uint32_t rmid, struct part *parts, piece_fn fn, void *ctx)
{
	struct ttmon_rdt_piece piece, nobody = { .rmid = rmid };

	add_piece(&nobody, &parts[RMID_NOBODY]);
	for (unsigned int i = 0; i < one->now.nr; i++) {
		struct rmid_own *o = &one->now.own[i];
		struct part *p = &parts[i];
		bool news;

		if (!o->tgid) {
			add_piece(&nobody, p);
			continue;
		}
		if (o->open || !r->has_closed || ttmon_before(r->closed_ns, o->until_ns))
			p->unknown |= sum_occupancy(r, one, i, p);
		news = p->has_occ && (!o->told || o->told_occ != p->occ);
		if (!p->ns && !news && !p->unknown)
			continue;
		if (p->has_occ) {
			o->told = true;
			o->told_occ = p->occ;
		}
		piece = (struct ttmon_rdt_piece){ .tgid = o->tgid, .rmid = rmid, .start_ns = o->start_ns };
		add_piece(&piece, p);
		r->t.assigned[0] += piece.total;
		r->t.assigned[1] += piece.local;
		fn(ctx, &piece);
	}
	r->t.unassigned[0] += nobody.total;
	r->t.unassigned[1] += nobody.local;
	if (nobody.total || nobody.local)
		fn(ctx, &nobody);
}

/* Takes the part of an RMID's readings before end; true: nothing is left. */
static bool close_one(struct ttmon_rmid *r, uint32_t rmid, uint64_t end, piece_fn fn, void *ctx)
{
	struct part parts[RMID_NOBODY + 1] = { 0 };
	struct rmid_one *one = r->ids[rmid];
	bool done = true;

	for (struct rmid_key *k = one->keys; k; k = k->next) {
		done &= close_samples(r, &one->now, rmid, k, end, parts);
		for (unsigned int v = 0; v < 2; v++)
			done &= close_counter(r, &one->now, &k->ctr[v], v, end, parts);
	}
	tell(r, one, rmid, parts, fn, ctx);
	return done;
}

static void begin_close(struct ttmon_rmid *r, uint64_t end_ns)
{
	ttmon_rmid_own_facts(r, end_ns);
	if (r->any && !r->settling) {
		r->settling = true;
		r->settle_ns = end_ns + RMID_SETTLE_NS;
	}
}

void ttmon_rmid_skip(struct ttmon_rmid *r, uint64_t end_ns)
{
	begin_close(r, end_ns);
	r->has_closed = true;
	r->closed_ns = end_ns;
}

void ttmon_rmid_close(struct ttmon_rmid *r, uint64_t end_ns, piece_fn fn, void *ctx)
{
	begin_close(r, end_ns);
	for (unsigned int w = 0; r->nr_active && w < ARRAY_SIZE(r->active); w++) {
		for (uint64_t bits = r->active[w]; bits; bits &= bits - 1) {
			if (!close_one(r, w * 64 + (unsigned int)__builtin_ctzll(bits), end_ns, fn, ctx))
				continue;
			r->active[w] &= ~(bits & -bits);
			r->nr_active--;
		}
	}
	r->has_closed = true;
	r->closed_ns = end_ns;
}
