// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_rmid_prop.c: for random streams the sums of pieces are exactly the sums of readings.
 *
 * exact: complete life cycles, and readings at random rates that come up to eight slots late. After
 * any slot, each process has got the value of a model that looks at all readings at once and knows no
 * slots, queues or closing.
 *
 * late: the same, with life cycle records that come up to eight slots late, in any order, with or
 * without a name, and with dumps between them. After a slot that closed with all its records, each
 * process has got the value of the model; in a slot that closed without them, no process has got
 * anything.
 *
 * very_late: up to 24 slots late, so that there is no room for readings: no process gets more than its
 * own bytes.
 *
 * wild: any input in any order: nothing is lost or invented.
 */
#include "tests/unit/feed/rmid_feed.h"

#define SLOTS	60
#define RMIDS	2
#define DOMAINS 2
#define OWNERS	24
#define READS	128
#define EXACT	1500 /* seeds */
#define LATE	3000
#define WILD	3000

typedef unsigned __int128 u128;

static uint64_t rng;

static uint64_t rnd(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return n ? (rng >> 11) % n : 0;
}

struct owner {
	uint64_t since, until;
	uint32_t tgid;
	bool dumped;
};

struct reading {
	uint64_t ns, slot; /* time of delivery */
	uint64_t bytes;	   /* since the reading before */
};

struct world {
	uint64_t t0, scale;
	uint32_t width;
	struct owner own[RMIDS][OWNERS];
	size_t nr_own[RMIDS];
	struct reading rd[RMIDS][DOMAINS][READS];
	size_t nr_rd[RMIDS][DOMAINS];
	uint64_t got[RMIDS][OWNERS + 1]; /* by owner; the last one: no owner */
	uint64_t odd_samples;
};

static struct world w;

static uint32_t tgid_of(size_t rmid, size_t i)
{
	return (uint32_t)(1 + rmid * OWNERS + i);
}

/* least: the shortest time between two readings. */
static void make_world(uint64_t least)
{
	static const uint32_t widths[] = { 24, 32, 44, 62, 64 };
	static const uint64_t gaps[] = { MS, 1700 * US, 9 * MS, 30 * MS };

	memset(&w, 0, sizeof(w));
	w.t0 = rnd(4) ? 1000 * MS * (1 + rnd(1000)) : -(uint64_t)(rnd(SLOTS) * MS);
	w.scale = rnd(2) ? 1 : 40960;
	w.width = widths[rnd(ARRAY_SIZE(widths))];
	for (size_t i = 0; i < RMIDS; i++) {
		uint64_t t = w.t0 + rnd(3 * MS);

		for (; t - w.t0 < SLOTS * MS && w.nr_own[i] < OWNERS; t += 2 * MS + rnd(10 * MS)) {
			struct owner *o = &w.own[i][w.nr_own[i]];

			*o = (struct owner){ .since = t,
					     .tgid = tgid_of(i, w.nr_own[i]),
					     .dumped = !w.nr_own[i] && rnd(2) };
			t += 4 * MS + rnd(20 * MS);
			o->until = t;
			w.nr_own[i]++;
		}
		for (size_t d = 0; d < DOMAINS; d++) {
			uint64_t gap = MAX(gaps[rnd(ARRAY_SIZE(gaps))], least + MS / 4), late = rnd(3) ? rnd(8) : 0;
			/* Below the width of the counter, and below what memory can transfer in 0.7 ms. */
			uint64_t bits = w.scale == 1 && w.width > 32 ? 31 : 16;

			/* Not before the first record of that RMID, which is a case of its own. */
			t = w.own[i][0].since + rnd(MS);
			for (size_t n = 0; t - w.t0 < SLOTS * MS && n < READS; n++, t += least + rnd(gap - least)) {
				w.rd[i][d][n] =
					(struct reading){ t, (t - w.t0) / MS + late, n ? rnd(3ULL << rnd(bits)) : 0 };
				w.nr_rd[i][d]++;
			}
		}
	}
}

