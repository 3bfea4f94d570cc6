#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the seeds of fuzz_place: tests/fuzz/corpus/place/. First bytes of real functions, and code
around three of them. Same output each time.
"""
import os

CMPL = bytes.fromhex("813d7e34930100ba1c32")
ENDBR64 = bytes.fromhex("f30f1efa")
NOP5 = bytes.fromhex("0f1f440000")

# The stub of libcuda 550's functions, three times, and a jump into the second one.
STUB = CMPL + bytes.fromhex("740cff25a6b18301660f1f440000b804000000c30000")
HEAD = bytes([50, 0, 9, 32, 9, 64, 9])

SEEDS = {
    "driver": STUB,
    "endbr64": ENDBR64 + CMPL + b"\x74\x0c",
    "nop5": NOP5 + b"\x55",
    "three": CMPL * 3 + b"\x0f\x84\0\0\0\0",
    "tests": bytes.fromhex("4885ff84c085f674aa"),
    "syscall": bytes.fromhex("b80a0000000f05c3"),
    "jmp": bytes.fromhex("b80a000000e900000000"),
    "stubs": HEAD + STUB * 3,
    "entered": HEAD + STUB * 3 + b"\xe9\xc5\xff\xff\xff" + b"\xeb\xf0",
    "loop": HEAD + STUB[:14] + b"\xeb\xfa" + STUB * 3,
    "empty": b"",
}


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "place")
    os.makedirs(folder, exist_ok=True)
    for name, data in SEEDS.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
