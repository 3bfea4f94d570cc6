# SPDX-License-Identifier: GPL-2.0-only
"""
t_programs.py: runs of programs on Tenstorrent chips as a stream: each run of the book once to
everybody who follows, and who is away or slow is told.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

from e2e import PATIENCE, SLOW, TTMON, alone, eq, standin, timeout, true, tt_env
from live_host import Follower
from t_api import ALICE, BOB, Service
from t_heat import Screen
from tt_host import Host, api, retry

ROUTE = "/v1/tt/programs"
KEPT = 262144
CLOCKS = ["none", "pairs", "record", "envelope"]


class Programs(Follower):
    """A client of the route: rows as dictionaries, with the kernels' names in the place of their number."""

    def __init__(self, path, query="", **more):
        self.names, self.rows, self.missed = {}, [], 0
        super().__init__(path, query, route=ROUTE, **more)

    def take(self, seconds=20):
        """The next line; False at the end."""
        line = self.line(seconds)
        true("nothing came", line is not None)
        if not line:
            return False
        value = json.loads(line)
        if isinstance(value, list):
            row = dict(zip(self.head["columns"], value))
            true(f"{row}: its kernels were not told", row["kernels"] is None or row["kernels"] in self.names)
            self.rows.append(dict(row, kernels=self.names.get(row["kernels"])))
        else:
            if "kernels" in value:
                self.names[value["kernels"]] = value["names"]
            self.missed += value.get("missed", 0)
        return True

    def until(self, count):
        while len(self.rows) < count:
            true("the reply ended", self.take())
        return self.rows

    def rest(self):
        while self.take():
            pass
        return self.rows


def check_book(rows, book, host, target):
    """
    Rows against what the program knows of its chips: each run once, its times within their bounds,
    its kernels, its chip.
    """
    runs = {(chip, program): (start, end, reported) for chip, program, start, end, _, reported in book["runs"]}
    eq("runs", sorted((r["device"], r["program"]) for r in rows), sorted(runs))
    seqs = [r["seq"] for r in rows]
    eq("numbers grow", seqs, sorted(set(seqs)))
    chips = {host.unique[bdf]: i for i, bdf in enumerate(target.opened)}
    indexes = {
        chips[int(c["unique_id"], 16)]: c["index"]
        for c in host.devices()["chips"]
        if c["unique_id"] and int(c["unique_id"], 16) in chips
    }
    for r in rows:
        start, end, reported = runs[r["device"], r["program"]]
        where = f"{r} against {start}, {end}, {reported}"
        eq(where, (r["pid"], r["kernels"]), (book["pid"], book["kernels"][r["program"] % 4]))
        true(where, r["error_ns"] is None or max(abs(r["start_ns"] - start), abs(r["end_ns"] - end)) <= r["error_ns"])
        true(where, reported <= r["seen_ns"] and r["clock"] < len(CLOCKS))
        if r["device"] in indexes:
            # Which chip it is has to be found out first.
            true(f"{where}: chip is {indexes[r['device']]}", r["chip"] in (None, indexes[r["device"]]))
    if book["gen"].startswith("e2b48"):
        true("chips in the end", all(r["chip"] for r in rows[-2:]))
    return CLOCKS[max(rows, key=lambda r: r["seen_ns"])["clock"]]


