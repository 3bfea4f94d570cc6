/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * listq.h: lists of mappings, and accesses of GPU kernels, that wait for the slots. A list holds a
 * process's mappings as of the moment it was read, while earlier events may still lie in open slots: a
 * mapping that was unmapped just before the list was read must not be taken away from a copy that came
 * earlier. So a list of a process whose mappings are known already is applied in its place among the
 * events. The first list of a process is applied at once, as it explains the earliest events best.
 *
 * Accesses (GPU_USE) wait until the slots have come to the launch: the memory may have been allocated
 * just before it.
 *
 * Pure, hot thread. Bounded: what does not fit is applied at once.
 */
#ifndef TTMON_LISTQ_H
#define TTMON_LISTQ_H

#include <ttmon/event.h>

#include "lib/base/util.h"

#define TTMON_LISTQ_BYTES (16u << 20)
#define TTMON_LISTQ_PROCS 64

struct ttmon_listq {
	char *v;
	size_t off, len, cap; /* records in [off, len), each after a u64 with its size */
	struct {
		uint32_t tgid;
		uint32_t records;
	} procs[TTMON_LISTQ_PROCS];
	size_t nr_procs;
};

/*
 * Takes the record if it is a GPU_USE, or part of a list that has to wait. known: its process has had
 * a list before. False: apply it now.
 */
bool ttmon_listq_put(struct ttmon_listq *q, const struct ttmon_event *ev, size_t size, bool known);
/*
 * Takes the oldest record out if its list was read, or its launch made, at or before *before_ns (NULL:
 * in any case); else NULL. Valid until the next put.
 */
const struct ttmon_event *ttmon_listq_next(struct ttmon_listq *q, const uint64_t *before_ns, size_t *size);
void ttmon_listq_fini(struct ttmon_listq *q);

#endif
