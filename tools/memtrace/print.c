// SPDX-License-Identifier: GPL-2.0-only
/*
 * print.c: `ttmon memtrace print` and `convert`: write a trace in another form: NVBit's lines, or
 * ttmon's own format.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "memtrace/stream/stream.h"
#include "tools/cli/cmds.h"
#include "tools/memtrace/mt.h"
#include "tools/memtrace/tool.h"

struct print {
	struct ttmon_mt_args *args;
	struct ttmon_mt_lines lines;
	bool picky;
	bool *known; /* for each launch: its line is printed or not selected */
	size_t nr_known;
};

/*
 * Prints the line of a launch, unless that was done, or the launch is not selected, or the source does
 * not describe it.
 */
static void print_launch(struct print *p, const struct ttmon_mt_dict *dict, size_t i)
{
	const struct ttmon_mt_launch *l = &dict->launches[i];

	if (p->known[i])
		return;
	p->known[i] = true;
	if (!(l->flags & TTMON_MT_LAUNCH_MADE_UP) && ttmon_mt_pick_launch(&p->args->pick, l))
		ttmon_mt_lines_launch(&p->lines, l);
}

static int grow(struct print *p, const struct ttmon_mt_dict *dict)
{
	size_t more = MAX(dict->nr_launches, p->nr_known * 2);
	bool *q;

	if (dict->nr_launches <= p->nr_known)
		return 0;
	q = realloc(p->known, more);
	if (!q) {
		p->lines.err = p->lines.err ? p->lines.err : -ENOMEM;
		return -ENOMEM;
	}
	memset(q + p->nr_known, 0, more - p->nr_known);
	p->known = q;
	p->nr_known = more;
	return 0;
}

/* A launch's line comes before its first record, so that a reader can match their ids. */
static int print_recs(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs, size_t n)
{
	struct print *p = ctx;
	int err = grow(p, dict);

	for (size_t i = 0; i < n && !err; i++) {
		if (p->picky && !ttmon_mt_pick_want(&p->args->pick, dict, &recs[i]))
			continue;
		if (recs[i].launch < dict->nr_launches)
			print_launch(p, dict, recs[i].launch);
		ttmon_mt_lines_rec(&p->lines, dict, &recs[i]);
		err = p->lines.err;
	}
	/* No records came for a while: flush, for a reader that reads the lines as they come. */
	return err || n ? err : ttmon_mt_lines_flush(&p->lines);
}

