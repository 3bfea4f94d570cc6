// SPDX-License-Identifier: GPL-2.0-only
/*
 * report.c: `ttmon memtrace [report]`: reads a trace, analyses it and shows the result; for standard
 * input also while data arrives.
 */
#include <locale.h>
#include <sys/ioctl.h>

#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/memtrace/mt.h"
#include "tools/memtrace/columns.h"
#include "tools/memtrace/tool.h"
#include "tools/cli/show.h"

/* ---- rows in order ---- */

const struct ttmon_mt_site *ttmon_mt_row_site(const struct ttmon_mt_dict *dict, const struct ttmon_mt_site_row *row)
{
	static const struct ttmon_mt_site others = { .kernel = "others", .opcode = "", .file = "", .module = "" };

	return row->site < dict->nr_sites ? &dict->sites[row->site] : &others;
}

static int descending(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static uint64_t cost(const struct ttmon_mt_site_row *row)
{
	return row->space == TTMON_MT_SHARED ? row->sums.waves : row->sums.sectors;
}

int ttmon_mt_row_order(const struct ttmon_mt_site_row *a, const struct ttmon_mt_site_row *b)
{
	return descending(ttmon_mt_waste(a), ttmon_mt_waste(b)) ?: descending(cost(a), cost(b));
}

static int by_waste(const void *pa, const void *pb)
{
	const struct ttmon_mt_site_row *a = *(const struct ttmon_mt_site_row *const *)pa,
				       *b = *(const struct ttmon_mt_site_row *const *)pb;

	return ttmon_mt_row_order(a, b) ?: (a > b) - (a < b);
}

static int by_sectors(const void *pa, const void *pb)
{
	const struct ttmon_mt_launch_row *a = *(const struct ttmon_mt_launch_row *const *)pa,
					 *b = *(const struct ttmon_mt_launch_row *const *)pb;

	int c = descending(a->global.sectors + a->local.sectors, b->global.sectors + b->local.sectors);

	return c ?: descending(a->shared.waves, b->shared.waves) ?: (a > b) - (a < b);
}

static uint64_t requests_of(const struct ttmon_mt_kernel_row *k)
{
	uint64_t sum = 0;

	for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++)
		for (unsigned int i = 0; i < TTMON_MT_KIND_MAX; i++)
			sum += k->requests[s][i];
	return sum;
}

static int by_requests(const void *pa, const void *pb)
{
	const struct ttmon_mt_kernel_row *a = *(const struct ttmon_mt_kernel_row *const *)pa,
					 *b = *(const struct ttmon_mt_kernel_row *const *)pb;

	return descending(requests_of(a), requests_of(b)) ?: (a > b) - (a < b);
}

static int by_traffic(const void *pa, const void *pb)
{
	const struct ttmon_mt_buffer_row *a = *(const struct ttmon_mt_buffer_row *const *)pa,
					 *b = *(const struct ttmon_mt_buffer_row *const *)pb;

	return descending(a->sums.sectors, b->sums.sectors) ?: descending(a->touches, b->touches) ?: (a > b) - (a < b);
}

