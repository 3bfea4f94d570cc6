#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""start.py [--rounds N] [--daemon PATH]...: what `ttmond -- CMD` takes more than CMD alone, and what
is left behind for how long.

For a command that does nothing and for one that maps the stand-ins of libcuda and libcudart, in
turns: bare; under ttmond; the same without system calls for mappings (--no-mmap); under ttmond at
once after another such run, whose links are still being closed; and bare in that time. Each turn
begins when nothing of the one before is left. The process that closes the links after ttmond has
ended (daemon/io/bpf/closer.h) becomes our child, as we are a child subreaper: its end is seen, also
when it is killed at once. As long as it lives, getppid() is timed, and as often afterwards.
--daemon: another ttmond, to compare with, in the same turns. As root, on a machine without other
work, after `make all e2e-build`; about 6 s for each round.
"""
import argparse
import ctypes
import os
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("O", ".output"))
LIBS = [os.path.join(OUT, "tests", "standin", "lib", n) for n in ("libcuda.so.1", "libcudart.so.13")]
COMMANDS = {
    "nothing": ["/usr/bin/python3", "-c", "pass"],
    "libraries": ["/usr/bin/python3", "-c", "import ctypes, sys; [ctypes.CDLL(x) for x in sys.argv[1:]]", *LIBS],
}
GOAL_MS = 120
PR_SET_CHILD_SUBREAPER = 36
CALLS = 500  # of getppid(), for one figure


def left():
    """The helpers of a ttmond that has ended: our children by now."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def wait_for_helpers():
    while left():
        time.sleep(0.001)


def kill_helpers():
    with open("/proc/thread-self/children", encoding="ascii") as f:
        for pid in f.read().split():
            os.kill(int(pid), signal.SIGKILL)


def run(args):
    start = time.perf_counter()
    done = subprocess.run(
        args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    took = (time.perf_counter() - start) * 1e3
    if done.returncode:
        sys.exit(f"{' '.join(args)}: {done.returncode} {done.stderr.decode()[-300:]}")
    return took


def getppid_ns():
    start = time.perf_counter()
    for _ in range(CALLS):
        os.getppid()
    return (time.perf_counter() - start) / CALLS * 1e9


def one_round(cmd, daemons, seen):
    """One turn of each; what it took goes into the lists of seen."""

    def put(name, value):
        seen.setdefault(name, []).append(value)

    put("bare", run(cmd))
    for i, daemon in enumerate(daemons):
        put(f"traced {i}", run([daemon, "--", *cmd]))
        end = time.perf_counter()
        calls = []
        while left():
            calls.append(getppid_ns())
        put(f"left {i}", (time.perf_counter() - end) * 1e3)
        if not i and calls:
            put("getppid while left", statistics.median(calls))
            put("getppid after", statistics.median([getppid_ns() for _ in calls]))
    run([daemons[0], "--", *cmd])
    end = time.perf_counter()
    kill_helpers()
    wait_for_helpers()
    put("left killed", (time.perf_counter() - end) * 1e3)
    put("no-mmap", run([daemons[0], "--no-mmap", "--", *cmd]))
    wait_for_helpers()
    run([daemons[0], "--", *cmd])
    put("again", run([daemons[0], "--", *cmd]))
    wait_for_helpers()
    run([daemons[0], "--", *cmd])
    put("bare while left", run(cmd))
    wait_for_helpers()


def report(name, seen, daemons):
    middle = {k: statistics.median(v) for k, v in seen.items()}
    bare = middle["bare"]

    def line(key, what, goal=False):
        more = middle[key] - bare
        print(
            f"start_{name}_{what}: {middle[key]:.0f} ms ({min(seen[key]):.0f} to {max(seen[key]):.0f}), floor "
            f"{bare:.1f} ms (bare), "
            f"{more:.0f} ms more" + (f", GOAL {GOAL_MS} ms: {'met' if more <= GOAL_MS else 'MISSED'}" if goal else ""),
            flush=True,
        )

    for i, daemon in enumerate(daemons):
        line(f"traced {i}", "traced" if not i else f"traced_by_{daemon}", goal=name == "nothing")
        print(
            f"left_{name}{'' if not i else '_by_' + daemon}: {middle[f'left {i}']:.0f} ms "
            f"({min(seen[f'left {i}']):.0f} to "
            f"{max(seen[f'left {i}']):.0f}) after its end a helper was there"
        )
    print(
        f"left_{name}_killed: {middle['left killed']:.0f} ms ({min(seen['left killed']):.0f} to "
        f"{max(seen['left killed']):.0f}), "
        "the helpers killed at the end"
    )
    line("no-mmap", "traced_no_mmap")
    line("again", "traced_right_after_another")
    line("bare while left", "bare_while_links_are_left")
    if "getppid after" in middle:
        print(
            f"left_{name}_getppid: {middle['getppid while left']:.0f} ns while links are left, floor "
            f"{middle['getppid after']:.0f} ns "
            f"(afterwards), RATIO {middle['getppid while left'] / middle['getppid after']:.2f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--daemon", action="append", default=[])
    args = parser.parse_args()
    daemons = [os.path.join(OUT, "bin", "ttmond"), *args.daemon]
    if os.geteuid():
        print("SKIP: needs root")
        return
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for name, cmd in COMMANDS.items():
        seen = {}
        one_round(cmd, daemons, {})
        for _ in range(args.rounds):
            one_round(cmd, daemons, seen)
        report(name, seen, daemons)
    print(f"start_host: load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
