// SPDX-License-Identifier: GPL-2.0-only
#include "capture.h"

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "io/db.h"
#include "io/facts.h"
#include "io/sdnotify.h"
#include "io/tracefile.h"
#include "targets.h"
#include "util/clock.h"
#include "util/fmt.h"
#include "version.h"

#define MMAP2_PAGES  64
#define FINAL_ROUNDS 16

int ttmon_write_db(const struct ttmon_opts *opts, struct ttmon_pipeline *p, uint64_t end_ns, bool cut)
{
	const struct ttmon_ev_clock *clock = ttmon_history_clock(ttmon_pipeline_history(p));
	struct ttmon_db_meta meta = {
		.version = TTMON_VERSION,
		.start_ns = clock ? clock->mono_ns : 0,
		.end_ns = end_ns,
		.trace_only = opts->trace_only,
		.cut = cut,
	};
	char why[512];
	int err = ttmon_db_write(opts->dump_db, p, &meta, why, sizeof(why));

	if (err)
		log_error("%s", why);
	return err;
}

int ttmon_write_trace(const struct ttmon_opts *opts, struct ttmon_pipeline *p, uint64_t end_ns)
{
	struct ttmon_trace_in in = { .pipeline = p, .end_ns = end_ns };
	char why[512];
	int err = ttmon_trace_write(opts->trace_out, &in, why, sizeof(why));

	if (err)
		log_error("%s", why);
	return err;
}

/* ---- set-up ---- */

static bool all_processes(const struct ttmon_run *c)
{
	return c->mode == TTMON_CAPTURE_SYSTEM;
}

static bool with_mmap(const struct ttmon_run *c)
{
	return !c->opts->no_mmap && (!all_processes(c) || c->opts->trace_mmap);
}

static int make_bpf(struct ttmon_run *c)
{
	struct ttmon_bpf_cfg cfg = {
		.all = all_processes(c),
		.mmap = with_mmap(c),
		.mmap_later = !c->opts->no_mmap,
		.no_returns = c->opts->no_returns,
		.tt_ioctl = c->opts->tt_ioctl,
		.nvidia_pins = c->opts->nvidia_pins,
		.stack_frames = c->opts->stack_frames,
		.ring_bytes = c->opts->ring_kib * 1024,
		.user = c->opts->rows,
		.nr_user = c->opts->nr_user,
	};
	char why[256];
	int err = ttmon_cpurun_choose(c, &cfg);

	if (err)
		return err;
	c->rmid = cfg.rmid;
	err = ttmon_bpf_new(&cfg, &c->bpf, why, sizeof(why));
	if (!err)
		err = ttmon_bpf_attach(c->bpf, why, sizeof(why));
	if (err)
		log_error("%s", why);
	return err;
}

static int make_pipeline(struct ttmon_run *c)
{
	struct ttmon_pipeline_cfg cfg = {
		.nr_cpus = ttmon_bpf_cpus(c->bpf),
		.slots.window = c->opts->window,
		.usage.linger_ns = c->opts->linger_s * NSEC_PER_SEC,
		.history = {
			.keep_all = c->opts->dump_db || c->opts->trace_out || !all_processes(c),
			.max_events = c->opts->max_events,
			.max_allocations = c->opts->max_allocations,
			.live = ttmon_opts_live(c->opts),
		},
		.timeline = { .ring = !c->opts->dump_db && !c->opts->trace_out,
			      .max_items = c->opts->dump_db || c->opts->trace_out ? c->opts->max_events ? c->opts->max_events : TTMON_TIMELINE_RUN : 0 },
	};
	struct ttmon_hot_cfg hot = { .bpf = c->bpf };
	int err = ttmon_publish_open(&c->publish, c->opts, cfg.nr_cpus);

	if (err)
		return err;
	err = ttmon_pipeline_new(&cfg, ttmon_publish_slot, &c->publish, &c->pipeline);
	if (err)
		return log_error_r(err, "cannot make the pipeline: %s", strerror(-err));
	err = ttmon_kpins_new(c, &c->kpins);
	if (err)
		return log_error_r(err, "cannot look at the kernel's pinned pages: %s", strerror(-err));
	if (c->opts->cpu) {
		err = ttmon_cpurun_new(c, c->rmid, &c->cpu);
		if (err)
			return log_error_r(err, "cannot measure CPU time: %s", strerror(-err));
	}
	if (c->opts->record) {
		err = ttmon_rec_writer_new(c->opts->record, cfg.nr_cpus, &c->rec);
		if (err)
			return log_error_r(err, "cannot record to %s: %s", c->opts->record, strerror(-err));
	}
	hot.pipeline = c->pipeline;
	hot.rec = c->rec;
	hot.cpus = ttmon_cpurun_state(c->cpu);
	err = ttmon_hot_start(&hot, &c->hot);
	if (err)
		return log_error_r(err, "cannot start the hot thread: %s", strerror(-err));
	ttmon_fact_clock(ttmon_hot_fact, c->hot, cfg.nr_cpus, c->mode,
			 (with_mmap(c) ? TTMON_OPT_MMAP : 0) | (c->opts->copy_results ? TTMON_OPT_COPY_RESULTS : 0) |
				 (c->opts->no_returns ? TTMON_OPT_NO_RETURNS : 0));
	return ttmon_loop_watch(c, ttmon_hot_fd(c->hot));
}

