# SPDX-License-Identifier: GPL-2.0-only
"""tests/gpu/run.sh --standin: the script for machines with a GPU works where there is none, and finds what is wrong."""
import os
import re
import shutil
import subprocess

from e2e import OUT, SLOW, TOP, Skip, eq, standin, timeout, true

KERNEL = False
GPU = os.path.join(TOP, "tests", "gpu")


def run(argv, env):
    done = subprocess.run(argv, env={**os.environ, "O": OUT, **env}, capture_output=True, text=True, timeout=50 * SLOW, check=False)
    return done, [line.split(":")[0] for line in done.stdout.splitlines() if re.match("(ok|FAIL|SKIP) ", line)]


@timeout(60)
def test_stand_in(bench):
    if not shutil.which(os.environ.get("CC", "cc")):
        raise Skip("no compiler")
    true("the stand-in GPU is not built", os.path.exists(standin("gpu/libcuda.so.1")))
    checks = ("device", "figures", "aggregate", "slow_down")
    options = ["--standin", "--kernels", "[uv]*", *[word for name in checks for word in ("--check", name)]]
    done, verdicts = run([os.path.join(GPU, "run.sh"), *options], {"D": bench.dir})
    eq(f"verdicts ({done.stdout} {done.stderr})", (done.returncode, verdicts), (0, [f"ok gpu/memtrace/{name}" for name in checks]))
    rows = re.findall(r"^\| driver \| (\w+) \| [\d.,]+ \| [\d.,]+ \| [\d.,]+ \| [\d.,]+ \|$", done.stdout, re.M)
    true(f"table: {done.stdout}", {"unit_f32", "vadd"} <= set(rows))
    # A driver that does not take the rewritten PTX: programs go on, and the script does not call that fine.
    done, verdicts = run([os.path.join(GPU, "memtrace.py"), *options[:3], "--check", "figures", bench.dir], {"GPUSIM_FAIL_LOAD": "1"})
    eq(f"verdicts ({done.stdout} {done.stderr})", (done.returncode, verdicts), (1, ["FAIL gpu/memtrace/figures"]))
