// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_cpu_model.c: core/cpu against a model. Random switches on 1 to 8 CPUs are turned into records
 * as ev_cpu.h describes, and delivered in drains, with the CPUs shuffled and the watermark of
 * docs/ARCHITECTURE.md. The model computes from the switches alone which process ran when, to the
 * nanosecond. It splits nothing and uses no records.
 *
 * 	exact   nothing is lost, the state is read: every slot is exact, row by row
 * 	silent  nothing is lost, CPU_OPEN is never sent: time that is missing at the close
 * 	        is reported late, sums are exact
 * 	stuck   rings stand still while slots close, forced or on CPU_OPEN: sums are exact
 * 	lossy   records are lost: the identity of each slot holds, no process gets more than it had
 */
#include "tests/unit/feed/cpu_feed.h"

#define CPUS	 8
#define PEOPLE	 96
#define SLOTS	 512
#define QUEUE	 2048
#define GUARD_NS (100 * US)
#define BASE_NO	 5000ULL

enum mode { EXACT, SILENT, STUCK, LOSSY, MODES };

struct person { /* 0: idle */
	struct ttmon_cpu_who who;
	uint64_t ns, ctr[TTMON_CTR_MAX], switches; /* the true values */
	uint64_t slot_ns[SLOTS];
	uint64_t ends_ns;	   /* 0: alive */
	char comm[TTMON_COMM_LEN]; /* as reported so far */
	bool rmid;
};

struct cpu {
	uint64_t next_ns; /* next switch */
	uint64_t slot_end_ns, begin_ns;
	uint64_t truth_ns; /* the true values include all time before this */
	unsigned int on;   /* index of the process */
	struct feed_table table;
	unsigned int row_of[TTMON_CPU_ROWS];
	struct feed_table *queue; /* records of its CPU, in the same order in every round */
	size_t head, tail;
	uint64_t told_begin_ns;
	bool stuck, dropped; /* dropped: a record was dropped since the last drain */
};

struct task {
	uint64_t ts_ns;
	unsigned int person, reason;
	char comm[TTMON_COMM_LEN];
};

struct model {
	uint64_t rnd;
	enum mode mode;
	bool full;
	unsigned int cpus, people;
	uint64_t base_ns;
	struct cpu cpu[CPUS];
	struct person p[PEOPLE];
	struct task task[4 * PEOPLE];
	size_t tasks, applied;
	struct ttmon_cpu *c;
	uint64_t no;							   /* the next slot to be closed */
	uint64_t sum_ns, sum_ctr[TTMON_CTR_MAX], sum_switches, missing_ns; /* sums over the rows of closed slots */
	uint64_t full_slots, exact_slots;
};

static struct feed_table queues[CPUS][QUEUE];

static uint64_t below(struct model *m, uint64_t n)
{
	return feed_below(&m->rnd, n);
}

/* The process on this CPU ran until `to`. */
static void ran(struct model *m, struct cpu *cpu, uint64_t to)
{
	struct person *p = &m->p[cpu->on];

	while (cpu->truth_ns < to) {
		uint64_t no = cpu->truth_ns / MS, stop = MIN(to, (no + 1) * MS);

		assert_in_range(no - BASE_NO, 0, SLOTS - 1);
		p->slot_ns[no - BASE_NO] += stop - cpu->truth_ns;
		p->ns += stop - cpu->truth_ns;
		cpu->truth_ns = stop;
	}
}

static void add_task(struct model *m, unsigned int person, unsigned int reason, uint64_t ts_ns)
{
	struct task *t = &m->task[m->tasks++];

	assert_true(m->tasks <= ARRAY_SIZE(m->task));
	*t = (struct task){ .ts_ns = ts_ns, .person = person, .reason = reason };
	snprintf(t->comm, sizeof(t->comm), "%c%u", reason == TTMON_TASK_EXEC ? 'x' : 'f', person);
}

