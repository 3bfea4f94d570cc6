// SPDX-License-Identifier: GPL-2.0-only
/* sched.c: selects the lanes of a warp that run next; branches, calls, barriers. */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

#define TURN  1000000 /* after this many instructions, lanes that wait only for their turn run */
#define POLLS 200     /* or after this many reads of a value that another lane may change */

static bool has(const struct gpu_insn *in, unsigned int mod)
{
	return memchr(in->mods, (int)mod, in->nmods) != NULL;
}

/*
 * Returns the place of a lane in a frame that it is in or that was called from there; UINT32_MAX: it
 * is in neither.
 */
static uint32_t place_in(const struct gpu_lane *l, const struct gpu_frame *fr)
{
	const struct gpu_frame *f = l->fr;
	uint32_t pc = l->pc;

	while (f->depth > fr->depth) {
		pc = f->ret_pc - 1;
		f = f->up;
	}
	return f == fr ? pc : UINT32_MAX;
}

/*
 * Returns true if a's place in the program is before b's. The places are compared from the outermost
 * call on. The deeper one is earlier, since it must return first.
 */
static bool before(const struct gpu_lane *a, const struct gpu_lane *b)
{
	const struct gpu_frame *fa = a->fr, *fb = b->fr;
	uint32_t pa = a->pc, pb = b->pc;
	bool deeper = fa->depth > fb->depth;

	for (; fa->depth > fb->depth; fa = fa->up)
		pa = fa->ret_pc - 1;
	for (; fb->depth > fa->depth; fb = fb->up)
		pb = fb->ret_pc - 1;
	while (fa != fb) {
		pa = fa->ret_pc - 1;
		pb = fb->ret_pc - 1;
		fa = fa->up;
		fb = fb->up;
	}
	return pa != pb ? pa < pb : deeper;
}

static uint32_t in_state(const struct gpu_warp *w, unsigned int state)
{
	uint32_t ret = 0;

	FOR_LANES(lane, w->alive)
	ret |= (uint32_t)(w->lane[lane].state == state) << lane;
	return ret;
}

static void set_pc(struct gpu_warp *w, uint32_t mask, uint32_t pc)
{
	FOR_LANES(lane, mask)
	w->lane[lane].pc = pc;
}

static void leave(struct gpu_warp *w, uint32_t mask)
{
	struct gpu_block *b = w->b;

	FOR_LANES(lane, mask)
	{
		struct gpu_lane *l = &w->lane[lane];

		for (struct gpu_frame *fr = l->fr, *up; fr; fr = up) {
			up = fr->up;
			gpu_frame_leave(b->sm, fr, 1u << lane);
		}
		l->state = LANE_DONE;
		l->fr = NULL;
	}
	w->alive &= ~mask;
	b->alive -= (uint32_t)__builtin_popcount(mask);
}

/* Copies one value between caller and callee. */
static void pass(struct gpu_warp *w, struct gpu_frame *caller, struct gpu_frame *callee, const struct gpu_operand *o,
		 const struct gpu_sym *s, unsigned int lane, bool back)
{
	struct gpu_operand reg = { .kind = O_REG, .reg = (int32_t)s->off, .size = gpu_type_size[s->type] };
	uint8_t *mine = callee->pmem + (size_t)lane * callee->f->pmem + s->off;

	if (s->space == SP_REG) {
		if (back)
			gpu_write(caller, lane, o, gpu_read(w, callee, lane, &reg));
		else
			gpu_write(callee, lane, &reg, gpu_read(w, caller, lane, o));
	} else if (o->kind == O_SYM && o->sym->space == SP_PARAM && !o->sym->func) {
		uint8_t *his = (uint8_t *)(uintptr_t)gpu_sym_addr(w, caller, lane, o->sym);
		size_t n = s->size < o->sym->size ? s->size : o->sym->size;

		memcpy(back ? his : mine, back ? mine : his, n);
	} else if (back) {
		uint64_t v = 0;

		memcpy(&v, mine, s->size < 8 ? s->size : 8);
		gpu_write(caller, lane, o, v);
	} else {
		uint64_t v = gpu_read(w, caller, lane, o);

		memcpy(mine, &v, s->size < 8 ? s->size : 8);
	}
}

