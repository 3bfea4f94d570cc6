# SPDX-License-Identifier: GPL-2.0-only
"""
t_api.py: the JSON API over the history: every route against known workloads, who may see what, and
lists that are long or change.
"""
import contextlib
import gzip
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

from compare import compare
from e2e import PATIENCE, SLOW, TTMON, eq, fast, free_port, process, same_transfers, standin, timeout, true, tt_env
from tt_host import Unix, retry

# Users and a group that need not be known to the host. The users are of this test alone: others run beside it.
ALICE = 50_000 + os.getpid() % 5000 * 2
BOB, GROUP = ALICE + 1, 61234
# Makes SIZE-byte pinned allocations: `steady` stay; with churn others come and go until a line is
# read. Prints their addresses.
PROGRAM = """
import ctypes, json, os, select, sys
lib = ctypes.CDLL(sys.argv[1])
lib.cudaHostAlloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_uint]
lib.cudaFreeHost.argtypes = [ctypes.c_void_p]
def pin(size):
    p = ctypes.c_void_p()
    assert lib.cudaHostAlloc(ctypes.byref(p), size, 0) == 0
    return p.value
print("ready", os.getpid(), flush=True)
sys.stdin.buffer.raw.readline()
steady = [pin(4096) for _ in range(int(sys.argv[2]))]
print(json.dumps(steady), flush=True)
young, turns = [], 0
while not select.select([sys.stdin], [], [], 0 if sys.argv[3] == "churn" else None)[0]:
    young.append(pin(8192))
    turns += 1
    if len(young) > 200:
        assert lib.cudaFreeHost(young.pop(turns * 7 % 200)) == 0
sys.stdin.buffer.raw.readline()
print(turns, flush=True)
sys.stdin.buffer.raw.readline()
"""


class Service:
    """A service of this test alone, and its clients."""

    def __init__(self, bench, *args, env=None):
        self.bench = bench
        self.sock, self.port = bench.path("sock"), free_port()
        os.chmod(bench.dir, 0o755)
        self.daemon = bench.daemon(
            "--socket",
            self.sock,
            "--listen-address",
            f"127.0.0.1:{self.port}",
            "--shm-root",
            bench.dir,
            "--tt-shm-version",
            "off",
            "--max-overhead",
            "0",
            *args,
            env=env,
        )
        self.pid = self.daemon.proc.pid
        if os.stat(self.sock).st_gid == 0:
            os.chown(self.sock, 0, GROUP)
        self.group = os.stat(self.sock).st_gid

    def ask(self, path, conn=None):
        """Status, content type, body."""
        conn = conn or Unix(self.sock)
        conn.timeout = 60 * PATIENCE
        conn.connect()
        conn.sock.settimeout(60 * PATIENCE)
        conn.request("GET", path)
        reply = conn.getresponse()
        body = reply.read()
        conn.close()
        return reply.status, reply.getheader("Content-Type"), body

    def get(self, path):
        status, kind, body = self.ask(path)
        eq(f"GET {path} ({body[:200]!r})", (status, kind), (200, "application/json"))
        return json.loads(body)

    def refused(self, path, status, *words):
        got, kind, body = self.ask(path)
        eq(f"GET {path} ({body[:200]!r})", (got, kind), (status, "application/json"))
        for word in words:
            true(f"{word!r} is not in {body!r}", re.search(word, json.loads(body)["error"]))

    def tcp(self, path):
        return self.ask(path, http.client.HTTPConnection("127.0.0.1", self.port))

    def curl(self, path, uid, group=True):
        """As that user, in the socket's group or not: (status, 0 where there is no connection; document)."""
        client = subprocess.Popen(
            [
                "curl",
                "-s",
                "-w",
                "\n%{http_code}",
                "--max-time",
                "30",
                "--unix-socket",
                self.sock,
                f"http://ttmond{path}",
            ],
            stdout=subprocess.PIPE,
            user=uid,
            group=uid,
            extra_groups=[self.group] if group else [],
        )
        self.client = client.pid
        body, _, code = client.communicate()[0].rpartition(b"\n")
        return int(code), (json.loads(body) if body.strip() else None)

    def all(self, query):
        """All pages of a list, and how many there were."""
        rows, cursor, pages = [], "0", 0
        while cursor is not None:
            doc = self.get(f"/v1/allocations?{query}&cursor={cursor}")
            rows += doc["allocations"]
            cursor, pages = doc["next"], pages + 1
        return rows, pages

    def status(self):
        return self.get("/v1/status")

    def nothing_lost(self):
        """Once all is quiet."""
        end = time.monotonic() + 10 * PATIENCE
        while True:
            status = self.status()
            if status["identity"]["ok"] and not status["identity"]["in_flight"] or time.monotonic() > end:
                break
            time.sleep(0.1)
        eq("lost", {k: n for k, n in status["events"]["lost"].items() if n}, {})
        eq("identity", status["identity"]["why"], "")
        # Under emulation a drain may take longer than the window is.
        true(f"{status['events']['late']} events of the past", SLOW > 1 or not status["events"]["late"])
        return status


