# SPDX-License-Identifier: GPL-2.0-only
"""
Calls inside other calls, and calls that merely look as if they were: each copy is counted once, or
the run says that it may not be.
"""
import json
import os
import subprocess
import sys

from e2e import STANDIN, eq, last_json, pair, process, standin, timeout, true, whole

LIBS = os.path.join(STANDIN, "lib")
BETWEEN = ("between", "between_jumps", "between_known", "between_known_jumps")


def runs(bench, lines, **env):
    """Programs one after the other, each a process of its own: what each prints, the database, what the daemon says."""
    env = {"STANDIN_NESTED": "1", "BETWEEN_DRIVER": os.path.join(LIBS, "libcuda.so.1"), "LD_LIBRARY_PATH": LIBS, **env}
    script = bench.path("run.sh")
    with open(script, "w", encoding="ascii") as f:
        f.write("set -e\n" + "".join(f"export {k}='{v}'\n" for k, v in env.items()) + "\n".join(lines) + "\n")
    out, db, daemon = bench.trace(["sh", script])
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")], db, daemon


def copies(db, book):
    return pair(process(db, book["pid"])["transfers"], "h2d")


def each_once(books, db):
    for book in books:
        eq(f"copies of {book}", copies(db, book), [book["copies"], book["bytes"]])


@timeout(90)
def test_what_a_call_left_on_the_stack(bench):
    """
    A copy below the place where an asynchronous one returned to, by the same instruction or under
    an array that lies over what that one left.
    """
    hows = ("none", "same", "over", "deep", "launch")
    books, db, _ = runs(
        bench, [f"{standin(program)} {how} 10" for program in ("again", "again_static") for how in hows]
    )
    eq("programs", len(books), 2 * len(hows))
    each_once(books, db)
    whole(db)


@timeout(60)
def test_the_driver_below_what_a_call_left(bench):
    """
    The driver's function, called by the program itself: the first time nobody can tell, and that is
    said. From then on there is a return probe.
    """
    [book], db, _ = runs(bench, [f"{standin('again')} driver 20"])
    got = copies(db, book)
    true(f"copies {got} of {book}", book["copies"] - 1 <= got[0] <= book["copies"])
    if got[0] < book["copies"]:
        whole(db, ("not_told_apart",))
        [gap] = db["completeness"]["knowledge"]
        eq(
            "what is not known",
            (gap["pid"], gap["families"], gap["why"]),
            (book["pid"], ["transfer"], "not told apart"),
        )


@timeout(90)
def test_a_library_between_runtime_and_driver(bench):
    """
    Copies go through it, with functions of its own or of the driver's names, by a call or a jump:
    they count once.
    """
    lines = [
        f"LD_LIBRARY_PATH={os.path.join(STANDIN, d)} {standin('again')} {how} 10"
        for d in BETWEEN
        for how in ("same", "over")
    ]
    books, db, _ = runs(bench, lines)
    eq("programs", len(books), len(lines))
    each_once(books, db)
    whole(db)


@timeout(90)
def test_without_sessions(bench):
    """
    Kernels before 6.13 give no return probe on demand: what cannot be told is a lower bound, never
    a copy too many, and never silent.
    """
    env = {"TTMOND_NO_UPROBE_SESSION": "1"}
    lines = [
        f"LD_LIBRARY_PATH={os.path.join(STANDIN, d)} {standin('again')} {how} 10"
        for d in ("lib", *BETWEEN)
        for how in ("same", "over")
    ]
    script = bench.path("run.sh")
    with open(script, "w", encoding="ascii") as f:
        f.write(f"export STANDIN_NESTED=1 BETWEEN_DRIVER={LIBS}/libcuda.so.1\n" + "\n".join(lines) + "\n")
    out, db, _ = bench.trace(["sh", script], env=env)
    books = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    eq("programs", len(books), len(lines))
    doubted = {g["pid"] for g in db["completeness"]["knowledge"] if g["why"] == "not told apart"}
    for book in books:
        got = copies(db, book)[0]
        true(
            f"{got} copies of {book}, {'' if book['pid'] in doubted else 'not '}said to be perhaps too few",
            got == book["copies"] or (book["pid"] in doubted and got < book["copies"]),
        )
    eq("reasons", set(db["completeness"]["reasons"]), {"not_told_apart"} if doubted else set())


LIBRARY = """
int cudaMemcpy(void *dst, const void *src, unsigned long n, int kind);
int copy_inside(void *dst, const void *src, unsigned long n, int kind, void *stream);
int copy_inside(void *dst, const void *src, unsigned long n, int kind, void *stream)
{
	char left[2048];

	(void)stream;
	__asm__ volatile("" : : "r"(left) : "memory");
	return cudaMemcpy(dst, src, n, kind);
}
"""

PROGRAM = """
import ctypes, json, os, sys
rt = ctypes.CDLL(sys.argv[1])
mine = ctypes.CDLL(sys.argv[2])
p, d, size = ctypes.c_void_p(), ctypes.c_void_p(), 8192
assert not rt.cudaHostAlloc(ctypes.byref(p), ctypes.c_size_t(size), 0)
assert not rt.cudaMalloc(ctypes.byref(d), ctypes.c_size_t(size))
for i in range(20):
    assert not rt.cudaMemcpyAsync(d, p, ctypes.c_size_t(size), 1, None)
    assert not mine.copy_inside(d, p, ctypes.c_size_t(size), 1, None)
rt.cudaDeviceSynchronize()
print(json.dumps({"pid": os.getpid(), "copies": 40, "bytes": 40 * size}))
"""


@timeout(60)
def test_ctypes(bench):
    """Python calls every function by the same instruction of libffi."""
    rt, lib, program = os.path.join(LIBS, "libcudart.so.13"), bench.path("libmine.so"), bench.path("program.py")
    for path, text in ((bench.path("mine.c"), LIBRARY), (program, PROGRAM)):
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
    subprocess.run(
        [
            "cc",
            "-O2",
            "-shared",
            "-fPIC",
            "-fno-optimize-sibling-calls",
            "-fno-stack-protector",
            "-o",
            lib,
            bench.path("mine.c"),
            rt,
            f"-Wl,-rpath,{LIBS}",
        ],
        check=True,
    )
    for nested in ("1", "0"):
        out, db, _ = bench.trace(["env", f"STANDIN_NESTED={nested}", sys.executable, program, rt, lib])
        each_once([last_json(out)], db)
        whole(db)
