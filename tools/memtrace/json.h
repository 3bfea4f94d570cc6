/* SPDX-License-Identifier: GPL-2.0-only */
/* json.h: what json.c (the document) and columns.c (the rows) of `ttmon memtrace --json` share. */
#ifndef TTMON_TOOLS_MT_JSON_H
#define TTMON_TOOLS_MT_JSON_H

#include "lib/os/jsonw.h"
#include "tools/memtrace/tool.h"

/* A figure with three decimals, null below 0. */
void ttmon_mt_json_real(struct ttmon_jsonw *w, double value);
void ttmon_mt_json_alloc(struct ttmon_jsonw *w, const struct ttmon_mt_alloc *a); /* "allocation"; NULL: null */

#endif
