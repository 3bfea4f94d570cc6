# SPDX-License-Identifier: GPL-2.0-only
"""
The alerts of docs/prometheus on a day of metrics. What a daemon says twice within seconds, of a
training loop, work on a chip and programs that come and go, is continued for 24 hours. On the host
"quiet" that is all, with a restart in the night: no alert fires. For each alert there is a host on
which the one thing goes wrong for two hours, and nothing fires but that alert, then; and on the
host "near" all goes nearly wrong.
"""
import json
import re
import time

from e2e import alone, eq, free_port, standin, timeout, true
from prom import get, parse
from t_fleet import PROMETHEUS_DIR, promtool, read
from tt_host import Host, retry

DAY, RESTART = 1440, 420  # minutes; the daemon is away for one
START, LENGTH = 602, 120  # of what goes wrong
STEP = 10  # minutes between two looks; edges lie between them


def lasting(normal, wrong, start=START, length=LENGTH):
    """A gauge of the day: its value outside of that time and in it."""
    return f"{normal}x{start - 1} {wrong}x{length - 1} {normal}x{DAY - start - length}"


def counting(normal, wrong, start=START, length=LENGTH):
    """A counter of the day: what is added each minute outside of that time and in it."""
    a, b = normal * start, normal * start + wrong * length
    return f"0+{normal}x{start - 1} {a}+{wrong}x{length - 1} {b}+{normal}x{DAY - start - length}"


def away(values, start, length):
    """
    The same for a daemon that is not there for a time, and begins anew: its counters begin at 0,
    its gauges are as they were.
    """
    first, step = re.fullmatch(r"([^+]+)(?:\+([^+]+))?x\d+", values).groups()
    plus = f"+{step}" if step else ""
    return f"{first}{plus}x{start - 1} _x{length} {'0' if step else first}{plus}x{DAY - start - length - 1}"


def pinning(slow, start=START, length=LENGTH):
    """Ten pins a minute; those of that time take this long: the cumulative buckets."""
    return {
        f'ttmond_pin_seconds_bucket{{vendor="nvidia",method="host_alloc",le="{le}"}}': counting(
            10, 10 if edge >= slow else 0, start, length
        )
        for le, edge in (("0.001", 0.001), ("0.25", 0.25), ("1.0", 1), ("10.0", 10), ("+Inf", 11))
    }


CPU = 'ttmond_cpu_seconds_total{class="%s"}'
PAGEABLE = 'ttmond_transfer_bytes_total{vendor="nvidia",direction="h2d",host_memory="pageable"}'
PINNED = 'ttmond_transfer_bytes_total{vendor="nvidia",direction="h2d",host_memory="pinned"}'
FAILED = 'ttmond_call_failures_total{function="%s",error="cudaErrorMemoryAllocation"}'
DRAM = {
    'ttmond_tt_memory_capacity_bytes{chip="1",type="dram"}': f"1e10x{DAY}",
    'ttmond_tt_memory_capacity_bytes{chip="1",type="l1"}': f"1e8x{DAY}",
}

# What goes wrong: the series, how many minutes after START the alert fires first, and how many
# after START + LENGTH last.
WRONG = {
    "TtmondDown": ({"up": lasting(1, 0)}, 2, -1),
    "TtmondEventsLost": ({'ttmond_events_lost_total{reason="ring_full"}': counting(0, 300)}, 1, 4),
    "TtmondSlotsDropped": ({"ttmond_slots_dropped_total": counting(0, 20)}, 1, 4),
    "TtmondCpuTimeMissing": ({CPU % "user": counting(120, 119.8), CPU % "missing": counting(0, 0.2)}, 6, 4),
    "TtmondOverBudget": ({"ttmond_over_budget": lasting(0, 1)}, 10, -1),
    "TtmondFamilyReduced": ({'ttmond_family_state{family="transfer",state="counting"}': lasting(0, 1)}, 60, -1),
    "TtmondProbesFailed": ({'ttmond_probes{program="cuda_call",state="failed"}': lasting(0, 3)}, 5, -1),
    "TtmondWatermarkLag": ({"ttmond_watermark_lag_seconds": lasting(0.02, 4)}, 2, -1),
    "TtmondRecordingDropped": ({"ttmond_recording_dropped_records_total": counting(0, 50)}, 1, 9),
    "TtmondHistoryIncomplete": ({"ttmond_history_evicted_allocations_total": counting(0, 500)}, 1, 59),
    "TtmondHistoryIncomplete ": ({"ttmond_history_dropped_events_total": counting(0, 500)}, 1, 59),
    "TtmondSlowClients": ({'ttmond_http_closed_connections_total{reason="slow"}': counting(0, 20)}, 14, 5),
    "TtmondFileDescriptors": ({"process_open_fds": lasting(200, 500000), "process_max_fds": f"524288x{DAY}"}, 10, -1),
    "TtmonPinFailures": ({FAILED % "cudaHostAlloc": counting(0, 1)}, 1, 9),
    "TtmonPinSlow": (pinning(1.5), 11, 4),
    # A leak until the program ends.
    "TtmonPinnedMemoryGrows": (
        {"ttmond_host_pinned_bytes": f"4e9x{START - 1} 4e9+5e7x479 4e9x{DAY - START - 480}"},
        143,
        359,
    ),
    "TtmonPageableTransfers": ({PAGEABLE: counting(0, 3e11), PINNED: counting(1e11, 1e11)}, 31, 3),
    "TtmonUnmatchedFrees": ({"ttmond_unmatched_frees_total": counting(0, 100)}, 70, 49),
    "TtmonChipDramFull": ({**DRAM, 'ttmond_tt_memory_bytes{chip="1",type="dram"}': lasting(5e9, 9.7e9)}, 5, -1),
    "TtmonChipFiguresDoubtful": ({'ttmond_tt_flagged_processes{flag="partial"}': lasting(0, 1)}, 15, -1),
}

