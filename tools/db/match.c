// SPDX-License-Identifier: GPL-2.0-only
/*
 * match.c: `ttmon db match A B` shows how many of run B's allocations could have been recognized with
 * a profile of run A, and how reliably. It makes the same lookups as an allocator (lib/pin/profile.h),
 * one for each pinned or announced allocation of B.
 */
#include "lib/base/hmap.h"
#include "lib/os/jsonw.h"
#include "lib/pin/profile.h"
#include "tools/cli/cmds.h"
#include "lib/demangle/runsite.h"
#include "lib/demangle/site.h"
#include "tools/db/db_tool.h"
#include "lib/base/fmt.h"

#define MAX_UNMATCHED  10 /* the most call sites printed */
#define MAX_CANDIDATES 64 /* the most ids printed for one allocation */

static const char *const level_names[TTMON_MATCH_MAX] = { "not found", "order", "names", "site", "exact" };
static const char *const level_keys[TTMON_MATCH_MAX] = { "none", "order", "names", "site", "exact" };

struct opts {
	bool json;
	const char *plumbing;
	double min;
};

struct unmatched {
	uint32_t site;
	uint64_t allocs, bytes;
};

struct match {
	struct ttmon_run *a, *b;
	struct ttmon_profile *profile;
	uint64_t allocs[TTMON_MATCH_MAX], bytes[TTMON_MATCH_MAX], total, total_bytes;
	struct unmatched *unmatched; /* one for each call site of B; sorted by size at the end */
	struct ttmon_hmap orders;
	struct ttmon_plumbing *plumbing;
	bool json;
	double min; /* percent; negative: no minimum */
};

static void match_fini(struct match *m)
{
	ttmon_run_free(m->a);
	ttmon_run_free(m->b);
	ttmon_profile_free(m->profile);
	free(m->unmatched);
	ttmon_plumbing_free(m->plumbing);
	ttmon_hmap_fini(&m->orders);
}

static int load(const char *path, const struct ttmon_plumbing *plumbing, struct ttmon_run **ret)
{
	const struct ttmon_run_opts opts = { .plumbing = plumbing };
	char why[600];

	if (!ttmon_run_load(path, &opts, ret, why, sizeof(why)))
		return 0;
	fprintf(stderr, "ttmon: %s\n", why);
	return -EINVAL;
}

/* Adds bytes and stops at the largest value: the sum is only used to compare. */
static void count(uint64_t *sum, uint64_t n)
{
	*sum = n > UINT64_MAX - *sum ? UINT64_MAX : *sum + n;
}

static int find(struct match *m, const struct ttmon_run_alloc *a, struct ttmon_profile_found *ret)
{
	uint64_t key = (uint64_t)a->proc << 8 | a->method, at = ttmon_hmap_get(&m->orders, key);
	struct ttmon_profile_key k;

	at = at == TTMON_HMAP_NONE ? 0 : at + 1;
	if (ttmon_hmap_put(&m->orders, key, at) < 0)
		return -ENOMEM;
	ttmon_profile_key_of(m->b, a, (uint32_t)at, &k);
	ttmon_profile_find(m->profile, &k, ret);
	return 0;
}

/*
 * Returns whether an allocation counts. Mappings and device memory do not: no allocator looks up
 * whether to pin them.
 */
static bool wanted(const struct ttmon_run_alloc *a)
{
	return ttmon_run_is_pinned(a) || a->method == TTMON_METHOD_CUSTOM;
}

static void write_match(struct ttmon_jsonw *w, const struct match *m, const struct ttmon_run_alloc *a,
			const struct ttmon_profile_found *found)
{
	ttmon_jsonw_row(w, '{');
	ttmon_jsonw_key_str(w, "id", a->id);
	ttmon_jsonw_key_name(w, "level", level_keys[found->match]);
	ttmon_jsonw_key_num(w, "candidates", found->candidates);
	ttmon_jsonw_key_open(w, "ids", '[');
	for (uint32_t i = 0; i < MIN(found->candidates, (uint32_t)MAX_CANDIDATES); i++)
		ttmon_jsonw_str(w, m->a->allocs[found->members[i].alloc].id);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_close(w, '}');
}

