// SPDX-License-Identifier: GPL-2.0-only
/*
 * policy_pool.c: models PyTorch's cache of freed blocks; each process has its own cache, which ends
 * with it.
 *
 * PyTorch (aten/src/ATen/core/CachingHostAllocator.h) rounds a request up to a power of two, unless it
 * is above a threshold. A freed block with asynchronous copies waits in a queue for its events; each
 * allocation removes finished ones from the front, up to the first that is not finished. A request
 * takes any cached block of its power of two that is large enough (the smallest here, the last one
 * freed there: these are the same if all are rounded), else it pins a new one. Blocks are never split,
 * and never freed unless they are above the cache threshold, which are freed at once.
 *
 * Blocks are kept by class (process, size), numbered in that order, the oldest first in each class. A
 * set of bits, organized as a tree of words, says which classes have blocks, so that the next one is
 * found in a few steps.
 */
#include "lib/pin/policy_int.h"

#define NIL    UINT32_MAX
#define LEVELS 6 /* 64^6 exceeds the range of 32-bit numbers */

/* ---- a set of numbers ---- */

struct bits {
	uint64_t *level[LEVELS];
	unsigned int levels;
};

static int bits_init(struct bits *b, uint32_t n)
{
	size_t words = n;

	*b = (struct bits){ 0 };
	do {
		words = words / 64 + 1;
		b->level[b->levels] = calloc(words, sizeof(uint64_t));
		if (!b->level[b->levels++])
			return -ENOMEM;
	} while (words > 1);
	return 0;
}

static void bits_fini(struct bits *b)
{
	for (unsigned int i = 0; i < b->levels; i++)
		free(b->level[i]);
}

static void bits_set(struct bits *b, uint32_t i)
{
	for (unsigned int l = 0; l < b->levels; l++, i /= 64)
		b->level[l][i / 64] |= 1ULL << i % 64;
}

static void bits_clear(struct bits *b, uint32_t i)
{
	for (unsigned int l = 0; l < b->levels; l++, i /= 64) {
		b->level[l][i / 64] &= ~(1ULL << i % 64);
		if (b->level[l][i / 64])
			break;
	}
}

/* Returns the first number at or after i; NIL: none. */
static uint32_t bits_next(const struct bits *b, uint32_t i)
{
	unsigned int l = 0;
	uint64_t word;

	for (;;) {
		word = b->level[l][i / 64] & (UINT64_MAX << i % 64);
		if (word)
			break;
		if (++l == b->levels)
			return NIL;
		/* Continue with the next word, in the level above. */
		i = i / 64 + 1;
	}
	for (i = i / 64 * 64 + (uint32_t)__builtin_ctzll(word); l--;)
		i = i * 64 + (uint32_t)__builtin_ctzll(b->level[l][i]);
	return i;
}

/* ---- blocks ---- */

struct block {
	uint64_t ready_ns, size, pages;
	uint32_t class, proc;
	uint32_t next, prev;   /* links in its class, or in the queue of its process */
	uint32_t newer, older; /* links in its process */
};

struct queue {
	uint32_t first, last;
};

struct cache {
	struct queue waiting; /* freed blocks that wait for their copies, in the order of the frees */
	struct queue age;
	uint64_t end_ns;
};

struct class
{
	uint64_t size;
	uint32_t proc;
	struct queue blocks;
};

struct pool {
	const struct ttmon_policy_sim *s;
	struct ttmon_policy_meter *m;
	struct cache *caches;
	uint32_t nr_caches;
	uint32_t *by_end; /* processes sorted by their end */
	struct class *classes;
	uint32_t nr_classes;
	struct bits full;   /* classes that have blocks */
	uint32_t *class_of; /* class of each life */
	uint32_t *block_of;
	struct block *blocks;
	uint32_t nr_blocks;
};

/* Returns the size of the block that this life gets if a new one is pinned. */
static uint64_t block_size(const struct pool *p, const struct ttmon_policy_life *l)
{
	const struct ttmon_policy_cfg *cfg = p->s->cfg;
	uint64_t size = 1;

	if ((cfg->torch_round_max && l->size > cfg->torch_round_max) ||
	    (cfg->torch_cached_max && l->size > cfg->torch_cached_max))
		return l->size;
	while (size < l->size)
		size *= 2;
	return size;
}

/* Returns the largest block that may serve this size. */
static uint64_t size_limit(uint64_t size)
{
	uint64_t limit = 1;

	while (limit < size)
		limit *= 2;
	return limit;
}

struct place {
	uint64_t size;
	uint32_t proc, life;
};

static int by_class(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	return a->size < b->size ? -1 : a->size > b->size;
}

