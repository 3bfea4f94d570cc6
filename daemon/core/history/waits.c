// SPDX-License-Identifier: GPL-2.0-only
/*
 * waits.c: see waits.h. Call sites are resolved some milliseconds after the first call from them, as
 * those of allocations are (siteq.c): by then it is known what was mapped.
 */
#include <ttmon/fns.h>

#include "daemon/core/history/history_int.h"
#include "lib/base/grow.h"

#define SETTLE_NS     50000000ULL
#define SETTLE_MAX_NS 2000000000ULL
#define NO_PROC	      UINT32_MAX

static const char *const kind_names[] = {
#define X(id, NAME, name, help) [id] = name,
	TTMON_WAIT_TABLE(X)
#undef X
};

static const char *const delay_names[] = {
#define X(id, NAME, name, help) [id] = name,
	TTMON_DELAY_TABLE(X)
#undef X
};

static const char *const runq_names[] = {
#define X(id, NAME, name, help) [id] = name,
	TTMON_WAIT_RUNQ_TABLE(X)
#undef X
};

static const char *const woke_names[] = {
#define X(id, NAME, name, help) [id] = name,
	TTMON_WAIT_WOKE_TABLE(X)
#undef X
};

static const char *const role_names[] = {
#define X(id, NAME, name, help) [id] = name,
	TTMON_WAIT_ROLE_TABLE(X)
#undef X
};

static const struct ttmon_fn_desc fns[TTMON_FN_COUNT] = { TTMON_FN_TABLE(TTMON_FN_DESC) };

const char *ttmon_wait_name(unsigned int kind)
{
	return kind < TTMON_WAIT_MAX ? kind_names[kind] : NULL;
}

const char *ttmon_delay_name(unsigned int delay)
{
	return delay < TTMON_DELAY_MAX ? delay_names[delay] : NULL;
}

const char *ttmon_wait_runq_name(unsigned int what)
{
	return what < TTMON_WAIT_RUNQ_MAX ? runq_names[what] : NULL;
}

const char *ttmon_wait_woke_name(unsigned int what)
{
	return what < TTMON_WAIT_WOKE_MAX ? woke_names[what] : NULL;
}

const char *ttmon_wait_role_name(unsigned int role)
{
	return role < TTMON_WAIT_ROLES ? role_names[role] : NULL;
}

const char *ttmon_wait_part_name(unsigned int part)
{
	static const char *const names[] = {
#define X(id, NAME, field, name) [id] = name,
		TTMON_WAIT_PART_TABLE(X)
#undef X
	};

	return part < TTMON_WAIT_PARTS ? names[part] : NULL;
}

uint64_t ttmon_wait_part_ns(const struct ttmon_wait_sums *s, unsigned int part)
{
	switch (part) {
#define X(id, NAME, field, name) \
	case id:                 \
		return s->field;
		TTMON_WAIT_PART_TABLE(X)
#undef X
	default:
		return 0;
	}
}

static bool pins(unsigned int method)
{
	return method == TTMON_METHOD_HOST_ALLOC || method == TTMON_METHOD_REGISTERED;
}

unsigned int ttmon_wait_kind_of(uint16_t fn)
{
	const struct ttmon_fn_desc *d = fn < TTMON_FN_COUNT ? &fns[fn] : &fns[0];

	switch (d->cls) {
	case TTMON_CLS_SYNC:
		return d->aux == TTMON_SYNC_ASK ? TTMON_WAIT_ASK : TTMON_WAIT_SYNC;
	case TTMON_CLS_ALLOC:
	case TTMON_CLS_ALLOC_PITCH:
	case TTMON_CLS_ALLOC_3D:
	case TTMON_CLS_REGISTER:
	case TTMON_CLS_MAP_VMM:
		return pins(d->aux) ? TTMON_WAIT_PIN : TTMON_WAIT_ALLOC;
	case TTMON_CLS_FREE:
		return pins(d->aux) ? TTMON_WAIT_UNPIN : TTMON_WAIT_FREE;
	case TTMON_CLS_RESET:
	case TTMON_CLS_RESET_CTX:
	case TTMON_CLS_RESET_DEV:
		return TTMON_WAIT_RESET;
	default:
		return d->cls >= TTMON_CLS_COPY && d->cls <= TTMON_CLS_DRV_3D ? TTMON_WAIT_COPY : TTMON_WAIT_MAX;
	}
}

