# SPDX-License-Identifier: GPL-2.0-only
"""
The screens in a real terminal (tmux), at three sizes: `ttmon top`, `ttmon heat`, `ttmon smi`, and the
tables of `ttmon memtrace`. What they show comes from a service made here and from files made here, so
that each figure on the screen is known.
"""
import contextlib
import http.server
import json
import os
import re
import shutil
import socketserver
import subprocess
import threading
import time
import urllib.parse

import made_db
from e2e import PATIENCE, TOP, TTMON, Skip, eq, timeout, true

KERNEL = False
SIZES = ((80, 24), (120, 40), (200, 50))
EVIL = "\x1b[31mred\x1b]0;title\x07"  # escape sequences in the name of a process


class Tmux:
    """A command in a terminal of tmux: what it shows, keys to it."""

    count = 0

    def __init__(self, bench, *command, columns=80, rows=24, env=None):
        if not shutil.which("tmux"):
            raise Skip("tmux is not here")
        # A server of its own: one that is ending would refuse the next session.
        Tmux.count += 1
        self.socket = bench.path(f"tmux{Tmux.count}")
        self.columns, self.rows = columns, rows
        words = ["env", "TERM=screen-256color", "LC_ALL=C.UTF-8", *(f"{k}={v}" for k, v in (env or {}).items())]
        self.run(
            *("-f", "/dev/null", "-u", "new-session", "-d", "-x", str(columns), "-y", str(rows), "--"),
            *(*words, "sh", "-c", '"$@"; echo "exit status $?"; exec sleep 1000', "sh", TTMON, *command),
        )
        self.run("set-option", "-g", "status", "off")
        self.run("resize-window", "-x", str(columns), "-y", str(rows))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)

    def run(self, *args):
        done = subprocess.run(
            ["tmux", "-S", self.socket, *args],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        true(f"tmux {args}: {done.stderr}", done.returncode == 0)
        return done.stdout

    def lines(self, *how):
        return self.run("capture-pane", "-p", *how).split("\n")[: self.rows]

    def keys(self, *keys):
        """Names of keys of tmux; a text that is no name is typed."""
        for key in keys:
            self.run("send-keys", key)

    def until(self, what, shown, seconds=15):
        end = time.monotonic() + seconds * PATIENCE
        while not shown(lines := self.lines()):
            true(f"{what}: the screen says\n" + "\n".join(lines), time.monotonic() < end)
            time.sleep(0.05)
        return lines

    def ended(self):
        """Until the command has ended, with status 0."""
        self.until("the end", lambda s: any(line.startswith("exit status 0") for line in s))


# ---- a service that says what it is told to ----
def process(pid, comm, *, ppid=1, cls="user", cpu=0.0, pinned=0, copied=0.0, wait=0.0, **more):
    """Rates are per second; None: not known."""
    return dict(pid=pid, comm=comm, ppid=ppid, cls=cls, cpu=cpu, pinned=pinned, copied=copied, wait=wait, **more)


class Service:
    """Answers on a local socket as ttmond does, with the processes it is given."""

    def __init__(self, bench, processes, allocations=()):
        self.sock, self.processes, self.allocations = bench.path("sock"), processes, list(allocations)
        self.began = time.monotonic_ns()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                url = urllib.parse.urlparse(self.path)
                text = outer.answer(url.path, urllib.parse.parse_qs(url.query))
                self.send_response(200 if text is not None else 404)
                body = (text if text is not None else '{"error": "no such thing"}').encode()
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

            def address_string(self):
                return "local"

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True

        self.server = Server(self.sock, Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def row(self, p, ns):
        def sum_of(rate, scale=1):
            return None if rate is None else int(rate * scale * ns / 1e9)

        known = p["pinned"] is not None
        return {
            "pid": p["pid"],
            "start_ns": 1 + next(i for i, x in enumerate(self.processes) if x is p),
            "comm": p["comm"],
            "class": p["cls"],
            "ppid": p["ppid"],
            "ended": False,
            "traced": known,
            "cpu_ns": sum_of(p["cpu"], 1e9),
            "switches": sum_of(10),
            "copies": sum_of(p["copied"], 1e-6) if known else None,
            "copy_bytes": sum_of(p["copied"]) if known else None,
            "wait_ns": sum_of(p["wait"], 1e9) if known else None,
            "wait_missed": 0 if known else None,
            "pinned_bytes": p["pinned"],
            "rmid": None,
            "work": None,
        }

    def answer(self, path, query):
        ns = time.monotonic_ns() - self.began
        if path == "/v1/processes":
            user = sum(int((p["cpu"] or 0) * ns) for p in self.processes)
            sums = {"user_ns": user, "kernel_ns": 0, "idle_ns": 2 * ns - user, "missing_ns": 0, "cpus": 2}
            doc = {"since_ns": 1, "now_ns": ns, "counters": False, "rdt": False, "sums": sums}
            doc["processes"] = [self.row(p, ns) for p in self.processes]
            doc["gone"] = {"pid": 0, "class": "other", "cpu_ns": 0}
            return json.dumps(doc)
        if path == "/v1/status":
            return json.dumps(
                {
                    "pinned": {"now_pages": 1, "peak_pages": 2, "at_least": False},
                    "complete": True,
                    "events": {"lost": {}},
                }
            )
        if path in ("/v1/heat", "/v1/allocations"):
            pid = query.get("pid", ["0"])[0]
            rows = [a for a in self.allocations if pid in ("0", str(a["pid"]))]
            rows = rows if path == "/v1/heat" else [a for a in rows if a["method"] == query["method"][0]]
            return json.dumps({"allocations": rows, "now_ns": str(10_000_000_000)})
        return "" if path == "/v1/advice" else None


def allocation(pid, seq, site, size):
    return {
        "id": f"{seq:016x}:{size}:0@1",
        "seq": seq,
        "pid": pid,
        "comm": "train",
        "method": "host_alloc",
        "size": size,
        "live": True,
        "call_site": site,
        "alloc_ns": "1000000000",
        "free_ns": None,
        "moved": 4096,
        "origin_ns": "1000000000",
        "width_ns": 1_000_000_000,
        "copies": [1],
        "bytes": [4096],
        "kind": "pinned",
    }


def fits(lines, columns):
    """No line runs over the right edge into the next, and none is cut in the middle of a word of the titles."""
    for line in lines:
        true(f"{len(line)} characters at {columns} columns: {line!r}", len(line) <= columns)


def place(lines, start):
    """The line that begins so."""
    return next(i for i, line in enumerate(lines) if line.lstrip().startswith(start))


@timeout(120)
def test_top(bench):
    """
    Pinned memory, copies and waits first, by pinned memory; columns without a source are not there; a
    figure that is not known is a dash; bars; command lines where there is room.
    """
    me = os.getpid()
    procs = [
        process(1, "init"),
        process(me, "train", pinned=3 << 30, copied=2e9, wait=0.5, cpu=0.25),
        process(4194303, "größe 日本", pinned=1 << 30, cpu=0.9),
        process(4194302, EVIL, pinned=4096, cpu=0.01),
        process(4194301, "untraced", pinned=None, cpu=0.02),
        process(4194300, "kthread", cls="kernel", cpu=0.01, ppid=2),
    ]
    with Service(bench, procs) as service:
        for columns, rows in SIZES:
            with Tmux(bench, "top", "-s", service.sock, "-i", "0.2", columns=columns, rows=rows) as t:
                lines = t.until("figures", lambda s: any("train" in x and "█" in x for x in s))
                fits(lines, columns)
                head = place(lines, "PID")
                titles = lines[head].split()
                eq("first columns", titles[:6], ["PID", "PROCESS", "PINNED", "COPIED/s", "WAIT%", "CPU%"])
                eq("columns without a source", {"IPC", "MISS/s", "LLC", "MBM/s", "CHIP%", "RMID"} & set(titles), set())
                eq("command lines", "COMMAND" in titles, columns >= 120)
                order = [line.split()[1] for line in lines[head + 1 : head + 5]]
                eq("by pinned memory", order[:3], ["train", "größe", "?[31mred?]0;title?"[:17]])
                train, wide, evil = lines[head + 1 : head + 4]
                true(f"pinned of {train!r}", train.split()[2:4] == ["3.0G", "██████████"])
                true(f"waits of {train!r}", re.search(r" (1\.9|2\.0)G +(4\d|5\d)\.\d +2\d\.\d", train))
                # Wide characters take two columns: what is behind them stands in its column.
                eq("1.0G below PINNED", wide.index("1.0G") + 4 + 2, lines[head].index("PINNED") + 6)
                true(f"a third: {wide!r}", "███▎" in wide or "███▍" in wide)
                true(f"the sequence is text: {evil!r}", "?[31mred" in evil and " 4.0K " in evil)
                untraced = next(line for line in lines if "untraced" in line)
                eq("not known", untraced.split()[2:5], ["-", "-", "-"])
                true("no kernel thread", not any("kthread" in line for line in lines))
                if columns >= 120:
                    with open("/proc/self/cmdline", encoding="utf-8") as f:
                        mine = f.read().replace("\0", " ").strip()
                    shown = train[lines[head].index("COMMAND") :].rstrip()
                    true(f"my command line: {shown!r}", shown and mine.startswith(shown))
                    true("bars of the head", "of CPU" in lines[0] and "of RAM" in lines[1] and "█" in lines[0])
                colours = t.lines("-e")[head + 2]
                true(f"a process that uses a CPU is red: {colours!r}", "\x1b[31m" in colours)
                t.keys("q")
                t.ended()
        with Tmux(bench, "top", "-s", service.sock, "-i", "0.2", env={"NO_COLOR": "1"}) as t:
            t.until("figures", lambda s: any("train" in x for x in s))
            true("NO_COLOR", not any(re.search(r"\x1b\[3[1-3]m", line) for line in t.lines("-e")))


@timeout(120)
def test_top_keys(bench):
    """The filter, help, the tree, groups, and the call sites of a process and back."""
    me, parent = os.getpid(), os.getppid()
    procs = [
        process(parent, "runner", ppid=0),
        process(me, "train", ppid=parent, pinned=3 << 20, cpu=0.25),
        process(4194303, "other", ppid=parent, pinned=1 << 30, cpu=0.9),
    ]
    sites = [allocation(me, 1, "load_batch+0x1 < main", 2 << 20), allocation(me, 2, "weights+0x4 < main", 1 << 20)]
    sites.append(allocation(4194303, 3, "not_mine+0x1 < main", 1 << 30))
    with Service(bench, procs, sites) as service, Tmux(
        bench, "top", "-s", service.sock, "-i", "0.2", columns=100, rows=30
    ) as t:
        t.until("figures", lambda s: any("other" in x for x in s))
        t.keys("?")
        lines = t.until("help", lambda s: any("this text" in x for x in s))
        at = place(lines, "PID")
        fits(lines[at + 1 :], 80)
        t.keys("Escape")
        t.until("rows", lambda s: any("other" in x for x in s))
        t.keys("g")
        lines = t.until("a tree", lambda s: "by tree" in s[29])
        eq("the tree", [x[8:18].rstrip() for x in lines[at + 1 : at + 4]], ["runner", "├─other", "└─train"])
        t.keys("g")
        lines = t.until("units", lambda s: any("PROCS" in x and "UNIT" in x for x in s))
        true(f"{lines}", any(re.match(r" +1 \(not known\)", x) for x in lines))
        t.keys("g")
        t.until("containers", lambda s: any("CONTAINER" in x for x in s))
        t.keys("g", "/", "T", "r", "a", "i")
        lines = t.until("the filter", lambda s: "filter: Trai" in s[29] and not any("other" in x for x in s))
        true("what passes", any("train" in line for line in lines))
        t.keys("BSpace", "Enter")
        t.until("kept", lambda s: "filter: Tra (Esc ends it)" in s[29])
        t.keys("Enter")
        lines = t.until("its call sites", lambda s: s[0].startswith(f"live, process {me}") and "load_batch" in s[3])
        true("of this one alone", not any("not_mine" in line for line in lines))
        true("a lower bound", ">=2.0M" in lines[3])
        t.keys("Escape")
        t.until("back", lambda s: any("PROCESS" in x for x in s) and "filter: Tra" in s[29])
        t.keys("Escape")
        t.until("no filter", lambda s: any("other" in x for x in s) and "filter" not in s[29])
        t.keys("q")
        t.ended()


def made(bench):
    """Two sites: one that had two buffers at a time of three, and one that is read often."""
    m = made_db.Maker(10)
    m.process()
    train = m.object("/usr/bin/train")
    loader = m.site([(train, 0x400, "a_library::with::a::long::scope::load_the_next_batch"), (train, 0x500, "main")])
    weights = m.site([(train, 0x600, "weights"), (train, 0x500, "main")])
    m.alloc(loader, 1 << 20, 0, 4, [(1, "h2d", 1000)])
    m.alloc(loader, 2 << 20, 1, 4, [(2, "h2d", 1000)])
    m.alloc(loader, 4 << 20, 5, None, [])
    m.alloc(weights, 16 << 20, 0, None, [(i / 10, "h2d", 16 << 20) for i in range(90)])
    m.alloc(0, 1 << 20, 0, None, [(1, "h2d", 500)], name="/dev/shm/a/very/long/path/to/größe-日本-" + EVIL, method="mmap")
    return m.write(bench.path("db.json"))


@timeout(120)
def test_heat(bench):
    """
    By call site unless asked otherwise, with the most that was live at one time, and what to do; names
    keep the end that tells; the filter, help, what is inside a call site, and back.
    """
    db = made(bench)
    for columns, rows in SIZES:
        with Tmux(bench, "heat", db, columns=columns, rows=rows) as t:
            lines = t.until("the map", lambda s: s[0].startswith("db.json: ") and any("weights" in x for x in s))
            fits(lines, columns)
            head = place(lines, "CALL SITE")
            eq("columns", lines[head].split()[:5], ["CALL", "SITE", "PEAK", "HOW", "ADVICE"])
            row = {
                name: next(x for x in lines[head + 1 :] if name in x)
                for name in ("weights", "load_the_next", "[31mred")
            }
            path = row["[31mred"]
            # 4 MiB at the end; 1 and 2 MiB before that, together.
            true(f"the peak: {row['load_the_next']!r}", " 4.0M P host" in row["load_the_next"])
            true(f"three buffers: {row['load_the_next']!r}", " x3" in row["load_the_next"])
            true(f"advice: {row['weights']!r}", " 16.0M P host keep " in row["weights"])
            true(f"advice: {row['load_the_next']!r}", re.search(" P host unpin ", row["load_the_next"]))
            true(f"a path keeps its end: {path!r}", path.startswith("~") and "-?[31mred?]0;title?" in path)
            # A wide character is one character and two columns.
            wide = len(re.findall("[日本]", path))
            eq(f"its size in {path!r}", path.index(" 1.0M") + 5 + wide, row["weights"].index(" 16.0M") + 6)
            true(f"characters of {path!r}", columns == 80 or wide == 2)
            if columns == 80:
                t.keys("?")
                fits(t.until("help", lambda s: any("PEAK: the most" in x for x in s)), 80)
                t.keys("Escape")
                t.until("rows", lambda s: any("weights" in x for x in s))
                t.keys("/", "l", "o", "a", "d")
                t.until("the filter", lambda s: "filter: load_" in s[23] and not any("weights" in x for x in s))
                t.keys("Enter", "Enter")
                lines = t.until("its allocations", lambda s: "allocations" in s[0] and "1 of 3" in s[23])
                true(f"{lines}", not any("weights" in line for line in lines))
                t.keys("Enter")
                t.until("its pages", lambda s: any("OFFSET" in x for x in s))
                t.keys("Escape")
                t.until("its allocations again", lambda s: "1 of 3" in s[23])
                t.keys("Escape")
                t.until("the sites", lambda s: "call sites" in s[0] and any("weights" in x for x in s))
                t.keys("g")
                t.until("allocations", lambda s: "1 of 5" in s[23])
            t.keys("q")
            t.ended()


@timeout(60)
def test_memtrace(bench):
    """Where there is no room there are fewer columns, which a line names: no row takes two lines."""
    traces = os.path.join(TOP, "tests", "memtrace", "traces", "kernelslist.g")
    for columns, rows in SIZES:
        with Tmux(bench, "memtrace", "report", traces, columns=columns, rows=rows) as t:
            t.until("the end", lambda s: any(x.startswith("exit status 0") for x in s))
            lines = t.run("capture-pane", "-p", "-S", "-").split("\n")
            fits(lines, columns)
            at = next(i for i, line in enumerate(lines) if line.startswith("LAUNCHES  REQUESTS"))
            eq("the last column", [line.split()[-1] for line in lines[at : at + 3]], ["KERNEL", "group", "add"])
            eq("efficiency", "EFF" in lines[at].split(), True)
            eq(
                f"left out at {columns}: {lines[at + 3]!r}",
                lines[at + 3].startswith("(1 column is left"),
                columns == 80,
            )
            eq("the widths of accesses", "WIDTHS" in lines[at].split(), columns > 80)
            at = next(i for i, line in enumerate(lines) if line.startswith("SECTORS  READS"))
            true(f"one line a buffer: {lines[at + 1]!r}", re.match(r" +448 +64 .*0x710c9b000000$", lines[at + 1]))


def on_pipe(*args):
    done = subprocess.run(
        [TTMON, *args], capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"}
    )
    eq(f"ttmon {args}: {done.stderr}", done.returncode, 0)
    return done.stdout


def test_top_groups_once(bench):
    """The same groups without a screen, and as JSON."""
    with Service(bench, [process(4194303, "a", pinned=4096), process(4194302, "b", pinned=None)]) as service:
        text = on_pipe("top", "-s", service.sock, "-1", "-i", "0.1", "--by", "unit")
        true(text, re.search(r"^ +2 \(not known\) +>=4K +", text, re.M))
        doc = json.loads(on_pipe("top", "-s", service.sock, "-1", "-j", "-i", "0.1", "--by", "unit"))
        row = doc["processes"][0]
        eq("by", (doc["by"], row["comm"], row["processes"], row["pid"]), ("unit", "(not known)", 2, None))
        eq("a lower bound", (row["pinned_bytes"], row["at_least"]), (4096, True))
