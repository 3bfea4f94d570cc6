// SPDX-License-Identifier: GPL-2.0-only
/*
 * json.c: `ttmon memtrace --json`: everything, in the form that ttmon-memtrace(1) describes. Members
 * may be added, never removed or changed. An unknown value is null.
 */
#include "tools/memtrace/columns.h"
#include "tools/memtrace/json.h"

#define VERSION 1

void ttmon_mt_json_real(struct ttmon_jsonw *w, double value)
{
	if (!(value >= 0) || value > 1e15)
		ttmon_jsonw_null(w);
	else
		ttmon_jsonw_us(w, (uint64_t)(value * 1000 + 0.5));
}

void ttmon_mt_json_figure(struct ttmon_jsonw *w, const char *key, double value)
{
	ttmon_jsonw_key(w, key);
	ttmon_mt_json_real(w, value);
}

void ttmon_mt_json_source(struct ttmon_jsonw *w, const char *path, const struct ttmon_mt_stats *st)
{
	ttmon_jsonw_key_str(w, "path", path);
	ttmon_jsonw_key_str(w, "tool", *st->tool ? st->tool : NULL);
	ttmon_jsonw_key_num(w, "bytes", st->bytes);
	ttmon_jsonw_key_num(w, "records", st->records);
	ttmon_jsonw_key_num(w, "inferred", st->inferred);
	ttmon_jsonw_key_num(w, "foreign", st->foreign);
	ttmon_jsonw_key_num(w, "malformed", st->malformed);
	ttmon_jsonw_key_num(w, "unknown_opcodes", st->unknown_op);
	ttmon_jsonw_key_num(w, "unknown_launches", st->no_launch);
	ttmon_jsonw_key_num(w, "skewed", st->skewed);
	ttmon_jsonw_key_num(w, "outside_records", st->outside);
	ttmon_jsonw_key_num(w, "outside_lanes", st->outside_lanes);
	ttmon_jsonw_key_known(w, "produced", st->produced || st->dropped, st->produced);
	ttmon_jsonw_key_known(w, "dropped", st->produced || st->dropped, st->dropped);
	ttmon_jsonw_key_num(w, "sample", MAX(st->sample, 1u));
	ttmon_jsonw_key_bool(w, "cut", st->cut);
	ttmon_jsonw_key_bool(w, "grouped", st->grouped);
}

static void allocations(struct ttmon_jsonw *w, const struct ttmon_mt_report *r)
{
	char from[300];
	size_t nr = 0;

	if (r->map)
		ttmon_mt_map_get(r->map, &nr);
	ttmon_jsonw_key_open(w, "allocations", '{');
	ttmon_jsonw_key_str(w, "from", r->map ? ttmon_mt_allocs_from(r->args, from, sizeof(from)) : NULL);
	ttmon_jsonw_key_num(w, "count", nr);
	ttmon_jsonw_close(w, '}');
}

static void selection(struct ttmon_jsonw *w, const struct ttmon_mt_args *a)
{
	ttmon_jsonw_key_open(w, "selection", '{');
	ttmon_jsonw_key_str(w, "kernel", a->pick.kernel);
	ttmon_jsonw_key_str(w, "launches", a->pick.launches);
	ttmon_jsonw_key_str(w, "site", a->pick.site);
	ttmon_jsonw_key_open(w, "spaces", '[');
	for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++)
		if (!a->pick.spaces || a->pick.spaces >> s & 1)
			ttmon_jsonw_name(w, ttmon_mt_space_name(s));
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_name(w, "efficiency", a->requested ? "requested" : "unique");
	ttmon_jsonw_close(w, '}');
}

/* Writes the numbers of rows, independent of --lines. */
static void rows(struct ttmon_jsonw *w, const struct ttmon_mt_report *r)
{
	ttmon_jsonw_key_open(w, "rows", '{');
	ttmon_jsonw_key_num(w, "sites", r->nr_sites);
	ttmon_jsonw_key_num(w, "launches", r->nr_launches);
	ttmon_jsonw_key_num(w, "kernels", r->nr_kernels);
	ttmon_jsonw_key_num(w, "buffers", r->nr_buffers);
	ttmon_jsonw_close(w, '}');
}

