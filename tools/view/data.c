// SPDX-License-Identifier: GPL-2.0-only
/*
 * data.c: the data of the page of `ttmon view`, as JSON: small tables, and one array for each column
 * of the allocations. Times are ns since the beginning of the capture. Processes, sites and objects
 * that no shown allocation refers to are left out, and the others are renumbered.
 */
#include "lib/demangle/demangle.h"
#include "lib/demangle/runsite.h"
#include "tools/view/curve.h"
#include "tools/view/view_int.h"

#define MAX_GAPS	1000
#define MAX_CHECKPOINTS 20000
#define MAX_FRAMES	64
#define SITE_COLUMNS	120 /* longest text of a site, which is what the page shows */

static void fini(struct ttmon_view_out *o)
{
	free(o->procs);
	free(o->sites);
	free(o->objects);
	free(o->answers);
	ttmon_jsonw_fini(&o->w);
}

/* ---- selection ---- */

static uint64_t moved(const struct ttmon_run_alloc *a)
{
	uint64_t bytes;

	return __builtin_add_overflow(a->h2d_bytes, a->d2h_bytes, &bytes) ? UINT64_MAX : bytes;
}

static uint64_t copies(const struct ttmon_run_alloc *a)
{
	return (uint64_t)a->h2d_copies + a->d2h_copies + a->other_copies;
}

static int by_weight(const void *x, const void *y, void *ctx)
{
	const struct ttmon_run *run = ctx;
	uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
	const struct ttmon_run_alloc *a = &run->allocs[i], *b = &run->allocs[j];

	if (moved(a) != moved(b))
		return moved(a) < moved(b) ? 1 : -1;
	if (copies(a) != copies(b))
		return copies(a) < copies(b) ? 1 : -1;
	if (a->size != b->size)
		return a->size < b->size ? 1 : -1;
	return (i > j) - (i < j);
}

static int by_number(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return (a > b) - (a < b);
}

int ttmon_view_choose(const struct ttmon_run *run, size_t max, uint32_t **ret, size_t *ret_nr)
{
	_cleanup_free_ uint32_t *all = calloc(run->nr_allocs + 1, sizeof(*all));
	size_t n = MIN(run->nr_allocs, max);

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_allocs; i++)
		all[i] = (uint32_t)i;
	if (n < run->nr_allocs) {
		qsort_r(all, run->nr_allocs, sizeof(*all), by_weight, (void *)run);
		qsort(all, n, sizeof(*all), by_number);
	}
	*ret = TAKE_PTR(all);
	*ret_nr = n;
	return 0;
}

/* ---- numbers ---- */

/* Numbers the marked entries 0, 1, ... in their order. */
static void renumber(uint32_t *map, size_t n)
{
	uint32_t next = 0;

	for (size_t i = 0; i < n; i++)
		if (map[i] != TTMON_RUN_NONE)
			map[i] = next++;
}

static uint32_t *new_map(size_t n)
{
	uint32_t *map = malloc((n + 1) * sizeof(*map));

	if (map)
		memset(map, 0xff, (n + 1) * sizeof(*map));
	return map;
}

static uint32_t nr_frames(const struct ttmon_run_site *s)
{
	return MIN(s->nframes, (uint32_t)MAX_FRAMES);
}

static int number(struct ttmon_view_out *o)
{
	const struct ttmon_run *run = o->run;

	o->procs = new_map(run->nr_procs);
	o->sites = new_map(run->nr_sites);
	o->objects = new_map(run->nr_objects);
	if (!o->procs || !o->sites || !o->objects)
		return -ENOMEM;
	/* Counts all allocations: the sums of a process include those that were left out. */
	for (size_t i = 0; i < run->nr_allocs; i++)
		o->procs[run->allocs[i].proc] = 0;
	for (size_t i = 0; i < o->v->nr_shown; i++)
		o->sites[run->allocs[o->v->shown[i]].site] = 0;
	for (size_t i = 0; i < run->nr_sites; i++) {
		const struct ttmon_run_site *s = &run->sites[i];

		for (uint32_t f = 0; o->sites[i] != TTMON_RUN_NONE && f < nr_frames(s); f++)
			if (run->frames[s->frame + f].object != TTMON_RUN_NONE)
				o->objects[run->frames[s->frame + f].object] = 0;
	}
	renumber(o->procs, run->nr_procs);
	renumber(o->sites, run->nr_sites);
	renumber(o->objects, run->nr_objects);
	return 0;
}

/*
 * Looks up what the profile says of each shown allocation. All allocations are counted, because the
 * lookup depends on their order.
 */
