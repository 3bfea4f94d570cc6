// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_rec.c: a recording is read back exactly as it was written.
 *
 * The two pipeline calls that the reader makes are defined here: they store what they were given, in
 * order. (tests/fuzz/fuzz_rec.c runs the reader with the real pipeline.)
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmocka.h>

#include "daemon/io/files/rec.h"

/* What the reader fed: sizes and a sum over all bytes for records, times for advances. */
struct seen {
	uint64_t records, advances, bytes;
	uint64_t last_advance, last_ts;
	uint32_t crc; /* over the sequence of calls and all their data */
};

static struct seen *pipeline(struct ttmon_pipeline *p)
{
	return (struct seen *)p;
}

void ttmon_pipeline_feed(struct ttmon_pipeline *p, const void *rec, size_t size)
{
	struct seen *s = pipeline(p);

	assert_int_equal((uintptr_t)rec % 8, 0);
	s->records++;
	s->bytes += size;
	memcpy(&s->last_ts, rec, sizeof(s->last_ts));
	s->crc = (uint32_t)crc32(s->crc, (const Bytef *)"r", 1);
	s->crc = (uint32_t)crc32(s->crc, rec, (uInt)size);
}

void ttmon_pipeline_advance(struct ttmon_pipeline *p, uint64_t watermark_ns)
{
	struct seen *s = pipeline(p);

	s->advances++;
	s->last_advance = watermark_ns;
	s->crc = (uint32_t)crc32(s->crc, (const Bytef *)"a", 1);
	s->crc = (uint32_t)crc32(s->crc, (const Bytef *)&watermark_ns, sizeof(watermark_ns));
}

static char dir[64];
static char path[128];

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ttmon-test-rec.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/a.rec", dir);
	return 0;
}

