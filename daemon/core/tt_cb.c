// SPDX-License-Identifier: GPL-2.0-only
/*
 * tt_cb.c: circular buffers. Part of core/tt (hot thread, pure).
 *
 * They have no object that could be followed: one is told by its device, address and cores, and a program that runs again tells the same
 * ones again. They go when all of the device's go (track_deallocate_cb, Device::close). A global one lies in an L1 buffer and is counted
 * there.
 */
#include "core/tt_int.h"

#define CORES_MAX    65536
#define CB_BYTES_MAX (1ULL << 32) /* of a core: L1 has 1.5 MB */

void ttmon_tt_cb(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev)
{
	uint64_t cores = ev->arg[1], addr = ev->arg[2], size = ev->arg[3];
	struct ttmon_tt_buf b = { .type = TTMON_TT_TYPE_CB, .addr = addr, .ts_ns = ev->h.ts_ns, .fn = ev->fn };
	uint32_t idx;

	if ((uint8_t)ev->arg[4] || size == 0)
		return;
	b.dev = cores && cores <= CORES_MAX && size <= CB_BYTES_MAX
			? ttmon_tt_dev_get(t, p, ev->arg[0], ev->dev_kind, ev->slot)
			: TTMON_TT_NIL;
	if (b.dev == TTMON_TT_NIL) {
		p->pub.refused++;
		t->generation++;
		return;
	}
	b.size = cores * size;
	b.key = ttmon_mix64(ttmon_mix64(addr) + ((uint64_t)b.dev << 32 | cores)) | TTMON_TT_CB_KEY;
	idx = ttmon_tt_buf_find(p, b.key);
	if (idx != TTMON_TT_NIL && t->bufs[idx].size == b.size)
		return;
	if (idx != TTMON_TT_NIL)
		ttmon_tt_buf_end(t, idx, ev->h.ts_ns, ev->fn, TTMON_TT_END_FREE);
	idx = ttmon_tt_buf_new(t, p, &b, 0);
	if (idx != TTMON_TT_NIL)
		ttmon_tt_count(t, p, NULL, idx);
}

void ttmon_tt_cb_free(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev)
{
	uint32_t dev = ttmon_tt_dev_find(p, ev->arg[0]);

	if (dev != TTMON_TT_NIL)
		ttmon_tt_buf_end_list(t, &p->devs[dev].cbs, ev->h.ts_ns, ev->fn, TTMON_TT_END_FREE);
}
