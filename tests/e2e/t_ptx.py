# SPDX-License-Identifier: GPL-2.0-only
"""t_ptx.py: rewritten kernels as ptxas takes them: for every chip that it knows, with both recorders, with no register spilled."""
import os
import re
import shutil
import subprocess

from e2e import OUT, TOP, Skip, eq, timeout, true

KERNELS = os.path.join(TOP, "tests", "memtrace")
PTXRW = os.path.join(OUT, "tests", "memtrace", "ptxrw")
PTXAS = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
# Which text, with which recorder, and the chips that it is held against.
PAIRS = (("75", "stream", ("75",)), ("80", "stream", ("80",)), ("90", "stream", ("90", "100")), ("75", "aggregate", ("75",)), ("90", "aggregate", ("120",)))
PROPERTIES = re.compile(r"properties for (\S+)\n *(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def chips():
    """What this ptxas knows."""
    return set(re.findall(r"sm_(\d+)", subprocess.run([PTXAS, "--help"], capture_output=True, text=True, check=True).stdout))


def assemble(bench, text, chip, name):
    done = subprocess.run([PTXAS, "-v", f"-arch=sm_{chip}", text, "-o", bench.path(f"{name}.cubin")], capture_output=True, text=True, check=False)
    eq(f"{name}: ptxas -arch=sm_{chip} ({done.stderr[-600:]})", done.returncode, 0)
    return {(m[1], m[3], m[4]) for m in PROPERTIES.finditer(done.stdout + done.stderr)}


@timeout(120)
def test_ptxas(bench):
    """The kernels of tests/memtrace, rewritten, assemble, and neither the copies nor the recorder spill."""
    if not os.path.exists(PTXAS):
        raise Skip("no ptxas")
    known = chips()
    for text, how, targets in PAIRS:
        out = bench.path(f"{how}_{text}.ptx")
        subprocess.run([PTXRW, os.path.join(KERNELS, f"kernels_{text}.ptx"), out, how], check=True, stdout=subprocess.DEVNULL)
        for chip in known.intersection(targets):
            got = assemble(bench, out, chip, f"{how}_{text}_{chip}")
            true("the copies are there", any(name == "__ttmon_vadd" for name, _, _ in got))
            ours = sorted(f for f in got if f[0].startswith("__ttmon") and f[1:] != ("0", "0"))
            eq(f"{how} {text} sm_{chip}: functions of ours that spill", ours, [])


@timeout(60)
def test_old_targets(bench):
    """The recorder that streams is PTX 6.3 for sm_50, the one that counts 6.3 for sm_70: a ptxas that no longer makes code for them still checks them."""
    if not os.path.exists(PTXAS):
        raise Skip("no ptxas")
    for target, how in (("50", "stream"), ("61", "stream"), ("70", "stream"), ("70", "aggregate")):
        path, out = bench.path("old.ptx"), bench.path(f"old_{target}_{how}.ptx")
        with open(path, "w", encoding="ascii") as f:
            f.write(f".version 6.3\n.target sm_{target}\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b64 %a;\n.reg .b32 %x;\n"
                    "ld.param.u64 %a, [p];\nld.u32 %x, [%a];\nst.global.u32 [%a+4], %x;\nret;\n}\n")
        subprocess.run([PTXRW, path, out, how], check=True, stdout=subprocess.DEVNULL)
        assemble(bench, out, "75", f"old_{target}_{how}")
