// SPDX-License-Identifier: GPL-2.0-only
/*
 * replay.c: --replay: a recording through the same pipeline, without a hot thread: all of it at once
 * or, if it is served, at its original pace, so that a scraper sees the figures of that time. A served
 * replay stays until it is interrupted.
 */
#include "daemon/run/daemon_int.h"
#include "daemon/run/summary.h"
#include "lib/os/clock.h"

struct ttmon_replay {
	struct ttmon_rec_reader *reader;
	uint64_t began_ns;  /* time of our clock */
	uint64_t offset_ns; /* added to our clock it gives the recording's time */
	uint64_t end_ns, dropped;
	int state; /* as returned by ttmon_rec_read(): 1 while there is more */
};

static int open_reader(const char *path, struct ttmon_rec_reader **ret)
{
	int err = ttmon_rec_reader_open(path, ret);

	if (err)
		log_error("cannot replay %s: %s", path,
			  err == -EBADMSG	    ? "not a recording of ttmond"
			  : err == -EPROTONOSUPPORT ? "recorded by another version"
						    : strerror(-err));
	return err;
}

static void say_end(const struct ttmon_daemon *c, const struct ttmon_replay *r)
{
	if (r->state == -ENODATA)
		log_warn("%s was cut off: replayed what is there", c->opts->replay);
	else if (r->state < 0)
		log_error("%s is damaged: replayed up to there", c->opts->replay);
	if (r->dropped)
		log_warn("%llu records are missing in %s", (unsigned long long)r->dropped, c->opts->replay);
}

static bool is_served(const struct ttmon_opts *o)
{
	return o->socket || o->nr_listen;
}

static void feed(struct ttmon_daemon *c, uint64_t until_ns)
{
	struct ttmon_replay *r = c->replay;

	r->state = ttmon_rec_replay(r->reader, c->pipeline, until_ns, &r->end_ns, &r->dropped);
	c->replay_ns = r->end_ns;
	if (r->state != 1) {
		say_end(c, r);
		if (is_served(c->opts))
			log_info("%s is replayed: its last figures stay until interrupted", c->opts->replay);
	}
}

void ttmon_replay_tick(struct ttmon_daemon *c)
{
	if (c->replay->state == 1)
		feed(c, ttmon_mono_ns() + c->replay->offset_ns);
}

static int make_pipeline(struct ttmon_daemon *c)
{
	const struct ttmon_opts *o = c->opts;
	struct ttmon_pipeline_cfg cfg = {
		.nr_cpus = ttmon_rec_reader_cpus(c->replay->reader),
		.slots.window = o->window,
		.usage.linger_ns = o->linger_s * NSEC_PER_SEC,
		.history = { .keep_all = true,
			     .max_events = o->max_events,
			     .max_allocations = o->max_allocations,
			     .live = ttmon_opts_live(o) },
		.timeline = { .max_items = o->max_events ? o->max_events : TTMON_TIMELINE_RUN },
	};
	int err = ttmon_publish_open(&c->publish, o, cfg.nr_cpus);

	if (!err)
		err = ttmon_daemon_segment(c);
	if (err)
		return err;
	err = ttmon_pipeline_new(&cfg, ttmon_publish_slot, &c->publish, &c->pipeline);
	return err ? log_error_r(err, "cannot make the pipeline: %s", strerror(-err)) : 0;
}

static int serve(struct ttmon_daemon *c)
{
	int err = ttmon_loop_new(c);

	if (!err)
		err = ttmon_parts_start(c);
	if (err)
		return err;
	/* Reads up to the first watermark, which has the begin of the recording. */
	feed(c, 0);
	c->replay->offset_ns = c->replay->end_ns - ttmon_mono_ns();
	log_info("replaying %s", c->opts->replay);
	while (!c->stop)
		ttmon_loop_turn(c);
	return 0;
}

static int write_results(struct ttmon_daemon *c)
{
	const struct ttmon_opts *o = c->opts;
	int err = ttmon_publish_close(&c->publish), err2;

	if (o->dump_db) {
		err2 = ttmon_daemon_write_db(c, c->pipeline, c->replay_ns, c->replay->state || c->replay->dropped);
		err = err ? err : err2;
	}
	if (o->trace_out) {
		err2 = ttmon_daemon_write_trace(c, c->replay_ns);
		err = err ? err : err2;
	}
	if (!o->quiet)
		ttmon_summary(stderr, c->pipeline, o->trace_only, c->replay_ns);
	return err;
}

int ttmon_daemon_replay(const struct ttmon_opts *opts, const struct ttmon_part *const *parts, size_t nr_parts)
{
	struct ttmon_replay r = { .state = 1 };
	struct ttmon_daemon c = {
		.opts = opts,
		.start_ns = ttmon_mono_ns(),
		.parts = parts,
		.nr_parts = nr_parts,
		.replay = &r,
		.closer = -1,
		.epoll_fd = -1,
		.signal_fd = -1,
		.timer_fd = -1,
	};
	int err = open_reader(opts->replay, &r.reader);

	if (!err)
		err = make_pipeline(&c);
	if (!err && is_served(opts))
		err = serve(&c);
	else if (!err)
		feed(&c, UINT64_MAX);
	if (!err) {
		ttmon_pipeline_finish(c.pipeline, c.replay_ns);
		err = write_results(&c);
	}
	ttmon_daemon_fini(&c);
	ttmon_rec_reader_free(r.reader);
	return err || r.state < 0 ? 1 : 0;
}
