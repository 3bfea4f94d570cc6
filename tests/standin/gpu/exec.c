// SPDX-License-Identifier: GPL-2.0-only
/* exec.c: the operands and results of an instruction, and the frames that hold them. */
#include "exec.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void gpu_fault(struct gpu_sm *sm, const struct gpu_insn *in, int result, const char *fmt, ...)
{
	struct gpu_launch *l = sm->l;
	unsigned int none = 0;
	va_list ap;
	size_t n = 0;

	if (!atomic_compare_exchange_strong(&sm->g->fault, &none, (unsigned int)result))
		return;
	if (in)
		n = (size_t)snprintf(l->why, sizeof(l->why), "%s line %u: %s: ", in->func->name, in->line, in->text);
	if (n >= sizeof(l->why))
		n = sizeof(l->why) - 1;
	va_start(ap, fmt);
	vsnprintf(l->why + n, sizeof(l->why) - n, fmt, ap);
	va_end(ap);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint32_t tid(const struct gpu_warp *w, unsigned int lane, unsigned int axis)
{
	const uint32_t *n = w->b->sm->l->block, t = w->index * GPU_LANES + lane;

	return axis == 0 ? t % n[0] : axis == 1 ? t / n[0] % n[1] : t / n[0] / n[1];
}

uint64_t gpu_special(const struct gpu_warp *w, unsigned int lane, unsigned int sr)
{
	const struct gpu_block *b = w->b;
	const struct gpu_launch *l = b->sm->l;

	switch (sr) {
	case SR_TID:
	case SR_TID_Y:
	case SR_TID_Z:
		return tid(w, lane, sr - SR_TID);
	case SR_NTID:
	case SR_NTID_Y:
	case SR_NTID_Z:
		return l->block[sr - SR_NTID];
	case SR_CTAID:
	case SR_CTAID_Y:
	case SR_CTAID_Z:
		return b->cta[sr - SR_CTAID];
	case SR_NCTAID:
	case SR_NCTAID_Y:
	case SR_NCTAID_Z:
		return l->grid[sr - SR_NCTAID];
	case SR_LANEID:
		return lane;
	case SR_WARPID: /* the slot, which differs from the warp's number in its block */
		return (w->index + 5 * b->cta[0]) % 64;
	case SR_NWARPID:
		return 64;
	case SR_SMID:
		return b->sm->id;
	case SR_NSMID:
		return l->sms;
	case SR_GRIDID:
		return l->gridid;
	case SR_CLOCK:
		return (uint32_t)now();
	case SR_CLOCK_HI:
		return now() >> 32;
	case SR_CLOCK64:
	case SR_GLOBALTIMER:
		return now();
	case SR_GLOBALTIMER_LO:
		return (uint32_t)now();
	case SR_GLOBALTIMER_HI:
		return now() >> 32;
	case SR_LM_EQ:
		return 1u << lane;
	case SR_LM_LE:
		return 0xffffffffu >> (31 - lane);
	case SR_LM_LT:
		return (1u << lane) - 1;
	case SR_LM_GE:
		return 0xffffffffu << lane;
	case SR_LM_GT:
		return ~(0xffffffffu >> (31 - lane));
	case SR_ONE:
		return 1;
	case SR_DYN_SHARED:
		return l->dyn_shared;
	case SR_TOTAL_SHARED:
		return b->shared_size;
	default:
		return 0;
	}
}

uint64_t gpu_sym_addr(const struct gpu_warp *w, const struct gpu_frame *fr, unsigned int lane, const struct gpu_sym *s)
{
	if (s->func)
		return (uintptr_t)s->func;
	switch (s->space) {
	case SP_SHARED:
		if (s->dynamic)
			return w->b->dyn;
		return s->of_entry ? (fr->f->mod->shared + 15) / 16 * 16 + s->off : s->off;
	case SP_LOCAL:
		return fr->local + s->off;
	case SP_PARAM:
		if (s->of_entry)
			return (uintptr_t)w->b->sm->l->params + s->off;
		return (uintptr_t)fr->pmem + (uint64_t)lane * fr->f->pmem + s->off;
	default:
		return s->off;
	}
}

struct gpu_frame *gpu_frame_new(struct gpu_sm *sm, struct gpu_func *f, struct gpu_frame *up, uint32_t lanes)
{
	struct gpu_frame *fr = sm->free[f->index];

	if (fr) {
		sm->free[f->index] = fr->next_free;
	} else {
		fr = calloc(1, sizeof(*fr));
		if (fr)
			fr->regs = calloc((size_t)f->nr_regs * GPU_LANES + 1, sizeof(*fr->regs));
		if (fr)
			fr->pmem = calloc(GPU_LANES, f->pmem + 1u);
		if (!fr || !fr->regs || !fr->pmem)
			abort();
		fr->f = f;
	}
	fr->up = up;
	fr->lanes = lanes;
	fr->depth = up ? up->depth + 1 : 0;
	fr->local = up ? (up->local + up->f->local + 15) / 16 * 16 : 0;
	return fr;
}

/* The lanes leave this frame and all frames above it that they are no longer in. */
void gpu_frame_leave(struct gpu_sm *sm, struct gpu_frame *fr, uint32_t lanes)
{
	fr->lanes &= ~lanes;
	if (!fr->lanes) {
		fr->next_free = sm->free[fr->f->index];
		sm->free[fr->f->index] = fr;
	}
}

static void wrong(struct gpu_warp *w, const struct gpu_insn *in)
{
	gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN, "this GPU does not know that instruction");
}

