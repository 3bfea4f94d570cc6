// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_advisor.c: libttmon's answers: call sites found again, what the hot path does not do, threads,
 * fork, broken stacks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "tests/unit/feed/advisor_feed.h"

/* clang makes no clones and knows no such attribute. */
#if __has_attribute(noclone)
#define NI __attribute__((noinline, noclone))
#else
#define NI __attribute__((noinline))
#endif
#define MB (1ull << 20)

#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#else
#define TSAN 0
#endif

/* libttmon.mk has the linker send these here: what the hot path must not call. */
static _Atomic int forbidden;
static __thread bool strict;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
int __real_pthread_mutex_lock(pthread_mutex_t *m);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);

void *__wrap_malloc(size_t n)
{
	forbidden += strict;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m)
{
	forbidden += strict;
	return __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n)
{
	forbidden += strict;
	return __real_realloc(p, n);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	forbidden += strict;
	return __real_pthread_mutex_lock(m);
}

static volatile int sink;

/* Functions whose addresses are call sites. They are long enough. */
#define BODY(x)                                 \
	for (int i_ = 0; i_ < (x) + sink; i_++) \
	sink += i_ * (x)
NI void ttmon_site_a(void);
NI void ttmon_site_b(void);
NI void ttmon_site_main(void);
NI void ttmon_site_a(void)
{
	BODY(3);
}
NI void ttmon_site_b(void)
{
	BODY(5);
}
NI void ttmon_site_main(void)
{
	BODY(7);
}

#define AT(f, n) ((const void *)((const char *)(uintptr_t)(f) + (n)))
#define FRAME(f, n)                   \
	{                             \
		AT(f, n), #f "+0x" #n \
	}

static char path[] = "/tmp/ttmon-test-advisor.XXXXXX";

static struct ttmon_advisor *open_with(const struct feed_alloc *a, size_t n, uint8_t flip,
				       const struct ttmon_advisor_opts *opts)
{
	const char *const dbs[] = { path };
	struct ttmon_advisor *adv = NULL;
	char why[300] = "";

	feed_write(path, a, n, flip);
	if (ttmon_advisor_open(dbs, 1, opts, &adv, why, sizeof(why)))
		fail_msg("%s", why);
	return adv;
}

static const struct feed_alloc two[] = {
	{ .frames = { FRAME(ttmon_site_a, 8), FRAME(ttmon_site_main, 9) }, .size = MB, .copies = 100 },
	{ .frames = { FRAME(ttmon_site_b, 8), FRAME(ttmon_site_main, 9) }, .size = 2 * MB },
};

static void found_by_its_frames(void **state)
{
	const void *hot[] = { AT(ttmon_site_a, 8), AT(ttmon_site_main, 9) };
	const void *cold[] = { AT(ttmon_site_b, 8), AT(ttmon_site_main, 9) };
	const void *other[] = { AT(ttmon_site_b, 8), AT(ttmon_site_main, 10) };
	struct ttmon_advisor *adv = open_with(two, 2, 0, NULL);
	struct ttmon_advisor_stats st;
	struct ttmon_answer a;

	(void)state;
	assert_int_equal(ttmon_advise_stack(adv, hot, 2, MB, &a), TTMON_VERDICT_PIN);
	assert_int_equal(a.match, TTMON_MATCH_EXACT);
	assert_int_equal(a.ordinal, 0);
	assert_int_equal(a.runs, 1);
	assert_true(a.site && a.gain_ns > 0 && a.confidence > 0.9f && a.h2d_bytes == 100 * MB);
	assert_int_equal(ttmon_advise_stack(adv, hot, 2, MB, &a), TTMON_VERDICT_PIN);
	assert_int_equal(a.ordinal, 1);
	assert_int_equal(a.match, TTMON_MATCH_SITE);
	assert_int_equal(ttmon_advise_stack(adv, cold, 2, 2 * MB, &a), TTMON_VERDICT_NO_PIN);
	assert_int_equal(a.match, TTMON_MATCH_EXACT);
	/* The same functions from another place: less sure. */
	ttmon_advise_stack(adv, other, 2, 2 * MB, &a);
	assert_int_equal(a.match, TTMON_MATCH_NAMES);
	assert_int_equal(ttmon_advise_stack(adv, NULL, 3, MB, &a), TTMON_VERDICT_UNKNOWN);
	assert_int_equal(a.site, 0);
	ttmon_advisor_get_stats(adv, &st);
	assert_int_equal(st.lookups, 5);
	assert_int_equal(st.by_match[TTMON_MATCH_EXACT], 2);
	assert_int_equal(st.by_match[TTMON_MATCH_SITE], 1);
	assert_int_equal(st.by_match[TTMON_MATCH_NAMES], 1);
	assert_int_equal(st.peak_pin_bytes, MB);
	assert_true(st.entries && st.sites);
	ttmon_advisor_close(adv);
}

