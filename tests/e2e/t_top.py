# SPDX-License-Identifier: GPL-2.0-only
"""
`ttmon top`: its figures against known loads, its screen on a pseudo-terminal, and what `ttmon
status` and the socket say beside it.
"""
import codecs
import contextlib
import fcntl
import json
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

from e2e import PATIENCE, SLOW, TTMON, Target, alone, eq, standin, timeout, true
from prom import Page
from t_cpu import Service
from tt_host import Unix, api, retry, wait_probed

SPIN = "import os, sys; os.sched_setaffinity(0, {0}); print('ready', flush=True)\nwhile True: pass"
UNKNOWN_ROW = {
    "cycles",
    "instructions",
    "llc_misses",
    "llc_references",
    "llc_bytes",
    "mbm_total_bytes",
    "mbm_local_bytes",
    "rdt_ns",
}


def run(sock, *args, status=0, env=None):
    done = subprocess.run(
        [TTMON, "top", "--socket", sock, *args],
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
        check=False,
        env=dict(os.environ, **(env or {})),
    )
    eq(f"ttmon top {args}: {done.stderr}", done.returncode, status)
    return done.stderr if status else done.stdout


def once(sock, *args):
    return json.loads(run(sock, "-1", "--json", *args))


def exact(doc):
    """The head adds up to CPUs x the interval, and the rows (all of them) to the head."""
    whole = doc["cpus"] * doc["interval_ns"]
    eq("CPU time of the head", sum(doc[k] for k in ("user_ns", "kernel_ns", "idle_ns", "missing_ns")), whole)
    eq("missing", doc["missing_ns"], 0)
    eq("CPU time of the rows", sum(p["cpu_ns"] for p in doc["processes"]), doc["user_ns"] + doc["kernel_ns"])


def ran_ns(pid):
    """The kernel's own book of a process with one thread."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0])


def requests(service):
    """Requests that the service has answered before this one."""
    return Page(service.sock).value("ttmond_http_requests_total")


def wait_asked(service, asked):
    """Until somebody else has asked the service for something since requests() was this."""
    own = 0

    def check():
        nonlocal own
        own += 1
        true("nobody has asked", requests(service) > asked + own)

    retry(20, check)


@timeout(60)
def test_spinner(bench):
    """A process that never sleeps, against the kernel's books; and everything together is what the CPUs had to give."""
    service = Service(bench)
    spin = Target(bench, [sys.executable, "-c", SPIN])
    started, before = time.monotonic(), ran_ns(spin.pid)
    doc = once(service.sock, "-i", "2", "-k")
    after, took = ran_ns(spin.pid), time.monotonic() - started
    exact(doc)
    true(f"interval {doc['interval_ns']}", 1.9e9 < doc["interval_ns"] < 1e9 * took)
    found = [p for p in doc["processes"] if p["pid"] == spin.pid]
    eq("rows", len(found), 1)
    got, slack = found[0]["cpu_ns"], 60_000_000 * SLOW
    # What it ran while the command itself started and ended is not known but by how long that took.
    outside = took * 1e9 - doc["interval_ns"]
    true(
        f"{got / 1e6:.1f} ms of {(after - before) / 1e6:.1f}",
        after - before - outside - slack <= got <= after - before + slack,
    )
    true(f"it had {got / doc['interval_ns']:.2f} of a CPU", 0.02 < got / doc["interval_ns"] < 1.01)
    true("its place among the rows", doc["processes"].index(found[0]) < 10)
    eq("its class", found[0]["class"], "user")


@timeout(150)
def test_brief_processes(bench):
    """Processes that came, went and are forgotten within the interval are one row, so that nothing is left out."""
    service = Service(bench)
    asked = requests(service)
    with subprocess.Popen(
        [TTMON, "top", "-s", service.sock, "-1", "-j", "-k", "-i", f"{min(8 * SLOW, 60):g}"],
        stdout=subprocess.PIPE,
        text=True,
    ) as top:
        wait_asked(service, asked)
        service.load("forks", 0, 300)
        doc = json.loads(top.communicate(timeout=80 * PATIENCE)[0])
    exact(doc)
    rest = [p for p in doc["processes"] if p["class"] == "other"]
    eq("rows of those that ended", len(rest), 1)
    eq("its pid", rest[0]["pid"], None)
    true(f"{rest[0]['switches']} switches", rest[0]["switches"] >= 200 and rest[0]["cpu_ns"] > 0)


