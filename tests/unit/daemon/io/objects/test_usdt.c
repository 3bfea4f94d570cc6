// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_usdt.c: io/objects/usdt.c, and the notes that include/ttmon/usdt.h leaves in this very program,
 * read back with libelf and run through the parser. The probes themselves must change nothing.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <stddef.h>
#include <stdint.h>

#include <asm/ptrace.h>
#include <cmocka.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>

#include <ttmon/usdt.h>

#include "daemon/io/objects/usdt.h"

#if defined(__x86_64__)
#define NATIVE EM_X86_64
_Static_assert(offsetof(struct pt_regs, r15) == 0 && offsetof(struct pt_regs, rdi) == 14 * 8 &&
		       offsetof(struct pt_regs, rsp) == 19 * 8,
	       "");
#else
#define NATIVE EM_AARCH64
#endif

static struct ttmon_usdt_arg one(uint16_t machine, const char *text)
{
	struct ttmon_usdt_spec spec;

	assert_int_equal(ttmon_usdt_parse_for(machine, text, &spec), 0);
	assert_int_equal(spec.nr_args, 1);
	assert_int_equal(spec.args[1].kind, TTMON_USDT_NONE);
	return spec.args[0];
}

static void expect(uint16_t machine, const char *text, int kind, uint32_t word, int64_t value, int bytes, int is_signed)
{
	struct ttmon_usdt_arg arg = one(machine, text);

	assert_int_equal(arg.kind, kind);
	assert_int_equal(arg.reg_off, word * 8);
	assert_int_equal(arg.value, value);
	assert_int_equal(arg.bytes, bytes);
	assert_int_equal(arg.is_signed, is_signed);
}

static void test_x86(void **state)
{
	(void)state;
	expect(EM_X86_64, "8@%rdi", TTMON_USDT_REG, 14, 0, 8, 0);
	expect(EM_X86_64, "8@rdi", TTMON_USDT_REG, 14, 0, 8, 0);
	expect(EM_X86_64, "-4@%r8d", TTMON_USDT_REG, 9, 0, 4, 1);
	expect(EM_X86_64, "2@%bp", TTMON_USDT_REG, 4, 0, 2, 0);
	expect(EM_X86_64, "-1@%sil", TTMON_USDT_REG, 13, 0, 1, 1);
	expect(EM_X86_64, "8@%r15", TTMON_USDT_REG, 0, 0, 8, 0);
	expect(EM_X86_64, "8@-16(%rbp)", TTMON_USDT_MEM, 4, -16, 8, 0);
	expect(EM_X86_64, "8@0x10(%rsp)", TTMON_USDT_MEM, 19, 16, 8, 0);
	expect(EM_X86_64, "4@(%rax)", TTMON_USDT_MEM, 10, 0, 4, 0);
	expect(EM_X86_64, "8@$5", TTMON_USDT_IMM, 0, 5, 8, 0);
	expect(EM_X86_64, "-8@$-9223372036854775808", TTMON_USDT_IMM, 0, INT64_MIN, 8, 1);
	expect(EM_X86_64, "8@$18446744073709551615", TTMON_USDT_IMM, 0, -1, 8, 0);
	expect(EM_X86_64, "  8@$0  ", TTMON_USDT_IMM, 0, 0, 8, 0);
}

static void test_aarch64(void **state)
{
	(void)state;
	expect(EM_AARCH64, "8@x0", TTMON_USDT_REG, 0, 0, 8, 0);
	expect(EM_AARCH64, "-4@w30", TTMON_USDT_REG, 30, 0, 4, 1);
	expect(EM_AARCH64, "8@sp", TTMON_USDT_REG, 31, 0, 8, 0);
	expect(EM_AARCH64, "8@[sp, 16]", TTMON_USDT_MEM, 31, 16, 8, 0);
	expect(EM_AARCH64, "8@[x19,#-8]", TTMON_USDT_MEM, 19, -8, 8, 0);
	expect(EM_AARCH64, "8@[x1]", TTMON_USDT_MEM, 1, 0, 8, 0);
	expect(EM_AARCH64, "8@-7", TTMON_USDT_IMM, 0, -7, 8, 0);
}

