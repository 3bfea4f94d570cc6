// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

#include "book.hpp"

const char *const book_names[BOOK_TYPES] = { "dram", "l1", "l1_small", "trace", "cb" };

extern "C" const struct standin_tt_ops *standin_tt_ops(void) __attribute__((weak));

int book_type(int type)
{
	static const int types[STANDIN_TYPES] = { BOOK_DRAM, BOOK_L1, -1, BOOK_L1_SMALL, BOOK_TRACE };

	return types[type];
}

void Book::add(int dev, int type, uint64_t bytes, uint64_t count)
{
	for (size_t i = dev < 0 ? 0 : dev; i < (dev < 0 ? devices.size() : dev + 1u); i++) {
		Side &side = devices[i];

		side.bytes[type] += bytes;
		side.allocs += count;
		if (side.bytes[type] > side.peak[type])
			side.peak[type] = side.bytes[type];
	}
}

void Book::sub(int dev, int type, uint64_t bytes, uint64_t count)
{
	for (size_t i = dev < 0 ? 0 : dev; i < (dev < 0 ? devices.size() : dev + 1u); i++) {
		devices[i].bytes[type] -= bytes;
		devices[i].frees += count;
	}
}

void Book::drop(int dev)
{
	for (int64_t &bytes : devices[dev].bytes)
		bytes = 0;
}

void CbBook::run(const void *program, const std::vector<int> &devices, const std::vector<standin_tt_cb> &cbs)
{
	auto &[on, have] = programs[program];

	for (int dev : devices)
		if (std::find(on.begin(), on.end(), dev) == on.end())
			on.push_back(dev);
	have = cbs;
}

void CbBook::end(const void *program)
{
	programs.erase(program);
}

void CbBook::close(int dev)
{
	for (auto &[program, has] : programs)
		has.first.erase(std::remove(has.first.begin(), has.first.end(), dev), has.first.end());
}

uint64_t CbBook::bytes(int dev) const
{
	std::map<std::pair<unsigned int, unsigned int>, std::vector<bool>> cores;
	uint64_t ret = 0;

	for (const auto &[program, has] : programs) {
		if (std::find(has.first.begin(), has.first.end(), dev) == has.first.end())
			continue;
		for (const standin_tt_cb &cb : has.second)
			for (unsigned int k = 0; k < cb.nr && !cb.global; k++)
				for (unsigned int x = cb.range[k].x0; x <= cb.range[k].x1; x++)
					for (unsigned int y = cb.range[k].y0; y <= cb.range[k].y1; y++) {
						std::vector<bool> &core = cores[{ x, y }];

						core.resize(std::max<size_t>(core.size(), (cb.address + cb.size) / 32));
						for (uint64_t a = cb.address; a < cb.address + cb.size; a += 32)
							core[a / 32] = true;
					}
	}
	for (const auto &[at, core] : cores)
		ret += 32 * std::count(core.begin(), core.end(), true);
	return ret;
}

void Book::operator+=(const Book &other)
{
	for (size_t i = 0; i < devices.size(); i++) {
		for (int t = 0; t < BOOK_TYPES; t++)
			devices[i].bytes[t] += other.devices[i].bytes[t];
		devices[i].allocs += other.devices[i].allocs;
		devices[i].frees += other.devices[i].frees;
	}
	hooked += other.hooked;
	failed += other.failed;
	calls += other.calls;
	made += other.made;
}

void Book::print(const char *name, long n) const
{
	printf("{\"%s\": %ld, \"pid\": %d, \"hooked\": %llu, \"failed\": %llu, \"calls\": %llu, \"made\": %llu, \"devices\": [",
	       name, n, getpid(), (unsigned long long)hooked, (unsigned long long)failed, (unsigned long long)calls,
	       (unsigned long long)made);
	for (size_t i = 0; i < devices.size(); i++) {
		printf("%s{\"logical\": %zu", i ? ", " : "", i);
		for (int t = 0; t < BOOK_TYPES; t++)
			printf(", \"%s\": %lld", book_names[t], (long long)devices[i].bytes[t]);
		printf(", \"allocs\": %llu, \"frees\": %llu, \"peak\": {", (unsigned long long)devices[i].allocs,
		       (unsigned long long)devices[i].frees);
		for (int t = 0; t < BOOK_TYPES; t++)
			printf("%s\"%s\": %lld", t ? ", " : "", book_names[t], (long long)devices[i].peak[t]);
		printf("}}");
	}
	printf("]}\n");
	fflush(stdout);
}

const struct standin_tt_ops *book_library(const char *path)
{
	void *lib;
	const struct standin_tt_ops *(*get)(void);

	if (!path && standin_tt_ops)
		return standin_tt_ops();
	lib = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : nullptr;
	get = lib ? reinterpret_cast<const struct standin_tt_ops *(*)(void)>(dlsym(lib, "standin_tt_ops")) : nullptr;
	if (!get) {
		fprintf(stderr, "no library: %s\n", path ? dlerror() : "--lib PATH is missing");
		exit(2);
	}
	return get();
}

void book_wait()
{
	char line[16];

	/* read(2): nothing may be buffered, other programs may share the pipe. */
	do {
		if (read(0, line, 1) != 1)
			exit(3);
	} while (line[0] != '\n');
}

void book_ready()
{
	printf("ready %d\n", getpid());
	fflush(stdout);
	book_wait();
}
