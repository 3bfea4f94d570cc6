# SPDX-License-Identifier: GPL-2.0-only
"""libttmon-pin.so: a program's second run with fewer pinned pages, and all that it must not notice."""
import json
import os
import subprocess
import time

from e2e import OUT, PATIENCE, SLOW, allocations, eq, last_json, load_db, process, standin, timeout, true, whole

LIB = os.path.join(OUT, "libttmon", "libttmon-pin.so")
MIB = 1 << 20
# What becomes of the training loop when it is advised: one region, and what is advised to be pinned in pieces of it.
ADVISED = {
    ("hot_alloc", "registered"): 1,
    ("hot_alloc", "piece"): 2,
    ("short_alloc", "piece"): 40,
    ("cold_alloc", "custom"): 8,
    ("flags_alloc", "host_alloc"): 3,
}


def settings(**more):
    """Environment: the library, and TTMON_PIN_* by their short names (PIN is TTMON_PIN itself); others as they are."""
    env = {"LD_PRELOAD": LIB}
    for name, value in more.items():
        ours = name.isupper() and not name.startswith(("STANDIN", "PROG_"))
        env[("TTMON_PIN" + ("_" + name if name != "ON" else "")) if ours else name.removeprefix("PROG_")] = value
    return env


def run(bench, name, scenario, program="pin", status=0, leaked=0, **more):
    """
    Traced: (the program's book, its line in the database, its own figures, the database's path, its
    allocations of host memory).
    """
    stats, path = bench.path(name + ".stats"), bench.path(name + ".json")
    cmd = [
        "env",
        *(f"{k}={v}" for k, v in settings(STATS=stats, **more).items()),
        standin(program),
        *([scenario] if scenario else []),
    ]
    daemon = bench.daemon("--socket", "none", "--dump-db", path, cmd=cmd, wait=False)
    daemon.wait(status)
    db = load_db(path)
    # A forked child frees what was its parent's.
    whole(db, ["unknown_frees"] if db["completeness"]["unknown_frees"] and scenario == "forks" else [])
    with open(stats, encoding="utf-8") as f:
        own = json.load(f)
    proc = process(db, own["pid"])
    # One truth: what the library counts is what was traced. Threads are between the two in another
    # order, by a few buffers.
    off = own["pinned_pages_peak"] - proc["pinned_peak_pages"]
    true(f"peak pages ({name}): {off} more than traced", abs(off) <= (4 * 25 if scenario == "threads" else 0))
    eq(f"pins ({name})", own["pins"], proc["pins"])
    eq("leaked", own["leaked_bytes"], leaked)
    book = last_json(daemon.stdout())
    host = [a for a in allocations(db, own["pid"]) if a["method"] in ("host_alloc", "registered", "custom", "piece")]
    for a in host:
        a["key"] = db["sites"][a["site"]]["key"]
        a["fn_name"] = db["sites"][a["site"]]["frames"][0][2].split("+")[0]
    return book, proc, own, path, host, daemon.stderr()


def alone(scenario, program="pin", status=0, **more):
    """Not traced: (its output, what it said on stderr)."""
    done = subprocess.run(
        [standin(program), scenario],
        env=dict(os.environ, **settings(**more)),
        capture_output=True,
        text=True,
        check=False,
        timeout=30 * PATIENCE,
    )
    eq(f"exit status ({done.stderr})", done.returncode, status)
    return done.stdout, done.stderr


def by_function(host):
    found = {}
    for a in host:
        found.setdefault((a["fn_name"], a["method"]), []).append(a)
    return {k: len(v) for k, v in found.items()}


