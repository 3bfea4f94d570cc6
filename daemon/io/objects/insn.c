// SPDX-License-Identifier: GPL-2.0-only
/* insn.c: see insn.h. Every form of ttmon_insn_is_emulated() was probed and timed on Linux 6.18. */
#include <elf.h>

#include "daemon/io/objects/insn.h"

/* push reg, jmp, call and nop in the one-byte opcode map; jcc rel8. */
static bool one_byte(uint8_t op)
{
	return (op >= 0x50 && op <= 0x57) || (op >= 0x70 && op <= 0x7f) || op == 0x90 || op == 0xe8 || op == 0xe9 ||
	       op == 0xeb;
}

bool ttmon_insn_is_emulated(const uint8_t *insn, size_t n, uint16_t machine)
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

bool ttmon_insn_is_refused(const uint8_t *insn, size_t n, uint16_t machine)
{
	/* Indexed by the byte after the prefixes, 32 in a word, as measured on Linux 6.18. */
	static const uint32_t refused[8] = { 0xc0c040c0, 0xc0c0c0c0, 0, 0xf003, 0x04000004, 0, 0x0050f000, 0x0c13f4f0 };
	size_t i = 0;

	if (machine != EM_X86_64)
		return false;
	while (i < n && ((insn[i] & 0xf0) == 0x40 || (insn[i] & 0xfc) == 0x64 || (insn[i] & 0xfe) == 0xf2))
		i++;
	return i < n && refused[insn[i] / 32] >> insn[i] % 32 & 1;
}

/* Prefixes that the kernel accepts before a nop (it refuses to probe others), and REX. */
static size_t prefixes(const uint8_t *insn, size_t n)
{
	size_t i = 0;

	while (i < n &&
	       (insn[i] == 0x66 || insn[i] == 0x67 || insn[i] == 0xf2 || insn[i] == 0xf3 || (insn[i] & 0xf0) == 0x40))
		i++;
	return i;
}

/* Bytes of modrm, sib and displacement; 0: they are cut off. */
static size_t operand(const uint8_t *p, size_t n)
{
	uint8_t mod, rm;
	size_t len = 1;

	if (!n)
		return 0;
	mod = p[0] >> 6;
	rm = p[0] & 7;
	if (mod == 3)
		return 1;
	if (rm == 4) {
		if (n < 2)
			return 0;
		len++;
		rm = p[1] & 7;
	}
	if (mod == 1)
		len += 1;
	else if (mod == 2 || rm == 5)
		len += 4;
	return len <= n ? len : 0;
}

bool ttmon_insn_is_nop5(const uint8_t *insn, size_t n, uint16_t machine)
{
	size_t at = prefixes(insn, n);

	if (machine != EM_X86_64 || n < 5 || at > 4)
		return false;
	if (insn[at] == 0x90)
		return at == 4;
	return at <= 2 && insn[at] == 0x0f && insn[at + 1] == 0x1f && at + 2 + operand(insn + at + 2, n - at - 2) == 5;
}

/* Length of an instruction after which a probe may be placed, 0: not such an instruction. */
static size_t passable(const uint8_t *p, size_t n)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa }, nop5[] = { 0x0f, 0x1f, 0x44, 0, 0 };
	size_t rex;

	if (n >= sizeof(endbr64) && !memcmp(p, endbr64, sizeof(endbr64)))
		return sizeof(endbr64);
	if (n >= sizeof(nop5) && !memcmp(p, nop5, sizeof(nop5)))
		return sizeof(nop5);
	if (n >= 10 && p[0] == 0x81 && p[1] == 0x3d) /* cmpl $imm32, off(%rip) */
		return 10;
	if (n >= 7 && (p[0] == 0x83 || p[0] == 0x80) && p[1] == 0x3d) /* cmpl, cmpb $imm8, off(%rip) */
		return 7;
	if (n >= 5 && p[0] == 0xb8) /* mov $imm32, %eax */
		return 5;
	rex = n && (p[0] & 0xf0) == 0x40;
	if (n >= rex + 2 && (p[rex] == 0x84 || p[rex] == 0x85) && p[rex + 1] >= 0xc0) /* test reg, reg */
		return rex + 2;
	return 0;
}

