# SPDX-License-Identifier: GPL-2.0-only
"""
tools/python: the reader in Python has the tables of `ttmon export`, refuses what is damaged in one way,
and makes DataFrames where there is pandas.
"""
import csv
import json
import os
import random
import shutil
import subprocess
import sys

import made_db
from e2e import OUT, PATIENCE, TTMON, Skip, eq, true

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "tools", "python")
sys.path.insert(0, PACKAGE)
import ttmon  # noqa: E402  (the package is not installed)

PANDAS = "/usr/bin/python3"


def same_as_csv(bench, path):
    """Each table of the reader has the columns and values of the CSV file."""
    subprocess.run([TTMON, "export", "-o", bench.path("csv"), path], check=True, stdout=subprocess.DEVNULL)
    run = ttmon.load(path)
    eq("tables", sorted(os.listdir(bench.path("csv"))), sorted(f"{n}.csv" for n in run))
    for name in run:
        with open(bench.path(f"csv/{name}.csv"), newline="", encoding="utf-8") as f:
            rows = list(csv.reader(f))
        eq(f"columns of {name}", list(run.columns(name)), rows[0])
        got = [["" if v is None else str(v) for v in row.values()] for row in run[name]]
        eq(name, got, rows[1:])
        for column, kind in run.columns(name).items():
            true(f"{name}.{column}", all(isinstance(r[column], (kind, type(None))) for r in run[name]))
    return run


def test_database(bench):
    """Of a traced program and of a made one with strange names."""
    db = bench.path("traced.json.gz")
    bench.daemon("--dump-db", db, cmd=[os.path.join(OUT, "demo", "workload")], wait=False).wait()
    run = same_as_csv(bench, db)
    true("allocations and waits", run["allocations"] and run["waits"])
    m = made_db.workload(60)
    m.alloc(0, 2**62, 1, 2, [(1.5, "d2h", 7)], name='a "quoted", name\nof two é lines')
    m.complete, m.reasons = False, ["lost", "cut"]
    run = same_as_csv(bench, m.write(bench.path("made.json")))
    eq("complete", (run.complete, run.reasons), (False, ["lost", "cut"]))


def test_slots(bench):
    """A slot file, plain and gzip."""
    for name in ("s", "s.gz"):
        path = bench.path(name)
        work = "import time; [sum(range(20000)) and time.sleep(0.001) for _ in range(30)]"
        bench.daemon("--slots-out", path, "--cpu", "on", cmd=[sys.executable, "-c", work], wait=False).wait()
        run = same_as_csv(bench, path)
        true("rows", len(run["slot_rows"]) > 100 and any(r["cpu_ns"] for r in run["slot_rows"]))
    with open(bench.path("s"), "rb") as f:
        refuses_damage(bench, f.read())


def refuses_damage(bench, data):
    """Whatever a file has in it, ttmon.Error is all that is raised; a slot file has checksums."""
    r = random.Random(1)
    for i in range(20):
        bad = bytearray(data)
        if i % 2:
            del bad[r.randrange(len(bad)) :]
        else:
            bad[r.randrange(len(bad))] ^= 1 << r.randrange(8)
        with open(bench.path("bad"), "wb") as f:
            f.write(bad)
        try:
            ttmon.load(bench.path("bad"))
        except ttmon.Error as e:
            true(str(e), str(e).startswith(bench.path("bad")) and "\n" not in str(e))
            continue
        true(f"damage {i} is not seen", False)


def test_strange(bench):
    """Members of the wrong kind are not known, and break nothing; what is no file of ours is refused."""
    doc = made_db.workload(3).document()
    doc["allocations"][0].update(size="many", transfers=[1], events=[[1], "x", {}], alloc_ns=None, id=7)
    doc["sites"][1]["frames"] = [None, [1], "x"]
    doc["processes"].append(None)
    doc["completeness"] = []
    with open(bench.path("db"), "w", encoding="utf-8") as f:
        json.dump(doc, f)
    run = ttmon.load(bench.path("db"))
    eq("a size", run["allocations"][0]["size_bytes"], None)
    eq("complete", run.complete, None)
    version = b'{"schema":"ttmon-db","version":9}'
    for text in (b"", b"{}", b"[1]", b"\x1f\x8bxx", b"ttmonsl1", b"\xff\xfe", version, b"[" * 100000):
        with open(bench.path("bad"), "wb") as f:
            f.write(text)
        try:
            ttmon.load(bench.path("bad"))
            true(f"{text[:20]} is taken", False)
        except ttmon.Error:
            pass


