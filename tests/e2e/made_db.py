# SPDX-License-Identifier: GPL-2.0-only
"""made_db.py: allocation databases of any size and with any names, made here instead of traced: for
tests and benchmarks that need many, strange or broken ones. They follow docs/ttmon-db.schema.json.
"""
import gzip
import json
import random

T0 = 1_000_000_000_000
REAL = 1_790_000_000_000_000_000
SUMS = {
    "pins": 0,
    "pinned_pages": 0,
    "pinned_peak_pages": 0,
    "pinned_bytes": 0,
    "pinned_peak_bytes": 0,
    "peak_ns": "0",
    "live": 0,
    "allocs": 0,
    "frees": 0,
    "transfers": {},
    "launches": 0,
    "graph_launches": 0,
    "graph_copies": 0,
    "captured": 0,
    "failed": 0,
    "unknown_frees": 0,
    "unmatched": 0,
}


class Maker:
    """Add processes, sites and allocations, then document() or write()."""

    def __init__(self, seconds=10.0, hostname="host"):
        self.end = T0 + int(seconds * 1e9)
        self.procs, self.sites, self.allocs, self.objects, self.checkpoints = [], [], [], [], []
        self.ordinals = {}
        self.complete, self.blind, self.lost, self.reasons = True, [], 0, []
        self.hostname = hostname
        self.site([])

    def object(self, path):
        index = len(self.objects) + 1
        self.objects.append({"id": index, "path": path, "build_id": f"{index:040x}", "cuda": False})
        return index

    def process(self, comm="train", pid=None, exe="/usr/bin/train", cmdline="train --epochs 3"):
        index = len(self.procs)
        self.procs.append(
            dict(
                SUMS,
                index=index,
                pid=pid or 1000 + index,
                start_ns=str(T0 - 5_000_000),
                ppid=1,
                comm=comm,
                exe=exe,
                cmdline=cmdline,
                cgroup=None,
                execs=1,
                first_ns=str(T0),
                last_ns=str(self.end),
                exit=None,
                errors=[],
                findings=[],
            )
        )
        return index

    def site(self, frames):
        """frames: [(object id, offset, function or None)], innermost first."""
        key = 0 if not frames else random.Random(str(frames)).getrandbits(64)
        self.sites.append(
            {
                "id": len(self.sites),
                "key": f"0x{key:016x}",
                "frames": [[o, hex(at), fn] for o, at, fn in frames],
                "methods": [],
                "allocs": 0,
                "live": 0,
                "live_bytes": 0,
                "peak_bytes": 0,
                "bytes": 0,
                "min_size": 0,
                "max_size": 0,
                "h2d": {},
                "d2h": {},
                "pin_ns": 0,
                "folded": 0,
            }
        )
        return len(self.sites) - 1

    def checkpoint(self, at, label, proc=0):
        self.checkpoints.append([str(T0 + int(at * 1e9)), proc, self.procs[proc]["pid"], label])

    def alloc(
        self,
        site,
        size,
        start,
        end=None,
        copies=(),
        proc=0,
        method="host_alloc",
        addr=None,
        dropped=0,
        name=None,
        **more,
    ):
        """start, end: seconds (end None: live); copies: [(seconds, kind, bytes)] in order."""
        ordinal = self.ordinals[proc, site, size] = self.ordinals.get((proc, site, size), -1) + 1
        begin = T0 + int(start * 1e9)
        mem = "pinned" if method in ("host_alloc", "registered", "pool") else "pageable"
        sums = {}
        for _, kind, n in copies:
            pair = sums.setdefault(kind if kind in ("h2d", "d2h") else "h2h", [0, 0])
            pair[0] += 1
            pair[1] += n
        if dropped:
            sums.setdefault("h2d", [0, 0])[0] += dropped
        row = {
            "id": f"{self.sites[site]['key'][2:]}:{size}:{ordinal}@{proc}",
            "pid": self.procs[proc]["pid"],
            "process": proc,
            "site": site,
            "ordinal": ordinal,
            "size": size,
            "addr": hex(addr or 0x7F0000000000 + (len(self.allocs) << 24)),
            "gen": 0,
            "method": method,
            "fn": {"host_alloc": "cudaHostAlloc", "registered": "cudaHostRegister"}.get(method),
            "device": 0,
            "alloc_ns": str(begin),
            "free_ns": None if end is None else str(T0 + int(end * 1e9)),
            "end": "live" if end is None else "free",
            "states": ["created"],
            "pin_ns": 120000,
            "unpin_ns": 0,
            "flags": [],
            "api_flags": 0,
            "transfers": sums,
            "events": [[T0 + int(t * 1e9) - begin, kind, n, 0, mem, 1] for t, kind, n in copies],
        }
        if dropped:
            row["events_dropped"] = dropped
        if name is not None:
            row["name"] = name
        row.update(more)
        self.allocs.append(row)

    def document(self):
        dropped = sum(a.get("events_dropped", 0) for a in self.allocs)
        doc = {
            "schema": "ttmon-db",
            "version": 1,
            "ttmond": "0.1.0-test",
            "host": {"hostname": self.hostname, "release": "6.18", "nr_cpus": 2, "page_size": 4096},
            "clock": {"mono_ns": str(T0), "real_ns": str(REAL), "boot_ns": str(T0)},
            "capture": {
                "mode": "pids",
                "start_ns": str(T0),
                "end_ns": str(self.end),
                "mmap": True,
                "copy_results": False,
                "return_probes": True,
                "trace_only": False,
            },
            "completeness": {
                "complete": self.complete,
                "reasons": self.reasons,
                "attempted": 0,
                "lost": {"ring_full": self.lost, "map_full": 0, "read_failed": 0, "unpaired": 0},
                "decoded": 0,
                "malformed": 0,
                "late": 0,
                "arena_full": 0,
                "malformed_facts": 0,
                "unknown_frees": 0,
                "unmatched": 0,
                "superseded": 0,
                "events_dropped": dropped,
                "evicted": 0,
                "folded": 0,
                "cut": False,
                "identity": True,
                "blind": self.blind,
            },
            "objects": self.objects,
            "processes": self.procs,
            "sites": self.sites,
        }
        if self.checkpoints:
            doc["checkpoints"] = self.checkpoints
        doc.update(
            allocations=sorted(self.allocs, key=lambda a: int(a["alloc_ns"])), advice=[], summary=dict(SUMS, events=0)
        )
        return doc

    def write(self, path):
        data = json.dumps(self.document(), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        with (gzip.open if path.endswith(".gz") else open)(path, "wb") as f:
            f.write(data)
        return path


def workload(n=300, seconds=10.0, copies=100, seed=1, sites=40):
    """
    A training run of n allocations: weights and prefetch buffers that are hot, short-lived batches,
    a cache that is cold.
    """
    r = random.Random(seed)
    m = Maker(seconds)
    m.process()
    exe, lib = m.object("/usr/bin/train"), m.object("/usr/lib/python3/torch/lib/libtorch_cpu.so")
    made = [
        m.site(
            [
                (lib, 0x1000 + 16 * i, f"at::{name}+{hex(16 * i)}"),
                (exe, 0x400 + 32 * i, f"step{i}+0x41"),
                (exe, 0x900, "main+0x2a"),
            ]
        )
        for i, name in zip(
            range(sites), ["prefetch", "collate", "load_batch", "cache_page", "offload", "pin_memory"] * sites
        )
    ]
    for i in range(n):
        site = made[i * sites // n]
        kind = i * sites // n % 6
        size = r.choice([4096, 65536, 1 << 20, 4 << 20]) * (1 + kind)
        start = r.random() * seconds * 0.6 if kind in (1, 2) else r.random() * seconds * 0.05
        end = None if kind in (3, 4) else min(seconds, start + r.random() * seconds * (0.3 if kind in (1, 2) else 1))
        last = seconds if end is None else end
        number = 0 if kind == 3 else r.randrange(2) if kind == 4 else int(r.expovariate(1 / copies))
        method = (
            "mmap" if kind == 5 and i % 2 else "custom" if kind == 2 else "registered" if kind == 4 else "host_alloc"
        )
        times = sorted(start + r.random() * (last - start) for _ in range(number))
        if method == "mmap" and not times:
            times = [start]
        m.alloc(site, size, start, end, [(t, "h2d" if r.random() < 0.8 else "d2h", size) for t in times], method=method)
    return m
