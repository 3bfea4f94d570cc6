#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""guest.py BOOT [--legacy] [--short] [--after LABEL] [--list] [WORD...]: run tests under another
kernel, as root in a virtual machine.

BOOT says how this guest was started (run.py): in "plain" run the end-to-end tests of tests/e2e, and
the g_*.py of this folder that ask for nothing else; in another one those whose NEEDS names it. The
functions test_*(bench, legacy) there are tests; legacy tells that this kernel has no uprobe_multi
links. WORD... runs those whose label contains one, --short those in SHORT, --after those that
follow; --list only prints their labels (on the host too).

Every test is a process of its own, forked from this one, since starting Python takes seconds here.
Prints "run LABEL" before each and then "ok LABEL", "FAIL LABEL: why" or "SKIP LABEL: why"; what a
failed one said, and the kernel, goes before it. At the end: "done".
"""
import argparse
import contextlib
import fcntl
import glob
import importlib
import inspect
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(os.path.dirname(HERE), "e2e")
sys.path[:0] = [HERE, E2E]
sys.dont_write_bytecode = True
# Limits are this many times those of the host: the guest's processors are emulated, and everything
# else may run beside it.
SLOW = 6.0
os.environ["TTMON_TEST_SLOW"] = str(SLOW)
# The command's mappings wait for their probes: 250 ms are enough elsewhere.
os.environ["TTMOND_HOLD_MS"] = "20000"


def loopback_up():
    """Nobody else does it in a guest without an init of its own. 127.0.0.1 comes with it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, contextlib.suppress(OSError):
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0x41))  # SIOCSIFFLAGS, IFF_UP | IFF_RUNNING


loopback_up()

import e2e  # noqa: E402
from matrix import NOT_HERE, SHORT  # noqa: E402

LIMIT = 30
SCRIPT_LIMIT = 180
# What the kernel must not say while a test runs. A soft lockup only tells that the host had no time for a processor.
TROUBLE = re.compile(r"\b(BUG|WARNING|Oops|KASAN|UBSAN|general protection fault|unable to handle)\b")
HARMLESS = re.compile(r"soft lockup")


class Kernel:
    """What the kernel says, from now on."""

    def __init__(self):
        self.log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.log, 0, os.SEEK_END)

    def said(self):
        lines = []
        with contextlib.suppress(BlockingIOError):
            while True:
                try:
                    lines += os.read(self.log, 8192).decode(errors="replace").split(";", 1)[-1].splitlines()[:1]
                except BrokenPipeError:  # the oldest lines are overwritten
                    continue
        return lines


def one(function, args):
    """In the child: a test in a scratch folder. The verdict."""
    # A file on an overlay, as /tmp is here, has another inode in /proc/PID/maps.
    with tempfile.TemporaryDirectory(prefix="ttmon-vm-", dir="/run") as folder:
        os.chdir(folder)
        bench = e2e.Bench(folder)
        try:
            function(bench, *args)
            verdict = "ok"
        except e2e.Skip as why:
            verdict = f"SKIP {why}"
        except AssertionError as why:
            tb = [
                f
                for f in traceback.extract_tb(sys.exc_info()[2])
                if os.path.basename(f.filename).startswith(("t_", "g_"))
            ]
            verdict = f"FAIL {why}" + (f" (line {tb[-1].lineno})" if tb else "")
        except Exception as err:  # a test that breaks is a test that failed
            traceback.print_exc(file=sys.stdout)
            verdict = f"FAIL {type(err).__name__}: {err}"
        finally:
            bench.close()
        if verdict.startswith("FAIL"):
            bench.show_logs()
        os.chdir("/")
    return " ".join(verdict.split())


def forked(function, limit):
    """Run it in a process group of its own, which ends with it: its output, or None where it took too long."""
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        child = os.fork()
        if not child:
            os.setsid()
            null = os.open(os.devnull, os.O_RDONLY)
            for fd, to in ((null, 0), (out.fileno(), 1), (out.fileno(), 2)):
                os.dup2(fd, to)
            status = 1
            try:
                print(f"VERDICT {function()}", flush=True)
                status = 0
            finally:
                os._exit(status)
        end = time.monotonic() + limit
        late = False
        while not os.waitpid(child, os.WNOHANG)[0]:
            if time.monotonic() > end and not late:
                late = True
                os.killpg(child, signal.SIGKILL)
                end += 120
            elif time.monotonic() > end:
                print(f"process {child} cannot be killed", flush=True)
                os._exit(1)
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        out.seek(0)
        text = out.read().splitlines()
    if late:
        return text, f"FAIL still running after {limit:g} s"
    if not text or not text[-1].startswith("VERDICT "):
        return text, "FAIL ended without a verdict"
    return text[:-1], text[-1][8:]


