#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""seed_slots.py: write the seed corpus of fuzz_slots (tests/fuzz/corpus/slots) after
lib/read/slots.h. Same files each time.
"""
import gzip
import os
import struct
import zlib

COLUMNS = 19
SLOT_FIELDS, ROW_FIELDS = 21, 15  # one less of the slot in version 1


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def head(version=2):
    body = b"ttmonsl1" + struct.pack("<IIQQII64s64s", version, 172, 5 * 10**9, 17 * 10**17, 2, 0, b"host", b"0.1")
    return body + struct.pack("<I", zlib.crc32(body))


def block(kind, slots, payload):
    first = struct.pack("<III", kind, len(payload), slots)
    return first + struct.pack("<I", zlib.crc32(payload, zlib.crc32(first))) + payload


def fields(values):
    """Mask and values of {field: value}."""
    mask = sum(1 << i for i in values)
    return varint(mask), [varint(values[i]) for i in sorted(values)]


def data(slots):
    """slots: [(fields of the slot, [(process, definition or None, fields of the row)])]"""
    columns = [b""] * COLUMNS
    for slot, rows in slots:
        mask, values = fields(slot)
        columns[0] += mask + b"".join(values)
        for index, proc, row in rows:
            columns[1] += varint(index)
            if proc:
                tgid, cls, start, comm = proc
                columns[2] += varint(tgid) + varint(cls) + varint(start) + varint(len(comm)) + comm
            columns[3] += fields(row)[0]
            for i in row:
                columns[4 + i] += varint(row[i])
    return block(1, len(slots), b"".join(varint(len(c)) for c in columns) + b"".join(columns))


def end(slots, rows, dropped):
    return block(2, 0, varint(slots) + varint(rows) + varint(dropped))


A, IDLE = (1000, 0, 123456789, b"stress"), (0, 2, 0, b"")
SMALL = data(
    [
        ({0: 4, 1: 4, 2: 10000, 4: 2, 12: 4}, [(0, A, {0: 700000, 1: 3}), (1, IDLE, {1: 2})]),
        ({0: 2}, [(0, None, {0: 500000, 1: 1}), (1, None, {})]),
    ]
)
EVERY = data(
    [
        (
            {i: 2 + 2 * i for i in range(SLOT_FIELDS)} | {1: 6},
            [
                (
                    i,
                    (i, i, 2**40 + i, b"x" * (7 * i)),
                    {k: 2**k + i for k in range(ROW_FIELDS) if k not in (10, 11)},
                )
                for i in range(3)
            ],
        )
    ]
)
WIDE = data([({3: 2**64 - 1, 6: 2**63, 2: 2**64 - 1}, [])])
WHOLE = head() + SMALL + SMALL + EVERY + end(5, 11, 3)

SEEDS = {
    "whole": WHOLE,
    "empty": b"",
    "head": head(),
    "no-slots": head() + end(0, 0, 0),
    "cut": WHOLE[:-40],
    "wide": head() + WIDE + end(1, 0, 0),
    "more": WHOLE + b"x",
    "bad-index": head() + data([({1: 2}, [(1, A, {})])]),
    "too-wide": head() + data([({1: 2}, [(0, A, {1: 2**32})])]),
    "many-rows": head() + data([({1: 2 * 200000}, [(0, A, {})])]),
    "long-comm": head() + data([({1: 2}, [(0, (1, 0, 1, b"x" * 16), {})])]),
    "nul-comm": head() + data([({1: 2}, [(0, (1, 0, 1, b"a\0b"), {})])]),
    "bad-class": head() + data([({1: 2}, [(0, (1, 5, 1, b"x"), {})])]),
    "version": head()[:8] + struct.pack("<I", 3) + head()[12:],
    "version-1": head(1) + SMALL + end(2, 4, 0),
    "too-many-fields": head(1) + data([({20: 2}, [])]) + end(1, 0, 0),
    "gzip": gzip.compress(WHOLE, 6, mtime=0),
    "gzip-cut": gzip.compress(WHOLE, 6, mtime=0)[:-12],
}


def main():
    out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "slots")
    os.makedirs(out, exist_ok=True)
    for name, content in SEEDS.items():
        with open(os.path.join(out, name), "wb") as f:
            f.write(content)


if __name__ == "__main__":
    main()