static int by_bytes(const void *pa, const void *pb)
{
	const struct unmatched *a = pa, *b = pb;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	if (a->allocs != b->allocs)
		return a->allocs < b->allocs ? 1 : -1;
	return (a->site > b->site) - (a->site < b->site);
}

static int run_match(struct match *m, struct ttmon_jsonw *w)
{
	m->unmatched = calloc(m->b->nr_sites, sizeof(*m->unmatched));
	if (!m->unmatched)
		return -ENOMEM;
	for (size_t i = 0; i < m->b->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &m->b->allocs[i];
		struct ttmon_profile_found found;

		if (!wanted(a))
			continue;
		if (find(m, a, &found))
			return -ENOMEM;
		m->total++;
		count(&m->total_bytes, a->size);
		m->allocs[found.match]++;
		count(&m->bytes[found.match], a->size);
		if (found.match == TTMON_MATCH_NONE) {
			m->unmatched[a->site].allocs++;
			count(&m->unmatched[a->site].bytes, a->size);
		}
		if (w)
			write_match(w, m, a, &found);
	}
	for (size_t i = 0; i < m->b->nr_sites; i++)
		m->unmatched[i].site = (uint32_t)i;
	qsort(m->unmatched, m->b->nr_sites, sizeof(*m->unmatched), by_bytes);
	return 0;
}

/* Of nothing no share is known. */
static const char *percent(char *buf, size_t n, uint64_t part, uint64_t all)
{
	if (all)
		snprintf(buf, n, "%.1f %%", 100.0 * (double)part / (double)all);
	else
		snprintf(buf, n, "-");
	return buf;
}

static void print_text(const struct match *m)
{
	char bytes[TTMON_FMT_LEN], count[TTMON_FMT_LEN], text[TTMON_SITE_WHOLE], name[128];
	char share[TTMON_FMT_LEN], byte_share[TTMON_FMT_LEN];

	if (!m->total) {
		printf("%s has no allocation from CUDA or an announced allocator: there is nothing to find in ",
		       ttmon_fmt_text(name, sizeof(name), m->b->path));
		printf("%s\n", ttmon_fmt_text(name, sizeof(name), m->a->path));
		return;
	}
	printf("of %s allocations (%s) of %s\n", ttmon_fmt_count(count, sizeof(count), m->total),
	       ttmon_fmt_bytes(bytes, sizeof(bytes), m->total_bytes), ttmon_fmt_text(name, sizeof(name), m->b->path));
	printf("found in %s: %s\n\n", ttmon_fmt_text(name, sizeof(name), m->a->path),
	       percent(share, sizeof(share), m->total - m->allocs[TTMON_MATCH_NONE], m->total));
	printf("%-12s %12s %21s\n", "LEVEL", "ALLOCATIONS", "BYTES");
	for (int i = TTMON_MATCH_MAX - 1; i >= 0; i--)
		printf("%-12s %12s %8s %12s %8s\n", level_names[i], ttmon_fmt_count(count, sizeof(count), m->allocs[i]),
		       percent(share, sizeof(share), m->allocs[i], m->total),
		       ttmon_fmt_bytes(bytes, sizeof(bytes), m->bytes[i]),
		       percent(byte_share, sizeof(byte_share), m->bytes[i], m->total_bytes));
	if (!m->allocs[TTMON_MATCH_NONE])
		return;
	printf("\n%12s %12s  %s\n", "NOT FOUND", "BYTES", "WHERE");
	for (size_t i = 0; i < m->b->nr_sites && i < MAX_UNMATCHED && m->unmatched[i].allocs; i++)
		printf("%12s %12s  %s\n", ttmon_fmt_count(count, sizeof(count), m->unmatched[i].allocs),
		       ttmon_fmt_bytes(bytes, sizeof(bytes), m->unmatched[i].bytes),
		       ttmon_site_show_run(text, sizeof(text), m->b, m->unmatched[i].site, 0));
}

