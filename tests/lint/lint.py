#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""lint.py: the project's rules that no compiler knows, one line per rule.

    ok lint/RULE            FAIL lint/RULE: file:line: why          note REPORT: what a person should look at

    layers      which folder may include which (FOLDERS), and every quoted include names the path from the top folder
    cycles      no folder reaches itself again over includes or over the symbols of the objects
    private     a header *_int.h is included by its own folder alone
    unique      no two types of one name that begin with ttmon_, and no name that is both type and function
    core-pure   nothing in daemon/core, lib/base and lib/verdict calls the clock, a file, a thread or the log
    names       what an object exports begins with ttmon_
    padding     no record has implicit padding
    spdx        every file says its licence
    tt-releases docs/tt-metal-releases.md has a row for each function of include/ttmon/tt_fns.h, and a
                reason where no release has it
    citations   comments and pages cite no file that is not in the repository
    columns     lines of code have at most 120 columns, the text of a comment at most 100
    dialect     comments and pages have no word of the list "Old word" of docs/glossary.md
    figures     no measured figure stands in two pages
    self-test   every rule is first held against a small bad tree of its own: a rule that lets that pass is no rule

Reports, for a person to judge: files that differ from .clang-format.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Folder: which others it may include; one that ends in "/" stands for all below it. Everybody may
# include itself and include/ttmon.
FOLDERS = {
    "include/ttmon": [],
    # what everybody may use: base is pure, os touches files and the clock
    "lib/base": [],
    "lib/os": ["lib/base"],
    "lib/read": ["lib/base", "lib/os"],
    # names of functions as people read them
    "lib/demangle": ["lib/base", "lib/read"],
    # call stacks by unwind tables
    "lib/unwind": ["lib/base", "lib/os"],
    # the one rule for pinning, which the pure core asks too
    "lib/verdict": ["lib/base"],
    "lib/pin": ["lib/base", "lib/read", "lib/verdict"],
    "lib/advisor": ["lib/"],
    # the pure core: stream is on top, and knows all subjects
    "daemon/core/know": ["lib/base"],
    "daemon/core/history": ["lib/base", "lib/verdict", "daemon/core/know"],
    "daemon/core/tt": ["lib/base", "daemon/core/know"],
    "daemon/core/dispatch": ["lib/base", "daemon/core/tt"],
    "daemon/core/cpu": ["lib/base"],
    "daemon/core/rmid": ["lib/base", "daemon/core/cpu"],
    "daemon/core/usage": ["lib/base", "daemon/core/cpu", "daemon/core/history"],
    "daemon/core/stream": ["lib/base", "daemon/core/"],
    # kernel, files, sockets
    "daemon/io/host": ["lib/base", "lib/os", "daemon/core/history", "daemon/io/objects"],
    "daemon/io/objects": ["lib/base", "lib/os"],
    "daemon/io/bpf": ["lib/base", "lib/os", "daemon/io/host"],
    "daemon/io/probes": [
        "lib/base",
        "lib/os",
        "daemon/core/history",
        "daemon/core/stream",
        "daemon/io/bpf",
        "daemon/io/host",
        "daemon/io/objects",
    ],
    "daemon/io/unwind": ["lib/base", "lib/os", "lib/unwind", "daemon/core/history", "daemon/io/bpf"],
    "daemon/io/hold": ["lib/base", "lib/os"],
    "daemon/io/http": ["lib/base", "lib/os"],
    "daemon/io/rdt": ["lib/base", "lib/os", "daemon/io/bpf", "daemon/io/host"],
    "daemon/io/tt": ["lib/base", "lib/os", "daemon/core/tt", "daemon/io/objects"],
    "daemon/io/files": ["lib/", "daemon/core/"],
    # a run; its routes and metrics; main.c puts them together
    "daemon/run": [
        "lib/",
        "daemon/core/",
        "daemon/io/",
        "memtrace/model",
        "memtrace/stream",
        "memtrace/channel",
        "memtrace/analyse",
    ],
    "daemon/api": ["lib/", "daemon/core/", "daemon/io/", "daemon/run"],
    "daemon/metrics": ["lib/", "daemon/core/", "daemon/io/", "daemon/run", "daemon/api"],
    "daemon": ["lib/", "daemon/"],
    # memory accesses of GPU kernels
    "memtrace/model": ["lib/base", "lib/read"],
    "memtrace/stream": ["lib/base", "memtrace/model"],
    "memtrace/read": ["lib/base", "lib/read", "memtrace/model", "memtrace/stream"],
    "memtrace/analyse": ["lib/base", "lib/demangle", "memtrace/model"],
    "memtrace/channel": ["lib/base", "lib/os", "memtrace/model"],
    "memtrace/ptx": ["lib/base", "memtrace/model"],
    "memtrace/inject": ["lib/base", "memtrace/model", "memtrace/ptx"],
    "preload": ["lib/"],
    # a command a folder; cli and term are what they share; of the daemon they have the words, the
    # readers of recordings and of
    # sysfs, and the writer of trace files, never the side that talks to the kernel
    "tools/cli": ["lib/base", "lib/os", "lib/read"],
    "tools/term": ["lib/base"],
    "tools/advise": ["lib/", "tools/cli", "tools/memtrace"],
    "tools/bugreport": ["lib/", "tools/cli", "daemon/core/stream", "daemon/io/files"],
    "tools/db": ["lib/", "tools/cli", "daemon/core/history"],
    "tools/door": ["lib/", "tools/cli", "tools/db", "tools/slots"],
    "tools/export": ["lib/", "tools/cli", "tools/door"],
    "tools/flame": ["lib/", "tools/cli", "tools/view"],
    "tools/heat": ["lib/", "tools/cli", "tools/term", "daemon/core/history"],
    "tools/memtrace": ["lib/", "tools/cli", "tools/term", "tools/slots", "tools/view", "memtrace/"],
    "tools/programs": ["lib/", "tools/cli", "tools/term"],
    "tools/service": ["lib/", "tools/cli"],
    "tools/slots": ["lib/", "tools/cli"],
    "tools/smi": ["lib/", "tools/cli", "tools/term", "daemon/core/tt", "daemon/io/tt"],
    "tools/top": ["lib/", "tools/cli", "tools/term", "tools/heat", "daemon/core/usage"],
    "tools/trace": ["lib/", "tools/cli", "daemon/core/", "daemon/io/files"],
    "tools/view": ["lib/", "tools/cli", "daemon/core/history"],
    "tools": ["tools/"],
    "bpf": [],
}
PRODUCT = ("include/", "lib/", "daemon/", "memtrace/", "preload/", "tools/", "bpf/")
# Made by the build, or vmlinux.h and the programs' own headers, which clang gets by name.
GENERATED = {
    "version.h": (
        "daemon",
        "lib/os",
        "daemon/run",
        "daemon/api",
        "daemon/metrics",
        "daemon/io/files",
        "memtrace/stream",
        "tools",
    ),
    "vmlinux.h": ("bpf",),
}

