/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * top.h: `ttmon top` shows which processes use the CPUs, caches, memory bandwidth and pinned memory
 * now. It reads the service's sums (/v1/processes) twice and shows the difference. A figure that the
 * host does not measure, or whose family of probes was off, is unknown ("-", null), never 0. If the
 * family was off for a part of the interval, the figure is a lower bound (">=", at_least).
 *
 * Rows are processes, processes in the order of their parents (a tree), or sums of the processes of a
 * systemd unit or of a container.
 *
 * The difference is complete: what ended processes did that are no longer kept is in a row of its own,
 * so the CPU times of all rows add up exactly to that of the head.
 */
#ifndef TTMON_TOP_H
#define TTMON_TOP_H

#include <jansson.h>

#include "lib/base/fmt.h"
#include "lib/base/util.h"
#include "tools/term/screen.h"

#define TTMON_TOP_UNKNOWN UINT64_MAX

enum ttmon_top_figure {
	TTMON_TOP_CPU, /* ns */
	TTMON_TOP_SWITCHES,
	TTMON_TOP_CYCLES,
	TTMON_TOP_INSTRUCTIONS,
	TTMON_TOP_MISSES,
	TTMON_TOP_REFS,
	TTMON_TOP_MBM, /* bytes */
	TTMON_TOP_COPIES,
	TTMON_TOP_COPIED,	  /* bytes */
	TTMON_TOP_WAIT,		  /* ns of synchronous calls that returned, summed over threads */
	TTMON_TOP_WAIT_MISSED,	  /* number of synchronous calls that are missing in it */
	TTMON_TOP_CHIP,		  /* ns in which Tenstorrent chips ran programs of this process, summed over chips */
	TTMON_TOP_CHIP_ERROR,	  /* ns by which that may be wrong */
	TTMON_TOP_CHIP_UNBOUNDED, /* number of runs whose error is not known */
	TTMON_TOP_CHIP_MISSED,	  /* number of runs that are missing in it */
	TTMON_TOP_SUMS,		  /* number of the figures above: sums, shown by their difference */
	TTMON_TOP_LLC = TTMON_TOP_SUMS, /* bytes in use now */
	TTMON_TOP_PINNED,
	TTMON_TOP_RMID,
	TTMON_TOP_FIGURES
};

enum ttmon_top_class {
	TTMON_TOP_USER,
	TTMON_TOP_KERNEL,
	TTMON_TOP_UNASSIGNED, /* bandwidth of RMIDs that no process owned; not a process */
	TTMON_TOP_OTHER,      /* sum of processes that ended and are no longer kept, or had no room; not a process */
	TTMON_TOP_CLASSES
};

/* Families of probes that the figures depend on. */
enum ttmon_top_family {
	TTMON_TOP_FAMILY_CPU,
	TTMON_TOP_FAMILY_TRANSFER,
	TTMON_TOP_FAMILY_ALLOC,
	TTMON_TOP_FAMILY_TENSTORRENT,
	TTMON_TOP_FAMILY_DISPATCH,
	TTMON_TOP_FAMILY_WAIT,
	TTMON_TOP_FAMILIES
};

struct ttmon_top_seen {
	char state[16], why[40]; /* as the service reports it */
	uint64_t from_ns;	 /* start of this state; 0: from the start of the service */
	uint64_t since_ns;	 /* since when everything is seen; TTMON_TOP_UNKNOWN: not everything is seen now */
	uint64_t off_ns, missed; /* sums */
};

/* What is known of a figure in the interval. */
enum ttmon_top_known { TTMON_TOP_ALL, TTMON_TOP_AT_LEAST, TTMON_TOP_NOTHING };

struct ttmon_top_proc {
	uint64_t pid, start_ns; /* 0: not a process */
	uint64_t ppid;
	char comm[64];	  /* or the name of the group */
	uint32_t members; /* number of processes of a group; 0: not a group */
	uint32_t depth;	  /* in a tree: number of ancestors that are shown */
	uint64_t more;	  /* in a tree: bit d: the ancestor at depth d (or the row itself) has siblings below */
	enum ttmon_top_class cls;
	bool ended, complete;	       /* complete: no counter reading is missing */
	uint64_t probed_ns;	       /* when its last probes became active; 0: at its start */
	bool least[TTMON_TOP_FIGURES]; /* v is a lower bound; for sums only set in a difference */
	uint64_t v[TTMON_TOP_FIGURES]; /* TTMON_TOP_UNKNOWN: not known */
};

