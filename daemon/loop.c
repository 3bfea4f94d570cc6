// SPDX-License-Identifier: GPL-2.0-only
/*
 * loop.c: the cold thread's loop: signals, the tick, new mappings, held commands, the hot thread's requests, the socket. Everything
 * slow or blocking happens here; nothing here is waited for by a traced program, but for a held command's probes.
 */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "capture.h"
#include "util/clock.h"
#include "util/fmt.h"

#define TICK_MS	      100
#define SWEEP_TICKS   100
#define REFRESH_TICKS 50
#define LIVE_TICKS    10

/* ---- what a run is asked for ---- */

int ttmon_run_call(const struct ttmon_run *c, ttmon_hot_fn fn, void *ctx)
{
	return c->hot ? ttmon_hot_call(c->hot, fn, ctx) : fn(ctx, c->pipeline, c->replay_ns);
}

pid_t ttmon_run_dump(const struct ttmon_run *c, ttmon_hot_fn fn, void *ctx)
{
	pid_t pid;

	if (c->hot)
		return ttmon_hot_dump(c->hot, fn, ctx);
	pid = fork();
	if (!pid)
		_exit(fn(ctx, c->pipeline, c->replay_ns) ? 1 : 0);
	return pid < 0 ? -errno : pid;
}

void ttmon_run_snapshot(const struct ttmon_run *c, struct ttmon_snapshot *ret)
{
	if (c->hot) {
		ttmon_hot_snapshot(c->hot, ret);
		return;
	}
	*ret = (struct ttmon_snapshot){ .now_ns = ttmon_mono_ns() };
	ret->watermark_ns = ret->now_ns;
	ttmon_snapshot_fill(ret, c->pipeline);
}

/* In the forked child of SIGUSR1. */
static int dump_child(void *ctx, struct ttmon_pipeline *p, uint64_t end_ns)
{
	struct ttmon_run *c = ctx;

	/* Nobody is to wait for an answer, or find the address in use, because of this process. */
	close_range(3, ~0U, 0);
	return ttmon_write_db(c->opts, p, end_ns, true);
}

static void on_mapping(void *ctx, const struct ttmon_mmap2_rec *rec)
{
	struct ttmon_run *c = ctx;

	ttmon_discover_mapping(c->discover, rec);
}

/* Not those of after the end, when what is left of the history is answered. */
static void on_mappings(struct ttmon_run *c)
{
	if (c->mmap2 && c->hot)
		ttmon_mmap2_drain(c->mmap2, on_mapping, c);
}

void ttmon_loop_discover(void *ctx, uint32_t tgid)
{
	struct ttmon_run *c = ctx;
	struct ttmon_listing *l = NULL;
	int err = ttmon_discover_read(c->discover, tgid, &l);

	/* A record knows since when something is mapped, a list does not: what both have is taken from the record. */
	on_mappings(c);
	ttmon_discover_tell(c->discover, l);
	if (err && err != -ESRCH)
		log_warn("cannot read the mappings of process %u: %s", tgid, strerror(-err));
}

uint32_t ttmon_loop_tgid(uint32_t tid)
{
	char path[64], line[128];
	_cleanup_fclose_ FILE *f = NULL;
	unsigned int tgid = tid;

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %u", &tgid) == 1)
			break;
	return tgid;
}

static void on_hold(struct ttmon_run *c)
{
	struct ttmon_hold_req req;
	uint64_t missed;

	while (!ttmon_hold_next(c->hold, &req)) {
		struct ttmon_listing *l = NULL;
		uint32_t tgid = ttmon_loop_tgid(req.pid);

		c->held_ns = ttmon_mono_ns();
		/* What it has mapped until now is read while it waits: it may be gone soon after. */
		if (req.fd >= 0 && ttmon_discover_held(c->discover, tgid, req.fd))
			(void)!ttmon_discover_read(c->discover, tgid, &l);
		ttmon_hold_release(c->hold, &req);
		if (l)
			on_mappings(c);
		ttmon_discover_tell(c->discover, l);
	}
	missed = ttmon_hold_missed(c->hold);
	if (missed != c->hold_missed)
		log_warn("%llu mappings went on before their probes were in: calls may have been missed",
			 (unsigned long long)missed);
	c->hold_missed = missed;
}

