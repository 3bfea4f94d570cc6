#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""lint.py: the project's rules that no compiler knows, one line per rule.

    ok lint/RULE            FAIL lint/RULE: file:line: why

Rules: `layers` (which #include may stand where), `core-pure` (no object under daemon/core calls the clock, a file, a
thread or the log), `names` (what an object exports starts with ttmon_), `padding` (no record has implicit padding), `spdx`,
`length`. The first five are gates; file length and format are reports, for a person to judge. Every rule is first held against
a small bad tree of its own (`self-test`): a rule that lets that pass is no rule.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')

# Folder: what it may include in quotes or, for our own headers, in angle brackets. The longest folder that matches rules.
LAYERS = {
    "include/": ["ttmon/"],
    "daemon/util/": ["ttmon/", "util/"],
    "daemon/core/": ["ttmon/", "util/util.h", "core/"],
    "daemon/io/": ["ttmon/", "util/", "core/", "io/", "lib/slots.h", "version.h"],
    "daemon/": ["ttmon/", "util/", "core/", "io/", "version.h", "opts.h", "lib/client.h", "memtrace/"],
    "lib/": ["ttmon/", "util/", "core/", "lib/", "io/elf.h"],
    "memtrace/": ["ttmon/", "util/", "memtrace/", "lib/run.h", "version.h"],
    "tools/": ["ttmon/", "util/", "core/", "lib/", "memtrace/", "tools/", "version.h", "io/db.h", "io/ttsys.h", "io/jsonw.h",
               "io/outfile.h", "io/rec.h", "io/slotjson.h", "io/traceev.h", "io/tracefile.h"],
    "bpf/": ["ttmon/", "vmlinux.h", "bpf/"],
}
OWN = sorted({p.split("/")[0] for ps in LAYERS.values() for p in ps if "/" in p} - {"bpf"})

# core/ is a pure function of (bytes, now): these headers have nothing in them that says otherwise.
PURE_HEADERS = {"assert.h", "errno.h", "inttypes.h", "limits.h", "linux/types.h", "stdalign.h", "stdarg.h", "stdbool.h", "stddef.h",
                "stdint.h", "stdio.h", "stdlib.h", "string.h"}
# stdio.h and stdlib.h are needed for snprintf and malloc; what else they offer shows in the objects' undefined symbols.
IMPURE_CALLS = re.compile(
    r"^(clock_|time$|gettimeofday|nanosleep|usleep|sleep$|timer|pthread_|sem_|fork|exec|system$|popen|open|creat$|read$|"
    r"write$|pread|pwrite|close$|fopen|fdopen|fread|fwrite|fputs|fputc|putc|puts$|putchar|printf|vprintf|fprintf|vfprintf|"
    r"__(v?f?)printf_chk|perror|mmap|munmap|ioctl|socket|poll|epoll|getenv|secure_getenv|rand$|random$|getrandom|exit$|"
    r"ttmon_log|bpf_|stderr$|stdout$)")

SKELETON_USERS = re.compile(r"^daemon/(io/(bpf|probes|ring|discover)\w*\.[ch]|[^/]+\.[ch])$")
MAX_LINES = 600


def files(root, *suffixes):
    """Our files below root: what git would track, or, in the self-test's trees, what is there."""
    try:
        out = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-co", "--exclude-standard"],
                             capture_output=True, text=True, check=True).stdout.splitlines()
        if not os.path.exists(os.path.join(root, ".git")):
            raise FileNotFoundError
    except (OSError, subprocess.CalledProcessError):
        out = [os.path.relpath(os.path.join(d, f), root) for d, dirs, fs in os.walk(root) for f in fs
               if not os.path.relpath(d, root).startswith((".output", ".git"))]
    return sorted(f for f in set(out) if f.endswith(suffixes) and os.path.isfile(os.path.join(root, f)))


