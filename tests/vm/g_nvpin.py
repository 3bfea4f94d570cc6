# SPDX-License-Identifier: GPL-2.0-only
"""
--nvidia-pins: what NVIDIA's kernel module pins, with a stand-in for it (nvpin/) whose functions are
called so many times as is asked.
"""
import os
import re
import subprocess
import sys
import time

from e2e import SLOW, TTMON, Skip, eq, true
from t_cpu import Service
from tt_host import api

FUNCTIONS = (
    "os_lock_user_pages",
    "os_unlock_user_pages",
    "os_alloc_mem",
    "nv_dma_map_alloc",
    "RmP2PDmaMapPagesCoherent",
)
NOT_THERE = "the module nvidia is not loaded"


class Driver:
    """The stand-in for NVIDIA's module: loaded and unloaded."""

    def __init__(self, variant="nvidia.ko"):
        folder = os.environ.get("NVPIN", "-run.py did not build it")
        if folder.startswith("-"):
            raise Skip("no stand-in for NVIDIA's module: " + folder[1:])
        self.module = os.path.join(folder, variant)
        self.busybox = os.path.join(folder, "..", "..", "tools", "bin", "busybox")

    def __enter__(self):
        subprocess.run([self.busybox, "insmod", self.module], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run([self.busybox, "rmmod", "nvidia"], check=True)


def call(function, times, amount, status=0, interrupt=0):
    with open("/proc/nvidia-standin", "w", encoding="ascii") as f:
        f.write(f"{function} {times} {amount} {status} {interrupt}")


def rows(service):
    return {row.pop("function"): row for row in api(service.sock, "/v1/status")["kernel_pins"]["nvidia"]["functions"]}


def figures(service):
    """By function: calls, returned, failed, pages or bytes."""
    return {
        fn: (r["calls"], r["returned"], r["failed"], r.get("pages", r.get("bytes", 0)))
        for fn, r in rows(service).items()
    }


def wait_probed(service, reason, seconds=6.5):
    """Until all functions are probed (""), or are not for this reason."""
    end = time.monotonic() + seconds * SLOW
    while any((r["probed"], r["reason"]) != (not reason, reason) for r in rows(service).values()):
        true(f"after {seconds * SLOW:g} s: {rows(service)}", time.monotonic() < end)
        time.sleep(0.2)


def metrics(service):
    page = subprocess.run(
        ["curl", "-sS", "--unix-socket", service.sock, "http://ttmond/metrics"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = {}
    for name, fn, value in re.findall(r'^ttmond_nvidia_driver_(\w+)\{function="(\w+)"\} (\d+)', page, re.M):
        found.setdefault(name, {})[fn] = int(value)
    return found


def test_known_numbers(bench, _):
    """
    So many calls, failures and pages as were made, one function calling another, in an interrupt
    and from several processes at a time.
    """
    with Driver():
        service = Service(bench, "--nvidia-pins")
        wait_probed(service, "")
        eq("before", set(figures(service).values()), {(0, 0, 0, 0)})
        call("os_lock_user_pages", 7, 300)
        call("os_lock_user_pages", 2, 1000, 0x51)
        call("os_unlock_user_pages", 5, 300)
        call("os_alloc_mem", 3, 4096)
        call("os_alloc_mem", 4, 1 << 40, 0x51)
        call("nv_dma_map_alloc", 6, 16)
        call("RmP2PDmaMapPagesCoherent", 8, 512)
        call("RmP2PDmaMapPagesCoherent", 1, 512, 0x1F)
        # Eight bytes a page are allocated for each lock; a peer's mapping of pages of this size is
        # one by the other function.
        want = {
            "os_lock_user_pages": (9, 9, 2, 7 * 300),
            "os_unlock_user_pages": (5, 5, 0, 5 * 300),
            "os_alloc_mem": (16, 16, 4, 3 * 4096 + 8 * (7 * 300 + 2 * 1000)),
            "nv_dma_map_alloc": (15, 15, 1, 6 * 16 + 8 * 512),
            "RmP2PDmaMapPagesCoherent": (9, 9, 1, 0),
        }
        eq("in /v1/status", figures(service), want)
        found = metrics(service)
        for i, name in enumerate(("calls_total", "returns_total", "failures_total")):
            eq(name, found[name], {fn: want[fn][i] for fn in FUNCTIONS})
        eq(
            "pages",
            found["pages_total"],
            {fn: want[fn][3] for fn in FUNCTIONS if fn not in ("os_alloc_mem", "RmP2PDmaMapPagesCoherent")},
        )
        eq("bytes", found["bytes_total"], {"os_alloc_mem": want["os_alloc_mem"][3]})
        # In interrupts, and from several processes.
        call("os_alloc_mem", 10, 100, 0, 1)
        script = "for i in range(20): open('/proc/nvidia-standin', 'w').write('os_lock_user_pages 50 2 0')"
        for child in [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]:
            eq("child", child.wait(), 0)
        want["os_lock_user_pages"] = (9 + 3000, 9 + 3000, 2, 7 * 300 + 6000)
        calls, _, failed, much = want["os_alloc_mem"]
        want["os_alloc_mem"] = (calls + 10 + 3000, calls + 10 + 3000, failed, much + 1000 + 8 * 6000)
        eq("afterwards", figures(service), want)
        text = subprocess.run(
            [TTMON, "status", "-vs", service.sock], capture_output=True, text=True, check=False
        ).stdout
        true(text, re.search(r"^  nvidia +os_lock_user_pages 3,009 calls, 2 failed, 8,100 pages$", text, re.M))
        # A daemon that is told to look away does.
        subprocess.run([TTMON, "family", "alloc", "off", "--socket", service.sock], capture_output=True, check=True)
        wait_probed(service, "its family is off")
        call("os_lock_user_pages", 5, 5)
        subprocess.run([TTMON, "family", "alloc", "on", "--socket", service.sock], capture_output=True, check=True)
        wait_probed(service, "")
        eq("while it was off", figures(service), want)
        service.daemon.stop()


def test_comes_and_goes(bench, _):
    """The module is loaded while the daemon runs, unloaded under its probes and loaded again; the sums go on."""
    service = Service(bench, "--nvidia-pins")
    wait_probed(service, NOT_THERE)
    for n in (1, 2):
        with Driver():
            # The second time it has gone and come between two looks, which are 5 s apart.
            wait_probed(service, "", 13)
            call("os_unlock_user_pages", 4, 25)
            eq("unlocked", figures(service)["os_unlock_user_pages"], (4 * n, 4 * n, 0, 100 * n))
        wait_probed(service, NOT_THERE, 13)
    service.daemon.stop()
    eq("said", len(re.findall(r"--nvidia-pins: " + NOT_THERE, service.daemon.stderr())), 3)


def test_a_function_less(bench, _):
    """One that this module has not is named, the others are counted."""
    with Driver("less/nvidia.ko"):
        service = Service(bench, "--nvidia-pins")
        found = rows(service)
        less = found.pop("RmP2PDmaMapPagesCoherent")
        eq("it", (less["probed"], less["reason"]), (False, "the module nvidia has no such function"))
        eq("others", {(r["probed"], r["reason"]) for r in found.values()}, {(True, "")})
        call("nv_dma_map_alloc", 3, 2)
        eq("mapped", figures(service)["nv_dma_map_alloc"], (3, 3, 0, 6))
        true("metrics", "RmP2PDmaMapPagesCoherent" not in metrics(service)["calls_total"])
        text = subprocess.run(
            [TTMON, "status", "-vs", service.sock], capture_output=True, text=True, check=False
        ).stdout
        true(
            text,
            "RmP2PDmaMapPagesCoherent 0 calls, 0 failed (not counted: the module nvidia has no such function)" in text,
        )
        service.daemon.stop()
        true(service.daemon.stderr(), "--nvidia-pins: 4 of 5 functions" in service.daemon.stderr())


def test_only_when_asked(bench, _):
    """Without the option nothing is probed and nothing is shown."""
    with Driver():
        service = Service(bench)
        eq("status", api(service.sock, "/v1/status")["kernel_pins"]["nvidia"], None)
        eq("metrics", metrics(service), {})
        service.daemon.stop()