static void weak_matches_do_not_count_if_told_so(void **state)
{
	const struct ttmon_advisor_opts opts = { .size = sizeof(opts), .min_match = TTMON_MATCH_SITE };
	const void *other[] = { AT(ttmon_site_b, 8), AT(ttmon_site_main, 10) };
	struct ttmon_advisor *adv = open_with(two, 2, 0, &opts);
	struct ttmon_answer a;

	(void)state;
	assert_int_equal(ttmon_advise_stack(adv, other, 2, 2 * MB, &a), TTMON_VERDICT_UNKNOWN);
	assert_int_equal(a.match, TTMON_MATCH_NAMES);
	ttmon_advisor_close(adv);
}

/* An allocator looks up the advice a few bytes before it allocates. */
static void found_by_the_innermost_function(void **state)
{
	static const struct feed_alloc twice[] = {
		{ .frames = { FRAME(ttmon_site_a, 8), FRAME(ttmon_site_main, 9) }, .size = MB, .copies = 100 },
		{ .frames = { FRAME(ttmon_site_a, 7), FRAME(ttmon_site_main, 9) }, .size = MB },
	};
	const void *before[] = { AT(ttmon_site_a, 5), AT(ttmon_site_main, 9) };
	struct ttmon_advisor *adv = open_with(two, 2, 0, NULL);
	struct ttmon_answer a;

	(void)state;
	assert_int_equal(ttmon_advise_stack(adv, before, 2, MB, &a), TTMON_VERDICT_PIN);
	assert_int_equal(a.match, TTMON_MATCH_EXACT);
	assert_int_equal(a.ordinal, 0);
	/* Not of another size. */
	ttmon_advise_stack(adv, before, 2, MB + 1, &a);
	assert_true(a.match < TTMON_MATCH_SITE);
	ttmon_advisor_close(adv);

	/* Two of them in one function: which one is not known. */
	adv = open_with(twice, 2, 0, NULL);
	ttmon_advise_stack(adv, before, 2, MB, &a);
	assert_true(a.match < TTMON_MATCH_SITE);
	ttmon_advisor_close(adv);
}

static void found_by_names_after_a_rebuild(void **state)
{
	const void *hot[] = { AT(ttmon_site_a, 6), AT(ttmon_site_main, 11) };
	const void *other_way[] = { AT(ttmon_site_a, 6), AT(ttmon_site_b, 11) };
	const void *other[] = { AT(ttmon_site_main, 6), AT(ttmon_site_b, 11) };
	struct ttmon_advisor *adv = open_with(two, 2, 0x55, NULL);
	struct ttmon_answer a, leaf;

	(void)state;
	assert_int_equal(ttmon_advise_stack(adv, hot, 2, MB, &a), TTMON_VERDICT_PIN);
	assert_int_equal(a.match, TTMON_MATCH_NAMES);
	/*
	 * Functions further out have become others: less sure. Twice, as a stack that was seen is answered
	 * from what was kept.
	 */
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(ttmon_advise_stack(adv, other_way, 2, MB, &leaf), TTMON_VERDICT_PIN);
		assert_int_equal(leaf.match, TTMON_MATCH_NAMES);
		assert_true(leaf.confidence < a.confidence);
	}
	assert_int_equal(ttmon_advise_stack(adv, other, 2, MB, &a), TTMON_VERDICT_UNKNOWN);
	ttmon_advisor_close(adv);
}

