/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * advisor_int.h: shared by the files of libttmon's advisor, and included only by them.
 *
 *	advisor.c        the calls of <ttmon/client.h>: open, ask, count, close
 *	walk.c   the caller's stack, by frame pointers
 *	tables.c the same by unwind tables
 *	objs.c   the objects of this process: which file and offset an address is, which function
 *	sites.c  return addresses to the hashes of lib/read/run.h, and a table of those that were
 *		seen
 *	link.c   a thread that follows one route of the daemon
 *	live.c   the daemon: live advice, checkpoints, ttmon_trace_self()
 *	programs.c  the daemon: runs of programs on Tenstorrent devices
 *
 * The hot path reads data that was made at open and does not change, and three structures that threads
 * and signal handlers share without locks: the table of stacks, the counters of ordinals, the sums.
 * The list of objects changes with dlopen(); of it, the hot path reads only the number.
 */
#ifndef TTMON_LIB_ADVISOR_INT_H
#define TTMON_LIB_ADVISOR_INT_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/hmap.h"
#include "lib/pin/profile.h"
#include "lib/read/run.h"
#include "lib/unwind/walk.h"

#define TTMON_WALK_MAX 20u /* the frames that identify a site, and some frames before them that are left out */
/* ---- walk.c ---- */

/*
 * Collects return addresses from a frame record on, innermost first; returns their number. It never
 * reads unmapped memory: on a stack that is not the thread's own, each frame is checked by a system
 * call. Async-signal-safe.
 */
unsigned int ttmon_walk(const void *frame, uint64_t *ret, unsigned int max);
/*
 * Returns the top of the stack that contains sp; everything between the two can be read. 0: not known,
 * so each word has to be checked.
 */
uintptr_t ttmon_stack_top(uintptr_t sp);
/* Returns whether 8 bytes at addr can be read. Async-signal-safe; errno is kept. */
bool ttmon_stack_there(uintptr_t addr);

/* ---- tables.c ---- */

struct ttmon_kept_row;
/* Cached unwind rules. v NULL: this system does not support reading the tables. */
struct ttmon_rows {
	struct ttmon_kept_row *v;
};
int ttmon_rows_init(struct ttmon_rows *r) _must_check;
void ttmon_rows_fini(struct ttmon_rows *r);
/*
 * Unwinds the stack of the caller of the function with this frame record, as deep as the tracer's copy
 * of a stack reaches, at most TTMON_WALK_MAX + 2 frames. gen: number of the list of objects. Returns
 * false if the tables of this library cannot be read. Async-signal-safe.
 */
bool ttmon_walk_tables(const struct ttmon_rows *rows, uint64_t gen, const void *frame,
		       struct ttmon_uw_result *ret) _must_check;

/* ---- objs.c ---- */

struct ttmon_func {
	uint64_t start, end; /* file offsets */
	const char *name;    /* NULL: a function that no run knows */
	bool plumbing;
};

/* The functions of one file. Freed when the advisor is closed. */
struct ttmon_funcs {
	struct ttmon_funcs *next;
	uint8_t build_id[20];
	uint8_t build_id_len;
	char *path;
	struct ttmon_func *v; /* sorted by start, without duplicates */
	size_t n;
};

struct ttmon_obj {
	uint8_t build_id[20];
	uint8_t build_id_len;
	bool left_out;	  /* belongs to CUDA or libttmon: not part of call sites */
	bool plumbing;	  /* all of it: lib/base/plumbing.h */
	bool interpreter; /* of Python */
	char *path, *base;
	const struct ttmon_funcs *funcs; /* NULL: only the names that the runs gave to its frames are used */
};

struct ttmon_seg {
	uint64_t start, end; /* addresses of its code */
	uint64_t to_file;    /* add this to an address to get the file offset */
	uint32_t obj;
};

/* The objects at one time. Immutable. */
struct ttmon_objs {
	struct ttmon_objs *next; /* older lists, which readers may still use */
	uint64_t gen;		 /* number of the list, from 1 */
	uint64_t adds, subs;	 /* the dynamic linker's counts of loads and unloads */
	struct ttmon_obj *objs;
	size_t nr_objs, cap_objs;
	struct ttmon_seg *segs; /* sorted by start */
	size_t nr_segs, cap_segs;
};

struct ttmon_known;

/*
 * Makes a list of the current objects. before: the last list, NULL: none. funcs: files that had to be
 * read are added to this list. Returns 0, with *ret NULL if nothing changed, or -ENOMEM.
 */
int ttmon_objs_take(const struct ttmon_known *known, const struct ttmon_objs *before, struct ttmon_funcs **funcs,
		    struct ttmon_objs **ret) _must_check;
