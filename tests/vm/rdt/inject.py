#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""inject.py SOCKET LAYOUT.json mon|all: give a kernel that starts in QEMU "RDT", through QEMU's gdb
stub.

The kernel has read CPUID by the time that it comes to resctrl_late_init(); there its boot_cpu_data
gets the CPU feature bits and limits of cache monitoring, 32 RMIDs. With "all" the table of
resources gets cache allocation too, once resctrl has looked at its own. The emulated CPU ignores
RDT's registers: counters read 0 unless fakeqm/ gives values. LAYOUT comes from gen.py; KASLR has to
be off.
"""
import json
import socket
import struct
import sys
import time

# Feature bits, word * 32 + bit of x86_capability (arch/x86/include/asm/cpufeatures.h).
CQM, RDT_A = 9 * 32 + 12, 9 * 32 + 15
CQM_LLC, CQM_OCCUP_LLC, CQM_MBM_TOTAL, CQM_MBM_LOCAL = (11 * 32 + bit for bit in range(4))
CAT_L3 = 7 * 32 + 4
# Largest RMID, bytes a unit, counter width beyond 24 bits.
CPU = {"x86_cache_max_rmid": 31, "x86_cache_occ_scale": 65536, "x86_cache_mbm_width_offset": 8}
# (value, bytes) of the L3's resource; a field that a kernel does not have is left out.
L3 = {
    "num_closid": (16, 4),
    "r_resctrl.alloc_capable": (1, 1),
    "r_resctrl.cache.cbm_len": (11, 4),
    "r_resctrl.cache.shareable_bits": (0, 4),
    "r_resctrl.default_ctrl": (0x7FF, 4),
    "r_resctrl.data_width": (3, 4),
}


class Stub:
    """QEMU's end of the gdb remote protocol."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        for _ in range(500):
            try:
                self.sock.connect(path)
                break
            except OSError:
                time.sleep(0.02)
        else:
            sys.exit("inject.py: QEMU opens no gdb socket")
        self.sock.settimeout(60)
        self.buf = b""

    def answer(self):
        while True:
            start = self.buf.find(b"$")
            end = self.buf.find(b"#", start)
            if 0 <= start < end and len(self.buf) >= end + 3:
                packet = self.buf[start + 1 : end]
                self.buf = self.buf[end + 3 :]
                self.sock.sendall(b"+")
                return packet
            more = self.sock.recv(4096)
            if not more:
                sys.exit("inject.py: QEMU is gone")
            self.buf += more

    def ask(self, text, wanted=None):
        packet = text.encode()
        self.sock.sendall(b"$" + packet + b"#%02x" % (sum(packet) & 255))
        got = self.answer()
        if wanted and not got.startswith(wanted):
            sys.exit(f"inject.py: {text} gives {got!r}")
        return got

    def read(self, addr, size):
        return bytes.fromhex(self.ask(f"m{addr:x},{size:x}").decode())

    def write(self, addr, data):
        self.ask(f"M{addr:x},{len(data):x}:{data.hex()}", (b"OK",))

    def run_to(self, addr):
        self.ask(f"Z1,{addr:x},1", (b"OK",))
        self.ask("c", (b"T05", b"S05"))
        self.ask(f"z1,{addr:x},1", (b"OK",))


def main():
    path, layout_path, mode = sys.argv[1:4]
    with open(layout_path, encoding="utf-8") as f:
        layout = json.load(f)
    symbols, cpu, resource = layout["symbols"], layout["cpuinfo_x86"], layout["rdt_hw_resource"]
    stub = Stub(path)
    stub.ask("?")
    boot_cpu = symbols["boot_cpu_data"]

    def feature(bit):
        addr = boot_cpu + cpu["x86_capability"] + 4 * (bit // 32)
        stub.write(addr, struct.pack("<I", struct.unpack("<I", stub.read(addr, 4))[0] | 1 << (bit % 32)))

    stub.run_to(symbols["resctrl_late_init"])
    for bit in (CQM, CQM_LLC, CQM_OCCUP_LLC, CQM_MBM_TOTAL, CQM_MBM_LOCAL):
        feature(bit)
    for field, value in CPU.items():
        stub.write(boot_cpu + cpu[field], struct.pack("<I", value))
    if mode == "all":
        feature(RDT_A)
        feature(CAT_L3)
        stub.run_to(symbols["__cpuhp_setup_state"])
        for field, (value, size) in L3.items():
            # The L3 is the first resource.
            if resource[field] is not None:
                stub.write(symbols["rdt_resources_all"] + resource[field], value.to_bytes(size, "little"))
        stub.write(symbols["rdt_alloc_capable"], b"\1")
    stub.ask("D")


if __name__ == "__main__":
    main()
