# SPDX-License-Identifier: GPL-2.0-only
"""
Call stacks by unwind tables: programs without frame pointers against their own books
(tests/standin/unwind.h), and what hurts the process that unwinds.
"""
import collections
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import time

from e2e import LINGER, PATIENCE, TOP, TTMON, Skip, eq, load_db, long, standin, true

DEPTH = ("--stack-depth", "32")
# Held until its probes are in, however busy the machine is.
PATIENT = {"TTMOND_HOLD_MS": "10000", **LINGER}
STATIC = ("--alloc-fn", "unwind_static:unwind_alloc,size=1,out=ret")


def frames_of(db, site):
    objects = {o["id"]: os.path.basename(o["path"]) for o in db["objects"]}
    return [f"{objects[o]}+{off}" for o, off, _ in db["sites"][site]["frames"]]


def read_book(path):
    """Stacks by address, in the order they were written; only frames in files."""
    book = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            addr, _, *frames = line.split()
            book.setdefault(addr, []).append([x for x in frames if not x.startswith("?")])
    return book


class Traced:
    """A program with a book, traced: what became of each of its stacks."""

    def __init__(self, bench, program, *options, env=None):
        book = bench.path(program + ".book")
        _, self.db, self.daemon = bench.trace(
            [standin(program)], *DEPTH, *options, env={"UNWIND_BOOK": book, **PATIENT, **(env or {})}
        )
        self.wrong, self.whole, self.n, self.by = [], 0, 0, {}
        stacks = read_book(book)
        for a in self.db["allocations"]:
            if a["method"] not in ("host_alloc", "custom"):
                continue
            want, got = stacks[a["addr"]].pop(0), frames_of(self.db, a["site"])[1:]
            stack = self.db["sites"][a["site"]].get("stack", {})
            self.n += 1
            self.by[stack.get("by")] = self.by.get(stack.get("by"), 0) + 1
            # Of a program with frame pointers two frames of libc are not seen at the end.
            less = 2 if stack.get("by") == "frame_pointers" else 0
            if got != want[: len(got)]:
                self.wrong.append((stack, got, want))
            elif stack.get("end") == "complete" and len(got) < len(want) - less:
                self.wrong.append((stack, got, want))
            self.whole += stack.get("end") == "complete"
        eq("pins without an allocation", sum(len(x) for x in stacks.values()), 0)

    def check(self, share, by):
        print(f"    {self.whole} of {self.n} stacks whole, {self.by}, {len(self.wrong)} wrong")
        eq("wrong stacks", self.wrong[:2], [])
        true(f"{self.whole} of {self.n} stacks are whole", self.whole >= share * self.n)
        eq("found by", set(self.by), by)


def test_c(bench):
    """
    Recursion, alloca, aligned frames, qsort, tail calls, signal handlers, longjmp, 16 threads, a
    library that is closed again.
    """
    Traced(bench, "unwind").check(0.99, {"tables"})


def test_cxx(bench):
    """Catch handlers, destructors while an exception is on its way, virtual functions, lambdas, algorithms, threads."""
    Traced(bench, "unwind_cxx").check(0.99, {"tables"})


def test_fixed_addresses(bench):
    Traced(bench, "unwind_nopie").check(0.99, {"tables"})


def test_static(bench):
    """
    All in one file, the C library too, and no CUDA: its own allocator. Slowly: it begins so soon that a busy machine
    has no table of it yet when the ring of copies is full.
    """
    Traced(bench, "unwind_static", *STATIC, env={"UNWIND_SLOW": "1"}).check(0.99, {"tables"})


def test_stripped(bench):
    """Names are gone, tables are not."""
    Traced(bench, "unwind_stripped").check(0.99, {"tables"})


def test_frame_pointers(bench):
    """
    A program that has them is copied once for each of its stacks, and its sites are those that it
    had without unwinding.
    """
    run = Traced(bench, "unwind_fp")
    run.check(0.99, {"frame_pointers", "tables"})
    true(f"most by frame pointers: {run.by}", run.by["frame_pointers"] > 0.7 * run.n)
    plain = Traced(bench, "unwind_fp", "--no-unwind")
    eq("nothing is said of them", set(plain.by), {None})

    def keys(db, by):
        return {s["key"] for s in db["sites"][1:] if by is None or s.get("stack", {}).get("by") == by}

    eq("keys that are new", keys(run.db, "frame_pointers") - keys(plain.db, None), set())


