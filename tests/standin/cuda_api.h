/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cuda_api.h: the part of CUDA's interface that the stand-in libraries and their programs need: names,
 * argument lists and structure layouts as in the binaries, so that everything here builds on a machine
 * without CUDA.
 *
 * With STANDIN_REAL_HEADERS the real headers of CUDA 13 are used instead. If these are installed,
 * standin.mk compiles the stand-ins once in this way: an argument list that differs does not build.
 *
 * STANDIN_CUDART is the major version of the runtime (12 or 13): the batched copies, prefetch and
 * advise have different arguments in 12. CUDA_API_PER_THREAD_DEFAULT_STREAM maps the names to their
 * _ptds/_ptsz forms, as the real headers do.
 */
#ifndef STANDIN_CUDA_API_H
#define STANDIN_CUDA_API_H

#ifndef STANDIN_CUDART
#define STANDIN_CUDART 13
#endif

#ifdef STANDIN_REAL_HEADERS

#include <cuda.h>
#include <cuda_runtime_api.h>

#else

#include <stddef.h>

/* ---- types of both interfaces ---- */
typedef enum cudaError {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInvalidMemcpyDirection = 21,
	cudaErrorInsufficientDriver = 35,
	cudaErrorInvalidDevice = 101,
	cudaErrorIllegalState = 401,
	cudaErrorNotReady = 600,
	cudaErrorIllegalAddress = 700,
	cudaErrorHostMemoryAlreadyRegistered = 712,
	cudaErrorHostMemoryNotRegistered = 713,
	cudaErrorNotSupported = 801,
} cudaError_t;

typedef enum cudaError_enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_SUPPORTED = 801,
} CUresult;

typedef struct CUstream_st *cudaStream_t, *CUstream;
typedef struct CUevent_st *cudaEvent_t, *CUevent;
typedef struct CUgraph_st *cudaGraph_t, *CUgraph;
typedef struct CUgraphExec_st *cudaGraphExec_t, *CUgraphExec;
typedef struct CUgraphNode_st *cudaGraphNode_t, *CUgraphNode;
typedef struct CUmemPoolHandle_st *cudaMemPool_t, *CUmemoryPool;
typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;
typedef struct CUarray_st *CUarray;
typedef struct CUctx_st *CUcontext;
typedef struct CUfunc_st *CUfunction;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1;
typedef unsigned long long CUmemGenericAllocationHandle;

enum cudaMemcpyKind {
	cudaMemcpyHostToHost,
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice,
	cudaMemcpyDefault,
};
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaStreamCaptureMode {
	cudaStreamCaptureModeGlobal,
	cudaStreamCaptureModeThreadLocal,
	cudaStreamCaptureModeRelaxed
};
enum cudaMemoryAdvise { cudaMemAdviseSetReadMostly = 1, cudaMemAdviseSetPreferredLocation = 3 };
enum cudaMemLocationType {
	cudaMemLocationTypeDevice = 1,
	cudaMemLocationTypeHost = 2,
	cudaMemLocationTypeHostNuma = 3
};
enum cudaMemcpySrcAccessOrder { cudaMemcpySrcAccessOrderStream = 1 };
enum cudaMemAllocationType { cudaMemAllocationTypePinned = 1 };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone = 0 };
enum cudaMemcpy3DOperandType { cudaMemcpyOperandTypePointer = 1, cudaMemcpyOperandTypeArray = 2 };
enum cudaChannelFormatKind { cudaChannelFormatKindUnsigned = 1 };

#define cudaHostAllocDefault	   0
#define cudaHostAllocPortable	   1
#define cudaHostAllocMapped	   2
#define cudaHostAllocWriteCombined 4
#define cudaHostRegisterDefault	   0
#define cudaHostRegisterReadOnly   8
#define cudaMemAttachGlobal	   1