@timeout(60)
def test_pinned_and_copies(bench):
    """Pinned memory and transfers of a CUDA program, beside its CPU time; with a target nobody else's are known."""
    service = Service(bench)
    target = bench.target(standin("scen"), "--wait", "live", "4")
    wait_probed(service.sock, target.pid)
    asked = requests(service)
    with subprocess.Popen(
        [TTMON, "top", "-s", service.sock, "-1", "-j", "-i", "2"], stdout=subprocess.PIPE, text=True
    ) as top:
        wait_asked(service, asked)
        target.go()
        book = json.loads(target.line())
        eq("it waits", target.line().split()[:1], ["waiting"])
        doc = json.loads(top.communicate(timeout=30 * PATIENCE)[0])
    row = [p for p in doc["processes"] if p["pid"] == target.pid][0]
    # All its buffers are as large as the one that is copied.
    copies, size = book["transfers"]["h2d"]["pinned"]
    eq("pinned bytes", row["pinned_bytes"], book["live"] * size)
    eq("copies", (row["copies"], row["copy_bytes"]), (copies, size))
    eq("this process's pinned bytes", [p["pinned_bytes"] for p in doc["processes"] if p["pid"] == os.getpid()], [0])
    again = once(service.sock, "-i", "0.3", "-p", str(target.pid))["processes"]
    eq("rows of one pid", [p["pid"] for p in again], [target.pid])
    eq("pinned still, and nothing copied", (again[0]["pinned_bytes"], again[0]["copy_bytes"]), (row["pinned_bytes"], 0))
    by_pinned = once(service.sock, "-i", "0.3", "-o", "pinned")["processes"]
    # Of what others on this host run, not all need be known.
    pinned = [p["pinned_bytes"] for p in by_pinned if p["pid"] and p["pinned_bytes"] is not None]
    eq("by pinned memory", pinned, sorted(pinned, reverse=True))
    # Others on this host may trace and pin too.
    true("among the first", target.pid in [p["pid"] for p in by_pinned[:20]])
    eq("lines", len(once(service.sock, "-i", "0.3", "-n", "3")["processes"]), 3)
    target.go()
    target.finish()
    service.daemon.stop()

    target = bench.target(standin("scen"), "--wait", "live", "2")
    only = Service(bench, "--pid", str(target.pid))
    target.go()
    while target.line().split()[:1] != ["waiting"]:
        pass
    time.sleep(0.3)
    procs = only.processes()
    true("pinned of the target", procs[target.pid]["pinned_bytes"] > 0)
    eq("pinned of others", {p["pinned_bytes"] for pid, p in procs.items() if pid != target.pid}, {None})
    target.go()
    target.finish()


