/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cfi.h: call frame information of one function (DWARF 5, section 6.4; Linux Standard Base,
 * .eh_frame), interpreted up to one
 * instruction: where the caller's registers are. x86-64. Pure: bytes in, rules out.
 *
 * The bytes are from a file that a stranger may have written. Each read is within what was given, each
 * loop has a limit, and nothing is kept that points into it but expressions, which live as long as the
 * bytes do.
 */
#ifndef TTMON_UNWIND_CFI_H
#define TTMON_UNWIND_CFI_H

#include "lib/base/util.h"

/* DWARF numbers of x86-64's registers (System V ABI, AMD64 supplement, figure 3.36). */
enum { TTMON_UW_RBX = 3, TTMON_UW_RBP = 6, TTMON_UW_RSP = 7, TTMON_UW_R12 = 12, TTMON_UW_RA = 16, TTMON_UW_REGS = 17 };
/* Registers that a function has to leave as they were. */
#define TTMON_UW_KEPT (1u << TTMON_UW_RBX | 1u << TTMON_UW_RBP | 1u << TTMON_UW_RSP | 0xfu << TTMON_UW_R12)

enum ttmon_uw_rule {
	TTMON_UW_SAME,	   /* not touched: the caller's value, unless the ABI lets a call change it */
	TTMON_UW_UNDEF,	   /* lost */
	TTMON_UW_OFFSET,   /* at CFA + value */
	TTMON_UW_VALUE,	   /* CFA + value itself */
	TTMON_UW_REG,	   /* in register number value */
	TTMON_UW_EXPR,	   /* at the address that an expression gives */
	TTMON_UW_VAL_EXPR, /* what an expression gives */
};

struct ttmon_uw_expr {
	const uint8_t *p;
	uint32_t n;
};

/* The rules at one instruction. */
struct ttmon_uw_row {
	uint8_t rule[TTMON_UW_REGS]; /* enum ttmon_uw_rule */
	uint8_t cfa_reg;	     /* CFA = this register + cfa_off, unless an expression says it */
	bool cfa_expr;
	bool signal;   /* the frame of a signal handler's caller: its pc is no return address */
	bool has_expr; /* struct ttmon_uw_exprs is needed */
	int32_t cfa_off;
	int32_t value[TTMON_UW_REGS];
	uint32_t ruled; /* 1 << register: its rule is another one than SAME */
};

/* The expressions of a row: they point into the bytes of the CIE and FDE. */
struct ttmon_uw_exprs {
	struct ttmon_uw_expr cfa, reg[TTMON_UW_REGS];
};

/* What an FDE covers, and what its CIE says of it. */
struct ttmon_uw_fde {
	uint64_t start, len; /* addresses as linked */
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding; /* of addresses: DW_EH_PE_* */
	bool has_aug;	  /* augmentation data comes with a length */
	bool signal;
	const uint8_t *cie_insns, *cie_end, *insns, *end;
};

/* Bytes, and a place in them. A read past the end gives 0 and sets bad. */
struct ttmon_uw_cursor {
	const uint8_t *p, *end;
	bool bad;
};

uint64_t ttmon_uw_uleb(struct ttmon_uw_cursor *c);
int64_t ttmon_uw_sleb(struct ttmon_uw_cursor *c);
uint64_t ttmon_uw_fixed(struct ttmon_uw_cursor *c, size_t n); /* n bytes, little endian, n at most 8 */

/*
 * A CIE's fields behind its id, from cie to end, into f. -EBADMSG: broken; -EOPNOTSUPP: a version or
 * augmentation that nobody knows. debug: it is from .debug_frame.
 */
int ttmon_uw_read_cie(const uint8_t *cie, const uint8_t *end, bool debug, struct ttmon_uw_fde *f) _must_check;
/*
 * An FDE's fields behind its CIE pointer, from fde to end, after ttmon_uw_read_cie(). addr: the
 * address as linked of the byte at fde, for addresses relative to their place. -EBADMSG, -EOPNOTSUPP.
 */
int ttmon_uw_read_fde(const uint8_t *fde, const uint8_t *end, uint64_t addr, struct ttmon_uw_fde *f) _must_check;
/* The rules at pc, an address as linked in [f->start, f->start + f->len). -EBADMSG, -EOPNOTSUPP. */
int ttmon_uw_rules(const struct ttmon_uw_fde *f, uint64_t pc, struct ttmon_uw_row *row,
		   struct ttmon_uw_exprs *exprs) _must_check;

struct ttmon_uw_regs {
	uint64_t r[TTMON_UW_REGS];
	uint32_t known; /* 1 << register: its value is known */
};

/* 8 bytes of the program's memory; false: not there. */
typedef bool (*ttmon_uw_read_fn)(void *ctx, uint64_t addr, uint64_t *ret);
/*
 * The expression's value; start: what lies on its stack first, NULL: nothing. False: broken, or it
 * needs what is not known.
 */
bool ttmon_uw_eval(const struct ttmon_uw_expr *e, const struct ttmon_uw_regs *regs, const uint64_t *start,
		   ttmon_uw_read_fn read, void *ctx, uint64_t *ret);

#endif
