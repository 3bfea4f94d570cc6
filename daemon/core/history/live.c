// SPDX-License-Identifier: GPL-2.0-only
/*
 * live.c: advice while the program runs (live.h). Part of the history (hot thread, pure).
 *
 * Hot memory is found at its transfers, cold memory by time. No table is scanned for that: each
 * allocation is visited once, in order of creation, when it is cold_ns old; a pinned one with
 * transfers since then waits in a timer wheel until it may be cold, and is visited again. So an
 * allocation that lives for less costs nothing, and one in use costs a few bytes and a visit every
 * cold_ns. A tick makes a bounded number of visits; the next ticks do the rest.
 */
#include "daemon/core/history/heat.h"
#include "daemon/core/history/history_int.h"

#define DEFAULT_LINES 16384u
#define LINES_MAX     (1u << 24)
#define LINES_MIN     64u
#define LINES_SHARE   8u
#define SPEAKER_NS    (60 * NSEC_PER_SEC)
#define LEVEL_MAX     6u
/*
 * Turns of the wheel per cold_ns. It has room for the longest wait, and a little for visits that are
 * late.
 */
#define TURNS 32u
#define WHEEL ((TURNS << LEVEL_MAX) + 2 * TURNS)
/* In one tick: visits, and allocations skipped. */
#define LOOKS 256u
#define STEPS 1024u
/*
 * An entry of the wheel: the number of an allocation, above that its level, and the user that it
 * counts for.
 */
#define SEQ_BITS   40
#define USER_SHIFT 48
/* What is kept of a cold allocation: its level, what was said, and that user. */
#define COLD_SAID(was) ((was) >> 8 & 0xff)
#define COLD_USER(was) ((was) >> 16)

static const char *const names[] = {
	[TTMON_SAID_NOTHING] = NULL, [TTMON_SAID_PIN] = "pin",	 [TTMON_SAID_UNPIN] = "unpin",
	[TTMON_SAID_COLD] = "cold",  [TTMON_SAID_KEEP] = "keep", [TTMON_SAID_CHECKPOINT] = "checkpoint"
};

const char *ttmon_live_name(unsigned int said)
{
	return said < ARRAY_SIZE(names) ? names[said] : NULL;
}

void ttmon_live_init(struct ttmon_history *h)
{
	struct ttmon_live_cfg *cfg = &h->cfg.live;
	uint32_t lines = LINES_MIN;

	cfg->cold_ns = MIN(cfg->cold_ns ? cfg->cold_ns : 10 * NSEC_PER_SEC, UINT64_MAX >> (LEVEL_MAX + 1));
	cfg->threshold = MAX(cfg->threshold, 1ULL);
	while (lines < MIN(cfg->lines ? cfg->lines : DEFAULT_LINES, LINES_MAX))
		lines *= 2;
	cfg->lines = lines;
	h->live.next_seq = 1;
}

void ttmon_live_fini(struct ttmon_history *h)
{
	struct ttmon_live *v = &h->live;

	for (unsigned int i = 0; v->wheel && i < WHEEL; i++)
		ttmon_fifo_fini(&v->wheel[i]);
	free(v->wheel);
	free(v->lines);
	ttmon_hmap_fini(&v->cold);
}

/* ---- lines ---- */

static bool more_room(struct ttmon_history *h)
{
	uint32_t cap = h->live.cap ? h->live.cap * 2 : LINES_MIN;
	struct ttmon_live_line *lines = realloc(h->live.lines, cap * sizeof(*lines));

	if (!lines) {
		ttmon_history_no_memory(h);
		return false;
	}
	h->live.lines = lines;
	h->live.cap = cap;
	return true;
}

/* When another user wrote a line last; 0: never. */
static uint64_t other_spoke_ns(struct ttmon_live *v, uint32_t user, uint64_t ts_ns)
{
	if (v->speaker[0] != user) {
		v->speaker[1] = v->speaker[0];
		v->spoke_ns[1] = v->spoke_ns[0];
		v->speaker[0] = user;
	}
	v->spoke_ns[0] = MAX(ts_ns, 1ULL);
	return v->spoke_ns[1];
}

