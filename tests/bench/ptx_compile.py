# SPDX-License-Identifier: GPL-2.0-only
"""
ptx_compile.py [ROUNDS]: how much longer a text takes to compile with the recorder, in one run, interleaved: the text
itself, with the recorder in it, and linked with the recorder as a module of its own (ptxas and nvlink of the toolkit;
the driver's compiler is the same without the start of three programs, which is taken off). The kernels are those of
tests/memtrace/kernels_90.ptx that call no function.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
from ptxtext import kernels_only  # noqa: E402

PTXAS = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
NVLINK = os.path.join(os.path.dirname(PTXAS), "nvlink")
PTXRW = os.path.join(TOP, ".output", "tests", "memtrace", "ptxrw")
ARCH = "-arch=sm_90"
EMPTY = ".version 8.0\n.target sm_90\n.address_size 64\n"


def main():
    if not os.path.exists(PTXAS):
        sys.exit("no ptxas: nvidia-cuda-toolkit or NVIDIA's own is needed")
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:

        def path(name):
            return os.path.join(folder, name)

        def seconds(*commands):
            start = time.monotonic()
            for command in commands:
                subprocess.run(command, check=True)
            return time.monotonic() - start

        def assemble(source, out, *options):
            return [PTXAS, ARCH, *options, path(source), "-o", path(out)]

        with open(path("empty.ptx"), "w", encoding="ascii") as f:
            f.write(EMPTY)
        names = kernels_only(path("plain.ptx"), 90)
        for how in ("stream", "aggregate"):
            for kind in (how, f"{how}+apart"):
                command = [PTXRW, path("plain.ptx"), path(f"{kind}.ptx"), kind]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        print(f"ptx_compile: {len(names)} kernels, sm_90, medians of {rounds} rounds")
        for how in ("stream", "aggregate"):
            times = {"start": [], "plain": [], "whole": [], "apart": []}
            for _ in range(rounds):
                times["start"].append(seconds(assemble("empty.ptx", "empty.o", "-c")))
                times["plain"].append(seconds(assemble("plain.ptx", "plain.cubin")))
                times["whole"].append(seconds(assemble(f"{how}.ptx", "whole.cubin")))
                times["apart"].append(
                    seconds(
                        assemble(f"{how}+apart.ptx", "kernels.o", "-c"),
                        assemble(f"{how}+apart.ptx.recorder", "recorder.o", "-c", "-maxrregcount=40"),
                        [NVLINK, ARCH, path("kernels.o"), path("recorder.o"), "-o", path("apart.cubin")],
                    )
                )
            start, plain, whole, apart = (statistics.median(times[k]) for k in ("start", "plain", "whole", "apart"))
            plain, whole, apart = plain - start, whole - start, apart - 3 * start
            print(
                f"  {how}: plain {plain * 1000:.0f} ms; "
                f"recorder in the text {whole * 1000:.0f} ms ({whole / plain:.1f} times); "
                f"linked {apart * 1000:.0f} ms ({apart / plain:.1f} times)"
            )


main()
