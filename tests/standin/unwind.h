/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * unwind.h: a program's own record of its call stacks: each pinned block with the stack at its
 * allocation, by the compiler's tables (backtrace()), written to the file of UNWIND_BOOK. Innermost
 * frame first, after the function that pins: base name of the file and offset in it of each return
 * address.
 */
#ifndef TTMON_STANDIN_UNWIND_H
#define TTMON_STANDIN_UNWIND_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef UNWIND_STATIC
/* The allocator that --alloc-fn names. */
__attribute__((noinline)) void *unwind_alloc(size_t size);
__attribute__((noinline)) void *unwind_alloc(size_t size)
{
	return malloc(size);
}

static inline int cudaHostAlloc(void **p, size_t size, unsigned int flags)
{
	*p = unwind_alloc(size);
	return *p ? 0 : (int)flags + 1;
}
#else
#ifdef __cplusplus
extern "C"
#endif
	int
	cudaHostAlloc(void **p, size_t size, unsigned int flags);
#endif

#define UNWIND_FRAMES 128

static pthread_mutex_t unwind_lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *unwind_book;
static int unwind_slow;

/* Writes the file of each address, as the kernel reports it. */
static inline void unwind_write(void *p, size_t size, void **frames, int n)
{
	static char maps[1 << 20];
	static size_t len;
	FILE *f = fopen("/proc/self/maps", "r");

	len = f ? fread(maps, 1, sizeof(maps) - 1, f) : 0;
	maps[len] = '\0';
	if (f)
		fclose(f);
	fprintf(unwind_book, "%p %zu", p, size);
	for (int i = 0; i < n; i++) {
		unsigned long at = (unsigned long)frames[i], start, end, off;
		const char *line = maps, *base = "?";
		int len_base = 1;

		off = at;
		while (line && *line) {
			char prot[8];
			unsigned long from;
			const char *nl = strchr(line, '\n'), *slash;

			if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, prot, &from) == 4 && at > start &&
			    at <= end) {
				off = at - start + from;
				slash = nl;
				while (slash > line && *slash != '/')
					slash--;
				base = slash > line ? slash + 1 : "?";
				len_base = slash > line ? (int)(nl - base) : 1;
				break;
			}
			line = nl ? nl + 1 : NULL;
		}
		fprintf(unwind_book, " %.*s+%#lx", len_base, base, off);
	}
	fputc('\n', unwind_book);
}

/* The only function that pins. Its own frame is not written, since its address differs there. */
__attribute__((noinline)) static void *unwind_pin(size_t size)
{
	void *frames[UNWIND_FRAMES], *p = NULL;
	int n;

	if (cudaHostAlloc(&p, size, 0))
		exit(3);
	if (unwind_slow)
		usleep(4000);
	/* Without the file the program does not need its tables, and they may be broken. */
	if (!unwind_book)
		return p;
	n = backtrace(frames, UNWIND_FRAMES);
	pthread_mutex_lock(&unwind_lock);
	unwind_write(p, size, frames + 1, n - 1);
	pthread_mutex_unlock(&unwind_lock);
	return p;
}

static inline void unwind_begin(void)
{
	const char *path = getenv("UNWIND_BOOK");
	void *one[1];

	/* UNWIND_SLOW: no thread makes more than one block in four milliseconds. */
	unwind_slow = getenv("UNWIND_SLOW") != NULL;
	unwind_book = path ? fopen(path, "w") : NULL;
	/* It loads libgcc, once. */
	if (unwind_book)
		backtrace(one, 1);
}

/* UNWIND_WAIT=PATH: PATH.ready is made, and PATH waited for. */
static inline void unwind_wait(void)
{
	const char *path = getenv("UNWIND_WAIT");
	char ready[4096];
	FILE *f;

	if (!path)
		return;
	snprintf(ready, sizeof(ready), "%.4000s.ready", path);
	f = fopen(ready, "w");
	if (f)
		fclose(f);
	while (access(path, F_OK))
		usleep(1000);
}

static inline void unwind_end(void)
{
	if (unwind_book)
		fclose(unwind_book);
#ifdef UNWIND_STATIC
	/* The others have the stand-in for it. */
	usleep(500000);
#endif
}

#endif