/*
 * Where several users write lines, each may write only so many per second that the lines of the others
 * can be read before they are overwritten.
 */
static bool says_too_much(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t ts_ns)
{
	struct ttmon_user *u = &h->users[p->user];
	uint64_t other_ns = other_spoke_ns(&h->live, p->user, ts_ns);

	if (!u->lines || ttmon_before(u->lines_ns + NSEC_PER_SEC, ts_ns)) {
		u->lines_ns = ts_ns;
		u->lines = 0;
	}
	if (u->lines < h->cfg.live.lines / LINES_SHARE || !other_ns || ttmon_before(other_ns + SPEAKER_NS, ts_ns)) {
		u->lines++;
		return false;
	}
	ttmon_users_paid(h, p, TTMON_QUOTA_ADVICE, 1);
	return true;
}

static void add_line(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_live_line *line)
{
	struct ttmon_live *v = &h->live;

	if (says_too_much(h, p, MAX(line->ts_ns, h->now_ns))) {
		v->unheard++;
		return;
	}
	/* The ring grows while its first line is still there; once it cannot grow, it never does. */
	if (!v->full && v->next_seq > v->cap)
		v->full = v->cap == h->cfg.live.lines || !more_room(h);
	if (!v->cap) {
		v->unheard++;
		v->full = false;
		return;
	}
	line->seq = v->next_seq++;
	line->proc = p->pub.idx;
	line->tgid = p->pub.tgid;
	line->uid = p->pub.uid;
	line->start_ns = p->pub.start_ns;
	line->period = p->period;
	memcpy(line->label, p->period_label, sizeof(line->label));
	v->lines[(line->seq - 1) & (v->cap - 1)] = *line;
	v->said[line->said]++;
}

static void say(struct ttmon_history *h, const struct ttmon_alloc *a, enum ttmon_live_said said, uint64_t ts_ns,
		const struct ttmon_said *why, double evidence)
{
	const struct ttmon_traffic *t = a->traffic;
	struct ttmon_live_line line = {
		.ts_ns = ts_ns,
		.said = (uint8_t)said,
		.method = a->method,
		.alloc = ttmon_alloc_seq(a),
		.addr = a->addr,
		.size = a->size,
		.site = h->sites.v[a->site].key,
		.ordinal = a->ordinal,
		.copies = t->copies[TTMON_RDIR_H2D],
		.bytes = t->bytes[TTMON_RDIR_H2D],
		.back_copies = t->copies[TTMON_RDIR_D2H],
		.back_bytes = t->bytes[TTMON_RDIR_D2H],
		.reason = why ? why->reason : TTMON_REASON_MAX,
		.gain_ns = why && why->known ? why->gain_ns : 0,
		.confidence = evidence * ttmon_advice_completeness(h, a->proc),
	};

	add_line(h, h->procs[a->proc], &line);
}

void ttmon_live_checkpoint(struct ttmon_history *h, uint32_t proc, uint64_t ts_ns, const char *label)
{
	struct ttmon_live_line line = { .ts_ns = ts_ns, .said = TTMON_SAID_CHECKPOINT, .alloc = UINT64_MAX };
	struct ttmon_hproc *p = h->procs[proc];

	p->period++;
	memset(p->period_label, 0, sizeof(p->period_label));
	memcpy(p->period_label, label, strnlen(label, sizeof(p->period_label) - 1));
	if (h->cfg.live.off)
		return;
	/* A loop of checkpoints must not push out the lines of others. */
	if (!p->told || ttmon_before(p->told_ns + NSEC_PER_SEC, ts_ns)) {
		p->told_ns = ts_ns;
		p->told = 0;
	}
	if (p->told < TTMON_LIVE_CHECKPOINTS) {
		p->told++;
		add_line(h, p, &line);
	} else {
		h->live.unheard++;
	}
}

/* ---- hot ---- */

static double evidence_of(const struct ttmon_alloc *a)
{
	double n = 0;

	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
		n += a->traffic->copies[d];
	return n / (n + 2);
}

/* Both directions: copies back from the device are slowed as much. */
static uint64_t copies_of(const struct ttmon_alloc *a)
{
	return (uint64_t)a->traffic->copies[TTMON_RDIR_H2D] + a->traffic->copies[TTMON_RDIR_D2H];
}

