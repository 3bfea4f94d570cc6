# SPDX-License-Identifier: GPL-2.0-only
"""The stand-ins themselves: do they behave, and are they built like the real libraries?"""
import glob
import os
import platform
import re
import subprocess

from e2e import CUDA_LIB, STANDIN, TOP, Skip, eq, standin, true

FORMS = ("", "_ptds", "_ptsz")


def exports(path):
    done = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines()}


def rows():
    """(symbol, library, versions) of every row of the probe table."""
    with open(os.path.join(TOP, "include/ttmon/fns.h"), encoding="utf-8") as f:
        found = re.findall(r"F\(\d+, (\w+), (\w+), (V\d(?: \| TTMON_V\d)*),", f.read())
    return [(name, lib, [v for v in re.findall(r"V(\d)", versions)]) for name, lib, versions in found]


def test_selftest(_):
    for env in ({}, {"STANDIN_NESTED": "1"}):
        done = subprocess.run(
            [standin("selftest")], env={**os.environ, **env}, capture_output=True, text=True, check=False
        )
        eq(f"selftest {env}", (done.returncode, done.stdout), (0, ""))


def test_every_probed_function_is_there(_):
    libs = {
        "RT": exports(standin("lib/libcudart.so.13")),
        "RT13": exports(standin("lib/libcudart.so.13")),
        "RT12": exports(standin("lib/libcudart.so.12")),
        "DRV": exports(standin("lib/libcuda.so.1")),
    }
    missing = []
    for name, lib, versions in rows():
        names = {name + ("" if v == "1" else "_v" + v) for v in versions}
        if not any(n + form in libs[lib] for n in names for form in FORMS):
            missing.append(f"{lib}:{name}")
    eq("probed functions that the stand-ins lack", missing, [])
    true("the table was not read", len(rows()) > 100)


def test_every_probed_function_is_called(_):
    """A row that no test program calls is a row that nobody has seen work."""
    called = set()
    for name in ("everyfn", "everyfn12", "scen", "ledger", "drvscen"):
        with open(standin(name), "rb") as f:
            called.update(t.decode() for t in re.findall(rb"\0(cu\w+)(?=[\0@])", f.read()))
    missing = []
    for name, lib, versions in rows():
        # The stand-in driver refuses 32-bit device addresses: nothing of today asks for them.
        names = {name + ("" if v == "1" else "_v" + v) for v in versions}
        if name != "cuMemAlloc" and not any(n + form in called for n in names for form in FORMS):
            missing.append(f"{lib}:{name} {versions}")
    eq("probed functions that no test calls", missing, [])


def test_same_forms_as_the_real_runtime(_):
    real = os.path.join(CUDA_LIB, "libcudart.so.13")
    if not os.path.exists(real):
        raise Skip(f"no {real}")
    probed = {name for name, lib, _ in rows() if lib.startswith("RT")}
    ours, theirs = exports(standin("lib/libcudart.so.13")), exports(real)
    want = {n + form for n in probed for form in FORMS if n + form in theirs}
    eq("names that the real runtime has and ours has not", sorted(want - ours), [])


def test_frame_pointer_prologue(_):
    """Every exported function begins push %rbp; mov %rsp,%rbp, as the real ones."""
    if platform.machine() != "x86_64":
        raise Skip("x86 only")
    for path in glob.glob(os.path.join(STANDIN, "lib", "libcud*.so.*")):
        done = subprocess.run(["objdump", "-d", path], capture_output=True, text=True, check=True)
        starts = re.findall(
            r"<(cu\w+)(?:@\S+)?>:\n +\w+:\t([0-9a-f ]+?) +\t[^\n]*\n +\w+:\t([0-9a-f ]+?) +\t", done.stdout
        )
        bad = [
            name
            for name, first, second in starts
            if not name.endswith("_body") and (first, second) != ("55", "48 89 e5")
        ]
        eq(f"other prologues in {os.path.basename(path)}", bad, [])
        true(f"no functions found in {path}", len(starts) > 100)


def test_one_address_per_name(_):
    for lib in ("libcudart.so.13", "libcudart.so.12", "libcuda.so.1"):
        done = subprocess.run(
            ["nm", "-D", "--defined-only", standin("lib/" + lib)], capture_output=True, text=True, check=True
        )
        addrs = [line.split()[0] for line in done.stdout.splitlines() if line.split()[1] == "T"]
        eq(f"names that share an address in {lib}", len(addrs) - len(set(addrs)), 0)
