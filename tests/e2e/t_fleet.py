# SPDX-License-Identifier: GPL-2.0-only
"""docs/prometheus and docs/grafana, and a fleet: 20 daemons' recordings behind one real Prometheus."""
import contextlib
import glob
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter

from e2e import PATIENCE, TOP, TTMOND, Skip, eq, free_port, kernel, load_db, standin, timeout, true, tt_env

PROMETHEUS_DIR = os.path.join(TOP, "docs", "prometheus")
DASHBOARD = os.path.join(TOP, "docs", "grafana", "ttmon.json")
HOSTS = 20


def tool(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"no {name} (Debian package prometheus)")
    return path


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def promtool(*args, status=0, cwd=PROMETHEUS_DIR):
    done = subprocess.run([tool("promtool"), *args], capture_output=True, text=True, check=False, cwd=cwd)
    eq(f"status of promtool {' '.join(args)} ({(done.stdout + done.stderr)[-1500:]})", done.returncode, status)
    return done.stdout


# ---- files ----
@kernel(False)
def test_rules(bench):
    """promtool takes all of it, and each alert fires in its own test and nowhere else."""
    promtool("check", "rules", "ttmon.rules.yml", "ttmon.alerts.yml")
    promtool("check", "config", "prometheus.yml")
    promtool("test", "rules", "ttmon.alerts.test.yml")
    alerts = set(re.findall(r"^\s*- alert: (\w+)$", read(f"{PROMETHEUS_DIR}/ttmon.alerts.yml"), re.M))
    true("no alerts", len(alerts) > 15)
    eq(
        "alerts without a test that sees them fire",
        alerts - set(re.findall(r'alertname="(\w+)"', read(f"{PROMETHEUS_DIR}/ttmon.alerts.test.yml"))),
        set(),
    )
    # The test can fail: with one threshold out of reach it does.
    for name in os.listdir(PROMETHEUS_DIR):
        shutil.copy(f"{PROMETHEUS_DIR}/{name}", bench.dir)
    text = read(bench.path("ttmon.alerts.yml"))
    with open(bench.path("ttmon.alerts.yml"), "w", encoding="utf-8") as f:
        f.write(text.replace("> 0.95", "> 9.5"))
    promtool("test", "rules", "ttmon.alerts.test.yml", status=1, cwd=bench.dir)


def metrics_of_the_daemon():
    done = subprocess.run([TTMOND, "--help=metrics"], capture_output=True, text=True, check=True)
    types = dict(re.findall(r"^\\fB((?:ttmond|process)_\w+)\\fP.*\n.*\n\((\w+)", done.stdout, re.M))
    true(f"--help=metrics names {len(types)} metrics", len(types) > 50)
    names = set(types)
    for name, kind in types.items():
        if kind == "histogram":
            names |= {name + suffix for suffix in ("_bucket", "_sum", "_count")}
    return names


def panels():
    with open(DASHBOARD, encoding="utf-8") as f:
        return json.load(f)["panels"]


def expressions():
    """(title, expression) of the dashboard, its variables replaced."""
    for panel in panels():
        for target in panel.get("targets", []):
            expr = target["expr"].replace("$instance", ".*").replace("$__rate_interval", "10s")
            true(f"a variable is left in {expr}", "$" not in expr)
            yield panel["title"], expr


