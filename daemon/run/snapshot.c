// SPDX-License-Identifier: GPL-2.0-only
/*
 * snapshot.c: the figures of struct ttmon_snapshot (hot.h) that come from the pipeline. Runs in the
 * thread that owns the pipeline.
 */
#include "daemon/run/hot.h"

void ttmon_snapshot_fill(struct ttmon_snapshot *s, struct ttmon_pipeline *p)
{
	s->procs = ttmon_history_procs(ttmon_pipeline_history(p));
	s->has_tt = ttmon_pipeline_has_tt(p);
	s->tt_generation =
		ttmon_tt_generation(ttmon_pipeline_tt(p)) + ttmon_dispatch_generation(ttmon_pipeline_dispatch(p));
	ttmon_pipeline_accounting(p, &s->acc);
	ttmon_history_get_totals(ttmon_pipeline_history(p), &s->totals);
	s->nr_quotas = ttmon_history_quotas(ttmon_pipeline_history(p), s->quotas);
	ttmon_cpu_get_totals(ttmon_pipeline_cpu(p), &s->cpu);
	ttmon_rmid_get_totals(ttmon_pipeline_rmid(p), &s->rmid);
	ttmon_pipeline_seen(p, &s->seen);
	/* That the trace is still running does not make it incomplete. */
	s->incomplete = ttmon_pipeline_incomplete(p, true) & ~(1u << TTMON_INCOMPLETE_CUT);
}
