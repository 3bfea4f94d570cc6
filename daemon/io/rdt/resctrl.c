// SPDX-License-Identifier: GPL-2.0-only
/*
 * resctrl.c: see resctrl.h. Processes, their groups, and timing. Cold thread.
 *
 *	process		waits --> has a group --> gone
 *			  ^           |
 *			  +-- lost ---+	   the mount went away, or the group was removed
 *
 * The queue is first come, first served, tried at most once a second: ENOSPC (no RMID is free) and
 * EBUSY (all that are free are in limbo, where the kernel looks once a second) will not be different
 * sooner. The first failure ends the round.
 *
 * By cgroup a group belongs to all traced processes that were in one cgroup when they were announced;
 * its RMID is reported as that of the first of them until the last one is gone: the use of each cannot
 * be separated. A process that changes its cgroup is not followed.
 */
#include "daemon/io/rdt/resctrl_int.h"
#include "lib/base/grow.h"

#include <fcntl.h>

#include "lib/os/clock.h"
#include "lib/os/log.h"

#define RETRY_NS    NSEC_PER_SEC
#define BUDGET_NS   (25 * NSEC_PER_MS) /* of a tick; ticks come every 100 ms */
#define DUE_EARLY   (5 * NSEC_PER_MS)  /* ticks jitter: a reading that is due this soon is made now */
#define RESCAN_NS   NSEC_PER_SEC
#define RESCAN_SLOW (10 * NSEC_PER_SEC) /* after the third rescan */

/* Processes */

static void free_proc(struct resctrl_proc *p)
{
	free(p->tids);
	free(p);
}

static struct resctrl_proc *find_proc(const struct ttmon_resctrl *r, uint32_t tgid, size_t *i)
{
	for (*i = 0; *i < r->nr_procs; (*i)++)
		if (r->procs[*i]->tgid == tgid)
			return r->procs[*i];
	return NULL;
}

static void drop_proc(struct ttmon_resctrl *r, int root, size_t i)
{
	struct resctrl_proc *p = r->procs[i];

	memmove(&r->procs[i], &r->procs[i + 1], (--r->nr_procs - i) * sizeof(*r->procs));
	if (p->group && !--p->group->members)
		ttmon_resctrl_group_end(r, root, p->group);
	free_proc(p);
}

static bool waits(const struct resctrl_proc *p)
{
	return !p->group && !p->foreign;
}

static uint32_t count_waiting(const struct ttmon_resctrl *r)
{
	uint32_t n = 0;

	for (size_t i = 0; i < r->nr_procs; i++)
		n += waits(r->procs[i]);
	return n;
}

/* 0: it has a group, or stays where it is; -ESRCH: it is gone; else it goes on waiting. */
static int assign(struct ttmon_resctrl *r, int root, struct resctrl_proc *p)
{
	_cleanup_free_ char *key = NULL;
	struct resctrl_place place;
	struct resctrl_group *g;
	int err = ttmon_resctrl_place(r, root, p->tgid, &place);

	if (err)
		return err;
	if (ttmon_resctrl_is_foreign(r, &place)) {
		p->foreign = true;
		r->foreign += ttmon_resctrl_threads(r, p->tgid);
		return 0;
	}
	key = r->cfg.by_cgroup ? ttmon_resctrl_cgroup(r, p->tgid) : NULL;
	g = ttmon_resctrl_group_find(r, place.ctrl, key);
	if (!g) {
		err = ttmon_resctrl_group_new(r, root, p, place.ctrl, key, &g);
		if (err)
			return err;
	}
	g->members++;
	p->group = g;
	/* The end of a process is reported in time; threads that could not be listed are searched again. */
	if (ttmon_resctrl_move(r, root, p) == -ENODEV)
		ttmon_resctrl_group_lose(r, g);
	return 0;
}

static bool is_full(int err)
{
	return err == -ENOSPC || err == -EBUSY;
}

/* A process stays without an RMID for now. */
static void note_failure(struct ttmon_resctrl *r, struct resctrl_proc *p, int err)
{
	r->queue_err = err;
	if (is_full(err)) {
		if (p->told_none)
			return;
		p->told_none = true;
		r->exhausted++;
		ttmon_resctrl_tell(r, TTMON_RMID_NONE, 0, p->tgid, p->start_ns);
		if (!r->told_exhausted)
			log_warn("resctrl: %s: process %u and those after it wait for one",
				 err == -EBUSY ? "all free RMIDs are in limbo" : "no RMID is free", p->tgid);
		r->told_exhausted = true;
		return;
	}
	snprintf(r->failed, sizeof(r->failed), "no group could be made for process %u: %s", p->tgid, strerror(-err));
	if (!r->told_failed)
		log_warn("resctrl: %s; trying again each second", r->failed);
	r->told_failed = true;
}

