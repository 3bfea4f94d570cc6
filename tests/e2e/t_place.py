# SPDX-License-Identifier: GPL-2.0-only
"""
Where probes stand: behind instructions that the kernel single-steps, never on a nop of five bytes,
and in real libraries if they are here.
"""
import collections
import ctypes
import errno
import glob
import json
import os
import re
import shutil
import subprocess

from e2e import STANDIN, TOP, TTMON, Skip, alone, eq, process, standin, timeout, true, whole
from real_libs import build_places, libraries, places
from t_copy import every_function
from t_tt import whole_run

# Bodies of exported functions; IMPL is the real function, which is not exported.
FORMS = {
    # models libcuda 550's stub, cuMemHostAlloc at 0x2d5720 of 535.261.03: the place is the je
    "driver": """cmpl $0x321cba00, ttmon_word(%rip)
                 je 9f
                 jmp *IMPL_at(%rip)
                 .balign 8
              9: mov $4, %eax
                 ret""",
    # gcc -fcf-protection, the default of Ubuntu's compilers: the place is the jmp
    "endbr64": "endbr64\njmp IMPL",
    "nop5": ".byte 0x0f, 0x1f, 0x44, 0, 0\njmp IMPL",
}
PLACE = {"driver": 10, "endbr64": 4, "nop5": 5}


def x86():
    if os.uname().machine != "x86_64":
        raise Skip("x86-64 alone")


def run(*args, text=None):
    done = subprocess.run(args, check=False, capture_output=True, text=True, input=text)
    true(f"{args[0]}: {done.stderr}", not done.returncode)


def stubbed(bench, folder, which, soname, version_map, form, only=None):
    """
    A stand-in library whose exported functions have these first instructions and go on to the real
    ones. Its path, and their names.
    """
    os.makedirs(bench.path(folder), exist_ok=True)
    objects, names = [], []
    for path in sorted(glob.glob(os.path.join(STANDIN, "obj", which, "*.o"))):
        objects.append(shutil.copy(path, bench.path(folder)))
        listing = subprocess.run(
            ["nm", "-g", "--defined-only", path], check=True, capture_output=True, text=True
        ).stdout
        names += [f[2] for f in map(str.split, listing.splitlines()) if f[1] == "T" and re.match(r"cu(da)?[A-Z]", f[2])]
    names = [n for n in names if only is None or n in only]
    with open(bench.path(folder + "/renamed"), "w", encoding="ascii") as f:
        f.writelines(f"{n} impl_{n}\n" for n in names)
    for path in objects:
        run("objcopy", "--redefine-syms=" + bench.path(folder + "/renamed"), path)
    with open(bench.path(folder + "/stubs.s"), "w", encoding="ascii") as f:
        f.write(".data\nttmon_word: .long 7\n")
        f.writelines(f".balign 8\nimpl_{n}_at: .quad impl_{n}\n" for n in names)
        # Far from other code, whose bytes may look like jumps to here.
        f.write(".text\n.fill 256, 1, 0xcc\n")
        for n in names:
            f.write(
                f".balign 32\n.globl {n}\n.type {n}, @function\n{n}:\n{FORMS[form].replace('IMPL', 'impl_' + n)}\n"
                f".size {n}, . - {n}\n"
            )
        f.write(".fill 256, 1, 0xcc\n")
        f.write('.section .note.GNU-stack,"",@progbits\n')
    out = bench.path(f"{folder}/{soname}")
    run(
        "cc",
        "-shared",
        "-pthread",
        "-Wl,-Bsymbolic",
        "-Wl,--build-id",
        "-Wl,-soname," + soname,
        "-Wl,--version-script," + os.path.join(TOP, "tests/standin", version_map),
        "-o",
        out,
        bench.path(folder + "/stubs.s"),
        *objects,
    )
    return out, names