@timeout(60)
def test_table(bench):
    """-1 as text: aligned, as wide as the terminal or whole, and what the host does not measure is a dash."""
    service = Service(bench, env={"TTMOND_COUNTERS": "off"})
    lines = run(service.sock, "-1", "-i", "0.3", "-k", "-o", "cpu").splitlines()
    true(lines[0], re.fullmatch(r"\d+ CPUs?: [\d.]+ % processes, [\d.]+ % kernel, [\d.]+ % idle", lines[0]))
    true(
        lines[1],
        re.search(r"; \d+ of \d+ processes ran; ", lines[1]) and "no counters" in lines[1] and "no RDT" in lines[1],
    )
    # What was missed for a time, on a busy host, has a line of its own.
    lines = lines[:2] + [line for line in lines[2:] if not re.match(r"[a-z]+: ", line)]
    # Two more while another test has Tenstorrent chips run something.
    eq(
        "columns",
        lines[2].replace(" CHIP%  ERROR ", "").split(),
        "PID PROCESS PINNED COPIED/s WAIT% CPU% SWITCH/s".split() + ["RMID"] * ("RMID" in lines[2]),
    )
    for line in lines[3:]:
        if line.isascii():
            eq(f"length of {line!r}", len(line), len(lines[2]))
    at = lines[2].index("CPU%") + 4
    cpu = [float(line[:at].split()[-1]) for line in lines[3:] if line.isascii()]
    eq("sorted by CPU time", cpu, sorted(cpu, reverse=True))
    pids = [
        int(line.split()[0])
        for line in run(service.sock, "-1", "-i", "0.1", "-o", "pid", "-r").splitlines()[2:]
        if re.match(r" *\d+ ", line)
    ]
    eq("by pid, the other way round", pids, sorted(pids, reverse=True))
    with open("/proc/self/cmdline", encoding="utf-8") as f:
        words = f.read().replace("\0", " ").strip()
    true(
        "this process by its command line", words in run(service.sock, "-1", "-i", "0.1", "-a", "-p", str(os.getpid()))
    )
    # Whoever reads the first line only is no error to complain about.
    done = subprocess.run(
        ["sh", "-c", f"{TTMON} top -s {service.sock} -i 0.1 | head -n 1"], capture_output=True, text=True, check=False
    )
    true(f"{done.stdout!r} {done.stderr!r}", done.stdout.count("\n") == 1 and not done.stderr)
    with subprocess.Popen(
        [TTMON, "top", "-s", service.sock, "-j", "-i", "0.1"], stdout=subprocess.PIPE, text=True
    ) as top:
        docs = [json.loads(top.stdout.readline()) for _ in range(3)]
        top.terminate()
    true("an interval each", all(0.05e9 < d["interval_ns"] < 10e9 * PATIENCE for d in docs))


def put(service, family, state):
    conn = Unix(service.sock)
    conn.request("PUT", f"/v1/families?name={family}&state={state}")
    reply = conn.getresponse()
    eq(f"{family} {state}: {reply.read()[:200]!r}", reply.status, 200)


def tables(sock, *args):
    return run(sock, "-1", "-i", "0.3", *args).splitlines()