static void on_requests(struct ttmon_run *c)
{
	_cleanup_free_ struct ttmon_request *reqs = NULL;
	size_t n = ttmon_hot_requests(c->hot, &reqs);
	_cleanup_free_ struct ttmon_frame *frames = malloc((n + 1) * sizeof(*frames));
	size_t nr_frames = 0;

	/* Records are read on the way: those of the processes that are new here are wanted too. */
	for (size_t i = 0; i < n; i++)
		if (reqs[i].kind == TTMON_REQ_PROC && ttmon_discover_follow(c->discover, reqs[i].tgid))
			log_warn("cannot follow the mappings of process %u: no memory", reqs[i].tgid);
	for (size_t i = 0; i < n; i++) {
		switch (reqs[i].kind) {
		case TTMON_REQ_PROC:
			ttmon_loop_discover(c, reqs[i].tgid);
			ttmon_hot_listed(c->hot, reqs[i].tgid);
			ttmon_ttrun_request(c->tt, &reqs[i]);
			ttmon_cpurun_request(c->cpu, &reqs[i]);
			break;
		case TTMON_REQ_MAPS:
			ttmon_loop_discover(c, reqs[i].tgid);
			break;
		case TTMON_REQ_EXIT:
			/* Its last mappings first: of a process that is forgotten they would be nobody's. */
			on_mappings(c);
			ttmon_discover_forget(c->discover, reqs[i].tgid);
			ttmon_bpf_take_launches(c->bpf, reqs[i].tgid, ttmon_mono_ns(), ttmon_hot_fact, c->hot);
			ttmon_bpf_take_tt_sums(c->bpf, reqs[i].tgid, ttmon_mono_ns(), ttmon_hot_fact, c->hot);
			ttmon_ttrun_request(c->tt, &reqs[i]);
			ttmon_cpurun_request(c->cpu, &reqs[i]);
			break;
		case TTMON_REQ_NOTE:
			log_warn("%s", reqs[i].note);
			break;
		case TTMON_REQ_TT:
		case TTMON_REQ_TT_PROVIDER:
			ttmon_ttrun_request(c->tt, &reqs[i]);
			break;
		case TTMON_REQ_SYMBOL:
			if (frames)
				frames[nr_frames++] = reqs[i].frame;
			break;
		}
	}
	if (frames)
		ttmon_discover_symbols(c->discover, frames, nr_frames);
	ttmon_api_live_wake(c);
}

static void start_dump(struct ttmon_run *c)
{
	if (!c->opts->dump_db) {
		log_warn("SIGUSR1: nothing to write, there is no --dump-db");
		return;
	}
	if (c->dumper > 0) {
		log_warn("SIGUSR1: still writing %s", c->opts->dump_db);
		return;
	}
	c->dumper = ttmon_run_dump(c, dump_child, c);
	if (c->dumper < 0)
		log_error("cannot write %s: fork: %s", c->opts->dump_db, strerror(-c->dumper));
}

static void reap(struct ttmon_run *c)
{
	int status;

	ttmon_api_db_reap(c);
	if (c->dumper > 0 && waitpid(c->dumper, &status, WNOHANG) == c->dumper) {
		if (status)
			log_error("%s was not written, the trace goes on", c->opts->dump_db);
		else
			log_info("%s written", c->opts->dump_db);
		c->dumper = 0;
	}
	if (c->child > 0 && waitpid(c->child, &status, WNOHANG) == c->child) {
		c->child = 0;
		c->child_status = status;
		c->stop = true;
	}
}

static void on_signal(struct ttmon_run *c)
{
	struct signalfd_siginfo si;

	while (read(c->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		switch (si.ssi_signo) {
		case SIGUSR1:
			start_dump(c);
			break;
		case SIGCHLD:
			reap(c);
			break;
		case SIGHUP:
			/* The end of the terminal it was started from, unless it was not. */
			if (c->opts->service && !isatty(STDERR_FILENO)) {
				ttmon_service_reload(c);
				break;
			}
			__attribute__((fallthrough));
		case SIGTERM:
			/* For CMD, whose end is ours. One that does not obey is left alone at the second. */
			if (c->child > 0 && !c->terms++)
				kill(c->child, (int)si.ssi_signo);
			else
				c->stop = true;
			break;
		case SIGINT:
			/* The terminal sent it to CMD too, whose end is ours; a second one ends the trace without it. */
			if (c->child <= 0 || c->interrupts++)
				c->stop = true;
			break;
		}
	}
}

struct census {
	struct ttmon_bpf *bpf;
	size_t alive;
};

static void check_pid(void *ctx, uint32_t tgid)
{
	struct census *s = ctx;

	/* Exits are told by the kernel; this is for one that ended before its probe was in. */
	if (kill((pid_t)tgid, 0) && errno == ESRCH)
		ttmon_bpf_del_pid(s->bpf, tgid);
	else
		s->alive++;
}

/* A line that is longer than the terminal is wide cannot be written over. */
static size_t columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
}

