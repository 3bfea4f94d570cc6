// SPDX-License-Identifier: GPL-2.0-only
/* pool.c: see pool.h. */
#include "preload/pool.h"

#define ASKED 8 /* the most blocks checked for readiness in one allocation */

static uint64_t first_page(uint64_t addr)
{
	return addr / TTMON_PIN_PAGE;
}

static uint64_t last_page(uint64_t addr, uint64_t size)
{
	return (addr + size - 1) / TTMON_PIN_PAGE;
}

/*
 * Returns the pages of the range that no other range of the set touches: at most one at each end is
 * shared. The range itself is not in the set. -EEXIST: another range overlaps it by more than that.
 */
static int64_t own_pages(const struct ttmon_pin_pages *p, uint64_t addr, uint64_t pages)
{
	uint64_t first = first_page(addr), last = first + pages - 1, shared = 0;
	struct ttmon_ranges_pos pos;
	bool more;

	if (ttmon_ranges_floor(&p->set, addr, &pos)) {
		uint64_t end = first_page(pos.start) + pos.val - 1;

		if (end > first)
			return -EEXIST;
		shared += end == first;
	}
	more = ttmon_ranges_seek(&p->set, addr, &pos);
	if (more && pos.start <= addr)
		more = ttmon_ranges_next(&p->set, &pos);
	if (more) {
		uint64_t begin = first_page(pos.start);

		if (begin < last)
			return -EEXIST;
		shared += begin == last;
	}
	return (int64_t)(pages - MIN(pages, shared));
}

/* Returns the pages of the range; 0: it was not counted. */
static uint64_t insert(struct ttmon_pin_pages *p, uint64_t addr, uint64_t size)
{
	uint64_t pages;
	int64_t own;

	if (!size || size - 1 > UINT64_MAX - addr)
		return 0;
	pages = last_page(addr, size) - first_page(addr) + 1;
	own = pages > UINT32_MAX ? -E2BIG : own_pages(p, addr, pages);
	if (own < 0 || ttmon_ranges_add(&p->set, addr, addr + size, (uint32_t)pages)) {
		p->uncounted++;
		return 0;
	}
	p->now += (uint64_t)own;
	p->peak = MAX(p->peak, p->now);
	return pages;
}

void ttmon_pin_pages_add(struct ttmon_pin_pages *p, uint64_t addr, uint64_t size)
{
	uint64_t pages = insert(p, addr, size);

	p->pins += pages != 0;
	p->total += pages;
}

void ttmon_pin_pages_put_back(struct ttmon_pin_pages *p, uint64_t addr, uint64_t size)
{
	insert(p, addr, size);
}

uint64_t ttmon_pin_pages_del(struct ttmon_pin_pages *p, uint64_t addr)
{
	uint32_t pages;
	int64_t own;

	if (!ttmon_ranges_get(&p->set, addr, &pages))
		return 0;
	ttmon_ranges_del(&p->set, addr);
	own = own_pages(p, addr, pages);
	p->now -= own > 0 ? MIN(p->now, (uint64_t)own) : 0;
	return (first_page(addr) + pages) * TTMON_PIN_PAGE - addr;
}

void ttmon_pin_pages_fini(struct ttmon_pin_pages *p)
{
	ttmon_ranges_fini(&p->set);
}

static uint32_t remove_at(struct ttmon_pin_pool *p, uint32_t i)
{
	uint32_t block = p->entry[i].block;

	p->pages -= p->entry[i].pages;
	p->n--;
	memmove(&p->entry[i], &p->entry[i + 1], (p->n - i) * sizeof(p->entry[0]));
	return block;
}

bool ttmon_pin_pool_put(struct ttmon_pin_pool *p, uint32_t block, uint64_t size)
{
	if (p->n == TTMON_PIN_CACHED)
		return false;
	p->entry[p->n++] = (struct ttmon_pin_entry){ block, size, ttmon_pin_pages_of(size) };
	p->pages += ttmon_pin_pages_of(size);
	return true;
}

/* Returns the position of the next best fitting block behind (pages, position); p->n: none. */
static uint32_t next_fit(const struct ttmon_pin_pool *p, uint64_t size, uint64_t pages, uint32_t at)
{
	uint64_t max = TTMON_POOL_FIT(ttmon_pin_pages_of(size));
	uint32_t best = p->n;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct ttmon_pin_entry *e = &p->entry[i];

		if (e->size < size || e->pages > max || e->pages < pages || (e->pages == pages && i < at))
			continue;
		if (best == p->n || e->pages < p->entry[best].pages)
			best = i;
	}
	return best;
}

uint32_t ttmon_pin_pool_take(struct ttmon_pin_pool *p, uint64_t size, ttmon_pin_ready_fn ready, void *ctx)
{
	uint32_t i = next_fit(p, size, 0, 0);

	for (unsigned int asked = 0; i < p->n && asked < ASKED; asked++) {
		if (ready(ctx, p->entry[i].block)) {
			p->hits++;
			return remove_at(p, i);
		}
		p->busy++;
		i = next_fit(p, size, p->entry[i].pages, i + 1);
	}
	return TTMON_PIN_NONE;
}

uint32_t ttmon_pin_pool_oldest(struct ttmon_pin_pool *p)
{
	return p->n ? remove_at(p, 0) : TTMON_PIN_NONE;
}

bool ttmon_pin_pool_full(const struct ttmon_pin_pool *p, uint64_t pinned, uint64_t extra)
{
	uint64_t live = pinned - MIN(pinned, p->pages);

	return p->n && pinned + extra > MAX(p->limit, live + extra);
}

uint32_t ttmon_pin_pool_excess(struct ttmon_pin_pool *p, uint64_t pinned, uint64_t extra)
{
	if (!ttmon_pin_pool_full(p, pinned, extra))
		return TTMON_PIN_NONE;
	p->evicted++;
	return remove_at(p, 0);
}
