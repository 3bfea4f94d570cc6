// SPDX-License-Identifier: GPL-2.0-only
/* capture.c: a run on live programs, from the load of the BPF programs to the summary. Cold thread. */
#include "daemon/run/daemon_int.h"

#include <fcntl.h>
#include <libgen.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/io/bpf/closer.h"
#include "daemon/io/hold/heldfile.h"
#include "daemon/io/http/holder.h"
#include "daemon/io/host/caps.h"
#include "daemon/io/host/facts.h"
#include "daemon/io/probes/jobs.h"
#include "daemon/io/tt/ident.h"
#include "daemon/run/summary.h"
#include "daemon/run/targets.h"
#include "lib/os/clock.h"
#include "lib/os/tracefs.h"

#define MMAP2_PAGES  64
#define FINAL_ROUNDS 16
/*
 * objects mapped at the start are probed before "tracing" is logged, but slow ones are not waited for
 * longer
 */
#define START_MS  5000
#define ANSWER_MS 2000

/* ---- set-up ---- */

static bool all_processes(const struct ttmon_daemon *c)
{
	return c->mode == TTMON_CAPTURE_SYSTEM;
}

static bool with_mmap(const struct ttmon_daemon *c)
{
	return !c->opts->no_mmap && (!all_processes(c) || c->opts->trace_mmap);
}

/* A service that has no access to the tracepoints of system calls begins with them off. */
static void without_tracefs(struct ttmon_daemon *c)
{
	_cleanup_close_ int fd = -1;
	int err = c->opts->service && with_mmap(c) ? ttmon_tracefs_open(&fd) : 0;
	char why[128];

	if (!err)
		return;
	snprintf(why, sizeof(why),
		 "tracefs is not mounted, and cannot be (%s): mount -t tracefs tracefs /sys/kernel/tracing",
		 strerror(-err));
	ttmon_bpf_set_gate(c->bpf, TTMON_FAMILY_MMAP, TTMON_FAMILY_OFF);
	ttmon_daemon_degrade(c, TTMON_LACK_MMAP, why);
}

static struct ttmon_bpf_cfg bpf_cfg(const struct ttmon_daemon *c)
{
	return (struct ttmon_bpf_cfg){
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
}

static int make_bpf(struct ttmon_daemon *c, const struct ttmon_bpf_cfg *cfg)
{
	char why[256];
	int err = ttmon_bpf_new(cfg, &c->bpf, why, sizeof(why));

	c->rmid = cfg->rmid;
	if (!err)
		without_tracefs(c);
	if (!err)
		err = ttmon_bpf_attach(c->bpf, why, sizeof(why));
	if (err)
		log_error("%s", why);
	return err;
}

/* Families that are on now, until a FAMILY fact says otherwise. */
static uint32_t families_on(const struct ttmon_daemon *c)
{
	uint32_t on = 0;

	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		if (ttmon_bpf_gate(c->bpf, i) == TTMON_FAMILY_ON)
			on |= 1u << i;
	/* Its programs are loaded, but attached to nothing. */
	if (c->opts->tt_dispatch == TTMON_TT_DISPATCH_OFF)
		on &= ~TTMON_FAMILY_BIT(DISPATCH);
	return on;
}

/* Takes facts until there is a hot thread. */
static void feed_first(void *ctx, const void *rec, size_t size)
{
	struct ttmon_daemon *c = ctx;

	ttmon_pipeline_feed(c->pipeline, rec, size);
	if (c->rec)
		ttmon_rec_writer_record(c->rec, rec, size);
}

static int make_pipeline(struct ttmon_daemon *c)
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
			      .max_runs = c->opts->dump_db || c->opts->trace_out ? 0 : TTMON_TIMELINE_FOLLOWED,
			      .max_items = !c->opts->dump_db && !c->opts->trace_out ? 0 :
					   c->opts->max_events			      ? c->opts->max_events :
											TTMON_TIMELINE_RUN },
	};
	struct ttmon_hot_cfg hot = { .bpf = c->bpf, .unpublished = &c->publish.unpublished };
	int err = ttmon_publish_open(&c->publish, c->opts, cfg.nr_cpus);

	if (!err)
		err = ttmon_daemon_segment(c);
	if (err)
		return err;
	err = ttmon_pipeline_new(&cfg, ttmon_publish_slot, &c->publish, &c->pipeline);
	if (err)
		return log_error_r(err, "cannot make the pipeline: %s", strerror(-err));
	err = ttmon_parts_load(c);
	if (err)
		return err;
	if (c->opts->record) {
		err = ttmon_rec_writer_new(c->opts->record, cfg.nr_cpus, &c->rec);
		if (err)
			return log_error_r(err, "cannot record to %s: %s", c->opts->record, strerror(-err));
	}
	hot.pipeline = c->pipeline;
	hot.rec = c->rec;
	hot.cpus = c->cpus;
	hot.prompt = c->mode == TTMON_CAPTURE_COMMAND;
	hot.nr_parts = c->nr_parts;
	for (size_t i = 0; i < c->nr_parts; i++)
		hot.parts[i] = &c->parts[i]->hot;
	/* Must come before the first slot closes, since it says which families are on. */
	ttmon_fact_clock(
		feed_first, c, cfg.nr_cpus, c->mode,
		(with_mmap(c) && ttmon_bpf_gate(c->bpf, TTMON_FAMILY_MMAP) == TTMON_FAMILY_ON ? TTMON_OPT_MMAP : 0) |
			(c->opts->copy_results ? TTMON_OPT_COPY_RESULTS : 0) |
			(c->opts->no_returns ? TTMON_OPT_NO_RETURNS : 0) | TTMON_OPT_FAMILIES |
			families_on(c) << TTMON_OPT_FAMILY_SHIFT);
	err = ttmon_hot_start(&hot, &c->hot);
	if (err)
		return log_error_r(err, "cannot start the hot thread: %s", strerror(-err));
	return ttmon_daemon_watch(c, ttmon_hot_fd(c->hot));
}

