/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fns.h: the probed functions, one row each, for BPF and daemon. Ids are append-only, because
 * recordings and databases contain them. A new row takes the next id from 512 on: 200 to 255 are for
 * functions named on the command line, 256 to 511 belong to tt_fns.h.
 *
 * F(id, symbol, lib, versions, class, aux, bits, a0, a1, a2, a3, a4, a5, a6, a7)
 *
 *   symbol    base name. Every exported or local symbol made of it, one of the selected versions, and
 *             nothing or "_ptds" or
 *             "_ptsz" is probed (runtime: cudaMemcpy, cudaMemcpy_ptds; driver: cuMemcpyHtoD_v2,
 *             cuMemcpyHtoD_v2_ptds).
 *   lib       RT: the CUDA runtime (dynamic or static), DRV: the driver, USER: named by --alloc-fn /
 *             --free-fn / USDT.
 *   versions  which of "", "_v2", "_v3", "_v4" are meant (V1 | TTMON_V2: users paste TTMON_ before
 *             it): other versions have other arguments.
 *   class     what the call does and how its arguments are read, see enum ttmon_fn_class.
 *   aux       ttmon_method for allocations and frees, ttmon_dir for copies, ttmon_hint for hints,
 *             ttmon_sync for SYNC.
 *   bits      FN_*.
 *   a0..a7    argument positions, 1-based, 0: not there. Their meaning depends on the class.
 *
 * Sources: cuda.h, cuda_runtime_api.h, driver_types.h of CUDA 13.0, and the exported names of its
 * libraries.
 */
#ifndef TTMON_FNS_H
#define TTMON_FNS_H

enum ttmon_fn_class {
	TTMON_CLS_NONE,
	TTMON_CLS_ALLOC,       /* out pointer, size, flags, pool */
	TTMON_CLS_ALLOC_PITCH, /* out pointer, out pitch, width, height: size = pitch * height */
	TTMON_CLS_ALLOC_3D,    /* out cudaPitchedPtr, cudaExtent by value */
	TTMON_CLS_ALLOC_RET,   /* -, size: the pointer is the return value, NULL is failure */
	TTMON_CLS_REGISTER,    /* pointer, size, flags */
	TTMON_CLS_FREE,	       /* pointer */
	TTMON_CLS_COPY,	       /* dst, src, bytes, kind, stream */
	TTMON_CLS_RECT,	       /* dst, dpitch, src, spitch, width, height, kind, stream */
	TTMON_CLS_RT_3D,       /* cudaMemcpy3DParms *, stream */
	TTMON_CLS_RT_3D_PEER,  /* cudaMemcpy3DPeerParms *, stream */
	TTMON_CLS_DRV_2D,      /* CUDA_MEMCPY2D *, stream */
	TTMON_CLS_DRV_3D,      /* CUDA_MEMCPY3D * or CUDA_MEMCPY3D_PEER *, stream */
	TTMON_CLS_BATCH,       /* dsts[], srcs[], sizes[], count, stream */
	TTMON_CLS_BATCH_3D,    /* count, ops[], stream */
	/* pointers[], sizes[], count, locations[], index of the first range of each location[], locations */
	TTMON_CLS_HINT_BATCH,
	TTMON_CLS_HINT,	      /* pointer, bytes, advice, location (type | id << 32, or a device with FN_LOC_DEVICE) */
	TTMON_CLS_HOST_PTR,   /* -, host pointer */
	TTMON_CLS_SET_DEVICE, /* device */
	TTMON_CLS_SET_CTX,    /* context */
	TTMON_CLS_POP_CTX,    /* - */
	TTMON_CLS_NEW_CTX,    /* out context, device */
	TTMON_CLS_RESET,      /* - */
	TTMON_CLS_RESET_CTX,  /* context */
	TTMON_CLS_RESET_DEV,  /* device */
	TTMON_CLS_NEW_POOL,   /* out pool, properties (location type at byte 8) */
	TTMON_CLS_NEW_VMM,    /* out handle, -, properties (location type at byte 8) */
	TTMON_CLS_MAP_VMM,    /* pointer, size, handle */
	TTMON_CLS_CAPTURE_BEGIN, /* stream */
	TTMON_CLS_CAPTURE_END,	 /* stream */
	TTMON_CLS_EVENT_RECORD,	 /* event, stream */
	TTMON_CLS_STREAM_WAIT,	 /* stream, event */
	TTMON_CLS_SYNC,		 /* - */
	TTMON_CLS_LAUNCH,
	TTMON_CLS_GRAPH_LAUNCH,
	TTMON_CLS_GRAPH_COPY, /* a copy node is added to a graph or changed in one */
	TTMON_CLS_MAX,
};

