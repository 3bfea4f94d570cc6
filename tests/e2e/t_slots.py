# SPDX-License-Identifier: GPL-2.0-only
"""
Closed slots as they are published: --slots-out with `ttmon slots` in all its forms, and the segment
with its example program.
"""
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

from e2e import PATIENCE, SLOW, TOP, TTMON, Skip, eq, fast, standin, timeout, true
from tt_host import Unix

MS = 1_000_000
# Its own CPU time is what the kernel charged it with; the name is told apart by exec and prctl alike.
BUSY = """
import os, resource, sys, time
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end: pass
r = resource.getrusage(resource.RUSAGE_SELF)
print(os.getpid(), int((r.ru_utime + r.ru_stime) * 1e9))
"""


def ttmon(*args, status=0, data=None):
    done = subprocess.run([TTMON, *args], capture_output=True, input=data, check=False)
    eq(f"exit status of {args} ({done.stderr.decode().strip()})", done.returncode, status)
    return done.stdout.decode(), done.stderr.decode()


def slots_of(path, *args):
    return [json.loads(line) for line in ttmon("slots", "--json", *args, path)[0].splitlines()]


def record(bench, name, seconds=0.5):
    """A run with a busy program in it: (its pid, its CPU time in ns)."""
    daemon = bench.daemon("--slots-out", bench.path(name), cmd=[sys.executable, "-c", BUSY, str(seconds)], wait=False)
    daemon.wait()
    pid, ns = daemon.stdout().split("\n")[0].split()
    return int(pid), int(ns)


def whole_slots(slots):
    """
    Those that were measured from beginning to end, on all CPUs: some of them are known many slots
    before the last one is.
    """
    most = max(s["cpus"] or 0 for s in slots)
    full = [i for i, s in enumerate(slots) if s["cpus"] == most]
    with_cpu = slots[full[0] : full[-1] + 1]
    true("slots with CPU time", len(with_cpu) > 100)
    return with_cpu[2:-2]


@fast
@timeout(60)
def test_file(bench):
    """Each slot once, closed exactly; the program's time is its own; small enough."""
    pid, spent = record(bench, "s.gz")
    slots = slots_of("s.gz")
    numbers = [s["slot"] for s in slots]
    eq("slot numbers", numbers, list(range(numbers[0], numbers[0] + len(numbers))))
    eq("slots that are not in the file", sum(s["missed_before"] for s in slots), 0)
    for s in whole_slots(slots):
        eq(f"closure of {s['slot']}", s["user_ns"] + s["kernel_ns"] + s["idle_ns"] + s["missing_ns"], s["cpus"] * MS)
        eq(f"rows of {s['slot']}", sum(r["cpu_ns"] for r in s["rows"]) + s["missing_ns"], s["cpus"] * MS)
        for cls in ("user", "kernel", "idle"):
            eq(f"{cls} of {s['slot']}", sum(r["cpu_ns"] for r in s["rows"] if r["class"] == cls), s[f"{cls}_ns"])
    mine = [r for s in slots for r in s["rows"] if r["pid"] == pid and r["class"] == "user"]
    got = sum(r["cpu_ns"] for r in mine)
    switches = sum(r["switches"] for r in mine)
    # getrusage is rounded to us and ends before the program does; it begins before ttmond looks.
    true(
        f"{got} ns of CPU time, the kernel says {spent}",
        abs(got - spent) <= spent * 0.05 + 20_000 * switches + 20 * MS * SLOW,
    )
    eq("start times of the program", len({r["start_ns"] for r in mine}), 1)
    rows = sum(len(s["rows"]) for s in slots)
    size = os.path.getsize("s.gz") / rows
    true(f"{size:.1f} bytes a row", size <= 20)


def test_writer_is_as_timely_as_the_hot_thread(bench):
    """
    Both run at the lowest real-time priority: (class, priority) as /proc/PID/task/TID/stat has
    them. The others do not.
    """
    daemon = bench.daemon(*bench.service_args(), "--slots-out", "s")
    threads = {}
    tasks = f"/proc/{daemon.proc.pid}/task"
    for tid in os.listdir(tasks):
        with open(f"{tasks}/{tid}/stat", encoding="ascii") as f:
            name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
        fields = rest.split()
        threads[name] = (int(fields[38]), int(fields[37]))
    soon = (os.SCHED_RR, os.sched_get_priority_min(os.SCHED_RR))
    # Its first work, if another program of this host has a library that is probed, starts each of them.
    for name in ("ttmond-attach", "ttmond-detach"):
        eq(name, threads.pop(name, (os.SCHED_OTHER, 0)), (os.SCHED_OTHER, 0))
    eq("threads", threads, {"ttmond": (os.SCHED_OTHER, 0), "ttmond-hot": soon, "ttmon-slots": soon})
    daemon.stop()


