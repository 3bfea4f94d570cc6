#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""scrape.py [ALLOCATIONS]: what a scrape costs the daemon, with 100,000 live allocations and with
none, about half a minute.

Prints the CPU time of the daemon for a GET /metrics in each format, for one that asks for gzip, and
its ratio to the floor of the same run, a GET /healthz; the daemon's cost at rest is taken off. The
goal of the issue: under 50 ms, and no more with allocations than without. As root, after `make
e2e-build`.
"""
import http.client
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("O", ".output"))
ROUNDS, BLOCK = 9, 20
ASK = {
    "healthz": ("/healthz", {}),
    "classic": ("/metrics", {"Accept": "text/plain"}),
    "openmetrics": ("/metrics", {"Accept": "application/openmetrics-text;version=1.0.0"}),
    "gzip": ("/metrics", {"Accept": "text/plain", "Accept-Encoding": "gzip"}),
}


def cpu_ns(pid):
    """Of all threads that there are; none of them ends meanwhile."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


def ask(port, path, headers):
    conn = http.client.HTTPConnection("127.0.0.1", port)
    conn.request("GET", path, headers=headers)
    reply = conn.getresponse()
    body = reply.read()
    if reply.status != 200:
        sys.exit(f"{path}: {reply.status} {body[:200]}")
    return body


def measure(pid, port):
    """{what: (ms of CPU, bytes)}: the median of blocks that take turns."""
    cost, size = {name: [] for name in ASK}, {}
    for _ in range(ROUNDS):
        start, before = time.monotonic(), cpu_ns(pid)
        time.sleep(0.3)
        rest = (cpu_ns(pid) - before) / (time.monotonic() - start)
        for name, (path, headers) in ASK.items():
            start, before = time.monotonic(), cpu_ns(pid)
            for _ in range(BLOCK):
                size[name] = len(ask(port, path, headers))
            spent = cpu_ns(pid) - before - rest * (time.monotonic() - start)
            cost[name].append(spent / BLOCK / 1e6)
    return {name: (statistics.median(cost[name]), size[name]) for name in ASK}


def show(what, figures):
    floor = figures["healthz"][0]
    print(f"{what}: GET /healthz {floor:.3f} ms of CPU")
    for name in ("classic", "openmetrics", "gzip"):
        ms, size = figures[name]
        print(f"  /metrics, {name}: {ms:.2f} ms of CPU, {ms / floor:.0f} x the floor, {size:,} bytes (goal 50 ms)")


def run(folder, allocations):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    target = subprocess.Popen(
        [os.path.join(OUT, "tests/standin/scen"), "--wait", "live", str(allocations)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    target.stdout.readline()
    daemon = subprocess.Popen(
        [
            os.path.join(OUT, "bin/ttmond"),
            "--pid",
            str(target.pid),
            "--cpu",
            "on",
            "--listen-address",
            f"127.0.0.1:{port}",
            "--quiet",
            "--log-level",
            "error",
        ],
        cwd=folder,
    )
    try:
        time.sleep(2)
        target.stdin.write("\n")
        target.stdin.flush()
        while not target.stdout.readline().startswith("waiting"):
            pass
        time.sleep(1)
        # The pinned ones and one on the device.
        if f"\nttmond_tracked_allocations {allocations + 1}\n" not in ask(port, *ASK["classic"]).decode():
            sys.exit(f"the daemon does not have {allocations:,} allocations")
        return measure(daemon.pid, port)
    finally:
        daemon.terminate()
        daemon.wait()
        target.kill()
        target.wait()


def main():
    allocations = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        few, many = run(folder, 1), run(folder, allocations)
    show("1 live allocation", few)
    show(f"{allocations:,} live allocations", many)
    print(f"with {allocations:,} allocations {many['classic'][0] / few['classic'][0]:.2f} x as with one")
    return 0


if __name__ == "__main__":
    sys.exit(main())
