# SPDX-License-Identifier: GPL-2.0-only
"""
truth_host.py: what t_truth.py holds every view of a traced program against: the book of
tests/standin/truth.c, and the rules that follow from it alone. Nothing here is taken from the
program's sources: a statement about memory is right, "unknown" or wrong by what the memory was.

A view is parsed into statements: of which memory (an address, or the name of a function that made
or copied it), which verdict, which kind, how many copies. Each is held against the book by itself,
so that a view may say less than another, but not something else.
"""
import base64
import gzip
import json
import os
import re
import select
import subprocess
import time

from e2e import OUT, PATIENCE, TTMON, eq, standin, true
from tt_host import BOOK_TYPES, Unix

PAGE = 4096
LIB = os.path.join(OUT, "libttmon")
PIN = {"pin", "pin it", "allocate pinned"}
UNPIN = {"unpin", "unpin it", "no-pin", "do not pin"}
PINNED_METHODS = {"host_alloc", "registered", "pool"}
PAGEABLE_METHODS = {"mmap", "custom"}
SAME = {None: "unknown", "pin it": "pin", "unpin it": "unpin", "do not pin": "no-pin"}
WORDS = PIN | UNPIN | {"keep", "unknown", "cold"}
HOST_METHODS = PINNED_METHODS | PAGEABLE_METHODS
COLUMNS = {
    "pin hot": ("pin_hot", "pin_was", "late_pin_hot"),
    "pin cold": ("pin_cold", "late_pin_cold"),
    "page hot": ("page_hot", "page_was", "page_d2h", "late_page_hot", "late_page_d2h", "page_cold"),
    "D2H pinned": ("pin_d2h",),
    "registered": ("reg_hot", "reg_cold", "reg_was", "late_reg_hot"),
    "old mapping": (
        "old_hot",
        "old_d2h",
        "old_gone",
        "old_cold",
        "old_reg",
        "old_edge0",
        "old_edge1",
        "old_edge2",
        "old_edge3",
        "old_edge4",
    ),
    "heap": ("heap_small", "heap_big", "heap_d2h", "heap_cold", "heap_reg"),
}


class Workload:
    """tests/standin/truth: it does what it is told, and answers."""

    def __init__(self, bench, name="truth"):
        self.bench, self.buffer = bench, b""
        ctl, say = bench.path(name + ".ctl"), bench.path(name + ".say")
        os.mkfifo(ctl)
        os.mkfifo(say)
        self.ctl, self.say = os.open(ctl, os.O_RDWR), os.open(say, os.O_RDWR)
        self.args, self.pid, self.proc = [standin("truth"), ctl, say], None, None

    def start(self, env=None, ours=True):
        """
        By itself. Under -- CMD the daemon starts args. Not ours: a child of init, which ends when
        its commands do.
        """
        self.proc = subprocess.Popen(
            self.args if ours else ["setsid", "-f", *self.args], env=dict(os.environ, **(env or {})), cwd=self.bench.dir
        )
        self.bench.procs.append(self.proc)
        return self.begun()

    def begun(self):
        self.pid = self.answer()["pid"]
        return self

    def answer(self, seconds=30):
        end = time.monotonic() + seconds * PATIENCE
        while b"\n" not in self.buffer:
            true("the workload says nothing", select.select([self.say], [], [], max(0, end - time.monotonic()))[0])
            self.buffer += os.read(self.say, 1 << 16)
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def tell(self, *commands):
        """All at once, without a look at the answers: nothing comes in between."""
        os.write(self.ctl, "".join(c + "\n" for c in commands).encode())

    def do(self, *commands):
        self.tell(*commands)
        for _ in commands:
            answer = self.answer()
        return answer

    def book(self):
        return Book(self.do("book"))

    def quit(self):
        self.tell("quit")
        if self.proc:
            eq("exit status of the workload", self.proc.wait(20 * PATIENCE), 0)


class Buffer:
    """What a buffer is, by the book."""

    def __init__(self, b):
        self.__dict__.update(b)
        self.end = self.addr + self.size
        self.was_pinned = bool(self.pinned)
        self.goes_on = False  # the book says what there will have been at the end
        self.cold = not self.copies

    def moved(self, direction=None, begin=0):
        """Copies since then."""
        return sum(n for t, _, d, n, _ in self.copies if t >= begin and direction in (None, d))

    def right(self, alive):
        """
        Verdicts that do no harm. Of memory that need not be touched, none is needed. alive: it may
        be too young to be called cold.
        """
        if self.was_pinned:
            return UNPIN | {"cold"} | ({"keep"} if alive else set()) if self.cold else {"keep"}
        return {"keep", "no-pin"} if self.cold else PIN


class Book:
    def __init__(self, doc):
        self.pid, self.now, self.blocks = doc["pid"], doc["now"], doc["blocks"]
        self.nameless = set()
        self.buffers = {b["name"]: Buffer(b) for b in doc["buffers"]}
        # A pool's blocks, of which all are pinned and copied.
        for i, b in enumerate(doc["blocks"]):
            self.buffers[f"block{i}"] = Buffer(
                {
                    "name": f"block{i}",
                    "what": "reg" if b["registered"] else "pin",
                    "addr": b["addr"],
                    "size": b["size"],
                    "made": b["made"],
                    "pinned": b["made"],
                    "unpinned": b["freed"],
                    "freed": b["freed"],
                    "asked": -1,
                    "copies": [[b["made"], b["made"], "h2d", b["copies"], b["bytes"]]],
                }
            )

    def over(self, addr, size, alloc_ns=None, free_ns=None):
        """Buffers that lie in this memory while it was there."""
        return [
            b
            for b in self.buffers.values()
            if b.addr < addr + size
            and b.end > addr
            and (free_ns is None or b.made < free_ns)
            and (not alloc_ns or not b.freed or b.freed > alloc_ns)
        ]

    def named(self, text):
        """Buffers by the innermost function of a call stack; those of make_all are what was registered late."""
        if self.blocks and re.search(r"\b(torch_step|pool_take)\b", text or ""):
            return [b for b in self.buffers.values() if b.name.startswith("block") and b.addr not in self.nameless]
        found = re.search(r"\b(?:make|copy)_([a-z]\w*?)(?:\+0x|\b(?!\w))", text or "")
        if not found:
            return []
        if found[1] == "all":
            return [self.buffers[n] for n in ("old_reg", "heap_reg") if n in self.buffers]
        return [self.buffers[found[1]]] if found[1] in self.buffers else []

    def sized(self, size):
        return [b for b in self.buffers.values() if b.size == size]

    def sums(self):
        """Copies and bytes by direction and memory."""
        ret = {}
        for b in self.buffers.values():
            for _, _, d, n, size in b.copies:
                pair = ret.setdefault((d, "pinned" if b.was_pinned else "pageable"), [0, 0])
                pair[0] += n
                pair[1] += size
        return ret

    def peak_bytes(self):
        """Of what was pinned at one time: all of it is before anything is unpinned."""
        return sum(b.size for b in self.buffers.values() if b.was_pinned)


