# SPDX-License-Identifier: GPL-2.0-only
"""Recording and replay; loss; the database file and its readers; the socket."""
import gzip
import json
import os
import signal
import subprocess
import sys
import time

from t_bad import as_nobody
from e2e import TOP, TTMON, Skip, eq, fast, last_json, load_db, process, same_transfers, standin, timeout, true, whole


def read(path):
    with open(path, "rb") as f:
        return f.read()


def ledger(bench, calls):
    return [standin("ledger"), "--calls", str(calls), "--out", bench.path("ledger.json")]


def replay(bench, recording, out, status=0):
    daemon = bench.daemon("--quiet", "--replay", recording, "--dump-db", out, wait=False)
    daemon.wait(status)
    return daemon


@fast
@timeout(90)
def test_replay_is_the_same_database(bench):
    """Byte for byte, and again."""
    rec = bench.path("x.rec")
    bench.trace(ledger(bench, 50000), "--record", rec)
    for i in range(2):
        replay(bench, rec, bench.path(f"again{i}.json"))
        true(f"database {i} differs", read(bench.path("db.json")) == read(bench.path(f"again{i}.json")))


@timeout(60)
def test_replay_of_capture_and_maps(bench):
    """The same where facts matter: processes, mappings, symbols, execs."""
    for i, scenario in enumerate((["exec"], ["maps"], ["capture"], ["child"], ["old"])):
        rec = bench.path(f"{i}.rec")
        cmd = [standin("scen"), *scenario]
        if scenario == ["old"]:
            target = bench.target(*cmd)
            daemon = bench.daemon("--dump-db", bench.path("db.json"), "--record", rec, "--pid", str(target.pid))
            target.go()
            target.finish()
            daemon.wait(0)
        else:
            bench.trace(cmd, "--record", rec)
        replay(bench, rec, bench.path("again.json"))
        true(f"{scenario}: the databases differ", read(bench.path("db.json")) == read(bench.path("again.json")))


def test_replay_needs_no_privileges(bench):
    rec, out = bench.path("x.rec"), bench.path("out")
    bench.trace([standin("scen"), "copies"], "--record", rec)
    os.chmod(bench.dir, 0o755)
    os.chmod(rec, 0o644)
    os.mkdir(out)
    os.chmod(out, 0o777)
    daemon = bench.daemon("--quiet", "--replay", rec, "--dump-db", f"{out}/db.json", wait=False, wrap=as_nobody(bench))
    daemon.wait(0)
    true("the databases differ", read(bench.path("db.json")) == read(f"{out}/db.json"))


