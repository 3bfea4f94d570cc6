/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * daemon.h: one run of the daemon, on live programs or on a recording, as its parts see it; and what a
 * part is.
 *
 * A run has a spine that knows its own pieces (daemon_int.h: BPF programs, hot thread, pipeline,
 * discovery of objects, held command, recording) and parts, which it knows only as rows of a table.
 * main.c has the table. All functions of a part run in the cold thread, except those of its `hot`
 * member.
 */
#ifndef TTMON_DAEMON_H
#define TTMON_DAEMON_H

#include "daemon/io/host/facts.h"
#include "daemon/io/http/http.h"
#include "daemon/run/hot.h"
#include "daemon/run/opts.h"
#include "lib/os/helpers.h"

struct ttmon_daemon;

enum ttmon_capture_in { TTMON_IN_LIVE = 1, TTMON_IN_REPLAY = 2, TTMON_IN_BOTH = 3 };

/*
 * A part. Its functions are called in the order of this structure; NULL: there is nothing to do. If
 * *state is NULL after start(), the run does not need the part, and no other function is called. Parts
 * start in the order of the table and are freed in reverse order. A function that fails has logged the
 * reason; any -errno ends the run.
 */
struct ttmon_part {
	const char *name;
	enum ttmon_capture_in in; /* the runs that have it; a replay that is not served has no part */
	/* Before the command is forked and the BPF programs are loaded. Live runs only. */
	int (*configure)(struct ttmon_daemon *c, void **state, struct ttmon_bpf_cfg *cfg);
	/* The programs are loaded, the hot thread does not run yet. Live runs only. */
	int (*load)(struct ttmon_daemon *c, void **state);
	/* The hot thread accepts facts. */
	int (*start)(struct ttmon_daemon *c, void **state);
	/* Events flow from now on. Live runs only. */
	int (*go)(void *state);
	/* Every go() succeeded: the run has begun. Live runs only. */
	void (*ready)(void *state);

	/* A process was announced or is gone (PROC, EXIT), or the part's own request came back. */
	void (*request)(void *state, const struct ttmon_request *req);
	/* The hot thread has sent something: requests, or new lines of live advice. */
	void (*wake)(void *state);
	/* A fact on its way into the stream, from the discovery of objects: mappings of processes. */
	void (*fact)(void *state, const void *rec, size_t size);
	void (*child_ended)(void *state); /* SIGCHLD; it may be another child of the run */
	void (*tick)(void *state);	  /* every 100 ms */
	void (*reload)(void *state);	  /* SIGHUP of a service */
	/*
	 * timeout_ms: before each wait, how many ms it may take, -1: any. turn: after a wait, if that time is
	 * over or an fd of a part is readable.
	 */
	int (*timeout_ms)(void *state);
	void (*turn)(void *state);

	void (*leave)(void *state); /* the end begins; everything still runs */
	/*
	 * The last facts of the part's threads, while the hot thread still takes them. Called again by free().
	 * -errno: the run has failed.
	 */
	int (*stop)(void *state);
	/* The hot thread is gone: facts go directly into the pipeline. */
	void (*last_facts)(void *state);
	/* The pipeline is finished: last requests, last figures. */
	void (*finish)(void *state);
	void (*summary)(void *state, FILE *f);
	void (*free)(void *state);

	const struct ttmon_http_route *routes; /* ctx of their handlers is the struct ttmon_daemon */
	size_t nr_routes;
	struct ttmon_hot_part hot;
};

/* The part's state in this run; NULL: the run does not have the part. */
void *ttmon_daemon_part(const struct ttmon_daemon *c, const struct ttmon_part *part);
/* The table, in its order. */
const struct ttmon_part *const *ttmon_daemon_parts(const struct ttmon_daemon *c, size_t *n);

