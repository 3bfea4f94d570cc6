/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stack.h: the copy that a probe makes of the top of a thread's stack, with the data that unwinding
 * needs. Shared by the BPF programs and the process that unwinds (daemon/io/unwind). It goes through a
 * ring of its own and is never recorded, because it contains memory of the program. Only x86-64.
 */
#ifndef TTMON_STACK_H
#define TTMON_STACK_H

#include <ttmon/event.h>
#include <ttmon/python.h>

#define TTMON_STACK_PAGE    4096UL
#define TTMON_STACK_BYTES   8192UL     /* that are copied, from the stack pointer up */
#define TTMON_STACK_PAGES   3	       /* that these can lie on */
#define TTMON_STACK_RETURNS 32	       /* return probes on the way that can be repaired */
#define TTMON_STACK_RING    (8U << 20) /* bytes of the ring: more than 580 copies */

/* Stacks are not copied; are copied; were copied, but unwinding has stopped. */
enum ttmon_stack_copying { TTMON_STACKS_OFF, TTMON_STACKS_ON, TTMON_STACKS_OVER };

/* Bits of flags. */
#define TTMON_STACK_EXACT  (1 << 0) /* ip is that of the probed instruction, not a return address */
#define TTMON_STACK_FP_CUT (1 << 1) /* there are more frames than fp has */

struct ttmon_stack_copy {
	__u64 id;    /* number that the event refers to */
	__u64 ts_ns; /* CLOCK_MONOTONIC, before it was copied */
	__u64 chain; /* hash of the frames at fp and of the process: the key in `chains` */
	__u32 tgid;
	__u32 tid;
	__u64 ip, sp, bp, bx, r12, r13, r14, r15;
	__u64 trampoline; /* address to which functions with a return probe return; 0: there is none */
	__u32 flags;
	__u32 pages; /* bit i: page i was copied; page 0 is that of sp */
	__u32 nret;
	__u32 nfp; /* frames found by frame pointers */
	/* Calls with a return probe, newest first: place of the return address, and its original value. */
	struct {
		__u64 sp, ra;
	} ret[TTMON_STACK_RETURNS];
	__u64 fp[TTMON_MAX_FRAMES];
	/* Python frames, innermost first; print is not 0 where the code object was sent. */
	__u32 npy;
	__u32 py_state;		/* enum ttmon_py_state */
	__u64 py_start, py_end; /* addresses of the interpreter's code */
	struct ttmon_py_frame py[TTMON_PY_FRAMES];
	/*
	 * Whole pages, so that an address lies at bytes[address - (sp & ~4095)]; those below sp are not
	 * copied.
	 */
	__u8 bytes[TTMON_STACK_PAGES * TTMON_STACK_PAGE];
};

#endif
