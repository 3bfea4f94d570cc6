#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""run.py [--short] [-j N] [-k SERIES] [-b BOOT] [WORD...]: the kernel matrix: our tests under Debian's
6.1 and 6.12 in QEMU, without KVM. -k new takes the newest kernel of Debian 13's backports (with -b
rmid: of the modules only kmod/ is built for it).

Everything is built on the host; each guest sees the host's files and runs tests/vm/guest.py, which
says what a boot runs. --short is what continuous integration runs, some minutes. -j guests run at a
time (default 2). Prints "ok NAME", "FAIL NAME: why" or "SKIP NAME: why", what a failed test said
before that, and at the end the counts. SKIP where qemu or a kernel cannot be had. A guest that dies
fails the test it was at and is started anew for those after it; one that hangs is killed. Exit
status 1 when something failed.
"""
import argparse
import concurrent.futures
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
# uprobe_multi links came with Linux 6.6: 6.1 goes through tracefs events.
SERIES = {"6.1": ["--legacy"], "6.12": []}
NEWEST = "new"
# How a guest is started, by what the tests in it need.
BOOTS = {
    "plain": [],
    "rdt": ["-R", "all", "-s", "4,sockets=2,cores=2"],
    "rmid": ["-s", "4"],
    "lockdown": ["-a", "lockdown=confidentiality"],
    "systemd": ["-a", "qvm.systemd"],
}
# What is built for a guest: the environment variable that has its place, and the script that builds it and prints that.
MODULES = {
    "KMD": "kmd/build.sh",
    "NVPIN": "nvpin/build.sh",
    "FAKEQM": "rdt/fakeqm/build.sh",
    "RMID_KMOD": "kmod/build.sh",
    "DEB": "deb.sh",
}
WANTED = {
    "plain": ["KMD", "NVPIN"],
    "rdt": ["FAKEQM", "RMID_KMOD"],
    "rmid": ["RMID_KMOD"],
    "lockdown": [],
    "systemd": ["DEB"],
}
LIMIT, SHORT_LIMIT = 7000, 360  # seconds for all guests
MIN_LEFT = 20  # seconds for which a guest is still started
SCRIPT_LIMIT = 300  # seconds to fetch or build something
BOOT_LIMIT = 90  # seconds to its first line
SILENCE = 1200  # seconds between two lines: guest.py ends a test that hangs long before
DEATHS = 5  # a guest is started anew so often

counts = {"ok": 0, "FAIL": 0, "SKIP": 0}
lock = threading.Lock()
guests = set()


def say(line, details=()):
    with lock:
        counts[line.split(" ")[0]] += 1
        sys.stdout.flush()
        for text in details:
            print("    " + text, file=sys.stderr, flush=True)
        print(line, flush=True)


def script(name, *args):
    """
    (words that it printed, None) or (None, why it failed); one that hangs, on the network maybe, is
    ended with all it started.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        child = subprocess.Popen(
            [os.path.join(HERE, name), *args], stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            status = child.wait(SCRIPT_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return None, f"{name} {' '.join(args)} was still running after {SCRIPT_LIMIT} s"
        out.seek(0)
        err.seek(0)
        said, failed = out.read().split(), err.read().strip().splitlines()
    if status:
        return None, (failed or [f"{name} ended with status {status}"])[-1]
    return said, None


class Guest:
    """One boot of a kernel: the lines it prints, and how it ended."""

    def __init__(self, kernel, options, command, limit):
        args = [os.path.join(HERE, "qvm.sh"), "-k", kernel, "-t", str(limit), *options, command]
        self.proc = subprocess.Popen(
            args,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.status = None
        self.deadline = time.monotonic() + BOOT_LIMIT
        guests.add(self)

    def kill(self):
        try:
            os.killpg(self.proc.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass

    def lines(self):
        stop = threading.Event()

        def watch():
            while not stop.wait(1):
                if time.monotonic() > self.deadline:
                    self.kill()
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        for line in self.proc.stdout:
            self.deadline = time.monotonic() + (BOOT_LIMIT if line.startswith("done") else SILENCE)
            yield line.rstrip("\r\n")
        stop.set()
        self.status = self.proc.wait()
        watcher.join()
        guests.discard(self)


class Boot:
    """The tests of one kind of boot on one kernel, in as many boots as it takes."""

    def __init__(self, series, kernel, name, args):
        self.series, self.kernel, self.name, self.args = series, kernel, name, args
        self.label = f"vm/{series}" if name == "plain" else f"vm/{series}/{name}"
        # The short form does what it can in its time, on whatever machine that is; the long one has time enough.
        self.late = "SKIP" if args.short else "FAIL"
        self.test = ""  # the last that came to its end
        # For guest.py. What is not there is "-" and why: the test that wants it says that when it skips.
        self.env = {"O": os.environ.get("O", ".output")}
        for variable in WANTED[name]:
            said, why = script(MODULES[variable], kernel)
            self.env[variable] = (said[-1] if said else "-" + why).replace("'", "")

    def words(self):
        """Arguments of guest.py."""
        short, after = (["--short"] if self.args.short else []), (["--after", self.test] if self.test else [])
        return [*SERIES.get(self.series, []), *short, *after, self.name, *self.args.words]

    def command(self):
        quoted = " ".join("'" + word.replace("'", "") + "'" for word in self.words())
        variables = " ".join(f"{name}='{value}'" for name, value in self.env.items())
        return f"uname -r; cd '{TOP}' && {variables} exec /usr/bin/python3 tests/vm/guest.py {quoted}"

    def once(self):
        """True when the guest came to its end, or there is no use in another one."""
        left = self.args.end - time.monotonic()
        if left < MIN_LEFT:
            say(f"{self.late} {self.label}/guest: no time was left for it")
            return True
        guest = Guest(self.kernel, BOOTS[self.name], self.command(), int(left))
        other, running, silent, done = [], "", True, False
        for line in guest.lines():
            silent = False
            kind, _, rest = line.partition(" ")
            if kind == "run" and rest:
                running, other = rest, []
            elif kind in counts and rest:
                say(f"{kind} {self.label}/{rest}", other if kind == "FAIL" else ())
                self.test, running, other = running or self.test, "", []
            elif line == "done":
                done = True
            else:
                other.append(line.removeprefix("    "))
        if silent or done:
            return done
        kind = self.late if guest.status == 124 else "FAIL"
        what = "out of time: the guest was killed" if guest.status == 124 else f"the guest died (status {guest.status})"
        say(
            f"{kind} {self.label}/{running or 'guest'}: {what}", other if len(other) < 120 else other[:60] + other[-60:]
        )
        self.test = running
        return guest.status == 124 or not running

    def run(self):
        labels, why = script("guest.py", "--list", *self.words())
        if labels is None:
            say(f"FAIL {self.label}/guest: no list of tests: {why}")
        if not labels:
            return
        # One boot in some hundreds hangs under emulation before it says anything; that too is tried again.
        if not any(self.once() for _ in range(DEATHS)):
            say(f"FAIL {self.label}: no guest came to its end")


def stop(*_):
    for guest in list(guests):
        guest.kill()
    os._exit(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("-k", choices=[*SERIES, NEWEST], action="append")
    parser.add_argument("-b", choices=BOOTS, action="append")
    parser.add_argument("words", nargs="*")
    args = parser.parse_intermixed_args()
    if os.geteuid() != 0:
        print("SKIP vm: needs root\n0 passed, 0 failed, 1 skipped")
        return 0
    if not os.path.exists(os.path.join(TOP, os.environ.get("O", ".output"), "bin", "ttmond")):
        print("run.py: the programs are not built: make e2e-build", file=sys.stderr)
        return 1
    args.end = time.monotonic() + (SHORT_LIMIT if args.short else LIMIT)
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, stop)
    boots = []
    for series in args.k or SERIES:
        said, why = script("setup.sh", series)
        if said:
            boots += [Boot(series, said[-1], name, args) for name in args.b or BOOTS]
        else:
            say(f"SKIP vm/{series}: {why}")
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        for future in [pool.submit(boot.run) for boot in boots]:
            future.result()
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped", flush=True)
    return 1 if counts["FAIL"] or not counts["ok"] + counts["SKIP"] else 0


if __name__ == "__main__":
    sys.exit(main())
