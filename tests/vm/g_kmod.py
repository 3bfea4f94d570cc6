# SPDX-License-Identifier: GPL-2.0-only
"""The RMID module kmod/: who gets an RMID and how long, the tick, hot-plug, made-up readings, its file, its end."""
import errno
import os
import shutil
import threading
import time

from e2e import eq, true
from kmod_lib import Procs, Trace, command, count, dmesg, folder, info, lives, module, wait

NEEDS = "rmid"
LIFE = ("rmid_alloc", "rmid_free")


def test_selftest(_, __):
    """The allocator against the script that the host and BPF run too."""
    with module(selftest=1):
        steps = info()["selftest"].split()
        eq("verdict", steps[1:], ["ok"])
        true(f"{steps[0]} steps", int(steps[0]) > 200000)
    true("the log says it", f"selftest {steps[0]} ok" in dmesg())
    with module():
        eq("without", info()["selftest"], "not run")


def test_parameters(_, __):
    with module(max_rmid=40, tick_us=500):
        got = info()
        eq(
            "as it is",
            [
                got[k]
                for k in (
                    "version",
                    "mode",
                    "max_rmid",
                    "tick_us",
                    "scale",
                    "width",
                    "events",
                    "released",
                    "double_frees",
                )
            ],
            ["1.0", "emulated", "40", "500", "1", "64", "0", "0", "0"],
        )
    for bad in ({"tick_us": 99}, {"rdt_batch": 0}, {"fake_rdt": 3}, {"max_rmid": 512}):
        try:
            with module(**bad):
                pass
        except AssertionError as err:
            true(f"{bad}: {err}", "insmod says" in str(err))
        else:
            raise AssertionError(f"{bad} was taken")


def test_forks(_, __):
    """2,000 processes, one after the other: each has one RMID, from its fork to its end; its parent keeps its own."""
    with module(), Trace(*LIFE, "rmid_failed") as trace:
        before = count("in_use")
        with Procs("forks", 2000) as procs:
            pass
        eq("in use after", wait("all are free", lambda: count("in_use") == before), True)
        eq("double frees", count("double_frees"), 0)
        eq("none got no RMID", count("failed"), 0)
    seen = lives(trace.events)
    eq("children", len(procs.book["children"]), 2000)
    for pid in procs.book["children"]:
        eq(f"lives of {pid}", [to is not None for _, _, to in seen.get(pid, [])], [True])
    own = seen[procs.book["pid"]]
    eq("lives of the parent", len(own), 1)
    true("RMIDs are given out again", len({seen[pid][0][0] for pid in procs.book["children"]}) < 2000)
    last = seen[procs.book["children"][-1]][0][2]
    true("the parent's is freed after its last child's", own[0][2] > last)
    eq("failures", [e for e in trace.events if e["event"] == "rmid_failed"], [])


test_forks.timeout = 60


def test_fifo(_, __):
    """Never-used ones first, in order; then whichever has been free longest."""
    with module(max_rmid=100), Trace(*LIFE) as trace, Procs("forks", 300):
        pass
    fresh, queue, again = [], [], 0
    for e in sorted(trace.events, key=lambda e: e["timestamp"]):
        if e["event"] == "rmid_free":
            queue.append(e["rmid"])
        elif not fresh or e["rmid"] == fresh[-1] + 1:
            fresh.append(e["rmid"])
        elif e["rmid"] in queue or e["rmid"] > fresh[0]:  # else it came free before this was looked at
            eq("the oldest that is free", e["rmid"], queue.pop(0))
            again += 1
    eq("fresh ones", fresh, list(range(fresh[0], 101)))
    true(f"{again} were given out again", again > 150)


