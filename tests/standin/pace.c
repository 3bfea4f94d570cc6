// SPDX-License-Identifier: GPL-2.0-only
/*
 * pace.c: copies at a fixed rate for a fixed time: `pace RATE SECONDS`. Up to 1,000 copies per second
 * are made one by one, more in equal parts once a millisecond. Each copies 64 bytes from one pinned
 * buffer. Prints "ready PID" when the first copy is made, and the number of copies at the end.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cuda_api.h"

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	double rate = argc == 3 ? atof(argv[1]) : 0, seconds = argc == 3 ? atof(argv[2]) : 0;
	uint64_t start, made = 0;
	void *host, *dev;

	if (rate <= 0 || seconds <= 0) {
		fprintf(stderr, "usage: pace RATE SECONDS\n");
		return 2;
	}
	if (cudaHostAlloc(&host, 4096, cudaHostAllocDefault) || cudaMalloc(&dev, 4096) ||
	    cudaMemcpy(dev, host, 64, cudaMemcpyHostToDevice))
		return 4;
	printf("ready %d\n", getpid());
	fflush(stdout);
	start = now_ns();
	while (now_ns() - start < (uint64_t)(seconds * 1e9)) {
		uint64_t due = (uint64_t)((double)(now_ns() - start) * rate / 1e9), next;

		for (; made < due; made++)
			if (cudaMemcpy(dev, host, 64, cudaMemcpyHostToDevice))
				return 4;
		next = start + (uint64_t)((double)(made + 1) * 1e9 / rate);
		if (next < now_ns() + 1000000)
			next = now_ns() + 1000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
				&(struct timespec){ .tv_sec = (time_t)(next / 1000000000),
						    .tv_nsec = (long)(next % 1000000000) },
				NULL);
	}
	printf("{\"copies\": %llu}\n", (unsigned long long)made + 1);
	return 0;
}
