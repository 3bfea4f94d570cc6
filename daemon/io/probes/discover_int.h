/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * discover_int.h: shared by discover.c (processes and their mappings) and discover_obj.c (files and
 * their probes).
 */
#ifndef TTMON_DISCOVER_INT_H
#define TTMON_DISCOVER_INT_H

#include "daemon/io/probes/discover.h"
#include "daemon/io/probes/jobs.h"
#include "daemon/io/probes/mounts.h"
#include "lib/os/worker.h"

/* Families of which a file that could not be read may have functions. */
#define TTMON_UNREAD_FAMILIES (TTMON_FAMILIES_CUDA | TTMON_FAMILY_BIT(TENSTORRENT) | TTMON_FAMILY_BIT(DISPATCH))

struct object;

/* Called when an object has its probes, or will get none; o NULL: out of memory. */
struct then {
	void (*fn)(void *ctx, struct object *o);
	void *ctx;
	struct then *next;
};

struct object {
	struct ttmon_discover *d;
	struct ttmon_file_stat st; /* dev and ino are the key */
	uint32_t id;		   /* number in the OBJECT fact, 0: no fact was sent yet */
	int fd;			   /* O_PATH; -1: not kept open */
	struct ttmon_mount_at mount;
	char *path;
	uint64_t who; /* the user for whom it was read */
	struct ttmon_elf_info elf;
	struct ttmon_probes probes;
	bool probed;
	/* its probes are being attached: meanwhile it is not closed, forgotten or read again */
	struct attaching *attaching;
	struct then *then; /* called after that */
	/*
	 * Batches of its links that are being closed: until then it gets no new ones, since both would report
	 * each call.
	 */
	uint32_t closing;
	bool opening;  /* it is being opened for its symbols */
	bool unread;   /* it could not be read: its content is unknown */
	bool ahead;    /* it was probed before a process had it mapped */
	bool has_slot; /* it is the object in d->tt[tt_slot] */
	uint16_t tt_slot;
	int err;
	uint64_t mapped_ns, active_ns;
	bool held;
	uint16_t refused;    /* families (1 << family) with a function that cannot be, or is not, probed */
	uint32_t charged;    /* probes counted for that user */
	uint32_t over_share; /* probes that it needs; 0: it was not refused because of its owner's share */
	struct object *next, *next_probed;
};

/* Probes in files of one user (discover_share.c). */
struct share {
	uint32_t uid;
	uint32_t tgid; /* process that mapped the file that was refused last */
	uint64_t probes, refused;
};

/* A process's mappings, until all of them are known, or late, and were reported. */
struct list {
	struct ttmon_discover *d;
	uint32_t tgid;
	bool tell;		 /* the process is traced: its mappings go into the stream */
	struct ttmon_listing *l; /* NULL: not read yet */
	struct object **objects; /* parallel to l->maps */
	size_t pending;		 /* number of them that are being read */
	uint64_t due_ns;	 /* when the list is reported without those */
	struct ttmon_list_hooks hooks;
	struct list *next;
};

/* A process with a mapped file that is being read. */
struct waiter {
	uint32_t tgid, tid;
	uint64_t mapped_ns;	/* 0: the time of the mapping was not seen */
	struct ttmon_mapping m; /* name owned */
	struct list *list;	/* it is number `at` of this list; NULL: of no list, or the list was reported already */
	size_t at;
	bool first;		  /* ttmon_discover_first(): the mapping itself comes later */
	bool late;		  /* it was reported that the file's content is unknown */
	const struct object *was; /* it was reported to be this object, with this id; NULL: nothing was reported */
	uint32_t was_id;
	struct waiter *next;
};

/*
 * A file as the kernel identifies it in /proc/PID/maps and MMAP2 records: by the superblock's device,
 * which may differ from st_dev (btrfs, overlayfs).
 */
struct alias {
	struct ttmon_discover *d;
	uint32_t major, minor;
	uint64_t ino;
	struct object *object; /* NULL: unknown */
	bool reading;
	struct then then;
	bool checking;	   /* a check whether it has changed is under way */
	uint64_t asked_ns; /* since when it is being read */
	struct waiter *waiters, **last;
	uint32_t id;	   /* of the OBJECT fact for an unknown file, 0: none was sent */
	int err;	   /* why it could not be read */
	uint64_t again_ns; /* it is not tried again before this time */
	char *path;	   /* with err, or while it is read */
	struct alias *next_unread;
};

struct process {
	uint32_t tgid;
	uint64_t start_ns;  /* 0: not known */
	uint64_t list_ns;   /* the newest list of its mappings that was reported was read then; 0: none yet */
	bool listed;	    /* its mappings were reported: later ones are reported one by one */
	bool switches;	    /* it has a file that switches stacks */
	bool said;	    /* and the consequences were logged */
	bool shstk;	    /* it was logged that return probes end it, since it has a shadow stack */
	bool python;	    /* its Python frames are found */
	uint32_t python_of; /* in the object with this id; refused: no other is looked at */
	bool unprobed;	    /* it was reported that it uses a GPU without probes */
	uint32_t *settled;  /* ids of objects that it mapped when their probes were active, or whose gap was reported */
	uint32_t nr_settled;
	uint32_t pending; /* number of its mappings and lists that are being read */
	uint64_t gone_ns; /* it has ended, and is forgotten when nothing is pending any more; 0: it runs */
	void (*gone)(void *ctx, uint32_t tgid);
	void *ctx;
};

