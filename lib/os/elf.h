/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * elf.h: the bounded ELF reader under io/objects and libttmon.
 *
 * Only headers are kept in memory, each read once; tables and strings are streamed through one small
 * buffer with pread(2). Not mmap: a file that shrinks under a mapping is a SIGBUS in a root daemon.
 * Not elf_begin(3): it sizes its tables by the file's own section count, so that a sparse file with
 * 128 bytes of contents made it allocate 596 MiB (3 M sections, libelf 0.188), and a check before the
 * call does not help, because the file's owner may change it in between.
 */
#ifndef TTMON_ELF_H
#define TTMON_ELF_H

#include <elf.h>

#include "lib/base/util.h"

#define TTMON_ELF_MAX_SYMS  4000000u
#define TTMON_ELF_MAX_BYTES (1ull << 30)
#define TTMON_ELF_SEGS	    64	  /* PT_LOAD entries at most; real files have up to a dozen */
#define TTMON_ELF_OVERLAP   1100u /* a string that starts at the end of a piece can be seen this far */

/* Part of the file that is loaded, and where to. */
struct ttmon_elf_seg {
	uint64_t vaddr, off, len;
	bool exec;
};

struct ttmon_elf {
	int fd; /* borrowed */
	uint64_t size;
	uint16_t machine;
	Elf64_Shdr *sh; /* owned; each lies within the file unless SHT_NOBITS */
	size_t nr_sh;
	size_t shstrndx;
	Elf64_Phdr *ph; /* owned; each p_offset + p_filesz lies within the file */
	size_t nr_ph;
	struct ttmon_elf_seg seg[TTMON_ELF_SEGS];
	size_t nr_seg;
	uint64_t budget;   /* bytes that may still be read; holes are not */
	uint64_t data_end; /* in a walk: there is data up to here */
};

/*
 * -ENOEXEC: not a regular file, not ELF, not for this machine. -EBADMSG: lying or truncated. fd must
 * outlive e.
 */
int ttmon_elf_open(int fd, struct ttmon_elf *e) _must_check;
void ttmon_elf_fini(struct ttmon_elf *e);

/* Exactly n bytes at off into buf. -EBADMSG where the file has fewer, or the budget is used up. */
int ttmon_elf_pread(struct ttmon_elf *e, uint64_t off, void *buf, size_t n) _must_check;

/*
 * Walk len bytes at off in pieces. cb sees n bytes at p, which lie pos bytes into the range; of these
 * only the first `fresh` have not been the start of anything yet: what begins there can be seen
 * TTMON_ELF_OVERLAP bytes far, or up to the end of the range. unit: fresh is a multiple of it. Stops
 * early, and quietly, when the budget is used up. cb != 0 stops and is returned.
 */
typedef int (*ttmon_elf_piece_fn)(void *ctx, const char *p, size_t fresh, size_t n, uint64_t pos);
int ttmon_elf_walk(struct ttmon_elf *e, uint64_t off, uint64_t len, size_t unit, ttmon_elf_piece_fn cb,
		   void *ctx) _must_check;

/*
 * Every defined function (STT_FUNC, in a section) of a symbol table, TTMON_ELF_MAX_SYMS entries at
 * most.
 */
typedef int (*ttmon_elf_func_fn)(void *ctx, const Elf64_Sym *sym);
int ttmon_elf_funcs(struct ttmon_elf *e, const Elf64_Shdr *symtab, ttmon_elf_func_fn cb, void *ctx) _must_check;
/* The same for other types too: a bit for each, 1 << STT_FUNC | 1 << STT_OBJECT. */
int ttmon_elf_syms(struct ttmon_elf *e, const Elf64_Shdr *symtab, unsigned int types, ttmon_elf_func_fn cb,
		   void *ctx) _must_check;

/* First section of a type, NULL: none. */
const Elf64_Shdr *ttmon_elf_section(const struct ttmon_elf *e, uint32_t type);
/* The string table of a section, NULL: none. */
const Elf64_Shdr *ttmon_elf_strtab(const struct ttmon_elf *e, const Elf64_Shdr *sh);
/* String at idx of a string table, cut to n - 1 bytes. -EBADMSG: outside of it. */
int ttmon_elf_string(struct ttmon_elf *e, const Elf64_Shdr *strtab, uint64_t idx, char *buf, size_t n) _must_check;
/* Is this section's name equal to name? */
bool ttmon_elf_named(struct ttmon_elf *e, const Elf64_Shdr *sh, const char *name);

/* One note; name and desc are valid during the callback, neither need be NUL-terminated. */
struct ttmon_elf_note {
	uint32_t type;
	const char *name, *desc;
	size_t name_len, desc_len;
};
typedef int (*ttmon_elf_note_fn)(void *ctx, const struct ttmon_elf_note *note);
/* Every note of the note segments, then of the note sections that are not loaded. */
int ttmon_elf_notes(struct ttmon_elf *e, ttmon_elf_note_fn cb, void *ctx) _must_check;

/* Segment that loads vaddr, NULL: none, or bytes that are not in the file. */
const struct ttmon_elf_seg *ttmon_elf_seg_of(const struct ttmon_elf *e, uint64_t vaddr, bool exec_only);

#endif
