// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_unwinder.c: the process that unwinds, with files that come, that do not come, and that are late:
 * a late one holds one stack up and no other, and is used when it is there.
 *
 * It is part of the daemon, not of the archive that unit tests are linked with: its source is included. The ring is shared memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/eventfd.h>
#include <sys/time.h>

#include "daemon/io/bpf/ring.c"

static int map_shared(struct ttmon_ring *r, int map_fd, uint64_t size);

#include "daemon/io/unwind/box.c"
#define ttmon_ring_map map_shared
#include "daemon/io/unwind/process.c"
#undef ttmon_ring_map
#include "daemon/io/unwind/unwinder.c"
#include "tests/unit/feed/eh_image.h"

#define RING 0x40000u
#define CODE 0x10000000u
#define SP   0x7fff0000u

static struct ttmon_ring shared;
static int sock = -1;

static int map_shared(struct ttmon_ring *r, int map_fd, uint64_t size)
{
	(void)map_fd;
	*r = shared;
	return size == RING ? 0 : -EINVAL;
}

static void send_to_it(enum ttmon_unwinder_kind kind, const void *entry, size_t size, int fd)
{
	struct {
		struct ttmon_unwinder_head head;
		char entry[sizeof(struct ttmon_unwinder_map)];
	} msg = { .head = { .kind = kind, .n = size != 0 } };

	memcpy(msg.entry, entry, size);
	assert_int_equal(ttmon_unwinder_send(sock, &msg, sizeof(msg.head) + size, fd, true), 0);
}

/* The next thing that it says, which is of this kind. */
static struct ttmon_unwinder_stack hears(enum ttmon_unwinder_kind kind)
{
	struct {
		struct ttmon_unwinder_head head;
		struct ttmon_unwinder_stack entry;
	} msg = { 0 };
	ssize_t n = recv(sock, &msg, sizeof(msg), 0);

	assert_true(n > 0 && ttmon_unwinder_is_good(&msg, (size_t)n));
	assert_int_equal(msg.head.kind, kind);
	return msg.entry;
}

