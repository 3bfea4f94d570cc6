#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""quiet.py [-s SECONDS] [-d TTMOND]... [LOAD]...: what the service takes of the host at its defaults, by load.

Loads: idle; copies-N, N copies a second (tests/standin/pace.c); build, `make -j2` of ttmon itself in a copy of the tree; switches, a pair of
threads on each CPU that wake each other (about 100,000 switches a second and more). For each: the daemon's threads, and the BPF programs by
family, in percent of the host's CPU time; wake-ups a second of the hot and the cold thread; families that the budget reduced. With -d several
daemons are measured one after the other under each load, so that an older build stands beside this one. As root, after `make bench-build
e2e-build`, on a host with nothing else to do; SECONDS (20) for each.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(TOP, os.environ.get("O", ".output"))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
# pylint: disable=wrong-import-position
from tt_host import Unix  # noqa: E402

LOADS = ("idle", "copies-0.1", "copies-1", "copies-5", "copies-100", "copies-2000", "copies-100000", "switches", "build")
GOALS = {"idle": 0.3, "copies-2000": 0.6, "build": 0.6}


def ask(sock, path):
    conn = Unix(sock)
    conn.request("GET", path)
    return json.loads(conn.getresponse().read())


def threads(pid):
    """{name: [CPU time in ns, times that it waited]}"""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f:
            ns = int(f.read().split()[0])
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as f:
            lines = dict(line.split(":", 1) for line in f if ":" in line)
        row = found.setdefault(lines["Name"].strip(), [0, 0])
        row[0] += ns
        row[1] += int(lines["voluntary_ctxt_switches"])
    return found


def sample(pid, sock):
    families = ask(sock, "/v1/families")["families"]
    return time.monotonic(), threads(pid), {f["name"]: (f["run_ns"], f["state"]) for f in families}


def start_load(load, seconds, folder):
    if load == "idle":
        return None
    if load == "switches":
        argv = [os.path.join(OUT, "tests/standin/load"), "switch", str(seconds + 6)]
    elif load == "build":
        tree = os.path.join(folder, "tree")
        if not os.path.exists(tree):
            subprocess.run(["git", "clone", "-q", TOP, tree], check=True)
        # More than once where it takes less than the measurement.
        argv = ["sh", "-c", f"end=$(($(date +%s) + {int(seconds) + 6})); while [ $(date +%s) -lt $end ]; do make -C {tree} -s clean; "
                f"timeout $((end - $(date +%s) + 1)) make -C {tree} -s -j2 >/dev/null 2>&1; done"]
    else:
        argv = [os.path.join(OUT, "tests/standin/pace"), load.split("-")[1], str(seconds + 6)]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True)


def measure(ttmond, load, seconds, folder):
    sock = os.path.join(folder, "sock")
    daemon = subprocess.Popen([ttmond, "--socket", sock, "--listen-address", "none", "--shm-root", folder, "--tt-shm-version", "off", "-q"],
                              stderr=subprocess.PIPE, text=True)
    work = None
    try:
        while not os.path.exists(sock):
            time.sleep(0.1)
        time.sleep(2)
        work = start_load(load, seconds, folder)
        time.sleep(3)
        a = sample(daemon.pid, sock)
        time.sleep(seconds)
        b = sample(daemon.pid, sock)
    finally:
        if work:
            os.killpg(work.pid, 9)
            work.wait()
        daemon.terminate()
        said = daemon.stderr.read()
        daemon.wait()
    took = b[0] - a[0]
    host = took * 1e9 * os.cpu_count()
    own = {n: (ns - a[1].get(n, [0, 0])[0], n_waits - a[1].get(n, [0, 0])[1]) for n, (ns, n_waits) in b[1].items()}
    bpf = {n: ns - a[2][n][0] for n, (ns, _) in b[2].items()}
    daemon_share, bpf_share = (sum(x) / host * 100 for x in ((ns for ns, _ in own.values()), bpf.values()))
    hot = own.get("ttmond-hot", (0, 0))
    cold = own.get("ttmond", (0, 0))
    reduced = re.findall(r"over budget \(.*\): (.*?)(?:, which.*,)? is only counted", said)
    goal = f", GOAL RATIO {(daemon_share + bpf_share) / GOALS[load]:.2f}" if load in GOALS else ""
    print(f"{load:14} {daemon_share + bpf_share:6.2f} % of the host: daemon {daemon_share:.2f} (hot {hot[0] / host * 100:.2f}, cold {cold[0] / host * 100:.2f}), "
          f"BPF {bpf_share:.2f} ({', '.join(f'{n} {ns / host * 100:.2f}' for n, ns in bpf.items() if ns / host > 0.00005)}); wake-ups/s hot "
          f"{hot[1] / took:.0f}, cold {cold[1] / took:.0f}; reduced: {'; '.join(reduced) or 'nothing'}{goal}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-s", "--seconds", type=float, default=20)
    parser.add_argument("-d", "--daemon", action="append")
    parser.add_argument("loads", nargs="*", default=[])
    args = parser.parse_args()
    for load in args.loads or LOADS:
        for ttmond in args.daemon or [os.path.join(OUT, "bin/ttmond")]:
            if args.daemon:
                print(f"{ttmond}: ", end="")
            folder = tempfile.mkdtemp(prefix="ttmon-quiet-")
            try:
                measure(ttmond, load, args.seconds, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
