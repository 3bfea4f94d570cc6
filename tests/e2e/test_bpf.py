#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Pure parts of the BPF programs, run in the kernel through BPF_PROG_RUN (tests/bpf).

Prints "ok NAME", "FAIL NAME: why" or "SKIP NAME: why"; exit status 1 if something failed, 77 if
nothing could run. The programs are built by `make bpf-build`; O is the output folder. Needs root.
"""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ["rmid_alloc"]


def main():
    if os.geteuid():
        print("SKIP bpf: needs root")
        return 77
    folder = os.path.join(ROOT, os.environ.get("O", ".output"), "tests/bpf")
    failed = False
    for name in PROGRAMS:
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            print(f"FAIL {name}: {path} is not built: make bpf-build")
            failed = True
            continue
        done = subprocess.run(
            [path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False
        )
        lines = [x for x in done.stdout.splitlines() if x.startswith(("ok ", "FAIL ", "# "))]
        print("\n".join(lines))
        if done.returncode or not any(x.startswith("ok ") for x in lines):
            if not any(x.startswith("FAIL ") for x in lines):
                print(f"FAIL {name}: status {done.returncode}: {done.stdout[-300:]!r}")
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
