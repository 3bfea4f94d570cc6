// SPDX-License-Identifier: GPL-2.0-only
/* args.c: the options of `ttmon memtrace`'s commands, in one table: which command takes which. */
#include <getopt.h>

#include "lib/read/client.h"
#include "tools/memtrace/tool.h"

#define ANY (TTMON_MT_REPORT | TTMON_MT_PRINT | TTMON_MT_CONVERT | TTMON_MT_DIFF | TTMON_MT_VIEW)

enum {
	OPT_KERNEL = 256,
	OPT_LAUNCH,
	OPT_SITE,
	OPT_SPACE,
	OPT_OPCODES,
	OPT_CSV,
	OPT_SITES,
	OPT_LAUNCHES,
	OPT_KERNELS,
	OPT_BUFFERS,
	OPT_HEAT,
	OPT_DIVERGENCE,
	OPT_DB,
	OPT_LIVE,
	OPT_EFFICIENCY,
	OPT_REUSE,
	OPT_PASS,
	OPT_ORDER,
	OPT_MAX_BYTES,
	OPT_EXIT_CODE,
	OPT_PLAIN,
};

static const struct {
	unsigned int commands;
	struct option o;
} table[] = {
	{ ANY, { "kernel", required_argument, NULL, OPT_KERNEL } },
	{ ANY, { "launch", required_argument, NULL, OPT_LAUNCH } },
	{ ANY, { "site", required_argument, NULL, OPT_SITE } },
	{ ANY, { "space", required_argument, NULL, OPT_SPACE } },
	{ ANY, { "opcodes", required_argument, NULL, OPT_OPCODES } },
	{ ANY, { "help", no_argument, NULL, 'h' } },
	{ TTMON_MT_REPORT | TTMON_MT_DIFF, { "json", no_argument, NULL, 'j' } },
	{ TTMON_MT_REPORT | TTMON_MT_DIFF, { "lines", required_argument, NULL, 'n' } },
	{ TTMON_MT_REPORT | TTMON_MT_DIFF | TTMON_MT_VIEW, { "efficiency", required_argument, NULL, OPT_EFFICIENCY } },
	{ TTMON_MT_REPORT | TTMON_MT_DIFF, { "all", no_argument, NULL, 'a' } },
	{ TTMON_MT_REPORT, { "csv", optional_argument, NULL, OPT_CSV } },
	{ TTMON_MT_REPORT, { "sites", no_argument, NULL, OPT_SITES } },
	{ TTMON_MT_REPORT, { "launches", no_argument, NULL, OPT_LAUNCHES } },
	{ TTMON_MT_REPORT, { "kernels", no_argument, NULL, OPT_KERNELS } },
	{ TTMON_MT_REPORT, { "buffers", no_argument, NULL, OPT_BUFFERS } },
	{ TTMON_MT_REPORT, { "heat", no_argument, NULL, OPT_HEAT } },
	{ TTMON_MT_REPORT, { "divergence", no_argument, NULL, OPT_DIVERGENCE } },
	{ TTMON_MT_REPORT | TTMON_MT_VIEW, { "reuse", optional_argument, NULL, OPT_REUSE } },
	{ TTMON_MT_REPORT | TTMON_MT_VIEW, { "db", required_argument, NULL, OPT_DB } },
	{ TTMON_MT_REPORT | TTMON_MT_VIEW, { "live", no_argument, NULL, OPT_LIVE } },
	{ TTMON_MT_REPORT | TTMON_MT_VIEW, { "socket", required_argument, NULL, 's' } },
	{ TTMON_MT_REPORT | TTMON_MT_VIEW, { "pid", required_argument, NULL, 'p' } },
	{ TTMON_MT_REPORT | TTMON_MT_CONVERT, { "pass", no_argument, NULL, OPT_PASS } },
	{ TTMON_MT_CONVERT | TTMON_MT_VIEW, { "output", required_argument, NULL, 'o' } },
	{ TTMON_MT_CONVERT, { "order", no_argument, NULL, OPT_ORDER } },
	{ TTMON_MT_CONVERT, { "max-bytes", required_argument, NULL, OPT_MAX_BYTES } },
	{ TTMON_MT_DIFF, { "exit-code", no_argument, NULL, OPT_EXIT_CODE } },
	{ TTMON_MT_VIEW, { "plain", no_argument, NULL, OPT_PLAIN } },
};

