/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/model/map.h: finds the allocation at an address when a kernel ran. Allocations come from a
 * ttmon database (lib/read/run.h), one by one from a running daemon (/v1/allocations), or from a
 * kernelslist.g. Lifetimes are known by the host's clock, and by launches if those were counted: how
 * many kernels its process had launched before it was allocated and before it was freed. A launch has
 * a host time (ttmon's own traces), or only its number (NVBit, Accel-Sim). Without a time, the number
 * decides; without either, the allocation at this address that lived longest is taken. enum
 * ttmon_mt_how says which.
 *
 * If live allocations overlap, one that CUDA knows comes before a mere mapping (a registered range of
 * the heap is REGISTERED), and the younger before the older (a tensor in a pool). A lookup takes O(log
 * n) in each process, whatever the number of generations at an address.
 *
 * Memory: 120 bytes for each allocation, its texts, and 16 bytes for each piece into which the ends of
 * others cut its range: 2 to 5 in practice, limited to 128 Mi in total.
 */
#ifndef TTMON_MEMTRACE_MAP_H
#define TTMON_MEMTRACE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ttmon_mt_mem {
	TTMON_MT_MEM_UNKNOWN, /* no allocation is known there */
	TTMON_MT_MEM_DEVICE,
	TTMON_MT_MEM_MANAGED,
	TTMON_MT_MEM_PINNED,	 /* cudaHostAlloc, cudaMallocHost, a host pool */
	TTMON_MT_MEM_REGISTERED, /* cudaHostRegister */
	TTMON_MT_MEM_MAPPED,	 /* pageable: mmap and custom allocators; read in place on hosts with HMM or ATS */
	TTMON_MT_MEM_MAX
};
const char *ttmon_mt_mem_name(unsigned int mem); /* "unknown", "device", ... */

struct ttmon_mt_alloc {
	uint64_t addr,
		/* address on the GPU; a registered range with a different device address has one entry for each */
		size;
	uint64_t alloc_ns, free_ns; /* CLOCK_MONOTONIC; free_ns UINT64_MAX: live at the end */
	/*
	 * Number of launches of its process before it was allocated, TTMON_MT_NO_NTH: not known; and before it
	 * was freed, TTMON_MT_NO_NTH: not freed.
	 */
	uint64_t made_nth, freed_nth;
	uint64_t copies, bytes; /* transfers of it, in both directions */
	uint64_t d2h_bytes;
	uint64_t others;	      /* of the copies: neither from nor to the host */
	const char *id, *name, *site; /* id as in the database; name: tag or ""; site: "load_batch+0x41 < train" */
	uint32_t pid;
	uint32_t user; /* for the caller: index in the run */
	uint8_t mem;
	bool in_place; /* may be read in place by its flags (TTMON_RUN_IN_PLACE) */
};

/* When a kernel ran. */
struct ttmon_mt_when {
	uint64_t ns;  /* CLOCK_MONOTONIC; 0: not known */
	uint64_t nth; /* launches of its process before it, TTMON_MT_NO_NTH: not known; counts where ns is not known */
	uint32_t pid; /* 0: any */
};
#define TTMON_MT_NO_NTH UINT64_MAX

/* How the allocation was determined. */
enum ttmon_mt_how {
	TTMON_MT_SURE,	   /* there is only one, or the time decides */
	TTMON_MT_BY_ORDER, /* several had that address, and the number of the launch decides */
	TTMON_MT_AMBIGUOUS /* another one is as likely, or the number of the launch contradicts it */
};

struct ttmon_mt_launch;
/*
 * Returns the time information of a launch; NULL: none. pid: of the process, if known from elsewhere;
 * 0.
 */
struct ttmon_mt_when ttmon_mt_when_of(const struct ttmon_mt_launch *l, uint32_t pid);

struct ttmon_mt_map;
struct ttmon_run;

int ttmon_mt_map_new(struct ttmon_mt_map **ret);
/*
 * Copies an allocation with its texts (NULL: ""). In any order; TTMON_RUN_MAX_ALLOCS at most (-E2BIG).
 * A size of 0 contains no address.
 */
int ttmon_mt_map_add(struct ttmon_mt_map *map, const struct ttmon_mt_alloc *a);
/*
 * Adds device, managed and host allocations of a run; pid 0: all processes. user is the index in
 * run->allocs.
 */
int ttmon_mt_map_run(struct ttmon_mt_map *map, const struct ttmon_run *run, uint32_t pid);
/*
 * Call it after the last add and before the first find; again after adding more. On -ENOMEM and -E2BIG
 * nothing is found.
 */
int ttmon_mt_map_done(struct ttmon_mt_map *map);
/* A callback for `known` of struct ttmon_mt_in_opts; map: a struct ttmon_mt_map. */
bool ttmon_mt_map_known(void *map, uint64_t addr, uint64_t *lo, uint64_t *hi);
/*
 * States that the first `to` launches of process pid are numbered without a gap, and that made_nth of
 * all its allocations is known.
 */
int ttmon_mt_map_order(struct ttmon_mt_map *map, uint32_t pid, uint64_t to); /* -ENOMEM */
/*
 * Returns the index of the allocation that contains addr at that time; UINT32_MAX: none. An allocation
 * of process 0 may belong to any process. The answer is the same from *lo up to *hi (exclusive) around
 * addr.
 */
uint32_t ttmon_mt_map_at(const struct ttmon_mt_map *map, uint64_t addr, const struct ttmon_mt_when *when,
			 enum ttmon_mt_how *how, uint64_t *lo, uint64_t *hi);
const struct ttmon_mt_alloc *ttmon_mt_map_get(const struct ttmon_mt_map *map, size_t *n);
void ttmon_mt_map_free(struct ttmon_mt_map *map);

#endif
