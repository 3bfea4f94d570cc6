// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_policy_model.c: ways of pinning on random runs: against plain models of them, and the bound
 * against all choices there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/feed/policy_feed.h"

/* ---- random runs ---- */

static uint64_t rng;

static uint64_t below(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

static void random_run(struct model *m, unsigned int n, bool small)
{
	static const uint8_t methods[] = { TTMON_METHOD_HOST_ALLOC, TTMON_METHOD_CUSTOM, TTMON_METHOD_REGISTERED,
					   TTMON_METHOD_HOST_ALLOC, TTMON_METHOD_MMAP };
	unsigned int nr_sites = 1 + (unsigned int)below(small ? 6 : 20), span = 20 + (unsigned int)below(1000);

	begin(m, span + 10);
	for (unsigned int i = 0; i < n; i++) {
		uint64_t from = below(span), size = (1 + below(40)) * (below(3) ? PAGE : 700);
		struct ttmon_run_alloc *a = made(m, methods[below(5)], size, from, from + below(below(4) ? 30 : span),
						 below(3) ? below(100) * below(100) * 20 : 0);

		a->site = 1 + (uint32_t)below(MIN(nr_sites, m->run.nr_sites - 1));
		a->free_ns = MIN(a->free_ns, m->run.end_ns);
		if (!below(12))
			a->flags |= TTMON_RUN_IN_PLACE;
		if (!below(3) && a->h2d_bytes) {
			a->async_copies = 1;
			a->last_copy_ns = from + below(a->free_ns - from + 1);
		}
		a->proc = below(4) ? 0 : (uint32_t)below(3);
	}
}

static bool counts(const struct ttmon_run_alloc *a)
{
	return a->method != TTMON_METHOD_MMAP;
}

/* With hindsight mappings that were moved could have been pinned too. */
static bool could(const struct ttmon_run_alloc *a)
{
	return counts(a) || a->h2d_bytes;
}

static uint64_t pages_of(const struct ttmon_run_alloc *a)
{
	return (a->size + PAGE - 1) / PAGE;
}

static uint64_t ends_at(const struct ttmon_run_alloc *a)
{
	return MAX(a->free_ns, a->alloc_ns + 1);
}

/* The most pages of this choice at one time. */
static uint64_t peak_of(const struct model *m, const bool *in)
{
	uint64_t peak = 0;

	for (size_t i = 0; i < m->run.nr_allocs; i++) {
		uint64_t now = m->allocs[i].alloc_ns, pages = 0;

		for (size_t k = 0; k < m->run.nr_allocs; k++)
			if (in[k] && m->allocs[k].alloc_ns <= now && now < ends_at(&m->allocs[k]))
				pages += pages_of(&m->allocs[k]);
		peak = MAX(peak, pages);
	}
	return peak;
}

/* PyTorch's cache as one would write it down: at every ns, frees, then allocations. */
static void plain_pytorch(const struct model *m, uint64_t round_max, uint64_t cached_max,
			  struct ttmon_policy_result *ret)
{
	struct {
		uint64_t size, ready;
		unsigned int proc;
		enum { USED, WAITING, FREE, GONE } state;
		uint64_t freed; /* order */
	} blocks[MAX_ALLOCS];
	unsigned int n = 0, of[MAX_ALLOCS];
	uint64_t order = 0;

	*ret = (struct ttmon_policy_result){ 0 };
	for (uint64_t now = 0; now <= m->run.end_ns; now++) {
		uint64_t pages = 0;

		for (size_t i = 0; i < m->run.nr_allocs; i++) {
			const struct ttmon_run_alloc *a = &m->allocs[i];

			if (!counts(a) || ends_at(a) != now)
				continue;
			blocks[of[i]].freed = order++;
			blocks[of[i]].ready = a->async_copies ? a->last_copy_ns + a->h2d_bytes / 2 : 0;
			blocks[of[i]].state = a->async_copies ? WAITING : FREE;
			if (blocks[of[i]].state == FREE && cached_max && blocks[of[i]].size > cached_max)
				blocks[of[i]].state = GONE;
		}
		for (size_t i = 0; i < m->run.nr_allocs; i++) {
			const struct ttmon_run_alloc *a = &m->allocs[i];
			uint64_t size = a->size, top = 1;
			unsigned int best = n;

			if (!counts(a) || a->alloc_ns != now)
				continue;
			for (;;) {
				unsigned int first = n;

				for (unsigned int b = 0; b < n; b++)
					if (blocks[b].state == WAITING && blocks[b].proc == a->proc &&
					    (first == n || blocks[b].freed < blocks[first].freed))
						first = b;
				if (first == n || blocks[first].ready > now)
					break;
				blocks[first].state = cached_max && blocks[first].size > cached_max ? GONE : FREE;
			}
			while (top < size)
				top *= 2;
			if (!(round_max && size > round_max) && !(cached_max && size > cached_max))
				size = top;
			for (unsigned int b = 0; b < n; b++)
				if (blocks[b].state == FREE && blocks[b].proc == a->proc && blocks[b].size >= size &&
				    blocks[b].size <= top && (best == n || blocks[b].size < blocks[best].size))
					best = b;
			if (best == n) {
				blocks[n].size = size;
				blocks[n++].proc = a->proc;
				ret->pins++;
				ret->pages_pinned += (size + PAGE - 1) / PAGE;
			}
			blocks[best].state = USED;
			of[i] = best;
			pages = 0;
			for (unsigned int b = 0; b < n; b++)
				pages += blocks[b].state == GONE ? 0 : (blocks[b].size + PAGE - 1) / PAGE;
			ret->peak_pages = MAX(ret->peak_pages, pages);
		}
	}
}

static void pytorch_is_as_written_down(void **state)
{
	static struct model m;

	(void)state;
	rng = 11;
	for (unsigned int round = 0; round < 60; round++) {
		uint64_t round_max = below(2) ? below(40) * PAGE : 0, cached_max = below(2) ? below(60) * PAGE : 0;
		struct ttmon_policy_result r, plain;

		random_run(&m, 1 + (unsigned int)below(150), false);
		plain_pytorch(&m, round_max, cached_max, &plain);
		r = play_with(
			&m, TTMON_POLICY_PYTORCH,
			(struct ttmon_policy_cfg){ .torch_round_max = round_max, .torch_cached_max = cached_max });
		IS(r, pins, plain.pins);
		IS(r, pages_pinned, plain.pages_pinned);
		IS(r, peak_pages, plain.peak_pages);
	}
}

static double worth_of(const struct model *m, size_t i)
{
	return (double)m->allocs[i].h2d_bytes * 0.5 / (double)pages_of(&m->allocs[i]);
}

/* The choice with hindsight as policy.h says it. */
static void plain_hindsight(const struct model *m, uint64_t *peak, uint64_t *bytes)
{
	bool in[MAX_ALLOCS], best[MAX_ALLOCS];
	size_t n = m->run.nr_allocs;
	double top = 0, base;

	for (size_t i = 0; i < n; i++)
		in[i] = best[i] = counts(&m->allocs[i]) && m->allocs[i].flags & TTMON_RUN_IN_PLACE;
	base = (double)peak_of(m, in);
	/* Sets of all that are worth at least as much as one of them. */
	for (size_t least = 0; least < n; least++) {
		bool set[MAX_ALLOCS];
		double gain = 0;

		if (!could(&m->allocs[least]) || !m->allocs[least].h2d_bytes)
			continue;
		for (size_t i = 0; i < n; i++) {
			set[i] = in[i] || (could(&m->allocs[i]) && m->allocs[i].h2d_bytes &&
					   worth_of(m, i) >= worth_of(m, least));
			gain += set[i] && !in[i] ? 0.5 * (double)m->allocs[i].h2d_bytes : 0;
		}
		gain -= 1000 * ((double)peak_of(m, set) - base);
		if (gain > top + 1e-6) {
			top = gain;
			memcpy(best, set, sizeof(best));
		}
	}
	*peak = peak_of(m, best);
	/* What fits, best first. */
	for (;;) {
		size_t next = n;
		static bool seen[MAX_ALLOCS];

		for (size_t i = 0; i < n; i++)
			if (!seen[i] && !best[i] && could(&m->allocs[i]) && m->allocs[i].h2d_bytes &&
			    (next == n || worth_of(m, i) > worth_of(m, next) ||
			     (worth_of(m, i) == worth_of(m, next) && m->allocs[i].alloc_ns < m->allocs[next].alloc_ns)))
				next = i;
		if (next == n) {
			memset(seen, 0, sizeof(seen));
			break;
		}
		seen[next] = best[next] = true;
		best[next] = peak_of(m, best) <= *peak;
	}
	*bytes = 0;
	for (size_t i = 0; i < n; i++)
		*bytes += best[i] ? m->allocs[i].h2d_bytes : 0;
}

static void hindsight_is_as_written_down(void **state)
{
	static struct model m;

	(void)state;
	rng = 14;
	for (unsigned int round = 0; round < 150; round++) {
		struct ttmon_policy_result r;
		uint64_t peak, bytes;

		random_run(&m, 1 + (unsigned int)below(50), false);
		/* Many that hardly pay. */
		for (size_t i = 0; i < m.run.nr_allocs; i++)
			m.allocs[i].h2d_bytes /= 1 + below(20);
		plain_hindsight(&m, &peak, &bytes);
		r = play(&m, TTMON_POLICY_HINDSIGHT);
		IS(r, peak_pages, peak);
		IS(r, moved_pinned_bytes, bytes);
	}
}

static void what_must_hold(void **state)
{
	static struct model m, other;

	(void)state;
	rng = 12;
	for (unsigned int round = 0; round < 200; round++) {
		struct ttmon_policy_result none, all, torch, best, self, advice;
		bool in[MAX_ALLOCS], any[MAX_ALLOCS];
		uint64_t pages = 0, bytes = 0;

		random_run(&m, 1 + (unsigned int)below(120), false);
		random_run(&other, 1 + (unsigned int)below(120), false);
		none = play(&m, TTMON_POLICY_NONE);
		all = play(&m, TTMON_POLICY_ALL);
		torch = play(&m, TTMON_POLICY_PYTORCH);
		best = play(&m, TTMON_POLICY_HINDSIGHT);
		self = play_advice(&m, &m);
		advice = play_advice(&m, &other);
		for (size_t i = 0; i < m.run.nr_allocs; i++) {
			in[i] = counts(&m.allocs[i]);
			any[i] = could(&m.allocs[i]);
			pages += in[i] ? pages_of(&m.allocs[i]) : 0;
			bytes += in[i] ? m.allocs[i].h2d_bytes : 0;
		}
		IS(none, peak_pages, 0);
		IS(all, peak_pages, peak_of(&m, in));
		IS(all, pages_pinned, pages);
		IS(all, moved_pinned_bytes, bytes);
		/* Each live allocation has a block that is large enough; rounding and caching only add. */
		assert_true(torch.peak_pages >= all.peak_pages);
		assert_true(torch.pins <= all.pins);
		IS(torch, moved_pinned_bytes, bytes);
		assert_true(best.peak_pages <= peak_of(&m, any));
		/*
		 * Nothing has fewer pages than the least for its share; hindsight is as good as that where it gives no
		 * more.
		 */
		assert_true(best.peak_pages >= best.least_pages);
		assert_true(self.peak_pages >= self.least_pages);
		assert_true(advice.peak_pages >= advice.least_pages);
		assert_true(all.peak_pages >= all.least_pages);
		assert_true(torch.peak_pages >= torch.least_pages);
		if (advice.moved_pinned_bytes >= best.moved_pinned_bytes)
			assert_true(advice.peak_pages >= best.least_pages);
		if (self.moved_pinned_bytes >= best.moved_pinned_bytes)
			assert_true(self.peak_pages >= best.least_pages);
		/* All see the same transfers. */
		IS(best, moved_bytes, all.moved_bytes);
		IS(self, moved_bytes, all.moved_bytes);
	}
}

/* Few enough that all choices can be looked at. */
static void against_all_choices(void **state)
{
	static struct model m;
	uint64_t ours_sum = 0, least_sum = 0, bound_sum = 0, optimal = 0, rounds = 300;

	(void)state;
	rng = 13;
	for (unsigned int round = 0; round < rounds; round++) {
		struct ttmon_policy_result best, self;
		double top = 0, ours, forced;
		uint64_t least = UINT64_MAX, least_self = UINT64_MAX;
		bool in[MAX_ALLOCS];

		random_run(&m, 1 + (unsigned int)below(9), true);
		for (size_t i = 0; i < m.run.nr_allocs && round & 1; i++)
			m.allocs[i].h2d_bytes /= 1 + below(20);
		best = play(&m, TTMON_POLICY_HINDSIGHT);
		self = play_advice(&m, &m);
		for (unsigned int set = 0; set < 1u << m.run.nr_allocs; set++) {
			uint64_t bytes = 0, peak;
			bool allowed = true, maps = false;

			for (size_t i = 0; i < m.run.nr_allocs; i++) {
				const struct ttmon_run_alloc *a = &m.allocs[i];

				in[i] = set >> i & 1;
				allowed &= in[i] ? could(a) : !(counts(a) && a->flags & TTMON_RUN_IN_PLACE);
				maps |= in[i] && !counts(a);
				bytes += in[i] ? a->h2d_bytes : 0;
			}
			if (!allowed)
				continue;
			peak = peak_of(&m, in);
			top = MAX(top, 0.5 * (double)bytes - 1000.0 * (double)peak);
			if (bytes >= best.moved_pinned_bytes)
				least = MIN(least, peak);
			if (bytes >= self.moved_pinned_bytes && !maps)
				least_self = MIN(least_self, peak);
		}
		/* The bound is one. */
		assert_true(best.least_pages <= least && least <= best.peak_pages);
		assert_true(self.least_pages <= least_self && least_self <= self.peak_pages);
		/* No choice gains more than the best one, in-place memory apart. */
		ours = 0.5 * (double)best.moved_pinned_bytes - 1000.0 * (double)best.peak_pages;
		forced = best.in_place_kept || ours < 0 ? -1e18 : ours;
		assert_true(forced <= top + 0.01);
		ours_sum += best.peak_pages;
		least_sum += least;
		bound_sum += best.least_pages;
		optimal += best.peak_pages == least;
	}
	print_message(
		"hindsight: %.3f times the pages of the optimum at its share, the optimum in %lu of %lu runs; bound "
		"%.3f\n",
		(double)ours_sum / (double)least_sum, (unsigned long)optimal, (unsigned long)rounds,
		(double)bound_sum / (double)least_sum);
	assert_true((double)bound_sum >= 0.9 * (double)least_sum);
	assert_true((double)ours_sum <= 1.02 * (double)least_sum);
	assert_true(optimal * 100 >= rounds * 95);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pytorch_is_as_written_down),
		cmocka_unit_test(hindsight_is_as_written_down),
		cmocka_unit_test(what_must_hold),
		cmocka_unit_test(against_all_choices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
