// SPDX-License-Identifier: GPL-2.0-only
/*
 * trace_db.c: `ttmon trace DATABASE`: makes the events of a trace file from the rows of a database. A
 * database does not have the single calls with their threads and times, so a transfer has a time but
 * no length here. The file is not trusted: a member that is missing or of the wrong type is left out.
 * Memory: the small members, as lib/read/db.h keeps them, and 110 bytes for each program run.
 */
#include "tools/trace/trace_db.h"

#include "lib/base/names.h"
#include "daemon/io/files/traceev.h"
#include "version.h"

struct source {
	struct ttmon_db *db;
	const json_t *procs, *sites;
	struct ttmon_tt_program *programs;
	struct ttmon_ev_tt_chip *chips;
	struct ttmon_tt_run *runs;
	const struct ttmon_tt_run **run_list;
	struct ttmon_tt_clock *clocks;
};

static void source_fini(struct source *s)
{
	free(s->programs);
	free(s->chips);
	free(s->runs);
	free(s->run_list);
	free(s->clocks);
}

/* Reads a number that must fit 32 bits. */
static uint32_t get_u32(const json_t *obj, const char *key, uint32_t def)
{
	uint64_t value = ttmon_db_get(obj, key, def);

	return value <= UINT32_MAX ? (uint32_t)value : def;
}

/* Returns the index of a name in a table of names; n if it is not there. */
static unsigned int number_of(const char *name, const char *(*names)(unsigned int), unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const char *known = names(i);

		if (known && strcmp(name, known) == 0)
			return i;
	}
	return n;
}

static void process(void *ctx, uint32_t idx, struct ttmon_traceev_proc *ret)
{
	const struct source *s = ctx;
	const json_t *p = json_array_get(s->procs, idx);

	*ret = (struct ttmon_traceev_proc){ .tgid = get_u32(p, "pid", 0),
					    .from_ns = ttmon_db_get(p, "first_ns", 0),
					    .comm = ttmon_db_str(p, "comm", "?"),
					    .cmdline = ttmon_db_str(p, "cmdline", NULL) };
}

/* ---- allocations ---- */

static const char *site_text(const struct source *s, const json_t *alloc)
{
	const json_t *frames =
		json_object_get(json_array_get(s->sites, ttmon_db_get(alloc, "site", SIZE_MAX)), "frames");

	for (size_t i = 0; i < json_array_size(frames); i++) {
		const char *text = json_string_value(json_array_get(json_array_get(frames, i), 2));

		if (text)
			return text;
	}
	return NULL;
}

static bool read_event(const json_t *row, uint64_t alloc_ns, struct ttmon_aev *ev)
{
	const char *kind = json_string_value(json_array_get(row, 1)), *mem = json_string_value(json_array_get(row, 4));
	const json_t *rel = json_array_get(row, 0);
	uint64_t bits = 0;

	if (!json_is_integer(rel) || !kind || !mem || !ttmon_db_value(json_array_get(row, 2), &ev->bytes) ||
	    !ttmon_db_value(json_array_get(row, 3), &ev->offset) || !ttmon_db_value(json_array_get(row, 5), &bits))
		return false;
	ev->ts_ns = alloc_ns + (uint64_t)json_integer_value(rel);
	ev->kind = (uint8_t)number_of(kind, ttmon_aev_name, TTMON_AEV_MAX);
	ev->mem = (uint8_t)number_of(mem, ttmon_mem_name, TTMON_MEM_MAX);
	ev->bits = (uint16_t)bits;
	return true;
}

static void write_alloc(struct ttmon_traceev *t, const struct source *s, const json_t *json)
{
	const json_t *events = json_object_get(json, "events"), *transfers = json_object_get(json, "transfers");
	struct ttmon_traceev_alloc a = {
		.proc = get_u32(json, "process", UINT32_MAX),
		.method = (uint8_t)number_of(ttmon_db_str(json, "method", ""), ttmon_method_name, TTMON_METHOD_MAX),
		.device = -1,
		.addr = ttmon_db_get(json, "addr", 0),
		.size = ttmon_db_get(json, "size", 0),
		.alloc_ns = ttmon_db_get(json, "alloc_ns", 0),
		.pin_ns = ttmon_db_get(json, "pin_ns", 0),
		.fn = ttmon_db_str(json, "fn", NULL),
		.name = ttmon_db_str(json, "name", NULL),
		.end = ttmon_db_str(json, "end", NULL),
		.site = site_text(s, json),
		.site_delta = UINT64_MAX,
	};
	struct ttmon_traceev_transfer x = { .proc = a.proc, .method = a.method, .addr = a.addr };
	uint64_t device;

	a.live = !ttmon_db_u64(json, "free_ns", &a.free_ns);
	if (ttmon_db_u64(json, "device", &device) && device <= INT16_MAX)
		a.device = (int16_t)device;
	for (unsigned int dir = 0; dir < TTMON_RDIR_MAX; dir++) {
		const json_t *pair = json_object_get(transfers, ttmon_rdir_name(dir));
		uint64_t copies = 0, bytes = 0;

		ttmon_db_value(json_array_get(pair, 0), &copies);
		ttmon_db_value(json_array_get(pair, 1), &bytes);
		a.copies += copies;
		a.bytes += bytes;
	}
	ttmon_traceev_put_alloc(t, &a);
	for (size_t i = 0; i < json_array_size(events); i++)
		if (read_event(json_array_get(events, i), a.alloc_ns, &x.ev))
			ttmon_traceev_put_transfer(t, &x);
}

