# SPDX-License-Identifier: GPL-2.0-only
"""Random mesh programs (tests/standin/tt/ttrandom.cpp) against their own books: at every quiet point
ttmond's figures are equal to the book, or the process is marked. TTMON_TT_PROGRAMS=20000 is the
long form (make tt-random); tracers come and go in both.
"""
import json
import os
import time

from e2e import PATIENCE, eq, timeout, true
from tt_host import Host, book_figures, figures

PROGRAMS = int(os.environ.get("TTMON_TT_PROGRAMS", "48"))
SEED = int(os.environ.get("TTMON_TT_SEED", "1"))
# As the library is since 2026, with each of its profilers, where the primary pair is inlined, and in 2025.
TARGETS = (
    ("e2b", "e4", "e2b64", "e2i", "e1", "e2a")
    if PROGRAMS < 1000
    else 3 * ("e2b", "e4", "e1", "e2i", "e2b64", "e2a", "e2b72", "e2b48")
)
# Marks that excuse a figure. "partial" is none: what was there before the tracer came is not in the book either.
MARKS = {"lost", "limit", "mesh assumed", "mesh pending", "uncalibrated", "cb unknown"}
ATTACH_EVERY = 12 if PROGRAMS < 1000 else 400  # quiet points


def differs(process, book):
    want = book_figures(book)
    got = figures(process) if process else {}
    return "" if got == want else f"{got}, not {want}"


def settle(host, books):
    """{pid: what differs and is not marked}, {pid: what differs and is marked}, once nothing changes for the better."""
    end = time.monotonic() + 5 * PATIENCE
    while True:
        there = {p["tgid"]: p for p in host.devices()["processes"]}
        bad = {b["pid"]: differs(there.get(b["pid"]), b) for b in books}
        bad = {pid: why for pid, why in bad.items() if why}
        if not bad:
            return {}, {}
        if time.monotonic() > end:
            marked = {pid: why for pid, why in bad.items() if MARKS & set(there.get(pid, {"flags": []})["flags"])}
            return {
                pid: f"{why} ({there.get(pid, {}).get('flags')})" for pid, why in bad.items() if pid not in marked
            }, marked
        time.sleep(0.03)


@timeout(60 if PROGRAMS < 1000 else 4 * 3600)
def test_programs(bench):
    host = Host(bench, "t3k")
    daemon = host.service("--ring-size", "32768")
    each = PROGRAMS // len(TARGETS)
    targets = [
        host.target(
            gen, "ttrandom", "--programs", str(each), "--seed", str(SEED * 100 + i), "--chips", str(2 + 2 * (i % 4))
        )
        for i, gen in enumerate(TARGETS)
    ]
    host.wait_probed([t.pid for t in targets])
    for target in targets:
        target.go()
    points, equal, marked, attached, done = 0, 0, 0, 0, 0
    while targets:
        books = [json.loads(t.line(60)) for t in targets]
        bad, excused = settle(host, books)
        eq(f"seed {SEED}, quiet point {points} of {len(books)} programs", bad, {})
        points += 1
        equal += len(books) - len(excused)
        marked += len(excused)
        done += sum(b["done"] for b in books if "done" in b)
        targets = [t for t, b in zip(targets, books) if "done" not in b]
        again = points % ATTACH_EVERY == 0
        if again:
            daemon.stop()
            daemon = host.service("--ring-size", "32768")
            host.wait_probed([t.pid for t in targets], known=False)
            attached += 1
        for target in targets:
            os.write(target.proc.stdin.fileno(), b"r\n" if again else b"\n")
    print(f"{done} programs, {equal} quiet points equal, {marked} marked, {attached} tracers more")
    eq("programs", done, each * len(TARGETS))
    true(f"{marked} of {equal} quiet points are only marked", marked * 50 <= equal)
    daemon.stop()
