// SPDX-License-Identifier: GPL-2.0-only
/*
 * know.c: see know.h. A list of gaps in the order of their reports. The gaps of one process are
 * chained from the newest on, and so are those of the whole host, so that a lookup visits few of them.
 * Errors go one way only: time outside every gap was certainly seen.
 */
#include "daemon/core/know/know.h"

#include "lib/base/hmap.h"

#define GAPS_MAX 65536u
#define NOBODY	 UINT32_MAX
/*
 * Two losses no further apart than this are one gap: under overload there would otherwise be one per
 * slot.
 */
#define LOST_TOGETHER_NS 100000000ULL

struct ttmon_know {
	struct ttmon_gap *gaps;
	uint32_t *older; /* next older gap of the same process */
	uint32_t n, cap;
	struct ttmon_hmap newest; /* newest gap by tgid */
	struct ttmon_hmap driver; /* processes announced as TTMON_PROC_DRIVER: start_ns by tgid */
	uint64_t changes;
};

static const struct {
	const char *name;
	enum ttmon_incomplete reason;
	const char *help;
} whys[TTMON_GAP_WHY_MAX] = {
#define X(id, NAME, name, reason, help) { name, TTMON_INCOMPLETE_##reason, help },
	TTMON_GAP_WHY_TABLE(X)
#undef X
};

const char *ttmon_gap_state_name(unsigned int state)
{
	static const char *const names[] = {
#define X(id, NAME, name) [id] = name,
		TTMON_GAP_STATE_TABLE(X)
#undef X
	};

	return state < ARRAY_SIZE(names) ? names[state] : NULL;
}

const char *ttmon_gap_why_name(unsigned int why)
{
	return why < ARRAY_SIZE(whys) ? whys[why].name : NULL;
}

enum ttmon_incomplete ttmon_gap_why_reason(unsigned int why)
{
	return whys[why].reason;
}

const char *ttmon_gap_why_help(unsigned int why)
{
	return why < ARRAY_SIZE(whys) ? whys[why].help : NULL;
}

int ttmon_know_new(struct ttmon_know **ret)
{
	struct ttmon_know *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	/* The last place is reserved: a gap that finds no other room becomes a gap of the whole host there. */
	k->cap = 16;
	k->gaps = calloc(k->cap, sizeof(*k->gaps));
	k->older = calloc(k->cap, sizeof(*k->older));
	if (!k->gaps || !k->older || ttmon_hmap_put(&k->newest, 0, NOBODY) < 0) {
		ttmon_know_free(k);
		return -ENOMEM;
	}
	*ret = k;
	return 0;
}

void ttmon_know_free(struct ttmon_know *k)
{
	if (!k)
		return;
	free(k->gaps);
	free(k->older);
	ttmon_hmap_fini(&k->newest);
	ttmon_hmap_fini(&k->driver);
	free(k);
}

/* The newest gap of a process, or of the whole host (0). */
static uint32_t newest(const struct ttmon_know *k, uint32_t tgid)
{
	uint64_t at = ttmon_hmap_get(&k->newest, tgid);

	return at == TTMON_HMAP_NONE ? NOBODY : (uint32_t)at;
}

/* Makes room for one more gap, beside the reserved place. */
static bool has_room(struct ttmon_know *k)
{
	uint32_t cap = k->cap * 2, *older;
	struct ttmon_gap *gaps;

	if (k->n + 1 < k->cap)
		return true;
	if (cap > GAPS_MAX)
		return false;
	gaps = realloc(k->gaps, cap * sizeof(*gaps));
	if (gaps)
		k->gaps = gaps;
	older = gaps ? realloc(k->older, cap * sizeof(*older)) : NULL;
	if (!older)
		return false;
	k->older = older;
	k->cap = cap;
	return true;
}

static void widen(struct ttmon_gap *g, const struct ttmon_gap *by)
{
	g->from_ns = MIN(g->from_ns, by->from_ns);
	g->to_ns = MAX(g->to_ns, by->to_ns);
	g->families |= by->families;
}

