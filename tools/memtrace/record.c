// SPDX-License-Identifier: GPL-2.0-only
/*
 * record.c: `ttmon memtrace record`: the options, the destination of the records, and the summary at
 * the end.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "tools/cli/cmds.h"
#include "tools/memtrace/mt.h"
#include "tools/memtrace/record.h"
#include "tools/memtrace/tool.h"
#include "tools/cli/show.h"
#include "lib/base/fmt.h"
#include "version.h"

#define SEVERAL 1024 /* number of earlier kernels that are searched for duplicates */

void ttmon_mt_record_say(const char *fmt, ...)
{
	char text[1024], clean[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "ttmon memtrace record: %s\n", ttmon_fmt_text(clean, sizeof(clean), text));
}

/* ---- options ---- */

static void set(struct ttmon_mt_record *r, const char *name, const char *value)
{
	if (!value || r->nr_env == ARRAY_SIZE(r->env))
		return;
	r->env[r->nr_env].name = name;
	r->env[r->nr_env++].value = value;
}

static void set_number(struct ttmon_mt_record *r, const char *name, uint64_t n, char text[24])
{
	snprintf(text, 24, "%llu", (unsigned long long)n);
	set(r, name, n ? text : NULL);
}

/* Parses "A-B", "A-", "-B" or "A". */
static int take_range(struct ttmon_cli *cli, const char *arg)
{
	const char *dash = strchr(arg, '-');
	size_t digits = strspn(arg, "0123456789"), more = dash ? strspn(dash + 1, "0123456789") : 0;
	bool fine = dash ? dash == arg + digits && !dash[1 + more] && digits + more : digits && !arg[digits];
	struct ttmon_mt_record *r = cli->opts;

	if (!fine || digits > 18 || more > 18 ||
	    (digits && more && strtoull(arg, NULL, 10) > strtoull(dash + 1, NULL, 10)))
		return ttmon_cli_bad(cli, "--%s needs a range such as 0-9, not \"%s\"", cli->opt->name, arg);
	*(strcmp(cli->opt->name, "instr") ? &r->launches : &r->instrs) = arg;
	return 0;
}

static int take_spaces(struct ttmon_cli *cli, const char *arg)
{
	static const char *const names[] = { "global", "shared", "local" };
	struct ttmon_mt_record *r = cli->opts;

	for (const char *p = arg;; p++) {
		size_t n = strcspn(p, ","), i;

		for (i = 0; i < ARRAY_SIZE(names) && (strlen(names[i]) != n || memcmp(p, names[i], n)); i++)
			;
		if (i == ARRAY_SIZE(names))
			return ttmon_cli_bad(cli, "--space needs global, shared and local, with commas, not \"%s\"",
					     arg);
		p += n;
		if (*p)
			continue;
		r->spaces = arg;
		return 0;
	}
}

static int take_kernel(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_mt_record *r = cli->opts;
	size_t used = strlen(r->kernels);

	/* The library takes a list with commas between. */
	if (!*arg || strchr(arg, ','))
		return ttmon_cli_bad(cli, "--kernel needs a name without a comma (a ? matches it), not \"%s\"", arg);
	if (used + 1 + strlen(arg) >= sizeof(r->kernels))
		return ttmon_cli_bad(cli, "too many kernels with %s", arg);
	snprintf(r->kernels + used, sizeof(r->kernels) - used, "%s%s", used ? "," : "", arg);
	return 0;
}

static int check(const struct ttmon_cli *cli, struct ttmon_mt_record *r)
{
	if (r->path && (!*r->path || !strcmp(r->path, "-")))
		return ttmon_cli_bad(cli, "-o needs a file name: standard output belongs to the command");
	if (!cli->nr_words)
		return ttmon_cli_bad(cli, "which program?");
	if (!r->path && (r->file.order || r->file.max))
		return ttmon_cli_bad(cli, "without -o there is no file for %s",
				     r->file.order ? "--order" : "--max-bytes");
	r->cmd = cli->words;
	r->report |= !r->path;
	set(r, "TTMON_MEMTRACE_MODE", !r->has_mode ? NULL : r->aggregate ? "aggregate" : "stream");
	set(r, "TTMON_MEMTRACE_KERNELS", *r->kernels ? r->kernels : NULL);
	set(r, "TTMON_MEMTRACE_LAUNCHES", r->launches);
	set(r, "TTMON_MEMTRACE_INSTR", r->instrs);
	set(r, "TTMON_MEMTRACE_SPACES", r->spaces);
	set(r, "TTMON_MEMTRACE_ALL", r->all_modules ? "1" : NULL);
	set_number(r, "TTMON_MEMTRACE_SAMPLE", r->sample, r->sample_text);
	set_number(r, "TTMON_MEMTRACE_RING", r->ring, r->ring_text);
	return 0;
}

