// SPDX-License-Identifier: GPL-2.0-only
/*
 * loop.c: the cold thread's loop: signals, the tick, new mappings, held commands, the hot thread's
 * requests, the socket. Everything slow or blocking happens here; no traced program waits for it,
 * except a held command for its probes.
 */
#include <malloc.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "daemon/io/host/sdnotify.h"
#include "daemon/io/probes/jobs.h"
#include "daemon/run/daemon_int.h"
#include "daemon/run/families.h"
#include "lib/os/proc.h"
#include "lib/os/clock.h"
#include "lib/base/fmt.h"

#define TICK_MS	      100
#define SWEEP_TICKS   100
#define REFRESH_TICKS 50
#define AHEAD_TICKS   300
#define TRIM_TICKS    300
#define TAKE_UP_TICKS 20
/*
 * A program that starts maps half a dozen files within a few milliseconds: those after the first are
 * read together after this time. If there were more, the next pause is four times as long, up to
 * MAPPINGS_MAX_MS: a build starts hundreds of programs a second, and the cost is in waking.
 */
#define MAPPINGS_MS	2
#define MAPPINGS_MAX_MS 8
#define LIVE_TICKS	10
#define FIRST_MS	10000 /* for the program itself to be opened */
#define LAST_MS		2000  /* for what is under way at the end */
#define PATIENCE_MS	1000  /* with one call of a helper */
#define HELD_TGID_NS	(10 * NSEC_PER_MS)

/* Runs in the forked child of SIGUSR1. */
static int dump_child(void *ctx, struct ttmon_pipeline *p, uint64_t end_ns)
{
	struct ttmon_daemon *c = ctx;

	/* No client must wait for an answer, or find the address in use, because of this process. */
	close_range(3, ~0U, 0);
	return ttmon_daemon_write_db(c, p, end_ns, true);
}

static void on_mapping(void *ctx, const struct ttmon_mmap2_rec *rec)
{
	struct ttmon_daemon *c = ctx;

	c->mappings++;
	ttmon_discover_mapping(c->discover, rec);
}

static void on_first(void *ctx, const struct ttmon_mmap2_rec *rec)
{
	struct ttmon_daemon *c = ctx;

	ttmon_discover_first(c->discover, rec);
}

/*
 * Mappings after the end are not read: by then the last requests of the history are being answered.
 * Libraries to be probed come first: reading another file that is mapped for the first time takes up
 * to 10 ms.
 */
static void on_mappings(struct ttmon_daemon *c)
{
	if (!c->mmap2 || !c->hot)
		return;
	ttmon_mmap2_peek(c->mmap2, on_first, c);
	ttmon_mmap2_drain(c->mmap2, on_mapping, c);
}

/*
 * A record has the time of the mapping, a list does not: what both contain is taken from the record.
 */
static void list_read(void *ctx, uint32_t tgid _unused_)
{
	on_mappings(ctx);
}

void ttmon_daemon_list_then(struct ttmon_daemon *c, uint32_t tgid, void (*told)(void *ctx, uint32_t tgid))
{
	ttmon_discover_list(c->discover, tgid, true,
			    &(struct ttmon_list_hooks){ .read = list_read, .told = told, .ctx = c });
}

void ttmon_daemon_list(void *ctx, uint32_t tgid)
{
	ttmon_daemon_list_then(ctx, tgid, NULL);
}

static bool is_idle(void *ctx)
{
	return !ttmon_helpers_busy(ctx, PATIENCE_MS);
}

bool ttmon_daemon_settle(struct ttmon_daemon *c, unsigned int ms)
{
	uint64_t end_ns = ttmon_mono_ns() + ms * NSEC_PER_MS, now;

	do {
		now = ttmon_mono_ns();
		if (!ttmon_helpers_wait(c->helpers, is_idle, c->helpers,
					ttmon_before(now, end_ns) ? (unsigned int)((end_ns - now) / NSEC_PER_MS) + 1
								  : 0))
			return false;
	} while (ttmon_discover_drain(c->discover) || !is_idle(c->helpers));
	return true;
}

/* ---- held calls ---- */

/*
 * A thread that is stopped until the file that it maps or executes is probed: the file is opened and
 * read, then the process's mappings are read.
 */
struct held {
	struct ttmon_daemon *c;
	struct ttmon_hold_req req;
	uint32_t tgid;
	struct ttmon_held_object object;
	uint64_t begun_ns;
	bool released;
};

static void release(struct held *q)
{
	bool waited;

	if (q->released)
		return;
	q->released = true;
	waited = q->c->hold && ttmon_hold_release(q->c->hold, &q->req);
	if (q->object.id)
		ttmon_discover_held_end(q->c->discover, q->tgid, &q->object, q->begun_ns, waited);
}

