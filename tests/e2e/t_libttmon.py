# SPDX-License-Identifier: GPL-2.0-only
"""
libttmon in programs: call sites of a traced run found again, the second run advised, live advice at
checkpoints, being traced on request.
"""
import json
import os
import shutil
import subprocess

from e2e import LINGER, OUT, STANDIN, TOP, Skip, eq, last_json, load_db, make, standin, true

LIB = os.path.join(OUT, "libttmon")
ASKED = 13  # allocations of libttmon_sites


def ask(*cmd, env=None):
    done = subprocess.run(
        [*cmd], capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ, **(env or {}))
    )
    eq(f"{cmd}: stderr", done.stderr, "")
    eq(f"{cmd}: status ({done.stdout})", done.returncode, 0)
    return last_json(done.stdout)


def traced(bench, program):
    """The database of a first run, in which nothing was known."""
    out, _, _ = bench.trace([standin(program)], env=LINGER)
    book = last_json(out)
    eq("nothing is known in the first run", (book["asked"], book["none"]), (ASKED, ASKED))
    return bench.path("db.json")


def test_every_site_again(bench):
    """Under another ASLR each site is found: exactly, but for the one whose stack is longer than what makes the key."""
    db = traced(bench, "libttmon_sites")
    for args in ([], ["-n"]):
        got = ask(standin("libttmon_sites"), *args, db)
        eq(
            f"{args}: (exact, site, weaker)",
            (got["exact"], got["site"], got["names"] + got["order"] + got["none"]),
            (ASKED - 1, 1, 0),
        )
        eq(f"{args}: wrong verdicts", got["wrong"], 0)
        true(
            "the peak is worth less than all of it",
            0 < got["peak_pin_bytes"] < load_db(db)["summary"]["pinned_peak_bytes"],
        )


def test_archive(bench):
    db = traced(bench, "libttmon_sites_static")
    got = ask(standin("libttmon_sites_static"), db)
    eq("(exact, site, wrong)", (got["exact"], got["site"], got["wrong"]), (ASKED - 1, 1, 0))


def test_rebuilt(bench):
    """
    Another build: by function names, less sure. Four buffers of one site and size share one
    verdict, which is wrong for two.
    """
    db = traced(bench, "libttmon_sites")
    got = ask(standin("libttmon_sites_rebuilt"), db)
    eq("(exact: the named ones, names, none)", (got["exact"], got["names"], got["none"]), (2, ASKED - 2, 0))
    eq("wrong verdicts", got["wrong"], 2)


def test_without_frame_pointers(bench):
    """Code as -O2 makes it: the tracer and the library both read unwind tables, and have the same stacks."""
    for program in ("libttmon_sites_nofp", "libttmon_sites_nofp_static"):
        db = traced(bench, program)
        for args in ([], ["-n"]):
            got = ask(standin(program), *args, db)
            eq(
                f"{program} {args}: (exact + site, weaker, wrong)",
                (got["exact"] + got["site"], got["names"] + got["order"] + got["none"], got["wrong"]),
                (ASKED, 0, 0),
            )
        stacks = [s["stack"] for s in load_db(db)["sites"] if s["allocs"]]
        eq("stacks", {(s["by"], s["end"]) for s in stacks if s["end"] != "depth"}, {("tables", "complete")})


def test_two_databases(bench):
    """Runs of two builds, merged: both are known exactly."""
    first = traced(bench, "libttmon_sites")
    kept = bench.path("first.json")
    shutil.move(first, kept)
    second = traced(bench, "libttmon_sites_rebuilt")
    for program in ("libttmon_sites", "libttmon_sites_rebuilt"):
        got = ask(standin(program), kept, second)
        eq(f"{program}: (exact + site, wrong)", (got["exact"] + got["site"], got["wrong"]), (ASKED, 0))


