// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_run.c: any bytes as a database, into tables, into a profile of it, and each of its allocations
 * looked up there. What lib/read/run.h promises of tables holds, an allocation that was learnt is
 * found, and no figure is out of range.
 */
#include <sys/mman.h>

#include "lib/pin/profile.h"

static void require(bool what)
{
	if (!what)
		abort();
}

static void event(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a,
		  const struct ttmon_run_event *ev)
{
	(void)ctx;
	require(a->site < run->nr_sites && a->proc < run->nr_procs && ev->ts_ns <= INT64_MAX);
}

static void check_site(const struct ttmon_run *run, const struct ttmon_run_site *s)
{
	char text[64];

	require(s->frame + (size_t)s->nframes <= run->nr_frames);
	for (uint32_t i = 0; i < s->nframes; i++)
		require(run->frames[s->frame + i].object < run->nr_objects ||
			run->frames[s->frame + i].object == TTMON_RUN_NONE);
	ttmon_run_site_text(run, (uint32_t)(s - run->sites), text, sizeof(text));
	require(strlen(text) < sizeof(text));
}

static void check_alloc(const struct ttmon_run *run, const struct ttmon_run_alloc *a)
{
	require(a->id && a->site < run->nr_sites && a->proc < run->nr_procs && a->method < TTMON_METHOD_MAX);
	require(a->free_ns >= a->alloc_ns && a->free_ns <= INT64_MAX);
	require(ttmon_run_pages(a) <= 1ULL << 38);
	require(!a->h2d_copies == !a->first_h2d_ns && a->first_h2d_ns <= a->last_h2d_ns);
	require(a->last_h2d_ns <= a->last_copy_ns || !a->h2d_copies);
}

static void check_run(const struct ttmon_run *run)
{
	require(run->hostname && run->ttmond && run->reasons && run->nr_sites && run->end_ns >= run->start_ns);
	for (size_t i = 0; i < run->nr_sites; i++)
		check_site(run, &run->sites[i]);
	for (size_t i = 0; i < run->nr_allocs; i++)
		check_alloc(run, &run->allocs[i]);
	for (size_t i = 0; i < run->nr_checkpoints; i++)
		require(run->checkpoints[i].label && run->checkpoints[i].proc < run->nr_procs);
	for (size_t i = 0; i < run->nr_gaps; i++)
		require(run->gaps[i].what && run->gaps[i].from_ns <= run->gaps[i].to_ns);
}

static void check_answer(const struct ttmon_profile *p, const struct ttmon_profile_key *key, bool known)
{
	struct ttmon_profile_found found;
	struct ttmon_answer x;

	ttmon_profile_lookup(p, key, &x);
	ttmon_profile_find(p, key, &found);
	require(x.match == found.match && x.match < TTMON_MATCH_MAX);
	/* What is found may be of memory whose verdict is not known. */
	require(x.match || !x.verdict);
	require(x.confidence >= 0 && x.confidence <= 1);
	require(!found.match == !found.candidates && (!known || found.match));
}

static void check_profile(const struct ttmon_run *run, const struct ttmon_run *const *runs, size_t n)
{
	const struct ttmon_cost cost = TTMON_COST_DEFAULT;
	struct ttmon_profile *p = NULL;
	struct ttmon_profile_site s;

	require(!ttmon_profile_new(runs, n, &cost, &p));
	for (size_t i = 0; i < run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];
		struct ttmon_profile_key key;

		ttmon_profile_key_of(run, a, (uint32_t)i, &key);
		check_answer(p, &key,
			     ttmon_run_is_host(a) && a->method != TTMON_METHOD_MMAP &&
				     (key.exact || key.names || key.name));
		key.ordinal++;
		key.size ^= 1ULL << i % 64;
		check_answer(p, &key, false);
	}
	for (size_t i = 0; i < ttmon_profile_sites(p); i++) {
		ttmon_profile_get_site(p, i, &s);
		require(s.nframes <= TTMON_RUN_KEY_FRAMES && (!s.exact || ttmon_profile_has_site(p, s.exact)));
		for (uint32_t k = 0; k < s.nframes; k++)
			require(s.frames[k].object == TTMON_RUN_NONE || ttmon_profile_object(p, s.frames[k].object));
	}
	ttmon_profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ttmon_run_opts opts = { .event = event };
	struct ttmon_run *run = NULL;
	const struct ttmon_run *runs[2];
	char path[64], why[600] = "";
	int fd = memfd_create("db", MFD_CLOEXEC), err;

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = ttmon_run_load(path, &opts, &run, why, sizeof(why));
	close(fd);
	require(!err == (run != NULL) && !err == !why[0]);
	if (err)
		return 0;
	check_run(run);
	runs[0] = runs[1] = run;
	check_profile(run, runs, 1);
	check_profile(run, runs, 2);
	ttmon_run_free(run);
	return 0;
}
