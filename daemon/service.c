// SPDX-License-Identifier: GPL-2.0-only
/* service.c: what a service owes systemd: READY, a status line, the watchdog's sign of life, reload. Cold thread. */
#include <linux/capability.h>

#include "capture.h"
#include "io/caps.h"
#include "io/sdnotify.h"
#include "util/clock.h"
#include "util/fmt.h"

#define STATUS_TICKS 50 /* of 100 ms */
#define HANG_NS	     (2 * NSEC_PER_SEC)

bool ttmon_run_is_alive(const struct ttmon_run *c)
{
	struct ttmon_snapshot s;

	/* The hot thread tells its figures every 100 ms; silence means that it hangs. */
	ttmon_run_snapshot(c, &s);
	return ttmon_mono_ns() - s.now_ns <= HANG_NS;
}

static void tell_status(const struct ttmon_run *c)
{
	char pinned[TTMON_FMT_LEN], lost[TTMON_FMT_LEN];
	struct ttmon_kernel_counts k;
	struct ttmon_snapshot s;
	uint64_t nr_lost = 0;

	ttmon_run_snapshot(c, &s);
	ttmon_run_kernel_counts(c, &k);
	for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++)
		nr_lost += k.reason[i];
	ttmon_sd_notify("STATUS=%zu processes, %s pinned, %s events lost", s.procs,
			ttmon_fmt_bytes(pinned, sizeof(pinned), s.totals.pinned_bytes),
			ttmon_fmt_count(lost, sizeof(lost), nr_lost));
}

/* The hot thread, too, is a thread that began with all of them. ctx: struct ttmon_run. */
static int keep_capabilities(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	/* systemd/ttmond.service.in says what each is for. */
	int caps[16] = { CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE };
	const struct ttmon_run *c = ctx;
	size_t n = 5;

	(void)p;
	(void)now_ns;
	/* Files that belong to the users of a chip. */
	if (c->opts->tt_shm_version > 1) {
		caps[n++] = CAP_CHOWN;
		caps[n++] = CAP_FOWNER;
		caps[n++] = CAP_LEASE;
	}
	/* The folders of resctrl are writable to nobody by their mode. */
	if (c->opts->tt_shm_version > 1 || c->rmid == TTMON_RMID_RESCTRL)
		caps[n++] = CAP_DAC_OVERRIDE;
	if (ttmon_caps_perf_wants_admin(""))
		caps[n++] = CAP_SYS_ADMIN;
	return ttmon_caps_keep(caps, n);
}

int ttmon_service_confine(struct ttmon_run *c)
{
	/* What a run with a file to write does at its end may need more than tracing does. */
	bool wanted = c->opts->service && !c->opts->record;
	int err = wanted ? ttmon_run_call(c, keep_capabilities, c) : 0;

	if (!err && wanted)
		err = keep_capabilities(c, NULL, 0);
	return err ? log_error_r(err, "cannot give capabilities away: %s", strerror(-err)) : 0;
}

void ttmon_service_ready(const struct ttmon_run *c)
{
	if (!c->opts->service)
		return;
	ttmon_sd_notify("READY=1");
	tell_status(c);
}

void ttmon_service_tick(struct ttmon_run *c)
{
	uint64_t now = ttmon_mono_ns(), every = ttmon_sd_watchdog_ns();

	if (!c->opts->service)
		return;
	if (every && now - c->watchdog_ns >= every && ttmon_run_is_alive(c)) {
		ttmon_sd_notify("WATCHDOG=1");
		c->watchdog_ns = now;
	}
	if (!(c->ticks % STATUS_TICKS))
		tell_status(c);
}

void ttmon_service_reload(struct ttmon_run *c)
{
	int err;

	ttmon_sd_notify("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(ttmon_mono_ns() / NSEC_PER_US));
	log_info("SIGHUP: looking at all processes and chips again");
	err = ttmon_discover_scan(c->discover);
	if (err)
		log_warn("cannot scan /proc: %s", strerror(-err));
	ttmon_families_reload(c->families);
	ttmon_sd_notify("READY=1");
	tell_status(c);
}

void ttmon_service_stop(const struct ttmon_run *c)
{
	if (c->opts->service)
		ttmon_sd_notify("STOPPING=1\nSTATUS=writing what is left");
}
