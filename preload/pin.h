/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pin.h: libttmon-pin.so, preloaded into a program that allocates pinned memory: between its files.
 * What it is for and how it is told is in libttmon-pin(7).
 *
 *	wrap_rt.c wrap_drv.c   CUDA's names, as the program calls them
 *	block.c region.c       memory given out: pinned, pageable, cached; pieces of pinned regions
 *	fence.c                which copies are under way, so when memory can be given out again
 *	move.c                 checkpoints: hot blocks are pinned in place, cold ones released
 *	conf.c advice.c        what it was told by the environment; what to do with an allocation
 *	real.c stats.c pool.c  CUDA's own functions; the report at exit; the pure part
 *
 * What is advised to be pinned is given out as pieces of few pinned regions (region.c). With live
 * advice, which unpins single blocks, each is pinned by itself, and the cache (pool.c) keeps freed
 * ones.
 *
 * When is a freed pinned block or piece given out again? cudaFreeHost waits for the device, so a
 * program may free a buffer right after it enqueued a copy of it, or a kernel that reads it. Here
 * nothing waits at a free. Instead:
 *  - Only memory of sites that the user opted in is used again: by that he says that their memory is
 *    moved by copies and not read by kernels in place.
 *  - After each asynchronous copy of such a block an event is recorded in the copy's stream (at the
 *    copy, not at the free, when the stream may be gone). The block is given out when CUDA says that
 *    its events are done. Two streams are remembered per block; a stream that was destroyed is another
 *    one from then on, though its handle comes again.
 *  - What cannot be followed that way marks the block: a copy that was captured into a graph, a third
 *    stream, an event that failed. It goes back to CUDA at its free, which waits; for a piece the
 *    device is waited for, and where that cannot be it is never given out again, nor is memory of its
 *    call site cut from regions any more. A program that builds graphs by hand, or copies by batches,
 *    gets no memory a second time at all.
 *  - Memory that has to go for good goes through CUDA's own free, and pageable or registered memory
 *    after its events, or after the device was waited for.
 *  - Where as much is pinned as is to be and what fits is still being copied, its events are waited
 *    for: other memory would have to be freed, which waits for more.
 *  - A block is unpinned in place only while no asynchronous copy is being made anywhere and its own
 *    are known to be done; else it stays pinned, until live advice says so again.
 *
 * One mutex guards everything; nothing is waited for under it. Blocks are registered and unregistered
 * under it, where they are.
 */
#ifndef TTMON_PIN_H
#define TTMON_PIN_H

#include <pthread.h>

#include <ttmon/client.h>

#include "lib/pin/arena.h"
#include "preload/pool.h"

#define TTMON_PIN_EXPORT __attribute__((__visibility__("default")))

/* CUDA's numbers, the same in both interfaces. */
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
	bool found;  /* host_alloc and host_free */
	bool events; /* all that following a copy needs */
#define F(field, rt, drv, params) int(*field) params;
	TTMON_PIN_CALLS(F)
#undef F
	/* One interface alone has them. */
	int (*free)(void *);	  /* cudaFree */
	int (*ctx_device)(int *); /* cuCtxGetDevice */
	int (*last_error)(void);
	int (*peek_error)(void);
};

/* The runtime's or the driver's; looked for until it is found. Never NULL; check found. */
const struct ttmon_pin_api *ttmon_pin_rt(void);
const struct ttmon_pin_api *ttmon_pin_drv(void);
/*
 * What an allocation would fail with here and now, a machine without a driver above all; 0: it would
 * not.
 */
int ttmon_pin_usable(const struct ttmon_pin_api *api);
/* A function of CUDA's by its name, NULL: nowhere. The answer is not kept. */
void *ttmon_pin_real(const char *name);
/* One line on stderr, the first time only. Returns the error for the program. */
int ttmon_pin_missing(const char *name);

/*
 * Around calls that the program knows nothing of: they neither end a capture that a thread of it has
 * going, nor leave an error behind for its next cudaGetLastError().
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

/* The function of this name, looked for once it is called; NULL: nowhere. slot keeps it. */
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
	bool at_device_sync, at_stream_sync;   /* checkpoints */
	const char *sites_text, *stats, *base; /* as given; NULL: not */
	struct ttmon_advisor *adv;	       /* NULL: nothing to ask */
	int traced;			       /* live: what ttmon_trace_self() returned */
	uint64_t known_pages;		       /* worth pinning at one time in earlier runs */
	uint64_t limit_pages;		       /* of the cache */
};

/*
 * Reads the environment, once, at the first call that matters. What is wrong there is a line on
 * stderr, and then nothing is unpinned.
 */
