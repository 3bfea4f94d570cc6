#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""seed_mt_in.py: write the seed corpus of fuzz_mt_in (tests/fuzz/corpus/mt_in) from the samples of
tests/memtrace, shortened. Same files each time.
"""
import gzip
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "memtrace"))
import make_traces as mt  # noqa: E402


def lines(data, which):
    all_lines = data.splitlines(keepends=True)
    return b"".join(all_lines[i] for i in which if i < len(all_lines))


def seeds():
    files = mt.samples()
    n15 = files["nvbit-1.5.txt"]
    unit = mt.unit(mt.A, 4)
    short = mt.access(1, (0, 0, 0), 0, "LDG.E", unit[:4] + [0] * 28, fmt=hex).encode()
    out = {
        "nvbit15": lines(n15, [0, 9, 10, 22, 36]),
        "nvbit15-torn": n15[-2600:],
        "nvbit17": lines(files["nvbit-1.7.txt"], [0, 10, 11, 36, 37, 38, 41, 42]),
        "nvbit13": lines(files["nvbit-1.3.txt"], [0, 9, 10, 26, 27, 28]),
        "short": short,
        "launch": mt.launch(1, "k<a - b>", (1, 1, 1), (64, 1, 1)).encode() + short,
        "raw288": files["big.raw"][: 288 * 6 + 17],
        "raw280": mt.raw(False, 1)[: 280 * 12],
        "traceg": lines(files["kernel-1.traceg"], range(40)),
        "trace": lines(mt.accel_trace(1).encode(), range(30)),
        "lineinfo": lines(mt.accel_traceg(2, 4, 1).encode(), range(36)),
        "empty": b"",
        "text": b"text\nand more\n",
    }
    out["gzip"] = gzip.compress(out["nvbit17"], 6, mtime=0)
    out["gzip-cut"] = out["gzip"][:-20]
    out["zstd"] = subprocess.run(["zstd", "-qc"], input=out["nvbit13"], stdout=subprocess.PIPE, check=True).stdout
    return out


def main():
    out = os.path.join(HERE, "corpus", "mt_in")
    os.makedirs(out, exist_ok=True)
    for name, data in seeds().items():
        with open(os.path.join(out, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
