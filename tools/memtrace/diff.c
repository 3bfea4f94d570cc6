// SPDX-License-Identifier: GPL-2.0-only
/*
 * diff.c: `ttmon memtrace diff A B` compares two runs site by site. This file has the options, the
 * reading, and the exit status.
 */
#include <locale.h>

#include "tools/cli/cmds.h"
#include "tools/memtrace/mt.h"
#include "tools/memtrace/diff.h"
#include "tools/cli/show.h"

static void side_fini(struct ttmon_mt_diff_side *s)
{
	ttmon_mt_an_free(s->an);
	ttmon_mt_in_free(s->in);
	ttmon_mt_pick_fini(&s->pick);
	free(s->items);
}

/* ---- reading ---- */

static int take(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs, size_t n)
{
	struct ttmon_mt_diff_side *s = ctx;
	int err = ttmon_mt_an_feed(s->an, dict, recs, n);

	if (err)
		fprintf(stderr, "ttmon memtrace diff: %s: %s\n", s->path, strerror(-err));
	return err;
}

static int by_name(const void *pa, const void *pb)
{
	const struct ttmon_mt_kernel_row *const *a = pa, *const *b = pb;

	return strcmp((*a)->kernel, (*b)->kernel);
}

static int make_items(struct ttmon_mt_diff_side *s)
{
	const struct ttmon_mt_dict *dict = ttmon_mt_in_dict(s->in);
	size_t nr_kernels = 0;
	const struct ttmon_mt_kernel_row *kernels = ttmon_mt_an_kernels(s->an, &nr_kernels);
	const struct ttmon_mt_site_row *rows = ttmon_mt_an_sites(s->an, &s->nr);
	_cleanup_free_ const struct ttmon_mt_kernel_row **sorted = calloc(nr_kernels + 1, sizeof(*sorted));

	s->items = calloc(s->nr + 1, sizeof(*s->items));
	if (!s->items || !sorted)
		return -ENOMEM;
	for (size_t i = 0; i < nr_kernels; i++)
		sorted[i] = &kernels[i];
	if (nr_kernels)
		qsort((void *)sorted, nr_kernels, sizeof(*sorted), by_name);
	for (size_t i = 0; i < s->nr; i++) {
		const struct ttmon_mt_site *site = ttmon_mt_row_site(dict, &rows[i]);
		const struct ttmon_mt_kernel_row key = { .kernel = site->kernel }, *at = &key;
		const struct ttmon_mt_kernel_row **found =
			bsearch(&at, (void *)sorted, nr_kernels, sizeof(*sorted), by_name);

		s->items[i] = (struct ttmon_mt_diff_item){
			.row = &rows[i], .site = site, .launches = found ? (*found)->launches : 0, .sample = s->sample
		};
	}
	return 0;
}

static int read_side(const struct ttmon_mt_args *args, struct ttmon_mt_diff_side *s)
{
	struct ttmon_mt_an_opts opts = { .reuse = TTMON_MT_REUSE_OFF, .ctx = &s->pick };
	struct ttmon_mt_read read = { .args = args, .path = s->path, .take = take, .ctx = s };
	int err;

	s->pick = args->pick;
	opts.want = ttmon_mt_pick_is_all(&s->pick) ? NULL : ttmon_mt_pick_want;
	err = ttmon_mt_an_new(&opts, &s->an);
	if (!err) {
		s->err = ttmon_mt_read_trace(&read, &s->in, &s->interrupted);
		if (!s->in)
			return s->err;
		ttmon_mt_an_stats(s->an, ttmon_mt_in_stats(s->in));
		err = ttmon_mt_an_settle(s->an, ttmon_mt_in_dict(s->in));
		ttmon_mt_pick_say(&s->pick, args->name, s->path);
	}
	if (!err) {
		s->sample = MAX(ttmon_mt_in_stats(s->in)->sample, 1u);
		s->plain = ttmon_mt_plain(ttmon_mt_in_dict(s->in));
	}
	err = err ?: make_items(s);
	if (err)
		fprintf(stderr, "ttmon %s: %s: %s\n", args->name, s->path, strerror(-err));
	return err;
}

/* ---- the command ---- */

static int diff(const struct ttmon_mt_args *args, struct ttmon_mt_diff_side *sides)
{
	_cleanup_free_ struct ttmon_mt_diff_pair *pairs = NULL;
	bool differs = false;
	size_t n = 0;
	int err;

	if (read_side(args, &sides[0]) || read_side(args, &sides[1]))
		return TTMON_EXIT_ERROR;
	err = ttmon_mt_diff_match(&sides[0], &sides[1], &pairs, &n);
	if (err) {
		fprintf(stderr, "ttmon %s: %s\n", args->name, strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	for (size_t i = 0; i < n; i++)
		differs |= pairs[i].differs;
	if (args->json) {
		err = ttmon_mt_diff_json(sides, pairs, n, args, differs);
		if (err)
			fprintf(stderr, "ttmon %s: cannot write the output: %s\n", args->name, strerror(-err));
	} else {
		ttmon_mt_diff_text(sides, pairs, n, args, ttmon_show_columns());
	}
	if (err || sides[0].err || sides[1].err)
		return TTMON_EXIT_ERROR;
	return args->exit_code && differs ? TTMON_EXIT_NO : 0;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	struct ttmon_mt_diff_side sides[2] = { 0 };
	struct ttmon_mt_args *args = ctx;
	int status = ttmon_mt_args_check(cli, args);

	if (status)
		return status;
	setlocale(LC_CTYPE, "");
	for (unsigned int i = 0; i < 2; i++)
		sides[i].path = args->path[i];
	status = diff(args, sides);
	for (unsigned int i = 0; i < 2; i++)
		side_fini(&sides[i]);
	return status;
}

const struct ttmon_cli_cmd ttmon_mt_cmd_diff = {
	.name = "ttmon memtrace diff",
	.summary = "compare two traces instruction by instruction",
	.args = "[OPTIONS] A B",
	.about = "Compares two traces instruction by instruction: what became better or worse, what is new and what is "
		 "gone.",
	TTMON_MT_ARGS(TTMON_MT_DIFF),
	.run = run,
};