@alone("what other programs miss and pin is in the figures of the whole host")
@timeout(120)
def test_families(bench):
    """
    What a family of probes does not tell is no 0 here: copies while they are counted only, CPU time
    while it is off.
    """
    service = Service(bench)
    target = bench.target(standin("ledger"), "--calls", "100000000", "--wait")
    wait_probed(service.sock, target.pid)
    target.go()

    def of_target(doc):
        return [p for p in doc["processes"] if p["pid"] == target.pid][0]

    retry(20, lambda: true("nothing is copied", (of_target(once(service.sock, "-i", "0.2"))["copies"] or 0) > 0))
    doc = once(service.sock, "-i", "0.2")
    eq("all is known", doc["knowledge"], [])
    put(service, "transfer", "counting")
    doc = once(service.sock, "-i", "0.3")
    eq("copies", {(p["copies"], p["copy_bytes"]) for p in doc["processes"]}, {(None, None)})
    eq(
        "why",
        [(k["families"], k["known"], k["state"], k["why"]) for k in doc["knowledge"]],
        [(["transfer"], "unknown", "counting", "asked for")],
    )
    lines = tables(service.sock)
    true(lines[1], "; -/s copied" in lines[1])
    true(lines[2], re.fullmatch(r"transfer: only counted since \d\d:\d\d:\d\d \(asked for\)", lines[2]))
    at = lines[3].index("COPIED/s")
    eq("a column of -", {line[at : at + 8].strip() for line in lines[4:] if line.isascii()}, {"-"})
    # Sums since the start are lower bounds from now on.
    mine = service.processes()[target.pid]
    true(f"sums: {mine}", mine["copies"] > 0 and mine["at_least"] and mine["traced"])
    other = service.processes()[os.getpid()]
    eq("sums of one that did nothing that was seen", (other["copies"], other["copy_bytes"]), (None, None))
    asked = requests(service)
    with contextlib.ExitStack() as stack:
        tops = [
            stack.enter_context(
                subprocess.Popen(
                    [TTMON, "top", "-s", service.sock, "-1", "-i", "2", *more], stdout=subprocess.PIPE, text=True
                )
            )
            for more in ([], ["-j"])
        ]
        wait_asked(service, asked + 1)
        put(service, "transfer", "on")
        text, doc = (top.communicate(timeout=30 * PATIENCE)[0] for top in tops)
    doc = json.loads(doc)
    row = of_target(doc)
    true(f"a lower bound: {row}", row["copies"] > 0 and row["at_least"])
    eq("of one that copied nothing", [p["copies"] for p in doc["processes"] if p["pid"] == os.getpid()], [None])
    eq("what is known", [k["known"] for k in doc["knowledge"]], ["at least"])
    lines = text.splitlines()
    true(lines[1], re.search(r"; >=[\d.]+[BkMGT]?/s copied", lines[1]))
    true(lines[2], re.fullmatch(r"transfer: everything is seen again since \d\d:\d\d:\d\d", lines[2]))
    line = [x for x in lines[4:] if x.split()[0] == str(target.pid)][0]
    true(line, re.match(r" *>=\d+[BkMGT]", line[at - 1 :]))
    doc = once(service.sock, "-i", "0.3")
    eq("known again", doc["knowledge"], [])
    eq("and shown so", [x for x in tables(service.sock)[3:] if ">=" in x[at:]], [])
    eq("of one that copies nothing", [p["copies"] for p in doc["processes"] if p["pid"] == os.getpid()], [0])
    # CPU time.
    put(service, "cpu", "off")
    doc = once(service.sock, "-i", "0.3", "-k")
    eq("head", [doc[k] for k in ("cpus", "user_ns", "kernel_ns", "idle_ns", "missing_ns")], [None] * 5)
    eq("rows", {(p["cpu_ns"], p["switches"]) for p in doc["processes"]}, {(None, None)})
    lines = tables(service.sock)
    eq("first line", lines[0], "CPU time is not measured")
    true(lines[2], re.fullmatch(r"cpu: off since \d\d:\d\d:\d\d \(asked for\)", lines[2]))
    status = subprocess.run([TTMON, "status", "-vs", service.sock], capture_output=True, text=True, check=False).stdout
    line = [x.strip() for x in status.splitlines() if "cpu time" in x][0]
    true(line, re.fullmatch(r"cpu time +not measured: cpu is off since \d\d:\d\d:\d\d \(asked for\)", line))
    true(status, " 0 CPUs" not in status)
    doc = service.status()
    eq("status", (doc["cpu"]["cpus"], doc["cpu"]["at_least"]), (None, True))
    eq("family", (doc["families"]["cpu"]["state"], doc["families"]["cpu"]["seen_since_ns"]), ("off", None))
    # Memory that is held.
    true("pinned", doc["pinned"]["now_bytes"] is not None)
    put(service, "alloc", "off")
    # Status is that of the last tenth of a second.
    retry(10, lambda: eq("state", service.status()["families"]["alloc"]["state"], "off"))
    doc = service.status()
    eq(
        "pinned while allocations are not seen",
        (doc["pinned"]["now_pages"], doc["pinned"]["now_bytes"], doc["allocations"]),
        (None, None, None),
    )
    eq("lower bounds", doc["pinned"]["at_least"], True)
    status = subprocess.run([TTMON, "status", "-vs", service.sock], capture_output=True, text=True, check=False).stdout
    line = [x.strip() for x in status.splitlines() if x.startswith("  pinned")][0]
    true(line, re.match(r"pinned +- now, (>=.* peak|- peak), .*pins; alloc is off since", line))
    eq("pinned of all", {p["pinned_bytes"] for p in service.processes().values()}, {None})
    true("pinned of all", tables(service.sock)[1].startswith("- pinned; "))


