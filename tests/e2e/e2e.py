# SPDX-License-Identifier: GPL-2.0-only
"""
e2e.py: what the end-to-end tests share: running ttmond and its targets, reading databases, and
seeing that nothing stays.
"""
import contextlib
import fcntl
import glob
import gzip
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(TOP, os.environ.get("O", ".output"))
TTMOND = os.path.join(OUT, "bin", "ttmond")
TTMON = os.path.join(OUT, "bin", "ttmon")
STANDIN = os.path.join(OUT, "tests", "standin")
CUDA_LIB = "/usr/local/cuda-13.0/lib"
# Where tools/setup.sh unpacks the real Prometheus.
os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/var/cache/ttmon/prometheus/usr/bin"
# Every time limit here is this many times as long: tests/vm runs the same tests under emulation.
SLOW = float(os.environ.get("TTMON_TEST_SLOW", "1"))
# A wait for a state gives up after so many times what it takes on an idle machine: others may use this one too.
PATIENCE = 4 * SLOW
# For a program under -- CMD whose call sites matter: one that is gone before its mappings are read has none.
LINGER = {"STANDIN_LINGER": str(int(500 * SLOW))}

# For a daemon whose budget is waited for: it decides after ten looks at what tracing costs, of a
# second each where nothing else is said.
BUDGET = {"TTMOND_BUDGET_MS": "200"} if SLOW == 1 else {}


class Skip(Exception):
    """The test cannot run here: the missing thing."""


def timeout(seconds):
    """Decorator: another time limit than the usual one."""

    def mark(function):
        function.timeout = seconds
        return function

    return mark


def kernel(needed):
    """
    Decorator: whether a test asks something of the kernel that only root may, or that other kernels
    do in another way, where its module says otherwise.
    """

    def mark(function):
        function.kernel = needed
        return function

    return mark


def needs_kernel(function):
    """By its decorator, or its module's KERNEL. The others do not run in the guests of the kernel matrix."""
    return getattr(function, "kernel", getattr(sys.modules[function.__module__], "KERNEL", True))


def alone(why):
    """
    Decorator: nothing else runs beside this test, and why. A module whose tests are all like that
    says ALONE = "why" instead.
    """

    def mark(function):
        function.alone = why
        return function

    return mark


def runs_alone(function):
    """Why, or None. By its decorator, or its module's ALONE."""
    return getattr(function, "alone", getattr(sys.modules[function.__module__], "ALONE", None))


def fast(function):
    """Decorator: one of the few tests that `make check-fast` runs."""
    function.fast = True
    return function


def long(function):
    """Decorator: a test of minutes, which only `run.py --long` runs."""
    function.long = True
    return function


def standin(name):
    return os.path.join(STANDIN, name)


def eq(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got!r}, not {wanted!r}")


def true(what, cond):
    if not cond:
        raise AssertionError(what)


def load_db(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        return json.load(f)


def last_json(text):
    """The last line of a target's output, which is its book."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    true(f"the target printed no book but {text[-300:]!r}", lines)
    return json.loads(lines[-1])


def bpftool(*args):
    env = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    done = subprocess.run(["bpftool", "-j", *args], capture_output=True, text=True, env=env, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise Skip("bpftool does not work here") from None


def make(*words):
    """The output of make in the checkout. One at a time: two would write the same files."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    with open(os.path.join(OUT, "make.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "--no-print-directory", "-s", "-C", TOP, "O=" + os.environ.get("O", ".output"), *words],
            capture_output=True,
            text=True,
            env=env,
            check=False,
        )
    eq(f"make {' '.join(words)}: {done.stderr[-800:]}", done.returncode, 0)
    return done.stdout


given_ports = set()


def free_port():
    """A port of the loopback address that nobody serves, and below those that the kernel gives to clients."""
    while True:
        port = random.randrange(10000, 32768)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            if port not in given_ports:
                given_ports.add(port)
                return port


def newest_prog():
    return max([p["id"] for p in bpftool("prog", "show")], default=0)


def held_progs():
    """Ids of the BPF programs that some process holds open, itself or through a link."""
    ids = set()
    for path in glob.glob("/proc/[0-9]*/fdinfo/*"):
        with contextlib.suppress(OSError):
            with open(path, encoding="utf-8") as f:
                ids.update(int(n) for n in re.findall(r"^prog_id:\s*(\d+)", f.read(), re.M))
    return ids