static void fact_of_objects(void *ctx, const void *rec, size_t size)
{
	struct ttmon_daemon *c = ctx;

	ttmon_hot_fact(c->hot, rec, size);
	for (size_t i = 0; i < c->nr_parts; i++)
		if (c->state[i] && c->parts[i]->fact)
			c->parts[i]->fact(c->state[i], rec, size);
}

/* ---- helpers: processes that open and read files of other users ---- */

/*
 * Runs in each helper: keeps the rights to read files and folders of root and of other users, but not
 * to change any.
 */
static void begin_helper(void)
{
	static const int caps[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE };

	(void)!ttmon_caps_keep(caps, ARRAY_SIZE(caps));
}

/* The file of a held call (its seccomp_notif): opened, and what it has for us. Runs in a helper. */
static int job_held(const void *ctx, const void *in, size_t n, int given _unused_, struct ttmon_helper_out *out)
{
	_cleanup_close_ int fd = -1;
	int err = n == sizeof(struct seccomp_notif) ? ttmon_heldfile_open(in, &fd) : -EINVAL;

	return err ? err : ttmon_job_held(ctx, fd, out);
}

static int make_helpers(struct ttmon_daemon *c)
{
	static ttmon_helper_fn fns[TTMON_JOBS + TTMON_HELPS];
	static struct ttmon_jobs_cfg jobs;
	static char *ahead[TTMON_MAX_AHEAD];
	struct ttmon_helpers_cfg cfg = { .fns = fns, .nr_fns = ARRAY_SIZE(fns), .ctx = &jobs, .begin = begin_helper };
	int err;

	/* Copied, since helpers overwrite the command line. */
	for (size_t i = 0; i < c->opts->nr_ahead; i++) {
		ahead[i] = strdup(c->opts->ahead[i]);
		if (!ahead[i])
			return log_error_r(-ENOMEM, "out of memory");
	}
	memcpy(fns, ttmon_jobs, sizeof(ttmon_jobs));
	fns[TTMON_JOBS + TTMON_HELP_PROGRAM] = ttmon_heldfile_job;
	fns[TTMON_JOBS + TTMON_HELP_HELD] = job_held;
	fns[TTMON_JOBS + TTMON_HELP_MESH] = ttmon_ttmesh_job;
	fns[TTMON_JOBS + TTMON_HELP_IDENT] = ttmon_ttident_job;
	fns[TTMON_JOBS + TTMON_HELP_HOLDER] = ttmon_http_holder_job;
	jobs = (struct ttmon_jobs_cfg){
		.user = c->opts->user, .nr_user = c->opts->nr_user, .ahead = ahead, .nr_ahead = c->opts->nr_ahead
	};
	err = ttmon_helpers_start(&cfg, &c->helpers);
	return err ? log_error_r(err, "cannot start the processes that read files: %s", strerror(-err)) : 0;
}

