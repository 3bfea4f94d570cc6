/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * worker.h: a thread that does work in the order of the requests, for a thread that must not wait for
 * it.
 *
 * It is for work that always ends, however late, such as system calls that wait for the kernel. Work
 * that may never end belongs in a helper process (helpers.h). All functions must be called by one
 * thread, in which done() is called too.
 */
#ifndef TTMON_WORKER_H
#define TTMON_WORKER_H

#include "lib/base/util.h"

struct ttmon_worker;

/*
 * name: of the thread, 15 characters at most, a string literal. event_fd: an eventfd, borrowed; it is
 * readable when ttmon_worker_turn() has something to do.
 */
int ttmon_worker_new(const char *name, int event_fd, struct ttmon_worker **ret) _must_check;
/* Waits for pending work as ttmon_worker_drain() does, then frees. NULL is allowed. */
void ttmon_worker_free(struct ttmon_worker *w);

/*
 * Calls work(ctx) in the thread, then done(ctx) in the calling thread, from ttmon_worker_turn() or
 * ttmon_worker_drain(). Returns 0; on -ENOMEM or an error of pthread_create(3) nothing was queued.
 */
int ttmon_worker_do(struct ttmon_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx) _must_check;
void ttmon_worker_turn(struct ttmon_worker *w);
/* Waits until nothing is pending, including work that done() requests. */
void ttmon_worker_drain(struct ttmon_worker *w);
bool ttmon_worker_is_idle(const struct ttmon_worker *w);

#endif