static int bad(const struct ttmon_mt_args *a, const char *what, const char *arg)
{
	char text[200];

	fprintf(stderr, "ttmon %s: %s%s, see ttmon %s --help\n", a->name, what, ttmon_fmt_text(text, sizeof(text), arg),
		a->name);
	return -EINVAL;
}

/* A number of at most max; with K, M or G behind it where a size is meant. */
static int number(const struct ttmon_mt_args *a, const char *arg, bool size, uint64_t max, uint64_t *ret)
{
	unsigned int shift = 0;
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(arg, &end, 10);
	if (size && *end) {
		const char *units = "KMGT", *unit = strchr(units, *end);

		shift = unit ? 10 * (unsigned int)(unit - units + 1) : 0;
		end += unit != NULL;
	}
	if (errno || *arg < '0' || *arg > '9' || *end || v > max >> shift)
		return bad(a,
			   size ? "not a size (a number, with K, M, G or T): "
				: "not a number that this option takes: ",
			   arg);
	*ret = (uint64_t)v << shift;
	return 0;
}

static int take_csv(struct ttmon_mt_args *a, const char *arg)
{
	static const struct {
		const char *name;
		unsigned int section;
	} names[] = {
		{ "sites", TTMON_MT_SHOW_SITES },
		{ "launches", TTMON_MT_SHOW_LAUNCHES },
		{ "kernels", TTMON_MT_SHOW_KERNELS },
		{ "buffers", TTMON_MT_SHOW_BUFFERS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!arg || !strcmp(arg, names[i].name)) {
			a->csv = names[i].section;
			return 0;
		}
	}
	return bad(a, "--csv is of sites, launches, kernels or buffers, not ", arg);
}

static int take_reuse(struct ttmon_mt_args *a, const char *arg)
{
	if (!arg)
		a->sections |= TTMON_MT_SHOW_REUSE;
	else if (!strcmp(arg, "sampled"))
		a->reuse = TTMON_MT_REUSE_SAMPLED;
	else if (!strcmp(arg, "exact"))
		a->reuse = TTMON_MT_REUSE_EXACT;
	else if (!strcmp(arg, "off"))
		a->reuse = TTMON_MT_REUSE_OFF;
	else
		return bad(a, "--reuse is sampled, exact or off, not ", arg);
	return 0;
}

static int take_value(struct ttmon_mt_args *a, int c, const char *arg)
{
	uint64_t v = 0;
	int err;

	switch (c) {
	case OPT_KERNEL:
		a->pick.kernel = arg;
		return 0;
	case OPT_LAUNCH:
		return ttmon_mt_pick_launches(&a->pick, arg) ? 0 : bad(a, "not launches (A, A-B, A- or -B): ", arg);
	case OPT_SITE:
		a->pick.site = arg;
		return 0;
	case OPT_SPACE:
		return ttmon_mt_pick_spaces(&a->pick, arg)
			       ? 0
			       : bad(a, "spaces are generic, global, shared and local, with commas, not ", arg);
	case OPT_OPCODES:
		a->opcodes = arg;
		return 0;
	case OPT_CSV:
		return take_csv(a, arg);
	case OPT_REUSE:
		return take_reuse(a, arg);
	case OPT_EFFICIENCY:
		a->requested = !strcmp(arg, "requested");
		return a->requested || !strcmp(arg, "unique")
			       ? 0
			       : bad(a, "--efficiency is unique or requested, not ", arg);
	case OPT_DB:
		a->db = arg;
		return 0;
	case 's':
		a->socket = arg;
		return 0;
	case 'o':
		a->out = arg;
		return 0;
	case 'p':
		err = number(a, arg, false, INT32_MAX, &v);
		a->pid = (uint32_t)v;
		return err;
	case 'n':
		err = number(a, arg, false, UINT32_MAX, &v);
		a->lines = v ? v : UINT64_MAX;
		a->has_lines = true;
		return err;
	case OPT_MAX_BYTES:
		return number(a, arg, true, INT64_MAX, &a->max_bytes);
	default:
		return -ENOENT;
	}
}

