/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ledger.h: shared by the two parts of the ledger workload: ledger.c (accounts, threads) and
 * ledger_ops.c (the calls).
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_api.h"
#include "standin.h"

#define LEDGER_FUNCTIONS(F)                                                                                     \
	F(cudaHostAlloc)                                                                                        \
	F(cudaMallocHost)                                                                                       \
	F(cudaFreeHost)                                                                                         \
	F(cudaHostRegister)                                                                                     \
	F(cudaHostUnregister)                                                                                   \
	F(cudaMallocManaged)                                                                                    \
	F(cudaHostGetDevicePointer)                                                                             \
	F(cudaMalloc)                                                                                           \
	F(cudaMallocAsync)                                                                                      \
	F(cudaMallocFromPoolAsync)                                                                              \
	F(cudaMallocPitch)                                                                                      \
	F(cudaMalloc3D) F(cudaFree) F(cudaFreeAsync) F(cudaMemPoolCreate) F(cudaSetDevice) F(cudaMemcpy)        \
		F(cudaMemcpyAsync) F(cudaMemcpy2D) F(cudaMemcpy2DAsync) F(cudaMemcpy3D) F(cudaMemcpy3DAsync)    \
			F(cudaMemcpyPeer) F(cudaMemcpyPeerAsync) F(cudaMemcpy3DPeer) F(cudaMemcpyToSymbol)      \
				F(cudaMemcpyToSymbolAsync) F(cudaMemcpyFromSymbol) F(cudaMemcpyFromSymbolAsync) \
					F(cudaMemcpyToArray) F(cudaMemcpyFromArray) F(cudaMemcpy2DToArray)      \
						F(cudaMemcpy2DFromArrayAsync) F(cudaMemcpyBatchAsync)           \
							F(cudaMemcpy3DBatchAsync) F(cudaMemPrefetchAsync)       \
								F(cudaMemAdvise) F(cudaLaunchKernel)

enum fn {
#define F(name) FN_##name,
	LEDGER_FUNCTIONS(F)
#undef F
		FN_MAX
};

enum method { M_HOST, M_REGISTERED, M_MANAGED, M_POOL, M_DEVICE };
enum dir { DIR_H2H, DIR_H2D, DIR_D2H, DIR_D2D, DIRS };
enum mem { MEM_PINNED, MEM_PAGEABLE, MEM_MANAGED, MEM_NONE, MEMS };

#define MIN_U64(a, b) ((uint64_t)(a) < (uint64_t)(b) ? (uint64_t)(a) : (uint64_t)(b))

#define MAX_ERRS 8
#define MAX_OWN	 64
#define MAX_MAIL 32

struct pair {
	uint64_t copies, bytes;
};

/* One allocation. Written by the thread that owns it at the time. */
struct rec {
	struct rec *next;
	uint64_t addr, size, order;
	uint64_t rows, pitch; /* of a pitched one */
	enum fn fn;
	enum method method;
	int device;
	bool freed;
	struct pair moved[DIRS];
};

/*
 * A side of a copy without an address: a symbol or an array. NULL is the thread's pageable buffer.
 */
#define SYMBOL ((struct rec *)1)

struct count {
	int err[MAX_ERRS];
	uint64_t calls[MAX_ERRS];
	size_t n;
};

struct own {
	struct rec *recs[MAX_OWN];
	size_t n;
};

struct thread {
	pthread_t thread;
	int idx, device;
	uint64_t rng;
	struct own host, dev; /* dev: method device */
	char *pageable;
	cudaMemPool_t host_pool, dev_pool;
	cudaArray_t array;

	pthread_mutex_t lock; /* of the mail */
	struct rec *mail[MAX_MAIL];
	size_t nr_mail;

	struct rec *recs; /* all allocations of this thread */
	struct count counts[FN_MAX];
	struct pair moved[DIRS][MEMS], pageable_moved[DIRS];
	uint64_t allocs, frees, kernels;
};

struct options {
	int threads;
	long calls;
	uint64_t seed;
	const char *out;
	bool wait, fail_async;
};
extern struct options opt;
extern atomic_uint_fast64_t order;
extern atomic_long calls_left;

uint32_t rnd(struct thread *t, uint32_t n);
/* Counts a call. Returns true if it succeeded. */
bool counted(struct thread *t, enum fn fn, int err);
bool pinned(enum method m);
uint64_t pages_of(uint64_t addr, uint64_t size);
void bound_add(int64_t pages);
struct rec *rec_new(struct thread *t, enum fn fn, enum method m, void *addr, uint64_t size);
void moved(struct thread *t, struct rec *dst, struct rec *src, enum dir dir, uint64_t bytes);

int ledger_buffer(struct thread *t); /* the pageable buffer */
int ledger_start(struct thread *t);
void ledger_alloc(struct thread *t);
void ledger_free(struct thread *t);
void ledger_copy(struct thread *t);
void ledger_other(struct thread *t);

#endif
