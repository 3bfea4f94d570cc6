// SPDX-License-Identifier: GPL-2.0-only
/* stack.bpf.c: the loops over the frames of a call stack; see stack.bpf.h. */
#include "stack.bpf.h"

/*
 * Follows the frame records { frame pointer of the caller, return address } from fp on, up to max
 * frames. Each record must be above the one before; low is the stack pointer.
 *
 * bpf_get_stack() would do this too. But each chain ends at an invalid address in the end, which costs
 * it a page fault (0.55 us, as much as the rest of a probed allocation). And if code without frame
 * pointers uses the register for data, it takes that data for frames.
 *
 * Returns the number of frames. Returns 0 if a return address was replaced by the kernel's trampoline,
 * because a caller has a return probe.
 */
GLOBAL_SUBPROG u32 walk_frames(struct task_state *t, u64 fp, u64 low, u32 max)
{
	u64 trampoline = trampoline_of_current();
	u64 record[2]; /* on the stack: the verifier takes longer to check a read into a map's memory */
	u32 n;

	if (!t)
		return 0;
	t->trampoline = trampoline;
	for (n = 1; n < TTMON_MAX_FRAMES && n < max; n++) {
		if (fp - low >= FRAME_MAX || fp & 7 || bpf_probe_read_user(record, sizeof(record), (void *)fp))
			break;
		if (record[1] == trampoline)
			return 0;
		t->frames[n] = RETURN_ADDRESS(record[1]);
		low = fp + sizeof(record);
		fp = record[0];
	}
	return n;
}

/* Returns a hash of the frames; seed identifies the thread and its program. */
GLOBAL_SUBPROG u64 chain_of(struct task_state *t, u32 n, u64 seed)
{
	u64 h = seed;

	if (!t)
		return h;
	for (u32 i = 0; i < TTMON_MAX_FRAMES && i < n; i++) {
		h = (h ^ t->frames[i]) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 29;
	}
	return h;
}
