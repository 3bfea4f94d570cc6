// SPDX-License-Identifier: GPL-2.0-only
/*
 * selftest.c: the allocator against tests/rmid_script.h, compiled as the module compiles it. The host
 * and BPF run the same steps.
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "rmid_script.h"
#include "ttmon_rmid.h"

static u32 step(struct ttmon_rmid_pool *p, const struct rmid_script_step *s)
{
	struct ttmon_rmid_holder who = { .start_ns = s->start_ns, .tgid = s->tgid };

	if (s->op == RMID_DO_INIT)
		memset(p, 0, sizeof(*p));
	return rmid_script_do(p, s, &who);
}

static u64 random_digest(struct ttmon_rmid_pool *p, struct rmid_script_random *r)
{
	struct rmid_script_step s = { .op = RMID_DO_INIT, .id = RMID_RANDOM_MAX };
	u32 i;

	step(p, &s);
	rmid_script_random_init(r);
	for (i = 0; i < RMID_RANDOM_STEPS; i++) {
		rmid_script_next(r, &s);
		rmid_script_answer(r, &s, step(p, &s));
		cond_resched();
	}
	return r->digest;
}

int ttmon_rmid_selftest(u32 *steps, u32 *failed_at)
{
	struct ttmon_rmid_pool *p = kvzalloc(sizeof(*p), GFP_KERNEL);
	struct rmid_script_random *r = kzalloc(sizeof(*r), GFP_KERNEL);
	u32 i, bad = 0;
	int ret = -ENOMEM;

	if (!p || !r)
		goto out;
	for (i = 0; i < RMID_SCRIPT_STEPS && !bad; i++) {
		if (step(p, &rmid_script[i]) != rmid_script[i].want)
			bad = i + 1;
	}
	if (!bad && random_digest(p, r) != RMID_RANDOM_DIGEST)
		bad = RMID_SCRIPT_STEPS + 1;
	*steps = RMID_SCRIPT_STEPS + RMID_RANDOM_STEPS;
	*failed_at = bad;
	ret = 0;
out:
	kfree(r);
	kvfree(p);
	return ret;
}
