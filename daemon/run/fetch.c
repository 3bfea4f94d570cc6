// SPDX-License-Identifier: GPL-2.0-only
/*
 * fetch.c: --dump-db without a target beside a running service: writes the service's history instead
 * of a new trace.
 */
#include "daemon/run/daemon.h"
#include "lib/os/outfile.h"
#include "lib/read/client.h"

/* The service forks and writes the whole document before it answers. */
#define ANSWER_S 600

static int download(int fd, bool gzip, void *ctx)
{
	return ttmon_client_download(ctx, gzip ? "/v1/db?gz=1" : "/v1/db", fd, 0, ANSWER_S);
}

int ttmon_fetch_db(const struct ttmon_opts *opts)
{
	struct ttmon_client_reply reply = { 0 };
	int err = ttmon_client_get(opts->ask, "/healthz", &reply);

	ttmon_client_reply_fini(&reply);
	if (err == -ENOENT || err == -ECONNREFUSED)
		return -ENOENT;
	if (err) {
		log_error("cannot ask the service at %s: %s", opts->ask, strerror(-err));
		return 1;
	}
	log_info("a service runs: asking it for what it has kept (%s)", opts->ask);
	err = ttmon_outfile_write(opts->dump_db, download, (void *)opts->ask);
	if (err)
		log_error("cannot write %s: %s", ttmon_outfile_name(opts->dump_db),
			  err == -EREMOTEIO ? "the service refused" : strerror(-err));
	return err ? 1 : 0;
}