/*
 * Two clocks: ns is by CLOCK_MONOTONIC, which NTP may let run 0.05 % slower or faster than the run
 * queue's. And that one stands still from a wake-up that preempts to the switch (kernel/sched/core.c,
 * rq_clock_skip_update()), up to 15 us here: where a call begins in between, its thread was off from
 * before the beginning. So a call that hardly ran can have been off, or queued, for a little longer
 * than it took; by more than that it is no figure.
 */
#define STANDS_STILL_NS 20000

/* The record of a call with processes that made it wait; NULL: it has none. */
static const struct ttmon_ev_wait_who *who_of(const struct ttmon_ev_wait *ev)
{
	return ev->bits & TTMON_W_WHO ? (const struct ttmon_ev_wait_who *)ev : NULL;
}

/*
 * Fills in what is left of total as unknown. The times of the record are from the same clock as total,
 * so they can only be less. Returns false if they are more: something is wrong with them then.
 */
static bool rest_is_unknown(uint64_t total, uint64_t *by, unsigned int n, unsigned int unknown)
{
	uint64_t left = total;

	for (unsigned int i = 0; i < n; i++) {
		if (by[i] > left)
			return false;
		left -= by[i];
	}
	by[unknown] = left;
	return true;
}

static unsigned int runq_of(const struct ttmon_who *who, uint32_t tgid)
{
	return who->role == TTMON_WAIT_ROLE_RAN_KERNEL ? TTMON_WAIT_RUNQ_KERNEL
	       : who->tgid == tgid		       ? TTMON_WAIT_RUNQ_OWN
						       : TTMON_WAIT_RUNQ_OTHER;
}

static unsigned int woke_of(const struct ttmon_who *who, uint32_t tgid)
{
	return who->role == TTMON_WAIT_ROLE_WOKE_KERNEL ? TTMON_WAIT_WOKE_KERNEL
	       : who->tgid == tgid			? TTMON_WAIT_WOKE_OWN
							: TTMON_WAIT_WOKE_OTHER;
}

/* Divides runq_ns and blocked_ns. If the record's times cannot be right, none is named. */
static void divide_more(struct ttmon_wait_parts *p, const struct ttmon_ev_wait *ev)
{
	const struct ttmon_ev_wait_who *e = who_of(ev);
	uint64_t runq[TTMON_WAIT_RUNQ_MAX] = { 0 }, woke[TTMON_WAIT_WOKE_MAX] = { 0 };

	p->runq[TTMON_WAIT_RUNQ_UNKNOWN] = p->runq_ns;
	p->woke[TTMON_WAIT_WOKE_UNKNOWN] = p->blocked_ns;
	if (!e)
		return;
	runq[TTMON_WAIT_RUNQ_THROTTLED] = e->sum[TTMON_WAIT_SUM_THROTTLED];
	runq[TTMON_WAIT_RUNQ_IDLE] = e->sum[TTMON_WAIT_SUM_IDLE];
	runq[TTMON_WAIT_RUNQ_UNNAMED] = e->sum[TTMON_WAIT_SUM_RAN_OTHERS];
	woke[TTMON_WAIT_WOKE_TIMER] = e->sum[TTMON_WAIT_SUM_TIMER];
	woke[TTMON_WAIT_WOKE_INTERRUPT] = e->sum[TTMON_WAIT_SUM_INTERRUPT];
	woke[TTMON_WAIT_WOKE_UNNAMED] = e->sum[TTMON_WAIT_SUM_WOKE_OTHERS];
	for (uint32_t i = 0; i < e->nr_rows; i++) {
		const struct ttmon_who *who = &e->row[i].who;

		if (who->role < TTMON_WAIT_ROLE_WOKE)
			runq[runq_of(who, ev->h.tgid)] += e->row[i].ns;
		else
			woke[woke_of(who, ev->h.tgid)] += e->row[i].ns;
	}
	if (!rest_is_unknown(p->runq_ns, runq, TTMON_WAIT_RUNQ_MAX, TTMON_WAIT_RUNQ_UNKNOWN) ||
	    !rest_is_unknown(p->blocked_ns, woke, TTMON_WAIT_WOKE_MAX, TTMON_WAIT_WOKE_UNKNOWN))
		return;
	memcpy(p->runq, runq, sizeof(runq));
	memcpy(p->woke, woke, sizeof(woke));
	p->named = true;
}

