// SPDX-License-Identifier: GPL-2.0-only
/*
 * sched.bpf.c: who used each CPU, in slots of 1 ms (include/ttmon/ev_cpu.h is the specification).
 *
 * A switch reads the clock once (and the counters, where there are some) and adds the time since the
 * last measurement to the row of who leaves. Nothing is sent but the table, by the first switch in a
 * later slot. Without counters nothing else runs: what a CPU is in the middle of is read by the daemon
 * from cpu_states. With counters a timer measures once a slot while a CPU is busy, so that the counts
 * of a long run come in the slots they are of; it is armed when a task comes in and dies when the CPU
 * is idle, which it never wakes twice.
 *
 * Who writes cpu_states: the switch, with interrupts off; the timer, in a softirq, in the middle of
 * which no switch is (not so with
 * PREEMPT_RT: no timer there); the RMID module's tick, in a hard interrupt, then there is no timer.
 * They never nest.
 */
#include "ledger.bpf.h"
#include "rmid.bpf.h"

#define SLOT_NS	    1000000ULL
#define UNKNOWN	    TTMON_WHO_CTR_UNKNOWN
#define TABLE_BYTES (sizeof(struct ttmon_ev_cpu_slot) + TTMON_CPU_ROWS * TTMON_CPU_ROW_FULL)

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1); /* set before load: TTMON_CTR_MAX for each CPU */
	__type(key, u32);
	__type(value, u32);
} cpu_counters SEC(".maps");

struct cpu_timer {
	struct bpf_timer timer;
	u64 flags;    /* of bpf_timer_start() */
	u32 ready;    /* the timer is made */
	u32 callback; /* its callback is set */
	u32 armed;    /* it will fire */
	u32 pad;
};

/* Not in cpu_states: a map with timers cannot be mapped. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set to the number of CPUs before load */
	__type(key, u32);
	__type(value, struct cpu_timer);
} cpu_timers SEC(".maps");

/* ---- counters ---- */

/*
 * n * enabled / running in 64 bits. Below 2^32 the times leave room for the remainder's product (<
 * running * enabled); longer intervals lose the low bits of both, less than 2^-16 of a time that is as
 * long as that.
 */
static __always_inline u64 scale(u64 n, u64 enabled, u64 running)
{
	if (enabled >> 48) {
		enabled >>= 32;
		running >>= 32;
	} else if (enabled >> 32) {
		enabled >>= 16;
		running >>= 16;
	}
	if (!running)
		return 0;
	return n / running * enabled + n % running * enabled / running;
}

/*
 * What was counted since the last time; its TTMON_WHO_* flags. Unknown where this reading or the last
 * one is not there. All are enabled for the same time, which of it each has run is looked at one by
 * one: a group that the kernel cannot place runs in parts.
 */
static __always_inline u32 count(struct ttmon_cpu_state *s, u32 cpu, u64 *delta)
{
	u64 known = s->ctr_known, enabled = 0;
	u32 flags = 0;

	s->ctr_known = 0;
#pragma unroll
	for (u32 i = 0; i < TTMON_CTR_MAX; i++) {
		struct bpf_perf_event_value v;
		u64 waited, n;

		if (bpf_perf_event_read_value(&cpu_counters, cpu * TTMON_CTR_MAX + i, &v, sizeof(v))) {
			s->read_fails++;
			return UNKNOWN;
		}
		n = v.counter - s->ctr[i];
		waited = v.enabled - v.running - s->waited_ns[i];
		s->ctr[i] = v.counter;
		s->waited_ns[i] = v.enabled - v.running;
		if (!i) {
			enabled = v.enabled - s->enabled_ns;
			s->enabled_ns = v.enabled;
		}
		if (waited) {
			flags |= TTMON_WHO_SCALED;
			if (waited >= enabled)
				flags |= UNKNOWN;
			else
				n = scale(n, enabled, enabled - waited);
		}
		if ((s64)n < 0)
			flags |= UNKNOWN;
		delta[i] = n;
	}
	s->ctr_known = 1;
	return known && !(flags & UNKNOWN) ? flags : UNKNOWN;
}

/* ---- the table ---- */

static __always_inline u32 row_size(void)
{
	return cfg_counters ? TTMON_CPU_ROW_FULL : TTMON_CPU_ROW_SHORT;
}

