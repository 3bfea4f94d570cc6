# SPDX-License-Identifier: GPL-2.0-only
"""
The kernel's view of pinned memory, with memory that the kernel really pins: io_uring's registered
buffers, and shared memory.
"""
import os
import re
import subprocess
import sys
import time

from e2e import PATIENCE, TTMON, Skip, Target, alone, eq, standin, timeout, true
from t_cpu import Service
from tt_host import api

MIB = 1 << 20
# Pins REGISTERED MiB by cudaHostRegister and ALLOCATED MiB by cudaHostAlloc of the stand-in, which
# pins nothing. With "real" it makes both true:
# the registered memory becomes an io_uring buffer (pin_user_pages), and as much shared memory as
# was allocated is touched.
PINNER = """
import ctypes, mmap, os, sys
registered, allocated, real, lib = int(sys.argv[1]) << 20, int(sys.argv[2]) << 20, sys.argv[3] == "real", sys.argv[4]
libc, cuda = ctypes.CDLL(None, use_errno=True), ctypes.CDLL(lib)
cuda.cudaHostRegister.argtypes = cuda.cudaHostUnregister.argtypes = None
class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
ring = libc.syscall(425, 4, (ctypes.c_char * 120)()) if real else 0
print("ready" if ring >= 0 else "noring", os.getpid(), flush=True)
sys.stdin.readline()
def vm_pin():
    return [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmPin")][0]
buf = mmap.mmap(-1, max(registered, 4096), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
addr, out = ctypes.addressof(ctypes.c_char.from_buffer(buf)), ctypes.c_void_p()
# Of a huge page io_uring of 6.12 keeps one pin and gives the other 511 back.
libc.madvise(ctypes.c_void_p(addr), ctypes.c_size_t(len(buf)), 15)  # MADV_NOHUGEPAGE
buf[:] = b"x" * len(buf)
if registered:
    assert cuda.cudaHostRegister(ctypes.c_void_p(addr), ctypes.c_size_t(registered), 0) == 0
    if real:
        assert libc.syscall(427, ring, 0, ctypes.byref(Iovec(addr, registered)), 1) == 0, ctypes.get_errno()
if allocated:
    assert cuda.cudaHostAlloc(ctypes.byref(out), ctypes.c_size_t(allocated), 0) == 0
    if real:
        fd = os.memfd_create("pinned")
        os.ftruncate(fd, allocated)
        shared = mmap.mmap(fd, allocated)
        shared[:] = b"y" * allocated
print("pinned", vm_pin(), flush=True)
sys.stdin.readline()
if registered:
    if real:
        assert libc.syscall(427, ring, 1, None, 0) == 0
    assert cuda.cudaHostUnregister(ctypes.c_void_p(addr)) == 0
if allocated:
    assert cuda.cudaFreeHost(out) == 0
print("released", flush=True)
sys.stdin.readline()
"""


def vmstat():
    with open("/proc/vmstat", encoding="ascii") as f:
        figures = dict(line.split() for line in f)
    if "nr_foll_pin_acquired" not in figures:
        raise Skip("this kernel does not count pinned pages")
    return int(figures["nr_foll_pin_acquired"]) - int(figures["nr_foll_pin_released"])


class Pinner(Target):
    def __init__(self, bench, registered, allocated, real):
        super().__init__(
            bench,
            [
                sys.executable,
                "-c",
                PINNER,
                str(registered),
                str(allocated),
                "real" if real else "",
                standin("lib/libcudart.so.13"),
            ],
            env={"LD_LIBRARY_PATH": standin("lib")},
            wait_ready=False,
        )
        if self.line().split()[0] != "ready":
            raise Skip("io_uring cannot be used here")

    def pin(self):
        self.go()
        self.vm_pin = int(self.line().split()[1]) * 1024

    def release(self):
        self.go()
        eq("it said", self.line().split(), ["released"])


def view(service, cond, what):
    """The kernel's view once it is as wanted: the kernel adds up its counters within a second or two."""
    end = time.monotonic() + 10 * PATIENCE
    while True:
        k = api(service.sock, "/v1/status")["kernel_pins"]
        if cond(k):
            return k
        true(f"{what}: {k}", time.monotonic() < end)
        time.sleep(0.2)


