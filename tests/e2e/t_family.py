# SPDX-License-Identifier: GPL-2.0-only
"""
t_family.py: probe families taken away, counted only and put back while programs run; targets that
come and go; the budget.
"""
import json
import os
import re
import select
import signal
import subprocess
import sys
import time

from compare import DIRS, Comparison
from e2e import BUDGET, PATIENCE, SLOW, TTMON, Skip, alone, eq, last_json, load_db, standin, timeout, true, tt_env
from tt_host import Unix, retry

COPIES = re.compile(r"cudaMemcpy|cudaMemPrefetch|cudaMemAdvise")
# Hints as well, but told by the family alloc: they say something of the allocation.
POINTERS = re.compile(r"cudaHostGetDevicePointer")


class Service:
    """
    A daemon whose socket is asked and told things. alone: it traces our children and nobody else's
    programs, which may run too.
    """

    def __init__(self, bench, *args, cpu="off", env=None, alone=True):
        self.sock = bench.path("sock")
        self.daemon = bench.daemon(
            "--socket",
            self.sock,
            "--listen-address",
            "none",
            "--shm-slots",
            "0",
            "--tt-shm-version",
            "off",
            "--cpu",
            cpu,
            *args,
            env=env,
        )
        if alone:
            self.request("DELETE", "/v1/targets?all")
            self.request("PUT", f"/v1/targets?pid={os.getpid()}")

    def request(self, method, path, status=200):
        conn = Unix(self.sock)
        conn.request(method, path)
        reply = conn.getresponse()
        body = reply.read()
        eq(f"{method} {path} ({body[:300]!r})", reply.status, status)
        return json.loads(body)

    def families(self):
        return {f["name"]: f for f in self.request("GET", "/v1/families")["families"]}

    def put(self, name, state, status=200):
        doc = self.request("PUT", f"/v1/families?name={name}&state={state}", status)
        if status == 200:
            family = {f["name"]: f for f in doc["families"]}[name]
            eq(f"{name} after PUT", (family["state"], family["why"]), (state, "asked for"))
        return doc

    def states(self, program):
        """States of the probes of a BPF program, with how many there are."""
        found = {}
        for o in self.request("GET", "/v1/probes")["objects"]:
            for p in o["probes"]:
                if p["program"] == program:
                    found[p["state"]] = found.get(p["state"], 0) + 1
        return found

    def off(self):
        """States of the probes of a family that is off. Without multi links they stay, and the gate is all there is."""
        return ["attached" if self.status()["uprobes"] == "tracefs" else "off"]

    def wait_probed(self, target=None):
        """
        The runtime that a target has mapped has its probes: calls before that are not seen. Without a target it is
        the one library or program that was mapped last; another one of this host may have probes earlier.
        """

        def is_probed():
            if target is None:
                return "attached" in self.states("cuda_call")
            with open(f"/proc/{target.pid}/maps", encoding="utf-8") as f:
                mine = {line.split(None, 5)[5].strip() for line in f if "/libcudart" in line}
            objects = self.request("GET", "/v1/probes")["objects"]
            return bool(mine) and all(
                any(
                    o["path"] == path and any((p["program"], p["state"]) == (program, "attached") for p in o["probes"])
                    for o in objects
                )
                for path in mine
                for program in ("cuda_call", "cuda_copy")
            )

        end = time.monotonic() + 10 * PATIENCE
        while not is_probed():
            true("nothing is probed", time.monotonic() < end)
            time.sleep(0.01)

    def program(self, name):
        return [p for p in self.request("GET", "/v1/probes")["programs"] if p["name"] == name][0]

    def status(self):
        return self.request("GET", "/v1/status")

    def at_rest(self):
        """The books balance: nothing is in flight after a moment without programs of ours."""
        time.sleep(0.3)
        identity = self.status()["identity"]
        true(identity["why"], identity["ok"])
        return identity


class Without(Comparison):
    """A ledger against a database in which transfers are missing by intent; all else is exact."""

    def completeness(self):
        c = self.db["completeness"]
        self.check("complete", c["complete"], False)
        self.check("identity", c["identity"], True)

    def transfers(self, proc):
        pass

    def pageable(self):
        pass


