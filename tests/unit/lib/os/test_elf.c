// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_elf.c: the ELF reader on small files made by elf_image.h, on damaged ones, and on the real CUDA
 * libraries where they are (SKIP otherwise).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>

#include "daemon/io/objects/objects.h"
#include "lib/os/elf.h"
#include "tests/unit/feed/elf_image.h"

#ifdef __x86_64__
static int read_as(const char *base, const struct spec *spec, struct ttmon_elf_info *info)
{
	_cleanup_close_ int fd = -1;

	build(spec);
	fd = memfile(im.b, im.n);
	*info = (struct ttmon_elf_info){ 0 };
	return ttmon_elf_read(fd, base, NULL, 0, info);
}

static const struct ttmon_target *target(const struct ttmon_elf_info *info, uint64_t at)
{
	for (size_t i = 0; i < info->nr_targets; i++) {
		if (info->targets[i].offset == TEXT_OFF + at)
			return &info->targets[i];
	}
	return NULL;
}

static void assert_target(const struct ttmon_elf_info *info, uint64_t at, unsigned int fn)
{
	const struct ttmon_target *t = target(info, at);

	if (!t || t->fn != fn)
		fail_msg("at %#llx: fn %d, not %u", (unsigned long long)at, t ? t->fn : -1, fn);
}

static void test_runtime(void **state)
{
	const struct spec spec = {
		.soname = "libcudart.so.13",
		.dynsym = { { "cudaMalloc", 0x200, 16, GLOBAL },
			    { "cudaHostAlloc", 0x100, 16, GLOBAL },
			    { "cudaMemcpy_ptds", 0x180, 16, GLOBAL },
			    { "cudaMemcpyAsync_ptsz", 0x1c0, 16, WEAK },
			    { "cudaMemcpyBatchAsync", 0x300, 16, GLOBAL },
			    { "cudaMemPrefetchAsync_v2", 0x340, 16, GLOBAL }, /* no such row for 13 */
			    { "cudaFree", 0, 0, GLOBAL },
			    { "cudaMallocManaged", 0x4c0, 0, GLOBAL | IMPORT },
			    { "cudaFreeHost", 0x380, 16, ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC) },
			    { "cudaMallocHost", 0x3c0, 16, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT) },
			    { "cudaMallocX", 0x400, 16, GLOBAL },
			    { "xcudaMalloc", 0x440, 16, GLOBAL },
			    { "cudaHostRegister", TEXT_LEN, 16, GLOBAL }, /* past the end of the segment */
			    { "cudaHostUnregister@@libcudart.so.13", 0x480, 16, GLOBAL } },
		/* The same function under its own and another name: one target. */
		.symtab = { { "cudaHostAlloc", 0x100, 16, GLOBAL },
			    { "cudaMemcpy", 0x180, 16, GLOBAL },
			    { "__cudaLaunchKernel", 0x4a0, 16, GLOBAL } },
	};
	struct ttmon_elf_info info;

	(void)state;
	assert_int_equal(read_as("libcudart.so.13.0.48", &spec, &info), 0);
	assert_int_equal(info.kind, TTMON_OBJ_IS_RT);
	assert_int_equal(info.rt_major, 13);
	assert_int_equal(info.machine, EM_X86_64);
	assert_int_equal(info.build_id_len, 20);
	assert_memory_equal(info.build_id, build_id, 20);
	assert_int_equal(info.nr_targets, 6);
	for (size_t i = 1; i < info.nr_targets; i++)
		assert_true(info.targets[i - 1].offset < info.targets[i].offset);
	assert_target(&info, 0x100, 1);
	assert_target(&info, 0x180, 16);
	assert_target(&info, 0x1c0, 17);
	assert_target(&info, 0x200, 8);
	assert_target(&info, 0x300, 41);
	assert_target(&info, 0x480, 5);
	assert_string_equal(target(&info, 0x1c0)->symbol, "cudaMemcpyAsync_ptsz");
	assert_false(target(&info, 0x100)->single_step); /* push %rbp */
	assert_true(target(&info, 0x200)->single_step);	 /* endbr64 */
	assert_true(info.missing > 30);
	ttmon_elf_info_fini(&info);
	assert_int_equal(info.nr_targets, 0);
	ttmon_elf_info_fini(&info);
	ttmon_elf_info_fini(NULL);
}

