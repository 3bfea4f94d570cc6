// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_in_known.c: inactive lanes found by known allocations, allocations from a kernelslist.g,
 * launches by number, and the rows of ldmatrix in raw records and in Accel-Sim's.
 */
#include <sys/inotify.h>
#include <sys/stat.h>

#include "memtrace/read/src.h"
#include "memtrace/model/map.h"
#include "tests/unit/feed/mt_feed.h"

#define A   0x710c9b000000
#define B   0x720000000000 /* far from A */
#define MIB (1ull << 20)

static void map_freep(struct ttmon_mt_map **map)
{
	ttmon_mt_map_free(*map);
}
#define _cleanup_map_ _cleanup_(map_freep)

static struct ttmon_mt_map *new_map(const uint64_t (*ranges)[2], size_t n)
{
	struct ttmon_mt_map *map = NULL;

	assert_int_equal(ttmon_mt_map_new(&map), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(ttmon_mt_map_add(map, &(struct ttmon_mt_alloc){ .addr = ranges[i][0],
										 .size = ranges[i][1],
										 .alloc_ns = 1,
										 .free_ns = UINT64_MAX,
										 .mem = TTMON_MT_MEM_DEVICE }),
				 0);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	return map;
}

/*
 * A line of an access: the first `on` lanes go on from base, the others have the value of a lane that
 * is off.
 */
static size_t put_access(char *p, const char *op, uint64_t base, unsigned int on, uint64_t off)
{
	size_t n = (size_t)sprintf(
		p, "MEMTRACE: CTX 0x00006403c12bdf10 - grid_launch_id 0 - CTA 0,0,0 - warp 1 - %s - ", op);

	for (unsigned int i = 0; i < TTMON_MT_LANES; i++)
		n += (size_t)sprintf(p + n, "0x%016llx ", (unsigned long long)(i < on ? base + 4 * (uint64_t)i : off));
	return n + (size_t)sprintf(p + n, "\n");
}

#define LAUNCH(id)                                                                                                 \
	"MEMTRACE: CTX 0x00006403c12bdf10 - LAUNCH - Kernel pc 0x0000000000000100 - Kernel name k(float*) - grid " \
	"launch "                                                                                                  \
	"id " #id " - grid size 1,1,1 - block size 256,1,1 - nregs 8 - shmem 0 - cuda stream id 0\n"

static const struct {
	const char *op;
	uint64_t base;
	unsigned int on;
	uint64_t off;
	uint32_t mask, blind; /* with allocations; without */
} lines[] = {
	{ "LDG.E", A, 32, 0, UINT32_MAX, UINT32_MAX },
	{ "LDG.E", A, 20, A + 16 * MIB, 0xfffff, UINT32_MAX }, /* stale, and not far */
	{ "LDG.E", A + MIB - 64, 32, 0, 0xffff, UINT32_MAX },  /* at the end of it */
	{ "STG.E", A, 12, B + 4, UINT32_MAX, UINT32_MAX },     /* far, but in another one */
	{ "STG.E", A, 24, B + 4, UINT32_MAX, 0xffffff },
	{ "LDG.E", A, 5, 0, 0x1f, 0x1f },
	{ "LDG.E", A + 32 * MIB, 32, 0, UINT32_MAX, UINT32_MAX }, /* no lane is in any allocation: not known */
	{ "LDG.E", A + 32 * MIB, 3, 0, 7, 7 },
	{ "LD.E", A, 31, 0x7f6ef4000100, 0x7fffffff, 0x7fffffff },
	{ "LDS", 0x100, 32, 0, UINT32_MAX, UINT32_MAX }, /* offsets */
	{ "ATOMG.E.ADD", A + 256, 1, A + 2 * MIB, 1, UINT32_MAX },
};

static void known_lanes(void **state)
{
	static const uint64_t ranges[][2] = { { A, MIB }, { B, MIB } };
	_cleanup_map_ struct ttmon_mt_map *map = new_map(ranges, ARRAY_SIZE(ranges));
	static char text[32 * 1024];
	size_t n = (size_t)sprintf(text, LAUNCH(0));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		n += put_access(text + n, lines[i].op, lines[i].base, lines[i].on, lines[i].off);
	/*
	 * The last line of all goes the slow way: more of them, so that all that are looked at go the fast one
	 * too.
	 */
	for (size_t i = 0; i < 2; i++)
		n += put_access(text + n, "LDG.E", A, 32, 0);
	for (unsigned int blind = 0; blind < 2; blind++) {
		struct ttmon_mt_in_opts opts = { .known = blind ? NULL : ttmon_mt_map_known, .known_ctx = map };
		struct feed f = feed_bytes(text, n, &opts);
		uint64_t lanes = 0, records = 0;

		assert_int_equal(f.err, 0);
		assert_int_equal(f.nr, ARRAY_SIZE(lines) + 2);
		for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
			uint32_t gone = lines[i].blind & ~lines[i].mask;

			if (f.recs[i].mask != (blind ? lines[i].blind : lines[i].mask))
				fail_msg("%u, line %zu: %x", blind, i, f.recs[i].mask);
			assert_int_equal(f.recs[i].flags & TTMON_MT_INFERRED, TTMON_MT_INFERRED);
			lanes += blind ? 0 : (uint64_t)__builtin_popcount(gone);
			records += !blind && gone;
		}
		assert_int_equal(f.stats.outside, records);
		assert_int_equal(f.stats.outside_lanes, lanes);
		feed_free(&f);
	}
}

