// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_shape.c: what requests cost. The table of known patterns, and 100,000 random warps of every
 * kind against an oracle that puts every byte of every lane into a set and knows no formula.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/feed/mt_shape_oracle.h"

#define WARPS 100000

/* ---- random warps ---- */

static uint64_t seed = 88172645463325252;
static uint64_t rnd(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return n ? (seed >> 11) % n : seed;
}

static uint32_t any_mask(void)
{
	uint32_t m;

	switch (rnd(8)) {
	case 0:
	case 1:
	case 2:
		return UINT32_MAX;
	case 3:
		return UINT32_MAX >> rnd(32);
	case 4:
		return UINT32_MAX << rnd(32);
	case 5:
		return rnd(2) ? 0x55555555 : 0xaaaaaaaa;
	case 6:
		return 1U << rnd(32);
	default:
		m = (uint32_t)rnd(0);
		return m ? m : 7;
	}
}

static int64_t any_stride(unsigned int width)
{
	int64_t s;

	switch (rnd(9)) {
	case 0:
		s = width;
		break;
	case 1:
		s = (int64_t)rnd(140);
		break;
	case 2:
		s = (int64_t)width * (int64_t)rnd(70);
		break;
	case 3:
		s = 4 * (int64_t)rnd(300);
		break;
	case 4:
		s = (int64_t)rnd(1 << 20);
		break;
	case 5:
		s = (int64_t)(1ULL << rnd(64));
		break;
	case 6:
		s = (int64_t)((rnd(8) << 60) + rnd(3) * width);
		break;
	case 7:
		return (int64_t)rnd(0);
	default:
		s = 0;
	}
	return rnd(2) ? s : (int64_t) - (uint64_t)s;
}

static uint64_t any_base(unsigned int width)
{
	switch (rnd(6)) {
	case 0:
		return 0x7f0000000000 + rnd(4096);
	case 1:
		return 0 - rnd(300); /* near the top */
	case 2:
		return rnd(300);
	case 3:
		return 0x7f0000000000 + rnd(1 << 22) * width;
	case 4:
		return 0x7f0000200000 - 32 * rnd(8);
	default:
		return 0x7f0000000000 + 32 * rnd(1 << 20);
	}
}

/* A list; what is not in the mask is rubbish. */
static void any_list(uint64_t *a, unsigned int width)
{
	static const uint8_t ranges[] = { 5, 6, 7, 8, 10, 12, 16, 21, 24, 26, 30, 31, 33, 36, 48, 63 };
	uint64_t base = any_base(width), range = 1ULL << ranges[rnd(ARRAY_SIZE(ranges))], align = rnd(3) ? width : 1;
	unsigned int r = 2 + (unsigned int)rnd(15), phase = (unsigned int)rnd(r), few = 1 + (unsigned int)rnd(6);
	int64_t s = any_stride(width), pitch = any_stride(width);

	switch (rnd(6)) {
	case 0: /* tiles */
		for (unsigned int i = 0; i < 32; i++)
			a[i] = base + (i + phase) / r * (uint64_t)pitch + (i + phase) % r * (uint64_t)s;
		break;
	case 1: /* rows anywhere */
		for (unsigned int i = 0; i < 32; i++)
			a[i] = !i || (i + phase) % r == 0 ? base + rnd(range) / align * align : a[i - 1] + (uint64_t)s;
		break;
	case 2: /* few places */
		for (unsigned int i = 0; i < 32; i++)
			a[i] = i < few ? base + rnd(range) / align * align : a[rnd(few)];
		break;
	case 3: /* a sequence shuffled, or nearly one */
		for (unsigned int i = 0; i < 32; i++)
			a[i] = base + i * (uint64_t)width;
		for (unsigned int i = 31; i; i--) {
			unsigned int k = (unsigned int)rnd(i + 1);
			uint64_t x = a[i];

			a[i] = a[k];
			a[k] = x;
		}
		if (!rnd(3))
			a[rnd(32)] += width;
		break;
	case 4: /* affine but for one */
		for (unsigned int i = 0; i < 32; i++)
			a[i] = base + i * (uint64_t)s;
		a[rnd(32)] += 1 + rnd(64);
		break;
	default:
		for (unsigned int i = 0; i < 32; i++)
			a[i] = base + rnd(range) / align * align;
	}
}

