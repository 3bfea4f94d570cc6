// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_cpustate.c: the unfinished tables of CPUs, read while they are written: no table is torn, a
 * state that is being written all the time is reported as unreadable, and everything is reported once.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "daemon/io/bpf/cpustate.c"

#define CPUS 3
#define MS   NSEC_PER_MS

static struct ttmon_cpu_state states[CPUS];
static struct ttmon_cpustate *cs;

static struct {
	size_t n;
	uint32_t cpu, state;
	struct ttmon_cpu_table t;
	struct ttmon_cpu_row rows[TTMON_CPU_ROWS];
	size_t size;
	uint64_t ts_ns;
	uint32_t header_cpu, tgid;
} got;

static int set_up(void **state)
{
	(void)state;
	memset(states, 0, sizeof(states));
	memset(&got, 0, sizeof(got));
	return ttmon_cpustate_new(states, sizeof(*states), CPUS, &cs);
}

static int tear_down(void **state)
{
	(void)state;
	ttmon_cpustate_free(cs);
	return 0;
}

static void on_rec(void *ctx, const void *rec, size_t size)
{
	const struct ttmon_ev_cpu_open *e = rec;

	(void)ctx;
	assert_int_equal(e->h.kind, TTMON_EV_CPU_OPEN);
	assert_true(size >= sizeof(*e) && size <= sizeof(*e) + sizeof(got.rows));
	got.n++;
	got.cpu = e->of_cpu;
	got.state = e->state;
	got.t = e->t;
	got.size = size;
	got.ts_ns = e->h.ts_ns;
	got.header_cpu = e->h.cpu;
	got.tgid = e->h.tgid;
	memcpy(got.rows, e + 1, size - sizeof(*e));
}

/* One round of the hot thread. Returns the number of facts that it made. */
static size_t round_of(uint64_t upto_ns, bool expect_all, bool gave_up)
{
	size_t before = got.n;

	assert_true(ttmon_cpustate_read(cs, upto_ns) == expect_all);
	ttmon_cpustate_tell(cs, upto_ns + 7, gave_up, on_rec, NULL);
	return got.n - before;
}

/* A switch as the kernel program does it; between the two counts only what this test needs. */
static void put(uint32_t cpu, uint64_t begin, uint64_t last, uint32_t tgid, uint16_t rows)
{
	struct ttmon_cpu_state *st = &states[cpu];

	st->seq += 2;
	st->switches++;
	st->slot_end_ns = (begin / MS + 1) * MS;
	st->rec.t = (struct ttmon_cpu_table){
		.begin_ns = begin,
		.last_ns = last,
		.to_ns = 99, /* of the record before: the reader ignores it */
		.who = { .start_ns = tgid * 10, .tgid = tgid, .flags = TTMON_WHO_SCALED },
		.ctr = { 5, 6, 7, 8 },
		.nr_rows = rows,
		.row_size = TTMON_CPU_ROW_FULL,
		.switched = 1,
	};
	for (uint16_t i = 0; i < rows; i++) {
		struct ttmon_cpu_row r = { .who.tgid = 100u + i,
					   .ns = (uint32_t)((last - begin) / rows),
					   .ctr = { i } };

		memcpy(st->rows + i * sizeof(r), &r, sizeof(r));
	}
}

static void test_a_cpu_not_seen_tells_nothing(void **state)
{
	(void)state;
	assert_int_equal(round_of(100 * MS, true, false), 0);
	/* It was seen once, and reset while it was offline. */
	put(1, 5 * MS + 10, 5 * MS + 20, 4, 1);
	states[1].rec.t.begin_ns = 0;
	assert_int_equal(round_of(100 * MS, true, false), 0);
}

