# SPDX-License-Identifier: GPL-2.0-only
"""
t_truth.py: nothing unknown is told as known. A workload that keeps its own book
(tests/standin/truth.c) is attached to at every point, and each view of it is held against the book:
a verdict, a kind, a count and "complete" are right or unknown, never wrong. Each test is a row of
the matrix and prints a line: how many cells are right, unknown and wrong. TTMON_TRUTH_ALL=1 prints
all that is wrong and unknown. Under -- CMD and under a service that knows the library nothing is
unknown.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from e2e import BUDGET, OUT, PATIENCE, STANDIN, alone, eq, fast, last_json, load_db, standin, timeout, true
from t_tt import steps
from tt_host import Host, retry, wait_probed
from truth_host import (
    Demo,
    Row,
    Sums,
    Workload,
    advised,
    after,
    figures,
    live,
    put,
    slot_file,
    tt_database,
    tt_line,
    tt_total,
    tt_views,
)

DEMO = os.path.join(OUT, "demo", "workload")
RUNTIME = os.path.join(STANDIN, "lib", "libcudart.so.13")
N = 16
MAKE = ("make", f"copy {N}", f"once {N}")


def say(line):
    """Seen also where the test is passed."""
    print(line, file=sys.stderr)


def old():
    return ["old", "heap"]


def made(lib=RUNTIME):
    return [f"load {lib}", *MAKE]


def merged(work):
    """What is tested is tested: the kernel has made one mapping of the old ones."""
    b = work.book().buffers
    with open(f"/proc/{work.pid}/maps", encoding="ascii") as f:
        ends = [tuple(int(x, 16) for x in line.split()[0].split("-")) for line in f]
    true("the old mappings are not one", any(lo <= b["old_edge0"].addr and b["old_cold"].end <= hi for lo, hi in ends))


class Trace:
    """A daemon with a socket and a database."""

    def __init__(self, bench, *args, cmd=None, wait=True, env=None):
        self.sock, self.db = bench.path("sock"), bench.path("db.json")
        self.daemon = bench.daemon(
            "--socket", self.sock, "--shm-root", bench.dir, "--dump-db", self.db, *args, cmd=cmd, wait=wait, env=env
        )

    def ask(self, method, route):
        return put(self.sock, route, method)


WINDOW = (
    "until the service is told whom to trace it sees the programs of other tests, whose functions have the same names"
)


class Service(Trace):
    """
    For our programs alone: what other tests do is none of its business, and would make it
    incomplete. knows: another program has loaded this library before, and its probes are in; calls
    of that program were missed, and it is not among ours.
    """

    def __init__(self, bench, *args, knows=None, env=None):
        super().__init__(bench, "--slots-out", bench.path("slots"), "--shm-slots", "1024", *args, env=env)
        self.other = Workload(bench, "other").start(ours=False) if knows else None
        if knows:
            self.other.do(f"load {knows}")
            wait_probed(self.sock, self.other.pid)
        self.ask("DELETE", "/v1/targets?all")
        self.ask("PUT", f"/v1/targets?pid={os.getpid()}")


def finish(row, bench, trace, work):
    """The views while it goes on, with all that is hot copied once more and some freed; then those of the end."""
    settle(trace)
    live(row, work.book(), trace.sock)
    on = {f["name"] for f in trace.ask("GET", "/v1/families")["families"] if f["state"] == "on"}
    figures(row, work.book(), trace.sock, on)
    work.do("free", f"copy {N}")
    book = work.book()
    if trace.daemon.proc.args.count("--"):
        work.quit()
        trace.daemon.wait(0)
    elif "--pid" in trace.daemon.proc.args:
        work.quit()
        trace.daemon.wait(0)
    else:
        settle(trace)
        work.quit()
        settle(trace)
        trace.daemon.stop()
    after(row, bench, book, trace.daemon.stderr(), trace.db)
    if os.path.exists(bench.path("slots")):
        slot_file(row, book, bench.path("slots"))
    advised(row, bench, trace.db, RUNTIME, [*MAKE, "late", f"copy {N}"])
    return book


def settle(trace):
    """
    Until all that was done before is in the figures, and call sites are known: everything before the
    watermark has come, slots of that time are closed, and each copied stack is unwound.
    """

    def status():
        return trace.ask("GET", "/v1/status")

    first = status()
    enough = first["slots"]["closed"] + 150

    def come():
        now = status()
        true("not all has come", now["uptime_ns"] - now["window"]["watermark_lag_ns"] > first["uptime_ns"] + 50_000_000)
        true("no slot is closed", now["slots"]["closed"] > enough)
        stacks = now["call_stacks"]
        true(f"stacks are unwound: {stacks}", not stacks or stacks["found"] + stacks["lost"] >= stacks["copied"])

    retry(10, come)


# ---- the rows ----
@fast
@timeout(60)
def test_command(bench):
    """-- CMD: everything is known."""
    row, work = Row("-- CMD", missed=False, none_unknown=True), Workload(bench)
    trace = Trace(bench, cmd=work.args, wait=False)
    work.begun()
    work.do(*old())
    merged(work)
    work.do(*made(), "late", f"copy {N}")
    row.close(finish(row, bench, trace, work), say)


def attached(bench, name, before, then, missed=True, **more):
    row, work = Row(name, missed=missed), Workload(bench).start()
    if before:
        work.do(*before)
    trace = Trace(bench, "--pid", str(work.pid), **more)
    if then:
        work.do(*then)
    row.close(finish(row, bench, trace, work), say)


@timeout(60)
def test_command_replayed(bench):
    """The recording says the same as the run."""
    row, work, recording = Row("-- CMD, replayed", missed=False, none_unknown=True), Workload(bench), bench.path("rec")
    trace = Trace(bench, "--record", recording, cmd=work.args, wait=False)
    work.begun()
    work.do(*old(), *made(), "late", f"copy {N}", "free", f"copy {N}")
    replayed(row, bench, trace, work, recording)


@timeout(60)
def test_pid_mid_run_replayed(bench):
    row, work, recording = Row("--pid mid-run, replayed", missed=True), Workload(bench).start(), bench.path("rec")
    work.do(*old(), *made())
    trace = Trace(bench, "--record", recording, "--pid", str(work.pid))
    work.do("late", f"copy {N}", "free", f"copy {N}")
    replayed(row, bench, trace, work, recording)


def replayed(row, bench, trace, work, recording):
    book = work.book()
    work.quit()
    trace.daemon.wait(0)
    again = bench.daemon("--replay", recording, "--dump-db", bench.path("again.json"), wait=False)
    again.wait(0)
    after(row, bench, book, again.stderr(), bench.path("again.json"))
    row.close(book, say)


@timeout(60)
def test_records_lost(bench):
    """
    Rings that are too small for what goes on in the middle: figures are lower bounds, and no
    verdict rests on what was lost.
    """
    row, work = Row("-- CMD, records lost in the middle", missed=True), Workload(bench)
    trace = Trace(bench, "--ring-size", "4", cmd=work.args, wait=False)
    work.begun()
    work.do(*old(), *made(), "late")
    trace.daemon.proc.send_signal(signal.SIGSTOP)
    work.do(f"copy {N}", f"copy {N}", f"copy {N}")
    trace.daemon.proc.send_signal(signal.SIGCONT)
    work.do(f"copy {N}")
    row.close(finish(row, bench, trace, work), say)


@timeout(60)
def test_pid_at_start(bench):
    """Before the library is loaded."""
    attached(bench, "--pid at start", [], [*old(), *made(), "late", f"copy {N}"], missed=None)


@timeout(60)
def test_pid_before_the_first_call(bench):
    """The library is there, and nothing was made yet."""
    attached(
        bench,
        "--pid before the first call",
        [*old(), f"load {RUNTIME}"],
        ["make", f"copy {N}", f"once {N}", "late", f"copy {N}"],
        missed=None,
    )


@fast
@timeout(60)
def test_pid_mid_run(bench):
    attached(bench, "--pid mid-run", [*old(), *made()], ["late", f"copy {N}"])


@timeout(60)
def test_pid_after(bench):
    """All is made, and hot memory was hot before."""
    attached(bench, "--pid when all is made", [*old(), *made(), "late", f"copy {N}"], [])


@fast
@alone(WINDOW)
@timeout(60)
def test_service_known(bench):
    row, service = Row("service, library known", missed=False, none_unknown=True, others=True), Service(
        bench, knows=RUNTIME
    )
    work = Workload(bench).start()
    work.do(*old(), *made(), "late", f"copy {N}")
    row.close(finish(row, bench, service, work), say)
    service.other.quit()


@alone(WINDOW)
@timeout(60)
def test_service_looks_ahead(bench):
    """
    A library that no program has had mapped, in a folder that the service looks into: it is probed
    when the first one maps it.
    """
    os.mkdir(bench.path("libs"))
    lib = shutil.copy(RUNTIME, bench.path("libs/libcudart.so.13"))
    row, service = Row(
        "service, library found before its first use", missed=False, none_unknown=True, others=True
    ), Service(bench, "--probe-ahead", bench.path("l?bs"))
    work = Workload(bench).start()
    work.do(*old(), *made(lib), "late", f"copy {N}")
    row.close(finish(row, bench, service, work), say)


@alone(WINDOW)
@timeout(60)
def test_service_first_contact(bench):
    """A library that nobody had: it is used at once, and the daemon comes to it when all is made."""
    row, service, lib = (
        Row("service, first contact", missed=True),
        Service(bench),
        shutil.copy(RUNTIME, bench.path("libcudart.so.13")),
    )
    work = Workload(bench).start()
    service.daemon.proc.send_signal(signal.SIGSTOP)
    work.do(*old(), *made(lib))
    service.daemon.proc.send_signal(signal.SIGCONT)
    wait_probed(service.sock, work.pid)
    work.do("late", f"copy {N}")
    row.close(finish(row, bench, service, work), say)


@alone(WINDOW)
@timeout(60)
def test_service_first_contact_at_once(bench):
    """The same as it comes: whatever of it was seen."""
    row, service, lib = (
        Row("service, first contact at once", missed=None),
        Service(bench),
        shutil.copy(RUNTIME, bench.path("libcudart.so.13")),
    )
    work = Workload(bench).start()
    commands = [*old(), *made(lib), "late", f"copy {N}"]
    work.do(*commands)
    wait_probed(service.sock, work.pid)
    row.close(finish(row, bench, service, work), say)


def family(bench, name, state, which="transfer", early=True):
    """With another program's library known, so that nothing but the family is missing."""
    row, service = Row(name, missed=True), Service(bench, knows=RUNTIME)
    work = Workload(bench).start()
    commands = [*old(), *made()]
    if early:
        service.ask("PUT", f"/v1/families?name={which}&state={state}")
    work.do(*commands)
    service.ask("PUT", f"/v1/families?name={which}&state={'on' if early else state}")
    work.do("late", f"copy {N}")
    row.close(finish(row, bench, service, work), say)
    service.other.quit()


