#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""entry.py: is the exported entry of libcuda what is called? Called by parts.py.

Programs come to the driver in three ways: they look a function up (dlsym), they ask
cuGetProcAddress, or they call the runtime, which does the latter. Where one of these ends at
another address than the exported one, a uprobe there sees nothing of it. Uprobes on every exported
function count (hits.c, without ttmond); a function at a time is called, and what was entered is
read.
"""
import collections
import ctypes
import os
import re
import struct
import subprocess
import sys

from gpu import (
    CUDART,
    DEVICE,
    HERE,
    LIBCUDA,
    ON_STANDIN,
    TORCH_PYTHON,
    Part,
    Skip,
    needs_bpf,
    needs_device,
    needs_library,
    needs_runtime,
    program,
    standin_env,
)
from e2e import SLOW, TOP, Target, eq, true

part = Part("entry")
CALLS = 8
# Each version of a function came with a version of CUDA.
CUDA_VERSIONS = (
    2000,
    3020,
    4000,
    6050,
    7000,
    8000,
    9000,
    10010,
    11000,
    11020,
    11040,
    12000,
    12020,
    12080,
    13000,
    13010,
)
LEGACY, PER_THREAD = 1, 2


# ---- what libcuda exports ----
def exports(path, wanted=r"cu[A-Z]\w*$"):
    """{name: (offset in the file, first 24 bytes)}, by the sections of a 64-bit ELF file."""
    with open(path, "rb") as f:
        data = f.read()
    eq("an ELF file of 64 bits", data[:5], b"\x7fELF\x02")
    (at,) = struct.unpack_from("<Q", data, 40)
    size, n = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(n)]
    loads = [
        struct.unpack_from("<IIQQQQQQ", data, struct.unpack_from("<Q", data, 32)[0] + i * 56)
        for i in range(struct.unpack_from("<H", data, 56)[0])
    ]
    found = {}
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        if kind != 11:  # SHT_DYNSYM
            continue
        strings = sections[link][4]
        for i in range(offset, offset + length, entry):
            name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, i)
            name = data[strings + name : data.index(b"\0", strings + name)].decode()
            if not section or info & 15 not in (2, 10) or not re.match(wanted, name):
                continue
            for kind, _, file_at, address, _, in_file, _, _ in loads:
                if kind == 1 and address <= value < address + in_file:
                    found[name] = (
                        value - address + file_at,
                        data[value - address + file_at : value - address + file_at + 24],
                    )
    return found


def probed():
    """Base names of the driver's functions that ttmond probes."""
    with open(os.path.join(TOP, "include", "ttmon", "fns.h"), encoding="utf-8") as f:
        return set(re.findall(r"^\s*F\(\d+, (cu(?!da)\w+), DRV", f.read(), re.M))


def base(name):
    return re.sub(r"(_v\d)?(_ptds|_ptsz)?$", "", name)


def emulated(code):
    """x86-64: kernels of all versions emulate it: push, nop, relative jumps and calls."""
    return (
        code[0] in (*range(0x50, 0x58), *range(0x70, 0x80), 0x90, 0xE8, 0xE9, 0xEB)
        or code[0] == 0x41
        and code[1] in range(0x50, 0x58)
        or code[0] == 0x0F
        and code[1] in range(0x80, 0x90)
    )


def placed(code):
    """How far behind the entry an instruction stands that the kernel emulates, with nothing before
    it but what a probe may skip; None: nowhere.
    """
    at = 0
    for _ in range(4):
        rest = code[at:]
        if len(rest) < 2:
            return None
        if emulated(rest):
            return at
        if rest.startswith(b"\xf3\x0f\x1e\xfa"):  # endbr64
            at += 4
        elif rest.startswith(b"\x81\x3d"):  # cmpl $imm32,off(%rip)
            at += 10
        elif rest[:2] in (b"\x83\x3d", b"\x80\x3d"):
            at += 7
        elif rest[:1] == b"\x85" or rest[:2] == b"\x48\x85":  # test
            at += 2 if rest[:1] == b"\x85" else 3
        elif rest[:1] == b"\xb8":  # mov $imm32,%eax
            at += 5
        else:
            return None
    return None


def shape(code):
    for start, name in (
        (b"\xf3\x0f\x1e\xfa", "endbr64"),
        (b"\x81\x3d", "cmpl $imm32,off(%rip)"),
        (b"\x83\x3d", "cmpl $imm8,off(%rip)"),
        (b"\xff\x25", "jmp *off(%rip)"),
        (b"\x48\x83\xec", "sub $imm8,%rsp"),
        (b"\x55", "push %rbp"),
    ):
        if code.startswith(start):
            return name
    return (
        "push"
        if code[0] in range(0x50, 0x58) or code[:1] == b"\x41" and code[1] in range(0x50, 0x58)
        else code[:3].hex(" ")
    )


