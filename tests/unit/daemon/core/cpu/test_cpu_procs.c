// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_cpu_procs.c: to which process a row of core/cpu belongs: names, ends, reused tgids, RMIDs, and
 * data that comes with a tgid alone.
 */
#include "tests/unit/feed/cpu_feed.h"

static void test_names(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5), b = feed_who(10, 77);
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;
	uint64_t no = NO;

	(void)state;
	run_one(c, no++, a, &r);
	assert_string_equal(user(&r, 10)->comm, "");
	feed_task(c, TTMON_TASK_FORK, no * MS, a, "bash");
	run_one(c, no++, a, &r);
	assert_string_equal(user(&r, 10)->comm, "bash");
	feed_task(c, TTMON_TASK_EXEC, no * MS, a, "a_name_of_fifteen_letters");
	run_one(c, no++, a, &r);
	assert_string_equal(user(&r, 10)->comm, "a_name_of_fifte");
	assert_int_equal(user(&r, 10)->flags, 0);
	feed_task(c, TTMON_TASK_EXIT, no * MS + 5, a, "ls");
	run_one(c, no++, a, &r);
	assert_int_equal(user(&r, 10)->flags, TTMON_ROW_ENDED);
	/* Its last switch comes later, when the tgid already belongs to another process. */
	feed_task(c, TTMON_TASK_FORK, no * MS, b, "new");
	feed_cross(c, 0, no * MS, no * MS + 100, a);
	feed_cross(c, 0, no * MS + 100, (no + 1) * MS, b);
	r = close_no(c, no++, false);
	assert_int_equal(r.n, 2);
	assert_string_equal(r.rows[0].comm, "new");
	assert_int_equal(r.rows[0].start_ns, 77);
	assert_int_equal(r.rows[0].flags, 0);
	assert_string_equal(r.rows[1].comm, "ls");
	assert_int_equal(r.rows[1].flags, TTMON_ROW_ENDED);
	assert_int_equal(r.rows[1].start_ns, 5);
	ttmon_cpu_free(c);
}

struct find {
	uint32_t tgid;
	uint64_t start_ns;
	struct ttmon_cpu_proc p;
	unsigned int n;
};

static void find_proc(void *ctx, const struct ttmon_cpu_proc *p)
{
	struct find *f = ctx;

	if (p->cls != TTMON_ROW_USER || p->tgid != f->tgid || (f->start_ns && p->start_ns != f->start_ns))
		return;
	f->p = *p;
	f->n++;
}

static struct find find(const struct ttmon_cpu *c, uint32_t tgid, uint64_t start_ns)
{
	struct find f = { .tgid = tgid, .start_ns = start_ns };

	ttmon_cpu_each(c, find_proc, &f);
	return f;
}

static void test_leaves(void **state)
{
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct ttmon_cpu_proc gone;
	struct closed r;
	uint64_t no = NO;

	(void)state;
	run_one(c, no++, feed_who(10, 5), &r);
	feed_task(c, TTMON_TASK_EXIT, no * MS + 7, feed_who(10, 5), "a");
	/* The EXIT of the first process was lost: the reuse of its tgid shows that it has ended. */
	run_one(c, no++, feed_who(20, 8), &r);
	run_one(c, no++, feed_who(20, 9 * MS), &r);
	assert_int_equal(find(c, 20, 8).p.end_ns, 9 * MS);
	assert_int_equal(find(c, 20, 9 * MS).p.end_ns, 0);
	assert_int_equal(find(c, 10, 5).p.end_ns, (NO + 1) * MS + 7);
	assert_int_equal(totals(c).procs, 3);
	while (no < NO + 1900)
		run_one(c, no++, feed_who(0, 0), &r);
	assert_int_equal(totals(c).procs, 3);
	while (no < NO + 2100)
		run_one(c, no++, feed_who(0, 0), &r);
	assert_int_equal(totals(c).procs, 1);
	assert_int_equal(find(c, 20, 0).n, 1);
	ttmon_cpu_gone(c, &gone);
	assert_int_equal(gone.cpu_ns, 2 * MS);
	assert_int_equal(gone.switches, 2);
	assert_int_equal(totals(c).told_ns, 2100 * MS);
	ttmon_cpu_free(c);
}

