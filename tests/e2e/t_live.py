# SPDX-License-Identifier: GPL-2.0-only
"""
t_live.py: live advice on the local socket: what is said of a program that runs, to whom, and what
becomes of those who are away or slow.
"""
import json
import os
import re
import subprocess
import time

from e2e import PATIENCE, SLOW, TOP, TTMOND, alone, eq, timeout, true
from live_host import OWN, Follower, Program
from t_api import ALICE, BOB, Service
from tt_host import Unix

MEMBERS = (
    "seq",
    "ts_ns",
    "advice",
    "pid",
    "start_ns",
    "comm",
    "id",
    "alloc",
    "addr",
    "size",
    "method",
    "site",
    "call_site",
    "ordinal",
    "copies",
    "bytes",
    "copies_back",
    "bytes_back",
    "reason",
    "gain_ns",
    "confidence",
    "period",
    "label",
    "came",
)


def metric(service, name):
    found = re.search(rf"^{re.escape(name)} (\S+)$", service.tcp("/metrics")[2].decode(), re.M)
    true(f"no metric {name}", found)
    return float(found[1])


def said(line, advice, program, addr, **more):
    wanted = dict(advice=advice, pid=program.pid, addr=addr, **more)
    eq("line", {k: line[k] for k in wanted}, wanted)
    return line


@timeout(90)
def test_said_while_it_runs(bench):
    """
    At the first transfer to be pinned; without transfers to be unpinned, or cold where the GPU may
    read it; and not any more.
    """
    service = Service(bench, "--pin-after", "first", "--cold-after", "1")
    program = Program(bench)
    follower = Follower(service.sock, f"pid={program.pid}")
    eq("of a new daemon", (follower.head["restarted"], follower.head["after"]), (False, 0))
    program.attached(service)
    program.do("dev")
    hot = program.do("page hot 1048576")["addr"]
    time.sleep(0.3)
    t = program.do("copy hot")["t"]
    line = said(
        follower.advice(),
        "pin",
        program,
        hot,
        size=1 << 20,
        method="mmap",
        copies=1,
        bytes=1 << 20,
        period=0,
        label=None,
    )
    eq("members", tuple(line), MEMBERS)
    true(f"{(line['came'] - t) / 1e6:.1f} ms from the copy to the client", line["came"] - t < 1e9 * PATIENCE)
    true(f"stamped {line['ts_ns']}, the copy was at {t}", t <= int(line["ts_ns"]) <= line["came"])
    program.do("copy hot 100")

    plain, mapped = program.do("pin plain 65536")["addr"], program.do("pin mapped 65536 2")["addr"]
    lines = sorted((follower.advice(), follower.advice()), key=lambda line: line["addr"] != plain)
    said(lines[0], "unpin", program, plain, method="host_alloc", copies=0)
    said(lines[1], "cold", program, mapped, method="host_alloc", copies=0, gain_ns=0)
    program.do("copy plain")
    said(follower.advice(), "keep", program, plain, copies=1, bytes=65536)
    # Twice as long now; and asking for its device pointer makes it another thing.
    program.do("ptr plain")
    asked = time.monotonic()
    said(follower.advice(), "cold", program, plain)
    true("sooner than two seconds", time.monotonic() - asked > 1.8)
    for name in ("plain", "mapped"):
        program.do(f"free {name}")
    follower.silent(1.5)
    eq(
        "in metrics",
        [
            metric(service, f'ttmond_live_advice_total{{advice="{a}"}}') >= n
            for a, n in (("pin", 1), ("unpin", 1), ("cold", 2), ("keep", 1))
        ],
        [True] * 4,
    )
    eq("followers", metric(service, "ttmond_live_advice_followers"), 1)
    follower.close()
    cold = [line["advice"] for line in sorted(lines, key=lambda line: line["seq"])]
    # Who reads later knows the call sites, which may take two seconds to be known.
    again = Follower(service.sock, f"pid={program.pid}", follow=False).rest()
    eq("not followed", [line["advice"] for line in again], ["pin", *cold, "keep", "cold"])
    last = again[-1]
    true(f"call site {last['call_site']}, {last['site']}", "+0x" in last["call_site"] and len(last["site"]) == 16)
    true(f"id {last['id']}", last["id"].startswith(f"{last['site']}:65536:{last['ordinal']}@"))
    one = service.get(f"/v1/allocations/{last['alloc']}")
    eq("as /v1/allocations says", (one["id"], one["addr"]), (last["id"], plain))


