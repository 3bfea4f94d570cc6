/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * summary.h: the tables at the end of a run: summary.c all, summary_tt.c Tenstorrent, summary_cpu.c
 * CPU time.
 */
#ifndef TTMON_SUMMARY_H
#define TTMON_SUMMARY_H

#include "daemon/core/stream/pipeline.h"

void ttmon_summary(FILE *f, struct ttmon_pipeline *p, bool trace_only, uint64_t end_ns);
void ttmon_summary_tt(FILE *f, struct ttmon_pipeline *p);
void ttmon_summary_cpu(FILE *f, struct ttmon_pipeline *p);

#endif