/*
 * Tries those that wait, in order, until one must go on waiting. False: the time was up before that.
 */
static bool retry(struct ttmon_resctrl *r, int root, uint64_t until_ns)
{
	for (size_t i = 0; i < r->nr_procs;) {
		struct resctrl_proc *p = r->procs[i];
		int err;

		if (!waits(p)) {
			i++;
			continue;
		}
		err = assign(r, root, p);
		if (err == -ESRCH) {
			drop_proc(r, root, i);
		} else if (err) {
			note_failure(r, p, err);
			/* An error of this process alone must not keep the others waiting for ever. */
			if (!is_full(err)) {
				memmove(&r->procs[i], &r->procs[i + 1], (r->nr_procs - i - 1) * sizeof(*r->procs));
				r->procs[r->nr_procs - 1] = p;
			}
			return true;
		} else {
			i++;
		}
		r->failed[0] = '\0';
		r->queue_err = 0;
		if (!ttmon_before(ttmon_mono_ns(), until_ns))
			return false;
	}
	return true;
}

static void set_reason(struct ttmon_resctrl *r)
{
	uint32_t waiting = count_waiting(r), unassigned = 0;

	for (size_t i = 0; i < r->nr_groups; i++)
		unassigned += r->groups[i]->unassigned;
	r->reason[0] = '\0';
	if (r->away)
		snprintf(r->reason, sizeof(r->reason), "resctrl is no longer mounted at %.160s", r->root);
	else if (r->failed[0])
		snprintf(r->reason, sizeof(r->reason), "%s", r->failed);
	else if (waiting && is_full(r->queue_err))
		snprintf(r->reason, sizeof(r->reason), "%s: %u processes wait for one",
			 r->queue_err == -EBUSY ? "all free RMIDs are in limbo" : "out of RMIDs", waiting);
	else if (unassigned)
		snprintf(r->reason, sizeof(r->reason), "%u groups have no bandwidth counter%s", unassigned,
			 !r->assigned_counters ? ""
			 : r->by_hand	       ? ": they are assigned by hand (info/L3_MON/mbm_assign_on_mkdir is 0)"
					       : ": the hardware has too few to assign (info/L3_MON/num_mbm_cntrs)");
}

void ttmon_resctrl_proc(struct ttmon_resctrl *r, uint32_t tgid, uint64_t start_ns)
{
	_cleanup_close_ int root = r->away ? -1 : ttmon_resctrl_open_root(r);
	bool queue = count_waiting(r) > 0;
	struct resctrl_proc *p;
	size_t i;
	int err;

	p = find_proc(r, tgid, &i);
	/* A target of --pid is reported before its start is known. */
	if (p && (!start_ns || !p->start_ns || p->start_ns == start_ns)) {
		p->start_ns = p->start_ns ? p->start_ns : start_ns;
		return;
	}
	if (p)
		drop_proc(r, root, i); /* its end was not reported */
	if (r->nr_procs == RESCTRL_MAX_PROCS || TTMON_GROW(r->procs, r->procs_cap, r->nr_procs + 1, 64))
		goto none;
	p = calloc(1, sizeof(*p));
	if (!p)
		goto none;
	p->tgid = tgid;
	p->start_ns = start_ns;
	r->procs[r->nr_procs++] = p;
	if (root < 0)
		goto out; /* the next tick reports it */
	/* First come, first served. */
	err = queue ? r->queue_err : assign(r, root, p);
	if (err == -ESRCH)
		drop_proc(r, root, r->nr_procs - 1);
	else if (err)
		note_failure(r, p, err);
out:
	set_reason(r);
	return;
none:
	r->exhausted++;
	ttmon_resctrl_tell(r, TTMON_RMID_NONE, 0, tgid, start_ns);
	set_reason(r);
}

void ttmon_resctrl_exit(struct ttmon_resctrl *r, uint32_t tgid)
{
	size_t i;

	if (find_proc(r, tgid, &i)) {
		_cleanup_close_ int root = r->away ? -1 : ttmon_resctrl_open_root(r);

		drop_proc(r, root, i);
		set_reason(r);
	}
}

