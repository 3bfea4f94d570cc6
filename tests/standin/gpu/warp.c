// SPDX-License-Identifier: GPL-2.0-only
/*
 * warp.c: instructions in which the lanes of a warp exchange values. set: the participating lanes,
 * each in its own frame.
 */
#include "exec.h"

#include <string.h>

#define NOBODY 0xdeadbeefu /* the value that a lane gets from one that does not participate: arbitrary */

static uint64_t in_of(const struct gpu_warp *w, unsigned int lane, const struct gpu_operand *o)
{
	return gpu_read(w, w->lane[lane].fr, lane, o);
}

/* d or d|p */
static void out(struct gpu_warp *w, unsigned int lane, const struct gpu_operand *o, uint64_t v, uint64_t p)
{
	struct gpu_frame *fr = w->lane[lane].fr;

	if (o->kind == O_VEC) {
		gpu_write(fr, lane, &o->vec[0], v);
		gpu_write(fr, lane, &o->vec[1], p);
	} else {
		gpu_write(fr, lane, o, v);
	}
}

static void shuffle(struct gpu_warp *w, const struct gpu_insn *in, uint32_t set)
{
	uint64_t a[GPU_LANES] = { 0 };

	FOR_LANES(lane, set)
	a[lane] = (uint32_t)in_of(w, lane, &in->ops[1]);
	FOR_LANES(lane, set)
	{
		uint32_t b = (uint32_t)in_of(w, lane, &in->ops[2]) & 31, c = (uint32_t)in_of(w, lane, &in->ops[3]),
			 seg = c >> 8 & 31, clamp = c & 31;
		uint32_t most = (lane & seg) | (clamp & ~seg), least = lane & seg;
		int j = 0;
		bool p;

		switch (in->sub) {
		case M_up:
			j = (int)lane - (int)b;
			p = j >= (int)most;
			break;
		case M_down:
			j = (int)(lane + b);
			p = j <= (int)most;
			break;
		case M_bfly:
			j = (int)(lane ^ b);
			p = j <= (int)most;
			break;
		default:
			j = (int)(least | (b & ~seg));
			p = j <= (int)most;
			break;
		}
		if (!p)
			j = (int)lane;
		out(w, lane, &in->ops[0], set >> j & 1 ? a[j] : NOBODY, p);
	}
}

static void vote(struct gpu_warp *w, const struct gpu_insn *in, uint32_t set)
{
	uint32_t yes = 0;
	uint64_t r;

	FOR_LANES(lane, set)
	yes |= (uint32_t)(in_of(w, lane, &in->ops[1]) & 1) << lane;
	switch (in->sub) {
	case M_all:
		r = yes == set;
		break;
	case M_any:
		r = yes != 0;
		break;
	case M_uni:
		r = !yes || yes == set;
		break;
	default:
		r = yes;
		break;
	}
	FOR_LANES(lane, set)
	out(w, lane, &in->ops[0], r, 0);
}

static void match(struct gpu_warp *w, const struct gpu_insn *in, uint32_t set)
{
	uint64_t a[GPU_LANES] = { 0 };

	FOR_LANES(lane, set)
	a[lane] = gpu_fit(in->type[0], in_of(w, lane, &in->ops[1]));
	FOR_LANES(lane, set)
	{
		uint32_t same = 0;

		for (unsigned int i = 0; i < GPU_LANES; i++)
			same |= (uint32_t)((set >> i & 1) && a[i] == a[lane]) << i;
		if (in->sub == M_all)
			out(w, lane, &in->ops[0], same == set ? set : 0, same == set);
		else
			out(w, lane, &in->ops[0], same, 0);
	}
}

static void reduce(struct gpu_warp *w, const struct gpu_insn *in, uint32_t set)
{
	uint64_t r = 0;
	bool first = true;

	FOR_LANES(lane, set)
	{
		uint64_t v = gpu_fit(in->type[0], in_of(w, lane, &in->ops[1]));

		if (!first && !gpu_combine(in->sub, in->type[0], r, v, 0, &r)) {
			gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN, "this GPU does not know that instruction");
			return;
		}
		if (first)
			r = v;
		first = false;
	}
	FOR_LANES(lane, set)
	out(w, lane, &in->ops[0], r, 0);
}

/*
 * Rows of 16 bytes, whose addresses are given by lanes 0..7 for the first matrix and so on; lane t has
 * the elements 2t % 8 and the next of row t / 4.
 */
static void matrix(struct gpu_warp *w, const struct gpu_insn *in, uint32_t set)
{
	bool trans = memchr(in->mods, M_trans, in->nmods) != NULL, st = in->op == OP_stmatrix;
	unsigned int n = memchr(in->mods, M_x4, in->nmods)   ? 4
			 : memchr(in->mods, M_x2, in->nmods) ? 2
							     : 1,
		     at = st ? 0 : 1;
	const struct gpu_operand *regs = &in->ops[!at];
	uint16_t *row[32];

	if (in->type[0] != T_B16 || regs->kind != O_VEC || regs->n != n || set != UINT32_MAX) {
		gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN,
			  "this GPU cannot execute that, or not all lanes of the warp are here");
		return;
	}
	gpu_trace(w, in, n == 4 ? UINT32_MAX : (1u << (8 * n)) - 1, 0, at);
	for (unsigned int i = 0; i < 8 * n; i++) {
		row[i] = gpu_resolve(w, w->lane[i].fr, in, i, SP_SHARED, in_of(w, i, &in->ops[at]), 16);
		if (!row[i])
			return;
	}
	for (unsigned int m = 0; m < n; m++)
		for (unsigned int t = 0; t < GPU_LANES; t++) {
			uint64_t v = st ? in_of(w, t, &regs->vec[m]) : 0;

			for (unsigned int k = 0; k < 2; k++) {
				unsigned int r = trans ? 2 * (t % 4) + k : t / 4, c = trans ? t / 4 : 2 * (t % 4) + k;

				if (st)
					gpu_store_n(&row[8 * m + r][c], 2, v >> (16 * k));
				else
					v |= gpu_load_n(&row[8 * m + r][c], 2) << (16 * k);
			}
			if (!st)
				gpu_write(w->lane[t].fr, t, &regs->vec[m], v);
		}
}

void gpu_collective(struct gpu_warp *w, const struct gpu_insn *in, uint32_t set)
{
	static const uint8_t operands[OP_MAX] = {
		[OP_shfl] = 4, [OP_vote] = 2, [OP_match] = 2, [OP_redux] = 2, [OP_ldmatrix] = 2, [OP_stmatrix] = 2
	};

	if (in->nops < operands[in->op] || (in->op == OP_elect && !in->nops)) {
		gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN, "operands are missing");
		return;
	}
	switch (in->op) {
	case OP_shfl:
		shuffle(w, in, set);
		break;
	case OP_vote:
		vote(w, in, set);
		break;
	case OP_match:
		match(w, in, set);
		break;
	case OP_redux:
		reduce(w, in, set);
		break;
	case OP_elect:
		FOR_LANES(lane, set)
		out(w, lane, &in->ops[0], (uint32_t)__builtin_ctz(set), lane == (uint32_t)__builtin_ctz(set));
		break;
	case OP_ldmatrix:
	case OP_stmatrix:
		matrix(w, in, set);
		break;
	default: /* bar.warp.sync: they have met */
		break;
	}
}
