#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""memory.py: how pinned memory is mapped, what the kernel counts of it, and by what the driver's
memory could be known. Called by parts.py.

One block of each kind is made, written, and freed; before and after each step the counters of the
kernel and the mappings of this process are read. Ordinary memory of several sorts is looked at in
the same way, to see what only the driver's memory bears.
"""
import contextlib
import ctypes
import mmap
import os
import re
import struct
import subprocess
import sys

from gpu import CUDART, Part, fields, needs_device, needs_runtime, standin_env, text_of
from e2e import SLOW, Skip, eq, true

part = Part("memory")
SIZE = 64 << 20
KIB = 1024
HOST, PORTABLE, MAPPED, WRITE_COMBINED = 0, 1, 2, 4


# ---- what is looked at ----
def counters():
    """{name: bytes or pages or number}, of this process, the host and the control group."""
    found = {
        f"status {k}": v * KIB
        for k, v in fields(text_of("/proc/self/status")).items()
        if k in ("VmSize", "VmLck", "VmPin", "VmRSS", "RssAnon", "RssFile", "RssShmem", "VmPTE")
    }
    vmstat = fields(text_of("/proc/vmstat"), "")
    found.update(
        {
            f"vmstat {k}": vmstat[k]
            for k in (
                "nr_foll_pin_acquired",
                "nr_foll_pin_released",
                "nr_mlock",
                "nr_unevictable",
                "nr_shmem",
                "nr_anon_pages",
                "nr_mapped",
                "nr_kernel_misc_reclaimable",
                "nr_page_table_pages",
                "nr_anon_transparent_hugepages",
            )
            if k in vmstat
        }
    )
    meminfo = fields(text_of("/proc/meminfo"))
    found.update(
        {
            f"meminfo {k}": meminfo[k] * KIB
            for k in (
                "MemFree",
                "MemAvailable",
                "Unevictable",
                "Mlocked",
                "AnonPages",
                "Mapped",
                "Shmem",
                "Slab",
                "HugePages_Free",
            )
            if k in meminfo
        }
    )
    group = re.findall(r"^0::(/.*)|^\d+:memory:(/.*)", text_of("/proc/self/cgroup") or "", re.M)
    for v2, v1 in group[:1]:
        path = "/sys/fs/cgroup" + v2 if v2 else "/sys/fs/cgroup/memory" + v1
        for name in ("memory.current", "memory.usage_in_bytes"):
            with contextlib.suppress(TypeError, ValueError):
                found[f"cgroup {name}"] = int(text_of(f"{path}/{name}"))
        stat = fields(text_of(f"{path}/memory.stat"), "")
        found.update(
            {
                f"cgroup {k}": stat[k]
                for k in ("anon", "file", "shmem", "kernel", "unevictable", "file_mapped")
                if k in stat
            }
        )
    return found


def changes(before, after, least):
    """Counters that changed by so much. Those of the whole host move by themselves."""
    pages = least // mmap.PAGESIZE
    return {
        k: after[k] - before[k]
        for k in after
        if k in before and abs(after[k] - before[k]) >= (pages if k.startswith("vmstat") else least)
    }


def mappings():
    return set((text_of("/proc/self/maps", 64 << 20) or "").splitlines())


def mapping(address):
    """The mapping of an address, as smaps tells it: its fields, flags, and what backs the page."""
    found, at = None, None
    for line in (text_of("/proc/self/smaps", 256 << 20) or "").splitlines():
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) (\S+) (\S+) (\d+)\s*(.*)", line)
        if head:
            at = int(head[1], 16) <= address < int(head[2], 16)
            if at:
                found = {
                    "bytes": int(head[2], 16) - int(head[1], 16),
                    "mode": head[3],
                    "offset": head[4],
                    "device": head[5],
                    "inode": int(head[6]),
                    "path": head[7],
                }
        elif at:
            name, _, rest = line.partition(":")
            found[name] = rest.split() if name == "VmFlags" else rest.strip()
    return found


# Bits of /proc/kpageflags, linux/kernel-page-flags.h.
PAGE_FLAGS = dict(
    enumerate(
        (
            "LOCKED",
            "ERROR",
            "REFERENCED",
            "UPTODATE",
            "DIRTY",
            "LRU",
            "ACTIVE",
            "SLAB",
            "WRITEBACK",
            "RECLAIM",
            "BUDDY",
            "MMAP",
            "ANON",
            "SWAPCACHE",
            "SWAPBACKED",
            "COMPOUND_HEAD",
            "COMPOUND_TAIL",
            "HUGE",
            "UNEVICTABLE",
            "HWPOISON",
            "NOPAGE",
            "KSM",
            "THP",
            "OFFLINE",
            "ZERO_PAGE",
            "IDLE",
            "PGTABLE",
        )
    )
)


def page(address):
    """What the kernel says of the page behind an address; root alone sees its number."""
    try:
        with open("/proc/self/pagemap", "rb") as f:
            f.seek(address // mmap.PAGESIZE * 8)
            (entry,) = struct.unpack("<Q", f.read(8))
    except (OSError, struct.error) as why:
        return {"error": str(why)}
    found = {
        "present": bool(entry >> 63),
        "swapped": bool(entry >> 62 & 1),
        "file or shared": bool(entry >> 61 & 1),
        "mapped once": bool(entry >> 56 & 1),
        "soft dirty": bool(entry >> 55 & 1),
        "frame": bool(entry & (1 << 55) - 1),
    }
    frame = entry & (1 << 55) - 1
    for name in ("kpageflags", "kpagecount", "kpagecgroup"):
        with contextlib.suppress(OSError, struct.error):
            with open("/proc/" + name, "rb") as f:
                f.seek(frame * 8)
                (value,) = struct.unpack("<Q", f.read(8)) if found["frame"] else (None,)
            found[name] = (
                value
                if name != "kpageflags" or value is None
                else [PAGE_FLAGS.get(b, str(b)) for b in range(48) if value >> b & 1]
            )
    return found


def marks(info, backing):
    """What a block could be known by."""
    found = {f"flag {f}" for f in info.get("VmFlags", [])} | {
        f"mode {info['mode']}",
        f"path {re.sub(r'[0-9a-f]{6,}|[0-9]+$', 'N', info['path']) or 'none'}",
        f"device {info['device']}",
    }
    return (
        found
        | {f"page {f}" for f in backing.get("kpageflags") or ["unknown"]}
        | {"page " + ("present" if backing.get("present") else "absent")}
    )


# ---- the kinds ----
class Runtime:
    def __init__(self):
        self.rt = ctypes.CDLL(CUDART)

    def alloc(self, name, *flags):
        p = ctypes.c_void_p()
        err = getattr(self.rt, name)(ctypes.byref(p), ctypes.c_size_t(SIZE), *flags)
        if err:
            raise Skip(f"{name}: error {err}")
        return p.value

    def free(self, name, address):
        eq(name, getattr(self.rt, name)(ctypes.c_void_p(address)), 0)


def anonymous():
    area = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return ctypes.addressof(ctypes.c_char.from_buffer(area)), area


def shared(fd=-1):
    area = mmap.mmap(fd, SIZE, flags=mmap.MAP_SHARED)
    return ctypes.addressof(ctypes.c_char.from_buffer(area)), area


def memfd():
    fd = os.memfd_create("gpu-memory")
    os.ftruncate(fd, SIZE)
    return shared(fd)


KINDS = {
    "cudaHostAlloc": lambda r: (r.alloc("cudaHostAlloc", HOST), "cudaFreeHost"),
    "cudaMallocHost": lambda r: (r.alloc("cudaMallocHost"), "cudaFreeHost"),
    "cudaHostAlloc portable": lambda r: (r.alloc("cudaHostAlloc", PORTABLE), "cudaFreeHost"),
    "cudaHostAlloc mapped": lambda r: (r.alloc("cudaHostAlloc", MAPPED), "cudaFreeHost"),
    "cudaHostAlloc write-combined": lambda r: (r.alloc("cudaHostAlloc", WRITE_COMBINED), "cudaFreeHost"),
    "cudaMallocManaged": lambda r: (r.alloc("cudaMallocManaged", 1), "cudaFree"),
}
ORDINARY = {"anonymous": anonymous, "shared anonymous": shared, "memfd": memfd}


def look(address, kind):
    info, backing = mapping(address), page(address)
    true(f"{kind}: {address:#x} is in no mapping", info)
    return {"mapping": info, "page": backing, "marks": sorted(marks(info, backing))}


def block(kind, make, free):
    """One block's life: made, written, freed."""
    maps, before = mappings(), counters()
    address, how = make()
    made, new = counters(), mappings() - maps
    found = {
        "new mappings": sorted(new)[:20],
        "made": changes(before, made, SIZE // 4),
        "when made": look(address, kind),
    }
    ctypes.memset(address, 1, SIZE)
    written = counters()
    found.update({"written": changes(made, written, SIZE // 4), "when written": look(address, kind)})
    free(how, address)
    after = counters()
    found.update(
        {
            "freed": changes(written, after, SIZE // 4),
            "left": changes(before, after, SIZE // 4),
            "mapped afterwards": mapping(address) is not None,
        }
    )
    return found


def summary(found):
    info = found["when written"]["mapping"]
    count = (
        ", ".join(
            f"{k} {v:+,}"
            for k, v in {**found["made"], **found["written"]}.items()
            if k.startswith("status") and k != "status VmSize"
        )
        or "nothing of the process"
    )
    return f"{info['mode']} {info['path'] or 'anonymous'} [{' '.join(info.get('VmFlags', []))}], counted: {count}"


SEEN = {}


def kind_of_memory(_, name):
    """One kind of CUDA's memory."""
    runtime = Runtime()
    SEEN[name] = block(name, lambda: KINDS[name](runtime), runtime.free)
    part.fact("blocks", SEEN)
    return summary(SEEN[name])


def registered(_):
    """Ordinary memory, which the driver pins and lets go."""
    runtime = Runtime()
    address, area = anonymous()
    ctypes.memset(address, 1, SIZE)
    maps, before = mappings(), counters()
    eq("cudaHostRegister", runtime.rt.cudaHostRegister(ctypes.c_void_p(address), ctypes.c_size_t(SIZE), 0), 0)
    made = counters()
    found = {
        "new mappings": sorted(mappings() - maps)[:20],
        "made": changes(before, made, SIZE // 4),
        "written": {},
        "when written": look(address, "registered"),
    }
    eq("cudaHostUnregister", runtime.rt.cudaHostUnregister(ctypes.c_void_p(address)), 0)
    found.update({"freed": changes(made, counters(), SIZE // 4)})
    SEEN["cudaHostRegister"] = found
    part.fact("blocks", SEEN)
    del area
    pins = found["made"].get("vmstat nr_foll_pin_acquired", 0)
    return f"{pins} pages by pin_user_pages() of {SIZE // mmap.PAGESIZE}; {summary(found)}"


def ordinary(_):
    """Memory that the driver knows nothing of."""

    def let_go(area, _address):
        # The pointer into it goes first.
        keep.remove(area)

    for name, make in ORDINARY.items():
        keep = []

        def made(make=make, keep=keep):
            address, area = make()
            keep.append(area)
            return address, area

        SEEN[name] = block(name, made, let_go)
    with contextlib.suppress(OSError):
        libc = ctypes.CDLL(None, use_errno=True)
        address, area = anonymous()
        ctypes.memset(address, 1, SIZE)
        before = counters()
        if not libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(SIZE)):
            SEEN["anonymous, mlock"] = {
                "made": changes(before, counters(), SIZE // 4),
                "written": {},
                "when written": look(address, "mlock"),
            }
        del area
    part.fact("blocks", SEEN)
    return f"{len(SEEN)} sorts"


def mark(_):
    """What every block of a kind bears and no ordinary memory does."""
    ours = [name for name in SEEN if name.startswith("cuda") and name != "cudaHostRegister"]
    if not ours:
        raise Skip("no block of CUDA's was seen")
    others = set().union(*(SEEN[name]["when written"]["marks"] for name in SEEN if not name.startswith("cuda")))
    found = {name: sorted(set(SEEN[name]["when written"]["marks"]) - others) for name in ours}
    found["all of them"] = sorted(set.intersection(*(set(f) for f in found.values())))
    part.fact("marks that ordinary memory does not bear", found)
    return "; ".join(f"{name}: {', '.join(f) or 'none'}" for name, f in found.items())


SMALL = """
import ctypes, re, sys
rt = ctypes.CDLL(sys.argv[1])
def lines():
    return set(open("/proc/self/maps").read().splitlines())
warm = ctypes.c_void_p()
print("warm", rt.cudaHostAlloc(ctypes.byref(warm), ctypes.c_size_t(4096), 0))
for size in (64, 4096, 65536, 1 << 20, 2 << 20, 3 << 20):
    before, got = lines(), []
    for _ in range(8):
        p = ctypes.c_void_p()
        rt.cudaHostAlloc(ctypes.byref(p), ctypes.c_size_t(size), 0)
        got.append(p.value or 0)
    apart = " ".join(f"{b - a:#x}" for a, b in zip(got, got[1:]))
    print(size, apart, "|", len(lines() - before), "lines of maps are new")
"""


def small_blocks(_):
    """Whether small blocks share mappings: how far eight of a size lie from one another."""
    done = subprocess.run(
        [sys.executable, "-c", SMALL, CUDART],
        capture_output=True,
        text=True,
        timeout=30 * SLOW,
        check=False,
        env={**os.environ, **standin_env()},
    )
    lines = part.fact("small blocks", done.stdout.splitlines())
    eq(f"status ({done.stderr[-300:]})", done.returncode, 0)
    return "; ".join(lines[1:])


def main():
    part.fact("counters at the start", counters())
    part.check(ordinary)
    try:
        needs_device()
        needs_runtime()
        ctypes.CDLL(CUDART).cudaFree(None)
        part.fact(
            "mappings with a context",
            [line for line in sorted(mappings()) if re.search("nvidia|memfd|dmabuf|anon_inode", line)][:100],
        )
    except Skip as why:
        part.say("SKIP", "blocks", str(why))
        return
    for name in KINDS:
        part.check(kind_of_memory, name, name=name.replace(" ", "_"))
    part.check(registered)
    part.check(small_blocks)
    part.check(mark)


main()
sys.exit(part.status())
