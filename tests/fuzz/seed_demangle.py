#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the seeds of fuzz_demangle: tests/fuzz/corpus/demangle/. Symbols of libtorch, Rust and of
nothing. Same output each time.
"""
import os

COPY = (
    "_ZN2at6nativeL16copy_kernel_cudaERNS_14TensorIteratorEb+0x50b < "
    "_ZN2at6nativeL9copy_implERNS_6TensorERKS1_b.isra.0 < _ZN2at6native5copy_ERNS_6TensorERKS1_b"
)
SEEDS = {
    "copy": chr(80) + COPY,
    "narrow": chr(20) + COPY,
    "lambda": chr(60) + "_ZZZN2at6native23direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE0_clEvENKUlvE9_clEv",
    "kernel": chr(60)
    + "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_",
    "operators": chr(0) + "_ZN2at6withopIXadL_ZNKS_1QltERKS1_EEEEvv < _ZN3foolsIiEERS_T_ < _ZN2at1QptEv < _ZN1AclEv < "
    "_ZN1xIXgtLi3ELi2EEE3fooEv",
    "rust": chr(90)
    + "_RNvXCs1234_7mycrateNtB2_3FooNtB2_3Bar3baz < _ZN5tokio7runtime4task3raw4poll17h9a4f1e0d3c2b1a09E < "
    "_RNvCs1_1au8mnchen_a",
    "doubling": chr(90)
    + "_ZN1fI1AIiiES0_IS1_S1_ES0_IS2_S2_ES0_IS3_S3_ES0_IS4_S4_ES0_IS5_S5_ES0_IS6_S6_"
    "ES0_IS7_S7_ES0_IS8_S8_ES0_IS9_S9_EE1gEv",
    "start": chr(30) + "load+0x1 < main < __libc_start_main < _start",
    "python": chr(44) + "copy+0x1 < at::copy_ < THPVariable_to < cfunction_call < _PyEval_EvalFrameDefault < main",
    "nothing": chr(10) + "_Z",
}

if __name__ == "__main__":
    to = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "demangle")
    os.makedirs(to, exist_ok=True)
    for name, text in SEEDS.items():
        with open(os.path.join(to, name), "wb") as f:
            f.write(text.encode("latin-1"))
