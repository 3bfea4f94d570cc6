// SPDX-License-Identifier: GPL-2.0-only
/*
 * budget.c: the rule of --max-overhead, see budget.h. It has its own clock. Each sample advances this
 * clock by the time since the last sample, but by at most two periods: a daemon that was stopped for
 * an hour has not been under its budget for an hour.
 */
#include "daemon/core/usage/budget.h"

#define WINDOW 10 /* samples that are judged together */
#define TRIAL  3  /* after this many samples the effect of a reduction is checked */
/* Times, in periods of a sample. */
#define STEP_MAX    2
#define PAUSE_MIN   10
#define PAUSE_MAX   600
#define RELAPSE	    60 /* a family that is reduced again within this time came back too early */
#define USELESS	    60 /* a reduction without effect is not tried again for this long */
#define CLOCK_NEVER UINT64_MAX

/* The share of the excess over the budget that a reduction must save. */
#define WORTH_ANY      0.1
#define WORTH_FAMILIES 0.25 /* for families other than transfers */
#define OWN_SHARE      0.5  /* share of a family's hits above which a process is reduced alone */
#define SMALL_NEED     0.1  /* as a share of the budget */

struct family {
	uint64_t pause_ns;
	uint64_t back_ns;    /* when it came back last, by the clock of this file */
	uint64_t useless_ns; /* it is not tried again before this time */
};

/* State of a reduction that is in force, beside its row in view.reductions. */
struct active {
	uint64_t pause_ns;
	uint64_t good_ns;     /* how long the cost has allowed it to come back */
	double cost_ns, hits; /* per second, at the time when it was reduced */
};

/* What one sample, or several together, added. */
struct gain {
	double seconds, percent_ns; /* number of nanoseconds that are one percent of the host's CPU time */
	uint64_t step_ns;	    /* how far the clock of this file has advanced */
	double daemon_ns, records_ns, all_records, bpf_all_ns;
	double bpf_ns[TTMON_FAMILY_MAX], hits[TTMON_FAMILY_MAX], records[TTMON_FAMILY_MAX];
};

struct ttmon_budget {
	struct ttmon_budget_cfg cfg;
	struct ttmon_budget_sample last;
	struct ttmon_budget_view view;
	bool begun;
	uint64_t clock_ns;
	struct gain window[WINDOW]; /* the last nr_window samples since the last change */
	unsigned int nr_window;
	struct active active[TTMON_BUDGET_MAX];
	struct family families[TTMON_FAMILY_MAX];
	/* The newest reduction of the view is checked after this many more samples; 0: none is on trial. */
	unsigned int trial;
	struct gain before; /* the costs before it was made */
	double share;	    /* its share of the family's cost */
};

static void families_begin(struct ttmon_budget *b)
{
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++)
		b->families[f] = (struct family){ .back_ns = CLOCK_NEVER };
}

static uint64_t periods(const struct ttmon_budget *b, unsigned int n)
{
	return n * b->cfg.period_ns;
}

int ttmon_budget_new(const struct ttmon_budget_cfg *cfg, struct ttmon_budget **ret)
{
	struct ttmon_budget *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->cfg = *cfg;
	if (!b->cfg.period_ns)
		b->cfg.period_ns = NSEC_PER_SEC;
	b->view.max_percent = cfg->max_percent;
	families_begin(b);
	*ret = b;
	return 0;
}

void ttmon_budget_free(struct ttmon_budget *b)
{
	free(b);
}

/* ---- what was measured ---- */

/* A counter that is smaller than before has started again from 0. */
static double gained(uint64_t now, uint64_t before)
{
	return (double)(now < before ? now : now - before);
}

