#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""facts.py: what this machine is and what it allows: whatever decides why later parts cannot run.
Called by parts.py."""
import ctypes
import glob
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys

from gpu import (
    CUDART,
    LIBCUDA,
    ON_STANDIN,
    TORCH_PYTHON,
    TRACE,
    Part,
    Skip,
    needs_bpf,
    needs_device,
    needs_runtime,
    output,
    standin_env,
    text_of,
)
from e2e import SLOW, TTMON, TTMOND, eq, process, true

part = Part("facts")
# linux/capability.h
CAPABILITIES = {
    "dac_read_search": 2,
    "sys_module": 16,
    "sys_ptrace": 19,
    "sys_admin": 21,
    "sys_resource": 24,
    "perfmon": 38,
    "bpf": 39,
    "checkpoint_restore": 40,
}
OPTIONS = "UPROBES|UPROBE_EVENTS|KPROBES|BPF_SYSCALL|BPF_EVENTS|DEBUG_INFO_BTF|FPROBE|X86_CPU_RESCTRL"


def kernel(_):
    """The kernel, what it forbids, and where this process is."""
    release = platform.release()
    version = text_of("/proc/version") or ""
    caps = re.search(r"^CapEff:\s*(\w+)", text_of("/proc/self/status") or "", re.M)
    caps = int(caps[1], 16) if caps else 0
    mounts = {
        line.split()[1]: line.split()[2]
        for line in (text_of("/proc/mounts") or "").splitlines()
        if len(line.split()) > 3
    }
    part.fact(
        "kernel",
        {
            "release": release,
            "version": version.strip(),
            "command line": (text_of("/proc/cmdline") or "").strip(),
            "gvisor": "gVisor" in version or bool(re.search("gVisor", output(["dmesg"]) or "")),
            "lockdown": (text_of("/sys/kernel/security/lockdown") or "no such file").strip(),
            "btf bytes": os.path.getsize("/sys/kernel/btf/vmlinux")
            if os.path.exists("/sys/kernel/btf/vmlinux")
            else None,
            "tracefs": [p for p, kind in mounts.items() if kind == "tracefs"],
            "bpffs": [p for p, kind in mounts.items() if kind == "bpf"],
            "cgroup mounts": [p for p, kind in mounts.items() if kind.startswith("cgroup")],
            "cgroup": (text_of("/proc/self/cgroup") or "").split(),
            "capabilities": {name: bool(caps >> bit & 1) for name, bit in CAPABILITIES.items()},
            "capabilities, all": f"{caps:#x}",
            "uid": os.getuid(),
            "seccomp": re.findall(r"^Seccomp:\s*(\d)", text_of("/proc/self/status") or "", re.M),
            **{
                name: (text_of("/proc/sys/" + path) or "no such file").strip()
                for name, path in (
                    ("perf_event_paranoid", "kernel/perf_event_paranoid"),
                    ("unprivileged_bpf_disabled", "kernel/unprivileged_bpf_disabled"),
                    ("kptr_restrict", "kernel/kptr_restrict"),
                    ("ptrace_scope", "kernel/yama/ptrace_scope"),
                    ("max_map_count", "vm/max_map_count"),
                )
            },
            "limit of locked memory": resource.getrlimit(resource.RLIMIT_MEMLOCK),
            "limit of files": resource.getrlimit(resource.RLIMIT_NOFILE),
            "config": re.findall(
                rf"^CONFIG_(?:{OPTIONS})=.",
                config(),
                re.M,
            ),
        },
    )
    k = part.facts["kernel"]
    return f"{release}, uid {os.getuid()}, lockdown {k['lockdown']}, BTF {'there' if k['btf bytes'] else 'missing'}"


def config():
    for name in ("/proc/config.gz", f"/boot/config-{platform.release()}"):
        if os.path.exists(name):
            return output(["zcat" if name.endswith("gz") else "cat", name]) or ""
    return ""


def machine(_):
    """Processors, memory, compilers and libraries."""
    model = re.search(r"model name\s*:\s*(.*)", text_of("/proc/cpuinfo") or "")
    libc = ctypes.CDLL(None)
    libc.gnu_get_libc_version.restype = ctypes.c_char_p
    cuda = os.environ.get("GPU_CUDA_HOME") or ""
    nvcc = os.path.join(cuda, "bin", "nvcc")
    system = dict(re.findall(r'^(\w+)="?(.*?)"?$', text_of("/etc/os-release") or "", re.M))
    part.fact(
        "machine",
        {
            "system": system.get("PRETTY_NAME"),
            "cpu": model[1] if model else None,
            "cpus": os.cpu_count(),
            "glibc": libc.gnu_get_libc_version().decode(),
            "memory": re.findall(
                r"^(?:MemTotal|HugePages_Total|Hugepagesize):.*", text_of("/proc/meminfo") or "", re.M
            ),
            "python": sys.version,
            "hypervisor": (text_of("/sys/class/dmi/id/product_name") or "").strip(),
            "uptime": (text_of("/proc/uptime") or "").split()[:1],
            "programs": {
                name: shutil.which(name)
                for name in (
                    "cc",
                    "gcc",
                    "clang",
                    "nvidia-smi",
                    "gdb",
                    "strace",
                    "perf",
                    "bpftool",
                    "readelf",
                    "objdump",
                    "cuobjdump",
                    "dmesg",
                )
            },
            "cc": (output(["cc", "--version"]) or "").splitlines()[:1],
            "cuda": cuda,
            "nvcc": (output([nvcc, "--version"]) or "").splitlines()[-2:],
        },
    )
    m = part.facts["machine"]
    return f"{m['system']}, glibc {m['glibc']}, {m['cpus']} CPUs, nvcc {'there' if m['nvcc'] else 'missing'}"


def driver(_):
    """The driver, its library and the GPU."""
    smi = output(
        [
            "nvidia-smi",
            "--query-gpu=name,driver_version,pci.bus_id,memory.total,persistence_mode,compute_mode",
            "--format=csv,noheader",
        ],
        20,
    )
    modules = [
        line.split()[0] for line in (text_of("/proc/modules", 1 << 20) or "").splitlines() if line.startswith("nvidia")
    ]
    part.fact(
        "driver",
        {
            "nvidia-smi": smi.splitlines() if smi else None,
            "module": (text_of("/proc/driver/nvidia/version") or "no such file").strip().splitlines(),
            "parameters": (text_of("/proc/driver/nvidia/params") or "").splitlines(),
            "modules": modules,
            "devices": sorted(glob.glob("/dev/nvidia*")),
            "libcuda": LIBCUDA and os.path.realpath(LIBCUDA),
            "libcuda bytes": os.path.getsize(LIBCUDA) if LIBCUDA else None,
            "libcudart": CUDART and os.path.realpath(CUDART),
            "stand-in": ON_STANDIN,
        },
    )
    needs_device()
    lib, version, count = ctypes.CDLL(LIBCUDA), ctypes.c_int(-1), ctypes.c_int(-1)
    part.facts["driver"]["cuInit"] = lib.cuInit(0)
    if hasattr(lib, "cuDriverGetVersion"):
        lib.cuDriverGetVersion(ctypes.byref(version))
    if hasattr(lib, "cuDeviceGetCount"):
        lib.cuDeviceGetCount(ctypes.byref(count))
    part.facts["driver"].update({"driver for CUDA": version.value, "GPUs": count.value})
    part.fact("driver", part.facts["driver"])
    eq("cuInit", part.facts["driver"]["cuInit"], 0)
    return f"{smi or LIBCUDA}, for CUDA {version.value}"


TORCH = """
import json, torch
d = {"version": torch.__version__, "cuda": torch.version.cuda, "gpu": torch.cuda.is_available(), "file": torch.__file__}
if d["gpu"]:
    d.update(name=torch.cuda.get_device_name(), capability=torch.cuda.get_device_capability())
    d.update(archs=torch.cuda.get_arch_list())
