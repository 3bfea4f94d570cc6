// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttscen.cpp: single scenarios on the stand-in tt-metal, each with its book.
 *
 *	ttscen NAME [--chips N] [--wait] [--lib PATH]		ttscen --list
 *
 * A scenario prints a line {"step": n, "devices": [...]} where its figures stand still, waits there for a line with --wait, and ends with
 * {"done": 0, ...}, where it waits too. `every` calls every function that could be probed and prints which were reached; `exceptions` sends an exception
 * through each of those and prints how many came out again.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "book.hpp"

using Buf = struct standin_tt_buf *;

static const struct standin_tt_ops *ops;
static Book book;
static bool waiting, has_mesh;
static long steps, chips = 2;
static int last; /* the last device */

static void step()
{
	book.print("step", ++steps);
	if (waiting)
		book_wait();
}

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "ttscen: %s\n", what);
	exit(2);
}

static Buf alloc(int dev, int type, uint64_t size)
{
	Buf b = ops->alloc(dev, type, size);

	if (book_type(type) >= 0 && size)
		book.add(dev, book_type(type), size);
	return b;
}

static void drop(Buf b, int dev, int type, uint64_t size)
{
	ops->free(b);
	if (book_type(type) >= 0 && size)
		book.sub(dev, book_type(type), size);
}

static void basic()
{
	std::vector<Buf> bufs;

	for (int dev = has_mesh ? STANDIN_MESH : 0; dev <= last; dev++)
		for (int type = 0; type < STANDIN_TYPES; type++)
			for (int i = 1; i <= 4; i++)
				bufs.push_back(alloc(dev, type, 1000 * i + type + dev + 2));
	step();
	size_t n = 0;
	for (int dev = has_mesh ? STANDIN_MESH : 0; dev <= last; dev++)
		for (int type = 0; type < STANDIN_TYPES; type++)
			for (int i = 1; i <= 4; i++, n++)
				if (i & 1)
					drop(bufs[n], dev, type, 1000 * i + type + dev + 2);
	step();
	n = 0;
	for (int dev = has_mesh ? STANDIN_MESH : 0; dev <= last; dev++)
		for (int type = 0; type < STANDIN_TYPES; type++)
			for (int i = 1; i <= 4; i++, n++)
				if (!(i & 1))
					drop(bufs[n], dev, type, 1000 * i + type + dev + 2);
	step();
}

static void oom()
{
	Buf b = alloc(0, STANDIN_DRAM, 1 << 20);

	for (int i = 0; i < 20; i++) {
		int type = i & 1 ? STANDIN_DRAM : STANDIN_L1;

		try {
			ops->alloc(has_mesh && i % 3 == 0 ? STANDIN_MESH : 0, type, 1ull << 44);
			need(false, "no exception");
		} catch (const std::exception &e) {
			need(strstr(e.what(), "Out of Memory"), "another exception");
			book.failed++;
		}
	}
	step();
	drop(b, 0, STANDIN_DRAM, 1 << 20);
	step();
}

/* A program whose every allocation fails. */
static void failed()
{
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++) {
			try {
				ops->alloc(has_mesh && i % 2 ? STANDIN_MESH : 0, STANDIN_DRAM, 1ull << 44);
				need(false, "no exception");
			} catch (const std::exception &) {
				book.failed++;
			}
		}
		step();
	}
}

/* Everything is open when the tracer comes, and the first that it sees is one buffer of the mesh. */
static void attach()
{
	step();
	Buf b = alloc(STANDIN_MESH, STANDIN_DRAM, 123456);
	step();
	drop(b, STANDIN_MESH, STANDIN_DRAM, 123456);
}

static void capture()
{
	std::vector<Buf> bufs;
	Buf real = alloc(0, STANDIN_L1, 4096);

	ops->capture(true);
	for (int i = 0; i < 10; i++, book.hooked++)
		bufs.push_back(ops->alloc(0, i & 1 ? STANDIN_DRAM : STANDIN_L1, 1 << 20));
	ops->capture(false);
	step();
	for (Buf b : bufs)
		ops->free(b);
	step();
	drop(real, 0, STANDIN_L1, 4096);
	step();
}

