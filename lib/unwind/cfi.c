// SPDX-License-Identifier: GPL-2.0-only
/* cfi.c: see cfi.h. */
#include "lib/unwind/cfi.h"

#include "lib/base/varint.h"

#define MAX_STEPS      100000 /* limit of instructions interpreted for one FDE */
#define MAX_EXPR_STEPS 256
#define MAX_EXPR_STACK 32
#define MAX_REMEMBERED 8

uint64_t ttmon_uw_uleb(struct ttmon_uw_cursor *c)
{
	uint64_t v = 0;

	if (ttmon_varint_get(&c->p, c->end, &v))
		return v;
	c->bad = true;
	return 0;
}

int64_t ttmon_uw_sleb(struct ttmon_uw_cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0;; shift += 7) {
		uint8_t b;

		if (c->p >= c->end || shift > 63) {
			c->bad = true;
			return 0;
		}
		b = *c->p++;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (b & 0x80)
			continue;
		if (b & 0x40 && shift + 7 < 64)
			v |= UINT64_MAX << (shift + 7);
		return (int64_t)v;
	}
}

uint64_t ttmon_uw_fixed(struct ttmon_uw_cursor *c, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < n) {
		c->bad = true;
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)c->p[i] << (8 * i);
	c->p += n;
	return v;
}

static void skip(struct ttmon_uw_cursor *c, uint64_t n)
{
	if ((uint64_t)(c->end - c->p) < n)
		c->bad = true;
	else
		c->p += n;
}

/* ---- addresses ---- */

#define PE_OMIT	    0xff
#define PE_PCREL    0x10
#define PE_INDIRECT 0x80

/* Returns the bytes of an address in this format, 0: the format is not known. */
static size_t pe_size(uint8_t encoding)
{
	switch (encoding & 0xf) {
	case 0x0: /* absptr */
	case 0x4: /* udata8 */
	case 0xc: /* sdata8 */
		return 8;
	case 0x3: /* udata4 */
	case 0xb: /* sdata4 */
		return 4;
	case 0x2: /* udata2 */
	case 0xa: /* sdata2 */
		return 2;
	}
	return 0;
}

static uint64_t pe_value(struct ttmon_uw_cursor *c, uint8_t encoding)
{
	size_t n = pe_size(encoding);
	uint64_t v = ttmon_uw_fixed(c, n);

	if (encoding & 8 && n < 8 && v >> (8 * n - 1) & 1)
		v |= UINT64_MAX << (8 * n);
	return v;
}

/* ---- CIE and FDE ---- */

int ttmon_uw_read_cie(const uint8_t *cie, const uint8_t *end, bool debug, struct ttmon_uw_fde *f)
{
	struct ttmon_uw_cursor c = { .p = cie, .end = end };
	uint64_t version = ttmon_uw_fixed(&c, 1), ra, len = 0;
	const uint8_t *aug = c.p, *nul = memchr(c.p, 0, (size_t)(c.end - c.p)), *data;
	bool four = debug && version == 4;

	*f = (struct ttmon_uw_fde){ .encoding = 0 };
	if (version != 1 && version != 3 && !four)
		return -EOPNOTSUPP;
	if (!nul)
		return -EBADMSG;
	c.p = nul + 1;
	/* Sizes of an address and of a segment selector. */
	if (four && ttmon_uw_fixed(&c, 2) != 8)
		return -EOPNOTSUPP;
	f->code_align = ttmon_uw_uleb(&c);
	f->data_align = ttmon_uw_sleb(&c);
	ra = version == 1 ? ttmon_uw_fixed(&c, 1) : ttmon_uw_uleb(&c);
	if (c.bad)
		return -EBADMSG;
	if (ra != TTMON_UW_RA)
		return -EOPNOTSUPP;
	if (*aug == 'z') {
		f->has_aug = true;
		len = ttmon_uw_uleb(&c);
	} else if (*aug) {
		return -EOPNOTSUPP;
	}
	data = c.p;
	skip(&c, len);
	if (c.bad)
		return -EBADMSG;
	f->cie_insns = c.p;
	f->cie_end = end;
	c = (struct ttmon_uw_cursor){ .p = data, .end = data + len };
	for (aug += f->has_aug; *aug && !c.bad; aug++) {
		uint8_t encoding;

		switch (*aug) {
		case 'R':
			f->encoding = (uint8_t)ttmon_uw_fixed(&c, 1);
			break;
		case 'P': /* address of the exception handler */
			encoding = (uint8_t)ttmon_uw_fixed(&c, 1);
			skip(&c, pe_size(encoding));
			break;
		case 'L':
			skip(&c, 1);
			break;
		case 'S':
			f->signal = true;
			break;
		default: /* the effect of this augmentation is not known, although its length is */
			return -EOPNOTSUPP;
		}
	}
	if (f->encoding != 0 && ((f->encoding & 0x70) & ~PE_PCREL || f->encoding & PE_INDIRECT))
		return -EOPNOTSUPP;
	return c.bad || !pe_size(f->encoding) ? -EBADMSG : 0;
}