/* The share of the bytes of reading n (those since reading n - 1) for the time [lo, hi). */
static uint64_t share(const struct reading *rd, size_t n, uint64_t lo, uint64_t hi)
{
	uint64_t a = rd[n - 1].ns, b = rd[n].ns, bytes = rd[n].bytes * w.scale;

	return (uint64_t)((u128)bytes * (hi - a) / (b - a) - (u128)bytes * (lo - a) / (b - a));
}

/*
 * Fills in what each owner of the RMID has by the end of slot number `slot`. Returns what was dropped.
 */
static uint64_t model(size_t rmid, uint64_t slot, uint64_t *by)
{
	uint64_t end = w.t0 + (slot + 1) * MS, dropped = 0;

	memset(by, 0, (OWNERS + 1) * sizeof(*by));
	for (size_t d = 0; d < DOMAINS; d++) {
		const struct reading *rd = w.rd[rmid][d];

		for (size_t n = 1; n < w.nr_rd[rmid][d]; n++) {
			uint64_t a = rd[n - 1].ns, b = rd[n].ns, stop = ttmon_before(b, end) ? b : end, owned = 0;

			if (rd[n].slot > slot || !ttmon_before(a, end))
				continue;
			for (size_t i = 0; i < w.nr_own[rmid]; i++) {
				uint64_t t = w.own[rmid][i].since;

				if (!w.own[rmid][i].dumped && ttmon_before(a, t) && ttmon_before(t, stop)) {
					dropped += share(rd, n, t, b);
					stop = t;
				}
			}
			for (size_t i = 0; i < w.nr_own[rmid]; i++) {
				const struct owner *o = &w.own[rmid][i];
				uint64_t lo = ttmon_before(o->since, a) ? a : o->since;
				uint64_t hi = ttmon_before(o->until, stop) ? o->until : stop;

				if (!ttmon_before(lo, hi))
					continue;
				by[i] += share(rd, n, lo, hi);
				owned += share(rd, n, lo, hi);
			}
			by[OWNERS] += share(rd, n, a, stop) - owned;
		}
	}
	return dropped;
}

static void got_piece(void *ctx, const struct ttmon_rdt_piece *p)
{
	size_t i = p->rmid - 1;

	(void)ctx;
	assert_true(i < RMIDS);
	if (!p->tgid) {
		w.got[i][OWNERS] += p->total;
		return;
	}
	assert_true(p->tgid > i * OWNERS && p->tgid <= (i + 1) * OWNERS);
	w.got[i][p->tgid - 1 - i * OWNERS] += p->total;
	/*
	 * Readings may be late by eight slots and thirty slots apart, and an interval ends with its slot.
	 */
	assert_true(p->ns > 0 && p->ns <= 40 * MS);
}

static void check_slot(uint64_t slot, const struct ttmon_rmid *r)
{
	uint64_t by[OWNERS + 1], dropped = 0;

	for (size_t i = 0; i < RMIDS; i++) {
		dropped += model(i, slot, by);
		for (size_t j = 0; j <= OWNERS; j++)
			assert_int_equal(w.got[i][j], by[j]);
	}
	assert_int_equal(totals(r).dropped[0], dropped);
}

/*
 * Reports the life cycle of a slot in order of time: by records, or by facts at any earlier time.
 */
static void tell_owners(struct ttmon_rmid *r, uint64_t slot, bool facts)
{
	for (size_t i = 0; i < RMIDS; i++) {
		for (size_t j = 0; j < w.nr_own[i]; j++) {
			const struct owner *o = &w.own[i][j];
			uint32_t op = o->dumped ? TTMON_RMID_EXISTING : TTMON_RMID_ALLOC;

			if (facts ? !slot : (o->since - w.t0) / MS == slot)
				(facts ? fact : life)(r, op, o->since, (uint32_t)i + 1, o->tgid);
			if (facts ? !slot : (o->until - w.t0) / MS == slot)
				(facts ? fact : life)(r, TTMON_RMID_FREE, o->until, (uint32_t)i + 1, o->tgid);
		}
	}
}

