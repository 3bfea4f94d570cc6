// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttrandom.cpp: random mesh programs on the stand-in tt-metal, one after the other, each with its
 * book.
 *
 *	ttrandom [--programs N] [--seed S] [--chips N] [--lib PATH] [--wait]
 *
 * A program makes a mesh and submeshes of any chips, allocates and frees on all of them, runs
 * programs with circular buffers on core ranges that overlap, replays traces, runs out of memory,
 * has an exception thrown through what it calls, closes its devices with buffers on them, opens
 * them again without a constructor and runs programs of before on them again. At each quiet point it prints its book, which is added up anew
 * from what is alive, as a line {"quiet": n, "devices": [...]}, and waits for a line. An empty
 * line: go on. "r": another tracer has come, which knows nothing of what is there: from now on the
 * book is without it. The last line is {"done": programs, ...}.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <unistd.h>

#include "book.hpp"

struct Live {
	struct standin_tt_buf *buf;
	std::vector<int> devices;
	int on, type;
	uint64_t size;
	bool counts; /* and the tracer has seen it */
};

struct Prog {
	struct standin_tt_program *program;
	std::vector<struct standin_tt_cb> cbs;
	std::vector<int> ran, known; /* devices: told so far; told to this tracer */
	std::vector<int> shut;	     /* known, and closed since */
	bool anew = true;	     /* is laid out at its next run */
};

struct Sub {
	int on;
	std::vector<int> devices;
};

static const struct standin_tt_ops *ops;
static int nr_devices;
static uint64_t rng;
static std::vector<Live> live;
static std::vector<Prog> progs;
static std::vector<Sub> subs;
static long quiets, programs_done;
static uint64_t failed, hooked;

static uint32_t rnd(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return n ? (uint32_t)((rng >> 20) % n) : 0;
}

static std::vector<int> all_devices()
{
	std::vector<int> ret;

	for (int i = 0; i < nr_devices; i++)
		ret.push_back(i);
	return ret;
}

/* A device, the mesh, or a submesh, and the devices of it. */
static Sub any_target()
{
	uint32_t n = rnd(10);

	if (n < 3 || (n < 7 && subs.empty())) {
		int dev = rnd(nr_devices);

		return { dev, { dev } };
	}
	return n < 7 ? subs[rnd(subs.size())] : Sub{ STANDIN_MESH, all_devices() };
}

/* ---- the book ---- */

static void print_book(const char *name, long n)
{
	Book book(nr_devices);
	CbBook cbs;

	for (const Live &l : live)
		for (int dev : l.devices)
			if (l.counts)
				book.devices[dev].bytes[book_type(l.type)] += l.size;
	for (const Prog &p : progs)
		cbs.run(&p, p.known, p.cbs);
	for (int dev = 0; dev < nr_devices; dev++)
		book.devices[dev].bytes[BOOK_CB] = cbs.bytes(dev);
	book.failed = failed;
	book.hooked = hooked;
	book.print(name, n);
}

static void quiet()
{
	char c, first = 0;

	print_book("quiet", ++quiets);
	do {
		if (read(0, &c, 1) != 1)
			exit(3);
		first = first ? first : c;
	} while (c != '\n');
	if (first != 'r')
		return;
	for (Live &l : live)
		l.counts = false;
	for (Prog &p : progs) {
		p.known.clear();
		p.shut.clear();
	}
}

/* ---- what a program does ---- */

/* The next call of some function that may be probed throws. */
static void arm()
{
	static struct standin_tt_site sites[256];
	size_t n = standin_tt_sites(sites, 256);

	if (rnd(20) == 0 && n) {
		const struct standin_tt_site &site = sites[rnd(n)];

		if (site.throws)
			standin_tt_arm(site.entry);
	}
}

static void allocate()
{
	Sub on = any_target();
	int type = rnd(STANDIN_TYPES);
	uint64_t size = rnd(25) ? 32 * (1 + rnd(4096)) : 0;
	bool captured = rnd(20) == 0, oom = !captured && rnd(12) == 0;
	struct standin_tt_buf *buf = nullptr;

	arm();
	if (captured)
		ops->capture(true);
	try {
		buf = ops->alloc(on.on, type, oom ? 1ull << 44 : size);
	} catch (const std::exception &) {
		failed++;
	}
	if (captured)
		ops->capture(false);
	standin_tt_arm(nullptr);
	if (!buf)
		return;
	hooked += captured;
	live.push_back({ buf, on.devices, on.on, type, size, book_type(type) >= 0 && size && !captured });
}

static void release(size_t i, bool device_gone)
{
	Live l = live[i];

	live.erase(live.begin() + i);
	if (device_gone || rnd(12) == 0)
		ops->mark(l.buf);
	else if (rnd(6) == 0)
		ops->dealloc(l.buf);
	ops->free(l.buf);
}

static void make_view()
{
	if (live.empty() || !(ops->has & STANDIN_HAS_VIEW))
		return;
	ops->free(ops->view(live[rnd(live.size())].buf));
}

static void make_submesh()
{
	std::vector<int> devices = all_devices(), some;

	if (subs.size() > 6)
		return;
	for (size_t n = 1 + rnd(nr_devices); n > 0; n--) {
		size_t i = rnd(devices.size());

		some.push_back(devices[i]);
		devices.erase(devices.begin() + i);
	}
	subs.push_back({ ops->submesh(some.data(), (int)some.size()), some });
}

static void drop_submesh(size_t i)
{
	for (size_t k = live.size(); k-- > 0;)
		if (live[k].on == subs[i].on)
			release(k, false);
	ops->submesh_free(subs[i].on);
	subs.erase(subs.begin() + i);
}

