/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * advisor_int.h: what the files of libttmon's advisor share. Nobody else includes it.
 *
 *	advisor.c        the calls of <ttmon/client.h>: open, ask, count, close
 *	walk.c   the caller's stack, by frame pointers
 *	tables.c the same by unwind tables
 *	objs.c   the objects of this process: which file and offset an address is, which function
 *	sites.c  return addresses to the hashes of lib/read/run.h, and a table of those that were seen
 *	link.c   a thread that follows one route of the daemon
 *	live.c   the daemon: live advice, checkpoints, ttmon_trace_self()
 *	programs.c  the daemon: runs of programs on Tenstorrent devices
 *
 * What is asked in the hot path was made at open and does not change, or is one of three things that
 * threads and signal handlers share without
 * locks: the table of stacks, the counters of ordinals, the sums. The list of objects changes with
 * dlopen(); the hot path reads only its number.
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

#define TTMON_WALK_MAX 20u /* those that make the identity of a site, and some that are left out before them */
/* ---- walk.c ---- */

/*
 * Return addresses from a frame record on, innermost first. Never reads what is not there: a stack
 * that is not the thread's own is checked by a system call for each frame. Async-signal-safe. Returns
 * how many.
 */
unsigned int ttmon_walk(const void *frame, uint64_t *ret, unsigned int max);
/*
 * The top of the stack on which sp is: what lies between is there. 0: it is not known, and each word
 * of it has to be asked for.
 */
uintptr_t ttmon_stack_top(uintptr_t sp);
/* Are there 8 bytes at addr? Async-signal-safe; errno stays. */
bool ttmon_stack_there(uintptr_t addr);

/* ---- tables.c ---- */

struct ttmon_kept_row;
/* Rules that were read from tables. v NULL: here nobody can read tables. */
struct ttmon_rows {
	struct ttmon_kept_row *v;
};
int ttmon_rows_init(struct ttmon_rows *r) _must_check;
void ttmon_rows_fini(struct ttmon_rows *r);
/*
 * The stack of the caller of the function that has this frame record, as far as the tracer's copy
 * goes, at most TTMON_WALK_MAX + 2 frames, while the objects are those of number gen. False: the
 * tables of this library cannot be read. Async-signal-safe.
 */
bool ttmon_walk_tables(const struct ttmon_rows *rows, uint64_t gen, const void *frame,
		       struct ttmon_uw_result *ret) _must_check;

/* ---- objs.c ---- */

struct ttmon_func {
	uint64_t start, end; /* file offsets */
	const char *name;    /* NULL: one that no run knows */
};

/* The functions of one file. Kept until the advisor is closed. */
struct ttmon_funcs {
	struct ttmon_funcs *next;
	uint8_t build_id[20];
	uint8_t build_id_len;
	char *path;
	struct ttmon_func *v; /* by start, one for each */
	size_t n;
};

struct ttmon_obj {
	uint8_t build_id[20];
	uint8_t build_id_len;
	bool left_out; /* CUDA or libttmon: not in call sites */
	char *path, *base;
	const struct ttmon_funcs *funcs; /* NULL: names are those that the runs gave its frames */
};

struct ttmon_seg {
	uint64_t start, end; /* addresses of code */
	uint64_t to_file;    /* what makes a file offset of an address */
	uint32_t obj;
};

/* The objects at one time. Immutable. */
struct ttmon_objs {
	struct ttmon_objs *next; /* older ones that may still be read */
	uint64_t gen;		 /* from 1 */
	uint64_t adds, subs;	 /* of the dynamic linker */
	struct ttmon_obj *objs;
	size_t nr_objs, cap_objs;
	struct ttmon_seg *segs; /* by start */
	size_t nr_segs, cap_segs;
};

struct ttmon_known;

/*
 * The objects as they are now. before: the last ones, NULL: none; 0 with *ret NULL where nothing
 * changed. funcs: list to which files that had to be read are added. -ENOMEM.
 */
int ttmon_objs_take(const struct ttmon_known *known, const struct ttmon_objs *before, struct ttmon_funcs **funcs,
		    struct ttmon_objs **ret) _must_check;
