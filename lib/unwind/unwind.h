/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * unwind.h: the call stack of a thread out of its registers, a copy of the top of its stack, and the
 * unwind tables of the files that it has mapped (walk.h says what is promised of it). x86-64.
 */
#ifndef TTMON_UNWIND_H
#define TTMON_UNWIND_H

#include "lib/unwind/table.h"
#include "lib/unwind/walk.h"

/* Where an address lies. */
enum ttmon_uw_place {
	TTMON_UW_NOWHERE,   /* in no executable mapping that is known */
	TTMON_UW_NO_FILE,   /* in one that has no file: code that the program made itself */
	TTMON_UW_IN_OBJECT, /* in a file: *object and *off say where */
};

struct ttmon_uw_files {
	enum ttmon_uw_place (*locate)(void *ctx, uint64_t pc, uint32_t *object, uint64_t *off);
	/* The tables of this object; NULL: they cannot be had. They stay valid until the walk has ended. */
	struct ttmon_uw_table *(*table)(void *ctx, uint32_t object);
	void *ctx;
};

struct ttmon_uw;

/*
 * Rows that are kept, a power of two: those of the instructions that were on stacks last, 112 bytes
 * each. -ENOMEM.
 */
#define TTMON_UW_ROWS 32768u
int ttmon_uw_new(size_t rows, struct ttmon_uw **ret) _must_check;
void ttmon_uw_free(struct ttmon_uw *u);

/* max: frames, 1 to TTMON_UW_FRAMES. */
void ttmon_uw_unwind(struct ttmon_uw *u, const struct ttmon_stack_copy *s, const struct ttmon_uw_files *files,
		     unsigned int max, struct ttmon_uw_result *ret);

#endif
