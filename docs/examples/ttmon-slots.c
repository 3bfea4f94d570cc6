// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttmon-slots.c: shows live which processes used the CPUs, from the segment of a running ttmond: once
 * a second the processes with the most CPU time.
 *
 *	cc -I include docs/examples/ttmon-slots.c -o ttmon-slots, then as root: ./ttmon-slots [SECONDS]
 *
 * It adds up a thousand slots of a millisecond. One that is missed is said, never guessed, and so is
 * one without CPU time.
 */
#include <stdio.h>
#include <stdlib.h>

#include <ttmon/shm.h>

#define MAX_PROCS 1024
#define SHOWN	  10

static struct ttmon_slot_row procs[MAX_PROCS];
static unsigned int nr_procs;

static void add(const struct ttmon_slot_row *row)
{
	unsigned int i;

	for (i = 0; i < nr_procs; i++)
		if (procs[i].tgid == row->tgid && procs[i].start_ns == row->start_ns && procs[i].cls == row->cls)
			break;
	if (i < nr_procs) {
		procs[i].cpu_ns += row->cpu_ns;
		procs[i].switches += row->switches;
	} else if (i < MAX_PROCS) {
		procs[nr_procs++] = *row;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct ttmon_slot_row *x = a, *y = b;

	return (x->cpu_ns < y->cpu_ns) - (x->cpu_ns > y->cpu_ns);
}

static void show(const struct ttmon_slot *sum, unsigned int slots, unsigned int without, unsigned long long missed)
{
	if (without == slots) {
		printf("%u slots (%llu missed): CPU time is not measured\n", slots, missed);
		fflush(stdout);
		nr_procs = 0;
		return;
	}
	printf("%u slots (%llu missed, %u without CPU time), CPU ms: user %.1f, kernel %.1f, idle %.1f, untold %.1f\n",
	       slots, missed, without, sum->user_ns / 1e6, sum->kernel_ns / 1e6, sum->idle_ns / 1e6,
	       sum->missing_ns / 1e6);
	qsort(procs, nr_procs, sizeof(procs[0]), by_time);
	for (unsigned int i = 0; i < nr_procs && i < SHOWN; i++)
		printf("  %-6u %-16s %10.3f ms %8u switches\n", procs[i].tgid,
		       procs[i].cls == TTMON_ROW_IDLE ? "(idle)" : procs[i].comm, procs[i].cpu_ns / 1e6,
		       procs[i].switches);
	fflush(stdout);
	nr_procs = 0;
}

static int fail(const char *why)
{
	fprintf(stderr, "%s: %s\n", TTMON_SHM_PATH, why);
	return 1;
}

int main(int argc, char **argv)
{
	static struct ttmon_slot_row rows[MAX_PROCS];
	const struct timespec pause = { 0, 20000000 };
	struct ttmon_slot slot, sum = { 0 };
	unsigned long long missed = 0;
	unsigned int without = 0;
	struct ttmon_shm_reader r;
	int got = ttmon_shm_open(NULL, &r);

	if (got)
		return fail(strerror(-got));
	for (unsigned int seconds = argc > 1 ? (unsigned int)atoi(argv[1]) : 1000000, slots = 0; seconds;) {
		got = ttmon_shm_next(&r, &slot, rows, MAX_PROCS);
		if (got == -EPIPE)
			return fail("ttmond has ended");
		if (got == 0 && ttmon_shm_age_ns(&r) > 2000000000u)
			return fail("ttmond was killed: it writes no more");
		if (got == 0)
			nanosleep(&pause, NULL);
		if (got == -EOVERFLOW)
			missed += r.missed;
		if (got != 1)
			continue;
		for (unsigned int i = 0; i < slot.nr_rows && i < MAX_PROCS; i++)
			add(&rows[i]);
		sum.user_ns += slot.user_ns;
		sum.kernel_ns += slot.kernel_ns;
		sum.idle_ns += slot.idle_ns;
		sum.missing_ns += slot.missing_ns;
		without += !(slot.flags & TTMON_SLOT_HAS_CPU);
		if (++slots % 1000)
			continue;
		show(&sum, 1000, without, missed);
		without = 0;
		memset(&sum, 0, sizeof(sum));
		missed = 0;
		seconds--;
	}
	ttmon_shm_close(&r);
	return 0;
}
