# SPDX-License-Identifier: GPL-2.0-only
"""ttmon bugreport: what is in the archive, and with --redact what is not."""
import contextlib
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import time
import zlib
from collections import Counter

from compare import Comparison, pair_sum
from e2e import PATIENCE, SLOW, TTMON, TTMOND, Skip, alone, eq, load_db, standin, timeout, true

# Of the program, the folders it is in, its argument, and its cgroup. comm is cut after 15 characters.
SECRETS = (b"zanzibar-prog", b"quagga-folder", b"okapi-argument", b"numbat-group")


def cgroup_root():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            head, _, tail = line.partition(" - ")
            if tail.startswith("cgroup2 "):
                return head.split()[4]
    return None


@contextlib.contextmanager
def cgroup():
    """A cgroup of its own with a name that gives itself away; None where there is no cgroup2."""
    root = cgroup_root()
    path = root and os.path.join(root, f"numbat-group-{os.getpid()}")
    try:
        if path:
            os.mkdir(path)
    except OSError:
        path = None
    try:
        yield path
    finally:
        for _ in range(100):
            if not path or not os.path.exists(path):
                break
            with contextlib.suppress(OSError):
                os.rmdir(path)
            time.sleep(0.05)


def secret_ledger(bench, group):
    """The ledger under another name, waiting to be told to go."""
    folder = bench.path("quagga-folder")
    os.mkdir(folder)
    shutil.copy(standin("ledger"), f"{folder}/zanzibar-program")
    target = bench.target(
        f"{folder}/zanzibar-program",
        "--calls",
        "5000",
        "--out",
        f"{folder}/okapi-argument.json",
        "--wait",
        env={"LD_LIBRARY_PATH": standin("lib")},
        wait_ready=False,
    )
    if group:
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(target.pid))
    eq("first line", target.line().split()[:1], ["ready"])
    return target, f"{folder}/okapi-argument.json"


def bugreport(bench, *args, status=0):
    done = subprocess.run(
        [TTMON, "bugreport", *args], capture_output=True, text=True, check=False, cwd=bench.dir, timeout=120 * PATIENCE
    )
    eq(f"status of ttmon bugreport {args} ({done.stdout} {done.stderr})", done.returncode, status)
    return done.stdout


def nothing_left(bench, out):
    left = [p for p in glob.glob(out + ".*") if p != out]
    eq("left beside the archive", left, [])
    eq("mode of the archive", oct(os.stat(out).st_mode & 0o777), oct(0o600))


def unpack(path):
    """{name: bytes} of the archive."""
    files = {}
    with tarfile.open(path, "r:gz") as tar:
        for member in tar.getmembers():
            eq("owner in the archive", (member.uname, member.uid), ("root", 0))
            if member.isfile():
                files[os.path.basename(member.name)] = tar.extractfile(member).read()
    return files


def inflate(recording):
    """The entries of a recording as bytes: names stand in them as they are."""
    at, raw = int.from_bytes(recording[20:24], "little"), []
    while at < len(recording):
        kind, _, size, _ = (int.from_bytes(recording[at + i : at + i + 4], "little") for i in (0, 4, 8, 12))
        at += 16
        if kind == 1:
            raw.append(zlib.decompress(recording[at : at + size]))
        at += size
    return b"".join(raw)


def secrets_in(files):
    everything = dict(files)
    everything["recording.rec"] = inflate(files["recording.rec"])
    return {s for s in SECRETS for name, data in everything.items() if s in data or s in name.encode()}


