// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_heat.c: `ttmon heat` with 20,000 allocations of 64 bins each: the order, the scale (all cells
 * of all rows), and a screen of 60 rows, which is the cost of a key press. The floor is a loop that
 * only adds up the bins of all rows.
 */
#include "tools/heat/map.c"
#include "tools/heat/text.c"
#include "lib/os/clock.h"

#define ROWS  20000
#define BINS  64
#define LINES 60
#define TIMES 20

static uint64_t seed = 88172645463325252;
static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static void fill(struct ttmon_heatmap *map)
{
	*map = (struct ttmon_heatmap){ .start_ns = NSEC_PER_SEC, .end_ns = 61 * NSEC_PER_SEC, .nr_procs = 2 };
	map->width_ns = (map->end_ns - map->start_ns) / TTMON_HEATMAP_BINS + 1;
	for (unsigned int i = 0; i < ROWS; i++) {
		struct ttmon_heatmap_row *r = ttmon_heatmap_begin(map);

		if (!r)
			abort();
		r->site = strdup("churn_small_pins(std::vector<int> const&)+0x42");
		r->seq = i;
		r->alloc_ns = map->start_ns;
		for (unsigned int b = 0; b < BINS; b++) {
			uint64_t bytes = rnd() % 65536;

			if (ttmon_heatmap_put(map, map->start_ns + (b * 1000 + rnd() % 900) * map->width_ns, 1, bytes))
				abort();
			r->bytes += bytes;
		}
		ttmon_heatmap_keep(map);
	}
}

int main(void)
{
	struct ttmon_heatmap map;
	struct ttmon_heatmap_scale scale;
	struct ttmon_heatmap_span span;
	struct ttmon_heat_layout l;
	struct ttmon_heat_line line;
	uint64_t t[5] = { 0 }, sum = 0;

	fill(&map);
	for (unsigned int i = 0; i < TIMES; i++) {
		t[0] = ttmon_mono_ns();
		for (size_t r = 0; r < map.nr; r++)
			for (uint32_t b = 0; b < map.rows[r].nr_bins; b++)
				sum += map.rows[r].bins[b].bytes;
		t[1] -= t[0] - ttmon_mono_ns();
		t[0] = ttmon_mono_ns();
		if (ttmon_heatmap_sort(&map, i % TTMON_HEAT_SORTS, i % 2))
			abort();
		t[2] -= t[0] - ttmon_mono_ns();
		ttmon_heat_fit(&map, 200, true, &l);
		span = (struct ttmon_heatmap_span){ map.start_ns, map.end_ns, l.map, false };
		t[0] = ttmon_mono_ns();
		ttmon_heatmap_find_scale(&map, &span, &scale);
		t[3] -= t[0] - ttmon_mono_ns();
		t[0] = ttmon_mono_ns();
		for (size_t r = 0; r < LINES; r++) {
			ttmon_heat_row(&map, &l, &span, &scale, r, &line);
			sum += line.n;
		}
		t[4] -= t[0] - ttmon_mono_ns();
	}
	printf("%u allocations, %llu bins, map of %u columns (%llu)\n", ROWS, (unsigned long long)map.nr_bins, l.map,
	       (unsigned long long)(sum & 1));
	printf("  floor, adding up all bins  %8.2f ms\n", (double)t[1] / TIMES / 1e6);
	printf("  order                      %8.2f ms  %5.1f x\n", (double)t[2] / TIMES / 1e6,
	       (double)t[2] / (double)t[1]);
	printf("  scale, all cells           %8.2f ms  %5.1f x\n", (double)t[3] / TIMES / 1e6,
	       (double)t[3] / (double)t[1]);
	printf("  a screen of %d rows        %8.2f ms  %5.1f x\n", LINES, (double)t[4] / TIMES / 1e6,
	       (double)t[4] / (double)t[1]);
	ttmon_heatmap_fini(&map);
	return 0;
}
