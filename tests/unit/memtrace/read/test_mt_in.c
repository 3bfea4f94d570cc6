// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_in.c: traces of all kinds as they come: the samples of tests/memtrace/make_traces.py field
 * by field, bytes in pieces through a pipe, compressed, cut, and what is no trace at all. Lines of
 * text are in test_mt_text.c.
 */
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/unit/feed/mt_feed.h"

#define A 0x710c9b000000
#define B 0x710c9b200000
#define C 0x710c9b400000

static void test_raw(void **state)
{
	struct feed f = feed_file(TRACES "big.raw", NULL);

	(void)state;
	assert_int_equal(f.err, 0);
	assert_int_equal(f.nr, 48);
	assert_int_equal(f.dict->nr_launches, 2);
	assert_int_equal(f.stats.no_launch, 48);
	assert_int_equal(f.stats.unknown_op, 0);
	for (size_t i = 0; i < f.nr; i++) {
		static const char *const ops[] = { "LDG.E", "STG.E.EF", "LDS.U.128" };
		uint64_t cta = i / 24, warp = i / 3 % 8;

		assert_string_equal(feed_op(&f, i), ops[i % 3]);
		assert_int_equal(f.recs[i].cta[0], cta);
		assert_int_equal(f.recs[i].warp, warp);
		assert_int_equal(feed_launch(&f, i)->id, cta);
		assert_int_equal(feed_launch(&f, i)->flags, TTMON_MT_LAUNCH_MADE_UP | TTMON_MT_LAUNCH_NTH_0);
		assert_int_equal(f.recs[i].flags, TTMON_MT_INFERRED | TTMON_MT_SLOT);
		assert_int_equal(f.recs[i].base, A + (i % 3 << 21) + (cta * 256 + warp * 32) * 4);
		assert_int_equal(f.recs[i].stride, 4);
		assert_int_equal(f.recs[i].width, i % 3 == 2 ? 16 : 4);
	}
	feed_free(&f);
	/* Of 1.3: no table, and kernels are what end markers are between. */
	f = feed_file(TRACES "small.raw", NULL);
	assert_int_equal(f.nr, 32);
	assert_int_equal(f.stats.unknown_op, 32);
	assert_string_equal(feed_op(&f, 1), "opcode 1");
	assert_int_equal(f.dict->sites[f.recs[1].site].flags, TTMON_MT_SITE_GUESSED);
	assert_int_equal(f.recs[1].base, B);
	assert_int_equal(feed_launch(&f, 31)->id, 1);
	feed_free(&f);
}

static void test_raw_damaged(void **state)
{
	size_t n;
	char *p = slurp(TRACES "big.raw", &n);
	struct feed f = feed_bytes(p, n - 100, NULL);

	(void)state;
	assert_int_equal(f.nr, 47);
	assert_true(f.stats.cut);
	feed_free(&f);
	/* Some bytes are missing in the middle: the records behind are found again. */
	memmove(p + 45 * 288 + 12, p + 45 * 288 + 32, n - 45 * 288 - 32);
	f = feed_bytes(p, n - 20, NULL);
	assert_int_equal(f.err, 0);
	assert_int_equal(f.nr, 47);
	assert_int_equal(f.stats.malformed, 1);
	assert_false(f.stats.cut);
	feed_free(&f);
	free(p);
	/* Nothing to find for long: what was looked through is not again; the records at the end are found. */
	p = slurp(TRACES "big.raw", &n);
	{
		size_t bad = 3000 * 288, good = 6 * n;
		char *q = malloc(good + bad + n);

		assert_non_null(q);
		for (size_t i = 0; i < 6; i++)
			memcpy(q + i * n, p, n);
		memset(q + good, 0x77, bad);
		memcpy(q + good + bad, p, n);
		f = feed_bytes(q, good + bad + n, NULL);
		assert_int_equal(f.err, 0);
		assert_in_range(f.stats.malformed, 2900, 3000);
		assert_int_equal(f.nr % 7, 0);
		assert_false(f.stats.cut);
		feed_free(&f);
		free(q);
	}
	free(p);
}