@alone(WINDOW)
@timeout(60)
def test_family_counting(bench):
    """Transfers are counted only from the middle on."""
    family(bench, "transfers counted from the middle on", "counting", early=False)


@alone(WINDOW)
@timeout(60)
def test_family_counting_at_first(bench):
    family(bench, "transfers counted at first", "counting")


@alone(WINDOW)
@timeout(60)
def test_family_off(bench):
    family(bench, "transfers off from the middle on", "off", early=False)


@alone(WINDOW)
@timeout(60)
def test_family_off_at_first(bench):
    family(bench, "transfers off at first", "off")


@alone(WINDOW)
@timeout(60)
def test_family_alloc_off_at_first(bench):
    family(bench, "allocations off at first", "off", "alloc")


@alone(WINDOW)
@timeout(120)
def test_budget(bench):
    """Over the budget from the middle on, by three programs of which none makes most of it."""
    row, service = Row("over the budget from the middle on", missed=True), Service(
        bench, "--max-overhead", "2", knows=RUNTIME, env=BUDGET
    )
    work = Workload(bench).start()
    work.do(*old(), *made())
    loads = [bench.target(standin("pace"), "60000", "600") for _ in range(3)]
    service.daemon.wait_line(r"over budget \(.*\): transfer of user 0, who makes most of it, is only counted", 60)
    for load in loads:
        load.proc.kill()
    work.do("late", f"copy {N}")
    row.close(finish(row, bench, service, work), say)
    service.other.quit()