# Where it matters that nothing is lost the service traces the targets alone: what other programs of
# this host do is not ours.
def pinner(bench, steady, mode="still", user=None):
    lib = standin("lib") if user is None else bench.for_everybody(standin("lib"))
    args = [sys.executable, "-c", PROGRAM, os.path.join(lib, "libcudart.so.13"), str(steady), mode]
    if user:
        args = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", *args]
    return bench.target(*args)


def settled(service, pid, count, method="host_alloc"):
    """Wait until so many live allocations of that process are there and their call sites known."""
    end = time.monotonic() + 20 * PATIENCE
    while time.monotonic() < end:
        rows = service.get(f"/v1/allocations?pid={pid}&live=1&limit=0&method={method}")["allocations"]
        if len(rows) == count and not any(r["id"].startswith("0" * 16) for r in rows):
            return rows
        time.sleep(0.1)
    raise AssertionError(f"{len(rows)} allocations, not {count}")


def ledger(bench, *args):
    """A ledger that has done its work and waits: (target, its book)."""
    target = bench.target(standin("ledger"), "--out", bench.path("book.json"), "--wait", *args)
    return target


def done(bench, service, target):
    target.go()
    eq("last line", target.line(60), "done\n")
    with open(bench.path("book.json"), encoding="utf-8") as f:
        book = json.load(f)
    service.nothing_lost()
    time.sleep(0.5)
    return book


@fast
@timeout(90)
def test_database_and_list(bench):
    """
    /v1/db is the database, exactly by the ledger's book; /v1/allocations says of each allocation
    what is in there.
    """
    target = ledger(bench, "--calls", "30000")
    service = Service(bench, "--pid", str(target.pid))
    book = done(bench, service, target)
    db = service.get("/v1/db")
    diffs = compare(book, db, False)
    true(f"{len(diffs)} differences, the first: {diffs[:1]}", not diffs)
    with open(bench.path("db.json"), "w", encoding="utf-8") as f:
        json.dump(db, f)
    checked = subprocess.run([TTMON, "db", "check", bench.path("db.json")], capture_output=True, text=True, check=False)
    eq(f"ttmon db check: {checked.stdout}{checked.stderr}", checked.returncode, 0)
    status, kind, body = service.ask("/v1/db?gz=1")
    eq("compressed", (status, kind), (200, "application/gzip"))
    # Later by a moment, else the same.
    zipped = json.loads(gzip.decompress(body))
    eq("allocations", zipped["allocations"], db["allocations"])

    known = {a["id"]: a for a in db["allocations"]}
    procs = {p["index"]: p for p in db["processes"]}
    for query, kept in (
        ("limit=0", known),
        ("limit=0&live=1", {i: a for i, a in known.items() if a["end"] == "live"}),
        ("limit=0&live=0", {i: a for i, a in known.items() if a["end"] != "live"}),
        ("limit=0&method=pool", {i: a for i, a in known.items() if a["method"] == "pool"}),
    ):
        doc = service.get(f"/v1/allocations?pid={target.pid}&{query}")
        eq(f"{query}: next", doc["next"], None)
        rows = {r["id"]: r for r in doc["allocations"]}
        eq(
            f"{query}: ids",
            (len(doc["allocations"]), sorted(rows)),
            (len(rows), sorted(i for i in kept if kept[i]["pid"] == target.pid)),
        )
        for ident, row in rows.items():
            for name, value in known[ident].items():
                if name not in ("heat", "page_heat", "events", "events_dropped"):
                    eq(f"{ident}: {name}", row[name], value)
            eq(f"{ident}: comm", row["comm"], procs[row["process"]]["comm"])
    true(
        "an allocation of the ledger has no call site",
        any(r["call_site"] and "+0x" in r["call_site"] for r in rows.values()),
    )
    target.go()
    target.finish()


