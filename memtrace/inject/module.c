// SPDX-License-Identifier: GPL-2.0-only
/*
 * module.c: modules and libraries of the program. When one is loaded its PTX is taken and rewritten
 * (memtrace/ptx/ptx.h), and that text goes to the driver; whatever fails, the image itself goes there,
 * as it came.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memtrace/ptx/image.h"
#include "memtrace/inject/inj_mod.h"
#include "memtrace/ptx/ptx.h"

pthread_rwlock_t ttmon_inj_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct ttmon_inj_module *modules;

/* ---- loading ---- */

int ttmon_inj_max_arch(void)
{
	int dev = 0, major = 0, minor = 0;

	if (CALL(cuCtxGetDevice, &dev))
		dev = 0;
	if (CALL(cuDeviceGetAttribute, &major, 75, dev) || CALL(cuDeviceGetAttribute, &minor, 76, dev))
		return 0;
	return major * 10 + minor;
}

void *ttmon_inj_current(void)
{
	void *ctx = NULL;

	return CALL(cuCtxGetCurrent, &ctx) ? NULL : ctx;
}

void ttmon_inj_remember(void *handle, void *lib, void *ctx, const struct ttmon_inj_text *text, const char *name,
			const char *why)
{
	struct ttmon_inj_module *m = calloc(1, sizeof(*m)), *old;

	if (!m)
		return;
	m->handle = handle;
	m->lib = lib;
	m->ctx = ctx;
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

/* The ctx, NULL where there are none: options of the compiler, of a library, and a file. */
struct jit {
	unsigned int n, nl;
	int *opts, *lopts;
	void **vals, **lvals;
	const char *path;
};

typedef int (*load_fn)(void *ctx, void **handle, const void *image);

/*
 * Loads the module that ptx becomes with the recorder in it. Returns false with why; *text then has
 * the information about its kernels, none of which is recorded.
 */
static bool load_rewritten(void **handle, const struct ttmon_mt_image *ptx, const char *module,
			   const struct ttmon_inj_jit *jit, load_fn load, void *ctx, const struct ttmon_inj_text **text,
			   char *why, size_t n)
{
	bool loaded = false;
	int err;

	pthread_mutex_lock(&ttmon_inj_rewriting);
	*text = ttmon_inj_rewrite(ptx, module, jit, why, n);
	if (*text && (*text)->none) {
		snprintf(why, n, "not selected");
	} else if (*text) {
		err = load(ctx, handle, (*text)->cubin ? (*text)->cubin : (*text)->ptx);
		ttmon_inj_settle(*text);
		loaded = !err;
		if (err) {
			*text = NULL;
			snprintf(why, n, "the driver did not take the rewritten PTX: error %d", err);
			ttmon_inj_say(false, "%s: %s; it is loaded as it is", module, why);
		}
	}
	pthread_mutex_unlock(&ttmon_inj_rewriting);
	return loaded;
}

static int lib_load(void *ctx, void **handle, const void *image);
static int lib_file_load(void *ctx, void **handle, const void *image);

static void loaded_new(void *handle, load_fn load, const struct ttmon_inj_text *text, const char *name, const char *why)
{
	bool library = load == lib_load || load == lib_file_load;

	ttmon_inj_remember(handle, NULL, library ? NULL : ttmon_inj_current(), text, name, why);
}

/*
 * load: the driver's function with everything but the image. text_load: the same, for text, where the
 * program's own takes none; NULL: load.
 */
static int load_image(void **handle, const void *image, size_t size, const char *name, load_fn load, load_fn text_load,
		      void *ctx)
{
	struct ttmon_mt_image ptx = { 0 };
	const struct ttmon_inj_text *text = NULL;
	const struct ttmon_inj_linked *linked;
	const struct jit *given = ctx;
	struct ttmon_inj_jit jit;
	char why[160] = "", module[128];
	bool loaded = false;
	int err;

	if (ttmon_inj_conf()->off || !image)
		return load(ctx, handle, image);
	linked = ttmon_inj_linked(image, size);
	if (linked) {
		err = load(ctx, handle, image);
		if (!err)
			loaded_new(*handle, load, linked->text, linked->name, linked->why);
		return err;
	}
	if (name)
		snprintf(module, sizeof(module), "%s", name);
	if (!name && !ttmon_inj_module_name(image, module, sizeof(module))) {
		snprintf(why, sizeof(why), "one of NVIDIA's libraries");
	} else if (!ttmon_mt_image_ptx(image, size, (uint32_t)ttmon_inj_max_arch(), &ptx, why, sizeof(why))) {
		ttmon_inj_jit_take(&jit, given ? given->n : 0, given ? given->opts : NULL, given ? given->vals : NULL);
		loaded = load_rewritten(handle, &ptx, module, &jit, text_load ? text_load : load, ctx, &text, why,
					sizeof(why));
		free(ptx.text);
	}
	err = loaded ? 0 : load(ctx, handle, image);
	if (err)
		return err;
	ttmon_inj_say(true, "%s: %s%s", module, loaded ? "recorded, from " : "as it is: ", loaded ? ptx.from : why);
	loaded_new(*handle, load, text, module, why);
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

#define LIBRARY_PRESERVED 1 /* CU_LIBRARY_BINARY_IS_PRESERVED: the driver may go on using the caller's bytes */

/* What is ours and not the caller's goes when it is loaded: the driver is to copy it. */
static int lib_text_load(void *ctx, void **handle, const void *image)
{
	const struct jit *j = ctx;
	int *lopts = j->nl ? malloc(j->nl * sizeof(*lopts)) : NULL;
	void **lvals = j->nl ? malloc(j->nl * sizeof(*lvals)) : NULL;
	unsigned int nl = 0;
	int err = TTMON_INJ_NO_MEMORY;

	if (!j->nl || (lopts && lvals)) {
		for (unsigned int i = 0; i < j->nl; i++) {
			if (j->lopts[i] == LIBRARY_PRESERVED)
				continue;
			lopts[nl] = j->lopts[i];
			lvals[nl++] = j->lvals ? j->lvals[i] : NULL;
		}
		err = CALL(cuLibraryLoadData, handle, image, j->opts, j->vals, j->n, lopts, lvals, nl);
	}
	free(lopts);
	free(lvals);
	return err;
}

int cuLibraryLoadData(void **lib, const void *image, int *jopts, void **jvals, unsigned int nj, int *lopts,
		      void **lvals, unsigned int nl)
{
	struct jit j = { .n = nj, .nl = nl, .opts = jopts, .vals = jvals, .lopts = lopts, .lvals = lvals };

	return load_image(lib, image, SIZE_MAX, NULL, lib_load, lib_text_load, &j);
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

void *ttmon_inj_map(const char *path, size_t *n)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct stat st;
	void *p = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
		p = mmap(NULL, *n = (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* Loads the file as an image; if it cannot be read, the driver is left to refuse it. */
static int load_file(void **handle, const char *path, load_fn load, load_fn text_load, struct jit *j)
{
	size_t n;
	void *p = ttmon_inj_map(path, &n);
	int err;

	if (!p)
		return load(j, handle, NULL);
	err = load_image(handle, p, n, strrchr(path, '/') ? strrchr(path, '/') + 1 : path, load, text_load, j);
	munmap(p, n);
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

	return load_file(lib, path, lib_file_load, lib_text_load, &j);
}

/* ---- queries about modules ---- */

struct ttmon_inj_module *ttmon_inj_module_of(const void *handle)
{
	for (struct ttmon_inj_module *m = modules; m; m = m->next)
		if (m->handle == handle)
			return m;
	return NULL;
}

struct ttmon_inj_kernel *ttmon_inj_kernel_of(const struct ttmon_inj_module *m, const char *name)
{
	const char *why = "its module was loaded unseen";

	for (size_t i = 0; m && m->text && i < m->text->nr_kernels; i++)
		if (!strcmp(m->text->kernels[i]->name, name))
			return m->text->kernels[i];
	if (m && m->why && *m->why)
		why = m->why;
	else if (m && m->text)
		why = "not in the module's PTX";
	return ttmon_inj_kernel_unknown(name, m ? m->name : "unknown", why);
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
