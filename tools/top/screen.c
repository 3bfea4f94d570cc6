// SPDX-License-Identifier: GPL-2.0-only
/*
 * screen.c: `ttmon top` on a terminal, with ncurses. It reads the service each interval; keys in
 * between work on the last figures. When the service is away, the first line says so until it answers
 * again. The terminal is restored however the program ends; ncurses handles SIGTSTP and SIGWINCH.
 */
#include <locale.h>
#include <ncurses.h>
#include <time.h>

#include "lib/read/client.h"
#include "tools/cli/cmds.h"
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
	size_t top, page;
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

	if (ttmon_top_arrange(&v->all, v->ask, &again))
		return;
	ttmon_top_fini(&v->shown);
	v->shown = again;
}

/* ---- drawing ---- */

static void put_line(int y, const char *text)
{
	if (y >= 0 && y < LINES)
		mvaddnstr(y, 0, text, -1);
}

/* Prints text, cut to the width of the screen. */
static void put_cut(int y, const char *text)
{
	char line[TTMON_TOP_LINE];

	snprintf(line, sizeof(line), "%.*s", MAX(COLS, 0), text);
	put_line(y, line);
}

static void draw_help(int y)
{
	static const char *const lines[] = {
		"Sort: c CPU   i instructions a cycle   m cache misses   l cache occupied   b bandwidth   p pinned",
		"      t copied   s switches   n pid   < > the next column   r reverse",
		"Show: k kernel threads   a command lines   arrows, Page keys, Home, End move   space pause",
		"      + - longer, shorter interval   h, Esc this text away   q quit",
		"",
		"CPU% is of one CPU. IPC and MISS/s need hardware counters, LLC and MBM/s RDT (ttmond --rmid).",
		"-: not known here. >=: at least, probes were not on all the time (the third line says which).",
		"(ended): processes that have ended. (unassigned): RMIDs that no process owned.",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		put_cut(y + (int)i, lines[i]);
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
	put_line(y, line);
	mvchgat(y, 0, -1, A_REVERSE, 0, NULL);
	if (ttmon_top_column_at(l, v->ask->sort, &at, &width))
		mvchgat(y, (int)at, (int)width, A_BOLD | A_UNDERLINE, 0, NULL);
}

static void draw(struct view *v, uint64_t now_ns)
{
	/* On a very small screen only the table is shown. */
	int heads = LINES >= 8 ? 2 : LINES >= 3 ? 1 : 0, foot = LINES >= 5, y;
	struct ttmon_top_layout l;
	char line[TTMON_TOP_LINE], args[512];

	erase();
	head_text(v, now_ns, 2, line, sizeof(line));
	heads += heads == 2 && line[0];
	y = heads;
	for (int i = 0; i < heads; i++) {
		head_text(v, now_ns, (unsigned int)i, line, sizeof(line));
		put_cut(i, line);
	}
	if (v->err && heads)
		mvchgat(0, 0, -1, A_BOLD, 0, NULL);
	ttmon_top_fit(&v->shown, (size_t)MAX(COLS, 1), v->ask->args, &l);
	draw_columns(v, &l, y++);
	v->page = LINES - y - foot > 0 ? (size_t)(LINES - y - foot) : 1;
	v->top = MIN(v->top, v->shown.n > v->page ? v->shown.n - v->page : 0);
	for (size_t i = v->top; i < v->shown.n && i - v->top < v->page && !v->help; i++) {
		args[0] = '\0';
		if (ttmon_top_wants_args(&v->shown.procs[i], v->ask))
			ttmon_top_args("/proc", v->shown.procs[i].pid, args, sizeof(args));
		ttmon_top_line(&v->shown, i, &l, args, line, sizeof(line));
		put_line(y++, line);
	}
	if (v->help)
		draw_help(y);
	if (foot) {
		snprintf(line, sizeof(line), "%ssorted by %s%s, every %g s%s  h: help  q: quit",
			 v->paused ? "PAUSED  " : "", ttmon_top_sort_name(v->ask->sort),
			 v->ask->reverse ? ", reversed" : "", v->ask->interval_ms / 1000.0,
			 v->ask->kernel ? ", with kernel threads" : "");
		put_cut(LINES - 1, line);
	}
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
	size_t at, width, here, best = right ? SIZE_MAX : 0;
	struct ttmon_top_layout l;
	unsigned int found = v->ask->sort;

	ttmon_top_fit(&v->shown, (size_t)MAX(COLS, 1), v->ask->args, &l);
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

/* Handles a key. Returns whether to end. */
static bool obey(struct view *v, int key)
{
	/* A change of the screen size is not a key press: open help stays. */
	if (key == KEY_RESIZE)
		return false;
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
		ttmon_screen_move(&v->top, key, v->page, v->shown.n);
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

	setlocale(LC_CTYPE, "");
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