static void put_raw(char *p, uint64_t launch, int32_t op, uint64_t base, uint64_t step, unsigned int on, uint64_t off)
{
	const int32_t head[5] = { 0, 0, 0, 1, op };

	memset(p, 0, 288);
	memcpy(p, &launch, 8);
	memcpy(p + 8, head, sizeof(head));
	for (unsigned int i = 0; i < TTMON_MT_LANES; i++) {
		uint64_t v = i < on ? base + step * i : off;

		memcpy(p + 32 + 8 * (size_t)i, &v, 8);
	}
}

static char *opcodes(const char *text)
{
	static char path[32];
	int fd;

	strcpy(path, "/tmp/ttmon-test-mt-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) > 0);
	close(fd);
	return path;
}

static void raw_records(void **state)
{
	static const uint64_t ranges[][2] = { { A, MIB } };
	_cleanup_map_ struct ttmon_mt_map *map = new_map(ranges, 1);
	struct ttmon_mt_in_opts opts = { .known = ttmon_mt_map_known, .known_ctx = map };
	static char bytes[16 * 288];
	struct feed f;

	(void)state;
	opts.opcodes = opcodes("0 LDG.E\n1 STS\n");
	for (unsigned int i = 0; i < 16; i++)
		put_raw(bytes + i * 288, i / 8, i % 4 == 3, i % 4 == 3 ? 0x80 : A + 128 * i, 4, i % 4 == 1 ? 30 : 32,
			A + 99 * MIB);
	f = feed_bytes(bytes, sizeof(bytes), &opts);
	unlink(opts.opcodes);
	assert_int_equal(f.nr, 16);
	for (size_t i = 0; i < f.nr; i++)
		assert_int_equal(f.recs[i].mask, i % 4 == 1 ? 0x3fffffff : UINT32_MAX);
	assert_int_equal(f.stats.outside, 4);
	assert_int_equal(f.stats.outside_lanes, 8);
	/* Its ids count launches. */
	assert_int_equal(ttmon_mt_when_of(feed_launch(&f, 15), 7).nth, 1);
	assert_int_equal(ttmon_mt_when_of(feed_launch(&f, 15), 7).pid, 7);
	feed_free(&f);
}

/* ---- ldmatrix ---- */

static const struct {
	const char *op;
	uint32_t mask;
	unsigned int kind;
} rows[] = {
	{ "LDSM.16.M88", 0xff, TTMON_MT_LDMATRIX },	    { "LDSM.16.M88.2", 0xffff, TTMON_MT_LDMATRIX },
	{ "LDSM.16.M88.4", UINT32_MAX, TTMON_MT_LDMATRIX }, { "LDSM.16.MT88.4", UINT32_MAX, TTMON_MT_LDMATRIX },
	{ "STSM.16.M88.2", 0xffff, TTMON_MT_STMATRIX },
};

static void check_row(const struct feed *f, size_t i, size_t row, uint64_t base)
{
	const struct ttmon_mt_rec *r = &f->recs[i];

	assert_string_equal(feed_op(f, i), rows[row].op);
	assert_int_equal(f->dict->sites[r->site].kind, rows[row].kind);
	assert_int_equal(r->space, TTMON_MT_SHARED);
	assert_int_equal(r->width, 16);
	assert_int_equal(r->mask, rows[row].mask);
	assert_int_equal(r->base, base);
	assert_int_equal(r->stride, 272);
}

static void ldmatrix_raw(void **state)
{
	char table[256];
	static char bytes[10 * 288];
	struct ttmon_mt_in_opts opts = { 0 };
	size_t n = 0;
	struct feed f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		n += (size_t)sprintf(table + n, "%zu %s\n", i, rows[i].op);
	opts.opcodes = opcodes(table);
	/* Lanes that give no row have whatever they have, here the address of another buffer. */
	for (unsigned int i = 0; i < 10; i++)
		put_raw(bytes + i * 288, 0, (int32_t)i % 5, 0x400, 272,
			(unsigned int)__builtin_popcount(rows[i % 5].mask), 0x9000);
	f = feed_bytes(bytes, sizeof(bytes), &opts);
	unlink(opts.opcodes);
	assert_int_equal(f.err, 0);
	assert_int_equal(f.nr, 10);
	assert_int_equal(f.stats.malformed + f.stats.unknown_op, 0);
	for (size_t i = 0; i < f.nr; i++)
		check_row(&f, i, i % 5, 0x400);
	feed_free(&f);
}

static void ldmatrix_accel(void **state)
{
	char text[4096];
	size_t n =
		(size_t)sprintf(text, "-kernel name = k\n-kernel id = 3\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n"
				      "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = 6\n");
	struct feed f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		n += (size_t)sprintf(text + n, "%04zx ffffffff 1 R4 %s 1 R2 16 1 0x800 272\n", 16 * i, rows[i].op);
	/* Its rows are lanes that are off: nothing is read. */
	sprintf(text + n, "0100 ffff0000 1 R4 LDSM.16.M88.2 1 R2 16 1 0x800 272\n");
	f = feed_text(text);
	assert_int_equal(f.err, 0);
	assert_int_equal(f.nr, ARRAY_SIZE(rows));
	assert_int_equal(f.stats.malformed, 0);
	for (size_t i = 0; i < f.nr; i++)
		check_row(&f, i, i, 0x800);
	assert_int_equal(ttmon_mt_when_of(feed_launch(&f, 0), 0).nth, 2);
	feed_free(&f);
}

/* ---- launches by number ---- */

#define BANNER "------------- NVBit (NVidia Binary Instrumentation Tool v1.7.5) Loaded --------------\n"

static void numbers(void **state)
{
	static char text[8192];
	size_t n;
	struct feed f;

	(void)state;
	/* Cut at the beginning: ids count from the program's beginning all the same. */
	n = (size_t)sprintf(text, LAUNCH(41) LAUNCH(42));
	n += put_access(text + n, "LDG.E", A, 32, 0);
	f = feed_bytes(text, n, NULL);
	assert_int_equal(ttmon_mt_when_of(&f.dict->launches[0], 0).nth, 41);
	assert_int_equal(ttmon_mt_when_of(&f.dict->launches[1], 0).nth, 42);
	/* Of the record that names launch 0, which is not described. */
	assert_int_equal(ttmon_mt_when_of(feed_launch(&f, 0), 0).nth, 0);
	feed_free(&f);
	/* A number that comes again is another process's. */
	n = (size_t)sprintf(text, LAUNCH(0) LAUNCH(1) LAUNCH(1) LAUNCH(2));
	n += put_access(text + n, "LDG.E", A, 32, 0);
	f = feed_bytes(text, n, NULL);
	assert_int_equal(f.dict->nr_launches, 4);
	assert_int_equal(ttmon_mt_when_of(&f.dict->launches[2], 0).nth, TTMON_MT_NO_NTH);
	assert_int_equal(ttmon_mt_when_of(&f.dict->launches[3], 0).nth, TTMON_MT_NO_NTH);
	feed_free(&f);
	/* So is what follows another banner, though its first number is a new one. */
	n = (size_t)sprintf(text, BANNER LAUNCH(0) LAUNCH(1) BANNER LAUNCH(2));
	n += put_access(text + n, "LDG.E", A, 32, 0);
	f = feed_bytes(text, n, NULL);
	assert_int_equal(f.dict->nr_launches, 3);
	assert_int_equal(ttmon_mt_when_of(&f.dict->launches[1], 0).nth, 1);
	assert_int_equal(ttmon_mt_when_of(&f.dict->launches[2], 0).nth, TTMON_MT_NO_NTH);
	feed_free(&f);
	assert_int_equal(ttmon_mt_when_of(NULL, 5).nth, TTMON_MT_NO_NTH);
}

/* ---- a list ---- */

static uint64_t left_out;

static int allocs_of(const char *text, size_t n, struct ttmon_mt_map *map)
{
	char path[] = "/tmp/ttmon-test-mt-XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0 && write(fd, text, n) == (ssize_t)n);
	close(fd);
	r = ttmon_mt_in_allocs(path, map, &left_out);
	unlink(path);
	return r;
}

struct want {
	const char *name;
	uint64_t addr, size, made, freed, copies, d2h;
};

static void check_list(const char *text, const struct want *want, size_t n)
{
	_cleanup_map_ struct ttmon_mt_map *map = NULL;
	const struct ttmon_mt_alloc *a;
	size_t nr;

	assert_int_equal(ttmon_mt_map_new(&map), 0);
	assert_int_equal(allocs_of(text, strlen(text), map), n);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	a = ttmon_mt_map_get(map, &nr);
	assert_int_equal(nr, n);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(a[i].name, want[i].name);
		assert_int_equal(a[i].addr, want[i].addr);
		assert_int_equal(a[i].size, want[i].size);
		assert_int_equal(a[i].made_nth, want[i].made);
		assert_int_equal(a[i].freed_nth, want[i].freed);
		assert_int_equal(a[i].copies, want[i].copies);
		assert_int_equal(a[i].d2h_bytes, want[i].d2h);
		assert_int_equal(a[i].mem, TTMON_MT_MEM_DEVICE);
	}
}