/*
 * Without room, the newest gap of the whole host is extended to cover it; where there is none, it is
 * made in the reserved place.
 */
static void add(struct ttmon_know *k, const struct ttmon_gap *g)
{
	uint32_t before = newest(k, g->tgid), at = newest(k, 0);
	bool room = has_room(k) && ttmon_hmap_put(&k->newest, g->tgid, k->n) == 0;

	k->changes++;
	if (!room && at != NOBODY) {
		widen(&k->gaps[at], g);
		return;
	}
	k->older[k->n] = before;
	k->gaps[k->n] = *g;
	if (!room) {
		k->older[k->n] = NOBODY;
		k->gaps[k->n].tgid = 0;
		/* The key has been there from the beginning, so this needs no memory. */
		(void)!ttmon_hmap_put(&k->newest, 0, k->n);
	}
	k->n++;
}

static bool has_driver(const struct ttmon_know *k, uint32_t tgid)
{
	return ttmon_hmap_get(&k->driver, tgid) != TTMON_HMAP_NONE;
}

/* A gap of a stripped runtime that the process still has mapped. */
static bool lasts(const struct ttmon_gap *g, unsigned int why)
{
	return why == TTMON_GAP_STRIPPED && g->why == why && g->to_ns == UINT64_MAX;
}

/*
 * Builds the chains again from the oldest gap on, since gaps of tgid were removed. Every key exists;
 * that of tgid is removed if it has no gap left.
 */
static void rechain(struct ttmon_know *k, uint32_t tgid)
{
	(void)!ttmon_hmap_put(&k->newest, tgid, NOBODY);
	(void)!ttmon_hmap_put(&k->newest, 0, NOBODY);
	for (uint32_t i = 0; i < k->n; i++) {
		uint32_t of = k->gaps[i].tgid;
		uint64_t at = ttmon_hmap_get(&k->newest, of);

		k->older[i] = at == TTMON_HMAP_NONE || at >= i ? NOBODY : (uint32_t)at;
		(void)!ttmon_hmap_put(&k->newest, of, i);
	}
	if (newest(k, tgid) == NOBODY)
		(void)!ttmon_hmap_del(&k->newest, tgid);
}

/* The file has been read by now and holds nothing to probe, so the gap is removed. */
static void not_unread(struct ttmon_know *k, const struct ttmon_ev_blind *ev)
{
	for (uint32_t i = newest(k, ev->h.tgid); i != NOBODY; i = k->older[i]) {
		const struct ttmon_gap *g = &k->gaps[i];

		if (g->why != TTMON_GAP_UNREAD || g->object != ev->object || g->from_ns != ev->mapped_ns)
			continue;
		memmove(&k->gaps[i], &k->gaps[i + 1], (k->n - i - 1) * sizeof(*k->gaps));
		k->n--;
		k->changes++;
		rechain(k, ev->h.tgid);
		return;
	}
}

void ttmon_know_on_blind(struct ttmon_know *k, const struct ttmon_ev_blind *ev)
{
	struct ttmon_gap g = {
		.from_ns = ev->mapped_ns,
		.to_ns = ev->active_ns,
		.tgid = ev->h.tgid,
		.object = ev->object,
		.families = ev->families ? ev->families : TTMON_FAMILIES_CUDA,
		.state = TTMON_GAP_NOT_YET,
		.why = ev->how == TTMON_BLIND_STRIPPED	 ? TTMON_GAP_STRIPPED
		       : ev->how == TTMON_BLIND_REFUSED	 ? TTMON_GAP_REFUSED
		       : ev->how == TTMON_BLIND_UNPROBED ? TTMON_GAP_UNPROBED
		       : ev->how == TTMON_BLIND_UNREAD	 ? TTMON_GAP_UNREAD
		       : ev->mapped_ns			 ? TTMON_GAP_WINDOW
							 : TTMON_GAP_LATE,
	};

	if (ev->how == TTMON_BLIND_UNREAD && !ev->active_ns)
		not_unread(k, ev);
	if (ev->how == TTMON_BLIND_HELD || g.to_ns <= g.from_ns || !g.tgid)
		return;
	if (g.why == TTMON_GAP_STRIPPED && has_driver(k, g.tgid))
		return;
	for (uint32_t i = newest(k, g.tgid); i != NOBODY; i = k->older[i]) {
		const struct ttmon_gap *old = &k->gaps[i];

		if (old->object == g.object && old->to_ns == g.to_ns &&
		    (old->from_ns == g.from_ns || lasts(old, g.why)))
			return;
	}
	add(k, &g);
}

