/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tt.h: memory of Tenstorrent chips, by process, device, chip and kind of memory.
 *
 * Part of the pipeline (hot thread, pure): events TT_BUFFER and TT_CALL in slot order, facts CLOCK
 * (when the trace began), TT_CHIP, TT_OBJECT, TT_PROC, TT_MESH, BLIND, and the lives of processes
 * (PROC, EXIT, GONE). Every number comes from a traced program's memory and is not trusted.
 *
 * A Buffer is counted by its address in its process. The layout of its fields is determined for each
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

/* What is wrong with a process's figures, as bits. */
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
	  "which circular buffers are left is not known: a program ended or ran again unseen, "                     \
	  "or cores could not be read")
enum ttmon_tt_flag {
#define X(id, NAME, name, help) TTMON_TT_F_##NAME = 1 << id,
	TTMON_TT_F_TABLE(X)
#undef X
};
#define TTMON_TT_FLAGS 9
/*
 * With one of these flags a process may hold more than its figures say: they are lower bounds, and a 0
 * means unknown.
 */
#define TTMON_TT_F_DOUBT                                                                                               \
	(TTMON_TT_F_PARTIAL | TTMON_TT_F_LOST | TTMON_TT_F_UNCALIBRATED | TTMON_TT_F_MESH_PENDING | TTMON_TT_F_LIMIT | \
	 TTMON_TT_F_CB_UNKNOWN)
/*
 * True if this type's figure is known for a process or chip with these flags. Memory of kernels is
 * never known: no probed call has it.
 */
static inline bool ttmon_tt_is_known(unsigned int type, uint64_t bytes, uint32_t flags)
{
	return type != TTMON_TT_TYPE_KERNEL && (bytes || !(flags & TTMON_TT_F_DOUBT));
}
const char *ttmon_tt_flag_name(unsigned int bit); /* by number, "partial" */
const char *ttmon_tt_flag_help(unsigned int bit);

struct ttmon_tt;

struct ttmon_tt_cfg {
	/* live buffers in total; 0: 4,000,000. Further ones are only counted, with the flag LIMIT */
	uint64_t max_buffers;
	/* true: ended processes stay in the view (a --dump-db run); false: only the last 256 do */
	bool keep_all;
};

/*
 * Called when a buffer is allocated and freed, so that the history can keep it as an allocation. seq:
 * the value that alloc returned. A NULL function is not called. method: TTMON_METHOD_TT_*; addr:
 * device address, 0 unknown; bytes: on all its devices together.
 */
struct ttmon_tt_ops {
	uint64_t (*alloc)(void *ctx, uint32_t tgid, uint64_t ts_ns, unsigned int method, uint64_t addr, uint64_t bytes,
			  uint16_t fn);
	void (*free)(void *ctx, uint64_t seq, uint64_t ts_ns, uint16_t fn);
	/* The allocation threw and never existed; called by the fallback only. */
	void (*undo)(void *ctx, uint64_t seq, uint64_t ts_ns);
};

/* A chip as the newest TT_CHIP fact of its index describes it. */
struct ttmon_tt_chip {
	struct ttmon_ev_tt_chip fact;
	uint64_t bytes[TTMON_TT_TYPES]; /* bytes now, of all processes that are published */
	uint64_t peak[TTMON_TT_TYPES];
	/*
		 * flags of the processes that use it or may use it: how reliable the bytes are (ttmon_tt_is_known())
		 */
	uint32_t flags;
	uint32_t ever; /* the same including ended processes: how reliable the peaks are */
};

/* What one process holds on one device. */
struct ttmon_tt_use {
	uint32_t proc;	  /* index in ttmon_tt_view.procs */
	uint32_t logical; /* id of the device in the process; TTMON_TT_NO_LOGICAL: unknown */
	uint32_t chip;	  /* index of a TT_CHIP fact, 0: unknown */
	uint32_t how;	  /* enum ttmon_tt_how */
	uint64_t bytes[TTMON_TT_TYPES], peak[TTMON_TT_TYPES];
	uint64_t buffers; /* live buffers */
	uint64_t allocs, frees;
};
#define TTMON_TT_NO_LOGICAL 0xffffffffu

