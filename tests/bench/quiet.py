#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""quiet.py [-s SECONDS] [-r ROUNDS] [-t] [-d TTMOND]... [LOAD]...: what the service takes of the host
at its defaults, by load.

Loads: idle; copies-N, N copies a second (tests/standin/pace.c); build, `make -j2` of ttmon itself
in a copy of the tree; switches-N, N switches a second by a pair of threads on each CPU that wake
each other (tests/standin/load.c). For each: the daemon's threads, and the BPF programs by family,
in percent of the host's CPU time; wake-ups a second of the hot and the cold thread; families that
the budget reduced. With -d several daemons take turns under each load, ROUNDS times, the oldest
first, or with -t run at once, so that what others do on the host is the same for all: medians, and
the last one's share by the first one's. Beside them: what a thread takes that only wakes up as
often as the hot thread (bench_wake.c), at the same time, and how busy others kept the host. As
root, after `make bench-build e2e-build`, best on a host with nothing else to do; SECONDS (20) for
each.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(TOP, os.environ.get("O", ".output"))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
# pylint: disable=wrong-import-position
from tt_host import Unix  # noqa: E402

LOADS = (
    "idle",
    "copies-0.1",
    "copies-1",
    "copies-5",
    "copies-100",
    "copies-2000",
    "copies-100000",
    "switches-100000",
    "build",
)
GOALS = {"idle": 0.3, "copies-2000": 0.6, "build": 0.6}


def ask(sock, path):
    conn = Unix(sock)
    conn.request("GET", path)
    return json.loads(conn.getresponse().read())