def test_options(bench):
    """What cannot be meant is refused in one line; so is a service that is not there or does not measure."""
    sock = bench.path("none")
    for args in (
        ["-i", "0.05"],
        ["-i", "x"],
        ["-i", "nan"],
        ["-o", "size"],
        ["-n", "0"],
        ["-n", "1.5"],
        ["-p", "-4"],
        ["-x"],
        ["--what"],
        ["-p"],
        ["more"],
        ["-o", "cpu", "-o", "nothing"],
    ):
        said = run(sock, *args, status=2)
        true(f"{args}: {said!r}", said.count("\n") == 1 and said.startswith("ttmon top: ") and "--help" in said)
    said = run(sock, "-1", "-o", "pid", "-o", "cpu", status=2)
    true(said, "no ttmond on" in said and said.count("\n") == 1)
    true("help", run(sock, "--help").startswith("usage: ttmon top"))
    service = Service(bench, "--cpu", "off")
    said = run(service.sock, "-1", status=2)
    true(said, "--cpu on" in said and said.count("\n") == 1)
    status = service.status()
    eq("status", (status["cpu"], status["rmid"]), (None, None))


@timeout(60)
def test_socket(bench):
    """The document: the same names always, null for what is not measured."""
    service = Service(bench, "--rmid", "off", env={"TTMOND_COUNTERS": "off"})
    time.sleep(0.3)
    doc = api(service.sock, "/v1/processes")
    eq(
        "members",
        sorted(doc),
        ["counters", "families", "gone", "hidden", "now_ns", "processes", "rdt", "since_ns", "sums"],
    )
    eq("now_ns is the end of a slot", doc["now_ns"] % 1_000_000, 0)
    true("since_ns", 0 < doc["since_ns"] < doc["now_ns"])
    names = set(doc["gone"])
    for p in doc["processes"]:
        eq("names", set(p), names)
        eq(f"unknown of {p['comm']}", {k for k in UNKNOWN_ROW if p[k] is not None}, set())
        eq("RMID", p["rmid"], None)
    # Of one moment: all rows are what the sums say.
    rows = [p for p in doc["processes"] if p["class"] in ("user", "kernel")] + [doc["gone"]]
    eq("CPU time", sum(p["cpu_ns"] for p in rows), doc["sums"]["user_ns"] + doc["sums"]["kernel_ns"])
    mine = [p for p in doc["processes"] if p["pid"] == os.getpid()]
    eq("this process", [(p["ppid"], p["ended"], p["end_ns"]) for p in mine], [(os.getppid(), False, None)])
    status = service.status()
    eq("backend", status["rmid"]["backend"], "off")
    text = subprocess.run([TTMON, "status", "-vs", service.sock], capture_output=True, text=True, check=False).stdout
    true(text, re.search(r"^  cpu time +\d+ CPUs, [\d,]+ of [\d,]+ slots add up exactly, nothing missing$", text, re.M))
    true(text, re.search(r"; no counters: .", text) and re.search(r"^  RMIDs +off$", text, re.M))


@timeout(60)
def test_status_of_rmids(bench):
    # More processes than RMIDs, also on a host that runs nothing else.
    bench.procs += [subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL) for _ in range(8)]
    service = Service(bench, "--rmid", "emulated", env={"TTMOND_MAX_RMID": "8", "TTMOND_COUNTERS": "software"})
    time.sleep(0.5)
    text = subprocess.run([TTMON, "status", "-vs", service.sock], capture_output=True, text=True, check=False).stdout
    true(text, re.search(r"^  RMIDs +emulated.*: 8 of 8 in use, peak 8; 0 readings$", text, re.M))
    true(text, re.search(r"^ +[\d,]+ exhausted$", text, re.M) and "with counters" in text)


