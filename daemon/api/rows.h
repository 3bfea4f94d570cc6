/* SPDX-License-Identifier: GPL-2.0-only */
/* rows.h: shared by the routes: parameters, and the members for a process and a call site in a row. */
#ifndef TTMON_API_ROWS_H
#define TTMON_API_ROWS_H

#include "daemon/core/history/history.h"
#include "daemon/io/http/http.h"
#include "lib/os/jsonw.h"

/*
 * A numeric parameter from min to max; *ret is untouched if it is not given. False: it is invalid, and
 * the reply says so (400).
 */
bool ttmon_api_arg_num(struct ttmon_http_reply *reply, const char *name, uint64_t min, uint64_t max, uint64_t *ret);
/* The same for 0 and 1; ?name alone is 1. */
bool ttmon_api_arg_bool(struct ttmon_http_reply *reply, const char *name, bool *ret);
/* Digits only. */
bool ttmon_api_number(const char *text, uint64_t *ret);

/*
 * Members "pid" (where with_pid), "start_ns" and "comm" of a process of the history. Hot thread, or a
 * forked child.
 */
void ttmon_api_row_process(struct ttmon_jsonw *w, const struct ttmon_proc *p, bool with_pid);
/* Member "call_site": "function+0x12", "libfoo.so+0x1234" where no function is known, null. */
void ttmon_api_row_site(struct ttmon_jsonw *w, const struct ttmon_history *h, uint32_t site);
/* Member "frames": all of the call site, innermost first. */
void ttmon_api_row_frames(struct ttmon_jsonw *w, const struct ttmon_history *h, uint32_t site);

#endif
