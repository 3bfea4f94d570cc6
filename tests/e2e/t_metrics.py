# SPDX-License-Identifier: GPL-2.0-only
"""/metrics: both formats by their rules, every metric of the table, the right values in a real
Prometheus, bounded by top-N, dead series gone.

Whatever has to be exact is asked of a daemon with targets: other programs of this machine may use
the libraries at the same time.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from e2e import SLOW, TOP, alone, eq, fast, free_port, last_json, standin, timeout, true
from prom import Page, Prometheus, need, parse, get, promtool, rss_kib, table
from tt_host import Host, Unix, api, retry, wait_probed

# Shown with --nvidia-pins alone (tests/vm/g_nvpin.py).
NVIDIA = {
    f"ttmond_nvidia_driver_{what}"
    for what in ("calls_total", "returns_total", "failures_total", "pages_total", "bytes_total")
}
# Shown only where the host measures it.
RDT = {
    "ttmond_group_llc_occupancy_bytes",
    "ttmond_group_memory_traffic_bytes_total",
    "ttmond_memory_traffic_bytes_total",
    "ttmond_rmid_readings_total",
}
PAGE = os.sysconf("SC_PAGESIZE")
PINNED = ("host_alloc", "registered", "pool")


def error_names():
    """Of the stand-in's own header."""
    with open(os.path.join(TOP, "tests/standin/cuda_api.h"), encoding="utf-8") as f:
        names = {int(n): name for name, n in re.findall(r"(cudaError\w+) = (\d+)", f.read())}
    return names | {4: "cudaErrorCudartUnloading"}


def named(bench, program, name):
    """A program of the stand-in under a name that nobody else on this machine has."""
    if not os.path.islink(bench.path("lib")):
        os.symlink(standin("lib"), bench.path("lib"))
    shutil.copy(standin(program), bench.path(name))
    return bench.path(name)


class Served:
    """A daemon that serves its metrics on the loopback address and on a socket."""

    def __init__(self, bench, *args, env=None):
        self.port, self.sock = free_port(), bench.path("sock")
        self.daemon = bench.daemon(
            "--socket",
            self.sock,
            "--listen-address",
            f"127.0.0.1:{self.port}",
            "--shm-slots",
            "0",
            "--tt-shm-version",
            "off",
            "-q",
            *args,
            env=env,
        )

    def page(self, openmetrics=False):
        return Page(self.port, openmetrics)


class Traced(Served):
    """One with targets that are told to go later; a keeper that does nothing keeps it alive when they have ended."""

    def __init__(self, bench, *cmds, args=(), env=None):
        self.keeper = bench.target(standin("scen"), "--wait", "live", "1")
        self.targets = [bench.target(*cmd, env=env) for cmd in cmds]
        super().__init__(
            bench, "--pid", str(self.keeper.pid), *(x for t in self.targets for x in ("--pid", str(t.pid))), *args
        )


def in_table(page, rows, by="comm"):
    """Everything that is served stands in the table, with its type and labels. Returns what is not served."""
    for metric in page.metrics.values():
        true(f"{metric.name} is not in the table", metric.name in rows)
        kind, labels = rows[metric.name]
        eq(f"type of {metric.name}", metric.type, "gauge" if kind == "info" else kind)
        labels = [by if x == "GROUP" else x for x in labels]
        for _, found in metric.samples:
            eq(f"labels of {metric.name}", [k for k, _ in found if k != "le"], labels)
    return set(rows) - set(page.metrics)


