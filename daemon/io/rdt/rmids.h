/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rmids.h: the source of RMIDs: one of three backends behind one interface, chosen at the start. Cold
 * thread.
 *
 *   module    a kernel module (ours in kmod/, or its public predecessor) reports through tracepoints.
 *             It is attached when it is loaded, and released when it is to be unloaded; its state is
 *             dumped through its procfs file at the start, and after records were lost.
 *   resctrl   io/rdt/resctrl.c: a monitoring group for each traced process or cgroup.
 *   emulated  bpf/rmid.bpf.c: an allocator of our own; present processes come from a task iterator,
 *             which runs again after records were lost.
 */
#ifndef TTMON_RMIDS_H
#define TTMON_RMIDS_H

#include <ttmon/event.h>

#include "daemon/io/bpf/bpf.h"
#include "daemon/io/host/facts.h"
#include "daemon/io/rdt/resctrl.h"
#include "lib/base/util.h"

struct ttmon_rmids;

struct ttmon_rmids_cfg {
	enum ttmon_rmid_backend
		wanted; /* AUTO: the first that is available: module, resctrl (mounted, with monitoring), emulated */
	const char *resctrl_root; /* NULL: /sys/fs/resctrl */
	bool by_cgroup;		  /* resctrl: a group for each cgroup of traced processes */
	unsigned int rdt_hz;	  /* resctrl: readings a second, 1..10; 0: 4 */
	/* procfs file of the module, NULL: /proc/ttmon_rmid, else /proc/unvariance_collector */
	const char *module_proc;
	const char *module_system; /* SYSTEM[:PREFIX] of its trace events, NULL: those of unvariance/collector */
	const char *proc_root;	   /* NULL: /proc */
	const char *tracefs_root;  /* NULL: /sys/kernel/tracing, else /sys/kernel/debug/tracing */
	ttmon_fact_fn fact;
	void *ctx;
};

/*
 * Chooses the backend before the programs are loaded. -ENODEV: the requested one is not available,
 * with a line that says what to do.
 */
int ttmon_rmids_choose(const struct ttmon_rmids_cfg *cfg, enum ttmon_rmid_backend *ret, char *why,
		       size_t n) _must_check;
/* The largest valid id: CPUID 0xF.1:ECX, else 511. */
uint32_t ttmon_rmids_max(enum ttmon_rmid_backend backend);

int ttmon_rmids_new(const struct ttmon_rmids_cfg *cfg, enum ttmon_rmid_backend backend, struct ttmon_bpf *bpf,
		    struct ttmon_rmids **ret) _must_check;
void ttmon_rmids_free(struct ttmon_rmids *r);
/*
 * The programs are attached and active: attaches the module's tracepoints, dumps or iterates, sends
 * RMID_INFO.
 */
void ttmon_rmids_start(struct ttmon_rmids *r);
/* A traced process was announced; it is gone. (For resctrl.) */
void ttmon_rmids_proc(struct ttmon_rmids *r, uint32_t tgid, uint64_t start_ns);
void ttmon_rmids_exit(struct ttmon_rmids *r, uint32_t tgid);
/* Every 100 ms: readings that are due, retries, a dump after loss, the module loaded or unloaded. */
void ttmon_rmids_tick(struct ttmon_rmids *r, uint64_t now_ns);

/* For status and summary. Strings are borrowed until the next call of any of these functions. */
struct ttmon_rmids_info {
	enum ttmon_rmid_backend backend;
	const char *source; /* "ttmon_rmid 1.0, hardware", "/sys/fs/resctrl", "" */
	const char *reason; /* present problem: "the module is not loaded", "out of RMIDs"; "" */
	uint32_t max_rmid, groups;
	uint64_t exhausted, readings, failed_readings, dumps;
	uint32_t telemetry_has; /* resctrl.h */
	uint64_t telemetry[TTMON_RESCTRL_TELEMETRY];
	bool attached; /* module: its tracepoints are attached */
};
void ttmon_rmids_get_info(const struct ttmon_rmids *r, struct ttmon_rmids_info *ret);

#endif
