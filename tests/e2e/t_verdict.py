# SPDX-License-Identifier: GPL-2.0-only
"""
One verdict: every view says the same of the same memory: the summary, the database, db show,
advise, heat, the page, the service and libttmon.
"""
import base64
import gzip
import json
import os
import re
import subprocess
import time

from e2e import OUT, PATIENCE, TTMON, eq, standin, timeout, true, whole
from live_host import OWN, Program
from t_api import Service
from tt_host import retry, wait_probed

ADVICE = ("keep", "pin", "unpin", "allocate pinned", "unknown")
GAIN = r"(saves|would lose) ([\d.]+) (ns|us|ms|s)|-"


def text_of(ns):
    """As lib/base/fmt says it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{abs(ns) / size:.1f} {unit}"
    return f"{abs(ns)} ns"


def said(gain):
    return "-" if not gain else ("saves " if gain > 0 else "would lose ") + text_of(gain)


def run(*args):
    done = subprocess.run([TTMON, *args], capture_output=True, text=True, check=False, timeout=120 * PATIENCE)
    true(f"{args}: {done.stderr}", done.returncode in (0, 1))
    return done.stdout


def function(frames):
    """The program's own function: not the one that all memory comes from."""
    names = [f.split("+")[0] for f in frames if f]
    return next((n for n in names if n not in ("pin_tensor", "my_alloc")), names[0] if names else None)


def of_database(db):
    """{(function, method): (advice, gain, reason)}"""
    rows = {}
    for a in db["advice"]:
        frames = [f[2] for f in db["sites"][a["site"]]["frames"]]
        key = function(frames), a["method"]
        if key in rows:  # another call in the same function: looked at no further
            rows[key] = None
            continue
        rows[key] = a["advice"], a["gain_ns"], a["reason"]
        true(f"{a}: range", a["gain_ns"] is None or a["gain_low_ns"] <= a["gain_ns"] <= a["gain_high_ns"])
    return {key: v for key, v in rows.items() if v}


def of_advise(path):
    """By function, as the method is not in it."""
    doc = json.loads(run("advise", "--json", path))
    return {
        function(s["call_site"].split(" < ")): (s["advice"], s["gain_ns"], s["reason"])
        for s in doc["programs"][0]["advice"]
    }


def of_heat(path):
    rows = json.loads(run("heat", "--json", "-n", "0", path))["rows"]
    found = {}
    for r in rows:
        if r["advice"] is None:
            continue
        found.setdefault((function(r["call_site"].split(" < ")), r["method"]), set()).add(
            (r["advice"], r["gain_ns"], r["reason"])
        )
    for key, verdicts in found.items():
        eq(f"verdicts of {key} in heat", len(verdicts), 1)
    return {key: verdicts.pop() for key, verdicts in found.items()}


def part_of(page, name):
    text = re.search(rf'id="{name}"[^>]*>([^<]*)<', page).group(1)
    data = base64.b64decode(text)
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def of_page(bench, path):
    run("view", "--plain", "-o", bench.path("page.html"), path)
    with open(bench.path("page.html"), encoding="utf-8") as f:
        meta = part_of(f.read(), "meta")
    eq("words", tuple(meta["advice_words"]), ADVICE)
    found = {}
    for site, method, advice, gain, reason in zip(
        meta["site"], meta["method"], meta["verdict"], meta["gain"], meta["reason"]
    ):
        frames = meta["sites"][site][1].split(" < ")
        found.setdefault((function(frames), meta["methods"][method][0]), set()).add(
            (ADVICE[advice], gain, meta["advice_reasons"][reason])
        )
    return {key: verdicts.pop() for key, verdicts in found.items() if len(verdicts) == 1}


def of_show(path):
    """What `db show` says is to be changed: {function: (advice, text, reason)}"""
    found = {}
    for m in re.finditer(
        rf"^  ({'|'.join(ADVICE)}) +({GAIN}) +\d\.\d\d  .*\n        (.*)\n        (.*)$", run("db", "show", path), re.M
    ):
        found[function(m[6].split(" < "))] = m[1], m[2], m[7]
    return found


