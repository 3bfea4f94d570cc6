// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_heat_map.c: `ttmon heat` without a service and without a terminal: bins, cells at any zoom,
 * groups, pages, lines of any width, and what a service that lies can do.
 *
 * The commands are part of a program, not of the archive that unit tests are linked with: their
 * sources are included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/cli/show.c"
#include "tools/term/table.c"
#include "tools/heat/map.c"
#include "tools/heat/group.c"
#include "tools/heat/text.c"
#include "tools/heat/json.c"
#include "tools/heat/live.c"

#define T0  (1000 * NSEC_PER_SEC)
#define MIB (1ull << 20)

static uint64_t seed = 0x9e3779b97f4a7c15;
static uint64_t rnd(uint64_t below)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (seed >> 20) % below;
}

/* A map of len ns from T0 on. */
static struct ttmon_heatmap new_map(uint64_t len_ns, uint64_t width_ns)
{
	struct ttmon_heatmap map = { .start_ns = T0,
				     .end_ns = T0 + len_ns,
				     .width_ns = width_ns,
				     .page_size = 4096,
				     .nr_procs = 1,
				     .complete = true };

	map.title = strdup("run.json");
	assert_non_null(map.title);
	return map;
}

/* A row with its life in ms after T0; end_ms 0: live. */
static struct ttmon_heatmap_row *new_row(struct ttmon_heatmap *map, const char *site, unsigned int method,
					 uint64_t size, uint64_t from_ms, uint64_t end_ms)
{
	struct ttmon_heatmap_row *r = ttmon_heatmap_begin(map);

	assert_non_null(r);
	r->id = strdup(site);
	r->site = strdup(site);
	r->comm = strdup("train");
	r->pid = 4711;
	r->method = (uint8_t)method;
	r->size = size;
	r->seq = map->nr;
	r->alloc_ns = T0 + from_ms * NSEC_PER_MS;
	r->live = !end_ms;
	r->free_ns = end_ms ? T0 + end_ms * NSEC_PER_MS : UINT64_MAX;
	return r;
}

static void copy(struct ttmon_heatmap *map, uint64_t ms, uint64_t bytes)
{
	struct ttmon_heatmap_row *r = &map->rows[map->nr];

	assert_int_equal(ttmon_heatmap_put(map, T0 + ms * NSEC_PER_MS, 1, bytes), 0);
	r->bytes += bytes;
	r->copies++;
}

static uint64_t sum(const uint64_t *cells, unsigned int n)
{
	uint64_t s = 0;

	for (unsigned int i = 0; i < n; i++)
		s += cells[i];
	return s;
}

/* ---- bins and cells ---- */

static void columns_are_cut_where_they_say(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 20000; i++) {
		uint64_t len = i % 3 ? 1 + rnd(10000) : 1 + rnd(TTMON_HEATMAP_MAX_NS);
		struct ttmon_heatmap_span s = { T0, T0 + len, 1 + (unsigned int)rnd(TTMON_HEAT_WIDTH_MAX), false };
		unsigned int c = (unsigned int)rnd(s.columns);
		uint64_t from = ttmon_heatmap_column_ns(&s, c), to = ttmon_heatmap_column_ns(&s, c + 1);

		assert_true(from <= to && from >= s.from_ns && to <= s.to_ns);
		if (from < to) {
			assert_int_equal(ttmon_heatmap_column(&s, from), c);
			assert_int_equal(ttmon_heatmap_column(&s, to - 1), c);
		}
		assert_int_equal(ttmon_heatmap_column_ns(&s, s.columns), s.to_ns);
	}
}

static void cells_conserve_the_sums(void **state)
{
	uint64_t cells[TTMON_HEAT_WIDTH_MAX], more[TTMON_HEAT_WIDTH_MAX];

	(void)state;
	for (unsigned int round = 0; round < 300; round++) {
		struct ttmon_heatmap map = new_map(1 + rnd(5000000), 1 + rnd(200000));
		struct ttmon_heatmap_span s = { map.start_ns, map.end_ns, 1 + (unsigned int)rnd(TTMON_HEAT_WIDTH_MAX),
						false };
		struct ttmon_heatmap_span half = s;
		struct ttmon_heatmap_row *r = new_row(&map, "a", TTMON_METHOD_HOST_ALLOC, 1, 0, 0);
		uint64_t bytes = 0, copies = 0, len = map.end_ns - map.start_ns;

		for (unsigned int i = 0; i < 100; i++) {
			/* The last bin must not reach past the end: what lies there is not in the map. */
			uint64_t at = rnd(len / map.width_ns + 1) * map.width_ns, n = rnd(UINT64_MAX >> 30);

			if (at + map.width_ns > len)
				continue;
			assert_int_equal(ttmon_heatmap_put(&map, map.start_ns + at, 1, n), 0);
			bytes += n;
			copies++;
		}
		(void)r;
		ttmon_heatmap_keep(&map);
		assert_int_equal(ttmon_heatmap_sort(&map, TTMON_HEAT_BY_BYTES, false), 0);
		ttmon_heatmap_cells(&map.rows[0], &s, cells);
		assert_int_equal(sum(cells, s.columns), bytes);
		/* Of the same time in two pieces. */
		if (len > 1) {
			s.to_ns = half.from_ns = map.start_ns + 1 + rnd(len - 1);
			ttmon_heatmap_cells(&map.rows[0], &s, cells);
			ttmon_heatmap_cells(&map.rows[0], &half, more);
			assert_int_equal(sum(cells, s.columns) + sum(more, half.columns), bytes);
		}
		half = (struct ttmon_heatmap_span){ map.start_ns, map.end_ns, 7, true };
		ttmon_heatmap_cells(&map.rows[0], &half, cells);
		assert_int_equal(sum(cells, 7), copies);
		ttmon_heatmap_fini(&map);
	}
}

