/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmpins.h: what the kernel itself says of pinned memory, to be held against what the calls said. Two
 * files of /proc, read on demand:
 *
 *	vmstat		nr_foll_pin_acquired, nr_foll_pin_released: pages that drivers pinned with
 *			pin_user_pages() and released, of the whole host since boot. Registered memory
 *			(cudaHostRegister) shows here. The kernel adds up its CPUs' shares about once
 *			a second, so the figures can be a few hundred pages behind.
 *	PID/status	RssShmem: memory that a driver allocates for a program (cudaHostAlloc) is
 *			shared memory and shows here, with all other shared memory of the process.
 *			VmPin: pins of io_uring, VFIO and RDMA; CUDA's driver does not count there.
 *
 * So no figure of the kernel is that of the pinned memory: driver-allocated memory is in no count of
 * pins, and every user of pin_user_pages() is in the count of the host. What the figures can do is
 * contradict.
 */
#ifndef TTMON_VMPINS_H
#define TTMON_VMPINS_H

#include "lib/base/util.h"

struct ttmon_vmpins_host {
	uint64_t acquired, released; /* pages, since boot */
};
/*
 * root: "/proc". -ENODATA: this kernel does not count (before 5.7, or no CONFIG_VM_EVENT_COUNTERS);
 * else the error of open(2) or read(2).
 */
int ttmon_vmpins_read_host(const char *root, struct ttmon_vmpins_host *ret) _must_check;

struct ttmon_vmpins_proc {
	uint64_t vm_pin, rss_shmem; /* bytes */
};
/* -ESRCH: it is gone, or has no memory (a kernel thread, a zombie). */
int ttmon_vmpins_read_proc(const char *root, uint32_t pid, struct ttmon_vmpins_proc *ret) _must_check;

/* Pinned memory according to the calls, of the processes that were read. */
struct ttmon_vmpins_told {
	uint64_t allocated; /* bytes: host_alloc and pool, which the driver allocates */
	uint64_t registered;
};
#define TTMON_VMPINS_SLACK_PAGES 512 /* how far the host's figures can lag behind */

enum ttmon_vmpins_verdict {
	TTMON_VMPINS_NOTHING,	  /* nothing is pinned, so there is nothing to compare */
	TTMON_VMPINS_AGREES,	  /* no contradiction, as far as the kernel's figures go */
	TTMON_VMPINS_NO_SHMEM,	  /* allocated memory is more than the shared memory of those processes */
	TTMON_VMPINS_NO_FOLL_PIN, /* registered memory is more than what pin_user_pages() holds */
	TTMON_VMPINS_NEITHER,	  /* both */
	TTMON_VMPINS_UNKNOWN,	  /* the kernel's figures could not be read */
	TTMON_VMPINS_VERDICTS
};
/* host NULL: this kernel does not count; page_size in bytes. */
enum ttmon_vmpins_verdict ttmon_vmpins_judge(const struct ttmon_vmpins_told *told, const struct ttmon_vmpins_host *host,
					     const struct ttmon_vmpins_proc *procs, uint64_t page_size);
/* For JSON ("agrees", ...), and as a sentence. NULL past the end. */
const char *ttmon_vmpins_verdict_name(unsigned int verdict);
const char *ttmon_vmpins_verdict_text(unsigned int verdict);

#endif
