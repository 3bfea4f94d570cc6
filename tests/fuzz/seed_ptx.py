#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes the seeds of fuzz_ptx: tests/fuzz/corpus/ptx/. Small modules with every form of address,
call, scope and parameter. Same output each time.
"""
import os

HEAD = '.version 8.8\n.target sm_100a, debug\n.address_size 64\n.file 1 "a.cu"\n.global .align 4 .b8 g[16] = {1, 2};\n'
REGS = ".reg .b64 %rd<5>;\n.reg .b32 %r<5>, %x;\n.reg .pred %p<3>;\n"


def kernel(body, params="(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 q[12])"):
    loc = ".loc 1 7 3, function_name $L, inlined_at 1 2 3"
    return f"{HEAD}.visible .entry k{params} .maxntid 128 {{\n{REGS}{loc}\n{body}\nret;\n}}\n".encode()


SEEDS = {
    "loads": kernel(
        "L1: @%p1 ld.global.nc.L1::no_allocate.v4.f32 {%r1,%r2,_,%r3}, [%rd1+-4]; @!%p2 ld.u32 %x, [%r1]; ld.local.u8 "
        "%r1, [d+0x8];"
    ),
    "stores": kernel(
        "st.shared::cta.v2.u64 [%r1-16], {%rd1,%rd2}; st.global.u32 [4096], %r1; red.global.v4.f32.add [%rd1], {%r1,"
        "%r1,%r1,%r1};"
    ),
    "atoms": kernel("atom.global.cas.b128 %rd1, [g], %rd2, %rd3; atom.add.noftz.f16x2 %r1, [%rd1], %r2;"),
    "copies": kernel(
        "cp.async.ca.shared.global [%r1], [%rd1], 4, %p2, %rd2; cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16, "
        "%r2; cp.async.wait_all;"
    ),
    "matrices": kernel(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1,%r2,%r3,%r4}, [%x]; stmatrix.sync.aligned.m8n8.x1.b16 "
        "[%rd1], {%r1};"
    ),
    "others": kernel(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 512, [%r2]; "
        "prefetch.global.L2 [%rd1];"
    ),
    "scopes": kernel(
        '{ .reg .b64 %r1; { .reg .b16 %rd1; } ld.u32 %x, [%r1]; } /* } */ // {\n.pragma "nounroll;}"; .local .b8 d[4];'
    ),
    "calls": (
        HEAD
        + ".func (.param .b32 r) f(.param .b64 a);\n.func (.param .b32 r) f(.param .b64 a) {"
        + REGS
        + "ld.u32 %r1, [%rd1]; call (r), f, (a); ret; }\n"
        ".func h { call f; call.uni h; }\n.entry k { .reg .b64 %z; { .param .b64 a; call (r), f, (a); } call h; call "
        "h, (); call %z, (a), P;\n"
        "P: .callprototype _ (.param .b64 _); }"
    ).encode(),
    "old": b".version 6.3\n.target sm_50\n.address_size 64\n.entry k() { st.u32 [8], 1; }\n\0",
    "cut": kernel("ld.global.u32 %r1, [%rd1")[:-9],
    "odd": HEAD.encode() + b'}}};;{.entry k(.param .b8 a[99999999999], .reg .u32 b) { @ ! %p : ; ] [ call ( } # x\n"',
    "section": HEAD.encode()
    + b'.section .debug_str { .b8 1, 2 }\n.alias a, b;\n.pragma "x";\n.entry a() { .global .u32 own; }',
}


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "ptx")
    os.makedirs(folder, exist_ok=True)
    for name, text in SEEDS.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(text)


if __name__ == "__main__":
    main()