def traced_report(bench, *args):
    """A report with a recording of the ledger's run: (files, ledger's book, database of its replay, says stdout)."""
    sock, out = bench.path("sock"), bench.path("report.tar.gz")
    with cgroup() as group:
        target, book = secret_ledger(bench, group)
        # A second one, so that the daemon stays when the first has ended.
        stays = bench.target("sleep", "300", wait_ready=False)
        daemon = bench.daemon("--socket", sock, "--pid", str(target.pid), "--pid", str(stays.pid), "--cpu", "off")
        said = []
        thread = threading.Thread(
            target=lambda: said.append(
                bugreport(bench, "--record", str(round(5 * SLOW)), "--socket", sock, "-o", out, *args)
            )
        )
        thread.start()
        end = time.monotonic() + 60 * PATIENCE
        while not any(
            "tracing " in open(p, encoding="utf-8", errors="replace").read()
            for p in glob.glob(f"{out}.*/**/recording.log", recursive=True)
        ):
            true("the recording does not begin", thread.is_alive() and time.monotonic() < end)
            time.sleep(0.05)
        target.go()
        eq("last line", target.line(60), "done\n")
        # Its command line and cgroup are read from /proc while it is there.
        time.sleep(2)
        target.go()
        target.finish()
        thread.join()
        true("no report", said)
        daemon.stop(signal.SIGINT)
    nothing_left(bench, out)
    files = unpack(out)
    with open(bench.path("x.rec"), "wb") as f:
        f.write(files["recording.rec"])
    replay = bench.daemon("--quiet", "--replay", bench.path("x.rec"), "--dump-db", bench.path("db.json"), wait=False)
    replay.wait(0)
    with open(book, encoding="utf-8") as f:
        return files, json.load(f), load_db(bench.path("db.json")), said[0]


def all_copies(transfers):
    return pair_sum(pair for mems in transfers.values() for pair in mems.values())


def holds(files, book, db):
    """The recording is whole, and its sums are those of the program's own book."""
    # Not by kind of memory: on a busy host a program's mappings may be read only after its first copies.
    compared = Comparison(book, db, True)
    proc = compared.process()
    true(f"the process is not in it: {compared.diffs}", proc)
    compared.errors(proc)
    for name, wanted in (
        ("allocs", book["allocs"]),
        ("frees", book["frees"]),
        ("pins", book["pins"]),
        ("pinned_peak_pages", book["peak_pages"]),
    ):
        compared.check(name, proc[name], wanted)
    compared.check("copies and bytes", all_copies(proc["transfers"]), all_copies(book["transfers"]))
    got = Counter(
        (a["addr"], a["size"], a["fn"]) for a in db["allocations"] if a["pid"] == book["pid"] and a["method"] != "mmap"
    )
    compared.check("allocations", got, Counter((a["addr"], a["size"], a["fn"]) for a in book["allocations"]))
    true(f"{len(compared.diffs)} differences, the first: {compared.diffs[:1]}", not compared.diffs)
    for name in ("status.json", "probes.json", "families.json", "devices.json"):
        json.loads(files[name])
    true("no metrics", b"ttmond_build_info{" in files["metrics.txt"])
    versions = files["versions.txt"].decode()
    true(
        f"versions.txt: {versions}",
        versions.startswith("ttmon ") and "\nttmond " in versions and "\nLinux " in versions,
    )
    true("no libbpf in versions.txt", "libbpf" in versions or os.environ.get("STATIC") == "1")
    true("settings.txt", b"perf_event_paranoid: " in files["settings.txt"])


@alone("the recording is made by a ttmond with the host's own socket and segment")
@timeout(240)
def test_whole(bench):
    """Without --redact the names are there, and the recording is that of the workload."""
    with cgroup() as group:
        expected = set(SECRETS) if group else set(SECRETS[:3])
    files, book, db, said = traced_report(bench)
    holds(files, book, db)
    eq("names in the archive", secrets_in(files), expected)
    true("the program is not in the metrics", b'comm="zanzibar-progra"' in files["metrics.txt"])
    true(f"it does not say that there are names in it: {said!r}", "--redact" in said)
    true("no log of the recording", b"tracing " in files["recording.log"])


@alone("the recording is made by a ttmond with the host's own socket and segment")
@timeout(240)
def test_redacted(bench):
    """With it none of them is, nor the host's name, and the recording replays with the same sums."""
    files, book, db, _ = traced_report(bench, "--redact")
    holds(files, book, db)
    eq("names in the archive", secrets_in(files), set())
    raw = inflate(files["recording.rec"])
    host = socket.gethostname()
    true("the host's name is in the recording", host in ("", "localhost") or db["host"]["hostname"] != host)
    true("no pseudonym in the recording", b"/x" in raw)
    proc = next(p for p in db["processes"] if p["pid"] == book["pid"])
    # The program's name in the metrics is the one in the recording.
    true("comm is no pseudonym", len(proc["comm"]) == 13 and proc["comm"][0] == "x")
    true("another pseudonym in the metrics", f'comm="{proc["comm"]}"'.encode() in files["metrics.txt"])
    true(
        "the libraries are not to be recognised",
        any(o["path"].endswith("libcudart.so.13") for o in json.loads(files["probes.json"])["objects"]),
    )
    probes = [p for o in json.loads(files["probes.json"])["objects"] for p in o["probes"]]
    true("CUDA's functions are not to be recognised", any(p["symbol"] == "cudaHostAlloc" for p in probes))
    for name in ("kernel-log.txt", "journal.txt", "recording.log"):
        true(f"{name} is free text", name not in files)
    true("errors.txt does not say what was left out", b"kernel-log.txt: left out" in files["errors.txt"])


