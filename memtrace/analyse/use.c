// SPDX-License-Identifier: GPL-2.0-only
#include "memtrace/analyse/use.h"

#include "memtrace/model/shape.h"
#include "lib/base/util.h"

#define PAGE_SECTORS 128u
#define RANGE_PAGES  64u /* of a range that is reported: few allocations lie in one */
#define RANGE_BYTES  ((uint64_t)RANGE_PAGES * PAGE_SECTORS * TTMON_MT_SECTOR)
#define MAX_PIECES   4096u
/*
 * Pages whose uses are further apart in time are reported separately: the memory may have been reused
 * by another allocation.
 */
#define JOIN_NS 1000000u

struct page {
	uint64_t number;
	uint32_t pid;
	uint8_t low, high; /* sectors */
	uint64_t ns;	   /* the earliest */
	uint64_t reads, writes, sectors;
};

struct ttmon_mt_use {
	uint32_t mask, nr, max;
	uint32_t *slots;    /* open addressing: index in pages + 1, 0: free */
	struct page *pages; /* as they were first seen */
	struct page *last;  /* found: the next record is most likely there too */
	struct ttmon_mt_used *touches;
	uint32_t nr_touches;
};

int ttmon_mt_use_new(uint32_t pages, struct ttmon_mt_use **ret)
{
	struct ttmon_mt_use *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->mask = 2 * pages - 1;
	u->max = pages;
	u->slots = calloc(2 * (size_t)pages, sizeof(*u->slots));
	u->pages = calloc(pages, sizeof(*u->pages));
	u->touches = calloc(pages, sizeof(*u->touches));
	if (!u->slots || !u->pages || !u->touches) {
		ttmon_mt_use_free(u);
		return -ENOMEM;
	}
	*ret = u;
	return 0;
}

void ttmon_mt_use_free(struct ttmon_mt_use *u)
{
	if (!u)
		return;
	free(u->slots);
	free(u->pages);
	free(u->touches);
	free(u);
}

/* The slot of a page, or the free one where it would be. */
static uint32_t *slot_of(const struct ttmon_mt_use *u, uint32_t pid, uint64_t number)
{
	uint64_t hash = (number ^ (uint64_t)pid << 40) * 0x9e3779b97f4a7c15;
	uint32_t at = (uint32_t)(hash >> 32) & u->mask;

	while (u->slots[at]) {
		const struct page *p = &u->pages[u->slots[at] - 1];

		if (p->number == number && p->pid == pid)
			break;
		at = (at + 1) & u->mask;
	}
	return &u->slots[at];
}

/* Returns a page, made if necessary. The caller has ensured that there is room. */
static struct page *page_of(struct ttmon_mt_use *u, uint32_t pid, uint64_t number, uint64_t ns)
{
	uint32_t *slot;

	if (u->last && u->last->number == number && u->last->pid == pid)
		return u->last;
	slot = slot_of(u, pid, number);
	if (!*slot) {
		u->pages[u->nr++] = (struct page){ .number = number, .pid = pid, .low = PAGE_SECTORS - 1, .ns = ns };
		*slot = u->nr;
	}
	return u->last = &u->pages[*slot - 1];
}

bool ttmon_mt_use_add(struct ttmon_mt_use *u, uint32_t pid, const struct ttmon_mt_rec *rec, unsigned int kind,
		      uint64_t ns)
{
	struct ttmon_mt_shape s;
	uint64_t before = UINT64_MAX;

	if (rec->space == TTMON_MT_SHARED || rec->space == TTMON_MT_LOCAL || kind == TTMON_MT_PREFETCH)
		return true;
	/* Every sector of every lane may be in a page of its own. */
	if (u->nr + 2 * TTMON_MT_LANES > u->max)
		return false;
	ttmon_mt_get_shape(rec, kind, &s);
	for (unsigned int i = 0; i < s.nr_runs; i++) {
		uint64_t sector = s.runs[i].sector, end = sector + s.runs[i].n;

		while (sector < end) {
			uint64_t stop = MIN(end, (sector / PAGE_SECTORS + 1) * PAGE_SECTORS);
			struct page *p = page_of(u, pid, sector / PAGE_SECTORS, ns);

			p->low = MIN(p->low, (uint8_t)(sector % PAGE_SECTORS));
			p->high = MAX(p->high, (uint8_t)((stop - 1) % PAGE_SECTORS));
			p->sectors += stop - sector;
			p->ns = MIN(p->ns, ns);
			if (p->number != before) {
				p->reads += ttmon_mt_reads(kind);
				p->writes += ttmon_mt_writes(kind);
				before = p->number;
			}
			sector = stop;
		}
	}
	return true;
}

