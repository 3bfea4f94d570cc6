/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * resctrl_int.h: shared by the resctrl*.c files. resctrl.c: processes, queue, times; resctrl_group.c:
 * the life of a group; resctrl_fs.c: folders and files; resctrl_tasks.c: tasks and their groups;
 * resctrl_read.c: limits and readings; resctrl_counters.c: bandwidth counters that are assigned;
 * resctrl_energy.c: telemetry of packages.
 *
 * No file of resctrl stays open between two calls: an open one would keep the administrator from
 * unmounting it.
 */
#ifndef TTMON_RESCTRL_INT_H
#define TTMON_RESCTRL_INT_H

#include <inttypes.h>
#include <limits.h>

#include "daemon/io/rdt/resctrl.h"

#define RESCTRL_PREFIX	  40 /* "ttmon-", 10 digits, a point, 20 digits, a dash */
#define RESCTRL_NAME	  72 /* and 31 more: of a group of ours */
#define RESCTRL_PATH	  (2 * NAME_MAX + 128)
#define RESCTRL_MAX_PROCS 16384
#define RESCTRL_DOMAINS	  256 /* of a group */
#define RESCTRL_DEFAULT	  "/sys/fs/resctrl"

/* Telemetry of a package as last read. */
struct resctrl_package {
	uint16_t id;
	uint8_t has; /* 1 << TTMON_RESCTRL_ENERGY .. */
	uint64_t last[TTMON_RESCTRL_TELEMETRY];
};

/* A monitoring group of ours, which has an RMID. */
struct resctrl_group {
	char name[RESCTRL_NAME];
	char *ctrl; /* control group it is in, "": the default one */
	char *key;  /* --rmid-group cgroup: cgroup of its processes; NULL: the group is for one process */
	uint32_t rmid;
	uint32_t members;
	uint32_t tgid; /* the process that it was made for; owns the RMID as long as the group lives */
	uint64_t start_ns;
	uint64_t due_ns; /* time of the next reading; 0: not planned yet */
	bool unassigned; /* no bandwidth counter at the last reading (AMD ABMC) */
	struct resctrl_package *packages;
	size_t nr_packages;
};

struct resctrl_proc {
	uint32_t tgid;
	uint64_t start_ns;
	struct resctrl_group *group; /* NULL: it waits for one, or is in another program's group */
	bool foreign;		     /* its main thread is in another program's group */
	bool told_none;
	uint32_t *tids; /* threads that were handled, ascending */
	size_t nr_tids;
	uint64_t rescan_ns; /* when to search for new threads; 0: at the next tick */
	unsigned int rescans;
};

struct ttmon_resctrl {
	struct ttmon_resctrl_cfg cfg;
	char *root, *proc_root;
	char prefix[RESCTRL_PREFIX]; /* "ttmon-PID.START-": the groups of this daemon */
	bool need_magic;	     /* the root must be a resctrl mount, not a plain folder */
	bool away;		     /* it was mounted at the start, and is not now */
	bool hw_ids;
	/* a group disappeared: check the others, and whether resctrl was mounted again with other options */
	bool recheck;
	bool assigned_counters;		   /* mbm_assign_mode: counters are assigned (AMD ABMC) */
	bool by_hand;			   /* mbm_assign_on_mkdir is off: neither the kernel nor we assign counters */
	uint16_t free_in[RESCTRL_DOMAINS]; /* domains with free counters at the last check */
	size_t nr_free_in;
	uint64_t look_ns; /* when to check again */
	int queue_err;	  /* why the first of the queue waits */
	uint32_t max_rmid, has;
	uint64_t period_ns, budget_ns; /* between readings of a group; for one tick */
	uint64_t retry_ns;
	struct resctrl_group **groups;
	size_t nr_groups, groups_cap, cursor;
	struct resctrl_proc **procs; /* in order of arrival: the queue is those without a group */
	size_t nr_procs, procs_cap;
	uint32_t last_id; /* without hw_ids */
	uint64_t exhausted, readings, failed_readings, foreign, skipped, lost, assigned;
	uint32_t telemetry_has;
	uint64_t telemetry[TTMON_RESCTRL_TELEMETRY]; /* of all groups, millionths */
	bool told_exhausted, told_failed;
	char failed[160]; /* error of the last group that could not be made, "" */
	char reason[256];
};

/* The groups of a task. */
struct resctrl_place {
	char ctrl[NAME_MAX + 1], mon[NAME_MAX + 1]; /* "": the default control group; no monitoring group */
};

/* resctrl_fs.c */

