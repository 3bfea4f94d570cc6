# SPDX-License-Identifier: GPL-2.0-only
"""The program's own memory: mappings, heap, registrations, allocators of its own."""
import json
import re
import subprocess

from e2e import TTMON, allocations, eq, finding, last_json, load_db, pair, process, same_transfers, standin, true, whole

MIB = 1 << 20
PAGE = 4096


def traced(bench, *args, options=()):
    out, db, _ = bench.trace([standin("scen"), *args], *options)
    book = last_json(out)
    whole(db)
    return book, db, process(db, book["pid"])


def holding(db, pid, addr):
    """Mappings of a process that held this address at some time and were copied from."""
    return [
        a
        for a in allocations(db, pid, "mmap")
        if int(a["addr"], 16) <= addr < int(a["addr"], 16) + a["size"] and a["transfers"].get("h2d")
    ]


def mapped_copies(db, pid):
    pairs = [a["transfers"].get("h2d", [0, 0]) for a in allocations(db, pid, "mmap")]
    return [sum(p[0] for p in pairs), sum(p[1] for p in pairs)]


def test_unmapped_while_registered(bench):
    book, db, proc = traced(bench, "unmap")
    eq("finding", finding(proc, "unmap_registered"), 1)
    eq("end", [(a["addr"], a["end"]) for a in allocations(db, book["pid"], "registered")], [(book["addr"], "unmapped")])
    eq("pages at the end", proc["pinned_pages"], 0)
    same_transfers(proc, book)


def test_mappings(bench):
    """Holes, moves and growth: every copy is under a mapping that was there at that time, and none is lost."""
    book, db, proc = traced(bench, "maps")
    same_transfers(proc, book)
    eq("copies kept under mappings", mapped_copies(db, book["pid"]), book["transfers"]["h2d"]["pageable"])
    low, high, hole, heap = (int(book[k], 16) for k in ("low", "high", "hole", "heap"))
    eq("unmatched", proc["unmatched"], 0)
    for what, addr in (("low", low + MIB), ("high", high + 5 * MIB), ("hole", hole), ("heap", heap + 100)):
        true(f"no mapping holds {what}", holding(db, book["pid"], addr))


def test_batches_one_after_another(bench):
    """
    Each batch of a loader is a mapping of its own at the same place: each is named by who copies
    from it, so that together they are advised to be pinned once and given out again.
    """
    book, db, proc = traced(bench, "batches")
    same_transfers(proc, book)
    eq("batches at another place", book["elsewhere"], 0)
    rows = [a for a in allocations(db, book["pid"], "mmap") if a["transfers"].get("h2d")]
    eq("batches", len(rows), 16)
    true(f"call sites {[a['site'] for a in rows]}", len({a["site"] for a in rows}) == 1 and rows[0]["site"])
    done = subprocess.run(
        [TTMON, "advise", "--json", bench.path("db.json")], capture_output=True, text=True, check=True
    )
    advised = json.loads(done.stdout)["programs"][0]["advice"]
    mine = [s for s in advised if "scen_batches" in s["call_site"]]
    eq("advice", [(s["advice"], s["allocs"]) for s in mine], [("allocate pinned", 16)])
    text = subprocess.run([TTMON, "advise", bench.path("db.json")], capture_output=True, text=True, check=True).stdout
    said = re.search(r"pinning them saves another ([\d.]+) ms in each run", text)
    true(text, said and abs(float(said[1]) - mine[0]["gain_ns"] / 1e6) < 0.1)


def test_mappings_untraced(bench):
    """From /proc/PID/maps alone: the mappings that are still there when somebody looks are known."""
    out, db, _ = bench.trace([standin("scen"), "heap"], "--no-mmap", env={"SCEN_LINGER": "300"})
    book = last_json(out)
    proc = process(db, book["pid"])
    same_transfers(proc, book)
    true("no mapping holds the large block", holding(db, book["pid"], int(book["large"], 16)))


def test_mappings_untraced_and_gone(bench):
    """Mappings that came and went unseen: no copy is dropped, and it is said how many could not be told."""
    book, db, proc = traced(bench, "maps", options=("--no-mmap",))
    copies = [pair(proc["transfers"], "h2d", mem) for mem in ("pageable", "unknown")]
    eq("copies", [copies[0][i] + copies[1][i] for i in (0, 1)], book["transfers"]["h2d"]["pageable"])
    eq("copies kept under mappings", mapped_copies(db, book["pid"]), book["transfers"]["h2d"]["pageable"])
    eq("unmatched", proc["unmatched"], copies[1][0])


def test_overlapping_registrations(bench):
    """Pages are counted once; the range stays pinned until the last registration over it has gone."""
    book, db, proc = traced(bench, "overlap")
    same_transfers(proc, book)
    eq("peak", proc["pinned_peak_pages"], book["peak_pages"])
    true("no finding", finding(proc, "overlap") >= 1)
    flags = [("readonly" in a["flags"]) for a in allocations(db, book["pid"], "registered")]
    eq("read-only", flags, [False, False, True])


def test_older_than_the_trace(bench):
    """
    Mappings and heap of a process that ran before are known; its old pin is an unknown free, not
    less than nothing.
    """
    target = bench.target(standin("scen"), "old")
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid))
    target.go()
    book = last_json(target.finish())
    daemon.wait(0)
    db = load_db(bench.path("db.json"))
    proc = process(db, book["pid"])
    same_transfers(proc, book)
    eq("unknown frees", proc["unknown_frees"], book["old_frees"])
    eq("pages", proc["pinned_pages"], 0)
    for what in ("map", "big"):
        found = holding(db, book["pid"], int(book[what], 16) + PAGE)
        true(f"no mapping holds {what}", found)
        true(f"{what} is not marked as older", all("old" in a["flags"] for a in found))


