// SPDX-License-Identifier: GPL-2.0-only
/*
 * handle.c: the handles of kernels, learned when the program requests them, each with the handle of
 * the recorded copy. It hides the copies from the program, and mirrors attributes from the originals.
 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memtrace/inject/inj_mod.h"
#include "memtrace/ptx/ptx.h"

#define PREFIX_LEN (sizeof(TTMON_PTX_PREFIX) - 1)

static void *handles; /* tsearch(3): struct ttmon_inj_handle by handle */
static void *copies;  /* the same by copy */

static int by_handle(const void *a, const void *b)
{
	const struct ttmon_inj_handle *x = a, *y = b;

	return x->handle < y->handle ? -1 : x->handle > y->handle;
}

static int by_copy(const void *a, const void *b)
{
	const struct ttmon_inj_handle *x = a, *y = b;

	return x->copy < y->copy ? -1 : x->copy > y->copy;
}

/* ---- handles ---- */

static void put_handle(struct ttmon_inj_handle *h)
{
	const struct ttmon_inj_handle as_copy = { .copy = h->handle };
	struct ttmon_inj_handle **p = tfind(&as_copy, &copies, by_copy), *stale = p ? *p : NULL;

	/* The context of that copy is gone, and the number now belongs to a handle of the program. */
	if (stale) {
		tdelete(stale, &copies, by_copy);
		stale->copy = NULL;
	}
	p = tsearch(h, &handles, by_handle);
	if (!p) {
		free(h);
		return;
	}
	if (*p != h) {
		/* Requested again, or a reused number. */
		if ((*p)->copy)
			tdelete(*p, &copies, by_copy);
		(*p)->copy = h->copy;
		(*p)->kernel = h->kernel;
		(*p)->owner = h->owner;
		(*p)->ctx = h->ctx;
		(*p)->broken = false;
		free(h);
		h = *p;
	}
	if (h->copy)
		tsearch(h, &copies, by_copy);
}

/* get: the driver's function that gives a handle by name, of the same kind as handle. */
static void learn(void *handle, void *owner, const char *name, int (*get)(void **, void *, const char *))
{
	const struct ttmon_inj_module *m;
	struct ttmon_inj_handle *h;
	struct ttmon_inj_kernel *k;
	char copy_name[4200];
	void *copy = NULL, *ctx;

	if (!strncmp(name, TTMON_PTX_PREFIX, PREFIX_LEN))
		return;
	pthread_rwlock_wrlock(&ttmon_inj_lock);
	m = ttmon_inj_module_of(owner);
	ctx = m ? m->ctx : NULL;
	k = ttmon_inj_kernel_of(m, name);
	pthread_rwlock_unlock(&ttmon_inj_lock);
	if (!k)
		return;
	if (!k->why && get &&
	    (size_t)snprintf(copy_name, sizeof(copy_name), TTMON_PTX_PREFIX "%s", name) < sizeof(copy_name) &&
	    get(&copy, owner, copy_name))
		copy = NULL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return;
	h->handle = handle;
	h->copy = copy;
	h->kernel = k;
	h->owner = owner;
	h->ctx = ctx;
	pthread_rwlock_wrlock(&ttmon_inj_lock);
	put_handle(h);
	pthread_rwlock_unlock(&ttmon_inj_lock);
}

int cuModuleGetFunction(void **f, void *mod, const char *name)
{
	int err = CALL(cuModuleGetFunction, f, mod, name);

	if (!err && name && !ttmon_inj_conf()->off)
		learn(*f, mod, name, REAL(cuModuleGetFunction));
	return err;
}

int cuLibraryGetKernel(void **k, void *lib, const char *name)
{
	int err = CALL(cuLibraryGetKernel, k, lib, name);

	if (!err && name && !ttmon_inj_conf()->off)
		learn(*k, lib, name, REAL(cuLibraryGetKernel));
	return err;
}

int cuLibraryGetModule(void **mod, void *lib)
{
	int err = CALL(cuLibraryGetModule, mod, lib);
	struct ttmon_inj_module *l;
	bool known;

	if (err || ttmon_inj_conf()->off)
		return err;
	pthread_rwlock_rdlock(&ttmon_inj_lock);
	l = ttmon_inj_module_of(lib);
	known = ttmon_inj_module_of(*mod);
	pthread_rwlock_unlock(&ttmon_inj_lock);
	if (l && !known)
		ttmon_inj_remember(*mod, lib, ttmon_inj_current(), l->text, l->name, l->why);
	return 0;
}

