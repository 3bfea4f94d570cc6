# SPDX-License-Identifier: GPL-2.0-only
"""
t_files.py: files and processes that let whoever looks at them wait, or work, for as long as their
owner likes. ttmond has to look at them: they are mapped executable. Meanwhile the socket answers,
an innocent program beside it is seen whole, new mappings are not lost, and what could not be read
is said: in /v1/probes, in the log (once), as a metric, and as a gap of the process that has it
mapped.
"""
import http.client
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

from e2e import PATIENCE, SLOW, STANDIN, eq, last_json, load_db, long, process, standin, timeout, true
from health import Health, check
from hungfs import GETATTR, HungFs, MARK, OPEN, READ
from tt_host import api, retry

RUNTIME = os.path.join(STANDIN, "lib", "libcudart.so.13")


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


class Innocent(threading.Thread):
    """
    A program that copies, again and again, with a library that has its probes: all copies of its
    own book are in the database.
    """

    def __init__(self, bench):
        super().__init__(daemon=True)
        self.bench, self.over, self.books, self.error = bench, threading.Event(), [], None
        os.makedirs(bench.path("innocent"))
        shutil.copy(RUNTIME, bench.path("innocent"))

    def once(self):
        env = dict(os.environ, LD_LIBRARY_PATH=self.bench.path("innocent"), STANDIN_LINGER=str(int(200 * SLOW)))
        done = subprocess.run([standin("scen"), "copies"], env=env, capture_output=True, text=True, check=True)
        return last_json(done.stdout)

    def run(self):
        try:
            while not self.over.is_set():
                self.books.append(self.once())
        except (subprocess.CalledProcessError, AssertionError) as e:
            self.error = e

    def lost(self, db):
        """Copies that the database has not."""
        true(f"the program itself: {self.error}", not self.error and self.books)
        lost = 0
        for book in self.books:
            proc = process(db, book["pid"])
            for direction, mems in book["transfers"].items():
                had = sum(m[0] for m in (proc["transfers"] or {}).get(direction, {}).values())
                lost += max(0, sum(m[0] for m in mems.values()) - had)
        return lost


# What maps a file executable and stays: argv is the files.
MAPPER = """
import ctypes, mmap, os, sys
maps = []
for path in sys.argv[1:]:
    fd = os.open(path, os.O_RDONLY)
    maps.append(mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
print("ready", flush=True)
sys.stdin.readline()
"""


