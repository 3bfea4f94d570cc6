#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""seed_db.py: write the seed corpus of fuzz_db (tests/fuzz/corpus/db). Same files each time."""
import gzip
import os

HEAD = (
    '{"schema":"ttmon-db","version":1,"ttmond":"x",\n"host":{"hostname":"h","nr_cpus":2},'
    '"processes":[{"index":0,"pid":1}],'
)
ALLOC = (
    '{"id":"00:1:0@0","pid":1,"site":0,"addr":"0x7f00","size":4096,"alloc_ns":"1","free_ns":null,'
    '"events":[[1,"h2d",4096,0,"pinned",0],[-2,"d2h",1,0,"unknown",4096]]}'
)
TAIL = '],\n"advice":[],"summary":{"pins":1}}\n'
WHOLE = HEAD + '"allocations":[\n' + ALLOC + ",\n" + ALLOC + TAIL

SEEDS = {
    "whole": WHOLE,
    "empty": "",
    "no-allocs": HEAD + '"allocations":[' + TAIL,
    "cut": WHOLE[:-60],
    "escapes": HEAD + '"x":"\\"}]\\\\","allocations":[{"\\u0041":"\\ud83d\\ude00]"}' + TAIL,
    "scalars": '{"schema":"ttmon-db","version":1,"a":true,"b":null,"c":-1.5e3,"d":"","allocations":[]}',
    "version": '{"schema":"ttmon-db","version":2,"allocations":[]}',
    "foreign": '{"traceEvents":[]}',
    "nested": HEAD + '"x":' + "[" * 15 + "]" * 15 + ',"allocations":[]}',
    "too-deep": HEAD + '"allocations":[{"a":' + "[" * 40 + "]" * 40 + "}]}",
    "twice": HEAD + '"allocations":[],"allocations":[]}',
    "big-number": HEAD + '"allocations":[{"size":18446744073709551615}]}',
    "trailing": WHOLE + "{}",
}


def main():
    out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "db")
    os.makedirs(out, exist_ok=True)
    for name, text in SEEDS.items():
        with open(os.path.join(out, name), "w", encoding="ascii") as f:
            f.write(text)
    packed = gzip.compress(WHOLE.encode(), 6, mtime=0)
    for name, data in (("gzip", packed), ("gzip-cut", packed[:-9]), ("gzip-twice", packed + packed)):
        with open(os.path.join(out, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