static uint64_t bytes_of(const struct ttmon_alloc *a)
{
	return a->traffic->bytes[TTMON_RDIR_H2D] + a->traffic->bytes[TTMON_RDIR_D2H];
}

/* True if so many bytes, moved since it was last unpinned, pay for pinning it that often. */
static bool pays(const struct ttmon_history *h, const struct ttmon_alloc *a, uint64_t bytes, uint64_t factor)
{
	double saved = ttmon_cost_saved(&h->cost, bytes);
	struct ttmon_said said;

	/* Most allocations are far from it: the full rule is evaluated only for those close to it. */
	if (saved <= (double)factor * (double)(h->cost.pin_call_ns + h->cost.unpin_call_ns))
		return false;
	ttmon_advice_judge(h, a, &said);
	if (said.advice != TTMON_ADVICE_PIN)
		return false;
	/* The cost of pinning is what all its transfers save minus the gain. */
	return saved > (double)factor * (ttmon_cost_saved(&h->cost, bytes_of(a)) - (double)said.worth_ns);
}

static bool passed(const struct ttmon_history *h, const struct ttmon_alloc *a, const struct ttmon_live_hot *hot)
{
	uint64_t copies = copies_of(a), bytes = bytes_of(a);
	uint64_t factor = 1ULL << hot->level;

	copies -= MIN(copies, (uint64_t)hot->copies);
	bytes -= MIN(bytes, hot->bytes);
	switch (h->cfg.live.pin) {
	case TTMON_PIN_FIRST:
		return copies >= factor;
	case TTMON_PIN_COPIES:
		return copies >= ttmon_mul_sat(h->cfg.live.threshold, factor);
	case TTMON_PIN_BYTES:
		return bytes >= ttmon_mul_sat(h->cfg.live.threshold, factor);
	default:
		return pays(h, a, bytes, factor);
	}
}

void ttmon_live_became_hot(struct ttmon_history *h, const struct ttmon_alloc *a, struct ttmon_live_hot *hot,
			   uint64_t ts_ns)
{
	struct ttmon_said said;

	if (hot->said || h->cfg.live.off || !passed(h, a, hot))
		return;
	hot->said = true;
	ttmon_advice_judge(h, a, &said);
	say(h, a, TTMON_SAID_PIN, ts_ns, &said, evidence_of(a));
}

void ttmon_live_unregistered(const struct ttmon_alloc *a, struct ttmon_live_hot *hot)
{
	if (!hot->said)
		return;
	hot->said = false;
	hot->copies = (uint32_t)MIN(copies_of(a), UINT32_MAX);
	hot->bytes = bytes_of(a);
	hot->level = (uint8_t)MIN(hot->level + 1u, LEVEL_MAX);
}

/* ---- cold ---- */

/* A driver's DMA buffer is used by the driver. */
static bool can_cool(const struct ttmon_alloc *a)
{
	return ttmon_rec_live(a) && ttmon_rec_pinned(a) && !ttmon_rec_backing(a) && a->method != TTMON_METHOD_TT_DMA;
}

/* A user may have as many entries as there may be records; all users together twice that. */
static bool too_many(struct ttmon_history *h, const struct ttmon_alloc *a)
{
	struct ttmon_hproc *p = h->procs[a->proc];

	if (h->users[p->user].watched < h->cfg.max_allocations &&
	    h->live.waiting + h->live.cold.n < 2 * h->cfg.max_allocations)
		return false;
	ttmon_users_paid(h, p, TTMON_QUOTA_ADVICE, 1);
	return true;
}

static uint64_t turn_ns(const struct ttmon_history *h)
{
	return MAX(h->cfg.live.cold_ns / TURNS, 1ULL);
}

static uint64_t turns(const struct ttmon_history *h, uint64_t ns)
{
	return ns / turn_ns(h);
}

static int make_wheel(struct ttmon_history *h)
{
	struct ttmon_fifo *wheel = h->live.wheel ? NULL : calloc(WHEEL, sizeof(*wheel));

	if (h->live.wheel)
		return 0;
	if (!wheel)
		return -ENOMEM;
	for (unsigned int i = 0; i < WHEEL; i++)
		wheel[i].elem = sizeof(uint64_t);
	h->live.wheel = wheel;
	h->live.wheel_at = turns(h, h->now_ns);
	return 0;
}

