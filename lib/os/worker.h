/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * worker.h: a thread that does work in the order in which it was asked to, for a thread that must not
 * wait for it.
 *
 * For what ends in any case, however late: system calls that wait for the kernel. What may never end
 * is a helper's (helpers.h). All functions are called by one thread, in which done() is called too.
 */
#ifndef TTMON_WORKER_H
#define TTMON_WORKER_H

#include "lib/base/util.h"

struct ttmon_worker;

/*
 * name: of the thread, 15 characters at most, a literal. event_fd: an eventfd, borrowed; readable when
 * ttmon_worker_turn() has something to do.
 */
int ttmon_worker_new(const char *name, int event_fd, struct ttmon_worker **ret) _must_check;
/* Waits for what is under way, as ttmon_worker_drain(). NULL is fine. */
void ttmon_worker_free(struct ttmon_worker *w);

/*
 * Do work(ctx) in the thread, then done(ctx) here, in ttmon_worker_turn() or ttmon_worker_drain().
 * -ENOMEM, or as pthread_create(3) fails: nothing was done.
 */
int ttmon_worker_do(struct ttmon_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx) _must_check;
void ttmon_worker_turn(struct ttmon_worker *w);
/* Until nothing is left to do, also of what done() asks for. */
void ttmon_worker_drain(struct ttmon_worker *w);
bool ttmon_worker_is_idle(const struct ttmon_worker *w);

#endif
