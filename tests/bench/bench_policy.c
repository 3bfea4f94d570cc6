// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_policy.c: the cost of simulating a policy on a run of a million allocations, against sorting
 * their times of birth and death, which every policy needs. One line per policy; the advice and the
 * profile are made from the run itself.
 */
#include <time.h>

#include "lib/base/hmap.h"
#include "lib/pin/policy.h"

#define ALLOCS 1000000u
#define SITES  1000u
#define ROUNDS 3

static uint64_t rng = 1;

static uint64_t below(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int by_value(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

static void fill(struct ttmon_run *run)
{
	static struct ttmon_run_object object = { .path = "/x", .base = "x", .build_id_len = 20 };
	static struct ttmon_run_frame frame = { .fn = "f" };
	static struct ttmon_run_site sites[SITES + 1];
	static struct ttmon_run_proc proc = { .pid = 1, .comm = "bench" };

	for (uint64_t i = 1; i <= SITES; i++)
		sites[i] = (struct ttmon_run_site){ .key = i,
						    .exact = ttmon_mix64(i),
						    .names = ttmon_mix64(i + SITES),
						    .nframes = 1,
						    .in_main = true };
	*run = (struct ttmon_run){ .path = (char *)"bench",
				   .hostname = "",
				   .ttmond = "",
				   .reasons = "",
				   .complete = true,
				   .objects = &object,
				   .nr_objects = 1,
				   .frames = &frame,
				   .nr_frames = 1,
				   .sites = sites,
				   .nr_sites = SITES + 1,
				   .procs = &proc,
				   .nr_procs = 1,
				   .end_ns = (uint64_t)ALLOCS * 100 + 100000,
				   .allocs = calloc(ALLOCS, sizeof(*run->allocs)),
				   .nr_allocs = ALLOCS };
	proc.last_ns = run->end_ns;
	if (!run->allocs)
		exit(1);
	for (uint32_t i = 0; i < ALLOCS; i++) {
		struct ttmon_run_alloc *a = &run->allocs[i];
		uint32_t site = 1 + (uint32_t)below(SITES);

		*a = (struct ttmon_run_alloc){ .id = "",
					       .addr = (uint64_t)i << 24,
					       .size = (1 + site % 64) * 40000,
					       .alloc_ns = (uint64_t)i * 100,
					       .site = site,
					       .ordinal = i,
					       .method = TTMON_METHOD_HOST_ALLOC };
		a->free_ns = MIN(a->alloc_ns + 1 + below(site % 10 ? 10000 : 1000000), run->end_ns);
		a->h2d_copies = site % 3 ? (uint32_t)below(10) : 0;
		a->h2d_bytes = a->h2d_copies * a->size;
		if (a->h2d_copies)
			a->first_h2d_ns = a->last_h2d_ns = a->last_copy_ns = a->alloc_ns;
	}
}

/* The time to sort two times of each allocation. */
static uint64_t floor_ns(const struct ttmon_run *run)
{
	uint64_t *v = malloc(2 * (size_t)ALLOCS * sizeof(*v)), best = UINT64_MAX;

	if (!v)
		exit(1);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t start;

		for (uint32_t i = 0; i < ALLOCS; i++) {
			v[2 * i] = run->allocs[i].alloc_ns;
			v[2 * i + 1] = run->allocs[i].free_ns;
		}
		start = now_ns();
		qsort(v, 2 * (size_t)ALLOCS, sizeof(*v), by_value);
		best = MIN(best, now_ns() - start);
	}
	free(v);
	return best;
}

int main(void)
{
	struct ttmon_policy_cfg cfg = { .cost = TTMON_COST_DEFAULT };
	struct ttmon_profile *profile;
	const struct ttmon_run *runs[1];
	struct ttmon_run run;
	uint64_t floor, start;

	fill(&run);
	runs[0] = &run;
	floor = floor_ns(&run);
	printf("%-16s %8.1f ms\n", "floor: sorting", (double)floor / 1e6);
	start = now_ns();
	if (ttmon_profile_new(runs, 1, &cfg.cost, &profile))
		return 1;
	printf("%-16s %8.1f ms, %.1f x\n", "profile", (double)(now_ns() - start) / 1e6,
	       (double)(now_ns() - start) / (double)floor);
	cfg.profile = profile;
	for (unsigned int p = 0; p < TTMON_POLICY_MAX; p++) {
		struct ttmon_policy_result r = { 0 };
		uint64_t best = UINT64_MAX;

		for (unsigned int round = 0; round < ROUNDS; round++) {
			start = now_ns();
			if (ttmon_policy_simulate(&run, p, &cfg, &r))
				return 1;
			best = MIN(best, now_ns() - start);
		}
		printf("%-16s %8.1f ms, %.1f x; peak %llu pages, at least %llu\n", ttmon_policy_name(p),
		       (double)best / 1e6, (double)best / (double)floor, (unsigned long long)r.peak_pages,
		       (unsigned long long)r.least_pages);
	}
	ttmon_profile_free(profile);
	free(run.allocs);
	return 0;
}
