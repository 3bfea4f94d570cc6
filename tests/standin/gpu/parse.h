/* SPDX-License-Identifier: GPL-2.0-only */
/* parse.h: the state of the parser. Inside the interpreter. */
#ifndef STANDIN_GPU_PARSE_H
#define STANDIN_GPU_PARSE_H

#include "lex.h"

#include <setjmp.h>

#define MAX_SCOPES 256

/* A name that a function declares: a register (or %r<count>), a variable, or a parameter. */
struct gpu_local {
	const char *name;
	size_t len;
	uint32_t count; /* of %r<count>; 0: one */
	int32_t reg;	/* first slot; -1: sym */
	uint8_t size;	/* bytes; 16: two slots each */
	struct gpu_sym *sym;
};
struct gpu_label {
	const char *name;
	size_t len;
	uint32_t place;
};
struct gpu_table {
	const char *name;
	size_t len;
	struct gpu_operand *vec;
};
struct gpu_scope {
	uint32_t locals, labels, refs, regs, pmem;
};
struct gpu_reloc {
	uint64_t at, add;
	uint32_t size;
	struct gpu_sym *sym;
};

struct gpu_parser {
	struct gpu_lex lx;
	struct gpu_module *m;
	jmp_buf fail;
	struct gpu_func *f;
	struct gpu_local *locals;
	struct gpu_label *labels;
	struct gpu_operand **refs;
	struct gpu_table *tables;
	uint32_t nr_locals, nr_labels, nr_refs, nr_tables, nr_scopes, regs, pmem, cap_code;
	struct gpu_scope scopes[MAX_SCOPES];
	uint32_t unit;		      /* of a linked image: the number of the text, from 1 */
	bool part;		      /* declared names may be defined elsewhere */
	bool external, visible, weak; /* attributes before the declaration that is being read */
	char *data;
	uint64_t data_size, data_cap;
	struct gpu_reloc *relocs;
	uint32_t nr_relocs;
};

void gpu_fail(struct gpu_parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
void *gpu_get(struct gpu_parser *p, size_t n); /* returns zeroed memory that belongs to the module */
char *gpu_text(struct gpu_parser *p, const char *text, size_t len);
void gpu_need(struct gpu_parser *p, const char *text);
/* Makes room for one more element in array, which has nr elements of size bytes. */
void gpu_room(struct gpu_parser *p, void *array, uint32_t nr, size_t size);
enum gpu_type gpu_type_of(const char *text, size_t len);
const struct gpu_local *gpu_local_find(struct gpu_parser *p, const char *name, size_t len, int32_t *reg);
struct gpu_sym *gpu_sym_find(struct gpu_parser *p, const char *name, size_t len);
void gpu_parse_body(struct gpu_parser *p);
/*
 * Parses the declaration of a variable from its state space on. Fills in sym and leaves the reader
 * after the name and brackets.
 */
struct gpu_sym *gpu_parse_var(struct gpu_parser *p, enum gpu_space space);
uint64_t gpu_const(struct gpu_parser *p); /* an integer constant, with a sign */

#endif
