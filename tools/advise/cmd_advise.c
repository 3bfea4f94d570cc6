// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_advise.c: `ttmon advise`: groups the databases by program, simulates every policy on each
 * database of a group, and prints the totals with the advice.
 */
#include <assert.h>

#include "lib/os/jsonw.h"
#include "lib/read/client.h"
#include "tools/advise/advise.h"
#include "tools/cli/cmds.h"
#include "tools/memtrace/join.h"
#include "tools/cli/show.h"

static const char *const match_names[] = { [TTMON_MATCH_NONE] = "none",
					   [TTMON_MATCH_ORDER] = "order",
					   [TTMON_MATCH_NAMES] = "names",
					   [TTMON_MATCH_SITE] = "site",
					   [TTMON_MATCH_EXACT] = "exact" };

const char *ttmon_advise_match_name(unsigned int match)
{
	return match < ARRAY_SIZE(match_names) ? match_names[match] : "?";
}

const char *ttmon_advise_row_name(unsigned int row)
{
	return row == TTMON_ADVISE_OTHERS ? "advice of others" : ttmon_policy_name(row);
}

/* ---- options ---- */

static int add(const struct ttmon_cli *cli, const char **list, unsigned int *n, const char *path)
{
	if (*n == TTMON_ADVISE_MAX_DBS)
		return ttmon_cli_bad(cli, "more than %u databases", TTMON_ADVISE_MAX_DBS);
	list[(*n)++] = path;
	return 0;
}

static int take_train(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_advise_opts *o = cli->opts;

	return add(cli, o->train, &o->nr_train, arg);
}

static int take_trace(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_advise_opts *o = cli->opts;

	return add(cli, o->traces, &o->nr_traces, arg);
}

static int check(const struct ttmon_cli *cli, struct ttmon_advise_opts *o)
{
	int err = 0;

	for (int i = 0; i < cli->nr_words && !err; i++)
		err = add(cli, o->dbs, &o->nr_dbs, cli->words[i]);
	if (err)
		return err;
	o->round_max <<= 20;
	o->cached_max <<= 20;
	if (o->live ? o->nr_dbs + o->nr_train : !o->nr_dbs)
		return ttmon_cli_bad(cli, o->live ? "--live takes no database" : "no database is given");
	if (o->nr_traces > o->nr_dbs)
		return ttmon_cli_bad(cli, "more --memtrace than databases");
	return o->pid && !o->live ? ttmon_cli_bad(cli, "--pid goes with --live") : 0;
}

/* ---- databases ---- */

struct runs {
	struct ttmon_plumbing *plumbing;
	struct ttmon_run *v[2 * TTMON_ADVISE_MAX_DBS];
	size_t n, nr_train; /* those of --train come first */
	bool incomplete;
};

static void runs_fini(struct runs *runs)
{
	for (size_t i = 0; i < runs->n; i++)
		ttmon_run_free(runs->v[i]);
	ttmon_plumbing_free(runs->plumbing);
}

static int load(struct runs *runs, const char *path)
{
	const struct ttmon_run_opts opts = { .plumbing = runs->plumbing };
	char why[600];
	int err = ttmon_run_load(path, &opts, &runs->v[runs->n], why, sizeof(why));

	if (err) {
		fprintf(stderr, "ttmon: %s\n", why);
		return err;
	}
	if (!runs->v[runs->n]->complete) {
		char reasons[128];

		fprintf(stderr, "ttmon: %s is incomplete (%s), so the results do not cover everything\n", path,
			ttmon_fmt_text(reasons, sizeof(reasons), runs->v[runs->n]->reasons));
		runs->incomplete = true;
	}
	runs->n++;
	return 0;
}

static int join(struct ttmon_run *run, const char *trace, bool quiet)
{
	char records[TTMON_FMT_LEN], allocs[TTMON_FMT_LEN], idle[TTMON_FMT_LEN];
	struct ttmon_mt_joined j;
	int err = ttmon_mt_join(trace, run, &j);

	if (!err && !quiet)
		printf("%s: %s accesses of kernels to %s allocations of %s; %s of these allocations are pinned and "
		       "never copied\n",
		       trace, ttmon_fmt_count(records, sizeof(records), j.records),
		       ttmon_fmt_count(allocs, sizeof(allocs), j.allocs), run->path,
		       ttmon_fmt_count(idle, sizeof(idle), j.idle));
	return err;
}

static int load_all(struct runs *runs, const struct ttmon_advise_opts *o)
{
	char why[600];
	int err = ttmon_run_plumbing(o->plumbing, &runs->plumbing, why, sizeof(why));

	if (err)
		fprintf(stderr, "ttmon: %s\n", why);
	for (unsigned int i = 0; i < o->nr_train && !err; i++)
		err = load(runs, o->train[i]);
	runs->nr_train = runs->n;
	for (unsigned int i = 0; i < o->nr_dbs && !err; i++) {
		err = load(runs, o->dbs[i]);
		if (!err && i < o->nr_traces)
			err = join(runs->v[runs->n - 1], o->traces[i], o->json);
	}
	return err;
}

