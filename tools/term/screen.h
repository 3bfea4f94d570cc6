/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * screen.h: what the screens of `ttmon top` and `ttmon heat` share: the terminal, which is restored
 * however the program ends, and the keys that scroll.
 */
#ifndef TTMON_TOOLS_SCREEN_H
#define TTMON_TOOLS_SCREEN_H

#include <signal.h>
#include <stddef.h>

/* Not 0: a signal requests the end. Check it at least every 250 ms. */
extern volatile sig_atomic_t ttmon_screen_ended;

struct screen;

/*
 * Sets up the terminal for ncurses. NULL on failure, after an error message in the name of `ttmon
 * COMMAND`.
 */
struct screen *ttmon_screen_begin(const char *command);
void ttmon_screen_end(struct screen *screen);
/*
 * Handles KEY_UP, KEY_DOWN, KEY_PPAGE, KEY_NPAGE, KEY_HOME and KEY_END. *at may be past the end
 * afterwards: the drawing code limits it.
 */
void ttmon_screen_move(size_t *at, int key, size_t page, size_t end);

#endif
