// SPDX-License-Identifier: GPL-2.0-only
/* unwind_part.c: a library without frame pointers that calls back: see unwind.c. */
#include <stddef.h>

int part_calls(void *(*pin)(size_t), size_t size);

__attribute__((noinline)) static int inner(void *(*pin)(size_t), size_t size, int n)
{
	volatile char room[40];

	room[n] = (char)n;
	return (n ? inner(pin, size, n - 1) : pin(size) != NULL) + room[n];
}

int part_calls(void *(*pin)(size_t), size_t size)
{
	return inner(pin, size, 4) + 1;
}
