// SPDX-License-Identifier: GPL-2.0-only
/*
 * tables.c: the caller's stack by unwind tables, with the same result as the tracer, which unwinds a
 * copy of the stack (lib/unwind, daemon/io/unwind). Neither allocates nor locks, and makes no system
 * call on the thread's own stack (walk.c).
 *
 * Nearly all code has simple rules: the caller's frame begins a fixed distance above the stack pointer
 * or the frame pointer, the return address is directly below that beginning, and the frame pointer is
 * unchanged or saved in the frame. Such a rule fits one word, and is cached. A stack with a frame of
 * another kind, for instance a signal frame, is unwound by lib/unwind, which reads the tables each
 * time.
 *
 * The dynamic linker finds the object of an address: _dl_find_object() of glibc 2.35 was made for
 * unwinders and works without locks, in signal handlers too.
 */
#include "lib/advisor/advisor_int.h"

#include <dlfcn.h>

#include "lib/unwind/mapped.h"

#if defined(__x86_64__) && defined(DLFO_STRUCT_HAS_EH_DBASE)

#define ROWS	 8192u /* a power of two */
#define ROW_BUSY 1u    /* a key that is being written; 0: the row is empty */
#define OWN_MAX	 4u    /* the most frames of this library between its caller and the walk */

/* A reader that finds the same key before and after reading the word has read a consistent row. */
struct ttmon_kept_row {
	_Atomic uint64_t key;
	_Atomic uint64_t simple;
};

struct here {
	const struct ttmon_rows *rows;
	uint64_t gen;
	uintptr_t lo, hi; /* bounds of the stack that may be read */
	bool sure;	  /* all of it can be read; otherwise each word has to be checked */
};

int ttmon_rows_init(struct ttmon_rows *r)
{
	r->v = calloc(ROWS, sizeof(*r->v));
	return r->v ? 0 : -ENOMEM;
}

void ttmon_rows_fini(struct ttmon_rows *r)
{
	free(r->v);
	r->v = NULL;
}

/* ---- rules ---- */

static int read_row(uint64_t pc, struct ttmon_uw_row *row, struct ttmon_uw_exprs *exprs)
{
	struct dl_find_object o;

	if (_dl_find_object((void *)(uintptr_t)pc, &o))
		return -ENOENT;
	return ttmon_uw_mapped_row((uint64_t)(uintptr_t)o.dlfo_eh_frame, (uint64_t)(uintptr_t)o.dlfo_map_start,
				   (uint64_t)(uintptr_t)o.dlfo_map_end, pc, row, exprs);
}

/* A simple rule; distances are in words of 8 bytes. 0: the rule is not simple. */
#define SIMPLE_KNOWN (1ull << 63)
#define SIMPLE_LAST  (1ull << 62) /* the function has no caller */
#define SIMPLE_BY_FP (1ull << 61) /* ttmon_uw_by_frame_pointer() */
/* the caller's frame begins above the frame pointer; otherwise above the stack pointer */
#define SIMPLE_RBP  (1ull << 60)
#define SAVED_SHIFT 32 /* distance of the saved frame pointer below the beginning; 0: it is unchanged */
#define SAVED_MAX   0xffffffu
#define UP_MAX	    UINT32_MAX /* largest distance up to the beginning */

