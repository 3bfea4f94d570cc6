// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_text.c: the text of NVBit's mem_trace: the samples of its versions, lines of any spacing
 * against the same as the tool writes them, torn at every byte, ids that are one off, masks that have
 * to be inferred.
 */
#include "tests/unit/feed/mt_feed.h"

#define A	 0x710c9b000000
#define C	 0x710c9b400000
#define CTX	 "MEMTRACE: CTX 0x00006403c12bdf10 - "
#define INFERRED (TTMON_MT_INFERRED | TTMON_MT_SLOT)

struct said {
	char text[2000];
	unsigned int lines;
};

static void foreign(void *ctx, const char *line, size_t n)
{
	struct said *s = ctx;
	size_t at = strlen(s->text);

	s->lines++;
	snprintf(s->text + at, sizeof(s->text) - at, "%.*s\n", (int)n, line);
}

static void test_17(void **state)
{
	static const char *const ops[] = {
		"LDG.E", "STS", "LDS", "STG.E", "LDGSTS.E.BYPASS.LTC128B.128", "LDGSTS.E.BYPASS.LTC128B.128"
	};
	static const uint64_t base[] = { A, 0, 0, A + 0x200000, 1024, A + 65536 }, step[] = { 4096, 4, 132, 4, 0, 0 };
	static const int64_t stride[] = { 4, 132, 4, 4096, 16, 16 };
	struct said said = { 0 };
	struct ttmon_mt_in_opts opts = { .foreign = foreign, .ctx = &said };
	struct feed f = feed_file(TRACES "nvbit-1.7.txt", &opts);
	const struct ttmon_mt_launch *l;

	(void)state;
	assert_int_equal(f.err, 0);
	assert_int_equal(f.nr, 72);
	assert_string_equal(f.stats.tool, "NVBit 1.7.6 mem_trace");
	assert_int_equal(f.stats.inferred, 72);
	assert_int_equal(f.stats.foreign, 12);
	assert_int_equal(f.stats.malformed + f.stats.skewed + f.stats.no_launch + f.stats.unknown_op + f.stats.cut, 0);
	assert_int_equal(said.lines, 12);
	assert_non_null(strstr(said.text, "\nstep 1: loss 0.25\n"));
	for (size_t i = 0; i < 24; i++) {
		assert_string_equal(feed_op(&f, i), i % 3 == 2 ? "STG.E.64" : "LDG.E.64");
		assert_int_equal(f.recs[i].base, A + (i % 3 << 21) + (i / 12 * 128 + i / 3 % 4 * 32) * 8);
		assert_int_equal(f.recs[i].stride, 8);
		assert_int_equal(f.recs[i].mask, UINT32_MAX);
		assert_int_equal(f.recs[i].flags, INFERRED);
		assert_int_equal(f.recs[i].sm, TTMON_MT_NO_SM);
	}
	l = feed_launch(&f, 24);
	assert_string_equal(l->kernel, "void ns::transpose<float, 32>(float *, float const *, int - 1)");
	assert_int_equal(l->id, 1);
	assert_int_equal(l->ctx, 0x6403c12bdf10);
	assert_int_equal(l->grid[1], 4);
	assert_int_equal(l->block[1], 8);
	assert_int_equal(l->regs, 16);
	assert_int_equal(l->stream, 7);
	for (size_t i = 24; i < 72; i++) {
		size_t k = i % 6, w = (i - 24) / 6;
		const struct ttmon_mt_site *s = &f.dict->sites[f.recs[i].site];

		assert_string_equal(s->opcode, ops[k]);
		assert_string_equal(s->kernel, l->kernel);
		assert_int_equal(f.recs[i].base, base[k] + w * step[k]);
		assert_int_equal(f.recs[i].stride, stride[k]);
		assert_int_equal(f.recs[i].mask, UINT32_MAX); /* also where lane 0 is at offset 0 */
		assert_int_equal(f.recs[i].warp, w);
		assert_int_equal(f.recs[i].cta[1], 2);
		if (k >= 4)
			assert_int_equal(s->kind, k == 4 ? TTMON_MT_COPY_DST : TTMON_MT_COPY_SRC);
	}
	feed_free(&f);
}