def left_over(since, seconds=5.0):
    """Names of BPF programs loaded since then that no process holds; given some time, as the kernel frees them late."""
    end = time.monotonic() + seconds * PATIENCE
    while True:
        progs = [p for p in bpftool("prog", "show") if p["id"] > since]
        held = held_progs() if progs else set()
        progs = [p for p in progs if p["id"] not in held]
        if not progs or time.monotonic() > end:
            return [p.get("name", "?") for p in progs]
        time.sleep(0.1)


def uprobe_events():
    """Lines of the kernel's list of uprobe events (the fallback without multi links leaves some, if it leaves any)."""
    for path in ("/sys/kernel/tracing/uprobe_events", "/sys/kernel/debug/tracing/uprobe_events"):
        with contextlib.suppress(OSError):
            with open(path, encoding="utf-8") as f:
                return f.read().splitlines()
    return []


class Target:
    """A program that prints "ready PID" and waits (--wait)."""

    def __init__(self, bench, args, env=None, wait_ready=True):
        self.proc = subprocess.Popen(
            args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, **(env or {})), cwd=bench.dir
        )
        self.output, self.read = b"", 0
        bench.procs.append(self.proc)
        self.pid = self.proc.pid
        if wait_ready:
            eq("first line", self.line().split()[:1], ["ready"])

    def line(self, seconds=20):
        """The next line of its output."""
        end = time.monotonic() + seconds * PATIENCE
        while b"\n" not in self.output[self.read :]:
            ready, _, _ = select.select([self.proc.stdout], [], [], max(0, end - time.monotonic()))
            true("the target says nothing", ready)
            more = os.read(self.proc.stdout.fileno(), 65536)
            true("the target ended", more)
            self.output += more
        line = self.output[self.read :].split(b"\n")[0] + b"\n"
        self.read += len(line)
        return line.decode()

    def go(self):
        os.write(self.proc.stdin.fileno(), b"\n")

    def finish(self, status=0, seconds=20):
        """Its remaining output; it has to end with this status (None: any)."""
        out, _ = self.proc.communicate(timeout=seconds * PATIENCE)
        out = (self.output[self.read :] + out).decode()
        if status is not None:
            eq("exit status of the target", self.proc.returncode, status)
        return out


