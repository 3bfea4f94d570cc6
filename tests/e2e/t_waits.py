# SPDX-License-Identifier: GPL-2.0-only
"""Where the time of synchronous calls went, against the kernel's counters as tests/standin/waits.c read them."""
import contextlib
import json
import os
import re
import subprocess
import sys

from e2e import SLOW, TTMON, eq, last_json, load_db, long, process, standin, timeout, true, whole

PARTS = ("on_cpu_ns", "run_queue_ns", "blocked_ns")
# Held until its probes are in, however busy the machine is.
PATIENT = {"TTMOND_HOLD_MS": "10000"}
STATE_OF_ERROR = 20000  # ns a wait for a CPU may be off, for the run queue's clock stands still at some wake-ups


def stolen():
    """Time that a hypervisor took from all CPUs so far, ns."""
    with open("/proc/stat", encoding="utf-8") as f:
        return int(f.readline().split()[8]) * 10**9 // os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def hogs(*cpus):
    """A process on each of these CPUs that never gives it away."""

    def pin(cpu):
        return lambda: os.sched_setaffinity(0, {cpu})

    cmd = [sys.executable, "-c", "while True: pass"]
    # pylint: disable-next=subprocess-popen-preexec-fn,consider-using-with
    running = [subprocess.Popen(cmd, preexec_fn=pin(cpu)) for cpu in cpus]
    try:
        yield running
    finally:
        for p in running:
            p.kill()
            p.wait()


def adds_up(what, s):
    eq(f"{what}: sum of the parts less the time", sum(s[k] or 0 for k in PARTS) + s["unknown_ns"] - (s["ns"] or 0), 0)
    true(f"{what}: a part is negative: {s}", all((s[k] or 0) >= 0 for k in PARTS))
    named(what, s)
    eq(f"{what}: calls in the histogram", sum(s["histogram"]), s["calls"] - s["unobserved"])


def named(what, s):
    """The run queue and the blocked time are divided too, and the rows of a call are part of that."""
    for role, key, total in (("ran", "run_queue_by", "run_queue_ns"), ("woke", "woken_by", "blocked_ns")):
        by = s[key] or {}
        eq(f"{what}: {key}", sum(by.values()), s[total] or 0)
        for suffix, classes in (("", ("other_process", "own_process")), ("_kernel", ("kernel_thread",))):
            rows = sum(w["ns"] for w in s.get("who", ()) if w["role"] == role + suffix)
            if "who" in s:
                eq(f"{what}: rows of {role}{suffix}", rows, sum(by.get(k, 0) for k in classes))


def all_add_up(db):
    for p in db["processes"]:
        for kind, s in (p["waits"] or {}).items():
            adds_up(f"process {p['pid']}, {kind}", s)
    for row in db["waits"]["sites"]:
        adds_up(f"{row['fn']} of process {row['process']}", row)
    for c in db["waits"]["calls"]:
        if c["on_cpu_ns"] is not None:
            eq(f"parts of {c}", sum(c[k] for k in PARTS), c["ns"])
        named(f"{c}", c)
    for p in db["processes"]:
        by_site = sum(r["ns"] or 0 for r in db["waits"]["sites"] if r["process"] == p["index"])
        eq("time by site", by_site, sum(s["ns"] or 0 for s in (p["waits"] or {}).values()))


