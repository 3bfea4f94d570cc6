/* SPDX-License-Identifier: GPL-2.0-only */
/* cpu_feed.h: records of the scheduler as the kernel makes them, for the tests of core/cpu. */
#ifndef TTMON_TESTS_CPU_FEED_H
#define TTMON_TESTS_CPU_FEED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "daemon/core/cpu/cpu.h"
#include "tests/unit/feed/apply.h"

#define MS  NSEC_PER_MS
#define US  NSEC_PER_US
#define SEC NSEC_PER_SEC
#define NO  7000ULL   /* the first slot that closes, */
#define B   (NO * MS) /* and its start */

struct feed_table {
	struct ttmon_cpu_table t;
	struct ttmon_cpu_row rows[TTMON_CPU_ROWS]; /* as FULL; packed when fed */
};

static inline struct ttmon_cpu_who feed_who(uint32_t tgid, uint64_t start_ns)
{
	return (struct ttmon_cpu_who){ .start_ns = start_ns,
				       .tgid = tgid,
				       .cls = tgid ? TTMON_CPU_USER : TTMON_CPU_IDLE };
}

static inline size_t feed_pack(uint8_t *to, const struct feed_table *f)
{
	size_t size = sizeof(f->t);

	memcpy(to, &f->t, sizeof(f->t));
	for (unsigned int i = 0; i < f->t.nr_rows; i++) {
		memcpy(to + size, &f->rows[i], f->t.row_size);
		size += f->t.row_size;
	}
	return size;
}

static inline void feed_slot(struct ttmon_cpu *c, uint32_t cpu, const struct feed_table *f)
{
	_Alignas(8) uint8_t buf[4096];
	struct ttmon_event h = { .ts_ns = f->t.to_ns, .kind = TTMON_EV_CPU_SLOT, .cpu = (uint16_t)cpu };

	memcpy(buf, &h, sizeof(h));
	ttmon_cpu_apply(c, (const void *)buf, sizeof(h) + feed_pack(buf + sizeof(h), f));
}

static inline void feed_open(struct ttmon_cpu *c, uint32_t cpu, unsigned int state, uint64_t ts_ns,
			     const struct feed_table *f)
{
	_Alignas(8) uint8_t buf[4096] = { 0 };
	struct ttmon_ev_cpu_open ev = {
		.h = { .ts_ns = ts_ns, .kind = TTMON_EV_CPU_OPEN, .cpu = 0xffff },
		.of_cpu = cpu,
		.state = state,
	};
	size_t size = offsetof(struct ttmon_ev_cpu_open, t);

	memcpy(buf, &ev, size);
	if (f)
		size += feed_pack(buf + size, f);
	else
		size = sizeof(ev);
	ttmon_cpu_apply(c, (const void *)buf, size);
}

static inline void feed_task(struct ttmon_cpu *c, unsigned int reason, uint64_t ts_ns, struct ttmon_cpu_who who,
			     const char *comm)
{
	struct ttmon_ev_task ev = {
		.h = { .ts_ns = ts_ns, .kind = TTMON_EV_TASK, .tgid = who.tgid, .tid = who.tgid },
		.start_ns = who.start_ns,
		.reason = (uint16_t)reason,
		.cls = who.cls,
	};

	memcpy(ev.comm, comm, MIN(strlen(comm), sizeof(ev.comm)));
	ttmon_cpu_apply(c, &ev.h, sizeof(ev));
}

static inline void feed_rmid(struct ttmon_cpu *c, unsigned int op, uint64_t ts_ns, uint32_t tgid, uint64_t start_ns,
			     uint32_t rmid)
{
	struct ttmon_ev_rmid ev = {
		.h = { .ts_ns = ts_ns, .kind = TTMON_EV_RMID, .tgid = tgid },
		.when_ns = ts_ns,
		.start_ns = start_ns,
		.rmid = rmid,
		.op = op,
	};

	ttmon_cpu_apply(c, &ev.h, sizeof(ev));
}

/* xorshift64*: the same numbers on every host. */
static inline uint64_t feed_random(uint64_t *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 0x2545f4914f6cdd1dULL;
}

static inline uint64_t feed_below(uint64_t *s, uint64_t n)
{
	return feed_random(s) % n;
}

static inline const struct ttmon_slot_row *feed_row(const struct ttmon_slot_row *rows, size_t n, unsigned int cls,
						    uint32_t tgid)
{
	for (size_t i = 0; i < n; i++)
		if (rows[i].cls == cls && rows[i].tgid == tgid)
			return &rows[i];
	return NULL;
}

