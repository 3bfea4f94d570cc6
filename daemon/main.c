// SPDX-License-Identifier: GPL-2.0-only
/* main.c: ttmond. Options, limits, the table of parts; then a capture or a replay. */
#include <sys/resource.h>

#include "daemon/api/api.h"
#include "daemon/io/host/sdnotify.h"
#include "daemon/metrics/metrics.h"
#include "daemon/run/cpurun.h"
#include "daemon/run/families.h"
#include "daemon/run/kpins.h"
#include "daemon/run/memtrace.h"
#include "daemon/run/quotas.h"
#include "daemon/run/serve.h"
#include "daemon/run/service.h"
#include "daemon/run/ttrun.h"
#include "daemon/run/unwind.h"

/*
 * All that a run consists of beside its spine, in the order in which it starts (run/daemon.h). Routes
 * are listed in this order too.
 */
/* clang-format off */
static const struct ttmon_part *const parts[] = {
	&ttmon_part_metrics,
	&ttmon_part_api,
	&ttmon_part_live,
	&ttmon_part_programs,
	&ttmon_part_jobs,
	&ttmon_part_kpins,
	&ttmon_part_cpu,
	&ttmon_part_tt,
	&ttmon_part_families,
	&ttmon_part_quotas,
	&ttmon_part_serve,
	&ttmon_part_service,
	&ttmon_part_memtrace,
	&ttmon_part_unwind,
};
/* clang-format on */
_Static_assert(ARRAY_SIZE(parts) <= TTMON_PARTS_MAX, "a run has room for their states");

/* Each probed object and each library of a traced process is held open by an fd. */
static void raise_limits(void)
{
	struct rlimit rl;

	if (!getrlimit(RLIMIT_NOFILE, &rl) && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	/* Rings and maps counted against this before Linux 5.11. */
	rl = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_MEMLOCK, &rl);
}

int main(int argc, char **argv)
{
	struct ttmon_opts opts;
	int err, status = -ENOENT;

	ttmon_sd_init();
	err = ttmon_opts_parse(argc, argv, ttmon_metrics_man, &opts);
	if (err) {
		ttmon_opts_fini(&opts);
		return err > 0 ? 0 : 2;
	}
	raise_limits();
	if (opts.ask)
		status = ttmon_fetch_db(&opts);
	if (status == -ENOENT)
		status = opts.replay ? ttmon_daemon_replay(&opts, parts, ARRAY_SIZE(parts))
				     : ttmon_daemon_capture(&opts, parts, ARRAY_SIZE(parts));
	ttmon_opts_fini(&opts);
	return status;
}
