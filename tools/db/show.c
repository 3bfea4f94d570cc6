// SPDX-License-Identifier: GPL-2.0-only
/*
 * show.c: `ttmon db show FILE`: what is in a database, for a person, in 80 columns: processes,
 * transfers, the hottest unpinned and the coldest pinned memory by call site, advice, and what is
 * missing. Names in it were chosen by the traced programs: control characters never reach the
 * terminal. The allocations are read one at a time; what is kept is a line per (process, site,
 * method).
 */
#include <assert.h>
#include <inttypes.h>
#include <time.h>

#include "lib/base/names.h"
#include "lib/verdict/verdict.h"
#include "daemon/core/history/history.h"
#include "lib/demangle/site.h"
#include "tools/db/db_tool.h"
#include "lib/base/fmt.h"

#define MAX_PROCESSES 20
#define MAX_SPOTS     5
#define SITE_COLUMNS  72

/* The allocations of one process, call site (or mapping, if no site is known) and method. */
struct spot {
	/* copies, copied: both directions together */
	uint64_t process, site, allocs, bytes, max_size, copies, copied;
	bool at_least, unknown; /* copies is a lower bound; the kind of memory is not known */
	bool cold;		/* the advice in the file says that it is cold */
	char method[16];
	char name[64]; /* mappings: what is mapped */
};

struct show {
	struct ttmon_db *db;
	struct spot *spots;
	size_t nr, cap;
	json_t *index; /* "process site method name" -> place in spots[] */
	uint64_t allocs, events;
};

static const json_t *process_at(const struct ttmon_db *db, uint64_t i)
{
	return json_array_get(ttmon_db_member(db, "processes"), i);
}

/* Returns the plain text of a reason; a reason of a newer version is returned as it is. */
static const char *reason_text(const json_t *reason)
{
	const char *name = json_is_string(reason) ? json_string_value(reason) : "?";

	for (unsigned int i = 0; i < TTMON_INCOMPLETE_MAX; i++)
		if (!strcmp(name, ttmon_incomplete_name(i)))
			return ttmon_incomplete_help(i);
	return name;
}

/* Prints the first line: whether the database is complete. */
static void show_known(const struct ttmon_db *db)
{
	const json_t *comp = ttmon_db_member(db, "completeness"), *reasons = json_object_get(comp, "reasons");
	size_t n = json_array_size(reasons);
	char text[64];

	if (json_is_true(json_object_get(comp, "complete"))) {
		puts("complete");
		return;
	}
	puts("not complete");
	for (size_t i = 0; i < n; i++)
		printf("  %s\n", ttmon_fmt_text(text, sizeof(text), reason_text(json_array_get(reasons, i))));
	if (json_is_true(json_object_get(ttmon_db_member(db, "summary"), "at_least")))
		puts("  \">=\" stands before a lower bound, \"~\" before an estimate, \"-\" for what is not known");
}

/* Formats a count of an object; the text says if it is a lower bound or not known. */
static char *cell_of(char *buf, const json_t *o, const char *key, bool bytes, uint64_t unit, bool at_least)
{
	bool known = json_is_integer(json_object_get(o, key));
	uint64_t v = ttmon_db_get(o, key, 0) * unit;

	if (bytes)
		ttmon_fmt_bytes(buf, TTMON_FMT_LEN, v);
	else
		ttmon_fmt_count(buf, TTMON_FMT_LEN, v);
	return ttmon_fmt_known(buf, TTMON_FMT_LEN, buf, v, known, at_least);
}

static bool is_at_least(const json_t *o)
{
	return json_is_true(json_object_get(o, "at_least"));
}

static char *cell(char *buf, const json_t *o, const char *key, bool bytes, uint64_t unit)
{
	return cell_of(buf, o, key, bytes, unit, is_at_least(o));
}

/* True if the process may have memory now that was not seen: none has what has ended. */
static bool may_hold_more(const json_t *process)
{
	return is_at_least(process) && !json_is_object(json_object_get(process, "exit"));
}

