// SPDX-License-Identifier: GPL-2.0-only
/* json.c: `ttmon advise --json` prints one object. ttmon(1) lists its members. */
#include "lib/os/jsonw.h"
#include "tools/advise/advise.h"
#include "version.h"

static const char *const row_names[] = {
	[TTMON_POLICY_NONE] = "none",	    [TTMON_POLICY_ALL] = "all",
	[TTMON_POLICY_PYTORCH] = "pytorch", [TTMON_POLICY_HINDSIGHT] = "hindsight",
	[TTMON_POLICY_ADVICE] = "advice",   [TTMON_ADVISE_OTHERS] = "advice_of_others",
};

static void key_int(struct ttmon_jsonw *w, const char *key, int64_t value)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_int(w, value);
}

static void rate(struct ttmon_jsonw *w, const char *key, uint64_t bps, const char *from)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_num(w, "bytes_per_s", bps);
	ttmon_jsonw_key_str(w, "from", from);
	ttmon_jsonw_close(w, '}');
}

static void price(struct ttmon_jsonw *w, const char *key, uint64_t ns, const char *from)
{
	ttmon_jsonw_key(w, key);
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_num(w, "ns", ns);
	ttmon_jsonw_key_str(w, "from", from);
	ttmon_jsonw_close(w, '}');
}

void ttmon_advise_json_begin(struct ttmon_jsonw *w, const struct ttmon_advise_opts *o,
			     const struct ttmon_advise_cost *cost)
{
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_str(w, "ttmon", TTMON_VERSION);
	ttmon_jsonw_key(w, "cost");
	ttmon_jsonw_open(w, '{');
	rate(w, "pageable", cost->cost.pageable_bps, cost->from[TTMON_ADVISE_PAGEABLE]);
	rate(w, "pinned", cost->cost.pinned_bps, cost->from[TTMON_ADVISE_PINNED]);
	rate(w, "pinning", cost->cost.pinning_bps, cost->from[TTMON_ADVISE_PINNING]);
	price(w, "pin_call", cost->cost.pin_call_ns, cost->from[TTMON_ADVISE_PIN_CALL]);
	price(w, "unpin_call", cost->cost.unpin_call_ns, cost->from[TTMON_ADVISE_UNPIN_CALL]);
	ttmon_jsonw_key_str(w, "warning", cost->warning);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_key_known(w, "torch_round_max_bytes", o->round_max != 0, o->round_max);
	ttmon_jsonw_key_known(w, "torch_cached_max_bytes", o->cached_max != 0, o->cached_max);
	ttmon_jsonw_key_num(w, "page_bytes", TTMON_POLICY_PAGE);
	ttmon_jsonw_key(w, "programs");
	ttmon_jsonw_open(w, '[');
}

void ttmon_advise_json_end(struct ttmon_jsonw *w)
{
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
}

static void result(struct ttmon_jsonw *w, const struct ttmon_policy_result *r)
{
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_num(w, "pins", r->pins);
	ttmon_jsonw_key_num(w, "unpins", r->unpins);
	ttmon_jsonw_key_num(w, "pages_pinned", r->pages_pinned);
	ttmon_jsonw_key_num(w, "peak_pages", r->peak_pages);
	ttmon_jsonw_key_num(w, "mean_pages", r->mean_pages);
	ttmon_jsonw_key_num(w, "least_pages", r->least_pages);
	ttmon_jsonw_key_num(w, "requested_peak", r->requested_peak);
	ttmon_jsonw_key_num(w, "reserved_peak", r->reserved_peak);
	ttmon_jsonw_key_num(w, "moved_bytes", r->moved_bytes);
	ttmon_jsonw_key_num(w, "moved_pinned_bytes", r->moved_pinned_bytes);
	key_int(w, "transfer_ns", r->transfer_ns);
	key_int(w, "pinning_ns", r->pinning_ns);
	key_int(w, "calls_ns", r->calls_ns);
	key_int(w, "wait_ns", r->wait_ns);
	key_int(w, "time_ns", r->transfer_ns + r->pinning_ns);
	ttmon_jsonw_key_num(w, "allocs", r->allocs);
	ttmon_jsonw_key_num(w, "pinned_allocs", r->pinned_allocs);
	ttmon_jsonw_key_num(w, "in_place_kept", r->in_place_kept);
	ttmon_jsonw_key_num(w, "in_place_seen", r->in_place_seen);
	ttmon_jsonw_key_num(w, "left_out", r->left_out);
	ttmon_jsonw_key_num(w, "unknown", r->unknown);
	ttmon_jsonw_close(w, '}');
}