static void test_versions(void **state)
{
	static const struct {
		const char *soname, *version, *marker;
		uint32_t major;
		unsigned int batch,
			second; /* rows of cudaMemcpyBatchAsync and of the marker, or cudaMemPrefetchAsync_v2 */
	} cases[] = {
		{ "libcudart.so.12", NULL, NULL, 12, 40, 46 },
		{ "libcudart.so.11.0", NULL, NULL, 11, 40, 46 },
		{ "libcudart.so.13", NULL, NULL, 13, 41, 0 },
		{ "libcudart.so.14", NULL, NULL, 14, 41, 0 },
		{ "libcudart-d0da41ae.so.12.4", NULL, NULL, 12, 40, 46 },
		{ "libfoo.so.1", "libcudart.so.12", NULL, 12, 40, 46 },
		{ "libcudart.so.13", "libcudart.so.12", NULL, 13, 41, 0 }, /* the soname counts */
		{ "libcudart.so.x", NULL, "cudaMemPrefetchAsync_v2", 0, 40, 46 },
		{ NULL, NULL, "cudaMemPrefetchAsync_v2", 0, 40, 46 },
		{ NULL, NULL, "cudaLaunchCooperativeKernelMultiDevice", 0, 40, 512 },
		{ NULL, NULL, NULL, 0, 41, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct spec spec = { .soname = cases[i].soname, .version = cases[i].version };
		struct ttmon_elf_info info;

		spec.symtab[0] = (struct sym){ "cudaMemcpyBatchAsync_ptsz", 0x100, 1, GLOBAL };
		if (cases[i].marker || cases[i].major)
			spec.symtab[1] = (struct sym){ cases[i].marker ? cases[i].marker : "cudaMemPrefetchAsync_v2",
						       0x200, 1, GLOBAL };
		assert_int_equal(read_as("x", &spec, &info), 0);
		if (info.rt_major != cases[i].major)
			fail_msg("case %zu: major %u", i, info.rt_major);
		assert_target(&info, 0x100, cases[i].batch);
		if (cases[i].second)
			assert_target(&info, 0x200, cases[i].second);
		else
			assert_null(target(&info, 0x200));
		ttmon_elf_info_fini(&info);
	}
}

static void test_driver(void **state)
{
	const struct spec spec = {
		.soname = "libcuda.so.1",
		.dynsym = { { "cuMemcpyHtoD", 0x100, 1, GLOBAL }, /* the 32-bit form: not probed */
			    { "cuMemcpyHtoD_v2", 0x200, 1, GLOBAL },
			    { "cuMemcpyHtoD_v2_ptds", 0x240, 1, GLOBAL },
			    { "cuMemAllocHost", 0x280, 1, GLOBAL },
			    { "cuMemAllocHost_v2", 0x2c0, 1, GLOBAL },
			    { "cuCtxCreate_v4", 0x300, 1, GLOBAL },
			    { "cuCtxCreate_v5", 0x340, 1, GLOBAL } },
	};
	struct spec other = spec;
	struct ttmon_elf_info info;

	(void)state;
	assert_int_equal(read_as("anything", &spec, &info), 0);
	assert_int_equal(info.kind, TTMON_OBJ_IS_DRV);
	assert_int_equal(info.nr_targets, 5);
	assert_target(&info, 0x200, 101);
	assert_target(&info, 0x240, 101);
	assert_target(&info, 0x280, 81);
	assert_target(&info, 0x2c0, 82);
	assert_target(&info, 0x300, 135);
	assert_true(info.missing > 50);
	ttmon_elf_info_fini(&info);

	/* A library that defines driver functions but is not the driver. */
	other.soname = "libshim.so";
	assert_int_equal(read_as("libshim.so", &other, &info), 0);
	assert_int_equal(info.kind, 0);
	assert_int_equal(info.nr_targets, 5);
	assert_int_equal(info.missing, 0);
	ttmon_elf_info_fini(&info);
	assert_int_equal(read_as("libcuda.so.580.65.06", &other, &info), 0);
	assert_int_equal(info.kind, TTMON_OBJ_IS_DRV);
	ttmon_elf_info_fini(&info);
}

static void test_static(void **state)
{
	static const char both[] = "x\0cuGetProcAddress_v2\0libcuda.so.1\0y", one[] = "libcuda.so.1\0libcuda.so.1.1";
	const struct spec has_symbols = {
		.symtab = { { "cudaMalloc", 0x100, 1, LOCAL }, { "main", 0x200, 1, GLOBAL } },
		.rodata = both,
		.rodata_len = sizeof(both),
	};
	struct spec stripped = { .dynsym = { { "dlopen", 0, 0, GLOBAL } }, .rodata = both, .rodata_len = sizeof(both) };
	struct ttmon_elf_info info;

	(void)state;
	assert_int_equal(read_as("app", &has_symbols, &info), 0);
	assert_int_equal(info.kind, TTMON_OBJ_IS_RT | TTMON_OBJ_STATIC_RT);
	assert_int_equal(info.nr_targets, 1);
	ttmon_elf_info_fini(&info);

	assert_int_equal(read_as("libcublas.so.13", &stripped, &info), 0);
	assert_int_equal(info.kind, TTMON_OBJ_STRIPPED_RT);
	assert_int_equal(info.nr_targets, 0);
	assert_int_equal(read_as("libcuda.so.1", &stripped, &info), 0);
	assert_int_equal(info.kind, TTMON_OBJ_IS_DRV);
	stripped.needed = "libcudart.so.13";
	assert_int_equal(read_as("app", &stripped, &info), 0);
	assert_int_equal(info.kind, 0);
	stripped.needed = "libcuda.so.1";
	stripped.rodata = one;
	stripped.rodata_len = sizeof(one);
	assert_int_equal(read_as("app", &stripped, &info), 0);
	assert_int_equal(info.kind, 0);
}

static void test_user(void **state)
{
	static const char long_name[] =
		"_ZN3foo3barEvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv";
	const struct spec spec = {
		.soname = "libmine.so.2",
		.dynsym = { { "my_alloc", 0x100, 1, GLOBAL },
			    { "not_my_alloc", 0x180, 1, GLOBAL },
			    { "my_allocator", 0x1c0, 1, GLOBAL } },
		.symtab = { { "my_free", 0x200, 1, LOCAL }, { long_name, 0x240, 1, LOCAL } },
	};
	const struct ttmon_user_fn user[] = {
		{ "libmine", "my_alloc", 200 }, { "libmine.so", "my_free", 201 }, { "libother", "not_my_alloc", 202 },
		{ "lib", "my_allocator", 203 }, { "*", long_name, 204 },
	};
	const struct ttmon_user_fn empty = { "*", "", 200 };
	_cleanup_close_ int fd = -1;
	struct ttmon_elf_info info;

	(void)state;
	build(&spec);
	fd = memfile(im.b, im.n);
	assert_int_equal(ttmon_elf_read(fd, "libmine.so.2", user, ARRAY_SIZE(user), &info), 0);
	assert_int_equal(info.kind, 0);
	assert_int_equal(info.nr_targets, 3);
	assert_target(&info, 0x100, 200);
	assert_target(&info, 0x200, 201);
	assert_target(&info, 0x240, 204);
	assert_int_equal(strlen(target(&info, 0x240)->symbol), 63);
	ttmon_elf_info_fini(&info);
	assert_int_equal(ttmon_elf_read(fd, "libmine.so.2", &empty, 1, &info), -EINVAL);
}

/* desc of a stapsdt note; three strings in one, with their NULs */
static size_t usdt_desc(unsigned char *buf, uint64_t loc, uint64_t base, uint64_t sema, const char *strings, size_t n)
{
	uint64_t a[3] = { loc, base, sema };

	memcpy(buf, a, sizeof(a));
	memcpy(buf + sizeof(a), strings, n);
	return sizeof(a) + n;
}
#define USDT(buf, loc, base, sema, s) usdt_desc(buf, loc, base, sema, s, sizeof(s))

static void test_usdt(void **state)
{
	unsigned char desc[400];
	char wide[330] = "ttmon\0alloc\0";
	struct spec spec = { .usdt = desc };
	struct ttmon_elf_info info;

	(void)state;
	spec.usdt_len = USDT(desc, TEXT_VADDR + 0x10, 0x500000, DATA_VADDR + 0x20,
			     "ttmon\0alloc\0"
			     "8@%rdi 8@%rsi");
	assert_int_equal(read_as("x", &spec, &info), 0);
	assert_int_equal(info.nr_usdts, 1);
	assert_int_equal(info.usdts[0].offset, TEXT_OFF + 0x10);
	assert_int_equal(info.usdts[0].sema, DATA_OFF + 0x20);
	assert_int_equal(info.usdts[0].fn, TTMON_FN_USDT_ALLOC);
	assert_string_equal(info.usdts[0].args, "8@%rdi 8@%rsi");
	ttmon_elf_info_fini(&info);

	/* Moved by 0x1000 after the note was written. */
	spec.stapsdt_base = 0x500000;
	spec.usdt_len = USDT(desc, TEXT_VADDR + 0x10 - 0x1000, 0x500000 - 0x1000, 0, "ttmon\0free\0");
	assert_int_equal(read_as("x", &spec, &info), 0);
	assert_int_equal(info.nr_usdts, 1);
	assert_int_equal(info.usdts[0].offset, TEXT_OFF + 0x10);
	assert_int_equal(info.usdts[0].sema, 0);
	assert_int_equal(info.usdts[0].fn, TTMON_FN_USDT_FREE);
	ttmon_elf_info_fini(&info);
	spec.stapsdt_base = 0;

	spec.usdt_len = USDT(desc, TEXT_VADDR + 0x10, 0, 0, "ttmon\0checkpoint\0");
	assert_int_equal(read_as("x", &spec, &info), 0);
	assert_int_equal(info.nr_usdts, 1);
	assert_int_equal(info.usdts[0].fn, TTMON_FN_USDT_CHECKPOINT);
	ttmon_elf_info_fini(&info);

	/* Not ours, or not to be believed: other provider, other name, outside, too long, cut. */
	spec.usdt_len = USDT(desc, TEXT_VADDR + 0x10, 0, 0, "other\0alloc\0");
	assert_int_equal(read_as("x", &spec, &info), 0);
	assert_int_equal(info.nr_usdts, 0);
	spec.usdt_len = USDT(desc, TEXT_VADDR + 0x10, 0, 0, "ttmon\0allocs\0");
	assert_int_equal(read_as("x", &spec, &info), 0);
	assert_int_equal(info.nr_usdts, 0);
	spec.usdt_len = USDT(desc, DATA_VADDR, 0, 0, "ttmon\0alloc\0");
	assert_int_equal(read_as("x", &spec, &info), 0);
	assert_int_equal(info.nr_usdts, 0);
	spec.usdt_len = USDT(desc, TEXT_VADDR + 0x10, 0, DATA_VADDR + DATA_LEN, "ttmon\0alloc\0");
	assert_int_equal(read_as("x", &spec, &info), 0);
	assert_int_equal(info.nr_usdts, 0);
	memset(wide + 12, 'a', 200);
	spec.usdt_len = USDT(desc, TEXT_VADDR + 0x10, 0, 0, wide);
	assert_int_equal(read_as("x", &spec, &info), 0);
	assert_int_equal(info.nr_usdts, 0);
	spec.usdt_len = usdt_desc(desc, TEXT_VADDR + 0x10, 0, 0, "ttmon\0alloc", 11);
	assert_int_equal(read_as("x", &spec, &info), 0);
	assert_int_equal(info.nr_usdts, 0);
}

#define TT_NAME "_ZN2tt8tt_metal6Buffer13allocate_implEv"

enum { PIECE_NAMES = 4000, PIECE_GAP = 300, PIECE_STRINGS = PIECE_NAMES * PIECE_GAP };

/* A file whose strings, PIECE_GAP apart and the first one at shift, take several pieces to read. */
static void read_in_pieces(char *str, Elf64_Sym *sym, size_t shift, const char *name)
{
	const struct spec spec = { .symtab = { { "cudaMalloc", 0x100, 1, LOCAL } } };
	_cleanup_close_ int fd = -1;
	struct ttmon_elf_info info;
	Elf64_Ehdr eh;
	uint64_t end;

	memset(str, 'c', PIECE_STRINGS);
	for (size_t i = 0; i < PIECE_NAMES; i++) {
		size_t at = i * PIECE_GAP + shift;

		memcpy(str + at, name, strlen(name) + 1);
		sym[i] = (Elf64_Sym){
			.st_name = (uint32_t)at, .st_info = LOCAL, .st_shndx = 1, .st_value = TEXT_VADDR + i
		};
	}
	build(&spec);
	end = im.n;
	memcpy(&eh, im.b, sizeof(eh));
	for (size_t i = 0; i < im.nr_sh; i++) {
		Elf64_Shdr *sh = (Elf64_Shdr *)(im.b + eh.e_shoff) + i;

		if (sh->sh_type == SHT_SYMTAB) {
			sh->sh_offset = end + PIECE_STRINGS;
			sh->sh_size = PIECE_NAMES * sizeof(*sym);
		} else if (sh->sh_type == SHT_STRTAB && i != eh.e_shstrndx) {
			sh->sh_offset = end;
			sh->sh_size = PIECE_STRINGS;
		}
	}
	fd = memfile(im.b, im.n);
	assert_int_equal(pwrite(fd, str, PIECE_STRINGS, (off_t)end), PIECE_STRINGS);
	assert_int_equal(pwrite(fd, sym, PIECE_NAMES * sizeof(*sym), (off_t)(end + PIECE_STRINGS)),
			 (ssize_t)(PIECE_NAMES * sizeof(*sym)));
	assert_int_equal(ttmon_elf_read(fd, "x", NULL, 0, &info), 0);
	assert_int_equal(info.nr_targets, PIECE_NAMES);
	ttmon_elf_info_fini(&info);
}

/* Wherever the border between two pieces is, for some shift a name lies across it. */
static void test_pieces(void **state)
{
	_cleanup_free_ char *str = calloc(1, PIECE_STRINGS);
	_cleanup_free_ Elf64_Sym *sym = calloc(PIECE_NAMES, sizeof(*sym));

	(void)state;
	assert_non_null(str);
	assert_non_null(sym);
	for (size_t shift = 0; shift + 9 < PIECE_GAP; shift += 8)
		read_in_pieces(str, sym, shift, "cudaFree");
	/*
	 * What is searched for is not at the beginning of these; 5 and the distance of the borders have no
	 * factor in common.
	 */
	for (size_t shift = 0; shift + sizeof(TT_NAME) < PIECE_GAP; shift += 5)
		read_in_pieces(str, sym, shift, TT_NAME);
}

#define HOLES_SIZE (512ull << 20)
#define MARKS	   400u
#define MARK_LEN   8u

struct marks {
	uint64_t at[MARKS];
	unsigned int seen[MARKS];
	uint64_t fed;
};

static int marks_piece(void *ctx, const char *p, size_t fresh, size_t n, uint64_t pos)
{
	struct marks *m = ctx;

	m->fed += fresh;
	for (const char *s = p; s < p + fresh && (s = memmem(s, (size_t)(p + n - s), "mark", 4)) && s < p + fresh;
	     s++) {
		unsigned int i = 0;

		assert_true((size_t)(p + n - s) >= MARK_LEN);
		while (i < MARKS && m->at[i] != pos + (uint64_t)(s - p))
			i++;
		assert_true(i < MARKS);
		m->seen[i]++;
	}
	return 0;
}

/* Data between holes of all sizes: everything is seen, once, and what is a hole is not read. */
static void test_holes(void **state)
{
	_cleanup_close_ int fd = memfd_create("test_elf", MFD_CLOEXEC);
	struct ttmon_elf e = { .fd = fd, .size = HOLES_SIZE, .budget = TTMON_ELF_MAX_BYTES };
	struct marks m = { 0 };
	uint64_t at = 12345, budget;

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)HOLES_SIZE), 0);
	for (unsigned int i = 0; i < MARKS; i++) {
		/* Within a page, across the border of two, a page or several on, and far away. */
		static const uint64_t steps[] = {
			9, 1099, 1101, 4088, 4093, 8192, 16384, 20000, 65536, 262144, 3000000
		};

		m.at[i] = at;
		assert_int_equal(pwrite(fd, "markmark", 5, (off_t)at), 5);
		assert_int_equal(pwrite(fd, "....", 3, (off_t)at + 5), 3);
		at += steps[i % ARRAY_SIZE(steps)] + i % 7;
	}
	assert_true(at < HOLES_SIZE);
	budget = e.budget;
	assert_int_equal(ttmon_elf_walk(&e, 0, HOLES_SIZE, 1, marks_piece, &m), 0);
	for (unsigned int i = 0; i < MARKS; i++)
		assert_int_equal(m.seen[i], 1);
	assert_true(budget - e.budget < MARKS * 20000);
	assert_true(m.fed < MARKS * 24000);
	/* From the middle of a hole, in units. */
	memset(m.seen, 0, sizeof(m.seen));
	for (unsigned int i = 0; i < MARKS; i++)
		m.at[i] -= 24;
	assert_int_equal(ttmon_elf_walk(&e, 24, HOLES_SIZE / 24 * 24 - 24, 24, marks_piece, &m), 0);
	for (unsigned int i = 0; i < MARKS; i++)
		assert_int_equal(m.seen[i], 1);
}