static void mark()
{
	Buf a = alloc(0, STANDIN_DRAM, 1000), b = alloc(0, STANDIN_DRAM, 2000), c = nullptr;

	if (has_mesh)
		c = alloc(STANDIN_MESH, STANDIN_L1, 3000);
	step();
	ops->mark(a);
	drop(a, 0, STANDIN_DRAM, 1000);
	if (c) {
		ops->mark(c);
		drop(c, STANDIN_MESH, STANDIN_L1, 3000);
	}
	step();
	drop(b, 0, STANDIN_DRAM, 2000);
	step();
}

static void bulk_with(bool clear)
{
	std::vector<Buf> bufs;
	Buf other = alloc(last, STANDIN_DRAM, 7000), mesh = has_mesh ? alloc(STANDIN_MESH, STANDIN_L1, 500) : nullptr;

	for (int i = 0; i < 5; i++)
		bufs.push_back(alloc(0, i, 100 << i));
	step();
	ops->bulk(0, clear);
	for (int i = 0; i < 5; i++)
		if (book_type(i) >= 0)
			book.sub(0, book_type(i), 100 << i);
	step();
	for (Buf b : bufs)
		ops->free(b); /* tells of frees that were done already */
	step();
	if (mesh) {
		ops->bulk(STANDIN_MESH, clear);
		drop(mesh, STANDIN_MESH, STANDIN_L1, 500);
		step();
	}
	drop(other, last, STANDIN_DRAM, 7000);
	step();
}

static void bulk()
{
	bulk_with(false);
}

static void clear()
{
	bulk_with(true);
}

static void close_one()
{
	Buf a = alloc(0, STANDIN_DRAM, 1000), b = alloc(last, STANDIN_DRAM, 2000);

	ops->cb(0, 4096, 512, 2, 2, 1, false);
	book.add(0, BOOK_CB, 2048, 0);
	if (has_mesh)
		alloc(STANDIN_MESH, STANDIN_L1, 300);
	step();
	ops->close_one(0);
	book.drop(0);
	step();
	ops->free(a);
	drop(b, last, STANDIN_DRAM, 2000);
	step();
}

static void views()
{
	std::vector<Buf> more;
	Buf a = alloc(0, STANDIN_DRAM, 10000), m = has_mesh ? alloc(STANDIN_MESH, STANDIN_DRAM, 500) : nullptr;

	for (int i = 0; i < 5 && (ops->has & STANDIN_HAS_VIEW); i++) {
		more.push_back(ops->view(a));
		if (m)
			more.push_back(ops->view(m));
	}
	step();
	for (Buf v : more)
		ops->free(v);
	step();
	drop(a, 0, STANDIN_DRAM, 10000);
	if (m)
		drop(m, STANDIN_MESH, STANDIN_DRAM, 500);
	step();
}

static void nothing()
{
	Buf a = alloc(0, STANDIN_DRAM, 0), b = alloc(0, STANDIN_SYSTEM, 4096), c = alloc(0, STANDIN_L1, 64);

	step();
	drop(a, 0, STANDIN_DRAM, 0);
	drop(b, 0, STANDIN_SYSTEM, 4096);
	step();
	drop(c, 0, STANDIN_L1, 64);
	step();
}

static void each()
{
	Buf a = ops->alloc_each(STANDIN_L1, 4096);

	for (int dev = 0; dev <= last; dev++)
		book.add(dev, BOOK_L1, 4096);
	step();
	ops->free(a);
	for (int dev = 0; dev <= last; dev++)
		book.sub(dev, BOOK_L1, 4096);
	step();
}

static void circular()
{
	ops->cb(0, 0x1000, 2048, 8, 4, 2, false); /* 64 cores */
	book.add(0, BOOK_CB, 64 * 2048, 0);
	ops->cb(0, 0x2000, 1024, 1, 1, 1, false);
	book.add(0, BOOK_CB, 1024, 0);
	step();
	for (int i = 0; i < 50; i++) /* a program run again and again */
		ops->cb(0, 0x1000, 2048, 8, 4, 2, false);
	step();
	Buf global = alloc(0, STANDIN_L1, 8192); /* a global one is an L1 buffer, told twice */
	ops->cb(0, 0x9000, 8192, 1, 1, 1, true);
	step();
	ops->cb_free(0);
	book.sub(0, BOOK_CB, 65 * 1024 + 63 * 1024, 0);
	book.devices[0].bytes[BOOK_CB] = 0;
	step();
	if (has_mesh) {
		ops->cb(STANDIN_MESH, 0x1000, 100, 2, 1, 1, false);
		book.add(STANDIN_MESH, BOOK_CB, 200, 0);
		step();
		ops->cb_free(STANDIN_MESH);
		book.sub(STANDIN_MESH, BOOK_CB, 200, 0);
	}
	drop(global, 0, STANDIN_L1, 8192);
	step();
}

