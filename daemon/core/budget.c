// SPDX-License-Identifier: GPL-2.0-only
/*
 * budget.c: the rule of --max-overhead, see budget.h. It has a clock of its own, which runs with the samples' but by 2 s a sample at most: a
 * daemon that was stopped for an hour has not been under its budget for an hour.
 *
 * The daemon's own time is shared among the families by their hits, since it is spent on their events: what a hit of a family costs is the time
 * of its programs and of this share, in the second in which it is reduced.
 */
#include "core/budget.h"

#define RUN	    3 /* samples in a row before anything is done */
#define STEP_MAX    (2 * NSEC_PER_SEC)
#define PAUSE_MIN   (10 * NSEC_PER_SEC)
#define PAUSE_MAX   (600 * NSEC_PER_SEC)
#define RELAPSE_NS  (60 * NSEC_PER_SEC) /* to go again within this is to have come back too early */
#define CLOCK_NEVER UINT64_MAX

struct family {
	uint64_t pause_ns;
	uint64_t good_ns;     /* since when it could have come back, as a length */
	uint64_t back_ns;     /* when it came back, by our clock */
	double cost_ns, hits; /* a second, when it was reduced */
};

struct ttmon_budget {
	struct ttmon_budget_cfg cfg;
	struct ttmon_budget_sample last;
	struct ttmon_budget_view view;
	bool begun;
	uint64_t clock_ns;
	unsigned int over; /* samples in a row */
	struct family families[TTMON_FAMILY_MAX];
};

/* Of one sample. */
struct gain {
	double percent_ns; /* this many nanoseconds are one percent of the host */
	uint64_t step_ns;  /* what our clock has gone on by */
	double seconds;
	uint64_t daemon_ns, hits_all, bpf_ns[TTMON_FAMILY_MAX], hits[TTMON_FAMILY_MAX];
};

int ttmon_budget_new(const struct ttmon_budget_cfg *cfg, struct ttmon_budget **ret)
{
	struct ttmon_budget *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->cfg = *cfg;
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++)
		b->families[f].back_ns = CLOCK_NEVER;
	*ret = b;
	return 0;
}

void ttmon_budget_free(struct ttmon_budget *b)
{
	free(b);
}

/* A counter that is smaller than it was has begun anew. */
static uint64_t gained(uint64_t now, uint64_t before)
{
	return now < before ? now : now - before;
}

static void measure(struct ttmon_budget *b, const struct ttmon_budget_sample *s, struct gain *g)
{
	const struct ttmon_budget_sample *last = &b->last;
	uint64_t ns = s->now_ns - last->now_ns;
	struct ttmon_budget_view *v = &b->view;

	g->seconds = (double)ns / NSEC_PER_SEC;
	g->percent_ns = (double)ns * MAX(b->cfg.cpus, 1U) / 100;
	g->step_ns = MIN(ns, STEP_MAX);
	g->daemon_ns = gained(s->daemon_ns, last->daemon_ns);
	g->hits_all = 0;
	v->daemon_percent = (double)g->daemon_ns / g->percent_ns;
	v->bpf_percent = 0;
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++) {
		g->bpf_ns[f] = gained(s->bpf_ns[f], last->bpf_ns[f]);
		g->hits[f] = gained(s->hits[f], last->hits[f]);
		v->family_percent[f] = (double)g->bpf_ns[f] / g->percent_ns;
		v->bpf_percent += v->family_percent[f];
		/* Hits that are only counted cost the daemon nothing. */
		g->hits_all += v->counting >> f & 1 ? 0 : g->hits[f];
	}
	v->percent = v->daemon_percent + v->bpf_percent;
}

/* What the family, which is on, has cost, in nanoseconds. */
static double cost(const struct gain *g, unsigned int f)
{
	return (double)g->bpf_ns[f] +
	       (g->hits_all ? (double)g->daemon_ns * (double)g->hits[f] / (double)g->hits_all : 0);
}

static void reduce(struct ttmon_budget *b, const struct gain *g, unsigned int f)
{
	struct family *family = &b->families[f];
	bool relapse = family->back_ns != CLOCK_NEVER && b->clock_ns - family->back_ns < RELAPSE_NS;

	family->pause_ns = relapse ? MIN(2 * family->pause_ns, PAUSE_MAX) : PAUSE_MIN;
	family->cost_ns = cost(g, f) / g->seconds;
	family->hits = (double)g->hits[f] / g->seconds;
	b->view.counting |= 1U << f;
	b->view.reduced[f]++;
}

/* The dearest of those that may be reduced; one that costs nothing would save nothing. */
static void reduce_dearest(struct ttmon_budget *b, const struct gain *g, uint32_t countable)
{
	unsigned int dearest = TTMON_FAMILY_MAX;

	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++)
		if ((countable & ~b->view.counting) >> f & 1 && cost(g, f) > 0 &&
		    (dearest == TTMON_FAMILY_MAX || cost(g, f) > cost(g, dearest)))
			dearest = f;
	b->view.over = dearest == TTMON_FAMILY_MAX;
	if (!b->view.over)
		reduce(b, g, dearest);
}

/* What the family would cost if it were on, in percent: as much a hit as when it was reduced. */
static double needs(const struct family *family, const struct gain *g, unsigned int f)
{
	double hits = family->hits > 0 ? (double)g->hits[f] / family->hits : g->seconds;

	return family->cost_ns * hits / g->percent_ns;
}

/* Bring one family back whose time has come: the one that needs the least. The others begin to wait anew, with it in the cost. */
static void restore_one(struct ttmon_budget *b, const struct gain *g)
{
	unsigned int back = TTMON_FAMILY_MAX;
	double least = 0;

	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++) {
		struct family *family = &b->families[f];
		double need = needs(family, g, f);

		if (!(b->view.counting >> f & 1))
			continue;
		family->good_ns = b->view.percent + need < b->cfg.max_percent ? family->good_ns + g->step_ns : 0;
		if (family->good_ns >= family->pause_ns && (back == TTMON_FAMILY_MAX || need < least)) {
			back = f;
			least = need;
		}
	}
	if (back == TTMON_FAMILY_MAX)
		return;
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++)
		b->families[f].good_ns = 0;
	b->families[back].back_ns = b->clock_ns;
	b->view.counting &= ~(1U << back);
}

bool ttmon_budget_sample(struct ttmon_budget *b, const struct ttmon_budget_sample *s)
{
	const uint32_t counting = b->view.counting;
	const bool over = b->view.over;
	struct gain g;

	/* Whatever somebody else has switched off, or keeps on, is no longer ours. */
	b->view.counting &= s->countable;
	if (b->begun && ttmon_before(b->last.now_ns, s->now_ns)) {
		measure(b, s, &g);
		b->clock_ns += g.step_ns;
		b->over = b->cfg.max_percent > 0 && b->view.percent > b->cfg.max_percent ? b->over + 1 : 0;
		b->view.over = b->view.over && b->over;
		if (b->over >= RUN) {
			reduce_dearest(b, &g, s->countable);
			b->over = b->view.over ? RUN : 0;
		}
		restore_one(b, &g);
	}
	b->last = *s;
	b->begun = true;
	return b->view.counting != counting || b->view.over != over;
}

void ttmon_budget_reset(struct ttmon_budget *b)
{
	b->view.counting = 0;
	b->view.over = false;
	b->over = 0;
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++)
		b->families[f].back_ns = CLOCK_NEVER;
}

void ttmon_budget_get(const struct ttmon_budget *b, struct ttmon_budget_view *ret)
{
	*ret = b->view;
}
