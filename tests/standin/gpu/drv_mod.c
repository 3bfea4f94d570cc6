// SPDX-License-Identifier: GPL-2.0-only
/* drv_mod.c: modules, and libraries. A library becomes a module of a context when one is requested. */
#include "drv.h"

#include <fnmatch.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * The registers that a code generator would use: more for longer functions, and at most as many as
 * allowed.
 */
static uint32_t registers(const struct gpu_func *f, int max)
{
	uint32_t n = 10 + f->nr_regs / 3;

	if (n > 255)
		n = 255;
	return max > 0 && n > (uint32_t)max ? (uint32_t)max : n;
}

void drv_keep_text(const char *text)
{
	static atomic_uint nr;
	const char *dir = drv_env("GPUSIM_PTX_LOG");
	char path[512];
	FILE *f;

	if (!dir)
		return;
	snprintf(path, sizeof(path), "%s/%03u.ptx", dir, atomic_fetch_add(&nr, 1));
	f = fopen(path, "we");
	if (!f)
		return;
	fputs(text, f);
	fclose(f);
}

bool drv_text_fails(void)
{
	static atomic_long texts;

	return atomic_fetch_add(&texts, 1) + 1 == drv_env_long("GPUSIM_FAIL_LOAD", 0);
}

bool drv_text_refused(const struct gpu_module *m, char *log, size_t n)
{
	const char *glob = drv_env("GPUSIM_REFUSE");

	for (uint32_t i = 0; glob && i < m->nr_funcs; i++) {
		if (!m->funcs[i]->entry || !m->funcs[i]->body || fnmatch(glob, m->funcs[i]->name, 0))
			continue;
		/* The messages of ptxas 13.0 for one function, and for a function that it does not name. */
		if (log && n && drv_env("GPUSIM_REFUSE_QUIETLY"))
			snprintf(log, n,
				 "ptxas fatal   : (C7600) Register allocation failed with register count of '7'");
		else if (log && n)
			snprintf(log, n,
				 "ptxas error   : Entry function '%s' uses too much shared data "
				 "(0x10000 bytes, 0xc000 max)",
				 m->funcs[i]->name);
		return true;
	}
	return false;
}

int drv_module_new(CUcontext ctx, const char *text, bool is_text, int max_regs, char *log, size_t log_n, CUmodule *ret)
{
	CUmodule mod;

	drv_keep_text(text);
	if (is_text && drv_text_fails()) {
		if (log && log_n)
			snprintf(log, log_n, "GPUSIM_FAIL_LOAD says that this load fails");
		return CUDA_ERROR_INVALID_PTX;
	}
	mod = calloc(1, sizeof(*mod));
	if (!mod)
		abort();
	mod->magic = MAGIC_MODULE;
	mod->ctx = ctx;
	mod->m = gpu_parse(text, strlen(text));
	if (mod->m->error || mod->m->target > (uint32_t)drv_arch()) {
		if (log && log_n)
			snprintf(log, log_n, "ptxas fatal: %s",
				 mod->m->error ? mod->m->error : "the text is for a newer GPU");
		gpu_module_free(mod->m);
		free(mod);
		return CUDA_ERROR_INVALID_PTX;
	}
	if (is_text)
		usleep((unsigned int)drv_env_long("GPUSIM_SLOW_COMPILER", 0) * 1000);
	mod->refused = is_text && drv_text_refused(mod->m, log, log_n);
	if (mod->refused && !drv_env("GPUSIM_LAZY")) {
		gpu_module_free(mod->m);
		free(mod);
		return CUDA_ERROR_INVALID_PTX;
	}
	mod->funcs = calloc(mod->m->nr_funcs + 1, sizeof(*mod->funcs));
	if (!mod->funcs)
		abort();
	for (uint32_t i = 0; i < mod->m->nr_funcs; i++)
		mod->funcs[i] = (struct CUfunc_st){ MAGIC_FUNC, mod->m->funcs[i], mod, 0,
						    registers(mod->m->funcs[i], max_regs) };
	if (ctx) {
		pthread_mutex_lock(&lock);
		mod->next = ctx->modules;
		ctx->modules = mod;
		pthread_mutex_unlock(&lock);
	}
	*ret = mod;
	return CUDA_SUCCESS;
}

