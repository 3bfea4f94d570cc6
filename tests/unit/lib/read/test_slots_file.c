// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_slots_file.c: lib/read/slots*.c, the format of the slot file, and io/files/slotfile.c, which
 * writes it: what goes in comes out, field by field; what is damaged, cut or full is said, and what is
 * good before it is read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <zlib.h>

#include "daemon/io/files/slotfile.h"
#include "lib/read/slots.h"

#define MAX_ROWS 400

static uint64_t seed;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static uint64_t below(uint64_t n)
{
	return rnd() % n;
}

/* Of any width, so that every length of varint comes. */
static uint64_t any(void)
{
	return rnd() >> below(64);
}

/* A count that is mostly 0. */
static uint64_t rare(void)
{
	return below(8) ? 0 : any();
}

struct in {
	struct ttmon_slots_item item;
	struct ttmon_slot_row rows[MAX_ROWS];
};

/* Anything that the structs can hold. */
static void make_any(struct in *in, uint64_t no, size_t n)
{
	memset(in, 0, sizeof(*in));
	in->item = (struct ttmon_slots_item){
		.slot = { .no = no,
			  .flags = (uint32_t)rare(),
			  .cpus = (uint32_t)any(),
			  .user_ns = any(),
			  .kernel_ns = any(),
			  .idle_ns = any(),
			  .missing_ns = rare(),
			  .events = (uint32_t)any(),
			  .late = (uint32_t)rare(),
			  .dropped = (uint32_t)rare(),
			  .kernel_lost = (uint32_t)rare(),
			  .allocs = (uint32_t)rare(),
			  .frees = (uint32_t)rare(),
			  .copies = rare(),
			  .copy_bytes = rare(),
			  .pinned_pages = any(),
			  .tt_dispatches = rare(),
			  .tt_busy_ns = rare(),
			  .nr_rows = (uint32_t)n },
		.missed = rare(),
		.rows = in->rows,
	};
	for (size_t i = 0; i < n; i++) {
		struct ttmon_slot_row *r = &in->rows[i];

		*r = (struct ttmon_slot_row){ .start_ns = below(4) * 1000,
					      .tgid = (uint32_t)below(12),
					      .rmid = (uint16_t)any(),
					      .cls = (uint8_t)below(TTMON_ROW_CLASS_MAX),
					      .flags = (uint8_t)any(),
					      .cpu_ns = any(),
					      .ctr = { any(), rare(), any(), rare() },
					      .llc_bytes = rare(),
					      .mbm_total = rare(),
					      .mbm_local = rare(),
					      .rdt_ns = rare(),
					      .copies = rare(),
					      .copy_bytes = rare(),
					      .pinned_bytes = rare(),
					      .switches = (uint32_t)any() };
		snprintf(r->comm, sizeof(r->comm), "%.*s", (int)below(16), "exec-renames-me");
	}
}

static void assert_item(const struct ttmon_slots_item *got, const struct ttmon_slots_item *want)
{
	assert_memory_equal(&got->slot, &want->slot, sizeof(got->slot));
	assert_int_equal(got->missed, want->missed);
	if (want->slot.nr_rows)
		assert_memory_equal(got->rows, want->rows, want->slot.nr_rows * sizeof(*want->rows));
}

/* ---- files in memory ---- */

struct buf {
	uint8_t *p;
	size_t len;
};

static void append(struct buf *b, const void *p, size_t n)
{
	b->p = realloc(b->p, b->len + n + 1);
	assert_non_null(b->p);
	memcpy(b->p + b->len, p, n);
	b->len += n;
}

