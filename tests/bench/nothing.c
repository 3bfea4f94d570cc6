// SPDX-License-Identifier: GPL-2.0-only
/*
 * nothing.c: a library with names of the CUDA runtime and driver whose functions do nothing, and the
 * loops that call them. It is built like the real ones: with frame pointers, so that each function
 * begins with push %rbp and stacks can be walked.
 *
 * The benchmarks open a copy of it for each way of probing, so that all of them are attached at once
 * and take turns.
 */
#include <stddef.h>

#include "nothing.h"

#define FN __attribute__((noinline, visibility("default")))
/* Keeps the compiler from merging, moving or removing the call. */
#define KEEP(x) ({ __asm__ volatile("" : : "r"(x) : "memory"); })
/* Uses a variable in the frame: gcc makes no frame in a function that does not need one. */
#define FRAME()                                     \
	({                                          \
		int slot_;                          \
		__asm__ volatile("" : "=m"(slot_)); \
	})

static char block[1 << 20];

FN int cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, void *stream)
{
	FRAME();
	KEEP(dst), KEEP(src), KEEP(bytes), KEEP(kind), KEEP(stream);
	return 0;
}

FN int cudaMemcpy(void *dst, const void *src, size_t bytes, int kind)
{
	FRAME();
	KEEP(dst), KEEP(src), KEEP(bytes), KEEP(kind);
	return 0;
}

FN int cudaHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
	FRAME();
	KEEP(bytes), KEEP(flags);
	*ptr = block;
	return 0;
}

FN int cudaLaunchKernel(const void *fn)
{
	FRAME();
	KEEP(fn);
	return 0;
}

FN int cuMemcpyPeerAsync(void *dst, void *dctx, void *src, void *sctx, size_t bytes, void *stream)
{
	FRAME();
	KEEP(dst), KEEP(dctx), KEEP(src), KEEP(sctx), KEEP(bytes), KEEP(stream);
	return 0;
}

/* The runtime calls the driver. */
FN int cudaMemcpyPeerAsync(void *dst, int ddev, const void *src, int sdev, size_t bytes, void *stream)
{
	KEEP(ddev), KEEP(sdev);
	return cuMemcpyPeerAsync(dst, NULL, (void *)src, NULL, bytes, stream);
}

FN void nothing_async(unsigned int calls)
{
	for (unsigned int i = 0; i < calls; i++)
		cudaMemcpyAsync((void *)0x7f0000000000, block + i % 16 * 4096, 4096, 1, NULL);
}

FN void nothing_sync(unsigned int calls)
{
	for (unsigned int i = 0; i < calls; i++)
		cudaMemcpy((void *)0x7f0000000000, block + i % 16 * 4096, 4096, 1);
}

FN void nothing_launch(unsigned int calls)
{
	for (unsigned int i = 0; i < calls; i++)
		cudaLaunchKernel(block);
}

FN void nothing_nested(unsigned int calls)
{
	for (unsigned int i = 0; i < calls; i++)
		cudaMemcpyPeerAsync((void *)0x7f0000000000, 0, block, 1, 4096, NULL);
}

__attribute__((noinline, used)) static void alloc(unsigned int calls, unsigned int frames)
{
	if (frames > 2) {
		alloc(calls, frames - 1);
		KEEP(frames);
		return;
	}
	for (unsigned int i = 0; i < calls; i++) {
		void *p;

		cudaHostAlloc(&p, sizeof(block), 0);
		KEEP(p);
	}
}

/*
 * With a stack of this many frames, this one and at least one of alloc(): the chain of frame pointers
 * ends here with 0, as that of a thread does.
 */
#if defined(__x86_64__)
__asm__(".globl nothing_alloc\n.type nothing_alloc, @function\nnothing_alloc:\n"
	"	push %rbp\n	xor %ebp, %ebp\n	call alloc\n	pop %rbp\n	ret\n"
	".size nothing_alloc, . - nothing_alloc\n");
#elif defined(__aarch64__)
__asm__(".globl nothing_alloc\n.type nothing_alloc, %function\nnothing_alloc:\n"
	"	stp x29, x30, [sp, -16]!\n	mov x29, xzr\n	bl alloc\n	ldp x29, x30, [sp], 16\n	ret\n"
	".size nothing_alloc, . - nothing_alloc\n");
#else
#error "how does a chain of frame pointers end on this machine?"
#endif