static int tear_down(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

static void temp_path(char *buf, size_t n)
{
	snprintf(buf, n, "%s.tmp.%d", path, (int)getpid());
}

static uint64_t file_size(const char *name)
{
	struct stat st;

	assert_int_equal(stat(name, &st), 0);
	return (uint64_t)st.st_size;
}

static bool exists(const char *name)
{
	return access(name, F_OK) == 0;
}

static size_t slurp(const char *name, uint8_t *buf, size_t n)
{
	FILE *f = fopen(name, "re");
	size_t got;

	assert_non_null(f);
	got = fread(buf, 1, n, f);
	assert_int_equal(fclose(f), 0);
	return got;
}

static void spit(const char *name, const uint8_t *buf, size_t n)
{
	FILE *f = fopen(name, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(buf, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Record number i: between 24 and 1000 bytes that do not compress well. */
static size_t make_record(uint64_t *rec, uint64_t i)
{
	size_t words = 3 + i % 123;

	for (size_t k = 0; k < words; k++)
		rec[k] = (i * 1000 + k) * 0x9e3779b97f4a7c15ULL;
	rec[0] = i * 1000;
	return words * 8;
}

/* n records, an advance after every tenth. expect gets the same calls. */
static void write_some(struct ttmon_rec_writer *w, struct seen *expect, uint64_t n)
{
	uint64_t rec[128];

	for (uint64_t i = 1; i <= n; i++) {
		size_t size = make_record(rec, i);

		ttmon_rec_writer_record(w, rec, size);
		ttmon_pipeline_feed((struct ttmon_pipeline *)expect, rec, size);
		if (i % 10 == 0) {
			ttmon_rec_writer_advance(w, i * 1000);
			ttmon_pipeline_advance((struct ttmon_pipeline *)expect, i * 1000);
		}
	}
}

/* Makes a small complete file in buf. */
static size_t make_file(uint8_t *buf, size_t n, struct seen *expect)
{
	struct ttmon_rec_writer *w = NULL;

	assert_int_equal(ttmon_rec_writer_new(path, 4, &w), 0);
	write_some(w, expect, 100);
	assert_int_equal(ttmon_rec_writer_close(w, 123456), 0);
	return slurp(path, buf, n);
}

static int replay(struct seen *seen, uint64_t *end_ns, uint64_t *dropped)
{
	struct ttmon_rec_reader *r = NULL;
	int err;

	memset(seen, 0, sizeof(*seen));
	err = ttmon_rec_reader_open(path, &r);
	if (err) {
		assert_null(r);
		return err;
	}
	err = ttmon_rec_replay(r, (struct ttmon_pipeline *)seen, UINT64_MAX, end_ns, dropped);
	ttmon_rec_reader_free(r);
	return err;
}

static void test_round_trip(void **state)
{
	struct seen expect = { 0 }, seen;
	struct ttmon_rec_writer *w = NULL;
	struct ttmon_rec_reader *r = NULL;
	uint64_t end_ns = 0, dropped = 1;
	struct ttmon_rec_stats st;
	char tmp[160];

	(void)state;
	temp_path(tmp, sizeof(tmp));
	assert_int_equal(ttmon_rec_writer_new(path, 3, &w), 0);
	assert_true(exists(tmp));
	assert_false(exists(path));
	write_some(w, &expect, 5000);
	ttmon_rec_writer_stats(w, &st);
	assert_int_equal(st.records, 5000);
	assert_int_equal(st.dropped, 0);
	assert_int_equal(st.raw_bytes, expect.bytes + 5000 * 4 + expect.advances * 16);
	assert_int_equal(ttmon_rec_writer_close(w, 5000001), 0);
	assert_false(exists(tmp));

	assert_int_equal(ttmon_rec_reader_open(path, &r), 0);
	assert_int_equal(ttmon_rec_reader_cpus(r), 3);
	ttmon_rec_reader_free(r);
	assert_int_equal(replay(&seen, &end_ns, &dropped), 0);
	assert_memory_equal(&seen, &expect, sizeof(seen));
	assert_int_equal(end_ns, 5000001);
	assert_int_equal(dropped, 0);
}

static void test_empty(void **state)
{
	struct ttmon_rec_writer *w = NULL;
	uint64_t end_ns = 1, dropped = 1;
	struct seen seen;

	(void)state;
	assert_int_equal(ttmon_rec_writer_new(path, 1, &w), 0);
	assert_int_equal(ttmon_rec_writer_close(w, 77), 0);
	assert_int_equal(replay(&seen, &end_ns, &dropped), 0);
	assert_int_equal(seen.records + seen.advances, 0);
	assert_int_equal(end_ns, 77);
	assert_int_equal(dropped, 0);
}

/*
 * More than all buffers hold, at full speed: accepted records come back, others are counted, and the
 * sum is complete.
 */
static void test_overrun(void **state)
{
	uint64_t rec[1024], end_ns = 0, dropped = 0, attempts = 12000;
	struct ttmon_rec_writer *w = NULL;
	struct ttmon_rec_stats st;
	struct seen seen;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(rec); k++)
		rec[k] = k * 0x9e3779b97f4a7c15ULL;
	assert_int_equal(ttmon_rec_writer_new(path, 1, &w), 0);
	for (uint64_t i = 0; i < attempts; i++) {
		rec[0] = i;
		ttmon_rec_writer_record(w, rec, sizeof(rec));
		ttmon_rec_writer_advance(w, i);
	}
	ttmon_rec_writer_stats(w, &st);
	assert_int_equal(st.records + st.dropped, attempts);
	/* 8 KiB records, 16 buffers of 4 MiB: at least this many were accepted without any write. */
	assert_true(st.records >= 8000);
	assert_int_equal(ttmon_rec_writer_close(w, attempts), 0);
	assert_int_equal(replay(&seen, &end_ns, &dropped), 0);
	assert_int_equal(seen.records, st.records);
	assert_int_equal(dropped, st.dropped);
}

/*
 * A second of the stream is written although the buffer is not full; a kill loses no more than that.
 */
static void test_flush_by_time(void **state)
{
	struct ttmon_rec_writer *w = NULL;
	uint64_t end_ns = 0, dropped = 0;
	struct ttmon_rec_stats st;
	struct seen expect = { 0 }, seen;

	(void)state;
	assert_int_equal(ttmon_rec_writer_new(path, 1, &w), 0);
	write_some(w, &expect, 20);
	ttmon_rec_writer_stats(w, &st);
	assert_int_equal(st.file_bytes, sizeof(struct ttmon_rec_file));
	ttmon_rec_writer_advance(w, 10000 + NSEC_PER_SEC);
	for (int tries = 0; tries < 100000000 && st.file_bytes == sizeof(struct ttmon_rec_file); tries++) {
		sched_yield();
		ttmon_rec_writer_stats(w, &st);
	}
	assert_true(st.file_bytes > sizeof(struct ttmon_rec_file));
	/* The file as a crash leaves it. */
	{
		static uint8_t bytes[1 << 16];
		char tmp[160];
		size_t n;

		temp_path(tmp, sizeof(tmp));
		n = slurp(tmp, bytes, sizeof(bytes));
		assert_int_equal(n, st.file_bytes);
		spit(path, bytes, n);
	}
	assert_int_equal(replay(&seen, &end_ns, &dropped), -ENODATA);
	assert_int_equal(seen.records, 20);
	assert_int_equal(end_ns, 10000 + NSEC_PER_SEC);
	assert_int_equal(ttmon_rec_writer_close(w, 0), 0);
	assert_int_equal(replay(&seen, &end_ns, &dropped), 0);
}

/* Sizes that the format does not allow. */
static void test_odd_records(void **state)
{
	static const uint64_t rec[TTMON_RECORD_MAX / 8 + 1];
	static const size_t odd[] = { 0, 1, 7, 25, TTMON_RECORD_MAX + 8 };
	struct ttmon_rec_writer *w = NULL;
	uint64_t end_ns = 0, dropped = 0;
	struct seen seen;

	(void)state;
	assert_int_equal(ttmon_rec_writer_new(path, 1, &w), 0);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		ttmon_rec_writer_record(w, rec, odd[i]);
	ttmon_rec_writer_record(w, rec, TTMON_RECORD_MAX);
	ttmon_rec_writer_record(w, rec, 8);
	assert_int_equal(ttmon_rec_writer_close(w, 0), 0);
	assert_int_equal(replay(&seen, &end_ns, &dropped), 0);
	assert_int_equal(seen.records, 2);
	assert_int_equal(seen.bytes, TTMON_RECORD_MAX + 8);
	assert_int_equal(dropped, ARRAY_SIZE(odd));
}

/*
 * A full disk, simulated by the file size limit: the error is reported, the file is intact up to there
 * and says what is missing.
 */
static void test_disk_full(void **state)
{
	uint64_t rec[1024], end_ns = 0, dropped = 0, attempts = 3000, x = 88172645463325252ULL;
	struct ttmon_rec_writer *w = NULL;
	struct rlimit old, small;
	struct seen seen;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(rec); k++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		rec[k] = x;
	}
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 100000;
	assert_int_equal(ttmon_rec_writer_new(path, 1, &w), 0);
	/* 3 records: one small block that fits, written because of its age. */
	for (int i = 0; i < 3; i++)
		ttmon_rec_writer_record(w, rec, sizeof(rec));
	ttmon_rec_writer_advance(w, 1);
	ttmon_rec_writer_advance(w, 1 + NSEC_PER_SEC);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (uint64_t i = 3; i < attempts; i++) {
		/* Records that do not repeat, so that deflate does not get them under the limit. */
		for (size_t k = 0; k < ARRAY_SIZE(rec); k++)
			rec[k] = rec[k] * 6364136223846793005ULL + 1442695040888963407ULL;
		ttmon_rec_writer_record(w, rec, sizeof(rec));
	}
	assert_int_equal(ttmon_rec_writer_close(w, 99), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(file_size(path) <= 100000);
	assert_int_equal(replay(&seen, &end_ns, &dropped), 0);
	assert_int_equal(seen.records, 3);
	assert_int_equal(dropped, attempts - 3);
	assert_int_equal(end_ns, 99);
}

/* Not even the END block can be written: the old file keeps the name. */
static void test_disk_full_at_once(void **state)
{
	struct ttmon_rec_writer *w = NULL;
	struct rlimit old, small;
	uint8_t bytes[16];
	char tmp[160];

	(void)state;
	temp_path(tmp, sizeof(tmp));
	spit(path, (const uint8_t *)"old", 3);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = sizeof(struct ttmon_rec_file) + 8;
	assert_int_equal(ttmon_rec_writer_new(path, 1, &w), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(ttmon_rec_writer_close(w, 99), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(slurp(path, bytes, sizeof(bytes)), 3);
	assert_int_equal(file_size(tmp), sizeof(struct ttmon_rec_file));
}

static void test_refused_targets(void **state)
{
	struct ttmon_rec_writer *w = NULL;
	char buf[160];

	(void)state;
	assert_int_equal(ttmon_rec_writer_new(dir, 1, &w), -EISDIR);
	assert_int_equal(ttmon_rec_writer_new("/dev/null", 1, &w), -EINVAL);
	snprintf(buf, sizeof(buf), "%s/none/a.rec", dir);
	assert_int_equal(ttmon_rec_writer_new(buf, 1, &w), -ENOENT);
	assert_null(w);
	assert_int_equal(ttmon_rec_writer_close(NULL, 0), 0);
}

/* The link stays, its target is replaced. */
static void test_symlink(void **state)
{
	struct ttmon_rec_writer *w = NULL;
	char link_path[160];
	struct stat st;

	(void)state;
	snprintf(link_path, sizeof(link_path), "%s/link", dir);
	spit(path, (const uint8_t *)"old", 3);
	assert_int_equal(symlink(path, link_path), 0);
	assert_int_equal(ttmon_rec_writer_new(link_path, 1, &w), 0);
	assert_int_equal(ttmon_rec_writer_close(w, 0), 0);
	assert_int_equal(lstat(link_path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_true(file_size(path) > sizeof(struct ttmon_rec_file));
}

static void test_not_a_recording(void **state)
{
	struct ttmon_rec_file file = {
		.version = TTMON_REC_VERSION, .bom = TTMON_REC_BOM, .nr_cpus = 1, .header_len = sizeof(file)
	};
	uint64_t end_ns, dropped;
	struct seen seen;

	(void)state;
	assert_int_equal(replay(&seen, &end_ns, &dropped), -ENOENT);
	spit(path, (const uint8_t *)"TTMONRE", 7);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	memcpy(file.magic, "TTMONREX", 8);
	spit(path, (uint8_t *)&file, sizeof(file));
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	memcpy(file.magic, TTMON_REC_MAGIC, 8);
	file.version++;
	spit(path, (uint8_t *)&file, sizeof(file));
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EPROTONOSUPPORT);
	file.version--;
	file.bom = __builtin_bswap32(file.bom);
	spit(path, (uint8_t *)&file, sizeof(file));
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EPROTONOSUPPORT);
	file.bom = TTMON_REC_BOM;
	file.nr_cpus = 0;
	spit(path, (uint8_t *)&file, sizeof(file));
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	file.nr_cpus = 1;
	file.header_len = sizeof(file) - 1;
	spit(path, (uint8_t *)&file, sizeof(file));
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	file.header_len = 0xffffffff;
	spit(path, (uint8_t *)&file, sizeof(file));
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	/* A head alone is a recording that was cut off at once. */
	file.header_len = sizeof(file);
	spit(path, (uint8_t *)&file, sizeof(file));
	assert_int_equal(replay(&seen, &end_ns, &dropped), -ENODATA);
}

/* Both heads, the END block, and some bytes between. */
static bool worth_trying(size_t at, size_t n)
{
	return at < 100 || at > n - 80 || at % 997 == 0;
}

/*
 * Wherever a complete file is cut: never more is read than was in it, and the right error is returned.
 */
static void test_cut_everywhere(void **state)
{
	static uint8_t bytes[1 << 17];
	struct seen expect = { 0 }, seen;
	uint64_t end_ns, dropped;
	size_t n, fed = 0;

	(void)state;
	n = make_file(bytes, sizeof(bytes), &expect);
	assert_int_equal(expect.records, 100);
	assert_true(n < sizeof(bytes));
	for (size_t len = 0; len < n; len++) {
		if (!worth_trying(len, n))
			continue;
		spit(path, bytes, len);
		assert_int_equal(replay(&seen, &end_ns, &dropped),
				 len < sizeof(struct ttmon_rec_file) ? -EBADMSG : -ENODATA);
		assert_true(seen.records == 0 || seen.crc == expect.crc);
		if (seen.records) {
			assert_int_equal(end_ns, expect.last_advance);
			fed++;
		}
	}
	assert_true(fed > 0);
}

/* Any single flipped bit is noticed, and at most whole blocks are fed before it. */
static void test_flip_everywhere(void **state)
{
	static uint8_t bytes[1 << 17];
	struct seen expect = { 0 }, seen;
	uint64_t end_ns, dropped;
	size_t n;

	(void)state;
	n = make_file(bytes, sizeof(bytes), &expect);
	for (size_t at = 0; at < n; at++) {
		if (!worth_trying(at, n))
			continue;
		/* nr_cpus and the padding of the head may hold anything. */
		if (at >= offsetof(struct ttmon_rec_file, nr_cpus) && at < sizeof(struct ttmon_rec_file))
			continue;
		bytes[at] ^= 0x10;
		spit(path, bytes, n);
		assert_int_not_equal(replay(&seen, &end_ns, &dropped), 0);
		assert_true(seen.records == 0 || seen.crc == expect.crc);
		bytes[at] ^= 0x10;
	}
}

/*
 * Writes a valid head, one block with these raw bytes and the given lengths, and an END block if `end`
 * is set.
 */
static void forge(const void *raw, size_t raw_len, uint32_t told_len, const struct ttmon_rec_end *end)
{
	struct ttmon_rec_file file = {
		.version = TTMON_REC_VERSION, .bom = TTMON_REC_BOM, .nr_cpus = 1, .header_len = sizeof(file)
	};
	uLongf comp_len = compressBound(raw_len);
	uint8_t *comp = malloc(comp_len);
	struct ttmon_rec_block head;
	FILE *f = fopen(path, "we");

	assert_non_null(comp);
	assert_non_null(f);
	memcpy(file.magic, TTMON_REC_MAGIC, 8);
	assert_int_equal(fwrite(&file, sizeof(file), 1, f), 1);
	assert_int_equal(compress2(comp, &comp_len, raw, raw_len, 1), Z_OK);
	head = (struct ttmon_rec_block){ TTMON_REC_DATA, told_len, (uint32_t)comp_len,
					 (uint32_t)crc32(0, comp, (uInt)comp_len) };
	assert_int_equal(fwrite(&head, sizeof(head), 1, f), 1);
	assert_int_equal(fwrite(comp, comp_len, 1, f), 1);
	if (end) {
		comp_len = compressBound(raw_len);
		assert_int_equal(compress2(comp, &comp_len, (const Bytef *)end, sizeof(*end), 1), Z_OK);
		head = (struct ttmon_rec_block){ TTMON_REC_END, sizeof(*end), (uint32_t)comp_len,
						 (uint32_t)crc32(0, comp, (uInt)comp_len) };
		assert_int_equal(fwrite(&head, sizeof(head), 1, f), 1);
		assert_int_equal(fwrite(comp, comp_len, 1, f), 1);
	}
	assert_int_equal(fclose(f), 0);
	free(comp);
}

/* Blocks with a valid checksum and invalid contents. */
static void test_forged(void **state)
{
	static uint8_t big[TTMON_REC_RAW_MAX + 8];
	struct ttmon_rec_end end = { .records = 1, .dropped = 5, .end_ns = 9 };
	uint64_t end_ns = 0, dropped = 0;
	struct seen seen;
	struct {
		uint32_t head;
		uint64_t body[3];
	} __attribute__((packed)) one = { .head = 24, .body = { 42, 2, 3 } };
	struct {
		uint32_t head, zero;
		uint64_t watermark;
	} adv = { .watermark = 7 };

	(void)state;
	forge(&one, sizeof(one), sizeof(one), &end);
	assert_int_equal(replay(&seen, &end_ns, &dropped), 0);
	assert_int_equal(seen.records, 1);
	assert_int_equal(dropped, 5);
	assert_int_equal(end_ns, 9);
	/* There is no watermark in it: the time of the last record is used to finish. */
	forge(&one, sizeof(one), sizeof(one), NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -ENODATA);
	assert_int_equal(end_ns, 42);

	/* The totals do not fit the file: a block was removed. */
	end.records = 2;
	forge(&one, sizeof(one), sizeof(one), &end);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	assert_int_equal(seen.records, 1);

	/*
	 * Lengths: larger than the data, smaller, a decompression bomb, a record past the end, not a multiple
	 * of 8, too long for a record.
	 */
	forge(&one, sizeof(one), sizeof(one) + 1, NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	forge(&one, sizeof(one), sizeof(one) - 1, NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	forge(big, sizeof(big), sizeof(big), NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	forge(big, sizeof(big), 16, NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	assert_int_equal(seen.records + seen.advances, 0);
	forge(&one, 0, 0, NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	forge(&one, 3, 3, NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	one.head = 32;
	forge(&one, sizeof(one), sizeof(one), NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	one.head = 20;
	forge(&one, sizeof(one), sizeof(one), NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	one.head = TTMON_RECORD_MAX + 8;
	memcpy(big, &one, sizeof(one));
	forge(big, 2 * TTMON_RECORD_MAX, 2 * TTMON_RECORD_MAX, NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	assert_int_equal(seen.records, 0);

	forge(&adv, sizeof(adv), sizeof(adv), NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -ENODATA);
	assert_int_equal(seen.last_advance, 7);
	forge(&adv, sizeof(adv) - 8, sizeof(adv) - 8, NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	adv.zero = 1;
	forge(&adv, sizeof(adv), sizeof(adv), NULL);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	assert_int_equal(seen.advances, 0);
}

static void test_trailing(void **state)
{
	static uint8_t bytes[1 << 17];
	struct seen expect = { 0 }, seen;
	uint64_t end_ns, dropped;
	size_t n;

	(void)state;
	n = make_file(bytes, sizeof(bytes) - 1, &expect);
	bytes[n] = 0;
	spit(path, bytes, n + 1);
	assert_int_equal(replay(&seen, &end_ns, &dropped), -EBADMSG);
	assert_int_equal(seen.crc, expect.crc);
	assert_int_equal(end_ns, expect.last_advance);
}

/*
 * The youngest of the files that killed runs have left stays, under a name of its own; a file that
 * another process is writing is not touched.
 */
static void test_left_over(void **state)
{
	char old[160], young[160], busy[160], other[160], cut[160];
	const struct timespec then[2] = { { 1000, 0 }, { 1000, 0 } };
	struct ttmon_rec_writer *w = NULL;
	uint8_t buf[8];
	int fd;

	(void)state;
	snprintf(old, sizeof(old), "%s.tmp.4000001", path);
	snprintf(young, sizeof(young), "%s.tmp.4000002", path);
	snprintf(busy, sizeof(busy), "%s.tmp.4000003", path);
	snprintf(other, sizeof(other), "%s.tmp.4000004x", path);
	snprintf(cut, sizeof(cut), "%s.cut", path);
	spit(old, (const uint8_t *)"old", 3);
	spit(young, (const uint8_t *)"young", 5);
	spit(busy, (const uint8_t *)"busy", 4);
	spit(other, (const uint8_t *)"other", 5);
	assert_int_equal(utimensat(AT_FDCWD, old, then, 0), 0);
	fd = open(busy, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(ttmon_rec_writer_new(path, 1, &w), 0);
	assert_false(exists(old));
	assert_false(exists(young));
	assert_true(exists(busy) && exists(other));
	assert_int_equal(slurp(cut, buf, sizeof(buf)), 5);
	assert_memory_equal(buf, "young", 5);
	assert_int_equal(ttmon_rec_writer_close(w, 1), 0);
	assert_true(exists(path));
	close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(test_round_trip),  T(test_empty),	      T(test_overrun),		 T(test_flush_by_time),
		T(test_odd_records), T(test_disk_full),	      T(test_disk_full_at_once), T(test_refused_targets),
		T(test_symlink),     T(test_not_a_recording), T(test_cut_everywhere),	 T(test_flip_everywhere),
		T(test_forged),	     T(test_trailing),	      T(test_left_over),
	};

	return cmocka_run_group_tests_name("rec", tests, NULL, NULL);
}
