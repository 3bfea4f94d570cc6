// SPDX-License-Identifier: GPL-2.0-only
/*
 * memtrace.cu: kernels whose accesses are known. Each is KERNEL(const void *in, void *out, unsigned int n), n elements of input. For the runtime they are compiled
 * into the program; for the driver there is what nvcc makes of them beside this, so that the stand-in GPU can run them where no CUDA is. Its version is lowered to
 * what the text needs: a driver refuses PTX that is newer than itself. Made again by
 *
 *	nvcc -ptx -arch=compute_75 -lineinfo -std=c++17 memtrace.cu -o - |
 *		sed "s,\"$(git rev-parse --show-toplevel)/,\",; s,^\.version .*,.version 7.2," > memtrace.ptx
 */
#include <stdint.h>

#include "memtrace_cases.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef float f32;
typedef double f64;
typedef float4 f32x4;

#define KERNEL(name) extern "C" __global__ void name(const void *vin, void *vout, u32 n)
#define INDEX()	     (blockIdx.x * blockDim.x + threadIdx.x)

#define C(name, type, span, expr, lanes, sectors, lines, ideal)            \
	KERNEL(name)                                                       \
	{                                                                  \
		u32 i = INDEX(), l = i % 32;                               \
                                                                           \
		if (i < n / (span) && (lanes) >> l & 1)                    \
			((type *)vout)[i] = ((const type *)vin)[expr];     \
	}
GLOBAL_CASES(C)
#undef C

#define C(name, type, size, expr, stored, loaded)                                 \
	KERNEL(name)                                                              \
	{                                                                         \
		__shared__ type s[size];                                          \
		const type *in = (const type *)vin + (size_t)blockIdx.x * (size); \
		u32 l = threadIdx.x;                                              \
                                                                                  \
		for (u32 k = l; k < (size); k += 32)                              \
			s[k] = in[k];                                             \
		__syncthreads();                                                  \
		((type *)vout)[INDEX()] = s[expr];                                \
	}
SHARED_CASES(C)
#undef C

/* Two inputs, one behind the other. */
KERNEL(vadd)
{
	const u32 *a = (const u32 *)vin;
	u32 i = INDEX();

	if (i < n / 2)
		((u32 *)vout)[i] = a[i] + a[n / 2 + i];
}

/* n: elements of a row and of a column, a multiple of 32; blocks of 32 x 8. */
KERNEL(transpose_naive)
{
	u32 x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;

	for (u32 j = 0; j < 32; j += 8)
		((u32 *)vout)[x * n + y + j] = ((const u32 *)vin)[(y + j) * n + x];
}

template <int PAD> static __device__ void transpose(const u32 *in, u32 *out, u32 n)
{
	__shared__ u32 t[32][32 + PAD];
	u32 x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;

	for (u32 j = 0; j < 32; j += 8)
		t[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
	__syncthreads();
	x = blockIdx.y * 32 + threadIdx.x;
	y = blockIdx.x * 32 + threadIdx.y;
	for (u32 j = 0; j < 32; j += 8)
		out[(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}
KERNEL(transpose_banks)
{
	transpose<0>((const u32 *)vin, (u32 *)vout, n);
}
KERNEL(transpose_padded)
{
	transpose<1>((const u32 *)vin, (u32 *)vout, n);
}

/* Lane l goes round l % 4 + 1 times. */
KERNEL(divergent)
{
	const u32 *in = (const u32 *)vin;
	u32 i = INDEX(), sum = 0;

	for (u32 k = 0; k <= i % 4; k++)
		sum = sum * 3 + in[(i + k * 32) % n];
	((u32 *)vout)[i] = sum;
}

/* 32 sums, each lane of a warp has one. */
KERNEL(atomics)
{
	u32 i = INDEX();

	if (i < n)
		atomicAdd((u32 *)vout + i % 32, ((const u32 *)vin)[i]);
}

/* On which multiprocessor each block ran. */
KERNEL(smid)
{
	u32 sm;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	if (!threadIdx.x)
		((u32 *)vout)[blockIdx.x] = sm;
}
