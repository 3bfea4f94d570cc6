// SPDX-License-Identifier: GPL-2.0-only
/*
 * slots.c: bucket per millisecond, sort at close, deliver in order.
 *
 * Hot thread only. Adding an event is one copy into its bucket's chunk of the arena, nothing else.
 * When the slot closes, its chunks are walked in order of arrival and a small reference per event is
 * sorted. Few or nearly sorted events are sorted by insertion from the back; where an event would have
 * to move further than MAX_MOVES, a new run begins, and the runs are merged. A drain goes ring by
 * ring, so a full bucket is a sequence of many short sorted streams: it first gets a radix sort by its
 * 20 bits of time, in two passes, which leaves only equal times to insertion and merge. Each step is
 * stable, which makes the order (ts_ns, cpu, arrival). The work is bounded by n log n for any input.
 *
 * Promises: arena, buckets and the references of one slot (about the size of the arena again) are
 * allocated once and touched only as far as they are needed. Slot numbers and times are kept modulo
 * 2^64 and compared by signed difference, so that start = no * 1 ms holds across the wrap too. The
 * callbacks must not call back into the slots.
 *
 * Must not know what an event means: of a record it reads ts_ns and cpu.
 */
#include "daemon/core/stream/slots.h"

#include <assert.h>

#define CHUNK_BYTES 65536u
#define CHUNK_WORDS (CHUNK_BYTES / sizeof(uint64_t))
#define NO_CHUNK    UINT32_MAX
#define WINDOW_MAX  4096u
#define GAP_MAX	    4096u /* most slots closed one by one; never less than WINDOW_MAX */
#define ARENA_BYTES (16u << 20)
#define MAX_MOVES   16u
#define DIGIT_BITS  10
#define DIGITS	    (1u << DIGIT_BITS)
#define DEAL_MIN    256u /* events; for fewer, the radix sort's counters cost more than a merge */
#define DEAL_BREAKS 8u	 /* places where time goes back, from which the radix sort pays */
#define AHEAD	    4	 /* events before delivery at which the owner reads ahead, */
#define PREFETCH    8	 /* and at which the event itself is read */

_Static_assert(TTMON_SLOT_NS <= 1ULL << (2 * DIGIT_BITS), "two passes must do");
_Static_assert(GAP_MAX >= WINDOW_MAX, "a jump must not leave events behind");

/* 64 KiB of the arena. An entry is one word with the size of the record, then the record. */
struct chunk {
	uint32_t next; /* next chunk of the same bucket, or of the free list */
	uint32_t used; /* words */
	uint64_t words[CHUNK_WORDS - 1];
};

_Static_assert(sizeof(struct chunk) == CHUNK_BYTES, "positions are computed from it");

struct bucket {
	uint32_t first, last; /* chunks in order of arrival */
	uint32_t events, late, lost;
};

struct ref {
	int64_t off_ns; /* relative to the slot's start; negative: late */
	uint32_t pos;	/* word of the arena where the record begins */
	uint32_t cpu;
};

struct ttmon_slots {
	struct ttmon_slots_ops ops;
	void *ctx;

	bool started;
	uint64_t oldest_no; /* oldest open slot */
	uint64_t oldest_ns; /* its start: oldest_no * 1 ms modulo 2^64 */
	uint64_t span_ns;   /* length of the window in ns */
	uint32_t window;
	uint32_t head;	 /* bucket of the oldest open slot */
	uint32_t extent; /* slots used, counted from the oldest */
	struct bucket *buckets;

	struct chunk *arena;
	uint32_t nr_chunks;
	uint32_t fresh;	     /* chunks from here on were never used */
	uint32_t free_chunk; /* head of the free list */

	struct ref *refs, *spare; /* of the slot being closed */
	uint32_t *runs;		  /* index of the first reference of each run */

	struct ttmon_slots_stats stats;
};

TTMON_FREEP(slots_freep, struct ttmon_slots, ttmon_slots_free);

