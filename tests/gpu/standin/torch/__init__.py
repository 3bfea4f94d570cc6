# SPDX-License-Identifier: GPL-2.0-only
"""A torch module for torch_loop.py alone, on the stand-in runtime: so much of PyTorch as the loop
uses, with its cache of pinned blocks.

It shows that the loop and ledger.py work where there is no GPU. It says nothing about PyTorch.
"""
import collections
import ctypes
import os

__version__ = "stand-in"
uint8 = "uint8"
_rt = ctypes.CDLL(os.environ["GPU_CUDART"])
_libc = ctypes.CDLL(None)
_libc.aligned_alloc.restype = ctypes.c_void_p
_free = collections.defaultdict(list)


def _check(err):
    if err:
        raise RuntimeError(f"error {err}")


def _new(function, size, *more):
    p = ctypes.c_void_p()
    _check(getattr(_rt, function)(ctypes.byref(p), ctypes.c_size_t(size), *more))
    return p.value


class Tensor:
    def __init__(self, address, size, where, block=None):
        self.address, self.size, self.where, self.block = address, size, where, block

    def __del__(self):
        if self.block:
            _free[self.block].append(self.address)

    def __getitem__(self, index):
        start, stop, _ = index.indices(self.size)
        return Tensor(self.address + start, stop - start, self.where)

    def numel(self):
        return self.size

    def data_ptr(self):
        return self.address

    def fill_(self, value):
        if self.where == "cpu":
            ctypes.memset(self.address, value, self.size)

    def add_(self, _value):
        pass

    def copy_(self, other, non_blocking=False):
        kind = {("cuda", "cpu"): 1, ("cpu", "cuda"): 2}[self.where, other.where]
        _check(
            _rt.cudaMemcpyAsync(
                ctypes.c_void_p(self.address), ctypes.c_void_p(other.address), ctypes.c_size_t(other.size), kind, None
            )
        )
        if not non_blocking:
            cuda.synchronize()


def empty(size, dtype=uint8, pin_memory=False, device="cpu"):
    if device == "cuda":
        return Tensor(_new("cudaMalloc", size), size, device)
    if not pin_memory:
        return Tensor(_libc.aligned_alloc(ctypes.c_size_t(64), ctypes.c_size_t((size + 63) // 64 * 64)), size, "cpu")
    block = 1 << (size - 1).bit_length()
    return Tensor(_free[block].pop() if _free[block] else _new("cudaHostAlloc", block, 0), size, "cpu", block)


class cuda:
    @staticmethod
    def init():
        _check(_rt.cudaSetDevice(0))

    @staticmethod
    def synchronize():
        _check(_rt.cudaDeviceSynchronize())

    @staticmethod
    def cudart():
        class Functions:
            @staticmethod
            def cudaHostRegister(address, size, flags):
                return _rt.cudaHostRegister(ctypes.c_void_p(address), ctypes.c_size_t(size), flags)

            @staticmethod
            def cudaHostUnregister(address):
                return _rt.cudaHostUnregister(ctypes.c_void_p(address))

        return Functions


class _C:
    @staticmethod
    def _host_emptyCache():
        for blocks in _free.values():
            while blocks:
                _check(_rt.cudaFreeHost(ctypes.c_void_p(blocks.pop())))
