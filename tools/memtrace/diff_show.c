// SPDX-License-Identifier: GPL-2.0-only
/*
 * diff_show.c: the output of `ttmon memtrace diff` as text and JSON: the two traces, their sums, the
 * sites that changed.
 */
#include <inttypes.h>

#include "lib/os/jsonw.h"
#include "tools/memtrace/diff.h"
#include "tools/cli/show.h"

static const char *const how_names[TTMON_MT_HOWS] = { "exact", "line", "source", "opcode", "kind" };
static const char *const verdict_names[TTMON_MT_VERDICTS] = { "same", "better", "worse", "new", "gone" };

/*
 * Returns whether the efficiency is that of requested bytes: on request, or if one side has no
 * distinct bytes. Otherwise it is that of distinct bytes. Both sides use the same.
 */
static bool of_requested(const struct ttmon_mt_diff_side *sides, const struct ttmon_mt_args *args)
{
	return args->requested || sides[0].plain || sides[1].plain;
}

static double efficiency(const struct ttmon_mt_diff_item *i, bool requested)
{
	const struct ttmon_mt_sums *s = &i->row->sums;

	if (!ttmon_mt_diff_shared(i))
		return ttmon_mt_efficiency(s, requested);
	return s->waves ? (double)s->ideal_waves / (double)s->waves : -1;
}

/* ---- text ---- */

static void say_side(const struct ttmon_mt_diff_side *s, const char *name, size_t width)
{
	const struct ttmon_mt_stats *st = ttmon_mt_in_stats(s->in);
	char path[200], tool[80], count[TTMON_FMT_LEN], lack[TTMON_FMT_LEN], text[700];
	size_t n = ttmon_mt_in_dict(s->in)->nr_aggs, len;

	len = (size_t)snprintf(text, sizeof(text), "%s: %s: %s, %s record%s", name,
			       strcmp(s->path, "-") ? ttmon_fmt_text(path, sizeof(path), s->path) : "standard input",
			       *st->tool ? ttmon_fmt_text(tool, sizeof(tool), st->tool) : "a trace",
			       ttmon_fmt_count(count, sizeof(count), st->records), st->records == 1 ? "" : "s");
#define MORE(...) (len += (size_t)snprintf(text + len, sizeof(text) - len, __VA_ARGS__))
	if (n)
		MORE(", sums of the GPU for %zu sites", n);
	if (st->dropped)
		MORE(", %s dropped", ttmon_fmt_count(lack, sizeof(lack), st->dropped));
	if (st->malformed)
		MORE(", %s malformed", ttmon_fmt_count(lack, sizeof(lack), st->malformed));
	if (st->sample > 1)
		MORE(", one block in %u, which below count as all", st->sample);
	if (st->inferred)
		MORE(", lanes of %s inferred", ttmon_fmt_count(lack, sizeof(lack), st->inferred));
	MORE("%s", s->err ? ", ended by an error" : s->interrupted ? ", interrupted" : st->cut ? ", cut off" : "");
#undef MORE
	ttmon_mt_wrap(stdout, text, 0, 3, width);
}

/*
 * Returns the number of launches with records; for sums of the GPU the launches that were recorded; 0:
 * not known.
 */
static uint64_t launches_of(const struct ttmon_mt_diff_side *s)
{
	const struct ttmon_mt_dict *dict = ttmon_mt_in_dict(s->in);
	struct ttmon_mt_pick pick = s->pick;
	uint64_t sum = 0;
	size_t n = 0;

	ttmon_mt_an_launches(s->an, &n);
	for (size_t i = 0; i < dict->nr_launches && !n; i++)
		sum += ttmon_mt_pick_launch(&pick, &dict->launches[i]);
	return n ? n : sum;
}

