// SPDX-License-Identifier: GPL-2.0-only
/*
 * screen.c: `ttmon top` on a terminal, with ncurses. It reads the service each interval; keys in
 * between work on the last figures. When the service is away, the first line says so until it answers
 * again. The terminal is restored however the program ends; ncurses handles SIGTSTP and SIGWINCH.
 *
 * Enter shows the call sites of the selected process: the screen of `ttmon heat`, until Escape or q.
 */
#include <ncurses.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/heat/heat.h"
#include "tools/term/screen.h"
#include "tools/top/top.h"
#include "lib/os/clock.h"

#define FIRST_MS 200 /* the second reading comes early, so that figures appear soon */
#define WAIT_MS	 250 /* the longest wait: a signal that arrives just before a wait is handled after this time */

static const unsigned int intervals[] = { 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000 };

struct view {
	struct ttmon_top last, all, shown; /* the last reading; the last difference; the part of it that is shown */
	struct ttmon_top_ask *ask;
	bool paused, help;
	int err;	  /* result of the last reading */
	uint64_t good_ns; /* time of the last successful reading; 0: none yet */
	uint64_t next_ns; /* time of the next reading */
	size_t top, page, selected;
	struct ttmon_top_proc held; /* the row that stays selected when the order changes; pid 0: the first */
	struct ttmon_screen_filter filter;
	const char *note; /* why the last key had no effect; NULL: it had */
};

static void read_again(struct view *v, uint64_t now_ns)
{
	struct ttmon_top now = { 0 }, diff = { 0 };
	bool first = !v->last.procs;

	v->err = ttmon_top_read_quietly(v->ask->socket, &now);
	v->next_ns = now_ns + (first ? MIN(v->ask->interval_ms, FIRST_MS) : v->ask->interval_ms) * NSEC_PER_MS;
	if (v->err)
		return;
	if (!first)
		v->err = ttmon_top_diff(&v->last, &now, &diff);
	if (!first && !v->err) {
		ttmon_top_fini(&v->all);
		v->all = diff;
		v->good_ns = now_ns;
	}
	ttmon_top_fini(&v->last);
	v->last = now;
}

/* Selects and sorts the last figures, so a key takes effect at once. */
static void arrange(struct view *v)
{
	struct ttmon_top again = { 0 };

	v->ask->filter = v->filter.text;
	if (ttmon_top_arrange(&v->all, v->ask, &again))
		return;
	ttmon_top_fini(&v->shown);
	v->shown = again;
	for (size_t i = 0; v->held.pid && i < v->shown.n; i++)
		if (!ttmon_top_by_identity(&v->shown.procs[i], &v->held))
			v->selected = i;
	v->selected = MIN(v->selected, v->shown.n ? v->shown.n - 1 : 0);
}

static void hold(struct view *v)
{
	v->held = v->selected && v->selected < v->shown.n ? v->shown.procs[v->selected] : (struct ttmon_top_proc){ 0 };
}

/* ---- drawing ---- */

static void put(int y, const char *text)
{
	ttmon_screen_put(y, 0, text, strlen(text));
}

