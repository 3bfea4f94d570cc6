// SPDX-License-Identifier: GPL-2.0-only
/*
 * daemon.c: the functions of a run for its parts (daemon.h), and the walks over the table of parts.
 * Cold thread.
 */
#include "daemon/run/daemon_int.h"

#include <poll.h>

#include "daemon/io/files/db.h"
#include "daemon/io/files/tracefile.h"
#include "daemon/io/probes/jobs.h"
#include "lib/os/clock.h"
#include "version.h"

#define HANG_NS (2 * NSEC_PER_SEC)
/* A client and the socket wait for as long as this takes. */
#define ANNOUNCE_MS 40

/* ---- the table of parts ---- */

void *ttmon_daemon_part(const struct ttmon_daemon *c, const struct ttmon_part *part)
{
	for (size_t i = 0; i < c->nr_parts; i++)
		if (c->parts[i] == part)
			return c->state[i];
	return NULL;
}

const struct ttmon_part *const *ttmon_daemon_parts(const struct ttmon_daemon *c, size_t *n)
{
	*n = c->nr_parts;
	return c->parts;
}

/* The part has logged the reason; its name is logged for debugging. */
static int started(const struct ttmon_part *part, int err)
{
	if (err)
		log_debug("part %s: %s", part->name, strerror(-err));
	return err;
}

int ttmon_parts_configure(struct ttmon_daemon *c, struct ttmon_bpf_cfg *cfg)
{
	int err = 0;

	for (size_t i = 0; !err && i < c->nr_parts; i++)
		if (c->parts[i]->configure)
			err = started(c->parts[i], c->parts[i]->configure(c, &c->state[i], cfg));
	return err;
}

int ttmon_parts_load(struct ttmon_daemon *c)
{
	int err = 0;

	for (size_t i = 0; !err && i < c->nr_parts; i++)
		if (c->parts[i]->load)
			err = started(c->parts[i], c->parts[i]->load(c, &c->state[i]));
	return err;
}

int ttmon_parts_start(struct ttmon_daemon *c)
{
	enum ttmon_capture_in in = c->replay ? TTMON_IN_REPLAY : TTMON_IN_LIVE;
	int err = 0;

	for (size_t i = 0; !err && i < c->nr_parts; i++)
		if (c->parts[i]->start && c->parts[i]->in & in)
			err = started(c->parts[i], c->parts[i]->start(c, &c->state[i]));
	return err;
}

int ttmon_parts_go(struct ttmon_daemon *c)
{
	int err = 0;

	for (size_t i = 0; !err && i < c->nr_parts; i++)
		if (c->state[i] && c->parts[i]->go)
			err = started(c->parts[i], c->parts[i]->go(c->state[i]));
	return err;
}

void ttmon_parts_request(struct ttmon_daemon *c, const struct ttmon_request *req)
{
	for (size_t i = 0; i < c->nr_parts; i++)
		if (c->state[i] && c->parts[i]->request && (req->kind != TTMON_REQ_PART || req->part == i))
			c->parts[i]->request(c->state[i], req);
}

int ttmon_parts_stop(struct ttmon_daemon *c)
{
	int err = 0;

	for (size_t i = 0; i < c->nr_parts; i++) {
		int err2 = c->state[i] && c->parts[i]->stop ? c->parts[i]->stop(c->state[i]) : 0;

		err = err ? err : err2;
	}
	return err;
}

void ttmon_parts_free(struct ttmon_daemon *c)
{
	for (size_t i = c->nr_parts; i--;) {
		if (c->state[i] && c->parts[i]->free)
			c->parts[i]->free(c->state[i]);
		c->state[i] = NULL;
	}
}

/* ---- access for parts ---- */

const struct ttmon_opts *ttmon_daemon_opts(const struct ttmon_daemon *c)
{
	return c->opts;
}

bool ttmon_daemon_is_replay(const struct ttmon_daemon *c)
{
	return c->replay != NULL;
}

enum ttmon_capture ttmon_daemon_mode(const struct ttmon_daemon *c)
{
	return c->mode;
}

uint64_t ttmon_daemon_start_ns(const struct ttmon_daemon *c)
{
	return c->start_ns;
}

unsigned int ttmon_daemon_ticks(const struct ttmon_daemon *c)
{
	return c->ticks;
}

enum ttmon_rmid_backend ttmon_daemon_rmid(const struct ttmon_daemon *c)
{
	return c->rmid;
}

struct ttmon_bpf *ttmon_daemon_bpf(const struct ttmon_daemon *c)
{
	return c->bpf;
}

struct ttmon_hot *ttmon_daemon_hot(const struct ttmon_daemon *c)
{
	return c->hot;
}

