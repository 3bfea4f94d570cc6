/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * table.h: reads the unwind tables of one ELF file: .eh_frame by its .eh_frame_hdr, or, if there is
 * none, by an index made here; else .debug_frame. It reads a few hundred bytes at a time with
 * pread(2), so a file that is changed or truncated meanwhile causes an error or a wrong row, but never
 * a fault. The memory does not depend on the size of the file, except for the index, which is limited.
 */
#ifndef TTMON_UNWIND_TABLE_H
#define TTMON_UNWIND_TABLE_H

#include "lib/os/elf.h"
#include "lib/unwind/cfi.h"

#define TTMON_UW_FDE_MAX   (64u << 10)	  /* the most bytes of an FDE or CIE */
#define TTMON_UW_INDEX_MAX (64u << 10)	  /* the most functions in our own index */
#define TTMON_UW_SCAN_MAX  (128ull << 20) /* the most bytes read of a table for it */

/* The place of a section of call frame information. */
struct ttmon_uw_section {
	uint64_t off, len, vaddr; /* in the file; vaddr: as linked */
	bool debug;		  /* .debug_frame */
};

struct ttmon_uw_entry {
	uint64_t start; /* as linked */
	uint64_t at;	/* offset of the FDE in the section */
};

struct ttmon_uw_index {
	struct ttmon_uw_section section;
	struct ttmon_uw_entry *v; /* sorted by start; NULL: not made yet, or empty */
	size_t n;
	bool made;
};

struct ttmon_uw_table {
	int fd; /* owned */
	struct ttmon_elf elf;
	struct ttmon_uw_section eh;
	uint64_t hdr_vaddr, entries_off, nr_entries; /* of .eh_frame_hdr; nr_entries 0: there is none */
	struct ttmon_uw_index by_eh, by_debug;
	uint8_t *bytes; /* the CIE and FDE read last, which expressions point into */
};

/*
 * Opens the tables; takes the ownership of fd, even on failure. Returns 0; -ENOEXEC: not an ELF file
 * of this machine; -EBADMSG: inconsistent; -ENOMEM. A file without tables is not an error.
 */
int ttmon_uw_table_open(int fd, struct ttmon_uw_table **ret) _must_check;
void ttmon_uw_table_free(struct ttmon_uw_table *t);
/*
 * Gets the rules for the instruction at this file offset. exprs points into t until the next call.
 * Returns 0; -ENOENT: no table covers it; -EBADMSG; -EOPNOTSUPP; -ENOMEM.
 */
int ttmon_uw_table_row(struct ttmon_uw_table *t, uint64_t off, struct ttmon_uw_row *row,
		       struct ttmon_uw_exprs *exprs) _must_check;
/* Returns whether the file has any table. */
bool ttmon_uw_table_any(const struct ttmon_uw_table *t);

#endif
