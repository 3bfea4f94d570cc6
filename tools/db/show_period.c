// SPDX-License-Identifier: GPL-2.0-only
/*
 * show_period.c: `ttmon db show FILE --period WHICH` shows what was moved in each period of a program
 * (daemon/core/history/periods.h): which memory in all periods, which in some, which only at the
 * start. For a training loop this shows the steady state. In 80 columns, one process after the other.
 */
#include <inttypes.h>

#include "lib/base/grow.h"
#include "lib/base/names.h"
#include "daemon/core/history/history.h"
#include "lib/base/hmap.h"
#include "daemon/core/history/periods.h"
#include "lib/pin/profile.h"
#include "lib/read/run.h"
#include "lib/demangle/runsite.h"
#include "tools/db/db_tool.h"
#include "lib/base/fmt.h"

#define MAX_PROCESSES 16
#define MAX_ROWS      10
#define MAX_LABELS    8
#define SITE_COLUMNS  72

/* The memory of one process, call site (or name, if no site is known) and method. */
struct group {
	uint32_t proc, site;
	uint8_t method;
	bool in_place;
	const char *name; /* borrowed from the run */
	struct ttmon_period_row row;
};

struct which {
	char label[256];
	bool has_label, has_number;
	int64_t number;
};

struct show {
	struct which which;
	bool begun;
	size_t nr_marks;	       /* number of marks when the groups were begun */
	struct ttmon_period_ends ends; /* the labels are borrowed from the run */
	struct ttmon_periods *sums;
	struct group *groups;
	uint32_t n, cap;
	struct ttmon_hmap by_key;
	uint64_t seed;
	const char *id; /* id of the current allocation */
	int err;
};

/* ---- reading ---- */

static bool same_group(const struct group *g, const struct ttmon_run_alloc *a)
{
	return g->proc == a->proc && g->site == a->site && g->method == a->method && (a->site || g->name == a->name);
}

/*
 * Returns the group of this allocation; makes it if there is none. Two names are equal if their texts
 * are.
 */
static struct group *group_of(struct show *s, const struct ttmon_run_alloc *a)
{
	uint64_t key = ttmon_mix64(((uint64_t)a->proc << 32 | a->site) ^ s->seed) ^ ttmon_mix64(a->method + 1), at;

	if (!a->site)
		key ^= ttmon_mix64((uintptr_t)a->name);
	for (; (at = ttmon_hmap_get(&s->by_key, key)) != TTMON_HMAP_NONE; key++)
		if (same_group(&s->groups[at], a))
			return &s->groups[at];
	if (TTMON_GROW(s->groups, s->cap, s->n + 1, 64))
		return NULL;
	if (ttmon_hmap_put(&s->by_key, key, s->n) < 0)
		return NULL;
	s->groups[s->n] = (struct group){
		.proc = a->proc, .site = a->site, .method = a->method, .name = a->site ? NULL : a->name
	};
	return &s->groups[s->n++];
}

/*
 * Called before the first event, because assigning an event to a period takes the end of the period.
 */
static int read_ends(struct show *s, const struct ttmon_run *run)
{
	_cleanup_free_ struct ttmon_period_mark *marks = malloc((run->nr_checkpoints + 1) * sizeof(*marks));

	if (!marks)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_checkpoints; i++) {
		const struct ttmon_run_checkpoint *c = &run->checkpoints[i];

		marks[i] = (struct ttmon_period_mark){ c->ts_ns, c->proc, c->label };
	}
	s->begun = true;
	s->nr_marks = run->nr_checkpoints;
	return ttmon_period_ends_init(&s->ends, marks, run->nr_checkpoints, s->which.has_label ? s->which.label : NULL,
				      (uint32_t)run->nr_procs);
}

