/* SPDX-License-Identifier: GPL-2.0-only */
/* curve.h: pinned pages over time, of all processes together and of each process. */
#ifndef TTMON_VIEW_CURVE_H
#define TTMON_VIEW_CURVE_H

#include "lib/read/run.h"

#define TTMON_VIEW_POINTS 2048 /* the most points of a curve */

/*
 * A point: the number of pages from ns on. If width_ns is not 0, it is the maximum within the next
 * width_ns.
 */
struct ttmon_view_curve {
	uint32_t proc; /* TTMON_RUN_NONE: all processes */
	uint64_t peak, peak_ns, width_ns;
	struct {
		uint64_t ns, pages;
	} points[TTMON_VIEW_POINTS];
	size_t nr;
};

/*
 * Calls fn with the curve of all processes together, then with each process's curve that is not empty.
 * Sizes are whole pages; each allocation is rounded up by itself. Returns 0 or -ENOMEM.
 */
int ttmon_view_curves(const struct ttmon_run *run, void (*fn)(void *ctx, const struct ttmon_view_curve *c),
		      void *ctx) _must_check;

#endif
