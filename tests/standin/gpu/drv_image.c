// SPDX-License-Identifier: GPL-2.0-only
/*
 * drv_image.c: extracts PTX from images of programs: text, a fat binary with entries of PTX, plain or
 * compressed, or the output of drv_link.c. Machine code cannot be executed here.
 */
#include "drv.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define WRAPPER	  0x466243b1u
#define CONTAINER 0xba55ed50u
#define F_LZ4	  0x2000u
#define F_ZSTD	  0x8000u

struct wrapper {
	uint32_t magic, version;
	const void *data, *names;
};
struct container {
	uint32_t magic;
	uint16_t version, header;
	uint64_t size;
};
struct entry {
	uint16_t kind, version;
	uint32_t header;
	uint64_t size;
	uint32_t compressed, extra;
	uint16_t minor, major;
	uint32_t arch, name, name_len;
	uint64_t flags, zero, plain;
};

static char *unpack(const struct entry *e, const char *data)
{
	size_t n = e->flags & (F_LZ4 | F_ZSTD) ? (size_t)e->plain : (size_t)e->size;
	char *ret = calloc(1, n + 1);
	bool ok = ret != NULL;

	if (ok && e->flags & F_LZ4)
		ok = LZ4_decompress_safe(data, ret, (int)e->compressed, (int)n) == (int)n;
	else if (ok && e->flags & F_ZSTD)
		ok = ZSTD_decompress(ret, n, data, e->compressed) == n;
	else if (ok)
		memcpy(ret, data, n);
	if (ok)
		return ret;
	free(ret);
	return NULL;
}

/* Returns the PTX for the highest architecture that this GPU supports. */
static int from_container(const struct container *c, char **text)
{
	const char *at = (const char *)c + c->header, *end = at + c->size;
	const struct entry *best = NULL;

	while (end - at >= (ptrdiff_t)sizeof(struct entry)) {
		const struct entry *e = (const void *)at;

		if (e->header < sizeof(*e) || (uint64_t)(end - at) < e->header ||
		    (uint64_t)(end - at) - e->header < e->size)
			return CUDA_ERROR_INVALID_IMAGE;
		if (e->kind == 1 && e->arch <= (uint32_t)drv_arch() && (!best || e->arch > best->arch))
			best = e;
		at += e->header + e->size;
	}
	if (!best)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	*text = unpack(best, (const char *)best + best->header);
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

int drv_image(const void *image, char **text, bool *is_text)
{
	uint32_t magic;

	*is_text = false;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&magic, image, 4);
	if (magic == WRAPPER) {
		image = ((const struct wrapper *)image)->data;
		memcpy(&magic, image, 4);
	}
	if (magic == CONTAINER)
		return from_container(image, text);
	if (!memcmp(image, "\177ELF", 4)) {
		image = drv_linked(image);
		if (!image)
			return CUDA_ERROR_NO_BINARY_FOR_GPU;
	} else {
		*is_text = true;
	}
	*text = strdup(image);
	return *text ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