/* Two lines of one function, in another build: each by its place in the function. */
static void found_by_its_line_after_a_rebuild(void **state)
{
	static const struct feed_alloc lines[] = {
		{ .frames = { FRAME(ttmon_site_a, 8), FRAME(ttmon_site_main, 9) }, .size = MB, .copies = 100 },
		{ .frames = { FRAME(ttmon_site_a, 8), FRAME(ttmon_site_main, 5) }, .size = MB },
	};
	const void *hot[] = { AT(ttmon_site_a, 8), AT(ttmon_site_main, 9) };
	const void *cold[] = { AT(ttmon_site_a, 8), AT(ttmon_site_main, 5) };
	struct ttmon_advisor *adv = open_with(lines, 2, 0x55, NULL);
	struct ttmon_answer a;

	(void)state;
	/* Twice, as a stack that was seen is answered from what was kept. */
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(ttmon_advise_stack(adv, hot, 2, MB, &a), TTMON_VERDICT_PIN);
		assert_int_equal(a.match, TTMON_MATCH_NAMES);
		assert_int_equal(ttmon_advise_stack(adv, cold, 2, MB, &a), TTMON_VERDICT_NO_PIN);
		assert_int_equal(a.match, TTMON_MATCH_NAMES);
	}
	ttmon_advisor_close(adv);
}

/* The way through the allocator is no part of the site. */
static void found_by_its_own_frames(void **state)
{
	static const struct feed_alloc one[] = {
		{ .frames = { FRAME(ttmon_site_b, 8), FRAME(ttmon_site_a, 8), FRAME(ttmon_site_main, 9) },
		  .size = MB,
		  .copies = 100 },
		{ .frames = { FRAME(ttmon_site_b, 8), FRAME(ttmon_site_a, 8), FRAME(ttmon_site_main, 12) },
		  .size = MB },
	};
	const void *hot[] = { AT(ttmon_site_b, 11), AT(ttmon_site_main, 9) };
	const void *cold[] = { AT(ttmon_site_a, 8), AT(ttmon_site_b, 8), AT(ttmon_site_main, 12) };
	static const char patterns[] = "/tmp/ttmon-test-advisor-patterns";
	FILE *f = fopen(patterns, "we");
	struct ttmon_advisor *adv;
	struct ttmon_answer a;

	(void)state;
	assert_non_null(f);
	fputs("function ttmon_site_a\nfunction ttmon_site_b\n", f);
	fclose(f);
	setenv("TTMON_PLUMBING", patterns, 1);
	adv = open_with(one, 2, 0, NULL);
	unsetenv("TTMON_PLUMBING");
	assert_int_equal(ttmon_advise_stack(adv, hot, 2, MB, &a), TTMON_VERDICT_PIN);
	assert_int_equal(a.match, TTMON_MATCH_EXACT);
	assert_int_equal(ttmon_advise_stack(adv, cold, 3, MB, &a), TTMON_VERDICT_NO_PIN);
	assert_int_equal(a.match, TTMON_MATCH_EXACT);
	/* Nothing of the program's: not known. */
	assert_int_equal(ttmon_advise_stack(adv, hot, 1, MB, &a), TTMON_VERDICT_UNKNOWN);
	assert_int_equal(a.site, 0);
	ttmon_advisor_close(adv);
	unlink(patterns);
}

/* The tracer saw fewer frames than the walk: they are its innermost ones. */
static void found_by_what_was_traced_of_it(void **state)
{
	static const struct feed_alloc cut[] = {
		{ .frames = { FRAME(ttmon_site_a, 8) }, .size = MB, .copies = 100, .by_depth = true },
		{ .frames = { FRAME(ttmon_site_b, 8) }, .size = MB, .copies = 100 },
	};
	const void *deeper[] = { AT(ttmon_site_a, 8), AT(ttmon_site_main, 9) };
	const void *other[] = { AT(ttmon_site_b, 8), AT(ttmon_site_main, 9) };
	struct ttmon_advisor *adv = open_with(cut, 2, 0, NULL);
	struct ttmon_answer a;

	(void)state;
	assert_int_equal(ttmon_advise_stack(adv, deeper, 2, MB, &a), TTMON_VERDICT_PIN);
	assert_int_equal(a.match, TTMON_MATCH_SITE);
	/* A stack that was whole is another one. */
	ttmon_advise_stack(adv, other, 2, MB, &a);
	assert_true(a.match < TTMON_MATCH_SITE);
	ttmon_advisor_close(adv);
}