/* The mount went away or came back. Its groups went with it in either case. */
static bool check_mount(struct ttmon_resctrl *r, int root)
{
	char why[256];

	/* An error of this process, not of the mount. */
	if (root == -EMFILE || root == -ENFILE || root == -ENOMEM)
		return false;
	if (root < 0) {
		if (!r->away)
			log_warn("resctrl: no longer mounted at %s: no RMIDs until it is back", r->root);
		r->away = true;
		for (size_t i = 0; i < r->nr_procs; i++)
			r->procs[i]->foreign = false;
		while (r->nr_groups)
			ttmon_resctrl_group_lose(r, r->groups[0]);
		return false;
	}
	if (!r->away)
		return true;
	if (ttmon_resctrl_limits(r, root, why, sizeof(why)))
		return false;
	log_info("resctrl: mounted at %s again", r->root);
	ttmon_resctrl_clean(r, root); /* the mount may only have been hidden, with our groups in it */
	ttmon_resctrl_tell_limits(r);
	r->away = r->recheck = false;
	r->failed[0] = '\0';
	r->retry_ns = 0;
	return true;
}

/*
 * After a group was found missing: resctrl may have been mounted again between two checks, with other
 * options.
 */
static void recheck(struct ttmon_resctrl *r, int root)
{
	bool hw_ids = r->hw_ids;
	uint32_t max_rmid = r->max_rmid;
	char why[256];

	for (size_t i = 0; i < r->nr_groups;) {
		char path[RESCTRL_PATH];

		ttmon_resctrl_path(r->groups[i], "", path, sizeof(path));
		if (faccessat(root, path, F_OK, AT_SYMLINK_NOFOLLOW))
			ttmon_resctrl_group_lose(r, r->groups[i]);
		else
			i++;
	}
	r->recheck = false;
	if (!ttmon_resctrl_limits(r, root, why, sizeof(why)) && (hw_ids != r->hw_ids || max_rmid != r->max_rmid))
		ttmon_resctrl_tell_limits(r);
}

/* Moves threads that were created while their creators were moved. */
static void rescan(struct ttmon_resctrl *r, int root, uint64_t now_ns)
{
	uint64_t until_ns = ttmon_mono_ns() + r->budget_ns / 4;

	for (size_t i = 0; i < r->nr_procs && ttmon_before(ttmon_mono_ns(), until_ns); i++) {
		struct resctrl_proc *p = r->procs[i];

		if (!p->group || ttmon_before(now_ns, p->rescan_ns))
			continue;
		p->rescan_ns = now_ns + (p->rescans++ < 3 ? RESCAN_NS : RESCAN_SLOW);
		if (ttmon_resctrl_move(r, root, p) == -ENODEV)
			ttmon_resctrl_group_lose(r, p->group);
	}
}

/* Makes the readings that are due, in turn, as far as time allows; at least one. */
static void read_due(struct ttmon_resctrl *r, int root, uint64_t now_ns, uint64_t until_ns)
{
	size_t n = r->nr_groups;

	for (size_t turn = 0; turn < n && r->nr_groups; turn++) {
		struct resctrl_group *g;

		if (r->cursor >= r->nr_groups)
			r->cursor = 0;
		g = r->groups[r->cursor];
		if (!g->due_ns)
			g->due_ns = now_ns + r->period_ns; /* its baseline was just read */
		if (ttmon_before(now_ns + DUE_EARLY, g->due_ns)) {
			r->cursor++;
			continue;
		}
		r->cursor++;
		if (!ttmon_before(now_ns, g->due_ns + r->period_ns)) {
			r->skipped += (now_ns - g->due_ns) / r->period_ns;
			g->due_ns = now_ns;
		}
		g->due_ns += r->period_ns;
		if (ttmon_resctrl_read(r, root, g) == -ENODEV)
			ttmon_resctrl_group_lose(r, g);
		if (!ttmon_before(ttmon_mono_ns(), until_ns))
			break;
	}
}

void ttmon_resctrl_tick(struct ttmon_resctrl *r, uint64_t now_ns)
{
	_cleanup_close_ int root = ttmon_resctrl_open_root(r);
	uint64_t until_ns = ttmon_mono_ns() + r->budget_ns;

	if (check_mount(r, root)) {
		if (r->recheck)
			recheck(r, root);
		if (!ttmon_before(now_ns, r->retry_ns) && count_waiting(r))
			r->retry_ns = now_ns + (retry(r, root, until_ns) ? RETRY_NS : 0);
		ttmon_resctrl_look(r, root, now_ns);
		read_due(r, root, now_ns, until_ns);
		rescan(r, root, now_ns);
	}
	set_reason(r);
}