typedef struct {
	unsigned int x, y, z;
} dim3;
struct cudaPitchedPtr {
	void *ptr;
	size_t pitch, xsize, ysize;
};
struct cudaExtent {
	size_t width, height, depth;
};
struct cudaPos {
	size_t x, y, z;
};
struct cudaOffset3D {
	size_t x, y, z;
};
struct cudaChannelFormatDesc {
	int x, y, z, w;
	enum cudaChannelFormatKind f;
};
struct cudaMemLocation {
	enum cudaMemLocationType type;
	int id;
};
struct cudaMemPoolProps {
	enum cudaMemAllocationType allocType;
	enum cudaMemAllocationHandleType handleTypes;
	struct cudaMemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
};
struct cudaMemcpy3DParms {
	cudaArray_t srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	cudaArray_t dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	struct cudaExtent extent;
	enum cudaMemcpyKind kind;
};
struct cudaMemcpy3DPeerParms {
	cudaArray_t srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	int srcDevice;
	cudaArray_t dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	int dstDevice;
	struct cudaExtent extent;
};
struct cudaMemcpyAttributes {
	enum cudaMemcpySrcAccessOrder srcAccessOrder;
	struct cudaMemLocation srcLocHint, dstLocHint;
	unsigned int flags;
};
struct cudaMemcpy3DOperand {
	enum cudaMemcpy3DOperandType type;
	union {
		struct {
			void *ptr;
			size_t rowLength, layerHeight;
			struct cudaMemLocation locHint;
		} ptr;
		struct {
			cudaArray_t array;
			struct cudaOffset3D offset;
		} array;
	} op;
};
struct cudaMemcpy3DBatchOp {
	struct cudaMemcpy3DOperand src, dst;
	struct cudaExtent extent;
	enum cudaMemcpySrcAccessOrder srcAccessOrder;
	unsigned int flags;
};
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
typedef struct cudaLaunchConfig_st {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	void *attrs;
	unsigned int numAttrs;
} cudaLaunchConfig_t;

typedef enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_UNIFIED } CUmemorytype;
typedef enum {
	CU_MEM_LOCATION_TYPE_DEVICE = 1,
	CU_MEM_LOCATION_TYPE_HOST,
	CU_MEM_LOCATION_TYPE_HOST_NUMA
} CUmemLocationType;
typedef enum { CU_MEM_ADVISE_SET_READ_MOSTLY = 1, CU_MEM_ADVISE_SET_PREFERRED_LOCATION = 3 } CUmem_advise;
typedef enum { CU_STREAM_CAPTURE_MODE_GLOBAL } CUstreamCaptureMode;
typedef enum { CU_STREAM_CAPTURE_STATUS_NONE, CU_STREAM_CAPTURE_STATUS_ACTIVE } CUstreamCaptureStatus;
typedef enum { CU_AD_FORMAT_UNSIGNED_INT8 = 1 } CUarray_format;
typedef enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1 } CUmemAllocationType;
typedef enum { CU_MEM_HANDLE_TYPE_NONE } CUmemAllocationHandleType;