/* a, b: negative if not known. */
static void put_total(struct ttmon_mt_grid *t, const char *what, double a, double b, bool share)
{
	char x[TTMON_FMT_LEN];

	for (unsigned int k = 0; k < 2; k++) {
		double v = k ? b : a;

		ttmon_mt_grid_put(t, "%s",
				  share || v < 0 ? ttmon_mt_percent(x, sizeof(x), v)
						 : ttmon_fmt_count(x, sizeof(x), (uint64_t)v));
	}
	if (share || !(a > 0) || b < 0)
		ttmon_mt_grid_put(t, "-");
	else
		ttmon_mt_grid_put(t, "%+.1f%%", 100 * (b - a) / a);
	ttmon_mt_grid_put(t, "%s", what);
}

static void say_totals(const struct ttmon_mt_diff_side *a, const struct ttmon_mt_diff_side *b, bool requested,
		       size_t width)
{
	static const char *const heads[] = { "A", "B", "CHANGE", "<TOTAL" };
	struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };
	const struct ttmon_mt_sums *x = ttmon_mt_an_total(a->an, TTMON_MT_GENERIC),
				   *y = ttmon_mt_an_total(b->an, TTMON_MT_GENERIC);
	struct ttmon_mt_sums memory[2];
	uint64_t la = launches_of(a), lb = launches_of(b);
	uint32_t sa = a->sample, sb = b->sample;

	ttmon_mt_memory(a->an, &memory[0]);
	ttmon_mt_memory(b->an, &memory[1]);
	put_total(&t, "launches", la ? (double)la : -1, lb ? (double)lb : -1, false);
	put_total(&t, "requests", (double)x->requests * sa, (double)y->requests * sb, false);
	put_total(&t, "sectors of 32 bytes", (double)x->sectors * sa, (double)y->sectors * sb, false);
	put_total(&t, requested ? "efficiency, of requested bytes" : "efficiency, of distinct bytes",
		  ttmon_mt_efficiency(&memory[0], requested), ttmon_mt_efficiency(&memory[1], requested), true);
	put_total(&t, "wavefronts of shared memory", (double)x->waves * sa, (double)y->waves * sb, false);
	putchar('\n');
	ttmon_mt_grid_print(&t, stdout, width);
}

static void put_both(struct ttmon_mt_grid *t, const char *a, const char *b)
{
	ttmon_mt_grid_put(t, "%s", a);
	ttmon_mt_grid_put(t, "%s", b);
}

static void put_pair(struct ttmon_mt_grid *t, const struct ttmon_mt_diff_pair *p, bool requested)
{
	const struct ttmon_mt_diff_item *sides[2] = { p->a, p->b }, *any = p->b ? p->b : p->a;
	_cleanup_free_ char *name = ttmon_mt_short_name(any->site->kernel);
	char x[3][2][TTMON_FMT_LEN], place[200], op[2][100];

	for (unsigned int k = 0; k < 2; k++) {
		const struct ttmon_mt_diff_item *i = sides[k];

		ttmon_mt_percent(x[2][k], TTMON_FMT_LEN, i ? efficiency(i, requested) : -1);
		ttmon_mt_per(x[1][k], TTMON_FMT_LEN, i ? ttmon_mt_diff_cost(i) : 0, i ? i->row->sums.requests : 0);
		if (i)
			ttmon_fmt_count(x[0][k], TTMON_FMT_LEN, (uint64_t)(ttmon_mt_diff_per_launch(i) + 0.5));
		else
			snprintf(x[0][k], TTMON_FMT_LEN, "-");
		ttmon_fmt_text(op[k], sizeof(op[k]), i ? i->site->opcode : "");
	}
	ttmon_mt_grid_put(t, "%s", verdict_names[p->verdict]);
	if (p->a && p->b && ttmon_mt_diff_cost(p->a))
		ttmon_mt_grid_put(t, "%+.1f%%",
				  100 * (ttmon_mt_diff_compared(p, p->b) / ttmon_mt_diff_compared(p, p->a) - 1));
	else
		ttmon_mt_grid_put(t, "-");
	ttmon_mt_grid_put(t, "%s", ttmon_mt_diff_shared(any) ? "waves" : "sectors");
	for (unsigned int i = 0; i < ARRAY_SIZE(x); i++)
		put_both(t, x[i][0], x[i][1]);
	ttmon_mt_place_text(any->site, place, sizeof(place));
	ttmon_mt_grid_put(
		t, "%s%s%s  %s%s%s%s", p->a ? op[0] : op[1], p->a && p->b && strcmp(op[0], op[1]) ? " -> " : "",
		p->a && p->b && strcmp(op[0], op[1]) ? op[1] : "", place, *place ? "  " : "", name ? name : "?",
		p->of_request					   ? " (of a request)"
		: p->a && p->b && p->a->launches != p->b->launches ? " (other number of launches)"
								   : "");
}