static __always_inline struct ttmon_cpu_row *find_row(struct ttmon_cpu_state *s)
{
	const struct ttmon_cpu_who *who = &s->rec.t.who;
	u64 start_ns = who->start_ns;
	u32 tgid = who->tgid, n = s->rec.t.nr_rows, size = row_size();
	void *p = s->rows;

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < TTMON_CPU_ROWS && i < n; i++, p += size) {
		struct ttmon_cpu_row *r = p;

		if (r->who.tgid == tgid && r->who.start_ns == start_ns)
			return r;
	}
	return NULL;
}

/* The verifier of 6.1 loses the bounds of a product; hence the check of what comes out of it. */
static __always_inline struct ttmon_cpu_row *new_row(struct ttmon_cpu_state *s, u32 rmid)
{
	u32 n = s->rec.t.nr_rows, at = n * row_size();
	struct ttmon_cpu_row *r;

	barrier_var(at);
	if (at > (TTMON_CPU_ROWS - 1) * TTMON_CPU_ROW_FULL)
		return NULL;
	r = (void *)s->rows + at;
	r->who = s->rec.t.who;
	r->who.rmid = rmid;
	r->who.flags = 0;
	r->ns = 0;
	r->switches = 0;
	if (cfg_counters)
		__builtin_memset(r->ctr, 0, sizeof(r->ctr));
	s->rec.t.nr_rows = n + 1;
	return r;
}

/* The table is complete; the next one is empty and begins at its `to`. */
static __always_inline void send(struct ttmon_cpu_state *s)
{
	struct ttmon_cpu_table *t = &s->rec.t;
	u64 size = sizeof(s->rec) + t->nr_rows * row_size();

	s->rec.h.ts_ns = t->to_ns;
	s->rec.h.tgid = t->who.tgid;
	s->rec.h.tid = bpf_get_current_pid_tgid();
	barrier_var(size);
	if (size > TABLE_BYTES || !emit_output(TTMON_EV_CPU_SLOT, &s->rec.h, size))
		s->drops++;
	t->nr_rows = 0;
	t->begin_ns = t->last_ns = t->to_ns;
}

/* A CPU with a full table goes on with an empty one: who runs has run for no time since `last`. */
static __always_inline void send_full(struct ttmon_cpu_state *s)
{
	struct ttmon_cpu_table *t = &s->rec.t;

	t->to_ns = t->last_ns;
	t->who.flags = 0;
	t->switched = 0;
	__builtin_memset(t->ctr, 0, sizeof(t->ctr));
	send(s);
}

/* `task`, which is s's who, ran up to now. */
static __always_inline void measure(struct ttmon_cpu_state *s, u32 cpu, struct task_struct *task, u64 now,
				    bool switched, bool raw)
{
	struct ttmon_cpu_table *t = &s->rec.t;
	struct ttmon_cpu_row *r;
	u64 delta[TTMON_CTR_MAX];
	u32 flags = 0, rmid = 0;

	if ((s64)(now - t->last_ns) < 0) {
		s->backwards++;
		now = t->last_ns;
	}
	if (cfg_counters) {
		flags = count(s, cpu, delta);
		if (flags & UNKNOWN)
			__builtin_memset(delta, 0, sizeof(delta));
	}
	r = find_row(s);
	if (r)
		rmid = r->who.rmid;
	else if (t->who.cls == TTMON_CPU_USER)
		rmid = raw || !task ? rmid_of(task, t->who.tgid) : rmid_of_or_give(task, t->who.tgid);
	if (now < s->slot_end_ns) {
		if (!r) {
			if (t->nr_rows >= TTMON_CPU_ROWS)
				send_full(s);
			r = new_row(s, rmid);
			if (!r)
				return;
		}
		r->ns += now - t->last_ns;
		r->switches += switched;
		r->who.flags |= flags;
		if (cfg_counters)
#pragma unroll
			for (u32 i = 0; i < TTMON_CTR_MAX; i++)
				r->ctr[i] += delta[i];
		t->last_ns = now;
		return;
	}
	t->to_ns = now;
	t->who.rmid = rmid;
	t->who.flags = flags;
	t->switched = switched;
	if (cfg_counters)
		__builtin_memcpy(t->ctr, delta, sizeof(delta));
	send(s);
	s->slot_end_ns = (now / SLOT_NS + 1) * SLOT_NS;
}

