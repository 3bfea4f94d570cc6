/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk.h: walks a call stack frame by frame, by the rules that unwind tables have for its
 * instructions. The caller provides the rules and the stack: a copy and files in the daemon
 * (unwind.h), the thread's own memory in libttmon. x86-64.
 *
 * Every frame of a result was found by a rule of a table, or by a frame pointer if there was no table;
 * the result then says so (guessed). The walk ends at the first unknown step and says why: it never
 * skips or invents a frame.
 */
#ifndef TTMON_UNWIND_WALK_H
#define TTMON_UNWIND_WALK_H

#include <ttmon/stack.h>

#include "lib/unwind/cfi.h"

#define TTMON_UW_FRAMES (TTMON_MAX_FRAMES + 4) /* the most frames of a result */

/* What is known of an instruction. */
enum ttmon_uw_found {
	TTMON_UW_ROW,	  /* its rules */
	TTMON_UW_NO_ROW,  /* it is code that no table covers */
	TTMON_UW_BAD_ROW, /* its table is damaged, or of an unknown kind */
	TTMON_UW_NO_CODE, /* it is in no known executable mapping */
};

/* The result of find(). */
struct ttmon_uw_at {
	const struct ttmon_uw_row *row; /* points to room, or to memory that is valid until the next call of find() */
	struct ttmon_uw_row room;
	struct ttmon_uw_exprs exprs; /* used if row->has_expr */
	uint32_t object;	     /* object of the code, 0: none */
};

struct ttmon_uw_ops {
	/* Finds the rules for the instruction that contains the byte at pc. */
	enum ttmon_uw_found (*find)(void *ctx, uint64_t pc, struct ttmon_uw_at *at);
	/* Returns whether the byte at pc is code of a file. */
	bool (*is_code)(void *ctx, uint64_t pc);
	/* Reads 8 bytes of the stack; false: not available. */
	ttmon_uw_read_fn read;
	/*
	 * Returns the original return address for pc, which was found at slot: a tracer may have replaced it.
	 * NULL: pc is used as found.
	 */
	uint64_t (*repaired)(void *ctx, uint64_t pc, uint64_t slot);
	void *ctx;
};

struct ttmon_uw_result {
	/* innermost first; return addresses, except the first of an exact pc and the one behind a signal frame */
	uint64_t pc[TTMON_UW_FRAMES];
	uint64_t sp[TTMON_UW_FRAMES]; /* the stack pointer in each */
	uint64_t by_fp; /* bit i: the caller of frame i was found where a frame pointer would say, and by a table */
	unsigned int n;
	enum ttmon_stack_end end;
	uint32_t end_object; /* for NO_TABLE and BAD_TABLE: the object; else 0 */
	bool guessed;	     /* a frame pointer was used at some frame because there was no table */
};

/*
 * regs: registers of the innermost frame, including its pc; exact: the pc is the next instruction, not
 * a return address. max: 1 to TTMON_UW_FRAMES frames.
 */
void ttmon_uw_walk(const struct ttmon_uw_ops *ops, const struct ttmon_uw_regs *regs, bool exact, unsigned int max,
		   struct ttmon_uw_result *ret);
/* Moves one frame up without recording it. Returns false if the caller cannot be found. */
bool ttmon_uw_up(const struct ttmon_uw_ops *ops, struct ttmon_uw_regs *regs, bool exact);
/* Returns whether the function finds its caller at this instruction by the frame pointer. */
bool ttmon_uw_by_frame_pointer(const struct ttmon_uw_row *row);

/*
 * Returns whether the n frames at fp, from a walk by frame pointers (cut: it stopped at its limit),
 * are the same stack: they agree with the tables, and each step was by frame pointer. Only two frames
 * of libc at the end, behind main() or a thread's first function, may be missing.
 */
bool ttmon_uw_confirms(const struct ttmon_uw_result *r, const uint64_t *fp, unsigned int n, bool cut);

#endif