@kernel(False)
def test_names(_):
    """What rules and dashboard ask for is in the daemon's own table, and what they record is recorded."""
    names = metrics_of_the_daemon()
    rules = "".join(
        read(f"{PROMETHEUS_DIR}/{name}") for name in ("ttmon.rules.yml", "ttmon.alerts.yml", "ttmon.alerts.test.yml")
    )
    recorded = set(re.findall(r"^\s*- record: (\S+)$", rules, re.M))
    asked = "".join(expr + "\n" for _, expr in expressions()) + rules
    used = set(re.findall(r"(?<![\w:.])(?:\w+:)?(?:ttmond|process)_\w+(?::\w+)?", asked))
    used = {u for u in used if not u.endswith(("_", ":"))}
    true("nothing is asked for", len(used) > 40)
    eq("recorded names that no rule records", {u for u in used if ":" in u} - recorded, set())
    eq(
        "metrics that ttmond has not",
        {u for u in used if ":" not in u and u not in ("ttmond_files", "ttmond_dns")} - names,
        set(),
    )
    # The example that takes metrics away names metrics that are there.
    regex = re.search(r'regex: "(ttmond_[^"]+)"', read(f"{PROMETHEUS_DIR}/prometheus.yml")).group(1)
    eq("metrics that prometheus.yml drops", len([n for n in names if re.fullmatch(regex, n)]), 3)


def overlap(a, b):
    return (
        a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]
    )


@kernel(False)
def test_dashboard(bench):
    """
    JSON, unique ids, no panel over another, a title, a description and a unit each, and PromQL that
    promtool parses.
    """
    found = panels()
    eq("ids", len({p["id"] for p in found}), len(found))
    for i, a in enumerate(found):
        true(f"{a['title']}: outside", a["gridPos"]["x"] + a["gridPos"]["w"] <= 24)
        for b in found[i + 1 :]:
            true(f"{a['title']} and {b['title']} overlap", not overlap(a["gridPos"], b["gridPos"]))
        if a["type"] == "row":
            continue
        true(f"{a['title']}: no description", a["description"].endswith("."))
        defaults = a["fieldConfig"]["defaults"]
        units = (
            [defaults.get("unit")]
            if a["type"] != "table"
            else [p["value"] for o in a["fieldConfig"]["overrides"] for p in o["properties"]]
        )
        true(f"{a['title']}: no unit", units and all(units))
        eq(f"{a['title']}: letters of the queries", len({t["refId"] for t in a["targets"]}), len(a["targets"]))
        for target in a["targets"]:
            eq(f"{a['title']}: data source", target["datasource"]["uid"], "${datasource}")
    rules = [{"record": f"panel:x{i}", "expr": expr} for i, (_, expr) in enumerate(expressions())]
    true("no expressions", len(rules) > 30)
    path = bench.path("panels.yml")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"groups": [{"name": "panels", "rules": rules}]}, f)
    promtool("check", "rules", path)
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"groups": [{"name": "panels", "rules": rules + [{"record": "bad", "expr": "sum(("}]}]}, f)
    promtool("check", "rules", path, status=1)


# ---- a real Prometheus ----
def fetch(url):
    with urllib.request.urlopen(url, timeout=20 * PATIENCE) as reply:
        return reply.read()


