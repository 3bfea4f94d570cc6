// SPDX-License-Identifier: GPL-2.0-only
/*
 * db_rows.c: the tables of the database, written row by row from the views of the history. Runs where
 * ttmon_db_write() runs. Memory does not grow with the document, except for one copy of the error
 * counts. Order is that of the history's indexes, so the same history gives the same bytes.
 *
 * The id of an allocation is "<site key, 16 hex digits>:<size>:<ordinal>@<process index>", unique in
 * the file. To find the same allocation in another run, compare site key, size and ordinal, which are
 * also separate fields; the process index counts processes in order of appearance and may differ
 * between runs. Where no call site is known, "#<place in the order of allocations>" follows: mappings
 * grow and shrink, so that two can end up with the same size and ordinal, and while the capture goes
 * on the site of the newest allocations may not be known yet.
 */
#include "daemon/io/files/db_rows.h"

#include "daemon/core/stream/decode.h"
#include "daemon/io/files/db_waits.h"
#include "lib/read/db.h"

static const char *const state_names[] = { "created", "populated", "pinned", "transferred",
					   "freed",   "unseen",	   "extent", "merged" };
static const char *const flag_names[] = {
	"old", "device_ptr", "provisional", "readonly", "shared", "unobserved", "backing",
};
#define FLAG_BACKING (TTMON_AL_UNOBSERVED << 1)
_Static_assert(1 << (ARRAY_SIZE(state_names) - 1) == TTMON_ST_MERGED, "a name for each state");
_Static_assert(1 << (ARRAY_SIZE(flag_names) - 1) == FLAG_BACKING, "a name for each flag");

static const char *const end_names[] = {
#define X(id, NAME, name) [id] = name,
	TTMON_END_TABLE(X)
#undef X
};
_Static_assert(TTMON_END_MAX == 8, "what the three bits of an allocation can say has a name");

static void key_pair(struct ttmon_jsonw *w, const char *key, uint64_t copies, uint64_t bytes)
{
	ttmon_jsonw_key_open(w, key, '[');
	ttmon_jsonw_num(w, copies);
	ttmon_jsonw_num(w, bytes);
	ttmon_jsonw_close(w, ']');
}

/* The names of the bits set. */
static void key_bits(struct ttmon_jsonw *w, const char *key, unsigned int bits, const char *const *names, size_t n)
{
	ttmon_jsonw_key_open(w, key, '[');
	for (size_t i = 0; i < n; i++)
		if (bits & (1u << i))
			ttmon_jsonw_name(w, names[i]);
	ttmon_jsonw_close(w, ']');
}

static void mem_pairs(struct ttmon_jsonw *w, const char *key, const struct ttmon_xfer xfer[TTMON_MEM_MAX])
{
	ttmon_jsonw_key_open(w, key, '{');
	for (unsigned int mem = 0; mem < TTMON_MEM_MAX; mem++)
		if (xfer[mem].copies)
			key_pair(w, ttmon_mem_name(mem), xfer[mem].copies, xfer[mem].bytes);
	ttmon_jsonw_close(w, '}');
}

void ttmon_db_rows_transfers(struct ttmon_jsonw *w, const struct ttmon_xfer xfer[TTMON_RDIR_MAX][TTMON_MEM_MAX])
{
	ttmon_jsonw_key_open(w, "transfers", '{');
	for (unsigned int dir = 0; dir < TTMON_RDIR_MAX; dir++) {
		bool any = false;

		for (unsigned int mem = 0; mem < TTMON_MEM_MAX; mem++)
			any |= xfer[dir][mem].copies != 0;
		if (any)
			mem_pairs(w, ttmon_rdir_name(dir), xfer[dir]);
	}
	ttmon_jsonw_close(w, '}');
}

