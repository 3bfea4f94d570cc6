// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttledger.cpp: a workload on the stand-in tt-metal that keeps its own book (book.hpp). Threads mix allocations and frees of every type on
 * devices and on the mesh, hand buffers to each other, run out of memory, capture graphs, make views.
 *
 *	ttledger [--chips N] [--ops N] [--threads N] [--seed S] [--quiet N] [--mesh] [--oom PERCENT] [--sleep US] [--wait] [--keep]
 *		 [--plain] [--live N] [--lib PATH]
 *
 * The operations are cut into --quiet equal parts; after each all threads stand still and the book goes out as a line
 * {"quiet": n, "devices": [{"logical": 0, "dram": bytes, ...}, ...]}. With --wait the program prints "ready PID" first and waits for a
 * line on stdin there and after every quiet point. The last line is {"final": ...}, where everything is freed but with --keep.
 *
 * --plain: without what tt-metal's own statistics miss (bulk frees, mark_as_deallocated).
 *
 * What makes the peaks exact although threads race: at the end, alone, the program allocates more of each type on each device than can ever
 * have been held before, and frees it.
 */
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <getopt.h>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#include "book.hpp"

static struct {
	long chips = 1, ops = 10000, threads = 1, seed = 1, quiet = 1, oom = 2, sleep = 0, live = 64;
	bool mesh = false, wait = false, keep = false, plain = false;
	const char *lib = nullptr;
} opt;

static const struct standin_tt_ops *ops;
static int nr_devices;

struct Held {
	struct standin_tt_buf *buf;
	int dev, type;
	uint64_t size;
	bool counted;	/* it is in the book */
	uint64_t epoch; /* of bulk frees of its allocator */
	std::vector<struct standin_tt_buf *> views;
};

/* Most that can ever have been held at a time: raised before an allocation, lowered after a free. */
struct Bound {
	std::atomic<int64_t> now{ 0 }, max{ 0 };
	void add(int64_t n)
	{
		int64_t sum = now.fetch_add(n) + n, old = max.load();

		while (sum > old && !max.compare_exchange_weak(old, sum))
			;
	}
};
static std::vector<std::array<Bound, BOOK_TYPES>> bounds; /* [0] is the mesh's */
static std::vector<uint64_t> epochs;			  /* [0] is the mesh's; changed only where all stand still */

static std::mutex pool_lock;
static std::deque<Held> pool;

struct Thread {
	std::thread thread;
	uint64_t rng;
	Book book;
	std::vector<Held> held;
	uint64_t cbs = 0; /* first thread only */
	std::vector<int64_t> cb_bytes, cb_live;

	uint32_t rnd(uint32_t n)
	{
		rng ^= rng << 13;
		rng ^= rng >> 7;
		rng ^= rng << 17;
		return n ? (uint32_t)((rng >> 20) % n) : 0;
	}
};

static int pick_type(Thread &t)
{
	uint32_t n = t.rnd(100);

	return n < 50	? STANDIN_DRAM
	       : n < 80 ? STANDIN_L1
	       : n < 88 ? STANDIN_L1_SMALL
	       : n < 95 ? STANDIN_TRACE
			: STANDIN_SYSTEM;
}

static void allocate(Thread &t)
{
	int dev = opt.mesh && t.rnd(100) < 50 ? STANDIN_MESH : (int)t.rnd(nr_devices), type = pick_type(t),
	    slot = book_type(type);
	uint64_t size = t.rnd(100) < 2 ? 0 : 1 + t.rnd(1u << (6 + t.rnd(18)));
	bool captured = t.rnd(100) < 2, oom = !captured && (long)t.rnd(100) < opt.oom;
	Held h = { nullptr, dev, type, size, slot >= 0 && size && !captured, epochs[dev + 1], {} };

	if (oom)
		size = 1ull << 44;
	if (h.counted && !oom)
		bounds[dev + 1][slot].add(h.size);
	if (captured)
		ops->capture(true);
	try {
		h.buf = ops->alloc(dev, type, size);
	} catch (const std::exception &) {
		t.book.failed++;
	}
	if (captured)
		ops->capture(false);
	if (!h.buf != oom) {
		fprintf(stderr, "ttledger: an allocation of %llu bytes %s\n", (unsigned long long)size,
			oom ? "came through" : "failed");
		exit(2);
	}
	if (!h.buf)
		return;
	if (captured && size && slot >= 0)
		t.book.hooked++;
	t.book.made += h.counted;
	if (h.counted)
		t.book.add(dev, slot, h.size);
	while ((ops->has & STANDIN_HAS_VIEW) && t.rnd(100) < 3)
		h.views.push_back(ops->view(h.buf));
	t.held.push_back(std::move(h));
}

