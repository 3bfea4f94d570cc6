// SPDX-License-Identifier: GPL-2.0-only
/* cmd_heat.c: `ttmon heat`: options, the one-shot forms. */
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>

#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/heat/heat.h"
#include "tools/cli/show.h"

#define WIDTH_PIPE 120
#define LINES_ONCE 50

static const char usage[] =
	"usage: ttmon heat [OPTIONS] [DB|live]\n\n"
	"What was moved to and from the device, as a map: a row for each allocation, time from left to right. DB is a database\n"
	"(ttmond --dump-db), live the service, which is meant where neither is given.\n\n"
	"  -1, --once          print the map and end, also on a terminal\n"
	"  -j, --json          JSON: the cells as numbers\n"
	"      --by WHAT       allocation; site: those of one call site, process and API together; page: pages of one (allocation)\n"
	"      --id ID         of that allocation, as much of its beginning as is needed in a DB\n"
	"  -o, --sort KEY      bytes, copies, size, age or site; the cells are copies with copies, else bytes (bytes)\n"
	"  -r, --reverse       the other way round\n"
	"  -n, --lines N       at most so many rows, 0: all (of a table 50, of JSON all)\n"
	"  -p, --pid PID       of this process alone\n"
	"  -a, --all           also device memory, and mappings that moved nothing\n"
	"      --last S        of the last S seconds alone\n"
	"  -w, --width N       columns of the table or of the map in JSON, 60-512 (the terminal's, else 120)\n"
	"  -i, --interval S    between two readings of the service, 0.5-60 s (2)\n"
	"  -s, --socket PATH   of the service (default " TTMON_SOCKET_DEFAULT ")\n"
	"  -h, --help          this text\n\n"
	"Keys: arrows and page keys move, Enter the pages of an allocation, Backspace back, g by call site, + - zoom, < > to earlier and later,\n"
	"= all of it, s sort, r the other way round, p or space pause, h help, q quit.\n"
	"HOW: P pinned, - pageable, ? not known which of both, m managed, d on the device, and by which call. A middle dot: alive and nothing moved;\n"
	"?: calls can be missing there; + behind the map: events of this allocation were not kept; >=: a lower bound, -: not known. The live map of a long life is coarse: 64 pieces.\n";

struct opts {
	struct ttmon_heat_ask ask;
	bool once, json, by_page, has_lines;
};

static int bad(const char *what, const char *arg)
{
	fprintf(stderr, "ttmon heat: %s%s, see ttmon heat --help\n", what, arg);
	return -EINVAL;
}

static int number(const char *what, const char *arg, double min, double max, bool whole, double *ret)
{
	char *end;
	double v = strtod(arg, &end);

	if (end == arg || *end || !(v >= min && v <= max) || (whole && v != (double)(uint64_t)v))
		return bad(what, arg);
	*ret = v;
	return 0;
}

static int parse_sort(const char *arg, unsigned int *ret)
{
	for (unsigned int i = 0; i < TTMON_HEAT_SORTS; i++) {
		if (!strcmp(arg, ttmon_heat_sort_name(i))) {
			*ret = i;
			return 0;
		}
	}
	return bad("no such key to sort by: ", arg);
}

static int parse_by(const char *arg, struct opts *o)
{
	if (strcmp(arg, "page") != 0 && strcmp(arg, "allocation") != 0 && strcmp(arg, "site") != 0)
		return bad("by allocation, site or page is wanted, not ", arg);
	o->by_page = !strcmp(arg, "page");
	o->ask.by_site = !strcmp(arg, "site");
	return 0;
}

enum { OPT_BY = 256, OPT_ID, OPT_LAST };

/* One option with its value. */
static int take(struct opts *o, int c, const char *arg)
{
	double v = 0;
	int err = 0;

	switch (c) {
	case OPT_BY:
		return parse_by(arg, o);
	case OPT_ID:
		o->ask.id = arg;
		return *arg ? 0 : bad("an id is wanted after ", "--id");
	case OPT_LAST:
		err = number("not a time in seconds (0.001-1e7): ", arg, 0.001, 1e7, false, &v);
		o->ask.last_ms = (uint64_t)(v * 1000 + 0.5);
		return err;
	case 'o':
		o->ask.has_sort = true;
		return parse_sort(arg, &o->ask.sort);
	case 'n':
		err = number("not a number of rows: ", arg, 0, 1e9, true, &v);
		o->ask.lines = (uint64_t)v;
		o->has_lines = true;
		return err;
	case 'p':
		err = number("not a pid: ", arg, 1, INT32_MAX, true, &v);
		o->ask.pid = (uint64_t)v;
		return err;
	case 'w':
		err = number("not a width (60-512): ", arg, TTMON_HEAT_WIDTH_MIN, TTMON_HEAT_WIDTH_MAX, true, &v);
		o->ask.width = (unsigned int)v;
		return err;
	case 'i':
		err = number("not an interval (0.5-60 s): ", arg, 0.5, 60, false, &v);
		o->ask.interval_ms = (unsigned int)(v * 1000 + 0.5);
		return err;
	case '1':
		o->once = true;
		break;
	case 'j':
		o->json = true;
		break;
	case 'r':
		o->ask.reverse = true;
		break;
	case 'a':
		o->ask.all = true;
		break;
	case 's':
		o->ask.socket = arg;
		break;
	default:
		break;
	}
	return 0;
}

