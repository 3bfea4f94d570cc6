/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * publish.h: where closed slots go: the segment in /dev/shm and the file of --slots-out. Created by
 * the cold thread, fed by the hot one.
 */
#ifndef TTMON_PUBLISH_H
#define TTMON_PUBLISH_H

#include <ttmon/event.h>

#include "daemon/io/files/shm.h"
#include "daemon/io/files/slotfile.h"
#include "daemon/run/opts.h"

struct ttmon_publish {
	struct ttmon_shm *shm;	     /* NULL: none */
	struct ttmon_shm *late;	     /* created, and not handed over yet */
	struct ttmon_slotfile *file; /* NULL: none */
	const char *path;
	uint64_t unpublished; /* slots that were written to neither */
};

/*
 * Opens what the options request, and logs errors. nr_cpus and clock: of this capture, or of the
 * recording that is replayed. Does not create the segment.
 */
int ttmon_publish_open(struct ttmon_publish *p, const struct ttmon_opts *opts, uint32_t nr_cpus) _must_check;
/* Creates the segment; NULL if the options have none. why: one clear line on failure. */
int ttmon_publish_segment(const struct ttmon_opts *opts, struct ttmon_shm **ret, char *why, size_t n) _must_check;
/* A ttmon_slot_fn; ctx is the struct ttmon_publish. */
bool ttmon_publish_slot(void *ctx, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows, size_t n);
/* Logs slots that were not written. */
int ttmon_publish_close(struct ttmon_publish *p);

#endif
