/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rmid_script.h: what the allocator of RMIDs (include/ttmon/rmid_alloc.h) must answer, as a list of
 * steps, and a long random run with the digest of its answers. The same steps are run on the host
 * (tests/unit/daemon/core/rmid/test_rmid_alloc.c, which also holds the random run against a model), in
 * BPF through BPF_PROG_RUN (tests/bpf) and in the kernel module (kmod, selftest=1). No calls, no
 * includes but types.
 */
#ifndef TTMON_RMID_SCRIPT_H
#define TTMON_RMID_SCRIPT_H

#include <ttmon/rmid_alloc.h>

enum rmid_script_op {
	RMID_DO_INIT,	/* id: max; the pool is zeroed first. Answer: the max it took, 0: refused */
	RMID_DO_ALLOC,	/* Answer: the id */
	RMID_DO_FREE,	/* Answer: enum ttmon_rmid_freed */
	RMID_DO_READY,	/* Answer: 0 or 1 */
	RMID_DO_HOLDER, /* Answer: tgid of the holder of id, 0: none */
	RMID_DO_GEN,	/* Answer: how often id was given out */
	RMID_DO_IN_USE, /* Answers: the pool's counts */
	RMID_DO_PEAK,
	RMID_DO_EXHAUSTED,
	RMID_DO_LIMBO,
	RMID_DO_REFUSED,
};

struct rmid_script_step {
	__u32 op;
	__u32 id;
	__u32 tgid;
	__u32 want;
	__u64 start_ns;
	__u64 at_ns;
};

/*
 * Executes one step. `*who` is the caller's scratch memory (in BPF no struct on the stack is copied
 * twice). INIT only sets max.
 */
static __always_inline __u32 rmid_script_do(struct ttmon_rmid_pool *p, const struct rmid_script_step *s,
					    const struct ttmon_rmid_holder *who)
{
	const struct ttmon_rmid_entry *e;

	switch (s->op) {
	case RMID_DO_INIT:
		return ttmon_rmid_pool_init(p, s->id) ? p->max : 0;
	case RMID_DO_ALLOC:
		return ttmon_rmid_pool_alloc(p, who, s->at_ns);
	case RMID_DO_FREE:
		return (__u32)ttmon_rmid_pool_free(p, s->id, s->tgid, s->start_ns, s->at_ns);
	case RMID_DO_READY:
		return (__u32)ttmon_rmid_pool_ready(p, s->at_ns);
	case RMID_DO_HOLDER:
		e = ttmon_rmid_pool_holder(p, s->id);
		return e ? e->who.tgid : 0;
	case RMID_DO_GEN:
		return p->ids[s->id & (TTMON_RMID_POOL - 1)].gen;
	case RMID_DO_IN_USE:
		return p->in_use;
	case RMID_DO_PEAK:
		return p->peak;
	case RMID_DO_EXHAUSTED:
		return (__u32)p->exhausted;
	case RMID_DO_LIMBO:
		return (__u32)p->limbo;
	case RMID_DO_REFUSED:
		return (__u32)p->refused;
	}
	return ~0U;
}

/* Times are us after 1 s, so that nothing is near 0 but where that is meant. */
#define RMID_US(us) (1000000000ULL + (us)*1000ULL)
#define RMID_INIT(max, got)                     \
	{                                       \
		RMID_DO_INIT, max, 0, got, 0, 0 \
	}
#define RMID_ALLOC(t, us, got)                                  \
	{                                                       \
		RMID_DO_ALLOC, 0, t, got, (t)*7ULL, RMID_US(us) \
	}
#define RMID_FREE(i, t, us, got)                               \
	{                                                      \
		RMID_DO_FREE, i, t, got, (t)*7ULL, RMID_US(us) \
	}
#define RMID_ASK(what, i, got)                  \
	{                                       \
		RMID_DO_##what, i, 0, got, 0, 0 \
	}
#define RMID_READY(us, got)                              \
	{                                                \
		RMID_DO_READY, 0, 0, got, 0, RMID_US(us) \
	}

