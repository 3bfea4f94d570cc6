/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu.h: a stand-in GPU. It takes PTX text and executes it: warps of 32 lanes run in lockstep, with a
 * program counter for each lane. The group of lanes whose place in the program is lowest runs first
 * and meets the others where they wait (so lanes that diverged come together at the end of an if or a
 * loop). Blocks run on a few host threads, the SMs. It is slow, and reports what it does not support.
 * Its purpose is to run instrumented kernels on a machine without a GPU.
 *
 *	lex.c parse.c insn.c	PTX text -> struct gpu_module
 *	exec.c sched.c alu.c flt.c ldst.c warp.c	a launch
 *	mem.c			which addresses there are
 *	drv*.c			libcuda.so.1 on top of it
 *
 * As on a real GPU, the host cannot read a device address of memory that only the GPU has. Generic
 * addresses of shared and local memory are in two windows.
 */
#ifndef STANDIN_GPU_H
#define STANDIN_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GPU_LANES  32
#define GPU_WINDOW (16u << 20)
#define GPU_STACK  (32u << 10) /* local memory of a thread */
#define GPU_SHARED (228u << 10)

enum gpu_type {
	T_NONE,
	T_U8,
	T_U16,
	T_U32,
	T_U64,
	T_S8,
	T_S16,
	T_S32,
	T_S64,
	T_B8,
	T_B16,
	T_B32,
	T_B64,
	T_B128,
	T_F16,
	T_F16X2,
	T_BF16,
	T_BF16X2,
	T_F32,
	T_F64,
	T_PRED,
	T_MAX
};
extern const uint8_t gpu_type_size[T_MAX];
static inline bool gpu_is_signed(enum gpu_type t)
{
	return t >= T_S8 && t <= T_S64;
}
static inline bool gpu_is_float(enum gpu_type t)
{
	return t >= T_F16 && t <= T_F64;
}

enum gpu_space { SP_GENERIC, SP_GLOBAL, SP_SHARED, SP_LOCAL, SP_PARAM, SP_CONST, SP_REG };

enum gpu_op {
	OP_UNKNOWN,
#define X(name) OP_##name,
#include "ops.inc"
#undef X
	OP_MAX
};

enum gpu_mod {
	M_NONE,
#define X(name) M_##name,
#include "mods.inc"
#undef X
	M_MAX
};

enum gpu_special {
	SR_NONE,
	SR_TID,
	SR_TID_Y,
	SR_TID_Z,
	SR_NTID,
	SR_NTID_Y,
	SR_NTID_Z,
	SR_CTAID,
	SR_CTAID_Y,
	SR_CTAID_Z,
	SR_NCTAID,
	SR_NCTAID_Y,
	SR_NCTAID_Z,
	SR_LANEID,
	SR_WARPID,
	SR_NWARPID,
	SR_SMID,
	SR_NSMID,
	SR_GRIDID,
	SR_CLOCK,
	SR_CLOCK_HI,
	SR_CLOCK64,
	SR_GLOBALTIMER,
	SR_GLOBALTIMER_LO,
	SR_GLOBALTIMER_HI,
	SR_LM_EQ,
	SR_LM_LE,
	SR_LM_LT,
	SR_LM_GE,
	SR_LM_GT,
	SR_ZERO, /* clusters are not simulated: each block is alone in its own */
	SR_ONE,
	SR_DYN_SHARED,
	SR_TOTAL_SHARED,
};

struct gpu_func;

struct gpu_sym {
	char *name;
	enum gpu_space space;
	enum gpu_type type;
	uint64_t off;  /* offset in its space; of a variable: its device address */
	uint64_t size; /* bytes */
	uint32_t align, count;
	bool dynamic;	       /* extern .shared: after the static ones */
	bool of_entry;	       /* a parameter of a kernel, or shared memory that a kernel declares */
	bool external, slot2;  /* declared only; a register of 128 bits */
	uint32_t unit;	       /* of a linked image: the only text that has this name, from 1; 0: all */
	struct gpu_func *func; /* it is a function */
	struct gpu_func *owner;
	struct gpu_sym *next;
};

enum gpu_operand_kind { O_NONE, O_REG, O_IMM, O_SPECIAL, O_SYM, O_ADDR, O_VEC, O_LABEL, O_SINK };

struct gpu_operand {
	uint8_t kind, special, n; /* n: elements of a vector */
	bool neg;		  /* !%p, -%r */
	bool dbl;		  /* an immediate written as a double */
	uint8_t size;		  /* O_REG: bytes of the register */
	int32_t reg;		  /* O_REG; O_ADDR: base, -1: none */
	uint64_t imm;		  /* O_IMM; O_ADDR, O_SYM: the addend; O_LABEL: the place */
	struct gpu_sym *sym;
	struct gpu_operand *vec;
	char *label; /* until it is resolved */
};