void ttmon_resctrl_get_info(const struct ttmon_resctrl *r, struct ttmon_resctrl_info *ret)
{
	*ret = (struct ttmon_resctrl_info){
		.max_rmid = r->max_rmid,
		.groups = (uint32_t)r->nr_groups,
		.waiting = count_waiting(r),
		.exhausted = r->exhausted,
		.readings = r->readings,
		.failed_readings = r->failed_readings,
		.foreign = r->foreign,
		.skipped = r->skipped,
		.lost = r->lost,
		.assigned = r->assigned,
		.telemetry_has = r->telemetry_has,
		.hw_ids = r->hw_ids,
		.reason = r->reason,
	};
	memcpy(ret->telemetry, r->telemetry, sizeof(ret->telemetry));
}

/* Life */

static int open_first(struct ttmon_resctrl *r, int *ret, char *why, size_t n)
{
	_cleanup_close_ int root = -1;
	int err;

	/* A root elsewhere may be any folder: used by tests. */
	r->need_magic = !strcmp(r->root, RESCTRL_DEFAULT);
	root = ttmon_resctrl_open_root(r);
	if (root < 0) {
		if (access(r->root, F_OK) && r->need_magic)
			snprintf(why, n,
				 "this machine has no resctrl: no RDT in its CPU, or no CONFIG_X86_CPU_RESCTRL");
		else
			snprintf(why, n, "resctrl is not mounted at %s: mount -t resctrl resctrl %s", r->root, r->root);
		return -ENODEV;
	}
	err = ttmon_resctrl_limits(r, root, why, n);
	if (!err)
		*ret = TAKE_FD(root);
	return err;
}

int ttmon_resctrl_check(const char *root, char *why, size_t n)
{
	struct ttmon_resctrl r = { 0 };
	_cleanup_close_ int fd = -1;
	int err;

	r.root = strdup(root ? root : RESCTRL_DEFAULT);
	if (!r.root)
		return -ENOMEM;
	err = open_first(&r, &fd, why, n);
	free(r.root);
	return err;
}

TTMON_FREEP(ttmon_resctrl_freep, struct ttmon_resctrl, ttmon_resctrl_free);

int ttmon_resctrl_new(const struct ttmon_resctrl_cfg *cfg, struct ttmon_resctrl **ret)
{
	_cleanup_(ttmon_resctrl_freep) struct ttmon_resctrl *r = calloc(1, sizeof(*r));
	unsigned int hz = cfg->hz ? MIN(cfg->hz, 10U) : 4;
	_cleanup_close_ int root = -1;
	char why[256];
	int err;

	if (!r)
		return -ENOMEM;
	r->cfg = *cfg;
	r->period_ns = NSEC_PER_SEC / hz;
	r->budget_ns = BUDGET_NS;
	r->root = strdup(cfg->root ? cfg->root : RESCTRL_DEFAULT);
	r->proc_root = strdup(cfg->proc_root ? cfg->proc_root : "/proc");
	if (!r->root || !r->proc_root)
		return -ENOMEM;
	err = ttmon_resctrl_prefix(r);
	if (err)
		return err;
	err = open_first(r, &root, why, sizeof(why));
	if (err)
		return log_error_r(err, "%s", why);
	ttmon_resctrl_clean(r, root);
	ttmon_resctrl_tell_limits(r);
	*ret = TAKE_PTR(r);
	return 0;
}

/* Facts are not sent any more: their receiver may be gone. */
void ttmon_resctrl_free(struct ttmon_resctrl *r)
{
	if (!r)
		return;
	if (r->nr_groups) {
		_cleanup_close_ int root = ttmon_resctrl_open_root(r);

		for (size_t i = 0; root >= 0 && i < r->nr_groups; i++)
			ttmon_resctrl_remove(r, root, r->groups[i]);
	}
	for (size_t i = 0; i < r->nr_groups; i++)
		ttmon_resctrl_group_free(r->groups[i]);
	for (size_t i = 0; i < r->nr_procs; i++)
		free_proc(r->procs[i]);
	free(r->groups);
	free(r->procs);
	free(r->root);
	free(r->proc_root);
	free(r);
}
