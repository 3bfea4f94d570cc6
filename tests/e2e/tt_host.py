# SPDX-License-Identifier: GPL-2.0-only
"""tt_host.py: a host with Tenstorrent chips for the end-to-end tests: a tree of sysfs, a folder for
the files, a service, its readers.

Other programs of this machine may use the library at the same time, and every service sees them:
only the figures of the targets that were started here are compared, and nothing else's are a fault.

The layouts here are written from facts/tenstorrent.md 1.2, the file names from 1.4, neither from
our headers.
"""
import glob
import http.client
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time

from e2e import PATIENCE, TOP, eq, standin, true, tt_env

sys.path.insert(0, os.path.join(TOP, "tests", "standin"))
import tt_tree  # noqa: E402

BOOK_TYPES = ("dram", "l1", "l1_small", "trace", "cb")
TRAYS = {"galaxy-wormhole": {0xC: 1, 0x8: 2, 0x0: 3, 0x4: 4}, "galaxy-blackhole": {0x0: 1, 0x4: 2, 0xC: 3, 0x8: 4}}
V1 = {"size": 9280, "slots": 992, "stride": 128, "name": 64}
V2 = {"size": 8576, "slots": 856, "stride": 120, "name": 56}


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("ttmond", timeout=10 * PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10 * PATIENCE)
        self.sock.connect(self.path)


def api(path, route):
    conn = Unix(path)
    conn.request("GET", route)
    reply = conn.getresponse()
    body = reply.read()
    eq(f"GET {route} ({body[:200]!r})", reply.status, 200)
    return json.loads(body)


def wait_probed(path, pid):
    """
    Until the service has probed the CUDA libraries of this process, or the program where it has
    none: calls before that are not seen.
    """

    def check():
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            mapped = {line.split(None, 5)[5].strip() for line in f if "/" in line}
        mine = {name for name in mapped if re.search(r"/lib(cudart|cuda|myalloc)\b", name)} or {
            os.readlink(f"/proc/{pid}/exe")
        }
        probed = {
            o["path"] for o in api(path, "/v1/probes")["objects"] if any(p["state"] == "attached" for p in o["probes"])
        }
        eq("libraries without probes", mine - probed, set())

    retry(20, check)


def figures(process):
    """
    Logical device to bytes by type, without those that hold nothing; None: all the devices together
    whose id is not known.
    """
    ret = {}
    for device in process["devices"]:
        for t, n in device["bytes"].items():
            if n:
                held = ret.setdefault(device["logical"], {})
                held[t] = held.get(t, 0) + n
    return ret


def book_figures(book):
    ret = {}
    for device in book["devices"]:
        held = {t: device[t] for t in BOOK_TYPES if device[t]}
        if held:
            ret[device["logical"]] = held
    return ret


def total(devices):
    sums = {t: sum(d.get(t, 0) for d in devices) for t in BOOK_TYPES}
    return {t: n for t, n in sums.items() if n}


def book_diff(host, book, known=True):
    """What differs between the daemon's view and a book, "" if nothing does. known: so is every
    device; else a device's figures are right, or they are all among those of the unknown devices,
    and never with another one.
    """
    found = [p for p in host.devices()["processes"] if p["tgid"] == book["pid"]]
    if not found:
        return "" if not book_figures(book) else "the process is not there"
    [process] = found
    for device in process["devices"]:
        true(f"a figure below 0: {device}", all(n is None or n >= 0 for n in device["bytes"].values()))
    got, want = figures(process), book_figures(book)
    if not known:
        hidden = total([held for d, held in want.items() if d not in got])
        want = {d: held for d, held in want.items() if d in got} | ({None: hidden} if hidden else {})
    bad = [d for d in sorted(set(got) | set(want), key=str) if got.get(d) != want.get(d)]
    if not bad:
        return ""
    return (
        f"{len(bad)} devices, {bad[0]}: {got.get(bad[0])}, not {want.get(bad[0])} (flags {process['flags']}, layout "
        f"{process['layout']})"
    )


def wait_equal(host, book, what, seconds=5, known=True):
    """Figures are shown with a little delay."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        diff = book_diff(host, book, known)
        if not diff:
            return
        true(f"{what}: {diff}", time.monotonic() < end)
        time.sleep(0.05)


def retry(seconds, check):
    """Until it raises nothing."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > end:
                raise
        time.sleep(0.05)