# core/ is a pure function of (bytes, now): these headers have nothing in them that says otherwise.
PURE_HEADERS = {
    "assert.h",
    "errno.h",
    "inttypes.h",
    "limits.h",
    "linux/types.h",
    "stdalign.h",
    "stdarg.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
}
# stdio.h and stdlib.h are needed for snprintf and malloc; what else they offer shows in the objects' undefined symbols.
IMPURE_CALLS = re.compile(
    r"^(clock_|time$|gettimeofday|nanosleep|usleep|sleep$|timer|pthread_|sem_|fork|exec|system$|popen|open|creat$|"
    r"read$|"
    r"write$|pread|pwrite|close$|fopen|fdopen|fread|fwrite|fputs|fputc|putc|puts$|putchar|printf|vprintf|fprintf|"
    r"vfprintf|"
    r"__(v?f?)printf_chk|perror|mmap|munmap|ioctl|socket|poll|epoll|getenv|secure_getenv|rand$|random$|getrandom|exit$|"
    r"ttmon_log|bpf_|stderr$|stdout$)"
)

SKELETON_USER = "daemon/io/bpf/bpf.c"
CODE_COLUMNS, TEXT_COLUMNS = 120, 100


def files(root, *suffixes):
    """Our files below root: what git would track, or, in the self-test's trees, what is there."""
    try:
        out = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-co", "--exclude-standard"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        if not os.path.exists(os.path.join(root, ".git")):
            raise FileNotFoundError
    except (OSError, subprocess.CalledProcessError):
        out = [
            os.path.relpath(os.path.join(d, f), root)
            for d, dirs, fs in os.walk(root)
            for f in fs
            if not os.path.relpath(d, root).startswith((".output", ".git"))
        ]
    return sorted(f for f in set(out) if f.endswith(suffixes) and os.path.isfile(os.path.join(root, f)))


