/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * walk.h: from frame to frame of a call stack, by the rules that the unwind tables have for the
 * instructions on it. Where the rules come from and where the stack is read is the caller's: a copy
 * and files in the daemon (unwind.h), the thread's own memory in libttmon. x86-64.
 *
 * Every frame in a result was found by a rule of a table, or by a frame pointer where there was no
 * table, which the result says (guessed). The walk ends at the first thing that is not known and says
 * why: it leaves nothing out and makes nothing up.
 */
#ifndef TTMON_UNWIND_WALK_H
#define TTMON_UNWIND_WALK_H

#include <ttmon/stack.h>

#include "lib/unwind/cfi.h"

#define TTMON_UW_FRAMES (TTMON_MAX_FRAMES + 4) /* of a result, at most */

/* What is known of an instruction. */
enum ttmon_uw_found {
	TTMON_UW_ROW,	  /* its rules */
	TTMON_UW_NO_ROW,  /* it is code, and no table covers it */
	TTMON_UW_BAD_ROW, /* its table is broken, or of a kind that nobody knows */
	TTMON_UW_NO_CODE, /* it lies in no executable mapping that is known */
};

/* What find() has to say. */
struct ttmon_uw_at {
	const struct ttmon_uw_row *row; /* it points to room, or to where it stays until find() is called again */
	struct ttmon_uw_row room;
	struct ttmon_uw_exprs exprs; /* needed where row->has_expr */
	uint32_t object;	     /* whose code it is, 0: nobody's */
};

struct ttmon_uw_ops {
	/* The rules at the instruction that has the byte at pc. */
	enum ttmon_uw_found (*find)(void *ctx, uint64_t pc, struct ttmon_uw_at *at);
	/* Does the byte at pc belong to code of a file? */
	bool (*is_code)(void *ctx, uint64_t pc);
	/* 8 bytes of the stack; false: they are not to be had. */
	ttmon_uw_read_fn read;
	/*
	 * The return address that belongs where pc was found, at slot: a tracer may have put another one
	 * there. NULL: as found.
	 */
	uint64_t (*repaired)(void *ctx, uint64_t pc, uint64_t slot);
	void *ctx;
};

struct ttmon_uw_result {
	uint64_t pc
		[TTMON_UW_FRAMES]; /* innermost first; return addresses but for the first of an exact pc, and behind a signal frame */
	uint64_t sp[TTMON_UW_FRAMES]; /* the stack pointer in each */
	uint64_t by_fp; /* bit i: the caller of frame i was found where a frame pointer would say, and by a table */
	unsigned int n;
	enum ttmon_stack_end end;
	uint32_t end_object; /* NO_TABLE, BAD_TABLE: whose; else 0 */
	bool guessed;	     /* at some frame a frame pointer was believed, for want of a table */
};

/*
 * regs: those of the innermost frame, its pc among them; exact: that is an instruction that is to run,
 * no return address. max: 1 to TTMON_UW_FRAMES frames.
 */
void ttmon_uw_walk(const struct ttmon_uw_ops *ops, const struct ttmon_uw_regs *regs, bool exact, unsigned int max,
		   struct ttmon_uw_result *ret);
/* One frame up, of which nothing is kept. False: it cannot be found. */
bool ttmon_uw_up(const struct ttmon_uw_ops *ops, struct ttmon_uw_regs *regs, bool exact);
/* Does a function find its caller at such an instruction as one with a frame pointer does? */
bool ttmon_uw_by_frame_pointer(const struct ttmon_uw_row *row);

/*
 * Are the n frames at fp, which a walk by frame pointers has found (cut: it stopped at its limit), the
 * same stack? They are where the tables have each of them, and each step was by a frame pointer. What
 * may be missing then are two frames of libc at the end, behind main() or a thread's function.
 */
bool ttmon_uw_confirms(const struct ttmon_uw_result *r, const uint64_t *fp, unsigned int n, bool cut);

#endif
