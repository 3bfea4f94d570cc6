// SPDX-License-Identifier: GPL-2.0-only
/*
 * module.c: modules and libraries of the program. When one is loaded its PTX is taken and rewritten (memtrace/ptx.h), and that text goes to the driver; whatever fails, the
 * image itself goes there, as it came.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memtrace/image.h"
#include "memtrace/inject/inj_mod.h"
#include "memtrace/ptx.h"

#define CACHE_MAX (256u << 20) /* bytes of rewritten text that are kept for the next load of the same */

pthread_rwlock_t ttmon_inj_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct ttmon_inj_text *texts;
static struct ttmon_inj_module *modules;
static struct ttmon_inj_kernel *kernels;
static uint32_t nr_kernels, next_site;
static size_t cached;

/* ---- texts ---- */

static void hash_text(const char *p, size_t n, uint64_t ret[2])
{
	uint64_t a = 0xcbf29ce484222325, b = 0x9e3779b97f4a7c15;

	for (size_t i = 0; i < n; i++) {
		a = (a ^ (uint8_t)p[i]) * 0x100000001b3;
		b = (b ^ (uint8_t)p[i]) * 0xff51afd7ed558ccd;
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

static struct ttmon_inj_kernel *new_kernel(const char *name, const char *module, const char *why)
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

/* Sites from..from + n - 1 of what was rewritten, with texts of their own; the first site of all has the number base. */
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
		struct ttmon_inj_kernel *k = new_kernel(p->name, t->module, p->why);

		t->kernels[t->nr_kernels++] = k;
		if (!k || take_sites(k, r, p->first, p->sites, base))
			return -ENOMEM;
		k->params = p->params;
		k->param_bytes = p->param_bytes;
		k->left_out = p->left_out;
		of_kernels = of_kernels > (size_t)p->first + p->sites ? of_kernels : (size_t)p->first + p->sites;
	}
	/* Behind those of the kernels are those of the functions. */
	if (of_kernels == r->nr_sites)
		return 0;
	t->functions = new_kernel("functions", t->module, NULL);
	if (!t->functions || take_sites(t->functions, r, of_kernels, r->nr_sites - of_kernels, base))
		return -ENOMEM;
	for (size_t i = 0; i < t->nr_kernels; i++)
		t->kernels[i]->functions = t->functions;
	return 0;
}

/* With the lock held. */
static void list_kernel(struct ttmon_inj_kernel *k)
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

/* Only one text is rewritten at a time: numbers of sites are given in order, and JIT compilers are no better at it. */
static pthread_mutex_t rewriting = PTHREAD_MUTEX_INITIALIZER;

