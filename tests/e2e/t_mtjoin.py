# SPDX-License-Identifier: GPL-2.0-only
"""
`ttmon memtrace` and allocations: life times by numbers of launches, out of databases and of lists
of traces; lanes told by allocations; what a cut trace says.
"""
import json
import os
import re
import subprocess
import time

from e2e import PATIENCE, SLOW, TTMON, eq, kernel, last_json, process, standin, timeout, true, whole
from made_db import Maker
from t_cpu import Service
from t_memtrace import A, B, access, doc, launch_line, memtrace, write
from tt_host import api, wait_probed

KERNEL = False
FAR = A + (16 << 20)
HEAD = (
    "-kernel name = {name}\n-kernel id = {nr}\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n"
    "#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = {n}\n"
)


def generations(numbers, numbered):
    """Memory at A that was given out three times, and a buffer at B."""
    m = Maker()
    m.process()
    m.procs[0]["launches_numbered"] = numbered
    for k, (start, end, launches) in enumerate(((1, 2, [0, 2]), (3, 4, [2, 3]), (5, None, [3, None]))):
        m.alloc(
            0,
            1 << 20,
            start,
            end,
            method="device",
            addr=A,
            name=f"life {k}",
            **({"launches": launches} if numbers else {}),
        )
    m.alloc(0, 1 << 20, 1, None, method="device", addr=B, name="other", **({"launches": [0, None]} if numbers else {}))
    return m


def one_each(first=0):
    lines = []
    for nr in range(first, 5):
        lines += [
            launch_line(nr, f"k{nr}(int*)"),
            access(nr, 0, 0, "LDG.E", [A + 4 * k for k in range(32)]),
            access(nr, 0, 0, "STG.E", [B + 4 * k for k in range(32)]),
        ]
    return lines


def buffers(d):
    return {
        b["allocation"]["name"]: (b["requests"], b["by_order"], b["ambiguous"]) for b in d["buffers"] if b["allocation"]
    }


def test_by_order(bench):
    """
    Which of several allocations at one address it was: by the number of the launch, also where the
    trace begins late; without numbers the longest, marked.
    """
    db = generations(True, 5).write(bench.path("db.json"))
    path = write(bench, "t.txt", one_each())
    want = {
        "life 0": (2, True, False),
        "life 1": (1, True, False),
        "life 2": (2, True, False),
        "other": (5, False, False),
    }
    eq("by order", buffers(doc("--db", db, path)), want)
    late = write(bench, "late.txt", one_each(2))
    eq(
        "begun late",
        buffers(doc("--db", db, late)),
        {"life 1": (1, True, False), "life 2": (2, True, False), "other": (3, False, False)},
    )
    text = memtrace("--db", db, path)
    true(
        f"said in the text:\n{text}",
        re.search(r"^Allocations: 4, of database .*db.json\. Of several at one address", text, re.M)
        and re.search(r"device# +0x\w+ +life 1$", text, re.M)
        and re.search(r"device +0x\w+ +other$", text, re.M),
    )
    memtrace("convert", "-o", bench.path("t.ttmt"), path)
    eq("converted", buffers(doc("--db", db, bench.path("t.ttmt"))), want)
    # Numbers up to the first graph launch; of an older database, or of a process whose launches may have been missed.
    graph = generations(True, 3).write(bench.path("graph.json"))
    got = buffers(doc("--db", graph, path))
    eq(
        "behind a graph",
        (got["life 0"], got["life 1"], got["life 2"]),
        ((2, True, False), (1, True, False), (2, False, True)),
    )
    for m in (generations(False, 5), generations(False, 0), generations(True, 0)):
        eq(
            "no numbers",
            buffers(doc("--db", m.write(bench.path("old.json")), path)),
            {"life 2": (5, False, True), "other": (5, False, False)},
        )