static int make_discover(struct ttmon_daemon *c)
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
		.returns_all = c->opts->returns_all || c->opts->no_returns,
		.look_ahead = c->opts->look_ahead,
		.ahead = c->opts->ahead,
		.nr_ahead = c->opts->nr_ahead,
		.max_user_probes = (uint32_t)c->opts->max_user_probes,
		.helpers = c->helpers,
		.fact = fact_of_objects,
		.ctx = c,
	};
	int err = ttmon_discover_new(&cfg, &c->discover);

	if (err)
		return log_error_r(err, "cannot look for libraries: %s", strerror(-err));
	err = ttmon_daemon_watch(c, ttmon_discover_fd(c->discover));
	if (err)
		return log_error_r(err, "cannot wait for probes: %s", strerror(-err));
	err = ttmon_mmap2_new(MMAP2_PAGES, &c->mmap2);
	if (err) {
		log_warn("cannot watch for new mappings: %s, continuing with what is mapped now", strerror(-err));
		return 0;
	}
	return ttmon_daemon_watch(c, ttmon_mmap2_fd(c->mmap2));
}

static int add_child(void *ctx, uint32_t tgid)
{
	struct ttmon_daemon *c = ctx;

	return ttmon_bpf_add_pid(c->bpf, tgid, false);
}

/*
 * Targets of --pid: first the kernel knows them, then tracing is switched on, then their mappings are
 * read, so that no event is missed in between.
 */
static int start_pids(struct ttmon_daemon *c)
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
	ttmon_bpf_traced_refresh(c->bpf);
	ttmon_bpf_activate(c->bpf, true);
	for (size_t i = 0; i < o->nr_pids; i++) {
		(void)!ttmon_discover_children(o->pids[i], add_child, c);
		/* An end before the switch was not reported. */
		if (ttmon_target_has_ended(o->pids[i]))
			ttmon_bpf_del_pid(c->bpf, o->pids[i]);
	}
	ttmon_bpf_each_pid(c->bpf, ttmon_daemon_list, c);
	(void)ttmon_daemon_settle(c, START_MS);
	return 0;
}

static int start_targets(struct ttmon_daemon *c)
{
	int err = 0;

	switch (c->mode) {
	case TTMON_CAPTURE_SYSTEM:
		ttmon_bpf_activate(c->bpf, true);
		err = ttmon_discover_scan(c->discover);
		if (err)
			log_error("cannot scan /proc: %s", strerror(-err));
		ttmon_discover_ahead(c->discover);
		(void)ttmon_daemon_settle(c, START_MS);
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
		ttmon_bpf_traced_refresh(c->bpf);
		ttmon_bpf_activate(c->bpf, true);
		return 0;
	}
	return -EINVAL;
}