def both(bench, form):
    """Runtime and driver in that form: the folder for LD_LIBRARY_PATH, and the names of all functions."""
    _, rt = stubbed(bench, form, "rt13", "libcudart.so.13", "cudart13.map", form)
    # The objects of the two have the same names.
    drv, more = stubbed(bench, form + "-drv", "drv", "libcuda.so.1", "cuda.map", form)
    shutil.move(drv, bench.path(form))
    return bench.path(form), rt + more


def probes_of(sock):
    shown = subprocess.run(
        [TTMON, "probes", "--json", "--socket", sock], capture_output=True, text=True, check=True
    ).stdout
    return json.loads(shown)["objects"]


def check_places(bench, form, program, env):
    """What the service says of the probes of a waiting program's libraries: all of them at the place."""
    sock = bench.path("place.sock")
    target = bench.target(program, "--wait", "exit", "3", env=env)
    daemon = bench.daemon("--socket", sock, "--pid", str(target.pid))
    ours = [o for o in probes_of(sock) if o["path"].startswith(env["LD_LIBRARY_PATH"])]
    true("no library of the test is probed", ours)
    for o in ours:
        eq(
            f"{o['path']}: places",
            collections.Counter(p["skip"] for p in o["probes"] if p["state"] == "attached").keys(),
            {PLACE[form]},
        )
        eq("single-stepped", [p["symbol"] for p in o["probes"] if p["single_step"]], [])
        eq("not attached", [p["symbol"] for p in o["probes"] if p["state"] != "attached"], [])
    shown = subprocess.run([TTMON, "probes", "-v", "--socket", sock], capture_output=True, text=True, check=True).stdout
    true(f"-v does not say the place: {shown}", re.search(rf"attached +cu(da)?\w+\+{PLACE[form]} +cuda_call\n", shown))
    target.go()
    target.finish()
    daemon.wait(0)


class Placed:
    """A bench whose programs find the libraries of the test, also without uprobe_multi links."""

    def __init__(self, bench, env):
        self.bench, self.env = bench, env

    def trace(self, cmd, *args, status=0, env=None):
        return self.bench.trace(cmd, *args, status=status, env={**(env or {}), **self.env})

    def path(self, name):
        return self.bench.path(name)


def in_form(bench, form, env=None):
    """Every function of runtime and driver: counts, arguments, also those on the stack, results, sizes."""
    x86()
    folder, _ = both(bench, form)
    env = {"LD_LIBRARY_PATH": folder, **(env or {})}
    check_places(bench, form, standin("scen"), env)
    every_function(Placed(bench, env), "everyfn")


@timeout(120)
def test_driver_prologue(bench):
    in_form(bench, "driver")


@timeout(120)
@alone("its tracefs events take others' time")
def test_driver_prologue_without_multi(bench):
    """The cookie is found by the place in the page: that of the probe, not that of the function."""
    in_form(bench, "driver", {"TTMOND_NO_UPROBE_MULTI": "1"})


@timeout(120)
def test_endbr64(bench):
    in_form(bench, "endbr64")


@timeout(120)
def test_nop5_is_passed(bench):
    in_form(bench, "nop5")


