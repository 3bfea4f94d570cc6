/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * capture.h: one run of the daemon on live programs, from load to summary. Its loop is the cold thread: signals, new objects,
 * held commands, requests of the hot thread, the socket, the live line.
 */
#ifndef TTMON_CAPTURE_H
#define TTMON_CAPTURE_H

#include <jansson.h>
#include <sys/types.h>

#include "families.h"
#include "hot.h"
#include "io/cgroups.h"
#include "io/discover.h"
#include "io/facts.h"
#include "io/hold.h"
#include "io/http.h"
#include "io/rmids.h"
#include "io/ttident.h"
#include "io/ttshm.h"
#include "kpins.h"
#include "memtrace.h"
#include "metrics.h"
#include "opts.h"
#include "publish.h"
#include "viewer.h"

struct ttmon_run {
	const struct ttmon_opts *opts;
	enum ttmon_capture mode;
	uint64_t start_ns;
	struct ttmon_hold *hold;
	struct ttmon_bpf *bpf; /* NULL in a replay */
	struct ttmon_pipeline *pipeline;
	struct ttmon_rec_writer *rec;
	struct ttmon_discover *discover;
	struct ttmon_mmap2 *mmap2;
	struct ttmon_hot *hot;
	struct ttmon_http *http;
	struct ttmon_metrics *metrics;	 /* NULL where nothing is served */
	struct ttmon_families *families; /* NULL in a replay */
	struct ttmon_cgroups *cgroups;
	struct ttmon_ttrun *tt;
	struct ttmon_cpurun *cpu;  /* NULL: CPU time is not measured */
	struct ttmon_kpins *kpins; /* NULL in a replay */
	struct ttmon_mtrun *mt;	   /* NULL: memory accesses are not read */
	struct ttmon_publish publish;
	enum ttmon_rmid_backend rmid;
	int epoll_fd, signal_fd, timer_fd;
	bool hold_watched;

	pid_t child; /* CMD, until it has been waited for */
	int child_status;
	pid_t dumper;		       /* a forked child that writes the database */
	struct ttmon_db_jobs *db_jobs; /* of /v1/db */
	struct ttmon_api_live *live;   /* of /v1/advice/live, NULL: nobody asked yet */
	bool stop;
	unsigned int interrupts, terms;
	uint64_t mmap2_lost, hold_missed;
	struct ttmon_replay *replay; /* NULL: live */
	uint64_t replay_ns;	     /* how far a replay has come */
	uint64_t watchdog_ns;
	uint64_t held_ns; /* when a held command last asked */
	unsigned int ticks;
};

/* Run fn on the pipeline: in the hot thread, between two drains, or, in a replay, here. fn's result. Cold thread. */
int ttmon_run_call(const struct ttmon_run *c, ttmon_hot_fn fn, void *ctx);
/* The same in a forked child, on its copy of the pipeline: see ttmon_hot_dump(). Its pid or -errno. */
pid_t ttmon_run_dump(const struct ttmon_run *c, ttmon_hot_fn fn, void *ctx);
/* The kernel's counters, sums over CPUs; of a recording what it has told so far. */
void ttmon_run_kernel_counts(const struct ttmon_run *c, struct ttmon_kernel_counts *ret);
void ttmon_run_snapshot(const struct ttmon_run *c, struct ttmon_snapshot *ret);

/* Run to the end. Returns the process's exit status. */
int ttmon_run_capture(const struct ttmon_opts *opts);
void ttmon_run_destroy(struct ttmon_run *c);
/* Serve what the options ask for, if they do. */
int ttmon_run_listen(struct ttmon_run *c) _must_check;

/* service.c: does the hot thread drain? */
bool ttmon_run_is_alive(const struct ttmon_run *c);
/* All of these do nothing but for a service. Give away the capabilities that tracing goes on without. Of both threads, so when the hot one runs. -errno, logged. */
int ttmon_service_confine(struct ttmon_run *c) _must_check;
void ttmon_service_ready(const struct ttmon_run *c);
void ttmon_service_tick(struct ttmon_run *c);
void ttmon_service_reload(struct ttmon_run *c);
void ttmon_service_stop(const struct ttmon_run *c);