#define TTMON_FN_ASYNC	    (1 << 0) /* returns before the work is done: entry probe only by default */
#define TTMON_FN_SIZE32	    (1 << 1) /* the size is a 32-bit argument */
#define TTMON_FN_LOC_DEVICE (1 << 2) /* the location is a device number (int, -1: host) */
#define TTMON_FN_ENTRY	    (1 << 3) /* entry probe only, always */
#define TTMON_FN_CURRENT    (1 << 4) /* the new context becomes the thread's current one */
#define TTMON_0		    0	     /* a row without bits: users paste TTMON_ before aux and bits */

/* What a SYNC call does: it takes locks of the driver, and does nothing else that we record. */
enum ttmon_sync {
	TTMON_SYNC_WAIT, /* for work on the device */
	TTMON_SYNC_ASK,	 /* how much memory the device has */
};

/* Which versions of a driver symbol a row means. */
#define TTMON_V1 (1 << 0)
#define TTMON_V2 (1 << 1)
#define TTMON_V3 (1 << 2)
#define TTMON_V4 (1 << 3)

/*
 * Where a function lives. RT12/RT13: only in a runtime of that major version, whose argument layout
 * differs.
 */
enum ttmon_fn_lib {
	TTMON_LIB_NONE,
	TTMON_LIB_RT,
	TTMON_LIB_RT12,
	TTMON_LIB_RT13,
	TTMON_LIB_DRV,
	TTMON_LIB_USER,
	TTMON_LIB_USDT,
};
#define TTMON_LIB_IS_RT(lib) ((lib) >= TTMON_LIB_RT && (lib) <= TTMON_LIB_RT13)

/*
 * The cookie of a probe at one of these functions: its row; whether it is one of a whole runtime, and
 * not of a library that has a few functions of these names; and the length of the function in bytes by
 * its symbol (0: not known).
 */
#define TTMON_COOKIE(fn, whole, size) ((unsigned long long)(size) << 32 | ((whole) ? TTMON_COOKIE_WHOLE : 0) | (fn))
#define TTMON_COOKIE_WHOLE	      (1u << 31)
#define TTMON_COOKIE_FN(cookie)	      ((unsigned int)(cookie)&0xffff)
#define TTMON_COOKIE_SIZE(cookie)     ((unsigned int)((cookie) >> 32))

/* Elements of a batched copy that are looked at; a longer batch ends with TTMON_B_TRUNCATED. */
#define TTMON_BATCH_MAX 256

