// SPDX-License-Identifier: GPL-2.0-only
/* json.c: `ttmon memtrace --json`: everything, as ttmon-memtrace(1) describes it. Members are only ever added. What is not known is null. */
#include "tools/memtrace/json.h"

#define VERSION 1

void ttmon_mt_json_figure(struct ttmon_jsonw *w, const char *key, double value)
{
	ttmon_jsonw_key(w, key);
	if (!(value >= 0) || value > 1e15)
		ttmon_jsonw_null(w);
	else
		ttmon_jsonw_us(w, (uint64_t)(value * 1000 + 0.5));
}

static double per(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : -1;
}

void ttmon_mt_json_hist(struct ttmon_jsonw *w, const char *key, const uint64_t *of, size_t n)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_open(w, '[');
	for (size_t i = 0; i < n; i++)
		ttmon_jsonw_num(w, of[i]);
	ttmon_jsonw_close(w, ']');
}

/* A byte stride or step that most had, null where there was none. */
static void vote(struct ttmon_jsonw *w, const char *key, int64_t value, uint64_t votes)
{
	ttmon_jsonw_key(w, key);
	if (votes)
		ttmon_jsonw_int(w, value);
	else
		ttmon_jsonw_null(w);
}

static void classes(struct ttmon_jsonw *w, const struct ttmon_mt_sums *s)
{
	double part = 0;
	unsigned int class = ttmon_mt_main_class(s, &part);

	ttmon_jsonw_key_name(w, "class", part > 0 ? ttmon_mt_class_name(class) : NULL);
	ttmon_mt_json_figure(w, "class_share", part > 0 ? part : -1);
	ttmon_jsonw_key(w, "classes");
	ttmon_jsonw_open(w, '{');
	for (unsigned int i = 0; i < TTMON_MT_CLASS_MAX; i++)
		if (s->classes[i])
			ttmon_jsonw_key_num(w, ttmon_mt_class_name(i), s->classes[i]);
	ttmon_jsonw_close(w, '}');
}

/* of: whose efficiency. */
static void sums(struct ttmon_jsonw *w, const struct ttmon_mt_sums *s, const struct ttmon_mt_sums *of, bool requested)
{
	const struct {
		const char *key;
		uint64_t value;
	} plain[] = {
		{ "requests", s->requests },
		{ "records", s->records },
		{ "inferred", s->inferred },
		{ "lanes", s->lanes },
		{ "full", s->full },
		{ "reads", s->reads },
		{ "writes", s->writes },
		{ "bytes", s->bytes },
		{ "unique_bytes", s->unique },
		{ "sectors", s->sectors },
		{ "lines", s->lines },
		{ "ideal_sectors", s->ideal },
		{ "ideal_lane_sectors", s->ideal_lanes },
		{ "misaligned", s->misaligned },
		{ "pages_4k", s->pages_4k },
		{ "pages_64k", s->pages_64k },
		{ "pages_2m", s->pages_2m },
		{ "wavefronts", s->waves },
		{ "phases", s->phases },
		{ "ideal_wavefronts", s->ideal_waves },
		{ "max_wavefronts", s->max_waves },
		{ "same_word", s->same },
		{ "max_same_word", s->max_same },
	};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		ttmon_jsonw_key_num(w, plain[i].key, plain[i].value);
	ttmon_mt_json_figure(w, "efficiency", ttmon_mt_efficiency(of, requested));
	ttmon_mt_json_figure(w, "efficiency_unique", ttmon_mt_efficiency(of, false));
	ttmon_mt_json_figure(w, "efficiency_requested", ttmon_mt_efficiency(of, true));
	ttmon_mt_json_figure(w, "sectors_per_request", s->sectors ? per(s->sectors, s->requests) : -1);
	ttmon_mt_json_figure(w, "lines_per_request", s->sectors ? per(s->lines, s->requests) : -1);
	ttmon_mt_json_figure(w, "lanes_per_request", per(s->lanes, s->requests));
	ttmon_mt_json_figure(w, "wavefronts_per_request", s->waves ? per(s->waves, s->requests) : -1);
	classes(w, s);
	vote(w, "stride", s->stride, s->stride_votes);
	vote(w, "step", s->step, s->step_votes);
	if (s->min_addr <= s->max_addr && s->requests) {
		ttmon_jsonw_key_addr(w, "first_byte", s->min_addr);
		ttmon_jsonw_key_addr(w, "last_byte", s->max_addr);
	}
	ttmon_mt_json_hist(w, "sectors_histogram", s->sectors_hist, ARRAY_SIZE(s->sectors_hist));
	ttmon_mt_json_hist(w, "lines_histogram", s->lines_hist, ARRAY_SIZE(s->lines_hist));
	ttmon_mt_json_hist(w, "wavefronts_histogram", s->waves_hist, ARRAY_SIZE(s->waves_hist));
	ttmon_mt_json_hist(w, "lanes_bins", s->lanes_bins, ARRAY_SIZE(s->lanes_bins));
	ttmon_mt_json_hist(w, "pages_4k_bins", s->pages_4k_bins, ARRAY_SIZE(s->pages_4k_bins));
	ttmon_mt_json_hist(w, "pages_2m_bins", s->pages_2m_bins, ARRAY_SIZE(s->pages_2m_bins));
}