# ---- the screen ----
class Screen:
    """A vt100 of our own, as far as ncurses needs one: what `ttmon top` shows, keys to it, its end."""

    def __init__(self, bench, sock, *args, rows=24, columns=80, term="vt100"):
        self.main, self.side = pty.openpty()
        self.raw, self.rest = b"", ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.size(rows, columns)
        self.before = termios.tcgetattr(self.side)
        self.proc = subprocess.Popen(
            [TTMON, "top", "--socket", sock, *args],
            stdin=self.side,
            stdout=self.side,
            stderr=self.side,
            start_new_session=True,
            # Its controlling terminal, so that ^C is a signal.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=dict(os.environ, TERM=term, LC_ALL="C.UTF-8"),
        )
        bench.procs.append(self.proc)

    def size(self, rows, columns):
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.rows, self.columns, self.y, self.x, self.full = rows, columns, 0, 0, False
        self.cells, self.region = [[" "] * columns for _ in range(rows)], (0, rows - 1)

    def resize(self, rows, columns):
        self.size(rows, columns)
        self.proc.send_signal(signal.SIGWINCH)

    def key(self, text):
        os.write(self.main, text.encode())

    def take(self, seconds):
        ready, _, _ = select.select([self.main], [], [], seconds)
        if ready:
            with contextlib.suppress(OSError):
                new = os.read(self.main, 65536)
                self.raw += new
                self.obey(self.rest + self.decoder.decode(new))
        return ready

    def put(self, char):
        # The last column is written without going on to the next line; the next character does that.
        if self.full:
            self.x, self.y = 0, self.y + 1
        if 0 <= self.y < self.rows and 0 <= self.x < self.columns:
            self.cells[self.y][self.x] = char
        self.full = self.x >= self.columns - 1
        self.x += not self.full

    def obey(self, text):
        at = 0
        while at < len(text):
            c = text[at]
            if c == "\x1b":
                found = re.match(r"\x1b(\[[?\d;]*[@-~]|[()].|[^\[()])", text[at:])
                if not found:
                    break  # the rest comes with the next read
                self.escape(found.group(1))
                at += len(found.group(0))
                continue
            at += 1
            if c < " " and c in "\r\n\b\t":
                self.full = False
            if c == "\r":
                self.x = 0
            elif c == "\n":
                self.down(1)
            elif c == "\b":
                self.x -= 1
            elif c == "\t":
                self.x = self.x // 8 * 8 + 8
            elif c >= " ":
                self.put(c)
        self.rest = text[at:]

    def down(self, step):
        """A line down or up; at the edge of the scrolling region its lines go the other way."""
        top, bottom = self.region
        if self.y == (bottom if step > 0 else top):
            self.cells.insert(bottom if step > 0 else top, self.cells.pop(top if step > 0 else bottom))
            self.clear(self.y, 0, self.columns)
        else:
            self.y = min(max(self.y + step, 0), self.rows - 1)

    def clear(self, y, first, last):
        for x in range(max(first, 0), min(last, self.columns)):
            self.cells[y][x] = " "

    def escape(self, what):
        self.full = self.full and what[-1] == "m"
        numbers = [int(n) if n else 0 for n in re.sub(r"[^\d;]", "", what).split(";")]
        n, last = numbers[0], what[-1]
        if what[0] != "[":
            if last in "MDE":
                self.down(-1 if last == "M" else 1)
            self.x = 0 if last == "E" else self.x
        elif last in "Hf":
            self.y, self.x = max(n, 1) - 1, (numbers + [0])[1] - 1 if len(numbers) > 1 and numbers[1] else 0
        elif last == "r":
            self.region = (max(n, 1) - 1, min(numbers[1] if len(numbers) > 1 else self.rows, self.rows) - 1)
            self.y, self.x = 0, 0
        elif last in "ABCD":
            self.y += {"A": -max(n, 1), "B": max(n, 1)}.get(last, 0)
            self.x += {"D": -max(n, 1), "C": max(n, 1)}.get(last, 0)
        elif last == "K" and 0 <= self.y < self.rows:
            self.clear(self.y, 0 if n else self.x, self.x + 1 if n == 1 else self.columns)
        elif last == "J":
            self.clear(min(self.y, self.rows - 1), self.x if n == 0 else 0, self.columns)
            for y in range(self.y + 1 if n == 0 else 0, self.rows):
                self.clear(y, 0, self.columns)

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def until(self, what, shown, seconds=15):
        """Until shown(lines) is true."""
        end = time.monotonic() + seconds * PATIENCE
        while not shown(self.lines()):
            alive = self.proc.poll() is None
            if time.monotonic() > end or not alive:
                raise AssertionError(
                    f"{what}: {'' if alive else 'it ended; '}the screen says\n" + "\n".join(self.lines())
                )
            self.take(0.1)
        # The rest of what is being drawn; there may be no end of it.
        end = time.monotonic() + 1
        while self.take(0.15) and time.monotonic() < end:
            pass

    def ended(self, status=0, seconds=10):
        end = time.monotonic() + seconds * PATIENCE
        while self.proc.poll() is None and time.monotonic() < end:
            self.take(0.1)
        eq("exit status", self.proc.poll(), status)
        self.take(0.2)
        after = termios.tcgetattr(self.side)
        eq("the terminal's modes", [after[i] for i in (0, 1, 2, 3)], [self.before[i] for i in (0, 1, 2, 3)])
        os.close(self.side)
        os.close(self.main)


