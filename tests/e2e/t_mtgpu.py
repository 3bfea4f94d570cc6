# SPDX-License-Identifier: GPL-2.0-only
"""
The recorder in programs that use a GPU: the stand-in driver of tests/standin/gpu runs the kernels' PTX for real, so
what is recorded and what the programs give can be held against each other.
"""
import json
import os
import re
import struct
import subprocess
import tempfile
import zlib

from ptxtext import kernels_only

from e2e import PATIENCE, SLOW, TTMON, Skip, eq, fast, kernel, last_json, standin, timeout, true

KERNEL = False
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PTX = {arch: os.path.join(TOP, "tests", "memtrace", f"kernels_{arch}.ptx") for arch in (75, 80, 90)}
LINKED = [os.path.join(TOP, "tests", "memtrace", f"link_{name}.ptx") for name in "ab"]
OF_V = "v(add|add4|add64|olume)"
LIB = os.path.join(os.path.dirname(os.path.dirname(TTMON)), "libttmon", "libttmon-memtrace.so")


def gpu(*options, arch=80, env=None):
    """A run without us: what it prints."""
    done = subprocess.run(
        [standin("gpu/run"), *options, PTX[arch]],
        capture_output=True,
        text=True,
        check=True,
        timeout=60 * PATIENCE,
        env={**os.environ, **(env or {})},
    )
    return done.stdout