static void same_or_say(const struct ttmon_mt_rec *rec, const uint64_t *addr, unsigned int kind,
			const struct ttmon_mt_shape *got, const struct ttmon_mt_shape *want)
{
	bool same = !memcmp(got, want, offsetof(struct ttmon_mt_shape, runs));

	for (unsigned int i = 0; same && i < want->nr_runs; i++)
		same = got->runs[i].sector == want->runs[i].sector && got->runs[i].n == want->runs[i].n;
	if (same)
		return;
	print_message("%s space %u kind %u width %u mask %08x base %#llx stride %lld\n", rec->addr ? "list" : "affine",
		      rec->space, kind, rec->width, rec->mask, (unsigned long long)rec->base, (long long)rec->stride);
	for (unsigned int i = 0; i < 32; i++)
		print_message(" %#llx", rec->mask >> i & 1 ? (unsigned long long)addr[i] : 0ULL);
	print_message("\n");
	for (unsigned int i = 0; i < 2; i++) {
		const struct ttmon_mt_shape *s = i ? want : got;

		print_message(
			"%s sectors %u lines %u ideal %u %u bytes %u unique %u pages %u %u %u waves %u %u %u same %u "
			"%s mis %u run %u stride %lld pitch %lld runs %u\n",
			i ? "want" : "got ", s->sectors, s->lines, s->ideal, s->ideal_lanes, s->bytes, s->unique,
			s->pages_4k, s->pages_64k, s->pages_2m, s->phases, s->waves, s->ideal_waves, s->same,
			ttmon_mt_class_name(s->class), s->misaligned, s->run, (long long)s->stride, (long long)s->pitch,
			s->nr_runs);
	}
	fail();
}

static void random_warps(void **state)
{
	static const uint8_t kinds[] = { TTMON_MT_LOAD, TTMON_MT_STORE, TTMON_MT_ATOM, TTMON_MT_RED,
					 TTMON_MT_LDMATRIX };
	uint64_t addr[32], seen[TTMON_MT_CLASS_MAX] = { 0 };
	struct ttmon_mt_shape got, want;

	(void)state;
	for (unsigned int i = 0; i < WARPS; i++) {
		struct ttmon_mt_rec rec = { .mask = any_mask(),
					    .width = (uint8_t)(rnd(4) ? 1U << rnd(6) : 1 + rnd(64)),
					    .space = (uint8_t)rnd(4) },
				    fit;
		unsigned int kind = rnd(2) ? TTMON_MT_LOAD : kinds[rnd(ARRAY_SIZE(kinds))];

		if (rnd(2)) {
			rec.base = any_base(rec.width);
			rec.stride = any_stride(rec.width);
			for (unsigned int k = 0; k < 32; k++)
				addr[k] = rec.mask >> k & 1 ? ttmon_mt_lane(&rec, k) : rnd(0);
			oracle(addr, rec.mask, rec.width, rec.space, kind, &want);
			memset(&got, 0xa5, sizeof(got));
			ttmon_mt_get_shape(&rec, kind, &got);
			same_or_say(&rec, addr, kind, &got, &want);
		} else {
			any_list(addr, rec.width);
			oracle(addr, rec.mask, rec.width, rec.space, kind, &want);
		}
		/* As a list, fitted or not, it is the same. */
		fit = rec;
		fit.addr = addr;
		fit.base = addr[__builtin_ctz(rec.mask)];
		fit.stride = 0;
		ttmon_mt_get_shape(&fit, kind, &got);
		same_or_say(&fit, addr, kind, &got, &want);
		ttmon_mt_fit(&fit, addr);
		for (unsigned int k = 0; k < 32; k++)
			if (rec.mask >> k & 1)
				assert_true(ttmon_mt_lane(&fit, k) == addr[k]);
		ttmon_mt_get_shape(&fit, kind, &got);
		same_or_say(&fit, addr, kind, &got, &want);
		seen[want.class]++;
	}
	for (unsigned int c = 0; c < TTMON_MT_CLASS_MAX; c++)
		assert_true(seen[c] > WARPS / 200);
}

/* ---- patterns whose cost is known ---- */

#define P 0x7f0000000000