static void write_checkpoints(struct ttmon_traceev *t, const struct ttmon_db *db)
{
	const json_t *rows = ttmon_db_member(db, "checkpoints");

	for (size_t i = 0; i < json_array_size(rows); i++) {
		struct ttmon_db_checkpoint c;

		/* The label is borrowed from the reader. */
		if (ttmon_db_get_checkpoint(json_array_get(rows, i), &c))
			ttmon_traceev_checkpoint(t, &(struct ttmon_period_end){ .ts_ns = c.ts_ns,
										.proc = c.process,
										.tid = c.tid,
										.label = (char *)c.label });
	}
}

/* Writes the coverage gaps with their times. Returns their number. */
static uint64_t write_gaps(struct ttmon_traceev *t, const struct ttmon_db *db)
{
	const json_t *rows = json_object_get(ttmon_db_member(db, "completeness"), "knowledge");
	uint64_t drawn = 0;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i), *families = json_object_get(row, "families");
		struct ttmon_gap g = {
			.from_ns = ttmon_db_get(row, "from_ns", 0),
			.to_ns = ttmon_db_get(row, "to_ns", UINT64_MAX),
			.tgid = get_u32(row, "pid", 0),
			.state = (uint8_t)number_of(ttmon_db_str(row, "state", ""), ttmon_gap_state_name,
						    TTMON_GAP_STATE_MAX),
			.why = (uint8_t)number_of(ttmon_db_str(row, "why", ""), ttmon_gap_why_name, TTMON_GAP_WHY_MAX),
		};

		for (size_t f = 0; f < json_array_size(families); f++) {
			const char *name = json_string_value(json_array_get(families, f));
			unsigned int id =
				name ? number_of(name, ttmon_family_name, TTMON_FAMILY_MAX) : TTMON_FAMILY_MAX;

			g.families |= id < TTMON_FAMILY_MAX ? 1u << id : 0;
		}
		if (g.state == TTMON_GAP_STATE_MAX || g.why == TTMON_GAP_WHY_MAX)
			continue;
		ttmon_traceev_gap(t, &g);
		drawn++;
	}
	return drawn;
}

/* ---- Tenstorrent ---- */

static int write_programs(struct source *s, struct ttmon_traceev *t, const json_t *programs)
{
	size_t n = json_array_size(programs);

	s->programs = calloc(n + 1, sizeof(*s->programs));
	if (!s->programs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *json = json_array_get(programs, i);

		s->programs[i] = (struct ttmon_tt_program){ .tgid = get_u32(json, "pid", 0),
							    .logical = get_u32(json, "device", TTMON_TT_NO_LOGICAL),
							    .program = get_u32(json, "program", 0),
							    .first_ns = ttmon_db_get(json, "first_ns", 0),
							    .kernels = ttmon_db_str(json, "kernels", NULL) };
	}
	ttmon_traceev_programs(t, s->programs, n);
	return 0;
}

static int write_chips(struct source *s, struct ttmon_traceev *t, const json_t *chips)
{
	static const char *const archs[TTMON_TT_ARCH_MAX] = { "unknown", "grayskull", "wormhole", "blackhole" };
	size_t n = json_array_size(chips);

	s->chips = calloc(n + 1, sizeof(*s->chips));
	if (!s->chips)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *json = json_array_get(chips, i), *flags = json_object_get(json, "flags");
		struct ttmon_ev_tt_chip *c = &s->chips[i];

		c->index = get_u32(json, "index", 0);
		c->asic_id = ttmon_db_get(json, "asic_id", 0);
		c->unique_id = ttmon_db_get(json, "unique_id", 0);
		c->tray = (uint8_t)get_u32(json, "tray", 0);
		c->chip = (uint8_t)get_u32(json, "chip", 0);
		snprintf(c->card, sizeof(c->card), "%.15s", ttmon_db_str(json, "card", ""));
		for (uint8_t k = 0; k < TTMON_TT_ARCH_MAX; k++)
			if (strcmp(ttmon_db_str(json, "arch", ""), archs[k]) == 0)
				c->arch = k;
		for (size_t k = 0; k < json_array_size(flags); k++) {
			const char *flag = json_string_value(json_array_get(flags, k));

			c->flags |= flag && strcmp(flag, "remote") == 0 ? TTMON_TT_CHIP_REMOTE : 0;
			c->flags |= flag && strcmp(flag, "galaxy") == 0 ? TTMON_TT_CHIP_GALAXY : 0;
		}
		ttmon_traceev_chip(t, c);
	}
	return 0;
}

