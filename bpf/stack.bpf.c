// SPDX-License-Identifier: GPL-2.0-only
/* stack.bpf.c: the loops over the frames of a call stack: see stack.bpf.h. */
#include "stack.bpf.h"

/*
 * From fp on, with the stack pointer at low, follow the frame records { frame pointer of the caller,
 * return address }, each above the one before, to at most max frames. bpf_get_stack() does it too, but
 * a chain that ends in nothing, as every one does at last, costs it a page fault (0.55 us, as much as
 * the rest of a probed allocation), and a frame pointer that code without frames uses for data gives
 * it frames of data. Returns the number of frames, or 0 where the kernel has put the address of its
 * trampoline: a return probe further up.
 */
GLOBAL_SUBPROG u32 walk_frames(struct task_state *t, u64 fp, u64 low, u32 max)
{
	u64 trampoline = trampoline_of_current();
	u64 record[2]; /* on the stack: a read into a map's memory is checked longer */
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

/* A hash of the frames, and of whose they are. */
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
