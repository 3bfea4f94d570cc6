# SPDX-License-Identifier: GPL-2.0-only
"""
It always starts: what others have put into its places, or left there, or a full or missing file
system, is said and taken up later.
"""
import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from e2e import PATIENCE, TTMON, Skip, eq, free_port, last_json, load_db, process, standin, true


def wait_for(what, check, seconds=15):
    end = time.monotonic() + seconds * PATIENCE
    while not check():
        true(f"{what}: not after {seconds * PATIENCE:g} s", time.monotonic() < end)
        time.sleep(0.1)


class Apart:
    """A service that sees another file system where it publishes, in a mount namespace of its own."""

    def __init__(self, bench, mount, *args, first="", wrap=()):
        self.shm, self.sock = bench.path("shm"), bench.path("sock")
        os.mkdir(self.shm)
        script = f'mount -t tmpfs {mount} none {self.shm} && {first or "true"} && exec "$@" || exit 99'
        self.daemon = bench.daemon(
            "--socket",
            self.sock,
            "--shm-root",
            self.shm,
            *args,
            wrap=["unshare", "-m", "sh", "-c", script, "sh", *wrap],
        )

    def inside(self, *command):
        done = subprocess.run(
            ["nsenter", "-m", "-t", str(self.daemon.proc.pid), *command], capture_output=True, text=True, check=False
        )
        eq(f"{command}: {done.stderr}", done.returncode, 0)
        return done.stdout

    def status(self):
        done = subprocess.run(
            [TTMON, "status", "--json", "--socket", self.sock], capture_output=True, text=True, check=False
        )
        status = json.loads(done.stdout)
        # It is 1 while something is degraded or was lost.
        eq(
            f"ttmon status: {done.stderr}",
            (done.stderr, done.returncode in ((1,) if status["degraded"] else (0, 1))),
            ("", True),
        )
        return status

    def lacks(self):
        return {x["part"]: x["why"] for x in self.status()["degraded"]}

    def degraded_by(self, word):
        lacks = self.lacks()
        true(f"degraded: {lacks}", word in lacks.get("segment", ""))
        self.daemon.wait_line(f"DEGRADED: .*{word}")
        wait_for("slots are closed", lambda: self.status()["slots"]["unpublished"])
        done = subprocess.run([TTMON, "status", "-vs", self.sock], capture_output=True, text=True, check=False)
        true(
            f"ttmon status says {done.stdout[:300]!r}",
            "without shared-memory statistics since" in done.stdout and word in done.stdout,
        )
        true(
            f"ttmon status says {done.stdout[:800]!r}",
            re.search(r"closed, 0 published, [\d,]+ not published", done.stdout),
        )

    def taken_up(self):
        wait_for("the segment is taken up", lambda: not self.lacks())
        self.daemon.wait_line("no longer without shared-memory statistics")
        size = int(self.inside("stat", "-c", "%s", f"{self.shm}/ttmon.v1"))
        true(f"a segment of {size} bytes", size > 1 << 20)
        self.published()
        wait_for("status counts them", lambda: self.status()["slots"]["published"])
        slots = self.status()["slots"]
        true(
            f"slots: {slots}",
            slots["unpublished"] and slots["closed"] == slots["published"] + slots["unpublished"] + slots["dropped"],
        )

    def published(self):
        """Slots go into it: the word that counts them grows."""

        def count():
            done = subprocess.run(
                ["nsenter", "-m", "-t", str(self.daemon.proc.pid), "head", "-c", "4096", f"{self.shm}/ttmon.v1"],
                capture_output=True,
                check=True,
            )
            return done.stdout

        before = count()
        wait_for("slots are published", lambda: count() != before)


def test_segment_of_somebody_else(bench):
    """Anybody may make /dev/shm/ttmon.v1. It stays what it is, and when it is gone the segment is made."""
    service = Apart(bench, "-o size=64m", first=f"echo mine > {bench.path('shm')}/ttmon.v1")
    service.degraded_by("no segment of ttmond")
    eq("the file", service.inside("cat", f"{service.shm}/ttmon.v1"), "mine\n")
    service.inside("rm", f"{service.shm}/ttmon.v1")
    service.taken_up()
    service.daemon.stop()


def test_segment_without_room(bench):
    service = Apart(bench, "-o size=64k")
    service.degraded_by("No space left")
    service.inside("mount", "-o", "remount,size=64m", service.shm)
    service.taken_up()
    service.daemon.stop()


def test_segment_on_a_read_only_file_system(bench):
    service = Apart(bench, "-o ro")
    service.degraded_by("Read-only")
    service.inside("mount", "-o", "remount,rw", service.shm)
    service.taken_up()
    service.daemon.stop()


def test_zombie_predecessor(bench):
    """A service that was killed, and that whoever started it has not waited for."""
    args = bench.service_args()
    first = bench.daemon(*args)
    os.kill(first.proc.pid, signal.SIGKILL)
    os.waitid(os.P_PID, first.proc.pid, os.WEXITED | os.WNOWAIT)
    true("it left no segment", os.path.exists(bench.path("ttmon.v1")))
    left = os.stat(bench.path("ttmon.v1")).st_ino
    second = bench.daemon(*args)
    true(f"it is degraded: {second.stderr()}", "DEGRADED" not in second.stderr())
    true("the segment is still the first one's", os.stat(bench.path("ttmon.v1")).st_ino != left)
    second.stop()
    first.proc.wait()


