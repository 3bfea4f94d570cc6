# SPDX-License-Identifier: GPL-2.0-only
"""
Host memory that tt-kmd holds: what can be tested on a host without the driver. With a stand-in for
it: tests/vm/g_kmd.py.
"""
import json
import os
import subprocess
import sys

from e2e import TTMON, Skip, eq, standin, whole

KPROBES = ("kmd_ioctl", "kmd_ioctl_ret", "kmd_release")
TRACEPOINTS = ("kmd_sys_ioctl", "kmd_sys_ret")
# PIN_PAGES, UNPIN_PAGES and ALLOCATE_DMA_BUF on files that are not tt-kmd's: a character device, a plain file, none.
CALLS = """
import ctypes, os, sys, tempfile
libc = ctypes.CDLL(None)
arg = (ctypes.c_uint64 * 8)(8, 0x10000, 0x1000)
files = [os.open("/dev/null", os.O_RDWR), tempfile.TemporaryFile().fileno(), 999]
for _ in range(1000):
    for fd in files:
        for request in (0xFA07, 0xFA0A, 0xFA03):
            if libc.ioctl(fd, request, arg) != -1:
                sys.exit(1)
"""


def programs(bench, *options):
    """The programs on tt-kmd as /v1/probes shows them, while something is traced."""
    if os.path.exists("/sys/module/tenstorrent"):
        raise Skip("tt-kmd is loaded here")
    sock = bench.path("sock")
    target = bench.target(standin("scen"), "--wait", "copies")
    daemon = bench.daemon("--socket", sock, "--pid", str(target.pid), *options)
    sent = subprocess.run(
        [TTMON, "probes", "--json", "--socket", sock], capture_output=True, text=True, check=True
    ).stdout
    text = subprocess.run([TTMON, "probes", "-v", "--socket", sock], capture_output=True, text=True, check=True).stdout
    daemon.stop()
    target.go()
    target.finish()
    return {p["name"]: p for p in json.loads(sent)["programs"]}, text


def check_listed(progs, wanted, others):
    for name in wanted:
        p = progs[name]
        eq(name, (p["wanted"], p["loaded"], p["attached"], p["reason"]), (True, True, False, "tt-kmd is not loaded"))
    for name in others:
        p = progs[name]
        eq(name, (p["wanted"], p["loaded"], p["attached"], p["reason"]), (False, False, False, ""))


def test_programs_are_listed_with_their_reason(bench):
    progs, _ = programs(bench)
    check_listed(progs, KPROBES, TRACEPOINTS)


def test_tt_ioctl_programs_instead(bench):
    progs, _ = programs(bench, "--tt-ioctl")
    check_listed(progs, TRACEPOINTS, KPROBES)


def test_same_numbers_on_other_files_count_nothing(bench):
    """ioctl 0xFA07 is tt-kmd's only on tt-kmd's device."""
    _, db, _ = bench.trace([sys.executable, "-c", CALLS], "--tt-ioctl")
    whole(db)
    eq("allocations", [a for a in db["allocations"] if a["method"] in ("registered", "tt_dma")], [])
    eq("failures", sum(p["failed"] for p in db["processes"]), 0)
