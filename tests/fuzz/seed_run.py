#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""seed_run.py: write the seed corpus of fuzz_run (tests/fuzz/corpus/run). Same files each time."""
import json
import os

ID = "0102030405060708090a0b0c0d0e0f1011121314"


def alloc(**more):
    row = {
        "id": "aa:4096:0@0",
        "pid": 100,
        "process": 0,
        "site": 1,
        "ordinal": 0,
        "size": 4096,
        "addr": "0x7f0000001000",
        "method": "host_alloc",
        "fn": "cudaHostAlloc",
        "alloc_ns": "3000",
        "free_ns": "8000",
        "pin_ns": 4,
        "unpin_ns": 5,
        "flags": [],
        "api_flags": 0,
        "transfers": {"h2d": [2, 600]},
        "events": [[100, "h2d", 300, 0, "pinned", 1]],
    }
    row.update(more)
    return row


def document(allocs, **more):
    doc = {
        "schema": "ttmon-db",
        "version": 1,
        "ttmond": "1",
        "host": {"hostname": "h"},
        "clock": {"mono_ns": "1", "real_ns": "2"},
        "capture": {"start_ns": "1500", "end_ns": "9000"},
        "completeness": {
            "complete": True,
            "reasons": ["cut"],
            "lost": {"ring_full": 1},
            "blind": [{"object": 2, "pid": 100, "window_us": 1, "held": False}],
        },
        "objects": [
            {"id": 1, "path": "/opt/app", "build_id": ID, "cuda": False},
            {"id": 2, "path": "libx.so", "build_id": ""},
        ],
        "processes": [
            {"index": 0, "pid": 100, "comm": "app", "exe": "/opt/app", "first_ns": "2000"},
            {"index": 1, "pid": 101},
        ],
        "sites": [
            {"id": 0, "frames": []},
            {"id": 1, "key": "0xaa", "frames": [[1, "0x10", "load+0x4"], [1, "0x20", "main+0x8"]]},
            {"id": 2, "key": "0xbb", "frames": [[2, "0x10", None], [0, "0x7f00", "f.isra.0+0x1"]]},
            {"id": 3, "key": "0xcc", "frames": [[1, "0x%x" % i, "f+0x1"] for i in range(20)]},
        ],
        "checkpoints": [["4000", 0, 1, "step"]],
    }
    doc.update(more)
    doc["allocations"] = allocs
    return doc


SEEDS = {
    "whole": document(
        [
            alloc(),
            alloc(ordinal=1, flags=["device_ptr", "old"]),
            alloc(site=2, method="registered", api_flags=2),
            alloc(site=3, size=8192),
            alloc(site=0, method="pool"),
            alloc(method="mmap", name="/dev/shm/x"),
            alloc(method="custom", name="weights", fn="usdt:alloc"),
            alloc(process=1),
        ]
    ),
    "dropped": document(
        [alloc(events_dropped=3, heat={"origin_ns": "3000", "width_ns": 10, "copies": [0, 2, 1], "bytes": [0, 2, 1]})]
    ),
    "far": document(
        [alloc(size="18446744073709551615", addr="0xffffffffffffffff", alloc_ns="18446744073709551615", free_ns=None)]
    ),
    "old": {"schema": "ttmon-db", "version": 1, "processes": [{}], "allocations": [{}, {"method": "host_alloc"}]},
    "range": document([alloc(site=9)]),
    "checkpoint": document([], checkpoints=[["1", 7, 1, "x"]]),
}


def main():
    out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "run")
    os.makedirs(out, exist_ok=True)
    for name, doc in SEEDS.items():
        with open(os.path.join(out, name), "w", encoding="ascii") as f:
            json.dump(doc, f, separators=(",", ":"))


if __name__ == "__main__":
    main()