static uint64_t simplify(const struct ttmon_uw_row *row)
{
	int64_t up = row->cfa_off, saved = -(int64_t)row->value[TTMON_UW_RBP];
	uint64_t s = SIMPLE_KNOWN;

	if (row->has_expr || row->signal || row->rule[TTMON_UW_RSP] != TTMON_UW_SAME)
		return 0;
	if (row->rule[TTMON_UW_RA] == TTMON_UW_UNDEF)
		return s | SIMPLE_LAST;
	if ((row->cfa_reg != TTMON_UW_RSP && row->cfa_reg != TTMON_UW_RBP) || up <= 0 || up % 8 ||
	    row->rule[TTMON_UW_RA] != TTMON_UW_OFFSET || row->value[TTMON_UW_RA] != -8)
		return 0;
	if (row->rule[TTMON_UW_RBP] == TTMON_UW_OFFSET) {
		if (saved <= 0 || saved % 8 || saved / 8 > SAVED_MAX)
			return 0;
		s |= (uint64_t)saved / 8 << SAVED_SHIFT;
	} else if (row->rule[TTMON_UW_RBP] != TTMON_UW_SAME) {
		return 0;
	}
	s |= row->cfa_reg == TTMON_UW_RBP ? SIMPLE_RBP : 0;
	s |= ttmon_uw_by_frame_pointer(row) ? SIMPLE_BY_FP : 0;
	return s | (uint64_t)up / 8;
}

/*
 * Returns the simple rule of the instruction that contains the byte at pc; 0: the rule is not simple,
 * or there is none.
 */
static uint64_t simple_at(const struct here *h, uint64_t pc)
{
	uint64_t key = ttmon_mix64(pc ^ h->gen << 48), was, simple;
	struct ttmon_kept_row *k = &h->rows->v[key & (ROWS - 1)];
	struct ttmon_uw_exprs exprs;
	struct ttmon_uw_row row;

	key += key <= ROW_BUSY ? 2 : 0;
	was = atomic_load_explicit(&k->key, memory_order_acquire);
	if (was == key) {
		simple = atomic_load_explicit(&k->simple, memory_order_acquire);
		if (atomic_load_explicit(&k->key, memory_order_relaxed) == key)
			return simple;
	}
	simple = read_row(pc, &row, &exprs) ? 0 : simplify(&row);
	/* Another thread is writing here: this rule is computed again the next time. */
	if (was == ROW_BUSY || !atomic_compare_exchange_strong(&k->key, &was, ROW_BUSY))
		return simple;
	atomic_store_explicit(&k->simple, simple, memory_order_release);
	atomic_store_explicit(&k->key, key, memory_order_release);
	return simple;
}

static enum ttmon_uw_found find(void *ctx, uint64_t pc, struct ttmon_uw_at *at)
{
	int err = read_row(pc, &at->room, &at->exprs);

	(void)ctx;
	at->row = &at->room;
	return err == -ENOENT ? TTMON_UW_NO_ROW : err ? TTMON_UW_BAD_ROW : TTMON_UW_ROW;
}

static bool is_code(void *ctx, uint64_t pc)
{
	struct dl_find_object o;

	(void)ctx;
	return !_dl_find_object((void *)(uintptr_t)pc, &o);
}

/* ---- the stack ---- */

/* Reads frames of other functions, which the address sanitizer would report. */
__attribute__((no_sanitize_address)) static bool read_stack(void *ctx, uint64_t addr, uint64_t *ret)
{
	const struct here *h = ctx;

	if (addr < h->lo || addr > h->hi - sizeof(*ret) || (!h->sure && !ttmon_stack_there(addr)))
		return false;
	memcpy(ret, (const void *)(uintptr_t)addr, sizeof(*ret));
	return true;
}

/* ---- walks ---- */

/*
 * As ttmon_uw_walk() for stacks on which all rules are simple. False: some are not, or the end of the
 * stack needs a closer look.
 */
