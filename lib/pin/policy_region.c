// SPDX-License-Identifier: GPL-2.0-only
/*
 * policy_region.c: models how an allocator can follow the advice: pinned allocations are pieces of a
 * few regions (arena.h); each process has its own regions, which end with it. A freed piece whose
 * asynchronous copies are in progress waits for them; each allocation checks the eight oldest. Memory
 * that may be read in place is pinned individually instead.
 */
#include "lib/pin/arena.h"
#include "lib/base/grow.h"
#include "lib/pin/policy_int.h"

#define ASKED 8
#define UNITS TTMON_ARENA_PAGE

struct waiting {
	uint32_t piece;
	uint64_t ready_ns;
};

struct owner {
	struct ttmon_arena arena;
	struct waiting *v; /* freed pieces in the order of the frees: v[from] to v[n - 1] */
	uint32_t from, n, cap;
	uint64_t apart; /* pages pinned individually */
	uint64_t end_ns;
	bool over;
};

struct regions {
	struct ttmon_policy_sim *s;
	struct ttmon_policy_meter *m;
	uint64_t known_pages, call_pages;
	struct owner *owners;
	uint32_t nr_owners;
	uint32_t *by_end; /* owners sorted by their end */
	uint32_t *piece_of;
	int err;
};

static int by_owner_end(const void *pa, const void *pb, void *ctx)
{
	const struct owner *owners = ctx;
	const uint32_t *a = pa, *b = pb;

	if (owners[*a].end_ns != owners[*b].end_ns)
		return owners[*a].end_ns < owners[*b].end_ns ? -1 : 1;
	return *a < *b ? -1 : 1;
}

static int regions_init(struct regions *r)
{
	const struct ttmon_run *run = r->s->run;

	r->nr_owners = (uint32_t)run->nr_procs;
	for (uint32_t i = 0; i < r->s->n; i++)
		r->nr_owners = MAX(r->nr_owners, r->s->v[i].proc + 1);
	r->owners = calloc((size_t)r->nr_owners + 1, sizeof(*r->owners));
	r->by_end = malloc(((size_t)r->nr_owners + 1) * sizeof(*r->by_end));
	r->piece_of = malloc(((size_t)r->s->n + 1) * sizeof(*r->piece_of));
	if (!r->owners || !r->by_end || !r->piece_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->nr_owners; i++) {
		ttmon_arena_init(&r->owners[i].arena);
		r->owners[i].end_ns = i < run->nr_procs ? run->procs[i].last_ns : 0;
		r->by_end[i] = i;
	}
	for (uint32_t i = 0; i < r->s->n; i++) {
		struct owner *o = &r->owners[r->s->v[i].proc];

		o->end_ns = MAX(o->end_ns, r->s->v[i].to_ns);
	}
	qsort_r(r->by_end, r->nr_owners, sizeof(*r->by_end), by_owner_end, r->owners);
	return 0;
}

static void regions_fini(struct regions *r)
{
	for (uint32_t i = 0; r->owners && i < r->nr_owners; i++) {
		ttmon_arena_fini(&r->owners[i].arena);
		free(r->owners[i].v);
	}
	free(r->owners);
	free(r->by_end);
	free(r->piece_of);
}

static void count_pages(struct regions *r, uint64_t now_ns, uint64_t pages, bool pinned)
{
	int64_t sign = pinned ? 1 : -1;

	ttmon_policy_meter_add(r->m, now_ns, sign * (int64_t)pages, sign * (int64_t)(pages * TTMON_POLICY_PAGE), 0);
	r->m->r->pins += pinned;
	r->m->r->unpins += !pinned;
	r->m->r->pages_pinned += pinned ? pages : 0;
}

/* Frees those of the oldest pieces whose copies are done. */
static void settle_oldest(struct owner *o, uint64_t now_ns, uint32_t looks)
{
	uint32_t kept = o->from, at = o->from;

	for (; at < o->n && looks; at++, looks--) {
		if (o->v[at].ready_ns <= now_ns)
			ttmon_arena_put(&o->arena, o->v[at].piece);
		else
			o->v[kept++] = o->v[at];
	}
	/* Move the pieces that are still waiting next to those that were not checked. */
	while (kept > o->from)
		o->v[--at] = o->v[--kept];
	o->from = at;
	if (o->from == o->n)
		o->from = o->n = 0;
}