/* All devices are closed with buffers on them, opened again without a constructor, and a new mesh is made on them. */
static void reopen()
{
	for (int round = 0; round < 4; round++) {
		Buf a = alloc(0, STANDIN_L1, 1000 + round), b = alloc(STANDIN_MESH, STANDIN_DRAM, 5000 + round);

		step();
		for (int dev = 0; dev <= last; dev++) {
			ops->close_one(dev);
			book.drop(dev);
		}
		/* As tt-metal's shutdown does with the survivors: impl/device/device.cpp and buffer.cpp of main 622c6fb9. */
		ops->mark(a);
		ops->mark(b);
		ops->free(a);
		ops->free(b);
		ops->mesh(false);
		step();
		for (int dev = 0; dev <= last; dev++)
			ops->reopen(dev);
		ops->mesh(true);
	}
	Buf b = alloc(STANDIN_MESH, STANDIN_DRAM, 777);
	step();
	drop(b, STANDIN_MESH, STANDIN_DRAM, 777);
}

/* ---- submeshes ---- */

/* Each chip a mesh of its own, and two of more chips; made when the probes that show a mesh's devices are long gone. */
static void submesh()
{
	const auto add = [](const std::vector<int> &devs, int type, uint64_t size, uint64_t count) {
		for (int dev : devs)
			book.add(dev, book_type(type), size, count);
	};
	std::vector<std::pair<int, std::vector<int>>> subs;
	std::vector<Buf> bufs;

	for (int i = 0; i < 64; i++)
		drop(alloc(STANDIN_MESH, STANDIN_L1, 4096), STANDIN_MESH, STANDIN_L1, 4096);
	step();
	if (waiting)
		usleep(1500000);
	for (int dev = 0; dev <= last; dev++)
		subs.push_back({ ops->submesh(&dev, 1), { dev } });
	std::vector<int> odd, most;
	for (int dev = 0; dev <= last; dev++)
		(dev % 2 ? odd : most).push_back(dev);
	subs.push_back({ ops->submesh(odd.data(), (int)odd.size()), odd });
	subs.push_back({ ops->submesh(most.data(), (int)most.size()), most });
	for (size_t i = 0; i < subs.size(); i++) {
		bufs.push_back(ops->alloc(subs[i].first, STANDIN_DRAM, 262144 << (i % 2)));
		add(subs[i].second, STANDIN_DRAM, 262144 << (i % 2), 1);
	}
	step();
	for (size_t i = 0; i < subs.size(); i++) {
		ops->free(bufs[i]);
		for (int dev : subs[i].second)
			book.sub(dev, BOOK_DRAM, 262144 << (i % 2), 1);
	}
	step();
	for (auto &sub : subs)
		ops->submesh_free(sub.first);
}

/* ---- programs ---- */

struct Prog {
	struct standin_tt_program *program;
	std::vector<struct standin_tt_cb> cbs;
};

static CbBook cb_book;

static std::vector<int> devices_of(int dev)
{
	std::vector<int> ret;

	for (int i = dev < 0 ? 0 : dev; i <= (dev < 0 ? last : dev); i++)
		ret.push_back(i);
	return ret;
}

static void cb_step()
{
	for (int dev = 0; dev <= last; dev++) {
		book.devices[dev].bytes[BOOK_CB] = cb_book.bytes(dev);
		/* tt-metal's own figure also has cores whose addresses are only kept free for a neighbour's buffer. */
		need((uint64_t)book.devices[dev].bytes[BOOK_CB] <= ops->cb_total(dev), "the book is above tt-metal's figure");
	}
	step();
}

static Prog make(std::vector<struct standin_tt_cb> cbs)
{
	return { ops->program(cbs.data(), cbs.size()), cbs };
}