static const struct rmid_script_step rmid_script[] = {
	/* 0 is never given; max is; never-used ids are given at once, in order. */
	RMID_INIT(3, 3),
	RMID_READY(0, 1),
	RMID_ALLOC(100, 0, 1),
	RMID_ALLOC(101, 0, 2),
	RMID_ALLOC(102, 0, 3),
	RMID_READY(0, 0),
	RMID_ALLOC(103, 0, 0),
	RMID_ASK(EXHAUSTED, 0, 1),
	RMID_ASK(IN_USE, 0, 3),
	RMID_ASK(HOLDER, 3, 102),
	/* A free id rests: 1.999 ms are too little, 2 ms are enough. */
	RMID_FREE(2, 101, 10, TTMON_RMID_FREED),
	RMID_ASK(HOLDER, 2, 0),
	RMID_READY(2009, 0),
	RMID_ALLOC(104, 2009, 0),
	RMID_ASK(LIMBO, 0, 1),
	RMID_ASK(EXHAUSTED, 0, 1),
	RMID_READY(2010, 1),
	RMID_ALLOC(104, 2010, 2),
	RMID_ASK(GEN, 2, 2),
	RMID_ASK(GEN, 1, 1),
	/* FIFO, though 3 has the larger number and was free first. */
	RMID_FREE(3, 102, 3000, TTMON_RMID_FREED),
	RMID_FREE(1, 100, 3001, TTMON_RMID_FREED),
	RMID_ALLOC(105, 5000, 3),
	RMID_ALLOC(106, 5000, 0),
	RMID_ALLOC(106, 5001, 1),
	/* Frees that must not be. */
	RMID_FREE(0, 105, 6000, TTMON_RMID_NO_SUCH),
	RMID_FREE(4, 105, 6000, TTMON_RMID_NO_SUCH),
	RMID_FREE(1023, 105, 6000, TTMON_RMID_NO_SUCH),
	RMID_FREE(1027, 105, 6000, TTMON_RMID_NO_SUCH),
	RMID_FREE(0xffffffff, 105, 6000, TTMON_RMID_NO_SUCH),
	RMID_FREE(3, 104, 6000, TTMON_RMID_OTHERS),
	{ RMID_DO_FREE, 3, 105, TTMON_RMID_OTHERS, 1, RMID_US(6000) },	     /* a later process of the same number */
	{ RMID_DO_FREE, 3, 106, TTMON_RMID_OTHERS, 105 * 7, RMID_US(6000) }, /* one that began at the same time */
	RMID_FREE(3, 105, 6000, TTMON_RMID_FREED),
	RMID_FREE(3, 105, 6001, TTMON_RMID_IS_FREE),
	RMID_ASK(REFUSED, 0, 9),
	RMID_ASK(IN_USE, 0, 2),
	RMID_ASK(PEAK, 0, 3),
	/* The double free did not put it there twice. */
	RMID_ALLOC(107, 9000, 3),
	RMID_ALLOC(108, 19000, 0),
	/* Never-used ids come before those that rest, and before those that have rested. */
	RMID_INIT(3, 3),
	RMID_ALLOC(1, 0, 1),
	RMID_FREE(1, 1, 1, TTMON_RMID_FREED),
	RMID_ALLOC(2, 1, 2),
	RMID_ALLOC(3, 9000, 3),
	RMID_ALLOC(4, 9000, 1),
	/* The clock of the freeing CPU is ahead of that of the allocating CPU; the clock is near its wrap. */
	RMID_INIT(1, 1),
	RMID_ALLOC(1, 0, 1),
	RMID_FREE(1, 1, 500, TTMON_RMID_FREED),
	RMID_ALLOC(2, 400, 0),
	RMID_ALLOC(2, 2500, 1),
	{ RMID_DO_FREE, 1, 2, TTMON_RMID_FREED, 14, ~0ULL - 999999 },
	{ RMID_DO_ALLOC, 0, 3, 0, 21, 999999 },
	{ RMID_DO_ALLOC, 0, 3, 1, 21, 1000000 },
	/* Time 0 is a time like any other: the first allocation is at once. */
	RMID_INIT(2, 2),
	{ RMID_DO_ALLOC, 0, 1, 1, 7, 0 },
	{ RMID_DO_FREE, 1, 1, TTMON_RMID_FREED, 7, 0 },
	{ RMID_DO_ALLOC, 0, 2, 2, 14, 0 },
	{ RMID_DO_ALLOC, 0, 3, 0, 21, 1999999 },
	{ RMID_DO_ALLOC, 0, 3, 1, 21, 2000000 },
	/* As many as it can hold; one more, many more and none are refused, and then nothing is given. */
	RMID_INIT(1023, 1023),
	RMID_ALLOC(1, 0, 1),
	RMID_INIT(1024, 0),
	RMID_ALLOC(1, 0, 0),
	RMID_INIT(0xffffffff, 0),
	RMID_ALLOC(1, 0, 0),
	RMID_INIT(0, 0),
	RMID_ALLOC(1, 0, 0),
	RMID_READY(0, 0),
	RMID_FREE(1, 1, 0, TTMON_RMID_NO_SUCH),
};
#define RMID_SCRIPT_STEPS (sizeof(rmid_script) / sizeof(rmid_script[0]))