@timeout(120)
def test_second_run(bench):
    """
    Run 1 as the program is, run 2 advised: cold memory pageable, short-lived pins reused, the rest
    as it was; the sites' keys agree.
    """
    _, first, own1, db1, host1, _ = run(bench, "first", "train", ON="all")
    _, second, own2, db2, host2, said = run(
        bench, "second", "train", DB=db1, SITES="all", BASE=bench.path("first.stats")
    )
    eq("allocations", (own1["allocations"], own2["allocations"]), (53, 53))
    # 2 and 2.01 MiB hot, one short buffer of 1 MiB, three of 1 MiB that are not to be touched: and not a page more.
    eq("peak of the second", second["pinned_peak_pages"], 512 + 516 + 256 + 3 * 256)
    eq("total of the second", own2["pinned_pages_total"], second["pinned_peak_pages"])
    eq("peak of the first", first["pinned_peak_pages"], second["pinned_peak_pages"] + 8 * 1024)
    eq("what was done", by_function(host2), ADVISED)
    region = [a for a in host2 if a["method"] == "registered"]
    eq("the region", [("backing" in a["flags"], a["transfers"]) for a in region], [(True, {})])
    pieces = [a for a in host2 if a["method"] == "piece"]
    eq(
        "each piece was copied, and from pinned memory",
        ({a["transfers"]["h2d"][0] for a in pieces}, second["transfers"]["h2d"].get("pageable")),
        ({2, 20}, None),
    )
    true("call sites have other keys", {a["key"] for a in host2} == {a["key"] for a in host1})
    eq("verdicts", (own2["verdict"]["pin"][0], own2["verdict"]["no_pin"][0]), (42, 11))
    eq("by their flags", own2["done"]["flags"], [3, 3 * MIB])
    eq("pieces, and regions pinned for them", (own2["regions"]["pieces"], own2["regions"]["pinned"]), (42, 1))
    true("nothing was said of both runs", f"{first['pinned_peak_pages']:>14} {second['pinned_peak_pages']:>14}" in said)
    # The second run's database says so too: hot is hot, and cold memory is seen as what it is now.
    _, third, _, _, _, _ = run(bench, "third", "train", DB=f"{db1}:{db2}", SITES="all")
    eq("peak of the third", third["pinned_peak_pages"], second["pinned_peak_pages"])


@timeout(90)
def test_without_frame_pointers(bench):
    """The library knows the call sites of the traced run by unwind tables, through the frames of its own."""
    _, _, _, db, host1, _ = run(bench, "first", "train", program="pin_nofp", ON="all")
    eq("found by", {load_db(db)["sites"][a["site"]]["stack"]["by"] for a in host1}, {"tables"})
    _, second, own, _, host2, _ = run(bench, "second", "train", program="pin_nofp", DB=db, SITES="all")
    eq("peak of the second", second["pinned_peak_pages"], 512 + 516 + 256 + 3 * 256)
    eq("what was done", by_function(host2), ADVISED)
    eq("verdicts", (own["verdict"]["pin"][0], own["verdict"]["no_pin"][0]), (42, 11))
    eq("found by more than names", (own["match"]["site"] + own["match"]["exact"], own["allocations"]), (53, 53))


@timeout(90)
def test_opt_in(bench):
    """Nothing is unpinned unless its site was named: by function, by key, not at all."""
    _, first, _, db, host, _ = run(bench, "first", "train", ON="all")
    key = {a["fn_name"]: a["key"] for a in host}["cold_alloc"]
    for sites, cold in (("cold_alloc,main_loop", True), (key.lower(), True), ("hot_alloc", False), (None, False)):
        more = {"SITES": sites} if sites else {}
        out, said = alone("train", DB=db, STATS=bench.path("own"), **more)
        last_json(out)
        with open(bench.path("own"), encoding="utf-8") as f:
            own = json.load(f)
        eq(f"pageable with {sites}", own["done"]["pageable"][0], 8 if cold else 0)
        eq(f"peak with {sites}", own["pinned_pages_peak"], first["pinned_peak_pages"] - (8 * 1024 if cold else 0))
        eq(f"left alone with {sites}", own["done"]["not_opted_in"][0] > 0, True)
        true(
            f"no word of {sites}: {said}",
            (sites or "TTMON_PIN_SITES is not set") == sites or "TTMON_PIN_SITES is not set" in said,
        )
        true("an unknown function was not said", sites != "cold_alloc,main_loop" or "main_loop" in said)