/* The newer process is known first. The other one has ended, whatever the order. */
static void test_reused_backwards(void **state)
{
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	run_one(c, NO, feed_who(10, 900), &r);
	run_one(c, NO + 1, feed_who(10, 800), &r);
	assert_int_equal(find(c, 10, 800).p.end_ns, 900);
	assert_int_equal(find(c, 10, 900).p.end_ns, 0);
	ttmon_cpu_copy(c, 10, 64);
	run_one(c, NO + 2, feed_who(0, 0), &r);
	assert_int_equal(user(&r, 10)->start_ns, 900);
	ttmon_cpu_free(c);
}

static void test_tgid_many(void **state)
{
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		run_one(c, NO + i, feed_who(10, 1000 + i), &r);
	assert_int_equal(totals(c).procs, 8);
	assert_int_equal(totals(c).told_ns, 100 * MS);
	assert_int_equal(totals(c).procs_dropped, 0);
	ttmon_cpu_free(c);
}

static void test_no_room(void **state)
{
	struct ttmon_cpu *c = new_cpu(1, 2);
	struct ttmon_cpu_proc gone;
	struct feed_table f = cross(B, B + MS, feed_who(0, 0));
	struct closed r;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		f.rows[f.t.nr_rows++] = (struct ttmon_cpu_row){ .who = feed_who(10 + i, 5), .ns = 100 };
	f.t.last_ns = B + 400;
	feed_slot(c, 0, &f);
	r = close_no(c, NO, false);
	assert_int_equal(r.n, 4);
	assert_int_equal(r.rows[2].cls, TTMON_ROW_OTHER);
	assert_int_equal(r.rows[2].cpu_ns, 200);
	assert_int_equal(r.rows[3].cls, TTMON_ROW_IDLE);
	assert_int_equal(r.slot.user_ns, 400);
	assert_int_equal(r.slot.missing_ns, 0);
	assert_int_equal(totals(c).procs_dropped, 2);
	ttmon_cpu_gone(c, &gone);
	assert_int_equal(gone.cpu_ns, 200);
	/* There is room when a process has ended, but not in the slot in which it has a row. */
	feed_task(c, TTMON_TASK_EXIT, B + MS, feed_who(10, 5), "");
	run_one(c, NO + 1, feed_who(12, 5), &r);
	assert_non_null(user(&r, 12));
	assert_int_equal(totals(c).procs, 2);
	ttmon_cpu_free(c);
}

static void test_silent_leave(void **state)
{
	struct ttmon_cpu *c = new_cpu(1, 8);
	struct closed r;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		run_one(c, NO + i, feed_who(10 + i, 5), &r);
	open_known(c, 0, cross((NO + 8) * MS, 0, feed_who(0, 0)));
	for (uint64_t no = NO + 8; no < NO + 50000; no++)
		close_no(c, no, false);
	assert_int_equal(totals(c).procs, 8);
	for (uint64_t no = NO + 50000; no < NO + 61000; no++)
		close_no(c, no, false);
	assert_int_equal(totals(c).procs, 5);
	ttmon_cpu_free(c);
}

static void test_kernel_thread(void **state)
{
	struct ttmon_cpu_who kt = feed_who(30, 3);
	struct ttmon_cpu *c = new_cpu(2, 0);
	struct closed r;

	(void)state;
	kt.cls = TTMON_CPU_KERNEL;
	feed_cross(c, 0, B, B + MS, kt);
	feed_cross(c, 1, B, B + MS, feed_who(0, 0));
	r = close_no(c, NO, false);
	assert_int_equal(r.slot.kernel_ns, MS);
	assert_int_equal(r.slot.idle_ns, MS);
	assert_int_equal(r.slot.user_ns, 0);
	assert_int_equal(feed_row(r.rows, r.n, TTMON_ROW_KERNEL, 30)->cpu_ns, MS);
	ttmon_cpu_free(c);
}

