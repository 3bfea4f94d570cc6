# SPDX-License-Identifier: GPL-2.0-only
"""
A traced program of Python: pins memory from many lines in many ways, and writes for each pin what
sys._getframe() says to the book. py_host.py RUNTIME BOOK ROUNDS
"""
import contextlib
import ctypes
import functools
import gc
import json
import os
import random
import sys
import threading

rt = ctypes.CDLL(sys.argv[1])
libc = ctypes.CDLL(None)
book = open(sys.argv[2], "a", buffering=1, encoding="utf-8")
lock = threading.RLock()
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def alloc():
    p = ctypes.c_void_p()
    f, line, r = sys._getframe(), sys._getframe().f_lineno, rt.cudaHostAlloc(ctypes.byref(p), ctypes.c_size_t(4096), 0)
    frames = [[f.f_code.co_filename, line, f.f_code.co_qualname]]
    while f := f.f_back:
        frames.append([f.f_code.co_filename, f.f_lineno or 0, f.f_code.co_qualname])
    with lock:
        book.write(json.dumps([os.getpid(), p.value, r, frames]) + "\n")


def recurse(n):
    if n:
        return recurse(n - 1)
    return alloc()


def on_many_lines(x):
    alloc()
    y = x + 1
    for _ in range(2):
        alloc()
    if y:
        alloc()
    return [
        alloc(),
        (y, alloc()),
    ]


def generator(n):
    for _ in range(n):
        yield alloc()
    yield from generator(n - 1) if n else ()


async def coroutine(n):
    if n:
        await coroutine(n - 1)
    alloc()


def run(c):
    try:
        c.send(None)
    except StopIteration:
        pass


class Thing:
    alloc()

    def __init__(self):
        alloc()

    def __del__(self):
        alloc()

    @property
    def prop(self):
        return alloc()

    def __add__(self, other):
        return other and Thing.__add__(self, other - 1) or alloc()

    def __enter__(self):
        alloc()

    def __exit__(self, *_):
        alloc()

    @staticmethod
    def static():
        return (lambda: alloc())()


@contextlib.contextmanager
def manager():
    alloc()
    yield
    alloc()


def función(ñ):
    return alloc() or ñ


def comprehensions():
    return (
        [alloc() for _ in range(2)],
        {i: alloc() for i in range(2)},
        {alloc() for _ in range(2)},
        list(alloc() for _ in range(2)),
    )


def called_back():
    sorted([2, 1], key=lambda _: alloc() or 0)
    functools.reduce(lambda a, b: alloc() or b, [1, 2, 3])
    list(map(lambda _: alloc(), range(2)))
    array = (ctypes.c_int * 4)(3, 1, 2, 0)
    libc.qsort(array, ctypes.c_size_t(4), ctypes.c_size_t(4), COMPARE(lambda a, b: alloc() or 1))
    COMPARE(lambda a, b: (recurse(3), COMPARE(lambda a, b: alloc() or 0)(1, 2))[1])(1, 2)


def raising():
    try:
        alloc()
        raise ValueError
    except ValueError:
        alloc()
    finally:
        alloc()


def executed(i):
    """Code that is freed at once: the next one takes its place in memory."""
    exec(compile("\n" * (i % 7) + "alloc()", f"<made {i:05}>", "exec"))
    text = f"def f{i:05}():\n" + "\n" * (i % 5) + " alloc()\n" + f"f{i:05}()"
    exec(compile(text, f"<made {i % 3:05}>", "exec"), {"alloc": alloc})
    exec(compile("alloc()", f"<файл {i % 11}>", "exec"))
    eval(f"alloc() or {i}")


def threads():
    ts = [threading.Thread(target=recurse, args=(i,)) for i in range(4)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()


def child():
    pid = os.fork()
    if not pid:
        recurse(2)
        exec("alloc()")
        os._exit(0)
    os.waitpid(pid, 0)


def long_function():
    """One has a line table longer than what is copied of most, and one longer than what is copied of any."""
    for n in (1500, 20000):
        text = "def f(x):\n" + " x = x + 1 - x * 2\n" * n + " alloc()\n"
        names = {"alloc": alloc}
        exec(compile(text, f"<long {n}>", "exec"), names)
        names["f"](0)


def thing():
    t = Thing()
    t.prop
    t + 3
    with t:
        t.static()
    with manager():
        pass
    cycle = [Thing()]
    cycle.append(cycle)
    del cycle, t
    gc.collect()


WAYS = [
    lambda i: recurse(i % 9),
    lambda i: recurse(60),
    on_many_lines,
    lambda i: list(generator(2)),
    lambda i: run(coroutine(i % 4)),
    lambda i: thing(),
    lambda i: función(i),
    lambda i: comprehensions(),
    lambda i: called_back(),
    lambda i: raising(),
    executed,
    lambda i: threads(),
    lambda i: child(),
]

if __name__ == "__main__":
    random.seed(1)
    recurse(0)
    long_function()
    for i in range(int(sys.argv[3])):
        for way in random.sample(WAYS, len(WAYS)):
            way(i)