static int open_bytes(const uint8_t *p, size_t n, struct ttmon_slots_reader **ret, char why[600])
{
	int fd = memfd_create("slots", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return ttmon_slots_open_fd(fd, "x", ret, why, 600);
}

static const struct ttmon_slots_info info = {
	.start_ns = 5000000000, .real_ns = 1700000000000000000, .nr_cpus = 2, .hostname = "host", .ttmond = "0.1"
};

static void begin(struct buf *b)
{
	uint8_t head[TTMON_SLOTS_HEAD];

	ttmon_slots_enc_head(&info, head);
	append(b, head, sizeof(head));
}

static void flush(struct buf *b, struct ttmon_slots_enc *e)
{
	const uint8_t *p = NULL;
	size_t len = 0;

	assert_int_equal(ttmon_slots_enc_block(e, &p, &len), 0);
	if (len)
		append(b, p, len);
}

static void finish(struct buf *b, const struct ttmon_slots_end *end)
{
	uint8_t tail[TTMON_SLOTS_END_MAX];

	append(b, tail, ttmon_slots_enc_end(end, tail));
}

/* ---- the format ---- */

static void test_round_trip(void **state)
{
	enum { SLOTS = 3000 };
	struct in *in = calloc(SLOTS, sizeof(*in));
	struct ttmon_slots_end end = { .dropped = 7 };
	struct ttmon_slots_item got;
	struct ttmon_slots_enc *e;
	struct ttmon_slots_reader *s;
	struct buf b = { 0 };
	char why[600];

	(void)state;
	seed = 42;
	assert_non_null(in);
	assert_int_equal(ttmon_slots_enc_new(&e), 0);
	begin(&b);
	for (size_t i = 0; i < SLOTS; i++) {
		make_any(&in[i], below(3) ? i : rnd(), below(4) ? below(8) : below(MAX_ROWS));
		assert_int_equal(ttmon_slots_enc_add(e, &in[i].item), 0);
		end.rows += in[i].item.slot.nr_rows;
		if (ttmon_slots_enc_full(e) || !below(100))
			flush(&b, e);
	}
	flush(&b, e);
	flush(&b, e); /* nothing: adds nothing */
	end.slots = SLOTS;
	finish(&b, &end);

	assert_int_equal(open_bytes(b.p, b.len, &s, why), 0);
	assert_memory_equal(ttmon_slots_get_info(s), &info, sizeof(info));
	for (size_t i = 0; i < SLOTS; i++) {
		assert_int_equal(ttmon_slots_next(s, &got), 1);
		assert_item(&got, &in[i].item);
	}
	assert_int_equal(ttmon_slots_next(s, &got), 0);
	assert_int_equal(ttmon_slots_next(s, &got), 0);
	assert_memory_equal(ttmon_slots_get_end(s), &end, sizeof(end));
	ttmon_slots_close(s);
	ttmon_slots_enc_free(e);
	free(b.p);
	free(in);
}

/* Each field by itself, so that none hides behind another. */
static void test_every_field(void **state)
{
	struct in *in = calloc(1, sizeof(*in));
	struct ttmon_slots_item got;
	struct ttmon_slots_enc *e;
	struct ttmon_slots_reader *s;
	char why[600];

	(void)state;
	assert_int_equal(ttmon_slots_enc_new(&e), 0);
	for (size_t byte = 0; byte < sizeof(struct ttmon_slot_row) + sizeof(struct ttmon_slot); byte++) {
		struct ttmon_slots_end end = { .slots = 2, .rows = 4 };
		bool row = byte < sizeof(struct ttmon_slot_row);
		size_t at = row ? byte : byte - sizeof(struct ttmon_slot_row);
		struct buf b = { 0 };

		/* What is padding, or says how many rows there are, or must be a class. */
		if (row ? at >= offsetof(struct ttmon_slot_row, pad) || at == offsetof(struct ttmon_slot_row, cls)
			: at / 4 == offsetof(struct ttmon_slot, nr_rows) / 4)
			continue;
		if (row && at >= offsetof(struct ttmon_slot_row, comm) && at < offsetof(struct ttmon_slot_row, cpu_ns))
			continue;
		begin(&b);
		for (int i = 0; i < 2; i++) {
			memset(in, 0, sizeof(*in));
			in->item.rows = in->rows;
			in->item.slot.nr_rows = 2;
			if (i)
				(row ? (uint8_t *)&in->rows[1] : (uint8_t *)&in->item.slot)[at] = 0xa5;
			assert_int_equal(ttmon_slots_enc_add(e, &in->item), 0);
		}
		flush(&b, e);
		finish(&b, &end);
		assert_int_equal(open_bytes(b.p, b.len, &s, why), 0);
		assert_int_equal(ttmon_slots_next(s, &got), 1);
		assert_int_equal(ttmon_slots_next(s, &got), 1);
		assert_item(&got, &in->item);
		assert_int_equal(ttmon_slots_next(s, &got), 0);
		ttmon_slots_close(s);
		free(b.p);
	}
	ttmon_slots_enc_free(e);
	free(in);
}

static void make_file(struct buf *b, struct in *in, size_t slots)
{
	struct ttmon_slots_end end = { .slots = slots };
	struct ttmon_slots_enc *e;

	assert_int_equal(ttmon_slots_enc_new(&e), 0);
	begin(b);
	for (size_t i = 0; i < slots; i++) {
		make_any(&in[i], i, below(4));
		end.rows += in[i].item.slot.nr_rows;
		assert_int_equal(ttmon_slots_enc_add(e, &in[i].item), 0);
		if (i % 3 == 2)
			flush(b, e);
	}
	flush(b, e);
	finish(b, &end);
	ttmon_slots_enc_free(e);
}

/* How many slots come out, each as it went in; *err: how it ended. */
static size_t read_all(const struct buf *b, const struct in *in, int *err)
{
	struct ttmon_slots_item got;
	struct ttmon_slots_reader *s = NULL;
	char why[600] = "";
	size_t n = 0;

	*err = open_bytes(b->p, b->len, &s, why);
	if (*err) {
		assert_null(s);
		assert_int_equal(strncmp(why, "x: ", 3), 0);
		return 0;
	}
	while ((*err = ttmon_slots_next(s, &got)) == 1)
		assert_item(&got, &in[n++].item);
	assert_int_equal(!*ttmon_slots_why(s), !*err);
	/* It stays that way. */
	assert_int_equal(ttmon_slots_next(s, &got), *err);
	ttmon_slots_close(s);
	return n;
}

/* How many slots lie in blocks that end at or before byte `at`. make_file() puts 3 into each. */
static size_t whole_before(const struct buf *b, size_t at, size_t slots)
{
	size_t off = TTMON_SLOTS_HEAD, n = 0;
	uint32_t len;

	while (off + 16 <= b->len) {
		memcpy(&len, b->p + off + 4, sizeof(len));
		off += 16 + len;
		if (off > at)
			break;
		n += 3;
	}
	return MIN(n, slots);
}

static void test_damaged(void **state)
{
	enum { SLOTS = 10 };
	struct in *in = calloc(SLOTS, sizeof(*in));
	struct buf b = { 0 };
	size_t seen = 0, n;
	int err;

	(void)state;
	seed = 7;
	make_file(&b, in, SLOTS);
	assert_int_equal(read_all(&b, in, &err), SLOTS);
	assert_int_equal(err, 0);
	/* Any bit: never a wrong slot, never a clean end. */
	for (size_t i = 0; i < b.len * 8; i++) {
		/* Before the damage, which may be to a length. */
		size_t good = whole_before(&b, i / 8, SLOTS);

		b.p[i / 8] ^= (uint8_t)(1 << i % 8);
		n = read_all(&b, in, &err);
		assert_int_equal(n, i / 8 < TTMON_SLOTS_HEAD ? 0 : good);
		assert_true(err < 0);
		b.p[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	/* Any length. */
	for (struct buf cut = { b.p, 0 }; cut.len < b.len; cut.len++) {
		n = read_all(&cut, in, &err);
		assert_true(n >= seen && n <= SLOTS);
		seen = n;
		assert_int_equal(err, cut.len < 16 ? -EBADMSG : -ENODATA);
	}
	assert_int_equal(seen, SLOTS);
	/* Something behind the end. */
	append(&b, "x", 1);
	assert_int_equal(read_all(&b, in, &err), SLOTS);
	assert_int_equal(err, -EBADMSG);
	free(b.p);
	free(in);
}

static void reseal_head(struct buf *b)
{
	uint32_t crc = (uint32_t)crc32(0, b->p, TTMON_SLOTS_HEAD - 4);

	memcpy(b->p + TTMON_SLOTS_HEAD - 4, &crc, sizeof(crc));
}

static void test_versions(void **state)
{
	struct in *in = calloc(4, sizeof(*in));
	struct buf b = { 0 };
	int err;

	(void)state;
	make_file(&b, in, 4);
	for (unsigned int version = 0; version < 4; version += 3) {
		b.p[8] = (uint8_t)version;
		reseal_head(&b);
		read_all(&b, in, &err);
		assert_int_equal(err, -EPROTONOSUPPORT);
	}
	b.p[8] = TTMON_SLOTS_VERSION;
	reseal_head(&b);
	assert_int_equal(read_all(&b, in, &err), 4);
	/* Slots taken out of the middle, block by block: all is well but the totals. */
	free(b.p);
	b = (struct buf){ 0 };
	begin(&b);
	finish(&b, &(struct ttmon_slots_end){ .slots = 3 });
	read_all(&b, in, &err);
	assert_int_equal(err, -EBADMSG);
	free(b.p);
	free(in);
}

/* A file of version 1 knows nothing of families, and one that says it does is damaged. */
static void test_version_1(void **state)
{
	struct ttmon_slots_item got;
	struct ttmon_slots_reader *s;
	char why[600];

	(void)state;
	for (unsigned int known = 0; known < 2; known++) {
		struct ttmon_slots_item item = { .slot = { .no = 9, .flags = TTMON_SLOT_HAS_CPU, .copies = 3 } };
		struct ttmon_slots_enc *e;
		struct buf b = { 0 };

		assert_int_equal(ttmon_slots_enc_new(&e), 0);
		item.slot.known = known;
		begin(&b);
		assert_int_equal(ttmon_slots_enc_add(e, &item), 0);
		flush(&b, e);
		finish(&b, &(struct ttmon_slots_end){ .slots = 1 });
		b.p[8] = 1;
		reseal_head(&b);
		assert_int_equal(open_bytes(b.p, b.len, &s, why), 0);
		assert_int_equal(ttmon_slots_next(s, &got), known ? -EBADMSG : 1);
		if (!known) {
			assert_int_equal(got.slot.copies, 3);
			assert_true(ttmon_slot_knows(&got.slot, TTMON_SLOT_NEED_COPIES));
		}
		ttmon_slots_close(s);
		ttmon_slots_enc_free(e);
		free(b.p);
	}
}

/* A sealed block whose columns lie: the checksum does not save the reader. */
static void test_lying_blocks(void **state)
{
	struct in *in = calloc(10, sizeof(*in));
	struct buf b = { 0 };
	uint32_t len, crc;

	(void)state;
	seed = 99;
	make_file(&b, in, 3);
	memcpy(&len, b.p + TTMON_SLOTS_HEAD + 4, sizeof(len));
	for (unsigned int i = 0; i < 5000; i++) {
		uint8_t *block = b.p + TTMON_SLOTS_HEAD, *byte = block + 16 + below(len), old = *byte;
		struct ttmon_slots_reader *s;
		struct ttmon_slots_item got;
		char why[600];
		int r;

		*byte = (uint8_t)rnd();
		crc = (uint32_t)crc32(crc32(0, block, 12), block + 16, len);
		memcpy(block + 12, &crc, sizeof(crc));
		assert_int_equal(open_bytes(b.p, b.len, &s, why), 0);
		while ((r = ttmon_slots_next(s, &got)) == 1) {
			for (uint32_t k = 0; k < got.slot.nr_rows; k++) {
				assert_true(got.rows[k].cls < TTMON_ROW_CLASS_MAX);
				assert_int_equal(got.rows[k].comm[15], 0);
			}
		}
		assert_true(r == 0 || r == -EBADMSG);
		ttmon_slots_close(s);
		*byte = old;
	}
	free(b.p);
	free(in);
}

/* A block of these columns, sealed; the other columns are empty. */
static int read_block_of(uint8_t slots, const struct buf cols[19])
{
	uint8_t block[512] = { 1, 0, 0, 0, 0, 0, 0, 0, slots }, *p = block + 16;
	struct ttmon_slots_item got;
	struct buf b = { 0 };
	struct ttmon_slots_reader *s;
	char why[600];
	uint32_t crc;
	int r;

	for (size_t i = 0; i < 19; i++)
		*p++ = (uint8_t)cols[i].len;
	for (size_t i = 0; i < 19; i++)
		for (size_t k = 0; k < cols[i].len; k++)
			*p++ = cols[i].p[k];
	block[4] = (uint8_t)(p - block - 16);
	crc = (uint32_t)crc32(crc32(0, block, 12), block + 16, (uInt)(p - block - 16));
	memcpy(block + 12, &crc, sizeof(crc));
	begin(&b);
	append(&b, block, (size_t)(p - block));
	assert_int_equal(open_bytes(b.p, b.len, &s, why), 0);
	while ((r = ttmon_slots_next(s, &got)) == 1)
		;
	ttmon_slots_close(s);
	free(b.p);
	return r;
}

#define BYTES(...)                                                             \
	{                                                                      \
		(uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }) \
	}
/* Mask: nr_rows (zigzag). One process: tgid 9, class user, start 1, comm "x". */
#define ONE_ROW	  BYTES(2, 2)
#define PROCESS_9 BYTES(9, 0, 1, 1, 'x')

/* Each way in which a sealed block can make no sense, beside one that does. */
static void test_nonsense(void **state)
{
	const struct {
		int want; /* -ENODATA: all is well, but for the end that is not there */
		struct buf cols[19];
	} cases[] = {
		{ -ENODATA, { ONE_ROW, BYTES(0), PROCESS_9, BYTES(2), [5] = BYTES(3) } },
		/* switches: 32 bits, and 33 */
		{ -ENODATA, { ONE_ROW, BYTES(0), PROCESS_9, BYTES(2), [5] = BYTES(0xff, 0xff, 0xff, 0xff, 0x0f) } },
		{ -EBADMSG, { ONE_ROW, BYTES(0), PROCESS_9, BYTES(2), [5] = BYTES(0xff, 0xff, 0xff, 0xff, 0x1f) } },
		/* a gauge below 0 */
		{ -EBADMSG, { ONE_ROW, BYTES(0), PROCESS_9, BYTES(0x80, 0x10), [15] = BYTES(1) } },
		/* a process that was not listed, and one too many */
		{ -EBADMSG, { ONE_ROW, BYTES(1), PROCESS_9, BYTES(0) } },
		{ -EBADMSG, { ONE_ROW, BYTES(0), BYTES(9, 0, 1, 1, 'x', 9), BYTES(0) } },
		{ -EBADMSG, { ONE_ROW, BYTES(0), BYTES(9, 0, 1, 2, 'x'), BYTES(0) } },
		{ -EBADMSG, { ONE_ROW, BYTES(0), BYTES(9, 5, 1, 1, 'x'), BYTES(0) } },
		{ -EBADMSG, { ONE_ROW, BYTES(0), BYTES(9, 0, 1, 1, 0), BYTES(0) } },
		{ -EBADMSG, { ONE_ROW, BYTES(0), BYTES(0xff, 0xff, 0xff, 0xff, 0x1f, 0, 1, 1, 'x'), BYTES(0) } },
		/* more rows than indexes, fewer, none listed */
		{ -EBADMSG, { BYTES(2, 4), BYTES(0), PROCESS_9, BYTES(0, 0) } },
		{ -EBADMSG, { BYTES(0), BYTES(0), PROCESS_9, BYTES(0) } },
		{ -EBADMSG, { ONE_ROW, BYTES(0), PROCESS_9, { NULL, 0 } } },
		/* a field that there is not, of rows and of slots; one that is as predicted and yet there */
		{ -EBADMSG, { ONE_ROW, BYTES(0), PROCESS_9, BYTES(0x80, 0x80, 2) } },
		{ -EBADMSG, { BYTES(0x80, 0x80, 0x40, 1) } },
		{ -EBADMSG, { ONE_ROW, BYTES(0), PROCESS_9, BYTES(2), [5] = BYTES(0) } },
		/* a number of 65 bits, one without an end */
		{ -EBADMSG, { BYTES(1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2) } },
		{ -EBADMSG, { BYTES(1, 0x80) } },
		{ -EBADMSG, { { NULL, 0 } } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = read_block_of(1, cases[i].cols);

		if (r != cases[i].want)
			fail_msg("case %zu: %d, not %d", i, r, cases[i].want);
	}
	/* No slots at all. */
	assert_int_equal(read_block_of(0, (struct buf[19]){ { NULL, 0 } }), -EBADMSG);
}

static void test_too_many_rows(void **state)
{
	struct ttmon_slots_item item = { .slot.nr_rows = TTMON_SLOTS_MAX_ROWS + 1 };
	struct ttmon_slots_enc *e;

	(void)state;
	assert_int_equal(ttmon_slots_enc_new(&e), 0);
	assert_int_equal(ttmon_slots_enc_add(e, &item), -E2BIG);
	assert_int_equal(ttmon_slots_enc_slots(e), 0);
	ttmon_slots_enc_free(e);
}

/* A fork storm: every row another process, the largest slot there can be. */
static void test_largest(void **state)
{
	struct ttmon_slot_row *rows = calloc(TTMON_SLOTS_MAX_ROWS, sizeof(*rows));
	struct ttmon_slots_item item = { .slot = { .no = 1, .nr_rows = TTMON_SLOTS_MAX_ROWS }, .rows = rows }, got;
	struct ttmon_slots_enc *e;
	struct ttmon_slots_reader *s;
	struct buf b = { 0 };
	char why[600];

	(void)state;
	for (uint32_t i = 0; i < TTMON_SLOTS_MAX_ROWS; i++) {
		memset(&rows[i], 0xff, offsetof(struct ttmon_slot_row, pad));
		rows[i].cls = TTMON_ROW_USER;
		rows[i].tgid = UINT32_MAX - i;
		rows[i].comm[15] = '\0';
	}
	assert_int_equal(ttmon_slots_enc_new(&e), 0);
	begin(&b);
	/* Two in one block: the limits are those of a block. */
	assert_int_equal(ttmon_slots_enc_add(e, &(struct ttmon_slots_item){ .slot.no = 0 }), 0);
	assert_int_equal(ttmon_slots_enc_add(e, &item), 0);
	assert_true(ttmon_slots_enc_full(e));
	flush(&b, e);
	finish(&b, &(struct ttmon_slots_end){ .slots = 2, .rows = TTMON_SLOTS_MAX_ROWS });
	item.slot.user_ns = 0;
	assert_int_equal(open_bytes(b.p, b.len, &s, why), 0);
	assert_int_equal(ttmon_slots_next(s, &got), 1);
	assert_int_equal(ttmon_slots_next(s, &got), 1);
	assert_item(&got, &item);
	assert_int_equal(ttmon_slots_next(s, &got), 0);
	ttmon_slots_close(s);
	ttmon_slots_enc_free(e);
	free(b.p);
	free(rows);
}

/* ---- the writer ---- */

static char dir[64], path[128];

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/ttmon-slots-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static const struct ttmon_slotfile_info file_info = {
	.start_ns = 5000000000, .real_ns = 1700000000000000000, .nr_cpus = 2, .hostname = "host", .version = "0.1"
};

static struct ttmon_slotfile *new_file(const char *name)
{
	struct ttmon_slotfile *f = NULL;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(ttmon_slotfile_new(path, &file_info, &f), 0);
	return f;
}

/* Slots as they are: few processes, most fields 0. */
static void make_real(struct in *in, uint64_t no, size_t procs, uint32_t cpus, bool counters, bool rdt)
{
	uint64_t left = cpus * NSEC_PER_MS, used = 0, kernel = 0;
	size_t n = 0;

	memset(in, 0, sizeof(*in));
	for (size_t i = 0; i < procs && n < MAX_ROWS - 1; i++) {
		struct ttmon_slot_row *r = &in->rows[n];
		uint64_t ns = below(left / 2 + 1);

		if (procs > 4 && below(2))
			continue;
		n++;
		*r = (struct ttmon_slot_row){ .tgid = (uint32_t)(1000 + i * 7),
					      .start_ns = 1000000000 + i * 123456789,
					      .rmid = (uint16_t)(i + 1),
					      .cls = i % 5 == 4 ? TTMON_ROW_KERNEL : TTMON_ROW_USER,
					      .cpu_ns = ns,
					      .switches = (uint32_t)(1 + below(6)) };
		snprintf(r->comm, sizeof(r->comm), "process-%u", (unsigned int)(i & 0xffff));
		for (int c = 0; counters && c < 4; c++)
			r->ctr[c] = ns * (c ? 10 + below(20) : 30) / (c < 2 ? 10 : 1000) + below(100);
		if (rdt) {
			r->flags = TTMON_ROW_LLC_VALID;
			r->llc_bytes = 40960 * below(500);
			r->mbm_total = 40960 * below(200);
			r->mbm_local = r->mbm_total - r->mbm_total / 40960 / 4 * 40960;
			r->rdt_ns = NSEC_PER_MS + below(20000);
		}
		left -= ns;
		used += ns;
		kernel += r->cls == TTMON_ROW_KERNEL ? ns : 0;
	}
	in->rows[n] = (struct ttmon_slot_row){ .cls = TTMON_ROW_IDLE, .cpu_ns = left, .switches = (uint32_t)below(6) };
	n++;
	in->item = (struct ttmon_slots_item){ .slot = { .no = no,
							.flags = TTMON_SLOT_HAS_CPU,
							.cpus = cpus,
							.user_ns = used - kernel,
							.kernel_ns = kernel,
							.idle_ns = left,
							.events = (uint32_t)(n + below(10)),
							.nr_rows = (uint32_t)n },
					      .rows = in->rows };
}

static bool put(struct ttmon_slotfile *f, const struct in *in)
{
	return ttmon_slotfile_put(f, &in->item.slot, in->rows, in->item.slot.nr_rows);
}

static void put_and_read(const char *name, size_t slots, size_t procs, uint32_t cpus, bool counters, bool rdt)
{
	struct in *in = calloc(slots, sizeof(*in));
	struct ttmon_slotfile *f = new_file(name);
	struct ttmon_slotfile_stats stats;
	struct ttmon_slots_item got;
	struct ttmon_slots_reader *s;
	uint64_t rows = 0;
	struct stat st;
	char why[600];

	seed = 1;
	for (size_t i = 0; i < slots; i++) {
		const struct timespec pause = { 0, 1000000 };

		make_real(&in[i], 5000 + i, procs, cpus, counters, rdt);
		rows += in[i].item.slot.nr_rows;
		while (!put(f, &in[i]))
			nanosleep(&pause, NULL); /* counted as dropped, and put again */
	}
	ttmon_slotfile_get_stats(f, &stats);
	assert_int_equal(stats.err, 0);
	assert_int_equal(ttmon_slotfile_close(f), 0);
	assert_int_equal(ttmon_slots_open(path, &s, why, sizeof(why)), 0);
	assert_memory_equal(ttmon_slots_get_info(s), &info, sizeof(info));
	for (size_t i = 0; i < slots; i++) {
		assert_int_equal(ttmon_slots_next(s, &got), 1);
		in[i].item.missed = got.missed;
		assert_item(&got, &in[i].item);
	}
	assert_int_equal(ttmon_slots_next(s, &got), 0);
	assert_int_equal(ttmon_slots_get_end(s)->rows, rows);
	ttmon_slots_close(s);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	print_message("# %s: %zu slots, %.1f rows a slot, %.2f bytes a row\n", name, slots,
		      (double)rows / (double)slots, (double)st.st_size / (double)rows);
	/* The required size, with everything of a slot counted. */
	if (strstr(name, ".gz"))
		assert_true((double)st.st_size / (double)rows <= 20);
	free(in);
}

static void test_plain(void **state)
{
	(void)state;
	put_and_read("plain", 3000, 3, 2, true, false);
}

static void test_gz_small(void **state)
{
	(void)state;
	put_and_read("small.gz", 3000, 3, 2, true, false);
}

static void test_gz_no_counters(void **state)
{
	(void)state;
	put_and_read("nocounters.gz", 3000, 3, 2, false, false);
}

static void test_gz_large(void **state)
{
	(void)state;
	put_and_read("large.gz", 1000, 100, 64, true, false);
}

/* The most that a row can be worth: counters and RDT readings, new each millisecond. */
static void test_gz_rdt(void **state)
{
	(void)state;
	put_and_read("rdt.gz", 1000, 100, 64, true, true);
}

/* What was written a second ago can be read while the rest is still to come. */
static void growing(const char *name)
{
	struct ttmon_slotfile *f = new_file(name);
	struct in *in = calloc(1, sizeof(*in));
	const struct timespec pause = { 0, 5000000 };
	struct ttmon_slotfile_stats stats = { 0 };
	struct ttmon_slots_item got;
	struct ttmon_slots_reader *s;
	char why[600];
	size_t n = 0;
	int r;

	for (size_t i = 0; i < 2500; i++) {
		make_real(in, i, 3, 2, true, false);
		assert_true(put(f, in));
	}
	for (int i = 0; i < 2000 && stats.slots < 2000; i++) {
		ttmon_slotfile_get_stats(f, &stats);
		nanosleep(&pause, NULL);
	}
	assert_int_equal(ttmon_slots_open(path, &s, why, sizeof(why)), 0);
	while ((r = ttmon_slots_next(s, &got)) == 1)
		assert_int_equal(got.slot.no, n++);
	assert_int_equal(r, -ENODATA);
	assert_true(n >= 2000);
	ttmon_slots_close(s);
	assert_int_equal(ttmon_slotfile_close(f), 0);
	free(in);
}

static void test_growing(void **state)
{
	(void)state;
	growing("growing");
}

static void test_growing_gz(void **state)
{
	(void)state;
	growing("growing.gz");
}

/*
 * A slot that can never fit, and one that finds the ring full: the next one says how many are missing.
 */
static void test_queue_full(void **state)
{
	size_t big = (8u << 20) / sizeof(struct ttmon_slot_row) + 1;
	struct ttmon_slot_row *rows = calloc(big, sizeof(*rows));
	struct ttmon_slotfile *f = new_file("full");
	struct ttmon_slotfile_stats stats;
	struct ttmon_slots_item got;
	struct ttmon_slot slot = { .no = 1 };
	struct ttmon_slots_reader *s;
	char why[600];

	(void)state;
	assert_true(ttmon_slotfile_put(f, &slot, rows, 1));
	slot.no = 2;
	assert_false(ttmon_slotfile_put(f, &slot, rows, big));
	assert_false(ttmon_slotfile_put(f, &slot, rows, big));
	slot.no = 4;
	assert_true(ttmon_slotfile_put(f, &slot, rows, 0));
	slot.no = 5;
	assert_true(ttmon_slotfile_put(f, &slot, rows, 0));
	slot.no = 6;
	assert_false(ttmon_slotfile_put(f, &slot, rows, big));
	ttmon_slotfile_get_stats(f, &stats);
	assert_int_equal(stats.dropped, 3);
	assert_int_equal(ttmon_slotfile_close(f), 0);
	assert_int_equal(ttmon_slots_open(path, &s, why, sizeof(why)), 0);
	assert_int_equal(ttmon_slots_next(s, &got), 1);
	assert_int_equal(got.slot.no, 1);
	assert_int_equal(got.missed, 0);
	assert_int_equal(ttmon_slots_next(s, &got), 1);
	assert_int_equal(got.slot.no, 4);
	assert_int_equal(got.missed, 2);
	assert_int_equal(ttmon_slots_next(s, &got), 1);
	assert_int_equal(got.missed, 0);
	assert_int_equal(ttmon_slots_next(s, &got), 0);
	assert_int_equal(ttmon_slots_get_end(s)->dropped, 3);
	ttmon_slots_close(s);

	free(rows);
}

static void *drain_main(void *arg)
{
	FILE *to = arg;
	char buf[4096];
	size_t n;
	int fd = open(path, O_RDONLY);

	while ((n = (size_t)read(fd, buf, sizeof(buf))))
		fwrite(buf, 1, n, to);
	close(fd);
	return NULL;
}

/*
 * The file is not written: the hot thread goes on, and the file says how many slots there was no room
 * for.
 */
static void test_stuck(void **state)
{
	struct ttmon_slot_row *rows = calloc(4000, sizeof(*rows));
	const struct timespec pause = { 0, 1000000 };
	struct ttmon_slotfile_stats stats;
	struct ttmon_slot slot = { .no = 0 };
	struct ttmon_slots_item got;
	struct ttmon_slots_reader *s;
	struct ttmon_slotfile *f;
	uint64_t missed = 0;
	FILE *copy = tmpfile();
	pthread_t thread;
	char why[600];
	int hold;

	(void)state;
	assert_non_null(copy);
	snprintf(path, sizeof(path), "%s/pipe", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	hold = open(path, O_RDONLY | O_NONBLOCK);
	f = new_file("pipe");
	for (; slot.no < 400; slot.no++)
		ttmon_slotfile_put(f, &slot, rows, 4000);
	ttmon_slotfile_get_stats(f, &stats);
	assert_true(stats.dropped > 100);
	assert_int_equal(stats.err, 0);
	assert_int_equal(pthread_create(&thread, NULL, drain_main, copy), 0);
	while (!ttmon_slotfile_put(f, &slot, rows, 0))
		nanosleep(&pause, NULL);
	ttmon_slotfile_get_stats(f, &stats);
	assert_int_equal(ttmon_slotfile_close(f), 0);
	pthread_join(thread, NULL);
	close(hold);
	rewind(copy);
	assert_int_equal(ttmon_slots_open_fd(dup(fileno(copy)), "x", &s, why, sizeof(why)), 0);
	while (ttmon_slots_next(s, &got) == 1)
		missed += got.missed;
	assert_string_equal(ttmon_slots_why(s), "");
	assert_int_equal(got.slot.no, 400);
	assert_int_equal(missed, stats.dropped);
	assert_int_equal(ttmon_slots_get_end(s)->dropped, stats.dropped);
	ttmon_slots_close(s);
	fclose(copy);
	free(rows);
}

/*
 * The file may not grow past a limit: reported once, the rest is counted, and what is there is
 * complete.
 */
static void test_no_room(void **state)
{
	struct rlimit old, limit;
	struct in *in = calloc(1, sizeof(*in));
	struct ttmon_slotfile *f = new_file("noroom");
	const struct timespec pause = { 0, 20000 };
	struct ttmon_slots_item got;
	struct ttmon_slots_reader *s;
	char why[600];
	uint64_t n = 0;
	int r;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){ .rlim_cur = 150000, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (size_t i = 0; i < 20000; i++) {
		make_real(in, i, 3, 2, true, false);
		put(f, in);
		if (i % 100 == 0)
			nanosleep(&pause, NULL);
	}
	r = ttmon_slotfile_close(f);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(ttmon_slots_open(path, &s, why, sizeof(why)), 0);
	while ((r = ttmon_slots_next(s, &got)) == 1)
		assert_int_equal(got.slot.no, n++);
	assert_int_equal(r, 0);
	assert_true(n > 1000);
	assert_int_equal(ttmon_slots_get_end(s)->dropped + n, 20000);
	ttmon_slots_close(s);
	free(in);
}

static void test_disk_full(void **state)
{
	struct ttmon_slotfile *f = NULL;

	(void)state;
	/* Not even the head can be written: said at once. */
	assert_int_equal(ttmon_slotfile_new("/dev/full", &file_info, &f), -ENOSPC);
	assert_int_equal(ttmon_slotfile_new("/nonexistent/x", &file_info, &f), -ENOENT);
	assert_int_equal(ttmon_slotfile_new("/tmp", &file_info, &f), -EISDIR);
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(ttmon_slotfile_new(path, &file_info, &f), -ENXIO);
	assert_null(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_every_field),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_lying_blocks),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_too_many_rows),
		cmocka_unit_test(test_largest),
		cmocka_unit_test_setup_teardown(test_plain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gz_small, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gz_no_counters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gz_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gz_rdt, setup, teardown),
		cmocka_unit_test_setup_teardown(test_growing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_growing_gz, setup, teardown),
		cmocka_unit_test_setup_teardown(test_queue_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stuck, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
