// SPDX-License-Identifier: GPL-2.0-only
#include "kernels_int.h"

#include <stdlib.h>
#include <string.h>

/* Makes a buffer of n bytes, zeroed, on host and device. */
void *kernel_make(struct run *r, size_t n)
{
	struct buf *b = &r->b[r->nr++];

	b->host = calloc(1, n);
	b->n = n;
	b->dev = r->io->alloc(r->io->ctx, n);
	if (!b->host || !b->dev)
		abort();
	return b->host;
}

int kernel_launch3(struct run *r, const char *name, const uint32_t *grid, const uint32_t *block, uint32_t dyn,
		   void **params, unsigned int n)
{
	int err;

	for (unsigned int i = 0; i < r->nr; i++)
		r->io->put(r->io->ctx, r->b[i].dev, r->b[i].host, r->b[i].n);
	err = r->io->launch(r->io->ctx, name, grid, block, dyn, params, n);
	for (unsigned int i = 0; i < r->nr && !err; i++)
		r->io->get(r->io->ctx, r->b[i].host, r->b[i].dev, r->b[i].n);
	return err;
}

int kernel_launch(struct run *r, const char *name, uint32_t gx, uint32_t bx, uint32_t dyn, void **params,
		  unsigned int n)
{
	return kernel_launch3(r, name, (const uint32_t[]){ gx, 1, 1 }, (const uint32_t[]){ bx, 1, 1 }, dyn, params, n);
}

void kernel_add_up(struct run *r, const void *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		r->sum = (r->sum ^ ((const uint8_t *)data)[i]) * 0x100000001b3ull;
}

int kernel_done(struct run *r, int err, uint64_t *sum)
{
	for (unsigned int i = 0; i < r->nr; i++) {
		if (r->b[i].dev)
			r->io->release(r->io->ctx, r->b[i].dev);
		free(r->b[i].host);
	}
	*sum = r->sum;
	return err ? err : r->bad ? -1 : 0;
}

static int vadd(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	float *a = kernel_make(&r, N * 4), *b = kernel_make(&r, N * 4), *c = kernel_make(&r, N * 4);

	EACH(i, N)
	{
		a[i] = (float)i;
		b[i] = (float)(3 * i);
	}
	err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &r.b[2].dev, &n));
	EACH(i, err ? 0 : N)
	WANT(c[i] == (float)(4 * i));
	END(c);
}

static int vadd64(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	double *a = kernel_make(&r, N * 8), *b = kernel_make(&r, N * 8), *c = kernel_make(&r, N * 8);

	EACH(i, N)
	{
		a[i] = i;
		b[i] = i * .25;
	}
	err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &r.b[2].dev, &n));
	EACH(i, err ? 0 : N)
	WANT(c[i] == i * 1.25);
	END(c);
}

static int vadd4(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	float *a = kernel_make(&r, N * 16), *b = kernel_make(&r, N * 16), *c = kernel_make(&r, N * 16);

	EACH(i, 4 * N)
	{
		a[i] = (float)i;
		b[i] = (float)-i / 2;
	}
	err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &r.b[2].dev, &n));
	EACH(i, err ? 0 : 4 * N)
	WANT(c[i] == (float)i / 2);
	n *= 4;
	END(c);
}

static int bytes(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	uint8_t *a = kernel_make(&r, N), *b = kernel_make(&r, N);

	EACH(i, N)
	a[i] = (uint8_t)(i * 7);
	err = kernel_launch(&r, name, 4, 256, 0, P(&r.b[0].dev, &r.b[1].dev, &n));
	EACH(i, err ? 0 : N)
	WANT(b[i] == (a[i] ^ 0x5a));
	END(b);
}

/* Converts a number that is exact as a half and not subnormal. */
static uint16_t half(float f)
{
	uint32_t b;

	if (f == 0)
		return 0;
	memcpy(&b, &f, 4);
	return (uint16_t)((b >> 16 & 0x8000) | ((b >> 23 & 255) - 112) << 10 | (b >> 13 & 0x3ff));
}

