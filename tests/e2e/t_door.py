# SPDX-License-Identifier: GPL-2.0-only
"""The front door: what a newcomer types, rightly and wrongly, and what is then printed."""
import contextlib
import csv
import gzip
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

import made_db
from e2e import OUT, PATIENCE, TTMON, eq, load_db, standin, true


def ttmon(*args, status=0, env=None, cwd=None):
    """Its output and its errors."""
    done = subprocess.run(
        [TTMON, *args],
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
        check=False,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
    )
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
    by = ["-j", "--by", "allocation"]
    whole, last = (json.loads(ttmon("heat", *by, *more, db)[0]) for more in ([], ["--last", "1"]))
    eq("moved in all", sorted(r["moved"] for r in whole["rows"]), [1300, 5000])
    got = [(r["moved"], r["copies"], sum(r["cells_bytes"])) for r in last["rows"]]
    eq("moved in the last second", got, [(300, 1, 300)])
    eq("not shown", last["not_shown"], 1)
    true("the head", "the last 1.0 s, 1 allocation" in ttmon("heat", "-1", "--by", "allocation", "--last", "1", db)[0])
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


# ---- one grammar ----


def workload(bench, *args, cwd=None, status=0, env=None):
    """ttmon run of a short program; its errors."""
    return ttmon("run", *args, "--", standin("scen"), "copies", cwd=cwd or bench.dir, status=status, env=env)[1]


def test_run(bench):
    """A run keeps a database without being told, the one before as .old, and ends with what to type next."""
    err = workload(bench)
    true(err, err.endswith("ttmon run: database: ttmon.json.gz\nnext: ttmon advise ttmon.json.gz\n"))
    first = load_db(bench.path("ttmon.json.gz"))
    eq("the command", first["capture"]["mode"], "command")
    err = workload(bench, env={"SUDO_UID": "1234", "SUDO_GID": "1235"})
    true(err, "(the one before: ttmon.json.gz.old)" in err)
    with gzip.open(bench.path("ttmon.json.gz.old")) as f:
        eq("the one before", json.load(f)["capture"], first["capture"])
    st = os.stat(bench.path("ttmon.json.gz"))
    eq("its owner is the user who typed sudo", (st.st_uid, st.st_gid), (1234, 1235))
    # Without a database nothing is moved aside.
    before = sorted(os.listdir(bench.dir))
    true("no next step", "next:" not in workload(bench, "--no-db", "-q"))
    eq("files", sorted(os.listdir(bench.dir)), before)
    err = workload(bench, "--json", "-q", "-o", "it.json", "--max-events", "1", "-r", "it.rec")
    doc = json.loads(err.splitlines()[-1])
    eq("files as JSON", doc, {"status": 0, "database": "it.json", "recording": "it.rec", "timeline": None})
    eq("why it is not complete", load_db(bench.path("it.json"))["completeness"]["reasons"], ["limit"])
    # The command's status; a folder that nobody can write to never fails it.
    ttmon("run", "-q", "--no-db", "--", "sh", "-c", "exit 7", status=7)
    _, err = ttmon("run", "-q", "--", "sh", "-c", "exit 7", cwd="/proc/self", status=7)
    true(err, "the run goes on without a database" in err)
    # What was there stays where it was if nothing was written.
    ttmon("run", "-q", "-o", bench.path("it.json"), "--ttmond=--no-such-option", "--", "true", status=2)
    true("moved aside for nothing", {"it.json"} == {"it.json", "it.json.old"} & set(os.listdir(bench.dir)))
    _, err = ttmon("replay", "-o", "again.json", "it.rec", cwd=bench.dir)
    true(err, err.endswith("next: ttmon advise again.json\n"))
    true("nothing in it", load_db(bench.path("again.json"))["allocations"])


