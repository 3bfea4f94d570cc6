/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * apply.h: feeds one part of the core with a record of any kind, as the pipeline does with all of them
 * (core/stream/pipeline.c): the time of the stream, then the function of that part, if the event table
 * says that it has one for this kind.
 */
#ifndef TTMON_APPLY_H
#define TTMON_APPLY_H

#include "daemon/core/cpu/cpu.h"
#include "daemon/core/dispatch/dispatch.h"
#include "daemon/core/history/history.h"
#include "daemon/core/rmid/rmid.h"
#include "daemon/core/stream/decode.h"
#include "daemon/core/stream/timeline.h"
#include "daemon/core/tt/tt.h"

static inline void ttmon_history_apply(struct ttmon_history *h, const struct ttmon_event *ev, size_t size, bool late)
{
	(void)size;
	if (ev->kind < TTMON_EV_FACT)
		ttmon_history_now(h, ev->ts_ns, late);
	switch (ev->kind) {
#define X(id, NAME, name, type, way, family, check, stream, timeline, history, ...) \
	TTMON_IF_##history(case TTMON_EV_##NAME : ttmon_history_on_##name(h, (const void *)ev); break;)
		TTMON_EVENT_TABLE(X)
#undef X
	}
}

static inline void ttmon_timeline_apply(struct ttmon_timeline *t, const struct ttmon_event *ev)
{
	switch (ev->kind) {
#define X(id, NAME, name, type, way, family, check, stream, timeline, ...) \
	TTMON_IF_##timeline(case TTMON_EV_##NAME : ttmon_timeline_on_##name(t, (const void *)ev); break;)
		TTMON_EVENT_TABLE(X)
#undef X
	}
}

static inline void ttmon_tt_apply(struct ttmon_tt *t, const struct ttmon_event *ev, size_t size)
{
	if (ev->kind < TTMON_EV_FACT)
		ttmon_tt_now(t, ev->ts_ns);
	switch (ev->kind) {
#define X(id, NAME, name, type, way, family, check, stream, timeline, history, tt, ...) \
	TTMON_IF_##tt(case TTMON_EV_##NAME : ttmon_tt_on_##name(t, (const void *)ev, size); break;)
		TTMON_EVENT_TABLE(X)
#undef X
	}
}

static inline void ttmon_dispatch_apply(struct ttmon_dispatch *d, const struct ttmon_event *ev, size_t size)
{
	(void)size;
	if (ev->kind < TTMON_EV_FACT)
		ttmon_dispatch_now(d, ev->ts_ns);
	switch (ev->kind) {
#define X(id, NAME, name, type, way, family, check, stream, timeline, history, tt, dispatch, ...) \
	TTMON_IF_##dispatch(case TTMON_EV_##NAME : ttmon_dispatch_on_##name(d, (const void *)ev); break;)
		TTMON_EVENT_TABLE(X)
#undef X
	}
}

static inline void ttmon_cpu_apply(struct ttmon_cpu *c, const struct ttmon_event *ev, size_t size)
{
	switch (ev->kind) {
#define X(id, NAME, name, type, way, family, check, stream, timeline, history, tt, dispatch, cpu, ...) \
	TTMON_IF_##cpu(case TTMON_EV_##NAME : ttmon_cpu_on_##name(c, (const void *)ev, size); break;)
		TTMON_EVENT_TABLE(X)
#undef X
	}
}

static inline void ttmon_rmid_apply(struct ttmon_rmid *r, const struct ttmon_event *ev)
{
	switch (ev->kind) {
#define X(id, NAME, name, type, way, family, check, stream, timeline, history, tt, dispatch, cpu, rmid, ...) \
	TTMON_IF_##rmid(case TTMON_EV_##NAME : ttmon_rmid_on_##name(r, (const void *)ev); break;)
		TTMON_EVENT_TABLE(X)
#undef X
	}
}

#endif
