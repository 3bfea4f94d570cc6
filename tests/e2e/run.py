#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""run.py [-j N] [--fast | --long] [NAME...]: the end-to-end tests; as root, with the programs and the
stand-ins built (make e2e-build).

Every function test_* of every t_*.py here and in tests/attack is a test, run in a process and a
folder of its own. Most run side by side, N at a time (one more than there are CPUs): they see only
the programs that they start, and spend most of their time waiting. Those marked @e2e.alone come
after them, one after the other. Scripts test_*.py come last; they are run whole and print their own
lines. A line for each test:

    ok NAME (1.2 s)      FAIL NAME: why      SKIP NAME: why

and the counts at the end. NAME... runs those whose name contains one of the words, --fast those marked @e2e.fast.
Those marked @e2e.long run only with --long. A test that hangs
is ended after a time that no test comes near, even on a busy machine. Exit status 1 when something failed.

Where everything runs and one or two tests fail, they are run once more, alone at the end. One that passes then
counts as passed, and its line says why it failed at first: that is to be looked at, but says little of a change.
Three failures are never run again.
"""
import argparse
import concurrent.futures
import glob
import importlib
import inspect
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = {"e2e": HERE, "attack": os.path.join(os.path.dirname(HERE), "attack")}
sys.path[:0] = FOLDERS.values()
sys.dont_write_bytecode = True

import e2e  # noqa: E402

DEFAULT_TIMEOUT = 30
SCRIPT_TIMEOUT = 180
WHY = 600  # characters of a reason on the line itself
AGAIN = 2  # so many tests that failed are run once more
# A test's own limit is for a machine that does nothing else.
PATIENCE = 4


def functions(module):
    found = [f for n, f in vars(module).items() if n.startswith("test_") and inspect.isfunction(f)]
    return sorted(found, key=lambda f: f.__code__.co_firstlineno)


def run_one(module_name, name):
    """In the child: one test, in a scratch folder. What it prints last is its verdict."""
    module = importlib.import_module(module_name)
    function = getattr(module, name)
    with tempfile.TemporaryDirectory(prefix="ttmon-e2e-") as folder:
        os.chdir(folder)
        bench = e2e.Bench(folder, e2e.runs_alone(function) is not None)
        try:
            function(bench)
            verdict = "ok"
        except e2e.Skip as why:
            verdict = f"SKIP {why}"
        except AssertionError as why:
            tb = traceback.extract_tb(sys.exc_info()[2])
            where = [f for f in tb if f.filename.endswith(module_name + ".py")][-1:]
            line = f" (line {where[0].lineno})" if where else ""
            verdict = f"FAIL {why}{line}"
        except Exception as err:  # a test that breaks is a test that failed
            traceback.print_exc()
            verdict = f"FAIL {type(err).__name__}: {err}"
        finally:
            bench.close()
        if verdict.startswith("FAIL"):
            bench.show_logs()
    print("VERDICT " + " ".join(verdict.split()))


class Stuck(Exception):
    """A process cannot be killed: the kernel is at fault or broken, and every later test would wait for it too."""


def spawn(args, limit):
    """(output of a child, or None where it took too long, what it wrote to stderr); everything in its
    session ends with it then.

    Files, not pipes: whoever waits for the end of a pipe waits for the last process that holds it,
    which may be one that hangs in the kernel for ever.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        child = subprocess.Popen(
            args, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, cwd=e2e.TOP
        )
        try:
            child.wait(timeout=limit)
            late = False
        except subprocess.TimeoutExpired:
            late = True
            os.killpg(child.pid, signal.SIGKILL)
            try:
                child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                raise Stuck(f"process {child.pid} ({' '.join(args[-2:])}) cannot be killed") from None
        err.seek(0)
        out.seek(0)
        return None if late else out.read(), err.read()


