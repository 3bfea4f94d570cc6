// SPDX-License-Identifier: GPL-2.0-only
/*
 * recs.c: the records of the history: one per allocation, live or kept. Part of the history (hot
 * thread, pure).
 *
 * Records lie in chunks that are reused but never freed; the index of a layer holds record numbers,
 * and the sequence table maps the n-th allocation to its record. A record is in its layer's index
 * exactly while it is live. Over the limit the user with the most records makes room (users.c): that
 * user's oldest ended record goes, then a live one, whose bytes stay in the sums (condensed.c). Both
 * are counted.
 */
#include "daemon/core/history/history_int.h"
#include "lib/base/grow.h"

#define CHUNK 512
#define NO_ID UINT32_MAX

#define ORDINALS_MAX (1u << 20) /* per process */
#define YOUNG_MAX    8u

struct ttmon_alloc *ttmon_rec_at(const struct ttmon_history *h, uint32_t id)
{
	return &h->chunks[id / CHUNK][id % CHUNK];
}

struct ttmon_alloc *ttmon_rec_by_seq(const struct ttmon_history *h, uint64_t seq)
{
	uint32_t id = ttmon_seqtab_get(&h->seqs, seq);

	return id == TTMON_SEQTAB_NONE ? NULL : ttmon_rec_at(h, id);
}

struct ttmon_alloc *ttmon_rec_next(const struct ttmon_history *h, uint32_t *hand)
{
	struct ttmon_alloc *a;

	if (!h->nr_chunks)
		return NULL;
	*hand = *hand < h->nr_chunks * CHUNK ? *hand : 0;
	a = ttmon_rec_at(h, (*hand)++);
	/* In a free place traffic is NULL; a record without transfers has ttmon_no_traffic. */
	return a->traffic ? a : NULL;
}

enum ttmon_layer ttmon_layer_of(unsigned int method)
{
	switch (method) {
	case TTMON_METHOD_PIECE:
		return TTMON_LAYER_PIECE;
	case TTMON_METHOD_REGISTERED:
		return TTMON_LAYER_REG;
	case TTMON_METHOD_CUSTOM:
		return TTMON_LAYER_CUSTOM;
	case TTMON_METHOD_MMAP:
		return TTMON_LAYER_MAP;
	case TTMON_METHOD_HOST_ALLOC:
	case TTMON_METHOD_MANAGED:
	case TTMON_METHOD_POOL:
	case TTMON_METHOD_DEVICE:
		return TTMON_LAYER_DEV;
	default:
		return TTMON_LAYER_TT;
	}
}

/*
 * Host and CUDA addresses share one space; a Tenstorrent address means nothing without its device, and
 * is never looked up.
 */
uint64_t ttmon_layer_key(const struct ttmon_alloc *a)
{
	return ttmon_rec_layer(a) == TTMON_LAYER_TT ? ttmon_alloc_seq(a) : a->addr;
}

struct ttmon_alloc *ttmon_rec_holding(const struct ttmon_history *h, const struct ttmon_hproc *p,
				      enum ttmon_layer layer, uint64_t addr)
{
	const struct ttmon_ranges *r = &p->layer[layer];
	struct ttmon_ranges_pos pos;

	if (!ttmon_ranges_floor(r, addr, &pos))
		return NULL;
	do {
		struct ttmon_alloc *a = addr < pos.end ? ttmon_rec_at(h, pos.val) : NULL;

		if (a && addr < ttmon_rec_limit(a))
			return a;
	} while (ttmon_ranges_back(r, addr, &pos));
	return NULL;
}

struct ttmon_alloc *ttmon_rec_overlapping(const struct ttmon_history *h, const struct ttmon_hproc *p,
					  enum ttmon_layer layer, uint64_t lo, uint64_t hi)
{
	const struct ttmon_ranges *r = &p->layer[layer];
	struct ttmon_ranges_pos pos;

	if (lo >= hi || !ttmon_ranges_seek(r, lo, &pos))
		return NULL;
	do {
		struct ttmon_alloc *a = pos.start < hi && pos.end > lo ? ttmon_rec_at(h, pos.val) : NULL;

		if (pos.start >= hi)
			return NULL;
		if (a && ttmon_end_of(pos.start, a->size ? a->size : 1) > lo)
			return a;
	} while (ttmon_ranges_next(r, &pos));
	return NULL;
}

