/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * elf_image.h: small ELF files for x86-64, made byte by byte, for the tests of the ELF reader. Include
 * after cmocka.h. Segments are loaded elsewhere than they lie in the file, so that an address is never
 * an offset.
 */
#ifndef TTMON_ELF_IMAGE_H
#define TTMON_ELF_IMAGE_H

#include <elf.h>
#include <sys/mman.h>

#include "lib/base/util.h"

#define TEXT_OFF   0x1000u
#define TEXT_VADDR 0x401000u
#define TEXT_LEN   0x1000u
#define DATA_OFF   0x2000u
#define DATA_VADDR 0x603000u
#define DATA_LEN   0x800u
#define GLOBAL	   ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define WEAK	   ELF64_ST_INFO(STB_WEAK, STT_FUNC)
#define LOCAL	   ELF64_ST_INFO(STB_LOCAL, STT_FUNC)

struct sym {
	const char *name;
	uint64_t at; /* offset in the text segment; 0: undefined */
	uint64_t size;
	uint16_t info; /* st_info, and IMPORT */
};

/* Undefined, but with an address: that of its stub, in a program that is not position-independent. */
#define IMPORT 0x100u

/* What the file is to have. */
struct spec {
	struct sym dynsym[16], symtab[16];
	const char *soname, *needed, *version;
	const char *rodata;
	size_t rodata_len;
	const void *usdt; /* desc of a stapsdt note */
	size_t usdt_len;
	uint64_t stapsdt_base; /* address of .stapsdt.base; 0: no such section */
	uint16_t machine;
};

struct image {
	unsigned char b[32768];
	size_t n;
	Elf64_Shdr sh[16];
	size_t nr_sh;
	char names[256];
	size_t names_n;
};

static size_t put(struct image *im, const void *p, size_t n)
{
	size_t at = ROUND_UP(im->n, 8u);

	assert_true(at + n <= sizeof(im->b));
	if (n)
		memcpy(im->b + at, p, n);
	im->n = at + n;
	return at;
}

static Elf64_Shdr *section(struct image *im, const char *name, uint32_t type, const void *p, size_t n)
{
	Elf64_Shdr *sh = &im->sh[im->nr_sh++];

	assert_true(im->nr_sh <= ARRAY_SIZE(im->sh));
	sh->sh_name = (uint32_t)im->names_n;
	im->names_n += (size_t)snprintf(im->names + im->names_n, sizeof(im->names) - im->names_n, "%s", name) + 1;
	sh->sh_type = type;
	sh->sh_offset = put(im, p, n);
	sh->sh_size = n;
	sh->sh_addralign = 4;
	return sh;
}

static uint32_t intern(char *tab, size_t *n, const char *s)
{
	size_t at = *n;

	memcpy(tab + at, s, strlen(s) + 1);
	*n += strlen(s) + 1;
	return (uint32_t)at;
}

static void symbols(struct image *im, const struct sym *syms, bool dynamic, const struct spec *spec)
{
	Elf64_Sym out[17] = { 0 };
	Elf64_Dyn dyn[4] = { 0 };
	char str[2048] = "";
	size_t n = 1, nr = 1, nr_dyn = 0;
	Elf64_Shdr *sh;
	uint32_t strtab;

	for (size_t i = 0; i < 16 && syms[i].name; i++, nr++) {
		out[nr].st_name = intern(str, &n, syms[i].name);
		out[nr].st_info = (unsigned char)syms[i].info;
		out[nr].st_size = syms[i].size;
		out[nr].st_shndx = syms[i].at && !(syms[i].info & IMPORT) ? 1 : SHN_UNDEF;
		out[nr].st_value = syms[i].at ? TEXT_VADDR + syms[i].at : 0;
	}
	if (dynamic && spec->soname)
		dyn[nr_dyn++] = (Elf64_Dyn){ .d_tag = DT_SONAME, .d_un.d_val = intern(str, &n, spec->soname) };
	if (dynamic && spec->needed)
		dyn[nr_dyn++] = (Elf64_Dyn){ .d_tag = DT_NEEDED, .d_un.d_val = intern(str, &n, spec->needed) };
	if (dynamic && spec->version)
		intern(str, &n, spec->version);
	if (nr == 1 && n == 1)
		return;
	strtab = (uint32_t)im->nr_sh;
	section(im, dynamic ? ".dynstr" : ".strtab", SHT_STRTAB, str, n);
	if (nr_dyn) {
		sh = section(im, ".dynamic", SHT_DYNAMIC, dyn, (nr_dyn + 1) * sizeof(*dyn));
		sh->sh_link = strtab;
	}
	sh = section(im, dynamic ? ".dynsym" : ".symtab", dynamic ? SHT_DYNSYM : SHT_SYMTAB, out, nr * sizeof(*out));
	sh->sh_link = strtab;
	sh->sh_entsize = sizeof(*out);
}