def no_transfers(books):
    """The ledger as it is seen without copies."""
    books = json.loads(json.dumps(books))
    for a in books["allocations"]:
        for d in DIRS:
            a.pop(d, None)
    books["calls"] = {fn: codes for fn, codes in books["calls"].items() if not COPIES.match(fn)}
    return books


def no_transfers_in(db):
    for a in db["allocations"]:
        a["transfers"] = {}
    for p in db["processes"]:
        p["errors"] = [e for e in p["errors"] if not COPIES.match(e["fn"])]
    return db


def same(books, db, comparison):
    diffs = comparison(books, db, True).run()
    for line in diffs[:15]:
        print(line)
    true(f"{len(diffs)} differences, the first: {diffs[0] if diffs else ''}", not diffs)


def calls(books, pattern):
    return sum(sum(codes.values()) for fn, codes in books["calls"].items() if pattern.match(fn))


class Run:
    """A ledger: started, waited for, ended."""

    def __init__(self, bench, n, program="ledger", env=None):
        self.out = bench.path(f"ledger-{time.monotonic_ns()}.json")
        self.target = bench.target(standin(program), "--calls", str(n), "--out", self.out, "--wait", env=env)
        self.pid = self.target.pid

    def go(self):
        self.target.go()

    def busy(self):
        return not select.select([self.target.proc.stdout], [], [], 0)[0]

    def done(self):
        eq("last line", self.target.line(60), "done\n")
        self.target.go()
        self.target.finish()
        with open(self.out, encoding="utf-8") as f:
            return json.load(f)

    def whole(self):
        self.go()
        return self.done()


@timeout(120)
def test_transfers_counted_off_and_on(bench):
    """Counted exactly; off is off; on again everything is exact; allocations are never affected."""
    counted, off, on = (Run(bench, 20000) for _ in range(3))
    service = Service(bench, "--dump-db", bench.path("db.json"))
    service.put("transfer", "counting")
    eq("probes while counting", list(service.states("cuda_copy")), ["attached"])
    before = service.families()["transfer"]
    books = [counted.whole()]
    after = service.families()["transfer"]
    eq("copies that were counted", after["counted"] - before["counted"], calls(books[0], COPIES))
    eq("of all hits", after["hits"] - before["hits"] - calls(books[0], POINTERS), after["counted"] - before["counted"])
    service.put("transfer", "off")
    for program in ("cuda_copy", "cuda_enqueue"):
        eq(f"probes of {program} while off", list(service.states(program)), service.off())
    true("allocations are not probed", "attached" in service.states("cuda_call"))
    books.append(off.whole())
    eq("hits while off", service.families()["transfer"]["hits"] - calls(books[1], POINTERS), after["hits"])
    service.put("transfer", "on")
    eq("probes that are on again", list(service.states("cuda_copy")), ["attached"])
    books.append(on.whole())
    service.at_rest()
    service.daemon.stop(signal.SIGINT)
    db = load_db(bench.path("db.json"))
    for i, run in enumerate((counted, off)):
        proc = [p for p in db["processes"] if p["pid"] == run.pid][0]
        true(f"transfers of {i} are known: {proc['transfers']}", proc["at_least"] and not proc["transfers"])
        # Of those that nobody could see it is not said that there were none.
        mine = [a for a in db["allocations"] if a["pid"] == run.pid and a["method"] != "mmap"]
        eq(f"allocations of {i} with known transfers", [a["id"] for a in mine if a["transfers"] is not None], [])
        same(no_transfers(books[i]), no_transfers_in(json.loads(json.dumps(db))), Without)
    whole = type("Whole", (Comparison,), {"completeness": Without.completeness})
    same(books[2], db, whole)


@timeout(120)
def test_nested_calls_count_once(bench):
    """The runtime calls the driver: a copy that is only counted counts once as well."""
    run = Run(bench, 20000, env={"STANDIN_NESTED": "1"})
    service = Service(bench, "--dump-db", bench.path("db.json"))
    service.put("transfer", "counting")
    service.put("launch", "counting")
    books = run.whole()
    families = service.families()
    eq("copies", families["transfer"]["counted"], calls(books, COPIES))
    eq("launches", families["launch"]["counted"], books["kernels"])
    service.at_rest()
    service.daemon.stop(signal.SIGINT)
    books = no_transfers(books)
    books["kernels"] = 0
    same(books, no_transfers_in(load_db(bench.path("db.json"))), Without)


