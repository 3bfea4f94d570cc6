# SPDX-License-Identifier: GPL-2.0-only
"""
`ttmon smi` on trees of sysfs and procfs as tt-kmd makes them, and on files written here from the
documented layouts.
"""
import contextlib
import fcntl
import json
import mmap
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import types
import unicodedata

from e2e import PATIENCE, TOP, TTMON, alone, eq, true

sys.path.insert(0, os.path.join(TOP, "tests", "standin"))
import tt_tree  # noqa: E402

GIB, MIB = 1 << 30, 1 << 20
DEAD = 4194303  # one below the highest pid there is: nobody
TYPES = ["dram", "l1", "l1_small", "trace", "cb", "kernel"]
WORMHOLE_L1 = {"n150": 72 * 1499136, "n300": 64 * 1499136, "galaxy": 80 * 1499136}


def image(key, version, procs=(), totals=None, refs=1, device=0, stamp=None, flags=None):
    """A file as facts/tenstorrent.md 1.2 has it. procs: (pid, name, {type: bytes}). flags: ttmond's mark with them."""
    first = version == 1
    types = TYPES if first else TYPES[:5]
    totals = totals or {t: sum(figures.get(t, 0) for _, _, figures in procs) for t in types}
    stamp = time.time_ns() if stamp is None else stamp
    data = bytearray(9280 if first else 8576)
    ids = (key >> 8, key & 0xFF) if first else (0, key)
    struct.pack_into("<IIQI4xQQi", data, 0, version, len(procs), stamp, refs, *ids, device)
    struct.pack_into(f"<{len(types)}Q", data, 48, *(totals.get(t, 0) for t in types))
    base, stride, chips, chip = (992, 128, 96, 56) if first else (856, 120, 88, 48)
    for i in range(16):
        struct.pack_into("<I", data, chips + i * chip, 0 if first else 0xFFFFFFFF)
    for i, (pid, name, figures) in enumerate(procs):
        at = base + i * stride
        struct.pack_into(f"<i4x{len(types)}Q", data, at, pid, *(figures.get(t, 0) for t in types))
        struct.pack_into("<Q64s", data, at + 8 + 8 * len(types), stamp, name)
    if version == 4:
        struct.pack_into("<I", data, 8536, 0x52454459)
    if flags is not None:
        struct.pack_into("<8sIIQI", data, len(data) - 32, b"ttmond01", os.getpid(), refs, 0, flags)
    return bytes(data)


class Host:
    """A made-up host: its trees and files, and the command on them."""

    def __init__(self, bench, kind, **options):
        self.dir = bench.path(kind)
        self.bench = bench
        self.program = TTMON
        os.makedirs(self.dir + "/shm")
        os.chmod(bench.dir, 0o755)
        self.chips = tt_tree.tree(kind, self.dir, **options)
        self.args = [
            "--sysfs-root",
            self.dir + "/sys",
            "--proc-root",
            self.dir + "/proc",
            "--shm-root",
            self.dir + "/shm",
        ]

    def path(self, key):
        return f"{self.dir}/shm/tt_device_{key}_memory"

    def file(self, key, version, *procs, **options):
        with open(self.path(key), "wb") as f:
            f.write(image(key, version, procs, **options))
        return self.path(key)

    def command(self, *args):
        return [self.program, "smi", *self.args, *args]

    def for_all(self):
        """From here on a copy of the program that every user can run."""
        self.program = self.bench.for_everybody(TTMON)

    def run(self, *args, status=0, env=None, user=None):
        done = subprocess.run(
            self.command(*args),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            user=user,
            check=False,
            env={**os.environ, "LANG": "C.UTF-8", **(env or {})},
            timeout=20 * PATIENCE,
        )
        eq(f"status, with {done.stderr[-300:]!r}", done.returncode, status)
        return done.stdout.decode()

    def json(self, *args, **options):
        found = json.loads(self.run("--json", *args, **options))
        eq("schema", (found["schema"], found["version"]), ("ttmon-smi", 1))
        return found

    def alive(self, name=b"python3"):
        """A process that waits, under that name."""
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys; open('/proc/self/comm', 'wb').write(bytes.fromhex(sys.argv[1]));"
                "print('', flush=True); sys.stdin.read()",
                name.hex(),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.bench.procs.append(child)
        child.stdout.readline()
        return child.pid