#define TTMON_FN_TABLE(F)                                                                                              \
	/* runtime: host memory */                                                                                     \
	F(1, cudaHostAlloc, RT, V1, ALLOC, METHOD_HOST_ALLOC, 0, 1, 2, 3, 0, 0, 0, 0, 0)                               \
	F(2, cudaMallocHost, RT, V1, ALLOC, METHOD_HOST_ALLOC, 0, 1, 2, 0, 0, 0, 0, 0, 0)                              \
	F(3, cudaFreeHost, RT, V1, FREE, METHOD_HOST_ALLOC, 0, 1, 0, 0, 0, 0, 0, 0, 0)                                 \
	F(4, cudaHostRegister, RT, V1, REGISTER, METHOD_REGISTERED, 0, 1, 2, 3, 0, 0, 0, 0, 0)                         \
	F(5, cudaHostUnregister, RT, V1, FREE, METHOD_REGISTERED, 0, 1, 0, 0, 0, 0, 0, 0, 0)                           \
	F(6, cudaMallocManaged, RT, V1, ALLOC, METHOD_MANAGED, 0, 1, 2, 3, 0, 0, 0, 0, 0)                              \
	F(7, cudaHostGetDevicePointer, RT, V1, HOST_PTR, HINT_DEVICE_PTR, 0, 0, 2, 0, 0, 0, 0, 0, 0)                   \
	/* runtime: device memory and pools */                                                                         \
	F(8, cudaMalloc, RT, V1, ALLOC, METHOD_DEVICE, 0, 1, 2, 0, 0, 0, 0, 0, 0)                                      \
	F(9, cudaMallocAsync, RT, V1, ALLOC, METHOD_DEVICE, 0, 1, 2, 0, 0, 0, 0, 0, 0)                                 \
	F(10, cudaMallocFromPoolAsync, RT, V1, ALLOC, METHOD_DEVICE, 0, 1, 2, 0, 3, 0, 0, 0, 0)                        \
	F(11, cudaMallocPitch, RT, V1, ALLOC_PITCH, METHOD_DEVICE, 0, 1, 2, 3, 4, 0, 0, 0, 0)                          \
	F(12, cudaMalloc3D, RT, V1, ALLOC_3D, METHOD_DEVICE, 0, 1, 0, 0, 0, 0, 0, 0, 0)                                \
	F(13, cudaFree, RT, V1, FREE, METHOD_DEVICE, 0, 1, 0, 0, 0, 0, 0, 0, 0)                                        \
	F(14, cudaFreeAsync, RT, V1, FREE, METHOD_DEVICE, 0, 1, 0, 0, 0, 0, 0, 0, 0)                                   \
	F(15, cudaMemPoolCreate, RT, V1, NEW_POOL, METHOD_NONE, 0, 1, 2, 0, 0, 0, 0, 0, 0)                             \
	/* runtime: copies */                                                                                          \
	F(16, cudaMemcpy, RT, V1, COPY, DIR_DEFAULT, 0, 1, 2, 3, 4, 0, 0, 0, 0)                                        \
	F(17, cudaMemcpyAsync, RT, V1, COPY, DIR_DEFAULT, FN_ASYNC, 1, 2, 3, 4, 5, 0, 0, 0)                            \
	F(18, cudaMemcpy2D, RT, V1, RECT, DIR_DEFAULT, 0, 1, 2, 3, 4, 5, 6, 7, 0)                                      \
	F(19, cudaMemcpy2DAsync, RT, V1, RECT, DIR_DEFAULT, FN_ASYNC, 1, 2, 3, 4, 5, 6, 7, 8)                          \
	F(20, cudaMemcpy3D, RT, V1, RT_3D, DIR_DEFAULT, 0, 1, 0, 0, 0, 0, 0, 0, 0)                                     \
	F(21, cudaMemcpy3DAsync, RT, V1, RT_3D, DIR_DEFAULT, FN_ASYNC, 1, 2, 0, 0, 0, 0, 0, 0)                         \
	F(22, cudaMemcpyPeer, RT, V1, COPY, DIR_D2D, 0, 1, 3, 5, 0, 0, 0, 0, 0)                                        \
	F(23, cudaMemcpyPeerAsync, RT, V1, COPY, DIR_D2D, FN_ASYNC, 1, 3, 5, 0, 6, 0, 0, 0)                            \
	F(24, cudaMemcpy3DPeer, RT, V1, RT_3D_PEER, DIR_D2D, 0, 1, 0, 0, 0, 0, 0, 0, 0)                                \
	F(25, cudaMemcpy3DPeerAsync, RT, V1, RT_3D_PEER, DIR_D2D, FN_ASYNC, 1, 2, 0, 0, 0, 0, 0, 0)                    \
	F(26, cudaMemcpyToSymbol, RT, V1, COPY, DIR_DEFAULT, 0, 0, 2, 3, 5, 0, 0, 0, 0)                                \
	F(27, cudaMemcpyToSymbolAsync, RT, V1, COPY, DIR_DEFAULT, FN_ASYNC, 0, 2, 3, 5, 6, 0, 0, 0)                    \
	F(28, cudaMemcpyFromSymbol, RT, V1, COPY, DIR_DEFAULT, 0, 1, 0, 3, 5, 0, 0, 0, 0)                              \
	F(29, cudaMemcpyFromSymbolAsync, RT, V1, COPY, DIR_DEFAULT, FN_ASYNC, 1, 0, 3, 5, 6, 0, 0, 0)                  \
	F(30, cudaMemcpyToArray, RT, V1, COPY, DIR_DEFAULT, 0, 0, 4, 5, 6, 0, 0, 0, 0)                                 \
	F(31, cudaMemcpyToArrayAsync, RT, V1, COPY, DIR_DEFAULT, FN_ASYNC, 0, 4, 5, 6, 7, 0, 0, 0)                     \
	F(32, cudaMemcpyFromArray, RT, V1, COPY, DIR_DEFAULT, 0, 1, 0, 5, 6, 0, 0, 0, 0)                               \
	F(33, cudaMemcpyFromArrayAsync, RT, V1, COPY, DIR_DEFAULT, FN_ASYNC, 1, 0, 5, 6, 7, 0, 0, 0)                   \
	F(34, cudaMemcpyArrayToArray, RT, V1, COPY, DIR_D2D, 0, 0, 0, 7, 8, 0, 0, 0, 0)                                \
	F(35, cudaMemcpy2DToArray, RT, V1, RECT, DIR_DEFAULT, 0, 0, 0, 4, 5, 6, 7, 8, 0)                               \
	F(36, cudaMemcpy2DToArrayAsync, RT, V1, RECT, DIR_DEFAULT, FN_ASYNC, 0, 0, 4, 5, 6, 7, 8, 9)                   \
	F(37, cudaMemcpy2DFromArray, RT, V1, RECT, DIR_DEFAULT, 0, 1, 2, 0, 0, 6, 7, 8, 0)                             \
	F(38, cudaMemcpy2DFromArrayAsync, RT, V1, RECT, DIR_DEFAULT, FN_ASYNC, 1, 2, 0, 0, 6, 7, 8, 9)                 \
	F(39, cudaMemcpy2DArrayToArray, RT, V1, RECT, DIR_D2D, 0, 0, 0, 0, 0, 7, 8, 9, 0)                              \
	F(40, cudaMemcpyBatchAsync, RT12, V1, BATCH, DIR_DEFAULT, FN_ASYNC, 1, 2, 3, 4, 9, 0, 0, 0)                    \
	F(41, cudaMemcpyBatchAsync, RT13, V1, BATCH, DIR_DEFAULT, FN_ASYNC, 1, 2, 3, 4, 8, 0, 0, 0)                    \
	F(42, cudaMemcpy3DBatchAsync, RT12, V1, BATCH_3D, DIR_DEFAULT, FN_ASYNC, 1, 2, 5, 0, 0, 0, 0, 0)               \
	F(43, cudaMemcpy3DBatchAsync, RT13, V1, BATCH_3D, DIR_DEFAULT, FN_ASYNC, 1, 2, 4, 0, 0, 0, 0, 0)               \
	/* runtime: hints */                                                                                           \
	F(44, cudaMemPrefetchAsync, RT12, V1, HINT, HINT_PREFETCH, FN_LOC_DEVICE, 1, 2, 0, 3, 0, 0, 0, 0)              \
	F(45, cudaMemPrefetchAsync, RT13, V1, HINT, HINT_PREFETCH, 0, 1, 2, 0, 3, 0, 0, 0, 0)                          \
	F(46, cudaMemPrefetchAsync, RT12, V2, HINT, HINT_PREFETCH, 0, 1, 2, 0, 3, 0, 0, 0, 0)                          \
	F(47, cudaMemAdvise, RT12, V1, HINT, HINT_ADVISE, FN_LOC_DEVICE, 1, 2, 3, 4, 0, 0, 0, 0)                       \
	F(48, cudaMemAdvise, RT13, V1, HINT, HINT_ADVISE, 0, 1, 2, 3, 4, 0, 0, 0, 0)                                   \
	F(49, cudaMemAdvise, RT12, V2, HINT, HINT_ADVISE, 0, 1, 2, 3, 4, 0, 0, 0, 0)                                   \
	/* runtime: device, capture, launches */                                                                       \
	F(50, cudaSetDevice, RT, V1, SET_DEVICE, METHOD_NONE, 0, 1, 0, 0, 0, 0, 0, 0, 0)                               \
	F(51, cudaDeviceReset, RT, V1, RESET, METHOD_NONE, 0, 0, 0, 0, 0, 0, 0, 0, 0)                                  \
	F(52, cudaStreamBeginCapture, RT, V1, CAPTURE_BEGIN, METHOD_NONE, 0, 1, 0, 0, 0, 0, 0, 0, 0)                   \
	F(53, cudaStreamBeginCaptureToGraph, RT, V1, CAPTURE_BEGIN, METHOD_NONE, 0, 1, 0, 0, 0, 0, 0, 0, 0)            \
	F(54, cudaStreamEndCapture, RT, V1, CAPTURE_END, METHOD_NONE, FN_ENTRY, 1, 0, 0, 0, 0, 0, 0, 0)                \
	F(55, cudaEventRecord, RT, V1, EVENT_RECORD, METHOD_NONE, FN_ENTRY, 1, 2, 0, 0, 0, 0, 0, 0)                    \
	F(56, cudaEventRecordWithFlags, RT, V1, EVENT_RECORD, METHOD_NONE, FN_ENTRY, 1, 2, 0, 0, 0, 0, 0, 0)           \
	F(57, cudaStreamWaitEvent, RT, V1, STREAM_WAIT, METHOD_NONE, FN_ENTRY, 1, 2, 0, 0, 0, 0, 0, 0)                 \
	F(58, cudaLaunchKernel, RT, V1, LAUNCH, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)                         \
	F(59, cudaLaunchKernelExC, RT, V1, LAUNCH, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)                      \
	F(60, cudaLaunchCooperativeKernel, RT, V1, LAUNCH, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)              \
	F(61, cudaGraphLaunch, RT, V1, GRAPH_LAUNCH, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)                    \
	F(62, cudaGraphAddMemcpyNode, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)               \
	F(63, cudaGraphAddMemcpyNode1D, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)             \
	F(64, cudaGraphAddMemcpyNodeToSymbol, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)       \
	F(65, cudaGraphAddMemcpyNodeFromSymbol, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)     \
	F(66, cudaGraphExecMemcpyNodeSetParams, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)     \
	F(67, cudaGraphExecMemcpyNodeSetParams1D, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)   \
	F(68, cudaGraphMemcpyNodeSetParams, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)         \
	F(69, cudaGraphMemcpyNodeSetParams1D, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)       \
	F(70, cudaMemPrefetchBatchAsync, RT, V1, HINT_BATCH, HINT_PREFETCH, FN_ENTRY, 1, 2, 3, 4, 5, 6, 0, 0)          \
	F(71, cudaGraphExecMemcpyNodeSetParamsToSymbol, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0,   \
	  0, 0)                                                                                                        \
	F(72, cudaGraphExecMemcpyNodeSetParamsFromSymbol, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, \
	  0, 0)                                                                                                        \
	F(73, cudaGraphMemcpyNodeSetParamsToSymbol, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0) \
	F(74, cudaGraphMemcpyNodeSetParamsFromSymbol, RT, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0,  \
	  0)                                                                                                           \
	/* driver: host memory */                                                                                      \
	F(80, cuMemHostAlloc, DRV, V1 | TTMON_V2, ALLOC, METHOD_HOST_ALLOC, 0, 1, 2, 3, 0, 0, 0, 0, 0)                 \
	F(81, cuMemAllocHost, DRV, V1, ALLOC, METHOD_HOST_ALLOC, FN_SIZE32, 1, 2, 0, 0, 0, 0, 0, 0)                    \
	F(82, cuMemAllocHost, DRV, V2, ALLOC, METHOD_HOST_ALLOC, 0, 1, 2, 0, 0, 0, 0, 0, 0)                            \
	F(83, cuMemFreeHost, DRV, V1, FREE, METHOD_HOST_ALLOC, 0, 1, 0, 0, 0, 0, 0, 0, 0)                              \
	F(84, cuMemHostRegister, DRV, V1 | TTMON_V2, REGISTER, METHOD_REGISTERED, 0, 1, 2, 3, 0, 0, 0, 0, 0)           \
	F(85, cuMemHostUnregister, DRV, V1, FREE, METHOD_REGISTERED, 0, 1, 0, 0, 0, 0, 0, 0, 0)                        \
	F(86, cuMemAllocManaged, DRV, V1, ALLOC, METHOD_MANAGED, 0, 1, 2, 3, 0, 0, 0, 0, 0)                            \
	F(87, cuMemHostGetDevicePointer, DRV, V1 | TTMON_V2, HOST_PTR, HINT_DEVICE_PTR, 0, 0, 2, 0, 0, 0, 0, 0, 0)     \
	/* driver: device memory, pools, VMM */                                                                        \
	F(88, cuMemAlloc, DRV, V1, ALLOC, METHOD_DEVICE, FN_SIZE32, 1, 2, 0, 0, 0, 0, 0, 0)                            \
	F(89, cuMemAlloc, DRV, V2, ALLOC, METHOD_DEVICE, 0, 1, 2, 0, 0, 0, 0, 0, 0)                                    \
	F(90, cuMemAllocAsync, DRV, V1, ALLOC, METHOD_DEVICE, 0, 1, 2, 0, 0, 0, 0, 0, 0)                               \
	F(91, cuMemAllocFromPoolAsync, DRV, V1, ALLOC, METHOD_DEVICE, 0, 1, 2, 0, 3, 0, 0, 0, 0)                       \
	F(92, cuMemAllocPitch, DRV, V2, ALLOC_PITCH, METHOD_DEVICE, 0, 1, 2, 3, 4, 0, 0, 0, 0)                         \
	F(93, cuMemFree, DRV, V1 | TTMON_V2, FREE, METHOD_DEVICE, 0, 1, 0, 0, 0, 0, 0, 0, 0)                           \
	F(94, cuMemFreeAsync, DRV, V1, FREE, METHOD_DEVICE, 0, 1, 0, 0, 0, 0, 0, 0, 0)                                 \
	F(95, cuMemPoolCreate, DRV, V1, NEW_POOL, METHOD_NONE, 0, 1, 2, 0, 0, 0, 0, 0, 0)                              \
	F(96, cuMemCreate, DRV, V1, NEW_VMM, METHOD_NONE, 0, 1, 0, 3, 0, 0, 0, 0, 0)                                   \
	F(97, cuMemMap, DRV, V1, MAP_VMM, METHOD_POOL, 0, 1, 2, 4, 0, 0, 0, 0, 0)                                      \
	F(98, cuMemUnmap, DRV, V1, FREE, METHOD_POOL, 0, 1, 0, 0, 0, 0, 0, 0, 0)                                       \
	/* driver: copies */                                                                                           \
	F(99, cuMemcpy, DRV, V1, COPY, DIR_DEFAULT, 0, 1, 2, 3, 0, 0, 0, 0, 0)                                         \
	F(100, cuMemcpyAsync, DRV, V1, COPY, DIR_DEFAULT, FN_ASYNC, 1, 2, 3, 0, 4, 0, 0, 0)                            \
	F(101, cuMemcpyHtoD, DRV, V2, COPY, DIR_H2D, 0, 1, 2, 3, 0, 0, 0, 0, 0)                                        \
	F(102, cuMemcpyHtoDAsync, DRV, V2, COPY, DIR_H2D, FN_ASYNC, 1, 2, 3, 0, 4, 0, 0, 0)                            \
	F(103, cuMemcpyDtoH, DRV, V2, COPY, DIR_D2H, 0, 1, 2, 3, 0, 0, 0, 0, 0)                                        \
	F(104, cuMemcpyDtoHAsync, DRV, V2, COPY, DIR_D2H, FN_ASYNC, 1, 2, 3, 0, 4, 0, 0, 0)                            \
	F(105, cuMemcpyDtoD, DRV, V2, COPY, DIR_D2D, 0, 1, 2, 3, 0, 0, 0, 0, 0)                                        \
	F(106, cuMemcpyDtoDAsync, DRV, V2, COPY, DIR_D2D, FN_ASYNC, 1, 2, 3, 0, 4, 0, 0, 0)                            \
	F(107, cuMemcpyHtoA, DRV, V2, COPY, DIR_H2D, 0, 0, 3, 4, 0, 0, 0, 0, 0)                                        \
	F(108, cuMemcpyHtoAAsync, DRV, V2, COPY, DIR_H2D, FN_ASYNC, 0, 3, 4, 0, 5, 0, 0, 0)                            \
	F(109, cuMemcpyAtoH, DRV, V2, COPY, DIR_D2H, 0, 1, 0, 4, 0, 0, 0, 0, 0)                                        \
	F(110, cuMemcpyAtoHAsync, DRV, V2, COPY, DIR_D2H, FN_ASYNC, 1, 0, 4, 0, 5, 0, 0, 0)                            \
	F(111, cuMemcpyAtoD, DRV, V2, COPY, DIR_D2D, 0, 1, 0, 4, 0, 0, 0, 0, 0)                                        \
	F(112, cuMemcpyDtoA, DRV, V2, COPY, DIR_D2D, 0, 0, 3, 4, 0, 0, 0, 0, 0)                                        \
	F(113, cuMemcpyAtoA, DRV, V2, COPY, DIR_D2D, 0, 0, 0, 5, 0, 0, 0, 0, 0)                                        \
	F(114, cuMemcpy2D, DRV, V2, DRV_2D, DIR_DEFAULT, 0, 1, 0, 0, 0, 0, 0, 0, 0)                                    \
	F(115, cuMemcpy2DUnaligned, DRV, V2, DRV_2D, DIR_DEFAULT, 0, 1, 0, 0, 0, 0, 0, 0, 0)                           \
	F(116, cuMemcpy2DAsync, DRV, V2, DRV_2D, DIR_DEFAULT, FN_ASYNC, 1, 2, 0, 0, 0, 0, 0, 0)                        \
	F(117, cuMemcpy3D, DRV, V2, DRV_3D, DIR_DEFAULT, 0, 1, 0, 0, 0, 0, 0, 0, 0)                                    \
	F(118, cuMemcpy3DAsync, DRV, V2, DRV_3D, DIR_DEFAULT, FN_ASYNC, 1, 2, 0, 0, 0, 0, 0, 0)                        \
	F(119, cuMemcpy3DPeer, DRV, V1, DRV_3D, DIR_DEFAULT, 0, 1, 0, 0, 0, 0, 0, 0, 0)                                \
	F(120, cuMemcpy3DPeerAsync, DRV, V1, DRV_3D, DIR_DEFAULT, FN_ASYNC, 1, 2, 0, 0, 0, 0, 0, 0)                    \
	F(121, cuMemcpyPeer, DRV, V1, COPY, DIR_D2D, 0, 1, 3, 5, 0, 0, 0, 0, 0)                                        \
	F(122, cuMemcpyPeerAsync, DRV, V1, COPY, DIR_D2D, FN_ASYNC, 1, 3, 5, 0, 6, 0, 0, 0)                            \
	F(123, cuMemcpyBatchAsync, DRV, V1, BATCH, DIR_DEFAULT, FN_ASYNC, 1, 2, 3, 4, 9, 0, 0, 0)                      \
	F(124, cuMemcpyBatchAsync, DRV, V2, BATCH, DIR_DEFAULT, FN_ASYNC, 1, 2, 3, 4, 8, 0, 0, 0)                      \
	F(125, cuMemcpy3DBatchAsync, DRV, V1, BATCH_3D, DIR_DEFAULT, FN_ASYNC, 1, 2, 5, 0, 0, 0, 0, 0)                 \
	F(126, cuMemcpy3DBatchAsync, DRV, V2, BATCH_3D, DIR_DEFAULT, FN_ASYNC, 1, 2, 4, 0, 0, 0, 0, 0)                 \
	/* driver: hints, device, capture, launches */                                                                 \
	F(127, cuMemPrefetchAsync, DRV, V1, HINT, HINT_PREFETCH, FN_LOC_DEVICE, 1, 2, 0, 3, 0, 0, 0, 0)                \
	F(128, cuMemPrefetchAsync, DRV, V2, HINT, HINT_PREFETCH, 0, 1, 2, 0, 3, 0, 0, 0, 0)                            \
	F(129, cuMemAdvise, DRV, V1, HINT, HINT_ADVISE, FN_LOC_DEVICE, 1, 2, 3, 4, 0, 0, 0, 0)                         \
	F(130, cuMemAdvise, DRV, V2, HINT, HINT_ADVISE, 0, 1, 2, 3, 4, 0, 0, 0, 0)                                     \
	F(131, cuCtxSetCurrent, DRV, V1, SET_CTX, METHOD_NONE, 0, 1, 0, 0, 0, 0, 0, 0, 0)                              \
	F(132, cuCtxPushCurrent, DRV, V1 | TTMON_V2, SET_CTX, METHOD_NONE, 0, 1, 0, 0, 0, 0, 0, 0, 0)                  \
	F(133, cuCtxCreate, DRV, V1 | TTMON_V2, NEW_CTX, METHOD_NONE, FN_CURRENT, 1, 3, 0, 0, 0, 0, 0, 0)              \
	F(134, cuCtxCreate, DRV, V3, NEW_CTX, METHOD_NONE, FN_CURRENT, 1, 5, 0, 0, 0, 0, 0, 0)                         \
	F(135, cuCtxCreate, DRV, V4, NEW_CTX, METHOD_NONE, FN_CURRENT, 1, 4, 0, 0, 0, 0, 0, 0)                         \
	F(136, cuDevicePrimaryCtxRetain, DRV, V1, NEW_CTX, METHOD_NONE, 0, 1, 2, 0, 0, 0, 0, 0, 0)                     \
	F(137, cuCtxDestroy, DRV, V1 | TTMON_V2, RESET_CTX, METHOD_NONE, 0, 1, 0, 0, 0, 0, 0, 0, 0)                    \
	F(138, cuDevicePrimaryCtxReset, DRV, V1 | TTMON_V2, RESET_DEV, METHOD_NONE, 0, 1, 0, 0, 0, 0, 0, 0, 0)         \
	F(139, cuStreamBeginCapture, DRV, V1 | TTMON_V2, CAPTURE_BEGIN, METHOD_NONE, 0, 1, 0, 0, 0, 0, 0, 0, 0)        \
	F(140, cuStreamBeginCaptureToGraph, DRV, V1, CAPTURE_BEGIN, METHOD_NONE, 0, 1, 0, 0, 0, 0, 0, 0, 0)            \
	F(141, cuStreamEndCapture, DRV, V1, CAPTURE_END, METHOD_NONE, FN_ENTRY, 1, 0, 0, 0, 0, 0, 0, 0)                \
	F(142, cuEventRecord, DRV, V1, EVENT_RECORD, METHOD_NONE, FN_ENTRY, 1, 2, 0, 0, 0, 0, 0, 0)                    \
	F(143, cuEventRecordWithFlags, DRV, V1, EVENT_RECORD, METHOD_NONE, FN_ENTRY, 1, 2, 0, 0, 0, 0, 0, 0)           \
	F(144, cuStreamWaitEvent, DRV, V1, STREAM_WAIT, METHOD_NONE, FN_ENTRY, 1, 2, 0, 0, 0, 0, 0, 0)                 \
	F(145, cuLaunchKernel, DRV, V1, LAUNCH, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)                         \
	F(146, cuLaunchKernelEx, DRV, V1, LAUNCH, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)                       \
	F(147, cuLaunchCooperativeKernel, DRV, V1, LAUNCH, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)              \
	F(148, cuGraphLaunch, DRV, V1, GRAPH_LAUNCH, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)                    \
	F(149, cuGraphAddMemcpyNode, DRV, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)               \
	F(150, cuGraphExecMemcpyNodeSetParams, DRV, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)     \
	F(151, cuGraphMemcpyNodeSetParams, DRV, V1, GRAPH_COPY, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)         \
	F(152, cuCtxPopCurrent, DRV, V1 | TTMON_V2, POP_CTX, METHOD_NONE, 0, 0, 0, 0, 0, 0, 0, 0, 0)                   \
	F(153, cuMemPrefetchBatchAsync, DRV, V1, HINT_BATCH, HINT_PREFETCH, FN_ENTRY, 1, 2, 3, 4, 5, 6, 0, 0)          \
	/* launches on several devices, of which argument 2 says how many; what came before CUDA 4 */                  \
	F(512, cudaLaunchCooperativeKernelMultiDevice, RT12, V1, LAUNCH, METHOD_NONE, FN_ENTRY, 2, 0, 0, 0, 0, 0, 0,   \
	  0)                                                                                                           \
	F(513, cuLaunchCooperativeKernelMultiDevice, DRV, V1, LAUNCH, METHOD_NONE, FN_ENTRY, 2, 0, 0, 0, 0, 0, 0, 0)   \
	F(514, cuLaunch, DRV, V1, LAUNCH, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)                               \
	F(515, cuLaunchGrid, DRV, V1, LAUNCH, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)                           \
	F(516, cuLaunchGridAsync, DRV, V1, LAUNCH, METHOD_NONE, FN_ENTRY, 0, 0, 0, 0, 0, 0, 0, 0)                      \
	/* prefetches of memory whose contents are of no interest any more */                                          \
	F(517, cudaMemDiscardAndPrefetchBatchAsync, RT13, V1, HINT_BATCH, HINT_PREFETCH, FN_ENTRY, 1, 2, 3, 4, 5, 6,   \
	  0, 0)                                                                                                        \
	F(518, cuMemDiscardAndPrefetchBatchAsync, DRV, V1, HINT_BATCH, HINT_PREFETCH, FN_ENTRY, 1, 2, 3, 4, 5, 6, 0,   \
	  0)                                                                                                           \
	F(519, cudaDeviceSynchronize, RT, V1, SYNC, SYNC_WAIT, 0, 0, 0, 0, 0, 0, 0, 0, 0)                              \
	F(520, cudaStreamSynchronize, RT, V1, SYNC, SYNC_WAIT, 0, 0, 0, 0, 0, 0, 0, 0, 0)                              \
	F(521, cudaEventSynchronize, RT, V1, SYNC, SYNC_WAIT, 0, 0, 0, 0, 0, 0, 0, 0, 0)                               \
	F(522, cudaMemGetInfo, RT, V1, SYNC, SYNC_ASK, 0, 0, 0, 0, 0, 0, 0, 0, 0)                                      \
	F(523, cuCtxSynchronize, DRV, V1 | TTMON_V2, SYNC, SYNC_WAIT, 0, 0, 0, 0, 0, 0, 0, 0, 0)                       \
	F(524, cuStreamSynchronize, DRV, V1, SYNC, SYNC_WAIT, 0, 0, 0, 0, 0, 0, 0, 0, 0)                               \
	F(525, cuEventSynchronize, DRV, V1, SYNC, SYNC_WAIT, 0, 0, 0, 0, 0, 0, 0, 0, 0)                                \
	F(526, cuMemGetInfo, DRV, V1 | TTMON_V2, SYNC, SYNC_ASK, 0, 0, 0, 0, 0, 0, 0, 0, 0)

