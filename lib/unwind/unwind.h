/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * unwind.h: computes the call stack of a thread from its registers, a copy of the top of its stack,
 * and the unwind tables of its mapped files (walk.h specifies the result). x86-64.
 */
#ifndef TTMON_UNWIND_H
#define TTMON_UNWIND_H

#include "lib/unwind/table.h"
#include "lib/unwind/walk.h"

/* What is at an address. */
enum ttmon_uw_place {
	TTMON_UW_NOWHERE,   /* no known executable mapping */
	TTMON_UW_NO_FILE,   /* a mapping without a file: code that the program generated */
	TTMON_UW_IN_OBJECT, /* a file: *object and *off are set */
};

struct ttmon_uw_files {
	enum ttmon_uw_place (*locate)(void *ctx, uint64_t pc, uint32_t *object, uint64_t *off);
	/* Returns the tables of this object; NULL: not available. They must stay valid until the walk ends. */
	struct ttmon_uw_table *(*table)(void *ctx, uint32_t object);
	void *ctx;
};

struct ttmon_uw;

/*
 * Number of cached rows, a power of two: those of the instructions used last, 112 bytes each. -ENOMEM.
 */
#define TTMON_UW_ROWS 32768u
int ttmon_uw_new(size_t rows, struct ttmon_uw **ret) _must_check;
void ttmon_uw_free(struct ttmon_uw *u);

/* max: the most frames, 1 to TTMON_UW_FRAMES. */
void ttmon_uw_unwind(struct ttmon_uw *u, const struct ttmon_stack_copy *s, const struct ttmon_uw_files *files,
		     unsigned int max, struct ttmon_uw_result *ret);

#endif
