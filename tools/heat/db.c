// SPDX-License-Identifier: GPL-2.0-only
/*
 * db.c: the heat map of a database. Events are added to bins while the file is read; no event is kept.
 */
#include "daemon/core/history/history.h"
#include "lib/demangle/runsite.h"
#include "lib/demangle/site.h"
#include "lib/read/run_pinned.h"
#include "lib/pin/groups.h"
#include "tools/heat/heat.h"

#define PAGE	  4096 /* the unit of ttmon_run_pages() */
#define LATEST_NS (1ULL << 62)

struct load {
	const struct ttmon_heat_ask *ask;
	struct ttmon_heatmap *map;
	int err;
	bool begun;    /* the times of the map are set */
	uint64_t over; /* number of allocations beyond the limit */
	/* events of the allocation whose pages are shown, or that may be it */
	struct ttmon_run_event *events;
	size_t nr, max;
	bool found;
};

static uint64_t width_of(uint64_t from_ns, uint64_t to_ns)
{
	return (to_ns - from_ns) / TTMON_HEATMAP_BINS + 1;
}

static void begin(struct load *l, const struct ttmon_run *run)
{
	l->begun = true;
	/* Whatever the file says, limit the times to values that cannot overflow in sums. */
	l->map->start_ns = MIN(run->start_ns, LATEST_NS);
	l->map->end_ns = MIN(MAX(run->end_ns, l->map->start_ns + 1), l->map->start_ns + TTMON_HEATMAP_MAX_NS);
	l->map->width_ns = width_of(l->map->start_ns, l->map->end_ns);
}

static bool is_transfer(unsigned int kind)
{
	return kind <= TTMON_AEV_UNKNOWN_DST;
}

static void keep_event(struct load *l, const struct ttmon_run_event *ev)
{
	size_t max = l->max ? l->max * 2 : 256;
	struct ttmon_run_event *more;

	if (l->nr == l->max) {
		more = reallocarray(l->events, max, sizeof(*more));
		if (!more) {
			l->err = -ENOMEM;
			return;
		}
		l->events = more;
		l->max = max;
	}
	l->events[l->nr++] = *ev;
}

static void on_event(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a,
		     const struct ttmon_run_event *ev)
{
	struct load *l = ctx;
	struct ttmon_heatmap_row *r;

	(void)a;
	if (!l->begun)
		begin(l, run);
	if (l->err || !is_transfer(ev->kind))
		return;
	if (l->ask->id) {
		if (!l->found)
			keep_event(l, ev);
		return;
	}
	if (!l->map->open && !ttmon_heatmap_begin(l->map)) {
		l->err = -ENOMEM;
		return;
	}
	r = &l->map->rows[l->map->nr];
	r->bytes += ev->bytes;
	r->copies++;
	l->err = ttmon_heatmap_put(l->map, MIN(ev->ts_ns, l->map->end_ns - 1), 1, ev->bytes);
}

static bool is_shown(const struct ttmon_heat_ask *ask, const struct ttmon_run *run, const struct ttmon_run_alloc *a,
		     bool moved)
{
	if (ask->pid && (a->proc >= run->nr_procs || run->procs[a->proc].pid != ask->pid))
		return false;
	if (ask->all)
		return true;
	if (a->method == TTMON_METHOD_MMAP)
		return moved;
	return ttmon_run_is_host(a) || ttmon_run_is_backing(a) || a->method == TTMON_METHOD_MANAGED;
}

static bool want_alloc(struct load *l, const struct ttmon_run *run, const struct ttmon_run_alloc *a)
{
	bool moved = l->map->open || a->h2d_copies || a->d2h_copies || a->other_copies;

	if (!is_shown(l->ask, run, a, moved)) {
		l->map->hidden++;
	} else if (l->map->nr == TTMON_HEATMAP_MAX_ROWS) {
		l->over++;
	} else if (!l->map->open && !ttmon_heatmap_begin(l->map)) {
		l->err = -ENOMEM;
	} else {
		ttmon_heatmap_keep(l->map);
		return true;
	}
	ttmon_heatmap_drop(l->map);
	return false;
}

/*
 * Returns whether the pages of this allocation were requested. The beginning of an id is enough; the
 * first allocation that fits is taken.
 */
static bool want_pages(struct load *l, const struct ttmon_run_alloc *a)
{
	if (l->found || strncmp(a->id, l->ask->id, strlen(l->ask->id)) != 0) {
		l->nr = l->found ? l->nr : 0;
		return false;
	}
	l->found = true;
	return true;
}