/* The square root, rounded up; by Newton's method from above. */
static uint64_t root_of(double v)
{
	double x = MAX(v, 1.0), next;

	if (v <= 0)
		return 0;
	while ((next = (x + v / x) / 2) < x)
		x = next;
	return x < 0x1p63 ? (uint64_t)x + (x > (double)(uint64_t)x) : 1ULL << 63;
}

/* The reported and the estimated missing copies, and the standard error of the estimate. */
static void sampled_dir(struct ttmon_jsonw *w, uint64_t copies, uint64_t bytes, const struct ttmon_sampled *s,
			bool at_least)
{
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_num(w, "copies", copies + s->copies);
	ttmon_jsonw_key_num(w, "copies_error", root_of(s->copies_var));
	ttmon_jsonw_key_num(w, "bytes", bytes + s->bytes);
	ttmon_jsonw_key_num(w, "bytes_error", root_of(s->bytes_var));
	if (at_least)
		ttmon_jsonw_key_bool(w, "at_least", true);
	ttmon_jsonw_close(w, '}');
}

static bool any_sampled(const struct ttmon_sampled *s)
{
	for (unsigned int dir = 0; s && dir < TTMON_RDIR_MAX; dir++)
		if (s[dir].told)
			return true;
	return false;
}

static void process_sampled(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_proc *p)
{
	if (!any_sampled(p->sampled))
		return;
	ttmon_jsonw_key_open(w, "sampled", '{');
	for (unsigned int dir = 0; dir < TTMON_RDIR_MAX; dir++) {
		uint64_t copies = 0, bytes = 0;

		for (unsigned int mem = 0; mem < TTMON_MEM_MAX; mem++) {
			copies += p->xfer[dir][mem].copies;
			bytes += p->xfer[dir][mem].bytes;
		}
		if (!p->sampled[dir].told)
			continue;
		ttmon_jsonw_key(w, ttmon_rdir_name(dir));
		sampled_dir(w, copies, bytes, &p->sampled[dir], ttmon_history_sampled_at_least(h, p));
	}
	ttmon_jsonw_close(w, '}');
}

static void alloc_sampled(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	const struct ttmon_traffic *t = a->traffic;

	if (!any_sampled(t->sampled))
		return;
	ttmon_jsonw_key_open(w, "sampled", '{');
	for (unsigned int dir = 0; dir < TTMON_RDIR_MAX; dir++) {
		if (!t->sampled[dir].told)
			continue;
		ttmon_jsonw_key(w, ttmon_rdir_name(dir));
		sampled_dir(w, t->copies[dir], t->bytes[dir], &t->sampled[dir],
			    ttmon_history_sampled_at_least(h, ttmon_history_proc(h, a->proc)));
	}
	ttmon_jsonw_close(w, '}');
}

