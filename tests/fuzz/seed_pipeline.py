#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""seed_pipeline.py: write the seeds of fuzz_pipeline: streams made of the seeds of fuzz_decode."""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DECODE = os.path.join(HERE, "corpus/decode")
NEAR_ZERO = (1 << 20) // 8  # an offset of 0 us


def record(name, us):
    with open(os.path.join(DECODE, name), "rb") as f:
        data = f.read()
    data = struct.pack("<Q", NEAR_ZERO + us) + data[8:]
    return bytes([len(data) // 8 * 2]) + data


def advance(us):
    out = b""
    while us > 0:
        step = min(us // 16, 127)
        out += bytes([step * 2 + 1])
        us -= max(step, 1) * 16
    return out


STREAMS = {
    "life": [
        ("clock", 0),
        ("proc", 10),
        ("object", 0),
        ("map", 0),
        ("maps_done", 0),
        ("symbol", 0),
        ("alloc", 20),
        ("tag", 21),
        ("copy", 30),
        1500,
        ("copy_rect", 40),
        ("checkpoint", 45),
        ("hint", 50),
        ("free", 60),
        ("exit", 70),
        3000,
    ],
    "maps": [
        ("clock", 0),
        ("proc", 10),
        ("map", 0),
        ("maps_done", 0),
        ("mmap", 20),
        ("copy", 30),
        ("mremap", 40),
        ("munmap", 50),
        ("brk", 60),
        2000,
        ("exit", 10),
        2000,
    ],
    "late": [
        ("copy", 5000),
        3000,
        ("copy", -2000),
        ("alloc", 9000),
        ("free", -900),
        12000,
        ("reset", 0),
        ("launches", 3),
    ],
    "facts": [("clock", 0), ("proc_name", 0), ("blind", 0), ("lost", 0), ("copy", 1), 1000],
}


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "corpus/pipeline")
    os.makedirs(out, exist_ok=True)
    for name, ops in STREAMS.items():
        with open(os.path.join(out, name), "wb") as f:
            f.write(b"".join(record(*op) if isinstance(op, tuple) else advance(op) for op in ops))


main()