# What looks like it and is none of it: too little, not for long enough, or something that happens on a good day.
NEAR = {
    "up": lasting(1, 0, length=2),
    'ttmond_events_lost_total{reason="unpaired"}': counting(0, 300),
    'ttmond_events_lost_total{reason="ring_full"}': f"500x{DAY}",
    "ttmond_slots_dropped_total": f"7x{DAY}",
    CPU % "user": counting(120, 119.5, length=1),
    CPU % "missing": counting(0.05, 0.5, length=1),
    "ttmond_over_budget": lasting(0, 1, length=9),
    'ttmond_family_state{family="transfer",state="counting"}': lasting(0, 1, length=55),
    'ttmond_family_state{family="mmap",state="off"}': f"1x{DAY}",
    'ttmond_family_state{family="tenstorrent",state="absent"}': f"1x{DAY}",
    'ttmond_probes{program="cuda_call",state="failed"}': lasting(0, 3, length=4),
    "ttmond_watermark_lag_seconds": lasting(0.02, 4, length=1),
    "ttmond_recording_dropped_records_total": f"9x{DAY}",
    # Of a buffer that a training loop copies from for a day, 4,096 events are kept.
    "ttmond_history_trimmed_events_total": f"0+60000x{DAY}",
    "ttmond_history_dropped_events_total": f"0x{DAY}",
    "ttmond_history_evicted_allocations_total": f"4x{DAY}",
    'ttmond_http_closed_connections_total{reason="slow"}': counting(0, 5),
    "process_open_fds": lasting(200, 400000),
    "process_max_fds": f"524288x{DAY}",
    FAILED % "cudaMalloc": counting(0, 1),
    FAILED % "cudaHostAlloc": f"2x{DAY}",
    **pinning(0.4),
    # A program loads its data for half an hour, keeps it and ends.
    "ttmond_host_pinned_bytes": f"4e9x{START - 1} 4e9+1e9x29 3.4e10x599 4e9x{DAY - START - 630}",
    # Nearly all of it ordinary memory, for 25 minutes; nearly all, and nearly nothing.
    PAGEABLE: f"0+1e8x{START - 1} {1e8 * START}+3e11x24 {1e8 * START + 25 * 3e11}+1e8x{DAY - START - 25}",
    PINNED: counting(0, 1e11, length=25),
    # Programs that ran before the daemon end.
    "ttmond_unmatched_frees_total": counting(0, 15),
    **DRAM,
    # Over the limit for four minutes, then just below it.
    'ttmond_tt_memory_bytes{chip="1",type="dram"}': f"5e9x{START - 1} 9.7e9x3 9.4e9x115 5e9x{DAY - START - 120}",
    'ttmond_tt_memory_bytes{chip="1",type="l1"}': lasting(0, 1e8),
    'ttmond_tt_flagged_processes{flag="partial"}': lasting(0, 1, length=14),
    'ttmond_tt_flagged_processes{flag="own"}': f"1x{DAY}",
    'ttmond_tt_flagged_processes{flag="degraded"}': f"1x{DAY}",
}


def a_training_host(bench):
    """What a service says, twice, and the minutes between: [{series: value}], {metric: type}, minutes."""
    host, port = Host(bench, "n150"), free_port()
    # Libraries that are mapped before the service starts are known to it when the programs of the day begin.
    known = host.target("e2b", "ttledger", "--chips", "1")
    bench.target(standin("scen"), "--wait", "exit")
    host.service("--listen-address", f"127.0.0.1:{port}", "--max-overhead", "90", "--record", bench.path("rec"))
    host.wait_probed([known.pid])
    # What it did before is not known, and said so as long as it runs.
    known.proc.kill()
    known.proc.wait()
    retry(30, lambda: eq("runs still", [p["tgid"] for p in host.devices()["processes"] if p["running"]], []))
    bench.target(
        "sh",
        "-c",
        f"echo ready; {standin('pace')} 3000 60 & while :; do {standin('steps')} train 20; sleep 0.1; done >/dev/null",
    )
    chip = host.target("e2b", "ttledger", "--chips", "1", "--ops", "100", "--oom", "0", "--quiet", "1")
    chip.go()
    chip.line()
    said, at = [], []
    for _ in range(2):
        # Time enough for more events of one buffer than are kept.
        time.sleep(2)
        metrics = parse(get(port)[1])
        at.append(time.monotonic())
        said.append(
            {
                name + "{" + ",".join(f'{k}="{v}"' for k, v in labels) + "}": float(text)
                for m in metrics.values()
                for (name, labels), text in m.samples.items()
            }
        )
    return said, {name: m.type for name, m in metrics.items()}, (at[1] - at[0]) / 60