/* Makes r->FIELD: pointers to the rows, sorted. */
#define SORT(r, field, get, order)                                                              \
	({                                                                                      \
		size_t n_ = 0;                                                                  \
		__typeof__(get((r)->an, &n_)) rows_ = get((r)->an, &n_);                        \
		(r)->field = calloc(n_ + 1, sizeof(*(r)->field));                               \
		for (size_t i_ = 0; (r)->field && i_ < n_; i_++)                                \
			(r)->field[i_] = &rows_[i_];                                            \
		(r)->nr_##field = (r)->field ? n_ : 0;                                          \
		if ((r)->nr_##field)                                                            \
			qsort((void *)(r)->field, (r)->nr_##field, sizeof(*(r)->field), order); \
		(r)->field != NULL;                                                             \
	})

int ttmon_mt_report_sort(struct ttmon_mt_report *r)
{
	ttmon_mt_report_fini(r);
	if (!SORT(r, sites, ttmon_mt_an_sites, by_waste) || !SORT(r, launches, ttmon_mt_an_launches, by_sectors) ||
	    !SORT(r, kernels, ttmon_mt_an_kernels, by_requests) || !SORT(r, buffers, ttmon_mt_an_buffers, by_traffic))
		return -ENOMEM;
	return ttmon_mt_an_findings(r->an, r->dict, &r->findings, &r->nr_findings);
}

void ttmon_mt_report_fini(struct ttmon_mt_report *r)
{
	free((void *)r->sites);
	free((void *)r->launches);
	free((void *)r->kernels);
	free((void *)r->buffers);
	r->sites = NULL;
	r->launches = NULL;
	r->kernels = NULL;
	r->buffers = NULL;
	r->nr_sites = r->nr_launches = r->nr_kernels = r->nr_buffers = r->nr_findings = 0;
}

/* ---- text ---- */

void ttmon_mt_report_print(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	unsigned int show = r->args->sections;

	ttmon_mt_head(r, out, width);
	if (!show)
		ttmon_mt_findings(r, out, width);
	if (!show || show & TTMON_MT_SHOW_SITES)
		ttmon_mt_sites(r, out, width);
	if (!show || show & TTMON_MT_SHOW_DIVERGENCE)
		ttmon_mt_divergence(r, out, width);
	if (!show || show & TTMON_MT_SHOW_LAUNCHES)
		ttmon_mt_launches(r, out, width);
	if (!show || show & TTMON_MT_SHOW_KERNELS)
		ttmon_mt_kernels(r, out, width);
	if (!show || show & TTMON_MT_SHOW_BUFFERS)
		ttmon_mt_buffers(r, out, width);
	if (!show || show & TTMON_MT_SHOW_REUSE)
		ttmon_mt_show_reuse(r, out, width);
	if (!show || show & TTMON_MT_SHOW_HEAT)
		ttmon_mt_show_heat(r, out, width);
	if (show & (TTMON_MT_SHOW_LAUNCHES | TTMON_MT_SHOW_REUSE | TTMON_MT_SHOW_HEAT) && r->dict->nr_aggs &&
	    !r->stats->records) {
		putc('\n', out);
		ttmon_mt_wrap(
			out,
			"This trace has sums of the GPU, of all launches together: no launches, reuse distances or "
			"heat.",
			0, 0, width);
	}
}

struct live {
	struct ttmon_mt_report report;
	bool screen, on_screen;
};

/* Redraws the screen: as many lines as the terminal has. */
static void redraw(struct live *l)
{
	_cleanup_free_ char *text = NULL;
	struct winsize size = { 0 };
	char *line, *next;
	size_t n = 0;
	FILE *out;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row)
		size.ws_row = 24;
	out = open_memstream(&text, &n);
	if (!out)
		return;
	ttmon_mt_report_print(&l->report, out, ttmon_show_columns());
	if (fclose(out))
		return;
	/* The alternate screen without cursor, so that the old contents come back at the end. */
	fputs(l->on_screen ? "\033[H" : "\033[?1049h\033[?25l\033[H", stdout);
	l->on_screen = true;
	line = text;
	for (unsigned int row = 0; row + 1 < size.ws_row && *line; row++, line = next) {
		next = strchrnul(line, '\n');
		printf("%.*s\033[K\r\n", (int)(next - line), line);
		next += *next != '\0';
	}
	fputs("\033[J\033[7m Reading; Ctrl-C ends it and prints all. \033[0m", stdout);
	fflush(stdout);
}

static void leave_screen(void *ctx)
{
	struct live *l = ctx;

	if (l->on_screen)
		fputs("\033[?25h\033[?1049l", stdout);
	l->on_screen = false;
	fflush(stdout);
}

static int take(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs, size_t n)
{
	struct live *l = ctx;
	int err = ttmon_mt_an_feed(l->report.an, dict, recs, n);

	if (err) {
		leave_screen(l);
		fprintf(stderr, "ttmon %s: %s\n", l->report.args->name, strerror(-err));
	}
	return err;
}

static int look(struct live *l, const struct ttmon_mt_in *in)
{
	int err;

	l->report.dict = ttmon_mt_in_dict(in);
	l->report.stats = ttmon_mt_in_stats(in);
	ttmon_mt_an_stats(l->report.an, l->report.stats);
	err = ttmon_mt_an_settle(l->report.an, l->report.dict);
	return err ?: ttmon_mt_report_sort(&l->report);
}

static void tick(void *ctx, const struct ttmon_mt_in *in)
{
	struct live *l = ctx;

	if (!look(l, in))
		redraw(l);
}

/* ---- the command ---- */

TTMON_FREEP(an_freep, struct ttmon_mt_an, ttmon_mt_an_free);

TTMON_FREEP(map_freep, struct ttmon_mt_map, ttmon_mt_map_free);

static int show_here(const struct ttmon_mt_report *r)
{
	int err;

	if (r->args->json) {
		err = fflush(stdout) ? -errno : ttmon_mt_json(r, STDOUT_FILENO);
		if (err)
			fprintf(stderr, "ttmon %s: cannot write the output: %s\n", r->args->name, strerror(-err));
		return err;
	}
	if (r->args->csv)
		ttmon_mt_columns_csv(r);
	else
		ttmon_mt_report_print(r, stdout, ttmon_show_columns());
	return 0;
}

int ttmon_mt_report_run(struct ttmon_mt_args *args, int (*show)(const struct ttmon_mt_report *r))
{
	_cleanup_(map_freep) struct ttmon_mt_map *map = NULL;
	_cleanup_(an_freep) struct ttmon_mt_an *an = NULL;
	_cleanup_(ttmon_mt_in_freep) struct ttmon_mt_in *in = NULL;
	bool from_stdin = !strcmp(args->path[0], "-");
	struct live l = { .report = { .args = args, .path = args->path[0] },
			  .screen = from_stdin && !show && !args->json && !args->csv && !args->pass &&
				    ttmon_show_columns() };
	struct ttmon_mt_read read = { .args = args,
				      .path = args->path[0],
				      .take = take,
				      .tick = l.screen ? tick : NULL,
				      .leave = leave_screen,
				      .ctx = &l };
	struct ttmon_mt_an_opts opts = { .reuse = args->reuse, .ctx = &args->pick };
	int err = ttmon_mt_allocs(args, &map), status = TTMON_EXIT_ERROR, end;

	if (err)
		return status;
	opts.map = l.report.map = read.map = map;
	read.bare = args->csv;
	opts.want = ttmon_mt_pick_is_all(&args->pick) ? NULL : ttmon_mt_pick_want;
	err = ttmon_mt_an_new(&opts, &an);
	if (err) {
		fprintf(stderr, "ttmon %s: %s\n", args->name, strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	l.report.an = an;
	end = ttmon_mt_read_trace(&read, &in, &l.report.interrupted);
	leave_screen(&l);
	if (!in)
		return TTMON_EXIT_ERROR;
	l.report.err = end;
	/* The file is no trace, which an error message has said: there is nothing to show. */
	if (!end || ttmon_mt_in_stats(in)->records || ttmon_mt_in_dict(in)->nr_aggs ||
	    ttmon_mt_in_dict(in)->nr_touches) {
		err = look(&l, in);
		if (err)
			fprintf(stderr, "ttmon %s: %s\n", args->name, strerror(-err));
		else
			err = (show ?: show_here)(&l.report);
		ttmon_mt_pick_say(&args->pick, args->name, args->path[0]);
		status = err ? TTMON_EXIT_ERROR : end ? TTMON_EXIT_NO : 0;
	}
	ttmon_mt_report_fini(&l.report);
	return status;
}

int ttmon_mt_run_report(const struct ttmon_cli *cli, void *args)
{
	struct ttmon_mt_args *a = args;
	int status = ttmon_mt_args_check(cli, a);

	setlocale(LC_CTYPE, "");
	if (!status)
		status = ttmon_mt_report_run(a, NULL);
	ttmon_mt_pick_fini(&a->pick);
	return status;
}

const struct ttmon_cli_cmd ttmon_mt_cmd_report = {
	.name = "ttmon memtrace report",
	.summary = "what the accesses cost; the default command",
	.args = "[OPTIONS] FILE|-",
	.about = TTMON_MT_REPORT_ABOUT,
	.notes = "What the figures mean: ttmon-memtrace(1).",
	.more_name = "columns",
	.more = ttmon_mt_columns_man,
	TTMON_MT_ARGS(TTMON_MT_REPORT),
	.run = ttmon_mt_run_report,
};
