# SPDX-License-Identifier: GPL-2.0-only
"""Churn: hundreds of programs a second start and end under the service. What the daemon holds has to
stay flat.

The long form runs for TTMON_CHURN_SECS (an hour when not said) and takes what there is after the
first ten minutes (a third of a shorter time) as what the daemon may hold.
"""
import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import namedtuple

from e2e import PATIENCE, eq, long, standin, timeout, true

RATE = 200  # execs a second
LONG_SECONDS = float(os.environ.get("TTMON_CHURN_SECS", "3600"))
# Of each thousand programs: 100 use CUDA and 20 tt-metal. Each 1,000th replaces the CUDA runtime of
# its own by a new file.
CUDA, TT, REPLACED = 10, 50, 1000
SAMPLE_S = 10

# 50 copies a second for so many seconds; then says how many they were, and stays until somebody has looked.
INNOCENT = """
import ctypes, sys, time
rt, dev, host, made = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p(), ctypes.c_void_p(), 0
assert not rt.cudaMalloc(ctypes.byref(dev), ctypes.c_size_t(4096))
assert not rt.cudaHostAlloc(ctypes.byref(host), ctypes.c_size_t(4096), 0)
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    assert not rt.cudaMemcpy(dev, host, ctypes.c_size_t(64), 1)
    made += 1
    time.sleep(0.02)
print(made, flush=True)
sys.stdin.readline()
"""

# What the daemon holds: resident memory, memory of its BPF maps, descriptors, mappings, threads that stay;
# BPF links, programs and maps.
Held = namedtuple("Held", "rss_kib bpf_kib fds vmas threads links progs maps")
# What may come on top of the first figures. Memory: pages of malloc, and of the tables of processes
# that are kept, which other programs of this host
# fill too. The rest: the libraries that were replaced in the last 10 s, at which the daemon looks
# for them, and those of other programs.
SLACK = Held(rss_kib=4096, bpf_kib=1024, fds=128, vmas=32, threads=2, links=64, progs=4, maps=4)

# And for each file of other programs that is probed.
OTHERS = Held(rss_kib=512, bpf_kib=16, fds=10, vmas=1, threads=0, links=9, progs=0, maps=0)


