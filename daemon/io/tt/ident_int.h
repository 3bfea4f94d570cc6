/* SPDX-License-Identifier: GPL-2.0-only */
/* ident_int.h: shared by the files of io/tt/ident and their tests. */
#ifndef TTMON_TTIDENT_INT_H
#define TTMON_TTIDENT_INT_H

#include "daemon/io/tt/ident.h"

#define TTIDENT_CHIPS	 1024 /* in total, including chips that are gone */
#define TTIDENT_LEARNED	 256  /* of them, known by key only */
#define TTIDENT_PROCS	 4096
#define TTIDENT_LOGICALS 1024 /* ids of a process: 0..1023 */
#define TTIDENT_VISIBLE	 4096 /* longest TT_VISIBLE_DEVICES that is read */
#define TTIDENT_KEYS	 64   /* mapped files of a process */

/* A reading of /proc/PID. */
#define TTIDENT_NOTED 64 /* announced processes that are kept */

struct ttident_info {
	uint32_t tgid;
	uint64_t start;		       /* of the process, in clock ticks; 0: not known */
	uint64_t at_ns;		       /* time of the reading */
	bool env_known;		       /* its environment, and everything else needed, could be read */
	bool own;		       /* a file of its own statistics is mapped */
	char visible[TTIDENT_VISIBLE]; /* TT_VISIBLE_DEVICES, "" if it is not set */
	uint64_t keys[TTIDENT_KEYS];   /* of mapped tt_device_KEY_memory files, each once */
	size_t nr_keys;
	bool open[TTIDENT_CHIPS]; /* chips it has open, by position */
	size_t nr_open;
	bool hidden[TTIDENT_CHIPS]; /* chips without a node in its /dev (containers) */
};

struct ttident_logical {
	uint32_t logical, chip; /* chip: index of the fact, 0 unknown */
	uint32_t how;
};

struct ttident_proc {
	uint32_t tgid;
	uint32_t checks; /* looks that are left at whether it has mapped a file of its own by now */
	bool again;	 /* chips came that may be what was not known */
	uint64_t start;
	bool own;
	struct ttident_logical *v;
	size_t n, cap;
};

/* Further data of a chip. */
struct ttident_extra {
	bool learned_unique; /* a process reported it */
	uint32_t near;	     /* of a remote chip: index of its near half */
	bool seen;	     /* by the present refresh */
};

struct ttmon_ttident {
	struct ttmon_ttident_cfg cfg;
	struct ttmon_ttsys_chip chips[TTIDENT_CHIPS]; /* chip of index i is at i - 1 */
	struct ttident_extra extra[TTIDENT_CHIPS];
	size_t nr_chips, nr_learned;
	struct ttident_proc *procs;
	size_t nr_procs, cap_procs;
	struct ttident_info info;		   /* of the process of the last request */
	struct ttident_info *noted[TTIDENT_NOTED]; /* ring of the last announced ones; NULL: none */
	size_t next_noted;
};

/* ident_proc.c */
/* What a helper read of this process. n 0: it could not look. */
void ttmon_ttident_unpack(const struct ttmon_ttident *t, uint32_t tgid, const char *buf, size_t n,
			  struct ttident_info *ret);
/* "/dev/shm/tt_device_KEY_memory": the key. */
bool ttmon_ttident_parse_key(const char *path, uint64_t *key);

/* ident_order.c */
/*
 * Positions of chips in the order of their bus address: those present, neither remote nor learned, not
 * hidden.
 */
size_t ttmon_ttident_order(const struct ttmon_ttident *t, const bool *hidden, uint32_t *ret);
/*
 * Applies TT_VISIBLE_DEVICES to the n chips of order: set[position] is true for selected ones. Numbers
 * count in order, or with by_ordinal are N of /dev/tenstorrent/N. -EINVAL: UMD would refuse it.
 */
int ttmon_ttident_parse_visible(const struct ttmon_ttident *t, const char *text, const uint32_t *order, size_t n,
				bool by_ordinal, bool *set) _must_check;
/*
 * The chip (index, 0 unknown) of a logical id without any key. *locals: number of local chips of the
 * process, 0 unknown.
 */
uint32_t ttmon_ttident_resolve(const struct ttmon_ttident *t, const struct ttident_info *info, uint32_t logical,
			       uint32_t *how, size_t *locals);

/* ident_key.c */
/*
 * The chip of a file key that a process uses for a logical id, learned if it is new. strict: nothing
 * is learned by order alone.
 */
uint32_t ttmon_ttident_by_key(struct ttmon_ttident *t, const struct ttident_info *info, uint32_t logical, uint64_t key,
			      bool strict);

/* ident.c */
void ttmon_ttident_tell_chip(struct ttmon_ttident *t, size_t pos);
/* Adds a new chip at the end: its position, or SIZE_MAX if there are too many. */
size_t ttmon_ttident_add(struct ttmon_ttident *t, const struct ttmon_ttsys_chip *c);

#endif