# cudaHostUnregister: a nop of five bytes with nothing better behind it. cudaFreeHost: with a push
# behind it. cudaFree: endbr64 and a push.
# cudaHostRegister: the head of its loop, which it runs through as often as its argument says, is
# where the probe would stand.
ODD = {
    "cudaHostUnregister": ".byte 0x0f, 0x1f, 0x44, 0, 0\\nmov $713, %eax\\nret",
    "cudaFreeHost": ".byte 0x0f, 0x1f, 0x44, 0, 0\\npush %rbx\\npop %rbx\\nmov $1, %eax\\nret",
    "cudaFree": "endbr64\\npush %rbx\\npop %rbx\\nmov $1, %eax\\nret",
    "cudaHostRegister": "cmpl $7, odd_word(%rip)\\n1: nop\\ndec %edi\\njnz 1b\\nmov $1, %eax\\nret",
}
CALLS = """
import ctypes, os, sys
lib = ctypes.CDLL(sys.argv[1])
def calls(n):
    for name in ("cudaHostUnregister", "cudaFreeHost", "cudaFree", "cudaHostRegister"):
        for _ in range(n):
            getattr(lib, name)(3)
calls(9)
child = os.fork()
if not child:
    calls(5)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def odd_library(bench):
    path = bench.path("libcudart.so.13")
    with open(bench.path("odd.c"), "w", encoding="ascii") as f:
        f.write('__asm__(".data\\nodd_word: .long 7\\n.text");\n')
        for name, code in ODD.items():
            f.write(
                f'__asm__(".balign 16\\n.globl {name}\\n.type {name}, @function\\n{name}: {code}\\n.size {name}, . - '
                f'{name}\\n");\n'
            )
    run("cc", "-shared", "-fPIC", "-Wl,-soname,libcudart.so.13", "-o", path, bench.path("odd.c"))
    return path


def optimizes_nop5():
    """Has this kernel the system call of the trampolines?"""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(336) >= 0 or ctypes.get_errno() != errno.ENOSYS


def odd_forms(bench, env):
    refused = optimizes_nop5()
    out, db, daemon = bench.trace(["/usr/bin/python3", "-c", CALLS, odd_library(bench)], env=env)
    eq("exit status of the forked child", out, "7\n")
    names = [n for n in ODD if not (refused and n == "cudaHostUnregister")]
    eq(
        "failed calls",
        [sorted((e["fn"], e["count"]) for e in p["errors"]) for p in db["processes"]],
        [sorted((n, k) for n in names) for k in (9, 5)],
    )
    whole(db, ("unprobed",) if refused else ())
    said = re.search(r"cudaHostUnregister is not probed: a nop of five bytes", daemon.stderr())
    eq(f"said to be refused: {daemon.stderr()!r}", bool(said), refused)
    said = re.search(r"(\d) of (\d) probed functions have an instruction", daemon.stderr())
    eq("single-stepped", said.groups(), ("1", "3") if refused else ("1", "4"))


def test_nop5_and_fork(bench):
    """
    A probed nop of five bytes would kill the child on 6.18. A loop's head is no place: its function
    is seen once a call.
    """
    x86()
    odd_forms(bench, {})


@alone("its tracefs events take others' time")
def test_nop5_and_fork_without_multi(bench):
    x86()
    odd_forms(bench, {"TTMOND_NO_UPROBE_MULTI": "1"})


@timeout(240)
def test_tt_metal_endbr64(bench):
    """
    tt-metal as Ubuntu's compilers build it. Where its vtables lie follows from the instruction
    pointer: that of the probe.
    """
    x86()
    source, folder = os.path.join(TOP, "tests/standin/tt"), bench.path("tt")
    os.makedirs(folder)
    with open(os.path.join(TOP, "tests/standin/tt.mk"), encoding="utf-8") as f:
        units = re.search(r"^TT_UNITS := (.*)$", f.read(), re.M)[1].split()
    run(
        "make",
        "-f",
        "-",
        "-j2",
        "-C",
        folder,
        "libtt_metal.so",
        text=f"""
%.o: {source}/%.cpp
\tg++ -std=c++17 -O1 -fPIC -fcf-protection=full -I {source} \\
		-DTT_NAME='"e2b"' -DTT_GEN=25 -DTT_INLINED=0 -DTT_PROF=4 -c $< -o $@