@timeout(60)
def test_every_run(bench):
    """To two followers, to libttmon and to one that comes late; under each of the layouts of records."""
    host = Host(bench, "t3k")
    host.service()
    for gen, clock in (("e2b48", "pairs"), ("e2b64", "record"), ("e4", "envelope")):
        target = host.target(gen, "ttrun", "--chips", "2", "--programs", "100", "--pair-us", "1000", "--batch", "5")
        host.wait_probed([target.pid])
        followers = [Programs(host.socket, f"pid={target.pid}") for _ in range(2)]
        library = bench.target(standin("libttmon_programs"), "-p", str(target.pid), host.socket)
        target.go()
        book = json.loads(target.line())
        for follower in followers:
            eq(f"{gen}: clock", check_book(follower.until(100), book, host, target), clock)
            follower.silent(0.3)
        late = Programs(host.socket, f"pid={target.pid}", follow=False).rest()
        eq(f"{gen}: who comes late", late, followers[0].rows)
        half = Programs(
            host.socket, f"pid={target.pid}&after={late[49]['seq']}&start={followers[0].head['start_id']}", follow=False
        )
        eq(f"{gen}: after the 50th", (half.rest(), half.head["restarted"]), (late[50:], False))
        heard = [json.loads(library.line()) for _ in late]
        error = 2**64 - 1
        eq(
            f"{gen}: libttmon",
            heard,
            [
                [
                    r["seq"],
                    r["pid"],
                    r["device"],
                    r["chip"] or 0,
                    r["program"],
                    r["start_ns"],
                    r["end_ns"],
                    error if r["error_ns"] is None else r["error_ns"],
                    r["clock"],
                    r["seen_ns"],
                    r["kernels"],
                ]
                for r in late
            ],
        )
        stats = json.loads(library.finish().splitlines()[-1])
        eq(
            f"{gen}: its statistics",
            {k: stats[k] for k in ("runs", "missed", "connects", "disconnects", "out_of_order")},
            {"runs": 100, "missed": 0, "connects": 1, "disconnects": 0, "out_of_order": 0},
        )
        target.go()
        target.finish()
        for follower in followers:
            follower.close()


def command(sock, *args, status=0):
    done = subprocess.run(
        [TTMON, "programs", "--socket", sock, *args], capture_output=True, text=True, check=False, timeout=30 * PATIENCE
    )
    eq(f"{args}: {done.stderr}", done.returncode, status)
    return done.stdout


