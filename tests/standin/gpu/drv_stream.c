// SPDX-License-Identifier: GPL-2.0-only
/*
 * drv_stream.c: streams, each of which is a thread that does its work in order. Work that must wait
 * for another stream stores how much of that stream's work it waits for. The default stream waits for
 * all others, and they wait for it, unless they were created as non-blocking.
 */
#include "drv.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

pthread_mutex_t drv_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t drv_cond = PTHREAD_COND_INITIALIZER;

#define NON_BLOCKING 1

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct drv_work *drv_work_new(CUcontext ctx, enum drv_kind kind)
{
	struct drv_work *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->ctx = ctx;
	w->kind = kind;
	return w;
}

void drv_work_free(struct drv_work *w)
{
	for (struct drv_work *i = w->list, *next; i; i = next) {
		next = i->next;
		drv_work_free(i);
	}
	free(w->params);
	free(w->deps);
	free(w);
}

void drv_work_copy(struct drv_work *to, const struct drv_work *from)
{
	size_t n = from->kind == WORK_KERNEL ? from->func->f->param_bytes + 8u : 0;

	*to = *from;
	to->next = NULL;
	to->deps = NULL;
	to->nr_deps = 0;
	to->params = NULL;
	if (n) {
		to->params = malloc(n);
		if (!to->params)
			abort();
		memcpy(to->params, from->params, n);
	}
}

static void set(struct drv_work *w)
{
	for (size_t i = 0; i < w->n; i++)
		memcpy((char *)w->dst + i * w->size, &w->value, w->size);
}

/* A context that is lost does no more work. */
static void perform(struct drv_work *w)
{
	if (__atomic_load_n(&w->ctx->sticky, __ATOMIC_ACQUIRE) && w->kind != WORK_HOST)
		return;
	switch (w->kind) {
	case WORK_KERNEL:
		drv_run_kernel(w);
		break;
	case WORK_COPY:
		memmove(w->dst, w->src, w->n);
		break;
	case WORK_SET:
		set(w);
		break;
	case WORK_HOST:
		if (w->callback)
			w->callback(w->stream, w->ctx->sticky, w->arg);
		else
			w->fn(w->arg);
		break;
	case WORK_GRAPH:
		for (struct drv_work *i = w->list; i; i = i->next)
			perform(i);
		break;
	case WORK_FREE:
		gpu_mem_free(w->dev, NULL);
		break;
	default:
		break;
	}
}

static bool ready(const struct drv_work *w)
{
	for (size_t i = 0; i < w->nr_deps; i++)
		if (w->deps[i].stream->done < w->deps[i].seq)
			return false;
	return true;
}

static void *worker(void *arg)
{
	CUstream s = arg;

	pthread_mutex_lock(&drv_lock);
	for (;;) {
		struct drv_work *w = s->first;

		if (w && ready(w)) {
			pthread_mutex_unlock(&drv_lock);
			perform(w);
			pthread_mutex_lock(&drv_lock);
			s->first = w->next;
			if (!s->first)
				s->last = &s->first;
			s->done = w->seq;
			drv_work_free(w);
			pthread_cond_broadcast(&drv_cond);
		} else if (!w && s->dies) {
			break;
		} else {
			pthread_cond_wait(&drv_cond, &drv_lock);
		}
	}
	pthread_mutex_unlock(&drv_lock);
	return NULL;
}

static CUstream stream_new(CUcontext ctx, unsigned int flags)
{
	CUstream s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->magic = MAGIC_STREAM;
	s->ctx = ctx;
	s->flags = flags;
	s->last = &s->first;
	s->next = ctx->streams;
	ctx->streams = s;
	return s;
}

CUstream drv_stream(CUcontext ctx, CUstream s, bool ptsz)
{
	CUstream ret = s;

	if ((uintptr_t)s > 2)
		return s->magic == MAGIC_STREAM && !s->gone ? s : NULL;
	pthread_mutex_lock(&drv_lock);
	if (s == (CUstream)2 || (!s && ptsz)) {
		for (ret = ctx->streams; ret; ret = ret->next)
			if (ret->per_thread && !ret->gone && pthread_equal(ret->owner, pthread_self()))
				break;
		if (!ret) {
			ret = stream_new(ctx, 0);
			ret->per_thread = true;
			ret->owner = pthread_self();
		}
	} else {
		if (!ctx->def) {
			ctx->def = stream_new(ctx, 0);
			ctx->def->is_default = true;
		}
		ret = ctx->def;
	}
	pthread_mutex_unlock(&drv_lock);
	return ret;
}