/* Copies {a, b} from a register, or a register from {a, b}. */
static void move_vector(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, unsigned int lane)
{
	const struct gpu_operand *d = &in->ops[0], *s = &in->ops[1];
	unsigned int whole = gpu_type_size[in->type[0]],
		     n = d->kind == O_VEC   ? d->n
			 : s->kind == O_VEC ? s->n
					    : 2,
		     each = whole / n;
	uint8_t buf[16] = { 0 };

	if (s->kind == O_VEC) {
		for (unsigned int i = 0; i < n; i++) {
			uint64_t v = gpu_read(w, fr, lane, &s->vec[i]);

			memcpy(buf + i * each, &v, each);
		}
	} else {
		uint64_t v = gpu_read(w, fr, lane, s);

		memcpy(buf, &v, 8);
		if (whole == 16)
			memcpy(buf + 8, &fr->regs[(size_t)(s->reg + 1) * GPU_LANES + lane], 8);
	}
	if (d->kind == O_VEC) {
		for (unsigned int i = 0; i < n; i++) {
			uint64_t v = 0;

			memcpy(&v, buf + i * each, each);
			gpu_write(fr, lane, &d->vec[i], v);
		}
	} else {
		uint64_t v;

		memcpy(&v, buf, 8);
		gpu_write(fr, lane, d, v);
		if (whole == 16)
			memcpy(&fr->regs[(size_t)(d->reg + 1) * GPU_LANES + lane], buf + 8, 8);
	}
}

static bool is_vector_move(const struct gpu_insn *in)
{
	return in->op == OP_mov && in->nops == 2 &&
	       (in->ops[0].kind == O_VEC || in->ops[1].kind == O_VEC || in->type[0] == T_B128);
}

static bool to_space(const struct gpu_insn *in)
{
	return in->nmods && in->mods[0] == M_to;
}

/*
 * Converts between generic addresses of the windows and offsets in them; device memory has only one
 * address.
 */
static uint64_t convert(const struct gpu_grid *g, const struct gpu_insn *in, uint64_t a)
{
	uint64_t base = in->space == SP_SHARED ? g->shared_base : in->space == SP_LOCAL ? g->local_base : 0;

	return to_space(in) ? a - base : a + base;
}

static bool in_space(const struct gpu_grid *g, const struct gpu_insn *in, uint64_t a)
{
	bool shared = a - g->shared_base < GPU_WINDOW, local = a - g->local_base < GPU_WINDOW;

	return in->space == SP_SHARED	? shared
	       : in->space == SP_LOCAL	? local
	       : in->space == SP_GLOBAL ? !shared && !local
					: false;
}