/*
 * Length of an instruction that all kernels emulate, 0: not such a one. 66 90 is missing: kernels
 * without "uprobes/x86: Allow to probe a NOP instruction with 0x66 prefix" (2022) refuse to probe it.
 */
static size_t always_emulated(const uint8_t *p, size_t n)
{
	size_t len = 0;

	if (!n)
		return 0;
	if ((p[0] >= 0x50 && p[0] <= 0x57) || p[0] == 0x90)
		len = 1;
	else if ((p[0] >= 0x70 && p[0] <= 0x7f) || p[0] == 0xeb)
		len = 2;
	else if (p[0] == 0xe8 || p[0] == 0xe9)
		len = 5;
	else if (n >= 2 && ((p[0] == 0x41 && p[1] >= 0x50 && p[1] <= 0x57) || (p[0] == 0xf3 && p[1] == 0x90)))
		len = 2;
	else if (n >= 2 && p[0] == 0x0f && p[1] >= 0x80 && p[1] <= 0x8f)
		len = 6;
	return len <= n ? len : 0;
}

size_t ttmon_insn_place(const uint8_t *fn, size_t n, uint64_t size, uint16_t machine)
{
	size_t at = 0, len;

	if (machine != EM_X86_64)
		return 0;
	n = MIN(n, size);
	for (int passed = 0; passed <= 3; passed++) {
		if (always_emulated(fn + at, n - at))
			return at;
		len = passable(fn + at, n - at);
		if (!len)
			return 0;
		at += len;
	}
	return 0;
}

