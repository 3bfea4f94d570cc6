// SPDX-License-Identifier: GPL-2.0-only
/*
 * map.c: allocations by address and time. Each process has a segment tree over the ends of its
 * allocations. An allocation is in the O(log n) nodes that make up its range, so all allocations that
 * contain an address are in the nodes above that address's leaf. In a node they are sorted by time,
 * and each entry knows which of the entries up to it is freed last. So the allocation that was live at
 * a time is found by going back from that time, no further than to the earliest one that was live.
 */
#include "memtrace/model/map.h"

#include "lib/read/run.h"
#include "memtrace/model/mt.h"
#include "lib/base/search.h"
#include "lib/base/grow.h"
#include "lib/base/util.h"

#define MAX_PIECES (128u << 20)
#define BLOCK	   (64u << 10)
/*
 * limit of allocations live at one time in one node: more of them are not plausible, or cannot be
 * distinguished
 */
#define MAX_BACK 256

struct block {
	struct block *next;
	size_t used, size;
	char text[];
};

struct tree {
	uint32_t pid;
	uint32_t nr;	  /* segments: leaves are nodes nr to 2 nr - 1, the parent of i is i / 2 */
	uint64_t *bounds; /* nr + 1 */
	uint32_t *first;  /* of each node in list; 2 nr + 1 */
	uint32_t *list;	  /* allocations, by alloc_ns */
	uint32_t *latest; /* which of those up to here is freed last */
	uint32_t *best;	  /* of each node, without a time */
	uint8_t *many;	  /* there is another as good */
	uint64_t order;	  /* launches below this number can be requested; 0: none */
};

struct order {
	uint32_t pid;
	uint64_t to;
};

struct ttmon_mt_map {
	struct ttmon_mt_alloc *allocs;
	size_t nr, cap;
	struct tree *trees;
	size_t nr_trees;
	struct order *orders;
	size_t nr_orders;
	struct block *blocks;
	const char *last[2]; /* the name and site before */
};

const char *ttmon_mt_mem_name(unsigned int mem)
{
	static const char *const names[TTMON_MT_MEM_MAX] = {
		[TTMON_MT_MEM_UNKNOWN] = "unknown",	  [TTMON_MT_MEM_DEVICE] = "device",
		[TTMON_MT_MEM_MANAGED] = "managed",	  [TTMON_MT_MEM_PINNED] = "pinned",
		[TTMON_MT_MEM_REGISTERED] = "registered", [TTMON_MT_MEM_MAPPED] = "mapped",
	};

	return mem < TTMON_MT_MEM_MAX ? names[mem] : names[0];
}

struct ttmon_mt_when ttmon_mt_when_of(const struct ttmon_mt_launch *l, uint32_t pid)
{
	struct ttmon_mt_when when = { .nth = TTMON_MT_NO_NTH, .pid = pid };

	if (!l)
		return when;
	when.ns = l->time_ns;
	when.pid = pid ?: l->pid;
	if (l->flags & TTMON_MT_LAUNCH_NTH_0)
		when.nth = l->id;
	else if (l->flags & TTMON_MT_LAUNCH_NTH_1 && l->id)
		when.nth = l->id - 1;
	return when;
}

int ttmon_mt_map_new(struct ttmon_mt_map **ret)
{
	struct ttmon_mt_map *map = calloc(1, sizeof(*map));

	if (!map)
		return -ENOMEM;
	*ret = map;
	return 0;
}

static void drop_trees(struct ttmon_mt_map *map)
{
	for (size_t i = 0; i < map->nr_trees; i++) {
		struct tree *t = &map->trees[i];

		free(t->bounds);
		free(t->first);
		free(t->list);
		free(t->latest);
		free(t->best);
		free(t->many);
	}
	free(map->trees);
	map->trees = NULL;
	map->nr_trees = 0;
}

