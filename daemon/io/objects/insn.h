/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * insn.h: what a uprobe on an x86-64 instruction costs, and how far behind a function's entry a
 * cheap one stands.
 *
 * The kernel emulates a few instructions at a probe (0.3 to 0.6 us a hit here) and single-steps all
 * others (15 to 29 us in this virtual machine): arch/x86/kernel/uprobes.c, branch_setup_xol_ops(),
 * push_setup_xol_ops(). Pure: bytes in, offsets out.
 */
#ifndef TTMON_INSN_H
#define TTMON_INSN_H

#include "lib/base/util.h"

/*
 * As many bytes of a function as are ever looked at: three instructions of 10 bytes, then two of 6.
 */
#define TTMON_INSN_BYTES    42u
#define TTMON_INSN_SKIP_MAX 30u

/*
 * Does this kernel emulate the instruction, or must it single-step it? Nops of more than one byte
 * are emulated since Linux 6.18; an older kernel single-steps them, which this does not know: a
 * wrong answer costs time only. Other machines than x86-64: true.
 */
bool ttmon_insn_is_emulated(const uint8_t *insn, size_t n, uint16_t machine);

/*
 * A nop of five bytes, in any of its forms. Linux 6.18 turns it into a call of a trampoline when it
 * is hit. fork() copies the call and not the trampoline, so the child dies of SIGSEGV: such a nop
 * is no place for a probe.
 */
bool ttmon_insn_is_nop5(const uint8_t *insn, size_t n, uint16_t machine);

/*
 * Is this an instruction that the kernel refuses to probe (arch/x86/kernel/uprobes.c:
 * uprobe_init_insn())? A guess that is wrong costs time only, as the kernel is asked in any case.
 * Other machines than x86-64: false.
 */
bool ttmon_insn_is_refused(const uint8_t *insn, size_t n, uint16_t machine);

/*
 * How far behind the entry a probe may stand, so that every kernel emulates its instruction and a
 * return probe, the arguments and the stack are as at the entry. 0: at the entry. size: of the
 * function; n: how many of its bytes are here.
 *
 * Behind the entry only if the instructions before it are at most three of: endbr64; the nop of
 * five bytes; cmp of a constant with a variable (NVIDIA's driver begins each exported function with
 * one); test of registers; mov of a constant to eax. None of them changes rsp, memory or a register
 * that carries an argument. The instruction there is push, call, jmp or jcc to a relative address,
 * or nop.
 */
size_t ttmon_insn_place(const uint8_t *fn, size_t n, uint64_t size, uint16_t machine);

/* Bytes of the function of which it is known what they are: up to the probe, and a few behind it. */
size_t ttmon_insn_known(const uint8_t *fn, size_t n, size_t place);

/*
 * A function with a probe behind its entry, of which the code is asked whether it jumps to (addr,
 * addr + skip].
 */
struct ttmon_insn_span {
	uint64_t addr;
	uint8_t skip;  /* 1 to TTMON_INSN_SKIP_MAX */
	uint8_t known; /* bytes of the function of which it is known what they are: skip + 1 or more */
	bool entered;  /* something refers to an address in it */
};

/* Note that something refers to this address. spans: sorted by addr, no two alike. */
void ttmon_insn_refer(struct ttmon_insn_span *spans, size_t nr, uint64_t target);
/*
 * Read code as jumps and note where they lead. There is no disassembler here: every byte of the
 * first `fresh` is taken for the first one of a relative jump or call, which is more than the
 * truth; only the known instructions around a probe are left out. What begins in the last bytes of
 * the fresh ones is seen up to n. addr: of code[0].
 */
void ttmon_insn_scan(struct ttmon_insn_span *spans, size_t nr, const uint8_t *code, size_t fresh, size_t n,
		     uint64_t addr);

#endif