@timeout(120)
def test_under_fire(bench):
    """
    Each family changes while eight threads call: allocations stay exact, the books balance, no loss
    but calls cut in the middle.
    """
    run = Run(bench, int(600000 / SLOW))
    service = Service(bench, "--dump-db", bench.path("db.json"))
    run.go()
    for name, states in (("launch", ("counting", "off", "on")), ("transfer", ("counting", "on", "off", "on"))):
        for state in states:
            time.sleep(0.1)
            service.put(name, state)
    true("the ledger has ended too early", run.busy())
    books = run.done()
    identity = service.at_rest()
    lost = service.status()["events"]["lost"]
    eq("losses that are no cut calls", identity["lost"] - lost["unpaired"], 0)
    true(f"{lost['unpaired']} cut calls", lost["unpaired"] <= 8)
    service.daemon.stop(signal.SIGINT)
    db = no_transfers_in(load_db(bench.path("db.json")))
    books = no_transfers(books)
    proc = [p for p in db["processes"] if p["pid"] == run.pid][0]
    true("launches", 0 < proc["launches"] < books["kernels"])
    books["kernels"] = proc["launches"]
    same(books, db, Without)


@timeout(60)
def test_object_that_comes_while_off(bench):
    """A program that starts while a family is off gets no probes of it, and gets them when it is on."""
    service = Service(bench)
    service.put("transfer", "off")
    service.put("launch", "off")
    run = Run(bench, 5000, "ledger_static")
    service.wait_probed()
    eq("copies", list(service.states("cuda_copy")), service.off())
    eq("launches", list(service.states("cuda_launch")), service.off())
    true("no allocation is probed", "attached" in service.states("cuda_call"))
    service.put("transfer", "on")
    service.put("launch", "on")
    eq("copies that are on again", list(service.states("cuda_copy")), ["attached"])
    run.whole()
    true("no copy was seen", service.families()["transfer"]["hits"] > 0)
    true("no launch was seen", service.families()["launch"]["hits"] > 0)
    service.at_rest()


@timeout(60)
def test_allocations_off(bench):
    """Off by hand: nothing of allocations is seen, copies still are; on again new ones are seen."""
    runs = [Run(bench, 3000) for _ in range(2)]
    service = Service(bench, "--dump-db", bench.path("db.json"))
    service.put("alloc", "off")
    eq("probes", list(service.states("cuda_call")), service.off())
    # Another test's program may have been seen before our targets were the only ones.
    before = service.families()["alloc"]["hits"]
    runs[0].whole()
    eq("hits while off", service.families()["alloc"]["hits"], before)
    true("copies are not seen", service.families()["transfer"]["hits"] > 0)
    service.put("alloc", "on")
    books = runs[1].whole()
    service.at_rest()
    service.daemon.stop(signal.SIGINT)
    db = load_db(bench.path("db.json"))
    # Another test's program may have freed what nobody saw it allocate, before our targets were the only ones.
    reasons = [r for r in db["completeness"]["reasons"] if r != "unknown_frees"]
    eq("complete", (db["completeness"]["complete"], reasons), (False, ["reduced", "attached_late"]))
    same(books, db, type("Whole", (Comparison,), {"completeness": lambda self: None}))


@timeout(60)
def test_dispatches(bench):
    """Of tt-metal: dispatches are counted exactly and taken away; buffers off are not seen."""
    env = tt_env("e2b")
    service = Service(bench, "--tt-dispatch", "on")
    args = [standin("ttrun"), "--pairs", "0", "--programs", "0", "--dispatches", "300"]

    def run():
        done = subprocess.run(
            args, env=dict(os.environ, **env), capture_output=True, text=True, check=True, timeout=30 * PATIENCE
        )
        return last_json(done.stdout)

    end = time.monotonic() + 20 * PATIENCE
    # The first ones may have ended before their library was probed.
    while True:
        run()
        on = service.families()["dispatch"]
        if on["hits"]:
            break
        true("nothing was dispatched", time.monotonic() < end)
    service.put("dispatch", "counting")
    book = run()
    counting = service.families()["dispatch"]
    eq("dispatches that were counted", counting["counted"], sum(book["dispatches"].values()))
    service.put("dispatch", "off")
    eq("probes", list(service.states("tt_dispatch")), service.off())
    run()
    eq("hits while off", service.families()["dispatch"]["hits"], counting["hits"])
    before = service.families()["tenstorrent"]["hits"]
    service.put("tenstorrent", "off")
    run()
    eq("buffers while off", service.families()["tenstorrent"]["hits"], before)
    service.put("tenstorrent", "on")
    service.put("dispatch", "on")
    run()
    true("no buffer is seen", service.families()["tenstorrent"]["hits"] > before)
    true("no dispatch is seen", service.families()["dispatch"]["hits"] > counting["hits"])
    service.at_rest()


