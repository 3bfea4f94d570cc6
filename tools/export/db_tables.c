// SPDX-License-Identifier: GPL-2.0-only
/* db_tables.c: a database as tables. What is not known is null, and so is not shown as 0. */
#include "tools/export/tables.h"

enum { RUN, PROCESSES, SITES, ALLOCATIONS, TRANSFERS, EVENTS, WAITS, WAIT_CALLS };

#define T(n) TTMON_EXPORT_T(n)
#define I(n) TTMON_EXPORT_I(n)

static const struct ttmon_export_column run_columns[] = { T("key"), T("value") };
static const struct ttmon_export_column process_columns[] = {
	I("process"), I("pid"),	 I("start_ns"),		 I("ppid"),   T("comm"),     T("exe"),
	T("cmdline"), I("pins"), I("pinned_peak_bytes"), I("allocs"), I("launches"),
};
static const char *const process_members[] = { "index",	  "pid",  "start_ns",	       "ppid",	 "comm",    "exe",
					       "cmdline", "pins", "pinned_peak_bytes", "allocs", "launches" };
static const struct ttmon_export_column site_columns[] = {
	I("site"), T("key"),	    T("call_stack"), I("allocs"),
	I("live"), I("live_bytes"), I("peak_bytes"), I("allocated_bytes"),
};
static const char *const site_members[] = { "id", "key", "", "allocs", "live", "live_bytes", "peak_bytes", "bytes" };
static const struct ttmon_export_column alloc_columns[] = {
	T("allocation"), I("process"),	 I("pid"),    I("site"),     I("ordinal"),  I("size_bytes"), T("addr"),
	T("method"),	 T("fn"),	 I("device"), I("alloc_ns"), I("free_ns"),  T("end"),	     I("pin_ns"),
	I("unpin_ns"),	 I("api_flags"), T("name"),   T("kind"),     I("at_least"),
};
static const char *const alloc_members[] = { "id",	 "process",   "pid",	"site",	    "ordinal", "size", "addr",
					     "method",	 "fn",	      "device", "alloc_ns", "free_ns", "end",  "pin_ns",
					     "unpin_ns", "api_flags", "name",	"kind",	    "at_least" };
static const struct ttmon_export_column transfer_columns[] = {
	T("allocation"),
	T("direction"),
	I("copies"),
	I("copied_bytes"),
};
static const struct ttmon_export_column event_columns[] = {
	T("allocation"), I("ts_ns"), T("kind"), I("moved_bytes"), I("offset_bytes"), T("memory"), I("bits"),
};
static const struct ttmon_export_column wait_columns[] = {
	I("process"),
	T("fn"),
	T("kind"),
	I("site"),
	I("calls"),
	I("unobserved"),
	I("unended"),
	I("wait_ns"),
	I("on_cpu_ns"),
	I("run_queue_ns"),
	I("blocked_ns"),
	I("unknown_ns"),
	I("minor_faults"),
	I("major_faults"),
	I("voluntary_switches"),
	I("involuntary_switches"),
};
static const char *const wait_members[] = {
	"process",
	"fn",
	"kind",
	"site",
	"calls",
	"unobserved",
	"unended",
	"ns",
	"on_cpu_ns",
	"run_queue_ns",
	"blocked_ns",
	"unknown_ns",
	"minor_faults",
	"major_faults",
	"voluntary_switches",
	"involuntary_switches",
};
static const struct ttmon_export_column wait_call_columns[] = {
	I("process"),
	I("tid"),
	T("fn"),
	T("kind"),
	I("site"),
	I("entry_ns"),
	I("wait_ns"),
	I("on_cpu_ns"),
	I("run_queue_ns"),
	I("blocked_ns"),
	I("minor_faults"),
	I("major_faults"),
	I("voluntary_switches"),
	I("involuntary_switches"),
	I("error"),
};
static const char *const wait_call_members[] = {
	"process",
	"tid",
	"fn",
	"kind",
	"site",
	"entry_ns",
	"ns",
	"on_cpu_ns",
	"run_queue_ns",
	"blocked_ns",
	"minor_faults",
	"major_faults",
	"voluntary_switches",
	"involuntary_switches",
	"error",
};

const struct ttmon_export_table ttmon_export_db_tables[TTMON_EXPORT_DB_TABLES] = {
	[RUN] = TTMON_EXPORT_TABLE("run", run_columns),
	[PROCESSES] = TTMON_EXPORT_TABLE("processes", process_columns),
	[SITES] = TTMON_EXPORT_TABLE("sites", site_columns),
	[ALLOCATIONS] = TTMON_EXPORT_TABLE("allocations", alloc_columns),
	[TRANSFERS] = TTMON_EXPORT_TABLE("transfers", transfer_columns),
	[EVENTS] = TTMON_EXPORT_TABLE("events", event_columns),
	[WAITS] = TTMON_EXPORT_TABLE("waits", wait_columns),
	[WAIT_CALLS] = TTMON_EXPORT_TABLE("wait_calls", wait_call_columns),
};

#define MAX_COLUMNS 24

/* "12", 12, true: an integer; a text that is none is not known as one. */
static struct ttmon_export_value value_of(const json_t *v)
{
	struct ttmon_export_value ret = { .text = json_string_value(v) };
	char *end;

	if (json_is_boolean(v) || json_is_integer(v)) {
		ret.n = json_is_integer(v) ? json_integer_value(v) : json_is_true(v);
		ret.known = true;
	} else if (ret.text && *ret.text) {
		errno = 0;
		ret.n = strtoll(ret.text, &end, !strncmp(ret.text, "0x", 2) ? 16 : 10);
		ret.known = !errno && !*end;
	}
	return ret;
}