def stacks_of_size(db, size):
    """(how they were found, functions) of each allocation of this size."""
    found = []
    for a in db["allocations"]:
        if a["size"] == size and a["method"] in ("host_alloc", "custom"):
            site = db["sites"][a["site"]]
            found.append((site["stack"], [re.split("[+.]", f[2])[0] if f[2] else None for f in site["frames"]]))
    return found


def test_odd_places(bench):
    """
    A signal after each instruction of a function and of the PLT, which it calls through for the
    first time, and in the vDSO.
    """
    run = Traced(bench, "unwind")
    run.check(0.99, {"tables"})
    with open(standin("unwind"), "rb") as f:
        plt, n = section(f.read(), b".plt")
    steps = [a for a in run.db["allocations"] if a["size"] == 40960 and a["method"] == "host_alloc"]
    at = [int(run.db["sites"][a["site"]]["frames"][3][1], 16) - plt for a in steps]
    true(f"{len(steps)} steps", len(steps) > 20)
    true(
        f"in the PLT's first entry, and in another one: {at}",
        any(0 <= x < 16 for x in at) and any(16 <= x < n for x in at),
    )
    vdso = stacks_of_size(run.db, 45056)
    if not vdso:
        raise Skip("the vDSO asks the kernel for the time here")
    eq(
        "in the vDSO",
        [(stack["end"], "in_vdso" in names, names[-1]) for stack, names in vdso],
        [("complete", True, "_start")],
    )


def test_code_without_a_table(bench):
    """Code that the program makes: the walk ends there and says so, or believes a frame pointer and says that."""
    _, db, _ = bench.trace([standin("unwind")], *DEPTH, env={"UNWIND_JIT": "1", **PATIENT})
    eq(
        "no frame pointer",
        stacks_of_size(db, 49152),
        [({"by": "tables", "end": "no_table"}, ["unwind_pin", "from_made"])],
    )
    ((stack, names),) = stacks_of_size(db, 53248)
    eq(
        "a frame pointer",
        (stack, names[:3], names[-1]),
        ({"by": "guessed", "end": "complete"}, ["unwind_pin", "from_made", "main"], "_start"),
    )


def test_musl(bench):
    """Another C library: tables of the program's own functions are there, those of the library may be missing."""
    if not shutil.which("musl-gcc"):
        raise Skip("no musl-gcc")
    source = os.path.join(TOP, "tests", "standin", "unwind_musl.c")
    for kind, flags in (("static", ["-static", "-no-pie", "-fno-pie"]), ("dynamic", ["-pie", "-fPIE"])):
        program = bench.path("unwind_musl_" + kind)
        subprocess.run(
            [
                "musl-gcc",
                "-O2",
                "-fomit-frame-pointer",
                "-fno-optimize-sibling-calls",
                "-Wl,--build-id",
                *flags,
                "-o",
                program,
                source,
            ],
            check=True,
        )
        _, db, _ = bench.trace(
            [program], *DEPTH, "--alloc-fn", f"unwind_musl_{kind}:unwind_alloc,size=1,out=ret", env=PATIENT
        )
        got = {size: stacks_of_size(db, size) for size in (100, 200, 300)}
        for size, names in (
            (100, ["recursive"] * 6 + ["main"]),
            (200, ["on_signal"]),
            (300, ["recursive"] * 3 + ["in_thread"]),
        ):
            ((stack, frames),) = got[size]
            eq(f"{kind}, {size} bytes: {stack}", (stack["by"], frames[: len(names)]), ("tables", names))
            true(f"{kind}, {size} bytes: {stack}", stack["end"] in ("complete", "no_table"))
        print(f"    {kind}: {[(stack['end'], len(frames)) for s in got.values() for stack, frames in s]}")


def test_replayed(bench):
    """What was found in the copies is in the recording: the same database, and no memory of the program."""
    rec, db = bench.path("t.rec"), bench.path("again.json")
    Traced(bench, "unwind", "--record", rec)
    bench.daemon("--replay", rec, "--dump-db", db, wait=False).wait(0)
    with open(bench.path("db.json"), "rb") as a, open(db, "rb") as b:
        true("the replay differs", a.read() == b.read())


def test_who_copies(bench):
    """Ordinary memory is named by the whole stack of its first copy to the device."""
    db = Traced(bench, "unwind").db
    sites = [db["sites"][a["site"]] for a in db["allocations"] if a["method"] == "mmap" and a["site"]]
    eq("how", [s["stack"] for s in sites], [{"by": "tables", "end": "complete"}])
    names = [re.split("[+.]", f[2])[0] for f in sites[0]["frames"] if f[2]]
    eq("who", [names[:3], names[-1]], [["copy_inner", "copy_outer", "main"], "_start"])


