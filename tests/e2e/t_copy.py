# SPDX-License-Identifier: GPL-2.0-only
"""Copies, capture, graphs, launches, errors; the driver's interface; the real runtime without a driver."""
import os
import re
from collections import Counter

from e2e import CUDA_LIB, Skip, allocations, eq, finding, last_json, pair, process, same_transfers, standin, true, whole


def traced(bench, *args, env=None, options=()):
    out, db, _ = bench.trace([standin("scen"), *args], *options, env=env)
    book = last_json(out)
    return book, db, process(db, book["pid"])


def errors(proc):
    found = {}
    for e in proc["errors"]:
        found.setdefault(e["fn"], {})[str(e["code"])] = e["count"]
    return found


def check_counts(proc, book):
    eq(
        "allocs, frees, pins",
        (proc["allocs"], proc["frees"], proc["pins"]),
        (book["allocs"], book["frees"], book["pins"]),
    )
    eq("launches", (proc["launches"], proc["graph_launches"]), (book["kernels"], book["graphs"]))
    eq("failed", proc["failed"], book["failed"])


def test_copies(bench):
    for env in ({}, {"STANDIN_NESTED": "1"}):
        book, db, proc = traced(bench, "copies", env=env)
        whole(db)
        same_transfers(proc, book)
        check_counts(proc, book)


def test_default_directions(bench):
    """cudaMemcpyDefault: both pointers are looked up."""
    for env in ({}, {"STANDIN_NESTED": "1"}):
        book, db, proc = traced(bench, "defaults", env=env)
        whole(db)
        same_transfers(proc, book)


def test_batch(bench):
    book, db, proc = traced(bench, "batch", "200")
    whole(db)
    same_transfers(proc, book)


def test_long_batch(bench):
    """300 elements: the first 256 are looked at, and the cut is a finding."""
    _, _, proc = traced(bench, "batch", "300")
    eq("h2d", pair(proc["transfers"], "h2d"), [256, 256 * 16])
    eq("finding", finding(proc, "truncated_batch"), 1)


def test_capture(bench):
    """A copy into a capturing stream is no transfer; one into another stream is; launches of the graph are counted."""
    for env in ({}, {"STANDIN_NESTED": "1"}):
        book, db, proc = traced(bench, "capture", "5", env=env)
        whole(db)
        same_transfers(proc, book)
        check_counts(proc, book)
        eq("captured", proc["captured"], 5)


def test_capture_joined_by_event(bench):
    for env in ({}, {"STANDIN_NESTED": "1"}):
        book, db, proc = traced(bench, "join", "5", env=env)
        whole(db)
        same_transfers(proc, book)
        eq("captured", proc["captured"], 5)


def test_graph(bench):
    book, _, proc = traced(bench, "graph", "7")
    eq("graph launches", proc["graph_launches"], 7)
    eq("copies in graphs", proc["graph_copies"], book["graph_copies"])
    same_transfers(proc, book)


def test_launches(bench):
    for env in ({}, {"STANDIN_NESTED": "1"}):
        book, db, proc = traced(bench, "launches", "1000", env=env)
        whole(db)
        check_counts(proc, book)


def test_launch_order(bench):
    """Life times by numbers of launches: of two threads, up to the first launch that is captured."""
    for env in ({}, {"STANDIN_NESTED": "1"}):
        book, db, proc = traced(bench, "order", env=env)
        whole(db)
        check_counts(proc, book)
        eq("numbered", proc["launches_numbered"], book["numbered"])
        found = {
            a["size"]: a["launches"] for a in allocations(db, book["pid"]) if a["method"] in ("device", "host_alloc")
        }
        for i, (size, made, freed) in enumerate(book["buffers"]):
            eq(f"buffer {i}", found[size], [made, None if i == book["kept"] else freed])


def test_errors(bench):
    """Failed calls leave a count by code and no other trace."""
    for env in ({}, {"STANDIN_NESTED": "1"}):
        book, db, proc = traced(bench, "errors", env=env)
        whole(db)
        eq("errors", errors(proc), book["errors"])
        same_transfers(proc, book)
        check_counts(proc, book)
        eq("unknown frees", proc["unknown_frees"], 0)
        names = {e["code"]: e["name"] for e in proc["errors"]}
        eq("name of 2", names[2], "cudaErrorMemoryAllocation")


def test_slow_pin(bench):
    """A pin call of 12 ms is a finding, and its duration is kept."""
    book, db, proc = traced(bench, "exit", "2", env={"STANDIN_DELAY": "cudaHostAlloc=12000"})
    eq("finding", finding(proc, "slow_pin"), 2)
    true("a duration is too short", all(a["pin_ns"] >= 12000000 for a in allocations(db, book["pid"], "host_alloc")))


def test_without_return_probes(bench):
    """Copies and frees are seen at their entry, and it says what it does not know."""
    book, db, proc = traced(bench, "copies", options=("--no-return-probes",))
    eq("capture.return_probes", db["capture"]["return_probes"], False)
    eq(
        "copies",
        sum(pair(proc["transfers"], d)[0] for d in proc["transfers"]),
        sum(p[0] for d in book["transfers"].values() for p in d.values()),
    )


