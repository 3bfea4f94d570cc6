/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pin.h: shared by the files of libttmon-pin.so, which is preloaded into a program that allocates
 * pinned memory. libttmon-pin(7) explains its purpose and settings.
 *
 *	wrap_rt.c wrap_drv.c   functions with CUDA's names, which the program calls
 *	block.c region.c       allocated memory: pinned, pageable, cached; pieces of pinned regions
 *	fence.c                which copies are in progress, so when memory can be reused
 *	move.c                 checkpoints: hot blocks are pinned in place, cold ones released
 *	conf.c advice.c        settings from the environment; what to do with an allocation
 *	real.c stats.c pool.c  CUDA's own functions; the report at exit; the pure part
 *
 * Allocations that should be pinned become pieces of a few pinned regions (region.c). With live
 * advice, which unpins single blocks, each block is pinned individually, and the cache (pool.c) keeps
 * freed ones.
 *
 * When can a freed pinned block or piece be reused? cudaFreeHost waits for the device, so a program
 * may free a buffer right after it enqueued a copy of it, or a kernel that reads it. In this library a
 * free does not wait. Instead:
 * - Only memory of sites that the user opted in is reused: by opting in, the user states that this
 *   memory is moved by copies and not read by kernels in place.
 * - After each asynchronous copy of such a block an event is recorded in the copy's stream (at the
 *   copy, not at the free, when the stream may be gone). The block is reused when CUDA reports that
 *   its events are done. Each block remembers two streams; a new stream with the handle of a destroyed
 *   one counts as another stream.
 * - A copy that cannot be followed that way marks the block: a copy captured into a graph, a third
 *   stream, an event that failed. Such a block is freed by CUDA, which waits. For a piece, the library
 *   waits for the device; if that is not possible, the piece is never reused, and its call site gets
 *   no more pieces of regions. In a program that builds graphs by hand, or makes batched copies, no
 *   memory is reused at all.
 * - Memory that is really freed goes through CUDA's own free; pageable or registered memory is freed
 *   after its events, or after waiting for the device.
 * - If the limit of pinned memory is reached and the blocks that fit are still being copied, the
 *   library waits for their events: the alternative, freeing other memory, would wait for more.
 * - A block is unpinned in place only while no asynchronous copy is being made anywhere and its own
 *   are known to be done; else it stays pinned until the next live advice.
 *
 * One mutex protects everything, and is never held while waiting. Blocks are registered and
 * unregistered in place under it.
 */
#ifndef TTMON_PIN_H
#define TTMON_PIN_H

#include <pthread.h>

#include <ttmon/client.h>

#include "lib/pin/arena.h"
#include "preload/pool.h"

#define TTMON_PIN_EXPORT __attribute__((__visibility__("default")))

/* CUDA's numbers, the same in both interfaces (runtime and driver). */
#define CUDA_VALUE	    1
#define CUDA_MEMORY	    2
#define CUDA_NO_SYMBOL	    302
#define CUDA_REGISTERED	    712
#define CUDA_NOT_REGISTERED 713
#define HOST_PORTABLE	    1u
#define HOST_MAPPED	    2u
#define HOST_WRITE_COMBINED 4u
#define EVENT_NO_TIMING	    2u
#define STREAM_PER_THREAD   ((void *)2)

/* ---- real.c ---- */

/*
 * The calls that both interfaces have, with the same arguments. Those behind `quiet` may be missing.
 */
#define TTMON_PIN_CALLS(F)                                                                                     \
	F(host_alloc, cudaHostAlloc, cuMemHostAlloc, (void **, size_t, unsigned int))                          \
	F(host_free, cudaFreeHost, cuMemFreeHost, (void *))                                                    \
	F(reg, cudaHostRegister, cuMemHostRegister_v2, (void *, size_t, unsigned int))                         \
	F(unreg, cudaHostUnregister, cuMemHostUnregister, (void *))                                            \
	F(device_ptr, cudaHostGetDevicePointer, cuMemHostGetDevicePointer_v2, (void **, void *, unsigned int)) \
	F(flags, cudaHostGetFlags, cuMemHostGetFlags, (unsigned int *, void *))                                \
	F(device_sync, cudaDeviceSynchronize, cuCtxSynchronize, (void))                                        \
	F(event_new, cudaEventCreateWithFlags, cuEventCreate, (void **, unsigned int))                         \
	F(event_free, cudaEventDestroy, cuEventDestroy_v2, (void *))                                           \
	F(event_record, cudaEventRecord, cuEventRecord, (void *, void *))                                      \
	F(event_done, cudaEventQuery, cuEventQuery, (void *))                                                  \
	F(event_wait, cudaEventSynchronize, cuEventSynchronize, (void *))                                      \
	F(device_count, cudaGetDeviceCount, cuDeviceGetCount, (int *))                                         \
	F(capturing, cudaStreamIsCapturing, cuStreamIsCapturing, (void *, int *))                              \
	F(capture_mode, cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int *))