/* A large table whose column names stand once at its head. */
struct table {
	const json_t *columns, *rows;
};

static struct table table_of(const json_t *tt, const char *name)
{
	const json_t *t = json_object_get(tt, name);

	return (struct table){ json_object_get(t, "columns"), json_object_get(t, "rows") };
}

static const json_t *cell(const struct table *t, size_t row, const char *column)
{
	for (size_t i = 0; i < json_array_size(t->columns); i++) {
		const char *name = json_string_value(json_array_get(t->columns, i));

		if (name && strcmp(name, column) == 0)
			return json_array_get(json_array_get(t->rows, row), i);
	}
	return NULL;
}

static uint64_t cell_u64(const struct table *t, size_t row, const char *column)
{
	uint64_t value = 0;

	ttmon_db_value(cell(t, row, column), &value);
	return value;
}

static unsigned int cell_name(const struct table *t, size_t row, const char *column, const char *(*names)(unsigned int),
			      unsigned int n)
{
	const char *name = json_string_value(cell(t, row, column));

	return name ? number_of(name, names, n) : n;
}

static int write_runs(struct source *s, struct ttmon_traceev *t, const json_t *tt)
{
	struct table table = table_of(tt, "runs");
	size_t n = json_array_size(table.rows);

	s->runs = calloc(n + 1, sizeof(*s->runs));
	s->run_list = calloc(n + 1, sizeof(*s->run_list));
	if (!s->runs || !s->run_list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct ttmon_tt_run *r = &s->runs[i];
		unsigned int clock = cell_name(&table, i, "clock", ttmon_clock_name, TTMON_CLOCKS);

		r->tgid = (uint32_t)cell_u64(&table, i, "pid");
		r->logical = (uint32_t)cell_u64(&table, i, "device");
		r->chip = (uint32_t)cell_u64(&table, i, "chip");
		r->program = (uint32_t)cell_u64(&table, i, "program");
		r->start_ns = cell_u64(&table, i, "start_ns");
		r->end_ns = cell_u64(&table, i, "end_ns");
		r->error_ns = json_is_null(cell(&table, i, "error_ns")) ? UINT64_MAX : cell_u64(&table, i, "error_ns");
		r->start_cycles = cell_u64(&table, i, "start_cycles");
		r->end_cycles = cell_u64(&table, i, "end_cycles");
		r->ghz = (double)cell_u64(&table, i, "hz") / 1e9;
		r->seen_ns = cell_u64(&table, i, "seen_ns");
		r->enqueued_ns = cell_u64(&table, i, "enqueued_ns");
		r->clock = (uint8_t)(clock < TTMON_CLOCKS ? clock : TTMON_CLOCK_NONE);
		s->run_list[i] = r;
	}
	ttmon_traceev_runs(t, s->run_list, n);
	return 0;
}

static const char *dispatch_name(unsigned int kind)
{
	static const char *const names[] = {
#define X(id, NAME, name) [id] = name,
		TTMON_TT_DISPATCH_TABLE(X)
#undef X
	};

	return kind < ARRAY_SIZE(names) ? names[kind] : NULL;
}

static const char *fn_name(unsigned int fn)
{
	return ttmon_tt_fn_name((uint16_t)fn);
}

static void write_dispatched(struct ttmon_traceev *t, const json_t *tt)
{
	struct table table = table_of(tt, "dispatched");

	for (size_t i = 0; i < json_array_size(table.rows); i++) {
		struct ttmon_tt_dispatched d = {
			.tgid = (uint32_t)cell_u64(&table, i, "pid"),
			.tid = (uint32_t)cell_u64(&table, i, "tid"),
			.ts_ns = cell_u64(&table, i, "ts_ns"),
			.device = cell_u64(&table, i, "device"),
			.what = cell_u64(&table, i, "what"),
			.count = cell_u64(&table, i, "count"),
			.fn = (uint16_t)cell_name(&table, i, "fn", fn_name, TTMON_TT_FN_END),
			.kind = (uint8_t)cell_name(&table, i, "kind", dispatch_name, TTMON_TT_DISPATCH_MAX),
			.blocking = json_is_true(cell(&table, i, "blocking")),
		};

		ttmon_traceev_dispatched(t, &d);
	}
}

