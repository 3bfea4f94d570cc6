/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy_feed.h: runs made by hand for the tests of lib/pin/policy, and each policy played on them.
 * Included after cmocka.
 */
#ifndef TTMON_POLICY_FEED_H
#define TTMON_POLICY_FEED_H

#include "lib/base/hmap.h"
#include "lib/pin/policy.h"

#define MAX_ALLOCS 400
#define PAGE	   TTMON_POLICY_PAGE

/* A byte from pinned memory saves half a ns, a page costs 1000 ns. */
static const struct ttmon_cost test_cost = { 1000000000, 2000000000, 4096000000, 0, 0 };

struct model {
	struct ttmon_run run;
	struct ttmon_run_alloc allocs[MAX_ALLOCS];
	struct ttmon_run_site sites[MAX_ALLOCS];
	struct ttmon_run_proc procs[3];
	struct ttmon_run_object object;
	struct ttmon_run_frame frames[1];
};

static void begin(struct model *m, uint64_t end_ns)
{
	memset(m, 0, sizeof(*m));
	m->object = (struct ttmon_run_object){ .path = "/x", .base = "x", .build_id_len = 20 };
	m->frames[0] = (struct ttmon_run_frame){ .object = 0, .fn = "f" };
	m->run = (struct ttmon_run){ .path = (char *)"x",
				     .hostname = "",
				     .ttmond = "",
				     .end_ns = end_ns,
				     .complete = true,
				     .reasons = "",
				     .objects = &m->object,
				     .nr_objects = 1,
				     .frames = m->frames,
				     .nr_frames = 1,
				     .sites = m->sites,
				     .nr_sites = 1,
				     .procs = m->procs,
				     .nr_procs = 3,
				     .allocs = m->allocs };
	for (unsigned int i = 0; i < 3; i++)
		m->procs[i] = (struct ttmon_run_proc){ .pid = i + 1, .last_ns = end_ns, .comm = "p" };
}

/* Each allocation has a site of its own, unless another is given. */
static struct ttmon_run_alloc *made(struct model *m, uint8_t method, uint64_t size, uint64_t from, uint64_t to,
				    uint64_t bytes)
{
	size_t n = m->run.nr_allocs++;
	struct ttmon_run_alloc *a = &m->allocs[n];

	assert_true(n < MAX_ALLOCS - 1);
	m->sites[n + 1] = (struct ttmon_run_site){
		.key = n + 1, .exact = ttmon_mix64(n + 1), .names = ttmon_mix64(n + 1000), .nframes = 1, .in_main = true
	};
	m->run.nr_sites = n + 2;
	*a = (struct ttmon_run_alloc){ .id = "",
				       .addr = 0x100000 * (n + 1),
				       .size = size,
				       .alloc_ns = from,
				       .free_ns = to,
				       .h2d_bytes = bytes,
				       .h2d_copies = bytes ? 1 : 0,
				       .first_h2d_ns = bytes ? from : 0,
				       .last_h2d_ns = bytes ? from : 0,
				       .last_copy_ns = bytes ? from : 0,
				       .site = (uint32_t)n + 1,
				       .method = method };
	return a;
}

static struct ttmon_policy_result play_with(const struct model *m, unsigned int policy, struct ttmon_policy_cfg cfg)
{
	struct ttmon_policy_result r;

	cfg.cost = test_cost;
	assert_int_equal(ttmon_policy_simulate(&m->run, policy, &cfg, &r), 0);
	return r;
}

static struct ttmon_policy_result play(const struct model *m, unsigned int policy)
{
	return play_with(m, policy, (struct ttmon_policy_cfg){ 0 });
}

static struct ttmon_profile *profile_of(const struct model *m)
{
	const struct ttmon_run *runs[] = { &m->run };
	struct ttmon_profile *p = NULL;

	assert_int_equal(ttmon_profile_new(runs, 1, &test_cost, &p), 0);
	return p;
}

static struct ttmon_policy_result play_advice(const struct model *m, const struct model *training)
{
	struct ttmon_profile *p = profile_of(training);
	struct ttmon_policy_result r = play_with(m, TTMON_POLICY_ADVICE, (struct ttmon_policy_cfg){ .profile = p });

	ttmon_profile_free(p);
	return r;
}

#define IS(r, field, value) assert_int_equal((r).field, value)

#endif