@alone(WINDOW)
@timeout(120)
def test_budget_of_another(bench):
    """Over the budget by another program, which is named and reduced alone: of ours everything is known."""
    row = Row("over the budget, by another program", missed=False, none_unknown=True, others=True)
    service = Service(bench, "--max-overhead", "2", "--cpu", "off", knows=RUNTIME, env=BUDGET)
    work = Workload(bench).start()
    work.do(*old(), *made())
    load = bench.target(standin("pace"), "150000", "600")
    service.daemon.wait_line(
        rf"over budget \(.*\): transfer of process {load.pid} \(pace\), which makes most of it, is only counted", 60
    )
    work.do("late", f"copy {N}")
    row.close(finish(row, bench, service, work), say)
    load.proc.kill()
    service.other.quit()


# ---- other programs ----
@timeout(60)
def test_torch_pid_mid_run(bench):
    """What PyTorch's caching allocator does: its pool, made before the attach, is pinned or unknown."""
    row, work = Row("PyTorch's pool under --pid mid-run", missed=True), Workload(bench).start()
    work.do(f"load {RUNTIME}", "torch 20")
    trace = Trace(bench, "--pid", str(work.pid))
    work.do("torch 20")
    settle(trace)
    live(row, work.book(), trace.sock)
    work.do("drop")
    book = work.book()
    work.quit()
    trace.daemon.wait(0)
    after(row, bench, book, trace.daemon.stderr(), trace.db)
    row.close(book, say)


