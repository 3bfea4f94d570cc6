// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_wake.c: the cost of waking up alone: `bench_wake [MS [SECONDS]]`. A thread with the hot
 * thread's priority waits in epoll_wait() for 15 ms (or MS) at a time and does nothing else. The
 * result is its CPU time as the kernel counts it, including system call, timer and switch. It is the
 * floor of quiet.py. Without the right to that priority (not root) it is an ordinary thread.
 */
#include <stdlib.h>
#include <sys/epoll.h>

#include "lib/base/util.h"
#include "lib/os/clock.h"
#include "lib/os/soon.h"

int main(int argc, char **argv)
{
	int ms = argc > 1 ? atoi(argv[1]) : 15, seconds = argc > 2 ? atoi(argv[2]) : 3;
	int fd = epoll_create1(EPOLL_CLOEXEC), wakes = ms > 0 ? seconds * 1000 / ms : 0;
	uint64_t began, spent;
	double cpus;

	if (fd < 0 || wakes <= 0) {
		fprintf(stderr, "usage: bench_wake [MS [SECONDS]]\n");
		return 2;
	}
	(void)ttmon_thread_soon();
	began = ttmon_mono_ns();
	for (int i = 0; i < wakes; i++) {
		struct epoll_event ev;

		(void)!epoll_wait(fd, &ev, 1, ms);
	}
	spent = ttmon_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
	printf("%.1f us a wake-up, %.3f %% of the host\n", (double)spent / 1e3 / wakes,
	       (double)spent / (double)(ttmon_mono_ns() - began) / cpus * 100);
	return 0;
}
