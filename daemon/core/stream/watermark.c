// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/core/stream/watermark.h"

int ttmon_watermark_init(struct ttmon_watermark *w, uint32_t rings, uint64_t now_ns)
{
	uint64_t *stalled = calloc(rings, sizeof(*stalled));

	if (!stalled)
		return -ENOMEM;
	*w = (struct ttmon_watermark){
		.ns = now_ns - TTMON_GUARD_NS, .t0_ns = now_ns, .nr_rings = rings, .stalled_since = stalled
	};
	return 0;
}

void ttmon_watermark_fini(struct ttmon_watermark *w)
{
	free(w->stalled_since);
	w->stalled_since = NULL;
}

void ttmon_watermark_begin(struct ttmon_watermark *w, uint64_t t0_ns)
{
	w->t0_ns = t0_ns;
	w->wait = false;
}

bool ttmon_watermark_ring(struct ttmon_watermark *w, uint32_t ring, bool reached, bool moved)
{
	uint64_t *since = &w->stalled_since[ring];

	if (reached) {
		*since = 0;
		return true;
	}
	/* The ring stopped at another record than last time: this record's wait begins now. */
	if (!*since || moved)
		*since = w->t0_ns;
	if (w->t0_ns - *since <= TTMON_STALL_NS) {
		w->wait = true;
		return true;
	}
	w->stalls++;
	return false;
}

void ttmon_watermark_hold(struct ttmon_watermark *w, uint32_t tgid, uint64_t ts_ns)
{
	if (w->nr_procs == TTMON_WATERMARK_PROCS || ttmon_before(ts_ns, w->ns))
		return;
	w->procs[w->nr_procs].tgid = tgid;
	w->procs[w->nr_procs].ts_ns = ts_ns;
	w->procs[w->nr_procs++].deadline_ns = w->t0_ns + TTMON_STALL_NS;
}

void ttmon_watermark_release(struct ttmon_watermark *w, uint32_t tgid)
{
	size_t n = 0;

	for (size_t i = 0; i < w->nr_procs; i++)
		if (w->procs[i].tgid != tgid)
			w->procs[n++] = w->procs[i];
	w->nr_procs = n;
}

void ttmon_watermark_end(struct ttmon_watermark *w)
{
	uint64_t ns = w->t0_ns - TTMON_GUARD_NS;
	size_t n = 0;

	if (w->wait)
		return;
	for (size_t i = 0; i < w->nr_procs; i++) {
		if (ttmon_before(w->procs[i].deadline_ns, w->t0_ns))
			continue;
		if (ttmon_before(w->procs[i].ts_ns, ns))
			ns = w->procs[i].ts_ns;
		w->procs[n++] = w->procs[i];
	}
	w->nr_procs = n;
	if (ttmon_before(w->ns, ns))
		w->ns = ns;
}
