# SPDX-License-Identifier: GPL-2.0-only
"""
One user's flood costs that user: records, call sites, probes, requests over TCP. A program of
another user beside it is seen whole.
"""
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

import e2e
from e2e import PATIENCE, allocations, eq, free_port, pair, process, standin, timeout, true
from t_family import Service
from tt_host import Unix

# Nobody else's: tests beside these have processes of ordinary users too.
EVIL, VICTIM = (str(20000 + 2 * (os.getpid() % 20000) + i) for i in range(2))


class Healthz(threading.Thread):
    """The longest time that /healthz took, asked again and again."""

    def __init__(self, sock):
        super().__init__(daemon=True)
        self.sock, self.worst, self.asked, self.over = sock, 0.0, 0, False
        self.start()

    def run(self):
        while not self.over:
            began = time.monotonic()
            conn = Unix(self.sock)
            conn.request("GET", "/healthz")
            eq("/healthz", conn.getresponse().read(), b"ok\n")
            self.worst = max(self.worst, time.monotonic() - began)
            self.asked += 1
            time.sleep(0.01)

    def end(self):
        self.over = True
        self.join()
        true("/healthz was asked", self.asked)
        return self.worst


def tell(what, healthz, service):
    lost = sum(service.status()["events"]["lost"].values())
    print(
        f"attack: {what}: worst /healthz {healthz.end() * 1000:.0f} ms, lost of an innocent program beside it {lost}",
        file=sys.stderr,
    )
    eq("lost", lost, 0)


def as_user(uid, *cmd):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *cmd]


class Hoard:
    """hoard, by a user."""

    def __init__(self, bench, program, uid, *args):
        self.target = bench.target(*as_user(uid, program, *args), wait_ready=False)
        self.pid, self.bytes = (int(x) for x in self.line().split()[1:3])

    def line(self):
        return self.target.line(600)

    def step(self):
        self.target.go()
        return int(self.line().split()[1])

    def end(self):
        self.target.go()
        self.target.finish()


def begin(bench, *args):
    """A service that traces our children, in which the probes of the hoard's library are there: (it, the program)."""
    service = Service(bench, "-q", *args)
    program = bench.for_everybody(standin("hoard"), standin("lib"))
    first = Hoard(bench, program, VICTIM, "pinned", "1")
    # This copy of the library, not another one that a program of another test has mapped.
    wait_for(
        "the library is not probed",
        lambda: any(
            o["path"].startswith(bench.dir) and any(p["state"] == "attached" for p in o["probes"])
            for o in service.request("GET", "/v1/probes")["objects"]
        ),
    )
    first.step()
    first.end()
    return service, program


def wait_for(what, look):
    end = time.monotonic() + 20 * PATIENCE
    while not (got := look()):
        true(what, time.monotonic() < end)
        time.sleep(0.05)
    return got


def paying(service, what, uid):
    """That user's row, {}: there is none. Programs of other tests may pay too, before they are no targets any more."""
    return next((q for q in service.status()["quotas"] if (q["what"], q["uid"]) == (what, int(uid))), {})


def rss_kib(service):
    with open(f"/proc/{service.daemon.proc.pid}/status", encoding="utf-8") as f:
        return int(re.search(r"^VmRSS:\s*(\d+)", f.read(), re.M)[1])


def pinned(service, pid):
    return process(service.request("GET", "/v1/db"), pid)["pinned_bytes"]


