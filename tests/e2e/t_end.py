# SPDX-License-Identifier: GPL-2.0-only
"""
What stays when `ttmond -- CMD` has ended, and for how long: links are closed by a process that is
left behind, whatever is killed.
"""
import contextlib
import ctypes
import glob
import json
import os
import re
import signal
import subprocess
import time

from compare import Comparison
from e2e import PATIENCE, TTMOND, bpftool, eq, fast, last_json, load_db, process, standin, true

PR_SET_CHILD_SUBREAPER = 36
HELPERS = ("ttmond-closer", "seccomp-keeper")


class Run:
    """
    ttmond over a command that waits until it is told to go; who is left behind becomes our child,
    and its end is seen.
    """

    def __init__(self, bench, script, *args, status=0):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.go_file, self.status = bench.path("go"), status
        before = set(helpers())
        self.daemon = bench.daemon(
            *args, cmd=["/bin/sh", "-c", f"while [ ! -e {self.go_file} ]; do sleep 0.02; done; {script}"]
        )
        self.helpers = {name: pid for pid, name in helpers().items() if pid not in before}
        self.ids = bpf_ids(self.daemon.proc.pid)
        eq("helpers", sorted(self.helpers), sorted(HELPERS))
        true(f"no links, programs or maps: {self.ids}", all(self.ids.values()))

    def go(self):
        with open(self.go_file, "w", encoding="ascii"):
            pass

    def finish(self):
        self.go()
        self.daemon.wait(self.status)

    def kill(self, name):
        os.kill(self.helpers[name], signal.SIGKILL)

    def all_gone(self, seconds=5):
        """No helper is there, and nothing in the kernel of what ttmond had."""
        end = time.monotonic() + seconds * PATIENCE
        for name, pid in self.helpers.items():
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                true(f"{name} is there after {seconds * PATIENCE:g} s", time.monotonic() < end)
                time.sleep(0.01)
        while True:
            left = {what: ids & kernel_ids(what) for what, ids in self.ids.items()}
            if not any(left.values()):
                return
            true(f"left after {seconds * PATIENCE:g} s: {left}", time.monotonic() < end)
            time.sleep(0.05)


def helpers():
    """{pid: name} of those that are our children."""
    found = {}
    with open("/proc/thread-self/children", encoding="ascii") as f:
        for pid in f.read().split():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii") as comm:
                name = comm.read().strip()
                if name in HELPERS:
                    found[int(pid)] = name
    return found


def bpf_ids(pid):
    """Links, programs and maps that a process holds."""
    ids = {"link": set(), "prog": set(), "map": set()}
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as f:
            for what, value in re.findall(r"^(link|prog|map)_id:\s*(\d+)", f.read(), re.M):
                ids[what].add(int(value))
    return ids


def kernel_ids(what):
    """All that there are. A list that met one just going has an error in it, and may be short."""
    for _ in range(50):
        rows = bpftool(what, "show")
        if isinstance(rows, list) and all("id" in x for x in rows):
            return {x["id"] for x in rows}
    raise AssertionError(f"bpftool {what} show: {rows}")


def pins(times=3):
    return f"exec {standin('scen')} exit {times}"


@fast
def test_nothing_is_left(bench):
    """Some seconds after the end there are no links, programs, maps or processes."""
    run = Run(bench, pins(), "--dump-db", bench.path("db.json"))
    run.finish()
    run.all_gone()
    book = last_json(run.daemon.stdout())
    eq("pins", process(load_db(bench.path("db.json")), book["pid"])["pins"], 3)


def test_closer_killed_before_the_end(bench):
    """Then ttmond closes its links itself."""
    run = Run(bench, pins())
    run.kill("ttmond-closer")
    run.finish()
    run.all_gone()


def test_helpers_killed_at_the_end(bench):
    run = Run(bench, pins())
    run.finish()
    run.kill("ttmond-closer")
    with contextlib.suppress(ProcessLookupError):
        run.kill("seccomp-keeper")
    run.all_gone()


def test_ttmond_killed(bench):
    """The command goes on, and nothing is left of the trace."""
    run = Run(bench, f"touch {bench.path('done')}")
    run.daemon.proc.kill()
    run.daemon.proc.wait()
    ids = dict(run.ids)
    run.go()
    run.all_gone()
    true(f"the command did not come to its end, or nothing was there: {ids}", os.path.exists(bench.path("done")))


def test_ttmond_and_helpers_killed(bench):
    """The keeper's guard answers: the command executes another program all the same."""
    run = Run(bench, f"/bin/ls / >/dev/null && touch {bench.path('done')}")
    for name in HELPERS:
        run.kill(name)
    run.daemon.proc.kill()
    run.daemon.proc.wait()
    run.go()
    run.all_gone()
    end = time.monotonic() + 5 * PATIENCE
    while not os.path.exists(bench.path("done")):
        true("the command could not go on", time.monotonic() < end)
        time.sleep(0.02)


def test_end_waits_for_nobody(bench):
    """
    Exit status and all output of the command are there when ttmond returns, though the closer
    stands still and has all links.
    """
    run = Run(bench, "head -c 3000000 /dev/zero; exit 3", status=3)
    os.kill(run.helpers["ttmond-closer"], signal.SIGSTOP)
    run.finish()
    eq("bytes of output", os.path.getsize(run.daemon.out.name), 3000000)
    true("links are left to the closer", kernel_ids("link") & run.ids["link"])
    os.kill(run.helpers["ttmond-closer"], signal.SIGCONT)
    run.all_gone()


def test_pipe_ends_with_ttmond(bench):
    """Who reads the output until its end does not wait for what is left behind."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    proc = subprocess.Popen(
        [TTMOND, "--", "/bin/sh", "-c", "echo begin; sleep 1; echo end; exit 5"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=bench.dir,
        text=True,
    )
    bench.procs.append(proc)
    eq("first line", proc.stdout.readline(), "begin\n")
    closer = [pid for pid, name in helpers().items() if name == "ttmond-closer"]
    eq("closers", len(closer), 1)
    os.kill(closer[0], signal.SIGSTOP)
    out, _ = proc.communicate(timeout=20 * PATIENCE)
    eq("output", out, "end\n")
    eq("exit status", proc.returncode, 5)
    os.kill(closer[0], signal.SIGCONT)
    os.waitpid(closer[0], 0)


def traced(bench, name):
    """A daemon over a ledger of its own."""
    cmd = [standin("ledger"), "--out", bench.path(f"{name}.ledger"), "--calls", "5000"]
    return bench.daemon("--dump-db", bench.path(f"{name}.json"), cmd=cmd, wait=False)


def is_right(bench, daemon, name):
    """The database agrees with the ledger, call by call."""
    daemon.wait(0)
    with open(bench.path(f"{name}.ledger"), encoding="utf-8") as f:
        eq("differences", Comparison(json.load(f), load_db(bench.path(f"{name}.json")), True).run()[:5], [])


def test_one_after_the_other(bench):
    """The second begins while the links of the first are being closed."""
    for name in ("first", "second", "third"):
        is_right(bench, traced(bench, name), name)


def test_two_at_a_time(bench):
    for daemon, name in [(traced(bench, name), name) for name in ("first", "second")]:
        is_right(bench, daemon, name)
