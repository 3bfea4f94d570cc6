/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * daemon_int.h: the spine of a run. Only daemon.c, capture.c, replay.c and loop.c open it.
 *
 *   daemon.c   what parts may ask, and the walks over the table of parts     capture.c  a run on live programs, from load to summary
 *   loop.c     the cold thread's loop                                        replay.c   a run on a recording
 *   degraded.c what a run lacks of what was requested
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
	void *state[TTMON_PARTS_MAX]; /* beside parts */

	struct ttmon_hold *hold;
	int closer;	       /* socket of the process that closes links after us (io/bpf/closer.h); -1: we do */
	struct ttmon_bpf *bpf; /* NULL in a replay */
	struct ttmon_pipeline *pipeline;
	struct ttmon_rec_writer *rec;
	struct ttmon_discover *discover;
	/* what may take long runs there: ttmon_jobs, then ttmon_heldfile_job; NULL in a replay */
	struct ttmon_helpers *helpers;
	size_t announced; /* lists of targets that have not been told yet */
	struct ttmon_mmap2 *mmap2;
	struct ttmon_hot *hot;
	struct ttmon_publish publish;
	enum ttmon_rmid_backend rmid;
	struct ttmon_cpustate *cpus; /* for the hot thread; NULL: CPU time is not measured */
	int epoll_fd, signal_fd, timer_fd;

	pid_t child; /* CMD, until it has been waited for */
	int child_status;
	pid_t dumper; /* a forked child that writes the database */
	bool stop;
	bool direct; /* the hot thread is gone, the pipeline is not finished: facts go into it */
	unsigned int interrupts, terms;
	uint64_t mmap2_lost, hold_missed;
	/* New mappings are waited for: 0; else not before mmap2_ns, and so long they were put off. */
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

/* Walks over the parts: ttmon_parts_each(c, tick) calls tick() of those that are there. */
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

/* Ends what runs and frees all that c points to. */
void ttmon_daemon_fini(struct ttmon_daemon *c);
/* Write the database (the timeline) named on the command line, log what went wrong. */
int ttmon_daemon_write_db(const struct ttmon_daemon *c, struct ttmon_pipeline *p, uint64_t end_ns, bool cut);
int ttmon_daemon_write_trace(const struct ttmon_daemon *c, uint64_t end_ns);

/* replay.c */
void ttmon_replay_tick(struct ttmon_daemon *c);

/* loop.c: signals, the tick, epoll. Failures are logged. */
int ttmon_loop_new(struct ttmon_daemon *c) _must_check;
/* One wait and what came of it. */
void ttmon_loop_turn(struct ttmon_daemon *c);
/* The segment in /dev/shm, while there is no hot thread; a service does without (degraded.c). */
int ttmon_daemon_segment(struct ttmon_daemon *c) _must_check;
/* From time to time: what the run lacks, is it there now? (degraded.c) */
void ttmon_daemon_take_up(struct ttmon_daemon *c);
/* What is waiting in the buffers of new mappings and requests, at the end. */
void ttmon_loop_drain(struct ttmon_daemon *c);
/* For ttmon_hold_go(); ctx: struct ttmon_daemon. */
bool ttmon_daemon_is_program(void *ctx, const struct seccomp_notif *notif);

#endif