static void test_it_is_told_when_its_slot_is_to_close(void **state)
{
	(void)state;
	put(1, 5 * MS + 10, 5 * MS + 210, 4, 2);
	assert_int_equal(round_of(6 * MS - 1, true, false), 0);
	assert_int_equal(round_of(6 * MS, true, false), 1);
	assert_int_equal(got.cpu, 1);
	assert_int_equal(got.state, TTMON_CPU_OPEN_KNOWN);
	assert_int_equal(got.header_cpu, TTMON_CPU_DAEMON);
	assert_int_equal(got.tgid, 4);
	assert_int_equal(got.ts_ns, 6 * MS + 7);
	assert_int_equal(got.size, sizeof(struct ttmon_ev_cpu_open) + 2 * TTMON_CPU_ROW_FULL);
	assert_int_equal(got.t.begin_ns, 5 * MS + 10);
	assert_int_equal(got.t.last_ns, 5 * MS + 210);
	assert_int_equal(got.t.nr_rows, 2);
	assert_int_equal(got.t.row_size, TTMON_CPU_ROW_FULL);
	assert_int_equal(got.rows[1].who.tgid, 101);
	assert_int_equal(got.rows[1].ns, 100);
	assert_int_equal(got.rows[1].ctr[0], 1);
	/* It still runs. */
	assert_int_equal(got.t.to_ns, 0);
	assert_int_equal(got.t.who.flags, 0);
	assert_int_equal(got.t.switched, 0);
	assert_int_equal(got.t.ctr[0] | got.t.ctr[1] | got.t.ctr[2] | got.t.ctr[3], 0);
}

static void test_it_is_told_once(void **state)
{
	(void)state;
	put(0, 5 * MS, 5 * MS + 8, 4, 1);
	assert_int_equal(round_of(6 * MS, true, false), 1);
	for (uint64_t ms = 7; ms < 30; ms++)
		assert_int_equal(round_of(ms * MS, true, false), 0);
	/* It moves on in a slot that stays open; then that slot is to close. */
	put(0, 31 * MS, 31 * MS + 3, 9, 1);
	assert_int_equal(round_of(31 * MS, true, false), 0);
	assert_int_equal(round_of(33 * MS, true, false), 1);
	assert_int_equal(got.tgid, 9);
	/* The same slot continues: what was reported is no longer complete. */
	put(0, 31 * MS, 31 * MS + 5, 10, 1);
	assert_int_equal(round_of(33 * MS, true, false), 1);
	assert_int_equal(got.tgid, 10);
	assert_int_equal(round_of(34 * MS, true, false), 0);
}

static void test_what_is_being_written_holds_the_watermark(void **state)
{
	struct ttmon_cpustate_sums sums;

	(void)state;
	put(0, 5 * MS, 5 * MS + 8, 4, 1);
	put(2, 5 * MS, 5 * MS + 8, 5, 1);
	assert_int_equal(round_of(6 * MS, true, false), 2);
	states[2].seq++;
	assert_int_equal(round_of(7 * MS, false, false), 0);
	ttmon_cpustate_get_sums(cs, &sums);
	assert_true(sums.retries > 10);
	/* This CPU could not be read: the others continue without it. */
	assert_int_equal(round_of(8 * MS, false, true), 1);
	assert_int_equal(got.cpu, 2);
	assert_int_equal(got.state, TTMON_CPU_OPEN_UNKNOWN);
	assert_int_equal(got.size, sizeof(struct ttmon_ev_cpu_open));
	assert_int_equal(got.t.begin_ns | got.t.nr_rows | got.t.who.tgid, 0);
	/* It can be read again with its unfinished table, though that was reported before. */
	states[2].seq--;
	assert_int_equal(round_of(8 * MS, true, false), 1);
	assert_int_equal(got.cpu, 2);
	assert_int_equal(got.state, TTMON_CPU_OPEN_KNOWN);
}

