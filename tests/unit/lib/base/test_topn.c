// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_topn.c: names with a series of their own. The source is compiled in here once more, with malloc
 * and calloc replaced, for the test in which every allocation of memory fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/topn.h"

#include "tests/unit/feed/torture.h"

#include "lib/base/topn.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

#define SUMS   3
#define GAUGES 2

static const uint64_t none[SUMS];

static struct ttmon_topn *make(uint32_t n)
{
	struct ttmon_topn *t = NULL;

	assert_int_equal(ttmon_topn_new(&(struct ttmon_topn_cfg){ .n = n, .sums = SUMS, .gauges = GAUGES }, &t), 0);
	return t;
}

/* An item whose first sum and rank are `sum` and whose first gauge is `gauge`. */
#define ITEM(id_, name_, sum, gauge)                                                              \
	((struct ttmon_topn_item){ .id = (id_),                                                   \
				   .name = (name_),                                               \
				   .rank = (sum),                                                 \
				   .sums = (const uint64_t[SUMS]){ (sum), 10 * (uint64_t)(sum) }, \
				   .gauges = (const uint64_t[GAUGES]){ (gauge) } })
#define UPDATE(t, gone, ...)                                                                 \
	do {                                                                                 \
		const struct ttmon_topn_item items_[] = { __VA_ARGS__ };                     \
		assert_int_equal(ttmon_topn_update(t, items_, ARRAY_SIZE(items_), gone), 0); \
	} while (0)

/* The rows as text: "name:sum:gauge ..." */
static const char *shown(const struct ttmon_topn *t)
{
	static char buf[1024];
	const struct ttmon_topn_row *rows;
	size_t n = ttmon_topn_rows(t, &rows), len = 0;

	assert_true(n > 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(rows[i].sums[1], 10 * rows[i].sums[0]);
		len += (size_t)snprintf(buf + len, sizeof(buf) - len, "%s%s:%lu:%lu", i ? " " : "",
					rows[i].name ? rows[i].name : "*", (unsigned long)rows[i].sums[0],
					(unsigned long)rows[i].gauges[0]);
	}
	return buf;
}

static void rows_by_name_and_other_last(void **state)
{
	struct ttmon_topn *t = make(2);

	(void)state;
	assert_string_equal(shown(t), "*:0:0");
	UPDATE(t, none, ITEM(1, "b", 5, 1), ITEM(2, "c", 3, 2), ITEM(3, "a", 9, 4), ITEM(4, "c", 1, 8));
	assert_string_equal(shown(t), "a:9:4 b:5:1 *:4:10");
	/* Gauges may fall. */
	UPDATE(t, none, ITEM(1, "b", 5, 0), ITEM(2, "c", 3, 1), ITEM(3, "a", 10, 3), ITEM(4, "c", 2, 0));
	assert_string_equal(shown(t), "a:10:3 b:5:0 *:5:1");
	ttmon_topn_free(t);
}

static void names_rank_by_the_sum_of_their_items(void **state)
{
	struct ttmon_topn *t = make(1);

	(void)state;
	UPDATE(t, none, ITEM(1, "x", 4, 0), ITEM(2, "y", 5, 0), ITEM(3, "x", 2, 0));
	assert_string_equal(shown(t), "x:6:0 *:5:0");
	ttmon_topn_free(t);
}

static void a_newcomer_needs_twice_the_rank(void **state)
{
	struct ttmon_topn *t = make(2);

	(void)state;
	UPDATE(t, none, ITEM(1, "a", 100, 0), ITEM(2, "b", 10, 0));
	UPDATE(t, none, ITEM(1, "a", 100, 0), ITEM(2, "b", 10, 0), ITEM(3, "c", 19, 0));
	assert_string_equal(shown(t), "a:100:0 b:10:0 *:19:0");
	/* What b gained in the end, and what c did before, is in other. */
	UPDATE(t, none, ITEM(1, "a", 100, 0), ITEM(2, "b", 11, 0), ITEM(3, "c", 22, 0));
	assert_string_equal(shown(t), "a:100:0 c:0:0 *:23:0");
	UPDATE(t, none, ITEM(1, "a", 100, 0), ITEM(2, "b", 12, 0), ITEM(3, "c", 25, 0));
	assert_string_equal(shown(t), "a:100:0 c:3:0 *:24:0");
	/*
	 * Two at once, the largest against the smallest first; the third is not twice as large as what is
	 * left.
	 */
	UPDATE(t, none, ITEM(1, "a", 100, 0), ITEM(3, "c", 25, 0), ITEM(4, "d", 190, 0), ITEM(5, "e", 200, 0));
	assert_string_equal(shown(t), "a:100:0 e:200:0 *:202:0");
	ttmon_topn_free(t);
}