class Prometheus:
    """Prometheus on these targets with the rules of docs/, in a folder of its own."""

    def __init__(self, bench, port, targets):
        self.url = f"http://127.0.0.1:{port}"
        with open(bench.path("targets.json"), "w", encoding="utf-8") as f:
            json.dump([{"targets": targets}], f)
        # JSON is YAML.
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": sorted(
                glob.glob(f"{PROMETHEUS_DIR}/ttmon.rules.yml") + glob.glob(f"{PROMETHEUS_DIR}/ttmon.alerts.yml")
            ),
            "scrape_configs": [{"job_name": "ttmond", "file_sd_configs": [{"files": [bench.path("targets.json")]}]}],
        }
        with open(bench.path("prometheus.yml"), "w", encoding="utf-8") as f:
            json.dump(config, f)
        with open(bench.path("prometheus.log"), "w", encoding="utf-8") as log:
            self.proc = subprocess.Popen(
                [
                    tool("prometheus"),
                    f"--config.file={bench.path('prometheus.yml')}",
                    f"--storage.tsdb.path={bench.path('tsdb')}",
                    f"--web.listen-address=127.0.0.1:{port}",
                    "--log.level=warn",
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        bench.procs.append(self.proc)
        self.log = bench.path("prometheus.log")

    def api(self, route, **args):
        try:
            return json.loads(fetch(f"{self.url}/api/v1/{route}?{urllib.parse.urlencode(args)}"))["data"]
        except urllib.error.HTTPError as err:
            if err.code == 503:
                raise  # it is still starting
            raise AssertionError(f"Prometheus refuses {route} {args}: {err.read()[:300]!r}") from None

    def query(self, expr):
        """[(labels, value)]"""
        return [(s["metric"], float(s["value"][1])) for s in self.api("query", query=expr)["result"]]

    def by(self, expr, *labels):
        return {tuple(m.get(name, "") for name in labels): v for m, v in self.query(expr)}

    def wait(self, what, expr, wanted, seconds=60):
        """Until the expression has this value."""
        end, got = time.monotonic() + seconds * PATIENCE, None
        while time.monotonic() < end:
            with contextlib.suppress(OSError, urllib.error.URLError):
                got = [v for _, v in self.query(expr)]
                if got == [wanted]:
                    return
            true(f"Prometheus has ended: {read(self.log)[-500:]}", self.proc.poll() is None)
            time.sleep(0.5)
        raise AssertionError(f"{what}: {got}, not {wanted}")

    def rules_are_well(self):
        rules = [r for g in self.api("rules")["groups"] for r in g["rules"]]
        true("no rules", len(rules) > 30)
        eq("rules with errors", [(r["name"], r.get("lastError")) for r in rules if r["health"] != "ok"], [])


# ---- the fleet ----
def record(bench, name, cmd, env=None):
    """A run with everything it said: (recording, database)."""
    rec, db = bench.path(f"{name}.rec"), bench.path(f"{name}.json")
    daemon = bench.daemon("--quiet", "--record", rec, "--dump-db", db, cmd=cmd, env=env, wait=False)
    daemon.wait(0)
    return rec, load_db(db)


def record_live(bench, name, pins):
    """One that ends while its program still holds pinned memory."""
    rec, db = bench.path(f"{name}.rec"), bench.path(f"{name}.json")
    target = bench.target(standin("scen"), "--wait", "live", str(pins))
    daemon = bench.daemon("--quiet", "--record", rec, "--dump-db", db, "--pid", str(target.pid))
    target.go()
    while target.line() != "waiting\n":
        pass
    time.sleep(0.5)
    daemon.stop(signal.SIGINT)
    target.go()
    target.finish()
    return rec, load_db(db)


def expected(db):
    """The figures of /metrics as the database has them."""
    transfers = {}
    for direction, mems in db["summary"]["transfers"].items():
        for mem, (count, moved) in mems.items():
            transfers["nvidia", direction, "none" if direction == "d2d" else mem] = (count, moved)
    return {
        "allocations": Counter(a["method"] for a in db["allocations"] if a["method"] != "mmap"),
        "transfers": transfers,
        "pinned": db["summary"]["pinned_bytes"],
        "peak": db["summary"]["pinned_peak_bytes"],
        "failed": db["summary"]["failed"],
        "groups": {p["comm"]: p["pinned_bytes"] for p in db["processes"] if p["pinned_bytes"]},
    }


def nonzero(values):
    return {k: v for k, v in values.items() if v}


def one_host(prom, instance, want):
    sel = f'{{instance="{instance}"}}'
    eq(
        f"{instance}: allocations",
        {m: v for (m,), v in nonzero(prom.by(f"ttmond_allocations_total{sel}", "method")).items()},
        dict(want["allocations"]),
    )
    for i, metric in enumerate(("ttmond_transfers_total", "ttmond_transfer_bytes_total")):
        got = nonzero(prom.by(metric + sel, "vendor", "direction", "host_memory"))
        eq(f"{instance}: {metric}", got, nonzero({k: v[i] for k, v in want["transfers"].items()}))
    eq(f"{instance}: pinned", prom.by(f"ttmond_host_pinned_bytes{sel}"), {(): want["pinned"]})
    eq(f"{instance}: peak", prom.by(f"ttmond_host_pinned_peak_bytes{sel}"), {(): want["peak"]})
    eq(f"{instance}: failed calls", prom.by(f"sum(ttmond_call_failures_total{sel}) or vector(0)"), {(): want["failed"]})


def totals(wants):
    """Of the whole fleet, as the recording rules name them."""
    allocations, transfers, moved = Counter(), Counter(), Counter()
    for want in wants:
        allocations.update(want["allocations"])
        transfers.update({k: v[0] for k, v in want["transfers"].items()})
        moved.update({k: v[1] for k, v in want["transfers"].items()})
    return dict(allocations), nonzero(transfers), nonzero(moved)


def the_fleet(prom, wants):
    allocations, transfers, moved = totals(wants)
    eq(
        "fleet: allocations",
        {m: v for (m,), v in nonzero(prom.by("fleet:ttmond_allocations:sum", "method")).items()},
        allocations,
    )
    eq(
        "fleet: transfers",
        nonzero(prom.by("fleet:ttmond_transfers:sum", "vendor", "direction", "host_memory")),
        transfers,
    )
    eq("fleet: bytes", nonzero(prom.by("fleet:ttmond_transfer_bytes:sum", "vendor", "direction", "host_memory")), moved)
    eq("fleet: pinned", prom.by("fleet:ttmond_pinned_bytes:sum"), {(): sum(w["pinned"] for w in wants)})
    eq("fleet: hosts", prom.by("fleet:ttmond_up:count"), {(): len(wants)})


def the_groups(prom, instances, wants):
    """Who holds pinned memory, the most first."""
    held = {(i, comm): n for i, want in zip(instances, wants) for comm, n in want["groups"].items()}
    true("nobody holds anything", held)
    eq(
        "groups with pinned memory",
        nonzero(prom.by("instance_group:ttmond_pinned_bytes:sum", "instance", "group")),
        held,
    )
    top = prom.query("topk(3, instance_group:ttmond_pinned_bytes:sum)")
    eq("the top three", sorted((v for _, v in top), reverse=True), sorted(held.values(), reverse=True)[:3])
    eq(
        "of all hosts",
        nonzero(prom.by("fleet_group:ttmond_pinned_bytes:sum", "group")),
        {(c,): sum(n for (_, k), n in held.items() if k == c) for _, c in held},
    )


# A replay has no probes and no budget, these recordings no CPUs, and they are over before a rate can be taken.
FLEET_HAS = {
    "Hosts",
    "Pinned memory",
    "Pinned memory by host",
    "Pinned memory by method",
    "Bytes moved",
    "Live memory",
    "Allocations",
    "Launches",
    "Memory of the daemon",
}
LIVE_HAS = FLEET_HAS | {
    "Host and device",
    "Failed calls",
    "Events lost",
    "Over budget",
    "Pageable share",
    "How long pinning takes",
    "Who has what",
    "CPU time",
    "Events",
    "CPU time not accounted for",
    "What it costs",
    "Behind",
    "Probes",
}


def dashboard_answers(prom, has):
    empty = []
    for title, expr in expressions():
        values = [v for _, v in prom.query(expr)]
        if title in has and not [v for v in values if not math.isnan(v)]:
            empty.append((title, expr))
    eq("panels without data", empty, [])
    eq("panels that this test names and the dashboard has not", has - {t for t, _ in expressions()}, set())


def settled(check, *args):
    """What it returns once it holds: a scrape that came too late leaves a gap, where the machine is slow."""
    end = time.monotonic() + 15 * PATIENCE
    while True:
        try:
            return check(*args)
        except AssertionError:
            if time.monotonic() > end:
                raise
        time.sleep(0.5)


@timeout(420)
def test_fleet(bench):
    """Host by host, group by group and in sum, Prometheus says exactly what the recordings hold."""
    tool("prometheus")
    ledger = [standin("ledger"), "--calls", "2000", "--out", bench.path("ledger.json")]
    sources = [
        record(bench, "a", [*ledger, "--seed", "1"]),
        record(bench, "b", [*ledger, "--seed", "2"]),
        record(
            bench,
            "tt",
            [standin("ttledger"), "--chips", "2", "--ops", "1000", "--threads", "2", "--quiet", "2"],
            tt_env("e2b"),
        ),
        record_live(bench, "live2", 2),
        record_live(bench, "live7", 7),
    ]
    ports = [free_port() for _ in range(HOSTS + 1)]
    instances = [f"127.0.0.1:{p}" for p in ports[1:]]
    chosen = [sources[i % len(sources)] for i in range(HOSTS)]
    for instance, (rec, _) in zip(instances, chosen):
        bench.daemon("--quiet", "--replay", rec, "--listen-address", instance, wait=False)
    prom = Prometheus(bench, ports[0], instances)
    prom.wait("hosts that answer", 'count(up{job="ttmond"} == 1)', HOSTS)
    wants = [expected(db) for _, db in chosen]
    prom.wait(
        "allocations of all", "sum(fleet:ttmond_allocations:sum)", sum(sum(w["allocations"].values()) for w in wants)
    )
    for instance, want in zip(instances, wants):
        settled(one_host, prom, instance, want)
    settled(the_fleet, prom, wants)
    settled(the_groups, prom, instances, wants)

    def peaks_of_chips(instance, db):
        chips = prom.by("max by (instance, chip, type) (ttmond_tt_memory_peak_bytes)", "instance", "chip", "type")
        peaks = {
            (instance, str(c["index"]), t): n
            for c in (db.get("tenstorrent") or {"chips": []})["chips"]
            for t, n in c["peak"].items()
            if n
        }
        eq(f"{instance}: memory of the chips", {k: v for k, v in nonzero(chips).items() if k[0] == instance}, peaks)

    for instance, (_, db) in zip(instances, chosen):
        settled(peaks_of_chips, instance, db)
    prom.rules_are_well()
    settled(dashboard_answers, prom, FLEET_HAS)
    eq(
        "alerts with a text that cannot be made",
        [a for a in prom.api("alerts")["alerts"] if "error expanding" in json.dumps(a)],
        [],
    )


@timeout(240)
def test_live(bench):
    """
    A service that traces: every panel about what it measures has figures, and no alert says that
    something is wrong with it.
    """
    tool("prometheus")
    ports = [free_port() for _ in range(2)]
    # Paced: as fast as a machine can, it would fill the history before the figures are looked at.
    ledger = f"{standin('ledger')} --calls 300 --out /dev/null >/dev/null"
    loop = f"echo ready $$; read x; while :; do {ledger}; sleep 0.1; done"
    target = bench.target("sh", "-c", loop)
    bench.daemon(
        "--socket",
        bench.path("sock"),
        "--listen-address",
        f"127.0.0.1:{ports[1]}",
        "--max-overhead",
        "90",
        "--shm-slots",
        "0",
        "--tt-shm-version",
        "off",
    )
    target.go()
    prom = Prometheus(bench, ports[0], [f"127.0.0.1:{ports[1]}"])
    prom.wait("it answers", 'count(up{job="ttmond"} == 1)', 1)
    settled(dashboard_answers, prom, LIVE_HAS)
    prom.rules_are_well()

    def firing():
        names = {a["labels"]["alertname"] for a in prom.api("alerts")["alerts"] if a["state"] == "firing"}
        true("the program's failed calls raise no alert", "TtmonPinFailures" in names)
        return names

    # Others may use this host: what does not fail by itself is looked at.
    eq("alerts", settled(firing) - {"TtmonPinFailures", "TtmondEventsLost", "TtmondSlotsDropped"}, set())
