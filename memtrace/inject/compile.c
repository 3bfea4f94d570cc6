// SPDX-License-Identifier: GPL-2.0-only
/*
 * compile.c: machine code of a rewritten text, made before a module of the program depends on it.
 * Since CUDA 12 modules are loaded lazily by default: a text that the driver's compiler refuses then
 * fails at cuKernelGetFunction() or at the first launch, where the original cannot be taken any more.
 *
 * The driver's linker compiles; a text that cannot be linked without a change to the program's own
 * kernels (ttmon_ptx_opts.apart) is loaded for a trial. Both in a thread of its own, so that a
 * compiler that takes too long can be left behind.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memtrace/inject/inj_mod.h"

/* CU_JIT_*: the options that are set here; see ttmon_inj_jit_take() for the program's. */
enum { OPT_REGISTERS, OPT_ERROR = 5, OPT_ERROR_BYTES };
#define INPUT_PTX 1
/*
 * A kernel has the registers of what it calls: so many leave the occupancy of most kernels as it is,
 * and blocks of 1,024 threads can be launched. The recorder keeps some values in memory instead.
 */
#define RECORDER_REGISTERS 40

/* One compilation. The thread frees it if the caller no longer waits. */
struct job {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done, left; /* left: the caller no longer waits */
	char *ptx, *recorder, *names;
	void *ctx;
	struct ttmon_inj_jit jit;
	int err; /* the driver's */
	void *cubin;
	size_t size;
	char log[TTMON_INJ_LOG];
};

/* Compilations that were left behind and still run. The process must not end under them. */
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left_fewer = PTHREAD_COND_INITIALIZER;
static unsigned int nr_left;

void ttmon_inj_jit_take(struct ttmon_inj_jit *j, unsigned int n, const int *opts, void *const *vals)
{
	/*
	 * Registers, threads, optimization, target (8, 9), debug information, lines, cache, arithmetic
	 * (21..24), position independence and limits of blocks (30..33). Buffers and sizes of logs (2..6) are
	 * the program's, and what is left is of linking alone.
	 */
	static const char taken[] = { 0, 1, 7, 8, 9, 11, 13, 14, 21, 22, 23, 24, 30, 31, 32, 33 };

	*j = (struct ttmon_inj_jit){ 0 };
	for (unsigned int i = 0; i < n; i++) {
		j->symbols |= opts[i] >= 17 && opts[i] <= 19;
		for (size_t k = 0; k < sizeof(taken) && j->n < TTMON_INJ_JIT_MAX; k++) {
			if (opts[i] != taken[k])
				continue;
			j->opts[j->n] = opts[i];
			j->vals[j->n++] = vals[i];
		}
	}
}

static void job_free(struct job *j)
{
	if (!j)
		return;
	pthread_mutex_destroy(&j->lock);
	pthread_cond_destroy(&j->changed);
	free(j->ptx);
	free(j->recorder);
	free(j->names);
	free(j->cubin);
	free(j);
}

static void link_with_recorder(struct job *j, unsigned int n, int *opts, void **vals)
{
	int max_opt = OPT_REGISTERS;
	void *max = (void *)RECORDER_REGISTERS, *state = NULL, *cubin = NULL;
	size_t size = 0;

	j->err = CALL(cuLinkCreate_v2, n, opts, vals, &state);
	if (j->err)
		return;
	j->err = CALL(cuLinkAddData_v2, state, INPUT_PTX, j->ptx, strlen(j->ptx) + 1, "kernels", 0, NULL, NULL);
	if (!j->err)
		j->err = CALL(cuLinkAddData_v2, state, INPUT_PTX, j->recorder, strlen(j->recorder) + 1, "recorder", 1,
			      &max_opt, &max);
	if (!j->err)
		j->err = CALL(cuLinkComplete, state, &cubin, &size);
	if (!j->err && cubin && size) {
		j->cubin = malloc(size);
		if (j->cubin)
			memcpy(j->cubin, cubin, j->size = size);
	}
	CALL(cuLinkDestroy, state);
}

/* The driver keeps what it compiled in its cache: the program's own load finds it there. */
static void load_for_trial(struct job *j, unsigned int n, int *opts, void **vals)
{
	void *mod = NULL, *f;

	j->err = CALL(cuModuleLoadDataEx, &mod, j->ptx, n, opts, vals);
	if (j->err)
		return;
	for (char *name = j->names, *rest; name && *name && !j->err; name = rest) {
		rest = strchr(name, '\n');
		if (rest)
			*rest++ = '\0';
		j->err = CALL(cuModuleGetFunction, &f, mod, name);
	}
	CALL(cuModuleUnload, mod);
}

