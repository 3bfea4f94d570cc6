#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""parts.py: runs the parts one after another, the most valuable first; called by run.sh.

Each part has a time limit, and all together have one. What a part prints is shown at once. The
results file is written anew after every verdict, so that a run which is cut off leaves what it
knew.
"""
import argparse
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LINES_MAX = 1500

# (name, seconds at most or None: all that is left, program, what it tells)
PARTS = (
    ("facts", 45, ["facts.py"], "what this machine is, and what it allows"),
    ("entry", 90, ["entry.py"], "which entries of libcuda are called, and what a probe there costs"),
    ("memory", 50, ["memory.py"], "how pinned memory is mapped, and what the kernel counts of it"),
    ("ledger", 130, ["ledger.py"], "what ttmond says of a PyTorch loop and of a C program that keep books"),
    ("waits", 40, ["waits.py"], "how a thread waits in calls, and who wakes it"),
    ("cost", 60, ["cost.py"], "what a call costs, traced and untraced"),
    ("accesses", None, ["memtrace.py"], "memory accesses of kernels"),
)


class Results:
    def __init__(self, path, about):
        self.path, self.since = path, time.time()
        self.all = {
            "schema": 1,
            **about,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "seconds": 0.0,
            "ended": False,
            "parts": [],
        }

    def write(self):
        self.all["seconds"] = round(time.time() - self.since, 1)
        if self.path:
            with open(self.path + ".new", "w", encoding="utf-8") as f:
                json.dump(self.all, f, indent=1)
            os.replace(self.path + ".new", self.path)


def read_facts(path):
    with contextlib.suppress(OSError, ValueError):
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    return {}


def end(proc):
    """SIGINT first: the part ends what it started."""
    for sig, seconds in ((signal.SIGINT, 6), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(proc.pid, sig)
        with contextlib.suppress(subprocess.TimeoutExpired):
            proc.wait(timeout=seconds)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(proc.pid, signal.SIGKILL)


def run_part(results, name, seconds, argv, about):
    part = {
        "name": name,
        "about": about,
        "status": "running",
        "limit": round(seconds, 1),
        "seconds": 0.0,
        "verdicts": [],
        "facts": {},
        "output": [],
    }
    results.all["parts"].append(part)
    results.write()
    print(f"== {name}: {about} (at most {seconds:.0f} s)", flush=True)
    since, rest, cut, eof = time.monotonic(), b"", False, False
    with tempfile.TemporaryDirectory(prefix="ttmon-gpu-part-") as folder:
        facts = os.path.join(folder, "facts.json")
        proc = subprocess.Popen(
            [sys.executable, "-B", *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TTMON_GPU_FACTS": facts, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        while not eof:
            left = seconds - (time.monotonic() - since)
            if left <= 0 and not cut:
                cut = True
                end(proc)
            # A process that a part left behind may hold its output open.
            if not select.select([proc.stdout], [], [], max(0.1, min(left, 1.0)))[0]:
                if proc.poll() is not None:
                    break
                continue
            more = os.read(proc.stdout.fileno(), 65536)
            eof = not more
            *lines, rest = (rest + more + (b"\n" if eof and rest else b"")).split(b"\n")
            for line in (raw.decode(errors="replace") for raw in lines):
                print(line, flush=True)
                if len(part["output"]) < LINES_MAX:
                    part["output"].append(line[:2000])
                verdict = re.match(r"(ok|FAIL|SKIP) (gpu/[\w/.+-]+)(?:: (.*))?$", line)
                if verdict:
                    part["verdicts"].append(
                        dict(zip(("verdict", "check", "text"), (verdict[1], verdict[2], verdict[3] or "")))
                    )
                    part["facts"], part["seconds"] = read_facts(facts), round(time.monotonic() - since, 1)
                    results.write()
        if proc.poll() is None:
            end(proc)
        proc.wait()
        part["facts"], part["seconds"] = read_facts(facts), round(time.monotonic() - since, 1)
    words = {v["verdict"] for v in part["verdicts"]}
    if cut:
        print(f"FAIL gpu/{name}: cut off after {seconds:.0f} s", flush=True)
    elif proc.returncode and "FAIL" not in words:
        print(f"FAIL gpu/{name}: ended with status {proc.returncode}", flush=True)
    failed = cut or proc.returncode or "FAIL" in words
    part["status"] = "cut off" if cut else "failed" if failed else "ok" if "ok" in words else "skipped"
    results.write()
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", action="append", metavar="PART", choices=[p[0] for p in PARTS], help="this alone; may be given again"
    )
    parser.add_argument("--limit", type=float, default=455, metavar="SECONDS", help="for all together (455)")
    parser.add_argument("--json", metavar="FILE", help="where the results go")
    parser.add_argument("--about", default="{}", help="members of the results, as JSON")
    parser.add_argument("more", nargs="*", help="after --: options of memtrace.py")
    args = parser.parse_args()
    results, failed, since = Results(args.json, json.loads(args.about)), 0, time.monotonic()
    for name, seconds, argv, about in PARTS:
        if args.only and name not in args.only:
            continue
        left = args.limit - (time.monotonic() - since)
        if left < 5:
            print(f"SKIP gpu/{name}: no time is left of {args.limit:g} s", flush=True)
            results.all["parts"].append({"name": name, "about": about, "status": "skipped", "why": "no time is left"})
            continue
        argv = [os.path.join(HERE, argv[0]), *argv[1:], *(args.more if name == "accesses" else [])]
        failed |= run_part(results, name, min(left, seconds or left), argv, about)
    results.all["ended"] = True
    results.write()
    for part in results.all["parts"]:
        count = {w: sum(v["verdict"] == w for v in part.get("verdicts", [])) for w in ("ok", "FAIL", "SKIP")}
        print(
            f"== {part['name']}: {part['status']}, {part.get('seconds', 0):.0f} s; "
            + ", ".join(f"{n} {w}" for w, n in count.items()),
            flush=True,
        )
    if args.json:
        print(f"== results: {args.json}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