typedef struct {
	CUmemLocationType type;
	int id;
} CUmemLocation;
typedef struct {
	CUmemAllocationType allocType;
	CUmemAllocationHandleType handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;
typedef struct {
	CUmemAllocationType type;
	CUmemAllocationHandleType requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	unsigned char allocFlags[8];
} CUmemAllocationProp;
typedef struct {
	size_t Width, Height;
	CUarray_format Format;
	unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR;
typedef struct {
	size_t srcXInBytes, srcY;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	size_t srcPitch;
	size_t dstXInBytes, dstY;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	size_t dstPitch;
	size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;
typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	void *reserved0;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	void *reserved1;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;
typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	CUcontext srcContext;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	CUcontext dstContext;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_PEER;
typedef struct {
	unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	void *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;
typedef struct cudaMemcpyAttributes CUmemcpyAttributes;
typedef struct cudaMemcpy3DBatchOp CUDA_MEMCPY3D_BATCH_OP;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUctxCreateParams_st CUctxCreateParams;
typedef cudaGraphEdgeData CUgraphEdgeData;

/* The names that a program built with --default-stream per-thread really calls. */
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define STANDIN_PTDS(name)	      name##_ptds
#define STANDIN_PTSZ(name)	      name##_ptsz
#define cudaMemcpy		      STANDIN_PTDS(cudaMemcpy)
#define cudaMemcpy2D		      STANDIN_PTDS(cudaMemcpy2D)
#define cudaMemcpy3D		      STANDIN_PTDS(cudaMemcpy3D)
#define cudaMemcpy3DPeer	      STANDIN_PTDS(cudaMemcpy3DPeer)
#define cudaMemcpyToSymbol	      STANDIN_PTDS(cudaMemcpyToSymbol)
#define cudaMemcpyFromSymbol	      STANDIN_PTDS(cudaMemcpyFromSymbol)
#define cudaMemcpyToArray	      STANDIN_PTDS(cudaMemcpyToArray)
#define cudaMemcpyFromArray	      STANDIN_PTDS(cudaMemcpyFromArray)
#define cudaMemcpyArrayToArray	      STANDIN_PTDS(cudaMemcpyArrayToArray)
#define cudaMemcpy2DToArray	      STANDIN_PTDS(cudaMemcpy2DToArray)
#define cudaMemcpy2DFromArray	      STANDIN_PTDS(cudaMemcpy2DFromArray)
#define cudaMemcpy2DArrayToArray      STANDIN_PTDS(cudaMemcpy2DArrayToArray)
#define cudaMallocAsync		      STANDIN_PTSZ(cudaMallocAsync)
#define cudaMallocFromPoolAsync	      STANDIN_PTSZ(cudaMallocFromPoolAsync)
#define cudaFreeAsync		      STANDIN_PTSZ(cudaFreeAsync)
#define cudaMemcpyAsync		      STANDIN_PTSZ(cudaMemcpyAsync)
#define cudaMemcpy2DAsync	      STANDIN_PTSZ(cudaMemcpy2DAsync)
#define cudaMemcpy3DAsync	      STANDIN_PTSZ(cudaMemcpy3DAsync)
#define cudaMemcpy3DPeerAsync	      STANDIN_PTSZ(cudaMemcpy3DPeerAsync)
#define cudaMemcpyToSymbolAsync	      STANDIN_PTSZ(cudaMemcpyToSymbolAsync)
#define cudaMemcpyFromSymbolAsync     STANDIN_PTSZ(cudaMemcpyFromSymbolAsync)
#define cudaMemcpyToArrayAsync	      STANDIN_PTSZ(cudaMemcpyToArrayAsync)
#define cudaMemcpyFromArrayAsync      STANDIN_PTSZ(cudaMemcpyFromArrayAsync)
#define cudaMemcpy2DToArrayAsync      STANDIN_PTSZ(cudaMemcpy2DToArrayAsync)
#define cudaMemcpy2DFromArrayAsync    STANDIN_PTSZ(cudaMemcpy2DFromArrayAsync)
#define cudaMemcpyBatchAsync	      STANDIN_PTSZ(cudaMemcpyBatchAsync)
#define cudaMemcpy3DBatchAsync	      STANDIN_PTSZ(cudaMemcpy3DBatchAsync)
#define cudaMemPrefetchAsync	      STANDIN_PTSZ(cudaMemPrefetchAsync)
#define cudaMemPrefetchBatchAsync     STANDIN_PTSZ(cudaMemPrefetchBatchAsync)
#define cudaStreamBeginCapture	      STANDIN_PTSZ(cudaStreamBeginCapture)
#define cudaStreamBeginCaptureToGraph STANDIN_PTSZ(cudaStreamBeginCaptureToGraph)
#define cudaStreamEndCapture	      STANDIN_PTSZ(cudaStreamEndCapture)
#define cudaEventRecord		      STANDIN_PTSZ(cudaEventRecord)
#define cudaEventRecordWithFlags      STANDIN_PTSZ(cudaEventRecordWithFlags)
#define cudaStreamWaitEvent	      STANDIN_PTSZ(cudaStreamWaitEvent)
#define cudaLaunchKernel	      STANDIN_PTSZ(cudaLaunchKernel)
#define cudaLaunchKernelExC	      STANDIN_PTSZ(cudaLaunchKernelExC)
#define cudaLaunchCooperativeKernel   STANDIN_PTSZ(cudaLaunchCooperativeKernel)
#define cudaGraphLaunch		      STANDIN_PTSZ(cudaGraphLaunch)

#define cudaMemDiscardAndPrefetchBatchAsync STANDIN_PTSZ(cudaMemDiscardAndPrefetchBatchAsync)
#endif

/* ---- runtime ---- */
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaMemGetInfo(size_t *left, size_t *total);
cudaError_t cudaHostAlloc(void **p, size_t size, unsigned int flags);
cudaError_t cudaMallocHost(void **p, size_t size);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaHostRegister(void *p, size_t size, unsigned int flags);
cudaError_t cudaHostUnregister(void *p);
cudaError_t cudaMallocManaged(void **p, size_t size, unsigned int flags);
cudaError_t cudaHostGetDevicePointer(void **dev, void *host, unsigned int flags);
cudaError_t cudaMalloc(void **p, size_t size);
cudaError_t cudaMallocAsync(void **p, size_t size, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void **p, size_t size, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *p, struct cudaExtent extent);
cudaError_t cudaFree(void *p);
cudaError_t cudaFreeAsync(void *p, cudaStream_t stream);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
			    unsigned int flags);
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaMemset(void *p, int value, size_t count);
cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
			 enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
			      enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p);
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream);
cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p);
cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream);
cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t count);
cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t count,
				cudaStream_t stream);
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
			       enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count, size_t offset,
				    enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset,
				      enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t w, size_t h, const void *src, size_t count,
			      enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t dst, size_t w, size_t h, const void *src, size_t count,
				   enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t w, size_t h, size_t count,
				enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t w, size_t h, size_t count,
				     enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyArrayToArray(cudaArray_t dst, size_t wdst, size_t hdst, cudaArray_const_t src, size_t wsrc,
				   size_t hsrc, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t w, size_t h, const void *src, size_t spitch, size_t width,
				size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t w, size_t h, const void *src, size_t spitch, size_t width,
				     size_t height, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src, size_t w, size_t h, size_t width,
				  size_t height, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src, size_t w, size_t h,
				       size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wdst, size_t hdst, cudaArray_const_t src, size_t wsrc,
				     size_t hsrc, size_t width, size_t height, enum cudaMemcpyKind kind);
