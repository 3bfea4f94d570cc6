# SPDX-License-Identifier: GPL-2.0-only
"""
t_checkpoint.py: checkpoints of programs, what is moved between them, a program that asks to be
traced, and call sites without our libraries.
"""
import filecmp
import json
import os
import re
import subprocess
import time

from e2e import PATIENCE, TTMON, TTMOND, eq, last_json, load_db, standin, timeout, true, whole
from tt_host import Unix

NOBODY = 65534


class Service:
    """A daemon that traces who asks for it, and nobody else."""

    def __init__(self, bench, *args):
        self.sock = bench.path("sock")
        self.daemon = bench.daemon(
            "--socket", self.sock, "--shm-slots", "0", "--tt-shm-version", "off", "--cpu", "off", *args
        )
        self.ask("DELETE", "/v1/targets?all")

    def ask(self, method, path, status=200):
        conn = Unix(self.sock)
        conn.request(method, path)
        reply = conn.getresponse()
        body = reply.read()
        eq(f"{method} {path} ({body[:300]!r})", reply.status, status)
        return json.loads(body)

    def get(self, path, status=200):
        return self.ask("GET", path, status)

    def wait_checkpoints(self, pid, n):
        """The event stream is a few milliseconds behind the program."""
        end = time.monotonic() + 10 * PATIENCE
        while time.monotonic() < end:
            conn = Unix(self.sock)
            conn.request("GET", f"/v1/hotspots?pid={pid}&period={n - 1}&label=step")
            reply = conn.getresponse()
            body = reply.read()
            if reply.status == 200 and json.loads(body)["periods"] >= n:
                return
            time.sleep(0.02)
        raise AssertionError(f"{n} checkpoints of {pid} have not come: {body[:300]!r}")


def tool(*args, status=0):
    done = subprocess.run([TTMON, *args], capture_output=True, text=True, check=False, timeout=30 * PATIENCE)
    eq(f"ttmon {' '.join(args)}: {done.stderr[-300:]}", done.returncode, status)
    return done.stdout if not status else done.stderr


def labels(db, pid):
    """Labels of its checkpoints in their order, times ascending."""
    index = [p["index"] for p in db["processes"] if p["pid"] == pid]
    rows = [c for c in db["checkpoints"] if [c[1]] == index]
    times = [int(c[0]) for c in rows]
    eq("order", times, sorted(times))
    return [c[3] for c in rows]


def test_replay_is_the_same(bench):
    """
    Each checkpoint is in the database, between the copies before and after it; the recording gives
    the same bytes.
    """
    rec, db_path, again = bench.path("t.rec"), bench.path("db.json"), bench.path("again.json")
    daemon = bench.daemon("--record", rec, "--dump-db", db_path, cmd=[standin("steps"), "train", "40"], wait=False)
    daemon.wait(0)
    pid, db = last_json(daemon.stdout())["pid"], load_db(db_path)
    whole(db)
    told = labels(db, pid)
    eq("labels", told, (["step"] * 10 + ["epoch"]) * 4)
    eq("thread", {c[2] for c in db["checkpoints"]}, {pid})
    ends = [int(c[0]) for c in db["checkpoints"] if c[3] == "step"]
    batch = [a for a in db["allocations"] if a.get("name") == "batch"][0]
    copies = [int(batch["alloc_ns"]) + e[0] for e in batch["events"] if e[1] == "h2d"]
    eq(
        "copies of the batch by step",
        [sum(1 for t in copies if a <= t < b) for a, b in zip([0, *ends], [*ends, 1 << 63])],
        [2] * 40 + [0],
    )
    subprocess.run([TTMOND, "-q", "--replay", rec, "--dump-db", again], check=True, timeout=60 * PATIENCE)
    true("the replay's database is another one", filecmp.cmp(db_path, again, shallow=False))
    tool("db", "check", db_path)


