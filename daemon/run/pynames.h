/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pynames.h: functions of Python, as the unwinding process names them, to OBJECT facts, and their
 * lines to SYMBOL facts. Cold thread.
 */
#ifndef TTMON_RUN_PYNAMES_H
#define TTMON_RUN_PYNAMES_H

#include "daemon/io/unwind/unwinder.h"

struct ttmon_daemon;
struct ttmon_pynames;

int ttmon_pynames_new(struct ttmon_daemon *c, struct ttmon_pynames **ret) _must_check;
void ttmon_pynames_free(struct ttmon_pynames *p);
/* A function, with its number. The numbers before are void where it is 0. */
void ttmon_pynames_add(struct ttmon_pynames *p, const struct ttmon_unwinder_fn *fn);
/*
 * A frame of an answer as it is in the stream, behind the facts that it refers to. *known false: which
 * function it is is not known; it is the one that stands for those.
 */
uint64_t ttmon_pynames_frame(struct ttmon_pynames *p, uint64_t frame, bool *known);

#endif
