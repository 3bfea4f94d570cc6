/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rmid_alloc.h: the allocator of RMIDs: one text for the BPF programs (bpf/rmid.bpf.c), the kernel
 * module (kmod/) and the host's tests.
 *
 *	ids          1..max inclusive; 0 is no RMID
 *	order        never-used ids first, in order and at once; then FIFO: who has been free longest comes first
 *	limbo        an id is given out again when now - time of its free >= TTMON_RMID_LIMBO_NS, in signed arithmetic: clocks of two
 *	             CPUs may be taken in the other order than the lock
 *	holder       a process: tgid and start time; only it can free; a free of what is not held is refused
 *
 * Everything is O(1), without loops and calls, every index is masked: the verifier takes it under
 * bpf_spin_lock. The caller locks. The pool is valid when it is all zeroes, but for max:
 * 1..TTMON_RMID_POOL - 1, another one is refused.
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
	__u64 start_ns; /* of the process */
	__u32 tgid;
	__u32 pad;
	char comm[16]; /* when it got the id */
};

struct ttmon_rmid_entry {
	struct ttmon_rmid_holder who; /* kept after the free */
	__u64 since_ns;		      /* when it was given out, or came free */
	__u32 gen;		      /* times it was given out: with the id names one holding for good */
	__u32 held;		      /* 1 or 0 */
};

struct ttmon_rmid_pool {
	__u32 max;   /* largest id, < TTMON_RMID_POOL */
	__u32 fresh; /* ids 1..fresh have been given out at least once */
	__u32 head;  /* of the queue of ids that came free: place of the oldest */
	__u32 nr_free;
	__u32 in_use, peak;
	__u64 allocs, frees;
	__u64 exhausted; /* no id could be had: all are held, */
	__u64 limbo;	 /* or those that are not came free too short a time ago */
	__u64 refused;	 /* frees */
	__u16 queue[TTMON_RMID_POOL];
	struct ttmon_rmid_entry ids[TTMON_RMID_POOL];
};

enum ttmon_rmid_freed {
	TTMON_RMID_FREED,
	TTMON_RMID_NO_SUCH, /* 0, or above max */
	TTMON_RMID_IS_FREE, /* nobody holds it: a double free */
	TTMON_RMID_OTHERS,  /* somebody else holds it */
};

/* The pool is zeroed memory. 1; 0: there is no such max, and the pool gives nothing. */
static __always_inline int ttmon_rmid_pool_init(struct ttmon_rmid_pool *p, __u32 max)
{
	if (!max || max >= TTMON_RMID_POOL)
		return 0;
	p->max = max;
	return 1;
}

/* The oldest free id has waited long enough. */
static __always_inline int ttmon_rmid_pool_aged(const struct ttmon_rmid_pool *p, __u64 now_ns)
{
	__u32 id = p->queue[p->head & (TTMON_RMID_POOL - 1)];

	return (__s64)(now_ns - p->ids[id & (TTMON_RMID_POOL - 1)].since_ns) >= TTMON_RMID_LIMBO_NS;
}

/* Would an allocation succeed? Without the lock: a hint. */
static __always_inline int ttmon_rmid_pool_ready(const struct ttmon_rmid_pool *p, __u64 now_ns)
{
	return p->fresh < p->max || (p->nr_free && ttmon_rmid_pool_aged(p, now_ns));
}

/* An id for this process, 0: none can be had now. */
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

/* The id comes free; the process that holds it is named. enum ttmon_rmid_freed. */
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

/* Who holds the id now, NULL: nobody. Good as long as the lock is held. */
static __always_inline const struct ttmon_rmid_entry *ttmon_rmid_pool_holder(const struct ttmon_rmid_pool *p, __u32 id)
{
	const struct ttmon_rmid_entry *e = &p->ids[id & (TTMON_RMID_POOL - 1)];

	return id && id <= p->max && e->held ? e : 0;
}

/*
 * One turn over the ids in use, after the one where the turn before ended: each at most once,
 * whatever comes and goes meanwhile.
 */
struct ttmon_rmid_round {
	__u32 start;   /* the turn ends with this id */
	__u32 at;      /* taken last */
	__u32 wrapped; /* 1 or 0 */
};

/*
 * id is the first in use above `at`, around the end; 0: none is. 1: it is the next of this turn,
 * and taken; 0: the turn is over.
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