def held(bench, mode, count, us, cpu=-1, seed=1, args=()):
    """Runs the program and holds the sums against its books."""
    before = stolen()
    out, db, _ = bench.trace([standin("waits"), mode, str(count), str(us), str(cpu), str(seed)], *args, env=PATIENT)
    steal = stolen() - before
    book = last_json(out)
    whole(db)
    all_add_up(db)
    s = process(db, book["pid"])["waits"]["sync"]
    inner, outer = book["inner"], book["outer"]
    print(
        f"{mode}: {s['calls']} calls, on {s['on_cpu_ns']} in [{inner['cpu']}, {outer['cpu']}] + steal {steal}, "
        f"run queue {s['run_queue_ns']} in [{inner['runq']}, {outer['runq']}], "
        f"unknown {s['unknown']} of {s['unknown_ns']} ns"
    )
    eq("calls", s["calls"], count)
    eq("unobserved, unended", (s["unobserved"], s["unended"]), (0, 0))
    # A kernel that keeps switches from tracers: those calls are told apart, and not wrong.
    true(f"too many calls with hidden switches: {s}", s["unknown"] <= max(2, count // 100))
    unknown = s["unknown_ns"]
    true("time", inner["ns"] <= s["ns"] <= outer["ns"])
    true("CPU time", inner["cpu"] * 0.998 - unknown <= (s["on_cpu_ns"] or 0) <= outer["cpu"] * 1.002 + steal)
    slack = max(inner["runq"] // 100, STATE_OF_ERROR)
    true("run queue", inner["runq"] - slack - unknown <= (s["run_queue_ns"] or 0) <= outer["runq"] + slack)
    return s, book, db


def test_spinning(bench):
    """A context that spins: all of it is on the CPU, and no thread of the driver's is involved."""
    s, _, db = held(bench, "spin", 300, 1000)
    # The clocks of the run queue and of the call differ by 0.1 % at most, and by some 100 ns at a switch.
    clocks = max(STATE_OF_ERROR, s["run_queue_ns"] // 1000, 500 * s["involuntary_switches"])
    true(f"blocked though it only spun: {s}", s["blocked_ns"] <= clocks or s["voluntary_switches"])
    rows = [r for r in db["waits"]["sites"] if r["fn"] == "cudaStreamSynchronize"]
    eq("one call site", (len(rows), rows[0]["kind"], rows[0]["calls"]), (1, "sync", 300))
    frames = db["sites"][rows[0]["site"]]["frames"]
    true(f"its caller is the program's own function: {frames}", frames and frames[0][2] and "run" in frames[0][2])


def test_blocked(bench):
    """A blocking context: its time is blocked, but for the few microseconds to fall asleep and to wake."""
    for mode in ("futex", "pipe"):
        s, _, _ = held(bench, mode, 300, 2000)
        true(f"{mode}: {s}", s["blocked_ns"] > 0.9 * (s["ns"] - s["unknown_ns"] - s["run_queue_ns"]))
        true("it slept once a call at least", s["voluntary_switches"] >= 300)


def test_beside_a_hog(bench):
    """Preempted by others on its CPU: they have their part, and it is not called blocked."""
    cpu = max(os.sched_getaffinity(0))
    with hogs(cpu):
        s, _, _ = held(bench, "spin", 40, 20000, cpu)
        true(f"nobody waited: {s}", s["run_queue_ns"] > s["on_cpu_ns"] // 4)
        slept = s["voluntary_switches"]
        true(f"blocked though only preempted: {s}", s["blocked_ns"] <= 2000 * s["involuntary_switches"] or slept)
        held(bench, "yield", 40, 5000, cpu)
        held(bench, "mix", 300, 1000, cpu, 5)


def test_with_cpu_time(bench):
    """Where CPU time is measured the same program sees the switches."""
    held(bench, "mix", 1000, 300, -1, 3, ("--slots-out", bench.path("slots")))


def test_faults(bench):
    s, book, _ = held(bench, "fault", 500, 1)
    true(f"faults {s['minor_faults']} of {book['minor']}", 500 <= s["minor_faults"] <= book["minor"])


def test_thread_ends_inside(bench):
    """The call is told, with the parts up to the end of its thread; the other thread's are not mixed up with it."""
    out, db, _ = bench.trace([standin("waits"), "die", "3", "2000"], env=PATIENT)
    book = last_json(out)
    whole(db)
    all_add_up(db)
    s = process(db, book["pid"])["waits"]["sync"]
    eq("calls, unended", (s["calls"], s["unended"]), (4, 1))
    lost = [c for c in db["waits"]["calls"] if "unended" in c["flags"]]
    eq("one", len(lost), 1)
    true(f"not this thread's: {lost}", lost[0]["tid"] != book["tid"])
    true(f"it took 1 ms at least: {lost}", lost[0]["ns"] >= 10**6)


def test_exec_inside(bench):
    out, db, _ = bench.trace([standin("waits"), "exec", "3", "2000"], env=PATIENT)
    book = last_json(out)
    whole(db)
    all_add_up(db)
    s = process(db, book["pid"])["waits"]["sync"]
    eq("calls, unended", (s["calls"], s["unended"]), (4, 1))
    flagged = [set(c["flags"]) for c in db["waits"]["calls"] if c["flags"]]
    # An exec may move the thread to another CPU: a switch that is not always seen, and is said then.
    true(f"flags {flagged}", len(flagged) == 1 and "exec" in flagged[0] and flagged[0] <= {"exec", "hidden_switch"})


def test_never_returns(bench):
    """Killed inside: the time up to then is told, blocked."""
    daemon = bench.daemon("--dump-db", bench.path("db.json"), cmd=[standin("waits"), "stay", "1", "1000"], wait=False)
    daemon.wait_tracing()
    pid = None
    while pid is None:
        for child in os.listdir("/proc"):
            if not child.isdigit():
                continue
            with contextlib.suppress(OSError):
                with open(f"/proc/{child}/stat", encoding="utf-8") as f:
                    name, rest = f.read().rsplit(")", 1)
                with open(f"/proc/{child}/syscall", encoding="utf-8") as f:
                    paused = f.read().split()[0] == "34"  # pause(), x86-64
                if int(rest.split()[1]) == daemon.proc.pid and name.endswith("(waits") and paused:
                    pid = int(child)
    os.kill(pid, 9)
    daemon.wait(137)
    db = load_db(bench.path("db.json"))
    all_add_up(db)
    calls = db["waits"]["calls"]
    eq("calls", [(c["fn"], c["flags"]) for c in calls], [("cudaStreamSynchronize", ["unended"])])
    true(f"blocked: {calls}", calls[0]["blocked_ns"] is not None and calls[0]["blocked_ns"] > calls[0]["on_cpu_ns"])


def test_nested_calls(bench):
    """What the runtime's calls do in the driver is part of them."""
    for env in ({}, {"STANDIN_NESTED": "1"}):
        out, db, _ = bench.trace([standin("scen"), "copies"], env=env)
        book = last_json(out)
        whole(db)
        all_add_up(db)
        waits = process(db, book["pid"])["waits"]
        copies = sum(r["calls"] for r in db["waits"]["sites"] if r["kind"] == "copy")
        eq("copies", waits["copy"]["calls"], copies)
        true("only the runtime's functions", all(r["fn"].startswith("cuda") for r in db["waits"]["sites"] if r["fn"]))


def test_without_return_probes(bench):
    """Calls are counted, and nothing is said of their time."""
    out, db, _ = bench.trace([standin("waits"), "spin", "5", "100"], "--no-return-probes")
    s = process(db, last_json(out)["pid"])["waits"]["sync"]
    eq("calls", (s["calls"], s["unobserved"]), (5, 5))
    eq("time", [s[k] for k in ("ns", *PARTS, "unknown_ns")], [None, None, None, None, 0])
    eq("no call is in the list", db["waits"]["calls"], [])


def test_without_sessions(bench):
    """Kernels before 6.13 have a link for returns; before 6.6 tracefs events."""
    for env in ({"TTMOND_NO_UPROBE_SESSION": "1"}, {"TTMOND_NO_UPROBE_MULTI": "1"}):
        out, db, _ = bench.trace([standin("waits"), "futex", "50", "300"], env=env)
        whole(db)
        all_add_up(db)
        s = process(db, last_json(out)["pid"])["waits"]["sync"]
        eq(f"calls with {env}", (s["calls"], s["unobserved"]), (50, 0))
        true(f"blocked with {env}: {s}", s["blocked_ns"] > s["ns"] // 4)


# ---- who ran meanwhile ----

# Runs in bursts, at a real-time priority so that nothing else runs on its CPU then. Prints the begin and end of each.
BURSTS = """
import os, sys, time
cpu, priority, run, rest = map(int, sys.argv[1:5])
os.sched_setaffinity(0, {cpu})
if priority:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
print("ready", flush=True)
bursts = []
while os.getppid() == int(sys.argv[5]) and not os.path.exists(sys.argv[6]):
    time.sleep(rest / 1e9)
    begin = time.monotonic_ns()
    while time.monotonic_ns() < begin + run:
        pass
    bursts.append(f"{begin} {time.monotonic_ns()}")
print("\\n".join(bursts))
"""


class Bursts:
    """A process that competes for a CPU in bursts of which it keeps a log."""

    def __init__(self, bench, cpu, priority, run_ns, rest_ns):
        self.end = bench.path(f"end-{cpu}-{priority}")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.end)
        args = [cpu, priority, run_ns, rest_ns, os.getpid(), self.end]
        cmd = [sys.executable, "-c", BURSTS, *map(str, args)]
        # pylint: disable-next=consider-using-with
        self.proc = subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True)
        self.pid = self.proc.pid
        self.log = []

    def __enter__(self):
        if self.proc.stdout.readline() != "ready\n":
            raise AssertionError("the competitor has not started")
        return self

    def __exit__(self, *_):
        with open(self.end, "w", encoding="utf-8"):
            pass
        out, _ = self.proc.communicate()
        self.log = [tuple(map(int, line.split())) for line in out.splitlines()]

    def within(self, begin, end):
        """ns of its bursts in this time, and how many they were."""
        parts = [min(e, end) - max(b, begin) for b, e in self.log if b < end and e > begin]
        return sum(parts), len(parts)


def may_be_real_time():
    cmd = [sys.executable, "-c", "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"]
    return subprocess.run(cmd, capture_output=True, check=False).returncode == 0


def competed(bench, count, us, args=()):
    """
    Calls beside a competitor on their CPU and a decoy on another one. Caller and competitor have a real-time priority,
    so that what else a busy machine runs does not take part: then each wait is the competitor's.
    """
    cpu = max(os.sched_getaffinity(0))
    others = sorted(os.sched_getaffinity(0) - {cpu})
    if not others or not may_be_real_time():
        print("SKIP: it takes two CPUs and real-time priorities")
        return
    with Bursts(bench, cpu, 2, 700000, 1300000) as rival, Bursts(bench, others[0], 0, 700000, 1300000) as decoy:
        cmd = [standin("waits"), "spin", str(count), str(us), str(cpu), "7", "1"]
        out, db, _ = bench.trace(cmd, *args, env=PATIENT)
    whole(db)
    all_add_up(db)
    book = last_json(out)
    s = process(db, book["pid"])["waits"]["sync"]
    long_waits = [c for c in db["waits"]["calls"] if (c["run_queue_ns"] or 0) > 500000]
    right = [c for c in long_waits if c["who"] and c["who"][0]["pid"] == rival.pid]
    wrong = [w for w in db["waits"]["who"] if w["pid"] == decoy.pid]
    ns = sum(w["ns"] for w in db["waits"]["who"] if w["pid"] == rival.pid)
    by = s["run_queue_by"]
    print(f"{len(right)} of {len(long_waits)} calls that waited over 0.5 ms name the competitor; run queue {by}")
    # The database keeps the 1000 longest calls; waits.who sums up all of them.
    true(f"too few calls waited: {len(long_waits)}", len(long_waits) >= min(count, 1000) / 4)
    true(f"named wrongly: {[c for c in long_waits if c not in right][:3]}", len(right) >= 0.99 * len(long_waits))
    eq("the decoy", wrong, [])
    true(f"its time {ns} is not that of the waits: {by}", ns >= 0.97 * s["run_queue_ns"])
    # Its own log: a burst may begin a little earlier than its first clock reading, and end later than the last.
    if len(db["waits"]["calls"]) == s["calls"]:
        told = [rival.within(int(c["entry_ns"]), int(c["entry_ns"]) + c["ns"]) for c in db["waits"]["calls"]]
        truth, bursts = sum(t[0] for t in told), sum(t[1] for t in told)
        low, high = truth * 0.99 - 20000 * bursts, truth * 1.01 + 100000 * bursts
        true(f"{ns} ns named, {truth} ns in its log", low <= ns <= high)
    eq("calls", s["calls"], count)


def test_names_the_competitor(bench):
    """One after the other, since two of these at a time would compete with one another."""
    competed(bench, 100, 4000)
    competed(bench, 60, 4000, ("--slots-out", bench.path("slots")))


def woken(bench, mode, count=150, us=2000, args=()):
    out, db, _ = bench.trace([standin("waits"), mode, str(count), str(us), "-1", "3"], *args, env=PATIENT)
    whole(db)
    all_add_up(db)
    book = last_json(out)
    calls = [c for c in db["waits"]["calls"] if c["fn"] == "cudaStreamSynchronize" and (c["blocked_ns"] or 0) > 500000]
    s = process(db, book["pid"])["waits"]["sync"]
    print(f"{mode}: {len(calls)} of {s['calls']} calls were blocked over 0.5 ms, {s['woken_by']}")
    true(f"{mode}: too few calls were blocked", len(calls) >= 0.9 * count)
    return calls, s, book, db


def wakers(calls):
    """Of each call the process that ended most of its blocked time; None: no process."""
    rows = [[w for w in c["who"] if w["role"].startswith("woke")] for c in calls]
    return [max(r, key=lambda w: w["ns"]) if r else None for r in rows]


def test_names_who_woke_it(bench):
    """Another thread of the process; another process: in 99 of 100 calls, though others run meanwhile."""
    for mode, who, args in (("futex", "pid", ()), ("pipe", "child", ("--slots-out", bench.path("slots")))):
        calls, s, book, _ = woken(bench, mode, args=args)
        right = [w for w in wakers(calls) if w and w["pid"] == book[who] and w["role"] == "woke"]
        true(f"{mode}: {len(right)} of {len(calls)} name it", len(right) >= 0.99 * len(calls))
        part = s["woken_by"]["own_process" if who == "pid" else "other_process"]
        true(f"{mode}: {s['woken_by']}", part >= 0.97 * s["blocked_ns"])


def test_a_timer_is_no_process(bench):
    """It runs on top of any process, here of one that is always running: nobody is named."""
    cpu = max(os.sched_getaffinity(0))
    with hogs(cpu) as rivals:
        calls, s, _, db = woken(bench, "nap")
    # A kernel that keeps some threads from tracers also keeps what runs on top of them: that is unknown.
    by = s["woken_by"]
    true(f"timer: {by}", by["timer"] + by["unknown"] >= 0.98 * s["blocked_ns"] and by["timer"] >= 0.7 * s["blocked_ns"])
    pids = [p.pid for p in rivals]
    eq("named", [w for w in db["waits"]["who"] if w["role"] == "woke" and w["pid"] in pids], [])
    true("calls that name a process", len([w for w in wakers(calls) if w]) <= len(calls) // 100)


def test_behind_another_call(bench):
    """Who woke it was in a call itself: that call is told, with its site."""
    calls, _, book, db = woken(bench, "behind")
    told = [w for w in wakers(calls) if w and w["pid"] == book["child"] and w["in_call"] == "cudaMallocHost"]
    true(f"{len(told)} of {len(calls)} tell the call", len(told) >= 0.99 * len(calls))
    sites = {w["in_site"] for w in told}
    pins = {r["site"] for r in db["waits"]["sites"] if r["fn"] == "cudaMallocHost"}
    true(f"sites {sites}, those of the pins {pins}", sites and sites == pins - {0})
    names = db["sites"][sites.pop()]["frames"][0][2]
    true(f"its caller {names}", "child" in (names or "") or "main" in (names or ""))


# ---- throttled ----


@contextlib.contextmanager
def throttled_group(name, quota_us, period_us):
    """A cgroup with this share of a CPU, v1 or v2; None: there is no controller that may be used."""
    v1 = "/sys/fs/cgroup/cpu"
    v2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
    path = os.path.join("/sys/fs/cgroup" if v2 else v1, f"ttmon-e2e-{name}-{os.getpid()}")
    files = {"cpu.max": f"{quota_us} {period_us}"}
    if not v2:
        files = {"cpu.cfs_period_us": str(period_us), "cpu.cfs_quota_us": str(quota_us)}
    try:
        os.mkdir(path)
    except OSError:
        yield None
        return
    try:
        for file, text in files.items():
            with open(os.path.join(path, file), "w", encoding="utf-8") as f:
                f.write(text)
        yield path
    except OSError:
        yield None
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(path)


def throttled_ns(path):
    """By the kernel's own count, of the group."""
    with open(os.path.join(path, "cpu.stat"), encoding="utf-8") as f:
        rows = dict(line.split() for line in f)
    return int(rows.get("throttled_time", 0)) or int(rows.get("throttled_usec", 0)) * 1000


def test_own_throttling_is_nobodys(bench):
    """What its own cgroup took is not a process's, though a competitor runs on the same CPU all the time."""
    cpu = max(os.sched_getaffinity(0))
    with throttled_group("waits", 1000, 20000) as group, hogs(cpu) as rivals:
        if group is None:
            print("SKIP: no cgroup with a share of the CPU can be made here")
            return
        cmd = [standin("waits"), "spin", "40", "20000", str(cpu), "9"]
        out, db, _ = bench.trace(cmd, env=PATIENT | {"WAITS_CGROUP": os.path.join(group, "cgroup.procs")})
        truth = throttled_ns(group)
    whole(db)
    all_add_up(db)
    s = process(db, last_json(out)["pid"])["waits"]["sync"]
    by, pid = s["run_queue_by"], rivals[0].pid
    named_ns = sum(w["ns"] for w in db["waits"]["who"] if w["pid"] == pid)
    print(f"throttled {by['throttled']} of {truth} in cpu.stat; {by}; the competitor {named_ns}")
    true("it was throttled", truth > s["on_cpu_ns"])
    # The program does little outside its calls, and the rest of a call with a hidden switch is not known.
    low = 0.9 * truth - s["unknown_ns"] - by["unknown"]
    true(f"throttled {by['throttled']}, in truth {truth}", low <= by["throttled"] <= 1.02 * truth)
    true(f"the competitor {named_ns}, {by}", named_ns <= s["run_queue_ns"] - by["throttled"])


@long
@timeout(600)
def test_ten_thousand_waits(bench):
    competed(bench, int(10000 / SLOW), 4000)


@long
@timeout(900)
def test_a_million(bench):
    """The protocol's number of calls, beside a hog that has their CPU for half of the time."""
    cpu = max(os.sched_getaffinity(0))
    with hogs(cpu):
        held(bench, "mix", int(1000000 / SLOW), 20, cpu, 11)


@long
@timeout(300)
def test_hundred_thousand(bench):
    held(bench, "mix", int(100000 / SLOW), 20, -1, 13)


@timeout(60)
def test_command(bench):
    """ttmon waits: the sums are those of the database, each part in its column; what is not known is "-"."""
    _, db, _ = bench.trace([standin("waits"), "spin", "20", "1000", "-1", "1"])
    path = bench.path("db.json")
    done = subprocess.run([TTMON, "waits", path], capture_output=True, text=True, check=True)
    calls = sum(row["calls"] for row in db["waits"]["sites"])
    eq("calls", re.match(r"(\d+) synchronous calls took ", done.stdout).group(1), str(calls))
    row = max(db["waits"]["sites"], key=lambda r: r["ns"])
    line = next(x for x in done.stdout.splitlines() if x.endswith(f"  {row['fn']}"))
    eq("calls of the function", line.split()[0], str(row["calls"]))
    eq("longest", done.stdout.count("waits["), len(db["waits"]["sites"]) + min(5, len(db["waits"]["calls"])))
    eq("lines over 100 columns", [x for x in done.stdout.splitlines() if len(x) > 100], [])
    json_of = subprocess.run([TTMON, "waits", "--json", path], capture_output=True, text=True, check=True)
    eq("JSON", json.loads(json_of.stdout), db["waits"])
    # A part that nobody knows.
    for name in ("on_cpu_ns", "run_queue_ns", "blocked_ns"):
        row[name] = None
    with open(path, "w", encoding="utf-8") as f:
        json.dump(db, f)
    done = subprocess.run([TTMON, "waits", path], capture_output=True, text=True, check=True)
    line = next(x for x in done.stdout.splitlines() if x.endswith(f"  {row['fn']}"))
    eq("parts", [x for x in line.split() if x == "-"], ["-"] * 3)
    # A database of an earlier version.
    del db["waits"]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(db, f)
    done = subprocess.run([TTMON, "waits", path], capture_output=True, text=True, check=False)
    eq("none", (done.returncode, done.stdout, "no synchronous call was looked at" in done.stderr), (2, "", True))