static bool on_want(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a)
{
	struct load *l = ctx;

	if (!l->begun)
		begin(l, run);
	if (l->err)
		return false;
	return l->ask->id ? want_pages(l, a) : want_alloc(l, run, a);
}

/* ---- after the file has been read ---- */

static int fill_row(const struct ttmon_run *run, const struct ttmon_run_alloc *a, size_t seq,
		    struct ttmon_heatmap_row *r)
{
	const struct ttmon_run_proc *p = a->proc < run->nr_procs ? &run->procs[a->proc] : NULL;
	bool named = a->name && (a->method == TTMON_METHOD_MMAP || !a->site);
	char site[160], shown[TTMON_SITE_WHOLE];

	if (named)
		ttmon_fmt_text(site, sizeof(site), a->name);
	else
		ttmon_run_site_text(run, a->site, site, sizeof(site));
	r->id = strdup(a->id);
	r->site = strdup(site);
	r->shown = named ? NULL : strdup(ttmon_site_show_run(shown, sizeof(shown), run, a->site, 0));
	r->comm = strdup(p && p->comm ? ttmon_fmt_text(site, sizeof(site), p->comm) : "?");
	r->pid = p ? p->pid : 0;
	r->seq = seq;
	r->size = a->size;
	r->method = a->method;
	r->unseen = ttmon_run_is_unknown(a);
	r->pinned = !r->unseen && (ttmon_run_is_pinned(a) || ttmon_run_is_backing(a) || a->flags & TTMON_RUN_PROVED);
	r->at_least = a->flags & TTMON_RUN_AT_LEAST;
	r->in_place = a->flags & TTMON_RUN_IN_PLACE;
	r->gpu = a->flags & TTMON_RUN_GPU;
	r->live = a->flags & TTMON_RUN_LIVE;
	r->alloc_ns = a->flags & TTMON_RUN_OLD ? 0 : a->alloc_ns;
	r->free_ns = r->live ? UINT64_MAX : a->free_ns;
	r->more = a->events_dropped != 0;
	return r->id && r->site && r->comm ? 0 : -ENOMEM;
}

static int fill_marks(const struct ttmon_run *run, struct ttmon_heatmap *map)
{
	int err = 0;

	for (size_t i = 0; i < run->nr_checkpoints && !err; i++)
		err = ttmon_heatmap_add_mark(&map->checkpoints, &map->nr_checkpoints, run->checkpoints[i].ts_ns,
					     run->checkpoints[i].ts_ns, run->checkpoints[i].label);
	for (size_t i = 0; i < run->nr_gaps && !err; i++)
		if (!ttmon_before(run->gaps[i].to_ns, run->gaps[i].from_ns))
			err = ttmon_heatmap_add_mark(&map->gaps, &map->nr_gaps, run->gaps[i].from_ns,
						     run->gaps[i].to_ns, run->gaps[i].what);
	return err;
}

static void add_missing(struct ttmon_heatmap *map, uint64_t n, const char *what)
{
	size_t len = strlen(map->missing);
	char count[TTMON_FMT_LEN];

	if (n)
		snprintf(map->missing + len, sizeof(map->missing) - len, "%s%s %s", len ? ", " : "",
			 ttmon_fmt_count(count, sizeof(count), n), what);
}

/* Returns whether the reasons are only those that the counts in the map already show. */
static bool is_told(const char *reasons)
{
	return !*reasons || !strcmp(reasons, "lost") || !strcmp(reasons, "limit") || !strcmp(reasons, "lost, limit");
}

static void add_reasons(struct ttmon_heatmap *map, const char *reasons)
{
	size_t len = strlen(map->missing);
	char text[160];

	snprintf(map->missing + len, sizeof(map->missing) - len, "%sINCOMPLETE: %s", len ? ", " : "",
		 ttmon_fmt_text(text, sizeof(text), *reasons ? reasons : "it does not say why"));
}

static void fill_missing(const struct ttmon_run *run, const struct load *l)
{
	struct ttmon_heatmap *map = l->map;

	map->complete = run->complete;
	add_missing(map, run->lost, "events LOST");
	add_missing(map, run->events_dropped, "events not kept");
	add_missing(map, run->folded, "allocations folded");
	add_missing(map, run->evicted, "not kept");
	add_missing(map, l->over, "allocations past what can be shown");
	if (!run->complete && (!map->missing[0] || !is_told(run->reasons)))
		add_reasons(map, run->reasons);
}

