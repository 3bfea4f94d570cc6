#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the seeds of fuzz_promw: tests/fuzz/corpus/promw/. Names of programs and Accept headers.
Same output each time.
"""
import os

SEEDS = {
    "name": b"python3",
    "escapes": b'a"b\\c\nd',
    "utf8": "gr\u00fc\u00dfe \u20ac \U0001f600".encode(),
    "control": b"\x1b[31m\x7f\xc2\x9b",
    "overlong": b"\xc0\xaf\xe0\x80\xaf\xf0\x80\x80\xaf",
    "surrogate": b"\xed\xa0\x80\xed\xbf\xbf",
    "too_large": b"\xf4\x90\x80\x80\xf8\x88\x80\x80\x80",
    "cut": b"1234567890abcd\xe2\x82",
    "prometheus": b"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    b"text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    "any": b"*/*;q=0.8 , text/plain ; q=0.2,application/openmetrics-text;q=0.500",
    "odd": b',,;;q=,;version=,application/openmetrics-text;version="1.0.0";q=99999999999999999999',
    "empty": b"",
}


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "promw")
    os.makedirs(folder, exist_ok=True)
    for name, text in SEEDS.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(text)


if __name__ == "__main__":
    main()
