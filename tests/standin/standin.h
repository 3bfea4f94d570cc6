/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * standin.h: the functions that the stand-in libraries export beside CUDA's, for their test programs.
 * Those of the runtime are named standin_*, those of the driver standin_cu_*. fn is the plain name
 * ("cudaMemcpy", also for cudaMemcpy_ptds; "cuMemAlloc_v2").
 */
#ifndef STANDIN_H
#define STANDIN_H

/*
 * A function whose calls are not inlined: clang has no noipa, but keeps a noinline function that has
 * an effect.
 */
#if __has_attribute(noipa)
#define KEPT __attribute__((noipa))
#else
#define KEPT __attribute__((noinline))
#endif

/*
 * The next count calls of fn return err; count -1: all of them; err 0: none any more. "*" means every
 * function.
 */
void standin_fail(const char *fn, int err, int count);
/* Calls of fn take this long. */
void standin_delay(const char *fn, unsigned int us);
/* hook(arg) runs inside each call of fn; it need not return. NULL: none. */
void standin_hook(const char *fn, void (*hook)(void *arg), void *arg);
/* The calling thread's next call of any function returns err. */
void standin_fail_next(int err);
/*
 * on: asynchronous copies are made only when a thread waits for the device, or when it is released (on
 * = 0).
 */
void standin_hold(int on);

void standin_cu_fail(const char *fn, int err, int count);
void standin_cu_delay(const char *fn, unsigned int us);
void standin_cu_hook(const char *fn, void (*hook)(void *arg), void *arg);
void standin_cu_fail_next(int err);
void standin_cu_hold(int on);

#ifdef STANDIN_DRIVER
#define STANDIN_NAME(name) standin_cu_##name
#else
#define STANDIN_NAME(name) standin_##name
#endif

#endif