@timeout(60)
def test_stripped_runtime(bench):
    """CUDA's runtime without symbols inside the program: nothing is seen, and that is said."""
    row = Row("-- CMD, a stripped static runtime", missed=True)
    out, _, daemon = bench.trace([standin("scen_static_stripped"), "copies"])
    after(row, bench, Sums(last_json(out)), daemon.stderr(), bench.path("db.json"))
    row.close(Sums(last_json(out)), say)


def demo_runs(bench):
    """The demonstration, in the middle: its threads have done something."""
    proc = subprocess.Popen([DEMO], stdout=subprocess.DEVNULL)
    bench.procs.append(proc)

    def check():
        with open(f"/proc/{proc.pid}/status", encoding="ascii") as f:
            status = f.read()
        true(
            "it has just begun",
            int(re.search(r"^Threads:\s+(\d+)", status, re.M)[1]) == 3
            and int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M)[1]) > 40,
        )

    retry(20, check)
    return proc


@timeout(90)
def test_demo_pid_mid_run(bench):
    """What make demo runs, in the middle: nothing pinned is to be pinned, nothing hot is to be unpinned."""
    row, proc = Row("the demo under --pid mid-run", missed=True), demo_runs(bench)
    trace = Trace(bench, "--pid", str(proc.pid))
    book = Demo(proc.pid)
    settle(trace)
    book.goes_on(True)
    live(row, book, trace.sock)
    book.goes_on(False)
    eq("exit status of the demo", proc.wait(60 * PATIENCE), 0)
    trace.daemon.wait(0)
    after(row, bench, book, trace.daemon.stderr(), trace.db)
    row.close(book, say)