static void test_15(void **state)
{
	static const char *const files[] = { "nvbit-1.5.txt", "nvbit-1.5-nobanner.txt" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct said said = { 0 };
		struct ttmon_mt_in_opts opts = { .foreign = foreign, .ctx = &said };
		char path[200];
		struct feed f;

		snprintf(path, sizeof(path), TRACES "%s", files[i]);
		f = feed_file(path, &opts);
		assert_int_equal(f.err, 0);
		assert_int_equal(f.nr, 29);
		assert_int_equal(f.stats.skewed, 2);
		assert_int_equal(f.stats.no_launch, 0);
		assert_int_equal(f.stats.malformed, 4);
		assert_non_null(strstr(said.text, "progress 50%\n"));
		assert_int_equal(f.dict->nr_launches, 2);
		assert_int_equal(f.dict->launches[0].id, 0);
		assert_int_equal(f.dict->launches[1].id, 1);
		/* Records that came behind the next launch's line are of their own. */
		for (size_t k = 0; k < 24; k++)
			assert_int_equal(f.recs[k].launch, 0);
		/* A block of 20 threads has no more lanes, whatever is said of them. */
		for (size_t k = 24; k < 27; k++) {
			assert_int_equal(f.recs[k].launch, 1);
			assert_int_equal(f.recs[k].mask, 0xfffff);
			assert_int_equal(f.recs[k].stride, 4);
		}
		/* Behind the torn ones. */
		assert_int_equal(f.recs[27].base, A + 0x200000);
		assert_int_equal(f.recs[28].base, C);
		feed_free(&f);
	}
}

static void test_13(void **state)
{
	struct feed f = feed_file(TRACES "nvbit-1.3.txt", NULL);

	(void)state;
	assert_int_equal(f.err, 0);
	assert_int_equal(f.nr, 17);
	assert_int_equal(f.dict->nr_launches, 2);
	assert_string_equal(f.dict->launches[0].kernel, "vecadd - with - dashes(double*)");
	assert_string_equal(f.dict->launches[1].kernel, "second(int)");
	assert_int_equal(f.stats.malformed + f.stats.no_launch, 0);
	assert_int_equal(f.stats.foreign, 10); /* nine of the banner, and what the program said */
	assert_int_equal(feed_launch(&f, 15)->id, 0);
	assert_int_equal(feed_launch(&f, 16)->id, 1);
	assert_int_equal(f.recs[16].stride, 0);
	assert_int_equal(f.recs[16].mask, UINT32_MAX);
	assert_int_equal(f.recs[3].base, C + 256);
	feed_free(&f);
}

static void test_forks(void **state)
{
	struct feed f = feed_file(TRACES "forks.txt", NULL);

	(void)state;
	assert_int_equal(f.err, 0);
	assert_int_equal(f.nr, 5);
	assert_int_equal(f.recs[0].stride, 4);
	assert_int_equal(f.recs[1].mask, 0x7f);
	assert_int_equal(f.recs[1].width, 1);
	assert_int_equal(f.recs[1].stride, 5);
	assert_int_equal(f.recs[2].base, 64);
	assert_int_equal(f.recs[2].space, TTMON_MT_SHARED);
	assert_int_equal(f.stats.unknown_op, 1);
	assert_string_equal(feed_op(&f, 3), "HYPER.LOAD");
	assert_int_equal(f.stats.no_launch, 1);
	assert_int_equal(feed_launch(&f, 4)->id, 9);
	assert_true(feed_launch(&f, 4)->flags & TTMON_MT_LAUNCH_MADE_UP);
	feed_free(&f);
}

/* A line; wide: as the tool writes it. */
static size_t put_line(char *to, unsigned int launch, const char *op, const uint64_t *addr, bool wide)
{
	size_t n = (size_t)sprintf(to, CTX "grid_launch_id %u - CTA 1,2,3 - warp 4 - %s - ", launch, op);

	for (unsigned int i = 0; i < 32; i++)
		n += (size_t)sprintf(to + n, wide ? "0x%016llx " : "0x%llx ", (unsigned long long)addr[i]);
	to[n++] = '\n';
	to[n] = '\0';
	return n;
}

static uint64_t random64(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005 + 1442695040888963407;
	return *seed ^ *seed >> 29;
}

