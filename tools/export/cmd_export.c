// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_export.c: `ttmon export`: a database as tables for other programs: CSV files, or one SQLite
 * database. Columns have their unit in their name; what is not known is empty, or NULL.
 */
#include <signal.h>

#include "lib/read/db.h"
#include "tools/cli/cmds.h"
#include "tools/export/out.h"

enum { RUN, PROCESSES, SITES, ALLOCATIONS, TRANSFERS, EVENTS, TABLES };

#define T(name)              \
	{                    \
		(name), true \
	}
#define I(name)               \
	{                     \
		(name), false \
	}

static const struct ttmon_export_column run_columns[] = { T("key"), T("value") };
static const struct ttmon_export_column process_columns[] = {
	I("process"), I("pid"),	 I("start_ns"),		 I("ppid"),   T("comm"),     T("exe"),
	T("cmdline"), I("pins"), I("pinned_peak_bytes"), I("allocs"), I("launches"),
};
static const struct ttmon_export_column site_columns[] = {
	I("site"), T("key"),	    T("call_stack"), I("allocs"),
	I("live"), I("live_bytes"), I("peak_bytes"), I("allocated_bytes"),
};
static const struct ttmon_export_column alloc_columns[] = {
	T("allocation"), I("process"),	 I("pid"),    I("site"),     I("ordinal"),  I("size_bytes"), T("addr"),
	T("method"),	 T("fn"),	 I("device"), I("alloc_ns"), I("free_ns"),  T("end"),	     I("pin_ns"),
	I("unpin_ns"),	 I("api_flags"), T("name"),   T("kind"),     I("at_least"),
};
static const struct ttmon_export_column transfer_columns[] = {
	T("allocation"),
	T("direction"),
	I("copies"),
	I("copied_bytes"),
};
static const struct ttmon_export_column event_columns[] = {
	T("allocation"), I("ts_ns"), T("kind"), I("moved_bytes"), I("offset_bytes"), T("memory"), I("bits"),
};
#define TABLE(n, c)                     \
	{                               \
		(n), (c), ARRAY_SIZE(c) \
	}
static const struct ttmon_export_table tables[TABLES] = {
	[RUN] = TABLE("run", run_columns),
	[PROCESSES] = TABLE("processes", process_columns),
	[SITES] = TABLE("sites", site_columns),
	[ALLOCATIONS] = TABLE("allocations", alloc_columns),
	[TRANSFERS] = TABLE("transfers", transfer_columns),
	[EVENTS] = TABLE("events", event_columns),
};

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

/* The members of o of these names, "" for what is put in by hand. */
static void members(const json_t *o, const char *const *names, unsigned int n, const json_t **values)
{
	for (unsigned int i = 0; i < n; i++)
		values[i] = *names[i] ? json_object_get(o, names[i]) : NULL;
}

static int put_run(struct ttmon_export *x, const char *key, const json_t *value)
{
	json_t *k = json_string(key), *v;
	char text[32];
	int err;

	snprintf(text, sizeof(text), "%lld",
		 json_is_integer(value) ? (long long)json_integer_value(value) : (long long)json_is_true(value));
	v = json_is_string(value)	    ? json_incref((json_t *)value)
	    : value && !json_is_null(value) ? json_string(text)
					    : NULL;
	err = ttmon_export_row(x, RUN, (const json_t *[]){ k, v });
	json_decref(k);
	json_decref(v);
	return err;
}

static int write_run(struct ttmon_export *x, const struct ttmon_db *db)
{
	const json_t *capture = ttmon_db_member(db, "capture"), *complete = ttmon_db_member(db, "completeness");
	const json_t *reason;
	int err = put_run(x, "ttmond", ttmon_db_member(db, "ttmond"));
	size_t i;

	err = err ?: put_run(x, "hostname", json_object_get(ttmon_db_member(db, "host"), "hostname"));
	err = err ?: put_run(x, "start_ns", json_object_get(capture, "start_ns"));
	err = err ?: put_run(x, "end_ns", json_object_get(capture, "end_ns"));
	/* Where it is 0 sums are lower bounds, and each reason is a row. */
	err = err ?: put_run(x, "complete", json_object_get(complete, "complete"));
	json_array_foreach(json_object_get(complete, "reasons"), i, reason) err = err ?: put_run(x, "reason", reason);
	return err;
}

static int write_processes(struct ttmon_export *x, const struct ttmon_db *db)
{
	static const char *const names[] = { "index",	"pid",	"start_ns",	     "ppid",   "comm",	  "exe",
					     "cmdline", "pins", "pinned_peak_bytes", "allocs", "launches" };
	const json_t *values[ARRAY_SIZE(names)], *p;
	int err = 0;
	size_t i;

	json_array_foreach(ttmon_db_member(db, "processes"), i, p)
	{
		members(p, names, ARRAY_SIZE(names), values);
		err = err ?: ttmon_export_row(x, PROCESSES, values);
	}
	return err;
}

/* "load_batch+0x41;train;main", innermost first; an offset in its file where no name is known. */
static json_t *call_stack(const json_t *frames)
{
	_cleanup_free_ char *text = NULL;
	const json_t *frame;
	size_t i, n = 0;
	FILE *f = open_memstream(&text, &n);
	json_t *ret;

	if (!f)
		return NULL;
	json_array_foreach(frames, i, frame)
	{
		const char *fn = json_string_value(json_array_get(frame, 2)),
			   *at = json_string_value(json_array_get(frame, 1));

		fprintf(f, "%s%s", i ? ";" : "", fn ? fn : at ? at : "?");
	}
	if (fclose(f))
		return NULL;
	ret = json_string(text);
	return ret;
}

