# SPDX-License-Identifier: GPL-2.0-only
"""
gap_host.py: ways to be traced x libraries, and what was missed in each by the program's own book
(tests/standin/caller.c). For t_gaps.py, which holds the database against the book, and tests/bench/gaps.py,
which shows how long the gaps are.
"""
import json
import os
import shutil
import subprocess
import time

from e2e import STANDIN, Skip, eq, last_json, load_db, standin, true
from real_libs import libraries
from tt_host import api, retry

# Functions that are called, and the family of probes of each.
CUDART = {"cudaHostUnregister": "alloc", "cudaMemcpy": "transfer", "cudaLaunchKernelExC": "launch"}
LIBCUDA = {"cuMemHostUnregister": "alloc", "cuMemcpyHtoD_v2": "transfer", "cuLaunchKernel": "launch"}
TT = {"tt": "tenstorrent"}


class State:
    """A library that nobody has mapped: a copy, which is another file to the kernel."""

    def __init__(self, name, path, soname, functions):
        self.name, self.path, self.soname, self.functions = name, path, soname, functions

    def copy(self, bench, folder):
        os.makedirs(bench.path(folder))
        return shutil.copy(self.path, bench.path(os.path.join(folder, self.soname)))


class OneRefused(State):
    """A runtime of which the kernel refuses to probe one function: it begins with a lock prefix."""

    def copy(self, bench, folder):
        os.makedirs(bench.path(folder))
        out = bench.path(os.path.join(folder, self.soname))
        done = subprocess.run(["nm", "-D", "--defined-only", self.path], check=True, capture_output=True, text=True)
        fields = map(str.split, done.stdout.splitlines())
        names = sorted({f[2].split("@")[0] for f in fields if f[1] == "T" and f[2].startswith("cuda")})
        with open(bench.path(folder + "/stubs.s"), "w", encoding="ascii") as f:
            for name in names:
                first = "lock orl $0, (%rsp)" if name == "cudaHostGetDevicePointer" else "push %rbp\n pop %rbp"
                f.write(
                    f".balign 32\n.globl {name}\n.type {name}, @function\n{name}: {first}\n mov $713, %eax\n ret\n"
                    f".size {name}, . - {name}\n"
                )
            f.write('.section .note.GNU-stack,"",@progbits\n')
        subprocess.run(
            ["cc", "-shared", "-nostdlib", "-Wl,-soname," + self.soname, "-o", out, bench.path(folder + "/stubs.s")],
            check=True,
        )
        return out


def states():
    drivers = sorted(p for p in libraries() if os.path.basename(p).startswith("libcuda.so"))
    runtime = (os.path.join(STANDIN, "lib", "libcudart.so.13"), "libcudart.so.13", CUDART)
    return [
        State("libcudart", *runtime),
        *([State("libcuda", drivers[-1], "libcuda.so.1", LIBCUDA)] if drivers else []),
        *([OneRefused("one refused", *runtime)] if os.uname().machine == "x86_64" else []),
        State("tenstorrent", os.path.join(STANDIN, "tt/e2b/libtt_metal.so"), "libtt_metal.so", TT),
    ]


def state(name):
    for s in states():
        if s.name == name:
            return s
    raise Skip("x86-64 alone" if name == "one refused" else "no real driver is here: make real-libs fetches it")


class Cell:
    """One run of the program: its book, the gaps that the database has of it, how long it was blind, in us."""

    def __init__(self, book, db):
        self.book, self.db = book, db
        self.process = next((p for p in db["processes"] if p["pid"] == book["pid"]), None)
        c = db["completeness"]
        self.complete = c["complete"]
        self.gaps = [g for g in c["knowledge"] if g["pid"] in (book["pid"], None)]
        self.windows = [b["window_us"] for b in c["blind"] if b["pid"] == book["pid"] and not b["held"]]

    def seen(self, function):
        if function == "tt":
            mine = [p for p in self.db["tenstorrent"]["processes"] if p["pid"] == self.book["pid"]]
            return sum(d["allocs"] for p in mine for d in p["devices"])
        if not self.process:
            return 0
        if "Launch" in function:
            return self.process["launches"]
        name = function.split("_v")[0]
        return sum(e["count"] for e in self.process["errors"] if e["fn"] == name)

    def missed(self, functions):
        return {f: len(self.book["calls"][f]) - self.seen(f) for f in functions}

    def in_gap(self, function, family):
        """Calls that began in a gap of their family."""
        mine = [(int(g["from_ns"] or 0), int(g["to_ns"] or 1 << 63)) for g in self.gaps if family in g["families"]]
        return sum(any(lo <= t < hi for lo, hi in mine) for t in self.book["calls"][function])

    def blind_us(self, missed):
        """By the book: from the moment it asked for the library, or its first call, to the first call that was seen."""
        begin = self.book["asked"] or min(t[0] for t in self.book["calls"].values())
        last = max(self.book["calls"][f][min(n, len(self.book["calls"][f]) - 1)] for f, n in missed.items())
        return (last - begin) / 1e3 if any(missed.values()) else 0.0

    def check(self, s, none=False):
        """The database agrees with the book. none: nothing may be missing."""
        functions = s.functions
        for f, n in self.missed(functions).items():
            true(f"{f}: more was seen than there was: {n}", n >= 0)
            true(f"{f}: {n} calls were missed, and it says complete", not n or not self.complete)
            covered = self.in_gap(f, functions[f])
            of = len(self.book["calls"][f])
            true(f"{f}: {n} calls were missed, {covered} of {of} lie in gaps {self.gaps}", n <= covered)
        if none:
            eq("missed", {f: n for f, n in self.missed(functions).items() if n}, {})
            refused = "function not probed" if s.name == "one refused" else None
            eq("gaps", [g for g in self.gaps if g["why"] != refused], [])


