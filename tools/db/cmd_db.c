// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_db.c: `ttmon db check|match|schema|show`: the entry point, and the schema itself, which is
 * docs/ttmon-db.schema.json put into the program as it is (the compiler runs in the top folder; the Makefile names
 * the file as a prerequisite).
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

int ttmon_db_tool_schema(void)
{
	size_t n = (size_t)(ttmon_db_schema_end - ttmon_db_schema_start);

	if (fwrite(ttmon_db_schema_start, 1, n, stdout) != n || fflush(stdout)) {
		fprintf(stderr, "ttmon: cannot write: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}

static void usage(FILE *f)
{
	fputs("usage: ttmon db check FILE        is the database whole and consistent? exit status 0 or 1\n"
	      "       ttmon db show FILE         what is in it: processes, pinned memory, transfers, advice\n"
	      "       ttmon db show FILE ID      one allocation with its events and heat\n"
	      "       ttmon db show FILE --period LABEL|N|LABEL:N\n"
	      "                                  what is moved in each period between checkpoints, or in one\n"
	      "       ttmon db match A B         how much of what run B allocated is found again in run A, and how surely\n"
	      "       ttmon db schema            the JSON Schema of the database\n"
	      "\n"
	      "options of match:\n"
	      "  -m, --min PERCENT  exit status 1 where less of B's allocations was found\n"
	      "  -j, --json         with each allocation of B and the ids of those in A that it can be\n"
	      "\n"
	      "FILE is what ttmond --dump-db wrote, plain or .gz; - is standard input.\n",
	      f);
}

int cmd_db(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(verb, "check") == 0 && argc == 3)
		return ttmon_db_tool_check(argv[2]);
	if (strcmp(verb, "match") == 0)
		return ttmon_db_tool_match(argc - 1, argv + 1);
	/* "ttmon --json db match": the option comes first. */
	if (argc > 2 && (strcmp(verb, "--json") == 0 || strcmp(verb, "-j") == 0) && strcmp(argv[2], "match") == 0) {
		argv[1] = argv[2];
		argv[2] = "-j";
		return ttmon_db_tool_match(argc - 1, argv + 1);
	}
	if (strcmp(verb, "schema") == 0 && argc == 2)
		return ttmon_db_tool_schema();
	if (strcmp(verb, "show") == 0 && argc == 3)
		return ttmon_db_tool_show(argv[2]);
	if (strcmp(verb, "show") == 0 && argc == 4)
		return ttmon_db_tool_show_alloc(argv[2], argv[3]);
	if (strcmp(verb, "show") == 0 && argc == 5 && strcmp(argv[3], "--period") == 0)
		return ttmon_db_tool_show_period(argv[2], argv[4]);
	usage(stderr);
	return 2;
}