@kernel(True)
def test_traced_program(bench):
    """The database of a traced program: its buffers of one address are told apart by the launches between them."""
    out, db, _ = bench.trace([standin("scen"), "order"])
    book = last_json(out)
    whole(db)
    proc = process(db, book["pid"])
    mine = [a for a in db["allocations"] if a["pid"] == book["pid"] and a["method"] == "device"]
    # The stand-in gives no address again, as the real allocator does.
    for a in mine:
        a["addr"] = hex(B if a["end"] != "free" else A)
    with open(bench.path("db.json"), "w", encoding="utf-8") as f:
        json.dump(db, f)
    lines = [launch_line(nr, "k(int*)") for nr in range(book["kernels"])]
    seen = {}
    for a in mine:
        made, freed = a["launches"]
        # No launch while it was there; or it came behind the graph.
        if made == freed or made >= proc["launches_numbered"]:
            continue
        seen[a["id"]] = 1
        lines.append(access(made, 0, 0, "LDG.E", [int(a["addr"], 16) + 4 * k for k in range(32)]))
    got = doc("--db", bench.path("db.json"), "--pid", str(book["pid"]), write(bench, "t.txt", lines))
    true(f"some are told apart: {[a['launches'] for a in mine]}", len(seen) > 4)
    eq(
        "buffers",
        {
            b["allocation"]["id"]: b["requests"]
            for b in got["buffers"]
            if b["allocation"] and b["allocation"]["id"] in seen
        },
        seen,
    )
    true(
        "none is in doubt",
        not any(b["ambiguous"] for b in got["buffers"] if b["allocation"] and b["allocation"]["id"] in seen),
    )


@kernel(True)
@timeout(60)
def test_live(bench):
    """
    The same of a running service. Its stand-in has one buffer at an address: a launch before it was
    made, or after it was freed, is in doubt.
    """
    service = Service(bench)
    for _ in range(2):  # the second one's libraries have their probes from the beginning on
        target = bench.target(standin("scen"), "--wait", "order")
        wait_probed(service.sock, target.pid)
        target.go()
        book = last_json(target.finish())
    time.sleep(0.5 * SLOW)
    listed = api(service.sock, f"/v1/allocations?pid={target.pid}&method=device&limit=0")["allocations"]
    true(f"a buffer for each of eight, and the last: {listed}", len(listed) == 9)
    eq("numbered", {a["launches_numbered"] for a in listed}, {book["numbered"]})
    lines, seen = [launch_line(nr, "k(int*)") for nr in range(book["kernels"])], {}
    for a in listed:
        made, freed = a["launches"]
        if made < book["numbered"] and made != freed:
            seen[a["id"]] = made == 0
            lines.append(access(0, 0, 0, "LDG.E", [int(a["addr"], 16) + 4 * k for k in range(32)]))
    got = doc("--live", "-s", service.sock, "--pid", str(target.pid), write(bench, "t.txt", lines))
    rows = {
        b["allocation"]["id"]: not b["ambiguous"]
        for b in got["buffers"]
        if b["allocation"] and b["allocation"]["id"] in seen
    }
    true(f"some there from the first launch on, others not: {seen}", len(set(seen.values())) == 2)
    eq("sure", rows, seen)


def test_lanes(bench):
    """Lanes in no allocation are off, and counted; a record with none in one keeps them all."""
    db = generations(True, 5).write(bench.path("db.json"))
    lines = [launch_line(0, "k(int*)")]
    lines += [access(0, 0, 0, "LDG.E", [A + 4 * k if k < 20 else FAR for k in range(32)]) for _ in range(3)]
    lines.append(access(0, 0, 0, "STG.E", [FAR + 4 * k for k in range(32)]))
    path = write(bench, "t.txt", lines)
    for args, want in ((("--db", db), (60 + 32, 3, 36)), ((), (128, 0, 0))):
        d = doc(*args, path)
        eq(
            "lanes, records and lanes outside",
            (sum(s["lanes"] for s in d["sites"]), d["source"]["outside_records"], d["source"]["outside_lanes"]),
            want,
        )
    text = memtrace("--db", db, path)
    true(f"said:\n{text}", "36 lanes of 3 of these lie in no known allocation and are taken as off" in text)