int cuKernelGetFunction(void **f, void *k)
{
	int err = CALL(cuKernelGetFunction, f, k);
	struct ttmon_inj_handle known, *h;

	if (err || ttmon_inj_conf()->off || !ttmon_inj_find(k, &known))
		return err;
	h = calloc(1, sizeof(*h));
	if (!h)
		return 0;
	h->handle = *f;
	h->kernel = known.kernel;
	h->owner = known.owner;
	h->ctx = ttmon_inj_current();
	if (known.copy && CALL(cuKernelGetFunction, &h->copy, known.copy))
		h->copy = NULL;
	pthread_rwlock_wrlock(&ttmon_inj_lock);
	put_handle(h);
	pthread_rwlock_unlock(&ttmon_inj_lock);
	return 0;
}

/* Looks up a handle that was never requested by name, by querying the driver. */
static void look_up(void *f)
{
	const char *name = NULL;
	void *mod = NULL;

	if (!CALL(cuFuncGetName, &name, f) && name && !CALL(cuFuncGetModule, &mod, f))
		learn(f, mod, name, REAL(cuModuleGetFunction));
	else if (!CALL(cuKernelGetName, &name, f) && name)
		learn(f, NULL, name, NULL);
}

bool ttmon_inj_find(void *f, struct ttmon_inj_handle *ret)
{
	struct ttmon_inj_handle key = { .handle = f }, **p;
	bool found = false;

	for (int i = 0; i < 2 && !found; i++) {
		if (i)
			look_up(f);
		pthread_rwlock_rdlock(&ttmon_inj_lock);
		p = tfind(&key, &handles, by_handle);
		found = p;
		if (found)
			*ret = **p;
		pthread_rwlock_unlock(&ttmon_inj_lock);
	}
	return found;
}

void *ttmon_inj_original(void *f)
{
	struct ttmon_inj_handle key = { .copy = f }, **p;
	void *original;

	pthread_rwlock_rdlock(&ttmon_inj_lock);
	p = f ? tfind(&key, &copies, by_copy) : NULL;
	original = p ? (*p)->handle : NULL;
	pthread_rwlock_unlock(&ttmon_inj_lock);
	return original;
}

/* ---- hiding the copies ---- */

int cuModuleGetFunctionCount(unsigned int *count, void *mod)
{
	int err = CALL(cuModuleGetFunctionCount, count, mod);
	unsigned int n = err ? 0 : ttmon_inj_copies(mod);

	if (!err && *count >= n)
		*count -= n;
	return err;
}

int cuLibraryGetKernelCount(unsigned int *count, void *lib)
{
	int err = CALL(cuLibraryGetKernelCount, count, lib);
	unsigned int n = err ? 0 : ttmon_inj_copies(lib);

	if (!err && *count >= n)
		*count -= n;
	return err;
}

/* Lists the first n functions that belong to the program. */
static int enumerate(void **ret, unsigned int n, void *owner, int (*all)(void **, unsigned int, void *),
		     int (*name_of)(const char **, void *))
{
	unsigned int copied = ttmon_inj_copies(owner), got = 0;
	const char *name;
	void **list;
	int err;

	if (!all)
		return TTMON_INJ_NOT_FOUND;
	if (!copied || !name_of || n > (1u << 24))
		return all(ret, n, owner);
	list = calloc((size_t)n + copied, sizeof(*list));
	if (!list)
		return 2; /* CUDA_ERROR_OUT_OF_MEMORY */
	err = all(list, n + copied, owner);
	for (unsigned int i = 0; !err && i < n + copied && got < n; i++) {
		if (!list[i] || (!name_of(&name, list[i]) && !strncmp(name, TTMON_PTX_PREFIX, PREFIX_LEN)))
			continue;
		ret[got++] = list[i];
	}
	free(list);
	return err;
}

int cuModuleEnumerateFunctions(void **fs, unsigned int n, void *mod)
{
	int err = enumerate(fs, n, mod, REAL(cuModuleEnumerateFunctions), REAL(cuFuncGetName));
	const char *name;

	for (unsigned int i = 0; !err && !ttmon_inj_conf()->off && i < n; i++)
		if (fs[i] && !CALL(cuFuncGetName, &name, fs[i]))
			learn(fs[i], mod, name, REAL(cuModuleGetFunction));
	return err;
}

