/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * eh_image.h: a small ELF file with one loaded segment and call frame information, as bytes in a
 * memfd, for the unwinder's tests. The code lies at file offset EH_TEXT, as linked at EH_BASE +
 * EH_TEXT.
 */
#ifndef TTMON_TEST_EH_IMAGE_H
#define TTMON_TEST_EH_IMAGE_H

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/util.h"

#define EH_BASE	 0x400000u
#define EH_TEXT	 0x1000u
#define EH_FRAME 0x2000u /* .eh_frame or .debug_frame */
#define EH_HDR	 0x3000u /* .eh_frame_hdr */
#define EH_SIZE	 0x4000u

enum eh_kind { EH_WITH_HDR, EH_WITHOUT_HDR, EH_DEBUG };

struct eh_image {
	uint8_t b[EH_SIZE];
	size_t at;  /* in the frame section */
	size_t cie; /* of the last one */
	uint32_t starts[64], fdes[64];
	unsigned int n;
	enum eh_kind kind;
};

static inline void eh_u32(struct eh_image *im, size_t at, uint32_t v)
{
	memcpy(im->b + at, &v, sizeof(v));
}

/* A record: its length is filled in, and it is padded with nops to a multiple of 4. */
static inline void eh_end(struct eh_image *im, size_t at)
{
	while ((im->at - at) % 4)
		im->b[EH_FRAME + im->at++] = 0;
	eh_u32(im, EH_FRAME + at, (uint32_t)(im->at - at - 4));
}

static inline void eh_bytes(struct eh_image *im, const void *p, size_t n)
{
	memcpy(im->b + EH_FRAME + im->at, p, n);
	im->at += n;
}

/* data alignment -8, CFA = rsp + 8, return address at CFA - 8. */
static inline void eh_cie(struct eh_image *im, const char *aug)
{
	static const uint8_t fixed[] = { 1, 0x78, 16 }, insns[] = { 0x0c, 7, 8, 0x90, 1 };
	size_t at = im->at, id = im->kind == EH_DEBUG ? 0xffffffff : 0;

	im->cie = at;
	im->at += 4;
	eh_bytes(im, &id, 4);
	eh_bytes(im, "\1", 1);
	eh_bytes(im, aug, strlen(aug) + 1);
	eh_bytes(im, fixed, sizeof(fixed));
	if (aug[0] == 'z')
		eh_bytes(im, "\1\33", 2); /* R: pcrel sdata4 */
	eh_bytes(im, insns, sizeof(insns));
	eh_end(im, at);
}

/* A function of len bytes at text + start. */
static inline void eh_fde(struct eh_image *im, uint32_t start, uint32_t len, const void *insns, size_t n)
{
	size_t at = im->at;
	bool debug = im->kind == EH_DEBUG;
	uint32_t cie = debug ? (uint32_t)im->cie : (uint32_t)(at + 4 - im->cie);
	uint32_t rel = EH_TEXT + start - (EH_FRAME + (uint32_t)at + 8);
	uint64_t addr = EH_BASE + EH_TEXT + start, len64 = len;

	im->starts[im->n] = start;
	im->fdes[im->n++] = (uint32_t)at;
	im->at += 4;
	eh_bytes(im, &cie, 4);
	if (debug) {
		eh_bytes(im, &addr, 8);
		eh_bytes(im, &len64, 8);
	} else {
		eh_bytes(im, &rel, 4);
		eh_bytes(im, &len, 4);
		eh_bytes(im, "", 1);
	}
	eh_bytes(im, insns, n);
	eh_end(im, at);
}

/* Headers, the sorted table where it has one. The file, to be closed; -1. */
static inline int eh_file(struct eh_image *im)
{
	static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";
	Elf64_Ehdr eh = { .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = im->kind == EH_WITH_HDR ? 2 : 1,
			  .e_shoff = 0x200,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 3,
			  .e_shstrndx = 2 };
	Elf64_Phdr ph[2] = { { .p_type = PT_LOAD, .p_flags = PF_X | PF_R, .p_vaddr = EH_BASE, .p_filesz = EH_SIZE },
			     { .p_type = PT_GNU_EH_FRAME,
			       .p_offset = EH_HDR,
			       .p_vaddr = EH_BASE + EH_HDR,
			       .p_filesz = 12 + im->n * 8 } };
	Elf64_Shdr sh[3] = { { .sh_type = SHT_NULL },
			     { .sh_name = im->kind == EH_DEBUG ? 11 : 1,
			       .sh_type = SHT_PROGBITS,
			       .sh_flags = im->kind == EH_DEBUG ? 0 : SHF_ALLOC,
			       .sh_offset = EH_FRAME,
			       .sh_addr = im->kind == EH_DEBUG ? 0 : EH_BASE + EH_FRAME,
			       .sh_size = im->at },
			     { .sh_name = 24, .sh_type = SHT_STRTAB, .sh_offset = 0x400, .sh_size = sizeof(names) } };
	int fd = memfd_create("eh_image", MFD_CLOEXEC);

	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(im->b, &eh, sizeof(eh));
	memcpy(im->b + sizeof(eh), ph, sizeof(ph));
	memcpy(im->b + 0x200, sh, sizeof(sh));
	memcpy(im->b + 0x400, names, sizeof(names));
	memcpy(im->b + EH_HDR, "\1\33\3\73", 4);
	eh_u32(im, EH_HDR + 4, EH_FRAME - (EH_HDR + 4));
	eh_u32(im, EH_HDR + 8, im->n);
	/* Added in order of their addresses. */
	for (unsigned int i = 0; i < im->n; i++) {
		eh_u32(im, EH_HDR + 12 + i * 8, EH_TEXT + im->starts[i] - EH_HDR);
		eh_u32(im, EH_HDR + 16 + i * 8, EH_FRAME + im->fdes[i] - EH_HDR);
	}
	if (fd >= 0 && write(fd, im->b, EH_SIZE) != EH_SIZE) {
		close(fd);
		return -1;
	}
	return fd;
}

#endif
