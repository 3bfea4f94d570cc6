/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * discover.h: which files are CUDA libraries (or programs with one inside), who has them mapped, and
 * the probes on them.
 *
 * A uprobe belongs to an inode: every distinct file that has functions for us gets its own links,
 * found by scanning processes at start, then by perf MMAP2 records and, under -- CMD, by the requests
 * of io/hold. Objects are opened through /proc/PID/map_files, which needs no path in our mount
 * namespace, and attached through the open fd. Probes stay while the file has a name, so that the next
 * program that maps it is seen from its first call; they go when it has neither a name nor a mapping.
 *
 * What it learns goes into the stream as facts (OBJECT, MAP, MAPS_DONE, PROC_NAME, SYMBOL, BLIND).
 * Runs in the cold thread.
 */
#ifndef TTMON_DISCOVER_H
#define TTMON_DISCOVER_H

#include "daemon/core/history/history.h"
#include "daemon/io/bpf/bpf.h"
#include "daemon/io/objects/mmap2.h"
#include "daemon/io/objects/objects.h"
#include "daemon/io/probes/probes.h"

struct ttmon_discover;
struct ttmon_helper_reply;

struct ttmon_discover_cfg {
	struct ttmon_bpf *bpf;
	struct ttmon_probes_opts probes;
	const struct ttmon_user_fn *user;
	size_t nr_user;
	bool all;	  /* objects of every process; else only of those traced */
	bool returns_all; /* processes that switch stacks are as others */
	bool look_ahead;  /* with all: libraries under the usual paths too, before a process maps them */
	char *const
		*ahead; /* and in these folders of our own root: patterns, as fnmatch(3) has them for each component */
	size_t nr_ahead;
	uint32_t max_user_probes;      /* of files of one user, 0: 32,768; of root 131,072 */
	struct ttmon_helpers *helpers; /* whose functions begin with ttmon_jobs (jobs.h) */
	void (*fact)(void *ctx, const void *rec, size_t size);
	void *ctx;
};

int ttmon_discover_new(const struct ttmon_discover_cfg *cfg, struct ttmon_discover **ret) _must_check;
void ttmon_discover_free(struct ttmon_discover *d); /* detaches everything */
/* From now on facts go here: at the end, when the hot thread is gone. */
void ttmon_discover_redirect(struct ttmon_discover *d, void (*fact)(void *ctx, const void *rec, size_t size),
			     void *ctx);

/* Every process of the host: find and probe the objects they have mapped. */
int ttmon_discover_scan(struct ttmon_discover *d) _must_check;
/*
 * Libraries that may be mapped soon: those under the usual paths that are new, of this host and of its
 * containers.
 */
void ttmon_discover_ahead(struct ttmon_discover *d);
/*
 * From now on new mappings of this process, which began at start_ns (0: not known), are told, as their
 * records come. -ENOMEM.
 */
int ttmon_discover_follow(struct ttmon_discover *d, uint32_t tgid, uint64_t start_ns) _must_check;
/* Each process whose mappings are told. */
void ttmon_discover_each_followed(struct ttmon_discover *d, void (*cb)(void *ctx, uint32_t tgid), void *ctx);
/* What a file is called, by the id that its fact has; NULL: it is not known any more. */
/* A number for an OBJECT fact of another part. */
uint32_t ttmon_discover_number(struct ttmon_discover *d);
const char *ttmon_discover_path(const struct ttmon_discover *d, uint32_t id);
/* When a process that is followed began; 0: not known. */
uint64_t ttmon_discover_start(struct ttmon_discover *d, uint32_t tgid);
/*
 * What a process has mapped is listed; what is in the list is probed. tell: it is traced, its names
 * are told before, and the list after. A file that takes long is not waited for: it is told when it is
 * known, and if that takes very long, that nobody knows what is in it.
 */
struct ttmon_list_hooks {
	void (*read)(
		void *ctx,
		uint32_t
			tgid); /* the list was read: before it is looked at, records of mappings are taken, which know since when */
	void (*told)(void *ctx, uint32_t tgid); /* once, also where there was nothing to tell */
	void *ctx;
};
void ttmon_discover_list(struct ttmon_discover *d, uint32_t tgid, bool tell, const struct ttmon_list_hooks *hooks);
/* Its children and their children that exist already are found too: cb for each. */
int ttmon_discover_children(uint32_t tgid, int (*cb)(void *ctx, uint32_t tgid), void *ctx) _must_check;
/*
 * A process has ended: gone() when what it had mapped last is told too, at the latest 100 ms from now;
 * then it is forgotten.
 */
void ttmon_discover_leave(struct ttmon_discover *d, uint32_t tgid, void (*gone)(void *ctx, uint32_t tgid), void *ctx);
/*
 * An executable mapping appeared that ttmon_discover_mapping() will be told of: a library that
 * its name says is one to probe is probed at once.
 */