static int make_discover(struct ttmon_run *c)
{
	struct ttmon_discover_cfg cfg = {
		.bpf = c->bpf,
		.probes = { .copy_results = c->opts->copy_results,
			    .no_returns = c->opts->no_returns,
			    .tt_dispatch = c->opts->tt_dispatch,
			    .user = c->opts->rows },
		.user = c->opts->user,
		.nr_user = c->opts->nr_user,
		.all = all_processes(c),
		.fact = ttmon_hot_fact,
		.ctx = c->hot,
	};
	int err = ttmon_discover_new(&cfg, &c->discover);

	if (err)
		return log_error_r(err, "out of memory");
	err = ttmon_mmap2_new(MMAP2_PAGES, &c->mmap2);
	if (err) {
		log_warn("cannot watch for new mappings: %s, continuing with what is mapped now", strerror(-err));
		return 0;
	}
	return ttmon_loop_watch(c, ttmon_mmap2_fd(c->mmap2));
}

static int add_child(void *ctx, uint32_t tgid)
{
	struct ttmon_run *c = ctx;

	return ttmon_bpf_add_pid(c->bpf, tgid, false);
}

/* Targets of --pid: known to the kernel first, then the switch, then what they have mapped: nothing falls in between. */
static int start_pids(struct ttmon_run *c)
{
	const struct ttmon_opts *o = c->opts;

	for (size_t i = 0; i < o->nr_pids; i++) {
		char why[128];
		int err = ttmon_target_check(o->pids[i], why, sizeof(why));

		if (err)
			return log_error_r(err, "%s", why);
		err = ttmon_bpf_add_pid(c->bpf, o->pids[i], false);
		if (err)
			return log_error_r(err, "cannot trace process %u: %s", o->pids[i], strerror(-err));
	}
	ttmon_bpf_activate(c->bpf, true);
	for (size_t i = 0; i < o->nr_pids; i++) {
		(void)!ttmon_discover_children(o->pids[i], add_child, c);
		/* An end before the switch was not told. */
		if (ttmon_target_has_ended(o->pids[i]))
			ttmon_bpf_del_pid(c->bpf, o->pids[i]);
	}
	ttmon_bpf_each_pid(c->bpf, ttmon_loop_discover, c);
	return 0;
}

static int start_targets(struct ttmon_run *c)
{
	int err = 0;

	switch (c->mode) {
	case TTMON_CAPTURE_SYSTEM:
		ttmon_bpf_activate(c->bpf, true);
		err = ttmon_discover_scan(c->discover);
		if (err)
			log_error("cannot scan /proc: %s", strerror(-err));
		return err;
	case TTMON_CAPTURE_PIDS:
		return start_pids(c);
	case TTMON_CAPTURE_COMMAND:
		if (ttmon_hold_error(c->hold))
			log_warn("cannot hold %s (%s): calls right after a library is mapped can be missed",
				 c->opts->cmd[0], strerror(-ttmon_hold_error(c->hold)));
		err = ttmon_bpf_add_pid(c->bpf, (uint32_t)c->child, true);
		if (err)
			return log_error_r(err, "cannot trace the command: %s", strerror(-err));
		ttmon_bpf_activate(c->bpf, true);
		return 0;
	}
	return -EINVAL;
}

static void say_tracing(struct ttmon_run *c)
{
	size_t objects, attached, single;

	if (ttmon_bpf_legacy(c->bpf))
		log_info(
			"no uprobe_multi links here (Linux 6.6 has them): probes go in by tracefs, and take 0.1 s each program to go out");
	ttmon_discover_counts(c->discover, &objects, &attached, &single);
	if (c->mode == TTMON_CAPTURE_COMMAND)
		log_info("tracing %s (process %d)", c->opts->cmd[0], c->child);
	else if (c->mode == TTMON_CAPTURE_PIDS)
		log_info("tracing %zu process%s: %zu probes in %zu object%s", c->opts->nr_pids,
			 c->opts->nr_pids == 1 ? "" : "es", attached, objects, objects == 1 ? "" : "s");
	else
		log_info("tracing the whole host: %zu probes in %zu object%s%s%s", attached, objects,
			 objects == 1 ? "" : "s", c->opts->socket ? ", listening on " : "",
			 c->opts->socket ? c->opts->socket : "");
}

