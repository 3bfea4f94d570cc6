# SPDX-License-Identifier: GPL-2.0-only
"""The database against the workload's own books: 8 threads, 200,000 calls, every kind of call, exactly."""
import json
import signal
import time

from compare import compare
from e2e import SLOW, eq, load_db, standin, timeout, true


CALLS = int(200000 / SLOW)


def ledger(bench, program="ledger", *args):
    calls = [] if "--calls" in args else ["--calls", str(CALLS)]
    return [standin(program), "--out", bench.path("ledger.json"), *calls, *args]


def hold(bench, db, ended=True):
    with open(bench.path("ledger.json"), encoding="utf-8") as f:
        books = json.load(f)
    diffs = compare(books, db, ended)
    for line in diffs[:15]:
        print(line)
    true(f"{len(diffs)} differences, the first: {diffs[0] if diffs else ''}", not diffs)
    return books


@timeout(90)
def test_command(bench):
    _, db, _ = bench.trace(ledger(bench))
    books = hold(bench, db)
    true("fewer calls than asked for", sum(sum(c.values()) for c in books["calls"].values()) >= CALLS)


@timeout(90)
def test_pid(bench):
    target = bench.target(*ledger(bench), "--wait")
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid))
    target.go()
    eq("last line", target.line(60), "done\n")
    target.go()
    target.finish()
    daemon.wait(0)
    hold(bench, load_db(bench.path("db.json")))


@timeout(90)
def test_system_wide(bench):
    target = bench.target(*ledger(bench), "--wait")
    daemon = bench.daemon("--dump-db", bench.path("db.json"))
    target.go()
    eq("last line", target.line(60), "done\n")
    target.go()
    target.finish()
    time.sleep(0.2)
    daemon.stop(signal.SIGINT)
    hold(bench, load_db(bench.path("db.json")))


@timeout(90)
def test_while_it_goes_on(bench):
    """SIGUSR1 writes a database with everything still live, and the trace goes on to a whole one."""
    path = bench.path("db.json")
    target = bench.target(*ledger(bench, "ledger", "--calls", "50000"), "--wait")
    daemon = bench.daemon("--dump-db", path, "--pid", str(target.pid))
    target.go()
    eq("last line", target.line(60), "done\n")
    time.sleep(0.3)
    daemon.proc.send_signal(signal.SIGUSR1)
    daemon.wait_line(r"written")
    hold(bench, load_db(path), ended=False)
    target.go()
    target.finish()
    daemon.wait(0)
    hold(bench, load_db(path))


@timeout(90)
def test_nested(bench):
    """The runtime calls the driver, as the real one does: each call counts once."""
    _, db, _ = bench.trace(ledger(bench, "ledger", "--calls", "50000"), env={"STANDIN_NESTED": "1"})
    hold(bench, db)


@timeout(90)
def test_copy_results(bench):
    """With --copy-results asynchronous copies that fail are no transfers."""
    _, db, _ = bench.trace(ledger(bench, "ledger", "--calls", "50000", "--fail-async"), "--copy-results")
    books = hold(bench, db)
    true("no asynchronous copy failed", len(books["calls"]["cudaMemcpyAsync"]) > 1)


@timeout(60)
def test_runtime_12(bench):
    _, db, _ = bench.trace(ledger(bench, "ledger12", "--calls", "50000"))
    hold(bench, db)


@timeout(60)
def test_per_thread_default_stream(bench):
    _, db, _ = bench.trace(ledger(bench, "ledger_ptds", "--calls", "50000"))
    hold(bench, db)


@timeout(60)
def test_static(bench):
    """A static runtime whose symbols are local."""
    _, db, _ = bench.trace(ledger(bench, "ledger_static", "--calls", "50000"))
    hold(bench, db)


@timeout(60)
def test_trace_only(bench):
    _, db, _ = bench.trace(ledger(bench, "ledger", "--calls", "20000"), "--trace-only")
    hold(bench, db)
    true("there is advice", "advice" not in db)


@timeout(60)
def test_without_mmap(bench):
    """Without the mmap tracepoints ordinary memory is known from /proc/PID/maps: the buffers are there when the trace begins."""
    target = bench.target(*ledger(bench, "ledger", "--calls", "20000"), "--wait")
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid), "--no-mmap")
    target.go()
    eq("last line", target.line(60), "done\n")
    target.go()
    target.finish()
    daemon.wait(0)
    db = load_db(bench.path("db.json"))
    hold(bench, db)
    eq("capture.mmap", db["capture"]["mmap"], False)
