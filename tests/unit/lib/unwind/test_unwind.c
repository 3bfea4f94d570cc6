// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_unwind.c: walks of this program's own stacks against backtrace() of libgcc, which reads the
 * same tables in the process, and what happens to copies with holes, return probes on the way, code
 * without tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>

#include "tests/unit/feed/eh_image.h"
#include "tests/unit/feed/ownstack.h"

static struct own_maps maps;
static struct ttmon_uw *uw;
static struct ttmon_stack_copy copy;
static struct ttmon_uw_result got;
static void *want[64];
static int nr_want;

static const struct ttmon_uw_files ops = { .locate = own_locate, .table = own_table, .ctx = &maps };

static uint64_t top_of_stack(void)
{
	pthread_attr_t attr;
	void *base;
	size_t size;

	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	assert_int_equal(pthread_attr_getstack(&attr, &base, &size), 0);
	pthread_attr_destroy(&attr);
	return (uint64_t)base + size;
}

/* Both ways from here; the first frame is in this function, at another place. */
__attribute__((noinline)) static int take(int unused)
{
	uint64_t top = top_of_stack();

	own_stack(&copy, top);
	nr_want = backtrace(want, 64);
	ttmon_uw_unwind(uw, &copy, &ops, TTMON_UW_FRAMES, &got);
	return unused + 1;
}

static void compare(void)
{
	int extra = 0;

	assert_int_equal(got.end, TTMON_STACK_COMPLETE);
	assert_false(got.guessed);
	/* A sanitizer's backtrace() is a frame itself. */
	while (extra < 2 && extra + 1 < nr_want && (uint64_t)(uintptr_t)want[extra + 1] != got.pc[1])
		extra++;
	assert_int_equal(got.n, nr_want - extra);
	for (unsigned int i = 1; i < got.n; i++)
		assert_int_equal(got.pc[i], want[extra + (int)i]);
}

__attribute__((noinline)) static int recurse(int n)
{
	char *room = __builtin_alloca((size_t)n * 8 + 8);

	memset(room, n, (size_t)n * 8 + 8);
	__asm__ volatile("" : : "r"(room) : "memory");
	return (n ? recurse(n - 1) : take(n)) + room[n];
}

static void recursion_with_alloca(void **state)
{
	(void)state;
	recurse(12);
	compare();
	assert_true(got.n >= 14);
}

static int by_value(const void *a, const void *b)
{
	take(0);
	return *(const int *)a - *(const int *)b;
}

static void callback_of_libc(void **state)
{
	int v[] = { 3, 1, 2 };

	(void)state;
	qsort(v, 3, sizeof(int), by_value);
	compare();
}

static void on_signal(int sig)
{
	take(sig);
}

static void signal_frame(void **state)
{
	(void)state;
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	compare();
}

static void *thread(void *arg)
{
	recurse(3);
	return arg;
}

static void stack_of_a_thread(void **state)
{
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, thread, NULL), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	compare();
}

/* The frames before the hole are the same, and it is said where they end. */
static void hole_in_the_copy(void **state)
{
	struct ttmon_uw_result whole;

	(void)state;
	recurse(12);
	whole = got;
	copy.pages &= 1;
	ttmon_uw_unwind(uw, &copy, &ops, TTMON_UW_FRAMES, &got);
	assert_int_equal(got.end, TTMON_STACK_COPIED);
	assert_true(got.n < whole.n);
	assert_memory_equal(got.pc, whole.pc, got.n * sizeof(got.pc[0]));
	copy.pages = 0;
	ttmon_uw_unwind(uw, &copy, &ops, TTMON_UW_FRAMES, &got);
	assert_int_equal(got.end, TTMON_STACK_COPIED);
	assert_int_equal(got.n, 1);
}

static void as_deep_as_is_asked_for(void **state)
{
	struct ttmon_uw_result whole;

	(void)state;
	recurse(8);
	whole = got;
	for (unsigned int max = 1; max <= whole.n; max++) {
		ttmon_uw_unwind(uw, &copy, &ops, max, &got);
		assert_int_equal(got.n, max);
		assert_int_equal(got.end, max == whole.n ? TTMON_STACK_COMPLETE : TTMON_STACK_DEPTH);
		assert_memory_equal(got.pc, whole.pc, max * sizeof(got.pc[0]));
	}
}

