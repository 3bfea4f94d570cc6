#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""soak.py [SECONDS]: the service under load for a long time (make soak SOAK_SECS=3600; a short form is
in tests/e2e/t_soak.py).

One ttmond traces the whole host while ledgers come and go. Looked at all the while: the accounting
identity, losses, open files, and resident memory, which has to be flat once the first tenth of the
time has filled the tables. Prints a line a minute.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import e2e  # noqa: E402

THREADS, CALLS = 4, 40000
# What may be added after warming up: page-sized noise of malloc and of kept processes (a few KiB
# each), not a leak of events.
SLACK_KIB = 8192


def ask(sock):
    done = subprocess.run(
        [e2e.TTMON, "status", "--json", "--socket", sock], capture_output=True, text=True, check=False
    )
    e2e.true(f"ttmon status: {done.stderr}", done.stdout)
    return json.loads(done.stdout)


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        fields = dict(line.split(":", 1) for line in f)
    return int(fields["VmRSS"].split()[0])


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def soak(bench, seconds):
    sock = bench.path("soak.sock")
    daemon = bench.daemon("--socket", sock, "--shm-root", bench.dir, "--quiet")
    pid = daemon.proc.pid
    began = time.monotonic()
    warm, runs, worst, told = None, 0, 0, began
    while time.monotonic() - began < seconds:
        ledger = bench.target(
            e2e.standin("ledger"),
            "--threads",
            str(THREADS),
            "--calls",
            str(CALLS),
            "--seed",
            str(runs + 1),
            "--out",
            bench.path("ledger.json"),
            wait_ready=False,
        )
        ledger.finish(seconds=120)
        bench.procs.remove(ledger.proc)
        runs += 1
        s = ask(sock)
        e2e.true(f"identity: {s['identity']}", s["identity"]["ok"])
        e2e.eq("malformed", s["identity"]["malformed"], 0)
        rss, files = resident_kib(pid), open_files(pid)
        if warm is None:
            # Freed allocations are folded after 60 s: a short run only fills up.
            if time.monotonic() - began > min(150, max(seconds / 2, 5)):
                warm = (rss, files)
        else:
            worst = max(worst, rss - warm[0])
            e2e.true(f"open files grew from {warm[1]} to {files}", files <= warm[1] + 256)
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(
                f"{told - began:6.0f} s  {runs} runs  {rss} KiB  {files} fds  decoded {s['identity']['decoded']}  "
                f"lost {s['identity']['lost']}",
                flush=True,
            )
    if warm and seconds >= 300:
        e2e.true(f"resident memory grew by {worst} KiB after warming up at {warm[0]} KiB", worst <= SLACK_KIB)
    daemon.stop()
    return runs, warm, worst


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3600
    with tempfile.TemporaryDirectory(prefix="ttmon-soak-") as folder:
        bench = e2e.Bench(folder)
        try:
            runs, warm, worst = soak(bench, seconds)
        except AssertionError as why:
            print(f"FAIL soak: {why}")
            return 1
        finally:
            bench.close()
    print(
        f"ok soak: {runs} ledgers of {CALLS} calls in {seconds:.0f} s; memory {warm[0] if warm else '?'} KiB, then at "
        f"most +{worst} KiB"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