void ttmon_mt_map_free(struct ttmon_mt_map *map)
{
	struct block *next;

	if (!map)
		return;
	drop_trees(map);
	for (struct block *b = map->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	free(map->orders);
	free(map->allocs);
	free(map);
}

static const char *keep(struct ttmon_mt_map *map, const char *text)
{
	size_t n = text ? strlen(text) + 1 : 1;
	struct block *b = map->blocks;
	char *p;

	if (n == 1)
		return "";
	if (!b || b->size - b->used < n) {
		size_t size = MAX(n, (size_t)BLOCK);

		b = malloc(sizeof(*b) + size);
		if (!b)
			return NULL;
		*b = (struct block){ .next = map->blocks, .size = size };
		map->blocks = b;
	}
	p = b->text + b->used;
	memcpy(p, text, n);
	b->used += n;
	return p;
}

/* Neighbouring allocations often have the same text. */
static const char *keep_again(struct ttmon_mt_map *map, unsigned int place, const char *text)
{
	const char *kept = map->last[place];

	if (!kept || !text || strcmp(kept, text))
		kept = keep(map, text);
	if (kept)
		map->last[place] = kept;
	return kept;
}

int ttmon_mt_map_add(struct ttmon_mt_map *map, const struct ttmon_mt_alloc *a)
{
	struct ttmon_mt_alloc copy = *a;

	if (map->nr == TTMON_RUN_MAX_ALLOCS)
		return -E2BIG;
	if (TTMON_GROW(map->allocs, map->cap, map->nr + 1, 256))
		return -ENOMEM;
	copy.size = MIN(copy.size, UINT64_MAX - copy.addr);
	copy.free_ns = MAX(copy.free_ns, copy.alloc_ns);
	copy.freed_nth = MAX(copy.freed_nth, copy.made_nth);
	copy.mem = copy.mem < TTMON_MT_MEM_MAX ? copy.mem : TTMON_MT_MEM_UNKNOWN;
	copy.id = keep(map, a->id);
	copy.name = keep_again(map, 0, a->name);
	copy.site = keep_again(map, 1, a->site);
	if (!copy.id || !copy.name || !copy.site)
		return -ENOMEM;
	map->allocs[map->nr++] = copy;
	return 0;
}

int ttmon_mt_map_order(struct ttmon_mt_map *map, uint32_t pid, uint64_t to)
{
	struct order *p = reallocarray(map->orders, map->nr_orders + 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	map->orders = p;
	p[map->nr_orders++] = (struct order){ pid, to };
	return 0;
}

static enum ttmon_mt_mem mem_of(const struct ttmon_run_alloc *a)
{
	if (a->method == TTMON_METHOD_DEVICE)
		return TTMON_MT_MEM_DEVICE;
	if (a->method == TTMON_METHOD_MANAGED)
		return TTMON_MT_MEM_MANAGED;
	if (a->method == TTMON_METHOD_REGISTERED)
		return TTMON_MT_MEM_REGISTERED;
	if (ttmon_run_is_pinned(a))
		return TTMON_MT_MEM_PINNED;
	return ttmon_run_is_host(a) ? TTMON_MT_MEM_MAPPED : TTMON_MT_MEM_UNKNOWN;
}

static uint64_t nth(uint32_t of_run)
{
	return of_run == TTMON_RUN_NONE ? TTMON_MT_NO_NTH : of_run;
}

int ttmon_mt_map_run(struct ttmon_mt_map *map, const struct ttmon_run *run, uint32_t pid)
{
	int err = 0;

	for (size_t i = 0; i < run->nr_procs && !err; i++)
		if (run->procs[i].numbered && (!pid || run->procs[i].pid == pid))
			err = ttmon_mt_map_order(map, run->procs[i].pid, run->procs[i].numbered);
	for (size_t i = 0; i < run->nr_allocs && !err; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];
		uint32_t of = run->procs[a->proc].pid;
		enum ttmon_mt_mem mem = mem_of(a);
		char site[2048];

		if (mem == TTMON_MT_MEM_UNKNOWN || !a->addr || !a->size || (pid && of != pid))
			continue;
		err = ttmon_mt_map_add(map, &(struct ttmon_mt_alloc){
						    .addr = a->addr,
						    .size = a->size,
						    .alloc_ns = a->alloc_ns,
						    .free_ns = a->flags & TTMON_RUN_LIVE ? UINT64_MAX : a->free_ns,
						    .made_nth = nth(a->made_nth),
						    .freed_nth = nth(a->freed_nth),
						    .copies = (uint64_t)a->h2d_copies + a->d2h_copies + a->other_copies,
						    .bytes = ttmon_run_moved(a),
						    .d2h_bytes = a->d2h_bytes,
						    .others = a->other_copies,
						    .id = a->id,
						    .name = a->name,
						    .site = ttmon_run_site_text(run, a->site, site, sizeof(site)),
						    .pid = of,
						    .user = (uint32_t)i,
						    .mem = mem,
						    .in_place = a->flags & TTMON_RUN_IN_PLACE,
					    });
	}
	return err;
}

const struct ttmon_mt_alloc *ttmon_mt_map_get(const struct ttmon_mt_map *map, size_t *n)
{
	*n = map->nr;
	return map->allocs;
}

/* ---- the trees ---- */

static int by_life(const void *a, const void *b, void *allocs)
{
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct ttmon_mt_alloc *x = (const struct ttmon_mt_alloc *)allocs + i,
				    *y = (const struct ttmon_mt_alloc *)allocs + k;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->alloc_ns != y->alloc_ns)
		return x->alloc_ns < y->alloc_ns ? -1 : 1;
	return i < k ? -1 : i > k;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static unsigned int rank(const struct ttmon_mt_alloc *a)
{
	return a->mem != TTMON_MT_MEM_UNKNOWN && a->mem != TTMON_MT_MEM_MAPPED;
}

static uint64_t life(const struct ttmon_mt_alloc *a)
{
	return a->free_ns - a->alloc_ns;
}

/* The segment that addr is in: bounds[s] <= addr < bounds[s + 1]; -1, nr: before and behind all. */
static int64_t segment(const struct tree *t, uint64_t addr)
{
	uint32_t lo = TTMON_SEARCH((uint32_t)0, t->nr + 1, mid, t->bounds[mid] <= addr);
	return (int64_t)lo - 1;
}

/* The nodes that make up the range of a: up to two a level. */
#define MAX_NODES 64

static unsigned int nodes_of(const struct tree *t, const struct ttmon_mt_alloc *a, uint32_t *nodes)
{
	uint32_t l = (uint32_t)segment(t, a->addr) + t->nr, r = (uint32_t)segment(t, a->addr + a->size) + t->nr;
	unsigned int n = 0;

	for (; l < r; l /= 2, r /= 2) {
		if (l & 1)
			nodes[n++] = l++;
		if (r & 1)
			nodes[n++] = --r;
	}
	return n;
}

/* Allocation i goes behind the others of a node. */
static void append(const struct ttmon_mt_map *map, struct tree *t, uint32_t node, uint32_t k, uint32_t i)
{
	const struct ttmon_mt_alloc *a = &map->allocs[i], *b = k > t->first[node] ? &map->allocs[t->best[node]] : NULL;

	t->list[k] = i;
	t->latest[k] = b && map->allocs[t->latest[k - 1]].free_ns > a->free_ns ? t->latest[k - 1] : i;
	if (b && rank(b) > rank(a))
		return;
	t->many[node] = b && rank(b) == rank(a);
	if (!b || rank(a) > rank(b) || life(a) > life(b))
		t->best[node] = i;
}

static int fill(const struct ttmon_mt_map *map, struct tree *t, const uint32_t *order, size_t n, size_t *pieces)
{
	size_t nodes = 2 * (size_t)t->nr, total = 0;
	_cleanup_free_ uint32_t *at = calloc(nodes, sizeof(*at));
	uint32_t of[MAX_NODES];

	t->first = calloc(nodes + 1, sizeof(*t->first));
	t->best = calloc(nodes, sizeof(*t->best));
	t->many = calloc(nodes, sizeof(*t->many));
	if (!t->first || !t->best || !t->many || !at)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		unsigned int nr = nodes_of(t, &map->allocs[order[i]], of);

		for (unsigned int k = 0; k < nr; k++)
			t->first[of[k] + 1]++;
		total += nr;
		if (total > MAX_PIECES - *pieces)
			return -E2BIG;
	}
	*pieces += total;
	for (size_t i = 0; i < nodes; i++) {
		at[i] = t->first[i];
		t->first[i + 1] += t->first[i];
	}
	t->list = calloc(total, sizeof(*t->list));
	t->latest = calloc(total, sizeof(*t->latest));
	if (!t->list || !t->latest)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		unsigned int nr = nodes_of(t, &map->allocs[order[i]], of);

		for (unsigned int k = 0; k < nr; k++)
			append(map, t, of[k], at[of[k]]++, order[i]);
	}
	return 0;
}

