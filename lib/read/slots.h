/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/read/slots.h: the slot file of ttmond --slots-out: an encoder, which only works in memory, and
 * the reader.
 *
 * The file, little-endian, or one gzip stream of it:
 *
 *	head	"ttmonsl1", u32 version (2), u32 length of the head, u64 start_ns, u64 real_ns, u32
 *		nr_cpus, u32 0, char hostname[64],
 *		char ttmond[64], ... , u32 CRC-32 of all before it. A later version may put more
 *		before the CRC.
 *	block	u32 type (1), u32 length, u32 slots, u32 CRC-32 of these 12 bytes and the payload,
 *		payload
 *	...
 *	end	a block of type 2: varints slots, rows, dropped. A file without it was cut off or is
 *		still being written.
 *
 * A block does not depend on the one before it, so that a damaged file can be read up to the damage,
 * and reading could begin at any block. It has a second of slots or 64 KiB, but at least one slot. Its
 * payload is a table stored by columns, as varints (LEB128): the length of each of the 19 columns,
 * then the columns:
 *
 *	slots	for each: a mask of the fields that are not as predicted (bit i: field i of
 *		slot_fields[], slots.c), and those
 *	index	for each row: which process of the block; the first that is not known yet: it is the
 *		next in `procs`
 *	procs	tgid, class, start_ns, length of comm, comm; a changed comm makes another process
 *	masks	for each row: the fields that are not as predicted (row_fields[])
 *	...	one column for each of row_fields
 *
 * The predictions: a count is 0; gauges (flags, rmid, pinned bytes, cache occupancy, the time of a
 * reading) are the same as in the process's last row of the block; cycles are proportional to CPU time
 * as in that row; local bandwidth is the total; a slot's number is one more than the last; its user,
 * kernel and idle times are the sums of its rows; the time of the idle row is what the rows before it
 * leave of the slot. A count is stored as it is, the other fields as the zigzag difference from the
 * prediction modulo 2^64. So all fields are restored exactly, except padding and bytes behind the NUL
 * of a comm.
 *
 * Version 1 has no slot.known: the reader gives such slots without TTMON_SLOT_HAS_KNOWN. A reader of
 * version 1 refuses version 2, because it would show unknown figures as zeros.
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
	uint64_t start_ns, real_ns; /* CLOCK_MONOTONIC and CLOCK_REALTIME at the same moment */
	uint32_t nr_cpus;
	char hostname[64], ttmond[64]; /* NUL-terminated, not cleaned: clean them before printing */
};

struct ttmon_slots_end {
	uint64_t slots, rows; /* totals of the file */
	uint64_t dropped;     /* number of slots left out because the queue was full */
};

struct ttmon_slots_item {
	struct ttmon_slot slot;
	uint64_t missed;		   /* number of slots dropped before this one */
	const struct ttmon_slot_row *rows; /* slot.nr_rows rows */
};

/* ---- encoder ---- */

struct ttmon_slots_enc;

int ttmon_slots_enc_new(struct ttmon_slots_enc **ret) _must_check;
void ttmon_slots_enc_free(struct ttmon_slots_enc *e);
void ttmon_slots_enc_head(const struct ttmon_slots_info *info, uint8_t ret[TTMON_SLOTS_HEAD]);
/* Adds a slot completely or not at all. Returns 0, -ENOMEM, or -E2BIG (too many rows). */
int ttmon_slots_enc_add(struct ttmon_slots_enc *e, const struct ttmon_slots_item *item) _must_check;
/* Returns whether the block should be ended. */
bool ttmon_slots_enc_full(const struct ttmon_slots_enc *e);
/* Returns the number of slots in the block. */
uint32_t ttmon_slots_enc_slots(const struct ttmon_slots_enc *e);
/*
 * Returns the block of the slots that were added, with its head, and begins a new one. Valid until the
 * next call. *len 0: nothing was added. -ENOMEM.
 */
int ttmon_slots_enc_block(struct ttmon_slots_enc *e, const uint8_t **ret, size_t *len) _must_check;
/* Returns the number of bytes. */
size_t ttmon_slots_enc_end(const struct ttmon_slots_end *end, uint8_t ret[TTMON_SLOTS_END_MAX]);

/* ---- reader ---- */

struct ttmon_slots_reader;

/*
 * Opens a file, plain or gzip; "-" is standard input. On failure -errno, with the reason and the file
 * name in why: -EBADMSG: not a slot file, or damaged; -EPROTONOSUPPORT: another version.
 */
int ttmon_slots_open(const char *path, struct ttmon_slots_reader **ret, char *why, size_t n) _must_check;
/*
 * The same for an open file, which the reader owns from now on, even on failure. name: for messages.
 */
int ttmon_slots_open_fd(int fd, const char *name, struct ttmon_slots_reader **ret, char *why, size_t n) _must_check;
void ttmon_slots_close(struct ttmon_slots_reader *s);
const struct ttmon_slots_info *ttmon_slots_get_info(const struct ttmon_slots_reader *s);
/*
 * Returns 1: *ret is the next slot; its rows are valid until the next call; 0: there are no more, and
 * ttmon_slots_get_end() returns the totals; -errno, also on all later calls, with the text of
 * ttmon_slots_why(): -ENODATA: cut off, or still being written; -EBADMSG: damaged; -ENOMEM, ...
 */
int ttmon_slots_next(struct ttmon_slots_reader *s, struct ttmon_slots_item *ret) _must_check;
const struct ttmon_slots_end *ttmon_slots_get_end(const struct ttmon_slots_reader *s);
/* Returns the text of the last error, with the file name. */
const char *ttmon_slots_why(const struct ttmon_slots_reader *s);

static inline void ttmon_slots_closep(struct ttmon_slots_reader **s)
{
	ttmon_slots_close(*s);
}

#endif
