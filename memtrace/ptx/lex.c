// SPDX-License-Identifier: GPL-2.0-only
/* lex.c: PTX as words. Comments and lines of the preprocessor are none. */
#include <ctype.h>

#include "memtrace/ptx/ptx_int.h"
#include "lib/base/util.h"

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static void blanks(struct ttmon_ptx_lex *l)
{
	bool fresh = false; /* a line has begun, as far as can be seen from here */

	while (l->p < l->end) {
		const char *next = NULL;

		if (*l->p == '\n') {
			l->line++;
			l->p++;
			fresh = true;
		} else if (isspace((unsigned char)*l->p) || !*l->p) {
			l->p++;
		} else if (*l->p == '/' && l->end - l->p > 1 && l->p[1] == '/') {
			next = memchr(l->p, '\n', (size_t)(l->end - l->p));
			l->p = next ? next : l->end;
		} else if (*l->p == '/' && l->end - l->p > 1 && l->p[1] == '*') {
			next = memmem(l->p + 2, (size_t)(l->end - l->p) - 2, "*/", 2);
			next = next ? next + 2 : l->end;
			for (; l->p < next; l->p++)
				l->line += *l->p == '\n';
		} else if (*l->p == '#' && fresh) {
			next = memchr(l->p, '\n', (size_t)(l->end - l->p));
			l->p = next ? next : l->end;
		} else {
			return;
		}
	}
}

static const char *end_of_word(const char *p, const char *end)
{
	for (;;) {
		while (p < end && word_char(*p))
			p++;
		/* "shared::cta" is one, "label: :" is not. */
		if (end - p < 3 || p[0] != ':' || p[1] != ':' || !word_char(p[2]))
			return p;
		p += 2;
	}
}

static const char *end_of_number(const char *p, const char *end)
{
	bool plain = !(end - p > 1 && p[0] == '0' && strchr("xXfFdDbB", p[1]) && p[1]);

	while (p < end && (isalnum((unsigned char)*p) || *p == '.')) {
		if (plain && (*p == 'e' || *p == 'E') && end - p > 1 && (p[1] == '-' || p[1] == '+'))
			p++;
		p++;
	}
	return p;
}

struct ttmon_ptx_tok ttmon_ptx_next(struct ttmon_ptx_lex *l)
{
	struct ttmon_ptx_tok t = { 0 };

	blanks(l);
	t.s = l->p;
	t.line = l->line;
	if (l->p == l->end)
		return t;
	if (isdigit((unsigned char)*l->p)) {
		t.kind = TTMON_PTX_NUM;
		l->p = end_of_number(l->p, l->end);
	} else if (word_char(*l->p)) {
		t.kind = TTMON_PTX_WORD;
		l->p = end_of_word(l->p, l->end);
	} else if (*l->p == '"') {
		t.kind = TTMON_PTX_STR;
		for (l->p++; l->p < l->end && *l->p != '"'; l->p++) {
			if (*l->p == '\\' && l->end - l->p > 1)
				l->p++;
			l->line += *l->p == '\n';
		}
		l->p += l->p < l->end;
	} else {
		t.kind = *l->p++;
		/* A character that is no PTX must not look like one of our kinds. */
		if (!strchr("@!{}()[]<>,;:=+-*/|&^~?", t.kind))
			t.kind = '?';
	}
	t.len = (size_t)(l->p - t.s);
	return t;
}

struct ttmon_ptx_tok ttmon_ptx_peek(const struct ttmon_ptx_lex *l)
{
	struct ttmon_ptx_lex at = *l;

	return ttmon_ptx_next(&at);
}

bool ttmon_ptx_is(const struct ttmon_ptx_tok *t, const char *word)
{
	return t->kind == TTMON_PTX_WORD && t->len == strlen(word) && !memcmp(t->s, word, t->len);
}

bool ttmon_ptx_begins(const struct ttmon_ptx_tok *t, const char *with)
{
	return t->kind == TTMON_PTX_WORD && t->len >= strlen(with) && !memcmp(t->s, with, strlen(with));
}

uint64_t ttmon_ptx_number(const struct ttmon_ptx_tok *t)
{
	char buf[32] = "";

	if (t->kind != TTMON_PTX_NUM || t->len >= sizeof(buf))
		return 0;
	memcpy(buf, t->s, t->len);
	return strtoull(buf, NULL, 0);
}

void ttmon_ptx_skip(struct ttmon_ptx_lex *l)
{
	uint32_t depth = 0;

	for (;;) {
		/* A brace that closes an earlier block does not belong to this text. */
		struct ttmon_ptx_lex at = *l;
		struct ttmon_ptx_tok t = ttmon_ptx_next(l);

		if (t.kind == '}' && !depth) {
			*l = at;
			return;
		}
		if (t.kind == TTMON_PTX_END || (t.kind == ';' && !depth))
			return;
		depth += t.kind == '{';
		depth -= t.kind == '}';
	}
}

int ttmon_ptx_type(const struct ttmon_ptx_tok *t)
{
	static const struct {
		const char *name;
		int bytes;
	} types[] = {
		{ ".pred", 0 },	  { ".b8", 1 },	   { ".u8", 1 },     { ".s8", 1 },	   { ".b16", 2 },
		{ ".u16", 2 },	  { ".s16", 2 },   { ".f16", 2 },    { ".bf16", 2 },	   { ".b32", 4 },
		{ ".u32", 4 },	  { ".s32", 4 },   { ".f32", 4 },    { ".tf32", 4 },	   { ".f16x2", 4 },
		{ ".bf16x2", 4 }, { ".b64", 8 },   { ".u64", 8 },    { ".s64", 8 },	   { ".f64", 8 },
		{ ".f32x2", 8 },  { ".b128", 16 }, { ".texref", 8 }, { ".samplerref", 8 }, { ".surfref", 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (ttmon_ptx_is(t, types[i].name))
			return types[i].bytes;
	}
	return -1;
}
