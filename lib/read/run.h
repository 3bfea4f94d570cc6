/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/read/run.h: one database in memory, as tables: what comparing, merging, simulating and drawing
 * need. Events are not kept: sums and the first and last transfer of each allocation are, and who
 * wants the events sees each of them once while the file is read.
 *
 * Memory: some 200 bytes an allocation, whatever the number of events. Limits: those of lib/read/db.h,
 * and the ones below (-E2BIG).
 *
 * The file is input. Once it is loaded, whatever was in it: every index is in range, no text is NULL
 * unless it says so, times fit into 63 bits, free_ns is not before alloc_ns, an allocation with
 * transfers has a first and a last one. An index out of range is -EBADMSG; a member that is missing or
 * of the wrong kind, as in older databases, has its default.
 */
#ifndef TTMON_LIB_RUN_H
#define TTMON_LIB_RUN_H

#include <ttmon/event.h>
#include <ttmon/fns.h>

#include "lib/base/util.h"

#define TTMON_RUN_MAX_ALLOCS (16u << 20)
#define TTMON_RUN_MAX_SITES  (1u << 20)
/*
 * Innermost frames that make the identity of a site. ttmond takes 16 by default, of which those in
 * CUDA and preloaded libraries are left out; an allocator that walks its own stack sees more. What
 * both have for certain is this.
 */
#define TTMON_RUN_KEY_FRAMES 12
#define TTMON_RUN_MAX_FRAMES 128	  /* of a site */
#define TTMON_RUN_MAX_TEXT   (256u << 20) /* bytes of all names and ids together */
#define TTMON_RUN_NONE	     UINT32_MAX

struct ttmon_run_object {
	const char *path, *base; /* base: the name behind the last '/' */
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0: none */
	bool cuda;	      /* CUDA or an allocator: not in call sites */
	bool python;	      /* a function of Python in the source file at path: offsets are lines */
};

struct ttmon_run_frame {
	uint32_t object; /* index; TTMON_RUN_NONE: not known */
	uint64_t offset; /* in the file, of the return address */
	const char *fn;	 /* function, NULL: not known */
	uint64_t delta;	 /* from its beginning */
};

struct ttmon_run_site {
	uint64_t key; /* as in the database: all frames; 0: the unknown site */
	uint64_t
		exact; /* FNV-1a 64 over the innermost TTMON_RUN_KEY_FRAMES frames, as the key is made; 0: none, or one whose object has no build-id */
	uint64_t
		names; /* FNV-1a 64 over those frames' function names (or object base names where there is none); 0: none has a name */
	uint64_t leaf;		 /* the same over the innermost frame alone; 0: it has no name */
	uint32_t frame, nframes; /* in run->frames, innermost first */
	bool cut;		 /* has frames past TTMON_RUN_KEY_FRAMES: others may have the same exact and names */
	bool in_main; /* the stack goes back to main(): one thread, so the order of its allocations is the program's */
};

struct ttmon_run_proc {
	uint32_t pid;
	uint64_t start_ns, first_ns, last_ns;
	uint64_t numbered; /* so many kernel launches, from its first on, have numbers (made_nth); 0: none */
	bool at_least;	   /* its sums are lower bounds */
	const char *comm, *exe, *cmdline; /* exe, cmdline: may be NULL */
};

#define TTMON_RUN_OLD	     (1 << 0) /* older than the trace: alloc_ns is when it began */
#define TTMON_RUN_DEVICE_PTR (1 << 1)
#define TTMON_RUN_PROVED     (1 << 2) /* pinned, though its method does not say so; UNSEEN too */
#define TTMON_RUN_LIVE	     (1 << 3) /* still there at the end */
#define TTMON_RUN_IN_PLACE \
	(1 << 4) /* DEVICE_PTR, or portable, mapped, write-combined or I/O memory by its flags; or pinned, and GPU */
#define TTMON_RUN_GPU	   (1 << 5) /* kernels were seen to access it */
#define TTMON_RUN_UNSEEN   (1 << 6) /* whether and how it was pinned was not seen: it has a "kind" */
#define TTMON_RUN_AT_LEAST (1 << 7) /* not all of its transfers were seen */

struct ttmon_run_alloc {
	const char *id;	  /* as in the database */
	const char *name; /* tag or mapping; NULL */
	uint64_t addr, size;
	uint64_t alloc_ns, free_ns; /* free_ns: the end of the capture where it is live */
	uint64_t pin_ns, unpin_ns;  /* durations of the calls */
	uint64_t h2d_bytes, d2h_bytes;
	uint64_t first_h2d_ns, last_h2d_ns; /* 0: never. Where events were dropped: from the heat, a bucket wide */
	uint64_t last_copy_ns;		    /* any direction, 0: never */
	uint64_t gpu_reads, gpu_writes, gpu_sectors; /* by kernels, in place; 0 where that was not recorded */
	/*
	 * Kernel launches of the process before it was made and before it was freed; TTMON_RUN_NONE: not
	 * known; not freed.
	 */
	uint32_t made_nth, freed_nth;
	uint64_t touched; /* bytes of the groups of pages that were copied; 0: not known, all of it */
	uint32_t h2d_copies, d2h_copies, other_copies;
	uint32_t async_copies;	 /* of these, asynchronous */
	uint32_t events_dropped; /* not in the file */
	uint32_t proc, site;	 /* indexes */
	uint32_t ordinal;	 /* within process, exact site and size */
	uint32_t name_ordinal;	 /* within process, name and size; 0 without a name */
	uint32_t api_flags;
	uint8_t method; /* enum ttmon_method */
	uint8_t flags;	/* TTMON_RUN_* */
	uint16_t fn;	/* of fns.h; 0: none */
};

