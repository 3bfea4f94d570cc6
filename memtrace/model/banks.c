// SPDX-License-Identifier: GPL-2.0-only
/* memtrace/model/banks.c: wavefronts of shared memory, sectors of local memory. */
#include "memtrace/model/shape_parts.h"
#include "lib/base/util.h"

#define BANKS 32
#define WORDS (UINT64_MAX >> 2) /* word numbers are taken modulo this + 1 */

/*
 * Distinct words by the bank they lie in. A lane's words are consecutive, so it has at most one in a
 * bank, as no access is wider than 64 bytes.
 */
struct words {
	uint8_t n[BANKS];
	uint64_t word[BANKS][TTMON_MT_LANES];
};

/* Of lanes from to to - 1 of the list: how many distinct words, and the most in one bank. */
static unsigned int count_words(struct words *w, const struct ttmon_mt_lanes *l, unsigned int from, unsigned int to,
				unsigned int width, unsigned int *worst)
{
	unsigned int sum = 0, most = 0;

	memset(w->n, 0, sizeof(w->n));
	for (unsigned int i = from; i < to; i++) {
		unsigned int nr = ((unsigned int)(l->addr[i] & 3) + width + 3) >> 2;

		for (unsigned int k = 0; k < nr; k++) {
			uint64_t word = ((l->addr[i] >> 2) + k) & WORDS;
			unsigned int b = word % BANKS, n = w->n[b], t = 0;

			while (t < n && w->word[b][t] != word)
				t++;
			if (t < n)
				continue;
			w->word[b][n] = word;
			w->n[b] = (uint8_t)(n + 1);
			sum++;
			most = MAX(most, n + 1);
		}
	}
	*worst = most;
	return sum;
}

/* Lanes of one phase: it moves up to 128 bytes. */
static unsigned int phase_lanes(unsigned int width)
{
	return width <= 4 ? 32 : width <= 8 ? 16 : width <= 16 ? 8 : width <= 32 ? 4 : 2;
}

/* The list's first lane from on that is not in the group of lane from. */
static unsigned int group_end(const struct ttmon_mt_lanes *l, unsigned int from, unsigned int group)
{
	unsigned int to = from + 1;

	while (to < l->n && l->lane[to] / group == l->lane[from] / group)
		to++;
	return to;
}

/*
 * Lanes that are aligned to their width, 16 bytes at most, in a window of 64 MiB: sorted by phase and
 * place, without a look at what was there.
 */
static bool banks_natural(const struct ttmon_mt_lanes *l, unsigned int width, struct ttmon_mt_shape *s)
{
	unsigned int size = MAX(4, width), shift = (unsigned int)__builtin_ctz(size), group = phase_lanes(width),
		     slots = 128 / size, most[4] = { 0 };
	unsigned int distinct = 0;
	uint8_t in[BANKS] = {
		0
	}; /* of a phase's slots of a lane's size, one phase after the other: distinct places there */
	int32_t x[TTMON_MT_LANES];
	uint64_t all = 0;

	for (unsigned int i = 0; i < TTMON_MT_LANES; i++)
		all |= l->addr[i];
	if (all >= 1U << 26 || width > 16 || !ttmon_mt_natural(all, width))
		return false;
	for (unsigned int i = 0; i < TTMON_MT_LANES; i++)
		x[i] = i < l->n ? (int32_t)(l->addr[i] | (uint64_t)(l->lane[i] / group) << 26) : INT32_MAX;
	ttmon_mt_sort32(x);
	for (unsigned int i = 0; i < l->n; i++) {
		int32_t place = x[i] >> shift, before = i ? x[i - 1] >> shift : -1;
		unsigned int slot = (unsigned int)(x[i] >> 26) * slots + (unsigned int)place % slots,
			     more = place != before;

		in[slot] = (uint8_t)(in[slot] + more);
		distinct += more;
	}
	s->phases = s->waves = 0;
	for (unsigned int i = 0; i < BANKS; i++)
		most[i / slots] = MAX(most[i / slots], in[i]);
	for (unsigned int i = 0; i < BANKS / slots; i++) {
		s->phases = (uint16_t)(s->phases + (most[i] > 0));
		s->waves = (uint16_t)(s->waves + most[i]);
	}
	if (width > 4) /* two phases may have the same place */
		distinct = s->unique / 4;
	s->ideal_waves = (uint16_t)((distinct + BANKS - 1) / BANKS);
	return true;
}

