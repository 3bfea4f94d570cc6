# SPDX-License-Identifier: GPL-2.0-only
"""
t_names.py: the functions of NVIDIA's own libraries against the table of those that are probed. Each whose name
says that it allocates, frees, pins, copies, launches, synchronises or registers memory is in
include/ttmon/fns.h, or in the list here of those that need no probe, with the reason.
"""
import fnmatch
import os
import re
import subprocess

from e2e import CUDA_LIB, TOP, Skip, eq, kernel, timeout, true
from real_libs import libraries

VERBS = re.compile(
    r"Alloc|Malloc|Array(3D)?Create|MemCreate|PoolCreate|Import|Free|ArrayDestroy|MemRelease|PoolDestroy|"
    r"MemTrim|TrimTo|cpy|Cop(y|ies)|Prefetch|Discard|Decompress|Launch|Synchron|Regist|Map|"
    r"Ipc(Open|Close)Mem|Managed|WriteValue|BatchMemOp"
)

# Patterns of names without "_ptds" and "_ptsz".
NO_PROBE = {
    "waits like cudaDeviceSynchronize, and is what nobody calls since CUDA 4": "cudaThreadSynchronize",
    "asks or changes an attribute": (
        "cudaGraphMem*NodeGetParams cuGraphMem*NodeGetParams cuMemGetAllocation* "
        "cudaGraphKernelNodeCopyAttributes cuGraphKernelNodeCopyAttributes cudaStreamCopyAttributes "
        "cuStreamCopyAttributes cuLibraryGetManaged cudaLibraryGetManaged cuGraph*BatchMemOpNode*etParams "
        "cudaGraphicsResourceSetMapFlags cuGraphicsResourceSetMapFlags* cudaGLSetBufferObjectMapFlags "
        "cuGLSetBufferObjectMapFlags"
    ),
    "registers code, a variable or a callback, not memory of the program": (
        "__cudaRegister* cudaDeviceRegisterAsyncNotification cuDeviceRegisterAsyncNotification "
        "cudaLogsRegisterCallback cuLogsRegisterCallback"
    ),
    "goes on into cudaLaunchKernel by a jump, which is probed (test_launches_by_nvcc)": "__cudaLaunchKernel",
    "runs a function on the host": "cudaLaunchHostFunc* cuLaunchHostFunc*",
    "an array has a handle and no address: no copy can be told to be one of its bytes": (
        "cudaMalloc3DArray cudaMallocArray cudaMallocMipmappedArray cudaFreeArray cudaFreeMipmappedArray "
        "cuArrayCreate* cuArray3DCreate* cuArrayDestroy cuMipmappedArrayCreate cuMipmappedArrayDestroy "
        "cuMemMapArrayAsync"
    ),
    "memory of a graph has no address before the graph is launched, which is counted": (
        "cudaGraphAddMemAllocNode cudaGraphAddMemFreeNode cuGraphAddMemAllocNode cuGraphAddMemFreeNode"
    ),
    "memory of a graphics library": (
        "cuda*GL*BufferObject* cu*GL*BufferObject* cudaGraphics*Register* cuGraphics*Register* cudaGraphics*Map* "
        "cuGraphics*Map*"
    ),
    "memory that another process or library made": (
        "cudaImportExternal* cuImportExternal* cudaExternalMemoryGetMapped* cuExternalMemoryGetMapped* "
        "cudaIpc*MemHandle cuIpc*MemHandle* cudaMemPoolImport* cuMemPoolImport* cuMemImportFromShareableHandle"
    ),
    "an address range or a handle, which is memory once it is mapped (cuMemMap)": (
        "cuMemAddressFree cuMemRelease cuMemRetainAllocationHandle"
    ),
    "the pool's memory went with its frees": (
        "cudaMemPoolDestroy cuMemPoolDestroy cudaMemPoolTrimTo cuMemPoolTrimTo cudaDeviceGraphMemTrim "
        "cuDeviceGraphMemTrim"
    ),
    "drops what is in memory and moves nothing": "cudaMemDiscardBatchAsync cuMemDiscardBatchAsync",
    "the decompressing engine's work is no copy of the bytes": "cuMemBatchDecompressAsync",
    "a word": "cuStreamWriteValue* cuStreamBatchMemOp* cuGraphAddBatchMemOpNode",
    "describes a tensor": "cuTensorMap*",
    "the interface before CUDA 3.2, of 32-bit addresses": (
        "cuMemAllocPitch cuMemcpyHtoD cuMemcpyHtoDAsync cuMemcpyDtoH cuMemcpyDtoHAsync cuMemcpyDtoD "
        "cuMemcpyDtoDAsync cuMemcpyDtoA cuMemcpyAtoD cuMemcpyHtoA cuMemcpyHtoAAsync cuMemcpyAtoH "
        "cuMemcpyAtoHAsync cuMemcpyAtoA cuMemcpy2D cuMemcpy2DUnaligned cuMemcpy2DAsync cuMemcpy3D cuMemcpy3DAsync"
    ),
}
EXEMPT = [(p, why) for why, patterns in NO_PROBE.items() for p in patterns.split()]


def build_names(out):
    """The program that says which row each name is probed by."""
    ours = [
        f"daemon/io/objects/{f}.c" for f in ("objects", "fnnames", "ttnames", "insn", "place", "python", "switches")
    ]
    subprocess.run(
        [
            os.environ.get("CC", "cc"),
            "-D_GNU_SOURCE",
            "-I.",
            "-Iinclude",
            "-o",
            out,
            "tests/e2e/names.c",
            "lib/os/elf.c",
            "lib/base/names.c",
            *ours,
        ],
        cwd=TOP,
        check=True,
    )
    return out