#define OBJECT ELF64_ST_INFO(STB_WEAK, STT_OBJECT)

static void test_tenstorrent(void **state)
{
	const struct spec spec = {
		.soname = "libtt_metal.so",
		.dynsym = { { "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE", 0x100, 1, GLOBAL },
			    { "_ZN2tt8tt_metal2v06Buffer15deallocate_implEv", 0x200, 1, GLOBAL },
			    { "_ZN2tt8tt_metal6BufferD1Ev", 0x240, 1, GLOBAL }, /* the same function twice */
			    { "_ZN2tt8tt_metal6BufferD2Ev", 0x240, 1, GLOBAL },
			    { "_ZTVN2tt8tt_metal6DeviceE", 0x300, 48, OBJECT },
			    { "_ZTVN2tt8tt_metal11distributed10MeshDeviceE", 0x340, 48, OBJECT },
			    { "_ZN2tt8tt_metal6Device5closeEv", 0, 0, GLOBAL },			/* imported */
			    { "_ZN2tt8tt_metal9Allocator5clearEv", 0x380, 1, OBJECT },		/* no function */
			    { "_ZN2tt8tt_metal6Buffer13allocate_implEv", TEXT_LEN, 1, GLOBAL }, /* not in the file */
			    { "cudaFree", 0x3c0, 1, GLOBAL } },
		/* The same again, a local one, and a part of one. */
		.symtab = { { "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE", 0x100, 1, GLOBAL },
			    { "_ZN2tt8tt_metal14EnqueueProgramERNS0_12CommandQueueERNS0_7ProgramEb", 0x400, 1, LOCAL },
			    { "_ZN2tt8tt_metal14EnqueueProgramERNS0_12CommandQueueERNS0_7ProgramEb.cold", 0x440, 1,
			      LOCAL } },
	};
	const struct spec without = { .symtab = { { "_ZTVN2tt8tt_metal6DeviceE", 0x300, 48, GLOBAL },
						  { "_ZN2tt", 0x100, 1, GLOBAL } } };
	struct ttmon_elf_info info;

	(void)state;
	assert_int_equal(read_as("libtt_metal.so", &spec, &info), 0);
	assert_int_equal(info.kind, TTMON_OBJ_IS_TT | TTMON_OBJ_IS_RT);
	assert_int_equal(info.nr_targets, 5);
	assert_target(&info, 0x100, 256);
	assert_target(&info, 0x200, 261);
	assert_target(&info, 0x240, 267);
	assert_target(&info, 0x400, 314);
	assert_target(&info, 0x3c0, 13);
	assert_int_equal(target(&info, 0x200)->addr, TEXT_VADDR + 0x200);
	assert_string_equal(target(&info, 0x200)->symbol, "deallocate_impl");
	assert_string_equal(target(&info, 0x200)->mangled, "_ZN2tt8tt_metal2v06Buffer15deallocate_implEv");
	assert_null(target(&info, 0x3c0)->mangled);
	assert_false(target(&info, 0x100)->single_step);
	assert_true(target(&info, 0x200)->single_step);
	assert_int_equal(info.tt.vt_device, TEXT_VADDR + 0x300 + 16);
	assert_int_equal(info.tt.vt_mesh, TEXT_VADDR + 0x340 + 16);
	ttmon_elf_info_fini(&info);

	/* A vtable is no function. */
	assert_int_equal(read_as("x", &without, &info), 0);
	assert_int_equal(info.kind, 0);
	assert_int_equal(info.nr_targets, 0);
	assert_int_equal(info.tt.vt_device, 0);
	ttmon_elf_info_fini(&info);
}

