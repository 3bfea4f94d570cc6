// SPDX-License-Identifier: GPL-2.0-only
/*
 * waits.c: `ttmon waits`: where the time of synchronous calls went, by function and caller, the
 * processes that made them wait, and the longest calls (member waits of docs/ttmon-db.schema.json).
 */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/fmt.h"
#include "tools/cli/cmds.h"
#include "tools/db/db_tool.h"

#define ROWS	     20
#define CALLS	     5
#define WHO	     10
#define SITE_COLUMNS 72

struct opts {
	bool json;
	uint32_t rows;
};

/* The parts of a time, each of which may be unknown. */
struct parts {
	uint64_t ns, on, runq, blocked, unknown;
	bool known;
};

static struct parts parts_of(const json_t *row)
{
	struct parts p = { .ns = ttmon_db_get(row, "ns", 0), .unknown = ttmon_db_get(row, "unknown_ns", 0) };

	p.known = ttmon_db_u64(row, "on_cpu_ns", &p.on) && ttmon_db_u64(row, "run_queue_ns", &p.runq) &&
		  ttmon_db_u64(row, "blocked_ns", &p.blocked);
	return p;
}

static const json_t *process_at(const struct ttmon_db *db, const json_t *row)
{
	return json_array_get(ttmon_db_member(db, "processes"), ttmon_db_get(row, "process", SIZE_MAX));
}

/* The caller: the frame that made the call. */
static char *frame_of(char *buf, size_t n, const struct ttmon_db *db, size_t index)
{
	const json_t *site = json_array_get(ttmon_db_member(db, "sites"), index);
	const json_t *frame = json_array_get(json_object_get(site, "frames"), 0);

	if (!frame)
		snprintf(buf, n, "caller not known");
	else
		ttmon_db_tool_frame(buf, n, db, frame);
	return buf;
}

static char *caller(char *buf, size_t n, const struct ttmon_db *db, const json_t *row)
{
	return frame_of(buf, n, db, ttmon_db_get(row, "site", SIZE_MAX));
}

static void print_heads(const char *first, const char *last)
{
	printf("%9s %9s %10s %9s %9s %9s  %s\n", first, "TIME", "ON CPU", "RUN QUEUE", "BLOCKED", "UNKNOWN", last);
}

static void print_parts(const struct parts *p)
{
	const uint64_t v[] = { p->ns, p->on, p->runq, p->blocked };
	char text[TTMON_FMT_LEN];

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		printf(" %*s", i == 1 ? 10 : 9, !i || p->known ? ttmon_fmt_ns(text, sizeof(text), v[i]) : "-");
	printf(" %9s",
	       p->known && !p->unknown ? "0 ns" : ttmon_fmt_ns(text, sizeof(text), p->known ? p->unknown : p->ns));
}

static void print_name(const struct ttmon_db *db, const json_t *row)
{
	char name[1024], clean[SITE_COLUMNS + 1], comm[32];
	const json_t *p = process_at(db, row);
	const char *fn = ttmon_db_str(row, "fn", NULL);

	if (!fn) {
		printf("  all others\n");
		return;
	}
	printf("  %s\n", fn);
	printf("%10s%s, %s[%llu]\n", "", ttmon_fmt_text(clean, sizeof(clean), caller(name, sizeof(name), db, row)),
	       ttmon_fmt_text(comm, sizeof(comm), ttmon_db_str(p, "comm", "?")),
	       (unsigned long long)ttmon_db_get(p, "pid", 0));
}

/* ---- sums ---- */

static int by_time(const void *a, const void *b)
{
	uint64_t x = ttmon_db_get(*(const json_t *const *)a, "ns", 0),
		 y = ttmon_db_get(*(const json_t *const *)b, "ns", 0);

	return (x < y) - (x > y);
}

/* ---- the processes that made them wait ---- */

/* A class of a member that divides a part of the time, and what it means. */
struct class
{
	const char *name, *text;
};

static const struct class runq_classes[] = {
	{ "other_process", "other processes ran on its CPU" },
	{ "own_process", "other threads of the same process ran" },
	{ "kernel_thread", "threads of the kernel ran" },
	{ "throttled", "its own cgroup had used up its share of CPU time" },
	{ "idle_cpu", "the CPU had to wake up first" },
	{ "unnamed_process", "further processes ran" },
	{ "unknown", "not seen" },
};

static const struct class woke_classes[] = {
	{ "other_process", "until another process woke it" },
	{ "own_process", "until another thread of the same process woke it" },
	{ "kernel_thread", "until a thread of the kernel woke it" },
	{ "timer", "until a timer ran out" },
	{ "interrupt", "until an interrupt, mostly of a device" },
	{ "unnamed_process", "until further processes woke it" },
	{ "unknown", "what ended it was not seen" },
};

