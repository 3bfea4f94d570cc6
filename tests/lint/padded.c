// SPDX-License-Identifier: GPL-2.0-only
/*
 * padded.c: checks the layout of records. Compiling it is the test.
 *
 * No record has implicit padding (bytes that no program writes would carry kernel memory to user
 * space). Every record is a multiple of 8 bytes, and begins with the header of 24. If a struct has to
 * change, append to it and fill it up explicitly.
 */
#pragma GCC diagnostic error "-Wpadded"

#include <stddef.h>

#include <ttmon/event.h>
#include <ttmon/fns.h>
#include <ttmon/tt_fns.h>
#include <ttmon/shm.h>
#include <ttmon/slot.h>
#include <ttmon/tt_shm.h>

_Static_assert(sizeof(struct ttmon_event) == 24, "the header of every record");
_Static_assert(sizeof(struct ttmon_cpu_stat) % 64 == 0, "CPUs must not share a cache line");
_Static_assert(sizeof(struct ttmon_fn_desc) == 12, "read by the BPF programs");
_Static_assert(sizeof(struct ttmon_tt_desc) == 12 && sizeof(struct ttmon_tt_slot) == 16, "read by the BPF programs");

#define X(id, NAME, name, type, ...)                                                    \
	_Static_assert(sizeof(struct type) % 8 == 0, #NAME " is a multiple of 8");      \
	_Static_assert(offsetof(struct type, h) == 0, #NAME " begins with the header"); \
	_Static_assert(id == TTMON_EV_##NAME && id > 0 && id < TTMON_EV_MAX, #NAME " has its id");
TTMON_EVENT_TABLE(X)
#undef X

/* What follows the fixed part begins where the struct ends: the checks of lengths rely on it. */
_Static_assert(offsetof(struct ttmon_ev_alloc, frames) == sizeof(struct ttmon_ev_alloc), "frames");
_Static_assert(offsetof(struct ttmon_ev_text, text) == sizeof(struct ttmon_ev_text), "text");
_Static_assert(offsetof(struct ttmon_ev_object, path) == sizeof(struct ttmon_ev_object), "path");
_Static_assert(offsetof(struct ttmon_ev_map, name) == sizeof(struct ttmon_ev_map), "name");
_Static_assert(offsetof(struct ttmon_ev_symbol, name) == sizeof(struct ttmon_ev_symbol), "name");
_Static_assert(offsetof(struct ttmon_ev_tt_mesh, dev) == sizeof(struct ttmon_ev_tt_mesh), "dev");
_Static_assert(sizeof(struct ttmon_cpu_row) == TTMON_CPU_ROW_FULL &&
		       offsetof(struct ttmon_cpu_row, ctr) == TTMON_CPU_ROW_SHORT,
	       "rows");
_Static_assert(offsetof(struct ttmon_cpu_state, rows) ==
		       offsetof(struct ttmon_cpu_state, rec) + sizeof(struct ttmon_ev_cpu_slot),
	       "sent as they lie there");
_Static_assert(sizeof(struct ttmon_cpu_state) % 64 == 0, "CPUs must not share a cache line");
