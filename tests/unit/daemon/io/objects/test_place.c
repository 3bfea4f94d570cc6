// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_place.c: the addresses at which the probes of an object's functions are placed: small files
 * with the first bytes of real functions, and the reasons in a file against a place behind the entry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/io/objects/objects.h"
#include "daemon/io/objects/place.h"
#include "tests/unit/feed/elf_image.h"

#ifdef __x86_64__
/* cuMemHostAlloc of libcuda 550: cmpl, je to mov $4, %eax; ret, jmp through memory, nop. */
static const uint8_t stub[30] = { 0x81, 0x3d, 0x7e, 0x34, 0x93, 0x01, 0x00, 0xba, 0x1c, 0x32,
				  0x74, 0x0c, 0xff, 0x25, 0xa6, 0xb1, 0x83, 0x01, 0x66, 0x0f,
				  0x1f, 0x44, 0x00, 0x00, 0xb8, 0x04, 0x00, 0x00, 0x00, 0xc3 };

static const struct spec driver = {
	.soname = "libcuda.so.1",
	.dynsym = { { "cuMemHostAlloc", 0x300, sizeof(stub), GLOBAL },
		    { "cuMemFreeHost", 0x340, sizeof(stub), GLOBAL },
		    { "cuMemcpyHtoDAsync_v2", 0x380, sizeof(stub), GLOBAL } },
};

static void put_code(size_t at, const void *code, size_t n)
{
	memcpy(im.b + TEXT_OFF + at, code, n);
}

static void make(const struct spec *spec)
{
	build(spec);
	for (size_t at = 0x300; at <= 0x380; at += 0x40)
		put_code(at, stub, sizeof(stub));
}

static const struct ttmon_target *read_them(struct ttmon_elf_info *info)
{
	_cleanup_close_ int fd = memfile(im.b, im.n);

	assert_int_equal(ttmon_elf_read(fd, "libcuda.so.1", NULL, 0, info), 0);
	assert_int_equal(info->nr_targets, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(info->targets[i].offset, TEXT_OFF + 0x300 + i * 0x40);
		assert_false(info->targets[i].skip && info->targets[i].single_step);
	}
	return info->targets;
}

/* Checks the places: each is 10 bytes behind the entry, or at the entry and single-stepped. */
static void hold(size_t a, size_t b, size_t c)
{
	const size_t want[] = { a, b, c };
	const struct ttmon_target *t;
	struct ttmon_elf_info info;

	t = read_them(&info);
	for (size_t i = 0; i < 3; i++) {
		if (t[i].skip != want[i] || t[i].single_step != !want[i])
			fail_msg("function %zu: +%u%s", i, t[i].skip, t[i].single_step ? ", single-stepped" : "");
	}
	ttmon_elf_info_fini(&info);
}

static void test_driver(void **state)
{
	(void)state;
	make(&driver);
	hold(10, 10, 10);
}

/* A jump from another function, or a loop in the function itself. */
static void test_jumped_to(void **state)
{
	(void)state;
	make(&driver);
	put_code(0x800, "\xe9\x45\xfb\xff\xff", 5); /* jmp to 0x34a */
	hold(10, 0, 10);
	make(&driver);
	put_code(0x800, "\xe9\x3b\xfb\xff\xff", 5); /* to the entry, 0x340 */
	hold(10, 10, 10);
	make(&driver);
	put_code(0x318, "\xeb\xf0", 2); /* the loop's head is the place, 0x30a */
	hold(0, 10, 10);
	make(&driver);
	put_code(TEXT_LEN - 5, "\xe9\x81\xf3\xff\xff", 5); /* the last bytes of the code, to 0x381 */
	hold(10, 10, 0);
}

/* A symbol behind the entry can be called, and an address in a table can be jumped to. */
static void test_referred_to(void **state)
{
	struct spec spec = driver;
	Elf64_Rela rela = { .r_offset = DATA_VADDR, .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE) };
	Elf64_Shdr sh;
	size_t at;

	(void)state;
	spec.symtab[0] = (struct sym){ "inner", 0x34a, 4, LOCAL };
	make(&spec);
	hold(10, 0, 10);
	spec.symtab[0] = (struct sym){ "label", 0x385, 0, ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE) };
	make(&spec);
	hold(10, 10, 0);
	spec.symtab[0] = (struct sym){ "next", 0x34b, 4, LOCAL };
	make(&spec);
	hold(10, 10, 10);
	/* The section with the program's name becomes a section of relocations. */
	for (size_t i = 0; i < 2; i++) {
		make(&driver);
		rela.r_addend = TEXT_VADDR + (i ? 0x34a : 0x340);
		at = put(&im, &rela, sizeof(rela));
		memcpy(&sh, im.b + ((Elf64_Ehdr *)im.b)->e_shoff + sizeof(sh), sizeof(sh));
		sh.sh_type = SHT_RELA;
		sh.sh_offset = at;
		sh.sh_size = sizeof(rela);
		memcpy(im.b + ((Elf64_Ehdr *)im.b)->e_shoff + sizeof(sh), &sh, sizeof(sh));
		hold(10, i ? 0 : 10, 10);
	}
}

