/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * top.h: `ttmon top`: who uses the CPUs, caches, memory bandwidth and pinned memory now. The service's
 * sums (/v1/processes) are read twice, what is shown is the difference. What the host does not measure
 * is unknown ("-", null), never 0, and so is what a family of probes did not tell; what it told in a
 * part of the interval is a lower bound (">=", at_least).
 *
 * Nothing is left out of the difference: what processes did that ended and are no longer kept is in a
 * row of its own, so that the CPU time of all rows together is that of the head, exactly.
 */
#ifndef TTMON_TOP_H
#define TTMON_TOP_H

#include <jansson.h>

#include "lib/base/fmt.h"
#include "lib/base/util.h"

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
	TTMON_TOP_COPIED,		/* bytes */
	TTMON_TOP_CHIP,			/* ns in which Tenstorrent chips ran its programs, summed over chips */
	TTMON_TOP_CHIP_ERROR,		/* by how much that may be wrong */
	TTMON_TOP_CHIP_UNBOUNDED,	/* runs for which that is not known */
	TTMON_TOP_CHIP_MISSED,		/* runs that it lacks */
	TTMON_TOP_SUMS,			/* number of the above: sums, shown by their difference */
	TTMON_TOP_LLC = TTMON_TOP_SUMS, /* bytes now */
	TTMON_TOP_PINNED,
	TTMON_TOP_RMID,
	TTMON_TOP_FIGURES
};

enum ttmon_top_class {
	TTMON_TOP_USER,
	TTMON_TOP_KERNEL,
	TTMON_TOP_UNASSIGNED, /* bandwidth of RMIDs that nobody owned; not a process */
	TTMON_TOP_OTHER,      /* processes that ended and are no longer kept, or had no room; not a process */
	TTMON_TOP_CLASSES
};

/* Families of probes that figures here depend on. */
enum ttmon_top_family {
	TTMON_TOP_FAMILY_CPU,
	TTMON_TOP_FAMILY_TRANSFER,
	TTMON_TOP_FAMILY_ALLOC,
	TTMON_TOP_FAMILY_TENSTORRENT,
	TTMON_TOP_FAMILY_DISPATCH,
	TTMON_TOP_FAMILIES
};

struct ttmon_top_seen {
	char state[16], why[40]; /* as the service has it */
	uint64_t from_ns;	 /* since when; 0: from the start */
	uint64_t since_ns;	 /* since when all of it is seen; TTMON_TOP_UNKNOWN: it is not */
	uint64_t off_ns, missed; /* sums */
};

/* What is known of a figure in the interval. */
enum ttmon_top_known { TTMON_TOP_ALL, TTMON_TOP_AT_LEAST, TTMON_TOP_NOTHING };

struct ttmon_top_proc {
	uint64_t pid, start_ns; /* 0: no process */
	char comm[40];
	enum ttmon_top_class cls;
	bool ended, complete;	       /* complete: no counter reading is missing */
	uint64_t probed_ns;	       /* when its last probes became active; 0: from its start */
	bool least[TTMON_TOP_FIGURES]; /* v is a lower bound; sums: of a difference alone */
	uint64_t v[TTMON_TOP_FIGURES]; /* TTMON_TOP_UNKNOWN: not measured */
};

/*
 * What the service said at one time, or the difference of two such. Sorted by (pid, start_ns) until it
 * is sorted otherwise.
 */
struct ttmon_top {
	uint64_t since_ns; /* what the sums count from: another one is another daemon */
	uint64_t now_ns;   /* of a difference: its length */
	uint64_t cpus, user_ns, kernel_ns, idle_ns, missing_ns;
	bool counters, rdt;
	bool has_work;	/* tt-metal's profiler has reported on a process */
	bool cpu_least; /* of a difference: CPU time is a lower bound; TTMON_TOP_UNKNOWN CPUs: it is not known */
	int64_t real_offset_ns; /* add to the service's times for those of the clock on the wall */
	struct ttmon_top_seen seen[TTMON_TOP_FAMILIES];
	enum ttmon_top_known known[TTMON_TOP_FAMILIES]; /* of a difference */
	struct ttmon_top_proc gone;			/* sums of those that are no longer kept */
	uint64_t running;				/* of a difference: processes that ran in it */
	uint64_t known_procs;				/* processes that are there or ran, without kernel threads */
	struct ttmon_top_proc all; /* of a difference: sums over the rows, also those left out since */
	size_t n;
	struct ttmon_top_proc *procs;
};

const char *ttmon_top_family_name(unsigned int family);