static void test_a_lost_table_ends_what_was_told(void **state)
{
	(void)state;
	put(0, 5 * MS, 5 * MS + 8, 4, 1);
	assert_int_equal(round_of(6 * MS, true, false), 1);
	/* A table could not be sent, and the CPU is now in a slot that stays open. */
	put(0, 9 * MS, 9 * MS + 5, 9, 1);
	states[0].drops = 1;
	assert_int_equal(round_of(9 * MS, true, false), 1);
	assert_int_equal(got.state, TTMON_CPU_OPEN_UNKNOWN);
	assert_int_equal(round_of(9 * MS, true, false), 0);
	assert_int_equal(round_of(10 * MS, true, false), 1);
	assert_int_equal(got.state, TTMON_CPU_OPEN_KNOWN);
	/*
	 * Another table could not be sent, and the CPU is in a slot that is to close: its state has all the
	 * information.
	 */
	put(0, 20 * MS, 20 * MS + 5, 9, 1);
	states[0].drops = 2;
	assert_int_equal(round_of(21 * MS, true, false), 1);
	assert_int_equal(got.state, TTMON_CPU_OPEN_KNOWN);
	assert_int_equal(round_of(22 * MS, true, false), 0);
	/*
	 * A table is dropped while the state is read: nothing may be reported about it before it is read
	 * again.
	 */
	assert_true(ttmon_cpustate_read(cs, 22 * MS));
	put(0, 30 * MS, 30 * MS + 5, 9, 1);
	states[0].drops = 3;
	ttmon_cpustate_tell(cs, 22 * MS, false, on_rec, NULL);
	assert_int_equal(round_of(30 * MS, true, false), 1);
	assert_int_equal(got.state, TTMON_CPU_OPEN_UNKNOWN);
}

static void test_cpus_that_go_are_offline_once(void **state)
{
	uint64_t bits = 7;

	(void)state;
	put(0, 5 * MS, 5 * MS + 8, 4, 1);
	put(1, 5 * MS, 5 * MS + 8, 4, 1);
	assert_int_equal(round_of(6 * MS, true, false), 2);
	ttmon_cpustate_online(cs, &bits);
	assert_int_equal(round_of(7 * MS, true, false), 0);
	/* One of the two missing CPUs was never seen. */
	bits = 1;
	ttmon_cpustate_online(cs, &bits);
	assert_int_equal(round_of(8 * MS, true, false), 1);
	assert_int_equal(got.state, TTMON_CPU_OPEN_OFFLINE);
	assert_int_equal(got.cpu, 1);
	assert_int_equal(round_of(9 * MS, true, false), 0);
	ttmon_cpustate_online(cs, &bits);
	assert_int_equal(round_of(10 * MS, true, false), 0);
	/* It is online again, and the daemon does not know this yet. */
	put(1, 11 * MS, 11 * MS + 8, 6, 1);
	assert_int_equal(round_of(12 * MS, true, false), 1);
	assert_int_equal(got.state, TTMON_CPU_OPEN_KNOWN);
	put(1, 13 * MS, 13 * MS + 8, 6, 1);
	assert_int_equal(round_of(14 * MS, true, false), 1);
	assert_int_equal(got.state, TTMON_CPU_OPEN_KNOWN);
	/* It made one more switch before it went offline. */
	ttmon_cpustate_online(cs, &bits);
	assert_int_equal(round_of(15 * MS, true, false), 1);
	assert_int_equal(got.state, TTMON_CPU_OPEN_OFFLINE);
	assert_int_equal(got.cpu, 1);
}

static void test_the_last_word_of_bits(void **state)
{
	static struct ttmon_cpu_state many[70];
	struct ttmon_cpustate *s;
	uint64_t bits[2] = { ~0ULL, ~0ULL & ~(1ULL << 5) };

	(void)state;
	assert_int_equal(ttmon_cpustate_new(many, sizeof(*many), 70, &s), 0);
	many[69].seq = 2;
	many[69].slot_end_ns = MS;
	many[69].rec.t.begin_ns = 1;
	ttmon_cpustate_online(s, bits);
	assert_true(ttmon_cpustate_read(s, 2 * MS));
	ttmon_cpustate_tell(s, 2 * MS, false, on_rec, NULL);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.cpu, 69);
	assert_int_equal(got.state, TTMON_CPU_OPEN_OFFLINE);
	ttmon_cpustate_free(s);
}

static void test_counts_that_make_no_sense_stay_inside(void **state)
{
	(void)state;
	put(0, 5 * MS, 5 * MS + 8, 4, 1);
	states[0].rec.t.nr_rows = 65535;
	states[0].rec.t.row_size = 255;
	assert_int_equal(round_of(6 * MS, true, false), 1);
	assert_int_equal(got.size, sizeof(struct ttmon_ev_cpu_open) + sizeof(got.rows));
	assert_int_equal(got.t.nr_rows, TTMON_CPU_ROWS);
}