static void measure(struct ttmon_budget *b, const struct ttmon_budget_sample *s, struct gain *g)
{
	const struct ttmon_budget_sample *last = &b->last;
	uint64_t ns = s->now_ns - last->now_ns;

	*g = (struct gain){
		.seconds = (double)ns / NSEC_PER_SEC,
		.percent_ns = (double)ns * MAX(b->cfg.cpus, 1U) / 100,
		.step_ns = MIN(ns, periods(b, STEP_MAX)),
		.daemon_ns = gained(s->daemon_ns, last->daemon_ns),
	};
	g->records_ns = MIN(gained(s->records_ns, last->records_ns), g->daemon_ns);
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++) {
		g->bpf_ns[f] = gained(s->bpf_ns[f], last->bpf_ns[f]);
		g->hits[f] = gained(s->hits[f], last->hits[f]);
		g->records[f] = gained(s->records[f], last->records[f]);
		g->all_records += g->records[f];
		g->bpf_all_ns += g->bpf_ns[f];
	}
}

static void add(struct gain *sum, const struct gain *g)
{
	sum->seconds += g->seconds;
	sum->percent_ns += g->percent_ns;
	sum->step_ns += g->step_ns;
	sum->daemon_ns += g->daemon_ns;
	sum->records_ns += g->records_ns;
	sum->all_records += g->all_records;
	sum->bpf_all_ns += g->bpf_all_ns;
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++) {
		sum->bpf_ns[f] += g->bpf_ns[f];
		sum->hits[f] += g->hits[f];
		sum->records[f] += g->records[f];
	}
}

static double percent(const struct gain *g)
{
	return (g->daemon_ns + g->bpf_all_ns) / g->percent_ns;
}

/*
 * The cost of a family in nanoseconds: the run time of its programs, and its share of the time spent
 * on records.
 */
static double cost(const struct gain *g, unsigned int f)
{
	return g->bpf_ns[f] + (g->all_records > 0 ? g->records_ns * g->records[f] / g->all_records : 0);
}

static void show(struct ttmon_budget *b, const struct gain *g)
{
	struct ttmon_budget_view *v = &b->view;

	v->percent = percent(g);
	v->daemon_percent = g->daemon_ns / g->percent_ns;
	v->bpf_percent = g->bpf_all_ns / g->percent_ns;
	v->base_percent = (g->daemon_ns - (g->all_records > 0 ? g->records_ns : 0)) / g->percent_ns;
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++)
		v->family_percent[f] = g->bpf_ns[f] / g->percent_ns;
}

/* ---- reducing ---- */

static bool is_of_all(const struct ttmon_reduction *r)
{
	return !r->tgid && r->uid == TTMON_BUDGET_NOBODY;
}

/* Returns true if `what`, or something that includes it, is already reduced. */
static bool is_reduced(const struct ttmon_budget *b, const struct ttmon_reduction *what)
{
	for (unsigned int i = 0; i < b->view.nr; i++) {
		const struct ttmon_reduction *r = &b->view.reductions[i];

		if (r->family == what->family &&
		    (is_of_all(r) || (!r->tgid && r->uid == what->uid) || (r->tgid && r->tgid == what->tgid)))
			return true;
	}
	return false;
}

static void drop(struct ttmon_budget *b, unsigned int i)
{
	b->view.nr--;
	memmove(&b->view.reductions[i], &b->view.reductions[i + 1], (b->view.nr - i) * sizeof(b->view.reductions[0]));
	memmove(&b->active[i], &b->active[i + 1], (b->view.nr - i) * sizeof(b->active[0]));
	b->trial = 0;
	b->nr_window = 0;
}

/* A reduction that was found, and its share of the family's cost and of its hits. */
struct found {
	struct ttmon_reduction what;
	double share, hits, percent;
};

