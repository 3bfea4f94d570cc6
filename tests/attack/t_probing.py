# SPDX-License-Identifier: GPL-2.0-only
"""
Probing never harms: programs that do with stacks, threads, signals and the kernel what few do run
to their end under a trace.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from e2e import PATIENCE, Skip, allocations, alone, eq, last_json, load_db, long, pair, process, standin, timeout, true

OWN = ("--alloc-fn", "*:coro_alloc,size=1,out=ret")
# Exceptions, coroutines and the like end a program that is killed with one of these.
DEADLY = {-signal.SIGILL: "SIGILL", -signal.SIGSEGV: "SIGSEGV", -signal.SIGTRAP: "SIGTRAP", -signal.SIGABRT: "SIGABRT"}


def alone_is_well(*cmd):
    """The program without us. Where it does not live either, another tracer of this host is at work."""
    done = subprocess.run(cmd, capture_output=True, text=True, check=False)
    if done.returncode in DEADLY:
        raise Skip(
            f"{' '.join(cmd)} dies of {DEADLY[done.returncode]} without us: another tracer has return probes there"
        )
    eq(f"status of {cmd} without us", done.returncode, 0)


def asm():
    if os.uname().machine != "x86_64":
        raise Skip("its stack switch is written for x86-64")


def own_calls(bench, program, way, *options, rounds=20):
    """Coroutines that yield in the middle of the program's own allocator: all of its calls are told."""
    out, db, daemon = bench.trace([standin(program), way, str(rounds), "own"], *OWN, *options)
    book = last_json(out)
    eq("calls", book["calls"], 2 * rounds if way in ("higher", "lower", "array-lower") else rounds)
    rows = allocations(db, book["pid"], "custom")
    eq(f"{program} {way}: calls that were told", len(rows), book["calls"])
    return db, rows, daemon


def test_coroutines(bench):
    """
    Of a program of unknown means: only calls on a thread's own stack get a return probe, the others
    may return in another thread.
    """
    asm()
    for way, on_own in (("higher", 20), ("lower", 20), ("thread", 0), ("below", 0), ("cloned", 0)):
        db, rows, daemon = own_calls(bench, "coro", way)
        seen = [r for r in rows if "unobserved" not in r["flags"]]
        eq(f"{way}: calls whose return was seen", len(seen), on_own)
        gaps = [(g["why"], g["families"]) for g in db["completeness"]["knowledge"]]
        eq(f"{way}: what is not known", gaps, [("address not seen", ["alloc"])])
        true(f"it is taken for one that is known: {daemon.stderr()}", "can switch stacks" not in daemon.stderr())
        print(
            f"attack: coroutines that yield to a {way} stack in the middle of a call: lost of an innocent program "
            "beside it 0",
            file=sys.stderr,
        )


def test_coroutines_by_swapcontext(bench):
    """Of a program that imports it: no return probes, so that a call may also return in another thread."""
    for way in ("higher", "lower", "thread"):
        db, rows, daemon = own_calls(bench, "coro_ctx", way)
        eq(f"{way}: calls whose return was seen", [r for r in rows if "unobserved" not in r["flags"]], [])
        gaps = [(g["why"], g["families"]) for g in db["completeness"]["knowledge"]]
        eq(f"{way}: what is not known", gaps, [("address not seen", ["alloc"])])
        eq(f"{way}: reasons", db["completeness"]["reasons"], ["address_not_seen"])
        true(
            f"{way}: it says {daemon.stderr()}",
            "memory was allocated whose address was not seen" in daemon.stderr()
            and "could not be probed" not in daemon.stderr(),
        )


def test_coroutines_with_return_probes_all_the_same(bench):
    """--return-probes all: those that stay in their thread live with that too."""
    for way in ("higher", "lower"):
        _, rows, _ = own_calls(bench, "coro_ctx", way, "--return-probes", "all")
        eq(f"{way}: calls whose return was seen", len([r for r in rows if "unobserved" not in r["flags"]]), 20)