/* Any addresses: what is read is what was written, by the fast way and by the slow one. */
static void test_fast_is_slow(void **state)
{
	enum { LINES = 300 };
	static char text[2][LINES * 1000];
	static uint64_t want[LINES][32];
	size_t n[2] = { 0, 0 };
	uint64_t seed = 7;
	struct feed f[2];

	(void)state;
	for (unsigned int i = 0; i < LINES; i++) {
		uint64_t base = A + (random64(&seed) >> 40);

		for (unsigned int l = 0; l < 32; l++)
			want[i][l] = i % 3 == 0	  ? base + l * (i % 7)
				     : i % 3 == 1 ? A + (random64(&seed) >> 36)
						  : 0x10000 + (random64(&seed) >> 8);
		for (unsigned int w = 0; w < 2; w++)
			n[w] += put_line(text[w] + n[w], i / 100, i % 2 ? "LDG.E.U8" : "STG.E.128", want[i], w);
	}
	for (unsigned int w = 0; w < 2; w++) {
		f[w] = feed_bytes(text[w], n[w], NULL);
		assert_int_equal(f[w].err, 0);
		assert_int_equal(f[w].nr, LINES);
		for (unsigned int i = 0; i < LINES; i++) {
			for (unsigned int l = 0; l < 32; l++)
				assert_int_equal(f[w].lanes[i][l], f[w].recs[i].mask >> l & 1 ? want[i][l] : 0);
			if (i % 3 < 2)
				assert_int_equal(f[w].recs[i].mask, UINT32_MAX);
			assert_string_equal(feed_op(&f[w], i), i % 2 ? "LDG.E.U8" : "STG.E.128");
			assert_int_equal(f[w].recs[i].mask, f[0].recs[i].mask);
			assert_int_equal(feed_launch(&f[w], i)->id, i / 100);
		}
	}
	feed_free(&f[0]);
	feed_free(&f[1]);
}

/*
 * Every byte of a line as it is not: either it is still the line it was but for its numbers, or it is
 * refused. Lines around it are read.
 */
static void test_every_byte(void **state)
{
	static const char bytes[] = {
		0, '\n', ' ', 'g', '/', ':', '`', '@', 'G', (char)0x80, (char)0x90, '-', '0', 'x'
	};
	static char text[8000];
	uint64_t addr[32];
	size_t n;

	(void)state;
	for (unsigned int l = 0; l < 32; l++)
		addr[l] = A + l * 4;
	n = put_line(text, 0, "LDG.E", addr, true);
	for (unsigned int k = 1; k < 6; k++)
		put_line(text + k * n, 0, "LDG.E", addr, true);
	for (size_t at = 0; at<n; at += at> 100 ? 53 : 3) {
		for (size_t b = 0; b < ARRAY_SIZE(bytes); b++) {
			char was = text[n + at];
			struct feed f;

			text[n + at] = bytes[b];
			f = feed_bytes(text, 6 * n, NULL);
			assert_int_equal(f.err, 0);
			/* A line without its end takes the next one with it, but for what begins in its middle. */
			assert_true(f.nr == 5 || f.nr == 6);
			if (f.nr == 5)
				assert_true(f.stats.malformed + f.stats.foreign >= 1);
			assert_int_equal(f.recs[0].base, A);
			assert_int_equal(f.recs[f.nr - 1].stride, 4);
			feed_free(&f);
			text[n + at] = was;
		}
	}
}

/*
 * No digit but digits, and what stands between the addresses is no less a part of the line than they
 * are.
 */
static void test_between(void **state)
{
	static const char bytes[] = { 'y', 'g', '-', (char)0xa0, 0, '/', ':', '`', '@' };
	static const unsigned int lanes[] = { 0, 1, 16, 31 }, places[] = { 0, 1, 2, 9, 17, 18 };
	static char text[8000];
	uint64_t addr[32];
	size_t n, first;

	(void)state;
	for (unsigned int l = 0; l < 32; l++)
		addr[l] = A + l * 4;
	n = put_line(text, 0, "LDG.E", addr, true);
	first = (size_t)(strstr(text, " - 0x0000710c") + 3 - text);
	for (unsigned int k = 1; k < 6; k++)
		put_line(text + k * n, 0, "LDG.E", addr, true);
	for (size_t i = 0; i < ARRAY_SIZE(lanes) * ARRAY_SIZE(places) * ARRAY_SIZE(bytes); i++) {
		char *p = text + n + first + lanes[i % 4] * 19 + places[i / 4 % 6], was = *p;
		struct feed f;

		*p = bytes[i / 24];
		f = feed_bytes(text, 6 * n, NULL);
		if (f.nr != 5 || f.stats.malformed != 1)
			fail_msg("lane %u, place %u, byte %d: %zu records", lanes[i % 4], places[i / 4 % 6],
				 bytes[i / 24], f.nr);
		feed_free(&f);
		*p = was;
	}
}