const struct ttmon_opts *ttmon_daemon_opts(const struct ttmon_daemon *c);
bool ttmon_daemon_is_replay(const struct ttmon_daemon *c);
enum ttmon_capture ttmon_daemon_mode(const struct ttmon_daemon *c); /* of a live run */
uint64_t ttmon_daemon_start_ns(const struct ttmon_daemon *c);
unsigned int ttmon_daemon_ticks(const struct ttmon_daemon *c); /* since the start, of 100 ms each */
enum ttmon_rmid_backend ttmon_daemon_rmid(const struct ttmon_daemon *c);

/* In a replay all of these are NULL except the pipeline. */
struct ttmon_bpf *ttmon_daemon_bpf(const struct ttmon_daemon *c);
struct ttmon_hot *ttmon_daemon_hot(const struct ttmon_daemon *c); /* NULL: not running yet, or no longer */
struct ttmon_discover *ttmon_daemon_discover(const struct ttmon_daemon *c);
struct ttmon_rec_writer *ttmon_daemon_rec(const struct ttmon_daemon *c); /* NULL: nothing is recorded */
/* Belongs to the hot thread while that runs: use it only through ttmon_daemon_call(). */
struct ttmon_pipeline *ttmon_daemon_pipeline(const struct ttmon_daemon *c);
/* Closed slots that were not published anywhere; belongs to the hot thread like the pipeline. */
uint64_t ttmon_daemon_unpublished(const struct ttmon_daemon *c);
bool ttmon_daemon_has_shm(const struct ttmon_daemon *c); /* closed slots are published in /dev/shm */
/* Called from load(): the CPU states that the hot thread is to read. They stay owned by the part. */
void ttmon_daemon_set_cpus(struct ttmon_daemon *c, struct ttmon_cpustate *cpus);
/* When a held command last made a request; 0: never. */
uint64_t ttmon_daemon_held_ns(const struct ttmon_daemon *c);

/*
 * Sends a fact into the stream; ctx: the struct ttmon_daemon. Before the hot thread runs and after the
 * pipeline is finished, facts are dropped.
 */
void ttmon_daemon_fact(void *ctx, const void *rec, size_t size);
/*
 * Runs fn on the pipeline: in the hot thread between two drains or, in a replay, in this thread.
 * Returns fn's result.
 */
int ttmon_daemon_call(const struct ttmon_daemon *c, ttmon_hot_fn fn, void *ctx);
/*
 * The same in a forked child, on its copy of the pipeline: see ttmon_hot_dump(). Returns its pid or
 * -errno.
 */
pid_t ttmon_daemon_dump(const struct ttmon_daemon *c, ttmon_hot_fn fn, void *ctx);
/* The kernel's counters, summed over CPUs; in a replay, as recorded so far. */
void ttmon_daemon_kernel_counts(const struct ttmon_daemon *c, struct ttmon_kernel_counts *ret);
void ttmon_daemon_snapshot(const struct ttmon_daemon *c, struct ttmon_snapshot *ret);
/* Figures of the processes that read files; false: there are none (replay). */
bool ttmon_daemon_helpers(const struct ttmon_daemon *c, struct ttmon_helpers_counts *ret);
/* What helpers do for runs, beside ttmon_jobs (io/probes/jobs.h): after those in their table. */
enum ttmon_help {
	TTMON_HELP_PROGRAM,
	TTMON_HELP_HELD,
	TTMON_HELP_MESH,
	TTMON_HELP_IDENT,
	TTMON_HELP_HOLDER,
	TTMON_HELPS
};
/* Ask one of these for a process; as ttmon_helpers_call(). */
int ttmon_daemon_help(struct ttmon_daemon *c, enum ttmon_help what, uint32_t tgid, const void *in, size_t n,
		      void (*done)(void *ctx, struct ttmon_helper_reply *reply), void *ctx) _must_check;
