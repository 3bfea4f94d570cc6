/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * discover.h: finds the files that are CUDA libraries (or programs that contain one), the processes
 * that have them mapped, and manages the probes on them.
 *
 * A uprobe belongs to an inode: every distinct file with functions of the table gets its own links,
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
	bool all;	  /* objects of every process; else only of traced ones */
	bool returns_all; /* processes that switch stacks are treated like others */
	bool look_ahead;  /* with all: libraries under the usual paths too, before a process maps them */
	/* and in these folders of our own root: patterns, as fnmatch(3) has them for each component */
	char *const *ahead;
	size_t nr_ahead;
	uint32_t max_user_probes;      /* for files of one user, 0: 32,768; for root's 131,072 */
	struct ttmon_helpers *helpers; /* whose functions begin with ttmon_jobs (jobs.h) */
	void (*fact)(void *ctx, const void *rec, size_t size);
	void *ctx;
};

int ttmon_discover_new(const struct ttmon_discover_cfg *cfg, struct ttmon_discover **ret) _must_check;
void ttmon_discover_free(struct ttmon_discover *d); /* detaches everything */
/* From now on facts go here; used at the end, when the hot thread is gone. */
void ttmon_discover_redirect(struct ttmon_discover *d, void (*fact)(void *ctx, const void *rec, size_t size),
			     void *ctx);

/* Finds and probes the objects that the processes of the host have mapped. */
int ttmon_discover_scan(struct ttmon_discover *d) _must_check;
/*
 * Probes libraries that may be mapped soon: new ones under the usual paths of this host and its
 * containers.
 */
void ttmon_discover_ahead(struct ttmon_discover *d);
/*
 * From now on new mappings of this process, which began at start_ns (0: unknown), are reported as
 * their records come. -ENOMEM.
 */
int ttmon_discover_follow(struct ttmon_discover *d, uint32_t tgid, uint64_t start_ns) _must_check;
/* Calls cb for each process whose mappings are reported. */
void ttmon_discover_each_followed(struct ttmon_discover *d, void (*cb)(void *ctx, uint32_t tgid), void *ctx);
/* What a file is called, by the id that its fact has; NULL: it is not known any more. */
/* A number for an OBJECT fact of another part. */
uint32_t ttmon_discover_number(struct ttmon_discover *d);
const char *ttmon_discover_path(const struct ttmon_discover *d, uint32_t id);
/* Start time of a followed process; 0: unknown. */
uint64_t ttmon_discover_start(struct ttmon_discover *d, uint32_t tgid);
/*
 * Lists a process's mappings and probes the objects in the list. tell: it is traced; its names are
 * reported before the list. A file that takes long is not waited for: it is reported when it is known,
 * or, if that takes very long, as unknown.
 */
struct ttmon_list_hooks {
	/* Called when the list was read, before it is used: mappings are then taken from records. */
	void (*read)(void *ctx, uint32_t tgid);
	void (*told)(void *ctx, uint32_t tgid); /* called once, also if there was nothing to report */
	void *ctx;
};
void ttmon_discover_list(struct ttmon_discover *d, uint32_t tgid, bool tell, const struct ttmon_list_hooks *hooks);
/* Calls cb for each of its present children, and theirs. */
int ttmon_discover_children(uint32_t tgid, int (*cb)(void *ctx, uint32_t tgid), void *ctx) _must_check;
/*
 * A process has ended: gone() is called when its last mappings were reported, at the latest 100 ms
 * from now; then the process is forgotten.
 */
void ttmon_discover_leave(struct ttmon_discover *d, uint32_t tgid, void (*gone)(void *ctx, uint32_t tgid), void *ctx);
/*
 * An executable mapping appeared, of which ttmon_discover_mapping() will be called later: a library
 * with a known name is probed at once.
 */
void ttmon_discover_first(struct ttmon_discover *d, const struct ttmon_mmap2_rec *rec);
/* An executable mapping appeared. */
void ttmon_discover_mapping(struct ttmon_discover *d, const struct ttmon_mmap2_rec *rec);
/*
 * A file that a held process is about to map or execute, if it has probes now; else id is 0. is_new:
 * they were attached for this process.
 */