def environment(s, **more):
    """Of the program: a chip for tt-metal."""
    return {"STANDIN_TT_CHIPS": "0000:01:00.0=5", **more} if s.functions is TT else more


def arguments(s, ms, lib, waits=False, program="caller"):
    return [standin(program), *(["-w"] if waits else []), str(ms), lib, *s.functions]


def service(bench, *args):
    return bench.daemon("--dump-db", bench.path("db.json"), *bench.service_args(), "--tt-shm-version", "off", *args)


def probed(bench, path):
    mine = [o for o in api(bench.path("sock"), "/v1/probes")["objects"] if o["path"] == path]
    true(f"{path} is not probed", any(p["state"] == "attached" for o in mine for p in o["probes"]))


def settle(bench):
    def closed():
        return api(bench.path("sock"), "/v1/status")["slots"]["closed"]

    enough = closed() + 100
    retry(20, lambda: true("no slot is closed", closed() > enough))


def finish(bench, daemon, book):
    settle(bench)
    daemon.stop()
    return Cell(book, load_db(bench.path("db.json")))


def run(bench, argv, env):
    done = subprocess.run(argv, env=dict(os.environ, **env), check=True, capture_output=True, text=True, cwd=bench.dir)
    return last_json(done.stdout)


def command(bench, s, ms):
    out, db, _ = bench.trace(arguments(s, ms, s.copy(bench, "lib")), env=environment(s))
    return Cell(last_json(out), db)


def pid_at_start(bench, s, ms):
    target = bench.target(*arguments(s, ms, s.copy(bench, "lib"), True), env=environment(s))
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid))
    target.go()
    target.line(60)
    target.go()
    book = last_json(target.finish())
    daemon.wait(0)
    return Cell(book, load_db(bench.path("db.json")))


def pid_mid_run(bench, s, ms):
    target = bench.target(*arguments(s, ms, s.copy(bench, "lib"), True), env=environment(s))
    target.go()
    time.sleep(0.02)
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid))
    target.line(60)
    target.go()
    book = last_json(target.finish())
    daemon.wait(0)
    return Cell(book, load_db(bench.path("db.json")))


def preloaded(bench, s, ms, lib):
    """The library is there from the start of the program."""
    return run(bench, arguments(s, ms, "-"), environment(s, LD_PRELOAD=lib))


def service_known(bench, s, ms):
    daemon, lib = service(bench, "--probe-ahead", "off"), s.copy(bench, "lib")
    run(bench, arguments(s, 1, lib), environment(s))
    retry(20, lambda: probed(bench, lib))
    return finish(bench, daemon, preloaded(bench, s, ms, lib))


def service_first_contact(bench, s, ms):
    daemon, lib = service(bench, "--probe-ahead", "off"), s.copy(bench, "lib")
    return finish(bench, daemon, preloaded(bench, s, ms, lib))


def service_ahead(bench, s, ms):
    lib = s.copy(bench, "lib")
    daemon = service(bench, "--probe-ahead", bench.path("l?b"))
    return finish(bench, daemon, preloaded(bench, s, ms, lib))


def service_copied(bench, s, ms):
    """It knows the library, and the program has a copy of it."""
    daemon, known = service(bench, "--probe-ahead", "off"), s.copy(bench, "lib")
    run(bench, arguments(s, 1, known), environment(s))
    retry(20, lambda: probed(bench, known))
    return finish(bench, daemon, preloaded(bench, s, ms, s.copy(bench, "copy")))


def service_dlopen(bench, s, ms):
    daemon = service(bench, "--probe-ahead", "off")
    target = bench.target(*arguments(s, ms, s.copy(bench, "lib"), True), env=environment(s))
    settle(bench)
    target.go()
    target.line(60)
    target.go()
    return finish(bench, daemon, last_json(target.finish()))


def service_static(bench, s, ms):
    if s.name != "libcudart":
        return None
    daemon = service(bench, "--probe-ahead", "off")
    program = shutil.copy(standin("caller_static"), bench.path("program"))
    return finish(bench, daemon, run(bench, [program, *arguments(s, ms, "-")[1:]], {}))


def service_storm(bench, s, ms):
    """Programs that start one after the other, each with half a dozen files."""
    daemon, lib = service(bench, "--probe-ahead", "off"), s.copy(bench, "lib")
    storm = subprocess.Popen(["sh", "-c", "while :; do /bin/true; /bin/date >/dev/null; done"])
    try:
        time.sleep(0.3)
        book = preloaded(bench, s, ms, lib)
    finally:
        storm.kill()
        storm.wait()
    return finish(bench, daemon, book)


# name, how, nothing may be missing
WAYS = (
    ("-- CMD", command, True),
    ("--pid at start", pid_at_start, False),
    ("--pid mid-run", pid_mid_run, False),
    ("known", service_known, True),
    ("looked ahead", service_ahead, True),
    ("first contact", service_first_contact, False),
    ("new inode", service_copied, False),
    ("dlopen", service_dlopen, False),
    ("static runtime", service_static, False),
    ("exec storm", service_storm, False),
)