static int make_classes(struct pool *p)
{
	_cleanup_free_ struct place *v = malloc((p->s->n + 1) * sizeof(*v));

	p->classes = malloc((p->s->n + 1) * sizeof(*p->classes));
	p->class_of = malloc((p->s->n + 1) * sizeof(*p->class_of));
	if (!v || !p->classes || !p->class_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->s->n; i++)
		v[i] = (struct place){ block_size(p, &p->s->v[i]), p->s->v[i].proc, i };
	qsort(v, p->s->n, sizeof(*v), by_class);
	for (uint32_t i = 0; i < p->s->n; i++) {
		if (!i || by_class(&v[i], &v[i - 1]))
			p->classes[p->nr_classes++] =
				(struct class){ .size = v[i].size, .proc = v[i].proc, .blocks = { NIL, NIL } };
		p->class_of[v[i].life] = p->nr_classes - 1;
	}
	return bits_init(&p->full, p->nr_classes);
}

static int by_process_end(const void *pa, const void *pb, void *ctx)
{
	const struct cache *caches = ctx;
	const uint32_t *a = pa, *b = pb;

	if (caches[*a].end_ns != caches[*b].end_ns)
		return caches[*a].end_ns < caches[*b].end_ns ? -1 : 1;
	return *a < *b ? -1 : 1;
}

static int make_caches(struct pool *p)
{
	const struct ttmon_run *run = p->s->run;

	p->nr_caches = (uint32_t)run->nr_procs;
	for (uint32_t i = 0; i < p->s->n; i++)
		p->nr_caches = MAX(p->nr_caches, p->s->v[i].proc + 1);
	p->caches = calloc((size_t)p->nr_caches + 1, sizeof(*p->caches));
	p->by_end = malloc(((size_t)p->nr_caches + 1) * sizeof(*p->by_end));
	if (!p->caches || !p->by_end)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->nr_caches; i++) {
		p->by_end[i] = i;
		p->caches[i] = (struct cache){ .waiting = { NIL, NIL },
					       .age = { NIL, NIL },
					       .end_ns = i < run->nr_procs ? run->procs[i].last_ns : 0 };
	}
	for (uint32_t i = 0; i < p->s->n; i++) {
		struct cache *c = &p->caches[p->s->v[i].proc];

		c->end_ns = MAX(c->end_ns, p->s->v[i].to_ns);
	}
	qsort_r(p->by_end, p->nr_caches, sizeof(*p->by_end), by_process_end, p->caches);
	return 0;
}

static void pool_fini(struct pool *p)
{
	free(p->caches);
	free(p->by_end);
	free(p->classes);
	free(p->class_of);
	free(p->block_of);
	free(p->blocks);
	bits_fini(&p->full);
}

static int pool_init(struct pool *p)
{
	int err;

	p->block_of = malloc((p->s->n + 1) * sizeof(*p->block_of));
	p->blocks = calloc(p->s->n + 1, sizeof(*p->blocks));
	if (!p->block_of || !p->blocks)
		return -ENOMEM;
	err = make_classes(p);
	return err ? err : make_caches(p);
}

/* ---- taking and returning blocks ---- */

static void put_back(struct pool *p, uint32_t i)
{
	struct block *b = &p->blocks[i];
	struct queue *class = &p->classes[b->class].blocks, *age = &p->caches[b->proc].age;

	b->prev = class->last;
	b->older = age->last;
	b->next = b->newer = NIL;
	*(b->prev == NIL ? &class->first : &p->blocks[b->prev].next) = i;
	*(b->older == NIL ? &age->first : &p->blocks[b->older].newer) = i;
	class->last = age->last = i;
	bits_set(&p->full, b->class);
}

static void take(struct pool *p, uint32_t i)
{
	struct block *b = &p->blocks[i];
	struct queue *class = &p->classes[b->class].blocks, *age = &p->caches[b->proc].age;

	*(b->prev == NIL ? &class->first : &p->blocks[b->prev].next) = b->next;
	*(b->next == NIL ? &class->last : &p->blocks[b->next].prev) = b->prev;
	*(b->older == NIL ? &age->first : &p->blocks[b->older].newer) = b->newer;
	*(b->newer == NIL ? &age->last : &p->blocks[b->newer].older) = b->older;
	if (class->first == NIL)
		bits_clear(&p->full, b->class);
}

/* Removes a suitable block from the cache; NIL: none. */
static uint32_t find(struct pool *p, uint32_t class)
{
	uint64_t limit = size_limit(p->classes[class].size);
	uint32_t proc = p->classes[class].proc, i;

	class = bits_next(&p->full, class);
	if (class == NIL || p->classes[class].proc != proc || p->classes[class].size > limit)
		return NIL;
	i = p->classes[class].blocks.first;
	take(p, i);
	return i;
}

