/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/model/map.h: the allocations that were live when a kernel ran, by address: out of a ttmon
 * database (lib/read/run.h), or one by one from a running daemon (its /v1/allocations), or from a
 * kernelslist.g. Life times are by the host's clock, and by launches: how many kernels its process had
 * launched before it was made and before it was freed, where that was counted. A launch has a host
 * time (ours), or only its number (NVBit, Accel-Sim). Without a time the number says which one it was;
 * without either, of several allocations at one address the one that lived longest is taken. enum
 * ttmon_mt_how says which.
 *
 * Where allocations overlap that are live together, what CUDA knows of comes before a mere mapping (a
 * registered range of the heap is REGISTERED), then the younger before the older one (a tensor in a
 * pool). Looking up takes O(log n) in every process, whatever the number of generations at an address.
 *
 * Memory: 120 bytes an allocation, its texts, and 16 bytes for each of the pieces its range is cut
 * into by the ends of others: 2 to 5 in practice, limited to 128 Mi together.
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
		size; /* as the GPU sees it; a registered range whose device address differs has one entry for each */
	uint64_t alloc_ns, free_ns; /* CLOCK_MONOTONIC; free_ns UINT64_MAX: live at the end */
	/*
	 * Launches of its process before it was made, TTMON_MT_NO_NTH: not known; and before it was freed,
	 * TTMON_MT_NO_NTH: it was not.
	 */
	uint64_t made_nth, freed_nth;
	uint64_t copies, bytes; /* transfers of it, both ways */
	uint64_t d2h_bytes;
	uint64_t others;	      /* of the copies: neither from nor to the host */
	const char *id, *name, *site; /* id as in the database; name: tag or ""; site: "load_batch+0x41 < train" */
	uint32_t pid;
	uint32_t user; /* the caller's: index in the run */
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

/* How it is known which allocation it was. */
enum ttmon_mt_how {
	TTMON_MT_SURE,	   /* there is no other, or the time says it */
	TTMON_MT_BY_ORDER, /* of several at that address, by the number of the launch */
	TTMON_MT_AMBIGUOUS /* there is another that is as good, or the number of the launch speaks against it */
};

struct ttmon_mt_launch;
/*
 * What a launch says about that; NULL: nothing. pid: of the process, where that is known from
 * elsewhere; 0.
 */
struct ttmon_mt_when ttmon_mt_when_of(const struct ttmon_mt_launch *l, uint32_t pid);

struct ttmon_mt_map;
struct ttmon_run;

int ttmon_mt_map_new(struct ttmon_mt_map **ret);
/*
 * Copies, with its texts (NULL: ""). Any order; TTMON_RUN_MAX_ALLOCS at most (-E2BIG). A size of 0
 * lies nowhere.
 */
int ttmon_mt_map_add(struct ttmon_mt_map *map, const struct ttmon_mt_alloc *a);
/*
 * Device, managed and host allocations of a run; pid 0: all processes. user is the index in
 * run->allocs.
 */
int ttmon_mt_map_run(struct ttmon_mt_map *map, const struct ttmon_run *run, uint32_t pid);
/*
 * After the last add, before the first find. May be called again after more of them. -ENOMEM, -E2BIG:
 * nothing is found then.
 */
int ttmon_mt_map_done(struct ttmon_mt_map *map);
/* As `known` of struct ttmon_mt_in_opts; map: a struct ttmon_mt_map. */
bool ttmon_mt_map_known(void *map, uint64_t addr, uint64_t *lo, uint64_t *hi);
/*
 * The first `to` launches of process pid are numbered without a gap, and made_nth of all its
 * allocations is known.
 */
int ttmon_mt_map_order(struct ttmon_mt_map *map, uint32_t pid, uint64_t to); /* -ENOMEM */
/*
 * Index of the allocation that addr lies in then; UINT32_MAX: none. An allocation of process 0 is
 * anybody's. The answer is the same from *lo up to *hi (exclusive) around addr.
 */
uint32_t ttmon_mt_map_at(const struct ttmon_mt_map *map, uint64_t addr, const struct ttmon_mt_when *when,
			 enum ttmon_mt_how *how, uint64_t *lo, uint64_t *hi);
const struct ttmon_mt_alloc *ttmon_mt_map_get(const struct ttmon_mt_map *map, size_t *n);
void ttmon_mt_map_free(struct ttmon_mt_map *map);

#endif
