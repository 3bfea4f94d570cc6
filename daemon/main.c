// SPDX-License-Identifier: GPL-2.0-only
/* main.c: ttmond. Options, limits, then a capture or a replay. */
#include <sys/resource.h>

#include "capture.h"
#include "io/sdnotify.h"

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
	err = ttmon_opts_parse(argc, argv, &opts);
	if (err) {
		ttmon_opts_fini(&opts);
		return err > 0 ? 0 : 2;
	}
	raise_limits();
	if (opts.ask)
		status = ttmon_fetch_db(&opts);
	if (status == -ENOENT)
		status = opts.replay ? ttmon_run_replay(&opts) : ttmon_run_capture(&opts);
	ttmon_opts_fini(&opts);
	return status;
}