const struct ttmon_pin_conf *ttmon_pin_conf(void);
bool ttmon_pin_opted_in(const struct ttmon_pin_conf *conf, uint64_t site);
_printf_(1, 2) void ttmon_pin_say(const char *fmt, ...);

/* ---- advice.c ---- */

/* Why an allocation is pinned by CUDA and left alone, or what is done with it. */
#define TTMON_PIN_WHY_TABLE(X)                                                                 \
	X(PINNED, "pinned") /* advised, and this library's to cache and move */                \
	X(PAGEABLE, "pageable")                                                                \
	X(FLAGS, "flags")		/* mapped, portable or write-combined */               \
	X(IN_PLACE, "in_place")		/* the same, or a device pointer, in an earlier run */ \
	X(DEVICE_PTR, "device_pointer") /* asked for in this run */                            \
	X(NOT_OPTED_IN, "not_opted_in")                                                        \
	X(DEFAULT, "default")	  /* nothing was to be unpinned */                             \
	X(NO_MEMORY, "no_memory") /* pageable memory was not to be had */                      \
	X(NO_FIT, "no_fit")	  /* advised, and pageable: pinning it anew would cost more than that */

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
	bool alone;	/* it pays to pin it by itself */
	uint64_t moved; /* bytes that such an allocation moves, as far as that is known */
};

/* Takes the next ordinal of the caller's site: once per allocation. */
void ttmon_pin_decide(uint64_t size, unsigned int flags, struct ttmon_pin_plan *ret);
/* A device pointer of the site was asked for: nothing of it is unpinned in this run any more. */
void ttmon_pin_close_site(uint64_t site);

/* ---- block.c ---- */

struct ttmon_pin_fence {
	void *event;	 /* NULL: none */
	uint64_t stream; /* its handle, or a number of the thread whose default it is */
	uint64_t gone;	 /* streams destroyed by then: one that has the handle later is another */
	bool pending;
};

enum ttmon_pin_how { TTMON_PIN_CUDA, TTMON_PIN_MAPPING, TTMON_PIN_PIECE };

struct ttmon_pin_block {
	uint64_t addr, size; /* size: as the program asked */
	uint64_t room;	     /* bytes that are there */
	uint64_t site;
	uint64_t born_ns; /* CLOCK_MONOTONIC */
	const struct ttmon_pin_api *api;
	struct ttmon_pin_fence fence[2];
	unsigned int flags;
	uint32_t next_free;
	uint32_t piece, resets; /* of the arena; how many resets there were before it was given out */
	uint8_t how;		/* enum ttmon_pin_how */
	uint8_t wish;		/* at a checkpoint: enum ttmon_live_kind, and 1 */
	bool used;
	bool pinned;	/* by itself: a piece is part of a pinned region */
	bool managed;	/* opted in: cached, moved */
	bool in_place;	/* its device pointer was asked for */
	bool apart;	/* was so, or had flags that mean it, when it was allocated */
	bool announced; /* to a tracer: CUDA was not asked for it */
	bool unfenced;	/* copied in a way that no event follows */
	bool cached;
};

struct ttmon_pin_counts {
	uint64_t allocs, requested; /* that succeeded; bytes */
	uint64_t why[TTMON_PIN_WHY_MAX], why_bytes[TTMON_PIN_WHY_MAX];
	uint64_t verdict[3], verdict_bytes[3];
	uint64_t match[TTMON_MATCH_MAX];
	uint64_t failed_allocs;
	uint64_t moved_in, moved_out, move_failed, wrong; /* wrong: pageable, and its device pointer was asked for */
	uint64_t checkpoints, advice;
	uint64_t pieces, busy; /* given out; freed pieces that were asked and still being copied */
	uint64_t regions, regions_back;
};

struct ttmon_pin_state {
	pthread_mutex_t lock;
	struct ttmon_ranges ranges; /* addr -> block */
	struct ttmon_pin_block *blocks;
	uint32_t n, cap, free_list;
	struct ttmon_pin_pool pool;
	struct ttmon_pin_pages pages;
	uint64_t coming;	  /* pages of pins under way */
	uint64_t apart;		  /* pinned pages that the cache's limit does not speak of: what is read in place */
	_Atomic uint64_t managed; /* blocks, live: copies are followed only where there are any */
	uint64_t copying;	  /* asynchronous copies that were begun and are not followed yet */
	_Atomic uint64_t streams_destroyed;
	_Atomic uint64_t waits;	  /* for copies under way, before memory went */
	_Atomic uint64_t leaked;  /* bytes of pageable or registered memory that could not be waited for, and stay */
	_Atomic uint64_t retried; /* allocations that CUDA refused until the cache was empty */
	_Atomic bool no_reuse;	  /* after ttmon_pin_unfollowed() */
	bool child;		  /* of a fork: no CUDA any more */
	struct ttmon_pin_counts count;
};
extern struct ttmon_pin_state ttmon_pin;

