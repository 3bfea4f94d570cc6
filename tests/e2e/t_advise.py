# SPDX-License-Identifier: GPL-2.0-only
"""
t_advise.py: `ttmon advise`: figures of made databases that were worked out by hand, the same of
traced programs, what it says and refuses, and live advice.
"""
import json
import os
import re
import signal
import subprocess
import time

from e2e import PATIENCE, STANDIN, TTMON, eq, kernel, standin, timeout, true, whole
from live_host import OWN, Program
from made_db import Maker, workload
from t_api import Service

# A byte from pinned memory saves half a ns, a page costs 1000 ns, a call nothing.
KERNEL = False
COST = (
    "--pageable-gbps",
    "1",
    "--pinned-gbps",
    "2",
    "--pinning-gbps",
    "4.096",
    "--pin-call-us",
    "0",
    "--unpin-call-us",
    "0",
)


def advise(bench, *args, status=0, env=None):
    done = subprocess.run(
        [TTMON, "advise", *args],
        cwd=bench.dir,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ, **(env or {})),
    )
    eq(f"exit status of {args} ({done.stderr.strip()})", done.returncode, status)
    return done


def figures(bench, *args, status=0):
    return json.loads(advise(bench, "--json", *args, status=status).stdout)


def is_(got, **wanted):
    eq("figures", {k: got[k] for k in wanted}, wanted)


def by_hand(exe="/usr/bin/train"):
    """
    As in unit/test_policy, a thousand times slower: A pays, B is never copied, D would cost more
    than it saves, C fits below A, E is never copied.
    """
    m = Maker(1.0)
    m.process(exe=exe)
    obj = m.object(exe)
    site = {
        name: m.site([(obj, 0x100 * i, f"alloc_{name}+0x12"), (obj, 0x9000, "main+0x5")])
        for i, name in enumerate("ABCDEM", 1)
    }
    m.alloc(site["A"], 8192, 0.1, 0.5, [(0.2, "h2d", 5000), (0.3, "h2d", 5000)])
    m.alloc(site["B"], 5000, 0.2, 0.6, method="registered")
    m.alloc(site["D"], 12288, 0.3, 0.4, [(0.35, "h2d", 2000)], method="custom")
    m.alloc(site["C"], 4096, 0.6, 0.9, [(0.7, "h2d", 1000)])
    m.alloc(site["E"], 8000, 0.7, 0.75)
    m.alloc(site["M"], 1 << 20, 0.0, None, [(0.7, "h2d", 4000)], method="mmap")
    return m


def test_figures(bench):
    """Each policy, by hand."""
    by_hand().write(bench.path("a.json.gz"))
    doc = figures(bench, *COST, "a.json.gz")
    eq(
        "cost",
        [doc["cost"][k]["bytes_per_s"] for k in ("pageable", "pinned", "pinning")],
        [10**9, 2 * 10**9, 4096 * 10**6],
    )
    eq("from", doc["cost"]["pinning"]["from"], "--pinning-gbps")
    (program,) = doc["programs"]
    eq("program", (program["exe"], program["advice_from"], len(program["runs"])), ("/usr/bin/train", "itself", 1))
    p = program["policies"]
    eq("policies", list(p), ["none", "all", "pytorch", "hindsight", "advice"])
    is_(p["none"], pins=0, peak_pages=0, moved_bytes=17000, moved_pinned_bytes=0, transfer_ns=17000, pinning_ns=0)
    is_(
        p["all"],
        pins=5,
        pages_pinned=10,
        peak_pages=7,
        mean_pages=2,
        requested_peak=25480,
        reserved_peak=25480,
        moved_pinned_bytes=13000,
        transfer_ns=10500,
        pinning_ns=10000,
    )
    is_(
        p["pytorch"],
        pins=4,
        pages_pinned=9,
        peak_pages=9,
        mean_pages=7,
        requested_peak=25480,
        reserved_peak=36864,
        transfer_ns=10500,
        pinning_ns=9000,
    )
    is_(
        p["hindsight"],
        pins=1,
        pages_pinned=2,
        peak_pages=2,
        least_pages=2,
        moved_pinned_bytes=11000,
        transfer_ns=11500,
        pinning_ns=2000,
    )
    is_(p["advice"], pins=1, peak_pages=2, moved_pinned_bytes=10000, transfer_ns=12000, pinning_ns=2000, unknown=0)
    eq("run", program["runs"][0]["policies"], p)
    sites = {s["call_site"].split("+")[0]: s for s in program["advice"]}
    eq(
        "advice",
        {name: s["advice"] for name, s in sites.items()},
        {"alloc_A": "keep", "alloc_B": "unpin", "alloc_C": "unpin", "alloc_D": "keep", "alloc_E": "unpin"},
    )
    is_(
        sites["alloc_A"],
        allocs=1,
        peak_pages=2,
        copies=2,
        moved_bytes=10000,
        saved_ns=5000,
        gain_ns=3000,
        match="exact",
        pinned=True,
        reason="pinned, and its transfers pay for that",
    )
    is_(
        sites["alloc_B"],
        saved_ns=0,
        gain_ns=2000,
        gain_low_ns=2000,
        gain_high_ns=2000,
        pinned=True,
        reason="pinned, and never copied",
    )
    is_(sites["alloc_C"], saved_ns=500, gain_ns=500, reason="pinned, and its transfers do not pay for that")
    is_(sites["alloc_D"], saved_ns=1000, gain_ns=-2000, pinned=False, reason="its transfers do not pay for pinning")


