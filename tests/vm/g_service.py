# SPDX-License-Identifier: GPL-2.0-only
"""The Debian package and its units under a systemd that runs: installed, started, traced with, killed,
hung, reloaded, removed.

The guest runs the host's systemd as process 1 (init, qvm.systemd). A test that is run alone
installs the package first.
"""
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
import urllib.request

from e2e import SLOW, Skip, TTMON, TTMOND, eq, standin, timeout, true

NEEDS = "systemd"
DEB = os.environ.get("DEB", "-nobody built it")
SOCKET = "/run/ttmond/ttmond.sock"
SHM = "/dev/shm/ttmon.v1"
DROPIN = "/run/systemd/system/ttmond.service.d"
# What is kept once it traces; CAP_SYS_ADMIN too where perf_event_open() wants it (a patch of Debian's).
KEPT = {2: "dac_read_search", 19: "sys_ptrace", 38: "perfmon", 39: "bpf", 40: "checkpoint_restore"}
SYS_ADMIN = 21


def run(*words, status=0, env=None):
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=dict(os.environ, **(env or {})),
        check=False,
    )
    if status is not None:
        eq(f"{' '.join(words)}: {done.stdout.strip()[-600:]}", done.returncode, status)
    return done.stdout


def show(name, unit="ttmond.service"):
    return run("systemctl", "show", "--value", "-p", name, unit).strip()


def journal():
    return run("journalctl", "--no-pager", "-o", "json", "-u", "ttmond.service", status=None)


def messages(journal_lines):
    return [json.loads(line) for line in journal_lines.splitlines() if line.startswith("{")]


def wait(what, condition, seconds=10):
    end = time.monotonic() + seconds * SLOW
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(
                f"not after {seconds * SLOW:g} s: {what}; "
                + run("systemctl", "status", "--no-pager", "-n", "20", "ttmond.service", status=None)
            )
        time.sleep(0.2)


def ask(path):
    """A document of the local socket."""
    return json.loads(run("curl", "-sS", "--max-time", "60", "--unix-socket", SOCKET, "http://localhost" + path))


def own_dpkg():
    """dpkg with the host's packages, but not their 130,000 file names: to read them takes half a minute here."""
    if os.path.ismount("/var/lib/dpkg"):
        return
    with open("/var/lib/dpkg/status", encoding="utf-8") as f:
        status = f.read()
    for folder in ("info", "updates", "triggers"):
        os.makedirs(f"/run/dpkg/{folder}")
    with open("/run/dpkg/status", "w", encoding="utf-8") as f:
        f.write(status)
    with open("/run/dpkg/info/format", "w", encoding="ascii") as f:
        f.write("1\n")
    for stanza in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and line[0] != " ")
        if "Package" in fields:
            arch = ":" + fields["Architecture"] if fields.get("Multi-Arch") == "same" else ""
            with open(f"/run/dpkg/info/{fields['Package']}{arch}.list", "w", encoding="ascii"):
                pass
    run("mount", "--bind", "/run/dpkg", "/var/lib/dpkg")
    # Of containers: "start nothing".
    if os.path.exists("/usr/sbin/policy-rc.d"):
        os.unlink("/usr/sbin/policy-rc.d")


def dpkg(*words):
    own_dpkg()
    return run("dpkg", "--force-unsafe-io", *words, env={"DEBIAN_FRONTEND": "noninteractive"})


def is_up():
    return show("ActiveState") == "active"


def installed():
    if DEB.startswith("-"):
        raise Skip(f"no package: {DEB[1:]}")
    if not os.path.exists("/usr/sbin/ttmond"):
        dpkg("-i", DEB)
    if not is_up():
        run("systemctl", "reset-failed", "ttmond.service", status=None)
        run("systemctl", "start", "ttmond.service")


def drop_in(text):
    shutil.rmtree(DROPIN, ignore_errors=True)
    if text:
        os.makedirs(DROPIN)
        with open(DROPIN + "/test.conf", "w", encoding="ascii") as f:
            f.write("[Service]\n" + text)
    run("systemctl", "daemon-reload")


