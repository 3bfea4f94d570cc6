// SPDX-License-Identifier: GPL-2.0-only
/* arena.c: see arena.h. Free pieces are in lists by class: each size up to 32 units has one, above that eight to each power of two. */
#include "lib/pin/arena.h"

#define NONE  TTMON_ARENA_NONE
#define LOOKS 64

static unsigned int class_of(uint64_t pages)
{
	unsigned int log;

	if (pages < 32)
		return (unsigned int)pages;
	log = 63 - (unsigned int)__builtin_clzll(pages);
	return MIN(32 + (log - 5) * 8 + (unsigned int)(pages >> (log - 3) & 7), TTMON_ARENA_CLASSES - 1);
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
	if (a->n == a->cap) {
		uint32_t cap = a->cap ? 2 * a->cap : 64;
		struct ttmon_arena_piece *v = realloc(a->v, cap * sizeof(*v));

		if (!v)
			return NONE;
		a->v = v;
		a->cap = cap;
	}
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
	unsigned int c = class_of(p->pages);

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
	unsigned int c = class_of(p->pages);

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

int ttmon_arena_add(struct ttmon_arena *a, uint64_t page, uint64_t pages)
{
	uint32_t i = new_piece(a);

	if (i == NONE)
		return -ENOMEM;
	a->v[i] = (struct ttmon_arena_piece){ .page = page, .pages = pages, .before = NONE, .after = NONE };
	list(a, i);
	a->pages += pages;
	a->regions++;
	return 0;
}

/* The smallest of a class that will do, the lowest of several; NONE. */
static uint32_t best_of(const struct ttmon_arena *a, unsigned int class, uint64_t pages)
{
	uint32_t best = NONE, i = a->first[class];

	for (unsigned int looks = 0; i != NONE && looks < LOOKS; looks++, i = a->v[i].next) {
		const struct ttmon_arena_piece *p = &a->v[i], *b = &a->v[best == NONE ? i : best];

		if (p->pages >= pages &&
		    (best == NONE || p->pages < b->pages || (p->pages == b->pages && p->page < b->page)))
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

/* The next piece behind the rover in its region that will do, around its end. */
static uint32_t next_fit(const struct ttmon_arena *a, uint64_t pages)
{
	uint32_t i = a->rover;

	for (unsigned int looks = 0; i != NONE && looks < LOOKS; looks++) {
		if (a->v[i].free && a->v[i].pages >= pages)
			return i;
		if (a->v[i].after == NONE)
			while (a->v[i].before != NONE)
				i = a->v[i].before;
		else
			i = a->v[i].after;
	}
	return NONE;
}

uint32_t ttmon_arena_take(struct ttmon_arena *a, uint64_t pages)
{
	unsigned int c = class_of(pages);
	uint32_t i = next_fit(a, pages), rest;

	/* Its own class has smaller ones too. */
	for (c = next_class(a, c); i == NONE && c < TTMON_ARENA_CLASSES; c = next_class(a, c + 1))
		i = best_of(a, c, pages);
	if (i == NONE)
		return NONE;
	unlist(a, i);
	rest = a->v[i].pages > pages ? new_piece(a) : NONE;
	if (rest != NONE) {
		struct ttmon_arena_piece *p = &a->v[i];

		a->v[rest] = (struct ttmon_arena_piece){
			.page = p->page + pages, .pages = p->pages - pages, .before = i, .after = p->after
		};
		if (p->after != NONE)
			a->v[p->after].before = rest;
		p->after = rest;
		p->pages = pages;
		list(a, rest);
	}
	a->used += a->v[i].pages;
	a->rover = i;
	return i;
}

/* The piece after i becomes part of it. */
static void join_after(struct ttmon_arena *a, uint32_t i)
{
	uint32_t after = a->v[i].after;

	if (after == NONE || !a->v[after].free)
		return;
	unlist(a, after);
	a->v[i].pages += a->v[after].pages;
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

	a->used -= a->v[i].pages;
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

bool ttmon_arena_has_room(const struct ttmon_arena *a, uint64_t pages, uint64_t known_pages)
{
	return a->pages && a->pages >= known_pages && a->used + pages <= known_pages + known_pages / 16;
}

bool ttmon_arena_give_back(struct ttmon_arena *a, uint64_t at_least, uint64_t *page, uint64_t *pages)
{
	uint32_t best = NONE;

	for (unsigned int c = next_class(a, class_of(MAX(at_least, 1))); c < TTMON_ARENA_CLASSES;
	     c = next_class(a, c + 1))
		for (uint32_t i = a->first[c]; i != NONE; i = a->v[i].next) {
			const struct ttmon_arena_piece *p = &a->v[i];

			if (p->before == NONE && p->after == NONE && p->pages >= at_least &&
			    (best == NONE || p->pages > a->v[best].pages))
				best = i;
		}
	if (best == NONE)
		return false;
	*page = a->v[best].page;
	*pages = a->v[best].pages;
	unlist(a, best);
	if (a->rover == best)
		a->rover = NONE;
	drop_piece(a, best);
	a->pages -= *pages;
	a->regions--;
	return true;
}

uint64_t ttmon_arena_more(const struct ttmon_arena *a, uint64_t pages, uint64_t known_pages, uint64_t call_pages)
{
	uint64_t have = MAX(known_pages, a->pages), step = MAX(have / 32, MIN(call_pages, have / 16));

	if (!a->pages)
		return MAX(known_pages, pages);
	/* More than was ever needed: this is another run than those, the more so the more it is. */
	if (a->used + pages > known_pages && a->pages > known_pages)
		step = MAX(step, (a->pages - known_pages) / 2);
	return pages >= step ? pages : step / pages * pages;
}
