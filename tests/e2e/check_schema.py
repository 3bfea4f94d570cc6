#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""check_schema.py [--write TEST_DB] [--ttmon TTMON] [FILE...]: hold databases (plain or .gz) against
docs/ttmon-db.schema.json.

    ok FILE            FAIL FILE: where: why            exit status 0 or 1; 77 (skipped) without python3-jsonschema

--write PROGRAM: have the unit test PROGRAM (.output/asan/tests/test_db) write a database first, and
check that too. --ttmon PROGRAM: `ttmon db check` and `ttmon db show` have to take each file, and
`check` to refuse it spoiled in ways that no schema sees. Each file is also spoiled in several ways,
and the schema has to refuse each: one that takes everything would be no test.
"""
import argparse
import copy
import gzip
import json
import os
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("SKIP check_schema: python3-jsonschema is not installed")
    sys.exit(77)

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = os.path.join(TOP, "docs", "ttmon-db.schema.json")


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        return json.load(f)


def validator():
    with open(SCHEMA, encoding="utf-8") as f:
        schema = json.load(f)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def spoilt(db):
    """
    Copies of db, each wrong in one way, with what is wrong. Only the head and a few rows: large
    files are slow to copy.
    """
    small = {k: v[:3] if isinstance(v, list) else v for k, v in db.items()}

    def change(what, f):
        bad = copy.deepcopy(small)
        f(bad)
        return what, bad

    yield change("another schema", lambda d: d.update(schema="other"))
    yield change("another version", lambda d: d.update(version=2))
    yield change("no summary", lambda d: d.pop("summary"))
    yield change("an unknown member", lambda d: d.update(more=1))
    yield change("a time that is a number", lambda d: d["clock"].update(mono_ns=1))
    yield change("a negative count", lambda d: d["summary"].update(pins=-1))
    if small["allocations"]:
        yield change("an address without 0x", lambda d: d["allocations"][0].update(addr="1234"))
        yield change("an unknown method", lambda d: d["allocations"][0].update(method="magic"))
        yield change("no id", lambda d: d["allocations"][0].pop("id"))
        yield change(
            "an event that is too short", lambda d: d["allocations"][0]["events"].append([0, "h2d", 1, 2, "pinned"])
        )
        yield change(
            "an unknown kind of event", lambda d: d["allocations"][0]["events"].append([0, "x", 1, 2, "pinned", 0])
        )
    if "tenstorrent" in small:
        yield change("a Tenstorrent part without runs", lambda d: d["tenstorrent"].pop("runs"))
        yield change("other columns", lambda d: d["tenstorrent"]["runs"]["columns"].reverse())
        yield change("a run that is too short", lambda d: d["tenstorrent"]["runs"]["rows"].append([1, 2, 3]))
        yield change("an unknown way to a clock", lambda d: d["tenstorrent"]["clocks"].append({"clock": "magic"}))


def inconsistent(db):
    """
    Copies of db that the schema takes and that are wrong all the same. None for what needs rows
    that are not there.
    """

    def change(what, f):
        bad = copy.deepcopy(db)
        f(bad)
        return what, bad

    def first(d):
        return d["allocations"][0]

    yield change("a summary with more pins", lambda d: d["summary"].update(pins=d["summary"]["pins"] + 1))
    yield change("a summary with more events", lambda d: d["summary"].update(events=d["summary"]["events"] + 1))
    yield change("a summary with other transfers", lambda d: d["summary"]["transfers"].update(d2d={"managed": [1, 1]}))
    yield change("complete with a reason", lambda d: d["completeness"].update(complete=True, reasons=["lost"]))
    yield change(
        "events that are not accounted for",
        lambda d: d["completeness"].update(identity=True, attempted=d["completeness"]["decoded"] + 10**6),
    )
    yield change("sites out of place", lambda d: d["sites"][0].update(id=len(d["sites"])))
    yield change("processes out of place", lambda d: d["processes"][0].update(index=len(d["processes"])))
    yield change("a frame in no object", lambda d: d["sites"][0]["frames"].append([10**6 - 1, "0x1", None]))
    yield change(
        "an object twice", lambda d: d["objects"].extend([{"id": 9999, "path": "x", "build_id": "", "cuda": False}] * 2)
    )
    yield change(
        "advice in a trace-only database", lambda d: d["capture"].update(trace_only=not d["capture"]["trace_only"])
    )
    yield from inconsistent_tt(db, change)
    if db["allocations"]:
        yield change("an id twice", lambda d: d["allocations"].append(first(d)))
        yield change("an id of other things", lambda d: first(d).update(size=first(d)["size"] + 1))
        yield change("no such process", lambda d: first(d).update(process=10**6))
        yield change("no such site", lambda d: first(d).update(site=10**6))
        yield change("the pid of another", lambda d: first(d).update(pid=first(d)["pid"] + 1))
        yield change("freed before it was made", lambda d: first(d).update(free_ns="0", end="free", alloc_ns="5"))
        busy = next((i for i, a in enumerate(db["allocations"]) if a["events"] and a["transfers"]), None)
        if busy is not None:
            yield change(
                "an event less",
                lambda d: (
                    d["allocations"][busy]["events"].pop(),
                    d["summary"].update(events=d["summary"]["events"] - 1),
                ),
            )
            yield change(
                "other heat",
                lambda d: d["allocations"][busy]["heat"]["bytes"].__setitem__(
                    -1, d["allocations"][busy]["heat"]["bytes"][-1] + 1
                ),
            )
        yield change("freed and live", lambda d: first(d).update(free_ns=str(2**62), end="live"))


def inconsistent_tt(db, change):
    """The same of the Tenstorrent part."""
    tt = db.get("tenstorrent")
    if not tt:
        return
    # What is cut short is not held against its sums.
    exact = not tt["dropped"] and not db["completeness"]["cut"] and "limit" not in db["completeness"]["reasons"]

    def more(obj, key):
        obj[key] += 1

    if tt["chips"]:
        yield change(
            "a chip that holds more than processes do",
            lambda d: (
                more(d["tenstorrent"]["chips"][0]["bytes"], "dram"),
                more(d["tenstorrent"]["chips"][0]["peak"], "dram"),
            ),
        )
        yield change("a chip twice", lambda d: d["tenstorrent"]["chips"].append(d["tenstorrent"]["chips"][0]))
    device = next(((i, k) for i, p in enumerate(tt["processes"]) for k, _ in enumerate(p["devices"])), None)
    if device:

        def use(d):
            return d["tenstorrent"]["processes"][device[0]]["devices"][device[1]]

        yield change("a device with less at its peak", lambda d: use(d)["bytes"].update(l1=use(d)["peak"]["l1"] + 1))
        yield change("a device on no chip", lambda d: use(d).update(chip=10**6))
    if tt["programs"] and exact:
        yield change("a run more than there are", lambda d: more(d["tenstorrent"]["programs"][0], "runs"))
        yield change(
            "a busier program",
            lambda d: (
                more(d["tenstorrent"]["programs"][0], "busy_ns"),
                more(d["tenstorrent"]["programs"][0], "max_ns"),
            ),
        )
        yield change("a run less", lambda d: d["tenstorrent"]["runs"]["rows"].pop())
    if tt["dispatched"]["rows"] and exact:
        yield change(
            "more dispatches told than counted",
            lambda d: d["tenstorrent"]["dispatched"]["rows"][0].__setitem__(8, 10**9),
        )


def run(*args):
    return subprocess.run(args, capture_output=True, text=True, check=False)


def check_tool(path, ttmon, v):
    """Problems of `ttmon db` with one file."""
    problems = []
    db = load(path)
    r = run(ttmon, "db", "check", path)
    if r.returncode or not r.stdout.startswith(f"{path}: ok, ") or r.stderr:
        problems.append(f"ttmon db check: status {r.returncode}: {r.stdout}{r.stderr}")
    wide = run(ttmon, "db", "show", path)
    ids = [a["id"] for a in db["allocations"][:1]]
    one = [run(ttmon, "db", "show", path, i) for i in ids]
    for r in [wide] + one:
        if r.returncode or r.stderr or not r.stdout:
            problems.append(f"ttmon db show: status {r.returncode}: {r.stderr}")
        problems += [
            f"ttmon db show: control characters in {line!r}" for line in r.stdout.splitlines() if not line.isprintable()
        ]
    problems += [f"ttmon db show: wider than 80: {line!r}" for line in wide.stdout.splitlines()[1:] if len(line) > 80]
    if run(ttmon, "db", "schema").stdout != open(SCHEMA, encoding="utf-8").read():
        problems.append("ttmon db schema: is not docs/ttmon-db.schema.json")
    if os.path.getsize(path) > 1 << 20:
        return problems  # the copies below are for small files
    with tempfile.NamedTemporaryFile("w", suffix=".json", prefix="ttmon-bad-") as f:
        for what, bad in inconsistent(db):
            f.seek(0)
            f.truncate()
            json.dump(bad, f)
            f.flush()
            r = run(ttmon, "db", "check", f.name)
            if r.returncode != 1 or not r.stderr:
                problems.append(f"ttmon db check takes {what}")
            if not v.is_valid(bad):
                problems.append(f"the schema refuses {what}: this case no longer shows what check is for")
    return problems


def check(path, v):
    """Problems of one file, as lines."""
    db = load(path)
    problems = []
    for error in v.iter_errors(db):
        where = "/".join(str(p) for p in error.absolute_path) or "document"
        problems.append(f"{where}: {error.message[:160]}")
        if len(problems) == 10:
            break
    order = [k for k in v.schema["properties"] if k in db]
    if list(db) != order:
        problems.append(f"document: members are not in the schema's order: {list(db)}")
    for what, bad in spoilt(db):
        if v.is_valid(bad):
            problems.append(f"the schema takes {what}")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", metavar="PROGRAM")
    parser.add_argument("--ttmon", metavar="PROGRAM")
    parser.add_argument("files", nargs="*", metavar="FILE")
    args = parser.parse_args()
    files = list(args.files)
    v = validator()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ttmon-schema-") as tmp:
        if args.write:
            for name in ("test.json", "test.json.gz"):
                files.append(os.path.join(tmp, name))
                subprocess.run([args.write, files[-1]], check=True)
        if not files:
            parser.error("nothing to check")
        for path in files:
            problems = check(path, v) + (check_tool(path, args.ttmon, v) if args.ttmon else [])
            failed += bool(problems)
            for p in problems:
                print(f"FAIL {path}: {p}")
            if not problems:
                print(f"ok {path}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