@timeout(60)
def test_resumed(bench):
    """Who was away goes on behind the last line, and hears each once; who was away for another daemon is told."""
    service = Service(bench, "--pin-after", "3", *OWN)
    program, other = Program(bench), Program(bench)
    follower = Follower(service.sock, f"pid={program.pid}")
    for p in (program, other):
        p.do("dev")
        p.probed(service)
        p.do("own a 4096")
        p.do("own b 4096")
        p.do("own c 4096")
        time.sleep(0.3)
        p.do("copy a 2")
    follower.silent(0.5)
    program.do("copy a")
    first = follower.advice()
    follower.close()
    other.do("copy a 5")
    program.do("copy b 3")
    program.do("copy c 2")
    time.sleep(0.5)
    start = follower.head["start_id"]
    follower = Follower(service.sock, f"pid={program.pid}&after={first['seq']}&start={start}")
    eq(
        "head",
        (follower.head["start_id"], follower.head["restarted"], follower.head["after"]),
        (start, False, first["seq"]),
    )
    second = follower.advice()
    eq("bytes", second["bytes"], 3 * 4096)
    true("seq", second["seq"] > first["seq"] + 1)
    program.do("copy c")
    third = follower.advice()
    follower.silent(0.5)
    lines = Follower(service.sock, "after=0", follow=False).rest()
    eq(
        "all of both",
        {line["seq"]: line["pid"] for line in lines if line["pid"] in (program.pid, other.pid)},
        {first["seq"]: program.pid, second["seq"]: program.pid, third["seq"]: program.pid, first["seq"] + 1: other.pid},
    )
    follower.close()

    service.daemon.stop()
    service = Service(bench, "--pin-after", "3", *OWN)
    program.do("own d 4096")
    time.sleep(0.5)
    program.do("copy d 3")
    for query in (f"after={third['seq']}&start={start}", f"after={third['seq'] + 1000000}"):
        follower = Follower(service.sock, f"pid={program.pid}&{query}")
        eq(query, (follower.head["restarted"], follower.head["after"]), (True, 0))
        true("another run, the same id", follower.head["start_id"] != start)
        eq(query, follower.advice()["bytes"], 3 * 4096)
        follower.close()


@timeout(60)
def test_who_hears_what(bench):
    """Everybody of their own programs, root of all, TCP nothing; and bad requests."""
    service = Service(bench, "--pin-after", "first", *OWN)
    programs = {user: Program(bench, user) for user in (None, ALICE)}
    for program in programs.values():
        program.do("dev")
        program.probed(service)
        program.do("own a 4096")
        time.sleep(0.3)
        program.do("copy a")
    time.sleep(0.5)

    def heard(user, query):
        """Process ids in the lines, by curl as that user."""
        status, body = curl(service, f"/v1/advice/live?{query}", user)
        eq(f"{user}: {query}", status, 200)
        return {int(pid) for pid in re.findall(r'"pid":(\d+)', body)}

    pids = {program.pid for program in programs.values()}
    eq("root", heard(0, "") & pids, pids)
    eq("Alice", heard(ALICE, ""), {programs[ALICE].pid})
    eq("Alice of root's", heard(ALICE, f"pid={programs[None].pid}"), set())
    eq("Bob", heard(BOB, ""), set())
    eq("by TCP", service.tcp("/v1/advice/live")[0], 403)
    for query, word in (
        ("after=x", "after="),
        ("after=-1", "after="),
        ("pid=0", "pid="),
        ("pid=selfish", "pid="),
        ("follow=2", "follow="),
        ("start=5", "start_id"),
        ("start=0123456789abcdeg", "start_id"),
    ):
        service.refused(f"/v1/advice/live?{query}", 400, word)
    eq("HEAD", head(service), 200)
    service.daemon.stop()
    service = Service(bench, "--trace-only")
    service.refused("/v1/advice/live?follow=1", 404, "--trace-only")