static void too_many_bins_are_made_wider(void **state)
{
	const uint64_t n = TTMON_HEATMAP_MAX_BINS + 1000;
	struct ttmon_heatmap map = new_map(n, 1);
	uint64_t cells[TTMON_HEAT_WIDTH_MAX];
	struct ttmon_heatmap_span s = { T0, T0 + n, 500, false };

	(void)state;
	new_row(&map, "a", TTMON_METHOD_HOST_ALLOC, 1, 0, 0);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(ttmon_heatmap_put(&map, T0 + i, 1, 3), 0);
	ttmon_heatmap_keep(&map);
	assert_int_equal(map.width_ns, 2);
	assert_true(map.nr_bins <= TTMON_HEATMAP_MAX_BINS);
	assert_int_equal(map.nr_bins, map.rows[0].nr_bins);
	ttmon_heatmap_cells(&map.rows[0], &s, cells);
	assert_int_equal(sum(cells, 500), 3 * n);
	ttmon_heatmap_fini(&map);
}

static void late_events_find_their_place(void **state)
{
	struct ttmon_heatmap map = new_map(100 * NSEC_PER_MS, NSEC_PER_MS);

	(void)state;
	new_row(&map, "a", TTMON_METHOD_HOST_ALLOC, 1, 0, 0);
	copy(&map, 50, 1);
	copy(&map, 10, 2);
	copy(&map, 50, 4);
	/* Before the map begins: in its first piece. */
	assert_int_equal(ttmon_heatmap_put(&map, T0 - 5, 1, 8), 0);
	ttmon_heatmap_keep(&map);
	assert_int_equal(ttmon_heatmap_sort(&map, TTMON_HEAT_BY_BYTES, false), 0);
	assert_int_equal(map.rows[0].nr_bins, 3);
	assert_int_equal(map.rows[0].bins[0].bytes, 8);
	assert_int_equal(map.rows[0].bins[1].bytes, 2);
	assert_int_equal(map.rows[0].bins[2].bytes, 5);
	assert_int_equal(map.rows[0].bins[2].copies, 2);
	assert_int_equal(map.nr_bins, 3);
	ttmon_heatmap_fini(&map);
}

static void levels_follow_the_scale(void **state)
{
	struct ttmon_heatmap_scale two = { 1000, 2 }, four = { 65536, 4 };

	(void)state;
	assert_int_equal(ttmon_heatmap_level(&two, 0), 0);
	assert_int_equal(ttmon_heatmap_level(&two, 1000), 8);
	assert_int_equal(ttmon_heatmap_level(&two, 501), 8);
	assert_int_equal(ttmon_heatmap_level(&two, 500), 7);
	assert_int_equal(ttmon_heatmap_level(&two, 1), 1);
	assert_int_equal(ttmon_heatmap_level(&four, 65536), 8);
	assert_int_equal(ttmon_heatmap_level(&four, 16384), 7);
	assert_int_equal(ttmon_heatmap_level(&four, 4), 1);
	/* The edges run out before the levels do. */
	assert_int_equal(ttmon_heatmap_level(&(struct ttmon_heatmap_scale){ 1, 2 }, 1), 8);
	for (uint64_t v = 1; v < 1000; v++)
		assert_true(ttmon_heatmap_level(&two, v) <= ttmon_heatmap_level(&two, v + 1));
}

static void rows_are_sorted(void **state)
{
	static const char *const by[TTMON_HEAT_SORTS][3] = {
		{ "b", "c", "a" }, { "c", "b", "a" }, { "a", "b", "c" }, { "c", "a", "b" }, { "a", "b", "c" }
	};
	struct ttmon_heatmap map = new_map(100 * NSEC_PER_MS, NSEC_PER_MS);

	(void)state;
	new_row(&map, "a", TTMON_METHOD_HOST_ALLOC, 300, 5, 0);
	ttmon_heatmap_keep(&map);
	new_row(&map, "b", TTMON_METHOD_HOST_ALLOC, 200, 6, 0);
	copy(&map, 10, 1000);
	ttmon_heatmap_keep(&map);
	new_row(&map, "c", TTMON_METHOD_HOST_ALLOC, 100, 4, 0);
	copy(&map, 10, 5);
	copy(&map, 11, 5);
	ttmon_heatmap_keep(&map);
	for (unsigned int s = 0; s < TTMON_HEAT_SORTS; s++)
		for (unsigned int reverse = 0; reverse < 2; reverse++) {
			assert_int_equal(ttmon_heatmap_sort(&map, s, reverse), 0);
			for (unsigned int i = 0; i < 3; i++)
				assert_string_equal(map.rows[map.order[i]].site, by[s][reverse ? 2 - i : i]);
		}
	assert_null(ttmon_heat_sort_name(TTMON_HEAT_SORTS));
	ttmon_heatmap_fini(&map);
}

/* ---- groups, pages ---- */

