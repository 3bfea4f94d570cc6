// SPDX-License-Identifier: GPL-2.0-only
/*
 * ptx.c: which kernels and functions of a module are copied, the text that comes of it, and what is
 * said about it.
 */
#include "memtrace/ptx/ptx_int.h"
#include "ttmon/mtchan.h"
#include "lib/base/util.h"

#define MAX_PARAM_BYTES 4096
#define MAX_OUT		(1ull << 30) /* bytes of a text that comes out */

struct ttmon_ptx_words {
	struct ttmon_ptx_words *next;
	char text[];
};

static char *keep(struct ttmon_ptx_result *r, const char *s, size_t len)
{
	struct ttmon_ptx_words *w = malloc(sizeof(*w) + len + 1);

	if (!w)
		return NULL;
	memcpy(w->text, s, len);
	w->text[len] = '\0';
	w->next = r->words;
	r->words = w;
	return w->text;
}

void ttmon_ptx_fini(struct ttmon_ptx_result *r)
{
	for (struct ttmon_ptx_words *w = r->words, *next; w; w = next) {
		next = w->next;
		free(w);
	}
	free(r->text);
	free(r->recorder);
	free(r->kernels);
	free(r->sites);
	*r = (struct ttmon_ptx_result){ 0 };
}

/* What a kernel needs of us besides what its body says. */
static void check_kernel(struct ttmon_ptx_fn *fn)
{
	if (!fn->why && ROUND_UP((uint64_t)fn->param_bytes, 8) + 16 > MAX_PARAM_BYTES)
		fn->why = "no room for two parameters more";
}

static int analyse(struct ttmon_ptx_mod *m, struct ttmon_ptx_result *r, const struct ttmon_ptx_opts *opts)
{
	_cleanup_free_ uint32_t *queue = malloc((m->nr_fns + 1) * sizeof(*queue));
	size_t nr = 0;

	if (!queue)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_fns; i++) {
		struct ttmon_ptx_fn *fn = &m->fns[i];
		int err;

		if (!fn->entry)
			continue;
		r->kernels[r->nr_kernels].name = keep(r, fn->name.s, fn->name.len);
		if (!r->kernels[r->nr_kernels].name)
			return -ENOMEM;
		fn->selected = !opts->select || opts->select(opts->ctx, r->kernels[r->nr_kernels].name);
		r->nr_kernels++;
		if (!fn->selected) {
			fn->why = "not selected";
			continue;
		}
		check_kernel(fn);
		err = fn->why ? 0 : ttmon_ptx_body(m, fn, opts);
		if (err)
			return err;
		if (!fn->why)
			queue[nr++] = (uint32_t)i;
	}
	/* What these call, and what that calls. */
	for (size_t k = 0; k < nr; k++) {
		const struct ttmon_ptx_fn *fn = &m->fns[queue[k]];

		for (size_t c = fn->call; c < fn->call + fn->nr_call; c++) {
			struct ttmon_ptx_fn *callee = &m->fns[m->calls[c].fn];
			int err;

			if (callee->selected)
				continue;
			callee->selected = true;
			err = callee->why ? 0 : ttmon_ptx_body(m, callee, opts);
			if (err)
				return err;
			queue[nr++] = m->calls[c].fn;
		}
	}
	return 0;
}

/* A function is copied where it, or what it calls, has something to record. */
static void choose(struct ttmon_ptx_mod *m)
{
	bool again = true;

	for (size_t i = 0; i < m->nr_fns; i++)
		m->fns[i].copied = m->fns[i].selected && !m->fns[i].why && m->fns[i].nr_access;
	while (again) {
		again = false;
		for (size_t i = m->nr_fns; i-- > 0;) {
			struct ttmon_ptx_fn *fn = &m->fns[i];

			if (fn->copied || !fn->selected || fn->why)
				continue;
			for (size_t c = fn->call; c < fn->call + fn->nr_call && !fn->copied; c++)
				fn->copied = m->fns[m->calls[c].fn].copied;
			again |= fn->copied;
		}
	}
	for (size_t i = 0; i < m->nr_fns; i++) {
		if (m->fns[i].entry && !m->fns[i].copied && !m->fns[i].why)
			m->fns[i].why = "nothing in it to record";
	}
}

static const char *file_name(const struct ttmon_ptx_mod *m, struct ttmon_ptx_result *r, uint32_t nr, const char **names)
{
	if (nr >= m->nr_files || !m->files[nr].len)
		return "";
	if (!names[nr])
		names[nr] = keep(r, m->files[nr].s, m->files[nr].len);
	return names[nr];
}

/* The counters of a generic access are apart by space: three sites. A record says its space itself. */
static unsigned int sites_of(const struct ttmon_ptx_access *x, const struct ttmon_ptx_opts *opts)
{
	return opts->aggregate && x->site.space == TTMON_MT_GENERIC ? 3 : 1;
}

