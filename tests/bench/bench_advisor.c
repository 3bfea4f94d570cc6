// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_advisor.c: the cost of a query of libttmon, in ns per call, against malloc and free of 64
 * bytes and against an atomic addition with a hash of the same stack, which is the minimum for any
 * such query. There are 10,000 call sites with 8 frames and one size each, queried in random order.
 *
 *	site      a stack that was seen before, of a site that the runs know
 *	unknown   the same, of a site that they do not know
 *	new       a stack that was not seen before: it is translated (in another advisor, whose table it
 *	          fills again and again)
 *	here      ttmon_advise_here(), from one place below 6 frames with frame pointers: this includes
 *	          the walk of the stack
 *	tables    the same from code without frame pointers: unwind tables are read
 *	name      ttmon_advise_name()
 *
 * Rounds are interleaved, figures are medians of 9, of this thread's own CPU time.
 */
#include <time.h>

#include "tests/unit/feed/advisor_feed.h"

#define SITES  10000u
#define DEPTH  8u
#define ASKS   100000u
#define ROUNDS 9

enum { FLOOR_MALLOC, FLOOR_HASH, SITE, UNKNOWN, NEW, HERE, TABLES, NAME, FIGURES };
static const char *const names[] = {
	"malloc+free 64", "atomic add + hash", "site", "unknown", "new", "here", "tables", "name"
};

static struct feed_alloc db[SITES];
static const void *stacks[SITES][DEPTH], *unknown[SITES][DEPTH];
static uint32_t order[ASKS];
static struct ttmon_advisor *adv, *other;
static _Atomic uint64_t counter;
static uint64_t sink, nr_new;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* The addresses are those of functions of this program, which are adjacent. */
static void make_stacks(void)
{
	struct ttmon_known none = { 0 };
	struct ttmon_funcs *funcs = NULL;
	uint64_t seed = 1, start, len;

	if (ttmon_objs_take(&none, NULL, &funcs, &feed_objs))
		abort();
	start = ttmon_objs_find(feed_objs, (uint64_t)(uintptr_t)make_stacks)->start + 16;
	len = ttmon_objs_find(feed_objs, (uint64_t)(uintptr_t)make_stacks)->end - start - 16;
	for (size_t i = 0; i < SITES; i++)
		for (size_t j = 0; j < DEPTH; j++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			/* Many stacks have the same outer half. */
			stacks[i][j] =
				(const void *)(uintptr_t)(start + (j < DEPTH / 2 ? (seed >> 33) % len : j * 40 % len));
			unknown[i][j] = (const char *)stacks[i][j] + 1;
			db[i].frames[j].addr = stacks[i][j];
		}
	for (size_t i = 0; i < SITES; i++) {
		db[i].size = 4096 + 64 * (i % 100);
		db[i].copies = i % 3 ? 100 : 0;
	}
	for (size_t i = 0; i < ASKS; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		order[i] = (uint32_t)((seed >> 33) % SITES);
	}
}

/* Each of these functions is of one kind, whatever the rest of the program is. */
#define BELOW(name, option)                                                                  \
	static __attribute__((noinline, optimize(option))) uint64_t name(unsigned int depth) \
	{                                                                                    \
		volatile uint64_t room = 0;                                                  \
		struct ttmon_answer a;                                                       \
                                                                                             \
		if (depth)                                                                   \
			return name(depth - 1) + room;                                       \
		for (uint32_t i = 0; i < ASKS; i++)                                          \
			room += ttmon_advise_here(adv, 4096, &a);                            \
		return room;                                                                 \
	}

BELOW(here, "no-omit-frame-pointer")
BELOW(tables, "omit-frame-pointer")

#define FP __attribute__((optimize("no-omit-frame-pointer")))

FP static double run(unsigned int what)
{
	struct ttmon_answer a;
	double t = now();

	if (what == HERE)
		sink += here(6);
	if (what == TABLES)
		sink += tables(6);
	for (uint32_t i = 0; i < ASKS && what != HERE && what != TABLES; i++) {
		uint32_t at = order[i];
		const void *odd[DEPTH];
		void *p;

		switch (what) {
		case FLOOR_MALLOC:
			p = malloc(64);
			__asm__ __volatile__("" : "+r"(p) : : "memory");
			free(p);
			break;
		case FLOOR_HASH:
			sink += ttmon_seen_key((const uint64_t *)(const void *)stacks[at], DEPTH, 1);
			atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
			break;
		case SITE:
			sink += ttmon_advise_stack(adv, stacks[at], DEPTH, db[at].size, &a);
			break;
		case UNKNOWN:
			sink += ttmon_advise_stack(adv, unknown[at], DEPTH, db[at].size, &a);
			break;
		case NEW:
			memcpy(odd, stacks[at], sizeof(odd));
			odd[DEPTH - 1] = (const char *)odd[DEPTH - 1] + 1 + nr_new++ % 100000;
			sink += ttmon_advise_stack(other, odd, DEPTH, db[at].size, &a);
			break;
		case NAME:
			sink += ttmon_advise_name(adv, "activations", 4096, &a);
			break;
		}
	}
	return (now() - t) / ASKS;
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

FP int main(void)
{
	char path[] = "/tmp/ttmon-bench-advisor.XXXXXX", why[300];
	const char *const dbs[] = { path };
	double ns[FIGURES][ROUNDS], t;
	struct ttmon_advisor_stats st;
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	make_stacks();
	feed_write(path, db, SITES, 0);
	t = now();
	if (ttmon_advisor_open(dbs, 1, NULL, &adv, why, sizeof(why))) {
		fprintf(stderr, "bench_advisor: %s\n", why);
		return 1;
	}
	ttmon_advisor_get_stats(adv, &st);
	printf("%-18s %8.1f ms for %llu sites\n", "open", (now() - t) / 1e6, (unsigned long long)st.sites);
	if (ttmon_advisor_open(dbs, 1, NULL, &other, why, sizeof(why)))
		return 1;
	unlink(path);
	for (unsigned int r = 0; r < ROUNDS; r++)
		for (unsigned int i = 0; i < FIGURES; i++)
			ns[i][r] = run(i);
	for (unsigned int i = 0; i < FIGURES; i++)
		qsort(ns[i], ROUNDS, sizeof(ns[i][0]), by_value);
	for (unsigned int i = 0; i < FIGURES; i++)
		printf("%-18s %8.1f ns  %6.2f x malloc+free  %6.2f x add+hash\n", names[i], ns[i][ROUNDS / 2],
		       ns[i][ROUNDS / 2] / ns[FLOOR_MALLOC][ROUNDS / 2],
		       ns[i][ROUNDS / 2] / ns[FLOOR_HASH][ROUNDS / 2]);
	ttmon_advisor_get_stats(adv, &st);
	printf("%-18s exact %llu, site %llu, names %llu, none %llu\n", "answers",
	       (unsigned long long)st.by_match[TTMON_MATCH_EXACT], (unsigned long long)st.by_match[TTMON_MATCH_SITE],
	       (unsigned long long)st.by_match[TTMON_MATCH_NAMES], (unsigned long long)st.by_match[TTMON_MATCH_NONE]);
	ttmon_advisor_close(adv);
	ttmon_advisor_close(other);
	feed_fini();
	return 0;
}
