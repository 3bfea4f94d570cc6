// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_cfi.c: call frame information made by hand: each kind of instruction and expression, what is
 * broken, and tables found in the three ways that files have them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/unwind/table.h"
#include "tests/unit/feed/eh_image.h"

static struct ttmon_uw_row row;
static struct ttmon_uw_exprs exprs;

/* The rules n bytes into a function of 100 whose FDE has these instructions. */
static int at(uint32_t n, const char *insns, size_t len)
{
	static const uint8_t initial[] = { 0x0c, 7, 8, 0x90, 1 };
	struct ttmon_uw_fde f = {
		.start = 1000,
		.len = 100,
		.code_align = 1,
		.data_align = -8,
		.cie_insns = initial,
		.cie_end = initial + sizeof(initial),
		.insns = (const uint8_t *)insns,
		.end = (const uint8_t *)insns + len,
	};

	return ttmon_uw_rules(&f, 1000 + n, &row, &exprs);
}

#define AT(n, insns) at(n, insns, sizeof(insns) - 1)

static void assert_cfa(unsigned int reg, int off)
{
	assert_false(row.cfa_expr);
	assert_int_equal(row.cfa_reg, reg);
	assert_int_equal(row.cfa_off, off);
}

static void assert_rule(unsigned int reg, enum ttmon_uw_rule rule, int value)
{
	assert_int_equal(row.rule[reg], rule);
	assert_int_equal(row.value[reg], value);
}

/* push %rbp; mov %rsp, %rbp; ...; pop %rbp; ret; a cold part behind it. */
#define PROLOGUE "\x41\x0e\x10\x86\x02\x43\x0d\x06\x0a\x54\x0c\x07\x08\x41\x0b"

static void rows_follow_the_code(void **state)
{
	(void)state;
	assert_int_equal(AT(0, PROLOGUE), 0);
	assert_cfa(7, 8);
	assert_rule(TTMON_UW_RA, TTMON_UW_OFFSET, -8);
	assert_rule(TTMON_UW_RBP, TTMON_UW_SAME, 0);
	assert_int_equal(AT(1, PROLOGUE), 0);
	assert_cfa(7, 16);
	assert_rule(TTMON_UW_RBP, TTMON_UW_OFFSET, -16);
	assert_int_equal(AT(4, PROLOGUE), 0);
	assert_cfa(6, 16);
	assert_int_equal(AT(23, PROLOGUE), 0);
	assert_cfa(6, 16);
	assert_int_equal(AT(24, PROLOGUE), 0);
	assert_cfa(7, 8);
	/* What was remembered is back, its CFA too. */
	assert_int_equal(AT(25, PROLOGUE), 0);
	assert_cfa(6, 16);
	assert_rule(TTMON_UW_RBP, TTMON_UW_OFFSET, -16);
}

static void all_kinds_of_rules(void **state)
{
	(void)state;
	assert_int_equal(AT(50, "\x05\x03\x03\x07\x0c\x08\x0d\x09\x0e\x0f\x14\x0f\x02\x2e\x20\x03\x01\x00\x02\x05"), 0);
	assert_rule(TTMON_UW_RBX, TTMON_UW_OFFSET, -24);
	assert_rule(12, TTMON_UW_UNDEF, 0);
	assert_rule(13, TTMON_UW_SAME, 0);
	assert_rule(14, TTMON_UW_REG, 15);
	assert_rule(15, TTMON_UW_VALUE, -16);
	assert_int_equal(AT(50, "\x11\x03\x7e\x12\x06\x7e\x15\x0c\x02\x2f\x0d\x02\x13\x7d"), 0);
	assert_rule(TTMON_UW_RBX, TTMON_UW_OFFSET, 16);
	assert_rule(12, TTMON_UW_VALUE, -16);
	assert_rule(13, TTMON_UW_OFFSET, 16);
	assert_cfa(6, 24);
	/* Vector registers, and one restored to what the CIE says. */
	assert_int_equal(AT(50, "\x05\x20\x03\x90\x09\xd0\x83\x02\x06\x03"), 0);
	assert_rule(TTMON_UW_RA, TTMON_UW_OFFSET, -8);
	assert_rule(TTMON_UW_RBX, TTMON_UW_SAME, 0);
}

static bool read_word(void *ctx, uint64_t addr, uint64_t *ret)
{
	(void)ctx;
	*ret = addr * 2;
	return addr < 0x10000;
}

