/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/read/slots.h: the slot file of ttmond --slots-out: an encoder (a function of what is put in, no
 * file) and the one reader.
 *
 * The file, little-endian, or one gzip stream of it:
 *
 *	head	"ttmonsl1", u32 version (2), u32 length of the head, u64 start_ns, u64 real_ns, u32 nr_cpus, u32 0, char hostname[64],
 *		char ttmond[64], ... , u32 CRC-32 of all before it. A later version may put more before the CRC.
 *	block	u32 type (1), u32 length, u32 slots, u32 CRC-32 of these 12 bytes and the payload, payload
 *	...
 *	end	a block of type 2: varints slots, rows, dropped. A file without it was cut off or is still being written.
 *
 * A block knows nothing of the one before it, so that a file is read up to where it is damaged and
 * could be read from any block on. It holds a second or 64 KiB, but at least one slot. Its payload is
 * a table by columns, as varints (LEB128): the length of each of the 19 columns, then the columns:
 *
 *	slots	for each: a mask of the fields that are not as predicted (bit i: field i of slot_fields[], slots.c), and those
 *	index	for each row: which process of the block; the first that is not known yet: it is the next in `procs`
 *	procs	tgid, class, start_ns, length of comm, comm; a changed comm makes another process
 *	masks	for each row: the fields that are not as predicted (row_fields[])
 *	...	one column for each of row_fields
 *
 * What is predicted: counts 0; gauges (flags, rmid, pinned bytes, cache occupancy, the time of a
 * reading) as in the process's last row of the block; cycles as many a ns as there; local bandwidth
 * the total; a slot's number one more than the last; its user, kernel and idle time the sums of the
 * rows; the idle row what the rows before it leave of the slot. A count is stored as it is, what is
 * predicted as the zigzag difference modulo 2^64. So all fields come back exactly, but for padding and
 * bytes behind the NUL of a comm.
 *
 * Version 1 has no slot.known: the reader gives such slots without TTMON_SLOT_HAS_KNOWN. A reader of
 * version 1 refuses version 2, whose zeros it would show as figures.
 */
#ifndef TTMON_LIB_SLOTS_H
#define TTMON_LIB_SLOTS_H

#include <ttmon/slot.h>

#include "lib/base/util.h"

#define TTMON_SLOTS_VERSION   2
#define TTMON_SLOTS_HEAD      172	   /* bytes */
#define TTMON_SLOTS_END_MAX   48	   /* bytes */
#define TTMON_SLOTS_MAX_ROWS  (128u << 10) /* of a slot */
#define TTMON_SLOTS_MAX_PROCS (256u << 10) /* of a block */
#define TTMON_SLOTS_MAX_BLOCK (32u << 20)  /* bytes */

struct ttmon_slots_info {
	uint64_t start_ns, real_ns; /* CLOCK_MONOTONIC and CLOCK_REALTIME of one moment */
	uint32_t nr_cpus;
	char hostname[64], ttmond[64]; /* NUL-terminated, as they are: clean them before printing */
};

struct ttmon_slots_end {
	uint64_t slots, rows; /* in the file */
	uint64_t dropped;     /* slots that are not in it: there was no room in the queue */
};

struct ttmon_slots_item {
	struct ttmon_slot slot;
	uint64_t missed;		   /* slots before this one that were dropped */
	const struct ttmon_slot_row *rows; /* slot.nr_rows of them */
};

/* ---- encoder ---- */

struct ttmon_slots_enc;

int ttmon_slots_enc_new(struct ttmon_slots_enc **ret) _must_check;
void ttmon_slots_enc_free(struct ttmon_slots_enc *e);
void ttmon_slots_enc_head(const struct ttmon_slots_info *info, uint8_t ret[TTMON_SLOTS_HEAD]);
/* All or nothing. -ENOMEM, -E2BIG (too many rows). */
int ttmon_slots_enc_add(struct ttmon_slots_enc *e, const struct ttmon_slots_item *item) _must_check;
/* Is the block as long as it should get? */
bool ttmon_slots_enc_full(const struct ttmon_slots_enc *e);
/* Slots in the block. */
uint32_t ttmon_slots_enc_slots(const struct ttmon_slots_enc *e);
/*
 * The block of what was added, with its head; a new one begins. Valid until the next call. *len 0:
 * nothing was added. -ENOMEM.
 */
int ttmon_slots_enc_block(struct ttmon_slots_enc *e, const uint8_t **ret, size_t *len) _must_check;
/* Returns how many bytes. */
size_t ttmon_slots_enc_end(const struct ttmon_slots_end *end, uint8_t ret[TTMON_SLOTS_END_MAX]);

/* ---- reader ---- */

struct ttmon_slots_reader;

/*
 * Plain or gzip; "-" is standard input. On failure -errno with the reason in why, file name included:
 * -EBADMSG not a slot file or damaged, -EPROTONOSUPPORT another version.
 */
int ttmon_slots_open(const char *path, struct ttmon_slots_reader **ret, char *why, size_t n) _must_check;
/* The same of an open file, which is the reader's from now on, failed or not. name: for messages. */
int ttmon_slots_open_fd(int fd, const char *name, struct ttmon_slots_reader **ret, char *why, size_t n) _must_check;
void ttmon_slots_close(struct ttmon_slots_reader *s);
const struct ttmon_slots_info *ttmon_slots_get_info(const struct ttmon_slots_reader *s);
/*
 * 1: *ret is the next slot, its rows valid until the next call. 0: that was the last,
 * ttmon_slots_get_end() tells the totals. -errno, also from then on, ttmon_slots_why(): -ENODATA cut
 * off (or still being written), -EBADMSG damaged, -ENOMEM, ...
 */
int ttmon_slots_next(struct ttmon_slots_reader *s, struct ttmon_slots_item *ret) _must_check;
const struct ttmon_slots_end *ttmon_slots_get_end(const struct ttmon_slots_reader *s);
/* The text of the last error, file name included. */
const char *ttmon_slots_why(const struct ttmon_slots_reader *s);

static inline void ttmon_slots_closep(struct ttmon_slots_reader **s)
{
	ttmon_slots_close(*s);
}

#endif