/* The rewritten text, with rewriting held. NULL: why. */
static const struct ttmon_inj_text *rewrite(const struct ttmon_mt_image *image, const char *module, char *why, size_t n)
{
	const struct ttmon_inj_conf *conf = ttmon_inj_conf();
	struct ttmon_ptx_opts opts = { .aggregate = conf->aggregate,
				       .spaces = conf->spaces,
				       .first_site = next_site,
				       .instr_begin = conf->instr_begin,
				       .instr_end = conf->instr_end,
				       .select = wanted };
	struct ttmon_ptx_result r = { 0 };
	struct ttmon_inj_text *t;
	uint64_t hash[2];
	int err;

	hash_text(image->text, image->len, hash);
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
		list_kernel(t->kernels[i]);
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

/* The driver has compiled it, or will not: a text that is too much to keep goes. */
static void settle(const struct ttmon_inj_text *text)
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

/* ---- loading ---- */

static int max_arch(void)
{
	int dev = 0, major = 0, minor = 0;

	if (CALL(cuCtxGetDevice, &dev))
		dev = 0;
	if (CALL(cuDeviceGetAttribute, &major, 75, dev) || CALL(cuDeviceGetAttribute, &minor, 76, dev))
		return 0;
	return major * 10 + minor;
}

void ttmon_inj_remember(void *handle, void *lib, const struct ttmon_inj_text *text, const char *name, const char *why)
{
	struct ttmon_inj_module *m = calloc(1, sizeof(*m)), *old;

	if (!m)
		return;
	m->handle = handle;
	m->lib = lib;
	m->text = text;
	m->why = why ? strdup(why) : NULL;
	snprintf(m->name, sizeof(m->name), "%s", name);
	for (size_t i = 0; text && i < text->nr_kernels; i++)
		atomic_store(&text->kernels[i]->loaded, true);
	pthread_rwlock_wrlock(&ttmon_inj_lock);
	/* A handle that was used before, by a module whose context is gone. */
	for (old = modules; old; old = old->next)
		if (old->handle == handle)
			old->handle = NULL;
	m->next = modules;
	modules = m;
	pthread_rwlock_unlock(&ttmon_inj_lock);
}

typedef int (*load_fn)(void *ctx, void **handle, const void *image);

/*
 * The module that ptx becomes with the recorder in it. False: why; then *text is what the text says of its kernels, where none of them is recorded.
 */
static bool load_rewritten(void **handle, const struct ttmon_mt_image *ptx, const char *module, load_fn load, void *ctx,
			   const struct ttmon_inj_text **text, char *why, size_t n)
{
	bool loaded = false;
	int err;

	pthread_mutex_lock(&rewriting);
	*text = rewrite(ptx, module, why, n);
	if (*text && (*text)->none) {
		snprintf(why, n, "not selected");
	} else if (*text) {
		err = load(ctx, handle, (*text)->ptx);
		settle(*text);
		loaded = !err;
		if (err) {
			*text = NULL;
			snprintf(why, n, "the driver did not take the rewritten PTX: error %d", err);
			ttmon_inj_say(false, "%s: %s; it is loaded as it is", module, why);
		}
	}
	pthread_mutex_unlock(&rewriting);
	return loaded;
}

/* load: the driver's function with everything but the image. text_load: the same, for text, where the program's own takes none; NULL: load. */
static int load_image(void **handle, const void *image, size_t size, const char *name, load_fn load, load_fn text_load,
		      void *ctx)
{
	struct ttmon_mt_image ptx = { 0 };
	const struct ttmon_inj_text *text = NULL;
	char why[160] = "", module[128];
	bool loaded = false;
	int err;

	if (ttmon_inj_conf()->off || !image)
		return load(ctx, handle, image);
	if (name)
		snprintf(module, sizeof(module), "%s", name);
	if (!name && !ttmon_inj_module_name(image, module, sizeof(module))) {
		snprintf(why, sizeof(why), "one of NVIDIA's libraries");
	} else if (!ttmon_mt_image_ptx(image, size, (uint32_t)max_arch(), &ptx, why, sizeof(why))) {
		loaded = load_rewritten(handle, &ptx, module, text_load ? text_load : load, ctx, &text, why,
					sizeof(why));
		free(ptx.text);
	}
	err = loaded ? 0 : load(ctx, handle, image);
	if (err)
		return err;
	ttmon_inj_say(true, "%s: %s%s", module, loaded ? "recorded, from " : "as it is: ", loaded ? ptx.from : why);
	ttmon_inj_remember(*handle, NULL, text, module, why);
	return 0;
}

static int plain_load(void *ctx, void **handle, const void *image)
{
	(void)ctx;
	return CALL(cuModuleLoadData, handle, image);
}

int cuModuleLoadData(void **mod, const void *image)
{
	return load_image(mod, image, SIZE_MAX, NULL, plain_load, NULL, NULL);
}

static int fat_load(void *ctx, void **handle, const void *image)
{
	(void)ctx;
	return CALL(cuModuleLoadFatBinary, handle, image);
}

int cuModuleLoadFatBinary(void **mod, const void *image)
{
	return load_image(mod, image, SIZE_MAX, NULL, fat_load, plain_load, NULL);
}

struct jit {
	unsigned int n, nl;
	int *opts, *lopts;
	void **vals, **lvals;
	const char *path;
};

static int jit_load(void *ctx, void **handle, const void *image)
{
	const struct jit *j = ctx;

	return CALL(cuModuleLoadDataEx, handle, image, j->n, j->opts, j->vals);
}

int cuModuleLoadDataEx(void **mod, const void *image, unsigned int n, int *opts, void **vals)
{
	struct jit j = { .n = n, .opts = opts, .vals = vals };

	return load_image(mod, image, SIZE_MAX, NULL, jit_load, NULL, &j);
}

static int lib_load(void *ctx, void **handle, const void *image)
{
	const struct jit *j = ctx;

	return CALL(cuLibraryLoadData, handle, image, j->opts, j->vals, j->n, j->lopts, j->lvals, j->nl);
}

int cuLibraryLoadData(void **lib, const void *image, int *jopts, void **jvals, unsigned int nj, int *lopts,
		      void **lvals, unsigned int nl)
{
	struct jit j = { .n = nj, .nl = nl, .opts = jopts, .vals = jvals, .lopts = lopts, .lvals = lvals };

	return load_image(lib, image, SIZE_MAX, NULL, lib_load, NULL, &j);
}

static int file_load(void *ctx, void **handle, const void *image)
{
	const struct jit *j = ctx;

	(void)image;
	return CALL(cuModuleLoad, handle, j->path);
}

static int lib_file_load(void *ctx, void **handle, const void *image)
{
	const struct jit *j = ctx;

	(void)image;
	return CALL(cuLibraryLoadFromFile, handle, j->path, j->opts, j->vals, j->n, j->lopts, j->lvals, j->nl);
}

/* The file as an image; one that cannot be read is the driver's to refuse. */
static int load_file(void **handle, const char *path, load_fn load, load_fn text_load, struct jit *j)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1, err;
	struct stat st;
	void *p = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		return load(j, handle, NULL);
	err = load_image(handle, p, (size_t)st.st_size, strrchr(path, '/') ? strrchr(path, '/') + 1 : path, load,
			 text_load, j);
	munmap(p, (size_t)st.st_size);
	return err;
}