@timeout(90)
def test_one_allocation(bench):
    """By its id and by its place: what the list says, its call site, heat and last events."""
    target = ledger(bench, "--calls", "30000")
    service = Service(bench, "--pid", str(target.pid))
    done(bench, service, target)
    db = service.get("/v1/db")
    moved = sorted((a for a in db["allocations"] if a["pid"] == target.pid), key=lambda a: len(a["events"]))
    listed = {r["id"]: r for r in service.get(f"/v1/allocations?limit=0&pid={target.pid}")["allocations"]}
    for wanted in (moved[-1], moved[-2], moved[0], next(a for a in moved if a["site"])):
        ident = wanted["id"]
        one = service.get("/v1/allocations/" + urllib.parse.quote(ident, safe=""))
        for name, value in listed[ident].items():
            eq(f"{ident}: {name}", one[name], value)
        for name in ("heat", "page_heat"):
            eq(f"{ident}: {name}", one.get(name), wanted.get(name))
        eq(f"{ident}: events", one["events"], wanted["events"][-1000:])
        eq(f"{ident}: events kept", one["events_kept"], len(wanted["events"]))
        frames = db["sites"][wanted["site"]]["frames"]
        paths = {o["id"]: o["path"] for o in db["objects"]}
        eq(
            f"{ident}: frames",
            [[f["object"], f["offset"], f["function"]] for f in one["frames"]],
            [[paths.get(f[0]), f[1], f[2]] for f in frames],
        )
        again = service.get(f"/v1/allocations/{one['seq']}")
        eq("by its place", (again["id"], again["events"]), (ident, one["events"]))
    true("no allocation has more than 1000 events", len(moved[-1]["events"]) > 1000)
    for ident in ("0123456789abcdef:1:0@0", "18446744073709551615", "999999999", "0123456789abcdef:1:0@0%23999999999"):
        service.refused(f"/v1/allocations/{ident}", 404, "no such allocation")
    for ident in (
        "x",
        "-1",
        "0123:1:0@0",
        "0123456789abcdeg:1:0@0",
        "0123456789abcdef:1:0",
        "0123456789abcdef:1:0@0%23",
        "99999999999999999999",
    ):
        service.refused(f"/v1/allocations/{ident}", 400, "no id")
    target.go()
    target.finish()