static void test_several(void **state)
{
	struct ttmon_usdt_spec spec;

	(void)state;
	assert_int_equal(ttmon_usdt_parse_for(EM_X86_64, "8@%rax  8@$3 8@8(%rcx) 8@%rdx nonsense", &spec), 0);
	assert_int_equal(spec.nr_args, 3);
	assert_int_equal(spec.args[0].kind, TTMON_USDT_REG);
	assert_int_equal(spec.args[1].kind, TTMON_USDT_IMM);
	assert_int_equal(spec.args[2].kind, TTMON_USDT_MEM);
	assert_int_equal(ttmon_usdt_parse_for(EM_X86_64, "", &spec), 0);
	assert_int_equal(spec.nr_args, 0);
}

static void test_refused(void **state)
{
	static const struct {
		uint16_t machine;
		const char *text;
	} bad[] = {
		{ EM_X86_64, "8" },
		{ EM_X86_64, "8@" },
		{ EM_X86_64, "@%rax" },
		{ EM_X86_64, "3@%rax" },
		{ EM_X86_64, "16@%xmm0" },
		{ EM_X86_64, "8@%xmm0" },
		{ EM_X86_64, "8@%" },
		{ EM_X86_64, "8@%raxx" },
		{ EM_X86_64, "1@%ah" },
		{ EM_X86_64, "8@(%rax" },
		{ EM_X86_64, "8@(rax)" },
		{ EM_X86_64, "8@8(%rax,%rbx,8)" },
		{ EM_X86_64, "8@16(%rip)" },
		{ EM_X86_64, "8@var(%rip)" },
		{ EM_X86_64, "8@$" },
		{ EM_X86_64, "8@$x" },
		{ EM_X86_64, "8@$-99999999999999999999" },
		{ EM_X86_64, "8@$99999999999999999999" },
		{ EM_X86_64, "8@%rax8@%rbx" },
		{ EM_X86_64, "-" },
		{ EM_X86_64, "8@$ 5" },
		{ EM_X86_64, "8@- 5(%rax)" },
		{ EM_X86_64, "8@x0" },
		{ EM_AARCH64, "8@%rax" },
		{ EM_AARCH64, "8@x31" },
		{ EM_AARCH64, "8@x01" },
		{ EM_AARCH64, "8@x" },
		{ EM_AARCH64, "8@[x0" },
		{ EM_AARCH64, "8@[x0,]" },
		{ EM_AARCH64, "8@[x0, x1]" },
		{ EM_AARCH64, "8@v0" },
		{ EM_386, "4@%eax" },
	};
	struct ttmon_usdt_spec spec, before;

	(void)state;
	memset(&spec, 0x5a, sizeof(spec));
	before = spec;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (ttmon_usdt_parse_for(bad[i].machine, bad[i].text, &spec) != -EBADMSG)
			fail_msg("accepted: %s", bad[i].text);
		assert_memory_equal(&spec, &before, sizeof(spec));
	}
}

/* Variables that live across the probes. */
__attribute__((noinline)) static uint64_t pool(uint64_t n, volatile uint64_t *out)
{
	volatile uint64_t a = n * 3, b = n ^ 0x55, c = n + 7;

	TTMON_ALLOC((const void *)out, n, "pool");
	TTMON_ALLOC((const void *)out, n, NULL);
	TTMON_FREE((const void *)out);
	TTMON_CHECKPOINT("step");
	TTMON_CHECKPOINT(NULL);
	return a + b + c;
}

struct found {
	unsigned int allocs, frees, checkpoints;
	bool all_at_a_nop;
};

