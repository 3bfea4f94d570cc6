// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_pipeline_rmid.c: to which process a slot assigns memory traffic if records of RMIDs come after
 * their slots were closed: to the right process, or to none until the records are there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/stream/pipeline.h"

#define MS NSEC_PER_MS
#define P  100
#define Q  200

/* Sums over all slots since it was cleared. */
static struct {
	uint64_t total[3]; /* P, Q, no process */
	unsigned int slots, with_rdt, knows;
} said;

static bool publish(void *ctx, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows, size_t n)
{
	(void)ctx;
	said.slots++;
	said.with_rdt += !!(slot->flags & TTMON_SLOT_HAS_RDT);
	said.knows += slot->known >> TTMON_FAMILY_RMID & 1;
	for (size_t i = 0; i < n; i++)
		said.total[rows[i].tgid == P ? 0 : rows[i].tgid == Q ? 1 : 2] += rows[i].mbm_total;
	return true;
}

static struct ttmon_pipeline *make(uint32_t window)
{
	const struct ttmon_pipeline_cfg cfg = { .nr_cpus = 2, .slots = { .window = window, .arena_bytes = 1 << 20 } };
	const struct ttmon_ev_rmid_info info = {
		.h = { .kind = TTMON_EV_RMID_INFO, .cpu = TTMON_CPU_DAEMON },
		.backend = TTMON_RMID_MODULE,
		.max_rmid = 511,
		.scale = 1,
		.width = 62,
		.flags = TTMON_RMID_HAS_TOTAL,
	};
	struct ttmon_pipeline *p = NULL;

	assert_int_equal(ttmon_pipeline_new(&cfg, publish, NULL, &p), 0);
	memset(&said, 0, sizeof(said));
	ttmon_pipeline_feed(p, &info, sizeof(info));
	return p;
}

/* Reports as the predecessor's module does: a free names no process. */
static void life(struct ttmon_pipeline *p, enum ttmon_rmid_op op, uint64_t ns, uint32_t rmid, uint32_t tgid)
{
	const struct ttmon_ev_rmid e = {
		.h = { .ts_ns = ns + 300, .kind = TTMON_EV_RMID, .cpu = 1, .tgid = tgid, .tid = tgid },
		.when_ns = ns,
		.rmid = rmid,
		.op = op,
	};

	ttmon_pipeline_feed(p, &e, sizeof(e));
}

static void reading(struct ttmon_pipeline *p, uint64_t ns, uint32_t rmid, uint64_t total)
{
	const struct ttmon_ev_rdt e = {
		.h = { .ts_ns = ns, .kind = TTMON_EV_RDT },
		.when_ns = ns,
		.rmid = rmid,
		.value = { [TTMON_RDT_TOTAL] = total },
		.state = { TTMON_RDT_UNSUPPORTED, TTMON_RDT_OK, TTMON_RDT_UNSUPPORTED },
	};

	ttmon_pipeline_feed(p, &e, sizeof(e));
}

static void behind(struct ttmon_pipeline *p, uint64_t ns)
{
	const struct ttmon_ev_cpu_open e = {
		.h = { .ts_ns = ns, .kind = TTMON_EV_CPU_OPEN, .cpu = TTMON_CPU_DAEMON },
		.of_cpu = 1,
		.state = TTMON_CPU_OPEN_BEHIND,
	};

	ttmon_pipeline_feed(p, &e, sizeof(e));
}

static void assert_said(uint64_t of_p, uint64_t of_q, uint64_t of_nobody)
{
	assert_int_equal(said.total[0], of_p);
	assert_int_equal(said.total[1], of_q);
	assert_int_equal(said.total[2], of_nobody);
	memset(&said, 0, sizeof(said));
}

/*
 * CPU 1's ring is stuck: the end of P and the begin of Q are in it, the readings come through another
 * ring.
 */
static void ring_that_is_not_waited_for(void **state)
{
	struct ttmon_pipeline *p = make(64);

	(void)state;
	life(p, TTMON_RMID_ALLOC, 10 * MS, 5, P);
	reading(p, 10 * MS, 5, 0);
	reading(p, 19 * MS, 5, 900);
	ttmon_pipeline_advance(p, 20 * MS);
	assert_true(said.knows && said.knows == said.slots);
	assert_said(900, 0, 0);
	reading(p, 30 * MS, 5, 1000);
	reading(p, 33 * MS, 5, 7000);
	behind(p, 34 * MS + 100000);
	ttmon_pipeline_advance(p, 34 * MS);
	assert_int_equal(said.slots, 14);
	assert_int_equal(said.with_rdt + said.knows, 0);
	assert_said(0, 0, 0);
	/* It moves again. */
	life(p, TTMON_RMID_FREE, 19 * MS, 5, 0);
	life(p, TTMON_RMID_ALLOC, 30 * MS, 5, Q);
	reading(p, 35 * MS, 5, 7500);
	ttmon_pipeline_advance(p, 36 * MS);
	assert_int_equal(said.slots, 2);
	assert_int_equal(said.knows, 2);
	assert_said(0, 6500, 100);
	ttmon_pipeline_free(p);
}

/* An event past the window closes slots whose events may not have come. */
static void slots_that_are_forced(void **state)
{
	struct ttmon_pipeline *p = make(8);

	(void)state;
	life(p, TTMON_RMID_ALLOC, 10 * MS, 5, P);
	reading(p, 10 * MS, 5, 0);
	reading(p, 11 * MS, 5, 100);
	ttmon_pipeline_advance(p, 12 * MS);
	assert_said(100, 0, 0);
	reading(p, 16 * MS, 5, 600);
	life(p, TTMON_RMID_ALLOC, 30 * MS, 6, Q); /* closes slots up to 22 ms and more */
	assert_true(said.slots >= 10);
	assert_said(0, 0, 0);
	life(p, TTMON_RMID_FREE, 14 * MS, 5, 0);
	ttmon_pipeline_advance(p, 31 * MS);
	assert_said(300, 0, 200);
	ttmon_pipeline_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_that_is_not_waited_for),
		cmocka_unit_test(slots_that_are_forced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
