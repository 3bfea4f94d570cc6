// SPDX-License-Identifier: GPL-2.0-only
/* unwind.c: see unwind.h. */
#include "lib/unwind/unwind.h"

#include "lib/base/hmap.h"

#define TRIM_FRAME 2 /* what libc has behind a thread's first function: start_thread(), clone3() */

/* Registers that a function has to leave as they were (System V ABI). */
#define CALLEE_SAVED (1u << TTMON_UW_RBX | 1u << TTMON_UW_RBP | 1u << TTMON_UW_RSP | 0xfu << TTMON_UW_R12)

struct cached {
	uint64_t off;
	uint32_t object; /* 0: nothing is here */
	struct ttmon_uw_row row;
};

struct ttmon_uw {
	size_t n; /* a power of two */
	struct cached rows[];
};

int ttmon_uw_new(size_t rows, struct ttmon_uw **ret)
{
	struct ttmon_uw *u = calloc(1, sizeof(*u) + rows * sizeof(u->rows[0]));

	if (!u)
		return -ENOMEM;
	u->n = rows;
	*ret = u;
	return 0;
}

void ttmon_uw_free(struct ttmon_uw *u)
{
	free(u);
}

/* ---- the copy ---- */

static bool read_copy(void *ctx, uint64_t addr, uint64_t *ret)
{
	const struct ttmon_stack_copy *s = ctx;
	uint64_t base = s->sp & ~(TTMON_STACK_PAGE - 1), at = addr - base;

	if (addr < s->sp || addr - s->sp > TTMON_STACK_BYTES - sizeof(*ret))
		return false;
	/* Eight bytes may lie on two pages. */
	if (!(s->pages >> (at / TTMON_STACK_PAGE) & 1) ||
	    !(s->pages >> ((at + sizeof(*ret) - 1) / TTMON_STACK_PAGE) & 1))
		return false;
	memcpy(ret, s->bytes + at, sizeof(*ret));
	return true;
}

/*
 * A return probe, whoever has set it, puts the kernel's trampoline in the place of a return address. The kernel knows what was there:
 * the copy has its list. slot: where the address lay.
 */
static uint64_t repaired(const struct ttmon_stack_copy *s, uint64_t pc, uint64_t slot)
{
	if (!s->trampoline || pc != s->trampoline)
		return pc;
	for (uint32_t i = 0; i < s->nret && i < TTMON_STACK_RETURNS; i++)
		if (s->ret[i].sp == slot && s->ret[i].ra != s->trampoline)
			return s->ret[i].ra;
	return pc;
}

/* ---- one step ---- */

struct walk {
	struct ttmon_uw *u;
	const struct ttmon_stack_copy *s;
	const struct ttmon_uw_ops *ops;
	struct ttmon_uw_regs regs;
	bool exact; /* the pc is that of an instruction that is to run, no return address */
	struct ttmon_uw_row row;
	struct ttmon_uw_exprs exprs;
};

enum found { ROW_FOUND, ROW_NONE, ROW_BAD };

static enum found find_row(struct walk *w, uint32_t object, uint64_t off)
{
	struct cached *c = &w->u->rows[ttmon_mix64(off ^ (uint64_t)object << 44) & (w->u->n - 1)];
	struct ttmon_uw_table *t;
	int err;

	if (c->object == object && c->off == off) {
		w->row = c->row;
		return ROW_FOUND;
	}
	t = w->ops->table(w->ops->ctx, object);
	if (!t)
		return ROW_NONE;
	err = ttmon_uw_table_row(t, off, &w->row, &w->exprs);
	if (err)
		return err == -ENOENT ? ROW_NONE : ROW_BAD;
	/* Expressions are rare, and of bytes that do not stay. */
	if (!w->row.has_expr)
		*c = (struct cached){ .off = off, .object = object, .row = w->row };
	return ROW_FOUND;
}

static bool known(const struct ttmon_uw_regs *r, unsigned int reg)
{
	return reg < TTMON_UW_REGS && r->known >> reg & 1;
}