/*
 * The name of the program of a run: the executable of the process with the most host memory and
 * transfers.
 */
static const char *program(const struct ttmon_run *run)
{
	_cleanup_free_ double *weight = NULL;
	size_t best;

	assert(run);
	best = run->nr_procs;
	weight = calloc(run->nr_procs + 1, sizeof(*weight));
	if (!weight)
		return "?";
	for (size_t i = 0; i < run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];

		if (a->method != TTMON_METHOD_MMAP && ttmon_run_is_host(a))
			weight[a->proc] += (double)a->size + 1;
		weight[a->proc] += (double)ttmon_run_moved(a);
	}
	for (size_t i = 0; i < run->nr_procs; i++)
		if (weight[i] > 0 && (best == run->nr_procs || weight[i] > weight[best]))
			best = i;
	if (best == run->nr_procs)
		return "?";
	return run->procs[best].exe ? run->procs[best].exe : run->procs[best].comm;
}

/* ---- simulation ---- */

static int say(int err, const struct ttmon_run *run)
{
	if (err)
		fprintf(stderr, "ttmon: %s: %s\n", run->path,
			err == -ENOMEM ? "not enough memory to simulate it" : strerror(-err));
	return err;
}

static int make_profile(struct ttmon_run *const *runs, size_t n, const struct ttmon_cost *cost,
			struct ttmon_profile **ret)
{
	return ttmon_profile_new((const struct ttmon_run *const *)runs, n, cost, ret);
}

/* Simulates a run with a profile that is made from all other runs of the group. */
static int simulate_others(struct ttmon_advise_group *g, size_t left_out, struct ttmon_policy_cfg *cfg)
{
	_cleanup_free_ struct ttmon_run **others = malloc(g->nr_runs * sizeof(*others));
	struct ttmon_profile *profile = NULL;
	size_t n = 0;
	int err;

	if (!others)
		return -ENOMEM;
	for (size_t i = 0; i < g->nr_runs; i++)
		if (i != left_out)
			others[n++] = g->runs[i].run;
	err = make_profile(others, n, &cfg->cost, &profile);
	if (err)
		return err;
	cfg->profile = profile;
	err = ttmon_policy_simulate(g->runs[left_out].run, TTMON_POLICY_ADVICE, cfg,
				    &g->runs[left_out].rows[TTMON_ADVISE_OTHERS]);
	cfg->profile = g->profile;
	ttmon_profile_free(profile);
	return err;
}

static void add_to_total(struct ttmon_policy_result *t, const struct ttmon_policy_result *r, size_t nr_runs)
{
	t->pins += r->pins;
	t->unpins += r->unpins;
	t->calls_ns += r->calls_ns;
	t->wait_ns += r->wait_ns;
	t->left_out += r->left_out;
	t->pages_pinned += r->pages_pinned;
	t->peak_pages = MAX(t->peak_pages, r->peak_pages);
	t->least_pages = MAX(t->least_pages, r->least_pages);
	t->mean_pages += r->mean_pages / nr_runs;
	t->requested_peak = MAX(t->requested_peak, r->requested_peak);
	t->reserved_peak = MAX(t->reserved_peak, r->reserved_peak);
	t->moved_bytes += r->moved_bytes;
	t->moved_pinned_bytes += r->moved_pinned_bytes;
	t->transfer_ns += r->transfer_ns;
	t->pinning_ns += r->pinning_ns;
	t->allocs += r->allocs;
	t->pinned_allocs += r->pinned_allocs;
	t->in_place_kept += r->in_place_kept;
	t->in_place_seen += r->in_place_seen;
	t->unknown += r->unknown;
}

static int simulate_group(struct ttmon_advise_group *g, struct ttmon_policy_cfg *cfg)
{
	cfg->profile = g->profile;
	for (size_t i = 0; i < g->nr_runs; i++) {
		struct ttmon_advise_run *r = &g->runs[i];

		for (unsigned int p = 0; p < TTMON_ADVISE_ROWS; p++) {
			int err = 0;

			if (!ttmon_advise_has_row(g, p))
				continue;
			err = p == TTMON_ADVISE_OTHERS ? simulate_others(g, i, cfg)
						       : ttmon_policy_simulate(r->run, p, cfg, &r->rows[p]);
			if (say(err, r->run))
				return err;
			add_to_total(&g->total[p], &r->rows[p], g->nr_runs);
		}
	}
	return 0;
}

/* ---- groups ---- */