static void test_refused(void **state)
{
	const struct spec arm = { .machine = EM_AARCH64 }, spec = { .dynsym = { { "cudaMalloc", 0x100, 1, GLOBAL } } };
	struct ttmon_elf_info info;
	Elf64_Ehdr *eh = (Elf64_Ehdr *)im.b;
	int fds[2], fd;

	(void)state;
	assert_int_equal(read_as("x", &arm, &info), -ENOEXEC);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(ttmon_elf_read(fds[0], "x", NULL, 0, &info), -ENOEXEC);
	close(fds[0]);
	close(fds[1]);
	fd = memfile("#!/bin/sh\n", 10);
	assert_int_equal(ttmon_elf_read(fd, "x", NULL, 0, &info), -ENOEXEC);
	close(fd);
	assert_int_equal(ttmon_elf_read(-1, "x", NULL, 0, &info), -EBADF);

	/* "More sections than fit in 16 bits": the bait that makes libelf allocate what section 0 says. */
	build(&spec);
	eh->e_shnum = 0;
	fd = memfile(im.b, im.n);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	assert_int_equal(ttmon_elf_read(fd, "x", NULL, 0, &info), -EBADMSG);
	close(fd);

	/* Section headers past the end of the file. */
	build(&spec);
	eh->e_shoff = 1ull << 50;
	fd = memfile(im.b, im.n);
	assert_int_equal(ttmon_elf_read(fd, "x", NULL, 0, &info), -EBADMSG);
	close(fd);

	/* Cut anywhere: never more than the whole file has, and no crash. */
	build(&spec);
	for (size_t n = 0; n < im.n; n += n < 300 ? 1 : 61) {
		int err;

		fd = memfile(im.b, n);
		err = ttmon_elf_read(fd, "x", NULL, 0, &info);
		if (err != -EBADMSG && err != -ENOEXEC)
			fail_msg("cut at %zu: %d", n, err);
		close(fd);
	}
}