static void add_event(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a,
		      const struct ttmon_run_event *ev)
{
	struct show *s = ctx;
	const struct group *g;

	if (!s->begun && !s->err)
		s->err = read_ends(s, run);
	if (s->err || !ttmon_run_is_host(a) || (ev->kind != TTMON_AEV_H2D && ev->kind != TTMON_AEV_D2H) ||
	    a->proc >= s->ends.nr_procs || !ttmon_period_count(&s->ends, a->proc))
		return;
	if (s->id != a->id) {
		g = group_of(s, a);
		if (!g) {
			s->err = -ENOMEM;
			return;
		}
		ttmon_periods_alloc(s->sums, (uint32_t)(g - s->groups), a->size);
		s->id = a->id;
	}
	s->err = ttmon_periods_add(s->sums, ttmon_period_at(&s->ends, a->proc, ev->ts_ns), ev->kind == TTMON_AEV_H2D,
				   ev->bytes);
}

/*
 * Adds an allocation to its group. Pinned memory that is never moved has no event but still gets a
 * row. Only groups are kept.
 */
static bool add_alloc(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a)
{
	struct show *s = ctx;
	struct group *g;

	(void)run;
	if (s->err || (s->id != a->id && !ttmon_run_is_pinned(a)))
		return false;
	g = group_of(s, a);
	if (!g)
		s->err = -ENOMEM;
	else
		g->in_place |= (a->flags & TTMON_RUN_IN_PLACE) != 0;
	return false;
}

static int fill_rows(struct show *s)
{
	_cleanup_free_ struct ttmon_period_ask *ask = malloc((s->n + 1) * sizeof(*ask));
	_cleanup_free_ struct ttmon_period_row *rows = malloc((s->n + 1) * sizeof(*rows));
	int err;

	if (!ask || !rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t of = ttmon_period_count(&s->ends, s->groups[i].proc);
		int64_t at = s->which.number < 0 ? of + s->which.number : s->which.number;

		ask[i] = (struct ttmon_period_ask){ of, s->which.has_number && of && at >= 0 && at <= of ? (uint32_t)at
													 : UINT32_MAX };
	}
	err = ttmon_periods_rows(s->sums, ask, s->n, rows);
	for (uint32_t i = 0; !err && i < s->n; i++)
		s->groups[i].row = rows[i];
	return err;
}

/* ---- printing ---- */

static void print_site(const struct ttmon_run *run, const struct group *g)
{
	char text[SITE_COLUMNS + 1];

	if (!g->site || !run->sites[g->site].nframes)
		printf("        %s\n", g->name ? ttmon_fmt_text(text, sizeof(text), g->name) : "call site not known");
	else
		printf("        %s\n", ttmon_site_show_run(text, sizeof(text), run, g->site, SITE_COLUMNS));
}

static void print_advice(const struct group *g)
{
	struct ttmon_cost cost = TTMON_COST_DEFAULT;
	struct ttmon_period_gain gain;
	char saved[TTMON_FMT_LEN], n[TTMON_FMT_LEN];

	ttmon_period_get_gain(&g->row, cost.pageable_bps, cost.pinned_bps, cost.pinning_bps, &gain);
	switch (ttmon_period_advice(&g->row, &gain, g->method, g->in_place)) {
	case TTMON_ADVICE_PIN:
		printf("        pin: saves %s a period, is paid for after %s\n",
		       ttmon_fmt_ns(saved, sizeof(saved), gain.saved_ns),
		       ttmon_fmt_count(n, sizeof(n), MAX(gain.pays_after, 1)));
		break;
	case TTMON_ADVICE_UNPIN:
		puts("        unpin: not moved after the first period");
		break;
	default:
		if (ttmon_method_pinned(g->method) && g->row.when >= TTMON_WHEN_START && g->in_place)
			puts("        keep: a kernel may read it in place");
		break;
	}
}

