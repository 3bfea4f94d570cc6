/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * job.h: documents that take longer than the hot thread may wait: the hot thread forks, the child
 * writes the document from its copy of the pipeline into a file without a name, and the reply, put off
 * until then, is that file. So a reply shows one moment.
 *
 * TTMON_JOBS_RUN at once, others wait in line; past TTMON_JOBS_MAX in all, and a second one of a user
 * other than root, is a 503. A child that takes longer than TTMON_JOB_S is killed.
 */
#ifndef TTMON_API_JOB_H
#define TTMON_API_JOB_H

#include "daemon/api/api.h"
#include "daemon/api/viewer.h"

#define TTMON_JOBS_RUN 2
#define TTMON_JOBS_MAX 16
#define TTMON_JOB_S    120

/* Which allocation: by its place in the order of allocations, or as the database's id has it. */
struct ttmon_api_alloc_id {
	bool by_seq;
	uint64_t seq;
	uint64_t key, size;
	uint32_t ordinal, proc;
};

struct ttmon_api_job {
	/*
	 * In the child: write the document to fd. 0 or -errno; -ENOENT: there is no such thing, the reply is a
	 * 404 with `missing`.
	 */
	int (*make)(const struct ttmon_api_job *job, int fd, struct ttmon_pipeline *p, uint64_t now_ns);
	const char *what; /* "the database": for messages; a constant */
	const char *content_type, *missing;
	bool on_disk; /* may be large: a file where there is room, else in memory */
	bool gzip;
	struct ttmon_viewer who; /* filled by ttmon_api_add_job() */
	const struct ttmon_daemon *run;
	/* of the routes */
	bool has_id;
	struct ttmon_api_alloc_id id;
	uint64_t n, last_ns;
	unsigned int view;
	uint32_t pid;
	int64_t period;
	char label[TTMON_LABEL_LEN]; /* "": any */
};

/* Copied; the reply is put off, or an error. */
void ttmon_api_add_job(struct ttmon_daemon *c, struct ttmon_http_reply *reply, const struct ttmon_api_job *job);

/*
 * alloc.c: an id from a path or a parameter, false: it is none; and the allocation, NULL: there is
 * none, or not for this viewer.
 */
bool ttmon_api_parse_id(const char *text, struct ttmon_api_alloc_id *ret);
const struct ttmon_alloc *ttmon_api_find(const struct ttmon_api_job *job, const struct ttmon_history *h);
#define TTMON_API_NO_ALLOC \
	"no such allocation: never made, ended a while ago and folded into its call site, or not yours"
#define TTMON_API_ID_FORM "a place (seq), or KEY:SIZE:ORDINAL@PROCESS with, where there is one, %%23SEQ behind it"

#endif
