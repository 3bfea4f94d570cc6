// SPDX-License-Identifier: GPL-2.0-only
/*
 * seen.c: see seen.h. A slot closes each millisecond, and gaps are rare: the answer of know.h is
 * cached until it changes.
 */
#include "daemon/core/know/seen.h"

#define ALL ((1u << TTMON_FAMILY_MAX) - 1)

void ttmon_seen_init(struct ttmon_seen_sums *s)
{
	*s = (struct ttmon_seen_sums){ .changes = UINT64_MAX };
}

static void begin_without(struct ttmon_seen_sums *s, unsigned int family)
{
	s->on_ns[family] = UINT64_MAX;
	s->v.of[family].state = TTMON_FAMILY_OFF;
	s->v.of[family].why = TTMON_GAP_WHY_MAX;
}

void ttmon_seen_on_clock(struct ttmon_seen_sums *s, const struct ttmon_ev_clock *ev)
{
	uint32_t on = ev->options >> TTMON_OPT_FAMILY_SHIFT;

	if (s->v.start_ns)
		return;
	s->v.start_ns = MAX(ev->mono_ns, 1u);
	s->changes = UINT64_MAX;
	if (!(ev->options & TTMON_OPT_FAMILIES)) {
		s->guessed = TTMON_SEEN_MEASURED;
		on = ev->options & TTMON_OPT_MMAP ? ALL : ALL & ~TTMON_FAMILY_BIT(MMAP);
	}
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		if (!(on >> i & 1))
			begin_without(s, i);
}

void ttmon_seen_on_family(struct ttmon_seen_sums *s, const struct ttmon_ev_family *ev)
{
	struct ttmon_seen_family *f = &s->v.of[ev->family];

	s->changes = UINT64_MAX;
	if (ev->h.tgid)
		return;
	f->state = (uint8_t)ev->state;
	f->why = ev->why ? TTMON_GAP_BUDGET : TTMON_GAP_ASKED;
	f->from_ns = ev->h.ts_ns;
	if (ev->state == TTMON_FAMILY_ON && s->on_ns[ev->family] == UINT64_MAX)
		s->on_ns[ev->family] = ev->h.ts_ns;
}

void ttmon_seen_lost(struct ttmon_seen_sums *s, enum ttmon_family family, uint64_t records)
{
	s->v.of[family].missed += records;
}

void ttmon_seen_late(struct ttmon_seen_sums *s, uint32_t families, uint64_t from_ns)
{
	if (from_ns < s->v.now_ns)
		s->owed |= families;
}

/*
 * Looks up since when each family sees all its events, the families of the gaps that still last, and
 * when the last change of a gap was.
 */
static void look(struct ttmon_seen_sums *s, const struct ttmon_know *k)
{
	const struct ttmon_gap *gaps;
	size_t n = ttmon_know_gaps(k, &gaps);

	s->changes = ttmon_know_changes(k);
	s->open = 0;
	s->quiet_ns = 0;
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		s->v.of[i].since_ns = s->on_ns[i] ? s->on_ns[i] : s->v.start_ns;
		s->v.of[i].partly = false;
	}
	for (size_t g = 0; g < n; g++) {
		for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
			s->v.of[i].partly |= gaps[g].tgid && gaps[g].families >> i & 1;
		if (ttmon_gap_is_partial(gaps[g].why))
			continue;
		s->quiet_ns = MAX(s->quiet_ns, gaps[g].to_ns == UINT64_MAX ? gaps[g].from_ns : gaps[g].to_ns);
		if (gaps[g].to_ns == UINT64_MAX)
			s->open |= gaps[g].families;
		if (gaps[g].tgid)
			continue;
		for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
			if (gaps[g].families >> i & 1)
				s->v.of[i].since_ns = MAX(s->v.of[i].since_ns, gaps[g].to_ns);
	}
}

/*
 * CPU time and RMIDs begin with their first measurement: the milliseconds before it count as missing
 * nowhere.
 */
static bool is_starting(const struct ttmon_seen_sums *s, unsigned int family)
{
	return (TTMON_SEEN_MEASURED & ~s->had & ~s->guessed) >> family & 1 && s->v.of[family].state == TTMON_FAMILY_ON;
}

uint32_t ttmon_seen_close(struct ttmon_seen_sums *s, const struct ttmon_know *k, uint64_t from_ns, uint64_t to_ns,
			  uint32_t has)
{
	/* Time without slots counts too. */
	uint64_t before_ns = s->v.now_ns && s->v.now_ns < from_ns ? s->v.now_ns : from_ns;
	bool quiet;
	uint32_t on;

	if (s->changes != ttmon_know_changes(k))
		look(s, k);
	/* All ended gaps ended before this, and all others had begun: nothing has to be looked up. */
	quiet = before_ns >= s->quiet_ns;
	on = quiet ? ALL & ~s->open : ttmon_know_families(k, from_ns, to_ns);
	s->had |= has;
	on &= has | ~TTMON_SEEN_MEASURED;
	on &= ~s->owed;
	s->owed = 0;
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		struct ttmon_seen_family *f = &s->v.of[i];

		if (from_ns < s->on_ns[i])
			on &= ~(1u << i);
		if (on >> i & 1 || is_starting(s, i))
			continue;
		if (to_ns <= s->on_ns[i] || (TTMON_SEEN_MEASURED & ~has) >> i & 1 ||
		    (quiet ? s->open >> i & 1 : ttmon_know_of(k, i, 0, before_ns, to_ns, NULL) == TTMON_UNKNOWN))
			f->off_ns += to_ns - before_ns;
		else
			f->missed++;
	}
	s->v.now_ns = to_ns;
	return on;
}

void ttmon_seen_get(const struct ttmon_seen_sums *s, const struct ttmon_know *k, struct ttmon_seen_view *ret)
{
	struct ttmon_seen_sums now = *s;

	if (now.changes != ttmon_know_changes(k))
		look(&now, k);
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		if (now.guessed & ~now.had & 1u << i) {
			begin_without(&now, i);
			now.v.of[i].since_ns = UINT64_MAX;
		}
	}
	*ret = now.v;
}