static bool find_cfa(struct walk *w, uint64_t *cfa)
{
	if (w->row.cfa_expr)
		return ttmon_uw_eval(&w->exprs.cfa, &w->regs, NULL, read_copy, (void *)w->s, cfa);
	if (!known(&w->regs, w->row.cfa_reg))
		return false;
	*cfa = w->regs.r[w->row.cfa_reg] + (uint64_t)(int64_t)w->row.cfa_off;
	return true;
}

/* The caller's value of a register; false: not known. *slot: where it lay, if in memory. */
static bool caller_value(const struct walk *w, unsigned int reg, uint64_t cfa, uint64_t *ret, uint64_t *slot)
{
	const struct ttmon_uw_row *row = &w->row;
	uint64_t at = cfa + (uint64_t)(int64_t)row->value[reg];

	switch (row->rule[reg]) {
	case TTMON_UW_SAME:
		*ret = w->regs.r[reg];
		return known(&w->regs, reg) && (CALLEE_SAVED >> reg & 1 || row->signal);
	case TTMON_UW_OFFSET:
		*slot = at;
		return read_copy((void *)w->s, at, ret);
	case TTMON_UW_VALUE:
		*ret = at;
		return true;
	case TTMON_UW_REG:
		if (!known(&w->regs, (unsigned int)row->value[reg]))
			return false;
		*ret = w->regs.r[row->value[reg]];
		return true;
	case TTMON_UW_EXPR:
		return ttmon_uw_eval(&w->exprs.reg[reg], &w->regs, &cfa, read_copy, (void *)w->s, slot) &&
		       read_copy((void *)w->s, *slot, ret);
	case TTMON_UW_VAL_EXPR:
		return ttmon_uw_eval(&w->exprs.reg[reg], &w->regs, &cfa, read_copy, (void *)w->s, ret);
	}
	return false;
}

static bool by_frame_pointer(const struct ttmon_uw_row *row)
{
	return !row->cfa_expr && row->cfa_reg == TTMON_UW_RBP && row->cfa_off == 16 &&
	       row->rule[TTMON_UW_RBP] == TTMON_UW_OFFSET && row->value[TTMON_UW_RBP] == -16 &&
	       row->rule[TTMON_UW_RA] == TTMON_UW_OFFSET && row->value[TTMON_UW_RA] == -8;
}

/* To the caller, by the rules in w->row. NONE: done. */
static enum ttmon_stack_end step(struct walk *w)
{
	struct ttmon_uw_regs next = { .known = 0 };
	uint64_t cfa, slot = 0;

	if (w->row.rule[TTMON_UW_RA] == TTMON_UW_UNDEF)
		return TTMON_STACK_COMPLETE;
	if (!find_cfa(w, &cfa))
		return TTMON_STACK_LOST;
	/* Stacks grow downwards; that of a signal handler may lie anywhere. */
	if (!w->row.signal && cfa <= w->regs.r[TTMON_UW_RSP])
		return TTMON_STACK_BAD_TABLE;
	for (unsigned int i = 0; i < TTMON_UW_REGS; i++)
		if (i != TTMON_UW_RA && caller_value(w, i, cfa, &next.r[i], &slot))
			next.known |= 1u << i;
	/* The stack pointer's rule is the CFA, unless a table says more (that of a signal frame). */
	if (w->row.rule[TTMON_UW_RSP] == TTMON_UW_SAME)
		next.r[TTMON_UW_RSP] = cfa;
	else if (!known(&next, TTMON_UW_RSP))
		return TTMON_STACK_COPIED;
	next.known |= 1u << TTMON_UW_RSP;
	slot = 0;
	if (w->row.rule[TTMON_UW_RA] == TTMON_UW_SAME)
		return TTMON_STACK_BAD_TABLE;
	if (!caller_value(w, TTMON_UW_RA, cfa, &next.r[TTMON_UW_RA], &slot))
		return slot ? TTMON_STACK_COPIED : TTMON_STACK_LOST;
	next.known |= 1u << TTMON_UW_RA;
	next.r[TTMON_UW_RA] = repaired(w->s, next.r[TTMON_UW_RA], slot);
	if (!next.r[TTMON_UW_RA])
		return TTMON_STACK_COMPLETE;
	w->exact = w->row.signal;
	w->regs = next;
	return TTMON_STACK_UNKNOWN;
}

