/* SPDX-License-Identifier: GPL-2.0-only */
/* wrap.h: macros that define the functions of wrap_rt.c and wrap_drv.c. */
#ifndef TTMON_PIN_WRAP_H
#define TTMON_PIN_WRAP_H

#include "preload/pin.h"

#if defined(__x86_64__)
#define JUMP "jmp"
#elif defined(__aarch64__)
#define JUMP "b"
#endif

/*
 * Exports a function under a name of CUDA, without a type: tracers take a library with CUDA's
 * functions for CUDA, and would count the calls to this library instead of those to CUDA.
 */
#define TAKE_NAME(name)                                             \
	__asm__(".pushsection .text." #name ", \"ax\", %progbits\n" \
		".globl " #name "\n" #name ":\n"                    \
		"	" JUMP " ttmon_pin_" #name "\n"             \
		".popsection\n");                                   \
	static __attribute__((used)) int ttmon_pin_##name

/* A call that block.c serves; api is the interface, and `field` is the function it needs. */
#define WRAP(name, params, api_of, field, call)                                    \
	TAKE_NAME(name) params                                                     \
	{                                                                          \
		const struct ttmon_pin_api *api = api_of();                        \
                                                                                   \
		return api->found && api->field ? call : ttmon_pin_missing(#name); \
	}

/* A function that is passed on: `before`, the call, and `after` if it succeeded. */
#define FORWARD(name, params, args, before, after)                                \
	TAKE_NAME(name) params                                                    \
	{                                                                         \
		static _Atomic uintptr_t slot;                                    \
		int(*fn) params = (int(*) params)ttmon_pin_forward(&slot, #name); \
		int err;                                                          \
                                                                                  \
		if (!fn)                                                          \
			return ttmon_pin_missing(#name);                          \
		before;                                                           \
		err = fn args;                                                    \
		if (!err) {                                                       \
			after;                                                    \
		}                                                                 \
		return err;                                                       \
	}

/*
 * An asynchronous copy between a and b, under both its names: for the second, stream 0 is the thread's
 * own.
 */
#define COPY(name, params, args, a, b)                    \
	COPY_BY(name, params, args, copied(a, b, stream)) \
	COPY_BY(name##_ptsz, params, args, copied(a, b, stream ? stream : STREAM_PER_THREAD))

#define COPYING __attribute__((cleanup(copy_end), unused)) bool begun = ttmon_pin_copy_begin()

#define COPY_BY(name, params, args, after) FORWARD(name, params, args, COPYING, after)

/*
 * A copy that is finished when the call returns, under both its names: no memory is unpinned during
 * it. All have at most nine argument words.
 */
#define SYNC_COPY(name)    \
	SYNC_COPY_BY(name) \
	SYNC_COPY_BY(name##_ptds)
#define SYNC_COPY_BY(name)                                                                               \
	FORWARD(name, (void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i), \
		(a, b, c, d, e, f, g, h, i), COPYING, )

static inline void copy_end(bool *begun)
{
	ttmon_pin_copy_end(*begun);
}

static inline void copied(const void *a, const void *b, void *stream)
{
	ttmon_pin_copied(a, stream);
	ttmon_pin_copied(b, stream);
}

/*
 * Batches are not followed. Some have one more argument in CUDA 12 than in 13: the macro passes on as
 * many as the longest has, and the others ignore the last ones.
 */
#define BATCH(name)                                                                                      \
	FORWARD(name, (void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i), \
		(a, b, c, d, e, f, g, h, i), ttmon_pin_unfollowed(), )

#endif
