// SPDX-License-Identifier: GPL-2.0-only
#include "lex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void skip_blank(struct gpu_lex *lx)
{
	while (lx->at < lx->end) {
		if (*lx->at == '\n') {
			lx->line++;
			lx->at++;
		} else if (isspace((unsigned char)*lx->at) || !*lx->at) {
			lx->at++;
		} else if (lx->end - lx->at >= 2 && !memcmp(lx->at, "//", 2)) {
			while (lx->at < lx->end && *lx->at != '\n')
				lx->at++;
		} else if (lx->end - lx->at >= 2 && !memcmp(lx->at, "/*", 2)) {
			for (lx->at += 2;
			     lx->at < lx->end && (lx->at[0] != '*' || lx->at + 1 >= lx->end || lx->at[1] != '/');
			     lx->at++)
				lx->line += *lx->at == '\n';
			lx->at = lx->end - lx->at >= 2 ? lx->at + 2 : lx->end;
		} else {
			return;
		}
	}
}

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static void number(struct gpu_lex *lx)
{
	char buf[72], *end;
	size_t n = lx->len < sizeof(buf) - 1 ? lx->len : sizeof(buf) - 1;

	memcpy(buf, lx->text, n);
	buf[n] = 0;
	lx->kind = TK_INT;
	lx->f32 = false;
	if (buf[0] == '0' && (buf[1] == 'f' || buf[1] == 'F') && n == 10) {
		lx->value = strtoull(buf + 2, NULL, 16);
		lx->f32 = true;
	} else if (buf[0] == '0' && (buf[1] == 'd' || buf[1] == 'D') && n == 18) {
		lx->value = strtoull(buf + 2, NULL, 16);
		lx->kind = TK_DOUBLE;
	} else if (buf[0] == '0' && (buf[1] == 'b' || buf[1] == 'B')) {
		lx->value = strtoull(buf + 2, NULL, 2);
	} else if (strchr(buf, '.') || (buf[1] != 'x' && buf[1] != 'X' && strpbrk(buf, "eE"))) {
		double d = strtod(buf, &end);

		memcpy(&lx->value, &d, 8);
		lx->kind = TK_DOUBLE;
	} else {
		lx->value = strtoull(buf, NULL, 0);
	}
}

void gpu_lex_next(struct gpu_lex *lx)
{
	skip_blank(lx);
	lx->text = lx->at;
	lx->len = 0;
	lx->tok_line = lx->line;
	if (lx->at >= lx->end) {
		lx->kind = TK_END;
		return;
	}
	if (*lx->at == '"') {
		for (lx->at++; lx->at < lx->end && *lx->at != '"'; lx->at++)
			;
		lx->at += lx->at < lx->end;
		lx->kind = TK_STRING;
	} else if (word_char(*lx->at)) {
		bool digit = isdigit((unsigned char)*lx->at);

		while (lx->at < lx->end &&
		       (word_char(*lx->at) || (*lx->at == ':' && lx->end - lx->at > 1 && lx->at[1] == ':' && ++lx->at)))
			lx->at++;
		lx->kind = TK_WORD;
		lx->len = (size_t)(lx->at - lx->text);
		if (digit)
			number(lx);
	} else {
		lx->at++;
		lx->kind = TK_PUNCT;
	}
	lx->len = (size_t)(lx->at - lx->text);
}

void gpu_lex_skip_line(struct gpu_lex *lx)
{
	lx->at = lx->text;
	while (lx->at < lx->end && *lx->at != '\n')
		lx->at++;
	gpu_lex_next(lx);
}

bool gpu_lex_is(const struct gpu_lex *lx, const char *text)
{
	return lx->kind != TK_END && strlen(text) == lx->len && !memcmp(lx->text, text, lx->len);
}

bool gpu_lex_take(struct gpu_lex *lx, const char *text)
{
	if (!gpu_lex_is(lx, text))
		return false;
	gpu_lex_next(lx);
	return true;
}
