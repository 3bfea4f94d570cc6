/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * helpers.h: functions that may take long, or for ever, called in processes of their own.
 *
 * What reads other people's files and memory can wait for as long as their owner likes: a file system
 * in user space or over a network that does not answer, a process that holds its own memory map. Such
 * a wait ends at best when the process is killed, and often not even then. So these calls are made by
 * helpers: small processes that were forked before the daemon had threads, rings or much memory, by a
 * parent of their own (the spawner), and that hold nothing of the daemon. A helper that does not
 * answer is given up, not waited for.
 *
 * Every call is made for somebody (`who`: a user) and at some place (`where`: a file system, a
 * process). What bounds a user:
 *
 *   late_ms      a call that runs longer is late: another helper takes its place, so others do not wait for it
 *   two late calls at one place, four late calls of one user (root: eight): the user's next ones wait in the user's own queue
 *   give_up_ms   a call that waits or runs longer is over: -ETIMEDOUT, and its helper is killed. One that cannot be killed still counts as late
 *   cpu_ms       CPU time at once, and 5 % of one CPU in the long run: beyond that the user's calls wait
 *   queue        65,536 calls of a user; more are refused
 *
 * Users are served in turn. 32 helpers at most, of which three at a time have calls that are not late.
 * All functions run in one thread; answers are handed out by ttmon_helpers_turn() and
 * ttmon_helpers_wait() alone, never by the call itself.
 */
#ifndef TTMON_HELPERS_H
#define TTMON_HELPERS_H

#include "lib/base/util.h"

struct ttmon_helpers;

#define TTMON_HELPER_IN_MAX (96u << 10) /* bytes of a call's argument */

/* What a helper's function answers: bytes, and one descriptor, which is taken (-1: none). */
struct ttmon_helper_out {
	char *buf;
	size_t n, cap;
	int fd;
	bool no_memory;
};
void ttmon_helper_put(struct ttmon_helper_out *out, const void *p, size_t n);

/*
 * Runs in a helper. ctx: of the configuration, as it was at ttmon_helpers_start(). in: n bytes,
 * aligned for anything; fd: borrowed, -1: none. 0 or -errno, with or without an answer.
 */
typedef int (*ttmon_helper_fn)(const void *ctx, const void *in, size_t n, int fd, struct ttmon_helper_out *out);

struct ttmon_helpers_cfg {
	/* all of it must stay as it is, and nothing point into argv, which helpers write over */
	const ttmon_helper_fn *fns;
	size_t nr_fns;
	const void *ctx;
	void (*begin)(void);			  /* first thing in the process that all are forked from; may be NULL */
	unsigned int late_ms, give_up_ms, cpu_ms; /* 0: 50, 10000, 5000 */
};

/* Forks: before there are threads, and before anything is open or mapped that must not stay. */
int ttmon_helpers_start(const struct ttmon_helpers_cfg *cfg, struct ttmon_helpers **ret) _must_check;
/* Calls that are not answered get no answer any more. */
void ttmon_helpers_free(struct ttmon_helpers *h);

/*
 * err: of the function; -ETIMEDOUT: given up; -EIO: the helper died. buf: valid during the callback,
 * aligned for anything.
 */
struct ttmon_helper_reply {
	int err;
	const char *buf;
	size_t n;
	int fd; /* -1: none; taken with TAKE_FD(), else closed */
};

struct ttmon_helper_call {
	unsigned int fn;
	uint64_t who, where;
	const void *in; /* copied */
	size_t n;
	int fd; /* borrowed, -1: none */
	/*
	 * A socket (borrowed) that the helper sends the descriptor of its answer to, with one byte, so that
	 * the caller never has it; the helper's end of it is closed then. NULL: it comes with the answer.
	 */
	const int *to;
	void (*done)(void *ctx, struct ttmon_helper_reply *reply);
	void *ctx;
};
/*
 * done is called exactly once, later, unless this fails. -EBUSY: the user has too many calls in the
 * queue. -E2BIG, -ENOMEM.
 */
int ttmon_helpers_call(struct ttmon_helpers *h, const struct ttmon_helper_call *call) _must_check;

/* Readable when ttmon_helpers_turn() has something to do. */
int ttmon_helpers_fd(const struct ttmon_helpers *h);
void ttmon_helpers_turn(struct ttmon_helpers *h);
/* Turn until over(ctx), for ms at most. True: it is. */
bool ttmon_helpers_wait(struct ttmon_helpers *h, bool (*over)(void *ctx), void *ctx, unsigned int ms);
/* Is a call out that was made less than ms ago? */
bool ttmon_helpers_busy(const struct ttmon_helpers *h, unsigned int ms);

struct ttmon_helpers_counts {
	uint32_t processes; /* helpers there are */
	uint32_t late;	    /* of them with a late call, or given up and not gone yet */
	uint32_t queued;
	uint64_t calls, lates, given_up, refused; /* since the start */
	uint64_t cpu_ns;			  /* of calls that were answered */
};
void ttmon_helpers_get_counts(const struct ttmon_helpers *h, struct ttmon_helpers_counts *ret);

#endif
