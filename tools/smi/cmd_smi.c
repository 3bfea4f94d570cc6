// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_smi.c: `ttmon smi`: the Tenstorrent chips of this host and who uses how much of their memory. Needs no service: it reads the
 * tt_device_*_memory files that ttmond or the programs write, and sysfs and procfs of tt-kmd. Writes to nothing without --cleanup.
 */
#include <getopt.h>

#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/cli/show.h"
#include "tools/smi/smi.h"

#define REFRESH_MS     1000
#define REFRESH_MIN_MS 50
#define REFRESH_MAX_MS 3600000

static const char usage[] = "usage: ttmon smi [OPTIONS]\n"
			    "\n"
			    "Shows the Tenstorrent chips of this host, their memory and who uses it, from the\n"
			    "files in /dev/shm (of ttmond or of tt-metal itself) and from tt-kmd. Needs no\n"
			    "service, opens no device.\n"
			    "\n"
			    "  -w, --watch         again and again; q quits\n"
			    "  -r, --refresh MS    how often with --watch (default 1000)\n"
			    "  -d, --details       ids, file, who has it mapped; dead entries too\n"
			    "  -c, --cleanup       take entries of dead processes out of the files\n"
			    "  -b, --busy          share of the last second in which each process had a chip run\n"
			    "                      programs, and its error; asks the service\n"
			    "  -s, --socket PATH   of the service (default " TTMON_SOCKET_DEFAULT ")\n"
			    "  -j, --json          for programs; with --watch a line each time\n"
			    "      --color WHEN    auto, always, never (default auto)\n"
			    "      --sysfs-root DIR, --proc-root DIR, --shm-root DIR\n"
			    "                      instead of /sys, /proc, /dev/shm\n"
			    "  -h, --help          this text\n"
			    "\n"
			    "ID      unique id, tt_asic_id, or board:location; R: remote half of a board;\n"
			    "        T1:N5: tray and chip of a Galaxy\n"
			    "DRAM    buffers and traces; L1 with L1 small and circular buffers\n"
			    "n/a     not known\n"
			    "\n"
			    "Exit status: 0; 1 when a file or a tree could not be read or cleaned up; 2 when\n"
			    "there is no answer.\n";

enum when { AUTO, ALWAYS, NEVER };

struct opts {
	struct ttmon_smi_ask ask;
	bool watch, json;
	enum when colour;
	unsigned int refresh_ms;
};

static int bad(const char *what, const char *value)
{
	fprintf(stderr, "ttmon smi: %s%s, see ttmon smi --help\n", what, value);
	return -EINVAL;
}

static int parse_refresh(const char *text, unsigned int *ret)
{
	char *end;
	unsigned long ms;

	errno = 0;
	ms = strtoul(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || ms < REFRESH_MIN_MS || ms > REFRESH_MAX_MS)
		return bad("--refresh takes 50 to 3600000 milliseconds, not ", text);
	*ret = (unsigned int)ms;
	return 0;
}

static int parse_colour(const char *text, enum when *ret)
{
	static const char *const names[] = { [AUTO] = "auto", [ALWAYS] = "always", [NEVER] = "never" };

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(text, names[i])) {
			*ret = i;
			return 0;
		}
	}
	return bad("--color takes auto, always or never, not ", text);
}

/* 0: go on; -ECANCELED: --help. */
static int parse(int argc, char **argv, struct opts *ret)
{
	enum { COLOUR = 256, SYSFS, PROC, SHM };
	static const struct option options[] = {
		{ "watch", no_argument, NULL, 'w' },
		{ "refresh", required_argument, NULL, 'r' },
		{ "details", no_argument, NULL, 'd' },
		{ "cleanup", no_argument, NULL, 'c' },
		{ "busy", no_argument, NULL, 'b' },
		{ "socket", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "color", required_argument, NULL, COLOUR },
		{ "sysfs-root", required_argument, NULL, SYSFS },
		{ "proc-root", required_argument, NULL, PROC },
		{ "shm-root", required_argument, NULL, SHM },
		{ 0 },
	};
	struct opts o = { .refresh_ms = REFRESH_MS, .ask.socket = TTMON_SOCKET_DEFAULT };
	char letter[] = "-?";
	int c;

	/* 0, not 1: glibc then forgets what it knew of another argv. */
	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":wr:dcbs:jh", options, NULL)) != -1) {
		switch (c) {
		case 'w':
			o.watch = true;
			break;
		case 'r':
			if (parse_refresh(optarg, &o.refresh_ms))
				return -EINVAL;
			break;
		case 'd':
			o.ask.details = true;
			break;
		case 'c':
			o.ask.cleanup = true;
			break;
		case 'b':
			o.ask.busy = true;
			break;
		case 's':
			o.ask.socket = optarg;
			break;
		case 'j':
			o.json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return -ECANCELED;
		case COLOUR:
			if (parse_colour(optarg, &o.colour))
				return -EINVAL;
			break;
		case SYSFS:
			o.ask.roots.sysfs = optarg;
			break;
		case PROC:
			o.ask.roots.proc = optarg;
			break;
		case SHM:
			o.ask.roots.shm = optarg;
			break;
		default:
			letter[1] = (char)optopt;
			return bad(c == ':' ? "a value is missing after " : "no such option: ",
				   optopt > 0 && optopt < 256 ? letter : argv[optind - 1]);
		}
	}
	if (optind < argc)
		return bad("takes no argument: ", argv[optind]);
	*ret = o;
	return 0;
}

static bool wants_colour(enum when when)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	if (when != AUTO)
		return when == ALWAYS;
	return isatty(STDOUT_FILENO) && !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

/* As setlocale() would find it; ttmon itself stays in the C locale. */
static bool shows_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static int once(const struct opts *o, const struct ttmon_term_style *style)
{
	_cleanup_(ttmon_smi_fini) struct ttmon_smi v = { 0 };
	int err = ttmon_smi_read(&o->ask, &v);

	if (!err)
		err = ttmon_smi_read_busy(&o->ask, &v);
	if (!err && o->json) {
		fflush(stdout);
		err = ttmon_smi_json(&v, true, STDOUT_FILENO);
	} else if (!err) {
		ttmon_smi_text(&v, style, stdout);
	}
	if (err) {
		fprintf(stderr, "ttmon smi: %s\n", strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	/* On the terminal they stand below the table already. */
	for (size_t i = 0; i < v.nr_problems && !isatty(STDOUT_FILENO); i++)
		fprintf(stderr, "ttmon smi: %s: %s\n", v.problems[i].what, v.problems[i].text);
	return v.failed ? TTMON_EXIT_NO : 0;
}

int cmd_smi(int argc, char **argv)
{
	struct ttmon_term_style style;
	struct opts o = { 0 };
	int err = parse(argc, argv, &o);

	if (err)
		return err == -ECANCELED ? 0 : TTMON_EXIT_ERROR;
	style = (struct ttmon_term_style){ .columns = ttmon_show_columns(),
					   .colour = wants_colour(o.colour),
					   .utf8 = shows_utf8() };
	return o.watch ? ttmon_smi_watch(&o.ask, &style, o.refresh_ms, o.json) : once(&o, &style);
}
