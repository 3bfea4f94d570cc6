/* SPDX-License-Identifier: GPL-2.0-only */
/* json.h: between the parts of `ttmon memtrace --json`: json.c (the document, sums), json_rows.c (sites, launches, kernels, buffers, reuse, heat). */
#ifndef TTMON_TOOLS_MT_JSON_H
#define TTMON_TOOLS_MT_JSON_H

#include "lib/os/jsonw.h"
#include "tools/memtrace/tool.h"

/* Members of the object that is open. */
void ttmon_mt_json_list(struct ttmon_jsonw *w, const char *key); /* begins an array */
void ttmon_mt_json_hist(struct ttmon_jsonw *w, const char *key, const uint64_t *of, size_t n);
void ttmon_mt_json_sums_of(struct ttmon_jsonw *w, const char *key, const struct ttmon_mt_sums *s, bool requested);
void ttmon_mt_json_alloc(struct ttmon_jsonw *w, const struct ttmon_mt_alloc *a); /* "allocation"; NULL: null */

/* The first n rows of each. */
void ttmon_mt_json_sites(struct ttmon_jsonw *w, const struct ttmon_mt_report *r, size_t n);
void ttmon_mt_json_launches(struct ttmon_jsonw *w, const struct ttmon_mt_report *r, size_t n);
void ttmon_mt_json_kernels(struct ttmon_jsonw *w, const struct ttmon_mt_report *r, size_t n);
void ttmon_mt_json_buffers(struct ttmon_jsonw *w, const struct ttmon_mt_report *r, size_t n);
void ttmon_mt_json_reuse(struct ttmon_jsonw *w, const struct ttmon_mt_report *r);
void ttmon_mt_json_heat(struct ttmon_jsonw *w, const struct ttmon_mt_report *r);

#endif