def of_summary(text):
    """The five hottest and the five coldest: {function: (advice, text, reason)}"""
    found = {}
    for m in re.finditer(rf"^({'|'.join(ADVICE)}) +({GAIN}) +\S+ \S+ +[\d,]+  \w+\n  (.*)\n  (.*)\n", text, re.M):
        found[function(m[6].split(" < "))] = m[1], m[2], m[7]
    return found


def compare(what, got, wanted, need=1):
    common = set(got) & set(wanted)
    true(f"{what} has {sorted(map(str, got))}, the database {sorted(map(str, wanted))}", len(common) >= need)
    for key in common:
        eq(f"{what} of {key}", got[key], wanted[key])


def all_views(bench, name, want, *args):
    _, db, daemon = bench.trace([standin("work"), name, *args])
    whole(db)
    path = bench.path("db.json")
    rows = of_database(db)
    for key, advice in want.items():
        eq(f"verdict of {key}", [v[0] for (f, _), v in rows.items() if f == key], [advice])
    by_function = {f: v for (f, _), v in rows.items()}
    n = len(want)
    compare("advise", of_advise(path), by_function, n)
    compare("heat", of_heat(path), rows, n)
    # A gain that means nothing is 0 in the page.
    compare("the page", of_page(bench, path), {k: (a, g or 0, r) for k, (a, g, r) in rows.items()}, n)
    texts = {f: (a, said(g), r) for f, (a, g, r) in by_function.items()}
    changed = sum(a not in ("keep",) for a in want.values())
    compare("db show", of_show(path), texts, min(changed, 5))
    compare("the summary", of_summary(daemon.stdout() + daemon.stderr()), texts, min(changed, 1))


@timeout(120)
def test_offload(bench):
    """Gradients come back from the device, parameters go to it, and the optimizer's own is never copied."""
    all_views(bench, "offload", {"pin_gradient": "keep", "pin_fp16": "keep"}, "--step-us", "100")


@timeout(120)
def test_churn(bench):
    """Many short ones: of several sizes, most of them never copied."""
    all_views(
        bench,
        "churn",
        {"pin_image": "keep", "pin_masks": "unpin", "pin_boxes": "unpin", "pin_classes": "unpin"},
        "--step-us",
        "100",
    )


@timeout(120)
def test_blocks(bench):
    """One call site, hot and cold: one verdict for all of it."""
    all_views(bench, "blocks", {"pin_block": "keep"}, "--step-us", "100")


def lines_of(service, path):
    status, _, body = service.ask(path)
    eq(path, status, 200)
    return [json.loads(line) for line in body.decode().splitlines()]


@timeout(120)
def test_service(bench):
    """The running service: advice, hot spots, live advice and heat of one program say the same."""
    service = Service(bench, "--pin-after", "gain", "--cold-after", "1", *OWN)
    program = Program(bench)
    wait_probed(service.sock, program.pid)
    program.do("dev")
    program.do("own hot 4194304")
    program.do("pin cold 8388608")
    program.do("pin warm 2097152")
    program.do("copy hot 40")
    program.do("copy warm 40")
    end, live = time.monotonic() + 20 * PATIENCE, {}
    while set(live) != {4194304, 8388608} and time.monotonic() < end:
        live = {line["size"]: line for line in lines_of(service, f"/v1/advice/live?pid={program.pid}") if "seq" in line}
        time.sleep(0.1)
    eq("live advice", {size: line["advice"] for size, line in live.items()}, {4194304: "pin", 8388608: "unpin"})
    keys = ("advice", "gain_ns", "gain_low_ns", "gain_high_ns", "reason", "copies", "copied")

    def same():
        """
        What a pin costs is measured of the whole host: where others pin, it may be another price by
        the next question.
        """
        rows = {(r["method"], r["advice"]): r for r in lines_of(service, "/v1/advice") if r["pid"] == program.pid}
        eq("advice", sorted(rows), [("custom", "pin"), ("host_alloc", "keep")])
        hot = rows["custom", "pin"]
        eq("the reason in live advice", live[4194304]["reason"], hot["reason"])
        spots = service.get("/v1/hotspots")
        spot = next(s for s in spots["spots"] if s["pid"] == program.pid)
        eq("hot spot", {k: spot[k] for k in keys}, {k: hot[k] for k in keys})
        rows = json.loads(run("heat", "--json", "-n", "0", "-p", str(program.pid), "-s", service.sock))["rows"]
        eq(
            "heat of what is hot",
            {(r["advice"], r["gain_ns"], r["reason"]) for r in rows if r["method"] == "custom"},
            {(hot["advice"], hot["gain_ns"], hot["reason"])},
        )
        return spots

    spots = retry(5, same)
    # The note's list: live allocations by how often they were moved, pinned ones too.
    eq(
        "hottest allocations",
        sorted((a["pinned"], a["copies"], a["copied"]) for a in spots["allocations"] if a["pid"] == program.pid),
        [(False, 40, 40 * 4194304), (True, 40, 40 * 2097152)],
    )


