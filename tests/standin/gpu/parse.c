// SPDX-License-Identifier: GPL-2.0-only
/* parse.c: parses a module: its variables and functions. It stops at the first error. */
#include "parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* All memory of a module comes from these. */
struct arena {
	struct arena *next;
	uint64_t data[];
};
struct full_module {
	struct gpu_module m;
	struct arena *arena;
};

static void *arena_get(struct gpu_module *m, size_t n)
{
	struct full_module *full = (struct full_module *)m;
	struct arena *a = calloc(1, sizeof(*a) + n + 8);

	if (!a)
		abort();
	a->next = full->arena;
	full->arena = a;
	return a->data;
}

void *gpu_get(struct gpu_parser *p, size_t n)
{
	return arena_get(p->m, n);
}

char *gpu_text(struct gpu_parser *p, const char *text, size_t len)
{
	char *ret = gpu_get(p, len + 1);

	memcpy(ret, text, len);
	return ret;
}

void gpu_fail(struct gpu_parser *p, const char *fmt, ...)
{
	char buf[400];
	va_list ap;
	int n = snprintf(buf, sizeof(buf), "line %u: ", p->lx.tok_line);

	va_start(ap, fmt);
	vsnprintf(buf + n, sizeof(buf) - (size_t)n, fmt, ap);
	va_end(ap);
	p->m->error = gpu_text(p, buf, strlen(buf));
	longjmp(p->fail, 1);
}

void gpu_need(struct gpu_parser *p, const char *text)
{
	if (!gpu_lex_take(&p->lx, text))
		gpu_fail(p, "\"%s\" was expected at \"%.*s\"", text, (int)(p->lx.len < 60 ? p->lx.len : 60),
			 p->lx.text);
}

/* The array is doubled when its size is a power of two from 16 on. */
void gpu_room(struct gpu_parser *p, void *array, uint32_t nr, size_t size)
{
	void **a = array, *fresh;

	if (*a && (nr < 16 || (nr & (nr - 1))))
		return;
	fresh = gpu_get(p, size * (nr < 16 ? 16 : 2 * (size_t)nr));
	if (*a)
		memcpy(fresh, *a, size * nr);
	*a = fresh;
}

uint64_t gpu_const(struct gpu_parser *p)
{
	bool neg = gpu_lex_take(&p->lx, "-");
	uint64_t v = p->lx.value;

	if (p->lx.kind != TK_INT)
		gpu_fail(p, "a number was expected at \"%.*s\"", (int)p->lx.len, p->lx.text);
	gpu_lex_next(&p->lx);
	return neg ? -v : v;
}

const struct gpu_local *gpu_local_find(struct gpu_parser *p, const char *name, size_t len, int32_t *reg)
{
	size_t stem = len;
	uint64_t nr = 0;

	while (stem && isdigit((unsigned char)name[stem - 1]))
		stem--;
	for (size_t i = stem; i < len && nr < 1u << 30; i++)
		nr = nr * 10 + (uint64_t)(name[i] - '0');
	for (uint32_t i = p->nr_locals; i-- > 0;) {
		const struct gpu_local *l = &p->locals[i];

		if (!l->count && l->len == len && !memcmp(l->name, name, len)) {
			*reg = l->reg;
			return l;
		}
		if (l->count && stem < len && l->len == stem && nr < l->count && !memcmp(l->name, name, stem)) {
			*reg = l->reg + (int32_t)(l->size == 16 ? 2 * nr : nr);
			return l;
		}
	}
	return NULL;
}

struct gpu_sym *gpu_sym_find(struct gpu_parser *p, const char *name, size_t len)
{
	for (struct gpu_sym *s = p->m->syms; s; s = s->next)
		if ((!s->unit || s->unit == p->unit) && strlen(s->name) == len && !memcmp(s->name, name, len))
			return s;
	return NULL;
}

/* Returns which texts have the name that is being declared. */
static uint32_t unit_of(const struct gpu_parser *p)
{
	return p->external || p->visible || p->weak ? 0 : p->unit;
}

struct gpu_sym *gpu_parse_var(struct gpu_parser *p, enum gpu_space space)
{
	struct gpu_sym *s = gpu_get(p, sizeof(*s));
	uint32_t vec = 1;

