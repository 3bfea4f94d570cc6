// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_rmid_alloc.c: the allocator of RMIDs on the host: the steps of tests/rmid_script.h, and a
 * random run against a model that keeps a plain list. The same steps run in BPF (tests/bpf) and in the
 * kernel module (selftest=1). Another test covers the rounds in which the module reads the ids in use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tests/rmid_script.h"
#include "lib/base/util.h"

static struct ttmon_rmid_holder holder_of(const struct rmid_script_step *s)
{
	struct ttmon_rmid_holder h = { .start_ns = s->start_ns, .tgid = s->tgid };

	snprintf(h.comm, sizeof(h.comm), "p%u", s->tgid);
	return h;
}

static uint32_t step(struct ttmon_rmid_pool *p, const struct rmid_script_step *s)
{
	const struct ttmon_rmid_holder h = holder_of(s);

	if (s->op == RMID_DO_INIT)
		memset(p, 0, sizeof(*p));
	return rmid_script_do(p, s, &h);
}

static void test_script(void **state)
{
	_cleanup_free_ struct ttmon_rmid_pool *p = calloc(1, sizeof(*p));

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < RMID_SCRIPT_STEPS; i++) {
		uint32_t got = step(p, &rmid_script[i]);

		if (got != rmid_script[i].want)
			fail_msg("step %zu: %u, not %u", i, got, rmid_script[i].want);
	}
}

/*
 * What the allocator promises, modelled differently: a list of free ids with times, and the holder of
 * each id.
 */
struct model {
	struct {
		uint32_t id;
		uint64_t free_ns;
	} list[RMID_RANDOM_MAX];
	uint32_t n, used;
	uint32_t tgid[RMID_RANDOM_MAX + 1]; /* 0: free */
};

static bool model_ready(const struct model *m, uint64_t now_ns)
{
	return m->used < RMID_RANDOM_MAX || (m->n && (int64_t)(now_ns - m->list[0].free_ns) >= 2 * 1000 * 1000);
}

static uint32_t model_step(struct model *m, const struct rmid_script_step *s)
{
	uint32_t id = 0;

	switch (s->op) {
	case RMID_DO_READY:
		return model_ready(m, s->at_ns);
	case RMID_DO_HOLDER:
		return s->id && s->id <= RMID_RANDOM_MAX ? m->tgid[s->id] : 0;
	case RMID_DO_ALLOC:
		if (!model_ready(m, s->at_ns))
			return 0;
		if (m->used < RMID_RANDOM_MAX) {
			id = ++m->used;
		} else {
			id = m->list[0].id;
			memmove(&m->list[0], &m->list[1], --m->n * sizeof(m->list[0]));
		}
		m->tgid[id] = s->tgid;
		return id;
	}
	if (!s->id || s->id > RMID_RANDOM_MAX)
		return TTMON_RMID_NO_SUCH;
	if (!m->tgid[s->id])
		return TTMON_RMID_IS_FREE;
	if (m->tgid[s->id] != s->tgid)
		return TTMON_RMID_OTHERS;
	m->tgid[s->id] = 0;
	m->list[m->n].id = s->id;
	m->list[m->n++].free_ns = s->at_ns;
	return TTMON_RMID_FREED;
}

static void test_random(void **state)
{
	const struct rmid_script_step init = RMID_INIT(RMID_RANDOM_MAX, RMID_RANDOM_MAX);
	_cleanup_free_ struct ttmon_rmid_pool *p = calloc(1, sizeof(*p));
	_cleanup_free_ struct model *m = calloc(1, sizeof(*m));
	struct rmid_script_random r;
	uint64_t answers[RMID_DO_REFUSED + 1][4] = { 0 };

	(void)state;
	assert_non_null(p);
	assert_non_null(m);
	step(p, &init);
	rmid_script_random_init(&r);
	for (size_t i = 0; i < RMID_RANDOM_STEPS; i++) {
		struct rmid_script_step s;
		uint32_t got, want, held = 0;

		rmid_script_next(&r, &s);
		got = step(p, &s);
		want = model_step(m, &s);
		if (got != want)
			fail_msg("step %zu, op %u: %u, not %u", i, s.op, got, want);
		answers[s.op][MIN(got, 3u)]++;
		rmid_script_answer(&r, &s, got);
		if (i % 1000)
			continue;
		for (uint32_t id = 1; id <= RMID_RANDOM_MAX; id++)
			held += !!ttmon_rmid_pool_holder(p, id);
		assert_int_equal(held, p->in_use);
		assert_int_equal(p->fresh - p->in_use, p->nr_free);
		assert_int_equal(p->allocs - p->frees, p->in_use);
	}
	/* The run reached all cases. */
	assert_true(p->exhausted > 100 && p->limbo > 100 && p->peak == RMID_RANDOM_MAX);
	for (int why = 0; why < 4; why++)
		assert_true(answers[RMID_DO_FREE][why] > 100);
	assert_true(answers[RMID_DO_READY][0] > 100 && answers[RMID_DO_READY][1] > 100);
	if (r.digest != RMID_RANDOM_DIGEST)
		fail_msg("RMID_RANDOM_DIGEST must be 0x%llx", (unsigned long long)r.digest);
}

