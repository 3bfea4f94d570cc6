#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""live.py [ADVICES]: how long live advice takes from the copy that leads to it to a client on the
socket, as a multiple of /healthz in the same run.

A program copies from allocations that it has not copied from before, and says when; each is to be
pinned (--pin-after first). One third of the copies come after a pause in which the daemon has gone
to sleep between its rounds. Once with the client of that process alone, once with 50 more that
follow everything. Prints also the longest time between two rounds of the daemon's hot thread: what
is longer than that was waited for elsewhere. As root, after `make bench-build e2e-build`; about 40
s.
"""
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
# pylint: disable=wrong-import-position
from e2e import Bench  # noqa: E402
from live_host import OWN, Follower, Program  # noqa: E402
from tt_host import Unix, api  # noqa: E402

GOAL_MS = 20
OTHERS = 50


def healthz(sock, turns=51):
    conn, times = Unix(sock), []
    for _ in range(turns):
        start = time.perf_counter()
        conn.request("GET", "/healthz")
        conn.getresponse().read()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def latencies(program, follower, count):
    """Milliseconds: (between rounds of a busy daemon, of a sleeping one)."""
    ret = ([], [])
    for i in range(count):
        program.do("own a 4096")
        slept = i % 3 == 0
        time.sleep(0.25 if slept else 0.011 + i % 7 / 1000)
        t = program.do("copy a")["t"]
        ret[slept].append((follower.advice()["came"] - t) / 1e6)
    return ret


def report(name, times, floor):
    times = sorted(times)
    median, p99 = statistics.median(times), times[len(times) * 99 // 100]
    under = sum(t < GOAL_MS for t in times)
    print(
        f"{name}: median {median:.2f} ms, p99 {p99:.2f} ms, max {times[-1]:.2f} ms, floor {floor:.3f} ms (/healthz), "
        f"RATIO {median / floor:.1f}; "
        f"{under} of {len(times)} under {GOAL_MS} ms, GOAL RATIO {p99 / GOAL_MS:.2f}",
        flush=True,
    )


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory(prefix="ttmon-bench-") as folder:
        bench = Bench(folder)
        try:
            sock = bench.path("sock")
            bench.daemon(
                "--socket", sock, "--shm-root", folder, "--tt-shm-version", "off", "--pin-after", "first", *OWN
            )
            program = Program(bench)
            program.do("dev")
            program.do("own a 64")
            time.sleep(1)
            for others in (0, OTHERS):
                last = Follower(sock, follow=False).head["next"] - 1
                more = [Follower(sock, f"after={last}") for _ in range(others)]
                follower = Follower(sock, f"pid={program.pid}&after={last}")
                floor = healthz(sock)
                busy, slept = latencies(program, follower, count // (2 if others else 1))
                report(f"live_advice_{others + 1}_followers", busy, floor)
                report(f"live_advice_{others + 1}_followers_after_sleep", slept, floor)
                for f in (*more, follower):
                    f.close()
            print(
                "live_advice_host: longest gap between two rounds "
                f"{api(sock, '/v1/status')['window']['longest_gap_ns'] / 1e6:.1f} ms, "
                f"load average {os.getloadavg()[0]:.1f}"
            )
        finally:
            bench.close()


if __name__ == "__main__":
    main()
