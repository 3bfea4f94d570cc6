// SPDX-License-Identifier: GPL-2.0-only
/* screen.c: see screen.h. */
#include <ncurses.h>

#include "tools/term/screen.h"
#include "lib/base/util.h"

volatile sig_atomic_t ttmon_screen_ended;

static void on_signal(int nr)
{
	ttmon_screen_ended = nr;
}

SCREEN *ttmon_screen_begin(const char *command)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction act = { .sa_handler = on_signal };
	SCREEN *screen;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &act, NULL);
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		fprintf(stderr, "ttmon %s: this terminal (TERM=%s) has no screen that is known here, see -1\n", command,
			getenv("TERM") ? getenv("TERM") : "");
		return NULL;
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	return screen;
}

void ttmon_screen_end(SCREEN *screen)
{
	endwin();
	delscreen(screen);
}

void ttmon_screen_move(size_t *at, int key, size_t page, size_t end)
{
	switch (key) {
	case KEY_UP:
		*at -= *at > 0;
		break;
	case KEY_DOWN:
		++*at;
		break;
	case KEY_PPAGE:
		*at -= MIN(*at, page);
		break;
	case KEY_NPAGE:
		*at += page;
		break;
	case KEY_HOME:
		*at = 0;
		break;
	case KEY_END:
		*at = end;
		break;
	default:
		break;
	}
}
