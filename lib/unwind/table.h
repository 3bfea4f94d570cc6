/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * table.h: the unwind tables of one ELF file: .eh_frame by its .eh_frame_hdr, or, where there is none,
 * by an index that is made of it; else .debug_frame. Read with pread(2) a few hundred bytes at a time,
 * so that a file that is changed or cut meanwhile is an error or a wrong row, never a fault, and
 * memory does not depend on the file's size but for the index, which has a bound.
 */
#ifndef TTMON_UNWIND_TABLE_H
#define TTMON_UNWIND_TABLE_H

#include "lib/os/elf.h"
#include "lib/unwind/cfi.h"

#define TTMON_UW_FDE_MAX   (64u << 10)	  /* bytes of an FDE or CIE */
#define TTMON_UW_INDEX_MAX (64u << 10)	  /* functions in an index that is made */
#define TTMON_UW_SCAN_MAX  (128ull << 20) /* bytes of a table that are read for it */

/* Where a section of call frame information lies. */
struct ttmon_uw_section {
	uint64_t off, len, vaddr; /* in the file; as linked */
	bool debug;		  /* .debug_frame */
};

struct ttmon_uw_entry {
	uint64_t start; /* as linked */
	uint64_t at;	/* of the FDE, from the section's beginning */
};

struct ttmon_uw_index {
	struct ttmon_uw_section section;
	struct ttmon_uw_entry *v; /* sorted by start; NULL: not made yet, or nothing is in it */
	size_t n;
	bool made;
};

struct ttmon_uw_table {
	int fd; /* owned */
	struct ttmon_elf elf;
	struct ttmon_uw_section eh;
	uint64_t hdr_vaddr, entries_off, nr_entries; /* of .eh_frame_hdr; nr_entries 0: there is none */
	struct ttmon_uw_index by_eh, by_debug;
	uint8_t *bytes; /* of the CIE and FDE that were read last: what expressions point into */
};

/*
 * Takes fd, on failure too. -ENOEXEC: no ELF file of this machine; -EBADMSG: it lies; -ENOMEM. A file
 * without tables is no error.
 */
int ttmon_uw_table_open(int fd, struct ttmon_uw_table **ret) _must_check;
void ttmon_uw_table_free(struct ttmon_uw_table *t);
/*
 * The rules at the instruction at this file offset. exprs points into t until the next call. -ENOENT:
 * no table covers it; -EBADMSG, -EOPNOTSUPP, -ENOMEM.
 */
int ttmon_uw_table_row(struct ttmon_uw_table *t, uint64_t off, struct ttmon_uw_row *row,
		       struct ttmon_uw_exprs *exprs) _must_check;
/* Does the file have any table? */
bool ttmon_uw_table_any(const struct ttmon_uw_table *t);

#endif