static void release(Thread &t, Held &h)
{
	int slot = book_type(h.type);
	bool lives = h.counted && h.epoch == epochs[h.dev + 1];

	for (auto *view : h.views)
		ops->free(view);
	if (!opt.plain && (ops->has & STANDIN_HAS_MARK) && t.rnd(100) < 2)
		ops->mark(h.buf);
	else if (t.rnd(100) < 30)
		ops->dealloc(h.buf);
	ops->free(h.buf);
	if (!lives)
		return;
	t.book.sub(h.dev, slot, h.size);
	bounds[h.dev + 1][slot].add(-(int64_t)h.size);
}

static void release_any(Thread &t)
{
	size_t i = t.rnd(t.held.size());
	Held h = std::move(t.held[i]);

	t.held[i] = std::move(t.held.back());
	t.held.pop_back();
	if (t.rnd(100) < 80) {
		release(t, h);
		return;
	}
	/* Somebody else frees it. */
	std::unique_lock<std::mutex> guard(pool_lock);
	pool.push_back(std::move(h));
	if (pool.size() < 8)
		return;
	h = std::move(pool.front());
	pool.pop_front();
	guard.unlock();
	release(t, h);
}

/* One thread alone: circular buffers of a device go all at once. */
static void circular(Thread &t)
{
	int dev = t.rnd(nr_devices);

	if (t.rnd(4)) {
		uint64_t size = 1024 * (1 + t.rnd(64));
		unsigned int w = 1 + t.rnd(8), h = 1 + t.rnd(4), ranges = 1 + t.rnd(2);
		bool global = !t.rnd(8);
		int64_t bytes = global ? 0 : (int64_t)size * w * h * ranges;

		bounds[dev + 1][BOOK_CB].add(bytes);
		ops->cb(dev, 0x10000ULL * ++t.cbs, size, w, h, ranges, global);
		t.cb_bytes[dev] += bytes;
		t.cb_live[dev] += !global;
		t.book.add(dev, BOOK_CB, bytes, !global);
		return;
	}
	ops->cb_free(dev);
	t.book.sub(dev, BOOK_CB, t.cb_bytes[dev], t.cb_live[dev]);
	bounds[dev + 1][BOOK_CB].add(-t.cb_bytes[dev]);
	t.cb_bytes[dev] = t.cb_live[dev] = 0;
}

static void work(Thread &t, long n, bool first)
{
	for (long i = 0; i < n; i++) {
		t.book.calls++;
		if (first && !t.rnd(50))
			circular(t);
		else if (t.held.empty() || (t.rnd(100) < 55 && (long)t.held.size() < opt.live))
			allocate(t);
		else
			release_any(t);
		if (opt.sleep)
			usleep(opt.sleep);
	}
}

/* Everybody's buffers of a device's allocator (or the mesh's) go at once; the objects stay. */
static void bulk(std::vector<Thread> &threads, int dev, bool clear)
{
	std::vector<Held *> all;

	ops->bulk(dev, clear);
	for (Thread &t : threads)
		for (Held &h : t.held)
			all.push_back(&h);
	for (Held &h : pool)
		all.push_back(&h);
	for (Held *h : all) {
		if (h->dev != dev || !h->counted || h->epoch != epochs[dev + 1])
			continue;
		threads[0].book.sub(dev, book_type(h->type), h->size);
		bounds[dev + 1][book_type(h->type)].add(-(int64_t)h->size);
	}
	epochs[dev + 1]++;
}

static Book sum(const std::vector<Thread> &threads)
{
	Book all(nr_devices);

	for (const Thread &t : threads)
		all += t.book;
	return all;
}

static void quiet(std::vector<Thread> &threads, const char *name, long n, const Book *book)
{
	(book ? *book : sum(threads)).print(name, n);
	if (opt.wait)
		book_wait();
}