struct feed_sums {
	uint64_t cpu_ns, switches, ctr[TTMON_CTR_MAX];
	size_t n;
};

static inline void feed_add_proc(void *ctx, const struct ttmon_cpu_proc *p)
{
	struct feed_sums *s = ctx;

	s->cpu_ns += p->cpu_ns;
	s->switches += p->switches;
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		s->ctr[i] += p->ctr[i];
	s->n++;
}

/* Over all processes, kept and gone. */
static inline struct feed_sums feed_all(const struct ttmon_cpu *c)
{
	struct ttmon_cpu_proc gone;
	struct feed_sums s = { 0 };

	ttmon_cpu_each(c, feed_add_proc, &s);
	ttmon_cpu_gone(c, &gone);
	feed_add_proc(&s, &gone);
	return s;
}

struct closed {
	struct ttmon_slot slot;
	const struct ttmon_slot_row *rows;
	size_t n;
};

static inline struct ttmon_cpu *new_cpu(uint32_t cpus, uint32_t max_procs)
{
	struct ttmon_cpu_cfg cfg = { .nr_cpus = cpus, .max_procs = max_procs };
	struct ttmon_cpu *c;

	assert_int_equal(ttmon_cpu_new(&cfg, &c), 0);
	return c;
}

static inline struct closed close_no(struct ttmon_cpu *c, uint64_t no, bool forced)
{
	struct closed r = { 0 };

	r.n = ttmon_cpu_close(c, no, forced, &r.slot, &r.rows);
	assert_int_equal(r.slot.nr_rows, r.n);
	return r;
}

static inline struct ttmon_cpu_totals totals(const struct ttmon_cpu *c)
{
	struct ttmon_cpu_totals t;

	ttmon_cpu_get_totals(c, &t);
	assert_int_equal(t.told_ns, t.user_ns + t.kernel_ns + t.idle_ns + t.late_ns);
	assert_int_equal(t.told_ns, feed_all(c).cpu_ns);
	return t;
}

static inline const struct ttmon_slot_row *user(const struct closed *r, uint32_t tgid)
{
	return feed_row(r->rows, r->n, TTMON_ROW_USER, tgid);
}

static inline uint64_t idle_ns(const struct closed *r)
{
	const struct ttmon_slot_row *row = feed_row(r->rows, r->n, TTMON_ROW_IDLE, 0);

	return row ? row->cpu_ns : 0;
}

/* A record without rows: `who` ran in [begin, to). */
static inline struct feed_table cross(uint64_t begin, uint64_t to, struct ttmon_cpu_who who)
{
	return (struct feed_table){ .t = { .begin_ns = begin,
					   .last_ns = begin,
					   .to_ns = to,
					   .who = who,
					   .row_size = TTMON_CPU_ROW_SHORT,
					   .switched = 1 } };
}

/* One row first, of [begin, last). */
static inline struct feed_table with_row(uint64_t begin, struct ttmon_cpu_who first, uint64_t last,
					 struct ttmon_cpu_who who, uint64_t to)
{
	struct feed_table f = cross(begin, to, who);

	f.t.last_ns = last;
	f.t.nr_rows = 1;
	f.rows[0] = (struct ttmon_cpu_row){ .who = first, .ns = (uint32_t)(last - begin), .switches = 1 };
	return f;
}

static inline void set_ctr(struct feed_table *f, uint64_t row, uint64_t rest)
{
	f->t.row_size = TTMON_CPU_ROW_FULL;
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++) {
		f->rows[0].ctr[i] = row * (i + 1);
		f->t.ctr[i] = rest * (i + 1);
	}
}

static inline void feed_cross(struct ttmon_cpu *c, uint32_t cpu, uint64_t begin, uint64_t to, struct ttmon_cpu_who who)
{
	struct feed_table f = cross(begin, to, who);

	feed_slot(c, cpu, &f);
}

static inline void open_known(struct ttmon_cpu *c, uint32_t cpu, struct feed_table f)
{
	f.t.to_ns = 0;
	f.t.switched = 0;
	memset(f.t.ctr, 0, sizeof(f.t.ctr));
	feed_open(c, cpu, TTMON_CPU_OPEN_KNOWN, f.t.last_ns, &f);
}

static inline void run_one(struct ttmon_cpu *c, uint64_t no, struct ttmon_cpu_who who, struct closed *r)
{
	feed_cross(c, 0, no * MS, (no + 1) * MS, who);
	*r = close_no(c, no, false);
}

#endif
