/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mapped.h: reads the unwind tables of an object of this process where the dynamic linker has mapped
 * them. It makes no system call and allocates nothing. The tables are trusted as far as the program's
 * exceptions trust them: the object stays mapped, and its tables are where its headers say. Everything
 * else is bounded, as in table.h. x86-64.
 */
#ifndef TTMON_UNWIND_MAPPED_H
#define TTMON_UNWIND_MAPPED_H

#include "lib/unwind/cfi.h"

/*
 * Gets the rules for the instruction that contains the byte at pc, from .eh_frame_hdr at hdr
 * (PT_GNU_EH_FRAME) of the object that occupies [start, end). exprs points into the object. Returns 0;
 * -ENOENT: no table covers it; -EBADMSG; -EOPNOTSUPP.
 */
int ttmon_uw_mapped_row(uint64_t hdr, uint64_t start, uint64_t end, uint64_t pc, struct ttmon_uw_row *row,
			struct ttmon_uw_exprs *exprs) _must_check;

#endif