enum ttmon_top_sort {
	TTMON_SORT_CPU,
	TTMON_SORT_IPC,
	TTMON_SORT_MISSES,
	TTMON_SORT_MBM,
	TTMON_SORT_LLC,
	TTMON_SORT_PINNED,
	TTMON_SORT_CHIP,
	TTMON_SORT_COPIED,
	TTMON_SORT_SWITCHES,
	TTMON_SORT_PID,
	TTMON_SORT_MAX
};
/* "cpu" ..., and the key that chooses it on the screen; NULL, 0 past the end. */
const char *ttmon_top_sort_name(unsigned int sort);
char ttmon_top_sort_key(unsigned int sort);

struct ttmon_top_ask {
	const char *socket;
	unsigned int interval_ms, sort, lines; /* lines 0: all */
	uint64_t pid;			       /* only this one, 0: all */
	bool kernel;			       /* kernel threads too */
	bool reverse;
	bool args; /* command lines in the place of names */
};

/* ---- data.c ---- */
/* From the document of /v1/processes; -EBADMSG: it is none. ret is to be freed by ttmon_top_fini(). */
int ttmon_top_parse(const json_t *doc, struct ttmon_top *ret) _must_check;
/* Ask the service; errors are said on stderr. */
int ttmon_top_read(const char *socket, struct ttmon_top *ret) _must_check;
/*
 * The same and nothing said. -ENODATA: it does not measure CPU time; -EREMOTEIO: it refused otherwise.
 */
int ttmon_top_read_quietly(const char *socket, struct ttmon_top *ret) _must_check;
/*
 * What happened between two readings. A process that is new counts from 0, and so does everything
 * where the two are of different daemons.
 */
int ttmon_top_diff(const struct ttmon_top *from, const struct ttmon_top *to, struct ttmon_top *ret) _must_check;
/* A copy with what was requested, sorted as asked. */
int ttmon_top_arrange(const struct ttmon_top *t, const struct ttmon_top_ask *ask, struct ttmon_top *ret) _must_check;
void ttmon_top_fini(struct ttmon_top *t);

/* ---- text.c: one line each, without a newline, for any terminal ---- */
enum ttmon_top_column {
	TTMON_COL_PID,
	TTMON_COL_NAME,
	TTMON_COL_CPU,
	TTMON_COL_CHIP,
	TTMON_COL_CHIP_ERROR,
	TTMON_COL_IPC,
	TTMON_COL_MISSES,
	TTMON_COL_LLC,
	TTMON_COL_MBM,
	TTMON_COL_PINNED,
	TTMON_COL_COPIED,
	TTMON_COL_SWITCHES,
	TTMON_COL_RMID,
	TTMON_COL_MAX
};
#define TTMON_TOP_LINE 1024 /* bytes of the longest line, its end included */

struct ttmon_top_layout {
	size_t width[TTMON_COL_MAX]; /* 0: left out */
};
/* What fits the width (0: everything); what this host does not measure goes first. */
void ttmon_top_fit(const struct ttmon_top *t, size_t width, bool args, struct ttmon_top_layout *ret);
/* Line 0 or 1 of two, and line 2 that says why something is not known: empty where all is. */
void ttmon_top_head(const struct ttmon_top *t, unsigned int line, char *buf, size_t n);
void ttmon_top_columns(const struct ttmon_top_layout *l, char *buf, size_t n);
/* Where the column of a sort key stands, and its width; false: it is left out. */
bool ttmon_top_column_at(const struct ttmon_top_layout *l, unsigned int sort, size_t *at, size_t *width);
/* i is below t->n. args: the process's command line, NULL: its name is shown. */
void ttmon_top_line(const struct ttmon_top *t, size_t i, const struct ttmon_top_layout *l, const char *args, char *buf,
		    size_t n);
/* The arranged difference as JSON: sums over interval_ns. New reference, NULL: out of memory. */
json_t *ttmon_top_json(const struct ttmon_top *t, const struct ttmon_top_ask *ask);

/* ---- args.c ---- */
/* Is it to be shown by its command line? Also one whose name nobody told. */
static inline bool ttmon_top_wants_args(const struct ttmon_top_proc *p, const struct ttmon_top_ask *ask)
{
	return p->pid && !p->ended && (ask->args || !p->comm[0]);
}
/* The command line of a process of this host, its words joined by blanks; "" where there is none. */
void ttmon_top_args(const char *proc_root, uint64_t pid, char *buf, size_t n);

/* ---- screen.c ---- */
/* On a terminal, until q. The exit status of the program. */
int ttmon_top_screen(struct ttmon_top_ask *ask);

#endif