class Sums(Book):
    """A book that has nothing but sums: what tests/standin/scen prints."""

    def __init__(self, doc):
        super().__init__({"pid": doc["pid"], "now": 0, "blocks": [], "buffers": []})
        self.doc = doc

    def sums(self):
        return {
            (d, mem): pair
            for d, mems in self.doc["transfers"].items()
            for mem, pair in mems.items()
            if mem in ("pinned", "pageable")
        }

    def peak_bytes(self):
        return self.doc["pins"]


class Demo(Book):
    """
    What tools/demo/workload.c does, by its own words: 250 steps, a batch of ordinary memory and the
    weights, which are pinned, to the device in each; 32 MiB pinned and never used; small pins that
    come and go, of which every verdict is right that is not of ordinary memory.
    """

    STEPS = 250
    SITES = (
        ("batch", r"load_batch_pageable|upload_batch"),
        ("weights", r"alloc_weights_pinned|upload_weights"),
        ("staging", r"alloc_staging_never_used"),
        ("churn", r"churn_small_pins"),
    )

    def __init__(self, pid):
        self.pid, self.now, self.blocks, self.buffers = pid, 0, [], {}
        shared = {}
        with open(f"/proc/{pid}/maps", encoding="ascii") as f:
            for line in f:
                lo, hi = (int(x, 16) for x in line.split()[0].split("-"))
                if "/dev/zero" in line:
                    shared[hi - lo] = lo
        for name, size in (("weights", 4 << 20), ("staging", 32 << 20)):
            true(f"no mapping of the {name}", size in shared)
            self.add(name, shared[size], size, True)
        self.add("batch", 0, 16 << 20, False)
        self.add("churn", 0, 0, True)
        self.buffers["staging"].copies = []
        self.buffers["staging"].cold = True

    def add(self, name, addr, size, is_pinned):
        self.buffers[name] = Buffer(
            {
                "name": name,
                "what": "pin" if is_pinned else "map",
                "addr": addr,
                "size": size,
                "made": 0,
                "pinned": int(is_pinned),
                "unpinned": 0,
                "freed": 0,
                "asked": -1,
                "copies": [[0, 0, "h2d", self.STEPS, self.STEPS * size]],
            }
        )
        if name == "churn":
            self.buffers[name].right = lambda alive: {"keep", "unpin", "unpin it", "no-pin", "do not pin", "cold"}
            self.buffers[name].moved = lambda direction=None, begin=0: 1 << 40

    def goes_on(self, goes_on):
        for b in self.buffers.values():
            b.goes_on = goes_on

    def over(self, addr, size, alloc_ns=None, free_ns=None):
        return [b for b in self.buffers.values() if b.addr and b.addr < addr + size and b.end > addr]

    def named(self, text):
        return [self.buffers[name] for name, pattern in self.SITES if re.search(pattern, (text or "").split(" < ")[0])]

    def sized(self, size):
        return [b for b in self.buffers.values() if b.addr and b.size == size]

    def sums(self):
        return None