/* fetch.c: write what the service at opts->ask has kept. Returns the exit status, -ENOENT: no service is there. */
int ttmon_fetch_db(const struct ttmon_opts *opts);

/* replay.c: the same for a recording. */
int ttmon_run_replay(const struct ttmon_opts *opts);
void ttmon_replay_tick(struct ttmon_run *c);

/* Write the database (the timeline) named on the command line, log what went wrong. */
int ttmon_write_db(const struct ttmon_opts *opts, struct ttmon_pipeline *p, uint64_t end_ns, bool cut);
int ttmon_write_trace(const struct ttmon_opts *opts, struct ttmon_pipeline *p, uint64_t end_ns);

/* loop.c: signals, the tick, epoll. Failures are logged. */
int ttmon_loop_new(struct ttmon_run *c) _must_check;
int ttmon_loop_watch(struct ttmon_run *c, int fd) _must_check;
/* One wait and what came of it. */
void ttmon_loop_turn(struct ttmon_run *c);
/* The process that a thread belongs to; itself if that cannot be told. */
uint32_t ttmon_loop_tgid(uint32_t tid);
/* What is waiting in the buffers of new mappings and requests, at the end. */
void ttmon_loop_drain(struct ttmon_run *c);
/* List a process's mappings and probe its objects. ctx: struct ttmon_run. */
void ttmon_loop_discover(void *ctx, uint32_t tgid);

/*
 * ttrun.c: the cold side of Tenstorrent: chips and identity, the published files, spare probes, readings of the time stamp counter.
 * Nothing but a look into sysfs is done until a chip or a program with tt-metal is there.
 */
int ttmon_ttrun_new(struct ttmon_run *c, struct ttmon_ttrun **ret) _must_check;
void ttmon_ttrun_free(struct ttmon_ttrun *t);
/* The hot thread is gone: facts go to the pipeline itself from now on. Tells what its end needs to know. */
void ttmon_ttrun_redirect(struct ttmon_ttrun *t, ttmon_fact_fn fact, void *ctx);
/* The pipeline is finished: last questions, last figures. */
void ttmon_ttrun_finish(struct ttmon_ttrun *t);
void ttmon_ttrun_request(struct ttmon_ttrun *t, const struct ttmon_request *req);
void ttmon_ttrun_tick(struct ttmon_ttrun *t);
struct ttmon_ttrun_view {
	const struct ttmon_tt_view *tt; /* of the last tick that found a change */
	const struct ttmon_ttshm_report *shm;
	size_t nr_shm;
};
void ttmon_ttrun_get(const struct ttmon_ttrun *t, struct ttmon_ttrun_view *ret);

/* cpurun.c: the cold side of who used the machine. NULL is allowed where the options do not ask for it. */
int ttmon_cpurun_choose(const struct ttmon_run *c, struct ttmon_bpf_cfg *cfg) _must_check;
int ttmon_cpurun_new(struct ttmon_run *c, enum ttmon_rmid_backend backend, struct ttmon_cpurun **ret) _must_check;
void ttmon_cpurun_free(struct ttmon_cpurun *r);
struct ttmon_cpustate *ttmon_cpurun_state(const struct ttmon_cpurun *r);
/* Events flow: know what runs on each CPU and which RMIDs there are. */
void ttmon_cpurun_start(struct ttmon_cpurun *r);
void ttmon_cpurun_request(struct ttmon_cpurun *r, const struct ttmon_request *req);
void ttmon_cpurun_tick(struct ttmon_cpurun *r);
void ttmon_cpurun_fact(void *ctx, const void *rec, size_t size);
bool ttmon_cpurun_info(const struct ttmon_cpurun *r, struct ttmon_rmids_info *ret);