int cuLibraryEnumerateKernels(void **ks, unsigned int n, void *lib)
{
	int err = enumerate(ks, n, lib, REAL(cuLibraryEnumerateKernels), REAL(cuKernelGetName));
	const char *name;

	/* Their names lead to no library from a launch: learnt here. */
	for (unsigned int i = 0; !err && !ttmon_inj_conf()->off && i < n; i++)
		if (ks[i] && !CALL(cuKernelGetName, &name, ks[i]))
			learn(ks[i], lib, name, REAL(cuLibraryGetKernel));
	return err;
}

/* ---- attributes: the copy's are those of the original ---- */

static void mirror(void *f, int (*set)(void *copy, int a, int b, int c), int a, int b, int c)
{
	struct ttmon_inj_handle h, **p;

	if (ttmon_inj_conf()->off || !ttmon_inj_find(f, &h) || !h.copy || !set(h.copy, a, b, c))
		return;
	pthread_rwlock_wrlock(&ttmon_inj_lock);
	p = tfind(&h, &handles, by_handle);
	if (p)
		(*p)->broken = true;
	pthread_rwlock_unlock(&ttmon_inj_lock);
}

static int set_kernel_attr(void *copy, int attr, int val, int dev)
{
	return CALL(cuKernelSetAttribute, attr, val, copy, dev);
}

int cuKernelSetAttribute(int attr, int val, void *k, int dev)
{
	int err = CALL(cuKernelSetAttribute, attr, val, k, dev);

	if (!err)
		mirror(k, set_kernel_attr, attr, val, dev);
	return err;
}

static int set_kernel_cache(void *copy, int config, int dev, int unused)
{
	(void)unused;
	return CALL(cuKernelSetCacheConfig, copy, config, dev);
}

int cuKernelSetCacheConfig(void *k, int config, int dev)
{
	int err = CALL(cuKernelSetCacheConfig, k, config, dev);

	if (!err)
		mirror(k, set_kernel_cache, config, dev, 0);
	return err;
}

static int set_attr(void *copy, int attr, int val, int unused)
{
	(void)unused;
	return CALL(cuFuncSetAttribute, copy, attr, val);
}

int cuFuncSetAttribute(void *f, int attr, int val)
{
	int err = CALL(cuFuncSetAttribute, f, attr, val);

	if (!err)
		mirror(f, set_attr, attr, val, 0);
	return err;
}

static int set_cache(void *copy, int config, int unused, int unused2)
{
	(void)unused;
	(void)unused2;
	return CALL(cuFuncSetCacheConfig, copy, config);
}

int cuFuncSetCacheConfig(void *f, int config)
{
	int err = CALL(cuFuncSetCacheConfig, f, config);

	if (!err)
		mirror(f, set_cache, config, 0, 0);
	return err;
}

static int set_shared(void *copy, int config, int unused, int unused2)
{
	(void)unused;
	(void)unused2;
	return CALL(cuFuncSetSharedMemConfig, copy, config);
}

int cuFuncSetSharedMemConfig(void *f, int config)
{
	int err = CALL(cuFuncSetSharedMemConfig, f, config);

	if (!err)
		mirror(f, set_shared, config, 0, 0);
	return err;
}

/* ---- the end of a module ---- */

static void *leaving;
static struct ttmon_inj_handle *left[64];
static size_t nr_left;

static void collect(const void *node, VISIT visit, int depth)
{
	struct ttmon_inj_handle *h = *(struct ttmon_inj_handle *const *)node;

	(void)depth;
	if ((visit == postorder || visit == leaf) && h->owner == leaving && nr_left < sizeof(left) / sizeof(*left))
		left[nr_left++] = h;
}

static void forget(void *owner)
{
	pthread_rwlock_wrlock(&ttmon_inj_lock);
	leaving = owner;
	do {
		nr_left = 0;
		twalk(handles, collect);
		for (size_t i = 0; i < nr_left; i++) {
			if (left[i]->copy)
				tdelete(left[i], &copies, by_copy);
			tdelete(left[i], &handles, by_handle);
			free(left[i]);
		}
	} while (nr_left);
	ttmon_inj_forget_module(owner);
	pthread_rwlock_unlock(&ttmon_inj_lock);
}

int cuModuleUnload(void *mod)
{
	if (mod && !ttmon_inj_conf()->off)
		forget(mod);
	return CALL(cuModuleUnload, mod);
}

int cuLibraryUnload(void *lib)
{
	if (lib && !ttmon_inj_conf()->off) {
		/* Functions of its modules, one for each context, too. */
		for (void *mod; (mod = ttmon_inj_module_in(lib));)
			forget(mod);
		forget(lib);
	}
	return CALL(cuLibraryUnload, lib);
}
