# SPDX-License-Identifier: GPL-2.0-only
"""The recorder in programs that use a GPU: the stand-in driver of tests/standin/gpu runs the kernels' PTX for real, so what is recorded and what the programs give can be held against each other."""
import json
import os
import re
import subprocess
import tempfile

from e2e import SLOW, TTMON, Skip, eq, last_json, standin, timeout, true

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PTX = {arch: os.path.join(TOP, "tests", "memtrace", f"kernels_{arch}.ptx") for arch in (75, 80, 90)}
LIB = os.path.join(os.path.dirname(os.path.dirname(TTMON)), "libttmon", "libttmon-memtrace.so")


def gpu(*options, arch=80, env=None):
    """A run without us: what it prints."""
    done = subprocess.run([standin("gpu/run"), *options, PTX[arch]], capture_output=True, text=True, check=True, timeout=60 * SLOW, env={**os.environ, **(env or {})})
    return done.stdout


class Recorded:
    """The same under `ttmon memtrace record`; report: what --json says of the file."""

    def __init__(self, bench, *options, arch=80, record=(), env=None, status=0, program=None):
        self.path = bench.path("x.ttmt")
        command = program or [standin("gpu/run"), *options, PTX[arch]]
        done = subprocess.run([TTMON, "memtrace", "record", "-o", self.path, *record, "--", *command], capture_output=True, text=True, check=False,
                              timeout=100 * SLOW, env={**os.environ, **(env or {})})
        eq(f"status ({done.stderr[-400:]})", done.returncode, status)
        self.out, self.err = done.stdout, done.stderr

    def report(self, *options):
        return json.loads(subprocess.run([TTMON, "memtrace", "--json", *options, self.path], capture_output=True, text=True, check=True, timeout=60 * SLOW).stdout)


def rows(report, kernel):
    """Of the kernel's instructions, in the order of the PTX."""
    return sorted((s for s in report["sites"] if s["kernel"] == kernel), key=lambda s: s["ptx_line"])


@timeout(120)
def test_outputs_are_the_same(bench):
    """However kernels are launched and modules loaded: the program gives what it gives without us, and all that is launched is recorded alike."""
    plain, first = gpu(), None
    for how in ("plain", "extra", "ex", "cooperative", "graph", "capture"):
        for load in ((), ("--library",), ("--dlopen",)):
            r = Recorded(bench, "--how", how, *load)
            eq(f"{how} {load}", r.out, plain)
            d = r.report()
            eq("nothing is lost", (d["source"]["dropped"], d["source"]["malformed"], d["source"]["cut"]), ("0", 0, False) if isinstance(d["source"]["dropped"], str) else (0, 0, False))
            true(f"coverage {d['coverage']}", d["coverage"] and all(k["launches"] == k["recorded"] > 0 and not k["why_not"] for k in d["coverage"]))
            seen = [(s["kernel"], s["opcode"], s["ptx_line"], s["requests"], s["sectors"], s["wavefronts"]) for s in d["sites"]]
            first = first or sorted(seen)
            eq(f"{how} {load}: records", sorted(seen), first)
            if how not in ("graph", "capture"):
                true("graphs", not any(line["graph"] for line in d["launches"]))


@timeout(60)
def test_what_is_recorded(bench):
    """Figures that can be worked out: 1000 elements in 8 blocks of 128 threads, the last warp of the last block has 8."""
    d = Recorded(bench).report()
    for s in rows(d, "vadd"):
        eq(s["opcode"], (s["requests"], s["lanes"], s["sectors"], s["ideal_sectors"], s["class"]), (32, 1000, 125, 125, "sequential"))
    eq("vadd", [s["kind"] for s in rows(d, "vadd")], ["load", "load", "store"])
    eq("f64", {s["sectors"] for s in rows(d, "vadd64")}, {250})
    eq("float4", {s["sectors"] for s in rows(d, "vadd4")}, {500})
    naive = rows(d, "transpose_naive")
    eq("rows in, columns out", {(s["kind"], s["sectors_per_request"]) for s in naive}, {("load", 4.0), ("store", 32.0)})
    banks = [s for s in rows(d, "transpose_banks") if s["space"] == "shared" and s["kind"] == "load"]
    padded = [s for s in rows(d, "transpose_padded") if s["space"] == "shared" and s["kind"] == "load"]
    eq("bank conflicts", ({s["wavefronts_per_request"] for s in banks}, {s["wavefronts_per_request"] for s in padded}), ({32.0}, {1.0}))
    true("places", all(s["file"].endswith("kernels.cu") and s["line"] for s in naive))
    named = [(f["what"], f["text"]) for f in d["findings"] if " in transpose_" in f["text"]]
    eq("copies by unrolling are named once", [what for what, _ in named], ["bank conflicts", "uncoalesced"])
    true(f"{named}", all(" (4 instructions): " in text for _, text in named))
    launch = next(line for line in d["launches"] if line["kernel"] == "vadd")
    eq("launch", (launch["grid"], launch["block"]), ([8, 1, 1], [128, 1, 1]))
    true("time", int(launch["time_ns"]) > 0)