/*
 * The lanes of mask that call the same function as the first one make the call; the others come back
 * to the instruction.
 */
static void call(struct gpu_warp *w, struct gpu_frame *fr, uint32_t pc, const struct gpu_insn *in, uint32_t mask)
{
	const struct gpu_operand *target = &in->ops[in->nrets];
	struct gpu_func *f = NULL;
	uint32_t same = 0;
	struct gpu_frame *callee;
	uint64_t at = gpu_read(w, fr, (unsigned int)__builtin_ctz(mask), target);

	for (uint32_t i = 0; i < fr->f->mod->nr_funcs; i++)
		if ((uintptr_t)fr->f->mod->funcs[i] == at)
			f = fr->f->mod->funcs[i];
	if (!f || !f->body || f->entry || f->nr_params != in->nargs || f->nr_rets < in->nrets) {
		gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN, "there is no such function, or it has other parameters");
		return;
	}
	if (fr->local + fr->f->local + f->local + 64 > GPU_STACK || fr->depth > 512) {
		gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_ADDR, "the stack of a thread is full");
		return;
	}
	FOR_LANES(lane, mask)
	same |= (uint32_t)(gpu_read(w, fr, lane, target) == at) << lane;
	callee = gpu_frame_new(w->b->sm, f, fr, same);
	callee->ret_pc = pc + 1;
	callee->call = in;
	FOR_LANES(lane, same)
	{
		for (uint32_t i = 0; i < in->nargs; i++)
			pass(w, fr, callee, &target[1 + i], f->params[i], lane, false);
		w->lane[lane].fr = callee;
		w->lane[lane].pc = 0;
	}
}

static void ret(struct gpu_warp *w, struct gpu_frame *fr, uint32_t mask)
{
	struct gpu_frame *up = fr->up;

	if (!up) {
		leave(w, mask);
		return;
	}
	FOR_LANES(lane, mask)
	{
		for (uint32_t i = 0; i < fr->call->nrets; i++)
			pass(w, up, fr, &fr->call->ops[i], fr->f->rets[i], lane, true);
		w->lane[lane].fr = up;
		w->lane[lane].pc = fr->ret_pc;
	}
	gpu_frame_leave(w->b->sm, fr, mask);
}

static bool is_collective(const struct gpu_insn *in)
{
	switch (in->op) {
	case OP_shfl:
	case OP_vote:
	case OP_match:
	case OP_redux:
	case OP_elect:
	case OP_ldmatrix:
	case OP_stmatrix:
		return true;
	case OP_bar:
	case OP_barrier:
		return has(in, M_warp);
	default:
		return false;
	}
}

/*
 * The lanes that a lane waits for: all living lanes in instructions of whole warps, and those at this
 * instruction in old ones without .sync.
 */
static uint32_t members(const struct gpu_warp *w, const struct gpu_frame *fr, unsigned int lane,
			const struct gpu_insn *in, uint32_t here)
{
	if (!has(in, M_sync))
		return here;
	if (in->op == OP_ldmatrix || in->op == OP_stmatrix)
		return w->alive;
	return (uint32_t)gpu_read(w, fr, lane, &in->ops[in->nops - 1]);
}

/* Lanes that wait for each other at an instruction continue when all are there. */
static bool meet(struct gpu_warp *w)
{
	uint32_t waiting = in_state(w, LANE_AT_SYNC), seen = 0;
	bool any = false;

	FOR_LANES(lane, waiting)
	{
		const struct gpu_lane *l = &w->lane[lane];
		const struct gpu_insn *in = &l->fr->f->code[l->pc];
		uint32_t set = 0;

		if (seen >> lane & 1)
			continue;
		for (unsigned int i = 0; i < GPU_LANES; i++)
			if (waiting >> i & 1 && &w->lane[i].fr->f->code[w->lane[i].pc] == in &&
			    w->lane[i].members == l->members)
				set |= 1u << i;
		seen |= set;
		if (l->members & w->alive & ~set)
			continue;
		gpu_collective(w, in, set);
		for (unsigned int i = 0; i < GPU_LANES; i++)
			if (set >> i & 1) {
				w->lane[i].state = LANE_RUNS;
				w->lane[i].pc++;
			}
		any = true;
	}
	return any;
}

