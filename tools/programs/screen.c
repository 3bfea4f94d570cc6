// SPDX-License-Identifier: GPL-2.0-only
/* screen.c: `ttmon programs` on a terminal: shows the table of the last interval. */
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>

#include "lib/os/clock.h"
#include "tools/cli/cmds.h"
#include "tools/programs/programs.h"
#include "tools/term/screen.h"

#define WAIT_MS 250 /* the longest wait: a signal that arrives just before a wait is handled after this time */

struct view {
	const char *socket;
	unsigned int interval_ms;
	ttmon_programs_take_fn take;
	void *ctx;
	char *text; /* the last table */
	bool paused, answers;
	uint64_t next_ns;
	size_t top, lines, page;
};

static void read_again(struct view *v)
{
	struct ttmon_programs p = { 0 };
	size_t len;
	FILE *f;

	v->answers = v->take(v->ctx, &p);
	free(v->text);
	v->text = NULL;
	f = open_memstream(&v->text, &len);
	if (f) {
		ttmon_programs_print(&p, (size_t)MAX(COLS, 1), !strcmp(nl_langinfo(CODESET), "UTF-8"), f);
		(void)!fclose(f);
	}
	ttmon_programs_fini(&p);
}

static void draw(struct view *v)
{
	const char *at = v->text ? v->text : "";
	int y = 1;

	erase();
	v->page = LINES > 4 ? (size_t)(LINES - 4) : 1;
	v->lines = 0;
	for (size_t i = 0; *at; i++) {
		size_t len = strcspn(at, "\n");

		/* The titles do not scroll. */
		if ((i < 2 || i > v->top + 1) && y < LINES - 1)
			mvaddnstr(y++, 0, at, (int)len);
		v->lines += i > 1;
		at += len + (at[len] == '\n');
	}
	mvprintw(0, 0, "%.*s%.*s", MAX(COLS, 0),
		 v->answers ? "runs of programs on Tenstorrent chips" : "NO ANSWER from ", MAX(COLS - 16, 0),
		 v->answers ? "" : v->socket);
	mvprintw(LINES - 1, 0, "%severy %g s  space: pause  arrows: move  q: quit", v->paused ? "PAUSED  " : "",
		 v->interval_ms / 1000.0);
	refresh();
}

static bool obey(struct view *v, int key)
{
	if (key == ' ')
		v->paused = !v->paused;
	ttmon_screen_move(&v->top, key, v->page, v->lines);
	v->top = MIN(v->top, v->lines > v->page ? v->lines - v->page : 0);
	return key == 'q' || key == 'Q' || key == 4;
}

int ttmon_programs_screen(const char *socket, unsigned int interval_ms, ttmon_programs_take_fn take, void *ctx)
{
	struct view v = { .socket = socket, .interval_ms = interval_ms, .take = take, .ctx = ctx, .answers = true };
	struct screen *screen;
	bool end = false;
	int key;

	setlocale(LC_CTYPE, "");
	screen = ttmon_screen_begin("programs");
	if (!screen)
		return TTMON_EXIT_ERROR;
	v.next_ns = ttmon_mono_ns() + interval_ms * NSEC_PER_MS;
	while (!end && !ttmon_screen_ended) {
		uint64_t now = ttmon_mono_ns();

		if (!v.paused && !ttmon_before(now, v.next_ns)) {
			read_again(&v);
			v.next_ns = now + interval_ms * NSEC_PER_MS;
		}
		draw(&v);
		timeout(v.paused ? WAIT_MS : (int)MIN((v.next_ns - now) / NSEC_PER_MS + 1, (uint64_t)WAIT_MS));
		key = getch();
		end = key != ERR && obey(&v, key);
	}
	ttmon_screen_end(screen);
	free(v.text);
	return 0;
}