static void test_rmid(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5), b = feed_who(11, 6);
	struct ttmon_cpu_who own = a;
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;
	uint64_t no = NO;

	(void)state;
	feed_rmid(c, TTMON_RMID_ALLOC, no * MS, 10, 5, 40);
	run_one(c, no++, a, &r);
	assert_int_equal(user(&r, 10)->rmid, 40);
	/* The RMID stays until the end of the slot of its free. */
	feed_rmid(c, TTMON_RMID_FREE, no * MS, 0, 0, 40);
	run_one(c, no++, a, &r);
	assert_int_equal(user(&r, 10)->rmid, 40);
	assert_int_equal(find(c, 10, 5).p.rmid, 0);
	run_one(c, no++, a, &r);
	assert_int_equal(user(&r, 10)->rmid, 0);
	/* The free was lost: the RMID belongs to another process now. */
	feed_rmid(c, TTMON_RMID_ALLOC, no * MS, 10, 0, 41);
	run_one(c, no++, a, &r);
	feed_rmid(c, TTMON_RMID_ALLOC, no * MS, 11, 6, 41);
	run_one(c, no++, b, &r);
	assert_int_equal(user(&r, 11)->rmid, 41);
	run_one(c, no++, a, &r);
	assert_int_equal(user(&r, 10)->rmid, 0);
	/* A free by a third process. */
	feed_rmid(c, TTMON_RMID_FREE, no * MS, 12, 6, 41);
	run_one(c, no++, b, &r);
	run_one(c, no++, b, &r);
	assert_int_equal(user(&r, 11)->rmid, 41);
	/* The RMID in the scheduler's record takes precedence. */
	own.rmid = 7;
	run_one(c, no++, own, &r);
	assert_int_equal(user(&r, 10)->rmid, 7);
	feed_rmid(c, TTMON_RMID_NONE, no * MS, 10, 5, 0);
	run_one(c, no++, a, &r);
	assert_int_equal(user(&r, 10)->rmid, 0);
	ttmon_cpu_free(c);
}

/* Records of an RMID that come after newer ones of it: the process that has it keeps it. */
static void test_rmid_late(void **state)
{
	const struct ttmon_cpu_who p = feed_who(10, 5), q = feed_who(11, 6);
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;
	uint64_t no = NO;

	(void)state;
	feed_rmid(c, TTMON_RMID_ALLOC, B, 10, 5, 40);
	run_one(c, no++, p, &r);
	assert_int_equal(user(&r, 10)->rmid, 40);
	feed_rmid(c, TTMON_RMID_ALLOC, B + 9 * MS, 11, 6, 40);
	run_one(c, no++, q, &r);
	assert_int_equal(user(&r, 11)->rmid, 40);
	/*
	 * The free of P, without a name, comes after Q got the RMID. Then all records of P come a second time.
	 */
	feed_rmid(c, TTMON_RMID_FREE, B + 5 * MS, 0, 0, 40);
	feed_rmid(c, TTMON_RMID_EXISTING, B + 3 * MS, 10, 5, 40);
	feed_rmid(c, TTMON_RMID_ALLOC, B + 2 * MS, 10, 5, 40);
	for (unsigned int i = 0; i < 2; i++) {
		run_one(c, no++, q, &r);
		assert_int_equal(user(&r, 11)->rmid, 40);
		run_one(c, no++, p, &r);
		assert_int_equal(user(&r, 10)->rmid, 0);
	}
	/*
	 * These records are older than the RMID that P has by now, though no newer record of this RMID has
	 * come.
	 */
	feed_rmid(c, TTMON_RMID_ALLOC, B + 20 * MS, 10, 5, 50);
	feed_rmid(c, TTMON_RMID_ALLOC, B + 8 * MS, 10, 5, 45);
	feed_rmid(c, TTMON_RMID_NONE, B + 7 * MS, 10, 5, 0);
	run_one(c, no++, p, &r);
	assert_int_equal(user(&r, 10)->rmid, 50);
	/* A free without a name at the time of Q is Q's free. */
	feed_rmid(c, TTMON_RMID_FREE, B + 21 * MS, 0, 0, 40);
	run_one(c, no++, q, &r);
	run_one(c, no++, q, &r);
	assert_int_equal(user(&r, 11)->rmid, 0);
	/* An invalid time does not make all later records old. */
	feed_rmid(c, TTMON_RMID_ALLOC, (no + 1) * MS + 61 * SEC, 11, 6, 50);
	feed_rmid(c, TTMON_RMID_FREE, B + 30 * MS, 0, 0, 50);
	run_one(c, no++, p, &r);
	run_one(c, no++, p, &r);
	assert_int_equal(user(&r, 10)->rmid, 0);
	ttmon_cpu_free(c);
}

