// SPDX-License-Identifier: GPL-2.0-only
/* service.c: what a service owes systemd: READY, a status line, the watchdog's sign of life, reload. Cold thread. */
#include <linux/capability.h>

#include "daemon/run/service.h"
#include "daemon/io/host/caps.h"
#include "daemon/io/host/sdnotify.h"
#include "lib/os/clock.h"
#include "lib/base/fmt.h"

#define STATUS_TICKS 50 /* of 100 ms */
struct service {
	struct ttmon_daemon *c;
	uint64_t watchdog_ns; /* last sign of life */
};

static void tell_status(const struct ttmon_daemon *c)
{
	char pinned[TTMON_FMT_LEN], lost[TTMON_FMT_LEN];
	struct ttmon_kernel_counts k;
	struct ttmon_snapshot s;
	uint64_t nr_lost = 0;
	size_t nr_lacks;
	const struct ttmon_lack *lacks = ttmon_daemon_lacks(c, &nr_lacks);

	ttmon_daemon_snapshot(c, &s);
	ttmon_daemon_kernel_counts(c, &k);
	for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++)
		nr_lost += k.reason[i];
	ttmon_sd_notify("STATUS=%s%s%s%zu processes, %s pinned, %s events lost", nr_lacks ? "DEGRADED, without " : "",
			nr_lacks ? ttmon_lack_what(lacks[0].lack) : "", nr_lacks ? ": " : "", s.procs,
			ttmon_fmt_bytes(pinned, sizeof(pinned), s.totals.pinned_bytes),
			ttmon_fmt_count(lost, sizeof(lost), nr_lost));
}

static bool lacks_tcp(const struct ttmon_daemon *c)
{
	size_t n;
	const struct ttmon_lack *lacks = ttmon_daemon_lacks(c, &n);

	for (size_t i = 0; i < n; i++)
		if (lacks[i].lack == TTMON_LACK_TCP)
			return true;
	return false;
}

/* The hot thread, too, is a thread that began with all of them. ctx: struct ttmon_daemon. */
static int keep_capabilities(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	/* systemd/ttmond.service.in says what each is for. */
	int caps[24] = { CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE };
	const struct ttmon_daemon *c = ctx;
	size_t n = 5;

	(void)p;
	(void)now_ns;
	/* Files that belong to the users of a chip. */
	if (ttmon_daemon_opts(c)->tt_shm_version > 1) {
		caps[n++] = CAP_CHOWN;
		caps[n++] = CAP_FOWNER;
		caps[n++] = CAP_LEASE;
	}
	/* The folders of resctrl are writable to nobody by their mode. */
	if (ttmon_daemon_opts(c)->tt_shm_version > 1 || ttmon_daemon_rmid(c) == TTMON_RMID_RESCTRL)
		caps[n++] = CAP_DAC_OVERRIDE;
	/* A segment that is made later is the group's too. */
	if (ttmon_daemon_opts(c)->shm_slots && !ttmon_daemon_has_shm(c))
		caps[n++] = CAP_CHOWN;
	/* An address of TCP that is had later may be a privileged one. */
	if (lacks_tcp(c))
		caps[n++] = CAP_NET_BIND_SERVICE;
	if (ttmon_caps_perf_wants_admin(""))
		caps[n++] = CAP_SYS_ADMIN;
	return ttmon_caps_keep(caps, n);
}

static int start(struct ttmon_daemon *c, void **state)
{
	struct service *v;

	if (!ttmon_daemon_opts(c)->service)
		return 0;
	v = calloc(1, sizeof(*v));
	if (!v)
		return log_error_r(-ENOMEM, "out of memory");
	v->c = c;
	*state = v;
	return 0;
}

/* Give away the capabilities that tracing goes on without, of both threads. */
static int go(void *state)
{
	struct ttmon_daemon *c = ((struct service *)state)->c;
	/* What a run with a file to write does at its end may need more than tracing does. */
	bool wanted = !ttmon_daemon_opts(c)->record;
	int err = wanted ? ttmon_daemon_call(c, keep_capabilities, c) : 0;

	if (!err && wanted)
		err = keep_capabilities(c, NULL, 0);
	return err ? log_error_r(err, "cannot give capabilities away: %s", strerror(-err)) : 0;
}

static void ready(void *state)
{
	ttmon_sd_notify("READY=1");
	tell_status(((struct service *)state)->c);
}

static void tick(void *state)
{
	uint64_t now = ttmon_mono_ns(), every = ttmon_sd_watchdog_ns();
	struct service *v = state;

	if (every && now - v->watchdog_ns >= every && ttmon_daemon_is_alive(v->c)) {
		ttmon_sd_notify("WATCHDOG=1");
		v->watchdog_ns = now;
	}
	if (!(ttmon_daemon_ticks(v->c) % STATUS_TICKS))
		tell_status(v->c);
}

/* The last of the parts that reload: all others have. */
static void reload(void *state)
{
	ttmon_sd_notify("READY=1");
	tell_status(((struct service *)state)->c);
}

static void leave(void *state)
{
	(void)state;
	ttmon_sd_notify("STOPPING=1\nSTATUS=writing what is left");
}

const struct ttmon_part ttmon_part_service = {
	.name = "service",
	.in = TTMON_IN_LIVE,
	.start = start,
	.go = go,
	.ready = ready,
	.tick = tick,
	.reload = reload,
	.leave = leave,
	.free = free,
};
