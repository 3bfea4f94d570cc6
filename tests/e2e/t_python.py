# SPDX-License-Identifier: GPL-2.0-only
"""Lines of Python in call sites: a program of Python against its own book, sys._getframe()."""
import json
import os
import shutil
import sys

from e2e import LINGER, TOP, Skip, eq, long, standin, true

PATIENT = {"TTMOND_HOLD_MS": "10000", **LINGER}
RUNTIME = f"{TOP}/.output/tests/standin/lib/libcudart.so.12"


def interpreters():
    """Those of this machine whose frames are known, once each."""
    found = {os.path.realpath(p) for p in (sys.executable, shutil.which("python3.11"), "/usr/bin/python3.11", "/usr/bin/python3.13") if p and os.path.exists(p)}
    if not found:
        raise Skip("no CPython 3.11 or 3.13")
    return sorted(found)


class Site:
    """Frames of a call site: those of Python as [file, line, function], others as their object."""

    def __init__(self, db, objects, site):
        s = db["sites"][site]
        self.stack = s.get("stack", {})
        self.frames = []
        for o, off, symbol in s["frames"]:
            obj = objects.get(o, {})
            line = obj.get("kind") == "python"
            self.frames.append([obj["path"], int(off, 16), symbol.rsplit("+0x", 1)[0]] if line else os.path.basename(obj.get("path", "?")))
        self.python = [f for f in self.frames if isinstance(f, list)]


def compare(db, book):
    """How many stacks were as the book has them; what was wrong; how many were said to be unknown."""
    objects = {o["id"]: o for o in db["objects"]}
    pids = [p["pid"] for p in db["processes"]]
    sites = [Site(db, objects, i) for i in range(len(db["sites"]))]
    stacks = {}
    for line in book:
        pid, addr, err, frames = json.loads(line)
        eq("pin", err, 0)
        stacks.setdefault((pid, addr), []).append(frames)
    equal, unknown, wrong = 0, 0, []
    for a in db["allocations"]:
        if a["method"] != "host_alloc":
            continue
        want = stacks[pids[a["process"]], int(a["addr"], 16)].pop(0)
        site = sites[a["site"]]
        if site.stack.get("by") != "tables":
            unknown += 1
        elif site.python == want or (site.stack["end"] == "depth" and site.python and site.python == want[:len(site.python)]):
            equal += 1
        else:
            wrong.append((site.stack, site.frames, want[:8]))
    eq("pins without an allocation", sum(len(x) for x in stacks.values()), 0)
    return equal, unknown, wrong


def against_the_book(bench, python, rounds):
    book = bench.path("book")
    open(book, "w", encoding="utf-8").close()
    _, db, daemon = bench.trace([python, f"{TOP}/tests/e2e/py_host.py", RUNTIME, book, str(rounds)], "--stack-depth", "32", env=PATIENT)
    with open(book, encoding="utf-8") as f:
        equal, unknown, wrong = compare(db, f)
    print(f"    {python}: {equal} stacks as in the book, {unknown} unknown, {len(wrong)} wrong")
    eq("wrong lines", wrong[:2], [])
    return equal, unknown, db, daemon


def test_lines(bench):
    """Recursion, generators, coroutines, comprehensions, properties, destructors, callbacks from C, threads, children, code that is freed at once."""
    for python in interpreters():
        equal, unknown, _, _ = against_the_book(bench, python, 4)
        true(f"{unknown} are unknown", unknown <= 2)
        true(f"{equal} are as in the book", equal > 200)


@long
def test_many_lines(bench):
    for python in interpreters():
        equal, unknown, _, _ = against_the_book(bench, python, 400)
        true(f"{unknown} of {equal} are unknown", unknown * 1000 <= equal)