/* A new process, sometimes with the tgid of one that has ended. */
static unsigned int born(struct model *m, uint64_t ts_ns)
{
	unsigned int i = m->people;
	uint32_t tgid = 1000 + i;

	if (i == PEOPLE)
		return 0;
	for (unsigned int k = 1; k < i && below(m, 2); k++) {
		bool last = m->p[k].ends_ns != 0;

		for (unsigned int n = k + 1; n < i; n++)
			last &= m->p[n].who.tgid != m->p[k].who.tgid;
		if (last) {
			tgid = m->p[k].who.tgid;
			break;
		}
	}
	m->p[i].who = feed_who(tgid, ts_ns - i);
	m->p[i].who.cls = below(m, 5) == 0 ? TTMON_CPU_KERNEL : TTMON_CPU_USER;
	m->people++;
	add_task(m, i, TTMON_TASK_FORK, ts_ns);
	return i;
}

static unsigned int choose(struct model *m, uint64_t ts_ns)
{
	unsigned int i;

	if (below(m, 60) == 0) {
		i = born(m, ts_ns);
		if (i)
			return i;
	}
	if (below(m, 4) == 0)
		return 0;
	i = (unsigned int)below(m, m->people);
	if (m->p[i].ends_ns)
		return 0;
	if (i && below(m, 100) == 0)
		add_task(m, i, TTMON_TASK_EXEC, ts_ns);
	return i;
}

static uint64_t stretch(struct model *m)
{
	switch (below(m, 12)) {
	case 0:
		return below(m, 8 * MS);
	case 1:
		return MS;
	case 2:
		return 0;
	case 3:
		return below(m, 40) == 0 ? 40 * MS + below(m, 30 * MS) : below(m, MS);
	case 4:
	case 5:
		return below(m, 300 * US);
	default:
		return below(m, 8 * US);
	}
}

static void send(struct cpu *cpu)
{
	assert_true(cpu->tail < QUEUE);
	cpu->queue[cpu->tail++] = cpu->table;
	cpu->table.t.nr_rows = 0;
}

static void count(struct model *m, struct cpu *cpu, __u64 *ctr, uint64_t ns)
{
	for (unsigned int i = 0; m->full && i < TTMON_CTR_MAX; i++) {
		uint64_t n = below(m, 50) == 0 ? feed_random(&m->rnd) >> 8 : ns * (i + 1) + below(m, 100);

		ctr[i] += n;
		m->p[cpu->on].ctr[i] += n;
	}
}

static struct ttmon_cpu_row *row(struct model *m, struct cpu *cpu)
{
	struct ttmon_cpu_table *t = &cpu->table.t;

	for (unsigned int i = 0; i < t->nr_rows; i++)
		if (cpu->row_of[i] == cpu->on)
			return &cpu->table.rows[i];
	if (t->nr_rows == TTMON_CPU_ROWS) {
		t->to_ns = t->last_ns;
		t->who = m->p[cpu->on].who;
		t->switched = 0;
		memset(t->ctr, 0, sizeof(t->ctr));
		send(cpu);
		t->begin_ns = t->last_ns;
	}
	cpu->row_of[t->nr_rows] = cpu->on;
	cpu->table.rows[t->nr_rows] = (struct ttmon_cpu_row){ .who = m->p[cpu->on].who };
	return &cpu->table.rows[t->nr_rows++];
}

/* Does what the program at sched_switch does. */
static void switched(struct model *m, struct cpu *cpu, uint64_t ts_ns, unsigned int next, bool tick)
{
	struct ttmon_cpu_table *t = &cpu->table.t;

	ran(m, cpu, ts_ns);
	m->p[cpu->on].switches += !tick;
	if (ts_ns < cpu->slot_end_ns) {
		struct ttmon_cpu_row *r = row(m, cpu);

		r->ns += (uint32_t)(ts_ns - t->last_ns);
		r->switches += !tick;
		count(m, cpu, r->ctr, ts_ns - t->last_ns);
		t->last_ns = ts_ns;
	} else {
		t->to_ns = ts_ns;
		t->who = m->p[cpu->on].who;
		t->switched = !tick;
		memset(t->ctr, 0, sizeof(t->ctr));
		count(m, cpu, t->ctr, ts_ns - t->last_ns);
		send(cpu);
		t->begin_ns = t->last_ns = ts_ns;
		cpu->slot_end_ns = (ts_ns / MS + 1) * MS;
	}
	cpu->on = next;
}

