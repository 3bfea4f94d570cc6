// SPDX-License-Identifier: GPL-2.0-only
/*
 * views.c: the read side of core/tt (hot thread, pure): a copy of everything for another thread,
 * names, the chips of devices.
 */
#include "daemon/core/tt/tt_int.h"

static const char *const type_names[TTMON_TT_TYPES] = {
#define X(id, NAME, name) [id] = name,
	TTMON_TT_TYPE_TABLE(X)
#undef X
};

static const char *const flag_names[TTMON_TT_FLAGS] = {
#define X(id, NAME, name, help) [id] = name,
	TTMON_TT_F_TABLE(X)
#undef X
};

static const char *const flag_helps[TTMON_TT_FLAGS] = {
#define X(id, NAME, name, help) [id] = help,
	TTMON_TT_F_TABLE(X)
#undef X
};

const char *ttmon_tt_type_name(unsigned int type)
{
	return type < TTMON_TT_TYPES ? type_names[type] : NULL;
}

const char *ttmon_tt_flag_name(unsigned int bit)
{
	return bit < TTMON_TT_FLAGS ? flag_names[bit] : NULL;
}

const char *ttmon_tt_flag_help(unsigned int bit)
{
	return bit < TTMON_TT_FLAGS ? flag_helps[bit] : NULL;
}

uint64_t ttmon_tt_generation(const struct ttmon_tt *t)
{
	return t->generation;
}

const char *ttmon_tt_layout_text(const struct ttmon_tt_proc *p)
{
	const struct ttmon_tt_cal *best = NULL;

	if (p->pub.flags & TTMON_TT_F_UNCALIBRATED)
		return p->pub.layout;
	for (uint32_t i = 0; i < p->nr_cals; i++)
		if (p->cals[i].layout && (!best || p->cals[i].good > best->good))
			best = &p->cals[i];
	if (best)
		return ttmon_tt_layout_name(best->layout, best->match > best->mismatch);
	return p->pub.layout ? p->pub.layout : "no buffer seen yet";
}

static bool is_shown(const struct ttmon_tt_usage *u)
{
	return !u->dead && (u->pub.allocs || u->pub.logical != TTMON_TT_NO_LOGICAL);
}

/* Peaks that rely on assumed members are raised only here. */
static void assumed_peaks(const struct ttmon_tt_proc *p, uint32_t use, struct ttmon_tt_use *out)
{
	for (uint32_t i = 0; i < TTMON_TT_TYPES; i++)
		out->peak[i] = MAX(out->peak[i], out->bytes[i]);
	for (uint32_t i = 0; i < p->nr_devs; i++) {
		const struct ttmon_tt_device *m = &p->devs[i];

		if (m->kind != TTMON_TT_DEV_MESH || m->known != TTMON_TT_MESH_ASSUMED_ALL)
			continue;
		for (uint32_t k = 0; k < m->nr_links; k++)
			for (uint32_t y = 0; p->devs[m->links[k]].use == use && y < TTMON_TT_TYPES; y++)
				out->peak[y] = MAX(out->peak[y], m->peak[y]);
	}
}

static void copy_proc(const struct ttmon_tt_proc *p, struct ttmon_tt_process *out)
{
	*out = p->pub;
	out->layout = ttmon_tt_layout_text(p);
	if (p->own_call || p->own_fact)
		out->flags |= TTMON_TT_F_OWN_SHM;
	if (ttmon_tt_cbs_pending(p))
		out->flags |= TTMON_TT_F_CB_UNKNOWN;
	for (uint32_t i = 0; i < p->nr_devs; i++) {
		const struct ttmon_tt_device *m = &p->devs[i];

		if (m->kind != TTMON_TT_DEV_MESH)
			continue;
		if (m->known == TTMON_TT_MESH_ASSUMED_ALL)
			out->flags |= TTMON_TT_F_MESH_ASSUMED;
		if (m->known != TTMON_TT_MESH_UNKNOWN || !m->live)
			continue;
		out->flags |= TTMON_TT_F_MESH_PENDING;
		for (unsigned int y = 0; y < TTMON_TT_TYPES; y++)
			out->pending_bytes += m->bytes[y];
	}
}

static int by_born(const void *a, const void *b)
{
	const struct ttmon_tt_proc *pa = *(const struct ttmon_tt_proc *const *)a;
	const struct ttmon_tt_proc *pb = *(const struct ttmon_tt_proc *const *)b;

	return pa->born < pb->born ? -1 : pa->born > pb->born;
}

static int by_logical(const void *a, const void *b)
{
	const struct ttmon_tt_use *ua = a, *ub = b;

	if (ua->proc != ub->proc)
		return ua->proc < ub->proc ? -1 : 1;
	return ua->logical < ub->logical ? -1 : ua->logical > ub->logical;
}

static size_t count_uses(const struct ttmon_tt_proc *p)
{
	size_t n = 0;

	for (uint32_t i = 0; i < p->nr_uses && !(p->pub.flags & TTMON_TT_F_UNCALIBRATED); i++)
		n += is_shown(&p->uses[i]);
	return n;
}