static void say_pairs(const struct ttmon_mt_diff_pair *pairs, size_t n, const struct ttmon_mt_args *args,
		      bool requested, size_t width)
{
	static const char *const heads[] = { "<",     "CHANGE", "<COST", "A",	  "B",
					     "A/REQ", "B/REQ",	"A EFF", "B EFF", "<WHERE" };
	struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };
	size_t of[ARRAY_SIZE(verdict_names)] = { 0 }, shown = 0, want = 0, requests = 0, rates = 0;

	for (size_t i = 0; i < n; i++) {
		requests += pairs[i].of_request;
		rates += pairs[i].by_rates;
		of[pairs[i].verdict]++;
		if (!args->all && pairs[i].verdict == TTMON_MT_SAME)
			continue;
		want++;
		if (shown >= args->lines)
			continue;
		shown++;
		put_pair(&t, &pairs[i], requested);
	}
	printf("\nSites: %zu better, %zu worse, %zu the same, %zu new, %zu gone", of[TTMON_MT_BETTER],
	       of[TTMON_MT_WORSE], of[TTMON_MT_SAME], of[TTMON_MT_NEW], of[TTMON_MT_GONE]);
	printf(shown < want ? "; the %zu that changed most:\n" : "\n", shown);
	if (rates)
		ttmon_mt_wrap(
			stdout,
			"Sampled traces, sums of the GPU, and device functions, which have no launches of their own, "
			"are compared by the figures of a request. A difference within 1% counts as equal (within "
			"10%, or more for few requests, if only one side has all its blocks recorded), for "
			"--exit-code too.",
			0, 0, width);
	if (!shown)
		return;
	ttmon_mt_wrap(stdout,
		      "Cost: 32-byte sectors, or wavefronts of shared memory, of a launch on average; of a request; "
		      "efficiency, of shared memory the ideal wavefronts "
		      "over those taken. Within 1% is the same.",
		      0, 0, width);
	if (requests)
		ttmon_mt_wrap(
			stdout,
			"(of a request): CHANGE compares the cost of a request, because the launches are not known "
			"(those of a device function never are), or only one side has all its blocks recorded; in the "
			"latter case a difference within 10%, or more for few requests, counts as equal.",
			0, 0, width);
	ttmon_mt_grid_print(&t, stdout, width);
}

void ttmon_mt_diff_text(const struct ttmon_mt_diff_side *sides, const struct ttmon_mt_diff_pair *pairs, size_t n,
			const struct ttmon_mt_args *args, size_t width)
{
	bool requested = of_requested(sides, args);

	say_side(&sides[0], "A", width);
	say_side(&sides[1], "B", width);
	say_totals(&sides[0], &sides[1], requested, width);
	say_pairs(pairs, n, args, requested, width);
}

/* ---- JSON ---- */