static void test_sums(void **state)
{
	struct ttmon_cpustate_sums sums;

	(void)state;
	put(0, 5 * MS, 5 * MS + 8, 4, 1);
	put(2, 5 * MS, 5 * MS + 8, 4, 1);
	put(2, 5 * MS, 5 * MS + 9, 4, 1);
	states[0].ticks = 2;
	states[1].backwards = 1;
	states[2].read_fails = 4;
	assert_int_equal(round_of(6 * MS, true, false), 2);
	ttmon_cpustate_get_sums(cs, &sums);
	assert_int_equal(sums.switches, 3);
	assert_int_equal(sums.ticks, 2);
	assert_int_equal(sums.backwards, 1);
	assert_int_equal(sums.read_fails, 4);
	assert_int_equal(sums.seen, 2);
	assert_int_equal(sums.told, 2);
	assert_int_equal(sums.retries, 0);
}

static void test_a_stride_that_is_too_small(void **state)
{
	struct ttmon_cpustate *s = NULL;

	(void)state;
	assert_int_equal(ttmon_cpustate_new(states, sizeof(*states) - 8, CPUS, &s), -EINVAL);
	assert_null(s);
}

/* ---- with a running writer ---- */

static uint64_t done;

static void put_word(void *to, uint64_t w)
{
	__atomic_store_n((uint64_t *)to, w, __ATOMIC_RELAXED);
}

/* Every word of state number k is computed from k. */
static void *writer(void *ctx)
{
	struct ttmon_cpu_state *st = &states[0];

	(void)ctx;
	for (uint64_t k = 1; !__atomic_load_n(&done, __ATOMIC_RELAXED); k++) {
		uint16_t rows = (uint16_t)(k % (TTMON_CPU_ROWS + 1));
		struct ttmon_cpu_table t = {
			.begin_ns = k,
			.last_ns = k,
			.who.start_ns = k,
			.nr_rows = rows,
			.row_size = TTMON_CPU_ROW_FULL,
		};

		put_word(&st->seq, 2 * k - 1);
		__atomic_thread_fence(__ATOMIC_RELEASE);
		put_word(&st->slot_end_ns, k);
		for (size_t i = 0; i < sizeof(t); i += 8)
			put_word((uint8_t *)&st->rec.t + i, *(uint64_t *)((uint8_t *)&t + i));
		for (size_t i = 0; i < rows * sizeof(struct ttmon_cpu_row); i += 8)
			put_word(st->rows + i, k);
		__atomic_store_n(&st->seq, 2 * k, __ATOMIC_RELEASE);
		for (unsigned int i = 0; i < k % 64 * 32; i++)
			__asm__ volatile("");
	}
	return NULL;
}

static void test_no_torn_table(void **state)
{
	size_t whole = 0, torn = 0;
	uint64_t last = 0;
	pthread_t thread;

	(void)state;
	done = 0;
	assert_int_equal(pthread_create(&thread, NULL, writer, NULL), 0);
	for (size_t i = 0; i < 20000000 && whole < 500; i++) {
		size_t before = got.n;

		torn += !ttmon_cpustate_read(cs, INT64_MAX);
		ttmon_cpustate_tell(cs, 1, false, on_rec, NULL);
		/* The writer may be waiting for this CPU. */
		if (got.n == before) {
			sched_yield();
			continue;
		}
		whole++;
		if (got.t.begin_ns <= last || got.t.last_ns != got.t.begin_ns || got.t.who.start_ns != got.t.begin_ns ||
		    got.t.nr_rows != got.t.begin_ns % (TTMON_CPU_ROWS + 1))
			fail_msg("torn table");
		last = got.t.begin_ns;
		for (uint16_t r = 0; r < got.t.nr_rows; r++)
			if (got.rows[r].who.start_ns != last || got.rows[r].ctr[TTMON_CTR_MAX - 1] != last)
				fail_msg("torn row");
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(whole > 100);
	print_message("%zu read, %zu not\n", whole, torn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_cpu_not_seen_tells_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_it_is_told_when_its_slot_is_to_close, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_it_is_told_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_being_written_holds_the_watermark, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_lost_table_ends_what_was_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cpus_that_go_are_offline_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_last_word_of_bits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_counts_that_make_no_sense_stay_inside, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sums, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_stride_that_is_too_small, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_torn_table, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