int ttmon_uw_read_fde(const uint8_t *fde, const uint8_t *end, uint64_t addr, struct ttmon_uw_fde *f)
{
	struct ttmon_uw_cursor c = { .p = fde, .end = end };

	f->start = pe_value(&c, f->encoding) + (f->encoding & PE_PCREL ? addr : 0);
	f->len = ttmon_uw_fixed(&c, pe_size(f->encoding));
	if (f->has_aug)
		skip(&c, ttmon_uw_uleb(&c));
	f->insns = c.p;
	f->end = end;
	return c.bad || f->start + f->len < f->start ? -EBADMSG : 0;
}

/* ---- instructions ---- */

struct state {
	struct ttmon_uw_row row;
	struct ttmon_uw_exprs exprs;
};

struct machine {
	struct state now;
	const struct state *initial; /* row of the CIE; NULL while the CIE is interpreted */
	const struct ttmon_uw_fde *f;
	struct state saved[MAX_REMEMBERED];
	unsigned int nr_saved;
	int err;
};

static void set(struct machine *m, uint64_t reg, enum ttmon_uw_rule rule, int64_t value)
{
	if (value != (int32_t)value)
		m->err = -EBADMSG;
	/* Vector registers and the like are not needed. */
	if (reg >= TTMON_UW_REGS)
		return;
	m->now.row.rule[reg] = (uint8_t)rule;
	m->now.row.value[reg] = (int32_t)value;
}

static void set_expr(struct machine *m, uint64_t reg, enum ttmon_uw_rule rule, struct ttmon_uw_cursor *c)
{
	uint64_t n = ttmon_uw_uleb(c);
	struct ttmon_uw_expr e = { .p = c->p, .n = (uint32_t)n };

	skip(c, n);
	if (c->bad || reg >= TTMON_UW_REGS)
		return;
	m->now.row.has_expr = true;
	m->now.exprs.reg[reg] = e;
	set(m, reg, rule, (int64_t)reg);
}

static void restore(struct machine *m, uint64_t reg)
{
	if (!m->initial)
		m->err = -EBADMSG;
	else if (reg < TTMON_UW_REGS) {
		m->now.row.rule[reg] = m->initial->row.rule[reg];
		m->now.row.value[reg] = m->initial->row.value[reg];
		m->now.exprs.reg[reg] = m->initial->exprs.reg[reg];
	}
}

static int64_t times(struct machine *m, int64_t n)
{
	int64_t v;

	if (__builtin_mul_overflow(n, m->f->data_align, &v)) {
		m->err = -EBADMSG;
		return 0;
	}
	return v;
}

static int64_t unsigned_value(struct machine *m, struct ttmon_uw_cursor *c)
{
	uint64_t v = ttmon_uw_uleb(c);

	if (v > INT32_MAX)
		m->err = -EBADMSG;
	return v > INT32_MAX ? 0 : (int64_t)v;
}

static void set_cfa(struct machine *m, uint64_t reg, int64_t off)
{
	if (reg >= TTMON_UW_REGS || off != (int32_t)off) {
		m->err = -EBADMSG;
		return;
	}
	m->now.row.cfa_expr = false;
	m->now.row.cfa_reg = (uint8_t)reg;
	m->now.row.cfa_off = (int32_t)off;
}