/* Torn at every byte by a whole line, and the rest behind it. */
static void test_torn(void **state)
{
	static char line[1000], text[4000];
	uint64_t addr[32];
	size_t n;

	(void)state;
	for (unsigned int l = 0; l < 32; l++)
		addr[l] = A + l * 4;
	n = put_line(line, 0, "LDG.E", addr, true);
	for (size_t cut = 1; cut<n - 2; cut += cut> 90 && cut < n - 30 ? 29 : 1) {
		size_t k = (size_t)sprintf(text, "%s%.*s%s%s%s", line, (int)cut, line, line, line + cut, line);
		struct feed f = feed_bytes(text, k, NULL);

		assert_int_equal(f.err, 0);
		/* Without its first byte, or the space before its end, it is a foreign line. */
		assert_int_equal(f.nr, 3);
		assert_true(f.stats.malformed + f.stats.foreign >= 1);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(f.recs[i].mask, UINT32_MAX);
		feed_free(&f);
		/* And cut there for ever. */
		f = feed_bytes(text, n + cut, NULL);
		assert_int_equal(f.nr, 1);
		if (cut > 10)
			assert_true(f.stats.cut && f.stats.malformed == 1);
		feed_free(&f);
	}
}

#define LAUNCH(id)                                                                               \
	CTX "LAUNCH - Kernel pc 0x00007f18a4fa0b00 - Kernel name k" #id " - grid launch id " #id \
	    " - grid size 1,1,1 - block size 64,1,1 - nregs 1 - shmem 0 - cuda stream id 0\n"
#define BANNER(v) "------------- NVBit (NVidia Binary Instrumentation Tool" v ") Loaded --------------\n"

/* Launches by their lines, then accesses: which launch's kernel each has. */
static void test_skew(void **state)
{
	static const struct {
		const char *head, *kernels[3];
		unsigned int ids[3];
		unsigned int skewed, made_up;
	} rows[] = {
		{ LAUNCH(0) LAUNCH(1), { "k0", "k1", "k1" }, { 0, 1, 1 }, 0, 0 },
		{ LAUNCH(1) LAUNCH(2), { "k1", "k2", "k1" }, { 0, 1, 0 }, 2, 0 },
		{ LAUNCH(6) LAUNCH(7),
		  { "", "k6", "k7" },
		  { 4, 5, 6 },
		  2,
		  1 }, /* a late record of one that is not there */
		{ LAUNCH(6) LAUNCH(7), { "k6", "k7", "" }, { 6, 7, 5 }, 0, 1 }, /* not one off */
		{ BANNER(" v1.7.1") LAUNCH(1) LAUNCH(2), { "", "k1", "k2" }, { 0, 1, 2 }, 0, 1 },
		{ BANNER(" v1.5.3") LAUNCH(1) LAUNCH(2), { "k2", "k1", "" }, { 1, 0, 2 }, 2, 1 },
		{ BANNER(" v1.5.3") LAUNCH(0) LAUNCH(1), { "k0", "k1", "" }, { 0, 1, 2 }, 0, 1 },
		{ BANNER("") LAUNCH(1) LAUNCH(2), { "k1", "k2", "k1" }, { 0, 1, 0 }, 2, 0 },
		/* 1.5 has no access of the newest launch's id. */
		{ BANNER("") LAUNCH(1) LAUNCH(2), { "", "k1", "k2" }, { 0, 1, 2 }, 0, 1 },
		{ LAUNCH(5), { "", "", "k5" }, { 4, 4, 5 }, 0, 2 },
		{ "", { "", "", "" }, { 0, 1, 2 }, 0, 3 },
		/* A second program in the same stream begins again. */
		{ BANNER(" v1.7") LAUNCH(0) BANNER(" v1.5.5") LAUNCH(1) LAUNCH(2),
		  { "k1", "k2", "k1" },
		  { 0, 1, 0 },
		  2,
		  0 },
	};
	static char text[8000];
	uint64_t addr[32];

	(void)state;
	for (unsigned int l = 0; l < 32; l++)
		addr[l] = A + l * 4;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = (size_t)sprintf(text, "%s", rows[i].head);
		struct feed f;

		for (unsigned int k = 0; k < 3; k++)
			n += put_line(text + n, rows[i].ids[k], "LDG.E", addr, true);
		f = feed_bytes(text, n, NULL);
		assert_int_equal(f.nr, 3);
		for (unsigned int k = 0; k < 3; k++)
			if (strcmp(feed_launch(&f, k)->kernel, rows[i].kernels[k]) ||
			    feed_launch(&f, k)->id != rows[i].ids[k])
				fail_msg("%zu: record %u: %s %zu", i, k, feed_launch(&f, k)->kernel,
					 (size_t)feed_launch(&f, k)->id);
		assert_int_equal(f.stats.skewed, rows[i].skewed);
		assert_int_equal(f.stats.no_launch, rows[i].made_up);
		feed_free(&f);
	}
	/* A launch that is described behind its first record takes it. */
	{
		size_t n = put_line(text, 3, "LDG.E", addr, true);
		struct feed f;

		n += (size_t)sprintf(text + n, LAUNCH(3));
		n += put_line(text + n, 3, "LDG.E", addr, true);
		f = feed_bytes(text, n, NULL);
		assert_int_equal(f.dict->nr_launches, 1);
		assert_string_equal(feed_launch(&f, 0)->kernel, "k3");
		assert_int_equal(f.stats.no_launch, 1);
		assert_string_equal(f.dict->sites[f.recs[1].site].kernel, "k3");
		feed_free(&f);
	}
}

