// SPDX-License-Identifier: GPL-2.0-only
/*
 * db_tt.c: the member "tenstorrent" of the database, from the views of the pipeline's Tenstorrent
 * parts. Runs where ttmon_db_write() runs. Order is that of the views, so the same run gives the same
 * bytes. Long tables (runs, dispatched, slots) are arrays of arrays whose columns are named once.
 */
#include "daemon/io/files/db_tt.h"

#include "daemon/io/files/db_rows.h"
#include "lib/base/names.h"

static const char *const arch_names[TTMON_TT_ARCH_MAX] = { "unknown", "grayskull", "wormhole", "blackhole" };
static const char *const chip_flags[] = { "remote", "galaxy", "gone", "learned" };
static const char *const dev_kinds[TTMON_TT_DEV_MAX] = { "unknown", "device", "mesh" };
static const char *const how_names[TTMON_TT_HOW_MAX] = {
#define X(id, NAME, name) [id] = name,
	TTMON_TT_HOW_TABLE(X)
#undef X
};
static const char *const dispatch_names[TTMON_TT_DISPATCH_MAX] = {
#define X(id, NAME, name) [id] = name,
	TTMON_TT_DISPATCH_TABLE(X)
#undef X
};
static const char *const run_columns[] = { "pid",    "device",	 "chip",       "program",      "start_ns",
					   "end_ns", "error_ns", "clock",      "start_cycles", "end_cycles",
					   "hz",     "seen_ns",	 "enqueued_ns" };
static const char *const dispatched_columns[] = { "pid",    "tid",  "ts_ns",	"kind", "fn",
						  "device", "what", "blocking", "count" };
static const char *const slot_columns[] = { "slot", "pid", "device", "chip", "dispatches", "busy_ns" };

/*
 * Limit for runs, dispatches and slots each: a reader of a database has them all in memory. A trace
 * file (--trace-out) has no such limit.
 */
#define MAX_ROWS 250000

/* An unknown figure. */
static const char *name_of(const char *const *names, size_t n, unsigned int i)
{
	return i < n ? names[i] : NULL;
}

static uint64_t hertz(double ghz)
{
	/* Written so that a NaN gives 0. */
	return ghz > 0 && ghz < 1e6 ? (uint64_t)(ghz * 1e9 + 0.5) : 0;
}

/* flags: of the process or chip. Unknown values are null. */
static void bytes_by_type(struct ttmon_jsonw *w, const char *key, const uint64_t bytes[TTMON_TT_TYPES], uint32_t flags)
{
	ttmon_jsonw_key_open(w, key, '{');
	for (unsigned int i = 0; i < TTMON_TT_TYPES; i++)
		ttmon_jsonw_key_known(w, ttmon_tt_type_name(i), ttmon_tt_is_known(i, bytes[i], flags), bytes[i]);
	ttmon_jsonw_close(w, '}');
}

