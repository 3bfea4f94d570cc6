/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * drv.h: the stand-in driver's objects. Handles are pointers to them and begin with a number that says
 * what they are.
 */
#ifndef STANDIN_GPU_DRV_H
#define STANDIN_GPU_DRV_H

#include "cu.h"
#include "gpu.h"

#include <pthread.h>

#define MAX_DEVICES 8

enum drv_magic {
	MAGIC_FUNC = 0x66756e63,
	MAGIC_KERNEL = 0x6b65726e,
	MAGIC_MODULE = 0x6d6f6475,
	MAGIC_STREAM = 0x73747265
};

struct CUctx_st {
	CUdevice dev;
	unsigned int refs; /* primary */
	bool primary, dead;
	int sticky; /* a kernel has failed: the context is lost */
	uint64_t id, launches;
	struct CUstream_st *streams, *def; /* all of them, also destroyed ones */
	struct CUmod_st *modules;
	struct CUctx_st *next;
};

struct CUfunc_st {
	uint32_t magic;
	struct gpu_func *f;
	struct CUmod_st *mod;
	int max_dyn;
	uint32_t regs;
};

struct CUmod_st {
	uint32_t magic;
	struct gpu_module *m;
	struct CUctx_st *ctx;
	struct CUfunc_st *funcs; /* as m->funcs */
	struct CUlib_st *lib;
	bool refused; /* GPUSIM_LAZY: its text does not compile */
	struct CUmod_st *next;
};

struct CUkern_st {
	uint32_t magic;
	struct CUlib_st *lib;
	char *name;
	struct CUkern_st *next;
};

struct CUlib_st {
	char *text; /* PTX */
	int max_regs;
	struct CUmod_st *first; /* loaded to check that it can be; in no context */
	struct CUkern_st *kernels;
};

struct drv_dep {
	struct CUstream_st *stream;
	uint64_t seq;
};

enum drv_kind { WORK_KERNEL, WORK_COPY, WORK_SET, WORK_HOST, WORK_GRAPH, WORK_FREE, WORK_NOTHING };

/* Work of a stream, or a node of a graph. */
struct drv_work {
	struct drv_work *next;
	enum drv_kind kind;
	struct CUctx_st *ctx;
	uint64_t seq;
	struct drv_dep *deps;
	size_t nr_deps;
	/* kernel */
	struct CUfunc_st *func;
	uint32_t grid[3], block[3], dyn;
	bool cooperative;
	uint8_t *params;
	/* copy, set */
	void *dst;
	const void *src;
	size_t n;
	unsigned int value, size;
	/* host */
	CUhostFn fn;
	CUstreamCallback callback;
	void *arg;
	struct CUstream_st *stream;
	/* graph: works of its own */
	struct drv_work *list;
	CUdeviceptr dev;
};

struct CUstream_st {
	uint32_t magic;
	struct CUctx_st *ctx;
	struct CUstream_st *next;
	unsigned int flags;
	bool is_default, gone, dies;
	pthread_t owner; /* a thread's default stream; or the worker's below */
	bool per_thread, started;
	pthread_t worker;
	struct drv_work *first, **last;
	uint64_t queued, done;
	struct CUgraph_st *capture;
	bool origin;
};

struct CUevent_st {
	struct CUstream_st *stream;
	uint64_t seq, time;
	struct CUgraph_st *capture;
};

struct CUgraphNode_st {
	struct CUgraphNode_st *next;
	struct drv_work w;
	void **pointers;	       /* pointers to the parameters, for callers that need them */
	struct CUgraphNode_st *source; /* in an executable graph: the node it was made from */
};
struct CUgraph_st {
	struct CUgraphNode_st *nodes, **last;
	size_t nr;
};
struct CUgraphExec_st {
	struct CUgraph_st g;
};

/* One lock for all queues; cond is signalled when work is queued or done. */
extern pthread_mutex_t drv_lock;
extern pthread_cond_t drv_cond;

const char *drv_env(const char *name);
long drv_env_long(const char *name, long other);
CUcontext drv_current(void);
CUcontext drv_contexts(void); /* all there ever were */
/* Finds the current context. Returns 0, or the reason why nothing can be done in it. */
int drv_enter(CUcontext *ctx);
int drv_arch(void);
unsigned int drv_sms(void);

/* Returns the stream of a handle in this context; ptsz: 0 means the stream of the thread. */
CUstream drv_stream(CUcontext ctx, CUstream s, bool ptsz);
/*
 * Queues w (allocated), whose ownership it takes. Returns 0, or an error. wait: waits until it is done
 * and returns its result.
 */
int drv_submit(CUstream s, struct drv_work *w, bool wait);
struct drv_work *drv_work_new(CUcontext ctx, enum drv_kind kind);
void drv_work_free(struct drv_work *w);
int drv_stream_wait(CUstream s);
int drv_ctx_wait(CUcontext ctx);
void drv_ctx_streams_free(CUcontext ctx);
CUgraphNode drv_graph_add(CUgraph g, const struct drv_work *w);
void drv_work_copy(struct drv_work *to, const struct drv_work *from);
void drv_run_kernel(struct drv_work *w);

/*
 * Extracts the PTX from an image; NUL-terminated, to be freed. Returns 0 or an error. is_text: the
 * image was text.
 */
int drv_image(const void *image, char **text, bool *is_text);
/* Returns the texts of an image that cuLinkComplete() made; NULL: it is not such an image. */
const char *drv_linked(const void *image);
/* Returns the content of a file, NUL-terminated, to be freed; NULL: it cannot be read. */
char *drv_slurp(const char *path);
void drv_keep_text(const char *text); /* GPUSIM_PTX_LOG */
bool drv_text_fails(void);	      /* GPUSIM_FAIL_LOAD; counts */
/* GPUSIM_REFUSE: returns true, and the compiler's message, if the text is refused. */
bool drv_text_refused(const struct gpu_module *m, char *log, size_t n);
/* Returns a function, or the function of a kernel in this context. NULL: the handle is neither. */
CUfunction drv_function_in(CUcontext ctx, void *handle);
int drv_module_new(CUcontext ctx, const char *text, bool is_text, int max_regs, char *log, size_t log_n, CUmodule *ret);
void drv_module_free(CUmodule mod);

#define PUBLIC __attribute__((visibility("default")))

#endif