static void run(Prog &p, int dev)
{
	ops->run(p.program, dev, p.cbs.data());
	cb_book.run(p.program, devices_of(dev), p.cbs);
}

static void end(Prog &p)
{
	ops->program_free(p.program);
	cb_book.end(p.program);
}

/* All begin at one address: on other cores, on the same cores, on cores that overlap. */
static void programs()
{
	const int all = has_mesh ? STANDIN_MESH : 0;
	Prog a = make({ { 1024, 1, { { 0, 0, 3, 0 } }, false, 0 } }), b = make({ { 1024, 1, { { 0, 1, 3, 1 } }, false, 0 } });
	Prog c = make({ { 2048, 2, { { 2, 0, 5, 0 }, { 2, 1, 5, 1 } }, false, 0 }, { 512, 1, { { 5, 0, 6, 2 } }, false, 0 } });
	Prog d = make({ { 65536, 1, { { 0, 0, 7, 7 } }, false, 0 }, { 4096, 1, { { 0, 0, 0, 0 } }, true, 0 } });

	run(a, 0);
	run(b, 0);
	cb_step();
	need(book.devices[0].bytes[BOOK_CB] == 8192, "two programs on other cores");
	end(a);
	cb_step();
	need(book.devices[0].bytes[BOOK_CB] == 4096, "one program is left");
	run(c, all);
	for (int i = 0; i < 50; i++)
		run(c, all); /* a program that runs again tells nothing new */
	run(d, 0);
	cb_step();
	ops->resize(c.program, 0, 1024);
	c.cbs[0].size = 1024;
	run(c, 0); /* the layout is the program's: it is another one on the other devices too */
	cb_step();
	end(b);
	end(d);
	run(c, last);
	cb_step();
	end(c);
	cb_step();
}

static void reuse()
{
	for (int i = 0; i < 5000; i++)
		drop(alloc(0, i % 2, 4096 + i), 0, i % 2, 4096 + i);
	step();
	Buf a = alloc(0, STANDIN_DRAM, 123456);
	ops->dealloc(a);
	ops->dealloc(a);
	drop(a, 0, STANDIN_DRAM, 123456);
	step();
}

