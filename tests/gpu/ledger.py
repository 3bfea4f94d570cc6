#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""ledger.py: what ttmond says of programs that keep books of their own, on the real runtime and
driver. Called by parts.py.

A loop of PyTorch under `ttmond -- CMD`, under --pid and under the service; then a C program, and
the demonstration's workload.
"""
import collections
import os
import re
import subprocess
import sys
import time

from gpu import (
    CUDART,
    HERE,
    ON_STANDIN,
    TORCH_PYTHON,
    TRACE,
    Part,
    Skip,
    needs_bpf,
    needs_device,
    needs_runtime,
    program,
    standin_env,
)
from e2e import (
    OUT,
    SLOW,
    TTMON,
    TTMOND,
    allocations,
    eq,
    last_json,
    load_db,
    pair,
    process,
    same_transfers,
    true,
    whole,
)

part = Part("ledger")
LIBS = ("libcudart", "libcuda.so")
LOOP = os.path.join(HERE, "torch_loop.py")


def torch_env():
    """Beside the stand-in libraries stands a torch module that knows what the loop needs, unless a
    real one is asked for.
    """
    if not ON_STANDIN or "TORCH_PYTHON" in os.environ:
        return standin_env()
    return {**standin_env(), "PYTHONPATH": os.path.join(HERE, "standin"), "GPU_CUDART": CUDART}


TORCH_WORKS = []


def needs_torch():
    needs_bpf()
    needs_device()
    if not TORCH_WORKS:
        argv = [TORCH_PYTHON, "-W", "ignore", "-c", "import torch; torch.cuda.init(); torch.empty(1, pin_memory=True)"]
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=60 * SLOW, check=False, env={**os.environ, **torch_env()}
        )
        TORCH_WORKS.append(None if not done.returncode else (done.stderr.strip().splitlines() or ["?"])[-1])
    if TORCH_WORKS[0]:
        raise Skip(f"no PyTorch with a GPU: {TORCH_WORKS[0]}")


def argv(*options):
    return [TORCH_PYTHON, "-W", "ignore", LOOP, *options]


def small(db, pid):
    """The allocations of a process: {method: {size: number}}, and how they ended."""
    found = collections.defaultdict(collections.Counter)
    for a in allocations(db, pid):
        found[a["method"]][a["size"]] += 1
    return {m: dict(c) for m, c in found.items()}


def compare(name, out, db, daemon, every=True):
    """The books of the loop and the database. Where every is False, the service kept sums alone of
    what was freed.
    """
    book = last_json(out)
    proc = process(db, book["pid"])
    part.fact(
        f"torch, {name}",
        {
            "book": book,
            "process": proc,
            "sizes": small(db, book["pid"]),
            "completeness": db["completeness"],
            "summary": db["summary"],
            "objects": db["objects"],
            "says": daemon.stderr()[-4000:].splitlines(),
            "functions": dict(collections.Counter(a["fn"] for a in allocations(db, book["pid"])).most_common(12)),
            "sites": len({a["site"] for a in allocations(db, book["pid"], "host_alloc")}),
        },
    )
    eq("pinned blocks and registrations", proc["pins"], book["pins"])
    same_transfers(proc, book)
    if every:
        blocks = sorted(a["size"] for a in allocations(db, book["pid"], "host_alloc"))
        eq("sizes of the pinned blocks", blocks, book["blocks"])
        eq("registrations", len(allocations(db, book["pid"], "registered")), book["registered"])
        freed = [a for a in allocations(db, book["pid"], "host_alloc", "registered") if a["end"] == "free"]
        eq("pinned memory that was given back", len(freed), book["frees"])
    if every:
        whole(db)
    else:
        c = db["completeness"]
        # Its libraries are mapped before they are probed; it waits for that, but nobody else knows.
        missing = [r for r in c["reasons"] if r not in ("cut", "coverage_gap", "attached_late")]
        eq("what is missing, but for what was freed, and what came before the probes", missing, [])
        eq(
            "identity, lost",
            (c["identity"], sum(c["lost"].values()) if isinstance(c["lost"], dict) else c["lost"]),
            (True, 0),
        )
    copies = {f"{d} {m}": pair(proc["transfers"], d, m) for d in ("h2d", "d2h") for m in ("pinned", "pageable")}
    return f"{proc['pins']} pins, copies and bytes {copies}"


def torch_command(bench):
    """PyTorch under `ttmond -- CMD`, from its first call."""
    needs_torch()
    return compare("-- CMD", *bench.trace(argv(), *TRACE, env=torch_env()))


def torch_pid(bench):
    """PyTorch under --pid, taken up when its context is there and nothing is pinned."""
    needs_torch()
    return compare("--pid", *bench.attach(argv("--wait"), *TRACE, env=torch_env()))


def probed(sock, names, seconds=20):
    """Waits until the service has probes in an object of each of these names: before that it misses
    calls, which it says.
    """
    end = time.monotonic() + seconds * SLOW
    while True:
        done = subprocess.run(
            [TTMON, "--socket", sock, "probes", "-v"], capture_output=True, text=True, timeout=20 * SLOW, check=False
        )
        if not done.returncode and all(name in done.stdout for name in names):
            return done.stdout
        true(f"the service does not probe {names}: {done.stdout[-800:]} {done.stderr}", time.monotonic() < end)
        time.sleep(0.1)


def torch_service(bench):
    """PyTorch under the service, which traces the whole host."""
    needs_torch()
    sock, db = bench.path("sock"), bench.path("db.json")
    daemon = bench.daemon("--socket", sock, "--shm-root", bench.dir, "--tt-shm-version", "off", "--shm-slots", "0")
    target = bench.target(*argv("--wait", "--hold"), env=torch_env())
    probed(sock, LIBS)
    target.go()
    out = target.line(90)
    done = subprocess.run(
        [TTMOND, "--socket", sock, "--dump-db", db], capture_output=True, text=True, timeout=60 * SLOW, check=False
    )
    eq(f"status of the client ({done.stderr})", done.returncode, 0)
    target.go()
    target.finish()
    daemon.stop()
    return compare("service", out, load_db(db), daemon, every=False)


# ---- programs in C ----
def real():
    needs_bpf()
    needs_device()
    needs_runtime()
    return program("real"), {**standin_env(), "LD_LIBRARY_PATH": os.path.dirname(CUDART)}


def c_program(bench):
    """Calls of the runtime, which calls the driver: each counts once."""
    path, env = real()
    out, db, daemon = bench.trace([path], *TRACE, env=env)
    book = last_json(out)
    proc = process(db, book["pid"])
    part.fact(
        "C program",
        {
            "book": book,
            "process": proc,
            "sizes": small(db, book["pid"]),
            "objects": db["objects"],
            "says": daemon.stderr()[-4000:].splitlines(),
        },
    )
    whole(db)
    same_transfers(proc, book)
    for name in ("pins", "allocs", "frees", "failed"):
        eq(name, proc[name], book[name])
    true("no call of the runtime", any((a["fn"] or "").startswith("cuda") for a in allocations(db, book["pid"])))
    stepped = re.search(r"single.stepped", daemon.stderr())
    return f"pins {proc['pins']}, allocs {proc['allocs']}, single-stepped probes: {'yes' if stepped else 'none said'}"


def driver_is_probed(bench):
    """The driver is found and probed beside the runtime."""
    path, env = real()
    _, db, _ = bench.trace([path], *TRACE, env=env)
    drivers = [o for o in db["objects"] if o["path"] and "libcuda.so" in o["path"]]
    part.fact("objects", db["objects"])
    true("libcuda is not among the objects", drivers)
    return drivers[0]["path"]


def demonstration(bench):
    """The demonstration's workload on a real device."""
    _, env = real()
    workload = os.path.join(OUT, "demo", "workload")
    if not os.path.exists(workload):
        raise Skip(f"no {workload}")
    if not ON_STANDIN and not os.path.basename(CUDART).startswith("libcudart.so.13"):
        raise Skip(f"it needs libcudart.so.13, and here is {CUDART}")
    out, db, daemon = bench.trace([workload], *TRACE, env=env)
    true(f"the workload did not run: {out}", "steps" in out)
    advice = {a["advice"] for a in db["advice"]}
    part.fact(
        "demonstration",
        {"says": daemon.stdout().splitlines() + daemon.stderr()[-4000:].splitlines(), "summary": db["summary"]},
    )
    true(f"advice {advice}", {"pin", "unpin"} <= advice)
    return f"advice {sorted(advice)}"


for check in (torch_command, torch_pid, torch_service, c_program, driver_is_probed, demonstration):
    part.check(check)
sys.exit(part.status())