static int write_sites(struct ttmon_export *x, const struct ttmon_db *db)
{
	static const char *const names[] = { "id", "key", "", "allocs", "live", "live_bytes", "peak_bytes", "bytes" };
	const json_t *values[ARRAY_SIZE(names)], *s;
	int err = 0;
	size_t i;

	json_array_foreach(ttmon_db_member(db, "sites"), i, s)
	{
		json_t *stack = call_stack(json_object_get(s, "frames"));

		members(s, names, ARRAY_SIZE(names), values);
		values[2] = stack;
		err = err ?: ttmon_export_row(x, SITES, values);
		json_decref(stack);
	}
	return err;
}

static int write_transfers(struct ttmon_export *x, const json_t *alloc)
{
	const json_t *pair;
	const char *dir;
	int err = 0;

	json_object_foreach((json_t *)json_object_get(alloc, "transfers"), dir, pair)
	{
		json_t *name = json_string(dir);

		err = err
			      ?: ttmon_export_row(x, TRANSFERS,
						  (const json_t *[]){ json_object_get(alloc, "id"), name,
								      json_array_get(pair, 0),
								      json_array_get(pair, 1) });
		json_decref(name);
	}
	return err;
}

static int write_events(struct ttmon_export *x, const json_t *alloc)
{
	const char *begin = json_string_value(json_object_get(alloc, "alloc_ns"));
	long long from = begin ? strtoll(begin, NULL, 10) : 0;
	const json_t *e;
	int err = 0;
	size_t i;

	json_array_foreach(json_object_get(alloc, "events"), i, e)
	{
		json_t *ts = json_integer(from + json_integer_value(json_array_get(e, 0)));

		err = err
			      ?: ttmon_export_row(x, EVENTS,
						  (const json_t *[]){ json_object_get(alloc, "id"), ts,
								      json_array_get(e, 1), json_array_get(e, 2),
								      json_array_get(e, 3), json_array_get(e, 4),
								      json_array_get(e, 5) });
		json_decref(ts);
	}
	return err;
}

static int write_alloc(struct ttmon_export *x, const json_t *alloc)
{
	static const char *const names[] = { "id",	 "process",   "pid",	"site",	    "ordinal", "size", "addr",
					     "method",	 "fn",	      "device", "alloc_ns", "free_ns", "end",  "pin_ns",
					     "unpin_ns", "api_flags", "name",	"kind",	    "at_least" };
	const json_t *values[ARRAY_SIZE(names)];
	int err;

	members(alloc, names, ARRAY_SIZE(names), values);
	err = ttmon_export_row(x, ALLOCATIONS, values);
	err = err ?: write_transfers(x, alloc);
	return err ?: write_events(x, alloc);
}

static int write_all(struct ttmon_export *x, struct ttmon_db *db)
{
	json_t *alloc;
	int err = write_run(x, db), r = 0;

	err = err ?: write_processes(x, db);
	err = err ?: write_sites(x, db);
	while (!err && !stopped && (r = ttmon_db_next_alloc(db, &alloc)) == 1) {
		err = write_alloc(x, alloc);
		json_decref(alloc);
	}
	if (stopped)
		return -EINTR;
	return err ? err : MIN(r, 0);
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	_cleanup_(ttmon_db_closep) struct ttmon_db *db = NULL;
	const struct opts *o = ctx;
	struct ttmon_export *x;
	char why[5000];
	int err;

	if (!o->dir)
		return ttmon_cli_bad(cli, "the folder to write to is missing: -o DIR");
	if (ttmon_db_open(cli->words[0], &db, why, sizeof(why))) {
		fprintf(stderr, "ttmon export: %s\n", why);
		return TTMON_EXIT_ERROR;
	}
	if (ttmon_export_new(o->format, o->dir, tables, TABLES, &x, why, sizeof(why))) {
		fprintf(stderr, "ttmon export: %s\n", why);
		return TTMON_EXIT_ERROR;
	}
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	err = write_all(x, db);
	if (err) {
		ttmon_export_drop(x);
		fprintf(stderr, "ttmon export: %s\n",
			err == -EINTR	      ? "interrupted, nothing was written"
			: ttmon_db_why(db)[0] ? ttmon_db_why(db)
					      : strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	err = ttmon_export_finish(x, stdout, why, sizeof(why));
	if (err)
		fprintf(stderr, "ttmon export: %s\n", why);
	return err ? TTMON_EXIT_ERROR : 0;
}

static const struct ttmon_cli_opt options[] = {
	{ "format", 'f', "FORMAT", "csv: a file a table; sqlite: ttmon.sqlite (csv)", NULL,
	  TTMON_CLI_WORD(struct opts, format, "csv sqlite") },
	{ "output", 'o', "DIR", "the folder to write to; it is made where it is not there", NULL,
	  TTMON_CLI_TEXT(struct opts, dir, ":dir") },
};
const struct ttmon_cli_cmd ttmon_cmd_export = {
	.name = "ttmon export",
	.summary = "a database as tables: CSV files or SQLite",
	.args = "[-f csv|sqlite] -o DIR FILE",
	.about = "Writes a database as tables: run, processes, sites, allocations, transfers, events.\n"
		 "Columns have their unit in their name; what is not known is empty (CSV) or NULL (SQLite).",
	.notes = "Exit status: 0 written, 2 nothing was written.",
	TTMON_CLI_OPTS(options),
	.size = sizeof(struct opts),
	.min_words = 1,
	.max_words = 1,
	.words = ":file",
	.run = run,
};
