# SPDX-License-Identifier: GPL-2.0-only
"""entry_calls.py WAY LIBCUDA LIBCUDART COUNT: calls CUDA functions for entry.py.

WAY: dlsym or cuGetProcAddress (functions of the driver), or runtime. For each name that it reads it
makes what the calls need and prints "prepared"; after the next line it calls the function COUNT
times and prints the error of the last call.
"""
import ctypes
import mmap
import os
import sys

WAY, LIBCUDA, CUDART, COUNT = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
SIZE = 65536
cu = ctypes.CDLL(LIBCUDA)
rt = ctypes.CDLL(CUDART) if WAY == "runtime" else None


def n(value):
    return ctypes.c_size_t(value)


def function(name):
    """A function of the driver, by the way that is asked for; None: there is none."""
    if WAY != "cuGetProcAddress":
        return getattr(cu, name, None)
    pointer, status = ctypes.c_void_p(), ctypes.c_int()
    root = name[:-3] if name[-3:-1] == "_v" else name
    err = cu.cuGetProcAddress_v2(
        root.encode(), ctypes.byref(pointer), ctypes.c_int(12000), ctypes.c_uint64(1), ctypes.byref(status)
    )
    return ctypes.CFUNCTYPE(ctypes.c_int)(pointer.value) if not err and pointer.value else None


class Plain:
    """Two blocks and a page of ordinary memory that all copies use."""

    def __init__(self):
        self.page = mmap.mmap(-1, SIZE)
        self.page.write(b"x" * SIZE)
        self.pages = ctypes.addressof(ctypes.c_char.from_buffer(self.page))
        self.host, self.device = self.get(self.alloc_host), self.get(self.alloc_device)

    @staticmethod
    def get(call):
        p = ctypes.c_void_p()
        return p if not call(ctypes.byref(p)) else ctypes.c_void_p()


class Driver(Plain):
    def __init__(self):
        ctx = ctypes.c_void_p()
        cu.cuInit(0)
        if not cu.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), 0):
            cu.cuCtxSetCurrent(ctx)
        super().__init__()

    @staticmethod
    def alloc_host(p):
        return cu.cuMemHostAlloc(p, n(SIZE), 0)

    @staticmethod
    def alloc_device(p):
        return cu.cuMemAlloc_v2(p, n(SIZE))

    def prepared(self, name):
        """What a call of it takes: one list of arguments for each call."""
        new = [ctypes.c_void_p() for _ in range(COUNT)]
        if name in ("cuMemHostAlloc", "cuMemAllocManaged"):
            return [(ctypes.byref(p), n(SIZE), 1 if name == "cuMemAllocManaged" else 0) for p in new]
        if name in ("cuMemAllocHost_v2", "cuMemAlloc_v2"):
            return [(ctypes.byref(p), n(SIZE)) for p in new]
        if name == "cuMemFreeHost":
            return [(self.get(self.alloc_host),) for _ in new]
        if name == "cuMemFree_v2":
            return [(self.get(self.alloc_device),) for _ in new]
        if name == "cuMemHostRegister_v2":
            return [(ctypes.c_void_p(self.pages + i * 4096), n(4096), 0) for i in range(COUNT)]
        if name == "cuMemHostUnregister":
            return [(ctypes.c_void_p(self.pages + i * 4096),) for i in range(COUNT)]
        if "DtoH" in name:
            args = (self.host, self.device, n(SIZE))
        else:
            args = (self.device, self.host, n(SIZE))
        return [(*args, None) if "Async" in name else args] * COUNT

    def function(self, name):
        return function(name)


class Runtime(Plain):
    @staticmethod
    def alloc_host(p):
        return rt.cudaHostAlloc(p, n(SIZE), 0)

    @staticmethod
    def alloc_device(p):
        return rt.cudaMalloc(p, n(SIZE))

    def prepared(self, name):
        new = [ctypes.c_void_p() for _ in range(COUNT)]
        name, *kind = name.split()
        if name in ("cudaHostAlloc", "cudaMallocManaged"):
            return [(ctypes.byref(p), n(SIZE), 1 if name == "cudaMallocManaged" else 0) for p in new]
        if name in ("cudaMallocHost", "cudaMalloc"):
            return [(ctypes.byref(p), n(SIZE)) for p in new]
        if name == "cudaFreeHost":
            return [(self.get(self.alloc_host),) for _ in new]
        if name == "cudaFree":
            return [(self.get(self.alloc_device),) for _ in new]
        if name == "cudaHostRegister":
            return [(ctypes.c_void_p(self.pages + i * 4096), n(4096), 0) for i in range(COUNT)]
        if name == "cudaHostUnregister":
            return [(ctypes.c_void_p(self.pages + i * 4096),) for i in range(COUNT)]
        host = ctypes.c_void_p(self.pages) if "pageable" in kind else self.host
        if name == "cudaMemcpy2D":
            return [(self.device, n(512), host, n(256), n(200), n(16), 1)] * COUNT
        if "d2h" in kind:
            args = (host, self.device, n(SIZE), 2)
        else:
            args = (self.device, host, n(SIZE), 4 if "default" in kind else 1)
        return [(*args, None) if name == "cudaMemcpyAsync" else args] * COUNT

    def function(self, name):
        return getattr(rt, name.split()[0], None)


calls = Runtime() if WAY == "runtime" else Driver()
print(f"ready {os.getpid()}", flush=True)
for line in sys.stdin:
    name = line.strip()
    if not name:
        break
    f = calls.function(name)
    if not f:
        print("missing", flush=True)
        continue
    prepared, err = calls.prepared(name), 0
    print("prepared", flush=True)
    sys.stdin.readline()
    for args in prepared:
        err = f(*args)
    print(err, flush=True)
