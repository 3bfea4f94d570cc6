// SPDX-License-Identifier: GPL-2.0-only
/* sums.c: see sums.h. Hot thread. */
#include "daemon/core/dispatch/sums.h"

bool ttmon_disp_cpu_add(struct ttmon_disp_cpu *c, uint64_t ts_ns, const __u64 sums[TTMON_TT_DISPATCH_MAX],
			uint64_t ret[TTMON_TT_DISPATCH_MAX])
{
	uint64_t now[TTMON_TT_DISPATCH_MAX];
	bool any = false;

	memset(ret, 0, TTMON_TT_DISPATCH_MAX * sizeof(ret[0]));
	if (c->seen && ttmon_before(ts_ns, c->ts_ns))
		return false;
	for (unsigned int k = 0; k < TTMON_TT_DISPATCH_MAX; k++)
		now[k] = sums[k];
	for (unsigned int k = 0; k < TTMON_TT_DISPATCH_MAX; k++) {
		if (now[k] <= c->last[k])
			continue;
		ret[k] = now[k] - c->last[k];
		c->last[k] = now[k];
		any = true;
	}
	c->ts_ns = ts_ns;
	c->seen = true;
	return any;
}

uint64_t ttmon_disp_cpu_tell(struct ttmon_disp_cpu *c, unsigned int kind, uint64_t sum)
{
	uint64_t count;

	if (sum <= c->told[kind] || sum > c->last[kind])
		return 0;
	count = sum - c->told[kind];
	c->told[kind] = sum;
	return count;
}
