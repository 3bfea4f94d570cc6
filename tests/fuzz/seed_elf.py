#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the seeds of fuzz_elf: tests/fuzz/corpus/elf/. Small ELF files for x86-64, made by hand.
Same output each time.
"""
import os
import struct

FUNC, GLOBAL, LOCAL = 2, 1, 0


class Elf:
    """Headers, then one loaded segment over the whole file, then whatever is put in, then sections."""

    def __init__(self, vaddr=0x10000):
        self.vaddr = vaddr
        self.body = bytearray(64 + 2 * 56)
        self.sections = [(b"", 0, 0, 0, 0, 0, 0, 0, 0, 0)]
        self.note = (0, 0)

    def put(self, data):
        while len(self.body) % 8:
            self.body.append(0)
        at = len(self.body)
        self.body += data
        return at

    def section(self, name, kind, data, link=0, entsize=0, flags=0, addr=0):
        self.sections.append((name, kind, flags, addr, self.put(data), len(data), link, 0, 4, entsize))
        return len(self.sections) - 1

    def symbols(self, kind, syms, extra=()):
        strings, table = bytearray(1), bytearray(24)
        for name, at, bind, size in syms:
            table += struct.pack(
                "<IBBHQQ", len(strings), bind << 4 | FUNC, 0, 1 if at else 0, self.vaddr + at if at else 0, size
            )
            strings += name.encode() + b"\0"
        tags = bytearray()
        for tag, text in extra:
            tags += struct.pack("<QQ", tag, len(strings))
            strings += text.encode() + b"\0"
        strtab = self.section(b".str", 3, bytes(strings))
        self.section(b".sym", kind, bytes(table), strtab, 24)
        if extra:
            self.section(b".dynamic", 6, bytes(tags) + bytes(16), strtab)

    def usdt(self, name, args, loc, sema, base):
        desc = (
            struct.pack("<QQQ", self.vaddr + loc, base, self.vaddr + sema if sema else 0)
            + b"ttmon\0"
            + name
            + b"\0"
            + args
            + b"\0"
        )
        note = struct.pack("<III", 8, len(desc), 3) + b"stapsdt\0" + desc
        self.section(b".note.stapsdt", 7, note + bytes(-len(note) % 4))

    def build_id(self):
        data = struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes(range(20))
        self.note = (self.put(data), len(data))

    def file(self):
        names = b"\0"
        rows = []
        for s in self.sections + [(b".shstrtab", 3, 0, 0, 0, 0, 0, 0, 1, 0)]:
            rows.append([len(names) if s[0] else 0] + list(s[1:]))
            names += s[0] + b"\0" if s[0] else b""
        rows[-1][4], rows[-1][5] = self.put(names), len(names)
        shoff = self.put(b"".join(struct.pack("<IIQQQQIIQQ", *r) for r in rows))
        size = len(self.body)
        head = b"\x7fELF\2\1\1" + bytes(9)
        head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, shoff, 0, 64, 56, 2, 64, len(rows), len(rows) - 1)
        head += struct.pack("<IIQQQQQQ", 1, 5, 0, self.vaddr, 0, size, size, 4096)
        head += struct.pack("<IIQQQQQQ", 4, 4, self.note[0], 0, 0, self.note[1], self.note[1], 4)
        self.body[: len(head)] = head
        return bytes(self.body)


def runtime():
    e = Elf()
    e.build_id()
    e.symbols(
        11,
        [
            ("cudaMalloc", 0x40, GLOBAL, 8),
            ("cudaMemcpyAsync_ptsz", 0x50, GLOBAL, 8),
            ("cudaFree", 0, GLOBAL, 0),
            ("cudaMemcpyBatchAsync", 0x60, GLOBAL, 0),
            ("my_alloc", 0x70, GLOBAL, 4),
        ],
        [(14, "libcudart.so.13")],
    )
    e.symbols(2, [("cudaMalloc", 0x40, GLOBAL, 8), ("f", 0x80, LOCAL, 0), ("cudaHostAlloc@@V", 0x90, LOCAL, 16)])
    return e.file()


def stubs():
    """As libcuda 550 begins its functions, and a jump behind the entry of one."""
    e = Elf()
    stub = bytes.fromhex("813d7e34930100ba1c32740cff25a6b18301660f1f440000b804000000c39090")
    at = e.put(stub * 3 + b"\xe9" + struct.pack("<i", -59))
    e.symbols(
        11,
        [
            ("cuMemHostAlloc", at, GLOBAL, 30),
            ("cuMemFreeHost", at + 32, GLOBAL, 30),
            ("cuMemAlloc_v2", at + 64, GLOBAL, 30),
        ],
        [(14, "libcuda.so.1")],
    )
    return e.file()


def driver():
    e = Elf(0)
    e.symbols(
        11,
        [("cuMemcpyHtoD_v2_ptds", 0x40, GLOBAL, 8), ("cuMemAlloc_v2", 0x50, GLOBAL, 8), ("cuCtxCreate_v4", 0x60, 2, 8)],
        [(14, "libcuda.so.1")],
    )
    return e.file()


def stripped():
    e = Elf()
    e.symbols(11, [("dlopen", 0, GLOBAL, 0)], [(1, "libc.so.6"), (1, "libcudart-1f.so.12.4")])
    e.section(b".rodata", 1, b"x\0cuGetProcAddress_v2\0libcuda.so.1\0", flags=2)
    return e.file()


def usdt():
    e = Elf(0x400000)
    e.build_id()
    e.section(b".stapsdt.base", 1, b"\0", addr=0x2000)
    e.usdt(b"alloc", b"8@%rdi 8@%rsi 8@$0", 0x40, 0x48, 0x2000)
    e.usdt(b"free", b"8@%rdi", 0x50 - 0x1000, 0, 0x1000)
    return e.file()


def main():
    out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "elf")
    os.makedirs(out, exist_ok=True)
    for make in (runtime, driver, stubs, stripped, usdt):
        with open(os.path.join(out, make.__name__), "wb") as f:
            f.write(make())


main()
