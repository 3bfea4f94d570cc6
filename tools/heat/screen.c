// SPDX-License-Identifier: GPL-2.0-only
/*
 * screen.c: `ttmon heat` on a terminal, with ncurses. A database is read once. A service is read again
 * each interval; when it is away, the first line says so and the last map stays until it answers
 * again.
 */
#include <langinfo.h>
#include <ncurses.h>

#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/heat/heat.h"
#include "tools/term/screen.h"
#include "lib/os/clock.h"

#define WAIT_MS	   250	/* the longest wait: a signal that arrives just before a wait is handled after this time */
#define ZOOM_LEAST 1000 /* shortest zoom: ns of the whole map */
#define KEY_ESC	   27

struct view {
	struct ttmon_heat_ask *ask;
	struct ttmon_heatmap map;
	struct ttmon_heat_layout layout;
	struct ttmon_heatmap_span span;
	struct ttmon_heatmap_scale scale;
	struct ttmon_heatmap_span scaled; /* the span of the current scale; columns 0: the scale is of another map */
	bool has_map, paused, help, utf8, colour;
	bool inside;	   /* of another screen, to which Escape and q return */
	bool zoomed;	   /* span.from_ns and to_ns were set by the user */
	int err;	   /* result of the last reading */
	char *id;	   /* id of the allocation whose pages are shown */
	char *selected_id; /* the selection stays on this id when the order changes */
	uint64_t next_ns, good_ns;
	size_t top, selected, page;
	size_t back; /* the selected row among the allocations, to return to */
	struct ttmon_screen_filter filter;
	char site[200]; /* the call site whose allocations are shown, "": all; Escape returns to the sites */
	uint32_t site_pid;
	uint8_t site_method;
	size_t *rows; /* places in the order of the rows that the filter shows; NULL: all */
	size_t nr_rows;
};

/* ---- the rows that are shown ---- */

static size_t count(const struct view *v)
{
	return v->rows ? v->nr_rows : v->map.nr;
}

/* The place of row i of the screen in map.order. */
static size_t place(const struct view *v, size_t i)
{
	return v->rows ? v->rows[i] : i;
}

static const struct ttmon_heatmap_row *selected_row(const struct view *v)
{
	return v->has_map && v->selected < count(v) ? &v->map.rows[v->map.order[place(v, v->selected)]] : NULL;
}

static bool is_of_site(const struct view *v, const struct ttmon_heatmap_row *r)
{
	return !v->site[0] || (r->site && r->pid == v->site_pid && r->method == v->site_method &&
			       !strncmp(r->site, v->site, sizeof(v->site) - 1));
}

/* Finds the rows that pass the filter. Where memory is short all are shown. */
static void apply_filter(struct view *v)
{
	free(v->rows);
	v->rows = NULL;
	v->nr_rows = 0;
	if (!v->has_map || v->map.pages || (!v->filter.text[0] && !v->site[0]))
		return;
	v->rows = calloc(v->map.nr + 1, sizeof(*v->rows));
	for (size_t i = 0; v->rows && i < v->map.nr; i++) {
		const struct ttmon_heatmap_row *r = &v->map.rows[v->map.order[i]];

		if (is_of_site(v, r) && (!v->filter.text[0] || ttmon_heat_matches(r, v->filter.text)))
			v->rows[v->nr_rows++] = i;
	}
}

/* ---- reading ---- */

static void remember_selected(struct view *v)
{
	free(v->selected_id);
	v->selected_id = NULL;
	if (selected_row(v) && selected_row(v)->id)
		v->selected_id = strdup(selected_row(v)->id);
}

static void find_selected(struct view *v)
{
	apply_filter(v);
	for (size_t i = 0; v->selected_id && i < count(v); i++) {
		const char *id = v->map.rows[v->map.order[place(v, i)]].id;

		if (id && !strcmp(id, v->selected_id)) {
			v->selected = i;
			return;
		}
	}
}