static void call_sites_become_one_row(void **state)
{
	struct ttmon_heatmap map = new_map(100 * NSEC_PER_MS, NSEC_PER_MS);
	uint64_t cells[10];

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		struct ttmon_heatmap_row *r =
			new_row(&map, i == 4 ? "once" : "churn", i == 5 ? TTMON_METHOD_MMAP : TTMON_METHOD_HOST_ALLOC,
				1000 + i, 10 * i, 10 * i + 5);

		copy(&map, 10 * i + 2, 100);
		r->more = i == 1;
		/* The third is freed when the fourth is there: the two were live at one time. */
		r->free_ns += i == 2 ? 10 * NSEC_PER_MS : 0;
		ttmon_heatmap_keep(&map);
	}
	assert_int_equal(ttmon_heatmap_group(&map), 0);
	assert_int_equal(ttmon_heatmap_sort(&map, TTMON_HEAT_BY_BYTES, false), 0);
	assert_int_equal(map.nr, 3);
	assert_int_equal(map.nr_bins, 6);
	const struct ttmon_heatmap_row *r = &map.rows[map.order[0]];
	assert_string_equal(r->site, "churn");
	assert_int_equal(r->allocs, 4);
	assert_int_equal(r->size, 1002 + 1003);
	assert_false(r->size_least);
	assert_int_equal(r->bytes, 400);
	assert_int_equal(r->copies, 4);
	assert_int_equal(r->alloc_ns, T0);
	assert_int_equal(r->free_ns, T0 + 35 * NSEC_PER_MS);
	assert_true(r->more && !r->live);
	ttmon_heatmap_cells(r, &(struct ttmon_heatmap_span){ map.start_ns, map.end_ns, 10, false }, cells);
	for (unsigned int c = 0; c < 10; c++)
		assert_int_equal(cells[c], c < 4 ? 100 : 0);
	ttmon_heatmap_fini(&map);
}

static void pages_share_a_copy(void **state)
{
	struct ttmon_heatmap map = new_map(100 * NSEC_PER_MS, NSEC_PER_MS);
	uint64_t group = 0;

	(void)state;
	map.pages = true;
	/* 100 pages and a bit: groups of two pages, the last shorter. */
	assert_int_equal(ttmon_heatmap_make_pages(&map, 100 * 4096 + 5, 0, 4096, &group), 0);
	assert_int_equal(group, 8192);
	assert_int_equal(map.nr, 51);
	assert_int_equal(map.rows[50].size, 5);
	assert_string_equal(map.rows[1].site, "+ 8.0 KiB");
	assert_int_equal(ttmon_heatmap_put_pages(&map, group, T0, 8000, 400), 0);
	assert_int_equal(map.rows[0].bytes, 192);
	assert_int_equal(map.rows[1].bytes, 208);
	assert_int_equal(map.rows[2].copies, 0);
	/* All of it and more than there is. */
	assert_int_equal(ttmon_heatmap_put_pages(&map, group, T0 + 1, 0, UINT64_MAX), 0);
	assert_int_equal(map.rows[0].copies, 2);
	assert_int_equal(map.rows[50].bytes, 5);
	assert_int_equal(ttmon_heatmap_put_pages(&map, group, T0 + 1, UINT64_MAX - 1, UINT64_MAX), 0);
	ttmon_heatmap_fini(&map);

	map = new_map(100, 1);
	assert_int_equal(ttmon_heatmap_make_pages(&map, UINT64_MAX, 1, 4096, &group), 0);
	assert_true(map.nr <= TTMON_HEATMAP_GROUPS);
	assert_int_equal(ttmon_heatmap_put_pages(&map, group, T0, 0, UINT64_MAX), 0);
	ttmon_heatmap_fini(&map);
}

/* ---- lines ---- */

/* Text of a line: freed by the caller. */
static char *line_text(const struct ttmon_heat_line *line, bool colour)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	ttmon_heat_print(f, line, colour);
	fclose(f);
	return text;
}

static void expect(const struct ttmon_heat_line *line, const char *wanted)
{
	char *text = line_text(line, false);

	assert_string_equal(text, wanted);
	free(text);
}

/* Two allocations of 100 ms, a gap, a checkpoint. */
static struct ttmon_heatmap example(void)
{
	struct ttmon_heatmap map = new_map(100 * NSEC_PER_MS, NSEC_PER_MS);
	struct ttmon_heatmap_row *r;

	r = new_row(&map, "load_batch_from_disk+0x41", TTMON_METHOD_MMAP, 16 * MIB, 20, 0);
	copy(&map, 40, 16 * MIB);
	copy(&map, 41, 16 * MIB);
	copy(&map, 80, 16 * MIB);
	r->more = true;
	ttmon_heatmap_keep(&map);
	new_row(&map, "weights+0x1", TTMON_METHOD_HOST_ALLOC, 4 * MIB, 0, 60);
	copy(&map, 5, 65536);
	ttmon_heatmap_keep(&map);
	assert_int_equal(ttmon_heatmap_add_mark(&map.checkpoints, &map.nr_checkpoints, T0 + 50 * NSEC_PER_MS,
						T0 + 50 * NSEC_PER_MS, "step"),
			 0);
	assert_int_equal(
		ttmon_heatmap_add_mark(&map.gaps, &map.nr_gaps, T0 + 10 * NSEC_PER_MS, T0 + 15 * NSEC_PER_MS, "blind"),
		0);
	assert_int_equal(ttmon_heatmap_sort(&map, TTMON_HEAT_BY_BYTES, false), 0);
	map.now_pages = 1024;
	map.peak_pages = 2048;
	return map;
}

