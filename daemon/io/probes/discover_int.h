/* SPDX-License-Identifier: GPL-2.0-only */
/* discover_int.h: what discover.c (processes and their mappings) and discover_obj.c (files and their probes) share. */
#ifndef TTMON_DISCOVER_INT_H
#define TTMON_DISCOVER_INT_H

#include "daemon/io/probes/discover.h"
#include "daemon/io/probes/mounts.h"

struct object {
	uint64_t dev, ino; /* as fstat() says: the key */
	struct timespec ctim, mtim;
	uint64_t size;
	uint32_t id; /* of the OBJECT fact, 0: not told yet */
	int fd;	     /* -1: not kept open */
	struct ttmon_mount_at mount;
	char *path;
	struct ttmon_elf_info elf;
	struct ttmon_probes probes;
	bool probed;
	bool has_slot; /* it is the object of d->tt[tt_slot] */
	uint16_t tt_slot;
	int err;
	uint64_t mapped_ns, active_ns;
	bool held;
	uint16_t refused;    /* families (1 << family) of which some function cannot be, or is not, probed */
	uint32_t owner;	     /* user whose file it is */
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

/* What the kernel calls a file in /proc/PID/maps and MMAP2 records: the superblock's device, which st_dev need not be (btrfs, overlayfs). */
struct alias {
	uint32_t major, minor;
	uint64_t ino;
	struct object *object;
};

struct process {
	uint32_t tgid;
	uint64_t start_ns; /* 0: not known */
	bool listed;	   /* its mappings were told: later ones are told one by one */
	bool switches;	   /* it has a file that switches stacks */
	bool said;	   /* and it was said what follows */
	bool unprobed;	   /* told to have a GPU's device file mapped, and nothing with probes */
	uint32_t *
		settled; /* ids of objects: it mapped them when their probes were active, or how blind it was is told */
	uint32_t nr_settled;
};

struct ttmon_discover {
	struct ttmon_discover_cfg cfg;
	void *aliases; /* tsearch trees */
	void *objects;
	void *processes;
	struct object *list, *probed; /* all; those with probes, a few */
	uint32_t next_id;
	uint32_t nr_open; /* fds of objects without probes */
	uint32_t nr_objects;
	uint32_t nr_ahead;		   /* probed before a process had them mapped, since the start */
	struct object *tt[TTMON_TT_SLOTS]; /* libraries with tt-metal, by slot */
	struct object *held;		   /* that ttmon_discover_held() was last told of */
	bool held_new;			   /* it was read and probed then */
	struct share *shares;
	uint32_t nr_shares;
	uint16_t tt_next; /* where the next slot is looked for: one that was given back is used late */
};

struct mapping {
	uint64_t start, end;
	uint32_t major, minor;
	uint64_t ino;
	const char *name;
};

/* The file behind a mapping, read and probed if it is new. NULL: it cannot be opened, or is another file by now. */
struct object *ttmon_object_of_mapping(struct ttmon_discover *d, uint32_t tgid, const struct mapping *m,
				       uint64_t mapped_ns);
/* Has it the name of one of the libraries that are probed? */
bool ttmon_object_is_named(const char *path);
struct stat;
/* Is this file known as it is? */
bool ttmon_object_known(struct ttmon_discover *d, const struct stat *st);
/* The file behind an fd, which is taken. */
struct object *ttmon_object_of_fd(struct ttmon_discover *d, int fd, const char *path, uint64_t mapped_ns, bool held);
/* A traced process maps it: its symbols are wanted later, when the process may be gone. */
void ttmon_object_keep(struct ttmon_discover *d, struct object *o, uint32_t tgid, const struct mapping *m);
/* How long calls to an object went unseen in a process that mapped it at mapped_ns (0: before the trace). */
void ttmon_object_tell_blind(struct ttmon_discover *d, uint32_t tgid, const struct object *o, uint64_t mapped_ns,
			     enum ttmon_blind_how how);
/* Files that were overwritten: their probes lie in the middle of other instructions by now. Detach, and read them anew. */
void ttmon_objects_check(struct ttmon_discover *d);
/* Close and detach what is gone; any_process: some process is still traced. */
void ttmon_objects_sweep(struct ttmon_discover *d, bool any_process);
/* Slots of libraries with tt-metal (discover_tt.c). Take one before the probes are attached: -ENOSPC, or the slot. */
int ttmon_object_tt_take(struct ttmon_discover *d, struct object *o);
void ttmon_object_tt_give(struct ttmon_discover *d, struct object *o);
/* The fact TT_OBJECT of an object whose OBJECT fact has been told. */
void ttmon_object_tell_tt(struct ttmon_discover *d, const struct object *o);
void ttmon_objects_free(struct ttmon_discover *d);
/* discover_share.c: n probes for the owner of this file. False: that user has its share; the object says so. */
bool ttmon_share_take(struct ttmon_discover *d, struct object *o, uint32_t n);
void ttmon_share_give(struct ttmon_discover *d, struct object *o);
/* A process maps what was refused. */
void ttmon_share_mapped(struct ttmon_discover *d, const struct object *o, uint32_t tgid);
/* It was refused, and would not be now. */
bool ttmon_share_has_room_again(struct ttmon_discover *d, const struct object *o);

#endif