static void ranks_of_nothing_do_not_change_places(void **state)
{
	struct ttmon_topn *t = make(1);

	(void)state;
	UPDATE(t, none, ITEM(1, "b", 0, 0));
	UPDATE(t, none, ITEM(1, "b", 0, 0), ITEM(2, "a", 0, 0));
	assert_string_equal(shown(t), "b:0:0 *:0:0");
	ttmon_topn_free(t);
}

static void ranks_do_not_wrap(void **state)
{
	struct ttmon_topn *t = make(1);
	struct ttmon_topn_item items[] = { ITEM(1, "b", 1, 0), ITEM(2, "b", 1, 0), ITEM(3, "a", 1, 0) };

	(void)state;
	items[0].rank = items[1].rank = UINT64_MAX / 2 + 2;
	items[2].rank = UINT64_MAX / 2;
	assert_int_equal(ttmon_topn_update(t, items, 3, none), 0);
	assert_string_equal(shown(t), "b:2:0 *:1:0");
	/* Twice as much as this is more than there is. */
	items[0].rank = items[1].rank = UINT64_MAX / 4 + 1;
	items[2].rank = UINT64_MAX;
	assert_int_equal(ttmon_topn_update(t, items, 3, none), 0);
	assert_string_equal(shown(t), "b:2:0 *:1:0");
	ttmon_topn_free(t);
}

static void a_name_takes_its_series_with_it(void **state)
{
	struct ttmon_topn *t = make(2);

	(void)state;
	UPDATE(t, none, ITEM(1, "a", 5, 1), ITEM(2, "b", 7, 1));
	/* a gained 2 more between the updates, and an item that existed only in between did 4. */
	UPDATE(t, ((const uint64_t[SUMS]){ 11, 110 }), ITEM(2, "b", 7, 1));
	assert_string_equal(shown(t), "b:7:1 *:6:0");
	/* Another item of the same name: a new series. */
	UPDATE(t, ((const uint64_t[SUMS]){ 11, 110 }), ITEM(2, "b", 7, 1), ITEM(5, "a", 2, 0));
	assert_string_equal(shown(t), "a:2:0 b:7:1 *:6:0");
	/* The item goes, the name stays. */
	UPDATE(t, ((const uint64_t[SUMS]){ 14, 140 }), ITEM(2, "b", 7, 1), ITEM(9, "a", 1, 0));
	assert_string_equal(shown(t), "a:3:0 b:7:1 *:7:0");
	ttmon_topn_free(t);
}

static void an_item_that_changes_its_name(void **state)
{
	struct ttmon_topn *t = make(2);

	(void)state;
	UPDATE(t, none, ITEM(1, "sh", 5, 1), ITEM(2, "sh", 1, 1));
	/* cat has its series from now on only: the item did it before. */
	UPDATE(t, none, ITEM(1, "cat", 8, 1), ITEM(2, "sh", 1, 1));
	assert_string_equal(shown(t), "cat:0:1 sh:6:1 *:3:0");
	UPDATE(t, none, ITEM(1, "cat", 9, 1), ITEM(2, "cat", 5, 1));
	assert_string_equal(shown(t), "cat:5:2 *:3:0");
	ttmon_topn_free(t);
}

static void without_series_all_goes_to_other(void **state)
{
	struct ttmon_topn *t = make(0);

	(void)state;
	UPDATE(t, none, ITEM(1, "a", 5, 1), ITEM(2, "", 2, 1));
	assert_string_equal(shown(t), "*:7:2");
	ttmon_topn_free(t);
	t = make(5);
	UPDATE(t, none, ITEM(2, "", 2, 1));
	assert_string_equal(shown(t), ":2:1 *:0:0");
	assert_int_equal(ttmon_topn_update(t, NULL, 0, (const uint64_t[SUMS]){ 7, 70 }), 0);
	assert_string_equal(shown(t), "*:5:0");
	ttmon_topn_free(t);
}

/* A model of what there is: items come, work, change their names and go; some between two updates. */
#define MODEL_MAX 200

