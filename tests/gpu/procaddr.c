// SPDX-License-Identifier: GPL-2.0-only
/*
 * procaddr.c: what only a machine with a driver can tell about libcuda.
 *
 *	procaddr LIBCUDA FNS_H
 *
 * For every driver function of the probe table (the rows of fns.h): the first bytes of its exported entry, and whether the
 * address that cuGetProcAddress gives for the same version is that entry. A twin at another address means that calls which come
 * through the runtime never pass the exported symbol, and a probe there sees direct callers only.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

typedef CUresult (*get_proc)(const char *symbol, void **pfn, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status);

static int same, twins, unknown, pushes, endbrs, others;

static void first_bytes(const char *name, const unsigned char *code)
{
	int *kind = &others;

	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		kind = &endbrs;
	else if (code[0] == 0x55 || (code[0] >= 0x50 && code[0] <= 0x57) || code[0] == 0x41)
		kind = &pushes;
	(*kind)++;
	printf("  %-36s", name);
	for (int i = 0; i < 8; i++)
		printf(" %02x", code[i]);
}

/* Versions of a function came with versions of CUDA; each is asked for by one of these. */
static const int cuda_versions[] = {
	2000, 3020, 4000, 6050, 7000, 8000, 10010, 11000, 11020, 12000, 12020, 12080, 13000
};

static void compare(get_proc get, const char *base, const char *name, void *exported)
{
	void *found[sizeof(cuda_versions) / sizeof(*cuda_versions)] = { NULL };
	int any = 0, equal = 0;

	for (size_t i = 0; i < sizeof(cuda_versions) / sizeof(*cuda_versions); i++) {
		CUdriverProcAddressQueryResult status;

		if (get(base, &found[i], cuda_versions[i], CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status) || !found[i])
			continue;
		any = 1;
		equal |= found[i] == exported;
	}
	first_bytes(name, exported);
	printf("  %s\n", !any	 ? "not known to cuGetProcAddress"
			 : equal ? "cuGetProcAddress gives this entry"
				 : "A TWIN elsewhere");
	*(!any ? &unknown : equal ? &same : &twins) += 1;
}

int main(int argc, char **argv)
{
	void *lib = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	FILE *table = argc == 3 ? fopen(argv[2], "r") : NULL;
	CUresult (*init)(unsigned int) = NULL;
	char line[512], base[64], name[80];
	get_proc get = NULL;
	int id;

	if (lib) {
		init = (CUresult(*)(unsigned int))dlsym(lib, "cuInit");
		get = (get_proc)dlsym(lib, "cuGetProcAddress_v2");
	}
	if (!table || !init || !get || init(0)) {
		fprintf(stderr, "procaddr: no working driver\n");
		return 1;
	}
	while (fgets(line, sizeof(line), table)) {
		if (sscanf(line, " F(%d, %63[^,], DRV", &id, base) != 2 || strncmp(base, "cu", 2) ||
		    !strncmp(base, "cuda", 4))
			continue;
		for (int v = 1; v <= 4; v++) {
			void *exported;

			snprintf(name, sizeof(name), v == 1 ? "%s" : "%s_v%d", base, v);
			exported = dlsym(lib, name);
			if (exported)
				compare(get, base, name, exported);
		}
	}
	printf("first instruction: %d push, %d endbr64, %d other\n", pushes, endbrs, others);
	printf("cuGetProcAddress: %d give the exported entry, %d a twin, %d are unknown to it\n", same, twins, unknown);
	fclose(table);
	return 0;
}
