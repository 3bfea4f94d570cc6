// SPDX-License-Identifier: GPL-2.0-only
/*
 * tt.c: Tenstorrent chips. Memory figures are those of the cold thread's last tick. Dispatches and
 * device time are kept by process, and ended processes are dropped: so the gains of each process since
 * the last time are added to its chip here, each second while anything changes.
 */
#include "daemon/api/api.h"
#include "daemon/api/follow.h"
#include "daemon/metrics/metrics_int.h"
#include "daemon/run/ttrun.h"

#define CHIPS 256 /* further ones are counted as unknown */

/* Device time: its sum, by how much the sum may be wrong, and the runs with unknown error. */
enum { BUSY_NS, BUSY_ERROR_NS, BUSY_UNBOUNDED, BUSY_MAX };
_Static_assert((int)BUSY_MAX <= (int)TTMON_TT_DISPATCH_MAX, "a row has room for them");

/* A growing figure, as of the last time. */
struct seen {
	uint64_t key[3];
	uint64_t value[TTMON_TT_DISPATCH_MAX];
	uint32_t chip;
};

struct rows {
	struct seen *v;
	size_t n, cap;
};

struct chip_sums {
	uint64_t dispatches[TTMON_TT_DISPATCH_MAX];
	uint64_t busy[BUSY_MAX];
	bool used;
};

struct ttmon_metrics_tt {
	uint64_t generation;
	struct rows dispatches, busy;  /* sorted by key */
	struct chip_sums chips[CHIPS]; /* 0: unknown */
};