static size_t copy_uses(const struct ttmon_tt_proc *p, uint32_t at, struct ttmon_tt_use *out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < p->nr_uses && !(p->pub.flags & TTMON_TT_F_UNCALIBRATED); i++) {
		if (!is_shown(&p->uses[i]))
			continue;
		out[n] = p->uses[i].pub;
		out[n].proc = at;
		assumed_peaks(p, i, &out[n++]);
	}
	return n;
}

static size_t copy_chips(const struct ttmon_tt *t, struct ttmon_tt_chip *out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < t->nr_chips; i++) {
		if (!t->chips[i].fact.index) /* a process named it, but its fact has not come yet */
			continue;
		out[n] = t->chips[i];
		for (unsigned int y = 0; y < TTMON_TT_TYPES; y++)
			out[n].peak[y] = MAX(out[n].peak[y], out[n].bytes[y]);
		n++;
	}
	return n;
}

static void add_flags(struct ttmon_tt_chip *chip, const struct ttmon_tt_process *p)
{
	/* A process that publishes its own figures knows all of its memory. */
	uint32_t flags = p->flags & TTMON_TT_F_OWN_SHM ? 0 : p->flags;

	chip->ever |= flags;
	if (!p->end_ns)
		chip->flags |= flags;
}

static void flag_chips(const struct ttmon_tt_view *v)
{
	for (size_t i = 0; i < v->nr_chips; i++) {
		for (size_t u = 0; u < v->nr_uses; u++)
			if (v->uses[u].chip == v->chips[i].fact.index)
				add_flags(&v->chips[i], &v->procs[v->uses[u].proc]);
		/* The chips that it uses are unknown, so it may use any. */
		for (size_t p = 0; p < v->nr_procs; p++)
			if (v->procs[p].flags & TTMON_TT_F_UNCALIBRATED)
				add_flags(&v->chips[i], &v->procs[p]);
	}
}

int ttmon_tt_snapshot(const struct ttmon_tt *t, struct ttmon_tt_view *ret)
{
	_cleanup_free_ struct ttmon_tt_proc **order = malloc((t->nr_procs + 1) * sizeof(struct ttmon_tt_proc *));
	_cleanup_free_ struct ttmon_tt_chip *chips = calloc(t->nr_chips + 1, sizeof(*chips));
	_cleanup_free_ struct ttmon_tt_process *procs = NULL;
	_cleanup_free_ struct ttmon_tt_use *uses = NULL;
	size_t nr_procs = 0, nr_uses = 0, nr_chips;

	if (!order || !chips)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->nr_procs; i++)
		if (t->procs[i] && t->procs[i]->seen) {
			nr_uses += count_uses(t->procs[i]);
			order[nr_procs++] = t->procs[i];
		}
	procs = calloc(nr_procs + 1, sizeof(*procs));
	uses = calloc(nr_uses + 1, sizeof(*uses));
	if (!procs || !uses)
		return -ENOMEM;
	qsort(order, nr_procs, sizeof(*order), by_born);
	nr_uses = 0;
	for (size_t i = 0; i < nr_procs; i++) {
		copy_proc(order[i], &procs[i]);
		nr_uses += copy_uses(order[i], (uint32_t)i, uses + nr_uses);
	}
	qsort(uses, nr_uses, sizeof(*uses), by_logical);
	nr_chips = copy_chips(t, chips);
	*ret = (struct ttmon_tt_view){
		.chips = TAKE_PTR(chips),
		.nr_chips = nr_chips,
		.procs = TAKE_PTR(procs),
		.nr_procs = nr_procs,
		.uses = TAKE_PTR(uses),
		.nr_uses = nr_uses,
		.generation = t->generation,
	};
	flag_chips(ret);
	return 0;
}

void ttmon_tt_view_fini(struct ttmon_tt_view *v)
{
	free(v->chips);
	free((void *)v->procs);
	free((void *)v->uses);
	*v = (struct ttmon_tt_view){ 0 };
}

size_t ttmon_tt_devices(const struct ttmon_tt *t, uint32_t tgid, uint64_t device, uint32_t *logical, uint32_t *chips,
			size_t max)
{
	const struct ttmon_tt_proc *p = ttmon_tt_find(t, tgid);
	uint32_t idx = p ? ttmon_tt_dev_find(p, device) : TTMON_TT_NIL;
	const struct ttmon_tt_device *d;
	size_t n = 0, all;

	if (idx == TTMON_TT_NIL)
		return 0;
	d = &p->devs[idx];
	all = d->kind == TTMON_TT_DEV_MESH ? d->nr_links : 1;
	for (size_t i = 0; i < all && n < max; i++) {
		const struct ttmon_tt_device *m = d->kind == TTMON_TT_DEV_MESH ? &p->devs[d->links[i]] : d;

		logical[n] = p->uses[m->use].pub.logical;
		chips[n++] = p->uses[m->use].pub.chip;
	}
	return n;
}