static void account(struct pool *p, const struct block *b, uint64_t now_ns, bool pinned)
{
	int64_t sign = pinned ? 1 : -1;

	ttmon_policy_meter_add(p->m, now_ns, sign * (int64_t)b->pages, sign * (int64_t)b->size, 0);
	p->m->r->pins += pinned;
	p->m->r->pages_pinned += pinned ? b->pages : 0;
}

static uint32_t pin(struct pool *p, uint32_t class, uint64_t now_ns)
{
	struct block *b = &p->blocks[p->nr_blocks];

	*b = (struct block){ .size = p->classes[class].size, .class = class, .proc = p->classes[class].proc };
	b->pages = (b->size + TTMON_POLICY_PAGE - 1) / TTMON_POLICY_PAGE;
	account(p, b, now_ns, true);
	return p->nr_blocks++;
}

/* Caches a freed block whose copies are done, or frees it. */
static void settle(struct pool *p, uint32_t i, uint64_t now_ns)
{
	uint64_t max = p->s->cfg->torch_cached_max;

	if (max && p->blocks[i].size > max) {
		account(p, &p->blocks[i], now_ns, false);
		p->m->r->unpins++;
	} else {
		put_back(p, i);
	}
}

static void settle_done(struct pool *p, struct cache *c, uint64_t now_ns)
{
	while (c->waiting.first != NIL && p->blocks[c->waiting.first].ready_ns <= now_ns) {
		uint32_t i = c->waiting.first;

		c->waiting.first = p->blocks[i].next;
		if (c->waiting.first == NIL)
			c->waiting.last = NIL;
		settle(p, i, now_ns);
	}
}

static void wait_for(struct pool *p, struct cache *c, uint32_t i)
{
	p->blocks[i].next = NIL;
	*(c->waiting.last == NIL ? &c->waiting.first : &p->blocks[c->waiting.last].next) = i;
	c->waiting.last = i;
}

static void life_begins(struct pool *p, uint32_t life)
{
	const struct ttmon_policy_life *l = &p->s->v[life];
	uint32_t i;

	settle_done(p, &p->caches[l->proc], l->from_ns);
	i = find(p, p->class_of[life]);
	if (i == NIL)
		i = pin(p, p->class_of[life], l->from_ns);
	p->block_of[life] = i;
	ttmon_policy_meter_add(p->m, l->from_ns, 0, 0, (int64_t)l->size);
}

static void life_ends(struct pool *p, uint32_t life)
{
	const struct ttmon_policy_life *l = &p->s->v[life];
	uint32_t i = p->block_of[life];

	p->blocks[i].ready_ns = l->ready_ns;
	ttmon_policy_meter_add(p->m, l->to_ns, 0, 0, -(int64_t)l->size);
	if (l->ready_ns)
		wait_for(p, &p->caches[l->proc], i);
	else
		settle(p, i, l->to_ns);
}

/* Handles the end of a process and of its cache. */
static void gone(struct pool *p, struct cache *c)
{
	for (uint32_t i = c->waiting.first; i != NIL; i = p->blocks[i].next)
		account(p, &p->blocks[i], c->end_ns, false);
	for (uint32_t i = c->age.first; i != NIL; i = p->blocks[i].newer)
		account(p, &p->blocks[i], c->end_ns, false);
}

static void play_run(struct pool *p)
{
	struct ttmon_policy_walk w = { 0 };
	uint32_t life, ended = 0;
	bool begins;

	while (ttmon_policy_next(p->s, &w, &life, &begins)) {
		const struct ttmon_policy_life *l = &p->s->v[life];

		if (!l->pinned)
			continue;
		/* At equal times: first the ends of lives, then ends of processes, then beginnings. */
		for (; ended < p->nr_caches; ended++) {
			struct cache *c = &p->caches[p->by_end[ended]];

			if (begins ? c->end_ns > l->from_ns : c->end_ns >= l->to_ns)
				break;
			gone(p, c);
		}
		if (begins)
			life_begins(p, life);
		else
			life_ends(p, life);
	}
	for (; ended < p->nr_caches; ended++)
		gone(p, &p->caches[p->by_end[ended]]);
}

int ttmon_policy_torch(const struct ttmon_policy_sim *s, struct ttmon_policy_meter *m)
{
	struct pool p = { .s = s, .m = m };
	int err = pool_init(&p);

	if (!err)
		play_run(&p);
	pool_fini(&p);
	return err;
}