static void print_row(const struct ttmon_run *run, const struct group *g)
{
	const struct ttmon_period_row *r = &g->row;
	char share[32], median[TTMON_FMT_LEN], most[TTMON_FMT_LEN], to[TTMON_FMT_LEN], back[TTMON_FMT_LEN];

	snprintf(share, sizeof(share), "%" PRIu32 " of %" PRIu32, r->steps, r->of);
	printf("  %-15s %10s %10s %10s %10s  %s\n", share, ttmon_fmt_bytes(median, sizeof(median), r->median),
	       ttmon_fmt_bytes(most, sizeof(most), r->max), ttmon_fmt_bytes(to, sizeof(to), r->bytes[1]),
	       ttmon_fmt_bytes(back, sizeof(back), r->bytes[0]), ttmon_method_name(g->method));
	print_site(run, g);
	print_advice(g);
}

static void print_shown(const struct ttmon_run *run, const struct group *g)
{
	const struct ttmon_period_row *r = &g->row;
	char to[TTMON_FMT_LEN], back[TTMON_FMT_LEN], copies[TTMON_FMT_LEN];

	printf("  %10s %10s %10s  %-10s  in %" PRIu32 " of %" PRIu32 " periods\n",
	       ttmon_fmt_count(copies, sizeof(copies), r->shown_copies[0] + r->shown_copies[1]),
	       ttmon_fmt_bytes(to, sizeof(to), r->shown_bytes[1]),
	       ttmon_fmt_bytes(back, sizeof(back), r->shown_bytes[0]), ttmon_method_name(g->method), r->steps, r->of);
	print_site(run, g);
}

static int by_bytes(const void *pa, const void *pb)
{
	const struct group *const *pga = pa, *const *pgb = pb;
	const struct ttmon_period_row *a = &(*pga)->row, *b = &(*pgb)->row;
	uint64_t x = a->bytes[0] + a->bytes[1], y = b->bytes[0] + b->bytes[1];

	if (a->shown != UINT32_MAX) {
		x = a->shown_bytes[0] + a->shown_bytes[1];
		y = b->shown_bytes[0] + b->shown_bytes[1];
	}
	return x < y ? 1 : x > y ? -1 : a->group < b->group ? -1 : 1;
}

/* Prints the rows of one process that belong under a title. */
static void print_rows(const struct ttmon_run *run, const struct group **list, uint32_t n, const char *title,
		       unsigned int when)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (list[i]->row.when != when)
			continue;
		if (!found)
			printf("\n%s\n", title);
		if (found++ < MAX_ROWS)
			print_row(run, list[i]);
	}
	if (found > MAX_ROWS)
		printf("  and %" PRIu32 " more\n", found - MAX_ROWS);
}