void ttmon_know_unaddressed(struct ttmon_know *k, uint32_t tgid, uint64_t ts_ns)
{
	struct ttmon_gap g = {
		.from_ns = ts_ns,
		.to_ns = UINT64_MAX,
		.tgid = tgid,
		.families = TTMON_FAMILY_BIT(ALLOC),
		.state = TTMON_GAP_NOT_YET,
		.why = TTMON_GAP_NO_ADDRESS,
	};

	for (uint32_t i = newest(k, tgid); tgid && i != NOBODY; i = k->older[i])
		if (k->gaps[i].why == g.why && k->gaps[i].to_ns == UINT64_MAX)
			return;
	if (tgid)
		add(k, &g);
}

void ttmon_know_on_family(struct ttmon_know *k, const struct ttmon_ev_family *ev)
{
	struct ttmon_gap g = {
		.from_ns = ev->h.ts_ns,
		.to_ns = UINT64_MAX,
		.tgid = ev->h.tgid,
		.families = 1u << ev->family,
		.state = ev->state == TTMON_FAMILY_COUNTING ? TTMON_GAP_COUNTING : TTMON_GAP_OFF,
		.why = ev->why ? TTMON_GAP_BUDGET : TTMON_GAP_ASKED,
	};

	for (uint32_t i = newest(k, g.tgid); i != NOBODY; i = k->older[i]) {
		if (k->gaps[i].families != g.families || k->gaps[i].to_ns != UINT64_MAX ||
		    k->gaps[i].state == TTMON_GAP_NOT_YET)
			continue;
		k->gaps[i].to_ns = MAX(g.from_ns, k->gaps[i].from_ns);
		k->changes++;
	}
	if (ev->state != TTMON_FAMILY_ON)
		add(k, &g);
}

void ttmon_know_lost(struct ttmon_know *k, uint32_t families, uint64_t from_ns, uint64_t to_ns)
{
	struct ttmon_gap g = {
		.from_ns = from_ns,
		.to_ns = to_ns,
		.families = families,
		.state = TTMON_GAP_LOSING,
		.why = TTMON_GAP_LOST,
	};
	uint32_t last = newest(k, 0);

	if (last != NOBODY && k->gaps[last].why == TTMON_GAP_LOST && k->gaps[last].families == families &&
	    from_ns <= k->gaps[last].to_ns + LOST_TOGETHER_NS) {
		widen(&k->gaps[last], &g);
		k->changes++;
	} else {
		add(k, &g);
	}
}

static bool overlaps(const struct ttmon_gap *g, uint32_t families, uint64_t from_ns, uint64_t to_ns)
{
	return g->families & families && g->from_ns < MAX(to_ns, from_ns + 1) && g->to_ns > from_ns;
}

