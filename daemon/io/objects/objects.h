/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * objects.h: reads ELF files and process mappings. All of it is untrusted, since traced programs
 * choose it.
 *
 * Runs in the cold thread and in tests. Reads files, never writes; no BPF, no attaching. Limits: at
 * most TTMON_ELF_MAX_SYMS symbols and TTMON_ELF_MAX_BYTES of section data are looked at; truncated or
 * lying headers give -EBADMSG.
 */
#ifndef TTMON_OBJECTS_H
#define TTMON_OBJECTS_H

#include <ttmon/event.h>
#include <ttmon/fns.h>
#include <ttmon/tt_fns.h>

#include "daemon/io/objects/python.h"
#include "lib/base/util.h"
#include "lib/os/maps.h"

/* One function to probe in an object: its place, and its row of the table. */
struct ttmon_target {
	uint64_t offset;  /* file offset of the function's first instruction */
	uint64_t addr;	  /* its link-time address */
	uint64_t size;	  /* as in the symbol; 0: it has none */
	uint16_t fn;	  /* enum ttmon_fn id, or one of tt_fns.h */
	uint8_t skip;	  /* bytes from there to the probe: place.h */
	bool single_step; /* x86: the instruction there is not push/nop/..., hence single-stepped, which is slow */
	bool nop5;    /* x86: a nop of five bytes is there: some kernels must not probe it, see ttmon_insn_is_nop5() */
	bool refused; /* x86: the kernel probably refuses a probe there */
	char symbol[64]; /* as found, with suffixes, cut; for tt-metal the short name of the table */
	char *mangled;	 /* for tt-metal: as found; owned by the info; NULL: out of memory, or not of tt-metal */
};

/* A USDT point ttmon:alloc / ttmon:free / ttmon:checkpoint. */
struct ttmon_usdt {
	uint64_t offset; /* file offset of the nop */
	uint64_t sema;	 /* file offset of the semaphore, 0: none */
	uint16_t fn;	 /* TTMON_FN_USDT_* */
	bool nop5;	 /* it is not the nop of one byte that it should be: as in struct ttmon_target */
	char args[128];	 /* argument string of the note, e.g. "8@%rdi 8@%rsi 8@$0" */
};

#define TTMON_OBJ_IS_RT	      (1 << 0) /* has CUDA runtime functions (a libcudart, or a static one with symbols) */
#define TTMON_OBJ_IS_DRV      (1 << 1) /* is the CUDA driver */
#define TTMON_OBJ_STRIPPED_RT (1 << 2) /* embeds a CUDA runtime without symbols: only the driver level can be seen */
#define TTMON_OBJ_STATIC_RT   (1 << 3) /* the runtime functions are local symbols of a program or another library */
#define TTMON_OBJ_IS_TT	      (1 << 4) /* has functions of tt-metal */

/* What an ELF file contains that matters for tracing. */
struct ttmon_elf_info {
	uint32_t kind;	   /* TTMON_OBJ_IS_* */
	uint32_t rt_major; /* 11, 12, 13 from the soname or the symbol versions; 0: unknown */
	uint16_t machine;  /* EM_* */
	uint8_t build_id[TTMON_BUILD_ID];
	uint8_t build_id_len;
	struct ttmon_target *targets; /* owned; sorted by offset, one per offset (aliases once) */
	size_t nr_targets;
	struct ttmon_usdt *usdts; /* owned */
	size_t nr_usdts;
	bool switches;		 /* it switches stacks: switches.h */
	bool throws;		 /* it throws C++ exceptions */
	size_t missing;		 /* table rows of a lib that is here that had no symbol */
	bool whole_rt;		 /* it has most functions of a runtime, not a few that are handed on */
	struct ttmon_tt_slot tt; /* tt-metal's vtables */
	struct ttmon_python python;
};
void ttmon_elf_info_fini(struct ttmon_elf_info *info);

/*
 * A function given on the command line (--alloc-fn LIB:SYMBOL,...): lib matches the object's base name
 * (or its part up to ".so", or "*"), symbol matches exactly.
 */
struct ttmon_user_fn {
	const char *lib, *symbol;
	uint16_t fn; /* TTMON_FN_USER + i */
};

/*
 * Reads one ELF file through an open fd (which stays open; its position is not used). base: its base
 * name, for library matching. Non-ELF, or another machine than ours: -ENOEXEC. Damaged or hostile:
 * -EBADMSG. A file without targets is 0 with nr_targets 0. Cheap for the common case of such a
 * library: only section headers and string tables of symbols are read.
 */
int ttmon_elf_read(int fd, const char *base, const struct ttmon_user_fn *user, size_t nr_user,
		   struct ttmon_elf_info *ret) _must_check;

/*
 * The function that contains a file offset: its name into buf, *delta from its start. -ENOENT: no
 * symbol covers it.
 */
int ttmon_elf_symbol(int fd, uint64_t offset, char *buf, size_t n, uint64_t *delta) _must_check;
/*
 * Many at once, offsets sorted ascending: one pass over the symbol tables. cb gets name NULL if there
 * is none.
 */
int ttmon_elf_symbols(int fd, const uint64_t *offsets, size_t n,
		      void (*cb)(void *ctx, size_t i, const char *name, uint64_t delta), void *ctx) _must_check;

#endif