@timeout(90)
def test_pins_nothing_by_option(bench):
    """
    A first run that pins nothing: the daemon sees every buffer all the same, and the second run
    pins what it is told.
    """
    _, first, own, db, host, _ = run(bench, "first", "train", ON="none", SITES="all")
    eq("pinned in the first", (first["pinned_peak_pages"], own["done"]["pageable"][0]), (3 * 256, 50))
    eq("buffers seen", by_function(host)[("short_alloc", "custom")], 40)
    _, second, _, _, host, _ = run(bench, "second", "train", DB=db, SITES="all")
    eq("pinned in the second", second["pinned_peak_pages"], 512 + 516 + 256 + 3 * 256)
    eq("what was done", by_function(host), ADVISED)


@timeout(90)
def test_device_pointer(bench):
    """Asked for of a pageable buffer: it is pinned where it is, at once, and its site is left alone from then on."""
    _, _, _, db, _, _ = run(bench, "first", "devptr", ON="all", PROG_PIN_FIRST="1")
    book, _, own, _, host, _ = run(bench, "second", "devptr", DB=db, SITES="all")
    eq("methods", sorted(a["method"] for a in host), ["custom", "host_alloc", "host_alloc", "registered"])
    eq("addresses", {a["addr"] for a in host if a["method"] in ("custom", "registered")}, {book["addr"]})
    eq("figures", (own["moves"]["wrong"], own["done"]["pageable"][0], own["done"]["device_pointer"][0]), (1, 1, 2))
    _, _, _, asked, _, _ = run(bench, "asked", "devptr", ON="all")
    _, _, own, _, _, _ = run(bench, "third", "devptr", DB=f"{db}:{asked}", SITES="all")
    eq("unpinned where it was asked for in an earlier run", (own["done"]["pageable"][0], own["moves"]["wrong"]), (0, 0))


