// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_unwinder.c: the process that unwinds, with files that arrive, that never arrive, and that are
 * late: a late file delays one stack and no other, and is used when it is there.
 *
 * The process is part of the daemon, not of the archive that unit tests are linked with: its source is
 * included. The ring is shared memory.
 */
#include "tests/unit/feed/unwinder.h"

static int starter = -1, sock = -1;
static uint64_t *reading;
static uint32_t pid_of_it;

static void send_to_it(enum ttmon_unwinder_kind kind, const void *entry, size_t size, int fd)
{
	struct {
		struct ttmon_unwinder_head head;
		char entry[sizeof(struct ttmon_unwinder_map)];
	} msg = { .head = { .kind = kind, .n = size != 0 } };

	memcpy(msg.entry, entry, size);
	assert_int_equal(ttmon_unwinder_send(sock, &msg, sizeof(msg.head) + size, fd, true), 0);
}

/* Receives its next message, which must be of this kind. */
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

/* Starts another one, with the ring. */
static void start_one(void)
{
	struct ttmon_unwinder_setup setup = { .ring_bytes = RING, .depth = 8 };
	struct timeval patience = { .tv_sec = 30 };
	_cleanup_close_ int fd = eventfd(0, EFD_CLOEXEC);
	struct ttmon_unwinder_stack hello;

	assert_int_equal(ttmon_unwinder_new(starter, &sock), 0);
	assert_int_equal(setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	hello = hears(TTMON_UNWINDER_HELLO);
	memcpy(&pid_of_it, &hello, sizeof(pid_of_it));
	send_to_it(TTMON_UNWINDER_SETUP, &setup, sizeof(setup), fd);
}

static int set_up_process(void **state)
{
	(void)state;
	if (make_ring() || ttmon_unwinder_start(&starter, &reading))
		return -1;
	start_one();
	return 0;
}

static int tear_down_process(void **state)
{
	(void)state;
	close(sock);
	if (starter >= 0)
		close(starter);
	return munmap(shared.consumer, RING + 4096) || munmap(reading, sizeof(*reading));
}

static void maps_it(uint32_t tgid, uint32_t object)
{
	struct ttmon_unwinder_map m = {
		.ts_ns = ttmon_mono_ns(), .start = CODE, .end = CODE + EH_SIZE, .tgid = tgid, .object = object
	};

	send_to_it(TTMON_UNWINDER_MAP, &m, sizeof(m), -1);
}

static void copies(uint32_t tgid, uint64_t id)
{
	put_copy(tgid, id);
	send_to_it(TTMON_UNWINDER_LOOK, "", 0, -1);
}

/*
 * It requests a file, and is notified that the file will come. Returns the socket to which the file is
 * sent.
 */
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
	/* It has the file. */
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
	/* The file is not requested again. */
	copies(7, 2);
	ends(2, TTMON_STACK_NO_TABLE);
}

/*
 * The opener of the file does not answer: one stack has waited for the file, one of another program
 * has not, and the file is noticed when it comes.
 */
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

/* More files than it waits for: those that were requested first are given up. */
static void many_files_that_never_come(void **state)
{
	int to[COMING_MAX + 1];

	(void)state;
	/* Seventeen of them take a second each, so all but the last are promised without a request. */
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

/*
 * It reports in which file it hangs. When it is killed, another one continues with the remaining
 * copies.
 */
static void a_file_that_hangs(void **state)
{
	int empty = memfd_create("hangs", MFD_CLOEXEC), to;
	struct pollfd p;

	(void)state;
	maps_it(7, 5);
	copies(7, 1);
	to = promise(5);
	assert_int_equal(ttmon_unwinder_send(to, "", 1, empty, true), 0);
	close(to);
	while ((uint32_t)__atomic_load_n(reading, __ATOMIC_RELAXED) != 5)
		sched_yield();
	kill((pid_t)pid_of_it, SIGKILL);
	p = (struct pollfd){ .fd = sock };
	assert_int_equal(poll(&p, 1, 30000), 1);
	close(sock);
	start_one();
	assert_int_equal((uint32_t)__atomic_load_n(reading, __ATOMIC_RELAXED), 0);
	maps_it(7, 5);
	send_to_it(TTMON_UNWINDER_LOOK, "", 0, -1);
	close(promise(5));
	ends(1, TTMON_STACK_NO_TABLE);
	close(empty);
}

/*
 * The process that started it, here instead of the daemon, has ended: it ends too, wherever it hangs.
 */
static void one_that_hangs_at_the_end(void **state)
{
	int empty = memfd_create("hangs", MFD_CLOEXEC), to;
	struct pollfd p = { .fd = sock };

	(void)state;
	maps_it(7, 5);
	copies(7, 1);
	to = promise(5);
	assert_int_equal(ttmon_unwinder_send(to, "", 1, empty, true), 0);
	close(to);
	while ((uint32_t)__atomic_load_n(reading, __ATOMIC_RELAXED) != 5)
		sched_yield();
	close(TAKE_FD(starter));
	assert_int_equal(poll(&p, 1, 30000), 1);
	assert_true(p.revents & POLLHUP);
	close(empty);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up_process, tear_down_process)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_that_comes),	  TEST(a_file_that_cannot_be_had), TEST(a_file_that_is_late),
		TEST(many_files_that_never_come), TEST(a_file_that_hangs),	   TEST(one_that_hangs_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
