// SPDX-License-Identifier: GPL-2.0-only
/* record.c: `ttmon memtrace record`: options, where records go, and what is said at the end. */
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "tools/cli/cmds.h"
#include "tools/memtrace/mt.h"
#include "tools/memtrace/record.h"
#include "tools/memtrace/tool.h"
#include "tools/cli/show.h"
#include "lib/base/fmt.h"
#include "version.h"

#define SEVERAL 1024 /* so far back one is looked for again */

static const char usage[] =
	"usage: ttmon memtrace record [OPTIONS] [--] COMMAND [ARGUMENTS]\n\n"
	"Runs a program that uses CUDA and records which memory its kernels access: libttmon-memtrace.so is loaded into it and rewrites\n"
	"the kernels whose PTX is there. The exit status is the command's.\n\n"
	"  -o, --output FILE      all of it into FILE, for ttmon memtrace FILE\n"
	"      --report           print the report at the end (without -o that is what is done)\n"
	"      --mode MODE        stream: every access; aggregate: sums for each instruction, kept on the GPU, far cheaper (stream)\n"
	"      --kernel GLOB      kernels whose name matches; may be given again (all)\n"
	"      --launches A-B     launches by number, from 0; A- and -B are fine (all)\n"
	"      --instr A-B        instructions of a kernel by number, from 0 (all)\n"
	"      --sample N         one block in N (1)\n"
	"      --space LIST       of global,shared,local (global,shared)\n"
	"      --all-modules      NVIDIA's own libraries too\n"
	"      --ring BYTES       of the buffer of each SM, with K or M behind it (1M)\n"
	"      --order            keep the order of arrival in FILE: reuse distances need it\n"
	"      --max-bytes N      of FILE, with K, M or G behind it; then nothing more is written\n"
	"  -h, --help             this text\n\n"
	"TTMON_MEMTRACE_LIB says where libttmon-memtrace.so is, where it is not beside ttmon.\n";

enum {
	OPT_REPORT = 256,
	OPT_MODE,
	OPT_KERNEL,
	OPT_LAUNCHES,
	OPT_INSTR,
	OPT_SAMPLE,
	OPT_SPACE,
	OPT_ALL,
	OPT_RING,
	OPT_ORDER,
	OPT_MAX
};

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

static int bad(const char *what, const char *arg)
{
	ttmon_mt_record_say("%s%s, see ttmon memtrace record --help", what, arg);
	return -EINVAL;
}

static int set(struct ttmon_mt_record *r, const char *name, const char *value)
{
	size_t i;

	for (i = 0; i < r->nr_env && strcmp(r->env[i].name, name); i++)
		;
	if (i == ARRAY_SIZE(r->env))
		return -E2BIG;
	r->env[i].name = name;
	r->env[i].value = value;
	r->nr_env = MAX(r->nr_env, i + 1);
	return 0;
}