struct ttmon_discover *ttmon_daemon_discover(const struct ttmon_daemon *c)
{
	return c->discover;
}

struct ttmon_rec_writer *ttmon_daemon_rec(const struct ttmon_daemon *c)
{
	return c->rec;
}

struct ttmon_pipeline *ttmon_daemon_pipeline(const struct ttmon_daemon *c)
{
	return c->pipeline;
}

uint64_t ttmon_daemon_unpublished(const struct ttmon_daemon *c)
{
	return c->publish.unpublished;
}

bool ttmon_daemon_has_shm(const struct ttmon_daemon *c)
{
	return c->publish.shm != NULL;
}

void ttmon_daemon_set_cpus(struct ttmon_daemon *c, struct ttmon_cpustate *cpus)
{
	c->cpus = cpus;
}

uint64_t ttmon_daemon_held_ns(const struct ttmon_daemon *c)
{
	return c->held_ns;
}

static void announced(void *ctx, uint32_t tgid)
{
	struct ttmon_daemon *c = ctx;

	c->announced--;
	ttmon_parts_request(c, &(struct ttmon_request){ .kind = TTMON_REQ_PROC, .tgid = tgid });
}

void ttmon_daemon_announce(struct ttmon_daemon *c, uint32_t tgid)
{
	c->announced++;
	ttmon_daemon_list_then(c, tgid, announced);
}

void ttmon_daemon_work(struct ttmon_daemon *c, int fd, unsigned int ms)
{
	struct pollfd fds[] = { { .fd = ttmon_helpers_fd(c->helpers), .events = POLLIN },
				{ .fd = ttmon_discover_fd(c->discover), .events = POLLIN },
				{ .fd = fd, .events = POLLIN } };

	(void)!poll(fds, ARRAY_SIZE(fds), (int)ms);
	ttmon_helpers_turn(c->helpers);
	ttmon_discover_turn(c->discover);
}

static bool all_told(void *ctx)
{
	return !((struct ttmon_daemon *)ctx)->announced;
}

void ttmon_daemon_await_announced(struct ttmon_daemon *c)
{
	uint64_t end_ns = ttmon_mono_ns() + ANNOUNCE_MS * NSEC_PER_MS, now;

	/* Helpers read the files, and a thread attaches the probes. */
	while (!all_told(c) && (now = ttmon_mono_ns()) < end_ns)
		ttmon_daemon_work(c, -1, (unsigned int)((end_ns - now) / NSEC_PER_MS) + 1);
}

static void listed(void *ctx, uint32_t tgid _unused_)
{
	struct ttmon_daemon *c = ctx;

	c->announced--;
}

void ttmon_daemon_list_wait(struct ttmon_daemon *c, uint32_t tgid)
{
	c->announced++;
	ttmon_daemon_list_then(c, tgid, listed);
	ttmon_daemon_await_announced(c);
}

void ttmon_daemon_fact(void *ctx, const void *rec, size_t size)
{
	struct ttmon_daemon *c = ctx;

	if (c->hot) {
		ttmon_hot_fact(c->hot, rec, size);
	} else if (c->direct) {
		ttmon_pipeline_feed(c->pipeline, rec, size);
		if (c->rec)
			ttmon_rec_writer_record(c->rec, rec, size);
	}
}

int ttmon_daemon_call(const struct ttmon_daemon *c, ttmon_hot_fn fn, void *ctx)
{
	return c->hot ? ttmon_hot_call(c->hot, fn, ctx) : fn(ctx, c->pipeline, c->replay_ns);
}

pid_t ttmon_daemon_dump(const struct ttmon_daemon *c, ttmon_hot_fn fn, void *ctx)
{
	pid_t pid;

	if (c->hot)
		return ttmon_hot_dump(c->hot, fn, ctx);
	pid = fork();
	if (!pid) {
		ttmon_history_settle(ttmon_pipeline_history(c->pipeline));
		_exit(fn(ctx, c->pipeline, c->replay_ns) ? 1 : 0);
	}
	return pid < 0 ? -errno : pid;
}

void ttmon_daemon_snapshot(const struct ttmon_daemon *c, struct ttmon_snapshot *ret)
{
	if (c->hot) {
		ttmon_hot_snapshot(c->hot, ret);
		return;
	}
	*ret = (struct ttmon_snapshot){ .now_ns = ttmon_mono_ns(), .unpublished = c->publish.unpublished };
	ret->watermark_ns = ret->now_ns;
	ttmon_snapshot_fill(ret, c->pipeline);
}

bool ttmon_daemon_helpers(const struct ttmon_daemon *c, struct ttmon_helpers_counts *ret)
{
	if (c->helpers)
		ttmon_helpers_get_counts(c->helpers, ret);
	return c->helpers != NULL;
}