/* Rows whose symbol comes from the command line: --alloc-fn and --free-fn, then the USDT points. */
#define TTMON_FN_USER		 200
#define TTMON_FN_USER_MAX	 16
#define TTMON_FN_USDT_ALLOC	 216
#define TTMON_FN_USDT_FREE	 217
#define TTMON_FN_USDT_CHECKPOINT 218

/*
 * All function ids are below this, including those of tt_fns.h. A power of two: the BPF programs take
 * an id modulo it.
 */
#define TTMON_FN_IDS 1024

/* One past the highest id here. */
union ttmon_fn_ids {
#define F(id, ...) char of_##id[(id) + 1];
	TTMON_FN_TABLE(F)
#undef F
	char of_usdt[TTMON_FN_USDT_CHECKPOINT + 1];
};
enum { TTMON_FN_COUNT = sizeof(union ttmon_fn_ids) };

/* What the BPF programs know about a function, by its id (the attach cookie). */
struct ttmon_fn_desc {
	unsigned char cls; /* enum ttmon_fn_class; 0: no such function */
	unsigned char aux;
	unsigned char bits; /* TTMON_FN_* */
	unsigned char lib;  /* enum ttmon_fn_lib */
	unsigned char arg[8];
};
/* A row of the table as one, in a table by id. */
#define TTMON_FN_DESC(id, sym, lib, ver, c, x, b, a0, a1, a2, a3, a4, a5, a6, a7) \
	[id] = { TTMON_CLS_##c, TTMON_##x, TTMON_##b, TTMON_LIB_##lib, { a0, a1, a2, a3, a4, a5, a6, a7 } },

#endif /* TTMON_FNS_H */
