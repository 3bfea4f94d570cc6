// SPDX-License-Identifier: GPL-2.0-only
/* json_rows.c: the lists of `ttmon memtrace --json`: a row for each site, launch, kernel and buffer; reuse distances, the heat map. */
#include "tools/memtrace/json.h"

#define OF_BUFFER 8 /* instructions of each buffer, those with most to save */

void ttmon_mt_json_sites(struct ttmon_jsonw *w, const struct ttmon_mt_report *r, size_t n)
{
	size_t all = 0;
	const struct ttmon_mt_site_row *first = ttmon_mt_an_sites(r->an, &all);

	ttmon_mt_json_list(w, "sites");
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_site_row *row = r->sites[i];
		const struct ttmon_mt_site *s = ttmon_mt_row_site(r->dict, row);

		ttmon_jsonw_line(w);
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_num(w, "row", (uint64_t)(row - first));
		ttmon_jsonw_key_str(w, "kernel", *s->kernel ? s->kernel : NULL);
		ttmon_jsonw_key_str(w, "opcode", *s->opcode ? s->opcode : NULL);
		ttmon_jsonw_key_name(w, "space", ttmon_mt_space_name(row->space));
		ttmon_jsonw_key_name(w, "kind", ttmon_mt_kind_name(row->kind));
		ttmon_jsonw_key_num(w, "width", row->width);
		ttmon_jsonw_key_str(w, "file", *s->file ? s->file : NULL);
		ttmon_jsonw_key_known(w, "line", s->line, s->line);
		ttmon_jsonw_key(w, "pc");
		if (s->pc)
			ttmon_jsonw_addr(w, s->pc);
		else
			ttmon_jsonw_null(w);
		ttmon_jsonw_key_known(w, "ptx_line", s->text_line, s->text_line);
		ttmon_jsonw_key_str(w, "module", *s->module ? s->module : NULL);
		ttmon_jsonw_key_bool(w, "opcode_guessed", s->flags & TTMON_MT_SITE_GUESSED);
		ttmon_jsonw_key_num(w, "could_save", ttmon_mt_waste(row));
		ttmon_mt_json_sums(w, &row->sums, r->args->requested);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void dims(struct ttmon_jsonw *w, const char *key, const uint32_t *d)
{
	ttmon_jsonw_key(w, key);
	if (!d[0]) {
		ttmon_jsonw_null(w);
		return;
	}
	ttmon_jsonw_open(w, '[');
	for (unsigned int i = 0; i < 3; i++)
		ttmon_jsonw_num(w, d[i]);
	ttmon_jsonw_close(w, ']');
}

void ttmon_mt_json_launches(struct ttmon_jsonw *w, const struct ttmon_mt_report *r, size_t n)
{
	static const struct ttmon_mt_launch others = { .kernel = "others" };

	ttmon_mt_json_list(w, "launches");
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_launch_row *row = r->launches[i];
		bool known = row->launch < r->dict->nr_launches;
		const struct ttmon_mt_launch *l = known ? &r->dict->launches[row->launch] : &others;

		ttmon_jsonw_line(w);
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_known(w, "index", known, row->launch);
		ttmon_jsonw_key_known(w, "id", known, l->id);
		ttmon_jsonw_key_addr(w, "context", l->ctx);
		ttmon_jsonw_key_str(w, "kernel", *l->kernel ? l->kernel : NULL);
		dims(w, "grid", l->grid);
		dims(w, "block", l->block);
		ttmon_jsonw_key_num(w, "registers", l->regs);
		ttmon_jsonw_key_num(w, "shared_bytes", l->shmem);
		ttmon_jsonw_key_num(w, "stream", l->stream);
		ttmon_jsonw_key_known(w, "pid", l->pid, l->pid);
		ttmon_jsonw_key(w, "time_ns");
		if (l->time_ns)
			ttmon_jsonw_time(w, l->time_ns);
		else
			ttmon_jsonw_null(w);
		ttmon_jsonw_key_bool(w, "described", known && !(l->flags & TTMON_MT_LAUNCH_MADE_UP));
		ttmon_jsonw_key_bool(w, "graph", l->flags & TTMON_MT_LAUNCH_GRAPH);
		ttmon_jsonw_key_bool(w, "sampled", l->flags & TTMON_MT_LAUNCH_SAMPLED);
		ttmon_jsonw_key_num(w, "distinct_sectors", row->sectors);
		ttmon_jsonw_key_num(w, "again_sectors", row->again);
		ttmon_jsonw_key_bool(w, "distinct_estimated", row->estimate);
		ttmon_mt_json_sums_of(w, "global", &row->global, r->args->requested);
		ttmon_mt_json_sums_of(w, "shared", &row->shared, r->args->requested);
		ttmon_mt_json_sums_of(w, "local", &row->local, r->args->requested);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

void ttmon_mt_json_kernels(struct ttmon_jsonw *w, const struct ttmon_mt_report *r, size_t n)
{
	static const char *const widths[] = { "1", "2", "4", "8", "16", "32", "other" };

	ttmon_mt_json_list(w, "kernels");
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_kernel_row *k = r->kernels[i];

		ttmon_jsonw_line(w);
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_str(w, "kernel", *k->kernel ? k->kernel : NULL);
		ttmon_jsonw_key_known(w, "launches", !k->function, k->launches);
		ttmon_jsonw_key_bool(w, "device_function", k->function);
		ttmon_jsonw_key(w, "mix");
		ttmon_jsonw_open(w, '{');
		for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++) {
			ttmon_jsonw_key(w, ttmon_mt_space_name(s));
			ttmon_jsonw_open(w, '{');
			for (unsigned int kind = 0; kind < TTMON_MT_KIND_MAX; kind++)
				if (k->requests[s][kind])
					ttmon_jsonw_key_num(w, ttmon_mt_kind_name(kind), k->requests[s][kind]);
			ttmon_jsonw_close(w, '}');
		}
		ttmon_jsonw_close(w, '}');
		ttmon_jsonw_key(w, "widths");
		ttmon_jsonw_open(w, '{');
		for (size_t x = 0; x < ARRAY_SIZE(widths); x++)
			if (k->widths[x])
				ttmon_jsonw_key_num(w, widths[x], k->widths[x]);
		ttmon_jsonw_close(w, '}');
		ttmon_mt_json_sums_of(w, "global", &k->sums, r->args->requested);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void launch_id(struct ttmon_jsonw *w, const char *key, const struct ttmon_mt_dict *d, uint32_t launch)
{
	ttmon_jsonw_key_known(w, key, launch < d->nr_launches, launch < d->nr_launches ? d->launches[launch].id : 0);
}

/* What kernels do to it; NULL: not all of that is known. */
static const char *use_of(const struct ttmon_mt_buffer_row *b)
{
	const char *use = ttmon_mt_buffer_use(b);

	return !strcmp(use, "RO") ? "read" : !strcmp(use, "WO") ? "write" : !strcmp(use, "RW") ? "both" : NULL;
}

static void worst_sites(struct ttmon_jsonw *w, const struct ttmon_mt_an *an, uint32_t buffer)
{
	size_t n;
	const struct ttmon_mt_pair *p = ttmon_mt_an_buffer_sites(an, buffer, &n);

	ttmon_jsonw_key_num(w, "sites", n);
	ttmon_mt_json_list(w, "worst_sites");
	for (size_t i = 0; i < MIN(n, (size_t)OF_BUFFER); i++) {
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_num(w, "site", p[i].site);
		ttmon_jsonw_key_num(w, "requests", p[i].requests);
		ttmon_jsonw_key_num(w, "sectors", p[i].sectors);
		ttmon_jsonw_key_num(w, "ideal_sectors", p[i].ideal);
		ttmon_jsonw_key_num(w, "ideal_lane_sectors", p[i].ideal_lanes);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

void ttmon_mt_json_buffers(struct ttmon_jsonw *w, const struct ttmon_mt_report *r, size_t n)
{
	size_t nr = 0, all = 0;
	const struct ttmon_mt_alloc *allocs = r->map ? ttmon_mt_map_get(r->map, &nr) : NULL;
	const struct ttmon_mt_buffer_row *first = ttmon_mt_an_buffers(r->an, &all);

	ttmon_mt_json_list(w, "buffers");
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_buffer_row *b = r->buffers[i];
		const struct ttmon_mt_alloc *a = b->alloc < nr ? &allocs[b->alloc] : NULL;
		bool counted = b->sectors || !b->sums.sectors;

		ttmon_jsonw_line(w);
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_num(w, "row", (uint64_t)(b - first));
		ttmon_jsonw_key_addr(w, "addr", b->addr);
		ttmon_jsonw_key_num(w, "size", b->size);
		ttmon_jsonw_key_name(w, "memory", ttmon_mt_mem_name(a ? a->mem : TTMON_MT_MEM_UNKNOWN));
		ttmon_jsonw_key_addr(w, "touched_from", b->low);
		ttmon_jsonw_key_addr(w, "touched_to", b->high);
		ttmon_jsonw_key_known(w, "distinct_sectors", counted, b->sectors);
		ttmon_jsonw_key_bool(w, "distinct_estimated", b->estimate);
		ttmon_mt_json_figure(w, "coverage",
				     counted && b->size ? MIN((double)b->sectors * TTMON_MT_SECTOR / (double)b->size, 1)
							: -1);
		ttmon_jsonw_key_num(w, "touches", b->touches);
		ttmon_jsonw_key_num(w, "touches_unknown", b->unknown);
		ttmon_jsonw_key_name(w, "use", use_of(b));
		ttmon_jsonw_key_bool(w, "ambiguous", b->ambiguous);
		ttmon_jsonw_key_bool(w, "by_order", b->by_order);
		worst_sites(w, r->an, (uint32_t)(b - first));
		launch_id(w, "first_launch", r->dict, b->first_launch);
		launch_id(w, "last_launch", r->dict, b->last_launch);
		ttmon_mt_json_alloc(w, a);
		ttmon_mt_json_sums(w, &b->sums, r->args->requested);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

void ttmon_mt_json_reuse(struct ttmon_jsonw *w, const struct ttmon_mt_report *r)
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
	ttmon_mt_json_hist(w, "histogram", got->hist, ARRAY_SIZE(got->hist));
	ttmon_mt_json_list(w, "misses");
	for (unsigned int shift = 14; shift <= 28; shift++) {
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_num(w, "cache_bytes", 1ULL << shift);
		ttmon_mt_json_figure(w, "ratio", got->touches ? ttmon_mt_reuse_miss(got, 1ULL << shift) : -1);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_close(w, '}');
}

void ttmon_mt_json_heat(struct ttmon_jsonw *w, const struct ttmon_mt_report *r)
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
	ttmon_mt_json_list(w, "buffers");
	for (size_t i = 0; i < h.nr_buffers; i++) {
		const uint32_t *cells = h.count + i * h.rows * h.cols;

		ttmon_jsonw_line(w);
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_num(w, "buffer", h.buffer[i]);
		ttmon_mt_json_list(w, "sectors");
		for (size_t c = 0; c < (size_t)h.rows * h.cols; c++)
			ttmon_jsonw_num(w, cells[c]);
		ttmon_jsonw_close(w, ']');
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_close(w, '}');
}