static void found_by_its_name(void **state)
{
	static const struct feed_alloc tags[] = {
		{ .name = "kv", .size = MB, .copies = 100 },
		{ .name = "a name that is longer than the t", .size = MB },
	};
	struct ttmon_advisor *adv;
	struct ttmon_answer a;

	(void)state;
	/* The tracer keeps 31 bytes of a tag. */
	adv = open_with((struct feed_alloc[]){ tags[0], { .name = "a name that is longer than the ", .size = MB } }, 2,
			0, NULL);
	assert_int_equal(ttmon_advise_name(adv, "kv", MB, &a), TTMON_VERDICT_PIN);
	assert_int_equal(a.match, TTMON_MATCH_EXACT);
	assert_int_equal(ttmon_advise_name(adv, tags[1].name, MB, &a), TTMON_VERDICT_NO_PIN);
	assert_int_equal(a.match, TTMON_MATCH_EXACT);
	assert_int_equal(ttmon_advise_name(adv, "other", MB, &a), TTMON_VERDICT_UNKNOWN);
	assert_int_equal(ttmon_advise_name(adv, NULL, MB, &a), TTMON_VERDICT_UNKNOWN);
	ttmon_advisor_close(adv);
}

/* ---- the caller's own stack ---- */

static uint64_t walked[TTMON_WALK_MAX];
static unsigned int nr_walked;
static struct ttmon_advisor *here;

/* From where this function returns to, as libgcc sees it. */
static NI void walk(void)
{
	void *all[TTMON_WALK_MAX + 8];
	int n = backtrace(all, (int)ARRAY_SIZE(all)), from = 0;

	/* A sanitizer's backtrace() is a frame itself. */
	while (from < n && all[from] != __builtin_return_address(0))
		from++;
	nr_walked = (unsigned int)MIN(n - from, (int)TTMON_WALK_MAX);
	for (unsigned int i = 0; i < nr_walked; i++)
		walked[i] = (uint64_t)(uintptr_t)all[from + (int)i];
}

NI void ttmon_my_alloc(struct ttmon_answer *a);
NI void ttmon_my_alloc(struct ttmon_answer *a)
{
	if (here)
		ttmon_advise_here(here, MB, a);
	else
		walk();
	sink++;
}

static NI int below(int n, struct ttmon_answer *a)
{
	int r = n ? below(n - 1, a) : (ttmon_my_alloc(a), 0);

	return r + n;
}

static struct ttmon_advisor *open_with_walked(void)
{
	struct feed_alloc a = { .size = MB, .copies = 100 };
	char fn[64];

	/* Its function is where its frame says it is. */
	snprintf(fn, sizeof(fn), "ttmon_my_alloc+0x%llx",
		 (unsigned long long)(walked[0] - (uint64_t)(uintptr_t)ttmon_my_alloc));
	for (unsigned int i = 0, n = 0; i < nr_walked && n < 12; i++) {
		const void *addr = (const void *)(uintptr_t)walked[i];
		Dl_info info;

		/* Of what is in no file nothing is in a database. */
		if (dladdr(addr, &info))
			a.frames[n++] = (struct feed_frame){ addr, i ? NULL : fn };
	}
	return open_with(&a, 1, 0, NULL);
}

/* From one place, so that the frames above are the same. */
static NI void walk_then_ask(int times, struct ttmon_answer *ret)
{
	for (int i = 0; i < times; i++) {
		below(3, ret);
		if (!i)
			here = open_with_walked();
	}
}

static void found_by_the_callers_stack(void **state)
{
	struct ttmon_answer ret = { 0 };

	(void)state;
	walk_then_ask(2 + sink * 0, &ret);
	assert_true(nr_walked > 5);
	assert_int_equal(ret.verdict, TTMON_VERDICT_PIN);
	assert_int_equal(ret.match, TTMON_MATCH_EXACT);
	ttmon_advisor_close(TAKE_PTR(here));
}

/* ---- code without frame pointers ---- */

#if defined(__clang__)
#define NOFP NI /* it has no such attribute: the flags of the build count */
#else
#define NOFP __attribute__((noinline, noclone, optimize("omit-frame-pointer,no-optimize-sibling-calls")))
#endif

static struct ttmon_rows rows;
static unsigned int compared, differ;

