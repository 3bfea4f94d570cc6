/* SPDX-License-Identifier: GPL-2.0-only */
/* run_int.h: what run.c and run_head.c share. Nobody else includes it. */
#ifndef TTMON_LIB_RUN_INT_H
#define TTMON_LIB_RUN_INT_H

#include "core/hmap.h"
#include "lib/db.h"
#include "lib/run.h"

/* All times: far from wrapping, so that they can be compared and added to. */
#define TTMON_RUN_MAX_TIME ((uint64_t)INT64_MAX)

struct ttmon_run_chunk;

/* What owns the strings. Names come often and are there once; ids come once and are not looked up. */
struct ttmon_run_store {
	struct ttmon_run_chunk *chunks;
	size_t used, room; /* of the newest */
	size_t total;
	uint64_t seed;		 /* of all hashes made of what the file says: it cannot be written to make them meet */
	struct ttmon_hmap names; /* hash -> address */
};

struct ttmon_run_load {
	struct ttmon_run *run;
	struct ttmon_db *db;
	const struct ttmon_run_opts *opts;
	struct ttmon_hmap objects;  /* id in the file -> index */
	struct ttmon_hmap ordinals; /* of names, and of sites that cannot be told apart */
	bool *shared;		    /* sites: another one of this run has the same exact frames */
	size_t cap;		    /* allocations there is room for */
	const char *fn_name;	    /* looked up last */
	uint16_t fn;
	char why[256];
};

/* Text into the store. -E2BIG, -ENOMEM. */
int ttmon_run_put(struct ttmon_run *run, const char *text, size_t n, const char **ret) _must_check;
int ttmon_run_intern(struct ttmon_run *run, const char *text, const char **ret) _must_check;
/* Sets the line of the error, and gives err back. */
int ttmon_run_fail(struct ttmon_run_load *l, int err, const char *fmt, ...) _printf_(3, 4);
/* All members but the allocations. _head before them, _tail after them. */
int ttmon_run_head(struct ttmon_run_load *l) _must_check;
int ttmon_run_tail(struct ttmon_run_load *l) _must_check;
/* A number out of the file as a key of a hash table. */
uint64_t ttmon_run_hash(const struct ttmon_run *run, uint64_t v);
/* A time of an object; def where there is none. */
uint64_t ttmon_run_time(const json_t *obj, const char *key, uint64_t def);

#endif