static void reduce(struct ttmon_budget *b, const struct gain *g, const struct found *found)
{
	uint32_t family = found->what.family;
	struct family *f = &b->families[family];
	bool relapse = f->back_ns != CLOCK_NEVER && b->clock_ns - f->back_ns < periods(b, RELAPSE);

	f->pause_ns = relapse ? MIN(2 * f->pause_ns, periods(b, PAUSE_MAX)) : periods(b, PAUSE_MIN);
	b->active[b->view.nr] = (struct active){
		.pause_ns = f->pause_ns,
		.cost_ns = found->share * cost(g, family) / g->seconds,
		.hits = found->hits * g->hits[family] / g->seconds,
	};
	b->view.reductions[b->view.nr++] = found->what;
	b->view.reduced[family]++;
	b->trial = TRIAL;
	b->before = *g;
	b->share = found->share;
	b->nr_window = 0;
}

static unsigned int nr_told(const struct ttmon_budget_sample *s)
{
	return MIN(s->nr_users, TTMON_BUDGET_USERS);
}

/*
 * The share of a family's cost that the hits cause which are still reported. Each of these hits is
 * assumed to cost as much as a hit did when the reduction was made.
 */
static double told_part(const struct ttmon_budget *b, const struct ttmon_budget_sample *s, const struct gain *g,
			unsigned int f)
{
	double all = cost(g, f);

	for (unsigned int i = 0; i < b->view.nr && all > 0; i++) {
		const struct active *a = &b->active[i];

		if (b->view.reductions[i].family == f && a->hits > 0)
			return MIN(MAX(1 - s->counted[f], 0.0) * g->hits[f] * a->cost_ns / a->hits / all, 1.0);
	}
	return 1;
}

/* The cost of the hits of a user that are still reported, as a share of the family's cost. */
static double told_of(const struct ttmon_budget *b, const struct ttmon_budget_sample *s, const struct gain *g,
		      unsigned int user, unsigned int f)
{
	double told = s->users[user].told[f];

	return told > 0 ? told / MAX(1 - s->counted[f], told) * told_part(b, s, g, f) : 0;
}

/* The cost that a user causes, in percent. */
static double cost_of_user(const struct ttmon_budget *b, const struct ttmon_budget_sample *s, const struct gain *g,
			   unsigned int user)
{
	double sum = 0;

	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++) {
		double counted = s->users[user].share[f] - s->users[user].told[f], share = told_of(b, s, g, user, f);

		if (counted > 0)
			share += counted / MAX(s->counted[f], counted) * (1 - told_part(b, s, g, f));
		sum += share * cost(g, f);
	}
	return sum / g->percent_ns;
}

/* Returns true if this user may be reduced, by the rule of budget.h. */
static bool pays(const struct ttmon_budget *b, const struct ttmon_budget_sample *s, const struct gain *g,
		 unsigned int user)
{
	double own = cost_of_user(b, s, g, user);
	bool most = true;

	for (unsigned int i = 0; i < nr_told(s); i++)
		most &= cost_of_user(b, s, g, i) <= own;
	return most || own > b->cfg.max_percent / s->nr_users;
}

/*
 * The cost of the hits that are still reported for users that may not be reduced, as a share of the
 * family's cost. *top: the user with most reported hits among the others; `nr_told()` if there is
 * none.
 */
static double spared(const struct ttmon_budget *b, const struct ttmon_budget_sample *s, const struct gain *g,
		     unsigned int f, unsigned int *top)
{
	double share = 0;

	*top = nr_told(s);
	for (unsigned int i = 0; i < nr_told(s); i++) {
		if (!pays(b, s, g, i))
			share += told_of(b, s, g, i, f);
		else if (s->users[i].told[f] > (*top < nr_told(s) ? s->users[*top].told[f] : 0))
			*top = i;
	}
	return share;
}

static bool pays_uid(const struct ttmon_budget *b, const struct ttmon_budget_sample *s, const struct gain *g,
		     uint32_t uid)
{
	for (unsigned int i = 0; i < nr_told(s); i++)
		if (s->users[i].uid == uid)
			return pays(b, s, g, i);
	return !s->nr_users;
}

/*
 * Finds the reduction in a family that saves most: in one process, for one user, or as a whole.
 * Returns false if no allowed reduction saves `least` percent.
 */
