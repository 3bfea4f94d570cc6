// SPDX-License-Identifier: GPL-2.0-only
/* cmd_top.c: `ttmon top`: the options, and the forms that print once. */
#include <time.h>

#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/cli/show.h"
#include "tools/top/top.h"

struct opts {
	struct ttmon_top_ask ask;
	bool once, json;
};

static void print(const struct ttmon_top *t, const struct opts *o)
{
	struct ttmon_top_layout l;
	char line[TTMON_TOP_LINE], args[512];

	for (unsigned int i = 0; i < 3; i++) {
		ttmon_top_head(t, i, line, sizeof(line));
		if (i < 2 || line[0])
			puts(line);
	}
	ttmon_top_fit(t, ttmon_show_columns(), o->ask.args, &l);
	ttmon_top_columns(&l, line, sizeof(line));
	puts(line);
	for (size_t i = 0; i < t->n; i++) {
		args[0] = '\0';
		if (ttmon_top_wants_args(&t->procs[i], &o->ask))
			ttmon_top_args("/proc", t->procs[i].pid, args, sizeof(args));
		ttmon_top_line(t, i, &l, args, line, sizeof(line));
		puts(line);
	}
}

static int print_json(const struct ttmon_top *t, const struct opts *o)
{
	json_t *doc = ttmon_top_json(t, &o->ask);
	size_t flags = JSON_PRESERVE_ORDER | (o->once ? JSON_INDENT(1) : JSON_COMPACT);
	char *text = doc ? json_dumps(doc, flags) : NULL;

	json_decref(doc);
	if (!text) {
		fprintf(stderr, "ttmon top: out of memory\n");
		return -ENOMEM;
	}
	puts(text);
	free(text);
	return 0;
}

/* Prints the difference to the last reading, and replaces the last reading with the new one. */
static int print_next(const struct opts *o, struct ttmon_top *last)
{
	struct ttmon_top now = { 0 }, diff = { 0 }, shown = { 0 };
	int err = ttmon_top_read(o->ask.socket, &now);

	if (err)
		return err;
	err = ttmon_top_diff(last, &now, &diff);
	if (!err)
		err = ttmon_top_arrange(&diff, &o->ask, &shown);
	if (err)
		fprintf(stderr, "ttmon top: %s\n", strerror(-err));
	else if (o->json)
		err = print_json(&shown, o);
	else
		print(&shown, o);
	/* main() reports the write error. */
	if (!err && fflush(stdout))
		err = -EPIPE;
	ttmon_top_fini(&shown);
	ttmon_top_fini(&diff);
	ttmon_top_fini(last);
	*last = now;
	return err;
}

static int print_loop(const struct opts *o)
{
	const struct timespec wait = { .tv_sec = o->ask.interval_ms / 1000,
				       .tv_nsec = (long)(o->ask.interval_ms % 1000) * 1000000 };
	struct ttmon_top last = { 0 };
	int err = ttmon_top_read(o->ask.socket, &last);

	while (!err) {
		nanosleep(&wait, NULL);
		err = print_next(o, &last);
		if (o->once)
			break;
		if (!o->json && !err)
			putchar('\n');
	}
	ttmon_top_fini(&last);
	return err ? TTMON_EXIT_ERROR : 0;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	struct opts *o = ctx;

	(void)cli;
	if (o->once || o->json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return print_loop(o);
	return ttmon_top_screen(&o->ask);
}

static const struct ttmon_cli_opt options[] = {
	{ "once", '1', NULL, "print one table of the next interval, and end", NULL, TTMON_CLI_FLAG(struct opts, once) },
	TTMON_ROW_JSON(struct opts, json, "JSON, one document for each interval (with -1: one); sums over interval_ns",
		       NULL),
	{ "interval", 'i', "S", "seconds, 0.1-60 (1)", NULL,
	  TTMON_CLI_FRACTION(struct opts, ask.interval_ms, 1000, 100, 60000) },
	/* In the order of enum ttmon_top_sort. */
	{ "sort", 'o', "KEY", "cpu, ipc, misses, bandwidth, llc, pinned, chip, copied, switches or pid (cpu)", NULL,
	  TTMON_CLI_WORD(struct opts, ask.sort, "cpu ipc misses bandwidth llc pinned chip copied switches pid") },
	{ "reverse", 'r', NULL, "reverse the order", NULL, TTMON_CLI_FLAG(struct opts, ask.reverse) },
	{ "lines", 'n', "N", "show at most N processes", NULL, TTMON_CLI_NUMBER(struct opts, ask.lines, 1, 1000000) },
	{ "pid", 'p', "PID", "this one alone", NULL, TTMON_CLI_PID(struct opts, ask.pid) },
	{ "kernel", 'k', NULL, "kernel threads too", NULL, TTMON_CLI_FLAG(struct opts, ask.kernel) },
	{ "args", 'a', NULL, "show command lines instead of names", NULL, TTMON_CLI_FLAG(struct opts, ask.args) },
	TTMON_ROW_SOCKET(struct opts, ask.socket),
};
const struct ttmon_cli_cmd ttmon_cmd_top = {
	.name = "ttmon top",
	.summary = "which processes use CPUs, caches, memory bandwidth and pinned memory, live",
	.args = "[OPTIONS]",
	.about = "Shows live which processes of this host use the CPUs, caches, memory bandwidth and pinned memory.",
	.notes = "Keys: c i m b l p d t s n sort, < > by the next column, r reverse the order, k kernel threads, a "
		 "command\n"
		 "lines, + - interval, arrows and page keys move, space pause, h help, q quit.\n"
		 "CPU% is of one CPU, CHIP% of one Tenstorrent chip, if tt-metal's profiler reports runs, ERROR how "
		 "much that\n"
		 "may be wrong. LLC and MBM need RDT (ttmond --rmid), IPC and MISS hardware counters; - means not "
		 "known,\n"
		 ">= a lower bound: a family of probes (ttmon family) was not on during the whole interval; the third "
		 "line says which.\n"
		 "(ended) is the sum of processes that have ended, (unassigned) the bandwidth of RMIDs that no process "
		 "owned.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const struct opts){ .ask = { .socket = TTMON_SOCKET_DEFAULT, .interval_ms = 1000 } },
	.size = sizeof(struct opts),
	.run = run,
};
