// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage.c: the counters of groups of processes (usage.h): the processes of the history and of
 * core/cpu, and the sweep over them. Hot thread, pure.
 *
 * For each process its figures at the last sweep are kept, by the place of the process in its table.
 * The difference to the present figures is added to its group. A table reports when a place is about
 * to be given to another process, and the last difference is added then. So nothing is counted twice.
 * Nothing is lost either if there is no memory for a group or for the figures: without a group a
 * process is counted in the nameless group, and without figures it is counted in the next sweep. A
 * process of the history that has not changed costs one comparison.
 *
 * Figures that describe the present (struct ttmon_usage_now) are summed again in each sweep.
 */
#include "daemon/core/usage/usage_int.h"

#define MAX_GROUPS 4096
#define LINGER_NS  (120 * NSEC_PER_SEC)

int ttmon_usage_new(const struct ttmon_usage_cfg *cfg, struct ttmon_usage **ret)
{
	struct ttmon_usage *u = calloc(1, sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->cfg.max_groups = cfg->max_groups ? cfg->max_groups : MAX_GROUPS;
	u->cfg.linger_ns = cfg->linger_ns ? cfg->linger_ns : LINGER_NS;
	if (ttmon_usage_groups_init(u) < 0) {
		ttmon_usage_free(u);
		return -ENOMEM;
	}
	*ret = u;
	return 0;
}

void ttmon_usage_free(struct ttmon_usage *u)
{
	if (!u)
		return;
	for (uint32_t i = 0; i < u->nr_mem; i++)
		free(u->mem[i].seen);
	free(u->mem);
	free(u->cpu);
	ttmon_usage_groups_fini(u);
	free(u);
}

static struct usage_name name_of(const char *comm, size_t max, uint64_t cgroup_id)
{
	struct usage_name name = { .cgroup_id = cgroup_id };

	memcpy(name.comm, comm, strnlen(comm, MIN(max, sizeof(name.comm) - 1)));
	return name;
}

/* Returns the group of this name, or the nameless group if there is no room for it. */
static struct usage_node *node_of(struct ttmon_usage *u, const struct usage_name *name, bool *refused)
{
	struct usage_node *node = ttmon_usage_get(u, name);

	if (node)
		return node;
	u->refused += !*refused;
	*refused = true;
	return &u->nameless;
}

/*
 * Returns the group of a process. While the process lives and keeps its name it stays in its group.
 */
static struct usage_node *settle(struct ttmon_usage *u, struct usage_node **of, const struct usage_name *name,
				 bool *refused)
{
	if (!*of || !ttmon_usage_is(u, *of, name))
		ttmon_usage_move(u, of, node_of(u, name, refused));
	u->nameless_used |= *of == &u->nameless;
	return *of;
}

/* Adds the increase of each figure to sums, and stores the figures in seen. */
static void gain(uint64_t *sums, const uint64_t *cur, uint64_t *seen, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		sums[i] += cur[i] - seen[i];
		seen[i] = cur[i];
	}
}

static struct ttmon_usage_group *gainer(struct ttmon_usage *u, struct usage_node *node)
{
	u->nameless_used |= node == &u->nameless;
	ttmon_usage_refresh(u, node);
	return ttmon_usage_at(u, node);
}

/* Fills in the first part of struct ttmon_usage_sums. Returns true if any figure is not 0. */
static bool figures_of(const struct ttmon_proc *p, struct ttmon_usage_sums *s)
{
	const uint64_t *v = (const uint64_t *)s;
	uint64_t any = 0;

	for (unsigned int m = 0; m < TTMON_METHOD_MAX; m++) {
		s->allocs[m] = p->by_method[m].allocs;
		s->alloc_bytes[m] = p->by_method[m].bytes;
		s->ends[m] = p->by_method[m].ends;
	}
	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
		for (unsigned int m = 0; m < TTMON_MEM_MAX; m++)
			s->xfer[d][m] = ttmon_xfer_settled(p->xfer, p->unsettled, p->proven, d, m);
	s->kernels = p->kernels;
	s->graphs = p->graphs;
	s->failed = p->failed;
	s->unknown_frees = p->unknown_frees;
	s->unmatched = ttmon_unmatched_settled(p->unmatched, p->unsettled);
	s->work = p->work;
	for (unsigned int k = 0; k < TTMON_WAIT_MAX; k++)
		for (unsigned int part = 0; part < TTMON_WAIT_PARTS; part++)
			s->wait_ns[k][part] = p->waits ? ttmon_wait_part_ns(&p->waits[k], part) : 0;
	for (size_t i = 0; i < MEM_SUMS; i++)
		any |= v[i];
	return any;
}