static void write_tail(struct ttmon_jsonw *w, const struct match *m)
{
	char text[256];

	ttmon_jsonw_line(w);
	ttmon_jsonw_key_num(w, "allocations", m->total);
	ttmon_jsonw_key_num(w, "bytes", m->total_bytes);
	ttmon_jsonw_key_num(w, "found", m->total - m->allocs[TTMON_MATCH_NONE]);
	ttmon_jsonw_key_open(w, "levels", '{');
	for (int i = TTMON_MATCH_MAX - 1; i >= 0; i--) {
		ttmon_jsonw_key_open(w, level_keys[i], '[');
		ttmon_jsonw_num(w, m->allocs[i]);
		ttmon_jsonw_num(w, m->bytes[i]);
		ttmon_jsonw_close(w, ']');
	}
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_line(w);
	ttmon_jsonw_key_open(w, "unmatched", '[');
	for (size_t i = 0; i < m->b->nr_sites && m->unmatched[i].allocs; i++) {
		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_num(w, "site", m->unmatched[i].site);
		ttmon_jsonw_key_str(w, "where", ttmon_run_site_text(m->b, m->unmatched[i].site, text, sizeof(text)));
		ttmon_jsonw_key_num(w, "allocations", m->unmatched[i].allocs);
		ttmon_jsonw_key_num(w, "bytes", m->unmatched[i].bytes);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
}

static int print_json(struct match *m)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	int err = ttmon_jsonw_init(&w, STDOUT_FILENO, false);

	if (err)
		return err;
	ttmon_jsonw_open(&w, '{');
	ttmon_jsonw_key_str(&w, "a", m->a->path);
	ttmon_jsonw_key_str(&w, "b", m->b->path);
	ttmon_jsonw_key_open(&w, "matches", '[');
	err = run_match(m, &w);
	if (err)
		return err;
	ttmon_jsonw_close(&w, ']');
	write_tail(&w, m);
	return ttmon_jsonw_finish(&w);
}

static int compare(struct match *m, const char *plumbing, const char *a, const char *b)
{
	const struct ttmon_cost cost = TTMON_COST_DEFAULT;
	const struct ttmon_run *runs[1];
	char why[600];
	int err;

	if (ttmon_run_plumbing(plumbing, &m->plumbing, why, sizeof(why))) {
		fprintf(stderr, "ttmon: %s\n", why);
		return TTMON_EXIT_ERROR;
	}
	if (load(a, m->plumbing, &m->a) || load(b, m->plumbing, &m->b))
		return TTMON_EXIT_ERROR;
	runs[0] = m->a;
	err = ttmon_runs_align((struct ttmon_run *const[]){ m->a, m->b }, 2);
	err = err ? err : ttmon_profile_new(runs, 1, &cost, &m->profile);
	if (!err && m->json) {
		err = print_json(m);
	} else if (!err) {
		err = run_match(m, NULL);
		if (!err)
			print_text(m);
	}
	if (err) {
		fprintf(stderr, "ttmon: %s\n", strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	/* Of nothing no share was found: that is no success either. */
	if (m->min > 0 &&
	    (!m->total || 100.0 * (double)(m->total - m->allocs[TTMON_MATCH_NONE]) < m->min * (double)m->total))
		return TTMON_EXIT_NO;
	return 0;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	const struct opts *o = ctx;
	_cleanup_(match_fini) struct match m = { .json = o->json, .min = o->min };

	return compare(&m, o->plumbing, cli->words[0], cli->words[1]);
}

static const struct ttmon_cli_opt options[] = {
	{ "min", 'm', "PERCENT", "exit status 1 if a smaller share of B's allocations was found", NULL,
	  TTMON_CLI_FRACTION(struct opts, min, 0, 0, 100) },
	TTMON_ROW_PLUMBING(struct opts, plumbing),
	TTMON_ROW_JSON(struct opts, json, "list each allocation of B and the ids of the allocations of A that match",
		       NULL),
};
const struct ttmon_cli_cmd ttmon_db_cmd_match = {
	.name = "ttmon db match",
	.summary = "how many of run B's allocations can be matched to run A, and how reliably",
	.args = "[OPTIONS] A B",
	.about = "Shows how many of run B's allocations can be matched to run A, and how reliably.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const struct opts){ .min = -1 },
	.size = sizeof(struct opts),
	.min_words = 2,
	.max_words = 2,
	.words = ":file",
	.run = run,
};
