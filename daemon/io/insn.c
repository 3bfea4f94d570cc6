// SPDX-License-Identifier: GPL-2.0-only
/*
 * insn.c: what a probe on an instruction costs on x86-64. The kernel emulates a few instructions (0.3 to 0.6 us a hit here) and
 * single-steps all others (17 to 29 us in this virtual machine): arch/x86/kernel/uprobes.c, branch_setup_ops(), push_setup_ops().
 *
 * Every form below was probed and timed on 6.18. Nops longer than one byte are emulated since 2025; an older kernel
 * single-steps them, which this does not know. Pure; wrong answers cost time only, never a wrong probe.
 */
#include <elf.h>

#include "io/objects.h"

/* push reg, jmp, call and nop in the one-byte opcode map; jcc rel8. */
static bool one_byte(uint8_t op)
{
	return (op >= 0x50 && op <= 0x57) || (op >= 0x70 && op <= 0x7f) || op == 0x90 || op == 0xe8 || op == 0xe9 ||
	       op == 0xeb;
}

bool ttmon_probe_is_emulated(const uint8_t *insn, size_t n, uint16_t machine)
{
	if (machine != EM_X86_64)
		return true;
	if (n && one_byte(insn[0]))
		return true;
	if (n < 2)
		return false;
	switch (insn[0]) {
	case 0x41: /* push r8..r15 */
		return insn[1] >= 0x50 && insn[1] <= 0x57;
	case 0x0f: /* jcc rel32, nops of 3 to 8 bytes */
		return (insn[1] >= 0x80 && insn[1] <= 0x8f) || insn[1] == 0x1f;
	case 0x66: /* nops of 2 and 6 bytes; the one of 9 bytes is single-stepped */
		return insn[1] == 0x90 || (n >= 4 && insn[1] == 0x0f && insn[2] == 0x1f && insn[3] == 0x44);
	case 0xf3: /* pause */
		return insn[1] == 0x90;
	default:
		return false;
	}
}
