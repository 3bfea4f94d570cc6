# SPDX-License-Identifier: GPL-2.0-only
"""
-- CMD survives us, and ttmond survives its own end: whatever is killed when, nothing is left, the
next one starts, no program is harmed.
"""
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from e2e import (
    PATIENCE,
    TTMON,
    eq,
    last_json,
    left_over,
    load_db,
    long,
    newest_prog,
    process,
    standin,
    timeout,
    true,
    uprobe_events,
)

KEEPER = "seccomp-keeper"


def keepers():
    """{pid: parent} of all processes of this name."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                name, _, rest = f.read().rpartition(")")
        except OSError:
            continue
        if name.partition("(")[2] == KEEPER and rest.split()[0] != "Z":
            found[int(pid)] = int(rest.split()[1])
    return found


def wait_for(what, check, seconds=10):
    end = time.monotonic() + seconds * PATIENCE
    while not check():
        true(f"{what}: not after {seconds * PATIENCE:g} s", time.monotonic() < end)
        time.sleep(0.02)


class Held:
    """A command under ttmond that waits for a file, then executes programs and is done."""

    def __init__(self, bench, n):
        self.go_file, self.done_file = bench.path(f"go{n}"), bench.path(f"done{n}")
        before = keepers()
        script = (
            f"while [ ! -e {self.go_file} ]; do sleep 0.02; done; /bin/ls / >/dev/null && "
            f"{standin('scen')} exit 1 >/dev/null && touch {self.done_file}"
        )
        self.daemon = bench.daemon("--quiet", cmd=["/bin/sh", "-c", script])
        mine = set()

        def both():
            """The keeper and its child. Other tests have some of that name too."""
            new = {pid: ppid for pid, ppid in keepers().items() if pid not in before}
            mine.update(pid for pid, ppid in new.items() if ppid in new)
            mine.update(ppid for ppid in new.values() if ppid in new)
            return len(mine) >= 2

        wait_for("keeper and guard", both)
        self.keepers = {pid: ppid for pid, ppid in keepers().items() if pid in mine}

    def go(self):
        with open(self.go_file, "w", encoding="ascii"):
            pass

    def goes_on(self):
        self.go()
        wait_for("the command goes on", lambda: os.path.exists(self.done_file))


def test_daemon_and_keeper_killed(bench):
    """At the same moment: the guard answers the kernel, and the command executes and maps as before."""
    held = Held(bench, 0)
    # Of several pairs that began meanwhile all first ones: they belong to tests whose commands have to bear it too.
    first = [pid for pid in held.keepers if pid in held.keepers.values()]
    true(f"no keeper with a guard: {held.keepers}", first)
    for pid in [held.daemon.proc.pid, *first]:
        os.kill(pid, signal.SIGKILL)
    held.daemon.proc.wait()
    held.goes_on()
    print("attack: SIGKILL to daemon and keeper together: lost of an innocent program beside it 0", file=sys.stderr)


def test_names(bench):
    """Who ends ttmond by its name does not meet the keeper."""
    held = Held(bench, 0)
    if shutil.which("pgrep"):
        for args in (["ttmond"], ["-f", "ttmond"], ["-x", "ttmond"]):
            met = subprocess.run(["pgrep", *args], capture_output=True, text=True, check=False).stdout.split()
            true(f"pgrep {args} does not know the daemon", str(held.daemon.proc.pid) in met)
            eq(f"pgrep {args}: keepers", [pid for pid in held.keepers if str(pid) in met], [])
    lines = []
    for pid in held.keepers:
        # Another test's may have ended meanwhile; one that has not been waited for has no command line.
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
            lines.append(f.read().strip(b"\0"))
    eq("command lines", {line for line in lines if line}, {KEEPER.encode()})
    held.goes_on()
    held.daemon.wait(0)


def test_held_is_true(bench):
    """However long a command is held: what says held missed nothing, and what was let go is a gap that says why."""
    seen = set()
    for ms in (1, 2, 4, 8, 16, 32, 5000):
        # Another file each time, which has to be read and probed.
        folder = bench.path(f"apart{ms}")
        os.makedirs(os.path.join(folder, "lib"))
        shutil.copy(standin("scen"), folder)
        shutil.copy(standin("lib/libcudart.so.13"), os.path.join(folder, "lib"))
        daemon = bench.daemon(
            "--dump-db",
            bench.path("db.json"),
            cmd=[os.path.join(folder, "scen"), "exit", "2"],
            wait=False,
            env={"TTMOND_HOLD_MS": str(ms)},
        )
        daemon.wait()
        db = load_db(bench.path("db.json"))
        rows = [(b["object"], b["pid"], b["held"], b["let_go"]) for b in db["completeness"]["blind"]]
        eq(f"{ms} ms: one word on each library: {rows}", len({r[:2] for r in rows}), len(rows))
        whole = not rows or all(held for _, _, held, _ in rows)
        eq(f"{ms} ms: complete, with {rows}", db["completeness"]["complete"], whole)
        if whole:
            eq(f"{ms} ms: pins", process(db, last_json(daemon.stdout())["pid"])["pins"], 2)
        else:
            true(
                f"{ms} ms: the gap has no reason", "coverage gap" in [g["why"] for g in db["completeness"]["knowledge"]]
            )
        seen |= {"held" if held else "let go" if let_go else "not held" for _, _, held, let_go in rows}
    true(f"5 s were too short: {seen}", "held" in seen)


def kill_one(bench, n, rng, target):
    """One life of a ttmond, which ends by SIGKILL at some moment, perhaps in the middle of a dump or of its start."""
    kind = rng.choice(["service", "pid", "command"])
    args = ["--quiet", "--dump-db", bench.path("killed.json")]
    cmd = None
    held = None
    if kind == "service":
        args += bench.service_args()
    elif kind == "pid":
        args += ["--pid", str(target.pid)]
    else:
        held = bench.path(f"held{n}")
        cmd = [
            "/bin/sh",
            "-c",
            f"{standin('scen')} exit 1 >/dev/null; /bin/true && {standin('scen')} exit 1 >/dev/null && touch {held}",
        ]
    bench.alone, alone = True, bench.alone
    daemon = bench.daemon(*args, cmd=cmd, wait=False)
    bench.alone = alone
    time.sleep(rng.uniform(0, 0.6 if rng.random() < 0.7 else 2.0))
    if rng.random() < 0.5 and daemon.proc.poll() is None and "tracing" in daemon.stderr():
        daemon.proc.send_signal(signal.SIGUSR1)
        time.sleep(rng.uniform(0, 0.05))
    daemon.proc.kill()
    daemon.proc.wait()
    bench.daemons.remove(daemon)
    if held and daemon.proc.returncode == -signal.SIGKILL and "tracing" in daemon.stderr():
        # Once it runs. Before its exec it ends with us.
        wait_for(f"round {n}: the command that was held comes to its end", lambda: os.path.exists(held), 15)
    return kind


def sigkills(bench, rounds, seed):
    rng = random.Random(seed)
    since, events = newest_prog(), set(uprobe_events())
    target = bench.target(standin("scen"), "--wait", "live", "3")
    kinds = [kill_one(bench, n, rng, target) for n in range(rounds)]
    true("the traced program is gone", target.proc.poll() is None)
    # The next one starts where they were, and knows it all.
    daemon = bench.daemon(*bench.service_args(), "--dump-db", bench.path("last.json"))
    true(f"it is degraded: {daemon.stderr()}", "DEGRADED" not in daemon.stderr())
    done = subprocess.run([standin("scen"), "exit", "5"], capture_output=True, text=True, check=True)
    pid = last_json(done.stdout)["pid"]
    wait_for(
        "its end is seen",
        lambda: subprocess.run(
            [TTMON, "status", "--socket", bench.path("sock")], capture_output=True, check=False
        ).returncode
        < 2,
    )
    daemon.stop()
    eq("pins of a program after all that", process(load_db(bench.path("last.json")), pid)["pins"], 5)
    target.go()
    target.line()
    target.proc.kill()
    eq("BPF programs left", left_over(since), [])
    eq("probe events left", set(uprobe_events()) - events, set())
    eq("files left", [f for f in os.listdir(bench.dir) if f.startswith((".ttmon.v1", ".killed", "ttmon.v1"))], [])
    print(
        f"attack: {rounds} SIGKILLs ({', '.join(f'{kinds.count(k)} {k}' for k in sorted(set(kinds)))}): "
        "lost of an innocent program beside it 0",
        file=sys.stderr,
    )


@timeout(60)
def test_some_sigkills(bench):
    sigkills(bench, 6, 20)


@long
@timeout(900)
def test_200_sigkills(bench):
    sigkills(bench, 200, int(os.environ.get("TTMON_SEED", "1")))
