/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * resctrl_int.h: what the parts of io/rdt/resctrl share. resctrl.c: processes, queue, times;
 * resctrl_group.c: the life of a group; resctrl_fs.c: folders and files; resctrl_tasks.c: tasks, who
 * is where; resctrl_read.c: limits and readings; resctrl_counters.c: bandwidth counters that are
 * assigned; resctrl_energy.c: telemetry of packages.
 *
 * No file of resctrl stays open between two calls: one that is would keep the administrator from
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

/* What telemetry of a package was read last. */
struct resctrl_package {
	uint16_t id;
	uint8_t has; /* 1 << TTMON_RESCTRL_ENERGY .. */
	uint64_t last[TTMON_RESCTRL_TELEMETRY];
};

/* A monitoring group of ours: has an RMID. */
struct resctrl_group {
	char name[RESCTRL_NAME];
	char *ctrl; /* control group it is in, "": the default one */
	char *key;  /* --by-cgroup: cgroup of its processes; NULL: a process has it for itself */
	uint32_t rmid;
	uint32_t members;
	uint32_t tgid; /* the process it was made for; owns the RMID as long as the group lives */
	uint64_t start_ns;
	uint64_t due_ns; /* next reading; 0: not planned yet */
	bool unassigned; /* no bandwidth counter at the last reading (AMD ABMC) */
	struct resctrl_package *packages;
	size_t nr_packages;
};

struct resctrl_proc {
	uint32_t tgid;
	uint64_t start_ns;
	struct resctrl_group *group; /* NULL: waits for one, or is another process's */
	bool foreign;		     /* its main thread is in another process's group */
	bool told_none;
	uint32_t *tids; /* threads that were looked at, ascending */
	size_t nr_tids;
	uint64_t rescan_ns; /* when to look for threads that came meanwhile; 0: at the next tick */
	unsigned int rescans;
};

struct ttmon_resctrl {
	struct ttmon_resctrl_cfg cfg;
	char *root, *proc_root;
	char prefix[RESCTRL_PREFIX]; /* "ttmon-PID.START-": the groups of this daemon */
	bool need_magic;	     /* a resctrl mount, not a plain folder */
	bool away;		     /* it was there at the start, and is not now */
	bool hw_ids;
	bool recheck; /* a group was lost: look for the others, and whether it was mounted again in another way */
	bool assigned_counters;		   /* mbm_assign_mode: AMD ABMC; */
	bool by_hand;			   /* mbm_assign_on_mkdir: not by the kernel, and not by us */
	uint16_t free_in[RESCTRL_DOMAINS]; /* domains in which some were free when it was last looked */
	size_t nr_free_in;
	uint64_t look_ns; /* when to look again */
	int queue_err;	  /* why the first of the queue waits */
	uint32_t max_rmid, has;
	uint64_t period_ns, budget_ns; /* between readings of a group; that a tick may take */
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
	char failed[160]; /* what went wrong with the last group that could not be made, "" */
	char reason[256];
};

/* Where a task is. */
struct resctrl_place {
	char ctrl[NAME_MAX + 1], mon[NAME_MAX + 1]; /* "": the default control group; no monitoring group */
};

/* resctrl_fs.c */

/* The root folder, if resctrl is there: an fd, or -errno. */
int ttmon_resctrl_open_root(const struct ttmon_resctrl *r) _must_check;
/* Below dir, no symbolic link followed. */
int ttmon_resctrl_open(int dir, const char *path, int flags) _must_check;
/* Of a file of a group, "": its folder; from the root. RESCTRL_PATH bytes are enough. */
void ttmon_resctrl_path(const struct resctrl_group *g, const char *file, char *buf, size_t n);
/* A short text: its length without the newline, or -errno; -EFBIG if it does not fit. */
ssize_t ttmon_resctrl_text(int dir, const char *path, char *buf, size_t n) _must_check;
int ttmon_resctrl_prefix(struct ttmon_resctrl *r) _must_check;
/* Removes the groups of daemons that are gone. */
void ttmon_resctrl_clean(struct ttmon_resctrl *r, int root);
int ttmon_resctrl_make(struct ttmon_resctrl *r, int root, const struct resctrl_group *g) _must_check;
void ttmon_resctrl_remove(struct ttmon_resctrl *r, int root, const struct resctrl_group *g);
/* Folders in a folder, as copies of their names (to be given to free_names). */
size_t ttmon_resctrl_folders(int dir, const char *path, char ***ret) _must_check;
void ttmon_resctrl_free_names(char **names, size_t n);
/* For the default control group, "", and each other one. */
typedef void (*ttmon_resctrl_ctrl_fn)(const struct ttmon_resctrl *r, int root, const char *ctrl, void *ctx);
void ttmon_resctrl_each_ctrl(const struct ttmon_resctrl *r, int root, ttmon_resctrl_ctrl_fn fn, void *ctx);