/* The first switch of a CPU: nothing is known of what was before. */
static __always_inline void begin(struct ttmon_cpu_state *s, u32 cpu, u64 now)
{
	u64 delta[TTMON_CTR_MAX];

	if (cfg_counters)
		count(s, cpu, delta);
	s->rec.h.kind = TTMON_EV_CPU_SLOT;
	s->rec.h.cpu = cpu;
	s->rec.t.begin_ns = s->rec.t.last_ns = now;
	s->rec.t.nr_rows = 0;
	s->rec.t.row_size = row_size();
	s->slot_end_ns = (now / SLOT_NS + 1) * SLOT_NS;
}

/*
 * Who comes in. The leader of a thread that was reaped while it still ran may be gone: its memory is
 * readable, its identity a phantom's.
 */
static __always_inline void come_in(struct ttmon_cpu_who *who, struct task_struct *t, bool raw)
{
	u32 pid = raw ? BPF_CORE_READ(t, pid) : t->pid;
	u32 flags;

	who->rmid = 0;
	who->flags = 0;
	if (!pid) {
		who->cls = TTMON_CPU_IDLE;
		who->tgid = 0;
		who->start_ns = 0;
		return;
	}
	flags = raw ? BPF_CORE_READ(t, flags) : t->flags;
	who->cls = flags & PF_KTHREAD ? TTMON_CPU_KERNEL : TTMON_CPU_USER;
	who->tgid = raw ? BPF_CORE_READ(t, tgid) : t->tgid;
	who->start_ns = raw ? BPF_CORE_READ(t, group_leader, start_time) : t->group_leader->start_time;
}

/*
 * Some kernels keep switches from tracers (that of a hosted sandbox does, for the threads of its
 * agent): who leaves is not who came in. The kernel's own books say since when it has run; up to then
 * it was the other one.
 */
static __always_inline bool is_who(const struct ttmon_cpu_who *who, struct task_struct *t, bool raw)
{
	u32 pid = raw ? BPF_CORE_READ(t, pid) : (u32)t->pid;

	return pid ? who->tgid == (raw ? BPF_CORE_READ(t, tgid) : (u32)t->tgid) : who->cls == TTMON_CPU_IDLE;
}

static __always_inline void unseen_switch(struct ttmon_cpu_state *s, u32 cpu, struct task_struct *prev, u64 now,
					  bool raw)
{
	u64 ran = BPF_CORE_READ(prev, se.sum_exec_runtime) - BPF_CORE_READ(prev, se.prev_sum_exec_runtime);
	u64 since = now - ran;

	/* The idle task has no such books. */
	if ((s64)ran < 0 || (s64)(since - s->rec.t.last_ns) < 0)
		since = s->rec.t.last_ns;
	s->unseen++;
	/* What each of the two has counted nobody knows. */
	s->ctr_known = 0;
	measure(s, cpu, NULL, since, true, raw);
	s->ctr_known = 0;
	come_in(&s->rec.t.who, prev, raw);
}

/* The sequence count: odd before the clock is read, even after the last store. */
static __always_inline void write_begin(struct ttmon_cpu_state *s)
{
	*(volatile u64 *)&s->seq = s->seq + 1;
	order_stores(&s->pad[0]);
}

static __always_inline void write_end(struct ttmon_cpu_state *s)
{
	order_stores(&s->pad[0]);
	*(volatile u64 *)&s->seq = s->seq + 1;
}

/* ---- ticks: only with counters ---- */

/* Who is on the CPU goes on. */
static __always_inline void tick(struct ttmon_cpu_state *s, u32 cpu, bool raw)
{
	struct task_struct *t = bpf_get_current_task_btf();
	u64 now;

	write_begin(s);
	now = bpf_ktime_get_ns();
	s->ticks++;
	if (!is_who(&s->rec.t.who, t, raw))
		unseen_switch(s, cpu, t, now, raw);
	measure(s, cpu, t, now, false, raw);
	write_end(s);
}

static __always_inline bool wants_tick(const struct ttmon_cpu_state *s)
{
	return active && family_state[TTMON_FAMILY_CPU] == TTMON_FAMILY_ON && s->rec.t.begin_ns &&
	       s->rec.t.who.cls != TTMON_CPU_IDLE;
}

