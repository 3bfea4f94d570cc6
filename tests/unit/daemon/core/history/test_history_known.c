// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_history_known.c: the kind of memory when not everything was seen: kinds are right or unknown,
 * never wrong. Random programs are compared with a plain model of pages that saw everything.
 */
#include "tests/unit/feed/history_feed.h"

#define T   10
#define DEV 0x7f0000000000ULL
#define A   0x10000000ULL
#define B   0x20000000ULL
#define MIB (1ULL << 20)

static struct ttmon_history *h;
static struct ttmon_know *know;

static int setup(void **state)
{
	(void)state;
	assert_int_equal(ttmon_know_new(&know), 0);
	h = feed_new((struct ttmon_history_cfg){ .keep_all = true, .know = know });
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ttmon_history_free(h);
	ttmon_know_free(know);
	return 0;
}

static void blind(uint64_t mapped, uint64_t active)
{
	struct ttmon_ev_blind ev = {
		.h = feed_head(TTMON_EV_BLIND, T, active), .object = 1, .mapped_ns = mapped, .active_ns = active
	};

	ttmon_know_on_blind(know, &ev);
	ev.h.cpu = TTMON_CPU_DAEMON;
	APPLY(h, ev);
}

static void family(enum ttmon_family_state to, uint64_t ts)
{
	struct ttmon_ev_family ev = { .h = feed_head(TTMON_EV_FAMILY, 0, ts),
				      .family = TTMON_FAMILY_ALLOC,
				      .state = to };

	ttmon_know_on_family(know, &ev);
}

static const struct ttmon_proc *proc(void)
{
	return ttmon_history_proc(h, 0);
}

static struct ttmon_xfer moved(unsigned int mem)
{
	return proc()->xfer[TTMON_RDIR_H2D][mem];
}

/* The counters as they are shown: they must not fall. */
static struct ttmon_xfer shown(unsigned int mem)
{
	return ttmon_xfer_settled(proc()->xfer, proc()->unsettled, proc()->proven, TTMON_RDIR_H2D, mem);
}

/* The live or ended record of this method that holds addr and has copies. */
static const struct ttmon_alloc *with_copies(unsigned int method, uint64_t addr)
{
	for (uint64_t i = 0; i < ttmon_history_allocs(h); i++) {
		const struct ttmon_alloc *a = ttmon_history_alloc(h, i);

		if (a && a->method == method && a->addr <= addr && addr < a->addr + a->size &&
		    a->traffic->copies[TTMON_RDIR_H2D])
			return a;
	}
	return NULL;
}

static void memory_older_than_the_probes(void **state)
{
	const struct ttmon_alloc *a;

	(void)state;
	feed_proc(h, T, 1000, 10, 1, TTMON_PROC_SEEN);
	blind(0, 900);
	feed_map(h, T, 1001, A, A + MIB, "/dev/zero (deleted)");
	feed_maps_done(h, T, 1001, 1002, 1);
	feed_copy(h, T, 1100, TTMON_DIR_H2D, DEV, A + PAGE, 4 * PAGE);
	feed_copy(h, T, 1110, TTMON_DIR_H2D, DEV, A + PAGE, 4 * PAGE);
	assert_int_equal(moved(TTMON_MEM_UNKNOWN).copies, 2);
	assert_int_equal(moved(TTMON_MEM_PAGEABLE).copies, 0);
	assert_int_equal(proc()->unmatched, 0);
	a = with_copies(TTMON_METHOD_MMAP, A + PAGE);
	assert_true(a->states & TTMON_ST_UNSEEN);
	assert_int_equal(a->size, 4 * PAGE);
	/* Its free proves the kind. */
	feed_free(h, T, 1200, 1210, TTMON_METHOD_HOST_ALLOC, A + PAGE);
	assert_int_equal(proc()->unknown_frees, 1);
	assert_int_equal(moved(TTMON_MEM_UNKNOWN).copies, 0);
	assert_int_equal(moved(TTMON_MEM_PINNED).copies, 2);
	assert_int_equal(moved(TTMON_MEM_PINNED).bytes, 8 * PAGE);
	assert_int_equal(shown(TTMON_MEM_UNKNOWN).copies, 2);
	assert_int_equal(shown(TTMON_MEM_PINNED).copies, 0);
	assert_int_equal(proc()->pinned_peak_pages, 4);
	assert_int_equal(proc()->pinned_pages, 0);
	assert_null(with_copies(TTMON_METHOD_MMAP, A + PAGE));
	a = with_copies(TTMON_METHOD_HOST_ALLOC, A + PAGE);
	assert_int_equal(a->alloc_ns, 900);
	assert_int_equal(a->free_ns, 1200);
	assert_true(a->bits & TTMON_AL_OLD);
	assert_int_equal(a->size, 4 * PAGE);
	assert_int_equal(a->traffic->copies[TTMON_RDIR_H2D], 2);
}