#define NEVER TTMON_MT_NO_NTH

static void list_of_copies(void **state)
{
	static const struct want want[] = {
		{ "MemcpyHtoD 1", 0x10000, 0x1000, 0, NEVER, 2, 0 },
		{ "MemcpyHtoD 2", 0x20000, 0x1800, 0, NEVER, 3, 0 }, /* in two pieces that overlap, and again */
		{ "MemcpyHtoD 4", 0x11000, 0x1000, 1, NEVER, 1, 0 }, /* beside the first */
	};

	(void)state;
	check_list("MemcpyHtoD,0x0000000000010000,4096\nMemcpyHtoD,0x20000,4096\nMemcpyHtoD,0x20800,4096\n"
		   "kernel-1.traceg\n"
		   "MemcpyHtoD,0x11000,4096\r\nMemcpyHtoD,0x10100,16\nMemcpyHtoD,0x20000,1\nkernel-2.traceg.xz\n"
		   "MemcpyHtoD,0x90000,64\n",
		   want, ARRAY_SIZE(want));
}

/*
 * A copy that joins two makes one of them, which was there when the older one was, though that is the
 * one behind.
 */
static void list_of_joined(void **state)
{
	static const struct want joined[] = { { "MemcpyHtoD 1", 0x1f000, 0x2000, 0, NEVER, 4, 0 } };
	static const struct want late[] = { { "MemcpyHtoD 1", 0x1f000, 0x2000, 1, NEVER, 4, 0 } };

	(void)state;
	check_list("MemcpyHtoD,0x20000,4096\nkernel-1.traceg\nMemcpyHtoD,0x1f000,4096\nkernel-2.traceg\n"
		   "MemcpyHtoD,0x1f800,4096\nMemcpyHtoD,0x20800,16\nkernel-3.traceg\n",
		   joined, 1);
	/* Before the kernel that determines the time. */
	check_list("kernel-1.traceg\nMemcpyHtoD,0x20000,4096\nMemcpyHtoD,0x1f000,4096\nMemcpyHtoD,0x1f800,4096\n"
		   "MemcpyHtoD,0x20800,16\nkernel-2.traceg\n",
		   late, 1);
}