static void coverage(struct ttmon_jsonw *w, const struct ttmon_mt_dict *d)
{
	ttmon_jsonw_key_open(w, "coverage", '[');
	for (size_t i = 0; i < d->nr_kernels; i++) {
		const struct ttmon_mt_kernel *k = &d->kernels[i];

		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_str(w, "kernel", k->name);
		ttmon_jsonw_key_str(w, "module", *k->module ? k->module : NULL);
		ttmon_jsonw_key_str(w, "why_not", *k->why ? k->why : NULL);
		ttmon_jsonw_key_num(w, "launches", k->launches);
		ttmon_jsonw_key_num(w, "recorded", k->recorded);
		ttmon_jsonw_key_num(w, "sites", k->sites);
		ttmon_jsonw_key_num(w, "left_out", k->left_out);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

void ttmon_mt_json_alloc(struct ttmon_jsonw *w, const struct ttmon_mt_alloc *a)
{
	ttmon_jsonw_key(w, "allocation");
	if (!a) {
		ttmon_jsonw_null(w);
		return;
	}
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_str(w, "id", a->id);
	ttmon_jsonw_key_addr(w, "addr", a->addr);
	ttmon_jsonw_key_num(w, "size", a->size);
	ttmon_jsonw_key_name(w, "memory", ttmon_mt_mem_name(a->mem));
	ttmon_jsonw_key_str(w, "name", *a->name ? a->name : NULL);
	ttmon_jsonw_key_str(w, "call_site", *a->site ? a->site : NULL);
	ttmon_jsonw_key_num(w, "pid", a->pid);
	ttmon_jsonw_key_num(w, "copies", a->copies);
	ttmon_jsonw_key_num(w, "copied", a->bytes);
	ttmon_jsonw_key_num(w, "copied_back", a->d2h_bytes);
	ttmon_jsonw_key_bool(w, "in_place", a->in_place);
	ttmon_jsonw_close(w, '}');
}

static void findings(struct ttmon_jsonw *w, const struct ttmon_mt_report *r)
{
	size_t nr = 0;
	const struct ttmon_mt_alloc *allocs = r->map ? ttmon_mt_map_get(r->map, &nr) : NULL;

	ttmon_jsonw_key_open(w, "findings", '[');
	for (size_t i = 0; i < r->nr_findings; i++) {
		const struct ttmon_mt_finding *f = &r->findings[i];

		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_name(w, "what", ttmon_mt_find_name(f->what));
		ttmon_mt_json_figure(w, "weight", f->weight);
		ttmon_jsonw_key_bool(w, "estimated", f->estimated);
		if (f->what == TTMON_MT_FIND_UNTOUCHED)
			ttmon_mt_json_alloc(w, f->row < nr ? &allocs[f->row] : NULL);
		else
			ttmon_jsonw_key_num(w, f->what >= TTMON_MT_FIND_ZERO_COPY ? "buffer" : "site", f->row);
		ttmon_jsonw_key_str(w, "text", f->text);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void reuse(struct ttmon_jsonw *w, const struct ttmon_mt_report *r)
{
	const struct ttmon_mt_reuse_result *got = ttmon_mt_an_reuse(r->an);

	ttmon_jsonw_key(w, "reuse");
	if (!got) {
		ttmon_jsonw_null(w);
		return;
	}
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_bool(w, "exact", got->exact);
	ttmon_jsonw_key_num(w, "touches", got->touches);
	ttmon_jsonw_key_num(w, "first_touches", got->cold);
	ttmon_jsonw_key_num(w, "not_followed", got->lost);
	ttmon_mt_json_figure(w, "rate", got->rate);
	ttmon_jsonw_key_open(w, "histogram", '[');
	for (size_t i = 0; i < ARRAY_SIZE(got->hist); i++)
		ttmon_jsonw_num(w, got->hist[i]);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_open(w, "misses", '[');
	for (unsigned int shift = 14; shift <= 28; shift++) {
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_num(w, "cache_bytes", 1ULL << shift);
		ttmon_mt_json_figure(w, "ratio", got->touches ? ttmon_mt_reuse_miss(got, 1ULL << shift) : -1);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_close(w, '}');
}

static void heat(struct ttmon_jsonw *w, const struct ttmon_mt_report *r)
{
	struct ttmon_mt_heat h = { 0 };

	ttmon_jsonw_key(w, "heat");
	if (ttmon_mt_an_heat(r->an, &h)) {
		ttmon_jsonw_null(w);
		return;
	}
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_num(w, "rows", h.rows);
	ttmon_jsonw_key_num(w, "columns", h.cols);
	ttmon_jsonw_key_num(w, "records_per_column", h.per_col);
	ttmon_jsonw_key_open(w, "buffers", '[');
	for (size_t i = 0; i < h.nr_buffers; i++) {
		const uint32_t *cells = h.count + i * h.rows * h.cols;

		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_num(w, "buffer", h.buffer[i]);
		ttmon_jsonw_key_open(w, "sectors", '[');
		for (size_t c = 0; c < (size_t)h.rows * h.cols; c++)
			ttmon_jsonw_num(w, cells[c]);
		ttmon_jsonw_close(w, ']');
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_close(w, '}');
}

int ttmon_mt_json(const struct ttmon_mt_report *r, int fd)
{
	static const unsigned int spaces[] = { TTMON_MT_GLOBAL, TTMON_MT_SHARED, TTMON_MT_LOCAL };
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	int err = ttmon_jsonw_init(&w, fd, false);

	if (err)
		return err;
	ttmon_jsonw_open(&w, '{');
	ttmon_jsonw_key_name(&w, "schema", "ttmon-memtrace");
	ttmon_jsonw_key_num(&w, "version", VERSION);
	ttmon_jsonw_key_open(&w, "source", '{');
	ttmon_mt_json_source(&w, r->path, r->stats);
	ttmon_jsonw_key_bool(&w, "interrupted", r->interrupted);
	ttmon_jsonw_key_bool(&w, "failed", r->err != 0);
	ttmon_jsonw_key_num(&w, "sites", r->dict->nr_sites);
	ttmon_jsonw_key_num(&w, "launches", r->dict->nr_launches);
	ttmon_jsonw_key_num(&w, "gpu_sums", r->dict->nr_aggs);
	ttmon_jsonw_close(&w, '}');
	selection(&w, r->args);
	allocations(&w, r);
	rows(&w, r);
	coverage(&w, r->dict);
	ttmon_jsonw_key_open(&w, "totals", '{');
	ttmon_jsonw_key_open(&w, "all", '{');
	ttmon_mt_json_total(&w, r->an, r->args->requested);
	ttmon_jsonw_close(&w, '}');
	for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
		ttmon_jsonw_key_open(&w, ttmon_mt_space_name(spaces[i]), '{');
		ttmon_mt_json_sums(&w, ttmon_mt_an_total(r->an, spaces[i]), r->args->requested);
		ttmon_jsonw_close(&w, '}');
	}
	ttmon_jsonw_close(&w, '}');
	findings(&w, r);
	ttmon_mt_columns_json(&w, r);
	reuse(&w, r);
	heat(&w, r);
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	return ttmon_jsonw_finish(&w);
}
