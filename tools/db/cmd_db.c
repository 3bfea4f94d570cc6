// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_db.c: `ttmon db check|match|schema|show`: the commands, and the schema itself: the program
 * contains docs/ttmon-db.schema.json (the compiler runs in the top folder; the Makefile names the file
 * as a prerequisite).
 */
#include "tools/cli/cmds.h"
#include "tools/db/db_tool.h"

extern const char ttmon_db_schema_start[], ttmon_db_schema_end[];

__asm__(".pushsection .rodata\n"
	".global ttmon_db_schema_start\n"
	".global ttmon_db_schema_end\n"
	"ttmon_db_schema_start:\n"
	".incbin \"docs/ttmon-db.schema.json\"\n"
	"ttmon_db_schema_end:\n"
	".popsection\n");

#define FILE_IS "FILE is what ttmond --dump-db wrote, plain or .gz; - is standard input."

static int check(const struct ttmon_cli *cli, void *opts)
{
	(void)opts;
	return ttmon_db_tool_check(cli->words[0]);
}

static const struct ttmon_cli_cmd cmd_check = {
	.name = "ttmon db check",
	.summary = "check that the database is complete and consistent: exit status 0 or 1",
	.args = "FILE",
	.about = "Checks that the database is complete and consistent: exit status 0 or 1.\n" FILE_IS,
	.min_words = 1,
	.max_words = 1,
	.words = ":file",
	.run = check,
};

struct show_opts {
	const char *period;
};

static int show(const struct ttmon_cli *cli, void *ctx)
{
	const struct show_opts *o = ctx;

	if (o->period && cli->nr_words > 1)
		return ttmon_cli_bad(cli, "--period is of the whole file, not of one allocation");
	if (o->period)
		return ttmon_db_tool_show_period(cli->words[0], o->period);
	return cli->nr_words > 1 ? ttmon_db_tool_show_alloc(cli->words[0], cli->words[1])
				 : ttmon_db_tool_show(cli->words[0]);
}

static const struct ttmon_cli_opt show_options[] = {
	{ "period", 0, "LABEL|N|LABEL:N", "show what is moved in each period between checkpoints, or in one period",
	  NULL, TTMON_CLI_TEXT(struct show_opts, period, NULL) },
};
static const struct ttmon_cli_cmd cmd_show = {
	.name = "ttmon db show",
	.summary = "what is in it: processes, pinned memory, transfers, advice",
	.args = "FILE                          what is in it: processes, pinned memory, transfers, advice\n"
		"FILE ID                       one allocation with its events and heat\n"
		"FILE --period LABEL|N|LABEL:N",
	.about = FILE_IS,
	TTMON_CLI_OPTS(show_options),
	.size = sizeof(struct show_opts),
	.min_words = 1,
	.max_words = 2,
	.words = ":file",
	.run = show,
};

static int schema(const struct ttmon_cli *cli, void *opts)
{
	size_t n = (size_t)(ttmon_db_schema_end - ttmon_db_schema_start);

	(void)cli;
	(void)opts;
	if (fwrite(ttmon_db_schema_start, 1, n, stdout) != n || fflush(stdout)) {
		fprintf(stderr, "ttmon: cannot write: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}

static const struct ttmon_cli_cmd cmd_schema = {
	.name = "ttmon db schema",
	.summary = "the JSON Schema of the database",
	.args = "",
	.about = "The JSON Schema of the database.",
	.run = schema,
};

static const struct ttmon_cli_opt options[] = {
	{ "json", 'j', NULL, "for programs, of match", NULL, TTMON_CLI_PASSED },
};
const struct ttmon_cli_cmd ttmon_cmd_db = {
	.name = "ttmon db",
	.summary = "check and show an allocation database (ttmond --dump-db)",
	.args = "COMMAND FILE ...",
	.about = FILE_IS,
	.notes = "ttmon db COMMAND --help: the options of a command.",
	TTMON_CLI_OPTS(options),
	.subs = (const struct ttmon_cli_cmd *const[]){ &cmd_check, &cmd_show, &ttmon_db_cmd_match, &cmd_schema, NULL },
};