def test_lock_of_a_group_member(bench):
    """The group may enter the folder of the socket. Whoever may open it can lock it."""
    run = bench.path("run")
    os.mkdir(run, 0o750)
    fd = os.open(run, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    daemon = bench.daemon("--socket", f"{run}/sock", "--shm-root", bench.dir)
    lock = os.stat(f"{run}/.sock.lock")
    eq("who may open the lock", (lock.st_uid, lock.st_mode & 0o7777), (0, 0o600))
    daemon.stop()
    os.close(fd)


def test_record_on_a_full_disk(bench):
    """The trace goes on, and the end says that the recording is cut: of a command, of a process and of the service."""
    disk, ledger = bench.path("disk"), [standin("ledger"), "--calls", "20000", "--out", bench.path("book.json")]
    os.mkdir(disk)
    wrap = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=64k none {disk} && exec "$@" || exit 99', "sh"]
    daemon = bench.daemon("--quiet", "--record", f"{disk}/x.rec", cmd=ledger, wait=False, wrap=wrap)
    daemon.wait(1, 60)
    true(f"it says {daemon.stderr()!r}", "x.rec was not written whole: No space left on device" in daemon.stderr())
    target = bench.target(ledger[0], "--wait", *ledger[1:])
    daemon = bench.daemon("--quiet", "--record", f"{disk}/y.rec", "--pid", str(target.pid), wrap=wrap)
    target.go()
    target.finish(None, seconds=60)
    daemon.wait(1, 60)
    true(f"it says {daemon.stderr()!r}", "y.rec was not written whole: No space left on device" in daemon.stderr())


SQUATTER = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
sys.stdin.readline()
"""


def test_port_of_somebody_else(bench):
    """
    Any user may listen on a port. The service traces all the same, says who has it, the process to
    root alone, and serves it when it is free.
    """
    port = free_port()
    squatter = bench.target(sys.executable, "-c", SQUATTER, str(port))
    service = Apart.__new__(Apart)
    service.sock = bench.path("sock")
    service.daemon = bench.daemon(*bench.service_args(), "--listen-address", f"127.0.0.1:{port}")
    true(f"degraded: {service.lacks()}", f"127.0.0.1:{port}: the port is in use" in service.lacks().get("tcp", ""))
    service.daemon.wait_line("DEGRADED: without metrics over TCP.*; user 65534 has it")
    holder = rf"process {squatter.pid} \(\S+\)"
    service.daemon.wait_line(f"without metrics over TCP because of {holder}")
    true(f"root is told: {service.lacks()}", re.search(f"user 65534 has it, in {holder}$", service.lacks()["tcp"]))
    os.chmod(bench.dir, 0o755)
    os.chmod(service.sock, 0o666)
    done = subprocess.run(
        [
            "setpriv",
            "--reuid=1",
            "--regid=1",
            "--clear-groups",
            bench.for_everybody(TTMON),
            "status",
            "--json",
            "-s",
            service.sock,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    told = {x["part"]: x["why"] for x in json.loads(done.stdout)["degraded"]}
    true(f"another user is told: {told}", told["tcp"].endswith("user 65534 has it"))
    squatter.go()
    squatter.finish()
    wait_for("the port is taken up", lambda: not service.lacks())
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * PATIENCE)
    conn.request("GET", "/metrics")
    page = conn.getresponse().read().decode()
    true(
        "degraded in the metrics",
        "ttmond_build_info" in page and not re.search(r"^ttmond_degraded\{.*\} 1", page, re.M),
    )
    conn.close()
    service.daemon.stop()


def without_tracefs(*more):
    return [
        "unshare",
        "-m",
        "sh",
        "-c",
        'umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug 2>/dev/null; exec "$@"',
        "sh",
        *more,
    ]


def test_no_tracefs(bench):
    """Nobody has mounted the file system of tracepoints: it is mounted for ttmond alone."""
    for env in ({}, {"TTMOND_NO_UPROBE_MULTI": "1"}):
        daemon = bench.daemon(
            "--dump-db",
            bench.path("db.json"),
            cmd=[standin("scen"), "exit", "3"],
            wait=False,
            wrap=without_tracefs(),
            env=env,
        )
        daemon.wait()
        db = load_db(bench.path("db.json"))
        eq(f"complete: {db['completeness']}", db["completeness"]["complete"], True)
        eq("pins", process(db, last_json(daemon.stdout())["pid"])["pins"], 3)


def test_no_tracefs_and_no_right_to_mount(bench):
    """A service that was asked for mmap goes on without, and takes it up when somebody has mounted it."""
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    mounts = subprocess.run(["findmnt", "-n", "-t", "tracefs"], capture_output=True, check=False)
    if mounts.returncode:
        raise Skip("tracefs is not mounted here")
    wrap = without_tracefs("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    daemon = bench.daemon(*bench.service_args(), "--trace-mmap", wrap=wrap)
    service = Apart.__new__(Apart)
    service.daemon, service.sock = daemon, bench.path("sock")
    true(f"degraded: {service.lacks()}", "tracefs" in service.lacks().get("mmap", ""))
    eq("the family", service.status()["families"]["mmap"]["state"], "off")
    service.inside("mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing")
    wait_for("mmap is taken up", lambda: not service.lacks())
    wait_for("the family is on", lambda: service.status()["families"]["mmap"]["state"] == "on")
    daemon.stop()
