// SPDX-License-Identifier: GPL-2.0-only
/*
 * myalloc.c: libmyalloc.so, an allocator that ttmond knows nothing about until --alloc-fn and
 * --free-fn name it.
 */
#include <stdlib.h>

#include "myalloc.h"

void *my_alloc(int zone, size_t size)
{
	return zone < 0 ? NULL : malloc(size);
}

int my_alloc_out(void **out, size_t size)
{
	*out = size > (1ul << 40) ? NULL : malloc(size);
	return *out ? 0 : -1;
}

void my_free(int zone, void *p)
{
	(void)zone;
	free(p);
}