@alone("programs of other tests would add series between two scrapes")
@timeout(60)
def test_quiet(bench):
    """
    A daemon that has seen nothing: promtool has nothing to say, both formats have the same series,
    on both ways in.
    """
    served = Served(bench, "--max-overhead", "2")
    time.sleep(0.3)
    page, again = served.page(), served.page(True)
    promtool(page.body)
    in_table(page, table())
    names = {re.sub(r"_(total|info)$", "", n) for n in page.metrics}
    eq("metrics of the two formats", names ^ set(again.metrics), set())
    # New programs may have come in between.
    stable = {k for k in page.series if not k[0].startswith("ttmond_group")}
    eq("series of the two formats", stable ^ {k for k in again.series if not k[0].startswith("ttmond_group")}, set())
    parse(get(served.sock)[1])
    gzipped = subprocess.run(
        ["curl", "-sS", "--compressed", "--unix-socket", served.sock, "http://ttmond/metrics"],
        capture_output=True,
        check=True,
    ).stdout
    parse(gzipped)
    requests = "ttmond_http_requests_total"
    # Two by TCP and two by the socket since the first, which did not count itself yet.
    eq("requests", served.page().value(requests) - page.value(requests), 4)
    eq("budget", page.value("ttmond_overhead_budget_ratio"), 0.02)
    eq("missing time", page.value("ttmond_cpu_seconds_total", **{"class": "missing"}), 0)
    eq(
        "probe families",
        page.names("ttmond_family_state", "family") & {"alloc", "transfer", "cpu"},
        {"alloc", "transfer", "cpu"},
    )
    for family in page.names("ttmond_family_state", "family"):
        eq(f"states of {family}", sum(page.values("ttmond_family_state", family=family).values()), 1)
    with open(f"/proc/{served.daemon.proc.pid}/stat", encoding="ascii") as f:
        start = int(f.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    with open("/proc/uptime", encoding="ascii") as f:
        booted = time.time() - float(f.read().split()[0])
    true("start time", abs(page.value("process_start_time_seconds") - booted - start) < 1)
    true("memory", 1e6 < page.value("process_resident_memory_bytes") < page.value("process_virtual_memory_bytes"))
    true("files", 5 < page.value("process_open_fds") < page.value("process_max_fds"))


@alone("while a program of another test is new, its chips' memory is not known")
@timeout(90)
def test_every_metric(bench):
    """All that the table names is served by a daemon that sees it all, and promtool has nothing to say."""
    host = Host(bench, "n300")
    host.socket, port = bench.path("sock"), free_port()
    roots = [
        "--sysfs-root",
        os.path.join(host.root, "sys"),
        "--proc-root",
        os.path.join(host.root, "proc"),
        "--shm-root",
        host.shm,
    ]
    # One that is there already: ttmond_degraded.
    with open(os.path.join(host.shm, "ttmon.v1"), "wb") as f:
        f.write(b"somebody else's")
    daemon = bench.daemon(
        "--socket",
        host.socket,
        "--listen-address",
        f"127.0.0.1:{port}",
        *roots,
        "-q",
        "--tt-shm-version",
        "1",
        "--record",
        bench.path("rec"),
        "--tt-dispatch",
        "on",
        "--max-overhead",
        "50",
        "--memtrace-socket",
        bench.path("mt.sock"),
        env={"TTMOND_COUNTERS": "software"},
    )
    # A program that has the library mapped and nothing else: it is known when the next one begins.
    knows = host.target("e2b", "ttscen", "restart", "--chips", "1")
    host.wait_probed([knows.pid])
    tt = host.target("e2b", "ttrun", "--chips", "1", "--programs", "20", "--dispatches", "50")
    host.wait_probed([tt.pid])
    tt.proc.stdin.write(b"\n" * 100)
    run = bench.target(standin("scen"), "--wait", "live", "4")
    fails = bench.target(standin("scen"), "--wait", "errors")
    retry(20, lambda: true("not probed", standin("lib") in json.dumps(api(host.socket, "/v1/probes"))))
    time.sleep(0.2)
    for target in (fails, run):
        target.go()
    fails.finish()
    tt.finish()
    time.sleep(1.3)
    page, again = Page(port), Page(port, True)
    promtool(page.body)
    eq(
        "not served", in_table(page, table()) - RDT - NVIDIA - {"ttmond_quota_paid_total"}, set()
    )  # nobody has had more than a share
    eq(
        "metrics of the two formats",
        {re.sub(r"_(total|info)$", "", n) for n in page.metrics} ^ set(again.metrics),
        set(),
    )
    run.line(), run.line()
    run.go()
    run.finish()
    daemon.stop()


# ---- the right values ----
def pages_of(alloc):
    """Pages that an allocation of the book touches."""
    first, size = int(str(alloc["addr"]), 0), max(alloc["size"], 1)
    return (first + size - 1) // PAGE - first // PAGE + 1


def ledger_figures(book, comm):
    """{metric: {labels: value}} of the books of tests/standin/ledger.c while it is still there."""
    want, names = {}, error_names()

    def put(name, value, **labels):
        want.setdefault(name, {})[tuple(sorted(labels.items()))] = value

    def both(name, value, **labels):
        """Of the host, and of the only group there is."""
        put("ttmond_" + name, value, **labels)
        put("ttmond_group_" + name, value, comm=comm, **labels)

    for method in ("host_alloc", "registered", "managed", "pool", "device"):
        rows = [a for a in book["allocations"] if a["method"] == method]
        live = [a for a in rows if not a["freed"]]
        who = {"vendor": "nvidia", "method": method}
        both("allocations_total", len(rows), **who)
        both("allocated_bytes_total", sum(a["size"] for a in rows), **who)
        both("live_bytes", sum(a["size"] for a in live), **who)
        put("ttmond_frees_total", len(rows) - len(live), **who)
        put("ttmond_live_allocations", len(live), **who)
        if method in PINNED:
            both("pinned_bytes", sum(a["size"] for a in live), **who)
            put("ttmond_pages_pinned_total", sum(pages_of(a) for a in rows), **who)
            put("ttmond_pin_seconds_count", len(rows), **who)
            put("ttmond_unpin_seconds_count", len(rows) - len(live), **who)
    for d, mems in book["transfers"].items():
        for mem, (copies, total) in mems.items():
            if (d == "d2d") != (mem == "none"):
                continue
            # All ordinary memory of the ledger is older than the attach: of an unknown kind.
            for kind, share in (("pageable", 0), ("unknown", 1)) if mem == "pageable" else ((mem, 1),):
                # A group has no line for what it never did; the host has.
                for say in (
                    (both,) if share else (lambda name, *args, **labels: put("ttmond_" + name, *args, **labels),)
                ):
                    say("transfers_total", share * copies, vendor="nvidia", direction=d, host_memory=kind)
                    say("transfer_bytes_total", share * total, vendor="nvidia", direction=d, host_memory=kind)
    for fn, codes in book["calls"].items():
        for code, n in codes.items():
            if code != "0" and fn not in ("cudaSetDevice", "cudaMemPoolCreate", "cudaLaunchKernel"):
                put("ttmond_call_failures_total", n, function=fn, error=names[int(code)])
    put("ttmond_group_failed_calls_total", sum(want["ttmond_call_failures_total"].values()), comm=comm)
    for name, value in (
        ("bytes", book["live_bytes"]),
        ("peak_bytes", book["live_bytes"]),
        ("pages", book["live_pages"]),
        ("peak_pages", book["peak_pages"]),
    ):
        put(f"ttmond_host_pinned_{name}", value)
    put("ttmond_group_pinned_pages", book["live_pages"], comm=comm)
    put("ttmond_group_pinned_peak_bytes", book["live_bytes"], comm=comm)
    put("ttmond_group_processes", 1, comm=comm)
    put("ttmond_tracked_allocations", sum(not a["freed"] for a in book["allocations"]))
    put("ttmond_unmatched_frees_total", 0)
    put("ttmond_unmatched_transfers_total", 0)
    return want


def differences(query, want):
    diffs = []
    for name, rows in want.items():
        got = query(name)
        for labels, value in rows.items():
            if got.get(labels) != value:
                diffs.append(f"{name}{dict(labels)}: {got.get(labels)}, the book has {value}")
        touched = {k for k, v in got.items() if v and k not in rows and dict(k).get("comm") not in ("scen", "unknown")}
        diffs += [f"{name}{dict(k)}: {got[k]}, not in the book" for k in touched]
    return diffs


@timeout(120)
def test_prometheus(bench):
    """The books of 50,000 calls, asked of a real Prometheus that scrapes while they are made, in both formats."""
    need("prometheus")
    out = bench.path("ledger.json")
    traced = Traced(
        bench,
        [named(bench, "ledger", "m_ledger"), "--out", out, "--calls", str(int(50000 / SLOW)), "--wait"],
        args=("--cpu", "on"),
    )
    target, prom = traced.targets[0], Prometheus(bench, [traced.port])
    target.go()
    eq("last line", target.line(60), "done\n")
    with open(out, encoding="utf-8") as f:
        book = json.load(f)
    want = ledger_figures(book, "m_ledger")
    time.sleep(0.5)
    targets = prom.scraped(time.time())
    eq("targets", [t["health"] for t in targets], ["up"])
    diffs = differences(prom.query, want)
    true(f"{len(diffs)} differences, the first: {diffs[:3]}", not diffs)
    # The same, without Prometheus, in the format that it did not ask for.
    page = traced.page()
    diffs = differences(lambda name: {tuple(sorted(k)): v for k, v in page.values(name).items()}, want)
    true(f"{len(diffs)} differences in the classic format, the first: {diffs[:3]}", not diffs)
    # All of the time of all CPUs, from when each was known on: they become known one after the
    # other in the first milliseconds, in the middle of a slot.
    whole = round(sum(page.values("ttmond_cpu_seconds_total").values()) * 1e9)
    slots, cpus = page.value("ttmond_cpu_slots_total"), page.value("ttmond_cpus")
    # Less by what contradicts what was told before: the daemon says how much that was, and leaves it out.
    cpu = api(traced.sock, "/v1/status")["cpu"]
    odd = cpu["mismatch_ns"]
    true(
        f"{whole} ns in {slots} slots, {odd} contradict: {cpu}",
        -odd <= whole - slots * cpus * 1_000_000 + cpus * 20_000_000 < 2 * cpus * 20_000_000 or SLOW > 1,
    )
    exact = page.value("ttmond_cpu_slots_exact_total")
    # An emulated CPU may stand still for longer than a slot is waited for.
    true(f"{exact} of {slots} slots add up", exact == slots if SLOW == 1 else exact > slots * 0.98)
    groups = round(sum(page.values("ttmond_group_cpu_seconds_total").values()) * 1e9)
    busy = sum(round(page.value("ttmond_cpu_seconds_total", **{"class": c}) * 1e9) for c in ("user", "kernel"))
    true(f"CPU time of groups {groups} of {busy}", abs(groups - busy) <= 20)
    # What Prometheus makes of the types: rates and quantiles work.
    meta = prom.ask("metadata", metric="ttmond_transfer_bytes")
    eq("metadata", [(r["type"], r["unit"]) for rows in meta.values() for r in rows], [("counter", "bytes")])
    quantile = prom.query("histogram_quantile(0.5, sum by (le) (ttmond_pin_seconds_bucket))")
    true(f"median {quantile}", 0 < quantile[()] < 1)
    series = prom.query('count({job="ttmond"})')[()]
    true(f"{series} series", series < 1500)
    target.go()
    target.finish()

    def ended():
        """Launches of the last millisecond are told by the next one, or at the end."""
        after = traced.page()
        eq("launches", after.value("ttmond_group_launches_total", comm="m_ledger", kind="kernel"), book["kernels"])
        eq("pinned", after.value("ttmond_host_pinned_bytes"), 0)
        frees = sum(after.values("ttmond_frees_total").values())
        eq("everything has ended", frees, len(book["allocations"]))

    retry(5, ended)
    traced.daemon.stop(signal.SIGINT)


def put_family(served, name, state):
    conn = Unix(served.sock)
    conn.request("PUT", f"/v1/families?name={name}&state={state}")
    reply = conn.getresponse()
    eq(f"{name} {state}: {reply.read()[:200]!r}", reply.status, 200)


@alone("what other programs miss and pin is in the figures of the whole host")
@timeout(90)
def test_families(bench):
    """
    Series of what is not looked at are absent, counters too, and go on where they stopped;
    ttmond_known says since when all is seen.
    """
    before = time.time()
    served = Served(bench, "--cpu", "on")
    run = bench.target(standin("ledger"), "--calls", "100000000", "--wait")
    wait_probed(served.sock, run.pid)
    run.go()
    copies = {"vendor": "nvidia", "direction": "h2d"}

    def moved(page):
        return sum(page.values("ttmond_transfers_total", **copies).values())

    retry(20, lambda: true("nothing is copied", moved(served.page()) > 0))
    retry(20, lambda: true("no CPU time", "ttmond_cpu_seconds_total" in served.page().metrics))
    page = served.page()
    for family in ("process", "alloc", "transfer", "launch", "tenstorrent", "cpu"):
        since = page.value("ttmond_known", family=family)
        true(f"{family} is known since {since}", before - 1 <= since <= time.time())
    eq("a service does not trace mmap", page.values("ttmond_known", family="mmap"), {})
    transfers = {
        "ttmond_transfers_total",
        "ttmond_transfer_bytes_total",
        "ttmond_captured_copies_total",
        "ttmond_unmatched_transfers_total",
        "ttmond_group_transfers_total",
        "ttmond_group_transfer_bytes_total",
    }
    eq("series of transfers", transfers - set(page.metrics), set())
    old = moved(page)
    put_family(served, "transfer", "counting")
    page = served.page()
    eq("series of what is only counted", transfers & set(page.metrics), set())
    eq("nothing says since when", page.values("ttmond_known", family="transfer"), {})
    eq(
        "functions that fail",
        {f for f in page.names("ttmond_call_failures_total", "function") if re.match("cudaMemcpy|cudaMemPrefetch", f)},
        set(),
    )
    true("allocations are there", sum(page.values("ttmond_allocations_total").values()) > 0)
    hits = page.value("ttmond_family_counted_hits_total", family="transfer")
    retry(
        10,
        lambda: true(
            "hits are not counted", served.page().value("ttmond_family_counted_hits_total", family="transfer") > hits
        ),
    )
    for body in (page.body, served.page(True).body):
        true("text", b"transfers_total" not in body.replace(b"ttmond_unmatched", b""))
    promtool(page.body)
    back = time.time()
    put_family(served, "transfer", "on")
    page = served.page()
    true("counters go on", moved(page) >= old)
    true("since it is on again", back - 1 <= page.value("ttmond_known", family="transfer") <= time.time())
    put_family(served, "cpu", "off")
    put_family(served, "launch", "counting")
    put_family(served, "alloc", "off")
    page = served.page()
    gone = {
        "ttmond_cpu_seconds_total",
        "ttmond_cpus",
        "ttmond_group_cpu_seconds_total",
        "ttmond_group_context_switches_total",
        "ttmond_launches_total",
        "ttmond_group_launches_total",
        "ttmond_host_pinned_bytes",
        "ttmond_pinned_bytes",
        "ttmond_pin_seconds",
        "ttmond_tracked_allocations",
        "ttmond_group_pinned_pages",
        "ttmond_unmatched_frees_total",
    }
    # Tenstorrent's memory is of another family.
    eq(
        "series of what is not on",
        {name for name in gone for labels in page.values(name) if ("vendor", "tenstorrent") not in labels},
        set(),
    )
    eq("memory that nobody asks for any more", page.values("ttmond_live_bytes", vendor="nvidia"), {})
    eq("known", page.names("ttmond_known", "family") & {"cpu", "launch", "alloc", "transfer"}, {"transfer"})
    promtool(page.body)
    served.daemon.stop()


SCENARIOS = (
    ("graph", "7"),
    ("capture", "5"),
    ("batch", "300"),
    ("errors", "1"),
    ("unmap", "2"),
    ("overlap", "1"),
    ("launches", "1000"),
)


@fast
@timeout(120)
def test_scenarios(bench):
    """Graphs, captured copies, findings, failed calls, unknown frees: each program under its own name."""
    traced = Traced(bench, *([named(bench, "scen", "m_" + name), "--wait", name, n] for name, n in SCENARIOS))
    books = {}
    for (name, _), target in zip(SCENARIOS, traced.targets):
        target.go()
        books[name] = last_json(target.finish())
    time.sleep(0.5)
    page = traced.page()
    for name, book in books.items():
        comm = "m_" + name
        for kind, key in (("kernel", "kernels"), ("graph", "graphs")):
            eq(f"{name}: launches", page.value("ttmond_group_launches_total", comm=comm, kind=kind), book[key])
        eq(f"{name}: failed", page.value("ttmond_group_failed_calls_total", comm=comm), book["failed"])
        eq(
            f"{name}: allocations",
            sum(page.values("ttmond_group_allocations_total", comm=comm).values()),
            book["allocs"],
        )
        eq(f"{name}: pinned", sum(page.values("ttmond_group_pinned_bytes", comm=comm).values()), 0)
        eq(f"{name}: processes", page.value("ttmond_group_processes", comm=comm), 0)
    total = {
        key: sum(b.get(key, 0) for b in books.values())
        for key in ("kernels", "graphs", "graph_copies", "captured", "failed")
    }
    eq(
        "launches",
        [page.value("ttmond_launches_total", kind=k) for k in ("kernel", "graph")],
        [total["kernels"], total["graphs"]],
    )
    eq("copies in graphs", page.value("ttmond_graph_copies_total"), total["graph_copies"])
    eq("captured", page.value("ttmond_captured_copies_total"), total["captured"])
    eq("failed", sum(page.values("ttmond_call_failures_total").values()), total["failed"])
    for fn, codes in books["errors"]["errors"].items():
        for code, n in codes.items():
            eq(f"{fn} {code}", page.value("ttmond_call_failures_total", function=fn, error=error_names()[int(code)]), n)
    found = {dict(k)["finding"]: v for k, v in page.values("ttmond_findings_total").items()}
    true(
        f"findings {found}", found["unmap_registered"] >= 1 and found["overlap"] >= 1 and found["truncated_batch"] >= 1
    )


@timeout(90)
def test_tenstorrent(bench):
    """Memory by chip and type while it is held, dispatches by kind, device time: as the programs' books say."""
    host = Host(bench, "n300")
    host.socket = bench.path("sock")
    keeper = bench.target(standin("scen"), "--wait", "live", "1")
    runs = [host.target("e2b", "ttrun", "--chips", "2", "--programs", "50", "--dispatches", "20000") for _ in range(2)]
    held = host.target("e2b", "ttledger", "--chips", "2", "--ops", "2000", "--threads", "1", "--quiet", "1")
    port = free_port()
    host.service(
        "--listen-address",
        f"127.0.0.1:{port}",
        "--tt-dispatch",
        "on",
        *(x for p in (keeper, held, *runs) for x in ("--pid", str(p.pid))),
    )
    books = []
    for run in runs:
        os.write(run.proc.stdin.fileno(), b"\n" * 100)
        # Counted in several parts, as it goes on.
        while run.proc.poll() is None:
            Page(port)
            time.sleep(0.2)
        books.append(last_json(run.finish()))
    held.go()
    book2 = json.loads(held.line(60))
    while "devices" not in book2:
        book2 = json.loads(held.line(60))

    def memory():
        page = Page(port)
        for kind in ("dram", "l1", "l1_small", "trace", "cb"):
            want = sum(d[kind] for d in book2["devices"])
            eq(f"{kind}", sum(page.values("ttmond_tt_memory_bytes", type=kind).values()), want)
        return page

    page = retry(5, memory)
    true("nothing is held", sum(page.values("ttmond_tt_memory_bytes").values()) > 0)
    time.sleep(1.2)
    page = Page(port)
    dispatches = {}
    for name, n in [row for book in books for row in book["dispatches"].items()]:
        kind = name.split()[1]
        dispatches[kind] = dispatches.get(kind, 0) + n
    for kind, n in dispatches.items():
        eq(f"dispatches: {kind}", sum(page.values("ttmond_tt_dispatches_total", kind=kind).values()), n)
    busy = sum(page.values("ttmond_tt_device_busy_seconds_total").values()) * 1e9
    want = sum(r[3] - r[2] for book in books for r in book["runs"])
    true(f"busy {busy} ns, the book has {want}", abs(busy - want) < 0.01 * want)
    error = sum(page.values("ttmond_tt_device_busy_error_seconds_total").values()) * 1e9
    unbounded = sum(page.values("ttmond_tt_unbounded_runs_total").values())
    true(f"{busy} ns against {want} ns is more than {error} ns off", unbounded == 0 and abs(busy - want) <= error)
    eq("processes", page.value("ttmond_tt_processes"), 1)
    chips = page.names("ttmond_tt_memory_bytes", "chip")
    eq("chips", {dict(k)["chip"] for k in page.values("ttmond_tt_chip_info")}, chips)
    group = {m: page.value("ttmond_group_live_bytes", comm="ttledger", method=f"tt_{m}") for m in ("dram", "l1")}
    eq("of the group", group, {m: sum(d[m] for d in book2["devices"]) for m in ("dram", "l1")})
    # Both programs are one group; the one that had chips run nothing has no series, which would be a figure.
    names = {
        m: f"ttmond_group_tt_{m}_total"
        for m in ("device_busy_seconds", "device_busy_error_seconds", "unbounded_runs", "missed_runs")
    }
    for name in names.values():
        eq(f"groups of {name}", page.names(name, "comm") & {"ttrun", "ttledger"}, {"ttrun"})
    busy, error = (
        page.value(names[m], comm="ttrun") * 1e9 for m in ("device_busy_seconds", "device_busy_error_seconds")
    )
    true(f"{busy} ns against {want} ns is more than {error} ns off", abs(busy - want) <= error)
    eq(
        "runs without a bound, and missed",
        [page.value(names[m], comm="ttrun") for m in ("unbounded_runs", "missed_runs")],
        [0, 0],
    )


# ---- names ----
def sleeper(bench, name):
    """sleep(1) under a name of our own, which is what the kernel shows of its file's."""
    path = os.path.join(os.fsencode(bench.dir), name)
    if not os.path.exists(path):
        shutil.copy("/bin/sleep", path)
    return path


@timeout(60)
def test_hostile_names(bench):
    """
    A name is whatever a program likes: no line of another's making, no second `other`, valid UTF-8;
    Prometheus takes it.
    """
    names = [
        b'a"b\\c',
        b'x"} 1\ny{',
        b"bad\xff\xfeutf",
        b"cut\xc3",
        b"\x1b[31mred",
        b"other",
        b"gr\xc3\xbc\xc3\x9fe",
        b"unknown",
    ]
    shown = [
        'a"b\\c',
        'x"} 1?y{',
        "bad\ufffd\ufffdutf",
        "cut\ufffd",
        "?[31mred",
        "other_",
        "gr\u00fc\u00dfe",
        "unknown",
    ]
    served = Served(bench, "--series", "1000")
    for name in names:
        bench.procs.append(subprocess.Popen([sleeper(bench, name), "30"]))

    def all_there():
        page = served.page()
        eq("names that are not there", set(shown) - page.names("ttmond_group_cpu_seconds_total", "comm"), set())
        return page

    page = retry(10, all_there)
    promtool(page.body)
    true("other", ("ttmond_group_cpu_seconds_total", (("comm", "other"),)) in page.series)
    if shutil.which("prometheus"):
        prom = Prometheus(bench, [served.port])
        prom.scraped(time.time())
        got = {dict(k)["comm"] for k in prom.query("ttmond_group_cpu_seconds_total")}
        eq("names that Prometheus has not", set(shown) - got, set())


@timeout(120)
def test_series_vanish(bench):
    """The series of a program that ended stay as long as they are to, then go; a new one of its name starts anew."""
    served = Served(bench, "--series-linger", "2", "--series", "50")
    child = subprocess.Popen([sleeper(bench, b"vanisher"), "60"])
    bench.procs.append(child)

    def there():
        true("it is not there", "vanisher" in served.page().names("ttmond_group_cpu_seconds_total", "comm"))

    def gone():
        true("it is still there", "vanisher" not in served.page().names("ttmond_group_cpu_seconds_total", "comm"))

    retry(10, there)
    child.kill()
    child.wait()
    there()
    retry(15, gone)


SWARM = r"""
import ctypes, os, sys
libc = ctypes.CDLL(None)
left, width = int(sys.argv[1]), 8
print("ready", flush=True)
sys.stdin.readline()
for i in range(left):
    pid = os.fork()
    if not pid:
        libc.prctl(15, b"swarm%d" % i, 0, 0, 0)
        for _ in range(2000):
            pass
        os._exit(0)
    if i >= width:
        os.wait()
    if i % 500 == 499:
        print(i + 1, flush=True)
print("done", flush=True)
"""


@alone("it watches the memory of a daemon that sees every process of the host")
@timeout(180)
def test_many_short_lived(bench):
    """
    10,000 processes, each with a name of its own: never more series than asked for, memory that
    stays, every CPU second counted.
    """
    many = int(10000 / SLOW)
    # CPU time is everybody's, memory the keeper's alone: other programs of this machine may use the
    # libraries meanwhile.
    served = Traced(bench, args=("--cpu", "on", "--series-linger", "2", "--series", "5"))
    swarm = subprocess.Popen(
        [sys.executable, "-c", SWARM, str(many)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    bench.procs.append(swarm)
    swarm.stdout.readline()
    swarm.stdin.write("\n")
    swarm.stdin.flush()
    worst, sizes, seen = 0, [], set()
    last = {}
    for line in swarm.stdout:
        page = served.page()
        names = page.names("ttmond_group_cpu_seconds_total", "comm")
        true(f"{len(names)} names, {sorted(names)[:10]}", len(names) <= 6)
        worst = max(worst, len(page.series))
        seen |= names
        last = only_grows(page, last)
        sizes.append(rss_kib(served.daemon.proc.pid))
        if line == "done\n":
            break
    swarm.wait()
    true(f"{worst} series", worst < 1000)
    half = sizes[len(sizes) // 2]
    true(f"memory grew from {half} KiB at half time to {sizes[-1]}: {sizes}", sizes[-1] < half + 4096)

    def quiet():
        page = served.page()
        names = page.names("ttmond_group_cpu_seconds_total", "comm")
        eq("names of the dead", [n for n in names if n.startswith("swarm")], [])
        true(f"{page.value('ttmond_groups')} groups", page.value("ttmond_groups") < 500)
        return page

    page = retry(20, quiet)
    only_grows(page, last)
    whole_cpu_time(page)


def whole_cpu_time(page):
    """Host-wide time is of the same moment, and is in groups that vanished too, though not in a series any more."""
    busy = sum(page.value("ttmond_cpu_seconds_total", **{"class": c}) for c in ("user", "kernel"))
    groups = sum(page.values("ttmond_group_cpu_seconds_total").values())
    true(f"groups have {groups} s of {busy}", groups <= busy + 1e-6)


def only_grows(page, last):
    """No counter that was there before has gone back."""
    now = {
        k: float(v)
        for name, m in page.metrics.items()
        if m.type in ("counter", "histogram")
        for k, v in m.samples.items()
    }
    for key, value in now.items():
        true(f"{key} went back from {last.get(key)} to {value}", value >= last.get(key, 0))
    return now


@timeout(90)
def test_counters_only_grow(bench):
    """While a busy program makes, moves and frees memory, no counter ever goes back."""
    out = bench.path("ledger.json")
    traced = Traced(
        bench, [standin("ledger"), "--out", out, "--calls", str(int(100000 / SLOW)), "--wait"], args=("--cpu", "on")
    )
    traced.targets[0].go()
    last, pages = {}, 0
    end = time.monotonic() + 4 * SLOW
    while time.monotonic() < end:
        page = traced.page(pages % 2 == 1)
        last = only_grows(page, last)
        pages += 1
    true(f"{pages} pages", pages > 10)


@timeout(60)
def test_group_by(bench):
    """The label is called as --group-by says, and what belongs to no unit is told apart from what is not known."""
    served = Served(bench, "--group-by", "cgroup")
    retry(
        10,
        lambda: true(
            "no cgroup", any(n.startswith("/") for n in served.page().names("ttmond_group_cpu_seconds_total", "cgroup"))
        ),
    )
    page = served.page()
    in_table(page, table(), "cgroup")
    promtool(page.body)
    served.daemon.stop()
    served = Served(bench, "--group-by", "pod")
    page = retry(10, served.page)
    in_table(page, table(), "pod")
    true(
        "pods",
        page.names("ttmond_group_cpu_seconds_total", "pod") <= {"none", "unknown", "other"}
        or os.path.exists("/var/lib/kubelet"),
    )
