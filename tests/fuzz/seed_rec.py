#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the seeds of fuzz_rec: tests/fuzz/corpus/rec/. Layouts: include/ttmon/event.h and rec.h.
Same output each time.
"""
import os
import struct
import zlib

MS = 1000000
START = 5000 * MS


def head(kind, ts, cpu, tgid=100, tid=100):
    return struct.pack("<QHHIII", ts, kind, cpu, 0, tgid, tid)


def proc(ts, cpu):
    return head(1, ts, cpu) + struct.pack("<QQII16s", 1234, 7, 1, 0, b"seed")


def leave(ts, cpu):
    return head(2, ts, cpu) + struct.pack("<QII", 1234, 0, 0)


def alloc(ts, cpu, addr, size, frames, method=1, fn=2):
    body = struct.pack("<QQQIiHBBhH", ts - 500, addr, size, 0, 0, fn, method, len(frames), 0, 0)
    return head(3, ts, cpu) + body + b"".join(struct.pack("<Q", f) for f in frames)


def free(ts, cpu, addr, method=1, fn=3):
    return head(4, ts, cpu) + struct.pack("<QQiHHhB5x", ts - 300, addr, 0, fn, 0, 0, method)


def copy(ts, cpu, dst, src, count, fn=17, bits=3):
    return head(5, ts, cpu) + struct.pack("<QQQQQiHHhB5x", ts, dst, src, count, 0, 0, fn, bits, 0, 1)


def mapping(ts, start, end, name):
    text = name + bytes(-len(name) % 8)
    return head(67, ts, 0xFFFF) + struct.pack("<QQQIIII", start, end, 0, 0, 3, 0, len(name)) + text


def entry(record):
    return struct.pack("<I", len(record)) + record


def advance(ts):
    return struct.pack("<IIQ", 0, 0, ts)


def block(kind, raw):
    comp = zlib.compress(raw, 1)
    return struct.pack("<IIII", kind, len(raw), len(comp), zlib.crc32(comp)) + comp


def main():
    out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "rec")
    os.makedirs(out, exist_ok=True)
    a, b = 0x7F0000000000, 0x7F1000000000
    records = [
        mapping(START, b, b + 0x10000, b"[heap]"),
        proc(START + 10, 0),
        alloc(START + 1000, 0, a, 8192, [0x401000, 0x402000]),
        copy(START + 2000, 1, 0x200000000, a, 4096),
        copy(START + MS, 1, 0x200000000, b, 4096),
        free(START + 2 * MS, 0, a),
        leave(START + 3 * MS, 0),
    ]
    stream = b"".join(entry(r) for r in records)
    late = (
        entry(records[1]) + advance(START + 50 * MS) + entry(records[3]) + entry(records[2]) + advance(START + 90 * MS)
    )
    file_head = b"TTMONREC" + struct.pack("<IIIIQ", 1, 0x01020304, 2, 32, 0)
    whole = (
        file_head
        + block(1, stream)
        + block(1, advance(START + 4 * MS))
        + block(2, struct.pack("<QQQ", len(records), 0, START + 5 * MS))
    )
    seeds = {
        "raw_stream": b"\1" + stream + advance(START + 9 * MS),
        "raw_each": b"\1" + b"".join(entry(r) + advance(START + i * MS) for i, r in enumerate(records)),
        "raw_late": b"\1" + late,
        "raw_jump": b"\1" + entry(records[1]) + advance((1 << 63) + 5) + entry(records[3]) + advance((1 << 64) - 1),
        "file_whole": b"\0" + whole,
        "file_cut": b"\0" + whole[:-20],
        "file_head": b"\0" + file_head,
    }
    for name, data in seeds.items():
        with open(os.path.join(out, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