def output(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def stem(name):
    return re.sub(r"_pt(ds|sz)$", "", name)


def exempt(name):
    return [p for p, _ in EXEMPT if fnmatch.fnmatchcase(stem(name), p)]


def goes_on(lib, name, to):
    """The function does nothing but jump into the other one."""
    shown = output("objdump", "-d", "--no-show-raw-insn", "--disassemble=" + name, lib)
    code = re.findall(r"^\s+[0-9a-f]+:\t(.*)$", shown, re.M)
    jumps = [i for i, text in enumerate(code) if re.match(rf"jmp\s+[0-9a-f]+ <{to}(@@.*)?>", text)]
    before = code[: jumps[0]] if jumps else []
    true(
        f"{lib}: {name} is {code[:8]}",
        jumps and len(before) < 8 and all(re.match(r"(endbr64|push|pop|mov|nop)\b", text) for text in before),
    )


def check(bench, lib):
    rows = dict(sorted(line.split() for line in output(build_names(bench.path("names")), lib).splitlines()))
    true(f"{lib}: {len(rows)} functions", len(rows) > 350)
    unknown = sorted(n for n, row in rows.items() if row == "-" and VERBS.search(n) and not exempt(n))
    eq(f"{lib}: functions that are neither probed nor known to need no probe", unknown, [])
    for name in rows:
        if stem(name) == "__cudaLaunchKernel":
            goes_on(lib, name, name[2:])
    both = sorted(n for n, row in rows.items() if row != "-" and exempt(n))
    eq(f"{lib}: functions that are probed and said to need no probe", both, [])
    wrong = sorted((n, row) for n, row in rows.items() if row not in ("-", re.sub(r"_v\d$", "", stem(n))))
    eq(f"{lib}: functions that are probed as another one", wrong, [])


def real(pattern):
    found = [lib for lib in libraries() if re.search(pattern, lib)]
    if not found:
        raise Skip(f"no {pattern} is here: make real-libs fetches it")
    return found[0]


@kernel(False)
def test_runtime_11(bench):
    check(bench, real(r"libcudart\.so\.11\."))


@kernel(False)
def test_runtime_12(bench):
    check(bench, real(r"libcudart\.so\.12\."))


@kernel(False)
def test_runtime_13(bench):
    check(bench, real(r"libcudart\.so\.13"))


@kernel(False)
def test_runtime_13_static(bench):
    archive = os.path.join(CUDA_LIB, "libcudart_static.a")
    if not os.path.exists(archive):
        raise Skip(f"no {archive}")
    with open(bench.path("main.c"), "w", encoding="ascii") as f:
        f.write("int main(void) { return 0; }\n")
    subprocess.run(
        [
            "cc",
            "-o",
            bench.path("program"),
            bench.path("main.c"),
            "-Wl,--whole-archive",
            archive,
            "-Wl,--no-whole-archive",
            "-pthread",
            "-ldl",
            "-lrt",
        ],
        check=True,
    )
    check(bench, bench.path("program"))


@kernel(False)
def test_driver_535(bench):
    check(bench, real(r"libcuda\.so\.535\."))


@kernel(False)
def test_driver_550(bench):
    check(bench, real(r"libcuda\.so\.550\."))


@kernel(False)
def test_driver_13_stub(bench):
    """The stub that CUDA 13's programs are linked with has the names of its driver."""
    stub = os.path.join(CUDA_LIB, "stubs", "libcuda.so")
    if not os.path.exists(stub):
        raise Skip(f"no {stub}")
    check(bench, stub)


@kernel(False)
def test_every_reason_is_needed(bench):
    """A pattern that matches no function of any library here is a slip of the pen, if all of them are here."""
    libs = [real(rf"{p}\.") for p in (r"libcudart\.so\.11", r"libcuda\.so\.535", r"libcuda\.so\.550")]
    libs += [real(r"libcudart\.so\.13"), os.path.join(CUDA_LIB, "stubs", "libcuda.so")]
    tool = build_names(bench.path("names"))
    names = {stem(line.split()[0]) for lib in libs for line in output(tool, lib).splitlines()}
    meant = [n for n in names if VERBS.search(n)]
    eq("patterns without a function", [p for p, _ in EXEMPT if not fnmatch.filter(meant, p)], [])


KERNEL_CU = """
__global__ void nothing(int *p) { *p = 1; }
int main() { for (int i = 0; i < 7; i++) nothing<<<1, 1>>>(nullptr); return 0; }
"""


@timeout(60)
def test_launches_by_nvcc(bench):
    """What the real compiler makes of <<<>>> is counted once, with the runtime in a library and in the program."""
    nvcc = os.path.join(os.path.dirname(CUDA_LIB), "bin", "nvcc")
    if not os.path.exists(nvcc):
        raise Skip(f"no {nvcc}")
    with open(bench.path("k.cu"), "w", encoding="ascii") as f:
        f.write(KERNEL_CU)
    for runtime, stream in (("shared", "legacy"), ("static", "per-thread")):
        subprocess.run(
            [
                nvcc,
                "-arch=sm_80",
                "-cudart",
                runtime,
                "-default-stream",
                stream,
                "-o",
                bench.path("k"),
                bench.path("k.cu"),
            ],
            check=True,
        )
        _, db, _ = bench.trace([bench.path("k")], env={"LD_LIBRARY_PATH": CUDA_LIB})
        eq(f"{runtime} runtime, {stream} stream: launches", db["summary"]["launches"], 7)