def test_show_periods(bench):
    """A person sees which memory is moved in each step, which now and then, at the start, and never."""
    _, _, _ = bench.trace([standin("steps"), "train", "100"])
    path = bench.path("db.json")
    text = tool("db", "show", path, "--period", "step")
    parts = re.split(r"\n(?=[A-Z][A-Z ]+(?:\n|:))", text)
    found = {p.split(":")[0].split("\n")[0]: p for p in parts[1:]}
    eq("sections", sorted(found), ["AT THE START", "NOW AND THEN", "PINNED AND NEVER MOVED", "STEADY"])
    for section, share, site in (
        ("STEADY", "100 of 100 .* 256.0 KiB", "load_batch"),
        ("NOW AND THEN", "10 of 100 .*64.0 KiB", "load_eval"),
        ("AT THE START", "1 of 100 .*1.0 MiB", "load_weights"),
        ("PINNED AND NEVER MOVED", "0 of 100 .*host_alloc", "alloc_cold"),
    ):
        true(
            f"{section} has no {share} of {site}: {found[section]}",
            re.search(rf"{share}.*\n +{site}\+", found[section]),
        )
    true(f"wider than a terminal: {text}", all(len(line) <= 80 for line in text.splitlines()))
    true("advice", "pin: saves" in found["STEADY"] and "unpin:" in found["PINNED AND NEVER MOVED"])
    with open(path, "rb") as f:
        piped = subprocess.run(
            [TTMON, "db", "show", "-", "--period", "step"],
            stdin=f,
            capture_output=True,
            text=True,
            check=False,
            timeout=30 * PATIENCE,
        )
    eq(
        "from standard input",
        (piped.returncode, piped.stderr, piped.stdout.split("\n", 1)[1]),
        (0, "", text.split("\n", 1)[1]),
    )
    first = tool("db", "show", path, "--period", "0")
    true(f"the first step: {first}", re.search(r"PERIOD 0.*\n.*\n +1 +1.0 MiB.*custom.*\n +load_weights", first))
    last = tool("db", "show", path, "--period", "epoch:-1")
    true(f"the last epoch: {last}", re.search(r"PERIOD 9,.*\n.*\n +20 +2.5 MiB", last))
    true("after it", "PERIOD 10 (after the last checkpoint)" in tool("db", "show", path, "--period", "epoch:10"))
    true("none", "has no period 11" in tool("db", "show", path, "--period", "epoch:11"))
    true(
        "other label",
        'no checkpoint "batch"; there are "step", "epoch"' in tool("db", "show", path, "--period", "batch", status=1),
    )


def test_old_databases(bench):
    """
    A database without the member is as good as one without checkpoints; rows that are none are left
    out and found by the check.
    """
    _, db, _ = bench.trace([standin("steps"), "train", "3"])
    path = bench.path("old.json")

    def write(change):
        copy = json.loads(json.dumps(db))
        change(copy)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(copy, f)

    write(lambda d: d.pop("checkpoints"))
    tool("db", "check", path)
    tool("db", "show", path)
    true("no checkpoints", "has no checkpoints" in tool("db", "show", path, "--period", "step", status=1))
    write(lambda d: d.update(checkpoints=d.pop("checkpoints")))
    true(
        "at the end",
        "has its checkpoints after its allocations" in tool("db", "show", path, "--period", "step", status=1),
    )
    for bad in (["1", 0, 1], ["1", 99, 1, "step"], [[], 0, 1, "step"], ["1", 0, 1, None], "step"):
        write(lambda d, bad=bad: d["checkpoints"].append(bad))
        true(f"{bad}", "checkpoint 3" in tool("db", "check", path, status=1))


def test_hostile_labels(bench):
    """What cannot be read is counted as lost, the rest is kept as far as it goes, and nothing reaches the terminal."""
    out, db, _ = bench.trace([standin("steps"), "hostile"])
    eq("labels", labels(db, last_json(out)["pid"]), ['\x1b[31m\x07\r\n"\\\ufffd\ufffd', "L" * 63, "", "", "last"])
    eq("lost", db["completeness"]["lost"]["read_failed"], 3)
    eq("identity", db["completeness"]["identity"], True)
    text = tool("db", "show", bench.path("db.json"), "--period", "last") + tool(
        "db", "show", bench.path("db.json"), "--period", "nope", status=1
    )
    eq("control characters", re.findall(r"[^\n\x20-\x7e]", text.replace("\ufffd", "")), [])


@timeout(90)
def test_very_many(bench):
    """
    100,000 checkpoints: none is lost on the way; the first ones are kept, and the database says
    that it is not all.
    """
    out, db, _ = bench.trace([standin("steps"), "flood", "100000"])
    eq("attempted", db["completeness"]["lost"]["ring_full"], 0)
    eq("kept", labels(db, last_json(out)["pid"]), [f"n{i}" for i in range(65536)])
    eq("dropped", db["completeness"]["checkpoints_dropped"], 100000 - 65536)
    eq("reasons", db["completeness"]["reasons"], ["limit"])


