/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/read/run.h: one database in memory, as tables, for comparing, merging, simulating and drawing.
 * Events are not kept, only the sums and the first and last transfer of each allocation; a caller can
 * get each event once, by a callback while the file is read.
 *
 * Memory: some 200 bytes for each allocation, whatever the number of events. Limits: those of
 * lib/read/db.h, and the ones below (-E2BIG).
 *
 * The file is not trusted. After loading, whatever the file contained: every index is in range, no
 * text is NULL unless noted, times fit into 63 bits, free_ns is not before alloc_ns, an allocation
 * with transfers has a first and a last one. An index out of range is -EBADMSG; a member that is
 * missing or of the wrong type, as in older databases, has its default.
 */
#ifndef TTMON_LIB_RUN_H
#define TTMON_LIB_RUN_H

#include <ttmon/event.h>
#include <ttmon/fns.h>

#include "lib/base/plumbing.h"
#include "lib/base/util.h"

#define TTMON_RUN_MAX_ALLOCS (16u << 20)
#define TTMON_RUN_MAX_SITES  (1u << 20)
/*
 * Number of innermost frames that identify a site. ttmond takes 16 by default, of which those in CUDA
 * and preloaded libraries are left out; an allocator that walks its own stack sees more. Both
 * certainly have this many.
 */
#define TTMON_RUN_KEY_FRAMES 12
#define TTMON_RUN_MAX_FRAMES 128	  /* the most frames of a site */
#define TTMON_RUN_MAX_TEXT   (256u << 20) /* bytes of all names and ids together */
#define TTMON_RUN_NONE	     UINT32_MAX

struct ttmon_run_object {
	const char *path, *base; /* base: the part behind the last '/' */
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0: none */
	bool cuda;	      /* CUDA or an allocator: not in call sites */
	bool python;	      /* a function of Python in the source file at path: offsets are lines */
};

struct ttmon_run_frame {
	uint32_t object; /* index; TTMON_RUN_NONE: not known */
	uint64_t offset; /* file offset of the return address */
	const char *fn;	 /* name of the function; NULL: not known */
	uint64_t delta;	 /* distance from its beginning: in bytes, of Python in lines */
	bool plumbing;	 /* not the program's own: lib/base/plumbing.h */
};

struct ttmon_run_site {
	uint64_t key; /* key in the database, from all frames; 0: the unknown site */
	/*
	 * What identifies it in other runs is made of the innermost TTMON_RUN_KEY_FRAMES frames that are the
	 * program's own. If there are none, all of these are 0.
	 *
	 * FNV-1a 64 of build-id and offset of each, as in the key, but of Python delta instead of the line; 0:
	 * not known, because an object has no build-id
	 */
	uint64_t exact;
	/* FNV-1a 64 of their function names (object base names for frames without); 0: no frame has a name */
	uint64_t names;
	/*
	 * FNV-1a 64 of their function names and deltas, which stays the same in another build whose functions
	 * are the same; 0: a frame has no name. ttmon_runs_align() makes those of several runs equal.
	 */
	uint64_t near;
	uint64_t leaf;		 /* as names, of the innermost of them only; 0: it has no name */
	uint32_t frame, nframes; /* range in run->frames, innermost first */
	uint32_t own;		 /* number of these frames that are the program's own */
	bool cut; /* other sites may have the same exact and names: there are more own frames, or the stack was cut */
	/* the stack was cut by --stack-depth: of a longer stack it is the innermost part */
	bool by_depth;
	/*
	 * the stack goes back to main(), which is one thread: the order of its allocations is that of the
	 * program
	 */
	bool in_main;
};

struct ttmon_run_proc {
	uint32_t pid;
	uint64_t start_ns, first_ns, last_ns;
	uint64_t numbered; /* number of kernel launches from the first one on for which made_nth is valid; 0: none */
	bool at_least;	   /* the sums are lower bounds */
	const char *comm, *exe, *cmdline; /* exe and cmdline may be NULL */
};

