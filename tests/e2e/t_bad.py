# SPDX-License-Identifier: GPL-2.0-only
"""Bad input: one clear line, an exit status that is not 0, and nothing left attached."""
import os
import shutil
import signal
import subprocess
import threading
import time

from e2e import TTMOND, Skip, eq, left_over, newest_prog, standin, true


def as_nobody(bench):
    """A wrapper that runs a copy of ttmond, which nobody may read, without privileges."""
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    copy = bench.for_everybody(TTMOND)
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", f'shift; exec {copy} "$@"', "sh"]


def needs_null():
    """No helper of the daemon starts for whom /dev/null is not to be written, which is one more line."""
    if os.stat(os.devnull).st_mode & 0o006 != 0o006:
        raise Skip(f"not everybody may use {os.devnull} of this host: chmod 666 {os.devnull}")


def test_no_privileges(bench):
    """Says which capabilities are missing."""
    needs_null()
    wrap = as_nobody(bench)
    for args in ([], ["--pid", "1"]):
        line = bench.refused(args, "CAP_BPF|CAP_SYS_ADMIN|root", wrap=wrap)
        true(f"no capability is named in {line!r}", "CAP_" in line)


def test_no_privileges_command(bench):
    needs_null()
    bench.refused([], "CAP_", cmd=["/bin/true"], wrap=as_nobody(bench))


def test_help_and_version_need_none(bench):
    for arg in ("--help", "--version"):
        daemon = bench.daemon(arg, wait=False, wrap=as_nobody(bench))
        daemon.wait(0)
        true(f"{arg} prints nothing", daemon.stdout())
        lines = daemon.stdout().splitlines()
        true(
            f"{arg} does not fit a screen: {len(lines)} lines",
            len(lines) <= 30 and all(len(line) <= 80 for line in lines),
        )


def test_no_btf(bench):
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/sys/kernel/btf"], check=False).returncode:
        raise Skip("cannot hide /sys/kernel/btf")
    hide = [
        "unshare",
        "-m",
        "sh",
        "-c",
        'mount -t tmpfs none /sys/kernel/btf && mount -t tmpfs none /boot; exec "$@"',
        "sh",
    ]
    bench.refused([], "BTF", wrap=hide)


def test_no_such_process(bench):
    bench.refused(["--pid", "4194303"], "4194303", status=1)


