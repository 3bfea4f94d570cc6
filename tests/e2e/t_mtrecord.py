# SPDX-License-Identifier: GPL-2.0-only
"""
`ttmon memtrace record` on tests/memtrace/mtprod.c, a program that writes accesses as a GPU would:
what is recorded, and what happens when things go wrong.
"""
import json
import os
import re
import signal
import subprocess
import tempfile
import time

from e2e import OUT, PATIENCE, TOP, TTMON, Skip, eq, true

KERNEL = False
# What is preloaded does not matter: mtprod opens its channels itself.
LIB = os.path.join(OUT, "libttmon", "libttmon-memtrace.so")


def producer(bench):
    path = bench.path("mtprod")
    if not os.path.exists(LIB):
        raise Skip(f"{LIB} is not built")
    subprocess.run(
        [
            os.environ.get("CC", "cc"),
            "-std=gnu11",
            "-O1",
            "-I",
            "include",
            "-I",
            ".",
            "-pthread",
            "-o",
            path,
            "tests/memtrace/mtprod.c",
        ],
        cwd=TOP,
        check=True,
    )
    return path


def record(*args, status=0, env=None):
    """(stdout, stderr); nothing is left behind."""
    with tempfile.TemporaryDirectory(prefix="ttmon-run-") as run:
        env = dict(os.environ, XDG_RUNTIME_DIR=run, **(env or {}))
        done = subprocess.run(
            [TTMON, "memtrace", "record", *args],
            capture_output=True,
            text=True,
            timeout=20 * PATIENCE,
            env=env,
            check=False,
        )
        eq(f"exit status ({done.stderr.strip()[-500:]})", done.returncode, status)
        eq("folders left", os.listdir(run), [])
    return done.stdout, done.stderr


def said(text, *patterns):
    for p in patterns:
        true(f"{p!r} is not in {text!r}", re.search(p, text))


def test_file_and_status(bench):
    """Every access is in the file, the status is the command's, and kernels that were not recorded are named."""
    path = bench.path("x.ttmt")
    out, err = record("-o", path, "--", producer(bench), "ok", "50000", "3", status=3)
    eq("stdout", out, "")
    said(
        err,
        "50,000 accesses recorded, 0 dropped, 1 of 2 kernels",
        r"not recorded, no PTX: ampere_sgemm_128x64_nn \(12 launches\)",
    )
    # Two instructions, regular: a fraction of a byte each.
    true(f"{os.path.getsize(path)} bytes", os.path.getsize(path) < 25000)
    shown = subprocess.run([TTMON, "memtrace", path], capture_output=True, text=True, check=True).stdout
    said(shown, "50,000 records", "copy", "ld.global.f32")


def test_report(bench):
    """Without a file the report comes at the end, behind the command's output."""
    out, err = record(producer(bench), "ok", "5000")
    said(out, "copy", "st.global.f32", "25,000|2,500")
    said(err, "5,000 accesses recorded")
    out, err = record("--mode", "aggregate", bench.path("mtprod"), "agg", "700")
    said(out, "st.global.f32")
    said(err, "sums of 700")


def test_options_reach_the_library(bench):
    """Each option is a variable of the command's environment; what was preloaded before stays."""
    out, _ = record(
        "--mode",
        "aggregate",
        "--kernel",
        "a*",
        "--kernel",
        "b?",
        "--launches",
        "3-9",
        "--instr",
        "-5",
        "--sample",
        "64",
        "--space",
        "global,local",
        "--all-modules",
        "--ring",
        "2M",
        producer(bench),
        "env",
        env={"LD_PRELOAD": "libm.so.6"},
    )
    got = dict(line.split("=", 1) for line in out.splitlines() if line.startswith(("TTMON", "LD_")))
    true(f"socket {got.get('TTMON_MEMTRACE_SOCKET')}", got.pop("TTMON_MEMTRACE_SOCKET", "").endswith("/sock"))
    eq("LD_PRELOAD", got.pop("LD_PRELOAD"), os.path.realpath(LIB) + ":libm.so.6")
    eq(
        "environment",
        got,
        {
            "TTMON_MEMTRACE_MODE": "aggregate",
            "TTMON_MEMTRACE_KERNELS": "a*,b?",
            "TTMON_MEMTRACE_LAUNCHES": "3-9",
            "TTMON_MEMTRACE_INSTR": "-5",
            "TTMON_MEMTRACE_SAMPLE": "64",
            "TTMON_MEMTRACE_SPACES": "global,local",
            "TTMON_MEMTRACE_ALL": "1",
            "TTMON_MEMTRACE_RING": "2097152",
        },
    )


