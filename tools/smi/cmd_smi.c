// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_smi.c: `ttmon smi` shows the Tenstorrent chips of this host and the memory that each process
 * uses on them. It needs no service: it reads the tt_device_*_memory files that ttmond or the programs
 * write, and sysfs and procfs of tt-kmd. Without --cleanup it writes nothing.
 */
#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/cli/show.h"
#include "tools/smi/smi.h"

#define REFRESH_MS     1000
#define REFRESH_MIN_MS 50
#define REFRESH_MAX_MS 3600000

enum when { AUTO, ALWAYS, NEVER };

struct opts {
	struct ttmon_smi_ask ask;
	bool watch, json;
	enum when colour;
	unsigned int refresh_ms;
};

static bool wants_colour(enum when when)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	if (when != AUTO)
		return when == ALWAYS;
	return isatty(STDOUT_FILENO) && !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

/* Looks up the character set as setlocale() would; ttmon itself stays in the C locale. */
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
	/* On a terminal the problems are shown below the table already. */
	for (size_t i = 0; i < v.nr_problems && !isatty(STDOUT_FILENO); i++)
		fprintf(stderr, "ttmon smi: %s: %s\n", v.problems[i].what, v.problems[i].text);
	return v.failed ? TTMON_EXIT_NO : 0;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	struct opts *o = ctx;
	struct ttmon_term_style style = { .columns = ttmon_show_columns(),
					  .colour = wants_colour(o->colour),
					  .utf8 = shows_utf8() };

	(void)cli;
	return o->watch ? ttmon_smi_watch(&o->ask, &style, o->refresh_ms, o->json) : once(o, &style);
}

static const struct ttmon_cli_opt options[] = {
	{ "watch", 'w', NULL, "repeat; q quits",
	  "On a terminal it redraws in place, and the arrow and page keys scroll. Otherwise it prints one block after "
	  "the other, with an empty line between them.",
	  TTMON_CLI_FLAG(struct opts, watch) },
	{ "refresh", 'r', "MS", "how often with --watch (default 1000)", "50 to 3600000 milliseconds.",
	  TTMON_CLI_NUMBER(struct opts, refresh_ms, REFRESH_MIN_MS, REFRESH_MAX_MS) },
	{ "details", 'd', NULL, "ids, files, processes that map them, dead entries",
	  "For each chip it shows bus address, ids, location, memory by type, the files with the processes that have "
	  "them mapped, and the processes that have the chip open.",
	  TTMON_CLI_FLAG(struct opts, ask.details) },
	{ "cleanup", 'c', NULL, "remove entries of dead processes from the files",
	  "A process that ttmon is not allowed to signal counts as alive.", TTMON_CLI_FLAG(struct opts, ask.cleanup) },
	{ "busy", 'b', NULL,
	  "share of the last second in which a process had a chip run\nprograms, and its error; needs the service",
	  "With \\-w the share is of the time since the last picture. \\- means that tt\\-metal's real\\-time "
	  "profiler has reported nothing. A run counts when it is reported. "
	  "The table of chips has the sum over the processes of each chip, with >= if the profiler has reported "
	  "nothing for one of them. "
	  "This is an option because it needs the service, and a second between two readings, while everything else is "
	  "read at once and without a service.",
	  TTMON_CLI_FLAG(struct opts, ask.busy) },
	TTMON_ROW_SOCKET(struct opts, ask.socket),
	TTMON_ROW_JSON(struct opts, json, "JSON; with --watch one line each time", NULL),
	{ "color", 0, "WHEN", "auto, always, never (default auto)",
	  "Whether to use colour; auto: if stdout is a terminal and NO_COLOR is not set.",
	  TTMON_CLI_WORD(struct opts, colour, "auto always never") },
	{ "sysfs-root", 0, "DIR", "instead of /sys", NULL, TTMON_CLI_TEXT(struct opts, ask.roots.sysfs, ":dir") },
	{ "proc-root", 0, "DIR", "instead of /proc", "Its driver/tenstorrent.",
	  TTMON_CLI_TEXT(struct opts, ask.roots.proc, ":dir") },
	{ "shm-root", 0, "DIR", "instead of /dev/shm", NULL, TTMON_CLI_TEXT(struct opts, ask.roots.shm, ":dir") },
};
const struct ttmon_cli_cmd ttmon_cmd_smi = {
	.name = "ttmon smi",
	.summary = "the Tenstorrent chips of this host, and which processes use their memory",
	.args = "[OPTIONS]",
	.about = "Shows the Tenstorrent chips of this host, and which processes use their memory, from the\n"
		 "files in /dev/shm (of ttmond or of tt-metal itself) and from tt-kmd. Needs no\n"
		 "service, opens no device.",
	.notes = "ID      unique id, tt_asic_id, or board:location; R: remote half of a board;\n"
		 "        T1:N5: tray and chip of a Galaxy\n"
		 "DRAM    buffers and traces; L1 with L1 small and circular buffers\n"
		 "n/a     not known\n"
		 "\n"
		 "Exit status: 0; 1 when a file or a tree could not be read or cleaned up; 2 when\n"
		 "there is no answer.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const struct opts){ .refresh_ms = REFRESH_MS, .ask.socket = TTMON_SOCKET_DEFAULT },
	.size = sizeof(struct opts),
	.run = run,
};
