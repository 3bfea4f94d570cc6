// SPDX-License-Identifier: GPL-2.0-only
/* cmd_heat.c: `ttmon heat`: the options, and the forms that print once. */
#include <langinfo.h>
#include <locale.h>

#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/heat/heat.h"
#include "tools/cli/show.h"

#define WIDTH_PIPE 120
#define LINES_ONCE 50

struct opts {
	struct ttmon_heat_ask ask;
	enum { BY_SITE, BY_ALLOCATION, BY_PAGE } by;
	bool once, json, has_lines;
};

void ttmon_heat_span(const struct ttmon_heatmap *map, const struct ttmon_heat_ask *ask, unsigned int columns,
		     struct ttmon_heatmap_span *ret)
{
	*ret = (struct ttmon_heatmap_span){ .from_ns = map->start_ns,
					    .to_ns = map->end_ns,
					    .columns = columns,
					    .copies = ask->sort == TTMON_HEAT_BY_COPIES };
}

int ttmon_heat_read(const struct ttmon_heat_ask *ask, bool quiet, struct ttmon_heatmap *ret)
{
	struct ttmon_heatmap map = { 0 };
	char why[600] = "";
	int err = ask->db ? ttmon_heat_read_db(ask, &map, why, sizeof(why))
			  : ttmon_heat_read_live(ask, &map, why, sizeof(why));

	if (!err && ask->last_ms)
		ttmon_heatmap_keep_last(&map, ask->last_ms * NSEC_PER_MS);
	if (!err && ask->by_site && !map.pages)
		err = ttmon_heatmap_group(&map);
	/* Pages are shown by address unless another order was requested. */
	if (!err)
		err = ttmon_heatmap_sort(&map, map.pages && !ask->has_sort ? TTMON_HEAT_BY_SITE : ask->sort,
					 ask->reverse);
	if (err) {
		if (!quiet)
			fprintf(stderr, "ttmon heat: %s\n", *why ? why : strerror(-err));
		ttmon_heatmap_fini(&map);
		return err;
	}
	*ret = map;
	return 0;
}

static void print(const struct ttmon_heatmap *map, const struct opts *o)
{
	bool colour = ttmon_heat_has_colours();
	size_t width = o->ask.width ? o->ask.width : ttmon_show_columns() ? ttmon_show_columns() : WIDTH_PIPE;
	uint64_t lines = o->has_lines ? o->ask.lines : LINES_ONCE;
	size_t n = lines ? (size_t)MIN(lines, (uint64_t)map->nr) : map->nr;
	struct ttmon_heatmap_scale scale;
	struct ttmon_heatmap_span span;
	struct ttmon_heat_layout l;
	struct ttmon_heat_line line;

	setlocale(LC_CTYPE, "");
	ttmon_heat_fit(map, (unsigned int)width, !strcmp(nl_langinfo(CODESET), "UTF-8"), &l);
	ttmon_heat_span(map, &o->ask, l.map, &span);
	ttmon_heatmap_find_scale(map, &span, &scale);
	for (unsigned int i = 0; i < 2u + (map->missing[0] != 0); i++) {
		ttmon_heat_head(map, &l, i, &line);
		ttmon_heat_print(stdout, &line, colour);
	}
	ttmon_heat_columns(map, &l, &span, &line);
	ttmon_heat_print(stdout, &line, colour);
	if (ttmon_heat_marks(map, &l, &span, &line))
		ttmon_heat_print(stdout, &line, colour);
	for (size_t i = 0; i < n; i++) {
		ttmon_heat_row(map, &l, &span, &scale, i, &line);
		ttmon_heat_print(stdout, &line, colour);
	}
	if (n < map->nr)
		printf("... and %zu more (-n 0 shows all)\n", map->nr - n);
	for (unsigned int i = 0; i < 2; i++) {
		ttmon_heat_legend(map, &l, &span, &scale, i, &line);
		ttmon_heat_print(stdout, &line, colour);
	}
}

static int print_json(const struct ttmon_heatmap *map, const struct opts *o)
{
	struct ttmon_heatmap_span span;
	json_t *doc;
	char *text;

	ttmon_heat_span(map, &o->ask, o->ask.width ? o->ask.width : WIDTH_PIPE, &span);
	doc = ttmon_heat_json(map, &span, o->ask.lines);
	text = doc ? json_dumps(doc, JSON_PRESERVE_ORDER | JSON_COMPACT) : NULL;
	json_decref(doc);
	if (!text) {
		fprintf(stderr, "ttmon heat: out of memory\n");
		return TTMON_EXIT_ERROR;
	}
	puts(text);
	free(text);
	return 0;
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	struct ttmon_heatmap map = { 0 };
	struct opts *o = ctx;
	int status = 0;

	if (cli->nr_words)
		o->ask.db = strcmp(cli->words[0], "live") ? cli->words[0] : NULL;
	if (o->ask.id && !*o->ask.id)
		return ttmon_cli_bad(cli, "--id needs an id");
	if ((o->by == BY_PAGE) != (o->ask.id != NULL))
		return ttmon_cli_bad(cli, "%s--id",
				     o->by == BY_PAGE ? "pages are those of one allocation: its "
						      : "to show an allocation's pages, add --by page before ");
	o->ask.by_site = o->by == BY_SITE;
	if (!o->once && !o->json && ttmon_heat_has_screen())
		return ttmon_heat_screen(&o->ask);
	if (ttmon_heat_read(&o->ask, false, &map))
		return TTMON_EXIT_ERROR;
	if (o->json)
		status = print_json(&map, o);
	else
		print(&map, o);
	ttmon_heatmap_fini(&map);
	return status;
}

