# SPDX-License-Identifier: GPL-2.0-only
"""
The promise as a whole: a program that was traced once pins far less the second time, by few calls.
Figures: tests/bench/pinning.py.
"""
import json
import os
import subprocess
import sys

from e2e import OUT, TOP, timeout, true


def measured(bench, workload):
    path = bench.path("figures.json")
    subprocess.run(
        [sys.executable, f"{TOP}/tests/bench/pinning.py", "--json", path, workload],
        env=dict(os.environ, O=OUT),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with open(path, encoding="utf-8") as f:
        return json.load(f)[workload]


def check(bench, workload, below_pytorch, share=1):
    f = measured(bench, workload)
    true(f"{f}: not within 1.1 x hindsight", f["advised"] <= 1.1 * f["hindsight"])
    true(
        f"{f}: a smaller share from pinned memory",
        f["moved_pinned_bytes"] * f["hindsight_moved_bytes"]
        >= share * f["hindsight_moved_pinned_bytes"] * f["moved_bytes"],
    )
    true(f"{f}: more than one region", f["pins"] == 1)
    true(
        f"{f}: slower than PyTorch's cache, or a tenth slower than hindsight",
        f["time_ms"] < min(f["pytorch_time_ms"], 1.1 * f["hindsight_time_ms"]),
    )
    true(f"{f}: not {below_pytorch} x below PyTorch", f["pytorch"] >= below_pytorch * f["advised"])


@timeout(200)
def test_train(bench):
    """A training loop whose loader prefetches."""
    check(bench, "train", 1.5)


@timeout(200)
def test_serve(bench):
    """An inference server with varying batches."""
    check(bench, "serve", 1.5, 0.99)


@timeout(200)
def test_offload(bench):
    """Offload with a large cold part."""
    check(bench, "offload", 3)


@timeout(200)
def test_churn(bench):
    """Churn of short-lived buffers, many of which never leave the host."""
    check(bench, "churn", 3, 0.99)
