/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/ptx/ptx.h: PTX text rewritten so that its kernels say which memory they access.
 *
 * Every kernel stays as it is. Beside each one that is selected stands a copy, "__ttmon_" + its name,
 * with two parameters more (.u64 __ttmon_ctl, .u64 __ttmon_launch) and a call of the recorder before
 * each instruction that accesses memory. The copy shares the module's variables; which of the two runs
 * is decided at each launch. Functions that a copy calls directly are copied in the same way, and get
 * the two values handed on; indirect calls go to the originals (counted). The recorder's text
 * (memtrace/ptx/recorder.ptx) stands before the first function.
 *
 * The text is a program's: hostile, huge, or of a PTX version that does not exist yet. What is not
 * understood is left as it is and said; nothing is dropped from the text.
 */
#ifndef TTMON_MEMTRACE_PTX_H
#define TTMON_MEMTRACE_PTX_H

#include "memtrace/model/mt.h"

#define TTMON_PTX_MAX	 (256u << 20) /* bytes of a text */
#define TTMON_PTX_PREFIX "__ttmon_"

struct ttmon_ptx_opts {
	bool aggregate; /* the recorder that counts (needs sm_70), not the one that streams */
	/*
	 * The recorder becomes a module of its own, which is compiled once and linked, instead of once for
	 * each kernel. Only where the program's text has no functions with a body: those get more registers
	 * where they are compiled for a linker, and the original kernels that call them with them.
	 */
	bool apart;
	uint32_t
		spaces; /* 1 << enum ttmon_mt_space; generic ones are always in where any of global, shared, local is */
	uint32_t first_site; /* number of the first site */
	uint32_t counters;   /* numbers from this one on are not recorded: there are no counters for them; 0: all are */
	/*
	 * Only these instructions of a kernel are recorded: from instr_begin to before instr_end, counted
	 * from 0 over all instructions of its text. 0, UINT32_MAX: all.
	 */
	uint32_t instr_begin, instr_end;
	bool (*select)(void *ctx, const char *kernel); /* NULL: all */
	void *ctx;
};

struct ttmon_ptx_kernel {
	char *name;
	char why[96];	       /* "" where there is a copy of it; else why not */
	uint32_t params;       /* how many the program's kernel has */
	uint32_t param_bytes;  /* of its parameter block; ours begin at the next multiple of 8 */
	uint32_t first, sites; /* in result->sites */
	/* instructions that access memory and are not recorded (bulk, tensor, texture, multimem, ...) */
	uint32_t left_out;
	uint32_t indirect; /* calls of functions that are not known */
	uint32_t beyond;   /* sites for which there are no counters, of its own and of the functions that it calls */
};

struct ttmon_ptx_result {
	char *text; /* NUL-terminated; NULL: nothing was selected */
	size_t len;
	char *recorder;			  /* the recorder's module, NUL-terminated; NULL: it is in the text */
	struct ttmon_ptx_kernel *kernels; /* all of the text */
	size_t nr_kernels;
	struct ttmon_mt_site
		*sites; /* [i] is site first_site + i; kernel, opcode, file owned by the result; module "" */
	size_t nr_sites;
	uint32_t target; /* 90 of sm_90 */
	struct ttmon_ptx_words *words;
};

/*
 * text needs no NUL. -EBADMSG: not PTX; -EOPNOTSUPP: a target or version that cannot be rewritten
 * (32-bit addresses, before sm_50 or PTX 6.3; no sm_70 for aggregate); -E2BIG, -ENOMEM; one line in
 * why.
 */
int ttmon_ptx_rewrite(const char *text, size_t len, const struct ttmon_ptx_opts *opts, struct ttmon_ptx_result *ret,
		      char *why, size_t n);
void ttmon_ptx_fini(struct ttmon_ptx_result *r);

/*
 * The PTX opcode of an instruction ("ld.global.nc.v4.f32"): what it accesses. False: no memory access
 * that can be recorded; *left_out: it accesses memory all the same.
 */
bool ttmon_ptx_op(const char *opcode, size_t len, unsigned int operand, struct ttmon_mt_site *site, bool *left_out);

#endif