/* Alone: more than ever of every type on every device. */
static void peaks(std::vector<Thread> &threads, Book &all)
{
	static const int types[] = { STANDIN_DRAM, STANDIN_L1, STANDIN_L1_SMALL, STANDIN_TRACE };

	for (int dev = 0; dev < nr_devices; dev++) {
		for (int type : types) {
			int slot = book_type(type);
			int64_t max = bounds[0][slot].max + bounds[dev + 1][slot].max;
			uint64_t size = max - all.devices[dev].bytes[slot] + 4096;
			struct standin_tt_buf *buf = ops->alloc(dev, type, size);

			all.add(dev, slot, size);
			all.sub(dev, slot, size);
			ops->free(buf);
		}
		uint64_t size = (bounds[dev + 1][BOOK_CB].max - all.devices[dev].bytes[BOOK_CB] + 4096) & ~7ull;

		/* Behind all others. */
		ops->cb(dev, 0xc0000000ULL, size, 1, 1, 1, false);
		all.add(dev, BOOK_CB, size);
		ops->cb_free(dev);
		all.sub(dev, BOOK_CB, all.devices[dev].bytes[BOOK_CB], threads[0].cb_live[dev] + 1);
	}
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "chips", 1, 0, 'c' }, { "ops", 1, 0, 'o' },  { "threads", 1, 0, 't' }, { "seed", 1, 0, 's' },
		{ "quiet", 1, 0, 'q' }, { "oom", 1, 0, 'O' },  { "sleep", 1, 0, 'S' },	 { "live", 1, 0, 'L' },
		{ "lib", 1, 0, 'l' },	{ "mesh", 0, 0, 'm' }, { "wait", 0, 0, 'w' },	 { "keep", 0, 0, 'k' },
		{ "plain", 0, 0, 'p' }, { nullptr, 0, 0, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, nullptr)) != -1) {
		long n = optarg ? strtol(optarg, nullptr, 0) : 0;

		switch (c) {
		case 'c':
			opt.chips = n;
			break;
		case 'o':
			opt.ops = n;
			break;
		case 't':
			opt.threads = n;
			break;
		case 's':
			opt.seed = n;
			break;
		case 'q':
			opt.quiet = n > 0 ? n : 1;
			break;
		case 'O':
			opt.oom = n;
			break;
		case 'S':
			opt.sleep = n;
			break;
		case 'L':
			opt.live = n;
			break;
		case 'l':
			opt.lib = optarg;
			break;
		case 'm':
			opt.mesh = true;
			break;
		case 'w':
			opt.wait = true;
			break;
		case 'k':
			opt.keep = true;
			break;
		case 'p':
			opt.plain = true;
			break;
		default:
			exit(2);
		}
	}
}

static void run(std::vector<Thread> &threads)
{
	for (long q = 1; q <= opt.quiet; q++) {
		long each = opt.ops / opt.quiet / opt.threads;

		/* The first is the one that opened the devices: tt-metal's own statistics see no other (graph.cpp). */
		for (size_t i = 1; i < threads.size(); i++)
			threads[i].thread = std::thread([&threads, i, each] { work(threads[i], each, false); });
		work(threads[0], each, true);
		for (size_t i = 1; i < threads.size(); i++)
			threads[i].thread.join();
		if (!opt.plain && q % 2 == 0 && (ops->has & STANDIN_HAS_BULK))
			bulk(threads, opt.mesh && q % 4 == 0 ? STANDIN_MESH : (int)(q % nr_devices), q % 8 == 0);
		quiet(threads, "quiet", q, nullptr);
	}
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	if (opt.wait)
		book_ready();
	ops = book_library(opt.lib);
	if (!(ops->has & STANDIN_HAS_MESH))
		opt.mesh = false;
	nr_devices = ops->open(opt.chips, opt.mesh);
	if (nr_devices < 1) {
		fprintf(stderr, "ttledger: no chip\n");
		return 2;
	}
	printf("{\"opened\": [");
	for (int i = 0; i < nr_devices; i++)
		printf("%s\"%s\"", i ? ", " : "", ops->bdf(i));
	printf("], \"gen\": \"%s\"}\n", ops->gen);
	bounds = std::vector<std::array<Bound, BOOK_TYPES>>(nr_devices + 1);
	epochs.resize(nr_devices + 1);
	std::vector<Thread> threads(opt.threads);
	for (long i = 0; i < opt.threads; i++) {
		threads[i].rng = 0x9e3779b97f4a7c15ull * (opt.seed * 1000 + i + 1);
		threads[i].book = Book(nr_devices);
		threads[i].cb_bytes.resize(nr_devices);
		threads[i].cb_live.resize(nr_devices);
	}
	run(threads);

	/* Where the primary is inlined, a tracer is sure of an allocation only a moment later. */
	usleep(100000);
	Book all = sum(threads);
	peaks(threads, all);
	if (!opt.keep) {
		for (Thread &t : threads) {
			t.book = Book(nr_devices);
			for (Held &h : t.held)
				release(t, h);
			all += t.book;
		}
		threads[0].book = Book(nr_devices);
		for (Held &h : pool)
			release(threads[0], h);
		all += threads[0].book;
	}
	quiet(threads, "final", 0, &all);
	if (!opt.keep)
		ops->close();
	fflush(stdout);
	_exit(0);
}
