#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the seeds of fuzz_ttshm: tests/fuzz/corpus/ttshm/. Files as of versions 1 to 4, good and
bad. Same output each time.
"""
import os
import struct

LAYOUTS = {1: (9280, 96, 56, 992, 128, 6), 2: (8576, 88, 48, 856, 120, 5)}
READY = 0x52454459
DEAD, LIVE = 1, 2  # fuzz_ttshm makes odd pids dead and even ones its own


def region(version, processes, active=None, slack=0):
    size, chips, chip, procs, proc, types = LAYOUTS[min(version, 2)]
    data = bytearray(size)
    struct.pack_into(
        "<IIQI", data, 0, version, len(processes) if active is None else active, 1700000000000000000, len(processes)
    )
    struct.pack_into("<QQi", data, 24, 1834 if version == 1 else 0, 469504, 3)
    totals = [sum(p[2] + k for p in processes) + slack for k in range(types)]
    struct.pack_into(f"<{types}Q", data, 48, *(t % 2**64 for t in totals))
    for i in range(16):
        struct.pack_into("<II", data, chips + i * chip, 3 if i == 0 else 0 if version == 1 else 0xFFFFFFFF, 0)
    struct.pack_into(f"<{types}Q", data, chips + 8, *(t % 2**64 for t in totals))
    for entry, pid, size_, name in processes:
        figures = [size_ + k for k in range(types)]
        struct.pack_into(f"<iI{types + 1}Q64s", data, procs + entry * proc, pid, 0, *figures, 1700000000000000001, name)
    if version == 4:
        struct.pack_into("<I", data, 8536, READY)
    return data


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "ttshm")
    os.makedirs(folder, exist_ok=True)
    both = [(0, DEAD, 4096, b"dead"), (1, LIVE, 1 << 33, b"live"), (2, DEAD, 100, b"dead too")]
    seeds = {"empty": b"", "short": b"\1\0\0\0", "zeros": bytes(9280)}
    for version in (1, 2, 3, 4):
        seeds[f"v{version}"] = region(version, both)
        seeds[f"v{version}_cut"] = region(version, both)[:8192]
        seeds[f"v{version}_dead_only"] = region(version, both[:1])
    seeds["v1_raw"] = region(1, both)[:9184]
    seeds["v1_holes"] = region(1, [(5, LIVE, 1, b"a"), (63, DEAD, 2, b"b"), (62, LIVE, 3, b"x" * 64)])
    seeds["v3_holes"] = region(3, [(5, LIVE, 1, b"a"), (63, DEAD, 2, b"b"), (62, -7, 3, b"releasing")])
    seeds["v3_full"] = region(3, [(i, 1 + i % 2, 1 << 20, b"p") for i in range(64)])
    seeds["v3_wrapped"] = region(3, both, slack=-(1 << 40))
    seeds["v1_too_little"] = region(1, both, slack=-4000)
    seeds["v3_ghosts"] = region(3, [], slack=1 << 30)
    seeds["v3_many_active"] = region(3, both, active=1000)
    making = region(4, both)
    struct.pack_into("<I", making, 8536, 1)
    seeds["v4_being_made"] = making
    ours = region(3, both)
    ours[8544:8552] = b"ttmond01"
    seeds["v3_ours"] = ours
    seeds["v9"] = bytes([9]) + bytes(region(3, both))[1:]
    for name, data in seeds.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