static void tell_readings(struct ttmon_rmid *r, uint64_t slot)
{
	uint8_t st[] = { TTMON_RDT_UNSUPPORTED, TTMON_RDT_OK, TTMON_RDT_UNSUPPORTED };

	for (size_t i = 0; i < RMIDS; i++) {
		for (size_t d = 0; d < DOMAINS; d++) {
			uint64_t value = -(uint64_t)1000; /* wraps early, for any width */

			for (size_t n = 0; n < w.nr_rd[i][d]; n++) {
				const struct reading *rd = &w.rd[i][d][n];

				value += rd->bytes;
				if (rd->slot == slot)
					read_full(r, rd->ns, (uint32_t)i + 1, (uint16_t)d, st, 0, value, 0);
			}
		}
	}
}

static uint64_t samples_on_free(void)
{
	uint64_t odd = 0;

	for (size_t i = 0; i < RMIDS; i++) {
		for (size_t d = 0; d < DOMAINS; d++) {
			for (size_t n = 0; n < w.nr_rd[i][d]; n++) {
				bool owned = false;

				for (size_t j = 0; j < w.nr_own[i]; j++)
					owned |= !ttmon_before(w.rd[i][d][n].ns, w.own[i][j].since) &&
						 ttmon_before(w.rd[i][d][n].ns, w.own[i][j].until);
				odd += !owned;
			}
		}
	}
	return odd;
}

static void exact(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= EXACT; seed++) {
		struct ttmon_rmid *r = fresh();
		struct ttmon_rmid_totals t;
		uint64_t bytes = 0;
		bool facts;

		rng = seed * 0x9e3779b97f4a7c15ULL;
		make_world(700 * US);
		facts = rnd(2);
		info(r, w.scale, w.width);
		for (uint64_t slot = 0; slot < SLOTS + 50; slot++) {
			tell_readings(r, slot);
			tell_owners(r, slot, facts);
			ttmon_rmid_close(r, w.t0 + (slot + 1) * MS, got_piece, NULL);
			if ((slot + seed) % 7 == 0 || slot >= SLOTS + 40)
				check_slot(slot, r);
		}
		for (size_t i = 0; i < RMIDS; i++)
			for (size_t d = 0; d < DOMAINS; d++)
				for (size_t n = 0; n < w.nr_rd[i][d]; n++)
					bytes += w.rd[i][d][n].bytes * w.scale;
		t = totals(r);
		assert_int_equal(t.bytes[0], bytes);
		conserved(r, 0);
		assert_int_equal(t.merged + t.stale + t.resets + t.saturated, 0);
		only_odd(r, TTMON_RMID_ODD_SAMPLE_ON_FREE, samples_on_free(), NULL);
		ttmon_rmid_free(r);
	}
}

/* A lifecycle record and the slot in which it comes. */
struct record {
	uint64_t ns, slot;
	uint32_t op, rmid, tgid; /* tgid 0: it names no process */
};

static uint64_t latest; /* number of slots by which a record may be late */

static size_t add_record(struct record *v, size_t n, uint32_t op, uint64_t ns, size_t rmid, uint32_t tgid)
{
	uint64_t slot = (ns - w.t0) / MS + (rnd(4) ? 0 : rnd(latest + 1));

	v[n] = (struct record){ ns, slot, op, (uint32_t)rmid + 1, tgid };
	return n + 1;
}

