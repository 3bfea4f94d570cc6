// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_export.c: `ttmon export`: a database or a slot file as tables for other programs: CSV or Parquet
 * files, or one SQLite database. Columns have their unit in their name; what is not known is empty, or
 * null.
 */
#include <sys/stat.h>

#include "tools/cli/cmds.h"
#include "tools/door/door.h"
#include "tools/export/tables.h"

struct opts {
	enum ttmon_export_format format;
	const char *dir;
};

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

/* The file, of one of the two kinds. */
struct source {
	struct ttmon_db *db;
	struct ttmon_slots_reader *slots;
};

static void close_source(const struct source *s)
{
	ttmon_db_close(s->db);
	ttmon_slots_close(s->slots);
}

static int open_source(const char *path, struct source *ret, char *why, size_t n)
{
	enum ttmon_door_kind kind = TTMON_DOOR_DATABASE;
	struct stat st;

	/* A pipe cannot be looked at before it is read: it is a database. */
	if (!stat(path, &st) && S_ISREG(st.st_mode) && ttmon_door_look(path, &kind))
		kind = TTMON_DOOR_DATABASE;
	return kind == TTMON_DOOR_SLOTS ? ttmon_slots_open(path, &ret->slots, why, n)
					: ttmon_db_open(path, &ret->db, why, n);
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	_cleanup_(close_source) struct source source = { 0 };
	const struct sigaction action = { .sa_handler = stop };
	const struct opts *o = ctx;
	struct ttmon_export *x;
	const char *text;
	char why[5000];
	int err;

	if (!o->dir)
		return ttmon_cli_bad(cli, "the folder to write to is missing: -o DIR");
	if (open_source(cli->words[0], &source, why, sizeof(why))) {
		fprintf(stderr, "ttmon export: %s\n", why);
		return TTMON_EXIT_ERROR;
	}
	/* From here on there may be something to take away. A read that waits is interrupted. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (ttmon_export_new(o->format, o->dir, source.slots ? ttmon_export_slots_tables : ttmon_export_db_tables,
			     source.slots ? TTMON_EXPORT_SLOTS_TABLES : TTMON_EXPORT_DB_TABLES, &x, why, sizeof(why))) {
		fprintf(stderr, "ttmon export: %s\n", why);
		return TTMON_EXIT_ERROR;
	}
	err = source.slots ? ttmon_export_slots(x, source.slots, o->format == TTMON_EXPORT_PARQUET, &stopped)
			   : ttmon_export_db(x, source.db, &stopped);
	if (err) {
		ttmon_export_drop(x);
		text = source.slots ? ttmon_slots_why(source.slots) : ttmon_db_why(source.db);
		fprintf(stderr, "ttmon export: %s\n",
			err == -EINTR ? "interrupted, nothing was written"
			: *text	      ? text
				      : strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	err = ttmon_export_finish(x, stdout, why, sizeof(why));
	if (err)
		fprintf(stderr, "ttmon export: %s\n", why);
	return err ? TTMON_EXIT_ERROR : 0;
}

static const struct ttmon_cli_opt options[] = {
	{ "format", 'f', "FORMAT", "csv, parquet: a file a table; sqlite: ttmon.sqlite (csv)", NULL,
	  TTMON_CLI_WORD(struct opts, format, "csv sqlite parquet") },
	{ "output", 'o', "DIR", "the folder to write to; it is made where it is not there", NULL,
	  TTMON_CLI_TEXT(struct opts, dir, ":dir") },
};
const struct ttmon_cli_cmd ttmon_cmd_export = {
	.name = "ttmon export",
	.summary = "a database or a slot file as tables: CSV, SQLite or Parquet",
	.args = "[-f csv|sqlite|parquet] -o DIR FILE",
	.about = "Writes a database as tables: run, processes, sites, allocations, transfers, events, waits,\n"
		 "wait_calls; or a slot file (ttmond --slots-out): run, slots, slot_rows.\n"
		 "Columns have their unit in their name; what is not known is empty (CSV) or null.",
	.notes = "Exit status: 0 written, 2 nothing was written.",
	TTMON_CLI_OPTS(options),
	.size = sizeof(struct opts),
	.min_words = 1,
	.max_words = 1,
	.words = ":file",
	.run = run,
};
