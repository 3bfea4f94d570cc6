/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rmid_alloc.h: the allocator of RMIDs, shared by the BPF programs (bpf/rmid.bpf.c), the kernel module
 * (kmod/) and the host's tests.
 *
 *	ids          1..max inclusive; 0 is no RMID
 *	order        never-used ids first, in order and at once; then FIFO: the id that has been
 *		free longest comes first
 *	limbo        an id is reused when now - time of its free >= TTMON_RMID_LIMBO_NS, in signed
 *		arithmetic,
 *	             because two CPUs may read their clocks in the other order than they take the
 *		lock
 *	holder       a process: tgid and start time; only the holder can free; other frees are
 *		refused
 *
 * Everything is O(1), without loops and calls, and every index is masked, so that the verifier accepts
 * it under bpf_spin_lock. The caller locks. A pool of zeros is valid except for max, which must be
 * 1..TTMON_RMID_POOL - 1.
 */
#ifndef TTMON_RMID_ALLOC_H
#define TTMON_RMID_ALLOC_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#endif

#define TTMON_RMID_POOL	    1024 /* a power of two; ids are below it */
#define TTMON_RMID_LIMBO_NS 2000000

struct ttmon_rmid_holder {
	__u64 start_ns; /* start time of the process */
	__u32 tgid;
	__u32 pad;
	char comm[16]; /* name when it got the id */
};

struct ttmon_rmid_entry {
	struct ttmon_rmid_holder who; /* kept after the free */
	__u64 since_ns;		      /* time when it was allocated, or freed */
	__u32 gen;  /* number of times it was allocated: together with the id it identifies one holding permanently */
	__u32 held; /* 1 or 0 */
};

struct ttmon_rmid_pool {
	__u32 max;   /* largest id, < TTMON_RMID_POOL */
	__u32 fresh; /* ids 1..fresh have been allocated at least once */
	__u32 head;  /* oldest entry of the queue of freed ids */
	__u32 nr_free;
	__u32 in_use, peak;
	__u64 allocs, frees;
	__u64 exhausted; /* no id was available: all are held, */
	__u64 limbo;	 /* or the free ones were freed too recently */
	__u64 refused;	 /* refused frees */
	__u16 queue[TTMON_RMID_POOL];
	struct ttmon_rmid_entry ids[TTMON_RMID_POOL];
};

enum ttmon_rmid_freed {
	TTMON_RMID_FREED,
	TTMON_RMID_NO_SUCH, /* 0, or above max */
	TTMON_RMID_IS_FREE, /* no process holds it: a double free */
	TTMON_RMID_OTHERS,  /* another process holds it */
};

/* The pool is zeroed memory. Returns 1; 0: max is not valid, and the pool allocates nothing. */
static __always_inline int ttmon_rmid_pool_init(struct ttmon_rmid_pool *p, __u32 max)
{
	if (!max || max >= TTMON_RMID_POOL)
		return 0;
	p->max = max;
	return 1;
}

/* Returns whether the oldest free id has waited long enough. */
static __always_inline int ttmon_rmid_pool_aged(const struct ttmon_rmid_pool *p, __u64 now_ns)
{
	__u32 id = p->queue[p->head & (TTMON_RMID_POOL - 1)];

	return (__s64)(now_ns - p->ids[id & (TTMON_RMID_POOL - 1)].since_ns) >= TTMON_RMID_LIMBO_NS;
}

/* Returns whether an allocation would succeed. Without the lock this is a hint. */
static __always_inline int ttmon_rmid_pool_ready(const struct ttmon_rmid_pool *p, __u64 now_ns)
{
	return p->fresh < p->max || (p->nr_free && ttmon_rmid_pool_aged(p, now_ns));
}

/* Allocates an id for this process; 0: none is available now. */
static __always_inline __u32 ttmon_rmid_pool_alloc(struct ttmon_rmid_pool *p, const struct ttmon_rmid_holder *who,
						   __u64 now_ns)
{
	struct ttmon_rmid_entry *e;
	__u32 id;

	if (p->fresh < p->max) {
		id = ++p->fresh;
	} else if (!p->nr_free) {
		p->exhausted++;
		return 0;
	} else if (!ttmon_rmid_pool_aged(p, now_ns)) {
		p->limbo++;
		return 0;
	} else {
		id = p->queue[p->head & (TTMON_RMID_POOL - 1)];
		p->head = (p->head + 1) & (TTMON_RMID_POOL - 1);
		p->nr_free--;
	}
	id &= TTMON_RMID_POOL - 1;
	e = &p->ids[id];
	e->who = *who;
	e->since_ns = now_ns;
	e->gen++;
	e->held = 1;
	p->allocs++;
	if (++p->in_use > p->peak)
		p->peak = p->in_use;
	return id;
}

/* Frees an id for the process that holds it. Returns enum ttmon_rmid_freed. */
static __always_inline int ttmon_rmid_pool_free(struct ttmon_rmid_pool *p, __u32 id, __u32 tgid, __u64 start_ns,
						__u64 now_ns)
{
	struct ttmon_rmid_entry *e = &p->ids[id & (TTMON_RMID_POOL - 1)];
	int why = TTMON_RMID_FREED;

	if (!id || id > p->max)
		why = TTMON_RMID_NO_SUCH;
	else if (!e->held)
		why = TTMON_RMID_IS_FREE;
	else if (e->who.tgid != tgid || e->who.start_ns != start_ns)
		why = TTMON_RMID_OTHERS;
	if (why) {
		p->refused++;
		return why;
	}
	e->held = 0;
	e->since_ns = now_ns;
	p->queue[(p->head + p->nr_free) & (TTMON_RMID_POOL - 1)] = (__u16)id;
	p->nr_free++;
	p->frees++;
	p->in_use--;
	return TTMON_RMID_FREED;
}

/* Returns the entry with the holder of the id, NULL: it is free. Valid as long as the lock is held. */
static __always_inline const struct ttmon_rmid_entry *ttmon_rmid_pool_holder(const struct ttmon_rmid_pool *p, __u32 id)
{
	const struct ttmon_rmid_entry *e = &p->ids[id & (TTMON_RMID_POOL - 1)];

	return id && id <= p->max && e->held ? e : 0;
}

/*
 * One round over the ids in use, starting after the id where the previous round ended: each id at most
 * once, even if ids come and go meanwhile.
 */
struct ttmon_rmid_round {
	__u32 start;   /* the round ends with this id */
	__u32 at;      /* id taken last */
	__u32 wrapped; /* 1 or 0 */
};

/*
 * id: the first in use above `at`, wrapping around; 0: there is none. Returns 1: it is the next of
 * this round, and taken; 0: the round is over.
 */
static __always_inline int ttmon_rmid_round_take(struct ttmon_rmid_round *r, __u32 id)
{
	if (id <= r->at) {
		if (r->wrapped)
			return 0;
		r->wrapped = 1;
	}
	if (!id || (r->wrapped && id > r->start))
		return 0;
	r->at = id;
	return 1;
}

#endif