def test_bad_databases(bench):
    """One line each, and the program goes on without."""
    for name, text in (
        ("none.json", None),
        ("foreign.json", '{"traceEvents": []}'),
        ("cut.json", '{"schema": "ttmon-db", "version": 1,'),
        ("later.json", '{"schema": "ttmon-db", "version": 99, "allocations": []}'),
    ):
        path = bench.path(name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run(
            [standin("libttmon_sites"), path], capture_output=True, text=True, timeout=30, check=False
        )
        eq(f"{name}: (status, stderr)", (done.returncode, done.stderr), (1, ""))
        true(f"{name}: {done.stdout!r}", name in json.loads(done.stdout)["error"])


def test_live(bench):
    """
    Traced on its own request; the advice comes while it runs; the buffer is pinned within a
    checkpoint, and the daemon sees that.
    """
    sock = bench.path("t.sock")
    idle = bench.target("sleep", "60", wait_ready=False)
    daemon = bench.daemon("--socket", sock, "--pid", str(idle.pid), "--dump-db", bench.path("live.json"))
    got = ask(standin("libttmon_live"), sock)
    eq("no daemon: ENOTCONN", got["alone"], -107)
    eq("traced", got["traced"], 0)
    true(f"a buffer was pinned: {got}", got["pinned_at"] > 0)
    eq("moved outside of a checkpoint", got["outside"], 0)
    eq("connects", got["connects"], 1)
    daemon.stop()
    db = load_db(bench.path("live.json"))
    methods = [a["method"] for a in db["allocations"] if a["pid"] == got["pid"]]
    true(f"custom and registered are in the database: {methods}", "custom" in methods and "registered" in methods)
    true("as are its checkpoints", len(db["checkpoints"]) >= got["steps"] > 0)


def test_live_in_a_pid_namespace(bench):
    """The program knows itself by another number than the daemon does, and hears its own advice all the same."""
    sock = bench.path("t.sock")
    idle = bench.target("sleep", "60", wait_ready=False)
    daemon = bench.daemon("--socket", sock, "--pid", str(idle.pid))
    got = ask("unshare", "--pid", "--fork", standin("libttmon_live"), sock)
    eq("its number there", got["pid"], 1)
    true(f"a buffer was pinned: {got}", got["pinned_at"] > 0)
    daemon.stop()


def test_daemon_comes_late(bench):
    """Subscribed while nobody is there: heard as soon as there is somebody."""
    sock = bench.path("t.sock")
    target = bench.target(standin("libttmon_live"), "-w", sock)
    target.go()
    daemon = bench.daemon("--socket", sock, "--pid", str(target.pid))
    got = last_json(target.finish())
    eq("not traced at first", got["traced"], -107)
    true(f"a buffer was pinned: {got}", got["pinned_at"] > 0)
    daemon.proc.terminate()
    daemon.wait(None)


def test_cxx(bench):
    got = ask(standin("libttmon_cxx"))
    eq("(lookups, trace_self)", (got["lookups"], got["trace_self"]), (3, -107))
    # A C++ program sees nothing but the names of the interface.
    names = subprocess.run(
        ["nm", "-D", "--defined-only", os.path.join(LIB, "libttmon.so.0")], capture_output=True, text=True, check=True
    ).stdout
    with open(os.path.join(TOP, "lib", "advisor", "libttmon.map"), encoding="utf-8") as f:
        wanted = sorted(line.strip(" \t;\n") for line in f if line.startswith("\tttmon_"))
    eq("exported", sorted(line.split()[2].split("@")[0] for line in names.splitlines() if " T " in line), wanted)
    archive = subprocess.run(
        ["nm", "-g", "--defined-only", os.path.join(LIB, "libttmon.a")], capture_output=True, text=True, check=True
    ).stdout
    eq("of the archive", sorted(line.split()[2] for line in archive.splitlines() if " T " in line), wanted)


def test_pkg_config(bench):
    """
    A program built as a user would, from what `make install` puts into a folder, with the shared
    library and with the archive.
    """
    for tool in ("pkg-config", "make", "cc"):
        if not shutil.which(tool):
            raise Skip(f"no {tool}")
    root = bench.path("root")
    make(f"prefix={root}", "install-libttmon")
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(root, "lib", "pkgconfig"))
    example = os.path.join(TOP, "docs", "examples", "pin-advised.c")
    for static in ([], ["--static"]):
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", *static, "libttmon"],
            capture_output=True,
            text=True,
            check=True,
            env=env,
        ).stdout.split()
        if static:
            flags = [os.path.join(root, "lib", "libttmon.a") if x == "-lttmon" else x for x in flags]
        program = bench.path("example" + "".join(static))
        subprocess.run(
            [
                "cc",
                "-O2",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fno-omit-frame-pointer",
                "-o",
                program,
                example,
                "-L",
                os.path.join(STANDIN, "lib"),
                "-l:libcudart.so.13",
                *flags,
            ],
            check=True,
        )
        paths = f"{root}/lib:{STANDIN}/lib"
        out, _, _ = bench.trace([program], env={"LD_LIBRARY_PATH": paths})
        true(f"first run: {out}", "pinned 8 of 8 buffers" in out)
        done = subprocess.run(
            [program, bench.path("db.json")],
            capture_output=True,
            text=True,
            check=False,
            env=dict(os.environ, LD_LIBRARY_PATH=paths),
        )
        eq(
            f"second run: {done.stderr}",
            (done.returncode, done.stdout.strip()),
            (0, "pinned 2 of 8 buffers, 6 of 22 MiB"),
        )