static int count_pinned(const struct ttmon_run *run, struct ttmon_heatmap *map)
{
	struct ttmon_run_pinned pinned;
	int err = ttmon_run_count_pinned(run, &pinned);

	if (err)
		return err;
	map->now_pages = pinned.end_pages;
	map->peak_pages = pinned.peak_pages;
	map->page_size = PAGE;
	map->pages_least = pinned.at_least;
	map->now_unknown = pinned.end_unknown;
	return 0;
}

static int fill_allocs(const struct ttmon_run *run, struct load *l)
{
	int err = run->nr_allocs == l->map->nr ? 0 : -EBADMSG;
	_cleanup_(ttmon_pin_groups_freep) struct ttmon_pin_groups *groups = NULL;
	_cleanup_free_ bool *procs = calloc(run->nr_procs + 1, sizeof(*procs));

	if (!procs)
		return -ENOMEM;
	err = err ? err : ttmon_pin_groups_new(run, NULL, &groups);
	for (size_t i = 0; i < l->map->nr && !err; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];
		const struct ttmon_said *said = ttmon_pin_groups_said(groups, i);

		err = fill_row(run, a, i, &l->map->rows[i]);
		l->map->rows[i].judged = said != NULL;
		if (said)
			l->map->rows[i].said = *said;
		if (a->proc < run->nr_procs && !procs[a->proc]) {
			procs[a->proc] = true;
			l->map->nr_procs++;
		}
	}
	return err ? err : count_pinned(run, l->map);
}

static int fill_pages(const struct ttmon_run *run, struct load *l)
{
	struct ttmon_heatmap *map = l->map;
	const struct ttmon_run_alloc *a;
	char site[300], title[400], size[TTMON_FMT_LEN];
	uint64_t group = PAGE;
	int err;

	if (!l->found || !run->nr_allocs)
		return -ENOENT;
	a = &run->allocs[0];
	map->pages = true;
	map->nr_procs = 1;
	map->start_ns = MIN(MAX(a->alloc_ns, map->start_ns), map->end_ns - 1);
	map->end_ns = MIN(MAX(a->free_ns, map->start_ns + 1), map->end_ns);
	map->width_ns = width_of(map->start_ns, map->end_ns);
	ttmon_site_show_run(site, sizeof(site), run, a->site, 0);
	snprintf(title, sizeof(title), "%s, %s by %s", a->id, ttmon_fmt_bytes(size, sizeof(size), a->size), site);
	map->title = strdup(title);
	err = map->title ? ttmon_heatmap_make_pages(map, a->size, 0, PAGE, &group) : -ENOMEM;
	for (size_t i = 0; i < l->nr && !err; i++)
		err = ttmon_heatmap_put_pages(map, group, MIN(l->events[i].ts_ns, map->end_ns - 1), l->events[i].offset,
					      l->events[i].bytes);
	for (size_t i = 0; i < map->nr; i++)
		map->rows[i].at_least = a->flags & TTMON_RUN_AT_LEAST;
	add_missing(map, a->events_dropped, "events of it not kept");
	return err;
}

static const char *base(const char *path)
{
	return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

int ttmon_heat_read_db(const struct ttmon_heat_ask *ask, struct ttmon_heatmap *map, char *why, size_t n)
{
	struct load l = { .ask = ask, .map = map };
	const struct ttmon_run_opts opts = { .want = on_want, .event = on_event, .ctx = &l };
	struct ttmon_run *run = NULL;
	int err = ttmon_run_load(ask->db, &opts, &run, why, n);

	if (err)
		goto out;
	if (!l.begun)
		begin(&l, run);
	err = l.err ? l.err : ask->id ? fill_pages(run, &l) : fill_allocs(run, &l);
	if (!err)
		err = fill_marks(run, map);
	if (!err)
		fill_missing(run, &l);
	if (!err && !map->title) {
		map->title = strdup(base(ask->db));
		err = map->title ? 0 : -ENOMEM;
	}
	if (err == -ENOENT)
		snprintf(why, n, "%s: no allocation has the id %s", ask->db, ask->id);
	else if (err)
		snprintf(why, n, "%s: %s", ask->db, strerror(-err));
out:
	ttmon_run_free(run);
	free(l.events);
	return err;
}
