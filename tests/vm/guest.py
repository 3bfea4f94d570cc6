#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""guest.py legacy|multi [NAME...]: what is tested under another kernel. Runs inside the virtual machine, as root; the daemon was built on the host.

Some of the end-to-end tests, those that depend on how probes are attached and on what the kernel can do, and tests of the fallback
itself. All in one process: starting Python takes seconds here. Prints "ok NAME", "FAIL NAME: why" or "SKIP NAME: why", and "done".
"""
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.dont_write_bytecode = True

from compare import compare  # noqa: E402
from e2e import (  # noqa: E402
    TTMON, Bench, Skip, allocations, eq, last_json, load_db, pair, process, same_transfers, standin, true, uprobe_events, whole,
)

E2E = {
    "t_copy": ("copies", "default_directions", "batch", "long_batch", "capture", "graph", "launches", "errors", "without_return_probes",
               "driver"),
    "t_life": ("exit", "exec", "fork", "threads_exit_inside_a_call", "longjmp", "reset", "stop_leaves_the_target_running"),
    "t_mem": ("mappings", "heap", "own_allocator", "usdt"),
    "t_objects": ("library_mapped_before", "container_pid", "static_runtime", "two_tracers"),
}


def ours():
    return [line for line in uprobe_events() if ":ttmond/" in line]


def test_which_uprobes(bench, legacy):
    daemon = bench.daemon("--log-level", "debug", cmd=["true"], wait=False)
    daemon.wait()
    eq("uses tracefs events", "through tracefs events" in daemon.stderr(), legacy)


def test_ledger(bench, _):
    """Four threads and every kind of call, against the program's own books."""
    _, db, _ = bench.trace([standin("ledger"), "--out", bench.path("ledger.json"), "--threads", "4", "--calls", "3000"])
    diffs = compare(load_db(bench.path("ledger.json")), db)
    true(f"{len(diffs)} differences, the first: {diffs[:1]}", not diffs)


def test_system_wide(bench, _):
    """Pinned memory and sums are exact; ordinary memory that came and went before somebody could look is of unknown kind."""
    target = bench.target(standin("scen"), "--wait", "copies")
    daemon = bench.daemon("--dump-db", bench.path("db.json"))
    target.go()
    book = last_json(target.finish())
    time.sleep(0.5)
    daemon.stop()
    db = load_db(bench.path("db.json"))
    whole(db)
    proc = process(db, book["pid"])
    for direction, mems in book["transfers"].items():
        eq(f"{direction} pinned", pair(proc["transfers"], direction, "pinned"), mems["pinned"])
        eq(direction, pair(proc["transfers"], direction), [sum(p[i] for p in mems.values()) for i in range(2)])


def test_held_mappings(bench, _):
    """Calls right after a dlopen of libraries nobody has seen. Under emulation attaching can take longer than a mapping is held."""
    paths = []
    for i in range(5):
        os.mkdir(bench.path(f"venv{i}"))
        paths.append(shutil.copy(standin("stripped/libcudart.so.13"), bench.path(f"venv{i}")))
    out, db, daemon = bench.trace([standin("late"), "--calls", "10", *paths])
    if "went on before their probes were in" in daemon.stderr():
        raise Skip("too slow here: attaching took longer than a mapping is held")
    book = last_json(out)
    whole(db)
    eq("pins", process(db, book["pid"])["pins"], book["pins"])


def test_events_are_removed(bench, legacy):
    """While it runs there are tracefs events where they are needed; afterwards there are none."""
    target = bench.target(standin("scen"), "--wait", "copies")
    daemon = bench.daemon("--pid", str(target.pid))
    eq("events while it runs", bool(ours()), legacy)
    daemon.stop()
    eq("events afterwards", ours(), [])
    target.go()
    target.finish()


def test_killed_daemon_leaves_nothing_for_long(bench, legacy):
    """The next daemon removes what a killed one left, and nothing of one that runs."""
    target = bench.target(standin("scen"), "--wait", "copies")
    db = bench.path("db.json")
    alive = bench.daemon("--dump-db", db, "--pid", str(target.pid))
    before = ours()
    killed = bench.daemon("--pid", str(target.pid))
    killed.proc.send_signal(signal.SIGKILL)
    killed.proc.wait()
    eq("events of two daemons", len(ours()), 2 * len(before))
    bench.daemon(cmd=["true"], wait=False).wait()
    eq("events of the one that runs", ours(), before)
    eq("events", bool(before), legacy)
    target.go()
    book = last_json(target.finish())
    alive.wait()
    same_transfers(process(load_db(db), book["pid"]), book)


