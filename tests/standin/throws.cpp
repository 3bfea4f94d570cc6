// SPDX-License-Identifier: GPL-2.0-only
/*
 * throws.cpp: an allocator of the program's own that throws std::bad_alloc out of a call, for
 * --alloc-fn throws:throwing_alloc,size=1,out=ret. Prints one line of JSON.
 */
#include <cstddef>
#include <cstdio>
#include <new>
#include <unistd.h>

extern "C" void *throwing_alloc(size_t size);

static char memory[8192];

static __attribute__((noinline)) void deep(int n)
{
	volatile int pad[16] = { n };

	if (!n)
		throw std::bad_alloc();
	deep(n - 1);
	pad[1] = pad[0];
}

extern "C" __attribute__((noinline)) void *throwing_alloc(size_t size)
{
	if (size % 3 == 0)
		deep(5);
	return memory;
}

int main()
{
	int caught = 0, given = 0;

	for (size_t i = 1; i <= 30; i++) {
		try {
			given += throwing_alloc(i) == memory;
		} catch (const std::bad_alloc &) {
			caught++;
		}
	}
	printf("{\"pid\":%d,\"given\":%d,\"caught\":%d}\n", getpid(), given, caught);
	return 0;
}
