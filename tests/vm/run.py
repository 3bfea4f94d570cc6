#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""run.py [SERIES...]: the daemon under other kernels (default: Debian's newest 6.1 and 6.12) in QEMU, without KVM.

Everything is built on the host; the guest sees the host's files and runs tests/vm/guest.py, about two minutes a kernel. Prints
"ok NAME", "FAIL NAME: why" or "SKIP NAME: why" and at the end the counts. SKIP where qemu or a kernel cannot be had. Exit status 1
when something failed.
"""
import os
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
# How uprobes are attached there: uprobe_multi links came with Linux 6.6.
UPROBES = {"6.1": "legacy", "6.12": "multi"}
LIMIT = 600  # seconds for a kernel
BOOT_LIMIT = 90  # seconds to its first line

counts = {"ok": 0, "FAIL": 0, "SKIP": 0}


def say(line):
    counts[line.split(" ")[0]] += 1
    print(line, flush=True)


def fetch(series):
    """The name of the kernel, or None and why there is none."""
    done = subprocess.run([os.path.join(HERE, "setup.sh"), series], capture_output=True, text=True, check=False)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ["setup.sh failed"])[-1]
    return done.stdout.split()[1], None


def build_kmd(kernel):
    """The folder with the stand-in for tt-kmd, or "-" and why: the guest says it where it skips."""
    done = subprocess.run([os.path.join(HERE, "kmd", "build.sh"), kernel], capture_output=True, text=True, check=False)
    if done.returncode:
        return "-" + (done.stderr.strip().splitlines() or ["build.sh failed"])[-1].replace("'", "")
    return done.stdout.split()[-1]


def boot_once(kernel, command):
    """Run a command in a guest: an iterator over its lines; the last item is the exit status."""
    args = [os.path.join(HERE, "qvm.sh"), "-k", kernel, "-t", str(LIMIT), f"uname -r; {command}"]
    with subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as guest:
        silent = threading.Timer(BOOT_LIMIT, os.killpg, (guest.pid, signal.SIGTERM))
        silent.start()
        for line in guest.stdout:
            silent.cancel()
            yield line.rstrip("\r\n")
        silent.cancel()
    yield guest.returncode


def boot(kernel, command):
    """The same, once more where the guest said nothing at all: one boot in some hundreds hangs under emulation."""
    said = False
    for line in boot_once(kernel, command):
        if isinstance(line, int) and not said:
            yield from boot_once(kernel, command)
            return
        said = True
        yield line


def test(series):
    kernel, why = fetch(series)
    if not kernel:
        say(f"SKIP vm/{series}: {why}")
        return
    out = os.environ.get("O", ".output")
    command = f"cd '{TOP}' && O='{out}' KMD='{build_kmd(kernel)}' exec python3 tests/vm/guest.py {UPROBES[series]}"
    other, done = [], False
    for line in boot(kernel, command):
        if isinstance(line, int):
            if not done:
                for text in other[-30:]:
                    print("    " + text, file=sys.stderr)
                say(f"FAIL vm/{series}: the guest did not get to the end (status {line})")
        elif line.split(" ")[0] in counts:
            kind, name = line.split(" ", 1)
            if kind == "FAIL":
                for text in other[-30:]:
                    print("    " + text, file=sys.stderr)
            other = []
            say(f"{kind} vm/{series}/{name}")
        elif line == "done":
            done = True
        else:
            other.append(line)


def main():
    if not os.path.exists(os.path.join(TOP, os.environ.get("O", ".output"), "bin", "ttmond")):
        print("run.py: the programs are not built: make e2e-build", file=sys.stderr)
        return 1
    if os.geteuid() != 0:
        print("SKIP vm: needs root\n0 passed, 0 failed, 1 skipped")
        return 0
    for series in sys.argv[1:] or UPROBES:
        if series not in UPROBES:
            print(f"run.py: no series {series}, only {' '.join(UPROBES)}", file=sys.stderr)
            return 2
        test(series)
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped")
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
