/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * facts.h: builds the records that the daemon puts into the stream (event.h, kinds past
 * TTMON_EV_FACT), lengths cut to what a record may hold.
 */
#ifndef TTMON_FACTS_H
#define TTMON_FACTS_H

#include "daemon/core/history/history.h"
#include "daemon/io/objects/objects.h"

typedef void (*ttmon_fact_fn)(void *ctx, const void *rec, size_t size);

void ttmon_fact_object(ttmon_fact_fn fn, void *ctx, const struct ttmon_object *o, const uint8_t *build_id, uint64_t dev,
		       uint64_t ino);
/* tid 0: part of a list; else a mapping reported by itself. */
void ttmon_fact_map(ttmon_fact_fn fn, void *ctx, uint64_t ts_ns, uint32_t tgid, uint32_t tid,
		    const struct ttmon_mapping *m, uint32_t object);
void ttmon_fact_symbol(ttmon_fact_fn fn, void *ctx, uint64_t ts_ns, uint32_t object, uint64_t offset, const char *name,
		       uint64_t delta);
/* Executable, command line and cgroup of a process, as far as they can be read. */
void ttmon_fact_names(ttmon_fact_fn fn, void *ctx, uint64_t ts_ns, uint32_t tgid);
/* The clock triple and the host; the first record of a capture. */
void ttmon_fact_clock(ttmon_fact_fn fn, void *ctx, uint32_t nr_cpus, uint32_t capture, uint32_t options);

#endif