int ttmon_slots_new(const struct ttmon_slots_cfg *cfg, const struct ttmon_slots_ops *ops, void *ctx,
		    struct ttmon_slots **ret)
{
	uint32_t window = cfg->window ? cfg->window : TTMON_SLOTS_WINDOW;
	/* With fewer chunks than slots, a few events in each slot would fill the arena. */
	uint64_t bytes =
		cfg->arena_bytes ? cfg->arena_bytes : MAX((uint64_t)ARENA_BYTES, (uint64_t)window * CHUNK_BYTES);
	_cleanup_(slots_freep) struct ttmon_slots *s = NULL;
	size_t max_refs;

	if (window < 2 || window > WINDOW_MAX)
		return -EINVAL;
	/* A position is a 32-bit number of words. */
	if (bytes < CHUNK_BYTES || bytes / sizeof(uint64_t) > UINT32_MAX)
		return -EINVAL;

	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	s->ctx = ctx;
	s->window = window;
	s->span_ns = window * TTMON_SLOT_NS;
	s->nr_chunks = (uint32_t)(bytes / CHUNK_BYTES);
	s->free_chunk = NO_CHUNK;

	/*
	 * All events of the window may lie in one slot, each of the smallest size. Every run but the last is
	 * longer than MAX_MOVES.
	 */
	max_refs = s->nr_chunks * (CHUNK_BYTES / (sizeof(uint64_t) + sizeof(struct ttmon_event)));
	s->buckets = calloc(window, sizeof(*s->buckets));
	s->arena = malloc((size_t)s->nr_chunks * CHUNK_BYTES);
	s->refs = malloc(max_refs * sizeof(*s->refs));
	s->spare = malloc(max_refs * sizeof(*s->spare));
	s->runs = malloc((max_refs / MAX_MOVES + 2) * sizeof(*s->runs));
	if (!s->buckets || !s->arena || !s->refs || !s->spare || !s->runs)
		return -ENOMEM;
	for (uint32_t i = 0; i < window; i++)
		s->buckets[i].first = s->buckets[i].last = NO_CHUNK;

	*ret = TAKE_PTR(s);
	return 0;
}

void ttmon_slots_free(struct ttmon_slots *s)
{
	if (!s)
		return;
	free(s->buckets);
	free(s->arena);
	free(s->refs);
	free(s->spare);
	free(s->runs);
	free(s);
}

static void start_at(struct ttmon_slots *s, uint64_t ts_ns)
{
	s->oldest_no = ts_ns / TTMON_SLOT_NS;
	s->oldest_ns = s->oldest_no * TTMON_SLOT_NS;
	s->started = true;
}

/*
 * The chunk freed last is used first: it is in the cache, and memory that was never needed stays
 * untouched.
 */
static uint32_t take_chunk(struct ttmon_slots *s)
{
	uint32_t idx = s->free_chunk;

	if (idx != NO_CHUNK)
		s->free_chunk = s->arena[idx].next;
	else if (s->fresh < s->nr_chunks)
		idx = s->fresh++;
	else
		return NO_CHUNK;
	s->arena[idx].next = NO_CHUNK;
	s->arena[idx].used = 0;
	return idx;
}

static uint64_t *reserve(struct ttmon_slots *s, struct bucket *b, size_t words)
{
	struct chunk *c = b->last == NO_CHUNK ? NULL : &s->arena[b->last];
	uint64_t *entry;

	if (!c || words > ARRAY_SIZE(c->words) - c->used) {
		uint32_t idx;

		if (words > ARRAY_SIZE(c->words))
			return NULL;
		idx = take_chunk(s);
		if (idx == NO_CHUNK)
			return NULL;
		if (c)
			c->next = idx;
		else
			b->first = idx;
		b->last = idx;
		c = &s->arena[idx];
	}
	entry = &c->words[c->used];
	c->used += (uint32_t)words;
	return entry;
}

static void release_chunks(struct ttmon_slots *s, struct bucket *b)
{
	if (b->first != NO_CHUNK) {
		s->arena[b->last].next = s->free_chunk;
		s->free_chunk = b->first;
	}
	*b = (struct bucket){ .first = NO_CHUNK, .last = NO_CHUNK };
}

static inline bool ref_before(const struct ref *a, const struct ref *b)
{
	return a->off_ns < b->off_ns || (a->off_ns == b->off_ns && a->cpu < b->cpu);
}

/*
 * Collects references to all events of the oldest slot, in order of arrival. Returns the number of
 * places where that is not their order of time.
 */
