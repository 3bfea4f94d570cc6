/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tt.h: memory of Tenstorrent chips: who holds how much of what, by process, device and chip.
 *
 * Part of the pipeline (hot thread, pure): events TT_BUFFER and TT_CALL in slot order, facts CLOCK
 * (when the trace began), TT_CHIP, TT_OBJECT, TT_PROC, TT_MESH, BLIND, and the lives of processes
 * (PROC, EXIT, GONE). Every number comes out of a traced program's memory and is taken for hostile.
 *
 * A Buffer is counted by its address in its process. Which words of it mean what is found out for each
 * process and library (core/tt/layout.h): until that is settled, and where it fails, nothing of that
 * process is published, and the view says why. A buffer of a MeshDevice holds its size on every local
 * device of the mesh; per-device shadows and views are not counted again.
 */
#ifndef TTMON_TT_H
#define TTMON_TT_H

#include <ttmon/event.h>
#include <ttmon/family.h>
#include <ttmon/tt_fns.h>

#include "lib/base/util.h"

/* As ShmBufferType of tt-metal's memory_stats_shm.hpp (480e740f), without SYSTEM_MEMORY. */
#define TTMON_TT_TYPE_TABLE(X) \
	X(0, DRAM, "dram")     \
	X(1, L1, "l1")         \
	X(2, L1_SMALL, "l1_small") X(3, TRACE_BUF, "trace") X(4, CB, "cb") X(5, KERNEL, "kernel")
enum ttmon_tt_type {
#define X(id, NAME, name) TTMON_TT_TYPE_##NAME = id,
	TTMON_TT_TYPE_TABLE(X)
#undef X
		TTMON_TT_TYPES
};
const char *ttmon_tt_type_name(unsigned int type); /* "dram", ... */

/* What is wrong with a process's figures, bits. */
#define TTMON_TT_F_TABLE(X)                                                                                         \
	X(0, PARTIAL, "partial",                                                                                    \
	  "ran before the trace, or while its probes were not on: what it did then is not in the figures")          \
	X(1, DEGRADED, "degraded", "the primary probes never fire: allocations are taken from the inner functions") \
	X(2, LOST, "lost", "events were lost while it ran")                                                         \
	X(3, UNCALIBRATED, "uncalibrated", "the layout of its buffers could not be told: nothing is published")     \
	X(4, OWN_SHM, "own", "publishes its statistics by itself")                                                  \
	X(5, MESH_ASSUMED, "mesh assumed",                                                                          \
	  "which chips a mesh has was not seen for a time: its figures or peaks stood on an assumption")            \
	X(6, MESH_PENDING, "mesh pending", "buffers of a mesh whose chips are not known yet: not in the figures")   \
	X(7, LIMIT, "limit", "more buffers than are kept")                                                          \
	X(8, CB_UNKNOWN, "cb unknown",                                                                              \
	  "which circular buffers are left is not known: a program ended or ran again unseen, or cores could not be read")
enum ttmon_tt_flag {
#define X(id, NAME, name, help) TTMON_TT_F_##NAME = 1 << id,
	TTMON_TT_F_TABLE(X)
#undef X
};
#define TTMON_TT_FLAGS 9
/*
 * With one of these a process may hold more than its figures say: they are lower bounds, and a 0 is
 * unknown.
 */
#define TTMON_TT_F_DOUBT                                                                                               \
	(TTMON_TT_F_PARTIAL | TTMON_TT_F_LOST | TTMON_TT_F_UNCALIBRATED | TTMON_TT_F_MESH_PENDING | TTMON_TT_F_LIMIT | \
	 TTMON_TT_F_CB_UNKNOWN)
/*
 * Is this type's figure known, of a process or chip with these flags? What kernels take up is in no
 * call that is probed.
 */
static inline bool ttmon_tt_is_known(unsigned int type, uint64_t bytes, uint32_t flags)
{
	return type != TTMON_TT_TYPE_KERNEL && (bytes || !(flags & TTMON_TT_F_DOUBT));
}
const char *ttmon_tt_flag_name(unsigned int bit); /* by number, "partial" */
const char *ttmon_tt_flag_help(unsigned int bit);

struct ttmon_tt;

struct ttmon_tt_cfg {
	uint64_t max_buffers; /* live ones in all; 0: 4,000,000. Past it: counted, flag LIMIT */
	bool keep_all;	      /* ended processes stay in the view (a --dump-db run); else the last 256 */
};

/*
 * Called for every buffer that comes to be and ends, so that the history can keep it as an allocation.
 * seq: what the first returned. NULL functions: nobody is told. method: TTMON_METHOD_TT_*; addr:
 * device address, 0 unknown; bytes: on all its devices together.
 */
struct ttmon_tt_ops {
	uint64_t (*alloc)(void *ctx, uint32_t tgid, uint64_t ts_ns, unsigned int method, uint64_t addr, uint64_t bytes,
			  uint16_t fn);
	void (*free)(void *ctx, uint64_t seq, uint64_t ts_ns, uint16_t fn);
	/* It never was one: an allocation that threw, seen by the fallback. */
	void (*undo)(void *ctx, uint64_t seq, uint64_t ts_ns);
};