def bytes_of_entries(_):
    """The first instructions of the driver's functions: what the kernel makes of a probe there."""
    needs_library()
    all_, ours = exports(LIBCUDA), probed()
    entries = {name: code for name, (_, code) in all_.items() if base(name) in ours}
    shapes, places = collections.Counter(map(shape, entries.values())), collections.Counter(
        placed(code) for code in entries.values()
    )
    part.fact(
        "entries",
        {
            "library": os.path.realpath(LIBCUDA),
            "exported": len(all_),
            "of functions that ttmond probes": len(entries),
            "first instruction": dict(shapes),
            "first instruction, all exported": dict(collections.Counter(shape(code) for _, code in all_.values())),
            "emulated at the entry": sum(emulated(code) for code in entries.values()),
            "emulated behind the entry at": {str(k): n for k, n in places.items()},
            "bytes": {name: code.hex(" ") for name, code in sorted(entries.items())},
        },
    )
    return f"{len(all_)} exported, {len(entries)} probed: {dict(shapes)}; emulated at {dict(places)}"


# ---- what cuGetProcAddress gives ----
def ask(lib, name, version, flags):
    pointer, status = ctypes.c_void_p(), ctypes.c_int(-1)
    err = lib.cuGetProcAddress_v2(
        name.encode(), ctypes.byref(pointer), ctypes.c_int(version), ctypes.c_uint64(flags), ctypes.byref(status)
    )
    return pointer.value if not err else None


def where(address):
    with open("/proc/self/maps", encoding="utf-8") as f:
        for line in f:
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            if start <= address < end:
                return f"{(line.split() + ['anonymous'])[5]}+{address - start + int(line.split()[2], 16):#x}"
    return "nowhere"


def addresses(_):
    """The addresses that cuGetProcAddress gives are the exported entries."""
    needs_library()
    lib = ctypes.CDLL(LIBCUDA)
    if not hasattr(lib, "cuGetProcAddress_v2"):
        raise Skip("this libcuda has no cuGetProcAddress_v2")
    part.fact("cuInit", lib.cuInit(0))
    names = exports(LIBCUDA)
    entry = {name: ctypes.cast(getattr(lib, name), ctypes.c_void_p).value for name in names}
    by_address = collections.defaultdict(list)
    for name, address in entry.items():
        by_address[address].append(name)
    same, twins, unknown, never = [], {}, [], []
    for root in sorted({base(name) for name in names}):
        given = {
            (version, flags): ask(lib, root, version, flags)
            for version in CUDA_VERSIONS
            for flags in (LEGACY, PER_THREAD)
        }
        got = {address for address in given.values() if address}
        if not got:
            unknown.append(root)
            continue
        for address in got - set(by_address):
            asked = [
                f"{v}/{'per thread' if f == PER_THREAD else 'legacy'}" for (v, f), a in given.items() if a == address
            ]
            twins.setdefault(root, []).append(
                {"where": where(address), "bytes": ctypes.string_at(address, 16).hex(" "), "asked as": asked}
            )
        for name in (n for n in names if base(n) == root):
            (same if entry[name] in got else never).append(name)
    ours = probed()
    part.fact(
        "addresses",
        {
            "given as exported": len(same),
            "twins": twins,
            "exported and never given": never,
            "unknown to cuGetProcAddress": unknown,
            "names at one address": [n for n in by_address.values() if len(n) > 1],
        },
    )
    bad = sorted(set(twins) & ours)
    missed = sorted(n for n in never if base(n) in ours)
    true(
        f"of the functions that ttmond probes, {len(bad)} are given at an address that is not exported: {bad[:10]}",
        not bad,
    )
    return (
        f"{len(same)} exported entries are given, {len(twins)} functions at other addresses, "
        f"{len(never)} entries never ({len(missed)} of them probed: {missed[:6]})"
    )


# ---- what is entered ----
class Counter:
    """Uprobes on all exported functions."""

    def __init__(self, bench, path):
        self.names = sorted(exports(path).items())
        self.target = Target(bench, [program("hits"), "count", path], wait_ready=False)
        os.write(
            self.target.proc.stdin.fileno(), (" ".join(f"{offset:x}" for _, (offset, _) in self.names) + "\n").encode()
        )
        self.refused, line = [], self.target.line(60)
        while not line.startswith("attached"):
            true(line.strip(), line.startswith("refused"))
            self.refused.append(line.strip())
            line = self.target.line(60)
        self.attached, self.before = int(line.split()[1]), {}

    def read(self):
        """{function: times entered since the last call}. Functions at one address count alike."""
        self.target.go()
        now, line = {}, self.target.line()
        while line.strip() != ".":
            index, count = line.split()
            now[self.names[int(index)][0]] = int(count)
            line = self.target.line()
        new = {name: n - self.before.get(name, 0) for name, n in now.items() if n != self.before.get(name, 0)}
        self.before = now
        return new


# Functions of the driver and of the runtime. A call of the runtime may enter any function of the driver that
# ttmond probes: the runtime chooses.
BY_DRIVER = (
    "cuMemHostAlloc",
    "cuMemAllocHost_v2",
    "cuMemFreeHost",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemAllocManaged",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpy",
    "cuMemcpyAsync",
)
BY_RUNTIME = (
    "cudaHostAlloc",
    "cudaMallocHost",
    "cudaFreeHost",
    "cudaHostRegister",
    "cudaHostUnregister",
    "cudaMallocManaged",
    "cudaMalloc",
    "cudaFree",
    "cudaMemcpy h2d",
    "cudaMemcpy h2d pageable",
    "cudaMemcpy d2h",
    "cudaMemcpy default",
    "cudaMemcpyAsync h2d",
    "cudaMemcpyAsync d2h",
    "cudaMemcpy2D",
)


