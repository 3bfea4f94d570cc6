#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the seeds of fuzz_mmap2: tests/fuzz/corpus/mmap2/. Two bytes as fuzz_mmap2.c says, then
records. Same output each time.
"""
import os
import struct

LOST, EXIT, MMAP2 = 2, 4, 10
BUILD_ID = 1 << 14


def record(kind, body, misc=0):
    body += struct.pack("<Q", 123456789)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def mmap2(name, misc=0):
    text = name.encode() + b"\0"
    text += bytes(-len(text) % 8)
    head = struct.pack("<IIQQQIIQQII", 7, 8, 0x7F0000001000, 0x2000, 0x1000, 254, 1, 99, 3, 5, 2)
    return record(MMAP2, head + text, misc)


def lost(n):
    return record(LOST, struct.pack("<QQ", 1, n))


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "mmap2")
    os.makedirs(folder, exist_ok=True)
    library = mmap2("/usr/lib/x86_64-linux-gnu/libcudart.so.13")
    seeds = {
        "one": b"\0\0" + library,
        "wraps": b"\0\x1f" + library,
        "several": b"\x0b\x05" + library + lost(17) + record(EXIT, bytes(16)) + mmap2("//anon"),
        "lost_told_elsewhere": b"\x01\x00" + lost(17) + library,
        "build_id": b"\0\0" + mmap2("/lib/x", BUILD_ID),
        "no_name": b"\0\0" + record(MMAP2, bytes(64)),
        "name_without_end": b"\0\0" + record(MMAP2, bytes(64) + b"xxxxxxxx"),
        "cut": b"\0\0" + library[:-8],
        "too_short": b"\0\0" + struct.pack("<IHH", MMAP2, 0, 8) + bytes(8),
        "odd_size": b"\0\0" + struct.pack("<IHH", MMAP2, 0, 17) + bytes(24),
        "past_the_buffer": b"\x10\0" + library,
    }
    for name, data in seeds.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