def test_text(bench):
    """The same for a person: within 80 columns, and the figures of the table are those."""
    by_hand().write(bench.path("a.json"))
    out = advise(bench, *COST, "a.json").stdout
    rows = {
        line[:16].strip(): line.split()[2:]
        for line in out.splitlines()
        if line.startswith(("pin ", "hindsight", "this advice"))
    }
    true(f"hindsight {rows['hindsight']}", len(rows) == 4)
    for pattern in (
        r"^PyTorch cache +4 +9 +36\.0 KiB +28\.0 KiB +1\.45 +4\.50 +19\.5 us$",
        r"^hindsight +1 +2 +8\.0 KiB +4\.0 KiB +1\.00 +1\.00 +13\.5 us$",
        r"^this advice +58\.8% +8\.0 KiB +12\.0 us +2\.0 us +0 ns +14\.0 us$",
        r"^  to pin memory +4\.10 GB/s  --pinning-gbps$",
        r"^  a call that pins +0\.0 us    --pin-call-us$",
        r"^KEEP$",
        r"^  alloc_A\+0x12 < main$",
        r"^    saves 3\.0 us$",
        r"^    pinned, and its transfers pay for that$",
        r"^UNPIN$",
    ):
        true(f"no {pattern} in\n{out}", re.search(pattern, out, re.M))
    true("it does not say what it was made of", "the run that it is tested on" in out)
    eq(
        "lines wider than 80 columns",
        [line for line in out.splitlines() if len(line) > 80 and not line.startswith("next: ")],
        [],
    )


