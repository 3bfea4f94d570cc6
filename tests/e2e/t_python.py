# SPDX-License-Identifier: GPL-2.0-only
"""Lines of Python in call sites: a program of Python against its own book, sys._getframe()."""
import glob
import json
import os
import subprocess
import sys

from e2e import LINGER, TOP, TTMON, Skip, eq, long, true

PATIENT = {"TTMOND_HOLD_MS": "10000", **LINGER}
RUNTIME = f"{TOP}/.output/tests/standin/lib/libcudart.so.12"


def interpreters():
    """Those of this machine whose frames are known, once each."""
    names = [f"python3.{minor}" for minor in (11, 12, 13)]
    here = [sys.executable, *(f"/usr/bin/{name}" for name in names)]
    # Those of pyenv.
    home = os.path.expanduser("~/.pyenv/versions")
    here += [p for minor in (11, 12, 13) for p in glob.glob(f"{home}/3.{minor}.*/bin/python3")]
    found = {os.path.realpath(p) for p in here if p and os.path.exists(p)}
    # Others, by programs that start them: TTMON_PYTHONS=/root13/run:/root12/run
    found |= set(filter(None, os.environ.get("TTMON_PYTHONS", "").split(":")))
    if not found:
        raise Skip("no CPython 3.11 to 3.13")
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
            path = obj.get("path", "?")
            self.frames.append([path, int(off, 16), symbol.rsplit("+0x", 1)[0]] if line else os.path.basename(path))
        self.python = [f for f in self.frames if isinstance(f, list)]

    def is_as(self, want):
        if self.stack["end"] == "depth" and self.python:
            want = want[: len(self.python)]
        return self.python == want


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
        elif site.is_as(want):
            equal += 1
        else:
            wrong.append((site.stack, site.frames, want[:8]))
    eq("pins without an allocation", sum(len(x) for x in stacks.values()), 0)
    return equal, unknown, wrong


def against_the_book(bench, python, rounds):
    book = bench.path("book")
    open(book, "w", encoding="utf-8").close()
    program = [python, f"{TOP}/tests/e2e/py_host.py", RUNTIME, book, str(rounds)]
    _, db, daemon = bench.trace(program, "--stack-depth", "32", env=PATIENT)
    with open(book, encoding="utf-8") as f:
        equal, unknown, wrong = compare(db, f)
    print(f"    {python}: {equal} stacks as in the book, {unknown} unknown, {len(wrong)} wrong")
    eq("wrong lines", wrong[:2], [])
    return equal, unknown, db, daemon


def test_lines(bench):
    """Recursion, generators, coroutines, destructors, callbacks from C, threads, children, code freed at once."""
    for python in interpreters():
        equal, unknown, _, _ = against_the_book(bench, python, 4)
        true(f"{unknown} are unknown", unknown <= 2)
        true(f"{equal} are as in the book", equal > 200)


def test_one_line_is_one_site(bench):
    """Two lines that pin through one function are two sites; in another run, at other addresses, each has its key."""
    program = bench.path("two.py")
    with open(program, "w", encoding="utf-8") as f:
        f.write(
            "import ctypes, sys\nrt = ctypes.CDLL(sys.argv[1])\n"
            "def pin(n):\n    rt.cudaHostAlloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(n), 0)\n"
            "def one():\n    pin(4096)\ndef two():\n    pin(4096)\n"
            "for i in range(3):\n    one()\n    two()\n"
        )
    runs = []
    for _ in range(2):
        _, db, _ = bench.trace([interpreters()[0], program, RUNTIME], env=PATIENT)
        names = {a["site"]: db["sites"][a["site"]] for a in db["allocations"] if a["method"] == "host_alloc"}
        runs.append({s["key"]: [f[2] for f in s["frames"] if f[2] in ("one+0x1", "two+0x1")] for s in names.values()})
        eq("allocations of each", sorted(s["allocs"] for s in names.values()), [3, 3])
    eq("sites", sorted(runs[0].values()), [["one+0x1"], ["two+0x1"]])
    eq("keys in another run", runs[1], runs[0])


