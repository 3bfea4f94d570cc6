// SPDX-License-Identifier: GPL-2.0-only
/*
 * text.c: PTX texts of the program, rewritten (memtrace/ptx/ptx.h), with their kernels and
 * instructions; each text once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "memtrace/ptx/image.h"
#include "memtrace/inject/inj_chan.h"
#include "memtrace/inject/inj_mod.h"
#include "memtrace/ptx/ptx.h"

#define CACHE_MAX (256u << 20) /* bytes of rewritten text that are kept for the next load of the same */

/*
 * Only one text is rewritten at a time: numbers of sites are assigned in order, and the driver
 * compiles one text at a time anyway.
 */
pthread_mutex_t ttmon_inj_rewriting = PTHREAD_MUTEX_INITIALIZER;
static struct ttmon_inj_text *texts;
static struct ttmon_inj_kernel *kernels;
static uint32_t nr_kernels, next_site;
static size_t cached;

void ttmon_inj_hash(const void *data, size_t n, uint64_t ret[2])
{
	uint64_t a = 0xcbf29ce484222325, b = 0x9e3779b97f4a7c15;
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++) {
		a = (a ^ p[i]) * 0x100000001b3;
		b = (b ^ p[i]) * 0xff51afd7ed558ccd;
		b ^= b >> 29;
	}
	ret[0] = a;
	ret[1] = b;
}

static char *copy_text(const char *s)
{
	return strdup(s ? s : "");
}

static void free_kernel(struct ttmon_inj_kernel *k)
{
	if (!k)
		return;
	for (uint32_t i = 0; k->sites && i < k->nr_sites; i++) {
		free((char *)k->sites[i].kernel);
		free((char *)k->sites[i].opcode);
		free((char *)k->sites[i].file);
	}
	free(k->sites);
	free(k->name);
	free(k->module);
	free(k->why);
	free(k);
}

struct ttmon_inj_kernel *ttmon_inj_kernel_new(const char *name, const char *module, const char *why)
{
	struct ttmon_inj_kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->name = copy_text(name);
	k->module = copy_text(module);
	k->why = why && *why ? copy_text(why) : NULL;
	if (!k->name || !k->module || (why && *why && !k->why)) {
		free_kernel(k);
		return NULL;
	}
	return k;
}

/* Returns how many of its sites have counters on the GPU; if every access is recorded, all of them. */
static uint32_t counted(const struct ttmon_inj_kernel *k)
{
	uint32_t left = k->first < TTMON_INJ_AGG_SITES ? TTMON_INJ_AGG_SITES - k->first : 0;

	return ttmon_inj_conf()->aggregate && k->nr_sites > left ? left : k->nr_sites;
}

/*
 * Sites from..from + n - 1 of what was rewritten, with texts of their own; the first site of all has
 * the number base.
 */
static int take_sites(struct ttmon_inj_kernel *k, const struct ttmon_ptx_result *r, size_t from, size_t n,
		      uint32_t base)
{
	k->first = base + (uint32_t)from;
	k->sites = calloc(n + 1, sizeof(*k->sites));
	if (!k->sites)
		return -ENOMEM;
	while (k->nr_sites < n) {
		struct ttmon_mt_site *s = &k->sites[k->nr_sites];

		*s = r->sites[from + k->nr_sites++];
		s->module = k->module;
		s->kernel = copy_text(s->kernel);
		s->opcode = copy_text(s->opcode);
		s->file = copy_text(s->file);
		if (!s->kernel || !s->opcode || !s->file)
			return -ENOMEM;
	}
	k->counted = counted(k);
	return 0;
}

/* The kernels of what was rewritten. -ENOMEM: some. */
static int take_kernels(struct ttmon_inj_text *t, const struct ttmon_ptx_result *r, uint32_t base)
{
	size_t of_kernels = 0;

	t->kernels = calloc(r->nr_kernels + 1, sizeof(*t->kernels));
	if (!t->kernels)
		return -ENOMEM;
	while (t->nr_kernels < r->nr_kernels) {
		const struct ttmon_ptx_kernel *p = &r->kernels[t->nr_kernels];
		struct ttmon_inj_kernel *k = ttmon_inj_kernel_new(p->name, t->module, p->why);

		t->kernels[t->nr_kernels++] = k;
		if (!k || take_sites(k, r, p->first, p->sites, base))
			return -ENOMEM;
		k->params = p->params;
		k->param_bytes = p->param_bytes;
		/* Code that it calls by pointer, or in another input of a link, is not recorded either. */
		k->left_out = p->left_out + p->indirect + p->beyond;
		of_kernels = of_kernels > (size_t)p->first + p->sites ? of_kernels : (size_t)p->first + p->sites;
	}
	/* Behind those of the kernels are those of the functions. */
	if (of_kernels == r->nr_sites)
		return 0;
	t->functions = ttmon_inj_kernel_new("functions", t->module, NULL);
	if (!t->functions || take_sites(t->functions, r, of_kernels, r->nr_sites - of_kernels, base))
		return -ENOMEM;
	for (size_t i = 0; i < t->nr_kernels; i++) {
		t->kernels[i]->parts = &t->functions;
		t->kernels[i]->nr_parts = 1;
	}
	return 0;
}

