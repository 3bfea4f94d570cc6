#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""pinning.py [WORKLOAD...]: what a traced run saves the next one: pinned pages of an advised run
against other ways of pinning.

For each workload of tests/standin/work.c (patterns of PyTorch, vLLM and DeepSpeed; the file says
which and where their figures are from):

  1. a run as it is, everything pinned, is traced into a database (seed 1);
  2. another course of the same pattern (seed 2: other sizes, other order) is traced as it is: what
  the policies are computed from;
  3. that course again with libttmon-pin.so, advised by the database of step 1 alone, and traced:
  what it really pinned.

The table has peak pinned pages. `advised` is measured, the other columns are `ttmon advise` on the
database of step 2. `share`: of the bytes moved between host and device, from or to pinned memory.
`pins`: calls that pinned memory, over the whole run. `ms`: transfers, pages and calls by the cost
model at 50 us for each call that pins or unpins; of `advised` by what was measured. As root, after
`make e2e-build`; about a minute. --json FILE: the figures.
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("O", ".output"))
WORKLOADS = ("train", "serve", "offload", "churn", "kvcache")


def trace(folder, name, cmd, env=None):
    """Run it under ttmond; the database's path."""
    db = os.path.join(folder, f"{name}.json.gz")
    subprocess.run(
        [f"{OUT}/bin/ttmond", "-q", "--cpu", "off", "--max-overhead", "0", "--dump-db", db, "--", *cmd],
        env=dict(os.environ, **(env or {})),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=300,
        check=True,
    )
    return db


def load(path):
    with gzip.open(path, "rt", encoding="utf-8") as f:
        return json.load(f)


def default_prices(path):
    """
    The stand-in only pretends to pin. How long that took, on a busy machine most of all, says
    nothing of what pinning costs.
    """
    db = load(path)
    for a in db["allocations"]:
        a["pin_ns"] = a["unpin_ns"] = 0
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as f:
        json.dump(db, f)


def moved(db):
    """What was moved between host and device, and how much of it by pinned memory: bytes."""
    rows = [pair for way in ("h2d", "d2h") for pair in db["summary"]["transfers"].get(way, {}).items()]
    return sum(bytes_ for _, (_, bytes_) in rows), sum(bytes_ for mem, (_, bytes_) in rows if mem == "pinned")


def measure(workload, folder):
    work = [f"{OUT}/tests/standin/work", workload]
    first = trace(folder, f"{workload}1", [*work, "--seed", "1"])
    default_prices(first)
    second = trace(folder, f"{workload}2", [*work, "--seed", "2"])
    # The preload library is for the workload, not for the daemon that starts it.
    advised = trace(
        folder,
        f"{workload}3",
        [
            "env",
            f"LD_PRELOAD={OUT}/libttmon/libttmon-pin.so",
            f"TTMON_PIN_DB={first}",
            "TTMON_PIN_SITES=all",
            f"TTMON_PIN_STATS={folder}/{workload}.stats",
            *work,
            "--seed",
            "2",
        ],
    )
    said = subprocess.run(
        [
            f"{OUT}/bin/ttmon",
            "advise",
            "--json",
            "--pinning-gbps",
            "1.5",
            "--pin-call-us",
            "50",
            "--unpin-call-us",
            "50",
            "--train",
            first,
            second,
        ],
        capture_output=True,
        timeout=120,
        check=True,
    )
    policies = json.loads(said.stdout)["programs"][0]["runs"][0]["policies"]
    db = load(advised)
    if not db["completeness"]["complete"]:
        raise SystemExit(f"{workload}: {db['completeness']['reasons']}")
    peaks = {name: policies[name]["peak_pages"] for name in ("all", "pytorch", "hindsight")}
    best = policies["hindsight"]
    bytes_, by_pinned = moved(db)
    with open(f"{folder}/{workload}.stats", encoding="utf-8") as f:
        own = json.load(f)
    ended = sum(a["method"] == "host_alloc" and a["end"] == "free" for a in db["allocations"])
    time = (
        by_pinned / 24
        + (bytes_ - by_pinned) / 6
        + own["pinned_pages_total"] * 4096 / 1.5
        + 50000 * (db["summary"]["pins"] + ended)
    )
    return {
        **peaks,
        "advised": db["summary"]["pinned_peak_pages"],
        "pins": db["summary"]["pins"],
        "pytorch_pins": policies["pytorch"]["pins"],
        "time_ms": time / 1e6,
        **{f"{name}_time_ms": policies[name]["time_ns"] / 1e6 for name in ("none", "all", "pytorch", "hindsight")},
        "moved_bytes": bytes_,
        "moved_pinned_bytes": by_pinned,
        "hindsight_moved_bytes": best["moved_bytes"],
        "hindsight_moved_pinned_bytes": best["moved_pinned_bytes"],
    }


def times(a, b):
    return f"{a / b:.2f}" if b else "-"


def share(f, whose):
    total = f[f"{whose}moved_bytes"]
    return f"{f[f'{whose}moved_pinned_bytes'] / total if total else 0.0:.1%}"


def main():
    args = sys.argv[1:]
    out = args.pop(args.index("--json") + 1) if "--json" in args else None
    names = [a for a in args if a != "--json"] or WORKLOADS
    found = {}
    print(
        "| workload | everything | PyTorch | hindsight | advised | x hindsight | PyTorch / advised | share, hindsight "
        "| share, advised | pins, PyTorch | pins, advised | ms, nothing | ms, everything | ms, PyTorch | ms, "
        "hindsight | ms, advised |"
    )
    print("|---|" + "--:|" * 15)
    with tempfile.TemporaryDirectory(prefix="ttmon-pinning-") as folder:
        for name in names:
            f = found[name] = measure(name, folder)
            print(
                f"| {name} | {f['all']:,} | {f['pytorch']:,} | {f['hindsight']:,} | {f['advised']:,} | "
                f"{times(f['advised'], f['hindsight'])} | "
                f"{times(f['pytorch'], f['advised'])} | {share(f, 'hindsight_')} | {share(f, '')} | "
                f"{f['pytorch_pins']:,} | {f['pins']:,} | "
                + " | ".join(f"{f[n + 'time_ms']:.1f}" for n in ("none_", "all_", "pytorch_", "hindsight_", ""))
                + " |",
                flush=True,
            )
    if out:
        with open(out, "w", encoding="utf-8") as f:
            json.dump(found, f)


main()