static void lines_are_as_wide_as_the_terminal(void **state)
{
	struct ttmon_heatmap map = example();
	struct ttmon_heatmap_scale scale;
	struct ttmon_heatmap_span span;
	struct ttmon_heat_layout l;
	struct ttmon_heat_line line;
	struct ttmon_heatmap few; /* borrows all that map has */

	(void)state;
	ttmon_heat_fit(&map, 80, true, &l);
	assert_int_equal(l.map, 29);
	span = (struct ttmon_heatmap_span){ map.start_ns, map.end_ns, l.map, false };
	ttmon_heatmap_find_scale(&map, &span, &scale);
	ttmon_heat_head(&map, &l, 0, &line);
	expect(&line, "run.json: 100.0 ms, 2 allocations of 1 process\n");
	ttmon_heat_head(&map, &l, 1, &line);
	expect(&line, "pinned pages: 1,024 at the end, peak 2,048 (8.0 MiB).  Complete.\n");
	/* Where memory may have been missed, none that was seen is not none. */
	few = map;
	few.pages_least = true;
	few.complete = false;
	few.now_pages = 0;
	ttmon_heat_head(&few, &l, 1, &line);
	expect(&line, "pinned pages: - at the end, peak >=2,048 (8.0 MiB).\n");
	few.peak_pages = 0;
	ttmon_heat_head(&few, &l, 1, &line);
	expect(&line, "pinned pages: - at the end, peak -.\n");
	ttmon_heat_columns(&map, &l, &span, &line);
	expect(&line, "CALL SITE              SIZE HOW    ┊0            ┊50ms             MOVED  COPIES\n");
	assert_true(ttmon_heat_marks(&map, &l, &span, &line));
	expect(&line, "(periods)                            ???         ▾\n");
	ttmon_heat_row(&map, &l, &span, &scale, 0, &line);
	expect(&line, "load_batch_from_dis~  16.0M - mmap      ······██··········█·····+  48.0M       3\n");
	ttmon_heat_row(&map, &l, &span, &scale, 1, &line);
	expect(&line, "weights+0x1            4.0M P host ·▄???·············              64.0K       1\n");
	ttmon_heat_legend(&map, &l, &span, &scale, 0, &line);
	expect(&line, "▁▂▃▄▅▆▇█ up to 22.1 MiB in 3.4 ms; each step down a quarter of it\n");
	ttmon_heat_legend(&map, &l, &span, &scale, 1, &line);
	expect(&line, "· idle  ? can be missing  + events not kept  P pinned - pageable m managed  ▾ 1\n");
	l.utf8 = false;
	ttmon_heat_row(&map, &l, &span, &scale, 0, &line);
	expect(&line, "load_batch_from_dis~  16.0M - mmap      ......@@..........@.....+  48.0M       3\n");
	/* Zoomed to where nothing was moved. */
	span.from_ns = T0 + 90 * NSEC_PER_MS;
	ttmon_heatmap_find_scale(&map, &span, &scale);
	assert_int_equal(scale.high, 0);
	ttmon_heat_legend(&map, &l, &span, &scale, 0, &line);
	expect(&line, "nothing was moved in this time\n");
	assert_false(ttmon_heat_marks(&map, &l, &span, &line));
	ttmon_heatmap_fini(&map);
}

/*
 * Figures of which a part was missed are lower bounds or not known, in every form; and memory that may
 * be pinned is not shown as unpinned.
 */
static void what_was_not_seen_is_not_told(void **state)
{
	struct ttmon_heatmap map = example();
	struct ttmon_heatmap_span span;
	struct ttmon_heatmap_scale scale;
	struct ttmon_heat_layout l;
	struct ttmon_heat_line line;
	json_t *doc, *row;
	char *text;

	(void)state;
	map.rows[0].at_least = map.rows[0].unseen = true;
	map.rows[1].at_least = map.rows[1].pinned = true;
	map.rows[1].nr_bins = 0;
	map.rows[1].bytes = map.rows[1].copies = 0;
	map.complete = false;
	snprintf(map.missing, sizeof(map.missing), "INCOMPLETE: attached_late");
	ttmon_heat_fit(&map, 82, true, &l);
	assert_int_equal(l.map, 29);
	span = (struct ttmon_heatmap_span){ map.start_ns, map.end_ns, l.map, false };
	ttmon_heatmap_find_scale(&map, &span, &scale);
	ttmon_heat_row(&map, &l, &span, &scale, 0, &line);
	expect(&line, "load_batch_from_dis~  16.0M ? mmap      ??????█▇??????????█?????+ >=48.0M      >=3\n");
	ttmon_heat_row(&map, &l, &span, &scale, 1, &line);
	expect(&line, "weights+0x1            4.0M P host ??????????????????                   -        -\n");
	ttmon_heat_head(&map, &l, 2, &line);
	expect(&line, "INCOMPLETE: attached_late\n");
	ttmon_heat_details(&map, &l, 0, &line);
	text = line_text(&line, false);
	assert_non_null(strstr(text, "mmap, not known whether pinned, not"));
	free(text);
	doc = ttmon_heat_json(&map, &span, 0);
	row = json_array_get(json_object_get(doc, "rows"), 0);
	assert_true(json_is_null(json_object_get(row, "pinned")));
	assert_string_equal(ttmon_show_str(row, "kind"), "unknown");
	assert_true(ttmon_show_bool(row, "at_least"));
	assert_int_equal(ttmon_show_u64(row, "copies"), 3);
	row = json_array_get(json_object_get(doc, "rows"), 1);
	assert_null(json_object_get(row, "kind"));
	assert_true(json_is_null(json_object_get(row, "copies")) && json_is_null(json_object_get(row, "moved")));
	assert_true(json_is_false(json_object_get(doc, "complete")));
	json_decref(doc);
	/* A mapping that is known to be pinned. */
	map.rows[0].unseen = false;
	map.rows[0].pinned = true;
	assert_string_equal(ttmon_heat_how(&map.rows[0]), "P mmap");
	doc = ttmon_heat_json(&map, &span, 0);
	assert_string_equal(ttmon_show_str(json_array_get(json_object_get(doc, "rows"), 0), "kind"), "pinned");
	json_decref(doc);
	/* Nor that nothing was moved. */
	span.from_ns = T0 + 90 * NSEC_PER_MS;
	ttmon_heatmap_find_scale(&map, &span, &scale);
	ttmon_heat_legend(&map, &l, &span, &scale, 0, &line);
	expect(&line, "nothing was seen to be moved in this time\n");
	ttmon_heatmap_fini(&map);
}