struct ttmon_run_checkpoint {
	uint64_t ts_ns;
	uint32_t proc;
	const char *label;
};

/* Times in which events of memory can be missing. */
struct ttmon_run_gap {
	uint64_t from_ns, to_ns;
	const char *what; /* "coverage gap of libcudart.so.13: alloc, transfer not yet" */
};

struct ttmon_run {
	char *path;			    /* of the file */
	const char *hostname, *ttmond;	    /* as they are: clean before printing */
	uint64_t start_ns, end_ns, real_ns; /* of the capture; CLOCK_REALTIME at start_ns, 0: not known */
	bool complete;
	bool at_least;					/* sums over processes are lower bounds */
	uint64_t lost, folded, evicted, events_dropped; /* what is not in it */
	const char *reasons;				/* "lost, cut"; "" where complete */
	struct ttmon_run_object *objects;
	size_t nr_objects;
	struct ttmon_run_frame *frames;
	size_t nr_frames;
	struct ttmon_run_site *sites; /* as in the database, [0] the unknown one */
	size_t nr_sites;
	struct ttmon_run_proc *procs;
	size_t nr_procs;
	struct ttmon_run_alloc *allocs; /* in the order they were made */
	size_t nr_allocs;
	struct ttmon_run_checkpoint *checkpoints;
	size_t nr_checkpoints;
	struct ttmon_run_gap *gaps;
	size_t nr_gaps;
	struct ttmon_run_store *store; /* what owns the strings */
};

struct ttmon_run_event {
	uint64_t ts_ns;
	uint64_t bytes, offset;
	uint8_t kind; /* enum ttmon_aev_kind of lib/base/names.h */
	uint8_t mem;  /* enum ttmon_mem */
	uint16_t bits;
};

struct ttmon_run_opts {
	/* Which allocations are kept: NULL all. Called with the id, name and events' sums filled. */
	bool (*want)(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a);
	/* Each event of each allocation in the file, before want(); NULL: none. */
	void (*event)(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a,
		      const struct ttmon_run_event *ev);
	void *ctx;
};

/*
 * opts may be NULL. On failure -errno as ttmon_db_open(), one line in why. Free with ttmon_run_free().
 */
int ttmon_run_load(const char *path, const struct ttmon_run_opts *opts, struct ttmon_run **ret, char *why,
		   size_t n) _must_check;
void ttmon_run_free(struct ttmon_run *run);

/*
 * A number that is another one in each process: for hash tables of what files say, so that none can be
 * written to make hashes meet.
 */
uint64_t ttmon_run_seed(void);

/*
 * Kernels accessed it: adds requests and 32-byte sectors. Of one that is pinned the pin is of use
 * then, whatever was copied.
 */
void ttmon_run_gpu_use(struct ttmon_run_alloc *a, uint64_t reads, uint64_t writes, uint64_t sectors);

/* Pinned by the API: host_alloc, registered, pool. */
/* Not of what is given out in pieces: these are. */
bool ttmon_run_is_pinned(const struct ttmon_run_alloc *a);
/* Its name, if it has one, is the tag that its allocator gave it. */
static inline bool ttmon_run_has_tag(const struct ttmon_run_alloc *a)
{
	return a->method == TTMON_METHOD_CUSTOM || a->method == TTMON_METHOD_PIECE;
}
/* It has pinned pages that are no other record's. */
bool ttmon_run_pins_pages(const struct ttmon_run_alloc *a);
static inline bool ttmon_run_is_backing(const struct ttmon_run_alloc *a)
{
	return a->api_flags & TTMON_API_BACKING;
}
/* Host memory of which it is not known whether it is pinned. */
bool ttmon_run_is_unknown(const struct ttmon_run_alloc *a);
/* Host memory that could be pinned or is: pinned ones, custom, mmap. Not managed, device, tt_*. */
bool ttmon_run_is_host(const struct ttmon_run_alloc *a);
/* Bytes moved between it and the device, both ways. */
uint64_t ttmon_run_moved(const struct ttmon_run_alloc *a);
/*
 * Whole pages of 4 KiB that it touches where it lies; at most 2^38, so that sums over a run fit 64
 * bits.
 */
uint64_t ttmon_run_pages(const struct ttmon_run_alloc *a);
/*
 * A frame's function; of Python "train.py:42 in forward", made in buf. NULL: it has none.
 */
const char *ttmon_run_frame_name(const struct ttmon_run *run, const struct ttmon_run_frame *f, char *buf, size_t n);
/*
 * "load_batch+0x41 < train < main", "train+0x2a41" where there is no function, "?" where no frames are
 * known: the three innermost frames, as text, into buf (cleaned for a terminal). Returns buf.
 */
const char *ttmon_run_site_text(const struct ttmon_run *run, uint32_t site, char *buf, size_t n);

TTMON_FREEP(ttmon_run_freep, struct ttmon_run, ttmon_run_free);

#endif