@timeout(60)
def test_contexts_and_devices(bench):
    """Three threads with a context each on two GPUs: a channel each, and everything is added up once."""
    options, env = ("--threads", "3", "--contexts", "3"), {"GPUSIM_DEVICES": "2"}
    r = Recorded(bench, *options, env=env)
    eq("output", sorted(r.out.splitlines()), sorted(gpu(*options, env=env).splitlines()))
    d = r.report()
    eq("contexts", len({line["context"] for line in d["launches"]}), 3)
    true(f"one is never launched there: {r.err}", re.search(r"\b25 of 25 kernels \(1 more never launched\)", r.err))
    eq("vadd", [(k["launches"], k["recorded"]) for k in d["coverage"] if k["kernel"] == "vadd"], [(3, 3)])
    eq("its accesses", {s["requests"] for s in rows(d, "vadd")}, {96})


@timeout(60)
def test_other_architectures(bench):
    for arch in (75, 90):
        env = {"GPUSIM_ARCH": str(arch)}
        eq(f"sm_{arch}", Recorded(bench, arch=arch, env=env).out, gpu(arch=arch, env=env))


@timeout(60)
def test_aggregate(bench):
    """Sums on the GPU: those of the stream, site by site, and no records."""
    stream, sums = Recorded(bench).report(), Recorded(bench, record=("--mode", "aggregate")).report()
    eq("records", sums["source"]["records"], 0)
    key = lambda s: (s["kernel"], s["opcode"], s["ptx_line"], s["kind"], s["space"])  # noqa: E731
    by_key = {key(s): s for s in sums["sites"]}
    for s in stream["sites"]:
        a = by_key.get(key(s))
        true(f"missing: {key(s)}", a)
        for name in ("requests", "lanes", "bytes", "full", "sectors", "lines", "ideal_lane_sectors", "wavefronts"):
            eq(f"{key(s)} {name}", a[name], s[name])


@timeout(60)
def test_selection(bench):
    """By kernel, launches, instructions, blocks, and the environment that NVBit's tools know."""
    one = Recorded(bench, record=("--kernel", "vadd*"))
    eq("output", one.out, gpu())
    d = one.report()
    eq("kernels", {s["kernel"] for s in d["sites"]}, {"vadd", "vadd64", "vadd4"})
    eq("why not", {k["why_not"] for k in d["coverage"] if not k["recorded"]}, {"not selected"})
    d = Recorded(bench, record=("--launches", "1-2")).report()
    eq("launches", sorted((int(line["id"]), line["kernel"]) for line in d["launches"]), [(1, "vadd64"), (2, "vadd4")])
    d = Recorded(bench, env={"START_GRID_NUM": "1", "END_GRID_NUM": "3"}).report()
    eq("as NVBit's tools say it", sorted(line["kernel"] for line in d["launches"]), ["vadd4", "vadd64"])
    d = Recorded(bench, record=("--sample", "4", "--kernel", "vadd")).report()
    eq("one block in four", {s["requests"] for s in d["sites"]}, {8})
    eq("said", (d["source"]["sample"], d["launches"][0]["sampled"]), (4, True))
    d = Recorded(bench, record=("--space", "shared")).report()
    eq("spaces", {s["space"] for s in d["sites"]}, {"shared"})
    whole = rows(Recorded(bench, record=("--kernel", "vadd")).report(), "vadd")
    d = Recorded(bench, env={"INSTR_BEGIN": "100000", "INSTR_END": "100001", "TTMON_MEMTRACE_KERNELS": "vadd"}).report()
    eq("no instruction", d["sites"], [])
    true("all three", len(whole) == 3)
    for name in ("TTMON_MEMTRACE_LAUNCHES", "TTMON_MEMTRACE_SAMPLE", "INSTR_BEGIN"):
        r = Recorded(bench, env={name: "nonsense"})
        true(f"{name}: {r.err}", re.search(rf"{name}=nonsense: .*nothing is recorded", r.err))
        eq("output", r.out, gpu())