/*
 * Two processes that had the same pid one after the other do not have one sequence of launch numbers.
 */
static uint64_t order_of(const struct ttmon_mt_map *map, uint32_t pid)
{
	uint64_t to = 0;
	unsigned int n = 0;

	for (size_t i = 0; i < map->nr_orders; i++) {
		if (map->orders[i].pid != pid)
			continue;
		to = map->orders[i].to;
		n++;
	}
	return n == 1 ? to : 0;
}

static int plant(const struct ttmon_mt_map *map, struct tree *t, const uint32_t *order, size_t n, size_t *pieces)
{
	size_t nr = 0, out = 0;

	t->bounds = calloc(2 * n, sizeof(*t->bounds));
	if (!t->bounds)
		return -ENOMEM;
	t->order = order_of(map, t->pid);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_alloc *a = &map->allocs[order[i]];

		t->bounds[nr++] = a->addr;
		t->bounds[nr++] = a->addr + a->size;
		t->order = a->made_nth == TTMON_MT_NO_NTH ? 0 : t->order;
	}
	qsort(t->bounds, nr, sizeof(*t->bounds), by_number);
	for (size_t i = 0; i < nr; i++)
		if (!i || t->bounds[i] != t->bounds[i - 1])
			t->bounds[out++] = t->bounds[i];
	t->nr = (uint32_t)out - 1;
	return fill(map, t, order, n, pieces);
}

