// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttflood.cpp: runs of programs at a rate, as fast as wanted: records are handed to the profiler's
 * consumer in batches, each in its time.
 *
 *	ttflood [--rate N] [--seconds S] [--batch N] [--programs N] [--chips N] [--lib PATH]
 *
 * Clock pairs first, where the library has them. It says "ready PID" and waits for a line, sends,
 * prints {"sent": n, "programs": sum of ids, "seconds": s} and waits for another.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <unistd.h>
#include <vector>

#include "book.hpp"

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

static double option(int argc, char **argv, const char *name, double def)
{
	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], name))
			return atof(argv[i + 1]);
	return def;
}

static const char *lib_of(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], "--lib"))
			return argv[i + 1];
	return nullptr;
}

int main(int argc, char **argv)
{
	const double rate = option(argc, argv, "--rate", 10000), seconds = option(argc, argv, "--seconds", 1);
	const uint64_t batch = option(argc, argv, "--batch", 100), programs = option(argc, argv, "--programs", 64);
	const uint64_t chips = option(argc, argv, "--chips", 1), count = rate * seconds;
	const struct standin_tt_ops *ops = book_library(lib_of(argc, argv));
	std::vector<std::string> names;
	std::vector<const char *> kernels;
	std::vector<struct standin_tt_record> records;
	uint64_t sent = 0, sum = 0, begin;

	for (uint64_t i = 0; i < programs; i++)
		names.push_back("kernels/compute/program_" + std::to_string(i + 1) + ".cpp");
	for (const std::string &name : names)
		kernels.push_back(name.c_str());
	if (ops->open(chips, true) < 1)
		return 2;
	/* The chips count nanoseconds of the host's clock. */
	for (int i = 0; i < 50 && (ops->has & STANDIN_HAS_PAIRS); i++) {
		for (uint64_t c = 0; c < chips; c++) {
			uint64_t at = now_ns();

			ops->pair(c, at, at, 1.0);
		}
		usleep(2000);
	}
	book_ready();
	begin = now_ns();
	while (sent < count) {
		records.clear();
		for (uint64_t now = now_ns(); records.size() < batch && sent < count; sent++) {
			uint64_t id = 1 + sent % programs, end = now - 1000 * (batch - records.size());

			sum += id;
			records.push_back({ (uint32_t)id, (uint32_t)(sent % chips), end - 5000, end, 1.0, 0, 200,
					    &kernels[id - 1], 1 });
		}
		ops->programs(records.data(), records.size(), 0);
		until(begin + (uint64_t)((double)sent / rate * 1e9));
	}
	printf("{\"sent\": %llu, \"programs\": %llu, \"seconds\": %.3f}\n", (unsigned long long)sent,
	       (unsigned long long)sum, (double)(now_ns() - begin) / 1e9);
	fflush(stdout);
	book_wait();
	_exit(0);
}
