// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttrun.cpp: work on simulated chips whose clocks are known. Each chip counts cycles at a frequency of its own; the program hands clock
 * pairs and records of program runs to the real-time profiler as tt-metal does, and prints when each run truly was, in CLOCK_MONOTONIC.
 *
 *	ttrun [--chips N] [--programs N] [--pairs N] [--pair-us US] [--jitter-ns NS] [--outliers PERCENT] [--ppm N] [--reset] [--batch N]
 *	      [--dispatches N] [--nonsense] [--wait] [--lib PATH]
 *
 * A pair's host time is wrong by up to --jitter-ns either way, in --outliers percent of them by up to 1 ms. --reset: half way the counters
 * begin anew and are paired again. --dispatches: every dispatch function that many times. The last line is
 *
 *	{"runs": [[chip, program, start, end, enqueued, reported], ...], "dispatches": {"mesh workload": n, ...}, "dropped": n, "gen": ...}
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <getopt.h>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "book.hpp"

static struct {
	long chips = 1, programs = 200, pairs = 100, pair_us = 5000, jitter_ns = 1000, outliers = 5, ppm = 50,
	     batch = 1, dispatches = 0;
	bool reset = false, nonsense = false, wait = false, untimed = false;
	const char *lib = nullptr;
} opt;

struct Chip {
	uint64_t host0, cycles0;
	double ghz; /* what it says */
	double true_ghz;
	uint64_t cycles(uint64_t host) const
	{
		return cycles0 + (int64_t)llroundl((long double)((int64_t)(host - host0)) * true_ghz);
	}
};

struct Run {
	uint32_t chip, id;
	uint64_t start, end, enqueued, reported;
};

static const struct standin_tt_ops *ops;
static std::vector<Chip> chips;
static uint64_t rng = 88172645463325252ull, dropped, untimed;
static std::map<std::string, long> counts; // by target and kind

static double uniform()
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (double)(rng >> 11) / (double)(1ull << 53);
}

static uint64_t now_ns()
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void until(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, nullptr))
		;
}

/* A reading of the host's clock as pairs use it, and the true time of it: the quickest of three readings. */
static int64_t host_clock(uint64_t *at)
{
	int64_t best = 0;
	uint64_t width = UINT64_MAX;

	*at = now_ns();
	if (ops->has & STANDIN_PAIRS_MONO)
		return *at;
#if defined(__x86_64__)
	for (int i = 0; i < 3; i++) {
		uint64_t before = now_ns();
		int64_t ticks = __rdtsc();
		uint64_t after = now_ns();

		if (after - before < width) {
			width = after - before;
			*at = before + width / 2;
			best = ticks;
		}
	}
	return best;
#else
	(void)width, (void)best;
	return *at;
#endif
}

static void pairs(long n)
{
	for (long i = 0; i < n; i++) {
		for (size_t c = 0; c < chips.size(); c++) {
			uint64_t at;
			int64_t host = host_clock(&at);
			double wrong = (2 * uniform() - 1) * opt.jitter_ns;

			if (uniform() * 100 < opt.outliers)
				wrong = (2 * uniform() - 1) * 1e6;
			ops->pair(c, host, chips[c].cycles(at + (int64_t)wrong), chips[c].ghz);
		}
		usleep(opt.pair_us);
	}
}

static void start_chips(size_t n)
{
	chips.clear();
	for (size_t i = 0; i < n; i++) {
		double ghz = i % 2 ? 1.35 : 1.0;

		chips.push_back({ now_ns(), 1000000000ull + (uint64_t)(uniform() * 1e12), ghz,
				  ghz * (1 + (double)opt.ppm * 1e-6) });
	}
}

static void enqueue()
{
	static const struct standin_tt_dispatch *table;
	static size_t n, which;

	if (!table) {
		n = ops->dispatches(&table);
		for (which = 0; which < n && strcmp(table[which].name, "EnqueueMeshWorkload") &&
				strcmp(table[which].name, "EnqueueProgram");
		     which++)
			;
	}
	counts[std::string(table[which].on) + " " + table[which].kind]++;
	table[which].call();
}

