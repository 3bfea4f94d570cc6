/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * screen.h: what the screens of `ttmon top` and `ttmon heat` have in common: the terminal is given
 * back whatever ends them; the keys that move.
 */
#ifndef TTMON_TOOLS_SCREEN_H
#define TTMON_TOOLS_SCREEN_H

#include <signal.h>
#include <stddef.h>

/* Not 0: a signal has come that is to end it. Look at it at least every 250 ms. */
extern volatile sig_atomic_t ttmon_screen_ended;

struct screen;

/* Takes the terminal; ncurses is ready then. NULL: it said why, in the name of `ttmon COMMAND`. */
struct screen *ttmon_screen_begin(const char *command);
void ttmon_screen_end(struct screen *screen);
/*
 * KEY_UP, KEY_DOWN, KEY_PPAGE, KEY_NPAGE, KEY_HOME, KEY_END; *at may be past the end then: who draws
 * cuts it.
 */
void ttmon_screen_move(size_t *at, int key, size_t page, size_t end);

#endif
