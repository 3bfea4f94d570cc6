/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/map.h: the allocations that were live when a kernel ran, by address: out of a ttmon database (lib/run.h), or one by one from a running daemon
 * (its /v1/allocations). Life times are those of the host; a launch has a host time (ours), or only its place in the trace (NVBit, Accel-Sim): without
 * a time, of several allocations at one address the one that lived longest is taken, and that is said (ambiguous).
 *
 * Where allocations overlap that are live together, what CUDA knows of comes before a mere mapping (a registered range of the heap is REGISTERED), then
 * the younger before the older one (a tensor in a pool). Looking up takes O(log n) in every process, whatever the number of generations at an address.
 *
 * Memory: 100 bytes an allocation, its texts, and 16 bytes for each of the pieces its range is cut into by the ends of others: 2 to 5 in practice, limited
 * to 128 Mi together.
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
	uint64_t copies, bytes;	    /* transfers of it, both ways */
	uint64_t d2h_bytes;
	uint64_t others;	      /* of the copies: neither from nor to the host */
	const char *id, *name, *site; /* id as in the database; name: tag or ""; site: "load_batch+0x41 < train" */
	uint32_t pid;
	uint32_t user; /* the caller's: index in the run */
	uint8_t mem;
	bool in_place; /* may be read in place by its flags (TTMON_RUN_IN_PLACE) */
};

struct ttmon_mt_map;
struct ttmon_run;

int ttmon_mt_map_new(struct ttmon_mt_map **ret);
/* Copies, with its texts (NULL: ""). Any order; TTMON_RUN_MAX_ALLOCS at most (-E2BIG). A size of 0 lies nowhere. */
int ttmon_mt_map_add(struct ttmon_mt_map *map, const struct ttmon_mt_alloc *a);
/* Device, managed and host allocations of a run; pid 0: all processes. user is the index in run->allocs. */
int ttmon_mt_map_run(struct ttmon_mt_map *map, const struct ttmon_run *run, uint32_t pid);
/* After the last add, before the first find. May be called again after more of them. -ENOMEM, -E2BIG: nothing is found then. */
int ttmon_mt_map_done(struct ttmon_mt_map *map);
/*
 * Index of the allocation that addr lies in at ns (0: not known) of process pid (0: any); UINT32_MAX: none. An allocation of process 0 is anybody's.
 * ambiguous: there is another that is as good.
 */
uint32_t ttmon_mt_map_find(const struct ttmon_mt_map *map, uint64_t addr, uint64_t ns, uint32_t pid, bool *ambiguous);
/* The same, and where around addr the answer is the same: from *lo up to *hi (exclusive). */
uint32_t ttmon_mt_map_at(const struct ttmon_mt_map *map, uint64_t addr, uint64_t ns, uint32_t pid, bool *ambiguous,
			 uint64_t *lo, uint64_t *hi);
const struct ttmon_mt_alloc *ttmon_mt_map_get(const struct ttmon_mt_map *map, size_t *n);
void ttmon_mt_map_free(struct ttmon_mt_map *map);

#endif