/*
 * A reading of the service at one time, or the difference of two. Sorted by (pid, start_ns) unless
 * sorted otherwise.
 */
struct ttmon_top {
	uint64_t since_ns; /* start of the sums: if it differs between two readings, the service was restarted */
	uint64_t now_ns;   /* in a difference: length of the interval */
	uint64_t cpus, user_ns, kernel_ns, idle_ns, missing_ns;
	bool counters, rdt;
	bool has_work;		/* tt-metal's profiler has reported on some process */
	bool has_wait;		/* the service reports the time of synchronous calls */
	bool has_rmid;		/* some process has an RMID */
	bool cpu_least;		/* in a difference: CPU time is a lower bound; number of CPUs, or TTMON_TOP_UNKNOWN */
	int64_t real_offset_ns; /* real time minus the service's time */
	struct ttmon_top_seen seen[TTMON_TOP_FAMILIES];
	enum ttmon_top_known known[TTMON_TOP_FAMILIES]; /* only in a difference */
	struct ttmon_top_proc gone;			/* sums of processes that are no longer kept */
	uint64_t running;				/* in a difference: number of processes that ran */
	uint64_t known_procs;	   /* number of processes that exist or ran, without kernel threads */
	struct ttmon_top_proc all; /* in a difference: sums over all rows, including rows left out later */
	size_t n;
	struct ttmon_top_proc *procs;
};

const char *ttmon_top_family_name(unsigned int family);

enum ttmon_top_sort {
	TTMON_SORT_PINNED,
	TTMON_SORT_COPIED,
	TTMON_SORT_WAIT,
	TTMON_SORT_CPU,
	TTMON_SORT_IPC,
	TTMON_SORT_MISSES,
	TTMON_SORT_MBM,
	TTMON_SORT_LLC,
	TTMON_SORT_CHIP,
	TTMON_SORT_SWITCHES,
	TTMON_SORT_PID,
	TTMON_SORT_MAX
};
/*
 * Returns the name of a sort order, such as "cpu", or its key on the screen; NULL or 0 for a number
 * past the end.
 */
const char *ttmon_top_sort_name(unsigned int sort);
char ttmon_top_sort_key(unsigned int sort);

/* What a row is. The words of --by are in this order. */
enum ttmon_top_by { TTMON_TOP_BY_PROCESS, TTMON_TOP_BY_TREE, TTMON_TOP_BY_UNIT, TTMON_TOP_BY_CONTAINER, TTMON_TOP_BYS };
const char *ttmon_top_by_name(unsigned int by);

struct ttmon_top_ask {
	const char *socket;
	unsigned int interval_ms, sort, lines; /* lines 0: all rows */
	unsigned int by;		       /* enum ttmon_top_by */
	uint64_t pid;			       /* show this process only; 0: all */
	const char *filter;		       /* show rows that have this in name, pid or command line; NULL: all */
	bool kernel;			       /* show kernel threads too */
	bool reverse;
	bool args; /* show command lines instead of names */
};

/* ---- data.c ---- */
/*
 * Parses the document of /v1/processes. Returns 0, -ENOMEM, or -EBADMSG: it has another form. Free
 * *ret with ttmon_top_fini().
 */
int ttmon_top_parse(const json_t *doc, struct ttmon_top *ret) _must_check;
/* Reads the service; prints errors to stderr. */
int ttmon_top_read(const char *socket, struct ttmon_top *ret) _must_check;
/*
 * The same without messages. -ENODATA: the service does not measure CPU time; -EREMOTEIO: it refused
 * for another reason.
 */
int ttmon_top_read_quietly(const char *socket, struct ttmon_top *ret) _must_check;
/*
 * Computes what happened between two readings. A new process counts from 0; so does every process if
 * the service was restarted in between.
 */
int ttmon_top_diff(const struct ttmon_top *from, const struct ttmon_top *to, struct ttmon_top *ret) _must_check;
void ttmon_top_fini(struct ttmon_top *t);

