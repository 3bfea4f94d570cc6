#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make_traces.py: memory traces as NVBit's mem_trace and Accel-Sim's tracer write them, of kernels
whose accesses are known.

make_traces.py DIR             writes the samples of tests/memtrace/traces: the same files each time,
                               unless xz or zstd have another version
make_traces.py --big GB [PAT]  writes GB * 10^9 bytes of NVBit 1.5 text to the standard output;
                               PAT: unit (default), stride, gather, mixed
"""
import gzip
import os
import struct
import subprocess
import sys

CTX = 0x6403C12BDF10
A, B, C = 0x710C9B000000, 0x710C9B200000, 0x710C9B400000
BANNER = (
    "------------- NVBit (NVidia Binary Instrumentation Tool%s) Loaded --------------\n"
    "NVBit core environment variables (mostly for nvbit-devs):\n"
    "           NVDISASM = nvdisasm - override default nvdisasm found in PATH\n"
    "            NOBANNER = 0 - if set, does not print this banner\n"
    "---------------------------------------------------------------------------------\n"
    "         INSTR_BEGIN = 0 - Beginning of the instruction interval where to apply instrumentation\n"
    "           INSTR_END = 4294967295 - End of the instruction interval where to apply instrumentation\n"
    "        TOOL_VERBOSE = 0 - Enable verbosity inside the tool\n" + "-" * 100 + "\n"
)


def h16(v):
    return "0x%016x" % v


def access(launch, cta, warp, op, addrs, ctx=CTX, fmt=h16):
    """A line of 1.5 and later."""
    return "MEMTRACE: CTX %s - grid_launch_id %d - CTA %d,%d,%d - warp %d - %s - %s \n" % (
        h16(ctx),
        launch,
        *cta,
        warp,
        op,
        " ".join(fmt(a) for a in addrs),
    )


def access13(cta, warp, op, addrs):
    return "CTA %d,%d,%d - warp %d - %s - %s \n" % (*cta, warp, op, " ".join(h16(a) for a in addrs))


def launch(n, name, grid, block, ctx=CTX, shmem=0, stream=0):
    return (
        "MEMTRACE: CTX %s - LAUNCH - Kernel pc 0x00007f18a4fa0b00 - Kernel name %s - grid launch id %d - grid size %d,"
        "%d,%d"
        " - block size %d,%d,%d - nregs 16 - shmem %d - cuda stream id %d\n"
        % (h16(ctx), name, n, *grid, *block, shmem, stream)
    )


def launch13(name, grid, block):
    return "Kernel %s - grid size %d,%d,%d - block size %d,%d,%d - nregs 16 - shmem 0 - cuda stream id 0\n" % (
        name,
        *grid,
        *block,
    )


def unit(base, width, cta=0, warp=0, block=256):
    return [base + (cta * block + warp * 32 + i) * width for i in range(32)]


def scatter(base, seed, size):
    """32 addresses that look random and are the same each time."""
    out = []
    for _ in range(32):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(base + (seed >> 33) % size * 4)
    return out


def vecadd(n, ctas=2, warps=4, ctx=CTX):
    """c[i] = a[i] + b[i] of doubles."""
    out = []
    for cta in range(ctas):
        for warp in range(warps):
            for op, base in (("LDG.E.64", A), ("LDG.E.64", B), ("STG.E.64", C)):
                out.append(access(n, (cta, 0, 0), warp, op, unit(base, 8, cta, warp, warps * 32), ctx))
    return out


NAME = "void ns::transpose<float, 32>(float *, float const *, int - 1)"


def nvbit17():
    lines = [
        BANNER % " v1.7.6",
        "MEMTRACE: STARTING CONTEXT 0x6403c12bdf10\n",
        launch(0, "vecadd(double*, double*, double*, int)", (2, 1, 1), (128, 1, 1)),
    ]
    lines += vecadd(0)
    lines.append("step 1: loss 0.25\n")
    lines.append(launch(1, NAME, (4, 4, 1), (32, 8, 1), stream=7))
    for w in range(8):
        lines.append(access(1, (1, 2, 0), w, "LDG.E", [A + w * 4096 + i * 4 for i in range(32)]))
        lines.append(access(1, (1, 2, 0), w, "STS", [w * 4 + i * 132 for i in range(32)]))
        lines.append(access(1, (1, 2, 0), w, "LDS", [w * 132 + i * 4 for i in range(32)]))
        lines.append(access(1, (1, 2, 0), w, "STG.E", [B + w * 4 + i * 4096 for i in range(32)]))
        lines.append(access(1, (1, 2, 0), w, "LDGSTS.E.BYPASS.LTC128B.128", [1024 + i * 16 for i in range(32)]))
        lines.append(access(1, (1, 2, 0), w, "LDGSTS.E.BYPASS.LTC128B.128", [A + 65536 + i * 16 for i in range(32)]))
    lines.append("MEMTRACE: TERMINATING CONTEXT 0x6403c12bdf10\n")
    return "".join(lines)


def nvbit15(banner=True):
    """Ids of launches are one more than those of accesses; two writers have torn some lines; lanes are off."""
    acc = vecadd(0)
    lines = [
        BANNER % " v1.5.5" if banner else "",
        launch(1, "vecadd(double*, double*, double*, int)", (2, 1, 1), (128, 1, 1)),
    ] + acc[:12]
    lines.append(launch(2, "tail(float*, int)", (1, 1, 1), (20, 1, 1)))
    lines += acc[12:]  # late: their launch is by their number
    tail = [A + 4 * i for i in range(32)]
    lines.append(access(1, (0, 0, 0), 0, "LDG.E", tail[:20] + [0] * 12))
    lines.append(access(1, (0, 0, 0), 0, "LDG.E", tail))
    lines.append(access(1, (0, 0, 0), 0, "STG.E", tail[:30] + [0x4000, 0xDEAD0000_0000_0000]))
    lines.append(acc[0][:300] + acc[1])  # cut by another line
    lines.append("progress 50%" + acc[2])  # behind the program's words
    lines.append(acc[3][:100] + "\n" + acc[3][100:])
    lines.append("MEMTRACE: CTX 0x0000\n")
    return "".join(lines)


def nvbit13():
    lines = [BANNER % "", launch13("vecadd - with - dashes(double*)", (2, 1, 1), (128, 1, 1))]
    for cta in range(2):
        for warp in range(4):
            lines.append(access13((cta, 0, 0), warp, "LDG.E.64.SYS", unit(A, 8, cta, warp, 128)))
            lines.append(access13((cta, 0, 0), warp, "STG.E.64.SYS", unit(C, 8, cta, warp, 128)))
    lines.append("Kernel launched by the program itself\n")
    lines.append(launch13("second(int)", (1, 1, 1), (32, 1, 1)))
    lines.append(access13((0, 0, 0), 0, "RED.E.ADD.STRONG.GPU", [A] * 32))
    return "".join(lines)


def forks():
    """Numbers of any length, blanks of any number."""
    return "".join(
        [
            launch(0, "k", (1, 1, 1), (64, 1, 1)),
            access(0, (0, 0, 0), 0, "LDG.E", unit(A, 4), fmt=lambda a: "0x%x" % a),
            access(
                0, (0, 0, 0), 1, "LDG.E.U8", [A + 5 * i if i < 7 else 0 for i in range(32)], fmt=lambda a: "0x%X" % a
            ),
            access(0, (0, 0, 0), 1, "ATOMS.ADD", [64] * 32, fmt=lambda a: "0x%x" % a)
            .replace(" - ", "  -   ")
            .replace(" 0x", "   0x"),
            access(0, (0, 0, 0), 1, "HYPER.LOAD", unit(A, 4)),
            access(9, (0, 0, 0), 1, "LDG.E", unit(A, 4)),
        ]
    )


def raw(big, ops):
    out = b""
    for cta in range(2):
        for warp in range(8):
            for op in range(ops):
                head = struct.pack("<q", cta) if big else b""
                out += head + struct.pack("<iiiii4x32Q", cta, 0, 0, warp, op, *unit(A + op * 2**21, 4, cta, warp))
        if not big:
            out += struct.pack("<iiiii4x32Q", -1, 0, 0, 0, 0, *[0] * 32)
    return out


def accel_head(n, name, grid, block, version, lineinfo=None):
    text = (
        "-kernel name = %s\n-kernel id = %d\n-grid dim = (%d,%d,%d)\n-block dim = (%d,%d,%d)\n-shmem = 1024\n-nregs = "
        "16\n-binary version = 80\n"
        "-cuda stream id = 0\n-shmem base_addr = 0x00007f6ef4000000\n-local mem base_addr = 0x00007f6ef2000000\n"
        "-nvbit version = 1.5.5\n"
        "-accelsim tracer version = %d\n" % (name, n, *grid, *block, version)
    )
    return text + ("-enable lineinfo = %d\n" % lineinfo if lineinfo is not None else "") + "\n#traces format = ...\n\n"


def accel_lines(fields, line, cta, warp):
    """The instructions of one warp. fields: before each; line: numbers of lines are there."""
    n = (lambda k: "%d " % k) if line else (lambda k: "")
    base = A + (cta * 4 + warp) * 128
    out = [
        fields + n(3) + "0000 ffffffff 1 R1 MOV 0 0 ",
        fields + n(4) + "0010 ffffffff 1 R2 LDG.E.SYS 1 R2 4 1 0x%x 4 " % base,
        fields + n(4) + "0020 0000ffff 1 R2 LDG.E.U8.SYS 1 R2 1 2 0x%x %s " % (B, " ".join(["3"] * 15)),
        fields + n(5) + "0030 00010101 1 R4 LDG.E.S8 1 R2 4 0 0x%x 0x%x 0x%x " % (A, A + 64, C),
        fields + n(6) + "0040 ffffffff 1 R4 LD.E 1 R2 4 1 0x7f6ef4000100 8 ",
        fields + n(6) + "0050 ffffffff 1 R4 LD.E 1 R2 4 1 0x7f6ef2000010 0 ",
        fields + n(7) + "0060 00000000 1 R4 LDG.E 1 R2 4 0 ",
        fields + n(7) + "0070 ffffffff 0 LDGSTS.E.128 2 R2 R3 16 1 0x400 16 ",
        fields + n(7) + "0070 ffffffff 0 LDGSTS.E.128 2 R2 R3 16 1 0x%x 16 " % (B + 4096),
        fields
        + n(8)
        + "0080 ffffffff 0 STG.E.SYS 2 R2 R4 4 2 0x%x %s %s"
        % (C, " ".join(["4", "-8"] * 15 + ["4"]), "12" if line else ""),
        fields + n(9) + "a090 ffffffff 0 EXIT 0 0 ",
    ]
    return "\n".join(out) + "\n"


def accel_trace(n):
    text = accel_head(n, "_Z3addPf", (2, 1, 1), (64, 1, 1), 2)
    for cta in range(2):
        for warp in range(2):
            text += accel_lines("%d 0 0 %d " % (cta, warp), False, cta, warp)
    return text


def accel_traceg(n, version, lineinfo):
    text = accel_head(n, "_Z5groupPf", (2, 1, 1), (64, 1, 1), version, lineinfo)
    for cta in range(2):
        text += "#BEGIN_TB\n\nthread block = %d,0,0\n\n" % cta
        for warp in range(2):
            text += "warp = %d\ninsts = 11\n" % warp + accel_lines("", bool(lineinfo), cta, warp) + "\n"
        text += "#END_TB\n\n"
    return text


def pack(command, data):
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def samples():
    copy = "MemcpyHtoD,0x00007f6ed2000000,4096\n"
    listed = f"{copy}kernel-1.traceg\nkernel-2.traceg\n{copy}kernel-3.traceg\nkernel-4.trace\n"
    one = accel_traceg(1, 3, None).encode()
    files = {
        "nvbit-1.3.txt": nvbit13().encode(),
        "nvbit-1.5.txt": nvbit15().encode(),
        "nvbit-1.5-nobanner.txt": nvbit15(False).encode(),
        "nvbit-1.7.txt": nvbit17().encode(),
        "forks.txt": forks().encode(),
        "small.raw": raw(False, 2),
        "big.raw": raw(True, 3),
        "big.raw.opcodes": b"# of one run\n0 LDG.E\n1 STG.E.EF\n\n2 LDS.U.128\n",
        "kernel-1.traceg": one,
        "kernel-2.traceg.xz": pack(["xz", "-c"], accel_traceg(2, 4, 1).encode()),
        "kernel-3.traceg.gz": gzip.compress(accel_traceg(3, 5, 0).encode(), 6, mtime=0),
        "kernel-4.trace.zst": pack(["zstd", "-qc"], accel_trace(4).encode()),
        "kernelslist.g": listed.encode(),
    }
    return files


def big(n, pattern):
    """One block of lines again and again: making them must not be what takes the time."""
    block = []
    for k in range(4096):
        cta, warp = (k // 48, 0, 0), k // 3 % 16
        op = ("LDG.E.64", "LDG.E.64", "STG.E.64")[k % 3]
        kind = pattern if pattern != "mixed" else ("unit", "stride", "gather")[k % 3]
        base = (A, B, C)[k % 3] + (k // 3) * 256
        if kind == "unit":
            addrs = [base + i * 8 for i in range(32)]
        elif kind == "stride":
            addrs = [base + i * 136 for i in range(32)]
        else:
            addrs = scatter((A, B, C)[k % 3], k, 2**22)
        block.append(access(0, cta, warp, op, addrs))
    text = "".join(block).encode()
    out = sys.stdout.buffer
    out.write((BANNER % " v1.7.6" + launch(0, "big(double*)", (1000000, 1, 1), (512, 1, 1))).encode())
    done = 0
    while done < n:
        out.write(text)
        done += len(text)


def main():
    if sys.argv[1:2] == ["--big"]:
        big(float(sys.argv[2]) * 1e9, sys.argv[3] if len(sys.argv) > 3 else "unit")
        return
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, data in samples().items():
        with open(os.path.join(sys.argv[1], name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
