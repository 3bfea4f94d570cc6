#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""seed_advisor.py: write the seed corpus of fuzz_advisor (tests/fuzz/corpus/advisor). Same files each time."""
import gzip
import json
import os


def alloc(i, site, size, copies, **more):
    return {
        "id": f"{i}",
        "pid": 7,
        "process": 0,
        "site": site,
        "ordinal": 0,
        "size": size,
        "addr": hex(0x7F0000000000 + (i << 28)),
        "method": "host_alloc",
        "fn": "cudaHostAlloc",
        "alloc_ns": str(1000 + i),
        "free_ns": None,
        "pin_ns": 5,
        "unpin_ns": 0,
        "flags": [],
        "api_flags": 0,
        "transfers": {"h2d": [copies, copies * size]} if copies else {},
        "events": [],
        **more,
    }


DB = {
    "schema": "ttmon-db",
    "version": 1,
    "ttmond": "x",
    "host": {"hostname": "h"},
    "clock": {"mono_ns": "1", "real_ns": "1"},
    "capture": {"mode": "command", "start_ns": "1", "end_ns": "9000000000"},
    "completeness": {"complete": True, "reasons": []},
    "objects": [
        {"id": 1, "path": "/opt/train", "build_id": "aa" * 20, "cuda": False},
        {"id": 2, "path": "/lib/libc.so.6", "build_id": "", "cuda": True},
    ],
    "processes": [{"index": 0, "pid": 7, "start_ns": "1", "comm": "train", "first_ns": "1", "last_ns": "8000000000"}],
    "sites": [
        {"id": 0, "key": "0x0", "frames": []},
        {"id": 1, "key": "0x1", "frames": [[1, "0x10", "check+0x4"], [1, "0x20", "main+0x8"], [2, "0x30", None]]},
        {"id": 2, "key": "0x2", "frames": [[2, "0xffffffffffffffff", "x+0xffffffffffffffff"]]},
    ],
    "allocations": [
        alloc(0, 1, 4096, 100),
        alloc(1, 1, 8192, 0),
        alloc(2, 2, 1 << 60, 3, name="kv"),
        alloc(3, 0, 4096, 3, name="a name", method="custom"),
    ],
    "summary": {},
}


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "advisor")
    os.makedirs(folder, exist_ok=True)
    text = json.dumps(DB, separators=(",", ":"))
    seeds = {
        "whole": text.encode(),
        "cut": text[:-90].encode(),
        "gzip": gzip.compress(text.encode(), mtime=0),
        "same-frames": text.replace('"check+0x4"', '"check+0xffff"').encode(),
        "no-summary": text.replace(',"summary":{}', "").encode(),
    }
    for name, data in seeds.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