/* ---- records ---- */

/* The first write error ends the writing of the file; the command goes on. */
static void file_failed(struct ttmon_mt_record *r, int err)
{
	char buf[TTMON_FMT_LEN];

	if (!err || r->out_err)
		return;
	r->out_err = err;
	if (err == -EFBIG && r->file.max && r->out)
		ttmon_mt_record_say("%s has %s: nothing more is written, the command goes on", r->path,
				    ttmon_fmt_bytes(buf, sizeof(buf), ttmon_mt_out_bytes(r->out)));
	else
		ttmon_mt_record_say("%s: %s: nothing more is written, the command goes on", r->path, strerror(-err));
}

int ttmon_mt_record_take(void *ctx, const struct ttmon_mt_rec *recs, size_t n, uint32_t pid)
{
	struct ttmon_mt_record *r = ctx;

	(void)pid;
	if (r->out && !r->out_err)
		file_failed(r, ttmon_mt_out_put(r->out, &r->dict.dict, recs, n));
	if (r->an && !r->an_err) {
		r->an_err = ttmon_mt_an_feed(r->an, &r->dict.dict, recs, n);
		if (r->an_err)
			ttmon_mt_record_say("the report ends here: %s", strerror(-r->an_err));
	}
	return 0;
}

void ttmon_mt_record_flush(struct ttmon_mt_record *r)
{
	if (r->out && !r->out_err)
		file_failed(r, ttmon_mt_out_flush(r->out, &r->dict.dict));
}

/* ---- the end ---- */

static void say_one(void *ctx, const char *text)
{
	(void)ctx;
	ttmon_mt_record_say("%s", text);
}

static bool any(const struct ttmon_mt_kernel *k)
{
	(void)k;
	return true;
}

static bool recorded(const struct ttmon_mt_kernel *k)
{
	return k->recorded;
}

/*
 * Returns whether the kernel should have been recorded. A kernel with neither a reason nor a launch
 * was only loaded.
 */
static bool wanted(const struct ttmon_mt_kernel *k)
{
	return k->recorded || k->launches || *k->why;
}

/*
 * Counts the kernels for which is() is true. Each context and process reports its own kernels; a
 * kernel that appears several times counts once.
 */
static size_t count_kernels(const struct ttmon_mt_dict *d, bool (*is)(const struct ttmon_mt_kernel *))
{
	size_t ret = 0, k;

	for (size_t i = 0; i < d->nr_kernels; i++) {
		const struct ttmon_mt_kernel *v = d->kernels;

		if (!is(&v[i]))
			continue;
		for (k = i < SEVERAL ? 0 : i - SEVERAL;
		     k < i && (!is(&v[k]) || strcmp(v[k].name, v[i].name) || strcmp(v[k].module, v[i].module)); k++)
			;
		ret += k == i;
	}
	return ret;
}

