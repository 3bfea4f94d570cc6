// SPDX-License-Identifier: GPL-2.0-only
/*
 * term.c: the abilities of the terminal on stdout, by terminfo. In a file of its own, with the header
 * last: <term.h> defines macros with many common names.
 */
#include "tools/heat/heat.h"
#include "tools/cli/show.h"

#include <ncurses.h>
#include <term.h>

bool ttmon_heat_has_colours(void)
{
	int err = 0;

	if (!*ttmon_show_escape(TTMON_SHOW_GOOD) || setupterm(NULL, STDOUT_FILENO, &err) != OK)
		return false;
	return tigetnum("colors") >= 256;
}

bool ttmon_heat_has_screen(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}
