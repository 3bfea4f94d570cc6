// SPDX-License-Identifier: GPL-2.0-only
/*
 * args.c: the options of the commands of `ttmon memtrace` that read traces, in one table that shows
 * which command takes which option.
 */
#include "tools/cli/cmds.h"
#include "tools/memtrace/tool.h"

static int take_launch(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_mt_args *a = cli->opts;

	return ttmon_mt_pick_launches(&a->pick, arg)
		       ? 0
		       : ttmon_cli_bad(cli, "--launch needs launches (A, A-B, A- or -B), not \"%s\"", arg);
}

static int take_space(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_mt_args *a = cli->opts;

	return ttmon_mt_pick_spaces(&a->pick, arg)
		       ? 0
		       : ttmon_cli_bad(cli, "--space needs generic, global, shared and local, with commas, not \"%s\"",
				       arg);
}

static int take_lines(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_mt_args *a = cli->opts;
	char *end;
	unsigned long long v = strtoull(arg, &end, 10);

	if (*arg < '0' || *arg > '9' || *end || v > UINT32_MAX)
		return ttmon_cli_bad(cli, "--lines needs a number from 0 to %u, not \"%s\"", UINT32_MAX, arg);
	a->lines = v ? v : UINT64_MAX;
	return 0;
}

static int take_all(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_mt_args *a = cli->opts;

	(void)arg;
	a->all = true;
	a->lines = UINT64_MAX;
	return 0;
}

static int take_csv(struct ttmon_cli *cli, const char *arg)
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
	struct ttmon_mt_args *a = cli->opts;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!arg || !strcmp(arg, names[i].name)) {
			a->csv = names[i].section;
			return 0;
		}
	}
	return ttmon_cli_bad(cli, "--csv needs sites, launches, kernels or buffers, not \"%s\"", arg);
}

static int take_reuse(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_mt_args *a = cli->opts;

	if (!arg)
		a->sections |= TTMON_MT_SHOW_REUSE;
	else if (!strcmp(arg, "sampled"))
		a->reuse = TTMON_MT_REUSE_SAMPLED;
	else if (!strcmp(arg, "exact"))
		a->reuse = TTMON_MT_REUSE_EXACT;
	else if (!strcmp(arg, "off"))
		a->reuse = TTMON_MT_REUSE_OFF;
	else
		return ttmon_cli_bad(cli, "--reuse needs sampled, exact or off, not \"%s\"", arg);
	return 0;
}

