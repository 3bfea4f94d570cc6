# SPDX-License-Identifier: GPL-2.0-only
"""gpu.py: what the parts of run.sh share: where things are, verdicts, and facts for the JSON file.

A part is a program of its own. It prints one line for each check ("ok", "FAIL" or "SKIP", then
"gpu/PART/CHECK"), and it writes what it learns to the file $TTMON_GPU_FACTS at once, so that a part
that is cut off leaves what it knew.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import e2e  # noqa: E402
from e2e import SLOW, Skip  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
# The stand-in libraries take the place of NVIDIA's: this shows that a part works, its figures mean nothing.
ON_STANDIN = os.environ.get("GPU_STANDIN") == "1"
LIBCUDA = os.environ.get("GPU_LIBCUDA") or None
CUDART = os.environ.get("GPU_CUDART") or None
FOLDER = os.path.abspath(os.environ.get("D") or os.path.join(e2e.OUT, "tests", "gpu"))
TORCH_PYTHON = os.environ.get("TORCH_PYTHON") or sys.executable


def has_driver():
    """libcuda makes /dev/nvidiactl by itself where it runs as root: only one that can be opened has
    a driver.
    """
    try:
        os.close(os.open("/dev/nvidiactl", os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True


DEVICE = ON_STANDIN or has_driver()
# Options of every ttmond: system calls that map memory are traced through tracefs, where there is one.
TRACE = () if os.path.exists("/sys/kernel/tracing/events/syscalls") else ("--no-mmap",)


class Part:
    """Its name, and the facts that it has learnt."""

    def __init__(self, name):
        self.name, self.facts, self.failed = name, {}, 0
        self.file = os.environ.get("TTMON_GPU_FACTS")

    def fact(self, key, value):
        self.facts[key] = value
        if self.file:
            with open(self.file + ".new", "w", encoding="utf-8") as f:
                json.dump(self.facts, f, default=str)
            os.replace(self.file + ".new", self.file)
        return value

    def say(self, verdict, check, text=""):
        print(f"{verdict} gpu/{self.name}/{check}" + (f": {text}" if text else ""), flush=True)
        self.failed += verdict == "FAIL"

    def check(self, function, *args, name=None):
        """Calls function(bench, *args), which returns a text for its verdict, or raises."""
        name = name or function.__name__
        with tempfile.TemporaryDirectory(prefix="ttmon-gpu-") as folder:
            bench = e2e.Bench(folder)
            try:
                self.say("ok", name, function(bench, *args) or "")
            except Skip as why:
                self.say("SKIP", name, str(why))
            except (AssertionError, LookupError, OSError, TypeError, ValueError, subprocess.SubprocessError) as why:
                kind = "" if isinstance(why, AssertionError) else type(why).__name__ + ": "
                self.say("FAIL", name, kind + str(why).replace("\n", " / "))
                bench.show_logs()
            finally:
                bench.close()

    def status(self):
        return 1 if self.failed else 0


def program(name):
    path = os.path.join(FOLDER, name)
    if not os.path.exists(path):
        raise Skip(f"no {path}: it was not built")
    return path


def text_of(path, limit=65536):
    """What a file says, or None."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read(limit)
    except OSError:
        return None


def output(argv, seconds=10, env=None):
    """What a program prints, without the last newline; None where there is no such program or it
    does not end well.
    """
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds * SLOW, check=False, env=env)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def needs_bpf():
    """Skips a check where the kernel gives this process no uprobes by BPF."""
    try:
        done = subprocess.run(
            [program("hits"), "check"], capture_output=True, text=True, timeout=20 * SLOW, check=False
        )
    except OSError as why:
        raise Skip(f"hits does not run here: {why}") from None
    if done.stdout.strip() != "ok":
        raise Skip("the kernel refuses " + ((done.stdout + done.stderr).strip() or "uprobes by BPF"))


def needs_library():
    if not LIBCUDA:
        raise Skip("no libcuda.so.1 (GPU_LIBCUDA)")


def needs_device():
    needs_library()
    if not DEVICE:
        raise Skip("no NVIDIA driver (/dev/nvidiactl cannot be opened)")


def needs_runtime():
    if not CUDART:
        raise Skip("no libcudart (GPU_CUDART)")


def standin_env():
    """What programs on the stand-in libraries need."""
    if not ON_STANDIN:
        return {}
    return {"STANDIN_NESTED": "1", "LD_LIBRARY_PATH": os.path.dirname(CUDART)}


def fields(text, separator=":"):
    """{name: number of the rest}, of lines such as "VmPin:  12 kB": in the unit that they say."""
    found = {}
    for line in (text or "").splitlines():
        m = re.match(rf"([\w()]+){separator}?\s+(\d+)", line)
        if m:
            found[m[1]] = int(m[2])
    return found