static void test_raw_table(void **state)
{
	static const struct {
		const char *table, *why; /* NULL: it is fine */
	} rows[] = {
		{ "0 LDG.E\n1: STG.E\n# x\n\n 2 = STS\r\n", NULL },
		{ "0 LDG.E\nLDG.E 1\n", "line 2" },
		{ "0\n", "line 1" },
		{ "-1 LDG\n", "line 1" },
		{ "70000 LDG\n", "line 1" },
		{ "0 LDG STG\n", "line 1" },
	};
	char path[] = "/tmp/ttmon-test-mt-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ttmon_mt_in_opts opts = { .opcodes = path };
		struct feed f;

		assert_true(!ftruncate(fd, 0) && pwrite(fd, rows[i].table, strlen(rows[i].table), 0) > 0);
		f = feed_file(TRACES "big.raw", &opts);
		assert_int_equal(f.err, rows[i].why ? -EBADMSG : 0);
		if (rows[i].why)
			assert_non_null(strstr(f.why, rows[i].why));
		else
			assert_string_equal(feed_op(&f, 2), "STS");
		feed_free(&f);
	}
	close(fd);
	unlink(path);
}

/* The eight accesses of a warp, in every version: r0 is the first of them. */
static void check_accel(const struct feed *f, size_t r0, uint64_t cta, uint64_t warp, bool lines)
{
	static const struct {
		const char *op;
		uint32_t mask;
		unsigned int space, width, pc, line;
		uint64_t base;
		int64_t stride;
	} want[] = {
		{ "LDG.E.SYS", UINT32_MAX, TTMON_MT_GLOBAL, 4, 0x10, 4, 0, 4 },
		{ "LDG.E.U8.SYS", 0xffff, TTMON_MT_GLOBAL, 1, 0x20, 4, B, 3 },
		{ "LDG.E.S8", 0x10101, TTMON_MT_GLOBAL, 1, 0x30, 5, A, 0 },
		{ "LD.E", UINT32_MAX, TTMON_MT_SHARED, 4, 0x40, 6, 0x100, 8 },
		{ "LD.E", UINT32_MAX, TTMON_MT_LOCAL, 4, 0x50, 6, 0x10, 0 },
		{ "LDGSTS.E.128", UINT32_MAX, TTMON_MT_SHARED, 16, 0x70, 7, 0x400, 16 },
		{ "LDGSTS.E.128", UINT32_MAX, TTMON_MT_GLOBAL, 16, 0x70, 7, B + 4096, 16 },
		{ "STG.E.SYS", UINT32_MAX, TTMON_MT_GLOBAL, 4, 0x80, 8, C, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const struct ttmon_mt_rec *r = &f->recs[r0 + i];
		const struct ttmon_mt_site *s = &f->dict->sites[r->site];

		assert_string_equal(s->opcode, want[i].op);
		assert_int_equal(s->pc, want[i].pc);
		if (lines)
			assert_int_equal(s->line, want[i].line);
		assert_int_equal(r->mask, want[i].mask);
		assert_int_equal(r->space, want[i].space);
		assert_int_equal(r->width, want[i].width);
		assert_int_equal(r->flags, 0);
		assert_int_equal(r->cta[0], cta);
		assert_int_equal(r->warp, warp);
		assert_int_equal(r->base, want[i].base ?: A + (cta * 4 + warp) * 128);
		assert_int_equal(r->stride, want[i].stride);
	}
	assert_int_equal(f->dict->sites[f->recs[r0 + 5].site].kind, TTMON_MT_COPY_DST);
	assert_int_equal(f->dict->sites[f->recs[r0 + 6].site].kind, TTMON_MT_COPY_SRC);
	assert_int_equal(f->lanes[r0 + 2][8], A + 64);
	assert_int_equal(f->lanes[r0 + 2][16], C);
	assert_int_equal(f->lanes[r0 + 7][1], C + 4);
	assert_int_equal(f->lanes[r0 + 7][2], C - 4);
	assert_int_equal(f->lanes[r0 + 7][31], C - 15 * 4 + 4);
}

static void test_accel(void **state)
{
	static const struct {
		const char *file, *kernel, *tool;
		uint64_t id;
		bool lines;
	} rows[] = {
		{ "kernel-1.traceg", "_Z5groupPf", "Accel-Sim tracer 3", 1, false },
		{ "kernel-2.traceg.xz", "_Z5groupPf", "Accel-Sim tracer 4", 2, true },
		{ "kernel-3.traceg.gz", "_Z5groupPf", "Accel-Sim tracer 5", 3, false },
		{ "kernel-4.trace.zst", "_Z3addPf", "Accel-Sim tracer 2", 4, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char path[200];
		struct feed f;

		snprintf(path, sizeof(path), TRACES "%s", rows[i].file);
		f = feed_file(path, NULL);
		if (f.err)
			fail_msg("%s", f.why);
		assert_int_equal(f.nr, 32);
		assert_string_equal(f.stats.tool, rows[i].tool);
		assert_int_equal(f.stats.malformed + f.stats.inferred + f.stats.unknown_op + f.stats.no_launch, 0);
		assert_int_equal(f.dict->nr_sites, 8);
		assert_int_equal(f.dict->nr_launches, 1);
		assert_string_equal(f.dict->launches[0].kernel, rows[i].kernel);
		assert_int_equal(f.dict->launches[0].id, rows[i].id);
		assert_int_equal(f.dict->launches[0].grid[0], 2);
		assert_int_equal(f.dict->launches[0].block[0], 64);
		assert_int_equal(f.dict->launches[0].shmem, 1024);
		assert_int_equal(f.dict->launches[0].regs, 16);
		assert_int_equal(f.dict->launches[0].shared_base, 0x7f6ef4000000);
		for (size_t w = 0; w < 4; w++)
			check_accel(&f, w * 8, w / 2, w % 2, rows[i].lines);
		feed_free(&f);
	}
}

static void test_accel_list(void **state)
{
	struct feed f = feed_file(TRACES "kernelslist.g", NULL);
	uint64_t at, size;
	int pv[2];

	(void)state;
	assert_int_equal(f.err, 0);
	assert_int_equal(f.nr, 128);
	assert_int_equal(f.dict->nr_launches, 4);
	assert_int_equal(f.dict->nr_sites, 16); /* three launches of one kernel, one of the other */
	assert_int_equal(f.stats.foreign, 0);	/* copies are not */
	size = ttmon_mt_in_size(f.in, &at);
	assert_int_equal(size, at);
	for (size_t w = 0; w < 16; w++) {
		check_accel(&f, w * 8, w % 4 / 2, w % 2, false);
		assert_int_equal(feed_launch(&f, w * 8)->id, 1 + w / 4);
	}
	feed_free(&f);
	f = feed_text("kernel-1.traceg\nMemcpyHtoD,0x1,4\nkernel-7.traceg\n");
	assert_int_equal(f.err, -ENOENT);
	assert_non_null(strstr(f.why, "line 1: kernel-1.traceg: No such file"));
	feed_free(&f);
	f = feed_text("MemcpyHtoD,0x00007f6ed2000000,4096\n");
	assert_int_equal(f.err, -EBADMSG);
	feed_free(&f);
	/* For a pipe, the folder of its files is not known. */
	assert_int_equal(pipe2(pv, O_CLOEXEC), 0);
	assert_int_equal(write(pv[1], "kernel-1.traceg\n", 16), 16);
	close(pv[1]);
	f.err = ttmon_mt_in_open_fd(pv[0], "pipe", NULL, &f.in, f.why, sizeof(f.why));
	assert_int_equal(f.err, 0);
	feed_read(&f);
	assert_int_equal(f.err, -EINVAL);
	feed_free(&f);
	close(pv[0]);
}

#define HEAD "-kernel name = k\n-kernel id = 1\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n"
#define INTO "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = 1\n"
#define GOOD "0010 00000003 1 R2 LDG.E 1 R2 4 1 0x7000000000 4\n"

static void test_accel_bad(void **state)
{
	static const struct {
		const char *text, *why;
		size_t nr, malformed;
	} rows[] = {
		{ HEAD INTO GOOD, NULL, 1, 0 },
		{ HEAD INTO GOOD "0010 ffffffff 1 R2 LDG.E 1 R2 4 3 0x7000000000 4\n" GOOD, NULL, 2,
		  1 }, /* no such mode */
		{ HEAD INTO "0010 ffffffff 1 R2 LDG.E 1 R2 65 1 0x7000000000 4\n" GOOD, NULL, 1,
		  1 }, /* no such width */
		{ HEAD INTO "0010 ffffffff 1 R2 LDG.E 1 R2 4 0 0x7000000000 0x4\n" GOOD, NULL, 1, 1 }, /* 2 of 32 */
		{ HEAD INTO "0010 ffffffff 9999 R2 LDG.E 1 R2 4 0 0x7000000000 0x4\n" GOOD, NULL, 1, 1 },
		{ HEAD INTO "0010 1ffffffff 1 R2 LDG.E 1 R2 4 1 0x7000000000 4\n" GOOD, NULL, 1, 1 },
		{ HEAD INTO "001` ffffffff 1 R2 LDG.E 1 R2 4 1 0x7000000000 4\n" GOOD, NULL, 1,
		  1 }, /* between digits and letters */
		{ HEAD "#BEGIN_TB\nthread block = 0,0\nwarp = 0\n" GOOD, NULL, 0, 3 },
		{ HEAD GOOD, NULL, 0, 1 }, /* no block before it */
		{ "-kernel name = k\n-grid dim = (1,1)\n", "line 2", 0, 0 },
		{ "-kernel name = k\n-kernel id = x\n", "line 2", 0, 0 },
		{ "-kernel name = k\n-shmem base_addr = 0xg\n" GOOD, "line 2", 0, 0 },
		{ HEAD INTO GOOD "-kernel name = k\n-block dim = 5\n", "line 11", 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct feed f = feed_text(rows[i].text);

		if (f.err != (rows[i].why ? -EBADMSG : 0) || f.nr != rows[i].nr ||
		    f.stats.malformed != rows[i].malformed)
			fail_msg("%zu: %d %s: %zu records, %zu malformed", i, f.err, f.why, f.nr,
				 (size_t)f.stats.malformed);
		if (rows[i].why)
			assert_non_null(strstr(f.why, rows[i].why));
		feed_free(&f);
	}
}

/* A million lines that are none: it gives up, and says where. */
static void test_accel_endless(void **state)
{
	char *text = malloc(200000);
	size_t n = (size_t)sprintf(text, "%s", HEAD INTO GOOD);
	struct feed f;

	(void)state;
	while (n < 190000)
		n += (size_t)sprintf(text + n, "no instruction\n");
	f = feed_bytes(text, n, NULL);
	assert_int_equal(f.err, -EBADMSG);
	assert_int_equal(f.nr, 1);
	assert_non_null(strstr(f.why, "line 1010: "));
	feed_free(&f);
	free(text);
}

static void test_not_a_trace(void **state)
{
	static char zeros[100000], noise[100000];
	struct feed f;

	(void)state;
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * i * 2654435761u >> 13);
	f = feed_bytes(noise, sizeof(noise), NULL);
	assert_int_equal(f.err, -EBADMSG);
	assert_non_null(strstr(f.why, "not a memory trace"));
	feed_free(&f);
	f = feed_bytes(zeros, sizeof(zeros), NULL);
	assert_int_equal(f.err, -EBADMSG);
	feed_free(&f);
	f = feed_text("");
	assert_int_equal(f.err, -EBADMSG);
	assert_string_equal(f.why, "trace: empty");
	feed_free(&f);
	f = feed_text("any text\nof any kind\n");
	assert_int_equal(f.err, -EBADMSG);
	assert_string_equal(f.why, "trace: not a memory trace: no line of NVBit's mem_trace in 2 lines of text");
	feed_free(&f);
	f = feed_file("tests/memtrace", NULL);
	assert_int_equal(f.err, -EISDIR);
	feed_free(&f);
	f = feed_file("/nonexistent/trace", NULL);
	assert_int_equal(f.err, -ENOENT);
	feed_free(&f);
}

/* The same records from a file and through a pipe, whatever the pieces are that it comes in. */
static void test_pipe(void **state)
{
	static const char *const files[] = { "nvbit-1.7.txt",	   "nvbit-1.5.txt",
					     "nvbit-1.3.txt",	   "big.raw",
					     "kernel-1.traceg",	   "kernel-3.traceg.gz",
					     "kernel-4.trace.zst", "kernel-2.traceg.xz" };
	static const size_t pieces[] = { 60000, 997, 64 };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(files) * ARRAY_SIZE(pieces); k++) {
		struct ttmon_mt_in_opts opts = { .live = true, .wait_ms = 0, .opcodes = TRACES "big.raw.opcodes" };
		size_t n, piece = pieces[k % ARRAY_SIZE(pieces)], nr, at = 0;
		const struct ttmon_mt_rec *recs;
		char path[200], why[400] = "", *p;
		struct feed whole, f = { 0 };
		int pv[2], r = 1;

		snprintf(path, sizeof(path), TRACES "%s", files[k / ARRAY_SIZE(pieces)]);
		p = slurp(path, &n);
		whole = feed_file(path, &opts);
		assert_int_equal(whole.err, 0);
		assert_int_equal(pipe2(pv, O_CLOEXEC), 0);
		assert_int_equal(ttmon_mt_in_open_fd(pv[0], "pipe", &opts, &f.in, why, sizeof(why)), 0);
		f.dict = ttmon_mt_in_dict(f.in);
		while (r > 0) {
			size_t m = MIN(n - at, piece);

			/* A batch is empty where no record is whole: that is no end. */
			r = ttmon_mt_in_next(f.in, &recs, &nr, why, sizeof(why));
			feed_add(&f, recs, nr);
			if (m)
				assert_int_equal(write(pv[1], p + at, m), m);
			at += m;
			if (at == n && pv[1] >= 0) {
				close(pv[1]);
				pv[1] = -1;
			}
		}
		assert_int_equal(r, 0);
		f.stats = *ttmon_mt_in_stats(f.in);
		assert_int_equal(f.nr, whole.nr);
		for (size_t i = 0; i < f.nr; i++) {
			assert_memory_equal(f.lanes[i], whole.lanes[i], sizeof(*f.lanes));
			assert_int_equal(f.recs[i].mask, whole.recs[i].mask);
			assert_int_equal(f.recs[i].launch, whole.recs[i].launch);
			assert_int_equal(f.recs[i].site, whole.recs[i].site);
		}
		assert_memory_equal(&f.stats, &whole.stats, sizeof(f.stats));
		close(pv[0]);
		feed_free(&f);
		feed_free(&whole);
		free(p);
	}
}

static size_t gzipped(const char *p, size_t n, char *out, size_t room)
{
	z_stream z = {
		.next_in = (Bytef *)(uintptr_t)p, .avail_in = (uInt)n, .next_out = (Bytef *)out, .avail_out = (uInt)room
	};

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return room - z.avail_out;
}

static void test_compressed(void **state)
{
	enum { ROOM = 1 << 20 };
	static char packed[ROOM];
	size_t n, whole, half;
	char *p = slurp(TRACES "nvbit-1.7.txt", &n);

	(void)state;
	for (unsigned int zstd = 0; zstd < 2; zstd++) {
		struct feed f;

		/* Two members: the line that the first ends in goes on in the second. */
		half = zstd ? ZSTD_compress(packed, ROOM, p, n / 2, 3) : gzipped(p, n / 2, packed, ROOM);
		whole = half + (zstd ? ZSTD_compress(packed + half, ROOM - half, p + n / 2, n - n / 2, 3)
				     : gzipped(p + n / 2, n - n / 2, packed + half, ROOM - half));
		f = feed_bytes(packed, whole, NULL);
		assert_int_equal(f.err, 0);
		assert_int_equal(f.nr, 72);
		assert_int_equal(f.stats.malformed, 0);
		assert_int_equal(f.stats.bytes, whole);
		assert_false(f.stats.cut);
		feed_free(&f);
		/* Cut: what came before stays. */
		f = feed_bytes(packed, whole - 50, NULL);
		assert_int_equal(f.err, 0);
		assert_true(f.stats.cut);
		assert_true(f.nr >= 30);
		feed_free(&f);
		f = feed_bytes(packed, 12, NULL);
		assert_int_equal(f.err, -EBADMSG);
		assert_string_equal(f.why, "trace: cut before its first byte of data");
		feed_free(&f);
		/* Damaged behind the first member. */
		memset(packed + half, 0x55, 200);
		f = feed_bytes(packed, whole, NULL);
		assert_int_equal(f.err, -EBADMSG);
		assert_non_null(strstr(f.why, zstd ? "damaged zstd data" : "damaged gzip data"));
		assert_true(f.nr >= 20);
		feed_free(&f);
		/* Zeros behind the last member of gzip are what a tape leaves. */
		if (!zstd) {
			whole = gzipped(p, n, packed, ROOM);
			memset(packed + whole, 0, 512);
			f = feed_bytes(packed, whole + 512, NULL);
			assert_int_equal(f.err, 0);
			assert_int_equal(f.nr, 72);
			feed_free(&f);
		}
	}
	free(p);
}

static void test_xz(void **state)
{
	size_t n;
	char *p = slurp(TRACES "kernel-2.traceg.xz", &n), *path = strdup(getenv("PATH"));
	struct feed f = feed_bytes(p, n - 60, NULL);

	(void)state;
	/* One block: nothing of it may come, or all but the end of the file. */
	assert_true(f.err ? f.err == -EBADMSG : f.stats.cut);
	feed_free(&f);
	setenv("PATH", "/nonexistent", 1);
	f = feed_bytes(p, n, NULL);
	setenv("PATH", path, 1);
	assert_int_equal(f.err, -ENOENT);
	assert_non_null(strstr(f.why, "compressed with xz, and the program xz cannot be run"));
	feed_free(&f);
	/* Freed in the middle: the child goes too. */
	f = feed_bytes(p, n, NULL);
	assert_int_equal(f.nr, 32);
	feed_free(&f);
	free(path);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_raw_damaged),
		cmocka_unit_test(test_raw_table),
		cmocka_unit_test(test_accel),
		cmocka_unit_test(test_accel_list),
		cmocka_unit_test(test_accel_bad),
		cmocka_unit_test(test_accel_endless),
		cmocka_unit_test(test_not_a_trace),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_compressed),
		cmocka_unit_test(test_xz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