static void json_item(struct ttmon_jsonw *w, const char *key, const struct ttmon_mt_diff_item *i, bool requested)
{
	ttmon_jsonw_key(w, key);
	if (!i) {
		ttmon_jsonw_null(w);
		return;
	}
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_str(w, "opcode", *i->site->opcode ? i->site->opcode : NULL);
	ttmon_jsonw_key_str(w, "file", *i->site->file ? i->site->file : NULL);
	ttmon_jsonw_key_known(w, "line", i->site->line, i->site->line);
	ttmon_jsonw_key_num(w, "width", i->row->width);
	ttmon_jsonw_key_known(w, "launches", i->launches, i->launches);
	ttmon_jsonw_key_num(w, "sample", i->sample);
	ttmon_jsonw_key_num(w, "cost", ttmon_mt_diff_cost(i));
	ttmon_mt_json_figure(w, "cost_per_launch", ttmon_mt_diff_per_launch(i));
	ttmon_mt_json_sums(w, &i->row->sums, requested);
	ttmon_jsonw_close(w, '}');
}

int ttmon_mt_diff_json(const struct ttmon_mt_diff_side *sides, const struct ttmon_mt_diff_pair *pairs, size_t n,
		       const struct ttmon_mt_args *args, bool differs)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	bool requested = of_requested(sides, args);
	int err = ttmon_jsonw_init(&w, STDOUT_FILENO, false);

	if (err)
		return err;
	ttmon_jsonw_open(&w, '{');
	ttmon_jsonw_key_name(&w, "schema", "ttmon-memtrace-diff");
	ttmon_jsonw_key_num(&w, "version", 1);
	ttmon_jsonw_key_bool(&w, "differs", differs);
	ttmon_jsonw_key_name(&w, "efficiency", requested ? "requested" : "unique");
	for (unsigned int k = 0; k < 2; k++) {
		ttmon_jsonw_key_open(&w, k ? "b" : "a", '{');
		ttmon_jsonw_key_open(&w, "source", '{');
		ttmon_mt_json_source(&w, sides[k].path, ttmon_mt_in_stats(sides[k].in));
		ttmon_jsonw_key_bool(&w, "interrupted", sides[k].interrupted);
		ttmon_jsonw_key_bool(&w, "failed", sides[k].err != 0);
		ttmon_jsonw_close(&w, '}');
		ttmon_jsonw_key_open(&w, "total", '{');
		ttmon_mt_json_total(&w, sides[k].an, requested);
		ttmon_jsonw_close(&w, '}');
		ttmon_jsonw_close(&w, '}');
	}
	ttmon_jsonw_key_open(&w, "sites", '[');
	for (size_t i = 0; i < n && (!args->has_lines || i < args->lines); i++) {
		const struct ttmon_mt_diff_item *any = pairs[i].b ? pairs[i].b : pairs[i].a;

		ttmon_jsonw_row(&w, '{');
		ttmon_jsonw_key_name(&w, "verdict", verdict_names[pairs[i].verdict]);
		ttmon_jsonw_key_bool(&w, "differs", pairs[i].differs);
		ttmon_jsonw_key_name(&w, "differs_by", pairs[i].by_rates ? "rates" : "sums");
		ttmon_jsonw_key_name(&w, "matched_by", pairs[i].a && pairs[i].b ? how_names[any->how] : NULL);
		ttmon_jsonw_key_str(&w, "kernel", *any->site->kernel ? any->site->kernel : NULL);
		ttmon_jsonw_key_name(&w, "space", ttmon_mt_space_name(any->row->space));
		ttmon_jsonw_key_name(&w, "kind", ttmon_mt_kind_name(any->row->kind));
		ttmon_jsonw_key_name(&w, "cost", ttmon_mt_diff_shared(any) ? "wavefronts" : "sectors");
		ttmon_jsonw_key_name(&w, "cost_of", pairs[i].of_request ? "request" : "launch");
		json_item(&w, "a", pairs[i].a, requested);
		json_item(&w, "b", pairs[i].b, requested);
		ttmon_jsonw_close(&w, '}');
	}
	ttmon_jsonw_close(&w, ']');
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	return ttmon_jsonw_finish(&w);
}