struct ttmon_tt_process {
	uint32_t tgid;
	uint32_t flags;		   /* TTMON_TT_F_* */
	uint64_t start_ns, end_ns; /* end_ns 0: it runs */
	char comm[TTMON_COMM_LEN];
	const char *layout;	/* static text: "E2", "E2 checked", or why there is none: "no vtable matched" */
	uint64_t unknown_frees; /* frees of buffers older than the trace, or whose allocation was lost */
	uint64_t failed;	/* allocations that threw (seen only in degraded mode) */
	uint64_t hooked;	/* NO_DISPATCH captures, which took no memory */
	uint64_t refused;	/* events with invalid values */
	uint64_t pending_bytes; /* bytes of meshes whose chips are not known yet */
};

struct ttmon_tt_view {
	struct ttmon_tt_chip *chips;
	size_t nr_chips;
	const struct ttmon_tt_process *procs;
	size_t nr_procs;
	const struct ttmon_tt_use *uses; /* sorted by proc, then logical */
	size_t nr_uses;
	uint64_t generation; /* changes when any figure changes */
};

/* For the daemon: whether the spare probes of a slot (library) may be removed. */
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
 * Advances the stream time. Called before each event that is no fact, also where another part handles
 * the event. Facts come before it.
 */
void ttmon_tt_now(struct ttmon_tt *t, uint64_t ts_ns);
/*
 * Stream time has advanced: handles waiting meshes, fallback decisions, spare probes. Returns whether
 * anything waits for time; if not, and without new records, another call would change nothing but the
 * time.
 */
bool ttmon_tt_tick(struct ttmon_tt *t, uint64_t now_ns);
/* The end of the capture: what still waits is decided by the evidence so far. */
void ttmon_tt_finish(struct ttmon_tt *t, uint64_t end_ns);
/*
 * Records of kind TT_BUFFER or TT_CALL were lost up to now: flags the processes that run, or ran a
 * moment ago.
 */
void ttmon_tt_lost(struct ttmon_tt *t);
/* Copies everything for another thread, into arrays that ttmon_tt_view_fini() frees. -ENOMEM. */
int ttmon_tt_snapshot(const struct ttmon_tt *t, struct ttmon_tt_view *ret) _must_check;
void ttmon_tt_view_fini(struct ttmon_tt_view *v);
uint64_t ttmon_tt_generation(const struct ttmon_tt *t);

/*
 * Requests to the I/O thread. Each is returned once, and again every 100 ms of stream time until it is
 * answered, ten times at most.
 */
struct ttmon_tt_want {
	uint32_t tgid;
	uint16_t slot;
	uint64_t mesh; /* requests a TT_MESH fact; 0: requests TT_PROC for logical */
	uint32_t logical;
	uint64_t vt_device,
		vt_mesh; /* first words of Device and MeshDevice objects in that process as seen; 0: not seen */
};
size_t ttmon_tt_wants(struct ttmon_tt *t, struct ttmon_tt_want *wants, size_t max);
enum ttmon_tt_spare ttmon_tt_get_spare(const struct ttmon_tt *t, uint16_t slot);

/*
 * The devices that a device pointer of a process stands for: itself, or the local devices of a mesh.
 * Fills in at most max logical ids and chips (index of TT_CHIP, 0: unknown); returns their number, 0:
 * unknown. For core/dispatch.
 */
size_t ttmon_tt_devices(const struct ttmon_tt *t, uint32_t tgid, uint64_t device, uint32_t *logical, uint32_t *chips,
			size_t max);
/*
 * A program ran on this device at ts_ns: so the process has it open, even if the opening was not seen.
 * Returns its chip, 0: unknown.
 */
uint32_t ttmon_tt_ran_on(struct ttmon_tt *t, uint32_t tgid, uint32_t logical, uint64_t ts_ns);

#endif