void ttmon_objs_free(struct ttmon_objs *o);
void ttmon_funcs_free(struct ttmon_funcs *f);
/* Returns the segment that contains the byte at addr; NULL: none. */
const struct ttmon_seg *ttmon_objs_find(const struct ttmon_objs *o, uint64_t addr);
/* Returns the function that contains a file offset; NULL: none. */
const struct ttmon_func *ttmon_funcs_find(const struct ttmon_funcs *f, uint64_t offset);

/* ---- sites.c ---- */

/*
 * What the runs know, for the translation of stacks. Immutable once made. Keys are mixed with seed, so
 * that a database cannot be made so that they collide.
 */
struct ttmon_known {
	uint64_t seed;
	const struct ttmon_profile *profile; /* NULL: no database */
	struct ttmon_plumbing *plumbing;     /* patterns of the user; NULL: none */
	struct ttmon_hmap frames;	     /* from the hash of a frame to its struct ttmon_run_frame in the profile */
	struct ttmon_hmap fns;		     /* from the hash of a function's name to a pointer to it */
	struct ttmon_hmap builds;	     /* from the hash of a build-id to BUILD_* */
	struct ttmon_hmap bases;	     /* from the hash of an object's base name to BUILD_* */
	/* from the hash (site by innermost function, size) to the exact hash; 0: there are several */
	struct ttmon_hmap inner;
};
#define TTMON_BUILD_CUDA  1u /* not part of call sites */
#define TTMON_BUILD_INNER 2u /* has the innermost own frame of some site, with a function name */

/* Fills in what comes from the profile, which must outlive it. Returns 0 or -ENOMEM. */
int ttmon_known_init(struct ttmon_known *k, const struct ttmon_profile *profile) _must_check;
/* Adds what comes from the allocations of a run, and their counters. Returns 0 or -ENOMEM. */
struct ttmon_ordinals;
int ttmon_known_run(struct ttmon_known *k, const struct ttmon_run *run, struct ttmon_ordinals *ordinals) _must_check;
void ttmon_known_fini(struct ttmon_known *k);
/*
 * Returns the exact hash of the site of a stack that is known by its innermost function; 0: none, or
 * several.
 */
uint64_t ttmon_known_inner(const struct ttmon_known *k, uint64_t inner, uint64_t size);
static inline uint64_t ttmon_hash_build(const uint8_t *build_id, uint8_t len)
{
	return ttmon_site_hash_frame(TTMON_FNV_BASIS, build_id, len, 0);
}

/* The site of a stack, as hashes of lib/read/run.h; 0: not known. */
struct ttmon_where {
	uint64_t exact;
	uint64_t names;
	uint64_t near;
	uint64_t leaf;	/* hash of the names, innermost own frame only */
	uint64_t inner; /* by the innermost function; 0 if a run knows exact */
};
/* frames: return addresses, innermost first. Neither allocates nor locks. */
void ttmon_where_of(const struct ttmon_known *k, const struct ttmon_objs *objs, const uint64_t *frames, unsigned int n,
		    struct ttmon_where *ret);

/*
 * The stacks that were seen, in sets of 8 whose keys are adjacent: a new stack takes an empty place,
 * or replaces another. key 0: empty, 1: being written. A reader that finds the same key before and
 * after reading the rest has read a consistent entry.
 */
#define TTMON_SEEN_WAYS 8u
struct ttmon_advisor_seen {
	_Alignas(64) _Atomic uint64_t key[TTMON_SEEN_WAYS];
	struct {
		_Atomic uint64_t exact, names, near, leaf, inner;
	} v[TTMON_SEEN_WAYS];
};
struct ttmon_seens {
	struct ttmon_advisor_seen *sets;
	size_t n; /* a power of two */
};
int ttmon_seens_init(struct ttmon_seens *s, size_t sites) _must_check;
void ttmon_seens_fini(struct ttmon_seens *s);
/* Returns the key of a stack for list number gen of the objects. */
uint64_t ttmon_seen_key(const uint64_t *frames, unsigned int n, uint64_t gen);
bool ttmon_seens_get(const struct ttmon_seens *s, uint64_t key, struct ttmon_where *ret);
void ttmon_seens_put(struct ttmon_seens *s, uint64_t key, const struct ttmon_where *where);