static uint32_t gather(struct ttmon_slots *s, const struct bucket *b)
{
	struct ref *ref = s->refs;
	uint32_t breaks = 0;

	for (uint32_t idx = b->first; idx != NO_CHUNK; idx = s->arena[idx].next) {
		const struct chunk *c = &s->arena[idx];
		uint32_t base = (uint32_t)((const uint64_t *)c->words - (const uint64_t *)s->arena);

		for (uint32_t w = 0; w < c->used; w += 1 + (uint32_t)(c->words[w] / sizeof(uint64_t))) {
			const struct ttmon_event *ev = (const void *)&c->words[w + 1];

			*ref = (struct ref){
				.off_ns = (int64_t)(ev->ts_ns - s->oldest_ns),
				.pos = base + w + 1,
				.cpu = ev->cpu,
			};
			breaks += ref > s->refs && ref_before(ref, ref - 1);
			ref++;
		}
	}
	return breaks;
}

/* Late events all get the smallest key; insertion sorts them among themselves. */
static inline uint32_t digit(const struct ref *ref, unsigned int pass)
{
	uint32_t off = ref->off_ns < 0 ? 0 : (uint32_t)ref->off_ns;

	return off >> (pass * DIGIT_BITS) & (DIGITS - 1);
}

static void deal(struct ref *dst, const struct ref *src, uint32_t n, unsigned int pass)
{
	uint32_t at[DIGITS] = { 0 }, sum = 0;

	for (uint32_t i = 0; i < n; i++)
		at[digit(&src[i], pass)]++;
	for (uint32_t d = 0; d < DIGITS; d++) {
		uint32_t count = at[d];

		at[d] = sum;
		sum += count;
	}
	for (uint32_t i = 0; i < n; i++)
		dst[at[digit(&src[i], pass)]++] = src[i];
}

/* Sorts by insertion into runs. Returns the number of runs. */
static uint32_t form_runs(struct ref *refs, uint32_t n, uint32_t *runs)
{
	uint32_t nr_runs = 0, run = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t limit = i - run > MAX_MOVES ? i - MAX_MOVES : run;
		struct ref ref = refs[i];
		uint32_t at = i;

		while (at > limit && ref_before(&ref, &refs[at - 1]))
			at--;
		if (i == 0 || (at > run && ref_before(&ref, &refs[at - 1]))) {
			run = runs[nr_runs++] = i;
			continue;
		}
		if (at < i) {
			memmove(&refs[at + 1], &refs[at], (i - at) * sizeof(ref));
			refs[at] = ref;
		}
	}
	return nr_runs;
}

/* Of equal elements the one in a comes first: it arrived earlier. */
static void merge_two(struct ref *dst, const struct ref *a, size_t na, const struct ref *b, size_t nb)
{
	const struct ref *a_end = a + na, *b_end = b + nb;

	while (a < a_end && b < b_end)
		*dst++ = ref_before(b, a) ? *b++ : *a++;
	memcpy(dst, a, (size_t)(a_end - a) * sizeof(*dst));
	memcpy(dst + (a_end - a), b, (size_t)(b_end - b) * sizeof(*dst));
}

/* Merges neighbouring runs, pass by pass, until one is left. */
static const struct ref *merge_runs(struct ttmon_slots *s, uint32_t n, uint32_t nr_runs)
{
	struct ref *src = s->refs, *dst = s->spare;

	while (nr_runs > 1) {
		struct ref *tmp = src;
		uint32_t out = 0;

		for (uint32_t r = 0; r < nr_runs; r += 2) {
			uint32_t lo = s->runs[r];
			uint32_t mid = r + 1 < nr_runs ? s->runs[r + 1] : n;
			uint32_t hi = r + 2 < nr_runs ? s->runs[r + 2] : n;

			merge_two(dst + lo, src + lo, mid - lo, src + mid, hi - mid);
			s->runs[out++] = lo;
		}
		nr_runs = out;
		src = dst;
		dst = tmp;
	}
	return src;
}

/* Returns the events of the oldest slot in order. */
static const struct ref *sort_bucket(struct ttmon_slots *s, const struct bucket *b)
{
	uint32_t n = b->events, breaks = gather(s, b), nr_runs;
	bool dealt = n >= DEAL_MIN && breaks > DEAL_BREAKS;

	if (!breaks)
		return s->refs;
	if (dealt) {
		deal(s->spare, s->refs, n, 0);
		deal(s->refs, s->spare, n, 1);
	}
	nr_runs = form_runs(s->refs, n, s->runs);
	s->stats.sorted += dealt || nr_runs > 1;
	return merge_runs(s, n, nr_runs);
}