/*
 * Late accesses of a launch of which one came before the first launch's line; nothing but theirs
 * behind it.
 */
static void test_late(void **state)
{
	static char text[8000];
	uint64_t addr[32];
	struct feed f;
	size_t n;

	(void)state;
	for (unsigned int l = 0; l < 32; l++)
		addr[l] = A + l * 4;
	n = put_line(text, 4, "LDG.E", addr, true);
	n += (size_t)sprintf(text + n, LAUNCH(5));
	n += put_line(text + n, 4, "LDG.E", addr, true);
	n += (size_t)sprintf(text + n, LAUNCH(6));
	n += put_line(text + n, 6, "LDG.E", addr, true);
	f = feed_bytes(text, n, NULL);
	assert_int_equal(f.stats.skewed, 0);
	assert_int_equal(f.stats.no_launch, 2);
	assert_string_equal(feed_launch(&f, 2)->kernel, "k6");
	feed_free(&f);
}

/* Of a matrix as many lanes as it has rows. */
static void test_matrices(void **state)
{
	static const struct {
		const char *op;
		uint32_t mask;
	} rows[] = { { "LDSM.16.M88", 0xff },		{ "LDSM.16.M88.2", 0xffff },
		     { "LDSM.16.M88.4", UINT32_MAX },	{ "STSM.16.MT88.2", 0xffff },
		     { "LDSM.16.MT88.4", UINT32_MAX },	{ "LDSM.8.MT1616", 0xffff },
		     { "LDSM.8.MT1616.2", UINT32_MAX }, { "LDS.128", UINT32_MAX } };
	static char text[8000];
	uint64_t addr[32];
	struct feed f;
	size_t n = 0;

	(void)state;
	for (unsigned int l = 0; l < 32; l++)
		addr[l] = 0x400 + l * 16;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		n += put_line(text + n, 0, rows[i].op, addr, i % 2);
	f = feed_bytes(text, n, NULL);
	assert_int_equal(f.nr, ARRAY_SIZE(rows));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(f.recs[i].mask, rows[i].mask);
	feed_free(&f);
}

/* Very many pieces of one line: what is behind each is not looked through. */
static void test_pieces(void **state)
{
	size_t n = 1u << 20;
	char *text = malloc(n + 2000);
	uint64_t addr[32];
	struct feed f;
	size_t at;

	(void)state;
	assert_non_null(text);
	for (unsigned int l = 0; l < 32; l++)
		addr[l] = A + l * 4;
	at = put_line(text, 0, "LDG.E", addr, true);
	n -= n % 10;
	for (size_t i = 0; i < n; i += 10)
		memcpy(text + at + i, "MEMTRACE: ", 10);
	at += n;
	at += put_line(text + at, 0, "LDG.E", addr, true);
	f = feed_bytes(text, at, NULL);
	assert_int_equal(f.err, 0);
	assert_int_equal(f.nr, 2);
	assert_int_equal(f.stats.malformed, n / 10);
	feed_free(&f);
	free(text);
}