struct ttmon_pin_api {
	bool found;  /* host_alloc and host_free were found */
	bool events; /* all functions needed to follow a copy were found */
#define F(field, rt, drv, params) int(*field) params;
	TTMON_PIN_CALLS(F)
#undef F
	/* Only one of the interfaces has these. */
	int (*free)(void *);	  /* cudaFree */
	int (*ctx_device)(int *); /* cuCtxGetDevice */
	int (*last_error)(void);
	int (*peek_error)(void);
};

/*
 * The functions of the runtime or the driver; looked up until they are found. Never NULL; check found.
 */
const struct ttmon_pin_api *ttmon_pin_rt(void);
const struct ttmon_pin_api *ttmon_pin_drv(void);
/*
 * Returns the error that an allocation would have here and now, above all on a machine without a
 * driver; 0: none.
 */
int ttmon_pin_usable(const struct ttmon_pin_api *api);
/* Returns a function of CUDA by its name; NULL: not found. The result is not cached. */
void *ttmon_pin_real(const char *name);
/* Prints one line on stderr, only the first time. Returns the error for the program. */
int ttmon_pin_missing(const char *name);

/*
 * Used around calls that the program does not know of: they must not end a stream capture of the
 * thread, nor leave an error for the program's next cudaGetLastError().
 */
struct ttmon_pin_quiet {
	const struct ttmon_pin_api *api;
	int mode;
	bool clean;
};
struct ttmon_pin_quiet ttmon_pin_quiet_begin(const struct ttmon_pin_api *api);
void ttmon_pin_quiet_end(struct ttmon_pin_quiet *q);
#define QUIET(api) \
	__attribute__((cleanup(ttmon_pin_quiet_end), unused)) struct ttmon_pin_quiet quiet_ = ttmon_pin_quiet_begin(api)

/*
 * Returns the function of this name, looked up when it is first called; NULL: not found. slot caches
 * it.
 */
void *ttmon_pin_forward(_Atomic uintptr_t *slot, const char *name);

/* ---- conf.c ---- */

enum ttmon_pin_mode { TTMON_PIN_MODE_ALL, TTMON_PIN_MODE_NONE, TTMON_PIN_MODE_ADVISED };

struct ttmon_pin_conf {
	enum ttmon_pin_mode mode;
	bool live;
	bool unknown_no_pin;
	bool all_sites;
	uint64_t *sites; /* keys, sorted */
	size_t nr_sites;
	bool at_device_sync, at_stream_sync;   /* what counts as a checkpoint */
	const char *sites_text, *stats, *base; /* as given; NULL: not set */
	struct ttmon_advisor *adv;	       /* NULL: no advice */
	int traced;			       /* live: result of ttmon_trace_self() */
	uint64_t known_pages;		       /* pages worth pinning at one time in earlier runs */
	uint64_t limit_pages;		       /* limit of the cache */
};

/*
 * Reads the environment, once, at the first call that matters. An error there is one line on stderr,
 * and then nothing is unpinned.
 */
const struct ttmon_pin_conf *ttmon_pin_conf(void);
bool ttmon_pin_opted_in(const struct ttmon_pin_conf *conf, uint64_t site);
_printf_(1, 2) void ttmon_pin_say(const char *fmt, ...);

/* ---- advice.c ---- */

/* Reasons why CUDA pins an allocation as usual, or what is done with it. */
#define TTMON_PIN_WHY_TABLE(X)                                                                 \
	X(PINNED, "pinned") /* should be pinned: this library caches and moves it */           \
	X(PAGEABLE, "pageable")                                                                \
	X(FLAGS, "flags")		/* mapped, portable or write-combined */               \
	X(IN_PLACE, "in_place")		/* the same, or a device pointer, in an earlier run */ \
	X(DEVICE_PTR, "device_pointer") /* device pointer requested in this run */             \
	X(NOT_OPTED_IN, "not_opted_in")                                                        \
	X(DEFAULT, "default")	  /* no memory may be unpinned */                              \
	X(NO_MEMORY, "no_memory") /* no pageable memory was available */                       \
	X(NO_FIT, "no_fit")	  /* should be pinned, but stays pageable: a new pin would cost more than it saves */