def test_coroutines_on_an_array(bench):
    """
    A coroutine's stack is an array on the thread's own stack, above all that the thread calls. A call
    that is made there while one of the thread waits has no return probe, so both return.
    """
    asm()
    _, rows, _ = own_calls(bench, "coro", "array-lower")
    eq("calls whose return was seen", len([r for r in rows if "unobserved" not in r["flags"]]), 20)
    # The other way round the call of the thread counts as a part of the one that waits.
    out, db, _ = bench.trace([standin("coro"), "array-higher", "20", "own"], *OWN)
    told = len(allocations(db, last_json(out)["pid"], "custom"))
    true(f"{told} of 40 calls", 20 <= told <= 40)
    # What the stack pointer does not show: the manual has the option for such programs.
    for way, words in (("array-thread", ["own"]), ("array-mixed", [])):
        out, db, _ = bench.trace([standin("coro"), way, "20", *words], *OWN, "--no-return-probes")
        book = last_json(out)
        eq(f"{way}: calls", book["calls"], 20)
        eq(f"{way}: calls that were told", len(allocations(db, book["pid"], "custom")), 20)


def test_coroutines_of_a_running_program(bench):
    """Attached to, and in its child."""
    target = bench.target(standin("coro_ctx"), "thread", "50", "own", "--wait")
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid), "--log-level", "debug", *OWN)
    daemon.wait_line("can switch stacks")
    target.go()
    book = last_json(target.finish())
    daemon.wait()
    eq("calls that were told", len(allocations(load_db(bench.path("db.json")), book["pid"], "custom")), book["calls"])


@alone("a return probe of another test's service on the same library would end the program")
def test_coroutines_in_calls_of_cuda(bench):
    """The same in a copy; in an asynchronous one, of which the first has a return probe."""
    for program in ("coro", "coro_ctx"):
        ways = [(way,) for way in ("higher", "lower", "thread", "below", "cloned")]
        more = [("higher", "async"), ("lower", "async"), ("array-lower",)]
        for way in ways + (more if program == "coro" else []):
            asm()
            args = [standin(program), way[0], "20", *way[1:]]
            alone_is_well(*args)
            out, db, _ = bench.trace(args)
            book = last_json(out)
            eq(
                f"{program} {way}: copies",
                pair(process(db, book["pid"])["transfers"], "h2d"),
                [book["copies"], book["bytes"]],
            )


def test_calls_on_the_threads_own_stacks(bench):
    """
    A program calls CUDA on its threads' own stacks, as PyTorch does: each allocation has its
    address. Threads with large and small stacks, one that the program made room for, and the first
    one, further down than stacks are by default.
    """
    out, db, _ = bench.trace([standin("coro_ctx"), "threads", "4"])
    book = last_json(out)
    rows = allocations(db, book["pid"], "host_alloc")
    eq("allocations", len(rows) + len(allocations(db, book["pid"], "device")), book["allocs"])
    eq("allocations without an address", [r for r in rows if int(r["addr"], 16) == 0], [])
    children = [a for a in db["allocations"] if a["method"] == "host_alloc" and a["pid"] != book["pid"]]
    eq("allocations of the children", [int(a["addr"], 16) != 0 for a in children], [True] * 4)
    eq("what is not known", db["completeness"]["knowledge"], [])


@alone(
    "without sessions the kernel puts its return probes into every process that runs this program: those of other "
    "tests would end"
)
def test_coroutines_where_nobody_can_be_left_out(bench):
    """
    A kernel without uprobe sessions (before 6.13): it says what may happen, to a program that has
    not yielded yet.
    """
    daemon = bench.daemon(
        "--quiet",
        *OWN,
        cmd=[standin("coro_ctx"), "higher", "0", "own"],
        wait=False,
        env={"TTMOND_NO_UPROBE_SESSION": "1"},
    )
    daemon.wait()
    true(f"it says {daemon.stderr()}", "SIGILL" in daemon.stderr() and "--no-return-probes" in daemon.stderr())


def test_exceptions(bench):
    """An allocator of the program's own that throws: said where it is probed, and with --no-return-probes it may."""
    spec = ("--alloc-fn", "throws:throwing_alloc,size=1,out=ret")
    out, db, _ = bench.trace([standin("throws")], *spec, "--no-return-probes")
    book = last_json(out)
    eq("caught", book["caught"], 10)
    eq("calls that were told", len(allocations(db, book["pid"], "custom")), 30)
    daemon = bench.daemon("--quiet", *spec, cmd=[standin("throws")], wait=False)
    daemon.wait(None)
    true(f"it says {daemon.stderr()}", "an exception that leaves throwing_alloc ends the program" in daemon.stderr())