def threads(pid):
    """{name: [CPU time in ns, times that it waited]}; "cold" is the main thread."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            ns = int(f.read().split()[0])
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as f:
            lines = dict(line.split(":", 1) for line in f if ":" in line)
        row = found.setdefault("cold" if int(tid) == pid else lines["Name"].strip(), [0, 0])
        row[0] += ns
        row[1] += int(lines["voluntary_ctxt_switches"])
    return found


def busy_ns():
    """CPU time that somebody used, of all CPUs."""
    with open("/proc/stat", encoding="ascii") as f:
        ticks = [int(x) for x in f.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) * 1e9 / os.sysconf("SC_CLK_TCK")


def sample(pid, sock):
    families = ask(sock, "/v1/families")["families"]
    return time.monotonic(), threads(pid), {f["name"]: (f["run_ns"], f["state"]) for f in families}


def start_load(load, seconds, folder):
    if load == "idle":
        return None
    if load.startswith("switches-"):
        argv = [os.path.join(OUT, "tests/standin/load"), "paced", str(seconds + 6), load.split("-")[1]]
    elif load == "build":
        tree = os.path.join(folder, "tree")
        if not os.path.exists(tree):
            subprocess.run(["git", "clone", "-q", TOP, tree], check=True)
        # More than once where it takes less than the measurement.
        argv = [
            "sh",
            "-c",
            f"end=$(($(date +%s) + {int(seconds) + 6})); while [ $(date +%s) -lt $end ]; do make -C {tree} -s clean; "
            f"timeout $((end - $(date +%s) + 1)) make -C {tree} -s -j2 >/dev/null 2>&1; done",
        ]
    else:
        argv = [os.path.join(OUT, "tests/standin/pace"), load.split("-")[1], str(seconds + 6)]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True)


def start_daemon(ttmond, folder):
    sock = os.path.join(folder, "sock")
    return sock, subprocess.Popen(
        [ttmond, "--socket", sock, "--listen-address", "none", "--shm-root", folder, "--tt-shm-version", "off", "-q"],
        stderr=subprocess.PIPE,
        text=True,
    )


def difference(a, b, said, floor, busy):
    """Of two samples of a daemon: shares of the host in percent, by what takes them."""
    took = b[0] - a[0]
    host = took * 1e7 * os.cpu_count()
    own = {n: [now - was for now, was in zip(row, a[1].get(n, [0, 0]))] for n, row in b[1].items()}
    bpf = {n: (ns - a[2][n][0]) / host for n, (ns, _) in b[2].items()}
    all_own = sum(ns for ns, _ in own.values()) / host
    return {
        "all": all_own + sum(bpf.values()),
        "daemon": all_own,
        "hot": own["ttmond-hot"][0] / host,
        "cold": own["cold"][0] / host,
        "bpf": sum(bpf.values()),
        "hot_wakes": own["ttmond-hot"][1] / took,
        "cold_wakes": own["cold"][1] / took,
        "floor": floor,
        "host": busy / host,
        "families": bpf,
        "reduced": re.findall(r"over budget \(.*\): (.*?)(?:, which.*,)? is only counted", said),
    }


def measure(ttmonds, load, seconds, folder):
    """These daemons at once under the load: a difference() for each."""
    folders = [os.path.join(folder, str(i)) for i in range(len(ttmonds))]
    for own in folders:
        os.mkdir(own)
    daemons = [start_daemon(ttmond, own) for ttmond, own in zip(ttmonds, folders)]
    work = None
    try:
        while not all(os.path.exists(sock) for sock, _ in daemons):
            time.sleep(0.1)
        time.sleep(2)
        work = start_load(load, seconds, folder)
        time.sleep(3)
        wake = subprocess.Popen(
            [os.path.join(OUT, "tests/bench/bench_wake"), "15", str(int(seconds))], stdout=subprocess.PIPE, text=True
        )
        a, busy = [sample(d.pid, sock) for sock, d in daemons], busy_ns()
        time.sleep(seconds)
        b, busy = [sample(d.pid, sock) for sock, d in daemons], busy_ns() - busy
        floor = float(re.search(r"([0-9.]+) % of the host", wake.communicate()[0]).group(1))
    finally:
        if work:
            os.killpg(work.pid, 9)
            work.wait()
        for _, d in daemons:
            d.terminate()
        said = [d.communicate()[1] for _, d in daemons]
    return [difference(x, y, text, floor, busy) for x, y, text in zip(a, b, said)]


def tell(load, ttmond, rows):
    """The medians of all rounds, and the least and most of the whole. Returns the median of the whole."""
    med = {k: statistics.median(r[k] for r in rows) for k, v in rows[0].items() if isinstance(v, float)}
    families = {n: statistics.median(r["families"][n] for r in rows) for n in rows[0]["families"]}
    alls = [r["all"] for r in rows]
    goal = f", GOAL RATIO {med['all'] / GOALS[load]:.2f}" if load in GOALS else ""
    print(
        f"{load:14} {os.path.basename(ttmond)}: {med['all']:.2f} % of the host ({min(alls):.2f} to {max(alls):.2f}): "
        f"daemon {med['daemon']:.2f} "
        f"(hot {med['hot']:.2f}, cold {med['cold']:.2f}), BPF {med['bpf']:.2f} "
        f"({', '.join(f'{n} {x:.2f}' for n, x in families.items() if x > 0.005)}); wake-ups/s hot "
        f"{med['hot_wakes']:.0f}, cold {med['cold_wakes']:.0f}; "
        f"waking alone {med['floor']:.2f}; host {med['host']:.0f} % busy; reduced: "
        f"{'; '.join(sorted({x for r in rows for x in r['reduced']})) or 'nothing'}{goal}",
        flush=True,
    )
    return med["all"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-s", "--seconds", type=float, default=20)
    parser.add_argument("-r", "--rounds", type=int, default=1)
    parser.add_argument("-t", "--together", action="store_true")
    parser.add_argument("-d", "--daemon", action="append")
    parser.add_argument("loads", nargs="*", default=[])
    args = parser.parse_args()
    daemons = args.daemon or [os.path.join(OUT, "bin/ttmond")]
    for load in args.loads or LOADS:
        rows = {d: [] for d in daemons}
        for _ in range(args.rounds):
            for group in [daemons] if args.together else [[d] for d in daemons]:
                folder = tempfile.mkdtemp(prefix="ttmon-quiet-")
                try:
                    for ttmond, row in zip(group, measure(group, load, args.seconds, folder)):
                        rows[ttmond].append(row)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
        shares = [tell(load, ttmond, rows[ttmond]) for ttmond in daemons]
        if len(shares) > 1:
            print(f"{load:14} ratio {shares[-1] / shares[0]:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