static const char *const *kernels_of(uint32_t id)
{
	static const char *const names[4][2] = {
		{ "ttnn/cpp/ttnn/operations/matmul/device/kernels/compute/bmm.cpp", "dataflow/reader_bmm.cpp" },
		{ "ttnn/cpp/ttnn/operations/eltwise/kernels/compute/add.cpp", "dataflow/reader_add.cpp" },
		{ "kernels/compute/softmax.cpp", "dataflow/writer.cpp" },
		{ "k.cpp", "a/rather/short/path.cpp" },
	};

	return names[id % 4];
}

static struct standin_tt_record record_of(const Run &run)
{
	const Chip &c = chips[run.chip];
	uint64_t start = c.cycles(run.start);
	int64_t offset = (int64_t)llroundl((long double)start - (long double)run.start * c.ghz);

	return { run.id, run.chip, start, c.cycles(run.end), c.ghz, offset, 200, kernels_of(run.id), 2 };
}

static void nonsense()
{
	struct standin_tt_record bad[4] = { record_of({ 0, 77, now_ns(), now_ns() + 1000, 0, 0 }),
					    record_of({ 0, 77, now_ns(), now_ns() + 1000, 0, 0 }),
					    record_of({ 0, 0, now_ns(), now_ns() + 1000, 0, 0 }),
					    record_of({ 0, 77, now_ns(), now_ns() + 1000, 0, 0 }) };

	std::swap(bad[0].start, bad[0].end);
	bad[1].ghz = 1e300;
	bad[3].ghz = NAN; /* bad[2]: id 0 is no program */
	for (auto &record : bad)
		ops->programs(&record, 1, 0);
}

/* As the device's start-up race leaves them, and a schema without an end: first, last and in the middle of their batch. */
static void add_untimed(std::vector<struct standin_tt_record> &records)
{
	struct standin_tt_record back = records[0], none = records[0];

	std::swap(back.start, back.end);
	none.end = 0;
	records.insert(records.begin(), back);
	records.insert(records.begin() + records.size() / 2, none);
	records.push_back(back);
	untimed += 3;
}

static void flush(std::vector<Run> &runs, size_t &told)
{
	std::vector<struct standin_tt_record> records;

	for (size_t i = told; i < runs.size(); i++)
		records.push_back(record_of(runs[i]));
	if (records.empty())
		return;
	if (opt.untimed)
		add_untimed(records);
	for (size_t i = told; i < runs.size(); i++)
		runs[i].reported = now_ns();
	ops->programs(records.data(), records.size(), 0);
	told = runs.size();
}

static void programs(long n, std::vector<Run> &runs, size_t &told, uint32_t &id)
{
	for (long i = 0; i < n; i++) {
		Run run = { (uint32_t)(i % chips.size()), id, 0, 0, now_ns(), 0 };

		enqueue();
		run.start = now_ns() + 5000 + (uint64_t)(uniform() * 50000);
		run.end = run.start + 10000 + (uint64_t)(uniform() * 200000);
		until(run.end + 1000);
		runs.push_back(run);
		id = (id + 1) & 0xffff ? (id + 1) & 0xffff : 1;
		if (opt.nonsense && i % 16 == 8)
			nonsense();
		if ((long)(runs.size() - told) >= opt.batch)
			flush(runs, told);
	}
	flush(runs, told);
}