maps = open("/proc/self/maps").read()
names = ("libcuda", "libcudart", "libtorch_cuda", "libc10_cuda")
d["libraries"] = sorted({l.split()[-1] for l in maps.splitlines() if any(n in l for n in names)})
print(json.dumps(d))
"""


def torch(_):
    """PyTorch, and whether it has the GPU."""
    done = subprocess.run(
        [TORCH_PYTHON, "-W", "ignore", "-c", TORCH], capture_output=True, text=True, timeout=40 * SLOW, check=False
    )
    if done.returncode:
        part.fact("torch", {"python": TORCH_PYTHON, "error": done.stderr[-2000:]})
        raise Skip(f"no PyTorch in {TORCH_PYTHON}: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    part.fact("torch", {"python": TORCH_PYTHON, "says": done.stdout.strip().splitlines()[-1]})
    return done.stdout.strip().splitlines()[-1][:300]


def programs(_):
    """Ours run here: they find their libraries, and nothing of this machine's but libc is used."""
    for path in (TTMOND, TTMON):
        true(f"no {path}", os.path.exists(path))
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20 * SLOW, check=False)
        eq(f"status of {path} ({done.stderr.strip()})", done.returncode, 0)
    loaded = output([TTMOND, "--version"], env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"}) or ""
    found = part.fact(
        "programs",
        {
            "version": output([TTMOND, "--version"]),
            "loads": [" ".join(line.split()) for line in loaded.splitlines()],
            "needs glibc": os.environ.get("GPU_NEEDS_GLIBC"),
        },
    )
    return found["version"]


def bpf(_):
    """Whether uprobes by BPF are allowed; without them, all that needs ttmond is skipped."""
    needs_bpf()
    return "maps, programs and uprobe_multi links"


def ttmond(bench):
    """ttmond runs a command and sees a call of the runtime, or says what is missing."""
    needs_bpf()
    daemon = bench.daemon(*TRACE, "--dump-db", bench.path("db.json"), cmd=[sys.executable, "-c", "pass"], wait=False)
    status = daemon.wait(None)
    part.fact("ttmond", {"status": status, "says": daemon.stderr()[-4000:].splitlines()})
    eq(f"status ({daemon.stderr()[-600:]})", status, 0)
    return "a command without CUDA"


CALL = """
import ctypes, json, os, sys
rt = ctypes.CDLL(sys.argv[1])
n, p = ctypes.c_int(-1), ctypes.c_void_p()
err = [rt.cudaGetDeviceCount(ctypes.byref(n)), rt.cudaHostAlloc(ctypes.byref(p), ctypes.c_size_t(65536), 0)]
if not err[1]:
    err.append(rt.cudaFreeHost(p))
print(json.dumps({"pid": os.getpid(), "errors": err, "GPUs": n.value}))
"""


def runtime(bench):
    """One allocation through libcudart, seen by ttmond; where there is no driver, one call that
    fails.
    """
    needs_runtime()
    needs_bpf()
    out, db, daemon = bench.trace([sys.executable, "-c", CALL, CUDART], *TRACE, env=standin_env())
    book = part.fact("runtime", json.loads(out.strip().splitlines()[-1]))
    part.fact("ttmond and libcudart", {"says": daemon.stderr()[-4000:].splitlines(), "objects": db["objects"]})
    proc = process(db, book["pid"])
    wanted = (0, 1) if book["errors"][1] else (1, 0)
    eq(f"pins, failed (errors {book['errors']})", (proc["pins"], proc["failed"]), wanted)
    return f"errors {book['errors']}: pins {proc['pins']}, failed {proc['failed']}"


for check in (kernel, machine, driver, programs, bpf, ttmond, runtime, torch):
    part.check(check)
sys.exit(part.status())