/*
 * A scheduler record that comes after its slot has closed does not show which RMID its process has
 * now.
 */
static void test_rmid_of_late_rows(void **state)
{
	struct ttmon_cpu_who p = feed_who(10, 5), q = feed_who(11, 6);
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;
	uint64_t no = NO;

	(void)state;
	p.rmid = 40;
	run_one(c, no++, feed_who(0, 0), &r);
	close_no(c, no++, true); /* P ran in this slot, and its record had not come */
	feed_rmid(c, TTMON_RMID_ALLOC, B + 2 * MS, 11, 6, 40);
	feed_cross(c, 0, (NO + 1) * MS, (NO + 2) * MS, p);
	feed_cross(c, 0, (NO + 2) * MS, (NO + 3) * MS, q);
	r = close_no(c, no++, false);
	assert_int_equal(user(&r, 11)->rmid, 40);
	assert_int_equal(find(c, 10, 5).p.rmid, 0);
	/* A free without a name at this time is Q's free. */
	feed_rmid(c, TTMON_RMID_FREE, B + 3 * MS, 0, 0, 40);
	run_one(c, no++, q, &r);
	run_one(c, no++, q, &r);
	assert_int_equal(user(&r, 11)->rmid, 0);
	ttmon_cpu_free(c);
}

#define LIVES 40 /* number of lives in a random run */
#define IDS   3

/* The time in which a process had an RMID; it runs a little before and after that too. */
struct world_life {
	uint64_t from, to, begin, end;
	uint32_t rmid, tgid;
};

struct world_record {
	uint64_t ns, slot; /* time of the record; slot in which it comes */
	uint32_t op, rmid, tgid;
};

