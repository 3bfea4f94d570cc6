/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * show.h: what the commands that query the daemon share: options, reading values from its JSON,
 * printing text on a terminal.
 *
 * A missing field is not an error: a client must work with a daemon that is older or newer.
 */
#ifndef TTMON_SHOW_H
#define TTMON_SHOW_H

#include <jansson.h>

#include "lib/base/fmt.h"
#include "lib/base/util.h"

/* Options of a command that shows an answer of the daemon. */
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

/* Returns the member at a path such as "a.b"; NULL if there is none. */
const json_t *ttmon_show_at(const json_t *root, const char *where);
/*
 * Returns a non-negative integer or a string of digits (times and addresses are strings); 0 if the
 * member is missing.
 */
uint64_t ttmon_show_u64(const json_t *root, const char *where);
/* Returns a string (borrowed); "" if the member is missing. */
const char *ttmon_show_str(const json_t *root, const char *where);
bool ttmon_show_bool(const json_t *root, const char *where);

/*
 * Formats a time of CLOCK_MONOTONIC as wall-clock time, "12:03:11". The offset is real time minus
 * monotonic time.
 */
#define TTMON_SHOW_TIME 16
const char *ttmon_show_time(uint64_t ns, int64_t real_offset_ns, char buf[TTMON_SHOW_TIME]);

/*
 * Returns a copy of text that traced programs may have chosen; the caller frees it. NULL: out of
 * memory. Control characters, which would change the terminal, become '?'.
 */
char *ttmon_show_clean(const char *text);

enum ttmon_show_colour { TTMON_SHOW_PLAIN, TTMON_SHOW_GOOD, TTMON_SHOW_BAD, TTMON_SHOW_WARN };
/*
 * Returns the escape sequence; "" if stdout is no terminal, or NO_COLOR or TERM=dumb disable colours.
 */
const char *ttmon_show_escape(enum ttmon_show_colour colour);
/* Returns the columns of the terminal on stdout; 0 if stdout is no terminal: nothing is cut then. */
size_t ttmon_show_columns(void);

#endif