enum ttmon_pin_why {
#define X(id, name) TTMON_PIN_##id,
	TTMON_PIN_WHY_TABLE(X)
#undef X
		TTMON_PIN_WHY_MAX
};

struct ttmon_pin_plan {
	enum ttmon_pin_why why;
	uint64_t site;
	uint8_t verdict, match;
	bool alone;	/* it pays to pin it individually */
	uint64_t moved; /* bytes that such an allocation moves, if known */
};

/* Decides, and takes the next ordinal of the caller's site: call it once for each allocation. */
void ttmon_pin_decide(uint64_t size, unsigned int flags, struct ttmon_pin_plan *ret);
/* A device pointer of the site was requested: nothing of the site is unpinned in this run any more. */
void ttmon_pin_close_site(uint64_t site);

/* ---- block.c ---- */

struct ttmon_pin_fence {
	void *event;	 /* NULL: none */
	uint64_t stream; /* its handle, or a number for the default stream of a thread */
	uint64_t gone;	 /* number of streams destroyed by then, to distinguish a later stream with the same handle */
	bool pending;
};

enum ttmon_pin_how { TTMON_PIN_CUDA, TTMON_PIN_MAPPING, TTMON_PIN_PIECE };

struct ttmon_pin_block {
	uint64_t addr, size; /* size: as the program requested */
	uint64_t room;	     /* bytes available */
	uint64_t site;
	uint64_t born_ns; /* CLOCK_MONOTONIC */
	const struct ttmon_pin_api *api;
	struct ttmon_pin_fence fence[2];
	unsigned int flags;
	uint32_t next_free;
	uint32_t piece, resets; /* piece: in the arena; resets: number of resets before it was allocated */
	uint8_t how;		/* enum ttmon_pin_how */
	uint8_t wish;		/* set at a checkpoint: enum ttmon_live_kind + 1 */
	bool used;
	bool pinned;	/* pinned individually: a piece is part of a pinned region */
	bool managed;	/* opted in: may be cached and moved */
	bool in_place;	/* its device pointer was requested */
	bool apart;	/* in_place was set, or its flags mean the same, when it was allocated */
	bool announced; /* announced to a tracer, because CUDA was not called for it */
	bool unfenced;	/* a copy was made that no event follows */
	bool cached;
};

struct ttmon_pin_counts {
	uint64_t allocs, requested; /* successful allocations; their bytes */
	uint64_t why[TTMON_PIN_WHY_MAX], why_bytes[TTMON_PIN_WHY_MAX];
	uint64_t verdict[3], verdict_bytes[3];
	uint64_t match[TTMON_MATCH_MAX];
	uint64_t failed_allocs;
	/* wrong: pageable, although its device pointer was requested */
	uint64_t moved_in, moved_out, move_failed, wrong;
	uint64_t checkpoints, advice;
	uint64_t pieces, busy; /* pieces allocated; freed pieces found still being copied */
	uint64_t regions, regions_back;
};

struct ttmon_pin_state {
	pthread_mutex_t lock;
	struct ttmon_ranges ranges; /* from addr to block */
	struct ttmon_pin_block *blocks;
	uint32_t n, cap, free_list;
	struct ttmon_pin_pool pool;
	struct ttmon_pin_pages pages;
	uint64_t coming;	  /* pages of pins in progress */
	uint64_t apart;		  /* pinned pages that the cache's limit does not apply to: memory read in place */
	_Atomic uint64_t managed; /* number of live blocks: copies are only followed if there are any */
	uint64_t copying;	  /* asynchronous copies that have begun and are not followed yet */
	_Atomic uint64_t streams_destroyed;
	_Atomic uint64_t waits; /* number of waits for copies in progress before memory was freed */
	/*
	 * bytes of pageable or registered memory that is never freed, because it was not possible to wait for
	 * its copies
	 */
	_Atomic uint64_t leaked;
	_Atomic uint64_t retried; /* allocations that CUDA refused until the cache was empty */
	_Atomic bool no_reuse;	  /* after ttmon_pin_unfollowed() */
	bool child;		  /* in the child of a fork: there is no CUDA any more */
	struct ttmon_pin_counts count;
};
extern struct ttmon_pin_state ttmon_pin;

