/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * soon.h: for threads that need little CPU time but must run soon: on a host whose CPUs are kept busy
 * by a dozen ordinary threads, an ordinary thread may wait for seconds.
 */
#ifndef TTMON_SOON_H
#define TTMON_SOON_H

#include <stdbool.h>

/*
 * Gives the calling thread the lowest real-time priority if that is permitted (the kernel still
 * reserves 5 % for other threads), else the best nice value. Threads of equal priority take turns of
 * 100 ms, so a thread that works longer than a millisecond should call sched_yield() now and then.
 * Processes that it forks have ordinary priority. Returns whether it has a real-time priority: then
 * only other real-time threads and the kernel run before it.
 */
bool ttmon_thread_soon(void);

#endif
