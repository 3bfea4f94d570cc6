#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the seeds of fuzz_unwind: tests/fuzz/corpus/unwind/. A file with .eh_frame_hdr, .eh_frame
alone, .debug_frame, with rules of each kind. Same output each time.
"""
import os
import struct

CODE, BASE, TEXT, FRAME, HDR, SIZE = 0x10000000, 0x400000, 0x300, 0x400, 0x700, 0x800
CIE = b"\x0c\x07\x08\x90\x01"
PROGRAMS = [
    b"",
    b"\x41\x0e\x10\x86\x02\x43\x0d\x06\x0a\x54\x0c\x07\x08\x41\x0b",
    b"\x0e\x20\x83\x03\x8c\x02",
    b"\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22",
    b"\x10\x06\x04\x77\x80\x01\x06\x16\x03\x03\x23\x08\x06",
    b"\x07\x10",
    b"\x11\x03\x7e\x12\x06\x7e\x15\x0c\x02\x2f\x0d\x02",
    b"\x05\x03\x03\x09\x0e\x0f\x14\x0f\x02\x2e\x20",
]


def image(kind):
    debug, frame, starts = kind == "debug", b"", []

    def entry(body):
        nonlocal frame
        body += b"\0" * (-len(body) % 4)
        frame += struct.pack("<I", len(body)) + body

    aug, data = (b"\0", b"") if debug else (b"zR\0", b"\x01\x1b")
    if kind == "signal":
        aug = b"zRS\0"
    entry(struct.pack("<I", 0xFFFFFFFF if debug else 0) + b"\x01" + aug + b"\x01\x78\x10" + data + CIE)
    for i, insns in enumerate(PROGRAMS):
        at, start = len(frame), TEXT + 16 * i
        starts.append((start, at))
        if debug:
            entry(struct.pack("<IQQ", 0, BASE + start, 16) + insns)
        else:
            entry(struct.pack("<IiI", at + 4, start - (FRAME + at + 8), 16) + b"\0" + insns)
    b = bytearray(SIZE)
    nr_ph = 1 if kind in ("index", "debug") else 2
    b[:64] = struct.pack(
        "<4sBBBB8sHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, b"", 3, 62, 1, 0, 64, 0x180, 0, 64, 56, nr_ph, 64, 3, 2
    )
    b[64:120] = struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, SIZE, SIZE, 0x1000)
    b[120:176] = struct.pack("<IIQQQQQQ", 0x6474E550, 4, HDR, BASE + HDR, BASE + HDR, 12 + 8 * len(starts), 0, 4)
    b[0x1C0:0x200] = struct.pack(
        "<IIQQQQIIQQ",
        11 if debug else 1,
        1,
        0 if debug else 2,
        0 if debug else BASE + FRAME,
        FRAME,
        len(frame),
        0,
        0,
        4,
        0,
    )
    names = b"\0.eh_frame\0.debug_frame\0.shstrtab\0"
    b[0x200:0x240] = struct.pack("<IIQQQQIIQQ", 24, 3, 0, 0, 0x280, len(names), 0, 0, 1, 0)
    b[0x280 : 0x280 + len(names)] = names
    b[FRAME : FRAME + len(frame)] = frame
    b[HDR : HDR + 12] = b"\x01\x1b\x03\x3b" + struct.pack("<iI", FRAME - HDR - 4, len(starts))
    for i, (start, at) in enumerate(starts):
        b[HDR + 12 + 8 * i : HDR + 20 + 8 * i] = struct.pack("<ii", start - HDR, FRAME + at - HDR)
    return bytes(b)


def seed(kind, fn, pages=7, off=8):
    # Return addresses into one function after the other.
    stack = b"".join(struct.pack("<Q", CODE + TEXT + 16 * (i % len(PROGRAMS)) + 9) for i in range(32))
    head = struct.pack("<HHHHHHI", TEXT + 16 * fn + off, 0, 0x100, pages, 0x140, 0x310, 0x420)
    return head + stack + image(kind)


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "unwind")
    os.makedirs(folder, exist_ok=True)
    for kind in ("hdr", "index", "debug", "signal"):
        for fn in range(len(PROGRAMS)):
            with open(os.path.join(folder, f"{kind}-{fn}"), "wb") as f:
                f.write(seed(kind, fn, pages=7 if fn % 2 else 0x107))


if __name__ == "__main__":
    main()