#if STANDIN_CUDART >= 13
cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
				 struct cudaMemcpyAttributes *attrs, size_t *idxs, size_t nattrs, cudaStream_t stream);
cudaError_t cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *ops, unsigned long long flags,
				   cudaStream_t stream);
cudaError_t cudaMemPrefetchAsync(const void *p, size_t count, struct cudaMemLocation loc, unsigned int flags,
				 cudaStream_t stream);
cudaError_t cudaMemAdvise(const void *p, size_t count, enum cudaMemoryAdvise advice, struct cudaMemLocation loc);
#else
cudaError_t cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
				 struct cudaMemcpyAttributes *attrs, size_t *idxs, size_t nattrs, size_t *fail_idx,
				 cudaStream_t stream);
cudaError_t cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *ops, size_t *fail_idx,
				   unsigned long long flags, cudaStream_t stream);
cudaError_t cudaMemPrefetchAsync(const void *p, size_t count, int device, cudaStream_t stream);
cudaError_t cudaMemPrefetchAsync_v2(const void *p, size_t count, struct cudaMemLocation loc, unsigned int flags,
				    cudaStream_t stream);
cudaError_t cudaMemAdvise(const void *p, size_t count, enum cudaMemoryAdvise advice, int device);
cudaError_t cudaMemAdvise_v2(const void *p, size_t count, enum cudaMemoryAdvise advice, struct cudaMemLocation loc);
#endif
cudaError_t cudaMemPrefetchBatchAsync(void **ptrs, size_t *sizes, size_t count, struct cudaMemLocation *locs,
				      size_t *idxs, size_t nlocs, unsigned long long flags, cudaStream_t stream);
cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void **ptrs, size_t *sizes, size_t count, struct cudaMemLocation *locs,
						size_t *idxs, size_t nlocs, unsigned long long flags,
						cudaStream_t stream);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaHostGetFlags(unsigned int *flags, void *p);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *deps,
					  const cudaGraphEdgeData *edges, size_t ndeps,
					  enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t ndeps,
				   const struct cudaMemcpy3DParms *p);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
				     size_t ndeps, void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
					   size_t ndeps, const void *symbol, const void *src, size_t count,
					   size_t offset, enum cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
					     size_t ndeps, void *dst, const void *symbol, size_t count, size_t offset,
					     enum cudaMemcpyKind kind);
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *p);
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src, size_t count,
					   enum cudaMemcpyKind kind);
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
					     const struct cudaMemcpy3DParms *p);
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst, const void *src,
					       size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *src,
						 size_t count, size_t offset, enum cudaMemcpyKind kind);
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst, const void *symbol, size_t count,
						   size_t offset, enum cudaMemcpyKind kind);
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
						     const void *src, size_t count, size_t offset,
						     enum cudaMemcpyKind kind);
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
						       const void *symbol, size_t count, size_t offset,
						       enum cudaMemcpyKind kind);
cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream);
cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
					cudaStream_t stream);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args);

#endif /* STANDIN_REAL_HEADERS */

#if STANDIN_CUDART < 13
struct cudaLaunchParams;
cudaError_t cudaLaunchCooperativeKernelMultiDevice(struct cudaLaunchParams *list, unsigned int n, unsigned int flags);
#endif
#endif
