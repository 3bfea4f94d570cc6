/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cu.h: the part of the driver's interface that the stand-in driver needs, by the exported names. With
 * STANDIN_REAL_HEADERS the types are those of the real header, and a definition with different
 * arguments does not compile.
 */
#ifndef STANDIN_GPU_CU_H
#define STANDIN_GPU_CU_H

#include <stddef.h>
#include <stdint.h>

#ifdef STANDIN_REAL_HEADERS
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#else
typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUlinkState_st *CUlinkState;
typedef int CUdevice_attribute, CUfunction_attribute, CUjit_option, CUjitInputType, CUlibraryOption,
	CUstreamCaptureMode, CUstreamCaptureStatus, CUfunc_cache, CUlimit;
typedef int CUgraphNodeType, CUpointer_attribute, CUsharedconfig, CUdriverProcAddressQueryResult, CUmoduleLoadingMode;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUctxCreateParams_st CUctxCreateParams;
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef uint64_t cuuint64_t;
typedef void (*CUhostFn)(void *);
typedef void (*CUstreamCallback)(CUstream, CUresult, void *);
typedef struct {
	char bytes[16];
} CUuuid;
typedef struct {
	unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	struct CUlaunchAttribute_st *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;
typedef struct {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	void **kernelParams, **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;
typedef struct {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	void **kernelParams, **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;
typedef CUDA_KERNEL_NODE_PARAMS CUDA_KERNEL_NODE_PARAMS_v3;
typedef struct CUgraphNodeParams_st {
	CUgraphNodeType type;
	int reserved0[3];
	union {
		long long reserved1[29];
		CUDA_KERNEL_NODE_PARAMS_v3 kernel;
	};
	long long reserved2;
} CUgraphNodeParams;
typedef struct {
	cuuint64_t flags;
	CUstream hUploadStream;
	CUgraphNode hErrNode_out;
	int result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;
#define CUDA_SUCCESS				  0
#define CUDA_ERROR_INVALID_VALUE		  1
#define CUDA_ERROR_OUT_OF_MEMORY		  2
#define CUDA_ERROR_NOT_INITIALIZED		  3
#define CUDA_ERROR_INVALID_DEVICE		  101
#define CUDA_ERROR_INVALID_IMAGE		  200
#define CUDA_ERROR_INVALID_CONTEXT		  201
#define CUDA_ERROR_NO_BINARY_FOR_GPU		  209
#define CUDA_ERROR_INVALID_PTX			  218
#define CUDA_ERROR_FILE_NOT_FOUND		  301
#define CUDA_ERROR_INVALID_HANDLE		  400
#define CUDA_ERROR_NOT_FOUND			  500
#define CUDA_ERROR_NOT_READY			  600
#define CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES	  701
#define CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED 712
#define CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED	  713
#define CUDA_ERROR_NOT_SUPPORTED		  801
#define CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED	  900
#define CUDA_ERROR_STREAM_CAPTURE_INVALIDATED	  901
#define CUDA_ERROR_ILLEGAL_STATE		  401
#define CU_LAUNCH_PARAM_END			  ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER		  ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE		  ((void *)2)

/* What run.c calls. */
CUresult cuInit(unsigned int flags);
CUresult cuDeviceGet(CUdevice *dev, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev);
CUresult cuCtxDestroy_v2(CUcontext ctx);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoadDataEx(CUmodule *mod, const void *image, unsigned int n, CUjit_option *opts, void **vals);
CUresult cuModuleUnload(CUmodule mod);
CUresult cuLinkCreate_v2(unsigned int n, CUjit_option *opts, void **vals, CUlinkState *ret);
CUresult cuLinkAddData_v2(CUlinkState s, CUjitInputType type, void *data, size_t size, const char *name, unsigned int n,
			  CUjit_option *opts, void **vals);
CUresult cuLinkAddFile_v2(CUlinkState s, CUjitInputType type, const char *path, unsigned int n, CUjit_option *opts,
			  void **vals);
CUresult cuLinkComplete(CUlinkState s, void **cubin, size_t *size);
CUresult cuLinkDestroy(CUlinkState s);
CUresult cuModuleGetFunction(CUfunction *f, CUmodule mod, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *n, CUmodule mod, const char *name);
CUresult cuLibraryLoadData(CUlibrary *lib, const void *image, CUjit_option *jopts, void **jvals, unsigned int nj,
			   CUlibraryOption *lopts, void **lvals, unsigned int nl);
CUresult cuLibraryUnload(CUlibrary lib);
CUresult cuLibraryGetKernel(CUkernel *k, CUlibrary lib, const char *name);
CUresult cuLibraryGetGlobal(CUdeviceptr *p, size_t *n, CUlibrary lib, const char *name);
CUresult cuKernelGetFunction(CUfunction *f, CUkernel k);
CUresult cuFuncGetParamInfo(CUfunction f, size_t i, size_t *off, size_t *size);
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n);
CUresult cuMemFree_v2(CUdeviceptr p);
CUresult cuMemHostAlloc(void **p, size_t n, unsigned int flags);
CUresult cuMemFreeHost(void *p);
CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned int flags);
CUresult cuMemHostUnregister(void *p);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *dev, void *p, unsigned int flags);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n);
CUresult cuStreamCreate(CUstream *s, unsigned int flags);
CUresult cuStreamDestroy_v2(CUstream s);
CUresult cuStreamSynchronize(CUstream s);
CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode);
CUresult cuStreamEndCapture(CUstream s, CUgraph *graph);
CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphDestroy(CUgraph g);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n,
				 const CUDA_KERNEL_NODE_PARAMS *p);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph g, unsigned long long flags);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream s);
CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
			unsigned int by, unsigned int bz, unsigned int dyn, CUstream s, void **params, void **extra);
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
				   unsigned int by, unsigned int bz, unsigned int dyn, CUstream s, void **params);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra);
CUresult cuGetErrorName(CUresult err, const char **name);
CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status);
#endif

#endif