def host_pid(bench):
    """A process of that name that waits."""
    return Host.alive(types.SimpleNamespace(bench=bench))


def mapper(bench):
    """A process that has /dev/tenstorrent/0 mapped: a plain file, in a mount namespace of its own."""
    script = (
        "mount -t tmpfs none /dev && mkdir /dev/tenstorrent && truncate -s 4096 /dev/tenstorrent/0 && exec "
        + sys.executable
        + ' -c \'import mmap, sys; f = open("/dev/tenstorrent/0", "r+b"); m = mmap.mmap(f.fileno(), 4096);'
        " print(flush=True); sys.stdin.read()'"
    )
    child = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    bench.procs.append(child)
    child.stdout.readline()
    return child


def composite(chip, location=0):
    return (chip.board_id << 8 | location) & 0xFFFFFFFFFFFFFFFF


def width(line):
    line = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


# ---- what is a chip, and what is it called ----


def test_identity(bench):
    """IDs, their sources and the memory of each board type."""
    host = Host(bench, "mixed")
    chips = host.json()["chips"]
    eq("ids", [c["id"] for c in chips], ["2000330200", "7117320990", "100014511732099:1R", "21172d01a0"])
    eq("sources", [c["id_source"] for c in chips], ["asic_id", "asic_id", "serial", "asic_id"])
    eq("arch", [c["arch"] for c in chips], ["Blackhole", "Wormhole", "Wormhole", "Wormhole"])
    eq("dram", [c["dram"]["total"] // GIB for c in chips], [32, 12, 12, 12])
    eq(
        "l1",
        [c["l1"]["total"] for c in chips],
        [180 * MIB, WORMHOLE_L1["n300"], WORMHOLE_L1["n300"], WORMHOLE_L1["n150"]],
    )
    eq(
        "sensors",
        [(c["temperature_mc"], c["power_uw"], c["aiclk_mhz"]) for c in chips[:3]],
        [(41000, 17000000, 1350), (40000, 15000000, 1000), (None, None, None)],
    )
    eq("status", {c["status"] for c in chips}, {"no tracking"})
    host = Host(bench, "n300", asic_id=False)
    eq("ids without tt_asic_id", [c["id"] for c in host.json()["chips"]], ["100014511732099:0", "100014511732099:1R"])


def test_galaxy(bench):
    for kind, dram in (("galaxy-wormhole", 12), ("galaxy-blackhole", 32)):
        chips = Host(bench, kind).json()["chips"]
        eq(kind, [c["id"] for c in chips], [f"T{t}:N{n}" for t in range(1, 5) for n in range(1, 9)])
        eq("dram", {c["dram"]["total"] for c in chips}, {dram * GIB})


def test_without_driver(bench):
    """Only files: rows of their own, named by their keys; what sysfs would tell is not known."""
    host = Host(bench, "none")
    eq("nothing", "no Tenstorrent chip" in host.run(), True)
    pid = host.alive()
    host.file(tt_tree.board_id("n150", 5) << 8 & 0xFFFFFFFFFFFFFFFF, 1, (pid, b"a", {"dram": GIB}))
    host.file(0x251732099, 3, (pid, b"a", {"dram": 2 * GIB, "trace": GIB}))
    found = host.json()
    chips = {c["id"]: c for c in found["chips"]}
    # The upper byte of the board id is lost in the key.
    eq("ids", sorted(chips), ["18000000005:0", "251732099"])
    eq("memory by the type in the key", chips["18000000005:0"]["dram"], {"used": GIB, "total": 12 * GIB})
    eq("sources", {c["id_source"] for c in found["chips"]}, {"file"})
    eq("dram", chips["251732099"]["dram"], {"used": 3 * GIB, "total": None})
    eq("temperature", {c["temperature_mc"] for c in found["chips"]}, {None})
    eq("driver", found["driver"], False)
    true("says so", "tt-kmd is not loaded" in host.run())


# ---- figures ----


def test_versions(bench):
    """Versions 1 to 4 of the layout, each byte from its own offset."""
    for version in (1, 2, 3, 4):
        host = Host(bench, "p150") if version == 1 else host
        for name in os.listdir(host.dir + "/shm"):
            os.unlink(f"{host.dir}/shm/{name}")
        pid = host.alive()
        figures = {t: (i + 1) * MIB + version for i, t in enumerate(TYPES)}
        second = {t: i + 1 for i, t in enumerate(TYPES)}
        key = composite(host.chips[0]) if version == 1 else host.chips[0].asic_id
        host.file(key, version, (pid, b"one", figures), (os.getpid(), b"two", second), device=3)
        found = host.json("-d")
        chip = found["chips"][0]
        eq("chips", len(found["chips"]), 1)
        for i, t in enumerate(TYPES):
            both = None if t == "kernel" and version > 1 else figures[t] + second[t]
            eq(f"version {version} {t}", chip["bytes"][t], both)
            eq(f"version {version} {t} of one", found["processes"][0]["bytes"][t], None if both is None else figures[t])
        eq(
            "used",
            (chip["dram"]["used"], chip["l1"]["used"]),
            (chip["bytes"]["dram"] + chip["bytes"]["trace"], sum(chip["bytes"][t] for t in ("l1", "l1_small", "cb"))),
        )
        eq("names", [p["name"] for p in found["processes"]], ["one", "two"])
        eq("status", chip["status"], "in use")
        eq("source", chip["id_source"], "asic_id" if version == 1 and not chip["unique_id"] else "unique_id")
        eq(
            "file",
            (found["files"][0]["version"], found["files"][0]["device_id"], found["files"][0]["chip"]),
            (version, 3, 0),
        )


def test_unknown_is_not_zero(bench):
    """A process that has the chip open and publishes nothing; a chip without a file."""
    pid = os.getpid()
    host = Host(bench, "p150x2", pids={0: [pid, pid]})
    text, found = host.run(), host.json()
    eq(
        "processes",
        [(p["pid"], p["file"], set(p["bytes"].values())) for p in found["processes"]],
        [(pid, None, {None})],
    )
    eq("open", [c["open_pids"] for c in found["chips"]], [[], [pid]])
    true("0 B in " + text, "0 B" not in text and "n/a" in text)
    reasons = [c["reason"] for c in found["chips"]]
    true(f"reasons {reasons}", "none has it open" in reasons[0] and "publishes nothing" in reasons[1])


def test_zero_is_not_known(bench):
    """
    A file of ttmond's that cannot hold everything: n/a and why, not 0 B; a chip that a followed
    process only opened is at 0.
    """
    pid, other = os.getpid(), host_pid(bench)
    host = Host(bench, "p150x2", pids={0: [other], 1: [pid]})
    for version in (1, 3):
        for name in os.listdir(host.dir + "/shm"):
            os.unlink(f"{host.dir}/shm/{name}")
        keys = [composite(c) if version == 1 else c.asic_id for c in host.chips]
        for key in keys:
            host.file(key, version, flags=0, refs=0)
        text, found = host.run(), host.json()
        eq("used", [c["dram"]["used"] for c in found["chips"]], [None, None])
        eq(
            "status",
            {(c["status"], c["unlisted"], c["flags"] == []) for c in found["chips"]},
            {("no tracking", True, True)},
        )
        true("0 B in " + text, "0 B" not in text and "0.0%" not in text and "idle" not in text)
        true("who not in " + text, f"process {other} (python3)" in text and f"process {pid} (" in text)
        # Both are followed, on one chip: what they hold on the other is 0.
        host.file(keys[0], version, (pid, b"me", {"dram": GIB}), (other, b"other", {}), flags=0)
        chips = host.json()["chips"]
        eq(
            "idle",
            sorted((c["status"], c["dram"]["used"], c["unlisted"]) for c in chips),
            [("idle", 0, False), ("in use", GIB, False)],
        )
        # What ttmond says itself.
        host.file(keys[0], version, (pid, b"me", {"dram": GIB}), (other, b"other", {}), flags=1)
        host.file(keys[1], version, flags=8, refs=0)
        text, found = host.run(), host.json()
        eq(
            "flags",
            sorted((c["flags"], c["dram"]["used"], c["l1"]["used"]) for c in found["chips"]),
            [(["partial"], GIB, None), (["uncalibrated"], None, None)],
        )
        eq("of the files", sorted(f["flags"] for f in found["files"]), [["partial"], ["uncalibrated"]])
        true(
            "not said in " + text,
            re.search(r"^partial \S+: ran before the trace", text, re.M)
            and re.search(r"^uncalibrated \S+: the layout", text, re.M),
        )


@alone("a process with the node mapped is seen by every `ttmon smi -d` of the host")
def test_unlisted_by_maps(bench):
    """A driver that lists no processes: with -d those who have the node mapped are found, and named."""
    child = mapper(bench)
    host = Host(bench, "p150")
    os.unlink(f"{host.dir}/proc/driver/tenstorrent/0/pids")
    host.file(composite(host.chips[0]), 1, flags=0, refs=0)
    eq("not looked for", host.json()["chips"][0]["dram"]["used"], 0)
    chip = host.json("-d")["chips"][0]
    eq("found", (chip["dram"]["used"], chip["unlisted"], chip["status"]), (None, True, "no tracking"))
    true("who", f"process {child.pid} (" in host.run("-d"))


def test_kernel(bench):
    """ttmond cannot see kernels: n/a; who can, and has none, has 0 B."""
    host = Host(bench, "p150")
    for flags, shown in ((None, "kernel 0 B"), (0, "kernel n/a")):
        host.file(composite(host.chips[0]), 1, (os.getpid(), b"me", {"dram": GIB}), flags=flags)
        text = host.run("-d")
        true(f"no {shown} in {text}", shown in text)
        true("grammar of " + text, "1 process, 0 dead" in text)
        found = host.json()
        eq(
            "json",
            (found["chips"][0]["bytes"]["kernel"], found["processes"][0]["bytes"]["kernel"]),
            (0 if flags is None else None,) * 2,
        )


def test_dead(bench):
    """A dead process's bytes are not the chip's; the file stays as it is without -c, and is right with it."""
    host = Host(bench, "p150")
    pid = host.alive()
    path = host.file(composite(host.chips[0]), 1, (DEAD, b"gone", {"dram": 5 * GIB}), (pid, b"here", {"dram": GIB}))
    with open(path, "rb") as f:
        before = f.read()
    stamp = os.stat(path).st_mtime_ns
    found = host.json()
    eq("dram", found["chips"][0]["dram"]["used"], GIB)
    eq("dead", (found["chips"][0]["dead_entries"], found["files"][0]["dead_bytes"]), (1, 5 * GIB))
    true("not said", "left out: 1 entry of dead processes, 5.0 GiB" in host.run() and "gone" not in host.run())
    true("not shown with -d", "gone (dead)" in host.run("-d"))
    with open(path, "rb") as f:
        eq("the file", f.read() == before and os.stat(path).st_mtime_ns == stamp, True)
    true("not said", "removed: 1 entry" in host.run("-c"))
    found = host.json()
    eq(
        "after",
        (found["files"][0]["bytes"]["dram"], found["files"][0]["dead_entries"], found["files"][0]["num_active"]),
        (GIB, 0, 1),
    )
    eq("entry", [(p["pid"], p["name"]) for p in found["processes"]], [(pid, "here")])


def test_cleanup_rights(bench):
    """As a user: root's processes are alive (EPERM), and a file that is not ours is named."""
    host = Host(bench, "p150")
    host.for_all()
    os.chmod(host.dir + "/shm", 0o777)
    path = host.file(composite(host.chips[0]), 1, (1, b"init", {"dram": GIB}), (DEAD, b"gone", {"dram": GIB}))
    os.chmod(path, 0o644)
    done = subprocess.run(
        host.command("-c"), capture_output=True, text=True, user=65534, check=False, timeout=20 * PATIENCE
    )
    eq("status", done.returncode, 1)
    true(f"not named in {done.stderr}", os.path.basename(path) in done.stderr and "dead processes stay" in done.stderr)
    with open(path, "rb") as f:
        eq("the file", struct.unpack_from("<Q", f.read(), 48)[0], 2 * GIB)
    os.chmod(path, 0o666)
    true("not cleaned", "removed: 1 entry" in host.run("-c", user=65534))
    found = host.json()
    eq("left", [(p["pid"], p["alive"]) for p in found["processes"]], [(1, True)])
    eq("dram", found["files"][0]["bytes"]["dram"], GIB)


def test_reset(bench):
    host = Host(bench, "p150x2", reset=[0])
    chips = host.json()["chips"]
    eq("status", [c["status"] for c in chips], ["no tracking", "resetting"])
    eq(
        "figures",
        (chips[1]["temperature_mc"], chips[1]["power_uw"], chips[1]["aiclk_mhz"], chips[1]["dram"]["used"]),
        (None,) * 4,
    )
    true("not shown", re.search(r"resetting$", host.run(), re.M))


def test_reset_while_watched(bench):
    """A chip that goes into reset is the one it was: in the second picture it has its name still."""
    host = Host(bench, "n300")
    host.file(composite(host.chips[0], 1), 1)
    args = host.command("-w", "-r", "300", "--json")
    with subprocess.Popen(args, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as watch:
        first = json.loads(watch.stdout.readline())
        tt_tree.tree("n300", host.dir, reset=[0])
        for line in watch.stdout:
            second = json.loads(line)
            if [c["status"] for c in second["chips"]] == ["resetting"] * 2:
                break
        watch.send_signal(signal.SIGTERM)
    eq("before", [c["id"] for c in first["chips"]], ["7117320990", "100014511732099:1R"])
    eq("after", [c["id"] for c in second["chips"]], [c["id"] for c in first["chips"]])
    eq("status", [c["status"] for c in second["chips"]], ["resetting"] * 2)


# ---- whose file ----


def test_learned(bench):
    """A name that sysfs cannot tell is learned from the processes: who is in the file has this chip alone open."""
    host = Host(bench, "p150x2")
    pid = host.alive()
    host = Host(bench, "t3k", pids={2: [pid]})
    host.file(12345, 3, (pid, b"p", {"dram": GIB}))
    eq("an N300 has two halves", [c["id"] for c in host.json()["chips"] if c["dram"]["used"]], ["3039"])
    host = Host(bench, "p300", pids={0: [pid]})
    host.file(12345, 3, (pid, b"p", {"dram": GIB}))
    found = host.json()
    eq("file", (found["files"][0]["match"], found["files"][0]["chip"]), ("process", 1))
    eq(
        "chip",
        [(c["id"], c["id_source"], c["ordinal"]) for c in found["chips"]],
        [("2000440010", "asic_id", 1), ("3039", "unique_id", 0)],
    )


@alone("a process with the node mapped is seen by every `ttmon smi -d` of the host")
def test_learned_from_maps(bench):
    """
    An older driver lists no processes: what they have mapped tells it. The node is a plain file in
    a mount namespace.
    """
    child = mapper(bench)
    host = Host(bench, "p300")
    for n in (0, 1):
        os.unlink(f"{host.dir}/proc/driver/tenstorrent/{n}/pids")
    host.file(12345, 3, (child.pid, b"p", {"dram": GIB}))
    found = host.json()
    eq(
        "chip",
        [(c["ordinal"], c["dram"]["used"], c["open_pids"]) for c in found["chips"]],
        [(1, None, None), (0, GIB, None)],
    )
    eq("match", found["files"][0]["match"], "process")


def test_mapped(bench):
    """-d: who has the file mapped, by what it is and not by its name."""
    host = Host(bench, "p150")
    path = host.file(composite(host.chips[0]), 1)
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ):
        eq("mapped", host.json("-d")["files"][0]["mapped_pids"], [os.getpid()])
        true("not shown", f"mapped by {os.getpid()}" in host.run("-d"))
        eq("not looked for", host.json()["files"][0]["mapped_pids"], None)
        os.unlink(path)
        host.file(composite(host.chips[0]), 1)
        eq("another file of that name", host.json("-d")["files"][0]["mapped_pids"], [])


# ---- bad input ----


def test_bad_files(bench):
    """Each is named with what is wrong with it; the others are shown as they are."""
    host = Host(bench, "n300x2")
    good = host.file(composite(host.chips[0]), 1, (os.getpid(), b"me", {"dram": GIB}))
    bad = bytearray(image(1, 1))
    struct.pack_into("<I", bad, 4, 65)
    wild = image(1, 1, totals={"dram": (1 << 64) - 4096})
    cases = {
        300: b"",
        301: image(301, 1)[:4000],
        302: struct.pack("<I", 99) + bytes(9276),
        303: bytes(bad),
        304: wild,
        305: bytes(1 << 20),
    }
    for key, data in cases.items():
        with open(host.path(key), "wb") as f:
            f.write(data)
    os.symlink(good, host.path(400))
    os.symlink("/dev/zero", host.path(401))
    os.mkfifo(host.path(402))
    os.mkdir(host.path(403))
    for name in (
        "tt_device__memory",
        "tt_device_12x_memory",
        "tt_device_99999999999999999999999_memory",
        "tt_device_-1_memory",
    ):
        with open(f"{host.dir}/shm/{name}", "wb") as f:
            f.write(image(1, 1))
    for args in ([], ["-d"], ["-c"]):
        text = host.run(*args, status=1)
        true("a wild number in " + text, "EiB" not in text and "16.0" not in text)
        for key in (*cases, 400, 401, 402, 403):
            true(f"{key} not named in {text}", f"tt_device_{key}_memory" in text)
    found = host.json(status=1)
    eq("good one", [c["dram"]["used"] for c in found["chips"] if c["status"] == "in use"], [GIB])
    eq("files", len([f for f in found["files"] if f["status"] == "ok"]), 1)
    true("links are no chips", not any(c["id"].endswith(hex(400)[2:]) for c in found["chips"]))


def test_unreadable(bench):
    """Another user's 0600 file: said whose it is; a folder that is not there, too."""
    host = Host(bench, "p150")
    host.for_all()
    os.chmod(host.file(host.chips[0].asic_id, 3), 0o600)
    done = subprocess.run(
        host.command(), capture_output=True, text=True, user=65534, check=False, timeout=20 * PATIENCE
    )
    eq("status", done.returncode, 1)
    true(f"not said in {done.stdout}", "bad file" in done.stdout and "mode 0600" in done.stdout)
    true(f"not said in {done.stderr}", "Permission denied" in done.stderr)
    host.args[5] = host.dir + "/nowhere"
    true("no folder", "No such file or directory" in host.run(status=1))
    host.args[1] = host.dir + "/nowhere"
    host.run(status=1)


def test_nonsense_in_sysfs(bench):
    host = Host(bench, "n150", nonsense=True)
    host.file(0, 1)
    chips = host.json("-d")["chips"]
    eq("the good one", chips[0]["card"], "n150")
    eq("how many", len(chips), 1 + 5 + 1)
    for chip in chips[1:6]:
        eq(
            f"figures of {chip['id']}",
            (chip["aiclk_mhz"], chip["power_uw"], chip["dram"]["used"], chip["board_id"]),
            (None,) * 4,
        )
    true("an escape", "\x1b" not in host.run("-d"))


def test_hostile_names(bench):
    """Names that a terminal would obey, that turn the direction, that are not UTF-8."""
    host = Host(bench, "p150")
    names = [
        b"\x1b[31mred\x1b]0;title\x07",
        "\u202egpj.exe".encode(),
        b"\xff\xfe\xc3",
        "\u4e2d\u6587".encode() * 10,
        b"x" * 64,
        b"a\nb\tc",
    ]
    pids = [host.alive() for _ in names]
    host.file(composite(host.chips[0]), 1, *((p, n, {"dram": MIB}) for p, n in zip(pids, names)))
    text = host.run()
    true("control characters in " + repr(text), not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text))
    eq("lines", len([x for x in text.splitlines() if "1.0 MiB" in x]), len(names))
    true("wide names", "\u4e2d\u6587" in text and "\u4e2d" not in host.run(env={"LANG": "C", "LC_ALL": "C"}))
    by_pid = {p["pid"]: p["name"] for p in host.json()["processes"]}
    eq("in JSON they are whole", by_pid[pids[0]], "\x1b[31mred\x1b]0;title\x07")


def test_racing(bench):
    """Files that are cut, grown, replaced and removed while they are read: never a crash, never a wild number."""
    host = Host(bench, "p150")
    path = host.path(composite(host.chips[0]))
    racer = os.fork()
    if not racer:
        data = image(composite(host.chips[0]), 1, ((os.getpid(), b"r", {"dram": GIB}),))
        while True:
            with contextlib.suppress(OSError):
                with open(path, "wb") as f:
                    f.write(data[:5000])
                    f.flush()
                    f.write(data[5000:])
                os.truncate(path, 100)
                os.unlink(path)
    end = time.monotonic() + 3
    while time.monotonic() < end:
        done = subprocess.run(
            host.command("--json"), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=20 * PATIENCE
        )
        true(f"status {done.returncode}", done.returncode in (0, 1))
        used = json.loads(done.stdout)["chips"][0]["dram"]["used"]
        true(f"dram {used}", used in (None, 0, GIB))
    os.kill(racer, signal.SIGKILL)
    os.waitpid(racer, 0)


def test_options(bench):
    host = Host(bench, "none")
    for args in (["--wrong"], ["-r"], ["-r", "abc"], ["-r", "1"], ["--color", "maybe"], ["word"]):
        done = subprocess.run([TTMON, "smi", *args], capture_output=True, text=True, check=False, timeout=20 * PATIENCE)
        eq(f"status of {args}", done.returncode, 2)
        true(f"{args}: {done.stderr!r}", done.stderr.startswith("ttmon smi: ") and done.stderr.count("\n") == 1)
    true("help", "--refresh" in host.run("--help"))
    true("listed", "smi" in subprocess.run([TTMON, "--help"], capture_output=True, text=True, check=True).stdout)


# ---- on a terminal ----


class Terminal:
    """A command on a pseudo terminal of that size."""

    def __init__(self, args, columns, rows=24, env=None):
        self.main, self.side = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.side)
        self.proc = subprocess.Popen(
            args,
            stdin=self.side,
            stdout=self.side,
            stderr=self.side,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm", "LANG": "C.UTF-8", "NO_COLOR": "", **(env or {})},
        )
        self.text = b""

    def resize(self, columns, rows):
        fcntl.ioctl(self.main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, pattern, seconds=10):
        end = time.monotonic() + seconds * PATIENCE
        while not re.search(pattern, self.text):
            true(f"no {pattern!r} in {self.text[-400:]!r}", time.monotonic() < end)
            self.more()

    def more(self):
        if select.select([self.main], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):
                self.text += os.read(self.main, 65536)

    def end(self):
        while self.proc.poll() is None:
            self.more()
        for _ in range(3):
            self.more()
        after = termios.tcgetattr(self.side)
        os.close(self.side)
        os.close(self.main)
        return after


