// SPDX-License-Identifier: GPL-2.0-only
/*
 * args.c: the options of `ttmon memtrace`'s commands that read traces, in one table: which command
 * takes which.
 */
#include "tools/cli/cmds.h"
#include "tools/memtrace/tool.h"

static int take_launch(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_mt_args *a = cli->opts;

	return ttmon_mt_pick_launches(&a->pick, arg)
		       ? 0
		       : ttmon_cli_bad(cli, "--launch wants launches (A, A-B, A- or -B), not \"%s\"", arg);
}

static int take_space(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_mt_args *a = cli->opts;

	return ttmon_mt_pick_spaces(&a->pick, arg)
		       ? 0
		       : ttmon_cli_bad(cli, "--space wants generic, global, shared and local, with commas, not \"%s\"",
				       arg);
}

static int take_lines(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_mt_args *a = cli->opts;
	char *end;
	unsigned long long v = strtoull(arg, &end, 10);

	if (*arg < '0' || *arg > '9' || *end || v > UINT32_MAX)
		return ttmon_cli_bad(cli, "--lines wants a number from 0 to %u, not \"%s\"", UINT32_MAX, arg);
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
	return ttmon_cli_bad(cli, "--csv wants sites, launches, kernels or buffers, not \"%s\"", arg);
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
		return ttmon_cli_bad(cli, "--reuse wants sampled, exact or off, not \"%s\"", arg);
	return 0;
}