struct ttmon_held_object {
	uint32_t id;
	bool is_new;
};
/* reply: of ttmon_job_held(), with its file (borrowed). done is called at once or later. */
void ttmon_discover_held(struct ttmon_discover *d, uint32_t tgid, const struct ttmon_helper_reply *reply, bool exec,
			 void (*done)(void *ctx, const struct ttmon_held_object *held), void *ctx);
/* The held call was released. waited: it waited until the work begun at begun_ns was done. */
void ttmon_discover_held_end(struct ttmon_discover *d, uint32_t tgid, const struct ttmon_held_object *held,
			     uint64_t begun_ns, bool waited);
/*
 * A helper opens the file of an object, by the id of its fact, and sends the descriptor to a socket
 * (borrowed), with one byte. If the file is not available, the socket is closed and nothing is sent.
 */
void ttmon_discover_hand(struct ttmon_discover *d, uint32_t id, int sock);
/*
 * The user that a process's files are read for (lib/os/helpers.h): its user; for root's processes each
 * mount namespace is one.
 */
uint64_t ttmon_discover_who(struct ttmon_discover *d, uint32_t tgid);
/* Answers the history's requests for names. */
void ttmon_discover_symbols(struct ttmon_discover *d, const struct ttmon_frame *frames, size_t n);
/* Readable when ttmon_discover_turn() has work: probes were attached or detached by a thread. */
int ttmon_discover_fd(const struct ttmon_discover *d);
void ttmon_discover_turn(struct ttmon_discover *d);
/* Waits until all probes that are being attached are in place; false: there were none. */
bool ttmon_discover_drain(struct ttmon_discover *d);
/*
 * Runs fn in each of these threads, one after the other, and waits for that. -ENOMEM: not in all of
 * them.
 */
int ttmon_discover_in_threads(struct ttmon_discover *d, void (*fn)(void *ctx), void *ctx) _must_check;
/* Call it often: moves probes in overwritten files, and reports late files. */
void ttmon_discover_check(struct ttmon_discover *d);
/* The end: files that are still being read are reported as unknown. */
void ttmon_discover_end(struct ttmon_discover *d);
/* Call it from time to time: detaches from files that are gone. */
void ttmon_discover_sweep(struct ttmon_discover *d);

/*
 * Removes or restores the probes of tt-metal that a working primary pair makes superfluous, in the
 * library with this slot; reported in a TT_OBJECT fact. -ENOENT: no such slot. -EOPNOTSUPP: this
 * kernel has no multi links, and they stay.
 */
int ttmon_discover_tt_spare(struct ttmon_discover *d, uint16_t slot, bool on);
/*
 * Addresses of the vtables of the library with this slot in its file; 0: it has none. False: no such
 * slot.
 */
bool ttmon_discover_tt_vtables(const struct ttmon_discover *d, uint16_t slot, struct ttmon_tt_slot *ret);

/* Removes a family's probes from every object, including later ones, or restores them. */
void ttmon_discover_family(struct ttmon_discover *d, enum ttmon_family family, bool on);
/* Sets whether objects of processes that are not traced are probed from now on. */
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
	bool unread; /* its content is unknown: it could not be read, or not yet */
	uint64_t mapped_ns, active_ns;
	bool held;
};
/*
 * Calls cb for every process that has or had objects with (missing) probes mapped: ids of these
 * objects.
 */
void ttmon_discover_each_use(const struct ttmon_discover *d,
			     void (*cb)(void *ctx, uint32_t tgid, uint64_t start_ns, const uint32_t *ids, uint32_t n),
			     void *ctx);
void ttmon_discover_each(const struct ttmon_discover *d, void (*cb)(void *ctx, const struct ttmon_object_state *o),
			 void *ctx);
/*
 * Users whose files got no probes because their share is used up; rows has room for TTMON_QUOTA_ROWS.
 * Returns their number.
 */
uint32_t ttmon_discover_quotas(const struct ttmon_discover *d, struct ttmon_quota_row *rows);
/* Number of probes attached in total, and of those that are single-stepped. */
void ttmon_discover_counts(const struct ttmon_discover *d, size_t *objects, size_t *attached, size_t *single_step);

#endif
