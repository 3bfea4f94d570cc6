#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""gaps.py [--rounds N] [--ms MS] [--way WORD]... [--library NAME]... [--daemon PATH]...

What is missed of a library's first calls, by how a program comes to be traced. For each way (-- CMD, --pid, a
service that knows the library, looked ahead, or meets it) and each library (the stand-ins of libcudart and
tt-metal; a runtime of which the kernel refuses one function; NVIDIA's driver where make real-libs has fetched
it, not initialised): from the mapping of the library to active probes by the daemon (median, worst), the same
from the first call to the first one that was seen by the program's own book, and the calls missed of those made
in MS milliseconds, one of each function each 20 us. The database is held against the book in each run: it is an
error of ours if it says complete, or has no gap, where calls were missed. --daemon: others to compare with, in
turns. As root, on a machine without other work, after `make all e2e-build`; about 40 s for each round.
"""
import argparse
import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
# pylint: disable=wrong-import-position
import e2e  # noqa: E402
import gap_host  # noqa: E402


def run_cell(how, state, args):
    """The cell, and whether the database agrees with the book."""
    with tempfile.TemporaryDirectory(prefix="ttmon-gaps-") as folder:
        bench = e2e.Bench(folder)
        try:
            cell = how(bench, state, args.ms)
        finally:
            bench.close()
    try:
        if cell:
            cell.check(state)
    except AssertionError as why:
        print(f"WRONG {why}")
        return cell, False
    return cell, True


def middle(values):
    return f"{statistics.median(values):8.0f} {max(values):8.0f}" if values else f"{'-':>8} {'-':>8}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--ms", type=int, default=150)
    parser.add_argument("--way", action="append")
    parser.add_argument("--library", action="append")
    parser.add_argument("--daemon", action="append", default=[])
    args = parser.parse_args()
    if os.geteuid():
        print("SKIP: needs root")
        return 0
    daemons = [e2e.TTMOND, *args.daemon]
    cells = [
        (w, how, s)
        for w, how, _ in gap_host.WAYS
        for s in gap_host.states()
        if (not args.way or any(x in w for x in args.way)) and (not args.library or s.name in args.library)
    ]
    heads = " ".join(f"{head:>8}" for head in ("gap, us", "worst", "by book", "worst", "missed", "worst"))
    print(f"{'':24} {'library':12} {heads}  of calls, runs complete")
    failed = False
    for way, how, state in cells:
        seen = {d: ([], [], [], [], []) for d in daemons}
        for _ in range(args.rounds):
            for daemon in daemons:
                e2e.TTMOND = daemon
                cell, agrees = run_cell(how, state, args)
                failed |= not agrees and daemon == daemons[0]
                if not cell:
                    continue
                missed = cell.missed(state.functions)
                windows, by_book, lost, made, complete = seen[daemon]
                windows += [w for w in cell.windows if w is not None]
                by_book.append(cell.blind_us(missed))
                lost.append(sum(missed.values()))
                made.append(sum(len(cell.book["calls"][f]) for f in state.functions))
                complete.append(cell.complete)
        for daemon in daemons:
            windows, by_book, lost, made, complete = seen[daemon]
            if made:
                name = way if daemon == daemons[0] else f"{way}, {daemon.split(os.sep)[-4]}"
                print(
                    f"{name:24} {state.name:12} {middle(windows)} {middle(by_book)} {middle(lost)}  "
                    f"of {statistics.median(made):.0f}, {sum(complete)} of {len(complete)}",
                    flush=True,
                )
    print(f"gaps_host: load average {os.getloadavg()[0]:.1f}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