static int by_length(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

/*
 * Computes the median length of the complete periods after the first (which includes the program's
 * start); of all complete ones if there are no others.
 */
static int median_length(const struct ttmon_run *run, const struct show *s, uint32_t proc, uint64_t *ret)
{
	const uint64_t *ts = s->ends.ts + s->ends.from[proc];
	uint32_t n = ttmon_period_count(&s->ends, proc);
	_cleanup_free_ uint64_t *len = malloc(n * sizeof(*len));

	if (!len)
		return -ENOMEM;
	for (uint32_t i = 1; i < n; i++)
		len[i - 1] = ts[i] - ts[i - 1];
	if (n == 1)
		len[0] = ts[0] - MIN(run->procs[proc].first_ns, ts[0]);
	qsort(len, MAX(n - 1, 1), sizeof(*len), by_length);
	*ret = len[MAX(n - 1, 1) / 2];
	return 0;
}

static void print_title(const struct ttmon_run *run, const struct show *s, uint32_t proc, uint64_t length)
{
	char comm[20], label[TTMON_LABEL_LEN], text[TTMON_FMT_LEN], count[TTMON_FMT_LEN];
	uint32_t n = ttmon_period_count(&s->ends, proc);

	printf("\n%s[%" PRIu32 "]: %s period%s by \"%s\", median %s\n",
	       ttmon_fmt_text(comm, sizeof(comm), run->procs[proc].comm), run->procs[proc].pid,
	       ttmon_fmt_count(count, sizeof(count), n), n == 1 ? "" : "s",
	       ttmon_fmt_text(label, sizeof(label), s->ends.label[proc]), ttmon_fmt_ns(text, sizeof(text), length));
}

static void print_process(const struct ttmon_run *run, const struct group **list, uint32_t n)
{
	static const char *const titles[TTMON_WHEN_MAX] = {
		[TTMON_WHEN_STEADY] = "STEADY: moved in 9 of 10 periods after the first, or more",
		[TTMON_WHEN_SOMETIMES] = "NOW AND THEN",
		[TTMON_WHEN_START] = "AT THE START: in the first period alone",
		[TTMON_WHEN_AFTER] = "AT THE END: after the last checkpoint alone",
		[TTMON_WHEN_NEVER] = "PINNED AND NEVER MOVED",
	};

	printf("  %-15s %10s %10s %10s %10s  %s\n", "PERIODS", "MEDIAN", "MOST", "TO DEVICE", "TO HOST", "MEMORY");
	for (unsigned int when = 0; when < TTMON_WHEN_MAX; when++)
		print_rows(run, list, n, titles[when], when);
}

static void print_period(const struct ttmon_run *run, const struct show *s, uint32_t proc, const struct group **list,
			 uint32_t n)
{
	uint32_t of = ttmon_period_count(&s->ends, proc);
	int64_t at = s->which.number < 0 ? of + s->which.number : s->which.number;
	const uint64_t *ts = s->ends.ts + s->ends.from[proc];
	uint64_t from, to;
	uint32_t found = 0;
	char text[TTMON_FMT_LEN];

	if (at < 0 || at > of) {
		printf("  has no period %" PRId64 "\n", s->which.number);
		return;
	}
	from = at ? ts[at - 1] : run->procs[proc].first_ns;
	to = at < of ? ts[at] : run->end_ns;
	printf("\nPERIOD %" PRId64 "%s, %s\n  %10s %10s %10s  %s\n", at, at == of ? " (after the last checkpoint)" : "",
	       ttmon_fmt_ns(text, sizeof(text), to > from ? to - from : 0), "COPIES", "TO DEVICE", "TO HOST", "MEMORY");
	for (uint32_t i = 0; i < n; i++)
		if (list[i]->row.shown_copies[0] + list[i]->row.shown_copies[1] && found++ < MAX_ROWS)
			print_shown(run, list[i]);
	if (found > MAX_ROWS)
		printf("  and %" PRIu32 " more\n", found - MAX_ROWS);
}

static int show_all(const struct ttmon_run *run, const struct show *s)
{
	_cleanup_free_ const struct group **list = calloc((size_t)s->n + 1, sizeof(*list));
	uint32_t shown = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t proc = 0; proc < s->ends.nr_procs; proc++) {
		uint64_t length = 0;
		uint32_t n = 0;
		int err;

		if (!ttmon_period_count(&s->ends, proc) || shown++ >= MAX_PROCESSES)
			continue;
		err = median_length(run, s, proc, &length);
		if (err)
			return err;
		for (uint32_t i = 0; i < s->n; i++)
			if (s->groups[i].proc == proc)
				list[n++] = &s->groups[i];
		qsort(list, n, sizeof(*list), by_bytes);
		print_title(run, s, proc, length);
		if (s->which.has_number)
			print_period(run, s, proc, list, n);
		else
			print_process(run, list, n);
	}
	if (shown > MAX_PROCESSES)
		printf("\nand %" PRIu32 " more processes\n", shown - MAX_PROCESSES);
	if (!run->complete || run->events_dropped || run->folded || run->evicted)
		puts("\nINCOMPLETE not all that happened is in this database (ttmon db show)");
	return 0;
}

