// SPDX-License-Identifier: GPL-2.0-only
/* body.c: parses the body of a function. */
#include "parse.h"

#include <ctype.h>
#include <string.h>

static const struct {
	const char *name;
	uint8_t value;
} specials[] = {
	{ "%tid.x", SR_TID },
	{ "%tid.y", SR_TID_Y },
	{ "%tid.z", SR_TID_Z },
	{ "%ntid.x", SR_NTID },
	{ "%ntid.y", SR_NTID_Y },
	{ "%ntid.z", SR_NTID_Z },
	{ "%ctaid.x", SR_CTAID },
	{ "%ctaid.y", SR_CTAID_Y },
	{ "%ctaid.z", SR_CTAID_Z },
	{ "%nctaid.x", SR_NCTAID },
	{ "%nctaid.y", SR_NCTAID_Y },
	{ "%nctaid.z", SR_NCTAID_Z },
	{ "%laneid", SR_LANEID },
	{ "%warpid", SR_WARPID },
	{ "%nwarpid", SR_NWARPID },
	{ "%smid", SR_SMID },
	{ "%nsmid", SR_NSMID },
	{ "%gridid", SR_GRIDID },
	{ "%clock", SR_CLOCK },
	{ "%clock_hi", SR_CLOCK_HI },
	{ "%clock64", SR_CLOCK64 },
	{ "%globaltimer", SR_GLOBALTIMER },
	{ "%globaltimer_lo", SR_GLOBALTIMER_LO },
	{ "%globaltimer_hi", SR_GLOBALTIMER_HI },
	{ "%lanemask_eq", SR_LM_EQ },
	{ "%lanemask_le", SR_LM_LE },
	{ "%lanemask_lt", SR_LM_LT },
	{ "%lanemask_ge", SR_LM_GE },
	{ "%lanemask_gt", SR_LM_GT },
	{ "%dynamic_smem_size", SR_DYN_SHARED },
	{ "%total_smem_size", SR_TOTAL_SHARED },
	{ "%clusterid.x", SR_CTAID },
	{ "%clusterid.y", SR_CTAID_Y },
	{ "%clusterid.z", SR_CTAID_Z },
	{ "%nclusterid.x", SR_NCTAID },
	{ "%nclusterid.y", SR_NCTAID_Y },
	{ "%nclusterid.z", SR_NCTAID_Z },
	{ "%cluster_ctaid.x", SR_ZERO },
	{ "%cluster_ctaid.y", SR_ZERO },
	{ "%cluster_ctaid.z", SR_ZERO },
	{ "%cluster_nctaid.x", SR_ONE },
	{ "%cluster_nctaid.y", SR_ONE },
	{ "%cluster_nctaid.z", SR_ONE },
	{ "%cluster_ctarank", SR_ZERO },
	{ "%cluster_nctarank", SR_ONE },
};

static void open_scope(struct gpu_parser *p)
{
	if (p->nr_scopes == MAX_SCOPES)
		gpu_fail(p, "too many braces");
	p->scopes[p->nr_scopes++] = (struct gpu_scope){ p->nr_locals, p->nr_labels, p->nr_refs, p->regs, p->pmem };
}

/*
 * Names end with their scope; so do the places of registers and parameters, since no lane is in two
 * scopes at a time.
 */
static void close_scope(struct gpu_parser *p)
{
	const struct gpu_scope *s = &p->scopes[--p->nr_scopes];
	uint32_t kept = s->refs;

	for (uint32_t i = s->refs; i < p->nr_refs; i++) {
		struct gpu_operand *o = p->refs[i];
		uint32_t j;

		for (j = s->labels; j < p->nr_labels; j++)
			if (strlen(o->label) == p->labels[j].len &&
			    !memcmp(o->label, p->labels[j].name, p->labels[j].len))
				break;
		if (j < p->nr_labels)
			o->imm = p->labels[j].place;
		else
			p->refs[kept++] = o;
	}
	p->nr_refs = kept;
	p->nr_locals = s->locals;
	p->nr_labels = s->labels;
	p->regs = s->regs;
	p->pmem = s->pmem;
}

