// SPDX-License-Identifier: GPL-2.0-only
/*
 * mod.c: what is in a module: its version and target, its source files, its kernels and functions with
 * a body, and the size of their parameters.
 */
#include "memtrace/ptx/ptx_int.h"
#include "lib/base/hash.h"
#include "lib/base/util.h"

#define MAX_FILES 65536

void *ttmon_ptx_more(void *p, size_t *nr, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 16;
	void *q;

	if (*nr < *cap)
		return p;
	q = reallocarray(p, more, size);
	if (q)
		*cap = more;
	return q;
}

void ttmon_ptx_mod_fini(struct ttmon_ptx_mod *m)
{
	free(m->fns);
	free(m->by_name);
	free(m->files);
	free(m->access);
	free(m->calls);
	*m = (struct ttmon_ptx_mod){ 0 };
}

static size_t offset(const struct ttmon_ptx_mod *m, const struct ttmon_ptx_tok *t)
{
	return (size_t)(t->s - m->text);
}

static size_t hash(const struct ttmon_ptx_tok *name)
{
	uint64_t h = ttmon_fnv(TTMON_FNV_BASIS, name->s, name->len);

	return (size_t)(h ^ h >> 32);
}

struct ttmon_ptx_fn *ttmon_ptx_find(const struct ttmon_ptx_mod *m, const struct ttmon_ptx_tok *name)
{
	for (size_t i = hash(name);; i++) {
		uint32_t at = m->by_name[i & (m->nr_by_name - 1)];

		if (!at)
			return NULL;
		if (m->fns[at - 1].name.len == name->len && !memcmp(m->fns[at - 1].name.s, name->s, name->len))
			return &m->fns[at - 1];
	}
}

/* The first of a name counts; a second one is an error that ptxas will name. */
static int make_index(struct ttmon_ptx_mod *m)
{
	m->nr_by_name = 16;
	while (m->nr_by_name < 2 * m->nr_fns)
		m->nr_by_name *= 2;
	m->by_name = calloc(m->nr_by_name, sizeof(*m->by_name));
	if (!m->by_name)
		return -ENOMEM;
	for (size_t k = 0; k < m->nr_fns; k++) {
		size_t i = hash(&m->fns[k].name);

		if (ttmon_ptx_find(m, &m->fns[k].name)) {
			m->fns[k].why = "there are two of its name";
			continue;
		}
		while (m->by_name[i & (m->nr_by_name - 1)])
			i++;
		m->by_name[i & (m->nr_by_name - 1)] = (uint32_t)k + 1;
	}
	return 0;
}

/* One ".param ..." up to the ',' or ')', which is left. */
static void param(struct ttmon_ptx_lex *l, struct ttmon_ptx_fn *fn)
{
	uint64_t bytes = 0, count = 1, align = 0, vector = 1;
	bool ptr = false;

	for (;;) {
		struct ttmon_ptx_tok t = ttmon_ptx_peek(l);
		int type = ttmon_ptx_type(&t);

		if (t.kind == TTMON_PTX_END || t.kind == ',' || t.kind == ')' || t.kind == '{' || t.kind == ';')
			break;
		(void)ttmon_ptx_next(l);
		if (ttmon_ptx_is(&t, ".reg"))
			fn->why = "parameters in registers";
		else if (ttmon_ptx_is(&t, ".ptr"))
			ptr = true; /* an .align behind it is that of what it points to */
		else if (ttmon_ptx_is(&t, ".align")) {
			t = ttmon_ptx_next(l);
			if (!ptr)
				align = ttmon_ptx_number(&t);
		} else if (ttmon_ptx_is(&t, ".v2") || ttmon_ptx_is(&t, ".v4")) {
			vector = (uint64_t)(t.s[2] - '0');
		} else if (t.kind == '[') {
			t = ttmon_ptx_next(l);
			if (t.kind != TTMON_PTX_NUM)
				fn->why = "a variable number of arguments";
			count *= ttmon_ptx_number(&t);
			if (count > TTMON_PTX_MAX)
				count = TTMON_PTX_MAX;
		} else if (type > 0) {
			bytes = (uint64_t)type;
		}
	}
	if (!bytes)
		fn->why = "a parameter of a type that is not known";
	align = MAX(align, bytes * vector);
	if (!align || align & (align - 1) || align > 4096 || fn->param_bytes > TTMON_PTX_MAX) {
		fn->why = fn->why ? fn->why : "a parameter that is aligned as none can be";
		return;
	}
	fn->nr_params++;
	fn->param_bytes = (uint32_t)(ROUND_UP(fn->param_bytes, align) + bytes * vector * count);
}