/* Visit it again in wait_ns. */
static void watch(struct ttmon_history *h, const struct ttmon_alloc *a, unsigned int level, uint64_t wait_ns)
{
	uint64_t user = h->procs[a->proc]->user;
	uint64_t entry = ttmon_alloc_seq(a) | (uint64_t)level << SEQ_BITS | user << USER_SHIFT;
	struct ttmon_live *v = &h->live;

	if (too_many(h, a) || make_wheel(h) < 0 ||
	    ttmon_fifo_push(&v->wheel[turns(h, ttmon_end_of(h->now_ns, wait_ns)) % WHEEL], &entry) < 0) {
		v->unheard++;
		return;
	}
	v->waiting++;
	h->users[user].watched++;
}

static uint64_t take_cold(struct ttmon_history *h, const struct ttmon_alloc *a)
{
	uint64_t was = ttmon_hmap_del(&h->live.cold, ttmon_alloc_seq(a));

	if (was != TTMON_HMAP_NONE)
		h->users[COLD_USER(was)].watched--;
	return was;
}

static bool use_unknown(const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	const struct ttmon_proc *p = &h->procs[a->proc]->pub;

	return ttmon_advice_in_place(a) || p->graph_copies || p->captured;
}

/* It has been quiet long enough, and is cold by the rule. */
static void say_cold(struct ttmon_history *h, struct ttmon_alloc *a, unsigned int level, uint64_t quiet,
		     const struct ttmon_said *why)
{
	enum ttmon_live_said said = use_unknown(h, a) ? TTMON_SAID_COLD : TTMON_SAID_UNPIN;

	uint64_t user = h->procs[a->proc]->user;

	if (too_many(h, a) ||
	    ttmon_hmap_put(&h->live.cold, ttmon_alloc_seq(a), user << 16 | (uint64_t)said << 8 | level) < 0) {
		h->live.unheard++;
		return;
	}
	h->users[user].watched++;
	a->cold = 1;
	say(h, a, said, h->now_ns, said == TTMON_SAID_COLD ? NULL : why,
	    (double)quiet / ((double)quiet + (double)NSEC_PER_SEC));
}

static void look(struct ttmon_history *h, struct ttmon_alloc *a, unsigned int level)
{
	uint64_t used = MAX(a->traffic->last_copy_ns, a->traffic->gpu ? a->traffic->gpu->last_ns : 0);
	uint64_t since = MAX(MAX(a->alloc_ns, used), h->live.seen_ns);
	uint64_t quiet = h->now_ns > since ? h->now_ns - since : 0, delay = h->cfg.live.cold_ns << level;
	struct ttmon_said said;

	if (h->live.blind) {
		watch(h, a, level, delay);
		return;
	}
	if (quiet < delay) {
		watch(h, a, level, delay - quiet);
		return;
	}
	ttmon_advice_judge(h, a, &said);
	if (said.cold || (a->traffic->gpu && said.worth_ns <= 0))
		say_cold(h, a, level, quiet, &said);
	else
		watch(h, a, level, delay);
}

void ttmon_live_warm(struct ttmon_history *h, struct ttmon_alloc *a, uint64_t ts_ns)
{
	uint64_t was = take_cold(h, a);
	unsigned int level = MIN((unsigned int)(was & 0xff) + 1, LEVEL_MAX);

	a->cold = 0;
	say(h, a, TTMON_SAID_KEEP, ts_ns, NULL, evidence_of(a));
	watch(h, a, level, h->cfg.live.cold_ns << level);
}

void ttmon_live_in_place(struct ttmon_history *h, const struct ttmon_alloc *a, uint64_t ts_ns)
{
	uint64_t was = ttmon_hmap_get(&h->live.cold, ttmon_alloc_seq(a));

	if (was == TTMON_HMAP_NONE || COLD_SAID(was) != TTMON_SAID_UNPIN)
		return;
	/* Replaces a value, which takes no memory. */
	if (ttmon_hmap_put(&h->live.cold, ttmon_alloc_seq(a),
			   COLD_USER(was) << 16 | TTMON_SAID_COLD << 8 | (was & 0xff)) < 0)
		h->live.unheard++;
	say(h, a, TTMON_SAID_COLD, ts_ns, NULL, 1);
}

