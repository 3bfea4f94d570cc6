/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * unwind.h: the call stack of a thread out of its registers, a copy of the top of its stack, and the unwind tables of the files that
 * it has mapped. x86-64.
 *
 * Every frame in a result was found by a rule of a table, or by a frame pointer where there was no table, which the result says
 * (guessed). The walk ends at the first thing that is not known and says why: it leaves nothing out and makes nothing up.
 */
#ifndef TTMON_UNWIND_H
#define TTMON_UNWIND_H

#include <ttmon/stack.h>

#include "lib/unwind/table.h"

#define TTMON_UW_FRAMES (TTMON_MAX_FRAMES + 4) /* of a result, at most */

/* Where an address lies. */
enum ttmon_uw_place {
	TTMON_UW_NOWHERE,   /* in no executable mapping that is known */
	TTMON_UW_NO_FILE,   /* in one that has no file: code that the program made itself */
	TTMON_UW_IN_OBJECT, /* in a file: *object and *off say where */
};

struct ttmon_uw_ops {
	enum ttmon_uw_place (*locate)(void *ctx, uint64_t pc, uint32_t *object, uint64_t *off);
	/* The tables of this object; NULL: they cannot be had. They stay valid until the walk has ended. */
	struct ttmon_uw_table *(*table)(void *ctx, uint32_t object);
	void *ctx;
};

struct ttmon_uw_result {
	uint64_t pc
		[TTMON_UW_FRAMES]; /* innermost first; return addresses but for the first of an exact copy, and behind a signal frame */
	uint64_t by_fp; /* bit i: the caller of frame i was found where a frame pointer would say, and by a table */
	unsigned int n;
	enum ttmon_stack_end end;
	uint32_t end_object; /* NO_TABLE, BAD_TABLE: whose; else 0 */
	bool guessed;	     /* at some frame a frame pointer was believed, for want of a table */
};

struct ttmon_uw;

/* Rows that are kept, a power of two: those of the instructions that were on stacks last, 112 bytes each. -ENOMEM. */
#define TTMON_UW_ROWS 32768u
int ttmon_uw_new(size_t rows, struct ttmon_uw **ret) _must_check;
void ttmon_uw_free(struct ttmon_uw *u);

/* max: frames, 1 to TTMON_UW_FRAMES. */
void ttmon_uw_walk(struct ttmon_uw *u, const struct ttmon_stack_copy *s, const struct ttmon_uw_ops *ops,
		   unsigned int max, struct ttmon_uw_result *ret);

/*
 * Are the n frames at fp, which a walk by frame pointers has found (cut: it stopped at its limit), the same stack? They are where the
 * tables have each of them, and each step was by a frame pointer. What may be missing then are two frames of libc at the end, behind
 * main() or a thread's function.
 */
bool ttmon_uw_confirms(const struct ttmon_uw_result *r, const uint64_t *fp, unsigned int n, bool cut);

#endif