	s->space = space;
	s->count = 1;
	while (p->lx.kind == TK_WORD && p->lx.text[0] == '.') {
		if (gpu_lex_take(&p->lx, ".align")) {
			s->align = (uint32_t)gpu_const(p);
			continue;
		}
		if (gpu_lex_take(&p->lx, ".attribute")) {
			while (!gpu_lex_is(&p->lx, ")") && p->lx.kind != TK_END)
				gpu_lex_next(&p->lx);
			gpu_need(p, ")");
			continue;
		}
		if (gpu_lex_is(&p->lx, ".v2") || gpu_lex_is(&p->lx, ".v4"))
			vec = (uint32_t)(p->lx.text[2] - '0');
		else if (gpu_type_of(p->lx.text + 1, p->lx.len - 1))
			s->type = gpu_type_of(p->lx.text + 1, p->lx.len - 1);
		gpu_lex_next(&p->lx); /* .ptr .global and similar attributes are ignored */
	}
	if (!s->type || p->lx.kind != TK_WORD)
		gpu_fail(p, "a variable was expected at \"%.*s\"", (int)p->lx.len, p->lx.text);
	s->name = gpu_text(p, p->lx.text, p->lx.len);
	gpu_lex_next(&p->lx);
	s->size = gpu_type_size[s->type] * vec;
	if (!s->align)
		s->align = (uint32_t)s->size;
	if (!s->align || (s->align & (s->align - 1)))
		gpu_fail(p, "%s has an alignment that is no power of two", s->name);
	while (gpu_lex_take(&p->lx, "[")) {
		if (gpu_lex_is(&p->lx, "]"))
			s->count = 0;
		else
			s->count = (uint32_t)(s->count * gpu_const(p));
		gpu_need(p, "]");
	}
	s->size *= s->count;
	return s;
}

/* Initial values, one element after the other; missing ones are 0. */
static void initial(struct gpu_parser *p, struct gpu_sym *s, uint64_t base, uint64_t *at)
{
	uint32_t size = gpu_type_size[s->type];
	uint64_t v = 0;

	if (gpu_lex_take(&p->lx, "{")) {
		while (!gpu_lex_is(&p->lx, "}")) {
			initial(p, s, base, at);
			if (!gpu_lex_take(&p->lx, ","))
				break;
		}
		gpu_need(p, "}");
		return;
	}
	if (*at + size > s->size)
		gpu_fail(p, "%s has more initial values than elements", s->name);
	if (p->lx.kind == TK_WORD) {
		bool generic = gpu_lex_take(&p->lx, "generic");
		struct gpu_reloc *r;

		if (generic)
			gpu_need(p, "(");
		gpu_room(p, &p->relocs, p->nr_relocs, sizeof(*p->relocs));
		r = &p->relocs[p->nr_relocs++];
		*r = (struct gpu_reloc){ .at = base + *at,
					 .size = size,
					 .sym = gpu_sym_find(p, p->lx.text, p->lx.len) };
		if (!r->sym)
			gpu_fail(p, "%.*s is not declared", (int)p->lx.len, p->lx.text);
		gpu_lex_next(&p->lx);
		if (generic)
			gpu_need(p, ")");
		if (gpu_lex_take(&p->lx, "+"))
			r->add = gpu_const(p);
	} else if (p->lx.kind == TK_DOUBLE || (p->lx.kind == TK_PUNCT && gpu_lex_is(&p->lx, "-"))) {
		bool neg = gpu_lex_take(&p->lx, "-");

		v = p->lx.value;
		if (p->lx.kind == TK_DOUBLE && s->type == T_F32) {
			double d;
			float f;
			uint32_t bits;

			memcpy(&d, &v, 8);
			f = (float)(neg ? -d : d);
			memcpy(&bits, &f, 4);
			v = bits;
		} else if (neg) {
			v = p->lx.kind == TK_DOUBLE ? v ^ 1ull << 63 : -v;
		}
		gpu_lex_next(&p->lx);
	} else {
		v = gpu_const(p);
	}
	memcpy(p->data + base + *at, &v, size < 8 ? size : 8);
	*at += size;
}

