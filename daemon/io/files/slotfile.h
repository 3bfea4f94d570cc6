/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slotfile.h: --slots-out: writes every closed slot with its rows into a file, in a separate thread
 * behind a bounded queue. lib/read/slots.h defines the format and reads it.
 */
#ifndef TTMON_SLOTFILE_H
#define TTMON_SLOTFILE_H

#include <ttmon/slot.h>

#include "lib/base/util.h"

struct ttmon_slotfile;

struct ttmon_slotfile_info {
	uint64_t start_ns, real_ns; /* CLOCK_MONOTONIC and CLOCK_REALTIME of one moment */
	uint32_t nr_cpus;
	const char *hostname, *version;
};

/*
 * A name that ends in .gz is compressed. The file is written in place, so that it can be read while it
 * grows and after a crash. -errno.
 */
int ttmon_slotfile_new(const char *path, const struct ttmon_slotfile_info *info,
		       struct ttmon_slotfile **ret) _must_check;
/*
 * Hot thread; copies its arguments. False: the queue is full and the slot is not written (the file
 * says that slots are missing).
 */
bool ttmon_slotfile_put(struct ttmon_slotfile *f, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows,
			size_t n);
struct ttmon_slotfile_stats {
	uint64_t slots, rows, dropped, raw_bytes, file_bytes;
	int err; /* first write error, 0: none */
};
void ttmon_slotfile_get_stats(struct ttmon_slotfile *f, struct ttmon_slotfile_stats *ret);
/* Writes what waits, ends the thread, frees. Returns the first error. */
int ttmon_slotfile_close(struct ttmon_slotfile *f) _must_check;

#endif