static void remember(struct machine *m)
{
	if (m->nr_saved == MAX_REMEMBERED)
		m->err = -EBADMSG;
	else
		m->saved[m->nr_saved++] = m->now;
}

static void recall(struct machine *m)
{
	bool has_expr = m->now.row.has_expr;

	if (!m->nr_saved) {
		m->err = -EBADMSG;
		return;
	}
	m->now = m->saved[--m->nr_saved];
	m->now.row.has_expr |= has_expr;
}

/* Interprets the instructions that do not advance the location. */
static void other(struct machine *m, uint8_t op, struct ttmon_uw_cursor *c)
{
	uint64_t reg;
	int64_t v;

	switch (op) {
	case 0x00: /* nop */
		return;
	case 0x05: /* offset_extended */
		reg = ttmon_uw_uleb(c);
		set(m, reg, TTMON_UW_OFFSET, times(m, unsigned_value(m, c)));
		return;
	case 0x06: /* restore_extended */
		restore(m, ttmon_uw_uleb(c));
		return;
	case 0x07: /* undefined */
		set(m, ttmon_uw_uleb(c), TTMON_UW_UNDEF, 0);
		return;
	case 0x08: /* same_value */
		set(m, ttmon_uw_uleb(c), TTMON_UW_SAME, 0);
		return;
	case 0x09: /* register */
		reg = ttmon_uw_uleb(c);
		set(m, reg, TTMON_UW_REG, unsigned_value(m, c));
		return;
	case 0x0a: /* remember_state */
		remember(m);
		return;
	case 0x0b: /* restore_state */
		recall(m);
		return;
	case 0x0c: /* def_cfa */
		reg = ttmon_uw_uleb(c);
		set_cfa(m, reg, unsigned_value(m, c));
		return;
	case 0x0d: /* def_cfa_register */
		set_cfa(m, ttmon_uw_uleb(c), m->now.row.cfa_off);
		return;
	case 0x0e: /* def_cfa_offset */
		set_cfa(m, m->now.row.cfa_reg, unsigned_value(m, c));
		return;
	case 0x0f: /* def_cfa_expression */
		reg = ttmon_uw_uleb(c);
		m->now.exprs.cfa = (struct ttmon_uw_expr){ .p = c->p, .n = (uint32_t)reg };
		m->now.row.cfa_expr = m->now.row.has_expr = true;
		skip(c, reg);
		return;
	case 0x10: /* expression */
		reg = ttmon_uw_uleb(c);
		set_expr(m, reg, TTMON_UW_EXPR, c);
		return;
	case 0x11: /* offset_extended_sf */
		reg = ttmon_uw_uleb(c);
		set(m, reg, TTMON_UW_OFFSET, times(m, ttmon_uw_sleb(c)));
		return;
	case 0x12: /* def_cfa_sf */
		reg = ttmon_uw_uleb(c);
		set_cfa(m, reg, times(m, ttmon_uw_sleb(c)));
		return;
	case 0x13: /* def_cfa_offset_sf */
		set_cfa(m, m->now.row.cfa_reg, times(m, ttmon_uw_sleb(c)));
		return;
	case 0x14: /* val_offset */
		reg = ttmon_uw_uleb(c);
		set(m, reg, TTMON_UW_VALUE, times(m, unsigned_value(m, c)));
		return;
	case 0x15: /* val_offset_sf */
		reg = ttmon_uw_uleb(c);
		set(m, reg, TTMON_UW_VALUE, times(m, ttmon_uw_sleb(c)));
		return;
	case 0x16: /* val_expression */
		reg = ttmon_uw_uleb(c);
		set_expr(m, reg, TTMON_UW_VAL_EXPR, c);
		return;
	case 0x2e: /* GNU_args_size */
		ttmon_uw_uleb(c);
		return;
	case 0x2f: /* GNU_negative_offset_extended */
		reg = ttmon_uw_uleb(c);
		v = times(m, unsigned_value(m, c));
		set(m, reg, TTMON_UW_OFFSET, -v);
		return;
	}
	m->err = -EOPNOTSUPP;
}

