// SPDX-License-Identifier: GPL-2.0-only
/*
 * check.c: `ttmon db check` verifies that a database is consistent. It reads all of it through
 * lib/read/db and compares the parts with each other: indexes, ids, times, counts and sums. The form
 * of each member is not checked here; the JSON schema covers that (tests/e2e/check_schema.py). Memory:
 * 16 bytes for each allocation, for the ids.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "lib/base/names.h"
#include "daemon/core/history/history.h"
#include "lib/read/db.h"
#include "tools/db/db_tool.h"
#include "lib/base/fmt.h"
#include "lib/base/hash.h"

#define MAX_PRINTED 10

struct check {
	const char *path;
	unsigned int problems;
	size_t nprocs, nsites;
	const json_t *procs, *sites;
	uint64_t allocs, events;
	uint64_t *ids; /* hashes of the ids seen: open addressing, 0 is an empty place */
	size_t nids, ids_cap;
	bool limited; /* the daemon reached a limit of the history: the database does not have all that was seen */
};

static void problem(struct check *c, const char *fmt, ...) _printf_(2, 3);
static void problem(struct check *c, const char *fmt, ...)
{
	char text[256], safe[256];
	va_list ap;

	if (++c->problems > MAX_PRINTED)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: %s\n", c->path, ttmon_fmt_text(safe, sizeof(safe), text));
}

/*
 * FNV-1a, never 0. Two different ids have the same hash once in 10^7 databases of a million
 * allocations.
 */
static uint64_t hash(const char *s)
{
	uint64_t h = ttmon_fnv(TTMON_FNV_BASIS, s, strlen(s));

	return h ? h : 1;
}

static void ids_put(uint64_t *ids, size_t cap, uint64_t h)
{
	size_t i = h & (cap - 1);

	while (ids[i])
		i = (i + 1) & (cap - 1);
	ids[i] = h;
}

/*
 * Returns false if the id was there already. *err is -ENOMEM if memory ran out, which ends the check.
 */
static bool ids_add(struct check *c, const char *id, int *err)
{
	uint64_t h = hash(id);

	if (c->nids * 2 >= c->ids_cap) {
		size_t cap = MAX(c->ids_cap * 2, (size_t)1024);
		uint64_t *ids = calloc(cap, sizeof(*ids));

		if (!ids) {
			*err = -ENOMEM;
			return true;
		}
		for (size_t i = 0; i < c->ids_cap; i++)
			if (c->ids[i])
				ids_put(ids, cap, c->ids[i]);
		free(c->ids);
		c->ids = ids;
		c->ids_cap = cap;
	}
	for (size_t i = h & (c->ids_cap - 1); c->ids[i]; i = (i + 1) & (c->ids_cap - 1))
		if (c->ids[i] == h)
			return false;
	ids_put(c->ids, c->ids_cap, h);
	c->nids++;
	return true;
}