struct ttmon_wait_parts ttmon_wait_divide(const struct ttmon_ev_wait *ev)
{
	struct ttmon_wait_parts w = { .ns = ev->ns };
	uint64_t off_ns = ev->off_ns, runq_ns = ev->runq_ns, slack = ev->ns / 1000 + STANDS_STILL_NS;

	if (ev->bits & (TTMON_W_UNOBSERVED | TTMON_W_NO_BOOKS | TTMON_W_HIDDEN))
		return w;
	if (off_ns > ev->ns && off_ns - ev->ns <= slack)
		off_ns = ev->ns;
	if (runq_ns > off_ns && runq_ns - off_ns <= slack)
		runq_ns = off_ns;
	if (off_ns > ev->ns || runq_ns > off_ns)
		return w;
	w.on_ns = ev->ns - off_ns;
	w.runq_ns = runq_ns;
	w.blocked_ns = off_ns - runq_ns;
	w.known = true;
	divide_more(&w, ev);
	return w;
}

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int b = ns ? 63 - (unsigned int)__builtin_clzll(ns) : 0;

	return MIN(b, TTMON_WAIT_BUCKETS - 1U);
}

static void add(struct ttmon_wait_sums *s, const struct ttmon_ev_wait *ev, const struct ttmon_wait_parts *w)
{
	s->calls++;
	if (ev->bits & TTMON_W_UNOBSERVED) {
		s->unobserved++;
		return;
	}
	s->ns += w->ns;
	s->on_ns += w->on_ns;
	s->runq_ns += w->runq_ns;
	s->blocked_ns += w->blocked_ns;
	s->unknown_ns += w->known ? 0 : w->ns;
	for (unsigned int i = 0; i < TTMON_WAIT_RUNQ_MAX; i++)
		s->runq[i] += w->runq[i];
	for (unsigned int i = 0; i < TTMON_WAIT_WOKE_MAX; i++)
		s->woke[i] += w->woke[i];
	s->unknown += !w->known;
	s->hidden += (ev->bits & TTMON_W_HIDDEN) != 0;
	s->unended += (ev->bits & (TTMON_W_UNENDED | TTMON_W_EXEC)) != 0;
	s->minor += ev->minor;
	s->major += ev->major;
	s->voluntary += ev->voluntary;
	s->involuntary += ev->involuntary;
	s->bucket[bucket_of(w->ns)]++;
	if (!(ev->bits & TTMON_W_DELAYS))
		return;
	s->delays++;
	for (unsigned int i = 0; i < TTMON_DELAY_MAX; i++)
		s->delay[i] += ev->delay[i];
}

/* ---- call sites ---- */

static uint64_t hash(uint32_t proc, uint16_t fn, uint64_t caller)
{
	return ttmon_mix64(ttmon_mix64(caller) ^ ((uint64_t)proc << 16 | fn));
}

static struct ttmon_wait_site *find_site(const struct ttmon_waits *w, uint32_t proc, uint16_t fn, uint64_t caller)
{
	uint64_t at = ttmon_hmap_get(&w->by_call, hash(proc, fn, caller));
	struct ttmon_wait_site *s = at == TTMON_HMAP_NONE ? NULL : &w->sites[at];

	return s && s->proc == proc && s->fn == fn && s->caller == caller ? s : NULL;
}

/* NULL: no memory, or no room. */
static struct ttmon_wait_site *append(struct ttmon_history *h, const struct ttmon_wait_site *row)
{
	struct ttmon_waits *w = &h->waits;

	if (w->nr_sites >= TTMON_WAIT_SITES_MAX)
		return NULL;
	if (TTMON_GROW(w->sites, w->cap_sites, w->nr_sites + 1, 16)) {
		ttmon_history_no_memory(h);
		return NULL;
	}
	if (row->proc != NO_PROC &&
	    ttmon_hmap_put(&w->by_call, hash(row->proc, row->fn, row->caller), w->nr_sites) < 0) {
		ttmon_history_no_memory(h);
		return NULL;
	}
	w->sites[w->nr_sites] = *row;
	return &w->sites[w->nr_sites++];
}