def head(service):
    conn = Unix(service.sock)
    conn.request("HEAD", "/v1/advice/live?follow=1")
    return conn.getresponse().status


def curl(service, path, uid):
    client = subprocess.Popen(
        [
            "curl",
            "-s",
            "-w",
            "\n%{http_code}",
            "--max-time",
            "30",
            "--unix-socket",
            service.sock,
            f"http://ttmond{path}",
        ],
        stdout=subprocess.PIPE,
        user=uid,
        group=uid,
        extra_groups=[service.group],
    )
    body, _, code = client.communicate()[0].decode().rpartition("\n")
    return int(code), body


def test_options(bench):
    """What --pin-after and --cold-after do not take is refused before anything is started."""
    for option, *values in (
        ("--pin-after", "", "0", "-1", "x", "64X", "64MB", "1.5", "gains", "99999999999999999999", "99999999999T"),
        ("--cold-after", "0", "-1", "x", "86401", ""),
    ):
        for value in values:
            done = subprocess.run(
                [TTMOND, option, value],
                capture_output=True,
                text=True,
                check=False,
                timeout=10 * PATIENCE,
                cwd=bench.dir,
            )
            eq(f"{option} {value!r}: {done.stderr}", (done.returncode, done.stderr.count("\n")), (2, 1))
            true(done.stderr, done.stderr.startswith((f"ttmond: {option} needs ", f"ttmond: {option} wants ")))


@timeout(60)
def test_thresholds(bench):
    """By transfers and by bytes; by gain where that pays."""
    # Prices are those of the host: what other tests' programs pin at the same time is in them.
    for after, copies in (("4", (4,)), ("10K", (3,)), ("gain", range(1, 20))):
        service = Service(bench, "--pin-after", after, *OWN)
        program = Program(bench)
        follower = Follower(service.sock, f"pid={program.pid}")
        program.do("dev")
        program.probed(service)
        # Of one page the call alone costs more than 20 copies save.
        program.do(f"own a {4194304 if after == 'gain' else 4096}")
        time.sleep(0.3)
        program.do("copy a 20")
        got = follower.advice()["copies"]
        true(f"{after}: after {got} copies", got in copies)
        service.daemon.stop()


@timeout(60)
def test_long_silence(bench):
    """Who follows while nothing is said is not taken for a slow client, and one that has gone is forgotten."""
    service = Service(bench, "--pin-after", "first", *OWN)
    program = Program(bench)
    follower, gone = Follower(service.sock, f"pid={program.pid}"), Follower(service.sock, f"pid={program.pid}")
    gone.close()
    end, alive = time.monotonic() + 14, []
    while time.monotonic() < end:
        line = follower.next(8)
        eq("kind of line", sorted(line), ["alive", "came"])
        alive.append(line["came"])
    true(f"signs of life at {alive}", len(alive) >= 4 and all(b - a < 8e9 * SLOW for a, b in zip(alive, alive[1:])))
    eq("followers", metric(service, "ttmond_live_advice_followers"), 1)
    eq("cut off as slow", metric(service, 'ttmond_http_closed_connections_total{reason="slow"}'), 0)
    program.do("dev")
    program.probed(service)
    program.do("own a 4096")
    time.sleep(0.3)
    program.do("copy a")
    eq("and then", follower.advice()["advice"], "pin")
    # The daemon ends while somebody follows.
    service.daemon.stop()
    eq("the end", follower.next(5), None)


