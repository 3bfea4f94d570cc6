# SPDX-License-Identifier: GPL-2.0-only
"""
`ttmon memtrace`: report, print, convert and diff on traces of which every figure is known, live
through a pipe and on a terminal, joined with allocations.
"""
import contextlib
import csv
import fcntl
import gzip
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from e2e import PATIENCE, TTMON, eq, fast, kernel, standin, timeout, true
from t_cpu import Service
from tt_host import api, wait_probed

KERNEL = False
CTX = 0x55D0C0DE000
BANNER = "------------- NVBit (NVidia Binary Instrumentation Tool v1.7.6) Loaded --------------"
A, B = 0x7F0A00000000, 0x7F0A00800000
OWN = ["hello", "step 1 - loss 0.5", "", "done"]  # the program's own lines


def access(launch, cta, warp, opcode, addrs):
    return f"MEMTRACE: CTX {CTX:#018x} - grid_launch_id {launch} - CTA {cta},0,0 - warp {warp} - {opcode} - " + "".join(
        f"0x{a:016x} " for a in addrs
    )


def launch_line(nr, name, grid=8, block=256):
    return (
        f"MEMTRACE: CTX {CTX:#018x} - LAUNCH - Kernel pc {0:#018x} - Kernel name {name} - grid launch id {nr} - grid "
        f"size {grid},1,1 - "
        f"block size {block},1,1 - nregs 16 - shmem 0 - cuda stream id 0"
    )


# Opcode, step between lanes, start: what 32 lanes cost (sectors, lines, ideal), class. The analytic
# table of ttmon-memtrace(1).
KNOWN = [
    ("LDG.E", 4, A, (4, 1, 4), "sequential"),
    ("LDG.E.64", 8, A + 0x10000, (8, 2, 8), "sequential"),
    ("LDG.E.128", 16, A + 0x20000, (16, 4, 16), "sequential"),
    ("LDG.E.U8", 1, A + 0x30000, (1, 1, 1), "sequential"),
    ("STG.E", 8, A + 0x40000, (8, 2, 4), "strided"),
    ("STG.E.64", 128, A + 0x50000, (32, 32, 8), "strided"),
    ("LDG.E.CONSTANT", -4, A + 0x60000 + 124, (4, 1, 4), "reversed"),
    ("ATOMG.E.ADD", 0, A + 0x70000, (1, 1, 1), "broadcast"),
]
REPEAT = 40


def known_trace(name="void stream<float>(float const*, int)"):
    lines = [BANNER, OWN[0], launch_line(0, name), OWN[1]]
    for i in range(REPEAT):
        for opcode, step, start, _, _ in KNOWN:
            lines.append(access(0, i, i % 8, opcode, [start + step * k for k in range(32)]))
        # Rows of 32 words in one bank, and the same with a word of padding.
        lines.append(access(0, i, i % 8, "STS", [0x400 + 128 * k for k in range(32)]))
        lines.append(access(0, i, i % 8, "LDS", [0x400 + 132 * k for k in range(32)]))
    lines += [OWN[2], launch_line(1, "void second(int*)", 2, 32)]
    lines += [access(1, i, 0, "LDG.E", [B + 4096 * k for k in range(32)]) for i in range(2)]
    return lines + [OWN[3]]


def write(bench, name, lines):
    path = bench.path(name)
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return path


