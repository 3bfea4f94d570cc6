#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""seed_mt_image.py: write the seed corpus of fuzz_mt_image (tests/fuzz/corpus/mt_image): what nvcc
made, and small ones by hand. Same files each time.
"""
import os
import shutil
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
PTX = b".version 9.0\n.target sm_%d\n.address_size 64\n.visible .entry k() { ret; }\n\0"


def entry(kind, arch, payload, flags=0x11, plain=0):
    payload += b"\0" * (-len(payload) % 8)
    return (
        struct.pack(
            "<HHIQIIHHIIIQQQ",
            kind,
            0x101,
            64,
            len(payload),
            len(payload) if plain else 0,
            0,
            0,
            9,
            arch,
            0,
            0,
            flags,
            0,
            plain,
        )
        + payload
    )


def fatbin(*entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def lz4(text):
    """A block of literals alone."""
    n = len(text) - 15
    return b"\xf0" + b"\xff" * (n // 255) + bytes([n % 255]) + text


def cubin(text):
    names = b"\0.shstrtab\0.nv_debug_ptx_txt\0"
    head = (
        b"\x7fELF\x02\x01\x01" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64, 0, 64, 0, 0, 64, 3, 1)
    )
    at = 64 + 3 * 64

    def section(name, kind, offset, size):
        return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, 0, 0, 1, 0)

    return (
        head
        + section(0, 0, 0, 0)
        + section(1, 3, at, len(names))
        + section(11, 1, at + len(names), len(text))
        + names
        + text
    )


def main():
    out = os.path.join(HERE, "corpus", "mt_image")
    os.makedirs(out, exist_ok=True)
    images = os.path.join(HERE, "..", "memtrace", "images")
    for name in ("balance.fatbin", "many.fatbin", "lineinfo.fatbin"):
        shutil.copyfile(os.path.join(images, name), os.path.join(out, name))
    text = PTX % 90
    seeds = {
        "text": text[:-1],
        "plain": fatbin(entry(1, 80, PTX % 80), entry(1, 90, text)),
        "lz4": fatbin(entry(1, 90, lz4(text), 0x2011, len(text))),
        "cubin": cubin(text.replace(b"\n", b"\0")),
        "in-fatbin": fatbin(entry(2, 90, cubin(text.replace(b"\n", b"\0")))),
        "two": fatbin(entry(1, 80, PTX % 80)) + b"\0" * 8 + fatbin(entry(1, 90, text), entry(8, 90, b"lto")),
        "wrapper": struct.pack("<IIQQ", 0x466243B1, 1, 0x1000, 0),
    }
    for name, data in seeds.items():
        with open(os.path.join(out, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