static struct ttmon_mt_shape affine(uint64_t base, int64_t stride, uint32_t mask, unsigned int width,
				    unsigned int space)
{
	struct ttmon_mt_rec rec = {
		.base = base, .stride = stride, .mask = mask, .width = (uint8_t)width, .space = (uint8_t)space
	};
	struct ttmon_mt_shape s;

	ttmon_mt_get_shape(&rec, TTMON_MT_LOAD, &s);
	return s;
}

static struct ttmon_mt_shape listed(uint64_t (*at)(unsigned int lane), unsigned int width, unsigned int space,
				    unsigned int kind)
{
	struct ttmon_mt_rec rec = { .mask = UINT32_MAX, .width = (uint8_t)width, .space = (uint8_t)space };
	struct ttmon_mt_shape s;
	uint64_t addr[32];

	for (unsigned int i = 0; i < 32; i++)
		addr[i] = at(i);
	ttmon_mt_fit(&rec, addr);
	ttmon_mt_get_shape(&rec, kind, &s);
	return s;
}

static void analytic_table(void **state)
{
	static const struct {
		const char *what;
		uint64_t base;
		int64_t stride;
		uint32_t mask;
		unsigned int width, sectors, lines, ideal, class;
		bool misaligned;
	} rows[] = {
		{ "f32 unit", P, 4, UINT32_MAX, 4, 4, 1, 4, TTMON_MT_SEQUENTIAL, false },
		{ "4 bytes off", P + 4, 4, UINT32_MAX, 4, 5, 2, 4, TTMON_MT_SEQUENTIAL, true },
		{ "16 bytes off", P + 16, 4, UINT32_MAX, 4, 5, 2, 4, TTMON_MT_SEQUENTIAL, true },
		{ "reversed", P + 124, -4, UINT32_MAX, 4, 4, 1, 4, TTMON_MT_REVERSED, false },
		{ "u8", P, 1, UINT32_MAX, 1, 1, 1, 1, TTMON_MT_SEQUENTIAL, false },
		{ "u16", P, 2, UINT32_MAX, 2, 2, 1, 2, TTMON_MT_SEQUENTIAL, false },
		{ "f64", P, 8, UINT32_MAX, 8, 8, 2, 8, TTMON_MT_SEQUENTIAL, false },
		{ "float4", P, 16, UINT32_MAX, 16, 16, 4, 16, TTMON_MT_SEQUENTIAL, false },
		{ "256 bits", P, 32, UINT32_MAX, 32, 32, 8, 32, TTMON_MT_SEQUENTIAL, false },
		{ "stride 2", P, 8, UINT32_MAX, 4, 8, 2, 4, TTMON_MT_STRIDED, false },
		{ "stride 3", P, 12, UINT32_MAX, 4, 12, 3, 4, TTMON_MT_STRIDED, false },
		{ "stride 4", P, 16, UINT32_MAX, 4, 16, 4, 4, TTMON_MT_STRIDED, false },
		{ "stride 5", P, 20, UINT32_MAX, 4, 20, 5, 4, TTMON_MT_STRIDED, false },
		{ "stride 8", P, 32, UINT32_MAX, 4, 32, 8, 4, TTMON_MT_STRIDED, false },
		{ "stride 16", P, 64, UINT32_MAX, 4, 32, 16, 4, TTMON_MT_STRIDED, false },
		{ "stride 32", P, 128, UINT32_MAX, 4, 32, 32, 4, TTMON_MT_STRIDED, false },
		{ "column of 1024", P, 4096, UINT32_MAX, 4, 32, 32, 4, TTMON_MT_STRIDED, false },
		{ "f64 stride 2", P, 16, UINT32_MAX, 8, 16, 4, 8, TTMON_MT_STRIDED, false },
		{ "broadcast", P, 0, UINT32_MAX, 4, 1, 1, 1, TTMON_MT_BROADCAST, false },
		{ "AoS of 24, f64", P, 24, UINT32_MAX, 8, 24, 6, 8, TTMON_MT_STRIDED, false },
		{ "16 lanes", P, 4, 0xffff, 4, 2, 1, 2, TTMON_MT_SEQUENTIAL, false },
		{ "odd lanes", P + 4, 4, 0xaaaaaaaa, 4, 4, 1, 2, TTMON_MT_SEQUENTIAL, false },
		{ "one lane", P, 4, 1, 4, 1, 1, 1, TTMON_MT_SINGLE, false },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ttmon_mt_shape s = affine(rows[i].base, rows[i].stride, rows[i].mask, rows[i].width,
						 i % 2 ? TTMON_MT_GLOBAL : TTMON_MT_GENERIC);

		if (s.sectors != rows[i].sectors || s.lines != rows[i].lines || s.ideal != rows[i].ideal ||
		    s.class != rows[i].class || s.misaligned != rows[i].misaligned)
			fail_msg("%s: %u/%u/%u %s", rows[i].what, s.sectors, s.lines, s.ideal,
				 ttmon_mt_class_name(s.class));
		assert_int_equal(s.phases + s.waves + s.ideal_waves, 0);
	}
}