static void write_chips(struct ttmon_jsonw *w, const struct ttmon_tt_view *v)
{
	ttmon_jsonw_key_open(w, "chips", '[');
	for (size_t i = 0; i < v->nr_chips; i++) {
		const struct ttmon_ev_tt_chip *c = &v->chips[i].fact;

		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_num(w, "index", c->index);
		ttmon_jsonw_key_name(w, "arch", name_of(arch_names, ARRAY_SIZE(arch_names), c->arch));
		ttmon_jsonw_key_text(w, "card", c->card, sizeof(c->card));
		ttmon_jsonw_key_open(w, "flags", '[');
		for (size_t k = 0; k < ARRAY_SIZE(chip_flags); k++)
			if (c->flags & (1u << k))
				ttmon_jsonw_name(w, chip_flags[k]);
		ttmon_jsonw_close(w, ']');
		ttmon_jsonw_key_known(w, "ordinal", c->ordinal != UINT32_MAX, c->ordinal);
		ttmon_jsonw_key_known(w, "bdf", c->bdf != UINT32_MAX, c->bdf);
		ttmon_jsonw_key_addr(w, "board_id", c->board_id);
		ttmon_jsonw_key_addr(w, "asic_id", c->asic_id);
		ttmon_jsonw_key_addr(w, "unique_id", c->unique_id);
		ttmon_jsonw_key_addr(w, "key_v1", c->key_v1);
		ttmon_jsonw_key_num(w, "location", c->location);
		ttmon_jsonw_key_num(w, "tray", c->tray);
		ttmon_jsonw_key_num(w, "chip", c->chip);
		ttmon_jsonw_key_num(w, "dram_bytes", c->dram_bytes);
		ttmon_jsonw_key_num(w, "l1_bytes", c->l1_bytes);
		if (v->chips[i].ever & TTMON_TT_F_DOUBT)
			ttmon_jsonw_key_bool(w, "at_least", true);
		bytes_by_type(w, "bytes", v->chips[i].bytes, v->chips[i].flags);
		bytes_by_type(w, "peak", v->chips[i].peak, v->chips[i].ever);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void write_devices(struct ttmon_jsonw *w, const struct ttmon_tt_view *v, size_t proc)
{
	const struct ttmon_tt_process *p = &v->procs[proc];

	ttmon_jsonw_key_open(w, "devices", '[');
	for (size_t i = 0; i < v->nr_uses; i++) {
		const struct ttmon_tt_use *u = &v->uses[i];

		if (u->proc != proc)
			continue;
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_known(w, "device", u->logical != TTMON_TT_NO_LOGICAL, u->logical);
		ttmon_jsonw_key_known(w, "chip", u->chip != 0, u->chip);
		ttmon_jsonw_key_name(w, "how", name_of(how_names, ARRAY_SIZE(how_names), u->how));
		if (p->flags & TTMON_TT_F_DOUBT)
			ttmon_jsonw_key_bool(w, "at_least", true);
		/* An ended process holds nothing. */
		bytes_by_type(w, "bytes", u->bytes, p->end_ns ? 0 : p->flags);
		bytes_by_type(w, "peak", u->peak, p->flags);
		ttmon_jsonw_key_num(w, "buffers", u->buffers);
		ttmon_jsonw_key_num(w, "allocs", u->allocs);
		ttmon_jsonw_key_num(w, "frees", u->frees);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void write_processes(struct ttmon_jsonw *w, const struct ttmon_tt_view *v)
{
	ttmon_jsonw_key_open(w, "processes", '[');
	for (size_t i = 0; i < v->nr_procs; i++) {
		const struct ttmon_tt_process *p = &v->procs[i];

		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_num(w, "pid", p->tgid);
		ttmon_jsonw_key_time(w, "start_ns", p->start_ns);
		TTMON_JSONW_KEY_IF(w, "end_ns", p->end_ns, time, p->end_ns);
		ttmon_jsonw_key_text(w, "comm", p->comm, sizeof(p->comm));
		ttmon_jsonw_key_open(w, "flags", '[');
		for (unsigned int k = 0; k < TTMON_TT_FLAGS; k++)
			if (p->flags & (1u << k))
				ttmon_jsonw_name(w, ttmon_tt_flag_name(k));
		ttmon_jsonw_close(w, ']');
		ttmon_jsonw_key_str(w, "layout", p->layout);
		ttmon_jsonw_key_num(w, "unknown_frees", p->unknown_frees);
		ttmon_jsonw_key_num(w, "failed", p->failed);
		ttmon_jsonw_key_num(w, "hooked", p->hooked);
		ttmon_jsonw_key_num(w, "refused", p->refused);
		ttmon_jsonw_key_num(w, "pending_bytes", p->pending_bytes);
		write_devices(w, v, i);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void write_sums(struct ttmon_jsonw *w, const struct ttmon_tt_tables *t)
{
	ttmon_jsonw_key_open(w, "dispatches", '[');
	for (size_t i = 0; i < t->nr_sums; i++) {
		const struct ttmon_tt_dispatch_sum *s = &t->sums[i];

		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_num(w, "pid", s->tgid);
		ttmon_jsonw_key_time(w, "start_ns", s->start_ns);
		ttmon_jsonw_key_addr(w, "device", s->device);
		ttmon_jsonw_key_name(w, "device_kind", name_of(dev_kinds, ARRAY_SIZE(dev_kinds), s->dev_kind));
		ttmon_jsonw_key_known(w, "chip", s->chip != 0, s->chip);
		ttmon_jsonw_key_open(w, "count", '{');
		for (unsigned int k = 0; k < TTMON_TT_DISPATCH_MAX; k++)
			ttmon_jsonw_key_num(w, dispatch_names[k], s->count[k]);
		ttmon_jsonw_close(w, '}');
		ttmon_jsonw_key_time(w, "first_ns", s->first_ns);
		ttmon_jsonw_key_time(w, "last_ns", s->last_ns);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void write_programs(struct ttmon_jsonw *w, const struct ttmon_tt_tables *t)
{
	ttmon_jsonw_key_open(w, "programs", '[');
	for (size_t i = 0; i < t->nr_programs; i++) {
		const struct ttmon_tt_program *p = &t->programs[i];

		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_num(w, "pid", p->tgid);
		ttmon_jsonw_key_known(w, "device", p->logical != TTMON_TT_NO_LOGICAL, p->logical);
		ttmon_jsonw_key_known(w, "chip", p->chip != 0, p->chip);
		ttmon_jsonw_key_num(w, "program", p->program);
		ttmon_jsonw_key_num(w, "runs", p->runs);
		ttmon_jsonw_key_num(w, "busy_ns", p->busy_ns);
		ttmon_jsonw_key_num(w, "min_ns", p->min_ns);
		ttmon_jsonw_key_num(w, "max_ns", p->max_ns);
		ttmon_jsonw_key_time(w, "first_ns", p->first_ns);
		ttmon_jsonw_key_time(w, "last_ns", p->last_ns);
		ttmon_jsonw_key_str(w, "kernels", p->kernels);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void write_clocks(struct ttmon_jsonw *w, const struct ttmon_tt_tables *t)
{
	ttmon_jsonw_key_open(w, "clocks", '[');
	for (size_t i = 0; i < t->nr_clocks; i++) {
		const struct ttmon_tt_clock *c = &t->clocks[i];

		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_num(w, "pid", c->tgid);
		ttmon_jsonw_key_known(w, "device", c->logical != TTMON_TT_NO_LOGICAL, c->logical);
		ttmon_jsonw_key_known(w, "chip", c->chip != 0, c->chip);
		ttmon_jsonw_key_name(w, "clock", ttmon_clock_name(c->clock));
		ttmon_jsonw_key_num(w, "pairs", c->pairs);
		ttmon_jsonw_key_num(w, "outliers", c->outliers);
		ttmon_jsonw_key_num(w, "resets", c->resets);
		ttmon_jsonw_key_num(w, "hz", hertz(c->ghz));
		ttmon_jsonw_key_num(w, "residual_ns",
				    c->residual_ns > 0 && c->residual_ns < 1e18 ? (uint64_t)(c->residual_ns + 0.5) : 0);
		ttmon_jsonw_key_time(w, "span_from_ns", c->span_from_ns);
		ttmon_jsonw_key_time(w, "span_to_ns", c->span_to_ns);
		TTMON_JSONW_KEY_IF(w, "record_layout", c->layout, name, c->layout);
		TTMON_JSONW_KEY_IF(w, "layout_certain", c->layout, bool, c->certain);
		ttmon_jsonw_key_num(w, "refused_layout", c->refused_layout);
		ttmon_jsonw_key_num(w, "records", c->records);
		ttmon_jsonw_key_num(w, "untimed", c->untimed);
		ttmon_jsonw_key_num(w, "refused", c->refused);
		ttmon_jsonw_key_num(w, "dropped", c->dropped);
		ttmon_jsonw_key_num(w, "busy_ns", c->busy_ns);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

/* Writes "runs": {"columns": [...], "rows": [. The caller writes the rows and closes. */
static void open_rows(struct ttmon_jsonw *w, const char *key, const char *const *columns, size_t n)
{
	ttmon_jsonw_key_open(w, key, '{');
	ttmon_jsonw_key_open(w, "columns", '[');
	for (size_t i = 0; i < n; i++)
		ttmon_jsonw_name(w, columns[i]);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_open(w, "rows", '[');
}

static void close_rows(struct ttmon_jsonw *w)
{
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_close(w, '}');
}

static void write_run(struct ttmon_jsonw *w, const struct ttmon_tt_run *r)
{
	ttmon_jsonw_row(w, '[');
	ttmon_jsonw_num(w, r->tgid);
	ttmon_jsonw_num(w, r->logical);
	ttmon_jsonw_num(w, r->chip);
	ttmon_jsonw_num(w, r->program);
	ttmon_jsonw_time(w, r->start_ns);
	ttmon_jsonw_time(w, r->end_ns);
	if (r->error_ns == UINT64_MAX)
		ttmon_jsonw_null(w);
	else
		ttmon_jsonw_num(w, r->error_ns);
	ttmon_jsonw_name(w, ttmon_clock_name(r->clock));
	ttmon_jsonw_time(w, r->start_cycles);
	ttmon_jsonw_time(w, r->end_cycles);
	ttmon_jsonw_num(w, hertz(r->ghz));
	ttmon_jsonw_time(w, r->seen_ns);
	if (r->enqueued_ns)
		ttmon_jsonw_time(w, r->enqueued_ns);
	else
		ttmon_jsonw_null(w);
	ttmon_jsonw_close(w, ']');
}

static void write_dispatched(struct ttmon_jsonw *w, const struct ttmon_tt_dispatched *d)
{
	ttmon_jsonw_row(w, '[');
	ttmon_jsonw_num(w, d->tgid);
	ttmon_jsonw_num(w, d->tid);
	ttmon_jsonw_time(w, d->ts_ns);
	ttmon_jsonw_name(w, name_of(dispatch_names, ARRAY_SIZE(dispatch_names), d->kind));
	ttmon_jsonw_name(w, ttmon_tt_fn_name(d->fn));
	ttmon_jsonw_addr(w, d->device);
	ttmon_jsonw_addr(w, d->what);
	ttmon_jsonw_bool(w, d->blocking);
	ttmon_jsonw_num(w, d->count);
	ttmon_jsonw_close(w, ']');
}

static void write_timeline(struct ttmon_jsonw *w, const struct ttmon_timeline *tl)
{
	size_t runs = tl ? ttmon_timeline_runs(tl) : 0, dispatches = tl ? ttmon_timeline_dispatches(tl) : 0;
	uint64_t dropped = tl ? ttmon_timeline_dropped(tl) : 0;

	if (runs > MAX_ROWS) {
		dropped += runs - MAX_ROWS;
		runs = MAX_ROWS;
	}
	if (dispatches > MAX_ROWS) {
		dropped += dispatches - MAX_ROWS;
		dispatches = MAX_ROWS;
	}
	open_rows(w, "runs", run_columns, ARRAY_SIZE(run_columns));
	for (size_t i = 0; i < runs; i++)
		write_run(w, ttmon_timeline_get_run(tl, i));
	close_rows(w);
	ttmon_jsonw_line(w);
	open_rows(w, "dispatched", dispatched_columns, ARRAY_SIZE(dispatched_columns));
	for (size_t i = 0; i < dispatches; i++)
		write_dispatched(w, ttmon_timeline_get_dispatched(tl, i));
	close_rows(w);
	ttmon_jsonw_line(w);
	ttmon_jsonw_key_num(w, "dropped", dropped);
}

static void write_slot(struct ttmon_jsonw *w, const struct ttmon_tt_slot_row *s)
{
	ttmon_jsonw_row(w, '[');
	ttmon_jsonw_num(w, s->slot_no);
	ttmon_jsonw_num(w, s->tgid);
	if (s->logical == TTMON_TT_NO_LOGICAL)
		ttmon_jsonw_null(w);
	else
		ttmon_jsonw_num(w, s->logical);
	ttmon_jsonw_num(w, s->chip);
	ttmon_jsonw_num(w, s->dispatches);
	ttmon_jsonw_num(w, s->busy_ns);
	ttmon_jsonw_close(w, ']');
}

static void write_slots(struct ttmon_jsonw *w, const struct ttmon_timeline *tl)
{
	size_t n = tl ? ttmon_timeline_slots(tl) : 0, rows = MIN(n, (size_t)MAX_ROWS);

	open_rows(w, "slots", slot_columns, ARRAY_SIZE(slot_columns));
	for (size_t i = 0; i < rows; i++)
		write_slot(w, ttmon_timeline_get_slot(tl, i));
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_num(w, "dropped", (tl ? ttmon_timeline_slots_dropped(tl) : 0) + n - rows);
	ttmon_jsonw_close(w, '}');
}

/* Kinds of dispatch that are not all in the sums. */
static void write_unprobed(struct ttmon_jsonw *w, uint32_t kinds)
{
	ttmon_jsonw_key_open(w, "unprobed", '[');
	for (unsigned int k = 0; k < TTMON_TT_DISPATCH_MAX; k++)
		if (kinds & 1u << k)
			ttmon_jsonw_name(w, dispatch_names[k]);
	ttmon_jsonw_close(w, ']');
}

void ttmon_db_tt(struct ttmon_jsonw *w, const struct ttmon_tt_tables *t)
{
	if (ttmon_tt_tables_empty(t))
		return;
	ttmon_jsonw_key_open(w, "tenstorrent", '{');
	write_chips(w, &t->view);
	ttmon_jsonw_line(w);
	write_processes(w, &t->view);
	ttmon_jsonw_line(w);
	write_sums(w, t);
	ttmon_jsonw_line(w);
	write_unprobed(w, t->unprobed);
	ttmon_jsonw_line(w);
	write_programs(w, t);
	ttmon_jsonw_line(w);
	write_clocks(w, t);
	ttmon_jsonw_line(w);
	write_timeline(w, t->timeline);
	ttmon_jsonw_line(w);
	write_slots(w, t->timeline);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_line(w);
}

int ttmon_tt_tables_init(struct ttmon_tt_tables *t, struct ttmon_pipeline *p)
{
	struct ttmon_tt_tables tables = { .timeline = ttmon_pipeline_timeline(p) };
	int err = ttmon_tt_snapshot(ttmon_pipeline_tt(p), &tables.view);

	if (err)
		return err;
	tables.nr_sums = ttmon_dispatch_sums(ttmon_pipeline_dispatch(p), &tables.sums);
	tables.nr_programs = ttmon_dispatch_programs(ttmon_pipeline_dispatch(p), &tables.programs);
	tables.unprobed = ttmon_dispatch_unprobed(ttmon_pipeline_dispatch(p));
	tables.nr_clocks = ttmon_dispatch_clocks(ttmon_pipeline_dispatch(p), &tables.clocks);
	*t = tables;
	return 0;
}

void ttmon_tt_tables_fini(struct ttmon_tt_tables *t)
{
	ttmon_tt_view_fini(&t->view);
}

bool ttmon_tt_tables_empty(const struct ttmon_tt_tables *t)
{
	const struct ttmon_timeline *tl = t->timeline;

	return !t->view.nr_chips && !t->view.nr_procs && !t->nr_sums && !t->nr_programs && !t->nr_clocks &&
	       (!tl || (!ttmon_timeline_runs(tl) && !ttmon_timeline_dispatches(tl) && !ttmon_timeline_dropped(tl)));
}