void ttmon_discover_first(struct ttmon_discover *d, const struct ttmon_mmap2_rec *rec);
/* An executable mapping appeared. */
void ttmon_discover_mapping(struct ttmon_discover *d, const struct ttmon_mmap2_rec *rec);
/*
 * A file that a held process is about to map or execute, if it has probes now; else id is 0. is_new:
 * they were put on it for this process.
 */
struct ttmon_held_object {
	uint32_t id;
	bool is_new;
};
/* reply: of ttmon_job_held(), with its file (borrowed). done is called at once or later. */
void ttmon_discover_held(struct ttmon_discover *d, uint32_t tgid, const struct ttmon_helper_reply *reply, bool exec,
			 void (*done)(void *ctx, const struct ttmon_held_object *held), void *ctx);
/* It has been let go; waited: not before that was done, which was begun at begun_ns. */
void ttmon_discover_held_end(struct ttmon_discover *d, uint32_t tgid, const struct ttmon_held_object *held,
			     uint64_t begun_ns, bool waited);
/*
 * A helper opens the file of an object, by the id that its fact has, and sends the descriptor to a
 * socket (borrowed), with one byte. It cannot be had: the socket is closed, and nothing was sent.
 */
void ttmon_discover_hand(struct ttmon_discover *d, uint32_t id, int sock);
/*
 * The user that a process's files are read for (lib/os/helpers.h): its user; of root's processes each
 * mount namespace is one.
 */
uint64_t ttmon_discover_who(struct ttmon_discover *d, uint32_t tgid);
/* Answer the history's questions for names. */
void ttmon_discover_symbols(struct ttmon_discover *d, const struct ttmon_frame *frames, size_t n);
/*
 * Readable when ttmon_discover_turn() has something to do: probes that went into a file, or out of
 * one, in a thread.
 */
int ttmon_discover_fd(const struct ttmon_discover *d);
void ttmon_discover_turn(struct ttmon_discover *d);
/* Wait until all probes are in that are going in; false: there were none. */
bool ttmon_discover_drain(struct ttmon_discover *d);
/* fn in each of these threads, one after the other; waits for that. -ENOMEM: not in all of them. */
int ttmon_discover_in_threads(struct ttmon_discover *d, void (*fn)(void *ctx), void *ctx) _must_check;
/* Often: probes are moved in files that were overwritten; what is late is told. */
void ttmon_discover_check(struct ttmon_discover *d);
/* The end: what is still being read is told to be unknown. */
void ttmon_discover_end(struct ttmon_discover *d);
/* From time to time: detach from files that are gone. */
void ttmon_discover_sweep(struct ttmon_discover *d);

/*
 * The probes of tt-metal that a working primary pair makes superfluous, in the library with this slot:
 * taken away, or put back. Told in a TT_OBJECT fact. -ENOENT: no such slot. -EOPNOTSUPP: this kernel
 * has no multi links, they stay.
 */
int ttmon_discover_tt_spare(struct ttmon_discover *d, uint16_t slot, bool on);
/*
 * Where the vtables of the library with this slot lie in its file; 0: it has none. False: no such
 * slot.
 */
bool ttmon_discover_tt_vtables(const struct ttmon_discover *d, uint16_t slot, struct ttmon_tt_slot *ret);

/* Take a family's probes away from every object, those that come later too, or put them back. */
void ttmon_discover_family(struct ttmon_discover *d, enum ttmon_family family, bool on);
/* Whether objects of processes that are not traced are probed, from now on. */
void ttmon_discover_set_all(struct ttmon_discover *d, bool all);

/* For status: objects that have (or should have) probes. */
struct ttmon_object_state {
	uint32_t id;
	const char *path;
	uint64_t dev, ino;
	uint32_t kind;	 /* TTMON_OBJ_IS_* */
	int tt_slot;	 /* -1: none */
	uint32_t tt_has; /* TTMON_TT_HAS_*, 0 without probes */
	uint32_t rt_major;
	const uint8_t *build_id;
	uint8_t build_id_len;
	const struct ttmon_probes *probes;
	size_t missing;
	int err;     /* attaching or reading failed: -errno, or one of probes.h */
	bool unread; /* nobody knows what is in it: it could not be read, or not yet */
	uint64_t mapped_ns, active_ns;
	bool held;
};
/* Every process that has or had objects mapped that have, or should have, probes: ids of these. */
void ttmon_discover_each_use(const struct ttmon_discover *d,
			     void (*cb)(void *ctx, uint32_t tgid, uint64_t start_ns, const uint32_t *ids, uint32_t n),
			     void *ctx);
void ttmon_discover_each(const struct ttmon_discover *d, void (*cb)(void *ctx, const struct ttmon_object_state *o),
			 void *ctx);
/*
 * Whose files got no probes because that user has its share; rows has room for TTMON_QUOTA_ROWS.
 * Returns how many.
 */
uint32_t ttmon_discover_quotas(const struct ttmon_discover *d, struct ttmon_quota_row *rows);
/* Probes attached in all, and how many of them are single-stepped. */
void ttmon_discover_counts(const struct ttmon_discover *d, size_t *objects, size_t *attached, size_t *single_step);

#endif
