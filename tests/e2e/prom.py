# SPDX-License-Identifier: GPL-2.0-only
"""
prom.py: reading metrics: a strict parser of both text formats, written from their specifications;
promtool; a real Prometheus.
"""
import calendar
import http.client
import json
import re
import shutil
import subprocess
import time
import urllib.parse

from e2e import PATIENCE, TTMOND, Skip, eq, free_port, true
from tt_host import Unix

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
CONTENT = {
    False: "text/plain; version=0.0.4; charset=utf-8",
    True: "application/openmetrics-text; version=1.0.0; charset=utf-8",
}
SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? ([0-9.]+)")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
UNESCAPE = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def need(*programs):
    for p in programs:
        if not shutil.which(p):
            raise Skip(f"no {p} (Debian package prometheus)")


def get(where, path="/metrics", accept=None):
    """where: a port or the path of a socket. (headers, body)"""
    conn = (
        Unix(where) if isinstance(where, str) else http.client.HTTPConnection("127.0.0.1", where, timeout=20 * PATIENCE)
    )
    conn.request("GET", path, headers={"Accept": accept} if accept else {})
    reply = conn.getresponse()
    body = reply.read()
    eq(f"GET {path} ({body[:200]!r})", reply.status, 200)
    conn.close()
    return dict(reply.getheaders()), body


class Metric:
    def __init__(self, name, kind, help_text, unit=""):
        self.name, self.type, self.help, self.unit = name, kind, help_text, unit
        self.samples = {}  # (sample name, ((label, value), ...)): text of the number


def parse_labels(text):
    found, at = [], 0
    while at < len(text):
        m = LABEL.match(text, at)
        true(f"labels {text!r} at {at}", m)
        found.append((m.group(1), re.sub(r"\\.", lambda e: UNESCAPE[e.group()], m.group(2))))
        at = m.end()
    true(f"a label twice in {text!r}", len({k for k, _ in found}) == len(found))
    return tuple(found)


def suffixes(metric, openmetrics):
    if metric.type == "histogram":
        return ("_bucket", "_sum", "_count")
    return {"counter": ("_total",), "info": ("_info",)}.get(metric.type, ("",)) if openmetrics else ("",)


def parse(body, openmetrics=False):
    """
    {name of the metric: Metric}, or an AssertionError. Stricter than either format: HELP and TYPE
    are there, in this order.
    """
    text = body.decode("utf-8")
    true("no line break at the end", text.endswith("\n"))
    lines = text[:-1].split("\n")
    if openmetrics:
        eq("the last line", lines.pop(), "# EOF")
    metrics, now = {}, None
    while lines:
        line = lines.pop(0)
        if line.startswith("# HELP "):
            name, help_text = line[7:].split(" ", 1)
            true(f"{name} is there twice", name not in metrics)
            kind = lines.pop(0).split(" ")
            eq(f"after HELP of {name}", kind[:3], ["#", "TYPE", name])
            true(f"type {kind[3]}", kind[3] in ("counter", "gauge", "histogram") + (("info",) if openmetrics else ()))
            now = metrics[name] = Metric(name, kind[3], help_text)
            if openmetrics and lines[0].startswith("# UNIT "):
                eq("UNIT", lines[0].split(" ")[2], name)
                now.unit = lines.pop(0).split(" ")[3]
                true(f"{name} does not end in its unit {now.unit}", name.endswith("_" + now.unit))
            if openmetrics:
                true(f"metric {name}", not name.endswith(("_total", "_info")))
            else:
                eq(f"_total of {name}", name.endswith("_total"), kind[3] == "counter")
            continue
        m = SAMPLE.fullmatch(line)
        true(f"line {line!r}", m and now)
        true(f"{line!r} below {now.name}", m.group(1) in [now.name + s for s in suffixes(now, openmetrics)])
        key = m.group(1), parse_labels(m.group(2) or "")
        true(f"a series twice: {line}", key not in now.samples)
        true(f"number {m.group(3)}", re.fullmatch(r"(0|[1-9]\d*)(\.\d*[1-9])?", m.group(3)))
        now.samples[key] = m.group(3)
    for metric in metrics.values():
        true(f"{metric.name} has no sample", metric.samples)
        if metric.type == "histogram":
            check_histogram(metric)
    return metrics


def check_histogram(metric):
    rows = {}
    for (name, labels), value in metric.samples.items():
        rest = tuple(x for x in labels if x[0] != "le")
        row = rows.setdefault(rest, {"buckets": []})
        if name.endswith("_bucket"):
            row["buckets"].append((labels[-1][1], int(value)))
        else:
            row[name[len(metric.name) :]] = value
    for labels, row in rows.items():
        bounds = [float(b) for b, _ in row["buckets"]]
        counts = [n for _, n in row["buckets"]]
        eq(f"bounds of {metric.name}", bounds, sorted(set(bounds)))
        eq(f"buckets of {metric.name}{labels} only grow", counts, sorted(counts))
        eq("the last bound", row["buckets"][-1][0], "+Inf")
        eq("_count", int(row["_count"]), counts[-1])
        true("_sum", "_sum" in row)