libtt_metal.so: {" ".join(u + ".o" for u in units)}
\tg++ -shared -pthread -Wl,--build-id -Wl,-soname,libtt_metal.so -o $@ $^ -ldl
""",
    )
    p, book = whole_run(Placed(bench, {"LD_LIBRARY_PATH": folder}), "e2b")
    eq("flags", p["flags"], [])
    eq("captures without dispatch", p["hooked"], book["hooked"])
    sock = bench.path("place.sock")
    target = bench.target(standin("ttledger"), "--chips", "1", "--ops", "10", "--wait", env={"LD_LIBRARY_PATH": folder})
    daemon = bench.daemon("--socket", sock, "--pid", str(target.pid))
    found = [
        q["skip"]
        for o in probes_of(sock)
        if o["path"].startswith(folder)
        for q in o["probes"]
        if q["state"] == "attached"
    ]
    true(f"places of its functions: {found}", len(found) > 20 and set(found) == {4})
    target.proc.stdin.write(b"\n" * 100)
    target.finish()
    daemon.wait(0)


# First bytes, followed by what makes an instruction of most of them: which of them does the kernel refuse?
FIRST = (
    "f0 83 0c 24 00",
    "2e 90",
    "36 90",
    "3e 90",
    "26 90",
    "64 90",
    "65 90",
    "66 90",
    "f3 90",
    "f2 90",
    "48 89 c0",
    "06",
    "60",
    "62 f1 7c 48 28 c0",
    "6c",
    "6f",
    "82 c0",
    "9a",
    "c4 e2 79 18 c0",
    "c5 f8 77",
    "cc",
    "cd 80",
    "ce",
    "cf",
    "d6",
    "e4 00",
    "e7 00",
    "ea",
    "ec",
    "ef",
    "f1",
    "f4",
    "fa",
    "fb",
    "fc",
    "f5",
    "f8",
    "c3",
    "31 c0",
    "55",
    "e8 00 00 00 00",
    "0f 1f 00",
    "48 f4",
    "66 f4",
    "c8 00 00 00",
    "9b",
    "d7",
    "e3 00",
    "f7 c0 00 00 00 00",
    "8e d8",
)


def test_first_bytes_that_are_refused(bench):
    """The guess from the first bytes against the kernel: each in a function of its own, which a program has mapped."""
    x86()
    with open(os.path.join(TOP, "include/ttmon/fns.h"), encoding="ascii") as f:
        names = sorted(set(re.findall(r"F\(\d+, (cuda\w+), RT,", f.read())))[: len(FIRST)]
    eq("functions", len(names), len(FIRST))
    with open(bench.path("first.s"), "w", encoding="ascii") as f:
        for name, code in zip(names, FIRST):
            f.write(
                f".balign 32\n.globl {name}\n.type {name}, @function\n{name}: .byte "
                f"{', '.join('0x' + b for b in code.split())}\n"
                f".fill 16, 1, 0xc0\n.size {name}, . - {name}\n"
            )
        f.write('.section .note.GNU-stack,"",@progbits\n')
    path, sock = bench.path("libcudart.so.13"), bench.path("sock")
    run("cc", "-shared", "-nostdlib", "-Wl,-soname,libcudart.so.13", "-o", path, bench.path("first.s"))
    maps_it = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print('ready', flush=True); input()"
    target = bench.target("/usr/bin/python3", "-c", maps_it, path)
    daemon = bench.daemon("--socket", sock, "--pid", str(target.pid))
    state = {p["symbol"]: p["state"] for o in probes_of(sock) if o["path"] == path for p in o["probes"]}
    guess = {r.name: r.refused for r in places(build_places(bench.path("places")), path)}
    wrong = [(code, state[name]) for name, code in zip(names, FIRST) if guess[name] != (state[name] == "failed")]
    eq("guessed wrongly", wrong, [])
    true(f"{state}", {"attached", "failed"} == set(state.values()))
    target.go()
    target.finish()
    daemon.wait(0)


# ---- the real libraries ----
# Instructions that a probe may stand behind, and those that every kernel emulates, as objdump writes them.
PASSED = re.compile(
    r"(endbr64|cmp[lb]\s+\$0x[0-9a-f]+,-?0x[0-9a-f]+\(%rip\)|nopl\s+0x0\(%rax,%rax,1\)|test\s+%\w+,%\w+|"
    r"mov\s+\$0x[0-9a-f]+,%eax)"
)
EMULATED = re.compile(r"(push\s+%r|j[a-z]+\s+[0-9a-f]+ |call\s+[0-9a-f]+ |nop$|pause)")
LINE = re.compile(r"^\s*([0-9a-f]+):\t(?:[0-9a-f]{2} )+\s*\t?(.*)$")
JUMP = re.compile(r"^(?:bnd |notrack )?(?:j[a-z]+|call|loop[a-z]*)\s+([0-9a-f]+)\b")


def disassembled(lib, entries):
    """{entry: [(address, instruction)] of its first bytes}, and every address that a direct jump or call leads to."""
    first, targets, near = {}, set(), {}
    for entry in entries:
        near.update((a, entry) for a in range(entry, entry + 40))
    with subprocess.Popen(
        ["objdump", "-d", "-w", "--no-show-raw-insn", lib], stdout=subprocess.PIPE, text=True, errors="replace"
    ) as p:
        for line in p.stdout:
            head, colon, text = line.partition(":\t")
            if not colon:
                continue
            jump = JUMP.match(text)
            if jump:
                targets.add(int(jump[1], 16))
            address = int(head, 16)
            if address in near:
                first.setdefault(near[address], []).append((address, text.split("#")[0].strip() + " "))
    return first, targets


def check_library(lib, rows):
    """
    Each place by another decoder: what is before it, what is at it, and that no direct jump leads
    behind the entry.
    """
    moved = {r.addr: r for r in rows if r.skip}
    first, targets = disassembled(lib, moved)
    for entry, row in moved.items():
        code = [(a, t) for a, t in first[entry] if a <= entry + row.skip]
        eq(f"{row.name}: an instruction begins at the place", code[-1][0], entry + row.skip)
        true(
            f"{row.name}: {code}",
            all(PASSED.match(t) for _, t in code[:-1]) and EMULATED.match(code[-1][1]) and len(code) <= 4,
        )
        eq(f"{row.name}: jumps behind the entry", targets & set(range(entry + 1, entry + row.skip + 1)), set())


@timeout(120)
def test_real_libraries(bench):
    """Of each exported function of the real driver and runtime: placed, and why not."""
    x86()
    found = libraries()
    if not found:
        raise Skip("no real library is here: make real-libs fetches them")
    tool = build_places(bench.path("places"))
    for lib in found:
        rows = places(tool, lib)
        stepped = [r for r in rows if r.stepped]
        true(
            f"{lib}: {len(stepped)} of {len(rows)} are single-stepped: {[r.name for r in stepped]}",
            len(stepped) <= max(1, len(rows) // 50),
        )
        check_library(lib, rows)


FIRE = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
buf = ctypes.create_string_buffer(4096)
for name in sys.argv[2:]:
    codes = {getattr(lib, name)(buf, 0, 0, 0, 0, 0, 0, 0) for _ in range(50)}
    print(name, codes, flush=True)
"""
FIRED = [
    "cuMemHostAlloc",
    "cuMemAllocHost_v2",
    "cuMemFreeHost",
    "cuMemHostRegister_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoDAsync_v2",
]


@timeout(120)
def test_real_driver_fires(bench):
    """Calls of the real driver before cuInit(), which return 3: each is seen once, with its result."""
    x86()
    found = [lib for lib in libraries() if os.path.basename(lib).startswith("libcuda.so")]
    if not found:
        raise Skip("no real driver is here: make real-libs fetches it")
    for lib in found:
        # Under the name by which it is known.
        folder = bench.path(os.path.basename(lib))
        os.makedirs(folder, exist_ok=True)
        path = shutil.copy(lib, os.path.join(folder, "libcuda.so.1"))
        out, db, _ = bench.trace(["/usr/bin/python3", "-c", FIRE, path, *FIRED], "--copy-results")
        eq("what they return", out, "".join(f"{n} {{3}}\n" for n in FIRED))
        errors = collections.Counter()
        for e in db["processes"][0]["errors"]:
            errors[e["fn"], e["code"]] += e["count"]
        eq(f"calls seen of {lib}", dict(errors), {(re.sub(r"_v\d$", "", n), 3): 50 for n in FIRED})
        whole(db)