static bool find(const struct ttmon_budget *b, const struct ttmon_budget_sample *s, const struct gain *g,
		 unsigned int f, double least, struct found *ret)
{
	double all = cost(g, f) / g->percent_ns, told = told_part(b, s, g, f), rest;
	struct found found = { .what = { .family = f, .uid = TTMON_BUDGET_NOBODY }, .share = told, .hits = 1 };
	struct ttmon_reduction process = { .family = f, .tgid = s->top[f].tgid, .uid = s->top[f].uid };
	unsigned int top;

	if (!(s->countable >> f & 1) || b->families[f].useless_ns > b->clock_ns || is_reduced(b, &found.what))
		return false;
	rest = told - spared(b, s, g, f, &top);
	if (process.tgid && s->top[f].share >= OWN_SHARE && !is_reduced(b, &process) &&
	    pays_uid(b, s, g, process.uid)) {
		found.what = process;
		found.share = found.hits = MIN(s->top[f].share, 1.0);
	} else if (top < nr_told(s) && told_of(b, s, g, top, f) * all >= least) {
		found.what.uid = s->users[top].uid;
		found.share = told_of(b, s, g, top, f);
		found.hits = s->users[top].told[f];
	} else if (rest * all < least) {
		return false;
	}
	found.percent = found.share * all;
	*ret = found;
	return found.percent >= least;
}

static void reduce_one(struct ttmon_budget *b, const struct ttmon_budget_sample *s, const struct gain *g)
{
	double too_much = percent(g) - b->cfg.max_percent;
	struct found best = { .percent = 0 };

	/* Transfers come after the other families. */
	for (unsigned int pass = 0; pass < 3 && best.percent <= 0; pass++) {
		for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++) {
			double least = too_much * (pass < 2 ? WORTH_FAMILIES : WORTH_ANY);
			struct found found;

			if ((f == TTMON_FAMILY_TRANSFER) != (pass == 1) && pass < 2)
				continue;
			if (find(b, s, g, f, least, &found) && found.percent > best.percent)
				best = found;
		}
	}
	b->view.over = best.percent <= 0 || b->view.nr == TTMON_BUDGET_MAX;
	if (!b->view.over)
		reduce(b, g, &best);
}

/*
 * The expected cost of a family at the present rate of hits, in percent, if a hit costs as much as
 * before the last reduction.
 */
static double expected(const struct ttmon_budget *b, const struct gain *g, unsigned int f)
{
	const struct gain *was = &b->before;
	double hits = was->hits[f] > 0 ? g->hits[f] / g->seconds / (was->hits[f] / was->seconds) : 1;

	return cost(was, f) * hits / was->percent_ns;
}

/*
 * Checks whether the last reduction has saved half of what was expected. The cost is compared with the
 * expected cost of all families without the reduction, at the present rate of hits.
 */
static void judge_trial(struct ttmon_budget *b, const struct gain *g)
{
	unsigned int i = b->view.nr - 1, family = b->view.reductions[i].family;
	double without = percent(&b->before), promised = b->share * expected(b, g, family);

	if (!b->trial || --b->trial)
		return;
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++)
		without += expected(b, g, f) - cost(&b->before, f) / b->before.percent_ns;
	if (without - percent(g) >= promised / 2)
		return;
	b->families[family].useless_ns = b->clock_ns + periods(b, USELESS);
	drop(b, i);
}

/* ---- coming back ---- */

/*
 * The expected cost if this reduction were undone, in percent, if a hit costs as much as when it was
 * made.
 */
static double needs(const struct ttmon_budget *b, const struct ttmon_budget_sample *s, const struct gain *g,
		    unsigned int i)
{
	const struct ttmon_reduction *r = &b->view.reductions[i];
	const struct active *a = &b->active[i];
	double now = is_of_all(r) ? g->hits[r->family] : (double)s->reduced[i].hits;

	return a->cost_ns * (a->hits > 0 ? now / a->hits : g->seconds) / g->percent_ns;
}