def titles(lines):
    """The place of the line of titles: below a line that says what was missed, if there is one."""
    return next((i for i, line in enumerate(lines) if line.startswith("    PID PROCESS")), len(lines) - 1)


def column(lines, name):
    """What stands below the title, right-aligned."""
    at = titles(lines)
    end = lines[at].index(name) + len(name)
    cells = [line[:end].split()[-1] for line in lines[at + 1 : -1] if line]
    true(f"nothing below {name}", cells)
    return cells


@alone("what other programs miss is a line more on the screen")
@timeout(90)
def test_screen(bench):
    """Figures come, keys are obeyed, any size of terminal will do, and q gives it back."""
    service = Service(bench)
    screen = Screen(bench, service.sock, "-i", "0.5", "-o", "cpu")
    screen.until("figures", lambda s: re.match(r"\d+ CPUs?: [\d.]+ % processes", s[0]) and len(s[4]) > 20)
    lines = screen.lines()
    eq("columns of 80", lines[titles(lines)].split()[:3], ["PID", "PROCESS", "PINNED"])
    first = lines[titles(lines) + 1]
    true(f"first line {first!r}", re.match(r" *\d+ \S+ .*\d+\.\d", first))
    true(lines[-1], lines[-1].startswith("sorted by cpu, every 0.5 s"))
    cpu = [float(x) for x in column(lines, "CPU%")]
    eq("sorted by CPU time", cpu, sorted(cpu, reverse=True))

    screen.key("n")
    screen.until("by pid", lambda s: s[-1].startswith("sorted by pid"))
    pids = [int(x) for x in column(screen.lines(), "PID") if x != "-"]
    eq("sorted by pid", pids, sorted(pids))
    screen.key("r")
    screen.until("reversed", lambda s: "sorted by pid, reversed" in s[-1])
    screen.key("r>")
    screen.until("the next column", lambda s: s[-1].startswith("sorted by pinned,"))
    screen.key("k")
    screen.until("kernel threads", lambda s: "with kernel threads" in s[-1])
    screen.key("n")
    screen.until("a kernel thread", lambda s: any("[kthreadd]" in x for x in s))
    screen.key("kc")
    screen.until("without", lambda s: not any("[kthreadd]" in x for x in s))
    screen.key("a")
    screen.until("command lines", lambda s: sum("/" in x for x in s[titles(s) + 1 : -1]) > 1)
    screen.key("a")
    screen.until("names", lambda s: sum("/" in x for x in s[titles(s) + 1 : -1]) <= 1)
    screen.key("+")
    screen.until("longer", lambda s: "every 1 s" in s[-1])
    screen.key("---")
    screen.until("shorter", lambda s: "every 0.1 s" in s[-1])
    # There is no end of what is drawn every 0.1 s, and each wait below would last its longest.
    screen.key("++")
    screen.until("as at first", lambda s: "every 0.5 s" in s[-1])
    screen.key("h")
    screen.until("help", lambda s: any("kernel threads   a command" in x for x in s))
    screen.key("h")
    screen.until("no help", lambda s: not any("kernel threads   a command" in x for x in s))

    screen.key(" ")
    screen.until("paused", lambda s: s[-1].startswith("PAUSED"))
    first = screen.lines()
    for _ in range(6):
        screen.take(0.2)
    eq("the screen stands still", screen.lines(), first)
    screen.key(" ")
    screen.until("goes on", lambda s: s[-1].startswith("sorted by") and s[:-1] != first[:-1])

    for rows, columns in ((40, 132), (7, 30), (3, 12), (1, 1), (2, 200), (24, 80)):
        screen.resize(rows, columns)
        wanted = min(columns, 7)
        screen.until(f"{columns} x {rows}", lambda s: any(x[:wanted].strip() for x in s))
        if rows > 3 and columns > 20:
            screen.until(f"columns of {columns} x {rows}", lambda s: any("PROCESS" in x and "PINNED" in x for x in s))
    screen.until("all back", lambda s: len(s[titles(s)]) > 60 and s[-1].startswith("sorted by"))
    screen.key("q")
    screen.ended()