static size_t make_records(struct record *v)
{
	size_t n = 0;

	for (size_t i = 0; i < RMIDS; i++) {
		for (size_t j = 0; j < w.nr_own[i]; j++) {
			const struct owner *o = &w.own[i][j];

			n = add_record(v, n, o->dumped ? TTMON_RMID_EXISTING : TTMON_RMID_ALLOC, o->since, i, o->tgid);
			for (unsigned int k = 0; k < 2; k++)
				if (!rnd(3))
					n = add_record(v, n, TTMON_RMID_EXISTING, o->since + rnd(o->until - o->since),
						       i, o->tgid);
			n = add_record(v, n, TTMON_RMID_FREE, o->until, i, rnd(2) ? o->tgid : 0);
		}
	}
	for (size_t i = n; i > 1; i--) {
		size_t k = rnd(i);
		struct record r = v[k];

		v[k] = v[i - 1];
		v[i - 1] = r;
	}
	return n;
}

/*
 * Reports everything that comes in the slot, and closes it. Returns true if a record of its time, or
 * before, is still to come.
 */
static bool late_slot(struct ttmon_rmid *r, uint64_t slot, const struct record *v, size_t n)
{
	uint64_t end = w.t0 + (slot + 1) * MS;
	bool missing = false;

	tell_readings(r, slot);
	for (size_t i = 0; i < n; i++) {
		if (v[i].slot == slot)
			(rnd(2) ? life : fact)(r, v[i].op, v[i].ns, v[i].rmid, v[i].tgid);
		missing |= v[i].slot > slot && ttmon_before(v[i].ns, end);
	}
	if (missing)
		ttmon_rmid_skip(r, end);
	else
		ttmon_rmid_close(r, end, got_piece, NULL);
	return missing;
}

static void late(void **state)
{
	static struct record v[RMIDS * OWNERS * 4];
	uint64_t skipped = 0, came_late = 0;

	(void)state;
	latest = 8;
	for (uint64_t seed = 1; seed <= LATE; seed++) {
		struct ttmon_rmid *r = fresh();
		size_t n;

		rng = seed * 0xbf58476d1ce4e5b9ULL;
		make_world(2 * MS);
		n = make_records(v);
		info(r, w.scale, w.width);
		for (uint64_t slot = 0; slot < SLOTS + 50; slot++) {
			bool missing = late_slot(r, slot, v, n);

			skipped += missing;
			if (!missing && ((slot + seed) % 3 == 0 || slot >= SLOTS + 40))
				check_slot(slot, r);
		}
		conserved(r, 0);
		assert_int_equal(totals(r).merged + totals(r).stale + totals(r).resets, 0);
		assert_int_equal(totals(r).in_use, 0);
		came_late += totals(r).late;
		ttmon_rmid_free(r);
	}
	/* The run reached the cases that it tests. */
	assert_true(skipped > 20 * LATE / 2 && came_late > LATE);
}

/*
 * So late that there is no room for readings and they are merged: no process gets more than its own
 * bytes, and missing bytes are counted as dropped.
 */
static void very_late(void **state)
{
	static struct record v[RMIDS * OWNERS * 4];
	uint64_t merged = 0, whole = 0, dropped = 0;

	(void)state;
	latest = 24;
	for (uint64_t seed = 1; seed <= LATE; seed++) {
		uint64_t by[OWNERS + 1], got = 0, truth = 0, cut = 0;
		struct ttmon_rmid *r = fresh();
		size_t n;

		rng = seed * 0x94d049bb133111ebULL;
		make_world(700 * US);
		n = make_records(v);
		info(r, w.scale, w.width);
		for (uint64_t slot = 0; slot < SLOTS + 60; slot++)
			(void)late_slot(r, slot, v, n);
		conserved(r, 0);
		merged += totals(r).merged;
		if (totals(r).odd[TTMON_RMID_ODD_DROPPED]) {
			ttmon_rmid_free(r);
			continue;
		}
		for (size_t i = 0; i < RMIDS; i++) {
			cut += model(i, SLOTS + 59, by);
			for (size_t j = 0; j <= OWNERS; j++) {
				assert_true(w.got[i][j] <= by[j]);
				got += w.got[i][j];
				truth += by[j];
			}
		}
		assert_int_equal(truth - got, totals(r).dropped[0] - cut);
		whole += got;
		dropped += truth - got;
		ttmon_rmid_free(r);
	}
	assert_true(merged > LATE && dropped && whole > dropped);
}

