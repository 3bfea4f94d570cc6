// SPDX-License-Identifier: GPL-2.0-only
/* verdict.c: see verdict.h. */
#include "lib/verdict/verdict.h"

#include "lib/base/fmt.h"

static const char *const names[] = {
#define X(nr, NAME, word) [nr] = word,
	TTMON_ADVICE_TABLE(X)
#undef X
};

static const char *const reasons[] = {
#define X(NAME, text) [TTMON_REASON_##NAME] = text,
	TTMON_REASON_TABLE(X)
#undef X
};

const char *ttmon_advice_name(unsigned int advice)
{
	return advice < ARRAY_SIZE(names) ? names[advice] : NULL;
}

const char *ttmon_reason_text(unsigned int reason)
{
	return reason < ARRAY_SIZE(reasons) ? reasons[reason] : NULL;
}

/* ---- prices ---- */

int64_t ttmon_cost_ns(uint64_t bytes, uint64_t bps)
{
	unsigned __int128 ns = (unsigned __int128)bytes * NSEC_PER_SEC / bps;

	return ns > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)ns;
}

#define MOST ((double)(INT64_MAX / 4))

double ttmon_cost_saved(const struct ttmon_cost *c, uint64_t bytes)
{
	double a_byte = (double)NSEC_PER_SEC / (double)c->pageable_bps - (double)NSEC_PER_SEC / (double)c->pinned_bps;

	return MAX(MIN((double)bytes * a_byte, MOST), -MOST);
}

double ttmon_cost_pinned(const struct ttmon_cost *c, uint64_t pages, uint64_t calls)
{
	double call_ns = (double)c->pin_call_ns + (double)c->unpin_call_ns;
	double page_ns = TTMON_VERDICT_PAGE * (double)NSEC_PER_SEC / (double)c->pinning_bps;

	return MIN((double)pages * page_ns + (double)calls * call_ns, MOST);
}

static void put(struct ttmon_cost_bin *bins, uint64_t by, uint64_t bytes, uint64_t ns)
{
	struct ttmon_cost_bin *bin = &bins[by ? 63 - (unsigned int)__builtin_clzll(by) : 0];

	bin->n++;
	bin->bytes += bytes;
	bin->ns += ns;
}

void ttmon_cost_see(struct ttmon_cost_seen *s, uint64_t size, uint64_t pin_ns, uint64_t unpin_ns)
{
	unsigned __int128 for_a_mib = ((unsigned __int128)pin_ns << 20) / MAX(size, 1u);

	if (pin_ns) {
		s->all.n++;
		s->all.bytes += size;
		s->all.ns += pin_ns;
		put(s->pins, (uint64_t)MIN(for_a_mib, (unsigned __int128)UINT64_MAX), size, pin_ns);
		if (size <= TTMON_COST_SMALL)
			put(s->small, pin_ns, size, pin_ns);
	}
	if (unpin_ns && size <= TTMON_COST_SMALL)
		put(s->unpins, unpin_ns, size, unpin_ns);
}

uint64_t ttmon_cost_calls(const struct ttmon_cost_bin *bins)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < TTMON_COST_BINS; i++)
		n += bins[i].n;
	return n;
}

/* The bin of the middle call. */
static struct ttmon_cost_bin middle_call(const struct ttmon_cost_bin *bins)
{
	uint64_t half = ttmon_cost_calls(bins) / 2, n = 0;
	unsigned int i = 0;

	while (i < TTMON_COST_BINS - 1 && (n += bins[i].n) <= half)
		i++;
	return bins[i];
}

/* The bin of the middle byte: a rate is shown by the pins that have the most bytes. */
struct ttmon_cost_bin ttmon_cost_middle(const struct ttmon_cost_seen *s)
{
	uint64_t half = s->all.bytes / 2, bytes = 0;
	unsigned int i = 0;

	while (i < TTMON_COST_BINS - 1 && (bytes += s->pins[i].bytes) <= half)
		i++;
	return s->pins[i];
}

unsigned int ttmon_cost_measured(const struct ttmon_cost_seen *s, struct ttmon_cost *c)
{
	const struct ttmon_cost_bin pins = ttmon_cost_middle(s), small = middle_call(s->small);
	double bytes = (double)pins.bytes, ns = (double)pins.ns, call, rate;
	unsigned int ret = TTMON_COST_RATE;

	if (s->all.bytes < TTMON_COST_ENOUGH || !pins.bytes || !pins.ns)
		return 0;
	rate = bytes / ns;
	if (rate * (double)NSEC_PER_SEC > TTMON_COST_BELIEVABLE)
		return TTMON_COST_UNREAL;
	if (ttmon_cost_calls(s->small) >= TTMON_COST_CALLS) {
		/*
		 * The time of a small pin is nearly all for the call. The cost of calls is subtracted from the time of
		 * the pins before the rate is computed; at least half of the time is left.
		 */
		call = ((double)small.ns - (double)small.bytes / rate) / (double)small.n;
		call = MAX(call, 0);
		rate = bytes / MAX(ns - call * (double)pins.n, ns / 2);
		rate = MIN(rate, TTMON_COST_BELIEVABLE / (double)NSEC_PER_SEC);
		c->pin_call_ns = (uint64_t)call;
		ret |= TTMON_COST_PINS;
	}
	if (ttmon_cost_calls(s->unpins) >= TTMON_COST_CALLS) {
		const struct ttmon_cost_bin unpins = middle_call(s->unpins);

		c->unpin_call_ns = unpins.ns / unpins.n;
		ret |= TTMON_COST_UNPINS;
	}
	c->pinning_bps = (uint64_t)MAX(rate * (double)NSEC_PER_SEC, 1);
	return ret;
}

