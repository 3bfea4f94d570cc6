// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_verdict.c: the one rule (lib/verdict): against programs that are played call by call, and by
 * hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/verdict/verdict.h"

#define STEPS  60
#define BLOCKS 12
#define RUNS   3000

static uint64_t rng;

static uint64_t below(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

/* ---- a program, played ---- */

struct block {
	uint64_t from, to, pages, to_device, to_host; /* steps, from <= step < to; copies of all of it */
};

struct program {
	struct block v[BLOCKS];
	unsigned int n;
};

static void make_program(struct program *p)
{
	*p = (struct program){ .n = 1 + (unsigned int)below(BLOCKS) };
	for (unsigned int i = 0; i < p->n; i++) {
		struct block *b = &p->v[i];

		b->from = below(STEPS - 1);
		b->to = b->from + 1 + below(STEPS - b->from - 1);
		b->pages = 1 + below(200);
		b->to_device = below(3) ? below(12) : 0;
		b->to_host = below(3) ? 0 : below(12);
	}
}

enum how { PAGEABLE, EACH, REGION };

/*
 * The time in ns that the program takes, added up call by call: its copies, pins and unpins. A region
 * is pinned at once, and grows by the missing pages.
 */
static double play(const struct program *p, const struct ttmon_cost *c, enum how how)
{
	uint64_t bps = how == PAGEABLE ? c->pageable_bps : c->pinned_bps;
	uint64_t used_pages = 0, have_pages = 0;
	double ns = how == REGION ? (double)c->pin_call_ns + (double)c->unpin_call_ns : 0;

	for (uint64_t step = 0; step < STEPS; step++) {
		for (unsigned int i = 0; i < p->n; i++) {
			if (p->v[i].to != step)
				continue;
			used_pages -= p->v[i].pages;
			if (how == EACH)
				ns += (double)c->unpin_call_ns;
		}
		for (unsigned int i = 0; i < p->n; i++) {
			const struct block *b = &p->v[i];

			if (b->from != step)
				continue;
			used_pages += b->pages;
			if (how == EACH)
				ns += (double)c->pin_call_ns + (double)b->pages * 4096 * 1e9 / (double)c->pinning_bps;
			for (uint64_t k = 0; k < b->to_device + b->to_host; k++)
				ns += (double)b->pages * 4096 * 1e9 / (double)bps;
		}
		while (how == REGION && have_pages < used_pages) {
			ns += 4096 * 1e9 / (double)c->pinning_bps;
			have_pages++;
		}
	}
	/* Those that live to the end are unpinned there. */
	for (unsigned int i = 0; i < p->n; i++)
		if (how == EACH && p->v[i].to >= STEPS)
			ns += (double)c->unpin_call_ns;
	return ns;
}

static void group_of(const struct program *p, struct ttmon_memory *m)
{
	struct ttmon_edge e[2 * BLOCKS];

	*m = (struct ttmon_memory){ .allocs = p->n, .done = p->n, .ages_ns = 1000000000 };
	for (unsigned int i = 0; i < p->n; i++) {
		const struct block *b = &p->v[i];

		m->to_copies += b->to_device;
		m->from_copies += b->to_host;
		m->to_bytes += b->to_device * b->pages * 4096;
		m->from_bytes += b->to_host * b->pages * 4096;
		m->pages += b->pages;
		ttmon_edges_of(e + (size_t)2 * i, b->from, b->to, b->pages);
	}
	m->peak_pages = ttmon_edges_peak(e, (size_t)2 * p->n);
}

static void near(double a, double b, const char *what)
{
	if (a - b > 2 + 1e-9 * b || b - a > 2 + 1e-9 * b)
		fail_msg("%s: %f, not %f", what, a, b);
}

/* What the verdict says is what the faster of the programs does, and by as much. */
static void against_played_programs(void **state)
{
	static const uint64_t calls[] = { 0, 5000, 50000, 200000 };
	unsigned int seen[TTMON_ADVICE_MAX] = { 0 };

	(void)state;
	for (unsigned int run = 0; run < RUNS; run++) {
		struct ttmon_cost c = TTMON_COST_DEFAULT;
		struct ttmon_memory m;
		struct ttmon_said s;
		struct program p;
		double slow, each, pool;

		rng = (run + 1) * 0x9e3779b97f4a7c15ULL | 1;
		c.pin_call_ns = calls[run % 4];
		c.unpin_call_ns = calls[run / 4 % 4];
		make_program(&p);
		group_of(&p, &m);
		slow = play(&p, &c, PAGEABLE);
		each = play(&p, &c, EACH);
		pool = play(&p, &c, REGION);
		assert_true(pool <= each + 1);
		ttmon_verdict_of(&m, &c, &s);
		near((double)s.worth_ns, slow - pool, "worth");
		near((double)s.low_ns, slow - each, "low");
		assert_int_equal(s.gain_ns, s.worth_ns);
		if (slow - each > 2)
			assert_int_equal(s.advice, TTMON_ADVICE_PIN);
		else if (slow - each < -2 && slow - pool > 2)
			assert_int_equal(s.advice, TTMON_ADVICE_ALLOCATE);
		else if (slow - pool < -2)
			assert_int_equal(s.advice, TTMON_ADVICE_KEEP);
		seen[s.advice]++;
		m.pinned = true;
		ttmon_verdict_of(&m, &c, &s);
		if (slow - pool > 2)
			assert_int_equal(s.advice, TTMON_ADVICE_KEEP);
		if (slow - pool < -2) {
			assert_int_equal(s.advice, TTMON_ADVICE_UNPIN);
			near((double)s.gain_ns, pool - slow, "unpinned");
			near((double)s.high_ns, each - slow, "unpinned, at most");
		}
		assert_true(s.low_ns <= s.high_ns && s.gain_ns >= s.low_ns && s.gain_ns <= s.high_ns);
		seen[s.advice]++;
	}
	for (unsigned int a = TTMON_ADVICE_KEEP; a < TTMON_ADVICE_UNKNOWN; a++)
		assert_true(seen[a] > RUNS / 30);
}

/* ---- by hand ---- */

/* A byte saves half a ns, a page costs 1000 ns, a call nothing. */
static const struct ttmon_cost cost = { 1000000000, 2000000000, 4096000000, 0, 0 };

static struct ttmon_said judge(struct ttmon_memory m)
{
	struct ttmon_said s;

	ttmon_verdict_of(&m, &cost, &s);
	return s;
}

static void assert_said(struct ttmon_said s, unsigned int advice, unsigned int reason)
{
	if (s.advice != advice || s.reason != reason)
		fail_msg("%s (%s), not %s (%s)", ttmon_advice_name(s.advice), ttmon_reason_text(s.reason),
			 ttmon_advice_name(advice), ttmon_reason_text(reason));
}
#define SAID(s, advice, reason) assert_said(s, TTMON_ADVICE_##advice, TTMON_REASON_##reason)

static struct ttmon_memory two_pages(uint64_t to, uint64_t from)
{
	return (struct ttmon_memory){ .allocs = 1,
				      .done = 1,
				      .to_bytes = to,
				      .to_copies = to != 0,
				      .from_bytes = from,
				      .from_copies = from != 0,
				      .pages = 2,
				      .peak_pages = 2,
				      .ages_ns = 1000000000 };
}

static void both_ways_count(void **state)
{
	struct ttmon_memory pinned = two_pages(0, 4100);

	(void)state;
	/* 2050 ns saved, 2000 paid. */
	SAID(judge(two_pages(4100, 0)), PIN, PAYS);
	SAID(judge(two_pages(0, 4100)), PIN, PAYS);
	SAID(judge(two_pages(2050, 2050)), PIN, PAYS);
	SAID(judge(two_pages(2050, 0)), KEEP, TOO_LITTLE);
	pinned.pinned = true;
	SAID(judge(pinned), KEEP, PAID);
}

static void bounds(void **state)
{
	struct ttmon_memory m = two_pages(5000, 1000);
	struct ttmon_said s;

	(void)state;
	/* 6000 bytes save 3000 ns, two pages cost 2000. */
	s = judge(m);
	SAID(s, PIN, PAYS);
	assert_int_equal(s.gain_ns, 1000);
	m = two_pages(0, 6000);
	assert_int_equal(judge(m).gain_ns, 1000);
	m.pinned = true;
	SAID(judge(m), KEEP, PAID);
	m = two_pages(3000, 1000);
	SAID(judge(m), KEEP, TOO_LITTLE); /* even: nothing is gained */
	m.pinned = true;
	SAID(judge(m), UNPIN, COLD);
	m = two_pages(0, 0);
	SAID(judge(m), KEEP, NOT_MOVED);
	assert_int_equal(judge(m).gain_ns, -2000);
	m.pinned = true;
	s = judge(m);
	SAID(s, UNPIN, NEVER_COPIED);
	assert_int_equal(s.gain_ns, 2000);
	assert_int_equal(s.worth_ns, -2000);
	assert_true(s.confidence > 0.49 && s.confidence < 0.51);
}

/* What is not known is not said, and what was seen and is enough is. */
static void what_is_not_known(void **state)
{
	struct ttmon_memory m = two_pages(6000, 0);
	struct ttmon_said s;

	(void)state;
	m.unknown_kind = true;
	s = judge(m);
	SAID(s, UNKNOWN, KIND);
	assert_false(s.known);
	assert_int_equal(s.gain_ns, 0);
	assert_true(s.confidence == 0);
	m = two_pages(6000, 0);
	m.at_least = true;
	s = judge(m);
	SAID(s, PIN, PAYS);
	assert_true(s.at_least);
	m.pinned = true;
	SAID(judge(m), KEEP, PAID);
	m = two_pages(1000, 0);
	m.at_least = true;
	SAID(judge(m), UNKNOWN, UNSEEN);
	m.pinned = true;
	SAID(judge(m), UNKNOWN, UNSEEN);
	/* Pinned memory that kernels use is kept, whatever else is not known. */
	m.in_place = true;
	SAID(judge(m), KEEP, IN_PLACE);
	m.gpu = true;
	SAID(judge(m), KEEP, KERNELS);
	m.managed = true;
	SAID(judge(m), KEEP, MANAGED);
	/* Which memory is meant is not known: nothing is said of it, whatever it is. */
	m.unknown_site = true;
	SAID(judge(m), UNKNOWN, SITE);
	m = two_pages(0, 0);
	m.unknown_site = m.pinned = true;
	s = judge(m);
	SAID(s, UNKNOWN, SITE);
	assert_false(s.known || s.cold);
	m = two_pages(6000, 0);
	m.unknown_site = true;
	s = judge(m);
	SAID(s, UNKNOWN, SITE);
	assert_int_equal(s.gain_ns, 0);
}

static void young_memory_is_not_cold(void **state)
{
	struct ttmon_memory m = two_pages(0, 0);

	(void)state;
	m.pinned = true;
	m.done = 0;
	SAID(judge(m), KEEP, YOUNG);
	m = two_pages(6000, 0);
	m.pinned = true;
	m.done = 0;
	SAID(judge(m), KEEP, PAID);
}

static void words(void **state)
{
	struct ttmon_memory m = two_pages(6000, 0);
	char buf[64];
	struct ttmon_said s = judge(m);

	(void)state;
	assert_string_equal(ttmon_said_text(buf, sizeof(buf), &s), "saves 1.0 us");
	s = judge(two_pages(0, 0));
	assert_string_equal(ttmon_said_text(buf, sizeof(buf), &s), "would lose 2.0 us");
	m.unknown_kind = true;
	s = judge(m);
	assert_string_equal(ttmon_said_text(buf, sizeof(buf), &s), "-");
	assert_string_equal(ttmon_advice_name(TTMON_ADVICE_ALLOCATE), "allocate pinned");
	assert_null(ttmon_advice_name(TTMON_ADVICE_MAX));
	assert_null(ttmon_reason_text(TTMON_REASON_MAX));
	assert_true(ttmon_advice_pins(TTMON_ADVICE_ALLOCATE, false) && ttmon_advice_pins(TTMON_ADVICE_UNKNOWN, true));
	assert_false(ttmon_advice_pins(TTMON_ADVICE_UNPIN, true) || ttmon_advice_pins(TTMON_ADVICE_KEEP, false));
}

static void does_not_overflow(void **state)
{
	struct ttmon_memory m = { .allocs = UINT64_MAX,
				  .to_bytes = UINT64_MAX,
				  .from_bytes = UINT64_MAX,
				  .pages = UINT64_MAX,
				  .peak_pages = UINT64_MAX };
	struct ttmon_cost c = { 1, 2, 1, UINT64_MAX, UINT64_MAX };
	struct ttmon_said s;

	(void)state;
	ttmon_verdict_of(&m, &c, &s);
	assert_int_equal(s.advice, TTMON_ADVICE_KEEP);
	m.allocs = m.pages = 0;
	ttmon_verdict_of(&m, &c, &s);
	assert_int_equal(s.advice, TTMON_ADVICE_PIN);
}

/* ---- prices ---- */

static void prices_are_found_again(void **state)
{
	(void)state;
	for (uint64_t call = 0; call <= 200000; call += 40000) {
		struct ttmon_cost c = TTMON_COST_DEFAULT;
		struct ttmon_cost_seen seen = { 0 };

		/* The first makes CUDA's context; then 2 ns a byte. */
		ttmon_cost_see(&seen, 4096, 300000000, 0);
		for (uint64_t i = 0; i < 100; i++) {
			uint64_t size = i % 2 ? 4096 : 4096 * 4096;

			ttmon_cost_see(&seen, size, call + 2 * size, call / 2 + 1);
		}
		assert_int_equal(ttmon_cost_measured(&seen, &c), TTMON_COST_RATE | TTMON_COST_PINS | TTMON_COST_UNPINS);
		assert_in_range(c.pin_call_ns, call * 98 / 100, call * 102 / 100 + 50);
		assert_in_range(c.pinning_bps, 495000000, 505000000);
		assert_int_equal(c.unpin_call_ns, call / 2 + 1);
		assert_int_equal(c.pageable_bps, 6000000000);
	}
}

/* Some threads wait 40 ms for a CPU in the middle of a pin: that is no price of pinning. */
static void prices_of_a_busy_host(void **state)
{
	struct ttmon_cost c = TTMON_COST_DEFAULT;
	struct ttmon_cost_seen seen = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 30; i++) {
		uint64_t waits = i % 3 ? 0 : 40000000;

		ttmon_cost_see(&seen, 3 << 20, (3 << 20) + 1000 + waits, 0);
		ttmon_cost_see(&seen, 4096, 4096 + 1000 + waits, 900 + waits);
	}
	assert_int_equal(ttmon_cost_measured(&seen, &c), TTMON_COST_RATE | TTMON_COST_PINS | TTMON_COST_UNPINS);
	assert_in_range(c.pin_call_ns, 990, 1010);
	assert_in_range(c.pinning_bps, 999000000, 1001000000);
	assert_int_equal(c.unpin_call_ns, 900);
}