/* ---- the end ---- */

static void feed_fact(void *ctx, const void *rec, size_t size)
{
	struct ttmon_run *c = ctx;

	ttmon_pipeline_feed(c->pipeline, rec, size);
	if (c->rec)
		ttmon_rec_writer_record(c->rec, rec, size);
}

/* The history's last questions, answered in this thread now that the hot one is gone. */
static void answer_all(struct ttmon_run *c)
{
	struct ttmon_history *h = ttmon_pipeline_history(c->pipeline);
	struct ttmon_frame frames[256];
	uint32_t tgids[64];

	for (int round = 0; round < FINAL_ROUNDS * 64; round++) {
		size_t maps = round < FINAL_ROUNDS ? ttmon_history_want_maps(h, tgids, ARRAY_SIZE(tgids)) : 0;
		size_t n;

		for (size_t i = 0; i < maps; i++)
			ttmon_loop_discover(c, tgids[i]);
		n = ttmon_history_want_symbols(h, frames, ARRAY_SIZE(frames));
		ttmon_discover_symbols(c->discover, frames, n);
		if (!maps && !n)
			break;
	}
}

static int finish(struct ttmon_run *c)
{
	struct ttmon_rec_stats rec;
	uint64_t end_ns = 0;
	int err = 0, err2, mt_err;

	ttmon_log_live(NULL);
	ttmon_hot_end(c->hot);
	ttmon_loop_drain(c);
	mt_err = ttmon_mtrun_stop(c->mt);
	ttmon_hot_stop(c->hot, &end_ns);
	c->hot = NULL;
	ttmon_discover_redirect(c->discover, feed_fact, c);
	answer_all(c);
	ttmon_ttrun_redirect(c->tt, feed_fact, c);
	ttmon_pipeline_finish(c->pipeline, end_ns);
	answer_all(c);
	ttmon_ttrun_finish(c->tt);
	err = ttmon_publish_close(&c->publish);
	err = err ? err : mt_err;
	if (c->dumper > 0)
		waitpid(c->dumper, NULL, 0);
	if (c->opts->dump_db) {
		err2 = ttmon_write_db(c->opts, c->pipeline, end_ns, false);
		err = err ? err : err2;
	}
	if (c->opts->trace_out) {
		err2 = ttmon_write_trace(c->opts, c->pipeline, end_ns);
		err = err ? err : err2;
	}
	if (c->rec) {
		ttmon_rec_writer_stats(c->rec, &rec);
		err2 = ttmon_rec_writer_close(TAKE_PTR(c->rec), end_ns);
		if (err2)
			log_error("%s was not written whole: %s", c->opts->record, strerror(-err2));
		else if (rec.dropped)
			log_warn("%llu records are missing in %s: they came faster than it could be written",
				 (unsigned long long)rec.dropped, c->opts->record);
		err = err ? err : err2;
	}
	if (!c->opts->quiet) {
		ttmon_summary(stderr, c->pipeline, c->opts->trace_only, end_ns);
		ttmon_kpins_summary(stderr, c->kpins);
		ttmon_mtrun_summary(stderr, c->mt);
	}
	return err;
}

void ttmon_run_destroy(struct ttmon_run *c)
{
	uint64_t end_ns;

	/* It tells the hot thread. */
	(void)!ttmon_mtrun_stop(c->mt);
	if (c->hot)
		ttmon_hot_stop(c->hot, &end_ns);
	c->hot = NULL;
	if (c->rec)
		(void)!ttmon_rec_writer_close(c->rec, 0);
	ttmon_api_db_free(c);
	ttmon_http_free(c->http);
	ttmon_api_live_free(c);
	ttmon_metrics_free(c->metrics);
	ttmon_families_free(c->families);
	ttmon_cgroups_free(c->cgroups);
	ttmon_ttrun_free(c->tt);
	ttmon_cpurun_free(c->cpu);
	ttmon_kpins_free(c->kpins);
	ttmon_mtrun_free(c->mt);
	(void)!ttmon_publish_close(&c->publish);
	ttmon_discover_free(c->discover);
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
}

/* A path that cannot be written is said before the program has run for hours, not after. */
static int check_output(const char *path)
{
	_cleanup_free_ char *copy = path ? strdup(path) : NULL;
	const char *dir;

	if (!copy || !strcmp(path, "-"))
		return 0;
	dir = dirname(copy);
	if (access(dir, W_OK | X_OK))
		return log_error_r(-errno, "cannot write %s: %s: %s", path, dir, strerror(errno));
	return 0;
}

static bool has_unix(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		socklen_t len = sizeof(int);
		int domain;

		if (!getsockopt(fds[i], SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_UNIX)
			return true;
	}
	return false;
}

