// SPDX-License-Identifier: GPL-2.0-only
/*
 * arrange.c: which rows are shown, and in which order: processes, a tree of them, or groups. Reads
 * /proc for the names of groups and for command lines; the rest is pure.
 */
#include "daemon/core/usage/cgname.h"
#include "lib/os/proc.h"
#include "tools/top/top.h"

static const struct {
	const char *name;
	char key;
} sorts[TTMON_SORT_MAX] = {
	[TTMON_SORT_PINNED] = { "pinned", 'p' }, [TTMON_SORT_COPIED] = { "copied", 't' },
	[TTMON_SORT_WAIT] = { "wait", 'w' },	 [TTMON_SORT_CPU] = { "cpu", 'c' },
	[TTMON_SORT_IPC] = { "ipc", 'i' },	 [TTMON_SORT_MISSES] = { "misses", 'm' },
	[TTMON_SORT_MBM] = { "bandwidth", 'b' }, [TTMON_SORT_LLC] = { "llc", 'l' },
	[TTMON_SORT_CHIP] = { "chip", 'd' },	 [TTMON_SORT_SWITCHES] = { "switches", 's' },
	[TTMON_SORT_PID] = { "pid", 'n' },
};

const char *ttmon_top_sort_name(unsigned int sort)
{
	return sort < TTMON_SORT_MAX ? sorts[sort].name : NULL;
}

char ttmon_top_sort_key(unsigned int sort)
{
	return sort < TTMON_SORT_MAX ? sorts[sort].key : 0;
}

const char *ttmon_top_by_name(unsigned int by)
{
	static const char *const names[TTMON_TOP_BYS] = { "process", "tree", "unit", "container" };

	return by < TTMON_TOP_BYS ? names[by] : NULL;
}

/* ---- order ---- */

/* A larger value comes first, an unknown one last. */
static double value(const struct ttmon_top_proc *p, unsigned int sort)
{
	static const enum ttmon_top_figure figures[TTMON_SORT_MAX] = {
		[TTMON_SORT_CPU] = TTMON_TOP_CPU,	    [TTMON_SORT_MISSES] = TTMON_TOP_MISSES,
		[TTMON_SORT_MBM] = TTMON_TOP_MBM,	    [TTMON_SORT_LLC] = TTMON_TOP_LLC,
		[TTMON_SORT_PINNED] = TTMON_TOP_PINNED,	    [TTMON_SORT_COPIED] = TTMON_TOP_COPIED,
		[TTMON_SORT_SWITCHES] = TTMON_TOP_SWITCHES, [TTMON_SORT_CHIP] = TTMON_TOP_CHIP,
		[TTMON_SORT_WAIT] = TTMON_TOP_WAIT,
	};
	uint64_t cycles = p->v[TTMON_TOP_CYCLES], instructions = p->v[TTMON_TOP_INSTRUCTIONS], v;

	if (sort == TTMON_SORT_IPC)
		return cycles && cycles != TTMON_TOP_UNKNOWN && instructions != TTMON_TOP_UNKNOWN
			       ? (double)instructions / (double)cycles
			       : -1;
	v = p->v[figures[sort]];
	return v == TTMON_TOP_UNKNOWN ? -1 : (double)v;
}

static int by_value(const void *a, const void *b, void *ctx)
{
	static const unsigned int more[] = { TTMON_SORT_PINNED, TTMON_SORT_COPIED, TTMON_SORT_WAIT, TTMON_SORT_CPU };
	const struct ttmon_top_proc *p = a, *q = b;
	const struct ttmon_top_ask *ask = ctx;
	int order = 0;

	/* Rows that are equal in what memory they pin, copy or wait for are sorted by the others of these. */
	for (size_t i = 0; i < ARRAY_SIZE(more) + 1 && !order && ask->sort != TTMON_SORT_PID; i++) {
		unsigned int key = i ? more[i - 1] : ask->sort;
		double x = value(a, key), y = value(b, key);

		if (ask->sort > TTMON_SORT_WAIT && i && key != TTMON_SORT_CPU)
			continue;

		/* Unknown values come last in reverse order too. */
		if ((x < 0) != (y < 0))
			return x < 0 ? 1 : -1;
		order = x > y ? -1 : x < y;
	}
	if (!order)
		order = ttmon_top_by_identity(a, b);
	if (!order)
		order = strcmp(p->comm, q->comm);
	return ask->reverse ? -order : order;
}

