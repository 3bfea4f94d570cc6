// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_open.c: `ttmon open`: any file of ours, by what is in it: what it is, its summary as the command
 * for such files shows it, and what to do next.
 */
#include <jansson.h>
#include <limits.h>

#include "lib/base/fmt.h"
#include "tools/cli/cmds.h"
#include "tools/door/door.h"

struct opts {
	bool json;
};

static const struct {
	const char *name, *what;
	const struct ttmon_cli_cmd *summary; /* NULL: none */
	const char *words[2];		     /* before the file */
	const char *next[3];		     /* %s: the file */
} kinds[] = {
	[TTMON_DOOR_DATABASE] = { "database",
				  "the database of a run",
				  &ttmon_cmd_db,
				  { "show" },
				  { "ttmon advise %s", "ttmon view %s", "ttmon heat %s" } },
	[TTMON_DOOR_RECORDING] = { "recording",
				   "a recording of the raw stream",
				   NULL,
				   { NULL },
				   { "sudo ttmon replay %s", "ttmon trace %s -o trace.json.gz" } },
	[TTMON_DOOR_SLOTS] = { "slots",
			       "who used the machine, millisecond by millisecond",
			       &ttmon_cmd_slots,
			       { "--sum" },
			       { "ttmon slots %s" } },
	[TTMON_DOOR_ACCESSES] = { "accesses",
				  "memory accesses of GPU kernels",
				  &ttmon_cmd_memtrace,
				  { NULL },
				  { "ttmon memtrace view %s" } },
	[TTMON_DOOR_TEXT_TRACE] = { "text_trace",
				    "memory accesses of GPU kernels, as text",
				    &ttmon_cmd_memtrace,
				    { NULL },
				    { "ttmon memtrace convert %s" } },
	[TTMON_DOOR_TIMELINE] = { "timeline",
				  "a timeline: open it in https://ui.perfetto.dev or chrome://tracing",
				  NULL,
				  { NULL },
				  { NULL } },
	[TTMON_DOOR_PAGE] = { "page", "a page for the browser", NULL, { NULL }, { "xdg-open %s" } },
	[TTMON_DOOR_REPORT] = { "report", "an archive of ttmon bugreport", NULL, { NULL }, { "tar tzf %s" } },
};

static int show_json(const char *path, enum ttmon_door_kind kind)
{
	json_t *doc = json_pack("{s:s, s:s, s:s, s:[]}", "file", path, "kind", kinds[kind].name, "what",
				kinds[kind].what, "next");
	char name[PATH_MAX], line[PATH_MAX + 64];

	ttmon_fmt_quote(name, sizeof(name), path);
	for (size_t i = 0; i < ARRAY_SIZE(kinds[kind].next) && kinds[kind].next[i]; i++) {
		const char *at = strstr(kinds[kind].next[i], "%s");

		snprintf(line, sizeof(line), "%.*s%s%s", (int)(at - kinds[kind].next[i]), kinds[kind].next[i], name,
			 at + 2);
		json_array_append_new(json_object_get(doc, "next"), json_string(line));
	}
	if (!doc || json_dumpf(doc, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER)) {
		fprintf(stderr, "ttmon open: the name is not UTF-8, or there is no memory\n");
		json_decref(doc);
		return TTMON_EXIT_ERROR;
	}
	putchar('\n');
	json_decref(doc);
	return 0;
}

/* As if it had been typed: "ttmon db show FILE". */
static int summary(const char *path, enum ttmon_door_kind kind)
{
	const char *argv[6] = { "ttmon" };
	int n = 1;

	for (size_t i = 0; i < ARRAY_SIZE(kinds[kind].words) && kinds[kind].words[i]; i++)
		argv[n++] = kinds[kind].words[i];
	argv[n++] = "--";
	argv[n++] = path;
	return ttmon_cli_run(kinds[kind].summary, n, (char **)argv);
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	const struct opts *o = ctx;
	const char *path = cli->words[0];
	enum ttmon_door_kind kind;
	char name[PATH_MAX];
	int err = ttmon_door_look(path, &kind), status = 0;

	ttmon_fmt_quote(name, sizeof(name), path);
	if (err) {
		fprintf(stderr, "ttmon open: %s: %s\n", name, strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	if (kind == TTMON_DOOR_UNKNOWN) {
		fprintf(stderr,
			"ttmon open: %s is no file of ttmon: neither a database, a recording, slots, accesses of "
			"kernels, a timeline, a page nor a bug report\n",
			name);
		return TTMON_EXIT_ERROR;
	}
	if (o->json)
		return show_json(path, kind);
	printf("%s: %s\n", name, kinds[kind].what);
	if (kinds[kind].summary) {
		putchar('\n');
		fflush(stdout);
		status = summary(path, kind);
		putchar('\n');
	}
	for (size_t i = 0; !status && i < ARRAY_SIZE(kinds[kind].next) && kinds[kind].next[i]; i++) {
		const char *next = kinds[kind].next[i], *at = strstr(next, "%s");

		printf("%s %.*s%s%s\n", i ? "     " : "next:", (int)(at - next), next, name, at + 2);
	}
	return status;
}

static const struct ttmon_cli_opt options[] = {
	TTMON_ROW_JSON(struct opts, json, "what it is and what to do next, as JSON", NULL),
};
const struct ttmon_cli_cmd ttmon_cmd_open = {
	.name = "ttmon open",
	.summary = "any file of ttmon: what it is, its summary, and what to do next",
	.args = "[OPTIONS] FILE",
	.about = "Says what a file is by what is in it, whatever its name, shows its summary and what to type next:\n"
		 "databases, recordings, slots, accesses of kernels, timelines, pages, bug reports.",
	.notes = "Exit status: that of the summary; 2 where it is no file of ttmon or cannot be read.",
	TTMON_CLI_OPTS(options),
	.size = sizeof(struct opts),
	.min_words = 1,
	.max_words = 1,
	.words = ":file",
	.run = run,
};
