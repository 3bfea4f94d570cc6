#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""waits.py: how a thread waits in synchronous calls of the driver, and who wakes it. Called by
parts.py.

One program (waits.c) makes each call a few times, by each way of waiting that a context can ask
for. The kernel's own books say how much of a call was on a CPU, in a run queue, and blocked; its
trace events say who woke the thread.
"""
import collections
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys

from gpu import LIBCUDA, ON_STANDIN, Part, needs_device, program, standin_env, text_of
from e2e import SLOW, Skip, true

part = Part("waits")
TRACING = "/sys/kernel/tracing"
WAYS = {"auto": 0, "spin": 1, "yield": 2, "blocking": 4}


class Wakes:
    """sched_waking of one thread, in an instance of tracefs of its own."""

    def __init__(self):
        self.dir = f"{TRACING}/instances/ttmon-waits-{os.getpid()}"
        self.on = False

    def __enter__(self):
        with contextlib.suppress(OSError):
            os.mkdir(self.dir)
            self.on = True
        return self

    def put(self, name, value):
        with open(f"{self.dir}/{name}", "w", encoding="utf-8") as f:
            f.write(value)

    def start(self, tid):
        if not self.on:
            return
        try:
            self.put("events/sched/sched_waking/filter", f"pid == {tid}")
            self.put("events/sched/sched_waking/enable", "1")
        except OSError:
            self.on = False

    def found(self):
        """{who: times}: the waker's name, and whether an interrupt woke: trace-cmd's flags, fourth letter h, H or s."""
        who = collections.Counter()
        for line in (text_of(f"{self.dir}/trace", 64 << 20) or "").splitlines() if self.on else ():
            m = re.match(r"\s*(.+)-(\d+)\s+\[\d+\]\s+(\S{5,6})\s", line)
            if m:
                kind = m[3][2]
                who[f"{'interrupt' if kind in 'hHzZ' else 'soft interrupt' if kind == 's' else 'thread ' + m[1]}"] += 1
        return dict(who)

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            os.rmdir(self.dir)


def median(row, name):
    return statistics.median(row[name])


def way(_, name, flags):
    needs_device()
    with Wakes() as wakes:
        with subprocess.Popen(
            [program("waits"), LIBCUDA, str(flags)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **standin_env()},
        ) as proc:
            ready = proc.stdout.readline().split()
            if ready[:1] != ["ready"]:
                raise Skip(f"waits does not start: {proc.stderr.read().strip()}")
            wakes.start(int(ready[1]))
            out, err = proc.communicate("\n", timeout=60 * SLOW)
        rows = {row.pop("call"): row for row in map(json.loads, out.splitlines())}
        true(f"it ended with {proc.returncode}: {err[-300:]}", proc.returncode == 0 and rows)
        who = wakes.found()
    part.fact(name, {"calls": rows, "woken by": who if wakes.on else "no tracefs"})
    print(f"  {name}: ms, of it on a CPU, in the run queue; switches; faults; where it was seen")
    for call, row in rows.items():
        print(
            f"  {name}: {call}: {median(row, 'ms'):.3f}, {median(row, 'cpu'):.3f}, {median(row, 'queue'):.3f}; "
            f"{median(row, 'switches'):.0f}; "
            f"{median(row, 'faults'):.0f}; {row['seen']}"
        )
    # What the kernel accounts to the thread is never longer than the call, but for its own clock's grain.
    for call, row in rows.items():
        for ms, cpu, queue in zip(row["ms"], row["cpu"], row["queue"]):
            true(f"{call}: {cpu} + {queue} of {ms} ms", cpu + queue <= ms * 1.02 + 0.1)
    return f"woken by {who}" if wakes.on else "no tracefs, so nobody knows who woke it"


for key, value in WAYS.items():
    if ON_STANDIN and value:
        continue
    part.check(way, key, value, name=key)
sys.exit(part.status())
