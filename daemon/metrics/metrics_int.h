/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * metrics_int.h: shared by the files of daemon/metrics; not included elsewhere.
 *
 *   metrics.c         the table with its label names, the handler, the tick, rows for the manual page
 *   take.c    figures of the pipeline, copied in the hot thread
 *   memory.c  allocations, pinned memory, transfers of the whole host
 *   groups.c  the same and CPU time by name, cgroup, unit, container or pod
 *   tt.c      Tenstorrent chips
 *   trace.c   events, slots, CPUs, rings, RMIDs
 *   probes.c  objects, probes, programs, families, the budget
 *   self.c    the daemon: HTTP, CPU time, memory, files
 */
#ifndef TTMON_METRICS_INT_H
#define TTMON_METRICS_INT_H

#include "daemon/metrics/metrics.h"
#include "daemon/core/history/live.h"
#include "daemon/core/history/waits.h"
#include "daemon/io/host/cgroups.h"
#include "lib/base/topn.h"
#include "lib/os/promw.h"
#include "daemon/metrics/table.h"

#define TTMON_METRICS_FAILURES 1025 /* as many as the history keeps */

/* Copied by one call in the hot thread. */
struct ttmon_metrics_view {
	struct ttmon_history_totals totals;
	struct ttmon_live_totals live;
	struct ttmon_pin_times pin[TTMON_METHOD_MAX], unpin[TTMON_METHOD_MAX];
	struct ttmon_wait_sums waits[TTMON_WAIT_MAX];
	struct ttmon_accounting acc;
	uint64_t unpublished; /* part of acc.published */
	struct ttmon_cpu_totals cpu;
	struct ttmon_rmid_totals rmid;
	struct ttmon_failure failures[TTMON_METRICS_FAILURES];
	size_t nr_failures;
	char hostname[sizeof(((struct ttmon_ev_clock *)0)->hostname) + 1];
	char release[sizeof(((struct ttmon_ev_clock *)0)->release) + 1];
	uint64_t processes;
	bool has_tt;
	struct ttmon_seen_view seen;
	int64_t real_offset_ns; /* added to a time of the trace it gives real time */
	/* Sorted by id; the array has room for all groups, and some spare. */
	struct ttmon_usage_group *groups;
	size_t nr_groups, cap_groups, wanted_groups;
	struct ttmon_usage_sums gone;
	uint64_t refused;
};

struct ttmon_metrics_tt;

struct ttmon_metrics {
	struct ttmon_daemon *c;
	struct ttmon_prom_metric table[TTMON_METRICS_MAX];
	char *labels[TTMON_METRICS_MAX]; /* label names of the table rows that begin with the group */
	struct ttmon_promw w;		 /* writer of the reply that is being made */
	struct ttmon_metrics_view v;
	struct ttmon_snapshot snap;
	uint64_t superseded; /* highest value so far: a late free lowers the history's count */
	struct ttmon_topn *mem, *cpu;
	struct ttmon_metrics_tt *tt;
	/* NULL in a replay: the ids of a recording belong to another host, or to another boot */
	struct ttmon_cgroups *cgroup_paths;
	uint64_t *cgroups; /* ids, copied at the tick */
	size_t nr_cgroups, cap_cgroups, wanted_cgroups;
	uint64_t start_real_ns; /* of this process */
	unsigned int ticks;
};

/*
 * Writes a sample. The values of the labels, in the order of the table, come last. Samples of a metric
 * must be written together.
 */
void ttmon_metrics_num(struct ttmon_metrics *m, enum ttmon_metric id, uint64_t value, const char *const *values);
void ttmon_metrics_nano(struct ttmon_metrics *m, enum ttmon_metric id, uint64_t value, const char *const *values);
void ttmon_metrics_histogram(struct ttmon_metrics *m, enum ttmon_metric id, const struct ttmon_prom_histogram *h,
			     const char *const *values);
#define TTMON_VALUES(...)		 ((const char *const[]){ NULL, ##__VA_ARGS__ } + 1)
#define TTMON_NUM(m, ID, value, ...)	 ttmon_metrics_num(m, TTMON_METRIC_##ID, value, TTMON_VALUES(__VA_ARGS__))
#define TTMON_SECONDS(m, ID, value, ...) ttmon_metrics_nano(m, TTMON_METRIC_##ID, value, TTMON_VALUES(__VA_ARGS__))

/* The vendor of a method's memory: "nvidia", "tenstorrent", "host"; NULL: not shown (mappings). */
const char *ttmon_metrics_vendor(unsigned int method);
const char *ttmon_metrics_method(unsigned int method);
/* "none" for copies between devices. */
const char *ttmon_metrics_mem(unsigned int rdir, unsigned int mem);

/* Families whose probes see calls of the function of that name, as bits. */
uint32_t ttmon_metrics_function_need(const char *function);

/* take.c: -ENOMEM, -EAGAIN. */
int ttmon_metrics_take(struct ttmon_metrics *m) _must_check;
/* Looks up the cgroups of all groups by id, so that their names are known after they are gone. */
void ttmon_metrics_ask_cgroups(struct ttmon_metrics *m);

void ttmon_metrics_memory(struct ttmon_metrics *m);
int ttmon_metrics_groups_new(struct ttmon_metrics *m) _must_check;
/* Ranks all groups and chooses those with series. */
int ttmon_metrics_rank(struct ttmon_metrics *m) _must_check;
void ttmon_metrics_groups(struct ttmon_metrics *m);
void ttmon_metrics_trace(struct ttmon_metrics *m);
void ttmon_metrics_probes(struct ttmon_metrics *m);
void ttmon_metrics_self(struct ttmon_metrics *m);
/* Start of this process, real time in ns; 0: unknown. */
uint64_t ttmon_metrics_start(void);

/* tt.c: sums by chip that outlive the processes that caused them. */
int ttmon_metrics_tt_new(struct ttmon_metrics_tt **ret) _must_check;
void ttmon_metrics_tt_free(struct ttmon_metrics_tt *t);
/*
 * Adds what was gained since the last time. Call it at least each second, since ended processes are
 * dropped.
 */
void ttmon_metrics_tt_take(struct ttmon_metrics *m);
void ttmon_metrics_chips(struct ttmon_metrics *m);

#endif
