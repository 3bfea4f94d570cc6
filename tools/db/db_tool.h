/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * db_tool.h: the parts of `ttmon db`. Each function prints to stdout, writes errors to stderr, and
 * returns the exit status.
 */
#ifndef TTMON_DB_TOOL_H
#define TTMON_DB_TOOL_H

#include "lib/os/cli.h"
#include "lib/read/db.h"

int ttmon_db_tool_check(const char *path);
int ttmon_db_tool_show(const char *path);
int ttmon_db_tool_show_alloc(const char *path, const char *id);
/* which: the period to show, as "LABEL", "N" or "LABEL:N" (daemon/core/history/periods.h). */
int ttmon_db_tool_show_period(const char *path, const char *which);
extern const struct ttmon_cli_cmd ttmon_db_cmd_match; /* match.c */

/*
 * Checks the Tenstorrent part of a database; does nothing if there is none. limited: a limit was
 * reached, so sums may differ. Calls report for each error.
 */
void ttmon_db_tool_check_tt(const struct ttmon_db *db, bool limited, void (*report)(void *ctx, const char *text),
			    void *ctx);
int ttmon_db_tool_show_tt(const struct ttmon_db *db); /* Returns 0 or -ENOMEM. */

/*
 * Formats one frame of a call site: "function+0x12", or "libfoo.so+0x1234" if no function is known.
 * Returns buf.
 */
char *ttmon_db_tool_frame(char *buf, size_t n, const struct ttmon_db *db, const json_t *frame);
/* The same with its object: "function+0x12 (libfoo.so 0x1234)". */
char *ttmon_db_tool_frame_long(char *buf, size_t n, const struct ttmon_db *db, const json_t *frame);
/* Reads an array [copies, bytes]; sets both to 0 if it has another form. */
void ttmon_db_tool_pair(const json_t *json, uint64_t *copies, uint64_t *bytes);

#endif