def test_refused_version(bench):
    """A real CPython whose frames are not known: the daemon says so, and no line stands in any call site."""
    others = glob.glob(os.path.expanduser("~/.pyenv/versions/3.10.*/bin/python3.10"))
    others += [p for p in ("/usr/bin/python3.10", "/usr/bin/python3.14") if os.path.exists(p)]
    if not others:
        raise Skip("no CPython 3.10 or 3.14")
    program = bench.path("two.py")
    with open(program, "w", encoding="utf-8") as f:
        f.write(
            "import ctypes, sys\nrt = ctypes.CDLL(sys.argv[1])\n"
            "def pin():\n    rt.cudaHostAlloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(4096), 0)\n"
            "pin()\npin()\n"
        )
    _, db, daemon = bench.trace([others[0], program, RUNTIME], env=PATIENT)
    true("the daemon does not say so", "a version whose frames are not known" in daemon.stderr())
    eq("functions of Python", [o["path"] for o in db["objects"] if o.get("kind") == "python"], [])
    eq("pins", len([a for a in db["allocations"] if a["method"] == "host_alloc"]), 2)
    # Both lines have one native stack, without a frame of the program's: it identifies neither.
    path = bench.path("db.json")
    done = subprocess.run([TTMON, "db", "match", "--json", path, path], capture_output=True, text=True, check=True)
    eq("matched", {m["level"] for m in json.loads(done.stdout)["matches"]} & {"exact", "site", "names"}, set())


FAKE = r"""
#include <stdint.h>
#include <stdlib.h>
extern int cudaHostAlloc(void **, size_t, unsigned);
const unsigned long Py_Version = 0x030b02f0;
struct { uint64_t w[64]; } _PyRuntime, interp, thread, cframe, frame, code;
int main(int argc, char **argv)
{
    void *p;
    _PyRuntime.w[5] = (uint64_t)&interp;   /* interpreters.head */
    interp.w[2] = (uint64_t)&thread;       /* threads.head */
    thread.w[1] = (uint64_t)&thread;       /* next: itself */
    if (argc > 1) {                        /* and one whose frames have no end, of code that is none */
        thread.w[19] = (uint64_t)__builtin_thread_pointer();
        thread.w[7] = (uint64_t)&cframe;
        cframe.w[1] = (uint64_t)&frame;
        frame.w[4] = (uint64_t)&code;
        frame.w[6] = (uint64_t)&frame;
    }
    for (int i = 0; i < 20; i++)
        cudaHostAlloc(&p, 4096, 0);
    return 0;
}
"""


def test_fake_interpreter(bench):
    """Lists without an end, frames that are none: bounded, and never a line."""
    with open(bench.path("fake.c"), "w", encoding="utf-8") as f:
        f.write(FAKE)
    fake = bench.path("fake")
    rpath = f"-Wl,-rpath,{os.path.dirname(RUNTIME)}"
    subprocess.run(["cc", "-O1", "-rdynamic", "-o", fake, fake + ".c", RUNTIME, rpath], check=True)
    for args in ([], ["frames"]):
        _, db, _ = bench.trace([fake, *args], env=PATIENT)
        pins = [db["sites"][a["site"]] for a in db["allocations"] if a["method"] == "host_alloc"]
        eq("pins", len(pins), 20)
        eq("found by", {s["stack"]["by"] for s in pins}, {"python_unknown"})
        functions = {o["path"] for o in db["objects"] if o.get("kind") == "python"}
        true(f"functions: {functions}", functions <= {"<unknown>"})


@long
def test_many_lines(bench):
    for python in interpreters():
        equal, unknown, _, _ = against_the_book(bench, python, 400)
        true(f"{unknown} of {equal} are unknown", unknown * 1000 <= equal)