static void declare_regs(struct gpu_parser *p)
{
	enum gpu_type t = T_NONE;

	while (p->lx.kind == TK_WORD && p->lx.text[0] == '.') {
		t = gpu_type_of(p->lx.text + 1, p->lx.len - 1);
		gpu_lex_next(&p->lx);
	}
	if (!t)
		gpu_fail(p, "a register without a type");
	do {
		struct gpu_local *l;
		uint32_t n = 1;

		gpu_room(p, &p->locals, p->nr_locals, sizeof(*p->locals));
		l = &p->locals[p->nr_locals];
		*l = (struct gpu_local){
			.name = p->lx.text, .len = p->lx.len, .reg = (int32_t)p->regs, .size = gpu_type_size[t]
		};
		gpu_lex_next(&p->lx);
		if (gpu_lex_take(&p->lx, "<")) {
			l->count = n = (uint32_t)gpu_const(p);
			gpu_need(p, ">");
		}
		if (n > 1 << 20)
			gpu_fail(p, "too many registers");
		p->nr_locals++;
		p->regs += l->size == 16 ? 2 * n : n;
		if (p->regs > p->f->nr_regs)
			p->f->nr_regs = p->regs;
	} while (gpu_lex_take(&p->lx, ","));
	gpu_need(p, ";");
}

static void declare_var(struct gpu_parser *p, enum gpu_space space)
{
	do {
		struct gpu_sym *s = gpu_parse_var(p, space);
		uint32_t *top = space == SP_PARAM   ? &p->pmem
				: space == SP_LOCAL ? &p->f->local
				: p->f->entry	    ? &p->f->shared
						    : &p->m->shared;

		if (space == SP_GLOBAL || space == SP_CONST)
			gpu_fail(p, "a variable of the module in a function");
		if (s->size > 16 << 20)
			gpu_fail(p, "variable %s is too large", s->name);
		*top = (*top + s->align - 1) / s->align * s->align;
		s->off = *top;
		s->owner = p->f;
		s->of_entry = space == SP_SHARED && p->f->entry;
		*top += (uint32_t)s->size;
		if (p->pmem > p->f->pmem)
			p->f->pmem = p->pmem;
		gpu_room(p, &p->locals, p->nr_locals, sizeof(*p->locals));
		p->locals[p->nr_locals++] =
			(struct gpu_local){ .name = s->name, .len = strlen(s->name), .reg = -1, .sym = s };
	} while (gpu_lex_take(&p->lx, ","));
	gpu_need(p, ";");
}

static void operand(struct gpu_parser *p, struct gpu_operand *o);

static void list(struct gpu_parser *p, struct gpu_operand *o, const char *close)
{
	struct gpu_operand tmp[64];

	o->kind = O_VEC;
	o->n = 0;
	while (!gpu_lex_is(&p->lx, close)) {
		if (o->n == 64)
			gpu_fail(p, "too many operands");
		operand(p, &tmp[o->n++]);
		if (!gpu_lex_take(&p->lx, ","))
			break;
	}
	gpu_need(p, close);
	o->vec = gpu_get(p, sizeof(*tmp) * (o->n + 1u));
	memcpy(o->vec, tmp, sizeof(*tmp) * o->n);
}

static void name_operand(struct gpu_parser *p, struct gpu_operand *o)
{
	const struct gpu_lex *lx = &p->lx;
	const struct gpu_local *l = gpu_local_find(p, lx->text, lx->len, &o->reg);

	if (l && l->reg >= 0) {
		o->kind = O_REG;
		o->size = l->size;
	} else if (l) {
		o->kind = O_SYM;
		o->sym = l->sym;
	} else if (lx->text[0] == '%') {
		for (size_t i = 0; i < sizeof(specials) / sizeof(*specials); i++)
			if (gpu_lex_is(lx, specials[i].name)) {
				o->kind = O_SPECIAL;
				o->special = specials[i].value;
			}
		if (!o->kind)
			gpu_fail(p, "register %.*s is not declared", (int)lx->len, lx->text);
	} else if (gpu_lex_is(lx, "_")) {
		o->kind = O_SINK;
	} else if (gpu_lex_is(lx, "WARP_SZ")) {
		o->kind = O_IMM;
		o->imm = GPU_LANES;
	} else if ((o->sym = gpu_sym_find(p, lx->text, lx->len))) {
		o->kind = O_SYM;
	} else {
		for (uint32_t i = 0; i < p->nr_tables; i++)
			if (p->tables[i].len == lx->len && !memcmp(p->tables[i].name, lx->text, lx->len))
				*o = *p->tables[i].vec;
		if (!o->kind) {
			o->kind = O_LABEL;
			o->label = gpu_text(p, lx->text, lx->len);
		}
	}
	gpu_lex_next(&p->lx);
}