static void check_members(struct check *c, const struct ttmon_db *db)
{
	static const struct {
		const char *name;
		json_type type;
	} members[] = {
		{ "ttmond", JSON_STRING },	 { "host", JSON_OBJECT },   { "clock", JSON_OBJECT },
		{ "capture", JSON_OBJECT },	 { "objects", JSON_ARRAY }, { "processes", JSON_ARRAY },
		{ "completeness", JSON_OBJECT }, { "sites", JSON_ARRAY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		const json_t *m = ttmon_db_member(db, members[i].name);

		if (!m || json_typeof(m) != members[i].type)
			problem(c, "%s is missing or of the wrong kind", members[i].name);
	}
}

static void check_indexes(struct check *c, const json_t *array, const char *what, const char *key)
{
	for (size_t i = 0; i < json_array_size(array); i++)
		if (ttmon_db_get(json_array_get(array, i), key, UINT64_MAX) != i)
			problem(c, "%s %zu: %s is not its place in the list", what, i, key);
}

/* The daemon numbers objects one after the other: a list that is longer was not written by it. */
#define MAX_OBJECT_ID (1u << 20)

static void check_frames(struct check *c, const json_t *objects)
{
	_cleanup_free_ bool *known = calloc(MAX_OBJECT_ID, sizeof(*known));

	if (!known) {
		problem(c, "out of memory");
		return;
	}
	/* Object 0 stands for "in no known object". */
	known[0] = true;
	for (size_t i = 0; i < json_array_size(objects); i++) {
		uint64_t id = ttmon_db_get(json_array_get(objects, i), "id", 0);

		if (id >= MAX_OBJECT_ID || known[id])
			problem(c, "object %zu: its id is missing, out of range or there twice", i);
		else
			known[id] = true;
	}
	for (size_t i = 0; i < c->nsites; i++) {
		const json_t *frames = json_object_get(json_array_get(c->sites, i), "frames");

		for (size_t k = 0; k < json_array_size(frames); k++) {
			const json_t *id = json_array_get(json_array_get(frames, k), 0);
			json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;

			if (value < 0 || value >= MAX_OBJECT_ID || !known[value])
				problem(c, "site %zu: frame %zu lies in an object that is not listed", i, k);
		}
	}
}

static void check_checkpoints(struct check *c, const json_t *rows)
{
	if (rows && !json_is_array(rows))
		problem(c, "checkpoints are of the wrong kind");
	for (size_t i = 0; i < json_array_size(rows); i++) {
		struct ttmon_db_checkpoint row;

		if (json_array_size(json_array_get(rows, i)) != 4 ||
		    !ttmon_db_get_checkpoint(json_array_get(rows, i), &row) || row.process >= c->nprocs)
			problem(c, "checkpoint %zu is not [time, process, thread, label]", i);
	}
}

/*
 * Checks that attempted = decoded + malformed + lost, and that "complete" agrees with the listed
 * reasons.
 */
static void check_completeness(struct check *c, const json_t *comp)
{
	const json_t *reasons = json_object_get(comp, "reasons");
	const json_t *lost = json_object_get(comp, "lost");
	uint64_t attempted, sum = ttmon_db_get(comp, "decoded", 0) + ttmon_db_get(comp, "malformed", 0);
	bool complete = json_is_true(json_object_get(comp, "complete"));

	for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++)
		sum += ttmon_db_get(lost, ttmon_loss_name(i), 0);
	if (json_is_true(json_object_get(comp, "identity")) && ttmon_db_u64(comp, "attempted", &attempted) &&
	    attempted != sum)
		problem(c,
			"completeness: %" PRIu64 " events were attempted, but decoded, malformed and lost are %" PRIu64,
			attempted, sum);
	for (size_t i = 0; i < json_array_size(reasons); i++) {
		const char *reason = json_string_value(json_array_get(reasons, i));

		c->limited |= reason && strcmp(reason, "limit") == 0;
	}
	if (complete != (json_array_size(reasons) == 0))
		problem(c, "completeness: complete contradicts the reasons");
}

/* Reads an array of two numbers: [copies, bytes]. */
static bool pair(const json_t *json, uint64_t *copies, uint64_t *bytes)
{
	const json_t *a = json_array_get(json, 0), *b = json_array_get(json, 1);

	if (json_array_size(json) != 2 || !json_is_integer(a) || !json_is_integer(b))
		return false;
	*copies += (uint64_t)json_integer_value(a);
	*bytes += (uint64_t)json_integer_value(b);
	return true;
}