static void expressions(void **state)
{
	struct ttmon_uw_regs regs = { .known = 1u << 7 | 1u << 16 };
	uint64_t v, start = 0x100;

	(void)state;
	regs.r[7] = 0x7000;
	regs.r[16] = 0x401b;
	/* That of a PLT: rsp + 8 + ((rip & 15) >= 11) * 8. */
	assert_int_equal(AT(0, "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"), 0);
	assert_true(row.cfa_expr && row.has_expr);
	assert_true(ttmon_uw_eval(&exprs.cfa, &regs, NULL, read_word, NULL, &v));
	assert_int_equal(v, 0x7010);
	regs.r[16] = 0x4014;
	assert_true(ttmon_uw_eval(&exprs.cfa, &regs, NULL, read_word, NULL, &v));
	assert_int_equal(v, 0x7008);
	/* One of a signal frame, and one on the CFA. */
	assert_int_equal(AT(0, "\x10\x06\x04\x77\x80\x01\x06\x16\x03\x03\x23\x08\x06"), 0);
	assert_int_equal(row.rule[6], TTMON_UW_EXPR);
	assert_true(ttmon_uw_eval(&exprs.reg[6], &regs, &start, read_word, NULL, &v));
	assert_int_equal(v, 0x7080 * 2);
	assert_int_equal(row.rule[3], TTMON_UW_VAL_EXPR);
	assert_true(ttmon_uw_eval(&exprs.reg[3], &regs, &start, read_word, NULL, &v));
	assert_int_equal(v, 0x108 * 2);
}

static bool value(const char *p, size_t n, uint64_t *v)
{
	struct ttmon_uw_regs regs = { .known = 1u << 7, .r[7] = 0x7000 };
	struct ttmon_uw_expr e = { .p = (const uint8_t *)p, .n = (uint32_t)n };

	return ttmon_uw_eval(&e, &regs, NULL, read_word, NULL, v);
}

#define VALUE(p, v) value(p, sizeof(p) - 1, v)

static void broken_expressions(void **state)
{
	char deep[200];
	uint64_t v;

	(void)state;
	assert_true(VALUE("\x0e\1\2\3\4\5\6\7\x08\x11\x7f\x22", &v));
	assert_int_equal(v, 0x0807060504030200);
	assert_true(VALUE("\x0b\xfe\xff\x0d\xff\xff\xff\xff\x1e\x38\x12\x13\x21", &v));
	assert_int_equal(v, 10);
	assert_false(VALUE("", &v));
	assert_false(VALUE("\x22", &v));	     /* nothing on the stack */
	assert_false(VALUE("\x76\x00", &v));	     /* rbp is not known */
	assert_false(VALUE("\x0e\1\2", &v));	     /* cut */
	assert_false(VALUE("\x77\x80", &v));	     /* cut */
	assert_false(VALUE("\x31\x32\xe0", &v));     /* no such operation */
	assert_false(VALUE("\x09\xff\x06", &v));     /* memory that is not there */
	assert_false(VALUE("\x2f\xfd\xff\x31", &v)); /* skip: no loops */
	memset(deep, 0x31, sizeof(deep));
	assert_false(value(deep, sizeof(deep), &v));
}

