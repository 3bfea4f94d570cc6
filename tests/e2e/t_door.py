# SPDX-License-Identifier: GPL-2.0-only
"""The front door: what a newcomer types, rightly and wrongly, and what is then printed."""
import json
import os
import re
import signal
import subprocess
import time

import made_db
from e2e import PATIENCE, TTMON, eq, standin, true


def ttmon(*args, status=0, env=None, cwd=None):
    """Its output and its errors."""
    done = subprocess.run([TTMON, *args], capture_output=True, text=True, timeout=60 * PATIENCE, check=False, cwd=cwd,
                          env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})})
    eq(f"ttmon {' '.join(args)}: {done.stdout}{done.stderr}", done.returncode, status)
    return done.stdout, done.stderr


def write(path, doc):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(doc, f)
    return path


# ---- what was wrong once ----


def test_stopped_service(bench):
    """A service that is stopped is named at once; nobody waits for it."""
    sock = bench.path("sock")
    daemon = bench.daemon("--socket", sock, *bench.service_args(), "--cpu", "off")
    pid = daemon.proc.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        for command in (["status"], ["top", "-1"], ["probes"], ["family"]):
            begun = time.monotonic()
            _, err = ttmon(*command, "-s", sock, status=2)
            true(f"{command}: {time.monotonic() - begun} s", time.monotonic() - begun < 8)
            eq(f"{command}", err, f"ttmon: ttmond on {sock} is stopped: kill -CONT {pid} lets it go on\n")
    finally:
        os.kill(pid, signal.SIGCONT)
    ttmon("probes", "-s", sock)
    out, _ = ttmon("target", "-s", sock, "all", "off")
    eq("nobody is traced", out, "no process is traced: ttmon target add PID, or ttmon target all on\n")


def test_memtrace_socket_none(bench):
    """none is no file's name."""
    bench.trace([standin("scen"), "copies"], "--memtrace-socket", "none")
    true("a socket is called none", "none" not in os.listdir(bench.dir))
    bench.refused(["--memtrace-socket", "none", "--memtrace-out", bench.path("x.ttmt")], "do not go together", status=2)


def test_match_of_nothing(bench):
    """Of nothing no share is found."""
    m = made_db.Maker()
    m.process()
    empty = m.write(bench.path("empty.json"))
    out, _ = ttmon("db", "match", empty, empty)
    true(out, "has no allocation" in out and "100" not in out)
    ttmon("db", "match", "--min", "50", empty, empty, status=1)


def test_last_seconds(bench):
    """--last: rows, cells and sums are of that time alone; names keep their characters."""
    m = made_db.Maker(10)
    m.process()
    site = m.site([(m.object("/usr/bin/train"), 0x400, "load+0x2a")])
    m.alloc(site, 1 << 20, 0, None, [(1, "h2d", 1000), (9.5, "h2d", 300)], name="größe 日本")
    m.alloc(site, 2 << 20, 0, 5, [(2, "h2d", 5000)])
    db = m.write(bench.path("db.json"))
    whole, last = (json.loads(ttmon("heat", "-j", *more, db)[0]) for more in ([], ["--last", "1"]))
    eq("moved in all", sorted(r["moved"] for r in whole["rows"]), [1300, 5000])
    eq("moved in the last second", [(r["moved"], r["copies"], sum(r["cells_bytes"])) for r in last["rows"]], [(300, 1, 300)])
    eq("not shown", last["not_shown"], 1)
    true("the head", "the last 1.0 s, 1 allocation" in ttmon("heat", "-1", "--last", "1", db)[0])
    m = made_db.Maker(10)
    m.process(comm="größe")
    m.alloc(0, 1 << 20, 0, None, [(1, "h2d", 1000)], name="größe 日本")
    db = m.write(bench.path("named.json"))
    line = next(x for x in ttmon("heat", "-1", "-w", "80", db)[0].splitlines() if "gr" in x)
    true(f"{line!r}", line.startswith("größe 日本 "))
    true("without UTF-8", "gr??e ??" in ttmon("heat", "-1", db, env={"LC_ALL": "C"})[0])


def test_slots_backwards(bench):
    """A range that ends before it begins is refused; counts have one form."""
    path = bench.path("slots")
    bench.trace([standin("scen"), "copies"], "--slots-out", path, env={"STANDIN_LINGER": "300"})
    for turn in (["--from", "100", "--to", "50"], ["--from", "50", "--to", "50"]):
        out, err = ttmon("slots", *turn, path, status=2)
        eq("output", out, "")
        true(err, err.startswith("ttmon slots: ") and err.count("\n") == 1)
    rows = [x[27:60] for x in ttmon("slots", "--sum", path)[0].splitlines()[1:]]
    true(f"a count without its commas: {rows}", not re.search(r"\d{5}(?!\.)", "\n".join(rows)))