void ttmon_inj_kernel_list(struct ttmon_inj_kernel *k)
{
	k->number = nr_kernels++;
	k->next = kernels;
	kernels = k;
}

/* ---- without the kernels that the compiler refuses ---- */

struct refused {
	char *name, why[160];
};

/* A text on its way to machine code. */
struct build {
	const struct ttmon_mt_image *image;
	const struct ttmon_inj_jit *jit;
	const char *module;
	struct ttmon_ptx_opts opts;
	struct ttmon_ptx_result r;
	struct ttmon_inj_code code;
	struct refused *refused;
	size_t nr_refused;
	/* While halves are tried: the kernels of the half. NULL: all. */
	char *const *half;
	size_t nr_half;
	uint64_t until_ns;
	unsigned int tries;
	char *why;
	size_t why_n;
};

static const struct refused *find_refused(const struct build *b, const char *kernel)
{
	for (size_t i = 0; i < b->nr_refused; i++)
		if (!strcmp(b->refused[i].name, kernel))
			return &b->refused[i];
	return NULL;
}

static bool wanted(void *ctx, const char *kernel)
{
	const struct build *b = ctx;
	bool in = !b->half;

	for (size_t i = 0; i < b->nr_half && !in; i++)
		in = !strcmp(b->half[i], kernel);
	return in && ttmon_inj_kernel_wanted(kernel) && !find_refused(b, kernel);
}

/*
 * The first line of the compiler's log that says "error" or "fatal", without its preamble; else what
 * the driver returned.
 */
static void complaint(const struct ttmon_inj_code *c, char *ret, size_t n)
{
	const char *line = strstr(c->log, "error"), *fatal = strstr(c->log, "fatal");

	if (!line || (fatal && fatal < line))
		line = fatal;
	if (line && strchr(line, ':'))
		line = strchr(line, ':') + 1;
	while (line && *line == ' ')
		line++;
	if (line && *line && *line != '\n')
		snprintf(ret, n, "the compiler refused it: %.*s", (int)strcspn(line, "\n"), line);
	else
		snprintf(ret, n, "the driver did not compile the rewritten PTX: error %d", c->err);
}

