// SPDX-License-Identifier: GPL-2.0-only
/*
 * known.c: finds inactive lanes by known allocations. A kernel works on a few buffers: the last
 * answers are remembered with the ranges they hold in.
 */
#include "memtrace/read/known.h"
#include "lib/base/util.h"

#define HIGHEST (1ull << 57) /* no address is above */

/* The answer for addr, and around it. */
static const struct ttmon_mt_span *span_at(struct ttmon_mt_knows *k, uint64_t addr)
{
	struct ttmon_mt_span *s;
	uint64_t lo = 0, hi = UINT64_MAX;

	for (unsigned int i = 0; i < TTMON_MT_KNOWN_SPANS; i++) {
		unsigned int at = (k->at + i) % TTMON_MT_KNOWN_SPANS;

		s = &k->spans[at];
		if (s->there && addr >= s->lo && addr <= s->last) {
			k->at = at;
			return s;
		}
	}
	s = &k->spans[k->next];
	k->next = (k->next + 1) % TTMON_MT_KNOWN_SPANS;
	*s = (struct ttmon_mt_span){ .known = k->opts->known(k->opts->known_ctx, addr, &lo, &hi), .there = true };
	s->lo = lo;
	s->last = MIN(hi - 1, (uint64_t)INT64_MAX);
	return s;
}

/*
 * Do all 32 addresses lie in it? Its last address is below 2^63: what is lower or higher has the
 * highest bit in one of the differences.
 */
static bool all_in(const struct ttmon_mt_span *s, const uint64_t *addr)
{
	uint64_t wrong = 0, lo = s->lo, last = s->last;

	for (unsigned int i = 0; i < TTMON_MT_LANES; i++)
		wrong |= (addr[i] - lo) | (last - addr[i]);
	return !(wrong >> 63);
}

uint32_t ttmon_mt_known_lanes(struct ttmon_mt_knows *k, unsigned int space, const uint64_t *addr, uint32_t lanes,
			      uint32_t mask)
{
	const struct ttmon_mt_span *s = NULL;
	uint32_t known = 0;

	if (!k->opts->known || space > TTMON_MT_GLOBAL)
		return mask;
	if (mask == UINT32_MAX && addr[0] < HIGHEST) {
		s = span_at(k, addr[0]);
		if (all_in(s, addr))
			return mask;
	}
	for (unsigned int i = 0; i < TTMON_MT_LANES; i++) {
		if (!(lanes >> i & 1) || !addr[i] || addr[i] >= HIGHEST)
			continue;
		if (!s || addr[i] < s->lo || addr[i] > s->last)
			s = span_at(k, addr[i]);
		known |= (uint32_t)s->known << i;
	}
	if (!known)
		return mask;
	k->stats->outside += (mask & ~known) != 0;
	k->stats->outside_lanes += (uint64_t)__builtin_popcount(mask & ~known);
	return known;
}