def hoard(bench, n, *args):
    """
    A user holds n allocations, more than there are records. Another's stay what they are, and the
    sums are those of both.
    """
    service, program = begin(bench, *args)
    victim = Hoard(bench, program, VICTIM, "pinned", "100")
    healthz = Healthz(service.sock)
    rss = [rss_kib(service)]
    evil = Hoard(bench, program, EVIL, "pinned", str(n))
    wait_for("its pinned bytes are not what it holds", lambda: pinned(service, evil.pid) == evil.bytes)
    db = service.request("GET", "/v1/db")
    eq("pinned by the victim", process(db, victim.pid)["pinned_bytes"], victim.bytes)
    eq("its records", [a["end"] for a in allocations(db, victim.pid, "host_alloc")], ["live"] * 100)
    true("nothing of the victim is a lower bound", "at_least" not in process(db, victim.pid))
    true("ended records of the other", not [a for a in allocations(db, evil.pid, "host_alloc") if a["end"] != "live"])
    true("what has no record is not said", db["completeness"]["evicted"] and "limit" in db["completeness"]["reasons"])
    eq("who pays", wait_for("nobody has paid", lambda: paying(service, "records", EVIL))["pid"], evil.pid)
    true(f"the victim does: {service.status()['quotas']}", not paying(service, "records", VICTIM))
    wait_for(
        "the log does not name the user",
        lambda: re.search(rf"user {EVIL} has its share .* allocations.*process {evil.pid}", service.daemon.stderr()),
    )
    rss.append(rss_kib(service))
    left = evil.step()
    wait_for(f"{left} bytes left", lambda: pinned(service, evil.pid) == left)
    evil.end()
    wait_for("what was held is over", lambda: pinned(service, evil.pid) == 0)
    eq("pinned by the victim", pinned(service, victim.pid), victim.bytes)
    tell(f"{n} live allocations of one user", healthz, service)
    rss.append(rss_kib(service))
    print(
        f"attack: resident {rss[0]} KiB before, {rss[1]} KiB with {n} allocations, {rss[2]} KiB when they are gone",
        file=sys.stderr,
    )
    victim.step()
    victim.end()
    db = service.request("GET", "/v1/db")
    eq("frees of what nobody allocated", [process(db, one.pid)["unknown_frees"] for one in (evil, victim)], [0, 0])


@e2e.alone("records of other tests' programs are records too")
@timeout(120)
def test_hoard(bench):
    hoard(bench, 3000, "--max-allocations", "1500")


@e2e.long
@timeout(1800)
def test_hoard_of_two_millions(bench):
    hoard(bench, 2000000)


@e2e.long
@timeout(1800)
def test_made_up_call_sites(bench):
    """More call sites than one user may have: those of another that come later have theirs."""
    service, program = begin(bench)
    healthz = Healthz(service.sock)
    # A process has 65,536 stacks at most.
    evils = [Hoard(bench, program, EVIL, "sites", "60000", str(1 + 60000 * i)) for i in range(2)]
    for evil in evils:
        evil.step()
    wait_for("nobody paid", lambda: paying(service, "names", EVIL))
    victim = Hoard(bench, program, VICTIM, "pinned", "10")
    wait_for(
        "the victim's call site",
        lambda: all(a["site"] for a in allocations(service.request("GET", "/v1/db"), victim.pid, "host_alloc")),
    )
    tell("120000 call sites of one user", healthz, service)
    before = rss_kib(service)
    for one in (*evils, victim):
        one.target.proc.kill()
        one.target.proc.wait()
    print(f"attack: resident {before} KiB while they run, {rss_kib(service)} KiB when they have ended", file=sys.stderr)