/* api_cpu.c */
void ttmon_api_processes(void *ctx, struct ttmon_http_reply *reply);
/* For /v1/status: null where CPU time is not measured. New references. */
json_t *ttmon_api_cpu_status(const struct ttmon_run *c, const struct ttmon_snapshot *s);
json_t *ttmon_api_rmid_status(const struct ttmon_run *c, const struct ttmon_snapshot *s);

/* summary_cpu.c */
void ttmon_summary_cpu(FILE *f, struct ttmon_pipeline *p);

/* api_alloc.c: allocations, their heat, spots, advice */
void ttmon_api_allocations(void *ctx, struct ttmon_http_reply *reply);
void ttmon_api_allocation(void *ctx, struct ttmon_http_reply *reply);
void ttmon_api_heat(void *ctx, struct ttmon_http_reply *reply);
/* /v1/hotspots and /v1/coldspots of one period; cold: the latter. */
void ttmon_api_period(void *ctx, struct ttmon_http_reply *reply, bool cold);
void ttmon_api_hotspots(void *ctx, struct ttmon_http_reply *reply);
void ttmon_api_coldspots(void *ctx, struct ttmon_http_reply *reply);
void ttmon_api_advice(void *ctx, struct ttmon_http_reply *reply);
/* api_live.c: live advice, and those who follow it */
void ttmon_api_live(void *ctx, struct ttmon_http_reply *reply);
void ttmon_api_live_wake(struct ttmon_run *c); /* there are new lines */
void ttmon_api_live_tick(struct ttmon_run *c); /* each 100 ms */
void ttmon_api_live_free(struct ttmon_run *c); /* nobody is connected any more */
struct ttmon_api_live_stats {
	uint64_t missed; /* lines that followers were told they missed */
	uint32_t followers;
};
void ttmon_api_live_get_stats(const struct ttmon_run *c, struct ttmon_api_live_stats *ret);
/* api_slots.c */
void ttmon_api_slots(void *ctx, struct ttmon_http_reply *reply);
/* api_db.c: the database of what is kept, written by a forked child into a file without a name */
void ttmon_api_db(void *ctx, struct ttmon_http_reply *reply);
void ttmon_api_db_reap(struct ttmon_run *c); /* on SIGCHLD and each tick */
void ttmon_api_db_free(struct ttmon_run *c);
/* api_ctl.c: targets and families, read and changed */
void ttmon_api_targets(void *ctx, struct ttmon_http_reply *reply);
void ttmon_api_families(void *ctx, struct ttmon_http_reply *reply);
/* For /v1/status: families that are counted only or off; null without a budget. New references. */
json_t *ttmon_api_reduced(const struct ttmon_run *c);
json_t *ttmon_api_budget(const struct ttmon_run *c);

/* api_tt.c */
void ttmon_api_devices(void *ctx, struct ttmon_http_reply *reply);
void ttmon_api_trace(void *ctx, struct ttmon_http_reply *reply);
/* A few figures for /v1/status, and what /v1/probes says of layouts and clocks. New references. */
json_t *ttmon_api_tt_status(const struct ttmon_run *c);
json_t *ttmon_api_tt_processes(const struct ttmon_run *c, const struct ttmon_viewer *who);
json_t *ttmon_api_tt_clocks(const struct ttmon_run *c, const struct ttmon_viewer *who);

/* summary_tt.c */
void ttmon_summary_tt(FILE *f, struct ttmon_pipeline *p);

/* api.c: what the socket serves. Takes the reference; NULL is out of memory. */
void ttmon_api_send(struct ttmon_http_reply *reply, json_t *doc);
extern const struct ttmon_http_route ttmon_api_routes[];
extern const size_t ttmon_api_nr_routes;

/* summary.c: the tables at the end of a run. */
void ttmon_summary(FILE *f, struct ttmon_pipeline *p, bool trace_only, uint64_t end_ns);

#endif
