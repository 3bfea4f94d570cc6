#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Hold real commands: many short ones, static ones, ones in other mount namespaces and roots.

Prints "ok NAME", "FAIL NAME: why" or "SKIP NAME: why"; exit status 1 if something failed, 77 if
nothing could run. Builds its two programs itself, in a temporary folder. Needs root.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests/e2e")


class Bench:
    def __init__(self, folder):
        self.dir = folder
        self.report = os.path.join(folder, "report")
        self.runner = os.path.join(folder, "hold_run")
        self.target = os.path.join(folder, "target")
        cc = os.environ.get("CC", "cc").split()
        sources = (
            ["tests/e2e/hold_run.c"]
            + [f"daemon/io/hold/{n}.c" for n in ("hold", "keeper", "heldfile")]
            + [f"lib/os/{n}.c" for n in ("log", "detached", "helpers")]
            + ["lib/base/fmt.c"]
        )
        include = ["-I", "include", "-I", "."]
        subprocess.run(
            cc + ["-std=gnu11", "-O2"] + include + ["-o", self.runner] + sources + ["-lpthread"], cwd=ROOT, check=True
        )
        subprocess.run(cc + ["-O2", "-static", "-o", self.target, "tests/e2e/hold_target.c"], cwd=ROOT, check=True)

    def run(self, *cmd, **kw):
        """The completed process, seconds, and what the command asked: a list of (kind, inode)."""
        start = time.monotonic()
        done = subprocess.run([self.runner, self.report, *cmd], timeout=60, check=False, **kw)
        took = time.monotonic() - start
        with open(self.report, encoding="ascii") as f:
            rows = [line.split() for line in f]
        asked = [(kind, int(n)) for kind, n in rows]
        return done, took, asked


def inode(path):
    return os.stat(path).st_ino


def check(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: {got}, not {wanted}")


def test_static_program(b):
    done, _, asked = b.run(b.target, "23")
    check("status", done.returncode, 23)
    check("asked", asked, [("exec", inode(b.target)), ("missed", 0)])


def test_many_execs(b):
    """200 dynamic programs: every one is seen, and at 200 a second or more, or an eighth of what the machine can do."""
    script = "for i in $(seq 200); do /bin/true || exit 1; done; exit 5"
    done, held, asked = b.run("/bin/sh", "-c", script)
    start = time.monotonic()
    subprocess.run(["/bin/sh", "-c", script], check=False)
    free = time.monotonic() - start
    check("status", done.returncode, 5)
    check("execs of true", asked.count(("exec", inode("/bin/true"))), 200)
    check("missed", asked[-1], ("missed", 0))
    print(f"# 200 execs: held {held * 1000:.0f} ms, not held {free * 1000:.0f} ms, ratio {held / free:.2f}")
    # Where everything is slow, so is a command that nobody holds.
    if held > max(1, 8 * free):
        raise AssertionError(f"200 execs took {held:.2f} s, {free:.2f} s when nobody holds them")


def test_mapped_libraries(b):
    """Every executable mapping of a Python with extension modules is asked for, and opened."""
    code = (
        "import ctypes, json, sqlite3, ssl, sys\n"
        "print(*sorted({l.split()[4] for l in open('/proc/self/maps') if 'r-xp' in l and '.so' in l}))"
    )
    done, _, asked = b.run(sys.executable, "-c", code, stdout=subprocess.PIPE)
    check("status", done.returncode, 0)
    mapped = {int(n) for n in done.stdout.split()}
    # The kernel itself maps ld.so at execve: no system call.
    loaders = {inode(p) for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(p)}
    if not mapped - loaders:
        raise AssertionError("nothing was mapped")
    check("not asked for", mapped - loaders - {n for _, n in asked}, set())
    check("not opened", asked.count(("map", 0)), 0)


def test_mount_namespace(b):
    """What the path names there, not what it names here."""
    there = os.path.join(b.dir, "there")
    shutil.copy("/bin/true", there)
    done, _, asked = b.run(
        "unshare", "-m", "sh", "-c", f"mount --bind {b.target} {there} && cd {b.dir} && {there} 3; ./there 4; exit $?"
    )
    check("status", done.returncode, 4)
    check("execs of the static program", asked.count(("exec", inode(b.target))), 2)
    check("execs of what it covers", asked.count(("exec", inode(there))), 0)


def test_other_root(b):
    """Absolute symbolic links and relative paths stay in the root of the command."""
    root = os.path.join(b.dir, "root")
    os.makedirs(os.path.join(root, "bin"))
    shutil.copy(b.target, os.path.join(root, "bin/t"))
    os.symlink("/bin/t", os.path.join(root, "link"))
    for path in ("/link", "bin/t", "../../bin/t"):
        done, _, asked = b.run("chroot", root, path, "9")
        check(f"status of {path}", done.returncode, 9)
        check(f"{path}", asked.count(("exec", inode(os.path.join(root, "bin/t")))), 1)


def test_nobody_keeps_the_pipe(b):
    """A child left behind keeps the keeper alive, but not our standard output."""
    script = "echo hello; sleep 5 </dev/null >/dev/null 2>&1 & exit 8"
    done, took, _ = b.run("sh", "-c", script, stdout=subprocess.PIPE)
    check("status", done.returncode, 8)
    check("output", done.stdout, b"hello\n")
    if took > 4:
        raise AssertionError("somebody held our pipe")


def test_signal_status(b):
    done, _, _ = b.run("sh", "-c", "kill -TERM $$")
    check("status", done.returncode, 128 + 15)


def main():
    if os.geteuid() != 0:
        print("SKIP hold: needs root")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ttmon-hold-") as folder:
        b = Bench(folder)
        if b.run("true")[0].returncode == 77:
            print("SKIP hold: no seccomp listener for us")
            return 77
        for name, test in [(n[5:], f) for n, f in globals().items() if n.startswith("test_")]:
            try:
                test(b)
                print(f"ok hold/{name}")
            except (AssertionError, subprocess.SubprocessError, OSError) as e:
                failed = 1
                print(f"FAIL hold/{name}: {e}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