/*
 * The name and times of the last holder stay after the free; those of the next holder replace them.
 */
static void test_metadata(void **state)
{
	_cleanup_free_ struct ttmon_rmid_pool *p = calloc(1, sizeof(*p));
	const struct ttmon_rmid_holder a = { .start_ns = 5, .tgid = 50, .comm = "first" };
	const struct ttmon_rmid_holder b = { .start_ns = 6, .tgid = 60, .comm = "second" };

	(void)state;
	assert_non_null(p);
	ttmon_rmid_pool_init(p, 1);
	assert_int_equal(ttmon_rmid_pool_alloc(p, &a, 1000), 1);
	assert_int_equal(ttmon_rmid_pool_holder(p, 1)->since_ns, 1000);
	assert_string_equal(ttmon_rmid_pool_holder(p, 1)->who.comm, "first");
	assert_int_equal(ttmon_rmid_pool_free(p, 1, 50, 5, 2000), TTMON_RMID_FREED);
	assert_null(ttmon_rmid_pool_holder(p, 1));
	assert_string_equal(p->ids[1].who.comm, "first");
	assert_int_equal(p->ids[1].since_ns, 2000);
	assert_int_equal(ttmon_rmid_pool_alloc(p, &b, 3000000), 1);
	assert_string_equal(ttmon_rmid_pool_holder(p, 1)->who.comm, "second");
	assert_int_equal(ttmon_rmid_pool_holder(p, 1)->gen, 2);
	assert_null(ttmon_rmid_pool_holder(p, 0));
	assert_null(ttmon_rmid_pool_holder(p, 2));
	assert_null(ttmon_rmid_pool_holder(p, 1025));
}

/*
 * Returns the first id in use after this one, with wrap-around, as kmod/table.c searches for it; 0:
 * none is in use.
 */
static uint32_t next_used(const bool *used, uint32_t n, uint32_t after)
{
	for (uint32_t i = after + 1; i < n; i++)
		if (used[i])
			return i;
	for (uint32_t i = 1; i < n; i++)
		if (used[i])
			return i;
	return 0;
}

/*
 * One round. If `change` is not 0, ids are given and freed between two steps. Returns how many were
 * taken.
 */
static uint32_t turn(bool *used, uint32_t n, uint32_t *last, uint32_t batch, uint32_t change, uint32_t *taken,
		     struct rmid_script_random *r)
{
	struct ttmon_rmid_round round = { .start = *last, .at = *last };
	uint32_t i;

	for (i = 0; i < batch && ttmon_rmid_round_take(&round, next_used(used, n, round.at)); i++) {
		taken[round.at]++;
		for (uint32_t k = rmid_script_rand(r, change + 1); k; k--)
			used[1 + rmid_script_rand(r, n - 1)] = rmid_script_rand(r, 2);
		/* In half of the cases the id with which the round began. */
		if (change && !i && rmid_script_rand(r, 2))
			used[round.at] = false;
	}
	*last = round.at;
	return i;
}

/*
 * Readings of RMIDs, tick by tick: none is read twice in a tick, whatever is freed and given
 * meanwhile. All that are in use all the time are read: in one tick if there is room, else in rounds.
 */
static void test_rounds(void **state)
{
	enum { N = 24 };
	struct rmid_script_random r;
	uint32_t last = 0, full = 0;

	(void)state;
	rmid_script_random_init(&r);
	for (unsigned int world = 0; world < 3000; world++) {
		uint32_t n = 2 + rmid_script_rand(&r, N - 1), batch = 1 + rmid_script_rand(&r, n + 4);
		uint32_t change = rmid_script_rand(&r, 3), read[N + 1] = { 0 };
		bool used[N + 1] = { false }, stays[N + 1];

		last = rmid_script_rand(&r, n);
		for (uint32_t i = 1; i < n; i++)
			used[i] = rmid_script_rand(&r, 3);
		memcpy(stays, used, sizeof(stays));
		for (unsigned int tick = 0; tick < 40; tick++) {
			uint32_t taken[N + 1] = { 0 }, got = turn(used, n, &last, batch, change, taken, &r);

			assert_true(got <= batch && got < n);
			for (uint32_t i = 1; i < n; i++) {
				assert_true(taken[i] <= 1);
				read[i] += taken[i];
				stays[i] &= used[i];
			}
			/* There was room for all, and those that were in use all the time were read. */
			for (uint32_t i = 1; i < n && !change && batch >= n - 1; i++)
				assert_int_equal(taken[i], used[i]);
			full += batch >= n - 1 && !change;
		}
		for (uint32_t i = 1; i < n && !change; i++)
			assert_true(!stays[i] || read[i] >= 40 * batch / n || batch >= n - 1);
	}
	assert_true(full > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_script),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_metadata),
		cmocka_unit_test(test_rounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
