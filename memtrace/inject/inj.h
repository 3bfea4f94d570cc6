/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * inj.h: libttmon-memtrace.so, which is loaded into a program by LD_PRELOAD (or CUDA_INJECTION64_PATH)
 * and makes its GPU kernels record which memory they access. ttmon-memtrace(1) is the user's
 * documentation.
 *
 *	hook.c	        dlsym() and cuGetProcAddress(): how a program comes to the driver's
 *		functions, and ours in their place; the functions behind them
 *	conf.c		settings from the environment
 *	text.c		PTX texts, rewritten, with their kernels
 *	module.c	modules: their PTX is rewritten when they are loaded
 *	link.c		what the program links at run time, by cuLink*()
 *	handle.c	their kernels by handle, each with its copy
 *	launch.c	launches and graph nodes: which of the two copies of a kernel runs
 *	chan.c		one channel for each context: <ttmon/mtchan.h>, the program's side
 *	tell.c		what is written into its dictionary
 *
 * Rules: whatever goes wrong, the program gets what the driver would return without this library.
 * Nothing is written to its stdout. No lock is held during a launch. A channel's lock is held while
 * CUDA allocates its memory, and the lock of all channels while one is made or ended.
 */
#ifndef TTMON_MEMTRACE_INJ_H
#define TTMON_MEMTRACE_INJ_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttmon/mtchan.h>

#include "memtrace/model/mt.h"

/* ---- the driver's functions that are called and those that are taken ---- */

/* CUDA's names, where the ABI has them: cuda.h. */
struct ttmon_inj_launch_config {
	unsigned int grid[3], block[3], shmem;
	void *stream, *attrs;
	unsigned int nr_attrs;
};

/* CUDA_KERNEL_NODE_PARAMS: _v1 ends before kern. */
struct ttmon_inj_node {
	void *func;
	unsigned int grid[3], block[3], shmem;
	void **params, **extra;
	void *kern, *ctx;
};
struct ttmon_inj_node_v1 {
	void *func;
	unsigned int grid[3], block[3], shmem;
	void **params, **extra;
};

/* CUgraphNodeParams; type 0: a kernel. */
struct ttmon_inj_any_node {
	int type, reserved[3];
	union {
		long long all[29];
		struct ttmon_inj_node kernel;
	};
	long long reserved2;
};

#define LAUNCH_PARAMS                                                                                  \
	(void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, \
	 unsigned int bz, unsigned int shmem, void *stream, void **params, void **extra)
#define COOP_PARAMS                                                                                    \
	(void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, \
	 unsigned int bz, unsigned int shmem, void *stream, void **params)

/*
 * T(exported name, requested name, first version it is for, per-thread default stream, parameters):
 * intercepted by a function of that name here.
 */
