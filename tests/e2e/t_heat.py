# SPDX-License-Identifier: GPL-2.0-only
"""
`ttmon heat`: its cells against the database's and the service's own figures, its table, its screen
on a pseudo-terminal.
"""
import codecs
import contextlib
import fcntl
import json
import os
import pty
import re
import subprocess
import termios

from e2e import PATIENCE, TTMON, eq, standin, timeout, true
from t_cpu import Service
from t_top import Screen as TopScreen
from tt_host import api, retry, wait_probed

PINNED = ("host_alloc", "registered", "pool", "tt_dma")


def heat(*args, status=0, env=None):
    """Its output; its errors where it is to fail."""
    done = subprocess.run(
        [TTMON, "heat", *args],
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
    )
    eq(f"ttmon heat {args}: {done.stderr}", done.returncode, status)
    return done.stderr if status else done.stdout


def doc(*args):
    return json.loads(heat("--json", *args))


def moved(a):
    pairs = [p for p in a["transfers"].values()]
    return sum(p[1] for p in pairs), sum(p[0] for p in pairs)


def cells_add_up(rows):
    for r in rows:
        eq(f"bytes of {r.get('id')}", sum(r["cells_bytes"]), r["moved"])
        eq(f"copies of {r.get('id')}", sum(r["cells_copies"]), r["copies"])


def test_database(bench):
    """Every allocation once, with what the database says it moved; sorted; the peak is the database's."""
    for scenario in (["hot", "300"], ["copies"], ["overlap"], ["maps"]):
        _, db, _ = bench.trace([standin("scen"), *scenario])
        path = bench.path("db.json")
        got = doc("--all", "--by", "allocation", path)
        rows = {r["id"]: r for r in got["rows"]}
        eq("rows", len(rows), len(db["allocations"]))
        for a in db["allocations"]:
            eq(f"moved of {a['id']}", (rows[a["id"]]["moved"], rows[a["id"]]["copies"]), moved(a))
            eq(f"pinned {a['id']}", rows[a["id"]]["pinned"], a["method"] in PINNED)
        cells_add_up(got["rows"])
        order = [r["moved"] for r in got["rows"]]
        eq("by bytes", order, sorted(order, reverse=True))
        eq("complete", (got["complete"], got["missing"]), (True, None))
        eq("span", (got["from_ns"], got["to_ns"]), (db["capture"]["start_ns"], db["capture"]["end_ns"]))
        some = doc("--by", "allocation", path)
        true("device memory is not shown", not {r["method"] for r in some["rows"]} & {"device"})
        eq("what is not shown is counted", some["not_shown"] + len(some["rows"]), len(db["allocations"]))
        sites = doc(path)
        eq("by site unless asked otherwise", sites["by"], "site")
        cells_add_up(sites["rows"])
        eq("allocations of all sites", sum(r["allocations"] for r in sites["rows"]), len(some["rows"]))
        eq("moved by all sites", sum(r["moved"] for r in sites["rows"]), sum(r["moved"] for r in some["rows"]))
        if not scenario[0] == "overlap":  # counted once by the daemon, each time here
            eq("peak", got["pinned_peak_pages"], db["summary"]["pinned_peak_pages"])


def test_pages(bench):
    """Pages of one allocation: what its events say."""
    _, db, _ = bench.trace([standin("scen"), "hot", "300"])
    path = bench.path("db.json")
    a = max(db["allocations"], key=lambda a: moved(a)[0] if a["method"] in PINNED else 0)
    got = doc("--by", "page", "--id", a["id"][:20], path)
    eq("by", got["by"], "page")
    eq("bytes of all pages", sum(r["size"] for r in got["rows"]), a["size"])
    eq("moved", sum(r["moved"] for r in got["rows"]), moved(a)[0])
    cells_add_up(got["rows"])
    group = got["rows"][0]["size"]
    for r in got["rows"]:
        touched = [
            e
            for e in a["events"]
            if e[1] in ("h2d", "d2h") and e[3] < r["offset"] + group and e[3] + e[2] > r["offset"]
        ]
        eq(f"copies at {r['offset']}", r["copies"], len(touched))
    said = heat("--by", "page", "--id", "nonesuch", path, status=2)
    true(said, "no allocation has the id nonesuch" in said and said.count("\n") == 1)