bool ttmon_mt_use_touch(struct ttmon_mt_use *u, const struct ttmon_mt_touch *t, uint64_t ns)
{
	struct ttmon_mt_used *last = u->nr_touches ? &u->touches[u->nr_touches - 1] : NULL;
	uint64_t sectors = t->size / TTMON_MT_SECTOR;

	if (last && last->pid == t->pid &&
	    (last->addr + last->size == t->addr || (last->addr == t->addr && last->size == t->size))) {
		last->size += last->addr == t->addr ? 0 : t->size;
		last->reads += t->reads;
		last->writes += t->writes;
		last->sectors += sectors;
		last->ns = MIN(last->ns, ns);
		return true;
	}
	if (u->nr_touches == u->max)
		return false;
	u->touches[u->nr_touches++] = (struct ttmon_mt_used){ .pid = t->pid,
							      .addr = t->addr,
							      .size = t->size,
							      .ns = ns,
							      .reads = t->reads,
							      .writes = t->writes,
							      .sectors = sectors };
	return true;
}

static int by_range(const void *a, const void *b)
{
	const struct ttmon_mt_used *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The part of n that bytes of size have; at least one of what is not none. */
static uint64_t part(uint64_t n, uint64_t bytes, uint64_t size)
{
	return MAX((uint64_t)((unsigned __int128)n * bytes / size), (uint64_t)(n != 0));
}

static void tell_touch(const struct ttmon_mt_used *t, void (*fn)(void *ctx, const struct ttmon_mt_used *used),
		       void *ctx)
{
	uint64_t piece = MAX(RANGE_BYTES, t->size / MAX_PIECES + 1);

	for (uint64_t done = 0; done < t->size; done += piece) {
		uint64_t bytes = MIN(piece, t->size - done);

		fn(ctx, &(struct ttmon_mt_used){ .pid = t->pid,
						 .addr = t->addr + done,
						 .size = bytes,
						 .ns = t->ns,
						 .reads = part(t->reads, bytes, t->size),
						 .writes = part(t->writes, bytes, t->size),
						 .sectors = part(t->sectors, bytes, t->size) });
	}
}

static int by_place(const void *a, const void *b)
{
	const struct page *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void tell_pages(struct ttmon_mt_use *u, void (*fn)(void *ctx, const struct ttmon_mt_used *used), void *ctx)
{
	struct ttmon_mt_used r = { 0 };
	unsigned int pages = 0;

	if (!u->nr)
		return;
	if (u->nr > u->max / 8) {
		memset(u->slots, 0, ((size_t)u->mask + 1) * sizeof(*u->slots));
	} else {
		/* The last one first: what is left is found as it was before that one came. */
		for (uint32_t i = u->nr; i-- > 0;)
			*slot_of(u, u->pages[i].pid, u->pages[i].number) = 0;
	}
	qsort(u->pages, u->nr, sizeof(*u->pages), by_place);
	for (uint32_t i = 0; i < u->nr; i++) {
		const struct page *p = &u->pages[i];
		uint64_t from = (p->number * PAGE_SECTORS + p->low) * TTMON_MT_SECTOR;
		uint64_t size = (uint64_t)(p->high - p->low + 1) * TTMON_MT_SECTOR;

		if (r.size && (r.pid != p->pid || r.addr + r.size != from || pages == RANGE_PAGES ||
			       MAX(p->ns, r.ns) - MIN(p->ns, r.ns) > JOIN_NS)) {
			fn(ctx, &r);
			r.size = 0;
		}
		if (!r.size) {
			r = (struct ttmon_mt_used){ .pid = p->pid, .addr = from, .ns = p->ns };
			pages = 0;
		}
		pages++;
		r.size += size;
		r.ns = MIN(r.ns, p->ns);
		r.reads += p->reads;
		r.writes += p->writes;
		r.sectors += p->sectors;
	}
	fn(ctx, &r);
	u->nr = 0;
	u->last = NULL;
}

void ttmon_mt_use_tell(struct ttmon_mt_use *u, void (*fn)(void *ctx, const struct ttmon_mt_used *used), void *ctx)
{
	tell_pages(u, fn, ctx);
	qsort(u->touches, u->nr_touches, sizeof(*u->touches), by_range);
	for (uint32_t i = 0; i < u->nr_touches; i++)
		tell_touch(&u->touches[i], fn, ctx);
	u->nr_touches = 0;
}