/*
 * Adds the increase of a process to `node`, or if that is NULL to the group of the name. Returns false
 * if there was no memory; then the next sweep adds it.
 */
static bool take_mem(struct ttmon_usage *u, struct usage_mem *m, const struct ttmon_proc *p, struct usage_node *node,
		     const struct usage_name *name)
{
	struct ttmon_usage_sums cur;
	struct ttmon_usage_group *g;

	if (!figures_of(p, &cur) && !m->seen)
		return true;
	if (!m->seen) {
		m->seen = calloc(MEM_SUMS + 1, sizeof(*m->seen));
		if (!m->seen)
			return false;
	}
	if (!memcmp(&cur, m->seen, MEM_SUMS * sizeof(*m->seen)))
		return true;
	g = gainer(u, node ? node : node_of(u, name, &m->refused));
	gain((uint64_t *)&g->sums, (const uint64_t *)&cur, m->seen, MEM_SUMS);
	/*
	 * If a process has changed its name, its old peak belongs to the old group. Only a new peak counts.
	 */
	if (p->pinned_peak_bytes > m->seen[MEM_SUMS])
		g->now.pinned_peak_bytes = MAX(g->now.pinned_peak_bytes, p->pinned_peak_bytes);
	m->seen[MEM_SUMS] = p->pinned_peak_bytes;
	g->mem = true;
	return true;
}

void ttmon_usage_leaving(struct ttmon_usage *u, const struct ttmon_proc *p)
{
	struct usage_name name = name_of(p->comm, TTMON_COMM_LEN, p->cgroup_id);
	uint64_t zeros[MEM_SUMS + 1] = { 0 };
	struct usage_mem none = { 0 }, *m = p->idx < u->nr_mem ? &u->mem[p->idx] : &none;
	uint64_t *seen = m->seen;

	if (!seen)
		m->seen = zeros;
	take_mem(u, m, p, NULL, &name);
	ttmon_usage_move(u, &m->node, NULL);
	free(seen);
	*m = (struct usage_mem){ 0 };
}

static const uint64_t *figures_of_cpu(const struct ttmon_cpu_proc *p, struct ttmon_usage_sums *s)
{
	s->cpu_ns = p->cpu_ns;
	s->switches = p->switches;
	memcpy(s->ctr, p->ctr, sizeof(s->ctr));
	s->mbm_total = p->mbm_total;
	s->mbm_local = p->mbm_local;
	return &s->cpu_ns;
}

static void take_cpu(struct ttmon_usage *u, struct usage_cpu *c, const struct ttmon_cpu_proc *p,
		     struct usage_node *node, const struct usage_name *name)
{
	struct ttmon_usage_sums s;
	const uint64_t *cur = figures_of_cpu(p, &s);
	struct ttmon_usage_group *g;

	if (!memcmp(cur, c->seen, sizeof(c->seen)))
		return;
	g = gainer(u, node ? node : node_of(u, name, &c->refused));
	gain(&g->sums.cpu_ns, cur, c->seen, CPU_SUMS);
	g->cpu = true;
}

static struct usage_name name_of_cpu(const struct ttmon_cpu_proc *p)
{
	if (p->cls == TTMON_ROW_KERNEL)
		return name_of("[kernel]", TTMON_COMM_LEN, 0);
	return name_of(p->comm, TTMON_COMM_LEN, p->cgroup_id);
}

void ttmon_usage_cpu_leaving(struct ttmon_usage *u, const struct ttmon_cpu_proc *p)
{
	struct usage_name name = name_of_cpu(p);
	struct usage_cpu none = { 0 }, *c = p->idx < u->nr_cpu ? &u->cpu[p->idx] : &none;

	take_cpu(u, c, p, NULL, &name);
	ttmon_usage_move(u, &c->node, NULL);
	*c = (struct usage_cpu){ 0 };
}

static void visit_mem(struct ttmon_usage *u, struct usage_mem *m, const struct ttmon_proc *p, const struct ttmon_cpu *c)
{
	struct usage_name name = name_of(p->comm, TTMON_COMM_LEN, p->cgroup_id);
	struct usage_node *node = NULL;
	struct ttmon_usage_group *g;

	if (p->exit_ns)
		ttmon_usage_move(u, &m->node, NULL);
	else
		node = settle(u, &m->node, &name, &m->refused);
	if (m->changes != p->changes && take_mem(u, m, p, node, &name))
		m->changes = p->changes;
	if (!node)
		return;
	g = ttmon_usage_at(u, node);
	g->mem = true;
	for (unsigned int i = 0; p->live && i < TTMON_METHOD_MAX; i++) {
		g->now.live[i] += p->by_method[i].live;
		g->now.live_bytes[i] += p->by_method[i].live_bytes;
	}
	g->now.pinned_pages += p->pinned_pages;
	g->now.pinned_peak_bytes = MAX(g->now.pinned_peak_bytes, p->pinned_bytes);
	/* A process that the scheduler knows too was already counted there. */
	g->now.processes += !c || !ttmon_cpu_runs(c, p->tgid, p->start_ns);
}