int cuModuleLoad(void **mod, const char *path)
{
	struct jit j = { .path = path };

	return load_file(mod, path, file_load, plain_load, &j);
}

int cuLibraryLoadFromFile(void **lib, const char *path, int *jopts, void **jvals, unsigned int nj, int *lopts,
			  void **lvals, unsigned int nl)
{
	struct jit j = {
		.n = nj, .nl = nl, .opts = jopts, .vals = jvals, .lopts = lopts, .lvals = lvals, .path = path
	};

	return load_file(lib, path, lib_file_load, lib_load, &j);
}

/* ---- what is asked of them ---- */

struct ttmon_inj_module *ttmon_inj_module_of(const void *handle)
{
	for (struct ttmon_inj_module *m = modules; m; m = m->next)
		if (m->handle == handle)
			return m;
	return NULL;
}

struct ttmon_inj_kernel *ttmon_inj_kernel_of(const struct ttmon_inj_module *m, const char *name)
{
	const char *module = m ? m->name : "unknown", *why = m && m->why ? m->why : "its module was loaded unseen";
	struct ttmon_inj_kernel *k;

	for (size_t i = 0; m && m->text && i < m->text->nr_kernels; i++)
		if (!strcmp(m->text->kernels[i]->name, name))
			return m->text->kernels[i];
	if (m && m->text)
		why = "not in the module's PTX";
	for (k = kernels; k; k = k->next)
		if (k->why && !strcmp(k->name, name) && !strcmp(k->module, module))
			return k;
	k = new_kernel(name, module, why);
	if (k) {
		atomic_store(&k->loaded, true);
		list_kernel(k);
	}
	return k;
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

unsigned int ttmon_inj_copies(const void *owner)
{
	unsigned int n = 0;
	struct ttmon_inj_module *m;

	pthread_rwlock_rdlock(&ttmon_inj_lock);
	m = ttmon_inj_module_of(owner);
	for (size_t i = 0; m && m->text && i < m->text->nr_kernels; i++)
		n += !m->text->kernels[i]->why;
	pthread_rwlock_unlock(&ttmon_inj_lock);
	return n;
}

void ttmon_inj_forget_module(const void *owner)
{
	struct ttmon_inj_module **p, *m;

	for (p = &modules; (m = *p);) {
		if (m->handle == owner || m->lib == owner) {
			*p = m->next;
			free((char *)m->why);
			free(m);
		} else {
			p = &m->next;
		}
	}
}

void *ttmon_inj_module_in(const void *lib)
{
	void *handle = NULL;

	pthread_rwlock_rdlock(&ttmon_inj_lock);
	for (struct ttmon_inj_module *m = modules; m && !handle; m = m->next)
		if (m->lib == lib)
			handle = m->handle;
	pthread_rwlock_unlock(&ttmon_inj_lock);
	return handle;
}
