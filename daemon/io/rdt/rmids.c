// SPDX-License-Identifier: GPL-2.0-only
/*
 * rmids.c: chooses the backend for RMIDs, and does its periodic work. Cold thread.
 *
 * A module is known by its tracepoints: the formats in tracefs must have the fields that our programs
 * take for their arguments (names, sizes, order), or they are left alone. Ours reports its units in a
 * procfs file (kmod/PROTOCOL.md), and requests there to be released:
 *
 *	echo release > /proc/ttmon_rmid -> "released 1" -> our links go within a second -> rmmod works
 */
#include "daemon/io/rdt/rmids_int.h"

#include <fcntl.h>

#include <ttmon/rmid_alloc.h>

#include "lib/os/clock.h"
#include "lib/os/log.h"

#define CHECK_NS     NSEC_PER_SEC
#define RETRY_MAX_NS (16 * NSEC_PER_SEC)

struct ttmon_rmids {
	struct ttmon_rmids_cfg cfg;
	enum ttmon_rmid_backend backend;
	struct ttmon_bpf *bpf;
	struct ttmon_resctrl *resctrl;
	struct ttmon_rmids_units units;
	char prefix[64];
	char reason[512];
	uint64_t next_check_ns;
	uint64_t lost_tasks, lost_rmids; /* of ttmon_cpu_stat, when processes were last reported again */
	uint64_t seen_exhausted;	 /* of the pool, after the last report */
	struct ttmon_rmid_counts counts;
	uint64_t dumps;
	uint64_t retry_ns, next_retry_ns; /* for processes without an RMID */
	uint32_t without;
	bool attached;
};

/* ---- choice ---- */

int ttmon_rmids_choose(const struct ttmon_rmids_cfg *cfg, enum ttmon_rmid_backend *ret, char *why, size_t n)
{
	char prefix[64], text[512];
	int err;

	switch (cfg->wanted) {
	case TTMON_RMID_MODULE:
		if (ttmon_rmids_find_module(cfg, prefix, sizeof(prefix), why, n))
			return -ENODEV;
		break;
	case TTMON_RMID_RESCTRL:
		err = ttmon_resctrl_check(cfg->resctrl_root, why, n);
		if (err)
			return err;
		break;
	case TTMON_RMID_AUTO:
		*ret = TTMON_RMID_EMULATED;
		err = ttmon_rmids_find_module(cfg, prefix, sizeof(prefix), text, sizeof(text));
		if (err == -EPROTO)
			log_warn("%s, continuing without it", text);
		if (!err)
			*ret = TTMON_RMID_MODULE;
		else if (!ttmon_resctrl_check(cfg->resctrl_root, text, sizeof(text)))
			*ret = TTMON_RMID_RESCTRL;
		return 0;
	default:
		break;
	}
	*ret = cfg->wanted;
	return 0;
}

/* TTMOND_MAX_RMID lowers it, to test what happens when none are left. */
uint32_t ttmon_rmids_max(enum ttmon_rmid_backend backend)
{
	const char *env = getenv("TTMOND_MAX_RMID");
	struct ttmon_rmids_units u;
	uint64_t v;

	ttmon_rmids_cpuid(&u);
	if (backend == TTMON_RMID_EMULATED)
		u.max_rmid = MIN(u.max_rmid, TTMON_RMID_POOL - 1U);
	if (env && ttmon_rmids_number(env, 1, u.max_rmid, &v))
		u.max_rmid = (uint32_t)v;
	return u.max_rmid;
}

int ttmon_rmids_new(const struct ttmon_rmids_cfg *cfg, enum ttmon_rmid_backend backend, struct ttmon_bpf *bpf,
		    struct ttmon_rmids **ret)
{
	struct ttmon_rmids *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->cfg = *cfg;
	r->backend = backend;
	r->bpf = bpf;
	*ret = r;
	return 0;
}

void ttmon_rmids_free(struct ttmon_rmids *r)
{
	if (!r)
		return;
	if (r->backend == TTMON_RMID_MODULE)
		ttmon_bpf_module_detach(r->bpf);
	ttmon_resctrl_free(r->resctrl);
	free(r);
}

/* ---- reports ---- */