static int ask(struct ttmon_view_out *o)
{
	const struct ttmon_run *run = o->run;
	_cleanup_free_ uint32_t *order = calloc((run->nr_procs + 1) * TTMON_METHOD_MAX, sizeof(*order));
	size_t next = 0;

	o->answers = calloc(o->v->nr_shown + 1, sizeof(*o->answers));
	if (!order || !o->answers)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];
		uint32_t place = order[a->proc * (size_t)TTMON_METHOD_MAX + a->method]++;
		struct ttmon_profile_key key;

		if (next == o->v->nr_shown || o->v->shown[next] != i)
			continue;
		if (ttmon_run_is_host(a)) {
			ttmon_profile_key_of(run, a, place, &key);
			ttmon_profile_lookup(o->v->profile, &key, &o->answers[next]);
		}
		next++;
	}
	return 0;
}

/* ---- tables ---- */

static uint64_t nr_bins(const struct ttmon_view *v)
{
	const struct ttmon_view_bin *ignored;
	uint64_t n = 0;

	for (size_t i = 0; i < v->nr_shown; i++)
		n += ttmon_view_bins_get(v->bins, v->shown[i], &ignored);
	return n;
}

static void header(struct ttmon_view_out *o)
{
	const struct ttmon_run *run = o->run;
	struct ttmon_jsonw *w = &o->w;

	ttmon_jsonw_key_str(w, "version", o->v->version);
	ttmon_jsonw_key_str(w, "file", o->v->file);
	ttmon_jsonw_key_str(w, "host", run->hostname);
	ttmon_jsonw_key_str(w, "ttmond", run->ttmond);
	ttmon_jsonw_key_num(w, "span", ttmon_view_since(run, run->end_ns));
	ttmon_jsonw_key_time(w, "start_ns", run->start_ns);
	/* In ms, as JavaScript's Date takes it. */
	ttmon_jsonw_key_known(w, "real_ms", run->real_ns != 0, run->real_ns / NSEC_PER_MS);
	ttmon_jsonw_key_bool(w, "complete", run->complete);
	ttmon_jsonw_key_str(w, "reasons", run->reasons);
	ttmon_jsonw_key_bool(w, "sums_at_least", run->at_least);
	ttmon_jsonw_key_num(w, "lost", run->lost);
	ttmon_jsonw_key_num(w, "folded", run->folded);
	ttmon_jsonw_key_num(w, "evicted", run->evicted);
	ttmon_jsonw_key_num(w, "events_dropped", run->events_dropped);
	ttmon_jsonw_key_num(w, "allocs", run->nr_allocs);
	ttmon_jsonw_key_num(w, "mappings", o->v->mappings);
	ttmon_jsonw_key_num(w, "undrawn", o->v->bins->left_out);
	ttmon_jsonw_key_num(w, "shift", o->v->bins->shift);
	ttmon_jsonw_key_num(w, "nr_bins", nr_bins(o->v));
	ttmon_jsonw_key_open(w, "cost", '[');
	ttmon_jsonw_num(w, o->v->cost.pageable_bps);
	ttmon_jsonw_num(w, o->v->cost.pinned_bps);
	ttmon_jsonw_num(w, o->v->cost.pinning_bps);
	ttmon_jsonw_num(w, o->v->cost.pin_call_ns);
	ttmon_jsonw_num(w, o->v->cost.unpin_call_ns);
	ttmon_jsonw_close(w, ']');
}

static void methods(struct ttmon_view_out *o)
{
	static const char *const names[] = {
#define X(id, NAME, name) [id] = name,
		TTMON_METHOD_TABLE(X)
#undef X
	};
	struct ttmon_jsonw *w = &o->w;

	/* [name, pinned, host memory] */
	ttmon_jsonw_key_open(w, "methods", '[');
	for (unsigned int m = 0; m < TTMON_METHOD_MAX; m++) {
		const struct ttmon_run_alloc a = { .method = (uint8_t)m };

		ttmon_jsonw_open(w, '[');
		ttmon_jsonw_name(w, names[m]);
		ttmon_jsonw_bool(w, ttmon_run_is_pinned(&a));
		ttmon_jsonw_bool(w, ttmon_run_is_host(&a));
		ttmon_jsonw_close(w, ']');
	}
	ttmon_jsonw_close(w, ']');
}

/* Writes the texts of the verdicts, in the order of their numbers. */
static void words(struct ttmon_view_out *o)
{
	struct ttmon_jsonw *w = &o->w;

	ttmon_jsonw_key_open(w, "advice_words", '[');
	for (unsigned int i = 0; i < TTMON_ADVICE_MAX; i++)
		ttmon_jsonw_str(w, ttmon_advice_name(i));
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_open(w, "advice_reasons", '[');
	for (unsigned int i = 0; i < TTMON_REASON_MAX; i++)
		ttmon_jsonw_str(w, ttmon_reason_text(i));
	ttmon_jsonw_close(w, ']');
}

struct sums {
	uint64_t allocs, pins, copies, h2d_copies, h2d_bytes, h2d_pinned, d2h_bytes;
};

