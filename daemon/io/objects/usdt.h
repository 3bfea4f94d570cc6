/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usdt.h: the argument string of a USDT note, as operands that a BPF program can fetch from struct
 * pt_regs.
 *
 * Pure: no file, no clock. The string comes from an ELF file of the traced program: whatever is not
 * understood is refused. Three forms are understood: a register, memory at a register plus a
 * displacement, a constant. Not understood: an index register, a symbol, %rip, the high byte registers
 * (%ah).
 */
#ifndef TTMON_IO_USDT_H
#define TTMON_IO_USDT_H

#include "lib/base/util.h"

#define TTMON_USDT_MAX_ARGS 3

enum ttmon_usdt_kind { TTMON_USDT_NONE, TTMON_USDT_REG, TTMON_USDT_MEM, TTMON_USDT_IMM };

/* The BPF program gets these unchanged: fixed size, no padding. */
struct ttmon_usdt_arg {
	int64_t value;	   /* MEM: displacement; IMM: the constant */
	uint32_t reg_off;  /* REG, MEM: byte offset of the 8-byte register in struct pt_regs */
	uint8_t kind;	   /* enum ttmon_usdt_kind */
	uint8_t bytes;	   /* 1, 2, 4, 8: this much of it counts */
	uint8_t is_signed; /* then it is to be sign-extended */
	uint8_t pad;
};

struct ttmon_usdt_spec {
	uint32_t nr_args; /* args[] past these are TTMON_USDT_NONE */
	uint32_t pad;
	struct ttmon_usdt_arg args[TTMON_USDT_MAX_ARGS];
};

/*
 * "8@%rdi -4@-16(%rbp) 8@$5". More than three operands: the first three. -EBADMSG: not understood.
 * machine: EM_X86_64 or EM_AARCH64.
 */
int ttmon_usdt_parse_for(uint16_t machine, const char *args, struct ttmon_usdt_spec *ret) _must_check;
/* For the machine that we run on. */
int ttmon_usdt_parse(const char *args, struct ttmon_usdt_spec *ret) _must_check;

#endif