void ttmon_db_rows_objects(struct ttmon_jsonw *w, const struct ttmon_history *h)
{
	ttmon_jsonw_key_open(w, "objects", '[');
	for (size_t i = 1; i < ttmon_history_objects(h); i++) {
		const struct ttmon_object *o = ttmon_history_object(h, i);
		char hex[2 * TTMON_BUILD_ID + 1] = "";

		if (!o || !o->id)
			continue;
		for (size_t k = 0; k < MIN(o->build_id_len, (size_t)TTMON_BUILD_ID); k++)
			ttmon_jsonw_hex(hex + 2 * k, o->build_id[k], 2);
		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_num(w, "id", o->id);
		ttmon_jsonw_key_str(w, "path", o->path);
		ttmon_jsonw_key_name(w, "build_id", hex);
		ttmon_jsonw_key_bool(w, "cuda", o->flags & TTMON_OBJ_CUDA);
		if (o->flags & TTMON_OBJ_PYTHON)
			ttmon_jsonw_key_name(w, "kind", "python");
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static int error_cmp(const void *pa, const void *pb)
{
	const struct ttmon_error_count *a = pa, *b = pb;

	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	if (a->fn != b->fn)
		return a->fn < b->fn ? -1 : 1;
	return (a->err > b->err) - (a->err < b->err);
}

/* Errors of one process from the sorted list; returns the index of the next process's errors. */
static size_t process_errors(struct ttmon_jsonw *w, const struct ttmon_error_count *errors, size_t i, size_t n,
			     uint32_t proc)
{
	ttmon_jsonw_key_open(w, "errors", '[');
	for (; i < n && errors[i].proc <= proc; i++) {
		if (errors[i].proc < proc)
			continue;
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_name(w, "fn", ttmon_fn_name(errors[i].fn));
		ttmon_jsonw_key_int(w, "code", errors[i].err);
		ttmon_jsonw_key_name(w, "name", ttmon_error_name(errors[i].fn, errors[i].err));
		ttmon_jsonw_key_num(w, "count", errors[i].count);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
	return i;
}

static void process_findings(struct ttmon_jsonw *w, const struct ttmon_proc *p)
{
	ttmon_jsonw_key_open(w, "findings", '[');
	for (unsigned int f = 0; f < TTMON_FINDING_MAX; f++) {
		if (!p->findings[f])
			continue;
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_name(w, "kind", ttmon_finding_name(f));
		ttmon_jsonw_key_num(w, "count", p->findings[f]);
		ttmon_jsonw_key_str(w, "help", ttmon_finding_help(f));
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void process_identity(struct ttmon_jsonw *w, const struct ttmon_proc *p)
{
	ttmon_jsonw_key_num(w, "index", p->idx);
	ttmon_jsonw_key_num(w, "pid", p->tgid);
	ttmon_jsonw_key_time(w, "start_ns", p->start_ns);
	ttmon_jsonw_key_num(w, "ppid", p->ppid);
	ttmon_jsonw_key_text(w, "comm", p->comm, sizeof(p->comm));
	ttmon_jsonw_key_str(w, "exe", p->exe);
	ttmon_jsonw_key_str(w, "cmdline", p->cmdline);
	ttmon_jsonw_key_str(w, "cgroup", p->cgroup);
	ttmon_jsonw_key_num(w, "execs", p->execs);
	ttmon_jsonw_key_time(w, "first_ns", p->first_ns);
	ttmon_jsonw_key_time(w, "last_ns", p->last_ns);
	ttmon_jsonw_key(w, "exit");
	if (p->exit_ns) {
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_time(w, "ns", p->exit_ns);
		ttmon_jsonw_key_num(w, "status", p->exit_code);
		ttmon_jsonw_close(w, '}');
	} else {
		ttmon_jsonw_null(w);
	}
}

static void process_figures(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_proc *p)
{
	uint64_t probed = ttmon_history_probed_ns(h, p), numbered = ttmon_history_numbered(h, p);
	bool calls = ttmon_history_known(h, p, TTMON_FAMILY_ALLOC) != TTMON_UNKNOWN;
	bool now = calls && ttmon_history_pinned_known(h, p);

	TTMON_JSONW_KEY_IF(w, "probed_ns", probed, time, probed);
	if (ttmon_history_at_least(h, p))
		ttmon_jsonw_key_bool(w, "at_least", true);
	ttmon_jsonw_key_known(w, "pins", calls, p->pins);
	ttmon_jsonw_key_known(w, "pinned_pages", now, p->pinned_pages);
	ttmon_jsonw_key_known(w, "pinned_peak_pages", calls, p->pinned_peak_pages);
	ttmon_jsonw_key_known(w, "pinned_bytes", now, p->pinned_bytes);
	ttmon_jsonw_key_known(w, "pinned_peak_bytes", calls, p->pinned_peak_bytes);
	ttmon_jsonw_key_time(w, "peak_ns", p->peak_ns);
	ttmon_jsonw_key_known(w, "live", now, p->live);
	ttmon_jsonw_key_known(w, "allocs", calls, p->allocs);
	ttmon_jsonw_key_known(w, "frees", calls, p->frees);
	if (ttmon_history_known(h, p, TTMON_FAMILY_TRANSFER) != TTMON_UNKNOWN) {
		ttmon_db_rows_transfers(w, p->xfer);
	} else {
		ttmon_jsonw_key_null(w, "transfers");
	}
	process_sampled(w, h, p);
	ttmon_jsonw_key_num(w, "launches", p->kernels);
	ttmon_jsonw_key_num(w, "launches_numbered", numbered);
	ttmon_jsonw_key_num(w, "graph_launches", p->graphs);
	ttmon_jsonw_key_num(w, "graph_copies", p->graph_copies);
	ttmon_jsonw_key_num(w, "captured", p->captured);
	ttmon_jsonw_key_num(w, "failed", p->failed);
	ttmon_jsonw_key_num(w, "unknown_frees", p->unknown_frees);
	ttmon_jsonw_key_num(w, "unmatched", p->unmatched);
}

int ttmon_db_rows_processes(struct ttmon_jsonw *w, const struct ttmon_history *h)
{
	_cleanup_free_ struct ttmon_error_count *errors = NULL;
	const struct ttmon_error_count *view;
	size_t n = ttmon_history_errors(h, &view), next = 0;

	if (n) {
		errors = malloc(n * sizeof(*errors));
		if (!errors)
			return -ENOMEM;
		memcpy(errors, view, n * sizeof(*errors));
		qsort(errors, n, sizeof(*errors), error_cmp);
	}
	ttmon_jsonw_key_open(w, "processes", '[');
	for (size_t i = 0; i < ttmon_history_procs(h); i++) {
		const struct ttmon_proc *p = ttmon_history_proc(h, i);

		ttmon_jsonw_row(w, '{');
		process_identity(w, p);
		process_figures(w, h, p);
		next = process_errors(w, errors, next, n, p->idx);
		process_findings(w, p);
		ttmon_db_waits_process(w, h, p);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
	return 0;
}

static void key_site_key(struct ttmon_jsonw *w, uint64_t key)
{
	char text[2 + 16 + 1] = "0x";

	ttmon_jsonw_hex(text + 2, key, 16);
	text[18] = '\0';
	ttmon_jsonw_key_name(w, "key", text);
}

static void site_frames(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_site *s)
{
	ttmon_jsonw_key_open(w, "frames", '[');
	for (uint32_t i = 0; i < s->nframes; i++) {
		const struct ttmon_frame *f = &s->frames[i];
		const struct ttmon_object *o = f->object ? ttmon_history_object(h, f->object) : NULL;
		uint64_t delta = 0;
		const char *name = ttmon_history_symbol(h, f, &delta);

		ttmon_jsonw_open(w, '[');
		ttmon_jsonw_num(w, o ? o->id : 0);
		ttmon_jsonw_addr(w, f->offset);
		ttmon_jsonw_symbol(w, name, delta);
		ttmon_jsonw_close(w, ']');
	}
	ttmon_jsonw_close(w, ']');
}

/* How the frames were found and why they end; nothing if no stack was resolved. */
static void site_stack(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_site *s)
{
	const struct ttmon_object *o = s->end_object ? ttmon_history_object(h, s->end_object) : NULL;

	if (s->by == TTMON_STACK_BY_NOT_SAID)
		return;
	ttmon_jsonw_key_open(w, "stack", '{');
	ttmon_jsonw_key_name(w, "by", ttmon_stack_by_name(s->by));
	ttmon_jsonw_key_name(w, "end", ttmon_stack_end_name(s->end));
	if (o)
		ttmon_jsonw_key_num(w, "object", o->id);
	ttmon_jsonw_close(w, '}');
}

void ttmon_db_rows_sites(struct ttmon_jsonw *w, const struct ttmon_history *h)
{
	ttmon_jsonw_key_open(w, "sites", '[');
	for (size_t i = 0; i < ttmon_history_sites(h); i++) {
		const struct ttmon_site *s = ttmon_history_site(h, i);

		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_num(w, "id", i);
		key_site_key(w, s->key);
		site_frames(w, h, s);
		site_stack(w, h, s);
		ttmon_jsonw_key_open(w, "methods", '[');
		for (unsigned int m = 0; m < TTMON_METHOD_MAX; m++)
			if (s->method_mask & (1u << m))
				ttmon_jsonw_name(w, ttmon_method_name(m));
		ttmon_jsonw_close(w, ']');
		ttmon_jsonw_key_num(w, "allocs", s->allocs);
		ttmon_jsonw_key_num(w, "live", s->live);
		ttmon_jsonw_key_num(w, "live_bytes", s->live_bytes);
		ttmon_jsonw_key_num(w, "peak_bytes", s->peak_bytes);
		ttmon_jsonw_key_num(w, "bytes", s->bytes);
		ttmon_jsonw_key_num(w, "min_size", s->min_size);
		ttmon_jsonw_key_num(w, "max_size", s->max_size);
		mem_pairs(w, "h2d", s->h2d);
		mem_pairs(w, "d2h", s->d2h);
		ttmon_jsonw_key_num(w, "pin_ns", s->pin_ns);
		ttmon_jsonw_key_num(w, "folded", s->folded);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

void ttmon_db_rows_checkpoints(struct ttmon_jsonw *w, const struct ttmon_history *h)
{
	const struct ttmon_period_end *c;
	size_t n = ttmon_history_checkpoints(h, &c);

	ttmon_jsonw_key_open(w, "checkpoints", '[');
	for (size_t i = 0; i < n; i++) {
		ttmon_jsonw_row(w, '[');
		ttmon_jsonw_time(w, c[i].ts_ns);
		ttmon_jsonw_num(w, c[i].proc);
		ttmon_jsonw_num(w, c[i].tid);
		ttmon_jsonw_str(w, c[i].label);
		ttmon_jsonw_close(w, ']');
	}
	ttmon_jsonw_close(w, ']');
}

void ttmon_db_rows_alloc_id(struct ttmon_jsonw *w, const char *key, const struct ttmon_history *h,
			    const struct ttmon_alloc *a)
{
	char id[16 + 1 + 20 + 1 + 10 + 1 + 10 + 1 + 20 + 1];
	const struct ttmon_site *s = ttmon_history_site(h, a->site);
	size_t n = ttmon_jsonw_hex(id, s->key, 16);

	id[n++] = ':';
	n += ttmon_jsonw_decimal(id + n, a->size);
	id[n++] = ':';
	n += ttmon_jsonw_decimal(id + n, a->ordinal);
	id[n++] = '@';
	n += ttmon_jsonw_decimal(id + n, a->proc);
	/* A mapping changes its size, so the parts above may occur twice. */
	if (!a->site || a->method == TTMON_METHOD_MMAP) {
		id[n++] = '#';
		n += ttmon_jsonw_decimal(id + n, ttmon_alloc_seq(a));
	}
	id[n] = '\0';
	ttmon_jsonw_key_name(w, key, id);
}

/* Buckets after the last one that is not 0 are left out. */
static size_t used(const uint32_t *copies, size_t n)
{
	while (n && !copies[n - 1])
		n--;
	return n;
}

static void key_counts(struct ttmon_jsonw *w, const char *key, const uint32_t *counts, size_t n)
{
	ttmon_jsonw_key_open(w, key, '[');
	for (size_t i = 0; i < n; i++)
		ttmon_jsonw_num(w, counts[i]);
	ttmon_jsonw_close(w, ']');
}

void ttmon_db_rows_alloc_heat(struct ttmon_jsonw *w, const struct ttmon_alloc *a)
{
	struct ttmon_heat heat;

	if (ttmon_history_heat(a, &heat)) {
		size_t n = used(heat.copies, TTMON_HEAT_BUCKETS);

		ttmon_jsonw_key_open(w, "heat", '{');
		ttmon_jsonw_key_time(w, "origin_ns", heat.origin_ns);
		ttmon_jsonw_key_num(w, "width_ns", heat.width_ns);
		key_counts(w, "copies", heat.copies, n);
		ttmon_jsonw_key_open(w, "bytes", '[');
		for (size_t i = 0; i < n; i++)
			ttmon_jsonw_num(w, heat.bytes[i]);
		ttmon_jsonw_close(w, ']');
		ttmon_jsonw_close(w, '}');
	}
	if (a->traffic->page_heat) {
		ttmon_jsonw_key_open(w, "page_heat", '{');
		ttmon_jsonw_key_num(w, "group_bytes", a->traffic->page_heat->group_bytes);
		key_counts(w, "copies", a->traffic->page_heat->copies,
			   used(a->traffic->page_heat->copies, TTMON_PAGE_GROUPS));
		ttmon_jsonw_close(w, '}');
	}
}

/* Numbers have 20 digits and names 16 letters at most: the text of an allocation can be read back. */
#define EVENT_TEXT 120
_Static_assert((uint64_t)TTMON_HISTORY_ROW_EVENTS *EVENT_TEXT + (1 << 20) <= TTMON_DB_MAX_ALLOC,
	       "a row that cannot be read");

/* An event: [t_rel_ns, kind, bytes, offset, mem, bits]. */
void ttmon_db_rows_alloc_events(struct ttmon_jsonw *w, const struct ttmon_alloc *a, uint32_t skip)
{
	struct ttmon_aev ev = { 0 };
	uint32_t pos = 0;

	ttmon_jsonw_key_open(w, "events", '[');
	while (ttmon_history_event(a, &pos, &ev)) {
		if (skip) {
			skip--;
			continue;
		}
		ttmon_jsonw_open(w, '[');
		ttmon_jsonw_int(w, (int64_t)(ev.ts_ns - a->alloc_ns));
		ttmon_jsonw_name(w, ttmon_aev_name(ev.kind));
		ttmon_jsonw_num(w, ev.bytes);
		ttmon_jsonw_num(w, ev.offset);
		ttmon_jsonw_name(w, ttmon_mem_name(ev.mem));
		ttmon_jsonw_num(w, ev.bits);
		ttmon_jsonw_close(w, ']');
	}
	ttmon_jsonw_close(w, ']');
}

static void alloc_gpu(struct ttmon_jsonw *w, const struct ttmon_alloc *a)
{
	const struct ttmon_gpu_use *use = a->traffic->gpu;

	if (!use)
		return;
	ttmon_jsonw_key_open(w, "gpu", '{');
	ttmon_jsonw_key_num(w, "reads", use->reads);
	ttmon_jsonw_key_num(w, "writes", use->writes);
	ttmon_jsonw_key_num(w, "sectors", use->sectors);
	ttmon_jsonw_key_time(w, "first_ns", use->first_ns);
	ttmon_jsonw_key_time(w, "last_ns", use->last_ns);
	ttmon_jsonw_close(w, '}');
}

static void alloc_identity(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	ttmon_db_rows_alloc_id(w, "id", h, a);
	ttmon_jsonw_key_num(w, "pid", ttmon_history_proc(h, a->proc)->tgid);
	ttmon_jsonw_key_num(w, "process", a->proc);
	ttmon_jsonw_key_num(w, "site", a->site);
	ttmon_jsonw_key_num(w, "ordinal", a->ordinal);
	ttmon_jsonw_key_num(w, "size", a->size);
	ttmon_jsonw_key_addr(w, "addr", a->addr);
	ttmon_jsonw_key_num(w, "gen", a->gen);
	ttmon_jsonw_key_name(w, "method", ttmon_method_name(a->method));
	ttmon_jsonw_key_name(w, "fn", a->fn ? ttmon_fn_name(a->fn) : NULL);
	if (a->name)
		ttmon_jsonw_key_str(w, "name", a->name);
	TTMON_JSONW_KEY_IF(w, "device", a->device >= 0, num, (uint64_t)a->device);
}

bool ttmon_db_rows_has_launches(const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	return a->made_nth != UINT32_MAX && ttmon_history_numbered(h, ttmon_history_proc(h, a->proc));
}

static void alloc_launches(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	if (!ttmon_db_rows_has_launches(h, a))
		return;
	ttmon_jsonw_key_open(w, "launches", '[');
	ttmon_jsonw_num(w, a->made_nth);
	if (a->freed_nth == UINT32_MAX)
		ttmon_jsonw_null(w);
	else
		ttmon_jsonw_num(w, a->freed_nth);
	ttmon_jsonw_close(w, ']');
}

bool ttmon_db_rows_is_plain_host(const struct ttmon_alloc *a)
{
	return a->method == TTMON_METHOD_MMAP || a->method == TTMON_METHOD_CUSTOM;
}

void ttmon_db_rows_alloc_known(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	bool host = ttmon_method_pinned(a->method) || ttmon_db_rows_is_plain_host(a);

	if (host && ttmon_history_mem(h, a) == TTMON_MEM_UNKNOWN) {
		ttmon_jsonw_key_name(w, "kind", "unknown");
		if (ttmon_method_pinned(a->method) || a->bits & TTMON_AL_SHARED)
			ttmon_jsonw_key_name(w, "perhaps", "pinned");
	} else if (a->states & TTMON_ST_EXTENT && ttmon_history_mem(h, a) == TTMON_MEM_PINNED) {
		ttmon_jsonw_key_name(w, "kind", "pinned");
	}
	if (ttmon_history_alloc_known(h, a) != TTMON_KNOWN)
		ttmon_jsonw_key_bool(w, "at_least", true);
}

void ttmon_db_rows_alloc(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	alloc_identity(w, h, a);
	ttmon_db_rows_alloc_known(w, h, a);
	ttmon_jsonw_key_time(w, "alloc_ns", a->alloc_ns);
	TTMON_JSONW_KEY_IF(w, "free_ns", a->end != TTMON_END_LIVE, time, a->free_ns);
	alloc_launches(w, h, a);
	ttmon_jsonw_key_name(w, "end", end_names[a->end]);
	key_bits(w, "states", a->states, state_names, ARRAY_SIZE(state_names));
	ttmon_jsonw_key_num(w, "pin_ns", a->pin_ns);
	ttmon_jsonw_key_num(w, "unpin_ns", a->unpin_ns);
	key_bits(w, "flags", (a->bits & (FLAG_BACKING - 1)) | (a->api_flags & TTMON_API_BACKING ? FLAG_BACKING : 0),
		 flag_names, ARRAY_SIZE(flag_names));
	ttmon_jsonw_key_num(w, "api_flags", a->api_flags & ~TTMON_API_BACKING);
	ttmon_jsonw_key(w, "transfers");
	if (ttmon_history_alloc_known(h, a) == TTMON_UNKNOWN) {
		ttmon_jsonw_null(w);
	} else {
		ttmon_jsonw_open(w, '{');
		for (unsigned int dir = 0; dir < TTMON_RDIR_MAX; dir++)
			if (a->traffic->copies[dir])
				key_pair(w, ttmon_rdir_name(dir), a->traffic->copies[dir], a->traffic->bytes[dir]);
		ttmon_jsonw_close(w, '}');
	}
	alloc_sampled(w, h, a);
	alloc_gpu(w, a);
}

void ttmon_db_rows_allocations(struct ttmon_jsonw *w, const struct ttmon_history *h)
{
	ttmon_jsonw_key_open(w, "allocations", '[');
	for (uint64_t seq = ttmon_history_next(h, 0); seq < ttmon_history_allocs(h);
	     seq = ttmon_history_next(h, seq + 1)) {
		const struct ttmon_alloc *a = ttmon_history_alloc(h, seq);

		ttmon_jsonw_row(w, '{');
		ttmon_db_rows_alloc(w, h, a);
		ttmon_db_rows_alloc_heat(w, a);
		if (a->traffic->events_dropped)
			ttmon_jsonw_key_num(w, "events_dropped", a->traffic->events_dropped);
		ttmon_db_rows_alloc_events(w, a, 0);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

void ttmon_db_rows_said(struct ttmon_jsonw *w, const struct ttmon_said *s)
{
	ttmon_jsonw_key_name(w, "advice", ttmon_advice_name(s->advice));
	ttmon_jsonw_key_str(w, "reason", ttmon_reason_text(s->reason));
	TTMON_JSONW_KEY_IF(w, "gain_ns", s->known, int, s->gain_ns);
	TTMON_JSONW_KEY_IF(w, "gain_low_ns", s->known, int, s->low_ns);
	TTMON_JSONW_KEY_IF(w, "gain_high_ns", s->known && !s->at_least, int, s->high_ns);
	ttmon_jsonw_key(w, "confidence");
	ttmon_jsonw_ratio(w, s->confidence);
}

void ttmon_db_rows_cost(struct ttmon_jsonw *w, const struct ttmon_history *h)
{
	struct ttmon_cost c;

	ttmon_history_cost(h, &c);
	ttmon_jsonw_key_open(w, "cost", '{');
	ttmon_jsonw_key_num(w, "pageable_bytes_per_s", c.pageable_bps);
	ttmon_jsonw_key_num(w, "pinned_bytes_per_s", c.pinned_bps);
	ttmon_jsonw_key_num(w, "pinning_bytes_per_s", c.pinning_bps);
	ttmon_jsonw_key_num(w, "pin_call_ns", c.pin_call_ns);
	ttmon_jsonw_key_num(w, "unpin_call_ns", c.unpin_call_ns);
	ttmon_jsonw_close(w, '}');
}

void ttmon_db_rows_spot(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_spot *s)
{
	const struct ttmon_alloc *a = ttmon_history_alloc(h, s->alloc_seq);

	ttmon_jsonw_key_num(w, "site", s->site);
	ttmon_jsonw_key_num(w, "process", s->proc);
	ttmon_jsonw_key_name(w, "method", ttmon_method_name(s->method));
	ttmon_db_rows_said(w, &s->said);
	ttmon_jsonw_key_num(w, "allocs", s->allocs);
	ttmon_jsonw_key_num(w, "size", s->size);
	ttmon_jsonw_key_num(w, "bytes", s->bytes);
	ttmon_jsonw_key_num(w, "copies", s->copies);
	ttmon_jsonw_key_num(w, "copied", s->copied);
	ttmon_jsonw_key_num(w, "copies_back", s->back_copies);
	ttmon_jsonw_key_num(w, "copied_back", s->back_bytes);
	if (s->said.at_least)
		ttmon_jsonw_key_bool(w, "at_least", true);
	ttmon_jsonw_key_num(w, "age_ns", s->age_ns);
	if (a)
		ttmon_db_rows_alloc_id(w, "allocation", h, a);
}

int ttmon_db_rows_advice(struct ttmon_jsonw *w, const struct ttmon_history *h)
{
	_cleanup_free_ struct ttmon_spot *spots = NULL;
	size_t n = 0;
	int err = ttmon_history_advice(h, &spots, &n);

	if (err)
		return err;
	ttmon_db_rows_cost(w, h);
	ttmon_jsonw_key_open(w, "advice", '[');
	for (size_t i = 0; i < n; i++) {
		ttmon_jsonw_row(w, '{');
		ttmon_db_rows_spot(w, h, &spots[i]);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
	return 0;
}
