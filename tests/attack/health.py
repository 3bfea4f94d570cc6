#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""
health.py: how long /healthz takes, and how long a plain process takes to answer at the same time.
For tests/attack.

A machine with other work lets everybody wait. So somebody else is asked in the same way at the same
time: a process that does nothing but answer. What ttmond took longer than the slowest of those
answers is its own. Both are asked by processes of their own, every 10 ms, and all that takes part
has a real-time priority, as other tests may run: what is asked is whether ttmond waits, not how
busy the machine is.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import time

OWN_MS = 50.0  # that ttmond may take itself
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n"


def serve(path):
    """The plain process."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        print("ready", flush=True)
        while True:
            conn, _ = listener.accept()
            with conn:
                conn.recv(4096)
                conn.sendall(ANSWER)


def ask(path):
    """Until SIGTERM: one list of [when it began, how long it took] in ms."""
    over, times = [], []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    print("ready", flush=True)
    while not over:
        begun = time.monotonic()
        with socket.socket(socket.AF_UNIX) as conn:
            conn.settimeout(60)
            conn.connect(path)
            conn.sendall(REQUEST)
            answer = b""
            while more := conn.recv(4096):
                answer += more
        if not answer.startswith(b"HTTP/1.1 200"):
            sys.exit(f"{path}: {answer!r}")
        times.append([begun * 1000, (time.monotonic() - begun) * 1000])
        time.sleep(0.01)
    json.dump(times, sys.stdout)


def soon(pid):
    """The thread; what it makes is ordinary again."""
    os.sched_setscheduler(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


class Health:
    """Asks the daemon until worst() is called."""

    def __init__(self, bench, sock, pid):
        soon(pid)
        self.procs = []
        peer = bench.path("plain")
        self.start(bench, "serve", peer)
        self.asks = [self.start(bench, "ask", path) for path in (sock, peer)]

    def start(self, bench, *args):
        proc = subprocess.Popen([sys.executable, __file__, *args], stdout=subprocess.PIPE)
        soon(proc.pid)
        bench.procs.append(proc)
        self.procs.append(proc)
        if proc.stdout.readline() != b"ready\n":
            raise AssertionError(f"health.py {args}")
        return proc

    def worst(self):
        """
        (the longest answer, the most that one took longer than the slowest of the plain process's
        at that time), in ms.
        """
        for proc in self.asks:
            proc.terminate()
        own, plain = (json.loads(proc.communicate()[0]) for proc in self.asks)
        if [p.returncode for p in self.asks] != [0, 0] or len(own) < 2:
            raise AssertionError(f"/healthz was asked {len(own)} times")
        self.close()

        def beside(begun, took):
            return max((t for b, t in plain if b < begun + took and begun < b + t + 20), default=0.0)

        return max(t for _, t in own), max(t - beside(b, t) for b, t in own)

    def close(self):
        for proc in self.procs:
            proc.kill()
            proc.wait()


def check(what, worst, own):
    """The bound. Nothing but ttmond itself takes that long."""
    if own > OWN_MS:
        raise AssertionError(
            f"{what}: /healthz took {worst:.0f} ms, {own:.0f} ms longer than a plain process at that time"
        )


if __name__ == "__main__":
    os.environ.clear()
    {"serve": serve, "ask": ask}[sys.argv[1]](sys.argv[2])