void ttmon_objs_free(struct ttmon_objs *o);
void ttmon_funcs_free(struct ttmon_funcs *f);
/* The segment that holds the byte at addr; NULL: none. */
const struct ttmon_seg *ttmon_objs_find(const struct ttmon_objs *o, uint64_t addr);
/* The function that holds a file offset, NULL: none does. */
const struct ttmon_func *ttmon_funcs_find(const struct ttmon_funcs *f, uint64_t offset);

/* ---- sites.c ---- */

/*
 * What the runs know, for translating. Immutable once made. Keys are mixed with seed, so that no
 * database can make them meet.
 */
struct ttmon_known {
	uint64_t seed;
	const struct ttmon_profile *profile; /* NULL: no database */
	struct ttmon_hmap frames;	     /* hash of a frame: pointer to its function's name, 0: it has none */
	struct ttmon_hmap fns;		     /* hash of a function's name: pointer to it */
	struct ttmon_hmap builds;	     /* hash of a build-id: BUILD_* */
	struct ttmon_hmap bases;	     /* hash of an object's base name: BUILD_* */
	struct ttmon_hmap inner; /* hash of a site by its innermost function, and size: the exact hash, 0: several */
};
#define TTMON_BUILD_CUDA  1u /* left out of call sites */
#define TTMON_BUILD_INNER 2u /* innermost in some site, with a function name */

/* The part of it that comes of the profile, which must outlive it. -ENOMEM. */
int ttmon_known_init(struct ttmon_known *k, const struct ttmon_profile *profile) _must_check;
/* The part that comes of the allocations of a run, and their counters. -ENOMEM. */
struct ttmon_ordinals;
int ttmon_known_run(struct ttmon_known *k, const struct ttmon_run *run, struct ttmon_ordinals *ordinals) _must_check;
void ttmon_known_fini(struct ttmon_known *k);
/* The site's exact hash, of a stack that is known by its innermost function; 0: none, or not one. */
uint64_t ttmon_known_inner(const struct ttmon_known *k, uint64_t inner, uint64_t size);
static inline uint64_t ttmon_hash_build(const uint8_t *build_id, uint8_t len)
{
	return ttmon_site_hash_frame(TTMON_FNV_BASIS, build_id, len, 0);
}

/* What a stack is, in another run: hashes of lib/read/run.h, 0: none. */
struct ttmon_where {
	uint64_t exact;
	uint64_t names;
	uint64_t leaf;	/* names, of the innermost frame alone */
	uint64_t inner; /* by the innermost function; 0 where exact is known to a run */
};
/* frames: return addresses, innermost first. Neither allocates nor locks. */
void ttmon_where_of(const struct ttmon_known *k, const struct ttmon_objs *objs, const uint64_t *frames, unsigned int n,
		    struct ttmon_where *ret);

/*
 * Stacks that were seen. Sets of 8, whose keys lie together: a new one takes an empty place, else that
 * of another one. key 0: empty, 1: being written. A reader that finds the same key before and after it
 * has read the rest has read what belongs to it.
 */
#define TTMON_SEEN_WAYS 8u
struct ttmon_advisor_seen {
	_Alignas(64) _Atomic uint64_t key[TTMON_SEEN_WAYS];
	struct {
		_Atomic uint64_t exact, names, leaf, inner;
	} v[TTMON_SEEN_WAYS];
};
struct ttmon_seens {
	struct ttmon_advisor_seen *sets;
	size_t n; /* a power of two */
};
int ttmon_seens_init(struct ttmon_seens *s, size_t sites) _must_check;
void ttmon_seens_fini(struct ttmon_seens *s);
/* The key of a stack while the objects are those of number gen. */
uint64_t ttmon_seen_key(const uint64_t *frames, unsigned int n, uint64_t gen);
bool ttmon_seens_get(const struct ttmon_seens *s, uint64_t key, struct ttmon_where *ret);
void ttmon_seens_put(struct ttmon_seens *s, uint64_t key, const struct ttmon_where *where);

/* Counters for each site (or name) and size that some run had: the keys stand still from open on. */
struct ttmon_ordinals {
	struct ttmon_hmap index; /* (site, size): place */
	_Atomic uint32_t *count; /* index.n of them, once open */
	uint64_t seed;
};
/* The next ordinal; TTMON_RUN_NONE: no run had that site and size. */
uint32_t ttmon_ordinals_next(const struct ttmon_ordinals *o, uint64_t site, uint64_t size);
int ttmon_ordinals_add(struct ttmon_ordinals *o, uint64_t site, uint64_t size) _must_check;
void ttmon_ordinals_fini(struct ttmon_ordinals *o);

