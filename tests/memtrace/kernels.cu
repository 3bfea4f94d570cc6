// SPDX-License-Identifier: GPL-2.0-only
/*
 * kernels.cu: kernels whose accesses are known, for the tests of the PTX rewriter, of its recorder and of the stand-in GPU. What nvcc makes of it is kept
 * beside it, so that no test needs CUDA; made again by
 *
 *	for a in 75 80 90; do nvcc -ptx -arch=compute_$a -lineinfo -std=c++17 kernels.cu -o - | sed "s,\"$(git rev-parse --show-toplevel)/,\"," > kernels_$a.ptx; done
 */
#include <cuda_fp16.h>
#include <stdint.h>

#define GLOBAL	extern "C" __global__ void
#define INDEX() (blockIdx.x * blockDim.x + threadIdx.x)

GLOBAL vadd(const float *a, const float *b, float *c, int n)
{
	int i = INDEX();

	if (i < n)
		c[i] = a[i] + b[i];
}

GLOBAL vadd64(const double *a, const double *b, double *c, int n)
{
	int i = INDEX();

	if (i < n)
		c[i] = a[i] + b[i];
}

GLOBAL vadd4(const float4 *a, const float4 *b, float4 *c, int n)
{
	int i = INDEX();

	if (i < n) {
		float4 x = a[i], y = b[i];

		c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
	}
}

GLOBAL bytes(const uint8_t *a, uint8_t *b, int n)
{
	int i = INDEX();

	if (i < n)
		b[i] = a[i] ^ 0x5a;
}

GLOBAL halves(const __half *a, const __half2 *b, __half *c, __half2 *d, int n)
{
	int i = INDEX();

	if (i < n) {
		c[i] = __hadd(a[i], a[i]);
		d[i] = __hmul2(b[i], b[i]);
	}
}

/* n x n floats, n a multiple of 32; blocks of 32 x 8. */
GLOBAL transpose_naive(const float *in, float *out, int n)
{
	int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;

	for (int j = 0; j < 32; j += 8)
		out[x * n + y + j] = in[(y + j) * n + x];
}