class Attacked:
    """
    The service, an innocent program, somebody who asks for its health; then what came of it.
    """

    def __init__(self, bench, what):
        self.bench, self.what = bench, what

    def __enter__(self):
        bench = self.bench
        self.daemon = bench.daemon(
            *bench.service_args(),
            "--dump-db",
            bench.path("db.json"),
            "--quiet",
            "--log-level",
            "info",
            env={MARK: bench.dir},
        )
        self.sock = bench.path("sock")
        self.innocent = Innocent(bench)
        self.innocent.once()
        retry(
            10,
            lambda: eq(
                "the innocent program's library",
                [len(o["probes"]) > 0 for o in self.rows(bench.path("innocent"))],
                [True],
            ),
        )
        self.cpu = self.cpu_s()
        self.health = Health(bench, self.sock, self.daemon.proc.pid)
        self.innocent.start()
        return self

    def cpu_s(self):
        """Of the daemon and its helpers."""
        conn = Unix(self.sock)
        conn.request("GET", "/metrics")
        for line in conn.getresponse().read().decode().splitlines():
            if line.startswith("process_cpu_seconds_total "):
                return float(line.split()[1])
        raise AssertionError("no process_cpu_seconds_total")

    def run(self, *files, code=MAPPER, user=None):
        """A program that does this to these files, until the end of the test."""
        wrap = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        proc = subprocess.Popen(
            [*wrap, sys.executable, "-c", code, *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.bench.procs.append(proc)
        eq("the attacker", proc.stdout.readline().split()[:1], [b"ready"])
        return proc

    def metric(self, name):
        conn = Unix(self.sock)
        conn.request("GET", "/metrics")
        for line in conn.getresponse().read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name}")

    def rows(self, folder):
        """Of /v1/probes."""
        return [o for o in api(self.sock, "/v1/probes")["objects"] if o["path"].startswith(folder)]

    def end(self):
        """(the database, CPU seconds that it took). The database is held against the innocent program's books."""
        self.innocent.over.set()
        self.innocent.join()
        worst, own = self.health.worst()
        cpu = self.cpu_s() - self.cpu
        self.daemon.stop()
        db = load_db(self.bench.path("db.json"))
        lost = self.innocent.lost(db)
        print(
            f"attack: {self.what}: worst /healthz {worst:.0f} ms, {max(own, 0):.0f} ms more than a plain process, "
            f"lost of an innocent program beside it {lost}; "
            f"{cpu:.1f} s of CPU",
            file=sys.stderr,
        )
        eq("copies lost of an innocent program", lost, 0)
        check(self.what, worst, own)
        true("records of new mappings were lost", "records of new mappings were lost" not in self.daemon.stderr())
        return db, cpu

    def __exit__(self, kind, *_):
        self.innocent.over.set()
        self.health.close()


def hangs(bench, what, opcode, files=1, seconds=3.0):
    """Files of a file system that does not answer."""
    with open(RUNTIME, "rb") as f:
        content = f.read()
    with Attacked(bench, what) as at, HungFs(bench.path("hung"), content, {opcode}) as fs:
        paths = [os.path.join(fs.folder, str(i)) for i in range(files)]
        mapper = at.run(*paths)
        true("an innocent new library has its probes while others hang", first_contact(at))
        retry(
            10,
            lambda: eq(
                "rows of files that are not read",
                len([o for o in at.rows(fs.folder) if o["unread"] and "in time" in o["error"]]),
                files,
            ),
        )
        true("no metric says so", at.metric("ttmond_files_unread") >= files)
        time.sleep(seconds)
        db, _ = at.end()
        eq("gaps of the process that has them mapped", len(unread(db, mapper.pid)), files)


def unread(db, pid):
    """Gaps of this process for files that nobody could read."""
    return [g for g in db["completeness"]["knowledge"] if g["pid"] == pid and g["why"] == "file not read"]


def first_contact(at):
    """A new copy of a library, mapped by a program of nobody's: how soon are its probes in?"""
    folder = at.bench.path("new")
    os.makedirs(folder)
    path = shutil.copy(RUNTIME, folder)
    proc = at.run(path)

    def probed():
        rows = [o for o in at.rows(folder) if any(p["state"] == "attached" for p in o["probes"])]
        eq("probed", len(rows), 1)

    retry(2, probed)
    proc.kill()
    return True


@timeout(60)
def test_read_that_hangs(bench):
    hangs(bench, "a file whose reads hang", READ)


@timeout(60)
def test_open_that_hangs(bench):
    hangs(bench, "files that cannot be opened", OPEN, files=3)


@timeout(60)
def test_stat_that_hangs(bench):
    """The kernel asks the server for a file's size and times again: this one says that they are old at once."""
    hangs(bench, "a file whose attributes hang", GETATTR)


@long
@timeout(300)
def test_many_that_hang(bench):
    hangs(bench, "100 files that hang", READ, files=100, seconds=30)


@timeout(60)
def test_file_that_answers_late(bench):
    """What hung is read after all: its probes go in, the row says so, and the gap is that of any library."""
    with open(RUNTIME, "rb") as f:
        content = f.read()
    with Attacked(bench, "a file that answers late") as at:
        fs = HungFs(bench.path("hung"), content, {READ}, seconds=3.0)
        try:
            mapper = at.run(os.path.join(fs.folder, "1"))
            retry(5, lambda: eq("rows", [o["unread"] for o in at.rows(fs.folder)], [True]))
            retry(
                10,
                lambda: true(
                    "no probes", any(p["state"] == "attached" for o in at.rows(fs.folder) for p in o["probes"])
                ),
            )
            eq("rows", [o["unread"] for o in at.rows(fs.folder)], [False])
            db, _ = at.end()
            eq("gaps", unread(db, mapper.pid), [])
            windows = [
                g for g in db["completeness"]["knowledge"] if g["pid"] == mapper.pid and g["why"] == "coverage gap"
            ]
            true(
                f"windows {windows}", len(windows) == 1 and int(windows[0]["to_ns"]) - int(windows[0]["from_ns"]) > 5e8
            )
        finally:
            at.daemon.proc.kill()
            fs.close()


@timeout(60)
def test_file_system_of_a_user(bench):
    """
    What a user's own program serves is not probed: the kernel would read it with a lock that every
    fork() waits for.
    """
    with open(RUNTIME, "rb") as f:
        content = f.read()
    with Attacked(bench, "a file system of a user's own program") as at, HungFs(
        bench.path("hung"), content, set(), uid=65534
    ) as fs:
        mapper = at.run(os.path.join(fs.folder, "1"))
        retry(
            5,
            lambda: eq(
                "rows", [(o["unread"], "a user's program" in o["error"]) for o in at.rows(fs.folder)], [(True, True)]
            ),
        )
        db, _ = at.end()
        eq("gaps", len(unread(db, mapper.pid)), 1)


def sparse(path, table):
    """
    An ELF file of some 16 KiB with a string table of so many bytes, which is a hole: 64 MiB of
    symbols that name nothing follow.
    """
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 8192, 0, 64, 56, 1, 64, 4, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 4096, 4096, 4096)
    at = 16384
    sections = [
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at, table, 0, 0, 1, 0),
        struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, at, 24 * 4096, 1, 0, 8, 24),
        struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, at, 24 * 4096, 1, 0, 8, 24),
    ]
    with open(path, "wb") as f:
        f.write(head + load)
        f.seek(8192)
        f.write(b"".join(sections))
        f.seek(at)
        # A name that is wanted makes the reader go through the symbols too.
        f.write(b"\0cudaMalloc\0")
        f.truncate(at + table)
    os.chmod(path, 0o755)