/* ---- link.c ---- */

struct ttmon_link;

/* All is called in the thread. */
struct ttmon_link_cfg {
	const char *route;	 /* with "?" and an argument; must outlive the link */
	const char *thread;	 /* name of 15 bytes at most */
	void (*head)(void *ctx); /* the first line of a connection. May be NULL */
	/*
	 * A line that is neither a head nor says what was missed. row: it as an object; NULL: it is an array,
	 * or no JSON.
	 */
	void (*line)(struct ttmon_link *l, const char *at, size_t n, const json_t *row);
	void *ctx;
};

#define TTMON_LINK_LINE 8192u /* bytes; a longer line is none of ours */

struct ttmon_link {
	struct ttmon_link_cfg cfg;
	pid_t pid;
	char *socket;
	pthread_t thread;
	int cancel;
	/* earlier: lines of a daemon that were gone before the first connection to it */
	_Atomic uint64_t missed, earlier, connects, disconnects;
	/* Of the thread. */
	uint64_t after, gone; /* the line heard last, and how many were missed since */
	char start_id[32];
	bool connected;
	char part[TTMON_LINK_LINE];
	size_t len;
	bool too_long;
};

/* A zeroed link. On failure nothing is left of it. */
int ttmon_link_begin(struct ttmon_link *l, const char *socket, const struct ttmon_link_cfg *cfg) _must_check;
/* Not from its thread. In a child after fork() there is no thread to end. */
void ttmon_link_end(struct ttmon_link *l);
/* Did this process begin it? */
bool ttmon_link_is_own(const struct ttmon_link *l);
/* From line(): has a line of this number not come yet? It has then. */
bool ttmon_link_is_new(struct ttmon_link *l, uint64_t seq);
/* socket, else $TTMON_SOCKET, else the default. */
const char *ttmon_socket_or(const char *socket);

/* ---- advisor.c, live.c ---- */

#define TTMON_SHARDS 16u

struct ttmon_shard {
	_Alignas(64) _Atomic uint64_t by_match[TTMON_MATCH_MAX];
};

struct ttmon_sub;

struct ttmon_advisor {
	struct ttmon_profile *profile; /* NULL: live advice alone */
	struct ttmon_known known;
	struct ttmon_seens seens;
	struct ttmon_rows rows;
	struct ttmon_ordinals ordinals;
	uint32_t min_match;
	uint64_t entries, sites, peak_pin_bytes;
	_Atomic uint64_t order; /* of allocations without frames */
	_Atomic uint64_t gen;	/* that of objs */
	/*
	 * Read by who has counted himself in readers; a refresh that finds none there after it has put the new
	 * list frees the old ones.
	 */
	struct ttmon_objs *_Atomic objs;
	_Atomic uint32_t readers;
	struct ttmon_objs *retired;
	struct ttmon_funcs *funcs;
	_Atomic int refreshing; /* pid of who does: after a fork there may be nobody */
	char *socket;
	struct ttmon_sub *_Atomic sub; /* of the process that subscribed: see ttmon_sub_of() */
	_Atomic int moving;	       /* pid of who is in the callback */
	_Atomic int setting;	       /* pid of who reads or writes the two below */
	ttmon_move_fn move;
	void *move_ctx;
	struct ttmon_shard shards[TTMON_SHARDS];
};

/* Of this process; NULL where it has not subscribed, or its parent did. */
struct ttmon_sub *ttmon_sub_of(const struct ttmon_advisor *adv);
void ttmon_sub_free(struct ttmon_sub *sub);
void ttmon_sub_stats(const struct ttmon_sub *sub, struct ttmon_advisor_stats *ret);
/*
 * A flag that one thread of one process holds: taken if nobody, or a process before a fork(), has it.
 */
bool ttmon_flag_take(_Atomic int *flag);
static inline void ttmon_flag_drop(_Atomic int *flag)
{
	atomic_store_explicit(flag, 0, memory_order_release);
}

#endif
