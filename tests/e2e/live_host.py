# SPDX-License-Identifier: GPL-2.0-only
"""
live_host.py: what the tests of live advice share: a program that does what it is told, line by
line, and a client that follows.
"""
import json
import os
import select
import socket
import sys
import time

from e2e import PATIENCE, standin, true
from tt_host import api, retry

# Commands: dev | page NAME SIZE | pin NAME SIZE [FLAGS] | own NAME SIZE | reg, unreg, ptr, free
# NAME | copy NAME [N] | burst N | step LABEL.
# Answers each with {"t": CLOCK_MONOTONIC before the last copy, "addr": of NAME}. argv: libcudart,
# libmyalloc, a library with checkpoints or "".
PROGRAM = """
import ctypes, json, os, sys, time
P, Z, U, I, L = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_int, ctypes.c_long
cu, own, libc = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2]), ctypes.CDLL(None)
lib = ctypes.CDLL(sys.argv[3]) if sys.argv[3] else None
cu.cudaHostAlloc.argtypes = [ctypes.POINTER(P), Z, U]
cu.cudaMalloc.argtypes = [ctypes.POINTER(P), Z]
cu.cudaMemcpy.argtypes = [P, P, Z, I]
cu.cudaFreeHost.argtypes = cu.cudaHostUnregister.argtypes = [P]
cu.cudaHostRegister.argtypes = [P, Z, U]
cu.cudaHostGetDevicePointer.argtypes = [ctypes.POINTER(P), P, U]
own.my_alloc.argtypes, own.my_alloc.restype = [I, Z], P
libc.mmap.argtypes, libc.mmap.restype = [P, Z, I, I, I, L], P
dev, mem, size = P(), {}, {}
print("ready", os.getpid(), flush=True)
for line in sys.stdin:
    op, *w = line.split()
    name, n, err, t = w[0] if w else None, int(w[1]) if len(w) > 1 else 1, 0, 0
    if op in ("page", "pin", "own"):
        size[name] = n
    if op == "dev":
        err = cu.cudaMalloc(ctypes.byref(dev), 1 << 24)
    elif op == "page":
        mem[name] = libc.mmap(None, n, 3, 0x22, -1, 0)
        ctypes.memset(mem[name], 1, n)
    elif op == "own":
        mem[name] = own.my_alloc(0, n)
    elif op == "pin":
        p = P()
        err = cu.cudaHostAlloc(ctypes.byref(p), n, int(w[2]) if len(w) > 2 else 0)
        mem[name] = p.value
    elif op == "reg":
        err = cu.cudaHostRegister(mem[name], size[name], 0)
    elif op == "unreg":
        err = cu.cudaHostUnregister(mem[name])
    elif op == "ptr":
        err = cu.cudaHostGetDevicePointer(ctypes.byref(P()), mem[name], 0)
    elif op == "free":
        err = cu.cudaFreeHost(mem.pop(name))
    elif op == "copy":
        for _ in range(n):
            t = time.monotonic_ns()
            err |= cu.cudaMemcpy(dev, mem[name], size[name], 1)
    elif op == "burst":
        for _ in range(int(name)):
            err |= cu.cudaMemcpy(dev, own.my_alloc(0, 64), 64, 1)
    elif op == "step":
        lib.step(name.encode())
    assert err == 0, (line, err)
    print(json.dumps({"t": t, "addr": hex(mem.get(name) or 0)}), flush=True)
"""
OWN = ("--alloc-fn", "libmyalloc:my_alloc,size=2,out=ret", "--free-fn", "libmyalloc:my_free,ptr=2")


class Program:
    def __init__(self, bench, user=None, checkpoints=""):
        lib = standin("lib") if user is None else bench.for_everybody(standin("lib"))
        args = [sys.executable, "-c", PROGRAM, f"{lib}/libcudart.so.13", f"{lib}/libmyalloc.so", checkpoints]
        if user:
            args = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", *args]
        self.target = bench.target(*args)
        self.pid = self.target.pid

    def do(self, command):
        os.write(self.target.proc.stdin.fileno(), command.encode() + b"\n")
        return json.loads(self.target.line(60))

    def attached(self, service):
        """Until its runtime has probes, before a first call that counts; without OWN its allocator gets none."""
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as f:
            mine = {line.split(None, 5)[5].strip() for line in f if "/libcudart" in line}

        def check():
            objects = api(service.sock, "/v1/probes")["objects"]
            probed = {o["path"] for o in objects if any(p["state"] == "attached" for p in o["probes"])}
            true(f"without probes: {mine - probed}", mine <= probed)

        retry(20, check)

    def probed(self, service):
        """
        With OWN: until a call is seen. A service that meets a library for the first time misses
        those before its probes are active.
        """

        def seen():
            self.do("own probed 64")
            true(
                "no call is seen",
                any(
                    a["method"] == "custom"
                    for a in service.get(f"/v1/allocations?pid={self.pid}&limit=0")["allocations"]
                ),
            )

        retry(20, seen)


class Follower:
    """
    A client of /v1/advice/live, or of another route. Each line with its time of arrival as "came".
    HTTP/1.0: lines, without chunks around them.
    """

    def __init__(self, path, query="", follow=True, read=True, route="/v1/advice/live"):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.sock.sendall(f"GET {route}?{'follow=1&' if follow else ''}{query} HTTP/1.0\r\n\r\n".encode())
        self.buffer, self.lines = b"", []
        if read:
            self.begin()

    def begin(self):
        status = self.line(20)
        true(f"status {status}", status.split()[1:2] == [b"200"])
        while self.line(20).strip():
            pass
        self.head = self.next()
        true(f"the first line is {self.head}", self.head.get("head") is True)

    def line(self, seconds):
        """b"" at the end of the reply, None when nothing came."""
        end = time.monotonic() + seconds * PATIENCE
        while b"\n" not in self.buffer:
            if not select.select([self.sock], [], [], max(0, end - time.monotonic()))[0]:
                return None
            more = self.sock.recv(65536)
            if not more:
                return b""
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line + b"\n"

    def next(self, seconds=20):
        """The next line of any kind, in time; None at the end of the reply."""
        line = self.line(seconds)
        came = time.monotonic_ns()
        true("nothing came", line is not None)
        return dict(json.loads(line), came=came) if line else None

    def advice(self, seconds=20):
        """The next line of advice."""
        end = time.monotonic() + seconds * PATIENCE
        while True:
            line = self.next(max(0, end - time.monotonic()) / PATIENCE)
            true(f"the reply ended: {line}", line is not None)
            self.lines.append(line)
            if "seq" in line:
                return line

    def silent(self, seconds):
        """No advice for so long."""
        end = time.monotonic() + seconds
        while True:
            line = self.line(max(0, end - time.monotonic()) / PATIENCE)
            if line is None:
                return
            true(f"it said {line}", line.startswith(b'{"alive"'))

    def rest(self):
        """Lines up to the end of a reply that is not followed."""
        return list(iter(self.next, None))

    def close(self):
        self.sock.close()
