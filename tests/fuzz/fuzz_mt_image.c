// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_mt_image.c: any bytes as the content of a module that a program loads: an error with a reason,
 * or PTX text.
 */
#include "memtrace/ptx/image.h"
#include "lib/base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t archs[] = { 0, 90, 103 };

	if (ttmon_mt_image_cubin(data, size) > size)
		abort();
	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		struct ttmon_mt_image x = { 0 };
		char why[200] = "";
		int err = ttmon_mt_image_ptx(data, size, archs[i], &x, why, sizeof(why));

		if (err ? !why[0] || x.text
			: !x.text || strlen(x.text) != x.len || !x.from || !strstr(x.text, ".version"))
			abort();
		free(x.text);
	}
	return 0;
}