static void run_until(struct model *m, struct cpu *cpu, uint64_t ts_ns)
{
	while (cpu->next_ns < ts_ns) {
		bool tick = below(m, 15) == 0;
		uint64_t at = cpu->next_ns;

		switched(m, cpu, at, tick ? cpu->on : choose(m, at), tick);
		cpu->next_ns = at + stretch(m);
	}
	ran(m, cpu, ts_ns);
}

static void init(struct model *m, uint64_t seed)
{
	struct ttmon_cpu_cfg cfg = { 0 };

	m->rnd = seed * 0x9e3779b97f4a7c15ULL + 1;
	m->mode = (enum mode)(seed % MODES);
	m->full = below(m, 2);
	m->cpus = cfg.nr_cpus = 1 + (uint32_t)below(m, CPUS);
	m->people = 1;
	m->base_ns = BASE_NO * MS;
	m->no = BASE_NO;
	m->p[0].who = feed_who(0, 0);
	assert_int_equal(ttmon_cpu_new(&cfg, &m->c), 0);
	for (unsigned int i = 0; i < 3 + below(m, 40); i++)
		born(m, m->base_ns);
	for (unsigned int i = 0; i < m->cpus; i++) {
		struct cpu *cpu = &m->cpu[i];

		cpu->begin_ns = m->base_ns + (i ? below(m, 2 * MS) : 0);
		cpu->table.t.begin_ns = cpu->table.t.last_ns = cpu->truth_ns = cpu->begin_ns;
		cpu->table.t.row_size = m->full ? TTMON_CPU_ROW_FULL : TTMON_CPU_ROW_SHORT;
		cpu->slot_end_ns = (cpu->begin_ns / MS + 1) * MS;
		cpu->next_ns = cpu->begin_ns + stretch(m);
		cpu->queue = queues[i];
	}
}

static void apply_tasks(struct model *m, uint64_t end_ns)
{
	/* In order of time, since fork and exec records come from several CPUs. */
	for (;;) {
		struct task *best = NULL;

		for (size_t i = m->applied; i < m->tasks; i++)
			if (m->task[i].ts_ns < end_ns && (!best || m->task[i].ts_ns < best->ts_ns))
				best = &m->task[i];
		if (!best)
			return;
		feed_task(m->c, best->reason, best->ts_ns, m->p[best->person].who, best->comm);
		memcpy(m->p[best->person].comm, best->comm, sizeof(best->comm));
		memmove(&m->task[m->applied + 1], &m->task[m->applied],
			(size_t)(best - &m->task[m->applied]) * sizeof(*best));
		m->applied++;
	}
}

static unsigned int person_of(const struct model *m, const struct ttmon_slot_row *r)
{
	if (r->cls == TTMON_ROW_IDLE)
		return 0;
	for (unsigned int i = 1; i < m->people; i++)
		if (m->p[i].who.tgid == r->tgid && m->p[i].who.start_ns == r->start_ns)
			return i;
	fail_msg("a row of nobody: %u %llu", r->tgid, (unsigned long long)r->start_ns);
	return 0;
}