def test_without_service(bench):
    """The report is made all the same, says what it lacks, and the exit status is 1."""
    out = bench.path("r.tar.gz")
    said = bugreport(bench, "-o", out, "--socket", bench.path("none"), status=1)
    true(f"not one line: {said!r}", said.count("\n") == 1 and "errors.txt" in said)
    nothing_left(bench, out)
    files = unpack(out)
    for name in ("status.json", "metrics.txt"):
        true(f"errors.txt lacks {name}", f"{name}: ".encode() in files["errors.txt"])
        true(f"{name} is there", name not in files)
    true("no versions", files["versions.txt"])


def refused(bench, *args):
    """One line on stderr that does not say less than why, exit status 2, and nothing left."""
    done = subprocess.run(
        [TTMON, "bugreport", *args], capture_output=True, text=True, check=False, cwd=bench.dir, timeout=60 * PATIENCE
    )
    eq(f"status of bugreport {args}", done.returncode, 2)
    eq(f"lines ({done.stderr})", done.stderr.count("\n"), 1)
    true(done.stderr, done.stderr.startswith(("ttmon: ", "ttmon bugreport: ")))
    return done.stderr


def test_refused(bench):
    before = sorted(os.listdir(bench.dir))
    true("no folder", "No such file" in refused(bench, "-o", bench.path("no/r.tar.gz")))
    os.mkdir(bench.path("d"))
    true("a folder", "not a regular file" in refused(bench, "-o", bench.path("d")))
    true("a device", "not a regular file" in refused(bench, "-o", "/dev/null"))
    for seconds in ("0", "601", "x", "1s"):
        true("seconds", "1 to 600" in refused(bench, "--record", seconds))
    os.rmdir(bench.path("d"))
    eq("left", sorted(os.listdir(bench.dir)), before)


@alone("the recording is made by a ttmond with the host's own socket and segment")
def test_interrupted(bench):
    """No archive, no folder, no daemon is left."""
    out = bench.path("r.tar.gz")
    proc = subprocess.Popen(
        [TTMON, "bugreport", "-o", out, "--record", "600", "--socket", bench.path("none")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=bench.dir,
    )
    bench.procs.append(proc)
    end = time.monotonic() + 20 * PATIENCE
    while not glob.glob(f"{out}.*/**/recording.rec.tmp.*", recursive=True):
        true("no recording begins", proc.poll() is None and time.monotonic() < end)
        time.sleep(0.02)
    proc.send_signal(signal.SIGINT)
    _, err = proc.communicate(timeout=70 * PATIENCE)
    eq("status", proc.returncode, 2)
    true(f"it says {err!r}", err.startswith("ttmon: ") and err.count("\n") == 1)
    eq("left", glob.glob(out + "*"), [])


def test_no_ttmond(bench):
    """Without a ttmond, and for one who may not trace: no recording, and the report is there."""
    if not os.path.exists(TTMOND):
        raise Skip("no ttmond")
    alone = bench.path("ttmon")
    shutil.copy(TTMON, alone)
    out = bench.path("r.tar.gz")
    done = subprocess.run(
        [alone, "bugreport", "-o", out, "--record", "1", "--socket", bench.path("none")],
        capture_output=True,
        text=True,
        check=False,
        cwd=bench.dir,
        env={"PATH": "/usr/bin:/bin"},
        timeout=60 * PATIENCE,
    )
    eq(f"status ({done.stderr})", done.returncode, 1)
    files = unpack(out)
    true("errors.txt", b"recording.rec: cannot start ttmond" in files["errors.txt"])
    true("versions.txt", b"ttmond: cannot be run" in files["versions.txt"])