class Page:
    """One scrape, parsed."""

    def __init__(self, where, openmetrics=False):
        headers, self.body = get(where, accept=OPENMETRICS if openmetrics else None)
        eq("Content-Type", headers["Content-Type"], CONTENT[openmetrics])
        self.metrics = parse(self.body, openmetrics)
        self.series = {k: v for m in self.metrics.values() for k, v in m.samples.items()}

    def values(self, name, **labels):
        """{all labels: number} of the series of this name that have these labels."""
        return {
            k[1]: float(v) if "." in v else int(v)
            for k, v in self.series.items()
            if k[0] == name and labels.items() <= dict(k[1]).items()
        }

    def value(self, name, **labels):
        found = self.values(name, **labels)
        eq(f"series {name}{labels}", len(found), 1)
        return next(iter(found.values()))

    def names(self, name, label):
        """Values that a label has in the series of this name."""
        return {dict(k)[label] for k in self.values(name)}


def table():
    """{name: (type, labels)} as ttmond itself tells it."""
    text = subprocess.run([TTMOND, "--help=metrics"], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^\\fB(\w+)\\fP(?: \{(.*)\})?\n(.*)\n\((\w+)(?:, \w+)?(?:; needs .*)?\)$", text, re.M)
    return {
        name: (kind, labels.replace("\\fIGROUP\\fP", "GROUP").split(", ") if labels else [])
        for name, labels, _, kind in rows
    }


def promtool(body):
    need("promtool")
    done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, check=False)
    eq("what promtool says", (done.returncode, done.stdout, done.stderr), (0, b"", b""))


class Prometheus:
    """The real server, scraping these ports each second."""

    def __init__(self, bench, ports, interval="1s"):
        need("prometheus")
        self.port = free_port()
        config = bench.path("prometheus.yml")
        targets = ", ".join(f"'127.0.0.1:{p}'" for p in ports)
        with open(config, "w", encoding="utf-8") as f:
            f.write(
                f"global: {{scrape_interval: {interval}, scrape_timeout: {interval}}}\n"
                "scrape_configs:\n- job_name: ttmond\n"
                f"  static_configs:\n  - targets: [{targets}]\n"
            )
        self.log = open(bench.path("prometheus.log"), "w+", encoding="utf-8")
        self.proc = subprocess.Popen(
            [
                "prometheus",
                "--config.file",
                config,
                "--storage.tsdb.path",
                bench.path("tsdb"),
                "--web.listen-address",
                f"127.0.0.1:{self.port}",
                "--log.level",
                "warn",
            ],
            stdout=self.log,
            stderr=self.log,
            cwd=bench.dir,
        )
        bench.procs.append(self.proc)
        end = time.monotonic() + 30 * PATIENCE
        while True:
            try:
                get(self.port, "/-/ready")
                return
            except (OSError, AssertionError):
                true(f"Prometheus does not start: {self.logged()}", time.monotonic() < end and self.proc.poll() is None)
                time.sleep(0.1)

    def logged(self):
        with open(self.log.name, encoding="utf-8") as f:
            return f.read()[-1000:]

    def ask(self, path, **args):
        doc = json.loads(get(self.port, f"/api/v1/{path}?{urllib.parse.urlencode(args)}")[1])
        eq(f"{path} {args}", doc["status"], "success")
        return doc["data"]

    def query(self, expr):
        """{labels without those that Prometheus adds: number}"""
        rows = self.ask("query", query=expr)["result"]
        return {
            tuple(sorted((k, v) for k, v in r["metric"].items() if k not in ("job", "instance", "__name__"))): float(
                r["value"][1]
            )
            for r in rows
        }

    def scraped(self, after, seconds=20):
        """Wait for a good scrape of every target that began after this time (time.time())."""
        end = time.monotonic() + seconds * PATIENCE
        while True:
            targets = self.ask("targets", state="active")["activeTargets"]
            bad = [t["lastError"] for t in targets if t["health"] == "down"]
            true(f"Prometheus cannot scrape: {bad}", not bad)
            if targets and all(t["health"] == "up" and when(t["lastScrape"]) > after for t in targets):
                return targets
            true("Prometheus does not scrape", time.monotonic() < end)
            time.sleep(0.1)


def when(text):
    """RFC 3339 with nanoseconds, UTC or an offset, as seconds since the epoch."""
    m = re.fullmatch(r"(.{19})(\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    base = time.strptime(m.group(1), "%Y-%m-%dT%H:%M:%S")
    offset = 0
    if m.group(3) != "Z":
        offset = int(m.group(3)[:3]) * 3600 + int(m.group(3)[0] + m.group(3)[4:]) * 60
    return calendar.timegm(base) + float(m.group(2) or 0) - offset


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))
