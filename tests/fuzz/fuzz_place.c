// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_place.c: hostile bytes as code. Where a probe may stand is held against a decoder of its
 * own; what code jumps to, against looking at each byte for each function, whatever the pieces are
 * that the code comes in.
 *
 *	first byte: where the code is cut in two; then three of (offset, skip); then the code
 */
#include <elf.h>
#include <stdlib.h>

#include "daemon/io/objects/insn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x4000u

static void require(bool ok)
{
	if (!ok)
		abort();
}

/*
 * Is there nothing before the place but what may be passed, and a form that every kernel emulates
 * at it?
 */
static void check_place(const uint8_t *fn, size_t n)
{
	size_t at = ttmon_insn_place(fn, n, n, EM_X86_64), i = 0;

	require(at <= TTMON_INSN_SKIP_MAX && at < n + !n);
	require(!at || !ttmon_insn_place(fn, n, at, EM_X86_64));
	while (i < at) {
		uint32_t endbr64 = 0;

		memcpy(&endbr64, fn + i, MIN(sizeof(endbr64), n - i));
		if (fn[i] == 0x81 || fn[i] == 0x80 || fn[i] == 0x83) {
			require(fn[i + 1] == 0x3d);
			i += fn[i] == 0x81 ? 10 : 7;
		} else if (endbr64 == 0xfa1e0ff3) {
			i += 4;
		} else if (fn[i] == 0x0f) {
			require(ttmon_insn_is_nop5(fn + i, 5, EM_X86_64));
			i += 5;
		} else if (fn[i] == 0xb8) {
			i += 5;
		} else {
			i += fn[i] >> 4 == 4;
			require((fn[i] | 1) == 0x85 && fn[i + 1] >> 6 == 3);
			i += 2;
		}
	}
	require(i == at);
	if (!at)
		return;
	require(ttmon_insn_is_emulated(fn + at, n - at, EM_X86_64) && !ttmon_insn_is_nop5(fn + at, n - at, EM_X86_64));
	i = ttmon_insn_known(fn, n, at);
	require(i > at && i <= n);
}

/* Where the byte at i jumps, if it does; UINT64_MAX: it does not. */
static uint64_t jumps_to(const uint8_t *code, size_t n, size_t i)
{
	static const uint8_t short_ones[] = { 0xe0, 0xe1, 0xe2, 0xe3, 0xeb };
	size_t len = 0;
	int32_t rel = 0;

	if ((code[i] >= 0x70 && code[i] <= 0x7f) || memchr(short_ones, code[i], sizeof(short_ones))) {
		len = 2;
	} else if (code[i] == 0xe8 || code[i] == 0xe9) {
		len = 5;
	} else if (code[i] == 0x0f && i + 1 < n && code[i + 1] >= 0x80 && code[i + 1] <= 0x8f) {
		len = 6;
	}
	if (!len || i + len > n)
		return UINT64_MAX;
	if (len == 2)
		rel = (int8_t)code[i + 1];
	else
		memcpy(&rel, code + i + len - 4, sizeof(rel));
	return BASE + i + len + (uint64_t)(int64_t)rel;
}

static bool is_known(const struct ttmon_insn_span *spans, size_t nr, uint64_t addr)
{
	for (size_t k = 0; k < nr; k++)
		if (addr >= spans[k].addr && addr < spans[k].addr + spans[k].known &&
		    addr != spans[k].addr + spans[k].skip)
			return true;
	return false;
}

static void check_scan(struct ttmon_insn_span *spans, size_t nr, const uint8_t *code, size_t n, size_t cut)
{
	bool want[3] = { false }, overlap = false;

	cut = MIN(cut, n);
	for (size_t k = 1; k < nr; k++)
		overlap |= spans[k - 1].addr + spans[k - 1].known > spans[k].addr;
	for (size_t i = 0; i < n; i++) {
		uint64_t to = is_known(spans, nr, BASE + i) ? UINT64_MAX : jumps_to(code, n, i);

		for (size_t k = 0; k < nr; k++)
			want[k] |= to > spans[k].addr && to <= spans[k].addr + spans[k].skip;
	}
	ttmon_insn_scan(spans, nr, code, cut, n, BASE);
	ttmon_insn_scan(spans, nr, code + cut, n - cut, n - cut, BASE + cut);
	/* Of functions that lie over each other more is read than need be. */
	for (size_t k = 0; k < nr; k++)
		require(overlap ? spans[k].entered >= want[k] : spans[k].entered == want[k]);
}

static int compare(const void *a, const void *b)
{
	const struct ttmon_insn_span *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ttmon_insn_span spans[3];
	uint8_t cut;
	size_t nr = 0;

	check_place(data, MIN(size, TTMON_INSN_BYTES));
	if (size < 7)
		return 0;
	cut = data[0];
	for (size_t k = 0; k < 3; k++)
		spans[k] = (struct ttmon_insn_span){ .addr = BASE + data[1 + 2 * k],
						     .skip = (uint8_t)(1 + data[2 + 2 * k] % TTMON_INSN_SKIP_MAX),
						     .known = (uint8_t)(2 + data[2 + 2 * k] % TTMON_INSN_SKIP_MAX +
									data[2 + 2 * k] / 64) };
	qsort(spans, 3, sizeof(*spans), compare);
	for (size_t k = 0; k < 3; k++)
		if (!nr || spans[k].addr != spans[nr - 1].addr)
			spans[nr++] = spans[k];
	check_scan(spans, nr, data + 7, size - 7, cut);
	return 0;
}