/* The members of o of these names, one a column; "" for what the caller puts in. */
static void members(const json_t *o, const char *const *names, unsigned int n, struct ttmon_export_value *values)
{
	for (unsigned int i = 0; i < n; i++)
		values[i] = value_of(*names[i] ? json_object_get(o, names[i]) : NULL);
}

static int put_members(struct ttmon_export *x, unsigned int table, const json_t *o, const char *const *names)
{
	struct ttmon_export_value values[MAX_COLUMNS];

	members(o, names, ttmon_export_db_tables[table].nr, values);
	return ttmon_export_row(x, table, values);
}

static int put_list(struct ttmon_export *x, unsigned int table, const json_t *rows, const char *const *names)
{
	const json_t *row;
	int err = 0;
	size_t i;

	json_array_foreach(rows, i, row) err = err ? err : put_members(x, table, row, names);
	return err;
}

static int put_run(struct ttmon_export *x, const char *key, const json_t *value)
{
	struct ttmon_export_value v = value_of(value);
	char text[32];

	if (!v.text && v.known) {
		snprintf(text, sizeof(text), "%lld", (long long)v.n);
		v.text = text;
	}
	return ttmon_export_row(x, RUN, (const struct ttmon_export_value[]){ { .text = key }, v });
}

static int write_run(struct ttmon_export *x, const struct ttmon_db *db)
{
	const json_t *capture = ttmon_db_member(db, "capture"), *complete = ttmon_db_member(db, "completeness");
	const json_t *reason;
	int err = put_run(x, "ttmond", ttmon_db_member(db, "ttmond"));
	size_t i;

	err = err ? err : put_run(x, "hostname", json_object_get(ttmon_db_member(db, "host"), "hostname"));
	err = err ? err : put_run(x, "start_ns", json_object_get(capture, "start_ns"));
	err = err ? err : put_run(x, "end_ns", json_object_get(capture, "end_ns"));
	/* Where it is 0 sums are lower bounds, and each reason is a row. */
	err = err ? err : put_run(x, "complete", json_object_get(complete, "complete"));
	json_array_foreach(json_object_get(complete, "reasons"), i, reason) err =
		err ? err : put_run(x, "reason", reason);
	return err;
}

/* "load_batch+0x41;train;main", innermost first; an offset in its file where no name is known. */
static char *call_stack(const json_t *frames)
{
	const json_t *frame;
	char *text = NULL;
	size_t i, n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	json_array_foreach(frames, i, frame)
	{
		const char *fn = json_string_value(json_array_get(frame, 2)),
			   *at = json_string_value(json_array_get(frame, 1));

		fprintf(f, "%s%s", i ? ";" : "", fn ? fn : at ? at : "?");
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static int write_sites(struct ttmon_export *x, const struct ttmon_db *db)
{
	struct ttmon_export_value values[ARRAY_SIZE(site_members)];
	const json_t *s;
	int err = 0;
	size_t i;

	json_array_foreach(ttmon_db_member(db, "sites"), i, s)
	{
		_cleanup_free_ char *stack = err ? NULL : call_stack(json_object_get(s, "frames"));

		if (!stack)
			return err ? err : -ENOMEM;
		members(s, site_members, ARRAY_SIZE(site_members), values);
		values[2].text = stack;
		err = ttmon_export_row(x, SITES, values);
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
		const struct ttmon_export_value values[] = { value_of(json_object_get(alloc, "id")),
							     { .text = dir },
							     value_of(json_array_get(pair, 0)),
							     value_of(json_array_get(pair, 1)) };

		err = err ? err : ttmon_export_row(x, TRANSFERS, values);
	}
	return err;
}

static int write_events(struct ttmon_export *x, const json_t *alloc)
{
	struct ttmon_export_value begin = value_of(json_object_get(alloc, "alloc_ns"));
	const json_t *e;
	int err = 0;
	size_t i;

	json_array_foreach(json_object_get(alloc, "events"), i, e)
	{
		struct ttmon_export_value values[ARRAY_SIZE(event_columns)] = { value_of(
			json_object_get(alloc, "id")) };

		for (unsigned int k = 1; k < ARRAY_SIZE(values); k++)
			values[k] = value_of(json_array_get(e, k - 1));
		/* In the file: since the allocation. */
		values[1].known &= begin.known && !__builtin_add_overflow(values[1].n, begin.n, &values[1].n);
		err = err ? err : ttmon_export_row(x, EVENTS, values);
	}
	return err;
}

static int write_alloc(struct ttmon_export *x, const json_t *alloc)
{
	int err = put_members(x, ALLOCATIONS, alloc, alloc_members);

	err = err ? err : write_transfers(x, alloc);
	return err ? err : write_events(x, alloc);
}

int ttmon_export_db(struct ttmon_export *x, struct ttmon_db *db, const volatile sig_atomic_t *stopped)
{
	json_t *alloc, *waits;
	int err = write_run(x, db), r = 0;

	err = err ? err : put_list(x, PROCESSES, ttmon_db_member(db, "processes"), process_members);
	err = err ? err : write_sites(x, db);
	while (!err && !*stopped && (r = ttmon_db_next_alloc(db, &alloc)) == 1) {
		err = write_alloc(x, alloc);
		json_decref(alloc);
	}
	waits = ttmon_db_member(db, "waits");
	err = err ? err : put_list(x, WAITS, json_object_get(waits, "sites"), wait_members);
	err = err ? err : put_list(x, WAIT_CALLS, json_object_get(waits, "calls"), wait_call_members);
	if (*stopped)
		return -EINTR;
	return err ? err : MIN(r, 0);
}