static void check_summary(struct check *c, const json_t *sum)
{
	static const char *const keys[] = { "pins",	 "pinned_pages", "pinned_bytes",   "allocs",
					    "frees",	 "failed",	 "captured",	   "unknown_frees",
					    "unmatched", "launches",	 "graph_launches", "graph_copies" };

	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		uint64_t total = 0;

		for (size_t i = 0; i < c->nprocs; i++)
			total += ttmon_db_get(json_array_get(c->procs, i), keys[k], 0);
		if (total != ttmon_db_get(sum, keys[k], UINT64_MAX))
			problem(c, "summary: %s is not the sum over the processes (%" PRIu64 ")", keys[k], total);
	}
	for (unsigned int dir = 0; dir < TTMON_RDIR_MAX; dir++) {
		for (unsigned int mem = 0; mem < TTMON_MEM_MAX; mem++) {
			uint64_t copies = 0, bytes = 0, all = 0, all_bytes = 0;
			const json_t *t = json_object_get(json_object_get(sum, "transfers"), ttmon_rdir_name(dir));

			pair(json_object_get(t, ttmon_mem_name(mem)), &all, &all_bytes);
			for (size_t i = 0; i < c->nprocs; i++) {
				t = json_object_get(json_array_get(c->procs, i), "transfers");
				t = json_object_get(t, ttmon_rdir_name(dir));
				pair(json_object_get(t, ttmon_mem_name(mem)), &copies, &bytes);
			}
			if (copies != all || bytes != all_bytes)
				problem(c, "summary: transfers %s %s are not the sum over the processes",
					ttmon_rdir_name(dir), ttmon_mem_name(mem));
		}
	}
	for (size_t i = 0; i < c->nprocs; i++) {
		const json_t *p = json_array_get(c->procs, i);

		if (ttmon_db_get(p, "pinned_pages", 0) > ttmon_db_get(p, "pinned_peak_pages", 0))
			problem(c, "process %zu: more pages are pinned than at the peak", i);
	}
}

/* Transfers of one allocation by direction, each summed up in a different way. */
struct sums {
	uint64_t copies[TTMON_RDIR_MAX], bytes[TTMON_RDIR_MAX];
};

/* Returns the direction of a transfer by the name of its event, -1 if it is no transfer. */
static int dir_of(const char *kind)
{
	static const int dirs[TTMON_AEV_MAX] = {
		[TTMON_AEV_H2D] = TTMON_RDIR_H2D,
		[TTMON_AEV_D2H] = TTMON_RDIR_D2H,
		[TTMON_AEV_TO_PINNED] = TTMON_RDIR_H2H,
		[TTMON_AEV_FROM_HOST] = TTMON_RDIR_H2H,
		[TTMON_AEV_TO_HOST] = TTMON_RDIR_H2H,
		[TTMON_AEV_D2D_SRC] = TTMON_RDIR_D2D,
		[TTMON_AEV_D2D_DST] = TTMON_RDIR_D2D,
		[TTMON_AEV_UNKNOWN_SRC] = TTMON_RDIR_UNKNOWN,
		[TTMON_AEV_UNKNOWN_DST] = TTMON_RDIR_UNKNOWN,
		[TTMON_AEV_PREFETCH] = -1,
		[TTMON_AEV_ADVISE] = -1,
		[TTMON_AEV_DEVICE_PTR] = -1,
		[TTMON_AEV_REGISTER] = -1,
		[TTMON_AEV_UNREGISTER] = -1,
	};

	for (unsigned int i = 0; i < TTMON_AEV_MAX; i++)
		if (strcmp(kind, ttmon_aev_name(i)) == 0)
			return dirs[i];
	return -1;
}

static void check_events(struct check *c, const json_t *alloc, const char *id, struct sums *sums)
{
	const json_t *events = json_object_get(alloc, "events");
	size_t n = json_array_size(events);

	if (!json_is_array(events))
		problem(c, "allocation %s: no events", id);
	for (size_t i = 0; i < n; i++) {
		const json_t *ev = json_array_get(events, i), *bytes = json_array_get(ev, 2);
		const char *kind = json_string_value(json_array_get(ev, 1));
		int dir;

		if (json_array_size(ev) != 6 || !json_is_integer(json_array_get(ev, 0)) || !kind ||
		    !json_is_integer(bytes) || !json_is_integer(json_array_get(ev, 3)) ||
		    !json_is_string(json_array_get(ev, 4)) || !json_is_integer(json_array_get(ev, 5))) {
			problem(c, "allocation %s: event %zu is not [time, kind, bytes, offset, memory, bits]", id, i);
			break;
		}
		dir = dir_of(kind);
		if (dir >= 0) {
			sums->copies[dir]++;
			sums->bytes[dir] += (uint64_t)json_integer_value(bytes);
		}
	}
	c->events += n;
}

