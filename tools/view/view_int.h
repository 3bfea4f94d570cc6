/* SPDX-License-Identifier: GPL-2.0-only */
/* view_int.h: shared by data.c and cols.c: the state of the JSON output. */
#ifndef TTMON_VIEW_INT_H
#define TTMON_VIEW_INT_H

#include "lib/os/jsonw.h"
#include "tools/view/view.h"

struct ttmon_view_out {
	const struct ttmon_view *v;
	const struct ttmon_run *run;
	struct ttmon_jsonw w;
	uint32_t *procs, *sites, *objects; /* new numbers; TTMON_RUN_NONE: left out */
	struct ttmon_answer *answers;	   /* one for each shown allocation */
	bool fns[UINT16_MAX + 1];	   /* its name has been written */
};

/* Writes the members of the open object, one for each column of the shown allocations. */
void ttmon_view_columns(struct ttmon_view_out *o);

static inline uint64_t ttmon_view_since(const struct ttmon_run *run, uint64_t ns)
{
	return ns > run->start_ns ? ns - run->start_ns : 0;
}

#endif