/* Order of (pid, start_ns), for qsort(). */
int ttmon_top_by_identity(const void *a, const void *b);
bool ttmon_top_did_anything(const struct ttmon_top_proc *p);

/* ---- arrange.c ---- */
/*
 * Copies the rows that the options select, as processes, a tree or groups, sorted as requested. The
 * figures of a group are sums; where a figure of one of its processes is not known, the sum is a lower
 * bound.
 */
int ttmon_top_arrange(const struct ttmon_top *t, const struct ttmon_top_ask *ask, struct ttmon_top *ret) _must_check;

/* ---- text.c: one line each, without a newline, for any terminal ---- */
enum ttmon_top_column {
	TTMON_COL_PID, /* or the number of processes of a group */
	TTMON_COL_NAME,
	TTMON_COL_PINNED,
	TTMON_COL_PINNED_BAR, /* of the largest row */
	TTMON_COL_COPIED,
	TTMON_COL_WAIT,
	TTMON_COL_CPU,
	TTMON_COL_CPU_BAR, /* of one CPU */
	TTMON_COL_CHIP,
	TTMON_COL_CHIP_ERROR,
	TTMON_COL_IPC,
	TTMON_COL_MISSES,
	TTMON_COL_LLC,
	TTMON_COL_MBM,
	TTMON_COL_SWITCHES,
	TTMON_COL_RMID,
	TTMON_COL_COMMAND,
	TTMON_COL_MAX
};
#define TTMON_TOP_LINE 2048 /* bytes of the longest line, with its NUL */

struct ttmon_top_layout {
	size_t width[TTMON_COL_MAX]; /* 0: the column is left out */
	unsigned int by;	     /* enum ttmon_top_by */
	struct ttmon_term_style style;
};
/*
 * Chooses the columns that fit style->columns (0: all but the bars and command lines). Columns that
 * this host does not measure are left out at any width.
 */
void ttmon_top_fit(const struct ttmon_top *t, const struct ttmon_term_style *style, const struct ttmon_top_ask *ask,
		   struct ttmon_top_layout *ret);
/*
 * Makes line 0 or 1 of the head, or line 2, which says why something is not known (empty if all is
 * known).
 */
void ttmon_top_head(const struct ttmon_top *t, unsigned int line, char *buf, size_t n);
void ttmon_top_columns(const struct ttmon_top_layout *l, char *buf, size_t n);
/* Finds the position and width of the column of a sort key; false: it is left out. */
bool ttmon_top_column_at(const struct ttmon_top_layout *l, unsigned int sort, size_t *at, size_t *width);
/*
 * Makes the line of row i (below t->n), with the escape sequences of the style. args: the command
 * line, for its column, or in place of the name where there is no such column; NULL or "": none.
 */
void ttmon_top_line(const struct ttmon_top *t, size_t i, const struct ttmon_top_layout *l, const char *args, char *buf,
		    size_t n);
/* Makes a bar of that many columns for a share of 0 to 1. */
void ttmon_top_bar(double share, size_t width, bool utf8, char *buf, size_t n);
/*
 * Returns the arranged difference as JSON: sums over interval_ns. New reference; NULL: out of memory.
 */
json_t *ttmon_top_json(const struct ttmon_top *t, const struct ttmon_top_ask *ask);

/* ---- args.c ---- */
/*
 * Returns whether to show the command line: on request, in its column, and if the name is not known.
 */
static inline bool ttmon_top_wants_args(const struct ttmon_top_proc *p, const struct ttmon_top_ask *ask,
					const struct ttmon_top_layout *l)
{
	return p->pid && !p->ended && (ask->args || !p->comm[0] || l->width[TTMON_COL_COMMAND]);
}
/* Reads the command line of a process of this host, words joined by spaces; "" if there is none. */
void ttmon_top_args(const char *proc_root, uint64_t pid, char *buf, size_t n);
/*
 * Finds the unit or container of a process of this host: "(none)" if its cgroup names none, "(not
 * known)" if the process is gone. by: TTMON_TOP_BY_UNIT or _CONTAINER.
 */
void ttmon_top_group_name(const char *proc_root, uint64_t pid, unsigned int by, char *buf, size_t n);

/* ---- screen.c ---- */
/* Runs the screen until q. Returns the exit status of the program. */
int ttmon_top_screen(struct ttmon_top_ask *ask);

#endif
