/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * daemon.h: one run of the daemon, on live programs or on a recording, as its parts see it; and what a
 * part is.
 *
 * A run has a spine that knows its own pieces (daemon_int.h: BPF programs, hot thread, pipeline,
 * discovery of objects, held command, recording) and parts that it knows nothing of but a row in a
 * table. main.c has the table. All functions of a part run in the cold thread, but for those of its
 * `hot` member.
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
 * A part. Its functions are called in the order in which they stand here; one that is NULL has nothing
 * to do. Where *state is NULL after start() the run has not asked for the part, and none of the others
 * is called. Parts start in the order of the table and are freed in the reverse order. What fails has
 * logged why; any -errno ends the run.
 */
struct ttmon_part {
	const char *name;
	enum ttmon_capture_in in; /* which runs have it; a recording that is not served has none */
	/* Before the command is forked and the BPF programs are loaded. Live runs alone. */
	int (*configure)(struct ttmon_daemon *c, void **state, struct ttmon_bpf_cfg *cfg);
	/* The programs are loaded, the hot thread is not there yet. Live runs alone. */
	int (*load)(struct ttmon_daemon *c, void **state);
	/* The hot thread takes facts. */
	int (*start)(struct ttmon_daemon *c, void **state);
	/* Events flow from now on. Live runs alone. */
	int (*go)(void *state);
	/* All of `go` went well: the run is on its way. Live runs alone. */
	void (*ready)(void *state);

	/* A process was announced or is gone (PROC, EXIT), or the part's own question. */
	void (*request)(void *state, const struct ttmon_request *req);
	/* The hot thread has told something: questions, or new lines of live advice. */
	void (*wake)(void *state);
	/* A fact on its way into the stream, from the search for objects: what processes have mapped. */
	void (*fact)(void *state, const void *rec, size_t size);
	void (*child_ended)(void *state); /* SIGCHLD; others of the run's children may have ended */
	void (*tick)(void *state);	  /* each 100 ms */
	void (*reload)(void *state);	  /* SIGHUP of a service */
	/*
	 * Before each wait: how many ms it may take, -1: any; and after it, if that time is over or
	 * an fd of a part is readable.
	 */
	int (*timeout_ms)(void *state);
	void (*turn)(void *state);

	void (*leave)(void *state); /* the end begins; everything still runs */
	/*
	 * The last facts of the part's threads, while the hot thread takes them. Called once more by free().
	 * -errno: the run has failed.
	 */
	int (*stop)(void *state);
	/* The hot thread is gone: facts go into the pipeline itself. */
	void (*last_facts)(void *state);
	/* The pipeline is finished: last questions, last figures. */
	void (*finish)(void *state);
	void (*summary)(void *state, FILE *f);
	void (*free)(void *state);

	const struct ttmon_http_route *routes; /* ctx of their handlers: the struct ttmon_daemon */
	size_t nr_routes;
	struct ttmon_hot_part hot;
};

/* The part's state in this run; NULL: the run has not got it. */
void *ttmon_daemon_part(const struct ttmon_daemon *c, const struct ttmon_part *part);
/* The table, in its order. */
const struct ttmon_part *const *ttmon_daemon_parts(const struct ttmon_daemon *c, size_t *n);

const struct ttmon_opts *ttmon_daemon_opts(const struct ttmon_daemon *c);
bool ttmon_daemon_is_replay(const struct ttmon_daemon *c);
enum ttmon_capture ttmon_daemon_mode(const struct ttmon_daemon *c); /* of a live run */
uint64_t ttmon_daemon_start_ns(const struct ttmon_daemon *c);
unsigned int ttmon_daemon_ticks(const struct ttmon_daemon *c); /* since the start, of 100 ms */
enum ttmon_rmid_backend ttmon_daemon_rmid(const struct ttmon_daemon *c);

/* All of these are NULL in a replay, but for the pipeline. */
struct ttmon_bpf *ttmon_daemon_bpf(const struct ttmon_daemon *c);
struct ttmon_hot *ttmon_daemon_hot(const struct ttmon_daemon *c); /* NULL: not yet, or not any more */
struct ttmon_discover *ttmon_daemon_discover(const struct ttmon_daemon *c);
struct ttmon_rec_writer *ttmon_daemon_rec(const struct ttmon_daemon *c); /* NULL: nothing is recorded */
/* The hot thread's while it runs: only with ttmon_daemon_call(). */
struct ttmon_pipeline *ttmon_daemon_pipeline(const struct ttmon_daemon *c);
/* Closed slots that went nowhere; the hot thread's while it runs, as the pipeline. */
uint64_t ttmon_daemon_unpublished(const struct ttmon_daemon *c);
bool ttmon_daemon_has_shm(const struct ttmon_daemon *c); /* closed slots go to the segment in /dev/shm */
/* From load(): what the hot thread is to read of CPUs. It stays the part's. */
void ttmon_daemon_set_cpus(struct ttmon_daemon *c, struct ttmon_cpustate *cpus);
/* When a held command last asked for something; 0: never. */
uint64_t ttmon_daemon_held_ns(const struct ttmon_daemon *c);

