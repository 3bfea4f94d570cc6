# SPDX-License-Identifier: GPL-2.0-only
"""Host memory that tt-kmd holds for programs, with a stand-in for tt-kmd (kmd/), which comes and goes."""
import json
import os
import subprocess
import time

from e2e import SLOW, TTMON, Skip, allocations, eq, last_json, load_db, process, true, whole


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
    end = time.monotonic() + seconds * SLOW
    while True:
        got = kmd_programs(sock)
        if got and all((p["attached"], p["reason"]) == (not reason, reason) for p in got.values()):
            return got
        true(f"after {seconds * SLOW:g} s: {got}", time.monotonic() < end)
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
            # The second time it has gone and come between two looks, which are 5 s apart: until
            # then the old probes are shown.
            time.sleep(seconds)
            wait_kmd(sock, "")
            books.append(
                last_json(subprocess.run([kmd.pin, "--closes"], capture_output=True, text=True, check=True).stdout)
            )
    wait_kmd(sock, "tt-kmd is not loaded")
    daemon.stop()
    for book in books:
        same_pins(load_db(db), book)