class Row:
    """One row of the matrix: what its views say, held against the book."""

    def __init__(self, name, missed, none_unknown=False, others=False):
        self.name = name
        self.others = others  # calls of another process were missed: the whole is not complete, and this process is
        self.missed = missed  # calls that nobody could see: True, False, None: perhaps
        self.none_unknown = none_unknown
        self.wrong, self.known, self.unknown = [], {}, set()
        self.bad = set()
        self.agreed = {}  # by moment and memory: what the first view said, and which that was
        self.moment = None
        self.alone = (
            True  # the database holds no other run of this program: whoever sums up runs says the same as who does not
        )

    # ---- one statement ----
    def fault(self, view, names, what):
        for name in names:
            self.bad.add(name)
        line = f"{view}: {'+'.join(names) or 'run'}: {what}"
        if line not in self.wrong:
            self.wrong.append(line)

    def verdict(self, view, buffers, verdict, earlier=False):
        """
        A verdict for this memory. earlier: said some time ago, when more or less was known than
        other views know now.
        """
        if verdict is not None and verdict not in WORDS and verdict.replace("-", " ") in WORDS:
            verdict = verdict.replace("-", " ")
            self.fault(view, [], f"{verdict!r} is written with a hyphen")
        plain = SAME.get(verdict, verdict)
        for b in buffers:
            said, first = (plain, view) if earlier else self.agreed.setdefault((self.moment, b.name), (plain, view))
            if self.moment and self.alone and said != plain:
                self.fault(view, [b.name], f"{plain!r}, and {first} says {said!r}")
            if verdict in ("unknown", None):
                self.unknown.add((b.name, "verdict"))
            elif verdict in b.right(self.moment == "live"):
                self.known[b.name, "verdict"] = verdict
            else:
                what = "pinned" if b.was_pinned else "ordinary"
                copies = f"copied {b.moved()} times" if b.copies else "never copied"
                self.fault(view, [b.name], f"{verdict!r} of {what} memory that was {copies}")

    def kind(self, view, buffers, kind):
        """pinned, pageable or unknown."""
        for b in buffers:
            if kind == "unknown":
                self.unknown.add((b.name, "kind"))
            elif (kind == "pinned") == b.was_pinned:
                self.known[b.name, "kind"] = kind
            else:
                self.fault(view, [b.name], f"{kind}, but it was {'pinned' if b.was_pinned else 'never pinned'}")

    def copies(self, view, buffers, got, at_least, direction=None):
        """A figure of copies of these buffers; None: not known."""
        if got is None or not buffers or any(b.name == "churn" for b in buffers):
            return
        want = sum(b.moved(direction) for b in buffers)
        for b in buffers if direction else ():
            if got == want and not at_least:
                self.known[b.name, "copies"] = got
            else:
                self.unknown.add((b.name, "copies"))
        names = [b.name for b in buffers]
        if got > want:
            self.fault(view, names, f"{got} copies {direction or ''}, there were {want}")
        elif got < want and not at_least and not any(b.goes_on for b in buffers):
            self.fault(
                view,
                names,
                f"{got} copies {direction or ''}, there were {want}, and nothing says that it is a lower bound",
            )

    def extent(self, view, buffers, size):
        """What is advised is the memory that was copied, not a mapping around it."""
        hot = [b for b in buffers if not b.was_pinned and b.copies]
        if hot and size > sum(b.size for b in hot) + 4 * PAGE:
            self.fault(
                view, [b.name for b in buffers], f"{size} bytes, of which {sum(b.size for b in hot)} were copied"
            )

    def complete(self, view, complete, reasons):
        if complete and self.missed:
            self.fault(view, [], "complete, though calls were missed")
        if not complete and self.missed is False and not self.others:
            self.fault(view, [], f"not complete ({reasons}), though all was seen")
        if not complete and not reasons:
            self.fault(view, [], "not complete without a reason")

    # ---- the sum ----
    def state(self, names):
        if any(n in self.bad for n in names):
            return "WRONG"
        missing = [
            (n, a) for n in names for a in ("verdict", "kind") if (n, a) in self.unknown or (n, a) not in self.known
        ]
        return "right" if not missing else f"{len(missing)}?"

    def needs(self, book):
        """
        Cells: what something should be said of. Nothing need be said of ordinary memory that
        nothing is done with.
        """
        return [
            (b.name, a)
            for b in book.buffers.values()
            for a in ("verdict", "kind", "copies")
            if b.copies or b.was_pinned and a != "copies"
        ]

    def line(self, book):
        cells = self.needs(book)
        wrong = [c for c in cells if c[0] in self.bad]
        unknown = [c for c in cells if c not in wrong and (c in self.unknown or c not in self.known)]
        grid = []
        for column, names in COLUMNS.items():
            mine = [c for c in cells if c[0] in names]
            if any(n in self.bad for n in names):
                grid.append(f"{column}: WRONG")
            elif mine:
                grid.append(f"{column}: {sum(c in unknown for c in mine) or 'no'} of {len(mine)} unknown")
        return (
            f"{self.name}: {len(cells)} cells, {len(cells) - len(wrong) - len(unknown)} right, {len(unknown)} unknown,"
            f" {len(wrong)} wrong; " + "; ".join(grid) + self.by_view()
        ), unknown

    def by_view(self):
        """How many statements of each view are wrong."""
        views = {}
        for line in self.wrong:
            view = line.split(":")[0]
            views[view] = views.get(view, 0) + 1
        return "; wrong in " + ", ".join(f"{view} {n}" for view, n in sorted(views.items())) if views else ""

    def told(self, book, say):
        """Its line. Returns the cells that are unknown."""
        line, unknown = self.line(book)
        say(f"truth: {line}")
        for what in self.wrong:
            print(f"WRONG {self.name}: {what}")
        if os.environ.get("TTMON_TRUTH_ALL"):
            say(f"    unknown: {' '.join(sorted(f'{n}.{a}' for n, a in unknown))}")
        return unknown

    def close(self, book, say):
        unknown = self.told(book, say)
        true(f"{len(self.wrong)} statements are wrong, the first: {self.wrong[:1]}", not self.wrong)
        if self.none_unknown:
            eq("cells that are unknown where everything was seen", [f"{n} {a}" for n, a in unknown], [])


