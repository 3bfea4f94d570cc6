/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * soon.h: threads that need little of a CPU, but soon: where both CPUs of a host are kept busy by a
 * dozen ordinary threads, one of them may wait for seconds.
 */
#ifndef TTMON_SOON_H
#define TTMON_SOON_H

#include <stdbool.h>

/*
 * The calling thread gets the lowest real-time priority where that is allowed (the kernel still
 * keeps 5 % for everybody else), else the best nice value. Threads of one priority take turns of
 * 100 ms: who works for longer than a millisecond calls sched_yield() now and then. What it forks
 * has ordinary priority again. Returns whether it has a real-time priority: then nothing but the
 * kernel and its like takes its CPU from it.
 */
bool ttmon_thread_soon(void);

#endif