static void depend(struct drv_work *w, CUstream on, uint64_t seq)
{
	if (on->done >= seq)
		return;
	w->deps = realloc(w->deps, (w->nr_deps + 1) * sizeof(*w->deps));
	if (!w->deps)
		abort();
	w->deps[w->nr_deps++] = (struct drv_dep){ on, seq };
}

static void enqueue(CUstream s, struct drv_work *w)
{
	if (s->is_default) {
		for (CUstream o = s->ctx->streams; o; o = o->next)
			if (o != s && !(o->flags & NON_BLOCKING))
				depend(w, o, o->queued);
	} else if (!(s->flags & NON_BLOCKING) && s->ctx->def) {
		depend(w, s->ctx->def, s->ctx->def->queued);
	}
	w->seq = ++s->queued;
	w->next = NULL;
	*s->last = w;
	s->last = &w->next;
	if (!s->started) {
		s->started = true;
		if (pthread_create(&s->worker, NULL, worker, s))
			abort();
	}
	pthread_cond_broadcast(&drv_cond);
}

int drv_submit(CUstream s, struct drv_work *w, bool wait)
{
	uint64_t seq;

	pthread_mutex_lock(&drv_lock);
	if (s->capture) {
		if (wait) {
			pthread_mutex_unlock(&drv_lock);
			drv_work_free(w);
			return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
		drv_graph_add(s->capture, w);
		pthread_mutex_unlock(&drv_lock);
		drv_work_free(w);
		return CUDA_SUCCESS;
	}
	enqueue(s, w);
	seq = s->queued;
	while (wait && s->done < seq)
		pthread_cond_wait(&drv_cond, &drv_lock);
	pthread_mutex_unlock(&drv_lock);
	return wait ? __atomic_load_n(&s->ctx->sticky, __ATOMIC_ACQUIRE) : CUDA_SUCCESS;
}

int drv_stream_wait(CUstream s)
{
	pthread_mutex_lock(&drv_lock);
	while (s->done < s->queued)
		pthread_cond_wait(&drv_cond, &drv_lock);
	pthread_mutex_unlock(&drv_lock);
	return __atomic_load_n(&s->ctx->sticky, __ATOMIC_ACQUIRE);
}

int drv_ctx_wait(CUcontext ctx)
{
	pthread_mutex_lock(&drv_lock);
	for (CUstream s = ctx->streams; s; s = s->next)
		while (s->done < s->queued)
			pthread_cond_wait(&drv_cond, &drv_lock);
	pthread_mutex_unlock(&drv_lock);
	return __atomic_load_n(&ctx->sticky, __ATOMIC_ACQUIRE);
}

void drv_ctx_streams_free(CUcontext ctx)
{
	pthread_mutex_lock(&drv_lock);
	for (CUstream s = ctx->streams; s; s = s->next)
		s->dies = s->gone = true;
	pthread_cond_broadcast(&drv_cond);
	pthread_mutex_unlock(&drv_lock);
	for (CUstream s = ctx->streams, next; s; s = next) {
		next = s->next;
		if (s->started)
			pthread_join(s->worker, NULL);
		free(s);
	}
	ctx->streams = ctx->def = NULL;
}

/* Finds a stream in the current context, or returns the error. */
static int find(CUstream *s, bool ptsz)
{
	CUcontext ctx;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	*s = drv_stream(ctx, *s, ptsz);
	return *s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

PUBLIC CUresult cuStreamCreate(CUstream *s, unsigned int flags)
{
	CUcontext ctx;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	pthread_mutex_lock(&drv_lock);
	*s = stream_new(ctx, flags);
	pthread_mutex_unlock(&drv_lock);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuStreamCreateWithPriority(CUstream *s, unsigned int flags, int priority)
{
	(void)priority;
	return cuStreamCreate(s, flags);
}

PUBLIC CUresult cuStreamDestroy_v2(CUstream s)
{
	int err = find(&s, false);

	if (err)
		return err;
	pthread_mutex_lock(&drv_lock);
	s->gone = s->dies = true; /* its worker ends when its work is done */
	pthread_cond_broadcast(&drv_cond);
	pthread_mutex_unlock(&drv_lock);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuStreamSynchronize(CUstream s)
{
	int err = find(&s, false);

	return err ? err : s->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : drv_stream_wait(s);
}

PUBLIC CUresult cuStreamSynchronize_ptsz(CUstream s)
{
	int err = find(&s, true);

	return err ? err : drv_stream_wait(s);
}

PUBLIC CUresult cuStreamQuery(CUstream s)
{
	int err = find(&s, false);

	if (err)
		return err;
	pthread_mutex_lock(&drv_lock);
	err = s->done < s->queued ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	pthread_mutex_unlock(&drv_lock);
	return err;
}

PUBLIC CUresult cuStreamGetFlags(CUstream s, unsigned int *flags)
{
	int err = find(&s, false);

	if (!err)
		*flags = s->flags;
	return err;
}

PUBLIC CUresult cuStreamGetCtx(CUstream s, CUcontext *ctx)
{
	int err = find(&s, false);

	if (!err)
		*ctx = s->ctx;
	return err;
}

PUBLIC CUresult cuLaunchHostFunc(CUstream s, CUhostFn fn, void *arg)
{
	int err = find(&s, false);
	struct drv_work *w;

	if (err)
		return err;
	w = drv_work_new(s->ctx, WORK_HOST);
	w->fn = fn;
	w->arg = arg;
	return drv_submit(s, w, false);
}

PUBLIC CUresult cuStreamAddCallback(CUstream s, CUstreamCallback fn, void *arg, unsigned int flags)
{
	int err = find(&s, false);
	struct drv_work *w;

	(void)flags;
	if (err)
		return err;
	w = drv_work_new(s->ctx, WORK_HOST);
	w->callback = fn;
	w->arg = arg;
	w->stream = s;
	return drv_submit(s, w, false);
}

/*
 * Events
 * ------------------------------------------------------------------------------------------------
 */

PUBLIC CUresult cuEventCreate(CUevent *ev, unsigned int flags)
{
	CUcontext ctx;
	int err = drv_enter(&ctx);

	(void)flags;
	if (!err && !(*ev = calloc(1, sizeof(**ev))))
		abort();
	return err;
}

PUBLIC CUresult cuEventDestroy_v2(CUevent ev)
{
	free(ev);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuEventRecord(CUevent ev, CUstream s)
{
	int err = find(&s, false);

	if (err)
		return err;
	pthread_mutex_lock(&drv_lock);
	ev->capture = s->capture;
	ev->stream = s;
	ev->seq = s->queued;
	ev->time = now();
	pthread_mutex_unlock(&drv_lock);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuEventRecordWithFlags(CUevent ev, CUstream s, unsigned int flags)
{
	(void)flags;
	return cuEventRecord(ev, s);
}

PUBLIC CUresult cuEventSynchronize(CUevent ev)
{
	int err;

	if (ev->capture)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	pthread_mutex_lock(&drv_lock);
	while (ev->stream && ev->stream->done < ev->seq)
		pthread_cond_wait(&drv_cond, &drv_lock);
	err = ev->stream ? ev->stream->ctx->sticky : 0;
	pthread_mutex_unlock(&drv_lock);
	return err;
}

PUBLIC CUresult cuEventQuery(CUevent ev)
{
	int err;

	pthread_mutex_lock(&drv_lock);
	err = ev->stream && ev->stream->done < ev->seq ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	pthread_mutex_unlock(&drv_lock);
	return err;
}

PUBLIC CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
	*ms = (float)((double)(to->time - from->time) / 1e6);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
	return cuEventElapsedTime_v2(ms, from, to);
}

/* In a capture, a stream that waits for an event joins the capture. */
PUBLIC CUresult cuStreamWaitEvent(CUstream s, CUevent ev, unsigned int flags)
{
	int err = find(&s, false);
	struct drv_work *w;

	(void)flags;
	if (err)
		return err;
	pthread_mutex_lock(&drv_lock);
	if (ev->capture) {
		if (!s->capture)
			s->capture = ev->capture;
	} else if (!s->capture && ev->stream && ev->stream != s) {
		w = drv_work_new(s->ctx, WORK_NOTHING);
		depend(w, ev->stream, ev->seq);
		enqueue(s, w);
	}
	pthread_mutex_unlock(&drv_lock);
	return CUDA_SUCCESS;
}