/*
 * A fact for the stream; ctx: the struct ttmon_daemon. Before the hot thread runs and after the
 * pipeline is finished it goes nowhere.
 */
void ttmon_daemon_fact(void *ctx, const void *rec, size_t size);
/*
 * Run fn on the pipeline: in the hot thread, between two drains, or, in a replay, here. fn's result.
 */
int ttmon_daemon_call(const struct ttmon_daemon *c, ttmon_hot_fn fn, void *ctx);
/* The same in a forked child, on its copy of the pipeline: see ttmon_hot_dump(). Its pid or -errno. */
pid_t ttmon_daemon_dump(const struct ttmon_daemon *c, ttmon_hot_fn fn, void *ctx);
/* The kernel's counters, sums over CPUs; of a recording what it has told so far. */
void ttmon_daemon_kernel_counts(const struct ttmon_daemon *c, struct ttmon_kernel_counts *ret);
void ttmon_daemon_snapshot(const struct ttmon_daemon *c, struct ttmon_snapshot *ret);
/* The processes that read files; false: there are none (replay). */
bool ttmon_daemon_helpers(const struct ttmon_daemon *c, struct ttmon_helpers_counts *ret);
/* What helpers do for runs, beside ttmon_jobs (io/probes/jobs.h): after those in their table. */
enum ttmon_help { TTMON_HELP_PROGRAM, TTMON_HELP_HELD, TTMON_HELP_MESH, TTMON_HELP_IDENT, TTMON_HELPS };
/* Ask one of these for a process; as ttmon_helpers_call(). */
int ttmon_daemon_help(struct ttmon_daemon *c, enum ttmon_help what, uint32_t tgid, const void *in, size_t n,
		      void (*done)(void *ctx, struct ttmon_helper_reply *reply), void *ctx) _must_check;
/*
 * Wait for what helpers have to do, but for calls that take more than a second, ms at most. Whether
 * all of that is done.
 */
bool ttmon_daemon_settle(struct ttmon_daemon *c, unsigned int ms);
/* Does the hot thread drain? */
bool ttmon_daemon_is_alive(const struct ttmon_daemon *c);
/* List a process's mappings and probe its objects. ctx: struct ttmon_daemon. */
void ttmon_daemon_list(void *ctx, uint32_t tgid);
/* The same; told, with c, once that has been told. */
void ttmon_daemon_list_then(struct ttmon_daemon *c, uint32_t tgid, void (*told)(void *ctx, uint32_t tgid));
/*
 * A process is to be traced that was there before: known to the parts as if it had just been
 * announced, when its mappings have been told.
 */
void ttmon_daemon_announce(struct ttmon_daemon *c, uint32_t tgid);
/* Go on with what helpers and threads have done, until fd (-1: none) is readable, ms at most. */
void ttmon_daemon_work(struct ttmon_daemon *c, int fd, unsigned int ms);
/* Wait until those that were announced are probed: 40 ms at most. */
void ttmon_daemon_await_announced(struct ttmon_daemon *c);

/*
 * What the run does without, though it was asked for: a service starts all the same, says so and takes
 * it up when it can. NAME, key in the API and the metric, what its user misses.
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
/* Said in the log when it is new or the reason is another one. */
void ttmon_daemon_degrade(struct ttmon_daemon *c, enum ttmon_lacking lack, const char *why);
/* It is there now. */
void ttmon_daemon_restore(struct ttmon_daemon *c, enum ttmon_lacking lack);
struct ttmon_lack {
	enum ttmon_lacking lack;
	uint64_t since_ns;
	char why[256];
};
const struct ttmon_lack *ttmon_daemon_lacks(const struct ttmon_daemon *c, size_t *n);

/* Wait for fd in the loop; then the parts have their turn. */
int ttmon_daemon_watch(struct ttmon_daemon *c, int fd) _must_check;

/*
 * Run to the end on live programs (capture.c), on a recording (replay.c). The process's exit status.
 */
int ttmon_daemon_capture(const struct ttmon_opts *opts, const struct ttmon_part *const *parts, size_t nr_parts);
int ttmon_daemon_replay(const struct ttmon_opts *opts, const struct ttmon_part *const *parts, size_t nr_parts);

/*
 * fetch.c: write what the service at opts->ask has kept. Returns the exit status, -ENOENT: no service
 * is there.
 */
int ttmon_fetch_db(const struct ttmon_opts *opts);

#endif