static uint32_t take_piece(struct regions *r, struct owner *o, const struct ttmon_policy_life *l)
{
	struct ttmon_arena_want w = { .units = ttmon_arena_units(l->size),
				      .known = r->known_pages * UNITS,
				      .call = r->call_pages * UNITS,
				      .alone = l->alone };
	uint64_t waited = 0, unit, units;
	uint32_t piece = TTMON_ARENA_NONE;

	settle_oldest(o, l->from_ns, ASKED);
	while (!r->err) {
		w.waiting = o->from < o->n;
		switch (ttmon_arena_serve(&o->arena, &w, &piece, &unit, &units)) {
		case TTMON_ARENA_WAIT:
			waited = MAX(waited, o->v[o->from].ready_ns - MIN(o->v[o->from].ready_ns, l->from_ns));
			settle_oldest(o, l->from_ns + waited, 1);
			break;
		case TTMON_ARENA_GIVE_BACK:
			count_pages(r, l->from_ns, units / UNITS, false);
			break;
		case TTMON_ARENA_ADD:
			r->err = ttmon_arena_add(&o->arena, 0, units);
			if (!r->err)
				count_pages(r, l->from_ns, units / UNITS, true);
			break;
		case TTMON_ARENA_LEAVE:
			r->m->r->left_out++;
			/* fallthrough */
		case TTMON_ARENA_TAKEN:
			r->m->r->wait_ns += (int64_t)waited;
			return piece;
		}
	}
	return piece;
}

static void begin_life(struct regions *r, uint32_t life)
{
	const struct ttmon_policy_life *l = &r->s->v[life];
	struct owner *o = &r->owners[l->proc];

	if (l->apart) {
		count_pages(r, l->from_ns, l->pages, true);
		o->apart += l->pages;
	} else {
		r->piece_of[life] = take_piece(r, o, l);
		r->s->v[life].pinned = r->piece_of[life] != TTMON_ARENA_NONE;
	}
	if (l->pinned)
		ttmon_policy_meter_add(r->m, l->from_ns, 0, 0, (int64_t)l->size);
}

static void put_piece(struct regions *r, struct owner *o, uint32_t life)
{
	const struct ttmon_policy_life *l = &r->s->v[life];

	if (!l->ready_ns || l->ready_ns <= l->to_ns) {
		ttmon_arena_put(&o->arena, r->piece_of[life]);
		return;
	}
	if (TTMON_GROW(o->v, o->cap, o->n + 1, 64)) {
		r->err = -ENOMEM;
		return;
	}
	o->v[o->n++] = (struct waiting){ r->piece_of[life], l->ready_ns };
}

static void end_life(struct regions *r, uint32_t life)
{
	const struct ttmon_policy_life *l = &r->s->v[life];
	struct owner *o = &r->owners[l->proc];

	ttmon_policy_meter_add(r->m, l->to_ns, 0, 0, -(int64_t)l->size);
	if (l->apart) {
		count_pages(r, l->to_ns, l->pages, false);
		o->apart -= l->pages;
	} else {
		put_piece(r, o, life);
	}
}

/* Handles the end of a process: its memory ends without calls. */
static void end_owner(struct regions *r, struct owner *o)
{
	ttmon_policy_meter_add(r->m, o->end_ns, -(int64_t)(o->arena.units / UNITS),
			       -(int64_t)(o->arena.units * TTMON_ARENA_UNIT), 0);
	o->over = true;
}

static void play_regions(struct regions *r)
{
	struct ttmon_policy_walk w = { 0 };
	uint32_t life, ended = 0;
	bool begins;

	while (!r->err && ttmon_policy_next(r->s, &w, &life, &begins)) {
		const struct ttmon_policy_life *l = &r->s->v[life];

		if (!l->pinned)
			continue;
		/* At equal times: first the ends of lives, then ends of processes, then beginnings. */
		for (; ended < r->nr_owners; ended++) {
			struct owner *o = &r->owners[r->by_end[ended]];

			if (begins ? o->end_ns > l->from_ns : o->end_ns >= l->to_ns)
				break;
			end_owner(r, o);
		}
		if (begins)
			begin_life(r, life);
		else
			end_life(r, life);
	}
	for (; !r->err && ended < r->nr_owners; ended++)
		end_owner(r, &r->owners[r->by_end[ended]]);
}

int ttmon_policy_regions(struct ttmon_policy_sim *s, uint64_t known_pages, struct ttmon_policy_meter *m)
{
	struct regions r = { .s = s, .m = m, .known_pages = known_pages };
	int err;

	r.call_pages = (uint64_t)((double)s->cfg->cost.pin_call_ns / ttmon_policy_page_ns(&s->cfg->cost));
	err = regions_init(&r);
	if (!err) {
		play_regions(&r);
		err = r.err;
	}
	regions_fini(&r);
	return err;
}
