// SPDX-License-Identifier: GPL-2.0-only
/*
 * checkpoints.c: the ends of periods that programs mark (USDT ttmon:checkpoint). Part of the history
 * (hot thread, pure).
 *
 * One list, in the order they came, of at most TTMON_CHECKPOINTS_MAX. A --dump-db run keeps the first
 * ones and is incomplete past that; a service keeps the newest, at the end of an array of twice the
 * size that is moved to the front when its end is reached.
 */
#include "daemon/core/history/history_int.h"

static bool make_room(struct ttmon_checkpoints *c)
{
	uint32_t cap = c->cap ? c->cap * 2 : 64;
	struct ttmon_period_end *v;

	if (c->first + c->n < c->cap)
		return true;
	if (c->first >= c->n && c->n) {
		memcpy(c->v, c->v + c->first, c->n * sizeof(*c->v));
		c->first = 0;
		return true;
	}
	v = realloc(c->v, cap * sizeof(*v));
	if (!v)
		return false;
	c->v = v;
	c->cap = cap;
	return true;
}

static void drop_oldest(struct ttmon_history *h)
{
	struct ttmon_checkpoints *c = &h->checkpoints;

	h->procs[c->v[c->first].proc]->kept_checkpoints--;
	free(c->v[c->first].label);
	c->first++;
	c->n--;
	h->totals.checkpoints_dropped++;
}

void ttmon_history_on_checkpoint(struct ttmon_history *h, const struct ttmon_ev_checkpoint *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	struct ttmon_checkpoints *c = &h->checkpoints;
	char *label;

	if (!p)
		return;
	p->pub.checkpoints++;
	h->totals.checkpoints++;
	ttmon_live_checkpoint(h, p->pub.idx, ev->h.ts_ns, ev->label);
	if (c->n == TTMON_CHECKPOINTS_MAX && h->cfg.keep_all) {
		h->totals.checkpoints_dropped++;
		h->totals.incomplete = true;
		return;
	}
	label = strndup(ev->label, sizeof(ev->label));
	if (!label || !make_room(c)) {
		free(label);
		h->totals.checkpoints_dropped++;
		ttmon_history_no_memory(h);
		return;
	}
	if (c->n == TTMON_CHECKPOINTS_MAX)
		drop_oldest(h);
	c->v[c->first + c->n++] = (struct ttmon_period_end){
		.ts_ns = ev->h.ts_ns,
		.proc = p->pub.idx,
		.tid = ev->h.tid,
		.label = label,
	};
	p->kept_checkpoints++;
}

void ttmon_checkpoints_drop_proc(struct ttmon_history *h, uint32_t proc)
{
	struct ttmon_checkpoints *c = &h->checkpoints;
	uint32_t n = 0;

	if (!h->procs[proc]->kept_checkpoints)
		return;
	h->procs[proc]->kept_checkpoints = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		struct ttmon_period_end *x = &c->v[c->first + i];

		if (x->proc == proc)
			free(x->label);
		else
			c->v[c->first + n++] = *x;
	}
	c->n = n;
}

void ttmon_checkpoints_fini(struct ttmon_history *h)
{
	struct ttmon_checkpoints *c = &h->checkpoints;

	for (uint32_t i = 0; i < c->n; i++)
		free(c->v[c->first + i].label);
	free(c->v);
}

size_t ttmon_history_checkpoints(const struct ttmon_history *h, const struct ttmon_period_end **ret)
{
	*ret = h->checkpoints.n ? h->checkpoints.v + h->checkpoints.first : NULL;
	return h->checkpoints.n;
}