/*
 * The random run: RMID_RANDOM_STEPS steps from rmid_script_next(), on a pool of RMID_RANDOM_MAX ids;
 * the digest is FNV-1a over the answers. An allocation is by a new process; the frees are of an id by
 * the process that got it last, now and then by another.
 */
#define RMID_RANDOM_STEPS  200000
#define RMID_RANDOM_MAX	   300
#define RMID_RANDOM_DIGEST 0xd4f056d4288e50ddULL

struct rmid_script_random {
	__u64 seed, now_ns, digest;
	__u32 next_tgid;
	__u32 owner[RMID_RANDOM_MAX + 2]; /* by id: tgid that got it last */
};

static inline void rmid_script_random_init(struct rmid_script_random *r)
{
	__u32 i;

	r->seed = 1;
	r->now_ns = RMID_US(0);
	r->digest = 0xcbf29ce484222325ULL;
	r->next_tgid = 1;
	for (i = 0; i < RMID_RANDOM_MAX + 2; i++)
		r->owner[i] = 0;
}

static inline __u32 rmid_script_rand(struct rmid_script_random *r, __u32 below)
{
	r->seed = r->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (__u32)(((r->seed >> 33) * below) >> 31);
}

static inline void rmid_script_next(struct rmid_script_random *r, struct rmid_script_step *s)
{
	/* By turns there is a crowd, so that ids run out, and there is not. */
	__u32 what = rmid_script_rand(r, 100), allocs = r->next_tgid & 4096 ? 94 : 40;

	r->now_ns += rmid_script_rand(r, 30000);
	s->op = what < allocs ? RMID_DO_ALLOC : what < 96 ? RMID_DO_FREE : what < 98 ? RMID_DO_READY : RMID_DO_HOLDER;
	s->id = rmid_script_rand(r, RMID_RANDOM_MAX + 2);
	s->tgid = s->op == RMID_DO_ALLOC ? r->next_tgid++ : r->owner[s->id];
	if (s->op == RMID_DO_FREE && !rmid_script_rand(r, 50))
		s->tgid++;
	s->want = 0;
	s->start_ns = s->tgid * 7ULL;
	s->at_ns = r->now_ns - rmid_script_rand(r, 2000);
}

static inline void rmid_script_answer(struct rmid_script_random *r, const struct rmid_script_step *s, __u32 got)
{
	if (s->op == RMID_DO_ALLOC && got < RMID_RANDOM_MAX + 2)
		r->owner[got] = s->tgid;
	r->digest = (r->digest ^ got) * 0x100000001b3ULL;
}

#endif
