/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cfi.h: interprets the call frame information of one function (DWARF 5, section 6.4; Linux Standard
 * Base, .eh_frame) up to one instruction: where the caller's registers are. x86-64. Pure: bytes in,
 * rules out.
 *
 * The bytes come from an untrusted file. Each read is within the given bytes, and each loop has a
 * limit. Of the results, only expressions point into the bytes; they are valid as long as the bytes
 * are.
 */
#ifndef TTMON_UNWIND_CFI_H
#define TTMON_UNWIND_CFI_H

#include "lib/base/util.h"

/* DWARF numbers of x86-64's registers (System V ABI, AMD64 supplement, figure 3.36). */
enum { TTMON_UW_RBX = 3, TTMON_UW_RBP = 6, TTMON_UW_RSP = 7, TTMON_UW_R12 = 12, TTMON_UW_RA = 16, TTMON_UW_REGS = 17 };
/* Registers that a function must preserve. */
#define TTMON_UW_KEPT (1u << TTMON_UW_RBX | 1u << TTMON_UW_RBP | 1u << TTMON_UW_RSP | 0xfu << TTMON_UW_R12)

enum ttmon_uw_rule {
	TTMON_UW_SAME,	   /* unchanged: the caller's value, unless the ABI allows a call to change it */
	TTMON_UW_UNDEF,	   /* lost */
	TTMON_UW_OFFSET,   /* at CFA + value */
	TTMON_UW_VALUE,	   /* CFA + value itself */
	TTMON_UW_REG,	   /* in register number value */
	TTMON_UW_EXPR,	   /* at the address that an expression computes */
	TTMON_UW_VAL_EXPR, /* the value that an expression computes */
};

struct ttmon_uw_expr {
	const uint8_t *p;
	uint32_t n;
};

/* The rules for one instruction. */
struct ttmon_uw_row {
	uint8_t rule[TTMON_UW_REGS]; /* enum ttmon_uw_rule */
	uint8_t cfa_reg;	     /* CFA = this register + cfa_off, unless there is an expression */
	bool cfa_expr;
	bool signal;   /* a signal frame: the caller's pc is not a return address */
	bool has_expr; /* struct ttmon_uw_exprs is used */
	int32_t cfa_off;
	int32_t value[TTMON_UW_REGS];
	uint32_t ruled; /* 1 << register: its rule is not SAME */
};

/* The expressions of a row; they point into the bytes of the CIE and FDE. */
struct ttmon_uw_exprs {
	struct ttmon_uw_expr cfa, reg[TTMON_UW_REGS];
};

/* The range of an FDE, and the information of its CIE. */
struct ttmon_uw_fde {
	uint64_t start, len; /* addresses as linked */
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* format of addresses: DW_EH_PE_* */
	bool has_aug;	  /* augmentation data comes with a length */
	bool signal;
	const uint8_t *cie_insns, *cie_end, *insns, *end;
};

/* A position in a range of bytes. A read past the end returns 0 and sets bad. */
struct ttmon_uw_cursor {
	const uint8_t *p, *end;
	bool bad;
};

uint64_t ttmon_uw_uleb(struct ttmon_uw_cursor *c);
int64_t ttmon_uw_sleb(struct ttmon_uw_cursor *c);
uint64_t ttmon_uw_fixed(struct ttmon_uw_cursor *c, size_t n); /* reads n bytes, little endian, n at most 8 */

/*
 * Reads a CIE's fields behind its id, from cie to end, into f. Returns 0; -EBADMSG: damaged;
 * -EOPNOTSUPP: unknown version or augmentation. debug: it is from .debug_frame.
 */
int ttmon_uw_read_cie(const uint8_t *cie, const uint8_t *end, bool debug, struct ttmon_uw_fde *f) _must_check;
/*
 * Reads an FDE's fields behind its CIE pointer, from fde to end; call ttmon_uw_read_cie() first. addr:
 * address as linked of the byte at fde, for addresses relative to their place. Returns 0, -EBADMSG or
 * -EOPNOTSUPP.
 */
int ttmon_uw_read_fde(const uint8_t *fde, const uint8_t *end, uint64_t addr, struct ttmon_uw_fde *f) _must_check;
/* The rules at pc, an address as linked in [f->start, f->start + f->len). -EBADMSG, -EOPNOTSUPP. */
int ttmon_uw_rules(const struct ttmon_uw_fde *f, uint64_t pc, struct ttmon_uw_row *row,
		   struct ttmon_uw_exprs *exprs) _must_check;

struct ttmon_uw_regs {
	uint64_t r[TTMON_UW_REGS];
	uint32_t known; /* 1 << register: its value is known */
};

/* Reads 8 bytes of the program's memory; false: not available. */
typedef bool (*ttmon_uw_read_fn)(void *ctx, uint64_t addr, uint64_t *ret);
/*
 * Evaluates an expression; start: first value on its stack, NULL: none. Returns false if it is
 * damaged, or needs an unknown value.
 */
bool ttmon_uw_eval(const struct ttmon_uw_expr *e, const struct ttmon_uw_regs *regs, const uint64_t *start,
		   ttmon_uw_read_fn read, void *ctx, uint64_t *ret);

#endif