/* Writes why there is nothing to show. */
static void no_periods(const struct show *s, const struct ttmon_run *run, char *why, size_t n)
{
	const char *seen[MAX_LABELS];
	char name[200], label[TTMON_LABEL_LEN];
	size_t nr = 0, at;

	ttmon_fmt_text(name, sizeof(name), run->path);
	if (!run->nr_checkpoints) {
		snprintf(why, n, "%s has no checkpoints: no program marked the ends of its periods", name);
		return;
	}
	if (!s->nr_marks) {
		snprintf(why, n, "%s has its checkpoints after its allocations, which ttmond never writes", name);
		return;
	}
	at = (size_t)snprintf(why, n, "%s has no checkpoint \"%s\"; there are", name,
			      ttmon_fmt_text(label, sizeof(label), s->which.label));
	for (size_t i = 0; i < run->nr_checkpoints && nr < MAX_LABELS && at < n; i++) {
		size_t k = 0;

		while (k < nr && seen[k] != run->checkpoints[i].label)
			k++;
		if (k < nr)
			continue;
		seen[nr++] = run->checkpoints[i].label;
		at += (size_t)snprintf(why + at, n - at, "%s \"%s\"", nr > 1 ? "," : "",
				       ttmon_fmt_text(label, sizeof(label), run->checkpoints[i].label));
	}
}

/* ---- the command ---- */

static bool parse_number(const char *text, int64_t *ret)
{
	char *end;

	if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
		return false;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return !errno && !*end && end != text && *ret >= -(int64_t)UINT32_MAX && *ret <= UINT32_MAX;
}

/* Parses "LABEL", "N" or "LABEL:N". "LABEL:" is for a label that is a number. */
static void parse_which(const char *text, struct which *w)
{
	const char *colon = strrchr(text, ':');
	size_t n = strlen(text);

	*w = (struct which){ 0 };
	if (parse_number(text, &w->number)) {
		w->has_number = true;
		return;
	}
	if (colon && (!colon[1] || parse_number(colon + 1, &w->number))) {
		w->has_number = colon[1];
		n = (size_t)(colon - text);
	}
	w->has_label = true;
	snprintf(w->label, sizeof(w->label), "%.*s", (int)MIN(n, sizeof(w->label) - 1), text);
}

static int show(struct show *s, const char *path, struct ttmon_run **run, char *why, size_t n)
{
	struct ttmon_run_opts opts = { .want = add_alloc, .event = add_event, .ctx = s };
	char text[300];
	int err = ttmon_periods_new(&s->sums);

	err = err ? err : ttmon_run_load(path, &opts, run, why, n);
	if (err)
		return err;
	if (!s->begun && !s->err)
		s->err = read_ends(s, *run);
	if (!s->err && !s->ends.from[s->ends.nr_procs]) {
		no_periods(s, *run, why, n);
		return -ENOENT;
	}
	if (s->err == -E2BIG)
		snprintf(why, n, "%.300s: more than %u pairs of memory and period", path, TTMON_PERIODS_CELLS);
	err = s->err ? s->err : fill_rows(s);
	if (err)
		return err;
	puts(ttmon_fmt_text(text, sizeof(text), (*run)->path));
	return show_all(*run, s);
}

int ttmon_db_tool_show_period(const char *path, const char *which)
{
	_cleanup_(ttmon_run_freep) struct ttmon_run *run = NULL;
	struct show s = { .seed = ttmon_run_seed() };
	char why[1200] = "out of memory";
	int err;

	parse_which(which, &s.which);
	err = show(&s, path, &run, why, sizeof(why));
	if (err)
		fprintf(stderr, "ttmon: %s\n", why);
	ttmon_period_ends_fini(&s.ends);
	ttmon_periods_free(s.sums);
	ttmon_hmap_fini(&s.by_key);
	free(s.groups);
	return err ? 1 : 0;
}
