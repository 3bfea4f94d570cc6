#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""seed_redact.py: write the seeds of fuzz_redact: the records of fuzz_decode, some texts, some metrics."""
import os
import sys

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")

TEXTS = [
    b"/usr/lib/libcudart.so.13",
    b"/home/a/b (deleted)",
    b"[anon:name]",
    b"/memfd:x (deleted)",
    b"run --to=/x 5",
    b"/system.slice/x.service",
]
METRICS = [
    b"# TYPE a gauge\na 1\n",
    b'a{comm="x",method="host_alloc"} 1 2\n',
    b'a{comm="\\"\\\\\\n",} 1\nb{\n',
    b'a{unit="a b/c",le="+Inf"} 1e+06\n# EOF\n',
]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(CORPUS, "redact")
    os.makedirs(folder, exist_ok=True)
    seeds = {}
    for name in sorted(os.listdir(os.path.join(CORPUS, "decode"))):
        with open(os.path.join(CORPUS, "decode", name), "rb") as f:
            seeds[f"record_{name}"] = b"\0" + f.read()
    seeds.update({f"text_{i}": b"\x01\x20" + text for i, text in enumerate(TEXTS)})
    seeds.update({f"metrics_{i}": b"\x02" + text for i, text in enumerate(METRICS)})
    for name, data in seeds.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