/*
 * Undoes one reduction that its load no longer justifies: the one with the lowest expected cost, and
 * with it all whose expected cost is almost nothing. The waiting time of the others begins again,
 * since the cost now includes this one.
 */
static void restore(struct ttmon_budget *b, const struct ttmon_budget_sample *s, const struct gain *g)
{
	unsigned int back = TTMON_BUDGET_MAX;
	double need[TTMON_BUDGET_MAX], least = 0;

	for (unsigned int i = 0; i < b->view.nr; i++) {
		struct active *a = &b->active[i];
		uint64_t pause;

		need[i] = needs(b, s, g, i);
		pause = need[i] < SMALL_NEED * b->cfg.max_percent ? periods(b, PAUSE_MIN) : a->pause_ns;
		a->good_ns = percent(g) + need[i] < b->cfg.max_percent ? a->good_ns + g->step_ns : 0;
		if (a->good_ns >= pause && (back == TTMON_BUDGET_MAX || need[i] < least)) {
			back = i;
			least = need[i];
		}
	}
	if (back == TTMON_BUDGET_MAX)
		return;
	for (unsigned int i = b->view.nr; i-- > 0;) {
		bool small = need[i] < SMALL_NEED * b->cfg.max_percent / TTMON_BUDGET_MAX;

		if (i == back || (small && b->active[i].good_ns >= periods(b, PAUSE_MIN))) {
			b->families[b->view.reductions[i].family].back_ns = b->clock_ns;
			drop(b, i);
		} else if (!small) {
			b->active[i].good_ns = 0;
		}
	}
}

/*
 * Drops reductions of families that another client has switched off or keeps on, and of processes that
 * have ended.
 */
static void forget(struct ttmon_budget *b, const struct ttmon_budget_sample *s)
{
	for (unsigned int i = b->view.nr; i-- > 0;)
		if (!(s->countable >> b->view.reductions[i].family & 1) ||
		    (b->view.reductions[i].tgid && s->reduced[i].gone))
			drop(b, i);
}

bool ttmon_budget_add_sample(struct ttmon_budget *b, const struct ttmon_budget_sample *s)
{
	const struct ttmon_budget_view before = b->view;
	struct gain g, sum = { 0 };

	if (b->begun && ttmon_before(b->last.now_ns, s->now_ns)) {
		measure(b, s, &g);
		show(b, &g);
		b->clock_ns += g.step_ns;
		restore(b, s, &g);
		forget(b, s);
		if (b->nr_window == WINDOW)
			memmove(b->window, b->window + 1, --b->nr_window * sizeof(b->window[0]));
		/* Families that came back in this sample were not on for all of it, so it is not counted. */
		if (b->view.nr == before.nr)
			b->window[b->nr_window++] = g;
		for (unsigned int i = 0; i < b->nr_window; i++)
			add(&sum, &b->window[i]);
		if (b->view.nr && b->nr_window)
			judge_trial(b, &sum);
		if (b->cfg.max_percent <= 0 || !b->nr_window || percent(&sum) <= b->cfg.max_percent)
			b->view.over = false;
		else if (b->nr_window == WINDOW)
			reduce_one(b, s, &sum);
	} else {
		forget(b, s);
	}
	b->last = *s;
	b->begun = true;
	return b->view.over != before.over || b->view.nr != before.nr ||
	       memcmp(b->view.reductions, before.reductions, before.nr * sizeof(before.reductions[0])) != 0;
}

void ttmon_budget_reset(struct ttmon_budget *b)
{
	b->view.nr = 0;
	b->view.over = false;
	b->nr_window = b->trial = 0;
	families_begin(b);
}

void ttmon_budget_get(const struct ttmon_budget *b, struct ttmon_budget_view *ret)
{
	*ret = b->view;
}