static int procs(struct ttmon_view_out *o)
{
	const struct ttmon_run *run = o->run;
	_cleanup_free_ struct sums *sums = calloc(run->nr_procs + 1, sizeof(*sums));
	struct ttmon_jsonw *w = &o->w;

	if (!sums)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];
		struct sums *s = &sums[a->proc];
		bool pinned = (ttmon_run_is_pinned(a) && !ttmon_run_is_unknown(a)) || a->flags & TTMON_RUN_PROVED;

		if (!ttmon_run_is_host(a))
			continue;
		s->allocs++;
		s->pins += pinned;
		s->copies += copies(a);
		s->h2d_copies += a->h2d_copies;
		s->h2d_bytes += a->h2d_bytes;
		s->h2d_pinned += pinned ? a->h2d_bytes : 0;
		s->d2h_bytes += a->d2h_bytes;
	}
	/*
	 * [pid, comm, exe, command line, first and last time, then the sums over host memory, and whether they
	 * are lower bounds]
	 */
	ttmon_jsonw_key_open(w, "procs", '[');
	for (size_t i = 0; i < run->nr_procs; i++) {
		const struct ttmon_run_proc *p = &run->procs[i];

		if (o->procs[i] == TTMON_RUN_NONE)
			continue;
		ttmon_jsonw_open(w, '[');
		ttmon_jsonw_num(w, p->pid);
		ttmon_jsonw_str(w, p->comm);
		ttmon_jsonw_str(w, p->exe);
		ttmon_jsonw_str(w, p->cmdline);
		ttmon_jsonw_num(w, ttmon_view_since(run, p->first_ns));
		ttmon_jsonw_num(w, ttmon_view_since(run, p->last_ns));
		ttmon_jsonw_num(w, sums[i].allocs);
		ttmon_jsonw_num(w, sums[i].pins);
		ttmon_jsonw_num(w, sums[i].copies);
		ttmon_jsonw_num(w, sums[i].h2d_copies);
		ttmon_jsonw_num(w, sums[i].h2d_bytes);
		ttmon_jsonw_num(w, sums[i].h2d_pinned);
		ttmon_jsonw_num(w, sums[i].d2h_bytes);
		ttmon_jsonw_bool(w, p->at_least);
		ttmon_jsonw_close(w, ']');
	}
	ttmon_jsonw_close(w, ']');
	return 0;
}

static void frame(struct ttmon_view_out *o, const struct ttmon_run_frame *f)
{
	struct ttmon_jsonw *w = &o->w;
	char name[TTMON_DEMANGLE_WHOLE];

	/* [object, file offset, function] */
	ttmon_jsonw_open(w, '[');
	ttmon_jsonw_int(w, f->object == TTMON_RUN_NONE ? -1 : (int64_t)o->objects[f->object]);
	ttmon_jsonw_addr(w, f->offset);
	if (f->fn && f->object != TTMON_RUN_NONE && o->run->objects[f->object].python)
		ttmon_jsonw_str(w, ttmon_run_frame_name(o->run, f, name, sizeof(name)));
	else if (f->fn)
		ttmon_jsonw_symbol(w, ttmon_demangle(name, sizeof(name), f->fn), f->delta);
	else
		ttmon_jsonw_null(w);
	ttmon_jsonw_close(w, ']');
}

static void sites(struct ttmon_view_out *o)
{
	const struct ttmon_run *run = o->run;
	struct ttmon_jsonw *w = &o->w;
	char text[SITE_COLUMNS + 1];

	ttmon_jsonw_key_open(w, "objects", '[');
	for (size_t i = 0; i < run->nr_objects; i++)
		if (o->objects[i] != TTMON_RUN_NONE)
			ttmon_jsonw_str(w, run->objects[i].path);
	ttmon_jsonw_close(w, ']');
	/* [key, text, frames, number of frames] */
	ttmon_jsonw_key_open(w, "sites", '[');
	for (size_t i = 0; i < run->nr_sites; i++) {
		const struct ttmon_run_site *s = &run->sites[i];

		if (o->sites[i] == TTMON_RUN_NONE)
			continue;
		ttmon_jsonw_open(w, '[');
		ttmon_jsonw_addr(w, s->key);
		ttmon_jsonw_str(w, ttmon_site_show_run(text, sizeof(text), run, (uint32_t)i, SITE_COLUMNS));
		ttmon_jsonw_open(w, '[');
		for (uint32_t f = 0; f < nr_frames(s); f++)
			frame(o, &run->frames[s->frame + f]);
		ttmon_jsonw_close(w, ']');
		ttmon_jsonw_num(w, s->nframes);
		ttmon_jsonw_close(w, ']');
	}
	ttmon_jsonw_close(w, ']');
}