/* Its mappings so far were read while it waited: it may end soon after. */
static void held_read(void *ctx, uint32_t tgid _unused_)
{
	struct held *q = ctx;

	release(q);
	on_mappings(q->c);
}

static void held_told(void *ctx, uint32_t tgid _unused_)
{
	free(ctx);
}

static void held_probed(void *ctx, const struct ttmon_held_object *object)
{
	struct held *q = ctx;

	q->object = *object;
	if (object->id) {
		ttmon_discover_list(q->c->discover, q->tgid, true,
				    &(struct ttmon_list_hooks){ .read = held_read, .told = held_told, .ctx = q });
		return;
	}
	release(q);
	free(q);
}

static void held_opened(void *ctx, struct ttmon_helper_reply *reply)
{
	struct held *q = ctx;

	/* A file that cannot be opened stays unprobed, and the call continues. */
	if (!reply->err && reply->fd >= 0 && q->c->hold && ttmon_hold_waits(q->c->hold, &q->req))
		ttmon_discover_held(q->c->discover, q->tgid, reply, q->req.exec, held_probed, q);
	else
		held_probed(q, &(struct ttmon_held_object){ 0 });
}

/* A thread that loads libraries makes many requests: its status is not read for each. */
static uint32_t held_tgid(struct ttmon_daemon *c, uint32_t tid)
{
	if (c->held_tid != tid || ttmon_mono_ns() - c->held_tgid_ns > HELD_TGID_NS) {
		c->held_tid = tid;
		c->held_tgid_ns = ttmon_mono_ns();
		c->held_tgid = ttmon_proc_tgid(tid);
	}
	return c->held_tgid;
}

static void on_hold(struct ttmon_daemon *c)
{
	struct ttmon_hold_req req;
	uint64_t missed;

	while (!ttmon_hold_next(c->hold, &req)) {
		struct held *q = malloc(sizeof(*q));

		c->held_ns = ttmon_mono_ns();
		if (!q) {
			ttmon_hold_release(c->hold, &req);
			continue;
		}
		*q = (struct held){ .c = c, .req = req, .tgid = held_tgid(c, req.pid), .begun_ns = c->held_ns };
		if (ttmon_daemon_help(c, TTMON_HELP_HELD, q->tgid, &req.notif, sizeof(req.notif), held_opened, q))
			held_probed(q, &(struct ttmon_held_object){ 0 });
	}
	missed = ttmon_hold_missed(c->hold);
	if (missed != c->hold_missed)
		log_warn("%llu mappings went on before their probes were in: calls may have been missed",
			 (unsigned long long)missed);
	c->hold_missed = missed;
}

struct first {
	bool over, program;
};

static void first_opened(void *ctx, struct ttmon_helper_reply *reply)
{
	struct first *f = ctx;

	f->over = true;
	f->program = !reply->err && reply->n && reply->buf[0];
}

static bool is_over(void *ctx)
{
	return ((struct first *)ctx)->over;
}

bool ttmon_daemon_is_program(void *ctx, const struct seccomp_notif *notif)
{
	struct ttmon_daemon *c = ctx;
	struct first *f = calloc(1, sizeof(*f));
	bool program = false;

	if (!f || ttmon_daemon_help(c, TTMON_HELP_PROGRAM, notif->pid, notif, sizeof(*notif), first_opened, f)) {
		free(f);
		return false;
	}
	/* A call that is not answered by then may still write into f. */
	if (!ttmon_helpers_wait(c->helpers, is_over, f, FIRST_MS))
		return false;
	program = f->program;
	free(f);
	return program;
}

/* ---- requests of the hot thread ---- */

static void listed(void *ctx, uint32_t tgid)
{
	struct ttmon_daemon *c = ctx;
	struct ttmon_request req = { .kind = TTMON_REQ_PROC,
				     .tgid = tgid,
				     .start_ns = ttmon_discover_start(c->discover, tgid) };

	if (c->hot)
		ttmon_hot_listed(c->hot, tgid);
	ttmon_parts_request(c, &req);
}

static void gone(void *ctx, uint32_t tgid)
{
	struct ttmon_daemon *c = ctx;

	ttmon_bpf_take_sums(c->bpf, tgid, ttmon_mono_ns(), ttmon_daemon_fact, c);
	ttmon_parts_request(c, &(struct ttmon_request){ .kind = TTMON_REQ_EXIT, .tgid = tgid });
}

