/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * torture.h: allocations of memory that fail when a test says so. Included after all other headers and
 * before the sources under test, which then call these in the place of malloc and friends; the test
 * takes the names back behind them (#undef).
 */
#ifndef TTMON_TORTURE_H
#define TTMON_TORTURE_H

#include <stdbool.h>
#include <stdlib.h>

static long fail_at = -1; /* which allocation fails, -1: none */
static bool fail_on;	  /* and all after it */
static long asked;

static bool refuse(void)
{
	long n = asked++;

	return fail_at >= 0 && (n == fail_at || (fail_on && n > fail_at));
}

__attribute__((unused)) static void *torture_malloc(size_t n)
{
	return refuse() ? NULL : malloc(n);
}

__attribute__((unused)) static void *torture_calloc(size_t n, size_t size)
{
	return refuse() ? NULL : calloc(n, size);
}

__attribute__((unused)) static void *torture_realloc(void *p, size_t n)
{
	return refuse() ? NULL : realloc(p, n);
}

__attribute__((unused)) static void *torture_reallocarray(void *p, size_t n, size_t size)
{
	return refuse() ? NULL : reallocarray(p, n, size);
}

#define malloc(n)		 torture_malloc(n)
#define calloc(n, size)		 torture_calloc(n, size)
#define realloc(p, n)		 torture_realloc(p, n)
#define reallocarray(p, n, size) torture_reallocarray(p, n, size)

#endif