def entered(bench, way, calls):
    counter = Counter(bench, os.path.realpath(LIBCUDA))
    child = bench.target(
        sys.executable,
        "-B",
        os.path.join(HERE, "entry_calls.py"),
        way,
        LIBCUDA,
        CUDART or "-",
        str(CALLS),
        env=standin_env(),
    )
    before = counter.read()
    found, ours, wrong, failed = {"set-up": before}, probed(), [], 0
    for call in calls:
        os.write(child.proc.stdin.fileno(), (call + "\n").encode())
        if child.line().strip() == "missing":
            found[call] = {"errors": "missing", "entered": {}}
            continue
        counter.read()
        child.go()
        errors = child.line().strip()
        hits = counter.read()
        found[call] = {"errors": errors, "entered": hits}
        failed += errors != "0"
        if not any(n >= CALLS for name, n in hits.items() if base(name) in ours):
            wrong.append(f"{call} (error {errors}) entered {hits or 'nothing'}")
    child.go()
    part.fact(
        f"entered by {way}", {"probes": counter.attached, "refused": counter.refused, "calls each": CALLS, **found}
    )
    text = "; ".join(
        f"{c}: {', '.join(f'{n} x{k}' for n, k in f['entered'].items())}"
        for c, f in found.items()
        if c != "set-up" and f["errors"] != "missing"
    )
    print(f"  {way}: {text}", flush=True)
    if wrong and failed and not DEVICE:
        raise Skip(f"without a driver calls fail, and {len(wrong)} of {len(calls)} enter no probed function")
    true(f"{len(wrong)} calls pass by all that is probed: {'; '.join(wrong)}", not wrong)
    called = sum(f["errors"] != "missing" for c, f in found.items() if c != "set-up")
    return f"{called} functions, {CALLS} calls each, all entered where they are exported"


def by_dlsym(bench):
    """Functions that a program looked up."""
    needs_library()
    needs_bpf()
    return entered(bench, "dlsym", BY_DRIVER)


def by_get_proc_address(bench):
    """Functions that cuGetProcAddress gave."""
    needs_library()
    needs_bpf()
    return entered(bench, "cuGetProcAddress", BY_DRIVER)


def by_runtime(bench):
    """Functions of the runtime."""
    needs_library()
    needs_bpf()
    needs_runtime()
    return entered(bench, "runtime", BY_RUNTIME)


TORCH = """
import torch
a = torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)
d = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
for _ in range(8):
    d.copy_(a, non_blocking=True)
torch.cuda.synchronize()
"""


def by_torch(bench):
    """What PyTorch enters: one pinned block, eight copies."""
    needs_library()
    needs_bpf()
    if ON_STANDIN:
        raise Skip("not on the stand-in")
    needs_device()
    counter = Counter(bench, os.path.realpath(LIBCUDA))
    done = subprocess.run(
        [TORCH_PYTHON, "-W", "ignore", "-c", TORCH], capture_output=True, text=True, timeout=60 * SLOW, check=False
    )
    hits = counter.read()
    part.fact("entered by PyTorch", {"status": done.returncode, "error": done.stderr[-1000:], "entered": hits})
    if done.returncode:
        raise Skip(f"no PyTorch with a GPU: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    ours = {name: n for name, n in hits.items() if base(name) in probed()}
    copies = sum(n for name, n in ours.items() if name.startswith("cuMemcpy"))
    true(
        f"a pinned block and 8 copies, entered: {ours}",
        copies >= 8 and any(n.startswith(("cuMemHostAlloc", "cuMemAllocHost", "cuMemHostRegister")) for n in ours),
    )
    return ", ".join(f"{n} x{k}" for n, k in sorted(ours.items()))


def cost(_):
    """A probe with an empty program on functions that are not initialised, in ns: at the entry, and
    where the kernel emulates.
    """
    needs_library()
    needs_bpf()
    all_ = exports(LIBCUDA)
    names = [
        f"{n}:{placed(all_[n][1]) or 0}"
        for n in ("cuMemHostAlloc", "cuMemcpyHtoDAsync_v2", "cuLaunchKernel")
        if n in all_
    ]
    done = subprocess.run(
        [program("hits"), "cost", os.path.realpath(LIBCUDA), *names],
        capture_output=True,
        text=True,
        timeout=40 * SLOW,
        check=False,
    )
    eq(f"status ({done.stdout} {done.stderr})", done.returncode, 0)
    part.fact(
        "cost of a probe, ns",
        {line.split()[0]: dict(f.split("=") for f in line.split()[1:]) for line in done.stdout.splitlines()},
    )
    return "; ".join(done.stdout.strip().splitlines())


for check in (bytes_of_entries, addresses, by_runtime, by_get_proc_address, by_dlsym, by_torch, cost):
    part.check(check)
sys.exit(part.status())
