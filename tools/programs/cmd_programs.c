// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_programs.c: `ttmon programs`: the options; prints all that the service has kept (--once), or
 * what it reports, one interval after the other.
 */
#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <time.h>

#include "lib/os/clock.h"
#include "lib/read/client.h"
#include "lib/read/db.h"
#include "lib/read/programs.h"
#include "tools/cli/cmds.h"
#include "tools/cli/show.h"
#include "tools/programs/programs.h"

struct opts {
	const char *socket;
	unsigned int interval_ms;
	uint32_t pid; /* 0: all processes */
	bool once, json;
};

/* ---- output ---- */

static int show(struct ttmon_programs *p, const struct opts *o)
{
	size_t flags = JSON_PRESERVE_ORDER | (o->once ? JSON_INDENT(1) : JSON_COMPACT);
	json_t *doc = NULL;
	char *text;

	ttmon_programs_sort(p);
	if (!o->json) {
		ttmon_programs_print(p, ttmon_show_columns(), !strcmp(nl_langinfo(CODESET), "UTF-8"), stdout);
		return fflush(stdout) ? -EPIPE : 0;
	}
	doc = ttmon_programs_json(p);
	text = doc ? json_dumps(doc, flags) : NULL;
	json_decref(doc);
	if (!text) {
		fprintf(stderr, "ttmon programs: out of memory\n");
		return -ENOMEM;
	}
	puts(text);
	free(text);
	return fflush(stdout) ? -EPIPE : 0;
}

/* ---- what the service has kept ---- */

static void take_line(struct ttmon_programs *p, struct ttmon_program_names *names, const char *at, size_t n)
{
	struct ttmon_program_row r;
	uint64_t value;
	json_t *line;

	if (ttmon_program_row_parse(at, n, &r)) {
		ttmon_programs_add(p, &(struct ttmon_program_run){
					      .seq = r.seq,
					      .pid = r.pid,
					      .device = r.device,
					      .chip = r.chip,
					      .program = r.program,
					      .start_ns = r.start_ns,
					      .end_ns = r.end_ns,
					      .error_ns = r.error_ns,
					      .seen_ns = r.seen_ns,
					      .clock = r.clock,
					      .kernels = ttmon_program_names_get(names, r.kernels),
				      });
		return;
	}
	line = json_loadb(at, n, 0, NULL);
	if (ttmon_db_u64(line, "missed", &value))
		p->missed += value;
	if (ttmon_db_u64(line, "first", &value) && value)
		p->earlier = value - 1;
	if (ttmon_program_names_take(names, line))
		p->left_out++;
	json_decref(line);
}

static int once(const struct opts *o)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	struct ttmon_program_names names = { 0 };
	struct ttmon_programs p = { 0 };
	char path[64] = "/v1/tt/programs";
	int err;

	if (o->pid)
		snprintf(path, sizeof(path), "/v1/tt/programs?pid=%u", o->pid);
	err = ttmon_client_fetch(o->socket, path, &reply);
	for (const char *at = reply.body, *end = at ? at + reply.len : at; !err && at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));

		if (!nl)
			break;
		take_line(&p, &names, at, (size_t)(nl - at));
		at = nl + 1;
	}
	p.window_ns = p.to_ns - p.from_ns;
	if (!err)
		err = show(&p, o);
	ttmon_program_names_fini(&names);
	ttmon_programs_fini(&p);
	return err;
}

/* ---- following the service ---- */

struct live {
	struct ttmon_program_sub *sub;
	uint64_t begin_ns; /* runs that began before this time are those that the service had kept */
	uint64_t taken_ns;
	uint64_t missed, disconnects;
	pthread_mutex_t lock;
	struct ttmon_programs now;
};

static void on_run(void *ctx, const struct ttmon_program_run *run)
{
	struct live *l = ctx;

	if (run->seen_ns < l->begin_ns)
		return;
	pthread_mutex_lock(&l->lock);
	ttmon_programs_add(&l->now, run);
	pthread_mutex_unlock(&l->lock);
}