static int read_clocks(struct source *s, const json_t *clocks)
{
	size_t n = json_array_size(clocks);

	s->clocks = calloc(n + 1, sizeof(*s->clocks));
	if (!s->clocks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *json = json_array_get(clocks, i);
		struct ttmon_tt_clock *c = &s->clocks[i];

		c->tgid = get_u32(json, "pid", 0);
		c->logical = get_u32(json, "device", TTMON_TT_NO_LOGICAL);
		c->chip = get_u32(json, "chip", 0);
		c->clock = (uint8_t)number_of(ttmon_db_str(json, "clock", ""), ttmon_clock_name, TTMON_CLOCKS);
		c->ghz = (double)ttmon_db_get(json, "hz", 0) / 1e9;
		c->residual_ns = (double)ttmon_db_get(json, "residual_ns", 0);
	}
	return 0;
}

static int write_tt(struct source *s, struct ttmon_traceev *t, const json_t *tt)
{
	int err = write_programs(s, t, json_object_get(tt, "programs"));

	if (!err)
		err = write_chips(s, t, json_object_get(tt, "chips"));
	if (!err)
		err = write_runs(s, t, tt);
	if (!err)
		err = read_clocks(s, json_object_get(tt, "clocks"));
	if (!err)
		write_dispatched(t, tt);
	return err;
}

/* ---- all of it ---- */

static void fill_head(const struct ttmon_db *db, struct ttmon_traceev_head *head)
{
	const json_t *host = ttmon_db_member(db, "host"), *clock = ttmon_db_member(db, "clock"),
		     *capture = ttmon_db_member(db, "capture");

	head->version = TTMON_VERSION;
	head->source = "database";
	head->hostname = ttmon_db_str(host, "hostname", NULL);
	head->release = ttmon_db_str(host, "release", NULL);
	head->mode = ttmon_db_str(capture, "mode", NULL);
	head->mono_ns = ttmon_db_get(clock, "mono_ns", 0);
	head->real_ns = ttmon_db_get(clock, "real_ns", 0);
	head->boot_ns = ttmon_db_get(clock, "boot_ns", 0);
	head->start_ns = ttmon_db_get(capture, "start_ns", 0);
	head->end_ns = ttmon_db_get(capture, "end_ns", 0);
}

static void fill_missing(const struct ttmon_db *db, const json_t *tt, struct ttmon_traceev_missing *m)
{
	const json_t *comp = ttmon_db_member(db, "completeness");

	for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++)
		m->lost += ttmon_db_get(json_object_get(comp, "lost"), ttmon_loss_name(i), 0);
	m->malformed = ttmon_db_get(comp, "malformed", 0);
	m->arena_full = ttmon_db_get(comp, "arena_full", 0);
	m->events_dropped = ttmon_db_get(comp, "events_dropped", 0);
	m->evicted = ttmon_db_get(comp, "evicted", 0);
	m->folded = ttmon_db_get(comp, "folded", 0);
	m->cut = json_is_true(json_object_get(comp, "cut"));
	m->timeline_dropped = ttmon_db_get(tt, "dropped", 0);
	m->no_calls = true;
}

int ttmon_trace_db(struct ttmon_db *db, int fd, bool gzip)
{
	_cleanup_(ttmon_traceev_freep) struct ttmon_traceev *t = NULL;
	_cleanup_(source_fini) struct source s = { .db = db,
						   .procs = ttmon_db_member(db, "processes"),
						   .sites = ttmon_db_member(db, "sites") };
	struct ttmon_traceev_head head = { .proc = process, .ctx = &s };
	struct ttmon_traceev_missing missing = { 0 };
	const json_t *tt;
	json_t *alloc;
	int r;

	fill_head(db, &head);
	/* Each process takes more than one byte of a text of limited size, so the number fits. */
	head.nr_procs = (uint32_t)json_array_size(s.procs);
	r = ttmon_traceev_new(fd, gzip, &head, &t);
	if (r)
		return r;
	write_checkpoints(t, db);
	while ((r = ttmon_db_next_alloc(db, &alloc)) == 1) {
		write_alloc(t, &s, alloc);
		json_decref(alloc);
	}
	if (r)
		return r;
	tt = ttmon_db_member(db, "tenstorrent");
	r = tt ? write_tt(&s, t, tt) : 0;
	if (r)
		return r;
	fill_missing(db, tt, &missing);
	missing.gaps = write_gaps(t, db);
	return ttmon_traceev_finish(t, &missing, s.clocks, json_array_size(json_object_get(tt, "clocks")));
}