@timeout(60)
def test_forms(bench):
    """JSON, CSV, sums and table of one file say the same."""
    pid, _ = record(bench, "s", 0.2)
    slots = slots_of("s")
    out, _ = ttmon("slots", "--csv", "s")
    lines = list(csv.DictReader(io.StringIO(out)))
    flat = [(s, r) for s in slots for r in s["rows"]]
    eq("rows of the CSV", len(lines), len(flat))
    for line, (s, r) in zip(lines, flat):
        for name, value in line.items():
            want = s[name] if name in ("slot", "ms") else r.get(name) if name == "at_least" else r[name]
            if name == "flags":
                want = " ".join(want)
            elif name == "rmid":
                want = want or 0
            elif want is True:
                want = "true"
            eq(f"{name} of slot {s['slot']}", value, "" if want is None else str(want))
    sums = [json.loads(x) for x in ttmon("slots", "--json", "--sum", "s")[0].splitlines()]
    eq("time in the sums", sum(x["cpu_ns"] for x in sums), sum(r["cpu_ns"] or 0 for _, r in flat))
    mine = [x for x in sums if x["pid"] == pid and x["class"] == "user"]
    eq("sums of the program", len(mine), 1)
    eq("its time", mine[0]["cpu_ns"], sum(r["cpu_ns"] or 0 for _, r in flat if r["pid"] == pid))
    eq("order of the sums", [x["cpu_ns"] for x in sums], sorted((x["cpu_ns"] for x in sums), reverse=True))
    known = any(r["cycles"] for _, r in flat)
    table, _ = ttmon("slots", "s")
    eq("columns of the table", "IPC" in table.splitlines()[0], known)
    eq(
        "a figure that is not known is never 0",
        any(r["cycles"] == 0 for s, r in flat if "has_ctr" not in s["flags"]),
        False,
    )
    true("lines of the table", len(table.splitlines()) >= len(flat) + 1)
    with open("s", "rb") as f:
        eq("through a pipe", ttmon("slots", "-", data=f.read())[0], table)
    # Of one process, of a range, of the largest.
    only = slots_of("s", "--pid", str(pid))
    eq("rows of the process alone", [r for s in only for r in s["rows"]], [r for _, r in flat if r["pid"] == pid])
    middle = slots[len(slots) // 2]
    eq("one slot by number", slots_of("s", "--from", f"@{middle['slot']}", "--to", f"@{middle['slot'] + 1}"), [middle])
    eq("one slot by time", slots_of("s", "--from", str(middle["ms"]), "--to", str(middle["ms"] + 1)), [middle])
    top = slots_of("s", "--top", "1")
    true("one process a slot", all(len([r for r in s["rows"] if r["class"] != "idle"]) <= 1 for s in top))
    by_slot, _ = ttmon("slots", "--slots", "s")
    eq("lines by slot", len(by_slot.splitlines()), len(slots) + 1)


@timeout(60)
def test_damaged(bench):
    """What is good is shown, one line says what is not, and the status is 1."""
    record(bench, "s", 0.2)
    with open("s", "rb") as f:
        data = bytearray(f.read())
    whole = slots_of("s")
    with open("cut", "wb") as f:
        f.write(data[:-20])
    out, err = ttmon("slots", "--json", "cut", status=1)
    eq("slots of a cut file", [json.loads(x) for x in out.splitlines()], whole)
    eq("lines about it", len(err.splitlines()), 1)
    true(err, err.startswith("ttmon: cut: ends without its last block"))
    data[len(data) // 2] ^= 1
    with open("bad", "wb") as f:
        f.write(data)
    out, err = ttmon("slots", "--json", "bad", status=1)
    eq("slots before the damage", [json.loads(x) for x in out.splitlines()], whole[: len(out.splitlines())])
    true("some are lost", len(out.splitlines()) < len(whole))
    eq("lines about it", len(err.splitlines()), 1)
    true(err, "damaged" in err)
    with open("foreign", "w", encoding="utf-8") as f:
        f.write("{}")
    _, err = ttmon("slots", "foreign", status=2)
    eq("a foreign file", err, "ttmon: foreign: not a slot file of ttmond (--slots-out)\n")
    bench.refused(["--slots-out", "/dev/full"], "/dev/full", "No space", cmd=["true"])
    bench.refused(["--slots-out", "/nonexistent/x"], "/nonexistent/x", "No such file", cmd=["true"])


def ask(bench, method, path):
    conn = Unix(bench.path("sock"))
    conn.request(method, path)
    reply = conn.getresponse()
    body = reply.read()
    eq(f"{method} {path} ({body[:300]!r})", reply.status, 200)
    return json.loads(body)


def ledger(bench, n):
    """One whose probes are in before it calls: started by us, and its own book."""
    out = bench.path(f"ledger-{time.monotonic_ns()}.json")
    target = bench.target(standin("ledger"), "--calls", str(n), "--out", out, "--wait")
    ask(bench, "PUT", f"/v1/targets?pid={target.pid}")
    target.go()
    eq("last line", target.line(60), "done\n")
    target.go()
    target.finish()
    with open(out, encoding="utf-8") as f:
        return target.pid, json.load(f)


def check_known(slots):
    """What no family told is never 0."""
    for s in slots:
        for x in [s] + s["rows"]:
            if "transfer" not in s["known"]:
                true(f"copies of {x}", x["copies"] is None or x["copies"] > 0 and x["at_least"])
                true(f"bytes of {x}", x["copy_bytes"] is None or x["copy_bytes"] > 0 and x["at_least"])
            else:
                true(f"copies of {x}", x["copies"] is not None and x["copy_bytes"] is not None)
        if not {"alloc", "tenstorrent"} <= set(s["known"]):
            true(f"held in {s}", s["pinned_pages"] is None and all(r["pinned_bytes"] is None for r in s["rows"]))
        if not {"tenstorrent", "dispatch"} <= set(s["known"]):
            true(f"dispatches of {s}", not s["tt_dispatches"] and s["tt_dispatches"] != 0 and s["tt_busy_ns"] != 0)


@fast
@timeout(120)
def test_families(bench):
    """
    While transfers are counted only, and dispatches off, no slot says 0 of them: null, "-", empty;
    in JSON, CSV, the table, sums, the segment.
    """
    daemon = service(
        bench,
        "--listen-address",
        "none",
        "--cpu",
        "on",
        "--shm-slots",
        "128",
        "--slots-out",
        bench.path("s"),
        "--record",
        bench.path("rec"),
    )
    ask(bench, "PUT", "/v1/families?name=transfer&state=counting")
    ask(bench, "PUT", "/v1/families?name=dispatch&state=off")
    unseen, _ = ledger(bench, 300)
    end = time.monotonic() + 10 * PATIENCE
    while True:
        doc = ask(bench, "GET", "/v1/slots?last=4")
        if all("transfer" not in s["known"] and "dispatch" not in s["known"] for s in doc["slots"]):
            break
        true("the segment says that transfers are seen", time.monotonic() < end)
    check_known(doc["slots"])
    true("copies in the segment", all(s["copies"] is None and s["tt_dispatches"] is None for s in doc["slots"]))
    ask(bench, "PUT", "/v1/families?name=transfer&state=on")
    seen, _ = ledger(bench, 300)
    ask(bench, "PUT", "/v1/families?name=cpu&state=off")
    while ask(bench, "GET", "/v1/slots?last=1")["slots"][0]["cpus"] is not None:
        true("the segment says that CPU time is measured", time.monotonic() < end + 20 * PATIENCE)
    daemon.stop()
    slots = slots_of("s")
    check_known(slots)
    true("mmap is not told by a service", all("mmap" not in s["known"] for s in slots))
    eq("CPU time and the family", [s for s in slots if ("cpu" in s["known"]) > (s["cpus"] is not None)], [])
    no_cpu = [s for s in slots if "has_cpu" not in s["flags"]]
    true("slots without CPU time", no_cpu and all(s["cpus"] is None and s["idle_ns"] is None for s in no_cpu))
    without = [s for s in slots if "transfer" not in s["known"]]
    true("slots in which transfers were counted", len(without) > 10)
    eq("copies there", {r["copies"] for s in without for r in s["rows"] if r["pid"] == unseen}, {None})
    rows = [r for s in slots if "transfer" in s["known"] for r in s["rows"] if r["pid"] == seen]
    true("copies that were seen", sum(r["copies"] for r in rows) > 0)
    # The same in all forms.
    lines = list(csv.DictReader(io.StringIO(ttmon("slots", "--csv", "--slots", "s")[0])))
    eq("lines of the CSV", len(lines), len(slots))
    for line, s in zip(lines, slots):
        eq("families", line["known"].split(), s["known"])
        eq("lower bound", line["at_least"], "true" if s.get("at_least") else "")
        for name in ("allocs", "frees", "copies", "copy_bytes", "pinned_pages", "tt_dispatches", "tt_busy_ns"):
            eq(f"{name} of {s['slot']}", line[name], "" if s[name] is None else str(s[name]))
    sums = {x["pid"]: x for x in (json.loads(line) for line in ttmon("slots", "--json", "--sum", "s")[0].splitlines())}
    eq("sum of one that was not seen", sums[unseen]["copies"], None)
    eq("sum of one that was", sums[seen]["copies"], sum(r["copies"] for r in rows))
    table, why = ttmon("slots", "--sum", "s")
    at = table.splitlines()[0].index("copies")
    line = [x for x in table.splitlines() if x.split()[0] == str(unseen)][0]
    eq("its copies and their bytes", line[at - 3 :].split()[:2], ["-", "-"])
    true(
        why,
        f"{len(without):,} of {len(slots):,} slots transfers were not all seen" in why
        and "CPU time was not measured" in why,
    )
    by_slot = [x.split() for x in ttmon("slots", "--slots", "s")[0].splitlines()[1:]]
    eq("CPUs of a slot without CPU time", {x[2] for x, s in zip(by_slot, slots) if s["cpus"] is None}, {"-"})
    # A replay knows it too.
    bench.daemon("--quiet", "--replay", bench.path("rec"), "--slots-out", bench.path("again"), wait=False).wait()
    again = slots_of("again")
    by_no = {s["slot"]: s for s in slots}
    same = [s for s in again if s["slot"] in by_no]
    true("slots of the replay", len(same) > len(slots) // 2)
    eq(
        "families that the replay knows",
        [
            (s["slot"], s["known"])
            for s in same
            if "transfer" in s["known"] and "transfer" not in by_no[s["slot"]]["known"]
        ],
        [],
    )
    check_known(again)


def example(bench):
    """The example program, looking at the segment in this folder."""
    path = bench.path("ttmon-slots")
    done = subprocess.run(
        [
            "cc",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-I",
            os.path.join(TOP, "include"),
            f'-DTTMON_SHM_PATH="{bench.path("ttmon.v1")}"',
            os.path.join(TOP, "docs/examples/ttmon-slots.c"),
            "-o",
            path,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"the example does not compile: {done.stderr.splitlines()[:3]}")
    return path


def service(bench, *args):
    return bench.daemon("--socket", bench.path("sock"), "--shm-root", bench.dir, *args)


@timeout(90)
def test_segment(bench):
    """
    A live reader sees the program; the second daemon is refused; a killed one is replaced, and
    readers are told of each end.
    """
    if not any(os.access(os.path.join(p, "cc"), os.X_OK) for p in os.environ["PATH"].split(":")):
        raise Skip("no C compiler")
    path, segment = example(bench), bench.path("ttmon.v1")
    done = subprocess.run([path, "1"], capture_output=True, text=True, check=False)
    eq("without a ttmond", (done.returncode, done.stderr), (1, f"{segment}: No such file or directory\n"))
    daemon = service(bench)
    true("others may read it", not os.stat(segment).st_mode & 0o027)
    busy = subprocess.Popen([sys.executable, "-c", BUSY, "3"], stdout=subprocess.DEVNULL)
    bench.procs.append(busy)
    done = subprocess.run([path, "2"], capture_output=True, text=True, timeout=40, check=True)
    true(
        f"{busy.pid} is not in {done.stdout!r}",
        any(line.split()[0] == str(busy.pid) for line in done.stdout.splitlines()),
    )
    busy.kill()
    eq("blocks of a second", done.stdout.count("1000 slots"), 2)
    second = bench.daemon("--socket", bench.path("sock2"), "--shm-root", bench.dir, "--quiet")
    second.wait_line(rf"DEGRADED: .*another ttmond \(pid {daemon.proc.pid}\)")
    second.stop()
    # Killed: it cannot say so.
    follow = subprocess.Popen([path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    bench.procs.append(follow)
    time.sleep(0.2)
    daemon.proc.send_signal(signal.SIGKILL)
    daemon.proc.wait()
    eq("of a killed one", follow.communicate(timeout=20)[1], f"{segment}: ttmond was killed: it writes no more\n")
    true("a killed one leaves its segment", os.path.exists(segment))
    follow = subprocess.Popen([path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    bench.procs.append(follow)
    time.sleep(0.2)
    daemon = service(bench)
    eq("of one that was replaced", follow.communicate(timeout=20)[1].split(": ")[0], segment)
    follow = subprocess.Popen([path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    bench.procs.append(follow)
    time.sleep(0.5)
    daemon.stop()
    eq("of one that ended", follow.communicate(timeout=20)[1], f"{segment}: ttmond has ended\n")
    true("the name is gone", not os.path.exists(segment))