int ttmon_daemon_help(struct ttmon_daemon *c, enum ttmon_help what, uint32_t tgid, const void *in, size_t n,
		      void (*done)(void *ctx, struct ttmon_helper_reply *reply), void *ctx)
{
	struct ttmon_helper_call call = {
		.fn = TTMON_JOBS + what,
		.who = ttmon_discover_who(c->discover, tgid),
		.where = 1ULL << 63 | tgid,
		.in = in,
		.n = n,
		.fd = -1,
		.done = done,
		.ctx = ctx,
	};

	return ttmon_helpers_call(c->helpers, &call);
}

int ttmon_daemon_help_user(struct ttmon_daemon *c, enum ttmon_help what, uid_t uid, uint32_t id, const void *in,
			   size_t n, void (*done)(void *ctx, struct ttmon_helper_reply *reply), void *ctx)
{
	struct ttmon_helper_call call = {
		.fn = TTMON_JOBS + what,
		.who = uid,
		.where = 1ULL << 62 | id,
		.in = in,
		.n = n,
		.fd = -1,
		.done = done,
		.ctx = ctx,
	};

	return c->helpers ? ttmon_helpers_call(c->helpers, &call) : -ENODEV;
}

bool ttmon_daemon_is_alive(const struct ttmon_daemon *c)
{
	struct ttmon_snapshot s;

	/* The hot thread updates its figures every 100 ms; if it does not, it hangs. */
	ttmon_daemon_snapshot(c, &s);
	return ttmon_mono_ns() - s.now_ns <= HANG_NS;
}

static int take_counts(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	(void)now_ns;
	ttmon_pipeline_kernel_counts(p, ctx);
	return 0;
}

void ttmon_daemon_kernel_counts(const struct ttmon_daemon *c, struct ttmon_kernel_counts *ret)
{
	*ret = (struct ttmon_kernel_counts){ .known = c->bpf != NULL };
	if (!c->bpf) {
		ttmon_daemon_call(c, take_counts, ret);
		return;
	}
	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(c->bpf); cpu++) {
		const struct ttmon_cpu_stat *st = ttmon_bpf_stat(c->bpf, cpu);

		for (unsigned int i = 0; i < TTMON_EV_FACT; i++) {
			ret->attempted[i] += st->attempted[i];
			ret->lost[i] += st->lost[i];
		}
		for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++)
			ret->reason[i] += st->reason[i];
		ret->nested += st->nested;
	}
}

/* ---- results, and the end ---- */

int ttmon_daemon_write_db(const struct ttmon_daemon *c, struct ttmon_pipeline *p, uint64_t end_ns, bool cut)
{
	const struct ttmon_ev_clock *clock = ttmon_history_clock(ttmon_pipeline_history(p));
	struct ttmon_db_meta meta = {
		.version = TTMON_VERSION,
		.start_ns = clock ? clock->mono_ns : 0,
		.end_ns = end_ns,
		.trace_only = c->opts->trace_only,
		.cut = cut,
	};
	char why[512];
	int err = ttmon_db_write(c->opts->dump_db, p, &meta, why, sizeof(why));

	if (err)
		log_error("%s", why);
	return err;
}

int ttmon_daemon_write_trace(const struct ttmon_daemon *c, uint64_t end_ns)
{
	struct ttmon_trace_in in = { .pipeline = c->pipeline, .end_ns = end_ns };
	char why[512];
	int err = ttmon_trace_write(c->opts->trace_out, &in, why, sizeof(why));

	if (err)
		log_error("%s", why);
	return err;
}

void ttmon_daemon_fini(struct ttmon_daemon *c)
{
	uint64_t end_ns;

	/* The threads of parts send facts to the hot thread. */
	(void)!ttmon_parts_stop(c);
	if (c->hot)
		ttmon_hot_stop(TAKE_PTR(c->hot), &end_ns);
	c->direct = false;
	if (c->rec)
		(void)!ttmon_rec_writer_close(TAKE_PTR(c->rec), 0);
	ttmon_parts_free(c);
	(void)!ttmon_publish_close(&c->publish);
	if (c->closer >= 0)
		ttmon_bpf_leave(c->bpf, c->closer);
	ttmon_discover_free(c->discover);
	ttmon_helpers_free(c->helpers);
	ttmon_mmap2_free(c->mmap2);
	ttmon_hold_free(c->hold);
	ttmon_bpf_free(c->bpf);
	ttmon_pipeline_free(c->pipeline);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	if (c->signal_fd >= 0)
		close(c->signal_fd);
	if (c->timer_fd >= 0)
		close(c->timer_fd);
	/* Last: what the closer holds stays held until this. */
	if (c->closer >= 0)
		close(c->closer);
}