static void on_requests(struct ttmon_daemon *c)
{
	_cleanup_free_ struct ttmon_request *reqs = NULL;
	size_t n = ttmon_hot_requests(c->hot, &reqs);
	_cleanup_free_ struct ttmon_frame *frames = malloc((n + 1) * sizeof(*frames));
	size_t nr_frames = 0;

	/* Records are read on the way: those of processes that are new here are needed too. */
	for (size_t i = 0; i < n; i++)
		if (reqs[i].kind == TTMON_REQ_PROC &&
		    ttmon_discover_follow(c->discover, reqs[i].tgid, reqs[i].start_ns))
			log_warn("cannot follow the mappings of process %u: no memory", reqs[i].tgid);
	for (size_t i = 0; i < n; i++) {
		switch (reqs[i].kind) {
		case TTMON_REQ_PROC:
			ttmon_families_met(c, reqs[i].tgid, reqs[i].start_ns);
			ttmon_daemon_list_then(c, reqs[i].tgid, listed);
			break;
		case TTMON_REQ_MAPS:
			ttmon_daemon_list(c, reqs[i].tgid);
			break;
		case TTMON_REQ_EXIT:
			/* Its last mappings first: after the process is dropped they would belong to none. */
			on_mappings(c);
			ttmon_discover_leave(c->discover, reqs[i].tgid, gone, c);
			break;
		case TTMON_REQ_NOTE:
			log_warn("%s", reqs[i].note);
			break;
		case TTMON_REQ_PART:
			ttmon_parts_request(c, &reqs[i]);
			break;
		case TTMON_REQ_SYMBOL:
			if (frames)
				frames[nr_frames++] = reqs[i].frame;
			break;
		}
	}
	if (frames)
		ttmon_discover_symbols(c->discover, frames, nr_frames);
	ttmon_parts_each(c, wake);
}

static void start_dump(struct ttmon_daemon *c)
{
	if (!c->opts->dump_db) {
		log_warn("SIGUSR1: nothing to write, there is no --dump-db");
		return;
	}
	if (c->dumper > 0) {
		log_warn("SIGUSR1: still writing %s", c->opts->dump_db);
		return;
	}
	c->dumper = ttmon_daemon_dump(c, dump_child, c);
	if (c->dumper < 0)
		log_error("cannot write %s: fork: %s", c->opts->dump_db, strerror(-c->dumper));
}

static void reap(struct ttmon_daemon *c)
{
	int status;

	ttmon_parts_each(c, child_ended);
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

static void reload(struct ttmon_daemon *c)
{
	int err;

	ttmon_sd_notify("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(ttmon_mono_ns() / NSEC_PER_US));
	log_info("SIGHUP: looking at all processes and chips again");
	err = ttmon_discover_scan(c->discover);
	if (err)
		log_warn("cannot scan /proc: %s", strerror(-err));
	ttmon_discover_ahead(c->discover);
	ttmon_parts_each(c, reload);
}

static void on_signal(struct ttmon_daemon *c)
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
			/* SIGHUP of a service reloads, unless its terminal was closed. */
			if (c->opts->service && !isatty(STDERR_FILENO)) {
				reload(c);
				break;
			}
			__attribute__((fallthrough));
		case SIGTERM:
			/*
			 * Passed on to CMD, whose end is ours. If CMD ignores it, the second signal ends the trace
			 * without CMD.
			 */
			if (c->child > 0 && !c->terms++)
				kill(c->child, (int)si.ssi_signo);
			else
				c->stop = true;
			break;
		case SIGINT:
			/*
			 * The terminal sent it to CMD too, whose end is ours; the second one ends the trace without
			 * CMD.
			 */
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

	/* The kernel reports exits; this is for a process that ended before its probe was attached. */
	if (kill((pid_t)tgid, 0) && errno == ESRCH)
		ttmon_bpf_del_pid(s->bpf, tgid);
	else
		s->alive++;
}

/* A line longer than the terminal is wide cannot be overwritten. */
static size_t columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
}

/*
 * What is known of sums since the start, and of what is held now (*held, may be NULL): calls can have
 * been missed, or the families are off.
 */
static enum ttmon_knowledge sums_known(const struct ttmon_seen_view *seen, uint32_t families,
				       enum ttmon_knowledge *held)
{
	enum ttmon_knowledge known = TTMON_KNOWN, now = TTMON_KNOWN;

	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		if (!(families >> i & 1))
			continue;
		if (seen->of[i].since_ns > seen->start_ns || seen->of[i].partly)
			known = TTMON_AT_LEAST;
		if (seen->of[i].since_ns == UINT64_MAX)
			now = TTMON_UNKNOWN;
	}
	if (held)
		*held = now == TTMON_UNKNOWN ? now : known;
	return known;
}