def test_sealed_program(bench):
    """
    One that the kernel kills at any system call but a few: a return probe is none of them
    (uretprobe(2) passes filters).
    """
    out, db, _ = bench.trace([standin("sealed"), "100"])
    book = last_json(out)
    eq("copies", pair(process(db, book["pid"])["transfers"], "h2d")[0], book["copies"])


def test_listener_of_its_own(bench):
    """The kernel has one listener for a process, and under -- CMD that is ours: the manual says EBUSY."""
    done = subprocess.run([standin("sealed"), "listener"], capture_output=True, text=True, check=True)
    eq("without us", json.loads(done.stdout), {"errno": 0})
    out, _, _ = bench.trace([standin("sealed"), "listener"])
    eq("under -- CMD", last_json(out), {"errno": 16})


def test_debugger_from_outside(bench):
    """
    gdb attaches, stops in a probed function, lets it go on and goes away. Not at the very
    instruction that has the probe: what is there is the kernel's before it is gdb's.
    """
    if not shutil.which("gdb"):
        raise Skip("no gdb")
    target = bench.target(standin("scen"), "--wait", "copies")
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid))
    done = bench.path("gdb-out")
    with open(done, "w", encoding="utf-8") as f:
        gdb = subprocess.Popen(
            [
                "gdb",
                "-q",
                "-nx",
                "-batch",
                "-p",
                str(target.pid),
                "-ex",
                "set breakpoint pending on",
                "-ex",
                "break *(cudaMemcpy + 4)",
                "-ex",
                "continue",
                "-ex",
                "backtrace 3",
                "-ex",
                "delete",
                "-ex",
                "detach",
            ],
            stdin=subprocess.DEVNULL,
            stdout=f,
            stderr=subprocess.STDOUT,
        )
    bench.procs.append(gdb)
    end = time.monotonic() + 20 * PATIENCE
    while gdb.poll() is None and time.monotonic() < end:
        with open(done, encoding="utf-8", errors="replace") as f:
            text = f.read()
        if "Breakpoint 1 at" in text or "Breakpoint 1 (" in text:
            break
        time.sleep(0.1)
    target.go()
    out = target.finish()
    gdb.wait(20 * PATIENCE)
    with open(done, encoding="utf-8", errors="replace") as f:
        text = f.read()
    if "ptrace: Operation not permitted" in text:
        raise Skip("no process may be traced here")
    true(f"gdb ended with {gdb.returncode}: {text[-900:]}", "Breakpoint 1, " in text and gdb.returncode == 0)
    daemon.wait()
    book = last_json(out)
    proc = process(load_db(bench.path("db.json")), book["pid"])
    eq(
        "copies",
        sum(pair(proc["transfers"], d)[0] for d in proc["transfers"]),
        sum(p[0] for d in book["transfers"].values() for p in d.values()),
    )


def threads(bench, n, rounds, times):
    cmd = [standin("threads"), str(n), str(rounds)]
    bare, traced = [], []
    for _ in range(times):
        done = subprocess.run(cmd, capture_output=True, text=True, check=False)
        if done.returncode == 3:
            raise Skip(f"no {n} threads here")
        bare.append(last_json(done.stdout)["us"])
        out, db, _ = bench.trace(cmd)
        book = last_json(out)
        traced.append(book["us"])
        eq("copies", pair(process(db, book["pid"])["transfers"], "h2d")[0], book["copies"])
    print(
        f"attack: {n} threads: {min(bare) / 1000:.0f} ms, traced {min(traced) / 1000:.0f} ms, lost of an innocent "
        "program beside it 0",
        file=sys.stderr,
    )
    return min(traced) / min(bare)


def test_threads(bench):
    """A thousand at once: none is lost."""
    threads(bench, 1000, 2, 1)


@long
@timeout(300)
def test_10000_threads(bench):
    """Traced they take twice as long at most."""
    ratio = threads(bench, 10000, 4, 3)
    true(f"traced they take {ratio:.2f} times as long", ratio <= 2)