def probes(bench, files, most):
    """
    Files with functions to probe, of one user: past that user's share they get none, what is done
    with them is told to be unseen.
    """
    service, program = begin(bench, "--max-user-probes", str(most))
    rss = [rss_kib(service)]
    healthz = Healthz(service.sock)
    victim = Hoard(bench, program, VICTIM, "pinned", "10")
    copies = []
    for i in range(files):
        copies.append(bench.path(f"evil{i}"))
        shutil.copytree(bench.path("for-everybody"), copies[-1])
        subprocess.run(["chown", "-R", EVIL, copies[-1]], check=True)
    evil = [
        Hoard(bench, os.path.join(copy, os.path.relpath(program, bench.path("for-everybody"))), EVIL, "pinned", "5")
        for copy in copies
    ]
    wait_for("nobody paid", lambda: paying(service, "probes", EVIL))
    true("the victim does not", not paying(service, "probes", VICTIM))
    objects = service.request("GET", "/v1/probes")["objects"]
    of = [
        sum(p["state"] == "attached" for p in o["probes"]) for o in objects if o["path"].startswith(bench.path("evil"))
    ]
    true(f"probes of that user: {of}", 0 < sum(of) <= most)
    db = service.request("GET", "/v1/db")
    unseen = {g["pid"] for g in db["completeness"]["knowledge"] if g["why"] == "function not probed"}
    true(f"processes whose files got no probes are told to be unseen: {unseen}", unseen & {e.pid for e in evil})
    true("the victim is", victim.pid not in unseen)
    eq("pinned by the victim", process(db, victim.pid)["pinned_bytes"], victim.bytes)
    tell(f"{files} files with many probes of one user", healthz, service)
    rss.append(rss_kib(service))
    for one in evil:
        one.target.proc.kill()
        one.target.proc.wait()
    for copy in copies:
        shutil.rmtree(copy)
    wait_for(
        "probes of files that are gone stay",
        lambda: not [
            o for o in service.request("GET", "/v1/probes")["objects"] if o["path"].startswith(bench.path("evil"))
        ],
    )
    print(
        f"attack: resident {rss[0]} KiB before, {rss[1]} KiB with {sum(of)} probes of that user, "
        f"{rss_kib(service)} KiB when the files are gone",
        file=sys.stderr,
    )
    victim.target.proc.kill()


@timeout(120)
def test_probes(bench):
    probes(bench, 5, 400)


@e2e.long
@timeout(600)
def test_probes_of_69_files(bench):
    probes(bench, 69, 4000)


@e2e.alone("it loads the machine up to the budget")
@timeout(180)
def test_budget(bench):
    """
    A user's copies, of many processes of which none makes most, cost more than the daemon may use:
    that user's are only counted, of processes that begin later too, and the user is named. Of
    another user each copy is seen, and that is known.
    """
    service = Service(bench, "--max-overhead", "2", env=e2e.BUDGET)
    if service.request("GET", "/v1/families")["budget"] is None:
        raise e2e.Skip("no budget in this run")
    pace = bench.for_everybody(standin("pace"), standin("lib"))
    victim = bench.target(*as_user(VICTIM, pace, "100", "600"))
    service.wait_probed(victim)
    # It knows the library now, so that it has no excuse for a copy that it does not see.
    quiet = bench.target(*as_user(VICTIM, pace, "200", "15"))
    healthz = Healthz(service.sock)
    evil = [bench.target(*as_user(EVIL, pace, "25000", "600")) for _ in range(6)]
    service.daemon.wait_line(rf"over budget \(.*\): transfer of user {EVIL}, who makes most of it, is only counted", 60)
    late = bench.target(*as_user(EVIL, pace, "500", "600"))

    def seen(*pids):
        """(copies, whether there may have been more) of each."""
        db = service.request("GET", "/v1/db")
        procs = [process(db, pid) for pid in pids]
        return [(pair(p["transfers"] or {}, "h2d")[0], p.get("at_least", False)) for p in procs]

    wait_for(
        "no copy of a process that began later is told",
        lambda: process(service.request("GET", "/v1/db"), late.pid).get("sampled"),
    )
    true("what is missing of that user is not known", all(least for _, least in seen(late.pid, *(e.pid for e in evil))))
    status = service.status()
    eq("who pays", status["budget"]["users"], [{"uid": int(EVIL), "family": "transfer", "sampled": 64}])
    eq(
        "families that are reduced for all",
        [f["name"] for f in service.families().values() if f["state"] == "counting"],
        [],
    )
    true("the quota names the user", paying(service, "budget", EVIL))
    os.chmod(service.sock, 0o666)
    for uid, told in ((EVIL, [int(EVIL)]), (VICTIM, [])):
        status = subprocess.run(
            as_user(uid, bench.for_everybody(e2e.TTMON), "status", "--json", "--socket", service.sock),
            capture_output=True,
            text=True,
            check=False,
        )
        eq(f"who pays, as user {uid} sees it", [u["uid"] for u in json.loads(status.stdout)["budget"]["users"]], told)
    made = e2e.last_json(quiet.finish())["copies"]
    eq("copies of the innocent", seen(quiet.pid), [(made, False)])
    for one in (*evil, late):
        one.proc.kill()
        one.proc.wait()
    wait_for("it is over, and the user still pays", lambda: not service.status()["budget"]["users"])
    tell(f"{25000 * 6} copies a second of one user", healthz, service)
    victim.proc.kill()


