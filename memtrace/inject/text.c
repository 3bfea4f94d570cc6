// SPDX-License-Identifier: GPL-2.0-only
/*
 * text.c: PTX texts of the program, rewritten (memtrace/ptx/ptx.h), with their kernels and
 * instructions; each text once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memtrace/ptx/image.h"
#include "memtrace/inject/inj_chan.h"
#include "memtrace/inject/inj_mod.h"
#include "memtrace/ptx/ptx.h"

#define CACHE_MAX (256u << 20) /* bytes of rewritten text that are kept for the next load of the same */

/*
 * Only one text is rewritten at a time: numbers of sites are given in order, and JIT compilers are no
 * better at it.
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

/* Of its sites, those that have counters on the GPU; where every access is recorded, all. */
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
		/* What it calls by pointer, or in another input of a link, is not recorded either. */
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

static bool wanted(void *ctx, const char *kernel)
{
	(void)ctx;
	return ttmon_inj_kernel_wanted(kernel);
}

const struct ttmon_inj_text *ttmon_inj_rewrite(const struct ttmon_mt_image *image, const char *module, char *why,
					       size_t n)
{
	const struct ttmon_inj_conf *conf = ttmon_inj_conf();
	struct ttmon_ptx_opts opts = { .aggregate = conf->aggregate,
				       .spaces = conf->spaces,
				       .first_site = next_site,
				       .counters = conf->aggregate ? TTMON_INJ_AGG_SITES : 0,
				       .instr_begin = conf->instr_begin,
				       .instr_end = conf->instr_end,
				       .select = wanted };
	struct ttmon_ptx_result r = { 0 };
	struct ttmon_inj_text *t;
	uint64_t hash[2];
	int err;

	ttmon_inj_hash(image->text, image->len, hash);
	for (t = texts; t; t = t->next)
		if (t->len == image->len && t->hash[0] == hash[0] && t->hash[1] == hash[1] && (t->ptx || t->none))
			return t;
	err = ttmon_ptx_rewrite(image->text, image->len, &opts, &r, why, n);
	if (err)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t || next_site + r.nr_sites > TTMON_MTC_MAX_SITES) {
		snprintf(why, n, t ? "more than %u instructions in all" : "out of memory", TTMON_MTC_MAX_SITES);
		goto fail;
	}
	snprintf(t->module, sizeof(t->module), "%s", module);
	if (take_kernels(t, &r, next_site)) {
		snprintf(why, n, "out of memory");
		goto fail;
	}
	t->hash[0] = hash[0];
	t->hash[1] = hash[1];
	t->len = image->len;
	t->ptx = r.text;
	t->none = !r.text;
	r.text = NULL;
	next_site += (uint32_t)r.nr_sites;
	ttmon_ptx_fini(&r);
	pthread_rwlock_wrlock(&ttmon_inj_lock);
	for (size_t i = 0; i < t->nr_kernels; i++)
		ttmon_inj_kernel_list(t->kernels[i]);
	if (t->functions)
		t->functions->number = nr_kernels++;
	t->next = texts;
	texts = t;
	pthread_rwlock_unlock(&ttmon_inj_lock);
	return t;
fail:
	for (size_t i = 0; t && i < t->nr_kernels; i++)
		free_kernel(t->kernels[i]);
	if (t) {
		free_kernel(t->functions);
		free(t->kernels);
	}
	free(t);
	ttmon_ptx_fini(&r);
	return NULL;
}

void ttmon_inj_settle(const struct ttmon_inj_text *text)
{
	struct ttmon_inj_text *t = (struct ttmon_inj_text *)text;
	size_t len = t->ptx && !t->kept ? strlen(t->ptx) : 0;

	if (!len)
		return;
	if (cached + len <= CACHE_MAX) {
		cached += len;
		t->kept = true;
		return;
	}
	free(t->ptx);
	t->ptx = NULL;
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