static void prices_that_say_nothing(void **state)
{
	const struct ttmon_cost was = TTMON_COST_DEFAULT;
	struct ttmon_cost_seen seen = { 0 };
	struct ttmon_cost c = was;

	(void)state;
	assert_int_equal(ttmon_cost_measured(&seen, &c), 0);
	ttmon_cost_see(&seen, 4096, 1000, 1000);
	assert_int_equal(ttmon_cost_measured(&seen, &c), 0);
	/* A library that only pretends to pin. */
	ttmon_cost_see(&seen, 1ULL << 30, 1000, 0);
	assert_int_equal(ttmon_cost_measured(&seen, &c), TTMON_COST_UNREAL);
	assert_memory_equal(&c, &was, sizeof(c));
	/* A rate, and too few small ones for the calls. */
	seen = (struct ttmon_cost_seen){ 0 };
	ttmon_cost_see(&seen, 15 << 20, 10000000, 0);
	assert_int_equal(ttmon_cost_measured(&seen, &c), TTMON_COST_RATE);
	assert_int_equal(c.pin_call_ns, was.pin_call_ns);
	assert_in_range(c.pinning_bps, 1572000000, 1573000000);
	assert_int_equal(ttmon_cost_ns(6000000000, 6000000000), 1000000000);
	assert_int_equal(ttmon_cost_ns(1, 3), 333333333);
	assert_int_equal(ttmon_cost_ns(UINT64_MAX, 1), INT64_MAX / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_played_programs),
		cmocka_unit_test(both_ways_count),
		cmocka_unit_test(bounds),
		cmocka_unit_test(what_is_not_known),
		cmocka_unit_test(young_memory_is_not_cold),
		cmocka_unit_test(words),
		cmocka_unit_test(does_not_overflow),
		cmocka_unit_test(prices_are_found_again),
		cmocka_unit_test(prices_of_a_busy_host),
		cmocka_unit_test(prices_that_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
