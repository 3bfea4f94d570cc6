#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""import.py [--rounds N] [--libraries N] [--daemon PATH]...: a program that maps many libraries, under `ttmond -- CMD`.

It maps 400 libraries of its own, as a large program does while it starts, and says how long that
took: the start of ttmond itself, which start.py measures, is not in it. In turns: bare; under ttmond.
The libraries are made here, a file each, of two sizes; they are in the page cache. --daemon: another
ttmond, to compare with, in the same turns. As root, after `make all`.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(os.path.dirname(HERE)), os.environ.get("O", ".output"))
GOAL = 1.10
PROGRAM = """
import _ctypes, sys, time
names = open(sys.argv[1]).read().split()
begun = time.perf_counter()
for name in names:
    _ctypes.dlopen(name, 2)
print(time.perf_counter() - begun)
"""


def make(folder, count):
    """Libraries without anything that ttmond looks for; every eighth has 20,000 functions."""
    made = []
    for name, functions in (("small", 100), ("large", 20000)):
        source = os.path.join(folder, name + ".c")
        with open(source, "w", encoding="ascii") as f:
            f.writelines(f"int {name}_function_number_{i}(int x) {{ return x + {i}; }}\n" for i in range(functions))
        made.append(os.path.join(folder, name + ".so"))
        subprocess.run(["cc", "-O0", "-fPIC", "-shared", "-o", made[-1], source], check=True)
    names = []
    for i in range(count):
        names.append(os.path.join(folder, f"lib{i}.so"))
        shutil.copyfile(made[i % 8 == 7], names[-1])
    paths = os.path.join(folder, "names")
    with open(paths, "w", encoding="ascii") as f:
        f.write("\n".join(names))
    return paths


def run(args):
    done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(args)}: {done.returncode} {done.stderr[-300:]}")
    return float(done.stdout.splitlines()[0]) * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--libraries", type=int, default=400)
    parser.add_argument("--daemon", action="append", default=[])
    args = parser.parse_args()
    if os.geteuid():
        print("SKIP: needs root")
        return
    with tempfile.TemporaryDirectory(prefix="ttmon-import-") as folder:
        cmd = ["/usr/bin/python3", "-S", "-c", PROGRAM, make(folder, args.libraries)]
        ways = {"bare": cmd}
        for i, daemon in enumerate([os.path.join(OUT, "bin", "ttmond"), *args.daemon]):
            ways[f"import_{args.libraries}" + (f"_by_{daemon}" if i else "")] = [daemon, "--", *cmd]
        seen = {name: [] for name in ways}
        for i in range(args.rounds + 1):
            for name, way in ways.items():
                took = run(way)
                if i:
                    seen[name].append(took)
        floor = statistics.median(seen.pop("bare"))
        for name, took in seen.items():
            ratio = statistics.median(took) / floor
            print(
                f"{name}: {statistics.median(took):.0f} ms ({min(took):.0f} to {max(took):.0f}), "
                f"floor {floor:.0f} ms (bare), RATIO {ratio:.2f}, GOAL {GOAL:.2f}: "
                + ("met" if ratio <= GOAL else "MISSED"),
                flush=True,
            )
    print(f"import_host: load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
