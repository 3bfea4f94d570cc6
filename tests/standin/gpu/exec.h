/* SPDX-License-Identifier: GPL-2.0-only */
/* exec.h: the state of a launch. Inside the interpreter. */
#ifndef STANDIN_GPU_EXEC_H
#define STANDIN_GPU_EXEC_H

#include "gpu.h"

#include <stdatomic.h>

/* A call that lanes made together. They share it, wherever each of them is in it. */
struct gpu_frame {
	struct gpu_frame *up, *next_free;
	struct gpu_func *f;
	uint64_t *regs; /* [register][lane] */
	uint8_t *pmem;	/* [lane][f->pmem] */
	uint32_t lanes, depth, local, ret_pc;
	const struct gpu_insn *call;
};

enum gpu_lane_state { LANE_RUNS, LANE_AT_BARRIER, LANE_AT_SYNC, LANE_DONE };

struct gpu_lane {
	struct gpu_frame *fr;
	uint32_t pc;
	uint32_t members; /* LANE_AT_SYNC: the lanes that it waits for */
	uint8_t state, barrier, carry;
	uint64_t value; /* its value for a bar.red */
};

struct gpu_block;

struct gpu_warp {
	struct gpu_block *b;
	uint32_t index, alive, later, last; /* last: the group that ran last, for `streak` instructions so far */
	uint32_t streak, polls;
	struct gpu_lane lane[GPU_LANES];
};

struct gpu_barrier {
	uint32_t waiting, arrived, expected;
};

struct gpu_block {
	struct gpu_block *next;
	struct gpu_sm *sm;
	uint32_t cta[3], threads, alive, nr_warps;
	uint32_t shared_size, dyn;
	uint8_t *shared;
	char *local;
	struct gpu_barrier bar[16];
	struct gpu_warp warp[];
};

struct gpu_grid {
	struct gpu_launch *l;
	atomic_uint next, fault;
	uint32_t blocks, resident;
	uint64_t shared_base, local_base;
	atomic_ullong lane_insns;
};

struct gpu_sm {
	struct gpu_grid *g;
	struct gpu_launch *l;
	uint32_t id;
	struct gpu_frame **free; /* by function */
	struct gpu_range cache;
	uint64_t generation, lane_insns;
	bool yield; /* the warp sleeps: other warps run */
};

/* Makes the launch fail; only the first error of a launch counts. */
void gpu_fault(struct gpu_sm *sm, const struct gpu_insn *in, int result, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static inline bool gpu_faulted(const struct gpu_sm *sm)
{
	return atomic_load_explicit(&sm->g->fault, memory_order_relaxed);
}

uint64_t gpu_special(const struct gpu_warp *w, unsigned int lane, unsigned int sr);
uint64_t gpu_sym_addr(const struct gpu_warp *w, const struct gpu_frame *fr, unsigned int lane, const struct gpu_sym *s);

static inline uint64_t gpu_read(const struct gpu_warp *w, const struct gpu_frame *fr, unsigned int lane,
				const struct gpu_operand *o)
{
	switch (o->kind) {
	case O_REG:
		return o->neg ? !fr->regs[(size_t)o->reg * GPU_LANES + lane]
			      : fr->regs[(size_t)o->reg * GPU_LANES + lane];
	case O_IMM:
		return o->imm;
	case O_SPECIAL:
		return gpu_special(w, lane, o->special);
	case O_SYM:
		return gpu_sym_addr(w, fr, lane, o->sym) + o->imm;
	case O_ADDR:
		if (o->sym)
			return gpu_sym_addr(w, fr, lane, o->sym) + o->imm;
		return (o->reg >= 0 ? fr->regs[(size_t)o->reg * GPU_LANES + lane] : 0) + o->imm;
	default:
		return 0;
	}
}

static inline void gpu_write(struct gpu_frame *fr, unsigned int lane, const struct gpu_operand *o, uint64_t v)
{
	if (o->kind == O_REG)
		fr->regs[(size_t)o->reg * GPU_LANES + lane] = o->size == 4   ? (uint32_t)v
							      : o->size == 2 ? (uint16_t)v
							      : o->size == 1 ? (uint8_t)v
									     : v;
}

#define FOR_LANES(lane, mask) \
	for (uint32_t m_ = (mask), lane; m_ && (lane = (uint32_t)__builtin_ctz(m_), true); m_ &= m_ - 1)

/* Returns v as a register of this type holds it. */
static inline uint64_t gpu_fit(enum gpu_type t, uint64_t v)
{
	switch (gpu_type_size[t]) {
	case 1:
		return t == T_PRED ? v & 1 : gpu_is_signed(t) ? (uint64_t)(int8_t)v : (uint8_t)v;
	case 2:
		return gpu_is_signed(t) ? (uint64_t)(int16_t)v : (uint16_t)v;
	case 4:
		return gpu_is_signed(t) ? (uint64_t)(int32_t)v : (uint32_t)v;
	default:
		return v;
	}
}

/*
 * Executes one lane of an arithmetic instruction: s are its sources, d its results. Returns false if
 * it is not supported.
 */
bool gpu_alu(const struct gpu_insn *in, const uint64_t *s, uint64_t *d, uint8_t *carry);
bool gpu_alu_float(const struct gpu_insn *in, const uint64_t *s, uint64_t *d);
bool gpu_cvt(const struct gpu_insn *in, const uint64_t *s, uint64_t *d);
bool gpu_compare(unsigned int cmp, enum gpu_type t, uint64_t a, uint64_t b);
/* Returns the new value that an atomic operation makes of old. */
bool gpu_combine(unsigned int sub, enum gpu_type t, uint64_t old, uint64_t b, uint64_t c, uint64_t *ret);
float gpu_from_half(uint16_t h, bool bf);
uint16_t gpu_to_half(double d, bool bf, unsigned int rnd);

/* Returns the host address of the bytes; NULL: the launch has failed. */
void *gpu_resolve(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, unsigned int lane,
		  unsigned int space, uint64_t addr, unsigned int size);
void gpu_memory(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, uint32_t mask);
void gpu_trace(struct gpu_warp *w, const struct gpu_insn *in, uint32_t mask, unsigned int operand,
	       unsigned int op_index);
uint64_t gpu_load_n(const void *p, unsigned int size);
void gpu_store_n(void *p, unsigned int size, uint64_t v);
/* Executes an instruction of several lanes at once, each in its own frame. */
void gpu_collective(struct gpu_warp *w, const struct gpu_insn *in, uint32_t set);
/* Executes an instruction that moves, computes or accesses memory. */
void gpu_execute(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, uint32_t mask);
struct gpu_frame *gpu_frame_new(struct gpu_sm *sm, struct gpu_func *f, struct gpu_frame *up, uint32_t lanes);
void gpu_frame_leave(struct gpu_sm *sm, struct gpu_frame *fr, uint32_t lanes);
/* Runs up to budget instructions. Returns false if none of its lanes can run. */
bool gpu_run_warp(struct gpu_warp *w, uint32_t budget);

#endif