@alone("a service with all its defaults, which sees the whole host")
@timeout(120)
def test_demo_twice_under_a_service(bench):
    """First contact, then a library that is known."""
    service, wrong = Trace(bench, "--max-overhead", "1"), []
    for i, name in enumerate(("first", "second")):
        row, proc = Row(f"the demo under a default service, {name} time", missed=None), demo_runs(bench)
        book = Demo(proc.pid)
        settle(service)
        book.goes_on(True)
        live(row, book, service.sock)
        book.goes_on(False)
        eq("exit status of the demo", proc.wait(60 * PATIENCE), 0)
        settle(service)
        service.daemon.proc.send_signal(signal.SIGUSR1)
        service.daemon.wait_line(rf"(?s)(written.*){{{i + 1}}}")
        row.alone = not i
        after(row, bench, book, "", service.db)
        row.told(book, say)
        wrong += row.wrong
    service.daemon.stop()
    true(f"{len(wrong)} statements are wrong, the first: {wrong[:1]}", not wrong)


# ---- Tenstorrent ----
CHIPS = "its chips have the bus addresses of other tests' chips, whose programs would hold memory on them"


def tt_known(row, host, truth):
    """Figures come with a little delay: until they are right, or for a while."""
    fresh = Row(row.name, row.missed)

    def check():
        fresh.__init__(row.name, row.missed)
        tt_views(fresh, host, truth)
        true(fresh.wrong, not fresh.wrong)

    try:
        retry(1, check)
    except AssertionError:
        pass
    for name in ("wrong", "known", "unknown", "bad"):
        have, new = getattr(row, name), getattr(fresh, name)
        getattr(row, "wrong").extend(x for x in new if x not in have) if name == "wrong" else have.update(new)


def tt_host(bench):
    """
    A driver that does not list who has a chip open: the stand-ins open none, and an empty list
    would say that nobody holds anything.
    """
    host = Host(bench, "t3k")
    for path in glob.glob(os.path.join(host.root, "proc/driver/tenstorrent/*/pids")):
        os.unlink(path)
    return host


def tt_end(row, bench, host, daemon, truth):
    daemon.stop()
    tt_database(row, host, load_db(bench.path("db.json")), truth)
    tt_line(row, say)


@alone(CHIPS)
@timeout(60)
def test_tenstorrent_known(bench):
    """Under a service that knows the libraries from other programs everything is known."""
    row, host = Row("Tenstorrent, known", missed=False, none_unknown=True), Host(bench, "t3k")
    daemon = host.service("--dump-db", bench.path("db.json"))
    gens = ("e0", "e1", "e2b", "e4")
    others = {gen: host.target(gen, "ttscen", "restart", "--chips", "3") for gen in gens}
    host.wait_probed([t.pid for t in others.values()])
    targets = {gen: host.target(gen, "ttscen", "restart", "--chips", "3") for gen in gens}
    for t in targets.values():
        t.go()
    now = {t.pid: next(steps(t)) for t in targets.values()}
    truth = {pid: tt_total(book) for pid, book in now.items()}
    tt_known(row, host, truth)
    tt_end(row, bench, host, daemon, truth)


@alone(CHIPS)
@timeout(60)
def test_tenstorrent_submeshes(bench):
    """Submeshes of a root of eight chips: what they hold is on their own chips, at each quiet point."""
    row, host = Row("Tenstorrent, submeshes", missed=False, none_unknown=True), Host(bench, "t3k")
    daemon = host.service("--dump-db", bench.path("db.json"), "--ring-size", "8192")
    others = [host.target(gen, "ttscen", "submesh", "--chips", "8") for gen in ("e1", "e2b", "e4")]
    host.wait_probed([t.pid for t in others])
    targets = {gen: host.target(gen, "ttscen", "submesh", "--chips", "8") for gen in ("e1", "e2b", "e4")}
    for t in targets.values():
        t.go()
    books = {t.pid: steps(t) for t in targets.values()}
    for _ in range(4):
        truth = {pid: tt_total(next(step)) for pid, step in books.items()}
        tt_known(row, host, truth)
    tt_end(row, bench, host, daemon, truth)


