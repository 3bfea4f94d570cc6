/* SPDX-License-Identifier: GPL-2.0-only */
/* lex.h: the tokens of PTX. Inside the interpreter. */
#ifndef STANDIN_GPU_LEX_H
#define STANDIN_GPU_LEX_H

#include "gpu.h"

enum gpu_token_kind { TK_END, TK_WORD, TK_INT, TK_DOUBLE, TK_STRING, TK_PUNCT };

struct gpu_lex {
	const char *at, *end;
	uint32_t line;
	/* the token */
	enum gpu_token_kind kind;
	const char *text;
	size_t len;
	uint64_t value; /* TK_INT; TK_DOUBLE: the bits of a double */
	bool f32;	/* 0f...: the bits of a float, as TK_INT */
	uint32_t tok_line;
};

void gpu_lex_next(struct gpu_lex *lx);
void gpu_lex_skip_line(struct gpu_lex *lx); /* to the next line, whose first token it reads */
bool gpu_lex_is(const struct gpu_lex *lx, const char *text);
bool gpu_lex_take(struct gpu_lex *lx, const char *text);

#endif