def test_shown(bench):
    """`ttmon db show` says how a stack was found where that matters."""
    run = Traced(bench, "unwind")
    one = next(a for a in run.db["allocations"] if a["method"] == "host_alloc")
    text = subprocess.run(
        [TTMON, "db", "show", bench.path("db.json"), one["id"]], capture_output=True, text=True, check=True
    ).stdout
    true(text, re.search(r"stack +by unwind tables; it is whole", text))


def wait_for(what, condition):
    until = time.monotonic() + 10 * PATIENCE
    while not condition():
        true(what, time.monotonic() < until)
        time.sleep(0.01)


def unwinder_of(daemon):
    found = []

    def known():
        found[:] = re.findall(r"unwound by process (\d+)", daemon.stderr())
        return found

    wait_for("the process that unwinds says hello", known)
    return int(found[0])


def at_the_gate(bench, program, *options, env=None):
    """The program, half-way: (daemon, what lets it go on)."""
    gate = bench.path("gate")
    daemon = bench.daemon(
        "--log-level",
        "debug",
        "--dump-db",
        bench.path("db.json"),
        *DEPTH,
        *options,
        cmd=[program],
        env={"UNWIND_WAIT": gate, **PATIENT, **(env or {})},
        wait=False,
    )
    wait_for("the program is half-way", lambda: os.path.exists(gate + ".ready"))

    def go():
        with open(gate, "w", encoding="ascii"):
            pass

    return daemon, go


def call_stacks(sock):
    asked = subprocess.run([TTMON, "status", "--socket", sock, "--json"], capture_output=True, text=True, check=False)
    return json.loads(asked.stdout)["call_stacks"]


def hurt(bench, how):
    """
    The program goes on with 16 threads when the process that unwinds has been hurt: (database, the
    daemon's lines).
    """
    sock = bench.path("sock")
    daemon, go = at_the_gate(bench, standin("unwind_static"), *STATIC, "--socket", sock)
    pid = unwinder_of(daemon)
    wait_for(
        "all until now are found", lambda: (lambda s: s["found"] >= 85 and s["found"] == s["copied"])(call_stacks(sock))
    )
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        status = dict(x.split(":\t", 1) for x in f.read().splitlines())
    eq("capabilities", [status["CapEff"], status["CapPrm"], status["NoNewPrivs"]], ["0" * 16, "0" * 16, "1"])
    true("seccomp", status["Seccomp"] != "0")
    true(f"user {status['Uid']}", status["Uid"].split()[0] == "65534")
    os.kill(pid, how)
    go()
    daemon.wait(0)
    wait_for("it is gone", lambda: not os.path.exists(f"/proc/{pid}") or how == signal.SIGSTOP)
    db = load_db(bench.path("db.json"))
    pins = sum(a["method"] == "custom" for a in db["allocations"])
    true(f"{pins} pins are there", pins >= 80 + 1 + 4 + 16 * 16 and db["completeness"]["complete"])
    return db, daemon.stderr()


def test_status(bench):
    """How many stacks were copied, and how many of these found."""
    sock = bench.path("sock")
    daemon, go = at_the_gate(bench, standin("unwind"), "--socket", sock)
    wait_for("all are found", lambda: (lambda s: s["found"] >= 85 and s["found"] == s["copied"])(call_stacks(sock)))
    got = call_stacks(sock)
    eq("on, lost", (got["unwinding"], got["lost"]), (True, 0))
    eq("found", got["found"], got["copied"])
    text = subprocess.run([TTMON, "status", "-vs", sock], capture_output=True, text=True, check=False).stdout
    true(text, re.search(r"call stacks +[0-9]+ copied, [0-9]+ found by unwind tables", text))
    go()
    daemon.wait(0)


