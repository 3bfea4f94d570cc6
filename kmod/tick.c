// SPDX-License-Identifier: GPL-2.0-only
/*
 * tick.c: what each CPU runs under, the tick, and the readings of each L3 domain.
 *
 * The tick is armed by the switch to a task on a CPU whose timer is not, and not again by a tick that
 * finds the CPU idle: no idle CPU is woken more than once (idle_tick=Y: at each). Starting a hard,
 * pinned timer under the run queue's lock is what hrtick and perf's cpu-clock events do: such a timer
 * raises no softirq and wakes no process.
 *
 * A CPU's fields are changed on that CPU with interrupts off alone. The first CPU of a domain that
 * ticks in a period reads for the domain, so there is no reader to hand over when CPUs come and go.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/cpuhotplug.h>
#include <linux/hrtimer.h>
#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>

#include "kernels.h"
#include "ttmon_rmid.h"
#include "ttmon_rmid_trace.h"

#define QM_EVTSEL  0xc8d /* low: event, high: RMID */
#define QM_CTR	   0xc8e
#define PQR_ASSOC  0xc8f /* low: RMID, high: CLOSID */
#define CTR_ERROR  BIT_ULL(63)
#define CTR_NO_VAL BIT_ULL(62)
#define DOMAINS	   64

struct domain {
	raw_spinlock_t lock; /* held while the domain is read: a CPU that does not get it goes on */
	u32 id;
	unsigned int cpus; /* online; changed by hot-plug alone, which is serialized */
	u64 period;	   /* number of the last that was read in */
	u32 last;	   /* RMID read last */
};

struct mon_cpu {
	struct hrtimer timer;
	struct domain *domain; /* NULL: there was no room for it */
	u32 rmid;	       /* it runs under */
	u32 closid;
	bool online; /* between our two callbacks */
	bool armed;
};

static struct domain domains[DOMAINS];
static unsigned int nr_domains;
static DEFINE_PER_CPU(struct mon_cpu, cpus);
static int cpuhp_state = -1;

static void run_under(struct mon_cpu *c, u32 rmid)
{
	if (rmid == c->rmid)
		return;
	trace_measure_perf_counters(true, c->rmid);
	c->rmid = rmid;
	if (ttmon_rmid_hw.hardware)
		wrmsr(PQR_ASSOC, rmid, c->closid);
}

static void arm(struct mon_cpu *c)
{
	u64 period = ttmon_rmid_hw.tick_ns;

	if (!period || c->armed)
		return;
	c->armed = true;
	hrtimer_start(&c->timer, ns_to_ktime((ktime_get_ns() / period + 1) * period), HRTIMER_MODE_ABS_PINNED_HARD);
}

void ttmon_rmid_cpu_switch(struct task_struct *next)
{
	struct mon_cpu *c = this_cpu_ptr(&cpus);
	u32 rmid = ttmon_rmid_of(next);

	if (!c->online)
		return;
	run_under(c, rmid);
	if (!is_idle_task(next))
		arm(c);
}

static int read_event(u32 rmid, u32 event, u64 *val)
{
	u64 v;

	if (!(ttmon_rmid_hw.events & BIT(event)))
		return -ENODEV;
	wrmsr(QM_EVTSEL, event + 1, rmid);
	v = ttmon_rdmsr(QM_CTR);
	if (v & CTR_ERROR)
		return -EIO;
	if (v & CTR_NO_VAL)
		return -EINVAL;
	*val = v;
	return 0;
}

/* PROTOCOL.md, fake_rdt. */
static int fake_event(u32 rmid, u32 event, u32 domain, u64 now, u64 *val)
{
	static const int errors[] = { -EINVAL, -EIO, -ENODEV };
	static const u32 bad[] = { 6, 7, 5 };
	u64 ms = now / NSEC_PER_MSEC;

	if (ttmon_rmid_hw.fake > 1 && rmid % 8 == bad[event])
		return errors[event];
	if (!event)
		*val = 1000ULL * rmid + domain;
	else
		*val = ms * (event == 1 ? rmid : rmid / 2) & GENMASK_ULL(ttmon_rmid_hw.width - 1, 0);
	return 0;
}

static void sample(const struct domain *d, u32 rmid)
{
	u64 now = ktime_get_ns(), val[3] = {};
	int err[3];
	u32 i;

	for (i = 0; i < 3; i++)
		err[i] = ttmon_rmid_hw.fake ? fake_event(rmid, i, d->id, now, &val[i]) : read_event(rmid, i, &val[i]);
	trace_rdt_sample(rmid, now, val[0], err[0], val[1], err[1], val[2], err[2], d->id);
}