/*
 * A list in parentheses; returns the offset of the ')', 0 where it does not end. fn NULL: only passed
 * over.
 */
static size_t params(struct ttmon_ptx_mod *m, struct ttmon_ptx_lex *l, struct ttmon_ptx_fn *fn)
{
	struct ttmon_ptx_fn any = { 0 };
	struct ttmon_ptx_tok t = ttmon_ptx_next(l); /* '(' */

	t = ttmon_ptx_peek(l);
	if (t.kind != ')') {
		param(l, fn ? fn : &any);
		for (t = ttmon_ptx_peek(l); t.kind == ','; t = ttmon_ptx_peek(l)) {
			(void)ttmon_ptx_next(l);
			param(l, fn ? fn : &any);
		}
	}
	if (t.kind != ')')
		return 0;
	(void)ttmon_ptx_next(l);
	return offset(m, &t);
}

/* From behind ".entry", ".func". -EBADMSG: the text ends in it. */
static int function(struct ttmon_ptx_mod *m, struct ttmon_ptx_lex *l, const struct ttmon_ptx_tok *head, bool weak,
		    char *why, size_t n)
{
	struct ttmon_ptx_fn fn = { .head = offset(m, head), .entry = ttmon_ptx_is(head, ".entry"), .weak = weak };
	struct ttmon_ptx_tok t = ttmon_ptx_peek(l);
	uint32_t depth = 1;
	void *p;

	if (t.kind == '(' && !params(m, l, NULL))
		goto odd;
	/* Attributes between ".func" and the name. */
	for (t = ttmon_ptx_next(l); t.kind == TTMON_PTX_WORD && t.s[0] == '.'; t = ttmon_ptx_next(l))
		;
	if (t.kind != TTMON_PTX_WORD)
		goto odd;
	fn.name = t;
	t = ttmon_ptx_peek(l);
	if (t.kind == '(') {
		fn.params = params(m, l, &fn);
		if (!fn.params)
			goto odd;
	}
	do {
		t = ttmon_ptx_next(l);
	} while (t.kind != ';' && t.kind != '{' && t.kind != '}' && t.kind != TTMON_PTX_END);
	if (t.kind == ';')
		return 0;
	if (t.kind != '{')
		goto odd;
	fn.body = offset(m, &t);
	fn.line = t.line;
	while (depth && t.kind != TTMON_PTX_END) {
		t = ttmon_ptx_next(l);
		depth += t.kind == '{';
		depth -= t.kind == '}';
	}
	if (depth) {
		snprintf(why, n, "the text ends in a function (%.*s, line %u)", (int)MIN(fn.name.len, 64), fn.name.s,
			 fn.line);
		return -EBADMSG;
	}
	fn.end = offset(m, &t) + 1;
	p = ttmon_ptx_more(m->fns, &m->nr_fns, &m->cap_fns, sizeof(*m->fns));
	if (!p)
		return -ENOMEM;
	m->fns = p;
	m->fns[m->nr_fns++] = fn;
	return 0;
odd:
	snprintf(why, n, "line %u: no function as PTX has them", t.line);
	return -EBADMSG;
}

/* .file 1 "a.cu", 123, 456 */
static int source(struct ttmon_ptx_mod *m, struct ttmon_ptx_lex *l)
{
	struct ttmon_ptx_tok nr = ttmon_ptx_next(l), name = ttmon_ptx_peek(l);
	uint64_t at = ttmon_ptx_number(&nr);

	if (nr.kind != TTMON_PTX_NUM || name.kind != TTMON_PTX_STR || name.len < 2 || at >= MAX_FILES)
		return 0;
	(void)ttmon_ptx_next(l);
	while (m->nr_files <= at) {
		void *p = ttmon_ptx_more(m->files, &m->nr_files, &m->cap_files, sizeof(*m->files));

		if (!p)
			return -ENOMEM;
		m->files = p;
		m->files[m->nr_files++] = (struct ttmon_ptx_tok){ 0 };
	}
	name.s++;
	name.len -= 2;
	m->files[at] = name;
	return 0;
}