static void module_var(struct gpu_parser *p, enum gpu_space space)
{
	do {
		struct gpu_sym *s = gpu_parse_var(p, space), *old = gpu_sym_find(p, s->name, strlen(s->name));

		/* Another text's. */
		if (old && !old->external && (p->external || p->weak)) {
			while (p->lx.kind != TK_END && !gpu_lex_is(&p->lx, ";"))
				gpu_lex_next(&p->lx);
			break;
		}
		if (old && !old->external)
			gpu_fail(p, "%s is there twice", s->name);
		s->unit = unit_of(p);
		if (s->size > 1u << 30)
			gpu_fail(p, "variable %s is too large", s->name);
		s->external = p->external && space != SP_SHARED;
		s->dynamic = space == SP_SHARED && (p->external || !s->count);
		if (space == SP_SHARED && !s->dynamic) {
			p->m->shared = (p->m->shared + s->align - 1) / s->align * s->align;
			s->off = p->m->shared;
			p->m->shared += (uint32_t)s->size;
		} else if (!s->dynamic && !p->external) {
			uint64_t at = 0;

			p->data_size = (p->data_size + s->align - 1) / s->align * s->align;
			s->off = p->data_size;
			p->data_size += s->size;
			if (p->data_size > p->data_cap) {
				char *fresh = gpu_get(p, p->data_cap = 2 * p->data_size + 64);

				if (p->data)
					memcpy(fresh, p->data, s->off);
				p->data = fresh;
			}
			if (gpu_lex_take(&p->lx, "=")) {
				if (!s->count)
					gpu_fail(p, "%s has no size", s->name);
				initial(p, s, s->off, &at);
			}
		}
		if (old) {
			s->next = old->next;
			*old = *s;
		} else {
			s->next = p->m->syms;
			p->m->syms = s;
		}
	} while (gpu_lex_take(&p->lx, ","));
	gpu_need(p, ";");
}

/*
 * ( .param .u64 a, ... ): the parameters of a kernel are one after the other in its block, those of a
 * function in the caller's frame.
 */
static void parameters(struct gpu_parser *p, struct gpu_func *f, struct gpu_sym ***list, uint32_t *nr)
{
	*list = NULL;
	*nr = 0;
	while (!gpu_lex_is(&p->lx, ")")) {
		bool reg = gpu_lex_take(&p->lx, ".reg");
		struct gpu_sym *s;

		if (!reg)
			gpu_need(p, ".param");
		s = gpu_parse_var(p, reg ? SP_REG : SP_PARAM);
		s->owner = f;
		s->of_entry = f->entry;
		if (s->size > 32764)
			gpu_fail(p, "parameter %s is too large", s->name);
		if (reg) {
			s->off = p->regs++;
			if (s->type == T_B128)
				gpu_fail(p, "a parameter of 128 bits in a register");
		} else {
			p->pmem = (p->pmem + s->align - 1) / s->align * s->align;
			s->off = p->pmem;
			p->pmem += (uint32_t)s->size;
		}
		gpu_room(p, list, *nr, sizeof(**list));
		(*list)[(*nr)++] = s;
		gpu_room(p, &p->locals, p->nr_locals, sizeof(*p->locals));
		p->locals[p->nr_locals++] = (struct gpu_local){ .name = s->name,
								.len = strlen(s->name),
								.reg = reg ? (int32_t)s->off : -1,
								.size = gpu_type_size[s->type],
								.sym = s };
		if (!gpu_lex_take(&p->lx, ","))
			break;
	}
	gpu_need(p, ")");
}

static struct gpu_func *function_of(struct gpu_parser *p, const char *name, size_t len)
{
	struct gpu_sym *s = gpu_sym_find(p, name, len);

	if (s && !s->func)
		gpu_fail(p, "%.*s is there twice", (int)len, name);
	if (s && !unit_of(p))
		s->unit = 0;
	if (s)
		return s->func;
	s = gpu_get(p, sizeof(*s));
	s->unit = unit_of(p);
	s->name = gpu_text(p, name, len);
	s->func = gpu_get(p, sizeof(*s->func));
	s->func->name = s->name;
	s->func->mod = p->m;
	s->func->index = p->m->nr_funcs;
	s->next = p->m->syms;
	p->m->syms = s;
	gpu_room(p, &p->m->funcs, p->m->nr_funcs, sizeof(*p->m->funcs));
	return p->m->funcs[p->m->nr_funcs++] = s->func;
}