/* Every bit of the headers, one at a time. */
static void test_bit_flips(void **state)
{
	const struct spec spec = {
		.soname = "libcudart.so.13",
		.dynsym = { { "cudaMalloc", 0x100, 1, GLOBAL }, { "dlopen", 0, 0, GLOBAL } },
		.symtab = { { "cudaFree", 0x200, 1, LOCAL } },
		.rodata = "libcuda.so.1",
		.rodata_len = 13,
	};
	uint64_t delta;
	char name[64];
	int fd;

	(void)state;
	build(&spec);
	fd = memfile(im.b, im.n);
	for (size_t i = 0; i < im.n; i++) {
		if (i == 232) /* past ELF and program headers: go on at the data */
			i = DATA_OFF + DATA_LEN;
		for (int bit = 0; bit < 8; bit++) {
			unsigned char b = im.b[i] ^ (unsigned char)(1 << bit);
			struct ttmon_elf_info info = { 0 };
			int err;

			assert_int_equal(pwrite(fd, &b, 1, (off_t)i), 1);
			err = ttmon_elf_read(fd, "x", NULL, 0, &info);
			assert_true(err == 0 || err == -EBADMSG || err == -ENOEXEC);
			ttmon_elf_info_fini(&info);
			err = ttmon_elf_symbol(fd, TEXT_OFF + 0x100, name, sizeof(name), &delta);
			assert_true(err == 0 || err == -ENOENT || err == -EBADMSG || err == -ENOEXEC);
		}
		assert_int_equal(pwrite(fd, im.b + i, 1, (off_t)i), 1);
	}
	close(fd);
}

