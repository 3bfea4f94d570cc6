# SPDX-License-Identifier: GPL-2.0-only
"""
`ttmon export`: databases and slot files as CSV, SQLite and Parquet. Parquet is read back by hyparquet
(npm), which tools/setup.sh fetches.
"""
import contextlib
import csv
import json
import os
import pty
import random
import shutil
import signal
import sqlite3
import subprocess
import time

import made_db
from e2e import OUT, PATIENCE, TTMON, Skip, eq, load_db, true

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = "/var/cache/ttmon/parquet/node_modules"


def ttmon(*args, status=0):
    done = subprocess.run([TTMON, *args], capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    eq(f"ttmon {' '.join(args)}: {done.stdout}{done.stderr}", done.returncode, status)
    return done.stdout, done.stderr


def export(form, folder, path):
    """The names of the tables."""
    return [os.path.basename(x).rpartition(".")[0] for x in ttmon("export", "-f", form, "-o", folder, path)[0].split()]


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.reader(f))


def read_parquet(path):
    """Its columns [name, type, logical type], the encodings used, and its rows."""
    if not shutil.which("node") or not os.path.isdir(f"{MODULES}/hyparquet-compressors"):
        raise Skip("there is no hyparquet: tools/setup.sh check fetches it where there are node and npm")
    done = subprocess.run(
        ["node", f"{HERE}/parquet.mjs", MODULES, path],
        capture_output=True,
        text=True,
        timeout=120 * PATIENCE,
        check=False,
    )
    eq(f"{path}: {done.stderr}", done.returncode, 0)
    doc = json.loads(done.stdout)
    return doc["columns"], doc["encodings"], doc["rows"]


def same_tables(bench, path, names):
    """Parquet, read by hyparquet, has the rows of the CSV files; those of processes in another order."""
    eq("tables", export("csv", bench.path("csv"), path), names)
    eq("tables", export("parquet", bench.path("parquet"), path), names)
    eq("nothing else", sorted(os.listdir(bench.path("parquet"))), sorted(f"{n}.parquet" for n in names))
    used = set()
    for name in names:
        rows = read_csv(bench.path(f"csv/{name}.csv"))
        columns, encodings, got = read_parquet(bench.path(f"parquet/{name}.parquet"))
        eq(f"columns of {name}", [c[0] for c in columns], rows[0])
        for column in columns:
            true(f"{name}: {column}", column[1:] in (["INT64", None], ["BYTE_ARRAY", "STRING"]))
        got = [["" if v is None else v for v in r] for r in got]
        if name == "slot_rows":
            # Those of a process follow each other.
            changes = sum(a[1:5] != b[1:5] for a, b in zip(got, got[1:]))
            true(f"{changes} changes of process", changes < len({tuple(r[1:6]) for r in got}))
            eq("slots and their rows", sorted(map(str, got)), sorted(map(str, rows[1:])))
            continue
        eq(name, got, rows[1:])
        # CSV cannot tell an empty text from none here; the reader can.
        used |= {e for group in encodings for chunk in group for e in chunk}
    return used


DB_TABLES = ["run", "processes", "sites", "allocations", "transfers", "events", "waits", "wait_calls"]