def test_hostile_names(bench):
    """Names that a program chose do not reach the terminal as they are."""
    m = Maker(1.0)
    m.process(exe="/usr/bin/\x1b[2Jevil\n")
    site = m.site([(m.object("/x"), 16, "\x1b[31mred\x07" + "x" * 300 + "+0x12")])
    m.alloc(site, 1 << 20, 0.1, None, [(0.1 + i / 1000, "h2d", 1 << 20) for i in range(50)])
    m.alloc(0, 1 << 20, 0.1, None, method="custom", name="tag\x1b]0;title\x07")
    m.write(bench.path("a\x1b[1m.json"))
    out = advise(bench, "a\x1b[1m.json").stdout
    true(f"control characters in {out!r}", not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", out))
    eq("lines wider than 80 columns", [line for line in out.splitlines() if len(line) > 80], [])
    doc = figures(bench, "a\x1b[1m.json")
    eq("exe", doc["programs"][0]["exe"], "/usr/bin/\x1b[2Jevil\n")


def test_several_runs(bench):
    """Merged, each by itself, by what the others say, by --train; other programs apart."""
    for i in range(3):
        workload(n=200, seed=i + 1).write(bench.path(f"w{i}.json"))
    by_hand(exe="/usr/bin/other").write(bench.path("x.json"))
    doc = figures(bench, *COST, "w0.json", "x.json", "w1.json", "w2.json")
    eq(
        "programs",
        [(p["exe"], len(p["runs"]), p["advice_from"]) for p in doc["programs"]],
        [("/usr/bin/train", 3, "all"), ("/usr/bin/other", 1, "itself")],
    )
    train = doc["programs"][0]
    for name, total in train["policies"].items():
        runs = [r["policies"][name] for r in train["runs"]]
        for key in (
            "pins",
            "pages_pinned",
            "moved_bytes",
            "moved_pinned_bytes",
            "transfer_ns",
            "pinning_ns",
            "unknown",
        ):
            eq(f"{name} {key}", total[key], sum(r[key] for r in runs))
        eq(f"{name} peak", total["peak_pages"], max(r["peak_pages"] for r in runs))
    true(
        "no policy of others",
        "advice_of_others" in train["policies"] and "advice_of_others" not in doc["programs"][1]["policies"],
    )
    # Leaving one out is what training on the others is.
    trained = figures(bench, *COST, "--train", "w1.json", "-t", "w2.json", "w0.json")["programs"][0]
    eq("from", trained["advice_from"], "train")
    eq("of the others", trained["policies"]["advice"], train["runs"][0]["policies"]["advice_of_others"])
    out = advise(bench, *COST, "--runs", "w0.json", "w1.json", "x.json").stdout
    eq("programs", re.findall(r"^PROGRAM (\S+)", out, re.M), ["/usr/bin/train", "/usr/bin/other"])
    eq("runs", re.findall(r"^RUN (\S+),", out, re.M), ["w0.json", "w1.json"])
    eq("tables", len(re.findall(r"^POLICY .*PEAK PAGES", out, re.M)), 4)
    true("others are not named", "advice of others" in out)
    eq("lines wider than 80 columns", [line for line in out.splitlines() if len(line) > 80], [])
    # What is not known stays as it is; what is known less well can be left out of account.
    other = figures(bench, *COST, "--train", "x.json", "w0.json")["programs"][0]["policies"]["advice"]
    true(f"{other['unknown']} unknown of {other['allocs']}", other["unknown"] == other["allocs"] > 0)
    exact = figures(bench, *COST, "--min-match", "exact", "w0.json", "w1.json")["programs"][0]["policies"]
    names = figures(bench, *COST, "--min-match", "order", "w0.json", "w1.json")["programs"][0]["policies"]
    true("weaker matches count all the same", exact["advice"]["unknown"] > names["advice"]["unknown"])
    few = advise(bench, "--top", "1", "w0.json").stdout
    true(f"--top: {few}", re.search(r"^  and \d+ more, see --top$", few, re.M))


def test_torch_thresholds(bench):
    m = Maker(1.0)
    m.process()
    site = m.site([(m.object("/x"), 16, "f+0x1")])
    for i in range(3):
        m.alloc(site, 9 << 20, 0.1 + i * 0.2, 0.2 + i * 0.2)
    m.write(bench.path("a.json"))

    def pytorch(*args):
        p = figures(bench, *args, "a.json")["programs"][0]["policies"]["pytorch"]
        return p["pins"], p["peak_pages"] * 4096 >> 20

    eq("as it is", pytorch(), (1, 16))
    eq("not rounded", pytorch("--torch-round-max-mb", "8"), (1, 9))
    eq("not cached, hence not rounded", pytorch("--torch-cached-max-mb", "8"), (3, 9))
    eq("below both", pytorch("--torch-cached-max-mb", "16", "--torch-round-max-mb", "9"), (1, 16))


def test_cost_model(bench):
    """Where each rate comes from is said."""
    m = by_hand()
    m.alloc(1, 15 << 20, 0.1, 0.2, pin_ns=10_000_000)
    m.write(bench.path("a.json"))
    cost = figures(bench, "a.json")["cost"]
    eq("pageable", cost["pageable"], {"bytes_per_s": 6 * 10**9, "from": "default"})
    source = cost["pinning"]["from"]
    true(f"pinning {source}", source.startswith("databases: 1 of 5 pins, 15.0 MiB in 10.0 ms"))
    true(f"rate {cost['pinning']}", 1.5e9 < cost["pinning"]["bytes_per_s"] < 1.6e9)
    m.alloc(1, 15 << 30, 0.1, 0.2, pin_ns=1000)
    m.write(bench.path("b.json"))
    cost = figures(bench, "b.json")["cost"]["pinning"]
    eq("unbelievable", cost["bytes_per_s"], 1_500_000_000)
    true(f"from {cost}", cost["from"].startswith("default: "))
    cost = figures(bench, "a.json", "--measure", "--pinned-gbps", "30")["cost"]
    eq("an option counts more", cost["pinned"], {"bytes_per_s": 30 * 10**9, "from": "--pinned-gbps"})
    true(f"measured {cost}", cost["pageable"]["from"].startswith("measured: ") and cost["pageable"]["bytes_per_s"] > 0)
    if "no GPU" in cost["pageable"]["from"]:
        true("no warning", "not of transfers" in cost["warning"])
    # With a runtime that has a device: the stand-in.
    done = advise(bench, "--json", "--measure", "a.json", env={"LD_LIBRARY_PATH": os.path.join(STANDIN, "lib")})
    cost = json.loads(done.stdout)["cost"]
    eq(
        "with CUDA",
        [cost[k]["from"] for k in ("pageable", "pinned", "pinning")],
        ["measured: cudaMemcpy of 64 MiB", "measured: cudaMemcpy of 64 MiB", "measured: cudaHostAlloc of 64 MiB"],
    )


def test_incomplete_is_said(bench):
    m = by_hand()
    m.complete, m.lost, m.reasons = False, 5, ["lost"]
    m.write(bench.path("a.json"))
    done = advise(bench, "a.json", status=1)
    true(f"stderr {done.stderr}", re.match(r"ttmon: a\.json is incomplete \(lost\)", done.stderr))
    true("not in the text", "incomplete (lost)" in done.stdout)
    run = figures(bench, "a.json", status=1)["programs"][0]["runs"][0]
    eq("in JSON", (run["complete"], run["reasons"]), (False, "lost"))


def test_nothing_to_say(bench):
    m = Maker(1.0)
    m.process()
    m.write(bench.path("a.json"))
    out = advise(bench, "a.json").stdout
    true(out, "and none that could be pinned" in out)
    eq("program", figures(bench, "a.json")["programs"][0]["exe"], "?")


def test_refusals(bench):
    """One line each."""
    by_hand().write(bench.path("a.json"))
    with open(bench.path("no.json"), "w", encoding="utf-8") as f:
        f.write("{}")
    for args in (
        [],
        ["no.json"],
        ["a.json", "nothing"],
        ["--live", "a.json"],
        ["--pid", "1", "a.json"],
        ["--pinned-gbps", "0", "a.json"],
        ["--pinned-gbps", "nan", "a.json"],
        ["--pinning-gbps", "1x", "a.json"],
        ["--min-match", "all", "a.json"],
        ["--top", "-1", "a.json"],
        ["--torch-round-max-mb", "0", "a.json"],
        ["--train"],
        ["--no-such-option"],
        ["-x"],
        ["--live", "--socket", bench.path("no.sock")],
        ["--train", "no.json", "a.json"],
        ["a.json"] * 257,
    ):
        done = advise(bench, *args, status=2)
        eq(f"output of {args}", done.stdout, "")
        eq(f"lines of {args}: {done.stderr}", len(done.stderr.strip().splitlines()), 1)
        true(f"{args}: {done.stderr}", done.stderr.startswith("ttmon"))
    with open("/dev/full", "w", encoding="utf-8") as full:
        for args in (["a.json"], ["--json", "a.json"]):
            done = subprocess.run(
                [TTMON, "advise", *args], cwd=bench.dir, stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
            eq(f"onto a full disk ({done.stderr})", done.returncode, 2)


@kernel(True)
@timeout(120)
def test_traced(bench):
    """Of a program that was traced: what pinning everything costs is what ttmond counted."""
    out, db, _ = bench.trace([standin("work"), "offload", "--seed", "1"])
    whole(db)
    p = figures(bench, "--pinning-gbps", "1.5", "db.json")["programs"][0]["policies"]
    summary = db["summary"]
    eq("pins", p["all"]["pins"], summary["pins"])
    eq("peak", p["all"]["peak_pages"], summary["pinned_peak_pages"])
    eq(
        "bytes",
        p["all"]["moved_bytes"],
        sum(pair[1] for way in ("h2d", "d2h") for pair in summary["transfers"][way].values()),
    )
    eq(
        "all from pinned memory",
        p["all"]["moved_pinned_bytes"],
        sum(summary["transfers"][way]["pinned"][1] for way in ("h2d", "d2h")),
    )
    # The large cold cache is not pinned, what is sent is.
    eq("share", p["advice"]["moved_pinned_bytes"], p["all"]["moved_pinned_bytes"])
    true(
        f"{p['advice']['peak_pages']} pages, hindsight {p['hindsight']['peak_pages']}",
        p["advice"]["peak_pages"] <= 1.1 * p["hindsight"]["peak_pages"],
    )
    true(f"PyTorch {p['pytorch']['peak_pages']}", p["pytorch"]["peak_pages"] >= 3 * p["advice"]["peak_pages"])
    true(f"the book: {out}", out is not None)


class Live:
    def __init__(self, bench, service, *args):
        self.proc = subprocess.Popen(
            [TTMON, "advise", "--live", "--socket", service.sock, *args],
            stdout=open(bench.path("live.out"), "w", encoding="utf-8"),
            stderr=open(bench.path("live.err"), "w", encoding="utf-8"),
        )
        self.bench = bench
        bench.procs.append(self.proc)

    def read(self, name="live.out"):
        with open(self.bench.path(name), encoding="utf-8") as f:
            return f.read()

    def wait(self, pattern, name="live.out", count=1):
        end = time.monotonic() + 20 * PATIENCE
        while len(re.findall(pattern, self.read(name), re.M)) < count:
            true(f"no {pattern!r} in {self.read(name)!r}, {self.read('live.err')!r}", time.monotonic() < end)
            time.sleep(0.02)


@kernel(True)
@timeout(120)
def test_live(bench):
    """A readable line each, of this process alone, over a restart of the service; ended by SIGINT."""
    service = Service(bench, "--pin-after", "first", "--cold-after", "1", *OWN)
    program, other = Program(bench), Program(bench)
    live = Live(bench, service, "--pid", str(program.pid))
    for p in (other, program):
        p.do("dev")
        p.do("own hot 1048576")
        p.do("pin cold 65536")
    time.sleep(0.3)
    for p in (other, program):
        p.do("copy hot 2")
    who = rf"^\d\d:\d\d:\d\d\.\d\d\d {{}} +\S+\[{program.pid}\] \S.*: {{}}"
    live.wait(who.format("pin", r"1\.0 MiB custom, 1 copy, 1\.0 MiB.* \(\d+%\)$"))
    live.wait(who.format("unpin", r"64\.0 KiB host_alloc, never copied"))
    program.do("copy cold")
    live.wait(who.format("keep", "64.0 KiB"))
    service.daemon.stop()
    live.wait("^ttmon: the service is away, waiting for it$", "live.err")
    service = Service(bench, "--pin-after", "first", *OWN)
    program.do("own again 4096")
    time.sleep(0.3)
    program.do("copy again")
    live.wait("^ttmon: the service was restarted$", "live.err")
    live.wait(who.format("pin", r"4\.0 KiB custom, 1 copy, 4\.0 KiB"))
    true(f"lines of another process: {live.read()}", f"[{other.pid}]" not in live.read())
    live.proc.send_signal(signal.SIGINT)
    eq("exit status", live.proc.wait(10 * PATIENCE), 0)
    eq("lines on stderr", len(live.read("live.err").splitlines()), 2)
    # As they came.
    raw = Live(bench, service, "--json")
    raw.wait('"advice"')
    raw.proc.send_signal(signal.SIGTERM)
    eq("exit status", raw.proc.wait(10 * PATIENCE), 0)
    lines = [json.loads(line) for line in raw.read().splitlines()]
    eq("first line", lines[0]["head"], True)
    true("no advice", any(line.get("advice") == "pin" for line in lines))
    service.daemon.stop()
    service = Service(bench, "--trace-only")
    refused = subprocess.run(
        [TTMON, "advise", "--live", "--socket", service.sock], capture_output=True, text=True, check=False
    )
    eq(f"trace only: {refused.stderr}", (refused.returncode, len(refused.stderr.splitlines())), (2, 1))