static void show_head(const struct ttmon_db *db, const char *path)
{
	const json_t *host = ttmon_db_member(db, "host"), *cap = ttmon_db_member(db, "capture");
	const json_t *clock = ttmon_db_member(db, "clock");
	uint64_t start = ttmon_db_get(cap, "start_ns", 0), span = ttmon_db_get(cap, "end_ns", 0) - start;
	uint64_t real = ttmon_db_get(clock, "real_ns", 0) + (start - ttmon_db_get(clock, "mono_ns", 0));
	time_t sec = (time_t)(real / NSEC_PER_SEC);
	char name[40], release[40], version[24], mode[16], date[32] = "?", length[TTMON_FMT_LEN];
	struct tm tm;

	if (gmtime_r(&sec, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &tm);
	ttmon_fmt_text(mode, sizeof(mode), ttmon_db_str(cap, "mode", "?"));
	ttmon_fmt_text(version, sizeof(version), json_string_value(ttmon_db_member(db, "ttmond")));
	printf("%s: ", path);
	show_known(db);
	printf("%s, Linux %s, %" PRIu64 " CPUs; ttmond %s\n",
	       ttmon_fmt_text(name, sizeof(name), ttmon_db_str(host, "hostname", "?")),
	       ttmon_fmt_text(release, sizeof(release), ttmon_db_str(host, "release", "?")),
	       ttmon_db_get(host, "nr_cpus", 0), version);
	printf("%s from %s (mode: %s%s)\n", ttmon_fmt_ns(length, sizeof(length), span), date, mode,
	       json_is_true(json_object_get(cap, "trace_only")) ? ", trace only" : "");
}

void ttmon_db_tool_pair(const json_t *json, uint64_t *copies, uint64_t *bytes)
{
	const json_t *a = json_array_get(json, 0), *b = json_array_get(json, 1);

	*copies = json_is_integer(a) ? (uint64_t)json_integer_value(a) : 0;
	*bytes = json_is_integer(b) ? (uint64_t)json_integer_value(b) : 0;
}

/* Bytes moved in one direction, over all kinds of host memory. */
static uint64_t moved(const json_t *transfers, const char *dir)
{
	uint64_t sum = 0, copies, bytes;
	const char *mem;
	json_t *pair;

	json_object_foreach(json_object_get(transfers, dir), mem, pair)
	{
		ttmon_db_tool_pair(pair, &copies, &bytes);
		sum += bytes;
	}
	return sum;
}

/*
 * Formats bytes as "~12.3 GiB" if copies in this direction were sampled, so that the sum is an
 * estimate.
 */
static const char *sampled_bytes(char buf[TTMON_FMT_LEN], const json_t *process, const char *dir, const char *else_text)
{
	const json_t *s = json_object_get(json_object_get(process, "sampled"), dir);
	char text[TTMON_FMT_LEN];

	if (!json_is_object(s))
		return else_text;
	snprintf(buf, TTMON_FMT_LEN, "%s~%.*s", json_is_true(json_object_get(s, "at_least")) ? ">=" : "",
		 TTMON_FMT_LEN - 4, ttmon_fmt_bytes(text, sizeof(text), ttmon_db_get(s, "bytes", 0)));
	return buf;
}

static int by_peak(const void *pa, const void *pb)
{
	const json_t *const *a = pa, *const *b = pb;
	uint64_t x = ttmon_db_get(*a, "pinned_peak_bytes", 0), y = ttmon_db_get(*b, "pinned_peak_bytes", 0);

	if (x == y) {
		x = moved(json_object_get(*a, "transfers"), "h2d");
		y = moved(json_object_get(*b, "transfers"), "h2d");
	}
	if (x == y)
		return ttmon_db_get(*a, "index", 0) < ttmon_db_get(*b, "index", 0) ? -1 : 1;
	return x < y ? 1 : -1;
}

static void show_process(const json_t *p)
{
	const json_t *t = json_object_get(p, "transfers");
	char comm[16], pins[TTMON_FMT_LEN], pinned[TTMON_FMT_LEN], peak[TTMON_FMT_LEN], h2d[TTMON_FMT_LEN],
		d2h[TTMON_FMT_LEN], about[2][TTMON_FMT_LEN];
	bool at_least = json_is_true(json_object_get(p, "at_least")), seen = json_is_object(t);

	ttmon_fmt_bytes(h2d, sizeof(h2d), moved(t, "h2d"));
	ttmon_fmt_bytes(d2h, sizeof(d2h), moved(t, "d2h"));
	printf("%-11s %7" PRIu64 " %8s %12s %12s %12s %12s\n", ttmon_fmt_text(comm, 12, ttmon_db_str(p, "comm", "?")),
	       ttmon_db_get(p, "pid", 0), cell(pins, p, "pins", false, 1),
	       cell_of(pinned, p, "pinned_bytes", true, 1, may_hold_more(p)),
	       cell(peak, p, "pinned_peak_bytes", true, 1),
	       sampled_bytes(about[0], p, "h2d",
			     ttmon_fmt_known(h2d, sizeof(h2d), h2d, moved(t, "h2d"), seen, at_least)),
	       sampled_bytes(about[1], p, "d2h",
			     ttmon_fmt_known(d2h, sizeof(d2h), d2h, moved(t, "d2h"), seen, at_least)));
}

/* Shows the processes that used memory or copied, the one with the most pinned memory first. */
static int show_processes(const struct ttmon_db *db)
{
	size_t n = json_array_size(ttmon_db_member(db, "processes")), used = 0;
	_cleanup_free_ const json_t **list = calloc(n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *p = process_at(db, i);

		if (ttmon_db_get(p, "allocs", 0) || ttmon_db_get(p, "failed", 0) ||
		    moved(json_object_get(p, "transfers"), "h2d"))
			list[used++] = p;
	}
	qsort(list, used, sizeof(*list), by_peak);
	printf("\n%-11s %7s %8s %12s %12s %12s %12s\n", "PROCESS", "PID", "PINS", "PINNED", "PEAK", "TO DEVICE",
	       "TO HOST");
	for (size_t i = 0; i < MIN(used, (size_t)MAX_PROCESSES); i++)
		show_process(list[i]);
	if (used > MAX_PROCESSES)
		printf("and %zu more\n", used - MAX_PROCESSES);
	if (used < n)
		printf("and %zu that did not use a device\n", n - used);
	return 0;
}

/* Shows the findings, one line for each kind. */
static void show_findings(const struct ttmon_db *db)
{
	const json_t *procs = ttmon_db_member(db, "processes");

	for (unsigned int kind = 0; kind < TTMON_FINDING_MAX; kind++) {
		uint64_t count = 0, in = 0;
		const json_t *who = NULL;
		char comm[16], text[TTMON_FMT_LEN];

		for (size_t i = 0; i < json_array_size(procs); i++) {
			const json_t *list = json_object_get(json_array_get(procs, i), "findings");

			for (size_t k = 0; k < json_array_size(list); k++) {
				const json_t *f = json_array_get(list, k);

				if (strcmp(ttmon_db_str(f, "kind", ""), ttmon_finding_name(kind)) != 0)
					continue;
				count += ttmon_db_get(f, "count", 0);
				in++;
				who = json_array_get(procs, i);
			}
		}
		if (!in)
			continue;
		printf("\nFINDING    %s x %s\n           ", ttmon_fmt_count(text, sizeof(text), count),
		       ttmon_finding_help(kind));
		if (in == 1)
			printf("in %s[%" PRIu64 "]\n",
			       ttmon_fmt_text(comm, sizeof(comm), ttmon_db_str(who, "comm", "?")),
			       ttmon_db_get(who, "pid", 0));
		else
			printf("in %s processes\n", ttmon_fmt_count(text, sizeof(text), in));
	}
}

static void show_totals(const struct ttmon_db *db)
{
	const json_t *sum = ttmon_db_member(db, "summary"), *host = ttmon_db_member(db, "host");
	uint64_t page = ttmon_db_get(host, "page_size", 4096);
	char now[TTMON_FMT_LEN], peak[TTMON_FMT_LEN], pages[TTMON_FMT_LEN], pins[TTMON_FMT_LEN];
	bool at_least = is_at_least(sum), more = false;
	const json_t *p;
	size_t i;

	json_array_foreach(ttmon_db_member(db, "processes"), i, p) more |= may_hold_more(p);
	printf("\nPINNED     now %s, peak %s (%s pages), %s pins\n",
	       cell_of(now, sum, "pinned_pages", true, page, more), cell(peak, sum, "pinned_peak_pages", true, page),
	       cell(pages, sum, "pinned_peak_pages", false, 1), cell(pins, sum, "pins", false, 1));
	if (json_object_size(json_object_get(sum, "transfers")))
		printf("TRANSFERS  %-8s %-10s %16s %12s\n", "", "MEMORY", "COPIES", "BYTES");
	for (unsigned int dir = 0; dir < TTMON_RDIR_MAX; dir++) {
		const json_t *t = json_object_get(json_object_get(sum, "transfers"), ttmon_rdir_name(dir));

		for (unsigned int mem = 0; mem < TTMON_MEM_MAX; mem++) {
			const json_t *pair = json_object_get(t, ttmon_mem_name(mem));
			char count[TTMON_FMT_LEN], size[TTMON_FMT_LEN];
			uint64_t copies, bytes;

			if (!pair)
				continue;
			ttmon_db_tool_pair(pair, &copies, &bytes);
			ttmon_fmt_count(count, sizeof(count), copies);
			ttmon_fmt_bytes(size, sizeof(size), bytes);
			printf("           %-8s %-10s %16s %12s\n", ttmon_rdir_name(dir), ttmon_mem_name(mem),
			       ttmon_fmt_known(count, sizeof(count), count, copies, true, at_least),
			       ttmon_fmt_known(size, sizeof(size), size, bytes, true, at_least));
		}
	}
	if (ttmon_db_get(sum, "launches", 0) || ttmon_db_get(sum, "graph_launches", 0))
		printf("LAUNCHES   %s kernels, %s graphs\n",
		       ttmon_fmt_count(now, sizeof(now), ttmon_db_get(sum, "launches", 0)),
		       ttmon_fmt_count(peak, sizeof(peak), ttmon_db_get(sum, "graph_launches", 0)));
	if (ttmon_db_get(sum, "graph_copies", 0))
		printf("           %s copies belong to graphs: how often they ran is not seen\n",
		       ttmon_fmt_count(now, sizeof(now), ttmon_db_get(sum, "graph_copies", 0)));
}

/* Adds one allocation to the line of its group. */
static int add(struct show *s, const json_t *alloc)
{
	struct spot spot = { .process = ttmon_db_get(alloc, "process", 0), .site = ttmon_db_get(alloc, "site", 0) },
		    *to;
	uint64_t size = ttmon_db_get(alloc, "size", 0), copies, bytes, back, back_bytes;
	char key[160];
	const json_t *known;
	size_t at;

	ttmon_fmt_text(spot.method, sizeof(spot.method), ttmon_db_str(alloc, "method", "?"));
	if (!spot.site)
		ttmon_fmt_text(spot.name, sizeof(spot.name),
			       ttmon_db_str(alloc, "name", strcmp(spot.method, "mmap") == 0 ? "anonymous memory" : ""));
	spot.unknown = strcmp(ttmon_db_str(alloc, "kind", ""), "unknown") == 0;
	snprintf(key, sizeof(key), "%" PRIu64 " %" PRIu64 " %s %s%s", spot.process, spot.site, spot.method, spot.name,
		 spot.unknown ? "?" : "");
	known = json_object_get(s->index, key);
	at = known ? (size_t)json_integer_value(known) : s->nr;
	if (!known) {
		if (s->nr == s->cap) {
			size_t cap = MAX(s->cap * 2, (size_t)64);

			to = realloc(s->spots, cap * sizeof(*to));
			if (!to)
				return -ENOMEM;
			s->spots = to;
			s->cap = cap;
		}
		if (json_object_set_new_nocheck(s->index, key, json_integer((json_int_t)s->nr)))
			return -ENOMEM;
		s->spots[s->nr++] = spot;
	}
	assert(s->spots);
	to = &s->spots[at];
	ttmon_db_tool_pair(json_object_get(json_object_get(alloc, "transfers"), "h2d"), &copies, &bytes);
	to->allocs++;
	to->bytes += size;
	to->max_size = MAX(to->max_size, size);
	ttmon_db_tool_pair(json_object_get(json_object_get(alloc, "transfers"), "d2h"), &back, &back_bytes);
	to->copies += copies + back;
	to->copied += bytes + back_bytes;
	to->at_least |= json_is_true(json_object_get(alloc, "at_least"));
	s->allocs++;
	s->events += json_array_size(json_object_get(alloc, "events"));
	return 0;
}

/*
 * Marks groups as cold where the advice in the file says so: to be unpinned, or kept because kernels
 * may read them in place.
 */
static void mark_cold(struct show *s)
{
	const json_t *advice = ttmon_db_member(s->db, "advice");

	for (size_t i = 0; i < json_array_size(advice); i++) {
		const json_t *a = json_array_get(advice, i), *at;
		const char *said = ttmon_db_str(a, "advice", ""), *reason = ttmon_db_str(a, "reason", "");
		bool kept = !strcmp(reason, ttmon_reason_text(TTMON_REASON_IN_PLACE)) &&
			    !json_is_integer(json_object_get(a, "gain_ns"));
		char key[160];

		snprintf(key, sizeof(key), "%" PRIu64 " %" PRIu64 " %.15s ", ttmon_db_get(a, "process", 0),
			 ttmon_db_get(a, "site", 0), ttmon_db_str(a, "method", ""));
		at = json_object_get(s->index, key);
		if (at && (kept || !strcmp(said, ttmon_advice_name(TTMON_ADVICE_UNPIN))))
			s->spots[json_integer_value(at)].cold = true;
	}
}

static bool is_hot(const struct spot *s)
{
	return s->copies && !s->unknown && (strcmp(s->method, "mmap") == 0 || strcmp(s->method, "custom") == 0);
}

static bool is_hot_unknown(const struct spot *s)
{
	return s->copies && s->unknown;
}

static bool is_cold(const struct spot *s)
{
	return s->cold;
}

static int by_copied(const void *pa, const void *pb)
{
	const struct spot *a = pa, *b = pb;

	return (a->copied < b->copied) - (a->copied > b->copied);
}

static int by_bytes(const void *pa, const void *pb)
{
	const struct spot *a = pa, *b = pb;

	return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

static const char *object_name(const struct ttmon_db *db, const json_t *id)
{
	const json_t *objects = ttmon_db_member(db, "objects");

	for (size_t i = 0; i < json_array_size(objects); i++) {
		const json_t *o = json_array_get(objects, i);
		const char *path = ttmon_db_str(o, "path", "?"), *slash = strrchr(path, '/');

		if (json_equal(json_object_get(o, "id"), id))
			return slash ? slash + 1 : path;
	}
	return NULL;
}

char *ttmon_db_tool_frame(char *buf, size_t n, const struct ttmon_db *db, const json_t *frame)
{
	const char *symbol = json_string_value(json_array_get(frame, 2)),
		   *offset = json_string_value(json_array_get(frame, 1));
	const char *object = object_name(db, json_array_get(frame, 0));
	char text[1024];

	if (symbol)
		return ttmon_site_show(buf, n, &symbol, 1, 0);
	snprintf(text, sizeof(text), "%.900s%s%.20s", object ? object : "", object ? "+" : "", offset ? offset : "?");
	return ttmon_fmt_text(buf, n, text);
}

char *ttmon_db_tool_frame_long(char *buf, size_t n, const struct ttmon_db *db, const json_t *frame)
{
	const char *symbol = json_string_value(json_array_get(frame, 2)),
		   *offset = json_string_value(json_array_get(frame, 1));
	const char *object = object_name(db, json_array_get(frame, 0));
	char text[1024], name[601];

	if (!symbol)
		return ttmon_db_tool_frame(buf, n, db, frame);
	snprintf(text, sizeof(text), "%s (%.200s %.20s)", ttmon_site_show(name, sizeof(name), &symbol, 1, 0),
		 object ? object : "?", offset ? offset : "?");
	return ttmon_fmt_text(buf, n, text);
}

/* Prints that frames of a stack may be wrong, or that the stack is cut off. */
static void print_doubt(const json_t *stack)
{
	const char *by = ttmon_db_str(stack, "by", ""), *end = ttmon_db_str(stack, "end", "");
	char text[40];

	if (!strcmp(by, "unchecked") || !strcmp(by, "guessed"))
		printf(" (%s)", by);
	else if (*end && strcmp(end, "complete") != 0 && strcmp(end, "depth") != 0)
		printf(" < ? (%s)", ttmon_fmt_text(text, sizeof(text), end));
}

/*
 * Returns the text of a frame of a call site, to be freed; only the first frame shows the offset in
 * its function. NULL: out of memory.
 */
static char *site_frame(const struct ttmon_db *db, const json_t *frame, bool first)
{
	const char *symbol = json_string_value(json_array_get(frame, 2)), *plus = symbol ? strrchr(symbol, '+') : NULL;
	char text[1024];

	if (!symbol)
		return strdup(ttmon_db_tool_frame(text, sizeof(text), db, frame));
	return first || !plus || plus == symbol ? strdup(symbol) : strndup(symbol, (size_t)(plus - symbol));
}

/* Prints "inner < caller < caller's caller", as much as fits on the line. */
static void print_site(const struct ttmon_db *db, uint64_t site, const char *name)
{
	const json_t *frames = json_object_get(json_array_get(ttmon_db_member(db, "sites"), site), "frames");
	size_t n = MIN(json_array_size(frames), (size_t)TTMON_SITE_FRAMES);
	const char *names[TTMON_SITE_FRAMES] = { 0 };
	char *own[TTMON_SITE_FRAMES], text[SITE_COLUMNS + 1];

	if (!n) {
		printf("        %s\n", *name ? name : "call site not known");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		own[i] = site_frame(db, json_array_get(frames, i), !i);
		names[i] = own[i] ? own[i] : "?";
	}
	printf("        %s", ttmon_site_show(text, sizeof(text), names, n, SITE_COLUMNS));
	for (size_t i = 0; i < n; i++)
		free(own[i]);
	print_doubt(json_object_get(json_array_get(ttmon_db_member(db, "sites"), site), "stack"));
	putchar('\n');
}

static void print_process(const struct ttmon_db *db, uint64_t process)
{
	const json_t *p = process_at(db, process);
	char comm[16];

	printf("  %s[%" PRIu64 "]\n", ttmon_fmt_text(comm, sizeof(comm), ttmon_db_str(p, "comm", "?")),
	       ttmon_db_get(p, "pid", 0));
}

static char *counted(char *buf, uint64_t n, bool at_least)
{
	ttmon_fmt_count(buf, TTMON_FMT_LEN, n);
	return ttmon_fmt_known(buf, TTMON_FMT_LEN, buf, n, true, at_least);
}

static void print_hot(const struct spot *sp)
{
	char size[TTMON_FMT_LEN], copied[TTMON_FMT_LEN], n[TTMON_FMT_LEN], copies[TTMON_FMT_LEN];

	printf("%10s in %s copies from %s x %s, %s", ttmon_fmt_bytes(copied, sizeof(copied), sp->copied),
	       counted(copies, sp->copies, sp->at_least), ttmon_fmt_count(n, sizeof(n), sp->allocs),
	       ttmon_fmt_bytes(size, sizeof(size), sp->max_size), sp->method);
}

static void print_cold(const struct spot *sp)
{
	char size[TTMON_FMT_LEN], n[TTMON_FMT_LEN], copies[TTMON_FMT_LEN];

	printf("%10s in %s allocation%s, %s copies, %s", ttmon_fmt_bytes(size, sizeof(size), sp->bytes),
	       ttmon_fmt_count(n, sizeof(n), sp->allocs), sp->allocs == 1 ? "" : "s",
	       counted(copies, sp->copies, sp->at_least), sp->method);
}

static void show_spots(struct show *s, const char *title, bool (*which)(const struct spot *),
		       int (*order)(const void *, const void *), void (*print)(const struct spot *))
{
	size_t shown = 0;

	if (s->nr)
		qsort(s->spots, s->nr, sizeof(*s->spots), order);
	for (size_t i = 0; i < s->nr && shown < MAX_SPOTS; i++) {
		const struct spot *sp = &s->spots[i];

		if (!which(sp))
			continue;
		if (!shown++)
			printf("\n%s\n", title);
		print(sp);
		print_process(s->db, sp->process);
		print_site(s->db, sp->site, sp->name);
	}
}

static int by_gain(const void *pa, const void *pb)
{
	const json_t *const *a = pa, *const *b = pb;
	json_int_t ga = json_integer_value(json_object_get(*a, "gain_ns")),
		   gb = json_integer_value(json_object_get(*b, "gain_ns"));

	return (ga < gb) - (ga > gb);
}

static const char *gain_of(const json_t *a, char *buf, size_t n)
{
	const json_t *gain = json_object_get(a, "gain_ns");
	unsigned int advice = 0;

	while (ttmon_advice_name(advice) && strcmp(ttmon_advice_name(advice), ttmon_db_str(a, "advice", "")) != 0)
		advice++;
	return ttmon_gain_text(buf, n, advice, json_is_integer(gain), json_integer_value(gain));
}

/* Shows the advice, the largest gain first, and what is not known. */
static int show_advice(const struct ttmon_db *db)
{
	const json_t *advice = ttmon_db_member(db, "advice");
	_cleanup_free_ const json_t **list = calloc(json_array_size(advice) + 1, sizeof(*list));
	bool older = false;
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < json_array_size(advice); i++)
		if (strcmp(ttmon_db_str(json_array_get(advice, i), "advice", "keep"), "keep") != 0)
			list[n++] = json_array_get(advice, i);
	qsort(list, n, sizeof(*list), by_gain);
	for (size_t i = 0; i < MIN(n, (size_t)MAX_SPOTS); i++) {
		const json_t *a = list[i];
		char what[20], method[16], text[2 * TTMON_FMT_LEN], size[TTMON_FMT_LEN], reason[100];

		if (!i)
			printf("\nADVICE           TIME                SURE\n");
		printf("  %-15s %-19s %.2f  %s, %s", ttmon_fmt_text(what, sizeof(what), ttmon_db_str(a, "advice", "?")),
		       gain_of(a, text, sizeof(text)), json_number_value(json_object_get(a, "confidence")),
		       ttmon_fmt_text(method, sizeof(method), ttmon_db_str(a, "method", "?")),
		       ttmon_fmt_bytes(size, sizeof(size), ttmon_db_get(a, "bytes", 0)));
		print_process(db, ttmon_db_get(a, "process", 0));
		print_site(db, ttmon_db_get(a, "site", 0), "memory without a known call site");
		ttmon_fmt_text(reason, sizeof(reason), ttmon_db_str(a, "reason", ""));
		if (*reason)
			printf("        %s\n", reason);
		older |= !*reason;
	}
	if (older)
		printf("  This advice is by an older ttmond, whose rule differs; ttmon advise uses the current "
		       "rule.\n");
	return 0;
}

/* Prints one item of a list that is wrapped at 80 columns. */
static void item(int *column, const char *what, uint64_t count)
{
	char text[TTMON_FMT_LEN], line[80];
	int n = snprintf(line, sizeof(line), "%s %s", what, ttmon_fmt_count(text, sizeof(text), count));

	if (*column + n + 2 > 80)
		*column = printf("\n           ") - 1;
	else if (*column > 11)
		*column += printf(", ");
	*column += printf("%s", line);
}

static void show_completeness(const struct ttmon_db *db)
{
	static const char *const keys[] = {
		"malformed",	  "late",    "arena_full", "unknown_frees",   "unmatched",	    "superseded",
		"events_dropped", "evicted", "folded",	   "malformed_facts", "checkpoints_dropped"
	};
	const json_t *comp = ttmon_db_member(db, "completeness"), *reasons = json_object_get(comp, "reasons");
	const json_t *blind = json_object_get(comp, "blind");
	int column = 11;
	uint64_t us = 0;
	char text[64];

	fputs(json_is_true(json_object_get(comp, "complete")) ? "\nCOMPLETE   " : "\nINCOMPLETE ", stdout);
	for (size_t i = 0; i < json_array_size(reasons); i++)
		column += printf("%s%s", i ? ", " : "",
				 ttmon_fmt_text(text, 24, json_string_value(json_array_get(reasons, i))));
	for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++) {
		uint64_t n = ttmon_db_get(json_object_get(comp, "lost"), ttmon_loss_name(i), 0);

		snprintf(text, sizeof(text), "lost: %s", ttmon_loss_name(i));
		if (n)
			item(&column, text, n);
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (ttmon_db_get(comp, keys[i], 0))
			item(&column, keys[i], ttmon_db_get(comp, keys[i], 0));
	puts(column == 11 ? "nothing was lost" : "");
	if (ttmon_db_get(comp, "events_trimmed", 0))
		printf("           %s older events are in sums and heat alone\n",
		       ttmon_fmt_count(text, TTMON_FMT_LEN, ttmon_db_get(comp, "events_trimmed", 0)));
	for (size_t i = 0; i < json_array_size(blind); i++)
		if (!json_is_true(json_object_get(json_array_get(blind, i), "held")))
			us = MAX(us, ttmon_db_get(json_array_get(blind, i), "window_us", 0));
	if (us)
		printf("           calls may have been missed in the first %s of a library\n",
		       ttmon_fmt_ns(text, sizeof(text), us * NSEC_PER_US));
}

static int show_all(struct show *s, const char *path)
{
	char allocs[TTMON_FMT_LEN], events[TTMON_FMT_LEN];
	json_t *alloc;
	int r;

	while ((r = ttmon_db_next_alloc(s->db, &alloc)) == 1) {
		r = add(s, alloc);
		json_decref(alloc);
		if (r)
			break;
	}
	if (r)
		return r;
	show_head(s->db, path);
	r = show_processes(s->db);
	if (r)
		return r;
	show_findings(s->db);
	show_totals(s->db);
	printf("HISTORY    %s allocations, %s events\n", ttmon_fmt_count(allocs, sizeof(allocs), s->allocs),
	       ttmon_fmt_count(events, sizeof(events), s->events));
	mark_cold(s);
	show_spots(s, "HOTTEST UNPINNED (by bytes to and from the device)", is_hot, by_copied, print_hot);
	show_spots(s, "HOTTEST OF AN UNKNOWN KIND (may be pinned: its allocation was not seen)", is_hot_unknown,
		   by_copied, print_hot);
	show_spots(s, "COLDEST PINNED (its transfers do not pay for pinning; by size)", is_cold, by_bytes, print_cold);
	r = show_advice(s->db);
	if (r)
		return r;
	r = ttmon_db_tool_show_tt(s->db);
	if (r)
		return r;
	show_completeness(s->db);
	return 0;
}

int ttmon_db_tool_show(const char *path)
{
	_cleanup_(ttmon_db_closep) struct ttmon_db *db = NULL;
	_cleanup_(ttmon_json_decrefp) json_t *idx = json_object();
	struct show s = { .index = idx };
	char why[600];
	int r;

	if (ttmon_db_open(path, &db, why, sizeof(why))) {
		fprintf(stderr, "ttmon: %s\n", why);
		return 1;
	}
	s.db = db;
	r = idx ? show_all(&s, path) : -ENOMEM;
	free(s.spots);
	if (r)
		fprintf(stderr, "ttmon: %s\n", r == -ENOMEM ? "out of memory" : ttmon_db_why(db));
	return r ? 1 : 0;
}