/* Objects that are none, behind a Buffer pointer: nothing of them may be counted. */
static void hostile()
{
	size_t size, page = sysconf(_SC_PAGESIZE);
	Buf good = alloc(0, STANDIN_DRAM, 5000);
	std::vector<Buf> more;
	const auto *real = static_cast<const uint64_t *>(ops->object(good, &size));
	auto *pages = static_cast<char *>(
		mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	uint64_t copy[64] = {}, rng = 88172645463325252ull;

	for (int i = 0; i < 100; i++)
		more.push_back(alloc(0, STANDIN_L1, 100 + i));
	step();
	need(pages != MAP_FAILED && !munmap(pages + page, page), "mmap");
	for (bool on : { true, false }) {
		for (uint64_t p :
		     { 0ull, 1ull, 0x1000ull, 0x7ffffffff000ull, 0x800000000000ull, 0xffffffff81000000ull, ~0ull })
			ops->track(reinterpret_cast<const void *>(p), on);
		ops->track(pages + page - 8, on);
		ops->track(pages + page - 24, on);
		for (int i = 0; i < 20; i++) {
			for (uint64_t &w : copy)
				w = (rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17);
			ops->track(copy, on);
			memset(copy, i, sizeof(copy));
			ops->track(copy, on);
			for (uint64_t &w : copy)
				w = reinterpret_cast<uintptr_t>(copy); /* every pointer leads back */
			ops->track(copy, on);
		}
		/* A real one with an impossible size in every word. */
		for (size_t i = 0; i < size / 8 && i < 64; i++) {
			memcpy(copy, real, size < sizeof(copy) ? size : sizeof(copy));
			if (copy[i] == 5000)
				copy[i] = 1ull << 63;
			else
				continue;
			ops->track(copy, on);
		}
	}
	step();
	for (int i = 0; i < 100; i++)
		drop(more[i], 0, STANDIN_L1, 100 + i);
	drop(good, 0, STANDIN_DRAM, 5000);
	step();
}

/* A tracer that comes in the middle knows nothing of what was there before: the book is without it from then on. */
static void restart()
{
	std::vector<Buf> old, fresh;
	const auto dev = [](int i) { return i % (last + 1); };
	const auto type = [](int i) { return i % 4 ? STANDIN_DRAM : STANDIN_L1; };

	for (int i = 0; i < 40; i++)
		old.push_back(alloc(dev(i), type(i), 1000 + i));
	step();
	book = Book(last + 1); /* here it is started again */
	for (int i = 0; i < 40; i++)
		fresh.push_back(alloc(dev(i), type(i), 5000 + i));
	step();
	for (Buf b : old)
		ops->free(b);
	step();
	for (int i = 0; i < 20; i++)
		drop(fresh[i], dev(i), type(i), 5000 + i);
	Buf m = has_mesh ? alloc(STANDIN_MESH, STANDIN_DRAM, 70000) : nullptr;
	step();
	for (int i = 20; i < 40; i++)
		drop(fresh[i], dev(i), type(i), 5000 + i);
	if (m)
		drop(m, STANDIN_MESH, STANDIN_DRAM, 70000);
	step();
}

/* ---- every function, and an exception through each ---- */

static struct standin_tt_record some_record(uint32_t id)
{
	static const char *const kernels[] = { "kernels/compute/a.cpp", "kernels/dataflow/reader.cpp" };

	return { id, 0, 1000000 + id, 1100000 + id, 1.0, 0, 100, kernels, 2 };
}

static void throwing_callback()
{
	throw std::runtime_error("callback");
}

static const std::vector<std::function<void()>> &calls()
{
	static std::vector<std::function<void()>> all;
	static Buf held;
	const struct standin_tt_dispatch *table;

	if (!all.empty())
		return all;
	for (int dev = has_mesh ? STANDIN_MESH : 0; dev <= 0; dev++) {
		all.push_back([dev] { ops->free(ops->alloc(dev, STANDIN_DRAM, 4096)); });
		all.push_back([dev] { held = ops->alloc(dev, STANDIN_L1, 4096); });
		all.push_back([] {
			if (held && (ops->has & STANDIN_HAS_VIEW))
				ops->free(ops->view(held));
		});
		all.push_back([] {
			if (held)
				ops->dealloc(held);
		});
		all.push_back([] {
			if (held)
				ops->mark(held);
		});
		all.push_back([] {
			/* Quiet by now, or a destructor might throw. */
			if (held)
				ops->free(held);
			held = nullptr;
		});
		all.push_back([dev] { ops->bulk(dev, false); });
		all.push_back([dev] { ops->bulk(dev, true); });
		all.push_back([dev] { ops->cb(dev, 4096, 64, 2, 2, 1, false); });
		all.push_back([dev] { ops->cb_free(dev); });
		all.push_back([dev] {
			struct standin_tt_cb cb = { 64, 1, { { 0, 0, 1, 1 } }, false, 0 };
			struct standin_tt_program *program = ops->program(&cb, 1);

			try {
				ops->run(program, dev, &cb);
			} catch (...) {
				ops->program_free(program);
				throw;
			}
			ops->program_free(program);
		});
	}
	all.push_back([] { ops->reopen(0); });
	if (has_mesh)
		all.push_back([] {
			int dev = 0;

			ops->submesh_free(ops->submesh(&dev, 1));
		});
	for (size_t i = 0, n = ops->dispatches(&table); i < n; i++)
		all.push_back(table[i].call);
	all.push_back([] {
		struct standin_tt_record record = some_record(5);

		ops->programs(&record, 1, 0);
	});
	all.push_back([] { ops->pair(0, 1000, 1000, 1.0); });
	all.push_back([] { ops->open_close(); });
	return all;
}

static void print_sites(const char *name)
{
	static struct standin_tt_site sites[256];
	size_t n = standin_tt_sites(sites, 256);

	printf("{\"%s\": [", name);
	for (size_t i = 0; i < n; i++)
		printf("%s\"%s\"", i ? ", " : "", sites[i].name);
	printf("], \"gen\": \"%s\"}\n", ops->gen);
	fflush(stdout);
}

/* Which functions an allocation and its free go through. */
static void only_alloc()
{
	ops->free(ops->alloc(0, STANDIN_DRAM, 4096));
	print_sites("reached");
}

static void every()
{
	for (const auto &call : calls())
		call();
	ops->track(nullptr, true);
	ops->track(nullptr, false);
	print_sites("reached");
}

static void exceptions()
{
	static struct standin_tt_site sites[256];
	size_t n;
	unsigned int can = 0, thrown = 0, caught = 0;

	for (const auto &call : calls())
		call();
	n = standin_tt_sites(sites, 256);
	for (size_t i = 0; i < n; i++) {
		if (!sites[i].throws)
			continue;
		can++;
		standin_tt_arm(sites[i].entry);
		for (const auto &call : calls()) {
			/* A held buffer whose release threw is marked next, so that its destructor has nothing to do. */
			try {
				call();
			} catch (const std::exception &) {
				caught++;
			}
		}
		thrown += !standin_tt_armed();
		if (standin_tt_armed())
			printf("not thrown: %s\n", sites[i].name);
		standin_tt_arm(nullptr);
	}
	if (ops->has & STANDIN_HAS_PROFILE) {
		struct standin_tt_record record = some_record(6);

		ops->callback(throwing_callback);
		try {
			ops->programs(&record, 1, 0);
		} catch (const std::exception &) {
			caught++;
		}
		ops->callback(nullptr);
		can++;
		thrown++;
	}
	printf("{\"functions\": %u, \"thrown\": %u, \"caught\": %u}\n", can, thrown, caught);
	fflush(stdout);
	Buf b = alloc(0, STANDIN_DRAM, 77777);
	step();
	drop(b, 0, STANDIN_DRAM, 77777);
	step();
}

static const struct {
	const char *name;
	void (*run)();
	unsigned int needs;
} scenarios[] = {
	{ "basic", basic, 0 },
	{ "oom", oom, 0 },
	{ "failed", failed, 0 },
	{ "attach", attach, STANDIN_HAS_MESH },
	{ "capture", capture, 0 },
	{ "mark", mark, STANDIN_HAS_MARK },
	{ "bulk", bulk, STANDIN_HAS_BULK },
	{ "clear", clear, STANDIN_HAS_BULK },
	{ "close", close_one, 0 },
	{ "views", views, 0 },
	{ "nothing", nothing, 0 },
	{ "each", each, 0 },
	{ "circular", circular, 0 },
	{ "reopen", reopen, STANDIN_HAS_MESH },
	{ "submesh", submesh, STANDIN_HAS_MESH },
	{ "programs", programs, 0 },
	{ "reuse", reuse, 0 },
	{ "hostile", hostile, 0 },
	{ "restart", restart, 0 },
	{ "alloc", only_alloc, 0 },
	{ "every", every, 0 },
	{ "exceptions", exceptions, 0 },
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "--list", *lib = nullptr;
	bool all = !strcmp(name, "all"), found = false;

	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--wait"))
			waiting = true;
		else if (!strcmp(argv[i], "--chips") && i + 1 < argc)
			chips = strtol(argv[++i], nullptr, 0);
		else if (!strcmp(argv[i], "--lib") && i + 1 < argc)
			lib = argv[++i];
		else
			return 2;
	}
	if (!strcmp(name, "--list")) {
		for (const auto &s : scenarios)
			printf("%s\n", s.name);
		return 0;
	}
	if (waiting)
		book_ready();
	ops = book_library(lib);
	has_mesh = ops->has & STANDIN_HAS_MESH;
	last = ops->open(chips, true) - 1;
	need(last >= 0, "no chip");
	book = Book(last + 1);
	for (const auto &s : scenarios) {
		bool ends = !strcmp(s.name, "restart") || !strcmp(s.name, "every") || !strcmp(s.name, "alloc") ||
			    !strcmp(s.name, "exceptions") || !strcmp(s.name, "close") ||
			    !strcmp(s.name, "submesh") || !strcmp(s.name, "failed") || !strcmp(s.name, "attach") || !strcmp(s.name, "reopen");

		if (strcmp(s.name, name) && !(all && !ends))
			continue;
		found = true;
		if ((ops->has & s.needs) == s.needs)
			s.run();
	}
	need(found, "no such scenario");
	book.print("done", 0);
	if (waiting)
		book_wait();
	_exit(0);
}