/* These behave as the CUDA calls that they replace. */
int ttmon_pin_alloc(const struct ttmon_pin_api *api, void **p, size_t size, unsigned int flags);
int ttmon_pin_free(const struct ttmon_pin_api *api, void *p);
int ttmon_pin_register(const struct ttmon_pin_api *api, void *p, size_t size, unsigned int flags);
int ttmon_pin_unregister(const struct ttmon_pin_api *api, void *p);
int ttmon_pin_flags(const struct ttmon_pin_api *api, unsigned int *flags, void *p);
int ttmon_pin_device_ptr(const struct ttmon_pin_api *api, void **dev, void *p, unsigned int flags);
/*
 * Call these before and after an asynchronous copy and its ttmon_pin_copied(): no block changes in
 * between. _begin returns the argument for _end.
 */
bool ttmon_pin_copy_begin(void);
void ttmon_pin_copy_end(bool begun);
/* A copy of the memory at p was enqueued in the stream. stream (void *)-1: it cannot be followed. */
void ttmon_pin_copied(const void *p, void *stream);
#define TTMON_PIN_UNKNOWN_STREAM ((void *)-1)
/*
 * A stream handle was destroyed. Copies that cannot be followed are about to be made, of any memory:
 * no block is reused any more.
 */
void ttmon_pin_stream_destroyed(void);
void ttmon_pin_unfollowed(void);

/* All of CUDA's host memory is about to be freed; sure false: it may be. */
void ttmon_pin_reset(bool sure);

/* Returns whether a cached block can be reused (a ttmon_pin_ready_fn). */
bool ttmon_pin_ready(void *ctx, uint32_t block);
void ttmon_pin_drop_events(struct ttmon_pin_block *b);
/* With the lock held. NULL: not ours, or freed. */
struct ttmon_pin_block *ttmon_pin_find(uint64_t addr);
/*
 * Waits until no copy of the block is in progress. Returns false if this is not known. The lock is not
 * held; only the caller uses the block.
 */
bool ttmon_pin_settle(struct ttmon_pin_block *b) _must_check;
/* Returns whether all followed copies of it are done. */
bool ttmon_pin_fences_done(struct ttmon_pin_block *b);
/*
 * Waits for all work of the process. Returns false if that is not possible: there are several devices,
 * and a wait is for one.
 */
bool ttmon_pin_wait_device(const struct ttmon_pin_api *api) _must_check;

/* ---- region.c ---- */

struct ttmon_pin_region {
	uint64_t addr, bytes; /* bytes 0: none */
	const struct ttmon_pin_api *api;
	/* number of pieces in use: the program's, freed ones that wait, and those that can never be reused */
	uint32_t given;
	bool retired; /* there was a reset since it was made */
};
/*
 * Around fork(): before the lock is taken and after it was released. _after returns whether there were
 * regions.
 */
void ttmon_pin_regions_before_fork(void);
bool ttmon_pin_regions_after_fork(void);
/* With the lock held, and valid as long as it is. NULL: the address is in no region. */
struct ttmon_pin_region *ttmon_pin_region_of(uint64_t addr);

enum ttmon_pin_piece_result {
	TTMON_PIN_PIECE_GIVEN,	  /* addr, room, how and piece of the block are set */
	TTMON_PIN_PIECE_LEFT_OUT, /* it should stay pageable: no piece is free, and a new pin would not pay */
	TTMON_PIN_PIECE_NONE,	  /* no more memory can be pinned for regions */
};
enum ttmon_pin_piece_result ttmon_pin_piece(struct ttmon_pin_block *b, const struct ttmon_pin_plan *plan);
/*
 * Handles a freed piece that is in no table any more. Waits only if its copies cannot be followed. The
 * lock is not held.
 */
void ttmon_pin_piece_freed(struct ttmon_pin_block *b);
/* Unpins all unused regions, after the copies of freed pieces are done. Returns their number. */
unsigned int ttmon_pin_regions_trim(void);
/* As ttmon_pin_reset(), for regions: none is used again. */
void ttmon_pin_regions_reset(bool sure);

/* ---- move.c ---- */

/*
 * Unpins a mapping, with the lock held. It stays pinned if copies may be in progress; the function
 * does not wait. idle: all copies are known to be done, including those not followed. Returns whether
 * it is pageable now.
 */
bool ttmon_pin_release(struct ttmon_pin_block *b, bool idle);

/*
 * Pins hot blocks and unpins cold ones by the live advice since the last checkpoint. label NULL: the
 * daemon was notified already.
 */
void ttmon_pin_checkpoint(const char *label);

#endif
