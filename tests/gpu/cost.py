#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""cost.py: what a call of CUDA costs, traced and untraced, in turns in one run of one program.
Called by parts.py."""
import json
import os
import statistics
import subprocess
import sys

from gpu import CUDART, LIBCUDA, ON_STANDIN, TRACE, Part, needs_bpf, needs_device, needs_runtime, program, standin_env
from e2e import SLOW, Skip, true

part = Part("cost")
ROUNDS, MILLISECONDS = (1, 20) if ON_STANDIN else (3, 100)
# What stands between the program and its calls.
WAYS = {"untraced": None, "--pid": (), "--pid, counting only": ("--trace-only",)}


def start(bench):
    needs_device()
    needs_runtime()
    argv = [program("calls"), LIBCUDA, CUDART]
    try:
        return bench.target(*argv, env=standin_env())
    except AssertionError:
        done = subprocess.run(
            argv,
            input="",
            capture_output=True,
            text=True,
            timeout=60 * SLOW,
            check=False,
            env={**os.environ, **standin_env()},
        )
        raise Skip(f"calls does not start ({done.returncode}): {done.stderr.strip()}") from None


def turn(target):
    """{call: ns}."""
    os.write(target.proc.stdin.fileno(), f"{MILLISECONDS}\n".encode())
    return {name: ns / calls for name, (calls, ns) in json.loads(target.line(60)).items() if calls}


def table(took, ways):
    rows = {}
    for name in took["untraced"][0]:
        median = {way: statistics.median(t[name] for t in took[way]) for way in ways}
        rows[name] = {
            way: {"ns": round(median[way]), "ratio": round(median[way] / max(median["untraced"], 1e-3), 2)}
            for way in ways
        }
    return rows


def measured(bench, ways):
    target = start(bench)
    turn(target)  # the first one warms up
    took = {way: [] for way in ways}
    says = {}
    for _ in range(ROUNDS):
        for way in ways:
            daemon = (
                bench.daemon("--quiet", *TRACE, "--pid", str(target.pid), *WAYS[way]) if WAYS[way] is not None else None
            )
            took[way].append(turn(target))
            if daemon:
                daemon.stop()
                says[way] = daemon.stderr()[-1500:].splitlines()
    rows = table(took, ways)
    part.fact("ns a call", rows)
    part.fact("rounds", {"rounds": ROUNDS, "ms each": MILLISECONDS, "all, ns": took, "ttmond says": says})
    print("  " + " | ".join(["call", *ways]))
    for name, row in rows.items():
        print(
            "  "
            + " | ".join(
                [
                    name,
                    *(f"{row[w]['ns']:,} ns" + (f" ({row[w]['ratio']:.2f})" if w != "untraced" else "") for w in ways),
                ]
            )
        )
    true("no call works", rows)
    return rows


def untraced(bench):
    """Where nothing may be traced, what the calls cost by themselves."""
    try:
        needs_bpf()
    except Skip:
        return f"{len(measured(bench, ('untraced',)))} calls"
    raise Skip("measured with the traced ones")


def traced(bench):
    """ns a call; the ratio to the untraced call of the same run. Medians of the rounds."""
    needs_bpf()
    rows = measured(bench, tuple(WAYS))
    return "; ".join(
        f"{name}: {row['untraced']['ns']:,} ns, x{row['--pid']['ratio']:.2f} traced" for name, row in rows.items()
    )


part.check(traced)
part.check(untraced)
sys.exit(part.status())