/* It stands where ttmon_advise_here() does. */
static NI void compare_here(void)
{
	struct ttmon_uw_result r = { .n = 0 };
	unsigned int n;

	walk();
	/* The second time from what was kept. */
	for (unsigned int i = 0; i < 2; i++) {
		if (!ttmon_walk_tables(&rows, 1, __builtin_frame_address(0), &r) || r.guessed) {
			differ++;
			return;
		}
		/* walk() began one frame further in; the last frames of a long one are beyond its limit. */
		n = MIN(nr_walked - 1, r.n);
		differ += !n || memcmp(r.pc, walked + 1, n * sizeof(walked[0])) != 0;
		differ += nr_walked < TTMON_WALK_MAX && (r.n != nr_walked - 1 || r.end != TTMON_STACK_COMPLETE);
		compared++;
	}
	sink++;
}

static NOFP int recursive(int n)
{
	volatile char room[24];

	room[n % 24] = (char)n;
	if (n)
		return recursive(n - 1) + room[n % 24];
	compare_here();
	return room[0];
}

static NOFP int with_alloca(int n)
{
	volatile char *room = __builtin_alloca((size_t)n);

	room[n - 1] = 1;
	compare_here();
	return room[n - 1];
}

/* Such functions find their way back by another register. */
static NOFP int aligned(int n)
{
	volatile char room[256] __attribute__((aligned(64)));
	volatile char *more = __builtin_alloca((size_t)n);

	room[n % 256] = more[n / 2] = (char)n;
	compare_here();
	return room[n % 256] + more[n / 2];
}

static int by_value(const void *a, const void *b)
{
	recursive(1);
	return *(const int *)a - *(const int *)b;
}

static void on_signal(int sig)
{
	sink += recursive(sig % 3);
}

static NOFP void *in_thread(void *arg)
{
	int v[] = { 3, 1, 2 };

	for (int i = 0; i < 12; i++) {
		sink += recursive(i);
		sink += with_alloca(64 + 40 * i);
		sink += aligned(32 + i);
	}
	qsort(v, 3, sizeof(int), by_value);
	raise(SIGUSR1);
	return arg;
}

/* The same frames as libgcc, which reads the same tables, has them. */
static void stacks_by_tables(void **state)
{
	pthread_t t;

	(void)state;
	if (TSAN)
		skip();
	assert_int_equal(ttmon_rows_init(&rows), 0);
	if (!rows.v)
		skip();
	signal(SIGUSR1, on_signal);
	in_thread(NULL);
	assert_int_equal(pthread_create(&t, NULL, in_thread, NULL), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	signal(SIGUSR1, SIG_DFL);
	assert_true(compared >= 2 * 2 * (3 * 12 + 2 + 1));
	assert_int_equal(differ, 0);
	ttmon_rows_fini(&rows);
}

static NOFP int below_without(int n, struct ttmon_answer *a)
{
	int r = n ? below_without(n - 1, a) : (ttmon_my_alloc(a), 0);

	return r + n;
}

/* Two ways to one allocator, no frame pointers: each is known by itself. */
static NOFP void both_ways(bool first, struct ttmon_answer *a)
{
	sink += below_without(3, a);
	if (first)
		return;
	sink += below_without(4, a + 1);
}

static NOFP void ask_without(struct ttmon_answer *a)
{
	for (int i = 0; i < 2; i++) {
		both_ways(!i, a);
		if (!i)
			here = open_with_walked();
	}
}

static void found_without_frame_pointers(void **state)
{
	struct ttmon_answer a[2] = { 0 };

	(void)state;
	if (TSAN)
		skip();
	ask_without(a);
	if (!here->rows.v) {
		ttmon_advisor_close(TAKE_PTR(here));
		skip();
	}
	assert_true(nr_walked > 5);
	assert_int_equal(a[0].match, TTMON_MATCH_EXACT);
	/* Another way, and the runs know one: by the innermost function alone. */
	assert_int_equal(a[1].match, TTMON_MATCH_NAMES);
	ttmon_advisor_close(TAKE_PTR(here));
}

#if defined(__x86_64__)
/* push %rbp; mov %rsp, %rbp; call *%rsi; pop %rbp; ret */
static const uint8_t thunk[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3 };

/* Code that the program made has no table: what lies behind it may be wrong, and is no identity. */
static void code_without_a_table(void **state)
{
	void (*made)(struct ttmon_answer *, void (*)(struct ttmon_answer *));
	struct ttmon_answer a = { 0 };
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(page != MAP_FAILED);
	memcpy(page, thunk, sizeof(thunk));
	memcpy(&made, &page, sizeof(made));
	for (int i = 0; i < 2; i++) {
		made(&a, ttmon_my_alloc);
		if (!i)
			here = open_with_walked();
	}
	if (here->rows.v)
		assert_true(a.match == TTMON_MATCH_NAMES && !a.site);
	ttmon_advisor_close(TAKE_PTR(here));
	munmap(page, 4096);
}
#endif

struct record {
	const void *up;
	uint64_t address;
};

/* A chain of frame records that ends in `last`. */
static unsigned int walk_to(const void *last)
{
	volatile struct record r[3] = { { (const void *)&r[1], 0x1001 },
					{ (const void *)&r[2], 0x1002 },
					{ last, 0x1003 } };

	return ttmon_walk((const void *)&r[0], walked, TTMON_WALK_MAX);
}

static void broken_stacks_end(void **state)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(page != MAP_FAILED && !mprotect(page + 4096, 4096, PROT_NONE));
	assert_int_equal(walk_to(NULL), 3);
	assert_int_equal(walk_to((const void *)1), 3);
	assert_int_equal(walk_to((const void *)UINTPTR_MAX), 3);
	assert_int_equal(walk_to((const void *)(UINTPTR_MAX & ~7ul)), 3);
	assert_int_equal(walk_to(page), 3);
	assert_int_equal(walk_to(page + 4096), 3);
	munmap(page, 8192);
}

