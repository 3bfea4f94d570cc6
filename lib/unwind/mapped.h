/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mapped.h: the unwind tables of an object of this process, as the dynamic linker has mapped them. No
 * system call, no memory is allocated. They are trusted as the program's exceptions trust them: the
 * object stays where it is, and what it says of itself is there. Everything else is bounded, as in
 * table.h. x86-64.
 */
#ifndef TTMON_UNWIND_MAPPED_H
#define TTMON_UNWIND_MAPPED_H

#include "lib/unwind/cfi.h"

/*
 * The rules at the instruction that has the byte at pc, by .eh_frame_hdr at hdr (PT_GNU_EH_FRAME) of
 * the object that lies in [start, end). exprs points into the object. -ENOENT: nothing covers it;
 * -EBADMSG, -EOPNOTSUPP.
 */
int ttmon_uw_mapped_row(uint64_t hdr, uint64_t start, uint64_t end, uint64_t pc, struct ttmon_uw_row *row,
			struct ttmon_uw_exprs *exprs) _must_check;

#endif