#define A	struct ttmon_mt_args
#define REPORT	TTMON_MT_REPORT
#define DIFF	TTMON_MT_DIFF
#define CONVERT TTMON_MT_CONVERT
#define VIEW	TTMON_MT_VIEW
const struct ttmon_cli_opt ttmon_mt_options[TTMON_MT_OPTIONS] = {
	{ "output", 'o', "OUT", "output file; - is standard output",
	  "view writes its page with mode 0600, either completely or not at all.", TTMON_CLI_TEXT(A, out, ":file"),
	  .of = CONVERT | VIEW },
	{ "order", 0, NULL,
	  "keep the order of the records, which reuse distances need; takes some bytes more for each record",
	  "Without it records are grouped by instruction.", TTMON_CLI_FLAG(A, order), .of = CONVERT },
	{ "max-bytes", 0, "N", "end before the file becomes larger; with K, M, G or T",
	  "It then ends with an error, and the file has what was written until then.",
	  TTMON_CLI_SIZE(A, max_bytes, 0, INT64_MAX), .of = CONVERT },
	{ "plain", 0, NULL, "do not compress the data in the page: for browsers older than 2023",
	  "Several times as large.", TTMON_CLI_FLAG(A, plain), .of = VIEW },
	{ "lines", 'n', "N", "rows of a table (20), 0: all of them",
	  "It limits the findings too. JSON and CSV have all rows unless it is given.", TTMON_CLI_CALL(take_lines),
	  TTMON_CLI_GIVEN(A, has_lines), .of = REPORT | DIFF },
	{ "sites", 0, NULL, "only the instructions; several such options select several parts", NULL,
	  TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_SITES), .of = REPORT },
	{ "divergence", 0, NULL, "only requests by lanes, sectors, lines, pages and wavefronts", NULL,
	  TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_DIVERGENCE), .of = REPORT },
	{ "launches", 0, NULL, "the launches alone", NULL, TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_LAUNCHES),
	  .of = REPORT },
	{ "kernels", 0, NULL, "the kernels alone", NULL, TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_KERNELS),
	  .of = REPORT },
	{ "buffers", 0, NULL, "the buffers alone",
	  "It also shows the worst instructions of each buffer; by default they are shown for the first five buffers "
	  "if allocations are known.",
	  TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_BUFFERS), .of = REPORT },
	{ "heat", 0, NULL, "only the heat map", NULL, TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_HEAT), .of = REPORT },
	{ "reuse", 0, "=sampled|exact|off", "only the reuse distances, or how they are computed (sampled)",
	  "sampled: from a sample of the sectors, which is fast and usually enough; exact: from all of them; off: not "
	  "at all.",
	  TTMON_CLI_CALL(take_reuse), .words = "sampled exact off", .of = REPORT | VIEW },
	{ "all", 'a', NULL, "everything, all rows; for diff also sites whose cost is the same",
	  "It also shows each instruction by itself. Without it, instructions of one source line that do the same (an "
	  "unrolled loop) are one row, with xN behind the line.",
	  TTMON_CLI_CALL(take_all), .of = REPORT | DIFF },
	{ "kernel", 0, "GLOB", "only kernels whose name matches",
	  "The pattern (see glob(7)), for instance '*gemm*', is matched with the whole name, and with the name "
	  "without return type and parameters.",
	  TTMON_CLI_TEXT(A, pick.kernel, NULL) },
	{ "launch", 0, "A-B", "only these launches, by their ids: A, A-B, A- or -B",
	  "The ids are those of the trace; each context counts its own launches.", TTMON_CLI_CALL(take_launch) },
	{ "site", 0, "GLOB", "only these instructions, by their place (kernels.cu:65, +0x120) or opcode", NULL,
	  TTMON_CLI_TEXT(A, pick.site, NULL) },
	{ "space", 0, "LIST",
	  "only accesses to these spaces: generic,global,shared,local; global includes generic ones",
	  "Several are separated by commas. generic: the space is not known; such accesses count as global and are "
	  "selected with them (if the launch's windows are known, some of them turn out to be of shared or local "
	  "memory). If no record is selected, a line on standard error says so.",
	  TTMON_CLI_CALL(take_space), .words = "generic global shared local" },
	{ "efficiency", 0, "unique|requested", "of distinct bytes (default), or of all bytes that lanes request", NULL,
	  TTMON_CLI_WORD(A, requested, "unique requested"), .of = REPORT | DIFF | VIEW },
	{ "db", 0, "DB", "join with the allocations of a database (ttmond --dump-db)",
	  "The allocations name the buffers. If the format does not record which lanes are active (NVBit), a lane "
	  "whose address is in no allocation is taken as inactive, unless that is so for all lanes of the record. If "
	  "several allocations had the same address, the time of the launch decides between them, or its number, if "
	  "the database counted the launches of the process from its beginning: then MEMORY has a #. Otherwise the "
	  "one that lived longest is shown, with a ?.",
	  TTMON_CLI_TEXT(A, db, ":file"), .of = REPORT | VIEW },
	{ "live", 0, NULL, "join with the allocations of the running service",
	  "They are used as those of a database, as far as the service keeps them.", TTMON_CLI_FLAG(A, live),
	  .of = REPORT | VIEW },
	{ "socket", 's', "PATH", TTMON_SOCKET_HELP, NULL, TTMON_CLI_TEXT(A, socket, ":file"), .of = REPORT | VIEW },
	{ "pid", 'p', "PID", "only allocations of this process", NULL, TTMON_CLI_NUMBER(A, pid, 0, INT32_MAX),
	  .words = ":pid", .of = REPORT | VIEW },
	{ "opcodes", 0, "FILE", "names of the opcodes of raw records: lines ID OPCODE", NULL,
	  TTMON_CLI_TEXT(A, opcodes, ":file") },
	{ "pass", 0, NULL, "print the program's own output lines, which are mixed with those of the trace",
	  "They are printed as they come, before the report.", TTMON_CLI_FLAG(A, pass), .of = REPORT | CONVERT },
	{ "json", 'j', NULL, "for programs", NULL, TTMON_CLI_FLAG(A, json), .of = REPORT | DIFF },
	{ "csv", 0, "=WHAT", "CSV of the sites, launches, kernels or buffers, one row each",
	  "The first line has the names of the columns. The default is sites. An unknown value is empty.",
	  TTMON_CLI_CALL(take_csv), .words = "sites launches kernels buffers", .of = REPORT },
	{ "exit-code", 0, NULL, "exit status 1 if a figure differs",
	  "Any figure of any site counts. For sampled traces, for sums kept on the GPU, and if the launches are not "
	  "known, the figures of a request are compared: lanes, bytes, sectors, lines, wavefronts, reads and writes, "
	  "with the tolerance above.",
	  TTMON_CLI_FLAG(A, exit_code), .of = DIFF },
};

const struct ttmon_mt_args ttmon_mt_defaults = { .lines = 20,
						 .reuse = TTMON_MT_REUSE_SAMPLED,
						 .socket = TTMON_SOCKET_DEFAULT };

int ttmon_mt_args_check(const struct ttmon_cli *cli, struct ttmon_mt_args *a)
{
	unsigned int command = cli->cmd->is;

	a->name = cli->cmd->name + strlen("ttmon ");
	a->path[0] = cli->words[0];
	a->path[1] = command == DIFF ? cli->words[1] : NULL;
	if (command == DIFF && !strcmp(a->path[0], "-") && !strcmp(a->path[1], "-"))
		return ttmon_cli_bad(cli, "only one of the two can be standard input");
	if (a->json && a->csv)
		return ttmon_cli_bad(cli, "--json and --csv cannot be used together");
	if (a->db && a->live)
		return ttmon_cli_bad(cli, "--db and --live cannot be used together");
	if (a->pid && !a->db && !a->live)
		return ttmon_cli_bad(cli, "--pid selects allocations, so it needs --db or --live");
	if ((command == CONVERT || command == VIEW) && !a->out)
		return ttmon_cli_bad(cli, "the output file is missing: -o OUT.%s", command == VIEW ? "html" : "ttmt");
	return 0;
}
