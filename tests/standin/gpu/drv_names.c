// SPDX-License-Identifier: GPL-2.0-only
/*
 * drv_names.c: cuGetProcAddress(): finds a function by its name and a version of CUDA. It has its own
 * table instead of the dynamic linker's, since other libraries may have replaced those functions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Only their addresses are needed. */
#define X(name) extern void name(void);
#include "drv_names.inc"
#undef X

__attribute__((visibility("default"))) int cuGetProcAddress_v2(const char *symbol, void **fn, int version,
							       uint64_t flags, int *status);
__attribute__((visibility("default"))) int cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags);

static const struct {
	const char *name;
	void (*fn)(void);
} table[] = {
#define X(name) { #name, name },
#include "drv_names.inc"
#undef X
	{ "cuGetProcAddress", (void (*)(void))cuGetProcAddress },
	{ "cuGetProcAddress_v2", (void (*)(void))cuGetProcAddress_v2 },
};

/* Newer forms are only returned if the caller requests a version that has them. */
static const struct {
	const char *name;
	int version;
} since[] = {
	{ "cuCtxCreate_v3", 11040 },
	{ "cuCtxCreate_v4", 12050 },
	{ "cuGraphAddKernelNode_v2", 12000 },
	{ "cuGraphKernelNodeGetParams_v2", 12000 },
	{ "cuGraphKernelNodeSetParams_v2", 12000 },
	{ "cuGraphExecKernelNodeSetParams_v2", 12000 },
	{ "cuGraphAddNode_v2", 12030 },
	{ "cuGetProcAddress_v2", 12000 },
	{ "cuEventElapsedTime_v2", 12080 },
	{ "cuStreamBeginCapture_v2", 10010 },
};

static void *find(const char *name, int version)
{
	for (size_t i = 0; i < sizeof(since) / sizeof(*since); i++)
		if (!strcmp(since[i].name, name) && version < since[i].version)
			return NULL;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (!strcmp(table[i].name, name))
			return (void *)(uintptr_t)table[i].fn;
	return NULL;
}

int cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, int *status)
{
	static const char *const forms[] = { "_v4", "_v3", "_v2", "" }, *const threads[] = { "_ptsz", "_ptds", "" };
	char name[128];

	*fn = NULL;
	if (!strcmp(symbol, "cuGraphInstantiate") && version >= 12000)
		symbol = "cuGraphInstantiateWithFlags";
	for (size_t t = flags & 2 ? 0 : 2; t < 3 && !*fn; t++)
		for (size_t i = 0; i < 4 && !*fn; i++)
			if (strlen(symbol) < 100) {
				snprintf(name, sizeof(name), "%s%s%s", symbol, forms[i], threads[t]);
				*fn = find(name, version);
			}
	if (status)
		*status = *fn ? 0 : 1;
	return *fn ? 0 : 500;
}

int cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(symbol, fn, version, flags, NULL);
}