def test_budget(bench):
    """The CPU time of the process that unwinds is the daemon's: the budget has it."""
    sock = bench.path("sock")
    daemon, go = at_the_gate(
        bench,
        standin("unwind_static"),
        *STATIC,
        "--socket",
        sock,
        "--max-overhead",
        "100",
        env={"UNWIND_SPIN": "60", "TTMOND_BUDGET_MS": "200"},
    )
    pid = unwinder_of(daemon)

    def used(process):
        with open(f"/proc/{process}/stat", encoding="ascii") as f:
            return sum(int(x) for x in f.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")

    def now():
        return time.monotonic(), used(daemon.proc.pid), used(pid)

    start = call_stacks(sock)["copied"]
    go()
    wait_for("it spins", lambda: call_stacks(sock)["copied"] > start + 1000)
    began, shares = now(), []
    while now()[0] - began[0] < 2 or now()[2] - began[2] < 0.15:
        time.sleep(0.2)
        shares.append(
            json.loads(
                subprocess.run(
                    [TTMON, "status", "--socket", sock, "--json"], capture_output=True, text=True, check=False
                ).stdout
            )["budget"]["daemon_percent"]
        )
    ended, stacks = now(), call_stacks(sock)
    wall, own, helper = (b - a for a, b in zip(began, ended))
    told = sum(shares) / len(shares) / 100 * wall * os.cpu_count()
    print(
        f"    daemon {own:.2f} s, process that unwinds {helper:.2f} s in {wall:.2f} s; the budget has {told:.2f} s; "
        f"{stacks}"
    )
    true(f"cpu_ns {stacks['cpu_ns']}", abs(stacks["cpu_ns"] / 1e9 - used(pid)) < 0.2 * used(pid) + 0.05)
    true(f"the budget has {told:.2f} s of {own:.2f} + {helper:.2f} s", told > own + 0.4 * helper)
    os.kill(int(re.search(r"tracing .* \(process (\d+)\)", daemon.stderr()).group(1)), signal.SIGTERM)
    daemon.wait(None)


@long
def test_beside_one_that_allocates_all_the_time(bench):
    """The ring of copies is full of one process's stacks: another one's are copied and found all the same."""
    both = f"UNWIND_SPIN=60 {standin('unwind_static')} & sleep 0.3; UNWIND_SLOW=1 {standin('unwind')}; kill $!; wait"
    _, db, daemon = bench.trace(["sh", "-c", both], *DEPTH, *STATIC, env=PATIENT)
    lost = re.search(r"(\d+) call stacks of code that may have no frame pointers could not be copied", daemon.stderr())
    pins = [a for a in db["allocations"] if a["method"] == "host_alloc"]
    by = collections.Counter(db["sites"][a["site"]]["stack"]["by"] for a in pins)
    print(f"    {by}; lost of the one that fills the ring: {lost and lost.group(1)}")
    true(f"{len(pins)} pins", len(pins) > 300)
    eq("found by", set(by), {"tables"})


def test_deleted(bench):
    """The program's file has no name any more when the rest of its stacks are taken."""
    program = bench.path("unwind_static")
    shutil.copy(standin("unwind_static"), program)
    daemon, go = at_the_gate(bench, program, *STATIC, env={"UNWIND_SLOW": "1"})
    os.unlink(program)
    go()
    daemon.wait(0)
    db = load_db(bench.path("db.json"))
    after = [s for s in db["sites"][1:] if any("in_thread" in f[2] for f in s["frames"] if f[2])]
    eq("stacks", {(s["stack"]["by"], s["stack"]["end"]) for s in after}, {("tables", "complete")})
    eq("all of the threads", sum(s["allocs"] for s in after), 16 * 16)


def test_daemon_killed(bench):
    """The process that unwinds ends with the daemon."""
    daemon, go = at_the_gate(bench, standin("unwind_static"), *STATIC)
    pid = unwinder_of(daemon)
    daemon.proc.kill()
    daemon.proc.wait()
    wait_for("it is gone", lambda: not os.path.exists(f"/proc/{pid}"))
    program = re.search(r"tracing .* \(process (\d+)\)", daemon.stderr()).group(1)
    go()
    wait_for("the program ends too", lambda: not os.path.exists(f"/proc/{program}"))


def test_killed(bench):
    """The trace goes on with frame pointers, and says of each stack that nobody has looked at it."""
    db, said = hurt(bench, signal.SIGKILL)
    true(said, "process that unwinds call stacks has ended" in said)
    by = {s["stack"]["by"] for s in db["sites"][1:]}
    eq("found by", by, {"tables", "unchecked"})
    odd = [
        (s["stack"], s["allocs"], [f[2] for f in s["frames"]][:3])
        for s in db["sites"][1:]
        if s["stack"]["end"] != "complete" or len(s["frames"]) < 4
    ]
    # A stack that ended early before that may have the same frames: such a site is not called
    # unchecked, but not complete either.
    doubtful = [
        s["allocs"] for s in db["sites"][1:] if s["stack"]["by"] == "unchecked" or s["stack"]["end"] != "complete"
    ]
    true(f"those of the threads in {odd}", sum(doubtful) >= 16 * 16)


def test_stopped(bench):
    """One that hangs holds up nothing but the end, for two seconds; it is killed."""
    db, said = hurt(bench, signal.SIGSTOP)
    true(said, "process that unwinds call stacks does not end" in said)
    eq("found by", {s["stack"]["by"] for s in db["sites"][1:]}, {"tables", "unchecked"})


def section(data, name):
    (shoff,) = struct.unpack_from("<Q", data, 40)
    entsize, num, strndx = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * entsize) for i in range(num)]
    names = headers[strndx][4]
    for h in headers:
        if data[names + h[0] : data.index(b"\0", names + h[0])] == name:
            return h[4], h[5]
    raise KeyError(name)