#define TRAMPOLINE 0x7fffdead0000

/* Where each return address lies. */
static unsigned int hide_returns(const struct ttmon_uw_result *r, uint64_t *slots)
{
	unsigned int n = 0;

	for (uint64_t at = copy.sp; at + 8 <= copy.sp + TTMON_STACK_BYTES && n + 1 < r->n; at += 8) {
		uint64_t *word = (uint64_t *)(copy.bytes + (at - (copy.sp & ~(TTMON_STACK_PAGE - 1))));

		if (*word != r->pc[n + 1])
			continue;
		slots[n++] = at;
		*word = TRAMPOLINE;
	}
	return n;
}

/*
 * What other tracers' return probes put into the stack is repaired from the kernel's list, and not
 * without it.
 */
static void return_probes_on_the_way(void **state)
{
	struct ttmon_uw_result whole;
	uint64_t slots[64];
	unsigned int n;

	(void)state;
	recurse(6);
	whole = got;
	n = hide_returns(&whole, slots);
	assert_true(n >= 7);
	copy.trampoline = TRAMPOLINE;
	copy.nret = n;
	for (unsigned int i = 0; i < n; i++) {
		copy.ret[i].sp = slots[i];
		copy.ret[i].ra = whole.pc[i + 1];
	}
	ttmon_uw_unwind(uw, &copy, &ops, TTMON_UW_FRAMES, &got);
	assert_int_equal(got.n, whole.n);
	assert_int_equal(got.end, TTMON_STACK_COMPLETE);
	assert_memory_equal(got.pc, whole.pc, got.n * sizeof(got.pc[0]));
	/* A list that is too short. */
	copy.nret = 2;
	ttmon_uw_unwind(uw, &copy, &ops, TTMON_UW_FRAMES, &got);
	assert_int_equal(got.n, 3);
	assert_int_equal(got.end, TTMON_STACK_NO_MAP);
}

/* As if it were generated at run time: the linker provides the place of its section. */
extern const char __start_made_code[], __stop_made_code[];

__attribute__((noinline, section("made_code"))) static int made(int n)
{
	return take(n) + 1;
}

static enum ttmon_uw_place only_code(void *ctx, uint64_t pc, uint32_t *object, uint64_t *off)
{
	if (pc >= (uint64_t)(uintptr_t)__start_made_code && pc < (uint64_t)(uintptr_t)__stop_made_code)
		return TTMON_UW_NO_FILE;
	return own_locate(ctx, pc, object, off);
}

static struct ttmon_uw_table *no_tables(void *ctx, uint32_t object)
{
	(void)ctx;
	(void)object;
	return NULL;
}

/* A frame pointer is believed where it leads to code of a file, and the result says so. */
static void code_without_a_table(void **state)
{
	const struct ttmon_uw_files jit = { .locate = only_code, .table = own_table, .ctx = &maps };
	const struct ttmon_uw_files none = { .locate = own_locate, .table = no_tables, .ctx = &maps };
	struct ttmon_uw *fresh;
	uint64_t bp;

	(void)state;
	made(0);
	ttmon_uw_unwind(uw, &copy, &jit, TTMON_UW_FRAMES, &got);
	assert_true(got.guessed);
	assert_int_equal(got.end, TTMON_STACK_COMPLETE);
	assert_int_equal(ttmon_uw_new(TTMON_UW_ROWS, &fresh), 0);
	bp = copy.bp;
	copy.bp = 0;
	ttmon_uw_unwind(fresh, &copy, &none, TTMON_UW_FRAMES, &got);
	assert_false(got.guessed);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.end, TTMON_STACK_NO_TABLE);
	assert_true(got.end_object != 0);
	/* One that points downwards, or out of the copy. */
	copy.bp = copy.sp - 8;
	ttmon_uw_unwind(fresh, &copy, &none, TTMON_UW_FRAMES, &got);
	assert_int_equal(got.n, 1);
	copy.bp = copy.sp + TTMON_STACK_BYTES;
	ttmon_uw_unwind(fresh, &copy, &none, TTMON_UW_FRAMES, &got);
	assert_int_equal(got.n, 1);
	copy.bp = bp;
	ttmon_uw_free(fresh);
}

