// SPDX-License-Identifier: GPL-2.0-only
/*
 * body.c: one function, statement after statement: which instructions access memory, with which
 * operands, and which functions it calls. Of registers only their widths are known, by the scopes in
 * which they are declared.
 */
#include "memtrace/ptx/ptx_int.h"
#include "lib/base/util.h"

/* More than any compiler declares; each lookup goes through them. */
#define MAX_REGS 4096

struct reg {
	struct ttmon_ptx_tok name;
	uint32_t count; /* name<count>: name0 .. ; 0: just name */
	int bytes;	/* 0: predicate */
};

struct body {
	struct ttmon_ptx_mod *m;
	struct ttmon_ptx_fn *fn;
	const struct ttmon_ptx_opts *opts;
	struct ttmon_ptx_lex l;
	struct reg *regs;
	size_t nr_regs, cap_regs;
	size_t *scopes; /* nr_regs as it was where each began */
	size_t nr_scopes, cap_scopes;
	uint32_t instr, file, file_line;
	struct ttmon_ptx_tok guard, *words; /* words: operands of the statement */
	size_t nr_words, cap_words;
	bool guard_not;
	size_t at; /* offset of the statement */
	int err;
};

static void give_up(struct body *b, const char *why, uint32_t line)
{
	if (!b->fn->why) {
		b->fn->why = why;
		b->fn->why_line = line;
	}
}

static size_t offset(const struct body *b, const struct ttmon_ptx_tok *t)
{
	return (size_t)(t->s - b->m->text);
}

/* Bytes of a register, 0 of a predicate; -1: there is none of that name. */
static int width_of(const struct body *b, const struct ttmon_ptx_tok *name)
{
	for (size_t i = b->nr_regs; i-- > 0;) {
		const struct reg *r = &b->regs[i];
		uint64_t nr = 0;
		size_t k;

		if (name->len < r->name.len || memcmp(name->s, r->name.s, r->name.len))
			continue;
		k = r->name.len;
		if (!r->count) {
			if (k == name->len)
				return r->bytes;
			continue;
		}
		if (k == name->len || name->len - k > 9 || (name->s[k] == '0' && name->len - k > 1))
			continue;
		for (; k < name->len && name->s[k] >= '0' && name->s[k] <= '9'; k++)
			nr = nr * 10 + (uint64_t)(name->s[k] - '0');
		if (k == name->len && nr < r->count)
			return r->bytes;
	}
	return -1;
}

/* .reg .b32 %r<5>, %x; from behind ".reg". */
static void declare(struct body *b)
{
	struct ttmon_ptx_tok t;
	struct reg r = { .bytes = -1 };
	unsigned int vector = 1;

	for (t = ttmon_ptx_next(&b->l); t.kind == TTMON_PTX_WORD && t.s[0] == '.'; t = ttmon_ptx_next(&b->l)) {
		if (t.len == 3 && t.s[1] == 'v')
			vector = 2;
		else
			r.bytes = ttmon_ptx_type(&t);
	}
	/* A vector as a whole is no address. */
	if (vector > 1)
		r.bytes = 16;
	while (t.kind == TTMON_PTX_WORD) {
		void *p = ttmon_ptx_more(b->regs, &b->nr_regs, &b->cap_regs, sizeof(*b->regs));

		if (!p) {
			b->err = -ENOMEM;
			return;
		}
		b->regs = p;
		if (b->nr_regs == MAX_REGS) {
			give_up(b, "too many declarations of registers", t.line);
			break;
		}
		r.name = t;
		r.count = 0;
		t = ttmon_ptx_next(&b->l);
		if (t.kind == '<') {
			t = ttmon_ptx_next(&b->l);
			r.count = (uint32_t)MIN(ttmon_ptx_number(&t), UINT32_MAX);
			(void)ttmon_ptx_next(&b->l);
			t = ttmon_ptx_next(&b->l);
		}
		b->regs[b->nr_regs++] = r;
		if (t.kind != ',')
			break;
		t = ttmon_ptx_next(&b->l);
	}
	if (t.kind != ';')
		ttmon_ptx_skip(&b->l);
}

