// SPDX-License-Identifier: GPL-2.0-only
/*
 * book.hpp: what the test programs share: finding the library's functions, and the book: bytes of each type on each logical device, as
 * facts/tenstorrent.md 2.2 says they are held. An owning buffer holds its size on its device, one of a mesh on every device of the mesh;
 * views, shadows, captures without dispatch, size 0 and system memory hold nothing; a circular buffer its size on each of its cores.
 *
 * The book does not ask the library: it is written by who makes the calls. Each thread has one; they are added up where all stand still.
 */
#ifndef STANDIN_TT_BOOK_HPP
#define STANDIN_TT_BOOK_HPP

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tt_ops.h"

enum { BOOK_DRAM, BOOK_L1, BOOK_L1_SMALL, BOOK_TRACE, BOOK_CB, BOOK_TYPES };
extern const char *const book_names[BOOK_TYPES];
/* Place of a buffer type in the book, -1: not counted. */
int book_type(int type);

struct Book {
	struct Side {
		int64_t bytes[BOOK_TYPES] = {}, peak[BOOK_TYPES] = {};
		uint64_t allocs = 0, frees = 0;
	};
	std::vector<Side> devices;
	uint64_t hooked = 0, failed = 0, calls = 0, made = 0; // made: buffers allocated, one of a mesh once

	explicit Book(size_t n = 0) : devices(n)
	{
	}
	/* dev: a device or STANDIN_MESH. */
	void add(int dev, int type, uint64_t bytes, uint64_t count = 1);
	void sub(int dev, int type, uint64_t bytes, uint64_t count = 1);
	void drop(int dev); /* everything of the device, buffers and circular buffers */
	void operator+=(const Book &other);
	/* {"NAME": n, "pid": .., "devices": [...], ...} as a line on stdout. */
	void print(const char *name, long n) const;
};

/*
 * Circular buffers of programs: what they cover on a device, by a mark on every 32 bytes of every core. Addresses and sizes are
 * multiples of that.
 */
struct CbBook {
	std::map<const void *, std::pair<std::vector<int>, std::vector<standin_tt_cb>>> programs; // devices, circular buffers

	void run(const void *program, const std::vector<int> &devices, const std::vector<standin_tt_cb> &cbs);
	void end(const void *program);
	void close(int dev);
	uint64_t bytes(int dev) const;
};

const struct standin_tt_ops *book_library(const char *path); /* NULL: the one linked with */
void book_ready();					     /* prints "ready PID", waits for a line */
void book_wait();					     /* waits for a line on stdin */

#endif
