/* SPDX-License-Identifier: GPL-2.0-only */
/* thread.h: starts threads with all signals blocked; signals go to the threads that wait for them. */
#ifndef TTMON_THREAD_H
#define TTMON_THREAD_H

#include <pthread.h>
#include <signal.h>

#include "lib/base/util.h"

/*
 * name: 15 characters at most; NULL: the name of the starting thread. attr: may be NULL. Returns 0 or
 * -errno.
 */
static inline int ttmon_thread_start(pthread_t *ret, const pthread_attr_t *attr, const char *name, void *(*fn)(void *),
				     void *ctx)
{
	sigset_t all, before;
	int err;

	/* The new thread inherits the mask, so no signal can reach it even at its start. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(ret, attr, fn, ctx);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err && name)
		pthread_setname_np(*ret, name);
	return err;
}

#endif
