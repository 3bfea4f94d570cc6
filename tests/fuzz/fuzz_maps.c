// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_maps.c: hostile text as /proc/PID/maps. Every line is a mapping or counted as bad, and the
 * pieces are in range.
 */
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/os/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static int see(void *ctx, const struct ttmon_mapping *m)
{
	uint64_t *n = ctx;

	require(m->start < m->end);
	require(!(m->prot & ~(uint32_t)(PROT_READ | PROT_WRITE | PROT_EXEC)));
	require(strlen(m->name) < PATH_MAX + 32);
	require(!m->deleted || m->name[0] == '/');
	(*n)++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t n = 0, bad = 0, lines = 0;

	require(!ttmon_maps_parse((const char *)data, size, see, &n, &bad));
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	lines += size && data[size - 1] != '\n';
	require(n + bad == lines);
	return 0;
}