static void broken_instructions(void **state)
{
	(void)state;
	assert_int_equal(AT(50, "\x0e"), -EBADMSG);
	assert_int_equal(AT(50, "\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), -EBADMSG);
	assert_int_equal(AT(50, "\x0e\xff\xff\xff\xff\xff\x01"), -EBADMSG); /* more than a stack has */
	assert_int_equal(AT(50, "\x0b"), -EBADMSG);
	assert_int_equal(AT(50, "\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a"), -EBADMSG);
	assert_int_equal(AT(50, "\x0c\x20\x08"), -EBADMSG); /* a CFA on a register that does not exist */
	assert_int_equal(AT(50, "\x10\x06\x20\x77"), -EBADMSG);
	assert_int_equal(AT(50, "\x3f"), -EOPNOTSUPP);
	assert_int_equal(AT(50, "\x01\0\0\0\0\0\0\0\0"), -EOPNOTSUPP);
	assert_int_equal(AT(100, ""), -EBADMSG);
}

static void entries_that_lie(void **state)
{
	static const char good[] = "\1zR\0\1\x78\x10\1\x1b\x0c\7\x08\x90\1";
	struct ttmon_uw_fde f;
	char b[sizeof(good)];
	const uint8_t *p = (const uint8_t *)b, *end = p + sizeof(good) - 1;

	(void)state;
	memcpy(b, good, sizeof(b));
	assert_int_equal(ttmon_uw_read_cie(p, end, false, &f), 0);
	assert_int_equal(f.encoding, 0x1b);
	assert_int_equal(f.data_align, -8);
	for (size_t n = 0; n < 9; n++)
		assert_int_not_equal(ttmon_uw_read_cie(p, p + n, false, &f), 0);
	b[0] = 2;
	assert_int_equal(ttmon_uw_read_cie(p, end, false, &f), -EOPNOTSUPP);
	memcpy(b, good, sizeof(b));
	b[2] = 'X';
	assert_int_equal(ttmon_uw_read_cie(p, end, false, &f), -EOPNOTSUPP);
	memcpy(b, good, sizeof(b));
	b[8] = (char)0x9b; /* a pointer to the address */
	assert_int_equal(ttmon_uw_read_cie(p, end, false, &f), -EOPNOTSUPP);
	b[8] = 0x1b;
	b[6] = 30; /* the return address in another register */
	assert_int_equal(ttmon_uw_read_cie(p, end, false, &f), -EOPNOTSUPP);
	memcpy(b, good, sizeof(b));
	assert_int_equal(ttmon_uw_read_cie(p, end, false, &f), 0);
	assert_int_equal(ttmon_uw_read_fde((const uint8_t *)"\0\0\0\0\x10\0\0\0\x05", (const uint8_t *)"", 0, &f),
			 -EBADMSG);
}

static struct ttmon_uw_table *made(struct eh_image *im, enum eh_kind kind)
{
	struct ttmon_uw_table *t;

	*im = (struct eh_image){ .kind = kind };
	eh_cie(im, kind == EH_DEBUG ? "" : "zR");
	for (uint32_t i = 0; i < 40; i++)
		eh_fde(im, i * 32, 16, (uint8_t[]){ 0x41, 0x0e, (uint8_t)(16 + i) }, 3);
	assert_int_equal(ttmon_uw_table_open(eh_file(im), &t), 0);
	assert_true(ttmon_uw_table_any(t));
	return t;
}

static void tables_in_three_ways(void **state)
{
	static struct eh_image im;

	(void)state;
	for (enum eh_kind kind = EH_WITH_HDR; kind <= EH_DEBUG; kind++) {
		struct ttmon_uw_table *t = made(&im, kind);

		for (uint32_t i = 0; i < 40; i++) {
			assert_int_equal(ttmon_uw_table_row(t, EH_TEXT + i * 32, &row, &exprs), 0);
			assert_cfa(7, 8);
			assert_int_equal(ttmon_uw_table_row(t, EH_TEXT + i * 32 + 15, &row, &exprs), 0);
			assert_cfa(7, 16 + (int)i);
			/* Between two functions. */
			assert_int_equal(ttmon_uw_table_row(t, EH_TEXT + i * 32 + 16, &row, &exprs), -ENOENT);
		}
		assert_int_equal(ttmon_uw_table_row(t, EH_TEXT - 1, &row, &exprs), -ENOENT);
		assert_int_equal(ttmon_uw_table_row(t, EH_SIZE, &row, &exprs), -ENOENT);
		assert_int_equal(ttmon_uw_table_row(t, UINT64_MAX, &row, &exprs), -ENOENT);
		ttmon_uw_table_free(t);
	}
}

/* It is cut, or written over, while it is read: an error or another row, no more. */
static void file_changes_meanwhile(void **state)
{
	static struct eh_image im;
	struct ttmon_uw_table *t = made(&im, EH_WITH_HDR);
	char ones[64];

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	assert_int_equal(pwrite(t->fd, ones, sizeof(ones), EH_FRAME), sizeof(ones));
	assert_int_not_equal(ttmon_uw_table_row(t, EH_TEXT, &row, &exprs), 0);
	assert_int_equal(ftruncate(t->fd, EH_FRAME), 0);
	assert_int_equal(ttmon_uw_table_row(t, EH_TEXT + 32, &row, &exprs), -EBADMSG);
	ttmon_uw_table_free(t);
	t = made(&im, EH_DEBUG);
	assert_int_equal(ftruncate(t->fd, EH_FRAME + 100), 0);
	assert_int_not_equal(ttmon_uw_table_row(t, EH_TEXT + 39 * 32, &row, &exprs), 0);
	ttmon_uw_table_free(t);
}

static void no_tables(void **state)
{
	static struct eh_image im;
	struct ttmon_uw_table *t;
	int fd = memfd_create("text", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(write(fd, "no ELF file", 11), 11);
	assert_int_equal(ttmon_uw_table_open(fd, &t), -ENOEXEC);
	im = (struct eh_image){ .kind = EH_WITHOUT_HDR };
	assert_int_equal(ttmon_uw_table_open(eh_file(&im), &t), 0);
	assert_false(ttmon_uw_table_any(t));
	assert_int_equal(ttmon_uw_table_row(t, EH_TEXT, &row, &exprs), -ENOENT);
	ttmon_uw_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_follow_the_code),
		cmocka_unit_test(all_kinds_of_rules),
		cmocka_unit_test(expressions),
		cmocka_unit_test(broken_expressions),
		cmocka_unit_test(broken_instructions),
		cmocka_unit_test(entries_that_lie),
		cmocka_unit_test(tables_in_three_ways),
		cmocka_unit_test(file_changes_meanwhile),
		cmocka_unit_test(no_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