/* Takes the runs that arrived since the last call, sorted. */
static bool take(void *ctx, struct ttmon_programs *ret)
{
	struct ttmon_program_stats stats;
	struct live *l = ctx;
	uint64_t now;

	ttmon_program_get_stats(l->sub, &stats);
	pthread_mutex_lock(&l->lock);
	now = ttmon_mono_ns();
	*ret = l->now;
	l->now = (struct ttmon_programs){ 0 };
	/* The next gap on a chip counts from the last end of this interval. */
	l->now.chips = ret->chips;
	l->now.ends = ret->ends;
	l->now.nr_ends = ret->nr_ends;
	l->now.cap_ends = ret->cap_ends;
	pthread_mutex_unlock(&l->lock);
	ret->chips = (struct ttmon_hmap){ 0 };
	ret->ends = NULL;
	ret->window_ns = now - l->taken_ns;
	ret->missed = stats.missed - l->missed;
	l->missed = stats.missed;
	l->taken_ns = now;
	ttmon_programs_sort(ret);
	return stats.connects > stats.disconnects;
}

static int loop(struct live *l, const struct opts *o)
{
	const struct timespec wait = { .tv_sec = o->interval_ms / 1000,
				       .tv_nsec = (long)(o->interval_ms % 1000) * 1000000 };
	int err = 0;

	while (!err) {
		struct ttmon_programs p = { 0 };

		nanosleep(&wait, NULL);
		if (!take(l, &p))
			fprintf(stderr, "ttmon programs: no ttmond at %s: waiting for it\n", o->socket);
		err = show(&p, o);
		ttmon_programs_fini(&p);
		if (!o->json && !err)
			putchar('\n');
	}
	return err;
}

static int follow(const struct opts *o)
{
	const struct ttmon_program_opts opts = { .size = sizeof(opts), .socket = o->socket, .pid = (int32_t)o->pid };
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	struct live l = { .begin_ns = ttmon_mono_ns(), .lock = PTHREAD_MUTEX_INITIALIZER };
	/* Fails with a message if there is no service, or if it does not have the route. */
	int err = ttmon_client_fetch(o->socket, "/v1/tt/programs?after=4000000000000000000&pid=1", &reply);

	if (err)
		return err;
	l.taken_ns = l.begin_ns;
	err = ttmon_program_subscribe(&opts, on_run, &l, &l.sub);
	if (err) {
		fprintf(stderr, "ttmon programs: %s\n", strerror(-err));
		return err;
	}
	if (o->json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		err = loop(&l, o);
	else
		err = ttmon_programs_screen(o->socket, o->interval_ms, take, &l);
	ttmon_program_unsubscribe(l.sub);
	ttmon_programs_fini(&l.now);
	return err;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	const struct opts *o = ctx;

	(void)cli;
	setlocale(LC_CTYPE, "");
	return (o->once ? once(o) : follow(o)) ? TTMON_EXIT_ERROR : 0;
}

static const struct ttmon_cli_opt options[] = {
	{ "once", '1', NULL, "print one table of all runs that the service has kept, and end",
	  "The service keeps 262,144 runs at most. Shares are of the time from the first start to the last end.",
	  TTMON_CLI_FLAG(struct opts, once) },
	TTMON_ROW_JSON(struct opts, json, "JSON, one document for each interval (with -1: one)",
		       "It has the full paths of kernels, and times in nanoseconds."),
	{ "interval", 'i', "S", "seconds, 0.1-60 (1)", NULL,
	  TTMON_CLI_FRACTION(struct opts, interval_ms, 1000, 100, 60000) },
	{ "pid", 'p', "PID", "only runs of this process", NULL, TTMON_CLI_PID(struct opts, pid) },
	TTMON_ROW_SOCKET(struct opts, socket),
};
const struct ttmon_cli_cmd ttmon_cmd_programs = {
	.name = "ttmon programs",
	.summary = "programs that run on Tenstorrent chips, live",
	.args = "[OPTIONS]",
	.about = "Programs that run on Tenstorrent chips, live, as tt-metal's real-time profiler reports them.",
	.notes = "BUSY is the share of the time in which the chip ran the program, ERROR how much it may be wrong; "
		 "with -1 the time is\n"
		 "from the first start to the last end. GAP is the median time since the end of the previous run on "
		 "that chip.\n"
		 "- means not known. Keys: space pause, arrows move, q quit.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const struct opts){ .socket = TTMON_SOCKET_DEFAULT, .interval_ms = 1000 },
	.size = sizeof(struct opts),
	.run = run,
};