/* The first span that begins at addr or above. */
static size_t first_from(const struct ttmon_insn_span *spans, size_t nr, uint64_t addr)
{
	size_t lo = 0, hi = nr;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (spans[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void ttmon_insn_refer(struct ttmon_insn_span *spans, size_t nr, uint64_t target)
{
	for (size_t i = first_from(spans, nr, target); i > 0 && target - spans[i - 1].addr <= TTMON_INSN_SKIP_MAX; i--)
		if (target - spans[i - 1].addr <= spans[i - 1].skip)
			spans[i - 1].entered = true;
}

static int32_t rel32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* True if the bytes before, or at, code[i] show that the four from i + 1 on are a jump distance. */
static bool has_rel32(const uint8_t *code, size_t lo, size_t hi, size_t i)
{
	if (code[i] == 0xe8 || code[i] == 0xe9) /* call, jmp */
		return i < hi;
	return (code[i] & 0xf0) == 0x80 && i > lo && code[i - 1] == 0x0f; /* jcc */
}

#define BLOCK 16u
typedef uint32_t words __attribute__((vector_size(BLOCK)));
typedef int32_t swords __attribute__((vector_size(BLOCK)));

/*
 * True if a jump with a four-byte distance that begins in the next BLOCK bytes may lead to a span. The
 * target is computed for every byte, whatever it is: four at once, modulo 2^32. It is nearly always
 * elsewhere, which a CPU can predict, unlike the value of the byte. behind: the targets of the bytes
 * 0, 4, 8 and 12 with a distance of 0. Addresses are relative to the first span, plus 2^31, since
 * every x86-64 can compare signed numbers. Reads up to code[BLOCK + 4).
 */
static bool may_reach(const uint8_t *code, words behind, swords last)
{
	swords out = { -1, -1, -1, -1 };
	int64_t all[2];

#pragma GCC unroll 4
	for (uint32_t k = 0; k < 4; k++) {
		words to;

		memcpy(&to, code + k + 1, sizeof(to));
		out &= (swords)(to + (behind + k)) > last;
	}
	memcpy(all, &out, sizeof(all));
	return (all[0] & all[1]) != -1;
}

/* Treats each of the bytes lo to hi as the first one of a jump with a four-byte distance. */
static void scan_far(struct ttmon_insn_span *spans, size_t nr, const uint8_t *code, size_t lo, size_t hi, size_t n,
		     uint64_t addr)
{
	const uint64_t first = spans[0].addr, reach = spans[nr - 1].addr + TTMON_INSN_SKIP_MAX - first;
	words behind = (words){ 0, 4, 8, 12 } + ((uint32_t)(addr + lo - first) + 5 + (1u << 31));
	const int32_t last = (int32_t)((uint32_t)reach + (1u << 31));
	const swords lasts = { last, last, last, last };
	const bool fits = reach <= UINT32_MAX;

	for (size_t i = lo, end; i <= hi && i + 5 <= n; i = end, behind += BLOCK) {
		end = MIN(MIN(i + BLOCK, hi + 1), n - 4);
		if (fits && i + BLOCK + 4 <= n && !may_reach(code + i, behind, lasts))
			continue;
		for (; i < end; i++) {
			uint64_t target = addr + i + 5 + (uint64_t)(int64_t)rel32(code + i + 1);

			if (target - first <= reach && has_rel32(code, lo, hi, i))
				ttmon_insn_refer(spans, nr, target);
		}
	}
}

/*
 * Treats each of the bytes lo to hi as the first one of a jump with a one-byte distance, which reaches
 * 129 bytes back: only those near a span.
 */
static void scan_near(struct ttmon_insn_span *spans, size_t nr, const uint8_t *code, size_t lo, size_t hi, size_t n,
		      uint64_t addr)
{
	const uint64_t near = 129 + TTMON_INSN_SKIP_MAX;

	for (size_t k = first_from(spans, nr, addr + lo > near ? addr + lo - near : 0);
	     k < nr && spans[k].addr < addr + hi + near; k++) {
		size_t i = spans[k].addr > addr + lo + near ? spans[k].addr - near - addr : lo;
		size_t end = MIN(hi, spans[k].addr + near + 1 - addr);

		for (; i < end && i + 2 <= n; i++) {
			uint8_t op = code[i];

			/* jcc; loop and jrcxz; jmp */
			if ((op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0 || op == 0xeb)
				ttmon_insn_refer(spans, nr, addr + i + 2 + (uint64_t)(int64_t)(int8_t)code[i + 1]);
		}
		lo = MAX(lo, end);
	}
}

static void scan(struct ttmon_insn_span *spans, size_t nr, const uint8_t *code, size_t lo, size_t hi, size_t n,
		 uint64_t addr)
{
	scan_far(spans, nr, code, lo, hi, n, addr);
	scan_near(spans, nr, code, lo, hi, n, addr);
}

size_t ttmon_insn_known(const uint8_t *fn, size_t n, size_t at)
{
	bool jcc = (fn[at] & 0xf0) == 0x70 || fn[at] == 0x0f;
	size_t known = at + always_emulated(fn + at, n - at);

	/* In libcuda the jcc is followed by a jmp *off(%rip). */
	if (jcc && n - known >= 6 && fn[known] == 0xff && fn[known + 1] == 0x25)
		known += 6;
	return known;
}

void ttmon_insn_scan(struct ttmon_insn_span *spans, size_t nr, const uint8_t *code, size_t fresh, size_t n,
		     uint64_t addr)
{
	size_t at = 0;

	if (!nr)
		return;
	/*
	 * From the end of the known bytes of one function to the next function. The instruction at the probe
	 * is read as a jump, since it may be one. A span that began before this piece may reach into it.
	 */
	for (size_t i = 2 * first_from(spans, nr, addr > TTMON_INSN_BYTES ? addr - TTMON_INSN_BYTES : 0);
	     i < 2 * nr && at < fresh; i++) {
		const struct ttmon_insn_span *s = &spans[i / 2];
		uint64_t begin = i % 2 ? s->addr + s->skip + 1 : s->addr;
		uint64_t end = i % 2 ? s->addr + s->known : s->addr + s->skip;

		if (s->addr >= addr + fresh)
			break;
		if (begin > addr + at) {
			scan(spans, nr, code, at, MIN(begin - addr, fresh), n, addr);
			at = begin - addr;
		}
		if (end > addr + at)
			at = end - addr;
	}
	if (at < fresh)
		scan(spans, nr, code, at, fresh, n, addr);
}
