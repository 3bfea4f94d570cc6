/* SPDX-License-Identifier: GPL-2.0-only */
/* json.h: shared by json.c (the document) and columns.c (the rows) of `ttmon memtrace --json`. */
#ifndef TTMON_TOOLS_MT_JSON_H
#define TTMON_TOOLS_MT_JSON_H

#include "lib/os/jsonw.h"
#include "tools/memtrace/tool.h"

/* Writes a figure with three decimals; null if it is negative. */
void ttmon_mt_json_real(struct ttmon_jsonw *w, double value);
/* writes the member "allocation"; NULL: null */
void ttmon_mt_json_alloc(struct ttmon_jsonw *w, const struct ttmon_mt_alloc *a);

#endif