/* Returns how far an instruction advances, in units of code_align; UINT64_MAX: it does not. */
static uint64_t advances(uint8_t op, struct ttmon_uw_cursor *c)
{
	if (op >> 6 == 1)
		return op & 0x3f;
	switch (op) {
	case 0x02:
		return ttmon_uw_fixed(c, 1);
	case 0x03:
		return ttmon_uw_fixed(c, 2);
	case 0x04:
		return ttmon_uw_fixed(c, 4);
	}
	return UINT64_MAX;
}

/* Interprets instructions up to the one whose location is after pc. */
static int interpret(struct machine *m, const uint8_t *p, const uint8_t *end, uint64_t loc, uint64_t pc)
{
	struct ttmon_uw_cursor c = { .p = p, .end = end };

	for (unsigned int steps = 0; c.p < c.end; steps++) {
		uint8_t op = *c.p++;
		uint64_t more;

		if (steps == MAX_STEPS)
			return -EBADMSG;
		if (op >> 6 == 2) {
			set(m, op & 0x3f, TTMON_UW_OFFSET, times(m, unsigned_value(m, &c)));
		} else if (op >> 6 == 3) {
			restore(m, op & 0x3f);
		} else if (op == 0x01) {
			/* set_loc: no compiler for x86-64 emits it. */
			return -EOPNOTSUPP;
		} else if ((more = advances(op, &c)) != UINT64_MAX) {
			if (__builtin_mul_overflow(more, m->f->code_align, &more) ||
			    __builtin_add_overflow(loc, more, &loc))
				return -EBADMSG;
			if (loc > pc)
				return c.bad ? -EBADMSG : 0;
		} else {
			other(m, op, &c);
		}
		if (c.bad || m->err)
			return m->err ? m->err : -EBADMSG;
	}
	return 0;
}

int ttmon_uw_rules(const struct ttmon_uw_fde *f, uint64_t pc, struct ttmon_uw_row *row, struct ttmon_uw_exprs *exprs)
{
	struct machine m;
	struct state initial;
	int err;

	if (pc < f->start || pc - f->start >= f->len)
		return -EBADMSG;
	m.f = f;
	m.nr_saved = 0;
	m.err = 0;
	m.initial = NULL;
	/* A register without a rule is unchanged, except the stack pointer, which is the CFA. */
	m.now = (struct state){ .row = { .cfa_reg = TTMON_UW_RSP, .signal = f->signal } };
	err = interpret(&m, f->cie_insns, f->cie_end, 0, UINT64_MAX);
	if (err)
		return err;
	initial = m.now;
	m.initial = &initial;
	m.nr_saved = 0;
	err = interpret(&m, f->insns, f->end, f->start, pc);
	if (err)
		return err;
	*row = m.now.row;
	row->ruled = 0;
	for (unsigned int i = 0; i < TTMON_UW_REGS; i++)
		row->ruled |= (uint32_t)(row->rule[i] != TTMON_UW_SAME) << i;
	*exprs = m.now.exprs;
	return 0;
}

/* ---- expressions ---- */

struct stack {
	uint64_t v[MAX_EXPR_STACK];
	unsigned int n;
	bool bad;
};

static void push(struct stack *s, uint64_t v)
{
	if (s->n == MAX_EXPR_STACK)
		s->bad = true;
	else
		s->v[s->n++] = v;
}

static uint64_t pop(struct stack *s)
{
	if (!s->n) {
		s->bad = true;
		return 0;
	}
	return s->v[--s->n];
}