/* A group is as little known as any of its members. */
static void a_group_knows_no_more_than_its_members(void **state)
{
	struct ttmon_heatmap map = new_map(100 * NSEC_PER_MS, NSEC_PER_MS);
	struct ttmon_heatmap_row *r;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		r = new_row(&map, i < 4 ? "a" : "b", TTMON_METHOD_MMAP, MIB, i, 0);
		copy(&map, 40, MIB);
		r->at_least = i == 2;
		r->unseen = i == 1;
		r->pinned = i == 6;
		ttmon_heatmap_keep(&map);
	}
	assert_int_equal(ttmon_heatmap_group(&map), 0);
	assert_int_equal(map.nr, 2);
	for (unsigned int i = 0; i < 2; i++) {
		assert_true(map.rows[i].unseen && !map.rows[i].pinned);
		assert_int_equal(map.rows[i].at_least, !i);
		assert_int_equal(map.rows[i].copies, 4);
	}
	ttmon_heatmap_fini(&map);
}

static void nothing_is_longer_than_the_line(void **state)
{
	static const char wild[] =
		"std::vector<std::unique_ptr<\033[31mBig\xc3\xa9, A<B>>>::emplace_back(void)+0x1234567890abcdef";

	(void)state;
	for (unsigned int width = 1; width <= 600; width += 7) {
		struct ttmon_heatmap map = example();
		struct ttmon_heatmap_scale scale;
		struct ttmon_heatmap_span span;
		struct ttmon_heat_layout l;
		struct ttmon_heat_line line;
		struct ttmon_heatmap_row *r = &map.rows[1];

		free(r->site);
		r->site = strdup(wild);
		r->pid = UINT32_MAX;
		r->size = r->bytes = UINT64_MAX - 1;
		r->copies = UINT64_MAX;
		map.nr_procs = width % 2 ? 3 : UINT64_MAX;
		map.hidden = map.peak_pages = UINT64_MAX;
		memset(map.missing, 'x', sizeof(map.missing) - 1);
		r->allocs = width % 3 ? 1 : UINT32_MAX;
		ttmon_heat_fit(&map, width, width % 2, &l);
		assert_true(l.width >= TTMON_HEAT_WIDTH_MIN && l.width <= TTMON_HEAT_WIDTH_MAX && l.map >= 15 &&
			    l.map < 512);
		span = (struct ttmon_heatmap_span){ map.start_ns, map.end_ns, l.map, width % 5 == 0 };
		ttmon_heatmap_find_scale(&map, &span, &scale);
		for (unsigned int i = 0; i < 10; i++) {
			if (i < 2)
				ttmon_heat_head(&map, &l, i, &line);
			else if (i < 4)
				ttmon_heat_legend(&map, &l, &span, &scale, i - 2, &line);
			else if (i < 6)
				ttmon_heat_row(&map, &l, &span, &scale, i - 4, &line);
			else if (i == 6)
				ttmon_heat_columns(&map, &l, &span, &line);
			else if (i == 7)
				ttmon_heat_marks(&map, &l, &span, &line);
			else if (i == 8)
				ttmon_heat_head(&map, &l, 2, &line);
			else
				ttmon_heat_details(&map, &l, 1, &line);
			assert_true(line.n <= l.width);
			for (unsigned int c = 0; c < line.n; c++)
				assert_true(line.cells[c].ch >= ' ' && line.cells[c].ch != 0x7f);
		}
		ttmon_heatmap_fini(&map);
	}
}