static int set_up_process(void **state)
{
	uint64_t *at = mmap(NULL, RING + 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ttmon_unwinder_setup setup = { .ring_bytes = RING, .depth = 8 };
	struct timeval patience = { .tv_sec = 30 };
	int fd = eventfd(0, EFD_CLOEXEC);

	(void)state;
	if (at == MAP_FAILED || fd < 0)
		return -1;
	shared = (struct ttmon_ring){ .consumer = at, .producer = at + 1, .data = (uint8_t *)at + 4096, .size = RING };
	if (ttmon_unwinder_start(&sock) || setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		return -1;
	hears(TTMON_UNWINDER_HELLO);
	send_to_it(TTMON_UNWINDER_SETUP, &setup, sizeof(setup), fd);
	close(fd);
	return 0;
}

static int tear_down_process(void **state)
{
	(void)state;
	close(sock);
	return munmap(shared.consumer, RING + 4096);
}

static void maps_it(uint32_t tgid, uint32_t object)
{
	struct ttmon_unwinder_map m = {
		.ts_ns = ttmon_mono_ns(), .start = CODE, .end = CODE + EH_SIZE, .tgid = tgid, .object = object
	};

	send_to_it(TTMON_UNWINDER_MAP, &m, sizeof(m), -1);
}

/* A stack of one frame, whose caller is nobody. */
static void copies(uint32_t tgid, uint64_t id)
{
	struct ttmon_stack_copy c = { .id = id,
				      .ts_ns = ttmon_mono_ns(),
				      .tgid = tgid,
				      .tid = tgid,
				      .ip = CODE + EH_TEXT + 16,
				      .sp = SP,
				      .flags = TTMON_STACK_EXACT,
				      .pages = 7 };
	uint64_t producer = *shared.producer;

	assert_true(producer + BPF_RINGBUF_HDR_SZ + sizeof(c) <= RING);
	memcpy(shared.data + producer, &(uint32_t){ sizeof(c) }, sizeof(uint32_t));
	memcpy(shared.data + producer + BPF_RINGBUF_HDR_SZ, &c, sizeof(c));
	__atomic_store_n(shared.producer, producer + BPF_RINGBUF_HDR_SZ + ROUND_UP(sizeof(c), 8), __ATOMIC_RELEASE);
	send_to_it(TTMON_UNWINDER_LOOK, "", 0, -1);
}

/* It wants a file, and is told that it comes. Returns where to send it. */
static int promise(uint32_t object)
{
	struct ttmon_unwinder_stack want = hears(TTMON_UNWINDER_WANT);
	int pair[2];

	assert_memory_equal(&want, &object, sizeof(object));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	send_to_it(TTMON_UNWINDER_FILE, &object, sizeof(object), pair[0]);
	close(pair[0]);
	return pair[1];
}

static void ends(uint64_t id, enum ttmon_stack_end end)
{
	struct ttmon_unwinder_stack s = hears(TTMON_UNWINDER_STACK);

	assert_int_equal(s.id, id);
	assert_int_equal(s.end, end);
}

static int image(void)
{
	static struct eh_image im = { .kind = EH_WITH_HDR };

	im.at = im.n = 0;
	eh_cie(&im, "zR");
	eh_fde(&im, 0, 100, "", 0);
	return eh_file(&im);
}

static void send_file(int to)
{
	int file = image();

	assert_true(file >= 0);
	assert_int_equal(ttmon_unwinder_send(to, "", 1, file, true), 0);
	close(file);
	close(to);
}

static void a_file_that_comes(void **state)
{
	(void)state;
	maps_it(7, 5);
	copies(7, 1);
	send_file(promise(5));
	ends(1, TTMON_STACK_COMPLETE);
	/* It has it. */
	copies(7, 2);
	ends(2, TTMON_STACK_COMPLETE);
}

static void a_file_that_cannot_be_had(void **state)
{
	(void)state;
	maps_it(7, 5);
	copies(7, 1);
	close(promise(5));
	ends(1, TTMON_STACK_NO_TABLE);
	/* It is not asked for again. */
	copies(7, 2);
	ends(2, TTMON_STACK_NO_TABLE);
}

/* Nobody knows where its opener is: one stack has waited for it, another program's has not, and that it is there is seen. */
static void a_file_that_is_late(void **state)
{
	int to;

	(void)state;
	maps_it(7, 5);
	maps_it(8, 6);
	copies(7, 1);
	to = promise(5);
	ends(1, TTMON_STACK_NO_TABLE);
	copies(7, 2);
	ends(2, TTMON_STACK_NO_TABLE);
	copies(8, 3);
	send_file(promise(6));
	ends(3, TTMON_STACK_COMPLETE);
	send_file(to);
	copies(7, 4);
	ends(4, TTMON_STACK_COMPLETE);
}

/* More than it waits for: those that were asked for first cannot be had. */
static void many_files_that_never_come(void **state)
{
	int to[COMING_MAX + 1];

	(void)state;
	/* Seventeen of them take a second each, so all but the last are promised without being asked for. */
	for (uint32_t i = 0; i < ARRAY_SIZE(to) - 1; i++) {
		uint32_t object = 100 + i;
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		send_to_it(TTMON_UNWINDER_FILE, &object, sizeof(object), pair[0]);
		close(pair[0]);
		to[i] = pair[1];
	}
	maps_it(7, 5);
	copies(7, 1);
	to[COMING_MAX] = promise(5);
	ends(1, TTMON_STACK_NO_TABLE);
	assert_int_equal(ttmon_unwinder_send(to[0], "", 1, -1, true), -EPIPE);
	for (size_t i = 1; i < ARRAY_SIZE(to); i++) {
		assert_int_equal(ttmon_unwinder_send(to[i], "", 1, -1, true), 0);
		close(to[i]);
	}
	close(to[0]);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up_process, tear_down_process)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_that_comes),
		TEST(a_file_that_cannot_be_had),
		TEST(a_file_that_is_late),
		TEST(many_files_that_never_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
