/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * evlog.h: the kept events of one allocation as a byte stream.
 *
 *   head      u8: kind (bits 0-3), memory (4-5), "bytes as before" (6), "bits as before" (7)
 *   time      varint, zigzag: difference to the event before (late ones go back)
 *   bits      varint, if not as before
 *   bytes     varint, if not as before
 *   offset    varint, zigzag: difference to where the event before ended
 *
 * Varints are little-endian base 128. The event before the first one is all zero.
 */
#ifndef TTMON_EVLOG_H
#define TTMON_EVLOG_H

#include "daemon/core/history/history.h"

/* The event before, against which the next one is encoded. */
struct ttmon_evlog_last {
	uint64_t ts_ns, bytes;
	uint64_t end; /* offset + bytes */
	uint16_t bits;
};

struct ttmon_evlog {
	uint8_t *buf;
	uint32_t len, cap;
	struct ttmon_evlog_last last;
};

int ttmon_evlog_add(struct ttmon_evlog *log, const struct ttmon_aev *ev) _must_check;
/*
 * Decodes the next event at *pos; ev holds the one before (zeroed where *pos is 0). False at the end.
 */
bool ttmon_evlog_next(const struct ttmon_evlog *log, uint32_t *pos, struct ttmon_aev *ev);
/* Drops the first n events; returns how many there were to drop. */
uint32_t ttmon_evlog_drop(struct ttmon_evlog *log, uint32_t n);
void ttmon_evlog_fini(struct ttmon_evlog *log);

#endif