def run_function(label, module_name, function):
    """(the line, what else there is to show)"""
    limit = PATIENCE * getattr(function, "timeout", DEFAULT_TIMEOUT)
    began = time.monotonic()
    out, err = spawn([sys.executable, os.path.join(HERE, "run.py"), "--one", module_name, function.__name__], limit)
    if out is None:
        return f"FAIL {label}: still running after {limit} s", err
    lines = out.splitlines()
    verdict = lines[-1][8:] if lines and lines[-1].startswith("VERDICT ") else "FAIL ended without a verdict"
    if verdict == "ok":
        return f"ok {label} ({time.monotonic() - began:.1f} s)", err
    kind, _, why = verdict.partition(" ")
    if len(why) > WHY:
        err += why + "\n"
        why = f"{why[:WHY // 2]} ... {why[-WHY // 2:]}"
    return f"{kind} {label}: {why}", err + "".join(f"    {line}\n" for line in lines[:-1])


def run_script(path, label):
    out, err = spawn([sys.executable, path], PATIENCE * SCRIPT_TIMEOUT)
    sys.stderr.write(err)
    if out is None:
        return [f"FAIL {label}: still running after {PATIENCE * SCRIPT_TIMEOUT} s"]
    lines = [line for line in out.splitlines() if line.split(" ")[0] in ("ok", "FAIL", "SKIP")]
    named = [" ".join([line.split(" ")[0], label + "/" + line.partition(" ")[2]]) for line in lines]
    return named or [f"FAIL {label}: said nothing"]


def main():
    if sys.argv[1:2] == ["--one"]:
        run_one(sys.argv[2], sys.argv[3])
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", type=int, default=os.cpu_count() + 1)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    if os.geteuid() != 0:
        print("SKIP e2e: needs root")
        return 0
    counts = {"ok": 0, "FAIL": 0, "SKIP": 0}
    lock = threading.Lock()

    def say(line, more=""):
        with lock:
            counts[line.split(" ")[0]] += 1
            sys.stderr.write(more)
            print(line, flush=True)

    again = []

    def once(test):
        line, more = run_function(*test)
        if line.startswith("FAIL") and not args.words:
            with lock:
                sys.stderr.write(more)
                again.append((test, line))
        else:
            say(line, more)

    try:
        run_all(args, say, once)
        for test, first in again:
            line, more = run_function(*test) if len(again) <= AGAIN else (first, "")
            say(line + (f": at the second try; the first: {first}" if line.startswith("ok") else ""), more)
    except Stuck as why:
        say(f"FAIL e2e: {why}: the tests end here, this machine has to be started anew (see dmesg)")
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped", file=sys.stderr)
    return 1 if counts["FAIL"] else 0


def run_all(args, say, once):
    beside, alone = [], []
    for area, path in [
        (area, path) for area, folder in FOLDERS.items() for path in sorted(glob.glob(os.path.join(folder, "t_*.py")))
    ]:
        module_name = os.path.basename(path)[:-3]
        for function in functions(importlib.import_module(module_name)):
            label = f"{area}/{module_name[2:]}/{function.__name__[5:]}"
            wanted = (args.long or not hasattr(function, "long")) and (not args.fast or hasattr(function, "fast"))
            if wanted and (not args.words or any(w in label for w in args.words)):
                (alone if e2e.runs_alone(function) else beside).append((label, module_name, function))
    # The long ones first, so that none of them is left over at the end.
    beside.sort(key=lambda test: -getattr(test[2], "timeout", DEFAULT_TIMEOUT))
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        try:
            for future in [pool.submit(once, test) for test in beside]:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for test in alone:
        once(test)
    for path in sorted(glob.glob(os.path.join(HERE, "test_*.py"))):
        label = "e2e/" + os.path.basename(path)[5:-3]
        if not args.fast and (not args.words or any(w in label for w in args.words)):
            for line in run_script(path, label):
                say(line)


if __name__ == "__main__":
    sys.exit(main())