/* Where no table says anything, a frame record that leads to code may be believed. False: it does not. */
static bool guess(struct walk *w)
{
	uint64_t fp = w->regs.r[TTMON_UW_RBP], up, pc, off;
	uint32_t object;

	if (!known(&w->regs, TTMON_UW_RBP) || fp & 7 || fp < w->regs.r[TTMON_UW_RSP] ||
	    !read_copy((void *)w->s, fp, &up) || !read_copy((void *)w->s, fp + 8, &pc))
		return false;
	pc = repaired(w->s, pc, fp + 8);
	if (!pc || w->ops->locate(w->ops->ctx, pc - 1, &object, &off) != TTMON_UW_IN_OBJECT)
		return false;
	w->regs = (struct ttmon_uw_regs){ .known = 1u << TTMON_UW_RBP | 1u << TTMON_UW_RSP | 1u << TTMON_UW_RA };
	w->regs.r[TTMON_UW_RBP] = up;
	w->regs.r[TTMON_UW_RSP] = fp + 16;
	w->regs.r[TTMON_UW_RA] = pc;
	w->exact = false;
	return true;
}

static void begin(struct walk *w, struct ttmon_uw *u, const struct ttmon_stack_copy *s, const struct ttmon_uw_ops *ops)
{
	uint64_t *r = w->regs.r;

	*w = (struct walk){ .u = u, .s = s, .ops = ops, .exact = s->flags & TTMON_STACK_EXACT };
	r[TTMON_UW_RBX] = s->bx;
	r[TTMON_UW_RBP] = s->bp;
	r[TTMON_UW_RSP] = s->sp;
	r[TTMON_UW_R12] = s->r12;
	r[TTMON_UW_R12 + 1] = s->r13;
	r[TTMON_UW_R12 + 2] = s->r14;
	r[TTMON_UW_R12 + 3] = s->r15;
	r[TTMON_UW_RA] = s->ip;
	w->regs.known = CALLEE_SAVED | 1u << TTMON_UW_RA;
}

void ttmon_uw_walk(struct ttmon_uw *u, const struct ttmon_stack_copy *s, const struct ttmon_uw_ops *ops,
		   unsigned int max, struct ttmon_uw_result *ret)
{
	struct walk w;

	begin(&w, u, s, ops);
	ret->by_fp = 0;
	ret->n = 0;
	ret->guessed = false;
	ret->end_object = 0;
	for (;;) {
		uint64_t pc = w.regs.r[TTMON_UW_RA], off = 0;
		uint32_t object = 0;
		enum ttmon_uw_place place = ops->locate(ops->ctx, pc - !w.exact, &object, &off);
		enum found found = ROW_NONE;

		/* A return address that is in no code is none. */
		if (place == TTMON_UW_NOWHERE && ret->n) {
			ret->end = TTMON_STACK_NO_MAP;
			return;
		}
		if (ret->n == max) {
			ret->end = TTMON_STACK_DEPTH;
			return;
		}
		ret->pc[ret->n++] = pc;
		if (place == TTMON_UW_IN_OBJECT)
			found = find_row(&w, object, off);
		if (found == ROW_FOUND) {
			ret->end = step(&w);
			if (ret->end == TTMON_STACK_BAD_TABLE)
				ret->end_object = object;
			if (ret->end != TTMON_STACK_UNKNOWN)
				return;
			ret->by_fp |= (uint64_t)by_frame_pointer(&w.row) << (ret->n - 1);
			continue;
		}
		ret->end = found == ROW_BAD	       ? TTMON_STACK_BAD_TABLE
			   : place == TTMON_UW_NOWHERE ? TTMON_STACK_NO_MAP
						       : TTMON_STACK_NO_TABLE;
		ret->end_object = object;
		if (found == ROW_BAD || !guess(&w))
			return;
		ret->guessed = true;
	}
}

bool ttmon_uw_confirms(const struct ttmon_uw_result *r, const uint64_t *fp, unsigned int n, bool cut)
{
	if (!n || n > r->n || r->guessed)
		return false;
	for (unsigned int i = 0; i < n; i++)
		if (r->pc[i] != fp[i] || (i + 1 < n && !(r->by_fp >> i & 1)))
			return false;
	return cut || (r->end == TTMON_STACK_COMPLETE && r->n - n <= TRIM_FRAME);
}