@timeout(90)
def test_sparse_files(bench):
    """
    20 files of a few blocks with 512 MiB of string table each: 2.5 s of CPU a file, and 50 s
    without an answer, where holes are read.
    """
    folder = bench.path("sparse")
    os.mkdir(folder)
    files = [os.path.join(folder, f"{i}.so") for i in range(20)]
    for path in files:
        sparse(path, 512 << 20)
        true("the file is not sparse", os.stat(path).st_blocks < 64)
    with Attacked(bench, "20 sparse files") as at:
        at.run(*files)
        true("an innocent new library has its probes beside them", first_contact(at))
        retry(20, lambda: true("they are still being read", api(at.sock, "/v1/status")["files"]["queued"] == 0))
        time.sleep(1)
        _, cpu = at.end()
        true(f"{cpu:.1f} s of CPU", cpu < 3)


@timeout(60)
def test_command_whose_library_hangs(bench):
    """
    -- CMD: what it maps hangs. It goes on when its keeper says so, its other libraries are probed,
    and what was not known is said.
    """
    with open(RUNTIME, "rb") as f:
        content = f.read()
    with HungFs(bench.path("hung"), content, {READ}) as fs:
        begun = time.monotonic()
        out, db, daemon = bench.trace(
            [
                sys.executable,
                "-c",
                MAPPER + "import ctypes\nctypes.CDLL(os.environ['RUNTIME']).cudaFree(None)\nprint(os.getpid())",
                os.path.join(fs.folder, "1"),
            ],
            env={"RUNTIME": RUNTIME, MARK: bench.dir},
        )
        took = time.monotonic() - begun
        pid = int(out.split()[-1])
        true(f"{took:.1f} s", took < 8 * PATIENCE)
        true("nothing says that a mapping went on", "went on before their probes were in" in daemon.stderr())
        eq("gaps", len(unread(db, pid)), 1)
        eq("complete", db["completeness"]["complete"], False)
        print(f"attack: -- CMD whose library hangs: {took:.1f} s in all", file=sys.stderr)


@timeout(60)
def test_library_that_is_replaced(bench):
    """
    Written over four times a second, with all its functions: probes go out and in again each time,
    which waits for the kernel.
    """
    folder = bench.path("replaced")
    os.makedirs(folder)
    path = shutil.copy(RUNTIME, folder)
    with Attacked(bench, "a library that is written over four times a second") as at:
        at.run(path)
        retry(10, lambda: true("probed", any(p["state"] == "attached" for o in at.rows(folder) for p in o["probes"])))
        for _ in range(20):
            shutil.copy(RUNTIME, path)
            time.sleep(0.25)
        at.end()
        true("it was not replaced", at.daemon.stderr().count("was overwritten") > 5)