static uint64_t rows_of_16(unsigned int i)
{
	return P + i / 16 * 4096 + i % 16 * 4;
}
static uint64_t tile_8x4(unsigned int i)
{
	return P + i / 8 * 4096 + i % 8 * 4;
}
static uint64_t rows_of_10(unsigned int i)
{
	return P + (i + 2) / 10 * 400 + (i + 2) % 10 * 4;
}
static uint64_t table_rows(unsigned int i)
{
	static const uint64_t row[] = { 77, 3, 912, 40 };

	return P + row[i / 8] * 4096 + i % 8 * 4;
}
static uint64_t row_of_a(unsigned int i)
{
	return P + i / 16 * 4096;
}
static uint64_t turned(unsigned int i)
{
	return P + i * 7 % 32 * 4;
}
static uint64_t mixed(unsigned int i)
{
	return P + (i * 13 % 32 * 2 + (i * 5 >> 3 & 1)) * 4;
}
static uint64_t scattered(unsigned int i)
{
	return P + (uint64_t)(i * i * 7919 + i) % 65521 * 4;
}
static uint64_t halves(unsigned int i)
{
	return P + (i * i & 1) * 4;
}

static void lists(void **state)
{
	struct ttmon_mt_shape s;

	(void)state;
	s = listed(rows_of_16, 4, TTMON_MT_GLOBAL, TTMON_MT_LOAD);
	assert_int_equal(s.sectors, 4);
	assert_int_equal(s.lines, 2);
	assert_int_equal(s.ideal, 4);
	assert_int_equal(s.class, TTMON_MT_SEGMENTED);
	assert_int_equal(s.run, 16);
	assert_int_equal(s.stride, 4);
	assert_int_equal(s.pitch, 4096);
	assert_int_equal(s.nr_runs, 2);
	assert_int_equal(s.runs[1].sector, (P + 4096) / 32);
	assert_int_equal(s.runs[1].n, 2);
	s = listed(tile_8x4, 4, TTMON_MT_GLOBAL, TTMON_MT_LOAD);
	assert_int_equal(s.sectors, 4);
	assert_int_equal(s.lines, 4);
	assert_int_equal(s.ideal, 4);
	assert_int_equal(s.class, TTMON_MT_SEGMENTED);
	assert_int_equal(s.run, 8);
	s = listed(rows_of_10, 4, TTMON_MT_GLOBAL,
		   TTMON_MT_LOAD); /* a block of 10 x n: a warp begins in the middle of a row */
	assert_int_equal(s.class, TTMON_MT_SEGMENTED);
	assert_int_equal(s.run, 10);
	assert_int_equal(s.pitch, 400);
	s = listed(table_rows, 4, TTMON_MT_GLOBAL, TTMON_MT_LOAD);
	assert_int_equal(s.class, TTMON_MT_SEGMENTED);
	assert_int_equal(s.pitch, 0);
	s = listed(row_of_a, 4, TTMON_MT_GLOBAL, TTMON_MT_LOAD); /* the left matrix of a product */
	assert_int_equal(s.class, TTMON_MT_SEGMENTED);
	assert_int_equal(s.stride, 0);
	assert_int_equal(s.sectors, 2);
	assert_int_equal(s.unique, 8);
	s = listed(turned, 4, TTMON_MT_GLOBAL, TTMON_MT_LOAD);
	assert_int_equal(s.class, TTMON_MT_PERMUTED);
	assert_int_equal(s.sectors, 4);
	s = listed(mixed, 4, TTMON_MT_GLOBAL, TTMON_MT_LOAD);
	assert_int_equal(s.class, TTMON_MT_CLUSTERED);
	s = listed(scattered, 4, TTMON_MT_GLOBAL, TTMON_MT_LOAD);
	assert_int_equal(s.class, TTMON_MT_GATHER);
	assert_true(s.sectors > 28);
	s = listed(halves, 4, TTMON_MT_GLOBAL, TTMON_MT_RED);
	assert_int_equal(s.same, 16);
	/* AoS of 12 and 16 bytes, their first member. */
	assert_int_equal(affine(P, 12, UINT32_MAX, 4, TTMON_MT_GLOBAL).sectors, 12);
	assert_int_equal(affine(P, 16, UINT32_MAX, 4, TTMON_MT_GLOBAL).ideal, 4);
}