@timeout(90)
def test_copies_under_way(bench):
    """
    A freed pinned block is given out again only when its copies are done: by events, by streams
    that are gone, by graphs.
    """
    _, _, _, db, _, _ = run(bench, "first", "async", ON="all")
    book, _, own, _, _, _ = run(bench, "second", "async", leaked=MIB // 4, DB=db, SITES="all")
    # What leaks is the captured buffer, which is pageable: there are two devices, and one alone can be waited for.
    true(f"never given out again: {own['regions']}", book["reused"] > 0 and own["regions"]["pinned"] <= 2)
    true(f"none was still being copied: {own['regions']}", own["regions"]["busy"] > 0)


@timeout(90)
def test_driver_interface(bench):
    """The same by the driver's functions."""
    _, first, _, db, _, _ = run(bench, "first", None, program="pindrv", ON="all")
    _, second, own, _, host, _ = run(bench, "second", None, program="pindrv", DB=db, SITES="all")
    eq("peaks", (first["pinned_peak_pages"], second["pinned_peak_pages"]), (3 * 128, 2 * 128))
    eq(
        "what was done",
        by_function(host),
        {("cold_alloc", "custom"): 1, ("short_alloc", "registered"): 1, ("short_alloc", "piece"): 10},
    )
    eq("reused", (own["regions"]["pieces"], own["regions"]["busy"] > 0, own["waits"] > 0), (10, True, True))


@timeout(90)
def test_contexts_that_go(bench):
    """Pinned regions go with their context, whichever call ends that: no piece of one is given out after it."""
    _, _, _, db, _, _ = run(bench, "first", None, program="pindrv", ON="all")
    script = f"""import ctypes
cu, p = ctypes.CDLL({standin("lib/libcuda.so.1")!r}), ctypes.c_void_p()
here, ctx = ctypes.CDLL({LIB!r}), ctypes.c_void_p()
assert not cu.cuInit(0) and not cu.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0) and not cu.cuCtxSetCurrent(ctx)
for call in (None, None, "cuDevicePrimaryCtxReset", None, "cuDevicePrimaryCtxReset_v2"):
    assert not here.cuMemHostAlloc(ctypes.byref(p), 512 << 10, 0)
    ctypes.memset(p, 1, 512 << 10)
    assert not here.cuMemFreeHost(p)
    assert not call or not getattr(here, call)(0)
# The stand-in has none of these: they are in here, and fail.
for call in ("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", "cudaThreadExit", "cuGraphExecNodeSetParams"):
    assert getattr(here, call)(0, 0, 0)
"""
    done = subprocess.run(
        ["/usr/bin/python3", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=30 * PATIENCE,
        env=dict(os.environ, **settings(DB=db, SITES="all", UNKNOWN="pin", STATS=bench.path("own"))),
    )
    eq(f"contexts that go ({done.stderr})", done.returncode, 0)
    with open(bench.path("own"), encoding="utf-8") as f:
        own = json.load(f)
    eq(
        "reused, but not behind a reset",
        (own["allocations"], own["regions"]["pieces"], own["regions"]["pinned"], own["pinned_pages_now"]),
        (5, 5, 2, 0),
    )


@timeout(90)
def test_failing_calls(bench):
    """No memory: the cache is emptied first; then the program is told, as it would be. Frees that fail fail."""
    alone("failing")
    _, _, own, db, _, _ = run(bench, "first", "failing", ON="all")
    eq("failed", own["failed_allocations"], 2)
    _, _, own, _, _, _ = run(bench, "second", "failing", DB=db, SITES="all", PROG_PIN_HELPS="1")
    eq("failed, and helped", (own["failed_allocations"], own["cache"]["emptied_for_memory"]), (1, 1))
    # Where there is no driver every call fails, and so they do here: ordinary memory is not given out either.
    for more in ({"ON": "none"}, {"DB": db}):
        done = subprocess.run(
            [standin("nodriver")],
            env=dict(os.environ, STANDIN_FAIL="*=35", **settings(SITES="all", **more)),
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        errors = last_json(done.stdout)["errors"]
        eq("without a driver", (set(errors["cudaHostAlloc"]), set(errors["cudaMallocHost"])), ({"35"}, {"35"}))


@timeout(90)
def test_threads_forks_resets(bench):
    for scenario in ("threads", "forks"):
        _, _, _, db, _, _ = run(bench, "first", scenario, ON="all")
        for more in ({"DB": db}, {"ON": "none"}, {"DB": db, "LIVE": "1"}):
            out, _ = alone(scenario, SITES="all", **more)
            last_json(out)


@timeout(90)
def test_pieces(bench):
    """
    Pieces of any size in threads: none overlaps another, pages begin where they did; those that
    outlive a reset of the device stay readable.
    """
    alone("pieces")
    _, _, _, db, _, _ = run(bench, "first", "pieces", ON="all")
    _, proc, own, _, _, _ = run(bench, "second", "pieces", DB=db, SITES="all", UNKNOWN="pin", PROG_PIN_OUTLIVES="1")
    true(f"few pieces, or a pin for each: {own['regions']}", own["regions"]["pieces"] > 2500 and proc["pins"] < 100)


@timeout(60)
def test_programs_as_they_are(bench):
    """Programs of the other tests, with everything that may be pageable: their own checks hold."""
    del bench
    for program, args in (("selftest", ""), ("ledger", "2000"), ("ledger12", "2000"), ("ledger_ptds", "2000")):
        cmd = [standin(program), *([args] if args else [])]
        plain = subprocess.run(cmd, capture_output=True, text=True, check=False, timeout=50 * PATIENCE)
        done = subprocess.run(
            cmd,
            env=dict(os.environ, **settings(ON="all")),
            capture_output=True,
            text=True,
            check=False,
            timeout=50 * PATIENCE,
        )
        eq(f"{program} ({done.stdout[-300:]} {done.stderr[-300:]})", done.returncode, plain.returncode)


def test_runtime_that_only_a_module_sees(bench):
    """
    Python loads an extension module, and with it the runtime, where the next definition of a name
    is not looked for.
    """
    plug = standin("lib/libpinplug.so")
    script = (
        "import ctypes, os; "
        f"raise SystemExit(ctypes.CDLL({plug!r}, mode=os.RTLD_LOCAL | os.RTLD_NOW).plug_go())"
    )
    done = subprocess.run(
        ["/usr/bin/python3", "-c", script],
        env=dict(os.environ, **settings(ON="none", SITES="all", STATS=bench.path("own"))),
        capture_output=True,
        text=True,
        check=False,
        timeout=30 * PATIENCE,
    )
    eq(f"what the module found ({done.stderr})", done.returncode, 0)
    with open(bench.path("own"), encoding="utf-8") as f:
        eq("pageable", json.load(f)["done"]["pageable"], [1, MIB])


def test_settings_that_are_wrong(bench):
    """One line each, and the program runs as it is."""
    with open(bench.path("broken.json"), "w", encoding="utf-8") as f:
        f.write('{"schema": "other"}')
    for more, word in (
        ({"ON": "some"}, "TTMON_PIN=some"),
        ({"DB": "/nowhere.json", "SITES": "all"}, "/nowhere.json"),
        ({"DB": bench.path("broken.json"), "SITES": "all"}, "broken.json"),
        ({"ON": "all", "DB": "x"}, "TTMON_PIN_DB"),
        ({"SITES": "load_batch"}, "load_batch"),
        ({"CHECKPOINT": "cudaFree"}, "cudaFree"),
        ({"UNKNOWN": "yes"}, "TTMON_PIN_UNKNOWN=yes"),
        ({"LIVE": "2"}, "TTMON_PIN_LIVE=2"),
    ):
        out, said = alone("train", STATS=bench.path("own"), **more)
        last_json(out)
        lines = said.strip().splitlines()
        true(f"{more}: {lines}", len(lines) == 2 and word in lines[0] and "everything is pinned" in lines[1])
        with open(bench.path("own"), encoding="utf-8") as f:
            eq(f"pageable with {more}", json.load(f)["done"]["pageable"][0], 0)


def test_quiet_in_programs_without_cuda(bench):
    done = subprocess.run(
        ["/bin/sh", "-c", "true | cat"],
        env=dict(os.environ, **settings(STATS="-", DB="/nowhere", SITES="all")),
        capture_output=True,
        text=True,
        check=False,
    )
    eq("what is said", (done.returncode, done.stdout, done.stderr), (0, "", ""))
    true("a file was written", not os.path.exists(bench.path("own")))


def live_run(bench, *options, steps=("copy", "step"), **more):
    """The live scenario through these steps, under a daemon with a socket: (its figures, its allocations)."""
    sock, stats, path = bench.path("ttmond.sock"), bench.path("live.stats"), bench.path("live.json")
    daemon = bench.daemon("--socket", sock, "--shm-root", bench.dir, "--dump-db", path, *options)
    env = settings(STATS=stats, LIVE="1", SITES="all", **more)
    target = bench.target(standin("pin"), "live", env=dict(env, TTMON_SOCKET=sock))
    for step in steps:
        if isinstance(step, str):
            os.write(target.proc.stdin.fileno(), (step + "\n").encode())
            eq("answer", target.line(), "done\n")
        else:
            time.sleep(step * SLOW)
    last_json(target.finish())
    time.sleep(0.3 * SLOW)
    daemon.stop()
    with open(stats, encoding="utf-8") as f:
        own = json.load(f)
    db = load_db(path)
    return (
        own,
        allocations(db, own["pid"], "registered", "custom", "host_alloc"),
        [c for c in db["checkpoints"] if c[2] == own["pid"]],
    )


@timeout(60)
def test_hot_buffer_is_moved_at_a_checkpoint(bench):
    """
    Nothing is pinned at first; the buffer that is copied is, in place, once live advice was heard,
    and not before a checkpoint.
    """
    own, host, marks = live_run(
        bench, steps=("copy", 1.0, "copy", "step", "copy"), ON="none", CHECKPOINT="cudaDeviceSynchronize"
    )
    eq("periods", [m[3] for m in marks], ["cudaDeviceSynchronize"])
    eq("moves", (own["moves"]["pinned"], own["moves"]["failed"], own["moves"]["released"]), (1, 0, 0))
    hot = [a for a in host if a["method"] == "registered"]
    eq("registrations", [a["size"] for a in hot], [2 * MIB])
    true("at another address", hot[0]["addr"] in [a["addr"] for a in host if a["method"] == "custom"])
    eq("copies after it", hot[0]["transfers"]["h2d"][0], 20)
    eq("pinned pages", own["pinned_pages_peak"], 512)


@timeout(60)
def test_cold_buffer_is_released_at_a_checkpoint(bench):
    """Everything is pinned at first; what was not copied for long is released, and stays where it is."""
    own, host, _ = live_run(
        bench, "--cold-after", "1", steps=("copy", 2.5, "copy", "step", 0.2, "step"), CHECKPOINT="cudaDeviceSynchronize"
    )
    eq("moves", (own["moves"]["released"] >= 1, own["moves"]["failed"]), (True, 0))
    cold = [a for a in host if a["method"] == "registered" and a["size"] == MIB]
    eq("released", [(a["end"], a["free_ns"] is not None) for a in cold], [("free", True)])
    eq("pinned at the end", own["pinned_pages_now"], 0)


@timeout(60)
def test_what_kernels_may_read_in_place_is_not_released(bench):
    """
    Advised to be unpinned, then its device pointer was asked for, then the checkpoint: it stays
    pinned, as mapped memory does.
    """
    own, host, _ = live_run(
        bench, "--cold-after", "1", steps=("more", "copy", 2.5, "ask", 0.2, "step"), CHECKPOINT="cudaDeviceSynchronize"
    )
    sizes = {m: [a["size"] for a in host if a["method"] == m] for m in ("registered", "custom", "host_alloc")}
    # What is released is announced as ordinary memory: one cold buffer was, at this checkpoint, and neither of these.
    true(f"the cold buffer was not released: {sizes}", MIB in sizes["custom"])
    eq("released", [n for n in sizes["custom"] if n > 2 * MIB], [])
    eq("pinned", ([n for n in sizes["registered"] if n > 2 * MIB], sizes["host_alloc"]), ([3 * MIB], [4 * MIB]))
    eq("asked for", ["device_ptr" in a["flags"] for a in host if a["size"] == 3 * MIB], [True])
    eq("figures", (own["moves"]["wrong"], own["done"]["flags"], own["pinned_pages_now"]), (0, [1, 4 * MIB], 0))


@timeout(60)
def test_checkpoints_of_the_program(bench):
    """
    A program's own ttmon_checkpoint() comes here first: with libttmon.so behind it and without, the
    daemon is told once, and the buffer moves.
    """
    for preload in (LIB, f"{LIB} {os.path.join(OUT, 'libttmon', 'libttmon.so.0')}"):
        own, _, marks = live_run(
            bench, steps=("mark", "copy", 1.0, "step", "mark", "mark"), ON="none", PROG_LD_PRELOAD=preload
        )
        eq("periods", [m[3] for m in marks], ["batch"] * 3)
        eq("moves", (own["moves"]["checkpoints"], own["moves"]["pinned"], own["moves"]["failed"]), (3, 1, 0))