static void scope(struct body *b, bool open)
{
	if (open) {
		void *p = ttmon_ptx_more(b->scopes, &b->nr_scopes, &b->cap_scopes, sizeof(*b->scopes));

		if (!p) {
			b->err = -ENOMEM;
			return;
		}
		b->scopes = p;
		b->scopes[b->nr_scopes++] = b->nr_regs;
	} else if (b->nr_scopes) {
		b->nr_regs = b->scopes[--b->nr_scopes];
	}
}

/* .loc 1 20 5[, function_name $L[+n], inlined_at 1 7 3] */
static void location(struct body *b)
{
	struct ttmon_ptx_tok file = ttmon_ptx_next(&b->l), line = ttmon_ptx_next(&b->l), t;
	uint32_t at = file.line;

	b->file = (uint32_t)ttmon_ptx_number(&file);
	b->file_line = (uint32_t)ttmon_ptx_number(&line);
	for (t = ttmon_ptx_peek(&b->l);
	     t.line == at && (t.kind == TTMON_PTX_NUM || t.kind == ',' || t.kind == '+' || t.kind == TTMON_PTX_WORD);
	     t = ttmon_ptx_peek(&b->l)) {
		/* An instruction may follow in the same line. */
		if (t.kind == TTMON_PTX_WORD && !ttmon_ptx_is(&t, "function_name") && !ttmon_ptx_is(&t, "inlined_at") &&
		    t.s[0] != '$' && t.s[0] != '.')
			break;
		(void)ttmon_ptx_next(&b->l);
	}
}

/* The operands of the instruction, up to its ';'. False: there is none. */
static bool operands(struct body *b)
{
	uint32_t depth = 0;

	b->nr_words = 0;
	for (;;) {
		struct ttmon_ptx_tok t = ttmon_ptx_peek(&b->l);
		void *p;

		if (t.kind == TTMON_PTX_END || (t.kind == '}' && !depth))
			return false;
		(void)ttmon_ptx_next(&b->l);
		if (t.kind == ';' && !depth)
			return true;
		depth += t.kind == '{';
		depth -= t.kind == '}';
		p = ttmon_ptx_more(b->words, &b->nr_words, &b->cap_words, sizeof(*b->words));
		if (!p) {
			b->err = -ENOMEM;
			return false;
		}
		b->words = p;
		b->words[b->nr_words++] = t;
	}
}

/* The "[...]" from *at on: [base], [base + imm], [base - imm]. *at is then behind it. */
static bool address(const struct body *b, size_t *at, struct ttmon_ptx_access *a)
{
	size_t i = *at;
	int bytes;

	while (i < b->nr_words && b->words[i].kind != '[')
		i++;
	if (b->nr_words - MIN(i, b->nr_words) < 3)
		return false;
	a->base = b->words[++i];
	if (a->base.kind == TTMON_PTX_WORD) {
		bytes = width_of(b, &a->base);
		a->base_is_32 = bytes == 4;
		/* A name that is no register is a variable, but what looks like a register is none that is known. */
		if (bytes >= 0 ? bytes != 4 && bytes != 8 : a->base.s[0] == '%')
			return false;
	} else if (a->base.kind == TTMON_PTX_NUM) {
		a->base_is_num = true;
	} else {
		return false;
	}
	for (i++; i < b->nr_words && (b->words[i].kind == '+' || b->words[i].kind == '-'); i++)
		a->negative ^= b->words[i].kind == '-';
	if (i < b->nr_words && b->words[i].kind == TTMON_PTX_NUM)
		a->imm = b->words[i++];
	*at = i + 1;
	return i < b->nr_words && b->words[i].kind == ']';
}