static struct ttmon_wait_site *site_for(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_wait *ev)
{
	struct ttmon_wait_site row = {
		.proc = p->pub.idx, .fn = ev->fn, .caller = ev->caller, .ts_ns = ev->h.ts_ns, .stack = TTMON_STACK_NONE
	};
	struct ttmon_waits *w = &h->waits;
	struct ttmon_wait_site *s;
	uint64_t frame = ev->caller;

	if (!w->nr_sites && !append(h, &(struct ttmon_wait_site){ .proc = NO_PROC }))
		return NULL;
	s = find_site(w, row.proc, row.fn, row.caller);
	if (s)
		return s;
	row.pending = frame && !ttmon_stacks_intern(&p->stacks, &frame, 1, &row.stack);
	s = append(h, &row);
	if (!s)
		return &w->sites[0];
	if (s->pending) {
		p->queued++;
		w->due_ns = MIN(w->due_ns, ttmon_end_of(s->ts_ns, SETTLE_NS));
	}
	return s;
}

/* False: what is at the caller's address is not known yet. */
static bool resolve(struct ttmon_history *h, struct ttmon_wait_site *s, bool final)
{
	struct ttmon_hproc *p = h->procs[s->proc];
	uint32_t before = h->sites.n;
	struct ttmon_site_query q = {
		.stacks = &p->stacks,
		.stack = s->stack,
		.maps = &p->maps,
		.ts_ns = s->ts_ns,
		.execs = p->execs,
		.nr_execs = p->nr_execs,
		.final = final,
		.refuse = h->users[p->user].sites >= TTMON_SITES_MAX / 4,
	};
	int err = ttmon_sites_resolve(&h->sites, &h->symtab, &q, &s->site);

	if (err == -EAGAIN)
		return false;
	h->users[p->user].sites += h->sites.n - before;
	if (err == -ENOMEM)
		ttmon_history_no_memory(h);
	s->pending = false;
	p->queued--;
	return true;
}

uint64_t ttmon_waits_run(struct ttmon_history *h, bool all)
{
	struct ttmon_waits *w = &h->waits;
	uint64_t due_ns = UINT64_MAX;

	if (w->due_ns == UINT64_MAX || (!all && h->now_ns < w->due_ns))
		return w->due_ns;
	for (uint32_t i = 0; i < w->nr_sites; i++) {
		struct ttmon_wait_site *s = &w->sites[i];
		uint64_t age = h->now_ns > s->ts_ns ? h->now_ns - s->ts_ns : 0;

		if (!s->pending)
			continue;
		if (!all && age < SETTLE_NS)
			due_ns = MIN(due_ns, ttmon_end_of(s->ts_ns, SETTLE_NS));
		else if (!resolve(h, s, all || age >= SETTLE_MAX_NS))
			due_ns = MIN(due_ns, ttmon_end_of(h->now_ns, SETTLE_NS));
	}
	w->due_ns = due_ns;
	return due_ns;
}

/* ---- the processes that made them wait ---- */

static uint64_t who_hash(const struct ttmon_wait_culprit *c)
{
	uint64_t who = ttmon_mix64(c->who.start_ns ^ (uint64_t)c->who.role << 56);

	return ttmon_mix64(who ^ ttmon_mix64(c->caller ^ c->fn << 48) ^ ((uint64_t)c->proc << 32 | c->who.tgid));
}

static bool same_culprit(const struct ttmon_wait_culprit *a, const struct ttmon_wait_culprit *b)
{
	return a->proc == b->proc && a->who.tgid == b->who.tgid && a->who.start_ns == b->who.start_ns &&
	       a->who.role == b->who.role && a->fn == b->fn && a->caller == b->caller;
}

/* NULL: no memory. */
static struct ttmon_wait_culprit *culprit_for(struct ttmon_history *h, const struct ttmon_wait_culprit *like)
{
	struct ttmon_waits *w = &h->waits;
	uint64_t key = who_hash(like), at = ttmon_hmap_get(&w->by_who, key);