@alone(CHIPS)
@timeout(60)
def test_tenstorrent_before_the_attach(bench):
    """
    Buffers that were made before are in no figure that does not say so; first nothing else is
    known, then some is.
    """
    row, host = Row("Tenstorrent, buffers before the attach", missed=True), tt_host(bench)
    targets = {gen: host.target(gen, "ttscen", "restart", "--chips", "3") for gen in ("e0", "e1", "e2b", "e4")}
    for t in targets.values():
        t.go()
    lines = {t.pid: steps(t) for t in targets.values()}
    before = {pid: next(line) for pid, line in lines.items()}
    daemon = host.service("--dump-db", bench.path("db.json"))
    host.wait_probed(lines, known=False)
    tt_known(row, host, {pid: tt_total(book) for pid, book in before.items()})
    now = {pid: next(line) for pid, line in lines.items()}
    tt_known(row, host, {pid: tt_total(before[pid], book) for pid, book in now.items()})
    # The old ones are freed: nobody can know which that were.
    now = {pid: next(line) for pid, line in lines.items()}
    truth = {pid: tt_total(book) for pid, book in now.items()}
    tt_known(row, host, truth)
    tt_end(row, bench, host, daemon, truth)


@alone(CHIPS)
@timeout(60)
def test_tenstorrent_first_contact(bench):
    """A library that nobody had, whose first buffers are made while the daemon is away."""
    row, host = Row("Tenstorrent, first contact", missed=True), tt_host(bench)
    lib = shutil.copytree(standin("tt/e2b"), bench.path("tt"))
    daemon = host.service("--dump-db", bench.path("db.json"))
    daemon.proc.send_signal(signal.SIGSTOP)
    target = host.target("e2b", "ttscen", "restart", "--chips", "3", env={"LD_LIBRARY_PATH": lib})
    target.go()
    line = steps(target)
    before = next(line)
    daemon.proc.send_signal(signal.SIGCONT)
    host.wait_probed([target.pid], known=False)
    tt_known(row, host, {target.pid: tt_total(before)})
    truth = {target.pid: tt_total(before, next(line))}
    tt_known(row, host, truth)
    tt_end(row, bench, host, daemon, truth)


@alone(CHIPS)
@timeout(60)
def test_tenstorrent_family_off(bench):
    """Off while the first buffers are made, then on."""
    row, host = Row("Tenstorrent, family off at first", missed=True), tt_host(bench)
    daemon = host.service("--dump-db", bench.path("db.json"))
    others = [host.target(gen, "ttscen", "restart", "--chips", "3") for gen in ("e1", "e2b")]
    host.wait_probed([t.pid for t in others])
    targets = {gen: host.target(gen, "ttscen", "restart", "--chips", "3") for gen in ("e1", "e2b")}
    lines = {t.pid: steps(t) for t in targets.values()}
    host.wait_probed(lines)
    put(host.socket, "/v1/families?name=tenstorrent&state=off")
    for t in targets.values():
        t.go()
    before = {pid: next(line) for pid, line in lines.items()}
    tt_known(row, host, {pid: tt_total(book) for pid, book in before.items()})
    put(host.socket, "/v1/families?name=tenstorrent&state=on")
    now = {pid: next(line) for pid, line in lines.items()}
    truth = {pid: tt_total(before[pid], book) for pid, book in now.items()}
    tt_known(row, host, truth)
    tt_end(row, bench, host, daemon, truth)