/* The real libraries: every row of the table that this CUDA has, each where .dynsym says. */
static void check_real(const char *path, const char *base, uint32_t kind, uint32_t major)
{
	struct ttmon_elf_info info;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		print_message("SKIP: no %s\n", path);
		skip();
	}
	assert_int_equal(ttmon_elf_read(fd, base, NULL, 0, &info), 0);
	assert_int_equal(info.kind, kind);
	assert_int_equal(info.rt_major, major);
	assert_int_equal(info.missing, 0);
	assert_int_equal(info.build_id_len, 20);
	assert_true(info.nr_targets > 90);
	for (size_t i = 0; i < info.nr_targets; i++) {
		char name[64];
		uint64_t delta;

		assert_int_equal(ttmon_elf_symbol(fd, info.targets[i].offset, name, sizeof(name), &delta), 0);
		assert_int_equal(delta, 0);
		assert_string_equal(name, info.targets[i].symbol);
		assert_false(info.targets[i].single_step); /* those of CUDA 13.0 all begin with push %rbp */
	}
	ttmon_elf_info_fini(&info);
}

static void test_real_runtime(void **state)
{
	(void)state;
	check_real("/usr/local/cuda-13.0/lib/libcudart.so.13", "libcudart.so.13", TTMON_OBJ_IS_RT, 13);
}

static void test_real_driver_stub(void **state)
{
	(void)state;
	check_real("/usr/local/cuda-13.0/lib/stubs/libcuda.so", "libcuda.so", TTMON_OBJ_IS_DRV, 0);
}

static void test_real_static_runtime(void **state)
{
	(void)state;
	check_real("/usr/local/cuda-13.0/lib/libnccl.so.2", "libnccl.so.2", TTMON_OBJ_IS_RT | TTMON_OBJ_STATIC_RT, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runtime),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_driver),
		cmocka_unit_test(test_static),
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_usdt),
		cmocka_unit_test(test_tenstorrent),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bit_flips),
		cmocka_unit_test(test_real_runtime),
		cmocka_unit_test(test_real_driver_stub),
		cmocka_unit_test(test_real_static_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	printf("SKIP: the files made here are for x86-64\n");
	return 77;
}
#endif
