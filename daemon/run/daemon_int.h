/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * daemon_int.h: the internals of a run. Only daemon.c, capture.c, replay.c, loop.c and degraded.c
 * include it.
 *
 *   daemon.c   functions for parts, walks over the table of parts   capture.c  a run on live programs
 *   loop.c     the cold thread's loop                              replay.c   a run on a recording
 *   degraded.c requested parts that are missing
 */
#ifndef TTMON_DAEMON_INT_H
#define TTMON_DAEMON_INT_H

#include <sys/types.h>

#include "daemon/io/hold/hold.h"
#include "daemon/io/probes/discover.h"
#include "daemon/run/daemon.h"
#include "daemon/run/publish.h"
#include "lib/os/helpers.h"

struct ttmon_daemon {
	const struct ttmon_opts *opts;
	enum ttmon_capture mode;
	uint64_t start_ns;
	const struct ttmon_part *const *parts;
	size_t nr_parts;
	void *state[TTMON_PARTS_MAX]; /* parallel to parts */

	struct ttmon_hold *hold;
	/* socket of the process that closes links after us (io/bpf/closer.h); -1: this process closes them */
	int closer;
	struct ttmon_bpf *bpf; /* NULL in a replay */
	struct ttmon_pipeline *pipeline;
	struct ttmon_rec_writer *rec;
	struct ttmon_discover *discover;
	/* Processes that do slow work: ttmon_jobs, then ttmon_heldfile_job; NULL in a replay. */
	struct ttmon_helpers *helpers;
	size_t announced; /* lists of targets that were not reported yet */
	struct ttmon_mmap2 *mmap2;
	struct ttmon_hot *hot;
	struct ttmon_publish publish;
	enum ttmon_rmid_backend rmid;
	struct ttmon_cpustate *cpus; /* for the hot thread; NULL: CPU time is not measured */
	int epoll_fd, signal_fd, timer_fd;

	pid_t child; /* CMD, until it has been waited for */
	int child_status;
	pid_t dumper; /* forked child that writes the database */
	bool stop;
	bool direct; /* the hot thread is gone, the pipeline is not finished: facts go into it directly */
	unsigned int interrupts, terms;
	uint64_t mmap2_lost, hold_missed;
	/*
	 * Pause before new mappings are read: 0: none; else they are read at mmap2_ns at the earliest,
	 * mmap2_pause_ms after the last time.
	 */
	unsigned int mmap2_pause_ms;
	uint64_t mmap2_ns;
	uint64_t mappings;	      /* taken since the start */
	struct ttmon_replay *replay;  /* NULL: live */
	uint64_t replay_ns;	      /* how far a replay has come */
	uint64_t held_ns;	      /* when a held command last asked */
	uint32_t held_tid, held_tgid; /* the thread of the last request, its process, */
	uint64_t held_tgid_ns;	      /* as of then */
	unsigned int ticks;
	struct ttmon_lack lacks[TTMON_LACK_MAX];
	size_t nr_lacks;
};

/* Calls fn of every part that is running: ttmon_parts_each(c, tick) calls each tick(). */
#define ttmon_parts_each(c, fn)                                     \
	do {                                                        \
		for (size_t i_ = 0; i_ < (c)->nr_parts; i_++)       \
			if ((c)->state[i_] && (c)->parts[i_]->fn)   \
				(c)->parts[i_]->fn((c)->state[i_]); \
	} while (0)
int ttmon_parts_configure(struct ttmon_daemon *c, struct ttmon_bpf_cfg *cfg) _must_check;
int ttmon_parts_load(struct ttmon_daemon *c) _must_check;
int ttmon_parts_start(struct ttmon_daemon *c) _must_check;
int ttmon_parts_go(struct ttmon_daemon *c) _must_check;
void ttmon_parts_request(struct ttmon_daemon *c, const struct ttmon_request *req);
int ttmon_parts_stop(struct ttmon_daemon *c);
void ttmon_parts_free(struct ttmon_daemon *c);

/* Stops everything that runs and frees everything that c points to. */
void ttmon_daemon_fini(struct ttmon_daemon *c);
/* Writes the database or the timeline named on the command line, and logs errors. */
int ttmon_daemon_write_db(const struct ttmon_daemon *c, struct ttmon_pipeline *p, uint64_t end_ns, bool cut);
int ttmon_daemon_write_trace(const struct ttmon_daemon *c, uint64_t end_ns);

/* replay.c */
void ttmon_replay_tick(struct ttmon_daemon *c);

/* loop.c: signals, the tick, epoll. Failures are logged. */
int ttmon_loop_new(struct ttmon_daemon *c) _must_check;
/* One wait and the handling of its events. */
void ttmon_loop_turn(struct ttmon_daemon *c);
/*
 * Creates the segment in /dev/shm while there is no hot thread; a service runs without it if that
 * fails (degraded.c).
 */
int ttmon_daemon_segment(struct ttmon_daemon *c) _must_check;
/* Called from time to time: tries to get the missing parts (degraded.c). */
void ttmon_daemon_take_up(struct ttmon_daemon *c);
/* Handles what is left in the buffers of new mappings and requests, at the end. */
void ttmon_loop_drain(struct ttmon_daemon *c);
/* For ttmon_hold_go(); ctx: struct ttmon_daemon. */
bool ttmon_daemon_is_program(void *ctx, const struct seccomp_notif *notif);

#endif