def test_driver(bench):
    """A program without a runtime: every class of driver call, host pools and virtual memory too."""
    out, db, _ = bench.trace([standin("drvscen")])
    book = last_json(out)
    whole(db)
    proc = process(db, book["pid"])
    eq("pins", proc["pins"], book["pins"])
    eq("allocs", proc["allocs"], book["allocs"])
    eq("frees", proc["frees"], book["frees"])
    eq("launches", proc["launches"], book["kernels"])
    for direction, mems in book["transfers"].items():
        for mem, wanted in mems.items():
            eq(f"{direction} {mem}", pair(proc["transfers"], direction, None if mem == "none" else mem), wanted)
    by_fn = {a["fn"]: a for a in allocations(db, book["pid"]) if a["method"] != "mmap"}
    eq("method of cuMemMap", by_fn["cuMemMap"]["method"] in ("pool", "device"), True)
    methods = sorted(a["method"] for a in allocations(db, book["pid"]) if a["method"] != "mmap")
    eq("methods", methods, sorted(["host_alloc"] * 2 + ["registered", "managed"] + ["pool"] * 2 + ["device"] * 5))
    mapped = [a for a in allocations(db, book["pid"], "pool") if a["fn"] == "cuMemMap"]
    eq("mapped host memory", [(a["addr"], a["end"]) for a in mapped], [(book["range"], "free")])
    eq("device", {a["device"] for a in allocations(db, book["pid"]) if a["method"] != "mmap"}, {1})


def test_every_function(bench):
    every_function(bench, "everyfn")


def test_every_function_12(bench):
    every_function(bench, "everyfn12")


def every_function(bench, program):
    """
    Every function of the table, under every name it is exported with, called once: nothing is
    missing, nothing is there twice.
    """
    out, db, _ = bench.trace([standin(program)])
    book = last_json(out)
    whole(db)
    proc = process(db, book["pid"])
    mine = [a for a in allocations(db, book["pid"]) if a["method"] != "mmap"]
    host = [a for a in mine if a["method"] != "device"]
    seen = Counter((e[1], e[2]) for a in host for e in a["events"] if e[1] not in ("register", "unregister"))
    wanted, syncs = Counter(), Counter()
    for fn, event, size in book["calls"]:
        found = [a for a in mine if a["size"] == size and a["fn"] == re.sub(r"(_v\d)?(_pt[ds][sz])?$", "", fn)]
        if event in ("host_alloc", "registered", "pool", "device"):
            eq(f"allocations of {fn}, {size} bytes", [a["method"] for a in found], [event])
        elif event.startswith("dev:"):
            eq(
                f"device of {size} bytes after {fn}",
                [a["device"] for a in mine if a["size"] == size],
                [None if event == "dev:?" else int(event[4:])],
            )
        elif event == "reset":
            eq(f"end of {size} bytes after {fn}", [a["end"] for a in mine if a["size"] == size], ["reset"])
        elif event in ("sync", "ask"):
            syncs[re.sub(r"(_v\d)?(_pt[ds][sz])?$", "", fn), event] += 1
        else:
            wanted[event, size] += 1
    names = {(event, size): fn for fn, event, size in book["calls"]}
    eq("not seen", [(names[k], *k) for k in wanted - seen], [])
    eq("seen too often", list(seen - wanted), [])
    ledgers = Counter()
    for row in db["waits"]["sites"]:
        ledgers[row["fn"], row["kind"]] += row["calls"]
    eq("waits", {k: v for k, v in ledgers.items() if k[1] in ("sync", "ask")}, dict(syncs))
    eq("d2d", pair(proc["transfers"], "d2d"), book["d2d"])
    for key in ("graph_copies", "captured"):
        eq(key, proc[key], book[key])
    eq("launches", (proc["launches"], proc["graph_launches"]), (book["kernels"], book["graphs"]))
    eq("failed, unknown frees", (proc["failed"], proc["unknown_frees"]), (0, 0))


def real_runtime():
    if not os.path.exists(os.path.join(CUDA_LIB, "libcudart.so.13")):
        raise Skip(f"no real libcudart.so.13 in {CUDA_LIB}")
    return {"LD_LIBRARY_PATH": CUDA_LIB}


def test_real_runtime_without_driver(bench):
    """
    Every call fails with 35: counts by code, no allocation; asynchronous copies are enqueued,
    result not observed.
    """
    out, db, _ = bench.trace([standin("nodriver")], env=real_runtime())
    book = last_json(out)
    if book["errors"]["cudaMalloc"] != {"35": 3}:
        raise Skip("there is a driver here")
    whole(db)
    proc = process(db, book["pid"])
    wanted = dict(book["errors"])
    wanted.pop("cudaMemcpyAsync")
    eq("errors", errors(proc), wanted)
    eq("allocations", [a["fn"] for a in allocations(db, book["pid"]) if a["method"] != "mmap"], [])
    eq("pins", (proc["pins"], proc["allocs"]), (0, 0))
    eq("enqueued", pair(proc["transfers"], "h2h"), [3, 192])


def test_real_runtime_with_copy_results(bench):
    out, db, _ = bench.trace([standin("nodriver")], "--copy-results", env=real_runtime())
    book = last_json(out)
    if book["errors"]["cudaMalloc"] != {"35": 3}:
        raise Skip("there is a driver here")
    proc = process(db, book["pid"])
    eq("errors", errors(proc), book["errors"])
    eq("transfers", proc["transfers"], {})