static void times_are_readable_at_any_zoom(void **state)
{
	static const struct {
		uint64_t from_ns, len_ns;
		const char *text;
	} cases[] = {
		{ 0, 3300 * NSEC_PER_MS, "┊0        ┊1s       ┊2s       ┊3s" },
		{ 0, 20000, "┊0      ┊5us    ┊10us   ┊15us" },
		{ 0, 600 * NSEC_PER_SEC, "┊0    ┊2m    ┊4m   ┊6m    ┊8m" },
		{ 0, 30 * 3600 * NSEC_PER_SEC, "┊0           ┊12h00m      ┊24h00m" },
		{ 1234 * NSEC_PER_MS, 8 * NSEC_PER_MS, "    ┊1.235s             ┊1.240s" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ttmon_heatmap map = new_map(TTMON_HEATMAP_MAX_NS, 1 << 20);
		struct ttmon_heat_layout l = { .width = 40, .map = 33, .utf8 = true };
		struct ttmon_heatmap_span span = { T0 + cases[i].from_ns, T0 + cases[i].from_ns + cases[i].len_ns, 33,
						   false };
		struct ttmon_heat_line line = { .n = 0 };
		char *text;

		put_times(&map, &l, &span, &line);
		text = line_text(&line, false);
		text[strlen(text) - 1] = '\0';
		assert_string_equal(text, cases[i].text);
		free(text);
		ttmon_heatmap_fini(&map);
	}
}

/* Relative luminance of a colour of the 6 x 6 x 6 cube, in thousandths. */
static unsigned int luminance(unsigned int colour)
{
	static const unsigned int linear[] = { 0, 114, 242, 429, 679, 1000 };
	unsigned int c = colour - 16;

	return (linear[c / 36] * 213 + linear[c / 6 % 6] * 715 + linear[c % 6] * 72) / 1000;
}

static void colours_only_get_brighter(void **state)
{
	struct ttmon_heatmap map = example();
	struct ttmon_heatmap_scale scale = { 100 * MIB, 2 };
	struct ttmon_heat_layout l;
	struct ttmon_heat_line line;
	char *text;

	(void)state;
	for (unsigned int level = 1; level < TTMON_HEAT_LEVELS; level++)
		assert_true(luminance(ttmon_heat_colour(level)) < luminance(ttmon_heat_colour(level + 1)));
	/* On the ground (luminance 0.012) the darkest has a contrast of 3 to 1. */
	assert_true(luminance(ttmon_heat_colour(1)) + 50 >= 3 * (12 + 50));
	ttmon_heat_fit(&map, 80, true, &l);
	ttmon_heat_legend(&map, &l, &(struct ttmon_heatmap_span){ T0, T0 + 1, 1, false }, &scale, 0, &line);
	text = line_text(&line, true);
	assert_non_null(strstr(text, "\033[0;38;5;61;48;5;234m▁\033[0;38;5;67;48;5;234m▂"));
	assert_non_null(strstr(text, "█\033[0m up to"));
	free(text);
	ttmon_heatmap_fini(&map);
}

/* ---- what the service says ---- */

static json_t *json(const char *text)
{
	json_error_t error;
	json_t *doc = json_loads(text, 0, &error);

	if (!doc)
		fail_msg("%s: %s", error.text, text);
	return doc;
}

static const struct ttmon_heat_ask all = { .socket = "none" };

static void documents_become_one_map(void **state)
{
	json_t *heat = json(
		"{\"now_ns\": \"2000000000\", \"allocations\": ["
		"{\"id\": \"aa\", \"seq\": 7, \"pid\": 1, \"comm\": \"t\\u001b\", \"method\": \"host_alloc\", "
		"\"size\": 4096,"
		" \"live\": false, \"call_site\": \"f+0x1\", \"moved\": 30, \"origin_ns\": \"1000000000\","
		" \"width_ns\": 1000000, \"copies\": [1, 0, 2], \"bytes\": [10, 0, 20]},"
		"{\"id\": \"dd\", \"seq\": 8, \"pid\": 1, \"method\": \"device\", \"size\": 1, \"origin_ns\": \"1\","
		" \"width_ns\": 1, \"copies\": [1], \"bytes\": [1]}]}");
	json_t *allocs = json(
		"{\"now_ns\": \"2000000001\", \"next\": null, \"allocations\": ["
		"{\"id\": \"aa\", \"seq\": 7, \"pid\": 1, \"method\": \"host_alloc\", \"size\": 4096, \"alloc_ns\": "
		"\"1000000000\","
		" \"free_ns\": \"1500000000\", \"flags\": [\"device_ptr\"], \"api_flags\": 0, \"transfers\": "
		"{\"h2d\": [9, 9]}},"
		"{\"id\": \"bb\", \"seq\": 3, \"pid\": 2, \"method\": \"registered\", \"size\": 8192, \"alloc_ns\": "
		"\"900000000\","
		" \"free_ns\": null, \"flags\": [], \"api_flags\": 0, \"transfers\": {\"h2d\": [2, 50], \"d2h\": [1, "
		"5]}}]}");
	struct ttmon_heatmap map = { .live = true };

	(void)state;
	assert_int_equal(ttmon_heat_take_heat(&map, heat, &all), 0);
	assert_int_equal(map.nr, 1);
	assert_int_equal(map.hidden, 1);
	assert_string_equal(map.rows[0].comm, "t?");
	assert_int_equal(map.rows[0].free_ns, 1003000000);
	assert_int_equal(ttmon_heat_take_allocs(&map, allocs, &all), 0);
	find_bounds(&map);
	count_procs(&map);
	assert_int_equal(map.nr, 2);
	assert_int_equal(map.nr_procs, 2);
	assert_int_equal(map.start_ns, 900000000);
	assert_int_equal(map.end_ns, 2000000001);
	/* Once, with what each document knows of it. */
	assert_int_equal(map.rows[0].bytes, 30);
	assert_int_equal(map.rows[0].copies, 3);
	assert_int_equal(map.rows[0].free_ns, 1500000000);
	assert_true(map.rows[0].in_place && !map.rows[0].live && !map.rows[0].more);
	assert_int_equal(map.rows[1].bytes, 55);
	assert_true(map.rows[1].live && map.rows[1].more && map.rows[1].pinned);
	/* Bins of different widths in one group. */
	assert_int_equal(ttmon_heatmap_group(&map), 0);
	assert_int_equal(ttmon_heatmap_sort(&map, TTMON_HEAT_BY_BYTES, false), 0);
	assert_int_equal(map.nr, 2);
	json_decref(heat);
	json_decref(allocs);
	ttmon_heatmap_fini(&map);
}

/* A service says of each allocation what is not known of it. */
static void documents_say_what_is_not_known(void **state)
{
	json_t *heat = json(
		"{\"now_ns\": \"2000000000\", \"allocations\": ["
		"{\"id\": \"aa\", \"seq\": 7, \"pid\": 1, \"method\": \"mmap\", \"kind\": \"unknown\","
		" \"at_least\": true, \"origin_ns\": \"1000\", \"width_ns\": 1000, \"copies\": [2], \"bytes\": [9]},"
		"{\"id\": \"bb\", \"seq\": 8, \"pid\": 1, \"method\": \"mmap\", \"kind\": \"pinned\","
		" \"origin_ns\": \"1000\", \"width_ns\": 1000, \"copies\": [1], \"bytes\": [1]},"
		"{\"id\": \"cc\", \"seq\": 9, \"pid\": 1, \"method\": \"registered\","
		" \"origin_ns\": \"1000\", \"width_ns\": 1000, \"copies\": [1], \"bytes\": [1]}]}");
	json_t *allocs =
		json("{\"now_ns\": \"2000000001\", \"allocations\": ["
		     "{\"id\": \"cc\", \"seq\": 9, \"pid\": 1, \"method\": \"registered\", \"kind\": \"unknown\","
		     " \"perhaps\": \"pinned\", \"alloc_ns\": \"1000\", \"free_ns\": null, \"transfers\": {}},"
		     "{\"id\": \"dd\", \"seq\": 3, \"pid\": 1, \"method\": \"host_alloc\", \"at_least\": true,"
		     " \"alloc_ns\": \"1000\", \"free_ns\": null, \"transfers\": null}]}");
	static const bool unseen[] = { true, false, true, false }, pinned[] = { false, true, false, true },
			  at_least[] = { true, false, false, true };
	struct ttmon_heatmap map = { .live = true };

	(void)state;
	assert_int_equal(ttmon_heat_take_heat(&map, heat, &all), 0);
	assert_true(map.rows[2].pinned);
	assert_int_equal(ttmon_heat_take_allocs(&map, allocs, &all), 0);
	assert_int_equal(map.nr, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(map.rows[i].unseen, unseen[i]);
		assert_int_equal(map.rows[i].pinned, pinned[i]);
		assert_int_equal(map.rows[i].at_least, at_least[i]);
		assert_int_equal(ttmon_heat_is_unknown(&map.rows[i]), i == 3);
	}
	json_decref(heat);
	json_decref(allocs);
	ttmon_heatmap_fini(&map);
}

static void pages_of_a_live_allocation(void **state)
{
	json_t *doc = json(
		"{\"id\": \"aa\", \"size\": 1048576, \"alloc_ns\": \"1000\", \"free_ns\": null, \"now_ns\": \"5000\","
		" \"page_heat\": {\"group_bytes\": 16384, \"copies\": [8, 1]}, \"events_kept\": 3, "
		"\"events_dropped\": 7,"
		" \"events\": [[5, \"h2d\", 20000, 0, \"pinned\", 0], [9, \"advise\", 1, 0, \"pinned\", 0], [-3, "
		"\"h2d\", 1, 0],"
		" [1e9, \"d2h\", 1, 40000]]}");
	struct ttmon_heatmap map = { .live = true };

	(void)state;
	assert_int_equal(ttmon_heat_take_pages(&map, doc), 0);
	assert_int_equal(map.nr, 64);
	assert_int_equal(map.rows[0].copies, 8);
	assert_true(map.rows[0].more);
	assert_int_equal(map.rows[1].copies, 1);
	assert_false(map.rows[1].more);
	assert_int_equal(map.rows[1].bytes, UINT64_MAX);
	assert_int_equal(map.nr_bins, 3);
	assert_true(strstr(map.missing, "last 4 events of 11") != NULL);
	ttmon_heatmap_fini(&map);
	json_decref(doc);
}

/* A service that lies: refused, or shown; nothing else. */
static void documents_are_input(void **state)
{
	static const char *const values[] = { "null",
					      "-1",
					      "0",
					      "1",
					      "\"18446744073709551615\"",
					      "9223372036854775807",
					      "\"x\"",
					      "[]",
					      "{}",
					      "[-5, 1e300, null, 9223372036854775807]",
					      "[[1]]",
					      "true",
					      "\"host_alloc\"",
					      "1e400x" };
	static const char *const keys[] = { "id",	 "seq",		"pid",	     "comm",	  "method", "size",
					    "live",	 "call_site",	"origin_ns", "width_ns",  "copies", "bytes",
					    "alloc_ns",	 "free_ns",	"flags",     "transfers", "events", "now_ns",
					    "page_heat", "events_kept", "kind",	     "at_least" };
	char text[4000];

	(void)state;
	for (unsigned int i = 0; i < 3000; i++) {
		struct ttmon_heatmap map = { .live = true };
		size_t n = (size_t)snprintf(text, sizeof(text), "{\"method\": \"registered\"");
		json_t *row, *doc;

		for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
			if (rnd(3))
				n += (size_t)snprintf(text + n, sizeof(text) - n, ", \"%s\": %s", keys[k],
						      values[rnd(ARRAY_SIZE(values) - 1)]);
		snprintf(text + n, sizeof(text) - n, "}");
		row = json(text);
		doc = json_pack("{s:[o], s:s}", "allocations", row, "now_ns", rnd(2) ? "18446744073709551615" : "5");
		assert_non_null(doc);
		if (!ttmon_heat_take_heat(&map, doc, &all) && !ttmon_heat_take_allocs(&map, doc, &all)) {
			struct ttmon_heatmap_span span;
			struct ttmon_heatmap_scale scale;
			struct ttmon_heat_layout l;
			struct ttmon_heat_line line;

			find_bounds(&map);
			if (rnd(2))
				assert_int_equal(ttmon_heatmap_group(&map), 0);
			assert_int_equal(ttmon_heatmap_sort(&map, TTMON_HEAT_BY_SITE, false), 0);
			ttmon_heat_fit(&map, 100, true, &l);
			span = (struct ttmon_heatmap_span){ map.start_ns, map.end_ns, l.map, false };
			ttmon_heatmap_find_scale(&map, &span, &scale);
			for (size_t r = 0; r < map.nr; r++)
				ttmon_heat_row(&map, &l, &span, &scale, r, &line);
		}
		ttmon_heatmap_fini(&map);
		map.live = true;
		if (!ttmon_heat_take_pages(&map, row))
			assert_true(map.nr <= TTMON_HEATMAP_GROUPS);
		ttmon_heatmap_fini(&map);
		json_decref(doc);
	}
}

static void more_buckets_than_there_are_is_a_lie(void **state)
{
	json_t *list = json_array(), *doc;
	struct ttmon_heatmap map = { .live = true };

	(void)state;
	for (unsigned int i = 0; i <= TTMON_HEAT_BUCKETS; i++)
		json_array_append_new(list, json_integer(1));
	doc = json_pack("{s:[{s:s, s:O, s:o}]}", "allocations", "method", "registered", "copies", list, "bytes", list);
	assert_non_null(doc);
	assert_int_equal(ttmon_heat_take_heat(&map, doc, &all), -EBADMSG);
	ttmon_heatmap_fini(&map);
	json_array_remove(list, 0);
	assert_int_equal(ttmon_heat_take_heat(&map, doc, &all), 0);
	assert_int_equal(map.rows[0].copies, TTMON_HEAT_BUCKETS);
	ttmon_heatmap_fini(&map);
	json_decref(doc);
}

static void json_has_the_same_cells(void **state)
{
	struct ttmon_heatmap map = example();
	struct ttmon_heatmap_span span = { map.start_ns, map.end_ns, 10, false };
	json_t *doc = ttmon_heat_json(&map, &span, 1), *row = json_array_get(json_object_get(doc, "rows"), 0);

	(void)state;
	assert_int_equal(json_array_size(json_object_get(doc, "rows")), 1);
	assert_int_equal(ttmon_show_u64(doc, "not_shown"), 1);
	assert_int_equal(ttmon_show_u64(doc, "from_ns"), T0);
	assert_string_equal(ttmon_show_str(row, "method"), "mmap");
	assert_true(ttmon_show_bool(row, "events_missing"));
	assert_int_equal(json_integer_value(json_array_get(json_object_get(row, "cells_bytes"), 4)), 32 * MIB);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(row, "cells_copies"), 4)), 2);
	assert_int_equal(json_array_size(json_object_get(row, "cells_bytes")), 10);
	assert_string_equal(ttmon_show_str(json_array_get(json_object_get(doc, "gaps"), 0), "what"), "blind");
	json_decref(doc);
	ttmon_heatmap_fini(&map);
}