static int size(const char *arg, unsigned long long max, uint64_t *ret)
{
	static const char units[] = "KMGT";
	unsigned long long v;
	const char *unit;
	char *end;

	errno = 0;
	v = strtoull(arg, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (end == arg || *arg == '-' || errno || (*end && (!unit || end[1])))
		return bad("not a size in bytes: ", arg);
	for (const char *u = units; unit && u <= unit; u++)
		v = v > ULLONG_MAX / 1024 ? ULLONG_MAX : v * 1024;
	if (!v || v > max)
		return bad("not a size that is possible: ", arg);
	*ret = v;
	return 0;
}

/* "A-B", "A-", "-B", "A". */
static int range(struct ttmon_mt_record *r, const char *name, const char *arg)
{
	const char *dash = strchr(arg, '-');
	size_t digits = strspn(arg, "0123456789"), more = dash ? strspn(dash + 1, "0123456789") : 0;
	bool fine = dash ? dash == arg + digits && !dash[1 + more] && digits + more : digits && !arg[digits];

	if (!fine || digits > 18 || more > 18 ||
	    (digits && more && strtoull(arg, NULL, 10) > strtoull(dash + 1, NULL, 10)))
		return bad("not a range such as 0-9: ", arg);
	return set(r, name, arg);
}

static int spaces(struct ttmon_mt_record *r, const char *arg)
{
	static const char *const names[] = { "global", "shared", "local" };

	for (const char *p = arg;; p++) {
		size_t n = strcspn(p, ","), i;

		for (i = 0; i < ARRAY_SIZE(names) && (strlen(names[i]) != n || memcmp(p, names[i], n)); i++)
			;
		if (i == ARRAY_SIZE(names))
			return bad("not a list of global, shared and local: ", arg);
		p += n;
		if (!*p)
			return set(r, "TTMON_MEMTRACE_SPACES", arg);
	}
}

static int take_kernel(struct ttmon_mt_record *r, const char *arg)
{
	size_t used = strlen(r->kernels);

	/* The library takes them with commas between. */
	if (!*arg || strchr(arg, ','))
		return bad("a name without a comma is wanted (a ? matches it): ", arg);
	if (used + 1 + strlen(arg) >= sizeof(r->kernels))
		return bad("too many kernels with ", arg);
	snprintf(r->kernels + used, sizeof(r->kernels) - used, "%s%s", used ? "," : "", arg);
	return set(r, "TTMON_MEMTRACE_KERNELS", r->kernels);
}

static int take_option(struct ttmon_mt_record *r, int c, const char *arg)
{
	uint64_t v = 0;
	char *end;
	int err;

	switch (c) {
	case 'o':
		r->path = arg;
		return *arg && strcmp(arg, "-")
			       ? 0
			       : bad("a file is wanted after -o: standard output is the command's", "");
	case OPT_REPORT:
		r->report = true;
		return 0;
	case OPT_MODE:
		if (strcmp(arg, "stream") && strcmp(arg, "aggregate"))
			return bad("stream or aggregate is wanted, not ", arg);
		return set(r, "TTMON_MEMTRACE_MODE", arg);
	case OPT_KERNEL:
		return take_kernel(r, arg);
	case OPT_LAUNCHES:
		return range(r, "TTMON_MEMTRACE_LAUNCHES", arg);
	case OPT_INSTR:
		return range(r, "TTMON_MEMTRACE_INSTR", arg);
	case OPT_SAMPLE:
		v = strtoull(arg, &end, 10);
		if (end == arg || *end || *arg == '-' || !v || v > 1u << 24)
			return bad("not a number of blocks (1-16777216): ", arg);
		return set(r, "TTMON_MEMTRACE_SAMPLE", arg);
	case OPT_SPACE:
		return spaces(r, arg);
	case OPT_ALL:
		return set(r, "TTMON_MEMTRACE_ALL", "1");
	case OPT_RING:
		err = size(arg, (unsigned long long)TTMON_MTC_MAX_UNITS * TTMON_MTC_UNIT, &v);
		if (err)
			return err;
		if (v < 4096)
			return bad("not a size that is possible: ", arg);
		snprintf(r->ring, sizeof(r->ring), "%llu", (unsigned long long)v);
		return set(r, "TTMON_MEMTRACE_RING", r->ring);
	case OPT_ORDER:
		r->file.order = true;
		return 0;
	default:
		return size(arg, INT64_MAX, &r->file.max);
	}
}

static int parse(int argc, char **argv, struct ttmon_mt_record *r)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "report", no_argument, NULL, OPT_REPORT },
		{ "mode", required_argument, NULL, OPT_MODE },
		{ "kernel", required_argument, NULL, OPT_KERNEL },
		{ "launches", required_argument, NULL, OPT_LAUNCHES },
		{ "instr", required_argument, NULL, OPT_INSTR },
		{ "sample", required_argument, NULL, OPT_SAMPLE },
		{ "space", required_argument, NULL, OPT_SPACE },
		{ "all-modules", no_argument, NULL, OPT_ALL },
		{ "ring", required_argument, NULL, OPT_RING },
		{ "order", no_argument, NULL, OPT_ORDER },
		{ "max-bytes", required_argument, NULL, OPT_MAX },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c, err;

	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:o:h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return -ECANCELED;
		}
		if (c == '?' || c == ':')
			return bad(c == '?' ? "no such option: " : "a value is missing: ", argv[optind - 1]);
		err = take_option(r, c, optarg);
		if (err)
			return err;
	}
	if (optind >= argc)
		return bad("which program?", "");
	if (!r->path && (r->file.order || r->file.max))
		return bad("without -o there is no file for ", r->file.order ? "--order" : "--max-bytes");
	r->cmd = argv + optind;
	r->report |= !r->path;
	return 0;
}

/* ---- records ---- */

/* The first error of the file ends the writing, not the command. */
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

/* Was there something to record? Without a reason and without a launch it was only loaded. */
static bool wanted(const struct ttmon_mt_kernel *k)
{
	return k->recorded || k->launches || *k->why;
}

/* Kernels that are such: each context and process tells of its own, one is counted once. */
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
			    r->stats.dropped ? " for want of room" : "", count_kernels(dict, recorded), ran,
			    ran == 1 ? "" : "s", idle, file);
	if (r->stats.malformed)
		ttmon_mt_record_say("%s records or names were of no use",
				    ttmon_fmt_count(c, sizeof(c), r->stats.malformed));
	ttmon_mt_missing(dict, false, say_one, NULL);
}

static int end_file(struct ttmon_mt_record *r)
{
	if (!r->path)
		return 0;
	if (!r->out_err)
		file_failed(r, ttmon_mt_out_end(r->out, &r->dict.dict, &r->stats));
	/* Quotas and network file systems tell of a full disk only here. */
	if (close(TAKE_FD(r->fd)) && !r->out_err)
		file_failed(r, -errno);
	return r->out_err == -EFBIG && r->file.max ? 0 : r->out_err;
}

/* Can it be written? What it holds stays until the command has been started. */
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

/* As `ttmon memtrace FILE` prints it without options. */
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

int ttmon_mt_cmd_record(int argc, char **argv)
{
	static struct ttmon_mt_record r = { .fd = -1 };
	int status, err = parse(argc, argv, &r);

	if (err)
		return err == -ECANCELED ? 0 : TTMON_EXIT_ERROR;
	status = record(&r);
	ttmon_mt_out_free(r.out);
	ttmon_mt_an_free(r.an);
	ttmon_mt_dict_fini(&r.dict);
	if (r.fd >= 0)
		close(r.fd);
	return status;
}