/* By the symbol's size the function ends before the place, or the size is unknown. */
static void test_size(void **state)
{
	struct spec spec = driver;

	(void)state;
	spec.dynsym[0].size = 11;
	spec.dynsym[1].size = 12;
	spec.dynsym[2].size = 0;
	make(&spec);
	hold(0, 10, 0);
}

/* Nops of five bytes are recognised, and not used if there is another place. */
static void test_nop5(void **state)
{
	const struct ttmon_target *t;
	struct ttmon_elf_info info;

	(void)state;
	make(&driver);
	put_code(0x300, "\x0f\x1f\x44\0\0\x55\x5d\xc3", 8);
	put_code(0x340, "\x0f\x1f\x44\0\0\x48\x89\xe0\xc3", 9);
	put_code(0x380, "\x0f\x1f\x44\0\0\x55\x5d\xeb\xfc", 9); /* jumps to the push */
	t = read_them(&info);
	assert_true(t[0].skip == 5 && !t[0].nop5);
	assert_true(t[1].skip == 0 && t[1].nop5);
	assert_true(t[2].skip == 0 && t[2].nop5);
	ttmon_elf_info_fini(&info);
}

/* There is more code than is searched: it is unknown which jumps there are. */
static void test_too_much_code(void **state)
{
	Elf64_Phdr ph;

	(void)state;
	make(&driver);
	memcpy(&ph, im.b + 64, sizeof(ph));
	ph.p_filesz = ph.p_memsz = (64u << 20) + 1;
	memcpy(im.b + 64, &ph, sizeof(ph));
	{
		struct ttmon_elf_info info;
		_cleanup_close_ int fd = memfile(im.b, im.n);

		assert_int_equal(ftruncate(fd, (80u << 20)), 0);
		assert_int_equal(ttmon_elf_read(fd, "libcuda.so.1", NULL, 0, &info), 0);
		for (size_t i = 0; i < 3; i++)
			assert_true(!info.targets[i].skip && info.targets[i].single_step);
		ttmon_elf_info_fini(&info);
	}
}

/* The order does not matter, and an address may occur twice. */
static void test_any_order(void **state)
{
	struct ttmon_place p[] = {
		{ .offset = TEXT_OFF + 0x380, .addr = TEXT_VADDR + 0x380, .size = sizeof(stub) },
		{ .offset = TEXT_OFF + 0x300, .addr = TEXT_VADDR + 0x300, .size = sizeof(stub) },
		{ .offset = TEXT_OFF + 0x380, .addr = TEXT_VADDR + 0x380, .size = sizeof(stub) },
		{ .offset = TEXT_OFF + 0x100, .addr = TEXT_VADDR + 0x100, .size = 16 },
		{ .offset = TEXT_OFF + 0x200, .addr = TEXT_VADDR + 0x200, .size = 16 },
	};
	_cleanup_(ttmon_elf_fini) struct ttmon_elf e = { .fd = -1 };
	_cleanup_close_ int fd = -1;

	(void)state;
	make(&driver);
	put_code(0x800, "\xe9\x05\xfb\xff\xff", 5); /* jmp to 0x30a */
	fd = memfile(im.b, im.n);
	assert_int_equal(ttmon_elf_open(fd, &e), 0);
	assert_int_equal(ttmon_place_find(&e, p, ARRAY_SIZE(p)), 0);
	assert_int_equal(p[0].why, TTMON_PLACE_BEHIND);
	assert_int_equal(p[1].why, TTMON_PLACE_ENTERED);
	assert_int_equal(p[2].why, TTMON_PLACE_BEHIND);
	assert_int_equal(p[3].why, TTMON_PLACE_ENTRY);
	assert_int_equal(p[4].why, TTMON_PLACE_UNKNOWN);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		assert_int_equal(p[i].skip, p[i].why == TTMON_PLACE_BEHIND ? 10 : 0);
		assert_non_null(ttmon_place_why_name(p[i].why));
	}
	assert_int_equal(ttmon_place_find(&e, p, 0), 0);
	p[0].offset = im.n + 1;
	assert_int_equal(ttmon_place_find(&e, p, ARRAY_SIZE(p)), -EBADMSG);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(test_driver),	    cmocka_unit_test(test_jumped_to),
		cmocka_unit_test(test_referred_to), cmocka_unit_test(test_size),
		cmocka_unit_test(test_nop5),	    cmocka_unit_test(test_too_much_code),
		cmocka_unit_test(test_any_order),
#endif
	};

	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
