#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""programs.py [RATE [SECONDS [REPEATS]]]: runs of Tenstorrent programs as a stream, at RATE records a
second (100000) for SECONDS (10).

The stand-in tt-metal hands batches of 128 records to its profiler's consumer. Four programs follow
through libttmon, the first of them the sender's runs alone, the others all of the host; one more is
stopped for half of the time. None of the four may miss any: the first must hear what was sent, each
other one heard + missed must be what the daemon has told. Printed: records sent, lost before the
daemon, told and missed, and the CPU time of the daemon's hot and cold threads, of a subscriber and
of the sender, as shares of one CPU. As root, after `make e2e-build`.
"""
import json
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
# pylint: disable=wrong-import-position
from e2e import Bench, standin, tt_env  # noqa: E402
from live_host import Follower  # noqa: E402
from tt_host import api, retry  # noqa: E402

FOUR = 4


def threads(pid):
    """CPU seconds by name of the thread."""
    ret = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/schedstat", encoding="ascii") as f, open(
            f"/proc/{pid}/task/{tid}/comm", encoding="ascii"
        ) as name:
            ret[name.read().strip()] = int(f.read().split()[0]) / 1e9
    return ret


def asked(target):
    target.go()
    return json.loads(target.line(60))


def lost(sock):
    return api(sock, "/v1/status")["identity"]["lost"]


def head(sock):
    return Follower(sock, "after=4000000000000000000", follow=False, route="/v1/tt/programs").head


def run(rate, seconds):
    with tempfile.TemporaryDirectory(prefix="ttmon-bench-") as folder:
        bench = Bench(folder, True)
        try:
            sock = bench.path("sock")
            daemon = bench.daemon(
                "--socket", sock, "--shm-root", folder, "--tt-shm-version", "off", "--max-overhead", "0"
            )
            flood = bench.target(
                standin("ttflood"),
                "--rate",
                str(rate),
                "--seconds",
                str(seconds),
                "--batch",
                "128",
                env=tt_env("e2b48"),
            )
            retry(20, lambda: api(sock, "/v1/probes")["objects"][0])
            time.sleep(1)
            subs = [
                bench.target(standin("libttmon_programs"), "-c", *(("-p", str(flood.pid)) if i == 0 else ()), sock)
                for i in range(FOUR + 1)
            ]
            time.sleep(0.5)
            pid = daemon.proc.pid
            told, before, cpu, lost_before = (
                head(sock)["next"] - 1,
                threads(pid),
                [asked(s)["cpu_s"] for s in subs],
                lost(sock),
            )
            flood_before = sum(threads(flood.pid).values())
            begin = time.monotonic()
            flood.go()
            time.sleep(seconds / 4)
            os.kill(subs[-1].pid, signal.SIGSTOP)
            time.sleep(seconds / 2)
            os.kill(subs[-1].pid, signal.SIGCONT)
            sent = json.loads(flood.line(20 * seconds))
            after, took = threads(pid), time.monotonic() - begin
            flood_cpu = sum(threads(flood.pid).values()) - flood_before
            gone = lost(sock) - lost_before
            time.sleep(1)
            all_told = head(sock)["next"] - 1
            end = time.monotonic() + 20
            while True:
                stats = [asked(s) for s in subs]
                exact = stats[0]["runs"] == sent["sent"] - gone and all(
                    s["runs"] + s["missed"] + s["earlier"] == all_told for s in stats[1:]
                )
                if exact or time.monotonic() > end:
                    break
                time.sleep(0.2)
            share = {name: (after[name] - before.get(name, 0)) / took for name in after}
            names = {"hot": share.pop("ttmond-hot"), "cold": share.pop("ttmond"), "others": sum(share.values())}
            four = stats[:FOUR]
            exact = exact and not any(s["out_of_order"] for s in stats)
            print(
                f"programs_{rate}: sent {sent['sent']} in {sent['seconds']:.2f} s "
                f"({sent['sent'] / sent['seconds']:.0f}/s), lost {gone} before the daemon, "
                f"told {all_told - told}, heard by the four {[s['runs'] for s in four]}, missed "
                f"{[s['missed'] + s['earlier'] for s in four]}, the stopped one heard {stats[-1]['runs']}, missed "
                f"{stats[-1]['missed']} (connects {stats[-1]['connects']}); "
                f"all books exact: {exact}",
                flush=True,
            )
            print(
                f"programs_{rate}_cpu: hot {names['hot']:.3f}, cold {names['cold']:.3f}, others {names['others']:.3f}, "
                f"a subscriber {sum(s['cpu_s'] - c for s, c in zip(four, cpu)) / FOUR / took:.3f}, sender with its "
                f"probes {flood_cpu / took:.3f}, "
                f"load average {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            flood.go()
            flood.finish()
            return exact and not any(s["missed"] or s["earlier"] for s in four) and gone == 0
        finally:
            bench.close()


def main():
    rate = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10
    good = [run(rate, seconds) for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 1)]
    print(f"programs_{rate}: {sum(good)} of {len(good)} without a loss")


if __name__ == "__main__":
    main()