struct model {
	struct ttmon_topn_item items[MODEL_MAX];
	uint64_t sums[MODEL_MAX][SUMS], gauges[MODEL_MAX][GAUGES];
	char names[MODEL_MAX][16];
	size_t nr;
	uint64_t next_id, gone[SUMS], done[SUMS];
	/* Series that were shown at the last update, and the last values of those that have vanished. */
	char last_name[MODEL_MAX][16];
	uint64_t last[MODEL_MAX][SUMS], vanished[SUMS];
	size_t nr_last;
};

static uint32_t seed;

static uint32_t dice(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static void model_drop(struct model *m, size_t i)
{
	for (size_t k = 0; k < SUMS; k++)
		m->gone[k] += m->sums[i][k];
	m->nr--;
	for (; i < m->nr; i++) {
		m->items[i].id = m->items[i + 1].id;
		memcpy(m->sums[i], m->sums[i + 1], sizeof(m->sums[i]));
		memcpy(m->names[i], m->names[i + 1], sizeof(m->names[i]));
	}
}

static void model_step(struct model *m, uint32_t names)
{
	size_t i = m->nr;

	if (m->nr < MODEL_MAX && dice(4) == 0) {
		m->nr++;
		m->items[i].id = m->next_id += 1 + dice(3);
		memset(m->sums[i], 0, sizeof(m->sums[i]));
		snprintf(m->names[i], sizeof(m->names[i]), "n%u", dice(names));
	} else if (m->nr && dice(5) == 0) {
		model_drop(m, dice((uint32_t)m->nr));
		return;
	}
	if (!m->nr)
		return;
	i = i < m->nr ? i : dice((uint32_t)m->nr);
	if (dice(20) == 0)
		snprintf(m->names[i], sizeof(m->names[i]), "n%u", dice(names));
	for (size_t k = 0; k < SUMS; k++) {
		uint64_t more = dice(1 + (1u << dice(12)));

		m->sums[i][k] += more;
		m->done[k] += more;
	}
}

static void model_take(struct model *m, struct ttmon_topn *t)
{
	for (size_t i = 0; i < m->nr; i++) {
		for (size_t k = 0; k < GAUGES; k++)
			m->gauges[i][k] = dice(100);
		m->items[i].name = m->names[i];
		m->items[i].rank = m->sums[i][0];
		m->items[i].sums = m->sums[i];
		m->items[i].gauges = m->gauges[i];
	}
	assert_int_equal(ttmon_topn_update(t, m->items, m->nr, m->gone), 0);
}

/*
 * Each series is at or above its last value; those that have vanished, those that are there, and other
 * are all that was ever done.
 */
static void model_check(struct model *m, const struct ttmon_topn *t, uint32_t n)
{
	const struct ttmon_topn_row *rows;
	size_t nr = ttmon_topn_rows(t, &rows), old = 0;
	uint64_t sums[SUMS], gauges[GAUGES] = { 0 };

	assert_in_range(nr, 1, n + 1);
	assert_null(rows[nr - 1].name);
	memcpy(sums, m->vanished, sizeof(sums));
	for (size_t i = 0; i < nr; i++) {
		assert_true(i < 1 || i == nr - 1 || strcmp(rows[i - 1].name, rows[i].name) < 0);
		for (; old < m->nr_last && (i == nr - 1 || strcmp(m->last_name[old], rows[i].name) < 0); old++)
			for (size_t k = 0; k < SUMS; k++) {
				m->vanished[k] += m->last[old][k];
				sums[k] += m->last[old][k];
			}
		for (size_t k = 0; k < SUMS; k++) {
			if (i == nr - 1)
				assert_true(rows[i].sums[k] >= m->last[MODEL_MAX - 1][k]);
			else if (old < m->nr_last && !strcmp(m->last_name[old], rows[i].name))
				assert_true(rows[i].sums[k] >= m->last[old][k]);
			sums[k] += rows[i].sums[k];
		}
		old += i < nr - 1 && old < m->nr_last && !strcmp(m->last_name[old], rows[i].name);
		for (size_t k = 0; k < GAUGES; k++)
			gauges[k] += rows[i].gauges[k];
	}
	assert_memory_equal(sums, m->done, sizeof(sums));
	for (size_t i = 0; i < m->nr; i++)
		for (size_t k = 0; k < GAUGES; k++)
			gauges[k] -= m->gauges[i][k];
	assert_int_equal(gauges[0] | gauges[1], 0);
	m->nr_last = nr - 1;
	for (size_t i = 0; i < nr; i++) {
		if (i < nr - 1)
			snprintf(m->last_name[i], sizeof(m->last_name[i]), "%s", rows[i].name);
		memcpy(m->last[i < nr - 1 ? i : MODEL_MAX - 1], rows[i].sums, sizeof(m->last[i]));
	}
}

static void nothing_is_lost_and_nothing_goes_back(void **state)
{
	(void)state;
	for (uint32_t run = 0; run < 40; run++) {
		uint32_t n = run % 8, names = 1 + run % 30;
		struct model *m = calloc(1, sizeof(*m));
		struct ttmon_topn *t = make(n);

		assert_non_null(m);
		seed = run;
		for (int i = 0; i < 200; i++) {
			for (uint32_t k = dice(20); k; k--)
				model_step(m, names);
			model_take(m, t);
			model_check(m, t, n);
		}
		assert_true(m->done[0] > 1000 && m->gone[0] > 100);
		if (n > 1 && names > 2 * n)
			assert_true(m->vanished[0] > 0);
		ttmon_topn_free(t);
		free(m);
	}
}

/* 10,000 names, 50 at a time: the sanitizer's view of the heap does not grow. */
size_t __sanitizer_get_current_allocated_bytes(void);

static void names_that_come_and_go_take_no_room(void **state)
{
	struct ttmon_topn *t = make(20);
	struct ttmon_topn_item items[50];
	uint64_t sums[50][SUMS], gone[SUMS] = { 0 };
	char names[50][16];
	size_t before = 0, after;

	(void)state;
	for (uint64_t round = 0; round < 200; round++) {
		for (uint64_t i = 0; i < 50; i++) {
			snprintf(names[i], sizeof(names[i]), "name%06lu", (unsigned long)(round * 50 + i));
			gone[0] += round ? sums[i][0] : 0;
			memset(sums[i], 0, sizeof(sums[i]));
			sums[i][0] = i;
			items[i] = (struct ttmon_topn_item){
				.id = 1 + round * 50 + i, .name = names[i], .rank = i, .sums = sums[i], .gauges = none
			};
		}
		assert_int_equal(ttmon_topn_update(t, items, 50, gone), 0);
		after = __sanitizer_get_current_allocated_bytes();
		before = before ? before : after;
		assert_int_equal(after, before);
	}
	ttmon_topn_free(t);
}

static void scenario(struct ttmon_topn *t)
{
	struct ttmon_topn_item items[] = { ITEM(1, "a", 3, 1), ITEM(2, "b", 5, 1), ITEM(3, "c", 7, 1) };
	char before[1024];

	snprintf(before, sizeof(before), "%s", shown(t));
	if (ttmon_topn_update(t, items, 3, none) < 0)
		assert_string_equal(shown(t), before);
	snprintf(before, sizeof(before), "%s", shown(t));
	if (ttmon_topn_update(t, items + 1, 2, (const uint64_t[SUMS]){ 4, 40 }) < 0)
		assert_string_equal(shown(t), before);
	/* An update that failed has left out nothing. */
	fail_at = -1;
	assert_int_equal(ttmon_topn_update(t, items + 1, 2, (const uint64_t[SUMS]){ 4, 40 }), 0);
}

static void every_allocation_fails(void **state)
{
	struct ttmon_topn *t = NULL;
	long all;

	(void)state;
	fail_at = -1;
	asked = 0;
	t = make(2);
	scenario(t);
	all = asked;
	assert_string_equal(shown(t), "b:5:1 c:7:1 *:4:0");
	ttmon_topn_free(t);
	for (long i = 0; i < 2 * all; i++) {
		asked = 0;
		fail_at = i / 2;
		fail_on = i & 1;
		t = NULL;
		if (ttmon_topn_new(&(struct ttmon_topn_cfg){ .n = 2, .sums = SUMS, .gauges = GAUGES }, &t) < 0) {
			assert_null(t);
			continue;
		}
		scenario(t);
		assert_string_equal(shown(t), "b:5:1 c:7:1 *:4:0");
		ttmon_topn_free(t);
	}
	fail_at = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_by_name_and_other_last),
		cmocka_unit_test(names_rank_by_the_sum_of_their_items),
		cmocka_unit_test(a_newcomer_needs_twice_the_rank),
		cmocka_unit_test(ranks_of_nothing_do_not_change_places),
		cmocka_unit_test(ranks_do_not_wrap),
		cmocka_unit_test(a_name_takes_its_series_with_it),
		cmocka_unit_test(an_item_that_changes_its_name),
		cmocka_unit_test(without_series_all_goes_to_other),
		cmocka_unit_test(nothing_is_lost_and_nothing_goes_back),
		cmocka_unit_test(names_that_come_and_go_take_no_room),
		cmocka_unit_test(every_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