@e2e.alone("it loads the machine up to the budget")
@timeout(120)
def test_budget_of_dispatches(bench):
    """Dispatches of a user cost more than the daemon may use: that user's are only counted, another's are all there."""
    service = Service(bench, "--max-overhead", "1", "--tt-dispatch", "on", env=e2e.BUDGET)
    if service.request("GET", "/v1/families")["budget"] is None:
        raise e2e.Skip("no budget in this run")
    ttrun = bench.for_everybody(standin("ttrun"), standin("tt"))
    libs = os.path.join(os.path.dirname(ttrun), "tt", "e2b")

    def run(uid, n):
        args = ["--pairs", "0", "--programs", "0", "--dispatches", str(n), "--wait"]
        return bench.target(*as_user(uid, "env", f"LD_LIBRARY_PATH={libs}", ttrun, *args))

    quiet = run(VICTIM, 50)
    service.wait_probed()
    healthz = Healthz(service.sock)
    evil = [run(EVIL, 1 << 30) for _ in range(4)]
    for one in evil:
        one.go()
    over = rf"over budget \(.*\): dispatch of user {EVIL}, who makes most of it, is only counted"
    service.daemon.wait_line(over, 60)
    quiet.go()
    made = json.loads(quiet.line(60))["dispatches"]
    status = service.status()
    eq("who pays", [(u["uid"], u["family"]) for u in status["budget"]["users"]], [(int(EVIL), "dispatch")])
    counting = [f["name"] for f in service.families().values() if f["state"] == "counting"]
    eq("families that are reduced for all", counting, [])
    true("the quota names the user", paying(service, "budget", EVIL))
    told = {}
    rows = service.request("GET", "/v1/db")["tenstorrent"]["dispatches"]
    for row in (r for r in rows if r["pid"] == quiet.pid):
        for kind, n in ((k, n) for k, n in row["count"].items() if n):
            name = f"{row['device_kind']} {kind}"
            told[name] = told.get(name, 0) + n
    eq("dispatches of the innocent", told, made)
    for one in (quiet, *evil):
        one.proc.kill()
        one.proc.wait()
    tell("dispatches of one user as fast as they can be", healthz, service)


FLOOD = """
import encodings.idna, os, socket, sys, time
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
port, end, done = int(sys.argv[1]), time.monotonic() + float(sys.argv[3]), 0
socks = []
while time.monotonic() < end:
    while len(socks) < 100:
        try:
            s = socket.create_connection(("127.0.0.1", port), timeout=1)
        except OSError:
            break
        s.settimeout(0.001)
        socks.append(s)
    for s in list(socks):
        try:
            s.send(b"GET /metrics HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n")
            got = s.recv(1 << 20)
            done += got.startswith(b"HTTP/1.1 200")
            if not got:
                raise OSError
        except TimeoutError:
            pass
        except OSError:
            s.close(); socks.remove(s)
print(done)
"""