static void list_of_allocations(void **state)
{
	static const struct want want[] = {
		{ "cudaMalloc 1", 0x10000, 0x1000, 4, 5, 1, 0 },
		{ "cudaMalloc 2", 0x10000, 0x800, 5, NEVER, 1, 128 },
		{ "MemcpyHtoD 2", 0x10800, 0x100, 6, NEVER, 1, 0 },
	};

	(void)state;
	check_list(
		"cudaMalloc,0x10000,4096\nMemcpyHtoD,0x10000,4096\nkernel-5-ctx_0x55aa.traceg\ncudaFree,0x10000\n"
		"cudaMalloc,0x10000,2048\nkernel-6-ctx_0x55aa.traceg\nMemcpyDtoH,0x10700,128\nMemcpyHtoD,0x10800,256\n"
		"cudaFree,0x777\nkernel-7-ctx_0x55aa.traceg\n",
		want, ARRAY_SIZE(want));
}

static void list_lines(void **state)
{
	static const char *const bad[] = { "MemcpyHtoD,",
					   "MemcpyHtoD,0x10000",
					   "MemcpyHtoD,0x10000,",
					   "MemcpyHtoD,0x10000,0",
					   "MemcpyHtoD,0x0,16",
					   "MemcpyHtoD,0x10000,16x",
					   "MemcpyHtoD,-1,16",
					   "MemcpyHtoD, 0x10000,1",
					   "MemcpyHtoD,0x10000,-16",
					   "cudaFree,0x10000,5",
					   "Memset,0x10000,16",
					   "kernel-1.traceg",
					   "MemcpyHtoD,0xffffffffffffffff,16",
					   "MemcpyHtoD,0x10000,18446744073709551615" };
	_cleanup_map_ struct ttmon_mt_map *map = NULL;
	uint64_t addr, size;
	unsigned int kind;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (ttmon_mt_list_memory(bad[i], strlen(bad[i]), &kind, &addr, &size))
			fail_msg("%s", bad[i]);
	assert_true(ttmon_mt_list_memory("MemcpyHtoD,7f00,16x", 18, &kind, &addr, &size));
	assert_int_equal(addr, 0x7f00);
	assert_int_equal(size, 16);
	/* What is no list has no allocations, whatever it is. */
	assert_int_equal(ttmon_mt_map_new(&map), 0);
	assert_int_equal(allocs_of(LAUNCH(0), sizeof(LAUNCH(0)) - 1, map), 0);
	assert_int_equal(ttmon_mt_in_allocs("/nonexistent", map, &left_out), 0);
	assert_int_equal(ttmon_mt_in_allocs("/tmp", map, &left_out), 0);
	assert_int_equal(ttmon_mt_in_allocs("/dev/zero", map, &left_out), 0);
}