def threads_that_stay(pid):
    """Threads of more than 2 s. The links of a library that goes are closed by up to 16 that end with that."""
    now, stay = time.clock_gettime(time.CLOCK_BOOTTIME), 0
    for path in glob.glob(f"/proc/{pid}/task/*/stat"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as f:
            began = int(f.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
            stay += now - began > 2
    return stay


def held(pid):
    links, progs, maps = set(), set(), {}
    fds = glob.glob(f"/proc/{pid}/fdinfo/*")
    for path in fds:
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as f:
            info = dict(re.findall(r"^(\w+):\s*(\d+)$", f.read(), re.M))
        if "link_id" in info:
            links.add(info["link_id"])
        elif "map_id" in info:
            maps[info["map_id"]] = int(info["memlock"])
        elif "prog_id" in info:
            progs.add(info["prog_id"])
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        status = dict(re.findall(r"^(\w+):\s*(\d+)", f.read(), re.M))
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        vmas = sum(1 for _ in f)
    return Held(
        int(status["VmRSS"]),
        sum(maps.values()) // 1024,
        len(fds),
        vmas,
        threads_that_stay(pid),
        len(links),
        len(progs),
        len(maps),
    )


def get(sock, path, method="GET"):
    conn = http.client.HTTPConnection("ttmond")
    conn.sock = socket.socket(socket.AF_UNIX)
    conn.sock.settimeout(30 * PATIENCE)
    with contextlib.closing(conn):
        conn.sock.connect(sock)
        conn.request(method, path)
        reply = conn.getresponse()
        return reply.status, reply.read()


class Churn:
    """Programs that start at RATE and end soon, and a thread that looks at the daemon meanwhile."""

    def __init__(self, bench, sock, daemon):
        self.bench, self.sock, self.daemon = bench, sock, daemon
        self.execs, self.running, self.bad = 0, [], 0
        self.samples, self.health_ms = [], 0.0  # (seconds, Held, files of others that are probed)
        self.over = threading.Event()
        self.null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.mkdir(bench.path("lib"))
        for name in os.listdir(standin("lib")):
            shutil.copy(os.path.join(standin("lib"), name), bench.path("lib"))
        self.runtime = os.path.realpath(bench.path("lib/libcudart.so.13"))

    def program(self):
        """(words, environment) of the next one."""
        n = self.execs
        if n % REPLACED == 0:
            # As a package manager does it: the old file loses its name while programs may have it mapped.
            shutil.copy(self.runtime, self.runtime + ".new")
            os.rename(self.runtime + ".new", self.runtime)
        if n % TT == 1:
            return [standin("ttscen"), "attach", "--chips", "2"], {"LD_LIBRARY_PATH": standin("tt/e2b")}
        if n % CUDA == 0:
            return [standin("scen"), "exit", "3"], {
                "LD_LIBRARY_PATH": self.bench.path("lib" if n % (2 * CUDA) else "../nowhere")
            }
        return ["/bin/true"], {}

    def start_one(self):
        words, env = self.program()
        actions = [(os.POSIX_SPAWN_DUP2, self.null, fd) for fd in (0, 1, 2)]
        self.running.append(os.posix_spawn(words[0], words, dict(os.environ, **env), file_actions=actions))
        self.execs += 1

    def reap(self, wait=0):
        left = []
        for pid in self.running:
            done, status = os.waitpid(pid, 0 if wait else os.WNOHANG)
            if not done:
                left.append(pid)
            elif status:
                self.bad += 1
        self.running = left

    def watch(self, seconds):
        began = last = time.monotonic()
        while not self.over.wait(0.5):
            asked = time.monotonic()
            # On a machine that is overloaded a client may take nothing for so long that it is cut off.
            with contextlib.suppress(OSError, http.client.HTTPException):
                get(self.sock, "/healthz")
            self.health_ms = max(self.health_ms, (time.monotonic() - asked) * 1000)
            if asked - last >= min(SAMPLE_S, seconds / 20):
                last = asked
                with contextlib.suppress(OSError, http.client.HTTPException):
                    objects = json.loads(get(self.sock, "/v1/probes")[1])["objects"]
                    others = sum(1 for o in objects if not o["path"].startswith(self.bench.dir))
                    self.samples.append((asked - began, held(self.daemon.proc.pid), others))
                if len(self.samples) % 6 == 0 and seconds > 60:
                    print(
                        f"churn: {asked - began:.0f} s, {self.execs} execs: {self.samples[-1][1:]}",
                        file=sys.stderr,
                        flush=True,
                    )

    def run(self, seconds):
        watcher = threading.Thread(target=self.watch, args=(seconds,))
        watcher.start()
        due = time.monotonic()
        end = due + seconds
        while time.monotonic() < end:
            self.start_one()
            self.reap()
            # Of a machine that is slower than the rate no more is asked than it can do.
            due = max(due + 1 / RATE, time.monotonic() - 0.1)
            time.sleep(max(0, due - time.monotonic()))
        self.over.set()
        watcher.join()
        self.reap(wait=1)
        os.close(self.null)


def flat(samples, warm, seconds):
    """
    What grew: of each figure the highest of the last sixth of the time after warming up is held
    against the highest of the first.
    """
    sixth = (seconds - warm) / 6
    first = [s for s in samples if warm <= s[0] < warm + sixth]
    last = [s for s in samples if s[0] >= seconds - sixth]
    true(f"{len(samples)} samples are too few: {len(first)} and {len(last)}", first and last)
    before, after = (Held(*map(max, zip(*(held for _, held, _ in part)))) for part in (first, last))
    # Other programs of this host bring libraries of their own.
    more = max(0, max(n for _, _, n in last) - min(n for _, _, n in first))
    print(f"churn: after {warm:.0f} s at most {before}", file=sys.stderr)
    print(f"churn: in the end    at most {after}; {more} more files of others are probed", file=sys.stderr, flush=True)
    grown = [
        (name, a, b)
        for name, a, b, slack, each in zip(Held._fields, before, after, SLACK, OTHERS)
        if b > a + slack + more * each
    ]
    # Tables of processes and of freed allocations fill for some minutes.
    return [g for g in grown if warm >= 300 or g[0] != "rss_kib"]


def copies_of(sock, pid):
    processes = json.loads(get(sock, "/v1/processes")[1])["processes"]
    return sum(p["copies"] for p in processes if p["pid"] == pid)


def churn(bench, seconds, warm, rate):
    sock = bench.path("sock")
    daemon = bench.daemon(*bench.service_args(), "--quiet")
    # Only our children: the programs of other tests would fill the tables of allocations meanwhile.
    get(sock, "/v1/targets?all", "DELETE")
    eq("our children are targets", get(sock, f"/v1/targets?pid={os.getpid()}", "PUT")[0], 200)
    # It knows the library from now on, so that it has no excuse for a copy of the innocent program
    # that it does not see.
    bench.target(standin("scen"), "--wait", "exit", "1")
    ready = time.monotonic() + 20 * PATIENCE
    while not any(o["path"].startswith(standin("lib")) for o in json.loads(get(sock, "/v1/probes")[1])["objects"]):
        true("the runtime is not probed", time.monotonic() < ready)
        time.sleep(0.05)
    if warm >= 300:
        # What is kept of freed allocations (65,536 records, 14 MB) would take 20 minutes to fill.
        subprocess.run(
            [standin("hoard"), "pinned", "70000", "1"],
            input="\n\n",
            text=True,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    innocent = bench.target(sys.executable, "-c", INNOCENT, standin("lib/libcudart.so.13"), str(seconds))
    load = Churn(bench, sock, daemon)
    load.run(seconds)
    made = int(innocent.line())
    # What the daemon shows is some time old.
    end = time.monotonic() + 5 * PATIENCE
    while (seen := copies_of(sock, innocent.pid)) < made and time.monotonic() < end:
        time.sleep(0.1)
    print(
        f"attack: {load.execs} execs in {seconds:.0f} s ({load.execs / seconds:.0f}/s): worst /healthz "
        f"{load.health_ms:.0f} ms, lost of an innocent "
        f"program beside it {made - seen} of {made} copies",
        file=sys.stderr,
        flush=True,
    )
    innocent.go()
    innocent.finish()
    # Ten seconds on a busy machine may have too few looks to say what grows.
    grown = flat(load.samples, warm, seconds) if seconds > 60 or len(load.samples) > 10 else []
    eq("what grew, from and to", grown, [])
    eq("programs that failed", load.bad, 0)
    eq("copies of the innocent program", seen, made)
    true(f"only {load.execs / seconds:.0f} execs a second", load.execs / seconds >= rate)
    status = json.loads(get(sock, "/v1/status")[1])
    eq("identity", status["identity"]["why"], "")
    daemon.stop()


@timeout(60)
def test_short(bench):
    churn(bench, 10, 2, 20)


@long
@timeout(LONG_SECONDS / 2 + 120)
def test_hour(bench):
    # Beside other tests a host gives less than the rate.
    churn(bench, LONG_SECONDS, min(600, LONG_SECONDS / 3), RATE / 4)