@timeout(60)
def test_mappings(bench):
    """The system-call tracepoints of a service are loaded, but only attached when they are asked for."""
    run = Run(bench, 3000)
    service = Service(bench)
    eq("at first", service.families()["mmap"]["state"], "off")
    eq("attached", service.program("hm_mmap")["attached"], False)
    service.put("mmap", "counting", 409)
    service.put("mmap", "on")
    eq("attached", service.program("hm_mmap")["attached"], True)
    run.whole()
    hits = service.families()["mmap"]["hits"]
    true("no mapping was seen", hits > 0)
    service.put("mmap", "off")
    eq("attached", service.program("hm_mmap")["attached"], False)
    Run(bench, 3000).whole()
    eq("hits while off", service.families()["mmap"]["hits"], hits)
    service.at_rest()


@alone("it counts the slots of the whole host")
@timeout(90)
def test_cpu_time(bench):
    """While the scheduler's programs do nothing no slot claims to know; when they are back every slot adds up."""
    service = Service(bench, cpu="on")
    load = bench.target(standin("load"), "spin", "30", wait_ready=False)
    time.sleep(1)
    for state in ("counting", "off"):
        service.put("cpu", state)
        time.sleep(0.5)
        first = service.status()
        counted = service.families()["cpu"]["counted"]
        time.sleep(1)
        last = service.status()
        true("no slot closes", last["slots"]["closed"] - first["slots"]["closed"] > 500)
        eq(f"slots with CPU time while {state}", last["cpu"]["slots"] - first["cpu"]["slots"], 0)
        eq("CPUs", last["cpu"]["cpus"], None)
        true("switches are counted wrongly", (service.families()["cpu"]["counted"] > counted) == (state == "counting"))
        service.put("cpu", "on")
        time.sleep(1.5)
        back = service.status()["cpu"]
        true(f"{back['slots'] - last['cpu']['slots']} slots after {state}", back["slots"] - last["cpu"]["slots"] > 500)
        eq("slots that do not add up", (back["slots"] - back["exact"], back["worst_ns"]), (0, 0))
        eq("late", back["late_ns"], 0)
        eq("CPUs that are back", back["cpus"], back["cpus_peak"])
        true(f"mismatch_ns {back['mismatch_ns']}", not back["mismatch_ns"] or back["switches_unseen"])
    load.proc.kill()
    service.at_rest()


def test_refusals(bench):
    """What cannot be is said in one line, with the option that would have helped."""
    service = Service(bench, "--no-mmap", alone=False)
    for name, state, status, words in (
        ("nothing", "on", 400, "no such family"),
        ("transfer", "absent", 400, "on, off or counting"),
        ("alloc", "counting", 409, "counted"),
        ("process", "off", 409, "process"),
        ("mmap", "on", 409, "--no-mmap"),
        ("cpu", "off", 409, "--cpu"),
        ("rmid", "on", 409, "--rmid"),
    ):
        said = service.put(name, state, status)["error"]
        true(f"{words!r} is not in {said!r}", words in said)
    service.request("PUT", "/v1/families?name=transfer", 400)
    service.request("DELETE", "/v1/families?name=transfer&state=on", 400)
    for pid, status, words in (
        ("x", 400, "process id"),
        ("0", 400, "process id"),
        ("-1", 400, "process id"),
        ("4194303", 404, "no process"),
        ("2", 409, "kernel thread"),
        (str(service.daemon.proc.pid), 409, "itself"),
    ):
        said = service.request("PUT", f"/v1/targets?pid={pid}", status)["error"]
        true(f"{words!r} is not in {said!r}", words in said)
    service.request("DELETE", f"/v1/targets?pid={os.getpid()}", 404)
    service.request("PUT", "/v1/targets", 400)
    service.request("PUT", f"/v1/targets?all&pid={os.getpid()}", 400)


