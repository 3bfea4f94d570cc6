// SPDX-License-Identifier: GPL-2.0-only
/*
 * arena.c: see arena.h. Free pieces are in lists by size class: one class for each size up to 32
 * units, above that eight classes for each power of two.
 */
#include "lib/pin/arena.h"
#include "lib/base/grow.h"

#define NONE  TTMON_ARENA_NONE
#define LOOKS 64

static unsigned int class_of(uint64_t units)
{
	unsigned int log;

	if (units < 32)
		return (unsigned int)units;
	log = 63 - (unsigned int)__builtin_clzll(units);
	return MIN(32 + (log - 5) * 8 + (unsigned int)(units >> (log - 3) & 7), TTMON_ARENA_CLASSES - 1);
}

void ttmon_arena_init(struct ttmon_arena *a)
{
	*a = (struct ttmon_arena){ .unused = NONE, .rover = NONE };
	for (unsigned int i = 0; i < TTMON_ARENA_CLASSES; i++)
		a->first[i] = NONE;
}

void ttmon_arena_fini(struct ttmon_arena *a)
{
	free(a->v);
	ttmon_arena_init(a);
}

static uint32_t new_piece(struct ttmon_arena *a)
{
	uint32_t i = a->unused;

	if (i != NONE) {
		a->unused = a->v[i].next;
		return i;
	}
	if (TTMON_GROW(a->v, a->cap, a->n + 1, 64))
		return NONE;
	return a->n++;
}

static void drop_piece(struct ttmon_arena *a, uint32_t i)
{
	a->v[i].next = a->unused;
	a->unused = i;
}

static void list(struct ttmon_arena *a, uint32_t i)
{
	struct ttmon_arena_piece *p = &a->v[i];
	unsigned int c = class_of(p->units);

	p->free = true;
	p->prev = NONE;
	p->next = a->first[c];
	if (p->next != NONE)
		a->v[p->next].prev = i;
	a->first[c] = i;
	a->has[c / 64] |= 1ULL << c % 64;
}

static void unlist(struct ttmon_arena *a, uint32_t i)
{
	struct ttmon_arena_piece *p = &a->v[i];
	unsigned int c = class_of(p->units);

	p->free = false;
	if (p->next != NONE)
		a->v[p->next].prev = p->prev;
	if (p->prev != NONE)
		a->v[p->prev].next = p->next;
	else
		a->first[c] = p->next;
	if (a->first[c] == NONE)
		a->has[c / 64] &= ~(1ULL << c % 64);
}

int ttmon_arena_add(struct ttmon_arena *a, uint64_t unit, uint64_t units)
{
	uint32_t i = new_piece(a);

	if (i == NONE)
		return -ENOMEM;
	a->v[i] = (struct ttmon_arena_piece){ .unit = unit, .units = units, .before = NONE, .after = NONE };
	list(a, i);
	a->units += units;
	a->regions++;
	return 0;
}

/* Returns the units that alignment leaves free before a request that is placed in this piece. */
static uint64_t gap_of(const struct ttmon_arena_piece *p, uint64_t units)
{
	return units < TTMON_ARENA_PAGE ? 0 : ROUND_UP(p->unit, TTMON_ARENA_PAGE) - p->unit;
}

static bool fits(const struct ttmon_arena_piece *p, uint64_t units)
{
	return p->units >= units && p->units - units >= gap_of(p, units);
}

/*
 * Returns the smallest piece of a class that is large enough, the one with the lowest address if
 * several are; NONE.
 */
static uint32_t best_of(const struct ttmon_arena *a, unsigned int class, uint64_t units)
{
	uint32_t best = NONE, i = a->first[class];

	for (unsigned int looks = 0; i != NONE && looks < LOOKS; looks++, i = a->v[i].next) {
		const struct ttmon_arena_piece *p = &a->v[i], *b = &a->v[best == NONE ? i : best];

		if (fits(p, units) &&
		    (best == NONE || p->units < b->units || (p->units == b->units && p->unit < b->unit)))
			best = i;
	}
	return best;
}

static unsigned int next_class(const struct ttmon_arena *a, unsigned int from)
{
	for (unsigned int w = from / 64; w < ARRAY_SIZE(a->has); w++) {
		uint64_t word = a->has[w] & (w == from / 64 ? UINT64_MAX << from % 64 : UINT64_MAX);

		if (word)
			return w * 64 + (unsigned int)__builtin_ctzll(word);
	}
	return TTMON_ARENA_CLASSES;
}

/* Returns the next large enough piece behind the rover in its region, continuing from its start. */
static uint32_t next_fit(const struct ttmon_arena *a, uint64_t units)
{
	uint32_t i = a->rover;

	for (unsigned int looks = 0; i != NONE && looks < LOOKS; looks++) {
		if (a->v[i].free && fits(&a->v[i], units))
			return i;
		if (a->v[i].after == NONE)
			while (a->v[i].before != NONE)
				i = a->v[i].before;
		else
			i = a->v[i].after;
	}
	return NONE;
}

/*
 * Cuts piece i after so many units; the rest becomes free. Returns false if there is no memory for
 * that; the piece stays whole then.
 */