static void say_what_there_is(const struct ttmon_mt_record *r)
{
	char a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], c[TTMON_FMT_LEN], d[TTMON_FMT_LEN], e[TTMON_FMT_LEN];
	char file[4300] = "";
	const struct ttmon_mt_dict *dict = &r->dict.dict;
	char agg[64] = "", idle[64] = "";
	uint64_t sums = 0;
	size_t all = count_kernels(dict, any), ran = count_kernels(dict, wanted);

	for (size_t i = 0; i < dict->nr_aggs; i++)
		sums += dict->aggs[i].requests;
	if (sums)
		snprintf(agg, sizeof(agg), ", sums of %s", ttmon_fmt_count(c, sizeof(c), sums));
	if (ran < all)
		snprintf(idle, sizeof(idle), " (%zu more never launched)", all - ran);
	if (r->path)
		snprintf(file, sizeof(file), "; %s in %s",
			 ttmon_fmt_bytes(d, sizeof(d), r->out ? ttmon_mt_out_bytes(r->out) : 0), r->path);
	if (r->path && r->out && ttmon_mt_out_records(r->out) < r->stats.records)
		snprintf(file + strlen(file), sizeof(file) - strlen(file), ", which holds %s of them",
			 ttmon_fmt_count(e, sizeof(e), ttmon_mt_out_records(r->out)));
	ttmon_mt_record_say("%s accesses recorded%s%s, %s dropped%s, %zu of %zu kernel%s%s%s",
			    ttmon_fmt_count(a, sizeof(a), r->stats.records), agg,
			    r->stats.sample > 1 ? " (a sample)" : "", ttmon_fmt_count(b, sizeof(b), r->stats.dropped),
			    r->stats.dropped ? " because the buffer was full" : "", count_kernels(dict, recorded), ran,
			    ran == 1 ? "" : "s", idle, file);
	if (r->stats.malformed)
		ttmon_mt_record_say("%s records or names could not be used",
				    ttmon_fmt_count(c, sizeof(c), r->stats.malformed));
	ttmon_mt_missing(dict, false, say_one, NULL);
}

static int end_file(struct ttmon_mt_record *r)
{
	if (!r->path)
		return 0;
	if (!r->out_err)
		file_failed(r, ttmon_mt_out_end(r->out, &r->dict.dict, &r->stats));
	/* With quotas and network file systems, a full disk may be reported only by close(). */
	if (close(TAKE_FD(r->fd)) && !r->out_err)
		file_failed(r, -errno);
	return r->out_err == -EFBIG && r->file.max ? 0 : r->out_err;
}