static ucontext_t back, away;
static unsigned int on_other;

static void on_other_stack(void)
{
	char guarded[64];

	/* Ends in memory that cannot be read, a page above. */
	on_other = walk_to((const void *)(((uintptr_t)guarded & ~4095ul) + 4096));
	on_other += walk_to(NULL) * 100;
	swapcontext(&away, &back);
}

static void stack_of_a_coroutine(void **state)
{
	char *stack = mmap(NULL, 65536 + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (TSAN)
		skip();
	assert_true(stack != MAP_FAILED && !mprotect(stack + 65536, 4096, PROT_NONE));
	getcontext(&away);
	away.uc_stack.ss_sp = stack + 49152;
	away.uc_stack.ss_size = 16384;
	makecontext(&away, on_other_stack, 0);
	swapcontext(&back, &away);
	assert_in_range(on_other, 303, 320);
	munmap(stack, 65536 + 4096);
}

/* ---- what the hot path does not do ---- */

static void no_malloc_no_lock(void **state)
{
	struct ttmon_advisor *adv = open_with(two, 2, 0, NULL);
	struct ttmon_answer a;

	(void)state;
	forbidden = 0;
	strict = true;
	for (uintptr_t i = 0; i < 20000; i++) {
		const void *frames[] = { AT(ttmon_site_a, i % 9), AT(ttmon_site_main, i / 9) };

		ttmon_advise_stack(adv, frames, 2, MB, &a);
		ttmon_advise_here(adv, MB, &a);
		ttmon_advise_name(adv, "x", MB, &a);
	}
	strict = false;
	assert_int_equal(forbidden, 0);
	ttmon_advisor_close(adv);
}

/* In a process that may only exit: any other system call kills it. */
static void no_system_call(void **state)
{
	struct ttmon_advisor *adv;
	struct ttmon_answer a;
	int status;
	pid_t pid;

	(void)state;
	if (TSAN)
		skip();
	adv = open_with(two, 2, 0, NULL);
	pid = fork();
	if (!pid) {
		/* The first one in a thread looks where the stack ends, and one that is deeper. */
		here = adv;
		below_without(40, &a);
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			syscall(SYS_exit, 3);
		for (uintptr_t i = 0; i < 5000; i++) {
			const void *frames[] = { AT(ttmon_site_a, i % 9), AT(ttmon_site_main, i / 9) };

			ttmon_advise_stack(adv, frames, 2, MB, &a);
			ttmon_advise_here(adv, MB, &a);
			ttmon_advise_name(adv, "x", MB, &a);
			below_without((int)(i % 20), &a);
		}
		syscall(SYS_exit, 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ttmon_advisor_close(adv);
}

/* ---- threads ---- */

#define THREADS 8
#define ASKED	3000

static struct ttmon_advisor *shared;
static _Atomic unsigned int bad;
static _Atomic uint8_t given[THREADS * ASKED];

static void *asking(void *arg)
{
	const void *hot[] = { AT(ttmon_site_a, 8), AT(ttmon_site_main, 9) };
	struct ttmon_answer a;

	for (uintptr_t i = 0; i < ASKED; i++) {
		const void *any[] = { AT(ttmon_site_a, i % 7), AT(ttmon_site_main, i / 7), arg };

		bad += ttmon_advise_stack(shared, hot, 2, MB, &a) != TTMON_VERDICT_PIN;
		bad += a.ordinal >= THREADS * ASKED || given[a.ordinal]++;
		ttmon_advise_stack(shared, any, 3, 3 * MB, &a);
		ttmon_advise_here(shared, MB, &a);
	}
	return NULL;
}

static void threads_and_refresh(void **state)
{
	struct ttmon_advisor_stats st;
	pthread_t t[THREADS];

	(void)state;
	shared = open_with(two, 2, 0, NULL);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, asking, NULL), 0);
	for (int i = 0; i < 30; i++) {
		void *lib = dlopen("libBrokenLocale.so.1", RTLD_NOW);

		bad += ttmon_advisor_refresh(shared) != 0;
		if (lib)
			dlclose(lib);
		ttmon_checkpoint(shared, "step");
	}
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(bad, 0);
	ttmon_advisor_get_stats(shared, &st);
	assert_int_equal(st.lookups, 3 * THREADS * ASKED);
	ttmon_advisor_close(shared);
}

/* Old lists of objects do not pile up. */
static void refresh_keeps_no_old_lists(void **state)
{
	const void *hot[] = { AT(ttmon_site_a, 8), AT(ttmon_site_main, 9) };
	struct ttmon_advisor *adv = open_with(two, 2, 0, NULL);
	struct ttmon_answer a;

	(void)state;
	for (int i = 0; i < 10; i++) {
		void *lib = dlopen("libBrokenLocale.so.1", RTLD_NOW);

		if (!lib)
			skip();
		assert_int_equal(ttmon_advisor_refresh(adv), 0);
		assert_int_equal(atomic_load(&adv->gen), 2 + 2 * i);
		assert_int_equal(ttmon_advise_stack(adv, hot, 2, MB, &a), TTMON_VERDICT_PIN);
		dlclose(lib);
		assert_int_equal(ttmon_advisor_refresh(adv), 0);
		assert_null(adv->retired);
		/* Nothing changed: nothing done. */
		assert_int_equal(ttmon_advisor_refresh(adv), 0);
		assert_int_equal(atomic_load(&adv->gen), 3 + 2 * i);
	}
	ttmon_advisor_close(adv);
}

static void child_of_a_fork_goes_on(void **state)
{
	const void *hot[] = { AT(ttmon_site_a, 8), AT(ttmon_site_main, 9) };
	struct ttmon_live_advice line;
	struct ttmon_advisor *adv;
	struct ttmon_answer a;
	int status;
	pid_t pid;

	(void)state;
	/* It does not let a child of several threads start one. */
	if (TSAN)
		skip();
	adv = open_with(two, 2, 0, NULL);
	/* As if another thread had been at it. */
	assert_true(ttmon_flag_take(&adv->refreshing));
	assert_int_equal(ttmon_advisor_subscribe(adv), 0);
	pid = fork();
	if (!pid) {
		bool ok = ttmon_advise_stack(adv, hot, 2, MB, &a) == TTMON_VERDICT_PIN;

		alarm(20);
		ok &= !ttmon_advisor_refresh(adv) && !atomic_load(&adv->refreshing);
		ok &= !ttmon_advisor_poll(adv, &line);
		ttmon_checkpoint(adv, "child");
		ok &= ttmon_advisor_subscribe(adv) == 0 && ttmon_advisor_subscribe(adv) == -EALREADY;
		ttmon_advisor_close(adv);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ttmon_flag_drop(&adv->refreshing);
	ttmon_advisor_close(adv);
}

/* ---- what is refused ---- */

static void null_is_allowed(void **state)
{
	struct ttmon_advisor_stats st = { .lookups = 1 };
	struct ttmon_live_advice line;
	struct ttmon_answer a;

	(void)state;
	a.match = 9;
	assert_int_equal(ttmon_advise_here(NULL, 1, &a), TTMON_VERDICT_UNKNOWN);
	assert_int_equal(a.match, TTMON_MATCH_NONE);
	assert_int_equal(ttmon_advise_stack(NULL, NULL, 1, 1, &a), TTMON_VERDICT_UNKNOWN);
	assert_int_equal(ttmon_advise_name(NULL, "x", 1, &a), TTMON_VERDICT_UNKNOWN);
	assert_int_equal(ttmon_advisor_refresh(NULL), 0);
	assert_int_equal(ttmon_advisor_poll(NULL, &line), 0);
	assert_int_equal(ttmon_advisor_subscribe(NULL), -EINVAL);
	ttmon_advisor_on_checkpoint(NULL, NULL, NULL);
	ttmon_checkpoint(NULL, NULL);
	ttmon_checkpoint(NULL, "x");
	ttmon_advisor_get_stats(NULL, &st);
	assert_int_equal(st.lookups, 0);
	ttmon_advisor_close(NULL);
}

static void no_database_knows_nothing(void **state)
{
	struct ttmon_advisor *adv = NULL;
	struct ttmon_advisor_stats st;
	struct ttmon_answer a;
	char why[80];

	(void)state;
	assert_int_equal(ttmon_advisor_open(NULL, 0, NULL, &adv, why, sizeof(why)), 0);
	assert_int_equal(ttmon_advise_here(adv, 1, &a), TTMON_VERDICT_UNKNOWN);
	assert_int_equal(ttmon_advise_name(adv, "x", 1, &a), TTMON_VERDICT_UNKNOWN);
	assert_int_equal(ttmon_advisor_refresh(adv), 0);
	ttmon_checkpoint(adv, "x");
	ttmon_advisor_get_stats(adv, &st);
	assert_int_equal(st.by_match[TTMON_MATCH_NONE], 2);
	ttmon_advisor_close(adv);
}

static void refuses(void **state)
{
	const struct ttmon_advisor_opts small = { .size = 2 },
					far = { .size = sizeof(far), .min_match = TTMON_MATCH_MAX };
	const char *const missing[] = { "/nonexistent/db.json" }, *const bad_db[] = { path }, *const none[] = { NULL };
	struct ttmon_advisor *adv = (struct ttmon_advisor *)path;
	char why[300];
	FILE *f;

	(void)state;
	assert_int_equal(ttmon_advisor_open(missing, 1, NULL, &adv, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, missing[0]));
	assert_int_equal(ttmon_advisor_open(none, 1, NULL, &adv, why, sizeof(why)), -EINVAL);
	assert_int_equal(ttmon_advisor_open(missing, 1, &small, &adv, why, sizeof(why)), -EINVAL);
	assert_int_equal(ttmon_advisor_open(missing, 1, &far, &adv, why, sizeof(why)), -EINVAL);
	assert_int_equal(ttmon_advisor_open(missing, 5000, NULL, &adv, why, sizeof(why)), -E2BIG);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("{\"schema\": \"ttmon-db\", \"version\": 1, \"objects\": [", f);
	fclose(f);
	why[0] = '\0';
	assert_int_equal(ttmon_advisor_open(bad_db, 1, NULL, &adv, why, sizeof(why)), -EBADMSG);
	assert_true(why[0] && !strchr(why, '\n'));
	assert_ptr_equal(adv, (struct ttmon_advisor *)path);
}

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	feed_fini();
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_its_frames),
		cmocka_unit_test(weak_matches_do_not_count_if_told_so),
		cmocka_unit_test(found_by_the_innermost_function),
		cmocka_unit_test(found_by_names_after_a_rebuild),
		cmocka_unit_test(found_by_its_line_after_a_rebuild),
		cmocka_unit_test(found_by_its_own_frames),
		cmocka_unit_test(found_by_what_was_traced_of_it),
		cmocka_unit_test(found_by_its_name),
		cmocka_unit_test(found_by_the_callers_stack),
		cmocka_unit_test(stacks_by_tables),
		cmocka_unit_test(found_without_frame_pointers),
#if defined(__x86_64__)
		cmocka_unit_test(code_without_a_table),
#endif
		cmocka_unit_test(broken_stacks_end),
		cmocka_unit_test(stack_of_a_coroutine),
		cmocka_unit_test(no_malloc_no_lock),
		cmocka_unit_test(no_system_call),
		cmocka_unit_test(threads_and_refresh),
		cmocka_unit_test(refresh_keeps_no_old_lists),
		cmocka_unit_test(child_of_a_fork_goes_on),
		cmocka_unit_test(null_is_allowed),
		cmocka_unit_test(no_database_knows_nothing),
		cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