/* Opens the root folder if resctrl is there: an fd, or -errno. */
int ttmon_resctrl_open_root(const struct ttmon_resctrl *r) _must_check;
/* Opens a path below dir without following symbolic links. */
int ttmon_resctrl_open(int dir, const char *path, int flags) _must_check;
/* Path of a file of a group, relative to the root; "": its folder. RESCTRL_PATH bytes are enough. */
void ttmon_resctrl_path(const struct resctrl_group *g, const char *file, char *buf, size_t n);
/* Reads a short text: its length without the newline, or -errno; -EFBIG if it does not fit. */
ssize_t ttmon_resctrl_text(int dir, const char *path, char *buf, size_t n) _must_check;
int ttmon_resctrl_prefix(struct ttmon_resctrl *r) _must_check;
/* Removes the groups of daemons that are gone. */
void ttmon_resctrl_clean(struct ttmon_resctrl *r, int root);
int ttmon_resctrl_make(struct ttmon_resctrl *r, int root, const struct resctrl_group *g) _must_check;
void ttmon_resctrl_remove(struct ttmon_resctrl *r, int root, const struct resctrl_group *g);
/* Folders in a folder, as copies of their names (free them with free_names). */
size_t ttmon_resctrl_folders(int dir, const char *path, char ***ret) _must_check;
void ttmon_resctrl_free_names(char **names, size_t n);
/* Calls fn for the default control group, "", and each other one. */
typedef void (*ttmon_resctrl_ctrl_fn)(const struct ttmon_resctrl *r, int root, const char *ctrl, void *ctx);
void ttmon_resctrl_each_ctrl(const struct ttmon_resctrl *r, int root, ttmon_resctrl_ctrl_fn fn, void *ctx);

/* resctrl_tasks.c */

/* The groups of a process's main thread: -ESRCH if it is gone. */
int ttmon_resctrl_place(const struct ttmon_resctrl *r, int root, uint32_t tgid, struct resctrl_place *ret) _must_check;
bool ttmon_resctrl_is_foreign(const struct ttmon_resctrl *r, const struct resctrl_place *p);
/*
 * Moves the threads that were not handled yet into the group of the process. -ENODEV: the group is
 * gone, -ESRCH: the process is.
 */
int ttmon_resctrl_move(struct ttmon_resctrl *r, int root, struct resctrl_proc *p) _must_check;
/* Number of threads of a process. */
size_t ttmon_resctrl_threads(const struct ttmon_resctrl *r, uint32_t tgid);

/* resctrl_group.c */

void ttmon_resctrl_tell(const struct ttmon_resctrl *r, enum ttmon_rmid_op op, uint32_t rmid, uint32_t tgid,
			uint64_t start_ns);
/* The cgroup of a process in the unified hierarchy; NULL: unknown. */
char *ttmon_resctrl_cgroup(const struct ttmon_resctrl *r, uint32_t tgid);
/* The group of a cgroup; NULL: none. */
struct resctrl_group *ttmon_resctrl_group_find(const struct ttmon_resctrl *r, const char *ctrl, const char *key);
/* Makes a group for this process, without members yet. -ENOSPC, -EBUSY: no RMID for it now. */
int ttmon_resctrl_group_new(struct ttmon_resctrl *r, int root, const struct resctrl_proc *p, const char *ctrl,
			    const char *key, struct resctrl_group **ret) _must_check;
/* The last process is gone. */
void ttmon_resctrl_group_end(struct ttmon_resctrl *r, int root, struct resctrl_group *g);
/* Its folder has disappeared: its processes wait for a group again. */
void ttmon_resctrl_group_lose(struct ttmon_resctrl *r, struct resctrl_group *g);
void ttmon_resctrl_group_free(struct resctrl_group *g);

/* resctrl_read.c */

/* Reads limits and features; -ENODEV with a line that says what to do. */
int ttmon_resctrl_limits(struct ttmon_resctrl *r, int root, char *why, size_t n) _must_check;
void ttmon_resctrl_tell_limits(const struct ttmon_resctrl *r);
/* Gets the RMID of a new group: -errno. */
int ttmon_resctrl_id(struct ttmon_resctrl *r, int root, const struct resctrl_group *g, uint32_t *ret) _must_check;
/* Reads all domains of a group. -ENODEV: the group is gone. */
int ttmon_resctrl_read(struct ttmon_resctrl *r, int root, struct resctrl_group *g);
enum ttmon_rdt_state ttmon_resctrl_value(const char *text, uint64_t *ret);
/* Parses decimal digits only. */
bool ttmon_resctrl_u64(const char *s, uint64_t max, uint64_t *ret);
/* True if one of the lines of text is exactly this word. */
bool ttmon_resctrl_has_line(const char *text, const char *word);

/* resctrl_counters.c */

/* Reads whether counters are assigned, and by whom. True: this has changed. */
bool ttmon_resctrl_mode(struct ttmon_resctrl *r, int root);
/* Once a second: checks the mode, and whether counters are free. */
void ttmon_resctrl_look(struct ttmon_resctrl *r, int root, uint64_t now_ns);
/*
 * Assigns a counter to an event of a group that has none in a domain, if allowed and if one is free.
 */
void ttmon_resctrl_assign(struct ttmon_resctrl *r, int root, const struct resctrl_group *g, uint16_t domain,
			  const char *event);

/* resctrl_energy.c */

/* Finds which telemetry there is. */
void ttmon_resctrl_has_telemetry(struct ttmon_resctrl *r, int root);
/* Reads a folder of mon_data if it is a package's: true. */
bool ttmon_resctrl_package(struct ttmon_resctrl *r, int data, const char *name, struct resctrl_group *g);
/* Parses digits, perhaps with a point and digits: in millionths, the rest is cut off. */
bool ttmon_resctrl_decimal(const char *s, uint64_t *ret);

#endif
