// SPDX-License-Identifier: GPL-2.0-only
// unwind_cxx.cpp: call stacks of C++: in catch handlers, in destructors while an exception is on its way, virtual functions, lambdas,
// std::function, std::thread, algorithms with callbacks. See unwind.h.
#include "unwind.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static volatile int sink;

struct Guard {
	size_t size;
	__attribute__((noinline)) ~Guard()
	{
		sink = sink + (unwind_pin(size) != nullptr);
	}
};

__attribute__((noinline)) static int thrower(int n)
{
	Guard guard{ 4096 };

	if (n > 2)
		throw std::runtime_error(std::to_string(n));
	return n + thrower(n + 1);
}

__attribute__((noinline)) static int catcher(int n)
{
	try {
		return thrower(n);
	} catch (const std::exception &e) {
		sink = sink + (unwind_pin(8192) != nullptr);
		return static_cast<int>(std::string(e.what()).size());
	}
}

struct Shape {
	virtual ~Shape() = default;
	virtual int area(int n) const = 0;
};

struct Square : Shape {
	__attribute__((noinline)) int area(int n) const override
	{
		return n * n + (unwind_pin(12288) != nullptr);
	}
};

struct Cube : Square {
	__attribute__((noinline)) int area(int n) const override
	{
		return 6 * Square::area(n) + n;
	}
};

__attribute__((noinline)) static int by_function(const std::function<int(int)> &f, int n)
{
	return f(n) + 1;
}

__attribute__((noinline)) static void by_algorithm()
{
	std::vector<int> v{ 5, 3, 4, 1, 2 };

	std::sort(v.begin(), v.end(), [](int a, int b) {
		sink = sink + (unwind_pin(16384) != nullptr);
		return a < b;
	});
	std::for_each (v.begin(), v.end(), [](int a) { sink = sink + a; });
}

int main()
{
	std::vector<std::thread> threads;

	unwind_begin();
	for (int i = 0; i < 10; i++) {
		Cube cube;
		const Shape &shape = cube;

		sink = sink + catcher(i % 3);
		sink = sink + shape.area(i);
		sink = sink + by_function([i](int n) { return n + i + (unwind_pin(20480) != nullptr); }, i);
	}
	by_algorithm();
	for (int i = 0; i < 16; i++)
		threads.emplace_back([i] {
			for (int k = 0; k < 5; k++)
				sink = sink + catcher((i + k) % 3);
		});
	for (auto &t : threads)
		t.join();
	unwind_end();
	return 0;
}
