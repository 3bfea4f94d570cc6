// SPDX-License-Identifier: GPL-2.0-only
/*
 * groups.c: how the groups of core/usage are created, found and removed. Part of core/usage (hot
 * thread, pure).
 *
 * A group exists while a process in it is alive, and cfg.linger_ns longer. Its counters are then added
 * to `gone`. Places in the array are assigned in order. A removed group leaves a hole; holes are
 * closed when the array is shown, and when it is full.
 */
#include "daemon/core/usage/usage_int.h"

#define GROUPS_MIN 64u

int ttmon_usage_groups_init(struct ttmon_usage *u)
{
	u->v = calloc(GROUPS_MIN, sizeof(*u->v));
	u->nodes = calloc(GROUPS_MIN, sizeof(*u->nodes));
	if (!u->v || !u->nodes)
		return -ENOMEM;
	u->cap = GROUPS_MIN;
	u->nodes[0] = &u->nameless;
	u->n = 1;
	return 0;
}

void ttmon_usage_groups_fini(struct ttmon_usage *u)
{
	for (uint32_t i = 1; i < u->n; i++)
		free(u->nodes[i]);
	free(u->nodes);
	free(u->v);
	ttmon_hmap_fini(&u->by_name);
}

static uint64_t key_of(const struct usage_name *name)
{
	uint64_t half[2];

	memcpy(half, name->comm, sizeof(half));
	return ttmon_mix64(ttmon_mix64(ttmon_mix64(half[0]) + half[1]) + name->cgroup_id);
}

bool ttmon_usage_is(const struct ttmon_usage *u, const struct usage_node *node, const struct usage_name *name)
{
	const struct ttmon_usage_group *g = &u->v[node->at];

	return g->cgroup_id == name->cgroup_id && !memcmp(g->comm, name->comm, sizeof(g->comm));
}

static void list_add(struct ttmon_usage *u, struct usage_node *node)
{
	node->prev = u->last;
	node->next = NULL;
	if (node->prev)
		node->prev->next = node;
	else
		u->first = node;
	u->last = node;
}

static void list_del(struct ttmon_usage *u, const struct usage_node *node)
{
	if (node->prev)
		node->prev->next = node->next;
	else
		u->first = node->next;
	if (node->next)
		node->next->prev = node->prev;
	else
		u->last = node->prev;
}

/* Removes a group without a living process. */
static void drop(struct ttmon_usage *u, struct usage_node *node)
{
	const struct ttmon_usage_group *g = ttmon_usage_at(u, node);
	const uint64_t *sums = (const uint64_t *)&g->sums;
	uint64_t *gone = (uint64_t *)&u->gone;
	struct usage_name name = { .cgroup_id = g->cgroup_id };

	for (size_t i = 0; i < TTMON_USAGE_SUMS; i++)
		gone[i] += sums[i];
	memcpy(name.comm, g->comm, sizeof(name.comm));
	ttmon_hmap_del(&u->by_name, key_of(&name));
	list_del(u, node);
	u->nodes[node->at] = NULL;
	u->groups--;
	free(node);
}

void ttmon_usage_compact(struct ttmon_usage *u)
{
	uint32_t n = 0;

	if (u->n == u->groups + 1)
		return;
	for (uint32_t i = 0; i < u->n; i++) {
		if (!u->nodes[i])
			continue;
		if (n != i) {
			u->v[n] = u->v[i];
			u->nodes[n] = u->nodes[i];
			u->nodes[n]->at = n;
		}
		n++;
	}
	u->n = n;
}

static int grow(struct ttmon_usage *u)
{
	uint32_t cap = u->cap * 2;
	struct ttmon_usage_group *v = realloc(u->v, cap * sizeof(*v));
	struct usage_node **nodes;

	if (!v)
		return -ENOMEM;
	u->v = v;
	nodes = realloc(u->nodes, cap * sizeof(struct usage_node *));
	if (!nodes)
		return -ENOMEM;
	u->nodes = nodes;
	u->cap = cap;
	return 0;
}

/*
 * The array has twice as many places as there may be groups, so holes are closed only after as many
 * groups were removed.
 */
static int make_place(struct ttmon_usage *u)
{
	if (u->n < u->cap)
		return 0;
	if (u->cap < 2 * (u->cfg.max_groups + 1) && grow(u) == 0)
		return 0;
	ttmon_usage_compact(u);
	return u->n < u->cap ? 0 : -ENOMEM;
}

static struct usage_node *make(struct ttmon_usage *u, const struct usage_name *name, uint64_t key)
{
	struct usage_node *node;

	if (u->groups >= u->cfg.max_groups) {
		if (!u->first)
			return NULL;
		drop(u, u->first);
	}
	if (make_place(u) < 0)
		return NULL;
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	if (ttmon_hmap_put(&u->by_name, key, (uint64_t)(uintptr_t)node) < 0) {
		free(node);
		return NULL;
	}
	node->at = u->n++;
	u->nodes[node->at] = node;
	u->v[node->at] = (struct ttmon_usage_group){ .cgroup_id = name->cgroup_id, .id = ++u->last_id };
	memcpy(u->v[node->at].comm, name->comm, sizeof(name->comm));
	u->groups++;
	list_add(u, node);
	return node;
}

struct usage_node *ttmon_usage_get(struct ttmon_usage *u, const struct usage_name *name)
{
	uint64_t key = key_of(name), found;
	struct usage_node *node;

	if (!name->comm[0] && !name->cgroup_id)
		return &u->nameless;
	found = ttmon_hmap_get(&u->by_name, key);
	if (found == TTMON_HMAP_NONE)
		return make(u, name, key);
	node = (struct usage_node *)(uintptr_t)found;
	/* The names have the same hash, which can only be made on purpose: the later name is refused. */
	return ttmon_usage_is(u, node, name) ? node : NULL;
}

void ttmon_usage_move(struct ttmon_usage *u, struct usage_node **of, struct usage_node *to)
{
	struct usage_node *from = *of;

	if (from == to)
		return;
	*of = to;
	if (to && to->living++ == 0 && to != &u->nameless) {
		list_del(u, to);
		ttmon_usage_at(u, to)->ended_ns = 0;
	}
	if (from && --from->living == 0 && from != &u->nameless)
		list_add(u, from);
}

void ttmon_usage_refresh(struct ttmon_usage *u, struct usage_node *node)
{
	if (node->living || node == &u->nameless)
		return;
	list_del(u, node);
	list_add(u, node);
	ttmon_usage_at(u, node)->ended_ns = 0;
}

void ttmon_usage_expire(struct ttmon_usage *u, uint64_t now_ns)
{
	/* Groups whose last process ended since the last sweep are at the end of the list. */
	for (struct usage_node *node = u->last; node && !ttmon_usage_at(u, node)->ended_ns; node = node->prev)
		ttmon_usage_at(u, node)->ended_ns = MAX(now_ns, 1ULL);
	while (u->first && now_ns >= ttmon_add_sat(ttmon_usage_at(u, u->first)->ended_ns, u->cfg.linger_ns))
		drop(u, u->first);
}