@timeout(60)
def test_without_multi_links(bench):
    """Probes stay where taking one away makes the host wait: the gate alone takes a family away."""
    runs = [Run(bench, 3000) for _ in range(3)]
    service = Service(bench, env={"TTMOND_NO_UPROBE_MULTI": "1"})
    service.put("transfer", "counting")
    books = runs[0].whole()
    counting = service.families()
    eq("counted", counting["transfer"]["counted"], calls(books, COPIES))
    service.put("transfer", "off")
    service.put("alloc", "off")
    eq("probes", list(service.states("cuda_copy")), ["attached"])
    runs[1].whole()
    after = service.families()
    for name in ("transfer", "alloc"):
        eq(f"hits of {name} while off", after[name]["hits"], counting[name]["hits"])
    service.put("transfer", "on")
    service.put("alloc", "on")
    runs[2].whole()
    for name in ("transfer", "alloc"):
        true(f"{name} is not on again", service.families()[name]["hits"] > counting[name]["hits"])
    service.at_rest()


@timeout(60)
def test_targets(bench):
    """Processes come and go as targets; with all off only those listed are traced, and with all on everybody is."""
    listed, other, later = (Run(bench, 3000) for _ in range(3))
    service = Service(bench, "--dump-db", bench.path("db.json"), alone=False)
    eq("at first", service.request("GET", "/v1/targets"), {"all": True, "pids": []})
    service.request("DELETE", "/v1/targets?all")
    eq("targets", service.request("PUT", f"/v1/targets?pid={listed.pid}"), {"all": False, "pids": [listed.pid]})
    books = listed.whole()
    other.go()
    eq("last line", other.target.line(60), "done\n")
    service.request("PUT", "/v1/targets?all")
    last = later.whole()
    other.target.go()
    other.target.finish()
    service.at_rest()
    service.daemon.stop(signal.SIGINT)
    db = load_db(bench.path("db.json"))
    for run, book in ((listed, books), (later, last)):
        same(book, db, type("Whole", (Comparison,), {"completeness": lambda self: None}))
    made = [
        a for a in db["allocations"] if a["pid"] == other.pid and a["method"] not in ("mmap", "device", "host_alloc")
    ]
    eq("allocations of the process that nobody asked for", made, [])


@timeout(60)
def test_target_removed(bench):
    """
    A process that is no target any more tells nothing, and goes from the history when it ends; its
    children go with it.
    """
    run = Run(bench, 200000)
    service = Service(bench, alone=False)
    service.request("DELETE", "/v1/targets?all")
    service.request("PUT", f"/v1/targets?pid={run.pid}")
    run.go()
    time.sleep(0.2)
    eq("targets", service.request("DELETE", f"/v1/targets?pid={run.pid}"), {"all": False, "pids": []})
    time.sleep(0.2)
    hits = {n: f["hits"] for n, f in service.families().items() if n in ("alloc", "transfer")}
    true("nothing was seen before", hits["alloc"] > 0)
    true("the ledger has ended too early", run.busy())
    run.done()
    eq("hits after it was removed", {n: service.families()[n]["hits"] for n in hits}, hits)
    end = time.monotonic() + 15 * PATIENCE
    while service.status()["allocations"] and time.monotonic() < end:
        time.sleep(0.2)
    eq("allocations of a process that has ended", service.status()["allocations"], 0)
    service.at_rest()