#define TTMON_RUN_OLD	     (1 << 0) /* older than the trace: alloc_ns is the start of the trace */
#define TTMON_RUN_DEVICE_PTR (1 << 1)
#define TTMON_RUN_PROVED     (1 << 2) /* pinned, although its method does not say so; UNSEEN is set too */
#define TTMON_RUN_LIVE	     (1 << 3) /* still live at the end */
#define TTMON_RUN_IN_PLACE \
	(1 << 4) /* DEVICE_PTR, or portable, mapped, write-combined or I/O memory by its flags; or pinned and GPU */
#define TTMON_RUN_GPU	   (1 << 5) /* kernels were seen to access it */
#define TTMON_RUN_UNSEEN   (1 << 6) /* it was not seen whether and how it was pinned: it has a "kind" */
#define TTMON_RUN_AT_LEAST (1 << 7) /* some of its transfers were missed */

struct ttmon_run_alloc {
	const char *id;	  /* as in the database */
	const char *name; /* the tag of its allocator, or what is mapped; may be NULL */
	uint64_t addr, size;
	uint64_t alloc_ns, free_ns; /* free_ns: the end of the capture if it is live */
	uint64_t pin_ns, unpin_ns;  /* durations of the calls; 0: not known */
	uint64_t h2d_bytes, d2h_bytes;
	uint64_t first_h2d_ns, last_h2d_ns; /* 0: never. If events were dropped: from the heat, exact to a bucket */
	uint64_t last_copy_ns;		    /* last copy in any direction, 0: never */
	uint64_t gpu_reads, gpu_writes, gpu_sectors; /* accesses by kernels in place; 0 if these were not recorded */
	/*
	 * Number of kernel launches of the process before it was allocated and before it was freed;
	 * TTMON_RUN_NONE: not known; not freed.
	 */
	uint32_t made_nth, freed_nth;
	uint64_t touched; /* bytes of the groups of pages that were copied; 0: not known, take all of it */
	uint32_t h2d_copies, d2h_copies, other_copies;
	uint32_t async_copies;	 /* of the copies, asynchronous ones */
	uint32_t events_dropped; /* number of events that are not in the file */
	uint32_t proc, site;	 /* indexes */
	uint32_t ordinal;	 /* counts within process, exact site and size */
	uint32_t name_ordinal;	 /* counts within process, name and size; 0 without a name */
	uint32_t api_flags;
	uint8_t method; /* enum ttmon_method */
	uint8_t flags;	/* TTMON_RUN_* */
	uint16_t fn;	/* id of fns.h; 0: none */
};

struct ttmon_run_checkpoint {
	uint64_t ts_ns;
	uint32_t proc;
	const char *label;
};

/* A time in which memory events may have been missed. */
struct ttmon_run_gap {
	uint64_t from_ns, to_ns;
	const char *what; /* "coverage gap of libcudart.so.13: alloc, transfer not yet" */
};

struct ttmon_run {
	char *path;			    /* path of the file */
	const char *hostname, *ttmond;	    /* not cleaned: clean them before printing */
	uint64_t start_ns, end_ns, real_ns; /* of the capture; real_ns: CLOCK_REALTIME at start_ns, 0: not known */
	bool complete;
	bool at_least;					/* sums over processes are lower bounds */
	uint64_t lost, folded, evicted, events_dropped; /* counts of what is missing */
	const char *reasons;				/* such as "lost, cut"; "" if complete */
	struct ttmon_run_object *objects;
	size_t nr_objects;
	struct ttmon_run_frame *frames;
	size_t nr_frames;
	struct ttmon_run_site *sites; /* as in the database; [0] is the unknown site */
	size_t nr_sites;
	struct ttmon_run_proc *procs;
	size_t nr_procs;
	struct ttmon_run_alloc *allocs; /* in the order of allocation */
	size_t nr_allocs;
	struct ttmon_run_checkpoint *checkpoints;
	size_t nr_checkpoints;
	struct ttmon_run_gap *gaps;
	size_t nr_gaps;
	struct ttmon_run_store *store; /* owner of the strings */
};

struct ttmon_run_event {
	uint64_t ts_ns;
	uint64_t bytes, offset;
	uint8_t kind; /* enum ttmon_aev_kind of lib/base/names.h */
	uint8_t mem;  /* enum ttmon_mem */
	uint16_t bits;
};