static void function(struct gpu_parser *p, bool entry)
{
	struct gpu_sym **rets = NULL;
	struct gpu_func dummy = { .entry = entry }, *f;
	uint32_t nr_rets = 0;

	p->nr_locals = p->nr_labels = p->nr_refs = p->nr_scopes = p->regs = p->pmem = 0;
	if (!entry && gpu_lex_take(&p->lx, "("))
		parameters(p, &dummy, &rets, &nr_rets);
	if (p->lx.kind != TK_WORD)
		gpu_fail(p, "the name of a function was expected");
	f = function_of(p, p->lx.text, p->lx.len);
	gpu_lex_next(&p->lx);
	if (f->body && p->external) {
		/* It is declared, but already known: the declaration is read and ignored. */
		dummy = *f;
		dummy.body = false;
		f = &dummy;
	}
	/* Of several texts the last one counts. */
	if (p->weak && f->weak)
		f->body = false;
	f->weak = p->weak;
	f->entry = entry;
	f->rets = rets;
	f->nr_rets = nr_rets;
	f->params = NULL;
	f->nr_params = 0;
	for (uint32_t i = 0; i < nr_rets; i++)
		rets[i]->owner = f;
	if (gpu_lex_take(&p->lx, "("))
		parameters(p, f, &f->params, &f->nr_params);
	f->param_bytes = p->pmem;
	while (p->lx.kind == TK_WORD && p->lx.text[0] == '.') {
		bool max = gpu_lex_is(&p->lx, ".maxntid") || gpu_lex_is(&p->lx, ".reqntid");

		gpu_lex_next(&p->lx);
		if (max)
			f->maxntid = 1;
		while (p->lx.kind == TK_INT) {
			if (max)
				f->maxntid *= (uint32_t)p->lx.value;
			gpu_lex_next(&p->lx);
			if (!gpu_lex_take(&p->lx, ","))
				break;
		}
	}
	if (gpu_lex_take(&p->lx, ";"))
		return;
	if (f->body)
		gpu_fail(p, "function %s is there twice", f->name);
	gpu_need(p, "{");
	p->f = f;
	f->body = true;
	f->nr_regs = p->regs;
	f->pmem = p->pmem;
	if (entry) /* the block of a kernel is not part of its frame */
		p->pmem = f->pmem = 0;
	gpu_parse_body(p);
	f->pmem = (f->pmem + 15) / 16 * 16;
	f->is_rec = !strncmp(f->name, "__ttmon$", 8);
	p->f = NULL;
}

static void top_level(struct gpu_parser *p)
{
	p->external = p->visible = p->weak = false;
	if (gpu_lex_take(&p->lx, ".version")) {
		double v = 0;

		p->unit++;
		if (p->lx.kind != TK_DOUBLE)
			gpu_fail(p, "a version was expected");
		memcpy(&v, &p->lx.value, 8);
		p->m->version = (uint32_t)(v * 10 + .5);
		gpu_lex_next(&p->lx);
		return;
	}
	if (gpu_lex_take(&p->lx, ".target")) {
		if (p->lx.kind == TK_WORD && p->lx.len > 3 && !memcmp(p->lx.text, "sm_", 3))
			p->m->target = (uint32_t)strtoul(p->lx.text + 3, NULL, 10);
		gpu_lex_skip_line(&p->lx);
		return;
	}
	if (gpu_lex_take(&p->lx, ".address_size")) {
		if (gpu_const(p) != 64)
			gpu_fail(p, "addresses of 32 bits");
		return;
	}
	if (gpu_lex_is(&p->lx, ".file") || gpu_lex_is(&p->lx, ".loc")) {
		gpu_lex_skip_line(&p->lx);
		return;
	}
	if (gpu_lex_take(&p->lx, ".section")) {
		while (p->lx.kind != TK_END && !gpu_lex_is(&p->lx, "}"))
			gpu_lex_next(&p->lx);
		gpu_need(p, "}");
		return;
	}
	if (gpu_lex_is(&p->lx, ".pragma") || gpu_lex_is(&p->lx, ".alias")) {
		while (p->lx.kind != TK_END && !gpu_lex_is(&p->lx, ";"))
			gpu_lex_next(&p->lx);
		gpu_need(p, ";");
		return;
	}
	while (gpu_lex_is(&p->lx, ".visible") || gpu_lex_is(&p->lx, ".weak") || gpu_lex_is(&p->lx, ".common") ||
	       gpu_lex_is(&p->lx, ".extern")) {
		p->external |= gpu_lex_is(&p->lx, ".extern");
		p->visible |= gpu_lex_is(&p->lx, ".visible");
		p->weak |= gpu_lex_is(&p->lx, ".weak") || gpu_lex_is(&p->lx, ".common");
		gpu_lex_next(&p->lx);
	}
	if (gpu_lex_take(&p->lx, ".entry"))
		function(p, true);
	else if (gpu_lex_take(&p->lx, ".func"))
		function(p, false);
	else if (gpu_lex_take(&p->lx, ".global"))
		module_var(p, SP_GLOBAL);
	else if (gpu_lex_take(&p->lx, ".const"))
		module_var(p, SP_CONST);
	else if (gpu_lex_take(&p->lx, ".shared"))
		module_var(p, SP_SHARED);
	else
		gpu_fail(p, "\"%.*s\" is no part of a module", (int)(p->lx.len < 60 ? p->lx.len : 60), p->lx.text);
}