@timeout(60)
def test_children_follow(bench):
    """The children of a target are targets, not those of a process that is traced because all are."""
    service = Service(bench, alone=False)
    child = subprocess.Popen(["sh", "-c", "sleep 0.3; sleep 20 & wait"])
    bench.procs.append(child)
    true("it is no target", child.pid in service.request("PUT", f"/v1/targets?pid={child.pid}")["pids"])
    time.sleep(0.8)
    pids = service.request("GET", "/v1/targets")["pids"]
    true(f"{pids} with {child.pid}", len(pids) == 2 and child.pid in pids)
    service.request("DELETE", f"/v1/targets?pid={child.pid}")
    eq("targets", service.request("GET", "/v1/targets")["pids"], [])
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@timeout(60)
def test_client(bench):
    """ttmon family and ttmon target."""
    service = Service(bench, alone=False)

    def ttmon(*args, status=0):
        done = subprocess.run(
            [TTMON, *args, "--socket", service.sock], capture_output=True, text=True, check=False, timeout=20 * PATIENCE
        )
        eq(f"ttmon {args}: {done.stderr}", done.returncode, status)
        return done.stdout if not status else done.stderr

    true("no table", re.search(r"^transfer +on ", ttmon("family"), re.M))
    true(
        "it is not counted", re.search(r"^transfer +counting +asked for", ttmon("family", "transfer", "counting"), re.M)
    )
    eq("state", service.families()["transfer"]["state"], "counting")
    eq("families in JSON", len(json.loads(ttmon("family", "--json"))["families"]), len(service.families()))
    true("no reason", "counted only" in ttmon("family", "alloc", "counting", status=1))
    ttmon("family", "alloc", status=2)
    ttmon("family", "all&oc", "on", status=2)
    true("all", "every process" in ttmon("target"))
    true("listed", str(os.getpid()) in ttmon("target", "add", str(os.getpid())))
    true("still listed", str(os.getpid()) not in ttmon("target", "remove", str(os.getpid())))
    true("all off", "no process is traced" in ttmon("target", "all", "off"))
    true("no reason", "no process" in ttmon("target", "add", "4194303", status=1))
    ttmon("target", "all", "of", status=2)


@alone("it loads the machine up to the budget, and waits until it is quiet again")
@timeout(120)
def test_budget(bench):
    """
    Over the budget the calls of the user who costs most are only counted, which is said everywhere;
    when there is room again they come back. Three programs, of which none makes most of it.
    """
    service = Service(bench, "--max-overhead", "2", env=BUDGET)
    if service.request("GET", "/v1/families")["budget"] is None:
        raise Skip("no budget in this run")
    loads = [bench.target(standin("pace"), "60000", "600") for _ in range(3)]
    service.daemon.wait_line(
        r"over budget \(.*% of 2 %\): transfer of user 0, who makes most of it, is only counted", 60
    )
    eq("families that are reduced", [f["name"] for f in service.families().values() if f["state"] == "counting"], [])
    eq("who is", service.status()["budget"]["users"], [{"uid": 0, "family": "transfer", "sampled": 64}])
    said = subprocess.run([TTMON, "status", "-vs", service.sock], capture_output=True, text=True, check=False).stdout
    true(f"status: {said}", "transfer of user 0 is only counted (budget), one in 64 is reported" in said)
    for load in loads:
        load.proc.kill()
    service.daemon.wait_line(r"under budget \(.*% of 2 %\): transfer of user 0 is on again", 60)
    service.at_rest()


@alone("it loads the machine up to the budget")
@timeout(120)
def test_budget_of_one(bench):
    """
    A program that costs the budget alone is named and reduced alone: of another one each copy is
    seen meanwhile. It comes back when it has ended.
    """
    service = Service(bench, "--max-overhead", "2", cpu="on")
    if service.request("GET", "/v1/families")["budget"] is None:
        raise Skip("no budget in this run")
    # The library is known when the two begin.
    pace = bench.for_everybody(standin("pace"), standin("lib"))
    service.wait_probed(bench.target(pace, "1", "600"))
    user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    quiet, load = bench.target(pace, "200", "600"), bench.target(*user, pace, "150000", "600")
    service.daemon.wait_line(
        rf"over budget \(.*% of 2 %\): transfer of process {load.pid} \(pace\), which makes most of it, is only "
        r"counted",
        60,
    )
    eq("families that are reduced", [f["name"] for f in service.families().values() if f["state"] == "counting"], [])
    eq(
        "who is",
        [(p["pid"], p["comm"], p["family"]) for p in service.status()["budget"]["processes"]],
        [(load.pid, "pace", "transfer")],
    )
    said = subprocess.run([TTMON, "status", "-vs", service.sock], capture_output=True, text=True, check=False).stdout
    true(f"status: {said}", f"transfer of process {load.pid} (pace) is only counted (budget)" in said)
    os.chmod(bench.dir, 0o755)
    os.chmod(service.sock, 0o666)
    for path, where in (("/v1/status", "processes"), ("/v1/families", "processes"), ("/v1/status", "users")):
        own = [(load.pid, "pace")] if where == "processes" else []
        for uid, told in ((UID, own), ("1", [])):
            rows = as_nobody(service, f"GET {path}", uid=uid)[0][1]["budget"][where]
            eq(f"{path}: {where}, as user {uid} sees them", [(r["pid"], r["comm"]) for r in rows], told)

    def copies(target):
        page = service.request("GET", f"/v1/processes?pid={target.pid}")["processes"]
        return [(p["copies"], p.get("at_least", False)) for p in page if p["pid"] == target.pid][0]

    (before, known), (was, least) = copies(quiet), copies(load)
    time.sleep(1)
    (after, still), (now, _) = copies(quiet), copies(load)
    true(f"the quiet one: {before}, {after}, at least {known} {still}", after > before and not known and not still)
    true(f"the other one: {was}, {now}, at least {least}", now > was and least)
    load.proc.kill()
    retry(30, lambda: eq("still reduced", service.status()["budget"]["processes"], []))
    quiet.proc.kill()
    service.at_rest()


