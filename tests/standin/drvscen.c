// SPDX-License-Identifier: GPL-2.0-only
/*
 * drvscen.c: a program that uses the CUDA driver without the runtime: it makes every class of driver
 * call once or a few times, counted like the scenarios of scen.c, and prints one line of JSON. drvscen
 * [--wait]
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cu_api.h"

#define SIZE 65536
#define MUST(call)                                                                                     \
	do {                                                                                           \
		int must_ = (call);                                                                    \
		if (must_) {                                                                           \
			fprintf(stderr, "drvscen: %s:%d: %s: %d\n", __FILE__, __LINE__, #call, must_); \
			exit(4);                                                                       \
		}                                                                                      \
	} while (0)

static char *host, *host2, *mapped;
static CUdeviceptr dev, dev2, managed, pool_host, pool_dev, pitched;
static size_t pitch;

static void allocate(void)
{
	CUmemPoolProps props;
	CUmemoryPool pool;

	memset(&props, 0, sizeof(props));
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_HOST;
	mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(mapped == MAP_FAILED);
	MUST(cuMemHostAlloc((void **)&host, SIZE, 0));
	MUST(cuMemAllocHost_v2((void **)&host2, SIZE));
	MUST(cuMemHostRegister_v2(mapped, SIZE, 0));
	MUST(cuMemAllocManaged(&managed, SIZE, 1));
	MUST(cuMemAlloc_v2(&dev, SIZE));
	MUST(cuMemAllocAsync(&dev2, SIZE, NULL));
	MUST(cuMemAllocPitch_v2(&pitched, &pitch, 1000, 16, 4));
	MUST(cuMemPoolCreate(&pool, &props));
	MUST(cuMemAllocFromPoolAsync(&pool_host, SIZE, pool, NULL));
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	MUST(cuMemPoolCreate(&pool, &props));
	MUST(cuMemAllocFromPoolAsync(&pool_dev, SIZE, pool, NULL));
}

static void copy(void)
{
	CUDA_MEMCPY2D flat;
	CUDA_MEMCPY3D cube;

	memset(&flat, 0, sizeof(flat));
	memset(&cube, 0, sizeof(cube));
	MUST(cuMemcpyHtoD_v2(dev, host, 1));
	MUST(cuMemcpyHtoDAsync_v2(dev, host2, 10, NULL));
	MUST(cuMemcpyDtoH_v2(mapped, dev, 100));
	MUST(cuMemcpyDtoHAsync_v2(host, dev2, 1000, NULL));
	MUST(cuMemcpyDtoD_v2(dev2, dev, 10000));
	MUST(cuMemcpy(dev, (CUdeviceptr)(uintptr_t)host, 20000));
	MUST(cuMemcpyAsync((CUdeviceptr)(uintptr_t)host2, dev, 30000, NULL));
	flat.srcMemoryType = CU_MEMORYTYPE_HOST;
	flat.srcHost = host;
	flat.srcPitch = 1024;
	flat.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	flat.dstDevice = pitched;
	flat.dstPitch = pitch;
	flat.WidthInBytes = 1000;
	flat.Height = 16;
	MUST(cuMemcpy2D_v2(&flat));
	cube.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	cube.srcDevice = dev;
	cube.srcPitch = 128;
	cube.srcHeight = 8;
	cube.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	cube.dstDevice = (CUdeviceptr)(uintptr_t)mapped;
	cube.dstPitch = 128;
	cube.dstHeight = 8;
	cube.WidthInBytes = 100;
	cube.Height = 8;
	cube.Depth = 4;
	MUST(cuMemcpy3D_v2(&cube));
	MUST(cuMemcpyPeer(dev2, NULL, dev, NULL, 7));
}

/* A range of addresses, one piece of memory of the host and one of the device mapped into it. */
static void virtual_memory(CUdeviceptr *range)
{
	CUmemAllocationProp prop;
	CUmemGenericAllocationHandle h;

	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
	MUST(cuMemAddressReserve(range, 4 << 20, 0, 0, 0));
	MUST(cuMemCreate(&h, 2 << 20, &prop, 0));
	MUST(cuMemMap(*range, 2 << 20, 0, h, 0));
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	MUST(cuMemCreate(&h, 2 << 20, &prop, 0));
	MUST(cuMemMap(*range + (2 << 20), 2 << 20, 0, h, 0));
	MUST(cuMemUnmap(*range, 2 << 20));
}

static void give_back(void)
{
	MUST(cuMemFreeHost(host));
	MUST(cuMemFreeHost(host2));
	MUST(cuMemHostUnregister(mapped));
	MUST(cuMemFree_v2(managed));
	MUST(cuMemFree_v2(dev));
	MUST(cuMemFreeAsync(dev2, NULL));
	MUST(cuMemFree_v2(pitched));
	MUST(cuMemFreeAsync(pool_host, NULL));
	MUST(cuMemFree_v2(pool_dev));
}

int main(int argc, char **argv)
{
	CUdeviceptr range = 0;
	CUcontext ctx;
	char line[16];

	if (argc > 1 && !strcmp(argv[1], "--wait")) {
		printf("ready %d\n", getpid());
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 3;
	}
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&ctx, 1));
	MUST(cuCtxSetCurrent(ctx));
	allocate();
	copy();
	virtual_memory(&range);
	MUST(cuLaunchKernel((CUfunction)(uintptr_t)&range, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	give_back();
	/*
	 * pins: HostAlloc, AllocHost, Register, host pool, host VMM. allocs: those, managed, dev, dev2,
	 * pitched, device pool, device VMM.
	 */
	printf("{\"pid\":%d,\"range\":\"0x%llx\",\"device\":1,\"pins\":5,\"allocs\":11,\"frees\":10,\"kernels\":1,"
	       "\"transfers\":{"
	       "\"h2d\":{\"pinned\":[4,%d]},\"d2h\":{\"pinned\":[4,%d]},\"d2d\":{\"none\":[2,10007]}}}\n",
	       getpid(), range, 1 + 10 + 20000 + 16000, 100 + 1000 + 30000 + 3200);
	return 0;
}