void ttmon_mt_json_sums(struct ttmon_jsonw *w, const struct ttmon_mt_sums *s, bool requested)
{
	sums(w, s, s, requested);
}

void ttmon_mt_json_total(struct ttmon_jsonw *w, const struct ttmon_mt_an *an, bool requested)
{
	struct ttmon_mt_sums memory;

	ttmon_mt_memory(an, &memory);
	sums(w, ttmon_mt_an_total(an, TTMON_MT_GENERIC), &memory, requested);
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
	ttmon_jsonw_key(w, "allocations");
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_str(w, "from", r->map ? ttmon_mt_allocs_from(r->args, from, sizeof(from)) : NULL);
	ttmon_jsonw_key_num(w, "count", nr);
	ttmon_jsonw_close(w, '}');
}

static void selection(struct ttmon_jsonw *w, const struct ttmon_mt_args *a)
{
	ttmon_jsonw_key(w, "selection");
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_str(w, "kernel", a->pick.kernel);
	ttmon_jsonw_key_str(w, "launches", a->pick.launches);
	ttmon_jsonw_key_str(w, "site", a->pick.site);
	ttmon_jsonw_key(w, "spaces");
	ttmon_jsonw_open(w, '[');
	for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++)
		if (!a->pick.spaces || a->pick.spaces >> s & 1)
			ttmon_jsonw_name(w, ttmon_mt_space_name(s));
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_name(w, "efficiency", a->requested ? "requested" : "unique");
	ttmon_jsonw_close(w, '}');
}

/* How many there are, whatever --lines leaves. */
static void rows(struct ttmon_jsonw *w, const struct ttmon_mt_report *r)
{
	ttmon_jsonw_key(w, "rows");
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_num(w, "sites", r->nr_sites);
	ttmon_jsonw_key_num(w, "launches", r->nr_launches);
	ttmon_jsonw_key_num(w, "kernels", r->nr_kernels);
	ttmon_jsonw_key_num(w, "buffers", r->nr_buffers);
	ttmon_jsonw_close(w, '}');
}

void ttmon_mt_json_list(struct ttmon_jsonw *w, const char *key)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_open(w, '[');
}

static void coverage(struct ttmon_jsonw *w, const struct ttmon_mt_dict *d)
{
	ttmon_mt_json_list(w, "coverage");
	for (size_t i = 0; i < d->nr_kernels; i++) {
		const struct ttmon_mt_kernel *k = &d->kernels[i];

		ttmon_jsonw_line(w);
		ttmon_jsonw_open(w, '{');
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

	ttmon_mt_json_list(w, "findings");
	for (size_t i = 0; i < r->nr_findings; i++) {
		const struct ttmon_mt_finding *f = &r->findings[i];

		ttmon_jsonw_line(w);
		ttmon_jsonw_open(w, '{');
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

void ttmon_mt_json_sums_of(struct ttmon_jsonw *w, const char *key, const struct ttmon_mt_sums *s, bool requested)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_open(w, '{');
	ttmon_mt_json_sums(w, s, requested);
	ttmon_jsonw_close(w, '}');
}

int ttmon_mt_json(const struct ttmon_mt_report *r, int fd)
{
	static const unsigned int spaces[] = { TTMON_MT_GLOBAL, TTMON_MT_SHARED, TTMON_MT_LOCAL };
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	uint64_t most = r->args->has_lines ? r->args->lines : UINT64_MAX;
	int err = ttmon_jsonw_init(&w, fd, false);

	if (err)
		return err;
	ttmon_jsonw_open(&w, '{');
	ttmon_jsonw_key_name(&w, "schema", "ttmon-memtrace");
	ttmon_jsonw_key_num(&w, "version", VERSION);
	ttmon_jsonw_key(&w, "source");
	ttmon_jsonw_open(&w, '{');
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
	ttmon_jsonw_key(&w, "totals");
	ttmon_jsonw_open(&w, '{');
	ttmon_jsonw_key(&w, "all");
	ttmon_jsonw_open(&w, '{');
	ttmon_mt_json_total(&w, r->an, r->args->requested);
	ttmon_jsonw_close(&w, '}');
	for (size_t i = 0; i < ARRAY_SIZE(spaces); i++)
		ttmon_mt_json_sums_of(&w, ttmon_mt_space_name(spaces[i]), ttmon_mt_an_total(r->an, spaces[i]),
				      r->args->requested);
	ttmon_jsonw_close(&w, '}');
	findings(&w, r);
	ttmon_mt_json_sites(&w, r, (size_t)MIN((uint64_t)r->nr_sites, most));
	ttmon_mt_json_launches(&w, r, (size_t)MIN((uint64_t)r->nr_launches, most));
	ttmon_mt_json_kernels(&w, r, (size_t)MIN((uint64_t)r->nr_kernels, most));
	ttmon_mt_json_buffers(&w, r, (size_t)MIN((uint64_t)r->nr_buffers, most));
	ttmon_mt_json_reuse(&w, r);
	ttmon_mt_json_heat(&w, r);
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	return ttmon_jsonw_finish(&w);
}