class Daemon:
    """A running ttmond."""

    def __init__(self, bench, args, cmd=None, env=None, wait=True, wrap=()):
        self.err = tempfile.NamedTemporaryFile("w+", dir=bench.dir, prefix="ttmond-", suffix=".err", delete=False)
        self.out = tempfile.NamedTemporaryFile("w+", dir=bench.dir, prefix="ttmond-", suffix=".out", delete=False)
        if not os.path.exists(TTMOND):
            raise AssertionError(f"{TTMOND} is not there: make e2e-build")
        # Not the port that others have, and no budget: a busy test host is over it. An emulated CPU
        # may stand still for a second.
        if wait and not cmd and not bench.alone and not {"--pid", "--replay"} & set(args):
            # A daemon for the whole host: it must leave the socket, the segment and the files that
            # every such daemon has by default.
            apart = "--socket" in args and ("--shm-root" in args or {"--shm-slots", "--tt-shm-version"} <= set(args))
            true("a test that uses the host's own socket or /dev/shm runs @alone; see Bench.service_args", apart)
        for option, value in (
            ("--listen-address", "none"),
            ("--max-overhead", "0"),
            *((("--window", "2048"),) if SLOW > 1 else ()),
        ):
            args = list(args) if option in args else [option, value, *args]
        full = [*wrap, TTMOND, *args] + (["--", *cmd] if cmd else [])
        self.started = time.monotonic()
        self.proc = subprocess.Popen(
            full,
            stdin=subprocess.DEVNULL,
            stdout=self.out,
            stderr=self.err,
            env=dict(os.environ, **(env or {})),
            cwd=bench.dir,
        )
        bench.daemons.append(self)
        if wait:
            self.wait_tracing()

    def stderr(self):
        with open(self.err.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def stdout(self):
        with open(self.out.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_line(self, pattern, seconds=20):
        end = time.monotonic() + seconds * PATIENCE
        while time.monotonic() < end:
            if re.search(pattern, self.stderr(), re.M):
                return
            if self.proc.poll() is not None and not re.search(pattern, self.stderr(), re.M):
                raise AssertionError(f"ttmond ended with {self.proc.returncode}: {self.stderr().strip()[-400:]}")
            time.sleep(0.01)
        raise AssertionError(f"ttmond did not say {pattern!r} but {self.stderr().strip()[-400:]!r}")

    def wait_tracing(self):
        self.wait_line(r"^ttmond: tracing ")

    def wait(self, status=0, seconds=25):
        """Let it end by itself."""
        try:
            self.proc.wait(timeout=seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"ttmond is still running after {seconds * PATIENCE:g} s: {self.stderr().strip()[-300:]}"
            ) from None
        if status is not None and self.proc.returncode != status:
            raise AssertionError(
                f"ttmond ended with {self.proc.returncode}, not {status}: {self.stderr().strip()[-400:]}"
            )
        return self.proc.returncode

    def stop(self, sig=signal.SIGINT, status=0):
        self.proc.send_signal(sig)
        return self.wait(status)


class Bench:
    """One test's folder and processes; close() ends what is left of them."""

    def __init__(self, folder, alone_here=True):
        self.dir = folder
        self.alone = alone_here
        self.procs = []
        self.daemons = []

    def path(self, name):
        return os.path.join(self.dir, name)

    def for_everybody(self, path, *others):
        """
        A copy of a built file or folder that every user can open: the checkout may lie below a
        folder that is root's alone. The others are copied too, at the same places as seen from it,
        so that a program finds its libraries. Returns the path of the first copy.
        """
        os.chmod(self.dir, 0o755)
        copies = []
        for built in (path, *others):
            copies.append(os.path.join(self.dir, "for-everybody", os.path.relpath(built, OUT)))
            # Never written over: a process may have it mapped.
            if os.path.exists(copies[-1]):
                continue
            os.makedirs(os.path.dirname(copies[-1]), mode=0o755, exist_ok=True)
            if os.path.isdir(built):
                shutil.copytree(built, copies[-1])
            else:
                shutil.copy(built, copies[-1])
        for folder, _, files in os.walk(self.path("for-everybody")):
            for name in (folder, *(os.path.join(folder, f) for f in files)):
                os.chmod(name, 0o755)
        return copies[0]

    def daemon(self, *args, cmd=None, env=None, wait=True, wrap=()):
        return Daemon(self, args, cmd, env, wait, wrap)

    def service_args(self):
        """Options of a daemon for the whole host that leaves the host's own socket and /dev/shm to others."""
        return ["--socket", self.path("sock"), "--shm-root", self.dir]

    def target(self, *args, env=None, wait_ready=True):
        return Target(self, list(args), env, wait_ready)

    def trace(self, cmd, *args, status=0, env=None):
        """Run cmd under ttmond with a database: (its output, database, the daemon)."""
        db = self.path("db.json")
        daemon = self.daemon("--dump-db", db, *args, cmd=cmd, env=env, wait=False)
        daemon.wait(status)
        return daemon.stdout(), load_db(db), daemon

    def attach(self, cmd, *args, env=None, status=0):
        """Start cmd --wait, trace it with --pid to its end: (its output, database, the daemon)."""
        db = self.path("db.json")
        target = self.target(*cmd, env=env)
        daemon = self.daemon("--dump-db", db, "--pid", str(target.pid), *args)
        target.go()
        out = target.finish(status)
        daemon.wait(0)
        return out, load_db(db), daemon

    def refused(self, args, *words, status=None, cmd=None, env=None, wrap=()):
        """ttmond has to refuse this with one clear line that has these words, and leave nothing."""
        since = newest_prog()
        daemon = self.daemon(*args, cmd=cmd, env=env, wait=False, wrap=wrap)
        rc = daemon.wait(status)
        lines = [
            x
            for x in daemon.stderr().strip().splitlines()
            if not x.startswith(("ttmond: tracing ", "ttmond: no uprobe_multi links here"))
        ]
        true(f"exit status is 0: {lines}", rc != 0)
        eq(f"lines on stderr ({lines})", len(lines), 1)
        true(f"the line does not begin with ttmond: {lines[0]!r}", re.match(r"^(<\d>)?ttmond: ", lines[0]))
        for word in words:
            true(f"{word!r} is not in {lines[0]!r}", re.search(word, lines[0], re.I))
        eq("BPF programs left", left_over(since), [])
        return lines[0]

    def close(self):
        for daemon in self.daemons:
            if daemon.proc.poll() is None:
                daemon.proc.terminate()
                try:
                    daemon.proc.wait(timeout=5 * SLOW)
                except subprocess.TimeoutExpired:
                    daemon.proc.kill()
                    daemon.proc.wait()
        for proc in self.procs:
            if proc.poll() is None:
                proc.kill()
            proc.wait()

    def show_logs(self):
        for daemon in self.daemons:
            print(f"-- {' '.join(daemon.proc.args)}: {daemon.proc.returncode}")
            print(daemon.stderr()[-3000:])


# ---- looking into a database ----
def process(db, pid):
    found = [p for p in db["processes"] if p["pid"] == pid]
    eq(f"processes {pid} in the database", len(found), 1)
    return found[0]


def allocations(db, pid, *methods):
    return [a for a in db["allocations"] if a["pid"] == pid and (not methods or a["method"] in methods)]


def pair(transfers, direction, mem=None):
    """[copies, bytes] of a direction, for one kind of memory or all together."""
    rows = transfers.get(direction, {})
    pairs = [rows[m] for m in rows if mem is None or m == mem]
    return [sum(p[0] for p in pairs), sum(p[1] for p in pairs)]


def known_or_not(direction, transfers, wanted):
    """
    Of ordinary memory, by a process whose probes came late: what was there before them is of an
    unknown kind, never of a wrong one.
    """
    known, unknown = pair(transfers, direction, "pageable"), pair(transfers, direction, "unknown")
    true(f"{direction} pageable: {known} of {wanted}", known[0] <= wanted[0] and known[1] <= wanted[1])
    eq(f"{direction} pageable or unknown", [a + b for a, b in zip(known, unknown)], wanted)


def same_transfers(proc, book):
    """The transfers of a process are those of a target's book."""
    for direction, mems in book["transfers"].items():
        for mem, wanted in mems.items():
            if mem == "none":
                continue
            if direction != "d2d" and not (mem == "pageable" and proc["probed_ns"]):
                eq(f"{direction} {mem}", pair(proc["transfers"], direction, mem), wanted)
            elif direction != "d2d":
                known_or_not(direction, proc["transfers"], wanted)
        if direction == "d2d":
            eq("d2d", pair(proc["transfers"], "d2d"), mems["none"])
    eq("unknown directions", pair(proc["transfers"], "unknown"), [0, 0])


def whole(db, also=()):
    """Nothing is missing but for these reasons, and the accounting identity holds."""
    c = db["completeness"]
    # But for what a process did before its probes were there, if that was so.
    late = {g["why"].replace(" ", "_") for g in c["knowledge"] if g["why"] in ("attached late", "coverage gap")}
    true(
        f"nothing is late in mode {db['capture']['mode']}: {c['knowledge']}",
        (db["capture"]["mode"] != "command" or not late)
        and (db["capture"]["mode"] != "pids" or "attached_late" in late),
    )
    eq("reasons", set(c["reasons"]), late | set(also))
    eq("complete", c["complete"], not late and not also)
    eq("identity", c["identity"], True)
    eq("lost", sum(c["lost"].values()) if isinstance(c["lost"], dict) else c["lost"], 0)


def finding(proc, kind):
    return sum(f["count"] for f in proc["findings"] if f["kind"] == kind)


# ---- Tenstorrent ----
TT_GENERATIONS = ("e0", "e1", "e2a", "e2b", "e2i", "e4", "e2b48", "e2b64", "e2b72")


def tt_env(gen, **more):
    """Environment in which the ttledger, ttscen and ttrun run on the stand-in library of this generation."""
    return {"LD_LIBRARY_PATH": standin(f"tt/{gen}"), **more}
