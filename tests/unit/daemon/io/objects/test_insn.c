// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_insn.c: which instructions the kernel emulates at a probe, how far behind a function's entry
 * a probe may stand, and which of its bytes other code may jump to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <elf.h>

#include "daemon/io/objects/insn.h"

static void test_emulated(void **state)
{
	static const struct {
		const char *insn;
		size_t n;
		bool emulated;
	} cases[] = {
		/* as timed on 6.18 */
		{ "\x55", 1, true },
		{ "\x57", 1, true },
		{ "\x41\x54", 2, true },
		{ "\x90", 1, true },
		{ "\x66\x90", 2, true },
		{ "\xf3\x90", 2, true },
		{ "\x0f\x1f\x00", 3, true },
		{ "\x0f\x1f\x44\0\0", 5, true },
		{ "\x66\x0f\x1f\x44\0\0", 6, true },
		{ "\xeb\x00", 2, true },
		{ "\xe9\0\0\0\0", 5, true },
		{ "\xe8\0\0\0\0", 5, true },
		{ "\x74\x00", 2, true },
		{ "\x0f\x84\0\0\0\0", 6, true },
		{ "\xf3\x0f\x1e\xfa", 4, false },
		{ "\x48\x83\xec\x08", 4, false },
		{ "\xc3", 1, false },
		{ "\x5d", 1, false },
		{ "\x48\x89\xe0", 3, false },
		{ "\x31\xc0", 2, false },
		{ "\x40\x55", 2, false },
		{ "\x66\x0f\x1f\x84\0\0\0\0\0", 9, false },
		{ "\x41", 1, false },
		{ "", 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (ttmon_insn_is_emulated((const uint8_t *)cases[i].insn, cases[i].n, EM_X86_64) != cases[i].emulated)
			fail_msg("case %zu", i);
	}
	assert_true(ttmon_insn_is_emulated((const uint8_t *)"\xc3", 1, EM_AARCH64));
}

static void test_nop5(void **state)
{
	static const struct {
		const char *insn;
		size_t n;
		bool is;
	} cases[] = {
		/* On 6.18 the first byte became e8 at the first hit, and a forked child died. */
		{ "\x0f\x1f\x44\0\0", 5, true },
		{ "\x0f\x1f\x44\0\x08", 5, true }, /* clang -fpatchable-function-entry */
		{ "\x66\x66\x66\x66\x90", 5, true },
		{ "\x66\x0f\x1f\x40\0", 5, true },
		{ "\x48\x0f\x1f\x40\0", 5, true },
		/* These were left alone. */
		{ "\x0f\x1f\x40\0", 4, false },
		{ "\x0f\x1f\x40\0\x90", 5, false },
		{ "\x66\x66\x66\x90\x90", 5, false },
		{ "\x66\x0f\x1f\x44\0\0", 6, false },
		{ "\x0f\x1f\x80\0\0\0\0", 7, false },
		{ "\x0f\x1f\x05\0\0\0\0", 7, false },
		{ "\x0f\x1f\x04\x25\0\0\0\0", 8, false },
		{ "\x90\x90\x90\x90\x90", 5, false },
		{ "\x0f\x1f\x44\0", 4, false },
		{ "\x66\x66\x66\x66\x66\x90", 6, false },
		{ "", 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (ttmon_insn_is_nop5((const uint8_t *)cases[i].insn, cases[i].n, EM_X86_64) != cases[i].is)
			fail_msg("case %zu", i);
	assert_false(ttmon_insn_is_nop5((const uint8_t *)cases[0].insn, 5, EM_AARCH64));
}

/* cmpl $0x321cba00, off(%rip): libcuda 535, cuMemHostAlloc */
#define CMPL	"\x81\x3d\x7e\x34\x93\x01\x00\xba\x1c\x32"
#define CMPL8	"\x83\x3d\x01\x02\x03\x04\x05"
#define CMPB	"\x80\x3d\x01\x02\x03\x04\x05"
#define ENDBR64 "\xf3\x0f\x1e\xfa"
#define NOP5	"\x0f\x1f\x44\0\0"
#define MOV	"\xb8\x0a\0\0\0" /* mov $10, %eax */
#define TEST	"\x48\x85\xff"	 /* test %rdi, %rdi */

static void test_place(void **state)
{
	static const struct {
		const char *what, *fn;
		size_t n, place;
	} cases[] = {
#define F(what, bytes, place) { what, bytes, sizeof(bytes) - 1, place }
		/* placed */
		F("libcuda 470 to 555", CMPL "\x74\x0c\xff\x25\0\0\0\0", 10),
		F("jne", CMPL "\x75\x0c", 10),
		F("je rel32", CMPL "\x0f\x84\0\0\0\0", 10),
		F("jmp rel8", CMPL "\xeb\0", 10),
		F("jmp rel32", CMPL "\xe9\0\0\0\0", 10),
		F("call", CMPL "\xe8\0\0\0\0", 10),
		F("push", CMPL "\x55", 10),
		F("push r12", CMPL "\x41\x54", 10),
		F("nop", CMPL "\x90", 10),
		F("pause", CMPL "\xf3\x90", 10),
		F("cmpl imm8", CMPL8 "\x74\0", 7),
		F("cmpb", CMPB "\x74\0", 7),
		F("endbr64; push", ENDBR64 "\x55", 4),
		F("endbr64; cmpl; je", ENDBR64 CMPL "\x74\0", 14),
		F("endbr64; nop5; push", ENDBR64 NOP5 "\x55", 9),
		F("nop5; push", NOP5 "\x55", 5),
		F("mov; jmp", MOV "\xe9\0\0\0\0", 5),
		F("test; je", TEST "\x74\0", 3),
		F("testl", "\x85\xff\x74\0", 2),
		F("testb", "\x84\xc0\x74\0", 2),
		F("testb with rex", "\x40\x84\xff\x74\0", 3),
		F("three", CMPL CMPL CMPL "\x0f\x84\0\0\0\0", 30),
		/* at the entry, which is emulated */
		F("push", "\x55", 0),
		F("jmp", "\xe9\0\0\0\0" CMPL "\x74\0", 0),
		/* at the entry, as nothing is known to be better */
		F("four", CMPL CMPL CMPL TEST "\x74\0", 0),
		F("syscall", MOV "\x0f\x05", 0),
		F("ret", MOV "\xc3", 0),
		F("jmp through memory", CMPL "\xff\x25\0\0\0\0", 0),
		F("call through memory", CMPL "\xff\x15\0\0\0\0", 0),
		F("jmp with 66", CMPL "\x66\xe9\0\0\0\0", 0),
		F("jcc with 66", CMPL "\x66\x0f\x84\0\0\0\0", 0),
		F("jmp with bnd", CMPL "\xf2\xe9\0\0\0\0", 0),
		F("jcc with a hint", CMPL "\x3e\x74\0", 0),
		F("nop of 2", CMPL "\x66\x90", 0),
		F("nop of 3", CMPL "\x0f\x1f\x00", 0),
		F("nop5 alone", NOP5 "\x48\x89\xe0\xc3", 0),
		F("nop5 as the place", CMPL NOP5 "\xc3", 0),
		F("other nop of 5", "\x0f\x1f\x44\0\x08\x55", 0),
		F("xchg r8", CMPL "\x41\x90", 0),
		F("push with rex", CMPL "\x40\x55", 0),
		F("push imm", CMPL "\x6a\0", 0),
		F("push imm32", CMPL "\x68\0\0\0\0", 0),
		F("push through memory", CMPL "\xff\x35\0\0\0\0", 0),
		F("pop", CMPL "\x5d", 0),
		F("loop", CMPL "\xe2\0", 0),
		F("jrcxz", CMPL "\xe3\0", 0),
		F("sub rsp", "\x48\x83\xec\x08" CMPL "\x74\0", 0),
		F("sub rsp after cmpl", CMPL "\x48\x83\xec\x08\x74\0", 0),
		F("lea rsp", "\x48\x8d\x64\x24\xf8\x74\0", 0),
		F("mov rsp", "\x48\x89\xe5\x55", 0),
		F("cmpl with a base", "\x81\x3f\x01\x02\x03\x04\x74\0", 0),
		F("cmpl absolute", "\x81\x3c\x25\0\0\0\0\0\0\0\0\x74\0", 0),
		F("addl", "\x81\x05\0\0\0\0\x01\0\0\0\x74\0", 0),
		F("cmpq", "\x48\x81\x3d\0\0\0\0\0\0\0\0\x74\0", 0),
		F("cmpw", "\x66\x81\x3d\0\0\0\0\0\0\x74\0", 0),
		F("lock", "\xf0" CMPL "\x74\0", 0),
		F("test memory", "\x48\x85\x3f\x74\0", 0),
		F("test imm", "\xa8\x01\x74\0", 0),
		F("test reg, imm", "\xf6\xc7\x01\x74\0", 0),
		F("mov edi", "\xbf\0\0\0\0\x74\0", 0),
		F("mov r8d", "\x41\xb8\0\0\0\0\x74\0", 0),
		F("movabs", "\x48\xb8\0\0\0\0\0\0\0\0\x74\0", 0),
		F("xor eax", "\x31\xc0\x74\0", 0),
		F("endbr32", "\xf3\x0f\x1e\xfb\x55", 0),
		F("int3", "\xcc\x55", 0),
		/* cut short */
		F("je without its byte", CMPL "\x74", 0),
		F("jmp without its bytes", CMPL "\xe9\0\0\0", 0),
		F("jcc without its bytes", CMPL "\x0f\x84\0\0\0", 0),
		F("nothing behind", CMPL, 0),
		F("half a cmpl", "\x81\x3d\0", 0),
		F("rex alone", "\x48", 0),
		F("nothing", "", 0),
#undef F
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint8_t *fn = (const uint8_t *)cases[i].fn;
		size_t at = ttmon_insn_place(fn, cases[i].n, cases[i].n, EM_X86_64);

		if (at != cases[i].place)
			fail_msg("%s: %zu, not %zu", cases[i].what, at, cases[i].place);
		/*
		 * A function that ends before the place has none, and one of unknown size ends at
		 * once.
		 */
		for (uint64_t size = 0; at && size <= at; size++)
			assert_int_equal(ttmon_insn_place(fn, cases[i].n, size, EM_X86_64), 0);
		assert_int_equal(ttmon_insn_place(fn, cases[i].n, UINT64_MAX, EM_X86_64), at);
		assert_int_equal(ttmon_insn_place(fn, cases[i].n, cases[i].n, EM_AARCH64), 0);
	}
}

static void test_known(void **state)
{
	static const struct {
		const char *fn;
		size_t n, place, known;
	} cases[] = {
#define F(bytes, place, known) { bytes, sizeof(bytes) - 1, place, known }
		F(CMPL "\x74\x0c\xff\x25\0\0\0\0", 10, 18), F(CMPL "\x0f\x84\0\0\0\0\xff\x25\0\0\0\0", 10, 22),
		F(CMPL "\x74\x0c\xff\x25\0\0\0", 10, 12),   F(CMPL "\x74\x0c\xff\x35\0\0\0\0", 10, 12),
		F(CMPL "\xeb\x0c\xff\x25\0\0\0\0", 10, 12), F(CMPL "\xe9\0\0\0\0\xff\x25\0\0\0\0", 10, 15),
		F(NOP5 "\x55\xff\x25\0\0\0\0", 5, 6),	    F(ENDBR64 "\x41\x54", 4, 6),
#undef F
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(ttmon_insn_known((const uint8_t *)cases[i].fn, cases[i].n, cases[i].place),
				 cases[i].known);
}

#define BASE 0x10000u
#define FN   0x200u /* of the function in the code */

/*
 * Are the bytes behind the entry of the function at FN jumped to, by an instruction of n bytes at
 * `at`?
 */
static bool entered(size_t at, const char *insn, size_t n)
{
	static uint8_t code[0x400];
	struct ttmon_insn_span spans[3] = { { .addr = BASE + 0x80, .skip = 30, .known = 31 },
					    { .addr = BASE + FN, .skip = 10, .known = 12 },
					    { .addr = BASE + FN + 0x20, .skip = 14, .known = 16 } };

	memset(code, 0xcc, sizeof(code));
	memcpy(code + FN, CMPL "\x74\x10", 12);
	memcpy(code + at, insn, n);
	ttmon_insn_scan(spans, 3, code, sizeof(code), sizeof(code), BASE);
	assert_false(spans[0].entered || spans[2].entered);
	return spans[1].entered;
}

#define JUMP(at, insn) entered(at, insn, sizeof(insn) - 1)

static void test_scan(void **state)
{
	(void)state;
	assert_false(JUMP(0, "\xcc"));
	/*
	 * To the entry, to each byte behind it, and past the place: jmp rel8 at FN + 20 ends at FN
	 * + 22.
	 */
	assert_false(JUMP(FN + 20, "\xeb\xea"));
	for (int to = 1; to <= 10; to++) {
		const char jmp[] = { '\xeb', (char)(to - 22) };

		assert_true(entered(FN + 20, jmp, 2));
	}
	assert_false(JUMP(FN + 20, "\xeb\xf5"));
	/* The other jumps, to the place. */
	assert_true(JUMP(FN + 20, "\x74\xf4"));
	assert_true(JUMP(FN + 20, "\x7f\xf4"));
	assert_true(JUMP(FN + 20, "\xe0\xf4"));
	assert_true(JUMP(FN + 20, "\xe2\xf4"));
	assert_true(JUMP(FN + 20, "\xe3\xf4"));
	assert_true(JUMP(FN + 20, "\xe9\xf1\xff\xff\xff"));
	assert_true(JUMP(FN + 20, "\xe8\xf1\xff\xff\xff"));
	assert_true(JUMP(FN + 20, "\x0f\x84\xf0\xff\xff\xff"));
	assert_true(JUMP(FN + 20, "\x66\x0f\x8f\xef\xff\xff\xff"));
	assert_true(JUMP(FN + 20, "\x0f\x80\xf0\xff\xff\xff"));
	assert_false(JUMP(FN + 20, "\x0f\x90\xf0\xff\xff\xff"));
	assert_false(JUMP(FN + 20, "\xcc\x84\xf0\xff\xff\xff"));
	assert_false(JUMP(FN + 20, "\xe4\xf4"));
	assert_false(JUMP(FN + 20, "\x0f\x10\xf0\xff\xff\xff"));
	/* From far before and far behind. */
	assert_true(JUMP(0x10, "\xe9\xf5\x01\0\0"));
	assert_true(JUMP(0x300, "\x0f\x85\x04\xff\xff\xff"));
	/* The place's own jump may go back to it. */
	assert_true(JUMP(FN + 10, "\x74\xfe"));
	assert_false(JUMP(FN + 10, "\x74\xf4"));
	/* What looks like a jump in the known bytes is none. */
	assert_false(JUMP(FN + 2, "\xeb\x02"));
	assert_false(JUMP(FN + 11, "\xeb\xf6"));
	assert_true(JUMP(FN + 12, "\xeb\xf6"));
	/* At the end: what does not fit is no jump. */
	assert_false(JUMP(0x3fc, "\xe9\x09\xfe\xff"));
	assert_true(JUMP(0x3fb, "\xe9\x05\xfe\xff\xff"));
}

/* Nothing is lost where the code comes in pieces, wherever these end. */
static void test_pieces(void **state)
{
	static uint8_t code[0x400];

	(void)state;
	memset(code, 0xcc, sizeof(code));
	memcpy(code + FN, CMPL "\x74\x10", 12);
	memcpy(code + 0x40, "\xe9\xbf\x01\0\0", 5);	 /* to FN + 4 */
	memcpy(code + FN + 5, "\x74\x02", 2);		 /* none: known bytes */
	memcpy(code + 0x300, "\xe9\x04\0\0\0\xe9\0", 7); /* none */
	for (size_t first = 1; first < sizeof(code); first++) {
		struct ttmon_insn_span spans[2] = { { .addr = BASE + FN, .skip = 10, .known = 12 },
						    { .addr = BASE + FN + 0x40, .skip = 10, .known = 12 } };

		ttmon_insn_scan(spans, 2, code, first, MIN(first + 10, sizeof(code)), BASE);
		assert_int_equal(spans[0].entered, first > 0x40);
		ttmon_insn_scan(spans, 2, code + first, sizeof(code) - first, sizeof(code) - first, BASE + first);
		assert_true(spans[0].entered);
		assert_false(spans[1].entered);
	}
}

/* Functions that lie over each other, at the ends of the address space. */
static void test_odd_spans(void **state)
{
	static const uint8_t code[] = { 0xeb, 0x0e, 0xcc, 0xcc };
	struct ttmon_insn_span near[40], edge[2] = { { .addr = 0, .skip = 30, .known = 31 },
						     { .addr = UINT64_MAX - 3, .skip = 30, .known = 31 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(near); i++)
		near[i] = (struct ttmon_insn_span){ .addr = BASE + i,
						    .skip = (uint8_t)(1 + i % 30),
						    .known = (uint8_t)(2 + i % 30) };
	ttmon_insn_scan(near, ARRAY_SIZE(near), code, sizeof(code), sizeof(code), BASE - 2);
	for (size_t i = 0; i < ARRAY_SIZE(near); i++)
		assert_int_equal(near[i].entered, i < 14 && 14 - i <= near[i].skip);
	ttmon_insn_scan(edge, 2, code, sizeof(code), sizeof(code), UINT64_MAX - 3);
	ttmon_insn_scan(edge, 2, code, sizeof(code), sizeof(code), 0);
	ttmon_insn_scan(edge, 0, code, sizeof(code), sizeof(code), 0);
	ttmon_insn_refer(edge, 0, 5);
	ttmon_insn_refer(edge, 2, 5);
	assert_true(edge[0].entered);
}

#define RANDOM_CODE 3000u

static bool is_known(const struct ttmon_insn_span *spans, size_t nr, uint64_t at)
{
	for (size_t i = 0; i < nr; i++)
		if (at >= spans[i].addr && at < spans[i].addr + spans[i].known && at != spans[i].addr + spans[i].skip)
			return true;
	return false;
}

/* One byte after the other, as the definition of a jump says. */
static void by_hand(struct ttmon_insn_span *spans, size_t nr, const uint8_t *code, size_t n, uint64_t addr)
{
	for (size_t i = 0; i < n; i++) {
		int64_t len = 0, rel = 0;

		if (is_known(spans, nr, addr + i))
			continue;
		if (((code[i] >= 0x70 && code[i] <= 0x7f) || (code[i] >= 0xe0 && code[i] <= 0xe3) || code[i] == 0xeb) &&
		    i + 2 <= n) {
			len = 2;
			rel = (int8_t)code[i + 1];
		} else if ((code[i] == 0xe8 || code[i] == 0xe9) && i + 5 <= n) {
			len = 5;
		} else if (code[i] == 0x0f && i + 6 <= n && code[i + 1] >= 0x80 && code[i + 1] <= 0x8f) {
			len = 6;
		}
		if (len > 2)
			rel = (int32_t)((uint32_t)code[i + len - 4] | (uint32_t)code[i + len - 3] << 8 |
					(uint32_t)code[i + len - 2] << 16 | (uint32_t)code[i + len - 1] << 24);
		for (size_t k = 0; len && k < nr; k++) {
			int64_t in = (int64_t)(addr + i) + len + rel - (int64_t)spans[k].addr;

			spans[k].entered |= in > 0 && in <= spans[k].skip;
		}
	}
}

/*
 * Code made of what jumps are made of, at any distance from few or many functions, against the
 * definition.
 */
static void test_random(void **state)
{
	static const uint8_t likely[] = { 0xe8, 0xe9, 0x0f, 0x84, 0x8f, 0x70, 0x7f, 0xeb,
					  0xe3, 0,    0,    0,	  0xff, 0xff, 1,    2 };
	static uint8_t code[RANDOM_CODE];
	size_t entered = 0, left_alone = 0;

	(void)state;
	srand(1);
	for (int round = 0; round < 400; round++) {
		struct ttmon_insn_span got[30] = { 0 }, want[30];
		uint64_t addr = round % 3 ? BASE : BASE + (uint64_t)(rand() % 100000),
			 at = BASE + (uint64_t)(rand() % 500);
		size_t nr = 1 + (size_t)rand() % 30, n = RANDOM_CODE - (size_t)rand() % 200;

		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = rand() % 8 ? likely[rand() % 16] : (uint8_t)rand();
		for (size_t i = 0; i < nr; i++) {
			got[i].addr = at;
			got[i].skip = (uint8_t)(1 + rand() % 30);
			got[i].known = (uint8_t)(got[i].skip + 1 + rand() % 6);
			at += got[i].known + (uint64_t)(rand() % (round % 2 ? 40 : 4000));
		}
		memcpy(want, got, sizeof(want));
		ttmon_insn_scan(got, nr, code, n, n, addr);
		by_hand(want, nr, code, n, addr);
		for (size_t i = 0; i < nr; i++) {
			assert_int_equal(got[i].entered, want[i].entered);
			entered += got[i].entered;
			left_alone += !got[i].entered;
		}
	}
	assert_true(entered > 100 && left_alone > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_emulated), cmocka_unit_test(test_nop5),	   cmocka_unit_test(test_place),
		cmocka_unit_test(test_known),	 cmocka_unit_test(test_scan),	   cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_random),	 cmocka_unit_test(test_odd_spans),
	};

	return cmocka_run_group_tests_name("insn", tests, NULL, NULL);
}