@alone("it loads the machine up to the budget")
@timeout(120)
def test_sampled(bench):
    """
    Of one that is reduced alone one copy in 64 is told, by chance: the estimate is as near to what
    it made as its error says.
    """
    service = Service(bench, "--max-overhead", "2", "--max-events", "100000", "--dump-db", bench.path("db.json"))
    if service.request("GET", "/v1/families")["budget"] is None:
        raise Skip("no budget in this run")
    service.wait_probed(bench.target(standin("pace"), "1", "600"))
    load = bench.target(standin("pace"), "150000", "18")
    service.daemon.wait_line(
        rf"transfer of process {load.pid} \(pace\), which .* is only counted, but for one copy in 64", 60
    )
    made = last_json(load.finish(0, 60))["copies"]
    service.daemon.stop()
    db = load_db(bench.path("db.json"))
    proc = next(p for p in db["processes"] if p["pid"] == load.pid)
    told, est = proc["transfers"]["h2d"]["pinned"][0], proc["sampled"]["h2d"]
    true(f"told {told} of {made}: {est}", told < 0.9 * made and 0 < est["copies_error"] < 0.1 * made)
    # Where all copies of the host were only counted for a while (others load it too), or some were
    # lost, it is of a lower bound.
    true(
        f"{est} of {made} copies",
        abs(est["copies"] - made) <= 5 * est["copies_error"] or (est["copies"] < made and est.get("at_least")),
    )
    eq(
        "bytes of each",
        (est["bytes"], abs(est["bytes_error"] - 64 * est["copies_error"]) <= 64),
        (64 * est["copies"], True),
    )
    eq("is it said", proc["at_least"], True)
    alloc = next(a for a in db["allocations"] if "sampled" in a)
    eq("its buffer", alloc["sampled"]["h2d"], est)
    show = subprocess.run([TTMON, "db", "show", bench.path("db.json")], capture_output=True, text=True, check=False)
    eq("ttmon db show", (show.returncode, show.stderr), (0, ""))
    shown = show.stdout
    true(f"shown: {shown}", any(x.split()[:2] == ["pace", str(load.pid)] and "~" in x for x in shown.splitlines()))


@alone("it loads the machine up to the budget")
@timeout(60)
def test_budget_leaves_what_was_asked_for(bench):
    service = Service(bench, "--max-overhead", "0.0001", env=BUDGET)
    service.put("transfer", "on")
    service.daemon.wait_line(r"over budget \(.*% of 0.0001 %\)", 30)
    load = Run(bench, 100000000)
    load.go()
    # Long enough for it to decide once more.
    time.sleep(3 if BUDGET else 15)
    eq(
        "what was asked for",
        (service.families()["transfer"]["state"], service.families()["transfer"]["why"]),
        ("on", "asked for"),
    )
    load.target.proc.kill()


ASK = """
import http.client, os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
for line in sys.stdin:
    method, path = line.split()
    path = path.replace("SELF", str(os.getpid()))
    conn = http.client.HTTPConnection("ttmond")
    conn.sock = socket.socket(socket.AF_UNIX)
    conn.sock.connect(sys.argv[1])
    conn.request(method, path)
    reply = conn.getresponse()
    print(reply.status, reply.read().decode().strip(), flush=True)
"""


# Nobody else's: tests beside this one have processes of ordinary users too.
UID = str(20000 + os.getpid() % 40000)


