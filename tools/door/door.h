/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * door.h: the front door: `ttmon run`, `attach`, `replay` and `serve`, which start ttmond(8), `ttmon
 * open`, which says what a file is, and `ttmon diff`. The commands themselves are in tools/cli/cmds.h.
 */
#ifndef TTMON_DOOR_H
#define TTMON_DOOR_H

#include "lib/base/util.h"

/* What a run is kept in where nothing else is said. */
#define TTMON_DOOR_DB "ttmon.json.gz"

/* What a file is, by what is in it. */
enum ttmon_door_kind {
	TTMON_DOOR_DATABASE,
	TTMON_DOOR_RECORDING,
	TTMON_DOOR_SLOTS,
	TTMON_DOOR_ACCESSES,   /* of kernels: ttmon memtrace record, ttmond --memtrace-out */
	TTMON_DOOR_TEXT_TRACE, /* the same as text: NVBit, Accel-Sim */
	TTMON_DOOR_TIMELINE,   /* ttmon trace */
	TTMON_DOOR_PAGE,       /* ttmon view */
	TTMON_DOOR_REPORT,     /* ttmon bugreport */
	TTMON_DOOR_UNKNOWN,
};
/* -errno: it cannot be read. */
int ttmon_door_look(const char *path, enum ttmon_door_kind *ret) _must_check;

#endif