/* cp.async: ", 16[, size or ignore][, policy]" from at on. */
static bool copied(const struct body *b, size_t at, struct ttmon_ptx_access *a)
{
	int bytes;

	if (b->nr_words < at + 2 || b->words[at].kind != ',' || b->words[at + 1].kind != TTMON_PTX_NUM)
		return false;
	a->site.width = (uint8_t)ttmon_ptx_number(&b->words[at + 1]);
	if (a->site.width != 4 && a->site.width != 8 && a->site.width != 16)
		return false;
	if (a->site.kind != TTMON_MT_COPY_SRC || b->nr_words < at + 4)
		return true;
	a->skip = b->words[at + 3];
	if (a->skip.kind == TTMON_PTX_NUM)
		return true;
	bytes = width_of(b, &a->skip);
	a->skip_is_pred = !bytes;
	if (bytes == 8) /* a cache policy */
		a->skip.len = 0;
	return a->skip.kind == TTMON_PTX_WORD && (!bytes || bytes == 4 || bytes == 8);
}

static bool wanted(const struct body *b, unsigned int space)
{
	const struct ttmon_ptx_opts *o = b->opts;

	return o->spaces & (space == TTMON_MT_GENERIC ? ~0u : 1u << space) && b->instr >= o->instr_begin &&
	       b->instr < o->instr_end;
}

static void record(struct body *b, const struct ttmon_ptx_tok *op)
{
	struct ttmon_ptx_mod *m = b->m;
	bool left_out = false;
	size_t at = 0;

	for (unsigned int operand = 0; operand < 2; operand++) {
		struct ttmon_ptx_access a = {
			.at = b->at, .guard = b->guard, .guard_not = b->guard_not, .op = *op, .file = b->file
		};
		unsigned int limit;
		bool known;
		void *p;

		if (!ttmon_ptx_classify(op->s, op->len, operand, &a.site, &limit, &left_out)) {
			b->fn->left_out += left_out && !operand;
			return;
		}
		a.limit = (uint8_t)limit;
		a.site.line = b->file_line;
		a.site.text_line = op->line;
		known = address(b, &at, &a);
		if (a.site.kind == TTMON_MT_COPY_DST || a.site.kind == TTMON_MT_COPY_SRC) {
			struct ttmon_ptx_access source = { 0 };
			size_t behind = at;

			/* How much it copies is said behind its second address. */
			known = known && (operand || address(b, &behind, &source)) && copied(b, behind, &a);
		}
		if (!wanted(b, a.site.space))
			continue;
		if (!known) {
			give_up(b, "operands of a form that is not known", op->line);
			return;
		}
		p = ttmon_ptx_more(m->access, &m->nr_access, &m->cap_access, sizeof(*m->access));
		if (!p) {
			b->err = -ENOMEM;
			return;
		}
		m->access = p;
		m->access[m->nr_access++] = a;
	}
}

/* call[.uni] [(ret),] fn[, (args)][, list]; */
static void called(struct body *b)
{
	struct ttmon_ptx_call c = { .at = b->at };
	struct ttmon_ptx_mod *m = b->m;
	const struct ttmon_ptx_tok *w = b->words;
	const struct ttmon_ptx_fn *fn;
	size_t i = 0;
	void *p;

	if (b->nr_words && w[0].kind == '(') {
		while (i < b->nr_words && w[i].kind != ')')
			i++;
		i += 2;
	}
	if (i >= b->nr_words || w[i].kind != TTMON_PTX_WORD) {
		give_up(b, "a call of a form that is not known", b->nr_words ? w[0].line : b->l.line);
		return;
	}
	fn = width_of(b, &w[i]) < 0 ? ttmon_ptx_find(m, &w[i]) : NULL;
	if (!fn || fn->entry) {
		/* The driver's own, which access nothing of the program's. */
		b->fn->indirect += !ttmon_ptx_is(&w[i], "vprintf") && !ttmon_ptx_is(&w[i], "__assertfail") &&
				   !ttmon_ptx_is(&w[i], "malloc") && !ttmon_ptx_is(&w[i], "free");
		return;
	}
	c.fn = (uint32_t)(fn - m->fns);
	c.name = offset(b, &w[i]);
	c.name_end = c.name + w[i].len;
	if (i + 2 < b->nr_words && w[i + 1].kind == ',' && w[i + 2].kind == '(') {
		c.empty = i + 3 < b->nr_words && w[i + 3].kind == ')';
		for (i += 3; i < b->nr_words && w[i].kind != ')'; i++)
			;
		if (i == b->nr_words) {
			give_up(b, "a call of a form that is not known", w[0].line);
			return;
		}
		c.args = offset(b, &w[i]);
	}
	p = ttmon_ptx_more(m->calls, &m->nr_calls, &m->cap_calls, sizeof(*m->calls));
	if (!p) {
		b->err = -ENOMEM;
		return;
	}
	m->calls = p;
	m->calls[m->nr_calls++] = c;
}

