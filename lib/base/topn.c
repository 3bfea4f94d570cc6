// SPDX-License-Identifier: GPL-2.0-only
/*
 * topn.c: see topn.h. An update builds the next table beside the current one and then replaces it, so
 * a failed update changes nothing. What is kept between updates is the sums of the items and the names
 * that have a series.
 */
#include <assert.h>

#include "lib/base/topn.h"

/* A published table, and the sums of the items at that time. */
struct table {
	size_t nr_items, nr_rows;
	uint64_t *ids;	/* ids of the items, ascending */
	uint64_t *seen; /* sums of the items */
	struct ttmon_topn_row *rows;
	uint64_t *values; /* values of the rows: sums, then gauges */
	char *text;	  /* text of the names of the rows */
};

struct ttmon_topn {
	struct ttmon_topn_cfg cfg;
	struct table now;
	uint64_t *gone;
};

struct entry {
	const struct ttmon_topn_item *item;
	const uint64_t *before; /* its sums at the last update; NULL: it is new */
};

struct name {
	const char *name;
	struct entry *entries;
	size_t nr;
	uint64_t rank;
	const struct ttmon_topn_row *had; /* the series of its name in the last table */
	bool chosen;
};

struct work {
	struct entry *entries; /* sorted by name */
	struct name *names;    /* sorted by name */
	struct name **order;   /* sorted by rank, the highest first */
	size_t nr_names;
};

static void table_fini(struct table *t)
{
	free(t->ids);
	free(t->seen);
	free(t->rows);
	free(t->values);
	free(t->text);
}

static void work_fini(struct work *w)
{
	free(w->entries);
	free(w->names);
	free(w->order);
}

static size_t width(const struct ttmon_topn *t)
{
	return (size_t)t->cfg.sums + t->cfg.gauges;
}

static uint64_t *values(const struct ttmon_topn *t, const struct table *n, size_t row)
{
	return n->values + row * width(t);
}

/* Allocates rows for this number of names and for `other`, all zero. */
static int rows_alloc(const struct ttmon_topn *t, struct table *n, size_t names, size_t text)
{
	n->nr_rows = names + 1;
	n->rows = calloc(n->nr_rows, sizeof(*n->rows));
	n->values = calloc(n->nr_rows * width(t) + 1, sizeof(*n->values));
	n->text = malloc(text + 1);
	if (!n->rows || !n->values || !n->text)
		return -ENOMEM;
	for (size_t i = 0; i < n->nr_rows; i++) {
		n->rows[i].sums = values(t, n, i);
		n->rows[i].gauges = n->rows[i].sums + t->cfg.sums;
	}
	return 0;
}

int ttmon_topn_new(const struct ttmon_topn_cfg *cfg, struct ttmon_topn **ret)
{
	struct ttmon_topn *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cfg = *cfg;
	t->gone = calloc(cfg->sums + 1, sizeof(*t->gone));
	if (!t->gone || rows_alloc(t, &t->now, 0, 0)) {
		ttmon_topn_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void ttmon_topn_free(struct ttmon_topn *t)
{
	if (!t)
		return;
	table_fini(&t->now);
	free(t->gone);
	free(t);
}

static int by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return strcmp(x->item->name, y->item->name);
}

static int by_rank(const void *a, const void *b)
{
	const struct name *x = *(struct name *const *)a, *y = *(struct name *const *)b;

	return x->rank != y->rank ? (x->rank < y->rank ? 1 : -1) : strcmp(x->name, y->name);
}

/*
 * Matches the current items with those of the last update. The sums of items that are gone are added
 * to *ended.
 */
static void match_items(const struct ttmon_topn *t, const struct ttmon_topn_item *items, size_t n,
			struct entry *entries, uint64_t *ended)
{
	size_t old = 0;

	for (size_t i = 0; i <= n; i++) {
		assert(!i || i == n || items[i - 1].id < items[i].id);
		for (; old < t->now.nr_items && (i == n || t->now.ids[old] < items[i].id); old++)
			for (uint32_t k = 0; k < t->cfg.sums; k++)
				ended[k] += t->now.seen[old * t->cfg.sums + k];
		if (i == n)
			break;
		entries[i].item = &items[i];
		if (old < t->now.nr_items && t->now.ids[old] == items[i].id)
			entries[i].before = t->now.seen + old++ * t->cfg.sums;
	}
}

/* Makes the names from the entries, which are sorted by name. */
static void find_names(const struct ttmon_topn *t, struct work *w, size_t n)
{
	size_t row = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ttmon_topn_item *item = w->entries[i].item;
		struct name *last = w->nr_names ? &w->names[w->nr_names - 1] : NULL;

		if (!last || strcmp(last->name, item->name) != 0) {
			last = &w->names[w->nr_names];
			w->order[w->nr_names++] = last;
			last->name = item->name;
			last->entries = &w->entries[i];
			while (row + 1 < t->now.nr_rows && strcmp(t->now.rows[row].name, last->name) < 0)
				row++;
			if (row + 1 < t->now.nr_rows && !strcmp(t->now.rows[row].name, last->name))
				last->had = &t->now.rows[row];
		}
		last->nr++;
		last->rank = last->rank + item->rank < last->rank ? UINT64_MAX : last->rank + item->rank;
	}
}