static void memory_younger_than_the_probes(void **state)
{
	(void)state;
	feed_proc(h, T, 1000, 10, 1, TTMON_PROC_SEEN);
	blind(0, 900);
	feed_map(h, T, 1001, A, A + MIB, "");
	feed_maps_done(h, T, 1001, 1002, 1);
	/* Proved by its call. */
	feed_mmap(h, T, 1050, B, MIB);
	feed_copy(h, T, 1100, TTMON_DIR_H2D, DEV, B, PAGE);
	assert_int_equal(moved(TTMON_MEM_PAGEABLE).copies, 1);
	/* Proved by a list that did not contain it. */
	feed_copy(h, T, 1200, TTMON_DIR_H2D, DEV, B + 4 * MIB, PAGE);
	assert_int_equal(moved(TTMON_MEM_UNKNOWN).copies, 1);
	feed_map(h, T, 1300, A, A + MIB, "");
	feed_map(h, T, 1300, B, B + MIB, "");
	feed_map(h, T, 1300, B + 4 * MIB, B + 5 * MIB, "");
	feed_maps_done(h, T, 1300, 1301, 3);
	assert_int_equal(moved(TTMON_MEM_PAGEABLE).copies, 2);
	assert_int_equal(moved(TTMON_MEM_UNKNOWN).copies, 0);
	assert_int_equal(proc()->unmatched, 0);
}

/* The reverse: memory that was copied before the first list came existed before the list. */
static void copied_before_the_first_list(void **state)
{
	(void)state;
	feed_proc(h, T, 1000, 10, 1, TTMON_PROC_SEEN);
	blind(0, 900);
	feed_copy(h, T, 1001, TTMON_DIR_H2D, DEV, A, PAGE);
	assert_int_equal(proc()->unmatched, 1);
	feed_map(h, T, 1002, A, A + MIB, "");
	feed_maps_done(h, T, 1002, 1003, 1);
	assert_int_equal(moved(TTMON_MEM_UNKNOWN).copies, 1);
	assert_int_equal(moved(TTMON_MEM_PAGEABLE).copies, 0);
	assert_int_equal(proc()->unmatched, 0);
	feed_free(h, T, 1100, 1110, TTMON_METHOD_REGISTERED, A);
	assert_int_equal(moved(TTMON_MEM_PINNED).copies, 1);
}

/*
 * The kernel merges the memory of two calls, and one of them is unmapped: this proves nothing about
 * the other.
 */
static void neighbours_in_one_mapping(void **state)
{
	const struct ttmon_alloc *a, *b;

	(void)state;
	feed_proc(h, T, 1000, 10, 1, TTMON_PROC_SEEN);
	feed_map(h, T, 1001, A, A + 16 * MIB + 3 * PAGE, "");
	feed_maps_done(h, T, 1001, 1002, 1);
	for (uint64_t i = 0; i < 174; i++)
		feed_copy(h, T, 1100 + i, TTMON_DIR_H2D, DEV, A, 16 * MIB);
	feed_copy(h, T, 1500, TTMON_DIR_H2D, DEV, A + 16 * MIB, 12);
	a = with_copies(TTMON_METHOD_MMAP, A);
	b = with_copies(TTMON_METHOD_MMAP, A + 16 * MIB);
	assert_ptr_not_equal(a, b);
	assert_int_equal(a->size, 16 * MIB);
	feed_munmap(h, T, 2000, A, 16 * MIB);
	assert_int_equal(a->end, TTMON_END_FREE);
	assert_int_equal(a->free_ns, 2000);
	assert_int_equal(b->free_ns, 0);
	assert_int_equal(b->traffic->copies[TTMON_RDIR_H2D], 1);
	assert_int_equal(ttmon_history_find(h, T, A + 16 * MIB)->size, 3 * PAGE);
	assert_int_equal(ttmon_history_find(h, T, A + 16 * MIB)->traffic->copies[TTMON_RDIR_H2D], 0);
}

