// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_syscall.c: the cost of the system-call tracepoints of --pid and -- CMD runs (mmap, munmap,
 * mremap, brk) for all other processes: a different system call, in a process that is not traced, with
 * and without the tracepoints. The result is the median of the rounds.
 */
#include "kern.h"

#include <sys/syscall.h>

#define ROUNDS 15
#define CALLS  200000

static double per_call(void)
{
	uint64_t t = now_ns();

	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	return (double)(now_ns() - t) / CALLS;
}

static int with_tracepoints(double *ns)
{
	const struct ttmon_bpf_cfg cfg = { .mmap = true, .stack_frames = 16, .ring_bytes = 64 << 10 };
	struct ttmon_bpf *b = NULL;
	char why[256] = "";
	int err = ttmon_bpf_new(&cfg, &b, why, sizeof(why));

	if (!err)
		err = ttmon_bpf_attach(b, why, sizeof(why));
	if (err) {
		fprintf(stderr, "%s\n", why);
	} else {
		ttmon_bpf_activate(b, true);
		*ns = per_call();
	}
	ttmon_bpf_free(b);
	return err;
}

int main(void)
{
	double bare[ROUNDS], traced[ROUNDS], x, y;

	if (skipped("bench_syscall"))
		return 0;
	pin(0);
	for (int i = 0; i < ROUNDS; i++) {
		bare[i] = per_call();
		if (with_tracepoints(&traced[i]))
			return 1;
	}
	x = median(bare, ROUNDS);
	y = median(traced, ROUNDS);
	printf("getppid of a process nobody traces: %.0f ns, with the mmap tracepoints %.0f ns (+%.0f), ratio %.2f\n",
	       x, y, y - x, y / x);
	return 0;
}