/* Returns true if all lanes in `here` have executed it together. Else they wait. */
static bool collective(struct gpu_warp *w, struct gpu_frame *fr, uint32_t pc, const struct gpu_insn *in, uint32_t here)
{
	uint32_t first = 0;
	bool same = true, begun = false;

	if (!in->nops && in->op != OP_bar && in->op != OP_barrier) {
		gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN, "operands are missing");
		return false;
	}
	FOR_LANES(lane, here)
	{
		uint32_t m = members(w, fr, lane, in, here);

		if (!(m >> lane & 1)) {
			gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN, "lane %u is not in its own mask 0x%x", lane, m);
			return false;
		}
		same &= !begun || m == first;
		first = m;
		begun = true;
		w->lane[lane].members = m;
	}
	if (same && (first & w->alive) == here) {
		gpu_collective(w, in, here);
		return true;
	}
	FOR_LANES(lane, here)
	{
		w->lane[lane].state = LANE_AT_SYNC;
		w->lane[lane].pc = pc;
	}
	return false;
}

/* bar{.cta}.sync a{, b}; .arrive a, b; .red.op d, a{, b}, p; barrier likewise. */
static void barrier(struct gpu_warp *w, struct gpu_frame *fr, uint32_t pc, const struct gpu_insn *in, uint32_t mask)
{
	unsigned int first = has(in, M_red) ? 1 : 0, n = in->nops - first - (first ? 1u : 0);
	struct gpu_barrier *bar;
	uint64_t id = 0, threads = 0;
	unsigned int lead = (unsigned int)__builtin_ctz(mask);

	if (in->nops > first)
		id = gpu_read(w, fr, lead, &in->ops[first]);
	if (n > 1)
		threads = gpu_read(w, fr, lead, &in->ops[first + 1]);
	if (id > 15 || in->nops < first * 2) {
		gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN, "barrier %llu", (unsigned long long)id);
		return;
	}
	bar = &w->b->bar[id];
	bar->expected = (uint32_t)threads;
	if (has(in, M_arrive)) {
		bar->arrived += (uint32_t)__builtin_popcount(mask);
		set_pc(w, mask, pc + 1);
		return;
	}
	FOR_LANES(lane, mask)
	{
		struct gpu_lane *l = &w->lane[lane];

		l->state = LANE_AT_BARRIER;
		l->barrier = (uint8_t)id;
		l->pc = pc;
		l->value = first ? gpu_read(w, fr, lane, &in->ops[in->nops - 1]) & 1 : 0;
	}
	bar->waiting += (uint32_t)__builtin_popcount(mask);
}

static void branch(struct gpu_warp *w, const struct gpu_insn *in, struct gpu_frame *fr, uint32_t mask)
{
	if (in->op == OP_bra) {
		set_pc(w, mask, (uint32_t)in->ops[0].imm);
		return;
	}
	FOR_LANES(lane, mask)
	{
		uint64_t i = gpu_read(w, fr, lane, &in->ops[0]);

		if (in->nops < 2 || in->ops[1].kind != O_VEC || i >= in->ops[1].n) {
			gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN, "a branch to nowhere");
			return;
		}
		w->lane[lane].pc = (uint32_t)in->ops[1].vec[i].imm;
	}
}

/*
 * Executes control flow for the lanes of group whose guard is true (mask); the others go to the next
 * instruction. Returns true if the group is still together, at *pc.
 */
static bool control(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, uint32_t group, uint32_t mask,
		    uint32_t *pc)
{
	if (!mask) {
		++*pc;
		return true;
	}
	if (in->op == OP_bra && mask == group) {
		*pc = (uint32_t)in->ops[0].imm;
		return true;
	}
	set_pc(w, group & ~mask, *pc + 1);
	if (is_collective(in)) {
		if (!collective(w, fr, *pc, in, mask))
			return false;
		set_pc(w, mask, *pc + 1);
		++*pc;
		return mask == group;
	}
	switch (in->op) {
	case OP_bra:
	case OP_brx:
		branch(w, in, fr, mask);
		break;
	case OP_call:
		set_pc(w, mask, *pc);
		call(w, fr, *pc, in, mask);
		break;
	case OP_ret:
		ret(w, fr, mask);
		break;
	case OP_exit:
		leave(w, mask);
		break;
	default:
		barrier(w, fr, *pc, in, mask);
		break;
	}
	return false;
}