def lines_said(service):
    """How many lines there have been: the head of a reader that does not stay says so."""
    head = json.loads(service.ask("/v1/advice/live?after=4000000000000000000")[2].splitlines()[0])
    return int(head["next"]) - 1


@alone("its 40,000 lines of advice push out those of others, whose service sees them too")
@timeout(120)
def test_slow_followers(bench):
    """Nobody waits for them: they are told what they missed, or cut off."""
    count = 40000
    service = Service(bench, "--pin-after", "first", *OWN)
    program = Program(bench)
    program.do("dev")
    program.probed(service)
    program.do("own a 64")
    time.sleep(0.3)
    slow, dead = (Follower(service.sock, f"pid={program.pid}", read=False) for _ in range(2))
    quick = Follower(service.sock, f"pid={program.pid}")
    program.do("copy a")
    eq("the quick one", quick.advice()["advice"], "pin")
    program.do(f"burst {count}")
    end = time.monotonic() + 30 * PATIENCE
    while lines_said(service) < count + 1 and time.monotonic() < end:
        time.sleep(0.1)
    slow.begin()
    lines = missed = 0
    last = 0
    while lines + missed < count + 1:
        line = slow.next(10)
        if line is None:
            break
        if "seq" in line:
            true("in order", line["seq"] > last)
            lines, last = lines + 1, line["seq"]
        missed += line.get("missed", 0)
    # Under emulation the burst takes longer than a client may take nothing: then it was cut off, and that is counted.
    stays = SLOW == 1 or lines + missed == count + 1
    if stays:
        true(f"{lines} lines, {missed} missed", lines >= 16384 and missed > 0)
        eq("in all", lines + missed, count + 1)
    true("missed, in metrics", metric(service, "ttmond_live_advice_missed_lines_total") >= missed)
    # The one that reads nothing at all.
    end = time.monotonic() + 30 * PATIENCE
    while metric(service, 'ttmond_http_closed_connections_total{reason="slow"}') < (1 if stays else 2):
        true("a client that takes nothing stays", time.monotonic() < end)
        time.sleep(0.5)
        while quick.lines[-1]["seq"] < last:
            quick.advice()
    eq("healthy", service.ask("/healthz")[0], 200)
    program.do("own z 64")
    program.do("copy z")
    if stays:
        eq("the slow one hears the next", slow.advice()["size"], 64)
    dead.close()


@timeout(60)
def test_checkpoint_lines(bench):
    """A period ends: a line of its own, and its label in those that follow."""
    lib = checkpoint_library(bench)
    service = Service(bench, "--pin-after", "first", *OWN)
    program = Program(bench, checkpoints=lib)
    follower = Follower(service.sock, f"pid={program.pid}")
    program.do("dev")
    program.probed(service)
    program.do("own a 4096")
    time.sleep(0.5)
    program.do("step epoch")
    line = follower.advice()
    eq("line", (line["advice"], line["period"], line["label"], "addr" in line), ("checkpoint", 1, "epoch", False))
    program.do("copy a")
    line = follower.advice()
    eq("line", (line["advice"], line["period"], line["label"]), ("pin", 1, "epoch"))
    program.do('step \x01"é\\')
    line = follower.advice()
    eq("line", (line["advice"], line["period"], line["label"]), ("checkpoint", 2, '\x01"é\\'))


def checkpoint_library(bench):
    source, lib = bench.path("step.c"), bench.path("libstep.so")
    with open(source, "w", encoding="utf-8") as f:
        f.write("#include <ttmon/usdt.h>\nvoid step(const char *label) { TTMON_CHECKPOINT(label); }\n")
    subprocess.run(
        [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", f"-I{TOP}/include", "-o", lib, source], check=True
    )
    return lib
