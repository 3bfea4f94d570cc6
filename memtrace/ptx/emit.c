// SPDX-License-Identifier: GPL-2.0-only
/*
 * emit.c: makes the text of a copy: the original text with insertions at the offsets that body.c
 * found. The additional registers and parameters are declared in a scope of their own at each place,
 * so that their names are always free.
 *
 *	%__ttmon_c	the control block, for the whole function
 *	%__ttmon_l	the launch; in a kernel loaded where it is needed
 */
#include "memtrace/ptx/ptx_int.h"
#include "lib/base/util.h"

#define TOK(t) (int)(t).len, (t).s

struct out {
	FILE *f;
	const struct ttmon_ptx_mod *m;
	const struct ttmon_ptx_fn *fn;
	const struct ttmon_ptx_opts *opts;
	size_t at; /* what is before has been written */
};

static void upto(struct out *o, size_t offset)
{
	fwrite(o->m->text + o->at, 1, offset - o->at, o->f);
	o->at = offset;
}

static void head(struct out *o)
{
	const struct ttmon_ptx_fn *fn = o->fn;

	o->at = fn->head;
	if (fn->entry)
		fputs(fn->weak ? ".weak " : ".visible ", o->f);
	upto(o, (size_t)(fn->name.s - o->m->text));
	fputs(TTMON_PTX_PREFIX, o->f);
	upto(o, fn->params ? fn->params : (size_t)(fn->name.s - o->m->text) + fn->name.len);
	fprintf(o->f, "%s.param .u64 __ttmon_ctl, .param .u64 __ttmon_launch%s",
		!fn->params	? "("
		: fn->nr_params ? ", "
				: "",
		fn->params ? "" : ")");
	upto(o, fn->body);
}

static void prologue(struct out *o)
{
	upto(o, o->fn->body + 1);
	fputs("\n.reg .b64 %__ttmon_c, %__ttmon_l;\nld.param.u64 %__ttmon_c, [__ttmon_ctl];\n", o->f);
	if (!o->fn->entry) {
		fputs("ld.param.u64 %__ttmon_l, [__ttmon_launch];\n", o->f);
		return;
	}
	fputs("{\n.param .b64 __ttmon_0;\n.param .b64 __ttmon_1;\nst.param.b64 [__ttmon_0], %__ttmon_c;\n"
	      "call.uni (__ttmon_1), __ttmon$block, (__ttmon_0);\nld.param.b64 %__ttmon_c, [__ttmon_1];\n}\n",
	      o->f);
}

static void launch(struct out *o)
{
	if (o->fn->entry)
		fputs("ld.param.u64 %__ttmon_l, [__ttmon_launch];\n", o->f);
}

/* %__ttmon_a: the address as the instruction will have it. */
static void address(struct out *o, const struct ttmon_ptx_access *a)
{
	const char *sign = a->negative ? "-" : "";

	if (a->base_is_32) {
		if (a->imm.len)
			fprintf(o->f, "add.s32 %%__ttmon_x, %.*s, %s%.*s;\ncvt.u64.u32 %%__ttmon_a, %%__ttmon_x;\n",
				TOK(a->base), sign, TOK(a->imm));
		else
			fprintf(o->f, "cvt.u64.u32 %%__ttmon_a, %.*s;\n", TOK(a->base));
	} else if (a->imm.len && !a->base_is_num) {
		fprintf(o->f, "mov.u64 %%__ttmon_a, %.*s;\nadd.s64 %%__ttmon_a, %%__ttmon_a, %s%.*s;\n", TOK(a->base),
			sign, TOK(a->imm));
	} else {
		fprintf(o->f, "mov.u64 %%__ttmon_a, %.*s;\n", TOK(a->base));
	}
}

/* %__ttmon_q: 1 where this lane accesses, by a value and not by a branch. */
static void predicate(struct out *o, const struct ttmon_ptx_access *a)
{
	if (a->guard.len)
		fprintf(o->f, "selp.b32 %%__ttmon_q, %s, %.*s;\n", a->guard_not ? "0, 1" : "1, 0", TOK(a->guard));
	else
		fputs("mov.u32 %__ttmon_q, 1;\n", o->f);
	if (a->limit < TTMON_MT_LANES)
		fprintf(o->f,
			"mov.u32 %%__ttmon_x, %%laneid;\nsetp.lt.u32 %%__ttmon_p, %%__ttmon_x, %u;\nselp.b32 "
			"%%__ttmon_q, %%__ttmon_q, 0, %%__ttmon_p;\n",
			a->limit);
	if (!a->skip.len)
		return;
	if (a->skip_is_pred)
		fprintf(o->f, "selp.b32 %%__ttmon_q, 0, %%__ttmon_q, %.*s;\n", TOK(a->skip));
	else
		fprintf(o->f,
			"mov.u32 %%__ttmon_x, %.*s;\nsetp.ne.u32 %%__ttmon_p, %%__ttmon_x, 0;\nselp.b32 %%__ttmon_q, "
			"%%__ttmon_q, 0, %%__ttmon_p;\n",
			TOK(a->skip));
}