static void tell_info(struct ttmon_rmids *r)
{
	const struct ttmon_ev_rmid_info e = {
		.h = { .ts_ns = ttmon_mono_ns(), .kind = TTMON_EV_RMID_INFO, .cpu = TTMON_CPU_DAEMON },
		.backend = r->backend,
		.max_rmid = r->units.max_rmid,
		.scale = r->units.scale,
		.width = r->units.width,
		.flags = r->units.has,
	};

	if (r->cfg.fact)
		r->cfg.fact(r->cfg.ctx, &e, sizeof(e));
}

/* Records lost so far, of kinds about processes and RMIDs. */
static void count_lost(const struct ttmon_rmids *r, uint64_t *tasks, uint64_t *rmids)
{
	*tasks = *rmids = 0;
	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(r->bpf); cpu++) {
		const struct ttmon_cpu_stat *st = ttmon_bpf_stat(r->bpf, cpu);

		*tasks += __atomic_load_n(&st->lost[TTMON_EV_TASK], __ATOMIC_RELAXED);
		*rmids += __atomic_load_n(&st->lost[TTMON_EV_RMID], __ATOMIC_RELAXED);
	}
}

/*
 * Reports all processes once more. This repairs losses up to now; losses meanwhile show the next time.
 */
static void tell_tasks(struct ttmon_rmids *r)
{
	int n;

	count_lost(r, &r->lost_tasks, &r->lost_rmids);
	n = ttmon_bpf_each_task(r->bpf);
	if (n < 0) {
		if (n != -ENOENT)
			log_warn("cannot list the processes there are: %s, continuing without", strerror(-n));
		return;
	}
	r->dumps++;
	if (n && !r->without)
		log_info("RMIDs: all %u are in use, %d processes have none: they are tried again", r->units.max_rmid,
			 n);
	r->without = (uint32_t)n;
	if (r->backend == TTMON_RMID_EMULATED && !ttmon_bpf_rmid_counts(r->bpf, &r->counts))
		r->seen_exhausted = r->counts.exhausted;
}

/* ---- the module is loaded and unloaded ---- */

static void dump(struct ttmon_rmids *r)
{
	static const char cmd[] = "dump\n";
	_cleanup_close_ int fd = -1;

	if (!r->units.file[0])
		return;
	fd = open(r->units.file, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, cmd, strlen(cmd)) < 0) {
		log_warn("cannot have the RMID module tell what there is (%s): %s, continuing without the RMIDs of "
			 "processes that began before",
			 r->units.file, strerror(errno));
		return;
	}
	r->dumps++;
}

static void module_attach(struct ttmon_rmids *r)
{
	int err;

	if (ttmon_rmids_find_module(&r->cfg, r->prefix, sizeof(r->prefix), r->reason, sizeof(r->reason)))
		return;
	ttmon_rmids_read_units(&r->cfg, &r->units);
	if (r->units.released) {
		snprintf(r->reason, sizeof(r->reason), "the module asked to be let go");
		return;
	}
	err = ttmon_bpf_module_attach(r->bpf, r->prefix);
	if (err) {
		snprintf(r->reason, sizeof(r->reason), "cannot attach to the module's tracepoints: %s", strerror(-err));
		return;
	}
	r->attached = true;
	r->reason[0] = '\0';
	log_info("RMIDs: %s, %u", r->units.source, r->units.max_rmid);
	tell_info(r);
	dump(r);
}

/* Only our module can request to be released, and it cannot be unloaded while we are attached. */
static void module_check(struct ttmon_rmids *r)
{
	if (!r->attached) {
		module_attach(r);
		return;
	}
	ttmon_rmids_read_units(&r->cfg, &r->units);
	if (r->units.file[0] && !r->units.released)
		return;
	ttmon_bpf_module_detach(r->bpf);
	r->attached = false;
	snprintf(r->reason, sizeof(r->reason), "%s",
		 r->units.file[0] ? "the module asked to be let go" : "the module is gone");
	log_info("RMIDs: %s, continuing without", r->reason);
}

/* ---- */

