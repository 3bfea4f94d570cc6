/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rt.h: shared by the files of the stand-in runtime: the driver that it calls with STANDIN_NESTED=1.
 *
 * Nested, the runtime loads libcuda.so.1 at its first call and passes every call on to the driver's
 * exported function of the same meaning, as the real one does; memory then belongs to the driver.
 * Otherwise it works alone.
 */
#ifndef STANDIN_RT_H
#define STANDIN_RT_H

#include "cu_api.h"
#include "api.h"

#define RT_DRIVER(F)                    \
	F(cuCtxSetCurrent)              \
	F(cuDevicePrimaryCtxRetain)     \
	F(cuDevicePrimaryCtxReset_v2)   \
	F(cuMemHostAlloc)               \
	F(cuMemFreeHost)                \
	F(cuMemHostRegister_v2)         \
	F(cuMemHostUnregister)          \
	F(cuMemAllocManaged)            \
	F(cuMemHostGetDevicePointer_v2) \
	F(cuMemAlloc_v2)                \
	F(cuMemAllocAsync)              \
	F(cuMemAllocFromPoolAsync)      \
	F(cuMemAllocPitch_v2)           \
	F(cuMemFree_v2)                 \
	F(cuMemFreeAsync)               \
	F(cuMemPoolCreate)              \
	F(cuMemPoolDestroy)             \
	F(cuArrayCreate_v2)             \
	F(cuArrayDestroy)               \
	F(cuMemsetD8_v2)                \
	F(cuMemcpy)                     \
	F(cuMemcpyAsync)                \
	F(cuMemcpyHtoD_v2)              \
	F(cuMemcpyHtoDAsync_v2)         \
	F(cuMemcpyDtoH_v2)              \
	F(cuMemcpyDtoHAsync_v2)         \
	F(cuMemcpyDtoD_v2)              \
	F(cuMemcpyDtoDAsync_v2)         \
	F(cuMemcpy3D_v2)                \
	F(cuMemcpy3DAsync_v2)           \
	F(cuStreamBeginCapture_v2)      \
	F(cuStreamEndCapture)           \
	F(cuEventRecord)                \
	F(cuStreamWaitEvent)            \
	F(cuLaunchKernel)               \
	F(cuGraphLaunch)

struct rt_driver {
#define F(fn) __typeof__(fn) *fn;
	RT_DRIVER(F)
#undef F
};

/* NULL: not nested. */
const struct rt_driver *rt_driver(void);
/*
 * Copies bytes, now or in a stream, by the driver if nested; kind selects the driver's function and is
 * checked.
 */
int rt_copy(const struct model_copy *c, int kind);
int rt_copy_async(const struct model_copy *c, int kind, void *stream);
/* The device address of a symbol. Nested: in memory of the driver. */
void *rt_symbol(const void *symbol, size_t offset);

#endif