/* The sums over all sites. A database of an earlier version has none. */
static void print_classes(const json_t *sites, const char *key, const struct class *classes, size_t n)
{
	char ns[TTMON_FMT_LEN];

	for (size_t k = 0; k < n; k++) {
		const json_t *row;
		uint64_t sum = 0;
		size_t i;

		json_array_foreach(sites, i, row) sum += ttmon_db_get(json_object_get(row, key), classes[k].name, 0);
		if (sum)
			printf("    %18s  %s\n", ttmon_fmt_ns(ns, sizeof(ns), sum), classes[k].text);
	}
}

static bool has_role(const json_t *row, const char *role)
{
	return !strncmp(ttmon_db_str(row, "role", ""), role, strlen(role));
}

/* role: "ran" or "woke", of processes or of threads of the kernel. */
static int print_who(const struct ttmon_db *db, const json_t *who, const char *role, const char *head, size_t rows)
{
	size_t n = 0, all = json_array_size(who);
	const json_t **sorted = calloc(all + 1, sizeof(const json_t *));
	char calls[TTMON_FMT_LEN], ns[TTMON_FMT_LEN], comm[32], site[1024], clean[SITE_COLUMNS + 1];

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++)
		if (has_role(json_array_get(who, i), role))
			sorted[n++] = json_array_get(who, i);
	qsort(sorted, n, sizeof(const json_t *), by_time);
	if (n)
		printf("\n%s\n%9s %9s %9s  %s\n", head, "TIME", "CALLS", "PID", "PROCESS");
	for (size_t i = 0; i < MIN(n, rows); i++) {
		const char *call = ttmon_db_str(sorted[i], "in_call", NULL);

		printf("%9s %9s %9llu  %s", ttmon_fmt_ns(ns, sizeof(ns), ttmon_db_get(sorted[i], "ns", 0)),
		       ttmon_fmt_count(calls, sizeof(calls), ttmon_db_get(sorted[i], "calls", 0)),
		       (unsigned long long)ttmon_db_get(sorted[i], "pid", 0),
		       ttmon_fmt_text(comm, sizeof(comm), ttmon_db_str(sorted[i], "comm", "?")));
		if (call)
			printf(", itself in %s\n%33s%s", call, "",
			       ttmon_fmt_text(clean, sizeof(clean) - 8,
					      frame_of(site, sizeof(site), db, ttmon_db_get(sorted[i], "in_site", 0))));
		printf("\n");
	}
	if (n > rows)
		printf("%zu more: -n N\n", n - rows);
	free(sorted);
	return 0;
}

/* ---- all calls ---- */

/* Their calls with and without times. */
struct sums {
	struct parts p;
	uint64_t calls, unobserved, unended;
};

static struct sums sum_up(const json_t *sites)
{
	struct sums s = { .p.known = true };
	const json_t *row;
	size_t i;

	json_array_foreach(sites, i, row)
	{
		struct parts p = parts_of(row);

		s.calls += ttmon_db_get(row, "calls", 0);
		s.unobserved += ttmon_db_get(row, "unobserved", 0);
		s.unended += ttmon_db_get(row, "unended", 0);
		s.p.ns += p.ns;
		s.p.on += p.on;
		s.p.runq += p.runq;
		s.p.blocked += p.blocked;
		s.p.unknown += p.unknown;
	}
	return s;
}

static void print_sums(const struct sums *s, const json_t *sites)
{
	char calls[TTMON_FMT_LEN], ns[TTMON_FMT_LEN], n[TTMON_FMT_LEN];

	printf("%s synchronous calls took %s\n", ttmon_fmt_count(calls, sizeof(calls), s->calls - s->unobserved),
	       ttmon_fmt_ns(ns, sizeof(ns), s->p.ns));
	printf("  on a CPU   %9s  the thread ran, also to spin for the device\n",
	       ttmon_fmt_ns(ns, sizeof(ns), s->p.on));
	printf("  run queue  %9s  it could run, and did not get the CPU\n", ttmon_fmt_ns(ns, sizeof(ns), s->p.runq));
	print_classes(sites, "run_queue_by", runq_classes, ARRAY_SIZE(runq_classes));
	printf("  blocked    %9s  it slept until something woke it\n", ttmon_fmt_ns(ns, sizeof(ns), s->p.blocked));
	print_classes(sites, "woken_by", woke_classes, ARRAY_SIZE(woke_classes));
	if (s->p.unknown)
		printf("  unknown    %9s  the parts of these calls were not seen\n",
		       ttmon_fmt_ns(ns, sizeof(ns), s->p.unknown));
	if (s->unobserved)
		printf("%s more calls were counted, and their ends not seen\n",
		       ttmon_fmt_count(n, sizeof(n), s->unobserved));
	if (s->unended)
		printf("%s of them ended with their thread or an exec\n", ttmon_fmt_count(n, sizeof(n), s->unended));
}