@timeout(60)
def test_truncated_recording(bench):
    """What is there is replayed; the database says that it is cut off."""
    rec = bench.path("x.rec")
    bench.trace(ledger(bench, 50000), "--record", rec)
    data = read(rec)
    with open(bench.path("cut.rec"), "wb") as f:
        f.write(data[: len(data) // 2])
    daemon = replay(bench, bench.path("cut.rec"), bench.path("cut.json"), status=1)
    lines = daemon.stderr().strip().splitlines()
    true(f"it does not say so: {lines}", any("cut" in line for line in lines))
    db = load_db(bench.path("cut.json"))
    eq("complete", db["completeness"]["complete"], False)
    eq("cut", db["completeness"]["cut"], True)
    with open(bench.path("head.rec"), "wb") as f:
        f.write(data[:20])
    bench.refused(["--replay", bench.path("head.rec"), "--dump-db", bench.path("no.json")], "head.rec")


@timeout(60)
def test_damaged_recording(bench):
    """A byte in the middle: refused or replayed up to there, said, never believed whole."""
    rec = bench.path("x.rec")
    bench.trace(ledger(bench, 20000), "--record", rec)
    data = bytearray(read(rec))
    data[len(data) // 2] ^= 0xFF
    with open(bench.path("bad.rec"), "wb") as f:
        f.write(data)
    daemon = replay(bench, bench.path("bad.rec"), bench.path("bad.json"), status=1)
    true("it says nothing", "bad.rec" in daemon.stderr())
    eq("complete", load_db(bench.path("bad.json"))["completeness"]["complete"], False)


@timeout(60)
def test_loss_is_counted(bench):
    """A ring too small on purpose: the identity holds, and the database says incomplete."""
    out, db, daemon = bench.trace(ledger(bench, 200000), "--ring-size", "4", "--record", bench.path("x.rec"))
    c = db["completeness"]
    lost = c["lost"]["ring_full"]
    true(f"nothing was lost: {c}", lost > 0)
    eq("complete", c["complete"], False)
    true(f"reasons {c['reasons']}", "lost" in c["reasons"])
    eq("identity", c["identity"], True)
    eq("attempted", c["attempted"], c["decoded"] + c["malformed"] + sum(c["lost"].values()))
    true("the summary does not say so", "lost" in daemon.stderr().lower())
    for proc in db["processes"]:
        true("a count below zero", all(proc[k] >= 0 for k in ("pins", "pinned_pages", "live", "allocs", "frees")))
    replay(bench, bench.path("x.rec"), bench.path("again.json"))
    true("its replay differs", read(bench.path("db.json")) == read(bench.path("again.json")))


@timeout(60)
def test_compressed(bench):
    """A name that ends in .gz."""
    path = bench.path("db.json.gz")
    daemon = bench.daemon(
        "--quiet", "--dump-db", path, "--record", bench.path("x.rec"), cmd=ledger(bench, 20000), wait=False
    )
    daemon.wait(0)
    replay(bench, bench.path("x.rec"), bench.path("plain.json"))
    with gzip.open(path) as f:
        true("other bytes than uncompressed", f.read() == read(bench.path("plain.json")))


def test_quiet_and_summary(bench):
    _, _, daemon = bench.trace([standin("scen"), "copies"])
    lines = daemon.stderr().splitlines()
    true(
        f"lines longer than 80 columns: {[x for x in lines if len(x) > 80]}",
        all(len(x) <= 80 or x.startswith("ttmond: ") for x in lines),
    )
    true("colours on a file", "\x1b" not in daemon.stderr() and "\r" not in daemon.stderr())
    true("no summary", len(lines) > 5)
    quiet = bench.daemon("--quiet", "--log-level", "error", cmd=[standin("scen"), "copies"], wait=False)
    quiet.wait(0)
    eq("output of --quiet", quiet.stderr(), "")


def ttmon(*args, status=0):
    done = subprocess.run([TTMON, *args], capture_output=True, text=True, check=False)
    eq(f"status of ttmon {' '.join(args)} ({done.stderr.strip()[-200:]})", done.returncode, status)
    return done.stdout


@timeout(60)
def test_reader(bench):
    """ttmon db check and show on what ttmond wrote, also on files that are not whole."""
    _, db, _ = bench.trace(ledger(bench, 20000))
    path = bench.path("db.json")
    text = ttmon("db", "check", path)
    true(f"db check: {text!r}", re_ok(text, len(db["allocations"])))
    text = ttmon("db", "show", path)
    true("db show: lines longer than 80 columns", all(len(line) <= 80 for line in text.splitlines()))
    first = next(a for a in db["allocations"] if a["transfers"])
    true("db show ID does not show it", first["addr"] in ttmon("db", "show", path, first["id"]))
    json.loads(ttmon("db", "schema"))
    data = read(path)
    with open(bench.path("cut.json"), "wb") as f:
        f.write(data[: len(data) // 2])
    ttmon("db", "check", bench.path("cut.json"), status=1)


def re_ok(text, allocs):
    return ": ok" in text and str(allocs) in text.replace(",", "")


@fast
@timeout(60)
def test_schema(bench):
    """Databases of different kinds against docs/ttmon-db.schema.json."""
    paths = []
    for i, (cmd, options) in enumerate(
        (
            (ledger(bench, 5000), []),
            ([standin("scen"), "errors"], ["--trace-only"]),
            ([standin("scen"), "maps"], []),
            ([standin("usdt")], []),
            (["/bin/true"], []),
            ([standin("scen"), "child"], ["--no-mmap"]),
        )
    ):
        bench.trace(cmd, *options)
        paths.append(bench.path(f"db{i}.json"))
        os.rename(bench.path("db.json"), paths[-1])
    done = subprocess.run(
        [sys.executable, os.path.join(TOP, "tests/e2e/check_schema.py"), *paths],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77:
        # Debian's package is for the system's own interpreter.
        done = subprocess.run(
            ["/usr/bin/python3", os.path.join(TOP, "tests/e2e/check_schema.py"), *paths],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 77:
        raise Skip("no python3-jsonschema")
    eq(done.stdout, done.returncode, 0)


def test_sigusr1_without_database(bench):
    target = bench.target(standin("scen"), "live", "2", wait_ready=False)
    target.line()
    daemon = bench.daemon("--pid", str(target.pid))
    daemon.proc.send_signal(signal.SIGUSR1)
    daemon.wait_line("dump-db")
    target.go()
    target.finish()
    daemon.wait(0)


def test_database_is_private(bench):
    """Command lines and addresses of other people's programs are in it."""
    bench.trace([standin("scen"), "copies"])
    eq("mode", oct(os.stat(bench.path("db.json")).st_mode & 0o077), oct(0))


def test_status_and_probes(bench):
    """The local socket: ttmon status and ttmon probes, while something is traced."""
    target = bench.target(standin("scen"), "live", "2", wait_ready=False)
    target.line()
    path = bench.path("sock")
    daemon = bench.daemon("--socket", path, "--pid", str(target.pid))
    time.sleep(0.3)
    status = json.loads(ttmon("status", "--json", "--socket", path))
    true(f"status: {status}", status)
    text = ttmon("probes", "-v", "--socket", path)
    for word in ("cudaHostAlloc", "cudaMemcpyAsync"):
        true(f"{word} is not in ttmon probes", word in text)
    sent = json.loads(ttmon("probes", "--json", "--socket", path))["objects"]
    shown = [line.split() for line in text.splitlines() if line.split()[0].isdigit() and "/" in line]
    eq(
        "ttmon probes",
        [(int(x[0]), int(x[1]), int(x[2]), int(x[3]), x[-2], x[-1]) for x in shown],
        [
            (
                sum(p["state"] == "attached" for p in o["probes"]),
                0,
                o["missing"],
                sum(p["single_step"] for p in o["probes"]),
                "before",
                o["path"],
            )
            for o in sent
        ],
    )
    eq("mode of the socket", oct(os.stat(path).st_mode & 0o777), oct(0o660))
    daemon.stop()
    true("the socket is left", not os.path.exists(path))
    target.go()
    target.finish()


def test_no_socket_by_default(bench):
    target = bench.target(standin("scen"), "live", "2", wait_ready=False)
    target.line()
    daemon = bench.daemon("--pid", str(target.pid))
    with open(f"/proc/{daemon.proc.pid}/net/unix", encoding="ascii") as f:
        sockets = f.read()
    true("ttmond listens", not any(line.endswith("/run/ttmond/ttmond.sock") for line in sockets.splitlines()))
    daemon.stop()
    target.go()
    target.finish()


def test_same_sites_in_another_run(bench):
    """Call sites are the same under ASLR: keys, sizes and ordinals of two runs match."""
    keys = []
    for _ in range(2):
        # A program of 12 ms may be gone before its mappings were read: its sites are then not told apart.
        out, db, _ = bench.trace([standin("scen"), "copies"], env={"SCEN_LINGER": "200"})
        book = last_json(out)
        whole(db)
        same_transfers(process(db, book["pid"]), book)
        sites = {s["id"]: s["key"] for s in db["sites"]}
        keys.append(
            [
                (sites[a["site"]], a["size"], a["ordinal"])
                for a in db["allocations"]
                if a["method"] in ("host_alloc", "device")
            ]
        )
    eq("keys of the second run", keys[1], keys[0])
    true("no call sites", all(key[0] != "0x" + "0" * 16 for key in keys[0]))


@timeout(60)
def test_limits(bench):
    """Past --max-events and --max-allocations the sums stay right, and the database says what is missing."""
    _, full, _ = bench.trace(ledger(bench, 20000), "--record", bench.path("x.rec"))
    for option, key in (("--max-events", "events_dropped"), ("--max-allocations", "evicted")):
        daemon = bench.daemon(
            "--quiet",
            "--replay",
            bench.path("x.rec"),
            "--dump-db",
            bench.path("small.json"),
            option,
            "1000",
            wait=False,
        )
        daemon.wait(0)
        db = load_db(bench.path("small.json"))
        eq(
            f"complete with {option}",
            (db["completeness"]["complete"], db["completeness"]["reasons"]),
            (False, ["limit"]),
        )
        true(f"{key} is 0", db["completeness"][key] > 0)
        true(
            f"{option} is not kept",
            len(db["allocations"]) <= 1000 or sum(len(a["events"]) for a in db["allocations"]) <= 1000,
        )
        for sums in ("pins", "allocs", "frees", "transfers"):
            eq(f"{sums} with {option}", db["summary"][sums], full["summary"][sums])


def test_stack_depth(bench):
    _, deep, _ = bench.trace([standin("scen"), "copies"])
    _, flat, _ = bench.trace([standin("scen"), "copies"], "--stack-depth", "1")
    frames = [max(len(s["frames"]) for s in db["sites"]) for db in (deep, flat)]
    true(f"deepest sites {frames}", frames[0] > 1 and frames[1] == 1)
