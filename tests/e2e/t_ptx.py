# SPDX-License-Identifier: GPL-2.0-only
"""
t_ptx.py: rewritten kernels as ptxas takes them: for every chip that it knows, with both recorders,
with no register spilled.
"""
import os
import re
import shutil
import subprocess

from ptxtext import kernels_only, registers

from e2e import OUT, TOP, Skip, eq, timeout, true

KERNEL = False
KERNELS = os.path.join(TOP, "tests", "memtrace")
PTXRW = os.path.join(OUT, "tests", "memtrace", "ptxrw")
PTXAS = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
# Which text, and the chips that it is held against.
PAIRS = (("75", ("75",)), ("80", ("80",)), ("90", ("90", "100", "120")))
MOST_REGISTERS = 64  # a block of 1024 threads can still be launched
USED = re.compile(r"Compiling entry function '(__ttmon_\w+)'(?:.*\n)+?.*Used (\d+) registers")
PROPERTIES = re.compile(
    r"properties for (\S+)\n *(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)


def chips():
    """What this ptxas knows."""
    return set(
        re.findall(r"sm_(\d+)", subprocess.run([PTXAS, "--help"], capture_output=True, text=True, check=True).stdout)
    )


def assemble(bench, text, chip, name):
    done = subprocess.run(
        [PTXAS, "-v", f"-arch=sm_{chip}", text, "-o", bench.path(f"{name}.cubin")],
        capture_output=True,
        text=True,
        check=False,
    )
    eq(f"{name}: ptxas -arch=sm_{chip} ({done.stderr[-600:]})", done.returncode, 0)
    most = max((int(m[2]) for m in USED.finditer(done.stderr)), default=0)
    true(f"{name}: a copy takes {most} registers", most <= MOST_REGISTERS)
    return {(m[1], m[3], m[4]) for m in PROPERTIES.finditer(done.stdout + done.stderr)}


def recorder(bench, how):
    if not os.path.exists(PTXAS):
        raise Skip("no ptxas")
    known = chips()
    for text, targets in PAIRS:
        out = bench.path(f"{how}_{text}.ptx")
        subprocess.run(
            [PTXRW, os.path.join(KERNELS, f"kernels_{text}.ptx"), out, how], check=True, stdout=subprocess.DEVNULL
        )
        for chip in known.intersection(targets):
            got = assemble(bench, out, chip, f"{how}_{text}_{chip}")
            true("the copies are there", any(name == "__ttmon_vadd" for name, _, _ in got))
            ours = sorted(f for f in got if f[0].startswith("__ttmon") and f[1:] != ("0", "0"))
            eq(f"{how} {text} sm_{chip}: functions of ours that spill", ours, [])


@timeout(120)
def test_stream(bench):
    """The kernels of tests/memtrace, rewritten, assemble, and neither the copies nor the recorder spill."""
    recorder(bench, "stream")


@timeout(120)
def test_aggregate(bench):
    """The same with the recorder that counts."""
    recorder(bench, "aggregate")


@timeout(60)
def test_nvlink(bench):
    """
    Rewritten texts that are linked: neither the recorder nor copies are defined twice, also of a
    kernel that is .weak in both.
    """
    nvlink = os.path.join(os.path.dirname(PTXAS), "nvlink")
    if not os.path.exists(nvlink):
        raise Skip("no nvlink")
    for chip in chips().intersection({"80", "90"}):
        for how in ("stream", "aggregate"):
            objects = []
            for name in "ab":
                text, obj = bench.path(f"{name}.ptx"), bench.path(f"{name}.o")
                subprocess.run(
                    [PTXRW, os.path.join(KERNELS, f"link_{name}.ptx"), text, how], check=True, stdout=subprocess.DEVNULL
                )
                subprocess.run([PTXAS, "-c", f"-arch=sm_{chip}", text, "-o", obj], check=True)
                objects.append(obj)
            done = subprocess.run(
                [nvlink, f"-arch=sm_{chip}", *objects, "-o", bench.path("linked.cubin")],
                capture_output=True,
                text=True,
                check=False,
            )
            eq(f"sm_{chip} {how}: {done.stdout + done.stderr}", done.returncode, 0)


@timeout(120)
def test_apart(bench):
    """
    The recorder as a module of its own, as nvlink links it: copies can be launched with 1,024 threads, and the
    program's kernels have the registers that they have without a linker, or a few more.
    """
    nvlink = os.path.join(os.path.dirname(PTXAS), "nvlink")
    if not os.path.exists(nvlink):
        raise Skip("no nvlink")
    known = chips()
    for text, targets in PAIRS:
        source = bench.path(f"only_{text}.ptx")
        names = kernels_only(source, text)
        for chip in known.intersection(targets) - {"75", "100"}:
            plain, linked = bench.path("plain.cubin"), bench.path("linked.cubin")
            subprocess.run([PTXAS, f"-arch=sm_{chip}", source, "-o", plain], check=True)
            for how in ("stream", "aggregate"):
                out = bench.path("apart.ptx")
                subprocess.run([PTXRW, source, out, f"{how}+apart"], check=True, stdout=subprocess.DEVNULL)
                objects = bench.path("kernels.o"), bench.path("recorder.o")
                for part, obj, options in (
                    (out, objects[0], ()),
                    (f"{out}.recorder", objects[1], ("-maxrregcount=40",)),
                ):
                    subprocess.run([PTXAS, "-c", *options, f"-arch=sm_{chip}", part, "-o", obj], check=True)
                subprocess.run([nvlink, f"-arch=sm_{chip}", *objects, "-o", linked], check=True)
                before, after = registers(plain), registers(linked)
                for name in names:
                    was, now, copy = before[name], after[name], after[f"__ttmon_{name}"]
                    true(f"sm_{chip} {how}: {name} takes {was}, then {now} registers", now <= was + 4)
                    true(f"sm_{chip} {how}: a copy of {name} takes {copy} registers", copy <= MOST_REGISTERS)


@timeout(60)
def test_old_targets(bench):
    """
    The recorder that streams is PTX 6.3 for sm_50, the one that counts 6.3 for sm_70: a ptxas that no longer makes code
    for them still checks them.
    """
    if not os.path.exists(PTXAS):
        raise Skip("no ptxas")
    for target, how in (("50", "stream"), ("61", "stream"), ("70", "stream"), ("70", "aggregate")):
        path, out = bench.path("old.ptx"), bench.path(f"old_{target}_{how}.ptx")
        with open(path, "w", encoding="ascii") as f:
            f.write(
                f".version 6.3\n.target sm_{target}\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg "
                ".b64 %a;\n.reg .b32 %x;\n"
                "ld.param.u64 %a, [p];\nld.u32 %x, [%a];\nst.global.u32 [%a+4], %x;\nret;\n}\n"
            )
        subprocess.run([PTXRW, path, out, how], check=True, stdout=subprocess.DEVNULL)
        assemble(bench, out, "75", f"old_{target}_{how}")
