#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the seeds of fuzz_usdt: tests/fuzz/corpus/usdt/. Argument strings as compilers write them.
Same output each time.
"""
import os

SEEDS = {
    "regs": "8@%rdi 8@%rsi 8@%rdx",
    "narrow": "-4@%eax 2@%r8w 1@%dil",
    "memory": "8@-16(%rbp) -4@(%rsp) 8@0x20(%r12)",
    "constants": "8@$5 -8@$-1 8@$18446744073709551615",
    "intel": "8@rdi 4@esi 8@$0",
    "arm": "8@x0 -4@w19 8@sp",
    "arm_memory": "8@[x29, -16] 4@[sp] 8@[x1, #8]",
    "arm_constants": "8@5 -8@-1 4@0",
    "four": "8@%rdi 8@%rsi 8@%rdx 8@%rcx",
    "index": "8@(%rax,%rbx,8)",
    "symbol": "8@value(%rip)",
    "empty": "",
}


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "usdt")
    os.makedirs(folder, exist_ok=True)
    for name, text in SEEDS.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(text.encode())


if __name__ == "__main__":
    main()