static bool cut(struct ttmon_arena *a, uint32_t i, uint64_t units)
{
	uint32_t rest = a->v[i].units > units ? new_piece(a) : NONE;
	struct ttmon_arena_piece *p = &a->v[i];

	if (rest == NONE)
		return false;
	a->v[rest] = (struct ttmon_arena_piece){
		.unit = p->unit + units, .units = p->units - units, .before = i, .after = p->after
	};
	if (p->after != NONE)
		a->v[p->after].before = rest;
	p->after = rest;
	p->units = units;
	list(a, rest);
	return true;
}

uint32_t ttmon_arena_take(struct ttmon_arena *a, uint64_t units)
{
	uint32_t i = next_fit(a, units);
	uint64_t gap;

	/*
	 * The class of this size also has smaller pieces, so it was searched separately; all pieces of higher
	 * classes are large enough.
	 */
	for (unsigned int c = next_class(a, class_of(units)); i == NONE && c < TTMON_ARENA_CLASSES;
	     c = next_class(a, c + 1))
		i = best_of(a, c, units);
	if (i == NONE)
		return NONE;
	gap = gap_of(&a->v[i], units);
	unlist(a, i);
	if (gap && !cut(a, i, gap)) {
		list(a, i);
		return NONE;
	}
	if (gap) {
		uint32_t front = i;

		i = a->v[front].after;
		list(a, front);
		unlist(a, i);
	}
	cut(a, i, units);
	a->used += a->v[i].units;
	a->rover = i;
	return i;
}

/* Merges the piece after i into it. */
static void join_after(struct ttmon_arena *a, uint32_t i)
{
	uint32_t after = a->v[i].after;

	if (after == NONE || !a->v[after].free)
		return;
	unlist(a, after);
	a->v[i].units += a->v[after].units;
	a->v[i].after = a->v[after].after;
	if (a->v[i].after != NONE)
		a->v[a->v[i].after].before = i;
	if (a->rover == after)
		a->rover = i;
	drop_piece(a, after);
}

void ttmon_arena_put(struct ttmon_arena *a, uint32_t i)
{
	uint32_t before = a->v[i].before;

	a->used -= a->v[i].units;
	join_after(a, i);
	if (before != NONE && a->v[before].free) {
		unlist(a, before);
		a->v[i].free = true;
		list(a, i);
		join_after(a, before);
		i = before;
	}
	list(a, i);
}

bool ttmon_arena_give_back(struct ttmon_arena *a, uint64_t at_least, uint64_t *unit, uint64_t *units)
{
	uint32_t best = NONE;

	for (unsigned int c = next_class(a, class_of(MAX(at_least, 1))); c < TTMON_ARENA_CLASSES;
	     c = next_class(a, c + 1))
		for (uint32_t i = a->first[c]; i != NONE; i = a->v[i].next) {
			const struct ttmon_arena_piece *p = &a->v[i];

			if (p->before == NONE && p->after == NONE && p->units >= at_least &&
			    (best == NONE || p->units > a->v[best].units))
				best = i;
		}
	if (best == NONE)
		return false;
	*unit = a->v[best].unit;
	*units = a->v[best].units;
	unlist(a, best);
	if (a->rover == best)
		a->rover = NONE;
	drop_piece(a, best);
	a->units -= *units;
	a->regions--;
	return true;
}

/*
 * Returns whether the request would fit if the free memory were contiguous, while at most a sixteenth
 * more than the known need is used.
 */
static bool has_room(const struct ttmon_arena *a, const struct ttmon_arena_want *w)
{
	return a->units && a->units >= w->known && a->used + w->units <= w->known + w->known / 16;
}

/* Returns the units of the next region: whole pages. */
static uint64_t more(const struct ttmon_arena *a, const struct ttmon_arena_want *w)
{
	uint64_t units = w->units < TTMON_ARENA_PAGE ? w->units : ROUND_UP(w->units, TTMON_ARENA_PAGE);
	uint64_t have = MAX(w->known, a->units), step = MAX(have / 32, MIN(w->call, have / 16));

	if (!a->units)
		return ROUND_UP(MAX(w->known, units), TTMON_ARENA_PAGE);
	/* More is used than ever before, so this run differs from the earlier ones, and may need even more. */
	if (a->used + units > w->known && a->units > w->known)
		step = MAX(step, (a->units - w->known) / 2);
	return ROUND_UP(units >= step ? units : step / units * units, TTMON_ARENA_PAGE);
}

enum ttmon_arena_step ttmon_arena_serve(struct ttmon_arena *a, const struct ttmon_arena_want *w, uint32_t *piece,
					uint64_t *unit, uint64_t *units)
{
	*piece = ttmon_arena_take(a, w->units);
	if (*piece != NONE)
		return TTMON_ARENA_TAKEN;
	if (w->waiting && a->units >= w->known)
		return TTMON_ARENA_WAIT;
	if (has_room(a, w) && !w->alone)
		return TTMON_ARENA_LEAVE;
	*units = more(a, w);
	/*
	 * Before exceeding the known need, unpin an unused region, unless the call costs more than its pages.
	 */
	if (a->units + *units > MAX(w->known, a->used + *units) && ttmon_arena_give_back(a, w->call, unit, units))
		return TTMON_ARENA_GIVE_BACK;
	return TTMON_ARENA_ADD;
}