# ---- views ----
def run(*args, ok=(0, 1)):
    done = subprocess.run(
        [TTMON, *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=60 * PATIENCE,
        env=dict(os.environ, LC_ALL="C.UTF-8"),
    )
    true(f"ttmon {args}: {done.returncode} {done.stderr}", done.returncode in ok)
    return done.stdout, done.stderr, done.returncode


def get(sock, route, ok=(200,)):
    conn = Unix(sock)
    conn.request("GET", route)
    reply = conn.getresponse()
    body = reply.read()
    true(f"GET {route}: {reply.status} {body[:200]!r}", reply.status in ok)
    return body.decode(), reply.status


def put(sock, route, method="PUT"):
    conn = Unix(sock)
    conn.request(method, route)
    reply = conn.getresponse()
    body = reply.read()
    eq(f"{method} {route}: {body[:200]!r}", reply.status, 200)
    return json.loads(body)


def bounded(o):
    """Whether an object says that its figures are lower bounds, or not known."""
    return bool(o.get("at_least")) or o.get("kind") == "unknown"


def hosts(allocs):
    return [a for a in allocs if a["method"] in HOST_METHODS]


def span(a):
    return (
        int(a["addr"], 16),
        a["size"],
        None if "old" in a["flags"] else int(a["alloc_ns"] or 0),
        int(a["free_ns"]) if a["free_ns"] else None,
    )


def kind_of(a):
    return "unknown" if a.get("kind") == "unknown" else "pinned" if a["method"] in PINNED_METHODS else "pageable"


def allocations(row, view, book, allocs):
    """Of each record: no more copies than there were; of each buffer: what the records that held it say of its kind."""
    allocs = hosts(allocs)
    for a in allocs:
        if not a["transfers"]:  # null: not known
            continue
        over = book.over(*span(a))
        if a["method"] in PINNED_METHODS:
            over = [b for b in over if b.was_pinned]
        elif len(over) > 1:
            over = [b for b in over if not b.was_pinned and b.copies] or over
        row.extent(f"{view} transfers", over, a["size"])
        for d in ("h2d", "d2h"):
            row.copies(f"{view} transfers", over, a["transfers"].get(d, [0])[0], bounded(a), d)
    for b in book.buffers.values():
        mine = [a for a in allocs if any(o is b for o in book.over(*span(a)))]
        kinds = {kind_of(a) for a in mine}
        if b.was_pinned and "pinned" in kinds:
            row.kind(f"{view} kind", [b], "pinned")
            # Of a record of its own: 0 where nobody looked is wrong too.
            own = [a for a in mine if kind_of(a) == "pinned" and len(book.over(*span(a))) == 1]
            for d in ("h2d", "d2h"):
                if own and b.copies:
                    row.copies(
                        f"{view} transfers",
                        [b],
                        sum((a["transfers"] or {}).get(d, [0])[0] for a in own),
                        any(bounded(a) or a["transfers"] is None for a in own),
                        d,
                    )
        elif kinds:
            row.kind(
                f"{view} kind", [b], "unknown" if "unknown" in kinds else "pinned" if "pinned" in kinds else "pageable"
            )


def group(row, view, book, spots, allocs):
    """Advice by group: each member gets the verdict of its group."""
    for s in spots:
        if s["pid"] != book.pid if "pid" in s else False:
            continue
        if s["method"] not in HOST_METHODS:
            continue
        members = members_of(s, allocs)
        buffers = (
            {b.name: b for a in members for b in book.over(*span(a))}
            if members
            else {b.name: b for b in book.named(s.get("call_site")) or book.sized(s["size"])}
        )
        buffers = list(buffers.values())
        # A mapping with a registration over it is judged by its own copies, unless it is not known whose they are.
        unknown = s.get("kind") == "unknown" or members and all(a.get("kind") == "unknown" for a in members)
        if s["method"] in PAGEABLE_METHODS and not unknown and any(not b.was_pinned for b in buffers):
            buffers = [b for b in buffers if not b.was_pinned]
        if s["method"] in PINNED_METHODS:
            buffers = [b for b in buffers if b.was_pinned]
        if (
            s["advice"] not in ("keep", "unknown", None)
            or s["method"] in PINNED_METHODS
            or any(b.copies for b in buffers)
        ):
            row.verdict(view, buffers, s["advice"])
        if s["advice"] in PIN:
            row.extent(view, buffers, s["bytes"])
        if s.get("copies") is not None and (members or len(buffers) == 1):
            row.copies(view, buffers, s["copies"], bounded(s), "h2d")


def members_of(s, allocs):
    name = s.get("allocation") or ""
    if s["allocs"] == 1 and "#" in name:
        found = [a for a in allocs if a["id"].endswith("#" + name.rsplit("#", 1)[1])] if name.count("#") else []
        if len(found) == 1:
            return found
    if s["allocs"] == 1:
        found = [a for a in allocs if a["id"] == name]
        if len(found) == 1:
            return found
    same = [a for a in allocs if a["site"] == s["site"] and a["process"] == s["process"] and a["method"] == s["method"]]
    # Where no call site is known, by the name of the mapping as well, and without those that were never copied.
    for keep in (lambda a: True, lambda a: a.get("name") == s.get("name"), lambda a: a["transfers"]):
        same = [a for a in same if keep(a)]
        if len(same) == s["allocs"]:
            return same
    return [a for a in same if a["id"] == name or "#" in name and a["id"].endswith("#" + name.rsplit("#", 1)[1])]


def processes(row, view, book, proc):
    """Sums of the process: not more than there was, not less without a word."""
    at_least = bool(proc.get("at_least"))
    want = book.sums()
    if want is None:
        return
    for d, rows in proc["transfers"].items():
        for mem, got in rows.items():
            if mem in ("pinned", "pageable") and got[0] > want.get((d, mem), [0, 0])[0]:
                row.fault(view, [], f"{got[0]} copies {d} {mem}, there were {want.get((d, mem), [0, 0])[0]}")
    for d in ("h2d", "d2h"):
        got = [sum(p[i] for p in proc["transfers"].get(d, {}).values()) for i in (0, 1)]
        total = [sum(p[i] for (dd, _), p in want.items() if dd == d) for i in (0, 1)]
        if got != total and not (at_least and got[0] <= total[0]):
            row.fault(
                view,
                [],
                f"{got} copies and bytes {d}, there were "
                f"{total}{'' if at_least else ', and nothing says that it is a lower bound'}",
            )
    peak = proc["pinned_peak_bytes"]
    if peak is not None and (peak > book.peak_bytes() or peak < book.peak_bytes() and not at_least):
        row.fault(
            view,
            [],
            f"pinned peak {peak}, there was "
            f"{book.peak_bytes()}{'' if at_least else ', and nothing says that it is a lower bound'}",
        )


def database(row, view, book, db):
    allocs = [a for a in db["allocations"] if a["pid"] == book.pid]
    # A call site is looked for once in 2 MiB: a block beside another one may have none, and what is
    # said of the others is not said of it.
    book.nameless = {int(a["addr"], 0) for a in allocs if not a["site"] and a["method"] in PINNED_METHODS}
    allocations(row, view, book, allocs)
    index = [p["index"] for p in db["processes"] if p["pid"] == book.pid]
    group(row, f"{view} advice", book, [s for s in db["advice"] if s["process"] in index], allocs)
    for p in db["processes"]:
        if p["pid"] == book.pid:
            processes(row, f"{view} processes", book, p)
    row.complete(view, db["completeness"]["complete"], db["completeness"]["reasons"])
    if row.others:
        mine = [k for k in db["completeness"].get("knowledge", []) if k["pid"] in (None, book.pid)]
        if mine:
            row.fault(view, [], f"{mine}, though all of this process was seen")


SAYS = re.compile(r"^\s*(?P<v>allocate pinned|unpin it|unpin|pin it|pin|keep|unknown|\?|-)\s{2,}", re.I)
HEADS = (
    (re.compile(r"^(HOTTEST UNPINNED)"), "pageable", None),
    (re.compile(r"^(COLDEST PINNED)"), "pinned", "unpin"),
    (re.compile(r"^ALLOCATE PINNED"), "pageable", "pin"),
    (re.compile(r"^DO NOT PIN"), None, "no-pin"),
    (re.compile(r"^UNPIN\b"), "pinned", "unpin"),
    (re.compile(r"^KEEP\b"), "pinned", "keep"),
    (re.compile(r"^PIN\b"), None, "pin"),
    (re.compile(r"^UNKNOWN\b"), "unknown", "unknown"),
    (re.compile(r"^ADVICE  +GAIN"), None, "line"),
    (re.compile(r"^[A-Z]{4,}"), None, None),
)
COUNT = re.compile(r"(?P<least>>= ?|at least )?(?P<n>[\d,]+) cop(?:ies|y)\b")


def text(row, view, book, lines):
    """
    A text for a person: below a heading, or behind a verdict at the beginning of the line or of the
    one before, there are names of functions. What names several things at once, or nothing of ours,
    is passed over.
    """
    kind, told, before, last = None, None, None, ""
    for line in lines:
        for pattern, k, t in HEADS:
            if pattern.search(line):
                kind, told, before = k, t, None
                break
        says = SAYS.match(line)
        if says:
            before = says["v"].lower()
        buffers = book.named(line.split(" < ")[0]) or by_address(book, line)
        if buffers:
            verdict = before if says or told == "line" or told is None and before else told
            if told == "line" or says or told in PIN | UNPIN | {"keep", "unknown"}:
                verdict = {"?": "unknown", "-": "unknown"}.get(verdict, verdict)
                if verdict != "line":
                    row.verdict(view, buffers, verdict)
            if kind:
                row.kind(view, buffers, kind)
            for counted in COUNT.finditer(line + " " + last):
                if kind or told:
                    count(row, view, buffers, counted)
            if "never copied" in line:
                row.copies(view, buffers, 0, False)
        last = line


def by_address(book, line):
    found = re.search(r"(?:mapping|extent|memory) at (0x[0-9a-f]+)", line)
    return [b for b in book.buffers.values() if found and b.addr <= int(found[1], 16) < b.end]


def count(row, view, buffers, counted):
    """
    In a text it is not said of which direction the copies are: it is neither more than all, nor
    fewer than one of them without a word.
    """
    n, least = int(counted["n"].replace(",", "")), bool(counted["least"])
    if not buffers or any(b.name == "churn" for b in buffers):
        return
    all_, h2d = sum(b.moved() for b in buffers), sum(b.moved("h2d") for b in buffers)
    if n > all_ or n < h2d and not least and not any(b.goes_on for b in buffers):
        row.fault(view, [b.name for b in buffers], f"{counted[0]}, there were {all_}")


def summary(row, book, err):
    """What ttmond says at the end, by its columns."""
    kind = None
    for line in err.splitlines():
        if re.match(r"HOTTEST UNPINNED", line):
            kind = "pageable"
        elif re.match(r"COLDEST PINNED", line):
            kind = "pinned"
        elif re.match(r"[A-Z]{4}|$", line) and not line.startswith("ADVICE"):
            kind = None
        found = re.match(
            r"\s*(pin it|unpin it|allocate pinned|keep|unknown|-)\s+([\d.]+ \w+)\s+(>= ?)?([\d,]+|-)\s+(.+)", line
        )
        if not found:
            continue
        buffers = book.named(found[5].split(" < ")[0]) or by_address(book, line)
        row.verdict("summary", buffers, "unknown" if found[1] == "-" else found[1])
        if kind:
            row.kind("summary", buffers, "unknown" if found[1] in ("unknown", "-") and kind == "pageable" else kind)
        if found[4] != "-":
            count(row, "summary", buffers, re.match(COUNT, f"{found[3] or ''}{found[4]} copies"))
        shown = size_of(found[2])
        hot = [b for b in buffers if not b.was_pinned and b.copies]
        if found[1] in PIN and hot and shown > 1.06 * sum(b.size for b in hot) + 4 * PAGE:
            row.fault(
                "summary",
                [b.name for b in buffers],
                f"{found[2]}, of which {sum(b.size for b in hot)} bytes were copied",
            )
    if row.missed and not re.search(r">=|at least|lower bound|not seen|unknown|incomplete|not complete|missed", err):
        row.fault("summary", [], "nothing says that something was missed")


def size_of(words):
    n, unit = words.split(" ")
    return float(n) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]