	if (at != TTMON_HMAP_NONE && same_culprit(&w->who[at], like))
		return &w->who[at];
	if (TTMON_GROW(w->who, w->cap_who, w->nr_who + 2, 16)) {
		ttmon_history_no_memory(h);
		return NULL;
	}
	if (!w->nr_who)
		w->who[w->nr_who++] = (struct ttmon_wait_culprit){ .proc = NO_PROC };
	if (w->nr_who == TTMON_WAIT_WHO_MAX)
		return &w->who[0];
	if (ttmon_hmap_put(&w->by_who, key, w->nr_who) < 0) {
		ttmon_history_no_memory(h);
		return NULL;
	}
	w->who[w->nr_who] = *like;
	return &w->who[w->nr_who++];
}

static void blame(struct ttmon_history *h, uint32_t proc, const struct ttmon_ev_wait_who *e)
{
	for (uint32_t i = 0; i < e->nr_rows; i++) {
		const struct ttmon_who_row *r = &e->row[i];
		const struct ttmon_wait_culprit like = {
			.proc = proc, .who = r->who, .fn = r->fn, .caller = r->caller
		};
		struct ttmon_wait_culprit *c = culprit_for(h, &like);

		if (!c)
			return;
		c->calls++;
		c->ns += r->ns;
		/* The process may have executed another program since. */
		if (c->proc != NO_PROC)
			c->who = r->who;
	}
}

uint32_t ttmon_history_wait_site_in(const struct ttmon_history *h, const struct ttmon_who *who, uint64_t fn,
				    uint64_t caller)
{
	const struct ttmon_waits *w = &h->waits;

	for (uint32_t i = 1; fn && i < w->nr_sites; i++) {
		const struct ttmon_wait_site *s = &w->sites[i];

		if (s->fn == fn && s->caller == caller && h->procs[s->proc]->pub.tgid == who->tgid)
			return s->site;
	}
	return 0;
}

/* ---- the longest calls ---- */

static void sink(struct ttmon_waits *w, uint32_t i)
{
	for (;;) {
		uint32_t least = i, left = 2 * i + 1, right = left + 1;
		struct ttmon_wait_call c;

		if (left < w->nr_calls && w->calls[left].parts.ns < w->calls[least].parts.ns)
			least = left;
		if (right < w->nr_calls && w->calls[right].parts.ns < w->calls[least].parts.ns)
			least = right;
		if (least == i)
			return;
		c = w->calls[i];
		w->calls[i] = w->calls[least];
		w->calls[least] = c;
		i = least;
	}
}

static void keep(struct ttmon_history *h, const struct ttmon_hproc *p, const struct ttmon_ev_wait *ev,
		 const struct ttmon_wait_parts *parts)
{
	struct ttmon_waits *w = &h->waits;
	struct ttmon_wait_call c = {
		.entry_ns = ev->entry_ns,
		.parts = *parts,
		.caller = ev->caller,
		.proc = p->pub.idx,
		.tid = ev->h.tid,
		.minor = ev->minor,
		.major = ev->major,
		.voluntary = ev->voluntary,
		.involuntary = ev->involuntary,
		.err = ev->err,
		.fn = ev->fn,
		.bits = ev->bits,
	};

	for (unsigned int i = 0; i < TTMON_DELAY_MAX; i++)
		c.delay[i] = ev->delay[i];
	if (parts->named) {
		c.nr_who = who_of(ev)->nr_rows;
		memcpy(c.who, who_of(ev)->row, c.nr_who * sizeof(c.who[0]));
	}
	if (w->nr_calls == TTMON_WAIT_CALLS_MAX) {
		if (c.parts.ns <= w->calls[0].parts.ns)
			return;
		w->calls[0] = c;
		sink(w, 0);
		return;
	}
	if (!w->calls)
		w->calls = calloc(TTMON_WAIT_CALLS_MAX, sizeof(*w->calls));
	if (!w->calls) {
		ttmon_history_no_memory(h);
		return;
	}
	w->calls[w->nr_calls++] = c;
	if (w->nr_calls == TTMON_WAIT_CALLS_MAX)
		for (uint32_t i = TTMON_WAIT_CALLS_MAX / 2; i-- > 0;)
			sink(w, i);
}

/* ---- events ---- */