static void operand(struct gpu_parser *p, struct gpu_operand *o)
{
	*o = (struct gpu_operand){ .reg = -1 };
	if (gpu_lex_take(&p->lx, "!")) {
		operand(p, o);
		o->neg = true;
	} else if (gpu_lex_take(&p->lx, "-")) {
		operand(p, o);
		if (o->kind == O_IMM && !o->dbl)
			o->imm = -o->imm;
		else if (o->kind == O_IMM)
			o->imm ^= 1ull << 63;
		else
			o->neg = true;
	} else if (gpu_lex_take(&p->lx, "{")) {
		list(p, o, "}");
	} else if (gpu_lex_take(&p->lx, "(")) {
		list(p, o, ")");
	} else if (gpu_lex_take(&p->lx, "[")) {
		operand(p, o);
		if (o->kind != O_REG && o->kind != O_SYM && o->kind != O_IMM)
			gpu_fail(p, "an address that is not understood");
		if (o->kind == O_REG)
			o->imm = 0;
		o->kind = O_ADDR;
		if (gpu_lex_take(&p->lx, "+"))
			o->imm += gpu_const(p);
		else if (gpu_lex_is(&p->lx, "-"))
			o->imm += gpu_const(p);
		gpu_need(p, "]");
	} else if (p->lx.kind == TK_INT || p->lx.kind == TK_DOUBLE) {
		o->kind = O_IMM;
		o->imm = p->lx.value;
		o->dbl = p->lx.kind == TK_DOUBLE;
		gpu_lex_next(&p->lx);
	} else if (p->lx.kind == TK_WORD) {
		name_operand(p, o);
		if (o->kind == O_SYM && gpu_lex_take(&p->lx, "+"))
			o->imm = gpu_const(p);
	} else {
		gpu_fail(p, "an operand was expected at \"%.*s\"", (int)p->lx.len, p->lx.text);
	}
	if (gpu_lex_take(&p->lx, "|")) {
		struct gpu_operand *pair = gpu_get(p, 2 * sizeof(*pair));

		pair[0] = *o;
		operand(p, &pair[1]);
		*o = (struct gpu_operand){ .kind = O_VEC, .n = 2, .vec = pair, .reg = -1 };
	}
}

/*
 * The labels of a scope are known at its end. Only branches may use labels; any other unknown name is
 * an error.
 */
static void refer(struct gpu_parser *p, struct gpu_operand *o, bool branch)
{
	if (o->kind == O_VEC)
		for (unsigned int i = 0; i < o->n; i++)
			refer(p, &o->vec[i], branch);
	if (o->kind != O_LABEL)
		return;
	if (!branch)
		gpu_fail(p, "%s is not declared", o->label);
	gpu_room(p, &p->refs, p->nr_refs, sizeof(*p->refs));
	p->refs[p->nr_refs++] = o;
}

