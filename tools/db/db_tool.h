/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * db_tool.h: the parts of `ttmon db`. Each prints to stdout, errors to stderr, and returns the exit
 * status.
 */
#ifndef TTMON_DB_TOOL_H
#define TTMON_DB_TOOL_H

#include "lib/os/cli.h"
#include "lib/read/db.h"

int ttmon_db_tool_check(const char *path);
int ttmon_db_tool_show(const char *path);
int ttmon_db_tool_show_alloc(const char *path, const char *id);
/* which: "LABEL", "N", "LABEL:N" (core/history/periods.h). */
int ttmon_db_tool_show_period(const char *path, const char *which);
extern const struct ttmon_cli_cmd ttmon_db_cmd_match; /* match.c */

/*
 * The Tenstorrent part; nothing where the database has none. limited: a bound was hit, sums need not
 * match.
 */
void ttmon_db_tool_check_tt(const struct ttmon_db *db, bool limited, void (*report)(void *ctx, const char *text),
			    void *ctx);
int ttmon_db_tool_show_tt(const struct ttmon_db *db); /* -ENOMEM */

/*
 * One frame of a site for a person: "function+0x12", or "libfoo.so+0x1234" where no function is known.
 * Gives buf back.
 */
char *ttmon_db_tool_frame(char *buf, size_t n, const struct ttmon_db *db, const json_t *frame);
/* The same with the object behind it: "function+0x12 (libfoo.so 0x1234)". */
char *ttmon_db_tool_frame_long(char *buf, size_t n, const struct ttmon_db *db, const json_t *frame);
/* [copies, bytes]; zeros if it is not that. */
void ttmon_db_tool_pair(const json_t *json, uint64_t *copies, uint64_t *bytes);

#endif