static int by_time(const void *a, const void *b)
{
	const struct world_record *x = a, *y = b;

	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static size_t make_world(uint64_t *seed, struct world_life *lives, struct world_record *recs)
{
	uint64_t free_at[IDS];
	size_t n = 0;

	for (unsigned int i = 0; i < IDS; i++)
		free_at[i] = B + feed_below(seed, 3 * MS);
	for (uint32_t i = 0; i < LIVES; i++) {
		uint32_t id = (uint32_t)feed_below(seed, IDS);
		struct world_life *l = &lives[i];

		*l = (struct world_life){ .rmid = 40 + id, .tgid = 100 + i };
		l->from = free_at[id] + 2 * MS + feed_below(seed, 5 * MS);
		l->to = l->from + MS + feed_below(seed, 10 * MS);
		l->begin = l->from - feed_below(seed, 2 * MS);
		l->end = l->to + feed_below(seed, 2 * MS);
		free_at[id] = l->to;
		recs[n++] = (struct world_record){ l->from, 0, TTMON_RMID_ALLOC, l->rmid, l->tgid };
		for (uint64_t k = feed_below(seed, 3); k; k--)
			recs[n++] = (struct world_record){ l->from + feed_below(seed, l->to - l->from), 0,
							   TTMON_RMID_EXISTING, l->rmid, l->tgid };
		recs[n++] = (struct world_record){ l->to, 0, TTMON_RMID_FREE, l->rmid, 0 };
	}
	for (size_t i = 0; i < n; i++)
		recs[i].slot = recs[i].ns / MS + (feed_below(seed, 4) ? 0 : feed_below(seed, 9));
	qsort(recs, n, sizeof(*recs), by_time);
	return n;
}

/*
 * Feeds the processes that run in a slot and the records that come in it. Returns true if a record of
 * this slot or an earlier one is still to come.
 */
static bool feed_world(struct ttmon_cpu *c, uint64_t no, const struct world_life *lives,
		       const struct world_record *recs, size_t n)
{
	struct feed_table f = cross(no * MS, (no + 1) * MS, feed_who(0, 0));
	bool missing = false;

	for (uint32_t i = 0; i < LIVES && f.t.nr_rows < TTMON_CPU_ROWS; i++) {
		if (lives[i].begin >= (no + 1) * MS || lives[i].end < no * MS)
			continue;
		f.rows[f.t.nr_rows++] = (struct ttmon_cpu_row){ .who = feed_who(lives[i].tgid, 5), .ns = 1000 };
		f.t.last_ns += 1000;
	}
	feed_slot(c, 0, &f);
	for (size_t i = 0; i < n; i++) {
		if (recs[i].slot == no)
			feed_rmid(c, recs[i].op, recs[i].ns, recs[i].tgid, recs[i].tgid ? 5 : 0, recs[i].rmid);
		missing |= recs[i].slot > no && recs[i].ns < (no + 1) * MS;
	}
	return missing;
}

/*
 * Random lives on few RMIDs, with records that are up to eight slots late and frees without a name. In
 * each slot that closes with all its records, each process has the RMID that it had then, and none if
 * it had none.
 */
static void test_rmid_late_random(void **state)
{
	static struct world_record recs[LIVES * 4];
	static struct world_life lives[LIVES];
	uint64_t seed = 7, checked = 0, skipped = 0;

	(void)state;
	for (unsigned int round = 0; round < 400; round++) {
		size_t n = make_world(&seed, lives, recs);
		struct ttmon_cpu *c = new_cpu(1, 0);

		for (uint64_t no = NO; no < NO + 200; no++) {
			bool missing = feed_world(c, no, lives, recs, n);
			struct closed r = close_no(c, no, false);

			skipped += missing;
			for (uint32_t i = 0; i < LIVES && !missing; i++) {
				const struct ttmon_slot_row *row = user(&r, lives[i].tgid);
				bool had = lives[i].from < (no + 1) * MS && lives[i].to > no * MS;

				if (!row)
					continue;
				assert_int_equal(row->rmid, had ? lives[i].rmid : 0);
				checked++;
			}
		}
		ttmon_cpu_free(c);
	}
	assert_true(checked > 20000 && skipped > 5000);
}

static void test_by_tgid(void **state)
{
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	/* It is known first by a transfer, and by its start time before the slot has closed. */
	ttmon_cpu_copy(c, 10, 4096);
	ttmon_cpu_copy(c, 10, 96);
	ttmon_cpu_pinned(c, 10, 1 << 20);
	ttmon_cpu_pinned(c, 99, 0);
	run_one(c, NO, feed_who(10, 5), &r);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.rows[0].start_ns, 5);
	assert_int_equal(r.rows[0].copies, 2);
	assert_int_equal(r.rows[0].copy_bytes, 4192);
	assert_int_equal(r.rows[0].pinned_bytes, 1 << 20);
	assert_int_equal(totals(c).procs, 1);
	/* Pinned memory alone does not make a row. */
	run_one(c, NO + 1, feed_who(0, 0), &r);
	assert_int_equal(r.n, 1);
	assert_int_equal(find(c, 10, 5).p.pinned_bytes, 1 << 20);
	assert_int_equal(find(c, 10, 5).p.copies, 2);
	/* A sum that would overflow stays at the largest value. */
	ttmon_cpu_copy(c, 10, UINT64_MAX);
	ttmon_cpu_copy(c, 10, 5);
	run_one(c, NO + 2, feed_who(0, 0), &r);
	assert_true(user(&r, 10)->copy_bytes == UINT64_MAX);
	ttmon_cpu_free(c);
}