#define TTMON_INJ_TAKEN(T)                                                                                             \
	T(cuModuleLoad, cuModuleLoad, 0, 0, (void **mod, const char *path))                                            \
	T(cuModuleLoadData, cuModuleLoadData, 0, 0, (void **mod, const void *image))                                   \
	T(cuModuleLoadDataEx, cuModuleLoadDataEx, 0, 0,                                                                \
	  (void **mod, const void *image, unsigned int n, int *opts, void **vals))                                     \
	T(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 0, 0, (void **mod, const void *image))                         \
	T(cuModuleUnload, cuModuleUnload, 0, 0, (void *mod))                                                           \
	T(cuLinkCreate, cuLinkCreate, 0, 0, (unsigned int n, int *opts, void **vals, void **state))                    \
	T(cuLinkCreate_v2, cuLinkCreate, 6050, 0, (unsigned int n, int *opts, void **vals, void **state))              \
	T(cuLinkAddData, cuLinkAddData, 0, 0,                                                                          \
	  (void *state, int type, void *data, size_t size, const char *name, unsigned int n, int *opts, void **vals))  \
	T(cuLinkAddData_v2, cuLinkAddData, 6050, 0,                                                                    \
	  (void *state, int type, void *data, size_t size, const char *name, unsigned int n, int *opts, void **vals))  \
	T(cuLinkAddFile, cuLinkAddFile, 0, 0,                                                                          \
	  (void *state, int type, const char *path, unsigned int n, int *opts, void **vals))                           \
	T(cuLinkAddFile_v2, cuLinkAddFile, 6050, 0,                                                                    \
	  (void *state, int type, const char *path, unsigned int n, int *opts, void **vals))                           \
	T(cuLinkComplete, cuLinkComplete, 0, 0, (void *state, void **cubin, size_t *size))                             \
	T(cuLinkDestroy, cuLinkDestroy, 0, 0, (void *state))                                                           \
	T(cuModuleGetFunction, cuModuleGetFunction, 0, 0, (void **f, void *mod, const char *name))                     \
	T(cuModuleGetFunctionCount, cuModuleGetFunctionCount, 0, 0, (unsigned int *count, void *mod))                  \
	T(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 0, 0, (void **fs, unsigned int n, void *mod))        \
	T(cuLibraryLoadData, cuLibraryLoadData, 0, 0,                                                                  \
	  (void **lib, const void *image, int *jopts, void **jvals, unsigned int nj, int *lopts, void **lvals,         \
	   unsigned int nl))                                                                                           \
	T(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 0, 0,                                                          \
	  (void **lib, const char *path, int *jopts, void **jvals, unsigned int nj, int *lopts, void **lvals,          \
	   unsigned int nl))                                                                                           \
	T(cuLibraryUnload, cuLibraryUnload, 0, 0, (void *lib))                                                         \
	T(cuLibraryGetKernel, cuLibraryGetKernel, 0, 0, (void **k, void *lib, const char *name))                       \
	T(cuLibraryGetModule, cuLibraryGetModule, 0, 0, (void **mod, void *lib))                                       \
	T(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 0, 0, (unsigned int *count, void *lib))                    \
	T(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 0, 0, (void **ks, unsigned int n, void *lib))          \
	T(cuKernelGetFunction, cuKernelGetFunction, 0, 0, (void **f, void *k))                                         \
	T(cuKernelSetAttribute, cuKernelSetAttribute, 0, 0, (int attr, int val, void *k, int dev))                     \
	T(cuKernelSetCacheConfig, cuKernelSetCacheConfig, 0, 0, (void *k, int config, int dev))                        \
	T(cuFuncSetAttribute, cuFuncSetAttribute, 0, 0, (void *f, int attr, int val))                                  \
	T(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 0, 0, (void *f, int config))                                     \
	T(cuFuncSetSharedMemConfig, cuFuncSetSharedMemConfig, 0, 0, (void *f, int config))                             \
	T(cuLaunchKernel, cuLaunchKernel, 0, 0, LAUNCH_PARAMS)                                                         \
	T(cuLaunchKernel_ptsz, cuLaunchKernel, 0, 1, LAUNCH_PARAMS)                                                    \
	T(cuLaunchKernelEx, cuLaunchKernelEx, 0, 0,                                                                    \
	  (const struct ttmon_inj_launch_config *c, void *f, void **params, void **extra))                             \
	T(cuLaunchKernelEx_ptsz, cuLaunchKernelEx, 0, 1,                                                               \
	  (const struct ttmon_inj_launch_config *c, void *f, void **params, void **extra))                             \
	T(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 0, 0, COOP_PARAMS)                                     \
	T(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel, 0, 1, COOP_PARAMS)                                \
	T(cuGraphAddKernelNode, cuGraphAddKernelNode, 0, 0,                                                            \
	  (void **node, void *graph, void *const *deps, size_t n, const struct ttmon_inj_node_v1 *p))                  \
	T(cuGraphAddKernelNode_v2, cuGraphAddKernelNode, 12000, 0,                                                     \
	  (void **node, void *graph, void *const *deps, size_t n, const struct ttmon_inj_node *p))                     \
	T(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams, 0, 0, (void *node, struct ttmon_inj_node_v1 *p))     \
	T(cuGraphKernelNodeGetParams_v2, cuGraphKernelNodeGetParams, 12000, 0, (void *node, struct ttmon_inj_node *p)) \
	T(cuGraphKernelNodeSetParams, cuGraphKernelNodeSetParams, 0, 0,                                                \
	  (void *node, const struct ttmon_inj_node_v1 *p))                                                             \
	T(cuGraphKernelNodeSetParams_v2, cuGraphKernelNodeSetParams, 12000, 0,                                         \
	  (void *node, const struct ttmon_inj_node *p))                                                                \
	T(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams, 0, 0,                                        \
	  (void *exec, void *node, const struct ttmon_inj_node_v1 *p))                                                 \
	T(cuGraphExecKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams, 12000, 0,                                 \
	  (void *exec, void *node, const struct ttmon_inj_node *p))                                                    \
	T(cuGraphAddNode, cuGraphAddNode, 0, 0,                                                                        \
	  (void **node, void *graph, void *const *deps, size_t n, struct ttmon_inj_any_node *p))                       \
	T(cuGraphAddNode_v2, cuGraphAddNode, 12030, 0,                                                                 \
	  (void **node, void *graph, void *const *deps, const void *edges, size_t n, struct ttmon_inj_any_node *p))    \
	T(cuGraphNodeSetParams, cuGraphNodeSetParams, 0, 0, (void *node, struct ttmon_inj_any_node *p))                \
	T(cuGraphExecNodeSetParams, cuGraphExecNodeSetParams, 0, 0,                                                    \
	  (void *exec, void *node, struct ttmon_inj_any_node *p))                                                      \
	T(cuCtxDestroy, cuCtxDestroy, 0, 0, (void *ctx))                                                               \
	T(cuCtxDestroy_v2, cuCtxDestroy, 4000, 0, (void *ctx))                                                         \
	T(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 0, 0, (int dev))                                       \
	T(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, 11000, 0, (int dev))                                \
	T(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 0, 0, (int dev))                                           \
	T(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset, 11000, 0, (int dev))                                    \
	T(cuGetProcAddress, cuGetProcAddress, 0, 0, (const char *name, void **fn, int version, uint64_t flags))        \
	T(cuGetProcAddress_v2, cuGetProcAddress, 12000, 0,                                                             \
	  (const char *name, void **fn, int version, uint64_t flags, int *status))