static int print_sites(const struct ttmon_db *db, const json_t *sites, size_t rows)
{
	size_t n = json_array_size(sites);
	const json_t **sorted = calloc(n + 1, sizeof(const json_t *));
	char calls[TTMON_FMT_LEN];

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = json_array_get(sites, i);
	qsort(sorted, n, sizeof(const json_t *), by_time);
	printf("\nBY FUNCTION AND CALLER\n");
	print_heads("CALLS", "FUNCTION");
	for (size_t i = 0; i < MIN(n, rows); i++) {
		struct parts p = parts_of(sorted[i]);

		printf("%9s", ttmon_fmt_count(calls, sizeof(calls), ttmon_db_get(sorted[i], "calls", 0)));
		print_parts(&p);
		print_name(db, sorted[i]);
	}
	if (n > rows)
		printf("%zu more: -n N\n", n - rows);
	free(sorted);
	return 0;
}

/* The process for which a call waited longest. */
static void print_first(const json_t *row)
{
	const json_t *who = json_array_get(json_object_get(row, "who"), 0);
	char ns[TTMON_FMT_LEN], comm[32];

	if (!who)
		return;
	ttmon_fmt_ns(ns, sizeof(ns), ttmon_db_get(who, "ns", 0));
	ttmon_fmt_text(comm, sizeof(comm), ttmon_db_str(who, "comm", "?"));
	printf(has_role(who, "ran") ? "%10s%s while process %llu (%s) ran\n"
				    : "%10s%s until process %llu (%s) woke it\n",
	       "", ns, (unsigned long long)ttmon_db_get(who, "pid", 0), comm);
}

static void print_calls(const struct ttmon_db *db, const json_t *calls)
{
	printf("\nLONGEST CALLS\n");
	print_heads("THREAD", "FUNCTION");
	for (size_t i = 0; i < MIN(json_array_size(calls), (size_t)CALLS); i++) {
		const json_t *row = json_array_get(calls, i);
		struct parts p = parts_of(row);

		printf("%9llu", (unsigned long long)ttmon_db_get(row, "tid", 0));
		print_parts(&p);
		print_name(db, row);
		print_first(row);
	}
}

/* ---- the command ---- */

static int print_json(const json_t *waits)
{
	if (json_dumpf(waits, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER) || printf("\n") < 0 || fflush(stdout)) {
		fprintf(stderr, "ttmon waits: cannot write: %s\n", strerror(errno));
		return TTMON_EXIT_ERROR;
	}
	return 0;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	_cleanup_(ttmon_db_closep) struct ttmon_db *db = NULL;
	const struct opts *o = ctx;
	const json_t *waits, *sites;
	char why[5000];
	struct sums s;

	if (ttmon_db_open(cli->words[0], &db, why, sizeof(why))) {
		fprintf(stderr, "ttmon waits: %s\n", why);
		return TTMON_EXIT_ERROR;
	}
	waits = ttmon_db_member(db, "waits");
	sites = json_object_get(waits, "sites");
	if (!waits) {
		fprintf(stderr, "ttmon waits: %s: no synchronous call was looked at\n", cli->words[0]);
		return TTMON_EXIT_ERROR;
	}
	if (o->json)
		return print_json(waits);
	s = sum_up(sites);
	if (!s.calls) {
		printf("no synchronous call was seen\n");
		return 0;
	}
	print_sums(&s, sites);
	if (print_sites(db, sites, o->rows ? o->rows : ROWS) ||
	    print_who(db, json_object_get(waits, "who"), "ran", "RAN WHILE THEY WAITED FOR A CPU (measured)",
		      o->rows ? o->rows : WHO) ||
	    print_who(db, json_object_get(waits, "who"), "woke",
		      "WOKE THEM (evidence of what they waited for, no proof)", o->rows ? o->rows : WHO)) {
		fprintf(stderr, "ttmon waits: out of memory\n");
		return TTMON_EXIT_ERROR;
	}
	print_calls(db, json_object_get(waits, "calls"));
	return 0;
}

static const struct ttmon_cli_opt options[] = {
	{ "json", 'j', NULL, "for programs: the member waits of the database", NULL,
	  TTMON_CLI_FLAG(struct opts, json) },
	{ "rows", 'n', "N", "rows by function and caller (20)", NULL, TTMON_CLI_NUMBER(struct opts, rows, 1, 100000) },
};
const struct ttmon_cli_cmd ttmon_cmd_waits = {
	.name = "ttmon waits",
	.summary = "where the time of synchronous calls went",
	.args = "[-n N] [-j] FILE",
	.about = "Where the time of synchronous CUDA calls went: on a CPU, in the run queue, blocked.\n"
		 "These are synchronizing calls, synchronous copies, allocations, pins and frees.\n"
		 "Which processes ran meanwhile, and which woke the caller.",
	.notes = "Exit status: 0 shown, 2 the file cannot be read or has no such calls in it.",
	TTMON_CLI_OPTS(options),
	.size = sizeof(struct opts),
	.min_words = 1,
	.max_words = 1,
	.words = ":file",
	.run = run,
};
