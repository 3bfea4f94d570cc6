#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""api.py [ALLOCATIONS]: how long each route of the HTTP API takes with 100,000 live allocations, as a
multiple of /healthz in the same run.

Each route is asked in turns with /healthz over one connection, the median counts. Prints also how
fast /v1/allocations is sent, what it takes of the daemon's CPU time, how much the daemon's memory
grew, and the longest time between two drains of the hot thread, before and with the requests. As
root, after `make bench-build e2e-build`; about 20 s.
"""
import ctypes
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("O", ".output"))
TURNS = 31
# Forked for, or long: fewer turns.
SLOW_TURNS = 9
ROUTES = (
    "/v1/status",
    "/metrics",
    "/v1/probes",
    "/v1/families",
    "/v1/processes",
    "/v1/devices",
    "/v1/slots",
    "/v1/allocations?limit=1",
    "/v1/allocations",
    "/v1/allocations/ID",
    "/v1/heat",
    "/v1/heat?by=page&id=ID",
    "/v1/hotspots",
    "/v1/coldspots",
    "/v1/advice",
    "/v1/allocations?limit=0",
    "/v1/db",
    "/v1/trace",
)
SLOW = ("/v1/allocations?limit=0", "/v1/db", "/v1/trace")


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("ttmond", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def ask(conn, path):
    conn.request("GET", path)
    reply = conn.getresponse()
    body = reply.read()
    return reply.status, body


def timed(conn, path):
    start = time.perf_counter()
    status, body = ask(conn, path)
    return time.perf_counter() - start, status, body


def cpu_s(pid):
    """Of its threads, not of its children."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))


def pin(count):
    """In a child: pinned allocations that stay until its input ends; each is copied from once."""
    lib = ctypes.CDLL(os.path.join(OUT, "tests/standin/lib/libcudart.so.13"))
    lib.cudaHostAlloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_uint]
    lib.cudaMalloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t]
    lib.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    sys.stdin.readline()
    p, dev = ctypes.c_void_p(), ctypes.c_void_p()
    lib.cudaMalloc(ctypes.byref(dev), 4096)
    for _ in range(count):
        assert lib.cudaHostAlloc(ctypes.byref(p), 4096, 0) == 0
        assert lib.cudaMemcpy(dev, p, 64, 1) == 0
    print("done", flush=True)
    sys.stdin.readline()


def measure(conn, pid, ident):
    floor = statistics.median(timed(conn, "/healthz")[0] for _ in range(3 * TURNS))
    print(f"/healthz {floor * 1e6:.0f} us; routes: median, multiple of that, bytes")
    for route in ROUTES:
        path, times, floors = route.replace("ID", ident), [], []
        for _ in range(SLOW_TURNS if route in SLOW else TURNS):
            floors.append(timed(conn, "/healthz")[0])
            took, status, body = timed(conn, path)
            if status != 200:
                print(f"{route}: status {status}: {body[:100]!r}")
                break
            times.append(took)
        if times:
            took = statistics.median(times)
            print(f"{route:28} {took * 1e3:10.2f} ms {took / statistics.median(floors):9.1f} x {len(body):12,}")
    before, rss = cpu_s(pid), rss_kib(pid)
    took, _, body = timed(conn, "/v1/allocations?limit=0")
    rows = len(json.loads(body)["allocations"])
    print(
        f"/v1/allocations?limit=0: {rows:,} rows in {took:.2f} s, {len(body) / took / 1e6:.0f} MB/s, "
        f"{rows / took:,.0f} rows/s, "
        f"{(cpu_s(pid) - before) * 1e3:.0f} ms of the daemon's CPU, {rss_kib(pid) - rss:+d} KiB"
    )


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 100_000
    if sys.argv[1:2] == ["--pin"]:
        pin(int(sys.argv[2]))
        return 0
    if os.geteuid():
        print("SKIP root")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        sock = os.path.join(folder, "sock")
        target = subprocess.Popen(
            [sys.executable, __file__, "--pin", str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        daemon = subprocess.Popen(
            [
                os.path.join(OUT, "bin/ttmond"),
                "--socket",
                sock,
                "--listen-address",
                "none",
                "--shm-root",
                folder,
                "--shm-slots",
                "128",
                "--tt-shm-version",
                "off",
                "--max-overhead",
                "0",
                "--cpu",
                "on",
                "--quiet",
                "--log-level",
                "error",
                "--pid",
                str(target.pid),
            ]
        )
        try:
            end = time.monotonic() + 20
            while not os.path.exists(sock) and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(1)
            target.stdin.write("\n")
            target.stdin.flush()
            target.stdout.readline()
            time.sleep(1)
            conn = Unix(sock)
            gap = json.loads(ask(conn, "/v1/status")[1])["window"]["longest_gap_ns"]
            rows = json.loads(ask(conn, f"/v1/allocations?pid={target.pid}&method=host_alloc&limit=1")[1])[
                "allocations"
            ]
            measure(conn, daemon.pid, str(rows[0]["seq"]))
            status = json.loads(ask(conn, "/v1/status")[1])
            print(
                f"longest time between two drains {gap / 1e6:.1f} ms before, "
                f"{status['window']['longest_gap_ns'] / 1e6:.1f} ms with the requests; "
                f"lost {sum(status['events']['lost'].values())}"
            )
            target.communicate("\n")
        finally:
            target.kill()
            daemon.terminate()
            daemon.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
