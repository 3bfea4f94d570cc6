// SPDX-License-Identifier: GPL-2.0-only
/* main.c: ttmond. Options, limits, then a capture or a replay. */
#include <sys/resource.h>

#include "capture.h"

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

static int replay(const struct ttmon_opts *o)
{
	struct ttmon_pipeline_cfg cfg = {
		.slots.window = o->window,
		.history = { .keep_all = true, .max_events = o->max_events, .max_allocations = o->max_allocations },
		.timeline = { .max_items = o->max_events ? o->max_events : TTMON_TIMELINE_RUN },
	};
	struct ttmon_rec_reader *r = NULL;
	struct ttmon_pipeline *p = NULL;
	struct ttmon_publish publish;
	uint64_t end_ns = 0, dropped = 0;
	int err = ttmon_rec_reader_open(o->replay, &r), fed;

	if (err) {
		log_error("cannot replay %s: %s", o->replay,
			  err == -EBADMSG	    ? "not a recording of ttmond"
			  : err == -EPROTONOSUPPORT ? "recorded by another version"
						    : strerror(-err));
		return 1;
	}
	cfg.nr_cpus = ttmon_rec_reader_cpus(r);
	err = ttmon_publish_open(&publish, o, cfg.nr_cpus);
	if (err) {
		ttmon_rec_reader_free(r);
		return 1;
	}
	err = ttmon_pipeline_new(&cfg, ttmon_publish_slot, &publish, &p);
	if (err) {
		log_error("cannot make the pipeline: %s", strerror(-err));
		(void)!ttmon_publish_close(&publish);
		ttmon_rec_reader_free(r);
		return 1;
	}
	fed = ttmon_rec_replay(r, p, &end_ns, &dropped);
	if (fed == -ENODATA)
		log_warn("%s was cut off: replayed what is there", o->replay);
	else if (fed)
		log_error("%s is damaged: replayed up to there", o->replay);
	if (dropped)
		log_warn("%llu records are missing in %s", (unsigned long long)dropped, o->replay);
	ttmon_pipeline_finish(p, end_ns);
	err = ttmon_publish_close(&publish);
	if (o->dump_db) {
		int err2 = ttmon_write_db(o, p, end_ns, fed || dropped);

		err = err ? err : err2;
	}
	if (o->trace_out) {
		int err2 = ttmon_write_trace(o, p, end_ns);

		err = err ? err : err2;
	}
	if (!o->quiet)
		ttmon_summary(stderr, p, o->trace_only, end_ns);
	ttmon_pipeline_free(p);
	ttmon_rec_reader_free(r);
	return err || fed ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct ttmon_opts opts;
	int err = ttmon_opts_parse(argc, argv, &opts), status;

	if (err) {
		ttmon_opts_fini(&opts);
		return err > 0 ? 0 : 2;
	}
	raise_limits();
	status = opts.replay ? replay(&opts) : ttmon_run_capture(&opts);
	ttmon_opts_fini(&opts);
	return status;
}
