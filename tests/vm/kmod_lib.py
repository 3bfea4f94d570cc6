# SPDX-License-Identifier: GPL-2.0-only
"""
kmod_lib.py: the module kmod/ loaded, what it says in /proc and through its tracepoints, and
programs to be watched (kmod/procs.c).
"""
import contextlib
import json
import os
import re
import subprocess
import time

from e2e import SLOW, Skip, eq, true

PROC = "/proc/ttmon_rmid"
TRACING = "/sys/kernel/tracing"
LINE = re.compile(r"^.*\[(\d+)\]\s+\S+\s+(\d+)\.(\d+): (\w+): (.*)$")


def folder():
    path = os.environ.get("RMID_KMOD", "-run.py did not build it")
    if path.startswith("-"):
        raise Skip("no module: " + path[1:])
    return path


def busybox(*args):
    done = subprocess.run(
        [os.path.join(folder(), "..", "..", "tools", "bin", "busybox"), *args],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def info():
    with open(PROC, encoding="ascii") as f:
        return dict(line.rstrip("\n").split(" ", 1) for line in f)


def count(name):
    return int(info()[name])


def command(text):
    """0, or the error that the write ended with."""
    fd = os.open(PROC, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    except OSError as err:
        return err.errno
    finally:
        os.close(fd)
    return 0


def dmesg():
    return busybox("dmesg")[1]


@contextlib.contextmanager
def module(**params):
    """Loaded with these parameters."""
    status, out = busybox("insmod", os.path.join(folder(), "ttmon_rmid.ko"), *[f"{k}={v}" for k, v in params.items()])
    eq(f"insmod says '{out.strip()}'", status, 0)
    try:
        yield
    except BaseException:
        # A daemon that still holds it: the tests after this one want it gone.
        command("release")
        time.sleep(1.5)
        busybox("rmmod", "ttmon_rmid")
        raise
    status, out = busybox("rmmod", "ttmon_rmid")
    eq(f"rmmod says '{out.strip()}'", status, 0)
    true(f"{PROC} is gone", not os.path.exists(PROC))


class Trace:
    """Events of the module, recorded while it lasts, in an instance of tracefs of its own."""

    def __init__(self, *names):
        self.names = names
        self.path = os.path.join(TRACING, "instances", f"kmod{os.getpid()}")
        self.events = []

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="ascii") as f:
            f.write(text)

    def __enter__(self):
        os.mkdir(self.path)
        self.write("buffer_size_kb", "8192")
        self.write("trace_clock", "mono")
        for name in self.names:
            self.write(f"events/memory_collector/{name}/enable", "1")
        return self

    def clear(self):
        self.write("trace", "")

    def read(self):
        """All events since the start or clear(), in order: [{"event": name, "cpu": n, "ns": time, field: value}]."""
        events = []
        with open(os.path.join(self.path, "trace"), encoding="ascii", errors="replace") as f:
            for line in f:
                m = LINE.match(line)
                if line.startswith("# entries-in-buffer/entries-written: "):
                    kept, written = line.split()[2].split("/")
                    eq("events kept of those written", kept, written)
                elif "LOST" in line:
                    raise AssertionError(line)
                elif m:
                    fields = dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", m[5]))
                    event = {k: int(v) if re.fullmatch(r"-?\d+", v) else v for k, v in fields.items()}
                    events.append(
                        {**event, "event": m[4], "cpu": int(m[1]), "ns": int(m[2]) * 10**9 + int(m[3]) * 1000}
                    )
        return events

    def __exit__(self, *_):
        self.write("tracing_on", "0")
        self.events = self.read()
        for name in self.names:
            self.write(f"events/memory_collector/{name}/enable", "0")
        os.rmdir(self.path)


class Procs:
    """procs.c at work; its book is what it printed."""

    def __init__(self, *args, book=True):
        self.proc = subprocess.Popen(
            [os.path.join(folder(), "procs"), *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.book = json.loads(self.proc.stdout.readline()) if book else None

    def say(self, text):
        self.proc.stdin.write(f"{text}\n")
        self.proc.stdin.flush()

    def finish(self):
        self.proc.stdin.close()
        eq("procs ended with", self.proc.wait(), 0)
        self.proc.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.proc.poll() is None:
            self.finish()


def wait(what, condition, seconds=3):
    """Until the condition is true, which it must become."""
    end = time.monotonic() + seconds * SLOW
    while not (got := condition()):
        true(f"{what}, after {seconds * SLOW:g} s", time.monotonic() < end)
        time.sleep(0.02)
    return got


def lives(events):
    """
    {tgid: [(rmid, from, to or None)]}; what must not be fails: an RMID given while it is held or in
    limbo, freed while it is free.
    """
    result, holder, freed = {}, {}, {}
    for e in sorted((e for e in events if e["event"] in ("rmid_alloc", "rmid_free")), key=lambda e: e["timestamp"]):
        rmid, at = e["rmid"], e["timestamp"]
        if e["event"] == "rmid_alloc":
            true(f"RMID {rmid} is given to {e['tgid']} while {holder.get(rmid)} holds it", rmid not in holder)
            true(f"RMID {rmid} is given after {at - freed.get(rmid, 0)} ns", at - freed.get(rmid, 0) >= 2000000)
            true(f"RMID is {rmid}", rmid > 0)
            result.setdefault(e["tgid"], []).append([rmid, at, None])
            holder[rmid] = e["tgid"]
        elif rmid in holder:
            result[holder.pop(rmid)][-1][2] = at
            freed[rmid] = at
        else:
            true(f"RMID {rmid} is freed twice", rmid not in freed)
            freed[rmid] = at
    return result
