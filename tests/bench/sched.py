#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""sched.py [SECONDS]: what measuring CPU time costs while a host switches a lot (tests/standin/load.c,
`switch`), about a minute.

Prints switches and records a second, the share of the host's CPU that the BPF programs
(kernel.bpf_stats_enabled) and the daemon's threads take, both also scaled to 100,000 switches a
second, memory beside the rings and how much it grew, and whether every slot added up. The goal:
under 0.6 % of the host and 64 MiB. As root, after `make bench-build e2e-build`.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("O", ".output"))
STATS = "/proc/sys/kernel/bpf_stats_enabled"


def ask(sock, command):
    out = subprocess.run(
        [os.path.join(OUT, "bin/ttmon"), command, "--json", "--socket", sock],
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(out.stdout)


def cpu_ns(pid):
    """Of all threads."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))


def sample(pid, sock):
    status, probes = ask(sock, "status"), ask(sock, "probes")
    return {
        "t": time.monotonic(),
        "cpu": cpu_ns(pid),
        "bpf": sum(p["run_ns"] for p in probes["programs"]),
        "switches": status["cpu"]["switches"],
        "events": status["events"]["decoded"],
        "rss": rss_kib(pid),
        "status": status,
    }


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    with open(STATS, encoding="ascii") as f:
        before = f.read()
    with tempfile.TemporaryDirectory() as folder:
        sock = os.path.join(folder, "sock")
        with open(STATS, "w", encoding="ascii") as f:
            f.write("1")
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
                "128",
                "--shm-root",
                folder,
                "--tt-shm-version",
                "off",
                "--quiet",
                "--log-level",
                "error",
            ]
        )
        try:
            time.sleep(2)
            load = subprocess.Popen(
                [os.path.join(OUT, "tests/standin/load"), "switch", str(seconds + 4)], stdout=subprocess.DEVNULL
            )
            time.sleep(2)
            a = sample(daemon.pid, sock)
            time.sleep(seconds)
            b = sample(daemon.pid, sock)
            load.wait()
        finally:
            daemon.terminate()
            daemon.wait()
            with open(STATS, "w", encoding="ascii") as f:
                f.write(before)
    host = (b["t"] - a["t"]) * 1e9 * os.cpu_count()
    rate = (b["switches"] - a["switches"]) / (b["t"] - a["t"])
    bpf, user = (b["bpf"] - a["bpf"]) / host * 100, (b["cpu"] - a["cpu"]) / host * 100
    cpu = b["status"]["cpu"]
    print(
        f"{rate:,.0f} switches/s, {(b['events'] - a['events']) / (b['t'] - a['t']):,.0f} records/s on "
        f"{os.cpu_count()} CPUs"
    )
    print(
        f"share of the host: BPF {bpf:.2f} %, daemon {user:.2f} %; at 100,000 switches/s BPF {bpf * 1e5 / rate:.2f} %,"
        " together "
        f"{bpf * 1e5 / rate + user:.2f} % (goal 0.6)"
    )
    print(
        f"memory beside the rings: {b['rss'] / 1024:.1f} MiB, {(b['rss'] - a['rss']):+d} KiB in {seconds:.0f} s (goal "
        "64 MiB)"
    )
    print(
        f"slots: {cpu['exact']:,} of {cpu['slots']:,} add up exactly, missing {cpu['missing_ns']} ns, lost "
        f"{sum(b['status']['events']['lost'].values())}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