/*
 * Its writer would begin, and what it writes would be gone: the trace's reader is the one that opens
 * it.
 */
static void pipe_is_not_opened(void **state)
{
	char dir[] = "/tmp/ttmon-test-mt-XXXXXX", path[64];
	_cleanup_map_ struct ttmon_mt_map *map = NULL;
	_cleanup_close_ int seen = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct inotify_event ev[8];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/f", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(ttmon_mt_map_new(&map), 0);
	assert_true(seen >= 0 && inotify_add_watch(seen, path, IN_OPEN) >= 0);
	assert_int_equal(ttmon_mt_in_allocs(path, map, &left_out), 0);
	assert_int_equal(read(seen, ev, sizeof(ev)), -1);
	assert_int_equal(errno, EAGAIN);
	unlink(path);
	rmdir(dir);
}

/* More than can be kept, all in one place of the table: the first are kept, and it ends. */
static void long_list(void **state)
{
	enum { LINES = 70000, LINE = 40 };
	_cleanup_free_ char *text = malloc((size_t)LINES * LINE + 100);
	_cleanup_map_ struct ttmon_mt_map *map = NULL;
	size_t n = 0;

	(void)state;
	assert_non_null(text);
	for (unsigned int i = LINES; i > 0; i--)
		n += (size_t)sprintf(text + n, "MemcpyHtoD,0x%08x,16\n", i * 64);
	n += (size_t)sprintf(text + n, "kernel-1.traceg\n");
	assert_int_equal(ttmon_mt_map_new(&map), 0);
	assert_int_equal(allocs_of(text, n, map), 65536);
	assert_int_equal(left_out, LINES - 65536);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_lanes),	  cmocka_unit_test(raw_records),
		cmocka_unit_test(ldmatrix_raw),	  cmocka_unit_test(ldmatrix_accel),
		cmocka_unit_test(numbers),	  cmocka_unit_test(list_of_copies),
		cmocka_unit_test(list_lines),	  cmocka_unit_test(list_of_allocations),
		cmocka_unit_test(list_of_joined), cmocka_unit_test(pipe_is_not_opened),
		cmocka_unit_test(long_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