template <int PAD> static __device__ void transpose(const float *in, float *out, int n)
{
	__shared__ float t[32][32 + PAD];
	int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;

	for (int j = 0; j < 32; j += 8)
		t[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
	__syncthreads();
	x = blockIdx.y * 32 + threadIdx.x;
	y = blockIdx.x * 32 + threadIdx.y;
	for (int j = 0; j < 32; j += 8)
		out[(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}
GLOBAL transpose_banks(const float *in, float *out, int n)
{
	transpose<0>(in, out, n);
}
GLOBAL transpose_padded(const float *in, float *out, int n)
{
	transpose<1>(in, out, n);
}

GLOBAL strided(const float *a, float *b, int n, int stride)
{
	int i = INDEX();

	if (i < n)
		b[i] = a[(size_t)i * stride];
}

GLOBAL gather(const float *a, const int *index, float *b, int n)
{
	int i = INDEX();

	if (i < n)
		b[i] = a[index[i]];
}

/* Sums of blocks of 256; dynamic shared memory of 256 ints. */
GLOBAL reduce(const int *a, int *sums, int n)
{
	extern __shared__ int s[];
	int i = INDEX();

	s[threadIdx.x] = i < n ? a[i] : 0;
	for (int k = blockDim.x / 2; k; k /= 2) {
		__syncthreads();
		if (threadIdx.x < k)
			s[threadIdx.x] += s[threadIdx.x + k];
	}
	if (!threadIdx.x)
		sums[blockIdx.x] = s[0];
}

GLOBAL histogram(const uint8_t *a, unsigned int *bins, int n)
{
	__shared__ unsigned int h[256];

	for (int k = threadIdx.x; k < 256; k += blockDim.x)
		h[k] = 0;
	__syncthreads();
	for (int i = INDEX(); i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&h[a[i]], 1u);
	__syncthreads();
	for (int k = threadIdx.x; k < 256; k += blockDim.x)
		atomicAdd(&bins[k], h[k]);
}

/* old[i]: what the atomics returned; *max, *sum: reductions. */
GLOBAL atomics(const int *a, int *old, int *slot, int *max, float *sum, int n)
{
	int i = INDEX();

	if (i < n) {
		old[i] = atomicCAS(&slot[a[i] & 63], 0, a[i]);
		atomicMax(max, a[i]);
		atomicAdd(sum, 1.0f);
	}
}

/* Pointers that may be shared or global: odd threads read the array, even ones what the block has put into shared memory. */
GLOBAL generic(const int *a, int *b, int n)
{
	__shared__ int s[256];
	int i = INDEX();
	const volatile int *p = &s[threadIdx.x ^ 2];

	s[threadIdx.x] = 3 * i;
	__syncthreads();
	if (i & 1 && i < n)
		p = &a[i];
	if (i < n)
		b[i] = *p;
}

/* A local array that is indexed by what is only known at run time. */
GLOBAL local_array(const int *a, int *b, int n)
{
	int i = INDEX(), t[16];

	if (i >= n)
		return;
	for (int k = 0; k < 16; k++)
		t[k] = a[k] * i;
	b[i] = t[a[i & 15] & 15];
}

/* Threads go round the loop as often as their datum says. */
GLOBAL divergent(const int *a, int *b, int n)
{
	int i = INDEX(), x = 0;

	if (i >= n)
		return;
	for (int k = 0; k < (a[i] & 7); k++)
		x += a[(i + k) % n];
	if (threadIdx.x & 1)
		b[i] = x;
	else
		b[i] = -x;
}

static __device__ __noinline__ int sum_below(const int *a, int k)
{
	return k < 0 ? 0 : a[k] + sum_below(a, k - 1);
}
static __device__ __noinline__ int twice_at(const int *a, int k)
{
	return 2 * a[k];
}
static __device__ __noinline__ void store_at(int *b, int i, int x)
{
	b[i] = x;
}
GLOBAL calls(const int *a, int *b, int n)
{
	int i = INDEX();

	if (i < n)
		store_at(b, i, sum_below(a, i & 7) + twice_at(a, i));
}

typedef int (*pick_fn)(const int *, int);
static __device__ __noinline__ int minus_at(const int *a, int k)
{
	return -a[k];
}
static __device__ const pick_fn picks[2] = { twice_at, minus_at };
GLOBAL indirect(const int *a, int *b, int n, int which)
{
	int i = INDEX();

	if (i < n)
		b[i] = picks[which & 1](a, i);
}

/* Grid and block of three dimensions: nx x ny x nz is the grid times the block. */
GLOBAL volume(const float *a, float *b)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
	int nx = gridDim.x * blockDim.x, ny = gridDim.y * blockDim.y, i = (z * ny + y) * nx + x;

	b[i] = a[i] * 2.0f;
}

struct shape {
	const float *a;
	float *b;
	int n;
	short from[3];
	char add;
};
GLOBAL by_value(struct shape s, char last)
{
	int i = INDEX();

	if (i < s.n)
		s.b[i] = s.a[i] + s.from[i % 3] + s.add + last;
}

extern "C" {
__device__ int counter;
__device__ int table[64] = { 1, 2, 3, 4 };
}
GLOBAL nothing_given()
{
	if (threadIdx.x < 64)
		table[threadIdx.x] += 7;
	atomicAdd(&counter, 1);
}

template <typename T> struct axpy {
	T a;
	__device__ T operator()(T x, T y) const
	{
		return a * x + y;
	}
};
template <typename F, typename T> __global__ void apply(F f, const T *x, T *y, int n)
{
	int i = INDEX();

	if (i < n)
		y[i] = f(x[i], y[i]);
}
template __global__ void apply<axpy<float>, float>(axpy<float>, const float *, float *, int);

/* Inline assembly: the address register is overwritten by the load, a guarded load, several instructions in a line, a scope, a prefetch. */
GLOBAL by_hand(const unsigned long long *a, unsigned int *b, int n)
{
	int i = INDEX();
	const unsigned long long *p = a + i;
	unsigned long long q = (unsigned long long)p;
	unsigned int x = 0;

	if (i >= n)
		return;
	asm volatile("{ .reg .pred p, q; setp.lt.s32 p, %2, 20; prefetch.global.L2 [%0]; @p ld.global.u64 %0, [%0]; not.pred q, p;\n"
		     "@!p ld.global.ca.u64 %0, [%0+-0]; cvt.u32.u64 %1, %0; }"
		     : "+l"(q), "=r"(x)
		     : "r"(i)
		     : "memory");
	asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(b + i), "r"(x) : "memory");
	asm volatile("red.global.add.u32 [%0+4], 1;" ::"l"(b + n - 1) : "memory");
}

#if __CUDA_ARCH__ >= 750 || !defined(__CUDA_ARCH__)
/* One warp: the four 8 x 8 matrices of 16 bits that lie in 512 bytes, row after row; out[lane]: the lane's four registers. */
GLOBAL matrix(const uint4 *a, uint4 *out)
{
	__shared__ uint4 s[32];
	unsigned int at, r[4];

	s[threadIdx.x] = a[threadIdx.x];
	__syncthreads();
	at = (unsigned int)__cvta_generic_to_shared(&s[threadIdx.x]);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
	asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[3]) : "r"(at));
	out[threadIdx.x] = make_uint4(r[0], r[1], r[2], r[3]);
}
#endif