def test_process_that_cannot_be_traced(bench):
    """A thread, an ended process, a kernel thread and ttmond itself would be traced for ever without an event."""
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    try:
        bench.refused(["--pid", str(thread.native_id)], f"thread of process {os.getpid()}", status=1)
    finally:
        event.set()
        thread.join()
    zombie = subprocess.Popen(["true"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    bench.refused(["--pid", str(zombie.pid)], "has ended", status=1)
    zombie.wait()
    bench.refused(["--pid", "2"], "kernel thread", status=1)
    bench.refused([], "itself", status=1, wrap=["sh", "-c", 'exec "$@" --pid $$', "sh"])


def test_no_command(bench):
    """A script whose variable is empty does not trace the whole host."""
    bench.refused(["--quiet", "--"], "command", status=2)


def test_process_dies_while_attaching(bench):
    """At whatever moment it goes: no hang, no crash, nothing left."""
    since = newest_prog()
    for delay in (0, 0.02, 0.05, 0.1, 0.2):
        target = subprocess.Popen(["sleep", str(delay)])
        daemon = bench.daemon("--pid", str(target.pid), wait=False)
        target.wait()
        rc = daemon.wait(None)
        true(f"status {rc}: {daemon.stderr()!r}", rc in (0, 1))
        true("it failed without a word", rc == 0 or daemon.stderr().strip())
    eq("BPF programs left", left_over(since), [])


def test_unknown_option(bench):
    bench.refused(["--no-such-option"], "no-such-option", status=2)
    bench.refused(["-Z"], "-Z", status=2)


def test_wrong_values(bench):
    for args in (
        ["--pid", "0"],
        ["--pid", "x"],
        ["--pid"],
        ["--window", "1"],
        ["--ring-size", "-4"],
        ["--log-level", "loud"],
        ["--alloc-fn", "nothing"],
        ["--alloc-fn", "lib:sym,size=1"],
        ["--free-fn", "lib:sym,ptr=9"],
        ["stray"],
        ["--no-mmap", "--trace-mmap"],
        ["--copy-results", "--no-return-probes"],
    ):
        bench.refused(args, args[0].lstrip("-"), status=2)


def test_targets_do_not_mix(bench):
    bench.refused(["--pid", "1"], "--pid", status=2, cmd=["/bin/true"])


def test_command_that_is_not_there(bench):
    line = bench.refused([], "no such file", cmd=["/no/such/program"])
    true(f"it is not named in {line!r}", "/no/such/program" in line)


def test_unwritable_database(bench):
    """A folder that is not there is said before anything is traced; one that only looks writable, at the end."""
    for path in ("/no/such/folder/db.json", "/proc/db.json"):
        bench.refused(["--quiet", "--dump-db", path], path, cmd=["/bin/true"])


def test_unwritable_recording(bench):
    bench.refused(["--record", "/no/such/folder/x.rec"], "/no/such/folder/x.rec", cmd=["/bin/true"])


def test_database_in_place_of_a_folder(bench):
    os.mkdir(bench.path("taken"))
    daemon = bench.daemon("--quiet", "--dump-db", bench.path("taken"), cmd=["/bin/true"], wait=False)
    true("status is 0", daemon.wait(None) != 0)
    eq("folder", os.listdir(bench.path("taken")), [])


def test_full_disk(bench):
    """The previous database stays, no temporary file is left, one clear line."""
    disk = bench.path("disk")
    os.mkdir(disk)
    script = (
        f"mount -t tmpfs -o size=64k none {disk} && echo previous > {disk}/db.json || exit 99; "
        f'"$@"; rc=$?; cp {disk}/db.json kept; ls -A {disk} > list; exit $rc'
    )
    daemon = bench.daemon(
        "--quiet",
        "--dump-db",
        f"{disk}/db.json",
        cmd=[standin("ledger"), "--calls", "20000", "--out", bench.path("ledger.json")],
        wait=False,
        wrap=["unshare", "-m", "sh", "-c", script, "sh"],
    )
    rc = daemon.wait(None)
    if rc == 99:
        raise Skip("cannot mount a tmpfs")
    eq("exit status", rc, 1)
    errors = [line for line in daemon.stderr().splitlines() if "space" in line.lower()]
    eq("lines about it", len(errors), 1)
    with open(bench.path("kept"), encoding="ascii") as f:
        eq("previous file", f.read(), "previous\n")
    with open(bench.path("list"), encoding="ascii") as f:
        eq("files there", f.read().split(), ["db.json"])


def test_full_disk_on_sigusr1_does_not_end_the_trace(bench):
    target = bench.target(standin("scen"), "live", "2", wait_ready=False)
    target.line()
    folder = bench.path("gone")
    os.mkdir(folder)
    daemon = bench.daemon("--dump-db", f"{folder}/db.json", "--pid", str(target.pid))
    os.rename(folder, bench.path("away"))
    daemon.proc.send_signal(signal.SIGUSR1)
    daemon.wait_line(r"was not written|cannot write")
    time.sleep(0.2)
    eq("ttmond", daemon.proc.poll(), None)
    os.rename(bench.path("away"), folder)
    target.go()
    target.finish()
    daemon.wait(0)
    true("no database at the end", os.path.exists(f"{folder}/db.json"))


def test_replay_of_other_files(bench):
    """Foreign, empty, missing, truncated."""
    with open(bench.path("foreign"), "wb") as f:
        f.write(os.urandom(4096))
    open(bench.path("empty"), "wb").close()
    for name in ("foreign", "empty", "missing"):
        bench.refused(["--replay", bench.path(name), "--dump-db", bench.path("db.json")], name)
        true(f"a database was written from {name}", not os.path.exists(bench.path("db.json")))