enum ttmon_knowledge ttmon_know_of(const struct ttmon_know *k, enum ttmon_family family, uint32_t tgid,
				   uint64_t from_ns, uint64_t to_ns, const struct ttmon_gap **why)
{
	enum ttmon_knowledge known = TTMON_KNOWN;
	const struct ttmon_gap *most = NULL;

	/* First the gaps of the process, then those of the whole host. */
	for (unsigned int pass = tgid ? 0 : 1; pass < 2; pass++) {
		for (uint32_t i = newest(k, pass ? 0 : tgid); i != NOBODY; i = k->older[i]) {
			const struct ttmon_gap *g = &k->gaps[i];
			bool whole = g->from_ns <= from_ns && g->to_ns >= to_ns && g->state != TTMON_GAP_LOSING &&
				     !ttmon_gap_is_partial(g->why);

			if (!overlaps(g, 1u << family, from_ns, to_ns))
				continue;
			if (!most || (whole && known != TTMON_UNKNOWN))
				most = g;
			known = whole ? TTMON_UNKNOWN : MAX(known, TTMON_AT_LEAST);
		}
	}
	if (why)
		*why = most;
	return known;
}

bool ttmon_know_missing(const struct ttmon_know *k, enum ttmon_family family, uint32_t tgid, uint64_t from_ns,
			uint64_t to_ns)
{
	for (unsigned int pass = 0; pass < 2; pass++) {
		for (uint32_t i = newest(k, pass ? 0 : tgid); i != NOBODY; i = k->older[i]) {
			const struct ttmon_gap *g = &k->gaps[i];
			bool sampled = !pass && g->state == TTMON_GAP_COUNTING && g->why == TTMON_GAP_BUDGET;

			if (!sampled && overlaps(g, 1u << family, from_ns, to_ns))
				return true;
		}
	}
	return false;
}

static uint64_t last_end(const struct ttmon_know *k, enum ttmon_family family, uint32_t tgid, uint64_t ts_ns,
			 bool not_yet)
{
	uint64_t to = 0;

	for (unsigned int pass = tgid ? 0 : 1; pass < 2; pass++)
		for (uint32_t i = newest(k, pass ? 0 : tgid); i != NOBODY; i = k->older[i])
			if (k->gaps[i].families >> family & 1 && k->gaps[i].from_ns <= ts_ns &&
			    k->gaps[i].why != TTMON_GAP_STRIPPED && (not_yet || k->gaps[i].state != TTMON_GAP_NOT_YET))
				to = MAX(to, k->gaps[i].to_ns);
	return to;
}

uint64_t ttmon_know_unseen_to(const struct ttmon_know *k, enum ttmon_family family, uint32_t tgid, uint64_t ts_ns)
{
	return last_end(k, family, tgid, ts_ns, true);
}

uint64_t ttmon_know_doubt_to(const struct ttmon_know *k, enum ttmon_family family, uint32_t tgid, uint64_t ts_ns)
{
	return last_end(k, family, tgid, ts_ns, false);
}

uint64_t ttmon_know_probed_ns(const struct ttmon_know *k, uint32_t tgid)
{
	uint64_t to = 0;

	for (uint32_t i = newest(k, tgid); i != NOBODY; i = k->older[i])
		if (k->gaps[i].state == TTMON_GAP_NOT_YET && k->gaps[i].to_ns != UINT64_MAX)
			to = MAX(to, k->gaps[i].to_ns);
	return to;
}

uint32_t ttmon_know_families(const struct ttmon_know *k, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t on = (1u << TTMON_FAMILY_MAX) - 1;

	for (uint32_t i = 0; i < k->n; i++)
		if (!ttmon_gap_is_partial(k->gaps[i].why) && overlaps(&k->gaps[i], on, from_ns, to_ns))
			on &= ~k->gaps[i].families;
	return on;
}

/* Ends the process's gaps that still last. why: only gaps of that reason; TTMON_GAP_WHY_MAX: all. */
static void end(struct ttmon_know *k, uint32_t tgid, uint64_t ts_ns, unsigned int why)
{
	for (uint32_t i = newest(k, tgid); tgid && i != NOBODY; i = k->older[i]) {
		if (k->gaps[i].to_ns != UINT64_MAX || k->gaps[i].from_ns > ts_ns ||
		    (why != TTMON_GAP_WHY_MAX && k->gaps[i].why != why))
			continue;
		k->gaps[i].to_ns = ts_ns;
		k->changes++;
	}
}