void ttmon_rmids_start(struct ttmon_rmids *r)
{
	const struct ttmon_resctrl_cfg cfg = {
		.root = r->cfg.resctrl_root,
		.proc_root = r->cfg.proc_root,
		.by_cgroup = r->cfg.by_cgroup,
		.hz = r->cfg.rdt_hz,
		.fact = r->cfg.fact,
		.ctx = r->cfg.ctx,
	};
	int err;

	switch (r->backend) {
	case TTMON_RMID_EMULATED:
		r->units = (struct ttmon_rmids_units){ .max_rmid = ttmon_rmids_max(r->backend),
						       .scale = 1,
						       .width = TTMON_RMIDS_WIDTH };
		tell_info(r);
		break;
	case TTMON_RMID_MODULE:
		module_attach(r);
		if (!r->attached)
			log_warn("RMIDs: %s, continuing without", r->reason);
		break;
	case TTMON_RMID_RESCTRL:
		err = ttmon_resctrl_new(&cfg, &r->resctrl);
		if (err) {
			snprintf(r->reason, sizeof(r->reason), "cannot use resctrl: %s", strerror(-err));
			log_warn("%s, continuing without RMIDs", r->reason);
		}
		break;
	default:
		break;
	}
	tell_tasks(r);
	r->next_check_ns = ttmon_mono_ns() + CHECK_NS;
}

void ttmon_rmids_proc(struct ttmon_rmids *r, uint32_t tgid, uint64_t start_ns)
{
	if (r->resctrl)
		ttmon_resctrl_proc(r->resctrl, tgid, start_ns);
}

void ttmon_rmids_exit(struct ttmon_rmids *r, uint32_t tgid)
{
	if (r->resctrl)
		ttmon_resctrl_exit(r->resctrl, tgid);
}

/*
 * Emulated: a process got no RMID since the last time, or is still without, and one is free. Tried
 * less often while it does not help.
 */
static bool can_give(struct ttmon_rmids *r, uint64_t now_ns)
{
	if (r->backend != TTMON_RMID_EMULATED || ttmon_bpf_rmid_counts(r->bpf, &r->counts))
		return false;
	if (!r->without && r->counts.exhausted == r->seen_exhausted) {
		r->retry_ns = 0;
		return false;
	}
	if (!r->counts.ready || ttmon_before(now_ns, r->next_retry_ns))
		return false;
	r->retry_ns = r->retry_ns ? MIN(2 * r->retry_ns, RETRY_MAX_NS) : CHECK_NS;
	r->next_retry_ns = now_ns + r->retry_ns;
	return true;
}

void ttmon_rmids_tick(struct ttmon_rmids *r, uint64_t now_ns)
{
	uint64_t tasks, rmids;

	if (r->resctrl)
		ttmon_resctrl_tick(r->resctrl, now_ns);
	if (ttmon_before(now_ns, r->next_check_ns))
		return;
	r->next_check_ns = now_ns + CHECK_NS;
	if (r->backend == TTMON_RMID_MODULE)
		module_check(r);
	count_lost(r, &tasks, &rmids);
	if (r->attached && rmids != r->lost_rmids) {
		r->lost_rmids = rmids;
		dump(r);
	}
	/*
	 * A lost RMID record of our own can only be a FREE: an RMID whose record is lost when it is assigned
	 * is not assigned.
	 */
	if (tasks != r->lost_tasks || rmids != r->lost_rmids || can_give(r, now_ns))
		tell_tasks(r);
}

void ttmon_rmids_get_info(const struct ttmon_rmids *r, struct ttmon_rmids_info *ret)
{
	struct ttmon_resctrl_info x;

	*ret = (struct ttmon_rmids_info){
		.backend = r->backend,
		.source = r->backend == TTMON_RMID_MODULE ? r->units.source : "",
		.reason = r->reason,
		.max_rmid = r->units.max_rmid,
		.dumps = r->dumps,
		.attached = r->attached,
	};
	if (r->backend == TTMON_RMID_EMULATED) {
		ret->exhausted = r->counts.exhausted;
		if (r->without)
			ret->reason = "out of RMIDs";
	}
	if (r->backend == TTMON_RMID_MODULE)
		ret->exhausted = r->units.failed;
	if (!r->resctrl)
		return;
	ttmon_resctrl_get_info(r->resctrl, &x);
	ret->source = r->cfg.resctrl_root ? r->cfg.resctrl_root : "/sys/fs/resctrl";
	ret->reason = x.reason;
	ret->max_rmid = x.max_rmid;
	ret->groups = x.groups;
	ret->exhausted = x.exhausted;
	ret->readings = x.readings;
	ret->telemetry_has = x.telemetry_has;
	memcpy(ret->telemetry, x.telemetry, sizeof(ret->telemetry));
	ret->failed_readings = x.failed_readings;
}