struct ttmon_discover {
	struct ttmon_discover_cfg cfg;
	struct ttmon_helpers *helpers;
	struct ttmon_worker *attacher, *closer; /* threads that attach and detach probes, which waits for the kernel */
	int event_fd;				/* of both */
	void *aliases;				/* tsearch trees */
	void *objects;
	void *processes;
	struct object *list, *probed; /* all; those with probes, which are few */
	uint32_t next_id;
	uint32_t nr_open; /* fds of objects without probes */
	uint32_t nr_objects;
	uint32_t nr_ahead;		   /* since the start: probed before a process had them mapped */
	uint32_t nr_ahead_out;		   /* of them that are being read */
	struct object *tt[TTMON_TT_SLOTS]; /* libraries with tt-metal, by slot */
	struct share *shares;
	uint32_t nr_shares;
	struct list *lists;
	struct alias *reading; /* aliases that are being read, or could not be: linked by next_unread */
	struct check *check;   /* gathered, not sent yet */
	uint32_t nr_gone;      /* processes that have ended and are not forgotten yet */
	bool sweeping;	       /* looking for files that are gone */
	uint32_t who_tgid;     /* process of the last look-up of a user */
	uint64_t who, who_ns;
	uint16_t tt_next; /* where the search for a free slot begins, so that a slot is reused late */
};

struct process *ttmon_discover_process(struct ttmon_discover *d, uint32_t tgid, bool create);
/* One item of a process was read, or given up. */
void ttmon_discover_unpend(struct ttmon_discover *d, uint32_t tgid);
/* The file of a waiter's mapping is known (o), or will not be (NULL). Frees w. */
void ttmon_discover_waited(struct ttmon_discover *d, struct waiter *w, struct object *o);
/*
 * The object of a mapping, if it is known. NULL with *pending: it is being read, and a copy of w waits
 * for it; NULL without: it cannot be read. w->m.name is borrowed.
 */
struct object *ttmon_object_of_mapping(struct ttmon_discover *d, const struct waiter *w, bool *pending);
/* Requests a check whether the files that were taken for known have changed. */
void ttmon_objects_send_check(struct ttmon_discover *d);
/* True if this file is known and has not changed. */
bool ttmon_object_known(struct ttmon_discover *d, const struct ttmon_file_stat *st);
/*
 * Opens and reads a file that may not be mapped. fd: borrowed, -1: use path in root. done may be NULL;
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
/* A list is reported without the files that it waits for: these are reported one by one. */
void ttmon_objects_unlist(struct ttmon_discover *d, const struct list *l);
/* Reports late files; all: also those that are not late yet. */
void ttmon_objects_late(struct ttmon_discover *d, bool all);
/*
 * A traced process maps it: it is kept open, since its symbols may be requested when the process is
 * gone.
 */
void ttmon_object_keep(struct ttmon_discover *d, struct object *o, uint32_t tgid, const struct ttmon_mapping *m);
/*
 * Reports how long calls to an object were not seen in a process that mapped it at mapped_ns (0:
 * before the trace).
 */
void ttmon_object_tell_blind(struct ttmon_discover *d, uint32_t tgid, const struct object *o, uint64_t mapped_ns,
			     enum ttmon_blind_how how);
/*
 * Files that were overwritten: their probes are now in the middle of other instructions. Detaches, and
 * reads them again.
 */
void ttmon_objects_check(struct ttmon_discover *d);
/* True if the process was seen to map this object, which has or should have probes. */
bool ttmon_discover_has(struct ttmon_discover *d, uint32_t tgid, const struct object *o);
/* Some function of it cannot be probed: reports that for each process that has it mapped. */
void ttmon_discover_refused(struct ttmon_discover *d, const struct object *o);
/* Closes and detaches objects that are gone; any_process: some process is still traced. */
void ttmon_objects_sweep(struct ttmon_discover *d, bool any_process);
/* Its links are closed in another thread; waits for that before this thread attaches new ones. */
void ttmon_object_wait_closed(struct ttmon_discover *d, const struct object *o);
/*
 * Slots of libraries with tt-metal (discover_tt.c). Take one before the probes are attached: -ENOSPC,
 * or the slot.
 */
int ttmon_object_tt_take(struct ttmon_discover *d, struct object *o);
void ttmon_object_tt_give(struct ttmon_discover *d, struct object *o);
/* Sends the fact TT_OBJECT of an object whose OBJECT fact was sent. */
void ttmon_object_tell_tt(struct ttmon_discover *d, const struct object *o);
void ttmon_objects_free(struct ttmon_discover *d);
/*
 * discover_share.c: takes n probes from the share of the file's owner. False: the share is used up,
 * which is noted in the object.
 */
bool ttmon_share_take(struct ttmon_discover *d, struct object *o, uint32_t n);
void ttmon_share_give(struct ttmon_discover *d, struct object *o);
/* A process maps a file that was refused. */
void ttmon_share_mapped(struct ttmon_discover *d, const struct object *o, uint32_t tgid);
/* It was refused, and would not be now. */
bool ttmon_share_has_room_again(struct ttmon_discover *d, const struct object *o);

#endif