int ttmon_mt_map_done(struct ttmon_mt_map *map)
{
	_cleanup_free_ uint32_t *order = calloc(map->nr + 1, sizeof(*order));
	size_t n = 0, trees = 0, pieces = 0;
	int err = 0;

	drop_trees(map);
	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->nr; i++)
		if (map->allocs[i].size)
			order[n++] = i;
	if (!n)
		return 0;
	qsort_r(order, n, sizeof(*order), by_life, map->allocs);
	for (size_t i = 0; i < n; i++)
		trees += !i || map->allocs[order[i]].pid != map->allocs[order[i - 1]].pid;
	map->trees = calloc(trees, sizeof(*map->trees));
	if (!map->trees)
		return -ENOMEM;
	for (size_t i = 0, end; i < n && !err; i = end) {
		struct tree *t = &map->trees[map->nr_trees++];

		t->pid = map->allocs[order[i]].pid;
		for (end = i + 1; end < n && map->allocs[order[end]].pid == t->pid;)
			end++;
		err = plant(map, t, order + i, end - i, &pieces);
	}
	if (err)
		drop_trees(map);
	return err;
}

/* ---- looking up ---- */

/* The key by which lifetimes are compared. */
enum by { BY_NOTHING, BY_TIME, BY_NUMBER };

struct query {
	enum by by;
	uint64_t at;
};

struct found {
	uint32_t best;
	bool many;
};

static bool is_made(const struct ttmon_mt_alloc *a, const struct query *q)
{
	return (q->by == BY_TIME ? a->alloc_ns : a->made_nth) <= q->at;
}

static bool is_there(const struct ttmon_mt_alloc *a, const struct query *q)
{
	return (q->by == BY_TIME ? a->free_ns : a->freed_nth) > q->at;
}

/* Replaces what was found if a is better. doubt: two of equal rank are ambiguous. */
static void take(const struct ttmon_mt_map *map, struct found *f, uint32_t i, const struct query *q, bool doubt)
{
	const struct ttmon_mt_alloc *a = &map->allocs[i], *b = f->best == UINT32_MAX ? NULL : &map->allocs[f->best];
	bool better;

	if (b && rank(a) < rank(b))
		return;
	if (!b || rank(a) > rank(b)) {
		*f = (struct found){ i, false };
		return;
	}
	better = q->by == BY_NOTHING ? life(a) > life(b)
				     : a->alloc_ns > b->alloc_ns || (a->alloc_ns == b->alloc_ns && i > f->best);
	*f = (struct found){ better ? i : f->best, f->many || doubt };
}

