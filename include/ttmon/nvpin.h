/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nvpin.h: functions of NVIDIA's kernel module that pin, allocate and map host memory, which
 * --nvidia-pins counts. BPF and daemon.
 *
 * X(id, NAME, function, arg, unit)
 *
 *   arg    position of the argument with the amount, from 1; 0: there is none
 *   unit   of that argument: "pages" (of the kernel), "bytes", "" without one
 *
 * All return an NV_STATUS, 0 on success. Prototypes: open-gpu-kernel-modules,
 * kernel-open/nvidia/os-mlock.c, os-interface.c and nv-dma.c; RmP2PDmaMapPagesCoherent is a static
 * function of the resource manager, which a build may have inlined.
 */
#ifndef TTMON_NVPIN_H
#define TTMON_NVPIN_H

#ifdef __bpf__
/* vmlinux.h defines these types */
#else
#include <linux/types.h>
#endif

#define TTMON_NVPIN_TABLE(X)                             \
	X(0, LOCK, "os_lock_user_pages", 2, "pages")     \
	X(1, UNLOCK, "os_unlock_user_pages", 1, "pages") \
	X(2, ALLOC, "os_alloc_mem", 2, "bytes")          \
	X(3, DMA_MAP, "nv_dma_map_alloc", 2, "pages")    \
	X(4, P2P_MAP, "RmP2PDmaMapPagesCoherent", 0, "")

enum ttmon_nvpin_fn {
#define X(id, NAME, function, arg, unit) TTMON_NVPIN_##NAME = id,
	TTMON_NVPIN_TABLE(X)
#undef X
		TTMON_NVPIN_MAX
};

/* Sums of one function for the whole host, since its probes were first attached. */
struct ttmon_nvpin_sums {
	__u64 calls;
	/*
	 * lower than the number of calls while some run, or if more ran at a time than the kernel or ttmond
	 * has room for
	 */
	__u64 returned;
	__u64 failed; /* of those returned */
	__u64 amount; /* sum over the calls that returned without an error */
};

#endif