void drv_module_free(CUmodule mod)
{
	pthread_mutex_lock(&lock);
	for (CUmodule *at = mod->ctx ? &mod->ctx->modules : NULL; at && *at; at = &(*at)->next)
		if (*at == mod) {
			*at = mod->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	gpu_module_free(mod->m);
	free(mod->funcs);
	mod->magic = 0;
	free(mod);
}

static CUfunction find_function(CUmodule mod, const char *name)
{
	struct gpu_func *f = gpu_find(mod->m, name);

	return f ? &mod->funcs[f->index] : NULL;
}

/* The compiler options that matter here: where the log goes, and the number of registers. */
static void options(unsigned int n, const CUjit_option *opts, void **vals, char **log, size_t *log_n, int *max_regs)
{
	for (unsigned int i = 0; i < n; i++)
		switch ((int)opts[i]) {
		case 0:
			*max_regs = (int)(intptr_t)vals[i];
			break;
		case 5:
			*log = vals[i];
			break;
		case 6:
			*log_n = (size_t)(uintptr_t)vals[i];
			break;
		default:
			break;
		}
}

PUBLIC CUresult cuModuleLoadDataEx(CUmodule *mod, const void *image, unsigned int n, CUjit_option *opts, void **vals)
{
	char *text = NULL, *log = NULL;
	size_t log_n = 0;
	int max_regs = 0, err;
	CUcontext ctx;
	bool is_text;

	err = drv_enter(&ctx);
	if (err)
		return err;
	err = drv_image(image, &text, &is_text);
	if (err)
		return err;
	options(n, opts, vals, &log, &log_n, &max_regs);
	err = drv_module_new(ctx, text, is_text, max_regs, log, log_n, mod);
	free(text);
	return err;
}

PUBLIC CUresult cuModuleLoadData(CUmodule *mod, const void *image)
{
	return cuModuleLoadDataEx(mod, image, 0, NULL, NULL);
}

PUBLIC CUresult cuModuleLoadFatBinary(CUmodule *mod, const void *image)
{
	return cuModuleLoadDataEx(mod, image, 0, NULL, NULL);
}

char *drv_slurp(const char *path)
{
	FILE *f = fopen(path, "re");
	char *buf = NULL;
	long n;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET) &&
	    (buf = calloc(1, (size_t)n + 8)) && fread(buf, 1, (size_t)n, f) != (size_t)n) {
		free(buf);
		buf = NULL;
	}
	fclose(f);
	return buf;
}

PUBLIC CUresult cuModuleLoad(CUmodule *mod, const char *path)
{
	char *buf = drv_slurp(path);
	int err;

	if (!buf)
		return CUDA_ERROR_FILE_NOT_FOUND;
	err = cuModuleLoadData(mod, buf);
	free(buf);
	return err;
}

