// SPDX-License-Identifier: GPL-2.0-only
/*
 * libttmon_programs.c: receives runs of programs (ttmon_program_subscribe()), and prints "ready PID"
 * when it has subscribed.
 *
 *	libttmon_programs [-c] [-p PID] SOCKET	-c: counts them; else each is a line of JSON.
 *						For each line read it prints its statistics; at the
 *						end of the input it unsubscribes and prints them again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ttmon/client.h>

static int counts;
static uint64_t last, out_of_order, programs;

/* Kernels are paths of the stand-ins: they need no escaping. */
static void on_run(void *ctx, const struct ttmon_program_run *r)
{
	out_of_order += ctx != &counts || r->seq <= last;
	last = r->seq;
	programs += r->program;
	if (counts)
		return;
	printf("[%" PRIu64 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
	       ", %" PRIu32 ", %" PRIu64 ", \"%s\"]\n",
	       r->seq, r->pid, r->device, r->chip, r->program, r->start_ns, r->end_ns, r->error_ns, r->clock,
	       r->seen_ns, r->kernels ? r->kernels : "");
	fflush(stdout);
}

static void print_stats(const struct ttmon_program_sub *sub)
{
	struct ttmon_program_stats s;
	struct timespec cpu;

	ttmon_program_get_stats(sub, &s);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	printf("{\"runs\": %" PRIu64 ", \"missed\": %" PRIu64 ", \"earlier\": %" PRIu64 ", \"connects\": %" PRIu64
	       ", \"disconnects\": %" PRIu64 ", \"last\": %" PRIu64 ", \"out_of_order\": %" PRIu64
	       ", \"programs\": %" PRIu64 ", \"cpu_s\": %.3f}\n",
	       s.runs, s.missed, s.earlier, s.connects, s.disconnects, last, out_of_order, programs,
	       (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct ttmon_program_opts opts = { .size = sizeof(opts) };
	struct ttmon_program_sub *sub = NULL;
	char line[64];
	int c, err;

	while ((c = getopt(argc, argv, "cp:")) != -1) {
		if (c == 'c')
			counts = 1;
		else if (c == 'p')
			opts.pid = atoi(optarg);
		else
			return 2;
	}
	opts.socket = argv[optind];
	err = ttmon_program_subscribe(&opts, on_run, &counts, &sub);
	if (err)
		return 1;
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		print_stats(sub);
	/* A child has no thread, and may end its copy of the subscription. */
	if (!fork()) {
		ttmon_program_unsubscribe(sub);
		_exit(0);
	}
	print_stats(sub);
	ttmon_program_unsubscribe(sub);
	return 0;
}