/* ---- selection ---- */

static bool passes_filter(const struct ttmon_top_proc *p, const struct ttmon_top_ask *ask)
{
	char text[512];

	if (!ask->filter || !*ask->filter || ttmon_term_has_text(p->comm, ask->filter))
		return true;
	if (!p->pid)
		return false;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)p->pid);
	if (ttmon_term_has_text(text, ask->filter))
		return true;
	ttmon_top_args("/proc", p->pid, text, sizeof(text));
	return ttmon_term_has_text(text, ask->filter);
}

static bool is_wanted(const struct ttmon_top_proc *p, const struct ttmon_top_ask *ask)
{
	if (ask->pid)
		return p->pid == ask->pid;
	if (p->cls == TTMON_TOP_KERNEL && !ask->kernel)
		return false;
	/* Leaves out a process that has ended and did nothing in the interval. */
	return (!p->ended && p->pid) || ttmon_top_did_anything(p);
}

/* Leaves out the rows that the filter does not let through. */
static void filter(struct ttmon_top *a, const struct ttmon_top_ask *ask)
{
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		if (passes_filter(&a->procs[i], ask))
			a->procs[n++] = a->procs[i];
	a->n = n;
}

/* ---- tree ---- */

struct node {
	uint64_t pid;
	size_t row;
	size_t parent;	    /* SIZE_MAX: none */
	size_t child, next; /* first child and next sibling, in the order of rows; SIZE_MAX: none */
	bool kept, placed;
};

static int by_node_pid(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* A strict order: no row can be its own ancestor, whatever the service says. */
static bool is_before(const struct ttmon_top_proc *parent, const struct ttmon_top_proc *p)
{
	return parent->start_ns != p->start_ns ? parent->start_ns < p->start_ns : parent->pid < p->pid;
}

/*
 * Finds the parents. A process whose parent is not a row, or began later (its id was reused), has
 * none.
 */
static void find_parents(struct node *nodes, const struct ttmon_top *a, const struct node *by_pid, size_t nr_by_pid)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct node key = { .pid = a->procs[i].ppid };
		const struct node *at = NULL;

		/* Pid 0 is no process. */
		if (a->procs[i].pid && key.pid && nr_by_pid)
			at = bsearch(&key, by_pid, nr_by_pid, sizeof(key), by_node_pid);
		if (at && is_before(&a->procs[at->row], &a->procs[i]))
			nodes[i].parent = at->row;
	}
}

/*
 * Links the rows, which are sorted, to lists of siblings. A row comes as early as the first of the
 * rows below it, so that what sorts first is at the top of the tree with all its ancestors. order:
 * room for all rows. Returns the first root.
 */
static size_t link_nodes(struct node *nodes, size_t n, size_t *order)
{
	size_t nr = 0, root = SIZE_MAX;

	for (size_t i = 0; i < n; i++)
		for (size_t up = i; up != SIZE_MAX && !nodes[up].placed; up = nodes[up].parent) {
			nodes[up].placed = true;
			order[nr++] = up;
		}
	while (nr-- > 0) {
		struct node *node = &nodes[order[nr]];
		size_t *head = node->parent == SIZE_MAX ? &root : &nodes[node->parent].child;

		node->next = *head;
		*head = order[nr];
	}
	return root;
}

static size_t next_kept(const struct node *nodes, size_t i)
{
	while (i != SIZE_MAX && !nodes[i].kept)
		i = nodes[i].next;
	return i;
}

