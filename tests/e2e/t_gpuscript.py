# SPDX-License-Identifier: GPL-2.0-only
"""tests/gpu/run.sh --standin: the script for machines with a GPU works where there is none, and
finds what is wrong."""
import json
import os
import re
import shutil
import subprocess

from e2e import OUT, PATIENCE, TOP, Skip, alone, eq, kernel, standin, timeout, true

KERNEL = False
GPU = os.path.join(TOP, "tests", "gpu")


def run(bench, *options, seconds=50, **env):
    if not shutil.which(os.environ.get("CC", "cc")):
        raise Skip("no compiler")
    argv = [os.path.join(GPU, "run.sh"), "--standin", *options]
    done = subprocess.run(
        argv,
        env={**os.environ, "O": OUT, "D": bench.dir, "OUT": bench.dir, **env},
        capture_output=True,
        text=True,
        timeout=seconds * PATIENCE,
        check=False,
    )
    verdicts = [line.split(":")[0] for line in done.stdout.splitlines() if re.match("(ok|FAIL|SKIP) ", line)]
    with open(bench.path("gpu.json"), encoding="utf-8") as f:
        return done, verdicts, json.load(f)


@timeout(60)
def test_stand_in(bench):
    """Memory accesses of kernels."""
    true("the stand-in GPU is not built", os.path.exists(standin("gpu/libcuda.so.1")))
    checks = ("device", "figures", "aggregate", "slow_down")
    options = ["--only", "accesses", "--", "--kernels", "[uv]*"]
    done, verdicts, results = run(
        bench, *options, *[word for name in ("slow_down", *checks[:3]) for word in ("--check", name)]
    )
    eq(
        f"verdicts ({done.stdout} {done.stderr})",
        (done.returncode, verdicts),
        (0, [f"ok gpu/memtrace/{name}" for name in checks]),
    )
    rows = re.findall(r"^\| driver \| (\w+) \| [\d.,]+ \| [\d.,]+ \| [\d.,]+ \| [\d.,]+ \|$", done.stdout, re.M)
    true(f"table: {done.stdout}", {"unit_f32", "vadd"} <= set(rows))
    (part,) = results["parts"]
    eq(
        "part",
        (part["name"], part["status"], [v["check"] for v in part["verdicts"]]),
        ("accesses", "ok", [f"gpu/memtrace/{name}" for name in checks]),
    )
    # A driver that does not take the rewritten PTX: programs go on, and the script does not call that fine.
    done, verdicts, _ = run(bench, *options, "--check", "figures", GPUSIM_FAIL_LOAD="1")
    eq(f"verdicts ({done.stdout} {done.stderr})", (done.returncode, verdicts), (1, ["FAIL gpu/memtrace/figures"]))


WANTED = {
    "facts": ("kernel", "machine", "driver", "programs", "bpf", "ttmond", "runtime"),
    "entry": ("bytes_of_entries", "addresses", "by_runtime", "by_get_proc_address", "by_dlsym"),
    "memory": (
        "ordinary",
        "cudaHostAlloc",
        "cudaMallocHost",
        "cudaMallocManaged",
        "registered",
        "small_blocks",
        "mark",
    ),
    "ledger": ("torch_command", "torch_pid", "torch_service", "c_program", "driver_is_probed", "demonstration"),
    "cost": ("traced",),
}


@kernel(True)
@alone("it runs the service, which sees the programs of other tests, and measures what calls cost")
@timeout(150)
def test_parts(bench):
    """Everything else, on the stand-in runtime and driver."""
    options = [word for name in WANTED for word in ("--only", name)]
    done, verdicts, results = run(bench, *options, seconds=140)
    eq(f"status ({done.stdout[-6000:]} {done.stderr})", done.returncode, 0)
    missing = {f"ok gpu/{part}/{name}" for part, names in WANTED.items() for name in names} - set(verdicts)
    # Without CUDA's headers the C program is not built.
    true(
        f"missing: {missing} ({done.stdout[-6000:]})",
        missing <= {"ok gpu/ledger/c_program", "ok gpu/ledger/driver_is_probed"},
    )
    parts = {p["name"]: p for p in results["parts"]}
    eq(
        "parts",
        (results["ended"], {name: p["status"] for name, p in parts.items()}),
        (True, {name: "ok" for name in WANTED}),
    )
    copies = parts["entry"]["facts"]["entered by runtime"]["cudaMemcpyAsync h2d"]
    eq("entered by cudaMemcpyAsync()", copies, {"errors": "0", "entered": {"cuMemcpyHtoDAsync_v2": 8}})
    true(
        "no mapping of a pinned block",
        parts["memory"]["facts"]["blocks"]["cudaHostAlloc"]["when written"]["mapping"]["bytes"],
    )
    true("no cost", parts["cost"]["facts"]["ns a call"]["cudaMemcpyAsync h2d 4 KiB"]["--pid"]["ns"] > 0)


@kernel(True)
@timeout(60)
def test_cut_off(bench):
    """A part that hangs is cut off, ends what it started, and leaves what it knew; then no time is
    left.
    """
    hangs = bench.path("python")
    with open(hangs, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\necho $$ > {bench.path('pid')}\nexec sleep 1000\n")
    os.chmod(hangs, 0o755)
    done, verdicts, results = run(
        bench, "--only", "facts", "--only", "entry", "--limit", str(5 * PATIENCE), TORCH_PYTHON=hangs
    )
    eq(
        f"status ({done.stdout} {done.stderr})",
        (done.returncode, verdicts[-2:]),
        (1, ["FAIL gpu/facts", "SKIP gpu/entry"]),
    )
    facts, entry = results["parts"]
    eq("parts", (facts["status"], entry["status"], results["ended"]), ("cut off", "skipped", True))
    true(f"facts {facts}", facts["facts"]["kernel"]["release"] and facts["facts"]["machine"]["cpus"])
    with open(bench.path("pid"), encoding="utf-8") as f:
        true("what it started still runs", not os.path.exists(f"/proc/{f.read().strip()}"))