static void check_rows(struct model *m, uint64_t no, const struct ttmon_slot_row *rows, size_t n,
		       const struct ttmon_slot *slot)
{
	uint64_t by_cls[TTMON_ROW_CLASS_MAX] = { 0 }, told = 0, in_truth = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ttmon_slot_row *r = &rows[i];
		unsigned int who = person_of(m, r);
		uint64_t truth = m->p[who].slot_ns[no - BASE_NO];

		if (m->mode == EXACT)
			assert_int_equal(r->cpu_ns, truth);
		assert_true(r->cpu_ns <= truth);
		assert_true(who == 0 ||
			    r->cls == (m->p[who].who.cls == TTMON_CPU_KERNEL ? TTMON_ROW_KERNEL : TTMON_ROW_USER));
		assert_string_equal(r->comm, m->p[who].comm);
		if (i + 1 < n && rows[i + 1].cls != TTMON_ROW_IDLE)
			assert_true(r->cls != TTMON_ROW_IDLE && rows[i + 1].cpu_ns <= r->cpu_ns);
		by_cls[r->cls] += r->cpu_ns;
		told += r->cpu_ns;
		m->sum_switches += r->switches;
		for (unsigned int k = 0; k < TTMON_CTR_MAX; k++)
			m->sum_ctr[k] += r->ctr[k];
	}
	for (unsigned int i = 0; i < m->people; i++)
		in_truth += m->p[i].slot_ns[no - BASE_NO];
	assert_int_equal(by_cls[TTMON_ROW_USER], slot->user_ns);
	assert_int_equal(by_cls[TTMON_ROW_KERNEL], slot->kernel_ns);
	assert_int_equal(by_cls[TTMON_ROW_IDLE], slot->idle_ns);
	if (m->mode == EXACT)
		assert_int_equal(told, in_truth);
	m->sum_ns += told;
}

static void close_slot(struct model *m, bool forced)
{
	struct ttmon_slot slot = { 0 };
	const struct ttmon_slot_row *rows;
	uint64_t no = m->no++, expected = 0;
	unsigned int whole = 0;
	size_t n;

	apply_tasks(m, (no + 1) * MS);
	n = ttmon_cpu_close(m->c, no, forced, &slot, &rows);
	assert_int_equal(slot.nr_rows, n);
	check_rows(m, no, rows, n, &slot);
	for (unsigned int i = 0; i < m->cpus; i++) {
		uint64_t from = MAX(m->cpu[i].begin_ns, no * MS);

		whole += from == no * MS;
		expected += from < (no + 1) * MS ? (no + 1) * MS - from : 0;
	}
	m->missing_ns += slot.missing_ns;
	assert_int_equal(!!(slot.flags & TTMON_SLOT_MISSING), slot.missing_ns != 0);
	if (m->mode == EXACT)
		assert_int_equal(slot.missing_ns, 0);
	/*
	 * A CPU without any record or state so far is not counted. That happens only if its ring may be stuck
	 * or its records lost from the beginning.
	 */
	if (m->mode == EXACT || slot.cpus == m->cpus) {
		assert_int_equal(slot.cpus, whole);
		assert_int_equal(slot.user_ns + slot.kernel_ns + slot.idle_ns + slot.missing_ns, expected);
	}
	if (slot.cpus == m->cpus) {
		m->full_slots++;
		m->exact_slots += slot.missing_ns == 0;
	}
}

static void deliver(struct model *m, struct cpu *cpu, unsigned int i)
{
	for (; cpu->head < cpu->tail; cpu->head++) {
		if (m->mode == LOSSY && below(m, 8) == 0)
			cpu->dropped = true;
		else
			feed_slot(m->c, i, &cpu->queue[cpu->head]);
	}
	cpu->head = cpu->tail = 0;
}

/*
 * Does what io/bpf/cpustate.h does. A CPU that has moved on since then, and whose record has not come,
 * is reported as unknown.
 */
static void tell_open(struct model *m, struct cpu *cpu, unsigned int i, uint64_t now_ns)
{
	struct feed_table open = cpu->table;
	bool moved = cpu->told_begin_ns != open.t.begin_ns, dropped = cpu->dropped;

	cpu->dropped = false;
	if (m->mode == SILENT)
		return;
	if (!moved || cpu->slot_end_ns > now_ns - GUARD_NS || (cpu->stuck && below(m, 3) == 0)) {
		if (dropped || (moved && cpu->stuck))
			feed_open(m->c, i, TTMON_CPU_OPEN_UNKNOWN, now_ns, NULL);
		return;
	}
	cpu->told_begin_ns = open.t.begin_ns;
	open.t.who = m->p[cpu->on].who;
	open.t.to_ns = 0;
	open.t.switched = 0;
	memset(open.t.ctr, 0, sizeof(open.t.ctr));
	feed_open(m->c, i, TTMON_CPU_OPEN_KNOWN, now_ns, &open);
}