int ttmon_metrics_tt_new(struct ttmon_metrics_tt **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void ttmon_metrics_tt_free(struct ttmon_metrics_tt *t)
{
	if (!t)
		return;
	free(t->dispatches.v);
	free(t->busy.v);
	free(t);
}

/* ---- what was gained ---- */

struct taken {
	struct ttmon_tt_dispatch_sum *sums;
	struct ttmon_tt_clock *clocks;
	size_t nr_sums, nr_clocks, cap_sums, cap_clocks;
};

static int copy(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	const struct ttmon_dispatch *d = ttmon_pipeline_dispatch(p);
	const struct ttmon_tt_dispatch_sum *sums;
	const struct ttmon_tt_clock *clocks;
	struct taken *t = ctx;

	(void)now_ns;
	t->nr_sums = ttmon_dispatch_sums(d, &sums);
	t->nr_clocks = ttmon_dispatch_clocks(d, &clocks);
	if (t->nr_sums && t->nr_sums <= t->cap_sums)
		memcpy(t->sums, sums, t->nr_sums * sizeof(*sums));
	if (t->nr_clocks && t->nr_clocks <= t->cap_clocks)
		memcpy(t->clocks, clocks, t->nr_clocks * sizeof(*clocks));
	return 0;
}

static void taken_fini(struct taken *t)
{
	free(t->sums);
	free(t->clocks);
}

static int take(const struct ttmon_daemon *c, struct taken *t)
{
	for (unsigned int i = 0; i < 3; i++) {
		(void)!ttmon_daemon_call(c, copy, t);
		if (t->nr_sums <= t->cap_sums && t->nr_clocks <= t->cap_clocks)
			return 0;
		taken_fini(t);
		t->cap_sums = t->nr_sums + 16;
		t->cap_clocks = t->nr_clocks + 16;
		t->sums = malloc(t->cap_sums * sizeof(*t->sums));
		t->clocks = malloc(t->cap_clocks * sizeof(*t->clocks));
		if (!t->sums || !t->clocks)
			return -ENOMEM;
	}
	return -EAGAIN;
}

static int by_key(const void *a, const void *b)
{
	return memcmp(((const struct seen *)a)->key, ((const struct seen *)b)->key, sizeof(((struct seen *)0)->key));
}

/* Two rows with one key (a reused id) become one figure. */
static void join(struct rows *r)
{
	size_t k = 0;

	qsort(r->v, r->n, sizeof(*r->v), by_key);
	for (size_t i = 0; i < r->n; i++) {
		if (!k || by_key(&r->v[k - 1], &r->v[i])) {
			r->v[k++] = r->v[i];
			continue;
		}
		for (unsigned int d = 0; d < TTMON_TT_DISPATCH_MAX; d++)
			r->v[k - 1].value[d] += r->v[i].value[d];
	}
	r->n = k;
}

/* Replaces last by now; the gain of each row is added to its present chip. */
static void gain(struct ttmon_metrics_tt *t, struct rows *last, struct rows now,
		 void (*add)(struct chip_sums *to, unsigned int i, uint64_t n))
{
	size_t k = 0;

	join(&now);
	for (size_t i = 0; i < now.n; i++) {
		const struct seen *s = &now.v[i];
		struct chip_sums *to = &t->chips[s->chip < CHIPS ? s->chip : 0];
		const struct seen *before;

		while (k < last->n && by_key(&last->v[k], s) < 0)
			k++;
		before = k < last->n && !by_key(&last->v[k], s) ? &last->v[k] : NULL;
		for (unsigned int d = 0; d < TTMON_TT_DISPATCH_MAX; d++) {
			uint64_t had = before ? before->value[d] : 0;

			/* The value fell: one of several rows with this key has gone. */
			if (s->value[d] > had)
				add(to, d, s->value[d] - had);
		}
	}
	free(last->v);
	*last = now;
}

static void add_dispatches(struct chip_sums *to, unsigned int i, uint64_t n)
{
	to->dispatches[i] += n;
	to->used = true;
}

static void add_busy(struct chip_sums *to, unsigned int i, uint64_t n)
{
	to->busy[i] += n;
	to->used = true;
}

void ttmon_metrics_tt_take(struct ttmon_metrics *m)
{
	_cleanup_(taken_fini) struct taken taken = { 0 };
	struct ttmon_metrics_tt *t = m->tt;
	struct rows sums = { 0 }, busy = { 0 };

	if (m->snap.tt_generation == t->generation || take(m->c, &taken))
		return;
	sums.v = calloc(taken.nr_sums + 1, sizeof(*sums.v));
	busy.v = calloc(taken.nr_clocks + 1, sizeof(*busy.v));
	if (!sums.v || !busy.v) {
		free(sums.v);
		free(busy.v);
		return;
	}
	for (; sums.n < taken.nr_sums; sums.n++) {
		const struct ttmon_tt_dispatch_sum *s = &taken.sums[sums.n];

		sums.v[sums.n] = (struct seen){ .key = { s->tgid, s->start_ns, s->device }, .chip = s->chip };
		memcpy(sums.v[sums.n].value, s->count, sizeof(s->count));
	}
	for (; busy.n < taken.nr_clocks; busy.n++) {
		const struct ttmon_tt_clock *k = &taken.clocks[busy.n];

		busy.v[busy.n] = (struct seen){ .key = { k->tgid, k->logical },
						.value = { k->busy_ns, k->error_ns, k->unbounded },
						.chip = k->chip };
	}
	gain(t, &t->dispatches, sums, add_dispatches);
	gain(t, &t->busy, busy, add_busy);
	t->generation = m->snap.tt_generation;
}

/* ---- what is shown ---- */

static const char *number(char buf[16], uint32_t chip)
{
	snprintf(buf, 16, "%u", chip);
	return chip ? buf : "unknown";
}

static void info(struct ttmon_metrics *m, const struct ttmon_tt_view *v)
{
	static const char *const archs[TTMON_TT_ARCH_MAX] = { "unknown", "grayskull", "wormhole", "blackhole" };

	for (size_t i = 0; i < v->nr_chips; i++) {
		const struct ttmon_ev_tt_chip *f = &v->chips[i].fact;
		char chip[16], card[sizeof(f->card) + 1] = "", device[24] = "", unique[24] = "";

		memcpy(card, f->card, sizeof(f->card));
		if (f->ordinal != UINT32_MAX)
			snprintf(device, sizeof(device), "%u", f->ordinal);
		if (f->unique_id)
			snprintf(unique, sizeof(unique), "0x%llx", (unsigned long long)f->unique_id);
		TTMON_NUM(m, TT_CHIP_INFO, 1, number(chip, f->index), archs[f->arch < TTMON_TT_ARCH_MAX ? f->arch : 0],
			  card, device, unique);
	}
}

static void memory(struct ttmon_metrics *m, const struct ttmon_tt_view *v)
{
	char chip[16];

	for (size_t i = 0; i < v->nr_chips; i++)
		for (unsigned int k = 0; k < TTMON_TT_TYPES; k++)
			if (ttmon_tt_is_known(k, v->chips[i].bytes[k], v->chips[i].flags))
				TTMON_NUM(m, TT_MEMORY, v->chips[i].bytes[k], number(chip, v->chips[i].fact.index),
					  ttmon_tt_type_name(k));
	for (size_t i = 0; i < v->nr_chips; i++)
		for (unsigned int k = 0; k < TTMON_TT_TYPES; k++)
			if (ttmon_tt_is_known(k, v->chips[i].peak[k], v->chips[i].ever))
				TTMON_NUM(m, TT_MEMORY_PEAK, v->chips[i].peak[k], number(chip, v->chips[i].fact.index),
					  ttmon_tt_type_name(k));
	for (size_t i = 0; i < v->nr_chips; i++) {
		const struct ttmon_ev_tt_chip *f = &v->chips[i].fact;

		if (f->dram_bytes)
			TTMON_NUM(m, TT_CAPACITY, f->dram_bytes, number(chip, f->index), "dram");
		if (f->l1_bytes)
			TTMON_NUM(m, TT_CAPACITY, f->l1_bytes, number(chip, f->index), "l1");
	}
}

static void published(struct ttmon_metrics *m, const struct ttmon_ttrun_view *v)
{
	/* By enum ttmon_ttshm_state. */
	static const char *const states[] = { "published", "foreign", "refused", "idle", "unknown" };
	char chip[16];

	for (size_t i = 0; i < v->nr_shm; i++)
		for (unsigned int k = 0; k < ARRAY_SIZE(states); k++)
			TTMON_NUM(m, TT_PUBLISHED, v->shm[i].state == k, number(chip, v->shm[i].index), states[k]);
}

static void work(struct ttmon_metrics *m)
{
	static const char *const kinds[TTMON_TT_DISPATCH_MAX] = {
#define X(id, NAME, name) [id] = name,
		TTMON_TT_DISPATCH_TABLE(X)
#undef X
	};
	const struct ttmon_metrics_tt *t = m->tt;
	char chip[16];

	for (uint32_t i = 0; i < CHIPS; i++)
		for (unsigned int k = 0; t->chips[i].used && k < TTMON_TT_DISPATCH_MAX; k++)
			TTMON_NUM(m, TT_DISPATCHES, t->chips[i].dispatches[k], number(chip, i), kinds[k]);
	for (uint32_t i = 0; i < CHIPS; i++)
		if (t->chips[i].used)
			TTMON_SECONDS(m, TT_BUSY, t->chips[i].busy[BUSY_NS], number(chip, i));
	for (uint32_t i = 0; i < CHIPS; i++)
		if (t->chips[i].used)
			TTMON_SECONDS(m, TT_BUSY_ERROR, t->chips[i].busy[BUSY_ERROR_NS], number(chip, i));
	for (uint32_t i = 0; i < CHIPS; i++)
		if (t->chips[i].used)
			TTMON_NUM(m, TT_UNBOUNDED, t->chips[i].busy[BUSY_UNBOUNDED], number(chip, i));
}

static void followers(struct ttmon_metrics *m)
{
	struct ttmon_follow_stats s;

	ttmon_follow_get_stats(ttmon_daemon_part(m->c, &ttmon_part_programs), &s);
	TTMON_NUM(m, TT_FOLLOWERS, s.followers);
	TTMON_NUM(m, TT_MISSED, s.missed);
}

static void processes(struct ttmon_metrics *m, const struct ttmon_tt_view *v)
{
	uint64_t n = 0, flagged[TTMON_TT_FLAGS] = { 0 };

	for (size_t i = 0; i < v->nr_procs; i++) {
		if (v->procs[i].end_ns)
			continue;
		n++;
		for (unsigned int k = 0; k < TTMON_TT_FLAGS; k++)
			flagged[k] += v->procs[i].flags >> k & 1;
	}
	TTMON_NUM(m, TT_PROCESSES, n);
	for (unsigned int k = 0; k < TTMON_TT_FLAGS; k++)
		TTMON_NUM(m, TT_FLAGGED, flagged[k], ttmon_tt_flag_name(k));
}

void ttmon_metrics_chips(struct ttmon_metrics *m)
{
	struct ttmon_ttrun_view v;

	if (!ttmon_ttrun_get(m->c, &v))
		return;
	if (!v.tt->nr_chips && !v.tt->nr_procs)
		return;
	ttmon_metrics_tt_take(m);
	info(m, v.tt);
	memory(m, v.tt);
	published(m, &v);
	work(m);
	followers(m);
	processes(m, v.tt);
}
