#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""page.py [NAME]...: run the benchmarks, all or those named, and write docs/performance.md from what they print.

The page has the output of each benchmark as it is, and says on which machine, kernel and commit it
was measured, when, and how busy the machine was. What was not run is listed. As root, after
`make bench-build e2e-build`; `make bench` does that.
"""
import datetime
import glob
import os
import platform
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = os.path.join(ROOT, os.environ.get("O", ".output"))
PAGE = os.path.join(ROOT, "docs", "performance.md")
SCRIPTS = [
    "bpftrace.sh",
    "quiet.py",
    "start.py",
    "import.py",
    "sched.py",
    "attribution.py",
    "scrape.py",
    "api.py",
    "live.py",
    "view.py",
    "pinning.py",
]


def commands():
    """Names of all benchmarks, with what runs each and its source."""
    found = {}
    for source in sorted(glob.glob(os.path.join(HERE, "bench_*.c"))):
        name = os.path.basename(source)[:-2]
        found[name] = ([os.path.join(OUT, "tests", "bench", name)], source)
    for script in SCRIPTS:
        source = os.path.join(HERE, script)
        found[script] = ([sys.executable, source] if script.endswith(".py") else [source], source)
    return found


def subject(source):
    """The first sentence of the head comment."""
    with open(source, encoding="utf-8") as f:
        head = f.read(3000)
    text = re.search(r'/\*\n(.*?)\*/|"""(.*?)"""', head, re.S)
    if not text:
        text = re.search(r"((?:^# .*\n)+)", head.partition("SPDX")[2].partition("\n")[2], re.M)
    text = next(g for g in text.groups() if g)
    text = " ".join(line.strip().lstrip("*#").strip() for line in text.splitlines())
    text = re.split(r"(?<=\w)\.(?: |$)", text.strip(), maxsplit=1)[0]
    return " ".join((text.partition(": ")[2].rstrip(".") or text).split())


def said(args):
    done = subprocess.run(args, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    with open("/proc/meminfo", encoding="ascii") as f:
        memory = int(re.search(r"MemTotal:\s*(\d+)", f.read()).group(1)) / 2**20
    kind = said(["systemd-detect-virt"]) or "unknown"
    cpu = model.group(1) if model else platform.machine()
    return f"{os.cpu_count()} CPUs ({cpu}; virtual: {kind}), {memory:.0f} GiB"


def busy():
    return "%.1f, %.1f, %.1f" % os.getloadavg()


def write(known, sections, begun, commit, load):
    left = [n for n in known if n not in sections]
    page = [
        "# Performance\n",
        "This page is written by `make bench` (tests/bench/page.py): do not edit it. Each figure is a median, and a",
        "ratio to a floor that is measured in the same run. MISSED: the goal of the design is not met. What the floors",
        "and goals are, and why some goals are not met: [tests/bench](../tests/bench/README.md).\n",
        "| | |\n|---|---|",
        f"| machine | {machine()} |",
        f"| kernel | {platform.release()} |",
        f"| begun | {begun:%Y-%m-%d %H:%M} UTC |",
        f"| commit | {commit} |",
        f"| load average (1, 5, 15 minutes), before | {load} |",
        f"| and after | {busy()} |",
        f"| not run here | {', '.join(left) or 'none'} |\n",
        *sections.values(),
    ]
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write("\n".join(page))


def main():
    known = commands()
    names = sys.argv[1:] or list(known)
    unknown = [n for n in names if n not in known]
    if unknown:
        sys.exit(f"page.py: no such benchmark: {', '.join(unknown)}; there are {', '.join(known)}")
    commit = said(["git", "rev-parse", "--short=12", "HEAD"])
    if said(["git", "status", "--porcelain", "--untracked-files=no"]):
        commit += ", with changes that are not committed"
    begun, load, sections = datetime.datetime.now(datetime.timezone.utc), busy(), {}
    failed = []
    for name in names:
        print(f"{name}:", flush=True)
        args, source = known[name]
        done = subprocess.run(args, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout, end="", flush=True)
        text = done.stdout.rstrip()
        if done.returncode:
            failed.append(name)
            text += f"\nFAILED: status {done.returncode}"
        sections[name] = f"## {name}\n\nMeasures: {subject(source)}.\n\n```\n{text}\n```\n"
        # After each: what was measured is there, also where the rest is cut off.
        write(known, sections, begun, commit, load)
    if failed:
        sys.exit(f"page.py: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