@timeout(120)
def test_requests(bench):
    """
    A user asks for /metrics over TCP, as often as it can: it has a rate; the others, and what is
    traced, do not feel it.
    """
    port, seconds = free_port(), 3
    service, program = begin(bench, "--listen-address", f"127.0.0.1:{port}")
    victim = Hoard(bench, program, VICTIM, "pinned", "100")
    healthz = Healthz(service.sock)
    began = time.monotonic()
    flood = subprocess.Popen(
        [sys.executable, "-c", FLOOD, str(port), EVIL, str(seconds)], stdout=subprocess.PIPE, text=True
    )
    bench.procs.append(flood)
    pages = 0
    while flood.poll() is None:
        conn = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * PATIENCE)
        conn.request("GET", "/metrics")
        reply = conn.getresponse()
        true("/metrics of another", reply.status == 200 and reply.read())
        pages += 1
        time.sleep(0.2)
    took, answered = time.monotonic() - began, int(flood.stdout.read())
    true(f"{answered} answers in {took:.1f} s", answered <= 60 + 20 * (took + 2))
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * PATIENCE)
    conn.request("GET", "/metrics")
    page = conn.getresponse().read().decode()
    limited = sum(float(x) for x in re.findall(r"^ttmond_http_limited_requests_total\{.*\} (\S+)", page, re.M))
    true("nothing was limited", limited)
    eq("pinned by the victim", pinned(service, victim.pid), victim.bytes)
    tell(f"/metrics over TCP as fast as a user can ({answered} answers, {pages} of another)", healthz, service)
    victim.target.proc.kill()


def raw(port, *lines):
    with socket.create_connection(("127.0.0.1", port), timeout=10 * PATIENCE) as s:
        s.sendall("".join(f"{line}\r\n" for line in lines).encode() + b"\r\n")
        return s.recv(65536).decode()


def test_requests_that_are_two(bench):
    """What another may read in another way than the daemon is refused."""
    port = free_port()
    service = Service(bench, "--listen-address", f"127.0.0.1:{port}")
    for host, status in (
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("[::1]evil", 403),
        ("[::1", 403),
        ("127.0.0.1:evil", 403),
        ("localhost.evil", 403),
    ):
        eq(f"Host: {host}", int(raw(port, "GET /healthz HTTP/1.1", f"Host: {host}").split()[1]), status)
    for more in (
        ("Content-Length: 0", "Content-Length: 40"),
        ("Content-Length: 0", "Transfer-Encoding: chunked"),
        ("Host: evil.example",),
    ):
        reply = raw(port, "GET /healthz HTTP/1.1", "Host: 127.0.0.1", *more)
        eq(f"{more}: {reply[:200]}", int(reply.split()[1]), 400)
        true("and the connection ends", "\nConnection: close" in reply)
    service.daemon.stop()


BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@timeout(60)
def test_names(bench):
    """
    A program whose folder, library and name are made to steer a terminal: nothing that people read
    has those characters.
    """
    nasty = bench.path("ev\x1b[2Jil\u202e\u009b\nttmond: all is well")
    shutil.copytree(standin("lib"), nasty)
    program = os.path.join(nasty, "h\x1b]0;x\x07\u202er")
    shutil.copy(standin("hoard"), program)
    # Its run path is $ORIGIN/lib.
    os.symlink(".", os.path.join(nasty, "lib"))
    service = Service(bench)
    one = bench.target(program, "pinned", "3", wait_ready=False)
    one.line(60)
    service.wait_probed()
    db = bench.path("db.json")
    subprocess.run([e2e.TTMOND, "--dump-db", db, "--socket", service.sock], check=True, capture_output=True)
    for cmd in (
        ["db", "show", db],
        ["probes", "-v", "--socket", service.sock],
        ["status", "--socket", service.sock],
        ["db", "check", db],
    ):
        done = subprocess.run([e2e.TTMON, *cmd], capture_output=True, check=False, timeout=30 * PATIENCE)
        text = (done.stdout + done.stderr).decode(errors="replace")
        true(f"ttmon {cmd[:2]}: {BAD.search(text)}: {text[:500]!r}", not BAD.search(text))
    one.proc.kill()
    service.daemon.stop()
    log = service.daemon.stderr()
    true(f"the log: {BAD.search(log)}: {log!r}", not BAD.search(log))
    true(f"a line of its own: {log!r}", "\nttmond: all is well" not in log)
    with open(db, encoding="utf-8") as f:
        text = f.read()
    true("the database", not BAD.search(text))
    true("and has the name", any("\u202e" in (p["exe"] or "") for p in json.loads(text)["processes"]))
