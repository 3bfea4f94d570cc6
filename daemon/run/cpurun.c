// SPDX-License-Identifier: GPL-2.0-only
/*
 * cpurun.c: the cold side of CPU time: the source of RMIDs, CPUs that come and go, notes on odd
 * events. The hot thread reads the CPUs' states itself (hot.c).
 */
#include "daemon/run/cpurun.h"

#include "lib/os/clock.h"

#define REFRESH_TICKS 10

struct ttmon_cpurun {
	struct ttmon_daemon *run;
	struct ttmon_cpustate *state;
	struct ttmon_rmids *rmids;
	uint64_t *online;
	size_t words;
	bool started;
};

static struct ttmon_rmids_cfg rmids_cfg(struct ttmon_daemon *c)
{
	const struct ttmon_opts *o = ttmon_daemon_opts(c);

	return (struct ttmon_rmids_cfg){
		.wanted = o->rmid,
		.resctrl_root = o->resctrl_root,
		.by_cgroup = o->rmid_by_cgroup,
		.rdt_hz = o->rdt_hz,
		.module_system = o->rmid_events,
		.proc_root = o->proc_root,
		.fact = ttmon_daemon_fact,
		.ctx = c,
	};
}

static int configure(struct ttmon_daemon *c, void **state, struct ttmon_bpf_cfg *cfg)
{
	struct ttmon_rmids_cfg rmids = rmids_cfg(c);
	char why[256];
	int err;

	(void)state;
	if (!ttmon_daemon_opts(c)->cpu)
		return 0;
	cfg->cpu = true;
	err = ttmon_rmids_choose(&rmids, &cfg->rmid, why, sizeof(why));
	if (err)
		return log_error_r(err, "%s", why);
	cfg->max_rmid = ttmon_rmids_max(cfg->rmid);
	return 0;
}

static void free_part(void *state)
{
	struct ttmon_cpurun *r = state;

	ttmon_rmids_free(r->rmids);
	ttmon_cpustate_free(r->state);
	free(r->online);
	free(r);
}

static int load(struct ttmon_daemon *c, void **state)
{
	struct ttmon_rmids_cfg cfg = rmids_cfg(c);
	struct ttmon_bpf *b = ttmon_daemon_bpf(c);
	struct ttmon_cpurun *r;
	const void *states;
	size_t stride;
	int err = 0;

	if (!ttmon_daemon_opts(c)->cpu)
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return log_error_r(-ENOMEM, "out of memory");
	r->run = c;
	r->words = ttmon_bpf_cpus(b) / 64 + 1;
	r->online = calloc(r->words, sizeof(*r->online));
	states = ttmon_bpf_cpu_states(b, &stride);
	if (!states)
		err = -ENODATA;
	if (!err)
		err = r->online ? ttmon_cpustate_new(states, stride, ttmon_bpf_cpus(b), &r->state) : -ENOMEM;
	if (!err)
		err = ttmon_rmids_new(&cfg, ttmon_daemon_rmid(c), b, &r->rmids);
	if (err) {
		free_part(r);
		return log_error_r(err, "cannot measure CPU time: %s", strerror(-err));
	}
	ttmon_daemon_set_cpus(c, r->state);
	*state = r;
	return 0;
}

static void refresh(struct ttmon_cpurun *r)
{
	ttmon_bpf_cpus_refresh(ttmon_daemon_bpf(r->run), r->online, r->words);
	ttmon_cpustate_online(r->state, r->online);
}

/* A process that already runs causes no event before its first probed call. */
static void add_target(void *ctx, uint32_t tgid)
{
	struct ttmon_cpurun *r = ctx;

	ttmon_rmids_proc(r->rmids, tgid, 0);
}

static int go(void *state)
{
	struct ttmon_cpurun *r = state;
	const char *why;

	refresh(r);
	ttmon_rmids_start(r->rmids);
	if (ttmon_daemon_mode(r->run) == TTMON_CAPTURE_PIDS)
		ttmon_bpf_each_pid(ttmon_daemon_bpf(r->run), add_target, r);
	r->started = true;
	if (!ttmon_bpf_has_counters(ttmon_daemon_bpf(r->run), &why))
		log_info("CPU time without counters: %s", why);
	return 0;
}

static void request(void *state, const struct ttmon_request *req)
{
	struct ttmon_cpurun *r = state;

	if (req->kind == TTMON_REQ_PROC)
		ttmon_rmids_proc(r->rmids, req->tgid, req->start_ns);
	else if (req->kind == TTMON_REQ_EXIT)
		ttmon_rmids_exit(r->rmids, req->tgid);
}

static void tick(void *state)
{
	struct ttmon_cpurun *r = state;

	if (!r->started)
		return;
	ttmon_rmids_tick(r->rmids, ttmon_mono_ns());
	if (!(ttmon_daemon_ticks(r->run) % REFRESH_TICKS))
		refresh(r);
}

bool ttmon_cpurun_info(const struct ttmon_daemon *c, struct ttmon_rmids_info *ret)
{
	const struct ttmon_cpurun *r = ttmon_daemon_part(c, &ttmon_part_cpu);

	if (r)
		ttmon_rmids_get_info(r->rmids, ret);
	return r != NULL;
}

/* Notes about odd events of RMIDs. Hot thread. */
static void ask(struct ttmon_asker *a, struct ttmon_pipeline *p)
{
	char note[TTMON_REQ_BODY];

	while (ttmon_rmid_note(ttmon_pipeline_rmid(p), note, sizeof(note)))
		ttmon_hot_note(a, note);
}

const struct ttmon_part ttmon_part_cpu = {
	.name = "cpu",
	.in = TTMON_IN_LIVE,
	.configure = configure,
	.load = load,
	.go = go,
	.request = request,
	.tick = tick,
	.free = free_part,
	.hot = { .ask = ask },
};