static const uint8_t build_id[20] = { 0xde, 0xad, 0xbe, 0xef, 5, 6, 7 };

static struct image im;

static void build(const struct spec *spec)
{
	static const unsigned char text[TEXT_LEN] = {
		[0x100] = 0x55, 0x48, 0x89, 0xe5, [0x200] = 0xf3, 0x0f, 0x1e, 0xfa
	};
	struct {
		Elf64_Nhdr nh;
		char name[4];
		uint8_t desc[20];
	} id = { .nh = { 4, 20, NT_GNU_BUILD_ID }, .name = "GNU" };
	struct {
		Elf64_Nhdr nh;
		char name[8];
		uint8_t desc[512];
	} usdt = { .nh = { 8, 0, 3 }, .name = "stapsdt" };
	Elf64_Ehdr eh = { .e_type = ET_DYN,
			  .e_machine = spec->machine,
			  .e_version = 1,
			  .e_phoff = 64,
			  .e_ehsize = 64,
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 3,
			  .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Phdr ph[3] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = TEXT_OFF,
		  .p_vaddr = TEXT_VADDR,
		  .p_filesz = TEXT_LEN,
		  .p_memsz = TEXT_LEN },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_offset = DATA_OFF,
		  .p_vaddr = DATA_VADDR,
		  .p_filesz = DATA_LEN,
		  .p_memsz = 0x10000 },
		{ .p_type = PT_NOTE, .p_align = 4 },
	};
	Elf64_Shdr *sh;

	memset(&im, 0, sizeof(im));
	memcpy(im.b + TEXT_OFF, text, sizeof(text));
	im.n = DATA_OFF + DATA_LEN;
	im.nr_sh = 1;
	im.names_n = 1;
	sh = section(&im, ".text", SHT_PROGBITS, NULL, 0);
	sh->sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	sh->sh_addr = 0xbad000; /* a lie: only segments count */
	symbols(&im, spec->dynsym, true, spec);
	symbols(&im, spec->symtab, false, spec);
	if (spec->rodata)
		section(&im, ".rodata", SHT_PROGBITS, spec->rodata, spec->rodata_len)->sh_flags = SHF_ALLOC;
	if (spec->stapsdt_base)
		section(&im, ".stapsdt.base", SHT_PROGBITS, "", 1)->sh_addr = spec->stapsdt_base;
	memcpy(id.desc, build_id, sizeof(build_id));
	ph[2].p_offset = put(&im, &id, sizeof(id));
	ph[2].p_filesz = sizeof(id);
	if (spec->usdt) {
		usdt.nh.n_descsz = (uint32_t)spec->usdt_len;
		memcpy(usdt.desc, spec->usdt, spec->usdt_len);
		section(&im, ".note.stapsdt", SHT_NOTE, &usdt, 12 + 8 + ROUND_UP(spec->usdt_len, 4u));
	}
	eh.e_shstrndx = (uint16_t)im.nr_sh;
	sh = section(&im, ".shstrtab", SHT_STRTAB, NULL, 0);
	sh->sh_size = im.names_n;
	sh->sh_offset = put(&im, im.names, im.names_n);
	eh.e_shnum = (uint16_t)im.nr_sh;
	eh.e_shoff = put(&im, im.sh, im.nr_sh * sizeof(*im.sh));
	memcpy(eh.e_ident, ELFMAG "\2\1\1", 7);
	if (!eh.e_machine)
		eh.e_machine = EM_X86_64;
	memcpy(im.b, &eh, sizeof(eh));
	memcpy(im.b + 64, ph, sizeof(ph));
}

static int memfile(const void *p, size_t n)
{
	int fd = memfd_create("test_elf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, p, n, 0), (ssize_t)n);
	return fd;
}

#endif