/* At the end of the slot; kernels before 6.7 have no BPF_F_TIMER_CPU_PIN and say EINVAL. */
static __always_inline void start_timer(struct cpu_timer *ct, const struct ttmon_cpu_state *s)
{
	u64 now = bpf_ktime_get_ns(), end = s->slot_end_ns, wait = now < end ? end - now : 0;
	long err = bpf_timer_start(&ct->timer, wait, ct->flags);

	if (err && ct->flags) {
		ct->flags = 0;
		err = bpf_timer_start(&ct->timer, wait, 0);
	}
	ct->armed = !err;
}

/*
 * On another CPU (before 6.7, or the CPU went offline) it dies, and is armed again at the next switch
 * of its own.
 */
static int on_timer(void *map, u32 *key, struct cpu_timer *ct)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct ttmon_cpu_state *s = bpf_map_lookup_elem(&cpu_states, &cpu);

	if (cpu != *key || !s || !wants_tick(s)) {
		ct->armed = 0;
		return 0;
	}
	tick(s, cpu, false);
	start_timer(ct, s);
	return 0;
}

/*
 * The callback is set here, not by cpu_timer_init: it reads counters, which a program of type syscall
 * may not.
 */
static __always_inline void arm(u32 cpu, const struct ttmon_cpu_state *s)
{
	struct cpu_timer *ct = bpf_map_lookup_elem(&cpu_timers, &cpu);

	if (!ct || ct->armed || !ct->ready)
		return;
	if (!ct->callback) {
		if (bpf_timer_set_callback(&ct->timer, on_timer))
			return;
		ct->callback = 1;
	}
	start_timer(ct, s);
}

/*
 * Run once for each CPU: making a timer allocates memory, which must not be done under the run queue's
 * lock.
 */
SEC("?syscall")
int cpu_timer_init(u32 *cpu)
{
	u32 key = *cpu;
	struct cpu_timer *ct = bpf_map_lookup_elem(&cpu_timers, &key);

	if (!ct)
		return 1;
	if (bpf_timer_init(&ct->timer, &cpu_timers, 1 /* CLOCK_MONOTONIC */))
		return 2;
	ct->flags = 2; /* BPF_F_TIMER_CPU_PIN */
	ct->ready = 1;
	return 0;
}

/* ---- programs ---- */

static __always_inline void on_switch(struct task_struct *prev, struct task_struct *next, bool raw)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct ttmon_cpu_state *s;
	u64 now;

	/*
	 * What the CPU is in the middle of is left as it is: the daemon makes it unseen before the family is
	 * on again.
	 */
	if (!active || family_gate(TTMON_FAMILY_CPU, TTMON_EV_CPU_SLOT))
		return;
	s = bpf_map_lookup_elem(&cpu_states, &cpu);
	if (!s)
		return;
	write_begin(s);
	now = bpf_ktime_get_ns();
	if (!s->rec.t.begin_ns) {
		begin(s, cpu, now);
	} else {
		if (!is_who(&s->rec.t.who, prev, raw))
			unseen_switch(s, cpu, prev, now, raw);
		measure(s, cpu, prev, now, true, raw);
	}
	s->switches++;
	come_in(&s->rec.t.who, next, raw);
	write_end(s);
	if (!raw && cfg_cpu_timer && s->rec.t.who.cls != TTMON_CPU_IDLE)
		arm(cpu, s);
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(cpu_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	ledger_out(prev);
	on_switch(prev, next, false);
	return 0;
}

/* Without tp_btf there are no timers either (is_tracing_prog_type() in the kernel's verifier). */
SEC("?raw_tp/sched_switch")
int BPF_PROG(cpu_switch_raw, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	on_switch(prev, next, true);
	return 0;
}

/* The RMID module's measure_perf_counters: its timer alone is of use, switches we see ourselves. */
SEC("?raw_tp")
int BPF_PROG(cpu_mod_tick, bool is_context_switch, u32 rmid)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct ttmon_cpu_state *s;

	if (is_context_switch || !cfg_counters)
		return 0;
	s = bpf_map_lookup_elem(&cpu_states, &cpu);
	if (s && wants_tick(s))
		tick(s, cpu, true);
	return 0;
}