/* ---- programs with circular buffers ---- */

static void make_program()
{
	std::vector<struct standin_tt_cb> cbs(1 + rnd(3));

	if (progs.size() > 8)
		return;
	for (auto &cb : cbs) {
		cb = {};
		cb.size = 32 * (1 + rnd(200));
		cb.global = rnd(8) == 0;
		/* The ranges of one set do not overlap: each has rows of its own. */
		cb.nr = 1 + rnd(3);
		for (unsigned int k = 0; k < cb.nr; k++) {
			unsigned int x = rnd(8), y = 3 * k + rnd(2);

			cb.range[k] = { x, y, x + rnd(8 - x), y + rnd(2) };
		}
	}
	progs.push_back({ ops->program(cbs.data(), cbs.size()), cbs, {}, {}, {}, true });
}

static bool has(const std::vector<int> &set, int dev)
{
	return std::find(set.begin(), set.end(), dev) != set.end();
}

static void add_to(std::vector<int> &set, int dev)
{
	if (!has(set, dev))
		set.push_back(dev);
}

static void run_program()
{
	if (progs.empty())
		return;
	Prog &p = progs[rnd(progs.size())];
	Sub on = any_target();

	if (!p.ran.empty() && rnd(5) == 0) {
		size_t cb = rnd(p.cbs.size());

		p.cbs[cb].size = 32 * (1 + rnd(200));
		ops->resize(p.program, cb, p.cbs[cb].size);
		p.anew = true;
	}
	ops->run(p.program, on.on, p.cbs.data());
	for (int dev : on.devices) {
		/*
		 * A layout is told for the devices that it is made on, an old one for the devices that are new to it. On one that
		 * was closed it is there again.
		 */
		if (p.anew || !has(p.ran, dev) || has(p.shut, dev))
			add_to(p.known, dev);
		p.shut.erase(std::remove(p.shut.begin(), p.shut.end(), dev), p.shut.end());
		add_to(p.ran, dev);
	}
	p.anew = false;
}

static void drop_program(size_t i)
{
	ops->program_free(progs[i].program);
	progs.erase(progs.begin() + i);
}

static void dispatch()
{
	const struct standin_tt_dispatch *table;
	size_t n = ops->dispatches(&table);

	table[rnd(n)].call();
}

/* ---- devices ---- */

static void close_and_reopen()
{
	/* Programs end before their devices, as with tt-metal's program cache, or after, or run on them again. */
	uint32_t end = rnd(3);

	while (end == 0 && !progs.empty())
		drop_program(0);
	for (int dev = 0; dev < nr_devices; dev++)
		ops->close_one(dev);
	for (Prog &p : progs) {
		for (int dev : p.known)
			add_to(p.shut, dev);
		p.known.clear();
	}
	while (!live.empty())
		release(live.size() - 1, true);
	for (size_t i = progs.size(); i-- > 0;)
		if (end == 1 || rnd(3) == 0)
			drop_program(i);
	for (const Sub &s : subs)
		ops->submesh_free(s.on);
	subs.clear();
	ops->mesh(false);
	if (rnd(2))
		quiet();
	for (int dev = 0; dev < nr_devices; dev++)
		ops->reopen(dev);
	ops->mesh(true);
}

static void step()
{
	uint32_t what = rnd(100);

	if (what < 40)
		allocate();
	else if (what < 60 && !live.empty())
		release(rnd(live.size()), false);
	else if (what < 65)
		make_view();
	else if (what < 70)
		make_submesh();
	else if (what < 72 && !subs.empty())
		drop_submesh(rnd(subs.size()));
	else if (what < 78)
		make_program();
	else if (what < 88)
		run_program();
	else if (what < 91 && !progs.empty())
		drop_program(rnd(progs.size()));
	else if (what < 97)
		dispatch();
}

static void program()
{
	for (uint32_t points = 1 + rnd(3); points > 0; points--) {
		auto work = [n = 5 + rnd(40)] {
			for (uint32_t i = 0; i < n; i++)
				step();
		};

		if (rnd(4))
			work();
		else
			std::thread(work).join();
		quiet();
	}
	if (rnd(3) == 0) {
		close_and_reopen();
		return;
	}
	while (!live.empty())
		release(live.size() - 1, false);
	while (!progs.empty())
		drop_program(progs.size() - 1);
	while (!subs.empty())
		drop_submesh(subs.size() - 1);
}

int main(int argc, char **argv)
{
	long programs = 10, seed = 1, chips = 4;
	const char *lib = nullptr;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--wait"))
			continue;
		if (i + 1 == argc)
			return 2;
		if (!strcmp(argv[i], "--programs"))
			programs = strtol(argv[++i], nullptr, 0);
		else if (!strcmp(argv[i], "--seed"))
			seed = strtol(argv[++i], nullptr, 0);
		else if (!strcmp(argv[i], "--chips"))
			chips = strtol(argv[++i], nullptr, 0);
		else if (!strcmp(argv[i], "--lib"))
			lib = argv[++i];
		else
			return 2;
	}
	book_ready();
	rng = 0x9e3779b97f4a7c15ull * (uint64_t)(seed + 1);
	ops = book_library(lib);
	nr_devices = ops->open(chips, true);
	if (nr_devices < 1 || !(ops->has & STANDIN_HAS_MESH))
		return 2;
	for (; programs_done < programs; programs_done++)
		program();
	print_book("done", programs_done);
	_exit(0);
}