static int print(struct ttmon_mt_args *args)
{
	_cleanup_(ttmon_mt_in_freep) struct ttmon_mt_in *in = NULL;
	struct print p = { .args = args, .picky = !ttmon_mt_pick_is_all(&args->pick) };
	struct ttmon_mt_read read = {
		.args = args, .path = args->path[0], .bare = true, .take = print_recs, .ctx = &p
	};
	const struct ttmon_mt_dict *dict;
	bool interrupted = false;
	int err, end;

	if (ttmon_mt_lines_init(&p.lines, STDOUT_FILENO)) {
		fprintf(stderr, "ttmon %s: out of memory\n", args->name);
		return TTMON_EXIT_ERROR;
	}
	end = ttmon_mt_read_trace(&read, &in, &interrupted);
	/* Print the launches without records. */
	if (in && !p.lines.err && !grow(&p, ttmon_mt_in_dict(in)))
		for (size_t i = 0; i < ttmon_mt_in_dict(in)->nr_launches; i++)
			print_launch(&p, ttmon_mt_in_dict(in), i);
	err = p.lines.err ? p.lines.err : ttmon_mt_lines_flush(&p.lines);
	ttmon_mt_lines_fini(&p.lines);
	free(p.known);
	/* The reader of the output has closed it. */
	if (err == -EPIPE)
		return 0;
	if (err) {
		fprintf(stderr, "ttmon %s: cannot write the output: %s\n", args->name, strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	if (!in)
		return TTMON_EXIT_ERROR;
	ttmon_mt_pick_say(&args->pick, args->name, args->path[0]);
	dict = ttmon_mt_in_dict(in);
	if (dict->nr_aggs || dict->nr_touches)
		fprintf(stderr, "ttmon %s: %s: has sums of the GPU that are no records, and not printed: %zu\n",
			args->name, args->path[0], dict->nr_aggs + dict->nr_touches);
	return end ? TTMON_EXIT_NO : 0;
}

static int run_print(const struct ttmon_cli *cli, void *ctx)
{
	struct ttmon_mt_args *args = ctx;
	int status = ttmon_mt_args_check(cli, args);

	if (!status)
		status = print(args);
	ttmon_mt_pick_fini(&args->pick);
	return status;
}

const struct ttmon_cli_cmd ttmon_mt_cmd_print = {
	.name = "ttmon memtrace print",
	.summary = "the records as lines of NVBit's form",
	.args = "[OPTIONS] FILE|-",
	.about = "A trace of any kind as lines of NVBit's mem_trace, one for each access of a warp:\n"
		 "MEMTRACE: CTX 0x... - grid_launch_id N - CTA x,y,z - warp W - OPCODE - 32 addresses, 0 of lanes that "
		 "do not take part.",
	TTMON_MT_ARGS(TTMON_MT_PRINT),
	.run = run_print,
};

/* ---- convert ---- */

struct convert {
	struct ttmon_mt_args *args;
	struct ttmon_mt_out *out;
	struct ttmon_mt_rec picked[TTMON_MT_BATCH];
	uint64_t records;
	bool picky;
	int err; /* error of writing */
};

TTMON_FREEP(out_freep, struct ttmon_mt_out, ttmon_mt_out_free);

static int convert_recs(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs, size_t n)
{
	struct ttmon_mt_dict some = *dict;
	struct convert *c = ctx;
	size_t nr = 0;

	if (c->picky) {
		for (size_t i = 0; i < n; i++)
			if (ttmon_mt_pick_want(&c->args->pick, dict, &recs[i]))
				c->picked[nr++] = recs[i];
		recs = c->picked;
	} else {
		nr = n;
	}
	/*
	 * No records came for a while: write what there is, for a reader of the growing file. Sums are
	 * selected at the end.
	 */
	if (c->picky)
		some.nr_aggs = 0;
	c->err = n ? ttmon_mt_out_put(c->out, &some, recs, nr) : ttmon_mt_out_flush(c->out, &some);
	if (!c->err)
		c->records += nr;
	return c->err;
}

/*
 * Everything was read: writes the rest of the file, and of the sums of the GPU those that are
 * selected.
 */
static int convert_end(struct convert *c, const struct ttmon_mt_in *in)
{
	struct ttmon_mt_dict some = *ttmon_mt_in_dict(in);
	_cleanup_free_ struct ttmon_mt_agg *aggs = calloc(some.nr_aggs + 1, sizeof(*aggs));

	if (!aggs)
		return -ENOMEM;
	if (c->picky) {
		some.nr_aggs = ttmon_mt_pick_aggs(&c->args->pick, ttmon_mt_in_dict(in), aggs);
		some.aggs = aggs;
	}
	if (c->picky && some.nr_touches)
		fprintf(stderr,
			"ttmon %s: %s: has pages that the GPU touched, which are of no instruction: all are kept: "
			"%zu\n",
			c->args->name, c->args->path[0], some.nr_touches);
	return ttmon_mt_out_end(c->out, &some, ttmon_mt_in_stats(in));
}

/* Opens the output, which must not be the input file. Returns -1 after an error message. */
static int open_out(const struct ttmon_mt_args *args)
{
	struct stat from, to;
	const char *why = NULL;
	int fd;

	if (!strcmp(args->out, "-"))
		return dup(STDOUT_FILENO);
	if (strcmp(args->path[0], "-") != 0 && !stat(args->path[0], &from) && !stat(args->out, &to) &&
	    from.st_dev == to.st_dev && from.st_ino == to.st_ino) {
		why = "that is the trace itself";
		fd = -1;
	} else {
		fd = open(args->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	}
	if (fd < 0)
		fprintf(stderr, "ttmon %s: %s: %s\n", args->name, args->out, why ?: strerror(errno));
	return fd;
}

static int convert(struct convert *c)
{
	_cleanup_(ttmon_mt_in_freep) struct ttmon_mt_in *in = NULL;
	_cleanup_(out_freep) struct ttmon_mt_out *out = NULL;
	struct ttmon_mt_args *args = c->args;
	struct ttmon_mt_read read = {
		.args = args, .path = args->path[0], .bare = true, .take = convert_recs, .ctx = c
	};
	struct ttmon_mt_out_opts opts = { .order = args->order, .max = args->max_bytes };
	char from[TTMON_FMT_LEN], to[TTMON_FMT_LEN], count[TTMON_FMT_LEN], each[32] = "";
	FILE *say = strcmp(args->out, "-") ? stdout : stderr;
	_cleanup_close_ int fd = open_out(args);
	const struct ttmon_mt_stats *stats;
	bool interrupted = false;
	int err, end;

	if (fd < 0)
		return TTMON_EXIT_ERROR;
	err = ttmon_mt_out_new(fd, &opts, &out);
	if (err) {
		fprintf(stderr, "ttmon %s: %s: %s\n", args->name, args->out, strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	c->out = out;
	end = ttmon_mt_read_trace(&read, &in, &interrupted);
	if (!in)
		return TTMON_EXIT_ERROR;
	stats = ttmon_mt_in_stats(in);
	if (!c->err)
		c->err = convert_end(c, in);
	if (c->err) {
		fprintf(stderr, "ttmon %s: %s: %s: the file has what was written until then\n", args->name, args->out,
			c->err == -EFBIG ? "would be larger than --max-bytes" : strerror(-c->err));
		return TTMON_EXIT_ERROR;
	}
	ttmon_mt_pick_say(&args->pick, args->name, args->path[0]);
	if (c->records)
		snprintf(each, sizeof(each), ", %.2f bytes each", (double)ttmon_mt_out_bytes(out) / (double)c->records);
	fprintf(say, "%s: %s record%s, %s%s; the trace was %s, %.1f times as large%s\n", args->out,
		ttmon_fmt_count(count, sizeof(count), c->records), c->records == 1 ? "" : "s",
		ttmon_fmt_bytes(to, sizeof(to), ttmon_mt_out_bytes(out)), each,
		ttmon_fmt_bytes(from, sizeof(from), stats->bytes),
		(double)stats->bytes / (double)MAX(ttmon_mt_out_bytes(out), 1), interrupted ? "; interrupted" : "");
	return end ? TTMON_EXIT_NO : 0;
}

static int run_convert(const struct ttmon_cli *cli, void *ctx)
{
	_cleanup_free_ struct convert *c = NULL;
	struct ttmon_mt_args *args = ctx;
	int status = ttmon_mt_args_check(cli, args);

	if (status)
		return status;
	if (args->pass && !strcmp(args->out, "-"))
		return ttmon_cli_bad(cli, "--pass and -o - both use standard output");
	c = calloc(1, sizeof(*c));
	if (!c) {
		fprintf(stderr, "ttmon %s: out of memory\n", args->name);
		return TTMON_EXIT_ERROR;
	}
	c->args = args;
	c->picky = !ttmon_mt_pick_is_all(&args->pick);
	status = convert(c);
	ttmon_mt_pick_fini(&args->pick);
	return status;
}

const struct ttmon_cli_cmd ttmon_mt_cmd_convert = {
	.name = "ttmon memtrace convert",
	.summary = "convert to ttmon's own format, a hundredth of the size of NVBit's text or less",
	.args = "[OPTIONS] -o OUT.ttmt FILE|-",
	.about = "Converts a trace of any kind to ttmon's own format, which takes a hundredth of the size of NVBit's "
		 "text, or less.",
	TTMON_MT_ARGS(TTMON_MT_CONVERT),
	.run = run_convert,
};