/*
 * An allocation's transfers, events and heat must have the same sums. Exceptions: a limit was reached,
 * the oldest events were released, and the heat of a mapping that became part of another one.
 */
static void check_transfers(struct check *c, const json_t *alloc, const char *id, const struct sums *events)
{
	const json_t *transfers = json_object_get(alloc, "transfers"), *heat = json_object_get(alloc, "heat");
	bool merged = strcmp(ttmon_db_str(alloc, "end", ""), "merged") == 0;
	uint64_t all_copies = 0, all_bytes = 0, heat_copies = 0, heat_bytes = 0;
	const json_t *hc = json_object_get(heat, "copies"), *hb = json_object_get(heat, "bytes");

	for (unsigned int dir = 0; dir < TTMON_RDIR_MAX; dir++) {
		uint64_t copies = 0, bytes = 0;

		pair(json_object_get(transfers, ttmon_rdir_name(dir)), &copies, &bytes);
		all_copies += copies;
		all_bytes += bytes;
		if (!c->limited && !ttmon_db_get(alloc, "events_dropped", 0) &&
		    (copies != events->copies[dir] || bytes != events->bytes[dir]))
			problem(c, "allocation %s: transfers %s are not the sum of its events", id,
				ttmon_rdir_name(dir));
	}
	if (json_array_size(hc) != json_array_size(hb) || json_array_size(hc) > TTMON_HEAT_BUCKETS)
		problem(c, "allocation %s: heat has lists of different length, or of more than %d", id,
			TTMON_HEAT_BUCKETS);
	for (size_t i = 0; i < json_array_size(hc); i++) {
		heat_copies += (uint64_t)json_integer_value(json_array_get(hc, i));
		heat_bytes += (uint64_t)json_integer_value(json_array_get(hb, i));
	}
	if (!c->limited && !merged && (heat_copies != all_copies || heat_bytes != all_bytes))
		problem(c, "allocation %s: heat is not the sum of its transfers", id);
}

static void check_id(struct check *c, const json_t *alloc, const char *id, uint64_t site, uint64_t process)
{
	/*
	 * An id is the key without its 0x. If no site is known, and after mappings, whose size changes,
	 * "#number" follows.
	 */
	bool numbered = !site || !strcmp(ttmon_db_str(alloc, "method", ""), "mmap");
	const char *key = ttmon_db_str(json_array_get(c->sites, site), "key", "0x");
	char want[128];
	size_t n;

	snprintf(want, sizeof(want), "%.16s:%" PRIu64 ":%" PRIu64 "@%" PRIu64 "%s", strlen(key) > 2 ? key + 2 : "",
		 ttmon_db_get(alloc, "size", 0), ttmon_db_get(alloc, "ordinal", 0), process, numbered ? "#" : "");
	n = strlen(want);
	if (strncmp(id, want, n) != 0 || (!numbered && id[n]))
		problem(c, "allocation %s: the id is not what site, size, ordinal and process make (%s)", id, want);
}

static int check_alloc(struct check *c, const json_t *alloc)
{
	const char *id = ttmon_db_str(alloc, "id", "?");
	uint64_t process = ttmon_db_get(alloc, "process", UINT64_MAX), site = ttmon_db_get(alloc, "site", UINT64_MAX);
	struct sums events = { 0 };
	uint64_t alloc_ns, free_ns;
	int err = 0;

	c->allocs++;
	/* When a limit was reached, ordinals may have been reset too, so ids may repeat. */
	if (!ids_add(c, id, &err) && !c->limited)
		problem(c, "allocation %s: another allocation has the same id", id);
	if (err)
		return err;
	if (process >= c->nprocs || site >= c->nsites) {
		problem(c, "allocation %s: no such process or site", id);
		return 0;
	}
	if (ttmon_db_get(alloc, "pid", 0) != ttmon_db_get(json_array_get(c->procs, process), "pid", UINT64_MAX))
		problem(c, "allocation %s: the pid is not that of its process", id);
	check_id(c, alloc, id, site, process);
	if (!ttmon_db_u64(alloc, "alloc_ns", &alloc_ns))
		problem(c, "allocation %s: no alloc_ns", id);
	else if (ttmon_db_u64(alloc, "free_ns", &free_ns) && ttmon_before(free_ns, alloc_ns))
		problem(c, "allocation %s: freed before it was made", id);
	if (json_is_null(json_object_get(alloc, "free_ns")) != (strcmp(ttmon_db_str(alloc, "end", ""), "live") == 0))
		problem(c, "allocation %s: free_ns contradicts end", id);
	check_events(c, alloc, id, &events);
	check_transfers(c, alloc, id, &events);
	return 0;
}