static int add_chunk(struct ttmon_history *h)
{
	struct ttmon_alloc *chunk;

	if (TTMON_GROW(h->chunks, h->cap_chunks, h->nr_chunks + 1, 16))
		return -ENOMEM;
	chunk = calloc(CHUNK, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	/* A free record's address field is the number of the next free one. */
	for (uint32_t i = 0; i < CHUNK; i++)
		chunk[i].addr = i + 1 < CHUNK ? h->nr_chunks * CHUNK + i + 1 : NO_ID;
	h->free_id = h->nr_chunks * CHUNK;
	h->chunks[h->nr_chunks++] = chunk;
	return 0;
}

/* Removes a record that has ended and whose site has it in its sums. */
static void drop(struct ttmon_history *h, struct ttmon_alloc *a)
{
	uint64_t seq = ttmon_alloc_seq(a);
	uint32_t id = ttmon_seqtab_get(&h->seqs, seq);

	ttmon_traffic_drop(h, a);
	free(a->name);
	h->procs[a->proc]->records--;
	h->users[h->procs[a->proc]->user].records--;
	h->records--;
	ttmon_seqtab_del(&h->seqs, seq);
	memset(a, 0, sizeof(*a));
	a->addr = h->free_id;
	h->free_id = id;
}

/* Removes a record whose sums are kept elsewhere: in its site, and in the groups for advice. */
static void fold(struct ttmon_history *h, struct ttmon_alloc *a)
{
	struct ttmon_proc *p = &h->procs[a->proc]->pub;

	for (size_t i = 0; i < h->nr_hooks; i++)
		if (h->hooks[i].folded)
			h->hooks[i].folded(h, a);
	p->folded_to_ns = MAX(p->folded_to_ns, a->free_ns);
	h->totals.folded++;
	drop(h, a);
}

/*
 * A record that ended before its user was known is in another user's list: it moves to the right one
 * when it comes up.
 */
static void go_home(struct ttmon_history *h, uint32_t user)
{
	const uint64_t *front;

	while ((front = ttmon_fifo_front(&h->users[user].freed))) {
		const struct ttmon_alloc *a = ttmon_rec_by_seq(h, *front);
		uint64_t seq = *front;

		if (!a || h->procs[a->proc]->user == user ||
		    ttmon_fifo_push(&h->users[h->procs[a->proc]->user].freed, &seq) < 0)
			return;
		ttmon_fifo_pop(&h->users[user].freed);
	}
}

/* Folds the record of this user that ended first. False: there is none. */
static bool fold_oldest(struct ttmon_history *h, uint32_t user)
{
	struct ttmon_alloc *a;

	go_home(h, user);
	if (!h->users[user].freed.n)
		return false;
	a = ttmon_rec_by_seq(h, *(const uint64_t *)ttmon_fifo_front(&h->users[user].freed));
	ttmon_fifo_pop(&h->users[user].freed);
	h->nr_freed--;
	if (!a)
		return true;
	ttmon_users_paid(h, h->procs[a->proc], TTMON_QUOTA_RECORDS, 1);
	fold(h, a);
	h->totals.evicted++;
	return true;
}

/* The same for records that are still in other users' lists. */
static bool fold_elsewhere(struct ttmon_history *h, uint32_t user)
{
	for (uint32_t i = 0; i < h->nr_users && !h->users[user].freed.n; i++)
		go_home(h, i);
	return fold_oldest(h, user);
}

/* The next live record by address in the largest layer, after the one taken last. */
static struct ttmon_alloc *next_live(const struct ttmon_history *h, struct ttmon_hproc *p)
{
	const struct ttmon_ranges *r = &p->layer[0];
	struct ttmon_ranges_pos pos;
	bool at = false;

	for (unsigned int l = 1; l < TTMON_LAYER_MAX; l++)
		if (p->layer[l].n > r->n)
			r = &p->layer[l];
	/* Extents go before mappings, which are then not all known any more. */
	if (r == &p->layer[TTMON_LAYER_MAP] && p->layer[TTMON_LAYER_EXTENT].n)
		r = &p->layer[TTMON_LAYER_EXTENT];
	if (p->hand)
		at = ttmon_ranges_floor(r, p->hand - 1, &pos) && ttmon_ranges_next(r, &pos);
	if (!at && !ttmon_ranges_seek(r, 0, &pos))
		return NULL;
	p->hand = pos.start + 1;
	return ttmon_rec_at(h, pos.val);
}

/* Records made just now are skipped: their call site is not known yet. */
static bool condense_one(struct ttmon_history *h, struct ttmon_hproc *p)
{
	struct ttmon_alloc *a = next_live(h, p);

	for (unsigned int n = 0; n < YOUNG_MAX && a && a->bits & TTMON_AL_SITE_QUEUED; n++)
		a = next_live(h, p);
	if (!a)
		return false;
	ttmon_users_paid(h, p, a->method == TTMON_METHOD_MMAP ? TTMON_QUOTA_MAPPINGS : TTMON_QUOTA_RECORDS, 1);
	ttmon_condensed_add(h, a);
	ttmon_advice_condensed(h, a);
	drop(h, a);
	h->totals.evicted++;
	return true;
}

static void make_room(struct ttmon_history *h)
{
	while (h->records >= h->cfg.max_allocations) {
		struct ttmon_hproc *p = ttmon_users_payer(h, false);

		if (p && (fold_oldest(h, p->user) || fold_elsewhere(h, p->user) || condense_one(h, p)))
			continue;
		p = ttmon_users_payer(h, true);
		if (p && (fold_oldest(h, p->user) || fold_elsewhere(h, p->user) || condense_one(h, p)))
			continue;
		if (!fold_oldest(h, ttmon_users_most_freed(h)))
			return;
	}
}

/*
 * Folds a user's records that have waited long enough; with any, the oldest too. Returns when there is
 * more to do.
 */
static uint64_t fold_user(struct ttmon_history *h, struct ttmon_user *u, bool any)
{
	const uint64_t *front;

	while ((front = ttmon_fifo_front(&u->freed)) && !(any && h->nr_freed <= TTMON_FREED_KEPT)) {
		struct ttmon_alloc *a = ttmon_rec_by_seq(h, *front);

		if (a && a->bits & (TTMON_AL_SITE_QUEUED | TTMON_AL_FREE_QUEUED))
			return h->now_ns;
		if (a && !any && (h->now_ns < a->free_ns || h->now_ns - a->free_ns < h->cfg.fold_ns))
			return ttmon_end_of(a->free_ns, h->cfg.fold_ns);
		ttmon_fifo_pop(&u->freed);
		h->nr_freed--;
		if (a)
			fold(h, a);
	}
	return UINT64_MAX;
}

uint64_t ttmon_rec_fold(struct ttmon_history *h)
{
	uint64_t due = UINT64_MAX;

	if (h->cfg.keep_all)
		return due;
	for (uint32_t i = 0; i < h->nr_users; i++)
		due = MIN(due, fold_user(h, &h->users[i], false));
	/* A program that frees a thousand times per millisecond must not fill memory for a minute. */
	if (h->nr_freed > TTMON_FREED_KEPT)
		due = MIN(due, fold_user(h, &h->users[ttmon_users_most_freed(h)], true));
	return due;
}

/* Generations: for free addresses the next one is remembered, live records have their own. */
static uint32_t next_gen(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t key)
{
	uint64_t gen = ttmon_hmap_del(&p->gens, key);
	uint32_t id;

	gen = gen == TTMON_HMAP_NONE ? p->gen_floor : MAX(gen, (uint64_t)p->gen_floor);
	for (unsigned int l = 0; l < TTMON_LAYER_TT; l++)
		if (ttmon_ranges_get(&p->layer[l], key, &id))
			gen = MAX(gen, (uint64_t)ttmon_rec_at(h, id)->gen + 1);
	p->gen_max = MAX(p->gen_max, (uint32_t)gen);
	return (uint32_t)gen;
}

static void keep_gen(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t key, uint32_t gen)
{
	uint64_t known = ttmon_hmap_get(&p->gens, key);
	uint64_t max = h->cfg.keep_all ? h->cfg.max_allocations : TTMON_GENS_SERVICE;

	if (p->gens.n >= max) {
		/* Forgets all and continues with a number with which no (address, generation) can occur twice. */
		ttmon_hmap_fini(&p->gens);
		p->gen_floor = p->gen_max + 1;
		return;
	}
	if (known != TTMON_HMAP_NONE && known > gen)
		return;
	if (ttmon_hmap_put(&p->gens, key, (uint64_t)gen + 1) < 0) {
		ttmon_history_no_memory(h);
		p->gen_floor = p->gen_max + 1;
	}
}

uint32_t ttmon_rec_ordinal(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t site, uint64_t size)
{
	uint64_t key = ttmon_mix64(size ^ ttmon_mix64((uint64_t)site + 1));
	uint64_t n = ttmon_hmap_get(&p->ordinals, key);

	n = n == TTMON_HMAP_NONE ? 0 : n;
	if (n == 0 && p->ordinals.n >= ORDINALS_MAX) {
		h->totals.incomplete = true;
		return 0;
	}
	if (ttmon_hmap_put(&p->ordinals, key, n + 1) < 0)
		ttmon_history_no_memory(h);
	return (uint32_t)n;
}

static int index_new(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a, uint32_t id)
{
	enum ttmon_layer layer = ttmon_rec_layer(a);
	int err;

	a->seq_low = (uint32_t)h->next_seq;
	a->seq_high = (uint8_t)(h->next_seq >> 32);
	err = ttmon_seqtab_put(&h->seqs, h->next_seq, id);
	if (err || (!a->addr && layer != TTMON_LAYER_TT))
		return err;
	if (layer == TTMON_LAYER_TT) {
		err = ttmon_ranges_add(&p->layer[layer], h->next_seq, h->next_seq + 1, id);
	} else {
		a->gen = next_gen(h, p, a->addr);
		ttmon_rec_forget(p);
		err = ttmon_ranges_add(&p->layer[layer], a->addr, ttmon_end_of(a->addr, a->size ? a->size : 1), id);
	}
	if (err)
		ttmon_seqtab_del(&h->seqs, h->next_seq);
	return err;
}

struct ttmon_alloc *ttmon_rec_new(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_rec_init *in)
{
	struct ttmon_alloc *a;
	uint32_t id;

	if (in->method != TTMON_METHOD_MMAP)
		ttmon_count_made(h, p, in);
	make_room(h);
	if (h->free_id == NO_ID && add_chunk(h) < 0)
		goto no_memory;
	id = h->free_id;
	a = ttmon_rec_at(h, id);
	h->free_id = (uint32_t)a->addr;
	*a = (struct ttmon_alloc){
		.addr = in->addr,
		.size = in->size,
		.alloc_ns = in->ts_ns,
		.pin_ns = in->pin_ns,
		.traffic = &ttmon_no_traffic,
		.proc = p->pub.idx,
		.api_flags = in->api_flags,
		.made_nth = ttmon_procs_nth(p, in->ts_ns),
		.freed_nth = UINT32_MAX,
		.fn = in->fn,
		.device = in->device,
		.method = in->method,
		.bits = in->bits,
		.states = in->extent ? TTMON_ST_CREATED | TTMON_ST_EXTENT : TTMON_ST_CREATED,
	};
	if (in->name) {
		a->name = malloc(strlen(in->name) + 1);
		if (a->name)
			memcpy(a->name, in->name, strlen(in->name) + 1);
		else
			ttmon_history_no_memory(h);
	}
	if (index_new(h, p, a, id) < 0) {
		free(a->name);
		memset(a, 0, sizeof(*a));
		a->addr = h->free_id;
		h->free_id = id;
		goto no_memory;
	}
	h->next_seq++;
	h->records++;
	p->records++;
	h->users[p->user].records++;
	if (in->method == TTMON_METHOD_MMAP) {
		a->ordinal = ttmon_rec_ordinal(h, p, 0, a->size);
	} else {
		ttmon_count_live(h, p, a);
	}
	if (ttmon_method_pinned(a->method) && (a->addr || ttmon_rec_pinned(a)))
		a->states |= TTMON_ST_PINNED | TTMON_ST_POPULATED;
	if (ttmon_rec_pinned(a)) {
		ttmon_advice_saw(h, a, in->pin_ns, 0);
		ttmon_pins_add(h, p, a);
	}
	return a;

no_memory:
	ttmon_history_no_memory(h);
	return NULL;
}

void ttmon_rec_unindex(struct ttmon_history *h, const struct ttmon_alloc *a)
{
	struct ttmon_hproc *p = h->procs[a->proc];
	struct ttmon_ranges *r = &p->layer[ttmon_rec_layer(a)];
	uint64_t key = ttmon_layer_key(a);
	uint32_t id;

	/* A record taken out earlier may have a successor at its address. */
	if (!ttmon_ranges_get(r, key, &id) || ttmon_rec_at(h, id) != a)
		return;
	ttmon_ranges_del(r, key);
	if (ttmon_rec_layer(a) == TTMON_LAYER_TT)
		return;
	ttmon_rec_forget(p);
	keep_gen(h, p, key, a->gen);
}

void ttmon_recs_end(struct ttmon_history *h, struct ttmon_alloc *a, uint64_t ts_ns, enum ttmon_end end,
		    uint64_t unpin_ns)
{
	struct ttmon_hproc *p = h->procs[a->proc];
	uint64_t seq = ttmon_alloc_seq(a);
	struct ttmon_alloc *piece;

	/* Pieces end with the memory that they are part of. */
	while (ttmon_rec_backing(a) &&
	       (piece = ttmon_rec_overlapping(h, p, TTMON_LAYER_PIECE, a->addr, ttmon_rec_limit(a)))) {
		ttmon_recs_end(h, piece, ts_ns, end, 0);
		/* The allocator's own free of the piece may still come. */
		ttmon_calls_ghost(p, piece);
	}

	ttmon_rec_unindex(h, a);
	a->free_ns = MAX(MAX(ts_ns, a->alloc_ns), 1ULL);
	a->unpin_ns = unpin_ns;
	a->end = end;
	/* An ended process launches nothing more. */
	if (end != TTMON_END_EXIT && end != TTMON_END_EXEC)
		a->freed_nth = MAX(ttmon_procs_nth(p, ts_ns), a->made_nth);
	a->states |= TTMON_ST_FREED;
	if (a->method != TTMON_METHOD_MMAP) {
		ttmon_count_ended(h, p, a);
	} else {
		ttmon_rec_settle(h, a, TTMON_RDIR_H2D);
		ttmon_rec_settle(h, a, TTMON_RDIR_D2H);
	}
	if (ttmon_rec_pinned(a)) {
		ttmon_advice_saw(h, a, 0, unpin_ns);
		ttmon_pins_del(h, p, a);
	}
	for (size_t i = 0; i < h->nr_hooks; i++)
		if (h->hooks[i].ended)
			h->hooks[i].ended(h, a);
	if (ttmon_fifo_push(&h->users[p->user].freed, &seq) < 0)
		ttmon_history_no_memory(h);
	else
		h->nr_freed++;
}

void ttmon_rec_move(struct ttmon_history *h, struct ttmon_alloc *a, uint64_t addr, uint64_t size, uint64_t ts_ns)
{
	struct ttmon_hproc *p = h->procs[a->proc];
	struct ttmon_ranges *r = &p->layer[ttmon_rec_layer(a)];
	uint32_t id = ttmon_seqtab_get(&h->seqs, ttmon_alloc_seq(a)), there;

	ttmon_rec_forget(p);
	if (ttmon_ranges_get(r, a->addr, &there) && there == id) {
		if (a->addr == addr) {
			a->size = size;
			ttmon_traffic_resized(a);
			ttmon_ranges_set_end(r, addr, ttmon_end_of(addr, size));
			return;
		}
		ttmon_rec_unindex(h, a);
	}
	a->gen = next_gen(h, p, addr);
	a->addr = addr;
	a->size = size;
	ttmon_traffic_resized(a);
	if (ttmon_ranges_add(r, addr, ttmon_end_of(addr, size), id) == 0)
		return;
	ttmon_history_no_memory(h);
	ttmon_recs_end(h, a, ts_ns, TTMON_END_FREE, 0);
}

void ttmon_rec_fini(struct ttmon_history *h)
{
	uint64_t seq = 0;

	while ((seq = ttmon_seqtab_next(&h->seqs, seq)) != TTMON_SEQTAB_END) {
		drop(h, ttmon_rec_by_seq(h, seq));
		seq++;
	}
	for (uint32_t i = 0; i < h->nr_chunks; i++)
		free(h->chunks[i]);
	free(h->chunks);
	ttmon_seqtab_fini(&h->seqs);
}