static void call_recorder(struct out *o, const struct ttmon_ptx_access *a, uint32_t site)
{
	bool generic = a->site.space == TTMON_MT_GENERIC;
	uint32_t how = (uint32_t)ttmon_mt_reads(a->site.kind) | (uint32_t)ttmon_mt_writes(a->site.kind) << 1;

	fputs("{\n.reg .b64 %__ttmon_a, %__ttmon_h;\n.reg .b32 %__ttmon_q, %__ttmon_w, %__ttmon_x;\n.reg .pred "
	      "%__ttmon_p;\n"
	      ".param .b64 __ttmon_0;\n.param .b32 __ttmon_1;\n.param .b32 __ttmon_2;\n.param .b64 __ttmon_3;\n.param "
	      ".b64 __ttmon_4;\n",
	      o->f);
	address(o, a);
	predicate(o, a);
	fprintf(o->f, "mov.u32 %%__ttmon_w, 0x%x;\n", site | (generic ? (o->opts->spaces >> 1 & 7) << 27 : 0));
	if (o->opts->aggregate)
		fprintf(o->f, "mov.u64 %%__ttmon_h, 0x%x;\n", a->site.width | (uint32_t)a->site.space << 8 | how << 10);
	else
		launch(o);
	fprintf(o->f,
		"st.param.b64 [__ttmon_0], %%__ttmon_a;\nst.param.b32 [__ttmon_1], %%__ttmon_w;\nst.param.b32 "
		"[__ttmon_2], %%__ttmon_q;\n"
		"st.param.b64 [__ttmon_3], %%__ttmon_c;\nst.param.b64 [__ttmon_4], %%__ttmon_%s;\n"
		"call.uni __ttmon$%s, (__ttmon_0, __ttmon_1, __ttmon_2, __ttmon_3, __ttmon_4);\n}\n",
		o->opts->aggregate ? "h" : "l",
		generic		     ? "gen"
		: o->opts->aggregate ? "agg"
				     : "rec");
}

/* A function that is copied: its copy, with two arguments more. */
static void call_copy(struct out *o, const struct ttmon_ptx_call *c, size_t nr)
{
	char args[80];

	upto(o, c->at);
	launch(o);
	fprintf(o->f,
		".param .b64 __ttmon_c%zu;\n.param .b64 __ttmon_l%zu;\nst.param.b64 [__ttmon_c%zu], "
		"%%__ttmon_c;\nst.param.b64 [__ttmon_l%zu], %%__ttmon_l;\n",
		nr, nr, nr, nr);
	snprintf(args, sizeof(args), "__ttmon_c%zu, __ttmon_l%zu", nr, nr);
	upto(o, c->name);
	fputs(TTMON_PTX_PREFIX, o->f);
	if (c->args) {
		upto(o, c->args);
		fprintf(o->f, "%s%s", c->empty ? "" : ", ", args);
	} else {
		upto(o, c->name_end);
		fprintf(o->f, ", (%s)", args);
	}
}

void ttmon_ptx_emit(FILE *f, const struct ttmon_ptx_mod *m, const struct ttmon_ptx_fn *fn,
		    const struct ttmon_ptx_opts *opts, bool declare)
{
	struct out o = { .f = f, .m = m, .fn = fn, .opts = opts };
	size_t c = fn->call, a = fn->access;

	head(&o);
	if (declare) {
		fputs(";\n", f);
		return;
	}
	prologue(&o);
	while (c < fn->call + fn->nr_call || a < fn->access + fn->nr_access) {
		if (c == fn->call + fn->nr_call ||
		    (a < fn->access + fn->nr_access && m->access[a].at < m->calls[c].at)) {
			upto(&o, m->access[a].at);
			call_recorder(&o, &m->access[a], opts->first_site + m->access[a].number);
			a++;
		} else {
			if (m->fns[m->calls[c].fn].copied)
				call_copy(&o, &m->calls[c], c - fn->call);
			c++;
		}
	}
	upto(&o, fn->end);
	fputc('\n', f);
}
