/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * progs.h: run time of each program on each device, and the kernels it consists of. Pure; memory
 * bounded.
 *
 * Program ids wrap at 16 bits and are used again: when other kernels are reported for an id than
 * before, its next run begins a new entry. Past the limit, runs are summed up per device under program
 * id 0, which no program has.
 */
#ifndef TTMON_DISP_PROGS_H
#define TTMON_DISP_PROGS_H

#include "daemon/core/dispatch/dispatch.h"

struct ttmon_disp_progs;

int ttmon_disp_progs_new(uint32_t max, struct ttmon_disp_progs **ret) _must_check;
void ttmon_disp_progs_free(struct ttmon_disp_progs *p);
/* proc, clock: numbers that are never reused. -ENOMEM, -ENOSPC: not kept. */
int ttmon_disp_progs_kernel(struct ttmon_disp_progs *p, uint32_t proc, const struct ttmon_ev_tt_kernel *ev);
/* Fills in the run's kernels. */
int ttmon_disp_progs_run(struct ttmon_disp_progs *p, uint32_t proc, uint32_t clock, struct ttmon_tt_run *run);
const char *ttmon_disp_progs_kernels(const struct ttmon_disp_progs *p, uint32_t kernels);
/* Removes the processes for which gone() returns true. */
void ttmon_disp_progs_drop(struct ttmon_disp_progs *p, bool (*gone)(void *ctx, uint32_t proc), void *ctx);
/* All entries, in the order in which they first ran. */
size_t ttmon_disp_progs_view(const struct ttmon_disp_progs *p, const struct ttmon_tt_program **ret);

#endif