/* Evaluates the binary operations that compilers and libc use; false: another operation. */
static bool of_two(uint8_t op, uint64_t a, uint64_t b, uint64_t *ret)
{
	switch (op) {
	case 0x1a: /* and */
		*ret = a & b;
		return true;
	case 0x1c: /* minus */
		*ret = a - b;
		return true;
	case 0x1e: /* mul */
		*ret = a * b;
		return true;
	case 0x21: /* or */
		*ret = a | b;
		return true;
	case 0x22: /* plus */
		*ret = a + b;
		return true;
	case 0x24: /* shl */
		*ret = b < 64 ? a << b : 0;
		return true;
	case 0x25: /* shr */
		*ret = b < 64 ? a >> b : 0;
		return true;
	case 0x27: /* xor */
		*ret = a ^ b;
		return true;
	case 0x29: /* eq */
		*ret = a == b;
		return true;
	case 0x2a: /* ge */
		*ret = (int64_t)a >= (int64_t)b;
		return true;
	case 0x2b: /* gt */
		*ret = (int64_t)a > (int64_t)b;
		return true;
	case 0x2c: /* le */
		*ret = (int64_t)a <= (int64_t)b;
		return true;
	case 0x2d: /* lt */
		*ret = (int64_t)a < (int64_t)b;
		return true;
	case 0x2e: /* ne */
		*ret = a != b;
		return true;
	}
	return false;
}

/* Evaluates a constant; false: another operation. */
static bool constant(uint8_t op, struct ttmon_uw_cursor *c, uint64_t *ret)
{
	if (op >= 0x30 && op <= 0x4f) { /* lit0 ... lit31 */
		*ret = op - 0x30u;
		return true;
	}
	switch (op) {
	case 0x08: /* const1u */
		*ret = ttmon_uw_fixed(c, 1);
		return true;
	case 0x09: /* const1s */
		*ret = (uint64_t)(int64_t)(int8_t)ttmon_uw_fixed(c, 1);
		return true;
	case 0x0a: /* const2u */
		*ret = ttmon_uw_fixed(c, 2);
		return true;
	case 0x0b: /* const2s */
		*ret = (uint64_t)(int64_t)(int16_t)ttmon_uw_fixed(c, 2);
		return true;
	case 0x0c: /* const4u */
		*ret = ttmon_uw_fixed(c, 4);
		return true;
	case 0x0d: /* const4s */
		*ret = (uint64_t)(int64_t)(int32_t)ttmon_uw_fixed(c, 4);
		return true;
	case 0x0e: /* const8u */
	case 0x0f: /* const8s */
		*ret = ttmon_uw_fixed(c, 8);
		return true;
	case 0x10: /* constu */
		*ret = ttmon_uw_uleb(c);
		return true;
	case 0x11: /* consts */
		*ret = (uint64_t)ttmon_uw_sleb(c);
		return true;
	}
	return false;
}

bool ttmon_uw_eval(const struct ttmon_uw_expr *e, const struct ttmon_uw_regs *regs, const uint64_t *start,
		   ttmon_uw_read_fn read, void *ctx, uint64_t *ret)
{
	struct ttmon_uw_cursor c = { .p = e->p, .end = e->p + e->n };
	struct stack s = { .n = 0 };

	if (start)
		push(&s, *start);
	for (unsigned int steps = 0; c.p < c.end && !c.bad && !s.bad; steps++) {
		uint8_t op = *c.p++;
		uint64_t a, b;

		if (steps == MAX_EXPR_STEPS)
			return false;
		if (constant(op, &c, &a)) {
			push(&s, a);
		} else if (op >= 0x70 && op < 0x70 + TTMON_UW_REGS) { /* breg0 ... breg16 */
			if (!(regs->known >> (op - 0x70) & 1))
				return false;
			push(&s, regs->r[op - 0x70] + (uint64_t)ttmon_uw_sleb(&c));
		} else if (op == 0x06) { /* deref */
			if (!read(ctx, pop(&s), &a))
				return false;
			push(&s, a);
		} else if (op == 0x12) { /* dup */
			a = pop(&s);
			push(&s, a);
			push(&s, a);
		} else if (op == 0x13) { /* drop */
			pop(&s);
		} else if (op == 0x23) { /* plus_uconst */
			a = pop(&s);
			push(&s, a + ttmon_uw_uleb(&c));
		} else if (op != 0x96) { /* nop */
			b = pop(&s);
			a = pop(&s);
			if (!of_two(op, a, b, &a))
				return false;
			push(&s, a);
		}
	}
	if (c.bad || s.bad || !s.n)
		return false;
	*ret = s.v[s.n - 1];
	return true;
}