/* As the calls of CUDA that they stand for. */
int ttmon_pin_alloc(const struct ttmon_pin_api *api, void **p, size_t size, unsigned int flags);
int ttmon_pin_free(const struct ttmon_pin_api *api, void *p);
int ttmon_pin_register(const struct ttmon_pin_api *api, void *p, size_t size, unsigned int flags);
int ttmon_pin_unregister(const struct ttmon_pin_api *api, void *p);
int ttmon_pin_flags(const struct ttmon_pin_api *api, unsigned int *flags, void *p);
int ttmon_pin_device_ptr(const struct ttmon_pin_api *api, void **dev, void *p, unsigned int flags);
/*
 * Around an asynchronous copy and what is said of it: no block changes in between. _begin: what _end
 * wants to have.
 */
bool ttmon_pin_copy_begin(void);
void ttmon_pin_copy_end(bool begun);
/*
 * A copy of the memory at p was enqueued in the stream. stream (void *)-1: in a way that cannot be
 * followed.
 */
void ttmon_pin_copied(const void *p, void *stream);
#define TTMON_PIN_UNKNOWN_STREAM ((void *)-1)
/*
 * A stream handle is no longer what it was. Copies are about to be made that cannot be followed, of
 * whatever memory: no block is reused any more.
 */
void ttmon_pin_stream_destroyed(void);
void ttmon_pin_unfollowed(void);

/* CUDA's host memory is about to go, all of it; sure false: it may. */
void ttmon_pin_reset(bool sure);

/* A block of the cache is ready to be given out (ttmon_pin_ready_fn). */
bool ttmon_pin_ready(void *ctx, uint32_t block);
void ttmon_pin_drop_events(struct ttmon_pin_block *b);
/* With the lock held. NULL: not ours, or freed. */
struct ttmon_pin_block *ttmon_pin_find(uint64_t addr);
/*
 * Wait until no copy of the block is under way. False: that cannot be said. The lock is not held; the
 * block is the caller's alone.
 */
bool ttmon_pin_settle(struct ttmon_pin_block *b) _must_check;
/* All copies of it that are followed are done. */
bool ttmon_pin_fences_done(struct ttmon_pin_block *b);
/*
 * Wait for all work of the process. False: it cannot be, there are several devices and one alone is
 * waited for.
 */
bool ttmon_pin_wait_device(const struct ttmon_pin_api *api) _must_check;

/* ---- region.c ---- */

struct ttmon_pin_region {
	uint64_t addr, bytes; /* bytes 0: none */
	const struct ttmon_pin_api *api;
	uint32_t given; /* pieces of it: the program's, freed ones that wait, and what could not be waited for */
	bool retired;	/* there was a reset since */
};
/* Around fork(), before the lock is taken and after it was let go. _after: there were regions. */
void ttmon_pin_regions_before_fork(void);
bool ttmon_pin_regions_after_fork(void);
/* With the lock held; valid as long as that is. NULL: the address is in none. */
struct ttmon_pin_region *ttmon_pin_region_of(uint64_t addr);

enum ttmon_pin_piece_result {
	TTMON_PIN_PIECE_GIVEN,	  /* addr, room, how and piece of the block are set */
	TTMON_PIN_PIECE_LEFT_OUT, /* it is to be pageable: it does not pay for what there is no piece for */
	TTMON_PIN_PIECE_NONE,	  /* nothing more can be pinned for regions */
};
enum ttmon_pin_piece_result ttmon_pin_piece(struct ttmon_pin_block *b, const struct ttmon_pin_plan *plan);
/*
 * A piece that was freed and is in no table any more. Waits only where its copies cannot be followed.
 * The lock is not held.
 */
void ttmon_pin_piece_freed(struct ttmon_pin_block *b);
/*
 * Unpin all regions of which nothing is given out, after the copies of freed pieces. Returns how many.
 */
unsigned int ttmon_pin_regions_trim(void);
/* As ttmon_pin_reset(), for regions: none is used again. */
void ttmon_pin_regions_reset(bool sure);

/* ---- move.c ---- */

/*
 * Take the pin of a mapping away, with the lock held; it stays where copies may be under way, which is
 * not waited for. idle: all were waited for, also those that are not followed. True: it is pageable.
 */
bool ttmon_pin_release(struct ttmon_pin_block *b, bool idle);

/*
 * Hot blocks in, cold ones out, by the live advice since the last one. label NULL: the daemon was told
 * already.
 */
void ttmon_pin_checkpoint(const char *label);

#endif