int ttmon_run_listen(struct ttmon_run *c)
{
	int fds[TTMON_HTTP_LISTEN_MAX];
	struct ttmon_http_cfg http = {
		.socket = c->opts->socket,
		.group = "ttmon",
		.listen = c->opts->listen,
		.nr_listen = c->opts->nr_listen,
		.fds = fds,
		.nr_fds = c->opts->service ? ttmon_sd_listen_fds(fds, ARRAY_SIZE(fds)) : 0,
		.routes = ttmon_api_routes,
		.nr_routes = ttmon_api_nr_routes,
		.ctx = c,
	};
	int err;

	if (!http.socket && !http.nr_listen && !http.nr_fds)
		return 0;
	/* systemd listens there already. */
	if (!c->opts->socket_given && has_unix(fds, http.nr_fds))
		http.socket = NULL;
	/* The ids of a recording are those of another host, or of another boot. */
	err = c->replay ? 0 : ttmon_cgroups_new(NULL, &c->cgroups);
	if (!err)
		err = ttmon_metrics_new(c, &c->metrics);
	if (err)
		return log_error_r(err, "cannot make metrics: %s", strerror(-err));
	err = ttmon_http_new(&http, &c->http);
	return err ? err : ttmon_loop_watch(c, ttmon_http_fd(c->http));
}

static int set_up(struct ttmon_run *c)
{
	int err = check_output(c->opts->dump_db);

	if (!err)
		err = check_output(c->opts->trace_out);
	if (!err)
		err = check_output(c->opts->record);
	if (!err)
		err = check_output(c->opts->slots_out);
	if (!err)
		err = check_output(c->opts->memtrace_out);
	/* CMD has this process's environment. */
	if (!err && c->opts->memtrace)
		err = ttmon_mtrun_new(c->opts, &c->mt);
	if (!err && c->mode == TTMON_CAPTURE_COMMAND) {
		/* Before rings are mapped: the keeper is a fork. */
		err = ttmon_hold_new(c->opts->cmd, &c->hold);
		if (err)
			return log_error_r(err, "cannot start %s: %s", c->opts->cmd[0], strerror(-err));
		c->child = ttmon_hold_pid(c->hold);
	}
	if (!err)
		err = ttmon_loop_new(c);
	if (!err)
		err = make_bpf(c);
	if (!err)
		err = make_pipeline(c);
	if (!err)
		err = make_discover(c);
	if (!err) {
		err = ttmon_ttrun_new(c, &c->tt);
		if (err)
			log_error("cannot look for Tenstorrent chips: %s", strerror(-err));
	}
	if (!err)
		err = ttmon_families_new(c, &c->families);
	if (!err)
		err = ttmon_run_listen(c);
	if (!err)
		err = start_targets(c);
	if (!err)
		ttmon_cpurun_start(c->cpu);
	if (!err)
		err = ttmon_service_confine(c);
	/* What it reads is what programs write: it begins with the capabilities that are left. */
	if (!err && c->mt)
		err = ttmon_mtrun_start(c->mt, ttmon_hot_fact, c->hot);
	return err;
}

static int exit_status(const struct ttmon_run *c, int err)
{
	if (c->mode != TTMON_CAPTURE_COMMAND || c->child > 0)
		return err ? 1 : 0;
	if (WIFSIGNALED(c->child_status))
		return 128 + WTERMSIG(c->child_status);
	return WEXITSTATUS(c->child_status) ? WEXITSTATUS(c->child_status) : err ? 1 : 0;
}

int ttmon_run_capture(const struct ttmon_opts *opts)
{
	struct ttmon_run c = {
		.opts = opts,
		.mode = opts->cmd	? TTMON_CAPTURE_COMMAND
			: opts->nr_pids ? TTMON_CAPTURE_PIDS
					: TTMON_CAPTURE_SYSTEM,
		.start_ns = ttmon_mono_ns(),
		.epoll_fd = -1,
		.signal_fd = -1,
		.timer_fd = -1,
	};
	int err = set_up(&c), status;

	if (!err) {
		say_tracing(&c);
		if (c.hold) {
			err = ttmon_hold_go(c.hold);
			if (err) {
				log_error("cannot run %s: %s", opts->cmd[0], strerror(-err));
				ttmon_run_destroy(&c);
				return err == -ENOENT ? 127 : 126; /* as a shell would */
			}
			if (ttmon_hold_fd(c.hold) >= 0)
				err = ttmon_loop_watch(&c, ttmon_hold_fd(c.hold));
		}
	}
	if (err) {
		ttmon_run_destroy(&c);
		return 1;
	}
	ttmon_service_ready(&c);
	while (!c.stop)
		ttmon_loop_turn(&c);
	ttmon_service_stop(&c);
	err = finish(&c);
	status = exit_status(&c, err);
	ttmon_run_destroy(&c);
	return status;
}