#define A	struct ttmon_mt_args
#define REPORT	TTMON_MT_REPORT
#define DIFF	TTMON_MT_DIFF
#define CONVERT TTMON_MT_CONVERT
#define VIEW	TTMON_MT_VIEW
const struct ttmon_cli_opt ttmon_mt_options[TTMON_MT_OPTIONS] = {
	{ "output", 'o', "OUT", "where to; - is standard output",
	  "The page of view is made with mode 0600, whole or not at all.", TTMON_CLI_TEXT(A, out, ":file"),
	  .of = CONVERT | VIEW },
	{ "order", 0, NULL, "keep the order in which records came: reuse distances need it; some bytes a record",
	  "Without it records are grouped by instruction.", TTMON_CLI_FLAG(A, order), .of = CONVERT },
	{ "max-bytes", 0, "N", "end where the file would become larger; with K, M, G or T",
	  "Then it ends with an error, and the file has what was written.", TTMON_CLI_SIZE(A, max_bytes, 0, INT64_MAX),
	  .of = CONVERT },
	{ "plain", 0, NULL, "not compressed inside: for browsers from before 2023", "Several times as large.",
	  TTMON_CLI_FLAG(A, plain), .of = VIEW },
	{ "lines", 'n', "N", "rows of a table (20), 0: all of them",
	  "Of findings too; of JSON and CSV all if it is not given.", TTMON_CLI_CALL(take_lines),
	  TTMON_CLI_GIVEN(A, has_lines), .of = REPORT | DIFF },
	{ "sites", 0, NULL, "the instructions alone, or with the others of these parts that are named", NULL,
	  TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_SITES), .of = REPORT },
	{ "divergence", 0, NULL, "requests by lanes, sectors, lines, pages and wavefronts alone", NULL,
	  TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_DIVERGENCE), .of = REPORT },
	{ "launches", 0, NULL, "the launches alone", NULL, TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_LAUNCHES),
	  .of = REPORT },
	{ "kernels", 0, NULL, "the kernels alone", NULL, TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_KERNELS),
	  .of = REPORT },
	{ "buffers", 0, NULL, "the buffers alone",
	  "With the worst instructions of each buffer that is shown, else of the first five where allocations are known.",
	  TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_BUFFERS), .of = REPORT },
	{ "heat", 0, NULL, "the heat map alone", NULL, TTMON_CLI_BITS(A, sections, TTMON_MT_SHOW_HEAT), .of = REPORT },
	{ "reuse", 0, "=sampled|exact|off", "the reuse distances alone, or how they are found (sampled)",
	  "For a sample of the sectors, which is enough for most and costs little; for all of them; or not at all.",
	  TTMON_CLI_CALL(take_reuse), .words = "sampled exact off", .of = REPORT | VIEW },
	{ "all", 'a', NULL, "everything, all rows; of diff also sites that cost the same",
	  "And each instruction by itself: without it those of one source line that do the same (a loop that was unrolled) are one row, with xN behind the line.",
	  TTMON_CLI_CALL(take_all), .of = REPORT | DIFF },
	{ "kernel", 0, "GLOB", "kernels whose name is like this alone",
	  "Whose whole name, or name without return type and parameters, is like this (as in glob(7)), for instance '*gemm*'.",
	  TTMON_CLI_TEXT(A, pick.kernel, NULL) },
	{ "launch", 0, "A-B", "these launches alone, by their ids: A, A-B, A- or -B",
	  "By the ids of the trace; contexts count by themselves.", TTMON_CLI_CALL(take_launch) },
	{ "site", 0, "GLOB", "these instructions alone, by their place (kernels.cu:65, +0x120) or their opcode", NULL,
	  TTMON_CLI_TEXT(A, pick.site, NULL) },
	{ "space", 0, "LIST", "accesses to generic,global,shared,local alone; global: generic ones too",
	  "Several with commas. generic: the space is not known; such accesses count as global and are chosen with them (where the launch's windows are known, some then turn out to be of shared or local memory). Where a choice leaves no record, a line on standard error says so.",
	  TTMON_CLI_CALL(take_space), .words = "generic global shared local" },
	{ "efficiency", 0, "unique|requested", "of distinct bytes (unless it is given), or of all that lanes asked for",
	  NULL, TTMON_CLI_WORD(A, requested, "unique requested"), .of = REPORT | DIFF | VIEW },
	{ "db", 0, "DB", "join with the allocations of a database (ttmond --dump-db)",
	  "They name the buffers. Lanes that the format does not tell (NVBit) are taken as off where they lie in no allocation, unless all of a record do. Of several allocations at one address the time of the launch says which one it was, or its number, where the database counted the launches of the process from its beginning: then MEMORY has a #. Else it is the one that lived longest, with a ?.",
	  TTMON_CLI_TEXT(A, db, ":file"), .of = REPORT | VIEW },
	{ "live", 0, NULL, "or with those of the running service", "In the same way, as far as it keeps them.",
	  TTMON_CLI_FLAG(A, live), .of = REPORT | VIEW },
	{ "socket", 's', "PATH", TTMON_SOCKET_HELP, NULL, TTMON_CLI_TEXT(A, socket, ":file"), .of = REPORT | VIEW },
	{ "pid", 'p', "PID", "allocations of this process alone", NULL, TTMON_CLI_NUMBER(A, pid, 0, INT32_MAX),
	  .words = ":pid", .of = REPORT | VIEW },
	{ "opcodes", 0, "FILE", "names of the opcodes of raw records: lines ID OPCODE", NULL,
	  TTMON_CLI_TEXT(A, opcodes, ":file") },
	{ "pass", 0, NULL, "print the program's own lines, which stand between those of the trace",
	  "As they come; the report follows them.", TTMON_CLI_FLAG(A, pass), .of = REPORT | CONVERT },
	{ "json", 'j', NULL, "for programs", NULL, TTMON_CLI_FLAG(A, json), .of = REPORT | DIFF },
	{ "csv", 0, "=WHAT", "a row for each of the sites, launches, kernels or buffers",
	  "With a line of names; sites if nothing is said. What is not known is empty.", TTMON_CLI_CALL(take_csv),
	  .words = "sites launches kernels buffers", .of = REPORT },
	{ "exit-code", 0, NULL, "exit status 1 where a figure differs",
	  "Any figure of any site. Of samples, of sums that the GPU kept, which are of as many launches as there were, and where launches are not known, the figures of a request count: lanes, bytes, sectors, lines, wavefronts, reads and writes, as far apart as above.",
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
		return ttmon_cli_bad(cli, "--json and --csv are two forms: one of them is wanted");
	if (a->db && a->live)
		return ttmon_cli_bad(cli, "allocations are of --db or of --live, not both");
	if (a->pid && !a->db && !a->live)
		return ttmon_cli_bad(cli, "--pid chooses among allocations: --db or --live is missing");
	if ((command == CONVERT || command == VIEW) && !a->out)
		return ttmon_cli_bad(cli, "where to is missing: -o OUT.%s", command == VIEW ? "html" : "ttmt");
	return 0;
}