void ttmon_mt_banks(const struct ttmon_mt_lanes *l, unsigned int width, struct ttmon_mt_shape *s)
{
	unsigned int group = phase_lanes(width), phases = 0, waves = 0, distinct = 0, worst;
	struct words w;

	if (banks_natural(l, width, s))
		return;
	for (unsigned int i = 0, to; i < l->n; i = to) {
		to = group_end(l, i, group);
		distinct = count_words(&w, l, i, to, width, &worst);
		waves += worst;
		phases++;
	}
	if (phases > 1)
		distinct = count_words(&w, l, 0, l->n, width, &worst);
	s->phases = (uint16_t)phases;
	s->waves = (uint16_t)waves;
	s->ideal_waves = (uint16_t)((distinct + BANKS - 1) / BANKS);
}

bool ttmon_mt_banks_affine(const struct ttmon_mt_rec *rec, unsigned int n, struct ttmon_mt_shape *s)
{
	int64_t stride = n > 1 ? rec->stride : 0;
	unsigned int width = rec->width, group = phase_lanes(width), lane = (unsigned int)__builtin_ctz(rec->mask),
		     end = lane + n;
	uint64_t step = (uint64_t)(stride < 0 ? -stride : stride), low = rec->base, span, q = step / 4;
	unsigned int phases = 0, waves = 0, distinct, per_lane = ((unsigned int)(low & 3) + width + 3) >> 2, period;
	bool dense = step < width + 4; /* no word lies between the bytes of two lanes */

	/*
	 * Else all lanes lie alike in their words, and the words of two lanes in the same banks or in none the
	 * same.
	 */
	if (!dense && (step & 3 || per_lane & (per_lane - 1) || q & (per_lane - 1)))
		return false;
	/* After so many lanes the banks come again. */
	period = q & (BANKS - 1) ? BANKS / (unsigned int)(q & -q) : 1;
	/*
	 * The span of a phase and how it lies in its words are the same seen from either end, so a negative
	 * stride counts from its last lane.
	 */
	for (; lane < end; phases++) {
		unsigned int next = MIN((lane / group + 1) * group, end), k = next - lane;

		if (dense) {
			low = rec->base + (uint64_t)stride * ((stride < 0 ? next - 1 : lane) - (end - n));
			waves += (ttmon_mt_span(low, low + step * (k - 1) + width - 1, 2) + BANKS - 1) / BANKS;
		} else {
			waves += (k + period - 1) / period;
		}
		lane = next;
	}
	span = step * (n - 1) + width - 1;
	low = stride < 0 ? rec->base - step * (n - 1) : rec->base;
	distinct = dense ? ttmon_mt_span(low, low + span, 2) : n * per_lane;
	s->phases = (uint16_t)phases;
	s->waves = (uint16_t)waves;
	s->ideal_waves = (uint16_t)((distinct + BANKS - 1) / BANKS);
	return true;
}

void ttmon_mt_local(const struct ttmon_mt_lanes *l, unsigned int width, struct ttmon_mt_shape *s)
{
	unsigned int sectors = 0, worst;
	struct words w;

	for (unsigned int i = 0, to; i < l->n; i = to) {
		to = group_end(l, i, TTMON_MT_SECTOR / 4);
		sectors += count_words(&w, l, i, to, width, &worst);
	}
	s->sectors = (uint16_t)sectors;
	s->lines = (uint16_t)count_words(&w, l, 0, l->n, width, &worst);
}