static int halves(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	uint16_t *a = kernel_make(&r, N * 2), *b = kernel_make(&r, N * 4), *c = kernel_make(&r, N * 2),
		 *d = kernel_make(&r, N * 4);

	EACH(i, N)
	{
		a[i] = half((float)(i - 500));
		b[2 * i] = half((float)(i % 31) / 8);
		b[2 * i + 1] = half((float)(-i % 29) / 4);
	}
	err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &r.b[2].dev, &r.b[3].dev, &n));
	EACH(i, err ? 0 : N)
	{
		float x = (float)(i % 31) / 8, y = (float)(-i % 29) / 4;

		WANT(c[i] == half((float)(2 * (i - 500))) && d[2 * i] == half(x * x) && d[2 * i + 1] == half(y * y));
	}
	kernel_add_up(&r, c, N * 2);
	n *= 2;
	END(d);
}

static int transpose(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	float *in = kernel_make(&r, 64 * 64 * 4), *out = kernel_make(&r, 64 * 64 * 4);
	const uint32_t grid[3] = { 2, 2, 1 }, block[3] = { 32, 8, 1 };

	n = 64;
	EACH(i, 64 * 64)
	in[i] = (float)i;
	err = kernel_launch3(&r, name, grid, block, 0, P(&r.b[0].dev, &r.b[1].dev, &n));
	EACH(i, err ? 0 : 64 * 64)
	WANT(out[i] == (float)(i % 64 * 64 + i / 64));
	n = 64 * 64;
	END(out);
}

static int strided(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	int stride = 3;
	float *a = kernel_make(&r, N * 12), *b = kernel_make(&r, N * 4);

	EACH(i, 3 * N)
	a[i] = (float)i;
	err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &n, &stride));
	EACH(i, err ? 0 : N)
	WANT(b[i] == (float)(3 * i));
	END(b);
}

static int gather(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	float *a = kernel_make(&r, N * 4), *b;
	int *index = kernel_make(&r, N * 4);

	b = kernel_make(&r, N * 4);
	EACH(i, N)
	{
		a[i] = (float)i;
		index[i] = i * 7919 % N;
	}
	err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &r.b[2].dev, &n));
	EACH(i, err ? 0 : N)
	WANT(b[i] == (float)(i * 7919 % N));
	END(b);
}

static int reduce(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	int *a = kernel_make(&r, N * 4), *sums = kernel_make(&r, 16), want[4] = { 0 };

	EACH(i, N)
	want[i / 256] += a[i] = i * i;
	err = kernel_launch(&r, name, 4, 256, 1024, P(&r.b[0].dev, &r.b[1].dev, &n));
	WANT(err || !memcmp(sums, want, sizeof(want)));
	n = 4;
	END(sums);
}

static int histogram(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	uint8_t *a = kernel_make(&r, N);
	unsigned int *bins = kernel_make(&r, 1024), want[256] = { 0 };

	EACH(i, N)
	want[a[i] = (uint8_t)(i * i)]++;
	err = kernel_launch(&r, name, 3, 96, 0, P(&r.b[0].dev, &r.b[1].dev, &n));
	WANT(err || !memcmp(bins, want, sizeof(want)));
	n = 256;
	END(bins);
}

static int atomics(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	int *a = kernel_make(&r, N * 4), *old = kernel_make(&r, N * 4), *slot = kernel_make(&r, 256),
	    *max = kernel_make(&r, 4), zeros = 0;
	float *total = kernel_make(&r, 4);

	EACH(i, N)
	a[i] = 1 + i % 50;
	err = kernel_launch(&r, name, 8, 128, 0,
			    P(&r.b[0].dev, &r.b[1].dev, &r.b[2].dev, &r.b[3].dev, &r.b[4].dev, &n));
	EACH(i, err ? 0 : N)
	{
		WANT(!old[i] || old[i] == a[i]);
		zeros += !old[i];
	}
	EACH(i, err ? 0 : 64)
	WANT(slot[i] == (i >= 1 && i <= 50 ? i : 0));
	WANT(err || (*max == 50 && *total == N && zeros == 50));
	n = 64;
	END(slot);
}