def test_on_the_timeline(bench):
    """Marks on the thread that told them: of a recording, and of a database."""
    rec, trace = bench.path("t.rec"), bench.path("t.json")
    daemon = bench.daemon(
        "--record", rec, "--dump-db", bench.path("db.json"), cmd=[standin("steps"), "train", "10"], wait=False
    )
    daemon.wait(0)
    pid = last_json(daemon.stdout())["pid"]
    for source in (rec, bench.path("db.json")):
        tool("trace", source, "-o", trace)
        with open(trace, encoding="utf-8") as f:
            doc = json.load(f)
        marks = [e for e in doc["traceEvents"] if e.get("cat") == "checkpoint"]
        eq("marks", [m["name"] for m in marks], ["step"] * 10 + ["epoch"])
        eq("where", {(m["ph"], m["pid"], m["tid"]) for m in marks}, {("i", pid, pid)})
        eq("count", doc["otherData"]["checkpoints"], 11)


@timeout(60)
def test_periods_of_a_service(bench):
    service = Service(bench)
    target = bench.target(standin("steps"), "wait", "30")
    service.ask("PUT", f"/v1/targets?pid={target.pid}")
    target.go()
    pid = last_json(target.finish())["pid"]
    service.wait_checkpoints(pid, 30)
    end = time.monotonic() + 10 * PATIENCE
    doc = service.get(f"/v1/hotspots?pid={pid}&period=-1")
    # Call sites are known a moment later, their names another.
    while time.monotonic() < end and not all(
        s["call_site"] and s["call_site"].startswith("load_") for s in doc["spots"]
    ):
        time.sleep(0.05)
        doc = service.get(f"/v1/hotspots?pid={pid}&period=-1")
    eq("what", (doc["pid"], doc["label"], doc["periods"], doc["period"], doc["whole"]), (pid, "step", 30, 29, True))
    true("length", 0 < int(doc["to_ns"]) - int(doc["from_ns"]) < 10**9)
    names = ["copies", "copied", "steps", "of", "when", "median", "min", "max", "advice", "allocs", "size"]
    rows = {re.sub(r"\+.*", "", s["call_site"]): [s[n] for n in names] for s in doc["spots"]}
    eq(
        "last step",
        rows,
        {
            "load_batch": [2, 262144, 30, 30, "steady", 262144, 262144, 262144, "pin", 1, 262144],
            "load_eval": [1, 65536, 3, 30, "sometimes", 65536, 65536, 65536, "keep", 1, 65536],
        },
    )
    first = service.get(f"/v1/hotspots?pid={pid}&period=0&label=step")["spots"]
    eq(
        "first step",
        [(re.sub(r"\+.*", "", s["call_site"]), s["copied"], s["when"]) for s in first],
        [("load_weights", 1 << 20, "start"), ("load_batch", 1 << 18, "steady")],
    )
    cold = service.get(f"/v1/coldspots?pid={pid}&period=3")["spots"]
    eq(
        "cold",
        [(re.sub(r"\+.*", "", s["call_site"]), s["bytes"], s["when"], s["advice"]) for s in cold],
        [("alloc_cold", 65536, "never", "unpin")],
    )
    eq("epochs", service.get(f"/v1/hotspots?pid={pid}&period=2&label=epoch")["spots"][0]["copies"], 20)
    eq("the one hottest", len(service.get(f"/v1/hotspots?pid={pid}&period=29&n=1")["spots"]), 1)
    for path, status in (
        (f"pid={pid}&period=31", 404),
        (f"pid={pid}&period=-31", 404),
        (f"pid={pid}&period=0&label=x", 404),
        ("pid=1&period=0", 404),
        ("period=0", 400),
        (f"pid={pid}", 400),
        (f"pid={pid}&period=", 400),
        (f"pid={pid}&period=-0", 400),
        (f"pid={pid}&period=1e3", 400),
        (f"pid={pid}&period=0&label=", 400),
        (f"pid={pid}&period=0&label={'x' * 64}", 400),
        (f"pid={pid}&period=0&n=0", 400),
        ("pid=x&period=0", 400),
    ):
        true(path, service.get(f"/v1/hotspots?{path}", status)["error"])
    eq("metric", service.get("/v1/status")["identity"]["ok"], True)