/* Wavefronts by stride in words, of 4, 8 and 16 bytes a lane; and narrow ones. */
static void shared_strides(void **state)
{
	static const unsigned int waves_4[] = { 1, 1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1,	 16,
						1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1, 32, 1 };
	struct ttmon_mt_shape s;

	(void)state;
	for (int i = 0; i < (int)ARRAY_SIZE(waves_4); i++) {
		for (int sign = -1; sign <= 1; sign += 2) {
			s = affine(4096, sign * i * 4, UINT32_MAX, 4, TTMON_MT_SHARED);
			assert_int_equal(s.waves, waves_4[i]);
			assert_int_equal(s.phases, 1);
			assert_int_equal(s.ideal_waves, 1);
			assert_int_equal(s.sectors + s.lines + s.ideal + s.nr_runs + s.pages_4k, 0);
		}
	}
	/* Eight bytes: two phases of 16 lanes; a stride of n elements is 2n words. */
	for (unsigned int n = 1; n <= 32; n++) {
		unsigned int g = MIN(2 * n & -(2 * n), 32), degree = MAX(1, 16 * g / 32);

		s = affine(0, 8 * n, UINT32_MAX, 8, TTMON_MT_SHARED);
		assert_int_equal(s.phases, 2);
		assert_int_equal(s.waves, 2 * degree);
		assert_int_equal(s.ideal_waves, 2);
	}
	/* Sixteen: four phases of eight lanes. */
	for (unsigned int n = 1; n <= 32; n++) {
		unsigned int g = MIN(4 * n & -(4 * n), 32), degree = MAX(1, 8 * g / 32);

		s = affine(0, 16 * n, UINT32_MAX, 16, TTMON_MT_SHARED);
		assert_int_equal(s.phases, 4);
		assert_int_equal(s.waves, 4 * degree);
		assert_int_equal(s.ideal_waves, 4);
	}
	assert_int_equal(affine(0, 8, UINT32_MAX, 8, TTMON_MT_SHARED).waves, 2);  /* no conflict */
	assert_int_equal(affine(0, 16, UINT32_MAX, 8, TTMON_MT_SHARED).waves, 4); /* two-way */
	assert_int_equal(affine(0, 132, UINT32_MAX, 4, TTMON_MT_SHARED).waves,
			 1); /* a column of a tile that is padded by one word */
	assert_int_equal(affine(0, 128, UINT32_MAX, 4, TTMON_MT_SHARED).waves, 32); /* one that is not */
	for (int n = 1; n <= 4; n++) { /* bytes and halves: neighbours share words */
		assert_int_equal(affine(0, n, UINT32_MAX, 1, TTMON_MT_SHARED).waves, 1);
		assert_int_equal(affine(0, 2 * n, UINT32_MAX, 2, TTMON_MT_SHARED).waves, n < 3 ? 1 : 2);
	}
	assert_int_equal(affine(0, 128, UINT32_MAX, 1, TTMON_MT_SHARED).waves, 32);
	assert_int_equal(affine(0, 128, 0xff, 4, TTMON_MT_SHARED).waves, 8); /* fewer lanes, fewer conflicts */
	assert_int_equal(affine(0, 0, UINT32_MAX, 16, TTMON_MT_SHARED).waves,
			 4); /* one wavefront a phase, though one would carry it */
	assert_int_equal(affine(0, 0, UINT32_MAX, 16, TTMON_MT_SHARED).ideal_waves, 1);
	/*
	 * ldmatrix .x4 out of rows of 64 bytes: rows 0, 2, 4, 6 of a matrix in the same banks; of 80 bytes:
	 * none.
	 */
	assert_int_equal(affine(0, 64, UINT32_MAX, 16, TTMON_MT_SHARED).waves, 16);
	assert_int_equal(affine(0, 80, UINT32_MAX, 16, TTMON_MT_SHARED).waves, 4);
	s = listed(scattered, 4, TTMON_MT_SHARED, TTMON_MT_LOAD);
	assert_true(s.waves >= 3 && s.waves < 10);
	assert_int_equal(s.ideal_waves, 1);
}