class Host:
    def __init__(self, bench, kind, version=1):
        self.bench, self.kind, self.version = bench, kind, version
        self.root = bench.path(f"host-{kind}-{version}")
        self.chips = tt_tree.tree(kind, self.root)
        self.shm = os.path.join(self.root, "shm")
        os.mkdir(self.shm)
        self.socket = os.path.join(self.root, "sock")
        self.unique, self.opened = {}, {}  # opened: by process id of the targets, also of those that ended
        for i, chip in enumerate(sorted(self.chips, key=lambda c: c.bdf)):
            self.unique[chip.bdf] = self.unique_id(chip, i)
            if chip.card == "n300":
                self.unique[chip.bdf + "R"] = self.unique[chip.bdf] ^ 1 << 32

    @staticmethod
    def unique_id(chip, i):
        """UMD's, by facts/tenstorrent.md 4.2: what links tell is nowhere in sysfs."""
        mangled = chip.board_id >> 4 & 0xF0000000 | chip.board_id & 0x0FFFFFFF
        if chip.card == "galaxy-wormhole":
            return 0xABC00000000 | i << 8 | 5
        if chip.card == "galaxy-blackhole":
            return chip.asic_id
        if chip.arch == "wormhole":
            return 2 << 32 | mangled if chip.card == "n300" else chip.board_id
        return chip.board_id << 5 & (1 << 64) - 1

    def service(self, *args):
        """ttmond for the whole host."""
        roots = [
            "--sysfs-root",
            os.path.join(self.root, "sys"),
            "--proc-root",
            os.path.join(self.root, "proc"),
            "--shm-root",
            self.shm,
        ]
        return self.bench.daemon("--socket", self.socket, "--tt-shm-version", str(self.version), "-q", *roots, *args)

    def service_ahead(self, gens):
        """
        A service that probed the libraries of these generations before a process maps them: what is
        started then is seen whole.
        """
        daemon = self.service("--ring-size", "32768", "--probe-ahead", standin("tt/*"))
        want = {os.path.realpath(standin(f"tt/{gen}/libtt_metal.so")) for gen in gens}

        def check():
            objects = api(self.socket, "/v1/probes")["objects"]
            probed = {
                os.path.realpath(o["path"]) for o in objects if any(p["state"] == "attached" for p in o["probes"])
            }
            eq("libraries without probes", want - probed, set())

        retry(20, check)
        return daemon

    def doubts(self, process):
        """
        Its flags. "lost" is none where the service did lose records: every program of the machine
        fills its rings.
        """
        lost = {"lost"} if api(self.socket, "/v1/status")["identity"]["lost"] else set()
        return sorted(set(process["flags"]) - lost)

    def target(self, gen, program, *args, env=None):
        chips = ",".join(
            f"{c.bdf}={self.unique[c.bdf]}" + (f"+{self.unique[c.bdf + 'R']}" if c.bdf + "R" in self.unique else "")
            for c in reversed(self.chips)
        )
        target = self.bench.target(
            standin(program), *args, "--wait", env={**tt_env(gen), "STANDIN_TT_CHIPS": chips, **(env or {})}
        )
        target.opened = self.visible((env or {}).get("TT_VISIBLE_DEVICES", ""))
        self.opened[target.pid] = target.opened
        return target

    def visible(self, text):
        """As UMD: a set, local chips by bus address, then the remote ones."""
        bdfs = sorted(c.bdf for c in self.chips)
        parts = [p for p in text.split(",") if p]
        seen = [
            b for i, b in enumerate(bdfs) if not parts or any(p == str(i) if p.isdigit() else p in b for p in parts)
        ]
        return seen + [b + "R" for b in seen if b + "R" in self.unique]

    def devices(self):
        return api(self.socket, "/v1/devices")

    def wait_probed(self, pids, known=True):
        """Until the libraries of these processes are probed. known: they were started under this daemon's eyes."""
        end = time.monotonic() + 20 * PATIENCE
        libs = {self.library(pid) for pid in pids}
        while time.monotonic() < end:
            probes = json.dumps(api(self.socket, "/v1/probes"))
            if all(f'"{lib}"' in probes for lib in libs):
                time.sleep(0.2 if known else 0.5)
                return
            time.sleep(0.05)
        raise AssertionError(f"not probed: {libs}: {probes[:500]}")

    @staticmethod
    def library(pid):
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            paths = {line.split(None, 5)[5].strip() for line in f if "libtt_metal" in line}
        return paths.pop() if paths else os.readlink(f"/proc/{pid}/exe")

    # ---- files ----
    def key(self, bdf):
        """Of the file of a chip, a remote half with an R."""
        chip = next(c for c in self.chips if c.bdf == bdf.rstrip("R"))
        if self.version != 1:
            return self.unique[bdf]
        bus = int(bdf[5:7], 16)
        location = TRAYS[self.kind][bus >> 4] << 4 | (bus & 0xF) if self.kind in TRAYS else int(bdf.endswith("R"))
        return (chip.board_id << 8 | location) & (1 << 64) - 1

    def path(self, bdf):
        return os.path.join(self.shm, f"tt_device_{self.key(bdf)}_memory")

    def files(self):
        return glob.glob(self.shm + "/tt_device_*_memory")

    def read(self, bdf):
        """Totals and {pid: figures} of a chip's file, checked as strictly as a reader may."""
        lay = V1 if self.version == 1 else V2
        with open(self.path(bdf), "rb") as f:
            region = f.read()
        eq(f"size of {self.path(bdf)}", len(region), lay["size"])
        version, active = struct.unpack_from("<II", region)
        eq("version", version, self.version)
        if version == 4:
            eq("init_state", struct.unpack_from("<I", region, 8536)[0], 0x52454459)
        totals = dict(zip(BOOK_TYPES, struct.unpack_from("<5Q", region, 48)))
        slots = {}
        for i in range(64):
            at = lay["slots"] + i * lay["stride"]
            pid, *held = struct.unpack_from("<i4x5Q", region, at)
            eq(f"slot {i} of {active}: pid {pid}", pid != 0, i < active)
            if pid:
                slots[pid] = dict(zip(BOOK_TYPES, held))
                name = region[at + lay["name"] : at + lay["name"] + 64].split(b"\0")[0].decode()
                true(f"name {name!r}", name.startswith("tt") or pid not in self.opened)
        eq("totals are the sum of the slots", totals, {t: sum(s[t] for s in slots.values()) for t in BOOK_TYPES})
        return totals, slots

    def wanted(self, books):
        """By chip: pid to figures that are not all 0."""
        ret = {}
        for book in books:
            for device in book["devices"]:
                held = {t: device[t] for t in BOOK_TYPES}
                if any(held.values()):
                    ret.setdefault(self.opened[book["pid"]][device["logical"]], {})[book["pid"]] = held
        return ret

    def files_diff(self, books, but, maybe):
        want, may = self.wanted(books), self.wanted(maybe)
        for bdf in self.visible(""):
            if bdf in but:
                continue
            if not os.path.exists(self.path(bdf)):
                if bdf in want:
                    return f"{bdf}: no file {self.path(bdf)}"
                continue
            _, slots = self.read(bdf)
            got = {pid: s for pid, s in slots.items() if any(s.values()) and pid in self.opened}
            got = {pid: s for pid, s in got.items() if may.get(bdf, {}).get(pid) != s}
            for pid in got.keys() | want.get(bdf, {}).keys():
                if got.get(pid) != want.get(bdf, {}).get(pid):
                    return f"{bdf}, process {pid}: {got.get(pid)}, not {want.get(bdf, {}).get(pid)}"
        return ""

    def check_files(self, books, but=(), seconds=5, maybe=()):
        """The files say what the books say. A file that is being written may be read half old and half
        new: tried again.

        maybe: books whose figures may be missing in a file, but not be there with others than
        these.
        """
        retry(seconds, lambda: eq("difference", self.files_diff(books, but, maybe), ""))
        if all(p["tgid"] in self.opened for p in self.devices()["processes"]):
            names = {self.path(bdf) for bdf in self.visible("")} | {
                f"{self.shm}/tt_device_{u}_memory" for u in self.unique.values()
            }
            eq("files that are no chip's", [p for p in self.files() if p not in names], [])

    def check_readers(self, books):
        """tt_reader, compiled from the documented layouts, finds the same in each file, and no file is missing."""
        retry(5, lambda: self.read_all(self.wanted(books)))

    def read_all(self, want):
        for bdf in self.visible(""):
            if not os.path.exists(self.path(bdf)):
                true(f"{bdf}: no file {self.path(bdf)}", bdf not in want)
                continue
            done = subprocess.run([standin("tt_reader"), self.path(bdf)], capture_output=True, text=True, check=True)
            seen = json.loads(done.stdout)
            eq(f"{bdf}: version", seen["version"], self.version)
            eq(f"{bdf}: is a far half", {c["is_remote"] for c in seen["chips"]} - {int(bdf.endswith("R"))}, set())
            eq(f"{bdf}: mode", seen["mode"], 0o644 if self.version == 1 else 0o600)
            held = {p["pid"]: {t: p[t] for t in BOOK_TYPES} for p in seen["processes"] if p["seen"]}
            ours = {pid: f for pid, f in held.items() if any(f.values()) and pid in self.opened}
            eq(f"{bdf}: processes as a reader sees them", ours, want.get(bdf, {}))
            eq(
                f"{bdf}: totals as a reader sees them",
                {t: seen["totals"][t] for t in BOOK_TYPES},
                {t: sum(f[t] for f in held.values()) for t in BOOK_TYPES},
            )

    def wait_gone(self, books):
        """Only these processes hold anything, in the files and in the figures."""
        self.check_files(books, seconds=10)
        alive = {book["pid"] for book in books}
        held = [
            p["tgid"] for p in self.devices()["processes"] if figures(p) and p["tgid"] in self.opened.keys() - alive
        ]
        eq("processes that are gone and hold something", held, [])