def call_self(bench, service, *wrap, user=None):
    """Status and time of the request, and the steps it was seen to make."""
    program = bench.for_everybody(standin("steps"), standin("lib")) if user else standin("steps")
    done = subprocess.run(
        [*wrap, program, "self", service.sock],
        capture_output=True,
        text=True,
        check=False,
        timeout=30 * PATIENCE,
        cwd=bench.dir,
        **({"user": user, "group": user, "extra_groups": []} if user else {}),
    )
    said = re.search(r"status (\d+) after (\d+) us", done.stderr)
    true(f"it said {done.stderr[-300:]!r}", said)
    return int(said[1]), int(said[2]), done


@timeout(90)
def test_trace_self(bench):
    """A program that asks to be traced is, from its next call on: no call after the reply is missed, wherever it is.

    Of another user than root it is one that is traced already: who is traced is root's to say."""
    service = Service(bench)
    os.chmod(bench.dir, 0o755)
    os.chmod(service.sock, 0o666)
    eq("nobody's, which is not traced", call_self(bench, service, user=NOBODY)[0], 403)
    for wrap, user in ((), None), ((), NOBODY), (("unshare", "--pid", "--fork", "--mount-proc"), None):
        service.ask("PUT" if user else "DELETE", "/v1/targets?all")
        known = {a["seq"] for a in service.get("/v1/allocations?limit=0&method=custom")["allocations"]}
        status, us, done = call_self(bench, service, *wrap, user=user)
        eq(f"{wrap} {user}: status", status, 200)
        eq("exit status", done.returncode, 0)
        true(f"{us} us", us < 2_000_000 * PATIENCE)
        end, rows = time.monotonic() + 10 * PATIENCE, []
        while time.monotonic() < end and not any(
            r.get("name") == "batch" and r["transfers"].get("h2d", [0])[0] == 10 for r in rows
        ):
            time.sleep(0.05)
            rows = [
                a for a in service.get("/v1/allocations?limit=0&method=custom")["allocations"] if a["seq"] not in known
            ]
        eq(
            "what was seen",
            sorted((r.get("name", ""), r["transfers"].get("h2d")) for r in rows),
            [("", None), ("batch", [10, 5 * 262144]), ("weights", [1, 1 << 20])],
        )
        service.wait_checkpoints(rows[0]["pid"], 5)
        print(f"PUT /v1/targets?self {' '.join(wrap)} {user or 'root'}: {us} us")
    service.ask("DELETE", "/v1/targets?all")
    doc = service.ask("PUT", "/v1/targets?self")
    eq("self", (doc["all"], doc["self"]), (False, os.getpid()))
    true("listed", os.getpid() in doc["pids"])
    true("no longer", os.getpid() not in service.ask("DELETE", "/v1/targets?self")["pids"])
    service.ask("PUT", "/v1/targets?self&all", 400)
    service.ask("PUT", f"/v1/targets?self&pid={os.getpid()}", 400)
    service.ask("PUT", "/v1/targets", 400)


@timeout(60)
def test_sites_without_our_libraries(bench):
    """
    An allocation through a preloaded libttmon-*.so has the call site that it has without it, and
    what it keeps to itself is none of CUDA's.
    """
    shim = standin("lib/libttmon-shim.so")

    def pinned(env):
        _, db, _ = bench.trace([standin("steps"), "train", "2"], env=env)
        flags = {os.path.basename(o["path"]): o["cuda"] for o in db["objects"] if "shim" in (o["path"] or "")}
        sites = [db["sites"][a["site"]] for a in db["allocations"] if a["method"] == "host_alloc"]
        return [(s["key"], [f[2].split("+")[0] for f in s["frames"] if f[2]][:2]) for s in sites], flags

    plain, _ = pinned({})
    eq("innermost", [names for _, names in plain], [["alloc_cold", "train"]])
    eq("through ours", pinned({"LD_PRELOAD": shim}), (plain, {"libttmon-shim.so": True}))
    eq("kept by ours", pinned({"LD_PRELOAD": shim, "SHIM_KEEP": "1"}), ([], {"libttmon-shim.so": True}))
