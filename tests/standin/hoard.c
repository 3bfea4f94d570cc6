// SPDX-License-Identifier: GPL-2.0-only
/*
 * hoard.c: a program that holds many things at once: `hoard WHAT N [STEP]`.
 *
 *	pinned	N allocations of 64 bytes by cudaHostAlloc(): prints "ready PID BYTES" when it holds them;
 *		after a line it frees every STEP-th (2) and prints "left BYTES", after another one it ends
 *	sites	N allocations of device memory, each freed at once, each with a call stack of its own: it
 *		writes the frame records, whose addresses are in the C library, from the STEP-th on
 *
 * Each step is a line on standard output, so that the test knows the state of the program.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_api.h"

#define SIZE 64
#define SITE 8 /* bytes from one invented call to the next */

static int wait_for_line(void)
{
	char line[16];

	return fgets(line, sizeof(line), stdin) ? 0 : 4;
}

static int hold(unsigned long n, unsigned long step)
{
	void **p = calloc(n, sizeof(*p));
	unsigned long left = n;

	for (unsigned long i = 0; i < n; i++)
		if (!p || cudaHostAlloc(&p[i], SIZE, cudaHostAllocDefault))
			return 4;
	printf("ready %d %lu\n", getpid(), n * SIZE);
	fflush(stdout);
	if (wait_for_line())
		return 4;
	for (unsigned long i = 0; i < n; i += step, left--)
		if (cudaFreeHost(p[i]))
			return 4;
	printf("left %lu\n", left * SIZE);
	fflush(stdout);
	return wait_for_line();
}

/*
 * Allocates as if called from `at`. up: a frame record for the caller; a stack walk only goes upwards.
 */
__attribute__((noinline)) static int allocate(uint64_t at, uint64_t up[2])
{
	volatile uint64_t *frame = __builtin_frame_address(0);
	uint64_t saved = frame[0];
	void *p = NULL;
	int err;

	up[0] = 0;
	up[1] = at;
	frame[0] = (uint64_t)up;
	/* Keeps the compiler from moving it: the record is read while the call is in flight. */
	__asm__ volatile("" ::: "memory");
	err = cudaMalloc(&p, SIZE) || cudaFree(p);
	__asm__ volatile("" ::: "memory");
	frame[0] = saved;
	return err;
}

/* Finds the code of the C library: an address in no file would be left out of the call site. */
static int find_code(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const ElfW(Phdr) *code = NULL;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum && strstr(info->dlpi_name, "libc.so"); i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
			code = &info->dlpi_phdr[i];
	if (!code)
		return 0;
	((uint64_t *)ctx)[0] = info->dlpi_addr + code->p_vaddr;
	((uint64_t *)ctx)[1] = code->p_memsz;
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t code[2], up[2];

	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, step = argc > 3 ? strtoul(argv[3], NULL, 10) : 2;

	if (!n || !step) {
		fprintf(stderr, "usage: hoard pinned|sites N [STEP]\n");
		return 2;
	}
	if (!strcmp(argv[1], "pinned"))
		return hold(n, step);
	printf("ready %d %lu\n", getpid(), n);
	fflush(stdout);
	if (wait_for_line())
		return 4;
	if (!dl_iterate_phdr(find_code, code) || (step + n) * SITE > code[1])
		return 4;
	for (unsigned long i = 0; i < n; i++)
		if (allocate(code[0] + (step + i) * SITE, up))
			return 4;
	printf("left 0\n");
	fflush(stdout);
	return wait_for_line();
}
