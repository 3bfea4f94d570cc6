// SPDX-License-Identifier: GPL-2.0-only
/*
 * cpustate.c: reads the current state of CPUs. Hot thread, except ttmon_cpustate_online().
 *
 * The reader's side of a sequence count (the kernel's read_seqcount_begin() and _retry()):
 *
 *	writer   seq odd | clock, stores ......... | seq even
 *	reader        a = seq   loads   fence   b = seq		kept where a == b, even
 *
 * Most CPUs cost two loads: an idle one has not changed since its last report, a busy one is in a slot
 * that stays open.
 *
 * A CPU whose record could not be sent (drops) is no longer in the reported state, and its state is
 * unknown: it is reported as unknown from its last record on, unless it is reported again at once.
 */
#include "daemon/io/bpf/cpustate.h"

#define TRIES 200 /* a switch takes 0.2 us, one with counters 1 us: a vCPU off its core longer than all this */

struct cpu {
	uint64_t seq, drops; /* as last read */
	uint64_t told_seq;   /* seq of the reported state; 0: none */
	uint64_t told_drops;
	uint64_t offline_seq; /* seq of the state that was reported as OFFLINE */
	uint64_t asked;	      /* generation of the online bits that were handled */
	bool tell;	      /* `open` is to be reported */
	bool torn;	      /* could not be read this time */
};

/* One OPEN fact with all its rows. */
struct open_rec {
	struct ttmon_ev_cpu_open ev;
	uint8_t rows[TTMON_CPU_ROWS * TTMON_CPU_ROW_FULL];
};
_Static_assert(offsetof(struct open_rec, rows) == sizeof(struct ttmon_ev_cpu_open), "rows follow");

struct ttmon_cpustate {
	const uint8_t *states;
	size_t stride;
	uint32_t nr_cpus;
	struct cpu *cpus;
	struct open_rec *open; /* by CPU */
	uint64_t *online;      /* bits; written by the cold thread, */
	uint64_t generation;   /* which counts its updates here */
	uint64_t retries, told;
};

int ttmon_cpustate_new(const void *states, size_t stride, uint32_t nr_cpus, struct ttmon_cpustate **ret)
{
	struct ttmon_cpustate *s;

	if (stride < sizeof(struct ttmon_cpu_state) || stride % sizeof(uint64_t))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->states = states;
	s->stride = stride;
	s->nr_cpus = nr_cpus;
	s->cpus = calloc(nr_cpus, sizeof(*s->cpus));
	s->open = calloc(nr_cpus, sizeof(*s->open));
	s->online = malloc((nr_cpus + 63) / 64 * sizeof(*s->online));
	if (!s->cpus || !s->open || !s->online) {
		ttmon_cpustate_free(s);
		return -ENOMEM;
	}
	memset(s->online, 0xff, (nr_cpus + 63) / 64 * sizeof(*s->online));
	*ret = s;
	return 0;
}

void ttmon_cpustate_free(struct ttmon_cpustate *s)
{
	if (!s)
		return;
	free(s->cpus);
	free(s->open);
	free(s->online);
	free(s);
}

static const struct ttmon_cpu_state *state_of(const struct ttmon_cpustate *s, uint32_t cpu)
{
	return (const void *)(s->states + cpu * s->stride);
}

static uint64_t load(const void *p)
{
	return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
}

/* Word by word, since the other side may be writing. */
static void copy(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		uint64_t w = load((const uint8_t *)from + i);

		memcpy((uint8_t *)to + i, &w, sizeof(w));
	}
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* Copies the table and rows; invalid counts come from a torn reading, which the caller detects. */
static void copy_table(const struct ttmon_cpu_state *st, struct open_rec *to)
{
	struct ttmon_cpu_table *t = &to->ev.t;
	size_t bytes;

	copy(t, &st->rec.t, sizeof(*t));
	t->nr_rows = MIN(t->nr_rows, TTMON_CPU_ROWS);
	bytes = (size_t)t->nr_rows * t->row_size;
	copy(to->rows, st->rows, MIN(bytes, sizeof(to->rows)));
}

/* One try. False: it was being written. */
static bool try_read(struct ttmon_cpustate *s, uint32_t cpu, uint64_t upto_ns)
{
	const struct ttmon_cpu_state *st = state_of(s, cpu);
	struct cpu *c = &s->cpus[cpu];
	struct open_rec *to = &s->open[cpu];
	uint64_t seq = __atomic_load_n(&st->seq, __ATOMIC_ACQUIRE), end, begin, drops;
	bool wanted;

	if (seq & 1)
		return false;
	if (seq == c->told_seq)
		return true;
	end = load(&st->slot_end_ns);
	begin = load(&st->rec.t.begin_ns);
	drops = load(&st->drops);
	wanted = begin && !ttmon_before(upto_ns, end);
	if (wanted)
		copy_table(st, to);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (load(&st->seq) != seq)
		return false;
	c->tell = wanted;
	c->seq = seq;
	c->drops = drops;
	return true;
}