struct work {
	const struct ttmon_advise_opts *o;
	struct ttmon_advise_cost cost;
	struct runs runs;
	struct ttmon_jsonw *json; /* NULL: the output is text */
};

static int report(struct work *w, struct ttmon_advise_group *g, const struct ttmon_policy_cfg *cfg)
{
	struct ttmon_advise_sites sites = { 0 };
	int err = ttmon_advise_get_sites(g, cfg, &sites);

	if (err)
		fprintf(stderr, "ttmon: not enough memory\n");
	else if (w->json)
		ttmon_advise_json_group(w->json, g, &sites);
	else
		ttmon_advise_show(w->o, g, &w->cost, &sites);
	/* Of several runs it is not known which one is to be repeated. */
	if (!err && !w->json && w->runs.n == 1) {
		ttmon_advise_show_cost(w->o, &w->cost);
		if (strcmp(w->o->dbs[0], "-") != 0)
			ttmon_advise_show_next(w->o->dbs[0], w->runs.v[0], g->exe, &sites);
	}
	ttmon_advise_sites_fini(&sites);
	return err;
}

/* Gives the same lines of the runs of one program one identity, those of --train first. */
static int align(struct work *w, struct ttmon_run **runs, size_t n)
{
	struct ttmon_run *all[2 * TTMON_ADVISE_MAX_DBS];

	memcpy(all, w->runs.v, w->runs.nr_train * sizeof(*all));
	memcpy(all + w->runs.nr_train, runs, n * sizeof(*all));
	return ttmon_runs_align(all, w->runs.nr_train + n);
}

static int one_group(struct work *w, struct ttmon_run **runs, size_t n)
{
	struct ttmon_policy_cfg cfg = { .cost = w->cost.cost,
					.torch_round_max = w->o->round_max,
					.torch_cached_max = w->o->cached_max,
					.min_match = w->o->min_match };
	struct ttmon_advise_group g = { .exe = program(runs[0]), .nr_runs = n, .trained = w->runs.nr_train > 0 };
	_cleanup_free_ struct ttmon_advise_run *list = calloc(n, sizeof(*list));
	int err;

	if (!list)
		return -ENOMEM;
	g.runs = list;
	for (size_t i = 0; i < n; i++)
		list[i].run = runs[i];
	err = align(w, runs, n);
	if (say(err, runs[0]))
		return err;
	err = make_profile(g.trained ? w->runs.v : runs, g.trained ? w->runs.nr_train : n, &cfg.cost, &g.profile);
	if (say(err, runs[0]))
		return err;
	err = simulate_group(&g, &cfg);
	if (!err)
		err = report(w, &g, &cfg);
	ttmon_profile_free(g.profile);
	return err;
}

/* Handles the runs of one program at a time, in the order of the first run of each program. */
static int all_groups(struct work *w)
{
	struct ttmon_run *left[TTMON_ADVISE_MAX_DBS] = { NULL }, *group[TTMON_ADVISE_MAX_DBS] = { NULL };
	size_t nr_left = w->runs.n - w->runs.nr_train;
	int err = 0;

	memcpy(left, w->runs.v + w->runs.nr_train, nr_left * sizeof(struct ttmon_run *));
	while (nr_left && !err) {
		const char *exe = program(left[0]);
		size_t n = 0, kept = 0;

		for (size_t i = 0; i < nr_left; i++) {
			if (!strcmp(program(left[i]), exe))
				group[n++] = left[i];
			else
				left[kept++] = left[i];
		}
		nr_left = kept;
		err = one_group(w, group, n);
	}
	return err;
}

static int advise(struct work *w)
{
	struct ttmon_jsonw json = { 0 };
	int err, written;

	if (!w->o->json) {
		err = all_groups(w);
		if (!err && w->runs.n > 1)
			ttmon_advise_show_cost(w->o, &w->cost);
		return err;
	}
	err = ttmon_jsonw_init(&json, STDOUT_FILENO, false);
	if (err) {
		fprintf(stderr, "ttmon: not enough memory\n");
		return err;
	}
	w->json = &json;
	ttmon_advise_json_begin(&json, w->o, &w->cost);
	err = all_groups(w);
	ttmon_advise_json_end(&json);
	written = ttmon_jsonw_finish(&json);
	ttmon_jsonw_fini(&json);
	w->json = NULL;
	if (written)
		fprintf(stderr, "ttmon: cannot write the output: %s\n", strerror(-written));
	return err ? err : written;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	struct ttmon_advise_opts *o = ctx;
	struct work w = { .o = o };
	int err = check(cli, o);

	if (err)
		return err;
	if (o->live)
		return ttmon_advise_live(o);
	err = load_all(&w.runs, o);
	if (!err) {
		ttmon_advise_get_cost(o, w.runs.v, w.runs.n, &w.cost);
		err = advise(&w);
	}
	runs_fini(&w.runs);
	return err ? TTMON_EXIT_ERROR : w.runs.incomplete ? TTMON_EXIT_NO : 0;
}