static const struct ttmon_cli_opt options[] = {
	{ "once", '1', NULL, "print the map once and end, even on a terminal", NULL,
	  TTMON_CLI_FLAG(struct opts, once) },
	TTMON_ROW_JSON(struct opts, json, "JSON: the cells as numbers", "Bytes and copies."),
	{ "by", 0, "WHAT",
	  "one row per site (all of a call site, process and API), allocation or page (of one allocation) (site)",
	  "The size of a site is the most that it had live at one time; the pages of one are in at most 64 groups.",
	  TTMON_CLI_WORD(struct opts, by, "site allocation page") },
	{ "id", 0, "ID", "of that allocation, as much of its beginning as is needed in a DB",
	  "As \\-j and the screen tell it.", TTMON_CLI_TEXT(struct opts, ask.id, NULL) },
	/* In the order of enum ttmon_heat_sort. */
	{ "sort", 'o', "KEY", "bytes, copies, size, age or site; the cells are copies with copies, else bytes (bytes)",
	  NULL, TTMON_CLI_WORD(struct opts, ask.sort, "bytes copies size age site"),
	  TTMON_CLI_GIVEN(struct opts, ask.has_sort) },
	{ "reverse", 'r', NULL, "the other way round", NULL, TTMON_CLI_FLAG(struct opts, ask.reverse) },
	{ "lines", 'n', "N", "at most so many rows, 0: all (of a table 50, of JSON all)", NULL,
	  TTMON_CLI_NUMBER(struct opts, ask.lines, 0, 1000000000), TTMON_CLI_GIVEN(struct opts, has_lines) },
	{ "pid", 'p', "PID", "only of this process", NULL, TTMON_CLI_PID(struct opts, ask.pid) },
	{ "all", 'a', NULL, "also device memory, and mappings that moved nothing", NULL,
	  TTMON_CLI_FLAG(struct opts, ask.all) },
	{ "last", 0, "S", "of the last S seconds alone: map, rows and sums; the peak is that of the whole run", NULL,
	  TTMON_CLI_FRACTION(struct opts, ask.last_ms, 1000, 1, 10000000000) },
	{ "width", 'w', "N", "columns of the table or of the map in JSON, 60-512 (the terminal's, else 120)", NULL,
	  TTMON_CLI_NUMBER(struct opts, ask.width, TTMON_HEAT_WIDTH_MIN, TTMON_HEAT_WIDTH_MAX) },
	{ "interval", 'i', "S", "between two readings of the service, 0.5-60 s (2)", NULL,
	  TTMON_CLI_FRACTION(struct opts, ask.interval_ms, 1000, 500, 60000) },
	TTMON_ROW_SOCKET(struct opts, ask.socket),
};
const struct ttmon_cli_cmd ttmon_cmd_heat = {
	.name = "ttmon heat",
	.summary = "transfers over time, or over the pages of an allocation, as a heat map in the terminal",
	.args = "[OPTIONS] [DB|live]",
	.about = "Shows what was moved to and from the device as a map: a row for each call site, time from left to "
		 "right. DB is a\n"
		 "database (ttmond --dump-db), live the running service, which is the default.",
	.notes = "Keys: arrows and page keys move, Enter shows the allocations of a call site and the pages of an "
		 "allocation,\n"
		 "Esc goes back, g shows call sites or allocations, / filters, + - zoom, < > go to earlier and later "
		 "times,\n"
		 "= shows all, s sorts, r reverses the order, p or space pauses, ? help, q quits.\n"
		 "PEAK: the most bytes of a call site that were live at one time. ADVICE: pin, unpin, keep, pinned "
		 "(allocate it\n"
		 "pinned), ? not known. HOW: P pinned, - pageable, ? not known which of both, m managed, d on the "
		 "device, then\n"
		 "the call. A middle dot: live, nothing moved; ?: calls may be missing there; + behind the map: events "
		 "of this\n"
		 "allocation were not kept; >=: a lower bound, -: not known. In the live map the life of an allocation "
		 "has 64\n"
		 "parts at most.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const struct opts){ .ask = { .socket = TTMON_SOCKET_DEFAULT, .interval_ms = 2000 } },
	.size = sizeof(struct opts),
	.max_words = 1,
	.words = "live :file",
	.run = run,
};