struct gpu_insn {
	uint8_t op, type[3], ntypes, space, space2, vec, nops, nmods, rnd;
	uint8_t cmp, boolop, sub; /* sub: the operation of an atomic, a vote, a shuffle */
	uint8_t mods[14];
	bool pred_neg, sat, ftz, negb;
	int32_t pred; /* register; -1: none */
	uint32_t line;
	uint32_t nrets, nargs; /* call: ops are rets, then the function, then args */
	char *text;
	struct gpu_operand *ops;
	struct gpu_func *func;
};

struct gpu_func {
	char *name;
	bool entry, body;
	struct gpu_sym **params, **rets;
	uint32_t nr_params, nr_rets;
	uint32_t nr_regs;     /* slots of 8 bytes */
	uint32_t param_bytes; /* of an entry's block */
	uint32_t pmem, local,
		shared; /* bytes: parameter memory and local memory of a frame, shared memory that it declares */
	uint32_t static_shared; /* with the module's */
	uint32_t maxntid, index;
	struct gpu_insn *code;
	uint32_t nr_code;
	struct gpu_module *mod;
	bool is_rec; /* a recorder's function: not traced */
	bool weak, called;
};

struct gpu_module {
	struct gpu_func **funcs;
	uint32_t nr_funcs, target, shared;
	struct gpu_sym *syms;
	uint64_t data, data_size; /* device memory of its variables */
	uint32_t version;
	char *error; /* one line */
};

/*
 * Parses text, which has a NUL at len. Returns NULL if there is no memory; else `error` shows whether
 * the module is usable. Variables are placed and initialised. Several texts one after the other, each
 * from its .version on, are linked: they share names that are .visible or .weak.
 */
struct gpu_module *gpu_parse(const char *text, size_t len);
/* Only checks that the text can be parsed: what it declares may be defined in another text. */
struct gpu_module *gpu_parse_part(const char *text, size_t len);
void gpu_module_free(struct gpu_module *m);
struct gpu_func *gpu_find(struct gpu_module *m, const char *name);
struct gpu_sym *gpu_find_var(struct gpu_module *m, const char *name);
const char *gpu_decode(struct gpu_insn *in);

/* ---- memory ---- */

enum gpu_mem_kind { MEM_DEVICE, MEM_HOST, MEM_REGISTERED, MEM_MANAGED };
struct gpu_range {
	uint64_t dev, size;
	char *host;
	enum gpu_mem_kind kind;
	unsigned int flags;
	void *owner; /* the context */
};
uint64_t gpu_shared_base(void), gpu_local_base(void);
/*
 * Returns a new piece of device memory (zeroed); 0: there is none left. Addresses are aligned to 512.
 */
uint64_t gpu_mem_alloc(uint64_t size, void *owner);
/* Maps host memory to the device, at the same address or at a new one. */
uint64_t gpu_mem_map(void *host, uint64_t size, enum gpu_mem_kind kind, unsigned int flags, bool same, void *owner);
bool gpu_mem_find(uint64_t dev, struct gpu_range *ret);
bool gpu_mem_find_host(const void *host, struct gpu_range *ret);
/* Removes the range that begins at dev; device memory is freed. */
bool gpu_mem_free(uint64_t dev, struct gpu_range *was);
void gpu_mem_free_owner(void *owner);
uint64_t gpu_mem_generation(void);
/*
 * Returns the host address of [dev, dev + n); NULL: there is no such memory. An unknown host pointer
 * is returned unchanged (for copies only).
 */
void *gpu_mem_host(uint64_t dev, uint64_t n);
uint64_t gpu_mem_used(void);

/* ---- a launch ---- */

struct gpu_access {
	const struct gpu_insn *in;
	uint32_t mask;
	uint64_t addr[GPU_LANES]; /* as the instruction sees it */
	unsigned int operand;	  /* cp.async: 0 destination, 1 source */
	uint32_t cta[3], warp, sm;
};

struct gpu_launch {
	struct gpu_func *func;
	uint32_t grid[3], block[3], dyn_shared;
	uint8_t *params;
	uint64_t gridid;
	unsigned int sms, device;
	bool cooperative;
	void (*trace)(void *ctx, const struct gpu_access *a); /* called by all SMs; not for functions of recorders */
	void *trace_ctx;
	/* Finds memory that this launch cannot reach; NULL: all memory is reachable. */
	bool (*foreign)(const struct gpu_launch *l, const struct gpu_range *r);
	/* out */
	int result; /* CUresult */
	char why[200];
	uint64_t lane_insns;
};
void gpu_run(struct gpu_launch *l);

#define GPU_E_INVALID_PTX   218
#define GPU_E_ILLEGAL_ADDR  700
#define GPU_E_RESOURCES	    701
#define GPU_E_TIMEOUT	    702
#define GPU_E_ASSERT	    710
#define GPU_E_ILLEGAL_INSN  715
#define GPU_E_MISALIGNED    716
#define GPU_E_LAUNCH_FAILED 719

#endif
