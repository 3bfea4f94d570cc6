#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the seeds of fuzz_mt_chan: tests/fuzz/corpus/mt_chan/. Pieces as fuzz_mt_chan.c has them.
Same output each time.
"""
import os
import struct

HEADER, DICT, RINGS, READ, KNOWN = range(5)
UNITS = 16
SITE, LAUNCH, KERNEL, AGG, TOUCH, LOST, NOTE = range(1, 8)
# Behind the site and the launch that are there already.
USED = 48 + 72


def piece(where, offset, data=b""):
    out = b""
    while True:
        part, data = data[:255], data[255:]
        out += struct.pack("<BHB", where, offset, len(part)) + part
        offset += len(part)
        if not data:
            return out


def tag(kind, site=0, space=0, lap=0):
    return 1 << 31 | kind << 29 | space << 27 | lap << 22 | site


def record(kind, mask, site=0, launch=0, stride=4, **more):
    return struct.pack("<QIiIIHHI", 0x7F0000000000, mask, stride, launch << 6 | 3, 5, 6, 7, tag(kind, site, **more))


def put(ring, unit, data):
    return piece(RINGS, (ring * UNITS + unit) * 32, data)


def entry(kind, body=b"", texts=()):
    data = body + b"".join(t + b"\0" for t in texts)
    data += b"\0" * (-len(data) % 8)
    return struct.pack("<IHH", 8 + len(data), kind, 0) + data


def entries(*all_of_them):
    data = b"".join(all_of_them)
    return piece(DICT, USED, data) + piece(KNOWN, len(data))


def seeds():
    yield "affine", put(0, 0, record(1, 0xFFFFFFFF) + record(1, 1)) + put(1, 0, record(1, 0xF0)) + piece(READ, 0)
    yield "list", put(0, 0, record(2, 0xFF) + struct.pack("<8Q", *range(100, 108))) + piece(READ, 0)
    yield "lost", put(1, 0, record(3, 0) + record(1, 3)) + piece(READ, 0)
    yield "lap", b"".join(put(0, i, record(1, 3)) for i in range(16)) + piece(READ, 0) + put(
        0, 0, record(1, 3, lap=1)
    ) + piece(READ, 0)
    yield "bad-tag", put(0, 0, b"\x41" * 64) + piece(READ, 0)
    yield "unknown", put(0, 0, record(1, 3, site=9) + record(1, 3, launch=99) + record(1, 0)) + piece(READ, 0)
    yield "site", entries(
        entry(SITE, struct.pack("<IIIBBBB", 5, 1, 2, 2, 1, 8, 0), (b"k2", b"st.shared.u64", b"a.cu", b"m"))
    ) + put(0, 0, record(1, 3, site=5, space=2))
    yield "launch", entries(
        entry(LAUNCH, struct.pack("<IIQQ6III", 7, 0, 1, 2, 1, 1, 1, 32, 1, 1, 2, 40), (b"k3",))
    ) + put(0, 0, record(1, 3, launch=7))
    yield "kernel", entries(
        *[entry(KERNEL, struct.pack("<QQII", i, 1, 2, 0), (b"k", b"m", b"no PTX" * i)) for i in range(3)]
    )
    yield "agg", entries(
        *[entry(AGG, struct.pack("<II138Q", 0, 0, 0, *[i + j % 3 for j in range(137)])) for i in range(2)]
    )
    yield "touch", entries(
        entry(TOUCH, struct.pack("<4Q", 4096, 4096, 1, 0)),
        entry(LOST, struct.pack("<QQ", 3, 1)),
        entry(NOTE, b"", (b"a \033 note",)),
    )
    yield "cut", piece(DICT, USED, struct.pack("<IHH", 4096, SITE, 0)) + piece(KNOWN, 16)
    yield "empty", b""


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "mt_chan")
    os.makedirs(folder, exist_ok=True)
    for name, data in seeds():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
