// SPDX-License-Identifier: GPL-2.0-only
/* cmd_top.c: `ttmon top`: the options, and the forms that print once. */
#include <langinfo.h>
#include <locale.h>
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
	const struct ttmon_term_style style = { .columns = ttmon_show_columns(),
						.colour = *ttmon_show_escape(TTMON_SHOW_GOOD),
						.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8") };
	struct ttmon_top_layout l;
	char line[TTMON_TOP_LINE], args[512];

	for (unsigned int i = 0; i < 3; i++) {
		ttmon_top_head(t, i, line, sizeof(line));
		if (i < 2 || line[0])
			puts(line);
	}
	ttmon_top_fit(t, &style, &o->ask, &l);
	ttmon_top_columns(&l, line, sizeof(line));
	puts(line);
	for (size_t i = 0; i < t->n; i++) {
		args[0] = '\0';
		if (ttmon_top_wants_args(&t->procs[i], &o->ask, &l))
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
	setlocale(LC_CTYPE, "");
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
	/* In the order of enum ttmon_top_by. */
	{ "by", 0, "WHAT", "one row per process, as a tree, per systemd unit or per container (process)",
	  "The words are process, tree, unit and container. The figures of a unit or container are sums; they are\n"
	  "lower bounds where a figure of one of its processes is not known.",
	  TTMON_CLI_WORD(struct opts, ask.by, "process tree unit container") },
	/* In the order of enum ttmon_top_sort. */
	{ "sort", 'o', "KEY", "pinned, copied, wait, cpu, ipc, misses, bandwidth, llc, chip, switches or pid (pinned)",
	  NULL,
	  TTMON_CLI_WORD(struct opts, ask.sort, "pinned copied wait cpu ipc misses bandwidth llc chip switches pid") },
	{ "reverse", 'r', NULL, "reverse the order", NULL, TTMON_CLI_FLAG(struct opts, ask.reverse) },
	{ "lines", 'n', "N", "show at most N processes", NULL, TTMON_CLI_NUMBER(struct opts, ask.lines, 1, 1000000) },
	{ "pid", 'p', "PID", "this one alone", NULL, TTMON_CLI_PID(struct opts, ask.pid) },
	{ "kernel", 'k', NULL, "kernel threads too", NULL, TTMON_CLI_FLAG(struct opts, ask.kernel) },
	{ "args", 'a', NULL, "show command lines instead of names", NULL, TTMON_CLI_FLAG(struct opts, ask.args) },
	TTMON_ROW_SOCKET(struct opts, ask.socket),
};
const struct ttmon_cli_cmd ttmon_cmd_top = {
	.name = "ttmon top",
	.summary = "which processes pin memory, copy, wait, and use CPUs, caches and memory bandwidth, live",
	.args = "[OPTIONS]",
	.about = "Shows live which processes pin memory, copy and wait, and use CPUs, caches and memory bandwidth.",
	.notes = "Keys: p t w c i m l b d s n sort, < > by the next column, r reverse the order, g shows "
		 "processes,\n"
		 "a tree, units, containers, / filters, Enter shows the call sites of a process, k kernel threads,\n"
		 "a command lines for names, + - interval, arrows and page keys move, space pause, ? help, q quit.\n"
		 "WAIT% is the time of synchronous calls that returned in the interval, of one thread, CPU% of one "
		 "CPU,\n"
		 "CHIP% of one Tenstorrent chip, if tt-metal's profiler reports runs, ERROR how much that may be "
		 "wrong.\n"
		 "Columns that nothing here measures are left out: LLC and MBM need RDT (ttmond --rmid), IPC and MISS "
		 "hardware\n"
		 "counters. - means not known, >= a lower bound: a family of probes (ttmon family) was not on during "
		 "the\n"
		 "whole interval; the third line says which.\n"
		 "(ended) is the sum of processes that have ended, (unassigned) the bandwidth of RMIDs that no process "
		 "owned.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const struct opts){ .ask = { .socket = TTMON_SOCKET_DEFAULT, .interval_ms = 1000 } },
	.size = sizeof(struct opts),
	.run = run,
};
