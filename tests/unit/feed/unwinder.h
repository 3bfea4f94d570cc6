/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * unwinder.h: the process that unwinds (daemon/io/unwind), compiled from its sources, for tests: the
 * ring is memory that the test and the process share, and reading the tables of an empty file hangs.
 */
#ifndef TTMON_TEST_UNWINDER_H
#define TTMON_TEST_UNWINDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/eventfd.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "daemon/io/bpf/ring.c"
#include "lib/unwind/unwind.h"

static int map_shared(struct ttmon_ring *r, int map_fd, uint64_t size);
static int open_or_hang(int fd, struct ttmon_uw_table **ret);

#include "daemon/io/unwind/box.c"
#define ttmon_ring_map	    map_shared
#define ttmon_uw_table_open open_or_hang
#include "daemon/io/unwind/codes.c"
#include "daemon/io/unwind/process.c"
#undef ttmon_uw_table_open
#undef ttmon_ring_map
#include "daemon/io/unwind/unwinder.c"
#include "tests/unit/feed/eh_image.h"

#define RING 0x40000u
#define CODE 0x10000000u
#define SP   0x7fff0000u

static struct ttmon_ring shared;

static int map_shared(struct ttmon_ring *r, int map_fd, uint64_t size)
{
	(void)map_fd;
	*r = shared;
	(void)size;
	return 0;
}

/* Before the process is started. */
static int make_ring(void)
{
	uint64_t *at = mmap(NULL, RING + 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -1;
	shared = (struct ttmon_ring){ .consumer = at, .producer = at + 1, .data = (uint8_t *)at + 4096, .size = RING };
	return 0;
}

/* Opens a file; with an empty file it hangs. */
static int open_or_hang(int fd, struct ttmon_uw_table **ret)
{
	struct stat st;

	if (!fstat(fd, &st) && !st.st_size)
		pause();
	return ttmon_uw_table_open(fd, ret);
}

/* A stack of one frame without a caller. */
static void put_copy(uint32_t tgid, uint64_t id)
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
}

/* A file with the tables of that code. */
static int image(void)
{
	static struct eh_image im = { .kind = EH_WITH_HDR };

	im.at = im.n = 0;
	eh_cie(&im, "zR");
	eh_fde(&im, 0, 100, "", 0);
	return eh_file(&im);
}

#endif