/* call{.uni} (ret), fn, (args){, prototype}; all parts but fn may be missing. */
static void flatten_call(struct gpu_parser *p, struct gpu_insn *in, struct gpu_operand *ops, unsigned int n)
{
	unsigned int i = 0, nr = 0;
	struct gpu_operand *flat;

	if (i < n && ops[i].kind == O_VEC)
		in->nrets = ops[i++].n;
	if (i >= n)
		gpu_fail(p, "a call of nothing");
	if (i + 1 < n && ops[i + 1].kind == O_VEC)
		in->nargs = ops[i + 1].n;
	flat = gpu_get(p, sizeof(*flat) * (in->nrets + in->nargs + 1));
	for (unsigned int j = 0; j < in->nrets; j++)
		flat[nr++] = ops[0].vec[j];
	flat[nr++] = ops[i];
	for (unsigned int j = 0; j < in->nargs; j++)
		flat[nr++] = ops[i + 1].vec[j];
	if (ops[i].kind == O_SYM ? !ops[i].sym->func : ops[i].kind != O_REG)
		gpu_fail(p, "a call of what is no function");
	if (ops[i].kind == O_SYM)
		ops[i].sym->func->called = true;
	for (unsigned int j = 0; j < nr; j++)
		refer(p, &flat[j], false);
	in->ops = flat;
	in->nops = 1; /* of no use for a call */
}

static void instruction(struct gpu_parser *p, int32_t pred, bool neg)
{
	struct gpu_func *f = p->f;
	struct gpu_operand tmp[16];
	struct gpu_insn *in;
	unsigned int n = 0;

	if (f->nr_code == p->cap_code) {
		struct gpu_insn *code = gpu_get(p, sizeof(*code) * (p->cap_code * 2 + 64));

		if (f->nr_code)
			memcpy(code, f->code, sizeof(*code) * f->nr_code);
		f->code = code;
		p->cap_code = p->cap_code * 2 + 64;
	}
	in = &f->code[f->nr_code++];
	*in = (struct gpu_insn){ .pred = pred,
				 .pred_neg = neg,
				 .line = p->lx.tok_line,
				 .func = f,
				 .text = gpu_text(p, p->lx.text, p->lx.len) };
	gpu_lex_next(&p->lx);
	if (gpu_decode(in)) {
		while (p->lx.kind != TK_END && !gpu_lex_is(&p->lx, ";"))
			gpu_lex_next(&p->lx);
		gpu_need(p, ";");
		return;
	}
	while (!gpu_lex_is(&p->lx, ";")) {
		if (n == 16)
			gpu_fail(p, "too many operands");
		operand(p, &tmp[n++]);
		if (!gpu_lex_take(&p->lx, ",") && !gpu_lex_is(&p->lx, ";") && !gpu_lex_is(&p->lx, "("))
			break;
	}
	gpu_need(p, ";");
	if (in->op == OP_call) {
		flatten_call(p, in, tmp, n);
		return;
	}
	in->nops = (uint8_t)n;
	in->ops = gpu_get(p, sizeof(*tmp) * (n + 1));
	memcpy(in->ops, tmp, sizeof(*tmp) * n);
	for (unsigned int i = 0; i < n; i++) {
		if (in->op != OP_brx || in->ops[i].kind != O_VEC)
			refer(p, &in->ops[i], in->op == OP_bra);
		if (in->ops[i].kind == O_IMM && in->ops[i].dbl && in->type[0] == T_F32) {
			double d;
			float s;
			uint32_t bits;

			memcpy(&d, &in->ops[i].imm, 8);
			s = (float)d;
			memcpy(&bits, &s, 4);
			in->ops[i].imm = bits;
		}
	}
}

static void branch_targets(struct gpu_parser *p, const char *name, size_t len)
{
	struct gpu_operand *o = gpu_get(p, sizeof(*o)), tmp[256];
	unsigned int n = 0;

	do {
		if (n == 255)
			gpu_fail(p, "too many branch targets");
		operand(p, &tmp[n++]);
	} while (gpu_lex_take(&p->lx, ","));
	gpu_need(p, ";");
	*o = (struct gpu_operand){ .kind = O_VEC, .n = (uint8_t)n, .reg = -1, .vec = gpu_get(p, sizeof(*tmp) * n) };
	memcpy(o->vec, tmp, sizeof(*tmp) * n);
	refer(p, o, true);
	gpu_room(p, &p->tables, p->nr_tables, sizeof(*p->tables));
	p->tables[p->nr_tables++] = (struct gpu_table){ name, len, o };
}