static void all_dispatches()
{
	const struct standin_tt_dispatch *table;
	size_t n = ops->dispatches(&table);

	for (long k = 0; k < opt.dispatches; k++) {
		for (size_t i = 0; i < n; i++) {
			counts[std::string(table[i].on) + " " + table[i].kind]++;
			table[i].call();
		}
	}
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "chips", 1, 0, 'c' },	  { "programs", 1, 0, 'p' },  { "pairs", 1, 0, 'P' },
		{ "pair-us", 1, 0, 'u' }, { "jitter-ns", 1, 0, 'j' }, { "outliers", 1, 0, 'o' },
		{ "ppm", 1, 0, 'm' },	  { "batch", 1, 0, 'b' },     { "dispatches", 1, 0, 'd' },
		{ "lib", 1, 0, 'l' },	  { "reset", 0, 0, 'r' },     { "nonsense", 0, 0, 'n' },
		{ "wait", 0, 0, 'w' },	  { "untimed", 0, 0, 'U' },   { nullptr, 0, 0, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, nullptr)) != -1) {
		long n = optarg ? strtol(optarg, nullptr, 0) : 0;

		switch (c) {
		case 'c':
			opt.chips = n;
			break;
		case 'p':
			opt.programs = n;
			break;
		case 'P':
			opt.pairs = n;
			break;
		case 'u':
			opt.pair_us = n;
			break;
		case 'j':
			opt.jitter_ns = n;
			break;
		case 'o':
			opt.outliers = n;
			break;
		case 'm':
			opt.ppm = n;
			break;
		case 'b':
			opt.batch = n;
			break;
		case 'd':
			opt.dispatches = n;
			break;
		case 'l':
			opt.lib = optarg;
			break;
		case 'r':
			opt.reset = true;
			break;
		case 'n':
			opt.nonsense = true;
			break;
		case 'U':
			opt.untimed = true;
			break;
		case 'w':
			opt.wait = true;
			break;
		default:
			exit(2);
		}
	}
}

static void print(const std::vector<Run> &runs)
{
	const char *sep = "";

	printf("{\"runs\": [");
	for (const Run &r : runs) {
		printf("%s[%u, %u, %llu, %llu, %llu, %llu]", sep, r.chip, r.id, (unsigned long long)r.start,
		       (unsigned long long)r.end, (unsigned long long)r.enqueued, (unsigned long long)r.reported);
		sep = ", ";
	}
	printf("], \"dispatches\": {");
	sep = "";
	for (const auto &c : counts) {
		printf("%s\"%s\": %ld", sep, c.first.c_str(), c.second);
		sep = ", ";
	}
	printf("}, \"ghz\": [");
	sep = "";
	for (const Chip &c : chips) {
		printf("%s%.9f", sep, c.true_ghz);
		sep = ", ";
	}
	printf("], \"kernels\": [");
	for (uint32_t i = 0; i < 4; i++)
		printf("%s\"%s, %s\"", i ? ", " : "", kernels_of(i)[0], kernels_of(i)[1]);
	printf("], \"untimed\": %llu, \"dropped\": %llu, \"pid\": %d, \"gen\": \"%s\"}\n", (unsigned long long)untimed,
	       (unsigned long long)dropped, getpid(), ops->gen);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	std::vector<Run> runs;
	size_t told = 0;
	uint32_t id = 65400; /* wraps soon */

	parse(argc, argv);
	if (opt.wait)
		book_ready();
	ops = book_library(opt.lib);
	int n = ops->open(opt.chips, true);
	if (n < 1)
		return 2;
	start_chips(n);
	if (ops->has & STANDIN_HAS_PAIRS)
		pairs(opt.pairs);
	if (ops->has & STANDIN_HAS_PROFILE)
		programs(opt.reset ? opt.programs / 2 : opt.programs, runs, told, id);
	if (opt.reset) {
		start_chips(n);
		if (ops->has & STANDIN_HAS_PAIRS)
			pairs(opt.pairs);
		if (ops->has & STANDIN_HAS_PROFILE)
			programs(opt.programs / 2, runs, told, id);
	}
	if (opt.dispatches)
		all_dispatches();
	print(runs);
	if (opt.wait)
		book_wait();
	_exit(0);
}