static void names_keep_their_characters(void **state)
{
	struct ttmon_heat_line l = { .utf8 = true };
	char text[5];

	(void)state;
	assert_int_equal(put_text(&l, 0, 20,
				  "gr\xc3\xb6\xc3\x9f"
				  "e \xe6\x97\xa5\x1b\xf0\x9f\x98\x80",
				  0),
			 11);
	assert_int_equal(l.cells[2].ch, 0xf6);
	assert_int_equal(l.cells[6].ch, 0x65e5);
	assert_int_equal(l.cells[7].ch, TTMON_HEAT_BEHIND_WIDE);
	assert_int_equal(l.cells[8].ch, '?');
	assert_int_equal(l.cells[9].ch, 0x1f600);
	ttmon_heat_utf8(l.cells[9].ch, text);
	assert_string_equal(text, "\xf0\x9f\x98\x80");
	ttmon_heat_utf8(l.cells[7].ch, text);
	assert_string_equal(text, "");
	/* Half of a wide character is not left before the sign that says where it was cut. */
	l.n = 0;
	put_field(&l, 0, 4, "a\xe6\x97\xa5\xe6\x97\xa5", false, 0);
	assert_int_equal(l.cells[2].ch, TTMON_HEAT_BEHIND_WIDE);
	assert_int_equal(l.cells[3].ch, '~');
	l.n = 0;
	put_field(&l, 0, 3, "\xe6\x97\xa5\xe6\x97\xa5", false, 0);
	assert_int_equal(l.cells[2].ch, '~');
	l = (struct ttmon_heat_line){ .utf8 = false };
	assert_int_equal(put_text(&l, 0, 20, "\xc3\xb6", 0), 1);
	assert_int_equal(l.cells[0].ch, '?');
}