/* The driver unmaps freed memory before the free returns: this shows its size. */
static void size_by_the_unmapping(void **state)
{
	const struct ttmon_alloc *a;

	(void)state;
	feed_proc(h, T, 1000, 10, 1, TTMON_PROC_SEEN);
	blind(0, 900);
	feed_map(h, T, 1001, A, A + MIB, "");
	feed_maps_done(h, T, 1001, 1002, 1);
	feed_copy(h, T, 1100, TTMON_DIR_H2D, DEV, A, PAGE);
	feed_munmap(h, T, 1205, A, 64 * PAGE);
	feed_free(h, T, 1200, 1210, TTMON_METHOD_HOST_ALLOC, A);
	a = with_copies(TTMON_METHOD_HOST_ALLOC, A);
	assert_int_equal(a->size, 64 * PAGE);
	assert_int_equal(moved(TTMON_MEM_PINNED).copies, 1);
	assert_int_equal(proc()->pinned_peak_pages, 64);
	assert_int_equal(proc()->pinned_pages, 0);
	assert_int_equal(proc()->live, 0);
	/* A mapping that was unmapped without a free proves nothing. */
	feed_copy(h, T, 1300, TTMON_DIR_H2D, DEV, A + 512 * PAGE, PAGE);
	feed_munmap(h, T, 1310, A + 512 * PAGE, PAGE);
	feed_free(h, T, 1400, 1410, TTMON_METHOD_HOST_ALLOC, A + 512 * PAGE);
	assert_int_equal(moved(TTMON_MEM_PINNED).copies, 1);
	assert_int_equal(moved(TTMON_MEM_UNKNOWN).copies, 1);
}

static void a_family_that_was_off(void **state)
{
	(void)state;
	feed_proc(h, T, 1000, 10, 1, TTMON_PROC_FORK);
	feed_mmap(h, T, 1050, A, MIB);
	feed_copy(h, T, 1100, TTMON_DIR_H2D, DEV, A, PAGE);
	assert_int_equal(moved(TTMON_MEM_PAGEABLE).copies, 1);
	family(TTMON_FAMILY_OFF, 1200);
	feed_mmap(h, T, 1250, B, MIB);
	/* This event is earlier than that, since events wait for their slot. */
	feed_copy(h, T, 1199, TTMON_DIR_H2D, DEV, A, PAGE);
	assert_int_equal(moved(TTMON_MEM_PAGEABLE).copies, 2);
	feed_copy(h, T, 1260, TTMON_DIR_H2D, DEV, A, PAGE);
	feed_copy(h, T, 1270, TTMON_DIR_H2D, DEV, B, PAGE);
	assert_int_equal(moved(TTMON_MEM_PAGEABLE).copies, 2);
	assert_int_equal(moved(TTMON_MEM_UNKNOWN).copies, 2);
	family(TTMON_FAMILY_ON, 1300);
	feed_copy(h, T, 1310, TTMON_DIR_H2D, DEV, B, PAGE);
	assert_int_equal(moved(TTMON_MEM_UNKNOWN).copies, 3);
	feed_mmap(h, T, 1320, B + 4 * MIB, MIB);
	feed_copy(h, T, 1330, TTMON_DIR_H2D, DEV, B + 4 * MIB, PAGE);
	assert_int_equal(moved(TTMON_MEM_PAGEABLE).copies, 3);
	feed_free(h, T, 1400, 1410, TTMON_METHOD_REGISTERED, B);
	assert_int_equal(moved(TTMON_MEM_UNKNOWN).copies, 1);
	assert_int_equal(moved(TTMON_MEM_PINNED).copies, 2);
}

