/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * place.h: chooses the places of probes: at a function's entry, or a few bytes after it where the
 * kernel need not single-step (insn.h). In doubt it is the entry, since a probe at a wrong place
 * crashes the program.
 *
 * Runs in the cold thread and in tests. Reads the file that is to be probed, through the ELF reader. A
 * probe is not placed after the entry if code of the object may jump there, if a symbol or a
 * relocation refers to that place, or if the code is too long to search. Jumps through tables of
 * offsets are not seen. A label of such a table on the second to fourth instruction of a function
 * would make the probe count each jump to it; the stack there would still be as at the entry.
 */
#ifndef TTMON_PLACE_H
#define TTMON_PLACE_H

#include "lib/os/elf.h"

enum ttmon_place_why {
	TTMON_PLACE_ENTRY, /* the entry is emulated */
	/* after the entry: the entry would be single-stepped, or is a nop of five bytes; this place is not */
	TTMON_PLACE_BEHIND,
	TTMON_PLACE_UNKNOWN, /* the entry: no better place is known */
	TTMON_PLACE_ENTERED, /* the entry: something may jump behind it */
};
const char *ttmon_place_why_name(enum ttmon_place_why why);

struct ttmon_place {
	uint64_t offset, addr, size; /* of the function: in the file, as linked, its length or 0 */
	/* The result: */
	uint8_t skip;	  /* bytes from the entry to the probe */
	bool single_step; /* the kernel must single-step the instruction that is probed */
	bool nop5;	  /* that instruction is a nop of five bytes: ttmon_insn_is_nop5() */
	bool refused;	  /* the kernel probably refuses it: ttmon_insn_is_refused() */
	uint8_t why;	  /* enum ttmon_place_why */
	uint8_t known;	  /* where skip is not 0: ttmon_insn_known() */
};

/*
 * Finds the place of each; places may be in any order. -errno only if the file cannot be read, or
 * memory is short.
 */
int ttmon_place_find(struct ttmon_elf *e, struct ttmon_place *places, size_t n) _must_check;

#endif