/* C(name, parameters): called but not intercepted. */
#define TTMON_INJ_CALLED(C)                                                            \
	C(cuCtxGetCurrent, (void **ctx))                                               \
	C(cuCtxPushCurrent_v2, (void *ctx))                                            \
	C(cuCtxPopCurrent_v2, (void **ctx))                                            \
	C(cuCtxGetDevice, (int *dev))                                                  \
	C(cuCtxSynchronize, (void))                                                    \
	C(cuDeviceGetAttribute, (int *val, int attr, int dev))                         \
	C(cuDevicePrimaryCtxGetState, (int dev, unsigned int *flags, int *active))     \
	C(cuThreadExchangeStreamCaptureMode, (int *mode))                              \
	C(cuMemAlloc_v2, (uint64_t * p, size_t n))                                     \
	C(cuMemFree_v2, (uint64_t p))                                                  \
	C(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t n, void *s))    \
	C(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t n, void *s))          \
	C(cuStreamCreate, (void **s, unsigned int flags))                              \
	C(cuStreamSynchronize, (void *s))                                              \
	C(cuStreamDestroy_v2, (void *s))                                               \
	C(cuStreamGetCtx, (void *s, void **ctx))                                       \
	C(cuFuncGetAttribute, (int *val, int attr, void *f))                           \
	C(cuKernelGetAttribute, (int *val, int attr, void *k, int dev))                \
	C(cuMemHostRegister_v2, (void *p, size_t n, unsigned int flags))               \
	C(cuMemHostUnregister, (void *p))                                              \
	C(cuMemHostGetDevicePointer_v2, (uint64_t * dev, void *p, unsigned int flags)) \
	C(cuFuncGetName, (const char **name, void *f))                                 \
	C(cuFuncGetModule, (void **mod, void *f))                                      \
	C(cuKernelGetName, (const char **name, void *k))                               \
	C(cuStreamIsCapturing, (void *stream, int *status))

enum ttmon_inj_fn {
#define T(name, base, version, ptsz, params) TTMON_INJ_##name,
#define C(name, params)			     TTMON_INJ_##name,
	TTMON_INJ_TAKEN(T) TTMON_INJ_CALLED(C)
#undef T
#undef C
		TTMON_INJ_FNS
};

/* Those in here. */
#define T(name, base, version, ptsz, params) __attribute__((visibility("default"))) int name params;
TTMON_INJ_TAKEN(T)
#undef T

/* Returns the driver's function, NULL if there is none. */
void *ttmon_inj_real(enum ttmon_inj_fn fn);
#define T(name, base, version, ptsz, params) typedef int(*ttmon_inj_##name##_t) params;
#define C(name, params)			     typedef int(*ttmon_inj_##name##_t) params;
TTMON_INJ_TAKEN(T)
TTMON_INJ_CALLED(C)
#undef T
#undef C
#define REAL(name) ((ttmon_inj_##name##_t)ttmon_inj_real(TTMON_INJ_##name))
/* Calls it; 500, CUDA_ERROR_NOT_FOUND, if it does not exist. */
#define CALL(name, ...)	    (REAL(name) ? REAL(name)(__VA_ARGS__) : TTMON_INJ_NOT_FOUND)
#define TTMON_INJ_NOT_FOUND 500
#define TTMON_INJ_NO_MEMORY 2 /* CUDA_ERROR_OUT_OF_MEMORY */