static int refuse(struct build *b, const char *kernel)
{
	struct refused *more = reallocarray(b->refused, b->nr_refused + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	b->refused = more;
	more += b->nr_refused;
	more->name = copy_text(kernel);
	if (!more->name)
		return -ENOMEM;
	complaint(&b->code, more->why, sizeof(more->why));
	ttmon_inj_say(false, "%s: %s is not recorded: %s", b->module, kernel, more->why);
	b->nr_refused++;
	return 0;
}

/* The names of the copies, a line each. NULL: no memory. */
static char *copies(const struct ttmon_ptx_result *r)
{
	char *names = NULL;
	size_t len;
	FILE *f = open_memstream(&names, &len);

	if (!f)
		return NULL;
	for (size_t i = 0; i < r->nr_kernels; i++) {
		if (!*r->kernels[i].why)
			fprintf(f, TTMON_PTX_PREFIX "%s\n", r->kernels[i].name);
	}
	if (fclose(f)) {
		free(names);
		return NULL;
	}
	return names;
}

/* Rewritten and compiled: into r and code. 0 also where nothing is selected: without r.text. */
static int build(struct build *b)
{
	char *names;
	int err;

	ttmon_ptx_fini(&b->r);
	free(b->code.cubin);
	b->code = (struct ttmon_inj_code){ 0 };
	err = ttmon_ptx_rewrite(b->image->text, b->image->len, &b->opts, &b->r, b->why, b->why_n);
	if (err || !b->r.text || !b->jit)
		return err ? -EINVAL : 0;
	names = copies(&b->r);
	if (!names)
		return -ENOMEM;
	b->tries++;
	err = ttmon_inj_compile(b->r.text, b->r.recorder, names, b->jit, b->until_ns, &b->code);
	free(names);
	return err;
}

static bool is_name(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

/* Is a copy of that kernel named in the log? */
static bool is_named(const char *log, const char *kernel)
{
	size_t n = strlen(kernel);

	for (const char *p = log; (p = strstr(p, TTMON_PTX_PREFIX)); p++) {
		const char *name = p + strlen(TTMON_PTX_PREFIX);

		if (!strncmp(name, kernel, n) && !is_name(name[n]))
			return true;
	}
	return false;
}

/* The kernels whose copies the log names. 1: there are some; 0: none; -ENOMEM. */
static int refuse_named(struct build *b)
{
	int some = 0, err = 0;

	for (size_t i = 0; i < b->r.nr_kernels && !err; i++) {
		if (*b->r.kernels[i].why || !is_named(b->code.log, b->r.kernels[i].name))
			continue;
		err = refuse(b, b->r.kernels[i].name);
		some = 1;
	}
	return err ? err : some;
}

/* The compiler refused these n together: which of them does it refuse each for itself? */
static int refuse_halves(struct build *b, char *const *names, size_t n)
{
	if (n == 1)
		return refuse(b, names[0]);
	for (int i = 0; i < 2; i++) {
		int err;

		b->half = names + (i ? n / 2 : 0);
		b->nr_half = i ? n - n / 2 : n / 2;
		err = build(b);
		if (err == -EBADMSG)
			err = refuse_halves(b, names + (i ? n / 2 : 0), i ? n - n / 2 : n / 2);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Nothing in the log names a kernel: halves of them are tried. 1: some are refused; 0: none for
 * itself.
 */
static int search(struct build *b)
{
	size_t n = 0, before = b->nr_refused;
	char **names = calloc(b->r.nr_kernels + 1, sizeof(*names));
	int err = names ? 0 : -ENOMEM;

	for (size_t i = 0; i < b->r.nr_kernels && !err; i++) {
		if (*b->r.kernels[i].why)
			continue;
		names[n] = copy_text(b->r.kernels[i].name);
		err = names[n++] ? 0 : -ENOMEM;
	}
	/* A single one is what was refused. */
	if (!err && n)
		err = refuse_halves(b, names, n);
	b->half = NULL;
	b->nr_half = 0;
	for (size_t i = 0; names && i < n; i++)
		free(names[i]);
	free(names);
	return err ? err : b->nr_refused > before;
}

/* As build(), until the compiler takes what is left. */
static int build_what_compiles(struct build *b)
{
	for (;;) {
		int err = build(b), more;

		if (err != -EBADMSG)
			return err;
		complaint(&b->code, b->why, b->why_n);
		more = refuse_named(b);
		if (!more)
			more = search(b);
		if (more < 0)
			return more;
		if (!more)
			return -EBADMSG;
	}
}

static void build_fini(struct build *b)
{
	for (size_t i = 0; i < b->nr_refused; i++)
		free(b->refused[i].name);
	free(b->refused);
	free(b->code.cubin);
	ttmon_ptx_fini(&b->r);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What a text becomes depends on what it is compiled for as well. */
static void hash_text(const struct ttmon_mt_image *image, const struct ttmon_inj_jit *jit, uint64_t hash[2])
{
	uint64_t of_jit[2];

	ttmon_inj_hash(image->text, image->len, hash);
	if (!jit)
		return;
	ttmon_inj_hash(jit, sizeof(*jit), of_jit);
	hash[1] ^= of_jit[0] + (uint64_t)ttmon_inj_max_arch() * 0x9e3779b97f4a7c15;
}

/* Those that the compiler refused say so. -ENOMEM. */
static int tell_refused(const struct ttmon_inj_text *t, const struct build *b)
{
	for (size_t i = 0; i < t->nr_kernels; i++) {
		const struct refused *r = find_refused(b, t->kernels[i]->name);

		if (!r)
			continue;
		free(t->kernels[i]->why);
		t->kernels[i]->why = copy_text(r->why);
		if (!t->kernels[i]->why)
			return -ENOMEM;
	}
	return 0;
}

/* What was built, as a text that lasts. NULL: why. */
static struct ttmon_inj_text *text_new(struct build *b, const uint64_t hash[2])
{
	struct ttmon_inj_text *t = calloc(1, sizeof(*t));

	if (!t || next_site + b->r.nr_sites > TTMON_MTC_MAX_SITES) {
		snprintf(b->why, b->why_n, t ? "more than %u instructions in all" : "out of memory",
			 TTMON_MTC_MAX_SITES);
		goto fail;
	}
	snprintf(t->module, sizeof(t->module), "%s", b->module);
	if (take_kernels(t, &b->r, next_site) || tell_refused(t, b)) {
		snprintf(b->why, b->why_n, "out of memory");
		goto fail;
	}
	t->hash[0] = hash[0];
	t->hash[1] = hash[1];
	t->len = b->image->len;
	t->ptx = b->r.text;
	t->none = !b->r.text;
	t->cubin = b->code.cubin;
	t->cubin_bytes = b->code.size;
	b->r.text = NULL;
	b->code.cubin = NULL;
	next_site += (uint32_t)b->r.nr_sites;
	return t;
fail:
	for (size_t i = 0; t && i < t->nr_kernels; i++)
		free_kernel(t->kernels[i]);
	if (t) {
		free_kernel(t->functions);
		free(t->kernels);
	}
	free(t);
	return NULL;
}

static void list(struct ttmon_inj_text *t)
{
	pthread_rwlock_wrlock(&ttmon_inj_lock);
	for (size_t i = 0; i < t->nr_kernels; i++)
		ttmon_inj_kernel_list(t->kernels[i]);
	if (t->functions)
		t->functions->number = nr_kernels++;
	t->next = texts;
	texts = t;
	pthread_rwlock_unlock(&ttmon_inj_lock);
}

const struct ttmon_inj_text *ttmon_inj_rewrite(const struct ttmon_mt_image *image, const char *module,
					       const struct ttmon_inj_jit *jit, char *why, size_t n)
{
	const struct ttmon_inj_conf *conf = ttmon_inj_conf();
	uint64_t hash[2], start_ns = now_ns(), ms;
	struct ttmon_inj_text *t;
	struct build b = { .image = image,
			   .jit = jit,
			   .module = module,
			   .opts = { .aggregate = conf->aggregate,
				     .spaces = conf->spaces,
				     .first_site = next_site,
				     .counters = conf->aggregate ? TTMON_INJ_AGG_SITES : 0,
				     .instr_begin = conf->instr_begin,
				     .instr_end = conf->instr_end,
				     .apart = jit,
				     .select = wanted,
				     .ctx = &b },
			   .until_ns = start_ns + conf->compile_ms * 1000000,
			   .why = why,
			   .why_n = n };
	int err;

	hash_text(image, jit, hash);
	for (t = texts; t; t = t->next)
		if (t->len == image->len && t->hash[0] == hash[0] && t->hash[1] == hash[1] &&
		    (t->ptx || t->cubin || t->none))
			return t;
	err = build_what_compiles(&b);
	/*
	 * Without a linker or a context the text itself is loaded, with the recorder in it, and nothing is
	 * known before.
	 */
	if (err == -ENOSYS) {
		b.opts.apart = false;
		b.jit = NULL;
		err = build(&b);
	}
	ms = (now_ns() - start_ns) / 1000000;
	if (!err)
		t = text_new(&b, hash);
	else if (err == -ETIMEDOUT)
		snprintf(why, n, "compiling it took more than %llu ms", (unsigned long long)conf->compile_ms);
	else if (err == -ENOMEM)
		snprintf(why, n, "out of memory");
	if (b.tries && ms >= 1000)
		ttmon_inj_say(false, "%s: compiling it with the recorder took %llu.%llu s%s", module,
			      (unsigned long long)ms / 1000, (unsigned long long)ms % 1000 / 100,
			      b.tries > 1 ? ", in several tries" : "");
	if (t)
		list(t);
	else if (b.tries)
		ttmon_inj_say(false, "%s: %s; it is loaded as it is", module, why);
	build_fini(&b);
	return t;
}

void ttmon_inj_settle(const struct ttmon_inj_text *text)
{
	struct ttmon_inj_text *t = (struct ttmon_inj_text *)text;
	size_t len = t->cubin ? t->cubin_bytes : t->ptx ? strlen(t->ptx) : 0;

	if (t->kept || !len)
		return;
	/* Machine code stands for its text. */
	if (t->cubin) {
		free(t->ptx);
		t->ptx = NULL;
	}
	if (cached + len <= CACHE_MAX) {
		cached += len;
		t->kept = true;
		return;
	}
	free(t->ptx);
	free(t->cubin);
	t->ptx = NULL;
	t->cubin = NULL;
}

struct ttmon_inj_kernel *ttmon_inj_kernels(uint32_t *count)
{
	struct ttmon_inj_kernel *k;

	pthread_rwlock_rdlock(&ttmon_inj_lock);
	k = kernels;
	*count = nr_kernels;
	pthread_rwlock_unlock(&ttmon_inj_lock);
	return k;
}

struct ttmon_inj_kernel *ttmon_inj_kernel_unknown(const char *name, const char *module, const char *why)
{
	struct ttmon_inj_kernel *k;

	for (k = kernels; k; k = k->next)
		if (k->why && !strcmp(k->name, name) && !strcmp(k->module, module))
			return k;
	k = ttmon_inj_kernel_new(name, module, why);
	if (k) {
		atomic_store(&k->loaded, true);
		ttmon_inj_kernel_list(k);
	}
	return k;
}
