/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ptx_int.h: between the files of the PTX rewriter: lex.c (words), mod.c (what is in a module), op.c
 * (what an instruction accesses), body.c (what is to be changed in a function), ptx.c (which
 * functions, and the text that comes out), rec.c (the recorder).
 *
 * Nothing of the text is copied before the end: everything points into it. Changes are insertions at
 * offsets, in the order of the text.
 */
#ifndef TTMON_MEMTRACE_PTX_INT_H
#define TTMON_MEMTRACE_PTX_INT_H

#include <stdio.h>

#include "memtrace/ptx/ptx.h"

struct ttmon_ptx_tok {
	const char *s;
	size_t len;
	uint32_t line; /* from 1 */
	char kind;     /* TTMON_PTX_*, or the character itself */
};
#define TTMON_PTX_END  0
#define TTMON_PTX_WORD 'w' /* name, register, directive, opcode with its qualifiers */
#define TTMON_PTX_NUM  'n'
#define TTMON_PTX_STR  's' /* with its quotes */

struct ttmon_ptx_lex {
	const char *p, *end;
	uint32_t line;
};

struct ttmon_ptx_tok ttmon_ptx_next(struct ttmon_ptx_lex *l);
struct ttmon_ptx_tok ttmon_ptx_peek(const struct ttmon_ptx_lex *l);
bool ttmon_ptx_is(const struct ttmon_ptx_tok *t, const char *word);
bool ttmon_ptx_begins(const struct ttmon_ptx_tok *t, const char *with);
/* A whole number of the text, also 0x..; no number: 0. */
uint64_t ttmon_ptx_number(const struct ttmon_ptx_tok *t);
/* Reads on to behind the ';' that ends a statement; braces may be in it. */
void ttmon_ptx_skip(struct ttmon_ptx_lex *l);
/* ".b64": its bytes, ".pred": 0; no type: -1. */
int ttmon_ptx_type(const struct ttmon_ptx_tok *t);

/* How an instruction accesses memory. */
struct ttmon_ptx_access {
	size_t at;			/* offset of the instruction with its predicate */
	struct ttmon_ptx_tok base, imm; /* [base], [base + imm]; imm.len 0: none */
	struct ttmon_ptx_tok guard;	/* predicate; len 0: none */
	struct ttmon_ptx_tok skip;	/* cp.async: size of the source or ignore-src; len 0: none */
	bool base_is_num, base_is_32;	/* else a 64-bit register, or a symbol */
	bool negative, guard_not, skip_is_pred;
	uint8_t limit;		   /* lanes from this one on give no address; 32 */
	uint32_t number;	   /* index of its first site in the result */
	struct ttmon_mt_site site; /* but for kernel, opcode, file */
	struct ttmon_ptx_tok op;
	uint32_t file;
};

/* A direct call of a function of the module. */
struct ttmon_ptx_call {
	size_t at;	   /* offset of the instruction with its predicate */
	size_t name, args; /* offset of the name, offset of what closes the arguments; args 0: there are none */
	size_t name_end;
	bool empty;  /* "()" */
	uint32_t fn; /* callee */
};

struct ttmon_ptx_fn {
	struct ttmon_ptx_tok name;
	size_t head;	  /* offset of ".entry", ".func" */
	size_t params;	  /* offset of the parameters' ')'; 0: no list */
	size_t body, end; /* offsets of the '{' and behind the '}' */
	uint32_t line;	  /* of the body */
	uint32_t nr_params, param_bytes;
	bool entry;
	bool weak;     /* of several in a link one counts */
	bool selected; /* entry; function: is called by what is copied, directly or not */
	bool copied;
	const char *why;   /* it cannot be copied; NULL */
	uint32_t why_line; /* of the text; 0 */
	uint32_t nr_sites; /* in the result, from first on */
	size_t access, nr_access;
	size_t call, nr_call;
	uint32_t left_out, indirect;
	uint32_t first; /* site, of those in the result */
	uint32_t mark;	/* last kernel whose calls were followed through it */
};

struct ttmon_ptx_mod {
	const char *text;
	size_t len;
	uint32_t version, target; /* 90 of 9.0, of sm_90 */
	size_t preamble;	  /* offset behind .version, .target, .address_size */
	struct ttmon_ptx_fn *fns; /* those with a body */
	size_t nr_fns, cap_fns;
	uint32_t *by_name; /* hash table of indexes + 1 in fns */
	size_t nr_by_name;
	struct ttmon_ptx_tok *files; /* by their numbers; len 0: none of that number */
	size_t nr_files, cap_files;
	struct ttmon_ptx_access *access;
	size_t nr_access, cap_access;
	struct ttmon_ptx_call *calls;
	size_t nr_calls, cap_calls;
};

/* mod.c. Errors as ttmon_ptx_rewrite(). */
int ttmon_ptx_parse(struct ttmon_ptx_mod *m, const char *text, size_t len, char *why, size_t n);
struct ttmon_ptx_fn *ttmon_ptx_find(const struct ttmon_ptx_mod *m, const struct ttmon_ptx_tok *name);
void ttmon_ptx_mod_fini(struct ttmon_ptx_mod *m);
/* Room for one more of *nr things of that size in *p; NULL where there is none. */
void *ttmon_ptx_more(void *p, size_t *nr, size_t *cap, size_t size);

/* op.c: as ttmon_ptx_op(); limit: of ldmatrix, the first lane that gives no row. NULL: not needed. */
bool ttmon_ptx_classify(const char *op, size_t len, unsigned int operand, struct ttmon_mt_site *site,
			unsigned int *limit, bool *left_out);

/* body.c: fills access, calls and the counters of fn, or its why. -ENOMEM. */
int ttmon_ptx_body(struct ttmon_ptx_mod *m, struct ttmon_ptx_fn *fn, const struct ttmon_ptx_opts *opts);

/* rec.c: the recorder's text for a target, to f. */
enum ttmon_ptx_part {
	TTMON_PTX_WHOLE,   /* for the text that calls it */
	TTMON_PTX_VISIBLE, /* for a module of its own */
	TTMON_PTX_EXTERN,  /* the declarations for a text that is linked with that */
};
void ttmon_ptx_recorder(FILE *f, bool aggregate, uint32_t target, enum ttmon_ptx_part part);

/* emit.c: the copy of a function (fn->copied), or only what declares it. */
void ttmon_ptx_emit(FILE *f, const struct ttmon_ptx_mod *m, const struct ttmon_ptx_fn *fn,
		    const struct ttmon_ptx_opts *opts, bool declare);

#endif
