# SPDX-License-Identifier: GPL-2.0-only
"""ptxtext.py: parts of PTX texts and of cubins, for tests and benchmarks of the recorder."""
import os
import re
import struct

KERNELS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "memtrace")
ENTRY = re.compile(r"^\.visible \.entry (\w+)\(", re.M)
VARIABLE = re.compile(r"^(?:\.visible |\.extern |\.weak )?\.(?:global|const|shared) [^;{]*(?:{[^;_]*})?;\n", re.M)
OF_FUNCTIONS = {"calls", "indirect"}  # the kernels that call functions of the text


def entries(text):
    """(name, text) of each kernel."""
    for m in ENTRY.finditer(text):
        at, depth = text.index("{", m.end()), 0
        for brace in re.finditer(r"[{}]", text[at:]):
            depth += 1 if brace.group() == "{" else -1
            if not depth:
                yield m.group(1), text[m.start() : at + brace.end()] + "\n"
                break


def kernels_only(path, arch, pattern=r"\w+"):
    """
    Writes the kernels of tests/memtrace/kernels_ARCH.ptx whose whole name is like the pattern to path, without the
    functions of that text: such a text is linked with the recorder (memtrace/ptx/ptx.h, apart). Returns their names.
    """
    with open(os.path.join(KERNELS, f"kernels_{arch}.ptx"), encoding="utf-8") as f:
        text = f.read()
    head = re.match(r".*?\.address_size 64\n", text, re.S).group()
    found = [(name, body) for name, body in entries(text) if re.fullmatch(pattern, name) and name not in OF_FUNCTIONS]
    with open(path, "w", encoding="utf-8") as f:
        # Lines name files that stand at the end of the whole text.
        f.write(head + "".join(VARIABLE.findall(text)))
        for _, body in found:
            f.write(re.sub(r"^\s*\.loc\s.*$", "", body, flags=re.M))
    return [name for name, _ in found]


def registers(path):
    """Of the functions of a cubin: {name: registers of a thread}, from .nv.info (EIATTR_REGCOUNT)."""
    with open(path, "rb") as f:
        data = f.read()
    (start,) = struct.unpack_from("<Q", data, 0x28)
    count, names = struct.unpack_from("<HH", data, 0x3C)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i) for i in range(count)]

    def text(base, at):
        return data[base + at : data.index(b"\0", base + at)].decode()

    by_name = {text(sections[names][4], s[0]): s for s in sections}
    symbols, strings = by_name[".symtab"], by_name[".strtab"][4]
    info, regs = by_name[".nv.info"], {}
    at, end = info[4], info[4] + info[5]
    while at < end:
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != 4:
            continue
        if attribute == 0x2F:
            symbol, n = struct.unpack_from("<II", data, at)
            regs[text(strings, struct.unpack_from("<I", data, symbols[4] + 24 * symbol)[0])] = n
        at += size
    return regs