/* What moved before is in no figure; a piece of time that begins before is not shared out. */
static void the_last_part_has_its_own_sums(void **state)
{
	struct ttmon_heatmap map = { .start_ns = 0, .end_ns = 100, .width_ns = 10 };
	struct ttmon_heatmap_row *r;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		r = ttmon_heatmap_begin(&map);
		assert_non_null(r);
		r->live = !i;
		r->free_ns = i ? 50 : UINT64_MAX;
		assert_int_equal(ttmon_heatmap_put(&map, 15, 1, 100), 0);
		assert_int_equal(ttmon_heatmap_put(&map, 55, 2, 40), 0);
		assert_int_equal(ttmon_heatmap_put(&map, 95, 1, 8), 0);
		r->bytes = 148;
		r->copies = 4;
		ttmon_heatmap_keep(&map);
	}
	ttmon_heatmap_keep_last(&map, 50);
	assert_int_equal(map.nr, 1);
	assert_int_equal(map.hidden, 1);
	assert_int_equal(map.rows[0].bytes, 48);
	assert_int_equal(map.rows[0].copies, 3);
	assert_false(map.rows[0].at_least);
	ttmon_heatmap_keep_last(&map, 45);
	assert_int_equal(map.rows[0].bytes, 8);
	assert_true(map.rows[0].at_least);
	ttmon_heatmap_fini(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_cut_where_they_say),
		cmocka_unit_test(cells_conserve_the_sums),
		cmocka_unit_test(too_many_bins_are_made_wider),
		cmocka_unit_test(late_events_find_their_place),
		cmocka_unit_test(levels_follow_the_scale),
		cmocka_unit_test(rows_are_sorted),
		cmocka_unit_test(call_sites_become_one_row),
		cmocka_unit_test(pages_share_a_copy),
		cmocka_unit_test(lines_are_as_wide_as_the_terminal),
		cmocka_unit_test(what_was_not_seen_is_not_told),
		cmocka_unit_test(a_group_knows_no_more_than_its_members),
		cmocka_unit_test(nothing_is_longer_than_the_line),
		cmocka_unit_test(times_are_readable_at_any_zoom),
		cmocka_unit_test(colours_only_get_brighter),
		cmocka_unit_test(documents_become_one_map),
		cmocka_unit_test(documents_say_what_is_not_known),
		cmocka_unit_test(pages_of_a_live_allocation),
		cmocka_unit_test(documents_are_input),
		cmocka_unit_test(more_buckets_than_there_are_is_a_lie),
		cmocka_unit_test(json_has_the_same_cells),
		cmocka_unit_test(names_keep_their_characters),
		cmocka_unit_test(the_last_part_has_its_own_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