static void say_tracing(struct ttmon_daemon *c)
{
	size_t objects, attached, single;

	if (ttmon_bpf_legacy(c->bpf))
		log_info("no uprobe_multi links here (Linux 6.6 has them): probes go in by tracefs, and take 0.1 s "
			 "each program to go out");
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

/* Answers the last requests of the history in this thread, now that the hot thread is gone. */
static void answer_all(struct ttmon_daemon *c)
{
	struct ttmon_history *h = ttmon_pipeline_history(c->pipeline);
	struct ttmon_frame frames[256];
	uint32_t tgids[64];

	for (int round = 0; round < FINAL_ROUNDS * 64; round++) {
		size_t maps = round < FINAL_ROUNDS ? ttmon_history_want_maps(h, tgids, ARRAY_SIZE(tgids)) : 0;
		size_t n;

		for (size_t i = 0; i < maps; i++)
			ttmon_daemon_list(c, tgids[i]);
		(void)ttmon_daemon_settle(c, ANSWER_MS);
		n = ttmon_history_want_symbols(h, frames, ARRAY_SIZE(frames));
		ttmon_discover_symbols(c->discover, frames, n);
		(void)ttmon_daemon_settle(c, ANSWER_MS);
		if (!maps && !n)
			break;
	}
}

static int finish(struct ttmon_daemon *c)
{
	struct ttmon_rec_stats rec;
	uint64_t end_ns = 0;
	int err, err2, parts_err;

	ttmon_log_live(NULL);
	ttmon_hot_end(c->hot);
	ttmon_loop_drain(c);
	parts_err = ttmon_parts_stop(c);
	ttmon_hot_stop(c->hot, &end_ns);
	c->hot = NULL;
	c->direct = true;
	ttmon_discover_redirect(c->discover, ttmon_daemon_fact, c);
	answer_all(c);
	ttmon_parts_each(c, last_facts);
	ttmon_pipeline_finish(c->pipeline, end_ns);
	answer_all(c);
	ttmon_parts_each(c, finish);
	c->direct = false;
	err = ttmon_publish_close(&c->publish);
	err = err ? err : parts_err;
	if (c->dumper > 0)
		waitpid(c->dumper, NULL, 0);
	if (c->opts->dump_db) {
		err2 = ttmon_daemon_write_db(c, c->pipeline, end_ns, false);
		err = err ? err : err2;
	}
	if (c->opts->trace_out) {
		err2 = ttmon_daemon_write_trace(c, end_ns);
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
		for (size_t i = 0; i < c->nr_parts; i++)
			if (c->state[i] && c->parts[i]->summary)
				c->parts[i]->summary(c->state[i], stderr);
	}
	return err;
}

/* A path that cannot be written is reported before the program has run for hours, not after. */
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

static int set_up(struct ttmon_daemon *c)
{
	struct ttmon_bpf_cfg bpf = bpf_cfg(c);
	int err = check_output(c->opts->dump_db);

	if (!err)
		err = check_output(c->opts->trace_out);
	if (!err)
		err = check_output(c->opts->record);
	if (!err)
		err = check_output(c->opts->slots_out);
	if (!err)
		err = check_output(c->opts->memtrace_out);
	/*
	 * Started before anything is opened that it must not hold. Without it the end of the run takes longer.
	 */
	if (!err && c->mode == TTMON_CAPTURE_COMMAND && ttmon_closer_start(&c->closer))
		log_debug("cannot start a process that closes links");
	if (!err)
		err = make_helpers(c);
	/* Parts first: CMD inherits this process's environment. */
	if (!err)
		err = ttmon_parts_configure(c, &bpf);
	if (!err && c->mode == TTMON_CAPTURE_COMMAND) {
		/* Before rings are mapped, since the keeper is a fork. */
		err = ttmon_hold_new(c->opts->cmd, &c->hold);
		if (err)
			return log_error_r(err, "cannot start %s: %s", c->opts->cmd[0], strerror(-err));
		c->child = ttmon_hold_pid(c->hold);
	}
	if (!err)
		err = ttmon_loop_new(c);
	if (!err)
		err = make_bpf(c, &bpf);
	if (!err)
		err = make_pipeline(c);
	if (!err)
		err = make_discover(c);
	if (!err)
		err = ttmon_daemon_watch(c, ttmon_helpers_fd(c->helpers));
	if (!err)
		err = ttmon_parts_start(c);
	if (!err)
		err = start_targets(c);
	if (!err)
		err = ttmon_parts_go(c);
	return err;
}

static int exit_status(const struct ttmon_daemon *c, int err)
{
	if (c->mode != TTMON_CAPTURE_COMMAND || c->child > 0)
		return err ? 1 : 0;
	if (WIFSIGNALED(c->child_status))
		return 128 + WTERMSIG(c->child_status);
	return WEXITSTATUS(c->child_status) ? WEXITSTATUS(c->child_status) : err ? 1 : 0;
}

int ttmon_daemon_capture(const struct ttmon_opts *opts, const struct ttmon_part *const *parts, size_t nr_parts)
{
	struct ttmon_daemon c = {
		.opts = opts,
		.mode = opts->cmd	? TTMON_CAPTURE_COMMAND
			: opts->nr_pids ? TTMON_CAPTURE_PIDS
					: TTMON_CAPTURE_SYSTEM,
		.start_ns = ttmon_mono_ns(),
		.parts = parts,
		.nr_parts = nr_parts,
		.closer = -1,
		.epoll_fd = -1,
		.signal_fd = -1,
		.timer_fd = -1,
	};
	int err = set_up(&c), status;

	if (!err) {
		say_tracing(&c);
		if (c.hold) {
			err = ttmon_hold_go(c.hold, ttmon_daemon_is_program, &c);
			if (err) {
				log_error("cannot run %s: %s", opts->cmd[0], strerror(-err));
				ttmon_daemon_fini(&c);
				return err == -ENOENT ? 127 : 126; /* the exit status that a shell gives */
			}
			if (ttmon_hold_fd(c.hold) >= 0)
				err = ttmon_daemon_watch(&c, ttmon_hold_fd(c.hold));
		}
	}
	if (err) {
		ttmon_daemon_fini(&c);
		return 1;
	}
	ttmon_parts_each(&c, ready);
	while (!c.stop)
		ttmon_loop_turn(&c);
	ttmon_parts_each(&c, leave);
	err = finish(&c);
	status = exit_status(&c, err);
	ttmon_daemon_fini(&c);
	return status;
}