struct ttmon_db;

struct ttmon_run_opts {
	/*
	 * Only when and where allocations lived is needed: process, site, size, method, times (of
	 * pinning too), LIVE, UNSEEN, PROVED, AT_LEAST are set, all else is 0. Ten times as fast; an
	 * allocation is not checked to be JSON.
	 */
	bool lives;
	/*
	 * Selects the allocations to keep; NULL: all. When it is called, id, name and the sums of events are
	 * set.
	 */
	bool (*want)(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a);
	/* Called for each event of each allocation in the file, before want(); NULL: not called. */
	void (*event)(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a,
		      const struct ttmon_run_event *ev);
	/*
	 * Called when all is read, for members that the run does not have; -errno ends the loading.
	 * NULL: not called.
	 */
	int (*members)(void *ctx, const struct ttmon_run *run, const struct ttmon_db *db);
	void *ctx;
	const struct ttmon_plumbing
		*plumbing; /* borrowed; NULL: of the file that $TTMON_PLUMBING names, if it is set */
};

/*
 * Reads patterns of a user (lib/base/plumbing.h). path NULL: the file that $TTMON_PLUMBING names; *ret
 * is NULL if that is not set. Returns 0, or -errno with a line of text in why.
 */
int ttmon_run_plumbing(const char *path, struct ttmon_plumbing **ret, char *why, size_t n) _must_check;

/*
 * Loads a database. opts may be NULL. Returns 0, or on failure -errno as ttmon_db_open() does, with
 * one line of text in why. Free *ret with ttmon_run_free().
 */
int ttmon_run_load(const char *path, const struct ttmon_run_opts *opts, struct ttmon_run **ret, char *why,
		   size_t n) _must_check;
void ttmon_run_free(struct ttmon_run *run);

/*
 * Gives sites of several runs that are the same line of the program the same `near`, if an edit has
 * moved the line. Of the sites that are reached through functions of the same names, those of the
 * later run are matched to those of the earlier ones in the order of their lines (run_align.c). A site
 * without a partner has near 0 if others of its functions have one. Returns 0 or -ENOMEM.
 */
int ttmon_runs_align(struct ttmon_run *const *runs, size_t n) _must_check;

/*
 * Returns a random number, chosen once in each process, to seed hash tables of data from files, so
 * that a file cannot be written that makes hashes collide.
 */
uint64_t ttmon_run_seed(void);

/*
 * Adds requests and 32-byte sectors of kernels that accessed the allocation. If it is pinned, it is
 * then in use even without copies.
 */
void ttmon_run_gpu_use(struct ttmon_run_alloc *a, uint64_t reads, uint64_t writes, uint64_t sectors);

/* Returns whether it was pinned by the API: host_alloc, registered, pool. */
/* Pieces that a pool gives out have no record here. */
bool ttmon_run_is_pinned(const struct ttmon_run_alloc *a);
/* Returns whether it has a name that is the tag of its allocator. */
static inline bool ttmon_run_has_tag(const struct ttmon_run_alloc *a)
{
	return a->method == TTMON_METHOD_CUSTOM || a->method == TTMON_METHOD_PIECE;
}
/* Returns whether it has pinned pages that belong to no other record. */
bool ttmon_run_pins_pages(const struct ttmon_run_alloc *a);
static inline bool ttmon_run_is_backing(const struct ttmon_run_alloc *a)
{
	return a->api_flags & TTMON_API_BACKING;
}
/* Returns whether it is host memory of which it is not known if it is pinned. */
bool ttmon_run_is_unknown(const struct ttmon_run_alloc *a);
/*
 * Returns whether it is host memory that is or could be pinned: pinned memory, custom, mmap. Not
 * managed, device, tt_*.
 */
bool ttmon_run_is_host(const struct ttmon_run_alloc *a);
/* Returns the bytes moved between it and the device, in both directions. */
uint64_t ttmon_run_moved(const struct ttmon_run_alloc *a);
/*
 * Returns the number of whole 4 KiB pages that it overlaps; at most 2^38, so that sums over a run fit
 * 64 bits.
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