bool ttmon_cpustate_read(struct ttmon_cpustate *s, uint64_t upto_ns)
{
	bool all = true;

	for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++) {
		struct cpu *c = &s->cpus[cpu];
		unsigned int tries = 0;

		c->tell = false;
		while (!try_read(s, cpu, upto_ns) && ++tries < TRIES)
			relax();
		s->retries += tries;
		c->torn = tries == TRIES;
		all &= !c->torn;
	}
	return all;
}

struct out {
	void (*fn)(void *ctx, const void *rec, size_t size);
	void *ctx;
	uint64_t now_ns;
};

static void tell(struct ttmon_cpustate *s, uint32_t cpu, enum ttmon_cpu_open_state state, const struct out *out)
{
	struct open_rec *r = &s->open[cpu];
	struct ttmon_cpu_table *t = &r->ev.t;
	size_t size = sizeof(r->ev);

	if (state == TTMON_CPU_OPEN_KNOWN) {
		t->to_ns = 0;
		t->who.flags = 0;
		t->switched = 0;
		t->pad = 0;
		memset(t->ctr, 0, sizeof(t->ctr));
		size += MIN((size_t)t->nr_rows * t->row_size, sizeof(r->rows));
	} else {
		memset(t, 0, sizeof(*t));
	}
	r->ev.h = (struct ttmon_event){
		.ts_ns = out->now_ns,
		.kind = TTMON_EV_CPU_OPEN,
		.cpu = TTMON_CPU_DAEMON,
		.tgid = t->who.tgid,
	};
	r->ev.of_cpu = cpu;
	r->ev.state = state;
	s->told++;
	out->fn(out->ctx, r, size);
}

static void tell_cpu(struct ttmon_cpustate *s, uint32_t cpu, uint64_t generation, bool gave_up, const struct out *out)
{
	struct cpu *c = &s->cpus[cpu];
	bool dropped = c->drops != c->told_drops;

	if (c->torn) {
		if (gave_up)
			tell(s, cpu, TTMON_CPU_OPEN_UNKNOWN, out);
		c->told_seq = 0;
		return;
	}
	c->told_drops = c->drops;
	/* Once for each update by the cold thread: a CPU that is back online moves before the bits show it. */
	if (c->asked != generation) {
		c->asked = generation;
		if (c->seq != c->offline_seq && !(load(&s->online[cpu / 64]) >> cpu % 64 & 1)) {
			tell(s, cpu, TTMON_CPU_OPEN_OFFLINE, out);
			c->offline_seq = c->told_seq = c->seq;
			return;
		}
	}
	if (c->tell) {
		tell(s, cpu, TTMON_CPU_OPEN_KNOWN, out);
		c->told_seq = c->seq;
	} else if (dropped || (gave_up && c->seq != c->told_seq)) {
		/*
		 * Its records are lost, or lie behind one that is no longer waited for: the last report is not true
		 * now.
		 */
		tell(s, cpu, TTMON_CPU_OPEN_UNKNOWN, out);
	}
}

void ttmon_cpustate_tell(struct ttmon_cpustate *s, uint64_t now_ns, bool gave_up,
			 void (*fn)(void *ctx, const void *rec, size_t size), void *ctx)
{
	uint64_t generation = __atomic_load_n(&s->generation, __ATOMIC_ACQUIRE);
	const struct out out = { fn, ctx, now_ns };

	for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++)
		tell_cpu(s, cpu, generation, gave_up, &out);
}

void ttmon_cpustate_online(struct ttmon_cpustate *s, const uint64_t *bits)
{
	for (uint32_t i = 0; i < (s->nr_cpus + 63) / 64; i++)
		__atomic_store_n(&s->online[i], bits[i], __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->generation, 1, __ATOMIC_RELEASE);
}

void ttmon_cpustate_get_sums(const struct ttmon_cpustate *s, struct ttmon_cpustate_sums *ret)
{
	struct ttmon_cpustate_sums sums = { .retries = s->retries, .told = s->told };

	for (uint32_t cpu = 0; cpu < s->nr_cpus; cpu++) {
		const struct ttmon_cpu_state *st = state_of(s, cpu);

		sums.switches += load(&st->switches);
		sums.ticks += load(&st->ticks);
		sums.backwards += load(&st->backwards);
		sums.read_fails += load(&st->read_fails);
		sums.unseen += load(&st->unseen);
		sums.seen += !!load(&st->switches);
	}
	*ret = sums;
}