def name_of(series):
    return series.partition("{")[0]


def continued(said, types, minutes):
    """A day of the same: {series: values}."""
    first, last = said
    day = {}
    for series, value in last.items():
        name = name_of(series)
        if types.get(name) == "gauge":
            day[series] = f"{value:f}x{DAY}"
        else:
            each = (value - first.get(series, 0)) / minutes
            true(f"{series} fell from {first.get(series)} to {value}", each >= 0)
            day[series] = f"0+{each:f}x{DAY}"
    return day


def on_host(instance, *parts):
    """Series of an instance for promtool; of two of the same name and labels the later one."""
    merged = {}
    for part in parts:
        for series, values in part.items():
            merged[series if "{" in series else series + "{}"] = values
    merged.setdefault("up{}", f"1x{DAY}")
    return [
        {
            "series": re.sub(
                r"{(.)?",
                lambda m: f'{{job="ttmond",instance="{instance}"' + (m[1] if m[1] == "}" else "," + m[1]),
                series,
                count=1,
            ),
            "values": values,
        }
        for series, values in merged.items()
    ]


def firing(minute):
    """(alert, host) of the alerts that fire then."""
    return sorted(
        (alert.strip(), f"host{i}")
        for i, (alert, (_, first, last)) in enumerate(WRONG.items())
        if START + first <= minute <= START + LENGTH + last
    )


def look(minute):
    return {
        "expr": 'count by (alertname, instance) (ALERTS{alertstate="firing"})',
        "eval_time": f"{minute}m",
        "exp_samples": [
            {"labels": f'{{alertname="{alert}",instance="{host}"}}', "value": 1} for alert, host in firing(minute)
        ],
    }


def never(hosts):
    """Nor in any minute between two looks."""
    return {
        "expr": f'count by (alertname, instance) (count_over_time(ALERTS{{alertstate="firing",'
        f'instance=~"{hosts}"}}[1d]))',
        "eval_time": f"{DAY - 1}m",
        "exp_samples": [],
    }


@alone("a program of another test that fails, or that was there before the service, belongs to no quiet day")
@timeout(120)
def test_day(bench):
    """
    On a quiet day none fires. When something goes wrong its alert does, in time, it alone, and no
    longer than that; of what looks like it none.
    """
    said, types, minutes = a_training_host(bench)
    unknown = {
        s
        for wrong in (NEAR, *(w for w, _, _ in WRONG.values()))
        for s in wrong
        if "{" in s and "call_failures" not in s and s not in said[1]
    }
    true(f"series that no daemon has: {sorted(unknown)}", not unknown)
    true("no event was trimmed", said[1]["ttmond_history_trimmed_events_total{}"] > 0)
    day = continued(said, types, minutes)
    true(f"{len(day)} series", len(day) > 700)
    edges = [edge for _, first, last in WRONG.values() for edge in (START + first, START + LENGTH + last)]
    true(f"a look at an edge: {edges}", all(0 < edge % STEP < STEP - 1 for edge in edges))
    # Each series costs promtool time: those that no alert asks for, itself or by a recording rule, stay out.
    alerts, rules = read(f"{PROMETHEUS_DIR}/ttmon.alerts.yml"), read(f"{PROMETHEUS_DIR}/ttmon.rules.yml")
    asked = alerts + "".join(rule for rule in rules.split("- record: ")[1:] if rule.split()[0] in alerts)
    used = {series: values for series, values in day.items() if re.search(rf"\b{name_of(series)}\b", asked)}
    true(f"{len(used)} series that alerts ask for", len(used) > 100)
    series = on_host("quiet", {s: away(v, RESTART, 1) for s, v in used.items()}, {"up": lasting(1, 0, RESTART, 1)})
    # Its pins are in the buckets of NEAR and in no others.
    series += on_host("near", {s: v for s, v in used.items() if name_of(s) != "ttmond_pin_seconds_bucket"}, NEAR)
    for i, (wrong, _, _) in enumerate(WRONG.values()):
        series += on_host(f"host{i}", wrong)
    with open(bench.path("day.yml"), "w", encoding="utf-8") as f:
        # JSON is YAML.
        json.dump(
            {
                "rule_files": [f"{PROMETHEUS_DIR}/ttmon.rules.yml", f"{PROMETHEUS_DIR}/ttmon.alerts.yml"],
                "evaluation_interval": "1m",
                "tests": [
                    {
                        "interval": "1m",
                        "input_series": series,
                        "promql_expr_test": [look(minute) for minute in range(STEP, DAY, STEP)] + [never("near|quiet")],
                    }
                ],
            },
            f,
        )
    promtool("test", "rules", bench.path("day.yml"))