static void mapped_from_the_drivers_device(void **state)
{
	(void)state;
	feed_proc(h, T, 1000, 10, 1, TTMON_PROC_SEEN);
	blind(0, 900);
	feed_map(h, T, 1001, A, A + MIB, "/dev/nvidiactl");
	feed_map(h, T, 1001, B, B + MIB, "/dev/nvidia-uvm");
	feed_maps_done(h, T, 1001, 1002, 2);
	feed_copy(h, T, 1100, TTMON_DIR_H2D, DEV, A, PAGE);
	feed_copy(h, T, 1101, TTMON_DIR_H2D, DEV, B, 2 * PAGE);
	assert_int_equal(moved(TTMON_MEM_PINNED).bytes, PAGE);
	assert_int_equal(moved(TTMON_MEM_MANAGED).bytes, 2 * PAGE);
}

/* ---- against a model that saw everything ---- */

#define PAGES 96u

enum kind { NONE, ORDINARY, PINNED, REGISTERED };

struct page {
	uint8_t kind;
	uint16_t call; /* number of the mmap call that made it */
};

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

static struct page pages[PAGES];
static uint64_t now;
static bool traced; /* mmap calls are traced */
static bool seen;   /* calls of CUDA are seen */

static uint64_t addr_of(uint32_t page)
{
	return A + page * PAGE;
}

/* n pages of this kind from here on were made by one call. */
static bool is_run(uint32_t from, uint32_t n, enum kind kind)
{
	if (from + n > PAGES)
		return false;
	for (uint32_t i = from; i < from + n; i++)
		if (pages[i].kind != kind || (kind != NONE && pages[i].call != pages[from].call))
			return false;
	return true;
}

static void set(uint32_t from, uint32_t n, enum kind kind, uint16_t call)
{
	for (uint32_t i = from; i < from + n; i++)
		pages[i] = (struct page){ (uint8_t)kind, call };
}

/* A list as in /proc/PID/maps: adjacent mappings are one. */
static void list(void)
{
	uint32_t n = 0;

	now++;
	for (uint32_t i = 0; i < PAGES;) {
		uint32_t end = i;

		while (end < PAGES && pages[end].kind != NONE)
			end++;
		if (end > i) {
			feed_map(h, T, now, addr_of(i), addr_of(end), "");
			n++;
		}
		i = end + (end == i);
	}
	feed_maps_done(h, T, now, now + 1, n);
	now++;
}

static void act(uint16_t call)
{
	uint32_t from = below(PAGES), n = 1 + below(6);

	now += 10;
	switch (below(8)) {
	case 0:
	case 1:
		if (!is_run(from, n, NONE))
			return;
		set(from, n, ORDINARY, call);
		if (traced)
			feed_mmap(h, T, now, addr_of(from), n * PAGE);
		return;
	case 2:
		if (!is_run(from, n, NONE))
			return;
		set(from, n, PINNED, call);
		if (traced)
			feed_mmap(h, T, now, addr_of(from), n * PAGE);
		if (seen)
			feed_alloc(h, T, now + 5, TTMON_METHOD_HOST_ALLOC, addr_of(from), n * PAGE);
		return;
	case 3:
		if (!is_run(from, n, ORDINARY))
			return;
		set(from, n, REGISTERED, call);
		if (seen)
			feed_alloc(h, T, now + 5, TTMON_METHOD_REGISTERED, addr_of(from), n * PAGE);
		return;
	case 4:
		if (pages[from].kind != PINNED)
			return;
		while (from && pages[from - 1].kind == PINNED && pages[from - 1].call == pages[from].call)
			from--;
		for (n = 1; is_run(from, n + 1, PINNED);)
			n++;
		set(from, n, NONE, 0);
		if (traced)
			feed_munmap(h, T, now + 2, addr_of(from), n * PAGE);
		if (seen)
			feed_free(h, T, now, now + 5, TTMON_METHOD_HOST_ALLOC, addr_of(from));
		return;
	case 5:
		if (pages[from].kind != REGISTERED)
			return;
		while (from && pages[from - 1].kind == REGISTERED && pages[from - 1].call == pages[from].call)
			from--;
		for (n = 1; is_run(from, n + 1, REGISTERED);)
			n++;
		set(from, n, ORDINARY, call);
		if (seen)
			feed_free(h, T, now, now + 5, TTMON_METHOD_REGISTERED, addr_of(from));
		return;
	default:
		if (!is_run(from, n, ORDINARY))
			return;
		set(from, n, NONE, 0);
		if (traced)
			feed_munmap(h, T, now, addr_of(from), n * PAGE);
	}
}