static void test_rdt(void **state)
{
	const struct ttmon_rdt_piece mine = { .tgid = 10,
					      .rmid = 3,
					      .ns = 250 * MS,
					      .total = 1000,
					      .local = 400,
					      .occupancy = 64,
					      .has_occupancy = true };
	struct ttmon_rdt_piece nobody = { .rmid = 4, .ns = MS, .total = 5, .local = 6, .unknown = true };
	struct ttmon_cpu *c = new_cpu(1, 0);
	const struct ttmon_slot_row *row;
	struct closed r;

	(void)state;
	run_one(c, NO, feed_who(10, 5), &r);
	assert_int_equal(r.slot.flags & TTMON_SLOT_HAS_RDT, 0);
	ttmon_cpu_rdt(c, &mine);
	ttmon_cpu_rdt(c, &nobody);
	run_one(c, NO + 1, feed_who(0, 0), &r);
	assert_true(r.slot.flags & TTMON_SLOT_HAS_RDT);
	assert_int_equal(r.n, 3);
	row = user(&r, 10);
	assert_int_equal(row->start_ns, 5);
	assert_int_equal(row->cpu_ns, 0);
	assert_int_equal(row->mbm_total, 1000);
	assert_int_equal(row->mbm_local, 400);
	assert_int_equal(row->rdt_ns, 250 * MS);
	assert_int_equal(row->llc_bytes, 64);
	assert_int_equal(row->flags, TTMON_ROW_LLC_VALID);
	row = feed_row(r.rows, r.n, TTMON_ROW_UNASSIGNED, 0);
	assert_int_equal(row->mbm_total, 5);
	assert_int_equal(row->flags, TTMON_ROW_RDT_UNKNOWN);
	assert_int_equal(r.rows[2].cls, TTMON_ROW_IDLE);
	assert_int_equal(find(c, 10, 5).p.mbm_total, 1000);
	assert_int_equal(find(c, 10, 5).p.llc_bytes, 64);
	ttmon_cpu_free(c);
}

/* The order of many rows: by CPU time, then in the order in which they appeared. */
static void test_order(void **state)
{
	struct ttmon_cpu *c = new_cpu(4, 0);
	struct closed r;

	(void)state;
	for (uint32_t cpu = 0; cpu < 4; cpu++) {
		struct feed_table f = cross(B, B + MS, feed_who(0, 0));

		for (uint32_t i = 0; i < TTMON_CPU_ROWS; i++) {
			uint32_t ns = (i * 7919 + cpu * 31) % 1000;

			f.rows[f.t.nr_rows++] =
				(struct ttmon_cpu_row){ .who = feed_who(100 + cpu * 32 + i, 5), .ns = ns };
			f.t.last_ns += ns;
		}
		f.rows[0].switches = 1;
		feed_slot(c, cpu, &f);
	}
	r = close_no(c, NO, false);
	assert_in_range(r.n, 120, 129);
	for (size_t i = 1; i + 1 < r.n; i++)
		assert_true(r.rows[i].cpu_ns <= r.rows[i - 1].cpu_ns);
	assert_int_equal(r.rows[r.n - 1].cls, TTMON_ROW_IDLE);
	assert_int_equal(r.slot.user_ns + r.slot.idle_ns, 4 * MS);
	ttmon_cpu_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_reused_backwards),
		cmocka_unit_test(test_tgid_many),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_silent_leave),
		cmocka_unit_test(test_kernel_thread),
		cmocka_unit_test(test_rmid),
		cmocka_unit_test(test_rmid_late),
		cmocka_unit_test(test_rmid_late_random),
		cmocka_unit_test(test_rmid_of_late_rows),
		cmocka_unit_test(test_by_tgid),
		cmocka_unit_test(test_rdt),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests_name("cpu_procs", tests, NULL, NULL);
}
