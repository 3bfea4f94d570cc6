/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * elf.h: an ELF reader with bounded memory, for daemon/io/objects and libttmon.
 *
 * Only headers are kept in memory, and each is read once. Tables and strings are read through one
 * small buffer with pread(2). Not mmap: a mapped file that shrinks causes a SIGBUS, in a root daemon.
 * Not elf_begin(3): its tables have the size that the file's section count says, so that a sparse file
 * with 128 bytes of contents made it allocate 596 MiB (3 M sections, libelf 0.188). A check before the
 * call does not help, because the file's owner may change the file in between.
 */
#ifndef TTMON_ELF_H
#define TTMON_ELF_H

#include <elf.h>

#include "lib/base/util.h"

#define TTMON_ELF_MAX_SYMS  4000000u
#define TTMON_ELF_MAX_BYTES (1ull << 30)
#define TTMON_ELF_SEGS	    64	  /* the most PT_LOAD entries; real files have up to a dozen */
#define TTMON_ELF_OVERLAP   1100u /* how many bytes of a string are visible beyond the end of a piece */

/* A part of the file that is loaded, and its address. */
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
	uint64_t budget;   /* bytes that may still be read; holes do not count */
	uint64_t data_end; /* during a walk: there is data up to this offset */
};

/*
 * Returns 0; -ENOEXEC: not a regular file, not ELF, or for another machine; -EBADMSG: inconsistent or
 * truncated. fd must outlive e.
 */
int ttmon_elf_open(int fd, struct ttmon_elf *e) _must_check;
void ttmon_elf_fini(struct ttmon_elf *e);

/* Reads exactly n bytes at off to buf. -EBADMSG: the file has fewer, or the budget is used up. */
int ttmon_elf_pread(struct ttmon_elf *e, uint64_t off, void *buf, size_t n) _must_check;

/*
 * Walks over len bytes at off in pieces. cb gets n bytes at p; p[0] is at position pos of the range.
 * Only the first `fresh` bytes are new as starting points; an item that begins there is visible for
 * TTMON_ELF_OVERLAP bytes, or to the end of the range. fresh is a multiple of unit. If the budget is
 * used up, the walk ends early without an error. If cb returns a value other than 0, the walk ends and
 * returns it.
 */
typedef int (*ttmon_elf_piece_fn)(void *ctx, const char *p, size_t fresh, size_t n, uint64_t pos);
int ttmon_elf_walk(struct ttmon_elf *e, uint64_t off, uint64_t len, size_t unit, ttmon_elf_piece_fn cb,
		   void *ctx) _must_check;

/*
 * Calls the callback for every defined function (STT_FUNC, in a section) of a symbol table;
 * TTMON_ELF_MAX_SYMS entries at most.
 */
typedef int (*ttmon_elf_func_fn)(void *ctx, const Elf64_Sym *sym);
int ttmon_elf_funcs(struct ttmon_elf *e, const Elf64_Shdr *symtab, ttmon_elf_func_fn cb, void *ctx) _must_check;
/* The same for other types too: a bit for each, 1 << STT_FUNC | 1 << STT_OBJECT. */
int ttmon_elf_syms(struct ttmon_elf *e, const Elf64_Shdr *symtab, unsigned int types, ttmon_elf_func_fn cb,
		   void *ctx) _must_check;

/* Returns the first section of a type; NULL: none. */
const Elf64_Shdr *ttmon_elf_section(const struct ttmon_elf *e, uint32_t type);
/* Returns the string table of a section; NULL: none. */
const Elf64_Shdr *ttmon_elf_strtab(const struct ttmon_elf *e, const Elf64_Shdr *sh);
/*
 * Reads the string at idx of a string table, cut to n - 1 bytes. -EBADMSG: idx is outside of the
 * table.
 */
int ttmon_elf_string(struct ttmon_elf *e, const Elf64_Shdr *strtab, uint64_t idx, char *buf, size_t n) _must_check;
/* Returns whether the name of this section is name. */
bool ttmon_elf_named(struct ttmon_elf *e, const Elf64_Shdr *sh, const char *name);

/* One note; name and desc are valid during the callback, neither need be NUL-terminated. */
struct ttmon_elf_note {
	uint32_t type;
	const char *name, *desc;
	size_t name_len, desc_len;
};
typedef int (*ttmon_elf_note_fn)(void *ctx, const struct ttmon_elf_note *note);
/* Lists every note of the note segments, then of the note sections that are not loaded. */
int ttmon_elf_notes(struct ttmon_elf *e, ttmon_elf_note_fn cb, void *ctx) _must_check;

/* Returns the segment that loads vaddr; NULL: none does, or the byte is not in the file. */
const struct ttmon_elf_seg *ttmon_elf_seg_of(const struct ttmon_elf *e, uint64_t vaddr, bool exec_only);

#endif
