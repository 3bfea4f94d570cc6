// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ring.c: the reader of a BPF ring, on memory laid out as the kernel does it. It stops at the
 * requested position and at a record that is reserved and not submitted, and releases space while it
 * reads.
 *
 * The reader is part of the daemon, not of the archive that unit tests are linked with: its source is
 * included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "daemon/io/bpf/ring.c"

#define SIZE (1u << 17)

static struct ttmon_ring ring;
static uint64_t consumer, producer;

static struct {
	size_t n;
	uint64_t first[4096];
	size_t size[4096];
	uint64_t max_behind; /* how far the consumer position was behind while records were handed out */
	uint64_t handed;     /* bytes of records before the one that is handed out */
} got;

static int set_up(void **state)
{
	_cleanup_close_ int fd = memfd_create("test_ring", MFD_CLOEXEC);
	uint8_t *at = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (fd < 0 || ftruncate(fd, SIZE) || at == MAP_FAILED)
		return -1;
	for (int i = 0; i < 2; i++)
		if (mmap(at + i * SIZE, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			return -1;
	consumer = producer = 0;
	ring = (struct ttmon_ring){ .consumer = &consumer, .producer = &producer, .data = at, .size = SIZE };
	memset(&got, 0, sizeof(got));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return munmap(ring.data, 2 * SIZE);
}

/*
 * Does what bpf_ringbuf_reserve() does: writes the header with the bits, and leaves room. Returns the
 * header.
 */
static uint32_t *reserve(uint32_t size, uint32_t bits)
{
	uint8_t *head = ring.data + (producer & (SIZE - 1));

	assert_true(producer + size + BPF_RINGBUF_HDR_SZ - consumer <= SIZE);
	memcpy(head, &(uint32_t){ size | bits }, sizeof(uint32_t));
	memcpy(head + BPF_RINGBUF_HDR_SZ, &producer, sizeof(producer));
	producer += ROUND_UP((uint64_t)size + BPF_RINGBUF_HDR_SZ, 8);
	return (uint32_t *)(void *)head;
}

static void take(void *ctx, const void *rec, size_t size)
{
	assert_ptr_equal(ctx, &got);
	memcpy(&got.first[got.n % ARRAY_SIZE(got.first)], rec, sizeof(uint64_t));
	got.size[got.n++ % ARRAY_SIZE(got.size)] = size;
	got.max_behind = MAX(got.max_behind, got.handed - consumer);
	got.handed += ROUND_UP((uint64_t)size + BPF_RINGBUF_HDR_SZ, 8);
}

static void test_stops_at_the_position(void **state)
{
	uint64_t upto;

	(void)state;
	assert_true(ttmon_ring_drain(&ring, ttmon_ring_producer(&ring), take, &got));
	reserve(24, 0);
	reserve(29, 0);
	upto = ttmon_ring_producer(&ring);
	reserve(40, 0);
	assert_true(ttmon_ring_drain(&ring, upto, take, &got));
	assert_int_equal(got.n, 2);
	assert_int_equal(got.size[0], 24);
	assert_int_equal(got.size[1], 29);
	assert_int_equal(got.first[1], 32);
	assert_int_equal(consumer, upto);
	assert_int_equal(ttmon_ring_used(&ring), 48);
	assert_true(ttmon_ring_drain(&ring, ttmon_ring_producer(&ring), take, &got));
	assert_int_equal(got.n, 3);
	assert_int_equal(ttmon_ring_used(&ring), 0);
}

/* Its task was interrupted: the records behind it wait, however often the ring is read. */
static void test_stops_at_a_busy_record(void **state)
{
	uint32_t *busy;

	(void)state;
	reserve(24, 0);
	busy = reserve(32, BPF_RINGBUF_BUSY_BIT);
	reserve(40, 0);
	for (int i = 0; i < 3; i++) {
		assert_false(ttmon_ring_drain(&ring, ttmon_ring_producer(&ring), take, &got));
		assert_int_equal(got.n, 1);
		assert_int_equal(consumer, 32);
	}
	*busy = 32;
	assert_true(ttmon_ring_drain(&ring, ttmon_ring_producer(&ring), take, &got));
	assert_int_equal(got.n, 3);
	assert_int_equal(got.size[1], 32);
	assert_int_equal(got.size[2], 40);
}

static void test_skips_what_was_discarded(void **state)
{
	(void)state;
	reserve(24, BPF_RINGBUF_DISCARD_BIT);
	reserve(48, 0);
	reserve(24, BPF_RINGBUF_DISCARD_BIT);
	assert_true(ttmon_ring_drain(&ring, ttmon_ring_producer(&ring), take, &got));
	assert_int_equal(got.n, 1);
	assert_int_equal(got.size[0], 48);
	assert_int_equal(ttmon_ring_used(&ring), 0);
}

/* Ten times around the ring, with records of odd sizes across its end. */
static void test_wraps(void **state)
{
	uint64_t made = 0;

	(void)state;
	while (producer < 10 * SIZE) {
		uint64_t begin = producer;

		reserve((uint32_t)(8 + made * 37 % 8000), 0);
		made++;
		assert_true(ttmon_ring_drain(&ring, ttmon_ring_producer(&ring), take, &got));
		assert_int_equal(got.n, made);
		assert_int_equal(got.first[(made - 1) % ARRAY_SIZE(got.first)], begin);
	}
}

/* The producer need not wait for the end of a long drain. */
static void test_gives_space_back_meanwhile(void **state)
{
	(void)state;
	while (producer + 128 <= SIZE)
		reserve(120, 0);
	assert_true(ttmon_ring_drain(&ring, ttmon_ring_producer(&ring), take, &got));
	assert_int_equal(got.handed, SIZE);
	assert_true(got.max_behind >= 4096 && got.max_behind <= 65536);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(test_stops_at_the_position),	    T(test_stops_at_a_busy_record),
		T(test_skips_what_was_discarded),   T(test_wraps),
		T(test_gives_space_back_meanwhile),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
