// SPDX-License-Identifier: GPL-2.0-only
#include "lib/os/worker.h"

#include <sys/eventfd.h>

#include "lib/os/thread.h"

struct job {
	void (*work)(void *ctx);
	void (*done)(void *ctx);
	void *ctx;
	struct job *next;
};

struct jobs {
	struct job *first, **last;
};

struct ttmon_worker {
	const char *name;
	int event_fd;
	pthread_t thread;
	bool started;
	size_t out; /* requests whose done() was not called yet; only used by the requesting thread */
	pthread_mutex_t lock;
	pthread_cond_t more, less; /* signalled when there is work; when some is done */
	bool stop;		   /* the fields below are protected by the lock */
	struct jobs asked, over;
};

static void put(struct jobs *q, struct job *j)
{
	j->next = NULL;
	*q->last = j;
	q->last = &j->next;
}

static struct job *take(struct jobs *q)
{
	struct job *j = q->first;

	if (!j)
		return NULL;
	q->first = j->next;
	if (!q->first)
		q->last = &q->first;
	return j;
}

static void *run(void *arg)
{
	struct ttmon_worker *w = arg;

	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		struct job *j = take(&w->asked);

		if (!j) {
			pthread_cond_wait(&w->more, &w->lock);
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		j->work(j->ctx);
		pthread_mutex_lock(&w->lock);
		put(&w->over, j);
		pthread_cond_signal(&w->less);
		(void)!eventfd_write(w->event_fd, 1);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int ttmon_worker_new(const char *name, int event_fd, struct ttmon_worker **ret)
{
	struct ttmon_worker *w = calloc(1, sizeof(*w));
	pthread_mutexattr_t attr;

	if (!w)
		return -ENOMEM;
	w->name = name;
	w->event_fd = event_fd;
	w->asked.last = &w->asked.first;
	w->over.last = &w->over.first;
	/* The requesting thread may have a higher priority than the worker. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&w->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_cond_init(&w->more, NULL);
	pthread_cond_init(&w->less, NULL);
	*ret = w;
	return 0;
}

void ttmon_worker_free(struct ttmon_worker *w)
{
	if (!w)
		return;
	ttmon_worker_drain(w);
	if (w->started) {
		pthread_mutex_lock(&w->lock);
		w->stop = true;
		pthread_cond_signal(&w->more);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
	}
	pthread_cond_destroy(&w->less);
	pthread_cond_destroy(&w->more);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

int ttmon_worker_do(struct ttmon_worker *w, void (*work)(void *ctx), void (*done)(void *ctx), void *ctx)
{
	struct job *j = malloc(sizeof(*j));
	int err;

	if (!j)
		return -ENOMEM;
	/* The thread is started with the first work, because most workers never get any. */
	err = w->started ? 0 : ttmon_thread_start(&w->thread, NULL, w->name, run, w);
	if (err) {
		free(j);
		return err;
	}
	w->started = true;
	w->out++;
	*j = (struct job){ work, done, ctx, NULL };
	pthread_mutex_lock(&w->lock);
	put(&w->asked, j);
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

/* wait: wait for the next finished work, if any is pending. Returns false if there is none. */
static bool end_one(struct ttmon_worker *w, bool wait)
{
	struct job *j;

	if (!w->out)
		return false;
	pthread_mutex_lock(&w->lock);
	while (!(j = take(&w->over)) && wait)
		pthread_cond_wait(&w->less, &w->lock);
	pthread_mutex_unlock(&w->lock);
	if (!j)
		return false;
	w->out--;
	j->done(j->ctx);
	free(j);
	return true;
}

void ttmon_worker_turn(struct ttmon_worker *w)
{
	while (end_one(w, false))
		;
}

void ttmon_worker_drain(struct ttmon_worker *w)
{
	while (end_one(w, true))
		;
}

bool ttmon_worker_is_idle(const struct ttmon_worker *w)
{
	return !w->out;
}