static void read_again(struct view *v, uint64_t now_ns)
{
	struct ttmon_heatmap map = { 0 };

	v->next_ns = now_ns + v->ask->interval_ms * NSEC_PER_MS;
	v->err = ttmon_heat_read(v->ask, true, &map);
	if (v->err)
		return;
	remember_selected(v);
	ttmon_heatmap_fini(&v->map);
	v->map = map;
	v->scaled.columns = 0;
	v->has_map = true;
	v->good_ns = now_ns;
	find_selected(v);
}

static void sort_again(struct view *v)
{
	if (!v->has_map)
		return;
	remember_selected(v);
	v->err = ttmon_heatmap_sort(&v->map, v->map.pages && !v->ask->has_sort ? TTMON_HEAT_BY_SITE : v->ask->sort,
				    v->ask->reverse);
	find_selected(v);
}

/* ---- drawing ---- */

static attr_t attr_of(const struct view *v, unsigned int style)
{
	bool level = style >= TTMON_HEAT_LEVEL1 && style < TTMON_HEAT_LEVEL1 + TTMON_HEAT_LEVELS;

	if (v->colour && (level || style == TTMON_HEAT_IDLE || style == TTMON_HEAT_UNKNOWN))
		return (attr_t)COLOR_PAIR(style);
	return style == TTMON_HEAT_HEAD || style == TTMON_HEAT_WARN ? A_BOLD
	       : style == TTMON_HEAT_DIM			    ? A_DIM
								    : A_NORMAL;
}

/* reverse: number of cells at the start that are highlighted, for the selected row. */
static void put_line(const struct view *v, int y, const struct ttmon_heat_line *line, unsigned int reverse)
{
	char text[5];

	if (y < 0 || y >= LINES)
		return;
	for (unsigned int i = 0; i < MIN(line->n, (unsigned int)MAX(COLS, 0)); i++) {
		attrset(i < reverse ? A_REVERSE : attr_of(v, line->cells[i].style));
		ttmon_heat_utf8(line->cells[i].ch, text);
		if (!*text)
			continue;
		mvaddstr(y, (int)i, text);
	}
	attrset(A_NORMAL);
}

static void put_text(int y, const char *text, attr_t attr)
{
	if (y < 0 || y >= LINES)
		return;
	attrset(attr);
	mvaddnstr(y, 0, text, MAX(COLS, 0));
	attrset(A_NORMAL);
}

