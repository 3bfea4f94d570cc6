/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernels.h: what kernels from 6.1 on name differently: registers, CPUID, timers. Each by what it
 * is called since the version beside it.
 */
#ifndef TTMON_RMID_KERNELS_H
#define TTMON_RMID_KERNELS_H

#include <linux/hrtimer.h>
#include <linux/version.h>

#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/processor.h>
#if __has_include(<asm/cpuid/api.h>)
#include <asm/cpuid/api.h> /* 6.16 */
#elif __has_include(<asm/cpuid.h>)
#include <asm/cpuid.h> /* 6.2; in asm/processor.h before */
#endif

static inline u64 ttmon_rdmsr(u32 msr)
{
	u64 v;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
	rdmsrq(msr, v);
#else
	rdmsrl(msr, v);
#endif
	return v;
}

static inline void ttmon_hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*fn)(struct hrtimer *timer),
				       clockid_t clock, enum hrtimer_mode mode)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, fn, clock, mode);
#else
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
#endif
}

#endif
