#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""policies.py [WORKLOAD...]: ways of pinning on courses that the profile has not seen: time and pinned
pages.

Eight workloads of tests/standin/work.c: five patterns of PyTorch, vLLM and DeepSpeed, and three
that resemble the run that was traced less: `blocks` (all from one call site, hot and cold ones in
another order each time), `twice` (churn with images of twice the size) and `grow` (batches that
grow, by another path each time). Each is traced once for the profile (seed 1; `twice`: at its own
size once) and once for each of 20 other seeds; `ttmon advise --train` plays every policy on those,
at each price of a call that pins or unpins.

Time is what the cost model says of transfers, pages, calls and waiting. Time and peaks are means
over the seeds; `worst` is the largest ratio of any seed.

    --seeds N            how many seeds (20)
    --prices US,US,...   prices of a call (0,50,200)
    --jobs N             traces at once (2)
    --keep DIR           databases stay there, and are used again
--json FILE: the figures. As root, after `make e2e-build`; some 10 minutes the first time.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("O", ".output"))
# Name: the program, what is added for the courses that are not the profile's.
WORKLOADS = {
    "train": ("train", []),
    "serve": ("serve", []),
    "offload": ("offload", []),
    "kvcache": ("kvcache", []),
    "churn": ("churn", []),
    "blocks": ("blocks", []),
    "twice": ("churn", ["--times", "2"]),
    "grow": ("grow", []),
}
POLICIES = {"none": "nothing", "all": "everything", "pytorch": "PyTorch", "hindsight": "hindsight", "advice": "advised"}


def trace(path, cmd):
    if not os.path.exists(path):
        subprocess.run(
            [
                f"{OUT}/bin/ttmond",
                "-q",
                "--cpu",
                "off",
                "--max-overhead",
                "0",
                "--dump-db",
                path + ".tmp.gz",
                "--",
                f"{OUT}/tests/standin/work",
                *cmd,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=600,
            check=True,
        )
        os.rename(path + ".tmp.gz", path)
    return path


def traces(folder, name, seeds, jobs):
    program, more = WORKLOADS[name]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        first = pool.submit(trace, f"{folder}/{program}-profile.json.gz", [program, "--seed", "1", "--step-us", "100"])
        others = [
            pool.submit(
                trace, f"{folder}/{name}-{seed}.json.gz", [program, "--seed", str(seed), "--step-us", "100", *more]
            )
            for seed in range(2, 2 + seeds)
        ]
        return first.result(), [o.result() for o in others]


def play(first, others, price):
    """Figures of each run: policy: (time, peak, pins)."""
    said = subprocess.run(
        [
            f"{OUT}/bin/ttmon",
            "advise",
            "--json",
            "--pinning-gbps",
            "1.5",
            "--pin-call-us",
            str(price),
            "--unpin-call-us",
            str(price),
            "--train",
            first,
            *others,
        ],
        capture_output=True,
        check=False,
        timeout=600,
    )
    if said.returncode > 1:
        raise SystemExit(said.stderr.decode())
    runs = [r for p in json.loads(said.stdout)["programs"] for r in p["runs"]]
    return [
        {
            p: (
                r["policies"][p]["transfer_ns"] + r["policies"][p]["pinning_ns"],
                r["policies"][p]["peak_pages"],
                r["policies"][p]["pins"],
            )
            for p in POLICIES
        }
        for r in runs
    ]


def mean(runs, policy, what):
    return sum(r[policy][what] for r in runs) / len(runs)


def summed_up(runs):
    return {
        "time_ms": {p: mean(runs, p, 0) / 1e6 for p in POLICIES},
        "peak_pages": {p: mean(runs, p, 1) for p in POLICIES},
        "pins": {p: mean(runs, p, 2) for p in POLICIES},
        "worst_time": max(r["advice"][0] / r["pytorch"][0] for r in runs),
        "worst_peak": max(r["advice"][1] / r["pytorch"][1] for r in runs),
        "worst_hindsight": max(r["advice"][1] / max(r["hindsight"][1], 1) for r in runs),
        "seeds": len(runs),
    }


def main():
    args = argparse.ArgumentParser()
    args.add_argument("workloads", nargs="*", default=list(WORKLOADS))
    args.add_argument("--seeds", type=int, default=20)
    args.add_argument("--prices", default="0,50,200")
    args.add_argument("--jobs", type=int, default=2)
    args.add_argument("--keep")
    args.add_argument("--json")
    o = args.parse_args()
    found = {}
    print(
        "| workload | call | "
        + " | ".join(f"{n}: ms | pages" for n in POLICIES.values())
        + " | pins, PyTorch | pins, advised | "
        "worst time / PyTorch | worst pages / hindsight |"
    )
    print("|---|--:|" + "--:|" * (2 * len(POLICIES) + 4))
    with tempfile.TemporaryDirectory(prefix="ttmon-policies-") as temporary:
        folder = o.keep or temporary
        os.makedirs(folder, exist_ok=True)
        for name in o.workloads or WORKLOADS:
            first, others = traces(folder, name, o.seeds, o.jobs)
            for price in [float(p) for p in o.prices.split(",")]:
                f = found[f"{name}@{price:g}"] = summed_up(play(first, others, price))
                cells = " | ".join(f"{f['time_ms'][p]:.2f} | {f['peak_pages'][p]:,.0f}" for p in POLICIES)
                print(
                    f"| {name} | {price:g} us | {cells} | {f['pins']['pytorch']:,.0f} | {f['pins']['advice']:,.0f} | "
                    f"{f['worst_time']:.3f} | {f['worst_hindsight']:.2f} |",
                    flush=True,
                )
    if o.json:
        with open(o.json, "w", encoding="utf-8") as out:
            json.dump(found, out)


sys.exit(main())
