/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * insn.h: the cost of a uprobe on an x86-64 instruction, and how far after a function's entry a cheap
 * one can be placed.
 *
 * The kernel emulates a few instructions at a probe (0.3 to 0.6 us a hit here) and single-steps all
 * others (15 to 29 us in this virtual machine): arch/x86/kernel/uprobes.c, branch_setup_xol_ops(),
 * push_setup_xol_ops(). Pure: bytes in, offsets out.
 */
#ifndef TTMON_INSN_H
#define TTMON_INSN_H

#include "lib/base/util.h"

/* Most bytes of a function that are examined: three instructions of 10 bytes, then two of 6. */
#define TTMON_INSN_BYTES    42u
#define TTMON_INSN_SKIP_MAX 30u

/*
 * True if this kernel emulates the instruction, false if it single-steps it. Nops of more than one
 * byte are emulated since Linux 6.18; an older kernel single-steps them, which is not checked here: a
 * wrong answer only costs time. Other machines than x86-64: true.
 */
bool ttmon_insn_is_emulated(const uint8_t *insn, size_t n, uint16_t machine);

/*
 * True for a nop of five bytes in any form. Linux 6.18 turns it into a call of a trampoline when it is
 * hit. fork() copies the call but not the trampoline, so the child dies of SIGSEGV: no probe may be
 * placed there.
 */
bool ttmon_insn_is_nop5(const uint8_t *insn, size_t n, uint16_t machine);

/*
 * True if the kernel refuses to probe this instruction (arch/x86/kernel/uprobes.c:
 * uprobe_init_insn()). A wrong guess only costs time, since the kernel decides in any case. Other
 * machines than x86-64: false.
 */
bool ttmon_insn_is_refused(const uint8_t *insn, size_t n, uint16_t machine);

/*
 * How many bytes after the entry a probe may be placed, so that every kernel emulates its instruction,
 * and a return probe, the arguments and the stack are as at the entry. 0: at the entry. size: of the
 * function; n: number of its bytes in fn.
 *
 * A place after the entry is used only if the instructions before it are at most three of: endbr64;
 * the nop of five bytes; cmp of a constant with a variable (NVIDIA's driver begins each exported
 * function with one); test of registers; mov of a constant to eax. None of them changes rsp, memory or
 * a register that carries an argument. The instruction there is push, call, jmp or jcc to a relative
 * address, or nop.
 */
size_t ttmon_insn_place(const uint8_t *fn, size_t n, uint64_t size, uint16_t machine);

/*
 * Number of bytes of the function whose instructions are known: up to the probe, and a few after it.
 */
size_t ttmon_insn_known(const uint8_t *fn, size_t n, size_t place);

/* A function with a probe after its entry; the code is searched for jumps to (addr, addr + skip]. */
struct ttmon_insn_span {
	uint64_t addr;
	uint8_t skip;  /* 1 to TTMON_INSN_SKIP_MAX */
	uint8_t known; /* bytes with known instructions: at least skip + 1 */
	bool entered;  /* a reference to an address in it was found */
};

/* Notes a reference to this address. spans: sorted by addr, all different. */
void ttmon_insn_refer(struct ttmon_insn_span *spans, size_t nr, uint64_t target);
/*
 * Reads code as jumps and notes their targets. There is no disassembler here: every byte of the first
 * `fresh` is taken as the first one of a relative jump or call, which gives more targets than there
 * are; only the known instructions around a probe are left out. A jump that begins in the last fresh
 * bytes is read up to n. addr: of code[0].
 */
void ttmon_insn_scan(struct ttmon_insn_span *spans, size_t nr, const uint8_t *code, size_t fresh, size_t n,
		     uint64_t addr);

#endif