def lines(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as f:
        return f.read().splitlines()


def includes(root, name):
    for nr, line in enumerate(lines(root, name), 1):
        m = INCLUDE.match(line)
        if m:
            yield nr, m.group(1), m.group(2)


def is_product(name):
    return name.startswith(PRODUCT) and not name.startswith("tools/demo/")


def folder(name):
    return os.path.dirname(name)


def may_include(of, what):
    return what in (of, "include/ttmon") or any(
        what == d or (d.endswith("/") and (what + "/").startswith(d)) for d in FOLDERS[of]
    )


def rule_layers(root):
    for name in filter(is_product, files(root, ".c", ".h")):
        if folder(name) not in FOLDERS:
            yield f"{name}:1: {folder(name)} has no row in FOLDERS of tests/lint/lint.py"
            continue
        for nr, quote, header in includes(root, name):
            at = f"{name}:{nr}: "
            if header.endswith(".skel.h"):
                if name != SKELETON_USER:
                    yield at + f"{header}: only {SKELETON_USER} includes the skeleton"
            elif quote == '"' and header in GENERATED:
                if not folder(name).startswith(GENERATED[header]):
                    yield at + f"{folder(name)} must not include {header}"
            elif quote == '"' and folder(name) == "bpf":
                if folder(header):
                    yield at + f"bpf must not include {header}"
            elif header.startswith("ttmon/"):
                continue
            elif quote == '"':
                if not os.path.isfile(os.path.join(root, header)):
                    yield at + f"{header}: an include names the path from the top folder"
                elif not may_include(folder(name), folder(header)):
                    yield at + f"{folder(name)} must not include {header}"
            elif os.path.isfile(os.path.join(root, header)):
                yield at + f"{header} is ours: in quotes"
            elif name.startswith("daemon/core/") and header not in PURE_HEADERS:
                yield at + f"core/ includes no <{header}>: pure headers only"


def edges_of_includes(root):
    for name in filter(is_product, files(root, ".c", ".h")):
        for nr, _, header in includes(root, name):
            if folder(header) in FOLDERS and folder(header) != folder(name):
                yield folder(name), folder(header), f"{name}:{nr} includes {header}"


def edges_of_symbols(root, objdir):
    defined, wanted = {}, []
    for top in ("daemon", "lib", "memtrace", "tools"):
        for source, path in objects(root, objdir, top):
            if not is_product(source) or source.startswith("memtrace/inject/"):
                continue
            for symbol, kind in symbols(path, "-g"):
                if kind == "U":
                    wanted.append((source, symbol))
                elif kind in "TDBRC":
                    defined[symbol] = source
    for source, symbol in wanted:
        at = defined.get(symbol)
        if at and folder(at) != folder(source):
            yield folder(source), folder(at), f"{source} uses {symbol} of {at}"


def rule_cycles(root, objdir):
    """The shortest way from a folder back to itself, if there is one."""
    why = {}
    for of, to, text in [*edges_of_includes(root), *edges_of_symbols(root, objdir)]:
        why.setdefault(of, {}).setdefault(to, text)
    for start in sorted(why):
        ways, seen = [[start]], set()
        while ways:
            way = ways.pop(0)
            for to in sorted(why.get(way[-1], {})):
                if to == start:
                    steps = [*way, start]
                    yield why[way[-1]][start] + "; " + " -> ".join(steps)
                    return
                if to not in seen:
                    seen.add(to)
                    ways.append([*way, to])


def rule_private(root):
    for name in filter(is_product, files(root, ".c", ".h")):
        for nr, _, header in includes(root, name):
            if header.endswith("_int.h") and folder(header) and folder(header) != folder(name):
                yield f"{name}:{nr}: {header} is private to {folder(header)}"


TAG = re.compile(r"^(?:struct|union|enum) (ttmon_\w+) \{")


def rule_unique(root, objdir):
    types, functions = {}, {}
    for name in filter(is_product, files(root, ".c", ".h")):
        for nr, line in enumerate(lines(root, name), 1):
            m = TAG.match(line)
            if m and m.group(1) in types:
                yield f"{name}:{nr}: {m.group(1)} is also the name of a type in {types[m.group(1)]}"
            elif m:
                types[m.group(1)] = f"{name}:{nr}"
    for top in ("daemon", "lib", "memtrace", "tools"):
        for source, path in objects(root, objdir, top):
            functions.update((symbol, source) for symbol, kind in symbols(path, "-g") if kind == "T")
    for symbol, source in sorted(functions.items()):
        if symbol in types:
            yield f"{source}: {symbol} is a function, and in {types[symbol]} a type"


def objects(root, objdir, below):
    top = os.path.join(root, objdir, below)
    for d, _, fs in sorted(os.walk(top)):
        for f in sorted(fs):
            source = os.path.relpath(os.path.join(d, f), os.path.join(root, objdir))[:-2] + ".c"
            if f.endswith(".o") and os.path.isfile(os.path.join(root, source)):
                yield source, os.path.join(d, f)


SYMBOLS = {}


def symbols(path, option):
    """[symbol, kind] of an object. One nm reads all objects of a folder: starting it takes longer than reading one."""
    if (path, option) not in SYMBOLS:
        folder = os.path.dirname(path)
        paths = [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".o")]
        SYMBOLS.update({(p, option): [] for p in paths})
        out = subprocess.run(["nm", "-A", "-P", option, *paths], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            name, _, symbol = line.partition(": ")
            SYMBOLS[name, option].append(symbol.split()[:2])
    return SYMBOLS[path, option]


def rule_core_pure(root, objdir):
    found = False
    for below in ("daemon/core", "lib/base", "lib/verdict"):
        for source, path in objects(root, objdir, below):
            found = True
            for symbol, _ in symbols(path, "-u"):
                if IMPURE_CALLS.match(symbol.split("@")[0]):
                    yield f"{source}: {below} must not use {symbol}"
    if not found:
        yield f"no object of daemon/core in {objdir}: build first"


def rule_names(root, objdir):
    for below in ("daemon", "lib", "memtrace", "tools"):
        for source, path in objects(root, objdir, below):
            allowed = r"(ttmon_|main$|_binary_)" if below != "tools" else r"(ttmon_|main$|cmd_)"
            if not is_product(source):
                continue
            for symbol, kind in symbols(path, "-g"):
                # The base that the notes of <ttmon/usdt.h> are written against is weak, and the same in all programs.
                if kind not in "Uw" and not re.match(allowed, symbol) and (symbol, kind) != ("_.stapsdt.base", "W"):
                    yield f"{source}: exports {symbol}, which does not start with ttmon_"


def rule_padding(root, source="tests/lint/padded.c"):
    cc = os.environ.get("CC", "cc").split()
    run = subprocess.run(
        [
            *cc,
            "-std=gnu11",
            "-Werror=padded",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-I",
            "include",
            "-I",
            ".",
            "-fsyntax-only",
            source,
        ],
        cwd=root,
        capture_output=True,
        text=True,
    )
    if run.returncode:
        yield (run.stderr.strip().splitlines() or ["the compiler failed"])[0]


def rule_spdx(root):
    wanted = files(root, ".c", ".h", ".py", ".sh", ".mk", "Makefile", ".ci/run")
    for name in wanted:
        head = lines(root, name)[:2]
        licence = "MIT" if name in ("include/ttmon/usdt.h", "include/ttmon/client.h") else "GPL-2.0-only"
        if not any(f"SPDX-License-Identifier: {licence}" in line for line in head):
            yield f"{name}:1: no 'SPDX-License-Identifier: {licence}' in the first two lines"


TT_FNS, TT_PAGE = "include/ttmon/tt_fns.h", "docs/tt-metal-releases.md"
TT_CELLS = {"yes", "no", "main", "-", "?"}


def cpp_name(pattern):
    """
    Class and function of a pattern of mangled names: "_ZN2tt8tt_metal6Buffer10deallocateEv" is
    Buffer::deallocate.
    """
    parts, at = [], 0
    while m := re.compile(r"[^\dE]*(\d+)").match(pattern, at):
        at = m.end() + int(m[1])
        parts.append(pattern[m.end() : at])
        if pattern[at] in "CD":
            parts.append("~" * (pattern[at] == "D") + parts[-1])
            break
    return "::".join(p for p in parts if p not in ("tt", "tt_metal"))


def rule_tt_releases(root):
    if not os.path.exists(os.path.join(root, TT_FNS)):
        return
    rows = re.findall(r'T\((\d+), \w+,[\s\\]+"([^"]+)"', "\n".join(lines(root, TT_FNS)))
    probed = {nr: cpp_name(pattern) for nr, pattern in rows}
    page = lines(root, TT_PAGE) if os.path.exists(os.path.join(root, TT_PAGE)) else []
    head, seen = [], set()
    for at, line in enumerate(page, 1):
        row = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if row[0] == "id":
            head = row
        if not head or not row[0].isdigit():
            continue
        nr, name, *cells = row
        where = f"{TT_PAGE}:{at}: {nr}"
        if probed.get(nr) != name:
            yield f"{where} is {name} here and {probed.get(nr, 'no row')} in {TT_FNS}"
        if nr in seen or len(row) != len(head) or not TT_CELLS.issuperset(cells[:-1]):
            yield f"{where} is there twice, or has cells that are none of {' '.join(sorted(TT_CELLS))}"
        if not {"yes", "main"}.intersection(cells[:-1]) and not cells[-1]:
            yield f"{where} is in no release that was looked at, and no reason keeps it"
        seen.add(nr)
    for nr in probed.keys() - seen:
        yield f"{TT_FNS}:1: {nr} {probed[nr]} has no row in {TT_PAGE}"


# A path in a comment or a page that begins like one of ours, and words for pages that lie elsewhere.
CITED = re.compile(
    r"(?<![\w./<-])((?:bpf|core|daemon|docs|facts|include/ttmon|io|kmod|lib|man|memtrace|notes|preload|shared|systemd|"
    r"tests|tools)/"
    r"[\w./-]*\w\.(?:c|h|md|py|sh|mk|json))(?!\w)"
)
ELSEWHERE = re.compile(r"(?:facts|notes) sheet|design page")
# The text of a comment, without its end and the backslash behind one in a macro. "*p = 1;" is code.
COMMENT = re.compile(r"^\s*(?:/\*+|\*(?=\s|/|$)|//)\s?(.*?)\s*(?:\*/)?\s*\\?$")


GLOSSARY = "docs/glossary.md"


def rule_citations(root):
    ends = set()
    for name in files(root, ""):
        parts = name.split("/")
        ends.update("/".join(parts[i:]) for i in range(len(parts)))
    for name in files(root, ".c", ".h", ".py", ".sh", ".md", ".mk", "Makefile"):
        for nr, line in enumerate(lines(root, name), 1):
            cited = [c for c in CITED.findall(line) if c not in ends and not INCLUDE.match(line)]
            if not name.startswith(("tests/lint/", "tests/e2e/")) and (cited or ELSEWHERE.search(line)):
                yield f"{name}:{nr}: cites what is not in the repository: {(cited or ['a page elsewhere'])[0]}"


def rule_columns(root):
    for name in files(root, ".c", ".h", ".py", ".sh", ".mk", "Makefile"):
        for nr, line in enumerate(lines(root, name), 1):
            m = COMMENT.match(line) if name.endswith((".c", ".h")) else None
            if m and len(m.group(1)) > TEXT_COLUMNS:
                yield f"{name}:{nr}: {len(m.group(1))} columns of comment, {TEXT_COLUMNS} are enough"
            if not m and len(line.expandtabs(8)) > CODE_COLUMNS:
                yield f"{name}:{nr}: {len(line.expandtabs(8))} columns, {CODE_COLUMNS} are enough"


def old_words(root):
    """The first column of the table below "Old word" of the glossary, as one expression."""
    page = "\n".join(lines(root, GLOSSARY)) if os.path.exists(os.path.join(root, GLOSSARY)) else ""
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", page.partition("## Old word")[2], re.M)
    words = [w.strip() for row in rows if row != "old word" for w in row.split(",")]
    return re.compile(r"\b(" + "|".join(re.escape(w) for w in words) + r")\b", re.I) if words else None


def prose(root, name):
    """(line, text) of what a reader reads as sentences: comments of C, pages without code."""
    text = "\n".join(lines(root, name))
    if name.endswith(".md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
        return list(enumerate(text.split("\n"), 1))
    rows = []
    for m in re.finditer(r"/\*.*?\*/|//[^\n]*", text, re.S):
        first = text.count("\n", 0, m.start()) + 1
        rows += [(first + i, re.sub(r"`[^`]*`", "", line)) for i, line in enumerate(m.group().split("\n"))]
    return rows


def rule_dialect(root):
    words = old_words(root)
    for name in files(root, ".c", ".h", ".md") if words else []:
        if name in (GLOSSARY, "CHANGELOG.md"):
            continue
        for nr, line in prose(root, name):
            for word in words.findall(line):
                yield f'{name}:{nr}: "{word}" is an old word: {GLOSSARY} has the new one'


FIGURE = re.compile(
    r"(?<![\d.,])(\d{1,3}(?:,\d{3})+|\d+\.\d+|\d{3,}) (ns|us|ms|s|GB/s|MB/s|M/s|KiB|MiB|GiB|MB|GB|%)(?![\w/])"
)


def rule_figures(root):
    """
    A figure in a page that another page has too. Limits and sizes of the design (whole KiB,
    hundreds of ms) are no measurements.
    """
    pages = {}
    for name in files(root, ".md"):
        if name == "CHANGELOG.md":
            continue
        for nr, line in prose(root, name):
            for number, unit in FIGURE.findall(line):
                if "." in number or (number[-1] != "0" and unit in ("ns", "us", "ms", "s")):
                    pages.setdefault(f"{number} {unit}", {}).setdefault(name, nr)
    for figure, where in pages.items():
        for name, nr in where.items():
            # The pages of docs/design are the sections of one.
            design = name.startswith("docs/design/")
            other = [n for n in where if n != name and not (design and n.startswith("docs/design/"))]
            if other:
                yield f"{name}:{nr}: {figure} stands in {other[0]} too"


def report_format(root):
    tool = os.environ.get("CLANG_FORMAT", "clang-format")
    if not shutil.which(tool):
        return
    # All files at once: starting the program takes longer than reading one.
    said = subprocess.run(
        [tool, "-n", "-Werror", *files(root, ".c", ".h")], cwd=root, capture_output=True, text=True
    ).stderr
    off = list(dict.fromkeys(re.findall(r"^([^:\n]+):\d+:\d+: error: ", said, re.M)))
    if off:
        yield f"{len(off)} files differ from .clang-format (`make format`): " + " ".join(off[:8]) + (
            " ..." if off[8:] else ""
        )


# A bad file: the rule that finds it, its text, and other files that it takes to be bad, which are good by themselves.
BAD_TREE = {
    "include/ttmon/a.h": ("layers", '#include "lib/base/util.h"\n', {"lib/base/util.h": ""}),
    "lib/base/u.c": ("layers", '#include "daemon/core/stream/slots.h"\n', {"daemon/core/stream/slots.h": ""}),
    "daemon/core/tt/c.c": ("layers", "#include <time.h>\n", {}),
    "daemon/core/tt/l.c": ("layers", '#include "lib/os/log.h"\n', {"lib/os/log.h": ""}),
    "daemon/core/tt/h.c": (
        "layers",
        '#include "daemon/core/history/history.h"\n',
        {"daemon/core/history/history.h": ""},
    ),
    "daemon/core/cpu/i.c": ("layers", '#include "daemon/io/files/db.h"\n', {"daemon/io/files/db.h": ""}),
    "daemon/io/probes/s.c": ("layers", '#include "ttmond.skel.h"\n', {}),
    "lib/read/r.c": ("layers", '#include "daemon/io/bpf/ring.h"\n', {"daemon/io/bpf/ring.h": ""}),
    "tools/top/b.c": ("layers", '#include "daemon/io/bpf/bpf.h"\n', {"daemon/io/bpf/bpf.h": ""}),
    "memtrace/ptx/m.c": ("layers", '#include "memtrace/read/in.h"\n', {"memtrace/read/in.h": ""}),
    "daemon/run/short.c": ("layers", '#include "hot.h"\n', {"daemon/run/hot.h": ""}),
    "daemon/run/angle.c": ("layers", "#include <daemon/run/hot.h>\n", {"daemon/run/hot.h": ""}),
    "daemon/nowhere/n.c": ("layers", "", {}),
    "daemon/io/http/cycle.h": (
        "cycles",
        '#include "daemon/io/files/z.h"\n',
        {"daemon/io/files/y.h": '#include "daemon/io/http/x.h"\n'},
    ),
    "lib/os/symbols.c": (
        "cycles",
        "int ttmon_one(void);\nint ttmon_other(void);\nint ttmon_one(void) { return ttmon_other(); }\n",
        {
            "lib/read/back.c": "int ttmon_one(void);\nint ttmon_other(void);\nint ttmon_other(void) { return "
            "ttmon_one(); }\n"
        },
    ),
    "daemon/api/p.c": ("private", '#include "daemon/run/daemon_int.h"\n', {"daemon/run/daemon_int.h": ""}),
    "lib/pin/twice.h": (
        "unique",
        "struct ttmon_twice {\n\tint x;\n};\n",
        {"lib/os/twice.h": "struct ttmon_twice {\n\tint y;\n};\n"},
    ),
    "lib/pin/both.c": (
        "unique",
        "struct ttmon_both {\n\tint x;\n};\nvoid ttmon_both(void);\nvoid ttmon_both(void) {}\n",
        {},
    ),
    "daemon/core/tt/p.c": (
        "core-pure",
        '#include <stdio.h>\nvoid ttmon_p(void);\nvoid ttmon_p(void) { puts("x"); }\n',
        {},
    ),
    "lib/base/p.c": ("core-pure", "#include <unistd.h>\nvoid ttmon_p(void);\nvoid ttmon_p(void) { close(0); }\n", {}),
    "daemon/core/tt/n.c": ("names", "int shared_name;\n", {}),
    "tests/lint/padded.c": ("padding", "struct s { char a; long b; };\nextern struct s x;\n", {}),
    "lib/base/nolicence.c": ("spdx", "int ttmon_x;\n", {}),
    "include/ttmon/tt_fns.h": (
        "tt-releases",
        '/* T(1, f, "_ZN2tt8tt_metal1fEv" T(2, g, "_ZN2tt8tt_metal1gEv" */\n',
        {"docs/tt-metal-releases.md": "| id | function | v1 | why |\n| 1 | f | yes | |\n"},
    ),
    "lib/base/dialect.h": (
        "dialect",
        "/* the " + "ghost" + " of an allocation */\n",
        {
            "docs/glossary.md": "## Old word, new word\n\n| old word | new word |\n|---|---|\n| ghost | superseded "
            "allocation |\n"
        },
    ),
    "docs/twice.md": ("figures", "It takes 4.25 ms.\n", {"docs/once.md": "It took 4.25 ms.\n"}),
    "lib/base/cites.h": ("citations", "/* see facts/" + "cuda.md 2 */\n", {}),
    "lib/base/wide.h": ("columns", "int ttmon_wide[] = { " + "1, " * 40 + "1 };\n", {}),
    "lib/base/long.h": ("columns", "/* " + "word " * 21 + "*/\n", {}),
}


def put(root, name, text, licence=True):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(("// SPDX-License-Identifier: GPL-2.0-only\n" if licence else "") + text)
    return path


def compile_into(root, name):
    obj = os.path.join(root, "obj", name[:-2] + ".o")
    os.makedirs(os.path.dirname(obj), exist_ok=True)
    subprocess.run([*os.environ.get("CC", "cc").split(), "-c", os.path.join(root, name), "-o", obj], check=True)


def self_test(_root):
    """Each bad file is found by its rule, and the same tree without it is clean by that."""
    for name, (rule, text, beside) in BAD_TREE.items():
        with tempfile.TemporaryDirectory() as root:
            put(root, name, text, rule != "spdx")
            put(root, "daemon/core/tt/good.c", "int ttmon_good;\n")
            for other, content in beside.items():
                put(root, other, content)
            if rule in ("core-pure", "names", "cycles", "unique"):
                for source in (name, "daemon/core/tt/good.c", *beside):
                    if source.endswith(".c"):
                        compile_into(root, source)
            said = list(RULES[rule](root, "obj"))
            if not any(name in s for s in said):
                yield f"{rule} lets a bad {name} pass"
            if rule == "padding":
                put(root, name, "struct s { char a[8]; long b; };\nextern struct s x;\n")
            else:
                os.remove(os.path.join(root, name))
            if list(RULES[rule](root, "obj")):
                yield f"{rule} still complains of {name}, which has been mended"


RULES = {
    "layers": lambda root, obj: rule_layers(root),
    "cycles": rule_cycles,
    "private": lambda root, obj: rule_private(root),
    "unique": rule_unique,
    "core-pure": rule_core_pure,
    "names": rule_names,
    "padding": lambda root, obj: rule_padding(root),
    "spdx": lambda root, obj: rule_spdx(root),
    "tt-releases": lambda root, obj: rule_tt_releases(root),
    "citations": lambda root, obj: rule_citations(root),
    "columns": lambda root, obj: rule_columns(root),
    "dialect": lambda root, obj: rule_dialect(root),
    "figures": lambda root, obj: rule_figures(root),
    "self-test": lambda root, obj: self_test(root),
}
REPORTS = {"format": report_format}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", default=".output/obj", help="folder of the objects of the optimized build")
    args = parser.parse_args()
    root = os.getcwd()
    failed = False
    for name, rule in RULES.items():
        bad = list(rule(root, args.objects))
        for line in bad[1:]:
            print(f"    {line}", file=sys.stderr)
        print(f"FAIL lint/{name}: {bad[0]}" if bad else f"ok lint/{name}", flush=True)
        failed |= bool(bad)
    for name, report in REPORTS.items():
        for line in report(root):
            print(f"note {name}: {line}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
