# SPDX-License-Identifier: GPL-2.0-only
"""The RMID module kmod/ and the daemon: RMIDs and readings arrive, and the module can be unloaded under it."""
import contextlib
import os

from e2e import eq, timeout, true
from kmod_lib import PROC, Procs, busybox, command, count, info, module, wait
from t_cpu import Service

NEEDS = "rmid"


@contextlib.contextmanager
def held(bench):
    """A daemon that has gone when this ends, however it ends: it holds the module."""
    service = Service(bench, "--rmid", "module")
    try:
        yield service
    finally:
        service.daemon.stop()


def rmid_status(service):
    return service.status()["rmid"]


@timeout(60)
def test_daemon(bench, _):
    """Who was there by the dump, who comes by its events, readings by the tick; nothing of it contradicts itself."""
    with open("/sys/devices/system/cpu/cpu0/cache/index3/id", encoding="ascii") as f:
        domain = int(f.read())
    with module(fake_rdt=1, rdt_batch=8, tick_us=5000), Procs("hold", 5) as procs, held(bench) as service:
        wait("it is attached", lambda: rmid_status(service)["attached"])
        status = rmid_status(service)
        eq("as the module says", (status["backend"], status["max_rmid"]), ("module", 511))
        true(
            f"in use {status['in_use']}, by the module {count('in_use')}",
            wait("dump", lambda: rmid_status(service)["in_use"] >= 5),
        )
        with Procs("forks", 200):
            pass
        with Procs("burn", 300):
            pass
        wait("200 have come and gone", lambda: rmid_status(service)["frees"] >= 200)
        after = rmid_status(service)
        true(f"{after['allocs']} allocations", after["allocs"] >= 200)
        true(f"{after['readings']} readings", after["readings"] > 100)
        true(f"{after['mbm_total_bytes']} bytes", after["mbm_total_bytes"] > 0)
        events = service.status()["events"]
        for odd in ("double_free", "lost_free", "shared", "reused_early", "bad_reading"):
            # Where the host has no time for the daemon, events come after their slot was closed.
            true(f"{odd}: {after['odd'][odd]}, {events['late']} late", not after["odd"][odd] or events["late"])
        seen = service.processes()
        spans = []
        for pid in procs.book["children"]:
            rmid = seen[pid]["rmid"]
            true(f"RMID of {pid}", rmid)
            eq(f"cache of {pid}", seen[pid]["llc_bytes"], 64 * (1000 * rmid + domain))
            # rmid counts of 64 bytes each millisecond; some are in slots that are not closed yet.
            spans.append(seen[pid]["mbm_total_bytes"] / (64 * rmid))
        eq("RMIDs", len({seen[pid]["rmid"] for pid in procs.book["children"]}), 5)
        up = service.status()["uptime_ns"] / 1e6
        true(
            f"ms of bandwidth: {spans} in {up}",
            all(100 < ms < up for ms in spans) and max(spans) - min(spans) < 100 + 0.1 * max(spans),
        )


@timeout(60)
def test_unload_under_the_daemon(bench, _):
    """It holds the module until it is asked to let go, goes on without, and takes the module again when it is back."""
    with contextlib.ExitStack() as stack:
        with module():
            service = stack.enter_context(held(bench))
            wait("it is attached", lambda: rmid_status(service)["attached"])
            status, out = busybox("rmmod", "ttmon_rmid")
            true(f"rmmod while it is held: {status} {out}", status != 0 and os.path.exists(PROC))
            eq("release", (command("release"), info()["released"]), (0, "1"))
            wait("it lets go", lambda: not rmid_status(service)["attached"])
        true("it says why", rmid_status(service)["reason"])
        with module():
            wait("it is attached again", lambda: rmid_status(service)["attached"])
            command("release")
            wait("it lets go again", lambda: not rmid_status(service)["attached"])
