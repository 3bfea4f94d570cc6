/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * screen.h: what all screens of ttmon share: the terminal, which is restored however the program ends,
 * its colours, lines with colours and text of others, the keys that scroll, and the filter.
 *
 * One thread. Screens inside each other (the call sites of a process inside `ttmon top`) use the
 * terminal that the outer one has set up.
 */
#ifndef TTMON_TOOLS_SCREEN_H
#define TTMON_TOOLS_SCREEN_H

#include <signal.h>

#include "tools/term/table.h"

/* Not 0: a signal requests the end. Check it at least every 250 ms. */
extern volatile sig_atomic_t ttmon_screen_ended;

struct screen;

/*
 * Sets up the terminal for ncurses, in the locale of the environment. NULL on failure, after an error
 * message in the name of `ttmon COMMAND`.
 */
struct screen *ttmon_screen_begin(const char *command);
void ttmon_screen_end(struct screen *screen);
/*
 * The terminal's width, whether it has colours (and NO_COLOR is not set), and UTF-8. Only between
 * begin and end.
 */
struct ttmon_term_style ttmon_screen_style(void);
/*
 * Draws a line of len bytes at row y from column x on, cut to the width of the screen. The escape
 * sequences of ttmon_term_escape() become colours; all else that is not printable is shown as '?'.
 */
void ttmon_screen_put(int y, int x, const char *line, size_t len);
/* Highlights a row that was drawn: the selected one. */
void ttmon_screen_select(int y);
/*
 * Handles KEY_UP, KEY_DOWN, KEY_PPAGE, KEY_NPAGE, KEY_HOME and KEY_END. *at may be past the end
 * afterwards: the drawing code limits it.
 */
void ttmon_screen_move(size_t *at, int key, size_t page, size_t end);

/* The filter that '/' begins: rows whose text does not contain it are not shown. */
struct ttmon_screen_filter {
	char text[64]; /* "": everything is shown */
	bool editing;
};
/* Returns whether the key was one of the filter's. Escape ends the filter. */
bool ttmon_screen_filter_key(struct ttmon_screen_filter *f, int key);
/* Formats "filter: TEXT" for the last line, or "" if there is none. Returns buf. */
const char *ttmon_screen_filter_text(const struct ttmon_screen_filter *f, char *buf, size_t n);

#endif
