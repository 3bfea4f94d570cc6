// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_view.c: `ttmon view DB [-o OUT.html]` makes one HTML page from a database. The database is read
 * once, and its transfers are added to bins of time meanwhile. The page is written to a temporary
 * file, which is then renamed.
 */
#include <sys/mman.h>

#include "daemon/core/history/history.h"
#include "lib/os/outfile.h"
#include "tools/cli/cmds.h"
#include "tools/view/view.h"
#include "version.h"

#define MAX_SHOWN 50000

extern const char ttmon_view_html_start[], ttmon_view_html_end[], ttmon_view_js_start[], ttmon_view_js_end[];

__asm__(".pushsection .rodata\n"
	".global ttmon_view_html_start\n"
	".global ttmon_view_html_end\n"
	".global ttmon_view_js_start\n"
	".global ttmon_view_js_end\n"
	"ttmon_view_html_start:\n"
	".incbin \"tools/view/page/view.html\"\n"
	"ttmon_view_html_end:\n"
	"ttmon_view_js_start:\n"
	".incbin \"tools/view/page/chart.js\"\n"
	".incbin \"tools/view/page/input.js\"\n"
	".incbin \"tools/view/page/view.js\"\n"
	"ttmon_view_js_end:\n"
	".popsection\n");

struct job {
	struct ttmon_view view;
	struct ttmon_view_bins bins;
	uint64_t mappings;
	bool plain;
};

/* ---- reading ---- */

static void event(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a,
		  const struct ttmon_run_event *ev)
{
	struct job *job = ctx;

	(void)a;
	/* Prefetches and advice move no known amount, and a node of a graph is not a transfer. */
	if (ev->kind >= TTMON_AEV_PREFETCH || ev->bits & TTMON_B_CAPTURED)
		return;
	ttmon_view_bins_add(&job->bins, ev->ts_ns > run->start_ns ? ev->ts_ns - run->start_ns : 0,
			    ev->kind != TTMON_AEV_H2D, ev->bytes);
}

/* There are many mappings, and most have nothing to do with the device. */
static bool want(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a)
{
	struct job *job = ctx;
	bool keep = a->method != TTMON_METHOD_MMAP || a->h2d_copies || a->d2h_copies || a->other_copies;

	(void)run;
	job->mappings += !keep;
	ttmon_view_bins_end(&job->bins, keep);
	return keep;
}

/* ---- writing ---- */

static int write_page(int fd, bool gzip, void *ctx)
{
	_cleanup_close_ int meta = memfd_create("ttmon-view", MFD_CLOEXEC),
			    bins = memfd_create("ttmon-view", MFD_CLOEXEC);
	struct job *job = ctx;
	const struct ttmon_page_part parts[] = { { "meta", meta }, { "bins", bins } };
	const struct ttmon_page page = {
		.body = ttmon_view_html_start,
		.body_len = (size_t)(ttmon_view_html_end - ttmon_view_html_start),
		.script = ttmon_view_js_start,
		.script_len = (size_t)(ttmon_view_js_end - ttmon_view_js_start),
		.parts = parts,
		.nr_parts = ARRAY_SIZE(parts),
		.plain = job->plain,
	};
	int err;

	(void)gzip;
	if (meta < 0 || bins < 0)
		return -errno;
	err = ttmon_view_write_meta(&job->view, meta);
	if (!err)
		err = ttmon_view_write_bins(&job->view, bins);
	return err ? err : ttmon_page_write(fd, &page);
}

static void free_profile(struct ttmon_profile **p)
{
	ttmon_profile_free(*p);
}

static void fini(struct job *job)
{
	ttmon_view_bins_fini(&job->bins);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "ttmon: cannot write the page to %s: %s\n", ttmon_outfile_name(what), strerror(-err));
	return TTMON_EXIT_ERROR;
}

static int view(const char *path, const char *out, size_t max, bool plain)
{
	_cleanup_(fini) struct job job = { .plain = plain };
	_cleanup_(ttmon_run_freep) struct ttmon_run *run = NULL;
	_cleanup_(free_profile) struct ttmon_profile *profile = NULL;
	_cleanup_free_ uint32_t *shown = NULL;
	const struct ttmon_run_opts opts = { .want = want, .event = event, .ctx = &job };
	_cleanup_(ttmon_pin_groups_freep) struct ttmon_pin_groups *groups = NULL;
	struct ttmon_policy_result policies[TTMON_POLICY_MAX];
	struct ttmon_policy_cfg cfg = { 0 };
	size_t nr_shown = 0;
	char why[600];
	int err;

	ttmon_view_bins_init(&job.bins, TTMON_VIEW_BINS_MAX);
	if (ttmon_run_load(path, &opts, &run, why, sizeof(why))) {
		fprintf(stderr, "ttmon: %s\n", why);
		return TTMON_EXIT_ERROR;
	}
	err = job.bins.err;
	if (!err)
		err = ttmon_view_choose(run, max, &shown, &nr_shown);
	if (!err)
		err = ttmon_pin_groups_new(run, NULL, &groups);
	if (err)
		return fail(out, err);
	cfg.cost = groups->cost;
	err = ttmon_profile_new((const struct ttmon_run *const *)&run, 1, &cfg.cost, &profile);
	cfg.profile = profile;
	for (unsigned int p = 0; !err && p < TTMON_POLICY_MAX; p++)
		err = ttmon_policy_simulate(run, (enum ttmon_policy)p, &cfg, &policies[p]);
	if (err)
		return fail(out, err);
	job.view = (struct ttmon_view){
		.run = run,
		.bins = &job.bins,
		.profile = profile,
		.groups = groups,
		.policies = policies,
		.cost = cfg.cost,
		.file = base_name(path),
		.version = TTMON_VERSION,
		.shown = shown,
		.nr_shown = nr_shown,
		.mappings = job.mappings,
	};
	err = ttmon_outfile_write(out, write_page, &job);
	return err ? fail(out, err) : 0;
}

