// SPDX-License-Identifier: GPL-2.0-only
/*
 * sched.bpf.c: the use of each CPU by processes, in slots of 1 ms (include/ttmon/ev_cpu.h is the
 * specification).
 *
 * A context switch reads the clock once (and the counters, if there are any) and adds the time since
 * the last measurement to the row of the process that leaves. Only the finished table is sent, by the
 * first switch in a later slot. Without counters nothing else runs: the daemon reads the unfinished
 * table of a CPU from cpu_states. With counters a timer measures once in each slot while a CPU is
 * busy, so that the counts of a process that runs long are assigned to the right slots. The timer is
 * armed when a task comes in. It is not armed again when the CPU is idle, so it wakes an idle CPU at
 * most once.
 *
 * Three programs write cpu_states, and they never interrupt one another. The switch runs with
 * interrupts off. The timer runs in a softirq, during which no switch can happen (with PREEMPT_RT it
 * can, so there is no timer then). The RMID module's tick runs in a hard interrupt; where it is used
 * there is no timer.
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
	u32 ready;    /* the timer is initialised */
	u32 callback; /* its callback is set */
	u32 armed;    /* it will fire */
	u32 pad;
};

/* The timers are not in cpu_states, since a map with timers cannot be mapped into user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set to the number of CPUs before load */
	__type(key, u32);
	__type(value, struct cpu_timer);
} cpu_timers SEC(".maps");

/* ---- counters ---- */

/*
 * Returns n * enabled / running, computed in 64 bits. With times below 2^32 the product of the
 * remainder (< running * enabled) does not overflow. For longer times the low bits of both are
 * dropped, which changes such a time by less than 2^-16 of it.
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
 * Stores what the counters counted since the last reading in delta. Returns TTMON_WHO_* flags. The
 * result is UNKNOWN if this reading or the last one failed. All counters are enabled for the same
 * time, but each may have run for a different part of it, since the kernel multiplexes a group that
 * does not fit into the hardware. Therefore each counter is scaled by its own time.
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

/* The verifier of Linux 6.1 loses the bounds of a product, hence the check of the result. */
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

/* Sends the completed table. The next table is empty and begins at the end of this one (`to`). */
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

/*
 * Sends a full table before its slot ends and begins an empty one. The current process is recorded
 * with no time since `last`.
 */
static __always_inline void send_full(struct ttmon_cpu_state *s)
{
	struct ttmon_cpu_table *t = &s->rec.t;

	t->to_ns = t->last_ns;
	t->who.flags = 0;
	t->switched = 0;
	__builtin_memset(t->ctr, 0, sizeof(t->ctr));
	send(s);
}

/* Adds the time up to now to the row of the process in `s->rec.t.who`; `task` is its task. */
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

/* The first switch of a CPU. Nothing is known about the time before it. */
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
 * Stores the identity of the task that comes in. If the leader of a thread was reaped while the thread
 * still ran, the leader's task_struct may be freed: its memory can be read, but the identity in it may
 * be wrong.
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
 * Returns true if task t belongs to the recorded process. Some kernels hide switches from tracers (the
 * kernel of a hosted sandbox does it for the threads of its agent). Then the task that leaves is not
 * the one that came in. The kernel's accounting shows since when this task has run; until then the
 * recorded process ran.
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

	/* The kernel keeps no such times for the idle task. */
	if ((s64)ran < 0 || (s64)(since - s->rec.t.last_ns) < 0)
		since = s->rec.t.last_ns;
	s->unseen++;
	/* The counts cannot be divided between the two processes. */
	s->ctr_known = 0;
	measure(s, cpu, NULL, since, true, raw);
	s->ctr_known = 0;
	come_in(&s->rec.t.who, prev, raw);
}

/* The sequence count is odd from before the clock is read until after the last store. */
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

/* Measures the process that stays on the CPU. */
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

/*
 * Starts the timer for the end of the slot. Kernels before 6.7 have no BPF_F_TIMER_CPU_PIN and return
 * EINVAL.
 */
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
 * If the timer fires on another CPU (before Linux 6.7, or because its CPU went offline), it is not
 * armed again here, but at the next switch on its own CPU.
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
 * The callback is set here and not in cpu_timer_init(), since the callback reads counters, which a
 * program of type syscall must not do.
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
 * Runs once for each CPU. Initialising a timer allocates memory, which is not allowed under the run
 * queue's lock.
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
	 * The unfinished measurement of this CPU is left as it is. The daemon marks it as unseen before it
	 * switches the family on again.
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
	ledger_switch(prev, next);
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

/*
 * The RMID module's tracepoint measure_perf_counters. Only its timer ticks are used; switches are seen
 * directly.
 */
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
