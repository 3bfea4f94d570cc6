/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * myalloc.h: the allocator of myalloc.c. Sizes are the second argument, the pointer comes back or goes
 * to *out.
 */
#ifndef MYALLOC_H
#define MYALLOC_H

#include <stddef.h>

void *my_alloc(int zone, size_t size);	   /* NULL: failed */
int my_alloc_out(void **out, size_t size); /* not 0: failed */
void my_free(int zone, void *p);

#endif
