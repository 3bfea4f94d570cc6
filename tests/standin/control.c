// SPDX-License-Identifier: GPL-2.0-only
/*
 * control.c: configured results of the stand-in libraries: which call fails with which error, how long
 * it takes, and a hook that runs inside it (to leave it by longjmp or pthread_exit, for instance).
 *
 * STANDIN_LINGER=500: the program stays for 500 ms after its end, so that a tracer can still read its
 * mappings.
 *
 * They are set by exported functions (standin.h) or by the environment:
 * STANDIN_FAIL="cudaMalloc=2:3,cudaFree=1" (error:count, without a count for ever),
 * STANDIN_DELAY="cudaHostAlloc=12000" (microseconds). Without any of these a call costs one relaxed
 * load.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model.h"
#include "standin.h"

#define MAX_RULES 32

struct rule {
	char fn[56];
	int err;
	_Atomic int left; /* -1: for ever */
	unsigned int delay_us;
	void (*hook)(void *arg);
	void *arg;
};

static struct rule rules[MAX_RULES];
static atomic_int nr_rules;
static pthread_mutex_t rules_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t env_once = PTHREAD_ONCE_INIT;
static __thread int fail_next, last_error;

__attribute__((destructor)) static void linger(void)
{
	const char *ms = getenv("STANDIN_LINGER");

	if (ms)
		usleep((useconds_t)atoi(ms) * 1000);
}

/*
 * Returns the rule of a function, which is created if needed. The caller holds rules_lock. NULL: no
 * room.
 */
static struct rule *rule_of(const char *fn)
{
	int n = atomic_load(&nr_rules);

	for (int i = 0; i < n; i++)
		if (!strcmp(rules[i].fn, fn))
			return &rules[i];
	if (n == MAX_RULES || strlen(fn) >= sizeof(rules[0].fn))
		return NULL;
	strcpy(rules[n].fn, fn);
	atomic_store(&nr_rules, n + 1);
	return &rules[n];
}

static void set_fail(const char *fn, int err, int count)
{
	struct rule *r;

	pthread_mutex_lock(&rules_lock);
	r = rule_of(fn);
	if (r) {
		r->err = err;
		atomic_store(&r->left, count);
	}
	pthread_mutex_unlock(&rules_lock);
}

static void set_delay(const char *fn, unsigned int us)
{
	struct rule *r;

	pthread_mutex_lock(&rules_lock);
	r = rule_of(fn);
	if (r)
		r->delay_us = us;
	pthread_mutex_unlock(&rules_lock);
}

static void read_env(const char *name, bool fail)
{
	const char *text = getenv(name);
	char *copy, *save = NULL;

	copy = text ? strdup(text) : NULL;
	for (char *item = copy ? strtok_r(copy, ",", &save) : NULL; item; item = strtok_r(NULL, ",", &save)) {
		char *value = strchr(item, '='), *count;

		if (!value)
			continue;
		*value++ = '\0';
		count = strchr(value, ':');
		if (fail)
			set_fail(item, atoi(value), count ? atoi(count + 1) : -1);
		else
			set_delay(item, (unsigned int)atoi(value));
	}
	free(copy);
}

static void read_environment(void)
{
	read_env("STANDIN_FAIL", true);
	read_env("STANDIN_DELAY", false);
}

void STANDIN_NAME(fail)(const char *fn, int err, int count)
{
	set_fail(fn, err, count);
}

void STANDIN_NAME(delay)(const char *fn, unsigned int us)
{
	set_delay(fn, us);
}

void STANDIN_NAME(hook)(const char *fn, void (*hook)(void *arg), void *arg)
{
	struct rule *r;

	pthread_mutex_lock(&rules_lock);
	r = rule_of(fn);
	if (r) {
		r->arg = arg;
		r->hook = hook;
	}
	pthread_mutex_unlock(&rules_lock);
}

void STANDIN_NAME(hold)(int on)
{
	model_hold(on);
}

void STANDIN_NAME(fail_next)(int err)
{
	fail_next = err;
}

static int take_failure(struct rule *r)
{
	int left = atomic_load(&r->left);

	while (left) {
		if (left < 0 || atomic_compare_exchange_weak(&r->left, &left, left - 1))
			return r->err;
	}
	return 0;
}

void model_set_last_error(int err)
{
	last_error = err;
}

int model_last_error(void)
{
	return last_error;
}

int model_enter(const char *fn)
{
	int err = fail_next, n;

	pthread_once(&env_once, read_environment);
	fail_next = 0;
	n = atomic_load_explicit(&nr_rules, memory_order_relaxed);
	for (int i = 0; i < n; i++) {
		struct rule *r = &rules[i];

		if (strcmp(r->fn, fn) && strcmp(r->fn, "*"))
			continue;
		if (r->delay_us) {
			struct timespec ts = { r->delay_us / 1000000, (long)(r->delay_us % 1000000) * 1000 };

			nanosleep(&ts, NULL);
		}
		if (r->hook)
			r->hook(r->arg);
		if (!err)
			err = take_failure(r);
	}
	if (err)
		last_error = err;
	return err;
}