#define IMAGE 0x10000000u

static enum ttmon_uw_place in_image(void *ctx, uint64_t pc, uint32_t *object, uint64_t *off)
{
	(void)ctx;
	*object = 1;
	*off = pc - IMAGE;
	return pc - IMAGE < EH_SIZE ? TTMON_UW_IN_OBJECT : TTMON_UW_NOWHERE;
}

static struct ttmon_uw_table *of_image(void *ctx, uint32_t object)
{
	return object == 1 ? ctx : NULL;
}

/*
 * A signal came before the first instruction of a function: the byte before it belongs to another
 * function, or to none.
 */
static void interrupted_at_an_entry(void **state)
{
	static struct eh_image im = { .kind = EH_WITH_HDR };
	struct ttmon_uw_files image = { .locate = in_image, .table = of_image };
	struct ttmon_uw_table *t;
	uint64_t words[] = { IMAGE + EH_TEXT, 0 };
	struct ttmon_uw *fresh;

	(void)state;
	eh_cie(&im, "zR");
	eh_fde(&im, 0, 16, "", 0);
	eh_cie(&im, "zRS");
	eh_fde(&im, 64, 16, "", 0);
	assert_int_equal(ttmon_uw_table_open(eh_file(&im), &t), 0);
	assert_int_equal(ttmon_uw_new(64, &fresh), 0);
	image.ctx = t;
	memset(&copy, 0, sizeof(copy));
	copy.ip = IMAGE + EH_TEXT + 64;
	copy.sp = 0x7000;
	copy.flags = TTMON_STACK_EXACT;
	copy.pages = 1;
	memcpy(copy.bytes, words, sizeof(words));
	ttmon_uw_unwind(fresh, &copy, &image, TTMON_UW_FRAMES, &got);
	assert_int_equal(got.end, TTMON_STACK_COMPLETE);
	assert_int_equal(got.n, 2);
	assert_int_equal(got.pc[1], IMAGE + EH_TEXT);
	ttmon_uw_free(fresh);
	ttmon_uw_table_free(t);
}

static void frames_that_are_confirmed(void **state)
{
	struct ttmon_uw_result r = { .n = 6, .end = TTMON_STACK_COMPLETE, .by_fp = 7, .pc = { 1, 2, 3, 4, 5, 6 } };
	uint64_t fp[] = { 1, 2, 3, 4, 5 };

	(void)state;
	assert_true(ttmon_uw_confirms(&r, fp, 4, false));
	/* Three frames behind it: one may be the program's. */
	assert_false(ttmon_uw_confirms(&r, fp, 3, false));
	assert_true(ttmon_uw_confirms(&r, fp, 3, true));
	/* The step from 4 to 5 was not by a frame pointer. */
	assert_false(ttmon_uw_confirms(&r, fp, 5, false));
	fp[1] = 9;
	assert_false(ttmon_uw_confirms(&r, fp, 4, false));
	fp[1] = 2;
	r.end = TTMON_STACK_NO_MAP;
	assert_false(ttmon_uw_confirms(&r, fp, 4, false));
	r.end = TTMON_STACK_COMPLETE;
	r.guessed = true;
	assert_false(ttmon_uw_confirms(&r, fp, 4, false));
	assert_false(ttmon_uw_confirms(&r, fp, 0, false));
}

static int set_up(void **state)
{
	(void)state;
	own_maps_read(&maps);
	/* It loads libgcc. */
	backtrace(want, 1);
	own_maps_free(&maps);
	own_maps_read(&maps);
	return ttmon_uw_new(TTMON_UW_ROWS, &uw);
}

static int tear_down(void **state)
{
	(void)state;
	ttmon_uw_free(uw);
	own_maps_free(&maps);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursion_with_alloca),
		cmocka_unit_test(callback_of_libc),
		cmocka_unit_test(signal_frame),
		cmocka_unit_test(stack_of_a_thread),
		cmocka_unit_test(hole_in_the_copy),
		cmocka_unit_test(as_deep_as_is_asked_for),
		cmocka_unit_test(return_probes_on_the_way),
		cmocka_unit_test(code_without_a_table),
		cmocka_unit_test(frames_that_are_confirmed),
		cmocka_unit_test(interrupted_at_an_entry),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