def test_package(bench):
    """python3-ttmon: what is in it, and that it is enough."""
    if not shutil.which("dpkg-deb"):
        raise Skip("there is no dpkg-deb")
    out = bench.path("out")
    os.mkdir(out)
    done = subprocess.run(
        [os.path.join(ROOT, "packaging", "python.sh"), "1.2-3-gabc"],
        env={**os.environ, "O": out},
        capture_output=True,
        text=True,
        timeout=120 * PATIENCE,
        check=False,
    )
    eq(done.stderr, done.returncode, 0)
    deb = done.stdout.split()[-1]
    eq("its name", deb, f"{out}/python3-ttmon_1.2+3+gabc-1_all.deb")
    subprocess.run(["dpkg-deb", "-x", deb, bench.path("root")], check=True)
    have = {
        os.path.relpath(os.path.join(folder, f), bench.path("root"))
        for folder, _, files in os.walk(bench.path("root"))
        for f in files
    }
    lib, doc = "usr/lib/python3/dist-packages/ttmon", "usr/share/doc/python3-ttmon"
    want = {f"{lib}/{f}" for f in os.listdir(os.path.join(PACKAGE, "ttmon")) if f.endswith(".py")}
    papers = ("README.md", "copyright", "changelog.gz", "changelog.Debian.gz", "examples/ttmon.ipynb")
    want |= {f"{doc}/{f}" for f in papers}
    eq("files", have, want)
    code = "import sys, ttmon; print(ttmon.__file__, len(ttmon.load(sys.argv[1])['allocations']))"
    done = subprocess.run(
        [PANDAS if os.path.exists(PANDAS) else sys.executable, "-c", code, made_db.workload(5).write(bench.path("db"))],
        env={**os.environ, "PYTHONPATH": bench.path(os.path.dirname(f"root/{lib}")), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=bench.dir,
        capture_output=True,
        text=True,
        check=False,
    )
    eq(done.stderr, done.stdout.split(), [bench.path(f"root/{lib}/__init__.py"), "5"])


# The cells of the notebook, one after the other; what the last one shows is printed.
NOTEBOOK = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as f:
    cells = [c for c in json.load(f)["cells"] if c["cell_type"] == "code"]
names, shown = {}, []
for cell in cells:
    lines = "".join(cell["source"]).splitlines()
    exec("\\n".join(lines[:-1]), names)
    shown.append(eval(lines[-1], names))
import ttmon
run = ttmon.load(sys.argv[2])
frame = run.frame("allocations")
print(json.dumps({
    "types": {str(k): str(v) for k, v in frame.dtypes.items()},
    "sizes": int(frame.size_bytes.sum()), "unknown": int(frame.free_ns.isna().sum()),
    "empty": list(run.frame("waits").columns), "peak": int(shown[2]), "sites": len(shown[1]),
}))
"""


def test_pandas(bench):
    """DataFrames of Debian's pandas, and the notebook runs from its first cell to its last."""
    has = subprocess.run([PANDAS, "-c", "import pandas"], capture_output=True, check=False)
    if has.returncode:
        raise Skip("there is no pandas: apt-get install python3-pandas")
    m = made_db.workload(200)
    db = m.write(bench.path("db.json"))
    done = subprocess.run(
        [PANDAS, "-c", NOTEBOOK, os.path.join(PACKAGE, "examples", "ttmon.ipynb"), db],
        env={**os.environ, "PYTHONPATH": PACKAGE, "TTMON_DB": db, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120 * PATIENCE,
        check=False,
    )
    eq(done.stderr, done.returncode, 0)
    got, run = json.loads(done.stdout), ttmon.load(db)
    rows = run["allocations"]
    eq("sizes", got["sizes"], sum(r["size_bytes"] for r in rows))
    eq("not freed", got["unknown"], sum(r["free_ns"] is None for r in rows))
    eq("types", got["types"], {k: "Int64" if v is int else "string" for k, v in run.columns("allocations").items()})
    eq("an empty table has its columns", got["empty"], list(run.columns("waits")))
    pinned = [r for r in rows if r["method"] in ("host_alloc", "registered", "pool")]
    steps = [(r["alloc_ns"], r["size_bytes"]) for r in pinned]
    steps += [(r["free_ns"], -r["size_bytes"]) for r in pinned if r["free_ns"]]
    steps.sort()
    now, peak = 0, 0
    for _, size in steps:
        now += size
        peak = max(peak, now)
    eq("the peak of the notebook", got["peak"], peak)
    true("sites", got["sites"] > 0)