static int parse(int argc, char **argv, struct opts *ret)
{
	static const struct option longs[] = {
		{ "once", no_argument, NULL, '1' },
		{ "json", no_argument, NULL, 'j' },
		{ "by", required_argument, NULL, OPT_BY },
		{ "id", required_argument, NULL, OPT_ID },
		{ "sort", required_argument, NULL, 'o' },
		{ "reverse", no_argument, NULL, 'r' },
		{ "lines", required_argument, NULL, 'n' },
		{ "pid", required_argument, NULL, 'p' },
		{ "all", no_argument, NULL, 'a' },
		{ "last", required_argument, NULL, OPT_LAST },
		{ "width", required_argument, NULL, 'w' },
		{ "interval", required_argument, NULL, 'i' },
		{ "socket", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct opts o = { .ask = { .socket = TTMON_SOCKET_DEFAULT, .interval_ms = 2000 } };
	char name[] = "-?";
	int c, err = 0;

	optind = 0;
	opterr = 0;
	while (!err && (c = getopt_long(argc, argv, ":1jo:rn:p:aw:i:s:h", longs, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return -ECANCELED;
		}
		if (c == ':' || c == '?') {
			/* optopt is the letter; 0, or what is no letter, for a long option. */
			name[1] = (char)optopt;
			return bad(c == ':' ? "a value is missing after " : "no such option: ",
				   optopt && optopt < OPT_BY ? name : argv[optind - 1]);
		}
		err = take(&o, c, optarg);
	}
	if (!err && optind < argc)
		o.ask.db = strcmp(argv[optind], "live") ? argv[optind] : NULL;
	if (!err && optind + 1 < argc)
		err = bad("takes one database: ", argv[optind + 1]);
	if (!err && o.by_page != (o.ask.id != NULL))
		err = bad(o.by_page ? "pages are those of one allocation: its "
				    : "an allocation's pages are meant: --by page is missing before ",
			  "--id");
	if (!err)
		*ret = o;
	return err;
}

void ttmon_heat_span(const struct ttmon_heatmap *map, const struct ttmon_heat_ask *ask, unsigned int columns,
		     struct ttmon_heatmap_span *ret)
{
	uint64_t last_ns = ask->last_ms * NSEC_PER_MS;

	*ret = (struct ttmon_heatmap_span){ .from_ns = map->start_ns,
					    .to_ns = map->end_ns,
					    .columns = columns,
					    .copies = ask->sort == TTMON_HEAT_BY_COPIES };
	if (last_ns && last_ns < map->end_ns - map->start_ns)
		ret->from_ns = map->end_ns - last_ns;
}

int ttmon_heat_read(const struct ttmon_heat_ask *ask, bool quiet, struct ttmon_heatmap *ret)
{
	struct ttmon_heatmap map = { 0 };
	char why[600] = "";
	int err = ask->db ? ttmon_heat_read_db(ask, &map, why, sizeof(why))
			  : ttmon_heat_read_live(ask, &map, why, sizeof(why));

	if (!err && ask->by_site && !map.pages)
		err = ttmon_heatmap_group(&map);
	/* Pages lie in a row: so they are shown unless another order was asked for. */
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

int cmd_heat(int argc, char **argv)
{
	struct ttmon_heatmap map = { 0 };
	struct opts o = { 0 };
	int err = parse(argc, argv, &o), status = 0;

	if (err)
		return err == -ECANCELED ? 0 : TTMON_EXIT_ERROR;
	if (!o.once && !o.json && ttmon_heat_has_screen())
		return ttmon_heat_screen(&o.ask);
	if (ttmon_heat_read(&o.ask, false, &map))
		return TTMON_EXIT_ERROR;
	if (o.json)
		status = print_json(&map, &o);
	else
		print(&map, &o);
	ttmon_heatmap_fini(&map);
	return status;
}