static void live_line(struct ttmon_run *c)
{
	char line[256] = "", pinned[TTMON_FMT_LEN], peak[TTMON_FMT_LEN], h2d[TTMON_FMT_LEN], d2h[TTMON_FMT_LEN],
	     lost[TTMON_FMT_LEN], live[TTMON_FMT_LEN];
	uint64_t bytes[2] = { 0, 0 }, nr_lost = 0;
	struct ttmon_snapshot s;

	ttmon_hot_snapshot(c->hot, &s);
	for (int m = 0; m < TTMON_MEM_MAX; m++) {
		bytes[0] += s.totals.xfer[TTMON_RDIR_H2D][m].bytes;
		bytes[1] += s.totals.xfer[TTMON_RDIR_D2H][m].bytes;
	}
	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(c->bpf); cpu++)
		nr_lost += ttmon_bpf_stat(c->bpf, cpu)->running_lost;
	if (nr_lost)
		snprintf(line, sizeof(line), "LOST %s  ", ttmon_fmt_count(lost, sizeof(lost), nr_lost));
	snprintf(line + strlen(line), sizeof(line) - strlen(line),
		 "%zu proc  pinned %s  peak %s  h2d %s  d2h %s  %s live", s.procs,
		 ttmon_fmt_bytes(pinned, sizeof(pinned), s.totals.pinned_bytes),
		 ttmon_fmt_bytes(peak, sizeof(peak), s.totals.pinned_peak_bytes),
		 ttmon_fmt_bytes(h2d, sizeof(h2d), bytes[0]), ttmon_fmt_bytes(d2h, sizeof(d2h), bytes[1]),
		 ttmon_fmt_count(live, sizeof(live), s.totals.live));
	line[MIN(columns() - 1, sizeof(line) - 1)] = '\0';
	ttmon_log_live(line);
}

static void on_tick(struct ttmon_run *c)
{
	uint64_t expirations;

	if (read(c->timer_fd, &expirations, sizeof(expirations)) < 0)
		return;
	c->ticks++;
	if (c->metrics)
		ttmon_metrics_tick(c->metrics);
	ttmon_api_db_reap(c);
	ttmon_api_live_tick(c);
	if (c->replay) {
		ttmon_replay_tick(c);
		ttmon_ttrun_tick(c->tt);
		return;
	}
	if (c->mode == TTMON_CAPTURE_PIDS) {
		struct census s = { .bpf = c->bpf };

		ttmon_bpf_each_pid(c->bpf, check_pid, &s);
		c->stop |= !s.alive && !ttmon_bpf_all(c->bpf);
	}
	if (!c->opts->quiet && isatty(STDERR_FILENO) && !(c->ticks % LIVE_TICKS) && c->mode != TTMON_CAPTURE_COMMAND)
		live_line(c);
	if (c->mmap2 && !(c->ticks % REFRESH_TICKS)) {
		struct ttmon_mmap2_stats st;

		if (ttmon_mmap2_refresh(c->mmap2))
			log_debug("cannot follow the CPUs that came online");
		ttmon_mmap2_stats(c->mmap2, &st);
		if (st.lost != c->mmap2_lost) {
			c->mmap2_lost = st.lost;
			log_warn("%llu records of new mappings were lost, scanning all processes",
				 (unsigned long long)st.lost);
			(void)!ttmon_discover_scan(c->discover);
		}
	}
	if (!(c->ticks % REFRESH_TICKS))
		ttmon_bpf_nvpin_refresh(c->bpf);
	ttmon_ttrun_tick(c->tt);
	ttmon_cpurun_tick(c->cpu);
	ttmon_kpins_tick(c->kpins);
	ttmon_families_tick(c->families);
	ttmon_service_tick(c);
	ttmon_discover_check(c->discover);
	if (!(c->ticks % SWEEP_TICKS)) {
		on_mappings(c);
		ttmon_discover_sweep(c->discover);
	}
}

/* ---- the loop ---- */

int ttmon_loop_watch(struct ttmon_run *c, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int ttmon_loop_new(struct ttmon_run *c)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGHUP };
	struct sigaction hup;
	struct itimerspec it = { .it_interval.tv_nsec = TICK_MS * 1000000, .it_value.tv_nsec = TICK_MS * 1000000 };
	sigset_t set;
	int err;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	/* nohup. A signal that is blocked is not ignored. */
	if (!sigaction(SIGHUP, NULL, &hup) && hup.sa_handler == SIG_IGN)
		sigdelset(&set, SIGHUP);
	/* Ignored, as some start us, it would leave no child to wait for. */
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->epoll_fd < 0 || c->signal_fd < 0 || c->timer_fd < 0 || timerfd_settime(c->timer_fd, 0, &it, NULL))
		return log_error_r(-errno, "cannot make the event loop: %s", strerror(errno));
	err = ttmon_loop_watch(c, c->signal_fd);
	if (!err)
		err = ttmon_loop_watch(c, c->timer_fd);
	return err;
}

void ttmon_loop_turn(struct ttmon_run *c)
{
	struct epoll_event ev[16];
	int timeout = c->http ? ttmon_http_timeout_ms(c->http) : -1;
	int n = epoll_wait(c->epoll_fd, ev, ARRAY_SIZE(ev), timeout);

	if (c->http)
		ttmon_http_run(c->http);
	for (int i = 0; i < n; i++) {
		int fd = ev[i].data.fd;

		if (fd == c->signal_fd)
			on_signal(c);
		else if (fd == c->timer_fd)
			on_tick(c);
		else if (c->hot && fd == ttmon_hot_fd(c->hot))
			on_requests(c);
		else if (c->mmap2 && fd == ttmon_mmap2_fd(c->mmap2))
			on_mappings(c);
		else if (c->hold && fd == ttmon_hold_fd(c->hold))
			on_hold(c);
	}
}

void ttmon_loop_drain(struct ttmon_run *c)
{
	on_requests(c);
	on_mappings(c);
}