static int generic(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	int *a = kernel_make(&r, N * 4), *b = kernel_make(&r, N * 4);

	EACH(i, N)
	a[i] = i + 100000;
	err = kernel_launch(&r, name, 4, 256, 0, P(&r.b[0].dev, &r.b[1].dev, &n));
	EACH(i, err ? 0 : N)
	WANT(b[i] == (i & 1 ? a[i] : 3 * (i ^ 2)));
	END(b);
}

static int local_array(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	int *a = kernel_make(&r, N * 4), *b = kernel_make(&r, N * 4);

	EACH(i, N)
	a[i] = i * 5 + 3;
	err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &n));
	EACH(i, err ? 0 : N)
	WANT(b[i] == a[a[i & 15] & 15] * i);
	END(b);
}

static int divergent(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	int *a = kernel_make(&r, N * 4), *b = kernel_make(&r, N * 4);

	EACH(i, N)
	a[i] = i * 31 % 97;
	err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &n));
	EACH(i, err ? 0 : N)
	{
		int x = 0;

		EACH(k, a[i] & 7)
		x += a[(i + k) % n];
		WANT(b[i] == (i & 1 ? x : -x));
	}
	END(b);
}

static int calls(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	int *a = kernel_make(&r, N * 4), *b = kernel_make(&r, N * 4);

	EACH(i, N)
	a[i] = i * 3 + 1;
	err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &n));
	EACH(i, err ? 0 : N)
	{
		int x = 2 * a[i];

		EACH(k, (i & 7) + 1)
		x += a[k];
		WANT(b[i] == x);
	}
	END(b);
}

static int indirect(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	int *a = kernel_make(&r, N * 4), *b = kernel_make(&r, N * 4), which = 1;

	EACH(i, N)
	a[i] = i * 3 + 1;
	err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &n, &which));
	EACH(i, err ? 0 : N)
	WANT(b[i] == -a[i]);
	which = 0;
	if (!err)
		err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &n, &which));
	EACH(i, err ? 0 : N)
	WANT(b[i] == 2 * a[i]);
	END(b);
}

static int volume(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	const uint32_t grid[3] = { 3, 2, 2 }, block[3] = { 8, 4, 3 };
	float *a, *b;

	n = 24 * 8 * 6;
	a = kernel_make(&r, (size_t)n * 4);
	b = kernel_make(&r, (size_t)n * 4);
	EACH(i, n)
	a[i] = (float)i;
	err = kernel_launch3(&r, name, grid, block, 0, P(&r.b[0].dev, &r.b[1].dev));
	EACH(i, err ? 0 : n)
	WANT(b[i] == (float)(2 * i));
	END(b);
}

static int by_value(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	float *a = kernel_make(&r, N * 4), *b = kernel_make(&r, N * 4);
	signed char last = -9;
	struct {
		uint64_t a, b;
		int n;
		short from[3];
		signed char add;
	} s = { r.b[0].dev, r.b[1].dev, N, { 10, -20, 30 }, 5 };

	EACH(i, N)
	a[i] = (float)i;
	err = kernel_launch(&r, name, 8, 128, 0, P(&s, &last));
	EACH(i, err ? 0 : N)
	WANT(b[i] == (float)(i + s.from[i % 3] + 5 - 9));
	END(b);
}

static int nothing_given(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	uint64_t table = io->variable(io->ctx, "table"), counter = io->variable(io->ctx, "counter");
	int was[64], is[64], count[2];

	if (table && counter) {
		io->get(io->ctx, was, table, sizeof(was));
		io->get(io->ctx, &count[0], counter, 4);
	}
	err = kernel_launch(&r, name, 1, 96, 0, NULL, 0);
	if (!err) {
		io->get(io->ctx, is, table, sizeof(is));
		io->get(io->ctx, &count[1], counter, 4);
		EACH(i, 64)
		WANT(is[i] == was[i] + 7);
		WANT(count[1] == count[0] + 96);
	}
	n = 64;
	END(is);
}