def test_without_btf(bench, _):
    """A kernel without BTF is refused with one line that says what it lacks."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/sys/kernel/btf"], check=True)
    try:
        daemon = bench.daemon(cmd=["true"], wait=False)
        daemon.wait(status=1)
        eq("what it says", daemon.stderr(),
           "ttmond: this kernel has no BTF (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF=y\n")
    finally:
        subprocess.run(["umount", "/sys/kernel/btf"], check=True)


def test_without_tracefs(bench, legacy):
    """Only the fallback and the tracepoints of mappings need tracefs; where it is not mounted, what to do is said."""
    subprocess.run(["umount", "/sys/kernel/tracing"], check=True)
    try:
        daemon = bench.daemon("--no-mmap", cmd=[standin("scen"), "copies"], wait=False)
        daemon.wait(status=1 if legacy else 0)
        if legacy:
            eq("what it says", daemon.stderr(), "ttmond: this kernel has no uprobe_multi links, and tracefs is not mounted: "
               "mount -t tracefs tracefs /sys/kernel/tracing\n")
    finally:
        subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=True)


class Driver:
    """The stand-in for tt-kmd: loaded and unloaded."""

    def __init__(self):
        self.folder = os.environ.get("KMD", "-run.py did not build it")
        if self.folder.startswith("-"):
            raise Skip("no stand-in for tt-kmd: " + self.folder[1:])
        self.pin = os.path.join(self.folder, "pin")
        self.busybox = os.path.join(self.folder, "..", "..", "tools", "bin", "busybox")

    def load(self):
        subprocess.run([self.busybox, "insmod", os.path.join(self.folder, "tenstorrent.ko")], check=True)

    def unload(self):
        subprocess.run([self.busybox, "rmmod", "tenstorrent"], check=True)

    def __enter__(self):
        self.load()
        return self

    def __exit__(self, *_):
        if os.path.exists("/sys/module/tenstorrent"):
            self.unload()


def kmd_programs(sock):
    done = subprocess.run([TTMON, "probes", "--json", "--socket", sock], capture_output=True, text=True, check=True)
    return {p["name"]: p for p in json.loads(done.stdout)["programs"] if p["name"].startswith("kmd_") and p["wanted"]}


def wait_kmd(sock, reason, seconds=6.5):
    """Until the programs on tt-kmd are attached (""), or are not for this reason."""
    end = time.monotonic() + seconds
    while True:
        got = kmd_programs(sock)
        if got and all((p["attached"], p["reason"]) == (not reason, reason) for p in got.values()):
            return got
        true(f"after {seconds} s: {got}", time.monotonic() < end)
        time.sleep(0.2)


def same_pins(db, book):
    """What the database has of the program is its book."""
    proc = process(db, book["pid"])
    records = {method: allocations(db, book["pid"], method) for method in ("registered", "tt_dma")}
    for method, found in records.items():
        eq(method, len(found), book[method])
    eq("bytes of DMA buffers", sum(a["size"] for a in records["tt_dma"]), book["dma_bytes"])
    eq("pages at the peak", proc["pinned_peak_pages"], book["peak"])
    eq("pages after its end", proc["pinned_pages"], 0)
    failed = {}
    for error in proc["errors"]:
        failed[error["fn"]] = failed.get(error["fn"], 0) + error["count"]
    eq("errors", failed, book["errors"])
    eq("unknown frees", proc["unknown_frees"], 0)
    whole(db)


def test_kmd_kprobes(bench, _):
    """Host memory that tt-kmd holds for a program, by kprobes on the driver."""
    with Driver() as kmd:
        out, db, _ = bench.trace([kmd.pin, "--closes"])
        book = last_json(out)
        same_pins(db, book)
        ends = [a["end"] for a in allocations(db, book["pid"], "tt_dma")]
        eq("ends of DMA buffers", sorted(ends), ["exit", "exit", "free"])


def test_kmd_ioctl(bench, _):
    """The same by the tracepoints of the ioctl system call; ends of open files are not seen."""
    with Driver() as kmd:
        out, db, _ = bench.trace([kmd.pin], "--tt-ioctl")
        same_pins(db, last_json(out))


def test_kmd_comes_and_goes(bench, _):
    """The driver is loaded while the daemon runs, unloaded under its probes and loaded again."""
    kmd = Driver()
    sock, db = bench.path("sock"), bench.path("db.json")
    daemon = bench.daemon("--dump-db", db, "--socket", sock)
    wait_kmd(sock, "tt-kmd is not loaded")
    books = []
    for seconds in (0, 5.5):
        with kmd:
            # The second time it has gone and come between two looks, which are 5 s apart: until then the old probes are shown.
            time.sleep(seconds)
            wait_kmd(sock, "")
            books.append(last_json(subprocess.run([kmd.pin, "--closes"], capture_output=True, text=True, check=True).stdout))
    wait_kmd(sock, "tt-kmd is not loaded")
    daemon.stop()
    for book in books:
        same_pins(load_db(db), book)


def end_to_end(bench, module, name):
    getattr(importlib.import_module(module), "test_" + name)(bench)


def run(name, function, *args):
    with tempfile.TemporaryDirectory(prefix="ttmon-vm-") as folder:
        bench = Bench(folder)
        try:
            function(bench, *args)
            verdict = f"ok {name}"
        except Skip as why:
            verdict = f"SKIP {name}: {why}"
        except AssertionError as why:
            verdict = f"FAIL {name}: {why}"
        except Exception as err:  # a test that breaks is a test that failed
            traceback.print_exc()
            verdict = f"FAIL {name}: {type(err).__name__}: {err}"
        finally:
            bench.close()
        if verdict.startswith("FAIL"):
            bench.show_logs()
    print(" ".join(verdict.split()), flush=True)


def main():
    legacy = sys.argv[1] == "legacy"
    words = sys.argv[2:]
    tests = [(name[5:], f, legacy) for name, f in globals().items() if name.startswith("test_")]
    tests += [(f"{module[2:]}/{name}", end_to_end, module, name) for module, names in E2E.items() for name in names]
    for name, function, *args in tests:
        if not words or any(word in name for word in words):
            run(name, function, *args)
    print("done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