/* Writes the rows in the order of the tree. No recursion: a tree may be as deep as there are rows. */
static size_t walk(const struct node *nodes, size_t root, const struct ttmon_top_proc *from, struct ttmon_top_proc *to)
{
	size_t at = next_kept(nodes, root), n = 0;
	uint32_t depth = 0;
	uint64_t more = 0;

	while (at != SIZE_MAX) {
		uint64_t bit = depth < 64 ? 1ULL << depth : 0;
		size_t child = next_kept(nodes, nodes[at].child);

		more = next_kept(nodes, nodes[at].next) != SIZE_MAX ? more | bit : more & ~bit;
		to[n] = from[at];
		to[n].depth = depth;
		to[n++].more = more;
		if (child != SIZE_MAX) {
			depth++;
			at = child;
			continue;
		}
		while (at != SIZE_MAX && next_kept(nodes, nodes[at].next) == SIZE_MAX) {
			at = nodes[at].parent;
			depth -= depth > 0;
		}
		if (at != SIZE_MAX)
			at = next_kept(nodes, nodes[at].next);
	}
	return n;
}

/* Orders the sorted rows as a tree: a row that passes the filter is shown with its ancestors. */
static int make_tree(struct ttmon_top *a, const struct ttmon_top_ask *ask)
{
	struct ttmon_top_proc *procs = calloc(a->n + 1, sizeof(*procs));
	_cleanup_free_ struct node *nodes = calloc(a->n + 1, sizeof(*nodes));
	_cleanup_free_ struct node *by_pid = calloc(a->n + 1, sizeof(*by_pid));
	_cleanup_free_ size_t *order = calloc(a->n + 1, sizeof(*order));
	size_t root, n = 0;

	if (!procs || !nodes || !by_pid || !order) {
		free(procs);
		return -ENOMEM;
	}
	for (size_t i = 0; i < a->n; i++) {
		nodes[i] = (struct node){ .row = i, .parent = SIZE_MAX, .child = SIZE_MAX, .next = SIZE_MAX };
		/* Of an id that was used twice the one that lives is the parent of others. */
		if (a->procs[i].pid && !a->procs[i].ended)
			by_pid[n++] = (struct node){ .pid = a->procs[i].pid, .row = i };
	}
	qsort(by_pid, n, sizeof(*by_pid), by_node_pid);
	find_parents(nodes, a, by_pid, n);
	root = link_nodes(nodes, a->n, order);
	for (size_t i = 0; i < a->n; i++)
		if (passes_filter(&a->procs[i], ask))
			for (size_t up = i; up != SIZE_MAX && !nodes[up].kept; up = nodes[up].parent)
				nodes[up].kept = true;
	a->n = walk(nodes, root, a->procs, procs);
	free(a->procs);
	a->procs = procs;
	return 0;
}

/* ---- groups ---- */

void ttmon_top_group_name(const char *proc_root, uint64_t pid, unsigned int by, char *buf, size_t n)
{
	char text[4096];
	ssize_t len = pid && pid <= UINT32_MAX ? ttmon_proc_read(proc_root, (uint32_t)pid, "cgroup", text, sizeof(text))
					       : -ESRCH;
	char *path = len > 0 ? strstr(text, "0::") : NULL;

	snprintf(buf, n, "%s", path ? "(none)" : "(not known)");
	if (!path || (path != text && path[-1] != '\n'))
		return;
	path += 3;
	path[strcspn(path, "\n")] = '\0';
	if (!ttmon_cgname(by == TTMON_TOP_BY_UNIT ? TTMON_GROUP_UNIT : TTMON_GROUP_CONTAINER, path, buf, n))
		snprintf(buf, n, "(none)");
}

