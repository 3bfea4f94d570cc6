/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * maps.h: the mappings of a process, from /proc/PID/maps (proc_pid_maps(5)). Any thread; reads one
 * file.
 */
#ifndef TTMON_OS_MAPS_H
#define TTMON_OS_MAPS_H

#include "lib/base/util.h"

/* One line of /proc/PID/maps. */
struct ttmon_mapping {
	uint64_t start, end, pgoff;
	uint32_t prot;	      /* PROT_* */
	bool shared, deleted; /* deleted: " (deleted)" was removed from the name */
	uint32_t dev_major, dev_minor;
	uint64_t ino;
	const char *name; /* "" if anonymous; valid during the callback; the octal escape \012 is converted back */
};
/*
 * Parses text in the format of /proc/PID/maps. Lines of another form are counted in *bad and skipped.
 * If cb returns a value other than 0, the function ends and returns it.
 */
int ttmon_maps_parse(const char *text, size_t n, int (*cb)(void *ctx, const struct ttmon_mapping *m), void *ctx,
		     uint64_t *bad);
/*
 * Reads and parses the maps of a process. proc_root: "/proc", or a copy of it. -ESRCH: there is no
 * such process.
 */
int ttmon_maps_read(const char *proc_root, uint32_t pid, int (*cb)(void *ctx, const struct ttmon_mapping *m),
		    void *ctx) _must_check;

#endif