def advice_of(service, program):
    return [r for r in lines_of(service, "/v1/advice") if r["pid"] == program.pid]


def key_of(row):
    """The call site's key, from the allocation's name: `site` is an index that holds for one answer only."""
    return row["allocation"].split(":")[0]


@timeout(120)
def test_just_allocated(bench):
    """
    Memory that is milliseconds old has its call site in everything that is asked for, and the
    verdict of the rest of it.
    """
    service = Service(bench, *OWN)
    program = Program(bench)
    program.probed(service)
    program.do("dev")
    program.do("pin hot 4194304")
    program.do("copy hot 100")
    # The call's stack is known from then on, also where the interpreter was built without frame pointers.
    retry(
        10, lambda: true("no site", all(r["site"] for r in lines_of(service, "/v1/advice") if r["pid"] == program.pid))
    )
    site, end = None, time.monotonic() + 20 * PATIENCE
    for i in range(1, 6):
        program.do(f"pin young{i} 4096")
        seen = 0
        while seen <= i:
            true(f"{i + 1} allocations are not seen", time.monotonic() < end)
            rows = [
                r for r in lines_of(service, "/v1/advice") if r["pid"] == program.pid and r["method"] == "host_alloc"
            ]
            seen = sum(r["allocs"] for r in rows)
            # A stack that is still being unwound: for these milliseconds its call site is not known, and that is said.
            young = [r for r in rows if r["advice"] == "unknown" and not r["site"]]
            rows = [r for r in rows if r not in young]
            eq(
                f"verdicts on {seen} allocations of one call site",
                [(r["advice"], site in (None, key_of(r))) for r in rows],
                [("keep", True)],
            )
            true(f"{rows}: no site", rows[0]["site"])
            site = key_of(rows[0])
        retry(10, lambda: true("no site", all(r["site"] for r in advice_of(service, program))))
    program.do("pin last 4096")
    mine = []
    while len(mine) < 7:
        true("the last allocation is not seen", time.monotonic() < end)
        db = service.get("/v1/db")
        mine = [a for a in db["allocations"] if a["pid"] == program.pid and a["method"] == "host_alloc"]
        keys = {db["sites"][a["site"]]["key"] for a in mine if a["site"]}
        eq("call sites in a database that is asked for", keys, {f"0x{site}"})


@timeout(120)
def test_libttmon(bench):
    """What an allocator is told is what the views say: pinned the next time, or not, and what that is worth."""
    _, db, _ = bench.trace([standin("work"), "churn", "--step-us", "100"])
    path = bench.path("db.json")
    rows = of_database(db)
    stats = bench.path("stats.json")
    subprocess.run(
        [standin("work"), "churn", "--step-us", "0"],
        check=True,
        timeout=60 * PATIENCE,
        env=dict(
            os.environ,
            LD_PRELOAD=f"{OUT}/libttmon/libttmon-pin.so",
            TTMON_PIN_DB=path,
            TTMON_PIN_SITES="all",
            TTMON_PIN_STATS=stats,
        ),
    )
    with open(stats, encoding="utf-8") as f:
        done = json.load(f)["done"]
    kept = sum(v[0] == "keep" for v in rows.values())
    eq("sites that stay pinned", kept, 1)
    eq("pageable, as the three that are to be unpinned", done["pageable"][0], 6000)
