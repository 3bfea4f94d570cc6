# SPDX-License-Identifier: GPL-2.0-only
"""
The same code at another place, and other code at the same place: a runtime in several namespaces
of the dynamic linker, libraries that follow each other at one address, a child that inherits its
parent's memory. The traced Python programs keep their accounts themselves.
"""
import os
import shutil
import struct

from e2e import STANDIN, allocations, eq, last_json, pair, process, standin, timeout, true, whole

LIBS = os.path.join(STANDIN, "lib")
PLUGIN = standin("lib/libpinplug.so")

COMMON = """
import ctypes, _ctypes, json, os, sys

def base_of(path):
    with open("/proc/self/maps") as f:
        return next((line.split("-")[0] for line in f if line.rstrip().endswith(path)), None)
"""

TWICE = (
    COMMON
    + """
one, two, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
book = {"pid": os.getpid(), "at": []}
for i in range(times):
    path = (one, two)[i % 2]
    lib = ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
    book["at"].append([path, base_of(path)])
    if lib.plug_go():
        raise SystemExit("the library's own check fails")
    _ctypes.dlclose(lib._handle)
    if base_of(path):
        raise SystemExit(f"{path} is still mapped")
print(json.dumps(book), flush=True)
"""
)

SPACES = (
    COMMON
    + """
path, times = sys.argv[1], int(sys.argv[2])
libc = ctypes.CDLL(None)
libc.dlmopen.restype = ctypes.c_void_p
libc.dlmopen.argtypes = [ctypes.c_long, ctypes.c_char_p, ctypes.c_int]
libc.dlsym.restype = ctypes.c_void_p
libc.dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
gos = [ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW).plug_go]
for _ in range(2):
    handle = libc.dlmopen(-1, path.encode(), os.RTLD_NOW)  # LM_ID_NEWLM
    if not handle:
        raise SystemExit("dlmopen fails")
    gos.append(ctypes.CFUNCTYPE(ctypes.c_int)(libc.dlsym(handle, b"plug_go")))
with open("/proc/self/maps") as f:
    runtimes = sum("libcudart" in line and " r-xp " in line for line in f)
for _ in range(times):
    for go in gos:
        if go():
            raise SystemExit("the library's own check fails")
print(json.dumps({"pid": os.getpid(), "runtimes": runtimes, "calls": times * len(gos)}), flush=True)
"""
)

INHERITS = (
    COMMON
    + """
rt = ctypes.CDLL(sys.argv[1])
size, h2d = 4 << 20, 1
host, device = ctypes.c_void_p(), ctypes.c_void_p()
if rt.cudaHostAlloc(ctypes.byref(host), ctypes.c_size_t(size), 0):
    raise SystemExit("no pinned memory")
if rt.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(size)):
    raise SystemExit("no memory of the device")

def copies():
    for _ in range(10):
        if rt.cudaMemcpy(device, host, ctypes.c_size_t(size), h2d):
            raise SystemExit("a copy fails")

copies()
child = os.fork()
if not child:
    # The child's own view of it ends, and other memory follows at its place.
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.munmap(host, ctypes.c_size_t(size))
    libc.mmap(host, ctypes.c_size_t(size), 3, 0x32, -1, ctypes.c_long(0))  # MAP_FIXED, private and anonymous
    os._exit(0)
if os.waitpid(child, 0)[1]:
    raise SystemExit("the child fails")
copies()
print(json.dumps({"pid": os.getpid(), "child": child, "addr": hex(host.value), "size": size}), flush=True)
"""
)


def run(bench, script, *args):
    path = bench.path("program.py")
    with open(path, "w", encoding="ascii") as f:
        f.write(script)
    out, db, _ = bench.trace(["python3", path, *map(str, args)], env={"LD_LIBRARY_PATH": LIBS})
    return last_json(out), db


def each_call(db, pid, calls):
    """What plug_go does: a megabyte to the device from pinned memory, 16 bytes back to the stack."""
    whole(db)
    proc = process(db, pid)
    eq("copies to the device", pair(proc["transfers"], "h2d", "pinned"), [calls, calls << 20])
    eq("copies from it", pair(proc["transfers"], "d2h"), [calls, calls * 16])
    pinned = allocations(db, pid, "host_alloc")
    eq("pinned allocations", (len(pinned), {a["size"] for a in pinned}), (calls, {1 << 20}))
    true("all are freed", all(a["free_ns"] for a in pinned))
    return pinned


def other_build(path):
    """The library with another build id: by that an object is known, wherever it lies."""
    with open(PLUGIN, "rb") as f:
        image = bytearray(f.read())
    note = struct.pack("<III", 4, 20, 3) + b"GNU\0"  # ELF note NT_GNU_BUILD_ID
    at = image.index(note) + len(note)
    image[at] ^= 0xFF
    with open(path, "wb") as f:
        f.write(image)
    return path


@timeout(60)
def test_libraries_at_one_address(bench):
    """
    Two libraries, each with the runtime that it needs, come and go at one address in turn: every
    call is seen, and belongs to the library that was there then.
    """
    paths = [shutil.copy(PLUGIN, bench.path("libone.so")), other_build(bench.path("libtwo.so"))]
    book, db = run(bench, TWICE, *paths, 6)
    bases = [base for _, base in book["at"]]
    true(f"no address is used twice: {book['at']}", len(set(bases)) < len(bases))
    shared = {b for p, b in book["at"] if p == paths[0]} & {b for p, b in book["at"] if p == paths[1]}
    true(f"the two are never at one address: {book['at']}", shared)
    pinned = sorted(each_call(db, book["pid"], 6), key=lambda a: int(a["alloc_ns"]))
    paths_of, seen = {o["id"]: o["path"] for o in db["objects"]}, []
    for a in pinned:
        frames = db["sites"][a["site"]]["frames"]
        names = [paths_of[m] for m, _, name in frames if name and name.startswith("plug_go")]
        seen.append(os.path.basename(names[0]) if names else None)
    eq("libraries of the call sites", seen, [os.path.basename(p) for p, _ in book["at"]])


@timeout(60)
def test_runtimes_in_three_namespaces(bench):
    """The runtime is mapped three times, by dlmopen: each call is counted once."""
    book, db = run(bench, SPACES, PLUGIN, 5)
    eq("runtimes that are mapped", book["runtimes"], 3)
    each_call(db, book["pid"], book["calls"])


@timeout(60)
def test_a_child_unmaps_what_it_inherits(bench):
    """The parent's pinned memory stays what it is, and none of it is the child's."""
    book, db = run(bench, INHERITS, os.path.join(LIBS, "libcudart.so.13"))
    whole(db)
    [mine] = allocations(db, book["pid"], "host_alloc")
    eq("the parent's memory", (mine["addr"], mine["size"]), (book["addr"], book["size"]))
    eq("copies", mine["transfers"]["h2d"], [20, 20 * book["size"]])
    proc = process(db, book["pid"])
    eq("copies of the process", pair(proc["transfers"], "h2d", "pinned"), [20, 20 * book["size"]])
    eq("how it ended", mine["end"], "exit")
    eq("pinned memory of the child", allocations(db, book["child"], "host_alloc"), [])
