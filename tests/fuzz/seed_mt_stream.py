#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""seed_mt_stream.py: write the seed corpus of fuzz_mt_stream (tests/fuzz/corpus/mt_stream): the file
of memtrace/stream/stream.h by its specification alone, most blocks as they are, so that what is in
them can be changed. Same files each time.
"""
import os
import struct
import zlib

SITES, LAUNCHES, AGGS, TOUCHES, KERNELS, RECORDS, END, COUNTS = range(1, 9)


def u(*values):
    out = bytearray()
    for v in values:
        v &= (1 << 64) - 1
        while v >= 0x80:
            out.append(v & 0x7F | 0x80)
            v >>= 7
        out.append(v)
    return bytes(out)


def zigzag(d):
    d &= (1 << 64) - 1
    return (d << 1 ^ (0 if d < 1 << 63 else (1 << 64) - 1)) & (1 << 64) - 1


def text(s):
    return u(len(s)) + s.encode()


def run(d, count=1):
    z = zigzag(d)
    first = (z & 0x3F) << 1 | (count > 1) | (0x80 if z >> 6 else 0)
    return bytes([first]) + (u(z >> 6) if z >> 6 else b"") + (u(count - 2) if count > 1 else b"")


def header(version=1):
    head, tool = struct.pack("<4sHHI", b"TTMT", version, 0, 0), b"ttmon by hand".ljust(32, b"\0")
    return head + struct.pack("<I", zlib.crc32(tool, zlib.crc32(head))) + tool


def block(kind, items, plain, packed=False):
    stored = zlib.compress(plain) if packed else plain
    assert not packed or len(stored) < len(plain)
    head = struct.pack("<4sHHIII", b"TBLK", kind, 0, len(stored), len(plain), items)
    return head + struct.pack("<I", zlib.crc32(stored, zlib.crc32(head))) + stored


def columns(cols, order=False):
    return u(int(order)) + u(*[len(c) for c in cols]) + b"".join(cols)


DICT = block(
    SITES,
    2,
    u(0)
    + b"".join(text(t) for t in ("k", "LDG.E", "a.cu", ""))
    + u(16, 3, 0, 1, 0, 4, 0)
    + b"".join(text(t) for t in ("k", "ATOMS.ADD", "", "m"))
    + u(32, 4, 9, 2, 2, 4, 0),
) + block(LAUNCHES, 1, u(0) + text("k") + u(7, 0, 10, 1, 1, 256, 1, 1, 30, 0, 0, 12345, 1 << 40, 1 << 41, 99, 0))
REST = (
    block(AGGS, 1, u(0, 0, 0, *range(2, 11), 1 << 40, 1 << 41))
    + block(COUNTS, 1, u(1, 1, 0xFFFFFFFF, *range(2, 11), 1 << 40, 1 << 41, 1, *range(140)))
    + block(TOUCHES, 1, u(0, 1 << 40, 4096, 1, 0, 0xFFFFFFFF, 99))
    + block(KERNELS, 1, u(0) + text("k2") + text("libx.so") + text("no PTX") + u(5, 0, 0, 1))
)
LAST = block(END, 1, u(16, 1, 2, 0, 0, 0, 107, 7, 0, 1, 0) + text("NVBit 1.5.5 mem_trace"))
NONE = b""


def unit(more):
    """8 warps of each of 2 blocks, one after the other: a[i], 4 bytes a lane. more: several of the same difference."""
    return [
        more(0, 16),
        more(0, 16),
        run(1 | 4 << 8) + more(0, 15),
        run(0xFFFFFFFF) + more(0, 15),
        more(0, 8) + run(1) + more(0, 7),
        more(0, 16),
        more(0, 16),
        run(0) + more(1, 7) + run(-7) + more(1, 7),
        run(3) + more(0, 15),
        run(1 << 40) + more(128, 15),
        run(4) + more(0, 15),
    ]


UNIT = unit(run)
# Two lists: of four lanes, divided, and of all.
LISTS = [
    run(1, 1) + run(0),
    run(0, 2),
    run(1 | 4 << 8 | 1 << 24 | 1 << 25) + run(-(1 << 25)),
    run(15) + run(0xFFFFFFF0),
    run(0, 2),
    run(0, 2),
    run(0, 2),
    run(1, 2),
    run(0xFFFF) + run(0),
    run(1 << 40) + run(64),
    run(0, 2),
]
LANES = u(*[zigzag(d) for d in (1, -1, 50)], *[zigzag(4 * d * (-1) ** d) for d in range(31)])
LAST_FIRST = bytes([15] + [255] * 15 + [0] + [255] * 15)

SEEDS = {
    "grouped": header() + DICT + block(RECORDS, 16, columns(UNIT + [NONE] * 3)) + REST + LAST,
    "ordered": header()
    + DICT
    + block(RECORDS, 16, columns(UNIT + [run(100) + run(1, 15), LAST_FIRST, NONE], True))
    + LAST,
    "lists": header() + DICT + block(RECORDS, 2, columns(LISTS + [NONE, NONE, LANES])) + LAST,
    "packed": header()
    + DICT
    + block(RECORDS, 16, columns(unit(lambda d, n: run(d) * n) + [NONE] * 3), packed=True)
    + LAST,
    "no-dictionary": header() + block(RECORDS, 16, columns(UNIT + [NONE] * 3)) + LAST,
    "cut": (header() + DICT + block(RECORDS, 16, columns(UNIT + [NONE] * 3)))[:-9],
    "again": header() + DICT + DICT + REST + REST + LAST,
    "version": header(2) + DICT,
    "unknown": header() + DICT + block(99, 1, b"?") + LAST + b"more",
}


def main():
    out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "mt_stream")
    os.makedirs(out, exist_ok=True)
    for name, data in SEEDS.items():
        with open(os.path.join(out, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
