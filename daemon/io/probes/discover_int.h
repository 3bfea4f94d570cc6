/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * discover_int.h: what discover.c (processes and their mappings) and discover_obj.c (files and their
 * probes) share.
 */
#ifndef TTMON_DISCOVER_INT_H
#define TTMON_DISCOVER_INT_H

#include "daemon/io/probes/discover.h"
#include "daemon/io/probes/jobs.h"
#include "daemon/io/probes/mounts.h"
#include "lib/os/worker.h"

/* What a file may have functions of, that nobody could read. */
#define TTMON_UNREAD_FAMILIES (TTMON_FAMILIES_CUDA | TTMON_FAMILY_BIT(TENSTORRENT) | TTMON_FAMILY_BIT(DISPATCH))

struct object;

/* Who waits until an object has its probes, or is known to get none; o NULL: no memory. */
struct then {
	void (*fn)(void *ctx, struct object *o);
	void *ctx;
	struct then *next;
};

struct object {
	struct ttmon_discover *d;
	struct ttmon_file_stat st; /* dev and ino are the key */
	uint32_t id;		   /* of the OBJECT fact, 0: not told yet */
	int fd;			   /* O_PATH; -1: not kept open */
	struct ttmon_mount_at mount;
	char *path;
	uint64_t who; /* the user for whom it was read */
	struct ttmon_elf_info elf;
	struct ttmon_probes probes;
	bool probed;
	struct attaching *attaching; /* its probes go in: it is not closed, forgotten or read anew */
	struct then *then;	     /* while that lasts */
	/* batches of its links that go: until then it gets no new ones, a call would be told twice */
	uint32_t closing;
	bool opening;  /* it is being opened for its symbols */
	bool unread;   /* nobody could read it: what is in it is not known */
	bool ahead;    /* it was probed before a process had it mapped */
	bool has_slot; /* it is the object of d->tt[tt_slot] */
	uint16_t tt_slot;
	int err;
	uint64_t mapped_ns, active_ns;
	bool held;
	uint16_t refused;    /* families (1 << family) of which some function cannot be, or is not, probed */
	uint32_t charged;    /* probes that count for that user */
	uint32_t over_share; /* probes that it would have had; 0: it was not refused for its owner's share */
	struct object *next, *next_probed;
};

/* Probes in files of one user (discover_share.c). */
struct share {
	uint32_t uid;
	uint32_t tgid; /* that mapped the file that was refused last */
	uint64_t probes, refused;
};

/* What a process had mapped, until all of it is known, or late, and it has been told. */
struct list {
	struct ttmon_discover *d;
	uint32_t tgid;
	bool tell;		 /* the process is traced: its mappings go into the stream */
	struct ttmon_listing *l; /* NULL: not read yet */
	struct object **objects; /* beside l->maps */
	size_t pending;		 /* of them that are being read */
	uint64_t due_ns;	 /* when it is told without those */
	struct ttmon_list_hooks hooks;
	struct list *next;
};

/* A process that has mapped a file which is being read. */
struct waiter {
	uint32_t tgid, tid;
	uint64_t mapped_ns;	/* 0: nobody saw since when */
	struct ttmon_mapping m; /* name owned */
	struct list *list;	/* it is number `at` of this list; NULL: of none, or the list has been told */
	size_t at;
	bool first;		  /* ttmon_discover_first(): the mapping itself comes later */
	bool late;		  /* it has been told that nobody knows what is in the file */
	const struct object *was; /* it has been told to be this one, with this id; NULL: nothing has been told */
	uint32_t was_id;
	struct waiter *next;
};

/*
 * What the kernel calls a file in /proc/PID/maps and MMAP2 records: the superblock's device, which
 * st_dev need not be (btrfs, overlayfs).
 */
struct alias {
	struct ttmon_discover *d;
	uint32_t major, minor;
	uint64_t ino;
	struct object *object; /* NULL: not known */
	bool reading;
	struct then then;
	bool checking;	   /* somebody looks whether it is as it was */
	uint64_t asked_ns; /* since when it is read */
	struct waiter *waiters, **last;
	uint32_t id;	   /* of its OBJECT fact as a file that nobody knows, 0: not told */
	int err;	   /* why it could not be read */
	uint64_t again_ns; /* not tried again before */
	char *path;	   /* with err, or while it is read */
	struct alias *next_unread;
};

struct process {
	uint32_t tgid;
	uint64_t start_ns; /* 0: not known */
	uint64_t list_ns;  /* the newest list of its mappings that was reported was read then; 0: none yet */
	bool listed;	   /* its mappings were told: later ones are told one by one */
	bool switches;	   /* it has a file that switches stacks */
	bool said;	   /* and it was said what follows */
	bool python;	   /* its Python frames are found */
	uint32_t python_of; /* in the object with this id; refused: no other is looked at */
	bool unprobed;	    /* told to have a GPU's device file mapped, and nothing with probes */
	uint32_t *
		settled; /* ids of objects: it mapped them when their probes were active, or how blind it was is told */
	uint32_t nr_settled;
	uint32_t pending; /* of its mappings and lists that are being read */
	uint64_t gone_ns; /* it has ended, and is forgotten when nothing is pending any more; 0: not */
	void (*gone)(void *ctx, uint32_t tgid);
	void *ctx;
};