@timeout(60)
def test_falls_back(bench):
    """The driver refuses the rewritten text, or a launch: the program does not notice, and it is said."""
    plain = gpu()
    r = Recorded(bench, env={"GPUSIM_FAIL_LOAD": "1"})
    eq("output", r.out, plain)
    true(r.err, "did not take the rewritten PTX" in r.err)
    coverage = r.report()["coverage"]
    true(f"coverage {coverage}", coverage and all("driver did not take" in k["why_not"] for k in coverage))
    r = Recorded(bench, env={"GPUSIM_FAIL_LAUNCH": "__ttmon_vadd*"})
    eq("output", r.out, plain)
    d = r.report()
    for k in d["coverage"]:
        refused = k["kernel"].startswith("vadd")
        eq(k["kernel"], (k["recorded"] == 0, "did not launch it recorded" in (k["why_not"] or "")), (refused, refused))


@timeout(60)
def test_nobody_reads(bench):
    """The library in the environment of a program, and no reader: nothing happens to it."""
    with tempfile.TemporaryDirectory() as folder:
        env = {"LD_PRELOAD": LIB, "TTMON_MEMTRACE_SOCKET": os.path.join(folder, "none")}
        eq("output", gpu(env=env), gpu())
        done = subprocess.run(["/bin/echo", "hello"], env={**os.environ, **env}, capture_output=True, text=True, check=True)
        eq("no CUDA at all", (done.stdout, done.stderr), ("hello\n", ""))


@timeout(60)
def test_dies_in_the_middle(bench):
    r = Recorded(bench, "--kill", "10", status=137)
    d = r.report()
    true(f"what was recorded is there: {d['source']}, {len(d['launches'])}", int(d["source"]["records"]) > 500 and len(d["launches"]) >= 9)
    true(f"coverage: {d['coverage']}", sum(k["recorded"] > 0 for k in d["coverage"]) >= 9)
    true("said", d["source"]["cut"] or "without saying" in r.err or "killed" in r.err)


@timeout(60)
def test_injected_by_the_driver(bench):
    """CUDA_INJECTION64_PATH: in a program that looks its functions up after cuInit(), or that is linked with the driver."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "inj.ttmt")
        # A reader to connect to: record of a program that does nothing but run ours.
        done = subprocess.run([TTMON, "memtrace", "record", "-o", path, "--", "/bin/sh", "-c", f"unset LD_PRELOAD; CUDA_INJECTION64_PATH={LIB} exec {standin('gpu/run')} {PTX[80]}"],
                              capture_output=True, text=True, check=True, timeout=60 * SLOW)
        eq("output", done.stdout, gpu())
        true(done.stderr, re.search(r"[1-9]\d* pointers to the driver's functions were replaced", done.stderr))
        d = json.loads(subprocess.run([TTMON, "memtrace", "--json", path], capture_output=True, text=True, check=True).stdout)
        true("recorded", d["source"]["records"] > 4000)


@timeout(120)
def test_with_the_daemon(bench):
    """Allocations and accesses of one run: pinned memory that is read in place is in use, in the database and to the advice; what none touches is named."""
    trace = bench.path("t.ttmt")
    _, db, daemon = bench.trace([standin("gpu/run"), "--zero-copy", "--repeat", "3", PTX[80]], "--memtrace-out", trace)
    true(daemon.stderr(), re.search(r"memory accesses of GPU kernels: [\d,]+ requests from 1 contexts, 0 dropped, .* in ", daemon.stderr()))
    pinned = [a for a in db["allocations"] if a["method"] == "host_alloc"]
    true("used in place", [a for a in pinned if a.get("gpu", {}).get("reads")])
    d = json.loads(subprocess.run([TTMON, "memtrace", "--json", "--db", bench.path("db.json"), trace], capture_output=True, text=True, check=True).stdout)
    known = [b for b in d["buffers"] if b["allocation"]]
    true(f"{len(known)} of {len(pinned)} buffers", len(known) >= len(pinned) * 0.9)
    # The stand-in keeps its modules' variables in ordinary memory.
    eq("memory", {b["memory"] for b in known} - {"registered", "mapped"}, {"pinned"})
    true("unknown", sum(b["requests"] for b in d["buffers"] if not b["allocation"]) < 0.05 * d["source"]["records"])
    text = subprocess.run([TTMON, "advise", "--memtrace", trace, bench.path("db.json")], capture_output=True, text=True, check=False).stdout
    true(text, re.search(r"a kernel was seen to read or write in place", text))


@timeout(60)
def test_file_is_not_written_over(bench):
    """A path that cannot be written is said before anything runs."""
    done = subprocess.run([TTMON, "memtrace", "record", "-o", "/nonexistent/x.ttmt", "--", "/bin/echo", "ran"], capture_output=True, text=True, check=False)
    true(f"{done}", done.returncode != 0 and "/nonexistent" in done.stderr and "ran" not in done.stdout)