/* One round of the hot thread. */
static void drain(struct model *m, uint64_t now_ns)
{
	unsigned int first = (unsigned int)below(m, m->cpus);
	bool any_stuck = false;

	for (unsigned int i = 0; i < m->cpus; i++)
		run_until(m, &m->cpu[i], now_ns);
	for (unsigned int k = 0; k < m->cpus; k++) {
		unsigned int i = (first + k) % m->cpus;
		struct cpu *cpu = &m->cpu[i];

		if (m->mode == STUCK && below(m, 6) == 0)
			cpu->stuck = !cpu->stuck;
		if (!cpu->stuck)
			deliver(m, cpu, i);
		any_stuck |= cpu->stuck;
	}
	for (unsigned int i = 0; i < m->cpus; i++)
		tell_open(m, &m->cpu[i], i, now_ns);
	while ((m->no + 1) * MS <= now_ns - GUARD_NS)
		close_slot(m, any_stuck && below(m, 2));
}

static void mark_ends(struct model *m, uint64_t now_ns)
{
	for (unsigned int i = 1; i < m->people; i++) {
		bool on = false;

		for (unsigned int k = 0; k < m->cpus; k++)
			on |= m->cpu[k].on == i;
		if (on || m->p[i].ends_ns || below(m, 40))
			continue;
		m->p[i].ends_ns = now_ns;
		add_task(m, i, TTMON_TASK_EXIT, now_ns);
	}
}

/* The last switch of every CPU is at the end of the last slot, so that no time is left over. */
static void finish(struct model *m, uint64_t end_ns)
{
	for (unsigned int i = 0; i < m->cpus; i++) {
		run_until(m, &m->cpu[i], end_ns);
		if (m->cpu[i].table.t.last_ns < end_ns)
			switched(m, &m->cpu[i], end_ns, 0, false);
		m->cpu[i].stuck = false;
		deliver(m, &m->cpu[i], i);
		if (m->cpu[i].dropped)
			feed_open(m->c, i, TTMON_CPU_OPEN_UNKNOWN, end_ns, NULL);
	}
	while (m->no * MS < end_ns)
		close_slot(m, false);
}

static void check_proc(void *ctx, const struct ttmon_cpu_proc *p)
{
	struct model *m = ctx;
	struct ttmon_slot_row r = { .tgid = p->tgid, .start_ns = p->start_ns, .cls = p->cls };
	const struct person *who = &m->p[person_of(m, &r)];

	assert_true(p->cpu_ns <= who->ns);
	if (m->mode != LOSSY) {
		assert_int_equal(p->cpu_ns, who->ns);
		assert_int_equal(p->switches, who->switches);
	}
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		assert_true(m->mode == LOSSY ? p->ctr[i] <= who->ctr[i] : p->ctr[i] == who->ctr[i]);
}

