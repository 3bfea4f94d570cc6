#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""seed_decode.py: write the seeds of fuzz_decode: one good record of each kind, one file each.

The layouts are those of include/ttmon/event.h, kept as struct formats: little-endian, no padding of their own.
"""
import os
import struct
import sys

DAEMON = 0xFFFF
HEAD = "<QHHIII"


def rec(kind, fmt, *fields, tail=b""):
    cpu = DAEMON if kind >= 64 else 1
    body = struct.pack(HEAD, 1_000_000, kind, cpu, 0, 1000, 1001) + struct.pack("<" + fmt, *fields)
    return body + tail + b"\0" * (-len(tail) % 8)


RECORDS = {
    "proc": rec(1, "QQII16s", 5, 6, 1, 0, b"python3"),
    "exit": rec(2, "QII", 5, 0, 0),
    "alloc": rec(3, "QQQIiHBBhH", 900, 0x10000, 4096, 0, 0, 1, 1, 2, 0, 0, tail=struct.pack("<QQ", 0x401000, 0x402000)),
    "free": rec(4, "QQiHHhB5s", 900, 0x10000, 0, 3, 0, 0, 1, b""),
    "copy": rec(5, "QQQQQiHHhB5s", 900, 0x7F00, 0x10000, 64, 0, 0, 16, 0, 0, 1, b""),
    "copy_rect": rec(6, "QQQQQQQQQQQiHHhB5s", 900, 1, 2, 0, 64, 4, 1, 64, 64, 0, 0, 0, 18, 0, 0, 1, b""),
    "hint": rec(7, "QQIiIiiHH", 0x10000, 4096, 0, 0, 0, 1, 0, 44, 0),
    "reset": rec(8, "iHh", 0, 51, -1),
    "launches": rec(9, "QQQ", 3, 2, 1),
    "mmap": rec(10, "QQIIiI", 0x7F0000, 8192, 3, 0x22, -1, 0),
    "munmap": rec(11, "QQ", 0x7F0000, 8192),
    "mremap": rec(12, "QQQQQQ", 900, 0x7F0000, 4096, 0x800000, 8192, 1),
    "brk": rec(13, "QQ", 0x500000, 0x521000),
    "tag": rec(14, "Q32s", 0x10000, b"weights"),
    "checkpoint": rec(26, "64s", b"step"),
    "wait": rec(28, "QQQQQ5QIIIIiHH", 900, 100, 60, 40, 0x401000, 1, 2, 3, 4, 5, 1, 1, 2, 0, 0, 520, 8),
    "tt_buffer": rec(16, "QQ12Q5QHBBHH", 0x5000, 0x6000, 0, 0, 0x6000, 4096, 0, 1 << 24, 0, 0, 0x7000, 1, 0x1000, 32, 0x7F10, 1,
                     2, 0, 0, 256, 2, 1, 0, 0),
    "tt_call": rec(17, "6QHBBHH", 0x6000, 4096, 32, 0, 0, 0, 281, 1, 0, 0, 0),
    "tt_cb": rec(17, "6QHBBHH2Q5Q2I8B", 0x6000, 8, 0x18000, 4096, 0, 0, 290, 1, 0, 0, 0, 0x7000, 5, 1, 2, 3, 0, 0, 2, 0, 0, 0, 3, 0, 0, 1, 3, 1),
    "tt_dispatch": rec(18, "QQ6QHBBBBH", 0x6000, 0x8000, 5, 0, 0, 2, 1, 1, 310, 0, 2, 0, 0, 0),
    "tt_program": rec(19, "3Qd4QQIIHBBHH", 7, 1000, 2000, 1.35, 0, 0, 0, 0, 0, 0, 1, 340, 0, 0, 0, 0),
    "tt_kernel": rec(20, "II192s", 7, 0, b"kernels/compute/mm.cpp"),
    "tt_pin": rec(21, "QQQiIIIII", 900, 0x7F0000, 8192, 0, 0, 1, 0, 1, 0),
    "tt_chip": rec(74, "IIQQQQQQIIBBBBI24s", 1, 0, 0x100014511234567, 0x99, 0x98, 0x14511234567000, 12 << 30, 95944704, 0,
                   0x100, 2, 0, 0, 0, 0, b"n300"),
    "tt_object": rec(75, "IIII", 1, 0xFFF, 0, 0),
    "tt_proc": rec(76, "IIII", 0, 1, 1, 0),
    "tt_sums": rec(77, "Q6QIB3s", 0x6000, 5, 0, 0, 2, 1, 1, 1, 2, b""),
    "tsc": rec(78, "QQ", 990_000, 123_456_789),
    "tt_mesh": rec(79, "QII", 0x6000, 1, 0, tail=struct.pack("<QII", 0x6100, 0, 0)),
    "cpu_slot": rec(22, "QQQQIHBBQQQQHBBIQIHBBIIQIHBBII", 1_000_000, 1_400_000, 2_100_000, 5, 7, 3, 0, 0, 0, 0, 0, 0, 2, 24, 1, 0,
                    5, 7, 3, 0, 0, 300_000, 2, 9, 8, 0, 1, 0, 100_000, 1),
    "cpu_slot_ctr": rec(22, "QQQQIHBBQQQQHBBIQIHBBIIQQQQ", 1_000_000, 1_400_000, 2_100_000, 0, 0, 0, 2, 0, 9, 9, 9, 9, 1, 56, 0, 0,
                        5, 7, 3, 0, 2, 400_000, 1, 1000, 2000, 3, 40),
    "task": rec(23, "QQIHBB16s", 5, 1, 1, 2, 0, 0, b"bash"),
    "rmid": rec(24, "QQII16s", 900_000, 5, 3, 0, b"bash"),
    "rdt": rec(25, "QIH3B7sQQQ", 950_000, 3, 1, 0, 0, 1, b"", 4096, 10, 0),
    "cpu_open": rec(80, "IIQQQQIHBBQQQQHBBIQIHBBII", 1, 0, 2_100_000, 2_200_000, 0, 5, 7, 3, 0, 0, 0, 0, 0, 0, 1, 24, 0, 0,
                    9, 8, 0, 1, 0, 100_000, 1),
    "cpu_offline": rec(80, "IIQQQQIHBBQQQQHBBI", 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    "rmid_set": rec(81, "QQII16s", 900_000, 5, 4, 1, b"bash"),
    "rdt_read": rec(82, "QIH3B7sQQQ", 950_000, 4, 0, 0, 3, 4, b"", 4096, 0, 0),
    "rmid_info": rec(83, "IIQII", 2, 255, 65536, 32, 7),
    "clock": rec(64, "QQQIIII64s64s", 1, 2, 3, 64, 4096, 0, 1, b"host", b"6.18"),
    "proc_name": rec(65, "II", 1, 9, tail=b"python3 a"),
    "object": rec(66, "IIQQ20sB3sII", 1, 1, 8, 77, b"\x11" * 20, 20, b"", 0, 13, tail=b"/usr/lib/a.so"),
    "map": rec(67, "QQQIIII", 0x400000, 0x401000, 0, 1, 5, 0, 6, tail=b"[heap]"),
    "symbol": rec(68, "IIQQ", 1, 4, 0x1000, 16, tail=b"main"),
    "blind": rec(69, "IIQQ", 1, 0, 0, 5),
    "lost": rec(70, "IIQQQQQQQ", 1, 5, 10, 1, 1, 0, 0, 0, 0),
    "maps_done": rec(71, "QII", 1, 12, 0),
    "alloc_copied": rec(3, "QQQIiHBBhH", 900, 0x10000, 4096, 0, 0, 1, 1, 1, 0, 1 << 12, tail=struct.pack("<QQ", 0x401000, 7)),
    "unwound": rec(86, "QBBHI", 7, 2, 1, 2, 0, tail=struct.pack("<QQ", 0x401000, 0x402000)),
}


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus/decode")
    os.makedirs(out, exist_ok=True)
    for name, data in RECORDS.items():
        assert len(data) % 8 == 0, name
        with open(os.path.join(out, name), "wb") as f:
            f.write(data)


main()