void ttmon_know_ended(struct ttmon_know *k, uint32_t tgid, uint64_t ts_ns)
{
	/* Later facts about this number are about another process. */
	(void)!ttmon_hmap_del(&k->driver, tgid);
	end(k, tgid, ts_ns, TTMON_GAP_WHY_MAX);
}

uint64_t ttmon_know_changes(const struct ttmon_know *k)
{
	return k->changes;
}

size_t ttmon_know_gaps(const struct ttmon_know *k, const struct ttmon_gap **ret)
{
	*ret = k->gaps;
	return k->n;
}

/*
 * Removes the gaps of a process that began at or before before_ns. why: only gaps of that reason that
 * still last (TTMON_GAP_WHY_MAX: all), since ended ones belong to a program that it executed before,
 * or to another process of that number. The list keeps its order, so that a replay with the same
 * events has the same list. Rare.
 */
static void drop(struct ttmon_know *k, uint32_t tgid, uint64_t before_ns, unsigned int why)
{
	uint32_t n = 0;

	if (!tgid || newest(k, tgid) == NOBODY)
		return;
	for (uint32_t i = 0; i < k->n; i++)
		if (k->gaps[i].tgid != tgid || k->gaps[i].from_ns > before_ns ||
		    (why != TTMON_GAP_WHY_MAX && !lasts(&k->gaps[i], why)))
			k->gaps[n++] = k->gaps[i];
	if (n == k->n)
		return;
	k->n = n;
	k->changes++;
	rechain(k, tgid);
}

void ttmon_know_forget(struct ttmon_know *k, uint32_t tgid, uint64_t before_ns)
{
	(void)!ttmon_hmap_del(&k->driver, tgid);
	drop(k, tgid, before_ns, TTMON_GAP_WHY_MAX);
}

static void on_doubt(struct ttmon_know *k, const struct ttmon_ev_proc *ev)
{
	struct ttmon_gap g = {
		.from_ns = ev->h.ts_ns,
		.to_ns = ev->h.ts_ns + (1ULL << TTMON_DOUBT_SHIFT),
		.tgid = ev->h.tgid,
		.families = ev->reason == TTMON_PROC_DOUBT	   ? TTMON_FAMILY_BIT(TRANSFER)
			    : ev->reason == TTMON_PROC_DOUBT_ALLOC ? TTMON_FAMILY_BIT(ALLOC)
								   : TTMON_FAMILY_BIT(LAUNCH),
		.state = TTMON_GAP_LOSING,
		.why = TTMON_GAP_DOUBT,
	};
	uint32_t last = newest(k, g.tgid);

	/* One that goes on is one gap. */
	if (last != NOBODY && k->gaps[last].why == g.why && k->gaps[last].families == g.families &&
	    g.from_ns <= k->gaps[last].to_ns + LOST_TOGETHER_NS) {
		widen(&k->gaps[last], &g);
		k->changes++;
	} else if (g.tgid) {
		add(k, &g);
	}
}

void ttmon_know_on_proc(struct ttmon_know *k, const struct ttmon_ev_proc *ev)
{
	uint32_t tgid = ev->h.tgid;
	bool now = ev->reason == TTMON_PROC_DRIVER || (ev->reason == TTMON_PROC_FORK && has_driver(k, ev->ppid));

	if (ev->reason >= TTMON_PROC_DOUBT) {
		on_doubt(k, ev);
		return;
	}
	if (ev->reason == TTMON_PROC_EXEC)
		end(k, tgid, ev->h.ts_ns, TTMON_GAP_STRIPPED);
	/* Without room the gap stays: the error is on the safe side. */
	if (now && ttmon_hmap_put(&k->driver, tgid, ev->start_ns) >= 0)
		drop(k, tgid, UINT64_MAX, TTMON_GAP_STRIPPED);
	else if (!now && (ev->reason != TTMON_PROC_SEEN || ttmon_hmap_get(&k->driver, tgid) != ev->start_ns))
		(void)!ttmon_hmap_del(&k->driver, tgid);
}