/*
 * Names with a series keep it; free series go to the next names by rank; then the largest name without
 * a series is compared with the smallest with one.
 */
static size_t choose(const struct ttmon_topn *t, struct work *w)
{
	size_t nr = 0, low = w->nr_names;

	qsort(w->order, w->nr_names, sizeof(*w->order), by_rank);
	for (size_t i = 0; i < w->nr_names; i++)
		if (w->order[i]->had) {
			w->order[i]->chosen = true;
			nr++;
		}
	for (size_t i = 0; i < w->nr_names; i++) {
		struct name *new = w->order[i];

		if (new->chosen)
			continue;
		if (nr < t->cfg.n) {
			new->chosen = true;
			nr++;
			continue;
		}
		while (low && !w->order[low - 1]->had)
			low--;
		if (!low || new->rank <= w->order[low - 1]->rank ||
		    new->rank - w->order[low - 1]->rank < w->order[low - 1]->rank)
			break;
		w->order[--low]->chosen = false;
		new->chosen = true;
	}
	return nr;
}

/*
 * Adds the growth of an entry to the row of its name, if the row was there before or the entry is new;
 * else to `other`.
 */
static void add(const struct ttmon_topn *t, const struct entry *e, struct table *n, size_t row, bool had)
{
	uint64_t *sums = values(t, n, had || !e->before ? row : n->nr_rows - 1);
	uint64_t *gauges = values(t, n, row) + t->cfg.sums;

	for (uint32_t k = 0; k < t->cfg.sums; k++)
		sums[k] += e->item->sums[k] - (e->before ? e->before[k] : 0);
	for (uint32_t k = 0; k < t->cfg.gauges; k++)
		gauges[k] += e->item->gauges[k];
}

static void fill(const struct ttmon_topn *t, const struct work *w, struct table *n)
{
	size_t row = 0, other = n->nr_rows - 1;
	char *text = n->text;

	for (size_t i = 0; i < w->nr_names; i++) {
		const struct name *name = &w->names[i];
		bool had = name->had && name->chosen;

		if (name->chosen) {
			n->rows[row].name = text;
			text = stpcpy(text, name->name) + 1;
		}
		if (had)
			memcpy(values(t, n, row), name->had->sums, t->cfg.sums * sizeof(uint64_t));
		for (size_t k = 0; k < name->nr; k++)
			add(t, &name->entries[k], n, name->chosen ? row : other, had);
		row += name->chosen;
	}
}

/* Builds the next table in *n from the items in *w. ended: see match_items(). */
static int build(const struct ttmon_topn *t, struct work *w, size_t nr, const uint64_t *gone, const uint64_t *ended,
		 struct table *n)
{
	uint64_t *other;
	size_t text = 0, names = choose(t, w);

	for (size_t i = 0; i < w->nr_names; i++)
		text += w->names[i].chosen ? strlen(w->names[i].name) + 1 : 0;
	if (rows_alloc(t, n, names, text))
		return -ENOMEM;
	other = values(t, n, names);
	for (uint32_t k = 0; k < t->cfg.sums; k++)
		other[k] = t->now.rows[t->now.nr_rows - 1].sums[k] + (gone[k] - t->gone[k] - ended[k]);
	fill(t, w, n);
	n->nr_items = nr;
	return 0;
}

int ttmon_topn_update(struct ttmon_topn *t, const struct ttmon_topn_item *items, size_t n, const uint64_t *gone)
{
	struct work w = { .entries = calloc(n + 1, sizeof(*w.entries)),
			  .names = calloc(n + 1, sizeof(*w.names)),
			  .order = calloc(n + 1, sizeof(*w.order)) };
	struct table next = { .ids = calloc(n + 1, sizeof(*next.ids)),
			      .seen = calloc(n * t->cfg.sums + 1, sizeof(*next.seen)) };
	_cleanup_free_ uint64_t *ended = calloc(t->cfg.sums + 1, sizeof(*ended));
	int err = -ENOMEM;

	if (w.entries && w.names && w.order && next.ids && next.seen && ended) {
		for (size_t i = 0; i < n; i++) {
			next.ids[i] = items[i].id;
			memcpy(next.seen + i * t->cfg.sums, items[i].sums, t->cfg.sums * sizeof(*next.seen));
		}
		match_items(t, items, n, w.entries, ended);
		qsort(w.entries, n, sizeof(*w.entries), by_name);
		find_names(t, &w, n);
		err = build(t, &w, n, gone, ended, &next);
	}
	if (!err) {
		struct table old = t->now;

		t->now = next;
		next = old;
		memcpy(t->gone, gone, t->cfg.sums * sizeof(*gone));
	}
	table_fini(&next);
	work_fini(&w);
	return err;
}

size_t ttmon_topn_rows(const struct ttmon_topn *t, const struct ttmon_topn_row **ret)
{
	*ret = t->now.rows;
	return t->now.nr_rows;
}