/* The sites of one kernel or function. -E2BIG: there is no room for their numbers. */
static int add_sites(struct ttmon_ptx_mod *m, struct ttmon_ptx_result *r, struct ttmon_ptx_fn *fn,
		     const struct ttmon_ptx_opts *opts, const char **names)
{
	const char *kernel = keep(r, fn->name.s, fn->name.len);
	uint32_t file = UINT32_MAX;
	const char *name = "";

	if (!kernel)
		return -ENOMEM;
	fn->first = (uint32_t)r->nr_sites;
	for (size_t a = fn->access; a < fn->access + fn->nr_access; a++) {
		struct ttmon_ptx_access *x = &m->access[a];
		unsigned int n = sites_of(x, opts);

		if (opts->first_site >= TTMON_MTC_MAX_SITES || r->nr_sites + n > TTMON_MTC_MAX_SITES - opts->first_site)
			return -E2BIG;
		if (x->file != file) {
			name = file_name(m, r, x->file, names);
			file = x->file;
		}
		x->number = (uint32_t)r->nr_sites;
		for (unsigned int i = 0; i < n; i++) {
			struct ttmon_mt_site *s = &r->sites[r->nr_sites++];

			*s = x->site;
			s->kernel = kernel;
			s->opcode = keep(r, x->op.s, x->op.len);
			s->file = name;
			s->module = "";
			s->flags |= fn->entry ? 0 : TTMON_MT_SITE_FUNCTION;
			if (n > 1)
				s->space = (uint8_t)(TTMON_MT_GLOBAL + i);
			if (!s->opcode || !name)
				return -ENOMEM;
		}
	}
	fn->nr_sites = (uint32_t)r->nr_sites - fn->first;
	return 0;
}

static int number(struct ttmon_ptx_mod *m, struct ttmon_ptx_result *r, const struct ttmon_ptx_opts *opts)
{
	_cleanup_free_ const char **names = calloc(m->nr_files + 1, sizeof(*names));
	int err = 0;

	r->sites = calloc(m->nr_access * (opts->aggregate ? 3 : 1) + 1, sizeof(*r->sites));
	if (!r->sites || !names)
		return -ENOMEM;
	/* Kernels first: theirs are together. */
	for (unsigned int entry = 2; entry-- > 0;) {
		for (size_t i = 0; i < m->nr_fns && !err; i++) {
			if (m->fns[i].copied && m->fns[i].entry == entry)
				err = add_sites(m, r, &m->fns[i], opts, names);
		}
	}
	return err;
}

/* Sites of fn for which there are no counters. */
static uint32_t beyond(const struct ttmon_ptx_fn *fn, const struct ttmon_ptx_opts *opts)
{
	uint32_t first = opts->first_site + fn->first, left = first < opts->counters ? opts->counters - first : 0;

	return opts->counters && fn->nr_sites > left ? fn->nr_sites - left : 0;
}

/* Counts what cannot be recorded of kernel k and of all functions that it calls. */
static void count(struct ttmon_ptx_mod *m, const struct ttmon_ptx_opts *opts, uint32_t *stack, uint32_t kernel,
		  uint32_t mark, struct ttmon_ptx_kernel *k)
{
	size_t nr = 0;

	stack[nr++] = kernel;
	m->fns[kernel].mark = mark;
	while (nr) {
		const struct ttmon_ptx_fn *fn = &m->fns[stack[--nr]];

		k->left_out += fn->left_out;
		k->beyond += beyond(fn, opts);
		k->indirect += fn->indirect + (!fn->entry && fn->why);
		for (size_t c = fn->call; c < fn->call + fn->nr_call; c++) {
			struct ttmon_ptx_fn *callee = &m->fns[m->calls[c].fn];

			if (callee->mark == mark)
				continue;
			callee->mark = mark;
			stack[nr++] = m->calls[c].fn;
		}
	}
}

static int describe(struct ttmon_ptx_mod *m, struct ttmon_ptx_result *r, const struct ttmon_ptx_opts *opts)
{
	_cleanup_free_ uint32_t *stack = malloc((m->nr_fns + 1) * sizeof(*stack));
	size_t nr = 0;

	if (!stack)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_fns; i++) {
		const struct ttmon_ptx_fn *fn = &m->fns[i];
		struct ttmon_ptx_kernel *k;

		if (!fn->entry)
			continue;
		k = &r->kernels[nr++];
		k->params = fn->nr_params;
		k->param_bytes = fn->param_bytes;
		if (fn->copied) {
			k->first = fn->first;
			k->sites = fn->nr_sites;
		} else if (fn->why_line) {
			snprintf(k->why, sizeof(k->why), "line %u: %s", fn->why_line, fn->why);
		} else {
			snprintf(k->why, sizeof(k->why), "%s", fn->why);
		}
		count(m, opts, stack, (uint32_t)i, (uint32_t)nr, k);
	}
	return 0;
}