static void directive(struct gpu_parser *p)
{
	if (gpu_lex_is(&p->lx, ".loc") || gpu_lex_is(&p->lx, ".file")) {
		gpu_lex_skip_line(&p->lx);
	} else if (gpu_lex_take(&p->lx, ".reg")) {
		declare_regs(p);
	} else if (gpu_lex_take(&p->lx, ".local")) {
		declare_var(p, SP_LOCAL);
	} else if (gpu_lex_take(&p->lx, ".shared")) {
		declare_var(p, SP_SHARED);
	} else if (gpu_lex_take(&p->lx, ".param")) {
		declare_var(p, SP_PARAM);
	} else if (gpu_lex_is(&p->lx, ".pragma")) {
		while (p->lx.kind != TK_END && !gpu_lex_is(&p->lx, ";"))
			gpu_lex_next(&p->lx);
		gpu_need(p, ";");
	} else {
		gpu_fail(p, "%.*s in a function", (int)p->lx.len, p->lx.text);
	}
}

static void statement(struct gpu_parser *p)
{
	int32_t pred = -1;
	bool neg = false;
	struct gpu_lex save;

	if (gpu_lex_take(&p->lx, ";"))
		return;
	if (p->lx.kind == TK_WORD && p->lx.text[0] == '.') {
		directive(p);
		return;
	}
	if (gpu_lex_take(&p->lx, "@")) {
		struct gpu_operand o;

		operand(p, &o);
		if (o.kind != O_REG)
			gpu_fail(p, "a guard that is no predicate");
		pred = o.reg;
		neg = o.neg;
		if (p->lx.kind != TK_WORD)
			gpu_fail(p, "an instruction was expected");
		instruction(p, pred, neg);
		return;
	}
	if (p->lx.kind != TK_WORD)
		gpu_fail(p, "an instruction was expected at \"%.*s\"", (int)p->lx.len, p->lx.text);
	save = p->lx;
	gpu_lex_next(&p->lx);
	if (gpu_lex_take(&p->lx, ":")) {
		if (gpu_lex_take(&p->lx, ".branchtargets")) {
			branch_targets(p, save.text, save.len);
			return;
		}
		if (gpu_lex_is(&p->lx, ".callprototype") || gpu_lex_is(&p->lx, ".calltargets")) {
			while (p->lx.kind != TK_END && !gpu_lex_is(&p->lx, ";"))
				gpu_lex_next(&p->lx);
			gpu_need(p, ";");
		}
		for (uint32_t i = p->scopes[p->nr_scopes - 1].labels; i < p->nr_labels; i++)
			if (p->labels[i].len == save.len && !memcmp(p->labels[i].name, save.text, save.len))
				gpu_fail(p, "label %.*s is there twice", (int)save.len, save.text);
		gpu_room(p, &p->labels, p->nr_labels, sizeof(*p->labels));
		p->labels[p->nr_labels++] = (struct gpu_label){ save.text, save.len, p->f->nr_code };
		gpu_room(p, &p->locals, p->nr_locals, sizeof(*p->locals));
		return;
	}
	p->lx = save;
	instruction(p, pred, neg);
}

void gpu_parse_body(struct gpu_parser *p)
{
	uint32_t depth = p->nr_scopes;
	struct gpu_insn *end;

	p->cap_code = 0;
	p->nr_tables = 0;
	p->f->nr_code = 0;
	open_scope(p);
	while (p->nr_scopes > depth) {
		if (p->lx.kind == TK_END)
			gpu_fail(p, "the text ends in function %s", p->f->name);
		if (gpu_lex_take(&p->lx, "{")) {
			open_scope(p);
		} else if (gpu_lex_is(&p->lx, "}")) {
			close_scope(p);
			gpu_lex_next(&p->lx);
		} else {
			statement(p);
		}
	}
	if (p->nr_refs)
		gpu_fail(p, "label %s is not there", p->refs[0]->label);
	p->nr_refs = 0;
	/* A thread that runs past the end returns. */
	end = gpu_get(p, sizeof(*end) * (p->f->nr_code + 1));
	if (p->f->nr_code)
		memcpy(end, p->f->code, sizeof(*end) * p->f->nr_code);
	p->f->code = end;
	end[p->f->nr_code++] =
		(struct gpu_insn){ .op = OP_ret, .pred = -1, .func = p->f, .text = gpu_text(p, "ret", 3) };
}