#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)
/* Blocks of 128: 16 bytes a thread by way of shared memory; those past n are filled with zeros, and the last eight bytes of each odd one too. */
GLOBAL async_copy(const uint4 *a, uint4 *b, int n)
{
	__shared__ uint4 s[128];
	unsigned int at = (unsigned int)__cvta_generic_to_shared(&s[threadIdx.x]), i = INDEX(), bytes = i >= n ? 0 : i & 1 ? 8 : 16;

	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(a + i), "r"(bytes) : "memory");
	asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
	__syncthreads();
	b[i] = s[threadIdx.x ^ 1];
}

GLOBAL async_copy4(const unsigned int *a, unsigned int *b)
{
	__shared__ unsigned int s[128];
	unsigned int at = (unsigned int)__cvta_generic_to_shared(&s[threadIdx.x]), i = INDEX();

	asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(a + i) : "memory");
	asm volatile("cp.async.wait_all;" ::: "memory");
	__syncthreads();
	b[i] = s[127 - threadIdx.x];
}
#endif

#if __CUDA_ARCH__ >= 900
/* What is left out (a bulk copy, its barrier) beside what is not (stmatrix, vectors of atomics, a cluster's shared memory). */
GLOBAL hopper(const uint4 *a, float4 *sum, uint4 *out)
{
	__shared__ alignas(128) uint4 s[32];
	__shared__ uint64_t barrier;
	unsigned int at = (unsigned int)__cvta_generic_to_shared(s), bar = (unsigned int)__cvta_generic_to_shared(&barrier), x;

	if (!threadIdx.x) {
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
		asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(bar) : "memory");
		asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(at), "l"(a), "r"(bar) : "memory");
	}
	__syncthreads();
	asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %1};" ::"r"(at + threadIdx.x * 16), "r"(threadIdx.x) : "memory");
	asm volatile("ld.shared::cluster.u32 %0, [%1+4];" : "=r"(x) : "r"(at + threadIdx.x * 16));
	asm volatile("red.global.v4.f32.add [%0], {%1, %1, %1, %1};" ::"l"(sum), "f"((float)x) : "memory");
	out[threadIdx.x] = s[threadIdx.x];
}
#endif