static bool is_control(const struct gpu_insn *in)
{
	switch (in->op) {
	case OP_bra:
	case OP_brx:
	case OP_call:
	case OP_ret:
	case OP_exit:
	case OP_bar:
	case OP_barrier:
		return true;
	default:
		return is_collective(in);
	}
}

static uint32_t guarded(const struct gpu_frame *fr, const struct gpu_insn *in, uint32_t group)
{
	uint32_t ret = 0;

	if (in->pred < 0)
		return group;
	FOR_LANES(lane, group)
	ret |= (uint32_t)((fr->regs[(size_t)in->pred * GPU_LANES + lane] & 1) != in->pred_neg) << lane;
	return ret;
}

/* Returns true for instructions of a thread that waits for another one. */
static bool polls(const struct gpu_insn *in)
{
	if (in->func->is_rec)
		return false;
	if (in->op == OP_atom)
		return in->sub == M_cas || in->sub == M_exch;
	return in->op == OP_ld && (has(in, M_volatile) || has(in, M_relaxed) || has(in, M_acquire));
}

/*
 * Runs a group until it diverges, waits, reaches the place of another group (limit), or has had its
 * turn.
 */
static uint32_t run_group(struct gpu_warp *w, struct gpu_frame *fr, uint32_t group, uint32_t pc, uint32_t limit,
			  uint32_t budget)
{
	struct gpu_sm *sm = w->b->sm;
	uint32_t n = 0;

	while (n < budget && pc < limit && !gpu_faulted(sm)) {
		const struct gpu_insn *in = &fr->f->code[pc];
		uint32_t mask = guarded(fr, in, group);

		n++;
		sm->lane_insns += (unsigned int)__builtin_popcount(mask);
		if (is_control(in)) {
			if (!control(w, fr, in, group, mask, &pc))
				return n;
			continue;
		}
		if (mask)
			gpu_execute(w, fr, in, mask);
		pc++;
		w->polls += polls(in);
		if (sm->yield || w->polls >= POLLS)
			break;
	}
	set_pc(w, group, pc);
	return n;
}

bool gpu_run_warp(struct gpu_warp *w, uint32_t budget)
{
	bool ran = false;

	while (budget && !gpu_faulted(w->b->sm)) {
		uint32_t runs = in_state(w, LANE_RUNS), group = 0, limit = UINT32_MAX, n;
		const struct gpu_lane *first = NULL;

		if (!runs) {
			if (meet(w)) {
				ran = true;
				continue;
			}
			break;
		}
		if (!(runs & ~w->later))
			w->later = 0;
		FOR_LANES(lane, runs & ~w->later)
		if (!first || before(&w->lane[lane], first))
			first = &w->lane[lane];
		FOR_LANES(lane, runs)
		{
			const struct gpu_lane *l = &w->lane[lane];
			uint32_t at = place_in(l, first->fr);

			if (l->fr == first->fr && l->pc == first->pc)
				group |= 1u << lane;
			else if (at > first->pc && at < limit)
				limit = at;
		}
		n = run_group(w, first->fr, group, first->pc, limit, budget);
		/* A lane that spins until another lane of its warp acts must not run for ever. */
		w->streak = group == w->last ? w->streak + n : n;
		if (w->streak > TURN || w->polls >= POLLS) {
			w->later = group;
			w->streak = w->polls = 0;
		} else if (group != w->last) {
			w->polls = 0;
		}
		w->last = group;
		budget -= n < budget ? n : budget;
		ran = true;
		if (w->b->sm->yield)
			break;
		/* Other lanes may have waited for these. */
		if (in_state(w, LANE_AT_SYNC))
			meet(w);
	}
	return ran;
}
