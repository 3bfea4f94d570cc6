// SPDX-License-Identifier: GPL-2.0-only
/*
 * patterns.c: the kernels of patterns.ptx: every form that the addresses of a warp can have, with all
 * lanes or some.
 */
#include "kernels_int.h"

#include <string.h>

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

/*
 * Runs of lanes, all of one length except for the first, and sometimes with an extra lane: one
 * distance from lane to lane, and another or an arbitrary one from run to run.
 */
static void runs(uint64_t *t, uint64_t *seed, uint64_t unit)
{
	static const int64_t strides[] = { 0, 1, -1, 2 };
	uint64_t stride = (uint64_t)strides[next(seed) % 4] * unit, at = next(seed) % 64 * unit,
		 pitch = next(seed) % 40 * unit, len = next(seed) % 9 + 2, left = next(seed) % len + 1;
	bool odd = next(seed) % 4 == 0, any = next(seed) % 3 == 0;

	EACH(i, 32)
	{
		if (!left--) {
			at += any ? next(seed) % 64 * unit : pitch;
			left = len - 1 + (odd && next(seed) % 4 == 0);
		}
		t[i] = at;
		at += stride;
	}
}

/* Some elements of a sequence, in any order, sometimes with one of them twice. */
static void shuffled(uint64_t *t, uint64_t *seed, uint64_t unit)
{
	uint64_t base = next(seed) % 64 * unit - 16 * unit;

	EACH(i, 32)
	t[i] = base + (uint64_t)i * unit;
	EACH(i, 32)
	{
		uint64_t j = next(seed) % 32, v = t[i];

		t[i] = t[j];
		t[j] = v;
	}
	if (next(seed) % 4 == 0)
		t[next(seed) % 32] = t[0];
}

/*
 * The addresses of the lanes: with one distance (zero, positive, negative, the extremes of 32 bits,
 * and just beyond these), almost so, in runs, and at random.
 */
static void pattern(uint64_t *t, unsigned int nr, uint64_t *seed, uint64_t unit, uint64_t range)
{
	static const int64_t strides[] = {
		0, 1, -1, 2, 3, 33, 1 << 20, -(1 << 20), 0x7fffffff, -0x80000000ll, 0x80000000ll, 0x100000001ll
	};
	uint64_t stride = (uint64_t)strides[next(seed) % 12] * unit, base = next(seed) % 64 * unit;

	if (nr % 4 == 3)
		stride = 0;
	EACH(i, 32)
	{
		t[i] = base + stride * (uint64_t)i;
		if (nr % 4 == 1)
			t[i] += (uint64_t)(i / 8) * 5 * unit;
		else if (nr % 4 == 3)
			t[i] = next(seed) * unit;
		if (range)
			t[i] %= range;
	}
	if (nr % 8 == 5)
		runs(t, seed, unit);
	else if (nr % 8 == 7)
		shuffled(t, seed, unit);
	EACH(i, range && nr % 8 >= 5 ? 32 : 0)
	t[i] %= range;
	if (nr % 8 == 2) /* one of them is out of place */
		t[next(seed) % 32] ^= unit;
}

static uint32_t some_lanes(unsigned int nr, uint64_t *seed)
{
	uint32_t m = (uint32_t)next(seed) << 1 ^ (uint32_t)next(seed);

	return nr % 3 == 0   ? UINT32_MAX
	       : nr % 3 == 1 ? m
	       : nr % 2	     ? m & (uint32_t)next(seed) & (uint32_t)next(seed)
			     : 1u << nr % 32;
}

int kernel_any_address(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	uint64_t *t = kernel_make(&r, 256), seed = 1;
	uint32_t mask;

	err = 0;
	EACH(i, 400)
	{
		pattern(t, (unsigned int)i, &seed, i % 5 ? 4 : 1, 0);
		mask = some_lanes((unsigned int)i, &seed);
		if (!err)
			err = kernel_launch(&r, name, 1, 32, 0, P(&r.b[0].dev, &mask));
	}
	n = 32;
	END(t);
}

int kernel_all_widths(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	uint64_t *t = kernel_make(&r, 256), *a = kernel_make(&r, 16384), want[2048] = { 0 }, seed = 2;
	uint32_t mask;

	err = 0;
	EACH(i, 200)
	{
		pattern(t, (unsigned int)i, &seed, 16, 16384);
		mask = some_lanes((unsigned int)i, &seed);
		EACH(j, 32)
		want[t[j] / 8] += mask >> j & 1;
		if (!err)
			err = kernel_launch(&r, name, 1, 32, 0, P(&r.b[0].dev, &r.b[1].dev, &mask));
	}
	WANT(err || !memcmp(a, want, sizeof(want)));
	n = 2048;
	END(a);
}

int kernel_any_local(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	uint64_t *t = kernel_make(&r, 256), seed = 3;
	uint32_t mask;

	err = 0;
	EACH(i, 100)
	{
		pattern(t, (unsigned int)i, &seed, i % 2 ? 16 : 256, 4096);
		mask = some_lanes((unsigned int)i, &seed);
		if (!err)
			err = kernel_launch(&r, name, 1, 32, 0, P(&r.b[0].dev, &mask));
	}
	n = 32;
	END(t);
}
