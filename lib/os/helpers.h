/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * helpers.h: runs functions that may block for a long time, or for ever, in processes of their own.
 *
 * Reading files and memory of other processes can block for as long as their owner likes: a file
 * system in user space or on a network may not answer, a process may hold the lock of its own memory
 * map. Such a wait ends at best when the waiting process is killed, and often not even then. So these
 * functions are called in helpers: small processes that were forked before the daemon had threads,
 * rings or much memory, by a process of their own (the spawner), and that share nothing with the
 * daemon. The daemon does not wait for a helper that does not answer, but gives it up.
 *
 * Every call is made for a user (`who`) and at a place (`where`: a file system, a process). These
 * limits apply to a user:
 *
 *   late_ms      a call that runs longer is late: another helper takes its place, so others do not
 *                wait for it
 *   late calls   after two late calls at one place, or four of one user (root: eight), the next
 *                calls of the user wait in the user's own queue
 *   give_up_ms   a call that waits or runs longer ends with -ETIMEDOUT, and its helper is killed. One
 *                that cannot be killed still counts as late
 *   cpu_ms       CPU time at once, and 5 % of one CPU in the long run: beyond that the user's calls
 *                wait
 *   queue        65,536 calls of a user; more are refused
 *
 * Users are served in turn. There are at most 32 helpers, of which three at a time have calls that are
 * not late. All functions must be called from one thread; only ttmon_helpers_turn() and
 * ttmon_helpers_wait() deliver answers, never ttmon_helpers_call() itself.
 */
#ifndef TTMON_HELPERS_H
#define TTMON_HELPERS_H

#include "lib/base/util.h"

struct ttmon_helpers;

#define TTMON_HELPER_IN_MAX (96u << 10) /* the most bytes of a call's argument */

/*
 * Answer of a function in a helper: bytes, and one descriptor, whose ownership passes to the caller
 * (-1: none).
 */
struct ttmon_helper_out {
	char *buf;
	size_t n, cap;
	int fd;
	bool no_memory;
};
void ttmon_helper_put(struct ttmon_helper_out *out, const void *p, size_t n);

/*
 * A function that runs in a helper. ctx: from the configuration, as it was at ttmon_helpers_start().
 * in: n bytes, aligned for any type; fd: borrowed, -1: none. Returns 0 or -errno, with or without an
 * answer.
 */
typedef int (*ttmon_helper_fn)(const void *ctx, const void *in, size_t n, int fd, struct ttmon_helper_out *out);

struct ttmon_helpers_cfg {
	/* everything here must stay unchanged, and nothing may point into argv, which helpers overwrite */
	const ttmon_helper_fn *fns;
	size_t nr_fns;
	const void *ctx;
	void (*begin)(void); /* called first in the process that all helpers are forked from; may be NULL */
	unsigned int late_ms, give_up_ms, cpu_ms; /* 0: the defaults 50, 10000, 5000 */
};

/*
 * Forks the spawner. Call it before there are threads, and before anything is open or mapped that
 * helpers must not keep.
 */
int ttmon_helpers_start(const struct ttmon_helpers_cfg *cfg, struct ttmon_helpers **ret) _must_check;
/* Frees it. Calls that are not answered yet never get an answer. */
void ttmon_helpers_free(struct ttmon_helpers *h);

/*
 * An answer. err: returned by the function; -ETIMEDOUT: given up; -EIO: the helper died. buf: valid
 * during the callback, aligned for any type.
 */
struct ttmon_helper_reply {
	int err;
	const char *buf;
	size_t n;
	int fd; /* -1: none; closed after the callback unless it takes it with TAKE_FD() */
};

struct ttmon_helper_call {
	unsigned int fn;
	uint64_t who, where;
	const void *in; /* copied */
	size_t n;
	int fd; /* borrowed, -1: none */
	/*
	 * A socket (borrowed) to which the helper sends the descriptor of its answer, with one byte, so that
	 * the caller never has it; the helper then closes its copy. NULL: the descriptor comes with the
	 * answer.
	 */
	const int *to;
	void (*done)(void *ctx, struct ttmon_helper_reply *reply);
	void *ctx;
};
/*
 * Queues a call. done is called exactly once, later, unless this returns an error. -EBUSY: the user
 * has too many calls in the queue; -E2BIG; -ENOMEM.
 */
int ttmon_helpers_call(struct ttmon_helpers *h, const struct ttmon_helper_call *call) _must_check;

/* Returns a descriptor that is readable when ttmon_helpers_turn() has something to do. */
int ttmon_helpers_fd(const struct ttmon_helpers *h);
void ttmon_helpers_turn(struct ttmon_helpers *h);
/* Calls ttmon_helpers_turn() until over(ctx) is true, for ms at most. Returns whether it is true. */
bool ttmon_helpers_wait(struct ttmon_helpers *h, bool (*over)(void *ctx), void *ctx, unsigned int ms);
/* Returns whether a call that was made less than ms ago is not answered yet. */
bool ttmon_helpers_busy(const struct ttmon_helpers *h, unsigned int ms);

struct ttmon_helpers_counts {
	uint32_t processes; /* number of helpers */
	uint32_t late;	    /* of these, with a late call, or given up and not ended yet */
	uint32_t queued;
	uint64_t calls, lates, given_up, refused; /* counts since the start */
	uint64_t cpu_ns;			  /* CPU time of calls that were answered */
};
void ttmon_helpers_get_counts(const struct ttmon_helpers *h, struct ttmon_helpers_counts *ret);

#endif