static void draw_help(int y)
{
	static const char *const lines[] = {
		"Sort  p pinned  t copied  w wait  c CPU  i IPC  m misses  l LLC  b MBM  d chip",
		"      s switches  n pid   < > the next column   r reverse",
		"Rows  g processes, tree, units, containers   / filter by name, pid, command line",
		"      k kernel threads   a command lines for names   arrows, Page, Home, End",
		"      Enter the call sites of the selected process   Esc ends the filter",
		"Time  space pause   + - longer, shorter interval   h, ? this text   q quit",
		"",
		"PINNED: memory pinned now, its bar of the largest row. COPIED/s: by CUDA copies.",
		"WAIT%: time in synchronous calls that returned in the interval, of one thread;",
		"CPU%: of one CPU. IPC, MISS/s need hardware counters, LLC, MBM/s RDT (--rmid).",
		"-: not known here. >=: at least, probes were not on all the time: see line 3.",
		"(ended): processes that have ended. (unassigned): RMIDs that no process owned.",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		put(y + (int)i, lines[i]);
}

static void head_text(const struct view *v, uint64_t now_ns, unsigned int line, char *buf, size_t n)
{
	char age[TTMON_FMT_LEN];

	buf[0] = '\0';
	if (!v->err) {
		if (v->good_ns)
			ttmon_top_head(&v->shown, line, buf, n);
		else if (line == 0)
			snprintf(buf, n, "reading ...");
	} else if (line == 0) {
		snprintf(buf, n, "NO FIGURES from %s: %s", v->ask->socket,
			 v->err == -ENODATA	? "it does not measure CPU time (ttmond --cpu on)"
			 : v->err == -EREMOTEIO ? "it refused to answer"
			 : v->err == -EBADMSG	? "what answers is not ttmond"
						: strerror(-v->err));
	} else if (v->good_ns) {
		snprintf(buf, n, "these are %s old", ttmon_fmt_ns(age, sizeof(age), now_ns - v->good_ns));
	}
}

static void draw_columns(const struct view *v, const struct ttmon_top_layout *l, int y)
{
	size_t at = 0, width = 0;
	char line[TTMON_TOP_LINE];

	ttmon_top_columns(l, line, sizeof(line));
	put(y, line);
	ttmon_screen_select(y);
	if (ttmon_top_column_at(l, v->ask->sort, &at, &width))
		mvchgat(y, (int)at, (int)width, A_BOLD | A_UNDERLINE, 0, NULL);
}

/* Draws a bar at the right edge of a head line, if there is room behind the text. */
static void draw_bar(int y, size_t text, const char *what, double share)
{
	struct ttmon_term_style style = ttmon_screen_style();
	char bar[128], line[256];

	if (style.columns < text + 36)
		return;
	ttmon_top_bar(share, 20, style.utf8, bar, sizeof(bar));
	snprintf(line, sizeof(line), "%5.1f %% of %s %s%s%s", 100 * share, what,
		 ttmon_term_escape(&style, share >= 0.8	  ? TTMON_TERM_RED
					   : share >= 0.5 ? TTMON_TERM_YELLOW
							  : TTMON_TERM_GREEN),
		 bar, ttmon_term_escape(&style, TTMON_TERM_PLAIN));
	ttmon_screen_put(y, (int)(style.columns - 35), line, strlen(line));
}

static void draw_bars(const struct view *v, size_t first, size_t second)
{
	const struct ttmon_top *t = &v->shown;
	uint64_t pinned = t->all.v[TTMON_TOP_PINNED], all = t->user_ns + t->kernel_ns + t->idle_ns + t->missing_ns;
	struct sysinfo host;

	if (v->err || !v->good_ns)
		return;
	if (t->cpus != TTMON_TOP_UNKNOWN && !t->cpu_least && all)
		draw_bar(0, first, "CPU", (double)(t->user_ns + t->kernel_ns) / (double)all);
	/* A lower bound would be taken for the figure. */
	if (pinned != TTMON_TOP_UNKNOWN && !t->all.least[TTMON_TOP_PINNED] && !sysinfo(&host) && host.totalram)
		draw_bar(1, second, "RAM", (double)pinned / ((double)host.totalram * host.mem_unit));
}

static void draw_rows(struct view *v, const struct ttmon_top_layout *l, int y)
{
	char line[TTMON_TOP_LINE], args[512];

	for (size_t i = v->top; i < v->shown.n && i - v->top < v->page; i++) {
		args[0] = '\0';
		if (ttmon_top_wants_args(&v->shown.procs[i], v->ask, l))
			ttmon_top_args("/proc", v->shown.procs[i].pid, args, sizeof(args));
		ttmon_top_line(&v->shown, i, l, args, line, sizeof(line));
		put(y, line);
		if (i == v->selected)
			ttmon_screen_select(y);
		y++;
	}
}

static void draw_foot(const struct view *v)
{
	char line[TTMON_TOP_LINE], filter[128];

	ttmon_screen_filter_text(&v->filter, filter, sizeof(filter));
	if (v->note || v->filter.editing)
		snprintf(line, sizeof(line), "%s", v->note ? v->note : filter);
	else
		snprintf(line, sizeof(line), "%s%ssorted by %s%s, every %g s%s%s%s  ?: help  q: quit",
			 v->paused ? "PAUSED  " : "", filter, ttmon_top_sort_name(v->ask->sort),
			 v->ask->reverse ? ", reversed" : "", v->ask->interval_ms / 1000.0,
			 v->ask->by != TTMON_TOP_BY_PROCESS ? ", by " : "",
			 v->ask->by != TTMON_TOP_BY_PROCESS ? ttmon_top_by_name(v->ask->by) : "",
			 v->ask->kernel ? ", with kernel threads" : "");
	put(LINES - 1, line);
}

/* A head line that is too long loses whole clauses at its end. */
static void cut_clauses(char *line, size_t width)
{
	char *last;

	while (ttmon_term_width(line) > width && (last = strrchr(line, ';')))
		*last = '\0';
}

static void draw(struct view *v, uint64_t now_ns)
{
	/* On a very small screen only the table is shown. */
	int heads = LINES >= 8 ? 2 : LINES >= 3 ? 1 : 0, foot = LINES >= 5, y;
	struct ttmon_term_style style = ttmon_screen_style();
	struct ttmon_top_layout l;
	size_t widths[3] = { 0 };
	char line[TTMON_TOP_LINE];

	erase();
	head_text(v, now_ns, 2, line, sizeof(line));
	heads += heads == 2 && line[0];
	y = heads;
	for (int i = 0; i < heads; i++) {
		head_text(v, now_ns, (unsigned int)i, line, sizeof(line));
		cut_clauses(line, style.columns);
		put(i, line);
		widths[i] = ttmon_term_width(line);
	}
	if (heads > 1)
		draw_bars(v, widths[0], widths[1]);
	if (v->err && heads)
		mvchgat(0, 0, -1, A_BOLD, 0, NULL);
	ttmon_top_fit(&v->shown, &style, v->ask, &l);
	draw_columns(v, &l, y++);
	v->page = LINES - y - foot > 0 ? (size_t)(LINES - y - foot) : 1;
	v->top = MIN(v->top, v->selected);
	v->top = v->selected >= v->top + v->page ? v->selected - v->page + 1 : v->top;
	if (v->help)
		draw_help(y);
	else
		draw_rows(v, &l, y);
	if (foot)
		draw_foot(v);
	refresh();
}

/* ---- keys ---- */

static void change_interval(struct view *v, bool longer)
{
	size_t i = 0;

	if (longer) {
		while (i + 1 < ARRAY_SIZE(intervals) && intervals[i] <= v->ask->interval_ms)
			i++;
	} else {
		for (i = ARRAY_SIZE(intervals) - 1; i > 0 && intervals[i] >= v->ask->interval_ms; i--)
			;
	}
	v->ask->interval_ms = intervals[i];
	v->next_ns = MIN(v->next_ns, ttmon_mono_ns() + v->ask->interval_ms * NSEC_PER_MS);
}

static void pause_or_go_on(struct view *v)
{
	v->paused = !v->paused;
	if (v->paused)
		return;
	/*
	 * After a pause, start with a new reading: a difference over the whole pause would not show what
	 * happens now.
	 */
	ttmon_top_fini(&v->last);
	v->next_ns = 0;
}

/* Sorts by the next column on the screen; if there is none, the order stays. */
static void sort_beside(struct view *v, bool right)
{
	struct ttmon_term_style style = ttmon_screen_style();
	size_t at, width, here, best = right ? SIZE_MAX : 0;
	struct ttmon_top_layout l;
	unsigned int found = v->ask->sort;

	ttmon_top_fit(&v->shown, &style, v->ask, &l);
	if (!ttmon_top_column_at(&l, v->ask->sort, &here, &width))
		here = right ? 0 : SIZE_MAX;
	for (unsigned int i = 0; i < TTMON_SORT_MAX; i++) {
		if (!ttmon_top_column_at(&l, i, &at, &width) || at == here)
			continue;
		if (right ? at > here && at < best : at < here && (at >= best)) {
			best = at;
			found = i;
		}
	}
	v->ask->sort = found;
}

static void show_sites(struct view *v)
{
	const struct ttmon_top_proc *p = v->selected < v->shown.n ? &v->shown.procs[v->selected] : NULL;
	struct ttmon_heat_ask ask = { .socket = v->ask->socket, .by_site = true, .interval_ms = 2000 };

	if (!p || !p->pid) {
		v->note = "Enter shows the call sites of a process: this row is none (g shows processes)";
		return;
	}
	ask.pid = p->pid;
	ttmon_heat_inside(&ask);
	v->next_ns = 0;
}

/* Handles a key. Returns whether to end. */
static bool obey(struct view *v, int key)
{
	/* A change of the screen size is not a key press: open help stays. */
	if (key == KEY_RESIZE)
		return false;
	v->note = NULL;
	if (!v->help && ttmon_screen_filter_key(&v->filter, key)) {
		arrange(v);
		return false;
	}
	for (unsigned int i = 0; i < TTMON_SORT_MAX; i++)
		if (key == ttmon_top_sort_key(i))
			v->ask->sort = i;
	v->help = key == 'h' || key == '?' ? !v->help : false;
	switch (key) {
	case 'q':
	case 'Q':
	case 4: /* ^D */
		return true;
	case ' ':
		pause_or_go_on(v);
		break;
	case 'r':
		v->ask->reverse = !v->ask->reverse;
		break;
	case 'g':
		v->ask->by = (v->ask->by + 1) % TTMON_TOP_BYS;
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		show_sites(v);
		break;
	case 'k':
		v->ask->kernel = !v->ask->kernel;
		break;
	case 'a':
		v->ask->args = !v->ask->args;
		break;
	case '+':
	case '-':
		change_interval(v, key == '+');
		break;
	case '<':
	case '>':
	case KEY_LEFT:
	case KEY_RIGHT:
		sort_beside(v, key == '>' || key == KEY_RIGHT);
		break;
	default:
		ttmon_screen_move(&v->selected, key, v->page, v->shown.n);
		v->selected = MIN(v->selected, v->shown.n ? v->shown.n - 1 : 0);
		hold(v);
		break;
	}
	return false;
}

static void watch(struct view *v)
{
	bool end = false;

	while (!end && !ttmon_screen_ended) {
		uint64_t now_ns = ttmon_mono_ns();
		int key, wait_ms = WAIT_MS;

		if (!v->paused && !ttmon_before(now_ns, v->next_ns))
			read_again(v, now_ns);
		arrange(v);
		now_ns = ttmon_mono_ns();
		draw(v, now_ns);
		if (!v->paused)
			wait_ms = ttmon_before(now_ns, v->next_ns)
					  ? (int)MIN((v->next_ns - now_ns) / NSEC_PER_MS + 1, (uint64_t)WAIT_MS)
					  : 0;
		timeout(wait_ms);
		/* Handle all keys that are waiting, so that a key held down does not keep acting for seconds. */
		while (!end && !ttmon_screen_ended && (key = getch()) != ERR) {
			end = obey(v, key);
			timeout(0);
		}
	}
}

int ttmon_top_screen(struct ttmon_top_ask *ask)
{
	struct view v = { .ask = ask };
	struct screen *screen;

	screen = ttmon_screen_begin("top");
	if (!screen)
		return TTMON_EXIT_ERROR;
	watch(&v);
	ttmon_screen_end(screen);
	ttmon_top_fini(&v.last);
	ttmon_top_fini(&v.all);
	ttmon_top_fini(&v.shown);
	return 0;
}