static uint64_t pieces_sum[3][2]; /* pieces with and without an owner, also with tgid 0 */

static void sum_piece(void *ctx, const struct ttmon_rdt_piece *p)
{
	(void)ctx;
	pieces_sum[!p->tgid][0] += p->total;
	pieces_sum[!p->tgid][1] += p->local;
}

static void wild_step(struct ttmon_rmid *r, uint64_t *now, uint64_t *end)
{
	uint32_t rmid = (uint32_t)rnd(6), tgid = (uint32_t)rnd(5);
	uint64_t when = *now - rnd(5 * MS) + rnd(rnd(50) ? 2 * MS : 70 * NSEC_PER_SEC);
	uint8_t st[3];

	switch (rnd(8)) {
	case 0:
		life(r, (uint32_t)rnd(TTMON_RMID_OP_MAX), when, rmid, tgid);
		break;
	case 1:
		fact(r, (uint32_t)rnd(TTMON_RMID_OP_MAX), when, rmid, tgid);
		break;
	case 2:
		if (!rnd(40))
			info(r, 1 + rnd(100000), 24 + (uint32_t)rnd(41));
		ttmon_rmid_seen(r, rmid, tgid, *end);
		break;
	case 3:
		if (!rnd(8))
			*now += rnd(100 * MS);
		while (rnd(4) && ttmon_before(*end, *now)) {
			*end += rnd(10) ? MS : MS * rnd(20);
			ttmon_rmid_close(r, *end, sum_piece, NULL);
		}
		break;
	default:
		for (unsigned int i = 0; i < 3; i++)
			st[i] = rnd(5) ? TTMON_RDT_OK : (uint8_t)rnd(TTMON_RDT_STATE_MAX);
		read_full(r, when, rmid, (uint16_t)rnd(3), st, rnd(UINT64_MAX), rnd(rnd(9) ? 1000 : UINT64_MAX),
			  rnd(rnd(9) ? 1000000 : UINT64_MAX));
	}
	*now += rnd(600 * US);
}

static void wild(void **state)
{
	uint64_t any = 0, unassigned = 0, dropped = 0;
	char line[256];

	(void)state;
	for (uint64_t seed = 1; seed <= WILD; seed++) {
		struct ttmon_rmid *r = fresh();
		struct ttmon_rmid_totals t;
		uint64_t now, end;

		rng = seed * 0xd1342543de82ef95ULL;
		now = rnd(3) ? NSEC_PER_SEC * (1 + rnd(100)) : -(uint64_t)rnd(300 * MS);
		end = now / MS * MS - 2 * MS;
		memset(pieces_sum, 0, sizeof(pieces_sum));
		for (unsigned int i = 0; i < 600; i++)
			wild_step(r, &now, &end);
		ttmon_rmid_close(r, end + 200 * NSEC_PER_SEC, sum_piece, NULL);
		t = totals(r);
		for (unsigned int v = 0; v < 2; v++) {
			assert_int_equal(t.assigned[v], pieces_sum[0][v]);
			assert_int_equal(t.unassigned[v], pieces_sum[1][v]);
			assert_int_equal(t.bytes[v], t.assigned[v] + t.unassigned[v] + t.dropped[v]);
			any += t.assigned[v];
			unassigned += t.unassigned[v];
			dropped += t.dropped[v];
		}
		assert_true(t.in_use <= t.peak && t.peak <= 5);
		while (ttmon_rmid_note(r, line, sizeof(line)))
			assert_true(strlen(line) > 10);
		ttmon_rmid_free(r);
	}
	/* The run reached the cases that it tests. */
	assert_true(any && unassigned && dropped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact),
		cmocka_unit_test(late),
		cmocka_unit_test(very_late),
		cmocka_unit_test(wild),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