@timeout(40)
def test_install(_bench, _legacy):
    """
    Installed, enabled, started, ready when it traces; the socket is the group's, and what it may do
    is what it needs.
    """
    installed()
    eq(
        "state",
        (show("ActiveState"), show("SubState"), show("UnitFileState"), show("NRestarts")),
        ("active", "running", "enabled", "0"),
    )
    info = os.stat(SOCKET)
    group = int(run("getent", "group", "ttmon").split(":")[2])
    eq("socket", (oct(stat.S_IMODE(info.st_mode)), info.st_uid, info.st_gid), ("0o660", 0, group))
    info = os.stat(os.path.dirname(SOCKET))
    eq("its folder", (oct(stat.S_IMODE(info.st_mode)), info.st_uid, info.st_gid), ("0o750", 0, group))
    info = os.stat(SHM)
    eq("segment", (oct(stat.S_IMODE(info.st_mode)), info.st_gid), ("0o640", group))
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        mask = sum(1 << n for n in KEPT) + (1 << SYS_ADMIN if int(f.read()) > 2 else 0)
    pid = show("MainPID")
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(path, encoding="utf-8") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        eq(f"capabilities of {status['Name']}", (status["CapPrm"], status["CapEff"]), (f"{mask:016x}",) * 2)
        eq("no_new_privs, seccomp", (status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        if status["Name"] == "ttmond-hot":
            eq("policy of the hot thread", os.sched_getscheduler(int(path.split("/")[4])) & 0xFFFF, os.SCHED_RR)
    lines = messages(journal())
    true("it says that it traces", any(line["MESSAGE"].startswith("tracing the whole host") for line in lines))
    eq("priorities", {line["PRIORITY"] for line in lines if line["MESSAGE"].startswith("tracing ")}, {"6"})
    wait("a line of status", lambda: show("StatusText"))
    out = run("systemd-analyze", "verify", "/lib/systemd/system/ttmond.service", "/lib/systemd/system/ttmond.socket")
    eq("systemd-analyze verify", [line for line in out.splitlines() if "ttmon" in line and "man " not in line], [])


@timeout(40)
def test_traces(bench, legacy):
    """
    A program of another user's, in a home, whose library is replaced while it runs; then the
    figures, over the socket and TCP.
    """
    installed()
    home = "/home/ttmon-test"
    shutil.copytree(standin(""), home, symlinks=True)
    run("chown", "-R", "nobody", home)
    os.chmod(home, 0o700)
    before = ask("/v1/status")["pinned"]["pins"]
    target = bench.target(
        "setpriv",
        "--reuid",
        "nobody",
        "--regid",
        "nogroup",
        "--clear-groups",
        f"{home}/scen",
        "--wait",
        "exit",
        "5",
        env={"LD_LIBRARY_PATH": f"{home}/lib"},
    )
    wait("its library is probed", lambda: any(o["path"].startswith(home) for o in ask("/v1/probes")["objects"]))
    shutil.rmtree(home)
    target.go()
    target.finish()
    wait("five pins", lambda: ask("/v1/status")["pinned"]["pins"] == before + 5)
    eq("what is lost", sum(ask("/v1/status")["events"]["lost"].values()), 0)
    eq("by tracefs", ask("/v1/status")["uprobes"] != "multi", legacy)
    # One that was there before the service, and whose library has no name any more:
    # /proc/PID/map_files alone leads to it.
    shutil.copytree(standin(""), home, symlinks=True)
    target = bench.target(f"{home}/scen", "--wait", "exit", "3", env={"LD_LIBRARY_PATH": f"{home}/lib"})
    shutil.rmtree(home)
    run("systemctl", "restart", "ttmond.service")
    target.go()
    target.finish()
    wait("three pins", lambda: ask("/v1/status")["pinned"]["pins"] == 3)
    with urllib.request.urlopen("http://127.0.0.1:9843/metrics", timeout=30 * SLOW) as reply:
        true("metrics over TCP", b"\nttmond_" in reply.read())
    with urllib.request.urlopen("http://127.0.0.1:9843/healthz", timeout=30 * SLOW) as reply:
        eq("health", reply.read(), b"ok\n")


@timeout(20)
def test_second_one(_bench, _legacy):
    """A service by hand beside it refuses and says why; runs on one program work."""
    installed()
    done = subprocess.run(
        [TTMOND], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20 * SLOW, check=False
    )
    eq(f"exit status ({done.stderr})", done.returncode, 1)
    true(done.stderr, re.search(r"^ttmond: .*another ttmond", done.stderr, re.M))
    done = subprocess.run(
        [TTMOND, "-q", "--", "true"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=20 * SLOW,
        check=False,
    )
    eq(f"a run beside it ({done.stderr})", done.returncode, 0)
    true("the service is up", is_up())


@timeout(20)
def test_reload(_bench, _legacy):
    """The same process goes on, and systemd waits until it says so."""
    installed()
    pid = show("MainPID")
    run("systemctl", "reload", "ttmond.service")
    eq("after the reload", (show("ActiveState"), show("MainPID")), ("active", pid))
    eq("health", run("curl", "-sS", "--unix-socket", SOCKET, "http://localhost/healthz"), "ok\n")


@timeout(30)
def test_killed(_bench, _legacy):
    """SIGKILL: it is there again, in the place of the stale socket and segment."""
    installed()
    pid, inode = show("MainPID"), os.stat(SOCKET).st_ino
    run("systemctl", "kill", "-s", "KILL", "ttmond.service")
    wait("it is started anew", lambda: is_up() and show("MainPID") not in (pid, "0"))
    true("another socket", os.stat(SOCKET).st_ino != inode)
    eq("health", run("curl", "-sS", "--unix-socket", SOCKET, "http://localhost/healthz"), "ok\n")


def property_of(name):
    return int(show(name))


@timeout(60)
def test_limits(bench, _legacy):
    """The kernel holds it to what the unit says; it needs far less; killed for its memory, it is there again."""
    installed()
    group = "/sys/fs/cgroup" + show("ControlGroup")

    def limit(name):
        with open(f"{group}/{name}", encoding="ascii") as f:
            return f.read().split()

    with open("/proc/meminfo", encoding="ascii") as f:
        total = int(f.readline().split()[1]) * 1024
    true(f"memory.max {limit('memory.max')} of {total}", abs(int(limit("memory.max")[0]) - total / 4) < total / 100)
    quota, period = map(int, limit("cpu.max"))
    eq("cpu.max", quota / period, 2)
    used = int(limit("memory.current")[0])
    true(f"{used} bytes are used", 0 < used < total / 8)
    for path in glob.glob(f"/proc/{show('MainPID')}/task/*"):
        with open(path + "/comm", encoding="ascii") as f:
            if f.read() == "ttmond-hot\n":
                eq(
                    "policy of the hot thread, under a quota",
                    os.sched_getscheduler(int(path.split("/")[-1])) & 0xFFFF,
                    os.SCHED_RR,
                )
    pid, restarts = show("MainPID"), property_of("NRestarts")
    run("systemctl", "set-property", "--runtime", "ttmond.service", "MemoryMax=4M")
    wait("it is killed", lambda: show("MainPID") != pid)
    # Not before it has been tried again: what was set goes with the next start.
    run("systemctl", "set-property", "--runtime", "ttmond.service", "MemoryMax=25%")
    wait("it is started anew", lambda: is_up() and show("MainPID") not in (pid, "0"), 30)
    true("it was started by systemd", property_of("NRestarts") > restarts)
    eq("health", run("curl", "-sS", "--unix-socket", SOCKET, "http://localhost/healthz"), "ok\n")
    run("systemctl", "restart", "ttmond.service")


@timeout(60)
def test_journal(_bench, _legacy):
    """Each line is one of the unit and of the program, has a priority of its own, and no trace of how that was told."""
    installed()
    run("systemctl", "restart", "ttmond.service")
    pid = show("MainPID")

    def mine():
        return [line for line in messages(journal()) if line.get("_PID") == pid]

    wait("it says something", lambda: len(mine()) > 1)
    for line in mine():
        eq(
            "unit and program",
            (line["_SYSTEMD_UNIT"], line["SYSLOG_IDENTIFIER"], line["_COMM"]),
            ("ttmond.service", "ttmond", "ttmond"),
        )
        true(
            f"priority {line['PRIORITY']} of {line['MESSAGE']!r}",
            line["PRIORITY"] in "34567" and not re.match(r"<\d>|ttmond: ", line["MESSAGE"]),
        )
    eq("what it does", {line["PRIORITY"] for line in mine() if line["MESSAGE"].startswith("tracing ")}, {"6"})
    # What is wrong with an option is an error, and no restart mends it.
    drop_in("Environment=TTMOND_OPTIONS=--no-such-option\nEnvironmentFile=\n")
    try:
        run("systemctl", "restart", "ttmond.service", status=1)
        eq(
            "state, status, restarts",
            (show("ActiveState"), show("ExecMainStatus"), show("NRestarts")),
            ("failed", "2", "0"),
        )
        wait("it says why", lambda: [line for line in messages(journal()) if "no-such-option" in line["MESSAGE"]])
        said = [
            (line["MESSAGE"], line["PRIORITY"]) for line in messages(journal()) if "no-such-option" in line["MESSAGE"]
        ]
        eq("an error", {priority for _, priority in said}, {"3"})
    finally:
        drop_in(None)
        run("systemctl", "reset-failed", "ttmond.service", status=None)
        run("systemctl", "start", "ttmond.service")


PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000


def stop_thread(tid):
    """
    Of a process one thread alone, for good. Returns the process that does it: it ends with the
    thread, whose end it must wait for.
    """
    child = os.fork()
    if child:
        return child
    libc = ctypes.CDLL(None)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    status = 0x7F
    if not any(libc.ptrace(request, tid, None, None) for request in (PTRACE_SEIZE, PTRACE_INTERRUPT)):
        while os.WIFSTOPPED(status):
            _, status = os.waitpid(tid, WALL)
    os._exit(0)


@timeout(60)
def test_thread_hangs(_bench, _legacy):
    """Either of its threads stands still while the other runs: that is a hang like any other."""
    installed()
    drop_in("WatchdogSec=4\n")
    try:
        for name in ("ttmond-hot", "ttmond"):
            run("systemctl", "reset-failed", "ttmond.service", status=None)
            run("systemctl", "restart", "ttmond.service")
            pid = show("MainPID")
            tids = {}
            for path in glob.glob(f"/proc/{pid}/task/*"):
                with open(path + "/comm", encoding="ascii") as f:
                    tids[f.read().strip()] = int(path.split("/")[-1])
            stopper = stop_thread(tids[name])
            wait(
                f"it is started anew without its thread {name}",
                lambda pid=pid: is_up() and show("MainPID") not in (pid, "0"),
                15,
            )
            os.waitpid(stopper, 0)
        eq(
            "systemd says why",
            len(re.findall(r"ttmond.service: Watchdog timeout", run("journalctl", "--no-pager"))) >= 2,
            True,
        )
    finally:
        drop_in(None)
        run("systemctl", "restart", "ttmond.service")


@timeout(60)
def test_watchdog(_bench, _legacy):
    """One that hangs is killed and started anew; one that does not is left alone for longer than that."""
    installed()
    drop_in("WatchdogSec=4\nLimitCORE=0\n")
    try:
        run("systemctl", "restart", "ttmond.service")
        pid, restarts = show("MainPID"), show("NRestarts")
        time.sleep(10)
        eq("left alone", (show("MainPID"), show("NRestarts")), (pid, restarts))
        os.kill(int(pid), signal.SIGSTOP)
        wait("it is started anew", lambda: is_up() and show("MainPID") not in (pid, "0"), 15)
        true("systemd says why", re.search(r"ttmond.service: Watchdog timeout", run("journalctl", "--no-pager")))
    finally:
        drop_in(None)
        run("systemctl", "restart", "ttmond.service")


@timeout(40)
def test_socket_unit(_bench, _legacy):
    """
    ttmond.socket makes the socket, a client starts the service, which serves on what it was given;
    it stays when that stops.
    """
    installed()
    run("systemctl", "stop", "ttmond.service")
    eq("socket of a service that was stopped", os.path.exists(SOCKET), False)
    run("systemctl", "start", "ttmond.socket")
    group = int(run("getent", "group", "ttmon").split(":")[2])
    info = os.stat(SOCKET)
    eq("socket", (oct(stat.S_IMODE(info.st_mode)), info.st_uid, info.st_gid), ("0o660", 0, group))
    eq("the service before a client", show("ActiveState"), "inactive")
    eq(
        "health",
        run("curl", "-sS", "--max-time", str(int(30 * SLOW)), "--unix-socket", SOCKET, "http://localhost/healthz"),
        "ok\n",
    )
    eq("the same socket", os.stat(SOCKET).st_ino, info.st_ino)
    true("it is up", is_up())
    run("systemctl", "stop", "ttmond.service")
    eq("the socket stays", os.stat(SOCKET).st_ino, info.st_ino)
    run("systemctl", "stop", "ttmond.socket")
    run("systemctl", "start", "ttmond.service")


@timeout(20)
def test_port_taken(_bench, _legacy):
    """Somebody has the port: one line that says so, and no restart without an end."""
    installed()
    run("systemctl", "stop", "ttmond.service")
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 9843))
        other.listen()
        run("systemctl", "start", "ttmond.service", status=1)
        true("it says why", any("9843" in line["MESSAGE"] and line["PRIORITY"] == "3" for line in messages(journal())))
        run("systemctl", "stop", "ttmond.service")
    run("systemctl", "reset-failed", "ttmond.service", status=None)
    run("systemctl", "start", "ttmond.service")


@timeout(90)
def test_upgrades(bench, _legacy):
    """
    Two upgrades and the way back: the new program runs each time, what was configured and switched
    off stays so, programs live on.
    """
    installed()
    folder = os.path.join(os.path.dirname(DEB), "vm-deb")
    first = run("dpkg-query", "-W", "-f", "${Version}", "ttmon")
    target = bench.target(standin("scen"), "--wait", "exit", "5")
    with open("/var/lib/ttmond/kept.json", "w", encoding="ascii") as f:
        f.write("{}\n")

    def step(deb, version):
        pid = show("MainPID")
        out = dpkg("-i", "--force-confold", deb)
        eq("version", run("dpkg-query", "-W", "-f", "${Version} ${db:Status-Abbrev}", "ttmon"), f"{version} ii ")
        wait(f"it is up with {version}: {out[-300:]}", is_up)
        true("another process", show("MainPID") not in (pid, "0"))
        eq("enabled, not restarted by systemd", (show("UnitFileState"), show("NRestarts")), ("enabled", "0"))
        eq("health", run("curl", "-sS", "--unix-socket", SOCKET, "http://localhost/healthz"), "ok\n")
        eq("socket", oct(stat.S_IMODE(os.stat(SOCKET).st_mode)), "0o660")
        true("what lies in its folder is there", os.path.exists("/var/lib/ttmond/kept.json"))

    def options():
        with open("/etc/default/ttmond", encoding="ascii") as f:
            return f.read()

    step(f"{folder}/1.deb", first + "+1")
    true("new options, which nobody had changed, are there", "# Version 1" in options())
    with open("/etc/default/ttmond", "a", encoding="ascii") as f:
        f.write("# changed\n")
    step(f"{folder}/2.deb", first + "+2")
    true("changed options stay", "# changed" in options())
    true("the new unit is in use", show("Description").endswith(" 2"))
    step(DEB, first)
    true("changed options stay", "# changed" in options())
    true("the old unit is in use", not show("Description").endswith(" 2"))
    # What the administrator has switched off.
    run("systemctl", "disable", "--now", "ttmond.service")
    dpkg("-i", "--force-confold", f"{folder}/1.deb")
    eq("switched off", (show("ActiveState"), show("UnitFileState")), ("inactive", "disabled"))
    dpkg("-i", "--force-confold", DEB)
    run("systemctl", "enable", "--now", "ttmond.service")
    target.go()
    target.finish()
    os.unlink("/var/lib/ttmond/kept.json")


@timeout(40)
def test_remove(_bench, _legacy):
    """Removed: nothing runs and nothing is left but what was configured; purged: not that either."""
    installed()
    pid = show("MainPID")
    with open("/etc/default/ttmond", "a", encoding="ascii") as f:
        f.write("# changed\n")
    dpkg("-r", "ttmon")
    eq("process", os.path.exists(f"/proc/{pid}"), False)
    eq("left in /run and /dev/shm", [p for p in (SOCKET, os.path.dirname(SOCKET), SHM) if os.path.exists(p)], [])
    eq("unit", show("LoadState"), "masked" if os.path.islink("/etc/systemd/system/ttmond.service") else "not-found")
    eq("configuration", os.path.exists("/etc/default/ttmond"), True)
    # There again, as it was configured.
    dpkg("-i", DEB)
    wait("it is up again", is_up)
    with open("/etc/default/ttmond", encoding="ascii") as f:
        true("the change is still there", "# changed" in f.read())
    dpkg("--purge", "ttmon")
    left = [
        p
        for p in (
            "/etc/default/ttmond",
            "/var/lib/ttmond",
            "/usr/sbin/ttmond",
            "/usr/bin/ttmon",
            "/usr/include/ttmon",
            "/usr/share/doc/ttmon",
        )
        if os.path.exists(p)
    ]
    eq(
        "left after the purge",
        left + glob.glob("/etc/systemd/system/**/ttmond*", recursive=True) + glob.glob("/lib/systemd/system/ttmond*"),
        [],
    )
    eq("the unit after the purge", show("LoadState"), "not-found")
    true("ttmon beside it works", "ttmon" in run(TTMON, "--help"))
