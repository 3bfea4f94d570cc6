// SPDX-License-Identifier: GPL-2.0-only
/*
 * torch_rt.c: what a real PyTorch 2.6 for CUDA 12 (Debian's python3-torch-cuda) calls of the
 * runtime beyond what the stand-in libcudart has.
 *
 * With the objects of the stand-in it makes a libcudart.so.12 on which torch_loop.py runs: memory
 * is allocated, pinned and copied, and no kernel does anything. README.md says how it is tried.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "model.h"

struct dim3 {
	unsigned int x, y, z;
};

/* ---- what nvcc's code calls ---- */
static __thread struct {
	struct dim3 grid, block;
	size_t shared;
	void *stream;
} configuration;

unsigned int __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared, void *stream)
{
	configuration.grid = grid;
	configuration.block = block;
	configuration.shared = shared;
	configuration.stream = stream;
	return 0;
}

int __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared, void **stream)
{
	*grid = configuration.grid;
	*block = configuration.block;
	*shared = configuration.shared;
	*stream = configuration.stream;
	return 0;
}

void **__cudaRegisterFatBinary(void *image)
{
	static void *handle;

	(void)image;
	return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *dev, const char *name, int limit)
{
	(void)handle, (void)host, (void)dev, (void)name, (void)limit;
}

void __cudaRegisterVar(void **handle, char *host, char *dev, const char *name, int ext, size_t size, int constant)
{
	(void)handle, (void)host, (void)dev, (void)name, (void)ext, (void)size, (void)constant;
}

/* ---- the device ---- */

/* Offsets in cudaDeviceProp: driver_types.h of CUDA 12.4. */
int cudaGetDeviceProperties_v2(char *prop, int device)
{
	static const struct {
		size_t at;
		int value;
	} fields[] = {
		{ 304, 65536 }, { 308, 32 },	     { 320, 1024 },  { 324, 1024 },  { 328, 1024 },
		{ 332, 64 },	{ 336, 0x7fffffff }, { 340, 65535 }, { 344, 65535 }, { 360, 8 },
		{ 364, 0 },	{ 388, 2 },	     { 624, 2048 },
	};

	if (device < 0 || device >= STANDIN_DEVICES)
		return E_DEVICE;
	memset(prop, 0, 1032);
	strcpy(prop, "stand-in");
	*(size_t *)(prop + 288) = (size_t)16 << 30;
	*(size_t *)(prop + 296) = 49152;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		memcpy(prop + fields[i].at, &fields[i].value, sizeof(int));
	return 0;
}

int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)attribute, (void)device;
	*value = 1;
	return 0;
}

int cudaMemGetInfo(size_t *available, size_t *total)
{
	*available = *total = (size_t)16 << 30;
	return 0;
}

int cudaDriverGetVersion(int *version)
{
	*version = 12040;
	return 0;
}

int cudaRuntimeGetVersion(int *version)
{
	return cudaDriverGetVersion(version);
}

const char *cudaGetErrorString(int err)
{
	static __thread char text[32];

	snprintf(text, sizeof(text), "error %d", err);
	return text;
}

const char *cudaGetErrorName(int err)
{
	return cudaGetErrorString(err);
}

int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = *greatest = 0;
	return 0;
}

struct attributes {
	int type, device;
	void *dev, *host;
};

int cudaPointerGetAttributes(struct attributes *a, const void *p)
{
	a->type = model_is_device(p) ? 2 : model_is_host(p) ? 1 : 0;
	a->device = a->type ? 0 : -2;
	a->dev = a->type ? (void *)p : NULL;
	a->host = a->type == 2 ? NULL : (void *)p;
	return 0;
}

int cudaMemsetAsync(void *p, int value, size_t n, void *stream)
{
	(void)stream;
	return model_set(p, value, n);
}

int cudaStreamCreateWithPriority(void **stream, unsigned int flags, int priority)
{
	(void)flags, (void)priority;
	return model_stream_new(stream);
}

int cudaStreamQuery(void *stream)
{
	(void)stream;
	return 0;
}

int cudaStreamGetCaptureInfo_v2(void *stream, int *status, void *id, void *graph, void *dependencies, size_t *n)
{
	(void)id, (void)graph, (void)dependencies, (void)n;
	*status = model_is_capturing(stream);
	return 0;
}

/* ---- what the loop does not need ---- */
#define NOT_SUPPORTED(name)             \
	int name(void)                  \
	{                               \
		return E_NOT_SUPPORTED; \
	}
NOT_SUPPORTED(cudaDeviceGetPCIBusId)
NOT_SUPPORTED(cudaDeviceCanAccessPeer)
NOT_SUPPORTED(cudaDeviceEnablePeerAccess)
NOT_SUPPORTED(cudaDeviceGetDefaultMemPool)
NOT_SUPPORTED(cudaEventElapsedTime)
NOT_SUPPORTED(cudaFuncGetAttributes)
NOT_SUPPORTED(cudaFuncSetAttribute)
NOT_SUPPORTED(cudaGraphDebugDotPrint)
NOT_SUPPORTED(cudaGraphGetNodes)
NOT_SUPPORTED(cudaGraphInstantiateWithFlags)
NOT_SUPPORTED(cudaIpcCloseMemHandle)
NOT_SUPPORTED(cudaIpcGetEventHandle)
NOT_SUPPORTED(cudaIpcGetMemHandle)
NOT_SUPPORTED(cudaIpcOpenEventHandle)
NOT_SUPPORTED(cudaIpcOpenMemHandle)
NOT_SUPPORTED(cudaLaunchHostFunc)
NOT_SUPPORTED(cudaMemPoolGetAttribute)
NOT_SUPPORTED(cudaMemPoolSetAccess)
NOT_SUPPORTED(cudaMemPoolSetAttribute)
NOT_SUPPORTED(cudaMemPoolTrimTo)
NOT_SUPPORTED(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
NOT_SUPPORTED(cudaProfilerStart)
NOT_SUPPORTED(cudaProfilerStop)
NOT_SUPPORTED(cudaStreamGetPriority)