def test_killed(bench):
    """A program that dies in the middle: what was committed is there."""
    path = bench.path("x.ttmt")
    _, err = record("-o", path, "--", producer(bench), "kill", "3000", status=137)
    said(err, "3,000 accesses recorded", "ended without saying so")
    shown = subprocess.run([TTMON, "memtrace", path], capture_output=True, text=True, check=False).stdout
    said(shown, "3,000 records")


def test_child_goes_on(bench):
    """A child that outlives the command is recorded to its end."""
    _, err = record("-o", bench.path("x.ttmt"), "--", producer(bench), "late", "100")
    # It connects when the command has long ended: it was not waited for, for nobody knew of it.
    said(err, "no channel was opened")
    _, err = record(
        "-o",
        bench.path("x.ttmt"),
        "--",
        "sh",
        "-c",
        f"{bench.path('mtprod')} wait 400 & sleep 0.5; kill -INT $!; exit 4",
        status=4,
    )
    said(err, "400 accesses recorded")


def test_interrupt(bench):
    """SIGINT that is sent to us alone reaches the command; its end is waited for."""
    proc = subprocess.Popen(
        [TTMON, "memtrace", "record", "-o", bench.path("x.ttmt"), producer(bench), "wait", "900"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    bench.procs.append(proc)
    eq("first line", proc.stdout.readline(), "ready\n")
    time.sleep(0.05)
    proc.send_signal(signal.SIGINT)
    _, err = proc.communicate(timeout=10 * PATIENCE)
    eq("exit status", proc.returncode, 7)
    said(err, "900 accesses recorded")


def test_losses_are_said(bench):
    """Full rings, and a channel that lies."""
    _, err = record("-o", bench.path("x.ttmt"), "--", producer(bench), "drop", "5000")
    got = re.search(r"([\d,]+) accesses recorded, ([\d,]+) dropped because the buffer was full", err)
    true(f"no count in {err!r}", got)
    eq("recorded and dropped", sum(int(x.replace(",", "")) for x in got.groups()), 5000)
    _, err = record("-o", bench.path("x.ttmt"), "--", bench.path("mtprod"), "hostile")
    said(err, "its channel is broken and not read any more")


def test_file_is_full(bench):
    """A limit, and a disk without room: nothing more is written, the command goes on, and what is there can be read."""
    path = bench.path("x.ttmt")
    _, err = record("-o", path, "--order", "--max-bytes", "4K", "--", producer(bench), "ok", "300000")
    said(err, "nothing more is written, the command goes on", "300,000 accesses recorded")
    text = subprocess.run([TTMON, "memtrace", "--json", path], capture_output=True, text=True, check=False).stdout
    said(err, f"which holds {json.loads(text)['source']['records']:,} of them")
    true(f"{os.path.getsize(path)} bytes", os.path.getsize(path) <= 4096)
    _, err = record("-o", "/dev/full", "--", bench.path("mtprod"), "ok", "1000", "0", status=2)
    said(err, "/dev/full: No space left on device: nothing more is written", "1,000 accesses recorded")


def test_refused(bench):
    """One clear line, and nothing is run or touched."""
    kept = bench.path("kept")
    with open(kept, "w", encoding="utf-8") as f:
        f.write("mine")
    prod = producer(bench)
    for args, word in (
        ([], "which program"),
        (["--mode", "fast", prod], "aggregate"),
        (["--sample", "0", prod], "from 1 to 16777216"),
        (["--launches", "9-3", prod], "range"),
        (["--space", "texture", prod], "global"),
        (["--kernel", "a,b", prod], "comma"),
        (["--order", prod], "without -o"),
        (["-o", "-", prod], "standard output"),
        (["--ring", "1", prod], "from 4096"),
        (["--nothing", prod], "no such option"),
        (["-o"], "missing"),
        (["-o", "/nowhere/x", prod], "No such file"),
        (["-o", kept, "/nowhere/prog"], "cannot run"),
        (["-o", bench.path("new"), "/nowhere/prog"], "cannot run"),
    ):
        out, err = record(*args, status=2)
        eq(f"stdout of {args}", out, "")
        eq(f"lines of {args} ({err!r})", err.count("\n"), 1)
        said(err, "^ttmon memtrace record: ", word)
    _, err = record(prod, status=2, env={"TTMON_MEMTRACE_LIB": "/nowhere/lib.so"})
    said(err, "TTMON_MEMTRACE_LIB")
    with open(kept, encoding="utf-8") as f:
        eq("the file of a command that was not found", f.read(), "mine")
    true("a file of a command that was not found", not os.path.exists(bench.path("new")))
    _, err = record(prod, "none", "5", status=5)
    said(err, "no channel was opened")