static void compile(struct job *j)
{
	int opts[TTMON_INJ_JIT_MAX + 2];
	void *vals[TTMON_INJ_JIT_MAX + 2];
	unsigned int n = j->jit.n;

	memcpy(opts, j->jit.opts, n * sizeof(*opts));
	memcpy(vals, j->jit.vals, n * sizeof(*vals));
	opts[n] = OPT_ERROR;
	vals[n++] = j->log;
	opts[n] = OPT_ERROR_BYTES;
	vals[n++] = (void *)(uintptr_t)(TTMON_INJ_LOG - 1);
	if (j->recorder)
		link_with_recorder(j, n, opts, vals);
	else
		load_for_trial(j, n, opts, vals);
}

static void *run(void *arg)
{
	struct job *j = arg;
	void *ctx = NULL;
	bool left;

	j->err = CALL(cuCtxPushCurrent_v2, j->ctx);
	if (!j->err) {
		compile(j);
		CALL(cuCtxPopCurrent_v2, &ctx);
	}
	pthread_mutex_lock(&j->lock);
	j->done = true;
	left = j->left;
	pthread_cond_signal(&j->changed);
	pthread_mutex_unlock(&j->lock);
	if (!left)
		return NULL;
	job_free(j);
	pthread_mutex_lock(&left_lock);
	nr_left--;
	pthread_cond_broadcast(&left_fewer);
	pthread_mutex_unlock(&left_lock);
	return NULL;
}

/* At exit, before the driver's own end: it was registered later. */
static void wait_for_left(void)
{
	pthread_mutex_lock(&left_lock);
	while (nr_left)
		pthread_cond_wait(&left_fewer, &left_lock);
	pthread_mutex_unlock(&left_lock);
}

static void leave(void)
{
	static bool registered;

	pthread_mutex_lock(&left_lock);
	nr_left++;
	if (!registered)
		atexit(wait_for_left);
	registered = true;
	pthread_mutex_unlock(&left_lock);
}

/* False: the time is over, and the job is the thread's. */
static bool wait_for(struct job *j, uint64_t until_ns)
{
	struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000) };
	bool done;

	pthread_mutex_lock(&j->lock);
	while (!j->done && !pthread_cond_timedwait(&j->changed, &j->lock, &until))
		;
	done = j->done;
	if (!done) {
		j->left = true;
		leave();
	}
	pthread_mutex_unlock(&j->lock);
	return done;
}

/* With no signal of the program's in it. False: there is no thread. */
static bool start(struct job *j)
{
	pthread_attr_t attr;
	sigset_t all, was;
	pthread_t thread;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	ok = !pthread_create(&thread, &attr, run, j);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return ok;
}

static struct job *job_new(const char *ptx, const char *recorder, const char *names, const struct ttmon_inj_jit *jit)
{
	struct job *j = calloc(1, sizeof(*j));
	pthread_condattr_t attr;

	if (!j)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->changed, &attr);
	pthread_condattr_destroy(&attr);
	j->ptx = strdup(ptx);
	j->recorder = recorder ? strdup(recorder) : NULL;
	j->names = strdup(names);
	j->ctx = ttmon_inj_current();
	j->jit = *jit;
	if (j->ptx && j->names && (j->recorder || !recorder))
		return j;
	job_free(j);
	return NULL;
}

int ttmon_inj_compile(const char *ptx, const char *recorder, const char *names, const struct ttmon_inj_jit *jit,
		      uint64_t until_ns, struct ttmon_inj_code *ret)
{
	struct job *j = NULL;
	int err = 0;

	*ret = (struct ttmon_inj_code){ 0 };
	if (jit->symbols || (recorder && !REAL(cuLinkCreate_v2)) || !ttmon_inj_current())
		return -ENOSYS;
	j = job_new(ptx, recorder, names, jit);
	if (!j || !start(j)) {
		job_free(j);
		return -ENOMEM;
	}
	if (!wait_for(j, until_ns))
		return -ETIMEDOUT;
	ret->err = j->err;
	memcpy(ret->log, j->log, sizeof(ret->log));
	if (j->err)
		err = -EBADMSG;
	else if (recorder && !j->cubin)
		err = -ENOMEM;
	ret->cubin = j->cubin;
	ret->size = j->size;
	j->cubin = NULL;
	job_free(j);
	return err;
}