void ttmon_history_on_wait(struct ttmon_history *h, const struct ttmon_ev_wait *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	unsigned int kind = ttmon_wait_kind_of(ev->fn);
	struct ttmon_wait_parts parts = ttmon_wait_divide(ev);
	struct ttmon_wait_site *s;

	if (!p || kind == TTMON_WAIT_MAX)
		return;
	/* Other calls have records of their own, which tell it. */
	if (ev->err && (kind == TTMON_WAIT_SYNC || kind == TTMON_WAIT_ASK))
		ttmon_procs_error(h, p, ev->fn, ev->err);
	add(&h->waits.all[kind], ev, &parts);
	if (!p->pub.waits)
		p->pub.waits = calloc(TTMON_WAIT_MAX, sizeof(*p->pub.waits));
	if (p->pub.waits)
		add(&p->pub.waits[kind], ev, &parts);
	else
		ttmon_history_no_memory(h);
	s = site_for(h, p, ev);
	if (s)
		add(&s->sums, ev, &parts);
	if (parts.named)
		blame(h, p->pub.idx, who_of(ev));
	if (!(ev->bits & TTMON_W_UNOBSERVED))
		keep(h, p, ev, &parts);
}

/* ---- life ---- */

void ttmon_waits_init(struct ttmon_history *h)
{
	h->waits.due_ns = UINT64_MAX;
}

void ttmon_waits_fini(struct ttmon_history *h)
{
	ttmon_hmap_fini(&h->waits.by_call);
	ttmon_hmap_fini(&h->waits.by_who);
	free(h->waits.who);
	free(h->waits.sites);
	free(h->waits.calls);
}

/* The line of the process is used again: its sums stay in those of all. */
void ttmon_waits_drop_proc(struct ttmon_history *h, uint32_t proc)
{
	struct ttmon_waits *w = &h->waits;
	uint32_t n = 0;

	if (!h->procs[proc]->pub.waits)
		return;
	free(h->procs[proc]->pub.waits);
	h->procs[proc]->pub.waits = NULL;
	ttmon_hmap_fini(&w->by_call);
	for (uint32_t i = 0; i < w->nr_sites; i++) {
		if (w->sites[i].proc == proc)
			continue;
		w->sites[n] = w->sites[i];
		if (n && ttmon_hmap_put(&w->by_call, hash(w->sites[n].proc, w->sites[n].fn, w->sites[n].caller), n) < 0)
			ttmon_history_no_memory(h);
		n++;
	}
	w->nr_sites = n;
	n = 0;
	for (uint32_t i = 0; i < w->nr_calls; i++)
		if (w->calls[i].proc != proc)
			w->calls[n++] = w->calls[i];
	w->nr_calls = n;
	n = 0;
	ttmon_hmap_fini(&w->by_who);
	for (uint32_t i = 0; i < w->nr_who; i++) {
		if (w->who[i].proc == proc)
			continue;
		w->who[n] = w->who[i];
		if (n && ttmon_hmap_put(&w->by_who, who_hash(&w->who[n]), n) < 0)
			ttmon_history_no_memory(h);
		n++;
	}
	w->nr_who = n;
}

/* ---- views ---- */

const struct ttmon_wait_sums *ttmon_history_waits(const struct ttmon_history *h, const struct ttmon_proc *p)
{
	return h->procs[p->idx]->pub.waits;
}

const struct ttmon_wait_sums *ttmon_history_waits_all(const struct ttmon_history *h)
{
	return h->waits.all;
}

size_t ttmon_history_wait_sites(const struct ttmon_history *h, const struct ttmon_wait_site **ret)
{
	*ret = h->waits.sites;
	return h->waits.nr_sites;
}

size_t ttmon_history_wait_calls(const struct ttmon_history *h, const struct ttmon_wait_call **ret)
{
	*ret = h->waits.calls;
	return h->waits.nr_calls;
}

size_t ttmon_history_wait_who(const struct ttmon_history *h, const struct ttmon_wait_culprit **ret)
{
	*ret = h->waits.who;
	return h->waits.nr_who;
}

uint32_t ttmon_history_wait_site_of(const struct ttmon_history *h, const struct ttmon_wait_call *c)
{
	const struct ttmon_wait_site *s = find_site(&h->waits, c->proc, c->fn, c->caller);

	return s ? s->site : 0;
}