/* Numbers of launches only grow with time, so both keys have the same order. */
static void look_at(const struct ttmon_mt_map *map, const struct tree *t, uint32_t node, const struct query *q,
		    struct found *f)
{
	uint32_t lo = t->first[node], hi = t->first[node + 1];

	if (lo < hi && q->by == BY_NOTHING) {
		take(map, f, t->best[node], q, true);
		f->many |= f->best == t->best[node] && t->many[node];
		return;
	}
	lo = TTMON_SEARCH(lo, hi, mid, is_made(&map->allocs[t->list[mid]], q));
	for (unsigned int back = 0;
	     back < MAX_BACK && lo > t->first[node] && is_there(&map->allocs[t->latest[lo - 1]], q); back++, lo--)
		if (is_there(&map->allocs[t->list[lo - 1]], q))
			take(map, f, t->list[lo - 1], q, false);
}

static void find_in(const struct ttmon_mt_map *map, const struct tree *t, uint64_t addr, const struct query *q,
		    struct found *f, uint64_t *lo, uint64_t *hi)
{
	int64_t s = segment(t, addr);

	if (s >= 0)
		*lo = MAX(*lo, t->bounds[s]);
	if (s < (int64_t)t->nr)
		*hi = MIN(*hi, t->bounds[s + 1]);
	if (s < 0 || s >= (int64_t)t->nr)
		return;
	for (uint32_t node = (uint32_t)s + t->nr; node; node /= 2)
		look_at(map, t, node, q, f);
}

static enum ttmon_mt_how find_one(const struct ttmon_mt_map *map, const struct tree *t, uint64_t addr,
				  const struct ttmon_mt_when *when, struct found *f, uint64_t *lo, uint64_t *hi)
{
	struct found by_number = { UINT32_MAX, false };

	if (when->ns) {
		find_in(map, t, addr, &(struct query){ BY_TIME, when->ns }, f, lo, hi);
		return TTMON_MT_SURE;
	}
	find_in(map, t, addr, &(struct query){ BY_NOTHING, 0 }, f, lo, hi);
	if (f->best == UINT32_MAX || when->nth >= t->order)
		return f->many ? TTMON_MT_AMBIGUOUS : TTMON_MT_SURE;
	find_in(map, t, addr, &(struct query){ BY_NUMBER, when->nth }, &by_number, lo, hi);
	/* No allocation was live by its number, although the address was accessed. */
	if (by_number.best == UINT32_MAX)
		return TTMON_MT_AMBIGUOUS;
	if (by_number.best == f->best && !f->many)
		return TTMON_MT_SURE;
	*f = by_number;
	return TTMON_MT_BY_ORDER;
}

uint32_t ttmon_mt_map_at(const struct ttmon_mt_map *map, uint64_t addr, const struct ttmon_mt_when *when,
			 enum ttmon_mt_how *how, uint64_t *lo, uint64_t *hi)
{
	const struct query q = { when->ns ? BY_TIME : BY_NOTHING, when->ns };
	struct found all = { UINT32_MAX, false };

	*lo = 0;
	*hi = UINT64_MAX;
	*how = TTMON_MT_SURE;
	for (size_t i = 0; i < map->nr_trees; i++) {
		struct found f = { UINT32_MAX, false };
		enum ttmon_mt_how one;

		if (when->pid && map->trees[i].pid && map->trees[i].pid != when->pid)
			continue;
		one = find_one(map, &map->trees[i], addr, when, &f, lo, hi);
		if (f.best == UINT32_MAX)
			continue;
		take(map, &all, f.best, &q, true);
		if (all.best == f.best)
			*how = one;
	}
	if (all.many)
		*how = TTMON_MT_AMBIGUOUS;
	return all.best;
}

bool ttmon_mt_map_known(void *map, uint64_t addr, uint64_t *lo, uint64_t *hi)
{
	const struct ttmon_mt_when when = ttmon_mt_when_of(NULL, 0);
	enum ttmon_mt_how how;

	return ttmon_mt_map_at(map, addr, &when, &how, lo, hi) != UINT32_MAX;
}
