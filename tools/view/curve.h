/* SPDX-License-Identifier: GPL-2.0-only */
/* curve.h: pinned pages over time, of all processes together and of each. */
#ifndef TTMON_VIEW_CURVE_H
#define TTMON_VIEW_CURVE_H

#include "lib/read/run.h"

#define TTMON_VIEW_POINTS 2048 /* of a curve */

/* From ns on, so many pages; where width_ns is not 0, at most so many within the next width_ns. */
struct ttmon_view_curve {
	uint32_t proc; /* TTMON_RUN_NONE: all */
	uint64_t peak, peak_ns, width_ns;
	struct {
		uint64_t ns, pages;
	} points[TTMON_VIEW_POINTS];
	size_t nr;
};

/*
 * Calls fn with each curve that is not empty: all together first (always, empty or not), then process
 * by process. Whole pages, each allocation rounded up by itself. -ENOMEM.
 */
int ttmon_view_curves(const struct ttmon_run *run, void (*fn)(void *ctx, const struct ttmon_view_curve *c),
		      void *ctx) _must_check;

#endif