/* The same on behalf of a user; id: what the call is about, as two late calls at one place count. */
int ttmon_daemon_help_user(struct ttmon_daemon *c, enum ttmon_help what, uid_t uid, uint32_t id, const void *in,
			   size_t n, void (*done)(void *ctx, struct ttmon_helper_reply *reply), void *ctx) _must_check;
/*
 * Wait for what helpers have to do, but for calls that take more than a second, ms at most. Whether
 * all of that is done.
 */
bool ttmon_daemon_settle(struct ttmon_daemon *c, unsigned int ms);
/* Does the hot thread drain? */
bool ttmon_daemon_is_alive(const struct ttmon_daemon *c);
/* Lists a process's mappings and probes its objects. ctx: struct ttmon_daemon. */
void ttmon_daemon_list(void *ctx, uint32_t tgid);
/* The same; calls `told` with c when the mappings were reported. */
void ttmon_daemon_list_then(struct ttmon_daemon *c, uint32_t tgid, void (*told)(void *ctx, uint32_t tgid));
/*
 * A process that already ran is to be traced: after its mappings were reported, the parts get it as if
 * it had just been announced.
 */
void ttmon_daemon_announce(struct ttmon_daemon *c, uint32_t tgid);
/* Handles results of helpers and threads until fd (-1: none) is readable, at most ms milliseconds. */
void ttmon_daemon_work(struct ttmon_daemon *c, int fd, unsigned int ms);
/* Waits until the announced processes are probed, at most 40 ms. */
void ttmon_daemon_await_announced(struct ttmon_daemon *c);
/* Lists a traced process's mappings, and waits as that does until its objects are probed. */
void ttmon_daemon_list_wait(struct ttmon_daemon *c, uint32_t tgid);

/*
 * Parts of the run that were requested and are missing: a service starts all the same, reports them
 * and tries again. X(NAME, key in the API and the metric, what the user misses).
 */
#define TTMON_LACK_TABLE(X)                               \
	X(SEGMENT, "segment", "shared-memory statistics") \
	X(MMAP, "mmap", "tracing of memory mappings")     \
	X(TCP, "tcp", "metrics over TCP")
enum ttmon_lacking {
#define X(NAME, key, what) TTMON_LACK_##NAME,
	TTMON_LACK_TABLE(X)
#undef X
		TTMON_LACK_MAX
};
const char *ttmon_lack_key(enum ttmon_lacking lack);
const char *ttmon_lack_what(enum ttmon_lacking lack);
/* Logged if the part is new on the list or its reason has changed. */
void ttmon_daemon_degrade(struct ttmon_daemon *c, enum ttmon_lacking lack, const char *why);
/* The process that is in the way, in words, or "". Logged, and shown to root only. */
void ttmon_daemon_blame(struct ttmon_daemon *c, enum ttmon_lacking lack, const char *who);
/* The part is there now. */
void ttmon_daemon_restore(struct ttmon_daemon *c, enum ttmon_lacking lack);
struct ttmon_lack {
	enum ttmon_lacking lack;
	uint64_t since_ns;
	char why[256];
	char who[64]; /* the process that is in the way; "": not known */
};
const struct ttmon_lack *ttmon_daemon_lacks(const struct ttmon_daemon *c, size_t *n);

/* The loop waits for fd; then the parts have their turn. */
int ttmon_daemon_watch(struct ttmon_daemon *c, int fd) _must_check;

/*
 * Runs to the end on live programs (capture.c), or on a recording (replay.c). Returns the process's
 * exit status.
 */
int ttmon_daemon_capture(const struct ttmon_opts *opts, const struct ttmon_part *const *parts, size_t nr_parts);
int ttmon_daemon_replay(const struct ttmon_opts *opts, const struct ttmon_part *const *parts, size_t nr_parts);

/*
 * fetch.c: writes the database of the service at opts->ask. Returns the exit status, -ENOENT: there is
 * no service.
 */
int ttmon_fetch_db(const struct ttmon_opts *opts);

#endif