def packed(page, name):
    found = re.search(rf'id="{name}" data-packed="gzip">\s*([A-Za-z0-9+/=\s]+)</script>', page)
    true(f"no {name} in the page", found)
    return json.loads(gzip.decompress(base64.b64decode("".join(found[1].split()))))


def after(row, bench, book, err, path, heat=True):
    """The views of a trace that is over."""
    row.moment = f"end {path}"
    with open(path, encoding="utf-8") as f:
        db = json.load(f)
    summary(row, book, err)
    database(row, "database", book, db)
    out, _, _ = run("db", "show", path)
    text(row, "db show", book, out.splitlines())
    said = re.search(r"(?im)^.*\b(in)?complete\b.*$", "\n".join(out.splitlines()[:6]))
    row.complete(
        "db show",
        bool(said) and not said[1] and "not complete" not in said[0].lower(),
        said[0] if said else "nothing at the top",
    )
    out, err, status = run("advise", path)
    text(row, "advise", book, out.splitlines())
    row.complete("advise", status == 0, err)
    doc = json.loads(run("advise", "--json", path)[0])
    for program in doc["programs"]:
        for s in program["advice"]:
            buffers = book.named(s["call_site"])
            row.verdict("advise --json", buffers, s["advice"])
            if len(buffers) == 1 and s["allocs"] == 1 and s.get("copies") is not None:
                row.copies("advise --json", buffers, s["copies"], bounded(s))
    if heat:
        heat_map(row, book, "heat", path)
    page = bench.path("page.html")
    run("view", path, "-o", page, ok=(0,))
    with open(page, encoding="utf-8") as f:
        view_page(row, book, packed(f.read(), "meta"))
    return db


