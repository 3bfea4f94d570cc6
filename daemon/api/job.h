/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * job.h: documents that take too long for the hot thread: the hot thread forks, the child writes the
 * document from its copy of the pipeline into an unnamed file, and the delayed reply sends that file.
 * So a reply shows the state of one moment.
 *
 * TTMON_JOBS_RUN run at once, others wait in a queue. Beyond TTMON_JOBS_MAX in total, or for a second
 * job of a user other than root, the reply is 503. A child that takes longer than TTMON_JOB_S is
 * killed.
 */
#ifndef TTMON_API_JOB_H
#define TTMON_API_JOB_H

#include "daemon/api/api.h"
#include "daemon/api/viewer.h"

#define TTMON_JOBS_RUN 2
#define TTMON_JOBS_MAX 16
#define TTMON_JOB_S    120

/* Identifies an allocation: by its number in the order of allocations, or by the database's id. */
struct ttmon_api_alloc_id {
	bool by_seq;
	uint64_t seq;
	uint64_t key, size;
	uint32_t ordinal, proc;
};

struct ttmon_api_job {
	/*
	 * Runs in the child: writes the document to fd. 0 or -errno; -ENOENT: there is no such thing, the
	 * reply is a 404 with `missing`.
	 */
	int (*make)(const struct ttmon_api_job *job, int fd, struct ttmon_pipeline *p, uint64_t now_ns);
	const char *what; /* "the database": for messages; a constant */
	const char *content_type, *missing;
	bool on_disk; /* the document may be large: written to a file if there is room on disk, else to memory */
	bool gzip;
	struct ttmon_viewer who; /* filled by ttmon_api_add_job() */
	const struct ttmon_daemon *run;
	/* Parameters of the routes. */
	bool has_id;
	struct ttmon_api_alloc_id id;
	uint64_t n, last_ns;
	unsigned int view;
	uint32_t pid;
	int64_t period;
	char label[TTMON_LABEL_LEN]; /* "": any */
};

/* job is copied. The reply is delayed, or is an error. */
void ttmon_api_add_job(struct ttmon_daemon *c, struct ttmon_http_reply *reply, const struct ttmon_api_job *job);

/*
 * alloc.c: parses an id from a path or a parameter, false: it is no id; and finds the allocation,
 * NULL: there is none, or this viewer may not see it.
 */
bool ttmon_api_parse_id(const char *text, struct ttmon_api_alloc_id *ret);
const struct ttmon_alloc *ttmon_api_find(const struct ttmon_api_job *job, const struct ttmon_history *h);
#define TTMON_API_NO_ALLOC \
	"no such allocation: never made, ended a while ago and folded into its call site, or not yours"
#define TTMON_API_ID_FORM "a place (seq), or KEY:SIZE:ORDINAL@PROCESS with, where there is one, %%23SEQ behind it"

#endif