/* Places the variables; then the size of the module's own shared memory is known. */
static void place(struct gpu_parser *p)
{
	struct gpu_module *m = p->m;

	if (p->part)
		return;
	for (uint32_t i = 0; i < m->nr_funcs; i++)
		if (m->funcs[i]->called && !m->funcs[i]->body)
			gpu_fail(p, "%s is called and nowhere defined", m->funcs[i]->name);
	if (p->data_size) {
		m->data = gpu_mem_alloc(p->data_size, m);
		if (!m->data)
			gpu_fail(p, "no device memory for its variables");
		m->data_size = p->data_size;
	}
	for (struct gpu_sym *s = m->syms; s; s = s->next) {
		if (s->external)
			gpu_fail(p, "%s is declared and nowhere defined", s->name);
		if (!s->func && (s->space == SP_GLOBAL || s->space == SP_CONST))
			s->off += m->data;
	}
	for (uint32_t i = 0; i < p->nr_relocs; i++) {
		const struct gpu_reloc *r = &p->relocs[i];
		uint64_t v = (r->sym->func ? (uintptr_t)r->sym->func : r->sym->off) + r->add;

		memcpy(p->data + r->at, &v, r->size < 8 ? r->size : 8);
	}
	if (p->data_size)
		memcpy(gpu_mem_host(m->data, p->data_size), p->data, p->data_size);
	for (uint32_t i = 0; i < m->nr_funcs; i++)
		m->funcs[i]->static_shared = (m->shared + 15) / 16 * 16 + m->funcs[i]->shared;
}

static struct gpu_module *parse(const char *text, size_t len, bool part)
{
	struct full_module *full = calloc(1, sizeof(*full));
	struct gpu_parser *p = calloc(1, sizeof(*p));

	if (!full || !p)
		abort();
	p->m = &full->m;
	p->part = part;
	p->lx = (struct gpu_lex){ .at = text, .end = text + len, .line = 1 };
	if (!setjmp(p->fail)) {
		gpu_lex_next(&p->lx);
		if (!gpu_lex_is(&p->lx, ".version"))
			gpu_fail(p, "this is no PTX");
		while (p->lx.kind != TK_END)
			top_level(p);
		place(p);
	}
	free(p);
	return &full->m;
}

struct gpu_module *gpu_parse(const char *text, size_t len)
{
	return parse(text, len, false);
}

struct gpu_module *gpu_parse_part(const char *text, size_t len)
{
	return parse(text, len, true);
}

void gpu_module_free(struct gpu_module *m)
{
	struct full_module *full = (struct full_module *)m;

	if (!m)
		return;
	if (m->data)
		gpu_mem_free(m->data, NULL);
	for (struct arena *a = full->arena, *next; a; a = next) {
		next = a->next;
		free(a);
	}
	free(full);
}

struct gpu_func *gpu_find(struct gpu_module *m, const char *name)
{
	for (uint32_t i = 0; i < m->nr_funcs; i++)
		if (m->funcs[i]->entry && m->funcs[i]->body && !strcmp(m->funcs[i]->name, name))
			return m->funcs[i];
	return NULL;
}

struct gpu_sym *gpu_find_var(struct gpu_module *m, const char *name)
{
	for (struct gpu_sym *s = m->syms; s; s = s->next)
		if (!s->func && !s->dynamic && (s->space == SP_GLOBAL || s->space == SP_CONST) &&
		    !strcmp(s->name, name))
			return s;
	return NULL;
}
