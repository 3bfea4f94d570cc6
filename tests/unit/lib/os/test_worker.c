// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_worker.c: work is done in order in another thread; the requesting thread goes on meanwhile, and
 * is notified of its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/os/thread.h"
#include "lib/os/worker.h"

#define JOBS 100

static pthread_t here;
static int order[3 * JOBS], n_order, ended;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

struct one {
	int number;
	bool elsewhere;
	struct ttmon_worker *again;
};

static void work(void *ctx)
{
	struct one *o = ctx;

	o->elsewhere = !pthread_equal(pthread_self(), here);
	order[n_order++] = o->number;
}

static void done(void *ctx)
{
	struct one *o = ctx;

	assert_true(o->elsewhere);
	assert_true(pthread_equal(pthread_self(), here));
	ended++;
	if (o->again) {
		struct ttmon_worker *w = o->again;

		o->again = NULL;
		assert_int_equal(ttmon_worker_do(w, work, done, o), 0);
	}
}

static void wait_at_gate(void *ctx)
{
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	work(ctx);
}

static struct ttmon_worker *begin(int *event_fd)
{
	struct ttmon_worker *w;

	here = pthread_self();
	n_order = ended = 0;
	*event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(*event_fd >= 0);
	assert_int_equal(ttmon_worker_new("test", *event_fd, &w), 0);
	return w;
}

static void test_order(void **state)
{
	struct one ones[JOBS];
	struct ttmon_worker *w;
	int fd;

	(void)state;
	w = begin(&fd);
	assert_true(ttmon_worker_is_idle(w));
	for (int i = 0; i < JOBS; i++) {
		/* Each second one makes another request from its done(). */
		ones[i] = (struct one){ .number = i, .again = i % 2 ? w : NULL };
		assert_int_equal(ttmon_worker_do(w, work, done, &ones[i]), 0);
	}
	ttmon_worker_drain(w);
	assert_true(ttmon_worker_is_idle(w));
	assert_int_equal(ended, JOBS + JOBS / 2);
	assert_int_equal(n_order, ended);
	for (int i = 0, next = 0; next < JOBS; i++)
		if (order[i] == next)
			next++;
	ttmon_worker_free(w);
	close(fd);
}

/* The work blocks, the requesting thread does not, and the descriptor shows when it is done. */
static void test_nobody_waits(void **state)
{
	struct one o = { .number = 7 };
	struct ttmon_worker *w;
	struct pollfd pfd;
	int fd;

	(void)state;
	w = begin(&fd);
	pfd = (struct pollfd){ .fd = fd, .events = POLLIN };
	pthread_mutex_lock(&gate);
	assert_int_equal(ttmon_worker_do(w, wait_at_gate, done, &o), 0);
	ttmon_worker_turn(w);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_int_equal(ended, 0);
	assert_false(ttmon_worker_is_idle(w));
	pthread_mutex_unlock(&gate);
	assert_int_equal(poll(&pfd, 1, 60000), 1);
	ttmon_worker_turn(w);
	assert_int_equal(ended, 1);
	ttmon_worker_free(w);
	close(fd);
}

/* Work in progress at the end is finished and reported. */
static void test_end(void **state)
{
	struct one ones[JOBS];
	struct ttmon_worker *w;
	int fd;

	(void)state;
	w = begin(&fd);
	for (int i = 0; i < JOBS; i++) {
		ones[i] = (struct one){ .number = i };
		assert_int_equal(ttmon_worker_do(w, work, done, &ones[i]), 0);
	}
	ttmon_worker_free(w);
	assert_int_equal(ended, JOBS);
	/* One that never had work. */
	assert_int_equal(ttmon_worker_new("test", fd, &w), 0);
	ttmon_worker_free(w);
	ttmon_worker_free(NULL);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_nobody_waits),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