/* Opens the file for writing. Its old content stays until the command has been started. */
static int open_file(struct ttmon_mt_record *r)
{
	r->fd = open(r->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r->created = r->fd >= 0;
	if (r->fd < 0)
		r->fd = open(r->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (r->fd >= 0)
		return 0;
	ttmon_mt_record_say("%s: %s", r->path, strerror(errno));
	return -EIO;
}

void ttmon_mt_record_begin(struct ttmon_mt_record *r)
{
	struct stat st;

	if (!r->path)
		return;
	if (!fstat(r->fd, &st) && S_ISREG(st.st_mode) && ftruncate(r->fd, 0))
		file_failed(r, -errno);
	else
		file_failed(r, ttmon_mt_out_new(r->fd, &r->file, &r->out));
}

/* Prints what `ttmon memtrace FILE` prints without options. */
static int show(struct ttmon_mt_record *r)
{
	const struct ttmon_mt_args args = { .name = "memtrace record", .lines = 20, .reuse = TTMON_MT_REUSE_SAMPLED };
	struct ttmon_mt_report report = {
		.args = &args, .path = r->cmd[0], .dict = &r->dict.dict, .stats = &r->stats, .an = r->an
	};
	int err;

	ttmon_mt_an_stats(r->an, &r->stats);
	err = ttmon_mt_an_settle(r->an, &r->dict.dict);
	err = err ?: ttmon_mt_report_sort(&report);
	if (err)
		ttmon_mt_record_say("the report: %s", strerror(-err));
	else
		ttmon_mt_report_print(&report, stdout, ttmon_show_columns());
	ttmon_mt_report_fini(&report);
	return err;
}

static int record(struct ttmon_mt_record *r)
{
	int status, err;

	snprintf(r->stats.tool, sizeof(r->stats.tool), "ttmon " TTMON_VERSION);
	err = r->report ? ttmon_mt_an_new(NULL, &r->an) : 0;
	if (err) {
		ttmon_mt_record_say("%s", strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	if (r->path && open_file(r))
		return TTMON_EXIT_ERROR;
	if (ttmon_mt_record_run(r, &status)) {
		if (r->created)
			unlink(r->path);
		return TTMON_EXIT_ERROR;
	}
	err = end_file(r);
	if (r->path || r->opened)
		say_what_there_is(r);
	if (r->an && !r->an_err && r->stats.records + r->dict.dict.nr_aggs)
		err = show(r) ?: err;
	if (!status && (err || r->an_err || r->read_err))
		status = TTMON_EXIT_ERROR;
	return status;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	struct ttmon_mt_record *r = ctx;
	int status = check(cli, r);

	if (status)
		return status;
	status = record(r);
	ttmon_mt_out_free(r->out);
	ttmon_mt_an_free(r->an);
	ttmon_mt_dict_fini(&r->dict);
	if (r->fd >= 0)
		close(r->fd);
	return status;
}

#define R struct ttmon_mt_record
static const struct ttmon_cli_opt options[] = {
	{ "output", 'o', "FILE", "write all accesses to FILE, for ttmon memtrace FILE",
	  "By convention NAME.ttmt. It is made with mode 0600, and can be read while it grows. An existing file keeps "
	  "its contents until the command has been started.",
	  TTMON_CLI_TEXT(R, path, ":file") },
	{ "report", 0, NULL, "print the report at the end (the default without -o)", NULL, TTMON_CLI_FLAG(R, report) },
	{ "mode", 0, "MODE",
	  "stream: every access; aggregate: sums for each instruction, kept on the GPU, far cheaper (stream)",
	  "aggregate is as exact as stream for classes, sectors, lines, pages, wavefronts and lanes. It has no single "
	  "launches, reuse distances, heat map or steps between requests, and a stride only if more than half of the "
	  "requests have it. Instructions after the first 65,536 of a process (one with generic addresses counts "
	  "three times) are left out, and their number is reported.",
	  TTMON_CLI_WORD(R, aggregate, "stream aggregate"), TTMON_CLI_GIVEN(R, has_mode) },
	{ "kernel", 0, "GLOB", "kernels whose name matches; may be given again (all)",
	  "A name with a comma in it is matched with a ? in its place.", TTMON_CLI_CALL(take_kernel) },
	{ "launches", 0, "A-B", "launches by number, from 0; A- and -B are fine (all)",
	  "Launches are numbered in each process; nodes of graphs are counted when they are made.",
	  TTMON_CLI_CALL(take_range) },
	{ "instr", 0, "A-B", "instructions of a kernel by number, from 0 (all)",
	  "Instructions are numbered in the kernel's PTX, including those that do not access memory.",
	  TTMON_CLI_CALL(take_range) },
	{ "sample", 0, "N", "one block in N (1)", NULL, TTMON_CLI_NUMBER(R, sample, 1, 1 << 24) },
	{ "space", 0, "LIST", "of global,shared,local (global,shared)",
	  "PTX's local memory may be registers in the machine code. Generic accesses are recorded with any of them.",
	  TTMON_CLI_CALL(take_spaces), .words = "global shared local" },
	{ "all-modules", 0, NULL, "record NVIDIA's own libraries too",
	  "Only possible if they have PTX that fits the device.", TTMON_CLI_FLAG(R, all_modules) },
	{ "ring", 0, "BYTES", "size of the buffer of each SM, with K or M (1M)",
	  "4K to 128M, rounded down to a power of two. The buffers are pinned memory of the program, with 4 MiB more "
	  "for each context. A larger buffer drops fewer accesses when kernels are faster than the reader for a while.",
	  TTMON_CLI_SIZE(R, ring, 4096, (uint64_t)TTMON_MTC_MAX_UNITS *TTMON_MTC_UNIT) },
	{ "order", 0, NULL, "keep the order of arrival in FILE, which reuse distances need", NULL,
	  TTMON_CLI_FLAG(R, file.order) },
	{ "max-bytes", 0, "N", "maximum size of FILE, with K, M or G; then nothing more is written",
	  "The command goes on.", TTMON_CLI_SIZE(R, file.max, 1, INT64_MAX) },
};
const struct ttmon_cli_cmd ttmon_mt_cmd_record = {
	.name = "ttmon memtrace record",
	.summary = "run a program and record which memory its kernels access",
	.args = "[OPTIONS] [--] COMMAND [ARGUMENTS]",
	.about = "Runs a program that uses CUDA and records which memory its kernels access: libttmon-memtrace.so is "
		 "loaded into it and rewrites\n"
		 "the kernels whose PTX is available. The exit status is that of the command.",
	.notes = "TTMON_MEMTRACE_LIB is the path of libttmon-memtrace.so, if it is not beside ttmon.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const R){ .fd = -1 },
	.size = sizeof(R),
	.max_words = -1,
	.stops = true,
	.run = run,
};