def heat_map(row, book, view, *args):
    doc = json.loads(run("heat", "--json", "--by", "allocation", "-n", "0", *args, ok=(0,))[0])
    for r in doc["rows"]:
        if r["method"] not in HOST_METHODS or r.get("pid") not in (None, book.pid):
            continue
        buffers = book.sized(r["size"]) or book.named(r["call_site"])
        if not buffers:
            continue
        if "pinned" in r:
            kind = (
                "unknown"
                if r["pinned"] is None or r.get("kind") == "unknown"
                else "pinned"
                if r["pinned"]
                else "pageable"
            )
            # An ordinary mapping below a registration is still one.
            if not (
                kind == "pageable"
                and r["method"] == "mmap"
                and all(b.what in ("reg", "old_reg", "heap_reg") for b in buffers)
                and not r["copies"]
            ):
                row.kind(view, buffers, kind)
        if r.get("copies") is not None and (r["copies"] > 0 or r.get("pinned")):
            row.copies(view, buffers, r["copies"], bounded(r))
    if "complete" in doc:
        row.complete(view, doc["complete"], doc.get("missing"))
    out, _, _ = run("heat", "-w", "120", *args, ok=(0,))
    for line in out.splitlines():
        found = re.search(r"\s([\d.]+[KMG]) (P|-|\?|m) (host|reg|mmap|\S+)\s", line)
        buffers = book.named(line.split(" < ")[0])
        if found and buffers:
            row.kind(view + " table", buffers, {"P": "pinned", "-": "pageable"}.get(found[2], "unknown"))
    if row.missed and re.search(r"\bComplete\.", out):
        row.fault(view + " table", [], "Complete., though calls were missed")


def view_page(row, book, meta):
    """The data of the page: columns by allocation."""
    row.complete("view page", *complete_of(meta))
    pids = [p[0] for p in meta["procs"]]
    for i, addr in enumerate(meta["addr"]):
        method, is_pinned, _ = meta["methods"][meta["method"][i]][:3]
        if method not in HOST_METHODS or pids[meta["proc"][i]] != book.pid:
            continue
        kind = "unknown" if meta.get("kind", {i: None})[i] in ("unknown", 1) else "pinned" if is_pinned else "pageable"
        over = [b for b in book.over(int(addr, 16), meta["size"][i]) if kind != "pinned" or b.was_pinned]
        if len(over) != 1:
            row.extent("view page", over, meta["size"][i])
            continue
        # A mapping below a registration is ordinary memory that was registered.
        if not (kind == "pageable" and over[0].what in ("reg", "old_reg", "heap_reg")):
            row.kind("view page", over, kind)
            for d in ("h2d", "d2h"):
                row.copies(
                    "view page",
                    over,
                    meta[d][i],
                    bool(
                        meta.get("at_least", {}).get(i)
                        if isinstance(meta.get("at_least"), dict)
                        else (meta.get("at_least") or [0] * (i + 1))[i]
                    )
                    or kind == "unknown",
                    d,
                )
            b, code = over[0], meta["verdict"][i]
            # 0: not known, 1: to be pinned in the next run, 2: not.
            if code == 1 and not b.copies or code == 2 and b.copies:
                row.fault("view page", [b.name], f"{'to be' if code == 1 else 'not to be'} pinned")


def complete_of(meta):
    for holder in (meta, meta.get("completeness") or {}, meta.get("head") or {}):
        if "complete" in holder:
            return holder["complete"], holder.get("reasons") or holder.get("missing") or holder.get("why")
    return None, "the page does not say"


def live(row, book, sock):
    """The views of a service, or of a trace that goes on."""
    row.moment = "live"
    allocs = json.loads(get(sock, f"/v1/allocations?limit=0&pid={book.pid}")[0])["allocations"]
    allocations(row, "/v1/allocations", book, allocs)
    spots = [json.loads(line) for line in get(sock, "/v1/advice")[0].splitlines()]
    group(row, "/v1/advice", book, [s for s in spots if s["pid"] == book.pid], allocs)
    for route, kind in (("hotspots", "pageable"), ("coldspots", "pinned")):
        doc = json.loads(get(sock, f"/v1/{route}?n=1000")[0])
        mine = [s for s in doc["spots"] if s["pid"] == book.pid]
        group(row, f"/v1/{route}", book, mine, allocs)
        if kind == "pinned":
            for s in mine:
                row.kind(f"/v1/{route}", book.named(s["call_site"]), kind)
    lines = [json.loads(line) for line in get(sock, f"/v1/advice/live?pid={book.pid}")[0].splitlines()]
    last = {}
    for s in lines:
        if "seq" in s and s["advice"] != "checkpoint":
            last[s["alloc"]] = s
    for s in last.values():
        over = book.over(int(s["addr"], 16), s["size"])
        if s["advice"] in PIN:
            row.extent("/v1/advice/live", over, s["size"])
            if any(not b.was_pinned for b in over):
                over = [b for b in over if not b.was_pinned and b.copies] or over
        if s["advice"] not in ("keep",):
            row.verdict("/v1/advice/live", over, s["advice"], earlier=True)
    heat_map(row, book, "heat of the service", "-s", sock, "-p", str(book.pid))


# ---- figures of the whole host, in which a process has a row ----
def metric(page, name):
    """Samples of a metric: {labels: value}."""
    return {found[1] or "": float(found[2]) for found in re.finditer(rf"^{name}(\{{[^}}]*\}})? (\S+)$", page, re.M)}