@timeout(90)
def test_heat_spots_advice(bench):
    target = ledger(bench, "--calls", "30000")
    service = Service(bench, "--pid", str(target.pid))
    done(bench, service, target)
    db = service.get("/v1/db")
    known = {a["id"]: a for a in db["allocations"]}
    sums = {i: sum(a["heat"]["bytes"]) for i, a in known.items() if "heat" in a}

    heat = service.get("/v1/heat?n=5")
    eq("the hottest", [a["moved"] for a in heat["allocations"]], sorted(sums.values(), reverse=True)[:5])
    for a in heat["allocations"]:
        wanted = known[a["id"]]["heat"]
        eq(f"heat of {a['id']}", {k: a[k] for k in wanted}, wanted)
    hottest = heat["allocations"][0]
    one = service.get("/v1/heat?by=allocation&id=" + urllib.parse.quote(hottest["id"], safe=""))["allocations"]
    eq("by id", [(a["id"], a["bytes"]) for a in one], [(hottest["id"], hottest["bytes"])])
    # All of it was moved in the last hour and nothing in the last ms; half an hour is a part or all.
    eq("of the last hour", service.get("/v1/heat?n=5&last=3600000")["allocations"][0]["moved"], hottest["moved"])
    eq("of the last ms", service.get("/v1/heat?last=1")["allocations"], [])

    paged = next(a for a in known.values() if "page_heat" in a)
    page = service.get("/v1/heat?by=page&id=" + urllib.parse.quote(paged["id"], safe=""))["allocations"][0]
    counts = paged["page_heat"]["copies"]
    eq("page heat", (page["group_bytes"], page["copies"][: len(counts)]), (paged["page_heat"]["group_bytes"], counts))
    eq("groups", len(page["copies"]), -(-paged["size"] // page["group_bytes"]))
    eq("none behind", sum(page["copies"][len(counts) :]), 0)

    rows = [json.loads(line) for line in service.ask("/v1/advice")[2].splitlines()]
    eq("lines of advice", len(rows), len(db["advice"]))
    for got, wanted in zip(rows, db["advice"]):
        # Of what lives the age goes on, and confidence with it.
        same = [k for k in wanted if k not in ("age_ns", "confidence")]
        eq("advice", {k: got[k] for k in same}, {k: wanted[k] for k in same})
        eq("of whom", (got["pid"], got["comm"]), (target.pid, "ledger"))
    hot = service.get("/v1/hotspots?n=1000")["spots"]
    true("no hotspots", hot)
    eq(
        "hotspots are unpinned memory, most moved first, both ways",
        [s["copied"] + s["copied_back"] for s in hot],
        sorted(
            (
                s["copied"] + s["copied_back"]
                for s in rows
                if s["method"] in ("mmap", "custom") and s["copies"] + s["copies_back"]
            ),
            reverse=True,
        ),
    )
    eq("as many as wanted", len(service.get("/v1/hotspots?n=1")["spots"]), 1)
    cold = service.get("/v1/coldspots?n=1000")["spots"]
    in_place = "a kernel may read it in place"
    eq(
        "coldspots are what need not be pinned, but for kernels",
        sorted(s["allocation"] for s in cold),
        sorted(
            s["allocation"]
            for s in rows
            if s["advice"] == "unpin" or (s["reason"] == in_place and s["gain_ns"] is None)
        ),
    )
    for path, word in (
        ("/v1/heat?by=x", "by="),
        ("/v1/heat?by=page", "id="),
        ("/v1/heat?by=page&id=1&last=5", "last="),
        ("/v1/heat?id=x", "no id"),
        ("/v1/heat?last=0", "last="),
        ("/v1/heat?n=1001", "n="),
        ("/v1/hotspots?n=0", "n="),
        ("/v1/coldspots?n=", "n="),
        ("/v1/coldspots?n=1e3", "n="),
        ("/v1/db?gz=2", "gz="),
        ("/v1/slots?last=-1", "last="),
        ("/v1/allocations?limit=x", "limit="),
        ("/v1/allocations?cursor=-1", "cursor="),
        ("/v1/allocations?pid=0", "pid="),
        ("/v1/allocations?pid=4294967296", "pid="),
        ("/v1/allocations?live=2", "live="),
        ("/v1/allocations?method=malloc", "method="),
    ):
        service.refused(path, 400, word)
    service.refused("/v1/heat?id=999999999", 404, "no such allocation")
    target.go()
    target.finish()


@timeout(60)
def test_slots(bench):
    """The last slots are those of the segment, one after the other."""
    service = Service(bench, "--cpu", "on")
    time.sleep(0.5)
    doc = service.get("/v1/slots?last=50")
    eq("slots", len(doc["slots"]) + doc["missed"], 50)
    numbers = [s["slot"] for s in doc["slots"]]
    eq("in order", numbers, list(range(numbers[0], numbers[0] + len(numbers))))
    for s in doc["slots"]:
        eq(
            f"slot {s['slot']} adds up",
            s["user_ns"] + s["kernel_ns"] + s["idle_ns"] + s["missing_ns"],
            s["cpus"] * 1_000_000,
        )
        eq(
            f"rows of slot {s['slot']}",
            sum(r["cpu_ns"] for r in s["rows"]),
            s["user_ns"] + s["kernel_ns"] + s["idle_ns"],
        )
        eq("hidden from root", s["hidden"], 0)
    eq("without a number", len(service.get("/v1/slots")["slots"]), 16)
    doc = service.get("/v1/slots?last=100000")
    eq("no more than are kept", len(doc["slots"]) + doc["missed"], 128)
    service.daemon.stop()
    service = Service(bench, "--shm-slots", "0")
    service.refused("/v1/slots", 404, "--shm-slots")


def pids(rows):
    return {r["pid"] for r in rows if r["pid"] is not None}


@timeout(90)
def test_who_sees_what(bench):
    """Everybody in the group sees their own processes, root all, others nothing; TCP has none of it."""
    targets = {user: pinner(bench, 30, user=user) for user in (ALICE, BOB, None)}
    service = Service(bench, "--cpu", "on")
    for target in targets.values():
        target.go()
        target.line()
    for target in targets.values():
        settled(service, target.pid, 30)
    time.sleep(0.3)
    all_pids = {t.pid for t in targets.values()}
    eq("root sees all", pids(service.get("/v1/allocations?limit=0")["allocations"]) & all_pids, all_pids)
    eq("root sees all", pids(service.get("/v1/processes")["processes"]) & all_pids, all_pids)
    for user in (ALICE, BOB):
        mine = targets[user].pid
        other = next(
            r for r in service.get("/v1/allocations?limit=0&method=host_alloc")["allocations"] if r["pid"] != mine
        )
        own = next(
            r for r in service.get("/v1/allocations?limit=0&method=host_alloc")["allocations"] if r["pid"] == mine
        )
        status, doc = service.curl("/v1/allocations?limit=0", user)
        eq("allocations", (status, pids(doc["allocations"])), (200, {mine}))
        eq("those of another", len(service.curl(f"/v1/allocations?pid={other['pid']}", user)[1]["allocations"]), 0)
        status, doc = service.curl("/v1/processes", user)
        # The client is one of them too.
        shown = {p["pid"] for p in doc["processes"] if p["class"] in ("user", "kernel")}
        eq("processes", (status, shown - {service.client}), (200, {mine}))
        true("what is left out is counted", doc["hidden"] > 2)
        eq("one's own", service.curl(f"/v1/allocations/{own['seq']}", user)[0], 200)
        eq("another's by its place", service.curl(f"/v1/allocations/{other['seq']}", user)[0], 404)
        eq(
            "another's by its id",
            service.curl("/v1/allocations/" + urllib.parse.quote(other["id"], safe=""), user)[0],
            404,
        )
        eq("another's heat", service.curl(f"/v1/heat?id={other['seq']}", user)[0], 404)
        status, doc = service.curl("/v1/coldspots", user)
        eq("coldspots", (status, pids(doc["spots"])), (200, {mine}))
        eq("hotspots", service.curl("/v1/hotspots", user)[1]["spots"], [])
        eq("heat", service.curl("/v1/heat", user)[1]["allocations"], [])
        eq("the database", service.curl("/v1/db", user)[0], 403)
        eq("the timeline", service.curl("/v1/trace", user)[0], 403)
        eq("devices", service.curl("/v1/devices", user)[0], 200)
        status, doc = service.curl("/v1/slots?last=100", user)
        rows = {r["pid"] for s in doc["slots"] for r in s["rows"] if r["class"] in ("user", "kernel")}
        true(f"rows of others: {rows}", status == 200 and rows <= {mine, service.client})
    # In no group that the socket is of: the file itself keeps them out.
    eq("an outsider", service.curl("/v1/status", ALICE, group=False)[0], 0)
    for path in (
        "/v1/allocations",
        f"/v1/allocations/{own['seq']}",
        "/v1/heat",
        "/v1/hotspots",
        "/v1/coldspots",
        "/v1/advice",
        "/v1/slots",
        "/v1/db",
        "/v1/trace",
        "/v1/processes",
        "/v1/devices",
    ):
        eq(f"{path} by TCP", service.tcp(path)[0], 403)
    eq("aggregates by TCP", service.tcp("/v1/status")[0], 200)
    for target in targets.values():
        target.go()
        target.finish()
    # One that has ended is nobody's any more in the list of processes, and its allocations stay its user's.
    time.sleep(0.3)
    eq(
        "ended",
        [
            p
            for p in service.curl("/v1/processes", ALICE)[1]["processes"]
            if p["class"] == "user" and p["pid"] == targets[ALICE].pid
        ],
        [],
    )
    eq("ended", pids(service.curl("/v1/allocations?limit=0", ALICE)[1]["allocations"]), {targets[ALICE].pid})


@timeout(60)
def test_devices_of_a_user(bench):
    """Of the processes that hold memory of a Tenstorrent chip everybody sees their own."""
    ledger_ = ["--chips", "2", "--ops", "2000", "--quiet", "2", "--wait"]
    copy = bench.for_everybody(standin("ttledger"), standin("tt/e2b"))
    env = {"LD_LIBRARY_PATH": os.path.join(os.path.dirname(copy), "tt/e2b")}
    as_alice = ["setpriv", "--reuid", str(ALICE), "--regid", str(ALICE), "--clear-groups"]
    targets = {
        ALICE: bench.target(*as_alice, copy, *ledger_, env=env),
        None: bench.target(standin("ttledger"), *ledger_, env=tt_env("e2b")),
    }
    service = Service(bench)
    time.sleep(0.5)
    for target in targets.values():
        target.go()
    wanted = {t.pid for t in targets.values()}
    retry(10, lambda: eq("root", {p["tgid"] for p in service.get("/v1/devices")["processes"]} & wanted, wanted))
    # Listed because it has mapped the library; whose it is shows when it does something.
    retry(
        10,
        lambda: eq(
            "alice", {p["tgid"] for p in service.curl("/v1/devices", ALICE)[1]["processes"]}, {targets[ALICE].pid}
        ),
    )
    eq("bob", service.curl("/v1/devices", BOB)[1]["processes"], [])


@timeout(60)
def test_advice_of_a_user(bench):
    """Lines of advice are for who they are about."""
    targets = {user: pinner(bench, 3, user=user) for user in (ALICE, None)}
    service = Service(bench)
    for target in targets.values():
        target.go()
        target.line()
        settled(service, target.pid, 3)
    done_ = subprocess.run(
        ["curl", "-s", "--unix-socket", service.sock, "http://ttmond/v1/advice"],
        capture_output=True,
        check=True,
        user=ALICE,
        group=ALICE,
        extra_groups=[service.group],
    )
    eq("pids", pids(json.loads(line) for line in done_.stdout.splitlines()), {targets[ALICE].pid})
    everybody = pids(json.loads(line) for line in service.ask("/v1/advice")[2].splitlines())
    eq("root", everybody & {t.pid for t in targets.values()}, {t.pid for t in targets.values()})
    for target in targets.values():
        target.go()
        target.finish()


@timeout(90)
def test_walk_while_things_change(bench):
    """A walk by cursor while allocations come and go: each that lives all the while once, none twice."""
    target = pinner(bench, 2000, "churn")
    service = Service(bench, "--pid", str(target.pid))
    target.go()
    steady = json.loads(target.line())
    time.sleep(0.5)
    eq("one", len(service.get(f"/v1/allocations?pid={target.pid}&limit=1")["allocations"]), 1)
    for limit in (37, 400):
        rows, pages = service.all(f"pid={target.pid}&live=1&method=host_alloc&limit={limit}")
        addrs = [r["addr"] for r in rows if r["size"] == 4096]
        eq("the steady ones, each once", sorted(addrs), sorted(hex(a) for a in steady))
        order = [r["seq"] for r in rows]
        eq("in their order, none twice", order, sorted(set(order)))
        true(f"{pages} pages of {limit}", pages >= 2000 // limit)
    target.go()
    turns = int(target.line())
    true(f"{turns} allocations came and went", turns > 500)
    service.nothing_lost()
    target.finish()


class Watch(threading.Thread):
    """The largest private memory of a process while this runs, KiB."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.over = pid, 0, False
        self.first = self.read()
        self.start()

    def read(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))

    def run(self):
        while not self.over:
            self.peak = max(self.peak, self.read())
            time.sleep(0.005)

    def stop(self):
        self.over = True
        self.join()
        return self.peak - self.first


@timeout(120)
def test_hundred_thousand_while_events_flow(bench):
    """100,000 live allocations are listed while a ledger runs: all of them, in bounded memory, and no event is lost."""
    count = int(100_000 / SLOW)
    many = pinner(bench, count)
    busy = bench.target(
        standin("ledger"),
        "--out",
        bench.path("book.json"),
        "--wait",
        "--threads",
        "2",
        "--calls",
        str(int(400_000 / SLOW)),
    )
    service = Service(bench, "--pid", str(many.pid), "--pid", str(busy.pid))
    many.go()
    steady = json.loads(many.line(60))
    settled(service, many.pid, count)
    busy.go()
    lists = 0
    watch = Watch(service.pid)
    end = time.monotonic() + 60 * PATIENCE
    out = b""
    while b"done" not in out and time.monotonic() < end:
        rows = service.get(f"/v1/allocations?pid={many.pid}&live=1&limit=0&method=host_alloc")["allocations"]
        eq("allocations listed", len(rows), count)
        lists += 1
        os.set_blocking(busy.proc.stdout.fileno(), False)
        out = busy.proc.stdout.read() or b""
    grown = watch.stop()
    true("the ledger did not end", b"done" in out)
    eq("addresses", sorted(int(r["addr"], 16) for r in rows), sorted(steady))
    true(f"{lists} lists", lists >= 1)
    # What the ledger itself makes is kept too: some ten bytes an event, a hundred an allocation.
    status = service.nothing_lost()
    with open(bench.path("book.json"), encoding="utf-8") as f:
        book = json.load(f)
    kept = len(book["allocations"]) * 1200 + status["events"]["decoded"] * 24
    true(
        f"memory grew by {grown} KiB while {lists} lists were made, {kept // 1024} KiB of it kept",
        grown * 1024 < kept + (16 << 20),
    )
    os.set_blocking(busy.proc.stdout.fileno(), True)
    # A service folds what ended long ago; sums of the process are exact all the same.
    proc = process(service.get("/v1/db"), busy.pid)
    eq(
        "allocs, frees, pins",
        [proc[k] for k in ("allocs", "frees", "pins")],
        [book[k] for k in ("allocs", "frees", "pins")],
    )
    same_transfers(proc, book)
    for target in (busy, many):
        target.go()
        target.finish()


@timeout(60)
def test_a_reader_that_stops(bench):
    """Who asks for a long list and does not read it costs little memory, and nobody waits."""
    target = pinner(bench, 20_000)
    service = Service(bench, "--pid", str(target.pid))
    target.go()
    target.line()
    settled(service, target.pid, 20_000)
    watch = Watch(service.pid)
    stuck = []
    for _ in range(30):
        s = socket.socket(socket.AF_UNIX)
        s.connect(service.sock)
        s.sendall(b"GET /v1/allocations?limit=0 HTTP/1.1\r\nHost: x\r\n\r\n")
        stuck.append(s)
    time.sleep(0.5)
    before = time.monotonic()
    eq(
        "the list",
        len(service.get(f"/v1/allocations?pid={target.pid}&method=host_alloc&limit=0")["allocations"]),
        20_000,
    )
    took = time.monotonic() - before
    grown = watch.stop()
    true(f"{took:.1f} s for the others", took < 10 * SLOW)
    true(f"memory grew by {grown} KiB for 30 readers", grown < 30 * 512)
    for s in stuck:
        s.close()
    eq("and after", service.ask("/healthz")[0], 200)
    service.nothing_lost()
    target.go()
    target.finish()


@timeout(60)
def test_many_documents_at_once(bench):
    """
    Documents that take a while stand in line, a bounded one; a user other than root has one at a
    time; nothing stays of them.
    """
    target = ledger(bench, "--calls", "60000")
    service = Service(bench, "--pid", str(target.pid), env={"STATE_DIRECTORY": bench.dir})
    done(bench, service, target)
    results, before = [], len(os.listdir(f"/proc/{service.pid}/fd"))

    def fetch():
        results.append(service.ask("/v1/db")[0])

    threads = [threading.Thread(target=fetch) for _ in range(40)]
    for t in threads:
        t.start()
    eq("meanwhile", service.ask("/healthz")[0], 200)
    for t in threads:
        t.join()
    eq("statuses", set(results) - {200, 503}, set())
    true(f"{results.count(200)} of 40 came", results.count(200) >= 16)
    eq("and after", service.ask("/v1/db")[0], 200)
    for _ in range(20):
        service.refused("/v1/allocations/999999999", 404, "no such allocation")
    fds = os.listdir(f"/proc/{service.pid}/fd")
    true(f"{len(fds)} files are open", len(fds) < before + 10)

    # While others are before it in the line, a second one of the same user is refused.
    threads = [threading.Thread(target=fetch) for _ in range(12)]
    for t in threads:
        t.start()
    time.sleep(0.05)
    clients = [
        subprocess.Popen(
            [
                "curl",
                "-s",
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
                "--unix-socket",
                service.sock,
                "http://ttmond/v1/hotspots",
            ],
            stdout=subprocess.PIPE,
            user=ALICE,
            group=ALICE,
            extra_groups=[service.group],
        )
        for _ in range(2)
    ]
    eq("two of one user", sorted(c.communicate()[0] for c in clients), [b"200", b"503"])
    for t in threads:
        t.join()
    children = subprocess.run(
        ["ps", "--no-headers", "--ppid", str(service.pid)], capture_output=True, text=True, check=False
    )
    eq("children left", children.stdout, "")
    left = [f for f in os.listdir(bench.dir) if "ttmond-api" in f or ("db" in f and not f.endswith(".out"))]
    eq("files left", left, [])
    target.go()
    target.finish()


@timeout(60)
def test_end_while_documents_are_made(bench):
    """The service ends at once, and its children with it."""
    target = ledger(bench, "--calls", "60000")
    service = Service(bench, "--pid", str(target.pid))
    done(bench, service, target)

    def fetch():
        with contextlib.suppress(OSError, http.client.HTTPException):
            service.ask("/v1/db")

    for _ in range(8):
        threading.Thread(target=fetch, daemon=True).start()
    time.sleep(0.02)
    before = time.monotonic()
    service.daemon.stop(signal.SIGTERM)
    true(f"it took {time.monotonic() - before:.1f} s to end", time.monotonic() - before < 10 * PATIENCE)
    left = [p for p in os.listdir("/proc") if p.isdigit() and parent(p) == service.pid]
    eq("children left", left, [])
    target.go()
    target.finish()


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return int(f.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


@timeout(60)
def test_full_disk(bench):
    """No room for the database: an answer that says so, and the service goes on."""
    small = bench.path("small")
    os.mkdir(small)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "ttmon-test", small], check=True)
    try:
        target = ledger(bench, "--calls", "30000")
        service = Service(bench, "--pid", str(target.pid), env={"STATE_DIRECTORY": small})
        done(bench, service, target)
        service.refused("/v1/db", 507, "No space left")
        eq("compressed it has none either", service.ask("/v1/db?gz=1")[0], 507)
        eq("what is small", service.ask("/v1/hotspots")[0], 200)
        service.daemon.stop()
        target.go()
        target.finish()
    finally:
        subprocess.run(["umount", "-l", small], check=True)