static void copy_and_check(bool all_seen, uint64_t *unknown, uint64_t *copies)
{
	static const enum ttmon_mem truth[] = { TTMON_MEM_UNKNOWN, TTMON_MEM_PAGEABLE, TTMON_MEM_PINNED,
						TTMON_MEM_PINNED };
	uint32_t from = below(PAGES), n = 1 + below(5);
	uint64_t before[TTMON_MEM_MAX], wanted;

	if (pages[from].kind == NONE || !is_run(from, n, pages[from].kind))
		return;
	for (unsigned int m = 0; m < TTMON_MEM_MAX; m++)
		before[m] = proc() ? moved(m).copies : 0;
	now += 10;
	feed_copy(h, T, now, TTMON_DIR_H2D, DEV, addr_of(from), n * PAGE);
	wanted = truth[pages[from].kind];
	++*copies;
	if (moved((unsigned int)wanted).copies == before[wanted] + 1)
		return;
	++*unknown;
	assert_false(all_seen);
	assert_int_equal(moved(TTMON_MEM_UNKNOWN).copies, before[TTMON_MEM_UNKNOWN] + 1);
}

/*
 * how: 0: everything is seen; 1: attached late; 2: attached late, mmap is not traced; 3: the family
 * alloc is off for a time.
 */
static void random_program(unsigned int how, uint64_t *unknown, uint64_t *copies)
{
	struct ttmon_xfer pinned_then;

	memset(pages, 0, sizeof(pages));
	now = 1000;
	traced = seen = how == 0 || how == 3;
	if (traced)
		feed_proc(h, T, now, 10, 1, TTMON_PROC_FORK);
	for (uint16_t i = 1; i < 60; i++)
		act(i);
	if (!traced) {
		/* Attached. */
		seen = true;
		traced = how == 1;
		blind(0, ++now);
		feed_proc(h, T, ++now, 10, 1, TTMON_PROC_SEEN);
		list();
	}
	pinned_then = (struct ttmon_xfer){ 0 };
	for (uint16_t i = 60; i < 400; i++) {
		if (how == 3 && i == 100) {
			family(TTMON_FAMILY_OFF, ++now);
			seen = false;
		}
		if (how == 3 && i == 130) {
			family(TTMON_FAMILY_ON, ++now);
			seen = true;
		}
		act(i);
		copy_and_check(how == 0, unknown, copies);
		/* A list comes after a copy from an address in no mapping. */
		if (how == 2 && below(4) == 0)
			list();
		if (proc()) {
			struct ttmon_xfer pinned = shown(TTMON_MEM_PINNED);

			assert_true(pinned.copies >= pinned_then.copies && pinned.bytes >= pinned_then.bytes);
			pinned_then = pinned;
		}
	}
	feed_exit(h, T, now + 100);
	assert_int_equal(proc()->pinned_pages, 0);
	assert_int_equal(proc()->pinned_bytes, 0);
	assert_int_equal(proc()->live, 0);
}

static void never_wrong(void **state)
{
	for (unsigned int how = 0; how < 4; how++) {
		uint64_t unknown = 0, copies = 0;

		for (unsigned int round = 1; round <= 300; round++) {
			teardown(state);
			setup(state);
			seed = round * 977 + how;
			random_program(how, &unknown, &copies);
		}
		assert_true(copies > 1000);
		print_message("way %u: kind unknown of %llu of %llu copies\n", how, (unsigned long long)unknown,
			      (unsigned long long)copies);
		/* The result is not obtained by calling everything unknown. */
		assert_true(unknown < copies / 4 * 3);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(memory_older_than_the_probes),   TEST(memory_younger_than_the_probes),
		TEST(copied_before_the_first_list),   TEST(neighbours_in_one_mapping),
		TEST(size_by_the_unmapping),	      TEST(a_family_that_was_off),
		TEST(mapped_from_the_drivers_device), TEST(never_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
