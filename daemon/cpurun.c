// SPDX-License-Identifier: GPL-2.0-only
/*
 * cpurun.c: the cold side of who used the machine: which backend gives RMIDs, CPUs that come and go, what is odd. The hot thread reads
 * the CPUs' states itself (hot.c).
 */
#include "util/clock.h"

#include "capture.h"

#define REFRESH_TICKS 10

struct ttmon_cpurun {
	struct ttmon_run *run;
	struct ttmon_cpustate *state;
	struct ttmon_rmids *rmids;
	uint64_t *online;
	size_t words;
	bool started;
};

static struct ttmon_rmids_cfg rmids_cfg(const struct ttmon_run *c)
{
	return (struct ttmon_rmids_cfg){
		.wanted = c->opts->rmid,
		.resctrl_root = c->opts->resctrl_root,
		.by_cgroup = c->opts->rmid_by_cgroup,
		.rdt_hz = c->opts->rdt_hz,
		.module_system = c->opts->rmid_events,
		.proc_root = c->opts->proc_root,
	};
}

int ttmon_cpurun_choose(const struct ttmon_run *c, struct ttmon_bpf_cfg *cfg)
{
	struct ttmon_rmids_cfg rmids = rmids_cfg(c);
	char why[256];
	int err;

	if (!c->opts->cpu)
		return 0;
	cfg->cpu = true;
	err = ttmon_rmids_choose(&rmids, &cfg->rmid, why, sizeof(why));
	if (err)
		return log_error_r(err, "%s", why);
	cfg->max_rmid = ttmon_rmids_max(cfg->rmid);
	return 0;
}

int ttmon_cpurun_new(struct ttmon_run *c, enum ttmon_rmid_backend backend, struct ttmon_cpurun **ret)
{
	struct ttmon_rmids_cfg cfg = rmids_cfg(c);
	struct ttmon_cpurun *r;
	const void *states;
	size_t stride;
	int err;

	states = ttmon_bpf_cpu_states(c->bpf, &stride);
	if (!states)
		return -ENODATA;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->run = c;
	r->words = ttmon_bpf_cpus(c->bpf) / 64 + 1;
	r->online = calloc(r->words, sizeof(*r->online));
	err = r->online ? ttmon_cpustate_new(states, stride, ttmon_bpf_cpus(c->bpf), &r->state) : -ENOMEM;
	if (!err) {
		cfg.fact = ttmon_cpurun_fact;
		cfg.ctx = c;
		err = ttmon_rmids_new(&cfg, backend, c->bpf, &r->rmids);
	}
	if (err) {
		ttmon_cpurun_free(r);
		return err;
	}
	*ret = r;
	return 0;
}

/* Until the hot thread is there and after it has gone nobody takes facts. */
void ttmon_cpurun_fact(void *ctx, const void *rec, size_t size)
{
	struct ttmon_run *c = ctx;

	if (c->hot)
		ttmon_hot_fact(c->hot, rec, size);
}

struct ttmon_cpustate *ttmon_cpurun_state(const struct ttmon_cpurun *r)
{
	return r ? r->state : NULL;
}

static void refresh(struct ttmon_cpurun *r)
{
	ttmon_bpf_cpus_refresh(r->run->bpf, r->online, r->words);
	ttmon_cpustate_online(r->state, r->online);
}

/* What runs already says nothing of itself until its first probed call. */
static void add_target(void *ctx, uint32_t tgid)
{
	struct ttmon_cpurun *r = ctx;

	ttmon_rmids_proc(r->rmids, tgid, 0);
}

void ttmon_cpurun_start(struct ttmon_cpurun *r)
{
	const char *why;

	if (!r)
		return;
	refresh(r);
	ttmon_rmids_start(r->rmids);
	if (r->run->mode == TTMON_CAPTURE_PIDS)
		ttmon_bpf_each_pid(r->run->bpf, add_target, r);
	r->started = true;
	if (!ttmon_bpf_has_counters(r->run->bpf, &why))
		log_info("CPU time without counters: %s", why);
}

void ttmon_cpurun_request(struct ttmon_cpurun *r, const struct ttmon_request *req)
{
	if (!r)
		return;
	if (req->kind == TTMON_REQ_PROC)
		ttmon_rmids_proc(r->rmids, req->tgid, req->start_ns);
	else if (req->kind == TTMON_REQ_EXIT)
		ttmon_rmids_exit(r->rmids, req->tgid);
}

void ttmon_cpurun_tick(struct ttmon_cpurun *r)
{
	if (!r || !r->started)
		return;
	ttmon_rmids_tick(r->rmids, ttmon_mono_ns());
	if (!(r->run->ticks % REFRESH_TICKS))
		refresh(r);
}

bool ttmon_cpurun_info(const struct ttmon_cpurun *r, struct ttmon_rmids_info *ret)
{
	if (r)
		ttmon_rmids_get_info(r->rmids, ret);
	return r != NULL;
}

void ttmon_cpurun_free(struct ttmon_cpurun *r)
{
	if (!r)
		return;
	ttmon_rmids_free(r->rmids);
	ttmon_cpustate_free(r->state);
	free(r->online);
	free(r);
}
