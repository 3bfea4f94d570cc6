// SPDX-License-Identifier: GPL-2.0-only
/*
 * mtprod.c: a program that uses a GPU, as `ttmon memtrace record` sees it: it opens channels through
 * the socket in TTMON_MEMTRACE_SOCKET and writes the data that its argument selects.
 *
 *	ok N STATUS	N accesses of a kernel "copy", each unit stride and stride 64 in turn; a
 *			kernel without PTX; ends with STATUS
 *	agg N		sums for N accesses of one instruction
 *	kill N		N accesses, then SIGKILL
 *	late N		ends at once; a child of it writes N accesses 0.3 s later
 *	wait N		N accesses, "ready", and then waits for SIGINT, on which it ends with status 7
 *	drop N		N accesses without a reader, into rings of 16
 *	hostile 0	a channel that breaks the protocol
 *	env 0		prints the environment variables of the library, without a channel
 *	none STATUS	nothing at all
 */
#define _GNU_SOURCE
#include <signal.h>
#include <time.h>

#include "memtrace/model/shape.h"
#include "tests/memtrace/producer.h"

#define RINGS 4

extern char **environ;

static void on_int(int sig)
{
	(void)sig;
}

static void nap(unsigned int ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000l }, NULL);
}

static int env(void)
{
	for (char **e = environ; *e; e++)
		if (!strncmp(*e, "TTMON_MEMTRACE_", 15) || !strncmp(*e, "LD_PRELOAD=", 11))
			puts(*e);
	return 0;
}

static int begin(struct mtp *p, uint32_t units)
{
	const char *path = getenv("TTMON_MEMTRACE_SOCKET");
	int sock = -1;

	if (mtp_new(p, RINGS, units, TTMON_MTC_MIN_DICT))
		return -1;
	mtp_site(p, 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4, "copy(float const*, float*)", "ld.global.f32");
	mtp_site(p, 1, TTMON_MT_GLOBAL, TTMON_MT_STORE, 4, "copy(float const*, float*)", "st.global.f32");
	mtp_launch(p, 0, "copy(float const*, float*)");
	if (path)
		sock = mtp_hello(p, path, p->fd);
	return sock >= 0 && !mtp_answer(sock) ? 0 : -1;
}

static void accesses(struct mtp *p, unsigned long n)
{
	for (unsigned long i = 0; i < n; i++) {
		struct ttmon_mtc_rec rec = { .mask = UINT32_MAX,
					     .cta_x = (uint32_t)(i / 16),
					     .launch_warp = i / 2 % 8 };

		rec.base = 0x7f0000000000 + i / 2 * (i % 2 ? 2048 : 128) + (i % 2) * 0x10000000;
		rec.stride = i % 2 ? 64 : 4;
		mtp_put(p, (uint32_t)(i / 16 % RINGS), rec, 0, i % 2, NULL);
	}
}

static void covered(struct mtp *p)
{
	mtp_kernel(p, "copy(float const*, float*)", 1, 1, 2, "");
	mtp_kernel(p, "ampere_sgemm_128x64_nn", 12, 0, 0, "no PTX");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "none";
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	struct mtp p;

	if (!strcmp(mode, "none"))
		return (int)n;
	if (!strcmp(mode, "env"))
		return env();
	if (!strcmp(mode, "late")) {
		if (fork())
			return 0;
		nap(300);
	}
	if (begin(&p, strcmp(mode, "drop") ? 4096 : 16))
		return 99;
	p.spin = strcmp(mode, "drop") ? UINT32_MAX : 0;
	if (!strcmp(mode, "agg")) {
		struct ttmon_mtc_agg_entry e = { .e.kind = TTMON_MTC_ENTRY_AGG, .site = 1 };

		e.agg = (struct ttmon_mtc_agg){
			.strides = { 64 }, .stride_requests = { n }, .least = ~4096ull, .greatest = 8192
		};
		e.agg.classes[TTMON_MT_STRIDED] = n;
		e.agg.lanes[31] = n;
		e.agg.cost[31] = n;
		e.agg.lines[15] = n;
		mtp_entry(&p, &e, sizeof(e), NULL);
	} else if (!strcmp(mode, "hostile")) {
		memset(mtp_unit(&p, 0, 0), 0x41, 64);
		nap(200);
	} else {
		accesses(&p, n);
	}
	if (!strcmp(mode, "kill"))
		raise(SIGKILL);
	if (!strcmp(mode, "wait")) {
		signal(SIGINT, on_int);
		puts("ready");
		fflush(stdout);
		pause();
	}
	covered(&p);
	mtp_done(&p);
	if (!strcmp(mode, "wait"))
		return 7;
	return argc > 3 ? atoi(argv[3]) : 0;
}