PUBLIC CUresult cuModuleUnload(CUmodule mod)
{
	if (!mod || mod->magic != MAGIC_MODULE || mod->lib)
		return CUDA_ERROR_INVALID_HANDLE;
	drv_ctx_wait(mod->ctx);
	drv_module_free(mod);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuModuleGetFunction(CUfunction *f, CUmodule mod, const char *name)
{
	if (!mod || mod->magic != MAGIC_MODULE)
		return CUDA_ERROR_INVALID_HANDLE;
	if (mod->refused)
		return CUDA_ERROR_INVALID_PTX;
	*f = find_function(mod, name);
	return *f ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static unsigned int entries(const struct gpu_module *m, unsigned int n, struct gpu_func **ret)
{
	unsigned int nr = 0;

	for (uint32_t i = 0; i < m->nr_funcs; i++)
		if (m->funcs[i]->entry && m->funcs[i]->body) {
			if (nr < n)
				ret[nr] = m->funcs[i];
			nr++;
		}
	return nr;
}

PUBLIC CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	*count = entries(mod->m, 0, NULL);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuModuleEnumerateFunctions(CUfunction *fs, unsigned int n, CUmodule mod)
{
	struct gpu_func **list = calloc(mod->m->nr_funcs + 1, sizeof(*list));
	unsigned int have;

	if (!list)
		abort();
	have = entries(mod->m, mod->m->nr_funcs, list);
	for (unsigned int i = 0; i < n; i++)
		fs[i] = i < have ? &mod->funcs[list[i]->index] : NULL;
	free(list);
	return CUDA_SUCCESS;
}

static int global(CUmodule mod, const char *name, CUdeviceptr *p, size_t *n)
{
	const struct gpu_sym *s = gpu_find_var(mod->m, name);

	if (!s)
		return CUDA_ERROR_NOT_FOUND;
	if (p)
		*p = s->off;
	if (n)
		*n = s->size;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *n, CUmodule mod, const char *name)
{
	return mod && mod->magic == MAGIC_MODULE ? global(mod, name, p, n) : CUDA_ERROR_INVALID_HANDLE;
}

PUBLIC CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	*mode = 1;
	return CUDA_SUCCESS;
}

/*
 * Libraries
 * ------------------------------------------------------------------------------------------------
 */

PUBLIC CUresult cuLibraryLoadData(CUlibrary *lib, const void *image, CUjit_option *jopts, void **jvals, unsigned int nj,
				  CUlibraryOption *lopts, void **lvals, unsigned int nl)
{
	char *text = NULL, *log = NULL;
	size_t log_n = 0;
	int max_regs = 0, err;
	bool is_text;
	CUlibrary l;

	(void)lopts;
	(void)lvals;
	(void)nl;
	err = drv_image(image, &text, &is_text);
	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	if (!l)
		abort();
	options(nj, jopts, jvals, &log, &log_n, &max_regs);
	l->text = text;
	l->max_regs = max_regs;
	err = drv_module_new(NULL, text, is_text, max_regs, log, log_n, &l->first);
	if (err) {
		free(l->text);
		free(l);
		return err;
	}
	*lib = l;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuLibraryLoadFromFile(CUlibrary *lib, const char *path, CUjit_option *jopts, void **jvals,
				      unsigned int nj, CUlibraryOption *lopts, void **lvals, unsigned int nl)
{
	char *buf = drv_slurp(path);
	int err;

	if (!buf)
		return CUDA_ERROR_FILE_NOT_FOUND;
	err = cuLibraryLoadData(lib, buf, jopts, jvals, nj, lopts, lvals, nl);
	free(buf);
	return err;
}

/* Returns the library's module in a context. */
static int module_in(CUlibrary lib, CUcontext ctx, CUmodule *ret)
{
	int err;

	pthread_mutex_lock(&lock);
	for (CUmodule m = ctx->modules; m; m = m->next)
		if (m->lib == lib) {
			*ret = m;
			pthread_mutex_unlock(&lock);
			return CUDA_SUCCESS;
		}
	pthread_mutex_unlock(&lock);
	err = drv_module_new(ctx, lib->text, false, lib->max_regs, NULL, 0, ret);
	if (!err) {
		(*ret)->lib = lib;
		(*ret)->refused = lib->first->refused;
	}
	return err;
}

PUBLIC CUresult cuLibraryUnload(CUlibrary lib)
{
	if (!lib)
		return CUDA_ERROR_INVALID_HANDLE;
	for (CUcontext ctx = drv_contexts(); ctx; ctx = ctx->next)
		for (CUmodule m = ctx->modules, next; m; m = next) {
			next = m->next;
			if (m->lib != lib)
				continue;
			drv_ctx_wait(ctx);
			drv_module_free(m);
		}
	for (CUkernel k = lib->kernels, next; k; k = next) {
		next = k->next;
		free(k->name);
		k->magic = 0;
		free(k);
	}
	drv_module_free(lib->first);
	free(lib->text);
	free(lib);
	return CUDA_SUCCESS;
}

static CUkernel kernel_of(CUlibrary lib, const char *name)
{
	CUkernel k;

	pthread_mutex_lock(&lock);
	for (k = lib->kernels; k; k = k->next)
		if (!strcmp(k->name, name))
			break;
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k || !(k->name = strdup(name)))
			abort();
		k->magic = MAGIC_KERNEL;
		k->lib = lib;
		k->next = lib->kernels;
		lib->kernels = k;
	}
	pthread_mutex_unlock(&lock);
	return k;
}

