// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_ptx.c: any bytes as a PTX text that is rewritten. What is taken keeps every kernel's text, and
 * what is said of it holds together; what is refused is refused with a reason.
 */
#include "memtrace/ptx/ptx.h"
#include "ttmon/mtchan.h"
#include "lib/base/util.h"

static bool some(void *ctx, const char *kernel)
{
	(void)ctx;
	return strlen(kernel) % 3 != 2;
}

static void check(const char *text, size_t len, const struct ttmon_ptx_opts *opts)
{
	_cleanup_(ttmon_ptx_fini) struct ttmon_ptx_result r = { 0 };
	char why[200] = "";
	size_t sites = 0, at = 0;

	if (ttmon_ptx_rewrite(text, len, opts, &r, why, sizeof(why))) {
		if (!why[0] || r.text)
			abort();
		return;
	}
	for (size_t i = 0; i < r.nr_kernels; i++) {
		const struct ttmon_ptx_kernel *k = &r.kernels[i];

		if (!k->name || (k->why[0] && k->sites) || (k->sites && k->first != sites) ||
		    (!k->why[0] && k->param_bytes > 4080) || (!k->why[0] && !r.text))
			abort();
		sites += k->sites;
	}
	if (sites > r.nr_sites || opts->first_site + r.nr_sites > TTMON_MTC_MAX_SITES)
		abort();
	for (size_t i = 0; i < r.nr_sites; i++) {
		const struct ttmon_mt_site *s = &r.sites[i];

		if (!s->width || s->width > 64 || s->space >= TTMON_MT_SPACE_MAX || s->kind >= TTMON_MT_KIND_MAX ||
		    !s->kernel[0] || !s->opcode[0] || !s->file)
			abort();
	}
	len = strnlen(text, len);
	/* Only insertions: the text is in what came out, in its order. */
	for (size_t i = 0; r.text && i < r.len && at < len; i++)
		at += r.text[i] == text[at];
	if (r.text && (at < len || r.text[r.len]))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ttmon_ptx_opts opts = { .spaces = ~0u, .instr_end = UINT32_MAX };
	_cleanup_free_ char *text = malloc(size ? size : 1); /* its end is the end of what may be read */

	if (!text)
		return 0;
	memcpy(text, data, size);
	check(text, size, &opts);
	opts = (struct ttmon_ptx_opts){ .aggregate = true,
					.spaces = 1u << TTMON_MT_SHARED,
					.first_site = TTMON_MTC_MAX_SITES - 2,
					.instr_begin = 1,
					.instr_end = 9,
					.select = some };
	check(text, size, &opts);
	return 0;
}