static void print_ok(const struct check *c, const struct ttmon_db *db)
{
	const json_t *comp = ttmon_db_member(db, "completeness"), *reasons = json_object_get(comp, "reasons");

	printf("%s: ok, %zu processes, %zu sites, %" PRIu64 " allocations, %" PRIu64 " events, ", c->path, c->nprocs,
	       c->nsites, c->allocs, c->events);
	if (json_is_true(json_object_get(comp, "complete")))
		fputs("complete", stdout);
	else
		fputs("incomplete", stdout);
	for (size_t i = 0; i < json_array_size(reasons); i++) {
		char text[64];

		printf("%s%s", i ? ", " : ": ",
		       ttmon_fmt_text(text, sizeof(text), json_string_value(json_array_get(reasons, i))));
	}
	putchar('\n');
}

static void check_totals(struct check *c, const struct ttmon_db *db)
{
	const json_t *sum = ttmon_db_member(db, "summary"), *comp = ttmon_db_member(db, "completeness");
	bool trace_only = json_is_true(json_object_get(ttmon_db_member(db, "capture"), "trace_only"));

	if (!json_is_object(sum)) {
		problem(c, "summary is missing");
		return;
	}
	if (trace_only == json_is_array(ttmon_db_member(db, "advice")))
		problem(c, "a trace-only database has advice, or another database has none");
	check_summary(c, sum);
	/* The events of an allocation that was folded into its site or evicted are gone. */
	if (!ttmon_db_get(comp, "folded", 0) && !ttmon_db_get(comp, "evicted", 0) &&
	    c->events != ttmon_db_get(sum, "events", 0))
		problem(c, "summary: %" PRIu64 " events, but the allocations have %" PRIu64,
			ttmon_db_get(sum, "events", 0), c->events);
}

static void tt_problem(void *ctx, const char *text)
{
	problem(ctx, "%s", text);
}

int ttmon_db_tool_check(const char *path)
{
	_cleanup_(ttmon_db_closep) struct ttmon_db *db = NULL;
	struct check c = { .path = path };
	char why[600];
	json_t *alloc;
	int r;

	if (ttmon_db_open(path, &db, why, sizeof(why))) {
		fprintf(stderr, "ttmon: %s\n", why);
		return 1;
	}
	check_members(&c, db);
	c.procs = ttmon_db_member(db, "processes");
	c.sites = ttmon_db_member(db, "sites");
	c.nprocs = json_array_size(c.procs);
	c.nsites = json_array_size(c.sites);
	check_indexes(&c, c.procs, "process", "index");
	check_indexes(&c, c.sites, "site", "id");
	check_frames(&c, ttmon_db_member(db, "objects"));
	check_checkpoints(&c, ttmon_db_member(db, "checkpoints"));
	check_completeness(&c, ttmon_db_member(db, "completeness"));
	while ((r = ttmon_db_next_alloc(db, &alloc)) == 1) {
		r = check_alloc(&c, alloc);
		json_decref(alloc);
		if (r)
			break;
	}
	free(c.ids);
	if (r) {
		fprintf(stderr, "ttmon: %s\n", r == -ENOMEM ? "out of memory" : ttmon_db_why(db));
		return 1;
	}
	check_totals(&c, db);
	ttmon_db_tool_check_tt(db, c.limited, tt_problem, &c);
	if (c.problems) {
		if (c.problems > MAX_PRINTED)
			fprintf(stderr, "%s: and %u more\n", path, c.problems - MAX_PRINTED);
		return 1;
	}
	print_ok(&c, db);
	return 0;
}