static enum gpu_type result_type(const struct gpu_insn *in)
{
	if (in->op == OP_popc || in->op == OP_clz || in->op == OP_bfind)
		return T_U32;
	for (unsigned int i = 0; i < in->nmods; i++)
		if (in->mods[i] == M_wide)
			return gpu_is_signed(in->type[0]) ? (in->type[0] == T_S32 ? T_S64 : T_S32)
							  : (in->type[0] == T_U32 ? T_U64 : T_U32);
	return in->op == OP_setp || in->op == OP_testp ? T_PRED : in->type[0];
}

static void compute(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, uint32_t mask)
{
	const struct gpu_operand *d = &in->ops[0];
	enum gpu_type t = result_type(in);
	bool pair = d->kind == O_VEC;

	if (in->nops < 2 || in->nops > 5) {
		wrong(w, in);
		return;
	}
	FOR_LANES(lane, mask)
	{
		uint64_t s[4] = { 0 }, r[2] = { 0 };

		for (unsigned int i = 1; i < in->nops; i++)
			s[i - 1] = gpu_read(w, fr, lane, &in->ops[i]);
		if (!gpu_alu(in, s, r, &w->lane[lane].carry)) {
			wrong(w, in);
			return;
		}
		if (pair) {
			gpu_write(fr, lane, &d->vec[0], gpu_fit(t, r[0]));
			gpu_write(fr, lane, &d->vec[1], gpu_fit(t, r[1]));
		} else {
			gpu_write(fr, lane, d, gpu_fit(t, r[0]));
		}
	}
}

static void doze(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, uint32_t mask)
{
	uint64_t most = 0;
	struct timespec ts = { 0 };

	FOR_LANES(lane, mask)
	{
		uint64_t t = gpu_read(w, fr, lane, &in->ops[0]);

		most = t > most ? t : most;
	}
	ts.tv_nsec = (long)(most > 1000000 ? 1000000 : most);
	nanosleep(&ts, NULL);
	w->b->sm->yield = true;
}

void gpu_execute(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, uint32_t mask)
{
	switch (in->op) {
	case OP_ld:
	case OP_ldu:
	case OP_st:
	case OP_atom:
	case OP_red:
	case OP_cp:
	case OP_prefetch:
	case OP_prefetchu:
		gpu_memory(w, fr, in, mask);
		return;
	case OP_membar:
	case OP_fence:
		atomic_thread_fence(memory_order_seq_cst);
		return;
	case OP_activemask:
		FOR_LANES(lane, mask)
		gpu_write(fr, lane, &in->ops[0], mask);
		return;
	case OP_cvta:
		FOR_LANES(lane, mask)
		gpu_write(fr, lane, &in->ops[0], convert(w->b->sm->g, in, gpu_read(w, fr, lane, &in->ops[1])));
		return;
	case OP_isspacep:
		FOR_LANES(lane, mask)
		gpu_write(fr, lane, &in->ops[0], in_space(w->b->sm->g, in, gpu_read(w, fr, lane, &in->ops[1])));
		return;
	case OP_createpolicy:
		FOR_LANES(lane, mask)
		gpu_write(fr, lane, &in->ops[0], 0);
		return;
	case OP_nanosleep:
		doze(w, fr, in, mask);
		return;
	case OP_discard:
	case OP_griddepcontrol:
	case OP_pmevent:
		return;
	case OP_trap:
	case OP_brkpt:
		gpu_fault(w->b->sm, in, GPU_E_LAUNCH_FAILED, "the kernel stopped itself");
		return;
	case OP_UNKNOWN:
		wrong(w, in);
		return;
	default:
		break;
	}
	if (is_vector_move(in)) {
		FOR_LANES(lane, mask)
		move_vector(w, fr, in, lane);
		return;
	}
	compute(w, fr, in, mask);
}