/*
 * .version 9.0 .target sm_90a, debug .address_size 64: what every module begins with, in this order.
 */
static int preamble(struct ttmon_ptx_mod *m, struct ttmon_ptx_lex *l, char *why, size_t n)
{
	struct ttmon_ptx_tok t = ttmon_ptx_next(l);
	uint32_t minor = 0;
	bool wide = false;
	const char *dot;

	if (!ttmon_ptx_is(&t, ".version")) {
		snprintf(why, n, "it does not begin with .version");
		return -EBADMSG;
	}
	t = ttmon_ptx_next(l);
	dot = memchr(t.s, '.', t.len);
	if (t.kind != TTMON_PTX_NUM || !dot || dot == t.s || dot - t.s > 3 || t.len - (size_t)(dot - t.s) > 3) {
		snprintf(why, n, "no version that can be read");
		return -EBADMSG;
	}
	for (const char *s = t.s; s < dot; s++)
		m->version = m->version * 10 + (uint32_t)(*s - '0');
	for (const char *s = dot + 1; s < t.s + t.len; s++)
		minor = minor * 10 + (uint32_t)(*s - '0');
	m->version = m->version * 10 + MIN(minor, 9);
	t = ttmon_ptx_next(l);
	if (!ttmon_ptx_is(&t, ".target")) {
		snprintf(why, n, "no .target");
		return -EBADMSG;
	}
	do {
		t = ttmon_ptx_next(l);
		if (ttmon_ptx_begins(&t, "sm_") && t.len < 16)
			m->target = (uint32_t)strtoul(t.s + 3, NULL, 10);
		m->preamble = offset(m, &t) + t.len;
		t = ttmon_ptx_peek(l);
	} while (t.kind == ',' && ttmon_ptx_next(l).kind);
	if (ttmon_ptx_is(&t, ".address_size")) {
		(void)ttmon_ptx_next(l);
		t = ttmon_ptx_next(l);
		wide = ttmon_ptx_number(&t) == 64;
		m->preamble = offset(m, &t) + t.len;
	}
	if (!wide) {
		snprintf(why, n, "addresses of 32 bits");
		return -EOPNOTSUPP;
	}
	if (m->version < 63 || m->target < 50) {
		snprintf(why, n, "PTX %u.%u for sm_%u: older than 6.3 or sm_50", m->version / 10, m->version % 10,
			 m->target);
		return -EOPNOTSUPP;
	}
	return 0;
}

int ttmon_ptx_parse(struct ttmon_ptx_mod *m, const char *text, size_t len, char *why, size_t n)
{
	struct ttmon_ptx_lex l = { .p = text, .end = text + len, .line = 1 };
	bool weak = false;
	int err;

	m->text = text;
	m->len = len;
	err = preamble(m, &l, why, n);
	while (!err) {
		struct ttmon_ptx_tok t = ttmon_ptx_next(&l);
		bool after_weak = weak;

		if (t.kind == TTMON_PTX_END)
			break;
		weak = ttmon_ptx_is(&t, ".weak");
		if (ttmon_ptx_is(&t, ".entry") || ttmon_ptx_is(&t, ".func"))
			err = function(m, &l, &t, after_weak, why, n);
		else if (ttmon_ptx_is(&t, ".file"))
			err = source(m, &l);
		else if (ttmon_ptx_is(&t, ".global") || ttmon_ptx_is(&t, ".const") || ttmon_ptx_is(&t, ".shared") ||
			 ttmon_ptx_is(&t, ".local"))
			ttmon_ptx_skip(&l);
		else if (t.kind == '{') /* of a .section; any other is none of ours either */
			for (uint32_t depth = 1; depth && t.kind != TTMON_PTX_END;) {
				t = ttmon_ptx_next(&l);
				depth += t.kind == '{';
				depth -= t.kind == '}';
			}
	}
	return err ? err : make_index(m);
}