static void results(struct ttmon_jsonw *w, const struct ttmon_advise_group *g, const struct ttmon_policy_result *rows)
{
	ttmon_jsonw_key(w, "policies");
	ttmon_jsonw_open(w, '{');
	for (unsigned int p = 0; p < TTMON_ADVISE_ROWS; p++) {
		if (!ttmon_advise_has_row(g, p))
			continue;
		ttmon_jsonw_line(w);
		ttmon_jsonw_key(w, row_names[p]);
		result(w, &rows[p]);
	}
	ttmon_jsonw_close(w, '}');
}

static void one_run(struct ttmon_jsonw *w, const struct ttmon_advise_group *g, const struct ttmon_advise_run *r)
{
	ttmon_jsonw_line(w);
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_str(w, "path", r->run->path);
	ttmon_jsonw_key_num(w, "span_ns", r->run->end_ns - r->run->start_ns);
	ttmon_jsonw_key_bool(w, "complete", r->run->complete);
	ttmon_jsonw_key_str(w, "reasons", r->run->reasons);
	results(w, g, r->rows);
	ttmon_jsonw_close(w, '}');
}

static void known_int(struct ttmon_jsonw *w, const char *key, bool known, int64_t value)
{
	ttmon_jsonw_key(w, key);
	if (known)
		ttmon_jsonw_int(w, value);
	else
		ttmon_jsonw_null(w);
}

static void site(struct ttmon_jsonw *w, const struct ttmon_advise_site *s)
{
	bool judged = s->advice != TTMON_ADVICE_UNKNOWN && s->match < TTMON_MATCH_MAX && s->match;

	ttmon_jsonw_line(w);
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_name(w, "advice", ttmon_advice_name(s->advice));
	ttmon_jsonw_key_str(w, "reason", ttmon_reason_text(s->reason));
	ttmon_jsonw_key_str(w, "call_site", s->text);
	ttmon_jsonw_key_num(w, "allocs", s->allocs);
	ttmon_jsonw_key_num(w, "min_size", s->min_size);
	ttmon_jsonw_key_num(w, "max_size", s->max_size);
	ttmon_jsonw_key_num(w, "peak_pages", s->peak_pages);
	ttmon_jsonw_key_num(w, "copies", s->copies);
	ttmon_jsonw_key_num(w, "moved_bytes", s->bytes);
	if (s->at_least)
		ttmon_jsonw_key_bool(w, "at_least", true);
	key_int(w, "saved_ns", s->saved_ns);
	known_int(w, "gain_ns", s->known, s->gain_ns);
	known_int(w, "gain_low_ns", s->known, s->low_ns);
	known_int(w, "gain_high_ns", s->known, s->high_ns);
	ttmon_jsonw_key_name(w, "match", judged ? ttmon_advise_match_name(s->match) : NULL);
	ttmon_jsonw_key(w, "confidence");
	ttmon_jsonw_ratio(w, s->confidence);
	ttmon_jsonw_key_num(w, "runs", s->runs);
	ttmon_jsonw_key_bool(w, "pinned", s->pinned);
	ttmon_jsonw_close(w, '}');
}

void ttmon_advise_json_group(struct ttmon_jsonw *w, const struct ttmon_advise_group *g,
			     const struct ttmon_advise_sites *sites)
{
	ttmon_jsonw_line(w);
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_str(w, "exe", g->exe);
	ttmon_jsonw_key_name(w, "advice_from", g->trained ? "train" : g->nr_runs > 1 ? "all" : "itself");
	results(w, g, g->total);
	ttmon_jsonw_key(w, "runs");
	ttmon_jsonw_open(w, '[');
	for (size_t i = 0; i < g->nr_runs; i++)
		one_run(w, g, &g->runs[i]);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key(w, "advice");
	ttmon_jsonw_open(w, '[');
	for (size_t i = 0; i < sites->n; i++)
		site(w, &sites->v[i]);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_close(w, '}');
}
