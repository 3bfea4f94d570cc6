# SPDX-License-Identifier: GPL-2.0-only
"""
Trace files: --trace-out, `ttmon trace` of a recording, a database and the service; held against the
database and a program's book.
"""
import collections
import gzip
import json
import os
import subprocess
import sys
from decimal import Decimal

from e2e import STANDIN, TOP, TTMON, Skip, eq, last_json, pair, process, standin, timeout, true
from tt_host import Unix

PER_US = 1000


def load(path):
    """A trace, times as Decimal."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        trace = json.load(f, parse_float=Decimal)
    check_form(trace)
    return trace


def ns(us):
    value = us * PER_US
    true(f"{us} us is no whole number of ns", value == int(value))
    return int(value)


def check_form(trace):
    """What every viewer wants: known phases, each begin with its end, slices of a track that nest."""
    eq("members", sorted(trace), ["displayTimeUnit", "otherData", "traceEvents"])
    eq("unit", trace["displayTimeUnit"], "ns")
    slices, open_ids, named = collections.defaultdict(list), {}, set()
    for ev in trace["traceEvents"]:
        true(f"phase of {ev}", ev["ph"] in "MXbeCi")
        true(f"ids of {ev}", isinstance(ev["pid"], int) and isinstance(ev["tid"], int) and ev["name"])
        if ev["ph"] == "M":
            if ev["name"] == "process_name":
                true(f"{ev} is there twice", ev["pid"] not in named)
                named.add(ev["pid"])
            continue
        true(f"{ev} has a process without a name", ev["pid"] in named)
        start = ns(ev["ts"])
        if ev["ph"] == "X":
            slices[ev["pid"], ev["tid"]].append((start, start + ns(ev["dur"])))
        elif ev["ph"] == "b":
            key = ev["pid"], ev["id2"]["local"]
            true(f"{ev} begins twice", key not in open_ids)
            open_ids[key] = start
        elif ev["ph"] == "e":
            true(f"{ev} ends before it begins", open_ids.pop((ev["pid"], ev["id2"]["local"])) <= start)
        elif ev["ph"] == "C":
            true(f"{ev} counts below zero", ev["args"]["bytes"] >= 0)
    eq("begins without an end", open_ids, {})
    for track, list_ in slices.items():
        stack = []
        for start, end in sorted(list_, key=lambda s: (s[0], -s[1])):
            while stack and stack[-1] <= start:
                stack.pop()
            true(f"slices of {track} overlap at {start}", not stack or end <= stack[-1])
            stack.append(end)


def events(trace, ph, cat):
    return [e for e in trace["traceEvents"] if e["ph"] == ph and e.get("cat") == cat]


def same_as_database(trace, db):
    """Allocations, transfers and peaks of the trace are those of the database."""
    drawn = [a for a in db["allocations"] if a["method"] != "mmap" or a["transfers"]]
    begins = {}
    for ev in events(trace, "b", "alloc"):
        begins[ev["pid"], ev["name"], ns(ev["ts"]), ev["args"]["addr"]] = ev
    eq("allocations", len(events(trace, "b", "alloc")), len(drawn))
    start = int(db["capture"]["start_ns"])
    for a in drawn:
        key = a["pid"], a["method"], max(int(a["alloc_ns"]), start), a["addr"]
        true(f"{a['id']} is not in the trace", key in begins)
        eq(f"size of {a['id']}", begins[key]["args"]["size"], a["size"])
    eq("left out", trace["otherData"]["mappings_left_out"], len(db["allocations"]) - len(drawn))
    copies, moved = collections.Counter(), collections.Counter()
    for ev in events(trace, "i", "transfer"):
        copies[ev["name"]] += 1
        moved[ev["name"]] += ev["args"]["bytes"]
    wanted = {}
    for direction, mems in db["summary"]["transfers"].items():
        for mem, (n, size) in mems.items():
            wanted[direction if direction == "d2d" else f"{direction} {mem}"] = (n, size)
    eq("transfers", {k: (copies[k], moved[k]) for k in copies}, wanted)
    for proc in db["processes"]:
        pinned = [
            e["args"]["bytes"]
            for e in events(trace, "C", "memory")
            if e["pid"] == proc["pid"] and e["name"] == "pinned bytes"
        ]
        eq(f"peak of {proc['pid']}", max(pinned, default=0), proc["pinned_peak_bytes"])


def ttmon(bench, *args, status=0):
    done = subprocess.run([TTMON, *args], cwd=bench.dir, capture_output=True, text=True, check=False)
    eq(f"exit status of {args} ({done.stderr.strip()})", done.returncode, status)
    return done


def put(sock, family, state):
    conn = Unix(sock)
    conn.request("PUT", f"/v1/families?name={family}&state={state}")
    reply = conn.getresponse()
    eq(f"{family} {state}: {reply.read()[:200]!r}", reply.status, 200)


def less_source(trace):
    """Trace without what tells where it came from."""
    return dict(trace, otherData={k: v for k, v in trace["otherData"].items() if k != "source"})


def scen(*names):
    return [standin("scen"), *names]


@timeout(60)
def test_families(bench):
    """
    While transfers are counted only, the trace says so, in time and as missing; the live line and
    the summary have no 0 for them.
    """
    sock = bench.path("sock")
    target = bench.target(standin("ledger"), "--calls", "300", "--out", bench.path("book.json"), "--wait")
    daemon = bench.daemon(
        "--socket",
        sock,
        "--listen-address",
        "none",
        "--pid",
        str(target.pid),
        "--trace-out",
        bench.path("out.json"),
        "--record",
        bench.path("x.rec"),
        "--dump-db",
        bench.path("db.json"),
    )
    put(sock, "transfer", "counting")
    target.go()
    eq("last line", target.line(60), "done\n")
    put(sock, "transfer", "on")
    put(sock, "transfer", "off")
    target.go()
    target.finish()
    daemon.wait(0)
    true(
        daemon.stderr(),
        "no transfers were seen" in daemon.stderr() and "not all of transfer was seen: nothing for" in daemon.stderr(),
    )
    trace = load(bench.path("out.json"))
    begins, ends = events(trace, "b", "not seen"), events(trace, "e", "not seen")
    eq("intervals", [e["name"] for e in begins if "pid" not in e["args"]], ["transfer: counting", "transfer: off"])
    eq("why", {e["args"]["why"] for e in begins if "pid" not in e["args"]}, {"asked for"})
    true("they end", len(begins) == len(ends) and all(b["ts"] <= e["ts"] for b, e in zip(begins, ends)))
    eq("complete", trace["otherData"]["complete"], False)
    true("missing", trace["otherData"]["missing"]["not_seen"] >= 2)
    ttmon(bench, "trace", "x.rec", "-o", "rec.json")
    again = load(bench.path("rec.json"))
    true("the recording gives another trace", less_source(trace) == less_source(again))
    # A database tells the same intervals.
    ttmon(bench, "trace", "db.json", "-o", "fromdb.json")
    told = load(bench.path("fromdb.json"))
    eq(
        "intervals of the database",
        [(e["name"], e["ts"], e["args"]) for e in events(told, "b", "not seen")],
        [(e["name"], e["ts"], e["args"]) for e in begins],
    )
    true("missing, by the database", told["otherData"]["missing"]["not_seen"] >= 2)


@timeout(60)
def test_cuda(bench):
    """Of the run, its recording and its database: the same, but for calls, which a database has not."""
    cmd = [standin("ledger"), "--calls", "5000", "--out", bench.path("book.json")]
    _, db, _ = bench.trace(cmd, "--record", "x.rec", "--trace-out", bench.path("out.json.gz"))
    trace = load(bench.path("out.json.gz"))
    eq("complete", trace["otherData"]["complete"], True)
    eq("missing", trace["otherData"]["missing"], {})
    same_as_database(trace, db)
    calls = events(trace, "X", "call") + events(trace, "i", "call") + events(trace, "b", "call")
    eq("calls", len(calls), trace["otherData"]["calls"])
    proc = [p for p in db["processes"] if p["comm"] == "ledger"][0]
    ok = [e for e in calls if "error" not in e["args"] and e["args"].get("direction")]
    wanted = sum(pair(proc["transfers"], d)[0] for d in proc["transfers"]) + proc["captured"]
    eq("copies among the calls", len([e for e in ok if e["args"]["direction"] != "invalid"]), wanted)
    true("no call has a length", events(trace, "X", "call"))

    ttmon(bench, "trace", "x.rec", "-o", "rec.json")
    again = load(bench.path("rec.json"))
    eq("source", (trace["otherData"]["source"], again["otherData"]["source"]), ("capture", "recording"))
    true("the recording gives another trace", less_source(trace) == less_source(again))
    ttmon(bench, "trace", "db.json", "-o", "from_db.json")
    again = load(bench.path("from_db.json"))
    same_as_database(again, db)
    eq("calls of a database", (len(events(again, "X", "call")), "calls" in again["otherData"]), (0, False))
    for cat, ph in (("alloc", "b"), ("alloc", "e"), ("transfer", "i"), ("memory", "C")):
        true(
            f"{cat} differ",
            [{k: v for k, v in e.items() if k != "id2"} for e in events(trace, ph, cat)]
            == [{k: v for k, v in e.items() if k != "id2"} for e in events(again, ph, cat)],
        )
    eq("files left", sorted(f for f in os.listdir(bench.dir) if ".tmp." in f), [])


def test_incomplete_is_said(bench):
    """A recording that was cut off."""
    bench.trace(scen("copies"), "--record", "x.rec")
    data = open(bench.path("x.rec"), "rb").read()
    with open(bench.path("cut.rec"), "wb") as f:
        f.write(data[:-20])
    done = ttmon(bench, "trace", "cut.rec", "-o", "cut.json", status=1)
    true(f"it does not say so: {done.stderr}", "cut off" in done.stderr)
    trace = load(bench.path("cut.json"))
    eq("complete", trace["otherData"]["complete"], False)
    eq("cut", trace["otherData"]["missing"].get("cut"), 1)
    eq("instants that say so", len([e for e in events(trace, "i", "ttmon") if e["name"] == "incomplete"]), 1)


def test_refusals(bench):
    """One line each, and no file."""
    bench.trace(scen("copies"), "--record", "x.rec")
    with open(bench.path("no.json"), "w", encoding="utf-8") as f:
        f.write("{}")
    for args in (
        ["no.json", "-o", "out"],
        ["nothing", "-o", "out"],
        ["x.rec", "-o", "nowhere/out"],
        ["x.rec", "-o", "."],
        ["live", "-o", "out", "--socket", bench.path("no.sock")],
        ["x.rec", "-o", "/dev/full"],
    ):
        done = ttmon(bench, "trace", *args, status=2)
        eq(f"lines of {args}", len(done.stderr.strip().splitlines()), 1)
        true(f"{args}: {done.stderr}", done.stderr.startswith("ttmon: "))
    for args in (["x.rec"], ["-o", "out"], ["x.rec", "db.json", "-o", "out"], []):
        said = ttmon(bench, "trace", *args, status=2).stderr
        true(f"{args}: {said!r}", said.startswith("ttmon trace: ") and "--help" in said and said.count("\n") == 1)
    true("there is a file", not os.path.exists(bench.path("out")))


def test_standard_output(bench):
    bench.trace(scen("copies"))
    done = ttmon(bench, "trace", "db.json", "-o", "-")
    check_form(json.loads(done.stdout, parse_float=Decimal))
    with open(bench.path("db.json"), encoding="utf-8") as f:
        piped = subprocess.run([TTMON, "trace", "-", "-o", "-"], stdin=f, capture_output=True, text=True, check=True)
    true("standard input gives something else", piped.stdout == done.stdout)


@timeout(60)
def test_live(bench):
    """Of the running service; what is live ends where the picture does."""
    sock = bench.path("t.sock")
    daemon = bench.daemon("--socket", sock, "--shm-root", bench.dir)
    target = bench.target(standin("ledger"), "--calls", "2000", "--out", bench.path("book.json"), "--wait")
    ttmon(bench, "trace", "live", "-o", "before.json", "--socket", sock)
    target.go()
    eq("last line", target.line(), "done\n")
    ttmon(bench, "trace", "live", "-o", "out.json.gz", "--socket", sock)
    target.go()
    target.finish()
    daemon.stop()
    load(bench.path("before.json"))
    trace = load(bench.path("out.json.gz"))
    mine = [e for e in trace["traceEvents"] if e["pid"] == target.pid]
    begins = {e["id2"]["local"]: e for e in mine if e["ph"] == "b" and e["cat"] == "alloc"}
    live = [i for i, e in begins.items() if e["args"]["end"] == "live"]
    true(f"{len(live)} of {len(begins)} are live", 0 < len(live) < len(begins))
    end = int(trace["otherData"]["end_ns"])
    eq("ends of what is live", {ns(e["ts"]) for e in mine if e["ph"] == "e" and e["id2"]["local"] in live}, {end})
    true("its calls are not in it", [e for e in mine if e.get("cat") == "call"])
    eq("cut", trace["otherData"]["missing"].get("cut"), 1)


def ttrun(bench, generation, *args):
    lib = os.path.join(STANDIN, "tt", generation)
    if not os.path.exists(standin("ttrun")) or not os.path.isdir(lib):
        raise Skip("the Tenstorrent stand-ins are not built")
    cmd = [standin("ttrun"), "--chips", "2", "--programs", "200", "--pair-us", "1000", *args]
    out, db, _ = bench.trace(
        cmd, "--record", "x.rec", "--trace-out", bench.path("out.json"), env={"LD_LIBRARY_PATH": lib}
    )
    return last_json(out), db


def runs_of(trace):
    """(device, program) -> runs in order of their start: (start, end, args), X or beside the tracks."""
    found = collections.defaultdict(list)
    ends = {e["id2"]["local"]: ns(e["ts"]) for e in events(trace, "e", "program")}
    for ev in events(trace, "X", "program") + events(trace, "b", "program"):
        start = ns(ev["ts"])
        end = start + ns(ev["dur"]) if ev["ph"] == "X" else ends[ev["id2"]["local"]]
        found[ev["args"]["device"], ev["args"]["program"]].append((start, end, ev["args"]))
    return {k: sorted(v, key=lambda r: r[0]) for k, v in found.items()}


@timeout(60)
def test_device_runs(bench):
    """Where the program says that they truly were, within the error that the trace states."""
    book, db = ttrun(bench, "e2a")
    trace = load(bench.path("out.json"))
    drawn = runs_of(trace)
    eq("runs", sum(len(v) for v in drawn.values()), len(book["runs"]))
    truth = collections.defaultdict(list)
    for chip, program, start, end, *_ in book["runs"]:
        truth[chip, program & 0xFFFF].append((start, end))
    for key, wanted in truth.items():
        eq(f"runs of {key}", len(drawn.get(key, [])), len(wanted))
        for (start, end), (got_start, got_end, args) in zip(sorted(wanted), drawn[key]):
            eq("clock", args["clock"], "pairs")
            true(
                f"{key} starts at {got_start}, not {start}: error {args['error_ns']}",
                abs(got_start - start) <= args["error_ns"] + 1,
            )
            true(
                f"{key} ends at {got_end}, not {end}: error {args['error_ns']}",
                abs(got_end - end) <= args["error_ns"] + 1,
            )
    tracks = {e["tid"] for e in events(trace, "X", "program")}
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    true(f"a track without a name: {tracks} {names}", all(t in names for t in tracks))
    true("no kernel is named", [e for e in events(trace, "X", "program") if "kernels" in e["args"]])
    ttmon(bench, "trace", "x.rec", "-o", "rec.json")
    true("the recording gives another trace", less_source(load(bench.path("rec.json"))) == less_source(trace))
    ttmon(bench, "trace", "db.json", "-o", "from_db.json")
    # A database has whole hertz.
    again = runs_of(load(bench.path("from_db.json")))
    true(
        "the database gives other runs",
        {k: [r[:2] for r in v] for k, v in again.items()} == {k: [r[:2] for r in v] for k, v in drawn.items()},
    )


@timeout(60)
def test_database_of_a_run(bench):
    """It is in the schema, `ttmon db` takes it, and refuses it spoiled."""
    ttrun(bench, "e2a", "--dispatches", "10")
    done = subprocess.run(
        [sys.executable, os.path.join(TOP, "tests", "e2e", "check_schema.py"), "--ttmon", TTMON, "db.json"],
        cwd=bench.dir,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77:
        raise Skip("python3-jsonschema is not installed")
    true(done.stdout + done.stderr, done.returncode == 0)
    shown = ttmon(bench, "db", "show", "db.json").stdout
    for word in ("DISPATCHED", "PROGRAM", "fitted over clock pairs"):
        true(f"{word} is not shown", word in shown)


@timeout(60)
def test_dispatches(bench):
    """Every dispatch that is told one by one, on its thread; counts never above the sums."""
    book, db = ttrun(bench, "e2a", "--dispatches", "10")
    trace = load(bench.path("out.json"))
    drawn = events(trace, "i", "dispatch")
    true("no dispatch", drawn)
    eq("dispatches", len(drawn), len(db["tenstorrent"]["dispatched"]["rows"]))
    eq("pids", {e["pid"] for e in drawn}, {book["pid"]})
    sums = collections.Counter()
    for row in db["tenstorrent"]["dispatches"]:
        sums.update(row["count"])
    told = collections.Counter()
    for ev in drawn:
        told[ev["name"]] += ev["args"]["count"]
    for kind, n in told.items():
        true(f"{kind}: {n} of {sums[kind]}", 0 < n <= sums[kind])
    eq("process", process(db, book["pid"])["pid"], book["pid"])


@timeout(60)
def test_slots(bench):
    """
    Slot by slot: as many dispatches and as much device time as in all, where the runs lie; a row
    that is gone is found.
    """
    book, db = ttrun(bench, "e2a", "--dispatches", "100")
    table = db["tenstorrent"]["slots"]
    rows = [dict(zip(table["columns"], row)) for row in table["rows"]]
    eq("dropped", table["dropped"], 0)
    slots = [r["slot"] for r in rows]
    eq("order", slots, sorted(slots))
    eq("pids", {r["pid"] for r in rows}, {book["pid"]})
    counted = sum(sum(row["count"].values()) for row in db["tenstorrent"]["dispatches"])
    true(f"{counted} dispatches", counted > 300)
    eq("dispatches", sum(r["dispatches"] for r in rows), counted)
    busy = collections.Counter()
    for r in rows:
        busy[r["device"]] += r["busy_ns"]
    eq(
        "device time",
        {k: n for k, n in busy.items() if n},
        {c["device"]: c["busy_ns"] for c in db["tenstorrent"]["clocks"] if c["busy_ns"]},
    )
    runs = [dict(zip(db["tenstorrent"]["runs"]["columns"], row)) for row in db["tenstorrent"]["runs"]["rows"]]
    for r in rows:
        mine = [
            run for run in runs if run["device"] == r["device"] and int(run["start_ns"]) < (r["slot"] + 1) * 1000000
        ]
        true(f"{r}: before any run", not r["busy_ns"] or mine)
    eq("check", ttmon(bench, "db", "check", "db.json").returncode, 0)
    for spoil in (
        lambda t: t["rows"].pop(),
        lambda t: t["rows"][0].__setitem__(1, 1),
        lambda t: t["rows"].append(t["rows"][-1]),
    ):
        spoiled = json.loads(json.dumps(db))
        spoil(spoiled["tenstorrent"]["slots"])
        with open(bench.path("bad.json"), "w", encoding="utf-8") as f:
            json.dump(spoiled, f)
        done = subprocess.run(
            [TTMON, "db", "check", bench.path("bad.json")], capture_output=True, text=True, check=False
        )
        true(f"not found: {done.stdout}{done.stderr}", done.returncode != 0 and "slots" in done.stdout + done.stderr)


@timeout(60)
def test_envelope(bench):
    """Without a clock a run lies between enqueue and report; where an error is stated, it holds."""
    book, _ = ttrun(bench, "e1")
    drawn = runs_of(load(bench.path("out.json")))
    eq("runs", sum(len(v) for v in drawn.values()), len(book["runs"]))
    for chip, program, start, end, *_ in book["runs"]:
        for got_start, got_end, args in drawn[chip, program & 0xFFFF]:
            eq("clock", args["clock"], "envelope")
            true("it ends after its report", got_start <= got_end <= int(args["reported_ns"]))
            if "error_ns" in args:
                true(
                    f"{program} is at {got_start}, not {start}: error {args['error_ns']}",
                    abs(got_start - start) <= args["error_ns"] + 1 and abs(got_end - end) <= args["error_ns"] + 1,
                )
