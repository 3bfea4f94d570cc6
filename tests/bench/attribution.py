#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""attribution.py [SECONDS [ROUNDS]]: the CPU time that ttmond gives to processes, held against the kernel's books.

Loads of tests/standin/load.c, interleaved, each SECONDS (default 4) long, ROUNDS (default 2) times, a minute. For each
load: the time of its processes by their slots (/v1/processes) less what the scheduler charged them (sum_exec_runtime,
by wait4; the first number of /proc/PID/schedstat), as a share of the latter; what the hypervisor stole meanwhile
(/proc/stat), the part that fell on the load; interrupts (counted at ticks: a hint; without CONFIG_IRQ_TIME_ACCOUNTING
they are in both books); what stays without the steal, as a share and for each switch. bench_attribution says what that
is. As root, after `make bench-build e2e-build`; other programs that run take time from the loads, and preempt them.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("O", ".output"))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.dont_write_bytecode = True

import tt_host  # noqa: E402

CPUS = os.cpu_count()
TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
LOAD = os.path.join(OUT, "tests/standin/load")
LOADS = {"spin": CPUS, "threads": 2 * CPUS, "sleep": 2 * CPUS, "switch": 0, "forks": 400}


def books():
    """Of all CPUs, in ns: what was stolen, what interrupts took, and what was not idle."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _idle, _iowait, irq, softirq, steal = [int(x) * TICK for x in f.readline().split()[1:9]]
    return {"steal": steal, "irq": irq + softirq, "busy": user + nice + system + irq + softirq}


def processes(sock, pids):
    """Time of these processes, once all of them have ended."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        all_of_them = tt_host.api(sock, "/v1/processes")["processes"]
        found = {p["pid"]: p for p in all_of_them if p["pid"] in pids}
        if len(found) == len(pids) and all(p["ended"] for p in found.values()):
            return sum(p["cpu_ns"] for p in found.values())
        time.sleep(0.05)
    raise SystemExit("the processes of a load are not there, or have not ended")


def run(sock, mode, seconds):
    # Processes are kept for two seconds after their end: many short ones are asked for by parts.
    count, before = LOADS[mode], books()
    sums = {"attributed": 0, "charged": 0, "switches": 0}
    for _ in range(count // 50 if mode == "forks" else 1):
        args = [mode, str(seconds), str(min(count, 50))]
        done = subprocess.run([LOAD, *args], capture_output=True, text=True, check=True)
        book = json.loads(done.stdout.splitlines()[-1])
        sums["attributed"] += processes(sock, {c["pid"] for c in book["children"]})
        sums["charged"] += 1000 * sum(c["cpu_us"] for c in book["children"])
        sums["switches"] += sum(c["switches"] for c in book["children"])
    after = books()
    for name in ("steal", "irq", "busy"):
        sums[name] = after[name] - before[name]
    return sums


def line(mode, rounds):
    shares = [100 * (r["attributed"] - r["charged"]) / r["charged"] for r in rounds]
    total = {name: sum(r[name] for r in rounds) for name in rounds[0]}
    difference = total["attributed"] - total["charged"]
    # Whoever runs is who is stolen from.
    stolen = total["steal"] * min(1, total["charged"] / max(1, total["busy"]))
    rest = difference - stolen
    charged = total["charged"]
    return (
        f"{mode:8} {charged / 1e9:7.2f} s  {100 * difference / charged:+6.2f} %  ({min(shares):+.2f} .. "
        f"{max(shares):+.2f}, "
        f"median {statistics.median(shares):+.2f})  stolen {100 * stolen / charged:5.2f} %  interrupts "
        f"{100 * total['irq'] / total['busy']:5.2f} %  rest {100 * rest / charged:+6.2f} %, "
        f"{rest / max(1, total['switches']):+7.0f} ns a switch"
    )


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 4
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    rounds = {mode: [] for mode in LOADS}
    with tempfile.TemporaryDirectory() as folder:
        sock = os.path.join(folder, "sock")
        daemon = subprocess.Popen(
            [
                os.path.join(OUT, "bin/ttmond"),
                "--socket",
                sock,
                "--max-overhead",
                "0",
                "--listen-address",
                "none",
                "--shm-slots",
                "0",
                "--cpu",
                "on",
                "--tt-shm-version",
                "off",
                "--quiet",
                "--log-level",
                "error",
            ]
        )
        try:
            time.sleep(2)
            for _ in range(count):
                for mode in LOADS:
                    rounds[mode].append(run(sock, mode, seconds))
            status = tt_host.api(sock, "/v1/status")["cpu"]
        finally:
            daemon.terminate()
            daemon.wait()
    print("load     charged    attributed is more by                             of that")
    for mode, results in rounds.items():
        print(line(mode, results))
    print(
        f"slots: {status['exact']:,} of {status['slots']:,} add up exactly; missing {status['missing_ns']} ns, late "
        f"{status['late_ns']} ns, switches unseen {status['switches_unseen']}, mismatch {status['mismatch_ns']} ns"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