def busy(bench, kind="galaxy-wormhole"):
    host = Host(bench, kind)
    pid = host.alive()
    nibbles = [0xC, 8, 0, 4]
    for i, chip in enumerate(host.chips):
        bus = int(chip.bdf[5:7], 16)
        if i % 5:
            host.file(
                composite(chip, (nibbles.index(bus >> 4) + 1) << 4 | bus & 15),
                1,
                (pid, b"python3", {"dram": i * GIB // 3}),
            )
    return host


def test_widths(bench):
    """At 80 and 120 columns nothing is wider, and no column is missing; NO_COLOR and --color are obeyed."""
    hosts = [busy(bench), Host(bench, "n300x2"), Host(bench, "mixed", nonsense=True)]
    hosts[1].file(
        composite(hosts[1].chips[0], 1), 1, (os.getpid(), "\u4e2d".encode() * 20, {t: 1023 * MIB for t in TYPES})
    )
    for host in hosts:
        for columns in (80, 120):
            for args in ([], ["-d"]):
                term = Terminal(host.command(*args), columns)
                term.end()
                lines = term.text.decode().splitlines()
                over = [x for x in lines if width(x) > columns]
                true(f"{columns} columns: {over}", not over)
                true("columns", all(any(word in x for x in lines) for word in ("AICLK", "DRAM", "L1", "Status")))
                true("colour", "\x1b[" in term.text.decode())
                true("other sequences", not re.search(rb"\x1b(?!\[[0-9]*m)", term.text))
    for args, env, colour in (
        ([], {"NO_COLOR": "1"}, False),
        (["--color", "never"], {}, False),
        ([], {"TERM": "dumb"}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
    ):
        term = Terminal(hosts[0].command(*args), 80, env=env)
        term.end()
        eq(f"colour with {args} {env}", b"\x1b" in term.text, colour)
    true("piped", "\x1b" not in hosts[0].run() and "\x1b[" in hosts[0].run("--color", "always"))


def test_watch(bench):
    """In place on the alternate screen; q, SIGINT and SIGTERM leave the terminal as it was."""
    host = busy(bench)
    for how in ("q", signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        term = Terminal(host.command("-w", "-r", "100"), 80)
        term.until(rb"lines 1-23 of")
        term.resize(120, 60)
        term.proc.send_signal(signal.SIGWINCH)
        term.until(rb"T4:N8")
        if how == "q":
            os.write(term.main, b"q")
        else:
            term.proc.send_signal(how)
        after = term.end()
        eq(f"status after {how}", term.proc.returncode, 0)
        eq("terminal", after, term.before)
        text = term.text
        eq("alternate screen", (text.count(b"\x1b[?1049h"), text.count(b"\x1b[?1049l")), (1, 1))
        true("cursor", text.index(b"\x1b[?25l") < text.index(b"\x1b[?25h"))
        true("nothing follows", text.rstrip().endswith(b"\x1b[?1049l"))


def test_watch_narrow(bench):
    """A line that is cut is full, and what follows does not wipe its end: on the last column the cursor stays."""
    host = busy(bench)
    term = Terminal(host.command("-w", "-r", "100"), 40)
    term.until(rb"lines 1-23 of")
    os.write(term.main, b"q")
    term.end()
    rows = [x.rstrip("\r") for x in term.text.decode().split("\n") if x.startswith("T1:")]
    true(f"rows {rows}", len(rows) >= 8 and all(width(x) == 40 for x in rows))
    true(f"wiped: {rows[0]!r}", not any(x.endswith("\x1b[K") for x in rows))


def test_watch_scroll(bench):
    """What does not fit is reached with the keys."""
    host = busy(bench)
    term = Terminal(host.command("-w", "-r", "60000"), 80)
    term.until(rb"lines 1-23 of (\d+)")
    lines = int(re.search(rb"lines 1-23 of (\d+)", term.text).group(1))
    os.write(term.main, b"\x1b[B")
    term.until(rb"lines 2-24 of")
    os.write(term.main, b"G")
    term.until(b"lines %d-%d of" % (lines - 22, lines))
    os.write(term.main, b"g")
    term.text = b""
    term.until(rb"lines 1-23 of")
    os.write(term.main, b"q")
    term.end()
    eq("status", term.proc.returncode, 0)


def test_watch_stopped(bench):
    """Ctrl-Z gives the terminal back, fg takes it again."""
    host = busy(bench, "p150")
    term = Terminal(host.command("-w", "-r", "100"), 80)
    term.until(rb"q: quit")
    term.proc.send_signal(signal.SIGTSTP)
    term.until(rb"\x1b\[\?1049l")
    eq("stopped", os.waitpid(term.proc.pid, os.WUNTRACED)[1] & 0xFF, 0x7F)
    eq("terminal", termios.tcgetattr(term.side), term.before)
    term.text = b""
    term.proc.send_signal(signal.SIGCONT)
    term.until(rb"\x1b\[\?1049h")
    term.until(rb"q: quit")
    os.write(term.main, b"q")
    eq("terminal", term.end(), term.before)


def test_watch_piped(bench):
    """Blocks, an empty line between them; as JSON a document per line."""
    host = busy(bench, "p150")
    for args in (["-w", "-r", "100"], ["-w", "-r", "100", "--json"]):
        with subprocess.Popen(
            host.command(*args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        ) as watch:
            time.sleep(0.75)
            watch.send_signal(signal.SIGINT)
            text = watch.communicate(timeout=10 * PATIENCE)[0]
        eq("status", watch.returncode, 0)
        true("escapes", "\x1b" not in text)
        if "--json" in args:
            eq("documents", {json.loads(x)["schema"] for x in text.splitlines()}, {"ttmon-smi"})
            true("how many", 4 <= len(text.splitlines()) <= 8)
        else:
            blocks = re.split(r"\n\n(?=ttmon smi )", text)
            true(f"{len(blocks)} blocks", 4 <= len(blocks) <= 8)
            true("each whole", all("Status" in b for b in blocks))
    # A reader that goes away ends it.
    with subprocess.Popen(
        host.command("-w", "-r", "50"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as watch:
        watch.stdout.readline()
        watch.stdout.close()
        watch.wait(timeout=10 * PATIENCE)


def test_watch_follows(bench):
    """What changes shows in the next picture: a process comes, grows, dies."""
    host = Host(bench, "p150")
    key = composite(host.chips[0])
    with subprocess.Popen(
        host.command("-w", "-r", "50", "--json"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as watch:

        def wait_for(status, used):
            end = time.monotonic() + 10 * PATIENCE
            while time.monotonic() < end:
                chip = json.loads(watch.stdout.readline())["chips"][0]
                if (chip["status"], chip["dram"]["used"]) == (status, used):
                    return
            raise AssertionError(f"never {status} with {used}")

        wait_for("no tracking", None)
        child = subprocess.Popen(["sleep", "60"])
        host.file(key, 1, (child.pid, b"sleep", {"dram": GIB}))
        wait_for("in use", GIB)
        host.file(key, 1, (child.pid, b"sleep", {"dram": 2 * GIB}))
        wait_for("in use", 2 * GIB)
        child.kill()
        child.wait()
        wait_for("stale", 0)
        watch.send_signal(signal.SIGTERM)