/* ---- what the environment says (conf.c) ---- */

struct ttmon_inj_conf {
	bool off; /* no consumer, or an invalid setting: nothing is recorded */
	bool verbose, all_modules, aggregate;
	const char *socket;
	const char *kernels;		   /* globs, separated by commas; NULL: all */
	uint64_t launch_begin, launch_end; /* [begin, end) */
	uint32_t instr_begin, instr_end;
	uint32_t spaces, sample, wait_us; /* wait_us: at most 4,000,000, nanoseconds fit in 32 bits */
	uint64_t ring_bytes;
	uint64_t compile_ms; /* so long a text may be compiled, all tries together */
};
const struct ttmon_inj_conf *ttmon_inj_conf(void);
/* Prints one line on stderr, "libttmon-memtrace: ..."; verbose ones only if TOOL_VERBOSE is set. */
void ttmon_inj_say(bool verbose, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * From now on all calls go unchanged to the driver. For a forked child: it has copies of its parent's
 * channels and locks, and no CUDA.
 */
void ttmon_inj_give_up(void);
bool ttmon_inj_kernel_wanted(const char *name);
/*
 * Gets the base name of the object that contains p, or "memory"; false: it is one of NVIDIA's
 * libraries, which are not recorded.
 */
bool ttmon_inj_module_name(const void *p, char *buf, size_t n);

/* ---- modules (module.c) ---- */

/* A kernel of the program. Never freed: a launch may use it at any time. */
struct ttmon_inj_kernel {
	char *name, *module;
	char *why;		     /* reason why it is not recorded; NULL: it is recorded */
	struct ttmon_mt_site *sites; /* of its own copies of the texts; numbers from first */
	uint32_t nr_sites, first, left_out;
	uint32_t counted; /* number of its sites that can be recorded; for two copies in a link, the higher one */
	uint32_t params, param_bytes;
	/* it is in a module of the program; otherwise its text was refused, and it is not reported */
	atomic_bool loaded;
	/*
	 * Kernels with sites that its launches may name too: functions of its text, and the same kernel of
	 * another input of a link.
	 */
	struct ttmon_inj_kernel **parts;
	uint32_t nr_parts;
	uint32_t number;	       /* number of the kernel, from 0, for what a channel has announced */
	struct ttmon_inj_kernel *next; /* list of all kernels */
};

struct ttmon_inj_handle {
	void *handle, *copy; /* copy: handle of the recorded kernel, of the same kind; NULL: none */
	struct ttmon_inj_kernel *kernel;
	void *owner; /* CUmodule or CUlibrary */
	void *ctx;   /* context of a CUfunction; NULL: a CUkernel, or not known */
	bool broken; /* the copy refused an attribute */
};

/* Returns false if the handle is not known. */
bool ttmon_inj_find(void *f, struct ttmon_inj_handle *ret);
/* Returns the handle whose copy f is; NULL: none. */
void *ttmon_inj_original(void *f);
struct ttmon_inj_kernel *ttmon_inj_kernels(uint32_t *count); /* all, newest first */

/* ---- channels (chan.c) ---- */

struct ttmon_inj_chan;

/*
 * Returns the channel of the current context, made at the first call in it. NULL: there is no context,
 * or no reader.
 */
struct ttmon_inj_chan *ttmon_inj_chan(void);
/*
 * Announces launch `number` of the process, counted from 0. *ctl is the control block, the first of
 * the two additional parameters; the number is the second. Returns false if it cannot be recorded (no
 * reader any more, no room, CUDA did not accept the memory). flags: TTMON_MT_LAUNCH_*.
 */
bool ttmon_inj_announce(struct ttmon_inj_chan *c, struct ttmon_inj_kernel *k, const unsigned int grid[3],
			const unsigned int block[3], unsigned int shmem, const void *stream, uint32_t flags,
			uint64_t number, uint64_t *ctl);
enum ttmon_inj_count { TTMON_INJ_LAUNCHED, TTMON_INJ_RECORDED, TTMON_INJ_REFUSED, TTMON_INJ_COUNTS };
void ttmon_inj_count(struct ttmon_inj_chan *c, const struct ttmon_inj_kernel *k, enum ttmon_inj_count what);

/*
 * Contexts that end. The library waits for their kernels and reports counts and losses. Destroyed or
 * reset: the channel ends. Released: whether it was the last release of a primary context is known
 * only afterwards.
 */
void ttmon_inj_destroying(void *ctx);
void ttmon_inj_resetting(int device);
void ttmon_inj_releasing(int device);
void ttmon_inj_released(int device);

#endif
