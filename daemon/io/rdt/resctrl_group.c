// SPDX-License-Identifier: GPL-2.0-only
/*
 * resctrl_group.c: the life of a group. Cold thread.
 *
 * Reported when a group is made, in this order: RMID_SET ALLOC, a reading (the baseline), and then
 * tasks are moved into it; when its last process is gone: a last reading, RMID_SET FREE, and then the
 * folder is removed. So all that the RMID counted lies between two readings, and a task that was not
 * traced before counts from its move on.
 *
 * RMIDs are the hardware's where mon_hw_id can be read (-o debug), else numbers of our own in
 * 1..max_rmid that stay with the group.
 */
#include "daemon/io/rdt/resctrl_int.h"
#include "lib/base/grow.h"

#include <fcntl.h>

#include "lib/os/clock.h"

void ttmon_resctrl_tell(const struct ttmon_resctrl *r, enum ttmon_rmid_op op, uint32_t rmid, uint32_t tgid,
			uint64_t start_ns)
{
	struct ttmon_ev_rmid e = {
		.h = { .kind = TTMON_EV_RMID_SET, .cpu = TTMON_CPU_DAEMON, .tgid = tgid },
		.start_ns = start_ns,
		.rmid = rmid,
		.op = op,
	};
	char path[PATH_MAX];
	_cleanup_close_ int fd = -1;
	ssize_t n = -1;

	snprintf(path, sizeof(path), "%s/%u/comm", r->proc_root, tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, e.comm, sizeof(e.comm) - 1);
	/* The kernel ends it with a newline, and the name may contain others. */
	if (n > 0 && e.comm[n - 1] == '\n')
		e.comm[n - 1] = '\0';
	e.when_ns = e.h.ts_ns = ttmon_mono_ns();
	r->cfg.fact(r->cfg.ctx, &e, sizeof(e));
}

void ttmon_resctrl_group_free(struct resctrl_group *g)
{
	if (g) {
		free(g->ctrl);
		free(g->key);
		free(g->packages);
		free(g);
	}
}

static void free_groupp(struct resctrl_group **g)
{
	ttmon_resctrl_group_free(*g);
}

static void forget_group(struct ttmon_resctrl *r, struct resctrl_group *g)
{
	for (size_t i = 0; i < r->nr_groups; i++) {
		if (r->groups[i] != g)
			continue;
		memmove(&r->groups[i], &r->groups[i + 1], (--r->nr_groups - i) * sizeof(*r->groups));
		r->cursor -= r->cursor > i;
		break;
	}
	ttmon_resctrl_group_free(g);
}

void ttmon_resctrl_group_lose(struct ttmon_resctrl *r, struct resctrl_group *g)
{
	r->lost++;
	r->recheck = true;
	ttmon_resctrl_tell(r, TTMON_RMID_FREE, g->rmid, g->tgid, g->start_ns);
	for (size_t i = 0; i < r->nr_procs; i++) {
		struct resctrl_proc *p = r->procs[i];

		if (p->group != g)
			continue;
		p->group = NULL;
		p->nr_tids = 0;
		p->rescan_ns = 0;
		p->rescans = 0;
	}
	forget_group(r, g);
}

void ttmon_resctrl_group_end(struct ttmon_resctrl *r, int root, struct resctrl_group *g)
{
	if (root >= 0)
		ttmon_resctrl_read(r, root, g);
	ttmon_resctrl_tell(r, TTMON_RMID_FREE, g->rmid, g->tgid, g->start_ns);
	if (root >= 0)
		ttmon_resctrl_remove(r, root, g);
	forget_group(r, g);
}

struct resctrl_group *ttmon_resctrl_group_find(const struct ttmon_resctrl *r, const char *ctrl, const char *key)
{
	for (size_t i = 0; key && i < r->nr_groups; i++) {
		struct resctrl_group *g = r->groups[i];

		if (g->key && !strcmp(g->key, key) && !strcmp(g->ctrl, ctrl))
			return g;
	}
	return NULL;
}

char *ttmon_resctrl_cgroup(const struct ttmon_resctrl *r, uint32_t tgid)
{
	char path[PATH_MAX], text[8192], *s;
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%u/cgroup", r->proc_root, tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return NULL;
	text[n] = '\0';
	s = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	if (!s)
		return NULL;
	s += *s == '\n' ? 4 : 3;
	return strndup(s, strcspn(s, "\n"));
}

int ttmon_resctrl_group_new(struct ttmon_resctrl *r, int root, const struct resctrl_proc *p, const char *ctrl,
			    const char *key, struct resctrl_group **ret)
{
	_cleanup_(free_groupp) struct resctrl_group *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	g->tgid = p->tgid;
	g->start_ns = p->start_ns;
	g->ctrl = strdup(ctrl);
	g->key = key ? strdup(key) : NULL;
	if (!g->ctrl || (key && !g->key))
		return -ENOMEM;
	snprintf(g->name, sizeof(g->name), "%s%u.%llu", r->prefix, p->tgid, (unsigned long long)p->start_ns);
	if (TTMON_GROW(r->groups, r->groups_cap, r->nr_groups + 1, 32))
		return -ENOMEM;
	err = ttmon_resctrl_make(r, root, g);
	if (err)
		return err;
	err = ttmon_resctrl_id(r, root, g, &g->rmid);
	if (err) {
		ttmon_resctrl_remove(r, root, g);
		return err;
	}
	ttmon_resctrl_tell(r, TTMON_RMID_ALLOC, g->rmid, g->tgid, g->start_ns);
	ttmon_resctrl_read(r, root, g);
	*ret = r->groups[r->nr_groups++] = TAKE_PTR(g);
	return 0;
}
