// SPDX-License-Identifier: GPL-2.0-only
/*
 * db.c: /v1/db: the database of everything that is kept, the same document that --dump-db writes. For
 * root only, since it contains the processes of all users.
 */
#include "daemon/api/job.h"
#include "daemon/api/rows.h"
#include "daemon/io/files/db.h"
#include "version.h"

static int make_db(const struct ttmon_api_job *job, int fd, struct ttmon_pipeline *p, uint64_t now_ns)
{
	const struct ttmon_ev_clock *clock = ttmon_history_clock(ttmon_pipeline_history(p));
	struct ttmon_db_meta meta = {
		.version = TTMON_VERSION,
		.start_ns = clock ? clock->mono_ns : 0,
		.end_ns = now_ns,
		.trace_only = ttmon_daemon_opts(job->run)->trace_only,
		.cut = true,
	};

	return ttmon_db_fd(fd, job->gzip, p, &meta);
}

void ttmon_api_db(void *ctx, struct ttmon_http_reply *reply)
{
	struct ttmon_api_job job = { .make = make_db, .what = "the database", .on_disk = true };

	if (reply->uid) {
		ttmon_http_error(reply, 403, "only for root: the processes of all users are in the database");
		return;
	}
	if (!ttmon_api_arg_bool(reply, "gz", &job.gzip))
		return;
	job.content_type = job.gzip ? "application/gzip" : TTMON_HTTP_JSON;
	ttmon_api_add_job(ctx, reply, &job);
}