def median(values):
    return sorted(values)[(len(values) + 1) // 2 - 1]


@timeout(60)
def test_command(bench):
    """`ttmon programs`: all that is kept against the book, what comes an interval after the other, the screen."""
    host = Host(bench, "t3k")
    host.service()
    for gen in ("e2b48", "e4"):
        target = host.target(gen, "ttrun", "--chips", "2", "--programs", "100", "--pair-us", "1000")
        host.wait_probed([target.pid])
        target.go()
        book = json.loads(target.line())
        rows = Programs(host.socket, f"pid={target.pid}").until(100)
        doc = json.loads(command(host.socket, "--once", "--json", "--pid", str(target.pid)))
        bound = [r["error_ns"] for r in rows]
        window = max(r["end_ns"] for r in rows) - min(r["start_ns"] for r in rows)
        eq("window", (doc["window_ns"], doc["missed"]), (window, 0))
        want = {}
        for chip, program, start, end, *_ in book["runs"]:
            want.setdefault((chip, book["kernels"][program % 4]), []).append(end - start)
        eq(
            "rows",
            sorted((p["device"], p["kernels"], p["runs"]) for p in doc["programs"]),
            sorted((*k, len(v)) for k, v in want.items()),
        )
        for p in doc["programs"]:
            lengths, mine = want[p["device"], p["kernels"]], [
                r for r in rows if (r["device"], r["kernels"]) == (p["device"], p["kernels"])
            ]
            where = f"{gen}: {p}"
            eq(
                where,
                (p["pid"], p["comm"], p["program"]),
                (target.pid, "ttrun", None if len(lengths) > 1 else p["program"]),
            )
            eq(where, p["median_ns"], median([r["end_ns"] - r["start_ns"] for r in mine]))
            if None in bound:
                eq(where, (p["busy_error_ns"], p["busy_share_error"]), (None, None))
                true(where, abs(p["busy_ns"] - sum(lengths)) < 1e-3 * sum(lengths))
            else:
                true(
                    where,
                    abs(p["busy_ns"] - sum(lengths)) <= p["busy_error_ns"] == 2 * sum(r["error_ns"] for r in mine),
                )
                true(where, abs(p["median_ns"] - median(lengths)) <= 2 * max(bound))
            true(
                where,
                abs(p["busy_share"] - p["busy_ns"] / window) < 1e-9
                and p["median_ns"] <= p["p99_ns"] <= max(r["end_ns"] - r["start_ns"] for r in mine),
            )
        work = {
            d: {
                "runs": 50,
                "busy_ns": sum(r["end_ns"] - r["start_ns"] for r in rows if r["device"] == d),
                "busy_error_ns": None if None in bound else 2 * sum(r["error_ns"] for r in rows if r["device"] == d),
            }
            for d in (0, 1)
        }
        retry(
            10,
            lambda g=gen, t=target, w=work: eq(
                f"{g}: work of the devices",
                {
                    d["logical"]: d["work"]
                    for p in host.devices()["processes"]
                    if p["tgid"] == t.pid
                    for d in p["devices"]
                },
                w,
            ),
        )
        gaps = [p["gap_median_ns"] for p in doc["programs"]]
        true(f"{gen}: gaps {gaps}", all(g is not None and 0 <= g < window for g in gaps))
        text = command(host.socket, "-1", "-p", str(target.pid)).splitlines()
        eq(
            f"{gen}: lines of {text}",
            (len(text), text[0].split()),
            (2 + len(want), "PROGRAM PROCESS CHIP RUNS RUNS/S BUSY ERROR MEDIAN P99 GAP".split()),
        )
        true(f"{text}", all(f"ttrun[{target.pid}]" in line for line in text[2:]))
        true(f"{text}", any("bmm.cpp, reader_bmm.cpp" in line for line in text[2:]))
        if None in bound:
            true(f"the error is not known: {text[2]}", re.search(r" [\d.]+ %\s+-\s", text[2]))
        target.go()
        target.finish()

    flood = host.target("e2b48", "ttflood", "--rate", "2000", "--seconds", "1", "--programs", "3")
    live = bench.target(TTMON, "programs", "-s", host.socket, "-j", "-i", "0.2", "-p", str(flood.pid), wait_ready=False)
    screen = Screen(bench, "-s", host.socket, "-i", "0.2", "-p", str(flood.pid), columns=140, command="programs")
    host.wait_probed([flood.pid])
    eq("nothing yet", json.loads(live.line())["programs"], [])
    flood.go()
    sums = {}
    while sum(sums.values()) < 2000:
        doc = json.loads(live.line())
        true(f"{doc}", doc["window_ns"] >= 2e8 and not doc["missed"])
        for p in doc["programs"]:
            sums[p["kernels"]] = sums.get(p["kernels"], 0) + p["runs"]
            true(f"{p}", p["busy_share"] is None or 0 <= p["busy_share"] <= 1.2)
    eq("runs by program", sorted(sums.values()), [666, 667, 667])
    live.proc.terminate()
    screen.until(
        "the programs",
        lambda s: "PROGRAM" in s[1] and any("program_" in line and f"ttflood[{flood.pid}]" in line for line in s),
    )
    screen.key("q")
    screen.ended()
    for args, word in ((("-i", "0"), "interval"), (("-p", "x"), "pid"), (("-x",), "option"), (("x",), "argument")):
        done = subprocess.run([TTMON, "programs", *args], capture_output=True, text=True, check=False, timeout=30)
        eq(f"{args}: {done.stderr}", (done.returncode, done.stderr.count("\n"), word in done.stderr), (2, 1, True))
    done = subprocess.run(
        [TTMON, "programs", "-s", bench.path("none")], capture_output=True, text=True, check=False, timeout=30
    )
    eq(f"{done.stderr}", (done.returncode, "no ttmond on" in done.stderr), (2, True))


@timeout(60)
def test_smi_busy(bench):
    """
    `ttmon smi --busy`: of whom the profiler tells something its share of the second, of the others
    that it is not known.
    """
    host = Host(bench, "t3k")
    host.service()
    silent = host.target("e0", "ttscen", "restart", "--chips", "1")
    flood = host.target("e2b48", "ttflood", "--rate", "4000", "--seconds", "8", "--batch", "16")
    host.wait_probed([silent.pid, flood.pid])
    for target in (silent, flood):
        target.go()
    args = [
        TTMON,
        "smi",
        "--busy",
        "--socket",
        host.socket,
        "--sysfs-root",
        os.path.join(host.root, "sys"),
        "--proc-root",
        os.path.join(host.root, "proc"),
        "--shm-root",
        host.shm,
    ]

    def smi(*more):
        done = subprocess.run([*args, *more], capture_output=True, text=True, check=False, timeout=30 * PATIENCE)
        eq(f"{more}: {done.stderr}", done.returncode, 0)
        return done.stdout

    def busy():
        doc = json.loads(smi("--json"))
        rows = {b["pid"]: b for b in doc["busy"]}
        true(f"{rows}", flood.pid in rows and rows[flood.pid]["busy_ns"] and rows[flood.pid]["id"] != "n/a")
        return doc, rows

    doc, rows = retry(5, busy)
    row, window = rows[flood.pid], doc["busy_window_ns"]
    # 5 us each, at most what was to be sent by then.
    true(
        f"{row} of {window}",
        window >= 1e9 and 0 < row["busy_ns"] <= 4000 * 8 * 5000 and 0 <= row["busy_error_ns"] < 1e9,
    )
    true(f"{row['id']} is a chip's", row["id"] in {c["id"] for c in doc["chips"]})
    true(
        f"{rows}",
        silent.pid not in rows or (rows[silent.pid]["busy_ns"], rows[silent.pid]["busy_error_ns"]) == (None, None),
    )
    text = smi()
    true(
        text,
        re.search(
            rf"ID\s+PID\s+Process\s+Busy\s+Error\n(.*\n)*.*\b{flood.pid}\s+ttflood\s+[\d.]+ %\s+(>100|[\d.]+) %", text
        ),
    )
    # The first picture has nothing to compare with.
    watch = bench.target(*args, "--watch", "--json", "--refresh", "300", wait_ready=False)
    first, second = json.loads(watch.line()), json.loads(watch.line())
    eq("first", (first["busy"], first["busy_window_ns"]), ([], None))
    [mine] = [b for b in second["busy"] if b["pid"] == flood.pid]
    # 2 % of the window, not of all the time.
    true(f"{second}", second["busy_window_ns"] >= 2e8 and 0 < mine["busy_ns"] < 0.1 * second["busy_window_ns"])
    watch.proc.terminate()
    done = subprocess.run(
        [*args[:4], bench.path("none"), *args[5:]], capture_output=True, text=True, check=False, timeout=30 * PATIENCE
    )
    true(
        f"without a service: {done.stderr}", done.returncode == 1 and "none" in done.stderr and "Process" in done.stdout
    )


@timeout(60)
def test_busy_share(bench):
    """
    The share of the time in which chips ran a process's programs, in `ttmon top` and for each chip
    in `ttmon smi --busy`.
    """
    host = Host(bench, "t3k")
    host.service()
    silent = host.target("e2b48", "ttscen", "restart", "--chips", "1")
    run = host.target("e2b48", "ttrun", "--chips", "2", "--programs", "100", "--pair-us", "1000")
    host.wait_probed([silent.pid, run.pid])

    def top(*args):
        done = subprocess.run(
            [TTMON, "top", "-s", host.socket, "-1", "-i", "0.3", *args],
            capture_output=True,
            text=True,
            check=False,
            timeout=30 * PATIENCE,
        )
        eq(f"{args}: {done.stderr}", done.returncode, 0)
        return done.stdout

    def rows(text):
        return {p["pid"]: (p["chip_busy_ns"], p["chip_busy_error_ns"]) for p in json.loads(text)["processes"]}

    # Nobody has told anything.
    eq("before", rows(top("-j", "-p", str(run.pid))), {run.pid: (None, None)})
    run.go()
    book = json.loads(run.line())
    want = sum(end - start for _, _, start, end, *_ in book["runs"])

    def work():
        [mine] = [p for p in api(host.socket, "/v1/processes")["processes"] if p["pid"] == run.pid]
        eq("runs of the process", (mine["work"] or {}).get("runs"), 100)
        return mine["work"]

    work = retry(20, work)
    eq(f"{work}", (work["unbounded_runs"], work["missed_runs"], work["at_least"]), (0, 0, False))
    true(f"{work} against {want}", abs(work["busy_ns"] - want) <= work["bounded_error_ns"])
    # It waits now, and that is known; of this process nothing is.
    got = rows(top("-j", "-o", "chip"))
    eq("idle", (got[run.pid], got[os.getpid()]), ((0, 0), (None, None)))
    text = top("-p", str(run.pid))
    true(text, re.search(rf"CPU% +CHIP% +ERROR .*\n +{run.pid} ttrun( +\S+){{3}} +[\d.]+ +0\.0 +0\.0 ", text))
    run.go()
    run.finish()

    flood = host.target("e2b48", "ttflood", "--rate", "2000", "--seconds", "20", "--batch", "16")
    host.wait_probed([flood.pid])
    flood.go()

    def share():
        busy, error = rows(top("-j", "-p", str(flood.pid)))[flood.pid]
        true(f"{busy}, {error}", busy and error)

    retry(10, share)

    def chips():
        done = subprocess.run(
            [
                TTMON,
                "smi",
                "--busy",
                "--json",
                "--socket",
                host.socket,
                "--sysfs-root",
                os.path.join(host.root, "sys"),
                "--proc-root",
                os.path.join(host.root, "proc"),
                "--shm-root",
                host.shm,
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=30 * PATIENCE,
        )
        doc = json.loads(done.stdout)
        [mine] = [b for b in doc["busy"] if b["pid"] == flood.pid]
        [chip] = [c for c in doc["chips"] if c["id"] == mine["id"]]
        true(f"{mine}, {chip}", mine["busy_ns"])
        of_chip = [b for b in doc["busy"] if b["id"] == chip["id"]]
        eq(
            f"{chip}",
            (chip["busy_ns"], chip["busy_at_least"]),
            (sum(b["busy_ns"] or 0 for b in of_chip), any(b["busy_ns"] is None for b in of_chip)),
        )
        idle = [c for c in doc["chips"] if c["id"] not in {b["id"] for b in doc["busy"]}]
        eq(
            "chips of which nothing is known",
            {(c["busy_ns"], c["busy_error_ns"], c["busy_at_least"]) for c in idle},
            {(None, None, False)} if idle else set(),
        )

    retry(10, chips)
    flood.proc.kill()


@timeout(60)
def test_who_hears_what(bench):
    """Everybody of their own processes, root of all, TCP nothing; and bad requests."""
    service = Service(bench)
    programs = {}
    lib = bench.for_everybody(standin("tt/e2b48"))
    flood = bench.for_everybody(standin("ttflood"))
    for user in (0, ALICE):
        programs[user] = bench.target(
            "setpriv",
            "--reuid",
            str(user),
            "--regid",
            str(user),
            "--clear-groups",
            "env",
            f"LD_LIBRARY_PATH={lib}",
            flood,
            "--rate",
            "1000",
            "--seconds",
            "0.2",
            "--batch",
            "7",
        )
    root = {user: Programs(service.sock, f"pid={p.pid}") for user, p in programs.items()}
    # The service needs a moment to probe a library that it has not met.
    retry(
        20,
        lambda: true(
            "probed",
            all(
                any(
                    o["path"].endswith("e2b48/libtt_metal.so") and any(p["state"] == "attached" for p in o["probes"])
                    for o in service.get("/v1/probes")["objects"]
                )
                for _ in programs
            ),
        ),
    )
    time.sleep(0.5)
    for p in programs.values():
        p.go()
    for user, follower in root.items():
        eq(f"root of {user}'s", len(follower.until(200)), 200)

    def heard(user, query=""):
        fetch = f"""
import json, os, socket
os.setgroups([{service.group}]); os.setgid({user}); os.setuid({user})
s = socket.socket(socket.AF_UNIX)
s.connect({service.sock!r})
s.sendall(b"GET {ROUTE}?{query} HTTP/1.0\\r\\n\\r\\n")
body = b"".join(iter(lambda: s.recv(65536), b"")).split(b"\\r\\n\\r\\n", 1)[1]
rows = [json.loads(line) for line in body.splitlines()]
names = [row for row in rows if "names" in row]
print(json.dumps([len(rows), sorted({{row[1] for row in rows if isinstance(row, list)}}), names]))
"""
        out = bench.target(sys.executable, "-c", fetch, wait_ready=False)
        return json.loads(out.finish())

    pids = {user: p.pid for user, p in programs.items()}
    true("root", set(heard(0)[1]) >= set(pids.values()))
    lines, seen, names = heard(ALICE)
    eq("Alice", (lines, seen, len(names)), (1 + 64 + 200, [pids[ALICE]], 64))
    eq("Alice of root's", heard(ALICE, f"pid={pids[0]}"), [1, [], []])
    eq("Bob", heard(BOB), [1, [], []])
    eq("by TCP", service.tcp(ROUTE)[0], 403)
    for query, word in (("after=x", "after="), ("pid=0", "pid="), ("follow=2", "follow="), ("start=5", "start_id")):
        service.refused(f"{ROUTE}?{query}", 400, word)
    for p in programs.values():
        p.go()
        p.finish()


def test_run_with_a_file(bench):
    """
    A run that ends with a file keeps the first ones: who follows is told of the others that they
    are missed, while they come.
    """
    sock = bench.path("sock")
    flood = bench.target(standin("ttflood"), "--rate", "2000", "--seconds", "0.2", "--batch", "8", env=tt_env("e2b48"))
    daemon = bench.daemon(
        "--socket", sock, "--dump-db", bench.path("db.json"), "--max-events", "150", "--pid", str(flood.pid)
    )
    follower = Programs(sock)
    flood.go()
    while len(follower.rows) + follower.missed < 400:
        true("the reply ended", follower.take())
    eq("kept and missed", ([r["seq"] for r in follower.rows], follower.missed), (list(range(1, 151)), 250))
    flood.go()
    flood.finish()
    daemon.wait(0)


@alone("its flood of records is seen by the services of other tests too")
@timeout(120)
def test_more_than_is_kept(bench):
    """
    A follower that keeps up misses none; one that is stopped meanwhile is told how many; who comes
    late gets what is kept, and is told of the rest.
    """
    host = Host(bench, "t3k")
    host.service()
    count = int(KEPT * 1.3)
    flood = host.target(
        "e2b48", "ttflood", "--rate", str(60000 // SLOW), "--seconds", str(count * SLOW / 60000), "--batch", "128"
    )
    host.wait_probed([flood.pid])
    quick, stopped = (bench.target(standin("libttmon_programs"), "-c", host.socket) for _ in range(2))
    time.sleep(0.5)
    os.kill(stopped.pid, signal.SIGSTOP)
    flood.go()
    sent = json.loads(flood.line(60 * SLOW))
    time.sleep(0.5)

    def told():
        # Runs of other programs of this host count, too.
        return Programs(host.socket, "after=4000000000000000000", follow=False).head["next"] - 1

    true(f"{sent}, told {told()}", told() >= sent["sent"])

    def stats(target):
        target.go()
        return json.loads(target.line())

    def all_heard(target):
        s = stats(target)
        eq("runs, missed and earlier", s["runs"] + s["missed"] + s["earlier"], told())
        eq("out of order", s["out_of_order"], 0)
        return s

    s = retry(20, lambda: all_heard(quick))
    eq(f"missed by who keeps up: {s}", (s["missed"], s["earlier"]), (0, 0))
    os.kill(stopped.pid, signal.SIGCONT)
    s = retry(20, lambda: all_heard(stopped))
    true(f"{s}", s["missed"] > 0 and s["runs"] >= KEPT)
    late = Programs(host.socket, "after=1", follow=False)
    rows = late.rest()
    eq("kept", (late.head["first"], late.head["next"] - late.head["first"]), (rows[0]["seq"], KEPT))
    true(
        f"who comes late: {len(rows)} rows, {late.missed} missed",
        len(rows) >= KEPT and 2 + late.missed == rows[0]["seq"],
    )
    eq("one after the other", [r["seq"] for r in rows], list(range(rows[0]["seq"], rows[0]["seq"] + len(rows))))
    ids = [r["program"] for r in rows if r["pid"] == flood.pid]
    eq("programs", ids, [1 + (ids[0] - 1 + i) % 64 for i in range(len(ids))])