/* The recorder as a module like the program's. */
static int write_recorder(const struct ttmon_ptx_mod *m, struct ttmon_ptx_result *r, const struct ttmon_ptx_opts *opts)
{
	size_t len;
	FILE *f = open_memstream(&r->recorder, &len);
	bool fine;

	if (!f)
		return -ENOMEM;
	fwrite(m->text, 1, m->preamble, f);
	fputc('\n', f);
	ttmon_ptx_recorder(f, opts->aggregate, m->target, TTMON_PTX_VISIBLE);
	fine = !ferror(f);
	return fclose(f) || !fine ? -ENOMEM : 0;
}

/*
 * The original with what is inserted: the recorder and the copies' declarations behind the preamble,
 * each copy behind its original.
 */
static int write_text(const struct ttmon_ptx_mod *m, struct ttmon_ptx_result *r, const struct ttmon_ptx_opts *opts)
{
	_cleanup_fclose_ FILE *f = open_memstream(&r->text, &r->len);
	bool apart = opts->apart;
	size_t at = m->preamble;
	int err;

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_fns; i++)
		apart &= m->fns[i].entry;
	if (apart && write_recorder(m, r, opts))
		return -ENOMEM;
	fwrite(m->text, 1, at, f);
	fputc('\n', f);
	ttmon_ptx_recorder(f, opts->aggregate, m->target, apart ? TTMON_PTX_EXTERN : TTMON_PTX_WHOLE);
	for (size_t i = 0; i < m->nr_fns; i++) {
		if (m->fns[i].copied && !m->fns[i].entry)
			ttmon_ptx_emit(f, m, &m->fns[i], opts, true);
	}
	for (size_t i = 0; i < m->nr_fns; i++) {
		if (!m->fns[i].copied)
			continue;
		fwrite(m->text + at, 1, m->fns[i].end - at, f);
		at = m->fns[i].end;
		fputc('\n', f);
		ttmon_ptx_emit(f, m, &m->fns[i], opts, false);
		if (ftello(f) > (off_t)MAX_OUT)
			return -E2BIG;
	}
	fwrite(m->text + at, 1, m->len - at, f);
	err = ferror(f) ? -ENOMEM : 0;
	if (fclose(TAKE_PTR(f)))
		err = -ENOMEM;
	return err;
}

static int rewrite(struct ttmon_ptx_mod *m, struct ttmon_ptx_result *r, const struct ttmon_ptx_opts *opts)
{
	bool any = false;
	int err;

	r->target = m->target;
	r->kernels = calloc(m->nr_fns + 1, sizeof(*r->kernels));
	if (!r->kernels)
		return -ENOMEM;
	err = analyse(m, r, opts);
	if (err)
		return err;
	choose(m);
	err = number(m, r, opts);
	if (!err)
		err = describe(m, r, opts);
	for (size_t i = 0; i < m->nr_fns; i++)
		any |= m->fns[i].entry && m->fns[i].copied;
	if (!err && any)
		err = write_text(m, r, opts);
	return err;
}

int ttmon_ptx_rewrite(const char *text, size_t len, const struct ttmon_ptx_opts *opts, struct ttmon_ptx_result *ret,
		      char *why, size_t n)
{
	_cleanup_(ttmon_ptx_mod_fini) struct ttmon_ptx_mod m = { 0 };
	_cleanup_(ttmon_ptx_fini) struct ttmon_ptx_result r = { 0 };
	struct ttmon_ptx_opts all = *opts;
	int err;

	if (!all.instr_end)
		all.instr_end = UINT32_MAX;
	all.spaces &= 1u << TTMON_MT_GLOBAL | 1u << TTMON_MT_SHARED | 1u << TTMON_MT_LOCAL;
	if (len > TTMON_PTX_MAX) {
		snprintf(why, n, "%zu bytes of text, more than %u", len, TTMON_PTX_MAX);
		return -E2BIG;
	}
	len = strnlen(text, len); /* as the driver reads it */
	if (memmem(text, len, "__ttmon", 7)) {
		snprintf(why, n, "names of ours (__ttmon...) are in it already");
		return -EOPNOTSUPP;
	}
	err = ttmon_ptx_parse(&m, text, len, why, n);
	if (err)
		goto out;
	if (all.aggregate && m.target < 70) {
		snprintf(why, n, "counting on the GPU needs sm_70, this is for sm_%u", m.target);
		return -EOPNOTSUPP;
	}
	err = rewrite(&m, &r, &all);
	if (err == -E2BIG)
		snprintf(why, n, "too many instructions to record");
out:
	if (err == -ENOMEM)
		snprintf(why, n, "no memory");
	if (err)
		return err;
	*ret = r;
	r = (struct ttmon_ptx_result){ 0 };
	return 0;
}