def test_heap(bench):
    """Small and large malloc blocks; inside the large one the pages that were copied are told apart."""
    book, db, proc = traced(bench, "heap")
    same_transfers(proc, book)
    large = holding(db, book["pid"], int(book["large"], 16))
    eq("mappings of the large block", len(large), 1)
    heat = large[0]["page_heat"]["copies"]
    true(f"page heat {heat}", any(heat) and 0 in heat[: len(heat) - 1])
    small = holding(db, book["pid"], int(book["small"], 16))
    eq("name of the small block's mapping", [a.get("name") for a in small], ["[heap]"])


def test_copy_on_write(bench):
    """After a fork the registration is the parent's; the child's copy is ordinary memory."""
    book, db, proc = traced(bench, "cow")
    same_transfers(proc, book)
    child = process(db, book["child"])
    eq("pins of the child", (child["pins"], child["pinned_pages"]), (0, 0))
    eq("copies of the child", pair(child["transfers"], "h2d", "pageable"), [1, 4096])
    eq("finding", finding(proc, "fork_pinned"), 1)


def test_own_allocator(bench):
    """--alloc-fn by return value and by out argument, --free-fn; a NULL or an error is no allocation."""
    options = [
        "--alloc-fn",
        "libmyalloc:my_alloc,size=2,out=ret",
        "--alloc-fn",
        "libmyalloc:my_alloc_out,size=2,out=1",
        "--free-fn",
        "libmyalloc:my_free,ptr=2",
    ]
    out, db, _ = bench.trace([standin("custom")], *options)
    book = last_json(out)
    whole(db)
    found = allocations(db, book["pid"], "custom")
    size = book["size"]
    eq("allocations", [(a["size"], a["end"]) for a in found], [(size, "free"), (size // 2, "exit"), (size, "exit")])
    eq("addresses", [a["addr"] for a in found[:2]], [book["a"], book["b"]])
    eq("copies", [a["transfers"].get("h2d") for a in found], [[1, 1000], [2, 200], None])
    true("no call site", all(a["site"] for a in found))
    eq("h2d", pair(process(db, book["pid"])["transfers"], "h2d", "pageable"), [3, 1200])


def test_usdt(bench):
    """The points of <ttmon/usdt.h>, in a program and in a child that it forks: no tracer's business may end that."""
    out, db, _ = bench.trace([standin("usdt")])
    book = last_json(out)
    eq("what the child ended with", book["child"], 0)
    whole(db)
    eq("checkpoints of both", len(db["checkpoints"]), 2)
    children = [a for a in db["allocations"] if a["method"] == "custom" and a["pid"] != book["pid"]]
    eq("allocations of the child", [(a.get("name"), a["size"], a["end"]) for a in children], [("child", 4096, "free")])
    found = {a["addr"]: a for a in allocations(db, book["pid"], "custom")}
    eq("addresses", sorted(found), sorted([book["weights"], book["x"]]))
    weights, x = found[book["weights"]], found[book["x"]]
    eq("tags", (weights.get("name"), x.get("name")), ("weights", None))
    eq("sizes", (weights["size"], x["size"]), (1 << 20, 1 << 20))
    eq("ends", (weights["end"], x["end"]), ("exit", "free"))
    eq("copies", (weights["transfers"]["h2d"], x["transfers"]["h2d"]), ([5, 5000], [1, 10]))


def test_mappings_system_wide(bench):
    """
    --trace-mmap gives the service what --pid has: each mapping from its call; without it they come
    from /proc/PID/maps.
    """
    for option in ("--trace-mmap", None):
        target = bench.target(standin("scen"), "--wait", "maps")
        daemon = bench.daemon("--dump-db", bench.path("db.json"), *bench.service_args(), *([option] if option else []))
        target.go()
        book = last_json(target.finish())
        daemon.stop()
        db = load_db(bench.path("db.json"))
        proc = process(db, book["pid"])
        eq("capture.mmap", db["capture"]["mmap"], bool(option))
        eq(
            f"copies kept under mappings with {option}",
            mapped_copies(db, book["pid"]),
            book["transfers"]["h2d"]["pageable"],
        )
        if option:
            same_transfers(proc, book)
            eq("unmatched", proc["unmatched"], 0)


def test_pool_handle_is_used_again(bench):
    """
    A pool in device memory whose handle was that of one in host memory before: what comes of it is
    no host memory.
    """
    with open(bench.path("pools.c"), "w", encoding="ascii") as f:
        f.write(
            "static char memory[2][4096]; static int n;\n"
            "int cudaMemPoolCreate(void **pool, const void *props) { *pool = (void *)0x1000; return 0; }\n"
            "int cudaMallocFromPoolAsync(void **p, unsigned long size, void *pool, void *stream) { *p = memory[n++]; "
            "return 0; }\n"
        )
    lib = bench.path("libcudart.so.13")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libcudart.so.13", "-o", lib, bench.path("pools.c")], check=True
    )
    python = (
        "import ctypes, struct, sys; l = ctypes.CDLL(sys.argv[1]); p = ctypes.c_void_p()\n"
        "for where in (2, 1):\n"  # cudaMemLocationTypeHost, cudaMemLocationTypeDevice
        "    l.cudaMemPoolCreate(ctypes.byref(p), struct.pack('iiii72x', 1, 0, where, 0))\n"
        "    l.cudaMallocFromPoolAsync(ctypes.byref(ctypes.c_void_p()), ctypes.c_ulong(4096), p, None)\n"
    )
    _, db, _ = bench.trace(["python3", "-c", python, lib])
    eq("methods", [a["method"] for a in db["allocations"] if a["fn"] == "cudaMallocFromPoolAsync"], ["pool", "device"])