struct ttmon_discover {
	struct ttmon_discover_cfg cfg;
	struct ttmon_helpers *helpers;
	struct ttmon_worker *attacher, *closer; /* putting probes in, taking them out: both wait for the kernel */
	int event_fd;				/* of both */
	void *aliases;				/* tsearch trees */
	void *objects;
	void *processes;
	struct object *list, *probed; /* all; those with probes, a few */
	uint32_t next_id;
	uint32_t nr_open; /* fds of objects without probes */
	uint32_t nr_objects;
	uint32_t nr_ahead;		   /* probed before a process had them mapped, since the start */
	uint32_t nr_ahead_out;		   /* of them that are being read */
	struct object *tt[TTMON_TT_SLOTS]; /* libraries with tt-metal, by slot */
	struct share *shares;
	uint32_t nr_shares;
	struct list *lists;
	struct alias *reading; /* those that are being read, or could not be: by next_unread */
	struct check *check;   /* gathered, not sent yet */
	uint32_t nr_gone;      /* processes that have ended and are not forgotten yet */
	bool sweeping;	       /* looking for files that are gone */
	uint32_t who_tgid;     /* the last one whose user was asked for */
	uint64_t who, who_ns;
	uint16_t tt_next; /* where the next slot is looked for: one that was given back is used late */
};

struct process *ttmon_discover_process(struct ttmon_discover *d, uint32_t tgid, bool create);
/* Something of a process has been read, or given up. */
void ttmon_discover_unpend(struct ttmon_discover *d, uint32_t tgid);
/* The file of a waiter's mapping is known (o), or will not be (NULL). Frees w. */
void ttmon_discover_waited(struct ttmon_discover *d, struct waiter *w, struct object *o);
/*
 * The object behind a mapping, if it is known; NULL with *pending: it is being read, and w, a copy of
 * which is made, waits for it; NULL
 * without: it cannot be read. w->m.name is borrowed.
 */
struct object *ttmon_object_of_mapping(struct ttmon_discover *d, const struct waiter *w, bool *pending);
/* Ask whether the files that were taken for known are as they were. */
void ttmon_objects_send_check(struct ttmon_discover *d);
/* Is this file known as it is? */
bool ttmon_object_known(struct ttmon_discover *d, const struct ttmon_file_stat *st);
/*
 * Open and read a file that nobody need have mapped. fd: borrowed, -1: path in root. done may be NULL;
 * it gets the object, or NULL.
 */
struct ttmon_object_ask {
	uint64_t who, where;
	int fd;
	const char *root, *path;
	struct ttmon_file *file; /* fd has been read, and has this; what is taken of it is zeroed. NULL: it is read */
	bool held;
	void (*done)(void *ctx, struct object *o);
	void *ctx;
};
int ttmon_object_read(struct ttmon_discover *d, const struct ttmon_object_ask *ask) _must_check;
/* A list is told without the files that it waits for: they are told one by one. */
void ttmon_objects_unlist(struct ttmon_discover *d, const struct list *l);
/* Late ones are told. all: those that are not late yet too. */
void ttmon_objects_late(struct ttmon_discover *d, bool all);
/* A traced process maps it: its symbols are wanted later, when the process may be gone. */
void ttmon_object_keep(struct ttmon_discover *d, struct object *o, uint32_t tgid, const struct ttmon_mapping *m);
/*
 * How long calls to an object went unseen in a process that mapped it at mapped_ns (0: before the
 * trace).
 */
void ttmon_object_tell_blind(struct ttmon_discover *d, uint32_t tgid, const struct object *o, uint64_t mapped_ns,
			     enum ttmon_blind_how how);
/*
 * Files that were overwritten: their probes lie in the middle of other instructions by now. Detach,
 * and read them anew.
 */
void ttmon_objects_check(struct ttmon_discover *d);
/* Was it seen to map this object, which has or should have probes? */
bool ttmon_discover_has(struct ttmon_discover *d, uint32_t tgid, const struct object *o);
/* Some function of it cannot be probed: each process that has it is told. */
void ttmon_discover_refused(struct ttmon_discover *d, const struct object *o);
/* Close and detach what is gone; any_process: some process is still traced. */
void ttmon_objects_sweep(struct ttmon_discover *d, bool any_process);
/* Its links are closed elsewhere; before it gets new ones in this thread, that is waited for. */
void ttmon_object_wait_closed(struct ttmon_discover *d, const struct object *o);
/*
 * Slots of libraries with tt-metal (discover_tt.c). Take one before the probes are attached: -ENOSPC,
 * or the slot.
 */
int ttmon_object_tt_take(struct ttmon_discover *d, struct object *o);
void ttmon_object_tt_give(struct ttmon_discover *d, struct object *o);
/* The fact TT_OBJECT of an object whose OBJECT fact has been told. */
void ttmon_object_tell_tt(struct ttmon_discover *d, const struct object *o);
void ttmon_objects_free(struct ttmon_discover *d);
/*
 * discover_share.c: n probes for the owner of this file. False: that user has its share; the object
 * says so.
 */
bool ttmon_share_take(struct ttmon_discover *d, struct object *o, uint32_t n);
void ttmon_share_give(struct ttmon_discover *d, struct object *o);
/* A process maps what was refused. */
void ttmon_share_mapped(struct ttmon_discover *d, const struct object *o, uint32_t tgid);
/* It was refused, and would not be now. */
bool ttmon_share_has_room_again(struct ttmon_discover *d, const struct object *o);

#endif
