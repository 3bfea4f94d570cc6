# SPDX-License-Identifier: GPL-2.0-only
"""How processes, threads and calls end."""
import contextlib
import os
import pty
import signal
import subprocess
import time

from e2e import (
    TTMOND,
    allocations,
    alone,
    eq,
    finding,
    last_json,
    load_db,
    pair,
    process,
    same_transfers,
    standin,
    timeout,
    true,
    whole,
)

SIZE = 40960


def test_kill(bench):
    """SIGKILL with live pins: freed by exit, not lost."""
    out, db, _ = bench.trace([standin("scen"), "kill", "3"], status=128 + signal.SIGKILL)
    book = last_json(out)
    whole(db)
    proc = process(db, book["pid"])
    eq("ends", [a["end"] for a in allocations(db, book["pid"], "host_alloc")], ["exit"] * 3)
    eq("pages at the end", proc["pinned_pages"], 0)
    eq("peak", proc["pinned_peak_pages"], 3 * SIZE // 4096)
    eq("wait status", proc["exit"]["status"], signal.SIGKILL)


def test_exit(bench):
    out, db, _ = bench.attach([standin("scen"), "--wait", "exit", "4"])
    book = last_json(out)
    whole(db)
    eq("ends", [a["end"] for a in allocations(db, book["pid"], "host_alloc")], ["exit"] * 4)


def test_exec(bench):
    """Exec over live pins: they are gone, and the new program is traced in the same process."""
    out, db, _ = bench.trace([standin("scen"), "exec", "3"])
    book = last_json(out)
    whole(db)
    proc = process(db, book["pid"])
    ends = [a["end"] for a in allocations(db, book["pid"], "host_alloc")]
    eq("ends", ends, ["exec"] * 3 + ["free"] * 2)
    true(f"execs: {proc['execs']}", proc["execs"] >= 1)
    same_transfers(proc, book)
    eq("pages at the end", proc["pinned_pages"], 0)


def test_fork(bench):
    """
    Fork without exec: the child is a process of its own; the parent's memory is the driver's, which
    a child shares: no finding.
    """
    out, db, _ = bench.attach([standin("scen"), "--wait", "fork"])
    book = last_json(out)
    whole(db)
    parent, child = process(db, book["pid"]), process(db, book["child"])
    same_transfers(parent, book)
    eq("pins of the child", (child["pins"], child["allocs"], child["frees"]), (1, 1, 1))
    eq("copies of the child", pair(child["transfers"], "h2d"), [1, 4096])
    eq("parent", child["ppid"], book["pid"])
    eq("finding", finding(parent, "fork_pinned"), 0)
    eq("end of the parent's pin", [a["end"] for a in allocations(db, book["pid"], "host_alloc")], ["free"])


def test_threads_exit_inside_a_call(bench):
    out, db, _ = bench.trace([standin("scen"), "threadexit", "8"])
    book = last_json(out)
    proc = process(db, book["pid"])
    eq("pins", (proc["pins"], proc["frees"]), (8, 8))
    eq("ends", [a["end"] for a in allocations(db, book["pid"], "host_alloc")], ["free"] * 8)
    eq("identity", db["completeness"]["identity"], True)


def test_longjmp(bench):
    """Out of a call by longjmp, 200 times: each whole copy in between is seen, none is invented."""
    out, db, _ = bench.trace([standin("scen"), "longjmp", "200"])
    book = last_json(out)
    proc = process(db, book["pid"])
    same_transfers(proc, book)
    eq("identity", db["completeness"]["identity"], True)


def test_reset(bench):
    out, db, _ = bench.trace([standin("scen"), "reset", "3"])
    book = last_json(out)
    whole(db)
    ends = sorted(a["end"] for a in allocations(db, book["pid"], "host_alloc", "registered", "device"))
    eq("ends", ends, ["exit"] + ["reset"] * 5)
    eq("peak", process(db, book["pid"])["pinned_peak_pages"], 4 * SIZE // 4096)


def test_children_of_a_target(bench):
    """--pid follows children through fork and exec, and ends when the last has gone."""
    out, db, _ = bench.attach([standin("scen"), "--wait", "child", "3"])
    book = last_json(out)
    whole(db)
    eq("pins", [process(db, p)["pins"] for p in (book["pid"], book["child"])], [1, 3])


def test_two_targets(bench):
    targets = [bench.target(standin("scen"), "--wait", "exit", str(n)) for n in (1, 2)]
    daemon = bench.daemon("--dump-db", bench.path("db.json"), *[w for t in targets for w in ("--pid", str(t.pid))])
    targets[0].go()
    targets[0].finish()
    time.sleep(0.5)
    eq("ttmond after the first target", daemon.proc.poll(), None)
    targets[1].go()
    targets[1].finish()
    daemon.wait(0)
    db = load_db(bench.path("db.json"))
    eq("pins", [process(db, t.pid)["pins"] for t in targets], [1, 2])


def test_others_are_left_out(bench):
    """A process that nobody asked for is not in the database of --pid."""
    target = bench.target(standin("scen"), "--wait", "exit", "1")
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid))
    other = subprocess.Popen([standin("scen"), "exit", "5"], stdout=subprocess.DEVNULL)
    other.wait()
    target.go()
    target.finish()
    daemon.wait(0)
    eq("processes", [p["pid"] for p in load_db(bench.path("db.json"))["processes"]], [target.pid])


