/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * capture.h: one run of the daemon on live programs, from load to summary. Its loop is the cold thread: signals, new objects,
 * held commands, requests of the hot thread, the socket, the live line.
 */
#ifndef TTMON_CAPTURE_H
#define TTMON_CAPTURE_H

#include <sys/types.h>

#include "hot.h"
#include "io/discover.h"
#include "io/hold.h"
#include "io/http.h"
#include "opts.h"

struct ttmon_run {
	const struct ttmon_opts *opts;
	enum ttmon_capture mode;
	uint64_t start_ns;
	struct ttmon_hold *hold;
	struct ttmon_bpf *bpf;
	struct ttmon_pipeline *pipeline;
	struct ttmon_rec_writer *rec;
	struct ttmon_discover *discover;
	struct ttmon_mmap2 *mmap2;
	struct ttmon_hot *hot;
	struct ttmon_http *http;
	int epoll_fd, signal_fd, timer_fd;
	bool hold_watched;

	pid_t child; /* CMD, until it has been waited for */
	int child_status;
	pid_t dumper; /* a forked child that writes the database */
	bool stop;
	unsigned int interrupts, terms;
	uint64_t mmap2_lost, hold_missed;
	unsigned int ticks;
};

/* Run to the end. Returns the process's exit status. */
int ttmon_run_capture(const struct ttmon_opts *opts);

/* Write the database named on the command line, log what went wrong. */
int ttmon_write_db(const struct ttmon_opts *opts, struct ttmon_pipeline *p, uint64_t end_ns, bool cut);

/* loop.c: one wait and what came of it. */
void ttmon_loop_turn(struct ttmon_run *c);
/* The process that a thread belongs to; itself if that cannot be told. */
uint32_t ttmon_loop_tgid(uint32_t tid);
/* What is waiting in the buffers of new mappings and requests, at the end. */
void ttmon_loop_drain(struct ttmon_run *c);
/* List a process's mappings and probe its objects. ctx: struct ttmon_run. */
void ttmon_loop_discover(void *ctx, uint32_t tgid);

/* api.c: what the socket serves. */
extern const struct ttmon_http_route ttmon_api_routes[];
extern const size_t ttmon_api_nr_routes;

/* summary.c: the tables at the end of a run. */
void ttmon_summary(FILE *f, struct ttmon_pipeline *p, bool trace_only, uint64_t end_ns);

#endif