def script(path):
    """In the child: a script that prints its own lines, whose labels begin with its name."""
    done = subprocess.run([sys.executable, path], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.split(" ")[0] in ("ok", "FAIL", "SKIP")]
    sys.stdout.write(done.stdout + done.stderr)
    bad = [line for line in lines if line.startswith("FAIL")]
    if bad or not lines:
        return bad[0] if bad else "FAIL said nothing"
    if done.returncode not in (0, 77):
        return f"FAIL ended with status {done.returncode}"
    skipped = [line for line in lines if line.startswith("SKIP")]
    return skipped[0] if len(skipped) == len(lines) else "ok"


def functions(module):
    found = [
        f
        for n, f in vars(module).items()
        if n.startswith("test_") and inspect.isfunction(f) and f.__module__ == module.__name__
    ]
    return sorted(found, key=lambda f: f.__code__.co_firstlineno)


def broken(why):
    """For a module of tests that cannot be imported: the one test that it then is."""
    return lambda: f"FAIL cannot be imported: {why}"


def modules(folder, prefix):
    """(name without the prefix, module or None, why there is none)"""
    for path in sorted(glob.glob(os.path.join(folder, prefix + "*.py"))):
        name = os.path.basename(path)[:-3]
        try:
            yield name[len(prefix) :], importlib.import_module(name), None
        except Exception as err:  # the others are to run
            yield name[len(prefix) :], None, f"{type(err).__name__}: {err}"


def tests(boot, legacy):
    """(label, what to run, its limit on the host, why it does not run here)"""
    for name, module, why in modules(HERE, "g_"):
        if why and boot == "plain":
            yield name, broken(why), LIMIT, None
        elif not why and getattr(module, "NEEDS", "plain") == boot:
            for f in functions(module):
                yield f"{name}/{f.__name__[5:]}", lambda f=f: one(f, (legacy,)), getattr(f, "timeout", LIMIT), None
    if boot != "plain":
        return
    for name, module, why in modules(E2E, "t_"):
        if why:
            yield name, broken(why), LIMIT, None
        for f in functions(module) if module else ():
            label = f"{name}/{f.__name__[5:]}"
            left_out = (
                NOT_HERE.get(label)
                or NOT_HERE.get(name)
                or (None if e2e.needs_kernel(f) else "asks nothing of the kernel")
            )
            yield label, lambda f=f: one(f, ()), getattr(f, "timeout", LIMIT), left_out
    for path in sorted(glob.glob(os.path.join(E2E, "test_*.py"))):
        yield os.path.basename(path)[5:-3], lambda path=path: script(path), SCRIPT_LIMIT, None


def run(kernel, label, function, limit):
    print(f"run {label}", flush=True)
    began = time.monotonic()
    output, verdict = forked(function, limit * SLOW)
    log = kernel.said()
    bad = [line for line in log if TROUBLE.search(line) and not HARMLESS.search(line)]
    if bad and not verdict.startswith("FAIL"):
        verdict = f"FAIL the kernel says: {bad[0]}"
    kind, _, why = verdict.partition(" ")
    if kind == "FAIL":
        for line in output[-60:] + [f"kernel: {line}" for line in (log if bad else [])[:60]]:
            print("    " + line)
    print(
        f"{kind} {label}"
        + (f": {why}" if why else "")
        + (f" ({time.monotonic() - began:.1f} s)" if kind == "ok" else ""),
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("boot")
    parser.add_argument("--legacy", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--after", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("words", nargs="*")
    args = parser.parse_intermixed_args()
    kernel = None if args.list else Kernel()
    wait = bool(args.after)
    for label, function, limit, why in tests(args.boot, args.legacy):
        if wait:
            wait = label != args.after
            continue
        if args.words and not any(word in label for word in args.words):
            continue
        if args.short and not any(re.fullmatch(pattern, label) for pattern in SHORT):
            continue
        if args.list:
            print(label)
            continue
        if why:
            print(f"SKIP {label}: {why}", flush=True)
        else:
            run(kernel, label, function, limit)
    if not args.list:
        print("done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