/* Masks: of what is off, and what a lane may say all the same. */
static void test_masks(void **state)
{
	static const struct {
		const char *op, *what;
		uint64_t base;
		int64_t stride;
		uint32_t on, want; /* on: lanes of base + stride * lane; others say "else" */
		uint64_t other;
	} rows[] = {
		{ "LDG.E", "0 is off", A, 4, 0xffff, 0xffff, 0 },
		{ "LDG.E", "odd lanes", A, 4, 0xaaaaaaaa, 0xaaaaaaaa, 0 },
		{ "LDG.E", "one lane", A, 4, 1, 1, 0 },
		{ "LDG.E", "an offset is no global address", A, 4, 0xff, 0xff, 0x400 },
		{ "LDG.E", "garbage", A, 4, 0xff, 0xff, 0xffffffff00000000 },
		{ "LDG.E", "far from all that is known", A, 4, 0xffffff, 0xffffff, 0x200000000 },
		{ "LDG.E", "most are far: a new place", A, 4, 0xff, UINT32_MAX, 0x200000000 },
		{ "LDG.E", "a copy of another lane is a lane", A, 4, 0xff, UINT32_MAX, A },
		{ "LDS", "a line through offset 0", 0, 4, UINT32_MAX, UINT32_MAX, 0 },
		{ "LDS", "all at offset 0", 0, 0, UINT32_MAX, UINT32_MAX, 0 },
		{ "LDS", "backwards to offset 0", 124, -4, UINT32_MAX, UINT32_MAX, 0 },
		{ "LDS", "upper half", 0, 4, 0xffff0000, 0xffff0000, 0 },
		{ "LDS", "lower half", 512, 4, 0xffff, 0xffff, 0 },
		{ "STL", "one lane at an offset", 16, 0, 0x80, 0x80, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		static char text[3000];
		uint64_t addr[32];
		size_t n;
		struct feed f;

		/* What is known first. */
		for (unsigned int l = 0; l < 32; l++)
			addr[l] = A + l * 4;
		n = put_line(text, 0, "LDG.E", addr, true);
		for (unsigned int l = 0; l < 32; l++)
			addr[l] = rows[i].on >> l & 1 ? rows[i].base + (uint64_t)rows[i].stride * l : rows[i].other;
		n += put_line(text + n, 0, rows[i].op, addr, true);
		f = feed_bytes(text, n, NULL);
		assert_int_equal(f.nr, 2);
		if (f.recs[1].mask != rows[i].want)
			fail_msg("%s: %08x", rows[i].what, f.recs[1].mask);
		assert_int_equal(f.recs[1].flags, INFERRED);
		feed_free(&f);
	}
}

/* Nothing was on, no opcode, too long, too much: counted, and the next line is read. */
static void test_odd_lines(void **state)
{
	static char text[400000], op[200];
	uint64_t addr[32] = { 0 }, good[32];
	struct feed f;
	size_t n;

	(void)state;
	memset(op, 'L', 150);
	for (unsigned int l = 0; l < 32; l++)
		good[l] = A + l * 4;
	n = put_line(text, 0, "LDG.E", addr, true);
	n += put_line(text + n, 0, op, good, true);
	n += put_line(text + n, 0, "ldg", good, true);
	n += (size_t)sprintf(text + n, CTX "grid_launch_id 99999999999999999999999 - CTA 0,0,0 - warp 0 - LDG - 0x0\n");
	n += (size_t)sprintf(text + n, CTX "grid_launch_id 0 - CTA 0,0,0 - warp 70000 - LDG - 0x0\n");
	n += (size_t)sprintf(text + n,
			     CTX "LAUNCH - Kernel pc 0x1 - Kernel name k - grid launch id 1 - grid size 1,1\n");
	n += put_line(text + n, 0, "CCTL.IVALL", good, true); /* no access */
	memset(text + n, '.', 300000);			      /* a line of 300 KB, of which ours is in the middle */
	n += 300000;
	n += put_line(text + n, 0, "LDG.E", good, true);
	n += (size_t)sprintf(text + n, "\r 50%%\r100%%\r");
	n += put_line(text + n, 0, "LDG.E", good, false);
	f = feed_bytes(text, n, NULL);
	assert_int_equal(f.err, 0);
	assert_int_equal(f.nr, 2);
	assert_int_equal(f.stats.malformed, 6);
	assert_int_equal(f.recs[1].stride, 4);
	feed_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_17),    cmocka_unit_test(test_15),	   cmocka_unit_test(test_13),
		cmocka_unit_test(test_forks), cmocka_unit_test(test_fast_is_slow), cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_torn),  cmocka_unit_test(test_between),	   cmocka_unit_test(test_skew),
		cmocka_unit_test(test_late),  cmocka_unit_test(test_matrices),	   cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_masks), cmocka_unit_test(test_odd_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