def as_nobody(service, *asks, uid=UID):
    """Replies to each "METHOD PATH" of a user who is not root: (status, body). SELF is the client's own process."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, service.sock, uid],
        input="".join(f"{ask}\n" for ask in asks),
        capture_output=True,
        text=True,
        check=False,
        timeout=30 * PATIENCE,
    )
    replies = [line.split(" ", 1) for line in done.stdout.splitlines()]
    eq(f"replies ({done.stderr[-300:]})", len(replies), len(asks))
    return [(int(status), json.loads(body)) for status, body in replies]


@timeout(60)
def test_rights_of_an_ordinary_user(bench):
    """
    Who is not root changes neither targets nor families, sees targets of its own alone; what root
    changes is in the log with the user.
    """
    service = Service(bench, alone=False)
    roots = subprocess.Popen(["sleep", "60"])
    bench.procs.append(roots)
    os.chmod(bench.dir, 0o755)
    os.chmod(service.sock, 0o666)
    service.request("PUT", f"/v1/targets?pid={roots.pid}")
    before = service.families()
    asks = (
        ("PUT /v1/targets?all", 403),
        ("DELETE /v1/targets?all", 403),
        (f"PUT /v1/targets?pid={roots.pid}", 403),
        (f"DELETE /v1/targets?pid={roots.pid}", 403),
        ("PUT /v1/targets?pid=1", 403),
        ("PUT /v1/targets?pid=SELF", 403),
        ("DELETE /v1/targets?pid=SELF", 403),
        ("DELETE /v1/targets?self", 403),
        ("PUT /v1/families?name=alloc&state=off", 403),
        ("DELETE /v1/families?name=alloc&state=off", 403),
        ("PUT /v1/families?name=cpu&state=counting", 403),
        ("GET /v1/families", 200),
        # It is traced, as all are: a library that asks for that is told so.
        ("PUT /v1/targets?self", 200),
        ("GET /v1/targets", 200),
    )
    replies = as_nobody(service, *(ask for ask, _ in asks))
    for (ask, status), (got, body) in zip(asks, replies):
        eq(f"{ask}: {body}", got, status)
    eq("targets that it sees", replies[-1][1]["pids"], [])
    eq("states", {n: f["state"] for n, f in service.families().items()}, {n: f["state"] for n, f in before.items()})
    eq("as root sees it", service.request("GET", "/v1/targets"), {"all": True, "pids": [roots.pid]})
    service.put("transfer", "off")
    service.put("transfer", "on")
    service.request("DELETE", "/v1/targets?all")
    eq("not traced, and asks", as_nobody(service, "PUT /v1/targets?self")[0][0], 403)
    service.request("DELETE", f"/v1/targets?pid={roots.pid}")
    for line in (
        f"process {roots.pid} is a target, as user 0 asked for",
        "family transfer: off, as user 0 asked for",
        "only targets are traced, as user 0 asked for",
        f"process {roots.pid} is no target any more, as user 0 asked for",
    ):
        true(f"{line!r} is not in the log: {service.daemon.stderr()[-600:]}", line in service.daemon.stderr())


@timeout(60)
def test_probes_that_an_ordinary_user_sees(bench):
    """/v1/probes shows who is not root the objects that processes of that user have mapped, and no others."""
    service = Service(bench, alone=False)
    os.chmod(service.sock, 0o666)
    own = bench.for_everybody(standin("ledger"), standin("lib"))
    roots = Run(bench, 1)
    service.wait_probed()
    eq("objects before it runs anything", as_nobody(service, "GET /v1/probes")[0][1]["objects"], [])
    users = bench.target(
        "setpriv",
        f"--reuid={UID}",
        f"--regid={UID}",
        "--clear-groups",
        own,
        "--calls",
        "1",
        "--out",
        "/dev/null",
        "--wait",
    )
    end = time.monotonic() + 10 * PATIENCE
    while not (seen := as_nobody(service, "GET /v1/probes")[0][1]["objects"]):
        true("it does not see its own", time.monotonic() < end)
    paths = {o["path"] for o in seen}
    true(f"{paths}", all(path.startswith(bench.path("for-everybody")) for path in paths))
    everything = {o["path"] for o in service.request("GET", "/v1/probes")["objects"]}
    true(f"{everything} for root", paths < everything and any(path.startswith(standin("lib")) for path in everything))
    users.proc.kill()
    roots.target.proc.kill()
