// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_rec.c: a hostile recording into the reader and the real pipeline behind it.
 *
 * The first byte of the input chooses. 0: the rest is the file. Else the rest is the raw contents of
 * one block, which is compressed and given its checksum here: what mutation alone would hardly ever
 * get past. What the pipeline accepted must add up in either case.
 */
#include <ttmon/rec.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <zlib.h>

#include "daemon/io/files/rec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WRAP_MAX 65536u

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void put(int fd, const void *data, size_t n)
{
	require(write(fd, data, n) == (ssize_t)n);
}

static void put_wrapped(int fd, const uint8_t *raw, size_t n)
{
	struct ttmon_rec_file file = {
		.magic = { 'T', 'T', 'M', 'O', 'N', 'R', 'E', 'C' },
		.version = TTMON_REC_VERSION,
		.bom = TTMON_REC_BOM,
		.nr_cpus = 4,
		.header_len = sizeof(file),
	};
	struct ttmon_rec_block head = { .type = TTMON_REC_DATA, .raw_len = (uint32_t)n };
	static uint8_t comp[WRAP_MAX + 4096];
	uLongf comp_len = sizeof(comp);

	require(compress2(comp, &comp_len, raw, n, 1) == Z_OK);
	head.comp_len = (uint32_t)comp_len;
	head.crc = (uint32_t)crc32(0, comp, (uInt)comp_len);
	put(fd, &file, sizeof(file));
	put(fd, &head, sizeof(head));
	put(fd, comp, comp_len);
}

static void check_sums(const struct ttmon_pipeline *p)
{
	struct ttmon_accounting a;
	uint64_t kernel = 0, facts = 0;

	ttmon_pipeline_accounting(p, &a);
	for (unsigned int kind = 0; kind < TTMON_EV_MAX; kind++)
		*(kind < TTMON_EV_FACT ? &kernel : &facts) += a.decoded[kind];
	require(kernel == a.slotted + a.late + a.arena_full + a.direct);
	require(facts == a.facts);
	require(a.closed == a.published + a.dropped);
}

static void replay(const char *path)
{
	struct ttmon_pipeline_cfg cfg = {
		.slots = { .window = 8, .arena_bytes = 1 << 16 },
		.history = { .keep_all = true, .max_allocations = 1000, .max_events = 1000 },
	};
	struct ttmon_rec_reader *r = NULL;
	struct ttmon_pipeline *p = NULL;
	uint64_t end_ns, dropped;
	int err;

	if (ttmon_rec_reader_open(path, &r))
		return;
	cfg.nr_cpus = ttmon_rec_reader_cpus(r);
	require(ttmon_pipeline_new(&cfg, NULL, NULL, &p) == 0);
	err = ttmon_rec_replay(r, p, UINT64_MAX, &end_ns, &dropped);
	require(err == 0 || err == -ENODATA || err == -EBADMSG);
	ttmon_pipeline_finish(p, end_ns);
	check_sums(p);
	ttmon_pipeline_free(p);
	ttmon_rec_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = -1;
	char path[64];

	if (size < 1 || size > WRAP_MAX)
		return 0;
	fd = memfd_create("fuzz_rec", MFD_CLOEXEC);
	require(fd >= 0);
	if (data[0])
		put_wrapped(fd, data + 1, size - 1);
	else
		put(fd, data + 1, size - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	replay(path);
	return 0;
}