@alone("it reads how many pages are pinned on the whole host")
@timeout(60)
def test_what_is_really_pinned(bench):
    """
    Registered memory that drivers' pins cover, allocated memory that is shared memory: the kernel
    agrees; figures are the kernel's own.
    """
    before = vmstat()
    target = Pinner(bench, 32, 16, True)
    service = Service(bench, "--pid", str(target.pid))
    eq("nothing is pinned", api(service.sock, "/v1/status")["kernel_pins"]["verdict"], "nothing")
    target.pin()
    k = view(service, lambda k: k["verdict"] == "agrees" and k["foll_pin_pages"]["held"] >= before + 7680, "agrees")
    eq("told", (k["registered_bytes"], k["allocated_bytes"], k["processes"], k["unread"]), (32 * MIB, 16 * MIB, 1, 0))
    # Before 6.5 io_uring books its rings there too.
    eq("VmPin", k["vm_pin_bytes"], target.vm_pin)
    true(f"VmPin {target.vm_pin}", 32 * MIB <= target.vm_pin < 34 * MIB)
    true(f"RssShmem {k['rss_shmem_bytes']}", k["rss_shmem_bytes"] >= 16 * MIB)
    true(f"since the start: {k}", k["foll_pin_pages"]["acquired_since_start"] >= 7680)
    text = subprocess.run([TTMON, "status", "-vs", service.sock], capture_output=True, text=True, check=False).stdout
    true(text, re.search(r"^  kernel +[\d,]+ pages held by pin_user_pages\(\)", text, re.M))
    true(
        text,
        re.search(r"1 processes that pin: VmPin 3[23]\.\d MiB, RssShmem", text)
        and "the kernel contradicts nothing" in text,
    )
    # Memory that is let go is gone in the kernel's figures too.
    target.release()
    k = view(service, lambda k: k["verdict"] == "nothing" and k["foll_pin_pages"]["held"] <= before + 512, "released")
    eq("told", (k["registered_bytes"], k["allocated_bytes"], k["processes"]), (0, 0, 0))
    target.go()
    target.finish()
    service.daemon.wait(0)
    true(
        "summary",
        re.search(
            r"kernel's view when 48.0 MiB of it were pinned: nr_foll_pin [\d,]+ pages .*VmPin 3[23]\.\d MiB, RssShmem "
            r".*contradicts nothing",
            service.daemon.stderr(),
        ),
    )


@timeout(60)
def test_what_only_the_calls_say(bench):
    """A stand-in pins nothing: the kernel knows of neither, and that is said; metrics are those of the kernel."""
    vmstat()
    for registered, allocated, verdict in ((32, 16, "neither"), (32, 0, "no_foll_pin"), (0, 16, "no_shmem")):
        target = Pinner(bench, registered, allocated, False)
        service = Service(bench, "--pid", str(target.pid))
        target.pin()
        told = (registered * MIB, allocated * MIB)  # two calls: the view between them is of the first alone
        k = view(service, lambda k: (k["registered_bytes"], k["allocated_bytes"]) == told, "seen")
        eq("verdict", (k["verdict"], k["processes"]), (verdict, 1))
        text = subprocess.run(
            [TTMON, "status", "-vs", service.sock], capture_output=True, text=True, check=False
        ).stdout
        true(text, k["note"] in text and "stand-in" in text)
        page = subprocess.run(
            ["curl", "-sS", "--unix-socket", service.sock, "http://ttmond/metrics"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in (
            "ttmond_kernel_pages_pinned_total",
            "ttmond_kernel_pages_unpinned_total",
            "ttmond_pinning_processes_vm_pin_bytes",
            "ttmond_pinning_processes_rss_shmem_bytes",
        ):
            true(f"{name} in {page[:200]}", re.search(rf"^{name} \d", page, re.M))
        target.release()
        target.go()
        target.finish()
        service.daemon.wait(0)


@timeout(60)
def test_a_command(bench):
    """Under -- CMD: the summary has the kernel's view of the time when most was pinned."""
    env = {"LD_LIBRARY_PATH": standin("lib")}
    script = PINNER.replace("sys.stdin.readline()", '__import__("time").sleep(1.2)')
    daemon = bench.daemon(
        cmd=[sys.executable, "-c", script, "32", "0", "", standin("lib/libcudart.so.13")], env=env, wait=False
    )
    daemon.wait(0)
    said = daemon.stderr()
    true(said, re.search(r"^kernel's view when 32.0 MiB of it were pinned: .*not in nr_foll_pin", said, re.M))
    # Where nothing was pinned nothing is said.
    daemon = bench.daemon(cmd=["true"], wait=False)
    daemon.wait(0)
    true(daemon.stderr(), "kernel's view" not in daemon.stderr())


@timeout(60)
def test_nvidia_pins_without_kprobes(bench):
    """
    --nvidia-pins where its functions cannot be probed: a line says why, and the rest goes on. Where
    they can: tests/vm/g_nvpin.py.
    """
    if os.path.exists("/sys/module/nvidia"):
        raise Skip("NVIDIA's module is loaded here")
    why = (
        "the module nvidia is not loaded"
        if os.path.exists("/sys/bus/event_source/devices/kprobe/type")
        else "this kernel has no kprobes"
    )
    target = bench.target(standin("scen"), "--wait", "copies")
    service = Service(bench, "--pid", str(target.pid), "--nvidia-pins")
    functions = api(service.sock, "/v1/status")["kernel_pins"]["nvidia"]["functions"]
    eq("functions", {(f["probed"], f["reason"], f["calls"]) for f in functions}, {(False, why, 0)})
    programs = {p["name"]: p for p in service.ask("probes")["programs"]}
    for name in ("nvpin_call", "nvpin_ret"):
        eq(name, tuple(programs[name][k] for k in ("wanted", "loaded", "attached", "reason")), (True, True, False, why))
    text = subprocess.run([TTMON, "status", "-vs", service.sock], capture_output=True, text=True, check=False).stdout
    true(text, f"nvidia       not counted: {why}\n" in text)
    page = subprocess.run(
        ["curl", "-sS", "--unix-socket", service.sock, "http://ttmond/metrics"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    true(
        "what was never probed is not nought", "ttmond_nvidia_driver" not in page and "ttmond_host_pinned_bytes" in page
    )
    target.go()
    target.finish()
    service.daemon.wait(0)
    eq(
        "lines",
        re.findall(r".*nvidia-pins.*", service.daemon.stderr()),
        [f"ttmond: --nvidia-pins: {why}, continuing without the pages it pins"],
    )