@timeout(90)
def test_screen_is_given_back(bench):
    """
    Whatever ends it: ^C, SIGTERM, SIGHUP; the other screen and the cursor too. A terminal that
    nobody knows is refused.
    """
    service = Service(bench)
    for end in (
        lambda s: s.key("\x03"),
        lambda s: s.proc.send_signal(signal.SIGTERM),
        lambda s: s.proc.send_signal(signal.SIGHUP),
    ):
        screen = Screen(bench, service.sock, "-i", "60", term="xterm")
        end_at = time.monotonic() + 15 * PATIENCE
        while b"processes ran" not in screen.raw and time.monotonic() < end_at:
            screen.take(0.1)
        true("the other screen", b"\x1b[?1049h" in screen.raw and b"\x1b[?25l" in screen.raw)
        asked = time.monotonic()
        end(screen)
        screen.ended()
        true(f"after {time.monotonic() - asked:.1f} s", time.monotonic() - asked < 30 * SLOW)
        true(f"not left: {screen.raw[-60:]!r}", screen.raw.rfind(b"\x1b[?1049l") > screen.raw.rfind(b"\x1b[?1049h"))
        true(
            "no cursor",
            max(screen.raw.rfind(b"\x1b[?25h"), screen.raw.rfind(b"\x1b[?12l\x1b[?25h"))
            > screen.raw.rfind(b"\x1b[?25l"),
        )
    screen = Screen(bench, service.sock, term="no-such-terminal")
    screen.ended(status=2)
    true(screen.raw.decode(), b"ttmon top: this terminal (TERM=no-such-terminal)" in screen.raw)


@timeout(90)
def test_screen_without_service(bench):
    """No service, one that comes, one that goes, another one: said, and waited for."""
    sock = bench.path("sock")
    screen = Screen(bench, sock, "-i", "0.2", columns=120)
    screen.until("no service", lambda s: s[0].startswith("NO FIGURES") and "No such file" in s[0])
    service = Service(bench)
    screen.until("figures", lambda s: "% idle" in s[0] and len(s[3]) > 20)
    service.daemon.stop()
    screen.until("gone", lambda s: s[0].startswith("NO FIGURES") and "old" in s[1])
    true("the last figures stay", len(screen.lines()[3]) > 20)
    service = Service(bench)
    screen.until("figures of the next one", lambda s: "% idle" in s[0])
    service.daemon.stop()
    Service(bench, "--cpu", "off")
    screen.until("no CPU time", lambda s: "does not measure CPU time" in s[0])
    screen.key("q")
    screen.ended()