static void read_domain(struct domain *d)
{
	u64 period = ktime_get_ns() / ttmon_rmid_hw.tick_ns;
	struct ttmon_rmid_round round;
	u32 i;

	if (!trace_rdt_sample_enabled() || !d || !raw_spin_trylock(&d->lock))
		return;
	/* A CPU that was late has an older number than the one that has read. */
	if ((s64)(period - d->period) > 0) {
		d->period = period;
		round = (struct ttmon_rmid_round){ .start = d->last, .at = d->last };
		for (i = 0; i < ttmon_rmid_hw.batch && ttmon_rmid_round_take(&round, ttmon_rmid_next_used(round.at));
		     i++)
			sample(d, round.at);
		d->last = round.at;
	}
	raw_spin_unlock(&d->lock);
}

static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct mon_cpu *c = container_of(timer, struct mon_cpu, timer);

	/*
	 * The process may have ended or got an RMID while it ran: no CPU stays on a freed RMID longer than a
	 * tick, and limbo is longer.
	 */
	run_under(c, ttmon_rmid_of(current));
	trace_measure_perf_counters(false, c->rmid);
	if (ttmon_rmid_hw.hardware || ttmon_rmid_hw.fake)
		read_domain(c->domain);
	if (!c->online || (is_idle_task(current) && !ttmon_rmid_hw.idle_tick)) {
		c->armed = false;
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, ns_to_ktime(ttmon_rmid_hw.tick_ns));
	return HRTIMER_RESTART;
}

static u32 apic_id(void)
{
	u32 a, b, c, d;

	if (cpuid_eax(0) >= 0xb) {
		cpuid_count(0xb, 0, &a, &b, &c, &d);
		if (b & 0xffff)
			return d;
	}
	return cpuid_ebx(1) >> 24;
}

/*
 * The id of this CPU's L3, as cacheinfo and resctrl number them; where there is none all CPUs are of
 * domain 0.
 */
static u32 l3_id(void)
{
	u32 leaf = boot_cpu_has(X86_FEATURE_TOPOEXT) ? 0x8000001d : 4;
	u32 i, a, b, c, d;

	if (leaf == 4 && cpuid_eax(0) < 4)
		return 0;
	for (i = 0; i < 16; i++) {
		cpuid_count(leaf, i, &a, &b, &c, &d);
		if (!(a & 31))
			break;
		if ((a >> 5 & 7) == 3)
			return apic_id() >> order_base_2((a >> 14 & 0xfff) + 1);
	}
	return 0;
}

static struct domain *join(u32 id)
{
	unsigned int i;

	for (i = 0; i < nr_domains; i++) {
		if (domains[i].id == id)
			break;
	}
	if (i == DOMAINS) {
		pr_warn_once("more than %u L3 domains: those above are not read\n", DOMAINS);
		return NULL;
	}
	if (i == nr_domains) {
		raw_spin_lock_init(&domains[i].lock);
		domains[i].id = id;
		nr_domains++;
	}
	domains[i].cpus++;
	return &domains[i];
}

/* On that CPU, by its hot-plug thread: a kernel thread, so RMID 0. */
static int come(unsigned int nr)
{
	struct mon_cpu *c = this_cpu_ptr(&cpus);
	u64 pqr;

	c->domain = join(l3_id());
	local_irq_disable();
	if (ttmon_rmid_hw.hardware) {
		pqr = ttmon_rdmsr(PQR_ASSOC);
		c->closid = pqr >> 32;
		wrmsr(PQR_ASSOC, 0, c->closid);
	}
	c->rmid = 0;
	c->online = true;
	arm(c);
	local_irq_enable();
	return 0;
}

static int go(unsigned int nr)
{
	struct mon_cpu *c = this_cpu_ptr(&cpus);

	local_irq_disable();
	run_under(c, 0);
	c->online = false;
	local_irq_enable();
	hrtimer_cancel(&c->timer);
	c->armed = false;
	if (c->domain)
		c->domain->cpus--;
	return 0;
}

int ttmon_rmid_cpus_start(void)
{
	unsigned int nr;
	int ret;

	for_each_possible_cpu(nr) {
		struct mon_cpu *c = per_cpu_ptr(&cpus, nr);

		ttmon_hrtimer_setup(&c->timer, tick, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	}
	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "ttmon_rmid:online", come, go);
	if (ret < 0)
		return ret;
	cpuhp_state = ret;
	return 0;
}

void ttmon_rmid_cpus_stop(void)
{
	cpuhp_remove_state(cpuhp_state);
}

unsigned int ttmon_rmid_domains(void)
{
	unsigned int i, n = 0;

	for (i = 0; i < READ_ONCE(nr_domains); i++)
		n += READ_ONCE(domains[i].cpus) > 0;
	return n;
}
