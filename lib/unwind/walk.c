// SPDX-License-Identifier: GPL-2.0-only
/* walk.c: see walk.h. */
#include "lib/unwind/walk.h"

#define TRIM_FRAME 2 /* number of libc frames behind the first function of a thread: start_thread(), clone3() */

struct walk {
	const struct ttmon_uw_ops *ops;
	struct ttmon_uw_regs regs;
	bool exact; /* the pc is that of the next instruction, not a return address */
	struct ttmon_uw_at at;
};

static bool known(const struct ttmon_uw_regs *r, unsigned int reg)
{
	return reg < TTMON_UW_REGS && r->known >> reg & 1;
}

static bool find_cfa(const struct walk *w, uint64_t *cfa)
{
	const struct ttmon_uw_row *row = w->at.row;

	if (row->cfa_expr)
		return ttmon_uw_eval(&w->at.exprs.cfa, &w->regs, NULL, w->ops->read, w->ops->ctx, cfa);
	if (!known(&w->regs, row->cfa_reg))
		return false;
	*cfa = w->regs.r[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_off;
	return true;
}

/*
 * Computes the caller's value of a register that has a rule; false: not known. *slot: its place, if it
 * is in memory.
 */
static bool caller_value(const struct walk *w, unsigned int reg, uint64_t cfa, uint64_t *ret, uint64_t *slot)
{
	const struct ttmon_uw_row *row = w->at.row;
	uint64_t at = cfa + (uint64_t)(int64_t)row->value[reg];

	switch (row->rule[reg]) {
	case TTMON_UW_OFFSET:
		*slot = at;
		return w->ops->read(w->ops->ctx, at, ret);
	case TTMON_UW_VALUE:
		*ret = at;
		return true;
	case TTMON_UW_REG:
		if (!known(&w->regs, (unsigned int)row->value[reg]))
			return false;
		*ret = w->regs.r[row->value[reg]];
		return true;
	case TTMON_UW_EXPR:
		return ttmon_uw_eval(&w->at.exprs.reg[reg], &w->regs, &cfa, w->ops->read, w->ops->ctx, slot) &&
		       w->ops->read(w->ops->ctx, *slot, ret);
	case TTMON_UW_VAL_EXPR:
		return ttmon_uw_eval(&w->at.exprs.reg[reg], &w->regs, &cfa, w->ops->read, w->ops->ctx, ret);
	}
	return false;
}

bool ttmon_uw_by_frame_pointer(const struct ttmon_uw_row *row)
{
	return !row->cfa_expr && row->cfa_reg == TTMON_UW_RBP && row->cfa_off == 16 &&
	       row->rule[TTMON_UW_RBP] == TTMON_UW_OFFSET && row->value[TTMON_UW_RBP] == -16 &&
	       row->rule[TTMON_UW_RA] == TTMON_UW_OFFSET && row->value[TTMON_UW_RA] == -8;
}

/* Steps to the caller by the rules in w->at.row. Returns UNKNOWN to continue. */
static enum ttmon_stack_end step(struct walk *w)
{
	const struct ttmon_uw_row *row = w->at.row;
	struct ttmon_uw_regs next = w->regs;
	uint64_t cfa, slot = 0;
	uint32_t left;

	if (row->rule[TTMON_UW_RA] == TTMON_UW_UNDEF)
		return TTMON_STACK_COMPLETE;
	if (!find_cfa(w, &cfa))
		return TTMON_STACK_LOST;
	/* Stacks grow downwards; the stack of a signal handler may be anywhere. */
	if (!row->signal && cfa <= w->regs.r[TTMON_UW_RSP])
		return TTMON_STACK_BAD_TABLE;
	/* A register without a rule is unchanged if a call must preserve it. */
	next.known &= (row->signal ? UINT32_MAX : TTMON_UW_KEPT) & ~row->ruled & ~(1u << TTMON_UW_RA);
	for (left = row->ruled & ~(1u << TTMON_UW_RA); left; left &= left - 1) {
		unsigned int reg = (unsigned int)__builtin_ctz(left);

		if (caller_value(w, reg, cfa, &next.r[reg], &slot))
			next.known |= 1u << reg;
	}
	/* The stack pointer is the CFA, unless the table has a rule for it (in signal frames). */
	if (row->rule[TTMON_UW_RSP] == TTMON_UW_SAME)
		next.r[TTMON_UW_RSP] = cfa;
	else if (!known(&next, TTMON_UW_RSP))
		return TTMON_STACK_COPIED;
	next.known |= 1u << TTMON_UW_RSP;
	slot = 0;
	if (row->rule[TTMON_UW_RA] == TTMON_UW_SAME)
		return TTMON_STACK_BAD_TABLE;
	if (!caller_value(w, TTMON_UW_RA, cfa, &next.r[TTMON_UW_RA], &slot))
		return slot ? TTMON_STACK_COPIED : TTMON_STACK_LOST;
	next.known |= 1u << TTMON_UW_RA;
	if (w->ops->repaired)
		next.r[TTMON_UW_RA] = w->ops->repaired(w->ops->ctx, next.r[TTMON_UW_RA], slot);
	if (!next.r[TTMON_UW_RA])
		return TTMON_STACK_COMPLETE;
	w->exact = row->signal;
	w->regs = next;
	return TTMON_STACK_UNKNOWN;
}

/*
 * If no table covers the code, a frame record that leads to code is used. Returns false if it does
 * not.
 */
static bool guess(struct walk *w)
{
	uint64_t fp = w->regs.r[TTMON_UW_RBP], up, pc;

	if (!known(&w->regs, TTMON_UW_RBP) || fp & 7 || fp < w->regs.r[TTMON_UW_RSP] ||
	    !w->ops->read(w->ops->ctx, fp, &up) || !w->ops->read(w->ops->ctx, fp + 8, &pc))
		return false;
	if (w->ops->repaired)
		pc = w->ops->repaired(w->ops->ctx, pc, fp + 8);
	if (!pc || !w->ops->is_code(w->ops->ctx, pc - 1))
		return false;
	w->regs = (struct ttmon_uw_regs){ .known = 1u << TTMON_UW_RBP | 1u << TTMON_UW_RSP | 1u << TTMON_UW_RA };
	w->regs.r[TTMON_UW_RBP] = up;
	w->regs.r[TTMON_UW_RSP] = fp + 16;
	w->regs.r[TTMON_UW_RA] = pc;
	w->exact = false;
	return true;
}

void ttmon_uw_walk(const struct ttmon_uw_ops *ops, const struct ttmon_uw_regs *regs, bool exact, unsigned int max,
		   struct ttmon_uw_result *ret)
{
	struct walk w;

	w.ops = ops;
	w.regs = *regs;
	w.exact = exact;
	ret->by_fp = 0;
	ret->n = 0;
	ret->guessed = false;
	ret->end_object = 0;
	for (;;) {
		uint64_t pc = w.regs.r[TTMON_UW_RA];
		enum ttmon_uw_found found;

		w.at.object = 0;
		found = ops->find(ops->ctx, pc - !w.exact, &w.at);
		/* An address that is not in code is not a return address. */
		if (found == TTMON_UW_NO_CODE && ret->n) {
			ret->end = TTMON_STACK_NO_MAP;
			return;
		}
		if (ret->n == max) {
			ret->end = TTMON_STACK_DEPTH;
			return;
		}
		ret->sp[ret->n] = w.regs.r[TTMON_UW_RSP];
		ret->pc[ret->n++] = pc;
		if (found == TTMON_UW_ROW) {
			bool by_fp = ttmon_uw_by_frame_pointer(w.at.row);

			ret->end = step(&w);
			if (ret->end == TTMON_STACK_BAD_TABLE)
				ret->end_object = w.at.object;
			if (ret->end != TTMON_STACK_UNKNOWN)
				return;
			ret->by_fp |= (uint64_t)by_fp << (ret->n - 1);
			continue;
		}
		ret->end = found == TTMON_UW_BAD_ROW   ? TTMON_STACK_BAD_TABLE
			   : found == TTMON_UW_NO_CODE ? TTMON_STACK_NO_MAP
						       : TTMON_STACK_NO_TABLE;
		ret->end_object = w.at.object;
		if (found == TTMON_UW_BAD_ROW || !guess(&w))
			return;
		ret->guessed = true;
	}
}

bool ttmon_uw_up(const struct ttmon_uw_ops *ops, struct ttmon_uw_regs *regs, bool exact)
{
	struct walk w;

	w.ops = ops;
	w.regs = *regs;
	w.exact = exact;
	if (ops->find(ops->ctx, regs->r[TTMON_UW_RA] - !exact, &w.at) != TTMON_UW_ROW ||
	    step(&w) != TTMON_STACK_UNKNOWN)
		return false;
	*regs = w.regs;
	return true;
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
