#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""memtrace.py: memory-access traces on a real GPU; the last part of run.sh, called by parts.py. One
line a check: ok, FAIL or SKIP; then what was measured, as Markdown. On the stand-in driver (run.sh
--standin) this shows that the script works; times mean nothing there.
"""
import argparse
import fnmatch
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import gpu
import e2e
from e2e import SLOW, TTMON, Skip, eq, true

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--kernels", metavar="GLOB", default="*", help="these alone")
parser.add_argument("--check", action="append", metavar="NAME", help="this alone; may be given again")
args = parser.parse_args()
STANDIN, KERNELS, FOLDER = gpu.ON_STANDIN, args.kernels, gpu.FOLDER
PART = gpu.Part("memtrace")
IMAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "memtrace.ptx")
# By which way the program comes to the GPU: the driver with PTX, the runtime with a fat binary. The
# runtime does not work on the stand-in.
PROGRAMS = {
    "driver": [os.path.join(FOLDER, "memtrace_drv"), "--image", IMAGE],
    "runtime": [os.path.join(FOLDER, "memtrace_rt")],
}
SMALL, BIG, TIMES, LIMIT = (4096, 4096, 1, 60) if STANDIN else (1 << 16, 1 << 22, 10, 300)
MODES = {"stream": (), "sample 64": ("--sample", "64"), "aggregate": ("--mode", "aggregate")}
REPLAYS = 3  # of memtrace.c
if STANDIN:
    del PROGRAMS["runtime"]
if STANDIN:
    os.environ["LD_LIBRARY_PATH"] = e2e.standin("gpu")


def command(way, *options, elements=SMALL):
    return [*PROGRAMS[way], "--elements", str(elements), "--only", KERNELS, *options]


def run(argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=LIMIT * SLOW)
    eq(f"status of {' '.join(argv)} ({done.stderr[-600:]})", done.returncode, 0)
    return done


class Recorded:
    """A program under `ttmon memtrace record`: what it printed, and what the trace says."""

    def __init__(self, bench, argv, mode="stream", lossless=True):
        path = bench.path("x.ttmt")
        since = time.monotonic()
        done = run([TTMON, "memtrace", "record", "-o", path, *MODES[mode], "--", *argv])
        self.seconds = time.monotonic() - since
        self.out, self.err = done.stdout, done.stderr
        self.report = json.loads(run([TTMON, "memtrace", "--json", "--reuse=off", path]).stdout)
        self.source = self.report["source"]
        if lossless:
            eq(f"dropped, malformed ({self.err})", (self.dropped(), self.source["malformed"]), (0, 0))
            true("cut", not self.source["cut"])
            true("no kernel", self.report["coverage"])
            for k in self.report["coverage"]:
                eq(f"{k['kernel']}: launched and recorded ({k['why_not']})", k["recorded"], k["launches"])

    def dropped(self):
        """Records; sums on the GPU have none."""
        return self.source["dropped"] or 0

    def sums(self):
        """{(kernel, space, kind): sums of all such instructions}."""
        found = {}
        for s in self.report["sites"]:
            row = found.setdefault(
                (s["kernel"], s["space"], "atomic" if s["kind"] in ("atom", "red") else s["kind"]), {}
            )
            for key in ("requests", "lanes", "sectors", "lines", "ideal_sectors", "ideal_lane_sectors", "wavefronts"):
                row[key] = row.get(key, 0) + s[key]
        return found


@functools.lru_cache(maxsize=None)
def plain(way, *options):
    """Its output without us."""
    out = run(command(way, *options)).stdout
    true("nothing ran", out)
    return out


RECORDED = {}


def recorded(bench, way, *options, mode="stream"):
    """Of each once."""
    key = (way, *options, mode)
    if key not in RECORDED:
        RECORDED[key] = Recorded(bench, command(way, *options), mode)
    return RECORDED[key]


@functools.lru_cache(maxsize=None)
def probe(way="driver"):
    return dict(line.split(" ", 1) for line in run(command(way, "--probe")).stdout.splitlines())


# Their lanes part, or add up at one place: how often they access in machine code depends on the
# compiler and on the GPU.
ONLY_SHOWN = ("divergent", "atomics")


# ---- checks ----
def device(_):
    """
    What the recorder counts on: multiprocessors have numbers below their count, and memory of a
    memfd can be given to the GPU.
    """
    for way in PROGRAMS:
        d = PART.fact(f"device by {way}", probe(way))
        for name, value in d.items():
            print(f"  {way}: {name}: {value}")
        eq("memory of a memfd, registered and written by the GPU: error", d["memfd"], "0")
        true(
            f"%smid is up to {d['max_smid']} with {d['sms']} multiprocessors: rings are shared",
            int(d["max_smid"]) < int(d["sms"]),
        )


def outputs(bench):
    """What programs give is the same in every mode and whichever way they go; nothing is lost."""
    for way in PROGRAMS:
        for options in ((), ("--how", "graph"), ("--how", "streams"), ("--how", "contexts"), ("--zero-copy",)):
            wanted = plain(way, *options)
            for mode in MODES if not (STANDIN and options) else ("stream",):
                what = f"{way} {' '.join(options)} {mode}"
                r = recorded(bench, way, *options, mode=mode)
                eq(what, r.out, wanted)
                print(f"  {what}: {r.source['records']} records, {r.source['bytes']} bytes")


def wanted_figures():
    """[(kernel, space, kind, figure, how many a request)]"""
    rows = [line.split() for line in run(command("driver", "--list")).stdout.splitlines()]
    return [(*row[:4], int(row[4])) for row in rows if fnmatch.fnmatch(row[0], KERNELS)]


def figures(bench):
    """
    Sectors, lines, the ideal and wavefronts of a request, as worked out by hand; exactly, for every
    request on average.
    """
    for way in PROGRAMS:
        for mode in MODES:
            found, checked = recorded(bench, way, mode=mode).sums(), 0
            for kernel, space, kind, figure, value in wanted_figures():
                if mode == "aggregate" and figure == "ideal_sectors":
                    continue  # of distinct bytes: not counted there
                row = found.get((kernel, space, kind))
                true(f"{way} {mode}: {kernel} has no {kind} of {space} memory", row)
                eq(
                    f"{way} {mode}: {kernel} {space} {kind}: {figure} of {row['requests']} requests",
                    row[figure],
                    value * row["requests"],
                )
                checked += 1
            print(f"  {way} {mode}: {checked} figures as worked out")


def aggregate(bench):
    """The sums that the GPU kept are those of the stream."""
    for way in PROGRAMS:
        stream, kept = recorded(bench, way).sums(), recorded(bench, way, mode="aggregate")
        eq("records", kept.source["records"], 0)
        for key, row in stream.items():
            other = kept.sums().get(key)
            true(f"{way}: {key} is missing", other)
            # Lanes that have parted come together again when the GPU likes: in how many requests
            # they then do the same differs from run to run.
            same = (
                ("lanes",)
                if key[0] in ONLY_SHOWN
                else ("requests", "lanes", "sectors", "lines", "ideal_lane_sectors", "wavefronts")
            )
            for name in same:
                eq(f"{way}: {key}: {name}", other[name], row[name])
            for name in ("requests", "sectors"):
                if other[name] != row[name]:
                    print(f"  {way}: {key}: {name} {row[name]} in the stream, {other[name]} in the sums")


def several(bench):
    """Graphs, streams and contexts: each launch and replay is in it."""
    for way in PROGRAMS:
        once = recorded(bench, way).sums()
        for how in ("graph", "streams", "contexts"):
            r = recorded(bench, way, "--how", how)
            contexts = len({line["context"] for line in r.report["launches"]})
            times = {"graph": REPLAYS, "streams": 4, "contexts": contexts}[how]
            for key, row in r.sums().items():
                eq(f"{way} {how}: {key}: requests", row["requests"], once[key]["requests"] * times)
            if how == "graph":
                true("not marked as graphs", all(line["graph"] for line in r.report["launches"]))
            print(f"  {way} {how}: {contexts} contexts, {len(r.report['launches'])} launches")


def zero_copy(bench):
    """Pinned memory that kernels read in place is in use, to the service and to its advice."""
    gpu.needs_bpf()
    trace = bench.path("t.ttmt")
    # Kept for a while: memory that is freed before ttmond has told of its use (5 ms, more where
    # processors are busy) counts as given back.
    options = ("--zero-copy", "--only", "unit_*", "--hold", "200")
    out, db, daemon = bench.trace(command("driver", *options), *gpu.TRACE, "--memtrace-out", trace)
    eq("output", out, plain("driver", *options))
    true(daemon.stderr(), re.search(r"memory accesses of GPU kernels: [\d,]+ requests", daemon.stderr()))
    pinned = [a for a in db["allocations"] if a["method"] == "host_alloc"]
    used = [a for a in pinned if a.get("gpu", {}).get("reads") or a.get("gpu", {}).get("writes")]
    eq(f"of {len(pinned)} pinned buffers are in use", len(used), len(pinned))
    true("no pinned buffer", pinned)
    path = bench.path("db.json")
    text = subprocess.run(
        [TTMON, "advise", "--memtrace", trace, path], capture_output=True, text=True, check=False
    ).stdout
    true(text, "of them in place, and may access the others" in text)
    print(f"  {len(used)} pinned buffers, in use without a copy")


TORCH = """
import torch
torch.manual_seed(1)
a = torch.randn(512, 512, device="cuda")
b = (a @ a).relu().sum(dim=0) + torch.arange(512, device="cuda") * 0.5
print(torch.__version__, b.cpu().numpy().tobytes().hex()[:4096])
"""


def pytorch(bench):
    """Nothing breaks; its kernels come without PTX for most GPUs, which is said."""
    argv = [os.environ.get("TORCH_PYTHON", sys.executable), "-c", TORCH]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=LIMIT * SLOW)
    if STANDIN or done.returncode:
        raise Skip(
            "no PyTorch that uses the GPU"
            + (": " + done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "")
        )
    for mode in MODES:
        r = Recorded(bench, argv, mode, lossless=False)
        eq(mode, r.out, done.stdout)
        print(f"  {mode}: {r.err.strip().splitlines()[0] if r.err.strip() else 'nothing said'}")


# What CUPTI counts in the machine code, and what it is to us. Of a few kernels the machine code may
# well access less than the PTX does.
CUPTI = {
    "smsp__sass_inst_executed_op_global": ("global", "requests"),
    "smsp__sass_inst_executed_op_shared": ("shared", "requests"),
    "smsp__sass_sectors_mem_global": ("global", "sectors"),
    "smsp__sass_sectors_mem_global_ideal": ("global", "ideal_lane_sectors"),
    "smsp__sass_l1tex_tags_mem_global": ("global", "lines"),
    "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared": ("shared", "wavefronts"),
}


def cupti_differences(text, sums):
    """Of what memtrace --cupti printed: (figures that are the same, lines on others that must be, lines on others)."""
    same, wrong, shown = 0, [], []
    for line in text.splitlines():
        word, kernel, metric, value = [*line.split(), "", "", ""][:4]
        if word != "cupti" or metric not in CUPTI:
            continue
        space, figure = CUPTI[metric]
        ours = sum(row[figure] for (k, s, _), row in sums.items() if (k, s) == (kernel, space))
        if ours == int(value):
            same += 1
        else:
            (shown if kernel in ONLY_SHOWN else wrong).append(f"{kernel}: {metric} {value}, recorded {ours}")
    return same, wrong, shown


def cupti(bench):
    """
    Each kernel's sums are those that CUPTI's SASS metrics give for a process of its own: it counts
    the first kernel of a process alone, whatever is enabled, disabled and patched lazily or not
    (CUDA 13.0 on an H100).
    """
    lib = os.path.join(FOLDER, "libmemtrace_cupti.so")
    if "runtime" not in PROGRAMS or not os.path.exists(lib):
        raise Skip("not on the stand-in" if STANDIN else "no nvcc, or no CUPTI with SASS metrics")
    text = ""
    for kernel in sorted({row[0] for row in wanted_figures()} | set(ONLY_SHOWN)):
        argv = [*PROGRAMS["runtime"], "--elements", str(SMALL), "--only", kernel, "--cupti", lib]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=LIMIT * SLOW)
        if done.returncode == 3:
            raise Skip(done.stderr.strip().splitlines()[-1])
        eq(f"status ({done.stderr[-600:]})", done.returncode, 0)
        true(f"CUPTI gave no figure of {kernel}", f"cupti {kernel} " in done.stdout)
        text += done.stdout
    same, wrong, shown = cupti_differences(text, recorded(bench, "runtime").sums())
    for line in wrong + shown:
        print(f"  {line}")
    print(f"  {same} figures the same, {len(wrong)} others, {len(shown)} not compared")
    eq("figures that differ", len(wrong), 0)


# ---- times ----
TABLE = []


def read_times(path):
    with open(path, encoding="utf-8") as f:
        return {(line.split()[0], line.split()[1]): float(line.split()[2]) for line in f}


def slow_down(bench):
    """How much longer kernels, loading them and the whole program take in each mode."""
    shown = (
        "unit_f32",
        "unit_f32x4",
        "stride_2",
        "stride_32",
        "broadcast",
        "permuted",
        "banks_unit",
        "banks_stride_32",
        "vadd",
        "transpose_naive",
        "transpose_padded",
        "divergent",
        "atomics",
    )
    for way in PROGRAMS:
        got, dropped = {}, {}
        for mode in ("plain", *MODES):
            path = bench.path("times")
            argv = command(way, "--times", path, "--repeat", str(TIMES), elements=BIG)
            if mode == "plain":
                since = time.monotonic()
                run(argv)
                seconds = time.monotonic() - since
            else:
                r = Recorded(bench, argv, mode, lossless=False)
                seconds = r.seconds
                dropped[mode] = 100 * r.dropped() / max(r.source["produced"] or 0, 1)
            got[mode] = {**read_times(path), ("program", "-"): seconds * 1e6}
        rows = [("kernel", k) for k in shown if fnmatch.fnmatch(k, KERNELS)] + [("load", "-"), ("program", "-")]
        for key in rows:
            base = got["plain"][key]
            name = {"load": "loading the kernels", "program": "the whole program"}.get(key[0], key[1])
            TABLE.append(
                f"| {way} | {name} | {base:,.1f} | "
                + " | ".join(f"{got[m][key] / max(base, 1e-3):,.1f}" for m in MODES)
                + " |"
            )
        TABLE.append(f"| {way} | dropped | | " + " | ".join(f"{dropped[m]:.1f} %" for m in MODES) + " |")
        for mode in MODES:
            true(f"{way} {mode}: no times", set(got[mode]) == set(got["plain"]))


def print_table():
    PART.fact("slow down", TABLE)
    if not TABLE:
        return
    d = probe()
    if STANDIN:
        print("\nNot a GPU: these times mean nothing.")
    print(
        f"\n{d['device']} (sm_{d['arch']}, {d['sms']} multiprocessors), driver for CUDA {d['driver']}; {BIG:,} "
        "elements of input; plain run in microseconds, modes as multiples of it\n"
    )
    print("| by | what | plain | " + " | ".join(MODES) + " |\n|---|---|---|" + "---|" * len(MODES))
    print("\n".join(TABLE))


def main():
    failed = 0
    try:
        gpu.needs_device()
    except Skip as why:
        print(f"SKIP gpu/memtrace: {why}")
        return 0
    if not STANDIN:
        failed += bool(subprocess.run([os.path.join(gpu.HERE, "run.sh"), "--build-accesses"], check=False).returncode)
    if "runtime" in PROGRAMS and not os.path.exists(PROGRAMS["runtime"][0]):
        del PROGRAMS["runtime"]
    if not STANDIN and "runtime" not in PROGRAMS:
        print("SKIP gpu/memtrace/runtime: no nvcc, so no program that uses the runtime")
    for check in (device, figures, aggregate, cupti, zero_copy, slow_down, outputs, several, pytorch):
        if args.check and check.__name__ not in args.check:
            continue
        with tempfile.TemporaryDirectory(prefix="ttmon-gpu-") as folder:
            bench = e2e.Bench(folder)
            try:
                check(bench)
                print(f"ok gpu/memtrace/{check.__name__}", flush=True)
            except Skip as why:
                print(f"SKIP gpu/memtrace/{check.__name__}: {why}", flush=True)
            except (AssertionError, LookupError, OSError, TypeError, ValueError, subprocess.SubprocessError) as why:
                failed += 1
                print(
                    f"FAIL gpu/memtrace/{check.__name__}: "
                    f"{type(why).__name__ + ': ' if not isinstance(why, AssertionError) else ''}{why}",
                    flush=True,
                )
                bench.show_logs()
            finally:
                bench.close()
    print_table()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