/* "-", ">=1.2 MiB"; a lower bound of 0 says nothing. */
static const char *known_bytes(char buf[TTMON_FMT_LEN], enum ttmon_knowledge known, uint64_t bytes)
{
	char text[TTMON_FMT_LEN];

	if (known == TTMON_UNKNOWN || (known == TTMON_AT_LEAST && !bytes))
		return "-";
	snprintf(buf, TTMON_FMT_LEN, "%s%.*s", known == TTMON_AT_LEAST ? ">=" : "", TTMON_FMT_LEN - 3,
		 ttmon_fmt_bytes(text, sizeof(text), bytes));
	return buf;
}

static void live_line(struct ttmon_daemon *c)
{
	char line[256] = "", pinned[TTMON_FMT_LEN], peak[TTMON_FMT_LEN], h2d[TTMON_FMT_LEN], d2h[TTMON_FMT_LEN],
	     lost[TTMON_FMT_LEN], live[TTMON_FMT_LEN];
	uint64_t bytes[2] = { 0, 0 }, nr_lost = 0;
	enum ttmon_knowledge held, peaks, copies;
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
	peaks = sums_known(&s.seen, TTMON_FAMILY_BIT(ALLOC) | TTMON_FAMILY_BIT(TENSTORRENT), &held);
	copies = sums_known(&s.seen, TTMON_FAMILY_BIT(TRANSFER), NULL);
	snprintf(line + strlen(line), sizeof(line) - strlen(line),
		 "%zu proc  pinned %s  peak %s  h2d %s  d2h %s  %s live", s.procs,
		 known_bytes(pinned, held, s.totals.pinned_bytes), known_bytes(peak, peaks, s.totals.pinned_peak_bytes),
		 known_bytes(h2d, copies, bytes[0]), known_bytes(d2h, copies, bytes[1]),
		 held == TTMON_UNKNOWN ? "-" : ttmon_fmt_count(live, sizeof(live), s.totals.live));
	line[MIN(columns() - 1, sizeof(line) - 1)] = '\0';
	ttmon_log_live(line);
}

/*
 * What the records of ended processes leave lies between what stays, and the C library keeps it: of
 * 82 MiB that the hot thread had after a minute of 56 execs a second 66 were free. Allocations of
 * other threads wait meanwhile.
 */
static void trim(void)
{
	uint64_t began_ns = ttmon_mono_ns();

	malloc_trim(0);
	log_debug("free memory returned in %llu us", (unsigned long long)(ttmon_mono_ns() - began_ns) / NSEC_PER_US);
}

static void on_tick(struct ttmon_daemon *c)
{
	uint64_t expirations;

	if (read(c->timer_fd, &expirations, sizeof(expirations)) < 0)
		return;
	c->ticks++;
	if (c->replay) {
		ttmon_replay_tick(c);
		ttmon_parts_each(c, tick);
		return;
	}
	if (!(c->ticks % TAKE_UP_TICKS))
		ttmon_daemon_take_up(c);
	ttmon_bpf_traced_refresh(c->bpf);
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
		ttmon_mmap2_get_stats(c->mmap2, &st);
		if (st.lost != c->mmap2_lost) {
			c->mmap2_lost = st.lost;
			log_warn("%llu records of new mappings were lost, scanning all processes",
				 (unsigned long long)st.lost);
			(void)!ttmon_discover_scan(c->discover);
		}
	}
	ttmon_parts_each(c, tick);
	ttmon_discover_check(c->discover);
	if (!(c->ticks % SWEEP_TICKS)) {
		on_mappings(c);
		ttmon_discover_sweep(c->discover);
	}
	if (!(c->ticks % AHEAD_TICKS))
		ttmon_discover_ahead(c->discover);
	if (!(c->ticks % TRIM_TICKS))
		trim();
}

/* ---- the loop ---- */

int ttmon_daemon_watch(struct ttmon_daemon *c, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int ttmon_loop_new(struct ttmon_daemon *c)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGHUP };
	struct sigaction hup;
	struct itimerspec it = { .it_interval.tv_nsec = TICK_MS * 1000000, .it_value.tv_nsec = TICK_MS * 1000000 };
	sigset_t set;
	int err;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	/* Under nohup SIGHUP stays ignored; blocking the signal would deliver it to the loop. */
	if (!sigaction(SIGHUP, NULL, &hup) && hup.sa_handler == SIG_IGN)
		sigdelset(&set, SIGHUP);
	/* If SIGCHLD is ignored, as by some parents, there is no child to wait for. */
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->epoll_fd < 0 || c->signal_fd < 0 || c->timer_fd < 0 || timerfd_settime(c->timer_fd, 0, &it, NULL))
		return log_error_r(-errno, "cannot make the event loop: %s", strerror(errno));
	err = ttmon_daemon_watch(c, c->signal_fd);
	if (!err)
		err = ttmon_daemon_watch(c, c->timer_fd);
	return err;
}