static void times(struct ttmon_view_out *o)
{
	const struct ttmon_run *run = o->run;
	struct ttmon_jsonw *w = &o->w;

	ttmon_jsonw_key_num(w, "nr_gaps", run->nr_gaps);
	ttmon_jsonw_key_open(w, "gaps", '[');
	for (size_t i = 0; i < MIN(run->nr_gaps, (size_t)MAX_GAPS); i++) {
		ttmon_jsonw_open(w, '[');
		ttmon_jsonw_num(w, ttmon_view_since(run, run->gaps[i].from_ns));
		ttmon_jsonw_num(w, ttmon_view_since(run, run->gaps[i].to_ns));
		ttmon_jsonw_str(w, run->gaps[i].what);
		ttmon_jsonw_close(w, ']');
	}
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_num(w, "nr_checkpoints", run->nr_checkpoints);
	ttmon_jsonw_key_open(w, "checkpoints", '[');
	for (size_t i = 0; i < MIN(run->nr_checkpoints, (size_t)MAX_CHECKPOINTS); i++) {
		uint32_t proc = run->checkpoints[i].proc;

		ttmon_jsonw_open(w, '[');
		ttmon_jsonw_num(w, ttmon_view_since(run, run->checkpoints[i].ts_ns));
		ttmon_jsonw_int(w, proc < run->nr_procs && o->procs[proc] != TTMON_RUN_NONE ? (int64_t)o->procs[proc]
											    : -1);
		ttmon_jsonw_str(w, run->checkpoints[i].label);
		ttmon_jsonw_close(w, ']');
	}
	ttmon_jsonw_close(w, ']');
}

static void policies(struct ttmon_view_out *o)
{
	struct ttmon_jsonw *w = &o->w;

	/*
	 * [name, help, peak pages, sum of pages pinned, bytes to the device, of these from pinned memory,
	 * transfer ns, pinning ns]
	 */
	ttmon_jsonw_key_open(w, "policies", '[');
	for (unsigned int p = 0; o->v->policies && p < TTMON_POLICY_MAX; p++) {
		const struct ttmon_policy_result *r = &o->v->policies[p];

		ttmon_jsonw_open(w, '[');
		ttmon_jsonw_str(w, ttmon_policy_name(p));
		ttmon_jsonw_str(w, ttmon_policy_help(p));
		ttmon_jsonw_num(w, r->peak_pages);
		ttmon_jsonw_num(w, r->pages_pinned);
		ttmon_jsonw_num(w, r->moved_bytes);
		ttmon_jsonw_num(w, r->moved_pinned_bytes);
		ttmon_jsonw_int(w, r->transfer_ns);
		ttmon_jsonw_int(w, r->pinning_ns);
		ttmon_jsonw_close(w, ']');
	}
	ttmon_jsonw_close(w, ']');
}

static void curve(void *ctx, const struct ttmon_view_curve *c)
{
	struct ttmon_view_out *o = ctx;
	struct ttmon_jsonw *w = &o->w;
	uint64_t at = 0;

	/*
	 * [process, peak pages, time of the peak, [ns since the point before, pages]...]; process -1: all
	 * processes together
	 */
	ttmon_jsonw_open(w, '[');
	ttmon_jsonw_int(w, c->proc == TTMON_RUN_NONE ? -1 : (int64_t)o->procs[c->proc]);
	ttmon_jsonw_num(w, c->peak);
	ttmon_jsonw_num(w, ttmon_view_since(o->run, c->peak_ns));
	ttmon_jsonw_num(w, c->width_ns);
	for (size_t i = 0; i < c->nr; i++) {
		uint64_t t = ttmon_view_since(o->run, c->points[i].ns);

		ttmon_jsonw_num(w, t - at);
		ttmon_jsonw_num(w, c->points[i].pages);
		at = t;
	}
	ttmon_jsonw_close(w, ']');
}

int ttmon_view_write_meta(const struct ttmon_view *v, int fd)
{
	_cleanup_(fini) struct ttmon_view_out o = { .v = v, .run = v->run };
	int err = number(&o);

	if (!err)
		err = ask(&o);
	if (!err)
		err = ttmon_jsonw_init(&o.w, fd, false);
	if (err)
		return err;
	ttmon_jsonw_open(&o.w, '{');
	header(&o);
	methods(&o);
	words(&o);
	err = procs(&o);
	if (err)
		return err;
	sites(&o);
	times(&o);
	policies(&o);
	ttmon_jsonw_key(&o.w, "pinned");
	ttmon_jsonw_open(&o.w, '[');
	err = ttmon_view_curves(v->run, curve, &o);
	if (err)
		return err;
	ttmon_jsonw_close(&o.w, ']');
	ttmon_view_columns(&o);
	ttmon_jsonw_close(&o.w, '}');
	ttmon_jsonw_end(&o.w);
	return ttmon_jsonw_finish(&o.w);
}