/* ---- the rule ---- */

static int64_t whole(double ns)
{
	return (int64_t)MAX(MIN(ns, MOST), -MOST);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void keep(struct ttmon_said *s, enum ttmon_reason reason)
{
	s->advice = TTMON_ADVICE_KEEP;
	s->reason = (uint8_t)reason;
}

static void unknown(struct ttmon_said *s, enum ttmon_reason reason)
{
	s->advice = TTMON_ADVICE_UNKNOWN;
	s->reason = (uint8_t)reason;
	s->known = false;
}

static void judge_pinned(const struct ttmon_memory *m, struct ttmon_said *s)
{
	bool copied = m->to_copies || m->from_copies;

	if (s->worth_ns > 0) {
		keep(s, TTMON_REASON_PAID);
	} else if (m->at_least) {
		unknown(s, TTMON_REASON_UNSEEN);
	} else if (!m->done) {
		keep(s, TTMON_REASON_YOUNG);
	} else {
		s->advice = TTMON_ADVICE_UNPIN;
		s->cold = true;
		s->reason = copied ? TTMON_REASON_COLD : TTMON_REASON_NEVER_COPIED;
	}
}

static void judge_ordinary(const struct ttmon_memory *m, int64_t low, struct ttmon_said *s)
{
	if (low > 0) {
		s->advice = TTMON_ADVICE_PIN;
		s->reason = TTMON_REASON_PAYS;
	} else if (m->at_least) {
		unknown(s, TTMON_REASON_UNSEEN);
	} else if (s->worth_ns > 0) {
		s->advice = TTMON_ADVICE_ALLOCATE;
		s->reason = TTMON_REASON_PAYS_REUSED;
	} else {
		keep(s, m->to_copies || m->from_copies ? TTMON_REASON_TOO_LITTLE : TTMON_REASON_NOT_MOVED);
	}
}

/* n / (n + 2) for n transfers, age / (age + 1 s) for their absence. */
static double evidence(const struct ttmon_memory *m, const struct ttmon_said *s)
{
	double n = (double)sum(m->to_copies, m->from_copies), age = (double)m->ages_ns;

	if (s->advice == TTMON_ADVICE_UNPIN || s->reason == TTMON_REASON_NOT_MOVED)
		return age / (age + (double)NSEC_PER_SEC);
	return s->reason == TTMON_REASON_KERNELS ? 1 : n / (n + 2);
}

void ttmon_verdict_of(const struct ttmon_memory *m, const struct ttmon_cost *c, struct ttmon_said *ret)
{
	double saved = ttmon_cost_saved(c, sum(m->to_bytes, m->from_bytes));
	int64_t low = whole(saved - ttmon_cost_pinned(c, m->pages, m->allocs));
	struct ttmon_said s = { .known = true, .at_least = m->at_least };

	s.worth_ns = whole(saved - ttmon_cost_pinned(c, MIN(m->peak_pages, m->pages), m->allocs != 0));
	if (m->unknown_site) {
		unknown(&s, TTMON_REASON_SITE);
	} else if (m->managed) {
		keep(&s, TTMON_REASON_MANAGED);
		s.known = false;
	} else if (m->unknown_kind) {
		unknown(&s, TTMON_REASON_KIND);
	} else if (m->pinned && (m->in_place || m->gpu)) {
		s.cold = !m->gpu && s.worth_ns <= 0 && m->done && !m->at_least;
		keep(&s, m->gpu ? TTMON_REASON_KERNELS : TTMON_REASON_IN_PLACE);
		s.known = s.worth_ns > 0;
	} else if (m->pinned) {
		judge_pinned(m, &s);
	} else {
		judge_ordinary(m, low, &s);
	}
	if (s.known) {
		bool less = s.advice == TTMON_ADVICE_UNPIN;

		s.gain_ns = less ? -s.worth_ns : s.worth_ns;
		s.low_ns = less ? -s.worth_ns : low;
		s.high_ns = less ? -low : s.worth_ns;
	} else {
		s.worth_ns = 0;
	}
	s.confidence = s.advice == TTMON_ADVICE_UNKNOWN ? 0 : evidence(m, &s) * (m->complete > 0 ? m->complete : 1);
	*ret = s;
}

char *ttmon_gain_text(char *buf, size_t n, unsigned int advice, bool known, int64_t gain_ns)
{
	char ns[TTMON_FMT_LEN];

	if (!known || !gain_ns || advice == TTMON_ADVICE_UNKNOWN)
		snprintf(buf, n, "-");
	else if (gain_ns > 0)
		snprintf(buf, n, "saves %s", ttmon_fmt_ns(ns, sizeof(ns), (uint64_t)gain_ns));
	else
		snprintf(buf, n, "would lose %s", ttmon_fmt_ns(ns, sizeof(ns), (uint64_t)-gain_ns));
	return buf;
}

char *ttmon_said_text(char *buf, size_t n, const struct ttmon_said *s)
{
	return ttmon_gain_text(buf, n, s->advice, s->known, s->gain_ns);
}

/* ---- peaks ---- */

static int by_time(const void *pa, const void *pb)
{
	const struct ttmon_edge *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return (a->pages > b->pages) - (a->pages < b->pages);
}

uint64_t ttmon_edges_peak(struct ttmon_edge *e, size_t n)
{
	int64_t now = 0, most = 0;

	if (n)
		qsort(e, n, sizeof(*e), by_time);
	for (size_t i = 0; i < n; i++) {
		now += e[i].pages;
		most = MAX(most, now);
	}
	return (uint64_t)most;
}
