/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cells.h: helpers for the cells of the report's tables: figures as texts, each in a buffer of its
 * own.
 */
#ifndef TTMON_TOOLS_MT_CELLS_H
#define TTMON_TOOLS_MT_CELLS_H

#include "tools/memtrace/tool.h"

#define COUNT(buf, v)	   ttmon_fmt_count(buf, sizeof(buf), v)
#define BYTES(buf, v)	   ttmon_fmt_bytes(buf, sizeof(buf), v)
#define PERCENT(buf, v)	   ttmon_mt_percent(buf, sizeof(buf), v)
#define PER(buf, num, den) ttmon_mt_per(buf, sizeof(buf), num, den)

/* Returns a share for PERCENT; negative if the whole is 0. */
static inline double share_of(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : -1;
}

#endif