def test_attach_and_serve(bench):
    """A process that runs, until Ctrl-C; a service by hand."""
    target = bench.target(standin("scen"), "--wait", "copies")
    proc = subprocess.Popen([TTMON, "attach", str(target.pid)], cwd=bench.dir, stderr=subprocess.PIPE, text=True)
    bench.procs.append(proc)
    while "tracing" not in proc.stderr.readline():
        true("it did not end", proc.poll() is None)
    proc.send_signal(signal.SIGINT)
    _, err = proc.communicate(timeout=30 * PATIENCE)
    eq("status", proc.returncode, 0)
    true(err, "next: ttmon advise ttmon.json.gz" in err)
    true("the program went on", target.proc.poll() is None)
    target.go()
    target.finish()
    proc = subprocess.Popen(
        [
            TTMON,
            "serve",
            "-s",
            bench.path("sock"),
            "-l",
            "none",
            "--ttmond=--shm-slots=0",
            "--ttmond=--tt-shm-version=off",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    bench.procs.append(proc)
    while "tracing" not in proc.stderr.readline():
        true("it did not end", proc.poll() is None)
    out, _ = ttmon("status", "-s", bench.path("sock"))
    true(out, re.match(r"OK\n", out))
    proc.send_signal(signal.SIGTERM)
    proc.communicate(timeout=30 * PATIENCE)
    eq("status of the service", proc.returncode, 0)


def test_open(bench):
    """Any file by what is in it, whatever its name: its summary, then what to do next."""
    db = bench.path("a")
    made_db.workload(20).write(db)
    out, _ = ttmon("open", db)
    true(out, out.startswith(f"{db}: the database of a run\n") and "HOTTEST UNPINNED" in out)
    eq("next", out.splitlines()[-3:], [f"next: ttmon advise {db}", f"      ttmon view {db}", f"      ttmon heat {db}"])
    true("gzip", "the database of a run" in ttmon("open", made_db.workload(20).write(bench.path("b.gz")))[0])
    out = ["--slots-out", bench.path("s"), "-r", bench.path("r"), "-T", bench.path("t")]
    bench.trace([standin("scen"), "copies"], *out)
    ttmon("view", "-o", bench.path("p.html"), db)
    for name, kind in (("s", "slots"), ("r", "recording"), ("t", "timeline"), ("p.html", "page"), ("a", "database")):
        eq(name, json.loads(ttmon("open", "-j", bench.path(name))[0])["kind"], kind)
        ttmon("open", bench.path(name))
    os.rename(db, bench.path("it's"))
    true("a name for a shell", "it'\\''s'" in ttmon("open", bench.path("it's"))[0])
    for path in ("/etc/passwd", "/nowhere", bench.dir):
        _, err = ttmon("open", path, status=2)
        true(err, err.startswith("ttmon open: ") and err.count("\n") == 1)


def test_diff(bench):
    """Better and worse, and neither where a run was not seen whole."""

    def run(name, pinned, pageable, complete=True):
        m = made_db.Maker(10)
        m.process()
        site = m.site([(m.object("/usr/bin/train"), 0x400, "load+0x2a")])
        other = m.site([(1, 0x800, "keep+0x2a")])
        for _ in range(pinned):
            m.alloc(site, 1 << 20, 0, None, [(1, "h2d", 1000)])
        m.alloc(other, 1 << 20, 0, None, [(1, "h2d", pageable)], method="mmap", name="[heap]")
        m.complete, m.reasons = complete, [] if complete else ["lost"]
        return m.write(bench.path(name))

    a, b, c = run("a", 8, 100000), run("b", 4, 100000), run("c", 8, 900000)
    lost = run("lost", 8, 50000, complete=False)

    def verdicts(*args, status=0):
        doc = json.loads(ttmon("diff", "-j", *args, status=status)[0])
        return doc["verdict"], *(doc["figures"][x]["verdict"] for x in ("pinned_peak_bytes", "pageable_bytes"))

    eq("the same", verdicts("--exit-code", a, a), ("same", "same", "same"))
    eq("better", verdicts("--exit-code", a, b), ("better", "better", "same"))
    eq("worse", verdicts("--exit-code", a, c, status=1), ("worse", "same", "worse"))
    eq("worse, without being asked", verdicts(a, c), ("worse", "same", "worse"))
    eq("may be more than was seen", verdicts("--exit-code", a, lost, status=1)[2], "not known")
    eq("certain all the same", verdicts("--exit-code", lost, c, status=1)[2], "not known")
    eq("less than was seen at least", verdicts(lost, run("d", 8, 100))[2], "better")
    eq("a change that is none", verdicts("--tolerance", "100", a, c)[0], "same")
    out, _ = ttmon("diff", a, c)
    true(out, re.search(r"copied from or to pageable +97\.7 KiB +878\.9 KiB +\+800 %  worse", out) and "keep" in out)
    true(f"wider than 80: {out}", all(len(x) <= 80 for x in out.splitlines() if bench.dir not in x))
    ttmon("diff", a, "/nowhere", status=2)


def test_help(_bench):
    """help says what --help does, of inner commands too."""
    for words in ([], ["run"], ["db", "show"], ["memtrace", "record"]):
        eq(f"help {words}", ttmon("help", *words)[0], ttmon(*words, "--help")[0])


# What is typed, what is printed. Each names the word that is wrong, and says what would be right.
WRONG = (
    ("", "ttmon: a command is missing"),
    ("stats", "no such command: stats; did you mean status? See ttmon --help"),
    ("summary x", "no such command: summary; there are run, attach, serve, replay, open, diff, help, status"),
    ("--jsn status", "no such option: --jsn; did you mean --json? See ttmon --help"),
    ("help staus", "no such command: staus; did you mean status?"),
    ("run", "ttmon run: -- wants a command to run"),
    ("run --", "ttmon run: -- wants a command to run"),
    ("run python3 train.py", "the command stands behind --: ttmon run -- python3"),
    ("run --ouput x -- true", "no such option: --ouput; did you mean --output?"),
    ("run --max-events many -- true", '--max-events wants a number from 1 to 18446744073709551615, not "many"'),
    ("run -o x --no-db -- true", "--output and --no-db do not go together"),
    ("run --unpin all -- true", "--unpin needs --pin DB"),
    ("run --pin /nowhere -- true", "--pin: /nowhere: No such file or directory"),
    ("attach", "an argument is missing: ttmon attach [OPTIONS] PID..."),
    ("attach python3", "the number of a process is wanted, not python3"),
    ("replay a b", "takes no more than [OPTIONS] RECORDING: b is too much"),
    ("serve now", "takes no argument: now"),
    ("open", "an argument is missing: ttmon open [OPTIONS] FILE"),
    ("open /nowhere", "ttmon open: /nowhere: No such file or directory"),
    ("open /etc/hostname", "/etc/hostname is no file of ttmon: neither a database"),
    ("diff a", "an argument is missing: ttmon diff [OPTIONS] BEFORE AFTER"),
    ("diff --tolerance much a b", '--tolerance wants a number from 0 to 100, not "much"'),
    ("db", "ttmon db: a command is missing; there are check, show, match, schema"),
    ("db shwo x", "ttmon db: no such command: shwo; did you mean show?"),
    ("db show", "an argument is missing: ttmon db show FILE"),
    ("db match a b c", "takes no more than [OPTIONS] A B: c is too much"),
    ("view -o", "a value is missing after -o: OUT"),
    ("top --sort cpux", 'chip, switches or pid, not "cpux"; did you mean cpu?'),
    ("top -i 0", '--interval wants a number from 0.1 to 60, not "0"'),
    ("heat --last 0", '--last wants a number from 0.001 to 1e+07, not "0"'),
    ("status --verbos=1", "takes no value: --verbos=1"),
    ("status -x", "no such option: -x; there are --socket, --json, --verbose, --help"),
    ("target ad 3", "no such verb: ad; did you mean add?"),
    ("target trace 3", "no such verb: trace; there are add, remove, all"),
    ("target add me", "add wants the number of a process, not me"),
    ("target all maybe", "all wants on or off, not maybe"),
    ("family alloc", "what alloc is to be is missing: on, off or counting"),
    ("family alloc onn", "no such state: onn; did you mean on?"),
    ("slots --from 9 --to 3", "an argument is missing: ttmon slots [OPTIONS] FILE"),
    ("smi --refresh fast", '--refresh wants a number from'),
    ("status -s /nowhere", "ttmon: no ttmond on /nowhere: No such file or directory"),
)


def test_wrong_usages(_bench):
    """One line that names what is wrong and says what would be right; exit status 2, nothing on standard output."""
    true("at least thirty", len(WRONG) >= 30)
    for typed, printed in WRONG:
        out, err = ttmon(*typed.split(), status=2)
        eq(f"ttmon {typed}: output", out, "")
        true(f"ttmon {typed}: {err!r}, not {printed!r}", printed in err and err.startswith("ttmon"))
        true(f"ttmon {typed}: more than a line: {err!r}", err.count("\n") == 1 or not typed)
        true(f"ttmon {typed}: {err!r}", "Invalid argument" not in err and not err.startswith("usage"))


def test_newcomer(bench):
    """From a run of the demo to a second one that pins fewer pages: each command is the one printed before."""
    demo = os.path.join(OUT, "demo", "workload")
    lines, commands = [f"next: sudo ttmon run -- {demo}"], []
    for _ in range(4):
        found = [x for x in lines if x.startswith("next: ")]
        if not found:
            break
        words = found[-1].removeprefix("next: ").removeprefix("sudo ").split()
        eq("the program", words[0], "ttmon")
        commands.append(words[1])
        out, err = ttmon(*words[1:], cwd=bench.dir)
        lines = (out + err).splitlines()
        if words[1] == "advise":
            text = out
    eq("commands", commands, ["run", "advise", "run", "diff"])
    true(text, "to pin: 1, to unpin: 1; together that saves" in text and text.index("UNPIN") < text.index("POLICY"))
    true("\n".join(lines), re.search(r"^pinned at the peak .*better$", "\n".join(lines), re.M))


# ---- data that leaves ----


def test_export(bench):
    """Tables as CSV and as SQLite: the same rows, typed, all figures of the database; hostile names stay one field."""
    m = made_db.workload(60)
    m.alloc(0, 4096, 1, 2, [(1.5, "d2h", 7)], name='a "quoted", name\nof two lines')
    db = m.write(bench.path("db.json.gz"))
    doc = load_db(db)
    out, _ = ttmon("export", "-o", bench.path("csv"), db)
    names = ["run", "processes", "sites", "allocations", "transfers", "events", "waits", "wait_calls"]
    eq("files", out.splitlines(), [bench.path(f"csv/{n}.csv") for n in names])
    out, _ = ttmon("export", "-f", "sqlite", "-o", bench.path("sql"), db)
    eq("SQLite", out, bench.path("sql/ttmon.sqlite") + "\n")
    eq(
        "nothing else",
        (sorted(os.listdir(bench.path("csv"))), os.listdir(bench.path("sql"))),
        (sorted(n + ".csv" for n in names), ["ttmon.sqlite"]),
    )
    with contextlib.closing(sqlite3.connect(bench.path("sql/ttmon.sqlite"))) as sql:
        for name in names:
            with open(bench.path(f"csv/{name}.csv"), newline="", encoding="utf-8") as f:
                rows = list(csv.reader(f))
            cursor = sql.execute(f"select * from {name}")
            eq(f"columns of {name}", [c[0] for c in cursor.description], rows[0])
            eq(name, [["" if v is None else str(v) for v in r] for r in cursor.fetchall()], rows[1:])
        got = sql.execute("select allocation, size_bytes, alloc_ns, free_ns, name from allocations").fetchall()
        want = [(a["id"], a["size"], int(a["alloc_ns"]), a["free_ns"], a.get("name")) for a in doc["allocations"]]
        eq("allocations", [(*g[:3], g[3] and str(g[3]), g[4]) for g in got], want)
        moved = sum(pair[1] for a in doc["allocations"] for pair in a["transfers"].values())
        eq("moved", sql.execute("select sum(copied_bytes) from transfers").fetchone()[0], moved)
        eq(
            "events",
            sql.execute("select count(*), sum(moved_bytes) from events").fetchone()[0],
            sum(len(a["events"]) for a in doc["allocations"]),
        )
        eq("complete", sql.execute("select value from run where key = 'complete'").fetchall(), [("1",)])
    # Of a database that was cut off nothing is left, and what was there before stays.
    with open(bench.path("cut.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps(doc)[: len(json.dumps(doc)) * 2 // 3])
    for form in ("csv", "sqlite", "parquet"):
        out, err = ttmon("export", "-f", form, "-o", bench.path("cut"), bench.path("cut.json"), status=2)
        true(err, out == "" and err.startswith("ttmon export: ") and err.count("\n") == 1)
    eq("left", os.listdir(bench.path("cut")), [])
    true("no folder", "the folder to write to is missing" in ttmon("export", db, status=2)[1])
    ttmon("export", "-o", "/proc/self/no", db, status=2)