def test_exit_status_is_passed_on(bench):
    for command, status in (
        (["/bin/sh", "-c", "exit 7"], 7),
        (["/bin/sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
    ):
        daemon = bench.daemon(cmd=command, wait=False)
        daemon.wait(status)


def test_exit_status_where_children_are_ignored(bench):
    """Started by somebody who ignores SIGCHLD: the end of CMD is seen all the same."""
    daemon = bench.daemon(
        cmd=["/bin/sh", "-c", "exit 7"], wait=False, wrap=["bash", "-c", "trap '' CHLD; exec \"$@\"", "bash"]
    )
    daemon.wait(7)


def test_hangup(bench):
    """The terminal is gone: the trace ends as with an interrupt, CMD's too; under nohup it goes on."""
    target = bench.target(standin("scen"), "--wait", "exit", "1")
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid))
    daemon.stop(signal.SIGHUP)
    true("no database", os.path.exists(bench.path("db.json")))
    daemon = bench.daemon(cmd=["sleep", "30"])
    time.sleep(0.2)
    daemon.stop(signal.SIGHUP, 128 + signal.SIGHUP)
    daemon = bench.daemon("--pid", str(target.pid), wrap=["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"])
    daemon.proc.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    eq("ttmond under nohup", daemon.proc.poll(), None)
    target.go()
    target.finish()
    daemon.wait(0)


def test_command_that_ignores_the_end(bench):
    """The second SIGTERM ends the trace, not the command."""
    daemon = bench.daemon(cmd=["sh", "-c", "trap '' TERM; echo up; sleep 2; touch done"])
    while "up" not in daemon.stdout():
        time.sleep(0.02)
    daemon.proc.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    eq("ttmond after the first", daemon.proc.poll(), None)
    daemon.stop(signal.SIGTERM)
    true("the command has ended already", not os.path.exists(bench.path("done")))
    time.sleep(2.2)
    true("the command was ended", os.path.exists(bench.path("done")))


def test_output_of_the_command_stays(bench):
    """On a terminal: what CMD wrote last, without a newline, is not wiped away."""
    controller, terminal = pty.openpty()
    proc = subprocess.Popen(
        [TTMOND, "--", "printf", "last words"], stdin=terminal, stdout=terminal, stderr=terminal, cwd=bench.dir
    )
    os.close(terminal)
    output = b""
    with contextlib.suppress(OSError):
        while True:
            output += os.read(controller, 4096)
    os.close(controller)
    eq("exit status", proc.wait(), 0)
    true(f"wiped away: {output!r}", b"last words\r\n" in output)


def test_stop_leaves_the_target_running(bench):
    target = bench.target(standin("scen"), "live", "4", wait_ready=False)
    target.line()
    eq("second line", target.line(), "waiting\n")
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid))
    daemon.stop(signal.SIGINT)
    target.go()
    target.finish(0)


def test_killed_tracer_leaves_the_command_running(bench):
    """The keeper: CMD goes on when ttmond is killed, also through further mappings."""
    done = bench.path("done")
    script = f"sleep 0.7; /bin/ls / >/dev/null && {standin('scen')} exit 1 >/dev/null && touch {done}"
    daemon = bench.daemon("--dump-db", bench.path("db.json"), cmd=["/bin/sh", "-c", script])
    time.sleep(0.3)
    daemon.proc.kill()
    daemon.proc.wait()
    for _ in range(100):
        if os.path.exists(done):
            return
        time.sleep(0.05)
    true("the command did not come to its end", False)


@timeout(40)
def test_200_execs_a_second(bench):
    """Every one of 200 short programs is seen with its pin."""
    out, db, _ = bench.trace([standin("scen"), "execs", "200"])
    last_json(out)
    whole(db)
    eq("programs with one pin", sum(1 for p in db["processes"] if p["pins"] == 1), 200)


@alone("it serves on the host's own socket and segment")
@timeout(40)
def test_200_execs_a_second_system_wide(bench):
    """The same for the service, which knows the library already."""
    keeper = bench.target(standin("scen"), "live", "1", wait_ready=False)
    keeper.line()
    eq("second line", keeper.line(), "waiting\n")
    daemon = bench.daemon("--dump-db", bench.path("db.json"))
    done = subprocess.run([standin("scen"), "execs", "200"], capture_output=True, text=True, check=True)
    time.sleep(0.2)
    daemon.stop()
    db = load_db(bench.path("db.json"))
    parent = last_json(done.stdout)["pid"]
    whole(db)
    eq("programs with one pin", sum(1 for p in db["processes"] if p["ppid"] == parent and p["pins"] == 1), 200)