static void check_sums(struct model *m, uint64_t end_ns)
{
	struct feed_sums all = feed_all(m->c), truth = { 0 };
	struct ttmon_cpu_totals t;
	uint64_t time = 0;

	for (unsigned int i = 0; i < m->people; i++) {
		truth.cpu_ns += m->p[i].ns;
		truth.switches += m->p[i].switches;
		for (unsigned int k = 0; k < TTMON_CTR_MAX; k++)
			truth.ctr[k] += m->p[i].ctr[k];
	}
	for (unsigned int i = 0; i < m->cpus; i++)
		time += end_ns - m->cpu[i].begin_ns;
	assert_int_equal(truth.cpu_ns, time);

	ttmon_cpu_get_totals(m->c, &t);
	assert_int_equal(t.told_ns, t.user_ns + t.kernel_ns + t.idle_ns + t.late_ns);
	assert_int_equal(t.told_ns, m->sum_ns + t.late_ns);
	assert_int_equal(all.cpu_ns, t.told_ns);
	assert_int_equal(all.switches, m->sum_switches);
	assert_memory_equal(all.ctr, m->sum_ctr, sizeof(all.ctr));
	assert_memory_equal(all.ctr, t.ctr, sizeof(all.ctr));
	assert_int_equal(t.missing_ns, m->missing_ns);
	assert_int_equal(t.mismatch_ns, 0);
	assert_int_equal(t.overlaps, 0);
	assert_int_equal(t.records_dropped, 0);
	assert_int_equal(t.procs_dropped, 0);
	ttmon_cpu_each(m->c, check_proc, m);
	if (m->mode == LOSSY) {
		assert_true(t.told_ns <= truth.cpu_ns);
		return;
	}
	assert_int_equal(t.told_ns, truth.cpu_ns);
	assert_int_equal(all.switches, truth.switches);
	assert_memory_equal(all.ctr, truth.ctr, sizeof(all.ctr));
	if (m->mode != EXACT)
		return;
	assert_int_equal(t.late_ns, 0);
	assert_int_equal(t.gaps, 0);
	assert_int_equal(t.exact, t.slots);
	assert_int_equal(t.worst_ns, 0);
}

struct seen {
	uint64_t late_ns, missing_ns, extended, gaps, late_ctr, early, full_slots, exact_slots;
};

static void one_round(uint64_t seed, struct seen *seen)
{
	struct model *m = calloc(1, sizeof(*m));
	struct ttmon_cpu_totals t;
	uint64_t now, end;

	assert_non_null(m);
	init(m, seed);
	now = m->base_ns;
	for (unsigned int n = 5 + (unsigned int)below(m, 40); n > 0; n--) {
		now += below(m, 10) == 0 ? below(m, 20 * MS) : below(m, 3 * MS);
		drain(m, now);
		mark_ends(m, now);
	}
	end = (now / MS + 2) * MS;
	for (unsigned int i = 0; i < m->cpus; i++)
		end = MAX(end, (m->cpu[i].table.t.last_ns / MS + 1) * MS);
	finish(m, end);
	check_sums(m, end);
	ttmon_cpu_get_totals(m->c, &t);
	seen->late_ns += t.late_ns;
	seen->missing_ns += t.missing_ns;
	seen->extended += t.extended;
	seen->gaps += t.gaps;
	seen->late_ctr += t.late_ctr[0] != 0;
	seen->full_slots += m->full_slots;
	seen->exact_slots += m->exact_slots;
	ttmon_cpu_free(m->c);
	free(m);
}

static void rounds(enum mode mode, unsigned int n, struct seen *seen)
{
	for (unsigned int i = 0; i < n; i++)
		one_round((uint64_t)i * MODES + mode, seen);
}

/*
 * Counters of the cases that the rounds reached: a round in which nothing happens proves nothing.
 */
static void test_exact(void **state)
{
	struct seen s = { 0 };

	(void)state;
	rounds(EXACT, 700, &s);
	assert_true(s.extended > 1000 && s.late_ctr > 100 && s.full_slots > 5000);
	assert_int_equal(s.exact_slots, s.full_slots);
}

static void test_silent(void **state)
{
	struct seen s = { 0 };

	(void)state;
	rounds(SILENT, 500, &s);
	assert_true(s.late_ns > SEC && s.missing_ns > SEC && s.late_ctr > 100);
	assert_int_equal(s.extended, 0);
	assert_int_equal(s.gaps, 0);
}

static void test_stuck(void **state)
{
	struct seen s = { 0 };

	(void)state;
	rounds(STUCK, 700, &s);
	assert_true(s.late_ns > SEC / 10 && s.extended > 1000 && s.gaps > 200);
}

static void test_lossy(void **state)
{
	struct seen s = { 0 };

	(void)state;
	rounds(LOSSY, 700, &s);
	assert_true(s.missing_ns > SEC / 10 && s.extended > 1000 && s.gaps > 1000);
	assert_true(s.exact_slots < s.full_slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_lossy),
	};

	return cmocka_run_group_tests_name("cpu_model", tests, NULL, NULL);
}