/* A process without memory for its entry is added in the next sweep. */
static bool have_mem(struct ttmon_usage *u, size_t n)
{
	size_t nr = u->nr_mem;
	struct usage_mem *v;

	if (n <= nr)
		return true;
	nr = MAX(n, MAX(nr * 2, (size_t)64));
	v = realloc(u->mem, nr * sizeof(*v));
	if (!v)
		return false;
	memset(v + u->nr_mem, 0, (nr - u->nr_mem) * sizeof(*v));
	u->mem = v;
	u->nr_mem = (uint32_t)nr;
	return true;
}

static bool have_cpu(struct ttmon_usage *u, size_t n)
{
	size_t nr = u->nr_cpu;
	struct usage_cpu *v;

	if (n <= nr)
		return true;
	nr = MAX(n, MAX(nr * 2, (size_t)64));
	v = realloc(u->cpu, nr * sizeof(*v));
	if (!v)
		return false;
	memset(v + u->nr_cpu, 0, (nr - u->nr_cpu) * sizeof(*v));
	u->cpu = v;
	u->nr_cpu = (uint32_t)nr;
	return true;
}

static void visit_cpu(void *ctx, const struct ttmon_cpu_proc *p)
{
	struct ttmon_usage *u = ctx;
	struct usage_node *node = NULL;
	struct ttmon_usage_group *g;
	struct usage_name name;
	struct usage_cpu *c;

	if ((p->cls != TTMON_ROW_USER && p->cls != TTMON_ROW_KERNEL) || !have_cpu(u, (size_t)p->idx + 1))
		return;
	c = &u->cpu[p->idx];
	name = name_of_cpu(p);
	if (p->end_ns)
		ttmon_usage_move(u, &c->node, NULL);
	else
		node = settle(u, &c->node, &name, &c->refused);
	take_cpu(u, c, p, node, &name);
	if (!node)
		return;
	g = ttmon_usage_at(u, node);
	g->cpu = true;
	g->now.llc_bytes += p->llc_bytes;
	/* A process without a name is known only by its pinned memory, so the history counts it. */
	g->now.processes += p->comm[0] != '\0';
}

static void sweep_cpu(struct ttmon_usage *u, const struct ttmon_cpu *c)
{
	struct ttmon_cpu_proc other;
	struct ttmon_usage_sums s;
	const uint64_t *cur;

	ttmon_cpu_each(c, visit_cpu, u);
	ttmon_cpu_other(c, &other);
	cur = figures_of_cpu(&other, &s);
	if (memcmp(cur, u->other, sizeof(u->other))) {
		gain(&gainer(u, &u->nameless)->sums.cpu_ns, cur, u->other, CPU_SUMS);
		u->v[0].cpu = true;
	}
}

void ttmon_usage_sweep(struct ttmon_usage *u, struct ttmon_history *h, struct ttmon_cpu *c, uint64_t now_ns)
{
	size_t nr = h ? ttmon_history_procs(h) : 0;

	for (uint32_t i = 0; i < u->n; i++) {
		struct ttmon_usage_now *now = &u->v[i].now;

		*now = (struct ttmon_usage_now){ .pinned_peak_bytes = now->pinned_peak_bytes };
	}
	if (c)
		sweep_cpu(u, c);
	for (size_t i = 0; i < nr; i++)
		if (have_mem(u, i + 1))
			visit_mem(u, &u->mem[i], ttmon_history_proc(h, i), c);
	ttmon_usage_expire(u, now_ns);
}

size_t ttmon_usage_groups(struct ttmon_usage *u, const struct ttmon_usage_group **ret)
{
	ttmon_usage_compact(u);
	*ret = u->nameless_used ? u->v : u->v + 1;
	return u->nameless_used ? u->n : u->n - 1;
}

const struct ttmon_usage_sums *ttmon_usage_gone(const struct ttmon_usage *u)
{
	return &u->gone;
}

uint64_t ttmon_usage_refused(const struct ttmon_usage *u)
{
	return u->refused;
}