def test_table(bench):
    """As wide as asked for, without colour in a pipe, plain without UTF-8; the head says what is missing."""
    bench.trace([standin("scen"), "hot", "300"], "--max-events", "50")
    path = bench.path("db.json")
    for width in (60, 80, 120, 200, 512):
        lines = heat("-w", str(width), path).splitlines()
        true(f"wider than {width}: {max(lines, key=len)!r}", max(len(x) for x in lines) <= width)
        true(f"colour in a pipe: {lines}", not any("\x1b" in x for x in lines))
    true(f"{lines[1]!r}", re.search(r"^pinned pages: \d.* at the end, peak [\d,]+ \(.*\)\.$", lines[1]))
    eq("what is missing", lines[2], "550 events not kept")
    true("a row says so", any("+" in x[-20:] for x in lines))
    true("blocks", re.search("[▁-█]", "\n".join(lines)))
    plain = heat("-1", path, env={"LC_ALL": "C"})
    true("ASCII", plain.isascii() and "@" in plain)
    more = heat("-n", "1", "-1", "--all", path)
    eq("lines of one row", len(more.splitlines()), 8)
    true("more", "more (-n 0" in more)
    last = doc("--last", "0.005", path)
    eq("the last 5 ms", int(last["to_ns"]) - int(last["from_ns"]), 5_000_000)


@timeout(90)
def test_live(bench):
    """The service's map: what moved, and what is pinned and did not; a program that ended stays while it is kept."""
    service = Service(bench)
    target = bench.target(standin("scen"), "--wait", "live", "4")
    wait_probed(service.sock, target.pid)
    target.go()
    book = json.loads(target.line())
    eq("it waits", target.line().split()[:1], ["waiting"])

    def settled():
        """Until its call site is found, an allocation has another id."""
        got = doc("-s", service.sock, "--by", "allocation", "-p", str(target.pid))
        listed = api(service.sock, f"/v1/allocations?pid={target.pid}&limit=0")["allocations"]
        pinned = [a for a in listed if a["method"] == "host_alloc"]
        eq("pinned allocations", len(pinned), book["live"])
        eq("those without a call site", [a["id"] for a in pinned if not a["site"]], [])
        ids = {a["id"]: a for a in listed}
        eq("rows that are not listed", [r["id"] for r in got["rows"] if r["id"] not in ids], [])
        # Those of the last slot that has closed.
        pages = sum(r["size"] for r in got["rows"] if r["pinned"]) // 4096
        true(f"{got['pinned_pages']} of {pages} pages pinned on this host", got["pinned_pages"] >= pages)
        # The map asks for the allocations and for their cells one after the other.
        cells_add_up([r for r in got["rows"] if r["copies"]])
        return got, ids

    got, listed = retry(10, settled)
    rows = got["rows"]
    eq("pinned rows", len([r for r in rows if r["pinned"] and r["live"]]), book["live"])
    copies, size = book["transfers"]["h2d"]["pinned"]
    eq(
        "moved",
        (sum(r["moved"] for r in rows if r["pinned"]), sum(r["copies"] for r in rows if r["pinned"])),
        (size, copies),
    )
    hot = [r for r in rows if r["copies"]]
    for r in rows:
        eq(
            f"life of {r['id']}",
            (r["alloc_ns"], r["free_ns"]),
            (listed[r["id"]]["alloc_ns"], listed[r["id"]]["free_ns"]),
        )
    pages = doc("-s", service.sock, "--by", "page", "--id", hot[0]["id"])
    eq("bytes of all pages", sum(r["size"] for r in pages["rows"]), hot[0]["size"])
    eq("moved", sum(r["moved"] for r in pages["rows"]), hot[0]["moved"])
    said = heat("-s", service.sock, "--by", "page", "--id", "0123456789abcdef:1:0@0", status=2)
    true(said, said.count("\n") == 1)
    eq(
        "by call site",
        sum(r["allocations"] for r in doc("-s", service.sock, "-p", str(target.pid))["rows"]),
        len(rows),
    )
    target.go()
    target.finish()


def test_options(bench):
    """What cannot be meant is refused in one line, and so is what is no database, or no service."""
    for args in (
        ["-w", "59"],
        ["-w", "513"],
        ["-n", "x"],
        ["-n", "1.5"],
        ["-o", "heat"],
        ["-i", "0"],
        ["-p", "0"],
        ["--by", "line"],
        ["--by", "page"],
        ["--id", "a"],
        ["--by", "page", "--id", ""],
        ["--last", "0"],
        ["-x"],
        ["--what"],
        ["-o"],
        ["a", "b"],
    ):
        said = heat(*args, status=2)
        true(f"{args}: {said!r}", said.count("\n") == 1 and said.startswith("ttmon heat: ") and "--help" in said)
    broken = bench.path("broken.json")
    with open(broken, "w", encoding="utf-8") as f:
        f.write('{"schema": "ttmon-db", "version"')
    for what in (broken, bench.path("none.json")):
        said = heat(what, status=2)
        true(f"{said!r}", said.count("\n") == 1 and said.startswith("ttmon heat: ") and os.path.basename(what) in said)
    said = heat("-s", bench.path("none"), status=2)
    true(said, "no ttmond on" in said and said.count("\n") == 1)
    true("help", heat("--help").startswith("usage: ttmon heat"))


