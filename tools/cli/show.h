/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * show.h: what the commands that ask the daemon have in common: their options, values out of its JSON,
 * text on a terminal.
 *
 * Fields that are missing are no error: a client must get along with a daemon that is older or newer.
 */
#ifndef TTMON_SHOW_H
#define TTMON_SHOW_H

#include <jansson.h>

#include "lib/base/fmt.h"
#include "lib/base/util.h"

/* Of commands that show an answer of the daemon. */
struct ttmon_show_opts {
	const char *socket;
	bool json, verbose;
};

#define TTMON_SHOW_ROWS                                   \
	TTMON_ROW_SOCKET(struct ttmon_show_opts, socket), \
		TTMON_ROW_JSON(struct ttmon_show_opts, json, "what the service sent, as it is", NULL)
#define TTMON_SHOW_DEFAULTS                                                            \
	.defaults = &(const struct ttmon_show_opts){ .socket = TTMON_SOCKET_DEFAULT }, \
	.size = sizeof(struct ttmon_show_opts)

/* "a.b" in nested objects; NULL. */
const json_t *ttmon_show_at(const json_t *root, const char *where);
/*
 * A non-negative integer, or a string of digits (times and addresses are strings); 0 if it is not
 * there.
 */
uint64_t ttmon_show_u64(const json_t *root, const char *where);
/* A string; "" if it is not there. */
const char *ttmon_show_str(const json_t *root, const char *where);
bool ttmon_show_bool(const json_t *root, const char *where);

/* "12:03:11" by the clock on the wall: a time of CLOCK_MONOTONIC, and how much later that clock is. */
#define TTMON_SHOW_TIME 16
const char *ttmon_show_time(uint64_t ns, int64_t real_offset_ns, char buf[TTMON_SHOW_TIME]);

/*
 * A copy of text that traced programs may have chosen, to be freed; NULL when out of memory. Control
 * characters, which a terminal would obey, become '?'.
 */
char *ttmon_show_clean(const char *text);

enum ttmon_show_colour { TTMON_SHOW_PLAIN, TTMON_SHOW_GOOD, TTMON_SHOW_BAD, TTMON_SHOW_WARN };
/* The escape sequence; "" unless stdout is a terminal that wants it (NO_COLOR, TERM=dumb). */
const char *ttmon_show_escape(enum ttmon_show_colour colour);
/* Columns of the terminal on stdout; 0 when it is none: then nothing is cut. */
size_t ttmon_show_columns(void);

#endif