/* Makes "runs/db.html" of "runs/db.json.gz". The caller frees it. */
static char *default_name(const char *path)
{
	static const char *const ends[] = { ".json.gz", ".json", ".gz" };
	size_t len = strlen(path), cut = 0;
	char *name = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(ends) && !cut; i++) {
		size_t n = strlen(ends[i]);

		if (len > n && strcmp(path + len - n, ends[i]) == 0)
			cut = n;
	}
	return asprintf(&name, "%.*s.html", (int)(len - cut), path) < 0 ? NULL : name;
}

/*
 * With the default name, an existing file is only overwritten if it is a page of ttmon, which its
 * first line shows: the user did not choose the name.
 */
static bool is_foreign(const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char head[1024];
	size_t n = f ? fread(head, 1, sizeof(head) - 1, f) : 0;

	head[n] = '\0';
	return f && !strstr(head, "<meta name=\"generator\" content=\"ttmon\">");
}

struct opts {
	const char *out;
	uint32_t max;
	bool plain;
};

static int run(const struct ttmon_cli *cli, void *ctx)
{
	const char *path = cli->words[0];
	_cleanup_free_ char *name = NULL;
	struct opts *o = ctx;
	int status;

	if (!o->out && strcmp(path, "-") == 0) {
		fputs("ttmon: the database comes from standard input, so the output file is needed: -o OUT.html\n",
		      stderr);
		return TTMON_EXIT_ERROR;
	}
	if (!o->out) {
		name = default_name(path);
		if (!name) {
			fputs("ttmon: out of memory\n", stderr);
			return TTMON_EXIT_ERROR;
		}
		if (is_foreign(name)) {
			fprintf(stderr,
				"ttmon: %s exists and is no page of ttmon view: choose the output file with -o\n",
				name);
			return TTMON_EXIT_ERROR;
		}
		o->out = name;
	}
	if (strlen(o->out) > 3 && strcmp(o->out + strlen(o->out) - 3, ".gz") == 0) {
		fprintf(stderr, "ttmon: %s: a page is not written as .gz: its data is compressed already\n", o->out);
		return TTMON_EXIT_ERROR;
	}
	status = view(path, o->out, o->max, o->plain);
	if (status == 0 && name)
		printf("%s\n", name);
	return status;
}

static const struct ttmon_cli_opt options[] = {
	{ "output", 'o', "OUT", "output file; - is standard output (default: the name of the database with .html)",
	  "The suffix .html replaces .json or .json.gz. The name is printed, and a file that is no page of ttmon is "
	  "not replaced.",
	  TTMON_CLI_TEXT(struct opts, out, ":file") },
	{ "max", 'n', "N", "number of allocations in the page, the hottest ones (default 50000)",
	  "The hottest are those that moved the most bytes. The sums and the pinned pages always cover all "
	  "allocations.",
	  TTMON_CLI_NUMBER(struct opts, max, 1, TTMON_RUN_MAX_ALLOCS) },
	{ "plain", 0, NULL,
	  "do not compress the data in the page: for browsers older than 2023; about three times as large", NULL,
	  TTMON_CLI_FLAG(struct opts, plain) },
};
const struct ttmon_cli_cmd ttmon_cmd_view = {
	.name = "ttmon view",
	.summary = "write a database as one page for the browser",
	.args = "DATABASE [-o OUT.html]",
	.about = "Writes a database (ttmond --dump-db, plain or .gz; - is standard input) as one page that any browser "
		 "opens and that\n"
		 "needs no network: a heat map of the transfers over time, lifetimes, pinned pages, call sites and the "
		 "advice.",
	.notes = "Exit status: 0 written, 2 not written.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const struct opts){ .max = MAX_SHOWN },
	.size = sizeof(struct opts),
	.min_words = 1,
	.max_words = 1,
	.words = ":file",
	.run = run,
};
