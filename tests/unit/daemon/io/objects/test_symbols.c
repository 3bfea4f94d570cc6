// SPDX-License-Identifier: GPL-2.0-only
/* test_symbols.c: names for file offsets: nearest function, ties, sizes, holes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/io/objects/objects.h"
#include "tests/unit/feed/elf_image.h"

#ifdef __x86_64__
struct names {
	char name[8][64];
	uint64_t delta[8];
	size_t n;
};

static void see(void *ctx, size_t i, const char *name, uint64_t delta)
{
	struct names *s = ctx;

	assert_int_equal(i, s->n++);
	snprintf(s->name[i], sizeof(s->name[0]), "%s", name ? name : "(none)");
	s->delta[i] = delta;
}

static void test_symbols(void **state)
{
	struct spec spec = {
		.dynsym = { { "only_dynamic", 0x100, 0x10, GLOBAL } },
		.symtab = { { "local_twin", 0x100, 0x40, LOCAL },
			    { "first", 0x100, 0x40, GLOBAL },
			    { "weak_twin", 0x100, 0x40, WEAK },
			    { "no_size", 0x200, 0, LOCAL },
			    { "third", 0x300, 0x10, GLOBAL },
			    { "an_object", 0x305, 8, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT) },
			    { "imported", 0, 8, GLOBAL },
			    { "huge", 0x800, ~0ull, GLOBAL } },
	};
	const uint64_t at[8] = { TEXT_OFF + 0xff,  TEXT_OFF + 0x100, TEXT_OFF + 0x13f,	      TEXT_OFF + 0x140,
				 TEXT_OFF + 0x2ff, TEXT_OFF + 0x30f, TEXT_OFF + TEXT_LEN - 1, TEXT_OFF + TEXT_LEN };
	struct names s = { .n = 0 };
	_cleanup_close_ int fd = -1;
	int dynamic;
	char buf[64] = "untouched";
	uint64_t delta = 77;

	(void)state;
	build(&spec);
	fd = memfile(im.b, im.n);
	assert_int_equal(ttmon_elf_symbols(fd, at, ARRAY_SIZE(at), see, &s), 0);
	assert_int_equal(s.n, 8);
	assert_string_equal(s.name[0], "(none)");
	assert_string_equal(s.name[1], "first");
	assert_int_equal(s.delta[1], 0);
	assert_string_equal(s.name[2], "first");
	assert_int_equal(s.delta[2], 0x3f);
	assert_string_equal(s.name[3], "(none)");
	assert_string_equal(s.name[4], "no_size");
	assert_int_equal(s.delta[4], 0xff);
	assert_string_equal(s.name[5], "third");
	assert_string_equal(s.name[6], "huge");
	assert_string_equal(s.name[7], "(none)");

	assert_int_equal(ttmon_elf_symbol(fd, TEXT_OFF + 0x140, buf, sizeof(buf), &delta), -ENOENT);
	assert_string_equal(buf, "untouched");
	assert_int_equal(delta, 77);
	assert_int_equal(ttmon_elf_symbol(fd, TEXT_OFF + 0x104, buf, 4, &delta), 0);
	assert_string_equal(buf, "fir");
	assert_int_equal(delta, 4);
	assert_int_equal(ttmon_elf_symbols(fd, NULL, 0, see, &s), 0);

	memset(spec.symtab, 0, sizeof(spec.symtab));
	build(&spec);
	dynamic = memfile(im.b, im.n);
	assert_int_equal(ttmon_elf_symbol(dynamic, TEXT_OFF + 0x108, buf, sizeof(buf), &delta), 0);
	close(dynamic);
	assert_string_equal(buf, "only_dynamic");
	assert_int_equal(delta, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_symbols) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	printf("SKIP: the files made here are for x86-64\n");
	return 77;
}
#endif