PUBLIC CUresult cuLibraryGetKernel(CUkernel *k, CUlibrary lib, const char *name)
{
	if (!lib)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!gpu_find(lib->first->m, name))
		return CUDA_ERROR_NOT_FOUND;
	*k = kernel_of(lib, name);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	*count = entries(lib->first->m, 0, NULL);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuLibraryEnumerateKernels(CUkernel *ks, unsigned int n, CUlibrary lib)
{
	struct gpu_func **list = calloc(lib->first->m->nr_funcs + 1, sizeof(*list));
	unsigned int have;

	if (!list)
		abort();
	have = entries(lib->first->m, lib->first->m->nr_funcs, list);
	for (unsigned int i = 0; i < n; i++)
		ks[i] = i < have ? kernel_of(lib, list[i]->name) : NULL;
	free(list);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuLibraryGetModule(CUmodule *mod, CUlibrary lib)
{
	CUcontext ctx;
	int err = drv_enter(&ctx);

	return err ? err : module_in(lib, ctx, mod);
}

PUBLIC CUresult cuLibraryGetGlobal(CUdeviceptr *p, size_t *n, CUlibrary lib, const char *name)
{
	CUmodule mod;
	int err = cuLibraryGetModule(&mod, lib);

	return err ? err : global(mod, name, p, n);
}

PUBLIC CUresult cuKernelGetFunction(CUfunction *f, CUkernel k)
{
	CUmodule mod;
	int err;

	if (!k || k->magic != MAGIC_KERNEL)
		return CUDA_ERROR_INVALID_HANDLE;
	err = cuLibraryGetModule(&mod, k->lib);
	if (!err && mod->refused)
		err = CUDA_ERROR_INVALID_PTX;
	if (!err)
		*f = find_function(mod, k->name);
	return err;
}

PUBLIC CUresult cuKernelGetLibrary(CUlibrary *lib, CUkernel k)
{
	*lib = k->lib;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuKernelGetName(const char **name, CUkernel k)
{
	*name = k->name;
	return CUDA_SUCCESS;
}

/*
 * Functions
 * ------------------------------------------------------------------------------------------------
 */

CUfunction drv_function_in(CUcontext ctx, void *handle)
{
	CUkernel k = handle;
	CUmodule mod;
	uint32_t magic;

	if (!handle)
		return NULL;
	memcpy(&magic, handle, 4);
	if (magic == MAGIC_FUNC)
		return handle;
	return magic == MAGIC_KERNEL && !module_in(k->lib, ctx, &mod) ? find_function(mod, k->name) : NULL;
}

static CUfunction function(void *handle)
{
	CUcontext ctx;

	return drv_enter(&ctx) ? NULL : drv_function_in(ctx, handle);
}

PUBLIC CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attr, CUfunction fn)
{
	CUfunction f = function(fn);
	uint32_t most;

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	most = 65536 / (f->regs * 32) * 32;
	switch ((int)attr) {
	case 0:
		*value = (int)(f->f->maxntid ? f->f->maxntid : most < 1024 ? most : 1024);
		break;
	case 1:
		*value = (int)f->f->static_shared;
		break;
	case 3:
		*value = (int)f->f->local;
		break;
	case 4:
		*value = (int)f->regs;
		break;
	case 5:
		*value = (int)f->mod->m->version;
		break;
	case 6:
		*value = drv_arch();
		break;
	case 8:
		*value = f->max_dyn ? f->max_dyn : 49152;
		break;
	default:
		*value = 0;
		break;
	}
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuFuncSetAttribute(CUfunction fn, CUfunction_attribute attr, int value)
{
	CUfunction f = function(fn);

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if ((int)attr == 8 && (value < 0 || (unsigned int)value + f->f->static_shared > GPU_SHARED - 1024))
		return CUDA_ERROR_INVALID_VALUE;
	if ((int)attr == 8)
		f->max_dyn = value;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attr, CUkernel k, CUdevice dev)
{
	(void)dev;
	return cuFuncGetAttribute(value, attr, (CUfunction)k);
}

PUBLIC CUresult cuKernelSetAttribute(CUfunction_attribute attr, int value, CUkernel k, CUdevice dev)
{
	(void)dev;
	return cuFuncSetAttribute((CUfunction)k, attr, value);
}

PUBLIC CUresult cuKernelSetCacheConfig(CUkernel k, CUfunc_cache config, CUdevice dev)
{
	(void)config;
	(void)dev;
	return function(k) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

PUBLIC CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config)
{
	(void)config;
	return function(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

PUBLIC CUresult cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig config)
{
	(void)config;
	return function(f) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

PUBLIC CUresult cuFuncGetModule(CUmodule *mod, CUfunction fn)
{
	CUfunction f = function(fn);

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	*mod = f->mod;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuFuncGetName(const char **name, CUfunction fn)
{
	CUfunction f = function(fn);

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = f->f->name;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuFuncGetParamInfo(CUfunction fn, size_t i, size_t *off, size_t *size)
{
	CUfunction f = function(fn);

	if (!f || i >= f->f->nr_params)
		return CUDA_ERROR_INVALID_VALUE;
	*off = f->f->params[i]->off;
	if (size)
		*size = f->f->params[i]->size;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuKernelGetParamInfo(CUkernel k, size_t i, size_t *off, size_t *size)
{
	return cuFuncGetParamInfo((CUfunction)k, i, off, size);
}
