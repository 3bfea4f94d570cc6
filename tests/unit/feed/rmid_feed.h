/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rmid_feed.h: records for core/rmid, and the pieces that it gives, by slot and process. Times are
 * virtual.
 */
#ifndef RMID_FEED_H
#define RMID_FEED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/rmid/rmid.h"
#include "tests/unit/feed/apply.h"

#define MS     NSEC_PER_MS
#define US     NSEC_PER_US
#define PIECES 256
#define ALL_OK                                           \
	{                                                \
		TTMON_RDT_OK, TTMON_RDT_OK, TTMON_RDT_OK \
	}

/* Pieces since the last clear(). */
static struct ttmon_rdt_piece pieces[PIECES];
static size_t nr_pieces;

static inline void on_piece(void *ctx, const struct ttmon_rdt_piece *p)
{
	(void)ctx;
	if (nr_pieces < PIECES)
		pieces[nr_pieces] = *p;
	nr_pieces++;
}

static inline void close_at(struct ttmon_rmid *r, uint64_t end)
{
	nr_pieces = 0;
	ttmon_rmid_close(r, end, on_piece, NULL);
}

/* The only piece of that process; NULL: none. */
static inline const struct ttmon_rdt_piece *piece_of(uint32_t tgid)
{
	const struct ttmon_rdt_piece *found = NULL;

	for (size_t i = 0; i < nr_pieces && i < PIECES; i++) {
		if (pieces[i].tgid != tgid)
			continue;
		assert_null(found);
		found = &pieces[i];
	}
	return found;
}

static inline uint64_t total_of(uint32_t tgid)
{
	const struct ttmon_rdt_piece *p = piece_of(tgid);

	return p ? p->total : 0;
}

static inline struct ttmon_ev_rmid life_record(uint32_t op, uint64_t ns, uint32_t rmid, uint32_t tgid)
{
	struct ttmon_ev_rmid e = { .h = { .ts_ns = ns + 200, .kind = TTMON_EV_RMID, .tgid = tgid, .tid = tgid },
				   .when_ns = ns,
				   .start_ns = tgid ? 1000ULL * tgid : 0,
				   .rmid = rmid,
				   .op = op };

	snprintf(e.comm, sizeof(e.comm), "p%u", tgid);
	return e;
}

static inline void life(struct ttmon_rmid *r, uint32_t op, uint64_t ns, uint32_t rmid, uint32_t tgid)
{
	struct ttmon_ev_rmid e = life_record(op, ns, rmid, tgid);

	ttmon_rmid_apply(r, &e.h);
}

static inline void give(struct ttmon_rmid *r, uint64_t ns, uint32_t rmid, uint32_t tgid)
{
	life(r, TTMON_RMID_ALLOC, ns, rmid, tgid);
}

static inline void take(struct ttmon_rmid *r, uint64_t ns, uint32_t rmid, uint32_t tgid)
{
	life(r, TTMON_RMID_FREE, ns, rmid, tgid);
}

static inline void found(struct ttmon_rmid *r, uint64_t ns, uint32_t rmid, uint32_t tgid)
{
	life(r, TTMON_RMID_EXISTING, ns, rmid, tgid);
}

static inline void fact(struct ttmon_rmid *r, uint32_t op, uint64_t ns, uint32_t rmid, uint32_t tgid)
{
	struct ttmon_ev_rmid e = life_record(op, ns, rmid, tgid);

	e.h.kind = TTMON_EV_RMID_SET;
	e.h.ts_ns = 0; /* not what counts */
	ttmon_rmid_apply(r, &e.h);
}

static inline void read_full(struct ttmon_rmid *r, uint64_t ns, uint32_t rmid, uint16_t domain, const uint8_t *state,
			     uint64_t occ, uint64_t total, uint64_t local)
{
	struct ttmon_ev_rdt e = { .h = { .ts_ns = ns, .kind = TTMON_EV_RDT },
				  .when_ns = ns,
				  .rmid = rmid,
				  .domain = domain,
				  .value = { occ, total, local } };

	memcpy(e.state, state, sizeof(e.state));
	ttmon_rmid_apply(r, &e.h);
}

/* Only a total; the others are not supported. */
static inline void total(struct ttmon_rmid *r, uint64_t ns, uint32_t rmid, uint64_t value)
{
	static const uint8_t state[] = { TTMON_RDT_UNSUPPORTED, TTMON_RDT_OK, TTMON_RDT_UNSUPPORTED };

	read_full(r, ns, rmid, 0, state, 0, value, 0);
}

static inline void occupancy(struct ttmon_rmid *r, uint64_t ns, uint32_t rmid, uint16_t domain, uint64_t value)
{
	static const uint8_t state[] = { TTMON_RDT_OK, TTMON_RDT_UNSUPPORTED, TTMON_RDT_UNSUPPORTED };

	read_full(r, ns, rmid, domain, state, value, 0, 0);
}

static inline void info(struct ttmon_rmid *r, uint64_t scale, uint32_t width)
{
	struct ttmon_ev_rmid_info e = { .h = { .kind = TTMON_EV_RMID_INFO },
					.backend = TTMON_RMID_MODULE,
					.max_rmid = 511,
					.scale = scale,
					.width = width,
					.flags = 7 };

	ttmon_rmid_apply(r, &e.h);
}

static inline struct ttmon_rmid *fresh(void)
{
	struct ttmon_rmid *r = NULL;

	assert_int_equal(ttmon_rmid_new(&r), 0);
	return r;
}

static inline struct ttmon_rmid_totals totals(const struct ttmon_rmid *r)
{
	struct ttmon_rmid_totals t;

	ttmon_rmid_get_totals(r, &t);
	return t;
}

static inline uint32_t owner_at(const struct ttmon_rmid *r, uint32_t rmid, uint64_t ns)
{
	struct ttmon_rmid_owner o;

	ttmon_rmid_get_owner(r, rmid, ns, &o);
	return o.tgid;
}

/* Checks that only this odd kind was counted, n times; line: the text that reports it. */
static inline void only_odd(struct ttmon_rmid *r, unsigned int odd, uint64_t n, const char *line)
{
	struct ttmon_rmid_totals t = totals(r);
	char buf[128];

	for (unsigned int i = 0; i < TTMON_RMID_ODD_MAX; i++)
		assert_int_equal(t.odd[i], i == odd ? n : 0);
	if (!line)
		return;
	assert_true(ttmon_rmid_note(r, buf, sizeof(buf)));
	assert_string_equal(buf, line);
	assert_false(ttmon_rmid_note(r, buf, sizeof(buf)));
}

static inline void nothing_odd(struct ttmon_rmid *r)
{
	only_odd(r, TTMON_RMID_ODD_MAX, 0, NULL);
}

/* bytes = assigned + unassigned + dropped + left: what open slots will get. */
static inline void conserved(const struct ttmon_rmid *r, uint64_t left)
{
	struct ttmon_rmid_totals t = totals(r);

	for (unsigned int v = 0; v < 2; v++)
		assert_int_equal(t.bytes[v] - t.assigned[v] - t.unassigned[v] - t.dropped[v], v ? 0 : left);
}

#endif
