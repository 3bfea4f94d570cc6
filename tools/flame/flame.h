/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flame.h: the parts of `ttmon flame`: what each call stack is charged with (sums.c), the stacks as a
 * tree (tree.c), and its outputs (cmd_flame.c).
 */
#ifndef TTMON_FLAME_H
#define TTMON_FLAME_H

#include <jansson.h>

#include "lib/read/run.h"

/* Of each: the word of --of, the title, the unit, and what it is. */
#define TTMON_FLAME_TABLE(X)                                                                                     \
	X(BYTE_SECONDS, "byte-seconds", "Pinned byte-seconds", "byte-seconds",                                   \
	  "pinned bytes, each times how long it was pinned, by the call stack that allocated or registered it")  \
	X(PEAK, "peak", "Pinned at the peak", "bytes", "bytes that were pinned when most were")                  \
	X(END, "end", "Pinned at the end", "bytes", "bytes that were still pinned when the capture ended")       \
	X(PAGEABLE, "pageable", "Copied from or to pageable memory", "bytes",                                    \
	  "bytes that were copied between pageable memory and the device, by the call stack that allocated the " \
	  "memory")                                                                                              \
	X(PIN, "pin", "Time to pin and unpin", "ns",                                                             \
	  "time in calls that pin and unpin, by the call stack that "                                            \
	  "allocated or registered")                                                                             \
	X(WAIT, "wait", "Time in synchronous calls", "ns",                                                       \
	  "time in synchronous calls, by their caller; of a call "                                               \
	  "only the innermost frame of the caller is kept")

enum ttmon_flame_of {
#define X(NAME, word, title, unit, about) TTMON_FLAME_##NAME,
	TTMON_FLAME_TABLE(X)
#undef X
		TTMON_FLAME_MAX
};

/* What a frame is, for its colour. */
enum ttmon_flame_kind { TTMON_FLAME_NATIVE, TTMON_FLAME_PYTHON, TTMON_FLAME_CALL, TTMON_FLAME_NOTE };

struct ttmon_flame_node {
	uint32_t parent, name;		/* parent: of the outermost frames 0, the root */
	uint64_t self[TTMON_FLAME_MAX]; /* what ends here; callees are not in it */
};

struct ttmon_flame {
	struct ttmon_flame_node *nodes; /* [0]: the root; a parent stands before its children */
	size_t nr_nodes;
	char **names;
	uint8_t *kinds; /* of the names */
	size_t nr_names;
	uint64_t total[TTMON_FLAME_MAX];
	bool known[TTMON_FLAME_MAX];	/* else the database says nothing about it */
	bool at_least[TTMON_FLAME_MAX]; /* lower bounds */
	uint64_t peak_ns;		/* when it was, CLOCK_MONOTONIC; 0: nothing was pinned */
	uint64_t unknown;		/* host allocations of which it is not known whether they were pinned */
	struct ttmon_flame_maker *maker;
};

/* ---- tree.c ---- */

int ttmon_flame_new(struct ttmon_flame **ret) _must_check;
void ttmon_flame_free(struct ttmon_flame *f);
/* The child of a node with this name, made where it is not there. -ENOMEM. */
int ttmon_flame_child(struct ttmon_flame *f, uint32_t parent, const char *name, enum ttmon_flame_kind kind,
		      uint32_t *ret) _must_check;
/*
 * The node of a call site of a run: its frames from the outermost in, below a note where the outermost
 * ones are not known. -ENOMEM.
 */
int ttmon_flame_site(struct ttmon_flame *f, const struct ttmon_run *run, uint32_t site, bool cut,
		     uint32_t *ret) _must_check;

/* ---- sums.c ---- */

/* Reads a database. -errno with one line in why. run: for its head. */
int ttmon_flame_load(const char *path, struct ttmon_flame **ret, struct ttmon_run **ret_run, char *why,
		     size_t n) _must_check;

TTMON_FREEP(ttmon_flame_freep, struct ttmon_flame, ttmon_flame_free);

#endif
