// SPDX-License-Identifier: GPL-2.0-only
/*
 * service.c: the protocol with systemd: READY, a status line, watchdog messages, reload. Cold thread.
 */
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/run/serve.h"
#include "daemon/run/service.h"
#include "daemon/io/host/caps.h"
#include "daemon/io/host/sdnotify.h"
#include "daemon/io/probes/discover.h"
#include "lib/os/clock.h"
#include "lib/base/fmt.h"

#define STATUS_TICKS 50 /* of 100 ms */
struct service {
	struct ttmon_daemon *c;
	uint64_t watchdog_ns; /* time of the last watchdog message */
	uint64_t asked_ns;
	int ask; /* a client connection to our own socket, -1: none */
};

#define ANSWER_NS (5 * NSEC_PER_SEC)
#define EARLY_NS  (200 * NSEC_PER_MS)

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

/* The hot thread also began with all capabilities. ctx: struct ttmon_daemon. */
static int keep_capabilities(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	/* systemd/ttmond.service.in explains each capability. */
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
	/* The mode of resctrl's folders gives write permission to no user. */
	if (ttmon_daemon_opts(c)->tt_shm_version > 1 || ttmon_daemon_rmid(c) == TTMON_RMID_RESCTRL)
		caps[n++] = CAP_DAC_OVERRIDE;
	/* A segment that is created later must get its group too. */
	if (ttmon_daemon_opts(c)->shm_slots && !ttmon_daemon_has_shm(c))
		caps[n++] = CAP_CHOWN;
	/* A TCP address that is bound later may have a privileged port. */
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
	v->ask = -1;
	*state = v;
	return 0;
}

struct keeping {
	struct ttmon_daemon *c;
	int err;
};

static void keep_in_thread(void *ctx)
{
	struct keeping *k = ctx;

	k->err = k->err ? k->err : keep_capabilities(k->c, NULL, 0);
}

/* Drops the capabilities that tracing does not need, in all threads. */
static int go(void *state)
{
	struct ttmon_daemon *c = ((struct service *)state)->c;
	struct keeping k = { .c = c };
	/* A run that writes a file at its end may need more than tracing does. */
	bool wanted = !ttmon_daemon_opts(c)->record;
	int err = wanted ? ttmon_daemon_call(c, keep_capabilities, c) : 0;

	if (!err && wanted)
		err = keep_capabilities(c, NULL, 0);
	if (!err && wanted && ttmon_daemon_discover(c))
		err = ttmon_discover_in_threads(ttmon_daemon_discover(c), keep_in_thread, &k);
	err = err ? err : k.err;
	return err ? log_error_r(err, "cannot give capabilities away: %s", strerror(-err)) : 0;
}

static void ready(void *state)
{
	ttmon_sd_notify("READY=1");
	tell_status(((struct service *)state)->c);
}

/* ---- the watchdog: it checks the hot thread and the socket as a client sees them ---- */

static void ask_no_more(struct service *v)
{
	if (v->ask >= 0)
		close(v->ask);
	v->ask = -1;
}

/*
 * Connects to our own socket as any client, and reads whether the hot thread lives. If that fails, the
 * next tick tries again.
 */
static void ask(struct service *v, const char *path)
{
	static const char request[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	size_t len = strlen(path);

	if (len >= sizeof(sa.sun_path))
		return;
	memcpy(sa.sun_path, path, len);
	v->asked_ns = ttmon_mono_ns();
	v->ask = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (v->ask >= 0 &&
	    (connect(v->ask, (const struct sockaddr *)&sa, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) ||
	     send(v->ask, request, sizeof(request) - 1, MSG_NOSIGNAL) != sizeof(request) - 1))
		ask_no_more(v);
}

static bool is_answered(struct service *v)
{
	static const char yes[] = "HTTP/1.1 200";
	char buf[sizeof(yes)];
	ssize_t n = v->ask < 0 ? 0 : recv(v->ask, buf, sizeof(yes) - 1, 0);
	bool waits = n < 0 && (errno == EAGAIN || errno == EINTR);

	if (!waits || ttmon_mono_ns() - v->asked_ns > ANSWER_NS)
		ask_no_more(v);
	return n == sizeof(yes) - 1 && !memcmp(buf, yes, sizeof(yes) - 1);
}

static void feed_watchdog(struct service *v)
{
	uint64_t since = ttmon_mono_ns() - v->watchdog_ns, every = ttmon_sd_watchdog_ns();
	struct ttmon_http *http = ttmon_serve_http(v->c);
	const char *path = http ? ttmon_http_socket(http) : NULL;

	/* Without a path there is no socket to check. */
	path = path && path[0] == '/' ? path : NULL;
	if (!every || since + EARLY_NS < every)
		return;
	if (path && v->ask < 0)
		ask(v, path);
	else if (path ? is_answered(v) : since >= every && ttmon_daemon_is_alive(v->c)) {
		ttmon_sd_notify("WATCHDOG=1");
		v->watchdog_ns = ttmon_mono_ns();
	}
}

static void tick(void *state)
{
	struct service *v = state;

	feed_watchdog(v);
	if (!(ttmon_daemon_ticks(v->c) % STATUS_TICKS))
		tell_status(v->c);
}

/* The last of the parts that reload: all others have done so. */
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