static bool walk_simple(struct here *h, const uintptr_t *frame, unsigned int max, struct ttmon_uw_result *ret)
{
	uint64_t fp = frame[0], pc = frame[1], sp = (uint64_t)(uintptr_t)(frame + 2);

	ret->by_fp = 0;
	ret->n = 0;
	ret->guessed = false;
	ret->end_object = 0;
	for (;;) {
		uint64_t s = simple_at(h, pc - 1), up;

		if (!s)
			return false;
		if (ret->n == max) {
			ret->end = TTMON_STACK_DEPTH;
			return true;
		}
		ret->pc[ret->n++] = pc;
		ret->end = TTMON_STACK_COMPLETE;
		if (s & SIMPLE_LAST)
			return true;
		up = (s & SIMPLE_RBP ? fp : sp) + 8 * (s & UP_MAX);
		if (up <= sp)
			return false;
		sp = up;
		if (s >> SAVED_SHIFT & SAVED_MAX && !read_stack(h, sp - 8 * (s >> SAVED_SHIFT & SAVED_MAX), &fp))
			return false;
		if (!read_stack(h, sp - 8, &pc))
			return false;
		if (!pc)
			return true;
		ret->by_fp |= (uint64_t) !!(s & SIMPLE_BY_FP) << (ret->n - 1);
	}
}

/* Takes the registers at this place, including the instruction pointer. */
static inline __attribute__((always_inline)) void own_registers(struct ttmon_uw_regs *regs)
{
	uint64_t *r = regs->r;

	__asm__ volatile("mov %%rbx, 24(%0)\n\t"
			 "mov %%rbp, 48(%0)\n\t"
			 "mov %%rsp, 56(%0)\n\t"
			 "mov %%r12, 96(%0)\n\t"
			 "mov %%r13, 104(%0)\n\t"
			 "mov %%r14, 112(%0)\n\t"
			 "mov %%r15, 120(%0)\n\t"
			 "lea 0(%%rip), %%rax\n\t"
			 "mov %%rax, 128(%0)"
			 :
			 : "r"(r)
			 : "rax", "memory");
	regs->known = TTMON_UW_KEPT | 1u << TTMON_UW_RA;
}
_Static_assert(TTMON_UW_RBX == 3 && TTMON_UW_RBP == 6 && TTMON_UW_RSP == 7 && TTMON_UW_R12 == 12 && TTMON_UW_RA == 16,
	       "the places of registers");

/* Returns false if the walk does not reach the frame record. */
static __attribute__((noinline)) bool walk_all(struct here *h, unsigned int max, struct ttmon_uw_result *ret)
{
	const struct ttmon_uw_ops ops = { .find = find, .is_code = is_code, .read = read_stack, .ctx = h };
	struct ttmon_uw_regs regs = { .known = 0 };
	uintptr_t caller_sp = h->lo;
	bool ok = true;

	own_registers(&regs);
	h->lo = regs.r[TTMON_UW_RSP];
	for (unsigned int own = 0; ok && regs.r[TTMON_UW_RSP] != caller_sp; own++)
		ok = own < OWN_MAX && ttmon_uw_up(&ops, &regs, own == 0);
	if (ok)
		ttmon_uw_walk(&ops, &regs, false, max, ret);
	return ok;
}

bool ttmon_walk_tables(const struct ttmon_rows *rows, uint64_t gen, const void *frame, struct ttmon_uw_result *ret)
{
	struct here h = { .rows = rows, .gen = gen, .lo = (uintptr_t)frame + 2 * sizeof(uintptr_t) };
	uintptr_t top = ttmon_stack_top((uintptr_t)frame);

	h.sure = top != 0;
	/* Read no more than the tracer copies. */
	h.hi = h.lo + TTMON_STACK_BYTES;
	if (h.sure && h.hi > top)
		h.hi = top;
	return walk_simple(&h, frame, TTMON_WALK_MAX + 2, ret) || walk_all(&h, TTMON_WALK_MAX + 2, ret);
}

#else

/* arm64 has frame pointers; an older glibc has no _dl_find_object(). */
int ttmon_rows_init(struct ttmon_rows *r)
{
	r->v = NULL;
	return 0;
}

void ttmon_rows_fini(struct ttmon_rows *r)
{
	(void)r;
}

bool ttmon_walk_tables(const struct ttmon_rows *rows, uint64_t gen, const void *frame, struct ttmon_uw_result *ret)
{
	(void)rows;
	(void)gen;
	(void)frame;
	(void)ret;
	return false;
}

#endif