#define T	     struct ttmon_advise_opts
#define RATE(m)	     TTMON_CLI_FRACTION(T, cost.m, 1e9, 1000000, 100000000000000)
#define CALL(m, has) TTMON_CLI_FRACTION(T, cost.m, 1e3, 0, 1000000000), TTMON_CLI_GIVEN(T, has)
static const struct ttmon_cli_opt options[] = {
	{ "train", 't', "DB", "make the advice from this database (repeatable), and test it on the others", NULL,
	  TTMON_CLI_CALL(take_train), .words = ":file" },
	{ "memtrace", 'M', "TRACE",
	  "a trace of this run's kernel accesses (ttmon memtrace); the first one belongs to the first DB, and so on",
	  "A trace that ttmon\\-memtrace(1) reads, of the same run. The output says how many allocations the kernels "
	  "accessed, and how many of these are pinned and were never copied: they are in use, so they stay pinned. A "
	  "database of ttmond \\-\\-memtrace includes this and needs no trace.",
	  TTMON_CLI_CALL(take_trace), .words = ":file" },
	{ "min-match", 'm', "LEVEL", "weakest match of allocations that counts: exact, site, names (default) or order",
	  NULL, TTMON_CLI_WORD(T, min_match, "order names site exact"), .min = TTMON_MATCH_ORDER },
	{ "runs", 'r', NULL, "also print the table of each run", NULL, TTMON_CLI_FLAG(T, runs) },
	{ "top", 0, "N", "lines of advice of each kind (default 10)", NULL, TTMON_CLI_NUMBER(T, top, 0, 1000000) },
	{ "pageable-gbps", 0, "X", "cost model: GB/s from pageable memory to the device (default 6),", NULL,
	  RATE(pageable_bps) },
	{ "pinned-gbps", 0, "X", "from pinned memory (default 24),", NULL, RATE(pinned_bps) },
	{ "pinning-gbps", 0, "X", "and of pinning (default: measured in the databases, else 1.5)",
	  "Values from the databases are used if they are plausible.", RATE(pinning_bps) },
	{ "pin-call-us", 0, "X",
	  "fixed cost of a call that pins, besides the cost of its bytes (default: from the databases, else 50)",
	  "In microseconds.", CALL(pin_call_ns, has_pin_call) },
	{ "unpin-call-us", 0, "X", "the same for a call that unpins", NULL, CALL(unpin_call_ns, has_unpin_call) },
	{ "measure", 0, NULL, "measure these on this machine",
	  "Uses the CUDA runtime if there is one with a device. Otherwise it measures memory copies and mlock on the "
	  "host, which says nothing about a GPU; the output then says so.",
	  TTMON_CLI_FLAG(T, measure) },
	{ "torch-round-max-mb", 0, "N", "PyTorch's pinned_max_round_threshold_mb (default: no limit)", NULL,
	  TTMON_CLI_NUMBER(T, round_max, 1, 1 << 24) },
	{ "torch-cached-max-mb", 0, "N", "PyTorch's pinned_max_cached_size_mb (default: no limit)", NULL,
	  TTMON_CLI_NUMBER(T, cached_max, 1, 1 << 24) },
	{ "live", 'l', NULL, "follow the service until interrupted",
	  "Prints a line for each new advice while programs run. If the service is stopped, it waits for it.",
	  TTMON_CLI_FLAG(T, live) },
	{ "pid", 'p', "PID", "--live: only for this process", NULL, TTMON_CLI_PID(T, pid) },
	TTMON_ROW_PLUMBING(T, plumbing),
	TTMON_ROW_SOCKET(T, socket),
	TTMON_ROW_JSON(
		T, json, "print JSON; with --live, the lines as the service sends them",
		"One object with the members cost and programs. Each program has policies (all runs together), runs "
		"(the policies of each run) and advice. Times are in nanoseconds; least_pages is the lower bound."),
};
const struct ttmon_cli_cmd ttmon_cmd_advise = {
	.name = "ttmon advise",
	.summary = "what to pin in the next run, and what other pinning policies would have cost",
	.args = "[OPTIONS] DB [DB...]       what each pinning policy would have cost, and what to pin\n"
		"--live [--pid PID]         the advice of the running service, as it comes",
	.about = "DB is an allocation database of ttmond, plain or .gz. Databases of the same program are merged.",
	.notes =
		"Exit status: 0; 1 if a database is incomplete (a message on stderr says so); 2 if there is no answer.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const T){ .socket = TTMON_SOCKET_DEFAULT, .top = 10 },
	.size = sizeof(T),
	.max_words = -1,
	.words = ":file",
	.run = run,
};
