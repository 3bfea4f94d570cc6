/* SPDX-License-Identifier: GPL-2.0-only */
/* `books.h`: the sums that `books.bpf.c` computes and bench_attribution.c prints. */
#ifndef TTMON_BENCH_BOOKS_H
#define TTMON_BENCH_BOOKS_H

enum books_group { BOOKS_LOAD, BOOKS_OTHERS, BOOKS_IDLE, BOOKS_GROUPS };

struct books {
	__u64 stays;
	__u64 unseen;	/* the task that leaves is not the one that came in: a switch was hidden */
	__u64 wall_ns;	/* between the two switches */
	__u64 clock_ns; /* the part of it that the run queue's clock counted */
	/*
	 * the part of that which was neither stolen nor used by interrupts, if the kernel distinguishes these
	 */
	__u64 task_ns;
	__u64 charged_ns; /* sum_exec_runtime */
};

#endif