struct named {
	char name[TTMON_CGNAME_MAX];
	struct ttmon_top_proc *proc;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Adds a process to its group; a figure that is not known makes the sum a lower bound. */
static void absorb(struct ttmon_top_proc *to, const struct ttmon_top_proc *p)
{
	for (unsigned int k = 0; k < TTMON_TOP_RMID; k++) {
		bool unknown = p->v[k] == TTMON_TOP_UNKNOWN;

		if (to->v[k] == TTMON_TOP_UNKNOWN || unknown) {
			to->least[k] |= (to->v[k] == TTMON_TOP_UNKNOWN) != unknown;
			to->v[k] = unknown ? to->v[k] : p->v[k];
		} else {
			to->v[k] += p->v[k];
		}
		to->least[k] |= p->least[k];
	}
	/* What may be wrong in the sum is known only if it is of each. */
	if (p->v[TTMON_TOP_CHIP] != TTMON_TOP_UNKNOWN && p->v[TTMON_TOP_CHIP_ERROR] == TTMON_TOP_UNKNOWN)
		to->v[TTMON_TOP_CHIP_ERROR] = TTMON_TOP_UNKNOWN;
	to->complete &= p->complete;
	to->members++;
}

/* A lower bound of 0 says nothing. */
static void finish(struct ttmon_top_proc *group)
{
	group->v[TTMON_TOP_RMID] = TTMON_TOP_UNKNOWN;
	for (unsigned int k = 0; k < TTMON_TOP_RMID; k++)
		if (group->least[k] && !group->v[k])
			group->v[k] = TTMON_TOP_UNKNOWN;
}

/*
 * Makes one row of the processes of each unit or container. Rows that are no process stay as they are.
 */
static int make_groups(struct ttmon_top *a, unsigned int by)
{
	_cleanup_free_ struct named *names = calloc(a->n + 1, sizeof(*names));
	struct ttmon_top_proc *procs = calloc(a->n + 1, sizeof(*procs));
	size_t n = 0, nr_names = 0;

	if (!names || !procs) {
		free(procs);
		return -ENOMEM;
	}
	for (size_t i = 0; i < a->n; i++) {
		struct named *to = &names[nr_names];

		if (!a->procs[i].pid) {
			procs[n++] = a->procs[i];
			continue;
		}
		to->proc = &a->procs[i];
		nr_names++;
		if (to->proc->cls == TTMON_TOP_KERNEL)
			snprintf(to->name, sizeof(to->name), "(kernel)");
		else
			ttmon_top_group_name(NULL, to->proc->ended ? 0 : to->proc->pid, by, to->name, sizeof(to->name));
	}
	qsort(names, nr_names, sizeof(*names), by_name);
	for (size_t i = 0; i < nr_names; i++) {
		if (i && !strcmp(names[i - 1].name, names[i].name)) {
			absorb(&procs[n - 1], names[i].proc);
			continue;
		}
		procs[n] = *names[i].proc;
		procs[n].pid = procs[n].start_ns = procs[n].ppid = 0;
		procs[n].members = 1;
		ttmon_fmt_text(procs[n].comm, sizeof(procs[n].comm), names[i].name);
		n++;
	}
	for (size_t i = 0; i < n; i++)
		if (procs[i].members)
			finish(&procs[i]);
	free(a->procs);
	a->procs = procs;
	a->n = n;
	return 0;
}

int ttmon_top_arrange(const struct ttmon_top *t, const struct ttmon_top_ask *ask, struct ttmon_top *ret)
{
	bool groups = ask->by == TTMON_TOP_BY_UNIT || ask->by == TTMON_TOP_BY_CONTAINER;
	struct ttmon_top a = *t;
	int err = 0;

	a.n = 0;
	a.procs = calloc(t->n + 1, sizeof(*a.procs));
	if (!a.procs)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		if (is_wanted(&t->procs[i], ask))
			a.procs[a.n++] = t->procs[i];
	if (groups)
		err = make_groups(&a, ask->by);
	if (!err && ask->by != TTMON_TOP_BY_TREE)
		filter(&a, ask);
	if (!err)
		qsort_r(a.procs, a.n, sizeof(*a.procs), by_value, (void *)ask);
	if (!err && ask->by == TTMON_TOP_BY_TREE)
		err = make_tree(&a, ask);
	if (err) {
		ttmon_top_fini(&a);
		return err;
	}
	if (ask->lines)
		a.n = MIN(a.n, (size_t)ask->lines);
	*ret = a;
	return 0;
}
