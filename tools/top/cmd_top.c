// SPDX-License-Identifier: GPL-2.0-only
/* cmd_top.c: `ttmon top`: options, the one-shot forms. */
#include <getopt.h>
#include <time.h>

#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/cli/show.h"
#include "tools/top/top.h"

static const char usage[] =
	"usage: ttmon top [OPTIONS]\n\n"
	"Who uses the CPUs, the caches, memory bandwidth and pinned memory: the processes of this host, live.\n\n"
	"  -1, --once          one table, of the next interval, and end\n"
	"  -j, --json          JSON, a document an interval (with -1 one); sums over interval_ns\n"
	"  -i, --interval S    seconds, 0.1-60 (1)\n"
	"  -o, --sort KEY      cpu, ipc, misses, bandwidth, llc, pinned, copied, switches or pid (cpu)\n"
	"  -r, --reverse       the other way round\n"
	"  -n, --lines N       at most so many processes\n"
	"  -p, --pid PID       this one alone\n"
	"  -k, --kernel        kernel threads too\n"
	"  -a, --args          command lines in the place of names\n"
	"  -s, --socket PATH   of the service (default " TTMON_SOCKET_DEFAULT ")\n"
	"  -h, --help          this text\n\n"
	"Keys: c i m b l p t s n sort, < > by the column beside it, r the other way round, k kernel threads, a command\n"
	"lines, + - interval, arrows and page keys move, space pause, h help, q quit.\n"
	"CPU% is of one CPU. LLC and MBM need RDT (ttmond --rmid), IPC and MISS hardware counters; - is: not known here,\n"
	">= a lower bound: a family of probes (ttmon family) was not on in all of the interval, and the third line says which.\n"
	"(ended) is the sum of processes that came and went, (unassigned) the bandwidth of RMIDs that nobody owned.\n";

struct opts {
	struct ttmon_top_ask ask;
	bool once, json;
};

static int bad(const char *what, const char *arg)
{
	fprintf(stderr, "ttmon top: %s%s, see ttmon top --help\n", what, arg);
	return -EINVAL;
}

static int number(const char *what, const char *arg, double min, double max, double *ret)
{
	char *end;
	double v = strtod(arg, &end);

	if (end == arg || *end || !(v >= min && v <= max))
		return bad(what, arg);
	*ret = v;
	return 0;
}

static int whole(const char *what, const char *arg, double max, uint64_t *ret)
{
	double v = 0;
	int err = number(what, arg, 1, max, &v);

	if (!err && v != (double)(uint64_t)v)
		err = bad(what, arg);
	if (!err)
		*ret = (uint64_t)v;
	return err;
}

static int parse_sort(const char *arg, unsigned int *ret)
{
	for (unsigned int i = 0; i < TTMON_SORT_MAX; i++) {
		if (!strcmp(arg, ttmon_top_sort_name(i))) {
			*ret = i;
			return 0;
		}
	}
	return bad("no such key to sort by: ", arg);
}

static int parse(int argc, char **argv, struct opts *ret)
{
	static const struct option longs[] = {
		{ "once", no_argument, NULL, '1' },	      { "json", no_argument, NULL, 'j' },
		{ "interval", required_argument, NULL, 'i' }, { "sort", required_argument, NULL, 'o' },
		{ "lines", required_argument, NULL, 'n' },    { "pid", required_argument, NULL, 'p' },
		{ "kernel", no_argument, NULL, 'k' },	      { "socket", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },	      { "reverse", no_argument, NULL, 'r' },
		{ "args", no_argument, NULL, 'a' },	      { 0 },
	};
	struct opts o = { .ask = { .socket = TTMON_SOCKET_DEFAULT, .interval_ms = 1000 } };
	uint64_t lines = 0;
	char name[] = "-?";
	double v = 0;
	int c, err = 0;

	optind = 0;
	opterr = 0;
	while (!err && (c = getopt_long(argc, argv, ":1ji:o:n:p:kras:h", longs, NULL)) != -1) {
		switch (c) {
		case '1':
			o.once = true;
			break;
		case 'j':
			o.json = true;
			break;
		case 'i':
			err = number("not an interval (0.1-60 s): ", optarg, 0.1, 60, &v);
			o.ask.interval_ms = (unsigned int)(v * 1000 + 0.5);
			break;
		case 'o':
			err = parse_sort(optarg, &o.ask.sort);
			break;
		case 'n':
			err = whole("not a number of lines: ", optarg, 1e6, &lines);
			o.ask.lines = (unsigned int)lines;
			break;
		case 'p':
			err = whole("not a pid: ", optarg, INT32_MAX, &o.ask.pid);
			break;
		case 'k':
			o.ask.kernel = true;
			break;
		case 'r':
			o.ask.reverse = true;
			break;
		case 'a':
			o.ask.args = true;
			break;
		case 's':
			o.ask.socket = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return -ECANCELED;
		default:
			/* optopt is the letter, 0 for a long option that is not known. */
			name[1] = (char)optopt;
			return bad(c == ':' ? "a value is missing after " : "no such option: ",
				   optopt ? name : argv[optind - 1]);
		}
	}
	if (!err && optind < argc)
		err = bad("takes no argument: ", argv[optind]);
	if (!err)
		*ret = o;
	return err;
}

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

/* What happened since the last reading, which the one made here takes the place of. */
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
	/* main() says so. */
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

int cmd_top(int argc, char **argv)
{
	struct opts o = { 0 };
	int err = parse(argc, argv, &o);

	if (err)
		return err == -ECANCELED ? 0 : TTMON_EXIT_ERROR;
	if (o.once || o.json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return print_loop(&o);
	return ttmon_top_screen(&o.ask);
}