def test_broken_tables(bench):
    """Tables full of rubbish: the process that unwinds lives, each stack ends somewhere and says why."""
    ends = {}
    for seed in range(2):
        rng = random.Random(seed)
        with open(standin("unwind_nopie"), "rb") as f:
            data = bytearray(f.read())
        for name in (b".eh_frame", b".eh_frame_hdr"):
            off, n = section(data, name)
            for _ in range(n // (8, 64)[seed]):
                data[off + rng.randrange(n)] = rng.randrange(256)
        path = bench.path(f"broken{seed}")
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, 0o755)
        env = {"LD_LIBRARY_PATH": standin("lib") + ":" + standin("."), **PATIENT}
        _, db, daemon = bench.trace([path], *DEPTH, env=env)
        true(daemon.stderr(), "process that unwinds" not in daemon.stderr())
        # The others are the callers of calls that waited: one frame, and no stack.
        sites = [s for s in db["sites"][1:] if s["allocs"]]
        for s in sites:
            ends[s["stack"]["end"]] = ends.get(s["stack"]["end"], 0) + s["allocs"]
        eq("stacks that nobody looked at", [s for s in sites if s["stack"]["by"] == "unchecked"], [])
    print(f"    ends: {ends}")
    true(ends, set(ends) & {"bad_table", "no_table", "no_map", "lost", "copied"})


def append(path, text):
    """tracefs knows no seek to the end, which open() does."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def test_return_probes_of_others(bench):
    """Another tracer's return probes on the way leave the kernel's trampoline on the stack: the stacks are the same."""
    with open(standin("unwind"), "rb") as f:
        data = f.read()
    names = subprocess.run(["nm", standin("unwind")], capture_output=True, text=True, check=True).stdout
    at = next(int(x.split()[0], 16) for x in names.splitlines() if x.split()[-1].startswith("in_recursion"))
    (phoff,) = struct.unpack_from("<Q", data, 32)
    for i in range(struct.unpack_from("<H", data, 56)[0]):
        kind, _, off, vaddr, _, filesz = struct.unpack_from("<IIQQQQ", data, phoff + 56 * i)
        if kind == 1 and vaddr <= at < vaddr + filesz:
            at = at - vaddr + off
            break
    events = "/sys/kernel/tracing/uprobe_events"
    name = "ttmontest_" + "".join(chr(ord("a") + int(x)) for x in str(os.getpid()))
    if not os.path.exists(events):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], check=False)
    append(events, f"r:{name}/back {standin('unwind')}:{at:#x}\n")
    try:
        with open(f"/sys/kernel/tracing/events/{name}/enable", "w", encoding="ascii") as f:
            f.write("1")
        run = Traced(bench, "unwind")
    finally:
        with open(f"/sys/kernel/tracing/events/{name}/enable", "w", encoding="ascii") as f:
            f.write("0")
        append(events, f"-:{name}/back\n")
    # The program's own backtrace() ends at the trampoline, so its book is of no use: another run is.
    plain = Traced(bench, "unwind")

    def stacks(db):
        return collections.Counter(
            tuple(frames_of(db, a["site"])) for a in db["allocations"] if a["method"] == "host_alloc"
        )

    print(f"    {run.whole} of {run.n} stacks whole, {len(run.wrong)} other than backtrace() says")
    eq("stacks that differ", stacks(run.db) - stacks(plain.db), collections.Counter())
    eq("stacks that are missing", stacks(plain.db) - stacks(run.db), collections.Counter())
    true("the probes were there", run.wrong)