static void local_memory(void **state)
{
	struct ttmon_mt_shape s = affine(64, 0, UINT32_MAX, 4, TTMON_MT_LOCAL);

	(void)state;
	assert_int_equal(s.sectors, 4); /* a word of 32 lanes */
	assert_int_equal(s.lines, 1);
	assert_int_equal(s.ideal, 4);
	assert_int_equal(s.unique, 128);
	assert_int_equal(s.class, TTMON_MT_SEQUENTIAL);
	assert_int_equal(s.nr_runs + s.pages_4k + s.misaligned, 0);
	s = affine(64, 0, UINT32_MAX, 8, TTMON_MT_LOCAL);
	assert_int_equal(s.sectors, 8);
	assert_int_equal(s.ideal, 8);
	s = affine(64, 0, 0x00800001, 4, TTMON_MT_LOCAL); /* lanes 0 and 23 */
	assert_int_equal(s.sectors, 2);
	s = affine(0, 4, UINT32_MAX, 4, TTMON_MT_LOCAL); /* an array indexed by lane */
	assert_int_equal(s.sectors, 32);
	assert_int_equal(s.lines, 32);
	assert_int_equal(s.class, TTMON_MT_STRIDED);
	s = affine(0, 0, UINT32_MAX, 1, TTMON_MT_LOCAL);
	assert_int_equal(s.sectors, 4);
	assert_int_equal(s.ideal, 1);
}

static void straddles_and_wraps(void **state)
{
	struct ttmon_mt_shape s = affine(P + 30, 0, 1, 4, TTMON_MT_GLOBAL);

	(void)state;
	assert_int_equal(s.sectors, 2);
	assert_int_equal(s.runs[0].n, 2);
	s = affine(P + 126, 128, UINT32_MAX, 4, TTMON_MT_GLOBAL);
	assert_int_equal(s.sectors, 64);
	assert_int_equal(s.lines, 33);
	s = affine((uint64_t)-64, 4, UINT32_MAX, 4, TTMON_MT_GLOBAL); /* half of it over the top */
	assert_int_equal(s.sectors, 4);
	assert_int_equal(s.lines, 2);
	assert_int_equal(s.pages_2m, 2);
	assert_int_equal(s.class, TTMON_MT_SEQUENTIAL);
	assert_int_equal(s.misaligned, 0);
	assert_int_equal(s.nr_runs, 2);
	assert_int_equal(s.runs[0].sector, 0);
	assert_int_equal(s.runs[0].n, 2);
	assert_int_equal(s.runs[1].sector, UINT64_MAX / 32 - 1);
	s = affine((uint64_t)-66, 4, UINT32_MAX, 4, TTMON_MT_GLOBAL);
	assert_int_equal(s.sectors, 5);
	assert_int_equal(s.unique, 128);
	assert_int_equal(s.misaligned, 1);
	s = affine(P, INT64_MIN, 5, 4, TTMON_MT_GLOBAL); /* twice 2^63 is 0 */
	assert_int_equal(s.class, TTMON_MT_BROADCAST);
	assert_int_equal(s.sectors, 1);
	assert_string_equal(ttmon_mt_class_name(TTMON_MT_GATHER), "gather");
	assert_string_equal(ttmon_mt_class_name(TTMON_MT_CLASS_MAX), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(analytic_table),      cmocka_unit_test(lists),
		cmocka_unit_test(shared_strides),      cmocka_unit_test(local_memory),
		cmocka_unit_test(straddles_and_wraps), cmocka_unit_test(random_warps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