def state(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().split()[2]


def test_zombie(_, __):
    with module(), Trace(*LIFE) as trace, Procs("zombie") as procs:
        pid = procs.book["children"][0]

        def freed():
            return lives(trace.read()).get(pid, [[0, 0, None]])[0][2]

        wait("the zombie's RMID is free", freed)
        eq("it is a zombie", state(pid), "Z")


def test_threads(_, __):
    """64 threads have one RMID; the process goes on under it when its leader has ended."""
    with module(), Trace(*LIFE, "measure_perf_counters") as trace:
        before = count("in_use")
        with Procs("threads", 64) as procs:
            pid = procs.book["pid"]
            wait("the leader has ended", lambda: state(pid) == "Z")
            eq("in use", count("in_use"), before + 1)
        wait("it is free", lambda: count("in_use") == before)
    seen = lives(trace.events)
    eq("lives", [to is not None for _, _, to in seen[pid]], [True])
    rmid = seen[pid][0][0]
    true("it was measured", any(e["event"] == "measure_perf_counters" and e["rmid"] == rmid for e in trace.events))


def test_exec(bench, _):
    """By a thread that is not the leader: the process keeps its RMID, and the dump has its new name."""
    other = bench.path("renamed")
    shutil.copy(os.path.join(folder(), "procs"), other)
    with module(), Trace(*LIFE, "rmid_existing") as trace, Procs("exec", other) as procs:
        pid = procs.book["pid"]
        eq("write", command("dump\n"), 0)
        rmid = lives(trace.read())[pid][0][0]
        dumped = {e["tgid"]: e for e in trace.read() if e["event"] == "rmid_existing"}
        eq("name and RMID", (dumped[pid]["comm"], dumped[pid]["rmid"]), ("renamed", rmid))
        eq("as many as are in use", len(dumped), count("in_use"))
        procs.finish()
        wait("it is free", lambda: lives(trace.read())[pid][0][2])
    eq("lives", len(lives(trace.events)[pid]), 1)


def test_exhausted(_, __):
    """Who gets none is named, in the log too, and gets one when one is free."""
    with module():
        base = count("in_use")
    with module(max_rmid=base + 3), Trace(*LIFE, "rmid_failed") as trace, Procs("hold", 4) as procs:
        pids = procs.book["children"]
        wait("all have been refused", lambda: count("failed") >= 2)
        eq("in use", count("in_use"), base + 3)
        refused = {e["tgid"] for e in trace.read() if e["event"] == "rmid_failed"}
        true(f"refused {refused} of {pids}", refused & set(pids))
        held = [i for i, pid in enumerate(pids) if pid not in refused]
        first = next(pid for pid in pids if pid in refused)
        before = count("retried")
        procs.say(held[0])
        wait("one of those who wait gets it", lambda: count("retried") > before)
        got = wait("it is told", lambda: [pid for pid in refused if pid in lives(trace.read())])
        true(f"{first} or another: {got}", set(got) <= refused)
    lives(trace.events)
    true("the log says it", "no RMID is free for" in dmesg())


def test_dump(_, __):
    """Commands, one a line; what is not one ends the write."""
    with module(), Trace("rmid_existing") as trace, Procs("hold", 20) as procs:

        def dumps(text):
            before = len(trace.read())
            ret = command(text)
            return ret, (len(trace.read()) - before) / count("in_use")

        eq("dump", dumps("dump"), (0, 1))
        eq("with blanks", dumps(" \tdump \n\n"), (0, 1))
        eq("three", dumps("dump\ndump\ndump\n"), (0, 3))
        eq("one is not a command", dumps("dump\ndumps\ndump\n"), (errno.EINVAL, 1))
        eq("a NUL", dumps("dump\0\n"), (errno.EINVAL, 0))
        eq("too long", dumps("dump\n" + " " * 252), (errno.E2BIG, 0))
        eq("as long as can be", dumps("dump\n" + " " * 251), (0, 1))
        eq("released", info()["released"], "0")
        eq("release", (command("release\n"), info()["released"]), (0, "1"))
        eq("keep", (command("keep\n"), info()["released"]), (0, "0"))
        children = {e["tgid"] for e in trace.read()}
        true("children are in the dump", set(procs.book["children"]) <= children)
        eq("mode of the file", os.stat("/proc/ttmon_rmid").st_mode & 0o777, 0o600)


def ticks(events, cpu=None):
    return [
        e
        for e in events
        if e["event"] == "measure_perf_counters" and not e["is_context_switch"] and cpu in (None, e["cpu"])
    ]


def burn(trace, attempts=8):
    """A program that runs on CPU 1, and the ticks there meanwhile: about one for each millisecond that
    it has seen itself, never more. The host may have no time for the thread of qemu that raises
    interrupts: then once more.
    """
    for _ in range(attempts):
        trace.clear()
        with Procs("burn", 300) as procs:
            book = procs.book
        span = [e for e in ticks(trace.read(), 1) if book["from"] <= e["ns"] < book["to"]]
        eq("a tick for each millisecond, not two", len({e["ns"] // 500000 for e in span}), len(span))
        true(f"{len(span)} ticks in {book['ms']} ms", len(span) <= (book["to"] - book["from"]) / 1e6 + 1)
        if len(span) > 0.6 * book["ms"]:
            return book, span
    raise AssertionError(f"{len(span)} ticks in {book['ms']} ms, and no more in {attempts} attempts")


def online(cpu, state):
    with open(f"/sys/devices/system/cpu/cpu{cpu}/online", "w", encoding="ascii") as f:
        f.write(state)


def test_tick(_, __):
    """A busy CPU ticks each millisecond under the right RMID, an idle one does not, one that comes ticks."""
    with module(), Trace(*LIFE, "measure_perf_counters") as trace:
        book, span = burn(trace)
        rmid = lives(trace.read())[book["pid"]][0][0]
        mine = [e for e in span if e["rmid"] == rmid]
        true(f"{len(mine)} of {len(span)} are the burner's", len(mine) > 0.9 * len(span))
        trace.clear()
        quiet = time.monotonic_ns()
        time.sleep(1)
        idle = [e for e in ticks(trace.read()) if e["ns"] > quiet + 2e8 and e["ns"] < quiet + 9e8]
        true(f"{len(idle)} ticks of four idle CPUs in 700 ms", len(idle) < 350)
        trace.clear()
        online(1, "0")
        gone = time.monotonic_ns()
        time.sleep(0.2)
        come = time.monotonic_ns()
        online(1, "1")
        eq(
            "events of a CPU that is not there",
            [e for e in trace.read() if e["cpu"] == 1 and gone < e["ns"] < come],
            [],
        )
        burn(trace)


test_tick.timeout = 60


def test_idle_tick(_, __):
    with module(idle_tick="Y"), Trace("measure_perf_counters") as trace:
        time.sleep(1)
    each = [len(ticks(trace.events, cpu)) for cpu in range(os.cpu_count())]
    true(f"ticks of the CPUs in a second: {each}", all(130 < n < 1500 for n in each))
    with module(tick_us=0), Trace("measure_perf_counters") as trace, Procs("burn", 100):
        pass
    eq("ticks", ticks(trace.events), [])
    true("but switches", trace.events)


def check_sample(e, fake):
    rmid, ms = e["rmid"], e["timestamp"] // 10**6
    want = {
        "llc_occupancy": (1000 * rmid + e["domain"], 0),
        "mbm_total": (ms * rmid % 2**24, 0),
        "mbm_local": (ms * (rmid // 2) % 2**24, 0),
    }
    if fake == 2:
        want.update(
            {
                6: {"llc_occupancy": (0, -errno.EINVAL)},
                7: {"mbm_total": (0, -errno.EIO)},
                5: {"mbm_local": (0, -errno.ENODEV)},
            }.get(rmid % 8, {})
        )
    for name, (value, err) in want.items():
        eq(f"{name} of RMID {rmid}", e[name], f"{value} ({err})")


def batches(events):
    """What each tick of each CPU has read: [[RMID, ...], ...]."""
    result, at = [], {}
    for e in events:
        if e["event"] == "measure_perf_counters" and not e["is_context_switch"]:
            at[e["cpu"]] = []
            result.append(at[e["cpu"]])
        elif e["event"] == "rdt_sample":
            at.setdefault(e["cpu"], []).append(e["rmid"])
    return [batch for batch in result if batch]


def readings(fake, batch, tick_us):
    """Made-up readings while 20 children are there and one runs: (RMIDs in use, samples in its time, batches)"""
    names = ("rdt_sample", "rmid_existing", "measure_perf_counters")
    with module(fake_rdt=fake, rdt_batch=batch, tick_us=tick_us), Procs("hold", 20), Trace(*names) as trace:
        command("dump")
        with Procs("burn", 200) as procs:
            book = procs.book
    for e in trace.events:
        if e["event"] == "rdt_sample":
            check_sample(e, fake)
    inside = [
        e for e in trace.events if book["from"] <= e.get("timestamp", 0) < book["to"] and e["event"] == "rdt_sample"
    ]
    return {e["rmid"] for e in trace.events if e["event"] == "rmid_existing"}, inside, batches(trace.events)


def test_readings(_, __):
    """All RMIDs in use are read, as many a tick as it is told, in turn, for this machine's L3 domain."""
    with open("/sys/devices/system/cpu/cpu0/cache/index3/id", encoding="ascii") as f:
        domain = int(f.read())
    held, inside, each = readings(1, 5, 1000)
    read = [e["rmid"] for e in inside if e["domain"] == domain]
    eq("not read", held - set(read), set())
    times = [read.count(rmid) for rmid in held]
    true(f"in turn: {times}", max(times) - min(times) <= 1)
    eq("RMIDs in the largest batch", max(map(len, each)), 5)


def test_readings_with_errors(_, __):
    """With errors among them; where all fit into a tick, each is read once."""
    held, inside, each = readings(2, 64, 5000)
    eq("not read", held - {e["rmid"] for e in inside}, set())
    true("all kinds of errors", {5, 6, 7} <= {rmid % 8 for rmid in held})
    for batch in each:
        eq("each once a tick", len(set(batch)), len(batch))
    true("in one tick", any(held <= set(batch) for batch in each))


def test_comes_and_goes(_, __):
    """Loaded and unloaded under a load of forks, ten times."""
    stop = threading.Event()

    def load():
        while not stop.is_set():
            with Procs("forks", 50):
                pass

    threads = [threading.Thread(target=load) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(10):
            with module(max_rmid=30):
                time.sleep(0.2)
                eq("double frees", count("double_frees"), 0)
    finally:
        stop.set()
        for t in threads:
            t.join()


test_comes_and_goes.timeout = 60