/* A statement that begins with a directive. */
static void directive(struct body *b, const struct ttmon_ptx_tok *t)
{
	if (ttmon_ptx_is(t, ".loc")) {
		location(b);
	} else if (ttmon_ptx_is(t, ".reg")) {
		declare(b);
	} else {
		/* Each copy would have one of its own. */
		if (ttmon_ptx_is(t, ".global") || ttmon_ptx_is(t, ".const"))
			give_up(b, "it has a global variable of its own", t->line);
		ttmon_ptx_skip(&b->l);
	}
}

static void instruction(struct body *b, struct ttmon_ptx_tok t)
{
	b->at = offset(b, &t);
	b->guard = (struct ttmon_ptx_tok){ 0 };
	b->guard_not = false;
	if (t.kind == '@') {
		t = ttmon_ptx_next(&b->l);
		b->guard_not = t.kind == '!';
		if (b->guard_not)
			t = ttmon_ptx_next(&b->l);
		b->guard = t;
		if (t.kind != TTMON_PTX_WORD || width_of(b, &t) != 0)
			give_up(b, "a predicate that is none", t.line);
		t = ttmon_ptx_next(&b->l);
	}
	if (t.kind != TTMON_PTX_WORD || !operands(b)) {
		give_up(b, "no instruction as PTX has them", t.line);
		return;
	}
	/*
	 * Its warps give registers away that the recorder would need, and its budget has no room for the
	 * recorder's.
	 */
	if (ttmon_ptx_begins(&t, "setmaxnreg."))
		give_up(b, "it sets the number of its registers (setmaxnreg)", t.line);
	if (ttmon_ptx_is(&t, "call") || ttmon_ptx_begins(&t, "call."))
		called(b);
	else
		record(b, &t);
	b->instr++;
}

int ttmon_ptx_body(struct ttmon_ptx_mod *m, struct ttmon_ptx_fn *fn, const struct ttmon_ptx_opts *opts)
{
	/* The braces around it are left away. */
	struct body b = {
		.m = m, .fn = fn, .opts = opts, .l = { m->text + fn->body + 1, m->text + fn->end - 1, fn->line }
	};

	fn->access = m->nr_access;
	fn->call = m->nr_calls;
	while (!b.err && !fn->why) {
		struct ttmon_ptx_tok t = ttmon_ptx_next(&b.l), next = ttmon_ptx_peek(&b.l);

		if (t.kind == TTMON_PTX_END)
			break;
		if (t.kind == '{' || t.kind == '}')
			scope(&b, t.kind == '{');
		else if (t.kind == TTMON_PTX_WORD && next.kind == ':')
			(void)ttmon_ptx_next(&b.l);
		else if (t.kind == TTMON_PTX_WORD && t.s[0] == '.')
			directive(&b, &t);
		else if (t.kind != ';')
			instruction(&b, t);
	}
	free(b.regs);
	free(b.scopes);
	free(b.words);
	if (b.err)
		return b.err;
	if (fn->why) {
		m->nr_access = fn->access;
		m->nr_calls = fn->call;
	}
	fn->nr_access = m->nr_access - fn->access;
	fn->nr_call = m->nr_calls - fn->call;
	return 0;
}
