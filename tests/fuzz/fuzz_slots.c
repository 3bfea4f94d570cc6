// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_slots.c: any bytes as a slot file, plain or gzip, read to the end. The blocks are sealed again
 * before a second reading, so that what is behind the checksums is reached too. What comes out is put
 * in again and must come out the same.
 */
#include <sys/mman.h>
#include <zlib.h>

#include "lib/read/slots.h"

#define MAX_ITEMS 64

/* Each block that lies in the file gets the checksum of what it holds. */
static void seal(uint8_t *p, size_t size)
{
	uint32_t len, crc;
	size_t at = TTMON_SLOTS_HEAD;

	if (size < TTMON_SLOTS_HEAD)
		return;
	crc = (uint32_t)crc32(0, p, TTMON_SLOTS_HEAD - 4);
	memcpy(p + TTMON_SLOTS_HEAD - 4, &crc, sizeof(crc));
	while (size - at >= 16) {
		memcpy(&len, p + at + 4, sizeof(len));
		if (len > size - at - 16)
			return;
		crc = (uint32_t)crc32(crc32(0, p + at, 12), p + at + 16, len);
		memcpy(p + at + 12, &crc, sizeof(crc));
		at += 16 + len;
	}
}

static int open_bytes(const uint8_t *p, size_t n, struct ttmon_slots_reader **ret)
{
	int fd = memfd_create("slots", MFD_CLOEXEC), err;
	char why[600] = "";

	if (fd < 0 || write(fd, p, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET))
		abort();
	err = ttmon_slots_open_fd(fd, "x", ret, why, sizeof(why));
	if ((err != 0) != (why[0] != '\0'))
		abort();
	return err;
}

static void check(const struct ttmon_slots_item *item)
{
	if (item->slot.nr_rows > TTMON_SLOTS_MAX_ROWS)
		abort();
	for (uint32_t i = 0; i < item->slot.nr_rows; i++)
		if (item->rows[i].cls >= TTMON_ROW_CLASS_MAX || item->rows[i].comm[15])
			abort();
}

/* The slots, coded once more: the same come out. */
static void again(const uint8_t *data, size_t size, struct ttmon_slots_enc *e)
{
	const struct ttmon_slots_info info = { .nr_cpus = 1 };
	struct ttmon_slots_reader *s = NULL, *t = NULL;
	struct ttmon_slots_item a, b;
	uint8_t head[TTMON_SLOTS_HEAD], *copy;
	const uint8_t *block = NULL;
	size_t len = 0;
	int n = 0;

	if (open_bytes(data, size, &s))
		return;
	for (; n < MAX_ITEMS && ttmon_slots_next(s, &a) == 1; n++)
		if (ttmon_slots_enc_add(e, &a))
			abort();
	ttmon_slots_close(s);
	if (!n)
		return;
	if (ttmon_slots_enc_block(e, &block, &len) || !len)
		abort();
	ttmon_slots_enc_head(&info, head);
	copy = malloc(sizeof(head) + len);
	memcpy(copy, head, sizeof(head));
	memcpy(copy + sizeof(head), block, len);
	if (open_bytes(data, size, &s) || open_bytes(copy, sizeof(head) + len, &t))
		abort();
	while (n--) {
		if (ttmon_slots_next(s, &a) != 1 || ttmon_slots_next(t, &b) != 1)
			abort();
		if (memcmp(&a.slot, &b.slot, sizeof(a.slot)) || a.missed != b.missed ||
		    (a.slot.nr_rows && memcmp(a.rows, b.rows, a.slot.nr_rows * sizeof(*a.rows))))
			abort();
	}
	if (ttmon_slots_next(t, &b) != -ENODATA)
		abort();
	ttmon_slots_close(s);
	ttmon_slots_close(t);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	struct ttmon_slots_enc *e;

	memcpy(copy, data, size);
	for (int sealed = 0; sealed < 2; sealed++) {
		struct ttmon_slots_reader *s = NULL;
		struct ttmon_slots_item item;
		int r;

		if (!open_bytes(copy, size, &s)) {
			while ((r = ttmon_slots_next(s, &item)) == 1)
				check(&item);
			if ((r != 0) != (ttmon_slots_why(s)[0] != '\0'))
				abort();
		}
		ttmon_slots_close(s);
		seal(copy, size);
	}
	if (ttmon_slots_enc_new(&e))
		abort();
	again(copy, size, e);
	ttmon_slots_enc_free(e);
	free(copy);
	return 0;
}
