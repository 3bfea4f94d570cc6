# SPDX-License-Identifier: GPL-2.0-only
"""
How probes are attached: uprobe_multi links or tracefs events, held mappings, and what is said where
a kernel lacks something.
"""
import os
import shutil
import signal
import subprocess
import time

from compare import compare
from e2e import Skip, eq, last_json, load_db, pair, process, same_transfers, standin, true, uprobe_events, whole


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
    """
    Pinned memory and sums are exact; ordinary memory that came and went before somebody could look
    is of unknown kind.
    """
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
    """
    Calls right after a dlopen of libraries nobody has seen. Under emulation attaching can take
    longer than a mapping is held.
    """
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
        eq(
            "what it says",
            daemon.stderr(),
            "ttmond: this kernel has no BTF (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF=y\n",
        )
    finally:
        subprocess.run(["umount", "/sys/kernel/btf"], check=True)


def test_without_tracefs(bench, legacy):
    """Only the fallback and the tracepoints of mappings need tracefs; where it is not mounted, what to do is said."""
    subprocess.run(["umount", "/sys/kernel/tracing"], check=True)
    try:
        daemon = bench.daemon("--no-mmap", cmd=[standin("scen"), "copies"], wait=False)
        daemon.wait(status=1 if legacy else 0)
        if legacy:
            eq(
                "what it says",
                daemon.stderr(),
                "ttmond: this kernel has no uprobe_multi links, and tracefs is not mounted: "
                "mount -t tracefs tracefs /sys/kernel/tracing\n",
            )
    finally:
        subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=True)