/* resctrl_tasks.c */

/* Where the main thread of a process is: -ESRCH if it is gone. */
int ttmon_resctrl_place(const struct ttmon_resctrl *r, int root, uint32_t tgid, struct resctrl_place *ret) _must_check;
bool ttmon_resctrl_is_foreign(const struct ttmon_resctrl *r, const struct resctrl_place *p);
/*
 * Puts the threads that were not looked at yet into the group of the process. -ENODEV: the group is
 * gone, -ESRCH: the process is.
 */
int ttmon_resctrl_move(struct ttmon_resctrl *r, int root, struct resctrl_proc *p) _must_check;
/* How many threads a process has. */
size_t ttmon_resctrl_threads(const struct ttmon_resctrl *r, uint32_t tgid);

/* resctrl_group.c */

void ttmon_resctrl_tell(const struct ttmon_resctrl *r, enum ttmon_rmid_op op, uint32_t rmid, uint32_t tgid,
			uint64_t start_ns);
/* The cgroup of a process in the unified hierarchy; NULL: it cannot be known. */
char *ttmon_resctrl_cgroup(const struct ttmon_resctrl *r, uint32_t tgid);
/* The one of a cgroup; NULL: none. */
struct resctrl_group *ttmon_resctrl_group_find(const struct ttmon_resctrl *r, const char *ctrl, const char *key);
/* Made for this process, without members yet. -ENOSPC, -EBUSY: no RMID for it now. */
int ttmon_resctrl_group_new(struct ttmon_resctrl *r, int root, const struct resctrl_proc *p, const char *ctrl,
			    const char *key, struct resctrl_group **ret) _must_check;
/* The last process is gone. */
void ttmon_resctrl_group_end(struct ttmon_resctrl *r, int root, struct resctrl_group *g);
/* Its folder is gone: its processes wait again. */
void ttmon_resctrl_group_lose(struct ttmon_resctrl *r, struct resctrl_group *g);
void ttmon_resctrl_group_free(struct resctrl_group *g);

/* resctrl_read.c */

/* Reads limits and features; -ENODEV with a line that says what to do. */
int ttmon_resctrl_limits(struct ttmon_resctrl *r, int root, char *why, size_t n) _must_check;
void ttmon_resctrl_tell_limits(const struct ttmon_resctrl *r);
/* The RMID of a new group: -errno. */
int ttmon_resctrl_id(struct ttmon_resctrl *r, int root, const struct resctrl_group *g, uint32_t *ret) _must_check;
/* All domains of a group. -ENODEV: the group is gone. */
int ttmon_resctrl_read(struct ttmon_resctrl *r, int root, struct resctrl_group *g);
enum ttmon_rdt_state ttmon_resctrl_value(const char *text, uint64_t *ret);
/* Decimal digits and nothing else. */
bool ttmon_resctrl_u64(const char *s, uint64_t max, uint64_t *ret);
/* One of the lines of text is exactly this word. */
bool ttmon_resctrl_has_line(const char *text, const char *word);

/* resctrl_counters.c */

/* Whether counters are assigned, and by whom. True: not as it was. */
bool ttmon_resctrl_mode(struct ttmon_resctrl *r, int root);
/* Once a second: the mode, and whether counters are free. */
void ttmon_resctrl_look(struct ttmon_resctrl *r, int root, uint64_t now_ns);
/* An event of a group that has no counter in a domain gets one, if it may and one is free. */
void ttmon_resctrl_assign(struct ttmon_resctrl *r, int root, const struct resctrl_group *g, uint16_t domain,
			  const char *event);

/* resctrl_energy.c */

/* Which there is. */
void ttmon_resctrl_has_telemetry(struct ttmon_resctrl *r, int root);
/* A folder of mon_data that is a package's is read: true. */
bool ttmon_resctrl_package(struct ttmon_resctrl *r, int data, const char *name, struct resctrl_group *g);
/* Digits, and maybe a point and digits: millionths, what is smaller is cut off. */
bool ttmon_resctrl_decimal(const char *s, uint64_t *ret);

#endif
