/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ident.h: a program whose allocations have labels that the test knows, in three modules (the program,
 * a library, a library that is loaded while it runs), to count how many of them are found again in
 * another run, and how many of these correctly. The label of each allocation is written to the file
 * $IDENT_TRUTH in the order of the calls, one line each: address, size, label.
 *
 * IDENT_REBUILT: the same program after unrelated edits: other functions before and between, other
 * strings.
 */
#ifndef IDENT_H
#define IDENT_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_api.h"

#define IDENT_HIDDEN __attribute__((noinline))
/* Keeps a call from becoming a jump, and a function from being merged with an equal one. */
#define IDENT_HERE(n) __asm__ __volatile__("" ::"i"(n) : "memory")

/* In libident_a, for all three modules. */
void ident_note(const char *label, const void *p, size_t size);
void ident_copy(const void *p, size_t size, int times);
void ident_a_run(size_t batch);
void ident_b_run(size_t batch);

#define IDENT_PIN(label, size)                      \
	({                                          \
		void *pin_ = NULL;                  \
		size_t size_ = (size);              \
                                                    \
		if (cudaHostAlloc(&pin_, size_, 0)) \
			exit(4);                    \
		ident_note((label), pin_, size_);   \
		pin_;                               \
	})

/*
 * A call site: n is its number, kib its size, by the batch or fixed, copies how often it is copied. A
 * rebuilt program has an unrelated function in between.
 */
#ifdef IDENT_REBUILT
#define IDENT_BETWEEN(module, n)                                                \
	static IDENT_HIDDEN __attribute__((used)) void module##_more_##n(int k) \
	{                                                                       \
		static const char *const words[] = { "more", "of", "this" };    \
                                                                                \
		if (k > 3 * n)                                                  \
			puts(words[k % 3]);                                     \
	}
#else
#define IDENT_BETWEEN(module, n)
#endif

#define IDENT_SITE(module, n, kib, scale, copies)                                                \
	IDENT_BETWEEN(module, n)                                                                 \
	static IDENT_HIDDEN void module##_##n(size_t batch)                                      \
	{                                                                                        \
		void *p = IDENT_PIN(#module "." #n, (size_t)(kib)*1024 * ((scale) ? batch : 1)); \
                                                                                                 \
		ident_copy(p, (size_t)(kib)*1024, copies);                                       \
		IDENT_HERE(n);                                                                   \
	}

#endif