/* Counters for each (site or name, size) that some run had. The keys do not change after open. */
struct ttmon_ordinals {
	struct ttmon_hmap index; /* from (site, size) to the place of the counter */
	_Atomic uint32_t *count; /* index.n counters, allocated at open */
	uint64_t seed;
};
/* Returns the next ordinal; TTMON_RUN_NONE: no run had this site and size. */
uint32_t ttmon_ordinals_next(const struct ttmon_ordinals *o, uint64_t site, uint64_t size);
int ttmon_ordinals_add(struct ttmon_ordinals *o, uint64_t site, uint64_t size) _must_check;
void ttmon_ordinals_fini(struct ttmon_ordinals *o);

/* ---- link.c ---- */

struct ttmon_link;

/* Configuration. All callbacks run in the thread of the link. */
struct ttmon_link_cfg {
	const char *route;	 /* path with "?" and an argument; must outlive the link */
	const char *thread;	 /* name of the thread, 15 bytes at most */
	void (*head)(void *ctx); /* called for the first line of each connection; may be NULL */
	/*
	 * Called for a line that is neither a head nor a report of missed lines. row: the line as an object;
	 * NULL: it is an array, or not JSON.
	 */
	void (*line)(struct ttmon_link *l, const char *at, size_t n, const json_t *row);
	void *ctx;
};

#define TTMON_LINK_LINE 8192u /* bytes; a longer line is not valid and skipped */

struct ttmon_link {
	struct ttmon_link_cfg cfg;
	pid_t pid;
	char *socket;
	pthread_t thread;
	int cancel;
	/* earlier: number of lines that the daemon had dropped before the first connection to it */
	_Atomic uint64_t missed, earlier, connects, disconnects;
	/* Used only by the thread. */
	uint64_t after, gone; /* number of the last line received; how many were missed since */
	char start_id[32];
	bool connected;
	char part[TTMON_LINK_LINE];
	size_t len;
	bool too_long;
};

/* Starts a zeroed link. On failure nothing is left to free. */
int ttmon_link_begin(struct ttmon_link *l, const char *socket, const struct ttmon_link_cfg *cfg) _must_check;
/* Ends a link. Do not call it from its thread. In a child after fork() there is no thread to end. */
void ttmon_link_end(struct ttmon_link *l);
/* Returns whether this process began it. */
bool ttmon_link_is_own(const struct ttmon_link *l);
/* To be called from line(): returns whether a line of this number is new, and marks it as received. */
bool ttmon_link_is_new(struct ttmon_link *l, uint64_t seq);
/* Returns socket if it is given, else $TTMON_SOCKET, else the default. */
const char *ttmon_socket_or(const char *socket);

/* ---- advisor.c, live.c ---- */

#define TTMON_SHARDS 16u

struct ttmon_shard {
	_Alignas(64) _Atomic uint64_t by_match[TTMON_MATCH_MAX];
};

struct ttmon_sub;

struct ttmon_advisor {
	struct ttmon_profile *profile; /* NULL: only live advice */
	struct ttmon_known known;
	struct ttmon_seens seens;
	struct ttmon_rows rows;
	struct ttmon_ordinals ordinals;
	uint32_t min_match;
	uint64_t entries, sites, peak_pin_bytes;
	_Atomic uint64_t order; /* number of the next allocation without frames */
	_Atomic uint64_t gen;	/* the number of objs */
	/*
	 * A thread counts itself in readers while it reads the list. A refresh first puts the new list; if it
	 * then finds no reader, it frees the old lists.
	 */
	struct ttmon_objs *_Atomic objs;
	_Atomic uint32_t readers;
	struct ttmon_objs *retired;
	struct ttmon_funcs *funcs;
	/* pid of the process that refreshes: after a fork() the owner may not exist in this process */
	_Atomic int refreshing;
	char *socket;
	struct ttmon_sub *_Atomic sub; /* of the process that subscribed: see ttmon_sub_of() */
	_Atomic int moving;	       /* pid of the process that is in the callback */
	_Atomic int setting;	       /* pid of the process that reads or writes the two fields below */
	ttmon_move_fn move;
	void *move_ctx;
	struct ttmon_shard shards[TTMON_SHARDS];
};

/* Returns the subscription of this process; NULL if it has none, or only its parent has. */
struct ttmon_sub *ttmon_sub_of(const struct ttmon_advisor *adv);
void ttmon_sub_free(struct ttmon_sub *sub);
void ttmon_sub_stats(const struct ttmon_sub *sub, struct ttmon_advisor_stats *ret);
/*
 * Takes a flag that one thread of one process can hold; succeeds if it is free, or was held before a
 * fork() by another process.
 */
bool ttmon_flag_take(_Atomic int *flag);
static inline void ttmon_flag_drop(_Atomic int *flag)
{
	atomic_store_explicit(flag, 0, memory_order_release);
}

#endif
