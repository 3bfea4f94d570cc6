// SPDX-License-Identifier: GPL-2.0-only
/* unwind.c: see unwind.h. */
#include "lib/unwind/unwind.h"

#include "lib/base/hmap.h"

struct cached {
	uint64_t off;
	uint32_t object; /* 0: empty */
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

struct unwinding {
	struct ttmon_uw *u;
	const struct ttmon_stack_copy *s;
	const struct ttmon_uw_files *files;
};

static bool read_copy(void *ctx, uint64_t addr, uint64_t *ret)
{
	const struct ttmon_stack_copy *s = ((const struct unwinding *)ctx)->s;
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
 * Undoes the effect of a return probe, which replaces a return address with the kernel's trampoline.
 * The copy includes the kernel's list of the original addresses.
 */
static uint64_t repaired(void *ctx, uint64_t pc, uint64_t slot)
{
	const struct ttmon_stack_copy *s = ((const struct unwinding *)ctx)->s;

	if (!s->trampoline || pc != s->trampoline)
		return pc;
	for (uint32_t i = 0; i < s->nret && i < TTMON_STACK_RETURNS; i++)
		if (s->ret[i].sp == slot && s->ret[i].ra != s->trampoline)
			return s->ret[i].ra;
	return pc;
}

static bool is_code(void *ctx, uint64_t pc)
{
	const struct unwinding *w = ctx;
	uint32_t object;
	uint64_t off;

	return w->files->locate(w->files->ctx, pc, &object, &off) == TTMON_UW_IN_OBJECT;
}

static enum ttmon_uw_found find(void *ctx, uint64_t pc, struct ttmon_uw_at *at)
{
	const struct unwinding *w = ctx;
	enum ttmon_uw_place place;
	struct ttmon_uw_table *t;
	struct cached *c;
	uint64_t off = 0;
	int err;

	place = w->files->locate(w->files->ctx, pc, &at->object, &off);
	if (place != TTMON_UW_IN_OBJECT)
		return place == TTMON_UW_NOWHERE ? TTMON_UW_NO_CODE : TTMON_UW_NO_ROW;
	c = &w->u->rows[ttmon_mix64(off ^ (uint64_t)at->object << 44) & (w->u->n - 1)];
	if (c->object == at->object && c->off == off) {
		at->row = &c->row;
		return TTMON_UW_ROW;
	}
	t = w->files->table(w->files->ctx, at->object);
	if (!t)
		return TTMON_UW_NO_ROW;
	err = ttmon_uw_table_row(t, off, &at->room, &at->exprs);
	if (err)
		return err == -ENOENT ? TTMON_UW_NO_ROW : TTMON_UW_BAD_ROW;
	at->row = &at->room;
	/* Rows with expressions are rare and not cached, because the bytes of the expressions do not stay. */
	if (!at->room.has_expr)
		*c = (struct cached){ .off = off, .object = at->object, .row = at->room };
	return TTMON_UW_ROW;
}

void ttmon_uw_unwind(struct ttmon_uw *u, const struct ttmon_stack_copy *s, const struct ttmon_uw_files *files,
		     unsigned int max, struct ttmon_uw_result *ret)
{
	struct unwinding w = { .u = u, .s = s, .files = files };
	const struct ttmon_uw_ops ops = {
		.find = find, .is_code = is_code, .read = read_copy, .repaired = repaired, .ctx = &w
	};
	struct ttmon_uw_regs regs = { .known = 0 };
	uint64_t *r = regs.r;

	r[TTMON_UW_RBX] = s->bx;
	r[TTMON_UW_RBP] = s->bp;
	r[TTMON_UW_RSP] = s->sp;
	r[TTMON_UW_R12] = s->r12;
	r[TTMON_UW_R12 + 1] = s->r13;
	r[TTMON_UW_R12 + 2] = s->r14;
	r[TTMON_UW_R12 + 3] = s->r15;
	r[TTMON_UW_RA] = s->ip;
	regs.known = TTMON_UW_KEPT | 1u << TTMON_UW_RA;
	ttmon_uw_walk(&ops, &regs, s->flags & TTMON_STACK_EXACT, max, ret);
}