def test_parquet(bench):
    """A database: all tables as in CSV, by each encoding; hostile names and the largest numbers arrive as they are."""
    r = random.Random(1)
    m = made_db.workload(400, copies=10)
    for i in range(300):
        name = f"n{i}\n\"',; é \U0001f600"[: r.randrange(1, 14)]
        m.alloc(0, r.getrandbits(r.randrange(1, 63)), 1 + i / 100, None, name=name)
    m.alloc(0, 2**63 - 1, 9, None, name="x" * 100000)
    used = same_tables(bench, m.write(bench.path("db.json.gz")), DB_TABLES)
    true(used, used == {"RLE", "PLAIN", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"})


def test_parquet_groups(bench):
    """More rows than a row group has, and none."""
    m = made_db.Maker(10)
    m.process()
    site = m.site([(m.object("/usr/bin/train"), 0x400, "load+0x2a")])
    m.alloc(site, 4096, 1, 9, [(1 + i / 20000, "h2d", i % 5000) for i in range(140000)])
    db = m.write(bench.path("db.json"))
    export("parquet", bench.path("parquet"), db)
    _, encodings, rows = read_parquet(bench.path("parquet/events.parquet"))
    eq("row groups", len(encodings), 2)
    events = load_db(db)["allocations"][0]["events"]
    eq("rows", [[int(e[1]), int(e[3])] for e in rows], [[made_db.T0 + int(1e9) + e[0], e[2]] for e in events])
    eq("no waits", read_parquet(bench.path("parquet/waits.parquet"))[2], [])


def test_slots(bench):
    """A slot file of the demo: each row of `ttmon slots --json`, at most 6 bytes in Parquet; waits of its database."""
    path, db = bench.path("slots"), bench.path("db.json")
    demo = os.path.join(OUT, "demo", "workload")
    bench.daemon("--slots-out", path, "--cpu", "on", "--dump-db", db, cmd=[demo], wait=False).wait()
    export("csv", bench.path("csv"), path)
    want = [json.loads(x) for x in ttmon("slots", "--json", path)[0].splitlines()]
    rows = read_csv(bench.path("csv/slot_rows.csv"))
    head, rows = rows[0], [dict(zip(rows[0], x)) for x in rows[1:]]
    true(head, {"cpu_ns", "copied_bytes", "mbm_total_bytes"} <= set(head))
    given = [(s, row) for s in want for row in s["rows"]]
    eq("rows", len(rows), len(given))
    names = {"copy_bytes": "copied_bytes", "mbm_total": "mbm_total_bytes", "mbm_local": "mbm_local_bytes"}
    for got, (slot, row) in zip(rows, given):
        shown = {names.get(k, k): v for k, v in row.items()}
        shown.update(flags=" ".join(row["flags"]), at_least=int(row.get("at_least", False)), slot=slot["slot"])
        shown["comm"] = row["comm"] or None
        eq("a row", got, {k: "" if shown[k] is None else str(shown[k]) for k in head})
    slots = read_csv(bench.path("csv/slots.csv"))
    eq("user time", [x[3] for x in slots[1:]], ["" if s["user_ns"] is None else str(s["user_ns"]) for s in want])
    waits = load_db(db)["waits"]
    export("csv", bench.path("csv"), db)
    eq("waits", len(read_csv(bench.path("csv/waits.csv"))), 1 + len(waits["sites"]))
    calls = read_csv(bench.path("csv/wait_calls.csv"))[1:]
    eq("calls", [x[6] for x in calls], [str(c["ns"]) for c in waits["calls"]])
    same_tables(bench, path, ["run", "slots", "slot_rows"])
    size = os.path.getsize(bench.path("parquet/slot_rows.parquet"))
    true(f"{size / len(rows):.2f} bytes a row of {len(rows)}", size <= 6 * len(rows))
    with open(path, "rb") as f, open(bench.path("cut"), "wb") as to:
        to.write(f.read()[:-100])
    _, err = ttmon("export", "-f", "parquet", "-o", bench.path("none"), bench.path("cut"), status=2)
    true(err, err.count("\n") == 1 and os.listdir(bench.path("none")) == [])
    with contextlib.closing(sqlite3.connect(":memory:")):
        export("sqlite", bench.path("sql"), path)
    with contextlib.closing(sqlite3.connect(bench.path("sql/ttmon.sqlite"))) as sql:
        eq("SQLite", sql.execute("select count(*), sum(cpu_ns) from slot_rows").fetchone(),
           (len(rows), sum(r["cpu_ns"] or 0 for _, r in given)))


def state(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0]


def test_interrupted(bench):
    """Ctrl-C ends it at once and leaves nothing, in each format; past a second a terminal shows how far it is."""
    text = json.dumps(made_db.workload(4000, copies=2).document()).encode()
    for form in ("csv", "sqlite", "parquet"):
        folder = bench.path(form)
        screen, terminal = pty.openpty()
        with subprocess.Popen(
            [TTMON, "export", "-f", form, "-o", folder, "-"], stdin=subprocess.PIPE, stderr=terminal
        ) as p:
            os.close(terminal)
            p.stdin.write(text[: len(text) // 2])
            p.stdin.flush()
            deadline = time.monotonic() + 20 * PATIENCE
            # It has read all that there is, and waits for more.
            while not os.path.isdir(folder) or not os.listdir(folder) or state(p.pid) != "S":
                true("it begins", time.monotonic() < deadline)
                time.sleep(0.01)
            p.send_signal(signal.SIGINT)
            eq("status", p.wait(20 * PATIENCE), 2)
            with contextlib.suppress(BrokenPipeError):
                p.stdin.close()
        said = os.read(screen, 4096).decode()
        os.close(screen)
        true(said, "interrupted, nothing was written" in said)
        eq(f"{form}: left", os.listdir(folder), [])


def test_progress(bench):
    """Past a second a terminal shows how far it is, and the line is gone in the end."""
    document = made_db.workload(20000, copies=1).document()
    text = json.dumps(document).encode()
    screen, terminal = pty.openpty()
    with subprocess.Popen(
        [TTMON, "export", "-f", "parquet", "-o", bench.path("out"), "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    ) as p:
        os.close(terminal)
        p.stdin.write(text[: len(text) // 8])
        p.stdin.flush()
        begun = time.monotonic()
        while time.monotonic() - begun < 1.1:
            time.sleep(0.05)
        p.stdin.write(text[len(text) // 8 :])
        p.stdin.close()
        eq("status", p.wait(60 * PATIENCE), 0)
    said = os.read(screen, 65536).decode()
    os.close(screen)
    true(repr(said), " rows" in said and said.endswith("\r\x1b[K"))
