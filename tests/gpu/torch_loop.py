# SPDX-License-Identifier: GPL-2.0-only
"""torch_loop.py [--wait] [--hold]: a training loop in small that keeps books of its own, and prints
them as one line of JSON at the end.

The books follow from what PyTorch documents (aten/src/ATen/core/CachingHostAllocator.h): a pinned
tensor takes a block of the next power of two from the cache, or a new block; a block returns to the
cache with its tensor, and the system gets it back with torch._C._host_emptyCache(). They are kept
here, by sizes alone; PyTorch's own statistics are printed beside them. --wait: when all is set up,
print "ready PID" and wait for a line. --hold: wait for a line before the end.
"""
import collections
import json
import os
import sys

import torch

STEPS, WEIGHTS, BATCH, RESULT, LOADED = 40, 3 << 20, 700_000, 4096, 6


class Books:
    def __init__(self):
        self.cache = collections.Counter()  # size of a block: free ones
        self.blocks = []  # sizes of all blocks ever made
        self.registered = self.frees = 0
        self.transfers = {d: {m: [0, 0] for m in ("pinned", "pageable")} for d in ("h2d", "d2h")}

    def pin(self, size):
        block = 1 << (size - 1).bit_length()
        if self.cache[block]:
            self.cache[block] -= 1
        else:
            self.blocks.append(block)

    def unpin(self, size):
        self.cache[1 << (size - 1).bit_length()] += 1

    def empty_cache(self):
        self.frees += sum(self.cache.values())
        self.cache.clear()

    def copy(self, direction, memory, size):
        pair = self.transfers[direction][memory]
        pair[0] += 1
        pair[1] += size


books = Books()


def pinned(size):
    books.pin(size)
    return torch.empty(size, dtype=torch.uint8, pin_memory=True)


def unpin(tensor):
    """The tensor that the caller gives up: its last reference is gone when this returns."""
    torch.cuda.synchronize()
    books.unpin(tensor[0].numel())
    tensor.clear()


def put(device, host, memory):
    device[: host.numel()].copy_(host, non_blocking=True)
    books.copy("h2d", memory, host.numel())


def get(host, device, memory):
    host.copy_(device[: host.numel()], non_blocking=True)
    books.copy("d2h", memory, host.numel())


def loop(device):
    weights = [pinned(WEIGHTS + 4096 * i) for i in range(3)]
    ordinary = torch.empty(BATCH, dtype=torch.uint8)
    ordinary.fill_(1)
    result, plain_result = pinned(RESULT), torch.empty(RESULT, dtype=torch.uint8)
    for step in range(STEPS):
        batch = [pinned(BATCH + step)]
        put(device, batch[0], "pinned")
        for w in weights[: 1 + step % 3]:
            put(device, w, "pinned")
        device[:1024].add_(1)
        get(result, device, "pinned")
        if step % 10 == 0:
            put(device, ordinary, "pageable")
            get(plain_result, device, "pageable")
        unpin(batch)
    torch.cuda.synchronize()
    return weights, result


def registered(device):
    """Ordinary memory that PyTorch registers."""
    size = 1 << 20
    t = torch.empty(size + 4096, dtype=torch.uint8)
    t.fill_(1)
    start = -t.data_ptr() % 4096
    err = torch.cuda.cudart().cudaHostRegister(t.data_ptr() + start, size, 0)
    if int(err):
        raise SystemExit(f"torch_loop: cudaHostRegister: {err}")
    books.registered += 1
    put(device, t[start : start + size], "pinned")
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaHostUnregister(t.data_ptr() + start)
    books.frees += 1
    return t


def loaded(device, workers):
    """A DataLoader that pins: with workers, a thread of its own does."""
    data = torch.empty(LOADED * 8, 50_000, dtype=torch.uint8)
    data.fill_(1)
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=workers, pin_memory=True)
    kept = []
    for batch in loader:
        books.pin(batch.numel())
        put(device, batch.view(-1), "pinned")
        kept.append(batch)
    torch.cuda.synchronize()
    return kept


def statistics():
    """What PyTorch says of itself, where this version does."""
    found = {}
    for name in ("host_memory_stats", "memory_stats"):
        try:
            found[name] = {
                k: v
                for k, v in dict(getattr(torch.cuda, name)()).items()
                if v and k.startswith(("num_", "allocat", "reserved", "segment", "active", "host_"))
            }
        except (AttributeError, RuntimeError) as why:
            found[name] = str(why)
    return found


def main():
    torch.cuda.init()
    device = torch.empty(8 << 20, dtype=torch.uint8, device="cuda")
    device.fill_(0)
    torch.cuda.synchronize()
    if "--wait" in sys.argv:
        print(f"ready {os.getpid()}", flush=True)
        sys.stdin.readline()
    weights, result = loop(device)
    kept = [registered(device)]
    if hasattr(torch, "utils") and hasattr(torch.utils, "data"):
        kept += loaded(device, 0) + loaded(device, 1)
    torch.cuda.synchronize()
    # The name moved with versions; without it the blocks stay.
    if hasattr(torch._C, "_host_emptyCache"):
        torch._C._host_emptyCache()
        books.empty_cache()
    print(
        json.dumps(
            {
                "pid": os.getpid(),
                "torch": torch.__version__,
                "pins": len(books.blocks) + books.registered,
                "frees": books.frees,
                "blocks": sorted(books.blocks),
                "registered": books.registered,
                "transfers": books.transfers,
                "statistics": statistics(),
                "alive": len(weights) + len(kept) + result.numel() * 0,
            }
        ),
        flush=True,
    )
    if "--hold" in sys.argv:
        sys.stdin.readline()
    # Not through PyTorch's destructors: what is alive now ends with the process.
    os._exit(0)


main()