/* A chip as the TT_CHIP facts told it: the newest one of its index. */
struct ttmon_tt_chip {
	struct ttmon_ev_tt_chip fact;
	uint64_t bytes[TTMON_TT_TYPES]; /* now, of all processes that are published */
	uint64_t peak[TTMON_TT_TYPES];
	uint32_t
		flags; /* of the processes that use it, and of those that may: what the bytes are worth (ttmon_tt_is_known()) */
	uint32_t ever; /* also of those that have ended: the same for the peaks */
};

/* What one process holds on one device. */
struct ttmon_tt_use {
	uint32_t proc;	  /* index in ttmon_tt_view.procs */
	uint32_t logical; /* id of the device in the process; TTMON_TT_NO_LOGICAL: not known */
	uint32_t chip;	  /* index of a TT_CHIP fact, 0: unknown */
	uint32_t how;	  /* enum ttmon_tt_how */
	uint64_t bytes[TTMON_TT_TYPES], peak[TTMON_TT_TYPES];
	uint64_t buffers; /* live */
	uint64_t allocs, frees;
};
#define TTMON_TT_NO_LOGICAL 0xffffffffu

struct ttmon_tt_process {
	uint32_t tgid;
	uint32_t flags;		   /* TTMON_TT_F_* */
	uint64_t start_ns, end_ns; /* end_ns 0: running */
	char comm[TTMON_COMM_LEN];
	const char *layout;	/* static text: "E2", "E2 checked", or why none: "no vtable matched" */
	uint64_t unknown_frees; /* of buffers older than the trace, or whose allocation was lost */
	uint64_t failed;	/* allocations that threw (seen where the fallback counts) */
	uint64_t hooked;	/* NO_DISPATCH captures: took no memory */
	uint64_t refused;	/* events whose numbers made no sense */
	uint64_t pending_bytes; /* of meshes whose chips are not known yet */
};

struct ttmon_tt_view {
	struct ttmon_tt_chip *chips;
	size_t nr_chips;
	const struct ttmon_tt_process *procs;
	size_t nr_procs;
	const struct ttmon_tt_use *uses; /* sorted by proc, then logical */
	size_t nr_uses;
	uint64_t generation; /* changes whenever a figure does */
};

/* Slots (libraries), for the daemon: may their spare probes go? */
enum ttmon_tt_spare { TTMON_TT_SPARE_KEEP, TTMON_TT_SPARE_DROP };

int ttmon_tt_new(const struct ttmon_tt_cfg *cfg, const struct ttmon_tt_ops *ops, void *ctx,
		 struct ttmon_tt **ret) _must_check;
void ttmon_tt_free(struct ttmon_tt *t);
/* ttmon_tt_on_NAME(t, ev, size): a checked record; events in slot order, facts whenever they come. */
#define X(id, NAME, name, type, way, family, check, stream, timeline, history, tt, ...) \
	TTMON_IF_##tt(void ttmon_tt_on_##name(struct ttmon_tt *t, const struct type *ev, size_t size);)
TTMON_EVENT_TABLE(X)
#undef X
/*
 * Before each event that is no fact, also where another part handles it: the time of the stream. Facts
 * come before it.
 */
void ttmon_tt_now(struct ttmon_tt *t, uint64_t ts_ns);
/*
 * Stream time went on: meshes that wait, fallback decisions, spare probes. Returns whether anything
 * waits for time: if not, and nothing is told, the next call would change nothing but the time.
 */
bool ttmon_tt_tick(struct ttmon_tt *t, uint64_t now_ns);
/* The end of the capture: what waits is decided as it stands. */
void ttmon_tt_finish(struct ttmon_tt *t, uint64_t end_ns);
/*
 * Records of kind TT_BUFFER or TT_CALL were lost up to now: processes that run, or did a moment ago,
 * are flagged.
 */
void ttmon_tt_lost(struct ttmon_tt *t);
/* Everything, in arrays that one free(ret->...) each releases: for another thread. -ENOMEM. */
int ttmon_tt_snapshot(const struct ttmon_tt *t, struct ttmon_tt_view *ret) _must_check;
void ttmon_tt_view_fini(struct ttmon_tt_view *v);
uint64_t ttmon_tt_generation(const struct ttmon_tt *t);

/*
 * Questions for the I/O thread, each told once until answered (or 100 ms of stream time later again,
 * ten times at most).
 */
struct ttmon_tt_want {
	uint32_t tgid;
	uint16_t slot;
	uint64_t mesh; /* TT_MESH wanted; 0: TT_PROC wanted for logical */
	uint32_t logical;
	uint64_t vt_device,
		vt_mesh; /* first words of Device and MeshDevice objects in that process as seen; 0: not seen */
};
size_t ttmon_tt_wants(struct ttmon_tt *t, struct ttmon_tt_want *wants, size_t max);
enum ttmon_tt_spare ttmon_tt_get_spare(const struct ttmon_tt *t, uint16_t slot);

/*
 * Which devices a device pointer of a process stands for: itself, or the local devices of a mesh.
 * Fills at most max logical ids and chips (index of TT_CHIP, 0 unknown); returns how many, 0: not
 * known. For the dispatch side.
 */
size_t ttmon_tt_devices(const struct ttmon_tt *t, uint32_t tgid, uint64_t device, uint32_t *logical, uint32_t *chips,
			size_t max);
/*
 * A run of a program was told of this device at ts_ns: the process has it open, also where it opened
 * it unseen. Returns its chip, 0: unknown.
 */
uint32_t ttmon_tt_ran_on(struct ttmon_tt *t, uint32_t tgid, uint32_t logical, uint64_t ts_ns);

#endif