def accel(nr, addrs):
    rows = [f"{16 * i:04x} ffffffff 1 R2 LDG.E 1 R2 4 1 {a:#x} 4 " for i, a in enumerate(addrs)]
    return HEAD.format(name=f"k{nr}", nr=nr, n=len(rows)) + "\n".join(rows) + "\n#END_TB\n"


def test_list(bench):
    """A list of traces names buffers by its copies, from the kernel behind them on; a database comes before it."""
    for nr, addrs in ((1, [A, B]), (2, [A, B + 4096]), (3, [A + 65536])):
        with open(bench.path(f"kernel-{nr}.traceg"), "w", encoding="utf-8") as f:
            f.write(accel(nr, addrs))
    path = bench.path("kernelslist.g")
    with open(path, "w", encoding="utf-8") as f:
        f.write(
            f"cudaMalloc,{A:#018x},4096\nMemcpyHtoD,{A:#018x},4096\nkernel-1.traceg\ncudaFree,{A:#018x}\ncudaMalloc,"
            f"{A:#018x},131072\n"
            f"MemcpyHtoD,{B:#018x},8192\nkernel-2.traceg\nMemcpyHtoD,{A:#018x},64\nkernel-3.traceg\n"
        )
    d = doc(path)
    eq(
        "buffers",
        buffers(d),
        {"cudaMalloc 1": (1, True, False), "cudaMalloc 2": (2, True, False), "MemcpyHtoD 2": (2, False, True)},
    )
    eq("from", d["allocations"], {"from": f"copies in {path}", "count": 3})
    eq("no lines are somebody else's", d["source"]["foreign"], 0)
    text = memtrace(path)
    true(
        f"said:\n{text}",
        re.search(r"^Allocations: 3, of copies in .*kernelslist\.g\.", text, re.M)
        and re.search(r"device\? +0x\w+ +MemcpyHtoD 2$", text, re.M),
    )
    d = doc("--db", generations(True, 5).write(bench.path("db.json")), path)
    true(
        "the database",
        d["allocations"]["from"].startswith("database ") and set(buffers(d)) == {"life 0", "life 1", "other"},
    )
    eq("none", doc(bench.path("kernel-1.traceg"))["allocations"], {"from": None, "count": 0})


def errors_of(*args):
    done = subprocess.run(
        [TTMON, "memtrace", *args],
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    eq(f"status of {args}", done.returncode, 0)
    return done.stderr


def test_cut_and_torn(bench):
    """What has no place for it in its output says on stderr, in one line, that the trace was cut or torn."""
    lines = one_each()
    good = write(bench, "good.txt", lines)
    torn = write(bench, "torn.txt", [*lines, lines[1][:100], lines[1][:200]])
    cut = bench.path("cut.txt")
    with open(cut, "w", encoding="utf-8") as f:
        f.write("\n".join(lines)[:-50])
    memtrace("convert", "-o", bench.path("whole.ttmt"), good)
    with open(bench.path("whole.ttmt"), "rb") as f:
        data = f.read()
    with open(bench.path("cut.ttmt"), "wb") as f:
        f.write(data[:-40])
    for name, args in (
        ("memtrace", ("--csv",)),
        ("memtrace print", ("print",)),
        ("memtrace convert", ("convert", "-o", bench.path("out.ttmt"))),
    ):
        eq(f"{name}: nothing is wrong", errors_of(*args, good), "")
        eq(
            f"{name}: torn",
            errors_of(*args, torn),
            f"ttmon {name}: {torn}: 2 lines or records could not be parsed (torn, cut) and were left out\n",
        )
        eq(
            f"{name}: cut",
            errors_of(*args, cut),
            f"ttmon {name}: {cut}: the trace ends in the middle: it was cut; 1 line or record could not be parsed "
            "(torn, cut) and was left out\n",
        )
        eq(
            f"{name}: cut stream",
            errors_of(*args, bench.path("cut.ttmt")),
            f"ttmon {name}: {bench.path('cut.ttmt')}: the trace ends in the middle: it was cut\n",
        )
    eq("the report has it", errors_of(torn), "")