def memtrace(*args, status=0, feed=None):
    """Its output; (its output, its errors) where a status other than 0 is wanted."""
    done = subprocess.run(
        [TTMON, "memtrace", *args],
        input=feed,
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    eq(f"ttmon memtrace {args}: {done.stderr}", done.returncode, status)
    return (done.stdout, done.stderr) if status else done.stdout


def doc(*args, feed=None):
    return json.loads(memtrace("--json", *args, feed=feed))


def without_strides(d):
    """
    Sums are made whenever the input pauses, on a busy machine more often. Where several sites are
    summed and no stride is that of most requests, the one that is kept depends on that.
    """
    if isinstance(d, dict):
        return {k: without_strides(v) for k, v in d.items() if k != "stride"}
    return [without_strides(v) for v in d] if isinstance(d, list) else d


def figures(d):
    """What an analysis says, whatever the form of the trace was."""
    return {k: v for k, v in d.items() if k not in ("source", "reuse")}


@fast
def test_figures(bench):
    """Every figure of accesses whose cost is known; tables, CSV and JSON say the same."""
    path = write(bench, "a.txt", known_trace())
    d = doc(path)
    eq(
        "source",
        (d["source"]["tool"], d["source"]["records"], d["source"]["foreign"], d["source"]["malformed"]),
        ("NVBit 1.7.6 mem_trace", REPEAT * (len(KNOWN) + 2) + 2, 5, 0),
    )
    stream = {s["opcode"]: s for s in d["sites"] if "stream" in s["kernel"]}
    for opcode, step, start, (sectors, lines, ideal), kind in KNOWN:
        s = stream[opcode]
        eq(
            f"{opcode} by {step}",
            (s["requests"], s["sectors"], s["lines"], s["ideal_sectors"], s["class"], s["class_share"]),
            (REPEAT, sectors * REPEAT, lines * REPEAT, ideal * REPEAT, kind, 1),
        )
        eq(f"first byte of {opcode}", int(s["first_byte"], 16), start + min(0, 31 * step))
        eq(f"lanes of {opcode}", (s["lanes"], s["full"]), (32 * REPEAT, REPEAT))
    eq("bank conflicts", [stream[o]["wavefronts"] // REPEAT for o in ("STS", "LDS")], [32, 1])
    eq(
        "atomics",
        (stream["ATOMG.E.ADD"]["max_same_word"], stream["ATOMG.E.ADD"]["reads"], stream["ATOMG.E.ADD"]["writes"]),
        (32, REPEAT, REPEAT),
    )
    eq("efficiency", [stream["STG.E"][f"efficiency_{x}"] for x in ("unique", "requested")], [0.5, 0.5])
    eq(
        "efficiency of a broadcast",
        [stream["ATOMG.E.ADD"][f"efficiency_{x}"] for x in ("unique", "requested")],
        [0.125, 4],
    )
    eq("worst first", d["sites"][0]["opcode"] in ("STS", "STG.E.64"), True)
    saves = [s["could_save"] for s in d["sites"]]
    eq("in order", saves, sorted(saves, reverse=True))
    eq("totals", d["totals"]["all"]["requests"], d["source"]["records"])
    # Bytes of shared memory are in no sector: they are not in the efficiency of all.
    memory = [s for s in d["sites"] if s["space"] != "shared"]
    true("shared memory is there", len(memory) < len(d["sites"]))
    for what, of in (("unique", "unique_bytes"), ("requested", "bytes")):
        eq(
            f"efficiency of all, {what}",
            d["totals"]["all"][f"efficiency_{what}"],
            round(sum(s[of] for s in memory) / 32 / sum(s["sectors"] for s in memory), 3),
        )
    eq(
        "launches",
        sorted((r["id"], r["kernel"].split("<")[0], r["grid"]) for r in d["launches"]),
        [(0, "void stream", [8, 1, 1]), (1, "void second(int*)", [2, 1, 1])],
    )
    true(f"findings {d['findings']}", {"bank conflicts", "uncoalesced"} <= {f["what"] for f in d["findings"]})
    for f in d["findings"]:
        if f["what"] == "bank conflicts":
            eq("the site it is of", [s["opcode"] for s in d["sites"] if s["row"] == f["site"]], ["STS"])
    # Shares that were counted are said, guesses only sort.
    eq("estimates", {f["what"] for f in d["findings"] if f["estimated"]}, {"narrow", "contention"})
    shown = re.findall(r"^ *([\d.]+%|-)  \S+ in ", memtrace(path), re.M)
    eq(
        "shares of findings",
        shown,
        ["-" if f["estimated"] else f"{100 * f['weight'] + 1e-9:.1f}%" for f in d["findings"]],
    )
    rows = list(csv.DictReader(io.StringIO(memtrace("--csv", path))))
    eq(
        "CSV",
        [(r["opcode"], int(r["sectors"]), r["class"]) for r in rows],
        [(s["opcode"], s["sectors"], s["class"]) for s in d["sites"]],
    )
    for what in ("launches", "kernels", "buffers"):
        rows = list(csv.DictReader(io.StringIO(memtrace(f"--csv={what}", path))))
        eq(
            f"CSV of {what}",
            [int(r["requests"]) for r in rows],
            [(r if what == "buffers" else r["global"])["requests"] for r in d[what]],
        )
    text = memtrace(path)
    true(
        f"of memory alone: {text[:400]}",
        f"efficiency {100 * d['totals']['all']['efficiency']:.1f}% of distinct bytes." in text,
    )
    true("no colour in a pipe", "\x1b" not in text)
    for opcode, _, _, (sectors, _, _), kind in KNOWN:
        true(
            f"{opcode} in {text}",
            re.search(rf" {sectors}\.00 .* {kind}.* {re.escape(opcode)} +stream<float>$", text, re.M),
        )
    for part in (
        "FINDINGS",
        "SITES of global",
        "SITES of shared",
        "ATOMICS",
        "DIVERGENCE",
        "LAUNCHES",
        "KERNELS",
        "BUFFERS",
        "REUSE",
        "HEAT",
    ):
        true(part, f"\n{part}" in text)
    true("what is in doubt is said", f"{d['source']['records']} records (100%) are inferred" in text)
    only = memtrace("--launches", path)
    true("one part", "\nLAUNCHES" in only and "SITES" not in only and "HEAT" not in only)
    one = memtrace("-n", "1", "--sites", path)
    true("rows", re.search(r"SITES of global.*: 1 of 9 ", one))


def test_columns(bench):
    """The manual's list has every member of JSON's rows and every column of CSV, and both say the same of a row."""
    path = write(bench, "a.txt", known_trace())
    listed, of = {}, None
    for line in memtrace("report", "--help=columns").splitlines():
        if line.startswith(".B "):
            of = listed.setdefault(line[3:], {})
        for name in re.findall(r"^\\fB([^\\]+)", line):
            of[name] = line
    d = doc(path)
    sums = set(listed["sums"])
    for what, rows in ((w, d[w]) for w in ("sites", "launches", "kernels", "buffers")):
        names = set(listed[what]) | (sums if "sums" in listed[what] else set())
        members = {k for r in rows for k in r} - ({"sites"} if what == "buffers" else set())
        true(f"JSON of {what}: {members - names}", members <= names)
        table = list(csv.DictReader(io.StringIO(memtrace(f"--csv={what}", path))))
        eq(f"rows of {what}", len(table), len(rows))
        for mine, theirs in zip(table, rows):
            theirs = {**theirs.get("global", {}), **theirs}
            for name in mine.keys() & theirs.keys():
                value = theirs[name]
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    true(f"{what}, {name}: {mine[name]}, {value}", abs(float(mine[name]) - value) < 0.001)
                elif value is None:
                    true(f"{what}, {name}, not known: {mine[name]}", mine[name] in ("", '""'))
        for name in table[0]:
            stem = re.sub(r"_[xyz]$", "", name)
            mixed = what == "kernels" and (
                name.startswith("width_") or any(name.startswith(f"{s}_") for s in rows[0]["mix"])
            )
            true(f"CSV of {what}: {name}", mixed or name in names | sums or stem in names)


def test_pick(bench):
    """Some kernels, launches and spaces alone."""
    path = write(bench, "a.txt", known_trace())
    n = REPEAT * (len(KNOWN) + 2)
    for args, wanted in (
        (["--kernel", "*second*"], 2),
        (["--kernel", "*stream*"], n),
        (["--kernel", "nothing"], 0),
        (["--kernel", "second"], 2),
        (["--launch", "0"], n),
        (["--launch", "1-"], 2),
        (["--launch", "-5"], n + 2),
        (["--space", "shared"], 2 * REPEAT),
        (["--space", "global", "--launch", "0-0"], n - 2 * REPEAT),
        (["--site", "LDG.E"], REPEAT + 2),
        (["--site", "LDG.E*", "--launch", "0"], 5 * REPEAT),
        (["--site", "kernels.cu:*"], 0),
    ):
        eq(f"{args}", doc(*args, path)["totals"]["all"]["requests"], wanted)
        eq(f"print {args}", memtrace("print", *args, path).count(" - grid_launch_id "), wanted)
    eq("which efficiency", doc("--efficiency", "requested", path)["selection"]["efficiency"], "requested")
    true("is said", "bytes requested / (32" in memtrace("--efficiency", "requested", path))
    eq("what was chosen", [doc("--site", "STS", path)["selection"][k] for k in ("site", "kernel")], ["STS", None])
    true("is said", "\nOf these, only instructions like STS\n" in memtrace("--site", "STS", path))


def test_divergence(bench):
    """
    Lanes, lines and pages of requests of which nine are alike and one is far apart; of all, and of
    an instruction.
    """
    seq = [access(0, i, 0, "LDG.E", [A + 128 * i + 4 * k for k in range(32)]) for i in range(8)]
    half = access(0, 8, 0, "LDG.E", [A + 1024 + 4 * k if k < 16 else 0 for k in range(32)])
    far = access(0, 9, 0, "STG.E", [B + 4096 * k for k in range(32)])
    path = write(bench, "a.txt", [BANNER, launch_line(0, "k"), *seq, half, far])
    sums = doc(path)["totals"]["all"]
    eq(
        "bins",
        (sums["lanes_bins"], sums["pages_4k_bins"], sums["pages_2m_bins"]),
        ([0, 0, 0, 0, 1, 9], [9, 0, 0, 0, 0, 1, 0], [10, 0, 0, 0, 0, 0, 0]),
    )
    text = memtrace("--divergence", path)
    for line in (
        "lanes +30.40  16-31:10.0% 32:90.0%",
        "sectors +6.60  2:10.0% 3-4:80.0% 17-32:10.0%",
        "lines of 128 B +4.10  1:90.0% 17-32:10.0%",
        "pages of 4 KiB +4.10  1:90.0% 17-32:10.0%",
        "pages of 2 MiB +1.00  1:100.0%",
    ):
        true(f"{line} is not in {text}", re.search(f"^{line}$", text, re.M))
    true("one part", "SITES" not in text and "shared" not in text)
    text = memtrace("--divergence", "--site", "STG*", path)
    true(
        text,
        re.search("^lanes +32.00  32:100.0%$", text, re.M)
        and re.search("^lines of 128 B +32.00  17-32:100.0%$", text, re.M),
    )


def test_contexts(bench):
    """Launches of two contexts with the same ids are told apart where there are two."""
    lines = [launch_line(0, "first"), access(0, 0, 0, "LDG.E", [A + 4 * k for k in range(32)])]
    other = [x.replace(f"{CTX:#018x}", f"{CTX + 0x100:#018x}").replace("first", "other") for x in lines]
    one = memtrace("--launches", write(bench, "a.txt", [BANNER, *lines]))
    true(one, "CONTEXT" not in one)
    two = memtrace("--launches", write(bench, "b.txt", [BANNER, *lines, *other]))
    for ctx, name in ((CTX, "first"), (CTX + 0x100, "other")):
        true(two, re.search(rf"^0x{ctx:x} +0 .* {name}$", two, re.M))


def test_sites_of_buffers(bench):
    """Which instructions cost most in a buffer: three of each, by what they could save there."""
    own = {
        "LDG.E": (A, 4),
        "LDG.E.64": (A + 0x1000, 128),
        "STG.E.U8": (A + 0x4000, 64),
        "STG.E": (A + 0x8000, 128),
        "ATOMG.E.ADD": (B, 4),
    }
    path = write(
        bench,
        "a.txt",
        [BANNER, launch_line(0, "k")]
        + [access(0, 0, 0, op, [at + step * k for k in range(32)]) for op, (at, step) in own.items()],
    )
    d = doc(path)
    names = {s["row"]: s["opcode"] for s in d["sites"]}
    got = {
        b["addr"]: [(names[w["site"]], w["requests"], w["sectors"], w["ideal_sectors"]) for w in b["worst_sites"]]
        for b in d["buffers"]
    }
    eq(
        "worst first",
        got,
        {
            f"0x{A:x}": [("STG.E.U8", 1, 32, 1), ("STG.E", 1, 32, 4), ("LDG.E.64", 1, 32, 8), ("LDG.E", 1, 4, 4)],
            f"0x{B & ~0x1fffff:x}": [("ATOMG.E.ADD", 1, 4, 4)],
        },
    )
    eq("how many", [b["sites"] for b in d["buffers"]], [4, 1])
    eq("what is done", [b["use"] for b in d["buffers"]], ["both", "both"])
    text = memtrace("--buffers", path)
    rows = re.findall(rf"^ +\d+ +1 +([\d.]+) +([\d.]+)  0x{A:x} +(\S+) +k$", text, re.M)
    eq("three", rows, [("32.00", "1.00", "STG.E.U8"), ("32.00", "4.00", "STG.E"), ("32.00", "8.00", "LDG.E.64")])
    # IDEAL is what --efficiency is of: of one word that all lanes read, or of 32 words.
    one = write(bench, "one.txt", [BANNER, launch_line(0, "k"), access(0, 0, 0, "LDG.E", [A] * 32)])
    eq(
        "ideal",
        [
            re.findall(rf"^ +1 +1 +1\.00 +([\d.]+)  0x{A:x} ", memtrace("--buffers", "--efficiency", x, one), re.M)
            for x in ("unique", "requested")
        ],
        [["1.00"], ["4.00"]],
    )
    eq(
        "both",
        [[w[k] for k in ("ideal_sectors", "ideal_lane_sectors")] for w in doc(one)["buffers"][0]["worst_sites"]],
        [[1, 4]],
    )
    eq("use", [doc("--site", x, path)["buffers"][0]["use"] for x in ("LDG*", "STG*")], ["read", "write"])
    true("RO", re.search(r"^ +36 +2 +0 +RO ", memtrace("--buffers", "--site", "LDG*", path), re.M))


def test_round_trip(bench):
    """Print gives back NVBit's lines to the byte, the own file the same records; each of them the same analysis."""
    lines = known_trace()
    # Half a warp, and one lane.
    lines.insert(-1, access(1, 2, 0, "LDG.E", [B + 4 * k if k < 16 else 0 for k in range(32)]))
    lines.insert(-1, access(1, 2, 0, "LDG.E", [B + 4 if k == 7 else 0 for k in range(32)]))
    path, own = write(bench, "a.txt", lines), bench.path("a.ttmt")
    printed = memtrace("print", path)
    eq("print", printed.splitlines(), [line for line in lines if line.startswith("MEMTRACE: ")])
    said = memtrace("convert", "--order", "-o", own, path)
    n = len([line for line in lines if " - CTA " in line])
    true(said, re.search(rf": {n} records, .* times as large$", said))
    true("a hundredth", os.path.getsize(own) * 100 < os.path.getsize(path))
    eq("print of the own file", memtrace("print", own), printed)
    want = doc(path)
    for what in (own, write(bench, "b.txt", printed.splitlines())):
        eq(f"analysis of {what}", figures(doc(what)), figures(want))
    eq("with the order: reuse", doc("--reuse=exact", own)["reuse"], doc("--reuse=exact", path)["reuse"])
    memtrace("convert", "-o", bench.path("g.ttmt"), path)
    eq(
        "grouped",
        [
            (doc(p)["source"]["grouped"], "come grouped" in memtrace("--reuse", p))
            for p in (path, own, bench.path("g.ttmt"))
        ],
        [(False, False), (False, False), (True, True)],
    )
    memtrace("convert", "--order", "-o", bench.path("h.ttmt"), bench.path("g.ttmt"))
    eq("an order that is lost does not come back", doc(bench.path("h.ttmt"))["source"]["grouped"], True)
    memtrace("convert", "-o", bench.path("c.ttmt"), "--kernel", "*second*", path)
    eq("a part of it", doc(bench.path("c.ttmt"))["source"]["records"], 4)
    with gzip.open(bench.path("a.gz"), "wt") as f:
        f.write("\n".join(lines) + "\n")
    eq("gzip", figures(doc(bench.path("a.gz"))), figures(want))
    fed = doc("-", feed="\n".join(lines) + "\n")
    eq("strides of the sites", [s["stride"] for s in fed["sites"]], [s["stride"] for s in want["sites"]])
    eq("standard input", without_strides(figures(fed)), without_strides(figures(want)))
    out, err = memtrace("convert", "-o", own, "--max-bytes", "300", path, status=2)
    true(err + out, "larger than --max-bytes" in err and err.count("\n") == 1 and os.path.getsize(own) <= 300)


def test_diff(bench):
    """What became better, worse, is new and gone; the same is the same."""
    lines = known_trace()
    a = write(bench, "a.txt", lines)
    better = [line for line in lines if " STS " not in line and "- LDG.E.64 -" not in line]
    # The stride of STG.E.64 from 128 to 8 bytes; LDG.E is LDG.E.128 then, and takes four times as much.
    better = [
        access(0, 0, 0, "STG.E.64", [A + 0x50000 + 8 * k for k in range(32)]) if "- STG.E.64 -" in x else x
        for x in better
    ]
    better = [
        access(0, 0, 0, "LDG.E.U16", [A + 0x50000 + 2 * k for k in range(32)]) if "- LDG.E.U8 -" in x else x
        for x in better
    ]
    better.append(access(1, 0, 0, "STG.E", [B + 4 * k for k in range(32)]))
    b = write(bench, "b.txt", better)
    eq("alike", json.loads(memtrace("diff", "--json", "--exit-code", a, a))["differs"], False)
    true("alike", "0 better, 0 worse, 11 the same, 0 new, 0 gone" in memtrace("diff", a, a))
    d = json.loads(memtrace("diff", "--json", a, b))
    eq("differs", d["differs"], True)
    by = {(s["kernel"].split("(")[0], (s["b"] or s["a"])["opcode"]): s for s in d["sites"]}
    stg, sts, new = by["void stream<float>", "STG.E.64"], by["void stream<float>", "STS"], by["void second", "STG.E"]
    eq(
        "better",
        (stg["verdict"], stg["a"]["cost"], stg["b"]["cost"], stg["matched_by"]),
        ("better", 32 * REPEAT, 8 * REPEAT, "exact"),
    )
    eq("gone", (sts["verdict"], sts["b"], sts["cost"]), ("gone", None, "wavefronts"))
    eq("new", (new["verdict"], new["a"], new["b"]["cost"]), ("new", None, 4))
    eq(
        "others",
        {s["verdict"] for k, s in by.items() if k[1] in ("LDG.E", "LDG.E.128", "ATOMG.E.ADD", "LDS")},
        {"same"},
    )
    out, _ = memtrace("diff", "--exit-code", a, b, status=1)
    true(out, re.search(r"^better +-75\.0% +sectors +1,280 +320 .*STG\.E\.64 +stream<float>$", out, re.M))
    true(out, re.search(r"^gone .*STS +stream<float>$", out, re.M))
    # A wider access without a source line is found again where it is the only one left of its kind.
    wide = json.loads(
        memtrace(
            "diff",
            "--json",
            "--kernel",
            "*second*",
            a,
            write(bench, "c.txt", [x.replace("- LDG.E -", "- LDG.E.64 -") for x in lines]),
        )
    )
    eq(
        "by kind",
        [(s["matched_by"], s["a"]["opcode"], s["b"]["opcode"]) for s in wide["sites"]],
        [("kind", "LDG.E", "LDG.E.64")],
    )


def stream(bench, name, lines, *args):
    path = bench.path(name)
    memtrace("convert", *args, "-o", path, write(bench, name + ".txt", lines))
    return path


def test_one_behind_the_other(bench):
    """Files of our own one behind the other: the second's indexes are its own, also behind one that is cut."""
    a = stream(
        bench,
        "a.ttmt",
        [BANNER, launch_line(0, "first")] + [access(0, 0, 0, "LDG.E", [A + 4 * k for k in range(32)])] * 3,
    )
    b = stream(
        bench,
        "b.ttmt",
        [BANNER, launch_line(1, "second")] + [access(1, 0, 0, "STG.E.64", [B + 8 * k for k in range(32)])] * 2,
    )
    both = bench.path("ab.ttmt")
    data = [open(p, "rb").read() for p in (a, b)]
    for cut in (0, 1, 30):
        with open(both, "wb") as f:
            f.write(data[0][: len(data[0]) - cut] + data[1])
        d = doc(both)
        eq(
            f"cut {cut}",
            [(s["kernel"], s["opcode"], s["requests"]) for s in sorted(d["sites"], key=lambda s: s["kernel"])],
            [("first", "LDG.E", 3), ("second", "STG.E.64", 2)],
        )
        eq(f"cut {cut} is said", (d["source"]["malformed"] > 0, d["source"]["cut"]), (cut > 0, cut > 0))


def test_matrices(bench):
    """LDSM: as many wavefronts as matrices; printed and read again, the same."""
    rows = [0x400 + 16 * k for k in range(32)]
    path = write(
        bench,
        "ldsm.txt",
        [BANNER, launch_line(0, "k")] + [access(0, 0, 0, f"LDSM.16.M88{n}", rows) for n in ("", ".2", ".4")],
    )
    want = {"LDSM.16.M88": (1, 8), "LDSM.16.M88.2": (2, 16), "LDSM.16.M88.4": (4, 32)}
    eq("waves", {s["opcode"]: (s["wavefronts"], s["lanes"]) for s in doc(path)["sites"]}, want)
    again = write(bench, "again.txt", memtrace("print", path).splitlines())
    eq("printed", {s["opcode"]: (s["wavefronts"], s["lanes"]) for s in doc(again)["sites"]}, want)


def test_nothing(bench):
    """Nothing to show: the error alone and 2; nothing chosen: said."""
    path = write(bench, "a.txt", known_trace())
    for args in (["print", "/dev/null"], ["diff", path, "/dev/null"], ["/dev/null"]):
        out, err = memtrace(*args, status=2)
        eq(f"{args}", (out, err.count("\n"), "empty" in err), ("", 1, True))
    done = subprocess.run(
        [TTMON, "memtrace", "--kernel", "nothing", path],
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
        check=True,
    )
    true(done.stderr, "no record is of these" in done.stderr)
    # Generic ones count as global.
    path = write(bench, "g.txt", [BANNER, launch_line(0, "k"), access(0, 0, 0, "LD.E", [A + 4 * k for k in range(32)])])
    eq("generic", doc("--space", "global", path)["totals"]["all"]["requests"], 1)
    true("one", "1 request," in memtrace(path))


def test_hostile(bench):
    """Names that a terminal or a reader of JSON would obey; lines that are torn; nothing is lost around them."""
    name = 'void evil\x1b]0;x\x07<"\\>\x9b31m(int) - grid size 1,1,1 \u202e'
    lines = known_trace(name)
    lines.insert(5, lines[6][:300])
    lines.insert(9, "MEMTRACE: CTX 0x")
    path = write(bench, "a.txt", lines)
    for args in ([], ["--csv"], ["--all"], ["print"]):
        out = memtrace(*args, path)
        true(
            f"{args}: {[x for x in out if ord(x) < 32 and x != chr(10)]}",
            not re.search(r"[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]", out),
        )
    d = doc(path)
    eq("torn", (d["source"]["malformed"], d["source"]["records"]), (2, REPEAT * (len(KNOWN) + 2) + 2))
    true("they are told", "2 lines or records could not be parsed" in memtrace(path))
    true("its name", any((s["kernel"] or "").startswith("void evil\x1b]0;x") for s in d["sites"]))


def test_options(bench):
    """What cannot be meant, is no trace or cannot be read: one line, and what could be read is shown."""
    path = write(bench, "a.txt", known_trace())
    for args in (
        [],
        ["a", "b"],
        ["--what", path],
        ["-n", "x", path],
        ["--launch", "5-2", path],
        ["--launch", "x", path],
        ["--space", "texture", path],
        ["--space", "global,", path],
        ["--efficiency", "x", path],
        ["--reuse=x", path],
        ["--csv=x", path],
        ["--csv", "--json", path],
        ["--pid", "1", path],
        ["--db", "x", "--live", path],
        ["--kernel"],
        ["convert", path],
        ["convert", "-o", "-", "--pass", path],
        ["convert", "-o", "x", "--max-bytes", "1X", path],
        ["diff", path],
        ["diff", "-", "-"],
        ["print", "--json", path],
    ):
        out, err = memtrace(*args, status=2)
        true(
            f"{args}: {err!r}",
            err.count("\n") == 1 and err.startswith("ttmon memtrace") and "--help" in err and not out,
        )
    noise = write(bench, "noise", ["nothing of ours"] * 3)
    for args in (
        [bench.path("none")],
        [noise],
        ["print", bench.path("none")],
        ["diff", path, bench.path("none")],
        ["--db", noise, path],
        ["--live", "-s", bench.path("none"), path],
        ["convert", "-o", bench.path("no/where"), path],
        ["convert", "-o", path, path],
    ):
        out, err = memtrace(*args, status=2)
        true(f"{args}: {err!r}", err.count("\n") == 1 and err.startswith("ttmon") and not out)
    for command in ([], ["print"], ["convert"], ["diff"]):
        true("help", memtrace(*command, "--help").startswith("usage: ttmon memtrace"))
    memtrace("convert", "-o", bench.path("a.ttmt"), path)
    with open(bench.path("a.ttmt"), "rb") as f:
        whole = f.read()
    with open(bench.path("cut.ttmt"), "wb") as f:
        f.write(whole[:-40])
    true("cut", "was cut" in memtrace(bench.path("cut.ttmt")))
    # In its first chunk there is nothing to show.
    with open(bench.path("cut.ttmt"), "rb+") as f:
        f.truncate(30)
    true("cut", "cut before its first record" in memtrace(bench.path("cut.ttmt"), status=2)[1])
    full = subprocess.run(
        [TTMON, "memtrace", "print", path],
        stdout=os.open("/dev/full", os.O_WRONLY),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    eq(full.stderr, (full.returncode, full.stderr.count("\n")), (2, 1))
    with subprocess.Popen([TTMON, "memtrace", "print", path], stdout=subprocess.PIPE) as head:
        head.stdout.read(100)
        head.stdout.close()
        eq("who reads no more is no error", head.wait(timeout=20), -signal.SIGPIPE)


def test_pass(bench):
    """The program's own lines come out as they come, the report behind them."""
    proc = subprocess.Popen(
        [TTMON, "memtrace", "--pass", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    bench.procs.append(proc)
    lines = known_trace()
    proc.stdin.write("\n".join(lines[:8]) + "\n")
    proc.stdin.flush()
    first = [BANNER, *OWN[:2]]
    eq("while it runs", [proc.stdout.readline().rstrip("\n") for _ in first], first)
    rest, _ = proc.communicate("\n".join(lines[8:]) + "\n", timeout=20 * PATIENCE)
    eq("status", proc.returncode, 0)
    eq("the rest", rest.splitlines()[:2], OWN[2:])
    true("the report", rest.splitlines()[2].startswith("standard input: NVBit 1.7.6"))


class Terminal:
    """`ttmon memtrace -` with a pipe on standard input and a terminal of 80 columns for the rest."""

    def __init__(self, bench, *args):
        self.main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
        self.proc = subprocess.Popen(
            [TTMON, "memtrace", *args, "-"],
            stdin=subprocess.PIPE,
            stdout=side,
            stderr=side,
            env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"},
        )
        os.close(side)
        bench.procs.append(self.proc)
        self.raw = ""

    def feed(self, lines):
        self.proc.stdin.write(("\n".join(lines) + "\n").encode())
        self.proc.stdin.flush()

    def until(self, text, seconds=10):
        end = time.monotonic() + seconds * PATIENCE
        while text not in self.raw:
            true(f"no {text!r} in {self.raw[-2000:]!r}", time.monotonic() < end)
            self.take(0.2)

    def take(self, seconds):
        ready, _, _ = select.select([self.main], [], [], seconds)
        with contextlib.suppress(OSError):
            if ready:
                self.raw += os.read(self.main, 65536).decode("utf-8", "replace")
        return ready

    def end(self):
        """Its status."""
        while self.proc.poll() is None:
            self.take(0.1)
        while self.take(0.1):
            before = len(self.raw)
            self.take(0.1)
            if len(self.raw) == before:
                break
        os.close(self.main)
        return self.proc.returncode


def test_live(bench):
    """
    On a terminal: the screen is drawn again while it comes; Ctrl-C ends it and prints what was
    read, within 80 columns; the screen is given back.
    """
    lines = known_trace()
    t = Terminal(bench)
    t.feed(lines[:200])
    t.until("Reading; Ctrl-C")
    true("another screen", "\x1b[?1049h" in t.raw)
    t.feed(lines[200:300])
    time.sleep(0.1)
    t.raw = ""
    t.until("Reading; Ctrl-C")
    true("more records", "records" in t.raw)
    t.proc.send_signal(signal.SIGINT)
    eq("status", t.end(), 0)
    true("the screen is given back", "\x1b[?1049l" in t.raw)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", t.raw.split("\x1b[?1049l")[1]).replace("\r", "")
    true(text, "reading was interrupted" in text and "\nSITES" in text)
    wide = [x for x in text.splitlines() if len(x) > 80]
    true(f"wider than the terminal: {wide}", not wide)
    true("half a line is not counted", "295 records" in text or "296 records" in text)


@kernel(True)
@timeout(90)
def test_allocations(bench):
    """
    Accesses joined with the allocations of a running service and of a database: names, coverage,
    use in place, what was never touched.
    """
    service = Service(bench, "--dump-db", bench.path("db.json"))
    target = bench.target(standin("scen"), "--wait", "live", "4")
    wait_probed(service.sock, target.pid)
    target.go()
    target.line()
    eq("it waits", target.line().split()[:1], ["waiting"])
    pinned, end = [], time.monotonic() + 20 * PATIENCE
    # Their ids have the call sites, which are known a little later.
    while len(pinned) < 2 or not all(a["call_site"] for a in pinned):
        listed = [
            a
            for a in api(service.sock, f"/v1/allocations?pid={target.pid}&limit=0")["allocations"]
            if a["method"] in ("host_alloc", "device")
        ]
        pinned = [a for a in listed if a["method"] == "host_alloc"]
        true(f"allocations {listed}", time.monotonic() < end)
        time.sleep(0.05)
    one = pinned[0]
    base, half = int(one["addr"], 16), one["size"] // 2 // 128
    lines = [launch_line(0, "reads()")] + [
        access(0, i, 0, "LDG.E", [base + 128 * i + 4 * k for k in range(32)]) for i in range(half)
    ]
    path = write(bench, "a.txt", lines)
    live = doc("--live", "-s", service.sock, "--pid", str(target.pid), path)
    target.go()
    target.finish()
    service.daemon.proc.terminate()
    service.daemon.wait(0)
    db = doc("--db", bench.path("db.json"), "--pid", str(target.pid), path)
    for what, d in (("live", live), ("db", db)):
        rows = [b for b in d["buffers"] if b["allocation"] and b["allocation"]["id"] == one["id"]]
        eq(f"{what}: rows of {one['id']}", len(rows), 1)
        eq(
            f"{what}: touched",
            (rows[0]["memory"], rows[0]["addr"], rows[0]["size"], rows[0]["distinct_sectors"], rows[0]["requests"]),
            ("pinned", one["addr"], one["size"], 4 * half, half),
        )
        eq(f"{what}: copies", rows[0]["allocation"]["copies"], sum(p[0] for p in one["transfers"].values()))
        true(f"{what}: coverage {rows[0]['coverage']}", abs(rows[0]["coverage"] - half * 128 / one["size"]) < 0.002)
    text = memtrace("--db", bench.path("db.json"), "--buffers", path)
    true(text, re.search(r" RO .* pinned +" + one["addr"], text))
    true(text, re.search(rf"Kernels only read, in this trace: {one['addr']} \(pinned, ", text))
    true(
        text,
        re.search(
            rf"^SITES of this buffer.*\n.*\n +{4 * half:,} +{half:,} +4\.00 +4\.00  {one['addr']} +LDG\.E +reads$",
            text,
            re.M,
        ),
    )