static void look_at_note(Elf *elf, const char *desc, size_t n, struct found *found)
{
	/*
	 * On x86 of one byte: a probe on a longer one is made a call by newer kernels, of which a forked child
	 * dies.
	 */
	static const unsigned char nop_x86[] = { 0x90 }, nop_arm[] = { 0x1f, 0x20, 0x03, 0xd5 };
	const void *nop = NATIVE == EM_X86_64 ? nop_x86 : nop_arm;
	size_t nop_len = NATIVE == EM_X86_64 ? sizeof(nop_x86) : sizeof(nop_arm), raw_len, nr_phdrs;
	const char *provider = desc + 24, *name = provider + strlen(provider) + 1, *args = name + strlen(name) + 1;
	const char *raw = elf_rawfile(elf, &raw_len);
	struct ttmon_usdt_spec spec;
	bool is_alloc = strcmp(name, "alloc") == 0, is_free = strcmp(name, "free") == 0, at_nop = false;
	uint64_t pc, sema;

	assert_true(args + strlen(args) < desc + n);
	if (strcmp(provider, "ttmon") != 0)
		return;
	memcpy(&pc, desc, 8);
	memcpy(&sema, desc + 16, 8);
	assert_int_equal(sema, 0);
	assert_true(is_alloc || is_free || strcmp(name, "checkpoint") == 0);

	assert_int_equal(ttmon_usdt_parse(args, &spec), 0);
	assert_int_equal(spec.nr_args, is_alloc ? 3 : 1);
	for (uint32_t i = 0; i < spec.nr_args; i++) {
		assert_int_equal(spec.args[i].kind, TTMON_USDT_REG);
		assert_int_equal(spec.args[i].bytes, 8);
	}
	found->allocs += is_alloc;
	found->frees += is_free;
	found->checkpoints += !is_alloc && !is_free;

	elf_getphdrnum(elf, &nr_phdrs);
	for (size_t i = 0; i < nr_phdrs; i++) {
		GElf_Phdr ph;

		gelf_getphdr(elf, (int)i, &ph);
		if (ph.p_type == PT_LOAD && (ph.p_flags & PF_X) && pc >= ph.p_vaddr && pc < ph.p_vaddr + ph.p_filesz)
			at_nop = memcmp(raw + pc - ph.p_vaddr + ph.p_offset, nop, nop_len) == 0;
	}
	found->all_at_a_nop = found->all_at_a_nop && at_nop;
}

static void test_notes_of_this_program(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct found found = { .all_at_a_nop = true };
	volatile uint64_t out = 0;
	_cleanup_free_ char *image = NULL;
	Elf_Scn *scn = NULL;
	struct stat st;
	Elf *elf;

	(void)state;
	assert_int_equal(pool(100, &out), 300 + (100 ^ 0x55) + 107);

	elf_version(EV_CURRENT);
	/*
	 * Read, not mapped: a tracer's breakpoints are in private mappings of the file, this one's too, and
	 * not in the file.
	 */
	assert_int_equal(fstat(fd, &st), 0);
	image = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, image, (size_t)st.st_size), st.st_size);
	elf = elf_memory(image, (size_t)st.st_size);
	assert_non_null(elf);
	while ((scn = elf_nextscn(elf, scn))) {
		size_t at = 0, name_at, desc_at;
		GElf_Shdr sh;
		GElf_Nhdr note;
		Elf_Data *data;

		gelf_getshdr(scn, &sh);
		data = sh.sh_type == SHT_NOTE ? elf_getdata(scn, NULL) : NULL;
		while (data && (at = gelf_getnote(data, at, &note, &name_at, &desc_at))) {
			const char *bytes = data->d_buf;

			if (note.n_type == 3 && note.n_namesz == 8 && strcmp(bytes + name_at, "stapsdt") == 0)
				look_at_note(elf, bytes + desc_at, note.n_descsz, &found);
		}
	}
	elf_end(elf);
	close(fd);
	assert_int_equal(found.allocs, 2);
	assert_int_equal(found.frees, 1);
	assert_int_equal(found.checkpoints, 2);
	assert_true(found.all_at_a_nop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86),
		cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_notes_of_this_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
