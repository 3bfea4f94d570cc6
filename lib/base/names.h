/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * names.h: names for the numbers of the event table (<ttmon/event.h>, <ttmon/fns.h>, <ttmon/tt_fns.h>)
 * and of the database, as metrics, JSON and tables show them. Pure, any thread. An unknown number
 * gives NULL.
 */
#ifndef TTMON_NAMES_H
#define TTMON_NAMES_H

#include <ttmon/event.h>
#include <ttmon/tt_fns.h>

#include "lib/base/util.h"

/* Name of a kind ("alloc"), or NULL. In lower case, as in metrics and JSON. */
const char *ttmon_event_name(unsigned int kind);
const char *ttmon_family_name(unsigned int family); /* "alloc"; NULL */
const char *ttmon_method_name(unsigned int method); /* "host_alloc"; NULL */
const char *ttmon_dir_name(unsigned int dir);	    /* "h2d"; NULL */
const char *ttmon_fn_name(unsigned int fn);	    /* "cudaHostAlloc", "user0".., "usdt:alloc"; NULL */
const char *ttmon_loss_name(unsigned int reason);
const char *ttmon_stack_by_name(unsigned int by);   /* enum ttmon_stack_by: "tables"; NULL */
const char *ttmon_stack_end_name(unsigned int end); /* enum ttmon_stack_end: "complete"; NULL */
/*
 * Returns the end of a sentence that explains the name: "by unwind tables", "it is whole"; NULL: no
 * such name.
 */
const char *ttmon_stack_by_help(const char *by);
const char *ttmon_stack_end_help(const char *end);
/*
 * Returns the name of an error code, such as "cudaErrorMemoryAllocation", or NULL; drv: err is a
 * CUresult instead of a cudaError_t (the numbers are equal since CUDA 10.1).
 */
const char *ttmon_cuda_error_name(int err);
/* The same for the error of a function; for tt-kmd err is -errno. */
const char *ttmon_error_name(unsigned int fn, int err);

/* Returns the description of a probed function of tt-metal, by id. NULL: no such function. */
const struct ttmon_tt_desc *ttmon_tt_fn(uint16_t fn);
const char *ttmon_tt_fn_name(uint16_t fn);

/* Kind of the host memory of a transfer. */
enum ttmon_mem { TTMON_MEM_PINNED, TTMON_MEM_PAGEABLE, TTMON_MEM_MANAGED, TTMON_MEM_UNKNOWN, TTMON_MEM_MAX };
const char *ttmon_mem_name(unsigned int mem); /* "pinned", ... */

/*
 * Directions of transfers, after cudaMemcpyDefault was resolved. UNKNOWN: Default, and the kind of
 * neither pointer is known.
 */
enum ttmon_rdir { TTMON_RDIR_H2H, TTMON_RDIR_H2D, TTMON_RDIR_D2H, TTMON_RDIR_D2D, TTMON_RDIR_UNKNOWN, TTMON_RDIR_MAX };
const char *ttmon_rdir_name(unsigned int rdir); /* "h2h", ..., "unknown" */

/* Kinds of events that are kept of an allocation. */
#define TTMON_AEV_TABLE(X)                                                                \
	X(0, H2D, "h2d")                                                                  \
	X(1, D2H, "d2h")                                                                  \
	X(2, TO_PINNED, "to_pinned") /* h2h; this allocation is the pinned destination */ \
	X(3, FROM_HOST, "h2h_src")                                                        \
	X(4, TO_HOST, "h2h_dst")                                                          \
	X(5, D2D_SRC, "d2d_src")                                                          \
	X(6, D2D_DST, "d2d_dst")                                                          \
	X(7, UNKNOWN_SRC, "unknown_src")                                                  \
	X(8, UNKNOWN_DST, "unknown_dst")                                                  \
	X(9, PREFETCH, "prefetch")                                                        \
	X(10, ADVISE, "advise")                                                           \
	X(11, DEVICE_PTR, "device_ptr") X(12, REGISTER, "register") X(13, UNREGISTER, "unregister")
enum ttmon_aev_kind {
#define X(id, NAME, name) TTMON_AEV_##NAME = id,
	TTMON_AEV_TABLE(X)
#undef X
		TTMON_AEV_MAX
};
const char *ttmon_aev_name(unsigned int kind);

/*
 * Why a run is not complete: the name in completeness.reasons of a database, and its meaning.
 * Append-only.
 */
#define TTMON_INCOMPLETE_TABLE(X)                                                                      \
	X(0, LOST, "lost", "events were lost")                                                         \
	X(1, MALFORMED, "malformed", "records were refused")                                           \
	X(2, ARENA_FULL, "arena_full", "too many events came at one time")                             \
	X(3, LIMIT, "limit", "a limit was reached")                                                    \
	X(4, REDUCED, "reduced", "probes were off, or only counting, for a time")                      \
	X(5, CUT, "cut", "it was written while the trace went on")                                     \
	X(6, IDENTITY, "identity", "the counts do not balance")                                        \
	X(7, ATTACHED_LATE, "attached_late", "a process ran before the trace")                         \
	X(8, COVERAGE_GAP, "coverage_gap", "a library ran before its probes were active")              \
	X(9, UNPROBED, "unprobed", "a CUDA runtime could not be probed")                               \
	X(10, TRUNCATED, "truncated", "a batch was longer than what is looked at")                     \
	X(11, UNKNOWN_FREES, "unknown_frees", "memory was freed whose allocation was not seen")        \
	X(12, ADDRESS_NOT_SEEN, "address_not_seen", "memory was allocated whose address was not seen") \
	X(13, NOT_TOLD_APART, "not_told_apart", "calls counted as parts of others that perhaps were none")
enum ttmon_incomplete {
#define X(id, NAME, name, help) TTMON_INCOMPLETE_##NAME = id,
	TTMON_INCOMPLETE_TABLE(X)
#undef X
		TTMON_INCOMPLETE_MAX
};
const char *ttmon_incomplete_name(unsigned int reason);
const char *ttmon_incomplete_help(unsigned int reason);

#endif
