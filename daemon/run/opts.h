/* SPDX-License-Identifier: GPL-2.0-only */
/* opts.h: the command line of ttmond, one table of lib/os/cli.h. */
#ifndef TTMON_OPTS_H
#define TTMON_OPTS_H

#include <ttmon/fns.h>

#include "daemon/core/history/history.h"
#include "daemon/io/bpf/bpf.h"
#include "daemon/io/objects/objects.h"
#include "lib/os/log.h"

#define TTMON_SOCKET	 "/run/ttmond/ttmond.sock"
#define TTMON_LISTEN	 "127.0.0.1:9843"
#define TTMON_MAX_PIDS	 256
#define TTMON_MAX_LISTEN 8
#define TTMON_MAX_AHEAD	 16

struct ttmon_opts {
	uint32_t pids[TTMON_MAX_PIDS];
	size_t nr_pids;
	char **cmd; /* NULL-terminated, or NULL */
	const char *dump_db, *record, *replay, *trace_out;
	const char *socket; /* NULL: none */
	bool socket_given;
	const char *ask; /* --dump-db without a target: the socket of a service that may exist; else NULL */
	bool service;	 /* no target and no output file: it listens, publishes, and is the only one */
	const char *listen[TTMON_MAX_LISTEN]; /* HOST:PORT */
	size_t nr_listen;
	bool listen_given;
	bool look_ahead;	      /* libraries under the usual paths are probed before a process maps them */
	char *ahead[TTMON_MAX_AHEAD]; /* further folders to search, borrowed */
	size_t nr_ahead;
	unsigned int group_by; /* enum ttmon_group_by: the label of metrics of processes */
	uint32_t series;       /* groups with series of their own */
	uint64_t linger_s;     /* how long series of ended groups stay */
	bool overhead_given;
	double max_overhead; /* percent of the host's CPU time; 0: no budget, and no statistics of BPF programs */
	bool trace_only, no_mmap, trace_mmap, no_unwind, copy_results, no_returns, returns_all, quiet;
	uint64_t ring_kib;
	uint32_t window, stack_frames;
	uint64_t max_events, max_allocations, max_user_probes; /* 0: not given */
	unsigned int live_pin;				       /* enum ttmon_live_pin */
	uint64_t live_threshold;			       /* copies or bytes */
	uint64_t live_cold_s;
	unsigned int tt_shm_version; /* 1 to 4, 0: nothing is published */
	bool tt_shm_given;
	unsigned int tt_dispatch; /* enum ttmon_tt_dispatch_mode */
	bool tt_ioctl;
	bool nvidia_pins; /* count what NVIDIA's kernel module pins */
	bool cpu;	  /* measure CPU time by process */
	bool cpu_given;
	unsigned int rmid; /* enum ttmon_rmid_backend */
	bool rmid_given;
	bool rmid_by_cgroup;
	unsigned int rdt_hz;
	const char *resctrl_root, *rmid_events;
	const char *slots_out;
	bool memtrace;				    /* read memory accesses of GPU kernels */
	const char *memtrace_out, *memtrace_socket; /* NULL: no file; NULL: the default socket */
	uint32_t shm_slots;			    /* slots in the segment, 0: no segment */
	bool shm_given;
	const char *sysfs_root, *proc_root, *shm_root;
	/* --alloc-fn and --free-fn; the options own the strings. */
	struct ttmon_user_fn user[TTMON_FN_USER_MAX];
	struct ttmon_user_row rows[TTMON_FN_USER_MAX];
	size_t nr_user;
};

/*
 * Fills in opts. metrics: writes the text of --help=metrics. 0: continue; 1: help or version was
 * printed, exit with 0; -EINVAL: the reason was printed to stderr, exit with 2.
 */
int ttmon_opts_parse(int argc, char **argv, void (*metrics)(FILE *f), struct ttmon_opts *opts) _must_check;
/* The options of live advice. */
struct ttmon_live_cfg ttmon_opts_live(const struct ttmon_opts *opts);
void ttmon_opts_fini(struct ttmon_opts *opts);

#endif