/* The earliest timeout of all parts; -1: none. */
static int timeout_ms(struct ttmon_daemon *c)
{
	int ms = -1;

	for (size_t i = 0; i < c->nr_parts; i++) {
		int own = c->state[i] && c->parts[i]->timeout_ms ? c->parts[i]->timeout_ms(c->state[i]) : -1;

		if (own >= 0 && (ms < 0 || own < ms))
			ms = own;
	}
	return ms;
}

/* ms 0: wait for mappings again. Where they cannot be delayed, they are always waited for. */
static void put_mappings_off(struct ttmon_daemon *c, unsigned int ms)
{
	struct epoll_event ev = { .events = ms ? 0 : EPOLLIN, .data.fd = ttmon_mmap2_fd(c->mmap2) };

	if (!ms != !c->mmap2_pause_ms && epoll_ctl(c->epoll_fd, EPOLL_CTL_MOD, ev.data.fd, &ev))
		ms = 0;
	c->mmap2_pause_ms = ms;
	c->mmap2_ns = ttmon_mono_ns() + ms * NSEC_PER_MS;
}

/* Reads new mappings; if there were any, the next ones are delayed. */
static void take_mappings(struct ttmon_daemon *c)
{
	uint64_t before = c->mappings;
	unsigned int ms = c->mmap2_pause_ms ? 4 * c->mmap2_pause_ms : MAPPINGS_MS;

	on_mappings(c);
	/* Held processes wait for us, others do not. */
	if (c->mode == TTMON_CAPTURE_SYSTEM)
		put_mappings_off(c, c->mappings == before ? 0 : MIN(ms, MAPPINGS_MAX_MS));
}

/* How long to wait: until the parts' timeout or the end of the pause. */
static int wait_ms(const struct ttmon_daemon *c, int parts_ms)
{
	uint64_t now = ttmon_mono_ns(), left;

	if (!c->mmap2_pause_ms)
		return parts_ms;
	left = ttmon_before(now, c->mmap2_ns) ? (c->mmap2_ns - now + NSEC_PER_MS - 1) / NSEC_PER_MS : 0;
	return parts_ms < 0 ? (int)left : MIN(parts_ms, (int)left);
}

/* False: fd belongs to a part. */
static bool on_fd(struct ttmon_daemon *c, int fd)
{
	if (fd == c->signal_fd)
		on_signal(c);
	else if (fd == c->timer_fd)
		on_tick(c);
	else if (c->hot && fd == ttmon_hot_fd(c->hot))
		on_requests(c);
	else if (c->mmap2 && fd == ttmon_mmap2_fd(c->mmap2))
		take_mappings(c);
	else if (c->hold && fd == ttmon_hold_fd(c->hold))
		on_hold(c);
	else if (c->helpers && fd == ttmon_helpers_fd(c->helpers))
		ttmon_helpers_turn(c->helpers);
	else if (c->discover && fd == ttmon_discover_fd(c->discover))
		ttmon_discover_turn(c->discover);
	else
		return false;
	return true;
}

void ttmon_loop_turn(struct ttmon_daemon *c)
{
	struct epoll_event ev[16];
	int n, ms = timeout_ms(c);
	uint64_t due_ns = ttmon_mono_ns() + (uint64_t)MAX(ms, 0) * NSEC_PER_MS;
	bool wanted = false;

	n = epoll_wait(c->epoll_fd, ev, ARRAY_SIZE(ev), wait_ms(c, ms));
	for (int i = 0; i < n; i++)
		wanted |= !on_fd(c, ev[i].data.fd);
	if (c->mmap2_pause_ms && !ttmon_before(ttmon_mono_ns(), c->mmap2_ns))
		take_mappings(c);
	/* An idle HTTP server needs a system call to find that it has nothing to do. */
	if (wanted || (ms >= 0 && !ttmon_before(ttmon_mono_ns(), due_ns)))
		ttmon_parts_each(c, turn);
}

void ttmon_loop_drain(struct ttmon_daemon *c)
{
	on_requests(c);
	on_mappings(c);
	(void)ttmon_daemon_settle(c, LAST_MS);
	ttmon_discover_end(c->discover);
}