class Recorded:
    """The same under `ttmon memtrace record`; report: what --json says of the file."""

    def __init__(self, bench, *options, arch=80, record=(), env=None, status=0, program=None):
        self.path = bench.path("x.ttmt")
        command = program or [standin("gpu/run"), *options, PTX[arch]]
        done = subprocess.run(
            [TTMON, "memtrace", "record", "-o", self.path, *record, "--", *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=100 * PATIENCE,
            env={**os.environ, **(env or {})},
        )
        eq(f"status ({done.stderr[-400:]})", done.returncode, done.returncode if status is None else status)
        self.out, self.err = done.stdout, done.stderr

    def report(self, *options):
        return json.loads(
            subprocess.run(
                [TTMON, "memtrace", "--json", *options, self.path],
                capture_output=True,
                text=True,
                check=True,
                timeout=60 * PATIENCE,
            ).stdout
        )


def rows(report, kernel):
    """Of the kernel's instructions, in the order of the PTX."""
    return sorted((s for s in report["sites"] if s["kernel"] == kernel), key=lambda s: s["ptx_line"])


@timeout(120)
def test_outputs_are_the_same(bench):
    """
    However kernels are launched and modules loaded: the program gives what it gives without us, and
    all that is launched is recorded alike.
    """
    plain, first = gpu(), None
    for how in ("plain", "extra", "ex", "cooperative", "graph", "capture"):
        for load in ((), ("--library",), ("--dlopen",)):
            r = Recorded(bench, "--how", how, *load)
            eq(f"{how} {load}", r.out, plain)
            d = r.report()
            eq(
                "nothing is lost",
                (d["source"]["dropped"], d["source"]["malformed"], d["source"]["cut"]),
                ("0", 0, False) if isinstance(d["source"]["dropped"], str) else (0, 0, False),
            )
            true(
                f"coverage {d['coverage']}",
                d["coverage"] and all(k["launches"] == k["recorded"] > 0 and not k["why_not"] for k in d["coverage"]),
            )
            seen = [
                (s["kernel"], s["opcode"], s["ptx_line"], s["requests"], s["sectors"], s["wavefronts"])
                for s in d["sites"]
            ]
            first = first or sorted(seen)
            eq(f"{how} {load}: records", sorted(seen), first)
            if how not in ("graph", "capture"):
                true("graphs", not any(line["graph"] for line in d["launches"]))


def linked(*options, only_first=False):
    """A program that links at run time."""
    return [
        standin("gpu/run"),
        "--kernel",
        "vadd*",
        "--link" if only_first else f"--link={LINKED[1]}",
        *options,
        LINKED[0],
    ]


def unrecorded(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 * PATIENCE)
    return done.returncode, done.stdout, done.stderr


@timeout(120)
def test_linked_at_run_time(bench):
    """
    cuLink*() of two texts, of which one calls the other, and that have a kernel in common:
    recorded, also where the cubin is loaded from a copy.
    """
    wanted = unrecorded(linked())
    eq("it can be linked", (wanted[0], len(wanted[1].splitlines())), (0, 2))
    first = None
    for how in ((), ("--link-file",), ("--library",), ("--dlopen",), ("--dlopen", "--link-file", "--library")):
        r = Recorded(bench, program=linked(*how))
        eq(f"{how}: output", r.out, wanted[1])
        d = r.report()
        eq(
            f"{how}: coverage",
            sorted(
                (k["kernel"], k["module"], k["launches"], k["recorded"], k["why_not"], k["sites"], k["left_out"])
                for k in d["coverage"]
            ),
            [("vadd", "link_a.ptx", 1, 1, None, 2, 1), ("vadd64", "link_a.ptx", 1, 1, None, 3, 0)],
        )
        seen = sorted((s["kernel"], s["opcode"], s["requests"], s["sectors"]) for s in d["sites"] if s["requests"])
        first = first or seen
        eq(f"{how}: records", (seen, d["source"]["malformed"]), (first, 0))
    # What vadd calls in the other text is left out; its own function is not.
    eq(
        "vadd",
        [s[1:] for s in first if s[0] != "vadd64"],
        [("ld.global.u32", 32, 125), ("red.global.add.u32", 32, 32), ("st.global.u32", 32, 125)],
    )
    eq(
        "vadd64",
        [s[1:] for s in first if s[0] == "vadd64"],
        [("ld.global.f64", 32, 250)] * 2 + [("st.global.f64", 32, 250)],
    )
    d = Recorded(bench, program=linked(), record=("--kernel", "vadd64")).report()
    eq(
        "selected",
        sorted((k["kernel"], k["recorded"], k["why_not"]) for k in d["coverage"]),
        [("vadd", 0, "not selected"), ("vadd64", 1, None)],
    )


def ours_aside(text):
    return "".join(line for line in text.splitlines(True) if not line.startswith(("libttmon", "ttmon")))


@timeout(120)
def test_links_fall_back(bench):
    """
    The driver refuses an input of ours, or the link as a whole: all of it is done again, and what
    the linker says is what it says without us.
    """
    for how in ((), ("--link-file",)):
        wanted = unrecorded(linked(*how))
        for env in (
            {"GPUSIM_FAIL_LINK": "1"},
            *({"GPUSIM_FAIL_LOAD": n, "GPUSIM_FAIL_INPUT": error} for n in "12" for error in ("218", "1")),
        ):
            r = Recorded(bench, program=linked(*how), env=env)
            eq(f"{how} {env}", (0, r.out, ours_aside(r.err)), wanted)
            true(r.err, re.search(rf"did not link the rewritten PTX: error {env.get('GPUSIM_FAIL_INPUT', 2)}", r.err))
            coverage = r.report()["coverage"]
            true(
                f"coverage {coverage}",
                len(coverage) == 2 and all("did not link" in k["why_not"] and not k["recorded"] for k in coverage),
            )
    # What is wrong without us is wrong in the same way.
    wanted = unrecorded(linked(only_first=True))
    true(wanted[2], wanted[0] == 2 and "fetch is called and nowhere defined" in wanted[2])
    r = Recorded(bench, program=linked(only_first=True), status=2)
    eq(
        "unresolved",
        (r.out, re.sub(r"line \d+", "line", ours_aside(r.err))),
        (wanted[1], re.sub(r"line \d+", "line", wanted[2])),
    )


# Links the texts that lie in a library, both named by the program, the second with options if there
# are any, and launches their kernels for no element.
LINKS = """
import ctypes, sys
cu, lib = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(sys.argv[1])
def check(err):
    if err:
        sys.exit(f"error {err}")
ctx, link, cubin, module, function = (ctypes.c_void_p() for _ in range(5))
check(cu.cuInit(0) or cu.cuCtxCreate_v2(ctypes.byref(ctx), 0, 0))
check(cu.cuLinkCreate_v2(0, None, None, ctypes.byref(link)))
opts = [int(o) for o in sys.argv[3:]]
at = sys.argv[2]
for name in "ab":
    text = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(lib, name)))
    n = len(opts) if name == at else 0
    data, size = ctypes.byref(ctypes.c_char.in_dll(lib, name)), ctypes.c_size_t(len(text) + 1)
    check(cu.cuLinkAddData_v2(link, 1, data, size, name.encode(), n,
                              (ctypes.c_int * 4)(*opts), (ctypes.c_void_p * 4)()))
check(cu.cuLinkComplete(link, ctypes.byref(cubin), None) or cu.cuModuleLoadData(ctypes.byref(module), cubin))
params = [ctypes.c_uint64(0) for _ in range(4)]
for name in (b"vadd", b"vadd64"):
    check(cu.cuModuleGetFunction(ctypes.byref(function), module, name))
    args = (ctypes.c_void_p * 4)(*(ctypes.addressof(p) for p in params))
    check(cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, args, None))
check(cu.cuLinkDestroy(link))
"""


@timeout(60)
def test_links_left_alone(bench):
    """
    Texts in one of NVIDIA's libraries, whatever the program calls them; and options that are
    pointers, which cannot be given again.
    """
    source = "".join(
        f'.globl {x}\n.type {x}, @object\n{x}: .incbin "{path}"\n.byte 0\n.size {x}, .-{x}\n'
        for x, path in zip("ab", LINKED)
    )
    with open(bench.path("texts.s"), "w", encoding="utf-8") as f:
        f.write(".data\n" + source + '.section .note.GNU-stack,""\n')
    pointers = "options of an input are pointers, or there is no memory for a copy"
    for lib, record, at, why in (
        ("libmine.so", (), (), None),
        ("libcufft.so.11", (), (), "one of NVIDIA's libraries"),
        ("libcufft.so.11", ("--all-modules",), (), None),
        ("libmine.so", (), ("a", "17"), pointers),
        ("libmine.so", (), ("b", "17"), pointers),
    ):
        subprocess.run(["gcc", "-shared", "-nostdlib", "-o", bench.path(lib), bench.path("texts.s")], check=True)
        r = Recorded(
            bench,
            program=["/usr/bin/python3", "-c", LINKS, bench.path(lib), *(at or ("a",))],
            record=record,
            env={"LD_LIBRARY_PATH": standin("gpu")},
        )
        eq(
            f"{lib} {record} {at}: {r.err}",
            sorted((k["kernel"], k["launches"], k["recorded"], k["why_not"]) for k in r.report()["coverage"]),
            [(kernel, 1, int(not why), why) for kernel in ("vadd", "vadd64")],
        )


@timeout(60)
def test_in_another_context(bench):
    """
    Kernels of a library in streams of, and nodes for, another GPU than the current one: recorded
    there. The stand-in's GPUs do not reach each other's memory.
    """
    env = {"GPUSIM_DEVICES": "2"}
    options = ("--library", "--elsewhere", "--threads", "2", "--contexts", "2")
    for how in ("plain", "extra", "ex", "cooperative", "graph", "capture"):
        r = Recorded(bench, "--how", how, *options, env=env)
        eq(f"{how}: output", sorted(r.out.splitlines()), sorted(gpu("--how", how, *options, env=env).splitlines()))
        d = r.report()
        true(f"{how}: coverage {d['coverage']}", all(k["launches"] == k["recorded"] for k in d["coverage"]))
        eq(
            f"{how}: vadd",
            ({s["requests"] for s in rows(d, "vadd")}, len({line["context"] for line in d["launches"]})),
            ({64}, 2),
        )


@timeout(120)
def test_edges(bench):
    """
    A child that was forked has the parent's channel in its memory, modules that go while others
    run, an end beside running kernels.
    """
    for way, right, launches in (("fork", 2, 2), ("unload", 50, 50), ("exit", 1, 21)):
        command = [standin("gpu/edge"), way, PTX[80]]
        eq(f"{way}: it works", unrecorded(command)[:2], (0, f"{right}\n"))
        r = Recorded(bench, program=command)
        eq(f"{way}: output", r.out, f"{right}\n")
        d = r.report()
        eq(
            f"{way}: {r.err}",
            [(k["kernel"], k["launches"], k["recorded"]) for k in d["coverage"] if k["launches"]],
            [("vadd", launches, launches)],
        )
        if SLOW > 1 and "or a kernel went on" in json.dumps(
            d
        ):  # a program waits two seconds for its kernels, which an emulated processor interprets
            continue
        eq(
            f"{way}: records",
            ({s["requests"] for s in rows(d, "vadd")}, d["source"]["malformed"], d["source"]["cut"]),
            ({32 * launches}, 0, False),
        )
        true(f"{way}: {r.err}", "not recorded" not in r.err)


@timeout(30)
def test_is_never_unloaded(bench):  # pylint: disable=unused-argument
    """Closed by whoever opened it, it stays: programs hold pointers to it."""
    code = (
        f"import ctypes, _ctypes; _ctypes.dlclose(ctypes.CDLL({LIB!r})._handle); "
        "print('libttmon-memtrace' in open('/proc/self/maps').read())"
    )
    eq("still there", unrecorded(["/usr/bin/python3", "-c", code])[:2], (0, "True\n"))


@fast
@timeout(60)
def test_what_is_recorded(bench):
    """
    Figures that can be worked out: 1000 elements in 8 blocks of 128 threads, the last warp of the
    last block has 8.
    """
    d = Recorded(bench).report()
    for s in rows(d, "vadd"):
        eq(
            s["opcode"],
            (s["requests"], s["lanes"], s["sectors"], s["ideal_sectors"], s["class"]),
            (32, 1000, 125, 125, "sequential"),
        )
    eq("vadd", [s["kind"] for s in rows(d, "vadd")], ["load", "load", "store"])
    eq("f64", {s["sectors"] for s in rows(d, "vadd64")}, {250})
    eq("float4", {s["sectors"] for s in rows(d, "vadd4")}, {500})
    naive = rows(d, "transpose_naive")
    eq("rows in, columns out", {(s["kind"], s["sectors_per_request"]) for s in naive}, {("load", 4.0), ("store", 32.0)})
    banks = [s for s in rows(d, "transpose_banks") if s["space"] == "shared" and s["kind"] == "load"]
    padded = [s for s in rows(d, "transpose_padded") if s["space"] == "shared" and s["kind"] == "load"]
    eq(
        "bank conflicts",
        ({s["wavefronts_per_request"] for s in banks}, {s["wavefronts_per_request"] for s in padded}),
        ({32.0}, {1.0}),
    )
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


# What only records have: their number, and what follows from their order. Addresses are another run's.
OF_RECORDS = {"records", "step", "step_votes", "stride", "stride_votes", "first_byte", "last_byte", "row"}


@timeout(100)
def test_aggregate(bench):
    """
    Sums on the GPU: those of the stream, site by site, with classes and distributions, and no
    records; and as many launches.
    """
    for arch, load in ((80, ()), (90, ("--library",))):
        stream, sums = (
            Recorded(bench, *load, arch=arch, env={"GPUSIM_ARCH": str(arch)}, record=how).report()
            for how in ((), ("--mode", "aggregate"))
        )
        eq("records", sums["source"]["records"], 0)
        key = lambda s: (s["kernel"], s["opcode"], s["ptx_line"], s["kind"], s["space"])  # noqa: E731
        by_key = {key(s): s for s in sums["sites"]}
        eq("instructions", sorted(by_key), sorted({key(s) for s in stream["sites"]}))
        classes = set()
        for s in stream["sites"]:
            a = by_key[key(s)]
            eq("what of an instruction there is", set(a) - OF_RECORDS, set(s) - OF_RECORDS)
            eq(f"{key(s)}", *({k: v for k, v in x.items() if k not in OF_RECORDS and a[k] != s[k]} for x in (a, s)))
            if a["stride"] is not None:
                eq(f"{key(s)}: the stride of most", a["stride"], s["stride"])
            classes |= set(a["classes"])
        true(
            f"classes: {classes}",
            classes >= {"single", "broadcast", "sequential", "strided", "segmented", "clustered", "gather"},
        )
        launches = {k["kernel"]: k["launches"] for k in sums["kernels"]}
        eq(
            "launches",
            {k["kernel"]: launches.get(k["kernel"]) for k in stream["kernels"]},
            {k["kernel"]: k["launches"] for k in stream["kernels"]},
        )


def memtrace(*args, status=0):
    done = subprocess.run(
        [TTMON, "memtrace", *args], capture_output=True, text=True, check=False, timeout=60 * PATIENCE
    )
    eq(f"ttmon memtrace {args}: {done.stderr}", done.returncode, status)
    return done.stdout


def blocks(data):
    """Of a file of our own: kind, items, plain bytes. memtrace/stream/stream.h."""
    at = 48
    while at < len(data):
        _, kind, stored, size, items, _ = struct.unpack_from("<6I", data, at)
        body = data[at + 24 : at + 24 + stored]
        yield kind, items, body if stored == size else zlib.decompress(body)
        at += 24 + stored


def as_older(data):
    """The file as older versions wrote it: of sums of the GPU the first 13 numbers alone."""
    out = data[:48]
    for kind, items, body in blocks(data):
        if kind == 8:
            numbers = re.findall(rb"[\x80-\xff]*[\x00-\x7f]", body)
            each = (len(numbers) - 1) // items
            kind, body = 3, numbers[0] + b"".join(b"".join(numbers[1 + i * each :][:13]) for i in range(items))
        head = data[48:52] + struct.pack("<4I", kind, len(body), len(body), items)
        out += head + struct.pack("<I", zlib.crc32(head + body)) + body
    return out


@timeout(60)
def test_convert_sums(bench):
    """Of sums of the GPU those of the instructions that are asked for go into the file."""
    r = Recorded(bench, record=("--mode", "aggregate"))
    part = bench.path("part.ttmt")
    for pick in (("--kernel", "vadd"), ("--site", "ld.global*"), ("--space", "shared"), ("--launch", "0")):
        memtrace("convert", *pick, "-o", part, r.path)
        want, got = (json.loads(memtrace("--json", *args)) for args in ((*pick, r.path), (part,)))
        names = [
            sorted(
                (s["kernel"], s["opcode"], s["ptx_line"], s["requests"], s["sectors"], s["wavefronts"])
                for s in d["sites"]
            )
            for d in (got, want)
        ]
        eq(f"{pick}", *names)
        true(f"{pick}: {len(names[0])}", bool(names[0]) == (pick[0] != "--launch"))


@timeout(60)
def test_older_sums(bench):
    """Sums without distinct bytes: the efficiency is of requested ones, and is called so."""
    r = Recorded(bench, record=("--mode", "aggregate", "--kernel", "vadd"))
    old = bench.path("old.ttmt")
    with open(r.path, "rb") as f, open(old, "wb") as to:
        to.write(as_older(f.read()))
    true("new", "of distinct bytes." in memtrace(r.path))
    text = memtrace(old)
    true(text, re.search(r"^Global and local memory: 96 requests, .* of requested bytes\.$", text, re.M))
    for a, b, which in ((r.path, r.path, "unique"), (old, r.path, "requested"), (r.path, old, "requested")):
        d = json.loads(memtrace("diff", "--json", a, b))
        eq(f"{which}", {d["efficiency"]}, {which})
        for s in (d["a"]["total"], d["b"]["total"], *(s[x] for s in d["sites"] for x in "ab")):
            eq("efficiency", s["efficiency"], s[f"efficiency_{which}"])


@timeout(60)
def test_diff_of_a_function(bench):
    """Launches of a device function are not known: of twice as many, the cost of a request is the same."""
    paths = []
    for n in "12":
        r = Recorded(bench, program=linked("--threads", n))
        paths.append(bench.path(f"{n}.ttmt"))
        os.rename(r.path, paths[-1])
    d = json.loads(memtrace("diff", "--json", *paths))
    eq("verdicts", {s["verdict"] for s in d["sites"]}, {"same"})
    of = {s["kernel"]: s for s in d["sites"]}
    own = of["own"]
    eq("requests", 2 * own["a"]["requests"], own["b"]["requests"])
    eq("a function", [own[k] for k in ("differs", "differs_by", "cost_of")], [False, "rates", "request"])
    eq("a kernel", [of["vadd64"][k] for k in ("differs", "differs_by", "cost_of")], [True, "sums", "launch"])
    eq("alike", json.loads(memtrace("diff", "--json", "--exit-code", "--kernel", "own", *paths))["differs"], False)


@timeout(60)
def test_more_than_can_be_counted(bench):
    """Counters for 65,536 instructions, of which generic ones have three: what finds none is left out, and said."""
    with open(PTX[80], encoding="utf-8") as f:
        text = f.read()
    first = text.index(".visible .entry")
    many = (
        ".visible .entry unused(.param .u64 p)\n{\n.reg .b64 %a;\n.reg .b32 %x;\nld.param.u64 %a, [p];\n"
        + 21845 * "ld.u32 %x, [%a];\n"
        + "ret;\n}\n"
    )
    with open(bench.path("many.ptx"), "w", encoding="utf-8") as f:
        f.write(text[:first] + many + text[first:])
    r = Recorded(
        bench, record=("--mode", "aggregate"), program=[standin("gpu/run"), "--kernel", "vadd*", bench.path("many.ptx")]
    )
    d = r.report()
    eq(
        "coverage",
        [(k["kernel"], k["sites"], k["left_out"]) for k in d["coverage"] if k["launches"]],
        [("vadd", 1, 2), ("vadd64", 0, 3), ("vadd4", 0, 3)],
    )
    eq("counted", [(s["kernel"], s["requests"]) for s in d["sites"]], [("vadd", 32)])
    # Of what is linked too: in functions, and in a kernel that both inputs have.
    with open(LINKED[0], encoding="utf-8") as f:
        text = f.read()
    first = text.index(".func (.param .b32 r) own")
    with open(bench.path("link_many.ptx"), "w", encoding="utf-8") as f:
        f.write(text[:first] + many + text[first:])
    r = Recorded(
        bench,
        record=("--mode", "aggregate"),
        program=[standin("gpu/run"), "--kernel", "vadd*", f"--link={LINKED[1]}", bench.path("link_many.ptx")],
    )
    # vadd: itself 1, that it calls another input 1, the function 1.
    eq(
        "of a link",
        sorted((k["kernel"], k["sites"], k["left_out"]) for k in r.report()["coverage"] if k["launches"]),
        [("vadd", 1, 3), ("vadd64", 0, 3)],
    )


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
    some = Recorded(bench, "--kernel", "vadd", "--repeat", "3", record=("--launches", "0-1"))
    true(
        some.err,
        "launches that were not selected, or could not be recorded: 1 kernel, 2 of 3 launches recorded\n" in some.err,
    )
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
    true(r.err, "did not compile the rewritten PTX" in r.err)
    coverage = r.report()["coverage"]
    true(f"coverage {coverage}", coverage and all("driver did not compile" in k["why_not"] for k in coverage))
    r = Recorded(bench, env={"GPUSIM_FAIL_LAUNCH": "__ttmon_vadd*"})
    eq("output", r.out, plain)
    d = r.report()
    for k in d["coverage"]:
        refused = k["kernel"].startswith("vadd")
        eq(k["kernel"], (k["recorded"] == 0, "did not launch it recorded" in (k["why_not"] or "")), (refused, refused))


def variants(bench):
    """Commands that run the stand-in GPU on a text that is linked with the recorder, and on one that is not."""
    path = bench.path("alone.ptx")
    eq("kernels", kernels_only(path, 80, OF_V), ["vadd", "vadd64", "vadd4", "volume"])
    for text, kernels in ((path, ("--kernel", "v*")), (PTX[80], ())):
        for load in ((), ("--library",)):
            command = [standin("gpu/run"), *kernels, *load, text]
            yield f"{os.path.basename(text)} {load}", command, unrecorded(command)[1]


@timeout(120)
def test_a_kernel_that_is_refused(bench):
    """
    The compiler refuses the copies of two kernels, with and without their names: the program's output is the same,
    and all other kernels are recorded. Also where modules are loaded lazily, so that the text itself would be refused
    when the program gets a function of it, or launches it.
    """
    wanted = ("too much shared data", "Register allocation failed")
    for what, command, plain in variants(bench):
        for quietly, lazy in ((0, ""), (0, "1"), (1, ""), (1, "1")):
            env = {
                "GPUSIM_REFUSE": "__ttmon_vadd[46]*",
                "GPUSIM_REFUSE_QUIETLY": str(quietly or ""),
                "GPUSIM_LAZY": lazy,
            }
            r = Recorded(bench, program=command, env=env)
            eq(f"{env} {what}", r.out, plain)
            coverage = {k["kernel"]: k for k in r.report()["coverage"]}
            refused = {name for name, k in coverage.items() if not k["recorded"]}
            eq(f"{env} {what}: not recorded", refused, {"vadd4", "vadd64"})
            for name in refused:
                why = coverage[name]["why_not"]
                true(why, wanted[quietly] in why and f"{name} is not recorded" in r.err)


@timeout(60)
def test_a_compiler_that_takes_too_long(bench):
    """The program goes on with its own kernels, and ends when the compiler has ended."""
    for what, command, plain in variants(bench):
        r = Recorded(bench, program=command, env={"GPUSIM_SLOW_COMPILER": "1000", "TTMON_MEMTRACE_COMPILE_MS": "50"})
        eq(what, r.out, plain)
        coverage = r.report()["coverage"]
        true(f"{what}: {r.err}", coverage)
        for k in coverage:
            true(f"{what}: {k}", "took more than 50 ms" in (k["why_not"] or "") and not k["recorded"])


@timeout(60)
def test_linked_with_the_recorder(bench):
    """
    A text without functions is linked with the recorder as a module of its own: what is recorded is what the same
    kernels give with the recorder in the text.
    """
    seen = []
    for what, command, plain in variants(bench):
        with tempfile.TemporaryDirectory() as texts:
            r = Recorded(bench, program=command, env={"GPUSIM_PTX_LOG": texts})
            loaded = [open(os.path.join(texts, name), encoding="utf-8").read() for name in os.listdir(texts)]
        eq(what, r.out, plain)
        apart = any(".visible .func __ttmon$rec" in text for text in loaded)
        eq(f"{what}: the recorder is a module of its own", apart, "alone" in what)
        sites = [s for s in r.report()["sites"] if re.fullmatch(OF_V, s["kernel"])]
        seen.append(sorted((s["kernel"], s["opcode"], s["requests"], s["sectors"]) for s in sites))
    eq("records", [s == seen[0] and len(s) > 8 for s in seen], [True] * 4)


@timeout(60)
def test_nobody_reads(bench):
    """The library in the environment of a program, and no reader: nothing happens to it."""
    with tempfile.TemporaryDirectory() as folder:
        env = {"LD_PRELOAD": LIB, "TTMON_MEMTRACE_SOCKET": os.path.join(folder, "none")}
        eq("output", gpu(env=env), gpu())
        done = subprocess.run(
            ["/bin/echo", "hello"], env={**os.environ, **env}, capture_output=True, text=True, check=True
        )
        eq("no CUDA at all", (done.stdout, done.stderr), ("hello\n", ""))


@timeout(60)
def test_dies_in_the_middle(bench):
    r = Recorded(bench, "--kill", "10", status=137)
    d = r.report()
    true(
        f"what was recorded is there: {d['source']}, {len(d['launches'])}",
        int(d["source"]["records"]) > 500 and len(d["launches"]) >= 9,
    )
    true(f"coverage: {d['coverage']}", sum(k["recorded"] > 0 for k in d["coverage"]) >= 9)
    true("said", d["source"]["cut"] or "without saying" in r.err or "killed" in r.err)


@timeout(60)
def test_injected_by_the_driver(bench):
    """
    CUDA_INJECTION64_PATH: in a program that looks its functions up after cuInit(), or that is
    linked with the driver.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "inj.ttmt")
        # A reader to connect to: record of a program that does nothing but run ours.
        done = subprocess.run(
            [
                TTMON,
                "memtrace",
                "record",
                "-o",
                path,
                "--",
                "/bin/sh",
                "-c",
                f"unset LD_PRELOAD; CUDA_INJECTION64_PATH={LIB} exec {standin('gpu/run')} {PTX[80]}",
            ],
            capture_output=True,
            text=True,
            check=True,
            timeout=60 * PATIENCE,
        )
        eq("output", done.stdout, gpu())
        true(done.stderr, re.search(r"[1-9]\d* pointers to the driver's functions were replaced", done.stderr))
        d = json.loads(
            subprocess.run([TTMON, "memtrace", "--json", path], capture_output=True, text=True, check=True).stdout
        )
        true("recorded", d["source"]["records"] > 4000)


@kernel(True)
@timeout(120)
def test_with_the_daemon(bench):
    """
    Allocations and accesses of one run: pinned memory that is read in place is in use, in the
    database and to the advice; what none touches is named.
    """
    trace = bench.path("t.ttmt")
    _, db, daemon = bench.trace([standin("gpu/run"), "--zero-copy", "--repeat", "3", PTX[80]], "--memtrace-out", trace)
    true(
        daemon.stderr(),
        re.search(
            r"memory accesses of GPU kernels: [\d,]+ requests from 1 contexts, 0 dropped, .* in ", daemon.stderr()
        ),
    )
    pinned = [a for a in db["allocations"] if a["method"] == "host_alloc"]
    true("used in place", [a for a in pinned if a.get("gpu", {}).get("reads")])
    d = json.loads(
        subprocess.run(
            [TTMON, "memtrace", "--json", "--db", bench.path("db.json"), trace],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    known = [b for b in d["buffers"] if b["allocation"]]
    true(f"{len(known)} of {len(pinned)} buffers", len(known) >= len(pinned) * 0.9)
    # The stand-in keeps its modules' variables in ordinary memory.
    eq("memory", {b["memory"] for b in known} - {"registered", "mapped"}, {"pinned"})
    true("unknown", sum(b["requests"] for b in d["buffers"] if not b["allocation"]) < 0.05 * d["source"]["records"])
    text = subprocess.run(
        [TTMON, "advise", "--memtrace", trace, bench.path("db.json")], capture_output=True, text=True, check=False
    ).stdout
    true(text, re.search(r"kernels accessed \d+ of them in place", text))


@timeout(60)
def test_file_is_not_written_over(bench):
    """A path that cannot be written is said before anything runs."""
    done = subprocess.run(
        [TTMON, "memtrace", "record", "-o", "/nonexistent/x.ttmt", "--", "/bin/echo", "ran"],
        capture_output=True,
        text=True,
        check=False,
    )
    true(f"{done}", done.returncode != 0 and "/nonexistent" in done.stderr and "ran" not in done.stdout)