def figures(row, book, sock, on):
    """Metrics; the rows of a process. on: families that are on now."""
    page, _ = get(sock, "/metrics")
    known = metric(page, "ttmond_known")
    says = {re.search(r'family="(\w+)"', labels)[1]: value for labels, value in known.items()}
    want = {
        "transfers": sum(n for n, _ in book.sums().values()),
        "pinned": sum(b.size for b in book.buffers.values() if b.was_pinned and not b.unpinned),
    }
    for family, name, limit in (
        ("transfer", "ttmond_transfers_total", want["transfers"]),
        ("alloc", "ttmond_host_pinned_bytes", want["pinned"]),
    ):
        samples = [v for labels, v in metric(page, name).items() if "group" not in labels]
        # ttmond_known says since when all is seen: of what was before, the figures say nothing.
        if samples and sum(samples) < limit and family not in says:
            row.fault(
                "/metrics",
                [],
                f"{name} is {sum(samples):.0f}, there was {limit}, and there is no ttmond_known of {family}",
            )
        if samples and family not in on:
            row.fault("/metrics", [], f"{name} is there though {family} is not on")
        if family not in says and row.missed is False:
            row.fault("/metrics", [], f"{family} is not known, though all was seen")
    status, code = get(sock, f"/v1/processes?pid={book.pid}", (200, 404))
    if code == 200:
        for p in json.loads(status)["processes"]:
            if p["pid"] == book.pid:
                sums(row, "/v1/processes", p, want, "pinned_bytes")
        doc, _ = get(sock, "/v1/slots?last=4", (200, 404))
        for slot in json.loads(doc).get("slots", []):
            for r in slot["rows"]:
                if r["pid"] == book.pid and "transfer" not in on and r["copies"] is not None:
                    row.fault("/v1/slots", [], f"{r['copies']} copies in a slot in which nobody looked")
            if "transfer" not in on and slot["copies"] is not None:
                row.fault("/v1/slots", [], f"{slot['copies']} copies of the host in a slot in which nobody looked")
        top = json.loads(run("top", "-s", sock, "-1", "-j", "-i", "0.2", "-p", str(book.pid), ok=(0,))[0])
        for p in top["processes"]:
            if "transfer" not in on and p["copies"] is not None:
                row.fault("top", [], f"{p['copies']} copies in an interval in which nobody looked")
            if p["pinned_bytes"] is not None and p["pinned_bytes"] < want["pinned"] and not p.get("at_least"):
                row.fault(
                    "top",
                    [],
                    f"{p['pinned_bytes']} bytes pinned, there were {want['pinned']}, and nothing says that it is a "
                    "lower bound",
                )


def sums(row, view, p, want, pinned):
    for name, limit in (("copies", want["transfers"]), (pinned, want["pinned"])):
        if p[name] is not None and (
            p[name] > limit and not name.endswith("peak") or p[name] < limit and not p.get("at_least")
        ):
            row.fault(
                view,
                [],
                f"{name} {p[name]}, there were "
                f"{limit}{'' if p.get('at_least') else ', and nothing says that it is a lower bound'}",
            )


def slot_file(row, book, path):
    """
    Sums over the slots of a file; each slot is of its own time, so that a lower bound of the sum is
    said by a null in one of them.
    """
    out, _, _ = run("slots", "--json", "-p", str(book.pid), path)
    slots = [json.loads(line) for line in out.splitlines()]
    rows = [r for slot in slots for r in slot.get("rows", []) if r["pid"] == book.pid]
    want = sum(n for n, _ in book.sums().values())
    got, unknown = sum(r["copies"] or 0 for r in rows), any(
        r["copies"] is None or "at_least" in r.get("flags", []) for r in rows
    )
    # A gap that is found later is told by the host's figures of a slot in which this process may not have run.
    unknown |= any(slot["copies"] is None for slot in slots)
    if got > want or got < want and not unknown and row.missed is not False:
        row.fault("slots", [], f"{got} copies in all slots, there were {want}, and in no slot they are unknown")
    out, _, _ = run("slots", "--json", "--sum", "-p", str(book.pid), path)
    for r in map(json.loads, out.splitlines()):
        if r["copies"] is not None and r["copies"] < want and not r.get("at_least") and row.missed:
            row.fault(
                "slots --sum", [], f"{r['copies']} copies, there were {want}, and nothing says that it is a lower bound"
            )


# ---- the next run, which is told what to do by the database ----
def advised(row, bench, db, runtime, commands):
    """
    libttmon is asked before each pin, and libttmon-pin does it by itself: hot memory is pinned, and
    what is not known is left as it is.
    """
    row.moment = None
    work = Workload(bench, "asked").start()
    work.do(f"ask {os.path.join(LIB, 'libttmon.so')} {db}", f"load {runtime}", *commands)
    for b in work.book().buffers.values():
        if b.what in ("pin", "reg"):
            row.verdict(
                "libttmon",
                [b],
                {0: "unknown", 1: "unpin" if b.cold else "keep", 2: "unpin"}[b.asked]
                if b.asked != 1 or not b.cold
                else "keep",
            )
    work.quit()
    work = Workload(bench, "pinned")
    work.start(
        {
            "LD_PRELOAD": f"{os.path.join(LIB, 'libttmon-pin.so')} {runtime}",
            "TTMON_PIN_DB": db,
            "TTMON_PIN_SITES": "all",
            "TTMON_PIN_STATS": bench.path("pin.stats"),
        }
    )
    work.do("load -", *commands, f"runtime {runtime}")
    book = work.book()
    for b in book.buffers.values():
        if b.what == "pin" and b.copies and not b.host:
            row.fault(
                "libttmon-pin", [b.name], f"it is not pinned in the next run, though it was copied {b.moved()} times"
            )
    work.quit()


# ---- Tenstorrent ----
def tt_total(*books):
    """What a process holds: bytes by logical device and type."""
    ret = {}
    for book in books:
        for d in book["devices"]:
            held = ret.setdefault(d["logical"], dict.fromkeys(BOOK_TYPES, 0))
            for t in BOOK_TYPES:
                held[t] += d[t]
    return ret