static void take_flag(struct ttmon_mt_args *a, int c)
{
	switch (c) {
	case 'j':
		a->json = true;
		break;
	case 'a':
		a->all = true;
		a->lines = UINT64_MAX;
		break;
	case OPT_SITES:
		a->sections |= TTMON_MT_SHOW_SITES;
		break;
	case OPT_LAUNCHES:
		a->sections |= TTMON_MT_SHOW_LAUNCHES;
		break;
	case OPT_KERNELS:
		a->sections |= TTMON_MT_SHOW_KERNELS;
		break;
	case OPT_BUFFERS:
		a->sections |= TTMON_MT_SHOW_BUFFERS;
		break;
	case OPT_HEAT:
		a->sections |= TTMON_MT_SHOW_HEAT;
		break;
	case OPT_DIVERGENCE:
		a->sections |= TTMON_MT_SHOW_DIVERGENCE;
		break;
	case OPT_LIVE:
		a->live = true;
		break;
	case OPT_PASS:
		a->pass = true;
		break;
	case OPT_ORDER:
		a->order = true;
		break;
	case OPT_PLAIN:
		a->plain = true;
		break;
	default:
		a->exit_code = true;
		break;
	}
}

static int check(struct ttmon_mt_args *a, enum ttmon_mt_command command, int argc, char **argv)
{
	int wanted = command == TTMON_MT_DIFF ? 2 : 1;

	if (argc - optind < wanted)
		return bad(a, wanted == 2 ? "two traces are wanted" : "a trace is wanted, or - for standard input", "");
	if (argc - optind > wanted)
		return bad(a, wanted == 2 ? "takes two traces, not also " : "takes one trace, not also ",
			   argv[optind + wanted]);
	a->path[0] = argv[optind];
	a->path[1] = wanted == 2 ? argv[optind + 1] : NULL;
	if (wanted == 2 && !strcmp(a->path[0], "-") && !strcmp(a->path[1], "-"))
		return bad(a, "only one of the two can be standard input", "");
	if (a->json && a->csv)
		return bad(a, "--json and --csv are two forms: one of them is wanted", "");
	if (a->db && a->live)
		return bad(a, "allocations are of --db or of --live, not both", "");
	if (a->pid && !a->db && !a->live)
		return bad(a, "--pid chooses among allocations: --db or --live is missing", "");
	if (command == TTMON_MT_CONVERT && !a->out)
		return bad(a, "where to is missing: -o OUT.ttmt", "");
	if (command == TTMON_MT_VIEW && !a->out)
		return bad(a, "where to is missing: -o OUT.html", "");
	return 0;
}

int ttmon_mt_args_parse(int argc, char **argv, enum ttmon_mt_command command, const char *usage,
			struct ttmon_mt_args *ret)
{
	static const char *const names[] = { "memtrace", "memtrace print", "memtrace convert", "memtrace diff",
					     "memtrace view" };
	struct ttmon_mt_args a = { .name = names[__builtin_ctz(command)],
				   .lines = 20,
				   .reuse = TTMON_MT_REUSE_SAMPLED,
				   .socket = TTMON_SOCKET_DEFAULT };
	char letters[2 * ARRAY_SIZE(table) + 2] = ":", name[] = "-?";
	struct option longs[ARRAY_SIZE(table) + 1] = { 0 };
	size_t n = 0, len = 1;
	int c, err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (!(table[i].commands & command))
			continue;
		longs[n++] = table[i].o;
		if (table[i].o.val >= 256)
			continue;
		letters[len++] = (char)table[i].o.val;
		if (table[i].o.has_arg)
			letters[len++] = ':';
	}
	optind = 0;
	opterr = 0;
	while (!err && (c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return -ECANCELED;
		}
		if (c == ':' || c == '?') {
			name[1] = (char)optopt;
			return bad(&a, c == ':' ? "a value is missing after " : "no such option: ",
				   optopt && optopt < 256 ? name : argv[optind - 1]);
		}
		err = take_value(&a, c, optarg);
		if (err == -ENOENT) {
			take_flag(&a, c);
			err = 0;
		}
	}
	if (!err)
		err = check(&a, command, argc, argv);
	if (!err)
		*ret = a;
	return err;
}