void ttmon_live_ended(struct ttmon_history *h, struct ttmon_alloc *a)
{
	if (!a->cold)
		return;
	take_cold(h, a);
	a->cold = 0;
}

void ttmon_live_seen(struct ttmon_history *h, bool on, uint64_t ts_ns)
{
	h->live.blind = !on;
	h->live.seen_ns = MAX(MAX(h->live.seen_ns, ts_ns), h->now_ns);
}

/* ---- time ---- */

static uint64_t meet(struct ttmon_history *h, unsigned int *looks)
{
	for (unsigned int i = 0; i < STEPS && *looks; i++) {
		struct ttmon_alloc *a;

		h->live.met = ttmon_seqtab_next(&h->seqs, h->live.met);
		if (h->live.met == TTMON_SEQTAB_END) {
			h->live.met = h->next_seq;
			return UINT64_MAX;
		}
		a = ttmon_rec_by_seq(h, h->live.met);
		if (h->now_ns < a->alloc_ns || h->now_ns - a->alloc_ns < h->cfg.live.cold_ns)
			return ttmon_end_of(a->alloc_ns, h->cfg.live.cold_ns);
		h->live.met++;
		if (can_cool(a)) {
			look(h, a, 0);
			--*looks;
		}
	}
	return h->now_ns;
}

static uint64_t turn(struct ttmon_history *h, unsigned int *looks)
{
	uint64_t to = turns(h, h->now_ns);
	struct ttmon_live *v = &h->live;

	if (!v->wheel)
		return UINT64_MAX;
	if (to > v->wheel_at && to - v->wheel_at > WHEEL)
		v->wheel_at = to - WHEEL;
	for (; v->wheel_at < to; v->wheel_at++) {
		struct ttmon_fifo *f = &v->wheel[v->wheel_at % WHEEL];
		const uint64_t *front;

		while ((front = ttmon_fifo_front(f))) {
			unsigned int level = *front >> SEQ_BITS & 0xff;
			struct ttmon_alloc *a;

			if (!*looks)
				return h->now_ns;
			--*looks;
			a = ttmon_rec_by_seq(h, *front & ((1ULL << SEQ_BITS) - 1));
			h->users[*front >> USER_SHIFT].watched--;
			ttmon_fifo_pop(f);
			v->waiting--;
			if (a && can_cool(a) && !a->cold)
				look(h, a, level);
		}
	}
	return ttmon_end_of(to * turn_ns(h), turn_ns(h));
}

uint64_t ttmon_live_tick(struct ttmon_history *h)
{
	unsigned int looks = LOOKS;
	uint64_t met, turned;

	if (h->cfg.live.off)
		return UINT64_MAX;
	met = meet(h, &looks);
	turned = turn(h, &looks);
	return MIN(met, turned);
}

/* ---- reading ---- */

static uint64_t first_seq(const struct ttmon_live *v)
{
	return v->next_seq - MIN(v->next_seq - 1, (uint64_t)v->cap);
}

uint64_t ttmon_history_live_next(const struct ttmon_history *h)
{
	return h->live.next_seq;
}

void ttmon_history_live_totals(const struct ttmon_history *h, struct ttmon_live_totals *ret)
{
	const struct ttmon_live *v = &h->live;

	*ret = (struct ttmon_live_totals){
		.first_seq = first_seq(v),
		.next_seq = v->next_seq,
		.unheard = v->unheard,
		.followed = (uint32_t)(v->waiting + v->cold.n),
	};
	memcpy(ret->said, v->said, sizeof(ret->said));
}

bool ttmon_history_live(const struct ttmon_history *h, uint64_t seq, struct ttmon_live_line *ret)
{
	const struct ttmon_live *v = &h->live;

	seq = MAX(seq, first_seq(v));
	if (seq >= v->next_seq)
		return false;
	*ret = v->lines[(seq - 1) & (v->cap - 1)];
	return true;
}