def tt_figure(row, view, what, got, want, bounded_):
    """Known, a lower bound, unknown, or wrong."""
    for t, n in want.items():
        n_got = (got or {}).get(t)
        key = (what, t)
        if n_got is None:
            row.unknown.add(key)
        elif n_got > n or n_got < n and not bounded_:
            row.fault(
                view,
                [what],
                f"{t} {n_got}, it holds {n}{'' if bounded_ else ', and nothing says that it is a lower bound'}",
            )
        elif bounded_:
            row.unknown.add(key)
        else:
            row.known[key] = n


def tt_views(row, host, truth):
    """
    truth: by process, what it holds. Of /v1/devices, the files and ttmon smi; no other process
    holds anything on this made-up host.
    """
    doc = host.devices()
    chips = {}
    for pid, held in truth.items():
        for logical, figures_ in held.items():
            sums_ = chips.setdefault(host.opened[pid][logical], dict.fromkeys(BOOK_TYPES, 0))
            for t, n in figures_.items():
                sums_[t] += n
    for pid, held in truth.items():
        found = [p for p in doc["processes"] if p["tgid"] == pid]
        # A process that is not listed is said to hold nothing, unless its chips say otherwise.
        for p in found:
            bounded_ = bool(p.get("at_least")) or "partial" in p["flags"] or "lost" in p["flags"]
            devices = {d["logical"]: d for d in p["devices"]}
            if None in devices:
                for t in BOOK_TYPES:
                    got, want = sum(d["bytes"][t] or 0 for d in p["devices"]), sum(f[t] for f in held.values())
                    if got > want or got < want and not bounded_:
                        row.fault(
                            "/v1/devices process",
                            [str(pid)],
                            f"{t} {got} of devices that are not known, it holds {want}",
                        )
                continue
            for logical, want in held.items():
                d = devices.get(logical)
                if d or not bounded_:
                    tt_figure(
                        row,
                        "/v1/devices process",
                        f"device {logical}",
                        d and d["bytes"] or (dict.fromkeys(BOOK_TYPES, 0) if not d else None),
                        want,
                        bounded_ or bool(d and d.get("at_least")),
                    )
    done = subprocess.run(
        [
            TTMON,
            "smi",
            "--json",
            "--sysfs-root",
            f"{host.root}/sys",
            "--proc-root",
            f"{host.root}/proc",
            "--shm-root",
            host.shm,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    smi = {c["key_v1"]: c for c in json.loads(done.stdout)["chips"]}
    for bdf, want in chips.items():
        key = host.key(bdf)
        [chip] = [c for c in doc["chips"] if int(c["key_v1"], 16) == key]
        bounded_ = bool(chip.get("at_least") or isinstance(chip["bytes"], dict) and chip["bytes"].get("at_least"))
        tt_figure(row, "/v1/devices chip", f"chip {bdf}", chip["bytes"], want, bounded_)
        unknown = chip["bytes"] is None or all(chip["bytes"].get(t) is None for t in BOOK_TYPES)
        if os.path.exists(host.path(bdf)):
            totals, _ = host.read(bdf)
            if unknown:
                row.fault("file", [f"chip {bdf}"], f"there is one ({totals}), though the chip's figures are not known")
            elif any(totals[t] < want[t] for t in want) and not bounded_:
                row.fault(
                    "file",
                    [f"chip {bdf}"],
                    f"{totals}, there are {want}, and /v1/devices does not say that it is a lower bound",
                )
            if any(totals[t] > want[t] for t in want):
                row.fault("file", [f"chip {bdf}"], f"{totals}, there are {want}")
        c = smi[str(key)]
        tt_figure(row, "smi", f"chip {bdf}", c["bytes"], want, bool(c.get("at_least")) or "partial" in c["flags"])


def tt_database(row, host, db, truth):
    """The same at the end of the run."""
    tt, chips = db["tenstorrent"], {}
    for pid, held in truth.items():
        for logical, want in held.items():
            sums_ = chips.setdefault(host.opened[pid][logical], dict.fromkeys(BOOK_TYPES, 0))
            for t, n in want.items():
                sums_[t] += n
        for p in tt["processes"]:
            if p["pid"] != pid:
                continue
            bounded_ = bool(p.get("at_least")) or "partial" in p["flags"] or "lost" in p["flags"]
            devices = {d["device"]: d for d in p["devices"]}
            for logical, want in held.items() if None not in devices else ():
                d = devices.get(logical)
                if d or not bounded_:
                    tt_figure(
                        row,
                        "database process",
                        f"device {logical}",
                        d["bytes"] if d else dict.fromkeys(BOOK_TYPES, 0),
                        want,
                        bounded_ or bool(d and d.get("at_least")),
                    )
    for bdf, want in chips.items():
        [chip] = [c for c in tt["chips"] if int(c["key_v1"], 16) == host.key(bdf)]
        tt_figure(
            row,
            "database chip",
            f"chip {bdf}",
            chip["bytes"],
            want,
            bool(chip.get("at_least")) or "partial" in chip["flags"],
        )
    if row.missed:
        row.complete(
            "database", db["completeness"]["complete"], [r for r in db["completeness"]["reasons"] if r != "cut"]
        )


def tt_line(row, say):
    cells = set(row.known) | row.unknown
    unknown = row.unknown
    wrong = {c for c in cells if c[0] in row.bad}
    say(
        f"truth: {row.name}: {len(cells)} figures, {len(cells - unknown - wrong)} right, {len(unknown - wrong)} lower "
        f"bounds or unknown, {len(wrong)} wrong"
    )
    for what in row.wrong:
        print(f"WRONG {row.name}: {what}")
    true(f"{len(row.wrong)} statements are wrong, the first: {row.wrong[:1]}", not row.wrong)
    if row.none_unknown:
        eq("figures that are not known where everything was seen", sorted(unknown), [])