class Screen(TopScreen):
    """`ttmon heat`, or another command, on the pseudo-terminal of t_top."""

    def __init__(
        self, bench, *args, rows=24, columns=80, term="vt100", command="heat"
    ):  # pylint: disable=super-init-not-called
        self.main, self.side = pty.openpty()
        self.raw, self.rest = b"", ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.size(rows, columns)
        self.before = termios.tcgetattr(self.side)
        self.proc = subprocess.Popen(
            [TTMON, command, *args],
            stdin=self.side,
            stdout=self.side,
            stderr=self.side,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=dict(os.environ, TERM=term, LC_ALL="C.UTF-8"),
        )
        bench.procs.append(self.proc)


def on_terminal(*args, **env):
    """What the command prints on a terminal, as it is."""
    main, side = pty.openpty()
    with subprocess.Popen(
        [TTMON, "heat", *args], stdin=side, stdout=side, stderr=side, env={**os.environ, "LC_ALL": "C.UTF-8", **env}
    ) as proc:
        os.close(side)
        said = b""
        with contextlib.suppress(OSError):
            while new := os.read(main, 65536):
                said += new
        eq("exit status", proc.wait(20 * PATIENCE), 0)
    os.close(main)
    return said.decode()


def test_colours(bench):
    """256 colours where the terminal has them and they are wanted; a dumb one gets the table, not the screen."""
    bench.trace([standin("scen"), "hot", "300"])
    path = bench.path("db.json")
    env = {k: v for k, v in os.environ.items() if k == "NO_COLOR"}
    eq("NO_COLOR is not set here", env, {})
    true("256 colours", "\x1b[0;38;5;227;48;5;234m" in on_terminal("-1", path, TERM="xterm-256color"))
    for term in ({"TERM": "vt100"}, {"TERM": "dumb"}, {"TERM": "xterm-256color", "NO_COLOR": "1"}):
        said = on_terminal("-1", path, **term)
        true(f"{term}: {said!r}", "\x1b" not in said and "CALL SITE" in said)
    true("a dumb terminal", "CALL SITE" in on_terminal(path, TERM="dumb"))


@timeout(90)
def test_screen(bench):
    """Keys: order, zoom, pages and back, groups, help; another size; q gives the terminal back."""
    bench.trace([standin("scen"), "hot", "300"])
    screen = Screen(bench, "--by", "allocation", bench.path("db.json"), rows=30, columns=100)
    screen.until("the map", lambda s: s[0].startswith("db.json: ") and "CALL SITE" in s[2] and re.search("[▁-█]", s[3]))
    first = screen.lines()[3]
    screen.key("s")
    screen.until("by copies", lambda s: "sorted by copies" in s[-1] and "copies in" in s[-4])
    screen.key("ssss")
    screen.until("by bytes again", lambda s: "sorted by bytes" in s[-1] and s[3] == first)
    screen.key("++")
    screen.until("zoomed", lambda s: "zoomed" in s[-1])
    screen.key("=")
    screen.until("all of it", lambda s: "zoomed" not in s[-1] and s[3] == first)
    screen.key("\r")
    screen.until("pages", lambda s: "OFFSET" in s[2] and s[3].startswith("+ 0 B"))
    screen.key("\x7f")
    screen.until("back", lambda s: "CALL SITE" in s[2] and s[3] == first)
    screen.key("g")
    screen.until("call sites", lambda s: "call site" in s[0])
    screen.key("g")
    screen.key("h")
    screen.until("help", lambda s: any("Esc back" in x for x in s))
    screen.resize(12, 80)
    screen.until("another size", lambda s: len(s) == 12 and "CALL SITE" in s[2])
    screen.key("q")
    screen.ended()


@timeout(90)
def test_screen_of_a_service(bench):
    """A service that goes is said, the last map stays, the next one is found; the map moves on until it is paused."""
    service = Service(bench)
    target = bench.target(standin("scen"), "--wait", "live", "4")
    wait_probed(service.sock, target.pid)
    target.go()
    target.line()
    screen = Screen(bench, "-s", service.sock, "-i", "0.5", "-p", str(target.pid), columns=120)
    screen.until("rows", lambda s: s[0].startswith("live, process ") and any("P host" in x for x in s))
    service.daemon.stop()
    screen.until("gone", lambda s: s[0].startswith("NO MAP of") and any("P host" in x for x in s))
    Service(bench)
    screen.until("the next one", lambda s: s[0].startswith("live, process "))
    screen.key("p")
    screen.until("paused", lambda s: "PAUSED" in s[-1])
    screen.key("q")
    screen.ended()
    target.go()
    target.finish(None)