static void deliver(struct ttmon_slots *s, const struct bucket *b)
{
	const uint64_t *words = (const uint64_t *)s->arena;
	const struct ref *refs = sort_bucket(s, b);

	for (uint32_t i = 0; i < b->events; i++) {
		if (i + PREFETCH < b->events)
			__builtin_prefetch(&words[refs[i + PREFETCH].pos]);
		if (s->ops.ahead && i + AHEAD < b->events)
			s->ops.ahead(s->ctx, (const void *)&words[refs[i + AHEAD].pos]);
		s->ops.event(s->ctx, (const void *)&words[refs[i].pos], words[refs[i].pos - 1], refs[i].off_ns < 0);
	}
}

static void close_oldest(struct ttmon_slots *s, bool forced)
{
	struct bucket *b = &s->buckets[s->head];
	struct ttmon_slot_view view = {
		.no = s->oldest_no,
		.events = b->events,
		.late = b->late,
		.lost = b->lost,
		.forced = forced,
	};

	deliver(s, b);
	s->stats.closed++;
	s->stats.forced += forced;
	s->ops.close(s->ctx, &view);

	release_chunks(s, b);
	s->head = s->head + 1 == s->window ? 0 : s->head + 1;
	s->oldest_no++;
	s->oldest_ns += TTMON_SLOT_NS;
	if (s->extent)
		s->extent--;
}

/*
 * Moves the window on by n slots. After GAP_MAX of them every bucket is empty, and the rest of the gap
 * is passed at once.
 */
static void move_on(struct ttmon_slots *s, uint64_t n, bool forced)
{
	uint64_t closing = MIN(n, (uint64_t)GAP_MAX);

	for (uint64_t i = 0; i < closing; i++)
		close_oldest(s, forced);
	s->oldest_no += n - closing;
	s->oldest_ns += (n - closing) * TTMON_SLOT_NS;
}

void ttmon_slots_add(struct ttmon_slots *s, const struct ttmon_event *ev, size_t size)
{
	bool late = false;
	uint64_t off, *entry;
	struct bucket *b;
	uint32_t n, idx;

	assert(size >= sizeof(*ev) && size % sizeof(uint64_t) == 0);

	if (!s->started)
		start_at(s, ev->ts_ns);
	off = ev->ts_ns - s->oldest_ns;
	if (off >= s->span_ns) {
		late = ttmon_before(ev->ts_ns, s->oldest_ns);
		if (!late)
			move_on(s, off / TTMON_SLOT_NS - (s->window - 1), true);
		off = late ? 0 : ev->ts_ns - s->oldest_ns;
	}
	n = (uint32_t)(off / TTMON_SLOT_NS);
	idx = s->head + n;
	b = &s->buckets[idx < s->window ? idx : idx - s->window];
	if (n >= s->extent)
		s->extent = n + 1;

	entry = reserve(s, b, 1 + size / sizeof(uint64_t));
	if (!entry) {
		b->lost++;
		s->stats.arena_full++;
		return;
	}
	entry[0] = size;
	memcpy(&entry[1], ev, size);
	b->events++;
	b->late += late;
	s->stats.late += late;
	s->stats.slotted += !late;
}

void ttmon_slots_advance(struct ttmon_slots *s, uint64_t watermark_ns)
{
	if (!s->started)
		start_at(s, watermark_ns);
	else if (!ttmon_before(watermark_ns, s->oldest_ns))
		move_on(s, (watermark_ns - s->oldest_ns) / TTMON_SLOT_NS, false);
}

void ttmon_slots_finish(struct ttmon_slots *s)
{
	move_on(s, s->extent, false);
}

uint64_t ttmon_slots_limit_ns(const struct ttmon_slots *s)
{
	return s->started ? s->oldest_ns + s->span_ns : 0;
}

void ttmon_slots_get_stats(const struct ttmon_slots *s, struct ttmon_slots_stats *ret)
{
	*ret = s->stats;
}