def lines(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as f:
        return f.read().splitlines()


def includes(root, name):
    for nr, line in enumerate(lines(root, name), 1):
        m = INCLUDE.match(line)
        if m:
            yield nr, m.group(1), m.group(2)


def rule_layers(root):
    for name in files(root, ".c", ".h"):
        folder = max((d for d in LAYERS if name.startswith(d)), key=len, default=None)
        if folder is None or name.startswith("tools/demo/"):
            continue
        for nr, quote, header in includes(root, name):
            at = f"{name}:{nr}: "
            if header.endswith(".skel.h"):
                if not SKELETON_USERS.match(name):
                    yield at + f"{header}: only the daemon's io/bpf side includes the skeleton"
            elif quote == '"' or header.split("/")[0] in OWN:
                own_header = os.path.join(os.path.dirname(name), header)
                beside = "/" not in header and os.path.isfile(os.path.join(root, own_header))
                if not beside and not header.startswith(tuple(LAYERS[folder])):
                    yield at + f"{folder} must not include {header}"
                if folder in ("lib/", "tools/") and re.match(r"io/(bpf|ring|probes|discover)", header):
                    yield at + f"{folder} never touches the kernel side: {header}"
            elif folder == "daemon/core/" and header not in PURE_HEADERS:
                yield at + f"core/ includes no <{header}>: pure headers only"


def objects(root, objdir, below):
    top = os.path.join(root, objdir, below)
    for d, _, fs in sorted(os.walk(top)):
        for f in sorted(fs):
            source = os.path.relpath(os.path.join(d, f), os.path.join(root, objdir))[:-2] + ".c"
            if f.endswith(".o") and os.path.isfile(os.path.join(root, source)):
                yield source, os.path.join(d, f)


def symbols(path, option):
    out = subprocess.run(["nm", "-P", option, path], capture_output=True, text=True, check=True).stdout
    return [line.split()[:2] for line in out.splitlines() if line]


def rule_core_pure(root, objdir):
    found = False
    for source, path in objects(root, objdir, "daemon/core"):
        found = True
        for symbol, _ in symbols(path, "-u"):
            if IMPURE_CALLS.match(symbol.split("@")[0]):
                yield f"{source}: core/ must not use {symbol}"
    if not found:
        yield f"no object of daemon/core in {objdir}: build first"


def rule_names(root, objdir):
    for below in ("daemon", "lib", "tools"):
        for source, path in objects(root, objdir, below):
            allowed = r"(ttmon_|main$|_binary_)" if below != "tools" else r"(ttmon_|main$|cmd_)"
            if source.startswith("tools/demo/"):
                continue
            for symbol, kind in symbols(path, "-g"):
                # The base that the notes of <ttmon/usdt.h> are written against is weak, and the same in all programs.
                if kind not in "Uw" and not re.match(allowed, symbol) and (symbol, kind) != ("_.stapsdt.base", "W"):
                    yield f"{source}: exports {symbol}, which does not start with ttmon_"


def rule_padding(root, source="tests/lint/padded.c"):
    cc = os.environ.get("CC", "cc").split()
    run = subprocess.run([*cc, "-std=gnu11", "-Werror=padded", "-Wall", "-Wextra", "-Werror", "-I", "include", "-I", "daemon",
                          "-I", ".", "-fsyntax-only", source], cwd=root, capture_output=True, text=True)
    if run.returncode:
        yield (run.stderr.strip().splitlines() or ["the compiler failed"])[0]


def rule_spdx(root):
    wanted = files(root, ".c", ".h", ".py", ".sh", ".mk", "Makefile", ".ci/run")
    for name in wanted:
        head = lines(root, name)[:2]
        licence = "MIT" if name in ("include/ttmon/usdt.h", "include/ttmon/client.h") else "GPL-2.0-only"
        if not any(f"SPDX-License-Identifier: {licence}" in line for line in head):
            yield f"{name}:1: no 'SPDX-License-Identifier: {licence}' in the first two lines"


def report_length(root):
    for name in files(root, ".c", ".h"):
        n = len(lines(root, name))
        if n > MAX_LINES and not name.startswith("tests/"):
            yield f"{name}: {n} lines (is \"part two\" a second module?)"


def report_format(root):
    tool = os.environ.get("CLANG_FORMAT", "clang-format")
    if not shutil.which(tool):
        return
    off = [name for name in files(root, ".c", ".h")
           if subprocess.run([tool, "-n", "-Werror", name], cwd=root, capture_output=True).returncode]
    if off:
        yield f"{len(off)} files differ from .clang-format (`make format`): " + " ".join(off[:8]) + (" ..." if off[8:] else "")


BAD_TREE = {
    "include/ttmon/a.h": ("layers", '#include "util/util.h"\n'),
    "daemon/util/u.c": ("layers", '#include "core/slots.h"\n'),
    "daemon/core/c.c": ("layers", "#include <time.h>\n"),
    "daemon/core/l.c": ("layers", '#include "util/log.h"\n'),
    "daemon/core/i.c": ("layers", '#include "io/db.h"\n'),
    "daemon/io/s.c": ("layers", '#include "ttmond.skel.h"\n'),
    "lib/r.c": ("layers", '#include "io/ring.h"\n'),
    "tools/b.c": ("layers", '#include "io/bpf.h"\n'),
    "daemon/core/p.c": ("core-pure", "#include <stdio.h>\nvoid ttmon_p(void);\nvoid ttmon_p(void) { puts(\"x\"); }\n"),
    "daemon/core/n.c": ("names", "int shared_name;\n"),
    "tests/lint/padded.c": ("padding", "struct s { char a; long b; };\nextern struct s x;\n"),
    "daemon/util/nolicence.c": ("spdx", "int ttmon_x;\n"),
}


def self_test(_root):
    """Each bad file is found by its rule, and the same tree without it is clean by that rule."""
    cc = os.environ.get("CC", "cc").split()
    with tempfile.TemporaryDirectory() as root:
        for name, (rule, text) in BAD_TREE.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            head = "" if rule == "spdx" else "// SPDX-License-Identifier: GPL-2.0-only\n"
            with open(path, "w", encoding="utf-8") as f:
                f.write(head + text)
            if rule in ("core-pure", "names"):
                obj = os.path.join(root, "obj", name[:-2] + ".o")
                os.makedirs(os.path.dirname(obj), exist_ok=True)
                subprocess.run([*cc, "-c", path, "-o", obj], check=True)
        for name, (rule, _) in BAD_TREE.items():
            said = list(RULES[rule](root, "obj"))
            if not any(name in s for s in said):
                yield f"{rule} lets a bad {name} pass"
            if rule == "padding":
                with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                    f.write("struct s { char a[8]; long b; };\nextern struct s x;\n")
            else:
                os.remove(os.path.join(root, name))
            if any(name in s for s in RULES[rule](root, "obj")):
                yield f"{rule} still complains of {name}, which has been mended"


RULES = {
    "layers": lambda root, obj: rule_layers(root),
    "core-pure": rule_core_pure,
    "names": rule_names,
    "padding": lambda root, obj: rule_padding(root),
    "spdx": lambda root, obj: rule_spdx(root),
    "self-test": lambda root, obj: self_test(root),
}
REPORTS = {"length": report_length, "format": report_format}


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