static void draw_help(int y)
{
	static const char *const lines[] = {
		"Arrows, Page keys, Home, End  select a row",
		"Enter   the allocations of a call site, the pages of an allocation;  Esc back",
		"g       call sites or allocations    / filter by name, process, id;  Esc ends it",
		"+ -     zoom in, out    < > left right  earlier, later    =  all of it",
		"s r     sort by the next key;  the other way round    p space  pause",
		"?       this text away    q  quit",
		"",
		"PEAK: the most that a call site had live at one time. ADVICE: pin, unpin, keep,",
		"pinned: allocate it pinned, ?: not known. HOW: P pinned, - pageable, ? not known",
		"which, m managed, d on the device, and by which call.",
		"A dot: live, nothing moved. ?: calls may be missing there. +: events not kept.",
		"Sums and sizes: >= a lower bound, - not known.",
		"The live map of a long life is coarse: 64 pieces for each allocation.",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		put_text(y + (int)i, lines[i], A_NORMAL);
}

static bool same_span(const struct ttmon_heatmap_span *a, const struct ttmon_heatmap_span *b)
{
	return a->from_ns == b->from_ns && a->to_ns == b->to_ns && a->columns == b->columns && a->copies == b->copies;
}

static void arrange(struct view *v)
{
	struct ttmon_heatmap_span was = v->span;

	ttmon_heat_fit(&v->map, (unsigned int)MAX(COLS, 1), v->utf8, &v->layout);
	ttmon_heat_span(&v->map, v->ask, v->layout.map, &v->span);
	/* A new reading may begin later, and another allocation has other times, so clamp the zoom. */
	if (v->zoomed) {
		v->span.from_ns = MAX(was.from_ns, v->map.start_ns);
		v->span.to_ns = MIN(was.to_ns, v->map.end_ns);
		if (v->span.from_ns >= v->span.to_ns) {
			v->zoomed = false;
			ttmon_heat_span(&v->map, v->ask, v->layout.map, &v->span);
		}
	}
	/* The scale needs all cells of all rows, so it is not computed for each key. */
	if (!same_span(&v->scaled, &v->span)) {
		ttmon_heatmap_find_scale(&v->map, &v->span, &v->scale);
		v->scaled = v->span;
	}
}

static void draw_err(const struct view *v)
{
	char line[300], age[TTMON_FMT_LEN];

	ttmon_fmt_ns(age, sizeof(age), ttmon_mono_ns() - v->good_ns);
	snprintf(line, sizeof(line), "NO MAP of %s: %s%s%s%s", v->ask->db ? v->ask->db : v->ask->socket,
		 v->err == -ENOENT	   ? "there is no such allocation any more"
		 : v->err == -EREMOTEIO	   ? "it refused to answer"
		 : v->err == -EBADMSG	   ? "what answers is not ttmond"
		 : v->err == -ECONNREFUSED ? "no ttmond there"
					   : strerror(-v->err),
		 v->has_map ? "; this is " : "", v->has_map ? age : "", v->has_map ? " old" : "");
	put_text(0, line, A_BOLD);
}

static void draw_foot(const struct view *v)
{
	char line[300], filter[128];

	ttmon_screen_filter_text(&v->filter, filter, sizeof(filter));
	if (v->filter.editing)
		snprintf(line, sizeof(line), "%s", filter);
	else
		snprintf(line, sizeof(line), "%s%ssorted by %s%s%s   %zu of %zu%s   ?: help  q: quit",
			 v->paused ? "PAUSED  " : "", filter,
			 v->map.pages && !v->ask->has_sort ? "offset" : ttmon_heat_sort_name(v->ask->sort),
			 v->ask->reverse ? ", reversed" : "", v->zoomed ? ", zoomed (= all)" : "",
			 count(v) ? v->selected + 1 : 0, count(v),
			 v->inside || v->id || v->site[0] ? "  Esc: back" : "");
	put_text(LINES - 1, line, A_NORMAL);
}

static void draw(struct view *v)
{
	int heads = LINES >= 8 ? 2 + (v->map.missing[0] != 0) : 0, foot = LINES >= 12 ? 4 : LINES >= 5, y = heads;
	struct ttmon_heat_line line;

	erase();
	if (v->has_map) {
		arrange(v);
		for (int i = 0; i < heads; i++) {
			ttmon_heat_head(&v->map, &v->layout, (unsigned int)i, &line);
			put_line(v, i, &line, 0);
		}
		ttmon_heat_columns(&v->map, &v->layout, &v->span, &line);
		put_line(v, y++, &line, 0);
		if (ttmon_heat_marks(&v->map, &v->layout, &v->span, &line))
			put_line(v, y++, &line, 0);
	}
	if (v->err) {
		move(0, 0);
		clrtoeol();
		draw_err(v);
	}
	v->page = LINES - y - foot > 0 ? (size_t)(LINES - y - foot) : 1;
	v->selected = MIN(v->selected, count(v) ? count(v) - 1 : 0);
	v->top = MIN(v->top, v->selected);
	v->top = v->selected >= v->top + v->page ? v->selected - v->page + 1 : v->top;
	if (v->help) {
		draw_help(y + 1);
	} else {
		for (size_t i = v->top; i < count(v) && i - v->top < v->page; i++) {
			ttmon_heat_row(&v->map, &v->layout, &v->span, &v->scale, place(v, i), &line);
			put_line(v, y++, &line, i == v->selected ? v->layout.map_at - 1 : 0);
		}
	}
	if (foot == 4 && v->has_map) {
		ttmon_heat_legend(&v->map, &v->layout, &v->span, &v->scale, 0, &line);
		put_line(v, LINES - 4, &line, 0);
		ttmon_heat_legend(&v->map, &v->layout, &v->span, &v->scale, 1, &line);
		put_line(v, LINES - 3, &line, 0);
		if (count(v)) {
			ttmon_heat_details(&v->map, &v->layout, place(v, v->selected), &line);
			put_line(v, LINES - 2, &line, 0);
		}
	}
	if (foot)
		draw_foot(v);
	refresh();
}

/* ---- keys ---- */

static void zoom(struct view *v, bool in)
{
	uint64_t len = v->span.to_ns - v->span.from_ns, middle = v->span.from_ns + len / 2;

	len = in ? MAX(len / 2, (uint64_t)ZOOM_LEAST) : len * 2;
	v->zoomed = len < v->map.end_ns - v->map.start_ns;
	if (!v->zoomed)
		return;
	v->span.from_ns = middle - v->map.start_ns > len / 2 ? middle - len / 2 : v->map.start_ns;
	v->span.from_ns = MIN(v->span.from_ns, v->map.end_ns - len);
	v->span.to_ns = v->span.from_ns + len;
}

static void pan(struct view *v, bool later)
{
	uint64_t len = v->span.to_ns - v->span.from_ns, step = MAX(len / 8, 1);

	if (!v->zoomed)
		return;
	if (later)
		v->span.from_ns = MIN(v->span.from_ns + step, v->map.end_ns - len);
	else
		v->span.from_ns -= MIN(step, v->span.from_ns - v->map.start_ns);
	v->span.to_ns = v->span.from_ns + len;
}

/* Reads again, as other rows. */
static void show_other(struct view *v)
{
	v->selected = v->top = 0;
	v->next_ns = 0;
}

/* Of a call site its allocations, of an allocation its pages. */
static void show_inside(struct view *v)
{
	const struct ttmon_heatmap_row *r = selected_row(v);
	char *id;

	if (!r || v->map.pages)
		return;
	if (r->allocs > 1) {
		snprintf(v->site, sizeof(v->site), "%s", r->site ? r->site : "");
		v->site_pid = r->pid;
		v->site_method = r->method;
		v->filter.text[0] = '\0';
		v->ask->by_site = false;
		show_other(v);
		return;
	}
	id = r->id ? strdup(r->id) : NULL;
	if (!id)
		return;
	free(v->id);
	v->id = id;
	v->ask->id = id;
	v->back = v->selected;
	v->ask->has_sort = v->zoomed = false;
	show_other(v);
}

/*
 * Goes back from pages to allocations, and from those of a call site to the sites. Returns whether to
 * end.
 */
static bool go_back(struct view *v)
{
	if (v->id) {
		free(v->id);
		v->id = NULL;
		v->ask->id = NULL;
		show_other(v);
		v->selected = v->back;
		v->zoomed = false;
	} else if (v->site[0]) {
		v->site[0] = '\0';
		v->ask->by_site = true;
		show_other(v);
	} else {
		return v->inside;
	}
	return false;
}

static void next_sort(struct view *v)
{
	v->ask->sort = v->map.pages && !v->ask->has_sort ? TTMON_HEAT_BY_BYTES : (v->ask->sort + 1) % TTMON_HEAT_SORTS;
	v->ask->has_sort = true;
	sort_again(v);
}

/* Handles a key. Returns whether to end. */
static bool obey(struct view *v, int key)
{
	if (key == KEY_RESIZE)
		return false;
	if (v->help && key == KEY_ESC) {
		v->help = false;
		return false;
	}
	if (!v->help && !v->map.pages && ttmon_screen_filter_key(&v->filter, key)) {
		v->selected = v->top = 0;
		apply_filter(v);
		return false;
	}
	v->help = key == 'h' || key == '?' ? !v->help : false;
	switch (key) {
	case 'q':
	case 'Q':
	case 4: /* ^D */
		return true;
	case 'p':
	case ' ':
		v->paused = !v->paused;
		break;
	case 's':
		next_sort(v);
		break;
	case 'r':
		v->ask->reverse = !v->ask->reverse;
		sort_again(v);
		break;
	case 'g':
		if (!v->map.pages) {
			v->ask->by_site = !v->ask->by_site;
			v->site[0] = '\0';
			show_other(v);
		}
		break;
	case '+':
	case '-':
		if (v->has_map)
			zoom(v, key == '+');
		break;
	case '=':
	case '0':
		v->zoomed = false;
		break;
	case '<':
	case KEY_LEFT:
	case '>':
	case KEY_RIGHT:
		pan(v, key == '>' || key == KEY_RIGHT);
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		show_inside(v);
		break;
	case KEY_BACKSPACE:
	case 127:
	case '\b':
	case KEY_ESC:
		return go_back(v);
	default:
		ttmon_screen_move(&v->selected, key, v->page, count(v));
		break;
	}
	return false;
}

/* Returns whether to read again. A database is read only when another view of it is requested. */
static bool is_due(const struct view *v, uint64_t now_ns)
{
	if (!v->next_ns)
		return true;
	return !v->ask->db && !v->paused && !ttmon_before(now_ns, v->next_ns);
}

static void watch(struct view *v)
{
	bool end = false;
	int key;

	while (!end && !ttmon_screen_ended) {
		uint64_t now_ns = ttmon_mono_ns();

		if (is_due(v, now_ns)) {
			/* Reading a large database takes a while; a busy service may, too. */
			if (v->ask->db || !v->has_map) {
				if (!v->has_map)
					erase();
				put_text(LINES - 1, "reading ...", A_BOLD);
				clrtoeol();
				refresh();
			}
			read_again(v, now_ns);
		}
		draw(v);
		timeout(WAIT_MS);
		while (!end && !ttmon_screen_ended && (key = getch()) != ERR) {
			end = obey(v, key);
			timeout(0);
		}
	}
}

static void begin_colours(struct view *v)
{
	if (!ttmon_screen_style().colour)
		return;
	if (COLORS < 256 || COLOR_PAIRS <= TTMON_HEAT_STYLES)
		return;
	for (unsigned int i = 0; i < TTMON_HEAT_LEVELS; i++)
		init_pair((short)(TTMON_HEAT_LEVEL1 + i), (short)ttmon_heat_colour(i + 1), TTMON_HEAT_GROUND);
	init_pair(TTMON_HEAT_IDLE, 244, TTMON_HEAT_GROUND);
	init_pair(TTMON_HEAT_UNKNOWN, 252, TTMON_HEAT_GROUND);
	v->colour = true;
}

static void browse(struct view *v)
{
	v->utf8 = ttmon_screen_style().utf8;
	begin_colours(v);
	watch(v);
	ttmon_heatmap_fini(&v->map);
	free(v->id);
	free(v->selected_id);
	free(v->rows);
}

int ttmon_heat_screen(struct ttmon_heat_ask *ask)
{
	struct view v = { .ask = ask };
	struct screen *screen;

	/* An unreadable database, or a missing service, is reported before the screen is set up. */
	if (ttmon_heat_read(ask, false, &v.map))
		return TTMON_EXIT_ERROR;
	v.has_map = true;
	v.good_ns = ttmon_mono_ns();
	v.next_ns = v.good_ns + ask->interval_ms * NSEC_PER_MS;
	screen = ttmon_screen_begin("heat");
	if (!screen) {
		ttmon_heatmap_fini(&v.map);
		return TTMON_EXIT_ERROR;
	}
	browse(&v);
	ttmon_screen_end(screen);
	return 0;
}

void ttmon_heat_inside(struct ttmon_heat_ask *ask)
{
	struct view v = { .ask = ask, .inside = true };

	browse(&v);
}