static int apply(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	float *x = kernel_make(&r, N * 4), *y = kernel_make(&r, N * 4), f = 3;

	EACH(i, N)
	{
		x[i] = (float)i;
		y[i] = (float)(i % 7);
	}
	err = kernel_launch(&r, name, 8, 128, 0, P(&f, &r.b[0].dev, &r.b[1].dev, &n));
	EACH(i, err ? 0 : N)
	WANT(y[i] == (float)(3 * i + i % 7));
	END(y);
}

static int by_hand(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	uint64_t *a = kernel_make(&r, N * 8);
	uint32_t *b = kernel_make(&r, (N + 1) * 4);

	EACH(i, N)
	a[i] = (uint64_t)i << 32 | (uint32_t)(i * 77);
	err = kernel_launch(&r, name, 8, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &n));
	EACH(i, err ? 0 : N)
	WANT(b[i] == (uint32_t)(i * 77));
	WANT(err || b[N] == N);
	n++;
	END(b);
}

static int matrix(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	uint16_t *a = kernel_make(&r, 512), *out = kernel_make(&r, 512);

	EACH(i, 256)
	a[i] = (uint16_t)(i * 257);
	err = kernel_launch(&r, name, 1, 32, 0, P(&r.b[0].dev, &r.b[1].dev));
	EACH(t, err ? 0 : 32)
	EACH(k, 8)
	{
		int m = k / 2, row = t / 4, col = 2 * (t % 4) + k % 2;

		WANT(out[8 * t + k] == (m < 3 ? a[(8 * m + row) * 8 + col] : a[col * 8 + row]));
	}
	n = 256;
	END(out);
}

static int async_copy(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	uint32_t *a, *b;

	n = 200; /* of 256 */
	a = kernel_make(&r, 200 * 16);
	b = kernel_make(&r, 256 * 16);
	EACH(i, 800)
	a[i] = (uint32_t)(i + 1);
	err = kernel_launch(&r, name, 2, 128, 0, P(&r.b[0].dev, &r.b[1].dev, &n));
	EACH(i, err ? 0 : 1024)
	{
		int from = i / 4 ^ 1, bytes_of = from >= 200 ? 0 : from & 1 ? 8 : 16;

		WANT(b[i] == (i % 4 * 4 < bytes_of ? a[4 * from + i % 4] : 0));
	}
	n = 1024;
	END(b);
}

static int async_copy4(const struct kernel_io *io, const char *name, uint64_t *sum)
{
	BEGIN();
	uint32_t *a = kernel_make(&r, 1024), *b = kernel_make(&r, 1024);

	EACH(i, 256)
	a[i] = (uint32_t)(i * i);
	err = kernel_launch(&r, name, 2, 128, 0, P(&r.b[0].dev, &r.b[1].dev));
	EACH(i, err ? 0 : 256)
	WANT(b[i] == a[i / 128 * 128 + 127 - i % 128]);
	n = 256;
	END(b);
}

const struct kernel_test kernel_tests[] = {
	{ "vadd", vadd },
	{ "vadd64", vadd64 },
	{ "vadd4", vadd4 },
	{ "bytes", bytes },
	{ "halves", halves },
	{ "transpose_naive", transpose },
	{ "transpose_banks", transpose },
	{ "transpose_padded", transpose },
	{ "strided", strided },
	{ "gather", gather },
	{ "reduce", reduce },
	{ "histogram", histogram },
	{ "atomics", atomics },
	{ "generic", generic },
	{ "local_array", local_array },
	{ "divergent", divergent },
	{ "calls", calls },
	{ "indirect", indirect },
	{ "volume", volume },
	{ "by_value", by_value },
	{ "nothing_given", nothing_given },
	{ "_Z5applyI4axpyIfEfEvT_PKT0_PS3_i", apply },
	{ "by_hand", by_hand },
	{ "matrix", matrix },
	{ "async_copy", async_copy },
	{ "async_copy4", async_copy4 },
	{ "any_address", kernel_any_address },
	{ "all_widths", kernel_all_widths },
	{ "any_local", kernel_any_local },
};
const size_t nr_kernel_tests = sizeof(kernel_tests) / sizeof(*kernel_tests);
